/* Finds another program that writes what the domain publishes, by the name that the API server has for it. It is looked
 * for only when the object differs from what is on record, since that takes a request of its own. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strvec.h"
#include "trust/controller/domain_objects_internal.h"
#include "kube/managed_fields.h"
#include "kube/object.h"
#include "pki/digest.h"

/* The fields that the domain writes, by their names in managedFields. */
struct written_fields {
    char *of_target; /* owned */
    const char *names[4];
};

static void written_fields_dispose(struct written_fields *fields)
{
    free(fields->of_target);
}

CR_DEFINE_DISPOSE(written_fields, struct written_fields, written_fields_dispose)

static struct written_fields fields_of(const struct cr_domain_objects *objects, const struct cr_domain_item *item)
{
    if (item->is_leaf)
        return (struct written_fields){.names = {"f:tls.crt", "f:tls.key", "f:ca.crt"}};
    if (cr_domain_item_is_ca_bundle(objects, item))
        return (struct written_fields){.names = {"f:caBundle"}};
    char *name = cr_asprintf("f:%s", cr_domain_item_target(objects, item)->key);
    return (struct written_fields){.of_target = name, .names = {name}};
}

static bool is_one_of(const char *key, const struct written_fields *fields)
{
    for (size_t i = 0; fields->names[i]; i++)
        if (cr_streq(key, fields->names[i] + strlen("f:")))
            return true;
    return false;
}

/* Bounded by the depth that is parsed at all. NOLINTNEXTLINE(misc-no-recursion) */
static void add_content(struct cr_strvec *content, const struct cr_json *part, const struct written_fields *fields)
{
    for (const struct cr_json *member = cr_json_first(part); member; member = cr_json_next(member)) {
        const char *key = cr_json_key(member);
        const char *value = cr_json_string(member);
        if (value && is_one_of(key, fields)) {
            char digest[CR_SHA256_HEX];
            cr_sha256_hex(value, strlen(value), digest);
            cr_autofree char *line = cr_asprintf("%s=%s", key, digest);
            cr_strvec_add(content, line);
        } else if (!cr_streq(key, "metadata")) {
            add_content(content, member, fields);
        }
    }
}

/* Of a webhook configuration, only what the domain writes there. */
static void add_ca_bundles(struct cr_strvec *content, const struct cr_domain_target *target,
                           const struct cr_json *object)
{
    size_t len = 0;
    struct cr_entry *entries = cr_domain_ca_bundle_read(target, object, &len);
    for (size_t i = 0; i < len; i++) {
        char digest[CR_SHA256_HEX];
        cr_sha256_hex(entries[i].bytes.data, entries[i].bytes.len, digest);
        if (entries[i].found)
            cr_strvec_add(content, digest);
    }
    cr_domain_bundles_free(entries, len);
}

static void add_content_of(struct cr_strvec *content, const struct cr_domain_objects *objects,
                           const struct cr_domain_item *item, const struct cr_json *object,
                           const struct written_fields *fields)
{
    if (cr_domain_item_is_ca_bundle(objects, item))
        add_ca_bundles(content, cr_domain_item_target(objects, item), object);
    else
        add_content(content, object, fields);
}

char *cr_domain_objects_content(const struct cr_domain_objects *objects, size_t object)
{
    const struct cr_domain_item *item = &objects->items[object];
    CR_CLEANUP(written_fields) struct written_fields fields = fields_of(objects, item);
    CR_CLEANUP(cr_strvec) struct cr_strvec content = {0};
    add_content_of(&content, objects, item, item->object, &fields);
    return cr_strvec_join(&content, " ");
}

/* A field that is gone may have been removed by a program of any name: no entry says who did it. */
static bool has_what_is_not_ours(const struct cr_domain_objects *objects, const struct cr_domain_item *item,
                                 const struct cr_json *object, const struct written_fields *fields, const char *written)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec content = {0};
    add_content_of(&content, objects, item, object, fields);
    for (size_t i = 0; i < content.len; i++)
        if (!strstr(written, content.items[i]))
            return true;
    return false;
}

char *cr_domain_objects_other_writer(const struct cr_domain_objects *objects, size_t object,
                                     const char *written_version, const char *own_content)
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
    CR_CLEANUP(written_fields) struct written_fields fields = fields_of(objects, item);
    const char *name = cr_managed_fields_other(now, fields.names);
    if (name || !own_content || !has_what_is_not_ours(objects, item, now, &fields, own_content))
        return cr_strdup_or_null(name);
    return cr_strdup("a program under the name of certroll");
}
