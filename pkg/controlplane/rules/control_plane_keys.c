/* Keys of service accounts: which components verify by which, which sign with which, and which keys signed the tokens
 * in use. */
#include "controlplane/rules/control_plane_internal.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/strings.h"

static const char api_server[] = "kube-apiserver";

/* An API server verifies by the keys of all files that it names; false: that is not known of this one. */
static bool keys_of(const struct cp_node *node, uint64_t *verifies, uint64_t *any)
{
    bool known = true;
    for (size_t i = 0; i < node->rows_len; i++) {
        const struct cp_row *row = &node->rows[i];
        if (row->use != CP_USE_VERIFIES)
            continue;
        *verifies |= row->known ? row->prints & row->has : 0;
        *any |= row->prints | row->has;
        known = known && row->known && !row->file->more;
    }
    return known;
}

static void verifying(struct cp_ctx *ctx)
{
    struct cp_keys *keys = &ctx->keys;
    bool found = false;
    keys->verifying = ~(uint64_t)0;
    keys->known_is_all = keys->complete;
    for (size_t i = 0; i < ctx->nodes_len; i++) {
        const struct cp_node *node = &ctx->nodes[i];
        uint64_t verifies = 0;
        if (!node->report || !cr_node_report_component(node->report, api_server))
            continue;
        if (!keys_of(node, &verifies, &keys->known))
            keys->known_is_all = false;
        keys->verifying &= verifies;
        found = true;
    }
    keys->known_is_all = keys->known_is_all && found;
    if (!found || !keys->complete)
        keys->verifying = 0;
}

/* sure: with certainty by this key alone, all of them. */
static void signing(struct cp_ctx *ctx)
{
    bool sure = ctx->keys.complete;
    for (size_t i = 0; i < ctx->nodes_len; i++)
        for (size_t k = 0; k < ctx->nodes[i].rows_len; k++) {
            const struct cp_row *row = &ctx->nodes[i].rows[k];
            if (row->use != CP_USE_SIGNS)
                continue;
            ctx->keys.signing |= row->prints | row->has;
            sure = sure && row->sure;
        }
    uint64_t signs = ctx->keys.signing;
    bool one = signs && !(signs & (signs - 1));
    if (sure && one && signs & ctx->keys.verifying)
        ctx->keys.one = cr_cp_first(&ctx->sets[CP_KEYS], signs);
}

/* Anyone who may create a pod or a Secret may put into it what looks like a token of any key. No API server accepts a
 * token of a key that none verifies by, so nothing is lost with it; and it takes no place in the set. key: NULL when it
 * is not known. */
static void count_token(struct cp_ctx *ctx, const char *key)
{
    uint64_t bit = cr_cp_bit_in(&ctx->sets[CP_KEYS], key);
    ctx->keys.tokens |= bit;
    if (!bit && (!key || !ctx->keys.known_is_all))
        ctx->keys.tokens_complete = false;
}

static void count_tokens(struct cp_ctx *ctx, const struct cp_node *node)
{
    if (!cr_cp_reports(node) || !node->report->tokens_known) {
        ctx->keys.tokens_complete = false;
        return;
    }
    for (size_t i = 0; i < node->report->tokens_len; i++) {
        const struct cr_node_token_count *count = &node->report->tokens[i];
        if (count->tokens > 0)
            count_token(ctx, count->key);
    }
}

/* A Secret without a token is about to get one, of a key that is not known. One out of reach gets none. The token of
 * one that is too large to be read is lost with its key: only who may write the Secret can have made it so. */
static void count_secrets(struct cp_ctx *ctx)
{
    for (size_t i = 0; i < ctx->world->token_secrets_len; i++) {
        const struct cr_control_plane_object *secret = &ctx->world->token_secrets[i];
        if (!secret->terminating && (secret->has_token || !secret->out_of_reach))
            count_token(ctx, secret->key);
    }
}

static bool sign_surely(const struct cp_ctx *ctx)
{
    for (size_t i = 0; i < ctx->nodes_len; i++)
        for (size_t k = 0; k < ctx->nodes[i].rows_len; k++)
            if (ctx->nodes[i].rows[k].use == CP_USE_SIGNS && !ctx->nodes[i].rows[k].known)
                return false;
    return true;
}

static void report(struct cp_ctx *ctx)
{
    struct cr_control_plane_keys *out = &ctx->plan->status.service_accounts;
    const struct cp_keys *keys = &ctx->keys;
    const struct cp_set *set = &ctx->sets[CP_KEYS];
    out->verifying = cr_cp_text(set, keys->verifying);
    out->known = cr_cp_text(set, keys->known_is_all ? keys->known : 0);
    out->signing = cr_cp_text(set, keys->signing);
    out->tokens = cr_cp_text(set, keys->tokens);
    out->removable = cr_cp_text(set, keys->removable);
}

/* At first sight, too, it may be new to who has read a token, unless there is no other. */
static void record_key(struct cp_ctx *ctx)
{
    struct cr_control_plane_status *status = &ctx->plan->status;
    if (!ctx->keys.one || cr_streq(status->signing_key, ctx->keys.one))
        return;
    bool several = ctx->keys.known & (ctx->keys.known - 1);
    status->signing_key_since_ms = status->signing_key || several ? ctx->world->now_ms : 0;
    cr_strset(&status->signing_key, ctx->keys.one);
}

void cr_cp_service_accounts(struct cp_ctx *ctx)
{
    struct cp_keys *keys = &ctx->keys;
    keys->complete = ctx->authorities[CP_CLUSTER].complete && !ctx->sets[CP_KEYS].over;
    verifying(ctx);
    signing(ctx);
    record_key(ctx);
    /* Pods that read their token once have the old one in memory when their volumes have the new one already. */
    keys->tokens_complete = cr_cp_workloads_have_token(ctx);
    for (size_t i = 0; i < ctx->nodes_len; i++)
        count_tokens(ctx, &ctx->nodes[i]);
    count_secrets(ctx);
    if (keys->complete && keys->tokens_complete && keys->signing && sign_surely(ctx))
        keys->removable = keys->verifying & ~keys->signing & ~keys->tokens;
    if (keys->one)
        snprintf(ctx->plan->signing_key, sizeof ctx->plan->signing_key, "%s", keys->one);
    report(ctx);
}
