#include "controlplane/agent/manifest_text.h"

#include <string.h>

#include "base/strings.h"
#include "codec/yaml.h"

static bool begins_with_brace(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len && strchr(" \t\r\n\v\f", text[i]) && text[i])
        i++;
    return i < len && text[i] == '{';
}

static bool is_pod(const struct cr_json *pod, struct cr_error *err)
{
    const char *kind = cr_json_string_at(pod, "kind");
    const char *version = cr_json_string_at(pod, "apiVersion");
    if (!cr_json_is_object(pod) || !kind)
        return cr_error_set(err, CR_ERR_INVALID, "the manifest is no object with a kind");
    if (!cr_streq(kind, "Pod") || !cr_streq(version, "v1"))
        return cr_error_set(err, CR_ERR_INVALID, "the manifest is a %.64s of \"%.64s\", not a Pod of \"v1\"", kind,
                            cr_or_empty(version));
    const char *name = cr_json_string_at(pod, "metadata", "name");
    if (!name || !*name)
        return cr_error_set(err, CR_ERR_INVALID, "the manifest's Pod has no metadata.name");
    return true;
}

/* JSON is read as both: if a key comes twice, Go takes the last, we take the first, and YAML none. */
static struct cr_json *read_as_json(const char *text, size_t len, struct cr_error *err)
{
    CR_CLEANUP(cr_json) struct cr_json *json = cr_json_parse(text, len, err);
    CR_CLEANUP(cr_json) struct cr_json *yaml = json ? cr_yaml_parse(text, len, err) : NULL;
    if (yaml && !cr_json_equal(json, yaml)) {
        cr_error_set(err, CR_ERR_INVALID, "it means one thing as JSON and another as YAML");
        return NULL;
    }
    return yaml ? cr_steal(&json) : NULL;
}

struct cr_json *cr_manifest_parse(const char *text, size_t len, struct cr_error *err)
{
    bool json = len <= CR_YAML_MAX_BYTES && begins_with_brace(text, len);
    CR_CLEANUP(cr_json) struct cr_json *pod = json ? read_as_json(text, len, err) : cr_yaml_parse(text, len, err);
    if (!pod) {
        cr_error_wrap(err, "the manifest cannot be read");
        return NULL;
    }
    return is_pod(pod, err) ? cr_steal(&pod) : NULL;
}
