/* What has the cluster's CA from the API: kube-root-ca.crt of each namespace, ca.crt of token Secrets. */
#include "controlplane/rules/control_plane_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "pki/digest.h"

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
    else
        find_root_of_readers(ctx);
}

static void read_object(struct cp_ctx *ctx, const struct cr_control_plane_object *object, uint64_t bits)
{
    if (object->terminating)
        return;
    ctx->readers &= bits;
    ctx->readers_any |= bits;
    ctx->readers_known = ctx->readers_known && bits;
}

static void read_root_ca(struct cp_ctx *ctx, const struct cr_control_plane_object *object)
{
    read_object(ctx, object, object->prints ? cr_cp_bits(&ctx->sets[CP_CLUSTER], object->prints) : 0);
}

/* A user may put anything into a Secret of his namespace. What no node and no kube-root-ca.crt has takes no place in
 * the set, and an immutable Secret is not followed. */
static void read_token_secret(struct cp_ctx *ctx, const struct cr_control_plane_object *object)
{
    if (!object->immutable)
        read_object(ctx, object, object->prints ? cr_cp_bits_in(&ctx->sets[CP_CLUSTER], object->prints) : 0);
}

static bool have_all_root(const struct cp_ctx *ctx)
{
    const struct cr_control_plane_world *world = ctx->world;
    for (size_t i = 0; i < world->root_cas_len; i++) {
        const struct cr_control_plane_object *object = &world->root_cas[i];
        if (!object->terminating &&
            (!object->prints || cr_cp_bits_in(&ctx->sets[CP_CLUSTER], object->prints) != ctx->root))
            return false;
    }
    return true;
}

/* Workloads that read it once are restarted for it when every namespace has it; they have what was there at first
 * sight. */
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
    status->root_ca_since_ms = status->root_ca ? ctx->world->now_ms : 0;
    cr_strset(&status->root_ca, digest);
}

void cr_cp_readers(struct cp_ctx *ctx)
{
    const struct cr_control_plane_world *world = ctx->world;
    ctx->readers = ~(uint64_t)0;
    ctx->readers_known = true;
    for (size_t i = 0; i < world->root_cas_len; i++)
        read_root_ca(ctx, &world->root_cas[i]);
    for (size_t i = 0; i < world->token_secrets_len; i++)
        read_token_secret(ctx, &world->token_secrets[i]);
    find_root(ctx);
    record_root(ctx);
}
