/* caBundle of webhooks, APIServices and CRDs: whether it may be written, and how, without touching what stands
 * beside it. */
#include "base/alloc.h"
#include "base/strings.h"
#include "codec/base64.h"
#include "trust/controller/domain_objects_internal.h"
#include "kube/object.h"

static bool is_webhook(const struct cr_domain_target *target)
{
    return target->kind == CR_TARGET_VALIDATING_WEBHOOK || target->kind == CR_TARGET_MUTATING_WEBHOOK;
}

/* What is no object can have no caBundle. */
static bool is_meant(const struct cr_domain_target *target, const struct cr_json *webhook)
{
    return cr_json_is_object(webhook) && (!target->key || cr_streq(cr_json_string_at(webhook, "name"), target->key));
}

/* What has a caBundle in the two other kinds. */
static const struct cr_json *holder_of(const struct cr_domain_target *target, const struct cr_json *object)
{
    return target->kind == CR_TARGET_API_SERVICE ? cr_json_get(object, "spec")
                                                 : cr_json_at(object, "spec", "conversion", "webhook", "clientConfig");
}

/* --- whether it may be written --- */

/* cert-manager's cainjector would write its own bundle over ours, and we ours over its, for ever. */
static char *refuse_other_writer(const struct cr_json *object)
{
    const struct cr_json *annotations = cr_json_at(object, "metadata", "annotations");
    for (const struct cr_json *a = cr_json_first(annotations); a; a = cr_json_next(a))
        if (cr_starts_with(cr_json_key(a), "cert-manager.io/inject-"))
            return cr_asprintf("cert-manager writes its caBundle as well: remove the annotation %s", cr_json_key(a));
    return NULL;
}

static char *refuse_webhooks(const struct cr_domain_target *target, const struct cr_json *object)
{
    const struct cr_json *webhooks = cr_json_get(object, "webhooks");
    for (const struct cr_json *w = cr_json_first(webhooks); w; w = cr_json_next(w))
        if (is_meant(target, w))
            return NULL;
    return target->key ? cr_asprintf("it has no webhook '%s'", target->key) : cr_strdup("it has no webhooks");
}

static char *refuse_api_service(const struct cr_json *object)
{
    if (cr_json_bool_at(object, false, "spec", "insecureSkipTLSVerify"))
        return cr_strdup("it has insecureSkipTLSVerify, beside which no caBundle may stand: remove that first");
    if (!cr_json_is_object(cr_json_at(object, "spec", "service")))
        return cr_strdup("it has no service: the API server serves it itself, without TLS between");
    return NULL;
}

static char *refuse_kind(const struct cr_domain_target *target, const struct cr_json *object)
{
    if (is_webhook(target))
        return refuse_webhooks(target, object);
    if (target->kind == CR_TARGET_API_SERVICE)
        return refuse_api_service(object);
    return cr_json_is_object(holder_of(target, object)) ? NULL : cr_strdup("its versions are converted by no webhook");
}

char *cr_domain_ca_bundle_refuse(const struct cr_domain_target *target, const struct cr_json *object,
                                 enum cr_trust_reason *reason)
{
    const char *kind = cr_trust_target_kind_name(target->kind);
    if (!object) {
        *reason = CR_TRUST_NOT_FOUND;
        return cr_asprintf("%s %s is not there: its owner makes it, with its caBundle empty", kind, target->name);
    }
    *reason = CR_TRUST_OTHER_WRITER;
    cr_autofree char *words = refuse_other_writer(object);
    if (!words) {
        *reason = CR_TRUST_NO_CA_BUNDLE;
        words = refuse_kind(target, object);
    }
    return words ? cr_asprintf("%s %s cannot have the bundle: %s", kind, target->name, words) : NULL;
}

/* --- read --- */

static void read_one(const struct cr_json *holder, struct cr_entry **entries, size_t *len)
{
    const char *text = cr_json_string_at(holder, "caBundle");
    *entries = cr_reallocarray(*entries, *len + 1, sizeof **entries);
    cr_entry_decode(text && *text ? text : NULL, &(*entries)[(*len)++]);
}

struct cr_entry *cr_domain_ca_bundle_read(const struct cr_domain_target *target, const struct cr_json *object,
                                          size_t *len)
{
    struct cr_entry *entries = NULL;
    *len = 0;
    if (!is_webhook(target)) {
        read_one(holder_of(target, object), &entries, len);
        return entries;
    }
    const struct cr_json *webhooks = cr_json_get(object, "webhooks");
    for (const struct cr_json *w = cr_json_first(webhooks); w; w = cr_json_next(w))
        if (is_meant(target, w))
            read_one(cr_json_get(w, "clientConfig"), &entries, len);
    return entries;
}

/* --- written --- */

/* A merge patch replaces a list as a whole (RFC 7386): it is the one that was read, with nothing but the caBundle
 * changed, and the resourceVersion is a precondition. Server-side apply could name the webhook alone; but a field that
 * is applied keeps its webhook alive, cut down to that field and so invalid, when the manager that applied the other
 * fields leaves the webhook out. */
static struct cr_json *webhooks_with(const struct cr_domain_target *target, const struct cr_json *object,
                                     const char *base64)
{
    struct cr_json *webhooks = cr_json_new_array();
    const struct cr_json *now = cr_json_get(object, "webhooks");
    for (const struct cr_json *w = cr_json_first(now); w; w = cr_json_next(w)) {
        struct cr_json *webhook = cr_json_add(webhooks, cr_json_copy(w));
        if (is_meant(target, w))
            cr_json_set_string(cr_json_object_in(webhook, "clientConfig"), "caBundle", base64);
    }
    return webhooks;
}

struct cr_json *cr_domain_ca_bundle_patch(const struct cr_domain_target *target, const struct cr_json *object,
                                          const struct cr_buf *bundle)
{
    struct cr_json *patch = cr_json_new_object();
    cr_autofree char *base64 = cr_base64_encode(bundle->data, bundle->len);
    if (is_webhook(target)) {
        cr_json_set(patch, "webhooks", webhooks_with(target, object, base64));
        return patch;
    }
    struct cr_json *holder = cr_json_object_in(patch, "spec");
    static const char *const path[] = {"conversion", "webhook", "clientConfig"};
    for (size_t i = 0; target->kind == CR_TARGET_CRD_CONVERSION && i < cr_array_len(path); i++)
        holder = cr_json_object_in(holder, path[i]);
    cr_json_set_string(holder, "caBundle", base64);
    return patch;
}
