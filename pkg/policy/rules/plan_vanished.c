/* Material that was there and is gone. It is far more often a mistake than a wish: the pods have the last good one, and
 * a new pod would start without, or not start at all. */
#include "policy/rules/plan_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "catalogue/usage.h"

static const char *const meant = "If that is meant, take the Secret out of the policy and add it again";

static bool has_entry(const struct cr_material *m, const char *name, size_t len)
{
    for (size_t i = 0; i < m->opaque_keys.len; i++)
        if (cr_opaque_key_len(m->opaque_keys.items[i]) == len && strncmp(m->opaque_keys.items[i], name, len) == 0)
            return true;
    return false;
}

static bool picks(const struct cr_json *workload, const char *secret, const char *key)
{
    CR_CLEANUP(cr_usage_list) struct cr_usage_list usages = {0};
    cr_usage_collect(cr_json_at(workload, "spec", "template", "spec"), secret, &usages);
    for (size_t i = 0; i < usages.len; i++)
        if (cr_strvec_has(&usages.items[i].keys, key))
            return true;
    return false;
}

/* The name of a consumer with pods that would not start without this key; NULL: none. */
static const char *picked_by(const struct plan_ctx *ctx, const char *secret, const char *key)
{
    const struct cr_policy *policy = ctx->world->policy;
    for (size_t i = 0; i < policy->consumers_len; i++)
        if (ctx->world->consumers[i].found && picks(ctx->world->consumers[i].workload, secret, key))
            return policy->consumers[i].name;
    return NULL;
}

/* An entry beside the certificates may go (an issuer was configured to write no keystore any more), unless one needs
 * it. */
static char *vanished_entry(const struct plan_ctx *ctx, const struct cr_secret_status *secret,
                            const struct cr_material *now)
{
    const struct cr_material *before = &secret->settled;
    if (now->opaque[0] && !now->opaque_keys.len)
        return NULL; /* too many to distinguish them */
    /* Remembered by other names of the policy (keys.opaque), or by a key that is lost: what is missing now may just not
     * be looked at any more. Without a key now, the names still show it. */
    if (!cr_streq(now->opaque, CR_OPAQUE_UNREAD) && !cr_opaque_comparable(before->opaque, now->opaque))
        return NULL;
    for (size_t i = 0; i < before->opaque_keys.len; i++) {
        const char *element = before->opaque_keys.items[i];
        if (has_entry(now, element, cr_opaque_key_len(element)))
            continue;
        cr_autofree char *key = cr_strndup(element, cr_opaque_key_len(element));
        const char *consumer = picked_by(ctx, secret->name, key);
        if (consumer)
            return cr_asprintf("%s, which consumer %s takes, is gone; nothing is done until it is back. %s", key,
                               consumer, meant);
    }
    return NULL;
}

char *cr_plan_vanished(const struct plan_ctx *ctx, const struct cr_secret_status *secret, const struct cr_material *now)
{
    /* What was only added by a change that is still pending may be taken back. */
    const struct cr_material *before = &secret->settled;
    if (!secret->has_settled)
        return NULL;
    if (cr_material_has_trust(before) && !cr_material_has_trust(now))
        return cr_asprintf("the trust (ca.crt) that it had is gone; nothing is done until it is back. %s", meant);
    if (before->has_leaf && !now->has_leaf)
        return cr_asprintf("the certificate and key that it had are gone; nothing is done until they are back. %s",
                           meant);
    return vanished_entry(ctx, secret, now);
}
