/* Requests with an answer that is decided elsewhere: by a guard, or by a page that takes its time. They are no slow
 * clients: it is us they wait for. So they have no deadline, but places of their own. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "wire/http_server_internal.h"

enum { UNAUTHORIZED = 401, UNAVAILABLE = 503 };

void cr_http_pending_forget(struct cr_http_connection *connection)
{
    if (connection->pending)
        connection->pending->connection = NULL;
    connection->pending = NULL;
}

/* What is left of pending: the connection that asked, NULL when no client waits for the answer. */
static struct cr_http_connection *settle(struct cr_http_pending *pending)
{
    struct cr_http_connection *connection = pending->connection;
    if (connection)
        cr_http_pending_forget(connection);
    free(pending);
    return connection;
}

static struct cr_http_pending *wait_for_us(struct cr_http_connection *connection)
{
    struct cr_http_pending *pending = cr_new(struct cr_http_pending);
    *pending = (struct cr_http_pending){.connection = connection, .route = connection->route};
    connection->pending = pending;
    cr_http_connection_move(connection, CR_HTTP_ASKED, -1);
    return pending;
}

/* One has to go when too many wait, which may be the one that has just come. */
static void limit_waiting(struct cr_http_server *server)
{
    if (!cr_http_room_waits_too_much(&server->room))
        return;
    struct cr_http_connection *victim = cr_http_server_victim(server, CR_HTTP_ASKED, CR_HTTP_ASKED, NULL);
    server->counts.refused++;
    cr_http_pending_forget(victim);
    cr_http_connection_reply_text(victim, UNAVAILABLE, "", "too many wait already\n");
}

/* --- guards --- */

void cr_http_server_ask_guard(struct cr_http_connection *connection)
{
    const struct cr_http_route *route = connection->route;
    struct cr_http_server *server = connection->server;
    route->guard(route->guard_arg, connection->ask.authorization, wait_for_us(connection));
    limit_waiting(server); /* it may have decided at once */
}

void cr_http_pending_allow(struct cr_http_pending *pending)
{
    struct cr_http_connection *connection = settle(pending);
    if (connection)
        cr_http_server_serve(connection);
}

void cr_http_pending_refuse(struct cr_http_pending *pending, int status, const char *text)
{
    struct cr_http_connection *connection = settle(pending);
    cr_autofree char *line = cr_asprintf("%s\n", text);
    if (connection)
        cr_http_connection_reply_text(connection, status, status == UNAUTHORIZED ? "WWW-Authenticate: Bearer\r\n" : "",
                                      line);
}

/* --- pages that take their time --- */

void cr_http_server_ask_waiter(struct cr_http_connection *connection)
{
    const struct cr_http_route *route = connection->route;
    struct cr_http_pending *pending = wait_for_us(connection);
    limit_waiting(connection->server);
    if (!pending->connection) { /* refused before it has begun anything */
        free(pending);
        return;
    }
    connection->waits = true;
    connection->server->waiting++;
    route->waiter(route->arg, pending);
}

bool cr_http_pending_is_gone(const struct cr_http_pending *pending)
{
    return !pending->connection;
}

void cr_http_pending_answer(struct cr_http_pending *pending, int status, const char *content_type,
                            const struct cr_buf *body)
{
    struct cr_http_connection *connection = settle(pending);
    if (connection)
        cr_http_connection_reply(connection, status, content_type, "", body);
}
