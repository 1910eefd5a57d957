/* Finds another program that writes what the domain publishes, by the name that the API server has for it. It is looked
 * for only when the object differs from what is on record, since that takes a request of its own. */
#include "base/alloc.h"
#include "base/strings.h"
#include "controllers/domain_objects_internal.h"
#include "kube/managed_fields.h"
#include "kube/object.h"

/* The names in managedFields of the fields that the domain writes. */
static const char *last_writer(const struct cr_domain_objects *objects, const struct cr_domain_item *item,
                               const struct cr_json *object)
{
    static const char *const of_leaf[] = {"f:tls.crt", "f:tls.key", "f:ca.crt", NULL};
    static const char *const of_ca_bundle[] = {"f:caBundle", NULL};
    if (item->is_leaf)
        return cr_managed_fields_other(object, of_leaf);
    if (cr_domain_item_is_ca_bundle(objects, item))
        return cr_managed_fields_other(object, of_ca_bundle);
    cr_autofree char *field = cr_asprintf("f:%s", cr_domain_item_target(objects, item)->key);
    const char *const of_target[] = {field, NULL};
    return cr_managed_fields_other(object, of_target);
}

char *cr_domain_objects_other_writer(const struct cr_domain_objects *objects, size_t object,
                                     const char *written_version, const char *own_version)
{
    const struct cr_domain_item *item = &objects->items[object];
    const char *version = cr_obj_resource_version(item->object);
    if (!item->object || !written_version || cr_streq(version, written_version))
        return NULL;
    struct cr_error unread = {0};
    CR_CLEANUP(cr_secret_json)
    struct cr_json *now =
        cr_client_get_with_managed_fields(objects->client, item->resource, item->ns, item->name, &unread);
    /* What was written since is looked at in a later pass. */
    if (!now || !cr_streq(cr_obj_resource_version(now), version))
        return NULL;
    const char *name = last_writer(objects, item, now);
    if (name)
        return cr_strdup(name);
    bool is_ours = !own_version || cr_streq(own_version, version);
    return is_ours ? NULL : cr_strdup("a program under the name of certroll");
}
