/* The nodes' reports as rows of bits. */
#include "controlplane/rules/control_plane_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

struct cp_node *cr_cp_node(const struct cp_ctx *ctx, const char *name)
{
    for (size_t i = 0; name && i < ctx->nodes_len; i++)
        if (cr_streq(ctx->nodes[i].name, name))
            return &ctx->nodes[i];
    return NULL;
}

void cr_cp_again_at(struct cp_ctx *ctx, int64_t at_ms)
{
    enum { LEAST_MS = 500 };
    int64_t in_ms = at_ms - ctx->world->now_ms;
    if (in_ms < LEAST_MS)
        in_ms = LEAST_MS;
    if (!ctx->plan->again_ms || in_ms < ctx->plan->again_ms)
        ctx->plan->again_ms = in_ms;
}

static bool have_only_prints(const struct cr_strvec *prints)
{
    for (size_t i = 0; i < prints->len; i++)
        if (!cr_cp_is_print(prints->items[i]))
            return false;
    return true;
}

static bool is_file(const struct cr_node_file *file)
{
    return cr_streq(file->place, "Host") || cr_streq(file->place, "Embedded");
}

/* The kubelet writes its own pair and has it in memory; when another program has written it, what is in memory is not
 * known. While the PKI has several CAs that matters, and a restart, which touches no container, makes it sure. */
static bool is_doubtful(const struct cp_node *node, const struct cr_node_file *file)
{
    const struct cr_node_component *component = cr_node_report_component(node->report, file->component);
    return file->own && file->prints.len && component && component->started_ms &&
           file->changed_ms > component->started_ms;
}

static void read_row(struct cp_ctx *ctx, const struct cp_node *node, const struct cr_node_file *file,
                     struct cp_row *row)
{
    *row = (struct cp_row){.file = file};
    cr_cp_classify(file, &row->pki, &row->use);
    bool readable =
        file->kind != CR_NODE_FILE_UNREAD && have_only_prints(&file->prints) && have_only_prints(&file->has);
    bool yes = file->loaded == CR_NODE_LOADED_YES;
    row->needs = file->loaded == CR_NODE_LOADED_NO && !file->own && !cr_streq(file->via, "--bootstrap-kubeconfig");
    if (row->use == CP_USE_OTHER) {
        row->sure = yes;
        return;
    }
    row->broken = is_file(file) && (file->kind == CR_NODE_FILE_UNREAD || file->problem);
    row->sure = yes && readable && !is_doubtful(node, file);
    row->known = readable && (yes || file->has_known);
    if (!readable)
        return;
    row->issuers = cr_cp_bits(&ctx->sets[row->pki], &file->issuers);
    if (row->use == CP_USE_LEAF) /* its own fingerprints say nothing here, and are as many as there are nodes */
        return;
    row->prints = cr_cp_bits(&ctx->sets[row->pki], &file->prints);
    row->has = yes ? row->prints : file->has_known ? cr_cp_bits(&ctx->sets[row->pki], &file->has) : 0;
}

static bool has_control(const struct cr_node_report *report)
{
    for (size_t i = 0; i < report->components_len; i++)
        if (cr_cp_is_control(report->components[i].name))
            return true;
    return false;
}

static void read_node(struct cp_ctx *ctx, const struct cr_control_plane_node *from, struct cp_row *rows,
                      struct cp_node *node)
{
    const struct cr_control_plane_world *world = ctx->world;
    *node = (struct cp_node){.name = cr_or_empty(from->name), .report = from->report, .rows = rows};
    node->leads = from->name && (cr_streq(from->name, world->controller_manager_leader) ||
                                 cr_streq(from->name, world->scheduler_leader));
    node->control = from->control_plane;
    node->labelled = from->control_plane;
    if (!from->report)
        return;
    int64_t stale_ms = from->report->seen_ms + cr_node_report_stale_ms(from->report);
    /* By a clock that is far ahead it would never fall silent. */
    node->silent = stale_ms < world->now_ms || from->report->seen_ms > world->now_ms + CR_NODE_STALE_MS;
    node->control = node->control || has_control(from->report);
    if (!node->silent)
        cr_cp_again_at(ctx, stale_ms + 1);
    for (size_t i = 0; i < from->report->files_len; i++)
        read_row(ctx, node, &from->report->files[i], &rows[node->rows_len++]);
}

/* While a PKI has several CAs, a kubelet is restarted if its pair was written since it began. */
static void doubt(struct cp_ctx *ctx)
{
    for (size_t i = 0; i < ctx->nodes_len; i++)
        for (size_t k = 0; k < ctx->nodes[i].rows_len; k++) {
            struct cp_row *row = &ctx->nodes[i].rows[k];
            if (row->use != CP_USE_LEAF || !is_doubtful(&ctx->nodes[i], row->file))
                continue;
            row->needs = ctx->sets[row->pki].len > 1;
            row->sure = !row->needs && row->file->loaded == CR_NODE_LOADED_YES;
        }
}

static bool is_own_leaf(const struct cp_row *row, const char *place)
{
    return row->use == CP_USE_LEAF && row->file->own && cr_streq(row->file->place, place);
}

/* With a pair of its own in a file the kubelet has no use any more for the one in its kubeconfig, by which it joined.
 */
static void leave_first_pair(struct cp_node *node)
{
    bool has_pair = false;
    for (size_t i = 0; i < node->rows_len; i++)
        has_pair = has_pair || (is_own_leaf(&node->rows[i], "Host") && node->rows[i].file->prints.len);
    for (size_t i = 0; i < node->rows_len; i++)
        if (has_pair && is_own_leaf(&node->rows[i], "Embedded"))
            node->rows[i] =
                (struct cp_row){.file = node->rows[i].file, .pki = CP_OTHER, .use = CP_USE_OTHER, .sure = true};
}

void cr_cp_view(struct cp_ctx *ctx)
{
    const struct cr_control_plane_world *world = ctx->world;
    size_t rows = 0;
    for (size_t i = 0; i < world->nodes_len; i++)
        rows += world->nodes[i].report ? world->nodes[i].report->files_len : 0;
    ctx->nodes = cr_calloc(world->nodes_len + 1, sizeof *ctx->nodes);
    ctx->rows = cr_calloc(rows + 1, sizeof *ctx->rows);
    ctx->nodes_len = world->nodes_len;
    size_t used = 0;
    for (size_t i = 0; i < world->nodes_len; i++) {
        read_node(ctx, &world->nodes[i], ctx->rows + used, &ctx->nodes[i]);
        used += ctx->nodes[i].rows_len;
        leave_first_pair(&ctx->nodes[i]);
    }
    doubt(ctx);
}
