/* By its admin interface (www.envoyproxy.io/docs/envoy/latest/operations/admin). */
#include <stdio.h>

#include "drain/envoy_listeners.h"
#include "drain/stats_text.h"
#include "drain/strategy.h"
#include "wire/http_call.h"

enum {
    OK = 200,
    ANSWER_MAX = 64 * 1024,
    /* A listener has some 120 bytes, and 55 for each worker: 10,000 with 32 workers fit, 2,000 with 128 as well. */
    PAGE_MAX = 32 * 1024 * 1024,
};

/* Encoded: ^listener\..*\.downstream_(pre_)?cx_active$ — without usedonly, so that a listener that was never used is a
 * zero and not missing. */
static const char stats[] = "/stats?filter=%5Elistener%5C..%2A%5C.downstream_%28pre_%29%3Fcx_active%24";
static const char listeners[] = "/listeners";
/* Failing the health check ends connections with their next response, at once and for all listeners but those of
 * drain_type MODIFY_ONLY; idle ones stay with either. */
static const char fail_health_check[] = "/healthcheck/fail";
/* skip_exit, known from Envoy 1.28 on: without it new connections are refused after --drain-time-s, while the pod may
 * still have some sent. */
static const char drain_listeners[] = "/drain_listeners?graceful&skip_exit";

static bool ask(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt, const char *method,
                const char *path, int *status, struct cr_buf *body, struct cr_error *err)
{
    const struct cr_http_call call = {
        .address = target->address,
        .method = method,
        .target = path,
        .deadline_ms = attempt->deadline_ms,
        .cancel_fd = attempt->cancel_fd,
        .max_body = body->max,
    };
    return cr_http_call(&call, status, body, err);
}

static bool is_ok(int status, const char *path, struct cr_error *err)
{
    return status == OK ||
           cr_error_set(err, CR_ERR_TRANSIENT, "Envoy's admin interface answers %s with %d", path, status);
}

static bool prepare(struct cr_drain_target *target, struct cr_error *err)
{
    (void)err;
    if (!target->address)
        target->address = "127.0.0.1:9901";
    return true;
}

static bool begin(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(ANSWER_MAX);
    const char *path = target->listeners ? drain_listeners : fail_health_check;
    int status = 0;
    return ask(target, attempt, "POST", path, &status, &body, err) && is_ok(status, path, err);
}

/* Where the page may not be seen (allow_paths), all listeners count but what the user has named. */
static bool find_left_out(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt,
                          struct cr_strvec *out, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(PAGE_MAX);
    int status = 0;
    if (!ask(target, attempt, "GET", listeners, &status, &body, err))
        return false;
    cr_envoy_listeners_left_out(status == OK ? cr_buf_text(&body) : "", &target->ignored, out);
    return true;
}

static bool count(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt,
                  struct cr_drain_count *out, struct cr_error *err)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec left_out = {0};
    CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(PAGE_MAX);
    int status = 0;
    if (!find_left_out(target, attempt, &left_out, err) || !ask(target, attempt, "GET", stats, &status, &body, err) ||
        !is_ok(status, "/stats", err))
        return false;
    uint64_t open = 0;
    if (!cr_stats_envoy(cr_buf_text(&body), body.len, &left_out, &open, err))
        return cr_error_wrap(err, "Envoy's admin interface");
    *out = (struct cr_drain_count){.open = open};
    return true;
}

const struct cr_drain_strategy cr_drain_envoy = {
    .name = "envoy",
    .begins = "tells Envoy to drain",
    .prepare = prepare,
    .begin = begin,
    .count = count,
};
