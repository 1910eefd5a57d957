/* What a restart must pass. */
#include "rotation/plan_internal.h"

#include "base/alloc.h"
#include "base/strings.h"

/* So many times restart.coalesce, while changes go on coming. As the CRD says. */
enum { COALESCE_TIMES_MAX = 6 };

/* A person's word that applies to everything. */
static const char *switched_off(const struct cr_policy *policy)
{
    if (policy->deleting)
        return "the policy is being deleted";
    if (policy->suspend)
        return "suspend";
    return policy->mode == CR_MODE_PLAN ? CR_PLAN_MODE_PLAN : NULL;
}

static const char *forbidden(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    const struct cr_policy_restart *restart = &ctx->world->policy->restart;
    if (restart->method == CR_RESTART_NEVER)
        return "restart.method: Never";
    if (consumer->decision.unknown && ctx->world->policy->discover.unknown == CR_UNKNOWN_REPORT)
        return "its software is not in the catalogue, or not verified there, and discover.unknown is Report: restart "
               "it "
               "by hand, or say in reload how it takes up new material";
    if (consumer->held_by)
        return consumer->held_by;
    /* A paused Deployment may be complete as it stands; a new template would wait for whoever resumes it. */
    return cr_json_bool_at(consumer->world->workload, false, "spec", "paused") ? "the workload is paused" : NULL;
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
static const char *held(const struct plan_ctx *ctx, const struct plan_consumer *consumer, bool *blocked)
{
    *blocked = false;
    const char *word = switched_off(ctx->world->policy);
    if (word)
        return word;
    word = forbidden(ctx, consumer);
    *blocked = word != NULL;
    return word;
}

char *cr_plan_gate_again(struct plan_ctx *ctx, const struct plan_consumer *consumer, bool *blocked)
{
    const char *word = held(ctx, consumer, blocked);
    if (!word && ctx->rollout_failed)
        word = CR_PLAN_OTHER_FAILED;
    return cr_strdup_or_null(word);
}

char *cr_plan_gate(struct plan_ctx *ctx, struct plan_consumer *consumer, bool *blocked)
{
    const char *word = held(ctx, consumer, blocked);
    if (cr_streq(word, CR_PLAN_MODE_PLAN) && !forbidden(ctx, consumer))
        cr_plan_say_way(ctx, consumer);
    if (word)
        return cr_strdup(word);
    char *kind = cr_plan_kind_gate(ctx, consumer, blocked);
    if (kind)
        return kind;
    /* Before what takes its time, so that it is known at once. */
    char *window = cr_plan_window(ctx, consumer);
    if (window)
        return window;
    char *breaker = cr_plan_breaker(ctx, consumer);
    if (breaker)
        return breaker;
    char *order = cr_plan_order(ctx, consumer, blocked);
    if (order)
        return order;
    char *budget = cr_plan_budget(ctx, consumer, blocked);
    if (budget)
        return budget;
    int64_t due = cr_plan_coalesced_ms(ctx, consumer);
    if (ctx->world->now_ms < due) {
        cr_plan_requeue_restart(ctx->plan, due - ctx->world->now_ms);
        return cr_strdup("restart.coalesce");
    }
    char *blind = consumer->way.way == CR_BUDGET_EVICT ? cr_plan_evict_blind(ctx, consumer) : NULL;
    if (blind)
        return blind;
    char *fresh = cr_plan_fresh(ctx, consumer);
    if (fresh)
        return fresh;
    char *concurrency = cr_plan_concurrency(ctx, consumer);
    return concurrency ? concurrency : cr_plan_limit(ctx, consumer);
}
