/* Routes, and when the pages are made. */
#include "wire/http_server.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strings.h"
#include "wire/http_server_internal.h"

enum {
    CONNECTIONS = 256,
    CONNECTIONS_MIN = 8,
    FILES_SHARE = 4, /* the rest is for work */
    HEAD_MS = 10 * 1000,
    IDLE_MS = 15 * 1000,
    ANSWER_MS = 20 * 1000,
    OUT_MAX = 8 * 1024 * 1024,
    SMALL_ANSWER = 4096, /* such always goes out: probes, and what says why not */
    GIVE_WAY_MS = 2000,
};

enum { NOT_FOUND = 404, BAD_METHOD = 405, UNAVAILABLE = 503 };

/* --- answering --- */

static void answer(struct cr_http_connection *connection)
{
    const struct cr_http_route *route = connection->route;
    CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(0);
    const char *content_type = "text/plain; charset=utf-8";
    int status = route->handler(route->arg, &body, &content_type);
    if (connection->server->out >= OUT_MAX && body.len > SMALL_ANSWER)
        cr_http_connection_reply_text(connection, UNAVAILABLE, "", "too many do not take their answers\n");
    else
        cr_http_connection_reply(connection, status, content_type, "", &body);
}

void cr_http_server_schedule(struct cr_http_server *server)
{
    if (!TAILQ_EMPTY(&server->queue))
        cr_timer_arm(server->next_page, 0);
}

/* The next of those that wait for their page to be made; NULL: none. */
static struct cr_http_connection *next_waiting(struct cr_http_server *server)
{
    struct cr_http_connection *next = TAILQ_FIRST(&server->queue);
    struct cr_http_connection *at;
    TAILQ_FOREACH(at, &server->queue, queue)
    if (cr_http_place_goes_first(&at->place, &next->place))
        next = at;
    return next;
}

/* How long next's page has to wait for answers to go out. */
static int64_t wait_for_readers(struct cr_http_server *server, const struct cr_http_connection *next)
{
    while (server->out >= OUT_MAX) {
        struct cr_http_connection *slow = cr_http_server_victim(server, CR_HTTP_ANSWERING, CR_HTTP_ANSWERING, NULL);
        if (!slow)
            return 0;
        bool greedy = cr_http_place_may_replace(&next->place, &slow->place);
        int64_t left_ms = slow->answered_ms + GIVE_WAY_MS - cr_clock_monotonic_ms();
        if (!greedy && left_ms > 0)
            return left_ms;
        cr_http_server_give_way(slow);
    }
    return 0;
}

static void serve_next(void *arg)
{
    struct cr_http_server *server = arg;
    struct cr_http_connection *next = next_waiting(server);
    if (!next)
        return;
    int64_t wait_ms = wait_for_readers(server, next);
    if (wait_ms > 0) {
        cr_timer_arm(server->next_page, wait_ms);
        return;
    }
    answer(next); /* which takes it from the queue, since its stage is another then */
    cr_http_server_schedule(server);
}

void cr_http_server_serve(struct cr_http_connection *connection)
{
    struct cr_http_server *server = connection->server;
    if (!connection->route->one_at_a_time) {
        answer(connection);
        return;
    }
    cr_http_connection_move(connection, CR_HTTP_QUEUED, -1);
    cr_http_server_schedule(server);
}

void cr_http_server_dispatch(struct cr_http_connection *connection)
{
    const struct cr_http_ask *ask = &connection->ask;
    bool is_get = cr_streq(ask->method, "GET");
    const struct cr_http_route *route = cr_strmap_get(connection->server->routes, ask->path);
    connection->route = route;
    if (!route)
        cr_http_connection_reply_text(connection, NOT_FOUND, "", "not found\n");
    else if (route->waiter && !is_get)
        cr_http_connection_reply_text(connection, BAD_METHOD, "Allow: GET\r\n", "only GET\n");
    else if (!is_get && !cr_streq(ask->method, "HEAD"))
        cr_http_connection_reply_text(connection, BAD_METHOD, "Allow: GET, HEAD\r\n", "only GET and HEAD\n");
    else if (route->waiter)
        cr_http_server_ask_waiter(connection);
    else if (route->guard)
        cr_http_server_ask_guard(connection);
    else
        cr_http_server_serve(connection);
}

/* --- routes --- */

void cr_http_server_handle_guarded(struct cr_http_server *server, const char *path, cr_http_handler handler, void *arg,
                                   cr_http_guard guard, void *guard_arg)
{
    struct cr_http_route *route = cr_new(struct cr_http_route);
    *route = (struct cr_http_route){.handler = handler, .arg = arg, .guard = guard, .guard_arg = guard_arg};
    cr_strmap_set(server->routes, path, route);
}

void cr_http_server_handle(struct cr_http_server *server, const char *path, cr_http_handler handler, void *arg)
{
    cr_http_server_handle_guarded(server, path, handler, arg, NULL, NULL);
}

void cr_http_server_handle_waiting(struct cr_http_server *server, const char *path, cr_http_waiter waiter, void *arg)
{
    struct cr_http_route *route = cr_new(struct cr_http_route);
    *route = (struct cr_http_route){.waiter = waiter, .arg = arg};
    cr_strmap_set(server->routes, path, route);
}

void cr_http_server_make_one_at_a_time(struct cr_http_server *server, const char *path)
{
    struct cr_http_route *route = cr_strmap_get(server->routes, path);
    route->one_at_a_time = true;
}

/* --- life --- */

static size_t cap_connections(size_t wanted)
{
    struct rlimit files = {0};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && wanted > files.rlim_cur / FILES_SHARE)
        wanted = files.rlim_cur / FILES_SHARE;
    return wanted < CONNECTIONS_MIN ? CONNECTIONS_MIN : wanted;
}

void cr_http_server_limit(struct cr_http_server *server, const struct cr_http_limits *limits)
{
    server->limits = (struct cr_http_limits){
        .connections = cap_connections(limits->connections ? limits->connections : CONNECTIONS),
        .head_ms = limits->head_ms ? limits->head_ms : HEAD_MS,
        .idle_ms = limits->idle_ms ? limits->idle_ms : IDLE_MS,
        .answer_ms = limits->answer_ms ? limits->answer_ms : ANSWER_MS,
    };
    cr_http_room_dispose(&server->room);
    cr_http_room_init(&server->room, server->limits.connections);
}

struct cr_http_server *cr_http_server_new(struct cr_loop *loop)
{
    struct cr_http_server *server = cr_new(struct cr_http_server);
    server->loop = loop;
    server->spare = -1;
    server->routes = cr_strmap_new(free);
    server->next_page = cr_timer_new(loop, serve_next, server);
    LIST_INIT(&server->connections);
    TAILQ_INIT(&server->queue);
    cr_http_server_limit(server, &(struct cr_http_limits){0});
    return server;
}

void cr_http_server_free(struct cr_http_server *server)
{
    if (!server)
        return;
    cr_http_server_free_listeners(server);
    for (struct cr_http_connection *at; (at = LIST_FIRST(&server->connections));)
        cr_http_connection_free(at);
    if (server->spare >= 0)
        close(server->spare);
    cr_timer_free(server->next_page);
    cr_strmap_free(server->routes);
    cr_http_room_dispose(&server->room);
    free(server);
}

void cr_http_server_use_connections(struct cr_http_server *server,
                                    struct bufferevent *(*make)(struct event_base *base, void *arg), void *arg)
{
    server->make = make;
    server->make_arg = arg;
}

int cr_http_server_port(const struct cr_http_server *server)
{
    return server->port;
}

size_t cr_http_server_waiting(const struct cr_http_server *server)
{
    return server->waiting;
}

struct cr_http_counts cr_http_server_counts(const struct cr_http_server *server)
{
    struct cr_http_counts counts = server->counts;
    counts.open = server->room.taken;
    return counts;
}
