#include "controlplane/agent/kubelet_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "codec/yaml.h"

void cr_kubelet_layers_dispose(struct cr_kubelet_layers *layers)
{
    for (size_t i = 0; i < layers->len; i++) {
        free(layers->items[i].folder);
        cr_json_free_secret(layers->items[i].doc); /* staticPodURLHeader */
    }
    free(layers->items);
    *layers = (struct cr_kubelet_layers){0};
}

/* Takes folder. The kubelet refuses a file that is empty or of another kind, a part as well as the whole. */
static bool add(const struct cr_kubelet_text *text, char *folder, struct cr_kubelet_layers *out, struct cr_error *err)
{
    struct cr_kubelet_layer *layer = &out->items[out->len++];
    *layer = (struct cr_kubelet_layer){
        .path = text->path, .folder = folder, .doc = cr_yaml_parse(text->text, text->len, err)};
    if (!layer->doc)
        return cr_error_wrap(err, "%s", text->path);
    if (!cr_streq(cr_json_string_at(layer->doc, "kind"), "KubeletConfiguration") ||
        !cr_streq(cr_json_string_at(layer->doc, "apiVersion"), "kubelet.config.k8s.io/v1beta1"))
        return cr_error_set(err, CR_ERR_INVALID, "%s is no KubeletConfiguration of kubelet.config.k8s.io/v1beta1",
                            text->path);
    return true;
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash != path ? cr_strndup(path, (size_t)(slash - path)) : cr_strdup("/");
}

bool cr_kubelet_layers_read(const struct cr_kubelet_texts *texts, const char *folder, struct cr_kubelet_layers *out,
                            struct cr_error *err)
{
    *out = (struct cr_kubelet_layers){0};
    out->items = cr_reallocarray(NULL, texts->parts_len + 1, sizeof *out->items);
    bool read = !texts->config || add(texts->config, folder_of(texts->config->path), out, err);
    for (size_t i = 0; read && i < texts->parts_len; i++)
        read = add(&texts->parts[i], cr_strdup(folder), out, err);
    if (!read)
        cr_kubelet_layers_dispose(out);
    return read;
}

bool cr_kubelet_field_invalid(const struct cr_kubelet_field *field, const char *problem, struct cr_error *err)
{
    return cr_error_set(err, CR_ERR_INVALID, "%s: %s %s", field->layer->path, field->name, problem);
}

/* What one layer makes of the field: leaves it alone where it says nothing, takes it away with null, also with a null
 * above it. */
static bool apply(const struct cr_kubelet_layer *layer, struct cr_kubelet_field *field, struct cr_error *err)
{
    const struct cr_json *at = layer->doc;
    for (const char *p = field->name; *p; p += strspn(p, ".")) {
        size_t len = strcspn(p, ".");
        cr_autofree char *key = cr_strndup(p, len);
        if (!cr_json_is_object(at))
            return cr_error_set(err, CR_ERR_INVALID, "%s: what is above %s in %s is no object", layer->path, key,
                                field->name);
        at = cr_json_get(at, key);
        if (!at)
            return true;
        if (cr_json_is_null(at)) {
            field->value = NULL;
            return true;
        }
        p += len;
    }
    field->value = at;
    field->layer = layer;
    return true;
}

bool cr_kubelet_layers_find(const struct cr_kubelet_layers *layers, const char *name, struct cr_kubelet_field *out,
                            struct cr_error *err)
{
    *out = (struct cr_kubelet_field){.name = name};
    for (size_t i = 0; i < layers->len; i++)
        if (!apply(&layers->items[i], out, err))
            return false;
    return true;
}

static bool merge_gates(const struct cr_kubelet_layer *layer, const struct cr_json *gates, struct cr_json *out,
                        struct cr_error *err)
{
    const struct cr_kubelet_field field = {.layer = layer, .name = "featureGates"};
    if (!cr_json_is_object(gates))
        return cr_kubelet_field_invalid(&field, "is no object", err);
    for (const struct cr_json *gate = cr_json_first(gates); gate; gate = cr_json_next(gate)) {
        if (cr_json_is_null(gate))
            cr_json_remove(out, cr_json_key(gate));
        else if (cr_json_is_bool(gate))
            cr_json_set_bool(out, cr_json_key(gate), cr_json_bool(gate, false));
        else
            return cr_kubelet_field_invalid(&field, "has a gate that is neither true nor false", err);
    }
    return true;
}

bool cr_kubelet_layers_gates(const struct cr_kubelet_layers *layers, struct cr_json *out, struct cr_error *err)
{
    for (size_t i = 0; i < layers->len; i++) {
        const struct cr_json *gates = cr_json_get(layers->items[i].doc, "featureGates");
        if (cr_json_is_null(gates))
            while (cr_json_first(out))
                cr_json_remove(out, cr_json_key(cr_json_first(out)));
        else if (gates && !merge_gates(&layers->items[i], gates, out, err))
            return false;
    }
    return true;
}
