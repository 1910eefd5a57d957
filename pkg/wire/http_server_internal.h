/* What the parts of the HTTP server share. Private to pkg/wire/http_server*.c. */
#ifndef CR_WIRE_HTTP_SERVER_INTERNAL_H
#define CR_WIRE_HTTP_SERVER_INTERNAL_H

#include "base/strmap.h"
#include "wire/http_server.h"

struct evconnlistener;
struct evhttp;
struct evhttp_connection;
struct evhttp_request;

enum { CR_HTTP_MAX_ADDRESSES = 8 };

struct cr_http_route {
    cr_http_handler handler;
    void *arg;
    cr_http_guard guard; /* NULL: none */
    void *guard_arg;
    cr_http_waiter waiter; /* NULL: handler */
};

struct cr_http_pending {
    struct evhttp_request *request; /* NULL: its connection has ended, and with it the server may have */
    const struct cr_http_route *route;
    struct cr_http_server *server; /* that counts it as waiting; NULL: none does */
};

struct cr_http_server {
    struct evhttp *http;
    struct cr_strmap *routes;                                /* path -> struct cr_http_route */
    struct evconnlistener *listeners[CR_HTTP_MAX_ADDRESSES]; /* borrowed from http */
    size_t addresses;
    struct bufferevent *(*make)(struct event_base *base, void *arg); /* NULL: plain HTTP */
    void *make_arg;
    struct cr_timer *pause;
    int silence_s;
    size_t waiting;
    int max_files;
    int port;
};

void cr_http_server_reply(struct evhttp_request *request, int status, const char *content_type,
                          const struct cr_buf *body);
/* pending's connection has ended: closecb of libevent. */
void cr_http_pending_on_closed(struct evhttp_connection *connection, void *arg);
/* Of a route with a waiter. */
void cr_http_server_wait(struct cr_http_server *server, struct evhttp_request *request,
                         const struct cr_http_route *route);

#endif
