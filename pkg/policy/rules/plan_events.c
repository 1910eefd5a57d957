/* Events of a plan: the difference between the status on record and the one that the plan makes, and evictions that
 * begin. So each is emitted once, whatever looked at the policy in between. */
#include "policy/rules/plan_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

/* About the policy. This one and those below take message. */
static void say_policy(struct cr_plan *plan, bool warning, const char *reason, char *message)
{
    PLAN_PUSH(plan->events, plan->events_len,
              {.warning = warning, .about = CR_ABOUT_POLICY, .reason = reason, .message = message});
}

/* Because of one of its Secrets. */
static void say_secret(struct cr_plan *plan, bool warning, const struct cr_secret_status *secret, const char *reason,
                       char *message)
{
    say_policy(plan, warning, reason, message);
    struct cr_plan_event *event = &plan->events[plan->events_len - 1];
    event->secret = cr_strdup(secret->name);
    memcpy(event->rotation, secret->pending.id, sizeof event->rotation);
}

/* About a consumer's workload; the message names the policy. */
static void say_workload(struct plan_ctx *ctx, bool warning, size_t consumer, const char *reason, char *message)
{
    char *named = cr_asprintf("%s (CertRotationPolicy %s)", message, ctx->world->policy->name);
    free(message);
    PLAN_PUSH(
        ctx->plan->events, ctx->plan->events_len,
        {.warning = warning, .about = CR_ABOUT_WORKLOAD, .consumer = consumer, .reason = reason, .message = named});
}

/* --- Secrets --- */

/* Owned words, with the names of some opaque keys. */
static char *describe(const struct cr_pending_change *pending)
{
    enum { SHOWN = 5 };
    CR_CLEANUP(cr_buf) struct cr_buf names = CR_BUF_INIT(0);
    for (size_t i = 0; i < pending->opaque_keys.len && i < SHOWN; i++)
        cr_buf_printf(&names, "%s%s", i ? ", " : " (", pending->opaque_keys.items[i]);
    if (names.len)
        cr_buf_puts(&names, pending->opaque_keys.len > SHOWN ? ", ...)" : ")");
    cr_autofree char *what = cr_diff_describe(pending->changes);
    return cr_asprintf("%s%s", what, cr_buf_text(&names));
}

static const struct cr_secret_status *known_secret(const struct cr_policy_status *recorded, const char *name)
{
    for (size_t i = 0; i < recorded->secrets_len; i++)
        if (cr_streq(recorded->secrets[i].name, name))
            return &recorded->secrets[i];
    return NULL;
}

/* A first one, or another one than on record. known: NULL: nothing is on record. */
static bool is_new_change(const struct cr_secret_status *known, const struct cr_secret_status *now)
{
    return now->pending.set && (!known || !known->pending.set || strcmp(known->pending.id, now->pending.id) != 0 ||
                                cr_diff(&known->pending.target, &now->pending.target));
}

static void say_change(struct plan_ctx *ctx, const struct cr_secret_status *secret)
{
    cr_autofree char *what = describe(&secret->pending);
    say_secret(ctx->plan, false, secret, "ChangeSeen",
               cr_asprintf("Secret %s: %s (rotation %s)", secret->name, what, secret->pending.id));
    /* No client is known to ask for them, so nothing is held. */
    cr_autofree char *lost = cr_plan_lost_names(&secret->settled, &secret->pending.target);
    if (lost)
        say_secret(
            ctx->plan, true, secret, "NamesLost",
            cr_asprintf("Secret %s: %s; it is rolled out, since the policy asks for none of them", secret->name, lost));
}

/* What settles goes by the change that is on record. */
static void say_converged(struct plan_ctx *ctx, const struct cr_secret_status *known)
{
    const struct cr_pending_change *pending = &known->pending;
    say_secret(ctx->plan, false, known, "RotationConverged",
               cr_asprintf("Secret %s: every consumer has the new material after %lld s (rotation %s)", known->name,
                           (long long)((ctx->world->now_ms - pending->since_ms) / 1000), pending->id));
}

static void say_of_secret(struct plan_ctx *ctx, const struct cr_secret_status *known,
                          const struct cr_secret_status *now)
{
    if (now->problem_reason && !cr_streq(known ? known->problem_reason : NULL, now->problem_reason))
        say_secret(ctx->plan, true, now, now->problem_reason,
                   cr_asprintf("Secret %s: %s", now->name, cr_or_empty(now->problem_message)));
    if (is_new_change(known, now))
        say_change(ctx, now);
    if (known && known->pending.set && !now->pending.set)
        say_converged(ctx, known);
}

/* --- consumers --- */

/* What a person may not know from the text of the gate alone. */
static const char *more_of(enum cr_hold hold)
{
    if (hold == CR_HOLD_RESTART_UNDONE)
        return "; certroll does not restart it again before the next change";
    return hold == CR_HOLD_ROLLOUT_FAILED ? "; certroll restarts nothing more of this policy until it is mended" : "";
}

/* A gate holds it, or something is missing that it needs. What does not exist has no Event of its own. */
static void say_hold(struct plan_ctx *ctx, size_t index, const struct cr_consumer_status *known)
{
    const struct cr_gate *gate = &ctx->consumers[index].status->gate;
    const char *event = cr_hold_event(gate->hold);
    if (!event || cr_streq(event, known ? cr_hold_event(known->gate.hold) : NULL))
        return;
    say_workload(ctx, true, index, event, cr_asprintf("%s%s", gate->text, more_of(gate->hold)));
    if (gate->hold == CR_HOLD_NOT_FOUND)
        ctx->plan->events[ctx->plan->events_len - 1].about = CR_ABOUT_POLICY;
}

/* In mode Plan: once for each change. */
static void say_planned(struct plan_ctx *ctx, size_t index, const struct cr_consumer_status *known)
{
    const struct plan_consumer *consumer = &ctx->consumers[index];
    const struct cr_consumer_status *now = consumer->status;
    bool is_planned = now->state == CR_CONSUMER_PENDING && now->gate.hold == CR_HOLD_PLAN_MODE && !consumer->evicts;
    if (is_planned && !(known && known->gate.hold == CR_HOLD_PLAN_MODE && known->since_ms == now->since_ms))
        say_workload(ctx, false, index, "RestartPlanned",
                     cr_asprintf("%s Not done in mode Plan.", consumer->decision.reason));
}

static void say_warnings(struct plan_ctx *ctx, size_t index, const struct cr_consumer_status *known)
{
    const struct plan_consumer *consumer = &ctx->consumers[index];
    unsigned new_ones = consumer->status->warnings & ~(known ? known->warnings : 0u);
    for (size_t k = 0; k < CR_PLAN_WARNINGS; k++)
        if (new_ones & cr_plan_warnings[k].bit)
            say_workload(ctx, true, index, cr_warning_name(cr_plan_warnings[k].bit),
                         cr_plan_warnings[k].words(ctx, consumer));
}

static void say_evictions(struct plan_ctx *ctx)
{
    for (size_t i = 0; i < ctx->plan->evicting_len; i++) {
        size_t index = ctx->plan->evicting[i];
        const struct plan_consumer *consumer = &ctx->consumers[index];
        say_workload(ctx, consumer->taken.warning, index, "Evicting",
                     cr_asprintf("%s Its pods are evicted one by one: %s", cr_or_empty(consumer->decision.reason),
                                 consumer->taken.text));
    }
}

/* --- the policy --- */

static bool had_reason(const struct plan_ctx *ctx, const char *type, const char *reason)
{
    const struct cr_condition *known = cr_status_condition_get(ctx->world->status, type);
    return known && cr_streq(known->reason, reason);
}

static void say_reported(struct plan_ctx *ctx, const struct plan_reported *reported)
{
    if (reported->unmanaged && !had_reason(ctx, "Converged", CR_REASON_UNMANAGED_POD) &&
        !had_reason(ctx, "Degraded", CR_REASON_UNMANAGED_POD))
        say_policy(ctx->plan, true, CR_REASON_UNMANAGED_POD, cr_strdup(reported->unmanaged));
    if (reported->hosts_reason && !had_reason(ctx, "Degraded", reported->hosts_reason))
        say_policy(ctx->plan, true, reported->hosts_reason, cr_strdup(reported->hosts));
    /* Emitted once more before it matters: a person who has not seen the first Event has some time left. */
    bool known = had_reason(ctx, "ExpiringSoon", CR_PLAN_LEAF_EXPIRED) ||
                 had_reason(ctx, "ExpiringSoon", CR_PLAN_LEAF_EXPIRES_SOON);
    for (size_t i = 0; !known && i < reported->held_len; i++) {
        const struct plan_held_leaf *held = &reported->held[i];
        say_secret(ctx->plan, true, held->secret, "HeldUntilExpiry",
                   cr_asprintf("%s: %s", held->end, cr_or_empty(held->secret->problem_message)));
    }
}

void cr_plan_events(struct plan_ctx *ctx, const struct plan_reported *reported)
{
    const struct cr_policy_status *status = &ctx->plan->status;
    for (size_t i = 0; i < status->secrets_len; i++)
        say_of_secret(ctx, known_secret(ctx->world->status, status->secrets[i].name), &status->secrets[i]);
    for (size_t i = 0; i < ctx->consumers_len; i++) {
        const struct cr_consumer_status *known = cr_plan_on_record(ctx->world->status, ctx->consumers[i].status);
        say_hold(ctx, i, known);
        say_planned(ctx, i, known);
        say_warnings(ctx, i, known);
    }
    say_evictions(ctx);
    say_reported(ctx, reported);
}
