/* A request whose answer comes in parts on the loop: a watch. */
#include "net/http_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

enum {
    KEEP_INBOX = 4 * 1024, /* a bigger inbox is given back after delivery: a watch has one, and mostly waits */
};

static void mark_ready(struct cr_http_stream *stream)
{
    if (stream->ready)
        return;
    stream->ready = true;
    TAILQ_INSERT_TAIL(&stream->client->ready, stream, ready_link);
}

static void note_byte(struct cr_http_stream *stream)
{
    stream->last_byte_ms = cr_clock_monotonic_ms();
    cr_http_pool_note_byte(stream->pool, stream->last_byte_ms);
}

static void note_status(struct cr_http_stream *stream)
{
    cr_http_exchange_status(&stream->exchange, &stream->status, &stream->retry_after_ms);
    if (stream->status)
        mark_ready(stream);
}

/* The body is compressed, on its way (RFC 9112, section 6.1) or for good (RFC 9110, section 8.4), which no request asks
 * for. libcurl 7.88 unpacks the first kind all the same, 400 MB of 400 KB, and hands the second one over as it is. A
 * refusal is one whatever its words. */
static bool says_packed(const struct cr_http_stream *stream, const char *line, size_t len)
{
    long code = 0;
    curl_easy_getinfo(stream->exchange.easy, CURLINFO_RESPONSE_CODE, &code);
    return cr_http_field_differs(line, len, "Transfer-Encoding:", "chunked") ||
           (code < CR_HTTP_REFUSED && cr_http_field_differs(line, len, "Content-Encoding:", "identity"));
}

/* CURLOPT_HEADERFUNCTION: line by line; an empty one ends the headers (and later the trailers). */
static size_t on_header(char *line, size_t size, size_t count, void *arg)
{
    struct cr_http_stream *stream = arg;
    size_t len = size * count;
    note_byte(stream);
    stream->packed = !stream->status && says_packed(stream, line, len);
    if (stream->packed)
        return CURL_WRITEFUNC_ERROR;
    if (!stream->status && len && (line[0] == '\r' || line[0] == '\n'))
        note_status(stream);
    return len;
}

/* CURLOPT_WRITEFUNCTION. Anything but len makes curl end the transfer. */
static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    struct cr_http_stream *stream = arg;
    size_t len = size * count;
    note_byte(stream);
    cr_http_pool_note_body(stream->pool, len >= CR_HTTP_READ_SIZE);
    if (stream->max_body && len > stream->max_body - stream->received) {
        stream->over_cap = true;
        return CURL_WRITEFUNC_ERROR;
    }
    stream->received += len;
    bool kept = cr_buf_append(&stream->inbox, data, len);
    if (stream->inbox.secret) /* in libcurl's own buffer, which lasts as long as the watch */
        explicit_bzero(data, len);
    if (!kept)
        return CURL_WRITEFUNC_ERROR;
    mark_ready(stream);
    return len;
}

static struct cr_http_stream *stream_new(struct cr_http_client *client, const struct cr_http_request *request,
                                         const struct cr_http_stream_handler *handler, int idle_ms)
{
    struct cr_http_stream *stream = cr_new(struct cr_http_stream);
    cr_http_client_ref(client);
    stream->client = client;
    stream->handler = *handler;
    stream->inbox.secret = request->secret;
    stream->max_body = request->max_body;
    stream->started_ms = stream->last_byte_ms = cr_clock_monotonic_ms();
    stream->timeout_ms = request->timeout_ms;
    stream->idle_ms = idle_ms;
    if (!cr_http_exchange_init(&stream->exchange, request, client->user_agent, &stream->broken))
        return stream;
    CURL *easy = stream->exchange.easy;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, stream);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, stream);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, stream);
    return stream;
}

static void stream_free(struct cr_http_stream *stream)
{
    cr_buf_dispose(&stream->inbox);
    cr_http_client_unref(stream->client);
    free(stream);
}

/* Takes it from curl and from all lists. Nothing of it runs any more. */
static void detach(struct cr_http_stream *stream)
{
    struct cr_http_client *client = stream->client;
    if (stream->state == CR_HTTP_WAITING) {
        pthread_mutex_lock(&client->lock);
        TAILQ_REMOVE(&client->waiting, stream, link);
        pthread_mutex_unlock(&client->lock);
    } else {
        TAILQ_REMOVE(&client->running, stream, link);
    }
    stream->state = CR_HTTP_ENDED;
    if (stream->ready)
        TAILQ_REMOVE(&client->ready, stream, ready_link);
    stream->ready = false;
    cr_timer_free(stream->timer);
    stream->timer = NULL;
    if (stream->added)
        cr_http_pool_remove(stream->pool, cr_steal(&stream->exchange.easy),
                            !stream->complete || stream->over_cap || stream->packed);
    stream->added = false;
    stream->pool = NULL;
    cr_http_exchange_dispose(&stream->exchange);
}

/* Leaves the stream to be freed by its caller. */
static void notify_end(struct cr_http_stream *stream, const struct cr_error *err)
{
    detach(stream);
    stream->handler.on_end(stream->handler.arg, err);
}

static void end(struct cr_http_stream *stream, const struct cr_error *err)
{
    notify_end(stream, err);
    if (!stream->delivering)
        stream_free(stream);
}

void cr_http_stream_abort(struct cr_http_stream *stream, const char *why)
{
    struct cr_error err = {0};
    cr_error_set(&err, CR_ERR_CANCELLED, "%s", why);
    end(stream, &err);
}

void cr_http_stream_cancel(struct cr_http_stream *stream)
{
    if (stream && stream->state != CR_HTTP_ENDED)
        cr_http_stream_abort(stream, "the request was cancelled");
}

static int64_t next_check_ms(const struct cr_http_stream *stream)
{
    int64_t by_timeout = stream->timeout_ms ? stream->started_ms + stream->timeout_ms : INT64_MAX;
    int64_t by_idle = stream->idle_ms ? stream->last_byte_ms + stream->idle_ms : INT64_MAX;
    return by_timeout < by_idle ? by_timeout : by_idle;
}

/* Nothing at all came on these connections since this stream last received something: the path may be dead, which TCP
 * notices only later. Others should not have to wait for that. */
static void suspect_path(struct cr_http_stream *stream)
{
    if (stream->added && cr_http_pool_last_byte_ms(stream->pool) <= stream->last_byte_ms)
        cr_http_pool_retire(stream->pool);
}

static void time_out(struct cr_http_stream *stream, int64_t now)
{
    struct cr_error err = {0};
    if (stream->timeout_ms && now >= stream->started_ms + stream->timeout_ms)
        cr_http_exchange_timed_out(&stream->exchange, stream->timeout_ms, &err);
    else
        cr_error_set(&err, CR_ERR_TRANSIENT, "%s: silent for %d ms (%s)", stream->exchange.head.origin, stream->idle_ms,
                     cr_http_exchange_phase(&stream->exchange));
    suspect_path(stream);
    end(stream, &err);
}

static void on_timer(void *arg)
{
    struct cr_http_stream *stream = arg;
    int64_t now = cr_clock_monotonic_ms();
    int64_t due = next_check_ms(stream);
    if (now >= due)
        time_out(stream, now);
    else
        cr_timer_arm(stream->timer, due - now);
}

static void watch_time(struct cr_http_stream *stream)
{
    int64_t due = next_check_ms(stream);
    if (due == INT64_MAX)
        return;
    stream->timer = cr_timer_new(stream->client->loop, on_timer, stream);
    cr_timer_arm(stream->timer, due - cr_clock_monotonic_ms());
}

static bool begin(struct cr_http_stream *stream, struct cr_error *err)
{
    if (cr_http_client_cancelled(stream->client))
        return cr_error_set(err, CR_ERR_CANCELLED, "shutting down");
    if (stream->broken.kind != CR_ERR_NONE) {
        *err = stream->broken;
        return false;
    }
    stream->pool = cr_http_client_pool(stream->client);
    if (!cr_http_exchange_use(&stream->exchange, cr_http_pool_identity(stream->pool), err) ||
        !cr_http_pool_add(stream->pool, stream->exchange.easy, err))
        return false;
    stream->added = true;
    watch_time(stream);
    return true;
}

void cr_http_stream_begin(struct cr_http_stream *stream)
{
    struct cr_error err = {0};
    stream->state = CR_HTTP_RUNNING;
    TAILQ_INSERT_TAIL(&stream->client->running, stream, link);
    if (!begin(stream, &err))
        end(stream, &err);
}

void cr_http_stream_complete(struct cr_http_stream *stream, CURLcode result)
{
    stream->complete = true;
    stream->result = result;
    mark_ready(stream);
}

/* --- within deliver, which frees the stream --- */

static void refuse(struct cr_http_stream *stream)
{
    struct cr_error err = {0};
    if (stream->state == CR_HTTP_ENDED)
        return;
    cr_error_set(&err, CR_ERR_CANCELLED, "the response was refused by its receiver");
    notify_end(stream, &err);
}

static void complete(struct cr_http_stream *stream)
{
    struct cr_error err = {0};
    if (stream->packed) {
        cr_http_answer_packed(stream->exchange.head.origin, &err);
        notify_end(stream, &err);
        return;
    }
    bool ok = stream->over_cap ? cr_http_exchange_over_cap(&stream->exchange, stream->max_body, &err)
                               : cr_http_exchange_ended(&stream->exchange, stream->result, stream->status, &err);
    notify_end(stream, ok ? NULL : &err);
}

/* True while the stream goes on. */
static bool deliver_status(struct cr_http_stream *stream)
{
    if (!stream->status || stream->status_notified)
        return true;
    stream->status_notified = true;
    if (!stream->handler.on_status(stream->handler.arg, stream->status, stream->retry_after_ms))
        refuse(stream);
    return stream->state != CR_HTTP_ENDED;
}

static bool deliver_data(struct cr_http_stream *stream)
{
    if (!stream->inbox.len)
        return true;
    if (!stream->handler.on_data(stream->handler.arg, stream->inbox.data, stream->inbox.len))
        refuse(stream);
    if (stream->inbox.cap > KEEP_INBOX)
        cr_buf_dispose(&stream->inbox);
    else
        cr_buf_reset(&stream->inbox);
    return stream->state != CR_HTTP_ENDED;
}

static void deliver(struct cr_http_stream *stream)
{
    stream->delivering = true;
    if (deliver_status(stream) && deliver_data(stream) && stream->complete)
        complete(stream);
    stream->delivering = false;
    if (stream->state == CR_HTTP_ENDED)
        stream_free(stream);
}

/* One by one from the head: a handler may end any other stream. */
void cr_http_stream_deliver_all(struct cr_http_client *client)
{
    while (!TAILQ_EMPTY(&client->ready)) {
        struct cr_http_stream *stream = TAILQ_FIRST(&client->ready);
        TAILQ_REMOVE(&client->ready, stream, ready_link);
        stream->ready = false;
        deliver(stream);
    }
}

struct cr_http_stream *cr_http_stream_start(struct cr_http_client *client, const struct cr_http_request *request,
                                            const struct cr_http_stream_handler *handler, int idle_ms)
{
    struct cr_http_stream *stream = stream_new(client, request, handler, idle_ms);
    cr_http_stream_queue(stream);
    return stream;
}
