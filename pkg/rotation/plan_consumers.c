#include "rotation/plan_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "rotation/usage.h"

enum { WAIT_AGAIN_MS = 5 * 1000 };

void cr_plan_set_state(struct cr_consumer_status *status, enum cr_consumer_state state, const char *blocked_by)
{
    status->state = state;
    cr_strset(&status->blocked_by, blocked_by);
}

/* --- who is concerned, and what was decided --- */

/* Nothing is to be done for it. What the last rotation decided stays in sight; what was under way is over, unless its
 * Secret broke meanwhile. */
static void rest(const struct plan_consumer *consumer)
{
    struct cr_consumer_status *status = consumer->status;
    if (consumer->change_held) {
        cr_plan_set_state(status, CR_CONSUMER_BLOCKED, consumer->held_by);
        return;
    }
    /* Of one that is listed in brief only the state is remembered. */
    if (!status->reason && status->state == CR_CONSUMER_IDLE) {
        cr_strset(&status->reason, "No change was seen since certroll began to watch.");
        cr_plan_set_state(status, CR_CONSUMER_IDLE, NULL);
        return;
    }
    if (status->state != CR_CONSUMER_IDLE)
        cr_plan_set_state(status, CR_CONSUMER_CONVERGED, NULL);
    cr_strvec_dispose(&status->examples);
}

static void absent(const struct plan_consumer *consumer)
{
    struct cr_consumer_status *status = consumer->status;
    status->decision = CR_DECISION_NONE;
    status->pods = (struct cr_pod_counts){0};
    status->since_ms = 0;
    cr_strvec_dispose(&status->examples);
    bool may_be_owned = cr_streq(consumer->spec->kind, "ReplicaSet");
    cr_autofree char *why =
        cr_asprintf("%s %s does not exist%s%s.", consumer->spec->kind, consumer->spec->target,
                    may_be_owned ? ", or a Deployment or Rollout has made it, which is the consumer then" : "",
                    consumer->spec->optional ? "; it is optional, so this is no error" : "");
    cr_strset(&status->reason, why);
    cr_plan_set_state(status, CR_CONSUMER_ABSENT, NULL);
}

/* Not looked at either: thousands of Jobs would be watched to say that nothing is done for them. */
static void leave_to_next_run(const struct plan_consumer *consumer)
{
    struct cr_consumer_status *status = consumer->status;
    status->decision = CR_DECISION_NONE;
    cr_autofree char *why =
        cr_asprintf("nothing to do for %s %s: its next run mounts what the Secrets hold by then, and one that runs now "
                    "is left to end with what it has read.",
                    consumer->spec->kind, consumer->spec->target);
    cr_strset(&status->reason, why);
    cr_plan_set_state(status, CR_CONSUMER_IDLE, NULL);
}

/* No pods: its controller takes up what it names. */
static bool by_api(const struct plan_consumer *consumer)
{
    return cr_policy_kind_by_api(consumer->spec->kind);
}

/* A new pod would mount what cannot be used: while a Secret of it is broken, its old pods are the good ones. */
static void find_broken_secret(const struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec used = {0};
    if (by_api(consumer))
        cr_usage_of_object(consumer->spec->kind, consumer->world->workload, &used);
    else
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
    cr_autofree struct cr_secret_change *changes = cr_calloc(ctx->changes_len, sizeof *changes);
    for (size_t k = 0; k < ctx->changes_len; k++) {
        changes[k] = ctx->changes[k];
        changes[k].key_type = ctx->pending[k]->pending.target.key_type;
        if (cr_plan_is_others(ctx, consumer, k))
            changes[k].changes = 0;
    }
    struct cr_decide_input input = {.consumer = consumer->spec,
                                    .pod_spec = consumer->pod_spec,
                                    .catalogue = ctx->world->catalogue,
                                    .changes = changes,
                                    .changes_len = ctx->changes_len};
    if (by_api(consumer))
        cr_decide_by_api(&input, consumer->world->workload, &consumer->decision);
    else
        cr_decide(&input, &consumer->decision);
    consumer->concerned = consumer->decision.kind != CR_DECISION_NONE;
    /* New pods would have a leaf that their software cannot use: the old ones are the good ones. */
    if (!consumer->held_by && consumer->decision.not_accepted)
        consumer->held_by = cr_strdup(consumer->decision.not_accepted);
    char *others = consumer->concerned ? NULL : cr_plan_others_reason(ctx, consumer);
    if (others) {
        free(consumer->decision.reason);
        consumer->decision.reason = others;
    }
    if (consumer->decision.component)
        cr_strset(&consumer->status->component, consumer->decision.component);
}

/* --- what each change demands, and what the template already answers --- */

static const char *restart_annotation(const struct plan_consumer *consumer, const char *secret)
{
    char name[CR_ANNOTATION_NAME];
    cr_restart_annotation_name(secret, name);
    return cr_restart_annotation_of(consumer->world->workload, name);
}

/* The status remembered nothing, an annotation of some workload did (see plan_secrets.c): it speaks for those that
 * carry one. Also a trust that was changed and changed back: whoever was not restarted for it has the right one. */
static bool known_from_annotations_only(const struct cr_secret_status *secret)
{
    const struct cr_material *before = &secret->settled;
    const struct cr_material *after = &secret->pending.target;
    return secret->pending.old_leaves.len == 0 && cr_diff(before, after) == 0 &&
           cr_streq(before->opaque, after->opaque);
}

/* A workload that came after the change was born with the new material. */
static bool born_after(const struct plan_consumer *consumer, int64_t since_ms)
{
    const char *text = cr_json_string_at(consumer->world->workload, "metadata", "creationTimestamp");
    int64_t created_ms = 0;
    return text && cr_time_parse(text, &created_ms, NULL) && created_ms / 1000 > since_ms / 1000;
}

/* Whether the template says that its pods were made for this material. A digest of opaque material by a key that is
 * gone says nothing; then it counts that the restart was for this very rotation. */
static bool is_covered(const struct plan_consumer *consumer, const char *value, const struct cr_pending_change *pending,
                       unsigned classes)
{
    if (cr_restart_annotation_covers(value, &pending->target, classes))
        return true;
    return (classes & CR_CLASS_OPAQUE) && !consumer->status->evicted_until_ms &&
           cr_restart_annotation_is_rekeyed(value, &pending->target) &&
           strstr(cr_or_empty(consumer->status->restarted_for), pending->id) &&
           cr_restart_annotation_covers(value, &pending->target, classes & ~(unsigned)CR_CLASS_OPAQUE);
}

/* A restart would not help, and may not end: as long as one pod of a node uses an immutable Secret, its kubelet gives
 * the old content to new pods as well (docs/operations.md has what was measured). */
static void freeze(const struct plan_ctx *ctx, struct plan_consumer *consumer, size_t k)
{
    const struct cr_decision_secret *secret = &consumer->decision.secrets[k];
    struct plan_change *change = &consumer->changes[k];
    change->frozen = ctx->changes[k].was_immutable && secret->restart_classes;
    if (change->frozen && !consumer->held_by)
        consumer->held_by =
            cr_asprintf("Secret %s was immutable and was replaced under its name: kubelets give the old "
                        "content to new pods, too, while a pod of their node uses it. Use a Secret of "
                        "another name",
                        ctx->changes[k].secret->name);
}

/* A leaf that was to be reloaded but is in the annotation was restarted for after all (the fall-back), before or by an
 * earlier run of this program. */
static void weigh(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t k)
{
    const struct cr_decision_secret *secret = &consumer->decision.secrets[k];
    const struct cr_pending_change *pending = &ctx->pending[k]->pending;
    struct plan_change *change = &consumer->changes[k];
    const char *value = restart_annotation(consumer, ctx->changes[k].secret->name);
    change->concerns = secret->used && secret->kind != CR_DECISION_NONE &&
                       !(value == NULL && known_from_annotations_only(ctx->pending[k])) &&
                       !born_after(consumer, pending->since_ms);
    if (!change->concerns)
        return;
    unsigned fallback = secret->reload_classes & CR_CLASS_LEAF;
    change->demanded = secret->restart_classes != 0;
    freeze(ctx, consumer, k);
    change->classes = secret->restart_classes;
    if (fallback && cr_restart_annotation_covers(value, &pending->target, fallback))
        change->classes |= fallback;
    change->covered = change->classes && is_covered(consumer, value, pending, change->classes);
    /* Another chain under the same leaf does not show in a leaf. */
    change->leaf_changed = (cr_diff_classes(ctx->changes[k].changes) & CR_CLASS_LEAF) && pending->target.leaf[0] &&
                           pending->old_leaves.len && (secret->roles & CR_ROLE_BIT(CR_ROLE_SERVER_LEAF));
    change->since_ms = pending->since_ms;
    change->max_delay_ms = secret->max_delay_ms;
    change->not_accepted = secret->not_accepted;
    if (change->since_ms > consumer->since_ms)
        consumer->since_ms = change->since_ms;
    if (change->classes && !change->covered && (!consumer->first_ms || pending->first_ms < consumer->first_ms))
        consumer->first_ms = pending->first_ms;
}

int64_t cr_plan_restarted_at_ms(const struct cr_json *workload)
{
    bool by_time = cr_streq(cr_json_string_at(workload, "kind"), "Rollout");
    const char *text = by_time ? cr_json_string_at(workload, "spec", "restartAt")
                               : cr_json_string_at(workload, "spec", "template", "metadata", "annotations",
                                                   "kubectl.kubernetes.io/restartedAt");
    int64_t at_ms = 0;
    return text && cr_time_parse(text, &at_ms, NULL) ? at_ms : 0;
}

/* The time stands on the workload, where a crash cannot lose it. */
static void read_last_restart(struct plan_consumer *consumer)
{
    int64_t at_ms = cr_plan_restarted_at_ms(consumer->world->workload);
    if (at_ms)
        consumer->status->last_restart_ms = at_ms;
}

static void sum_up(const struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    bool any = false;
    bool all = true;
    for (size_t k = 0; k < ctx->changes_len; k++) {
        any = any || consumer->changes[k].classes;
        all = all && (!consumer->changes[k].classes || consumer->changes[k].covered);
    }
    consumer->needs_restart = any && !all;
    consumer->restarted = any && all;
    if (consumer->restarted)
        read_last_restart(consumer);
}

/* --- the fall-back --- */

/* Hot reload was expected, did not happen, and the old leaf is positively still served. */
static int find_late_changes(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    int late_pods = 0;
    for (size_t k = 0; k < ctx->changes_len; k++) {
        struct plan_change *change = &consumer->changes[k];
        if (!change->concerns || change->classes)
            continue;
        int late = cr_plan_late_pods(ctx, consumer, k);
        if (late)
            change->classes = consumer->decision.secrets[k].reload_classes & CR_CLASS_LEAF;
        late_pods = late > late_pods ? late : late_pods;
        int64_t deadline = cr_plan_deadline_ms(consumer, change);
        if (ctx->world->now_ms < deadline)
            cr_plan_requeue(ctx->plan, deadline - ctx->world->now_ms);
    }
    return late_pods;
}

static void fall_back(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    if (!cr_plan_may_act(ctx) || consumer->spec->verify.on_timeout == CR_ON_TIMEOUT_REPORT)
        return;
    int late = find_late_changes(ctx, consumer);
    if (!late)
        return;
    consumer->needs_restart = true;
    consumer->restarted = false;
    consumer->decision.unknown = false;
    cr_autofree char *expected = consumer->decision.reason;
    consumer->decision.reason = cr_asprintf("%d of %d pods still serve the old leaf past the deadline, so hot reload "
                                            "did not happen: restart. (Expected was: %s)",
                                            late, consumer->status->pods.total, cr_or_empty(expected));
    consumer->decision.kind = CR_DECISION_RESTART;
}

static void show_decision(struct plan_consumer *consumer)
{
    struct cr_consumer_status *status = consumer->status;
    bool fell_back = consumer->decision.kind == CR_DECISION_HOT_RELOAD && consumer->restarted;
    /* After a fall-back the earlier reason ("still serve the old leaf …") says more than the catalogue's expectation.
     */
    if (!fell_back || status->decision != CR_DECISION_RESTART) {
        status->decision = fell_back ? CR_DECISION_RESTART : consumer->decision.kind;
        cr_strset(&status->reason, consumer->decision.reason);
    }
    status->since_ms = consumer->since_ms;
}

/* --- one restart per rotation --- */

char *cr_plan_rotations_of(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec ids = {0};
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (consumer->changes[k].classes)
            cr_strvec_add(&ids, ctx->pending[k]->pending.id);
    return cr_strvec_join(&ids, ",");
}

/* And their Secrets. Owned. */
static char *secrets_of(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (consumer->changes[k].classes)
            cr_strvec_add(&names, ctx->pending[k]->name);
    return cr_strvec_join(&names, ",");
}

static int64_t generation_of(const struct plan_consumer *consumer)
{
    return cr_json_int_at(consumer->world->workload, 0, "metadata", "generation");
}

/* Written when the template is seen to carry the annotation; so also after a crash between the two. */
static void note_restart(const struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    cr_autofree char *ids = cr_plan_rotations_of(ctx, consumer);
    if (cr_streq(consumer->status->restarted_for, ids) && !consumer->status->evicted_until_ms)
        return;
    cr_strset(&consumer->status->restarted_for, ids);
    consumer->status->restarted_generation = generation_of(consumer);
    consumer->status->evicted_until_ms = 0;
    cr_strset(&consumer->status->evicting, NULL);
    /* At once, not with the next status: who undoes it meanwhile would have it done again. */
    ctx->plan->record_first = true;
}

/* Restarted for this very rotation, and the template lost the annotation since: somebody undid it (kubectl rollout
 * undo, a GitOps tool). Their rollout or ours again would go on for ever. An older generation is only a stale read; and
 * the same one says nothing, but for the annotations of an Argo Rollout itself, which make no new one. */
static bool was_undone(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    /* Evictions leave no annotation, and need none. */
    if (consumer->status->evicted_until_ms || ctx->world->policy->restart.method == CR_RESTART_EVICT)
        return false;
    cr_autofree char *ids = cr_plan_rotations_of(ctx, consumer);
    int64_t least = consumer->status->restarted_generation + (cr_plan_restarts_by_time(consumer) ? 0 : 1);
    return cr_streq(consumer->status->restarted_for, ids) && generation_of(consumer) >= least;
}

/* --- states --- */

static void evaluate(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    if (cr_policy_kind_runs_to_end(consumer->spec->kind)) {
        leave_to_next_run(consumer);
        return;
    }
    if (!consumer->world->found) {
        absent(consumer);
        return;
    }
    /* It came back; its pods mounted what the Secrets hold now. */
    if (consumer->status->state == CR_CONSUMER_ABSENT) {
        cr_strset(&consumer->status->reason, NULL);
        consumer->status->state = CR_CONSUMER_IDLE;
    }
    consumer->pod_spec = cr_json_at(consumer->world->workload, "spec", "template", "spec");
    cr_plan_count_restart(ctx, consumer);
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
    consumer->changes = cr_calloc(ctx->changes_len, sizeof *consumer->changes);
    consumer->concerned = false;
    for (size_t k = 0; k < ctx->changes_len; k++) {
        weigh(ctx, consumer, k);
        consumer->concerned = consumer->concerned || consumer->changes[k].concerns;
    }
    if (!consumer->concerned) {
        rest(consumer);
        return;
    }
    sum_up(ctx, consumer);
    if (!by_api(consumer)) /* else nothing rolls */
        cr_rollout_judge(consumer->spec->kind, consumer->world->workload, &consumer->rollout);
    cr_plan_deadline(ctx, consumer);
    cr_plan_recall_evictions(ctx, consumer);
    cr_plan_evidence(ctx, consumer);
    fall_back(ctx, consumer);
    cr_plan_recall_evictions(ctx, consumer); /* which a fall-back may have begun */
    cr_plan_evict_deadline(ctx, consumer);
    cr_plan_warn_of_gap(ctx, consumer);
    show_decision(consumer);
    if ((consumer->restarted || consumer->evicts) && consumer->rollout.state == CR_ROLLOUT_FAILED)
        ctx->rollout_failed = true;
    consumer->under_way = cr_plan_evictions_go_on(ctx, consumer);
}

static bool all_pods_have_all(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (consumer->changes[k].concerns && !cr_plan_pods_have(ctx, consumer, k))
            return false;
    return true;
}

static void wait_for_evidence(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    if (all_pods_have_all(ctx, consumer)) {
        cr_plan_set_state(consumer->status, CR_CONSUMER_CONVERGED, NULL);
        return;
    }
    if (consumer->world->evictions >= CR_PLAN_EVICTIONS_MAX && consumer->status->pods.stale) {
        cr_plan_set_state(consumer->status, CR_CONSUMER_BLOCKED,
                          "new pods go on serving the old leaf: is it copied somewhere?");
        return;
    }
    cr_plan_set_state(consumer->status, CR_CONSUMER_VERIFYING, cr_plan_may_act(ctx) ? NULL : "mode: Plan or suspend");
    cr_plan_requeue(ctx->plan, WAIT_AGAIN_MS);
}

static struct cr_json *restart_annotations(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                                           int64_t at_ms)
{
    struct cr_json *annotations = cr_json_new_object();
    for (size_t k = 0; k < ctx->changes_len; k++) {
        if (!consumer->changes[k].classes)
            continue;
        const char *secret = ctx->changes[k].secret->name;
        char name[CR_ANNOTATION_NAME];
        cr_restart_annotation_name(secret, name);
        cr_autofree char *merged =
            cr_restart_annotation_merge(restart_annotation(consumer, secret), &ctx->pending[k]->pending.target,
                                        consumer->changes[k].classes, ctx->pending[k]->observed_resource_version);
        cr_autofree char *value =
            cr_restart_annotation_for(merged, cr_json_string_at(consumer->world->workload, "metadata", "uid"), at_ms);
        cr_json_set_string(annotations, name, value);
    }
    return annotations;
}

/* Lost between the restart and the record, nothing of what it was for is lost: its annotations say it, and since which
 * version of the Secret. A digest of opaque material says nothing any more once its key is gone, and that an old leaf
 * was seen for too long is said nowhere else. */
static bool carries_its_memory(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    for (size_t k = 0; k < ctx->changes_len; k++) {
        const struct plan_change *change = &consumer->changes[k];
        if (change->classes && (!change->demanded || (change->classes & CR_CLASS_OPAQUE) ||
                                !cr_restart_annotation_is_version(ctx->pending[k]->observed_resource_version)))
            return false;
    }
    return true;
}

static void hold_undone(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index)
{
    const char *why = cr_plan_restarts_by_time(consumer)
                          ? "the restart was undone: its annotation is gone from the Rollout, or its restartAt"
                          : "the restart was undone: its annotation is gone from the pod template";
    if (!cr_streq(consumer->status->blocked_by, why))
        cr_plan_say_workload(ctx->plan, true, index, "RestartUndone",
                             cr_asprintf("%s; certroll does not restart it again before the next change", why));
    cr_plan_set_state(consumer->status, CR_CONSUMER_BLOCKED, why);
}

/* Once, when it begins. */
static void say_gate(struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t index, const char *gate)
{
    const char *before = consumer->status->blocked_by;
    if (cr_plan_is_breaker(gate) && !cr_plan_is_breaker(before))
        cr_plan_say_workload(ctx->plan, true, index, CR_REASON_BREAKER, cr_strdup(gate));
    if (cr_plan_is_budget(gate) && !cr_plan_is_budget(before))
        cr_plan_say_workload(ctx->plan, true, index, "WaitsForBudget", cr_strdup(gate));
}

void cr_plan_hold(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index, const char *gate, bool blocked)
{
    say_gate(ctx, consumer, index, gate);
    cr_plan_set_state(consumer->status, blocked ? CR_CONSUMER_BLOCKED : CR_CONSUMER_PENDING, gate);
}

/* In mode Plan: once for each change. */
static void say_planned(struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t index, const char *gate)
{
    const struct cr_consumer_status *known = cr_plan_on_record(ctx->world->status, consumer->status);
    bool said = known && cr_streq(known->blocked_by, gate) && known->since_ms == consumer->since_ms;
    if (!cr_streq(gate, CR_PLAN_MODE_PLAN) || said)
        return;
    cr_plan_say_workload(ctx->plan, false, index, "RestartPlanned",
                         cr_asprintf("%s (CertRotationPolicy %s, mode: Plan: not done)", consumer->decision.reason,
                                     ctx->world->policy->name));
}

/* Somebody else replaced all pods since, with the new material, or we did, one by one. */
static bool is_replaced(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    bool stands = consumer->rollout.state == CR_ROLLOUT_COMPLETE ||
                  (consumer->evicts && consumer->rollout.state == CR_ROLLOUT_MANUAL);
    return stands && all_pods_have_all(ctx, consumer);
}

static void fail(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index)
{
    enum cr_consumer_state before = consumer->status->state;
    cr_plan_set_state(consumer->status, CR_CONSUMER_FAILED, consumer->rollout.message);
    if (before != CR_CONSUMER_FAILED)
        cr_plan_say_workload(ctx->plan, true, index, "RolloutFailed",
                             cr_asprintf("%s; certroll restarts nothing more of this policy until it is mended",
                                         consumer->rollout.message));
}

/* Past a budget, or the only pod goes: somebody should know. */
static void warn(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index)
{
    if (!consumer->way.warning)
        return;
    const char *reason = consumer->way.reason == CR_BUDGET_BEYOND ? "BudgetExceeded" : "OnlyPodGoes";
    cr_plan_say_workload(ctx->plan, true, index, reason, cr_strdup(consumer->way.text));
}

static void roll(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index, const char *refused)
{
    if (!cr_plan_restarts_are_recorded(ctx->world->status, consumer->status))
        ctx->plan->record_first = true;
    warn(ctx, consumer, index);
    int64_t at_ms = cr_plan_restart_at_ms(ctx, consumer);
    PLAN_PUSH(ctx->plan->restarts, ctx->plan->restarts_len,
              {.consumer = index,
               .annotations = restart_annotations(ctx, consumer, at_ms),
               .restart_at_ms = cr_plan_restarts_by_time(consumer) ? at_ms : 0,
               .why = cr_strdup(consumer->decision.reason),
               .secrets = secrets_of(ctx, consumer),
               .rotations = cr_plan_rotations_of(ctx, consumer),
               .carries_memory = carries_its_memory(ctx, consumer),
               .under_budget = consumer->way.reason == CR_BUDGET_FITS});
    cr_plan_set_state(consumer->status, refused ? CR_CONSUMER_BLOCKED : CR_CONSUMER_PENDING, refused);
}

static void go_on(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index)
{
    bool blocked = false;
    if (consumer->rollout.state == CR_ROLLOUT_FAILED) {
        fail(ctx, consumer, index);
        return;
    }
    cr_autofree char *gate = cr_plan_gate_again(ctx, consumer, &blocked);
    if (gate)
        cr_plan_hold(ctx, consumer, index, gate, blocked);
    else
        cr_plan_evict_on(ctx, consumer, index);
}

static void begin(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index, const char *refused)
{
    bool blocked = false;
    cr_autofree char *gate = cr_plan_gate(ctx, consumer, &blocked);
    if (gate) {
        say_planned(ctx, consumer, index, gate);
        cr_plan_hold(ctx, consumer, index, gate, blocked);
        return;
    }
    cr_plan_begin(ctx, consumer);
    if (consumer->way.way == CR_BUDGET_EVICT)
        cr_plan_evict_first(ctx, consumer, index);
    else
        roll(ctx, consumer, index, refused);
}

static void restart(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index)
{
    if (is_replaced(ctx, consumer)) {
        cr_plan_set_state(consumer->status, CR_CONSUMER_CONVERGED, NULL);
        return;
    }
    if (was_undone(ctx, consumer)) {
        hold_undone(ctx, consumer, index);
        return;
    }
    /* Refused before: said meanwhile, and tried again after a pause. */
    const char *refused = consumer->world->refused_until_ms > consumer->since_ms ? consumer->world->refused : NULL;
    if (refused && ctx->world->now_ms < consumer->world->refused_until_ms) {
        cr_plan_set_state(consumer->status, CR_CONSUMER_BLOCKED, refused);
        cr_plan_requeue_restart(ctx->plan, consumer->world->refused_until_ms - ctx->world->now_ms);
        return;
    }
    if (consumer->evicts)
        go_on(ctx, consumer, index);
    else
        begin(ctx, consumer, index, refused);
}

/* Pods below a StatefulSet's partition stay on the old template as long as their owner wants it. */
static bool kept_by_partition(const struct plan_consumer *consumer)
{
    return consumer->status->pods.stale &&
           cr_json_int_at(consumer->world->workload, 0, "spec", "updateStrategy", "rollingUpdate", "partition") > 0;
}

static void follow_rollout(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index)
{
    struct cr_consumer_status *status = consumer->status;
    switch (consumer->rollout.state) {
    case CR_ROLLOUT_COMPLETE:
        if (kept_by_partition(consumer))
            cr_plan_set_state(status, CR_CONSUMER_BLOCKED, "updateStrategy.rollingUpdate.partition keeps old pods");
        else
            wait_for_evidence(ctx, consumer);
        return;
    case CR_ROLLOUT_FAILED:
        fail(ctx, consumer, index);
        return;
    case CR_ROLLOUT_PAUSED:
        cr_plan_set_state(status, CR_CONSUMER_BLOCKED, "the workload is paused");
        return;
    case CR_ROLLOUT_MANUAL:
        if (status->pods.stale)
            cr_plan_set_state(status, CR_CONSUMER_BLOCKED,
                              "updateStrategy OnDelete: the old pods must be deleted by hand");
        else
            wait_for_evidence(ctx, consumer);
        return;
    case CR_ROLLOUT_PROGRESSING:
        cr_plan_set_state(status, CR_CONSUMER_RESTARTING, NULL);
        cr_plan_requeue(ctx->plan, WAIT_AGAIN_MS);
        return;
    }
}

static void act(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index)
{
    if (!consumer->concerned)
        return;
    if (consumer->needs_restart) {
        restart(ctx, consumer, index);
    } else if (consumer->restarted) {
        note_restart(ctx, consumer);
        follow_rollout(ctx, consumer, index);
    } else {
        wait_for_evidence(ctx, consumer);
    }
    if (consumer->change_held)
        cr_plan_set_state(consumer->status, CR_CONSUMER_BLOCKED, consumer->held_by);
    cr_plan_care(ctx, consumer, index);
}

void cr_plan_consumers(struct plan_ctx *ctx)
{
    const struct cr_policy *policy = ctx->world->policy;
    struct cr_policy_status *status = &ctx->plan->status;
    cr_plan_keep_consumers(policy, status);

    ctx->consumers_len = policy->consumers_len;
    ctx->consumers = cr_calloc(policy->consumers_len, sizeof *ctx->consumers);
    for (size_t i = 0; i < policy->consumers_len; i++) {
        struct plan_consumer *consumer = &ctx->consumers[i];
        consumer->spec = &policy->consumers[i];
        consumer->world = &ctx->world->consumers[i];
        consumer->status = &status->consumers[i];
        evaluate(ctx, consumer);
        cr_plan_find_under_way(ctx, consumer);
    }
    for (size_t i = 0; i < ctx->consumers_len; i++) {
        act(ctx, &ctx->consumers[i], i);
        cr_plan_wait_for_others(ctx, &ctx->consumers[i]);
    }
    cr_plan_list_under_way(ctx);
}

void cr_plan_consumers_dispose(struct plan_ctx *ctx)
{
    for (size_t i = 0; i < ctx->consumers_len; i++) {
        struct plan_consumer *consumer = &ctx->consumers[i];
        cr_decision_dispose(&consumer->decision);
        free(consumer->changes);
        free(consumer->held_by);
        free(consumer->evidence);
        cr_budget_verdict_dispose(&consumer->way);
    }
    free(ctx->consumers);
}
