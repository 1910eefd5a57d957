/* What follows a new root CA or signing key in the API: kube-root-ca.crt is the controller manager's own work and is
 * only counted; token Secrets of another key are renewed. */
#include "controlplane/rules/control_plane_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

enum { RENEWED_AT_ONCE = 20, RENEWED_OF_NAMESPACE = 5, NEXT_BATCH_MS = 5000 };

static bool has_root(const struct cp_ctx *ctx, const struct cr_control_plane_object *object)
{
    if (!object->prints || !object->prints->len)
        return false;
    if (!ctx->root_named) /* no component says what it should be: all that can be checked is that it is there */
        return true;
    return ctx->root_known && cr_cp_bits_in(&ctx->sets[CP_CLUSTER], object->prints) == ctx->root;
}

static void count(struct cr_control_plane_count *counts, const struct cr_control_plane_object *object, bool converged,
                  const char *name)
{
    counts->total++;
    counts->converged += converged;
    if (!converged && !counts->example)
        counts->example =
            name ? cr_asprintf("%s/%s", cr_or_empty(object->ns), name) : cr_strdup(cr_or_empty(object->ns));
}

static void count_namespaces(struct cp_ctx *ctx)
{
    const struct cr_control_plane_world *world = ctx->world;
    for (size_t i = 0; i < world->root_cas_len; i++)
        if (!world->root_cas[i].terminating)
            count(&ctx->plan->status.namespaces, &world->root_cas[i], has_root(ctx, &world->root_cas[i]), NULL);
}

static bool is_old(const struct cp_ctx *ctx, const struct cr_control_plane_object *secret)
{
    return ctx->world->policy->renew_token_secrets && ctx->keys.one && !cr_streq(secret->key, ctx->keys.one);
}

/* How many of the renewed Secrets are in the namespace: Secrets come sorted by it. */
static size_t renewed_of(const struct cr_strvec *renewed, const char *ns)
{
    size_t len = strlen(ns);
    size_t count = 0;
    for (size_t i = renewed->len; i-- > 0 && strncmp(renewed->items[i], ns, len) == 0 && renewed->items[i][len] == '/';)
        count++;
    return count;
}

/* One without a token is on its way to one. A token that no API server verifies by any key is not waited for: a program
 * that writes such tokens again and again delays nothing. */
static void renew(struct cp_ctx *ctx, const struct cr_control_plane_object *secret)
{
    struct cr_strvec *renewed = &ctx->plan->renew_tokens;
    ctx->renewing = ctx->renewing || !secret->has_token || cr_cp_bit_in(&ctx->sets[CP_KEYS], secret->key);
    if (!secret->has_token || !ctx->acts)
        return;
    if (renewed->len == RENEWED_AT_ONCE || renewed_of(renewed, cr_or_empty(secret->ns)) == RENEWED_OF_NAMESPACE) {
        cr_cp_again_at(ctx, ctx->world->now_ms + NEXT_BATCH_MS);
        return;
    }
    cr_autofree char *name = cr_asprintf("%s/%s", cr_or_empty(secret->ns), cr_or_empty(secret->name));
    cr_strvec_add(renewed, name);
}

/* It stays as it is. */
static void note_immutable(struct cp_ctx *ctx, const struct cr_control_plane_object *secret)
{
    ctx->immutable_tokens++;
    if (!ctx->immutable_example)
        ctx->immutable_example = cr_asprintf("%s/%s", cr_or_empty(secret->ns), cr_or_empty(secret->name));
}

void cr_cp_followers(struct cp_ctx *ctx)
{
    const struct cr_control_plane_world *world = ctx->world;
    count_namespaces(ctx);
    for (size_t i = 0; i < world->token_secrets_len; i++) {
        const struct cr_control_plane_object *secret = &world->token_secrets[i];
        if (secret->terminating)
            continue;
        bool old = is_old(ctx, secret);
        if (secret->immutable) {
            if (old || !has_root(ctx, secret))
                note_immutable(ctx, secret);
            continue;
        }
        if (old)
            renew(ctx, secret);
        count(&ctx->plan->status.token_secrets, secret, !old && has_root(ctx, secret), cr_or_empty(secret->name));
    }
}
