#include "wire/http_server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "wire/http_server_internal.h"
#include "wire/listen.h"

enum {
    MAX_HEADERS = 16 * 1024,
    MAX_BODY = 64 * 1024, /* no request that we answer has one */
    SILENCE_S = 15,
    MAX_FILES = 1024, /* open in the process, or half of its limit: then connections wait in the kernel */
    PAUSE_MS = 500,
    UNAUTHORIZED = 401, /* libevent has no name for it */
};

void cr_http_server_reply(struct evhttp_request *request, int status, const char *content_type,
                          const struct cr_buf *body)
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
    cr_http_server_reply(request, status, "text/plain; charset=utf-8", &body);
}

static void serve(struct evhttp_request *request, const struct cr_http_route *route)
{
    CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(0);
    const char *content_type = "text/plain; charset=utf-8";
    int status = route->handler(route->arg, &body, &content_type);
    cr_http_server_reply(request, status, content_type, &body);
}

static void ask_guard(struct evhttp_request *request, const struct cr_http_route *route)
{
    struct cr_http_pending *pending = cr_new(struct cr_http_pending);
    *pending = (struct cr_http_pending){.request = request, .route = route};
    evhttp_connection_set_closecb(evhttp_request_get_connection(request), cr_http_pending_on_closed, pending);
    const char *authorization = evhttp_find_header(evhttp_request_get_input_headers(request), "Authorization");
    route->guard(route->guard_arg, authorization, pending);
}

/* What is left of pending: the request, NULL when nobody waits for its answer. */
static struct evhttp_request *settle(struct cr_http_pending *pending)
{
    struct evhttp_request *request = pending->request;
    if (request)
        evhttp_connection_set_closecb(evhttp_request_get_connection(request), NULL, NULL);
    free(pending);
    return request;
}

void cr_http_pending_allow(struct cr_http_pending *pending)
{
    const struct cr_http_route *route = pending->route;
    struct evhttp_request *request = settle(pending);
    if (request)
        serve(request, route);
}

void cr_http_pending_refuse(struct cr_http_pending *pending, int status, const char *text)
{
    struct evhttp_request *request = settle(pending);
    if (!request)
        return;
    if (status == UNAUTHORIZED)
        evhttp_add_header(evhttp_request_get_output_headers(request), "WWW-Authenticate", "Bearer");
    cr_autofree char *line = cr_asprintf("%s\n", text);
    answer_text(request, status, line);
}

static void refuse_method(struct evhttp_request *request, const char *allowed, const char *line)
{
    evhttp_add_header(evhttp_request_get_output_headers(request), "Allow", allowed);
    answer_text(request, HTTP_BADMETHOD, line);
}

static void on_request(struct evhttp_request *request, void *arg)
{
    struct cr_http_server *server = arg;
    enum evhttp_cmd_type command = evhttp_request_get_command(request);
    const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
    const struct cr_http_route *route = path ? cr_strmap_get(server->routes, path) : NULL;
    if (!route) {
        answer_text(request, HTTP_NOTFOUND, "not found\n");
        return;
    }
    if (route->waiter && command != EVHTTP_REQ_GET)
        refuse_method(request, "GET", "only GET\n");
    else if (command != EVHTTP_REQ_GET && command != EVHTTP_REQ_HEAD)
        refuse_method(request, "GET, HEAD", "only GET and HEAD\n");
    else if (route->waiter)
        cr_http_server_wait(server, request, route);
    else if (route->guard)
        ask_guard(request, route);
    else
        serve(request, route);
}

/* The kernel gives out the lowest number that is free: so many files are open at least. */
static bool is_crowded(const struct cr_http_server *server)
{
    cr_autofd int lowest = eventfd(0, EFD_CLOEXEC);
    return lowest < 0 || lowest >= server->max_files;
}

static void listen_again(void *arg)
{
    struct cr_http_server *server = arg;
    if (is_crowded(server)) {
        cr_timer_arm(server->pause, PAUSE_MS);
        return;
    }
    for (size_t i = 0; i < server->addresses; i++)
        evconnlistener_enable(server->listeners[i]);
}

static void pause_listening(struct cr_http_server *server)
{
    for (size_t i = 0; i < server->addresses; i++)
        evconnlistener_disable(server->listeners[i]);
    cr_timer_arm(server->pause, PAUSE_MS);
}

/* Work needs file descriptors, too. libevent 2.1 has no cap and counts no connections, but asks here for each. */
static struct bufferevent *on_connection(struct event_base *base, void *arg)
{
    struct cr_http_server *server = arg;
    if (is_crowded(server))
        pause_listening(server);
    return server->make ? server->make(base, server->make_arg) : NULL; /* libevent makes its own */
}

static int max_files(void)
{
    struct rlimit limit = {0};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 2 > MAX_FILES)
        return MAX_FILES;
    return (int)(limit.rlim_cur / 2);
}

void cr_http_server_prefer(struct cr_http_server *server)
{
    server->max_files = max_files() + max_files() / 4;
}

struct cr_http_server *cr_http_server_new(struct cr_loop *loop)
{
    struct cr_http_server *server = cr_new(struct cr_http_server);
    server->pause = cr_timer_new(loop, listen_again, server);
    server->max_files = max_files();
    server->routes = cr_strmap_new(free);
    server->http = evhttp_new(cr_loop_base(loop));
    evhttp_set_max_headers_size(server->http, MAX_HEADERS);
    evhttp_set_max_body_size(server->http, MAX_BODY);
    cr_http_server_set_silence(server, SILENCE_S);
    /* All that libevent knows, so that it is us who answer 405. */
    evhttp_set_allowed_methods(server->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST | EVHTTP_REQ_PUT |
                                                 EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |
                                                 EVHTTP_REQ_CONNECT | EVHTTP_REQ_PATCH);
    evhttp_set_bevcb(server->http, on_connection, server);
    evhttp_set_gencb(server->http, on_request, server);
    return server;
}

void cr_http_server_free(struct cr_http_server *server)
{
    if (!server)
        return;
    evhttp_free(server->http);
    cr_timer_free(server->pause);
    cr_strmap_free(server->routes);
    free(server);
}

void cr_http_server_handle_guarded(struct cr_http_server *server, const char *path, cr_http_handler handler, void *arg,
                                   cr_http_guard guard, void *guard_arg)
{
    struct cr_http_route *route = cr_new(struct cr_http_route);
    *route = (struct cr_http_route){.handler = handler, .arg = arg, .guard = guard, .guard_arg = guard_arg};
    cr_strmap_set(server->routes, path, route);
}

void cr_http_server_set_silence(struct cr_http_server *server, int seconds)
{
    server->silence_s = seconds;
    evhttp_set_timeout(server->http, seconds);
}

void cr_http_server_handle(struct cr_http_server *server, const char *path, cr_http_handler handler, void *arg)
{
    cr_http_server_handle_guarded(server, path, handler, arg, NULL, NULL);
}

void cr_http_server_use_connections(struct cr_http_server *server,
                                    struct bufferevent *(*make)(struct event_base *base, void *arg), void *arg)
{
    server->make = make;
    server->make_arg = arg;
}

bool cr_http_server_listen(struct cr_http_server *server, const char *address, struct cr_error *err)
{
    int port = 0;
    if (server->addresses == CR_HTTP_MAX_ADDRESSES)
        return cr_error_set(err, CR_ERR_INVALID, "cannot listen on '%s': already on %d addresses", address,
                            CR_HTTP_MAX_ADDRESSES);
    int fd = cr_listen(address, &port, err);
    if (fd < 0)
        return false;
    struct evhttp_bound_socket *bound = evhttp_accept_socket_with_handle(server->http, fd);
    if (!bound) {
        close(fd);
        return cr_error_set(err, CR_ERR_INTERNAL, "cannot accept connections on '%s'", address);
    }
    server->listeners[server->addresses++] = evhttp_bound_socket_get_listener(bound);
    server->port = port;
    return true;
}

int cr_http_server_port(const struct cr_http_server *server)
{
    return server->port;
}
