/* A small HTTP/1 server on the loop for /metrics, /healthz, /readyz; net/http_server_tls.h gives it TLS. Anyone in the
 * cluster may reach it, and a kubelet must be answered within a second whatever they do:
 *
 *  - Connections have places (http_room.h). When they are taken, the one that has done least for its own gives way to
 * the newcomer, so that listening never stops for long: 25 ms
 *    at most, for a newcomer to ask before it can have to give way itself.
 *  - Each stage of a connection has a deadline that begins with the stage; what the other side sends does not put it
 * off.
 *  - In one pass of the loop a server takes so many new connections, reads so many bytes and answers one request of
 * each connection, and makes one of its costly pages (cr_http_server_make_one_at_a_time).
 *  - Answers that are not out yet have so many bytes together; kernel buffers are small.
 *
 * Each server has its own places: metrics cannot take those of the probes when they have another address. */
#ifndef CR_WIRE_HTTP_SERVER_H
#define CR_WIRE_HTTP_SERVER_H

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "sys/loop.h"

struct cr_http_server;

/* Fills body and answers the HTTP status; *content_type is text/plain unless changed (static string). Runs in the
 * loop's thread: must not block. */
typedef int (*cr_http_handler)(void *arg, struct cr_buf *body, const char **content_type);

/* A request that waits for the decision of its guard; its connection may end meanwhile. */
struct cr_http_pending;
/* Decides who may have a page, before its handler runs. authorization: the header as sent, NULL when there is none;
 * borrowed for the call. Runs in the loop's thread and must not block: cr_http_pending_allow or _refuse are called once
 * for pending, here or later. */
typedef void (*cr_http_guard)(void *arg, const char *authorization, struct cr_http_pending *pending);
/* Loop thread, or after the loop has ended; also when the server is gone. Both free pending. */
void cr_http_pending_allow(struct cr_http_pending *pending);
/* 401 comes with the challenge that RFC 9110, section 11.6.1, wants: for a bearer token. text: a line. */
void cr_http_pending_refuse(struct cr_http_pending *pending, int status, const char *text);

/* A page that takes its time: cr_http_pending_answer is called once for pending, here or later. Runs in the loop's
 * thread and must not block. */
typedef void (*cr_http_waiter)(void *arg, struct cr_http_pending *pending);
/* Who asked has hung up, or the server is gone. */
bool cr_http_pending_is_gone(const struct cr_http_pending *pending);
/* Loop thread, or after the loop has ended; also when the server is gone, or the client has hung up: then it is not
 * read. content_type: static. Frees pending. */
void cr_http_pending_answer(struct cr_http_pending *pending, int status, const char *content_type,
                            const struct cr_buf *body);

struct bufferevent;
struct event_base;

struct cr_http_server *cr_http_server_new(struct cr_loop *loop);
/* In the loop's thread or after it has ended, but before cr_loop_free. Open connections are closed. */
void cr_http_server_free(struct cr_http_server *server);
CR_DEFINE_CLEANUP(cr_http_server, struct cr_http_server, cr_http_server_free)
/* GET and HEAD of an exact path; anything else answers 404 or 405. A request with a body is answered, and its
 * connection then closed. */
void cr_http_server_handle(struct cr_http_server *server, const char *path, cr_http_handler handler, void *arg);
/* The same behind a guard. A quarter of the connections may wait for guards and waiters; beyond that one of the peer
 * that has the most of them is answered with 503, or the newcomer when its own peer has as many. */
void cr_http_server_handle_guarded(struct cr_http_server *server, const char *path, cr_http_handler handler, void *arg,
                                   cr_http_guard guard, void *guard_arg);
/* GET alone: what begins something must not begin by a HEAD, which promises to change nothing (RFC 9110, section
 * 9.2.1). However long the answer takes, no deadline ends its connection. */
void cr_http_server_handle_waiting(struct cr_http_server *server, const char *path, cr_http_waiter waiter, void *arg);
/* A page of handler's that costs milliseconds: one of them is made in a pass of the loop, and none while 8 MiB of
 * answers are not out; then one that has had 2 s to take its answer gives way. After it is handled. */
void cr_http_server_make_one_at_a_time(struct cr_http_server *server, const char *path);
/* The number of requests for slow pages that a client waits for, and of answers that are not out yet. */
size_t cr_http_server_waiting(const struct cr_http_server *server);
/* Milliseconds; 0 stands for the default. */
struct cr_http_limits {
    size_t connections; /* 256, and never more than a quarter of the files that the process may open; at least 8 */
    int head_ms;   /* 10,000: from accepting it to the whole head of its first request, a TLS handshake included; of
                      later requests from their first byte on */
    int idle_ms;   /* 15,000: between an answer and the first byte of another request */
    int answer_ms; /* 20,000: to take an answer */
};
/* Before it listens. */
void cr_http_server_limit(struct cr_http_server *server, const struct cr_http_limits *limits);

/* Since it began, but for open. Loop thread. */
struct cr_http_counts {
    size_t open;
    size_t accepted;
    size_t gave_way; /* closed for others */
    size_t late;     /* closed by a deadline */
    size_t refused;  /* that might not wait for us, since too many do */
};
struct cr_http_counts cr_http_server_counts(const struct cr_http_server *server);

/* The transport of each new connection, on all addresses of the server: make returns a bufferevent without a
 * descriptor, that closes its descriptor (BEV_OPT_CLOSE_ON_FREE), which the server then owns; it must not fail. Before
 * it listens.
 */
void cr_http_server_use_connections(struct cr_http_server *server,
                                    struct bufferevent *(*make)(struct event_base *base, void *arg), void *arg);
/* "host:port", ":8080" (all addresses), "[::1]:0"; errors name the address. Call before the loop runs or in its thread;
 * may be called for several addresses. */
bool cr_http_server_listen(struct cr_http_server *server, const char *address, struct cr_error *err) CR_MUST_USE;
/* The port that was bound last (for :0); 0 before. */
int cr_http_server_port(const struct cr_http_server *server);

#endif
