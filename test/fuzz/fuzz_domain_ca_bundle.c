/* A webhook configuration, APIService or CustomResourceDefinition of somebody's: it cannot have the bundle, with words;
 * or it has it wherever it should after the patch, and nothing else of it has changed. */
#include "fuzz.h"

#include <string.h>

#include "base/strings.h"
#include "codec/yaml.h"
#include "trust/controller/domain_objects_internal.h"

/* RFC 7386. */
static void merge(struct cr_json *into, const struct cr_json *patch)
{
    for (const struct cr_json *m = cr_json_first(patch); m; m = cr_json_next(m)) {
        if (cr_json_is_object(m))
            merge(cr_json_object_in(into, cr_json_key(m)), m);
        else
            cr_json_set(into, cr_json_key(m), cr_json_copy(m));
    }
}

static void require_bundle(const struct cr_domain_target *target, const struct cr_json *object, const char *text)
{
    size_t len = 0;
    struct cr_entry *entries = cr_domain_ca_bundle_read(target, object, &len);
    require(len > 0);
    for (size_t i = 0; i < len; i++)
        require(entries[i].found && entries[i].bytes.len == strlen(text) &&
                memcmp(entries[i].bytes.data, text, strlen(text)) == 0);
    cr_domain_bundles_free(entries, len);
}

static void read_any(const struct cr_domain_target *target, const struct cr_json *object)
{
    size_t len = 0;
    struct cr_entry *entries = cr_domain_ca_bundle_read(target, object, &len);
    cr_domain_bundles_free(entries, len);
}

static struct cr_json *patched(const struct cr_domain_target *target, const struct cr_json *object, const char *text)
{
    CR_CLEANUP(cr_buf) struct cr_buf bundle = {0};
    cr_buf_puts(&bundle, text);
    CR_CLEANUP(cr_json) struct cr_json *patch = cr_domain_ca_bundle_patch(target, object, &bundle);
    struct cr_json *copy = cr_json_copy(object);
    merge(copy, patch);
    return copy;
}

static void check(const struct cr_domain_target *target, const struct cr_json *object)
{
    enum cr_trust_reason reason = CR_TRUST_FINE;
    read_any(target, object);
    cr_autofree char *words = cr_domain_ca_bundle_refuse(target, object, &reason);
    if (words) {
        require(*words && reason != CR_TRUST_FINE);
        return;
    }
    CR_CLEANUP(cr_json) struct cr_json *one = patched(target, object, "one");
    require_bundle(target, one, "one");
    CR_CLEANUP(cr_json) struct cr_json *two = patched(target, one, "two");
    require_bundle(target, two, "two");
    CR_CLEANUP(cr_json) struct cr_json *back = patched(target, two, "one");
    require(cr_json_equal(one, back));
    require(cr_json_equal(cr_json_get(object, "metadata"), cr_json_get(one, "metadata")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char name[] = "a";
    static const enum cr_trust_target_kind kinds[] = {CR_TARGET_VALIDATING_WEBHOOK, CR_TARGET_API_SERVICE,
                                                      CR_TARGET_CRD_CONVERSION};
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *object = cr_yaml_parse((const char *)data, size, &err);
    if (!object || !cr_json_is_object(object))
        return 0;
    for (size_t i = 0; i < cr_array_len(kinds); i++)
        check(&(struct cr_domain_target){.kind = kinds[i], .name = name}, object);
    check(&(struct cr_domain_target){.kind = CR_TARGET_MUTATING_WEBHOOK, .name = name, .key = name}, object);
    return 0;
}
