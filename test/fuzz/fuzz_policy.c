/* A CertRotationPolicy from anybody: decoded, or refused with words. The text is YAML, which JSON is too; one without
 * "spec" is a spec. */
#include "fuzz.h"

#include <string.h>

#include "api/policy.h"
#include "codec/yaml.h"

/* Owned, with what the API server gives each object. */
static struct cr_json *policy_of(const struct cr_json *spec)
{
    struct cr_error err = {0};
    static const char text[] = "metadata: {name: demo, namespace: ns, uid: u, resourceVersion: '1', generation: 1}";
    struct cr_json *object = cr_yaml_parse(text, sizeof text - 1, &err);
    require(object);
    cr_json_set(object, "spec", cr_json_copy(spec));
    return object;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *text = cr_yaml_parse((const char *)data, size, &err);
    if (!text)
        return 0;
    CR_CLEANUP(cr_json) struct cr_json *object = cr_json_get(text, "spec") ? cr_json_copy(text) : policy_of(text);
    CR_CLEANUP(cr_policy) struct cr_policy *policy = cr_policy_decode(object, &err);
    require(policy || (err.kind == CR_ERR_INVALID && err.text[0]));
    return 0;
}
