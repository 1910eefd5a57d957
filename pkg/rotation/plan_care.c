/* What is done for pods: made to refresh, looked at, and, rarely, replaced. */
#include "rotation/plan_internal.h"

#include "base/alloc.h"
#include "base/strings.h"

enum {
    PROBED_NUDGES_MAX = 12, /* a pod that shows the old leaf is nudged again, slower and slower */
    BLIND_NUDGES_MAX = 3,   /* where nothing can be seen, enough to win the race with the kubelet's Secret watch */
    OLD_POD_NUDGES_MAX = 1, /* the old pods of a restart go soon: one lets them serve the new leaf meanwhile */
    PROBE_SLACK_MS = 3000,  /* a probe's own time-out, and the queue */
};

/* --- nudges --- */

static int nudges_max(const struct plan_consumer *consumer, const struct plan_change *change)
{
    if (change->classes)
        return OLD_POD_NUDGES_MAX;
    return consumer->spec->verify.set && change->leaf_changed ? PROBED_NUDGES_MAX : BLIND_NUDGES_MAX;
}

/* The pod is one that the restart for this change brought. */
static bool came_up_for(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod, size_t change)
{
    const struct cr_world_pod *p = &consumer->world->pods[pod];
    const struct plan_change *c = &consumer->changes[change];
    return c->classes && cr_plan_created_since(p, c->since_ms) && cr_plan_pod_is_new(ctx, consumer, p, change);
}

/* How often this pod may be nudged; 0 when it would not help. */
static int nudges_wanted(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod)
{
    int wanted = 0;
    for (size_t k = 0; k < ctx->changes_len; k++) {
        const struct cr_decision_secret *secret = &consumer->decision.secrets[k];
        const struct plan_change *change = &consumer->changes[k];
        enum cr_evidence evidence = cr_plan_evidence_of(ctx, consumer, pod, k);
        if (!change->concerns || !secret->refreshes || !secret->reload_classes || evidence == CR_EVIDENCE_VERIFIED ||
            evidence == CR_EVIDENCE_INFERRED)
            continue;
        /* A new pod that shows old material must not be refreshed: what it read once would stay old, unseen. */
        if (came_up_for(ctx, consumer, pod, k))
            return 0;
        if (nudges_max(consumer, change) > wanted)
            wanted = nudges_max(consumer, change);
    }
    return wanted;
}

static void maybe_nudge(struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t index, size_t pod_index)
{
    static const int64_t pauses_ms[] = {0, 1000, 2000, 3000, 5000, 8000, 15000, 30000};
    const struct cr_world_pod *pod = &consumer->world->pods[pod_index];
    int64_t now = ctx->world->now_ms;
    int nudges = pod->nudged_since_ms == consumer->since_ms ? pod->nudges : 0;
    if (!pod->started_ms || nudges >= nudges_wanted(ctx, consumer, pod_index))
        return;
    size_t step = (size_t)nudges < cr_array_len(pauses_ms) ? (size_t)nudges : cr_array_len(pauses_ms) - 1;
    int64_t due = nudges ? pod->nudged_ms + pauses_ms[step] : 0;
    if (now < due && pod->nudged_ms <= now) {
        cr_plan_requeue(ctx->plan, due - now);
        return;
    }
    PLAN_PUSH(ctx->plan->nudges, ctx->plan->nudges_len, {.consumer = index, .pod = pod_index});
}

/* --- probes --- */

static int64_t probe_interval_ms(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    int64_t newest =
        consumer->status->last_restart_ms > consumer->since_ms ? consumer->status->last_restart_ms : consumer->since_ms;
    int64_t age_ms = ctx->world->now_ms - newest;
    if (age_ms < 15 * 1000)
        return 200;
    if (age_ms < 2 * 60 * 1000)
        return 1000;
    return age_ms < 10 * 60 * 1000 ? 5000 : 30 * 1000;
}

bool cr_plan_seen_lately(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                         const struct cr_world_pod *pod)
{
    return pod->probed_ms && pod->probed_ms <= ctx->world->now_ms &&
           ctx->world->now_ms - pod->probed_ms <= 2 * probe_interval_ms(ctx, consumer) + PROBE_SLACK_MS;
}

/* Whether the leaf that this pod serves can tell anything: whatever an old pod of a demanded restart serves, it goes.
 */
static bool worth_a_look(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod_index)
{
    const struct cr_world_pod *pod = &consumer->world->pods[pod_index];
    for (size_t k = 0; k < ctx->changes_len; k++) {
        const struct plan_change *change = &consumer->changes[k];
        if (!change->concerns || !change->leaf_changed ||
            cr_plan_evidence_of(ctx, consumer, pod_index, k) == CR_EVIDENCE_VERIFIED)
            continue;
        if (!change->demanded || cr_plan_created_since(pod, change->since_ms) ||
            cr_plan_pod_is_new(ctx, consumer, pod, k))
            return true;
    }
    return false;
}

static void maybe_probe(struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t index, size_t pod_index)
{
    const struct cr_world_pod *pod = &consumer->world->pods[pod_index];
    if (!consumer->spec->verify.set || !pod->ip || !pod->started_ms || !worth_a_look(ctx, consumer, pod_index))
        return;
    int64_t due = pod->probed_ms ? pod->probed_ms + probe_interval_ms(ctx, consumer) : 0;
    if (ctx->world->now_ms < due) {
        cr_plan_requeue(ctx->plan, due - ctx->world->now_ms);
        return;
    }
    PLAN_PUSH(ctx->plan->probes, ctx->plan->probes_len, {.consumer = index, .pod = pod_index});
}

/* --- evictions --- */

static bool holds_old_material(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod_index)
{
    const struct cr_world_pod *pod = &consumer->world->pods[pod_index];
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (consumer->changes[k].covered && came_up_for(ctx, consumer, pod_index, k) &&
            cr_plan_evidence_of(ctx, consumer, pod_index, k) == CR_EVIDENCE_STALE && pod->seen == CR_SEEN_LEAF &&
            cr_plan_seen_lately(ctx, consumer, pod))
            return true;
    return false;
}

/* A new pod that serves the old leaf mounted the Secret from its kubelet's cache (kubernetes#129645): what it read once
 * is old as well. One at a time, slower and slower, and not for ever: then something else keeps the old leaf. */
static bool maybe_evict(struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t index, size_t pod_index)
{
    static const int64_t pauses_ms[] = {10 * 1000, 30 * 1000, 60 * 1000, 120 * 1000};
    const struct cr_policy *policy = ctx->world->policy;
    int done = consumer->world->evictions;
    if (consumer->held_by || policy->restart.held_by || policy->restart.method == CR_RESTART_NEVER ||
        done >= CR_PLAN_EVICTIONS_MAX || !holds_old_material(ctx, consumer, pod_index))
        return false;
    size_t step = (size_t)done < cr_array_len(pauses_ms) ? (size_t)done : cr_array_len(pauses_ms) - 1;
    int64_t due = done ? consumer->world->evicted_ms + pauses_ms[step] : 0;
    if (consumer->world->refused && consumer->world->refused_until_ms > due)
        due = consumer->world->refused_until_ms;
    if (ctx->world->now_ms < due) {
        cr_plan_requeue(ctx->plan, due - ctx->world->now_ms);
        return false;
    }
    PLAN_PUSH(ctx->plan->evictions, ctx->plan->evictions_len, {.consumer = index, .pod = pod_index});
    return true;
}

void cr_plan_care(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index)
{
    if (!cr_plan_may_act(ctx))
        return;
    bool evicting = false;
    for (size_t i = 0; i < consumer->world->pods_len; i++) {
        maybe_probe(ctx, consumer, index, i);
        evicting = evicting || maybe_evict(ctx, consumer, index, i);
        maybe_nudge(ctx, consumer, index, i);
    }
}
