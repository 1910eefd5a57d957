/* Bundles where there is no leaf, and the one way in which the domain creates or patches an object. */
#include "base/alloc.h"
#include "base/strings.h"
#include "trust/controller/domain_objects_internal.h"
#include "kube/object.h"

/* --- read --- */

struct cr_entry *cr_domain_bundles_read(const struct cr_domain_objects *objects, const struct cr_domain_item *item,
                                        size_t *len)
{
    if (cr_domain_item_is_ca_bundle(objects, item))
        return cr_domain_ca_bundle_read(cr_domain_item_target(objects, item), item->object, len);
    struct cr_entry *entry = cr_new(struct cr_entry);
    const char *key = item->is_leaf ? "ca.crt" : cr_domain_item_target(objects, item)->key;
    cr_entry_read(item->object, cr_domain_item_is_secret(item), key, entry);
    *len = 1;
    return entry;
}

void cr_domain_bundles_free(struct cr_entry *entries, size_t len)
{
    for (size_t i = 0; i < len; i++)
        cr_entry_dispose(&entries[i]);
    free(entries);
}

/* --- written --- */

void cr_domain_mark(const struct cr_domain_objects *objects, struct cr_json *body)
{
    struct cr_json *metadata = cr_json_object_in(body, "metadata");
    cr_json_set_string(cr_json_object_in(metadata, "labels"), CR_MANAGED_BY_LABEL, "certroll");
    cr_json_set_string(cr_json_object_in(metadata, "annotations"), CR_DOMAIN_ANNOTATION, objects->title);
}

static bool check_size(const struct cr_json *held, const struct cr_json *body, const struct cr_resource *resource,
                       struct cr_error *err)
{
    size_t total = cr_entry_total(held, body, cr_streq(resource->kind, cr_res_secrets.kind));
    return total <= CR_BUNDLE_BYTES_MAX ||
           cr_error_set(err, CR_ERR_INVALID, "it would have %zu bytes, more than the %d that Kubernetes takes", total,
                        CR_BUNDLE_BYTES_MAX);
}

/* Completes the body for the request: with the name for a create, with preconditions for a patch. */
static struct cr_json *send(const struct cr_domain_objects *objects, const struct cr_resource *resource, const char *ns,
                            const char *name, struct cr_json *body, const struct cr_json *held, struct cr_error *err)
{
    struct cr_json *metadata = cr_json_object_in(body, "metadata");
    if (!held) {
        cr_resource_stamp(resource, body);
        cr_json_set_string(metadata, "name", name);
        return cr_client_create(objects->client, resource, ns, body, err);
    }
    cr_json_set_string(metadata, "uid", cr_obj_uid(held));
    cr_json_set_string(metadata, "resourceVersion", cr_obj_resource_version(held));
    return cr_client_merge_patch(objects->client, resource, ns, name, NULL, body, err);
}

bool cr_domain_put(const struct cr_domain_objects *objects, const struct cr_resource *resource, const char *ns,
                   const char *name, struct cr_json *body, struct cr_json **held, struct cr_error *err)
{
    struct cr_error failed = {0};
    CR_CLEANUP(cr_secret_json) struct cr_json *owned = body;
    struct cr_json *put =
        check_size(*held, owned, resource, &failed) ? send(objects, resource, ns, name, owned, *held, &failed) : NULL;
    if (put) {
        cr_json_free_secret(*held);
        *held = put;
        return true;
    }
    cr_autofree char *label = cr_domain_object_label(resource, ns, name);
    cr_error_wrap(&failed, "cannot %s %s", *held ? "patch" : "create", label);
    cr_domain_name_component(resource, true, &failed);
    if (err)
        *err = failed;
    return false;
}

/* An entry is text or binary, never both: a binary entry is removed. */
static void put_config(const struct cr_json *object, struct cr_json *body, const char *key, const char *text)
{
    cr_json_set_string(cr_json_object_in(body, "data"), key, text);
    if (cr_json_at(object, "binaryData", key))
        cr_json_set(cr_json_object_in(body, "binaryData"), key, cr_json_new_null());
}

bool cr_domain_target_write(struct cr_domain_objects *objects, struct cr_domain_item *item, const struct cr_buf *bundle,
                            struct cr_error *err)
{
    const struct cr_domain_target *target = cr_domain_item_target(objects, item);
    struct cr_json *body = NULL;
    if (cr_trust_target_is_ca_bundle(target->kind)) {
        body = cr_domain_ca_bundle_patch(target, item->object, bundle);
    } else {
        body = cr_json_new_object();
        cr_domain_mark(objects, body);
        if (cr_domain_item_is_secret(item))
            cr_entry_put(cr_json_object_in(body, "data"), target->key, bundle->data, bundle->len);
        else
            put_config(item->object, body, target->key, cr_buf_text(bundle));
    }
    return cr_domain_put(objects, item->resource, item->ns, item->name, body, &item->object, err);
}
