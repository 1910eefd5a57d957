#include "net/http_once.h"

#include "base/clock.h"
#include "net/http_internal.h"
#include "net/http_memory.h"

enum { LONGEST_POLL_MS = 1000 }; /* libcurl knows when it wants to go on before that */

struct once {
    struct cr_http_exchange exchange;
    struct cr_http_identity *identity;
    CURLM *multi;
    const struct cr_http_request *request;
    struct cr_http_response *response;
    size_t max_body;
    bool over_cap;
    bool done;
    CURLcode result;
};

/* CURLOPT_WRITEFUNCTION. */
static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    struct once *once = arg;
    size_t len = size * count;
    once->over_cap = len > once->max_body - once->response->body.len;
    return !once->over_cap && cr_buf_append(&once->response->body, data, len) ? len : CURL_WRITEFUNC_ERROR;
}

static bool prepare(struct once *once, const struct cr_http_tls *tls, struct cr_error *err)
{
    once->identity = cr_http_identity_new(tls);
    if (!cr_http_exchange_init(&once->exchange, once->request, "certroll", err) ||
        !cr_http_exchange_use(&once->exchange, once->identity, err))
        return false;
    CURL *easy = once->exchange.easy;
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, once);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    once->multi = curl_multi_init();
    return (once->multi && curl_multi_add_handle(once->multi, easy) == CURLM_OK) ||
           cr_error_set(err, CR_ERR_INTERNAL, "libcurl cannot be initialised");
}

static void look_for_the_end(struct once *once)
{
    int left = 0;
    for (const CURLMsg *message; (message = curl_multi_info_read(once->multi, &left));)
        if (message->msg == CURLMSG_DONE) {
            once->result = message->data.result;
            once->done = true;
        }
}

static int shorter(int64_t left_ms)
{
    return left_ms < LONGEST_POLL_MS ? (int)left_ms : LONGEST_POLL_MS;
}

static bool run(struct once *once, int cancel_fd, struct cr_error *err)
{
    int64_t deadline_ms = cr_clock_monotonic_ms() + once->request->timeout_ms;
    for (;;) {
        int ignored = 0;
        bool works = curl_multi_perform(once->multi, &ignored) == CURLM_OK;
        look_for_the_end(once);
        if (once->done)
            return true;
        int64_t left_ms = deadline_ms - cr_clock_monotonic_ms();
        if (left_ms <= 0)
            return cr_http_exchange_timed_out(&once->exchange, once->request->timeout_ms, err);
        struct curl_waitfd cancel = {.fd = cancel_fd, .events = CURL_WAIT_POLLIN};
        if (!works || curl_multi_poll(once->multi, &cancel, cancel_fd >= 0, shorter(left_ms), NULL) != CURLM_OK)
            return cr_error_set(err, CR_ERR_INTERNAL, "libcurl cannot go on");
        if (cancel.revents)
            return cr_error_set(err, CR_ERR_CANCELLED, "shutting down");
    }
}

static bool judge(struct once *once, struct cr_error *err)
{
    cr_http_exchange_status(&once->exchange, &once->response->status, &once->response->retry_after_ms);
    if (once->over_cap)
        return cr_http_exchange_over_cap(&once->exchange, once->max_body, err);
    return cr_http_exchange_ended(&once->exchange, once->result, once->response->status, err);
}

static void dispose(struct once *once)
{
    if (once->multi && once->exchange.easy)
        curl_multi_remove_handle(once->multi, once->exchange.easy);
    cr_http_exchange_dispose(&once->exchange);
    if (once->multi)
        curl_multi_cleanup(once->multi);
    cr_http_identity_unref(once->identity);
}

bool cr_http_once(const struct cr_http_tls *tls, const struct cr_http_request *request, int cancel_fd,
                  struct cr_http_response *response, struct cr_error *err)
{
    cr_http_global_init();
    *response = (struct cr_http_response){.body = {.secret = request->secret}};
    struct once once = {
        .request = request, .response = response, .max_body = request->max_body ? request->max_body : CR_HTTP_MAX_BODY};
    bool ok = prepare(&once, tls, err) && run(&once, cancel_fd, err) && judge(&once, err);
    dispose(&once);
    if (!ok)
        cr_http_response_dispose(response);
    return ok;
}
