/* What a restart must pass. */
#include "rotation/plan_internal.h"

#include "base/alloc.h"
#include "base/strings.h"

/* So many times restart.coalesce, while changes go on coming. As the CRD says. */
enum { COALESCE_TIMES_MAX = 6 };

/* A person's word that applies to everything. */
struct cr_gate cr_plan_switched_off(const struct plan_ctx *ctx)
{
    const struct cr_policy *policy = ctx->world->policy;
    if (policy->deleting)
        return cr_gate_make(CR_HOLD_DELETING, "the policy is being deleted");
    if (policy->suspend)
        return cr_gate_make(CR_HOLD_SUSPENDED, "suspend");
    return policy->mode == CR_MODE_PLAN ? cr_gate_make(CR_HOLD_PLAN_MODE, "mode: Plan") : CR_GATE_OPEN;
}

struct cr_gate cr_plan_paused(void)
{
    return cr_gate_make(CR_HOLD_PAUSED, "the workload is paused");
}

static struct cr_gate forbidden(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    const struct cr_policy *policy = ctx->world->policy;
    if (policy->restart.method == CR_RESTART_NEVER)
        return cr_gate_make(CR_HOLD_RESTART_NEVER, "restart.method: Never");
    if (consumer->decision.unknown && policy->discover.unknown == CR_UNKNOWN_REPORT)
        return cr_gate_make(CR_HOLD_UNKNOWN_SOFTWARE,
                            "its software is not in the catalogue, or not verified there, and discover.unknown is "
                            "Report: restart it by hand, or say in reload how it takes up new material");
    if (consumer->held_by.hold)
        return cr_gate_copy(&consumer->held_by);
    /* A paused Deployment may be complete as it stands; a new template would wait until it is resumed. */
    return cr_json_bool_at(consumer->world->workload, false, "spec", "paused") ? cr_plan_paused() : CR_GATE_OPEN;
}

/* Until when further changes are waited for: for so long after the last one. One that always comes would hold the
 * restart for ever, so there is an end to it, counted from the first that the workload was not restarted for. */
int64_t cr_plan_coalesced_ms(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    int64_t pause_ms = ctx->world->policy->restart.coalesce_ms;
    int64_t restarted_ms = cr_restart_annotation_at_ms(consumer->world->workload);
    if (consumer->status->evicted_until_ms && consumer->status->last_restart_ms > restarted_ms)
        restarted_ms = consumer->status->last_restart_ms;
    int64_t first_ms = consumer->first_ms ? consumer->first_ms : consumer->since_ms; /* after a fall-back */
    if (restarted_ms > first_ms)
        first_ms = restarted_ms;
    int64_t last_ms = consumer->since_ms + pause_ms;
    int64_t end_ms = first_ms + COALESCE_TIMES_MAX * pause_ms;
    return end_ms < last_ms ? end_ms : last_ms;
}

/* What holds a restart at any time, also in the middle. */
static struct cr_gate held(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    struct cr_gate off = cr_plan_switched_off(ctx);
    return off.hold ? off : forbidden(ctx, consumer);
}

struct cr_gate cr_plan_gate_again(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    struct cr_gate gate = held(ctx, consumer);
    return !gate.hold && ctx->rollout_failed ? cr_plan_other_failed() : gate;
}

static struct cr_gate at_any_time(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    struct cr_gate gate = held(ctx, consumer);
    CR_CLEANUP(cr_gate) struct cr_gate beside = CR_GATE_OPEN;
    if (gate.hold == CR_HOLD_PLAN_MODE)
        beside = forbidden(ctx, consumer);
    if (gate.hold == CR_HOLD_PLAN_MODE && !beside.hold)
        cr_plan_say_way(ctx, consumer);
    return gate;
}

/* What forbids a restart now for workloads of its kind. */
static struct cr_gate kind_gate(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    const struct cr_rollout *rollout = &consumer->rollout;
    if (cr_streq(consumer->spec->kind, "ReplicaSet") && ctx->world->policy->restart.method == CR_RESTART_ROLLOUT)
        return cr_gate_make(CR_HOLD_BARE_REPLICA_SET,
                            "a ReplicaSet without a Deployment replaces no pod by itself: set restart.method: Auto to "
                            "have its old pods evicted, or delete them by hand, one after the other");
    if (!cr_plan_restarts_by_time(consumer) || !rollout->busy)
        return CR_GATE_OPEN;
    if (rollout->state == CR_ROLLOUT_PAUSED)
        return cr_plan_paused();
    return cr_gate_make(rollout->state == CR_ROLLOUT_PROGRESSING ? CR_HOLD_UPDATING : CR_HOLD_UPDATE_FAILED,
                        "the Rollout is busy: %s", rollout->message);
}

static const struct plan_consumer *listed(const struct plan_ctx *ctx, const char *name)
{
    for (size_t i = 0; i < ctx->consumers_len; i++)
        if (!ctx->consumers[i].spec->found && cr_streq(ctx->consumers[i].spec->name, name))
            return &ctx->consumers[i];
    return NULL;
}

/* All that is pending, whichever Secret it is about: an order is often one between Secrets. */
static bool has_finished(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (!cr_plan_has(ctx, consumer, k))
            return false;
    return true;
}

/* spec.consumers[].after: a consumer is restarted when those that it comes after have finished. */
static struct cr_gate order(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    const struct cr_strvec *after = &consumer->spec->after;
    for (size_t i = 0; i < after->len; i++) {
        const struct plan_consumer *before = listed(ctx, after->items[i]);
        if (!before)
            return cr_gate_make(CR_HOLD_ORDER_UNKNOWN,
                                "after: nobody can tell when %s has finished: it is of a kind that is not acted on",
                                after->items[i]);
        if (!has_finished(ctx, before))
            return cr_gate_make(CR_HOLD_ORDER, "after: waits for %s", after->items[i]);
    }
    return CR_GATE_OPEN;
}

static struct cr_gate coalesce(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    int64_t due = cr_plan_coalesced_ms(ctx, consumer);
    if (ctx->world->now_ms >= due)
        return CR_GATE_OPEN;
    cr_plan_requeue_restart(ctx->plan, due - ctx->world->now_ms);
    return cr_gate_make(CR_HOLD_COALESCE, "restart.coalesce");
}

/* In the order in which they are asked: what a person must know at once comes before what takes its time, and what
 * depends on the way that budgets leave comes behind them. The distrust of a CA waits neither for another time nor for
 * another consumer; it does wait for what a person says of all restarts, for budgets, and for what keeps the restart
 * from being in vain. */
static const struct {
    struct cr_gate (*ask)(struct plan_ctx *, struct plan_consumer *);
    bool yields; /* to the distrust of a CA */
} gates[] = {
    {at_any_time, false},
    {kind_gate, false},
    {cr_plan_window, true},
    {cr_plan_breaker, true},
    {order, true},
    {cr_plan_budget, false},
    {coalesce, true},
    {cr_plan_unverifiable_gate, false},
    {cr_plan_kubelet_cache_gate, false},
    {cr_plan_concurrency, false},
    {cr_plan_limit, false},
};

struct cr_gate cr_plan_gate(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    struct cr_gate gate = CR_GATE_OPEN;
    bool distrusts = cr_plan_distrusts(ctx, consumer);
    for (size_t i = 0; i < cr_array_len(gates) && !gate.hold; i++) {
        if (gates[i].yields && distrusts)
            continue;
        gate = gates[i].ask(ctx, consumer);
        if (gate.hold && gates[i].yields)
            cr_plan_await_record(ctx, consumer);
    }
    return gate;
}
