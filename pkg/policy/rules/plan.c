#include "policy/rules/plan.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "policy/rules/look_again.h"
#include "policy/rules/plan_internal.h"

void cr_plan_requeue(struct cr_plan *plan, int64_t after_ms)
{
    if (after_ms < 1)
        after_ms = 1;
    if (plan->requeue_after_ms == 0 || after_ms < plan->requeue_after_ms)
        plan->requeue_after_ms = after_ms;
}

void cr_plan_requeue_restart(struct cr_plan *plan, int64_t after_ms)
{
    cr_plan_requeue(plan, after_ms);
    if (plan->restart_after_ms == 0 || after_ms < plan->restart_after_ms)
        plan->restart_after_ms = after_ms;
}

/* A wait is measured on a clock that is never set. */
int64_t cr_plan_by_clock_ms(int64_t after_ms)
{
    enum { LOOK_AGAIN_MS = 60 * 60 * 1000 };
    return after_ms < LOOK_AGAIN_MS ? after_ms : LOOK_AGAIN_MS;
}

int64_t cr_plan_precaution_ms(const struct plan_ctx *ctx, const struct plan_consumer *consumer, int64_t first_ms)
{
    return cr_look_again_ms(first_ms, ctx->world->now_ms - cr_plan_last_progress_ms(consumer));
}

void cr_plan_look_again(struct plan_ctx *ctx, const struct plan_consumer *consumer, int64_t first_ms)
{
    cr_plan_requeue(ctx->plan, cr_plan_precaution_ms(ctx, consumer, first_ms));
}

void cr_plan_look_again_restart(struct plan_ctx *ctx, const struct plan_consumer *consumer, int64_t first_ms)
{
    cr_plan_requeue_restart(ctx->plan, cr_plan_precaution_ms(ctx, consumer, first_ms));
}

static void restart_dispose(struct cr_plan_restart *restart)
{
    cr_json_free(restart->annotations);
    free(restart->why);
    free(restart->secrets);
    free(restart->rotations);
    free(restart->warning);
    *restart = (struct cr_plan_restart){0};
}

static void drop_restarts(struct cr_plan *plan)
{
    for (size_t i = 0; i < plan->restarts_len; i++)
        restart_dispose(&plan->restarts[i]);
    free(plan->restarts);
    plan->restarts = NULL;
    plan->restarts_len = 0;
}

/* Nothing may be done before it is on record what it is done for. */
static void drop_acts(struct cr_plan *plan)
{
    drop_restarts(plan);
    plan->nudges_len = plan->probes_len = plan->evictions_len = 0;
}

void cr_plan_make(const struct cr_world *world, struct cr_plan *plan)
{
    *plan = (struct cr_plan){0};
    cr_policy_status_copy(&plan->status, world->status);
    plan->status.observed_generation = world->policy->generation;

    struct plan_ctx ctx = {.world = world, .plan = plan};
    cr_plan_names_make(&ctx);
    cr_plan_secrets(&ctx);
    cr_plan_consumers(&ctx);
    if (!plan->record_first)
        cr_plan_settle(&ctx);
    cr_plan_verification(&ctx);
    CR_CLEANUP(plan_reported) struct plan_reported reported = cr_plan_conditions(&ctx);
    cr_plan_events(&ctx, &reported);
    if (plan->record_first)
        drop_acts(plan);

    cr_plan_consumers_dispose(&ctx);
    cr_plan_names_dispose(&ctx);
    free(ctx.changes);
    free(ctx.pending);
}

/* --- restarts before the record --- */

/* What is settled is on record, unless it is a first sight or what another policy remembers. */
static bool is_settled(const struct cr_policy_status *recorded, const char *secret)
{
    for (size_t i = 0; i < recorded->secrets_len; i++)
        if (cr_streq(recorded->secrets[i].name, secret))
            return recorded->secrets[i].has_settled;
    return false;
}

static bool may_precede(const struct cr_policy_status *recorded, const struct cr_plan_restart *restart)
{
    cr_autofree char *names = cr_strdup(restart->secrets);
    char *rest = names;
    for (char *name; (name = strsep(&rest, ","));)
        if (!is_settled(recorded, name))
            return false;
    return restart->carries_memory;
}

/* Its template shows one restart only; the one before would be forgotten with it. */
static bool overwrites_none(const struct cr_policy_status *recorded, const struct cr_plan *plan,
                            const struct cr_plan_restart *restart)
{
    return cr_plan_restarts_are_recorded(recorded, &plan->status.consumers[restart->consumer]);
}

/* A restart is one write together with its own memory, so it need not wait for another one: what a crash in between
 * leaves is found by its annotation. What is lost by that, and when it is not allowed, is in docs/decisions.md, "Before
 * it is on record". */
void cr_plan_ahead(const struct cr_world *world, const struct cr_plan *first, struct cr_plan *out)
{
    struct cr_world as_if = *world;
    as_if.status = &first->status;
    cr_plan_make(&as_if, out);
    out->nudges_len = out->probes_len = out->evictions_len = 0;
    size_t kept = 0;
    for (size_t i = 0; i < out->restarts_len; i++) {
        if (may_precede(world->status, &out->restarts[i]) && overwrites_none(world->status, out, &out->restarts[i]))
            out->restarts[kept++] = out->restarts[i];
        else
            restart_dispose(&out->restarts[i]);
    }
    out->restarts_len = kept;
}

void cr_plan_dispose(struct cr_plan *plan)
{
    cr_policy_status_dispose(&plan->status);
    drop_restarts(plan);
    free(plan->under_way);
    free(plan->evicting);
    free(plan->nudges);
    free(plan->probes);
    free(plan->evictions);
    for (size_t i = 0; i < plan->events_len; i++) {
        free(plan->events[i].message);
        free(plan->events[i].secret);
    }
    free(plan->events);
    *plan = (struct cr_plan){0};
}

/* --- a policy that nothing is planned for --- */

static void not_ready(const struct cr_policy_status *before, int64_t generation, const char *reason,
                      const char *problem, int64_t now_ms, struct cr_policy_status *out)
{
    cr_policy_status_copy(out, before);
    out->observed_generation = generation;
    out->stage = CR_STAGE_HELD;
    cr_status_condition(out, "Ready", false, reason, problem, generation, now_ms);
    cr_status_condition_unknown(out, "Converged", reason, "Nothing is looked at.", generation, now_ms);
    cr_status_condition(out, "Reconciling", false, "Stalled", "Nothing is looked at.", generation, now_ms);
    cr_status_condition(out, "Stalled", true, reason, problem, generation, now_ms);
}

void cr_plan_invalid(const struct cr_policy_status *before, int64_t generation, const char *problem, int64_t now_ms,
                     struct cr_policy_status *out)
{
    not_ready(before, generation, "Invalid", problem, now_ms, out);
}

void cr_plan_unseen(const struct cr_policy_status *before, int64_t generation, const char *problem, int64_t now_ms,
                    struct cr_policy_status *out)
{
    not_ready(before, generation, "CannotWatch", problem, now_ms, out);
}
