/* What is seen of the CAs that pods verify their peers against, and of the leaves that they present: by what their
 * servers announce, by canaries, by their pages. */
#include "policy/rules/plan_internal.h"

#include "base/alloc.h"
#include "base/strings.h"
#include "catalogue/usage.h"

const struct cr_material *cr_plan_target(const struct plan_ctx *ctx, size_t change)
{
    return ctx->world->secrets[cr_plan_secret_of(ctx, change)].material;
}

bool cr_plan_can_see_trust(const struct plan_consumer *consumer, const struct cr_world_pod *pod, size_t change)
{
    const struct plan_change *c = &consumer->changes[change];
    return pod->trust && c->concerns &&
           (c->leaf_presented || cr_trust_can_be_seen(c->trust_roles, &consumer->spec->verify));
}

/* --- what is the same for all pods --- */

static void add_mounts(const struct plan_consumer *consumer, const char *secret, struct cr_strvec *out)
{
    CR_CLEANUP(cr_usage_list) struct cr_usage_list usages = {0};
    cr_usage_collect(consumer->pod_spec, secret, &usages);
    for (size_t i = 0; i < usages.len; i++) {
        const struct cr_usage *usage = &usages.items[i];
        if (usage->kind == CR_USAGE_ENV)
            continue;
        for (size_t k = 0; k < usage->paths.len; k++)
            cr_strvec_add(out, usage->paths.items[k]);
        if (!usage->keys.len && usage->directory)
            cr_strvec_add(out, usage->directory);
    }
}

static bool has_trust(const struct cr_secret_status *secret)
{
    return (secret->has_settled && cr_material_has_trust(&secret->settled)) ||
           (secret->pending.set && cr_material_has_trust(&secret->pending.target));
}

/* An endpoint that shows one of these counts for the Secret of that leaf, and so for the CAs beside it. */
static void leaves_beside_other_trust(const struct plan_ctx *ctx, size_t change, struct cr_strvec *out)
{
    const struct cr_policy_status *status = &ctx->plan->status;
    for (size_t i = 0; i < status->secrets_len; i++) {
        const struct cr_secret_status *secret = &status->secrets[i];
        if (secret != ctx->pending[change] && has_trust(secret))
            cr_plan_add_leaves(secret, out);
    }
}

void cr_plan_trust_look_make(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change,
                             struct plan_trust_look *out)
{
    const struct cr_secret_status *secret = ctx->pending[change];
    const struct cr_material *target = cr_plan_target(ctx, change);
    *out = (struct plan_trust_look){0};
    if (!target || !cr_trust_can_be_seen(consumer->changes[change].trust_roles, &consumer->spec->verify))
        return;
    cr_trust_change_make(&secret->settled, target, &out->change);
    add_mounts(consumer, secret->name, &out->mounts);
    leaves_beside_other_trust(ctx, change, &out->other_leaves);
}

void cr_plan_trust_look_dispose(struct plan_trust_look *look)
{
    cr_trust_change_dispose(&look->change);
    cr_strvec_dispose(&look->mounts);
    cr_strvec_dispose(&look->other_leaves);
}

/* --- one pod --- */

/* An endpoint is of another Secret by its name, or by the leaf that it shows, when that one has CAs as well. */
static bool is_of_other(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                        const struct cr_world_pod *pod, size_t change, const struct plan_trust_look *look,
                        size_t endpoint)
{
    const char *name = consumer->spec->verify.endpoints[endpoint].secret_name;
    const char *leaf = pod->sightings ? pod->sightings[endpoint].leaf : "";
    if (!name)
        return leaf[0] && cr_strvec_has(&look->other_leaves, leaf) &&
               !cr_streq(leaf, ctx->pending[change]->pending.target.leaf);
    const struct cr_secret_status *named = cr_status_secret(&ctx->plan->status, name);
    return named && named != ctx->pending[change] && has_trust(named);
}

void cr_plan_look_at_trust(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                           const struct cr_world_pod *pod, size_t change, const struct plan_trust_look *look,
                           struct cr_shown_leaf *out)
{
    bool others[CR_VERIFY_ENDPOINTS_MAX] = {0};
    *out = (struct cr_shown_leaf){.shown = CR_SHOWN_NOTHING};
    if (!look->change.target || !pod->trust)
        return;
    for (size_t i = 0; i < consumer->spec->verify.endpoints_len; i++)
        others[i] = is_of_other(ctx, consumer, pod, change, look, i);
    struct cr_trust_question question = {.roles = consumer->changes[change].trust_roles,
                                         .change = &look->change,
                                         .verify = &consumer->spec->verify,
                                         .others = others,
                                         .mounts = &look->mounts,
                                         .since_ms = consumer->changes[change].since_ms,
                                         .sighting = pod->trust};
    cr_trust_judge(&question, out);
    /* Whether it plays these roles at all is a guess: nothing is old by that. */
    if (out->shown == CR_SHOWN_OLD && consumer->decision.unknown)
        *out = (struct cr_shown_leaf){.shown = CR_SHOWN_NOTHING};
}

void cr_plan_look_at_page_leaf(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                               const struct cr_world_pod *pod, size_t change, struct cr_shown_leaf *out)
{
    const struct plan_change *c = &consumer->changes[change];
    const struct cr_material *target = cr_plan_target(ctx, change);
    *out = (struct cr_shown_leaf){.shown = CR_SHOWN_NOTHING};
    if (c->leaf_presented && target)
        cr_page_leaf_judge(pod->trust, &consumer->spec->verify, c->since_ms, target->serial,
                           ctx->pending[change]->settled.serial, out);
}

/* --- canaries --- */

static const char *first_added(const struct plan_ctx *ctx, size_t change)
{
    const struct cr_material *target = cr_plan_target(ctx, change);
    CR_CLEANUP(cr_trust_change) struct cr_trust_change came = {0};
    if (target)
        cr_trust_change_make(&ctx->pending[change]->settled, target, &came);
    return came.added_len ? came.added[0]->fingerprint : NULL;
}

const char *cr_plan_canary_ca(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    for (size_t k = 0; k < ctx->changes_len; k++) {
        const struct plan_change *change = &consumer->changes[k];
        bool verifies_clients = change->trust_roles & CR_ROLE_BIT(CR_ROLE_CLIENT_CA);
        const char *ca = change->concerns && verifies_clients ? first_added(ctx, k) : NULL;
        if (ca)
            return ca;
    }
    return NULL;
}
