#include "policy/controller/trust_bundles.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "policy/controller/trust_sources.h"
#include "kube/object.h"

/* Targets are not watched: this is how soon a change by hand, or a consent, is seen. */
enum { LOOK_MS = 5 * 60 * 1000, REFUSED_LOOK_MS = 10 * 1000 };

/* One policy at one time. */
struct publish_context {
    const struct cr_actor *actor;
    const struct cr_gathered *gathered;
    const struct cr_policy *policy; /* the effective one */
    char *owner;
    enum cr_trust_reason reason; /* of the first thing that was refused */
    char *refused;               /* owned: that in words; NULL: nothing */
    struct cr_error failed;
};

char *cr_trust_bundles_owner(const struct cr_policy *policy)
{
    return cr_asprintf(CR_POLICY_KIND "/%s/%s", policy->ns, policy->name);
}

static void say(const struct publish_context *context, bool warning, const char *reason, const char *message)
{
    const struct cr_event event = {.api_version = CR_API_GROUP "/" CR_API_VERSION,
                                   .kind = CR_POLICY_KIND,
                                   .ns = context->policy->ns,
                                   .name = context->policy->name,
                                   .uid = context->policy->uid,
                                   .warning = warning,
                                   .reason = reason,
                                   .message = message};
    cr_recorder_emit(context->actor->recorder, &event);
}

/* Changes nothing, and emits an Event that says why. Returns false, for the caller to return. */
static bool refuse(struct publish_context *context, enum cr_trust_reason reason, const struct cr_trust_about *about)
{
    cr_autofree char *text = cr_trust_problem_text(reason, about);
    cr_autofree char *message = cr_asprintf("spec.trust: %s", text);
    say(context, true, "TrustNotPublished", message);
    if (context->refused)
        return false;
    context->reason = reason;
    context->refused = cr_steal(&message);
    return false;
}

/* Errors that time or another attempt may heal are tried again, others are reported. Returns false. */
static bool fail(struct publish_context *context, const struct cr_error *err)
{
    const struct cr_trust_about about = {.detail = err->text, .component = "trust-domains"};
    if (err->kind == CR_ERR_FORBIDDEN || err->kind == CR_ERR_INVALID)
        return refuse(context, err->kind == CR_ERR_FORBIDDEN ? CR_TRUST_FORBIDDEN : CR_TRUST_INVALID, &about);
    if (context->failed.kind == CR_ERR_NONE)
        context->failed = *err;
    return false;
}

/* --- sources --- */

/* What is on record about the Secret; NULL: nothing is settled. */
static const struct cr_material *settled_of(const struct cr_policy_status *status, const char *name)
{
    for (size_t i = 0; i < status->secrets_len; i++) {
        const struct cr_secret_status *known = &status->secrets[i];
        if (cr_streq(known->name, name) && known->has_settled)
            return &known->settled;
    }
    return NULL;
}

/* A Secret that was settled and cannot be read now would lose its CAs. */
static bool check_secret(struct publish_context *context, size_t i)
{
    const struct cr_world_secret *seen = &context->gathered->world.secrets[i];
    const char *name = context->policy->secrets[i].name;
    const struct cr_material *settled = settled_of(&context->gathered->status, name);
    if (seen->material || !settled || !cr_material_has_trust(settled))
        return true;
    cr_autofree char *object = cr_asprintf("Secret %s", name);
    return refuse(context, CR_TRUST_SOURCE_UNUSABLE,
                  &(struct cr_trust_about){
                      .object = object, .detail = seen->found ? cr_or_empty(seen->problem_text) : "it is not there"});
}

/* Only what was looked at: what a bundle may lose follows from the leaves that this version is known to have. The cache
 * may be behind. */
static bool read_secret(struct publish_context *context, size_t i, struct cr_trust_sources *sources)
{
    const struct cr_policy_secret *names = &context->policy->secrets[i];
    struct cr_error err = {0};
    CR_CLEANUP(cr_secret_json)
    struct cr_json *secret =
        cr_client_get(context->actor->client, &cr_res_secrets, context->policy->ns, names->name, &err);
    if (!secret) {
        cr_error_wrap(&err, "cannot read Secret %s", names->name);
        return fail(context, &err);
    }
    if (!cr_streq(cr_obj_resource_version(secret), context->gathered->world.secrets[i].resource_version)) {
        (void)cr_error_set(&err, CR_ERR_CONFLICT, "Secret %s has just changed", names->name);
        return fail(context, &err);
    }
    CR_CLEANUP(cr_entry) struct cr_entry trust;
    CR_CLEANUP(cr_entry) struct cr_entry chain;
    cr_entry_read(secret, true, names->trust, &trust);
    cr_entry_read(secret, true, names->certificate, &chain);
    cr_trust_sources_add(sources, names->name, &trust, &chain);
    return true;
}

static bool read_secrets(struct publish_context *context, struct cr_trust_sources *sources)
{
    for (size_t i = 0; i < context->policy->secrets_len; i++)
        if (!check_secret(context, i) ||
            (context->gathered->world.secrets[i].material && !read_secret(context, i, sources)))
            return false;
    return sources->current.len ||
           refuse(context, CR_TRUST_NO_CA,
                  &(struct cr_trust_about){
                      .detail = "none of the Secrets has a CA in the key that keys.trust names (ca.crt)"});
}

/* --- targets --- */

static const struct cr_resource *resource_of(const struct cr_policy_trust_target *target)
{
    return target->is_secret ? &cr_res_secrets : &cr_res_configmaps;
}

static bool refuse_target(struct publish_context *context, const struct cr_policy_trust_target *target,
                          enum cr_trust_reason reason, const char *owner)
{
    cr_autofree char *object = cr_asprintf("%s %s", resource_of(target)->kind, target->name);
    return refuse(
        context, reason,
        &(struct cr_trust_about){.object = object, .owner = owner, .wanted = context->owner, .detail = "this policy"});
}

static bool check_owner(struct publish_context *context, const struct cr_policy_trust_target *target,
                        const struct cr_json *held)
{
    const char *owner = cr_obj_annotation(held, CR_DOMAIN_ANNOTATION);
    if (cr_json_bool_at(held, false, "immutable"))
        return refuse_target(context, target, CR_TRUST_IMMUTABLE, owner);
    return cr_streq(owner, context->owner) ||
           refuse_target(context, target, owner ? CR_TRUST_OTHER_DOMAIN : CR_TRUST_NOT_OURS, owner);
}

/* A selector may bring the target among the Secrets: its CAs would count as new ones for ever. */
static bool check_no_source(struct publish_context *context, const struct cr_policy_trust_target *target)
{
    return !target->is_secret || !cr_policy_secret_of(context->policy, target->name) ||
           refuse_target(context, target, CR_TRUST_TARGET_IS_SOURCE, NULL);
}

static bool is_held(const struct cr_entry *entry, const struct cr_bundle *bundle)
{
    return entry->bytes.len == strlen(bundle->pem) && strcmp(cr_buf_text(&entry->bytes), bundle->pem) == 0;
}

/* An entry is text or binary, never both: a binary entry is removed. */
static void put_config(const struct cr_json *held, struct cr_json *body, const char *key, const char *text)
{
    cr_json_set_string(cr_json_object_in(body, "data"), key, text);
    if (cr_json_at(held, "binaryData", key))
        cr_json_set(cr_json_object_in(body, "binaryData"), key, cr_json_new_null());
}

static struct cr_json *body_of(const struct publish_context *context, const struct cr_policy_trust_target *target,
                               const struct cr_json *held, const struct cr_bundle *bundle)
{
    struct cr_json *body = cr_json_new_object();
    struct cr_json *metadata = cr_json_object_in(body, "metadata");
    cr_json_set_string(cr_json_object_in(metadata, "labels"), CR_MANAGED_BY_LABEL, "certroll");
    cr_json_set_string(cr_json_object_in(metadata, "annotations"), CR_DOMAIN_ANNOTATION, context->owner);
    if (target->is_secret)
        cr_entry_put(cr_json_object_in(body, "data"), target->key, bundle->pem, strlen(bundle->pem));
    else
        put_config(held, body, target->key, bundle->pem);
    return body;
}

/* What was read is the precondition: created only where there is none, patched only as it was. */
static bool send(const struct publish_context *context, const struct cr_policy_trust_target *target,
                 const struct cr_json *held, struct cr_json *body, struct cr_error *err)
{
    const struct cr_resource *resource = resource_of(target);
    struct cr_json *metadata = cr_json_object_in(body, "metadata");
    size_t total = cr_entry_total(held, body, target->is_secret);
    if (total > CR_BUNDLE_BYTES_MAX)
        return cr_error_set(err, CR_ERR_INVALID, "it would have %zu bytes, more than the %d that Kubernetes takes",
                            total, CR_BUNDLE_BYTES_MAX);
    CR_CLEANUP(cr_secret_json) struct cr_json *written = NULL;
    if (!held) {
        cr_resource_stamp(resource, body);
        cr_json_set_string(metadata, "name", target->name);
        written = cr_client_create(context->actor->client, resource, context->policy->ns, body, err);
        return written != NULL;
    }
    cr_json_set_string(metadata, "uid", cr_obj_uid(held));
    cr_json_set_string(metadata, "resourceVersion", cr_obj_resource_version(held));
    written =
        cr_client_merge_patch(context->actor->client, resource, context->policy->ns, target->name, NULL, body, err);
    return written != NULL;
}

static void warn_of_gaps(const struct publish_context *context, const struct cr_policy_trust_target *target,
                         const struct cr_strvec *gaps)
{
    if (!gaps->len)
        return;
    cr_autofree char *names = cr_strvec_join(gaps, ", ");
    cr_autofree char *message =
        cr_asprintf("%.500s: the certificate was changed together with its CA, without an overlap: nothing in %s %s "
                    "verified it so far. Whoever has not read the new bundle refuses it; a TrustDomain publishes trust "
                    "first",
                    names, resource_of(target)->kind, target->name);
    say(context, true, "TrustReplaced", message);
}

/* It is published anyway: this policy does not decide what the leaves are. */
static void warn_of_issuer(const struct publish_context *context, const struct cr_policy_trust_target *target,
                           const struct cr_bundle *bundle, const struct cr_pem_input *previous)
{
    cr_autofree char *subject = cr_trust_sources_needing(bundle, previous);
    if (!subject)
        return;
    cr_autofree char *text = cr_trust_problem_text(CR_TRUST_NEEDS_ISSUER, &(struct cr_trust_about){.ca = subject});
    cr_autofree char *message = cr_asprintf("%s %s: %s", resource_of(target)->kind, target->name, text);
    say(context, true, cr_trust_reason_name(CR_TRUST_NEEDS_ISSUER), message);
}

static bool write_target(struct publish_context *context, const struct cr_policy_trust_target *target,
                         const struct cr_json *held, const struct cr_bundle *bundle,
                         const struct cr_pem_input *previous)
{
    struct cr_error err = {0};
    warn_of_gaps(context, target, &bundle->gaps);
    warn_of_issuer(context, target, bundle, previous);
    CR_CLEANUP(cr_secret_json) struct cr_json *body = body_of(context, target, held, bundle);
    if (!send(context, target, held, body, &err)) {
        cr_error_wrap(&err, "cannot %s %s %s", held ? "patch" : "create", resource_of(target)->kind, target->name);
        return fail(context, &err);
    }
    cr_autofree char *message = cr_asprintf("%s %s has %zu CAs now, %zu of them of before", resource_of(target)->kind,
                                            target->name, bundle->len, bundle->previous);
    say(context, false, "TrustPublished", message);
    return true;
}

static bool read_target(struct publish_context *context, const struct cr_policy_trust_target *target,
                        struct cr_json **held)
{
    struct cr_error err = {0};
    *held = cr_client_get(context->actor->client, resource_of(target), context->policy->ns, target->name, &err);
    if (*held || err.kind == CR_ERR_NOT_FOUND)
        return true;
    cr_error_wrap(&err, "cannot read %s %s", resource_of(target)->kind, target->name);
    return fail(context, &err);
}

/* Whether the content of a Secret has not reached all consumers: their pods may show any leaf that was there since. */
static bool is_moving(const struct cr_gathered *gathered, const struct cr_policy_status *status, size_t i)
{
    const struct cr_material *now = gathered->world.secrets[i].material;
    const struct cr_material *settled = settled_of(status, gathered->world.policy->secrets[i].name);
    char trust[2][CR_SHA256_HEX] = {"", ""};
    if (!now || !settled)
        return false;
    cr_material_trust_digest(now, trust[0]);
    cr_material_trust_digest(settled, trust[1]);
    return strcmp(now->leaf, settled->leaf) != 0 || strcmp(trust[0], trust[1]) != 0;
}

/* A bundle may always grow; it shrinks only while no change is under way. */
static size_t retained(const struct publish_context *context)
{
    for (size_t i = 0; i < context->policy->secrets_len; i++)
        if (is_moving(context->gathered, &context->gathered->status, i))
            return CR_BUNDLE_CAS_MAX;
    return (size_t)context->policy->trust.retain_previous;
}

static bool publish_target(struct publish_context *context, const struct cr_policy_trust_target *target,
                           const struct cr_trust_sources *sources)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_secret_json) struct cr_json *held = NULL;
    if (!check_no_source(context, target) || !read_target(context, target, &held) ||
        (held && !check_owner(context, target, held)))
        return false;
    CR_CLEANUP(cr_entry) struct cr_entry entry;
    CR_CLEANUP(cr_bundle) struct cr_bundle bundle = {0};
    cr_entry_read(held, target->is_secret, target->key, &entry);
    const struct cr_pem_input previous = cr_entry_pem(&entry);
    if (!cr_trust_sources_make(sources, &previous, retained(context), cr_clock_wall_ms(), &bundle, &err)) {
        cr_error_wrap(&err, "no bundle can be made for %s %s", resource_of(target)->kind, target->name);
        enum cr_trust_reason reason = cr_trust_reason_of_bundle(bundle.proof);
        return reason ? refuse(context, reason, &(struct cr_trust_about){.detail = err.text}) : fail(context, &err);
    }
    if (!is_held(&entry, &bundle) && !write_target(context, target, held, &bundle, &previous))
        return false;
    return bundle.proof == CR_BUNDLE_PROVED || refuse_target(context, target, CR_TRUST_BUNDLE_TOO_COSTLY, NULL);
}

static void publish(struct publish_context *context)
{
    CR_CLEANUP(cr_trust_sources) struct cr_trust_sources sources = {0};
    if (!read_secrets(context, &sources))
        return;
    for (size_t i = 0; i < context->policy->trust.targets_len; i++)
        (void)publish_target(context, &context->policy->trust.targets[i],
                             &sources); /* each, whatever becomes of others */
}

/* --- when --- */

/* Digests all inputs of a bundle, except the targets themselves. */
static void digest(const struct cr_gathered *gathered, const struct cr_policy_status *status, char out[CR_SHA256_HEX])
{
    const struct cr_policy *policy = gathered->world.policy;
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    cr_buf_printf(&text, "%s %lld\n", policy->uid, (long long)policy->generation);
    for (size_t i = 0; i < policy->secrets_len; i++) {
        const struct cr_world_secret *secret = &gathered->world.secrets[i];
        char trust[CR_SHA256_HEX] = "";
        if (secret->material)
            cr_material_trust_digest(secret->material, trust);
        cr_buf_printf(&text, "%s %d %d %s %s %d\n", policy->secrets[i].name, secret->found, secret->problem,
                      secret->material ? secret->material->leaf : "", trust, is_moving(gathered, status, i));
    }
    cr_sha256_hex(cr_buf_text(&text), text.len, out);
}

/* A consent or a right can come at any time. The effect of a bundle on leaves changes with the sources alone, and
 * checking it costs signatures. */
static int64_t pause_ms(enum cr_trust_reason refused)
{
    bool soon = refused && refused != CR_TRUST_WOULD_CUT_OFF && refused != CR_TRUST_BUNDLE_TOO_COSTLY;
    return soon ? REFUSED_LOOK_MS : LOOK_MS;
}

/* How long until the next look; 0: now. */
static int64_t wait_left_ms(const struct cr_note *note, const char *now)
{
    if (!cr_streq(note->about, now))
        return 0;
    int64_t due = note->at_ms + pause_ms((enum cr_trust_reason)note->reason) - cr_clock_monotonic_ms();
    return due > 0 ? due : 0;
}

static bool may_publish(const struct cr_policy *policy)
{
    return policy->trust.targets_len && !policy->suspend && policy->mode == CR_MODE_ENFORCE;
}

static char *note_key(const struct cr_policy *policy)
{
    return cr_asprintf("%s/%s/trust", policy->ns, policy->name);
}

bool cr_trust_bundles_due(const struct cr_actor *actor, const struct cr_gathered *gathered,
                          const struct cr_policy_status *status)
{
    char now[CR_SHA256_HEX];
    cr_autofree char *key = note_key(gathered->world.policy);
    CR_CLEANUP(cr_note) struct cr_note note = cr_memory_note(actor->memory, key);
    digest(gathered, status, now);
    return may_publish(gathered->world.policy) && wait_left_ms(&note, now) == 0;
}

static void show_plan(struct cr_gathered *gathered, enum cr_trust_reason reason, const char *refused)
{
    free(gathered->trust_refused);
    gathered->trust_refused = cr_strdup_or_null(refused);
    gathered->world.trust_refused = reason;
    gathered->world.trust_refused_text = gathered->trust_refused;
}

bool cr_trust_bundles_publish(const struct cr_actor *actor, struct cr_gathered *gathered, int64_t *look_again_ms,
                              struct cr_error *err)
{
    const struct cr_policy *policy = gathered->world.policy;
    *look_again_ms = 0;
    if (!may_publish(policy))
        return true;
    char now[CR_SHA256_HEX];
    cr_autofree char *key = note_key(policy);
    CR_CLEANUP(cr_note) struct cr_note note = cr_memory_note(actor->memory, key);
    digest(gathered, &gathered->status, now);
    show_plan(gathered, (enum cr_trust_reason)note.reason, note.text);
    *look_again_ms = wait_left_ms(&note, now);
    if (*look_again_ms)
        return true;
    struct publish_context context = {.actor = actor, .gathered = gathered, .policy = policy};
    cr_autofree char *owner = cr_trust_bundles_owner(policy);
    context.owner = owner;
    publish(&context);
    cr_autofree char *refused = context.refused;
    if (context.failed.kind != CR_ERR_NONE) {
        *err = context.failed;
        return false;
    }
    cr_memory_take_note(actor->memory, key,
                        &(struct cr_note_input){
                            .at_ms = cr_clock_monotonic_ms(), .reason = context.reason, .about = now, .text = refused});
    show_plan(gathered, context.reason, refused);
    *look_again_ms = pause_ms(context.reason);
    return true;
}
