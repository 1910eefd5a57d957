/* Kinds that are not restarted by their pod template. An Argo Rollout would take a changed template for a new version,
 * and go through its canary; it is restarted by spec.restartAt instead: its controller evicts, within budgets, whatever
 * pod was created before (rollout/restart.go of github.com/argoproj/argo-rollouts, argo-rollouts.readthedocs.io,
 * "Restarting Rollout Pods"). So there it is the time that a pod was created that tells a new one. */
#include "rotation/plan_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

bool cr_plan_restarts_by_time(const struct plan_consumer *consumer)
{
    return cr_streq(consumer->spec->kind, "Rollout");
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

char *cr_plan_kind_gate(const struct plan_ctx *ctx, const struct plan_consumer *consumer, bool *blocked)
{
    const struct cr_rollout *rollout = &consumer->rollout;
    if (cr_streq(consumer->spec->kind, "ReplicaSet") && ctx->world->policy->restart.method == CR_RESTART_ROLLOUT) {
        *blocked = true;
        return cr_strdup(
            "a ReplicaSet without a Deployment replaces no pod by itself: set restart.method: Auto to have "
            "its old pods evicted, or delete them by hand, one after the other");
    }
    if (!cr_plan_restarts_by_time(consumer) || !rollout->busy)
        return NULL;
    *blocked = rollout->state != CR_ROLLOUT_PROGRESSING;
    if (rollout->state == CR_ROLLOUT_PAUSED)
        return cr_strdup("the workload is paused");
    return cr_asprintf("the Rollout is busy: %s", rollout->message);
}
