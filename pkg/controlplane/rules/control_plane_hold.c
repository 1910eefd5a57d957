/* What makes all components wait (rule 1), though nothing is wrong with the next one. */
#include "controlplane/rules/control_plane_internal.h"

#include "base/alloc.h"
#include "base/strings.h"

/* One that has just begun by itself may end as soon: a crash loop looks well for some seconds each time. */
enum { SETTLE_MS = 30 * 1000, CLOCKS_APART_MS = 5 * 60 * 1000 };

static bool is_bad(const struct cr_node_component *component)
{
    bool must_serve = cr_cp_rank(component->name) <= cr_cp_rank("kube-apiserver");
    return !component->running || component->health == CR_NODE_HEALTH_FAILING ||
           (must_serve && component->health != CR_NODE_HEALTH_SERVING);
}

static void add_bad(struct cp_ctx *ctx, size_t node)
{
    const struct cr_node_report *report = ctx->nodes[node].report;
    for (size_t i = 0; i < report->components_len; i++) {
        const struct cr_node_component *component = &report->components[i];
        if (!cr_cp_is_control(component->name) || !is_bad(component))
            continue;
        if (!ctx->bad.why) {
            const char *how = component->running ? "does not serve" : "does not run";
            ctx->bad.node = node;
            ctx->bad.why = cr_asprintf("%s of %s %s%s%s", component->name, ctx->nodes[node].name, how,
                                       component->health_message ? ": " : "", cr_or_empty(component->health_message));
        }
        ctx->bad.nodes++;
        return;
    }
}

/* Seen through by its agent, it is proved already. */
static bool is_proved(const struct cr_node_act *act, const struct cr_node_component *component)
{
    return act->phase == CR_NODE_ACT_DONE && cr_streq(act->component, component->name) &&
           act->finished_ms >= component->started_ms;
}

bool cr_cp_is_young(struct cp_ctx *ctx, const struct cr_node_component *component)
{
    int64_t now_ms = ctx->world->now_ms;
    int64_t settled_ms = component->started_ms + SETTLE_MS;
    if (!component->started_ms || settled_ms <= now_ms || component->started_ms > now_ms + CLOCKS_APART_MS)
        return false;
    cr_cp_again_at(ctx, settled_ms);
    return true;
}

static char *young(struct cp_ctx *ctx, const struct cp_node *node)
{
    for (size_t i = 0; i < node->report->components_len; i++) {
        const struct cr_node_component *component = &node->report->components[i];
        if (!cr_cp_is_control(component->name) || is_proved(&node->report->act, component) ||
            !cr_cp_is_young(ctx, component))
            continue;
        return cr_asprintf("%s of %s has only just begun: whether it stays is seen first", component->name, node->name);
    }
    return NULL;
}

static char *silent(const struct cp_ctx *ctx)
{
    for (size_t i = 0; i < ctx->nodes_len; i++)
        if (ctx->nodes[i].control && !cr_cp_reports(&ctx->nodes[i]))
            return cr_asprintf("the agent of %s, which has a part of the control plane, %s", ctx->nodes[i].name,
                               ctx->nodes[i].silent ? "is silent" : "has never reported");
    return NULL;
}

void cr_cp_find_hold(struct cp_ctx *ctx)
{
    const struct cr_control_plane_status *status = &ctx->plan->status;
    if (ctx->failed)
        ctx->hold = cr_asprintf("the restart of %s of %s has failed", cr_or_empty(status->failed_component),
                                cr_or_empty(status->failed_node));
    if (!ctx->hold)
        ctx->hold = silent(ctx);
    for (size_t i = 0; i < ctx->nodes_len; i++) {
        if (!cr_cp_reports(&ctx->nodes[i]))
            continue;
        add_bad(ctx, i);
        if (!ctx->hold)
            ctx->hold = young(ctx, &ctx->nodes[i]);
    }
}

bool cr_cp_may_hide(const struct cp_node *node)
{
    return node->control && (!node->report || node->report->troubles.len);
}

/* A static pod is begun again by its node's kubelet alone. */
static const char *orphaned(const struct cp_node *node, const struct cr_node_component *component)
{
    const struct cr_node_component *kubelet = cr_node_report_component(node->report, "kubelet");
    if (!kubelet || kubelet == component || (kubelet->running && kubelet->health != CR_NODE_HEALTH_FAILING))
        return NULL;
    return "its node's kubelet is not well, and nobody else would begin it again";
}

const char *cr_cp_hold(const struct cp_ctx *ctx, const struct cp_candidate *candidate)
{
    if (ctx->hold)
        return ctx->hold;
    const char *why = orphaned(&ctx->nodes[candidate->node], candidate->component);
    if (why || !ctx->bad.nodes)
        return why;
    return ctx->bad.nodes == 1 && ctx->bad.node == candidate->node ? NULL : ctx->bad.why;
}
