/* A rollout that stands still. A Deployment has a deadline (spec.progressDeadlineSeconds), and its controller says when
 * it has passed (rollout.c); StatefulSets and DaemonSets have none, so theirs is a Deployment's default. Their new pods
 * come when the old ones have ended, so that a drain is given its time first. */
#include "policy/rules/plan_internal.h"

#include <stdio.h>

#include "api/consumer_kind.h"
#include "base/strings.h"

enum { DEADLINE_MINUTES = 10 };

int64_t cr_plan_last_progress_ms(const struct plan_consumer *consumer)
{
    int64_t last_ms = consumer->status->last_restart_ms;
    if (last_ms < consumer->since_ms)
        last_ms = consumer->since_ms;
    for (size_t i = 0; i < consumer->world->pods_len; i++)
        if (consumer->world->pods[i].created_ms > last_ms)
            last_ms = consumer->world->pods[i].created_ms;
    return last_ms;
}

void cr_plan_deadline(const struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    int64_t deadline_ms = DEADLINE_MINUTES * 60 * 1000 + cr_plan_drain_allowance_ms(consumer);
    struct cr_rollout *rollout = &consumer->rollout;
    if (!consumer->restarted || rollout->state != CR_ROLLOUT_PROGRESSING ||
        cr_consumer_kind_of(consumer->spec->kind)->has_deadline)
        return;
    int64_t left_ms = cr_plan_last_progress_ms(consumer) + deadline_ms - ctx->world->now_ms;
    if (left_ms > 0) {
        cr_plan_requeue(ctx->plan, left_ms);
        return;
    }
    char before[sizeof rollout->message];
    snprintf(before, sizeof before, "%s", rollout->message);
    rollout->state = CR_ROLLOUT_FAILED;
    snprintf(rollout->message, sizeof rollout->message, "no new pod for %lld minutes: %.120s",
             (long long)(deadline_ms / 60 / 1000), before);
}
