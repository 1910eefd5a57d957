#include "trust/controller/domain_objects.h"

#include "base/alloc.h"
#include "base/strings.h"
#include "kube/object.h"
#include "trust/controller/domain_objects_internal.h"

static const struct cr_resource validating = {"admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations",
                                              "ValidatingWebhookConfiguration"};
static const struct cr_resource mutating = {"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations",
                                            "MutatingWebhookConfiguration"};
static const struct cr_resource api_services = {"apiregistration.k8s.io", "v1", "apiservices", "APIService"};
static const struct cr_resource definitions = {"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                                               "CustomResourceDefinition"};

static const struct cr_resource *const resources[CR_TARGET_KINDS] = {
    [CR_TARGET_CONFIGMAP] = &cr_res_configmaps,   [CR_TARGET_SECRET] = &cr_res_secrets,
    [CR_TARGET_VALIDATING_WEBHOOK] = &validating, [CR_TARGET_MUTATING_WEBHOOK] = &mutating,
    [CR_TARGET_API_SERVICE] = &api_services,      [CR_TARGET_CRD_CONVERSION] = &definitions,
};

struct listing {
    struct cr_domain_objects *objects;
    const struct cr_domain_reader *reader;
};

/* The first listed item counts: a selector may add a namespace that another target names. */
static bool is_listed(const struct cr_domain_objects *objects, const struct cr_resource *resource, const char *ns,
                      const char *name)
{
    for (size_t i = 0; i < objects->items_len; i++) {
        const struct cr_domain_item *item = &objects->items[i];
        if (item->resource == resource && cr_streq(item->ns, ns) && cr_streq(item->name, name))
            return true;
    }
    return false;
}

static bool is_own(const struct cr_domain_objects *objects, const struct cr_domain_item *item, const char *name)
{
    return cr_streq(objects->own_ns, item->ns) && cr_streq(item->name, name);
}

/* What the domain reads or keeps there, in words; NULL: nothing. It carries the domain's annotation, so that alone
 * would let a leaf be written over the CA's key. What the spec alone shows is reported by cr_domain_decode; it knows
 * neither what selectors match nor the operator's namespace. Owned. */
static char *use_of(const struct cr_domain_objects *objects, const struct cr_domain_item *item)
{
    const struct cr_domain *domain = objects->domain;
    if (item->resource != &cr_res_secrets)
        return NULL;
    if (domain->authority == CR_AUTHORITY_ISSUE && is_own(objects, item, domain->ca.ca_secret))
        return cr_strdup("that of this domain's CA, whose key no workload should mount");
    if (is_own(objects, item, objects->staging_name))
        return cr_strdup("where this domain keeps its keys while it rotates");
    for (size_t i = 0; i < domain->leaves_len; i++)
        if (cr_streq(domain->leaves[i].ns, item->ns) && cr_streq(domain->leaves[i].mirror, item->name))
            return cr_asprintf("the source of leaf '%s'", domain->leaves[i].name);
    return NULL;
}

/* A TrustDomain is in the only namespace that it writes to. */
static void judge_place(const struct listing *list, struct cr_domain_item *item)
{
    const struct cr_domain *domain = list->objects->domain;
    const struct cr_domain_reader *reader = list->reader;
    cr_autofree char *use = use_of(list->objects, item);
    if (use) {
        item->closed = CR_TRUST_RESERVED;
        item->closed_text = cr_asprintf("Secret %s/%s is %s: publish under another name", item->ns, item->name, use);
        item->is_unread = true;
        return;
    }
    if (!domain->cluster || !item->ns)
        return;
    if (!reader->namespace_exists(reader->arg, item->ns)) {
        item->closed = CR_TRUST_NAMESPACE_MISSING;
        item->closed_text = cr_asprintf("namespace %s is not there", item->ns);
        item->is_unread = true;
    } else if (!reader->consents(reader->arg, item->ns, domain->name)) {
        item->closed = CR_TRUST_NO_CONSENT;
        item->closed_text =
            cr_asprintf("namespace %s has not consented: its owner lets this domain write there with the "
                        "annotation " CR_DOMAIN_CONSENT ": \"%s\"",
                        item->ns, domain->name);
    }
}

static bool add(const struct listing *list, const struct cr_resource *resource, const char *ns, const char *name,
                bool is_leaf, size_t spec, struct cr_error *err)
{
    struct cr_domain_objects *objects = list->objects;
    if (is_listed(objects, resource, ns, name))
        return true;
    if (objects->items_len == CR_DOMAIN_OBJECTS_MAX)
        return cr_error_set(err, CR_ERR_INVALID,
                            "the domain publishes into more than %d objects: let namespaceSelector match fewer "
                            "namespaces, or make several domains",
                            CR_DOMAIN_OBJECTS_MAX);
    objects->items = cr_reallocarray(objects->items, objects->items_len + 1, sizeof *objects->items);
    struct cr_domain_item *item = &objects->items[objects->items_len++];
    *item = (struct cr_domain_item){
        .resource = resource, .ns = cr_strdup_or_null(ns), .name = cr_strdup(name), .is_leaf = is_leaf, .spec = spec};
    judge_place(list, item);
    return true;
}

/* The target was published there before, and a distrusted CA may still be in use there. */
static void add_recorded(const struct cr_domain_objects *objects, const struct cr_domain_target *target,
                         struct cr_strvec *names)
{
    const struct cr_domain_status *status = objects->status;
    for (size_t i = 0; i < status->objects_len; i++) {
        const struct cr_domain_object_status *known = &status->objects[i];
        if (known->ns && *known->trust && cr_streq(known->kind, resources[target->kind]->kind) &&
            cr_streq(known->name, target->name))
            cr_strvec_add_unique(names, known->ns);
    }
}

/* Namespaces that match and have consented. The others have asked for nothing: they are only listed by name. */
static bool add_selected(const struct listing *list, size_t spec, struct cr_error *err)
{
    struct cr_domain_objects *objects = list->objects;
    const struct cr_domain_reader *reader = list->reader;
    const struct cr_domain_target *target = &objects->domain->targets[spec];
    CR_CLEANUP(cr_strvec) struct cr_strvec selected = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    reader->select_namespaces(reader->arg, &target->namespaces, &selected);
    for (size_t i = 0; i < selected.len; i++)
        cr_strvec_add(reader->consents(reader->arg, selected.items[i], objects->domain->name)
                          ? &names
                          : &objects->without_consent,
                      selected.items[i]);
    if (cr_domain_distrust_is_pending(objects->domain, objects->status))
        add_recorded(objects, target, &names);
    cr_strvec_sort(&names);
    for (size_t i = 0; i < names.len; i++)
        if (!add(list, resources[target->kind], names.items[i], target->name, false, spec, err))
            return false;
    return true;
}

static bool add_target(const struct listing *list, size_t spec, struct cr_error *err)
{
    const struct cr_domain_target *target = &list->objects->domain->targets[spec];
    if (target->ns || cr_trust_target_is_ca_bundle(target->kind))
        return add(list, resources[target->kind], target->ns, target->name, false, spec, err);
    return add_selected(list, spec, err);
}

/* Lists them; a place that may not be written to is noted in the item. Errors: Invalid, too many. */
static bool items_list(struct cr_domain_objects *objects, const struct cr_domain_reader *reader, struct cr_error *err)
{
    const struct listing list = {objects, reader};
    const struct cr_domain *domain = objects->domain;
    for (size_t i = 0; i < domain->leaves_len; i++)
        if (!add(&list, &cr_res_secrets, domain->leaves[i].ns, domain->leaves[i].secret, true, i, err))
            return false;
    for (size_t i = 0; i < domain->targets_len; i++)
        if (!add_target(&list, i, err))
            return false;
    cr_strvec_sort(&objects->without_consent);
    return true;
}

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
    if (!items_list(objects, reader, err) || !cr_domain_items_read(objects, err))
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
