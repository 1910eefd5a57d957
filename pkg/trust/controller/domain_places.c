/* Where a domain publishes: its leaves' Secrets, and its targets with the namespaces of selectors. There is room for a
 * limited number. */
#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"
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

/* Where the domain would publish. */
struct place {
    const struct cr_resource *resource;
    char *ns;         /* owned; NULL: in none */
    const char *name; /* borrowed from the domain */
    bool is_leaf;
    size_t spec;
    bool is_on_record, is_chosen;
};

struct listing {
    struct cr_domain_objects *objects;
    const struct cr_domain_reader *reader;
    struct cr_strmap *on_record, *listed; /* labels; what they lead to is of no use */
    struct place *places;
    size_t places_len;
};

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

/* The first one counts: a selector may add a namespace that another target names. */
static void add(struct listing *list, const struct cr_resource *resource, const char *ns, const char *name,
                bool is_leaf, size_t spec)
{
    cr_autofree char *label = cr_domain_object_label(resource, ns, name);
    if (cr_strmap_get(list->listed, label))
        return;
    cr_strmap_set(list->listed, label, list);
    list->places = cr_reallocarray(list->places, list->places_len + 1, sizeof *list->places);
    list->places[list->places_len++] = (struct place){.resource = resource,
                                                      .ns = cr_strdup_or_null(ns),
                                                      .name = name,
                                                      .is_leaf = is_leaf,
                                                      .spec = spec,
                                                      .is_on_record = cr_strmap_get(list->on_record, label)};
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
static void add_selected(struct listing *list, size_t spec)
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
        add(list, resources[target->kind], names.items[i], target->name, false, spec);
}

static void add_target(struct listing *list, size_t spec)
{
    const struct cr_domain_target *target = &list->objects->domain->targets[spec];
    if (target->ns || cr_trust_target_is_ca_bundle(target->kind))
        add(list, resources[target->kind], target->ns, target->name, false, spec);
    else
        add_selected(list, spec);
}

static void add_all(struct listing *list)
{
    const struct cr_domain *domain = list->objects->domain;
    for (size_t i = 0; i < domain->leaves_len; i++)
        add(list, &cr_res_secrets, domain->leaves[i].ns, domain->leaves[i].secret, true, i);
    for (size_t i = 0; i < domain->targets_len; i++)
        add_target(list, i);
    cr_strvec_sort(&list->objects->without_consent);
}

static void note_record(struct listing *list)
{
    const struct cr_domain_status *status = list->objects->status;
    for (size_t i = 0; i < status->objects_len; i++) {
        const struct cr_domain_object_status *known = &status->objects[i];
        const struct cr_resource resource = {.kind = known->kind};
        cr_autofree char *label = cr_domain_object_label(&resource, known->ns, known->name);
        cr_strmap_set(list->on_record, label, list);
    }
}

/* What is published stays in force, whatever comes to match as well: its readers have to be waited for. */
static void choose(const struct listing *list)
{
    size_t chosen = 0;
    for (int on_record = 1; on_record >= 0; on_record--)
        for (size_t i = 0; i < list->places_len && chosen < CR_DOMAIN_OBJECTS_MAX; i++)
            if (list->places[i].is_on_record == on_record) {
                list->places[i].is_chosen = true;
                chosen++;
            }
}

static void leave_out(struct cr_domain_objects *objects, const struct place *place)
{
    if (!objects->beyond++)
        objects->beyond_example = cr_domain_object_label(place->resource, place->ns, place->name);
}

/* Takes its ns. */
static void take(const struct listing *list, struct place *place)
{
    struct cr_domain_objects *objects = list->objects;
    objects->items = cr_reallocarray(objects->items, objects->items_len + 1, sizeof *objects->items);
    struct cr_domain_item *item = &objects->items[objects->items_len++];
    *item = (struct cr_domain_item){.resource = place->resource,
                                    .ns = cr_steal(&place->ns),
                                    .name = cr_strdup(place->name),
                                    .is_leaf = place->is_leaf,
                                    .spec = place->spec};
    judge_place(list, item);
}

void cr_domain_items_list(struct cr_domain_objects *objects, const struct cr_domain_reader *reader)
{
    CR_CLEANUP(cr_strmap) struct cr_strmap *on_record = cr_strmap_new(NULL);
    CR_CLEANUP(cr_strmap) struct cr_strmap *listed = cr_strmap_new(NULL);
    struct listing list = {.objects = objects, .reader = reader, .on_record = on_record, .listed = listed};
    note_record(&list);
    add_all(&list);
    choose(&list);
    for (size_t i = 0; i < list.places_len; i++) {
        if (list.places[i].is_chosen)
            take(&list, &list.places[i]);
        else
            leave_out(objects, &list.places[i]);
        free(list.places[i].ns);
    }
    free(list.places);
}
