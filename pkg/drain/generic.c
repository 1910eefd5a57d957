/* Any program that drains on a request, and answers with the number of its connections. */
#include <ctype.h>

#include "drain/metric_text.h"
#include "drain/stats_text.h"
#include "drain/strategy.h"
#include "drain/url.h"
#include "wire/http_call.h"

enum {
    OK = 200,
    SUCCESS_END = 300,
    ANSWER_MAX = 4 * 1024 * 1024, /* a page of metrics */
};

static bool call(const char *text, const char *method, const struct cr_drain_attempt *attempt, int *status,
                 struct cr_buf *body, struct cr_error *err)
{
    CR_CLEANUP(cr_drain_url) struct cr_drain_url url = {0};
    if (!cr_drain_url_parse(text, &url, err))
        return false;
    const struct cr_http_call http = {
        .address = url.address,
        .method = method,
        .target = url.target,
        .deadline_ms = attempt->deadline_ms,
        .cancel_fd = attempt->cancel_fd,
        .max_body = body->max,
    };
    return cr_http_call(&http, status, body, err);
}

/* --- what the flags say --- */

static bool check_url(const char *flag, const char *text, struct cr_error *err)
{
    CR_CLEANUP(cr_drain_url) struct cr_drain_url url = {0};
    return cr_drain_url_parse(text, &url, err) || cr_error_wrap(err, "%s", flag);
}

static bool check_method(const char *method, struct cr_error *err)
{
    for (const char *c = method; *c; c++) {
        if (!isupper((unsigned char)*c))
            method = "";
    }
    return *method || cr_error_set(err, CR_ERR_INVALID, "--begin-method must be a method of HTTP, as POST or PUT");
}

static bool prepare(struct cr_drain_target *target, struct cr_error *err)
{
    if (!target->begin_method)
        target->begin_method = "POST";
    if (!target->count_url)
        return cr_error_set(err, CR_ERR_INVALID,
                            "--proxy generic needs --count-url: where the number of open connections is to be read");
    if (!check_url("--count-url", target->count_url, err) || !check_method(target->begin_method, err))
        return false;
    if (target->begin_url && !check_url("--begin-url", target->begin_url, err))
        return false;
    return !target->count_metric || cr_metric_check(target->count_metric, err) || cr_error_wrap(err, "--count-metric");
}

/* --- the drain --- */

static bool begin(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(ANSWER_MAX);
    int status = 0;
    if (!target->begin_url)
        return true;
    if (!call(target->begin_url, target->begin_method, attempt, &status, &body, err))
        return false;
    return (status >= OK && status < SUCCESS_END) ||
           cr_error_set(err, CR_ERR_TRANSIENT, "%s answers %d", target->begin_url, status);
}

static bool count(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt,
                  struct cr_drain_count *out, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(ANSWER_MAX);
    int status = 0;
    if (!call(target->count_url, "GET", attempt, &status, &body, err))
        return false;
    if (status != OK)
        return cr_error_set(err, CR_ERR_TRANSIENT, "%s answers %d", target->count_url, status);
    uint64_t open = 0;
    bool read = target->count_metric ? cr_metric_sum(cr_buf_text(&body), body.len, target->count_metric, &open, err)
                                     : cr_stats_number(cr_buf_text(&body), body.len, &open, err);
    if (!read)
        return cr_error_wrap(err, "%s", target->count_url);
    *out = (struct cr_drain_count){.open = open};
    return true;
}

const struct cr_drain_strategy cr_drain_generic = {
    .name = "generic",
    .begins = "calls --begin-url",
    .prepare = prepare,
    .begin = begin,
    .count = count,
};
