/* What becomes of a consumer once its decision is known: one restart for each rotation, by a rollout or by evictions,
 * or a wait. */
#include "policy/rules/plan_internal.h"

#include "api/consumer_kind.h"
#include "base/alloc.h"
#include "base/strings.h"

enum { WAIT_AGAIN_MS = 5 * 1000 }; /* at first, beside the events of the workload and its pods */

/* --- kinds that are not restarted by their pod template --- */

/* An Argo Rollout would take a changed template for a new version, and go through its canary; it is restarted by
 * spec.restartAt instead: its controller evicts, within budgets, whatever pod was created before (rollout/restart.go of
 * github.com/argoproj/argo-rollouts, argo-rollouts.readthedocs.io, "Restarting Rollout Pods"). So there the time of its
 * creation distinguishes a new pod. */
bool cr_plan_restarts_by_time(const struct plan_consumer *consumer)
{
    return cr_consumer_kind_of(consumer->spec->kind)->restart_at;
}

/* When a restart by time takes place: in whole seconds, after the creation of each existing pod; for other kinds, now.
 */
static int64_t restart_at_ms(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    int64_t at_ms = ctx->world->now_ms;
    if (!cr_plan_restarts_by_time(consumer))
        return at_ms;
    /* Pods have the API server's clock, in seconds. Ours may be behind it: then those that are there now would be as
     * good as restarted. */
    for (size_t i = 0; i < consumer->world->pods_len; i++)
        if (consumer->world->pods[i].created_ms + 1000 > at_ms)
            at_ms = consumer->world->pods[i].created_ms + 1000;
    return at_ms - at_ms % 1000;
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
static void note_restart(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    cr_autofree char *ids = cr_plan_rotations_of(ctx, consumer);
    if (cr_streq(consumer->status->restarted_for, ids) && !consumer->status->evicted_until_ms)
        return;
    cr_strset(&consumer->status->restarted_for, ids);
    consumer->status->restarted_generation = generation_of(consumer);
    consumer->status->evicted_until_ms = 0;
    cr_strset(&consumer->status->evicting, NULL);
    /* At once, not with the next status: a person who undoes it meanwhile would have it done again. */
    ctx->plan->record_first = true;
}

/* Restarted for this very rotation, and the template lost the annotation since: it was undone (kubectl rollout undo, a
 * GitOps tool). That rollout and ours would alternate for ever. An older generation is only a stale read; and the same
 * one says nothing, but for the annotations of an Argo Rollout itself, which make no new one. */
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

static bool all_pods_have_all(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (consumer->changes[k].concerns && !cr_plan_pods_have(ctx, consumer, k))
            return false;
    return true;
}

/* All that should be there have it. */
static struct plan_stand arrived(const struct plan_consumer *consumer)
{
    return cr_plan_drains(consumer) ? cr_plan_draining(consumer) : cr_plan_stand(CR_CONSUMER_CONVERGED);
}

struct plan_stand cr_plan_still_stale(void)
{
    return cr_plan_stand_by(
        CR_CONSUMER_BLOCKED,
        cr_gate_make(CR_HOLD_STILL_STALE, "new pods go on serving the old leaf: is it copied somewhere?"));
}

static struct plan_stand failed(const struct plan_consumer *consumer)
{
    return cr_plan_stand_by(CR_CONSUMER_FAILED, cr_gate_make(CR_HOLD_ROLLOUT_FAILED, "%s", consumer->rollout.message));
}

/* Whose rollout it is does not count: old pods are there, and may not reload. */
static struct plan_stand wait_for_template(struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    static const char why[] = "pods of a template of before are there, which may not reload";
    switch (consumer->rollout.state) {
    case CR_ROLLOUT_COMPLETE:
        return cr_plan_stand_by(CR_CONSUMER_BLOCKED,
                                cr_gate_make(CR_HOLD_PARTITION, "updateStrategy.rollingUpdate.partition: %s", why));
    case CR_ROLLOUT_MANUAL:
        return cr_plan_stand_by(CR_CONSUMER_BLOCKED,
                                cr_gate_make(CR_HOLD_ON_DELETE, "updateStrategy OnDelete: %s", why));
    case CR_ROLLOUT_PAUSED:
        return cr_plan_stand_by(CR_CONSUMER_BLOCKED, cr_plan_paused());
    case CR_ROLLOUT_FAILED:
        return failed(consumer);
    case CR_ROLLOUT_PROGRESSING:
        break;
    }
    cr_plan_look_again(ctx, consumer, WAIT_AGAIN_MS);
    return cr_plan_stand_by(CR_CONSUMER_VERIFYING, cr_gate_make(CR_HOLD_EVIDENCE, "waits for its rollout: %s", why));
}

static struct plan_stand wait_for_evidence(struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    if (all_pods_have_all(ctx, consumer))
        return arrived(consumer);
    if (cr_plan_awaits_template(ctx, consumer))
        return wait_for_template(ctx, consumer);
    if (consumer->world->evictions >= CR_PLAN_EVICTIONS_MAX && consumer->status->pods.stale)
        return cr_plan_still_stale();
    cr_plan_look_again(ctx, consumer, WAIT_AGAIN_MS);
    int64_t delay_ms = cr_plan_delay_left_ms(ctx, consumer);
    if (delay_ms)
        cr_plan_requeue(ctx->plan, delay_ms);
    if (cr_plan_drains(consumer))
        return cr_plan_draining(consumer);
    CR_CLEANUP(plan_answer) struct plan_answer off = cr_plan_ask(ctx, consumer, PLAN_TO_ACT);
    return cr_plan_stand_by(CR_CONSUMER_VERIFYING, cr_gate_steal(&off.gate));
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
            cr_restart_annotation_merge(cr_plan_restart_annotation(consumer, secret), &ctx->pending[k]->pending.target,
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

static struct plan_stand undone(const struct plan_consumer *consumer)
{
    return cr_plan_stand_by(
        CR_CONSUMER_BLOCKED,
        cr_gate_make(CR_HOLD_RESTART_UNDONE, "the restart was undone: its annotation is gone from %s",
                     cr_plan_restarts_by_time(consumer) ? "the Rollout, or its restartAt" : "the pod template"));
}

void cr_plan_note_wait(struct plan_ctx *ctx, const struct cr_gate *gate)
{
    if (gate->look_again_ms)
        cr_plan_requeue_restart(ctx->plan, gate->look_again_ms);
    ctx->plan->waits_for_limit = ctx->plan->waits_for_limit || gate->hold == CR_HOLD_LIMIT;
}

struct plan_stand cr_plan_held(struct cr_gate gate)
{
    return cr_plan_stand_by(cr_hold_needs_a_person(gate.hold) ? CR_CONSUMER_BLOCKED : CR_CONSUMER_PENDING, gate);
}

/* In mode Plan: which way would be taken now, if nothing else forbids a restart. */
static void show_way(const struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    static const char *const would[] = {
        [CR_BUDGET_ROLL] = "roll", [CR_BUDGET_EVICT] = "evict pod by pod", [CR_BUDGET_BLOCKED] = "be blocked"};
    CR_CLEANUP(plan_answer) struct plan_answer answer = cr_plan_ask(ctx, consumer, PLAN_TO_PROPOSE);
    if (answer.gate.hold)
        return;
    CR_CLEANUP(cr_budget_verdict) struct cr_budget_verdict way = cr_plan_way(ctx, consumer);
    cr_autofree char *why = consumer->decision.reason;
    consumer->decision.reason =
        cr_asprintf("%s Would %s%s%s.", cr_or_empty(why), would[way.way], way.text ? ": " : "", cr_or_empty(way.text));
    cr_strset(&consumer->status->reason, consumer->decision.reason);
}

/* Others have replaced all pods since, with the new material, or we have, one by one. */
static bool is_replaced(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    bool stands = consumer->rollout.state == CR_ROLLOUT_COMPLETE ||
                  (consumer->evicts && consumer->rollout.state == CR_ROLLOUT_MANUAL);
    return stands && all_pods_have_all(ctx, consumer);
}

/* What the API server said when it was last tried. */
static struct plan_stand refused(const struct plan_consumer *consumer)
{
    return cr_plan_stand_by(
        CR_CONSUMER_BLOCKED,
        cr_gate_make(consumer->world->refused_by_budget ? CR_HOLD_REFUSED_BY_BUDGET : CR_HOLD_REFUSED, "%s",
                     consumer->world->refused));
}

/* Past a budget, or the only pod goes: that is worth a warning. */
static const char *warns_of(const struct cr_budget_verdict *way)
{
    if (!way->warning)
        return NULL;
    return way->reason == CR_BUDGET_BEYOND ? "BudgetExceeded" : "OnlyPodGoes";
}

static void roll(struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t index,
                 const struct cr_budget_verdict *way)
{
    if (!cr_plan_restarts_are_recorded(ctx->world->status, consumer->status))
        ctx->plan->record_first = true;
    int64_t at_ms = restart_at_ms(ctx, consumer);
    PLAN_PUSH(ctx->plan->restarts, ctx->plan->restarts_len,
              {.consumer = index,
               .annotations = restart_annotations(ctx, consumer, at_ms),
               .restart_at_ms = cr_plan_restarts_by_time(consumer) ? at_ms : 0,
               .why = cr_strdup(consumer->decision.reason),
               .secrets = secrets_of(ctx, consumer),
               .rotations = cr_plan_rotations_of(ctx, consumer),
               .warns = warns_of(way),
               .warning = cr_strdup_or_null(warns_of(way) ? way->text : NULL),
               .carries_memory = carries_its_memory(ctx, consumer),
               .under_budget = way->reason == CR_BUDGET_FITS});
}

static struct plan_stand go_on(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index)
{
    if (consumer->rollout.state == CR_ROLLOUT_FAILED)
        return failed(consumer);
    CR_CLEANUP(plan_answer) struct plan_answer answer = cr_plan_ask(ctx, consumer, PLAN_TO_GO_ON);
    return answer.gate.hold ? cr_plan_held(cr_gate_steal(&answer.gate)) : cr_plan_evict_on(ctx, consumer, index);
}

/* was_refused: that stays in sight while it is tried again. */
static struct plan_stand begin(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index, bool was_refused)
{
    CR_CLEANUP(plan_answer) struct plan_answer answer = cr_plan_ask(ctx, consumer, PLAN_TO_BEGIN);
    cr_plan_note_wait(ctx, &answer.gate);
    if (answer.gate.hold == CR_HOLD_PLAN_MODE)
        show_way(ctx, consumer);
    if (answer.gate.hold)
        return cr_plan_held(cr_gate_steal(&answer.gate));
    if (answer.way.way == CR_BUDGET_EVICT)
        return cr_plan_evict_first(ctx, consumer, index, &answer.way);
    cr_plan_begin(ctx, consumer);
    roll(ctx, consumer, index, &answer.way);
    return was_refused ? refused(consumer) : cr_plan_stand(CR_CONSUMER_PENDING);
}

static struct plan_stand restart(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index)
{
    if (is_replaced(ctx, consumer))
        return arrived(consumer);
    if (was_undone(ctx, consumer))
        return undone(consumer);
    /* Refused before: said meanwhile, and tried again after a pause. */
    bool was_refused = consumer->world->refused && consumer->world->refused_until_ms > consumer->since_ms;
    if (was_refused && ctx->world->now_ms < consumer->world->refused_until_ms) {
        cr_plan_requeue_restart(ctx->plan, consumer->world->refused_until_ms - ctx->world->now_ms);
        return refused(consumer);
    }
    return consumer->evicts ? go_on(ctx, consumer, index) : begin(ctx, consumer, index, was_refused);
}

/* Pods below a StatefulSet's partition stay on the old template as long as their owner wants it. */
static bool kept_by_partition(const struct plan_consumer *consumer)
{
    return consumer->status->pods.stale &&
           cr_json_int_at(consumer->world->workload, 0, "spec", "updateStrategy", "rollingUpdate", "partition") > 0;
}

static struct plan_stand follow_rollout(struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    switch (consumer->rollout.state) {
    case CR_ROLLOUT_COMPLETE:
        if (kept_by_partition(consumer))
            return cr_plan_stand_by(
                CR_CONSUMER_BLOCKED,
                cr_gate_make(CR_HOLD_PARTITION, "updateStrategy.rollingUpdate.partition keeps old pods"));
        return wait_for_evidence(ctx, consumer);
    case CR_ROLLOUT_FAILED:
        return failed(consumer);
    case CR_ROLLOUT_PAUSED:
        return cr_plan_stand_by(CR_CONSUMER_BLOCKED, cr_plan_paused());
    case CR_ROLLOUT_MANUAL:
        if (consumer->status->pods.stale)
            return cr_plan_stand_by(
                CR_CONSUMER_BLOCKED,
                cr_gate_make(CR_HOLD_ON_DELETE, "updateStrategy OnDelete: the old pods must be deleted by hand"));
        return wait_for_evidence(ctx, consumer);
    case CR_ROLLOUT_PROGRESSING:
        break;
    }
    cr_plan_look_again(ctx, consumer, WAIT_AGAIN_MS);
    return cr_plan_drains(consumer) ? cr_plan_draining(consumer) : cr_plan_stand(CR_CONSUMER_RESTARTING);
}

struct plan_stand cr_plan_act(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index)
{
    if (consumer->needs_restart)
        return restart(ctx, consumer, index);
    if (!consumer->restarted)
        return wait_for_evidence(ctx, consumer);
    note_restart(ctx, consumer);
    return follow_rollout(ctx, consumer);
}
