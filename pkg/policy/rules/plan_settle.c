/* A change that every consumer has becomes what is remembered, and by which evidence that is known. */
#include "policy/rules/plan_internal.h"

#include <string.h>

#include "base/alloc.h"

bool cr_plan_has(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change)
{
    if (consumer->world->unseen || cr_plan_waits_for_other(ctx, consumer, change))
        return false;
    if (!consumer->concerned || !consumer->changes[change].concerns)
        return true;
    if (consumer->change_held || (consumer->changes[change].classes && consumer->rollout.state != CR_ROLLOUT_COMPLETE &&
                                  consumer->rollout.state != CR_ROLLOUT_MANUAL))
        return false;
    return cr_plan_pods_have(ctx, consumer, change) && cr_plan_old_pods_have_ended(consumer, change);
}

/* --- by what it is known --- */

static enum cr_settled_by weaker(enum cr_settled_by a, enum cr_settled_by b)
{
    return a < b ? a : b;
}

/* Whether its pods read something of this class of the Secret, in a role that the change concerns. */
static bool reads(const struct plan_consumer *consumer, size_t change, unsigned class)
{
    if (!consumer->world->found || !consumer->decision.secrets)
        return false;
    const struct cr_decision_secret *secret = &consumer->decision.secrets[change];
    return secret->used && ((secret->restart_classes | secret->reload_classes) & class);
}

static bool all_were_seen(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change,
                          unsigned class)
{
    for (size_t i = 0; i < consumer->world->pods_len; i++) {
        enum cr_shown shown = class == CR_CLASS_TRUST ? cr_plan_evidence_at(ctx, consumer, i, change)->trust
                                                      : cr_plan_evidence_at(ctx, consumer, i, change)->leaf;
        if (shown != CR_SHOWN_NEW)
            return false;
    }
    return true;
}

/* What it remembers is of this change when nothing is pending there. */
static enum cr_settled_by known_of_other(const struct cr_secret_status *memory, unsigned class)
{
    if (memory->pending.set)
        return CR_SETTLED_INFERRED;
    return class == CR_CLASS_TRUST ? memory->trust_by : memory->leaf_by;
}

/* For a consumer that has it. A workload that came after the change, or one with a controller that reads Secrets by the
 * API, was not looked at; nor are Jobs. */
static enum cr_settled_by known_of(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change,
                                   unsigned class)
{
    const struct cr_secret_status *other = cr_plan_memory_of_other(ctx, consumer, change);
    if (other)
        return known_of_other(other, class);
    if (cr_policy_kind_runs_to_end(consumer->spec->kind))
        return CR_SETTLED_INFERRED;
    if (!reads(consumer, change, class))
        return CR_SETTLED_VERIFIED;
    if (cr_policy_kind_by_api(consumer->spec->kind) || !consumer->changes || !consumer->changes[change].concerns)
        return CR_SETTLED_INFERRED;
    return all_were_seen(ctx, consumer, change, class) ? CR_SETTLED_VERIFIED : CR_SETTLED_INFERRED;
}

/* The weakest counts. What no consumer reads, no consumer can lack. */
static void note_level(const struct plan_ctx *ctx, size_t change, unsigned class, enum cr_settled_by *by)
{
    if (!(cr_diff_classes(ctx->changes[change].changes) & class))
        return;
    *by = CR_SETTLED_VERIFIED;
    for (size_t i = 0; i < ctx->consumers_len; i++)
        *by = weaker(*by, known_of(ctx, &ctx->consumers[i], change, class));
}

static void note_levels(const struct plan_ctx *ctx, struct cr_secret_status *secret, size_t change)
{
    note_level(ctx, change, CR_CLASS_TRUST, &secret->trust_by);
    note_level(ctx, change, CR_CLASS_LEAF, &secret->leaf_by);
}

/* --- what settles --- */

bool cr_plan_is_missed(const struct plan_consumer *consumer)
{
    const struct cr_consumer_status *status = consumer->status;
    return status->state == CR_CONSUMER_ABSENT && !cr_policy_kind_by_api(consumer->spec->kind) &&
           (status->gate.hold == CR_HOLD_NOT_FOUND || status->since_ms);
}

static bool all_have_it(const struct plan_ctx *ctx, size_t change)
{
    for (size_t i = 0; i < ctx->consumers_len; i++)
        if (cr_plan_is_missed(&ctx->consumers[i]) || !cr_plan_has(ctx, &ctx->consumers[i], change))
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
    secret->settled_ms = record.finished_ms;
    secret->changed_ms = record.started_ms;
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
    /* A workload that is not seen may have what was before. */
    if (ctx->world->beyond.unseen_pods)
        return;
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (!cr_plan_is_uncovered(ctx, cr_plan_secret_of(ctx, k), ctx->pending[k]) && all_have_it(ctx, k)) {
            note_levels(ctx, ctx->pending[k], k);
            settle(ctx, ctx->pending[k]);
        }
}
