/* The one order: what is out, what has become of it, and what is next. What is out is read from the reports' specs and
 * acts, and from the status, which names an order before it is written. */
#include "controlplane/rules/control_plane_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

static bool is_over(const struct cr_node_act *act, const char *token)
{
    return cr_streq(act->token, token) && token &&
           (act->phase == CR_NODE_ACT_DONE || act->phase == CR_NODE_ACT_FAILED || act->phase == CR_NODE_ACT_REFUSED);
}

static bool has_begun(const struct cr_node_act *act)
{
    return act->phase == CR_NODE_ACT_RESTARTING || act->phase == CR_NODE_ACT_PROVING;
}

/* --- failures --- */

static void forget_failure(struct cr_control_plane_status *status)
{
    cr_strset(&status->failed_node, NULL);
    cr_strset(&status->failed_component, NULL);
    cr_strset(&status->failed_token, NULL);
    cr_strset(&status->failed_state, NULL);
}

static void note_failure(struct cp_ctx *ctx, const struct cp_node *node)
{
    const struct cr_node_act *act = &node->report->act;
    struct cr_control_plane_status *status = &ctx->plan->status;
    const struct cr_node_component *component =
        act->component ? cr_node_report_component(node->report, act->component) : NULL;
    char state[40] = "";
    if (act->phase == CR_NODE_ACT_DONE)
        return;
    if (component)
        cr_cp_state_token(ctx, node, component, state);
    cr_strset(&status->failed_node, node->name);
    cr_strset(&status->failed_component, cr_or_empty(act->component));
    cr_strset(&status->failed_token, act->token);
    cr_strset(&status->failed_state, state);
}

/* It was brought back by other means. A component that ends again and again is another process each time, and is not
 * back. */
static bool is_back(struct cp_ctx *ctx, const struct cr_node_component *component)
{
    return component->running && component->health == CR_NODE_HEALTH_SERVING && !cr_cp_is_young(ctx, component);
}

/* It holds until something is another than when it failed: that may work. What is not to be seen has not changed. */
static bool still_failed(struct cp_ctx *ctx)
{
    const struct cr_control_plane_status *status = &ctx->plan->status;
    const struct cp_node *node = cr_cp_node(ctx, status->failed_node);
    char state[40];
    if (!status->failed_token || !node)
        return false;
    const struct cr_node_component *component = cr_cp_reports(node) && status->failed_component
                                                    ? cr_node_report_component(node->report, status->failed_component)
                                                    : NULL;
    if (!component)
        return true;
    cr_cp_state_token(ctx, node, component, state);
    bool same_files = strncmp(state, cr_or_empty(status->failed_state), CP_TOKEN_PART) == 0;
    return cr_streq(state, status->failed_state) || (same_files && !is_back(ctx, component));
}

static void retry(struct cp_ctx *ctx)
{
    struct cr_control_plane_status *status = &ctx->plan->status;
    if (!cr_streq(status->handled_retry, ctx->world->policy->retry)) {
        forget_failure(status);
        cr_strset(&status->handled_retry, ctx->world->policy->retry);
    }
}

/* --- what is out --- */

static void forget_order(struct cr_control_plane_status *status)
{
    cr_strset(&status->restarting_node, NULL);
    cr_strset(&status->restarting_component, NULL);
    cr_strset(&status->restarting_token, NULL);
    status->restarting_since_ms = 0;
    status->restarting_revoked = false;
}

static void remember_order(struct cp_ctx *ctx, const char *node, const char *component, const char *token)
{
    struct cr_control_plane_status *status = &ctx->plan->status;
    cr_strset(&status->restarting_node, node);
    cr_strset(&status->restarting_component, cr_or_empty(component));
    cr_strset(&status->restarting_token, token);
    status->restarting_since_ms = ctx->world->now_ms;
    status->restarting_revoked = false;
}

static void clear(struct cp_ctx *ctx, const struct cp_node *node)
{
    if (!ctx->plan->clear)
        ctx->plan->clear = node->name;
}

static void end_what_is_over(struct cp_ctx *ctx)
{
    struct cr_control_plane_status *status = &ctx->plan->status;
    for (size_t i = 0; i < ctx->nodes_len; i++) {
        const struct cp_node *node = &ctx->nodes[i];
        bool named = cr_streq(node->name, status->restarting_node) && status->restarting_token;
        if (!node->report)
            continue;
        bool ordered = is_over(&node->report->act, node->report->order.token);
        bool ended = named && is_over(&node->report->act, status->restarting_token);
        if (ordered)
            clear(ctx, node);
        if (ordered || ended)
            note_failure(ctx, node);
        if (ended && !status->restarting_revoked)
            forget_order(status);
    }
}

/* It would be given now, too. */
static bool is_wanted(const struct cp_ctx *ctx)
{
    const struct cr_control_plane_status *status = &ctx->plan->status;
    for (size_t i = 0; i < ctx->candidates_len; i++) {
        const struct cp_candidate *candidate = &ctx->candidates[i];
        if (cr_streq(candidate->token, status->restarting_token) &&
            cr_streq(ctx->nodes[candidate->node].name, status->restarting_node))
            return ctx->acts && !candidate->blocked && !cr_cp_hold(ctx, candidate);
    }
    return false;
}

static void give(struct cp_ctx *ctx, const char *node, const char *component, const char *token)
{
    struct cr_control_plane_restart_order *order = &ctx->plan->order;
    ctx->plan->has_order = true;
    order->node = node;
    order->component = component;
    snprintf(order->token, sizeof order->token, "%s", token);
}

static void take_back(struct cp_ctx *ctx, const struct cp_node *node)
{
    clear(ctx, node);
    ctx->plan->status.restarting_revoked = true;
    /* The agent's next report is distinguished from its last one by its own clock, which may be ahead. */
    int64_t seen_ms = node->report->seen_ms;
    ctx->plan->status.restarting_since_ms = seen_ms > ctx->world->now_ms ? seen_ms : ctx->world->now_ms;
    ctx->phase = "is taken back";
}

/* Its agent has looked, and said nothing of it, since it is out of the spec. */
static void await_revoked(struct cp_ctx *ctx, const struct cp_node *node)
{
    struct cr_control_plane_status *status = &ctx->plan->status;
    const struct cr_node_report *report = node->report;
    bool is_there = cr_streq(report->order.token, status->restarting_token);
    ctx->phase = node->silent ? "is taken back, and its agent is silent" : "is taken back";
    if (is_there)
        clear(ctx, node);
    else if (report->seen_ms >= status->restarting_since_ms + CR_NODE_RENEW_MS) {
        forget_order(status);
        ctx->phase = NULL;
        ctx->out = false;
    } else { /* a renewal alone is no reason to plan */
        int64_t next_ms = status->restarting_since_ms + 2 * CR_NODE_RENEW_MS;
        int64_t later_ms = ctx->world->now_ms + CR_NODE_RENEW_MS;
        cr_cp_again_at(ctx, next_ms > ctx->world->now_ms ? next_ms : later_ms);
    }
}

/* A silent agent may come back long after, to a cluster that is not as it was: then its order is not wanted. */
static void follow_not_begun(struct cp_ctx *ctx, const struct cp_node *node)
{
    struct cr_control_plane_status *status = &ctx->plan->status;
    const struct cr_node_component *component = cr_node_report_component(node->report, status->restarting_component);
    const char *ordered = node->report->order.token;
    ctx->phase = "is ordered";
    if (status->restarting_revoked)
        await_revoked(ctx, node);
    else if (!is_wanted(ctx))
        take_back(ctx, node);
    else if (component && !cr_streq(ordered, status->restarting_token)) /* not written yet, or this is older */
        give(ctx, node->name, component->name, status->restarting_token);
}

static const char *phase_of(const struct cp_node *node)
{
    if (node->silent)
        return "is restarted, and its agent is silent";
    return node->report->act.phase == CR_NODE_ACT_PROVING ? "is restarted, and has to prove itself" : "is restarted";
}

static void follow(struct cp_ctx *ctx)
{
    struct cr_control_plane_status *status = &ctx->plan->status;
    const struct cp_node *node = cr_cp_node(ctx, status->restarting_node);
    if (!status->restarting_token)
        return;
    if (!node) { /* and its report is gone with it */
        forget_order(status);
        return;
    }
    ctx->out = true;
    if (!node->report) {
        ctx->phase = "is ordered, and its agent is silent";
        return;
    }
    bool over = is_over(&node->report->act, status->restarting_token);
    bool begun = cr_streq(node->report->act.token, status->restarting_token) && has_begun(&node->report->act);
    if (over || begun) /* all the same: Events and metrics are made of what the status before says */
        status->restarting_revoked = false;
    if (over) { /* it is forgotten when that is on record */
        ctx->phase = "was restarted, though its order was taken back";
        cr_cp_again_at(ctx, ctx->world->now_ms);
    } else if (begun) {
        ctx->phase = phase_of(node);
    } else {
        follow_not_begun(ctx, node);
    }
}

/* One of the orders that the status does not name is taken over, as after a status was lost. */
static void follow_others(struct cp_ctx *ctx)
{
    struct cr_control_plane_status *status = &ctx->plan->status;
    for (size_t i = 0; i < ctx->nodes_len; i++) {
        const struct cp_node *node = &ctx->nodes[i];
        if (!node->report || cr_streq(node->name, status->restarting_node))
            continue;
        const struct cr_node_order *order = &node->report->order;
        bool begun = has_begun(&node->report->act);
        bool ordered = order->token && !is_over(&node->report->act, order->token);
        ctx->out = ctx->out || begun || ordered;
        if (ordered && !status->restarting_token)
            remember_order(ctx, node->name, order->component, order->token);
        else if (ordered && !begun)
            clear(ctx, node);
        if (!ctx->phase && (begun || ordered))
            ctx->phase = "is restarted";
    }
}

/* The same node's act of another order. */
static void follow_acts_of_named(struct cp_ctx *ctx)
{
    const struct cp_node *node = cr_cp_node(ctx, ctx->plan->status.restarting_node);
    if (node && node->report && has_begun(&node->report->act))
        ctx->out = true;
    if (ctx->plan->has_order && node && node->report && has_begun(&node->report->act))
        ctx->plan->has_order = false;
}

/* --- what is next --- */

static void choose(struct cp_ctx *ctx)
{
    for (size_t i = 0; i < ctx->candidates_len; i++) {
        const struct cp_candidate *candidate = &ctx->candidates[i];
        if (candidate->blocked || cr_cp_hold(ctx, candidate))
            continue;
        const char *node = ctx->nodes[candidate->node].name;
        if (ctx->acts) {
            give(ctx, node, candidate->component->name, candidate->token);
            remember_order(ctx, node, candidate->component->name, candidate->token);
            ctx->out = true;
        }
        return;
    }
}

static void watch_deadline(struct cp_ctx *ctx)
{
    const struct cr_control_plane_status *status = &ctx->plan->status;
    if (!status->restarting_token)
        return;
    int64_t deadline_ms = status->restarting_since_ms + ctx->world->policy->step_deadline_ms;
    ctx->overdue = deadline_ms < ctx->world->now_ms;
    if (!ctx->overdue)
        cr_cp_again_at(ctx, deadline_ms + 1);
}

void cr_cp_orders(struct cp_ctx *ctx)
{
    retry(ctx);
    end_what_is_over(ctx);
    ctx->failed = still_failed(ctx);
    if (!ctx->failed)
        forget_failure(&ctx->plan->status);
    cr_cp_find_hold(ctx);
    follow(ctx);
    follow_acts_of_named(ctx);
    follow_others(ctx);
    if (ctx->plan->clear) {
        ctx->plan->has_order = false;
        ctx->out = true;
    }
    if (!ctx->out)
        choose(ctx);
    watch_deadline(ctx);
}
