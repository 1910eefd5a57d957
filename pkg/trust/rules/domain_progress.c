/* Reconciling and Stalled of a domain, as in policy/rules/plan_progress.c: it goes on by itself; it does not go on
 * before somebody mends it; neither: it is done, or waits for what users have arranged. */
#include "trust/rules/domain_plan_internal.h"

#include "base/strings.h"

static void set(struct domain_ctx *ctx, const char *type, bool value, const char *reason, const char *message)
{
    cr_domain_status_condition(&ctx->plan->status, type, value, reason, message, ctx->world->domain->generation,
                               ctx->world->now_ms - ctx->world->now_ms % 1000);
}

static const struct cr_condition *get(const struct domain_ctx *ctx, const char *type)
{
    return cr_domain_status_condition_get(&ctx->plan->status, type);
}

static bool is_true(const struct domain_ctx *ctx, const char *type)
{
    const struct cr_condition *condition = get(ctx, type);
    return condition && condition->status;
}

/* Among the objects that are not written as they should be. */
static bool any_problem(const struct domain_ctx *ctx, bool may_come)
{
    for (size_t i = 0; i < ctx->plan->status.objects_len; i++) {
        enum cr_trust_reason problem = ctx->plan->status.objects[i].problem;
        if (problem && !cr_domain_is_contested(ctx, i) && cr_trust_may_come(problem) == may_come)
            return true;
    }
    return false;
}

static bool is_authority_broken(const struct domain_ctx *ctx)
{
    const struct cr_domain_authority_view *authority = &ctx->world->authority;
    return ctx->world->domain->authority == CR_AUTHORITY_ISSUE &&
           (authority->current == CR_DOMAIN_CA_BROKEN || authority->next == CR_DOMAIN_CA_BROKEN ||
            ctx->renewal_refused);
}

/* Of one that waits: for its own readers, or with its next leaf for those of another object. */
static enum cr_hold_health health_of(const struct domain_ctx *ctx, size_t at)
{
    const struct domain_leaf *leaf = &ctx->leaves[at];
    size_t on = leaf->waits ? leaf->waits_on : at;
    if (leaf->waits && cr_domain_is_foreign(&ctx->world->objects[on]))
        return CR_HOLD_STUCK;
    const struct cr_domain_evidence *evidence = cr_domain_evidence_of(ctx, on);
    return evidence && evidence->why ? evidence->health : CR_HOLD_PASSES;
}

static bool is_writing(const struct domain_ctx *ctx)
{
    const struct cr_domain_plan *plan = ctx->plan;
    return plan->writes_len || plan->stage_next_ca || plan->first_ca || plan->promote_ca;
}

/* The worst of all that wait. A leaf that is held back waits for what others do, which are counted. */
static enum cr_hold_health health_of_objects(const struct domain_ctx *ctx)
{
    enum cr_hold_health worst = CR_HOLD_WAITS;
    size_t waiting = 0;
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        if (!ctx->plan->status.objects[i].waits_for || ctx->leaves[i].held_back)
            continue;
        worst = cr_hold_worse(worst, health_of(ctx, i));
        waiting++;
    }
    return waiting && !is_writing(ctx) ? worst : cr_hold_worse(worst, CR_HOLD_PASSES);
}

/* A deadline that passes while consumers wait as arranged (a window) needs nobody. */
static bool is_held_for_a_person(const struct domain_ctx *ctx, enum cr_hold_health health)
{
    const struct cr_condition *held = get(ctx, "Held");
    return held && held->status && !cr_streq(held->reason, CR_DOMAIN_PUT_BACK) &&
           (ctx->failed || health != CR_HOLD_WAITS);
}

static bool lists_unknown_ca(const struct domain_ctx *ctx)
{
    const struct cr_condition *distrusted = get(ctx, "Distrusted");
    return distrusted && cr_streq(distrusted->reason, CR_DOMAIN_UNKNOWN_CA);
}

/* The condition that says why; NULL: nothing has to be mended. */
static const struct cr_condition *stuck_by(const struct domain_ctx *ctx, enum cr_hold_health health)
{
    if (is_authority_broken(ctx) || any_problem(ctx, false))
        return get(ctx, "Degraded");
    if (is_held_for_a_person(ctx, health))
        return get(ctx, "Held");
    if (lists_unknown_ca(ctx))
        return get(ctx, "Distrusted");
    if (ctx->world->beyond.objects && !ctx->world->domain->suspend)
        return get(ctx, "Ready");
    return health == CR_HOLD_STUCK ? get(ctx, "Converged") : NULL;
}

static bool is_done(const struct domain_ctx *ctx)
{
    bool distrusts = cr_domain_status_distrusts_since_ms(&ctx->plan->status);
    return (is_true(ctx, "Converged") || !ctx->world->objects_len) && !is_true(ctx, "Rotating") && !is_writing(ctx) &&
           !distrusts && !any_problem(ctx, true);
}

static void set_stalled(struct domain_ctx *ctx, const struct cr_condition *why)
{
    if (why)
        set(ctx, "Stalled", true, why->reason, cr_or_empty(why->message));
    else
        set(ctx, "Stalled", false, "NotStalled", "Nothing has to be mended before it goes on.");
}

void cr_domain_plan_progress(struct domain_ctx *ctx)
{
    enum cr_hold_health health = health_of_objects(ctx);
    const struct cr_condition *stuck = stuck_by(ctx, health);
    const struct cr_condition *converged = get(ctx, "Converged");
    const char *words = converged ? cr_or_empty(converged->message) : "";
    set_stalled(ctx, stuck);
    if (stuck)
        set(ctx, "Reconciling", false, "Stalled", cr_or_empty(stuck->message));
    else if (is_done(ctx))
        set(ctx, "Reconciling", false, "Idle", "Nothing is to be done.");
    else if (ctx->world->domain->suspend || (health == CR_HOLD_WAITS && !any_problem(ctx, true)))
        set(ctx, "Reconciling", false, "Waiting", words);
    else
        set(ctx, "Reconciling", true, "InProgress", words);
}
