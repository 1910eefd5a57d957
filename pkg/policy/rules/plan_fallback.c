/* The fall-back: what was to be reloaded was seen not to be, and is restarted for. */
#include "policy/rules/plan_internal.h"

#include "base/alloc.h"
#include "base/strings.h"

/* Pods of the class that has most of them. *classes: those that have any. */
static int count_late(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t k, unsigned *classes)
{
    int most = 0;
    unsigned reloads = consumer->decision.secrets[k].reload_classes & CR_PLAN_FALLS_BACK;
    *classes = 0;
    for (unsigned class = CR_CLASS_LEAF; class <= CR_CLASS_TRUST; class <<= 1) {
        int late = reloads & class ? cr_plan_late_pods(ctx, consumer, k, class) : 0;
        *classes |= late ? class : 0u;
        most = late > most ? late : most;
    }
    return most;
}

/* Hot reload was expected, did not happen, and old material is positively still there; or it was, and the replacements
 * of the pods that had it are still to come. *late_pods: how many pods have it now. */
static bool find_late_changes(struct plan_ctx *ctx, struct plan_consumer *consumer, int *late_pods)
{
    bool found = false;
    *late_pods = 0;
    for (size_t k = 0; k < ctx->changes_len; k++) {
        struct plan_change *change = &consumer->changes[k];
        if (!change->concerns || change->classes)
            continue;
        int late = count_late(ctx, consumer, k, &change->seen_late);
        if (late || cr_plan_was_evicted_for(ctx, consumer, k)) {
            change->classes =
                late ? change->seen_late : consumer->decision.secrets[k].reload_classes & CR_PLAN_FALLS_BACK;
            found = true;
        }
        *late_pods = late > *late_pods ? late : *late_pods;
        int64_t deadline = cr_plan_deadline_ms(consumer, change);
        if (ctx->world->now_ms < deadline)
            cr_plan_requeue(ctx->plan, deadline - ctx->world->now_ms);
    }
    return found;
}

static bool is_late_with(const struct plan_ctx *ctx, const struct plan_consumer *consumer, unsigned class)
{
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (consumer->changes[k].seen_late & class)
            return true;
    return false;
}

void cr_plan_fall_back(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    if (!cr_plan_may_act(ctx) || consumer->spec->verify.on_timeout == CR_ON_TIMEOUT_REPORT)
        return;
    int late = 0;
    if (!find_late_changes(ctx, consumer, &late))
        return;
    consumer->needs_restart = true;
    consumer->restarted = false;
    consumer->decision.unknown = false;
    if (!late)
        return;
    cr_autofree char *expected = consumer->decision.reason;
    consumer->decision.reason =
        cr_asprintf("%d of %d pods %s past the deadline, so %s did not happen: "
                    "restart. (Expected was: %s)",
                    late, consumer->status->pods.total,
                    is_late_with(ctx, consumer, CR_CLASS_LEAF) ? "still serve the old leaf" : "still go by the old CAs",
                    consumer->decision.kind == CR_DECISION_TRIGGER ? "the reload by its reloader" : "hot reload",
                    cr_or_empty(expected));
    consumer->decision.kind = CR_DECISION_RESTART;
}
