/* Kinds that are not restarted by their pod template. An Argo Rollout would take a changed template for a new version,
 * and go through its canary; it is restarted by spec.restartAt instead: its controller evicts, within budgets, whatever
 * pod was created before (rollout/restart.go of github.com/argoproj/argo-rollouts, argo-rollouts.readthedocs.io,
 * "Restarting Rollout Pods"). So there the time of its creation distinguishes a new pod. */
#include "policy/rules/plan_internal.h"

#include "api/consumer_kind.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

bool cr_plan_restarts_by_time(const struct plan_consumer *consumer)
{
    return cr_consumer_kind_of(consumer->spec->kind)->restart_at;
}

int64_t cr_plan_restart_at_ms(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    int64_t at_ms = ctx->world->now_ms;
    if (!cr_plan_restarts_by_time(consumer))
        return at_ms;
    /* Pods have the API server's clock, in seconds. Ours may be behind it: then those that are there now would be as
     * good as restarted. */
    for (size_t i = 0; i < consumer->world->pods_len; i++)
        if (consumer->world->pods[i].created_ms + 1000 > at_ms)
            at_ms = consumer->world->pods[i].created_ms + 1000;
    return at_ms - at_ms % 1000;
}

bool cr_plan_is_since_restart(const struct plan_consumer *consumer, const struct cr_world_pod *pod)
{
    return pod->created_ms && pod->created_ms >= cr_plan_restarted_at_ms(consumer->world->workload);
}

struct cr_gate cr_plan_paused(void)
{
    return cr_gate_make(CR_HOLD_PAUSED, "the workload is paused");
}

struct cr_gate cr_plan_kind_gate(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    const struct cr_rollout *rollout = &consumer->rollout;
    if (cr_consumer_kind_of(consumer->spec->kind)->update == CR_UPDATE_NOTHING &&
        ctx->world->policy->restart.method == CR_RESTART_ROLLOUT)
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
