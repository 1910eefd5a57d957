#include "net/http_server.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "net/listen.h"

enum {
    MAX_HEADERS = 16 * 1024,
    MAX_BODY = 64 * 1024, /* no request that we answer has one */
    TIMEOUT_S = 15,       /* of silence on a connection */
};

struct route {
    cr_http_handler handler;
    void *arg;
};

struct cr_http_server {
    struct evhttp *http;
    struct cr_strmap *routes; /* path -> struct route */
    int port;
};

static void answer(struct evhttp_request *request, int status, const char *content_type, const struct cr_buf *body)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    char length[32];
    snprintf(length, sizeof length, "%zu", body->len);
    evhttp_add_header(headers, "Content-Type", content_type);
    evhttp_add_header(headers, "Content-Length", length);
    evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
    /* HEAD: the same headers, without the body (RFC 9110, section 9.3.2). */
    if (evhttp_request_get_command(request) != EVHTTP_REQ_HEAD)
        evbuffer_add(evhttp_request_get_output_buffer(request), cr_buf_text(body), body->len);
    evhttp_send_reply(request, status, NULL, NULL);
}

static void answer_text(struct evhttp_request *request, int status, const char *text)
{
    CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(0);
    cr_buf_puts(&body, text);
    answer(request, status, "text/plain; charset=utf-8", &body);
}

static void on_request(struct evhttp_request *request, void *arg)
{
    struct cr_http_server *server = arg;
    enum evhttp_cmd_type command = evhttp_request_get_command(request);
    const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
    const struct route *route = path ? cr_strmap_get(server->routes, path) : NULL;
    if (!route) {
        answer_text(request, HTTP_NOTFOUND, "not found\n");
        return;
    }
    if (command != EVHTTP_REQ_GET && command != EVHTTP_REQ_HEAD) {
        evhttp_add_header(evhttp_request_get_output_headers(request), "Allow", "GET, HEAD");
        answer_text(request, HTTP_BADMETHOD, "only GET and HEAD\n");
        return;
    }
    CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(0);
    const char *content_type = "text/plain; charset=utf-8";
    int status = route->handler(route->arg, &body, &content_type);
    answer(request, status, content_type, &body);
}

struct cr_http_server *cr_http_server_new(struct cr_loop *loop)
{
    struct cr_http_server *server = cr_new(struct cr_http_server);
    server->routes = cr_strmap_new(free);
    server->http = evhttp_new(cr_loop_base(loop));
    evhttp_set_max_headers_size(server->http, MAX_HEADERS);
    evhttp_set_max_body_size(server->http, MAX_BODY);
    evhttp_set_timeout(server->http, TIMEOUT_S);
    /* All that libevent knows, so that it is us who answer 405. */
    evhttp_set_allowed_methods(server->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST | EVHTTP_REQ_PUT |
                                                 EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |
                                                 EVHTTP_REQ_CONNECT | EVHTTP_REQ_PATCH);
    evhttp_set_gencb(server->http, on_request, server);
    return server;
}

void cr_http_server_free(struct cr_http_server *server)
{
    if (!server)
        return;
    evhttp_free(server->http);
    cr_strmap_free(server->routes);
    free(server);
}

void cr_http_server_handle(struct cr_http_server *server, const char *path, cr_http_handler handler, void *arg)
{
    struct route *route = cr_new(struct route);
    *route = (struct route){handler, arg};
    cr_strmap_set(server->routes, path, route);
}

bool cr_http_server_listen(struct cr_http_server *server, const char *address, struct cr_error *err)
{
    int port = 0;
    int fd = cr_listen(address, &port, err);
    if (fd < 0)
        return false;
    if (evhttp_accept_socket(server->http, fd) != 0) {
        close(fd);
        return cr_error_set(err, CR_ERR_INTERNAL, "cannot accept connections on '%s'", address);
    }
    server->port = port;
    return true;
}

int cr_http_server_port(const struct cr_http_server *server)
{
    return server->port;
}
