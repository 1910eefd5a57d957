/* Pods that read the root CA or their token once: restarted after it has changed for them, one workload at a time. */
#include "controlplane/rules/control_plane_internal.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/strings.h"

/* Its pods began with what there is: they were restarted for it, all of them are younger than it, or it has been so
 * since before certroll looked. */
static bool is_young(const struct cr_control_plane_workload_view *view, const char *restarted_for, const char *now,
                     int64_t since_ms)
{
    if (view->problem)
        return false;
    if (!view->found || !view->pods_started_ms)
        return true;
    if (!now)
        return false;
    /* Whatever rolls, or stands still in the midst of it. */
    if (view->pods_started_ms > since_ms && (since_ms || !restarted_for))
        return true;
    return !view->rolling && cr_streq(restarted_for, now);
}

static bool has_root(const struct cp_ctx *ctx, size_t i)
{
    const struct cr_control_plane_workload_view *view = &ctx->world->workloads[i];
    const struct cr_control_plane_status *status = &ctx->plan->status;
    return !ctx->world->policy->workloads[i].reads_root_ca ||
           is_young(view, view->root_ca, status->root_ca, status->root_ca_since_ms);
}

static bool has_token(const struct cp_ctx *ctx, size_t i)
{
    const struct cr_control_plane_workload_view *view = &ctx->world->workloads[i];
    const struct cr_control_plane_status *status = &ctx->plan->status;
    return !ctx->world->policy->workloads[i].reads_token ||
           (!status->signing_key && !ctx->keys.signing) || /* no keys of service accounts are seen at all */
           is_young(view, view->token_key, status->signing_key, status->signing_key_since_ms);
}

bool cr_cp_workloads_have_root(const struct cp_ctx *ctx)
{
    for (size_t i = 0; ctx->world->workloads && i < ctx->world->policy->workloads_len; i++)
        if (!has_root(ctx, i))
            return false;
    return true;
}

bool cr_cp_workloads_have_token(const struct cp_ctx *ctx)
{
    for (size_t i = 0; ctx->world->workloads && i < ctx->world->policy->workloads_len; i++)
        if (!has_token(ctx, i))
            return false;
    return true;
}

/* What it would read now is what it is restarted for. */
static bool may_begin(const struct cp_ctx *ctx, size_t i)
{
    const struct cr_control_plane_count *namespaces = &ctx->plan->status.namespaces;
    bool root_is_there = ctx->root_known && namespaces->converged == namespaces->total;
    bool key_is_there = ctx->keys.one && !ctx->renewing;
    return !ctx->world->workloads[i].problem && (has_root(ctx, i) || root_is_there) &&
           (has_token(ctx, i) || key_is_there);
}

static bool one_rolls(const struct cp_ctx *ctx)
{
    for (size_t i = 0; i < ctx->world->policy->workloads_len; i++)
        if (ctx->world->workloads[i].found && ctx->world->workloads[i].rolling)
            return true;
    return false;
}

static void count(struct cp_ctx *ctx, size_t i, bool converged)
{
    const struct cr_control_plane_workload *workload = &ctx->world->policy->workloads[i];
    const struct cr_control_plane_workload_view *view = &ctx->world->workloads[i];
    struct cr_control_plane_count *counts = &ctx->plan->status.workloads;
    counts->total++;
    counts->converged += converged;
    if (!converged && !counts->example)
        counts->example = cr_asprintf("%s (%s %s/%s)", cr_or_empty(workload->name), cr_or_empty(workload->kind),
                                      cr_or_empty(workload->ns), cr_or_empty(workload->target));
    if (view->problem)
        cr_cp_line(&ctx->degraded,
                   "spec.workloads %s cannot be read: make it smaller, or take it out of the policy: %s",
                   cr_or_empty(workload->name), view->problem);
    else if (!view->found)
        cr_cp_line(&ctx->degraded, "spec.workloads %s: there is no %s %s/%s", cr_or_empty(workload->name),
                   cr_or_empty(workload->kind), cr_or_empty(workload->ns), cr_or_empty(workload->target));
}

void cr_cp_workloads(struct cp_ctx *ctx)
{
    const struct cr_control_plane_policy *policy = ctx->world->policy;
    if (!ctx->world->workloads)
        return;
    snprintf(ctx->plan->root_ca, sizeof ctx->plan->root_ca, "%s", cr_or_empty(ctx->plan->status.root_ca));
    bool may = ctx->acts && !ctx->out && !ctx->hold && !one_rolls(ctx);
    for (size_t i = 0; i < policy->workloads_len; i++) {
        bool converged = has_root(ctx, i) && has_token(ctx, i);
        count(ctx, i, converged);
        if (converged || !may || ctx->plan->restart_workloads.len || !may_begin(ctx, i))
            continue;
        cr_strvec_add(&ctx->plan->restart_workloads, cr_or_empty(policy->workloads[i].name));
    }
}
