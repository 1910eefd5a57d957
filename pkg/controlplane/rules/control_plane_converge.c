/* How far each node and component is. */
#include "controlplane/rules/control_plane_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

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

void cr_cp_counts(struct cp_ctx *ctx)
{
    count_nodes(ctx);
    count_components(ctx);
    for (size_t i = 0; i < ctx->nodes_len; i++)
        await(ctx, &ctx->nodes[i]);
}
