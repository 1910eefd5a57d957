/* One connection of the HTTP server: stages, deadlines, and what goes over the wire. */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "wire/http_server_internal.h"

enum {
    KEPT = 4096, /* bytes of further requests that are read meanwhile; the rest stays in the kernel */
    LINGER_MS = 1000,
};

/* --- stages --- */

void cr_http_connection_move(struct cr_http_connection *connection, enum cr_http_stage stage, int64_t deadline_ms)
{
    struct cr_http_server *server = connection->server;
    if (connection->place.stage == CR_HTTP_QUEUED)
        TAILQ_REMOVE(&server->queue, connection, queue);
    cr_http_room_move(&server->room, &connection->place, stage);
    if (stage == CR_HTTP_QUEUED)
        TAILQ_INSERT_TAIL(&server->queue, connection, queue);
    if (deadline_ms < 0)
        cr_timer_disarm(connection->deadline);
    else
        cr_timer_arm(connection->deadline, deadline_ms);
    if (cr_http_room_is_too_busy(&server->room))
        cr_http_server_give_way(cr_http_server_victim(server, CR_HTTP_ANSWERING, CR_HTTP_QUEUED, connection));
}

/* Its answer is out, or will never be. */
static void end_answer(struct cr_http_connection *connection)
{
    struct cr_http_server *server = connection->server;
    server->out -= connection->out;
    connection->out = 0;
    server->waiting -= connection->waits;
    connection->waits = false;
    cr_http_server_schedule(server); /* the next page may have waited for it */
}

/* At once where the descriptor is ours: others may need it. libevent closes that of TLS, in its next pass. */
static void close_stream(struct cr_http_connection *connection)
{
    int fd = connection->server->make ? -1 : bufferevent_getfd(connection->stream);
    bufferevent_disable(connection->stream, EV_READ | EV_WRITE);
    bufferevent_free(connection->stream);
    if (fd >= 0)
        close(fd);
}

void cr_http_connection_free(struct cr_http_connection *connection)
{
    struct cr_http_server *server = connection->server;
    cr_http_pending_forget(connection);
    if (connection->place.stage == CR_HTTP_QUEUED)
        TAILQ_REMOVE(&server->queue, connection, queue);
    end_answer(connection);
    cr_http_room_leave(&server->room, &connection->place);
    LIST_REMOVE(connection, all);
    close_stream(connection);
    cr_timer_free(connection->deadline);
    cr_http_ask_dispose(&connection->ask);
    free(connection);
    cr_http_server_keep_spare(server);
}

static void on_deadline(void *arg)
{
    struct cr_http_connection *connection = arg;
    connection->server->counts.late++;
    cr_http_connection_free(connection);
}

/* --- reading --- */

static void refuse_head(struct cr_http_connection *connection)
{
    cr_autofree char *line = cr_asprintf("%s\n", connection->ask.problem);
    connection->last = true;
    cr_http_connection_reply_text(connection, connection->ask.refused, "", line);
}

/* The head may have come to its end. */
static void take_head(struct cr_http_connection *connection)
{
    if (connection->ask.refused) {
        refuse_head(connection);
    } else if (connection->ask.whole) {
        connection->last =
            connection->ask.last || connection->ask.has_body || cr_http_room_is_crowded(&connection->server->room);
        cr_http_server_dispatch(connection);
    }
}

/* connection may be gone afterwards. */
static void read_head(struct cr_http_connection *connection)
{
    struct evbuffer *input = bufferevent_get_input(connection->stream);
    struct cr_http_ask *ask = &connection->ask;
    struct evbuffer_iovec piece;
    if (evbuffer_get_length(input) && connection->place.stage == CR_HTTP_IDLE)
        cr_http_connection_move(connection, CR_HTTP_READING, connection->server->limits.head_ms);
    while (!ask->whole && !ask->refused && evbuffer_peek(input, -1, NULL, &piece, 1) > 0 && piece.iov_len)
        evbuffer_drain(input, cr_http_ask_feed(ask, piece.iov_base, piece.iov_len));
    take_head(connection);
}

static void drop_input(struct cr_http_connection *connection)
{
    struct evbuffer *input = bufferevent_get_input(connection->stream);
    evbuffer_drain(input, evbuffer_get_length(input));
}

static void on_read(struct bufferevent *stream, void *arg)
{
    (void)stream;
    struct cr_http_connection *connection = arg;
    if (connection->lingers)
        drop_input(connection);
    else if (connection->place.stage <= CR_HTTP_READING)
        read_head(connection);
}

/* --- after an answer --- */

/* To close while something is unread takes from the other side the answer that it has not read yet (RFC 9112, section
 * 9.6); with TLS what is behind our alert is not read anyway. */
static void part(struct cr_http_connection *connection)
{
    bool more = connection->ask.has_body || connection->ask.refused ||
                evbuffer_get_length(bufferevent_get_input(connection->stream));
    if (!more || connection->ended || connection->server->make) {
        cr_http_connection_free(connection);
        return;
    }
    connection->lingers = true;
    shutdown(bufferevent_getfd(connection->stream), SHUT_WR);
    cr_http_connection_move(connection, CR_HTTP_IDLE, LINGER_MS);
    drop_input(connection);
}

/* The next request may be here already, and is read in the loop's next round: others come first. */
static void go_on(struct cr_http_connection *connection)
{
    bool more = evbuffer_get_length(bufferevent_get_input(connection->stream));
    cr_http_ask_dispose(&connection->ask);
    cr_http_ask_init(&connection->ask);
    cr_http_connection_move(connection, CR_HTTP_IDLE, connection->server->limits.idle_ms);
    if (more)
        bufferevent_trigger(connection->stream, EV_READ, BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
    else if (connection->ended)
        cr_http_connection_free(connection);
}

static void on_answered(struct cr_http_connection *connection)
{
    end_answer(connection);
    if (connection->last)
        part(connection);
    else
        go_on(connection);
}

static void on_written(struct bufferevent *stream, void *arg)
{
    struct cr_http_connection *connection = arg;
    if (connection->place.stage == CR_HTTP_ANSWERING && !evbuffer_get_length(bufferevent_get_output(stream)))
        on_answered(connection);
}

/* A client that sends no more may still read; but when a client that waits for long hangs up, this event is all that is
 * seen. */
static void on_event(struct bufferevent *stream, short what, void *arg)
{
    (void)stream;
    struct cr_http_connection *connection = arg;
    bool end = what & BEV_EVENT_EOF;
    bool broken = what & (BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT);
    bool waits = connection->waits && connection->place.stage == CR_HTTP_ASKED;
    bool answers = connection->place.stage >= CR_HTTP_ANSWERING && !waits;
    if (broken || (end && !answers))
        cr_http_connection_free(connection);
    else if (end)
        connection->ended = true;
}

/* --- answers --- */

static const char *phrase(int status)
{
    static const struct {
        int status;
        const char *phrase;
    } phrases[] = {
        {200, "OK"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < cr_array_len(phrases); i++)
        if (phrases[i].status == status)
            return phrases[i].phrase;
    return "Unknown";
}

/* RFC 9110, section 5.6.7; the program's locale is C. */
static void put_date(struct cr_buf *out)
{
    const int64_t ms_per_s = 1000;
    time_t now = (time_t)(cr_clock_wall_ms() / ms_per_s);
    struct tm utc;
    char text[40];
    if (gmtime_r(&now, &utc) && strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc))
        cr_buf_printf(out, "Date: %s\r\n", text);
}

static void make_head(const struct cr_http_connection *connection, int status, const char *content_type,
                      const char *extra, size_t body_len, struct cr_buf *out)
{
    cr_buf_printf(out, "HTTP/1.1 %d %s\r\n", status, phrase(status));
    put_date(out);
    cr_buf_printf(out, "Content-Type: %s\r\nContent-Length: %zu\r\nX-Content-Type-Options: nosniff\r\n%s%s\r\n",
                  content_type, body_len, extra, connection->last ? "Connection: close\r\n" : "");
}

/* Sends what the kernel takes at once: the answer to a probe, so that no other connection comes between. Returns its
 * length. */
static size_t send_at_once(const struct cr_http_connection *connection, const struct cr_buf *answer)
{
    if (connection->server->make)
        return 0;
    ssize_t len = send(bufferevent_getfd(connection->stream), answer->data, answer->len, MSG_NOSIGNAL | MSG_DONTWAIT);
    return len > 0 ? (size_t)len : 0; /* libevent notices an error as well */
}

void cr_http_connection_reply(struct cr_http_connection *connection, int status, const char *content_type,
                              const char *extra, const struct cr_buf *body)
{
    struct cr_http_server *server = connection->server;
    CR_CLEANUP(cr_buf) struct cr_buf answer = CR_BUF_INIT(0);
    make_head(connection, status, content_type, extra, body->len, &answer);
    /* HEAD: the same head, without the body (RFC 9110, section 9.3.2). */
    if (!cr_streq(connection->ask.method, "HEAD"))
        cr_buf_puts(&answer, cr_buf_text(body)); /* pages are texts */
    size_t sent = send_at_once(connection, &answer);
    if (sent == answer.len) {
        on_answered(connection);
        return;
    }
    evbuffer_add(bufferevent_get_output(connection->stream), answer.data + sent, answer.len - sent);
    connection->out = answer.len - sent;
    server->out += connection->out;
    connection->answered_ms = cr_clock_monotonic_ms();
    cr_http_connection_move(connection, CR_HTTP_ANSWERING, server->limits.answer_ms);
}

void cr_http_connection_reply_text(struct cr_http_connection *connection, int status, const char *extra,
                                   const char *text)
{
    CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(0);
    cr_buf_puts(&body, text);
    cr_http_connection_reply(connection, status, "text/plain; charset=utf-8", extra, &body);
}

/* --- new ones --- */

static bool has_whole_head(const char *text, size_t len)
{
    return memmem(text, len, "\n\r\n", strlen("\n\r\n")) || memmem(text, len, "\n\n", strlen("\n\n"));
}

/* A request that came before its connection was accepted is taken at once: no flood of others is faster. */
static void read_at_once(struct cr_http_connection *connection)
{
    char seen[KEPT];
    int fd = bufferevent_getfd(connection->stream);
    ssize_t len = recv(fd, seen, sizeof seen, MSG_PEEK | MSG_DONTWAIT);
    if (len <= 0 || !has_whole_head(seen, (size_t)len))
        return;
    size_t taken = cr_http_ask_feed(&connection->ask, seen, (size_t)len);
    (void)recv(fd, seen, taken, MSG_DONTWAIT); /* which is what was seen */
    take_head(connection);
}

static struct bufferevent *new_stream(struct cr_http_server *server)
{
    struct event_base *base = cr_loop_base(server->loop);
    struct bufferevent *stream =
        server->make ? server->make(base, server->make_arg) : bufferevent_socket_new(base, -1, 0);
    if (!stream) {
        cr_log(CR_LOG_ERROR, "out of memory for a connection"); /* as base/alloc.h */
        abort();
    }
    return stream;
}

void cr_http_connection_new(struct cr_http_server *server, int fd, const struct sockaddr *from)
{
    struct cr_http_connection *connection = cr_new(struct cr_http_connection);
    connection->server = server;
    connection->came_ms = cr_clock_monotonic_ms();
    connection->stream = new_stream(server);
    connection->deadline = cr_timer_new(server->loop, on_deadline, connection);
    cr_http_ask_init(&connection->ask);
    cr_http_room_enter(&server->room, &connection->place, from);
    LIST_INSERT_HEAD(&server->connections, connection, all);
    cr_timer_arm(connection->deadline, server->limits.head_ms);
    bufferevent_setcb(connection->stream, on_read, on_written, on_event, connection);
    bufferevent_setwatermark(connection->stream, EV_READ, 0, KEPT);
    bufferevent_setfd(connection->stream, fd);
    bufferevent_enable(connection->stream, EV_READ | EV_WRITE);
    if (!server->make)
        read_at_once(connection);
}
