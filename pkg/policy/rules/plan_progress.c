/* Reconciling and Stalled: what a tool that waits until an object is healthy reads (kstatus, and with it Flux; the
 * health check for Argo CD). Reconciling: it is not done and goes on by itself. Stalled: it does not
 * go on before somebody mends it. Neither: it is done, or it waits for what the user has arranged (a window, suspend,
 * restart.method: Never), or whoever waits for health would hang for as long as that lasts. */
#include "policy/rules/plan_internal.h"

#include "base/buffer.h"
#include "base/strings.h"

static void set(struct plan_ctx *ctx, const char *type, bool value, const char *reason, const char *message)
{
    cr_status_condition(&ctx->plan->status, type, value, reason, message, ctx->world->policy->generation,
                        ctx->world->now_ms - ctx->world->now_ms % 1000);
}

static bool is_done(const struct cr_consumer_status *consumer)
{
    return consumer->state == CR_CONSUMER_IDLE || consumer->state == CR_CONSUMER_CONVERGED ||
           consumer->state == CR_CONSUMER_ABSENT;
}

/* While nothing may be done (suspend, mode Plan) nothing is asked of pods either, so that nobody is late. */
static enum cr_hold_health health_of(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    enum cr_hold_health health = cr_hold_health(consumer->status->gate.hold);
    if (!cr_plan_may_act(ctx))
        return CR_HOLD_WAITS;
    return health == CR_HOLD_PASSES && cr_plan_is_late(ctx, consumer) ? CR_HOLD_STUCK : health;
}

/* The consumers that are not done and are held in this way: the first of them, and in words all of them. */
static const struct plan_consumer *add_consumers(const struct plan_ctx *ctx, enum cr_hold_health health,
                                                 struct cr_buf *text)
{
    const struct plan_consumer *first = NULL;
    for (size_t i = 0; i < ctx->consumers_len; i++) {
        const struct cr_consumer_status *status = ctx->consumers[i].status;
        if (is_done(status) || health_of(ctx, &ctx->consumers[i]) != health)
            continue;
        first = first ? first : &ctx->consumers[i];
        cr_buf_printf(text, "%s%s is %s", text->len ? "; " : "", status->name, cr_consumer_state_name(status->state));
        if (status->gate.text)
            cr_buf_printf(text, ": %s", status->gate.text);
    }
    return first;
}

static const char *message_of(const struct plan_ctx *ctx, const char *type)
{
    const struct cr_condition *condition = cr_status_condition_get(&ctx->plan->status, type);
    return condition ? cr_or_empty(condition->message) : "";
}

static const char *reason_of(const struct plan_consumer *stuck)
{
    enum cr_hold hold = stuck->status->gate.hold;
    return cr_hold_health(hold) == CR_HOLD_STUCK ? cr_hold_name(hold) : cr_hold_name(CR_HOLD_NOT_VERIFIED);
}

static bool set_stalled(struct plan_ctx *ctx, const struct plan_progress *progress)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    const struct plan_consumer *consumer = add_consumers(ctx, CR_HOLD_STUCK, &text);
    if (consumer)
        set(ctx, "Stalled", true, reason_of(consumer), cr_buf_text(&text));
    else if (progress->stuck.reason)
        set(ctx, "Stalled", true, progress->stuck.reason, message_of(ctx, progress->stuck.condition));
    else
        set(ctx, "Stalled", false, "NotStalled", "Nothing has to be mended before it goes on.");
    return consumer || progress->stuck.reason;
}

static bool is_rotating(const struct plan_ctx *ctx)
{
    const struct cr_condition *rotating = cr_status_condition_get(&ctx->plan->status, "Rotating");
    return rotating && rotating->status;
}

void cr_plan_progress(struct plan_ctx *ctx, const struct plan_progress *progress)
{
    CR_CLEANUP(cr_buf) struct cr_buf goes_on = CR_BUF_INIT(0);
    CR_CLEANUP(cr_buf) struct cr_buf waits = CR_BUF_INIT(0);
    bool stalled = set_stalled(ctx, progress);
    bool any_goes_on = add_consumers(ctx, CR_HOLD_PASSES, &goes_on);
    bool any_waits = add_consumers(ctx, CR_HOLD_WAITS, &waits);
    if (stalled)
        set(ctx, "Reconciling", false, "Stalled", message_of(ctx, "Stalled"));
    else if (progress->unmet)
        set(ctx, "Reconciling", true, progress->unmet, message_of(ctx, "Converged"));
    else if (any_goes_on)
        set(ctx, "Reconciling", true, "InProgress", cr_buf_text(&goes_on));
    else if (any_waits)
        set(ctx, "Reconciling", false, "Waiting", cr_buf_text(&waits));
    else if (is_rotating(ctx) && !cr_plan_may_act(ctx))
        set(ctx, "Reconciling", false, "Waiting", "spec.suspend or mode Plan: the change is not put on record.");
    else if (is_rotating(ctx))
        set(ctx, "Reconciling", true, "InProgress", message_of(ctx, "Converged"));
    else
        set(ctx, "Reconciling", false, "Idle", "Nothing is to be done.");
}
