/* The circuit breaker in the plan. What it counts is on record in status, but for the last restart, which its own patch
 * tells (restart_annotation.c): so a crash between the two loses none, and none is done before the one before it is on
 * record. */
#include "rotation/plan_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "rotation/breaker.h"

void cr_plan_count_restart(const struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    int64_t last_ms = cr_restart_annotation_at_ms(consumer->world->workload);
    (void)cr_breaker_note(ctx->world->policy->restart.breaker, last_ms, ctx->world->now_ms,
                          &consumer->status->restarts);
}

const struct cr_consumer_status *cr_plan_on_record(const struct cr_policy_status *status,
                                                   const struct cr_consumer_status *consumer)
{
    for (size_t i = 0; i < status->consumers_len; i++)
        if (cr_streq(status->consumers[i].kind, consumer->kind) &&
            cr_streq(status->consumers[i].target, consumer->target))
            return &status->consumers[i];
    return NULL;
}

bool cr_plan_restarts_are_recorded(const struct cr_policy_status *recorded, const struct cr_consumer_status *consumer)
{
    if (!consumer->restarts.len)
        return true;
    const struct cr_consumer_status *known = cr_plan_on_record(recorded, consumer);
    return known && known->restarts.len && known->restarts.at_ms[0] == consumer->restarts.at_ms[0];
}

static bool eviction_is_recorded(const struct cr_policy_status *recorded, const struct cr_consumer_status *consumer)
{
    const struct cr_consumer_status *known = cr_plan_on_record(recorded, consumer);
    return !consumer->evicting || (known && known->evicted_until_ms && cr_streq(known->evicting, consumer->evicting));
}

bool cr_plan_is_kept(const struct cr_policy_status *wanted, const struct cr_policy_status *written)
{
    for (size_t i = 0; i < wanted->consumers_len; i++)
        if (!cr_plan_restarts_are_recorded(written, &wanted->consumers[i]) ||
            !eviction_is_recorded(written, &wanted->consumers[i]))
            return false;
    return true;
}

/* "1h", "90s": as exact as a whole number of the largest unit is. */
static char *span(int64_t ms)
{
    enum { MINUTE = 60 * 1000, HOUR = 60 * MINUTE };
    if (ms % HOUR == 0)
        return cr_asprintf("%lldh", (long long)(ms / HOUR));
    if (ms % MINUTE == 0)
        return cr_asprintf("%lldm", (long long)(ms / MINUTE));
    return ms % 1000 ? cr_asprintf("%lldms", (long long)ms) : cr_asprintf("%llds", (long long)(ms / 1000));
}

struct cr_gate cr_plan_breaker(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    struct cr_breaker rule = ctx->world->policy->restart.breaker;
    int64_t ends_ms = cr_breaker_ends_ms(rule, &consumer->status->restarts, ctx->world->now_ms);
    if (!ends_ms)
        return CR_GATE_OPEN;
    cr_plan_requeue_restart_by_clock(ctx->plan, ends_ms - ctx->world->now_ms);
    char until[CR_TIME_TEXT];
    cr_time_format(ends_ms + 999, until); /* has whole seconds: not before */
    cr_autofree char *within = span(rule.within_ms);
    return cr_gate_make(CR_HOLD_CIRCUIT_BREAKER,
                        "restart.breaker: restarted %d %s within %s; the newest change is rolled out after %s",
                        rule.restarts, rule.restarts == 1 ? "time" : "times", within, until);
}
