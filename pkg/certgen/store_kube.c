/* Secrets of a cluster: a GET and a PATCH each, both by name, and a create for what is not there. */
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "certgen/store_internal.h"
#include "codec/base64.h"
#include "kube/object.h"

#define ROTATION_ANNOTATION "certroll.dev/certgen-rotation"

static char *title(const struct cr_certgen_store *store, size_t secret)
{
    return cr_asprintf("Secret %s/%s", store->set->ns, store->set->secrets[secret].name);
}

/* --- reading --- */

/* The writer of the object whose writes would conflict with ours. Owned; NULL: there is none. */
static char *owner_of(const struct cr_json *object)
{
    const char *domain = cr_obj_annotation(object, "certroll.dev/trust-domain");
    if (domain)
        return cr_asprintf("the TrustDomain %s (annotation certroll.dev/trust-domain)", domain);
    const char *certificate = cr_obj_annotation(object, "cert-manager.io/certificate-name");
    if (certificate)
        return cr_asprintf("cert-manager's Certificate %s (annotation cert-manager.io/certificate-name)", certificate);
    const struct cr_json *controller = cr_obj_controller(object);
    return controller ? cr_asprintf("%s %s, its controller", cr_or_empty(cr_json_string_at(controller, "kind")),
                                    cr_or_empty(cr_json_string_at(controller, "name")))
                      : NULL;
}

static bool decode(const struct cr_json *object, const char *entry, struct cr_buf *out, struct cr_error *err)
{
    const char *text = cr_json_string_at(object, "data", entry);
    return !text || cr_base64_decode(text, strlen(text), out, err) || cr_error_wrap(err, "%s", entry);
}

static bool read_object(const struct cr_certgen_secret *secret, const struct cr_json *object,
                        struct cr_certgen_found *out, struct cr_error *err)
{
    out->found = true;
    out->version = cr_strdup_or_null(cr_obj_resource_version(object));
    out->rotation = cr_strdup_or_null(cr_obj_annotation(object, ROTATION_ANNOTATION));
    out->owner = owner_of(object);
    const char *opaque = secret->opaque_key ? cr_json_string_at(object, "data", secret->opaque_key) : NULL;
    out->has_opaque = opaque && *opaque;
    for (size_t i = 0; i < cr_array_len(cr_certgen_entries); i++)
        if (!decode(object, cr_certgen_entries[i], &out->data[i], err))
            return false;
    return true;
}

static bool read_secret(struct cr_certgen_store *store, size_t index, struct cr_certgen_found *out,
                        struct cr_error *err)
{
    const struct cr_certgen_secret *secret = &store->set->secrets[index];
    struct cr_error why = {0};
    struct cr_json *object = cr_client_get(store->client, &cr_res_secrets, store->set->ns, secret->name, &why);
    if (!object && why.kind == CR_ERR_NOT_FOUND)
        return true;
    bool ok = object && read_object(secret, object, out, &why);
    cr_json_free_secret(object);
    if (!ok)
        *err = why;
    return ok || cr_error_wrap(err, "reading Secret %s/%s", store->set->ns, secret->name);
}

/* --- writing --- */

static void put(struct cr_json *data, const char *entry, const void *bytes, size_t len)
{
    char *text = cr_base64_encode(bytes, len);
    cr_json_set_string(data, entry, text);
    explicit_bzero(text, strlen(text));
    free(text);
}

static void put_data(const struct cr_certgen_secret *secret, const struct cr_certgen_write *write,
                     struct cr_json *object)
{
    struct cr_json *data = cr_json_object_in(object, "data");
    for (size_t i = 0; i < cr_array_len(cr_certgen_entries); i++)
        if (write->data[i].data)
            put(data, cr_certgen_entries[i], write->data[i].data, write->data[i].len);
    if (write->opaque)
        put(data, secret->opaque_key, write->opaque, (size_t)secret->opaque_bytes);
    if (write->rotation) {
        struct cr_json *metadata = cr_json_object_in(object, "metadata");
        cr_json_set_string(cr_json_object_in(metadata, "annotations"), ROTATION_ANNOTATION, write->rotation);
    }
}

static struct cr_json *new_object(const struct cr_certgen_set *set, const struct cr_certgen_secret *secret)
{
    struct cr_json *object = cr_json_new_object();
    cr_json_set_string(object, "apiVersion", "v1");
    cr_json_set_string(object, "kind", "Secret");
    cr_json_set_string(object, "type", secret->opaque_key ? "Opaque" : "kubernetes.io/tls");
    struct cr_json *metadata = cr_json_object_in(object, "metadata");
    cr_json_set_string(metadata, "name", secret->name);
    cr_json_set_string(metadata, "namespace", set->ns);
    for (size_t i = 0; i < set->labels_len; i++)
        cr_json_set_string(cr_json_object_in(metadata, "labels"), set->labels[i].name, set->labels[i].value);
    return object;
}

static struct cr_json *new_patch(const struct cr_certgen_found *read)
{
    struct cr_json *patch = cr_json_new_object();
    cr_json_set_string(cr_json_object_in(patch, "metadata"), "resourceVersion", read->version);
    return patch;
}

static bool write_secret(struct cr_certgen_store *store, size_t index, const struct cr_certgen_found *read,
                         const struct cr_certgen_write *write, char **version, struct cr_error *err)
{
    const struct cr_certgen_set *set = store->set;
    const struct cr_certgen_secret *secret = &set->secrets[index];
    struct cr_json *object = read->found ? new_patch(read) : new_object(set, secret);
    put_data(secret, write, object);
    struct cr_json *written =
        read->found ? cr_client_merge_patch(store->client, &cr_res_secrets, set->ns, secret->name, NULL, object, err)
                    : cr_client_create(store->client, &cr_res_secrets, set->ns, object, err);
    cr_json_free_secret(object);
    *version = cr_strdup_or_null(cr_obj_resource_version(written));
    bool ok = written != NULL;
    cr_json_free_secret(written);
    return ok || cr_error_wrap(err, "%s Secret %s/%s", read->found ? "changing" : "creating", set->ns, secret->name);
}

struct cr_certgen_store *cr_certgen_store_kube(struct cr_client *client, const struct cr_certgen_set *set)
{
    static const struct cr_certgen_store_kind kind = {title, read_secret, write_secret};
    struct cr_certgen_store *store = cr_new(struct cr_certgen_store);
    *store = (struct cr_certgen_store){.kind = &kind, .set = set, .client = client};
    return store;
}
