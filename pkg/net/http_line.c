#include "net/http_line.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "net/http_internal.h"
#include "net/http_memory.h"

enum { LONGEST_POLL_MS = 60 * 1000 }; /* libcurl knows when it wants to go on before that */

/* What an exchange was prepared from. Owned. */
struct prepared {
    char *method;
    char *url;
    char *bearer; /* wiped */
    char *content_type;
    char *accept;
    bool secret;
};

struct cr_http_line {
    char *user_agent;
    pthread_mutex_t lock;
    /* Guarded by lock. */
    struct cr_http_identity *newest;
    CURLM *multi; /* replaced by the thread that does requests, woken by others */
    bool cancelled;
    /* Of the thread that does requests. */
    struct cr_http_identity *identity; /* of multi's connection */
    struct cr_http_exchange exchange;  /* of the last request; without a handle: none */
    struct prepared prepared;
    struct cr_http_response *response; /* of the request under way */
    size_t max_body;
    bool over_cap;
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

static bool is_prepared(const struct cr_http_line *line, const struct cr_http_request *request)
{
    const struct prepared *p = &line->prepared;
    return line->exchange.easy && cr_streq(p->method, request->method) && cr_streq(p->url, request->url) &&
           cr_streq(p->bearer, request->bearer) && cr_streq(p->content_type, request->content_type) &&
           cr_streq(p->accept, request->accept) && p->secret == request->secret &&
           !line->exchange.body == !request->body;
}

static void forget(struct cr_http_line *line)
{
    cr_http_exchange_dispose(&line->exchange);
    prepared_dispose(&line->prepared);
}

struct cr_http_line *cr_http_line_new(const struct cr_http_tls *tls, const char *user_agent)
{
    cr_http_global_init();
    struct cr_http_line *line = cr_new(struct cr_http_line);
    line->user_agent = cr_strdup(user_agent ? user_agent : "certroll");
    line->newest = cr_http_identity_new(tls);
    pthread_mutex_init(&line->lock, NULL);
    return line;
}

void cr_http_line_free(struct cr_http_line *line)
{
    if (!line)
        return;
    forget(line);
    curl_multi_cleanup(line->multi);
    cr_http_identity_unref(line->identity);
    cr_http_identity_unref(line->newest);
    pthread_mutex_destroy(&line->lock);
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
    if (line->multi)
        curl_multi_wakeup(line->multi);
    pthread_mutex_unlock(&line->lock);
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
    bool changed = line->identity != line->newest;
    if (changed) {
        forget(line);
        curl_multi_cleanup(line->multi);
        line->multi = curl_multi_init();
        curl_multi_setopt(line->multi, CURLMOPT_MAXCONNECTS, 1L);
        cr_http_identity_unref(line->identity);
        line->identity = cr_http_identity_ref(line->newest);
    }
    pthread_mutex_unlock(&line->lock);
}

/* CURLOPT_HEADERFUNCTION: line by line; an empty one ends the headers. Without it there was no answer, whatever curl
 * says of its status. */
static size_t on_header(char *text, size_t size, size_t count, void *arg)
{
    struct cr_http_line *line = arg;
    size_t len = size * count;
    struct cr_http_response *response = line->response;
    if (!response->status && len && (text[0] == '\r' || text[0] == '\n'))
        cr_http_exchange_status(&line->exchange, &response->status, &response->retry_after_ms);
    return len;
}

/* CURLOPT_WRITEFUNCTION. Anything but len makes curl end the transfer. */
static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    struct cr_http_line *line = arg;
    size_t len = size * count;
    struct cr_buf *body = &line->response->body;
    line->over_cap = len > line->max_body - body->len;
    return !line->over_cap && cr_buf_append(body, data, len) ? len : CURL_WRITEFUNC_ERROR;
}

static bool prepare_anew(struct cr_http_line *line, const struct cr_http_request *request, struct cr_error *err)
{
    forget(line);
    if (!cr_http_exchange_init(&line->exchange, request, line->user_agent, false, err) ||
        !cr_http_exchange_use(&line->exchange, line->identity, err))
        return false;
    CURL *easy = line->exchange.easy;
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, line);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, line);
    line->prepared = (struct prepared){
        .method = cr_strdup(request->method),
        .url = cr_strdup(request->url),
        .bearer = cr_strdup_or_null(request->bearer),
        .content_type = cr_strdup_or_null(request->content_type),
        .accept = cr_strdup_or_null(request->accept),
        .secret = request->secret,
    };
    return true;
}

static bool prepare(struct cr_http_line *line, const struct cr_http_request *request, struct cr_error *err)
{
    take_identity(line);
    if (is_prepared(line, request))
        cr_http_exchange_renew(&line->exchange, request);
    else if (!prepare_anew(line, request, err)) {
        forget(line);
        return false;
    }
    curl_easy_setopt(line->exchange.easy, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
    return true;
}

/* --- the exchange --- */

static CURLcode result_of(CURLM *multi)
{
    int left = 0;
    const CURLMsg *msg = curl_multi_info_read(multi, &left);
    return msg && msg->msg == CURLMSG_DONE ? msg->data.result : CURLE_FAILED_INIT;
}

/* False: cancelled meanwhile. */
static bool carry_out(struct cr_http_line *line, CURLcode *result)
{
    int running = 1;
    *result = CURLE_FAILED_INIT;
    if (curl_multi_add_handle(line->multi, line->exchange.easy) != CURLM_OK)
        return true;
    while (!is_cancelled(line) && curl_multi_perform(line->multi, &running) == CURLM_OK && running)
        curl_multi_poll(line->multi, NULL, 0, LONGEST_POLL_MS, NULL);
    if (!running)
        *result = result_of(line->multi);
    curl_multi_remove_handle(line->multi, line->exchange.easy);
    return !running || !is_cancelled(line);
}

/* True when there is an answer. */
static bool exchange(struct cr_http_line *line, const struct cr_http_request *request, struct cr_error *err)
{
    CURLcode result = CURLE_OK;
    if (!carry_out(line, &result))
        return cr_error_set(err, CR_ERR_CANCELLED, "shutting down");
    if (line->over_cap)
        return cr_http_exchange_over_cap(&line->exchange, line->max_body, err);
    if (result == CURLE_OPERATION_TIMEDOUT)
        return cr_http_exchange_timed_out(&line->exchange, request->timeout_ms, err);
    return cr_http_exchange_ended(&line->exchange, result, line->response->status, err);
}

bool cr_http_line_do(struct cr_http_line *line, const struct cr_http_request *request,
                     struct cr_http_response *response, struct cr_error *err)
{
    *response = (struct cr_http_response){.body.secret = request->secret};
    line->response = response;
    line->max_body = request->max_body ? request->max_body : CR_HTTP_MAX_BODY;
    line->over_cap = false;
    bool ok = is_cancelled(line) ? cr_error_set(err, CR_ERR_CANCELLED, "shutting down")
                                 : prepare(line, request, err) && exchange(line, request, err);
    if (!ok)
        cr_http_response_dispose(response);
    return ok;
}
