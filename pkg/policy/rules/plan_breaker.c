/* The circuit breaker in the plan. What it counts is on record in status, but for the last restart, which its own patch
 * records (restart_annotation.c): so a crash between the two loses none, and none is done before the one before it is
 * on record. The status of a trust domain, which only certroll writes, and the version of the Secret in it show which
 * restarts the stages of its rotation asked for. */
#include "policy/rules/plan_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "policy/rules/breaker.h"
#include "policy/rules/look_again.h"

enum { LOOK_AGAIN_MS = 500 };

/* --- what a rotation of a trust domain asked for --- */

static bool was_restarted_at(const char *annotation, const char *version)
{
    return cr_restart_annotation_is_at(annotation, CR_CLASS_LEAF, version) ||
           cr_restart_annotation_is_at(annotation, CR_CLASS_TRUST, version);
}

/* What the last restart was for, as far as the Secrets still are what they were then. */
static struct cr_restart_step done_step(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    for (size_t i = 0; i < ctx->world->policy->secrets_len; i++) {
        const struct cr_world_secret *secret = &ctx->world->secrets[i];
        const char *name = ctx->world->policy->secrets[i].name;
        if (*secret->step.restart.rotation &&
            was_restarted_at(cr_plan_restart_annotation(consumer, name), secret->resource_version))
            return secret->step.restart;
    }
    return (struct cr_restart_step){0};
}

static const struct cr_domain_step *step_of(const struct plan_ctx *ctx, size_t change)
{
    return &ctx->world->secrets[cr_plan_secret_of(ctx, change)].step;
}

static bool asks_for_restart(const struct plan_consumer *consumer, size_t change)
{
    return consumer->changes[change].classes && !consumer->changes[change].covered;
}

/* Among all stages that it is to be restarted for, one of a rotation that it was restarted for in other stages, else
 * any. */
static struct cr_restart_step next_step(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    struct cr_restart_step found = {0};
    for (size_t k = 0; k < ctx->changes_len; k++) {
        const struct cr_restart_step *step = &step_of(ctx, k)->restart;
        if (!asks_for_restart(consumer, k) || !*step->rotation)
            continue;
        if (cr_breaker_continues(&consumer->status->restarts, step))
            return *step;
        found = *step;
    }
    return found;
}

bool cr_plan_awaits_record(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t k, int64_t most_ms)
{
    return step_of(ctx, k)->awaits_record && ctx->world->now_ms - consumer->changes[k].since_ms < most_ms;
}

int64_t cr_plan_record_comes_ms(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    int64_t soonest_ms = 0;
    for (size_t k = 0; k < ctx->changes_len; k++) {
        if (!asks_for_restart(consumer, k) || !step_of(ctx, k)->awaits_record)
            continue;
        int64_t waited_ms = ctx->world->now_ms - consumer->changes[k].since_ms;
        int64_t again_ms = waited_ms < CR_BREAKER_ROTATION_DELAY_MS
                               ? LOOK_AGAIN_MS
                               : cr_look_again_ms(CR_BREAKER_ROTATION_DELAY_MS, waited_ms);
        soonest_ms = cr_plan_sooner_ms(soonest_ms, again_ms);
    }
    return soonest_ms;
}

bool cr_plan_distrusts(const struct plan_ctx *ctx, const struct plan_consumer *consumer, bool again)
{
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (consumer->changes[k].classes && consumer->changes[k].covered == again && step_of(ctx, k)->distrusts)
            return true;
    return false;
}

/* --- counted --- */

static void note(const struct plan_ctx *ctx, struct plan_consumer *consumer, int64_t at_ms,
                 const struct cr_restart_step *step)
{
    (void)cr_breaker_note(ctx->world->policy->restart.breaker, at_ms, step, ctx->world->now_ms,
                          &consumer->status->restarts);
}

void cr_plan_count_restart(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    const struct cr_restart_step step = done_step(ctx, consumer);
    note(ctx, consumer, cr_restart_annotation_at_ms(consumer->world->workload), &step);
    for (size_t i = 0; i < ctx->world->policy->secrets_len; i++)
        if (ctx->world->secrets[i].step.awaits_record &&
            cr_breaker_awaits_rotation(&consumer->status->restarts, ctx->world->now_ms))
            cr_plan_requeue(ctx->plan, LOOK_AGAIN_MS);
}

void cr_plan_count_evictions(const struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    const struct cr_restart_step step = next_step(ctx, consumer);
    note(ctx, consumer, ctx->world->now_ms, &step);
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

struct cr_gate cr_plan_breaker(const struct plan_question *q)
{
    const struct cr_breaker rule = q->ctx->world->policy->restart.breaker;
    const struct cr_restart_times *restarts = &q->consumer->status->restarts;
    int64_t now_ms = q->ctx->world->now_ms;
    int64_t ends_ms = cr_breaker_ends_ms(rule, restarts, now_ms);
    const struct cr_restart_step step = ends_ms ? next_step(q->ctx, q->consumer) : (struct cr_restart_step){0};
    if (!ends_ms || cr_breaker_continues(restarts, &step))
        return CR_GATE_OPEN;
    char until[CR_TIME_TEXT];
    cr_time_format(ends_ms + 999, until); /* has whole seconds: not before */
    cr_autofree char *within = span(rule.within_ms);
    struct cr_gate gate = cr_gate_make(
        CR_HOLD_CIRCUIT_BREAKER, "restart.breaker: restarted %d %s within %s; the newest change is rolled out after %s",
        rule.restarts, rule.restarts == 1 ? "time" : "times", within, until);
    gate.look_again_ms = cr_plan_by_clock_ms(ends_ms - now_ms);
    return gate;
}
