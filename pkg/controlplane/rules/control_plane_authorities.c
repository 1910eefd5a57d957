/* What is reported of each PKI: which CAs all components have, and which any component has. */
#include "controlplane/rules/control_plane_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

/* Which CAs may be dropped: all of them together, since a reader of the list will drop them together. */

static int64_t end_of(const struct cp_ctx *ctx, const char *print)
{
    for (size_t i = 0; i < ctx->nodes_len; i++) {
        const struct cr_node_report *report = ctx->nodes[i].report;
        for (size_t k = 0; report && k < report->cas_len; k++)
            if (cr_streq(report->cas[k].fingerprint, print))
                return report->cas[k].not_after_ms;
    }
    return 0;
}

/* Each leaf that verifies now does so without these, too, and what will be signed is verified. */
static bool can_go(const struct cp_authority *authority, uint64_t gone)
{
    uint64_t left = authority->trusted & ~gone;
    if (!left || authority->signers & gone)
        return false;
    for (size_t i = 0; i < authority->leaves_len; i++)
        if (authority->leaves[i] & authority->trusted && !(authority->leaves[i] & left))
            return false;
    return true;
}

/* The one that ends first; if several do, the first by its text. */
static uint64_t next_of(const struct cp_ctx *ctx, enum cp_pki pki, uint64_t left)
{
    const struct cp_set *set = &ctx->sets[pki];
    uint64_t best = 0;
    int64_t best_ms = 0;
    while (left) {
        const char *print = cr_cp_first(set, left);
        uint64_t bit = cr_cp_bits_of_text(set, print);
        int64_t end_ms = end_of(ctx, print);
        left &= ~bit;
        if (!best || end_ms < best_ms) {
            best = bit;
            best_ms = end_ms;
        }
    }
    return best;
}

/* Servers that no agent sees have unknown leaves. The front proxy has clients only. */
static bool are_servers_seen(const struct cp_authority *authority, enum cp_pki pki)
{
    return pki == CP_FRONT_PROXY || authority->serves;
}

/* Nothing is known of a PKI with certificates that no component uses: then none of its CAs goes. */
static void cp_removable(struct cp_ctx *ctx, enum cp_pki pki)
{
    struct cp_authority *authority = &ctx->authorities[pki];
    uint64_t left = authority->trusted;
    authority->removable = 0;
    if (authority->unsure || authority->leaves_over || !(authority->issuing & authority->trusted) ||
        !are_servers_seen(authority, pki))
        return;
    while (left) {
        uint64_t bit = next_of(ctx, pki, left);
        if (!bit)
            return;
        left &= ~bit;
        if (can_go(authority, authority->removable | bit))
            authority->removable |= bit;
    }
}

enum { LEAVES_MAX = 256 };

static bool is_complete(const struct cp_ctx *ctx)
{
    for (size_t i = 0; i < ctx->nodes_len; i++)
        if (!cr_cp_reports(&ctx->nodes[i]) || ctx->nodes[i].report->troubles.len ||
            !ctx->nodes[i].report->components_len)
            return false;
    return ctx->nodes_len > 0;
}

static bool is_trust_of(const struct cp_row *row, enum cp_pki pki)
{
    return row->use == CP_USE_TRUST && row->pki == pki;
}

/* Which of cp_authority.loaded it counts for. */
static size_t side_of(const struct cp_row *row)
{
    return row->file->role == CR_ROLE_CLIENT_CA ? 1 : 0;
}

/* --- which components verify --- */

/* What the process has and the file has not is gone with the next start: it is nothing to rely on. */
static void add_trust(struct cp_authority *authority, const struct cp_row *row)
{
    size_t side = side_of(row);
    authority->trusted &= row->known ? row->prints & row->has : 0;
    authority->known |= row->prints | row->has;
    authority->known_is_all = authority->known_is_all && row->known && !row->file->more;
    authority->has_trust = true;
    if (row->known)
        authority->loaded[side] &= row->has;
}

/* What a leaf may verify against, by what is on a node alone. */
static void add_leaf(struct cp_authority *authority, const struct cp_row *row)
{
    bool is_key = row->file->kind == CR_NODE_FILE_LEAF && !row->file->prints.len;
    if (is_key) /* its certificate shows it */
        return;
    authority->unsure += !row->sure || cr_cp_is_anyones(row);
    authority->serves = authority->serves || (row->file->role == CR_ROLE_SERVER_LEAF && cr_cp_has_peers(row->file));
    authority->issuing |= row->issuers;
    for (size_t i = 0; i < authority->leaves_len; i++)
        if (authority->leaves[i] == row->issuers)
            return;
    if (authority->leaves_len == LEAVES_MAX)
        authority->leaves_over = true;
    else
        authority->leaves[authority->leaves_len++] = row->issuers;
}

static void add_signer(struct cp_authority *authority, const struct cp_row *row)
{
    authority->unsure += !row->sure;
    authority->issuing |= row->prints | row->has;
    authority->signers |= row->prints | row->has;
}

static void add_rows(struct cp_ctx *ctx, const struct cp_node *node)
{
    for (size_t i = 0; i < node->rows_len && cr_cp_reports(node); i++) {
        const struct cp_row *row = &node->rows[i];
        if (row->pki >= CP_PKIS)
            continue;
        if (row->use == CP_USE_TRUST)
            add_trust(&ctx->authorities[row->pki], row);
        else if (row->use == CP_USE_LEAF)
            add_leaf(&ctx->authorities[row->pki], row);
        else if (row->use == CP_USE_SIGNER)
            add_signer(&ctx->authorities[row->pki], row);
    }
}

/* --- what all nodes but one have --- */

static uint64_t loaded_on(const struct cp_node *node, enum cp_pki pki, size_t side)
{
    uint64_t loaded = ~(uint64_t)0;
    for (size_t i = 0; i < node->rows_len; i++)
        if (is_trust_of(&node->rows[i], pki) && side_of(&node->rows[i]) == side)
            loaded &= node->rows[i].known ? node->rows[i].has : 0;
    return loaded;
}

static void leave_one_out(struct cp_ctx *ctx, enum cp_pki pki, size_t side)
{
    uint64_t *others = cr_calloc(ctx->nodes_len + 1, sizeof *others);
    uint64_t before = ~(uint64_t)0;
    for (size_t i = 0; i < ctx->nodes_len; i++) {
        others[i] = before;
        before &= loaded_on(&ctx->nodes[i], pki, side);
    }
    uint64_t behind = ~(uint64_t)0;
    for (size_t i = ctx->nodes_len; i > 0; i--) {
        others[i - 1] &= behind;
        behind &= loaded_on(&ctx->nodes[i - 1], pki, side);
    }
    ctx->authorities[pki].others[side] = others;
}

/* --- all of it --- */

/* A pod's ca.crt is refreshed by its next sync, 60 to 90 s after kube-root-ca.crt (measured), or when its kubelet
 * restarts. */
enum { REFRESH_MS = 120 * 1000 };

static bool are_younger(const struct cp_ctx *ctx, int64_t since_ms)
{
    for (size_t i = 0; i < ctx->nodes_len; i++) {
        const struct cp_node *node = &ctx->nodes[i];
        const struct cr_node_component *kubelet =
            cr_cp_reports(node) ? cr_node_report_component(node->report, "kubelet") : NULL;
        if (!kubelet || kubelet->started_ms <= since_ms)
            return false;
    }
    return true;
}

static bool is_refreshed(struct cp_ctx *ctx)
{
    int64_t since_ms = ctx->plan->status.root_ca_since_ms;
    int64_t refreshed_ms = since_ms + REFRESH_MS;
    if (!since_ms || refreshed_ms <= ctx->world->now_ms || are_younger(ctx, since_ms))
        return true;
    cr_cp_again_at(ctx, refreshed_ms);
    return false;
}

/* Pods read kube-root-ca.crt and ca.crt of token Secrets, and some of them once. Till all have it again, they have what
 * was trusted before. */
static void add_readers(struct cp_ctx *ctx)
{
    struct cp_authority *cluster = &ctx->authorities[CP_CLUSTER];
    bool have_root = cr_cp_workloads_have_root(ctx);
    bool refreshed = is_refreshed(ctx);
    cluster->trusted &= have_root ? ctx->readers : 0;
    if (!refreshed)
        cluster->trusted &= cr_cp_bits_of_text(&ctx->sets[CP_CLUSTER], ctx->world->status->cluster.trusted);
    cluster->known |= ctx->readers_any;
    cluster->known_is_all = cluster->known_is_all && ctx->readers_known && have_root && refreshed;
}

/* The leaf that a process had before is not known by more than its fingerprint. */
static uint64_t issued_before(const struct cp_ctx *ctx, enum cp_pki pki)
{
    const struct cr_control_plane_status *before = ctx->world->status;
    const struct cr_control_plane_authority *of[CP_PKIS] = {
        [CP_CLUSTER] = &before->cluster, [CP_ETCD] = &before->etcd, [CP_FRONT_PROXY] = &before->front_proxy};
    return cr_cp_bits_of_text(&ctx->sets[pki], of[pki]->issuing);
}

/* The first end of the CAs that issue; 0: not known. */
static int64_t first_end(const struct cp_ctx *ctx, enum cp_pki pki)
{
    int64_t first_ms = 0;
    uint64_t left = ctx->authorities[pki].issuing;
    for (size_t i = 0; i < ctx->nodes_len && left; i++) {
        const struct cr_node_report *report = ctx->nodes[i].report;
        for (size_t k = 0; report && k < report->cas_len && left; k++) {
            uint64_t bit = cr_cp_bits_of_text(&ctx->sets[pki], report->cas[k].fingerprint) & left;
            left &= ~bit;
            if (bit && (!first_ms || report->cas[k].not_after_ms < first_ms))
                first_ms = report->cas[k].not_after_ms;
        }
    }
    return first_ms;
}

static void finish(struct cp_ctx *ctx, enum cp_pki pki, bool complete)
{
    struct cp_authority *authority = &ctx->authorities[pki];
    bool over = ctx->sets[pki].over;
    authority->complete = complete && !over;
    authority->known_is_all = authority->known_is_all && authority->complete && authority->has_trust;
    if (!authority->complete || !authority->has_trust)
        authority->trusted = 0;
    if (authority->unsure)
        authority->issuing |= issued_before(ctx, pki);
    cp_removable(ctx, pki);
}

static void report(const struct cp_ctx *ctx, enum cp_pki pki, struct cr_control_plane_authority *out)
{
    const struct cp_authority *authority = &ctx->authorities[pki];
    const struct cp_set *set = &ctx->sets[pki];
    out->trusted = cr_cp_text(set, authority->trusted);
    out->pending = cr_cp_text(set, authority->known & ~authority->trusted);
    out->known = cr_cp_text(set, authority->known_is_all ? authority->known : 0);
    out->issuing = cr_cp_text(set, authority->issuing);
    out->removable = cr_cp_text(set, authority->removable);
    out->not_after_ms = first_end(ctx, pki);
}

void cr_cp_authorities(struct cp_ctx *ctx)
{
    for (int pki = 0; pki < CP_PKIS; pki++) {
        uint64_t *leaves = cr_calloc(LEAVES_MAX, sizeof *leaves);
        ctx->authorities[pki] = (struct cp_authority){
            .trusted = ~(uint64_t)0, .loaded = {~(uint64_t)0, ~(uint64_t)0}, .known_is_all = true, .leaves = leaves};
        leave_one_out(ctx, (enum cp_pki)pki, 0);
        leave_one_out(ctx, (enum cp_pki)pki, 1);
    }
    for (size_t i = 0; i < ctx->nodes_len; i++)
        add_rows(ctx, &ctx->nodes[i]);
    add_readers(ctx);
    for (size_t i = 0; i < ctx->nodes_len; i++)
        ctx->hides = ctx->hides || cr_cp_may_hide(&ctx->nodes[i]);
    bool complete = is_complete(ctx);
    for (int pki = 0; pki < CP_PKIS; pki++)
        finish(ctx, (enum cp_pki)pki, complete);
    struct cr_control_plane_status *status = &ctx->plan->status;
    report(ctx, CP_CLUSTER, &status->cluster);
    report(ctx, CP_ETCD, &status->etcd);
    report(ctx, CP_FRONT_PROXY, &status->front_proxy);
}
