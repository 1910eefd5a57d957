/* Which components must be restarted, in which order (rules 2, 3 and 7), and by which token. */
#include "controlplane/rules/control_plane_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "pki/digest.h"

/* --- tokens --- */

static void add_text(struct cr_buf *text, const char *word)
{
    cr_buf_printf(text, "%zu:%s;", strlen(cr_or_empty(word)), cr_or_empty(word));
}

static void add_files(struct cr_buf *text, const struct cp_node *node, const char *component, bool all)
{
    for (size_t i = 0; i < node->rows_len; i++) {
        const struct cp_row *row = &node->rows[i];
        if (!cr_streq(row->file->component, component) || (!all && !row->needs))
            continue;
        add_text(text, row->file->parameter);
        add_text(text, row->file->via);
        for (size_t k = 0; k < row->file->prints.len; k++)
            add_text(text, row->file->prints.items[k]);
    }
}

static void digest(const struct cr_buf *text, char out[CP_TOKEN_PART + 1])
{
    char hex[CR_SHA256_HEX];
    cr_sha256_hex(cr_buf_text(text), text->len, hex);
    memcpy(out, hex, CP_TOKEN_PART);
    out[CP_TOKEN_PART] = '\0';
}

/* What it is restarted for; the part about the process follows it. */
static void begin(const struct cp_ctx *ctx, struct cr_buf *text, const struct cp_node *node, const char *component)
{
    add_text(text, node->name);
    add_text(text, component);
    add_text(text, ctx->world->policy->retry);
}

static void end(const struct cr_buf *what, const struct cr_node_component *component, char out[40])
{
    CR_CLEANUP(cr_buf) struct cr_buf process = CR_BUF_INIT(0);
    add_text(&process, component->process);
    digest(what, out);
    digest(&process, out + CP_TOKEN_PART);
}

static void make_token(const struct cp_ctx *ctx, struct cp_candidate *candidate)
{
    const struct cp_node *node = &ctx->nodes[candidate->node];
    CR_CLEANUP(cr_buf) struct cr_buf what = CR_BUF_INIT(0);
    begin(ctx, &what, node, candidate->component->name);
    if (candidate->for_tokens)
        add_text(&what, ctx->keys.one);
    else
        add_files(&what, node, candidate->component->name, false);
    end(&what, candidate->component, candidate->token);
}

void cr_cp_state_token(const struct cp_ctx *ctx, const struct cp_node *node, const struct cr_node_component *component,
                       char out[40])
{
    CR_CLEANUP(cr_buf) struct cr_buf what = CR_BUF_INIT(0);
    begin(ctx, &what, node, component->name);
    add_files(&what, node, component->name, true);
    end(&what, component, out);
}

/* It was restarted for just this, and that was the last thing its agent did. */
static bool was_done(const struct cp_node *node, const struct cp_candidate *candidate)
{
    const struct cr_node_act *act = &node->report->act;
    return act->phase == CR_NODE_ACT_DONE && act->token && strlen(act->token) == 2 * CP_TOKEN_PART &&
           strncmp(act->token, candidate->token, CP_TOKEN_PART) == 0 && strcmp(act->token, candidate->token) != 0;
}

/* --- which components --- */

static bool needs_restart(const struct cp_node *node, const char *component)
{
    for (size_t i = 0; i < node->rows_len; i++)
        if (node->rows[i].needs && cr_streq(node->rows[i].file->component, component))
            return true;
    return false;
}

/* While tokens of another key are on the node, and its kubelet began before all signed with this one. */
static bool has_old_tokens(const struct cp_ctx *ctx, const struct cp_node *node,
                           const struct cr_node_component *component)
{
    int64_t since_ms = ctx->plan->status.signing_key_since_ms;
    if (ctx->world->policy->tokens != CR_CONTROL_PLANE_TOKENS_RESTART_KUBELETS || !ctx->keys.one ||
        !cr_streq(component->name, "kubelet") || (since_ms && component->started_ms >= since_ms))
        return false;
    for (size_t i = 0; i < node->report->tokens_len; i++)
        if (node->report->tokens[i].tokens > 0 && cr_cp_bit_in(&ctx->sets[CP_KEYS], node->report->tokens[i].key) &&
            !cr_streq(node->report->tokens[i].key, ctx->keys.one))
            return true;
    return false;
}

static void add(struct cp_ctx *ctx, size_t node, const struct cr_node_component *component, bool for_tokens)
{
    struct cp_candidate candidate = {
        .node = node, .component = component, .for_tokens = for_tokens, .rank = cr_cp_rank(component->name)};
    make_token(ctx, &candidate);
    bool done = was_done(&ctx->nodes[node], &candidate);
    if (done && for_tokens) /* what is still of the old key runs out by itself */
        return;
    if (done)
        candidate.blocked = cr_asprintf("it was restarted for these files already, and is still said not to have them: "
                                        "look at its report, then change spec.restart.retry");
    if ((ctx->candidates_len & (ctx->candidates_len - 1)) == 0)
        ctx->candidates = cr_reallocarray(ctx->candidates, ctx->candidates_len ? 2 * ctx->candidates_len : 1,
                                          sizeof *ctx->candidates);
    ctx->candidates[ctx->candidates_len++] = candidate;
}

static void add_of(struct cp_ctx *ctx, size_t node)
{
    const struct cr_node_report *report = ctx->nodes[node].report;
    for (size_t i = 0; i < report->components_len; i++) {
        const struct cr_node_component *component = &report->components[i];
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again = again || cr_streq(report->components[k].name, component->name);
        if (!component->name || again)
            continue;
        if (needs_restart(&ctx->nodes[node], component->name))
            add(ctx, node, component, false);
        else if (has_old_tokens(ctx, &ctx->nodes[node], component))
            add(ctx, node, component, true);
    }
}

/* qsort has no context: what it compares is in the candidates. */
struct sorted {
    struct cp_candidate candidate;
    bool leads;
    const char *name;
};

static int compare(const void *a, const void *b)
{
    const struct sorted *x = a;
    const struct sorted *y = b;
    if (x->candidate.rank != y->candidate.rank)
        return x->candidate.rank - y->candidate.rank;
    if (x->leads != y->leads)
        return x->leads ? 1 : -1;
    int by_name = strcmp(x->name, y->name);
    return by_name ? by_name : strcmp(x->candidate.component->name, y->candidate.component->name);
}

static void sort(struct cp_ctx *ctx)
{
    struct sorted *all = cr_calloc(ctx->candidates_len + 1, sizeof *all);
    for (size_t i = 0; i < ctx->candidates_len; i++) {
        const struct cp_node *node = &ctx->nodes[ctx->candidates[i].node];
        all[i] = (struct sorted){ctx->candidates[i], node->leads, node->name};
    }
    if (ctx->candidates_len)
        qsort(all, ctx->candidates_len, sizeof *all, compare);
    for (size_t i = 0; i < ctx->candidates_len; i++)
        ctx->candidates[i] = all[i].candidate;
    free(all);
}

void cr_cp_candidates(struct cp_ctx *ctx)
{
    cr_cp_find_unusable_signing_file(ctx);
    for (size_t i = 0; i < ctx->nodes_len; i++)
        if (cr_cp_reports(&ctx->nodes[i]))
            add_of(ctx, i);
    sort(ctx);
    for (size_t i = 0; i < ctx->candidates_len; i++) {
        struct cp_candidate *candidate = &ctx->candidates[i];
        if (!candidate->blocked)
            candidate->blocked = cr_cp_blocked(ctx, candidate);
        if (candidate->blocked)
            cr_cp_line(&ctx->blocked, "%s of %s: %s", candidate->component->name, ctx->nodes[candidate->node].name,
                       candidate->blocked);
    }
}
