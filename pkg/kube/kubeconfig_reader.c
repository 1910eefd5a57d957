#include "kube/kubeconfig_reader.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "codec/base64.h"

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

char *cr_kubeconfig_decode(const struct cr_kubeconfig_reader *in, const char *field, const char *base64)
{
    CR_CLEANUP(cr_buf) struct cr_buf out = {.secret = true};
    if (!cr_base64_decode(base64, strlen(base64), &out, in->err)) {
        cr_error_wrap(in->err, "%s: %s: %s", in->path, in->what, field);
        return NULL;
    }
    if (!out.len || memchr(out.data, '\0', out.len)) {
        cr_kubeconfig_invalid(in, field, "holds no PEM text");
        return NULL;
    }
    return cr_buf_steal(&out);
}

/* Borrowed; NULL: there is none. */
static const struct cr_json *entry(const struct cr_json *file, const char *list, const char *name, const char *kind)
{
    const struct cr_json *entries = cr_json_get(file, list);
    if (!cr_json_is_array(entries))
        return NULL;
    for (const struct cr_json *e = cr_json_first(entries); e; e = cr_json_next(e))
        if (cr_streq(cr_json_string_at(e, "name"), name)) {
            const struct cr_json *body = cr_json_get(e, kind);
            return cr_json_is_object(body) ? body : NULL;
        }
    return NULL;
}

const struct cr_json *cr_kubeconfig_context(const char *path, const struct cr_json *file, const char *wanted,
                                            const char **name, struct cr_error *err)
{
    *name = wanted ? wanted : cr_json_string_at(file, "current-context");
    if (!*name || !**name) {
        cr_error_set(err, CR_ERR_INVALID, "%s: no context is given and there is no current-context", path);
        return NULL;
    }
    const struct cr_json *context = entry(file, "contexts", *name, "context");
    if (!context)
        cr_error_set(err, CR_ERR_INVALID, "%s: context '%s' is not in contexts", path, *name);
    return context;
}

const struct cr_json *cr_kubeconfig_part(const char *path, const struct cr_json *file, const struct cr_json *context,
                                         const char *kind, struct cr_error *err)
{
    const char *name = cr_or_empty(cr_json_string_at(context, kind));
    cr_autofree char *list = cr_asprintf("%ss", kind);
    const struct cr_json *body = entry(file, list, name, kind);
    if (!body)
        cr_error_set(err, CR_ERR_INVALID, "%s: the context names %s '%s', which is not in %s", path, kind, name, list);
    return body;
}
