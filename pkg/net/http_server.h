/* A small HTTP server on the loop (libevent) for /metrics, /healthz, /readyz. */
#ifndef CR_NET_HTTP_SERVER_H
#define CR_NET_HTTP_SERVER_H

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "sys/loop.h"

struct cr_http_server;

/* Fills body and answers the HTTP status. Runs in the loop's thread: must not block. */
typedef int (*cr_http_handler)(void *arg, struct cr_buf *body, const char **content_type);

struct cr_http_server *cr_http_server_new(struct cr_loop *loop);
void cr_http_server_free(struct cr_http_server *server);
CR_DEFINE_CLEANUP(cr_http_server, struct cr_http_server, cr_http_server_free)
/* GET and HEAD of an exact path; anything else answers 404 or 405. */
void cr_http_server_handle(struct cr_http_server *server, const char *path, cr_http_handler handler, void *arg);
/* "host:port", ":8080", "[::1]:0"; errors name the address. Call before the loop runs or in its thread. */
bool cr_http_server_listen(struct cr_http_server *server, const char *address, struct cr_error *err) CR_MUST_USE;
/* The port that was bound (for :0). */
int cr_http_server_port(const struct cr_http_server *server);

#endif
