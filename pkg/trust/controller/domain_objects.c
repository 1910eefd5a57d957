#include "trust/controller/domain_objects.h"

#include "base/alloc.h"
#include "base/strings.h"
#include "kube/object.h"
#include "trust/controller/domain_objects_internal.h"

char *cr_domain_object_label(const struct cr_resource *resource, const char *ns, const char *name)
{
    return cr_asprintf("%s %s%s%s", resource->kind, cr_or_empty(ns), ns ? "/" : "", name);
}

bool cr_domain_item_is_secret(const struct cr_domain_item *item)
{
    return cr_streq(item->resource->kind, cr_res_secrets.kind);
}

bool cr_domain_item_is_ca_bundle(const struct cr_domain_objects *objects, const struct cr_domain_item *item)
{
    return !item->is_leaf && cr_trust_target_is_ca_bundle(cr_domain_item_target(objects, item)->kind);
}

/* Secrets are read by a right of the base. */
static const char *component_of(const struct cr_resource *resource, bool writes)
{
    if (resource == &cr_res_secrets)
        return writes ? "trust-domains" : NULL;
    return resource == &cr_res_configmaps ? "trust-domains" : "ca-bundles";
}

void cr_domain_name_component(const struct cr_resource *resource, bool writes, struct cr_error *err)
{
    if (err->kind != CR_ERR_FORBIDDEN)
        return;
    cr_autofree char *text = cr_trust_problem_text(
        CR_TRUST_FORBIDDEN, &(struct cr_trust_about){.detail = err->text, .component = component_of(resource, writes)});
    cr_error_set(err, CR_ERR_FORBIDDEN, "%s", text);
}

/* Secrets of a domain that was deleted and created again are not taken for those of the earlier domain of that name. */
static char *staging_name(const struct cr_domain *domain)
{
    char digest[CR_SHA256_HEX];
    const char *uid = cr_or_empty(domain->uid);
    cr_sha256_hex(uid, strlen(uid), digest);
    return cr_asprintf(CR_DOMAIN_STAGING "%.16s", digest);
}

struct cr_domain_objects *cr_domain_objects_read(const struct cr_domain_reader *reader, const struct cr_domain *domain,
                                                 const struct cr_domain_status *status, int64_t now_ms,
                                                 struct cr_error *err)
{
    CR_CLEANUP(cr_domain_objects) struct cr_domain_objects *objects = cr_new(struct cr_domain_objects);
    objects->client = reader->client;
    objects->domain = domain;
    objects->status = status;
    objects->now_ms = now_ms;
    objects->title = cr_domain_title(domain);
    objects->own_ns = domain->cluster ? reader->operator_namespace : domain->ns;
    objects->staging_name = staging_name(domain);
    cr_domain_items_list(objects, reader);
    if (!cr_domain_items_read(objects, err))
        return NULL;
    return cr_steal(&objects);
}

static void dispose_item(struct cr_domain_item *item)
{
    cr_domain_item_forget_view(item);
    cr_json_free_secret(item->object);
    cr_json_free_secret(item->source);
    cr_json_free_secret(item->password);
    free(item->source_unread);
    free(item->password_unread);
    free(item->closed_text);
    free(item->ns);
    free(item->name);
}

void cr_domain_written_dispose(struct cr_domain_written *written)
{
    free(written->version);
    free(written->text);
    *written = (struct cr_domain_written){0};
}

void cr_domain_objects_free(struct cr_domain_objects *objects)
{
    if (!objects)
        return;
    for (size_t i = 0; i < objects->items_len; i++)
        dispose_item(&objects->items[i]);
    free(objects->items);
    cr_strvec_dispose(&objects->without_consent);
    cr_json_free_secret(objects->ca_secret);
    cr_json_free_secret(objects->staging);
    cr_held_ca_dispose(&objects->current);
    cr_held_ca_dispose(&objects->next);
    cr_ca_set_free(objects->set);
    cr_domain_proofs_forget(objects);
    free(objects->cas);
    free(objects->issued);
    free(objects->views);
    free(objects->cannot_renew);
    free(objects->cannot_cross_sign);
    free(objects->next_token);
    free(objects->beyond_example);
    free(objects->staging_name);
    free(objects->title);
    free(objects);
}

const struct cr_material *cr_domain_objects_material(const struct cr_domain_objects *objects, size_t object)
{
    const struct cr_domain_item *item = &objects->items[object];
    return item->has_material ? &item->material : NULL;
}

const struct cr_material *cr_domain_objects_source(const struct cr_domain_objects *objects, size_t object)
{
    const struct cr_domain_item *item = &objects->items[object];
    return item->has_source ? &item->source_material : NULL;
}
