/* What pods' sidecars say of the material that they pass on to a program which reads again only when it is notified:
 * time alone proves nothing of that. */
#include "policy/rules/plan_internal.h"

#include <string.h>

#include "base/strings.h"

unsigned cr_plan_notified(const struct plan_ctx *ctx, size_t change, unsigned trigger_classes)
{
    const struct cr_material *target = cr_plan_target(ctx, change);
    const struct cr_secret_status *secret = ctx->pending[change];
    if (!target)
        return 0;
    bool leaf = target->leaf[0] && (secret->pending.old_leaves.len || !cr_streq(secret->settled.leaf, target->leaf));
    return trigger_classes & ((leaf ? CR_CLASS_LEAF : 0u) | (cr_material_has_trust(target) ? CR_CLASS_TRUST : 0u));
}

/* As the page has it, also of a list that was too long to be remembered. */
static void digest_of_trust(const struct cr_material *material, char out[CR_SHA256_HEX])
{
    out[0] = '\0';
    if (cr_material_has_trust(material))
        memcpy(out, cr_material_summarize_trust(material).digest, CR_SHA256_HEX);
}

static bool has_trust(const struct cr_material *material, const char *trust)
{
    char digest[CR_SHA256_HEX];
    digest_of_trust(material, digest);
    return digest[0] && cr_streq(digest, trust);
}

/* Beside one of these leaves such CAs may be of that Secret. Beside the leaf of any other they are ours: programs are
 * given the CAs of their clients in a Secret of its own, too. */
static void leaves_beside(const struct plan_ctx *ctx, size_t change, const char *trust, struct cr_strvec *out)
{
    const struct cr_policy_status *status = &ctx->plan->status;
    for (size_t i = 0; i < status->secrets_len; i++) {
        const struct cr_secret_status *secret = &status->secrets[i];
        bool has = (secret->has_settled && has_trust(&secret->settled, trust)) ||
                   (secret->pending.set && has_trust(&secret->pending.target, trust));
        if (secret != ctx->pending[change] && has)
            cr_plan_add_leaves(secret, out);
    }
}

void cr_plan_trigger_look_make(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change,
                               struct plan_trigger_look *out)
{
    *out = (struct plan_trigger_look){0};
    if (!consumer->changes[change].notified)
        return;
    digest_of_trust(cr_plan_target(ctx, change), out->trust);
    digest_of_trust(&ctx->pending[change]->settled, out->settled_trust);
    leaves_beside(ctx, change, out->trust, &out->others);
    leaves_beside(ctx, change, out->settled_trust, &out->others_settled);
}

void cr_plan_trigger_look_dispose(struct plan_trigger_look *look)
{
    cr_strvec_dispose(&look->others);
    cr_strvec_dispose(&look->others_settled);
}

/* A look at endpoints, or at Envoy's page, that is still to come or was in vain may do better than a sidecar that
 * cannot prove what it has done; but it is waited for no longer than where there is none. */
static bool counts_for_trust(const struct plan_ctx *ctx, const struct plan_change *change,
                             const struct cr_shown_leaf *seen)
{
    bool over = ctx->world->now_ms >= change->since_ms + CR_KUBELET_REFRESH_MS + change->max_delay_ms;
    return seen->shown == CR_SHOWN_NOTHING || (seen->shown == CR_SHOWN_UNKNOWN && over);
}

void cr_plan_look_at_sidecar(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                             const struct cr_world_pod *pod, size_t change, const struct plan_trigger_look *look,
                             struct cr_shown_leaf *leaf, struct cr_shown_leaf *trust, bool *found)
{
    const struct plan_change *c = &consumer->changes[change];
    const struct cr_secret_status *secret = ctx->pending[change];
    struct cr_sidecar_shown shown;
    *found = false;
    if (!c->notified)
        return;
    cr_sidecar_judge(&(struct cr_sidecar_question){.leaf = secret->pending.target.leaf,
                                                   .old_leaves = &secret->pending.old_leaves,
                                                   .settled_leaf = secret->settled.leaf,
                                                   .trust = look->trust,
                                                   .settled_trust = look->settled_trust,
                                                   .others = &look->others,
                                                   .others_settled = &look->others_settled,
                                                   .port = consumer->sidecar.port,
                                                   .since_ms = c->since_ms,
                                                   .sighting = pod->sidecar},
                     &shown);
    if ((c->notified & CR_CLASS_LEAF) && leaf->shown == CR_SHOWN_NOTHING)
        *leaf = shown.leaf;
    if ((c->notified & CR_CLASS_TRUST) && counts_for_trust(ctx, c, trust))
        *trust = shown.trust;
    *found =
        (!(c->notified & CR_CLASS_LEAF) || shown.leaf_found) && (!(c->notified & CR_CLASS_TRUST) || shown.trust_found);
}

int cr_plan_sidecar_port(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (consumer->changes[k].concerns && consumer->changes[k].notified)
            return consumer->sidecar.port;
    return 0;
}
