/* Finds another program that writes what the domain publishes, by the name that the API server has for it. It is looked
 * for only when the object differs from what is on record, since that takes a request of its own. */
#include "base/alloc.h"
#include "base/strings.h"
#include "controllers/domain_objects_internal.h"
#include "kube/managed_fields.h"
#include "kube/object.h"

/* Times in managedFields are whole seconds. A clock of the API server that is ahead makes a write of ours look later,
 * which matters only where its version is not known to be ours any more. */
static char *name_of(const struct cr_json *object, const char *const *fields, bool is_own_version, int64_t own_ms)
{
    const char *name = cr_managed_fields_other(object, fields);
    if (name || is_own_version || cr_managed_fields_own_ms(object, fields) <= own_ms)
        return cr_strdup_or_null(name);
    return cr_strdup("a program under the name of certroll");
}

/* The fields that the domain writes, by their names in managedFields. */
static char *last_writer(const struct cr_domain_objects *objects, const struct cr_domain_item *item,
                         const struct cr_json *object, bool is_own_version, int64_t own_ms)
{
    static const char *const of_leaf[] = {"f:tls.crt", "f:tls.key", "f:ca.crt", NULL};
    static const char *const of_ca_bundle[] = {"f:caBundle", NULL};
    if (item->is_leaf)
        return name_of(object, of_leaf, is_own_version, own_ms);
    if (cr_domain_item_is_ca_bundle(objects, item))
        return name_of(object, of_ca_bundle, is_own_version, own_ms);
    cr_autofree char *field = cr_asprintf("f:%s", cr_domain_item_target(objects, item)->key);
    const char *const of_target[] = {field, NULL};
    return name_of(object, of_target, is_own_version, own_ms);
}

char *cr_domain_objects_other_writer(const struct cr_domain_objects *objects, size_t object,
                                     const char *written_version, const char *own_version, int64_t own_ms)
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
    bool is_own_version = !own_version || cr_streq(own_version, version);
    return last_writer(objects, item, now, is_own_version, own_ms);
}
