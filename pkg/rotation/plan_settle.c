#include "rotation/plan_internal.h"

#include <string.h>

#include "base/alloc.h"

bool cr_plan_has(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change)
{
    if (cr_plan_waits_for_other(ctx, consumer, change))
        return false;
    if (!consumer->concerned || !consumer->changes[change].concerns)
        return true;
    if (consumer->change_held || (consumer->changes[change].classes && consumer->rollout.state != CR_ROLLOUT_COMPLETE &&
                                  consumer->rollout.state != CR_ROLLOUT_MANUAL))
        return false;
    return cr_plan_pods_have(ctx, consumer, change);
}

static bool all_have_it(const struct plan_ctx *ctx, size_t change)
{
    for (size_t i = 0; i < ctx->consumers_len; i++)
        if (!cr_plan_has(ctx, &ctx->consumers[i], change))
            return false;
    return true;
}

static void settle(struct plan_ctx *ctx, struct cr_secret_status *secret)
{
    struct cr_pending_change *pending = &secret->pending;
    int64_t now = ctx->world->now_ms;
    char outcome[] = "Converged";
    struct cr_rotation_record record = {.secret = secret->name,
                                        .changes = pending->changes,
                                        .started_ms = pending->since_ms,
                                        .finished_ms = now - now % 1000,
                                        .outcome = outcome};
    memcpy(record.id, pending->id, sizeof record.id);
    cr_status_history_add(&ctx->plan->status, &record);
    cr_plan_say_secret(ctx->plan, false, secret, "RotationConverged",
                       cr_asprintf("Secret %s: every consumer has the new material after %lld s (rotation %s)",
                                   secret->name, (long long)((now - pending->since_ms) / 1000), pending->id));

    cr_material_dispose(&secret->settled);
    secret->settled = pending->target;
    pending->target = (struct cr_material){0};
    cr_strvec_dispose(&pending->old_leaves);
    cr_strvec_dispose(&pending->opaque_keys);
    *pending = (struct cr_pending_change){0};
}

void cr_plan_settle(struct plan_ctx *ctx)
{
    /* In Plan mode and while suspended nothing settles: what would be done stays in sight. */
    if (!cr_plan_may_act(ctx))
        return;
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (all_have_it(ctx, k))
            settle(ctx, ctx->pending[k]);
}
