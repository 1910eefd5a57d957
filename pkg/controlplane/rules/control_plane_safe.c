/* Rule 6: what a component would load by its restart must be safe for it and for those that connect to it. */
#include "controlplane/rules/control_plane_internal.h"

#include "base/alloc.h"
#include "base/strings.h"

struct question {
    const struct cp_ctx *ctx;
    const struct cp_node *node;
    const char *component;
};

static bool is_its(const struct question *q, const struct cp_row *row)
{
    return cr_streq(row->file->component, q->component);
}

/* --- leaves --- */

/* Nothing is known of what it would load, now as before; for the node's own files that is reported as broken. */
static bool is_elsewhere(const struct cp_row *row)
{
    return row->file->kind == CR_NODE_FILE_UNREAD && !row->needs;
}

/* What all components that verify servers (0) or clients (1) of that PKI would have: this component by its files, all
 * others by what they are known to have loaded. */
static uint64_t peers_have(const struct question *q, enum cp_pki pki, size_t side)
{
    enum cr_role role = side ? CR_ROLE_CLIENT_CA : CR_ROLE_SERVER_CA;
    uint64_t have = q->ctx->authorities[pki].others[side][q->node - q->ctx->nodes];
    for (size_t i = 0; i < q->node->rows_len; i++) {
        const struct cp_row *row = &q->node->rows[i];
        if (row->use == CP_USE_TRUST && row->pki == pki && row->file->role == role)
            have &= is_its(q, row) ? row->prints : row->known ? row->has : 0;
    }
    if (pki == CP_CLUSTER && side == 0)
        have &= q->ctx->readers;
    return have;
}

static char *unknown_leaf(const struct question *q, const struct cp_row *row)
{
    size_t side = row->file->role == CR_ROLE_CLIENT_LEAF ? 1 : 0;
    if (row->sure || !row->file->prints.len || !cr_cp_has_peers(row->file) ||
        (row->issuers & peers_have(q, row->pki, side) && !q->ctx->hides))
        return NULL;
    cr_autofree char *title = cr_cp_file_title(row->file);
    return cr_asprintf(
        "%s is of a CA that not all who verify it are known to have loaded: write its CA into the bundles "
        "first, or the old certificate back",
        title);
}

/* --- bundles --- */

/* What it has in use itself is known after its restart. */
static size_t unsure_of(const struct question *q, enum cp_pki pki)
{
    size_t unsure = 0;
    for (size_t i = 0; i < q->node->rows_len; i++) {
        const struct cp_row *row = &q->node->rows[i];
        bool counts = (row->use == CP_USE_LEAF && row->file->prints.len) || row->use == CP_USE_SIGNER;
        unsure += counts && row->pki == pki && !row->sure && is_its(q, row);
    }
    return unsure;
}

/* A leaf that verifies against what it has, or may have, would not against what its file has. */
static bool is_needed(const struct question *q, const struct cp_row *row)
{
    const struct cp_authority *authority = &q->ctx->authorities[row->pki];
    uint64_t has = row->known ? row->has : authority->known;
    uint64_t dropped = has & ~row->prints;
    if (!dropped)
        return false;
    if (authority->unsure > unsure_of(q, row->pki) || authority->leaves_over || authority->signers & dropped ||
        q->ctx->hides)
        return true;
    for (size_t i = 0; i < authority->leaves_len; i++)
        if (authority->leaves[i] & has && !(authority->leaves[i] & row->prints))
            return true;
    return false;
}

/* --root-ca-file itself verifies no peer, but all pods verify by what it hands out. */
static char *dropped_too_early(const struct question *q, const struct cp_row *row)
{
    if (row->sure || is_elsewhere(row) || !is_needed(q, row))
        return NULL;
    cr_autofree char *title = cr_cp_file_title(row->file);
    return cr_asprintf(
        "%s lacks a CA that a certificate in use, or one that is not known yet, needs: add it again till "
        "status says that it is removable",
        title);
}

/* --- keys --- */

static uint64_t keys_after(const struct question *q, const struct cp_node *node)
{
    bool itself = node == q->node && cr_streq(q->component, "kube-apiserver");
    uint64_t keys = 0;
    for (size_t i = 0; i < node->rows_len; i++)
        if (node->rows[i].use == CP_USE_VERIFIES)
            keys |= itself ? node->rows[i].prints : node->rows[i].has;
    return keys;
}

/* A node whose API server, if it has one, may not verify by it; NULL: none. */
static const struct cp_node *who_refuses(const struct question *q, uint64_t key)
{
    for (size_t i = 0; i < q->ctx->nodes_len; i++) {
        const struct cp_node *node = &q->ctx->nodes[i];
        if (!node->report)
            return node;
        bool serves = cr_node_report_component(node->report, "kube-apiserver");
        if (serves ? !(keys_after(q, node) & key) : cr_cp_may_hide(node))
            return node;
    }
    return NULL;
}

static char *unverified_key(const struct question *q, const struct cp_row *row)
{
    if (row->sure || is_elsewhere(row))
        return NULL;
    const struct cp_node *who = row->prints ? who_refuses(q, row->prints) : q->node;
    if (!who)
        return NULL;
    cr_autofree char *title = cr_cp_file_title(row->file);
    if (!who->report)
        return cr_asprintf("%s is a key of which it is not known, while no agent reports on %s, whether every API "
                           "server verifies by it",
                           title, who->name);
    return cr_asprintf("%s is a key that not every API server verifies by (not %s's): write its public key into the "
                       "files of --service-account-key-file first",
                       title, who->name);
}

/* Keys that some component signs with, or that signed tokens in use, must stay. */
static char *lost_key(const struct question *q)
{
    const struct cp_keys *keys = &q->ctx->keys;
    uint64_t used = keys->signing | keys->tokens;
    uint64_t has = 0;
    uint64_t prints = 0;
    for (size_t i = 0; i < q->node->rows_len; i++) {
        const struct cp_row *row = &q->node->rows[i];
        if (row->use != CP_USE_VERIFIES || !is_its(q, row))
            continue;
        if (is_elsewhere(row))
            return NULL;
        has |= row->known ? row->has : keys->known | used;
        prints |= row->prints;
    }
    uint64_t dropped = has & ~prints;
    if (!dropped || (keys->complete && keys->tokens_complete && !(dropped & used)))
        return NULL;
    return cr_strdup("--service-account-key-file lacks a key that is signed with, or that tokens in use are of: add it "
                     "again till status says that it is removable");
}

/* --- all --- */

/* Its program may not take it, and so not begin. */
static char *broken(const struct cp_row *row)
{
    if (!row->broken)
        return NULL;
    cr_autofree char *title = cr_cp_file_title(row->file);
    return cr_asprintf("%s: %s", title, row->file->problem ? row->file->problem : "it cannot be read");
}

static char *unsafe_row(const struct question *q, const struct cp_row *row)
{
    char *why = broken(row);
    if (why)
        return why;
    switch (row->use) {
    case CP_USE_LEAF:
        return unknown_leaf(q, row);
    case CP_USE_TRUST:
        return dropped_too_early(q, row);
    case CP_USE_SIGNS:
        return unverified_key(q, row);
    case CP_USE_SIGNER:
    case CP_USE_VERIFIES:
    case CP_USE_OTHER:
        break;
    }
    return NULL;
}

char *cr_cp_unsafe(const struct cp_ctx *ctx, const struct cp_candidate *candidate)
{
    const struct question q = {ctx, &ctx->nodes[candidate->node], candidate->component->name};
    for (size_t i = 0; i < q.node->rows_len; i++) {
        char *why = is_its(&q, &q.node->rows[i]) ? unsafe_row(&q, &q.node->rows[i]) : NULL;
        if (why)
            return why;
    }
    return cr_streq(q.component, "kube-apiserver") ? lost_key(&q) : NULL;
}
