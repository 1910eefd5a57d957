/* Which CAs there must be: those of sources, or the domain's own and the next one. */
#include "trust/rules/domain_plan_internal.h"

#include "base/alloc.h"
#include "base/strings.h"

/* --- the CAs that every bundle has --- */

static bool is_usable(const struct domain_ctx *ctx, enum cr_domain_ca_state state, size_t ca)
{
    return state == CR_DOMAIN_CA_USABLE && ca < ctx->world->cas_len && !cr_domain_is_expired(ctx, ca);
}

static void mark(struct domain_ctx *ctx, size_t ca, bool newest)
{
    if (ctx->distrusted[ca])
        return;
    ctx->current[ca] = true;
    ctx->newest[ca] = ctx->newest[ca] || newest;
}

static void mark_own(struct domain_ctx *ctx)
{
    const struct cr_domain_authority_view *authority = &ctx->world->authority;
    ctx->has_current = is_usable(ctx, authority->current, authority->current_ca);
    /* Once it is in the CA Secret, staging may have it still. */
    ctx->has_next = is_usable(ctx, authority->next, authority->next_ca) && !ctx->distrusted[authority->next_ca] &&
                    !(ctx->has_current && authority->next_ca == authority->current_ca);
    if (ctx->has_next)
        mark(ctx, authority->next_ca, true);
    if (ctx->has_current)
        mark(ctx, authority->current_ca, !ctx->has_next);
}

static void mark_sources(struct domain_ctx *ctx)
{
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        if (ctx->world->cas[ca].in_source && !cr_domain_is_expired(ctx, ca))
            mark(ctx, ca, true);
}

static void mark_published(struct domain_ctx *ctx)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++)
        for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
            if (!cr_domain_is_foreign(&ctx->world->objects[i]) && cr_domain_has_ca(&ctx->world->objects[i], ca))
                ctx->anywhere[ca] = true;
}

/* --- another one --- */

/* A word, or NULL: none is needed. */
static const char *why_next(struct domain_ctx *ctx)
{
    const struct cr_domain *domain = ctx->world->domain;
    const struct cr_domain_authority_view *authority = &ctx->world->authority;
    if (!ctx->has_current)
        return "the current one cannot be used";
    if (cr_domain_token_is_new(ctx, CR_ROTATE_CA))
        return "spec.rotate asks for it";
    if (ctx->distrusted[authority->current_ca])
        return "spec.distrust lists the current one";
    const struct cr_domain_ca *ca = &ctx->world->cas[authority->current_ca];
    cr_domain_requeue_at(
        ctx, cr_domain_renewal_ms(&domain->ca.life, ca->not_before_ms, ca->not_after_ms, cr_or_empty(domain->uid)));
    if (cr_domain_is_due(&domain->ca.life, ca->not_before_ms, ca->not_after_ms, cr_or_empty(domain->uid), INT64_MAX,
                         ctx->world->now_ms))
        return "the current one is due for renewal";
    return NULL;
}

/* A new domain has what its token asks for. */
static void make_first(struct domain_ctx *ctx)
{
    ctx->plan->first_ca = true;
    if (!cr_domain_token_is_new(ctx, CR_ROTATE_CA))
        return;
    cr_strset(&ctx->plan->status.last_handled_token, ctx->world->domain->rotate_token);
    ctx->plan->record_first = true;
}

static void renew(struct domain_ctx *ctx)
{
    const struct cr_domain_authority_view *authority = &ctx->world->authority;
    bool next_distrusted = is_usable(ctx, authority->next, authority->next_ca) && ctx->distrusted[authority->next_ca];
    if (authority->next != CR_DOMAIN_CA_ABSENT && !next_distrusted)
        return; /* one is on its way; or it is broken, and a person is asked */
    if (authority->current == CR_DOMAIN_CA_ABSENT) {
        make_first(ctx);
        return;
    }
    const char *why = why_next(ctx);
    if (!why)
        return;
    if (authority->cannot_renew) {
        ctx->renewal_refused = true;
        return;
    }
    ctx->plan->stage_next_ca = true;
    cr_domain_say(ctx, false, "NextCA", cr_asprintf("A new CA is made: %s", why));
}

void cr_domain_plan_authority(struct domain_ctx *ctx)
{
    mark_sources(ctx);
    mark_published(ctx);
    if (ctx->world->domain->authority != CR_AUTHORITY_ISSUE)
        return;
    mark_own(ctx);
    renew(ctx);
}
