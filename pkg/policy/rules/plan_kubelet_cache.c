/* A restart helps only where new pods mount the new Secret, and a kubelet's cache may still have the old one
 * (kubernetes#129645). What an old pod that reloads its leaf shows, its kubelet has: that is waited for, for a moment.
 * A nudge refreshes volumes out of that cache, not the cache itself, so where no pod can show it there is nothing that
 * would be worth waiting for. */
#include "policy/rules/plan_internal.h"

#include "base/alloc.h"
#include "base/strings.h"

enum {
    WAIT_MS = 2000,       /* a nudged kubelet takes 0.3 to 1 s, the reload milliseconds, the look 0.2 s */
    DELAY_MAX_MS = 10000, /* a program that takes longer to reload would mostly be waited for in vain */
};

/* Whether the leaf of its old pods shows what their kubelets have. */
static bool leaf_shows_cache(const struct plan_consumer *consumer, size_t k)
{
    const struct plan_change *change = &consumer->changes[k];
    const struct cr_decision_secret *secret = &consumer->decision.secrets[k];
    return change->concerns && change->demanded && !change->covered && change->leaf_changed && !change->not_accepted &&
           !change->is_immutable && consumer->spec->verify.endpoints_len && secret->refreshes &&
           (secret->reload_classes & CR_CLASS_LEAF) && change->max_delay_ms <= DELAY_MAX_MS;
}

/* If a pod has several addresses, its node has several as well; the first is the same for all pods of the node. */
static const char *node_of(const struct cr_world_pod *pod)
{
    return cr_json_string_at(pod->pod, "status", "hostIP");
}

/* It may yet show the new leaf. What was asked since the change and could not be understood never will. */
static bool may_show_leaf(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod, size_t k)
{
    const struct cr_world_pod *p = &consumer->world->pods[pod];
    if (!p->started_ms || !p->ip || !node_of(p))
        return false;
    return cr_plan_evidence_at(ctx, consumer, pod, k)->leaf == CR_SHOWN_OLD ||
           cr_plan_asked_ms(consumer, p) < consumer->changes[k].since_ms;
}

static bool node_is_fresh(const struct plan_ctx *ctx, const struct plan_consumer *consumer, const char *node, size_t k)
{
    for (size_t i = 0; i < consumer->world->pods_len; i++)
        if (cr_plan_evidence_at(ctx, consumer, i, k)->leaf == CR_SHOWN_NEW &&
            cr_streq(node_of(&consumer->world->pods[i]), node))
            return true;
    return false;
}

static int64_t ends_ms(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    return cr_plan_coalesced_ms(ctx, consumer) + WAIT_MS;
}

bool cr_plan_awaits_kubelet(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod)
{
    if (!consumer->needs_restart || ctx->world->now_ms >= ends_ms(ctx, consumer))
        return false;
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (leaf_shows_cache(consumer, k) && may_show_leaf(ctx, consumer, pod, k) &&
            !node_is_fresh(ctx, consumer, node_of(&consumer->world->pods[pod]), k))
            return true;
    return false;
}

struct cr_gate cr_plan_kubelet_cache_gate(const struct plan_question *q)
{
    const struct plan_consumer *consumer = q->consumer;
    for (size_t i = 0; i < consumer->world->pods_len; i++) {
        if (!cr_plan_awaits_kubelet(q->ctx, consumer, i))
            continue;
        struct cr_gate gate =
            cr_gate_make(CR_HOLD_KUBELET,
                         "kubelet: waits a moment for pod %s to show the new leaf: before, a new pod of its node "
                         "would mount the old Secret as well",
                         consumer->world->pods[i].name);
        gate.look_again_ms = ends_ms(q->ctx, consumer) - q->ctx->world->now_ms;
        return gate;
    }
    return CR_GATE_OPEN;
}
