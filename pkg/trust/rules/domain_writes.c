/* What is to be written now, and what ends a rotation. */
#include "trust/rules/domain_plan_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

/* --- objects --- */

bool cr_domain_will_be_there(const struct domain_ctx *ctx, size_t at)
{
    const struct cr_domain_object *object = &ctx->world->objects[at];
    if (object->found)
        return true;
    return object->is_leaf ? ctx->leaves[at].act != CR_LEAF_ACT_KEEP : !cr_domain_is_ca_bundle(ctx, object);
}

static bool has_any(const struct domain_ctx *ctx, const bool *bundle)
{
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        if (bundle[ca])
            return true;
    return false;
}

static bool is_as_it_shall_be(const struct domain_ctx *ctx, size_t at)
{
    const struct cr_domain_object *object = &ctx->world->objects[at];
    if (!object->found || object->bundle_foreign)
        return false;
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        if (cr_domain_has_ca(object, ca) != ctx->bundles[at * ctx->world->cas_len + ca])
            return false;
    return true;
}

/* The last one that is known to have arrived is kept, to be put back. */
static bool is_worth_keeping(const struct domain_ctx *ctx, size_t at)
{
    const struct cr_domain_object *object = &ctx->world->objects[at];
    const struct cr_domain_evidence *evidence = cr_domain_evidence_of(ctx, at);
    if (!cr_domain_is_usable(&object->published) || object->published.not_after_ms <= ctx->world->now_ms)
        return false;
    return !object->previous.found || (evidence && evidence->leaf != CR_ARRIVAL_NOT_YET);
}

static void add_write(struct domain_ctx *ctx, size_t at)
{
    struct cr_domain_plan *plan = ctx->plan;
    const struct domain_leaf *leaf = &ctx->leaves[at];
    const bool *bundle = ctx->bundles + at * ctx->world->cas_len;
    bool replaces = leaf->act == CR_LEAF_ACT_MIRROR || leaf->act == CR_LEAF_ACT_ISSUE;
    plan->writes = cr_reallocarray(plan->writes, plan->writes_len + 1, sizeof *plan->writes);
    plan->writes[plan->writes_len++] =
        (struct cr_domain_write){.object = at,
                                 .bundle = cr_memdup(bundle, ctx->world->cas_len * sizeof *bundle),
                                 .leaf = leaf->act,
                                 .issuer = leaf->issuer,
                                 .cross_signed = leaf->cross_signed,
                                 .save_previous = replaces && is_worth_keeping(ctx, at)};
}

/* Another one would cut off a reader, whatever is wrong with this one. */
static bool keeps_bundle(const struct domain_ctx *ctx, size_t at)
{
    return ctx->world->objects[at].kept == CR_TRUST_WOULD_CUT_OFF;
}

static bool grows(const struct domain_ctx *ctx, size_t at)
{
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        if (ctx->bundles[at * ctx->world->cas_len + ca] && !cr_domain_has_ca(&ctx->world->objects[at], ca))
            return true;
    return false;
}

static bool is_wanted(const struct domain_ctx *ctx, size_t at)
{
    if (cr_domain_has_other_writer(&ctx->world->objects[at]))
        return grows(ctx, at);
    return cr_domain_may_write(&ctx->world->objects[at]) && cr_domain_will_be_there(ctx, at) &&
           has_any(ctx, ctx->bundles + at * ctx->world->cas_len) &&
           (ctx->leaves[at].act != CR_LEAF_ACT_KEEP || !(keeps_bundle(ctx, at) || is_as_it_shall_be(ctx, at)));
}

/* Bundles that grow come before leaves: a process that is killed in between has published too much trust, not too
 * little. What is created again and has no leaf comes last: it has no readers yet, and once it is there leaves wait for
 * those that might read it. */
static int pass_of(const struct domain_ctx *ctx, size_t at)
{
    if (ctx->leaves[at].act != CR_LEAF_ACT_KEEP)
        return 1;
    return ctx->world->objects[at].found ? 0 : 2;
}

static void add_writes(struct domain_ctx *ctx)
{
    for (int pass = 0; pass < 3; pass++)
        for (size_t i = 0; i < ctx->world->objects_len; i++)
            if (pass_of(ctx, i) == pass && is_wanted(ctx, i))
                add_write(ctx, i);
}

/* --- the end --- */

static bool is_done(const struct domain_ctx *ctx)
{
    return ctx->arrived && !ctx->waits && !ctx->holds && !ctx->is_put_back && !ctx->plan->writes_len &&
           !ctx->plan->stage_next_ca && !ctx->plan->first_ca;
}

static bool are_all_by_next(const struct domain_ctx *ctx)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        const struct cr_domain_object *object = &ctx->world->objects[i];
        if (object->is_leaf && object->published.found && !cr_domain_is_foreign(object) &&
            cr_domain_leaf_of(ctx, i)->source == CR_LEAF_ISSUE &&
            !cr_domain_leaf_verifies(&object->published, ctx->world->authority.next_ca))
            return false;
    }
    return true;
}

/* A CA Secret that is gone has nothing to lose. */
static void promote(struct domain_ctx *ctx)
{
    bool is_gone = ctx->world->authority.current == CR_DOMAIN_CA_ABSENT;
    bool is_due = ctx->has_next && (is_gone || (is_done(ctx) && are_all_by_next(ctx)));
    const char *refused = ctx->world->authority.cannot_renew;
    ctx->plan->promote_ca = is_due && !refused;
    ctx->renewal_refused = ctx->renewal_refused || (is_due && refused);
}

static void delete_staging(struct domain_ctx *ctx)
{
    bool is_broken = ctx->world->authority.next == CR_DOMAIN_CA_BROKEN && !cr_domain_is_next_over(ctx);
    ctx->plan->delete_staging = ctx->world->staging_found && is_done(ctx) && !ctx->has_next && !is_broken;
}

void cr_domain_plan_writes(struct domain_ctx *ctx)
{
    if (!ctx->plan->stage_next_ca && !ctx->plan->first_ca)
        add_writes(ctx);
    promote(ctx);
    delete_staging(ctx);
}
