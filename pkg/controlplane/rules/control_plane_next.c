/* Which components must be restarted, in which order (rules 2, 3 and 7), and by which token. */
#include "controlplane/rules/control_plane_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "pki/digest.h"

/* Why a component must not be restarted as things are: rules 2, 4 and 5, and what rule 6 says. */

/* --- rule 2 --- */

static char *not_allowed(const struct cp_ctx *ctx, const struct cr_node_component *component)
{
    const struct cr_control_plane_policy *policy = ctx->world->policy;
    for (size_t i = 0; i < policy->consumers_len; i++)
        if (cr_streq(policy->consumers[i].component, component->name) &&
            policy->consumers[i].restart == CR_CONTROL_PLANE_RESTART_NEVER)
            return cr_strdup("spec.consumers says that it is never restarted: somebody else must");
    if (component->restart)
        return NULL;
    return cr_asprintf("its agent may not restart it: %s",
                       component->restart_refused ? component->restart_refused : "it does not say why");
}

/* --- rule 4 --- */

struct tally {
    size_t all, others; /* others: that serve, without this one */
};

static bool serves(const struct cp_node *node, const struct cr_node_component *component)
{
    return cr_cp_reports(node) && component->running && component->health == CR_NODE_HEALTH_SERVING;
}

/* Beside one on a labelled node only those of such nodes are relied on: any agent can say that it has a member. */
static struct tally tally_of(const struct cp_ctx *ctx, const struct cp_candidate *one)
{
    struct tally tally = {0};
    for (size_t i = 0; i < ctx->nodes_len; i++) {
        const struct cp_node *node = &ctx->nodes[i];
        const struct cr_node_component *same =
            node->report ? cr_node_report_component(node->report, one->component->name) : NULL;
        tally.all += same || cr_cp_may_hide(node);
        if (!same)
            continue;
        bool counts = serves(node, same) && (node->labelled || !ctx->nodes[one->node].labelled);
        tally.others += counts && same != one->component;
    }
    return tally;
}

static char *too_few(const struct cp_ctx *ctx, const struct cp_candidate *candidate)
{
    const struct cr_node_component *component = candidate->component;
    bool etcd = cr_streq(component->name, "etcd");
    if (!etcd && !cr_streq(component->name, "kube-apiserver"))
        return NULL;
    struct tally tally = tally_of(ctx, candidate);
    if (tally.all == 1 && ctx->world->policy->single == CR_CONTROL_PLANE_SINGLE_ALLOW)
        return NULL;
    if (tally.all == 1)
        return cr_asprintf("it is the only %s that an agent reports: the cluster is without it meanwhile "
                           "(spec.restart.singleNode: Allow permits that)",
                           component->name);
    if (etcd && tally.others * 2 <= tally.all)
        return cr_asprintf("without it %zu of %zu members would answer, which is no majority", tally.others, tally.all);
    if (!etcd && !tally.others)
        return cr_strdup("no other API server serves");
    return NULL;
}

/* --- rule 5 --- */

/* What the same file has as a bundle: a signer's row has its first certificate only. */
static bool has_several(const struct cp_node *node, const struct cp_row *signer)
{
    if (signer->file->prints.len > 1 || signer->file->more)
        return true;
    for (size_t i = 0; i < node->rows_len; i++) {
        const struct cr_node_file *file = node->rows[i].file;
        if (file->kind == CR_NODE_FILE_TRUST && signer->file->path && cr_streq(file->path, signer->file->path) &&
            (file->prints.len > 1 || file->more))
            return true;
    }
    return false;
}

static bool is_unusable(const struct cp_row *signer)
{
    return signer->broken;
}

/* Control_plane_gates.c */
static void cp_find_unusable_signing_file(struct cp_ctx *ctx)
{
    for (size_t i = 0; i < ctx->nodes_len && !ctx->signing_hold; i++)
        for (size_t k = 0; k < ctx->nodes[i].rows_len && !ctx->signing_hold; k++) {
            const struct cp_row *row = &ctx->nodes[i].rows[k];
            if (row->use != CP_USE_SIGNER)
                continue;
            cr_autofree char *title = cr_cp_row_title(&ctx->nodes[i], row);
            if (has_several(&ctx->nodes[i], row))
                ctx->signing_hold = cr_asprintf(
                    "%s has more than one certificate: nothing is signed any more, and a controller manager that "
                    "begins or leads next does not start. Give --cluster-signing-cert-file a file of its own with the "
                    "one certificate that signs",
                    title);
            else if (is_unusable(row))
                ctx->signing_hold =
                    cr_asprintf("%s cannot be used (%s): a controller manager that begins or leads next may not "
                                "start",
                                title, cr_or_empty(row->file->problem));
        }
}

static char *signing_hold_of(const struct cp_ctx *ctx, const struct cp_node *node, const char *component)
{
    const char *leader = ctx->world->controller_manager_leader;
    if (!ctx->signing_hold)
        return NULL;
    if (cr_streq(component, "kube-controller-manager"))
        return cr_strdup("it would not start: a signing certificate's file cannot be used");
    if (!cr_streq(component, "kube-apiserver") && !cr_streq(component, "etcd"))
        return NULL;
    if (leader && !cr_streq(leader, node->name))
        return NULL;
    return cr_strdup(
        "another controller manager would have to lead, and could not: a signing certificate's file cannot "
        "be used");
}

/* Why it must not be restarted at all as things are; owned, NULL: nothing. */
static char *cp_blocked(const struct cp_ctx *ctx, const struct cp_candidate *candidate)
{
    const struct cp_node *node = &ctx->nodes[candidate->node];
    char *why = not_allowed(ctx, candidate->component);
    if (!why)
        why = signing_hold_of(ctx, node, candidate->component->name);
    if (!why)
        why = cr_cp_unsafe(ctx, candidate);
    return why ? why : too_few(ctx, candidate);
}

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
    cp_find_unusable_signing_file(ctx);
    for (size_t i = 0; i < ctx->nodes_len; i++)
        if (cr_cp_reports(&ctx->nodes[i]))
            add_of(ctx, i);
    sort(ctx);
    for (size_t i = 0; i < ctx->candidates_len; i++) {
        struct cp_candidate *candidate = &ctx->candidates[i];
        if (!candidate->blocked)
            candidate->blocked = cp_blocked(ctx, candidate);
        if (candidate->blocked)
            cr_cp_line(&ctx->blocked, "%s of %s: %s", candidate->component->name, ctx->nodes[candidate->node].name,
                       candidate->blocked);
    }
}
