#include "base/alloc.h"
#include "base/strings.h"
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

bool cr_domain_items_list(struct cr_domain_objects *objects, const struct cr_domain_reader *reader,
                          struct cr_error *err)
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
