/* What was read, as the values that the rules plan with: CAs, objects, bundles. */
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "kube/object.h"
#include "trust/controller/domain_objects_internal.h"

static void forget(struct cr_domain_objects *objects)
{
    for (size_t i = 0; i < objects->items_len; i++)
        cr_domain_item_forget_view(&objects->items[i]);
    cr_held_ca_dispose(&objects->current);
    cr_held_ca_dispose(&objects->next);
    cr_ca_set_free(objects->set);
    free(objects->cas);
    free(objects->issued);
    free(objects->views);
    objects->set = cr_ca_set_new();
    objects->cas = NULL;
    objects->issued = NULL;
    cr_domain_proofs_forget(objects);
    objects->views = NULL;
}

/* --- CAs --- */

/* An account that can write a leaf's Secret could also write its source, or the CA Secret of a TrustDomain: what it
 * puts there is worth as much. The CA that issues leaves of the cluster kind is in another namespace, a ConfigMap may
 * have other writers, and a namespace that has not consented has asked for nothing. */
static bool vouches(const struct cr_domain_objects *objects, const struct cr_domain_item *item)
{
    return item->is_leaf && !item->closed &&
           (!objects->domain->cluster || cr_domain_item_leaf(objects, item)->source == CR_LEAF_MIRROR);
}

static void add_published(struct cr_domain_objects *objects, const struct cr_domain_item *item,
                          const struct cr_strvec *only)
{
    size_t len = 0;
    if (!cr_domain_owns(objects, item->object))
        return;
    struct cr_entry *entries = cr_domain_bundles_read(objects, item, &len);
    for (size_t i = 0; i < len; i++) {
        const struct cr_pem_input text = cr_entry_pem(&entries[i]);
        if (text.len && (only || cr_ca_set_affords(&text, NULL)))
            (void)!cr_ca_set_add(objects->set, &text, only, NULL);
    }
    cr_domain_bundles_free(entries, len);
}

/* There is room for a limited number of CAs, and what comes too late is refused. So the domain's own CAs come first,
 * and those that are published: a source with too many CAs, which belongs to one team of several, must not push out
 * those of all teams. What is distrusted is looked for wherever it may have come back. */
static void collect_cas(struct cr_domain_objects *objects)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec known = {0};
    for (size_t i = 0; i < objects->status->cas_len; i++)
        cr_strvec_add(&known, objects->status->cas[i].fingerprint);
    for (size_t i = 0; i < objects->domain->distrust.len; i++)
        cr_strvec_add(&known, objects->domain->distrust.items[i]);
    cr_domain_authority_read(objects);
    for (size_t i = 0; i < objects->items_len; i++)
        add_published(objects, &objects->items[i], &known);
    for (size_t i = 0; i < objects->items_len; i++)
        cr_domain_source_read(objects, &objects->items[i]);
    for (size_t i = 0; i < objects->items_len; i++)
        if (vouches(objects, &objects->items[i]))
            add_published(objects, &objects->items[i], NULL);
    cr_ca_set_sort(objects->set);
}

static void list_cas(struct cr_domain_objects *objects)
{
    size_t len = cr_ca_set_len(objects->set);
    objects->cas = cr_calloc(len + 1, sizeof *objects->cas);
    for (size_t i = 0; i < len; i++) {
        const struct cr_ca_facts *facts = cr_ca_set_facts(objects->set, i);
        struct cr_domain_ca *ca = &objects->cas[i];
        *ca = (struct cr_domain_ca){.subject = facts->subject,
                                    .not_before_ms = facts->not_before_ms,
                                    .not_after_ms = facts->not_after_ms,
                                    .root = facts->root};
        memcpy(ca->fingerprint, facts->fingerprint, sizeof ca->fingerprint);
    }
    objects->issued = cr_calloc(len * len + 1, sizeof *objects->issued);
    cr_ca_set_find_issuers(objects->set, objects->issued);
}

/* --- objects --- */

/* With several places, only the CAs that all of them have count; places that differ are to be written again. */
static void view_bundle(struct cr_domain_objects *objects, struct cr_domain_item *item, struct cr_domain_object *out)
{
    size_t width = cr_ca_set_len(objects->set);
    size_t len = 0;
    cr_autofree bool *has = cr_calloc(width + 1, sizeof *has);
    item->bundle = cr_calloc(width + 1, sizeof *item->bundle);
    out->bundle = item->bundle;
    if (!cr_domain_owns(objects, item->object))
        return;
    struct cr_entry *entries = cr_domain_bundles_read(objects, item, &len);
    for (size_t i = 0; i < len; i++) {
        const struct cr_pem_input text = cr_entry_pem(&entries[i]);
        memset(has, 0, width * sizeof *has);
        if (text.data && !cr_ca_set_compare(objects->set, &text, has))
            out->bundle_foreign = true;
        if (i && memcmp(has, item->bundle, width * sizeof *has) != 0)
            out->bundle_foreign = true;
        for (size_t ca = 0; ca < width; ca++)
            item->bundle[ca] = has[ca] && (i == 0 || item->bundle[ca]);
    }
    cr_domain_bundles_free(entries, len);
}

static void view_item(struct cr_domain_objects *objects, struct cr_domain_item *item, struct cr_domain_object *out)
{
    *out = (struct cr_domain_object){.kind = item->resource->kind,
                                     .ns = item->ns,
                                     .name = item->name,
                                     .is_leaf = item->is_leaf,
                                     .spec = item->spec,
                                     .found = item->object != NULL,
                                     .unknown = item->is_unknown,
                                     .version = cr_obj_resource_version(item->object)};
    cr_domain_consent_judge(objects, item);
    out->refused = item->refused;
    out->refused_text = item->refused_text;
    view_bundle(objects, item, out);
    if (item->is_leaf) {
        cr_domain_leaf_views(objects, item, out);
        out->bundle_foreign |= cr_domain_keystore_is_stale(objects, item);
    }
    cr_domain_material_read(objects, item);
}

void cr_domain_objects_view(struct cr_domain_objects *objects, struct cr_domain_world *world)
{
    forget(objects);
    collect_cas(objects);
    list_cas(objects);
    objects->views = cr_calloc(objects->items_len + 1, sizeof *objects->views);
    for (size_t i = 0; i < objects->items_len; i++)
        view_item(objects, &objects->items[i], &objects->views[i]);
    world->cas = objects->cas;
    world->cas_len = cr_ca_set_len(objects->set);
    world->issued = objects->issued;
    world->objects = objects->views;
    world->objects_len = objects->items_len;
    world->without_consent = &objects->without_consent;
    world->beyond = (struct cr_domain_beyond){objects->beyond, objects->beyond_example};
    cr_domain_authority_view(objects, &world->authority);
    world->staging_found = objects->staging && cr_domain_staging_is_ours(objects);
}
