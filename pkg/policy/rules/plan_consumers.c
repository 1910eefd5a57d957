/* The consumers of a policy. First it is found what the pending changes mean to each of them, by stages that look; then
 * something is done for one after the other, since each restart that begins takes the place of another. */
#include "policy/rules/plan_internal.h"

#include <stdio.h>
#include <string.h>

#include "api/consumer_kind.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "catalogue/usage.h"

enum { DEADLINE_MINUTES = 10 };

struct plan_stand cr_plan_stand(enum cr_consumer_state state)
{
    return (struct plan_stand){.state = state};
}

struct plan_stand cr_plan_stand_by(enum cr_consumer_state state, struct cr_gate gate)
{
    return (struct plan_stand){.state = state, .gate = gate};
}

void cr_plan_stand_dispose(struct plan_stand *stand)
{
    cr_gate_dispose(&stand->gate);
}

void cr_plan_set_stand(struct cr_consumer_status *status, struct plan_stand stand)
{
    status->state = stand.state;
    cr_gate_set(&status->gate, stand.gate);
}

static char *misfit(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    (void)ctx;
    return cr_plan_misfit(consumer);
}

const struct plan_warning cr_plan_warnings[CR_PLAN_WARNINGS] = {{CR_WARNING_NAME_MISSING, cr_plan_reported_names},
                                                                {CR_WARNING_SHUTDOWN_MISFIT, misfit}};

/* --- which consumers are concerned, and what was decided --- */

/* The gate to report for a consumer for which nothing is to be done. */
static struct cr_gate idle_gate(const struct plan_consumer *consumer)
{
    if (consumer->uses_none)
        return cr_gate_make(CR_HOLD_USES_NO_SECRET,
                            "%s %s uses none of the Secrets of this policy, so nothing is ever done for it: is a name "
                            "misspelled?",
                            consumer->spec->kind, consumer->spec->target);
    return consumer->held_by.hold == CR_HOLD_NO_SECRET ? cr_gate_copy(&consumer->held_by) : CR_GATE_OPEN;
}

/* Nothing was done for it, whatever its pods were last seen to show while idle (plan_verification.c). */
static bool was_idle(const struct cr_consumer_status *status)
{
    return status->state == CR_CONSUMER_IDLE ||
           (status->state == CR_CONSUMER_VERIFYING && cr_hold_is_unseen(status->gate.hold) && !status->since_ms);
}

/* Nothing is to be done for it. What the last rotation decided stays in sight; what was under way is over, unless its
 * Secret broke meanwhile. */
static struct plan_stand rest(struct plan_consumer *consumer)
{
    struct cr_consumer_status *status = consumer->status;
    if (consumer->change_held)
        return cr_plan_stand_by(CR_CONSUMER_BLOCKED, cr_gate_copy(&consumer->held_by));
    /* Only the state is remembered of a consumer that is listed in brief. */
    bool idle = was_idle(status);
    if (!status->reason && idle)
        cr_strset(&status->reason, "No change was seen since certroll began to watch.");
    cr_strvec_dispose(&status->examples);
    return cr_plan_stand_by(idle ? CR_CONSUMER_IDLE : CR_CONSUMER_CONVERGED, idle_gate(consumer));
}

/* No pods: its controller takes up what it names. */
static bool by_api(const struct plan_consumer *consumer)
{
    return cr_policy_kind_by_api(consumer->spec->kind);
}

/* Of one that is not there, as far as it can be seen. */
static char *why_absent(const struct plan_consumer *consumer)
{
    const struct cr_policy_consumer *spec = consumer->spec;
    if (consumer->world->unseen)
        return cr_asprintf("%s %s is not seen, since its kind cannot be listed.", spec->kind, spec->target);
    bool may_be_owned = cr_consumer_kind_of(spec->kind)->only_bare;
    return cr_asprintf("%s %s does not exist%s%s.", spec->kind, spec->target,
                       may_be_owned ? ", or a Deployment or Rollout has made it, which is the consumer then" : "",
                       spec->optional ? "; it is optional, so this is no error" : "");
}

/* An optional one may just be made again around its old pods: what was to be done for it is not done with at once. When
 * it was missed first; 0: nothing was to be done, or it does not come back. */
static int64_t missed_since_ms(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    const struct cr_consumer_status *status = consumer->status;
    int64_t now = ctx->world->now_ms;
    if (!consumer->spec->optional || by_api(consumer) || status->state == CR_CONSUMER_IDLE ||
        status->state == CR_CONSUMER_CONVERGED)
        return 0;
    if (status->state != CR_CONSUMER_ABSENT)
        return ctx->changes_len ? now : 0;
    bool is_over = status->since_ms > now || now - status->since_ms >= CR_KUBELET_REFRESH_MS;
    return is_over ? 0 : status->since_ms;
}

static struct plan_stand absent(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    struct cr_consumer_status *status = consumer->status;
    int64_t missed_ms = missed_since_ms(ctx, consumer);
    if (missed_ms)
        cr_plan_requeue(ctx->plan, missed_ms + CR_KUBELET_REFRESH_MS - ctx->world->now_ms);
    status->decision = CR_DECISION_NONE;
    status->pods = (struct cr_pod_counts){0};
    status->since_ms = missed_ms;
    cr_strvec_dispose(&status->examples);
    cr_autofree char *why = why_absent(consumer);
    cr_strset(&status->reason, why);
    bool may_be_there = consumer->spec->optional || consumer->world->unseen;
    return cr_plan_stand_by(CR_CONSUMER_ABSENT,
                            may_be_there ? CR_GATE_OPEN : cr_gate_make(CR_HOLD_NOT_FOUND, "%s", why));
}

/* Not looked at either: thousands of Jobs would be watched to say that nothing is done for them. */
static struct plan_stand leave_to_next_run(struct plan_consumer *consumer)
{
    struct cr_consumer_status *status = consumer->status;
    status->decision = CR_DECISION_NONE;
    cr_autofree char *why =
        cr_asprintf("nothing to do for %s %s: its next run mounts what the Secrets hold by then, and one that runs now "
                    "is left to end with what it has read.",
                    consumer->spec->kind, consumer->spec->target);
    cr_strset(&status->reason, why);
    return cr_plan_stand(CR_CONSUMER_IDLE);
}

/* Which of the Secrets it uses. A new pod would mount what cannot be used: while one is broken, its old pods are the
 * good ones. */
static void look_at_secrets(const struct plan_ctx *ctx, struct plan_consumer *consumer)
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
        if (!consumer->held_by.hold)
            consumer->held_by = cr_gate_make(
                cr_streq(secret->problem_reason, CR_PROBLEM_NOT_FOUND) ? CR_HOLD_NO_SECRET : CR_HOLD_SECRET_PROBLEM,
                "Secret %s: %s", secret->name, secret->problem_reason);
    }
    /* One that was found is a consumer because it uses one. */
    consumer->uses_none = !consumer->spec->found && ctx->world->policy->secrets_len;
    for (size_t i = 0; i < ctx->world->policy->secrets_len; i++)
        consumer->uses_none = consumer->uses_none && !cr_strvec_has(&used, ctx->world->policy->secrets[i].name);
}

static struct cr_decision decide(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    struct cr_decision decision = {0};
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
        cr_decide_by_api(&input, consumer->world->workload, &decision);
    else
        cr_decide(&input, &decision);
    char *others = decision.kind == CR_DECISION_NONE ? cr_plan_others_reason(ctx, consumer) : NULL;
    if (others) {
        free(decision.reason);
        decision.reason = others;
    }
    return decision;
}

/* --- what each change demands, and what the template already answers --- */

const char *cr_plan_restart_annotation(const struct plan_consumer *consumer, const char *secret)
{
    char name[CR_ANNOTATION_NAME];
    cr_restart_annotation_name(secret, name);
    return cr_restart_annotation_of(consumer->world->workload, name);
}

/* The status remembered nothing, an annotation of some workload did (see plan_secrets.c): it counts for the workloads
 * that carry one. The same holds for trust that was changed and changed back: a workload that was not restarted for it
 * has the right one, as far as it reads once. */
static bool known_from_annotations_only(const struct cr_secret_status *secret)
{
    const struct cr_material *before = &secret->settled;
    const struct cr_material *after = &secret->pending.target;
    return secret->pending.old_leaves.len == 0 && cr_diff(before, after) == 0 &&
           cr_streq(before->opaque, after->opaque);
}

/* By the API server's clock, from which ours may differ; and a kubelet may give a new pod what was there before. */
static bool is_surely_later(int64_t created_ms, int64_t since_ms)
{
    return created_ms >= since_ms + CR_KUBELET_REFRESH_MS;
}

/* A workload that came well after the change was created with the new material, unless it took over pods that were
 * there before (kubectl delete --cascade=orphan). */
static bool created_after(const struct plan_consumer *consumer, int64_t since_ms)
{
    const char *text = cr_json_string_at(consumer->world->workload, "metadata", "creationTimestamp");
    int64_t created_ms = 0;
    if (!text || !cr_time_parse(text, &created_ms, NULL) || !is_surely_later(created_ms, since_ms))
        return false;
    for (size_t i = 0; i < consumer->world->pods_len; i++)
        if (!is_surely_later(consumer->world->pods[i].created_ms, since_ms))
            return false;
    return true;
}

/* A pod began with what the Secret held for a while, before that was taken back. */
static bool has_begun_meanwhile(const struct plan_consumer *consumer, const struct cr_pending_change *pending)
{
    for (size_t i = 0; pending->superseded_ms && i < consumer->world->pods_len; i++)
        if (cr_plan_created_since(&consumer->world->pods[i], pending->superseded_ms) &&
            !cr_plan_created_since(&consumer->world->pods[i], pending->since_ms))
            return true;
    return false;
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

/* Those of the classes that an annotation names with this material. */
static unsigned restarted_for(const char *value, const struct cr_material *target, unsigned classes)
{
    unsigned found = 0;
    for (unsigned class = CR_CLASS_LEAF; class <= CR_CLASS_TRUST; class <<= 1)
        if ((classes & class) && cr_restart_annotation_covers(value, target, class))
            found |= class;
    return found;
}

/* It was not restarted for this Secret yet: what began is brought to its end, whatever its pods look like meanwhile. */
static bool is_untouched(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t k, const char *value)
{
    return !value && !cr_plan_was_evicted_for(ctx, consumer, k);
}

/* What it reads once it has, since it was not restarted for what is taken back. */
static bool began_with_it(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t k)
{
    return known_from_annotations_only(ctx->pending[k]) && !has_begun_meanwhile(consumer, &ctx->pending[k]->pending);
}

/* What reloads may have loaded what was there in between. */
static bool has_it_anyway(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t k)
{
    const struct cr_pending_change *pending = &ctx->pending[k]->pending;
    bool has_reloaded = pending->superseded_ms && consumer->decision.secrets[k].reloads;
    return created_after(consumer, pending->since_ms) || (began_with_it(ctx, consumer, k) && !has_reloaded);
}

/* Of these classes. A leaf of the same CA is as good as the one before. */
static bool has_cas(unsigned changes, unsigned classes)
{
    return (classes & CR_CLASS_TRUST & cr_diff_classes(changes)) ||
           ((classes & CR_CLASS_LEAF) && (changes & CR_CHANGE_ISSUER_CHANGED));
}

/* What was to be reloaded but is in the annotation was restarted for after all (the fall-back), before or by an earlier
 * run of this program. */
static struct plan_change demand_of(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t k)
{
    const struct cr_decision_secret *secret = &consumer->decision.secrets[k];
    const struct cr_pending_change *pending = &ctx->pending[k]->pending;
    const char *value = cr_plan_restart_annotation(consumer, ctx->changes[k].secret->name);
    bool untouched = is_untouched(ctx, consumer, k, value);
    if (!secret->used || secret->kind == CR_DECISION_NONE || (untouched && has_it_anyway(ctx, consumer, k)))
        return (struct plan_change){.concerns = false};
    unsigned seen = cr_diff_classes(ctx->changes[k].changes);
    unsigned demanded = untouched && began_with_it(ctx, consumer, k) ? 0 : secret->restart_classes;
    unsigned classes = demanded | restarted_for(value, &pending->target, secret->reload_classes & CR_PLAN_FALLS_BACK);
    /* Another chain under the same leaf does not show in a leaf. */
    bool new_leaf = (seen & CR_CLASS_LEAF) && pending->target.leaf[0] && pending->old_leaves.len;
    return (struct plan_change){
        .concerns = true,
        .classes = classes,
        .reloads_cas = has_cas(ctx->changes[k].changes, (secret->restart_classes | secret->reload_classes) & ~classes),
        .demanded = demanded != 0,
        .covered = classes && is_covered(consumer, value, pending, classes),
        .is_immutable = ctx->changes[k].was_immutable && demanded,
        .leaf_changed = new_leaf && (secret->roles & CR_ROLE_BIT(CR_ROLE_SERVER_LEAF)),
        .leaf_presented = new_leaf && (secret->roles & CR_ROLE_BIT(CR_ROLE_CLIENT_LEAF)),
        .trust_roles = seen & CR_CLASS_TRUST
                           ? secret->roles & (CR_ROLE_BIT(CR_ROLE_CLIENT_CA) | CR_ROLE_BIT(CR_ROLE_SERVER_CA))
                           : 0,
        .notified = cr_plan_notified(ctx, k, secret->trigger_classes),
        .not_accepted = secret->not_accepted,
        .since_ms = pending->since_ms,
        .max_delay_ms = secret->max_delay_ms,
    };
}

/* Of an immutable Secret: a restart would not help, and may not end: as long as one pod of a node uses it, its kubelet
 * gives the old content to new pods as well (docs/operations.md has what was measured). */
static struct cr_gate immutable_gate(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (consumer->changes[k].is_immutable)
            return cr_gate_make(CR_HOLD_IMMUTABLE_SECRET,
                                "Secret %s was immutable and was replaced under its name: kubelets give the old "
                                "content to new pods, too, while a pod of their node uses it. Use a Secret of another "
                                "name",
                                ctx->changes[k].secret->name);
    return CR_GATE_OPEN;
}

/* What new pods would have is of no use to them: the old ones are the good ones. */
static struct cr_gate useless_gate(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    if (consumer->decision.not_accepted)
        return cr_gate_make(CR_HOLD_KEY_TYPE_NOT_ACCEPTED, "%s", consumer->decision.not_accepted);
    return immutable_gate(ctx, consumer);
}

int64_t cr_plan_restarted_at_ms(const struct cr_json *workload)
{
    bool by_time = cr_consumer_kind_of(cr_json_string_at(workload, "kind"))->restart_at;
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
        const struct plan_change *change = &consumer->changes[k];
        int64_t first_ms = ctx->pending[k]->pending.first_ms;
        any = any || change->classes;
        all = all && (!change->classes || change->covered);
        if (change->since_ms > consumer->since_ms)
            consumer->since_ms = change->since_ms;
        if (change->classes && !change->covered && (!consumer->first_ms || first_ms < consumer->first_ms))
            consumer->first_ms = first_ms;
    }
    consumer->needs_restart = any && !all;
    consumer->restarted = any && all;
    if (consumer->restarted)
        read_last_restart(consumer);
}

/* --- a rollout that stands still --- */

int64_t cr_plan_last_progress_ms(const struct plan_consumer *consumer)
{
    int64_t last_ms = consumer->status->last_restart_ms;
    if (last_ms < consumer->since_ms)
        last_ms = consumer->since_ms;
    for (size_t i = 0; i < consumer->world->pods_len; i++)
        if (consumer->world->pods[i].created_ms > last_ms)
            last_ms = consumer->world->pods[i].created_ms;
    return last_ms;
}

/* A Deployment has a deadline (spec.progressDeadlineSeconds), and its controller says when it has passed (rollout.c);
 * StatefulSets and DaemonSets have none, so theirs is a Deployment's default. Their new pods come when the old ones
 * have ended, so that a drain is given its time first. */
static struct plan_rollout judge_rollout(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    int64_t deadline_ms = DEADLINE_MINUTES * 60 * 1000 + cr_plan_drain_allowance_ms(consumer);
    struct plan_rollout out = {0};
    struct cr_rollout *rollout = &out.rollout;
    if (!by_api(consumer)) /* else nothing rolls */
        cr_rollout_judge(consumer->spec->kind, consumer->world->workload, rollout);
    if (!consumer->restarted || rollout->state != CR_ROLLOUT_PROGRESSING ||
        cr_consumer_kind_of(consumer->spec->kind)->has_deadline)
        return out;
    int64_t left_ms = cr_plan_last_progress_ms(consumer) + deadline_ms - ctx->world->now_ms;
    if (left_ms > 0) {
        out.look_again_ms = left_ms;
        return out;
    }
    char before[sizeof rollout->message];
    snprintf(before, sizeof before, "%s", rollout->message);
    rollout->state = CR_ROLLOUT_FAILED;
    snprintf(rollout->message, sizeof rollout->message, "no new pod for %lld minutes: %.120s",
             (long long)(deadline_ms / 60 / 1000), before);
    return out;
}

/* --- state --- */

/* What a fall-back was for, once its restart is done: what was seen then is not on record yet. */
static void say_fell_back(struct plan_consumer *consumer)
{
    cr_autofree char *text = cr_asprintf("A reload did not happen in time: restarted. (Expected was: %s)",
                                         cr_or_empty(consumer->decision.reason));
    cr_strset(&consumer->status->reason, text);
}

static void show_decision(struct plan_consumer *consumer)
{
    struct cr_consumer_status *status = consumer->status;
    enum cr_decision_kind kind = consumer->decision.kind;
    bool reloads = kind == CR_DECISION_HOT_RELOAD || kind == CR_DECISION_TRIGGER;
    bool fell_back = reloads && (consumer->restarted || consumer->evicts);
    status->since_ms = consumer->since_ms;
    /* The earlier reason ("still serve the old leaf …") says more than the catalogue's expectation. */
    if (fell_back && status->decision == CR_DECISION_RESTART)
        return;
    status->decision = fell_back ? CR_DECISION_RESTART : kind;
    if (fell_back)
        say_fell_back(consumer);
    else
        cr_strset(&status->reason, consumer->decision.reason);
}

static unsigned warnings_of(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    unsigned found = 0;
    for (size_t i = 0; i < CR_PLAN_WARNINGS; i++) {
        cr_autofree char *words = cr_plan_warnings[i].words(ctx, consumer);
        found |= words ? (unsigned)cr_plan_warnings[i].bit : 0;
    }
    return found;
}

/* --- the stages of a consumer --- */

/* False: nothing is ever done for it, or it is not there. */
static bool look_at_workload(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    consumer->status->warnings = 0;
    if (cr_policy_kind_runs_to_end(consumer->spec->kind) || !consumer->world->found)
        return false;
    /* It came back; its pods mounted what the Secrets hold now. */
    if (consumer->status->state == CR_CONSUMER_ABSENT) {
        cr_strset(&consumer->status->reason, NULL);
        consumer->status->state = CR_CONSUMER_IDLE;
    }
    consumer->pod_spec = cr_json_at(consumer->world->workload, "spec", "template", "spec");
    consumer->sidecar = cr_sidecar_find(consumer->pod_spec);
    cr_shutdown_hooks_find(consumer->pod_spec, &consumer->hooks);
    consumer->status->warnings = warnings_of(ctx, consumer);
    cr_plan_count_restart(ctx, consumer);
    look_at_secrets(ctx, consumer);
    return true;
}

/* Decides, and finds what each change demands. False: no change touches it. */
static bool find_demand(const struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    struct cr_consumer_status *status = consumer->status;
    if (!ctx->changes_len)
        return false;
    consumer->decision = decide(ctx, consumer);
    if (consumer->decision.component)
        cr_strset(&status->component, consumer->decision.component);
    if (consumer->decision.kind == CR_DECISION_NONE) {
        if (status->state == CR_CONSUMER_IDLE || !status->reason) {
            status->decision = CR_DECISION_NONE;
            cr_strset(&status->reason, consumer->decision.reason);
        }
        return false;
    }
    bool any = false;
    consumer->changes = cr_calloc(ctx->changes_len, sizeof *consumer->changes);
    for (size_t k = 0; k < ctx->changes_len; k++) {
        consumer->changes[k] = demand_of(ctx, consumer, k);
        any = any || consumer->changes[k].concerns;
    }
    return any;
}

static void look_again(struct plan_ctx *ctx, int64_t after_ms)
{
    if (after_ms)
        cr_plan_requeue(ctx->plan, after_ms);
}

/* Takes found. */
static void take_evidence(struct plan_consumer *consumer, struct plan_found found)
{
    consumer->evidence = found.evidence;
    consumer->status->pods = found.pods;
    cr_strvec_dispose(&consumer->status->examples);
    consumer->status->examples = found.examples;
}

/* What it was to be reloaded for it is restarted for. Takes fall_back. */
static void take_fall_back(const struct plan_ctx *ctx, struct plan_consumer *consumer, struct plan_fall_back fall_back)
{
    for (size_t k = 0; fall_back.any && k < ctx->changes_len; k++)
        consumer->changes[k].classes |= fall_back.classes[k];
    free(fall_back.classes);
    if (!fall_back.any)
        return;
    consumer->needs_restart = true;
    consumer->restarted = false;
    consumer->decision.unknown = false;
    if (!fall_back.reason)
        return;
    free(consumer->decision.reason);
    consumer->decision.reason = fall_back.reason;
    consumer->decision.kind = CR_DECISION_RESTART;
}

static void warn_of_gap(struct plan_consumer *consumer)
{
    cr_autofree char *why = consumer->decision.reason;
    consumer->decision.reason = cr_asprintf(
        "%s Its only pod goes away before another is ready (restart.singleReplica: Warn).", cr_or_empty(why));
}

/* Of a consumer that is concerned: in this order, since each stage looks at what those before it have found. Until
 * something is done for it, only these lines change what is known of it. */
static void run_stages(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    if (!consumer->held_by.hold)
        consumer->held_by = useless_gate(ctx, consumer);
    sum_up(ctx, consumer);
    struct plan_rollout rolls = judge_rollout(ctx, consumer);
    look_again(ctx, rolls.look_again_ms);
    consumer->rollout = rolls.rollout;

    consumer->evicts = cr_plan_evictions_began(ctx, consumer);
    struct plan_found found = cr_plan_evidence(ctx, consumer);
    look_again(ctx, found.look_again_ms);
    take_evidence(consumer, found);
    struct plan_fall_back fall_back = cr_plan_fall_back(ctx, consumer);
    look_again(ctx, fall_back.look_again_ms);
    take_fall_back(ctx, consumer, fall_back);
    /* Pods may have been evicted for what the fall-back adds. */
    consumer->evicts = cr_plan_evictions_began(ctx, consumer);

    consumer->drain = cr_plan_find_drain(ctx, consumer);
    look_again(ctx, consumer->drain.look_again_ms);
    struct plan_rollout evictions = cr_plan_evict_deadline(ctx, consumer);
    look_again(ctx, evictions.look_again_ms);
    consumer->rollout = evictions.rollout;

    if (cr_plan_leaves_gap(ctx, consumer))
        warn_of_gap(consumer);
    show_decision(consumer);
}

static void evaluate(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    consumer->concerned = look_at_workload(ctx, consumer) && find_demand(ctx, consumer);
    if (consumer->concerned)
        run_stages(ctx, consumer);
    consumer->under_way = cr_plan_is_under_way(ctx, consumer);
}

/* Nothing is to be done for it. */
static struct plan_stand stand_aside(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    if (cr_policy_kind_runs_to_end(consumer->spec->kind))
        return leave_to_next_run(consumer);
    return consumer->world->found ? rest(consumer) : absent(ctx, consumer);
}

/* Does what is to be done. A Secret that broke in the middle of a rotation is what a person must know of first; another
 * policy that has the consumer's Secret, last. */
static struct plan_stand stand_of(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index)
{
    CR_CLEANUP(plan_stand)
    struct plan_stand stand = consumer->concerned ? cr_plan_act(ctx, consumer, index) : stand_aside(ctx, consumer);
    struct plan_stand other;
    if (consumer->concerned && consumer->change_held)
        return cr_plan_stand_by(CR_CONSUMER_BLOCKED, cr_gate_copy(&consumer->held_by));
    if ((stand.state == CR_CONSUMER_IDLE || stand.state == CR_CONSUMER_CONVERGED) &&
        cr_plan_wait_for_others(ctx, consumer, &other))
        return other;
    return cr_plan_stand_by(stand.state, cr_gate_steal(&stand.gate));
}

/* A gate may let its restart begin, which the consumers that come later must know. */
static void act(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index)
{
    cr_plan_set_stand(consumer->status, stand_of(ctx, consumer, index));
    if (consumer->concerned)
        cr_plan_follow_up(ctx, consumer, index);
}

/* --- which entry of the status is which consumer's --- */

/* It is the workload that is remembered, not its name in the policy. */
static bool is_of(const struct cr_consumer_status *known, const struct cr_policy_consumer *spec)
{
    return cr_streq(known->target, spec->target) && cr_streq(known->kind, spec->kind);
}

/* NULL: nothing is remembered of it. One without a target is known by its name. */
static struct cr_consumer_status *find(struct cr_policy_status *status, const struct cr_policy_consumer *spec)
{
    for (size_t i = 0; i < status->consumers_len; i++)
        if (is_of(&status->consumers[i], spec))
            return &status->consumers[i];
    struct cr_consumer_status *named = cr_status_consumer(status, spec->name);
    return named && !named->target ? named : NULL;
}

/* Makes the status's consumers parallel to the policy's, each with what is remembered of its workload, whatever that
 * was called before; what belongs to no consumer any more is forgotten. */
static void keep_consumers(const struct cr_policy *policy, struct cr_policy_status *status)
{
    static const struct cr_strvec none = {0};
    struct cr_consumer_status *kept = cr_calloc(policy->consumers_len + 1, sizeof *kept);
    for (size_t i = 0; i < policy->consumers_len; i++) {
        const struct cr_policy_consumer *spec = &policy->consumers[i];
        struct cr_consumer_status *known = find(status, spec);
        if (known) {
            kept[i] = *known;
            *known = (struct cr_consumer_status){0};
        }
        cr_strset(&kept[i].name, spec->name);
        cr_strset(&kept[i].kind, spec->kind);
        cr_strset(&kept[i].target, spec->target);
        kept[i].found = spec->found;
    }
    cr_status_keep_consumers(status, &none);
    free(status->consumers);
    status->consumers = kept;
    status->consumers_len = policy->consumers_len;
}

static bool any_failed(const struct plan_ctx *ctx)
{
    for (size_t i = 0; i < ctx->consumers_len; i++) {
        const struct plan_consumer *consumer = &ctx->consumers[i];
        if ((consumer->restarted || consumer->evicts) && consumer->rollout.state == CR_ROLLOUT_FAILED)
            return true;
    }
    return false;
}

/* Of a workload, or of pods that came up with old material. */
static bool any_restart(const struct plan_ctx *ctx)
{
    for (size_t i = 0; i < ctx->consumers_len; i++)
        if (ctx->consumers[i].needs_restart || ctx->consumers[i].restarted)
            return true;
    return false;
}

void cr_plan_consumers(struct plan_ctx *ctx)
{
    const struct cr_policy *policy = ctx->world->policy;
    struct cr_policy_status *status = &ctx->plan->status;
    keep_consumers(policy, status);

    ctx->consumers_len = policy->consumers_len;
    ctx->consumers = cr_calloc(policy->consumers_len, sizeof *ctx->consumers);
    for (size_t i = 0; i < policy->consumers_len; i++) {
        struct plan_consumer *consumer = &ctx->consumers[i];
        consumer->spec = &policy->consumers[i];
        consumer->world = &ctx->world->consumers[i];
        consumer->status = &status->consumers[i];
        evaluate(ctx, consumer);
    }
    ctx->rollout_failed = any_failed(ctx);
    if (policy->restart.windows_len && any_restart(ctx))
        ctx->schedule = cr_plan_schedule(ctx);
    for (size_t i = 0; i < ctx->consumers_len; i++)
        act(ctx, &ctx->consumers[i], i);
    cr_plan_list_under_way(ctx);
}

void cr_plan_consumers_dispose(struct plan_ctx *ctx)
{
    for (size_t i = 0; i < ctx->consumers_len; i++) {
        struct plan_consumer *consumer = &ctx->consumers[i];
        cr_decision_dispose(&consumer->decision);
        cr_shutdown_hooks_dispose(&consumer->hooks);
        free(consumer->changes);
        cr_gate_dispose(&consumer->held_by);
        free(consumer->evidence);
        cr_budget_verdict_dispose(&consumer->taken);
    }
    free(ctx->consumers);
}
