/* Reads all that a reconcile needs, in an order in which a write in between can hide nothing. */
#include "base/alloc.h"
#include "base/strings.h"
#include "trust/controller/domain_objects_internal.h"

bool cr_domain_get(const struct cr_domain_objects *objects, const struct cr_resource *resource, const char *ns,
                   const char *name, struct cr_json **out, struct cr_error *err)
{
    struct cr_error failed = {0};
    *out = cr_client_get(objects->client, resource, ns, name, &failed);
    if (*out || failed.kind == CR_ERR_NOT_FOUND)
        return true;
    cr_autofree char *label = cr_domain_object_label(resource, ns, name);
    cr_error_wrap(&failed, "cannot read %s", label);
    cr_domain_name_component(resource, false, &failed);
    if (err)
        *err = failed;
    return false;
}

/* Whoever may write one object could otherwise stop all others: with more values than are read. */
static bool is_about_the_object(const struct cr_error *failed)
{
    return failed->kind == CR_ERR_INVALID;
}

/* In a place that is closed, Forbidden is ignored: otherwise one namespace without consent would stop all others. Where
 * consent was given once, what was published there is read, since it is still in use. */
static bool read_object(const struct cr_domain_objects *objects, struct cr_domain_item *item, struct cr_error *err)
{
    struct cr_error failed = {0};
    if (item->is_unread || cr_domain_get(objects, item->resource, item->ns, item->name, &item->object, &failed))
        return true;
    if (item->closed && (failed.kind == CR_ERR_FORBIDDEN || is_about_the_object(&failed))) {
        item->is_unknown = true;
        return true;
    }
    if (is_about_the_object(&failed)) {
        item->closed = CR_TRUST_CANNOT_READ;
        item->closed_text = cr_strdup(failed.text);
        return true;
    }
    *err = failed;
    return false;
}

/* A Secret that a leaf is made of. *unread: owned words, why what is there could not be read. */
static bool read_part(const struct cr_domain_objects *objects, const char *ns, const char *name, struct cr_json **out,
                      char **unread, struct cr_error *err)
{
    struct cr_error failed = {0};
    if (cr_domain_get(objects, &cr_res_secrets, ns, name, out, &failed))
        return true;
    if (is_about_the_object(&failed)) {
        *unread = cr_strdup(failed.text);
        return true;
    }
    *err = failed;
    return false;
}

static bool read_leaf_parts(const struct cr_domain_objects *objects, struct cr_domain_item *item, struct cr_error *err)
{
    const struct cr_domain_leaf *leaf = cr_domain_item_leaf(objects, item);
    if (item->closed)
        return true;
    if (leaf->source == CR_LEAF_MIRROR &&
        !read_part(objects, item->ns, leaf->mirror, &item->source, &item->source_unread, err))
        return false;
    return !leaf->keystore.set ||
           read_part(objects, item->ns, leaf->keystore.password_secret, &item->password, &item->password_unread, err);
}

/* Staging before the CA Secret: a promotion writes the CA Secret, then deletes staging, so that the next CA is found in
 * at least one of both, even if another replica promotes it meanwhile. */
static bool read_own(struct cr_domain_objects *objects, struct cr_error *err)
{
    if (!objects->own_ns)
        return true;
    if (!cr_domain_get(objects, &cr_res_secrets, objects->own_ns, objects->staging_name, &objects->staging, err))
        return false;
    return objects->domain->authority != CR_AUTHORITY_ISSUE ||
           cr_domain_get(objects, &cr_res_secrets, objects->own_ns, objects->domain->ca.ca_secret, &objects->ca_secret,
                         err);
}

bool cr_domain_items_read(struct cr_domain_objects *objects, struct cr_error *err)
{
    for (size_t i = 0; i < objects->items_len; i++) {
        struct cr_domain_item *item = &objects->items[i];
        if (!read_object(objects, item, err) || (item->is_leaf && !read_leaf_parts(objects, item, err)))
            return false;
    }
    return read_own(objects, err);
}
