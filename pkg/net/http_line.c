#include "net/http_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "net/http_internal.h"
#include "net/http_link.h"
#include "net/http_memory.h"
#include "wire/http_parse.h"

enum { READ_SIZE = 4 * 1024, LONGEST_RETRY_AFTER_S = 3600, REFUSED = 400 };

/* What a head was made of. Owned. */
struct prepared {
    char *method;
    char *url;
    char *bearer; /* wiped */
    char *content_type;
    char *accept;
    bool has_body;
};

struct cr_http_line {
    char *user_agent;
    int wake_fd; /* eventfd: cancelled */
    pthread_mutex_t lock;
    /* Guarded by lock. */
    struct cr_http_identity *newest;
    bool cancelled;
    /* Of the thread that does requests. */
    struct cr_http_identity *identity; /* of link */
    struct cr_http_link link;
    char *origin; /* "GET https://host:port", for error texts */
    struct prepared prepared;
    struct cr_buf head; /* of the last request, but for its Content-Length; empty: of none. Wiped */
};

/* --- the set-up --- */

static void prepared_dispose(struct prepared *p)
{
    free(p->method);
    free(p->url);
    cr_http_free_secret(p->bearer);
    free(p->content_type);
    free(p->accept);
    *p = (struct prepared){0};
}

static bool may_have_content(const struct cr_http_request *request)
{
    return request->body || cr_streq(request->method, "POST") || cr_streq(request->method, "PUT") ||
           cr_streq(request->method, "PATCH");
}

static bool is_prepared(const struct cr_http_line *line, const struct cr_http_request *request)
{
    const struct prepared *p = &line->prepared;
    return line->head.len && cr_streq(p->method, request->method) && cr_streq(p->url, request->url) &&
           cr_streq(p->bearer, request->bearer) && cr_streq(p->content_type, request->content_type) &&
           cr_streq(p->accept, request->accept) && p->has_body == may_have_content(request) && !request->headers_len;
}

static void forget(struct cr_http_line *line)
{
    cr_buf_reset(&line->head);
    prepared_dispose(&line->prepared);
}

struct cr_http_line *cr_http_line_new(const struct cr_http_tls *tls, const char *user_agent)
{
    cr_http_global_init();
    struct cr_http_line *line = cr_new(struct cr_http_line);
    line->user_agent = cr_strdup(user_agent ? user_agent : "certroll");
    line->newest = cr_http_identity_new(tls);
    line->head.secret = true;
    line->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (line->wake_fd < 0) {
        cr_log(CR_LOG_ERROR, "no file descriptor for HTTP requests");
        abort();
    }
    cr_http_link_init(&line->link, line->wake_fd);
    pthread_mutex_init(&line->lock, NULL);
    return line;
}

void cr_http_line_free(struct cr_http_line *line)
{
    if (!line)
        return;
    forget(line);
    cr_buf_dispose(&line->head);
    cr_http_link_close(&line->link);
    cr_http_identity_unref(line->identity);
    cr_http_identity_unref(line->newest);
    pthread_mutex_destroy(&line->lock);
    close(line->wake_fd);
    free(line->origin);
    free(line->user_agent);
    free(line);
}

void cr_http_line_set_tls(struct cr_http_line *line, const struct cr_http_tls *tls)
{
    struct cr_http_identity *unused = cr_http_identity_new(tls);
    pthread_mutex_lock(&line->lock);
    if (!cr_http_identity_equal(line->newest, unused)) {
        struct cr_http_identity *newest = unused;
        unused = line->newest;
        line->newest = newest;
    }
    pthread_mutex_unlock(&line->lock);
    cr_http_identity_unref(unused);
}

void cr_http_line_cancel(struct cr_http_line *line)
{
    if (!line)
        return;
    pthread_mutex_lock(&line->lock);
    line->cancelled = true;
    pthread_mutex_unlock(&line->lock);
    uint64_t one = 1;
    ssize_t ignored = write(line->wake_fd, &one, sizeof one);
    (void)ignored; /* EAGAIN: it is readable already */
}

static bool is_cancelled(struct cr_http_line *line)
{
    pthread_mutex_lock(&line->lock);
    bool cancelled = line->cancelled;
    pthread_mutex_unlock(&line->lock);
    return cancelled;
}

/* Takes the newest credentials; a connection made with others is closed. */
static void take_identity(struct cr_http_line *line)
{
    pthread_mutex_lock(&line->lock);
    if (line->identity != line->newest) {
        cr_http_link_close(&line->link);
        forget(line); /* a server name may be part of it */
        cr_http_identity_unref(line->identity);
        line->identity = cr_http_identity_ref(line->newest);
    }
    pthread_mutex_unlock(&line->lock);
}

static bool same_server(const char *a, const char *b)
{
    return a && cr_streq(strchr(a, ' '), strchr(b, ' '));
}

static void take_head(struct cr_http_line *line, const struct cr_http_exchange *x,
                      const struct cr_http_request *request)
{
    if (!same_server(line->origin, x->origin))
        cr_http_link_close(&line->link);
    cr_strset(&line->origin, x->origin);
    cr_http_exchange_head(x, request->method, line->user_agent, &line->head);
    line->prepared = (struct prepared){
        .method = cr_strdup(request->method),
        .url = cr_strdup(request->url),
        .bearer = cr_strdup_or_null(request->bearer),
        .content_type = cr_strdup_or_null(request->content_type),
        .accept = cr_strdup_or_null(request->accept),
        .has_body = may_have_content(request),
    };
}

/* Whether a request can be sent at all, and as what, is decided where it is for all others. */
static bool prepare(struct cr_http_line *line, const struct cr_http_request *request, struct cr_error *err)
{
    take_identity(line);
    if (is_prepared(line, request))
        return true;
    forget(line);
    struct cr_http_exchange x = {0};
    bool ok = cr_http_exchange_init(&x, request, line->user_agent, false, err) &&
              cr_http_exchange_use(&x, line->identity, err);
    if (ok)
        take_head(line, &x, request);
    cr_http_exchange_dispose(&x);
    return ok;
}

/* --- the exchange --- */

static void write_request(const struct cr_http_line *line, const struct cr_http_request *request, struct cr_buf *out)
{
    cr_buf_puts(out, cr_buf_text(&line->head));
    size_t body_len = request->body ? request->body_len : 0;
    if (line->prepared.has_body)
        cr_buf_printf(out, "Content-Length: %zu\r\n", body_len);
    cr_buf_puts(out, "\r\n");
    bool ok = !body_len || cr_buf_append(out, request->body, body_len);
    (void)ok; /* it has no cap */
}

/* One try. Of the thread's stack, so that what was read can be wiped. */
struct trial {
    struct cr_http_line *line;
    const struct cr_http_request *request;
    struct cr_http_response *response;
    struct cr_http_parse parse;
    bool heard;    /* something has come */
    bool unspoken; /* what came could not be understood, and err says why */
};

static bool explain(const struct trial *trial, enum cr_http_link_end end, struct cr_error *err)
{
    const char *origin = trial->line->origin;
    if (end == CR_HTTP_LINK_CANCELLED)
        return cr_error_set(err, CR_ERR_CANCELLED, "shutting down");
    if (end == CR_HTTP_LINK_LATE)
        return cr_error_set(err, CR_ERR_TRANSIENT, "%s: no answer within %d ms (%s)", origin,
                            trial->request->timeout_ms,
                            trial->heard ? "reading the response" : "waiting for the response");
    return cr_error_set(err, CR_ERR_TRANSIENT, trial->heard ? "%s: the response was cut off" : "%s: no answer came",
                        origin);
}

/* What a server says that is not HTTP may be something else the next time; a body that is too long will not. */
static bool not_understood(struct trial *trial, struct cr_error *err)
{
    const char *origin = trial->line->origin;
    trial->unspoken = true;
    if (trial->parse.too_long)
        return cr_error_set(err, CR_ERR_INVALID, "%s: the response is longer than the %zu bytes that are allowed",
                            origin, trial->parse.max_body);
    err->kind = CR_ERR_TRANSIENT;
    return cr_error_wrap(err, "%s: the answer is not HTTP", origin);
}

/* *more: it is not whole yet. */
static bool take(struct trial *trial, const char *data, size_t len, bool *more, struct cr_error *err)
{
    struct cr_http_parse *parse = &trial->parse;
    trial->heard = trial->heard || len;
    if (len && !cr_http_parse_feed(parse, data, len, &trial->response->body, err))
        return not_understood(trial, err);
    struct cr_error cut = {0};
    *more = len ? !cr_http_parse_is_done(parse) : !cr_http_parse_end(parse, false, &cut);
    return len || !*more || explain(trial, CR_HTTP_LINK_BROKEN, err);
}

static bool hear(struct trial *trial, struct cr_error *err)
{
    char data[READ_SIZE];
    bool ok = true;
    for (bool more = true; ok && more;) {
        size_t len = 0;
        enum cr_http_link_end end = cr_http_link_receive(&trial->line->link, data, sizeof data, &len);
        ok = end == CR_HTTP_LINK_OK ? take(trial, data, len, &more, err) : explain(trial, end, err);
    }
    if (trial->request->secret)
        explicit_bzero(data, sizeof data);
    return ok;
}

static bool say(struct trial *trial, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = {.secret = true}; /* with the token */
    write_request(trial->line, trial->request, &text);
    enum cr_http_link_end end = cr_http_link_send(&trial->line->link, text.data, text.len);
    return end == CR_HTTP_LINK_OK || explain(trial, end, err);
}

/* Asked last: this process may be stopped at any moment. */
static bool may_begin(const struct cr_http_request *request, struct cr_error *err)
{
    return !request->begin_by_ms || cr_clock_boot_ms() < request->begin_by_ms ||
           cr_error_set(err, CR_ERR_TRANSIENT, "not sent: the time to begin it is over");
}

/* A refusal whose body is cut off is one. */
static bool is_answer(const struct trial *trial, bool whole, const struct cr_error *err)
{
    return whole || (trial->parse.status >= REFUSED && !trial->unspoken && err->kind == CR_ERR_TRANSIENT);
}

static int retry_after_ms(const char *text)
{
    if (!*text)
        return 0;
    bool seconds = !text[strspn(text, "0123456789")];
    int64_t at_s = seconds ? 0 : (int64_t)curl_getdate(text, NULL); /* -1: no date either */
    int64_t wait_s = seconds ? strtoll(text, NULL, 10) : at_s - cr_clock_wall_ms() / 1000;
    if (wait_s > LONGEST_RETRY_AFTER_S)
        wait_s = LONGEST_RETRY_AFTER_S;
    return wait_s > 0 ? (int)wait_s * 1000 : 0;
}

static bool try_once(struct trial *trial, struct cr_error *err)
{
    struct cr_http_line *line = trial->line;
    if (!cr_http_link_open(&line->link, trial->request, line->user_agent, line->identity, err) ||
        !may_begin(trial->request, err))
        return false;
    struct cr_error problem = {0};
    bool whole = say(trial, &problem) && hear(trial, &problem);
    bool answered = is_answer(trial, whole, &problem);
    if (!whole || trial->parse.surplus)
        cr_http_link_close(&line->link);
    if (!answered) {
        *err = problem;
        return false;
    }
    trial->response->status = trial->parse.status;
    trial->response->retry_after_ms = retry_after_ms(trial->parse.retry_after);
    return true;
}

/* *stale: a connection that had been used before, and said nothing: it may have been closed in the moment that it was
 * used, and then nothing was done. libcurl tries again in the same case. */
static bool run(struct cr_http_line *line, const struct cr_http_request *request, struct cr_http_response *response,
                bool *stale, struct cr_error *err)
{
    bool used = cr_http_link_is_quiet(&line->link);
    struct trial trial = {.line = line, .request = request, .response = response};
    cr_http_parse_init(&trial.parse, request->method, request->max_body ? request->max_body : CR_HTTP_MAX_BODY);
    bool ok = try_once(&trial, err);
    *stale = used && !ok && !trial.heard && line->link.fd == CURL_SOCKET_BAD && err->kind == CR_ERR_TRANSIENT &&
             cr_clock_monotonic_ms() < line->link.deadline_ms;
    cr_http_parse_dispose(&trial.parse);
    return ok;
}

static bool exchange(struct cr_http_line *line, const struct cr_http_request *request,
                     struct cr_http_response *response, struct cr_error *err)
{
    bool stale = false;
    line->link.deadline_ms = request->timeout_ms ? cr_clock_monotonic_ms() + request->timeout_ms : INT64_MAX;
    return run(line, request, response, &stale, err) || (stale && run(line, request, response, &stale, err));
}

bool cr_http_line_do(struct cr_http_line *line, const struct cr_http_request *request,
                     struct cr_http_response *response, struct cr_error *err)
{
    *response = (struct cr_http_response){.body.secret = request->secret};
    bool ok = is_cancelled(line) ? cr_error_set(err, CR_ERR_CANCELLED, "shutting down")
                                 : prepare(line, request, err) && exchange(line, request, response, err);
    if (!ok)
        cr_http_response_dispose(response);
    return ok;
}
