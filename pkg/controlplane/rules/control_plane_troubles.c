/* What is not as it should be, and what is missing: in words that say which file of which node. */
#include "controlplane/rules/control_plane_internal.h"

#include "base/alloc.h"
#include "base/strings.h"

enum { PRINT_SHOWN = 12 };

/* --- degraded --- */

static void say_failure(struct cp_ctx *ctx)
{
    const struct cr_control_plane_status *status = &ctx->plan->status;
    if (!ctx->failed)
        return;
    const struct cp_node *node = cr_cp_node(ctx, status->failed_node);
    const struct cr_node_act *act = node && node->report ? &node->report->act : NULL;
    const char *message = act && cr_streq(act->token, status->failed_token) ? act->message : NULL;
    cr_cp_line(&ctx->degraded,
               "the restart of %s of %s has failed%s%s; nobody is restarted till its files, its process or "
               "spec.restart.retry change",
               cr_or_empty(status->failed_component), cr_or_empty(status->failed_node), message ? ": " : "",
               cr_or_empty(message));
}

static void say_overdue(struct cp_ctx *ctx)
{
    const struct cr_control_plane_status *status = &ctx->plan->status;
    if (!ctx->overdue)
        return;
    const struct cp_node *node = cr_cp_node(ctx, status->restarting_node);
    bool silent = node && !cr_cp_reports(node);
    cr_cp_line(&ctx->degraded, "the restart of %s of %s is not over after spec.restart.deadline%s",
               cr_or_empty(status->restarting_component), cr_or_empty(status->restarting_node),
               silent ? ", and its agent is silent: nobody else is restarted till it is back, or the node is deleted"
                      : ": its agent says what it waits for");
}

/* Why nothing is known is not to be seen otherwise. */
static void say_over(struct cp_ctx *ctx)
{
    static const char *const what[CP_SETS] = {[CP_CLUSTER] = "CAs of the cluster",
                                              [CP_ETCD] = "CAs of etcd",
                                              [CP_FRONT_PROXY] = "CAs of the front proxy",
                                              [CP_KEYS] = "keys of service accounts"};
    for (int set = 0; set < CP_SETS; set++)
        if (ctx->sets[set].over)
            cr_cp_line(&ctx->degraded, "there are more than %d %s: what all trust, and what is removable, is not known",
                       CP_SET_MAX, what[set]);
}

static void say_file(struct cp_ctx *ctx, const struct cp_node *node, const struct cp_row *row)
{
    bool elsewhere = row->use != CP_USE_OTHER && row->file->kind == CR_NODE_FILE_UNREAD && !row->broken;
    if (!row->broken && !elsewhere)
        return;
    cr_autofree char *title = cr_cp_row_title(node, row);
    const char *why = row->file->problem ? row->file->problem : row->file->why;
    cr_cp_line(&ctx->degraded, "%s: %s%s", title, why ? why : "it cannot be read",
               elsewhere ? "; nothing is known of it, so give it a file of the node" : "");
}

/* It is in use, and not every component that must verify it can. */
static void say_leaf(struct cp_ctx *ctx, const struct cp_node *node, const struct cp_row *row)
{
    if (row->use != CP_USE_LEAF || row->pki >= CP_PKIS || !row->file->prints.len || row->needs ||
        !cr_cp_has_peers(row->file))
        return;
    size_t side = row->file->role == CR_ROLE_CLIENT_LEAF ? 1 : 0;
    uint64_t all = ctx->authorities[row->pki].loaded[side];
    if (row->issuers & all || !~all)
        return;
    cr_autofree char *title = cr_cp_row_title(node, row);
    cr_cp_line(&ctx->degraded, "%s is of a CA that not everybody who verifies it has loaded", title);
}

/* For an order that is not on record, so that it has no deadline there. */
static void say_act(struct cp_ctx *ctx, const struct cp_node *node)
{
    const struct cr_node_act *act = &node->report->act;
    bool begun = act->phase == CR_NODE_ACT_RESTARTING || act->phase == CR_NODE_ACT_PROVING;
    bool named = cr_streq(act->token, ctx->plan->status.restarting_token);
    if (!begun || named || act->started_ms + ctx->world->policy->step_deadline_ms >= ctx->world->now_ms)
        return;
    cr_cp_line(&ctx->degraded,
               "the agent of %s restarts %s for longer than spec.restart.deadline: nobody else is restarted meanwhile",
               node->name, cr_or_empty(act->component));
}

static void say_node(struct cp_ctx *ctx, const struct cp_node *node)
{
    if (node->silent)
        cr_cp_line(&ctx->degraded, "the agent of %s is silent", node->name);
    if (!cr_cp_reports(node))
        return;
    say_act(ctx, node);
    for (size_t i = 0; i < node->report->troubles.len; i++)
        cr_cp_line(&ctx->degraded, "%s: %s", node->name, node->report->troubles.items[i]);
    for (size_t i = 0; i < node->rows_len; i++) {
        say_file(ctx, node, &node->rows[i]);
        say_leaf(ctx, node, &node->rows[i]);
    }
}

/* --- missing --- */

static char *lacks(const struct cp_ctx *ctx, enum cp_pki pki, uint64_t bit, const struct cp_node *node,
                   const struct cp_row *row)
{
    const char *print = cr_cp_first(&ctx->sets[pki], bit);
    if (row->use != CP_USE_TRUST || row->pki != pki || (row->known && row->prints & row->has & bit))
        return NULL;
    cr_autofree char *title = cr_cp_row_title(node, row);
    if (!(row->prints & bit))
        return cr_asprintf("%s has not the CA %.*s that others have: write it, or take it out there", title,
                           PRINT_SHOWN, print);
    return cr_asprintf("%s has the CA %.*s, but its process is not known to have loaded it", title, PRINT_SHOWN, print);
}

static char *who_lacks(const struct cp_ctx *ctx, enum cp_pki pki, uint64_t pending)
{
    const char *first = cr_cp_first(&ctx->sets[pki], pending);
    uint64_t bit = first ? cr_cp_bits_of_text(&ctx->sets[pki], first) : 0;
    for (size_t i = 0; bit && i < ctx->nodes_len; i++)
        for (size_t k = 0; k < ctx->nodes[i].rows_len && cr_cp_reports(&ctx->nodes[i]); k++) {
            char *text = lacks(ctx, pki, bit, &ctx->nodes[i], &ctx->nodes[i].rows[k]);
            if (text)
                return text;
        }
    return NULL;
}

/* What is being restarted is away, and what needs it on its node with it. */
static bool is_ours(const struct cp_ctx *ctx)
{
    return ctx->out && !ctx->overdue && ctx->bad.nodes == 1 &&
           cr_streq(ctx->nodes[ctx->bad.node].name, ctx->plan->status.restarting_node);
}

void cr_cp_troubles(struct cp_ctx *ctx)
{
    say_failure(ctx);
    say_overdue(ctx);
    say_over(ctx);
    if (ctx->tokens_stay)
        cr_cp_line(&ctx->degraded, "token Secrets of another key are not renewed: no controller manager with "
                                   "--service-account-private-key-file is seen that would make new tokens: give it "
                                   "one, or delete these Secrets");
    if (ctx->bad.why && !is_ours(ctx))
        cr_cp_line(&ctx->degraded, "%s", ctx->bad.why);
    for (size_t i = 0; i < ctx->nodes_len; i++)
        say_node(ctx, &ctx->nodes[i]);
    for (int pki = 0; pki < CP_PKIS && !ctx->missing; pki++)
        ctx->missing = who_lacks(ctx, (enum cp_pki)pki, ctx->authorities[pki].known & ~ctx->authorities[pki].trusted);
}
