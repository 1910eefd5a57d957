/* Pages of the HTTP server that take their time. */
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "wire/http_server_internal.h"

static void wait_no_more(struct cr_http_pending *pending)
{
    if (pending->server)
        pending->server->waiting--;
    pending->server = NULL;
}

/* libevent frees the request with its connection, unless it has just taken them apart: then it is ours. */
void cr_http_pending_on_closed(struct evhttp_connection *connection, void *arg)
{
    (void)connection;
    struct cr_http_pending *pending = arg;
    if (!evhttp_request_get_connection(pending->request))
        evhttp_request_free(pending->request);
    pending->request = NULL;
    wait_no_more(pending);
}

/* Of the answer: on its way, or its connection has ended with it. */
static void on_out(struct evhttp_connection *connection, void *arg)
{
    struct cr_http_pending *pending = arg;
    if (connection)
        evhttp_connection_set_closecb(connection, NULL, NULL);
    wait_no_more(pending);
    free(pending);
}

static void on_sent(struct evhttp_request *request, void *arg)
{
    struct cr_http_pending *pending = arg;
    struct evhttp_connection *connection = evhttp_request_get_connection(request);
    evhttp_connection_set_timeout(connection, pending->server->silence_s);
    bufferevent_setwatermark(evhttp_connection_get_bufferevent(connection), EV_READ, 0, 0);
    on_out(connection, arg);
}

bool cr_http_pending_is_gone(const struct cr_http_pending *pending)
{
    return !pending->request;
}

void cr_http_pending_answer(struct cr_http_pending *pending, int status, const char *content_type,
                            const struct cr_buf *body)
{
    struct evhttp_request *request = pending->request;
    if (!request) {
        free(pending);
        return;
    }
    evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_out, pending);
    evhttp_request_set_on_complete_cb(request, on_sent, pending);
    cr_http_server_reply(request, status, content_type, body);
}

/* libevent reads nothing while a request is in hand, and so would not see that who asked has hung up. What else comes
 * meanwhile is kept for later, within bounds; libevent's own reader takes it for a bug. */
static void watch_for_the_end(struct evhttp_connection *connection)
{
    enum { A_WEEK_S = 7 * 24 * 3600, KEPT = 64 * 1024 };
    struct bufferevent *stream = evhttp_connection_get_bufferevent(connection);
    bufferevent_data_cb on_written = NULL;
    bufferevent_event_cb on_event = NULL;
    void *arg = NULL;
    bufferevent_getcb(stream, NULL, &on_written, &on_event, &arg);
    bufferevent_setcb(stream, NULL, on_written, on_event, arg);
    bufferevent_setwatermark(stream, EV_READ, 0, KEPT);
    bufferevent_enable(stream, EV_READ);
    /* Its time-out is of silence, also of ours. */
    evhttp_connection_set_timeout(connection, A_WEEK_S);
}

void cr_http_server_wait(struct cr_http_server *server, struct evhttp_request *request,
                         const struct cr_http_route *route)
{
    struct evhttp_connection *connection = evhttp_request_get_connection(request);
    struct cr_http_pending *pending = cr_new(struct cr_http_pending);
    *pending = (struct cr_http_pending){.request = request, .route = route, .server = server};
    server->waiting++;
    watch_for_the_end(connection);
    evhttp_connection_set_closecb(connection, cr_http_pending_on_closed, pending);
    route->waiter(route->arg, pending);
}

void cr_http_server_handle_waiting(struct cr_http_server *server, const char *path, cr_http_waiter waiter, void *arg)
{
    struct cr_http_route *route = cr_new(struct cr_http_route);
    *route = (struct cr_http_route){.waiter = waiter, .arg = arg};
    cr_strmap_set(server->routes, path, route);
}

size_t cr_http_server_waiting(const struct cr_http_server *server)
{
    return server->waiting;
}
