#include "controlplane/rules/control_plane_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "controlplane/rules/control_plane_internal.h"
#include "pki/digest.h"

/* What has the cluster's CA from the API: kube-root-ca.crt of each namespace, ca.crt of token Secrets. */

/* Where no agent sees a controller manager: what all have. */
static void find_root_of_readers(struct cp_ctx *ctx)
{
    bool same = ctx->readers_known && ctx->readers == ctx->readers_any;
    ctx->root_known = same && ctx->world->root_cas_len && !ctx->sets[CP_CLUSTER].over;
    ctx->root = ctx->root_known ? ctx->readers : 0;
}

/* What all controller managers hand out, whichever of them leads. */
static void find_root(struct cp_ctx *ctx)
{
    bool same = true;
    bool loaded = true;
    for (size_t i = 0; i < ctx->nodes_len; i++)
        for (size_t k = 0; k < ctx->nodes[i].rows_len; k++) {
            const struct cp_row *row = &ctx->nodes[i].rows[k];
            if (!cr_streq(row->file->parameter, "--root-ca-file") || row->use != CP_USE_TRUST)
                continue;
            same = same && (!ctx->root_named || row->prints == ctx->root);
            loaded = loaded && row->sure && !row->file->more && cr_cp_reports(&ctx->nodes[i]);
            ctx->root = row->prints;
            ctx->root_named = true;
        }
    if (ctx->root_named)
        ctx->root_known = same && loaded && ctx->root && !ctx->sets[CP_CLUSTER].over;
}

/* A user may put anything into a ConfigMap or a Secret of his namespace. What no node has takes no place in the set, so
 * that nobody can fill it, and an object out of reach is not followed. adds: where no agent sees a controller manager,
 * kube-root-ca.crt is the only source of CAs. */
static void read_object(struct cp_ctx *ctx, const struct cr_control_plane_object *object, bool adds)
{
    struct cp_set *set = &ctx->sets[CP_CLUSTER];
    if (object->terminating || object->out_of_reach)
        return;
    uint64_t bits = !object->prints ? 0 : adds ? cr_cp_bits(set, object->prints) : cr_cp_bits_in(set, object->prints);
    ctx->readers &= bits;
    ctx->readers_any |= bits;
    ctx->readers_known = ctx->readers_known && bits && cr_cp_has_all(set, object->prints);
}

static bool is_root(const struct cp_ctx *ctx, const struct cr_control_plane_object *object)
{
    const struct cp_set *set = &ctx->sets[CP_CLUSTER];
    return object->prints && cr_cp_bits_in(set, object->prints) == ctx->root && cr_cp_has_all(set, object->prints);
}

static bool have_all_root(const struct cp_ctx *ctx)
{
    const struct cr_control_plane_world *world = ctx->world;
    for (size_t i = 0; i < world->root_cas_len; i++)
        if (!world->root_cas[i].terminating && !world->root_cas[i].out_of_reach && !is_root(ctx, &world->root_cas[i]))
            return false;
    return true;
}

/* Workloads that read it once are restarted for it when every namespace has it; they have what was there at first
 * sight, unless there are several CAs: a rotation may be under way. */
static void record_root(struct cp_ctx *ctx)
{
    struct cr_control_plane_status *status = &ctx->plan->status;
    if (!ctx->root_known || !have_all_root(ctx))
        return;
    char digest[CR_SHA256_HEX];
    cr_autofree char *text = cr_cp_text(&ctx->sets[CP_CLUSTER], ctx->root);
    cr_sha256_hex(text, strlen(text), digest);
    if (cr_streq(status->root_ca, digest))
        return;
    status->root_ca_since_ms = status->root_ca || ctx->sets[CP_CLUSTER].len > 1 ? ctx->world->now_ms : 0;
    cr_strset(&status->root_ca, digest);
}

static void cp_readers(struct cp_ctx *ctx)
{
    const struct cr_control_plane_world *world = ctx->world;
    ctx->readers = ~(uint64_t)0;
    ctx->readers_known = true;
    find_root(ctx);
    for (size_t i = 0; i < world->root_cas_len; i++)
        read_object(ctx, &world->root_cas[i], !ctx->root_named);
    for (size_t i = 0; i < world->token_secrets_len; i++)
        read_object(ctx, &world->token_secrets[i], false);
    if (!ctx->root_named)
        find_root_of_readers(ctx);
    record_root(ctx);
}

/* What follows a new root CA or signing key in the API: kube-root-ca.crt is the controller manager's own work and is
 * only counted; token Secrets of another key are renewed. */

enum { RENEWED_AT_ONCE = 20, RENEWED_OF_NAMESPACE = 5, NEXT_BATCH_MS = 5000 };

static bool has_root(const struct cp_ctx *ctx, const struct cr_control_plane_object *object)
{
    if (!object->prints || !object->prints->len)
        return false;
    if (!ctx->root_named) /* no component says what it should be: all that can be checked is that it is there */
        return true;
    return ctx->root_known && is_root(ctx, object);
}

/* Owned: "ns/name", or "ns" where all have that name. */
static char *name_of(const struct cr_control_plane_object *object, const char *name)
{
    return name ? cr_asprintf("%s/%s", cr_or_empty(object->ns), name) : cr_strdup(cr_or_empty(object->ns));
}

static void count(struct cr_control_plane_count *counts, const struct cr_control_plane_object *object, bool converged,
                  const char *name)
{
    counts->total++;
    counts->converged += converged;
    if (!converged && !counts->example)
        counts->example = name_of(object, name);
}

/* It stays as it is. */
static void note_out_of_reach(struct cp_out_of_reach *noted, const struct cr_control_plane_object *object,
                              const char *name)
{
    noted->len++;
    if (!noted->example)
        noted->example = name_of(object, name);
}

static void count_namespaces(struct cp_ctx *ctx)
{
    const struct cr_control_plane_world *world = ctx->world;
    for (size_t i = 0; i < world->root_cas_len; i++) {
        const struct cr_control_plane_object *root_ca = &world->root_cas[i];
        bool converged = has_root(ctx, root_ca);
        if (root_ca->terminating)
            continue;
        if (root_ca->out_of_reach && !converged)
            note_out_of_reach(&ctx->roots_out_of_reach, root_ca, NULL);
        else
            count(&ctx->plan->status.namespaces, root_ca, converged, NULL);
    }
}

static bool is_old(const struct cp_ctx *ctx, const struct cr_control_plane_object *secret)
{
    return ctx->world->policy->renew_token_secrets && ctx->keys.one && !cr_streq(secret->key, ctx->keys.one);
}

/* Only a controller manager gives them new ones. */
static bool makes_tokens(const struct cp_ctx *ctx)
{
    for (size_t i = 0; i < ctx->nodes_len; i++)
        for (size_t k = 0; k < ctx->nodes[i].rows_len; k++) {
            const struct cp_row *row = &ctx->nodes[i].rows[k];
            if (cr_streq(row->file->component, "kube-controller-manager") &&
                cr_streq(row->file->parameter, "--service-account-private-key-file") && row->sure)
                return true;
        }
    return false;
}

/* The tokens that the limits are about: those that are awaited, as a controller manager may be slow or hang, and those
 * that are to be renewed. */
struct renewals {
    bool possible;
    size_t all;
    size_t of_namespace; /* of the Secret that is looked at */
};

/* first: the first of a namespace; Secrets come sorted by it. No more than the limit, so that a user who empties his
 * Secrets again and again does not use up what there is for all. */
static size_t awaited_of(const struct cr_control_plane_world *world, size_t first)
{
    const struct cr_control_plane_object *secrets = world->token_secrets;
    size_t awaited = 0;
    for (size_t i = first; i < world->token_secrets_len && cr_streq(secrets[i].ns, secrets[first].ns); i++)
        awaited += !secrets[i].terminating && !secrets[i].out_of_reach && !secrets[i].has_token;
    return awaited < RENEWED_OF_NAMESPACE ? awaited : RENEWED_OF_NAMESPACE;
}

static bool is_first(const struct cr_control_plane_world *world, size_t i)
{
    return i == 0 || !cr_streq(world->token_secrets[i].ns, world->token_secrets[i - 1].ns);
}

static struct renewals renewals_of(const struct cp_ctx *ctx)
{
    struct renewals renewals = {.possible = makes_tokens(ctx)};
    for (size_t i = 0; i < ctx->world->token_secrets_len; i++)
        renewals.all += is_first(ctx->world, i) ? awaited_of(ctx->world, i) : 0;
    return renewals;
}

/* One without a token is on its way to one. A token that no API server verifies by any key is not waited for: a program
 * that writes such tokens again and again delays nothing. */
static void renew(struct cp_ctx *ctx, const struct cr_control_plane_object *secret, struct renewals *renewals)
{
    ctx->renewing = ctx->renewing || !secret->has_token || cr_cp_bit_in(&ctx->sets[CP_KEYS], secret->key);
    ctx->tokens_stay = ctx->tokens_stay || !renewals->possible;
    if (!secret->has_token || !ctx->acts || !renewals->possible)
        return;
    if (renewals->all >= RENEWED_AT_ONCE || renewals->of_namespace >= RENEWED_OF_NAMESPACE) {
        cr_cp_again_at(ctx, ctx->world->now_ms + NEXT_BATCH_MS);
        return;
    }
    renewals->all++;
    renewals->of_namespace++;
    cr_autofree char *name = cr_asprintf("%s/%s", cr_or_empty(secret->ns), cr_or_empty(secret->name));
    cr_strvec_add(&ctx->plan->renew_tokens, name);
}

static void cp_followers(struct cp_ctx *ctx)
{
    const struct cr_control_plane_world *world = ctx->world;
    struct renewals renewals = renewals_of(ctx);
    count_namespaces(ctx);
    for (size_t i = 0; i < world->token_secrets_len; i++) {
        const struct cr_control_plane_object *secret = &world->token_secrets[i];
        if (is_first(world, i))
            renewals.of_namespace = awaited_of(world, i);
        if (secret->terminating)
            continue;
        bool old = is_old(ctx, secret);
        if (secret->out_of_reach) {
            if (old || !has_root(ctx, secret))
                note_out_of_reach(&ctx->tokens_out_of_reach, secret, cr_or_empty(secret->name));
            continue;
        }
        if (old)
            renew(ctx, secret, &renewals);
        count(&ctx->plan->status.token_secrets, secret, !old && has_root(ctx, secret), cr_or_empty(secret->name));
    }
}

/* --- how far each node and component is --- */

/* A kubeconfig has its material in rows of its own, and what is no file of the node, in a PKI that is not the
 * cluster's, cannot be determined: neither is waited for. */
static bool is_waited_for(const struct cp_row *row)
{
    bool file = cr_streq(row->file->place, "Host") || cr_streq(row->file->place, "Embedded");
    bool unread = row->file->loaded == CR_NODE_LOADED_UNKNOWN && row->file->kind == CR_NODE_FILE_UNREAD;
    bool frame = cr_ends_with(row->file->parameter, "kubeconfig") || cr_streq(row->file->via, "--bootstrap-kubeconfig");
    return row->use != CP_USE_OTHER || !unread || (file && !frame);
}

static bool has_all(const struct cp_row *row)
{
    return row->sure || !is_waited_for(row);
}

/* --- nodes --- */

static char *why_not(const struct cp_node *node)
{
    if (!node->report)
        return cr_asprintf("%s: no agent reports", node->name);
    if (node->silent)
        return cr_asprintf("%s: its agent is silent", node->name);
    if (node->report->troubles.len)
        return cr_asprintf("%s: %s", node->name, node->report->troubles.items[0]);
    if (!node->report->components_len)
        return cr_asprintf("%s: its agent sees no component, not even a kubelet", node->name);
    for (size_t i = 0; i < node->rows_len; i++)
        if (!has_all(&node->rows[i])) {
            const struct cr_node_file *file = node->rows[i].file;
            cr_autofree char *title = cr_cp_row_title(node, &node->rows[i]);
            const char *why = file->why ? file->why : file->problem;
            return cr_asprintf("%s%s%s", title, why ? ": " : "", cr_or_empty(why));
        }
    return NULL;
}

static void count_nodes(struct cp_ctx *ctx)
{
    struct cr_control_plane_count *nodes = &ctx->plan->status.nodes;
    nodes->total = (int64_t)ctx->nodes_len;
    for (size_t i = 0; i < ctx->nodes_len; i++) {
        char *why = why_not(&ctx->nodes[i]);
        nodes->converged += !why;
        if (why && !nodes->example)
            nodes->example = why;
        else
            free(why);
    }
}

/* --- components --- */

enum state { LOADED, SOON, UNKNOWN, NEEDED };

static enum state state_of(const struct cp_row *row)
{
    if (row->needs)
        return NEEDED;
    if (has_all(row))
        return LOADED;
    return row->file->loaded == CR_NODE_LOADED_SOON ? SOON : UNKNOWN;
}

static struct cr_control_plane_consumer_status *consumer_of(struct cr_control_plane_status *status,
                                                            const char *component)
{
    for (size_t i = 0; i < status->consumers_len; i++)
        if (cr_streq(status->consumers[i].component, component))
            return &status->consumers[i];
    if (status->consumers_len == CR_CONTROL_PLANE_CONSUMERS_MAX)
        return NULL;
    if (!status->consumers)
        status->consumers = cr_calloc(CR_CONTROL_PLANE_CONSUMERS_MAX, sizeof *status->consumers);
    struct cr_control_plane_consumer_status *consumer = &status->consumers[status->consumers_len++];
    consumer->component = cr_strdup(component);
    return consumer;
}

static void say(struct cr_control_plane_consumer_status *consumer, const struct cp_node *node,
                const struct cp_row *worst)
{
    if (consumer->message)
        return;
    if (!worst) {
        consumer->message = cr_asprintf("%s is silent", node->name);
        return;
    }
    cr_autofree char *title = cr_cp_row_title(node, worst);
    const char *why = worst->file->why ? worst->file->why : worst->file->problem;
    consumer->message = cr_asprintf("%s%s%s", title, why ? ": " : "", cr_or_empty(why));
}

static void count_component(struct cp_ctx *ctx, const struct cp_node *node, const char *component)
{
    struct cr_control_plane_consumer_status *consumer = consumer_of(&ctx->plan->status, component);
    enum state worst = node->silent ? UNKNOWN : LOADED;
    const struct cp_row *which = NULL;
    if (!consumer)
        return;
    for (size_t i = 0; i < node->rows_len && !node->silent; i++)
        if (cr_streq(node->rows[i].file->component, component) && state_of(&node->rows[i]) > worst) {
            worst = state_of(&node->rows[i]);
            which = &node->rows[i];
        }
    consumer->nodes++;
    consumer->loaded += worst == LOADED;
    consumer->soon += worst == SOON;
    consumer->unknown += worst == UNKNOWN;
    consumer->restart_needed += worst == NEEDED;
    if (worst != LOADED)
        say(consumer, node, which);
}

static int compare(const void *a, const void *b)
{
    const struct cr_control_plane_consumer_status *x = a;
    const struct cr_control_plane_consumer_status *y = b;
    int by_rank = cr_cp_rank(x->component) - cr_cp_rank(y->component);
    return by_rank ? by_rank : strcmp(x->component, y->component);
}

static void count_components(struct cp_ctx *ctx)
{
    struct cr_control_plane_status *status = &ctx->plan->status;
    for (size_t i = 0; i < ctx->nodes_len; i++) {
        const struct cr_node_report *report = ctx->nodes[i].report;
        for (size_t k = 0; report && k < report->components_len; k++)
            if (report->components[k].name &&
                cr_node_report_component(report, report->components[k].name) == &report->components[k])
                count_component(ctx, &ctx->nodes[i], report->components[k].name);
    }
    if (status->consumers_len)
        qsort(status->consumers, status->consumers_len, sizeof *status->consumers, compare);
}

/* --- what takes a while --- */

static void await(struct cp_ctx *ctx, const struct cp_node *node)
{
    for (size_t i = 0; i < node->rows_len && cr_cp_reports(node); i++) {
        const struct cp_row *row = &node->rows[i];
        if (row->file->loaded != CR_NODE_LOADED_SOON)
            continue;
        if (row->file->due_ms > ctx->world->now_ms)
            cr_cp_again_at(ctx, row->file->due_ms + 1000);
        if (!ctx->soon) {
            cr_autofree char *title = cr_cp_row_title(node, row);
            ctx->soon = cr_asprintf("%s is taken up without a restart", title);
        }
    }
}

static void cp_counts(struct cp_ctx *ctx)
{
    count_nodes(ctx);
    count_components(ctx);
    for (size_t i = 0; i < ctx->nodes_len; i++)
        await(ctx, &ctx->nodes[i]);
}

static void init(struct cp_ctx *ctx, const struct cr_control_plane_world *world, struct cr_control_plane_plan *plan)
{
    *ctx = (struct cp_ctx){.world = world, .plan = plan};
    ctx->acts = world->policy->enforce && !world->policy->suspend;
    cr_control_plane_status_keep(&plan->status, world->status);
    plan->status.observed_generation = world->policy->generation;
}

static void dispose(struct cp_ctx *ctx)
{
    for (int pki = 0; pki < CP_PKIS; pki++) {
        free(ctx->authorities[pki].others[0]);
        free(ctx->authorities[pki].others[1]);
        free(ctx->authorities[pki].leaves);
    }
    for (size_t i = 0; i < ctx->candidates_len; i++)
        free(ctx->candidates[i].blocked);
    free(ctx->candidates);
    free(ctx->nodes);
    free(ctx->rows);
    free(ctx->signing_hold);
    free(ctx->roots_out_of_reach.example);
    free(ctx->tokens_out_of_reach.example);
    free(ctx->hold);
    free(ctx->bad.why);
    free(ctx->missing);
    free(ctx->soon);
    cr_buf_dispose(&ctx->blocked.text);
    cr_buf_dispose(&ctx->degraded.text);
}

void cr_control_plane_plan(const struct cr_control_plane_world *world, struct cr_control_plane_plan *out)
{
    struct cp_ctx ctx;
    *out = (struct cr_control_plane_plan){0};
    init(&ctx, world, out);
    cr_cp_view(&ctx);
    cp_readers(&ctx);
    cr_cp_authorities(&ctx);
    cr_cp_service_accounts(&ctx);
    cp_followers(&ctx);
    cr_cp_candidates(&ctx);
    cr_cp_orders(&ctx);
    cr_cp_workloads(&ctx);
    cp_counts(&ctx);
    cr_cp_troubles(&ctx);
    cr_cp_conditions(&ctx);
    dispose(&ctx);
}

void cr_control_plane_plan_dispose(struct cr_control_plane_plan *plan)
{
    if (!plan)
        return;
    cr_strvec_dispose(&plan->renew_tokens);
    cr_strvec_dispose(&plan->restart_workloads);
    cr_control_plane_status_dispose(&plan->status);
    *plan = (struct cr_control_plane_plan){0};
}
