#include "rotation/plan_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

enum {
    EXAMPLES_MAX = 5,
    PROBED_NUDGES_MAX = 12,  /* a pod that shows the old leaf is nudged again, slower and slower */
    BLIND_NUDGES_MAX = 3,    /* where nothing can be seen, enough to win the race with the kubelet's Secret watch */
    EVICTION_PAUSE_MS = 10 * 1000,
};

int64_t cr_plan_deadline_ms(const struct plan_consumer *consumer)
{
    /* Also without the right to nudge, the kubelet must have had the time to refresh by itself. */
    int64_t wait = consumer->spec->verify.timeout_ms;
    if (wait < CR_KUBELET_REFRESH_MS)
        wait = CR_KUBELET_REFRESH_MS;
    int64_t from = consumer->since_ms;
    if (consumer->restarted && consumer->status->last_restart_ms > from)
        from = consumer->status->last_restart_ms;
    return from + wait + consumer->max_delay_ms;
}

bool cr_plan_past_deadline(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    return ctx->world->now_ms >= cr_plan_deadline_ms(consumer);
}

/* The pod's template already had what this consumer is restarted for. */
static bool pod_is_new(const struct plan_ctx *ctx, const struct plan_consumer *consumer, const struct cr_world_pod *pod)
{
    bool any = false;
    for (size_t k = 0; k < ctx->changes_len; k++) {
        if (!consumer->classes[k])
            continue;
        any = true;
        char name[CR_ANNOTATION_NAME];
        cr_restart_annotation_name(ctx->changes[k].secret->name, name);
        const char *value = cr_json_string_at(pod->pod, "metadata", "annotations", name);
        if (!cr_restart_annotation_covers(value, &ctx->pending[k]->pending.target, consumer->classes[k]))
            return false;
    }
    return any;
}

/* The port may serve the leaf of another Secret of this policy, one that did not change: then it proves nothing. */
static bool serves_unchanged_leaf(const struct plan_ctx *ctx, const char *leaf)
{
    const struct cr_policy_status *status = &ctx->plan->status;
    for (size_t i = 0; leaf && i < status->secrets_len; i++) {
        const struct cr_secret_status *secret = &status->secrets[i];
        if (!secret->pending.set && secret->has_settled && strcmp(secret->settled.leaf, leaf) == 0)
            return true;
    }
    return false;
}

static bool restarts(const struct plan_consumer *consumer)
{
    return consumer->restarted || consumer->needs_restart;
}

static enum cr_evidence judge(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                              const struct cr_world_pod *pod, char why[160])
{
    bool new_pod = pod_is_new(ctx, consumer, pod);
    /* What was seen before the change says nothing about it. */
    enum cr_probe_seen seen = pod->probed_ms >= consumer->since_ms ? pod->seen : CR_SEEN_NOTHING;
    bool proves = consumer->leaf_changed && !(seen == CR_SEEN_LEAF && serves_unchanged_leaf(ctx, pod->leaf));
    struct cr_evidence_input input = {
        .expected = &consumer->expected,
        .old = &consumer->old,
        .leaf_changed = proves,
        .restarted = restarts(consumer),
        .pod_is_new = new_pod,
        .pod_started_ms = pod->started_ms,
        .since_ms = consumer->since_ms,
        .now_ms = ctx->world->now_ms,
        .max_delay_ms = consumer->max_delay_ms,
        /* Without a port to look at, nothing is ever seen; with one, nothing yet is not the same as nothing to see. */
        .seen = consumer->spec->verify.set && seen == CR_SEEN_NOTHING ? CR_SEEN_UNREACHABLE : seen,
        .leaf = pod->leaf,
    };
    enum cr_evidence evidence = cr_evidence_judge(&input, why);
    /* A pod that started with the new template but cannot be reached: in the end its start is what there is to go by. */
    if (evidence == CR_EVIDENCE_UNKNOWN && new_pod && pod->started_ms && cr_plan_past_deadline(ctx, consumer))
        return CR_EVIDENCE_INFERRED;
    return evidence;
}

static void count(struct cr_pod_counts *counts, enum cr_evidence evidence)
{
    counts->total++;
    switch (evidence) {
    case CR_EVIDENCE_VERIFIED:
        counts->verified++;
        break;
    case CR_EVIDENCE_INFERRED:
        counts->inferred++;
        break;
    case CR_EVIDENCE_STALE:
        counts->stale++;
        break;
    case CR_EVIDENCE_UNKNOWN:
        counts->unknown++;
        break;
    }
}

void cr_plan_evidence(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    struct cr_consumer_status *status = consumer->status;
    status->pods = (struct cr_pod_counts){0};
    cr_strvec_dispose(&status->examples);
    consumer->evidence = cr_calloc(consumer->world->pods_len, sizeof *consumer->evidence);
    for (size_t i = 0; i < consumer->world->pods_len; i++) {
        const struct cr_world_pod *pod = &consumer->world->pods[i];
        char why[160] = "";
        consumer->evidence[i] = judge(ctx, consumer, pod, why);
        count(&status->pods, consumer->evidence[i]);
        if (why[0] && status->examples.len < EXAMPLES_MAX && consumer->evidence[i] != CR_EVIDENCE_VERIFIED &&
            consumer->evidence[i] != CR_EVIDENCE_INFERRED) {
            cr_autofree char *line = cr_asprintf("%s: %s", pod->name, why);
            cr_strvec_add(&status->examples, line);
        }
    }
}

/* --- nudges, probes, evictions --- */

static bool nudging_helps(const struct plan_consumer *consumer)
{
    for (size_t k = 0; k < consumer->decision.secrets_len; k++)
        if (consumer->decision.secrets[k].refreshes && consumer->decision.secrets[k].reload_classes)
            return true;
    return false;
}

static int nudges_max(const struct plan_consumer *consumer)
{
    /* The old pods of a restart go soon: one nudge lets them serve the new leaf meanwhile. */
    if (restarts(consumer))
        return 1;
    return consumer->spec->verify.set && consumer->leaf_changed ? PROBED_NUDGES_MAX : BLIND_NUDGES_MAX;
}

static void maybe_nudge(struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t index, size_t pod_index)
{
    static const int64_t pauses_ms[] = {0, 1000, 2000, 3000, 5000, 8000, 15000, 30000};
    const struct cr_world_pod *pod = &consumer->world->pods[pod_index];
    int nudges = pod->nudged_ms >= consumer->since_ms ? pod->nudges : 0;
    if (nudges >= nudges_max(consumer) || !pod->started_ms || pod_is_new(ctx, consumer, pod))
        return;
    size_t step = (size_t)nudges < cr_array_len(pauses_ms) ? (size_t)nudges : cr_array_len(pauses_ms) - 1;
    int64_t due = nudges ? pod->nudged_ms + pauses_ms[step] : 0;
    if (ctx->world->now_ms < due) {
        cr_plan_requeue(ctx->plan, due - ctx->world->now_ms);
        return;
    }
    PLAN_PUSH(ctx->plan->nudges, ctx->plan->nudges_len, {.consumer = index, .pod = pod_index});
}

static int64_t probe_interval_ms(int64_t age_ms)
{
    if (age_ms < 15 * 1000)
        return 200;
    if (age_ms < 2 * 60 * 1000)
        return 1000;
    return age_ms < 10 * 60 * 1000 ? 5000 : 30 * 1000;
}

static void maybe_probe(struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t index, size_t pod_index)
{
    const struct cr_world_pod *pod = &consumer->world->pods[pod_index];
    if (!consumer->spec->verify.set || !consumer->leaf_changed || !pod->ip || !pod->started_ms)
        return;
    /* Whatever an old pod serves, it goes. */
    if (restarts(consumer) && !pod_is_new(ctx, consumer, pod))
        return;
    int64_t newest = consumer->status->last_restart_ms > consumer->since_ms ? consumer->status->last_restart_ms
                                                                              : consumer->since_ms;
    int64_t due = pod->probed_ms ? pod->probed_ms + probe_interval_ms(ctx->world->now_ms - newest) : 0;
    if (ctx->world->now_ms < due) {
        cr_plan_requeue(ctx->plan, due - ctx->world->now_ms);
        return;
    }
    PLAN_PUSH(ctx->plan->probes, ctx->plan->probes_len, {.consumer = index, .pod = pod_index});
}

/* A new pod that serves the old leaf mounted the Secret from its kubelet's cache (kubernetes#129645): what it read once
 * is old as well. One at a time, and the next only after a pause. */
static bool maybe_evict(struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t index, size_t pod_index)
{
    const struct cr_world_pod *pod = &consumer->world->pods[pod_index];
    if (!consumer->restarted || !pod_is_new(ctx, consumer, pod) || pod->seen != CR_SEEN_LEAF || consumer->held_by)
        return false;
    int64_t due = consumer->world->evicted_ms ? consumer->world->evicted_ms + EVICTION_PAUSE_MS : 0;
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
        enum cr_evidence evidence = consumer->evidence[i];
        if (evidence == CR_EVIDENCE_VERIFIED)
            continue;
        maybe_probe(ctx, consumer, index, i);
        if (evidence == CR_EVIDENCE_STALE && !evicting)
            evicting = maybe_evict(ctx, consumer, index, i);
        if (evidence != CR_EVIDENCE_INFERRED && nudging_helps(consumer))
            maybe_nudge(ctx, consumer, index, i);
    }
}
