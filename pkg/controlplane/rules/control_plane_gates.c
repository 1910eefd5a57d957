/* Why a component must not be restarted as things are: rules 2, 4 and 5, and what rule 6 says. */
#include "controlplane/rules/control_plane_internal.h"

#include "base/alloc.h"
#include "base/strings.h"

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

void cr_cp_find_unusable_signing_file(struct cp_ctx *ctx)
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

char *cr_cp_blocked(const struct cp_ctx *ctx, const struct cp_candidate *candidate)
{
    const struct cp_node *node = &ctx->nodes[candidate->node];
    char *why = not_allowed(ctx, candidate->component);
    if (!why)
        why = signing_hold_of(ctx, node, candidate->component->name);
    if (!why)
        why = cr_cp_unsafe(ctx, candidate);
    return why ? why : too_few(ctx, candidate);
}
