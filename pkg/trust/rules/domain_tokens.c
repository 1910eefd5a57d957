/* What a person asks for by spec.rotate, and the leaves that were put back for it. */
#include "trust/rules/domain_plan_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

/* --- leaves that were put back --- */

static const struct cr_domain_rejected *rejection_of(const struct domain_ctx *ctx, const char *leaf)
{
    const struct cr_domain_status *status = &ctx->plan->status;
    for (size_t i = 0; i < status->rejected_len; i++)
        if (cr_streq(status->rejected[i].leaf, leaf))
            return &status->rejected[i];
    return NULL;
}

/* A source's leaf is rejected as long as it is that one; what we would issue ourselves, until a person says more. */
static bool is_effective(const struct domain_ctx *ctx, const struct cr_domain_rejected *rejected)
{
    const struct cr_domain *domain = ctx->world->domain;
    if (!domain->rotate_token || domain->rotate != CR_ROTATE_PREVIOUS_LEAVES)
        return false;
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        const struct cr_domain_object *object = &ctx->world->objects[i];
        if (!object->is_leaf || !cr_streq(cr_domain_leaf_of(ctx, i)->name, rejected->leaf))
            continue;
        if (cr_domain_needs_distrusted(ctx, &object->published))
            return false;
        return cr_domain_leaf_of(ctx, i)->source == CR_LEAF_ISSUE || !object->source.found ||
               strcmp(object->source.fingerprint, rejected->fingerprint) == 0;
    }
    return false;
}

static void forget_rejections(struct domain_ctx *ctx)
{
    struct cr_domain_status *status = &ctx->plan->status;
    size_t kept = 0;
    for (size_t i = 0; i < status->rejected_len; i++) {
        if (is_effective(ctx, &status->rejected[i]))
            status->rejected[kept++] = status->rejected[i];
        else
            free(status->rejected[i].leaf);
    }
    status->rejected_len = kept;
}

static void reject(struct domain_ctx *ctx, size_t object)
{
    const struct cr_domain_leaf *leaf = cr_domain_leaf_of(ctx, object);
    const struct cr_domain_object *view = &ctx->world->objects[object];
    struct cr_domain_status *status = &ctx->plan->status;
    if (rejection_of(ctx, leaf->name))
        return;
    status->rejected = cr_reallocarray(status->rejected, status->rejected_len + 1, sizeof *status->rejected);
    struct cr_domain_rejected *added = &status->rejected[status->rejected_len++];
    *added = (struct cr_domain_rejected){.leaf = cr_strdup(leaf->name)};
    const char *bad =
        leaf->source == CR_LEAF_MIRROR && view->source.found ? view->source.fingerprint : view->published.fingerprint;
    memcpy(added->fingerprint, bad, sizeof added->fingerprint);
    ctx->plan->record_first = true;
}

bool cr_domain_is_put_back(const struct domain_ctx *ctx, size_t object)
{
    return rejection_of(ctx, cr_domain_leaf_of(ctx, object)->name) != NULL;
}

/* --- PreviousLeaves --- */

static bool is_back(const struct cr_domain_object *object)
{
    return object->published.found && strcmp(object->previous.fingerprint, object->published.fingerprint) == 0;
}

static bool is_to_be_put_back(const struct domain_ctx *ctx, size_t object)
{
    const struct cr_domain_object *view = &ctx->world->objects[object];
    return cr_domain_token_is_new(ctx, CR_ROTATE_PREVIOUS_LEAVES) && cr_domain_keeps_cas(view) &&
           cr_domain_is_usable(&view->previous) && view->previous.not_after_ms > ctx->world->now_ms && !is_back(view) &&
           !cr_domain_needs_distrusted(ctx, &view->previous);
}

bool cr_domain_puts_back(const struct domain_ctx *ctx, size_t object)
{
    return !ctx->world->objects[object].refused && is_to_be_put_back(ctx, object);
}

/* Rejected first, then put back, then the token is handled: a process that is killed in between goes on from there. A
 * leaf that may not be written now is tried again, so the token is not handled yet. */
static void put_back(struct domain_ctx *ctx)
{
    bool pending = false;
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        if (!is_to_be_put_back(ctx, i))
            continue;
        if (cr_domain_puts_back(ctx, i))
            reject(ctx, i);
        pending = true;
    }
    if (pending)
        return;
    if (ctx->plan->status.rejected_len)
        cr_domain_say(ctx, false, "PutBack",
                      cr_asprintf("The previous leaves are back (%zu); what they replace is not published again before "
                                  "its source or spec.rotate changes",
                                  ctx->plan->status.rejected_len));
    else
        cr_domain_say(ctx, true, "NothingToPutBack",
                      cr_strdup("spec.rotate asks for the previous leaves, and none is kept: they are kept while a "
                                "rotation is under way"));
    cr_strset(&ctx->plan->status.last_handled_token, ctx->world->domain->rotate_token);
    ctx->plan->record_first = true;
}

/* --- the others --- */

static bool have_all_leaves_it(const struct domain_ctx *ctx)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        const struct cr_domain_object *object = &ctx->world->objects[i];
        if (cr_domain_keeps_cas(object) && cr_domain_leaf_of(ctx, i)->source == CR_LEAF_ISSUE &&
            !cr_streq(object->token, ctx->world->domain->rotate_token))
            return false;
    }
    return true;
}

/* The CA that is made for it carries it, so nothing is lost before this is on record; at the latest with its end. */
static bool is_handled(const struct domain_ctx *ctx)
{
    const struct cr_domain *domain = ctx->world->domain;
    const struct cr_domain_authority_view *authority = &ctx->world->authority;
    if (domain->authority != CR_AUTHORITY_ISSUE)
        return true; /* CAs and leaves belong to another program */
    if (domain->rotate == CR_ROTATE_CA)
        return authority->next == CR_DOMAIN_CA_USABLE && cr_streq(authority->next_token, domain->rotate_token);
    return have_all_leaves_it(ctx);
}

/* A status that was never written, or was lost, remembers no token. Where something is published already nothing is
 * rotated for want of that memory. */
static bool is_first_sight(const struct domain_ctx *ctx)
{
    if (ctx->world->status->observed_generation)
        return false;
    for (size_t i = 0; i < ctx->world->objects_len; i++)
        if (cr_domain_is_there(ctx, i))
            return !ctx->world->staging_found;
    return false;
}

void cr_domain_plan_tokens(struct domain_ctx *ctx)
{
    enum cr_rotate_what what = ctx->world->domain->rotate;
    if (ctx->may_record)
        forget_rejections(ctx);
    if (!cr_domain_token_is_new(ctx, what))
        return;
    if (is_first_sight(ctx) || (what != CR_ROTATE_PREVIOUS_LEAVES && is_handled(ctx))) {
        cr_strset(&ctx->plan->status.last_handled_token, ctx->world->domain->rotate_token);
        ctx->plan->record_first = true;
    } else if (what == CR_ROTATE_PREVIOUS_LEAVES) {
        put_back(ctx);
    }
}
