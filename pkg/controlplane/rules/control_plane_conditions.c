/* The conditions, and the one sentence of what is next. */
#include "controlplane/rules/control_plane_internal.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/strings.h"

enum { SHOWN = 5 };

void cr_cp_line(struct cp_lines *lines, const char *fmt, ...)
{
    if (lines->len++ >= SHOWN)
        return;
    va_list args;
    va_start(args, fmt);
    cr_autofree char *line = cr_vasprintf(fmt, args);
    va_end(args);
    cr_buf_printf(&lines->text, "%s%s", lines->text.len ? "; " : "", line);
}

const char *cr_cp_lines_text(struct cp_lines *lines)
{
    if (lines->len > SHOWN) {
        cr_buf_printf(&lines->text, "; and %zu more", lines->len - SHOWN);
        lines->len = SHOWN;
    }
    return cr_buf_text(&lines->text);
}

static void set(struct cp_ctx *ctx, const char *type, bool value, const char *reason, const char *message)
{
    cr_control_plane_status_condition(&ctx->plan->status, type, value, reason, message, ctx->world->policy->generation,
                                      ctx->world->now_ms - ctx->world->now_ms % 1000);
}

/* --- each --- */

static const char *one_without_report(const struct cp_ctx *ctx, size_t *without)
{
    const char *first = NULL;
    *without = 0;
    for (size_t i = 0; i < ctx->nodes_len; i++)
        if (!ctx->nodes[i].report && !(*without)++)
            first = ctx->nodes[i].name;
    return first;
}

/* For a file that signs and is a bundle, before a second CA is written into it. */
static char *shared_file(const struct cp_ctx *ctx)
{
    for (size_t i = 0; i < ctx->nodes_len; i++)
        for (size_t k = 0; k < ctx->nodes[i].rows_len; k++) {
            const struct cp_row *row = &ctx->nodes[i].rows[k];
            if (row->use == CP_USE_SIGNER && row->file->signs_and_trusts)
                return cr_asprintf("%s of %s is a trust bundle as well: before a second CA is written to it, give "
                                   "--cluster-signing-cert-file a file of its own.",
                                   cr_or_empty(row->file->path), ctx->nodes[i].name);
        }
    return NULL;
}

static bool sees_api_server(const struct cp_ctx *ctx)
{
    for (size_t i = 0; i < ctx->nodes_len; i++)
        if (ctx->nodes[i].report && cr_node_report_component(ctx->nodes[i].report, "kube-apiserver"))
            return true;
    return false;
}

static void ready(struct cp_ctx *ctx)
{
    size_t without = 0;
    const char *first = one_without_report(ctx, &without);
    cr_autofree char *shared = shared_file(ctx);
    if (ctx->world->policy->suspend) {
        set(ctx, "Ready", false, "Suspended", "spec.suspend is true: nothing is restarted.");
    } else if (!ctx->nodes_len) {
        set(ctx, "Ready", false, "NoNodes", "There are no nodes.");
    } else if (first) {
        cr_autofree char *text = cr_asprintf("No agent reports on %s%s: nothing that all nodes must have is known.",
                                             first, without > 1 ? " and others" : "");
        set(ctx, "Ready", false, "NoReport", text);
    } else if (!sees_api_server(ctx)) {
        set(ctx, "Ready", true, "NoApiServer",
            "Agents of all nodes report, and none has an API server, as when the control plane is managed: what is "
            "trusted is what these nodes and the API's objects have, and no CA is told to be removable.");
    } else if (shared) {
        set(ctx, "Ready", true, "SharedSigningFile", shared);
    } else if (!ctx->world->policy->enforce) {
        set(ctx, "Ready", true, "PlanOnly", "Agents of all nodes report; spec.mode is Plan: nothing is restarted.");
    } else {
        set(ctx, "Ready", true, "Reporting", "Agents of all nodes report.");
    }
}

static bool is_short(const struct cr_control_plane_count *count)
{
    return count->converged < count->total;
}

static const char *pending_of(const struct cr_control_plane_status *status)
{
    const struct {
        const char *text, *says;
    } all[] = {{status->cluster.pending, "Not everybody has the same CAs of the cluster."},
               {status->etcd.pending, "Not everybody has the same CAs of etcd."},
               {status->front_proxy.pending, "Not everybody has the same CAs of the front proxy."}};
    for (size_t i = 0; i < cr_array_len(all); i++)
        if (*cr_or_empty(all[i].text))
            return all[i].says;
    return NULL;
}

/* What can never follow is named, and not waited for. */
static void set_except_out_of_reach(struct cp_ctx *ctx, bool holds, const char *reason, const char *text)
{
    const struct cp_out_of_reach *roots = &ctx->roots_out_of_reach;
    const struct cp_out_of_reach *tokens = &ctx->tokens_out_of_reach;
    CR_CLEANUP(cr_buf) struct cr_buf whole = CR_BUF_INIT(0);
    cr_buf_printf(&whole, "%s", text);
    if (tokens->len)
        cr_buf_printf(
            &whole,
            " Token Secrets that are immutable and do not have it, or are too large to be read, so that they cannot be "
            "made anew: %zu, one is %s.",
            tokens->len, tokens->example);
    if (roots->len)
        cr_buf_printf(
            &whole,
            " Namespaces whose kube-root-ca.crt is immutable and does not have it, or is too large to be read: %zu, "
            "one is %s; their pods trust what it has till somebody deletes it.",
            roots->len, roots->example);
    set(ctx, "Converged", holds, reason, cr_buf_text(&whole));
}

/* Tokens matter while there is more than one key that they may be of. NULL: all agents count them, or it does not. */
static const char *one_that_counts_no_tokens(const struct cp_ctx *ctx)
{
    uint64_t one = ctx->keys.one ? cr_cp_bits_of_text(&ctx->sets[CP_KEYS], ctx->keys.one) : 0;
    if (!one || !(ctx->keys.known & ~one))
        return NULL;
    for (size_t i = 0; i < ctx->nodes_len; i++)
        if (cr_cp_reports(&ctx->nodes[i]) && !ctx->nodes[i].report->tokens_known)
            return ctx->nodes[i].name;
    return NULL;
}

static void set_not_counted(struct cp_ctx *ctx, const char *node)
{
    cr_autofree char *text = cr_asprintf("Of which key the tokens in use on %s are is not known: its agent does not "
                                         "count them (--count-tokens). So no key is removable.",
                                         node);
    set(ctx, "Converged", false, "TokensNotCounted", text);
}

static void converged(struct cp_ctx *ctx)
{
    const struct cr_control_plane_status *status = &ctx->plan->status;
    const struct {
        const struct cr_control_plane_count *count;
        const char *reason, *what;
    } counts[] = {{&status->nodes, "Nodes", "nodes"},
                  {&status->namespaces, "Namespaces", "namespaces have in kube-root-ca.crt what --root-ca-file has"},
                  {&status->token_secrets, "TokenSecrets", "token Secrets"},
                  {&status->workloads, "Workloads", "workloads"}};
    for (size_t i = 0; i < cr_array_len(counts); i++) {
        const struct cr_control_plane_count *count = counts[i].count;
        if (!is_short(count))
            continue;
        cr_autofree char *text = cr_asprintf("%lld of %lld %s. Not yet: %s", (long long)count->converged,
                                             (long long)count->total, counts[i].what, cr_or_empty(count->example));
        set(ctx, "Converged", false, counts[i].reason, text);
        return;
    }
    const char *pending = pending_of(status);
    uint64_t keys = ctx->keys.known & ~ctx->keys.verifying;
    uint64_t tokens = ctx->keys.one ? ctx->keys.tokens & ~cr_cp_bits_of_text(&ctx->sets[CP_KEYS], ctx->keys.one) : 0;
    const char *uncounted = one_that_counts_no_tokens(ctx);
    if (ctx->out)
        set(ctx, "Converged", false, "Restarting", "A component is restarted.");
    else if (!ctx->nodes_len)
        set(ctx, "Converged", false, "NoNodes", "There are no nodes.");
    else if (pending)
        set(ctx, "Converged", false, "AuthoritiesDiffer", pending);
    else if (keys)
        set(ctx, "Converged", false, "KeysDiffer", "Not every API server verifies by the same keys.");
    else if (tokens)
        set_except_out_of_reach(ctx, false, "TokensOfAnotherKey",
                                "Tokens in use are of another key than all sign with.");
    else if (uncounted)
        set_not_counted(ctx, uncounted);
    else
        set_except_out_of_reach(ctx, true, "AllLoaded", "Everything has what its files have.");
}

/* What is under way is not on record. */
static char *ending(const struct cp_ctx *ctx)
{
    for (size_t i = 0; i < ctx->nodes_len; i++) {
        const struct cr_node_act *act = ctx->nodes[i].report ? &ctx->nodes[i].report->act : NULL;
        if (act && (act->phase == CR_NODE_ACT_RESTARTING || act->phase == CR_NODE_ACT_PROVING))
            return cr_asprintf("The agent of %s says that it restarts %s: its end is waited for.", ctx->nodes[i].name,
                               cr_or_empty(act->component));
    }
    return cr_strdup("A restart is being ended.");
}

static void rotating(struct cp_ctx *ctx)
{
    const struct cr_control_plane_status *status = &ctx->plan->status;
    if (ctx->out && status->restarting_token) {
        cr_autofree char *text =
            cr_asprintf("%s of %s %s.", cr_or_empty(status->restarting_component), cr_or_empty(status->restarting_node),
                        ctx->phase ? ctx->phase : "is restarted");
        set(ctx, "Rotating", true, "Restarting", text);
    } else if (ctx->out) {
        cr_autofree char *text = ending(ctx);
        set(ctx, "Rotating", true, "Restarting", text);
    } else if (ctx->soon) {
        set(ctx, "Rotating", true, "TakingUp", ctx->soon);
    } else if (ctx->plan->renew_tokens.len || ctx->plan->restart_workloads.len) {
        set(ctx, "Rotating", true, "Following", "Token Secrets or workloads follow.");
    } else {
        set(ctx, "Rotating", false, "Idle", "Nothing is under way.");
    }
}

/* While something is away, what it has is not known, and others may seem to be blocked by that. */
static bool may_seem(const struct cp_ctx *ctx)
{
    for (size_t i = 0; i < CR_CONTROL_PLANE_CONDITIONS; i++)
        if (cr_streq(cr_control_plane_condition_types[i], "Blocked") && !ctx->plan->status.conditions[i].reason)
            return false;
    return ctx->out && !ctx->overdue;
}

static void blocked(struct cp_ctx *ctx)
{
    if (may_seem(ctx) && !ctx->signing_hold && !ctx->failed)
        return;
    if (ctx->signing_hold)
        set(ctx, "Blocked", true, "SigningFile", ctx->signing_hold);
    else if (ctx->failed)
        set(ctx, "Blocked", true, "RestartFailed", ctx->hold);
    else if (ctx->blocked.len)
        set(ctx, "Blocked", true, "RestartUnsafe", cr_cp_lines_text(&ctx->blocked));
    else
        set(ctx, "Blocked", false, "NotBlocked", "Nothing waits for a person.");
}

static void degraded(struct cp_ctx *ctx)
{
    if (ctx->failed)
        set(ctx, "Degraded", true, "RestartFailed", cr_cp_lines_text(&ctx->degraded));
    else if (ctx->overdue)
        set(ctx, "Degraded", true, "DeadlinePassed", cr_cp_lines_text(&ctx->degraded));
    else if (ctx->degraded.len)
        set(ctx, "Degraded", true, "Troubles", cr_cp_lines_text(&ctx->degraded));
    else
        set(ctx, "Degraded", false, "AsExpected", "Nothing is wrong.");
}

/* --- next --- */

static char *next_restart(const struct cp_ctx *ctx)
{
    const char *hold = NULL;
    for (size_t i = 0; i < ctx->candidates_len; i++) {
        const struct cp_candidate *candidate = &ctx->candidates[i];
        if (candidate->blocked)
            continue;
        const char *component = candidate->component->name;
        const char *node = ctx->nodes[candidate->node].name;
        hold = cr_cp_hold(ctx, candidate);
        if (hold)
            return cr_asprintf("%s of %s waits: %s.", component, node, hold);
        return cr_asprintf("%s of %s would be restarted, but for spec.%s.", component, node,
                           ctx->world->policy->suspend ? "suspend" : "mode: Plan");
    }
    return NULL;
}

static const char *short_one(const struct cr_control_plane_status *status)
{
    const struct cr_control_plane_count *counts[] = {&status->nodes, &status->namespaces, &status->token_secrets,
                                                     &status->workloads};
    for (size_t i = 0; i < cr_array_len(counts); i++)
        if (is_short(counts[i]))
            return counts[i]->example;
    return NULL;
}

static char *next(struct cp_ctx *ctx)
{
    const struct cr_control_plane_status *status = &ctx->plan->status;
    if (ctx->out && status->restarting_token)
        return cr_asprintf("%s of %s %s.", cr_or_empty(status->restarting_component),
                           cr_or_empty(status->restarting_node), ctx->phase ? ctx->phase : "is restarted");
    if (ctx->out)
        return ending(ctx);
    char *restart = next_restart(ctx);
    if (restart)
        return restart;
    if (ctx->signing_hold)
        return cr_asprintf("Waits for a person: %s.", ctx->signing_hold);
    if (ctx->blocked.len)
        return cr_asprintf("Waits for a person: %s.", cr_cp_lines_text(&ctx->blocked));
    if (ctx->soon)
        return cr_asprintf("%s.", ctx->soon);
    if (ctx->plan->restart_workloads.len)
        return cr_asprintf("spec.workloads %s is restarted.", ctx->plan->restart_workloads.items[0]);
    if (ctx->missing)
        return cr_asprintf("%s.", ctx->missing);
    const char *waits = short_one(status);
    if (waits)
        return cr_asprintf("Waits for %s.", waits);
    return cr_strdup("Nothing: everything has what its files have.");
}

void cr_cp_conditions(struct cp_ctx *ctx)
{
    ready(ctx);
    converged(ctx);
    rotating(ctx);
    blocked(ctx);
    degraded(ctx);
    set(ctx, "Conflict", false, "None", "No other policy is older.");
    ctx->plan->status.next = next(ctx);
}
