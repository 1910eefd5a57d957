/* Questions to the world of a domain that several parts of its plan ask. */
#include "trust/rules/domain_plan_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

bool cr_domain_is_foreign(const struct cr_domain_object *object)
{
    return cr_trust_is_foreign(object->refused);
}

bool cr_domain_has_bundle(const struct domain_ctx *ctx, const struct cr_domain_object *object)
{
    if (object->found && object->bundle_foreign)
        return true;
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        if (cr_domain_has_ca(object, ca))
            return true;
    return false;
}

bool cr_domain_is_ca_bundle(const struct domain_ctx *ctx, const struct cr_domain_object *object)
{
    return !object->is_leaf && cr_trust_target_is_ca_bundle(ctx->world->domain->targets[object->spec].kind);
}

/* An object with its consent withdrawn, or in a namespace that is gone with its pods, waits for nothing of ours. Nor
 * does a caBundle without its object: no API server reads it. */
bool cr_domain_is_missed(const struct domain_ctx *ctx, size_t at)
{
    const struct cr_domain_object *object = &ctx->world->objects[at];
    if (object->found || !*ctx->plan->status.objects[at].trust)
        return false;
    switch (object->refused) {
    case CR_TRUST_CANNOT_READ:
        return true;
    case CR_TRUST_NO_CONSENT:
    case CR_TRUST_NAMESPACE_MISSING:
        return false;
    default:
        return !cr_domain_is_ca_bundle(ctx, object);
    }
}

bool cr_domain_misses_any(const struct domain_ctx *ctx)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++)
        if (cr_domain_is_missed(ctx, i))
            return true;
    return false;
}

/* What cannot be read (no evidence, then) may have readers as well. */
bool cr_domain_is_there(const struct domain_ctx *ctx, size_t at)
{
    const struct cr_domain_object *object = &ctx->world->objects[at];
    return object->found && !cr_domain_is_foreign(object) &&
           (object->evidence || object->published.found || cr_domain_has_bundle(ctx, object));
}

/* A bundle can grow beside a leaf that is refused for its key. */
bool cr_domain_may_write(const struct cr_domain_object *object)
{
    return !object->refused || object->refused == CR_TRUST_KEY_NOT_ACCEPTED;
}

bool cr_domain_has_other_writer(const struct cr_domain_object *object)
{
    return object->is_leaf && object->refused == CR_TRUST_OTHER_WRITER;
}

bool cr_domain_keeps_cas(const struct cr_domain_object *object)
{
    return object->is_leaf && !cr_domain_is_foreign(object) && object->refused != CR_TRUST_NO_CONSENT &&
           object->refused != CR_TRUST_NAMESPACE_MISSING;
}

const struct cr_domain_leaf_view *cr_domain_leaf_at(const struct cr_domain_object *object, enum cr_domain_leaf_at at)
{
    switch (at) {
    case CR_LEAF_IN_SOURCE:
        return &object->source;
    case CR_LEAF_PREVIOUS:
        return &object->previous;
    default:
        return &object->published;
    }
}

bool cr_domain_has_ca(const struct cr_domain_object *object, size_t ca)
{
    return object->found && object->bundle && object->bundle[ca];
}

bool cr_domain_is_usable(const struct cr_domain_leaf_view *leaf)
{
    return leaf->found && !leaf->problem;
}

bool cr_domain_leaf_verifies(const struct cr_domain_leaf_view *leaf, size_t ca)
{
    return leaf->found && leaf->verifies && leaf->verifies[ca];
}

bool cr_domain_leaf_verifies_any(const struct domain_ctx *ctx, const struct cr_domain_leaf_view *leaf)
{
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        if (cr_domain_leaf_verifies(leaf, ca))
            return true;
    return false;
}

bool cr_domain_is_expired(const struct domain_ctx *ctx, size_t ca)
{
    return ctx->world->cas[ca].not_after_ms <= ctx->world->now_ms;
}

char *cr_domain_object_title(const struct cr_domain_object *object)
{
    return object->ns ? cr_asprintf("%s %s/%s", object->kind, object->ns, object->name)
                      : cr_asprintf("%s %s", object->kind, object->name);
}

const struct cr_domain_leaf *cr_domain_leaf_of(const struct domain_ctx *ctx, size_t object)
{
    return &ctx->world->domain->leaves[ctx->world->objects[object].spec];
}

static bool reaches(enum cr_arrival arrival, bool first_sight, enum cr_evidence_level level)
{
    return arrival == CR_ARRIVAL_VERIFIED ||
           (arrival == CR_ARRIVAL_INFERRED && (first_sight || level == CR_LEVEL_INFERRED));
}

bool cr_domain_has_trust(const struct domain_ctx *ctx, const struct cr_domain_evidence *evidence)
{
    return reaches(evidence->trust, evidence->trust_first_sight, ctx->world->domain->evidence.trust);
}

bool cr_domain_has_leaf(const struct domain_ctx *ctx, const struct cr_domain_evidence *evidence)
{
    return reaches(evidence->leaf, evidence->leaf_first_sight, ctx->world->domain->evidence.leaf);
}

const struct cr_domain_evidence *cr_domain_evidence_of(const struct domain_ctx *ctx, size_t object)
{
    return ctx->unrecorded[object] ? NULL : ctx->world->objects[object].evidence;
}

bool cr_domain_token_is_new(const struct domain_ctx *ctx, enum cr_rotate_what what)
{
    const struct cr_domain *domain = ctx->world->domain;
    return ctx->may_record && domain->rotate_token && domain->rotate == what &&
           !cr_streq(domain->rotate_token, ctx->plan->status.last_handled_token);
}

void cr_domain_trust_digest(const struct cr_domain_world *world, const struct cr_domain_object *object,
                            char out[CR_SHA256_HEX])
{
    CR_CLEANUP(cr_strvec) struct cr_strvec fingerprints = {0};
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    for (size_t ca = 0; ca < world->cas_len; ca++)
        if (cr_domain_has_ca(object, ca))
            cr_strvec_add(&fingerprints, world->cas[ca].fingerprint);
    cr_strvec_sort(&fingerprints);
    for (size_t i = 0; i < fingerprints.len; i++)
        cr_buf_printf(&text, "%s,", fingerprints.items[i]);
    out[0] = '\0';
    if (text.len)
        cr_sha256_hex(text.data, text.len, out);
}

void cr_domain_say(struct domain_ctx *ctx, bool warning, const char *reason, char *message)
{
    struct cr_domain_plan *plan = ctx->plan;
    plan->events = cr_reallocarray(plan->events, plan->events_len + 1, sizeof *plan->events);
    plan->events[plan->events_len++] =
        (struct cr_domain_event){.warning = warning, .reason = reason, .message = message};
}

void cr_domain_requeue_at(struct domain_ctx *ctx, int64_t at_ms)
{
    enum { SOONEST_MS = 1000, LATEST_MS = 24 * 3600 * 1000 };
    int64_t after = at_ms - ctx->world->now_ms;
    if (after <= 0)
        return; /* its time has come, and what is to be done for it is in this plan */
    after = after < SOONEST_MS ? SOONEST_MS : after > LATEST_MS ? LATEST_MS : after;
    if (!ctx->plan->requeue_after_ms || after < ctx->plan->requeue_after_ms)
        ctx->plan->requeue_after_ms = after;
}
