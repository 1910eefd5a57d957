#include "net/http_client_connection.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "net/http_internal.h"
#include "net/http_link.h"
#include "wire/http_parse.h"

enum {
    READ_SIZE = 4 * 1024,
    /* A server that closes an idle connection while a request is on its way says so within a round trip. */
    AT_ONCE_MS = 100,
};

struct cr_http_client_connection {
    const char *user_agent; /* borrowed */
    struct cr_http_identity *identity;
    struct cr_http_link link;
    char *origin; /* of the last request: "GET https://host:port" */
};

struct cr_http_client_connection *cr_http_client_connection_new(const char *user_agent,
                                                                struct cr_http_identity *identity, int wake_fd)
{
    struct cr_http_client_connection *connection = cr_new(struct cr_http_client_connection);
    connection->user_agent = user_agent;
    connection->identity = cr_http_identity_ref(identity);
    cr_http_link_init(&connection->link, wake_fd);
    return connection;
}

void cr_http_client_connection_free(struct cr_http_client_connection *connection)
{
    if (!connection)
        return;
    cr_http_link_close(&connection->link);
    cr_http_identity_unref(connection->identity);
    free(connection->origin);
    free(connection);
}

static bool same_server(const char *a, const char *b)
{
    return a && cr_streq(strchr(a, ' '), strchr(b, ' '));
}

/* As it goes to the server, and the token with it: out is wiped. */
static bool write_request(struct cr_http_client_connection *connection, const struct cr_http_request *request,
                          struct cr_buf *out, struct cr_error *err)
{
    CR_CLEANUP(cr_http_head) struct cr_http_head head = {0};
    if (!cr_http_head_init(&head, request, err) || !cr_http_head_use(&head, connection->identity, err))
        return false;
    if (!same_server(connection->origin, head.origin))
        cr_http_link_close(&connection->link);
    cr_strset(&connection->origin, head.origin);
    size_t body_len = request->body ? request->body_len : 0;
    cr_http_head_write(&head, request->method, connection->user_agent, out);
    if (cr_http_has_content(request))
        cr_buf_printf(out, "Content-Length: %zu\r\n", body_len);
    cr_buf_puts(out, "\r\n");
    return !body_len || cr_buf_append(out, request->body, body_len); /* it has no cap */
}

/* --- the exchange --- */

/* One attempt. On the thread's stack, so that what was read can be wiped. */
struct attempt {
    struct cr_http_client_connection *connection;
    const struct cr_http_request *request;
    const struct cr_buf *text; /* of the request */
    struct cr_http_response *response;
    struct cr_http_parse parse;
    bool said;           /* the request is sent */
    bool received;       /* something has come */
    bool not_understood; /* what came could not be understood, and err says why */
};

static bool explain(const struct attempt *attempt, enum cr_http_link_end end, struct cr_error *err)
{
    const char *origin = attempt->connection->origin;
    if (end == CR_HTTP_LINK_CANCELLED)
        return cr_error_set(err, CR_ERR_CANCELLED, "shutting down");
    const char *phase = attempt->said ? "waiting for the response" : "sending the request";
    if (end == CR_HTTP_LINK_LATE)
        return cr_error_set(err, CR_ERR_TRANSIENT, "%s: no answer within %d ms (%s)", origin,
                            attempt->request->timeout_ms, attempt->received ? "reading the response" : phase);
    return cr_error_set(err, CR_ERR_TRANSIENT,
                        attempt->received ? "%s: the response was cut off" : "%s: no answer came", origin);
}

/* What a server says that is not HTTP may be something else the next time; a body that is too long will not. */
static bool not_understood(struct attempt *attempt, struct cr_error *err)
{
    const char *origin = attempt->connection->origin;
    attempt->not_understood = true;
    if (attempt->parse.too_long)
        return cr_error_set(err, CR_ERR_INVALID, "%s: the response is longer than the %zu bytes that are allowed",
                            origin, attempt->parse.max_body);
    err->kind = CR_ERR_TRANSIENT;
    return cr_error_wrap(err, "%s: the answer is not HTTP", origin);
}

/* *more: it is not whole yet. */
static bool take(struct attempt *attempt, const char *data, size_t len, bool *more, struct cr_error *err)
{
    struct cr_http_parse *parse = &attempt->parse;
    attempt->received = attempt->received || len;
    if (len && !cr_http_parse_feed(parse, data, len, &attempt->response->body, err))
        return not_understood(attempt, err);
    struct cr_error cut = {0};
    *more = len ? !cr_http_parse_is_done(parse) : !cr_http_parse_end(parse, false, &cut);
    return len || !*more || explain(attempt, CR_HTTP_LINK_BROKEN, err);
}

static bool receive(struct attempt *attempt, struct cr_error *err)
{
    char data[READ_SIZE];
    bool ok = true;
    for (bool more = true; ok && more;) {
        size_t len = 0;
        enum cr_http_link_end end = cr_http_link_receive(&attempt->connection->link, data, sizeof data, &len);
        ok = end == CR_HTTP_LINK_OK ? take(attempt, data, len, &more, err) : explain(attempt, end, err);
    }
    if (attempt->request->secret)
        explicit_bzero(data, sizeof data);
    return ok;
}

static bool send_and_receive(struct attempt *attempt, struct cr_error *err)
{
    enum cr_http_link_end end = cr_http_link_send(&attempt->connection->link, attempt->text->data, attempt->text->len);
    attempt->said = end == CR_HTTP_LINK_OK;
    if (attempt->said)
        return receive(attempt, err);
    struct cr_error ignored = {0};
    if (end == CR_HTTP_LINK_BROKEN) /* It may have refused, and hung up, before it had all. */
        (void)!receive(attempt, &ignored);
    return explain(attempt, end, err);
}

/* Asked last: this process may be stopped at any moment. */
static bool may_begin(const struct cr_http_request *request, struct cr_error *err)
{
    return !request->begin_by_ms || cr_clock_boot_ms() < request->begin_by_ms ||
           cr_error_set(err, CR_ERR_TRANSIENT, "not sent: the time to begin it is over");
}

/* A refusal with a truncated body is an answer. */
static bool is_answer(const struct attempt *attempt, bool whole, const struct cr_error *err)
{
    return whole ||
           (attempt->parse.status >= CR_HTTP_REFUSED && !attempt->not_understood && err->kind == CR_ERR_TRANSIENT);
}

static int retry_after_ms(const char *text)
{
    if (!*text)
        return 0;
    bool seconds = !text[strspn(text, "0123456789")];
    int64_t at_s = seconds ? 0 : (int64_t)curl_getdate(text, NULL); /* -1: no date either */
    int64_t wait_s = seconds ? strtoll(text, NULL, 10) : at_s - cr_clock_wall_ms() / 1000;
    if (wait_s > CR_HTTP_LONGEST_RETRY_AFTER_S)
        wait_s = CR_HTTP_LONGEST_RETRY_AFTER_S;
    return wait_s > 0 ? (int)wait_s * 1000 : 0;
}

/* A refusal is one, whatever its words. */
static bool can_be_read(struct attempt *attempt, struct cr_error *err)
{
    struct cr_buf *body = &attempt->response->body;
    if (!attempt->parse.encoded || !body->len)
        return true;
    cr_buf_reset(body);
    return attempt->parse.status >= CR_HTTP_REFUSED || cr_http_answer_packed(attempt->connection->origin, err);
}

static bool try_once(struct attempt *attempt, struct cr_error *err)
{
    struct cr_http_client_connection *connection = attempt->connection;
    if (!cr_http_link_open(&connection->link, attempt->request, connection->user_agent, connection->identity, err) ||
        !may_begin(attempt->request, err))
        return false;
    struct cr_error problem = {0};
    bool whole = send_and_receive(attempt, &problem);
    if (!whole || attempt->parse.surplus || attempt->parse.last)
        cr_http_link_close(&connection->link);
    if (!is_answer(attempt, whole, &problem) || !can_be_read(attempt, &problem)) {
        *err = problem;
        return false;
    }
    attempt->response->status = attempt->parse.status;
    attempt->response->retry_after_ms = retry_after_ms(attempt->parse.retry_after);
    return true;
}

/* A connection that had been used before, and then ends without a byte of an answer, was most likely idle for too long:
 * it was closed when the request came, and nothing was done. A request that only reads needs no certainty of that; for
 * a write it is unlikely when the end did not come at once. */
static bool may_repeat(const struct attempt *attempt, int64_t began_ms)
{
    int64_t now_ms = cr_clock_monotonic_ms();
    bool reads = cr_streq(attempt->request->method, "GET") || cr_streq(attempt->request->method, "HEAD");
    return !attempt->received && now_ms < attempt->connection->link.deadline_ms &&
           (reads || now_ms - began_ms < AT_ONCE_MS);
}

static bool run(struct cr_http_client_connection *connection, const struct cr_http_request *request,
                const struct cr_buf *text, struct cr_http_response *response, bool *stale, struct cr_error *err)
{
    bool used = cr_http_link_is_quiet(&connection->link);
    int64_t began_ms = cr_clock_monotonic_ms();
    struct attempt attempt = {.connection = connection, .request = request, .text = text, .response = response};
    cr_http_parse_init(&attempt.parse, request->method, request->max_body ? request->max_body : CR_HTTP_MAX_BODY);
    bool ok = try_once(&attempt, err);
    *stale = used && !ok && !cr_http_client_connection_is_open(connection) && err->kind == CR_ERR_TRANSIENT &&
             may_repeat(&attempt, began_ms);
    cr_http_parse_dispose(&attempt.parse);
    return ok;
}

static bool exchange(struct cr_http_client_connection *connection, const struct cr_http_request *request,
                     struct cr_http_response *response, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = {.secret = true};
    bool stale = false;
    connection->link.deadline_ms = request->timeout_ms ? cr_clock_monotonic_ms() + request->timeout_ms : INT64_MAX;
    return write_request(connection, request, &text, err) &&
           (run(connection, request, &text, response, &stale, err) ||
            (stale && run(connection, request, &text, response, &stale, err)));
}

bool cr_http_client_connection_is_open(const struct cr_http_client_connection *connection)
{
    return connection->link.fd != CURL_SOCKET_BAD;
}

const struct cr_http_identity *cr_http_client_connection_identity(const struct cr_http_client_connection *connection)
{
    return connection->identity;
}

bool cr_http_client_connection_do(struct cr_http_client_connection *connection, const struct cr_http_request *request,
                                  struct cr_http_response *response, struct cr_error *err)
{
    *response = (struct cr_http_response){.body.secret = request->secret};
    bool ok = exchange(connection, request, response, err);
    if (!ok)
        cr_http_response_dispose(response);
    return ok;
}
