/* Restarts under way: how many a policy may have (restart.maxConcurrent), and how many all of them together, in a
 * namespace and in all. */
#include "policy/rules/plan_internal.h"

#include "base/alloc.h"

enum {
    /* Between a plan, which dates its restart, and the patch, which sets the time that kubectl shows. */
    PATCHED_WITHIN_MS = 2 * 60 * 1000,
};

/* The last restart that the template shows is certroll's. It does not show who else has changed the template. */
static bool is_ours(const struct plan_consumer *consumer)
{
    int64_t ours_ms = cr_restart_annotation_at_ms(consumer->world->workload);
    int64_t last_ms = cr_plan_restarted_at_ms(consumer->world->workload);
    return consumer->restarted || (ours_ms && last_ms - ours_ms < PATCHED_WITHIN_MS);
}

static bool is_rolling(const struct plan_consumer *consumer)
{
    struct cr_rollout rollout = consumer->rollout;
    if (!consumer->concerned) /* else it is judged */
        cr_rollout_judge(consumer->spec->kind, consumer->world->workload, &rollout);
    return rollout.state == CR_ROLLOUT_PROGRESSING;
}

/* One that has failed, or waits for a person, takes nothing away any more. */
bool cr_plan_is_under_way(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    const struct cr_world_claim *claim = &consumer->world->claim;
    if (cr_plan_evictions_go_on(ctx, consumer))
        return true;
    if (!consumer->world->found || cr_policy_kind_by_api(consumer->spec->kind) ||
        (ctx->world->limits.remembers && !claim->ours))
        return false;
    return claim->unanswered || (is_rolling(consumer) && (claim->ours || is_ours(consumer)));
}

void cr_plan_begin(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    if (!consumer->under_way && !consumer->world->claim.any)
        ctx->begun++;
    consumer->begins = !consumer->under_way;
    consumer->under_way = true;
}

void cr_plan_list_under_way(struct plan_ctx *ctx)
{
    struct cr_plan *plan = ctx->plan;
    for (size_t i = 0; i < ctx->consumers_len; i++)
        if (ctx->consumers[i].under_way && !ctx->consumers[i].begins)
            PLAN_PUSH(plan->under_way, plan->under_way_len, i);
}
