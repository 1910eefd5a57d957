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
    return evidence && !leaf->held_back ? evidence->health : CR_HOLD_PASSES;
}

/* The worst of all that wait; nothing waits while there is still something to be written. */
static enum cr_hold_health health_of_objects(const struct domain_ctx *ctx)
{
    enum cr_hold_health worst = CR_HOLD_WAITS;
    size_t waiting = 0;
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        if (!ctx->plan->status.objects[i].waits_for)
            continue;
        enum cr_hold_health health = health_of(ctx, i);
        worst = health > worst ? health : worst;
        waiting++;
    }
    return waiting ? worst : CR_HOLD_PASSES;
}

/* The condition that says why; NULL: nothing has to be mended. */
static const struct cr_condition *stuck_by(const struct domain_ctx *ctx, enum cr_hold_health health)
{
    if (is_authority_broken(ctx) || any_problem(ctx, false))
        return get(ctx, "Degraded");
    if (is_true(ctx, "Held") && !ctx->is_put_back)
        return get(ctx, "Held");
    return health == CR_HOLD_STUCK ? get(ctx, "Converged") : NULL;
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
    bool is_done = is_true(ctx, "Converged") || !ctx->world->objects_len;
    bool is_missing = any_problem(ctx, true);
    set_stalled(ctx, stuck);
    if (stuck)
        set(ctx, "Reconciling", false, "Stalled", cr_or_empty(stuck->message));
    else if (is_done && !is_missing)
        set(ctx, "Reconciling", false, "Idle", "Nothing is to be done.");
    else if (ctx->world->domain->suspend || (!is_missing && health == CR_HOLD_WAITS))
        set(ctx, "Reconciling", false, "Waiting", words);
    else
        set(ctx, "Reconciling", true, converged ? converged->reason : "InProgress", words);
}
