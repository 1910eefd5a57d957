/* Pairs of Secret and consumer that another policy has (conflict.h): left alone, but not forgotten. As long as the
 * other has not finished a change there, it stays pending here, so that it is not lost when the other goes. */
#include "policy/rules/plan_internal.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "policy/rules/look_again.h"

enum {
    CONFLICTS_SHOWN = 10,
    LOOK_AGAIN_MS = 5 * 1000, /* at first, beside the events of the other policy */
    SEEN_BY_ALL_MS = 30 * 1000,
};

static const struct cr_world_other *other_of(const struct plan_consumer *consumer, size_t secret)
{
    const struct cr_world_other *others = consumer->world->others;
    return others && others[secret].policy && consumer->world->found ? &others[secret] : NULL;
}

bool cr_plan_is_others(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change)
{
    return other_of(consumer, cr_plan_secret_of(ctx, change)) != NULL;
}

/* Against what we look at: what the other says may be about what the Secret held before. Where the two cannot be
 * compared, it has seen by then what it would see. */
static bool has_finished(const struct plan_ctx *ctx, const struct cr_world_other *other,
                         const struct cr_pending_change *pending)
{
    const struct cr_secret_status *memory = other->memory;
    const struct cr_material *target = &pending->target;
    if (!memory || !memory->has_settled)
        return false;
    if (other->other_keys)
        return (!memory->pending.set || other->converged) && ctx->world->now_ms >= pending->since_ms + SEEN_BY_ALL_MS;
    if (memory->pending.set)
        return other->converged && !cr_diff(&memory->pending.target, target);
    return !cr_diff(&memory->settled, target);
}

/* NULL: none, or it has finished. */
static const struct cr_world_other *waits_for(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                                              size_t change)
{
    const struct cr_world_other *other = other_of(consumer, cr_plan_secret_of(ctx, change));
    return other && !has_finished(ctx, other, &ctx->pending[change]->pending) ? other : NULL;
}

const struct cr_secret_status *cr_plan_memory_of_other(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                                                       size_t change)
{
    const struct cr_world_other *other = other_of(consumer, cr_plan_secret_of(ctx, change));
    return other ? other->memory : NULL;
}

bool cr_plan_waits_for_other(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change)
{
    return waits_for(ctx, consumer, change) != NULL;
}

/* The other policy's status wakes this one. Where the two cannot be compared, time decides as well. */
static void look_again(struct plan_ctx *ctx, const struct cr_world_other *other, int64_t since_ms)
{
    int64_t waited_ms = ctx->world->now_ms - since_ms;
    cr_plan_requeue(ctx->plan, cr_look_again_ms(LOOK_AGAIN_MS, waited_ms));
    if (other->other_keys && waited_ms < SEEN_BY_ALL_MS)
        cr_plan_requeue(ctx->plan, SEEN_BY_ALL_MS - waited_ms);
}

bool cr_plan_wait_for_others(struct plan_ctx *ctx, const struct plan_consumer *consumer, struct plan_stand *stand)
{
    for (size_t k = 0; k < ctx->changes_len; k++) {
        const struct cr_world_other *other = waits_for(ctx, consumer, k);
        if (!other)
            continue;
        *stand =
            cr_plan_stand_by(CR_CONSUMER_VERIFYING,
                             cr_gate_make(CR_HOLD_OTHER_POLICY, "CertRotationPolicy %s, which has Secret %s for it",
                                          other->policy, ctx->changes[k].secret->name));
        look_again(ctx, other, ctx->pending[k]->pending.since_ms);
        return true;
    }
    return false;
}

char *cr_plan_others_reason(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    for (size_t k = 0; k < ctx->changes_len; k++) {
        const struct cr_world_other *other = other_of(consumer, cr_plan_secret_of(ctx, k));
        if (other)
            return cr_asprintf("CertRotationPolicy %s has Secret %s for this %s: nothing to do here.", other->policy,
                               ctx->changes[k].secret->name, consumer->spec->kind);
    }
    return NULL;
}

/* Also what it has not seen yet: the change may have come in the same write that brought the Secret to us. */
static bool is_under_way(const struct cr_secret_status *memory, const struct cr_material *now)
{
    return memory && memory->has_settled && (memory->pending.set || cr_diff(&memory->settled, now));
}

const struct cr_secret_status *cr_plan_under_way_elsewhere(const struct cr_world *world, size_t secret)
{
    for (size_t i = 0; i < world->policy->consumers_len; i++) {
        const struct cr_world_consumer *consumer = &world->consumers[i];
        const struct cr_world_other *other = consumer->others ? &consumer->others[secret] : NULL;
        if (other && !other->other_keys && is_under_way(other->memory, world->secrets[secret].material))
            return other->memory;
    }
    return NULL;
}

static void add_conflict(struct cr_buf *text, const struct plan_consumer *consumer, const char *secret,
                         const char *policy)
{
    cr_buf_printf(text, "%s%s %s and Secret %s are CertRotationPolicy %s's", text->len ? "; " : "",
                  consumer->spec->kind, consumer->spec->target, secret, policy);
}

size_t cr_plan_conflicts(const struct plan_ctx *ctx, struct cr_buf *text)
{
    const struct cr_policy *policy = ctx->world->policy;
    size_t count = 0;
    for (size_t i = 0; i < ctx->consumers_len; i++) {
        for (size_t s = 0; s < policy->secrets_len; s++) {
            const struct cr_world_other *other = other_of(&ctx->consumers[i], s);
            if (other && count++ < CONFLICTS_SHOWN)
                add_conflict(text, &ctx->consumers[i], policy->secrets[s].name, other->policy);
        }
    }
    if (count > CONFLICTS_SHOWN)
        cr_buf_printf(text, "; and %zu more", count - CONFLICTS_SHOWN);
    return count;
}
