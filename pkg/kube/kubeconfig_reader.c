#include "kube/kubeconfig_reader.h"

#include <string.h>

#include "base/alloc.h"

bool cr_kubeconfig_invalid(const struct cr_kubeconfig_reader *in, const char *field, const char *problem)
{
    return cr_error_set(in->err, CR_ERR_INVALID, "%s: %s: %s %s", in->path, in->what, field, problem);
}

bool cr_kubeconfig_text(const struct cr_kubeconfig_reader *in, const struct cr_json *object, const char *field,
                        const char **text)
{
    const struct cr_json *value = cr_json_get(object, field);
    *text = cr_json_string(value);
    if (value && !*text && !cr_json_is_null(value))
        return cr_kubeconfig_invalid(in, field, "is no text (put it in quotes)");
    if (*text && !**text)
        *text = NULL;
    return true;
}

bool cr_kubeconfig_bool(const struct cr_kubeconfig_reader *in, const struct cr_json *object, const char *field,
                        bool *value)
{
    const struct cr_json *found = cr_json_get(object, field);
    if (found && !cr_json_is_bool(found) && !cr_json_is_null(found))
        return cr_kubeconfig_invalid(in, field, "is neither true nor false");
    *value = cr_json_bool(found, false);
    return true;
}

bool cr_kubeconfig_copy(const struct cr_kubeconfig_reader *in, const struct cr_json *object, const char *field,
                        char **slot)
{
    const char *text = NULL;
    if (!cr_kubeconfig_text(in, object, field, &text))
        return false;
    *slot = cr_strdup_or_null(text);
    return true;
}

char *cr_kubeconfig_resolve(const struct cr_kubeconfig_reader *in, const char *file)
{
    const char *slash = strrchr(in->path, '/');
    if (file[0] == '/' || !slash)
        return cr_strdup(file);
    return cr_asprintf("%.*s/%s", (int)(slash - in->path), in->path, file);
}
