/* A restart by evictions: pod after pod, through the Eviction API, which PodDisruptionBudgets limit. No pod template is
 * changed, so none can show which pods are the new ones. Their creation does: when the restart begins, the status notes
 * when the newest existing pod was created, and every later pod is a new one. All times are by the API server's clock,
 * so that ours, which may be ahead, does not count. Each pod is recorded before it is evicted, with the policy's
 * version as precondition: after a crash the same one goes, and a leader that was paused finds that its record is
 * refused. */
#include "policy/rules/plan_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

enum {
    LOOK_AGAIN_MS = 5 * 1000, /* at first, beside the events of pods, budgets and the workload */
    GONE_MS = 60 * 1000,      /* a cache that is so long behind is none; then it was not evicted after all */
    DEADLINE_S = 600,         /* where the workload has none: a Deployment's default */
    YOUNG_MS = 2000,
};

/* --- which pods --- */

bool cr_plan_pod_is_gone(const struct plan_ctx *ctx, const struct cr_world_pod *pod)
{
    return pod->evicted_ms && ctx->world->now_ms - pod->evicted_ms < GONE_MS;
}

void cr_plan_await_gone(struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    for (size_t i = 0; i < consumer->world->pods_len; i++)
        if (cr_plan_pod_is_gone(ctx, &consumer->world->pods[i]))
            cr_plan_requeue(ctx->plan, consumer->world->pods[i].evicted_ms + GONE_MS - ctx->world->now_ms);
}

bool cr_plan_came_by_eviction(const struct plan_consumer *consumer, const struct cr_world_pod *pod)
{
    return consumer->evicts && pod->created_ms > consumer->status->evicted_until_ms;
}

static bool has_it(enum cr_evidence evidence)
{
    return evidence == CR_EVIDENCE_VERIFIED || evidence == CR_EVIDENCE_INFERRED;
}

/* For a change that was to be reloaded, only the pods that were seen not to. */
static bool must_go_for(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod, size_t k)
{
    const struct plan_change *change = &consumer->changes[k];
    if (!change->classes || cr_plan_evidence_at(ctx, consumer, pod, k)->evidence != CR_EVIDENCE_STALE)
        return false;
    if (change->demanded && !cr_plan_came_by_eviction(consumer, &consumer->world->pods[pod]))
        return true;
    return cr_plan_seen_old_lately(ctx, consumer, pod, k) &&
           (change->demanded ||
            cr_plan_evidence_at(ctx, consumer, pod, k)->old_ms >= cr_plan_deadline_ms(consumer, change));
}

bool cr_plan_pod_must_go(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod)
{
    for (size_t k = 0; consumer->concerned && k < ctx->changes_len; k++)
        if (must_go_for(ctx, consumer, pod, k))
            return true;
    return false;
}

/* A new one that is not ready, or of which it is not known yet whether it has what it came for. */
static bool is_awaited(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod)
{
    const struct cr_world_pod *new_one = &consumer->world->pods[pod];
    if (!cr_plan_came_by_eviction(consumer, new_one) || cr_plan_pod_must_go(ctx, consumer, pod))
        return false;
    if (!new_one->ready)
        return true;
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (consumer->changes[k].classes && !has_it(cr_plan_evidence_at(ctx, consumer, pod, k)->evidence))
            return true;
    return false;
}

static const struct cr_world_pod *awaited(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    for (size_t i = 0; i < consumer->world->pods_len; i++)
        if (is_awaited(ctx, consumer, i))
            return &consumer->world->pods[i];
    return NULL;
}

/* One at a time, also of those that were not ready before. */
static bool is_missing(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    int there = 0;
    for (size_t i = 0; i < consumer->world->pods_len; i++)
        there += !cr_plan_pod_is_gone(ctx, &consumer->world->pods[i]);
    return there < consumer->rollout.desired;
}

/* A rollout of others, which replaces the pods by itself; after an eviction some are not available, but all are
 * updated. */
static bool rolls(const struct plan_consumer *consumer)
{
    return consumer->rollout.state == CR_ROLLOUT_PROGRESSING && consumer->rollout.updated < consumer->rollout.desired;
}

int cr_plan_ready_pods(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    int ready = 0;
    for (size_t i = 0; i < consumer->world->pods_len; i++)
        ready += consumer->world->pods[i].ready && !cr_plan_pod_is_gone(ctx, &consumer->world->pods[i]);
    return ready;
}

static bool is_whole(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    return cr_plan_ready_pods(ctx, consumer) >= consumer->rollout.desired;
}

/* --- where it stands --- */

/* What is on record is for these changes, or for more: one of them may have settled since. */
static bool is_for(const char *recorded, const char *ids)
{
    cr_autofree char *copy = cr_strdup(ids);
    char *rest = copy;
    bool any = false;
    for (char *id; (id = strsep(&rest, ","));) {
        if (!*id)
            continue;
        if (!strstr(cr_or_empty(recorded), id))
            return false;
        any = true;
    }
    return any;
}

static bool may_be_on_record(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    enum cr_restart_method method = ctx->world->policy->restart.method;
    return consumer->status->evicted_until_ms && !consumer->restarted &&
           (method == CR_RESTART_AUTO || method == CR_RESTART_EVICT);
}

bool cr_plan_was_evicted_for(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change)
{
    return may_be_on_record(ctx, consumer) && is_for(consumer->status->restarted_for, ctx->pending[change]->pending.id);
}

bool cr_plan_evictions_began(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    if (!may_be_on_record(ctx, consumer))
        return false;
    cr_autofree char *ids = cr_plan_rotations_of(ctx, consumer);
    return is_for(consumer->status->restarted_for, ids);
}

bool cr_plan_evictions_go_on(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    if (!consumer->evicts || !consumer->needs_restart || consumer->rollout.state == CR_ROLLOUT_FAILED)
        return false;
    for (size_t i = 0; i < consumer->world->pods_len; i++)
        if (cr_plan_pod_must_go(ctx, consumer, i))
            return true;
    return !is_whole(ctx, consumer);
}

/* When it was last seen to move: a pod was evicted, or one came up. */
static int64_t moved_ms(const struct plan_consumer *consumer)
{
    int64_t moved = consumer->status->last_restart_ms;
    for (size_t i = 0; i < consumer->world->pods_len; i++)
        if (consumer->world->pods[i].created_ms > moved)
            moved = consumer->world->pods[i].created_ms;
    return moved;
}

struct plan_rollout cr_plan_evict_deadline(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    struct plan_rollout out = {.rollout = consumer->rollout};
    if (!consumer->evicts || is_whole(ctx, consumer))
        return out;
    int64_t seconds = cr_json_int_at(consumer->world->workload, DEADLINE_S, "spec", "progressDeadlineSeconds");
    int64_t due = moved_ms(consumer) + seconds * 1000 + cr_plan_drain_allowance_ms(consumer);
    if (ctx->world->now_ms < due) {
        out.look_again_ms = due - ctx->world->now_ms;
        return out;
    }
    out.rollout.state = CR_ROLLOUT_FAILED;
    snprintf(out.rollout.message, sizeof out.rollout.message,
             "after an eviction its pods were not all ready again within %lld s", (long long)seconds);
    return out;
}

/* --- when a new pod surely has the new Secret --- */

static bool can_show(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t k)
{
    const struct cr_policy_verify *verify = &consumer->spec->verify;
    const struct plan_change *change = &consumer->changes[k];
    if (!change->leaf_changed || !(change->classes & CR_CLASS_LEAF))
        return false;
    for (size_t i = 0; i < verify->endpoints_len; i++)
        if (!verify->endpoints[i].secret_name || cr_streq(verify->endpoints[i].secret_name, ctx->pending[k]->name))
            return true;
    return false;
}

static int64_t surely_new_ms(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    int64_t due = 0;
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (consumer->changes[k].classes && consumer->changes[k].demanded && !can_show(ctx, consumer, k) &&
            consumer->changes[k].since_ms + CR_KUBELET_REFRESH_MS > due)
            due = consumer->changes[k].since_ms + CR_KUBELET_REFRESH_MS;
    return due;
}

struct cr_gate cr_plan_unverifiable_gate(const struct plan_question *q)
{
    int64_t due = q->way->way == CR_BUDGET_EVICT ? surely_new_ms(q->ctx, q->consumer) : 0;
    if (q->ctx->world->now_ms >= due)
        return CR_GATE_OPEN;
    char until[CR_TIME_TEXT];
    cr_time_format(due + 999, until);
    struct cr_gate gate = cr_gate_make(
        CR_HOLD_KUBELET,
        "kubelet: evictions wait until %s: before, a new pod may mount the old Secret from its kubelet's cache, and no "
        "handshake could tell",
        until);
    gate.look_again_ms = due - q->ctx->world->now_ms;
    return gate;
}

/* --- what is done --- */

static int64_t newest_ms(const struct plan_consumer *consumer)
{
    int64_t newest = 0;
    for (size_t i = 0; i < consumer->world->pods_len; i++)
        if (consumer->world->pods[i].created_ms > newest)
            newest = consumer->world->pods[i].created_ms;
    return newest;
}

/* One restart, whatever it takes to bring it about. */
static void note_beginning(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index,
                           struct cr_budget_verdict *way)
{
    struct cr_consumer_status *status = consumer->status;
    cr_autofree char *ids = cr_plan_rotations_of(ctx, consumer);
    cr_strset(&status->restarted_for, ids);
    status->restarted_generation = cr_json_int_at(consumer->world->workload, 0, "metadata", "generation");
    status->evicted_until_ms = newest_ms(consumer);
    cr_plan_count_evictions(ctx, consumer);
    PLAN_PUSH(ctx->plan->evicting, ctx->plan->evicting_len, index);
    consumer->taken = *way;
    *way = (struct cr_budget_verdict){0};
}

/* It is on record that this pod goes, or it is put there first. */
static struct plan_stand evict(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index, size_t pod)
{
    struct cr_consumer_status *status = consumer->status;
    const struct cr_world_pod *chosen = &consumer->world->pods[pod];
    if (consumer->evicts && cr_streq(status->evicting, chosen->uid)) {
        PLAN_PUSH(ctx->plan->evictions, ctx->plan->evictions_len,
                  {.consumer = index, .pod = pod, .repair = cr_plan_came_by_eviction(consumer, chosen)});
        return cr_plan_stand(CR_CONSUMER_RESTARTING);
    }
    cr_strset(&status->evicting, chosen->uid);
    status->last_restart_ms = ctx->world->now_ms;
    ctx->plan->record_first = true;
    return cr_plan_stand(CR_CONSUMER_RESTARTING);
}

/* Pods come with whole seconds: a pod of this very second could not be distinguished from those that follow it. */
static bool too_young(struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    int64_t age_ms = ctx->world->now_ms - newest_ms(consumer);
    if (age_ms <= -YOUNG_MS || age_ms >= YOUNG_MS) /* much less than none: by another clock, which would be long */
        return false;
    cr_plan_requeue_restart(ctx->plan, YOUNG_MS - age_ms);
    return true;
}

struct plan_stand cr_plan_evict_first(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index,
                                      struct cr_budget_verdict *way)
{
    bool waits = rolls(consumer);
    if (waits)
        cr_plan_look_again_restart(ctx, consumer, LOOK_AGAIN_MS);
    if (waits)
        return cr_plan_stand_by(CR_CONSUMER_PENDING,
                                cr_gate_make(CR_HOLD_ROLLOUT_UNDER_WAY, "waits for the rollout under way"));
    if (way->pod == SIZE_MAX || too_young(ctx, consumer))
        return cr_plan_stand(CR_CONSUMER_PENDING);
    cr_plan_begin(ctx, consumer);
    note_beginning(ctx, consumer, index, way);
    return evict(ctx, consumer, index, consumer->taken.pod);
}

/* A new pod that serves the old leaf, if there is one: it goes before any other. One that is not ready does so at once,
 * and others only when it is back. */
static bool find_repair(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t *pod)
{
    const struct cr_world_pod *pods = consumer->world->pods;
    bool any = false;
    for (size_t i = 0; i < consumer->world->pods_len; i++) {
        if (!cr_plan_came_by_eviction(consumer, &pods[i]) || cr_plan_pod_is_gone(ctx, &pods[i]) ||
            !cr_plan_pod_must_go(ctx, consumer, i) || (any && pods[i].ready))
            continue;
        *pod = i;
        any = true;
        if (!pods[i].ready)
            break;
    }
    return any;
}

/* The API server holds it to the budgets. */
static struct plan_stand repair(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index, size_t pod)
{
    if (consumer->world->evictions >= CR_PLAN_EVICTIONS_MAX)
        return cr_plan_still_stale();
    CR_CLEANUP(cr_gate) struct cr_gate held = CR_GATE_OPEN;
    if (cr_plan_repair_is_due(ctx, consumer, pod, &held))
        return evict(ctx, consumer, index, pod);
    return held.hold ? cr_plan_held(cr_gate_steal(&held)) : cr_plan_stand(CR_CONSUMER_RESTARTING);
}

/* The one on record goes before others like it: after a crash pods come in any order. */
static size_t recorded_or(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t chosen)
{
    const struct cr_world_pod *pods = consumer->world->pods;
    for (size_t i = 0; i < consumer->world->pods_len; i++)
        if (cr_streq(pods[i].uid, consumer->status->evicting) && pods[i].ready == pods[chosen].ready &&
            !cr_plan_pod_is_gone(ctx, &pods[i]) && cr_plan_pod_must_go(ctx, consumer, i))
            return i;
    return chosen;
}

static struct plan_stand evict_next(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index)
{
    CR_CLEANUP(plan_answer) struct plan_answer answer = cr_plan_ask(ctx, consumer, PLAN_TO_EVICT_NEXT);
    cr_plan_note_wait(ctx, &answer.gate);
    if (!answer.gate.hold && answer.way.pod != SIZE_MAX)
        return evict(ctx, consumer, index, recorded_or(ctx, consumer, answer.way.pod));
    if (!answer.gate.hold || answer.way.reason == CR_BUDGET_REPLACEMENT)
        return cr_plan_stand(CR_CONSUMER_RESTARTING);
    return cr_plan_held(cr_gate_steal(&answer.gate));
}

struct plan_stand cr_plan_evict_on(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index)
{
    size_t pod = 0;
    const struct cr_world_pod *new_one = awaited(ctx, consumer);
    cr_plan_look_again(ctx, consumer, LOOK_AGAIN_MS);
    if (find_repair(ctx, consumer, &pod))
        return repair(ctx, consumer, index, pod);
    if (new_one)
        return cr_plan_stand_by(
            CR_CONSUMER_RESTARTING,
            cr_gate_make(CR_HOLD_EVIDENCE, "waits for evidence that new pod %s has the new material", new_one->name));
    if (!is_missing(ctx, consumer) && !rolls(consumer))
        return evict_next(ctx, consumer, index);
    return cr_plan_drains(consumer) ? cr_plan_draining(consumer) : cr_plan_stand(CR_CONSUMER_RESTARTING);
}
