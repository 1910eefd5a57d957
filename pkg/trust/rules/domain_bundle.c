/* Which CAs each object must have. It keeps what it has, and gets what it lacks of the CAs that must be current and
 * that leaves need, unless the time has come for all bundles to shrink. So a process that is killed between these
 * writes, or may not do one of them, neither repeats the others nor takes them back. */
#include "trust/rules/domain_plan_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "pki/bundle_rule.h"

/* --- the rule --- */

/* The leaves that are in use, as rows of what they verify against. */
struct leaves_in_use {
    bool *verifies;
    size_t len;
};

static void add_leaf(const struct domain_ctx *ctx, const struct cr_domain_leaf_view *leaf, struct leaves_in_use *leaves)
{
    if (!leaf->found || !leaf->verifies)
        return;
    memcpy(leaves->verifies + leaves->len++ * ctx->world->cas_len, leaf->verifies,
           ctx->world->cas_len * sizeof *leaf->verifies);
}

/* Published, in a source, or kept to be put back. */
static struct leaves_in_use leaves_in_use(const struct domain_ctx *ctx)
{
    const struct cr_domain_world *world = ctx->world;
    struct leaves_in_use leaves = {.verifies =
                                       cr_calloc(world->objects_len * CR_LEAVES_AT * world->cas_len + 1, sizeof(bool))};
    for (size_t i = 0; i < world->objects_len; i++) {
        const struct cr_domain_object *object = &world->objects[i];
        for (int at = 0; at < CR_LEAVES_AT && cr_domain_keeps_cas(object); at++)
            add_leaf(ctx, cr_domain_leaf_at(object, (enum cr_domain_leaf_at)at), &leaves);
    }
    return leaves;
}

static bool is_verified_by(const struct domain_ctx *ctx, const struct leaves_in_use *leaves, size_t ca)
{
    for (size_t i = 0; i < leaves->len; i++)
        if (leaves->verifies[i * ctx->world->cas_len + ca])
            return true;
    return false;
}

/* CAs that must be current are always kept. */
static void choose(const struct domain_ctx *ctx, const struct leaves_in_use *leaves, size_t retain, bool *kept)
{
    size_t len = ctx->world->cas_len;
    cr_autofree struct cr_bundle_ca *cas = cr_calloc(len + 1, sizeof *cas);
    cr_autofree enum cr_bundle_fate *fates = cr_calloc(len + 1, sizeof *fates);
    for (size_t ca = 0; ca < len; ca++) {
        const struct cr_domain_ca *at_hand = &ctx->world->cas[ca];
        bool counts = ctx->current[ca] || ctx->anywhere[ca] || is_verified_by(ctx, leaves, ca);
        memcpy(cas[ca].fingerprint, at_hand->fingerprint, sizeof cas[ca].fingerprint);
        cas[ca].not_before_ms = at_hand->not_before_ms;
        cas[ca].not_after_ms = counts ? at_hand->not_after_ms : ctx->world->now_ms;
        cas[ca].current = ctx->newest[ca];
        cas[ca].root = at_hand->root;
    }
    cr_bundle_choose(&(struct cr_bundle_question){.cas = cas,
                                                  .cas_len = len,
                                                  .issued = ctx->world->issued,
                                                  .verifies = leaves->verifies,
                                                  .leaves_len = leaves->len,
                                                  .retain_previous = retain,
                                                  .now_ms = ctx->world->now_ms},
                     fates);
    for (size_t ca = 0; ca < len; ca++)
        kept[ca] = ctx->current[ca] || fates[ca] == CR_BUNDLE_KEPT;
}

/* --- when it shrinks --- */

/* A CA that must be current is published nowhere yet, while others are. */
static bool begins(const struct domain_ctx *ctx)
{
    bool fresh = false;
    bool any = false;
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++) {
        fresh = fresh || (ctx->newest[ca] && !ctx->anywhere[ca]);
        any = any || ctx->anywhere[ca];
    }
    return fresh && any;
}

/* Nothing of the rotation is left to be done, and no leaf can be put back any more. */
static bool is_over(const struct domain_ctx *ctx)
{
    return !ctx->waits && !ctx->holds && !ctx->switches && !ctx->has_next && !ctx->world->staging_found &&
           !ctx->is_put_back;
}

/* Another program has overwritten a leaf lately. It may put it back once more, and that leaf's CA must be trusted then.
 */
static bool has_been_overwritten(struct domain_ctx *ctx)
{
    bool any = false;
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        const struct cr_domain_object_status *record = &ctx->plan->status.objects[i];
        int64_t until_ms = record->overwritten_ms + CR_OVERWRITTEN_HOLD_MS;
        if (!ctx->world->objects[i].is_leaf || !record->overwritten || until_ms <= ctx->world->now_ms)
            continue;
        cr_domain_requeue_at(ctx, until_ms);
        any = true;
    }
    return any;
}

/* Which CA such a leaf needs is not known. */
static bool is_any_costly(const struct domain_ctx *ctx)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        const struct cr_domain_object *object = &ctx->world->objects[i];
        for (int at = 0; at < CR_LEAVES_AT && cr_domain_keeps_cas(object); at++)
            if (cr_domain_leaf_at(object, (enum cr_domain_leaf_at)at)->costly)
                return true;
    }
    return false;
}

static bool is_time(const struct domain_ctx *ctx)
{
    switch (ctx->world->domain->retire) {
    case CR_RETIRE_NEXT_ROTATION:
        return begins(ctx);
    case CR_RETIRE_CONVERGED:
        return is_over(ctx);
    case CR_RETIRE_NEVER:
        break;
    }
    return false;
}

static bool may_shrink(struct domain_ctx *ctx)
{
    return ctx->arrived && !cr_domain_misses_any(ctx) && !has_been_overwritten(ctx) && !is_any_costly(ctx) &&
           is_time(ctx) && !cr_domain_would_cut_off(ctx, ctx->retained);
}

/* --- of each object --- */

/* A distrusted one: a leaf that is published would be lost with it. */
static bool is_needed_alone(const struct domain_ctx *ctx, size_t ca)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        const struct cr_domain_object *object = &ctx->world->objects[i];
        if (!cr_domain_is_foreign(object) && cr_domain_leaf_verifies(&object->published, ca) &&
            cr_domain_needs_distrusted(ctx, &object->published))
            return true;
    }
    return false;
}

/* One that has none yet, or one that cannot be read, gets all that is published: which consumers present a leaf that is
 * being replaced is not known here. What is distrusted and was put there by somebody else goes at once. */
static void fill(const struct domain_ctx *ctx, size_t at, bool shrink, bool drop, bool *bundle)
{
    const struct cr_domain_object *object = &ctx->world->objects[at];
    bool is_new = object->bundle_foreign || !cr_domain_has_bundle(ctx, object);
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++) {
        bool has = cr_domain_has_ca(object, ca) || (is_new && ctx->anywhere[ca]);
        bool needed = ctx->needed[ca] && !ctx->distrusted[ca] && object->kept != CR_TRUST_WOULD_CUT_OFF;
        bool kept = shrink && !object->kept ? ctx->retained[ca] : has || needed;
        bool goes = (drop && ctx->distrusted[ca]) || (ctx->stray[ca] && !is_needed_alone(ctx, ca));
        bundle[ca] = kept && !goes && !cr_domain_is_expired(ctx, ca);
    }
}

static bool is_presented(const struct domain_ctx *ctx, size_t ca)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++)
        if (!cr_domain_is_foreign(&ctx->world->objects[i]) &&
            cr_domain_leaf_verifies(&ctx->world->objects[i].published, ca))
            return true;
    return false;
}

/* What another program has put there lacks a CA of leaves that are in use: its readers would be cut off. What is only
 * prepared is not pressed on that program, and so the stage ends here, with both CAs trusted. */
static void mend(const struct domain_ctx *ctx, size_t at, bool *bundle)
{
    const struct cr_domain_object *object = &ctx->world->objects[at];
    bool is_strange =
        object->bundle_foreign && !cr_domain_leaf_verifies_any(ctx, &object->published); /* its CA would be lost */
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        bundle[ca] = cr_domain_has_ca(object, ca) ||
                     (ctx->needed[ca] && !ctx->distrusted[ca] && !object->kept && !is_strange && is_presented(ctx, ca));
}

static void compare(struct domain_ctx *ctx, size_t at, const bool *bundle)
{
    const struct cr_domain_object *object = &ctx->world->objects[at];
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++) {
        bool has = cr_domain_has_ca(object, ca);
        ctx->grows = ctx->grows || (bundle[ca] && !has);
        ctx->shrinks = ctx->shrinks || (has && !bundle[ca] && !cr_domain_is_expired(ctx, ca));
    }
}

void cr_domain_plan_bundles(struct domain_ctx *ctx)
{
    const struct cr_domain_world *world = ctx->world;
    const struct cr_domain *domain = world->domain;
    struct leaves_in_use leaves = leaves_in_use(ctx);
    choose(ctx, &leaves, 0, ctx->needed);
    /* Converged leaves the current ones alone; what NextRotation keeps is the generation before. */
    choose(ctx, &leaves, domain->retire == CR_RETIRE_CONVERGED ? 0 : (size_t)domain->retain_previous, ctx->retained);
    free(leaves.verifies);
    bool shrink = may_shrink(ctx);
    bool drop = cr_domain_drops_distrusted(ctx);
    for (size_t i = 0; i < world->objects_len; i++) {
        bool *bundle = ctx->bundles + i * world->cas_len;
        if (cr_domain_has_other_writer(&world->objects[i]))
            mend(ctx, i, bundle);
        else if (cr_domain_may_write(&world->objects[i]))
            fill(ctx, i, shrink, drop, bundle);
        else
            continue;
        if (cr_domain_will_be_there(ctx, i))
            compare(ctx, i, bundle);
    }
}
