/* What the parts of the HTTP server share. Private to pkg/wire/http_server*.c. */
#ifndef CR_WIRE_HTTP_SERVER_INTERNAL_H
#define CR_WIRE_HTTP_SERVER_INTERNAL_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/strmap.h"
#include "wire/http_request.h"
#include "wire/http_room.h"
#include "wire/http_server.h"

struct event;

enum { CR_HTTP_MAX_ADDRESSES = 8 };

struct cr_http_route {
    cr_http_handler handler;
    void *arg;
    cr_http_guard guard; /* NULL: none */
    void *guard_arg;
    cr_http_waiter waiter; /* NULL: handler */
    bool one_at_a_time;
};

struct cr_http_pending {
    struct cr_http_connection *connection; /* NULL: it has ended, and with it the server may have */
    const struct cr_http_route *route;
};

struct cr_http_connection {
    LIST_ENTRY(cr_http_connection) all;
    TAILQ_ENTRY(cr_http_connection) queue; /* while its stage is CR_HTTP_QUEUED */
    struct cr_http_server *server;
    struct cr_http_place place;
    struct bufferevent *stream;
    struct cr_timer *deadline; /* of its stage; it is never put off by what the other side sends */
    struct cr_http_ask ask;
    const struct cr_http_route *route;
    struct cr_http_pending *pending; /* NULL: no handler has it; owned by the handler that has it */
    int64_t came_ms;                 /* when it was accepted */
    int64_t answered_ms;             /* when its answer began */
    size_t out;                      /* bytes of its answer, until all are out */
    bool last;                       /* nothing is asked after this answer */
    bool ended;                      /* the other side says no more */
    bool waits;                      /* counts in cr_http_server_waiting */
    bool lingers;                    /* we say no more */
};

struct cr_http_connection;
struct cr_http_listener {
    int fd;
    struct event *event;
};

struct cr_http_server {
    struct cr_loop *loop;
    struct cr_strmap *routes; /* path -> struct cr_http_route */
    struct cr_http_limits limits;
    struct cr_http_room room; /* from the first address on */
    LIST_HEAD(, cr_http_connection) connections;
    TAILQ_HEAD(cr_http_queue, cr_http_connection) queue; /* for pages that are made one at a time */
    struct cr_timer *next_page;
    struct cr_http_listener listeners[CR_HTTP_MAX_ADDRESSES];
    size_t addresses;
    struct cr_timer *pause;                                          /* of the listeners, when files are used up */
    int spare;                                                       /* a descriptor for that; -1: in use */
    struct bufferevent *(*make)(struct event_base *base, void *arg); /* NULL: plain HTTP */
    void *make_arg;
    size_t waiting;
    size_t out; /* bytes of all answers that are not out */
    struct cr_http_counts counts;
    size_t logged; /* of those that gave way, how many the log knows of */
    int64_t logged_ms;
    int port;
};

/* --- http_server.c --- */

/* The head of its request is whole. connection may be gone afterwards. */
void cr_http_server_dispatch(struct cr_http_connection *connection);
/* Makes the answer of its route; where the route is made one at a time, when the queue comes to it. */
void cr_http_server_serve(struct cr_http_connection *connection);
/* Looks at the queue as soon as the loop has looked at all connections. */
void cr_http_server_schedule(struct cr_http_server *server);

/* --- http_server_accept.c --- */

void cr_http_server_free_listeners(struct cr_http_server *server);
/* A descriptor has come back. */
void cr_http_server_keep_spare(struct cr_http_server *server);
/* The one that gives way first of those in the stages first to last, but for except (may be NULL); NULL: none. */
struct cr_http_connection *cr_http_server_victim(struct cr_http_server *server, enum cr_http_stage first,
                                                 enum cr_http_stage last, const struct cr_http_connection *except);
/* Closes it for others. */
void cr_http_server_give_way(struct cr_http_connection *victim);

/* --- http_server_connection.c --- */

/* fd: the connection's from here on. */
void cr_http_connection_new(struct cr_http_server *server, int fd, const struct sockaddr *from);
void cr_http_connection_free(struct cr_http_connection *connection);
/* deadline_ms: how long it may be in that stage; negative: as long as it likes. */
void cr_http_connection_move(struct cr_http_connection *connection, enum cr_http_stage stage, int64_t deadline_ms);
/* extra: lines of the head, each with its end; "": none. connection may be gone afterwards. */
void cr_http_connection_reply(struct cr_http_connection *connection, int status, const char *content_type,
                              const char *extra, const struct cr_buf *body);
void cr_http_connection_reply_text(struct cr_http_connection *connection, int status, const char *extra,
                                   const char *text);

/* --- http_server_waiting.c --- */

void cr_http_server_ask_guard(struct cr_http_connection *connection);
void cr_http_server_ask_waiter(struct cr_http_connection *connection);
/* Its connection ends, or waits no more. */
void cr_http_pending_forget(struct cr_http_connection *connection);

#endif
