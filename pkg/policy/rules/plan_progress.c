/* Reconciling and Stalled: what a tool that waits until an object is healthy reads (kstatus, and with it Flux, Helm and
 * kubectl wait; the health check for Argo CD). Reconciling: it is not done and goes on by itself. Stalled: it does not
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

/* The consumers that are not done and are held in this way: the first of them, and in words all of them. */
static const struct cr_consumer_status *add_consumers(const struct cr_policy_status *status, enum cr_hold_health health,
                                                      struct cr_buf *text)
{
    const struct cr_consumer_status *first = NULL;
    for (size_t i = 0; i < status->consumers_len; i++) {
        const struct cr_consumer_status *consumer = &status->consumers[i];
        if (is_done(consumer) || cr_hold_health(consumer->gate.hold) != health)
            continue;
        first = first ? first : consumer;
        cr_buf_printf(text, "%s%s is %s", text->len ? "; " : "", consumer->name,
                      cr_consumer_state_name(consumer->state));
        if (consumer->gate.text)
            cr_buf_printf(text, ": %s", consumer->gate.text);
    }
    return first;
}

static const char *message_of(const struct cr_policy_status *status, const char *type)
{
    const struct cr_condition *condition = cr_status_condition_get(status, type);
    return condition ? cr_or_empty(condition->message) : "";
}

static bool set_stalled(struct plan_ctx *ctx, const struct plan_progress *progress)
{
    const struct cr_policy_status *status = &ctx->plan->status;
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    const struct cr_consumer_status *consumer = add_consumers(status, CR_HOLD_STUCK, &text);
    const struct cr_condition *degraded = cr_status_condition_get(status, "Degraded");
    if (consumer)
        set(ctx, "Stalled", true, cr_hold_name(consumer->gate.hold), cr_buf_text(&text));
    else if (progress->stuck)
        set(ctx, "Stalled", true, progress->stuck,
            message_of(status, degraded && degraded->status ? "Degraded" : "Ready"));
    else
        set(ctx, "Stalled", false, "NotStalled", "Nothing has to be mended before it goes on.");
    return consumer || progress->stuck;
}

static bool is_rotating(const struct cr_policy_status *status)
{
    const struct cr_condition *rotating = cr_status_condition_get(status, "Rotating");
    return rotating && rotating->status;
}

void cr_plan_progress(struct plan_ctx *ctx, const struct plan_progress *progress)
{
    const struct cr_policy_status *status = &ctx->plan->status;
    CR_CLEANUP(cr_buf) struct cr_buf goes_on = CR_BUF_INIT(0);
    CR_CLEANUP(cr_buf) struct cr_buf waits = CR_BUF_INIT(0);
    bool stalled = set_stalled(ctx, progress);
    bool any = add_consumers(status, CR_HOLD_PASSES, &goes_on);
    bool any_waits = add_consumers(status, CR_HOLD_WAITS, &waits);
    if (stalled)
        set(ctx, "Reconciling", false, "Stalled", message_of(status, "Stalled"));
    else if (progress->unmet)
        set(ctx, "Reconciling", true, progress->unmet, message_of(status, "Ready"));
    else if (any)
        set(ctx, "Reconciling", true, "InProgress", cr_buf_text(&goes_on));
    else if (any_waits)
        set(ctx, "Reconciling", false, "Waiting", cr_buf_text(&waits));
    else if (is_rotating(status))
        set(ctx, "Reconciling", true, "InProgress", "The change is being put on record.");
    else
        set(ctx, "Reconciling", false, "Idle", "Nothing is to be done.");
}
