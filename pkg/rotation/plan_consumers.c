#include "rotation/plan_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "rotation/usage.h"

enum { WAIT_AGAIN_MS = 5 * 1000 };

/* --- who is concerned, and what was decided --- */

static void set_state(struct cr_consumer_status *status, enum cr_consumer_state state, const char *blocked_by)
{
    status->state = state;
    cr_strset(&status->blocked_by, blocked_by);
}

/* Nothing is to be done for it. What the last rotation decided stays in sight; what was under way is over, unless its
 * Secret broke meanwhile. */
static void rest(const struct plan_consumer *consumer)
{
    struct cr_consumer_status *status = consumer->status;
    if (consumer->change_held) {
        set_state(status, CR_CONSUMER_BLOCKED, consumer->held_by);
        return;
    }
    if (!status->reason) {
        cr_strset(&status->reason, "No change was seen since certroll began to watch.");
        set_state(status, CR_CONSUMER_IDLE, NULL);
        return;
    }
    if (status->state != CR_CONSUMER_IDLE)
        set_state(status, CR_CONSUMER_CONVERGED, NULL);
    cr_strvec_dispose(&status->examples);
}

static void absent(const struct plan_consumer *consumer)
{
    struct cr_consumer_status *status = consumer->status;
    status->decision = CR_DECISION_NONE;
    status->pods = (struct cr_pod_counts){0};
    status->since_ms = 0;
    cr_strvec_dispose(&status->examples);
    cr_autofree char *why =
        cr_asprintf("%s %s does not exist%s.", consumer->spec->kind, consumer->spec->target,
                    consumer->spec->optional ? "; it is optional, so this is no error" : "");
    cr_strset(&status->reason, why);
    set_state(status, CR_CONSUMER_ABSENT, NULL);
}

/* A new pod would mount what cannot be used: while a Secret of it is broken, its old pods are the good ones. */
static void find_broken_secret(const struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec used = {0};
    cr_usage_secrets(consumer->pod_spec, &used);
    for (size_t i = 0; i < ctx->plan->status.secrets_len; i++) {
        const struct cr_secret_status *secret = &ctx->plan->status.secrets[i];
        if (!secret->problem_reason || !cr_strvec_has(&used, secret->name))
            continue;
        consumer->change_held = consumer->change_held || secret->pending.set;
        if (!consumer->held_by)
            consumer->held_by = cr_asprintf("Secret %s: %s", secret->name, secret->problem_reason);
    }
}

static void decide(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    struct cr_decide_input input = {.consumer = consumer->spec,
                                    .pod_spec = consumer->pod_spec,
                                    .catalogue = ctx->world->catalogue,
                                    .changes = ctx->changes,
                                    .changes_len = ctx->changes_len};
    cr_decide(&input, &consumer->decision);
    consumer->concerned = consumer->decision.kind != CR_DECISION_NONE;
    if (consumer->decision.component)
        cr_strset(&consumer->status->component, consumer->decision.component);
}

static const char *template_annotation(const struct plan_consumer *consumer, const char *secret)
{
    char name[CR_ANNOTATION_NAME];
    cr_restart_annotation_name(secret, name);
    return cr_json_string_at(consumer->world->workload, "spec", "template", "metadata", "annotations", name);
}

/* The time stands on the workload, where a crash cannot lose it. */
static void read_last_restart(struct plan_consumer *consumer)
{
    const char *text = cr_json_string_at(consumer->world->workload, "spec", "template", "metadata", "annotations",
                                         "kubectl.kubernetes.io/restartedAt");
    int64_t at = 0;
    if (text && cr_time_parse(text, &at, NULL))
        consumer->status->last_restart_ms = at;
}

/* What each change demands of this consumer, and whether its template already answers it. A leaf that was to be reloaded
 * but is in the annotation was restarted for after all (the fall-back), before or by an earlier run of this program. */
static void compare_with_template(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    bool covered = true;
    for (size_t k = 0; k < ctx->changes_len; k++) {
        const struct cr_decision_secret *secret = &consumer->decision.secrets[k];
        const struct cr_pending_change *pending = &ctx->pending[k]->pending;
        if (!secret->used || secret->kind == CR_DECISION_NONE)
            continue;
        const char *value = template_annotation(consumer, ctx->changes[k].secret->name);
        unsigned fallback = secret->reload_classes & CR_CLASS_LEAF;
        consumer->classes[k] = secret->restart_classes;
        if (fallback && cr_restart_annotation_covers(value, &pending->target, fallback))
            consumer->classes[k] |= fallback;
        if (consumer->classes[k] && !cr_restart_annotation_covers(value, &pending->target, consumer->classes[k]))
            covered = false;
        if (consumer->classes[k])
            consumer->restarted = true;
        /* A clock that was set back must not make the change one of the future. */
        int64_t since_ms = pending->since_ms < ctx->world->now_ms ? pending->since_ms : ctx->world->now_ms;
        if (since_ms > consumer->since_ms)
            consumer->since_ms = since_ms;
        if (secret->max_delay_ms > consumer->max_delay_ms)
            consumer->max_delay_ms = secret->max_delay_ms;
        if ((cr_diff_classes(ctx->changes[k].changes) & CR_CLASS_LEAF) && (secret->roles & CR_ROLE_BIT(CR_ROLE_SERVER_LEAF))) {
            consumer->leaf_changed = true;
            if (pending->target.leaf[0])
                cr_strvec_add(&consumer->expected, pending->target.leaf);
            cr_strvec_copy(&consumer->old, &pending->old_leaves);
        }
    }
    consumer->needs_restart = consumer->restarted && !covered;
    consumer->restarted = consumer->restarted && covered;
    if (consumer->restarted)
        read_last_restart(consumer);
}

/* Hot reload was expected, did not happen, and the old leaf is positively still served. */
static void fall_back(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    if (consumer->restarted || consumer->needs_restart || !consumer->status->pods.stale)
        return;
    if (!cr_plan_past_deadline(ctx, consumer)) {
        cr_plan_requeue(ctx->plan, cr_plan_deadline_ms(consumer) - ctx->world->now_ms);
        return;
    }
    if (consumer->spec->verify.set && consumer->spec->verify.on_timeout == CR_ON_TIMEOUT_REPORT)
        return;
    for (size_t k = 0; k < ctx->changes_len; k++)
        consumer->classes[k] |= consumer->decision.secrets[k].reload_classes & CR_CLASS_LEAF;
    consumer->needs_restart = true;
    cr_autofree char *before = consumer->decision.reason;
    consumer->decision.reason =
        cr_asprintf("%d of %d pods still serve the old leaf past the deadline, so hot reload did not happen: restart. (Expected was: %s)",
                    consumer->status->pods.stale, consumer->status->pods.total, cr_or_empty(before));
    consumer->decision.kind = CR_DECISION_RESTART;
}

static void show_decision(struct plan_consumer *consumer)
{
    struct cr_consumer_status *status = consumer->status;
    bool fell_back = consumer->decision.kind == CR_DECISION_HOT_RELOAD && consumer->restarted;
    /* After a fall-back the earlier reason ("still serve the old leaf …") says more than the catalogue's expectation. */
    if (!fell_back || status->decision != CR_DECISION_RESTART) {
        status->decision = fell_back ? CR_DECISION_RESTART : consumer->decision.kind;
        cr_strset(&status->reason, consumer->decision.reason);
    }
    status->since_ms = consumer->since_ms;
}

static void evaluate(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    if (!consumer->world->found) {
        absent(consumer);
        return;
    }
    if (consumer->status->state == CR_CONSUMER_ABSENT) {
        /* It came back; its pods mounted what the Secrets hold now. */
        cr_strset(&consumer->status->reason, NULL);
    }
    consumer->pod_spec = cr_json_at(consumer->world->workload, "spec", "template", "spec");
    find_broken_secret(ctx, consumer);
    if (!ctx->changes_len) {
        rest(consumer);
        return;
    }
    decide(ctx, consumer);
    if (!consumer->concerned) {
        if (consumer->status->state == CR_CONSUMER_IDLE || !consumer->status->reason) {
            consumer->status->decision = CR_DECISION_NONE;
            cr_strset(&consumer->status->reason, consumer->decision.reason);
        }
        rest(consumer);
        return;
    }
    consumer->classes = cr_calloc(ctx->changes_len, sizeof *consumer->classes);
    compare_with_template(ctx, consumer);
    cr_rollout_judge(consumer->spec->kind, consumer->world->workload, &consumer->rollout);
    cr_plan_evidence(ctx, consumer);
    fall_back(ctx, consumer);
    show_decision(consumer);
    if (consumer->restarted && consumer->rollout.state != CR_ROLLOUT_COMPLETE)
        ctx->restarting++;
}

/* --- what to do about it --- */

/* NULL: it may restart now. Else what stands in the way; *wait: only time does. Borrowed. */
static const char *gate(struct plan_ctx *ctx, const struct plan_consumer *consumer, bool *blocked)
{
    const struct cr_policy *policy = ctx->world->policy;
    *blocked = false;
    if (policy->deleting)
        return "the policy is being deleted";
    if (policy->suspend)
        return "suspend";
    if (policy->mode == CR_MODE_PLAN)
        return "mode: Plan";
    *blocked = true;
    /* A gate that the policy names and this version cannot judge: restarting as if it were not there is what its author
     * did not want. */
    if (policy->restart.held_by)
        return policy->restart.held_by;
    if (policy->restart.method == CR_RESTART_NEVER)
        return "restart.method: Never";
    if (consumer->held_by)
        return consumer->held_by;
    /* A paused Deployment may be complete as it stands; a new template would wait for whoever resumes it. */
    if (cr_json_bool_at(consumer->world->workload, false, "spec", "paused"))
        return "the workload is paused";
    *blocked = false;
    int64_t due = consumer->since_ms + policy->restart.coalesce_ms;
    if (ctx->world->now_ms < due) {
        cr_plan_requeue(ctx->plan, due - ctx->world->now_ms);
        return "restart.coalesce";
    }
    if (ctx->restarting >= policy->restart.max_concurrent)
        return "restart.maxConcurrent";
    return NULL;
}

static struct cr_json *restart_annotations(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    struct cr_json *annotations = cr_json_new_object();
    for (size_t k = 0; k < ctx->changes_len; k++) {
        if (!consumer->classes[k])
            continue;
        const char *secret = ctx->changes[k].secret->name;
        char name[CR_ANNOTATION_NAME];
        cr_restart_annotation_name(secret, name);
        cr_autofree char *value = cr_restart_annotation_merge(template_annotation(consumer, secret),
                                                              &ctx->pending[k]->pending.target, consumer->classes[k]);
        cr_json_set_string(annotations, name, value);
    }
    return annotations;
}

static void restart(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index)
{
    bool blocked = false;
    const char *gate_word = gate(ctx, consumer, &blocked);
    if (gate_word) {
        set_state(consumer->status, blocked ? CR_CONSUMER_BLOCKED : CR_CONSUMER_PENDING, gate_word);
        return;
    }
    /* Tried before and refused: tried again, and said meanwhile. */
    const char *refused = consumer->world->refused;
    ctx->restarting++;
    PLAN_PUSH(ctx->plan->restarts, ctx->plan->restarts_len,
              {.consumer = index,
               .annotations = restart_annotations(ctx, consumer),
               .why = cr_strdup(consumer->decision.reason)});
    set_state(consumer->status, refused ? CR_CONSUMER_BLOCKED : CR_CONSUMER_PENDING, refused);
}

static void wait_for_evidence(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    const struct cr_pod_counts *pods = &consumer->status->pods;
    if (pods->verified + pods->inferred == pods->total) {
        set_state(consumer->status, CR_CONSUMER_CONVERGED, NULL);
        return;
    }
    set_state(consumer->status, CR_CONSUMER_VERIFYING, cr_plan_may_act(ctx) ? NULL : "mode: Plan or suspend");
    cr_plan_requeue(ctx->plan, WAIT_AGAIN_MS);
}

static void follow_rollout(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index)
{
    enum cr_consumer_state before = consumer->status->state;
    switch (consumer->rollout.state) {
    case CR_ROLLOUT_COMPLETE:
        wait_for_evidence(ctx, consumer);
        return;
    case CR_ROLLOUT_FAILED:
        set_state(consumer->status, CR_CONSUMER_FAILED, consumer->rollout.message);
        if (before != CR_CONSUMER_FAILED)
            cr_plan_say_workload(ctx->plan, true, index, "RolloutFailed",
                                 cr_asprintf("%s; certroll restarts nothing more of this policy until it is mended",
                                             consumer->rollout.message));
        return;
    case CR_ROLLOUT_PAUSED:
        set_state(consumer->status, CR_CONSUMER_BLOCKED, "the workload is paused");
        return;
    case CR_ROLLOUT_MANUAL:
        if (consumer->status->pods.stale) {
            set_state(consumer->status, CR_CONSUMER_BLOCKED, "updateStrategy OnDelete: the old pods must be deleted by hand");
            return;
        }
        wait_for_evidence(ctx, consumer);
        return;
    case CR_ROLLOUT_PROGRESSING:
        set_state(consumer->status, CR_CONSUMER_RESTARTING, NULL);
        cr_plan_requeue(ctx->plan, WAIT_AGAIN_MS);
        return;
    }
}

static void act(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index)
{
    if (!consumer->concerned || !consumer->classes)
        return;
    if (consumer->needs_restart)
        restart(ctx, consumer, index);
    else if (consumer->restarted)
        follow_rollout(ctx, consumer, index);
    else
        wait_for_evidence(ctx, consumer);
    if (consumer->change_held)
        set_state(consumer->status, CR_CONSUMER_BLOCKED, consumer->held_by);
    cr_plan_care(ctx, consumer, index);
}

/* A rollout that failed stops the policy's further restarts: the next one would likely fail the same way. */
static void stop_after_failure(struct plan_ctx *ctx)
{
    for (size_t i = 0; i < ctx->consumers_len; i++) {
        const struct plan_consumer *consumer = &ctx->consumers[i];
        if (consumer->restarted && consumer->rollout.state == CR_ROLLOUT_FAILED)
            ctx->restarting = ctx->world->policy->restart.max_concurrent;
    }
}

void cr_plan_consumers(struct plan_ctx *ctx)
{
    const struct cr_policy *policy = ctx->world->policy;
    struct cr_policy_status *status = &ctx->plan->status;
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    for (size_t i = 0; i < policy->consumers_len; i++)
        cr_strvec_add(&names, policy->consumers[i].name);
    cr_status_keep_consumers(status, &names);
    /* All are there before any is pointed to: adding moves them. */
    for (size_t i = 0; i < policy->consumers_len; i++)
        cr_status_consumer_add(status, policy->consumers[i].name);

    ctx->consumers_len = policy->consumers_len;
    ctx->consumers = cr_calloc(policy->consumers_len, sizeof *ctx->consumers);
    for (size_t i = 0; i < policy->consumers_len; i++) {
        struct plan_consumer *consumer = &ctx->consumers[i];
        consumer->spec = &policy->consumers[i];
        consumer->world = &ctx->world->consumers[i];
        consumer->status = cr_status_consumer(status, consumer->spec->name);
        cr_strset(&consumer->status->kind, consumer->spec->kind);
        cr_strset(&consumer->status->target, consumer->spec->target);
        evaluate(ctx, consumer);
    }
    stop_after_failure(ctx);
    for (size_t i = 0; i < ctx->consumers_len; i++)
        act(ctx, &ctx->consumers[i], i);
}

void cr_plan_consumers_dispose(struct plan_ctx *ctx)
{
    for (size_t i = 0; i < ctx->consumers_len; i++) {
        struct plan_consumer *consumer = &ctx->consumers[i];
        cr_decision_dispose(&consumer->decision);
        cr_strvec_dispose(&consumer->expected);
        cr_strvec_dispose(&consumer->old);
        free(consumer->classes);
        free(consumer->held_by);
        free(consumer->evidence);
    }
    free(ctx->consumers);
}
