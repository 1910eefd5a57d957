#include "rotation/plan_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

enum { WHY = 160 };

int64_t cr_plan_deadline_ms(const struct plan_consumer *consumer, const struct plan_change *change)
{
    /* Also without the right to nudge, the kubelet must have had the time to refresh by itself. */
    int64_t wait = consumer->spec->verify.timeout_ms;
    if (wait < CR_KUBELET_REFRESH_MS)
        wait = CR_KUBELET_REFRESH_MS;
    int64_t from = change->since_ms;
    if (change->classes && change->covered && consumer->status->last_restart_ms > from)
        from = consumer->status->last_restart_ms;
    return from + wait + change->max_delay_ms;
}

bool cr_plan_past_deadline(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (consumer->changes[k].concerns && ctx->world->now_ms < cr_plan_deadline_ms(consumer, &consumer->changes[k]))
            return false;
    return true;
}

/* The pod's template already had what this consumer is restarted for. */
bool cr_plan_pod_is_new(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                        const struct cr_world_pod *pod, size_t change)
{
    char name[CR_ANNOTATION_NAME];
    cr_restart_annotation_name(ctx->changes[change].secret->name, name);
    const char *value = cr_json_string_at(pod->pod, "metadata", "annotations", name);
    return cr_restart_annotation_covers(value, &ctx->pending[change]->pending.target,
                                        consumer->changes[change].classes);
}

bool cr_plan_created_since(const struct cr_world_pod *pod, int64_t since_ms)
{
    /* Creation times have whole seconds. */
    return pod->created_ms && pod->created_ms / 1000 >= since_ms / 1000;
}

/* The port may serve the leaf of another Secret of this policy: then it says nothing about this change. */
static bool belongs_to_another(const struct plan_ctx *ctx, size_t change, const char *leaf)
{
    const struct cr_policy_status *status = &ctx->plan->status;
    for (size_t i = 0; i < status->secrets_len; i++) {
        const struct cr_secret_status *secret = &status->secrets[i];
        if (secret == ctx->pending[change])
            continue;
        if ((secret->has_settled && strcmp(secret->settled.leaf, leaf) == 0) ||
            (secret->pending.set &&
             (strcmp(secret->pending.target.leaf, leaf) == 0 || cr_strvec_has(&secret->pending.old_leaves, leaf))))
            return true;
    }
    return false;
}

/* The pod came up by somebody else's hand, so late that its volume cannot be the old one, or it shows the new leaf and
 * reads a leaf only at its start: it has all that a restart would bring. */
static bool renewed_by_others(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                              const struct cr_world_pod *pod, size_t change, const char *leaf)
{
    const struct plan_change *c = &consumer->changes[change];
    if (!cr_plan_created_since(pod, c->since_ms))
        return false;
    if (pod->created_ms >= c->since_ms + CR_KUBELET_REFRESH_MS)
        return true;
    return leaf && (c->classes & CR_CLASS_LEAF) && c->demanded &&
           strcmp(leaf, ctx->pending[change]->pending.target.leaf) == 0;
}

static enum cr_evidence judge(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                              const struct cr_world_pod *pod, size_t change, char why[WHY])
{
    const struct plan_change *c = &consumer->changes[change];
    const struct cr_pending_change *pending = &ctx->pending[change]->pending;
    bool can_look = consumer->spec->verify.set && c->leaf_changed;
    /* What was seen before the change says nothing about it. */
    bool looked = pod->probed_ms && pod->probed_ms >= c->since_ms;
    const char *leaf = looked && pod->seen == CR_SEEN_LEAF ? pod->leaf : NULL;
    bool by_others = c->classes && renewed_by_others(ctx, consumer, pod, change, leaf);
    bool annotated = c->classes && cr_plan_pod_is_new(ctx, consumer, pod, change);
    /* Annotated for this material but up since before the change: it was taken back to what the pod was last restarted
     * for. What it read once is right already, the rest reloads. */
    bool restarts = c->classes && !(annotated && !cr_plan_created_since(pod, c->since_ms));
    bool is_new = restarts && (by_others || annotated);

    CR_CLEANUP(cr_strvec) struct cr_strvec expected = {0};
    cr_strvec_add(&expected, pending->target.leaf);
    struct cr_evidence_input input = {
        .expected = &expected,
        .old = &pending->old_leaves,
        .leaf_changed = can_look && !(leaf && belongs_to_another(ctx, change, leaf)),
        .restarted = restarts,
        .pod_is_new = is_new,
        /* A pod that starts at all starts after its creation. */
        .pod_started_ms = pod->started_ms ? pod->created_ms : 0,
        .since_ms = c->since_ms,
        .now_ms = ctx->world->now_ms,
        .max_delay_ms = c->max_delay_ms,
        /* Not asked yet is not the same as nothing to ask. */
        .seen = looked     ? pod->seen
                : can_look ? CR_SEEN_UNREACHABLE
                           : CR_SEEN_NOTHING,
        .leaf = leaf,
    };
    enum cr_evidence evidence = cr_evidence_judge(&input, why);
    if (evidence == CR_EVIDENCE_STALE && restarts && !is_new && cr_plan_created_since(pod, c->since_ms))
        snprintf(why, WHY, "came up after the change, but too soon to be sure that it mounted the new Secret");
    if (evidence != CR_EVIDENCE_UNKNOWN)
        return evidence;
    /* A pod that started with the new template but cannot be reached: in the end its start is what there is to go by.
     */
    if (is_new && pod->started_ms && ctx->world->now_ms >= cr_plan_deadline_ms(consumer, c))
        return CR_EVIDENCE_INFERRED;
    if (can_look && !looked && pod->started_ms)
        snprintf(why, WHY, "has not been asked yet");
    return evidence;
}

enum cr_evidence cr_plan_evidence_of(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod,
                                     size_t change)
{
    return consumer->evidence[pod * ctx->changes_len + change];
}

static int badness(enum cr_evidence evidence)
{
    static const int order[] = {
        [CR_EVIDENCE_VERIFIED] = 0, [CR_EVIDENCE_INFERRED] = 1, [CR_EVIDENCE_UNKNOWN] = 2, [CR_EVIDENCE_STALE] = 3};
    return order[evidence];
}

static void count(struct cr_pod_counts *counts, enum cr_evidence evidence)
{
    int *const slots[] = {[CR_EVIDENCE_VERIFIED] = &counts->verified,
                          [CR_EVIDENCE_INFERRED] = &counts->inferred,
                          [CR_EVIDENCE_STALE] = &counts->stale,
                          [CR_EVIDENCE_UNKNOWN] = &counts->unknown};
    counts->total++;
    ++*slots[evidence];
}

/* A pod is as good as the worst of what is known of it. */
static enum cr_evidence judge_pod(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index, char why[WHY])
{
    const struct cr_world_pod *pod = &consumer->world->pods[index];
    enum cr_evidence worst = CR_EVIDENCE_VERIFIED;
    for (size_t k = 0; k < ctx->changes_len; k++) {
        if (!consumer->changes[k].concerns)
            continue;
        char reason[WHY] = "";
        enum cr_evidence evidence = judge(ctx, consumer, pod, k, reason);
        consumer->evidence[index * ctx->changes_len + k] = evidence;
        if (badness(evidence) > badness(worst)) {
            worst = evidence;
            memcpy(why, reason, WHY);
        }
    }
    return worst;
}

void cr_plan_evidence(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    struct cr_consumer_status *status = consumer->status;
    size_t pods = consumer->world->pods_len;
    status->pods = (struct cr_pod_counts){0};
    cr_strvec_dispose(&status->examples);
    consumer->evidence = cr_calloc(pods * ctx->changes_len, sizeof *consumer->evidence);
    for (size_t i = 0; i < pods; i++) {
        char why[WHY] = "";
        enum cr_evidence evidence = judge_pod(ctx, consumer, i, why);
        count(&status->pods, evidence);
        if (badness(evidence) < badness(CR_EVIDENCE_UNKNOWN) || status->examples.len >= CR_EXAMPLES_MAX)
            continue;
        cr_autofree char *line = cr_asprintf("%s: %s", consumer->world->pods[i].name, why);
        cr_strvec_add(&status->examples, line);
    }
}

bool cr_plan_enough_pods(const struct plan_consumer *consumer)
{
    return consumer->status->pods.total >= consumer->rollout.desired;
}

bool cr_plan_pods_have(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change)
{
    if (!cr_plan_enough_pods(consumer))
        return false;
    for (size_t i = 0; i < consumer->world->pods_len; i++)
        if (badness(cr_plan_evidence_of(ctx, consumer, i, change)) > badness(CR_EVIDENCE_INFERRED))
            return false;
    return true;
}

int cr_plan_late_pods(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change)
{
    int late = 0;
    for (size_t i = 0; i < consumer->world->pods_len; i++) {
        const struct cr_world_pod *pod = &consumer->world->pods[i];
        late += cr_plan_evidence_of(ctx, consumer, i, change) == CR_EVIDENCE_STALE && pod->seen == CR_SEEN_LEAF &&
                pod->probed_ms >= cr_plan_deadline_ms(consumer, &consumer->changes[change]) &&
                cr_plan_seen_lately(ctx, consumer, pod);
    }
    return late;
}
