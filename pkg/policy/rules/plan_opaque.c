/* Opaque material that cannot be digested: reported where it matters. */
#include "policy/rules/plan_internal.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

enum { LOOK_AGAIN_MS = 30 * 1000 };

/* Whether a change of these entries would concern the consumer: as it is decided when there is one. */
static bool would_concern(const struct plan_ctx *ctx, size_t consumer, const struct cr_secret_change *change)
{
    const struct cr_world *world = ctx->world;
    if (!world->consumers[consumer].found)
        return false;
    struct cr_decide_input input = {.consumer = &world->policy->consumers[consumer],
                                    .pod_spec =
                                        cr_json_at(world->consumers[consumer].workload, "spec", "template", "spec"),
                                    .catalogue = world->catalogue,
                                    .changes = change,
                                    .changes_len = 1};
    CR_CLEANUP(cr_decision) struct cr_decision decision = {0};
    cr_decide(&input, &decision);
    return decision.kind != CR_DECISION_NONE;
}

static const char *who_takes(const struct plan_ctx *ctx, size_t secret)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    const struct cr_material *material = ctx->world->secrets[secret].material;
    for (size_t i = 0; i < material->opaque_keys.len; i++) {
        cr_autofree char *name =
            cr_strndup(material->opaque_keys.items[i], cr_opaque_key_len(material->opaque_keys.items[i]));
        cr_strvec_add(&names, name);
    }
    const struct cr_secret_change change = {
        .secret = &ctx->world->policy->secrets[secret], .changes = CR_CHANGE_OPAQUE, .opaque_keys = &names};
    for (size_t i = 0; i < ctx->world->policy->consumers_len; i++)
        if (would_concern(ctx, i, &change))
            return ctx->world->policy->consumers[i].name;
    return NULL;
}

char *cr_plan_unread(const struct plan_ctx *ctx)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    const char *why = NULL;
    for (size_t i = 0; i < ctx->world->policy->secrets_len; i++) {
        const struct cr_world_secret *secret = &ctx->world->secrets[i];
        if (!secret->material || !cr_streq(secret->material->opaque, CR_OPAQUE_UNREAD))
            continue;
        const char *consumer = who_takes(ctx, i);
        if (!consumer)
            continue;
        cr_plan_requeue(ctx->plan, LOOK_AGAIN_MS);
        if (!secret->opaque_problem)
            continue;
        why = secret->opaque_problem;
        cr_buf_printf(&text, "%sSecret %s (consumer %s)", text.len ? ", " : "", ctx->world->policy->secrets[i].name,
                      consumer);
    }
    return text.len ? cr_asprintf("Opaque material is not looked at, because %s: %s.", why, cr_buf_text(&text)) : NULL;
}
