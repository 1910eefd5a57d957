/* The staging Secret: the next CA and the previous leaves, kept until a rotation is over, so that any step can be
 * taken again or back. */
#include "base/alloc.h"
#include "base/strings.h"
#include "trust/controller/domain_objects_internal.h"
#include "kube/object.h"

bool cr_domain_staging_is_ours(const struct cr_domain_objects *objects)
{
    return cr_domain_owns(objects, objects->staging) &&
           cr_streq(cr_json_string_at(objects->staging, "metadata", "labels", CR_DOMAIN_STAGING_LABEL), "true");
}

/* --- read --- */

char *cr_domain_staging_previous(const struct cr_domain_leaf *leaf)
{
    return cr_asprintf("previous.%s", leaf->name);
}

static void read_entry(const struct cr_domain_objects *objects, const char *what, const char *suffix,
                       struct cr_entry *out)
{
    cr_autofree char *key = cr_asprintf("%s.%s", what, suffix);
    cr_entry_read(cr_domain_staging_is_ours(objects) ? objects->staging : NULL, true, key, out);
}

void cr_domain_staging_leaf(const struct cr_domain_objects *objects, const char *what, struct cr_stored_leaf *out)
{
    *out = (struct cr_stored_leaf){0};
    read_entry(objects, what, "crt", &out->certificate);
    read_entry(objects, what, "key", &out->key);
}

void cr_domain_staging_issued_for(const struct cr_domain_objects *objects, const struct cr_domain_leaf *leaf,
                                  struct cr_entry *out)
{
    cr_autofree char *what = cr_domain_staging_previous(leaf);
    read_entry(objects, what, "issued-for", out);
}

/* --- written --- */

static bool check_writable(const struct cr_domain_objects *objects, struct cr_error *err)
{
    if (!objects->own_ns)
        return cr_error_set(err, CR_ERR_INVALID,
                            "certroll knows no namespace of its own for the keys of this domain "
                            "(--operator-namespace)");
    if (objects->staging && !cr_domain_staging_is_ours(objects))
        return cr_error_set(err, CR_ERR_INVALID,
                            "Secret %s/%s is not this domain's staging, though it has its name: delete it",
                            objects->own_ns, objects->staging_name);
    return true;
}

bool cr_domain_staging_put(struct cr_domain_objects *objects, struct cr_json *data, struct cr_json *annotations,
                           struct cr_error *err)
{
    struct cr_json *body = cr_json_new_object();
    if (annotations)
        cr_json_set(cr_json_object_in(body, "metadata"), "annotations", annotations);
    cr_domain_mark(objects, body);
    cr_json_set_string(cr_json_object_in(cr_json_object_in(body, "metadata"), "labels"), CR_DOMAIN_STAGING_LABEL,
                       "true");
    cr_json_set(body, "data", data);
    if (check_writable(objects, err))
        return cr_domain_put(objects, &cr_res_secrets, objects->own_ns, objects->staging_name, body, &objects->staging,
                             err);
    cr_json_free_secret(body);
    return false;
}

static void put_entry(struct cr_json *data, const char *what, const char *suffix, const struct cr_entry *entry)
{
    cr_autofree char *key = cr_asprintf("%s.%s", what, suffix);
    cr_entry_put(data, key, cr_buf_text(&entry->bytes), entry->bytes.len);
}

/* Null where there was an entry and now is none; a new object takes no nulls. */
static void put_issued_for(const struct cr_domain_objects *objects, const struct cr_domain_item *item,
                           struct cr_json *data, const char *what)
{
    cr_autofree char *key = cr_asprintf("%s.issued-for", what);
    if (item->issued_for)
        cr_entry_put(data, key, item->issued_for, strlen(item->issued_for));
    else if (cr_json_at(objects->staging, "data", key))
        cr_json_set(data, key, cr_json_new_null());
}

static bool is_saved(const struct cr_domain_objects *objects, const char *what, const struct cr_stored_leaf *leaf)
{
    CR_CLEANUP(cr_stored_leaf) struct cr_stored_leaf saved = {0};
    cr_domain_staging_leaf(objects, what, &saved);
    return saved.certificate.found && saved.key.found &&
           cr_streq(cr_buf_text(&saved.certificate.bytes), cr_buf_text(&leaf->certificate.bytes)) &&
           cr_streq(cr_buf_text(&saved.key.bytes), cr_buf_text(&leaf->key.bytes));
}

bool cr_domain_staging_save(struct cr_domain_objects *objects, const struct cr_domain_item *item, struct cr_error *err)
{
    CR_CLEANUP(cr_stored_leaf) struct cr_stored_leaf leaf = {0};
    cr_autofree char *what = cr_domain_staging_previous(cr_domain_item_leaf(objects, item));
    cr_stored_leaf_read(item->object, &leaf);
    if (!leaf.certificate.bytes.len || !leaf.key.bytes.len || is_saved(objects, what, &leaf))
        return true;
    struct cr_json *data = cr_json_new_object();
    put_entry(data, what, "crt", &leaf.certificate);
    put_entry(data, what, "key", &leaf.key);
    put_issued_for(objects, item, data, what);
    return cr_domain_staging_put(objects, data, NULL, err);
}

bool cr_domain_objects_delete_staging(struct cr_domain_objects *objects, struct cr_error *err)
{
    if (!objects->staging)
        return true;
    if (!check_writable(objects, err))
        return false;
    struct cr_error failed = {0};
    const struct cr_delete_options options = {.uid = cr_obj_uid(objects->staging),
                                              .resource_version = cr_obj_resource_version(objects->staging)};
    if (!cr_client_delete(objects->client, &cr_res_secrets, objects->own_ns, objects->staging_name, &options,
                          &failed) &&
        failed.kind != CR_ERR_NOT_FOUND) {
        cr_error_wrap(&failed, "cannot delete Secret %s/%s", objects->own_ns, objects->staging_name);
        *err = failed;
        return false;
    }
    cr_json_free_secret(cr_steal(&objects->staging));
    return true;
}
