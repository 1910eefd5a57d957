/* Windows: when restarts may begin. */
#include "rotation/plan_internal.h"

#include "base/alloc.h"
#include "base/clock.h"

struct cr_schedule cr_plan_schedule(const struct plan_ctx *ctx)
{
    const struct cr_policy *policy = ctx->world->policy;
    struct cr_window windows[CR_POLICY_WINDOWS_MAX];
    for (size_t i = 0; i < policy->restart.windows_len; i++)
        windows[i] = (struct cr_window){.cron = &policy->restart.windows[i].opens,
                                        .zone = ctx->world->zones[i],
                                        .duration_ms = policy->restart.windows[i].duration_ms};
    return cr_schedule_judge(windows, policy->restart.windows_len, policy->uid, ctx->world->now_ms);
}

/* When what the old pods have in use ends, of what a restart would replace: a leaf, or the CA that lasts longest. 0: no
 * certificate is. */
static int64_t in_use_until_ms(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    int64_t first_ms = 0;
    for (size_t k = 0; k < ctx->changes_len; k++) {
        const struct cr_material *settled = &ctx->pending[k]->settled;
        unsigned classes = consumer->changes[k].classes;
        int64_t end_ms = 0;
        if ((classes & CR_CLASS_LEAF) && settled->has_leaf)
            end_ms = settled->not_after_ms;
        else if (classes & CR_CLASS_TRUST)
            end_ms = cr_material_summarize_trust(settled).not_after_ms;
        if (end_ms && (!first_ms || end_ms < first_ms))
            first_ms = end_ms;
    }
    return first_ms;
}

static char *opens_at(const struct plan_ctx *ctx, const struct cr_schedule *schedule)
{
    return cr_schedule_time(ctx->world->zones[schedule->window],
                            ctx->world->policy->restart.windows[schedule->window].time_zone, schedule->next_ms);
}

/* Time alone would let the certificate end: a person should know. */
static struct cr_gate describe(const struct plan_ctx *ctx, const struct cr_schedule *schedule, int64_t end_ms,
                               int64_t lifted_ms)
{
    if (schedule->next_ms == CR_SCHEDULE_NEVER)
        return cr_gate_make(CR_HOLD_WINDOW_NEVER, "restart.windows: none of them opens any more");
    cr_autofree char *opens = opens_at(ctx, schedule);
    if (!end_ms || schedule->next_ms < end_ms || lifted_ms < end_ms)
        return cr_gate_make(CR_HOLD_WINDOW, "restart.windows: opens at %s", opens);
    char end[CR_TIME_TEXT];
    cr_time_format(end_ms, end);
    return cr_gate_make(CR_HOLD_WINDOW_TOO_LATE,
                        "restart.windows: the certificate in use ends at %s, and the next opens at %s: set "
                        "restart.overrideWindowBeforeExpiry to have it replaced before",
                        end, opens);
}

struct cr_gate cr_plan_window(const struct plan_question *q)
{
    const struct cr_policy_restart *restart = &q->ctx->world->policy->restart;
    const struct cr_schedule *schedule = &q->ctx->schedule;
    int64_t now = q->ctx->world->now_ms;
    if (!restart->windows_len)
        return CR_GATE_OPEN;
    int64_t end_ms = in_use_until_ms(q->ctx, q->consumer);
    int64_t lifted_ms = CR_SCHEDULE_NEVER;
    if (end_ms && restart->override_window_ms != CR_POLICY_NO_OVERRIDE)
        lifted_ms = end_ms - restart->override_window_ms;
    if (schedule->open || lifted_ms <= now)
        return CR_GATE_OPEN;
    int64_t due = schedule->next_ms < lifted_ms ? schedule->next_ms : lifted_ms;
    struct cr_gate gate = describe(q->ctx, schedule, end_ms, lifted_ms);
    gate.look_again_ms = cr_plan_by_clock_ms(due - now);
    return gate;
}
