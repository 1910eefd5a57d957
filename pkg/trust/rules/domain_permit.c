/* Which readers trust what, as far as it is known; and so, whether a leaf may be published. */
#include "trust/rules/domain_plan_internal.h"

#include <string.h>

#include "base/alloc.h"

/* --- what has arrived --- */

static bool trusts_ca(const struct domain_ctx *ctx, const struct cr_domain_evidence *evidence, size_t ca)
{
    return !cr_domain_is_expired(ctx, ca) && cr_strvec_has(&evidence->trusted, ctx->world->cas[ca].fingerprint);
}

static bool trusts_current(const struct domain_ctx *ctx, const struct cr_domain_evidence *evidence)
{
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        if (ctx->current[ca] && !trusts_ca(ctx, evidence, ca))
            return false;
    return true;
}

static void add_arrival(struct domain_ctx *ctx, size_t at)
{
    const struct cr_domain_object *object = &ctx->world->objects[at];
    const struct cr_domain_evidence *evidence = cr_domain_evidence_of(ctx, at);
    bool trust = evidence && cr_domain_has_trust(ctx, evidence);
    bool leaf = !object->published.found || (evidence && cr_domain_has_leaf(ctx, evidence));
    ctx->arrived = ctx->arrived && trust && leaf;
    ctx->trust_arrived = ctx->trust_arrived && trust;
    ctx->leaf_arrived = ctx->leaf_arrived && leaf;
    ctx->failed = ctx->failed || (evidence && evidence->failed);
    if (cr_domain_has_bundle(ctx, object))
        ctx->trusted = ctx->trusted && evidence && trusts_current(ctx, evidence);
    if (evidence && evidence->look_again_ms)
        cr_domain_requeue_at(ctx, ctx->world->now_ms + evidence->look_again_ms);
}

void cr_domain_plan_arrivals(struct domain_ctx *ctx)
{
    ctx->arrived = ctx->trust_arrived = ctx->leaf_arrived = ctx->trusted = true;
    for (size_t i = 0; i < ctx->world->objects_len; i++)
        if (cr_domain_is_there(ctx, i))
            add_arrival(ctx, i);
}

/* --- whether a CA may go --- */

static bool is_verified_by_any(const struct domain_ctx *ctx, const struct cr_domain_leaf_view *leaf, const bool *cas)
{
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        if (cas[ca] && cr_domain_leaf_verifies(leaf, ca))
            return true;
    return false;
}

/* A leaf that is in use verifies against one of those, and against none of these. */
static bool is_any_lost(const struct domain_ctx *ctx, const bool *those, const bool *these)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        const struct cr_domain_object *object = &ctx->world->objects[i];
        bool is_in_use = cr_domain_keeps_cas(object) && cr_domain_is_usable(&object->published) &&
                         object->published.not_after_ms > ctx->world->now_ms;
        if (is_in_use && is_verified_by_any(ctx, &object->published, those) &&
            !is_verified_by_any(ctx, &object->published, these))
            return true;
    }
    return false;
}

bool cr_domain_would_cut_off(const struct domain_ctx *ctx, const bool *kept)
{
    size_t len = ctx->world->cas_len;
    cr_autofree bool *trusted = cr_calloc(2 * len + 1, sizeof *trusted);
    bool *trusted_then = trusted + len;
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        const struct cr_domain_evidence *evidence = cr_domain_evidence_of(ctx, i);
        if (!evidence || !cr_domain_may_write(&ctx->world->objects[i]))
            continue;
        for (size_t ca = 0; ca < len; ca++) {
            trusted[ca] = trusts_ca(ctx, evidence, ca);
            trusted_then[ca] = trusted[ca] && kept[ca];
        }
        if (is_any_lost(ctx, trusted, trusted_then))
            return true;
    }
    return false;
}

/* --- whether a leaf may be published --- */

static bool is_within(const struct domain_ctx *ctx, const struct cr_domain_leaf_view *leaf, const bool *verifies)
{
    bool any = false;
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++) {
        if (!cr_domain_leaf_verifies(leaf, ca))
            continue;
        if (!verifies[ca])
            return false;
        any = true;
    }
    return any;
}

bool cr_domain_is_equivalent(const struct domain_ctx *ctx, size_t object, const bool *verifies)
{
    const struct cr_domain_leaf_view *published = &ctx->world->objects[object].published;
    return cr_domain_is_usable(published) && is_within(ctx, published, verifies);
}

/* Where there is no leaf yet, or a broken one, no reader can lose it: it may have what a leaf that is published
 * elsewhere has. */
static bool is_harmless_addition(const struct domain_ctx *ctx, const bool *verifies)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        const struct cr_domain_object *object = &ctx->world->objects[i];
        if (object->is_leaf && !cr_domain_is_foreign(object) && cr_domain_is_usable(&object->published) &&
            is_within(ctx, &object->published, verifies))
            return true;
    }
    return false;
}

static bool trusts(const struct domain_ctx *ctx, size_t object, const bool *verifies)
{
    const struct cr_domain_evidence *evidence = cr_domain_evidence_of(ctx, object);
    if (!evidence)
        return false;
    /* Which of its CAs were verified is not known, only whether all were. */
    if (ctx->world->domain->evidence.trust == CR_LEVEL_VERIFIED && !cr_domain_has_trust(ctx, evidence))
        return false;
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        if (verifies[ca] && trusts_ca(ctx, evidence, ca))
            return true;
    return false;
}

/* What was taken from us has readers that trust what we published there last. So has what was deleted, until it is
 * created again. A leaf that is made is not blocked by others that were deleted, or none would be; but by a target that
 * was, which can be made without a leaf: as long as it may not be written, its readers keep the bundle that they have.
 */
static bool blocks(const struct domain_ctx *ctx, size_t at, bool is_made, const bool *verifies)
{
    const struct cr_domain_object *object = &ctx->world->objects[at];
    if (cr_domain_is_missed(ctx, at))
        return !is_made || !object->is_leaf;
    if (cr_domain_is_foreign(object))
        return *ctx->plan->status.objects[at].trust != '\0';
    return cr_domain_is_there(ctx, at) && cr_domain_has_bundle(ctx, object) && !trusts(ctx, at, verifies);
}

/* Past the deadline of a distrusted CA, what the domain cannot bring about holds no leaf that takes the place of one of
 * that CA. */
static bool is_overridden(const struct domain_ctx *ctx, size_t at, const struct cr_domain_leaf_view *published)
{
    bool is_beyond_us = !cr_domain_may_write(&ctx->world->objects[at]) || cr_domain_is_missed(ctx, at);
    return is_beyond_us && ctx->overdue && cr_domain_needs_distrusted(ctx, published);
}

bool cr_domain_may_publish(const struct domain_ctx *ctx, size_t object, const bool *verifies, size_t *blocker)
{
    const struct cr_domain_leaf_view *published = &ctx->world->objects[object].published;
    if (cr_domain_is_equivalent(ctx, object, verifies))
        return true;
    if (published->found && published->not_after_ms <= ctx->world->now_ms)
        return true;
    /* Of one that is too costly it is not known whether it is in use. */
    if (!cr_domain_is_usable(published) && !published->costly && is_harmless_addition(ctx, verifies))
        return true;
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        if (!blocks(ctx, i, !published->found, verifies) || is_overridden(ctx, i, published))
            continue;
        *blocker = i;
        return false;
    }
    return true;
}
