#include "trust/rules/domain_plan_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

/* Which CAs there must be: those of sources, or the domain's own and the next one. */

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

bool cr_domain_is_next_over(const struct domain_ctx *ctx)
{
    const struct cr_domain_authority_view *authority = &ctx->world->authority;
    return authority->next_ca < ctx->world->cas_len &&
           (cr_domain_is_expired(ctx, authority->next_ca) || ctx->distrusted[authority->next_ca]);
}

static void renew(struct domain_ctx *ctx)
{
    const struct cr_domain_authority_view *authority = &ctx->world->authority;
    if (authority->next != CR_DOMAIN_CA_ABSENT && !cr_domain_is_next_over(ctx))
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

static void plan_authority(struct domain_ctx *ctx)
{
    mark_sources(ctx);
    mark_published(ctx);
    if (ctx->world->domain->authority != CR_AUTHORITY_ISSUE)
        return;
    mark_own(ctx);
    renew(ctx);
}

enum { LOOK_AGAIN_MS = 30 * 1000 };

/* --- its parts --- */

static void init(struct domain_ctx *ctx, const struct cr_domain_world *world, struct cr_domain_plan *plan)
{
    size_t cas = world->cas_len + 1;
    size_t objects = world->objects_len + 1;
    *ctx = (struct domain_ctx){.world = world, .plan = plan, .may_record = !world->domain->suspend};
    ctx->current = cr_calloc(cas, sizeof *ctx->current);
    ctx->newest = cr_calloc(cas, sizeof *ctx->newest);
    ctx->anywhere = cr_calloc(cas, sizeof *ctx->anywhere);
    ctx->needed = cr_calloc(cas, sizeof *ctx->needed);
    ctx->retained = cr_calloc(cas, sizeof *ctx->retained);
    ctx->distrusted = cr_calloc(cas, sizeof *ctx->distrusted);
    ctx->stray = cr_calloc(cas, sizeof *ctx->stray);
    ctx->unrecorded = cr_calloc(objects, sizeof *ctx->unrecorded);
    ctx->leaves = cr_calloc(objects, sizeof *ctx->leaves);
    ctx->bundles = cr_calloc(objects * cas, sizeof *ctx->bundles);
}

static void dispose(struct domain_ctx *ctx)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++)
        free(ctx->leaves[i].problem_text);
    free(ctx->current);
    free(ctx->newest);
    free(ctx->anywhere);
    free(ctx->needed);
    free(ctx->retained);
    free(ctx->distrusted);
    free(ctx->stray);
    free(ctx->unrecorded);
    free(ctx->leaves);
    free(ctx->bundles);
}

static void drop_writes(struct cr_domain_plan *plan)
{
    for (size_t i = 0; i < plan->writes_len; i++)
        free(plan->writes[i].bundle);
    free(plan->writes);
    plan->writes = NULL;
    plan->writes_len = 0;
}

static void drop_acts(struct cr_domain_plan *plan)
{
    drop_writes(plan);
    plan->stage_next_ca = plan->first_ca = plan->promote_ca = plan->delete_staging = false;
}

static void dispose_events(struct cr_domain_plan *plan)
{
    for (size_t i = 0; i < plan->events_len; i++)
        free(plan->events[i].message);
    free(plan->events);
    plan->events = NULL;
    plan->events_len = 0;
}

void cr_domain_plan_dispose(struct cr_domain_plan *plan)
{
    if (!plan)
        return;
    cr_domain_status_dispose(&plan->status);
    drop_writes(plan);
    dispose_events(plan);
    *plan = (struct cr_domain_plan){0};
}

/* --- the plan --- */

static void compute(struct domain_ctx *ctx)
{
    cr_domain_plan_objects(ctx);
    cr_domain_plan_distrust(ctx);
    cr_domain_plan_tokens(ctx);
    plan_authority(ctx);
    cr_domain_plan_arrivals(ctx);
    cr_domain_plan_leaves(ctx);
    cr_domain_plan_bundles(ctx);
    cr_domain_plan_writes(ctx);
    cr_domain_plan_stage(ctx);
    cr_domain_plan_report(ctx);
    cr_domain_plan_distrust_end(ctx);
    cr_domain_plan_conditions(ctx);
    cr_domain_plan_progress(ctx);
}

/* What was seen before says nothing of now. */
static void set_unready(struct cr_domain_status *status, const char *reason, const char *problem, int64_t generation,
                        int64_t now_ms)
{
    cr_domain_status_condition(status, "Ready", false, reason, problem, generation, now_ms - now_ms % 1000);
    cr_domain_status_condition(status, "Converged", false, reason, problem, generation, now_ms - now_ms % 1000);
    cr_domain_status_condition(status, "Reconciling", false, "Stalled", problem, generation, now_ms - now_ms % 1000);
    cr_domain_status_condition(status, "Stalled", true, reason, problem, generation, now_ms - now_ms % 1000);
}

void cr_domain_plan_make(const struct cr_domain_world *world, struct cr_domain_plan *plan)
{
    *plan = (struct cr_domain_plan){0};
    cr_domain_status_copy(&plan->status, world->status);
    if (world->domain->deleting)
        return;
    if (plan->status.observed_generation != world->domain->generation)
        cr_domain_forget_other_writers(&plan->status);
    plan->status.observed_generation = world->domain->generation;
    if (world->problem) {
        const char *reason = world->problem_reason ? cr_trust_reason_name(world->problem_reason) : "CannotRead";
        set_unready(&plan->status, reason, world->problem, world->domain->generation, world->now_ms);
        plan->requeue_after_ms = LOOK_AGAIN_MS;
        return;
    }
    plan->status.forecast = world->forecast;
    struct domain_ctx ctx;
    init(&ctx, world, plan);
    compute(&ctx);
    dispose(&ctx);
    if (!world->domain->suspend)
        return;
    drop_acts(plan);
    dispose_events(plan);
}

void cr_domain_plan_invalid(const struct cr_domain_status *before, int64_t generation, const char *problem,
                            int64_t now_ms, struct cr_domain_status *out)
{
    *out = (struct cr_domain_status){0};
    cr_domain_status_copy(out, before);
    out->observed_generation = generation;
    set_unready(out, "Invalid", problem, generation, now_ms);
}
