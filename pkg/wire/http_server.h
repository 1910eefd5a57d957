/* A small HTTP server on the loop (libevent) for /metrics, /healthz, /readyz; net/http_server_tls.h gives it TLS.
 * Anyone in the cluster may reach it: sizes, times and connections are capped. */
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
/* Loop thread, or after the loop has ended; also when the server is gone, or who asked has hung up: then nobody reads
 * it. content_type: static. Frees pending. */
void cr_http_pending_answer(struct cr_http_pending *pending, int status, const char *content_type,
                            const struct cr_buf *body);

struct bufferevent;
struct event_base;

struct cr_http_server *cr_http_server_new(struct cr_loop *loop);
/* In the loop's thread or after it has ended, but before cr_loop_free. Open connections are closed. */
void cr_http_server_free(struct cr_http_server *server);
CR_DEFINE_CLEANUP(cr_http_server, struct cr_http_server, cr_http_server_free)
/* GET and HEAD of an exact path; anything else answers 404 or 405. */
void cr_http_server_handle(struct cr_http_server *server, const char *path, cr_http_handler handler, void *arg);
/* The same behind a guard. */
void cr_http_server_handle_guarded(struct cr_http_server *server, const char *path, cr_http_handler handler, void *arg,
                                   cr_http_guard guard, void *guard_arg);
/* GET alone: what begins something must not begin by a HEAD, which promises to change nothing (RFC 9110, section
 * 9.2.1). However long the answer takes, silence does not end its connection. */
void cr_http_server_handle_waiting(struct cr_http_server *server, const char *path, cr_http_waiter waiter, void *arg);
/* Requests of such pages that somebody waits for, and answers that are not out yet. */
size_t cr_http_server_waiting(const struct cr_http_server *server);
/* How long a connection may be silent, in seconds (default 15). Before it listens. */
void cr_http_server_set_silence(struct cr_http_server *server, int seconds);
/* What each new connection, on all its addresses, is spoken through: make returns a bufferevent without a descriptor,
 * which libevent then owns; it must not fail. Before it listens. */
void cr_http_server_use_connections(struct cr_http_server *server,
                                    struct bufferevent *(*make)(struct event_base *base, void *arg), void *arg);
/* "host:port", ":8080" (all addresses), "[::1]:0"; errors name the address. Call before the loop runs or in its thread;
 * may be called for several addresses. */
bool cr_http_server_listen(struct cr_http_server *server, const char *address, struct cr_error *err) CR_MUST_USE;
/* Its connections are let in while those of this process's other servers have to wait already: whoever floods one page
 * must not keep a kubelet from its probes. Before the loop runs. */
void cr_http_server_prefer(struct cr_http_server *server);
/* The port that was bound last (for :0); 0 before. */
int cr_http_server_port(const struct cr_http_server *server);

#endif
