/* A leaf that is published or to be published, as the rules see it; why it cannot be used. */
#include "base/alloc.h"
#include "base/strings.h"
#include "trust/controller/domain_objects_internal.h"
#include "kube/object.h"
#include "trust/rules/leaf_spec.h"

enum { CLOCK_SKEW_MS = 5 * 60 * 1000 };

static void forget_leaf(struct cr_leaf_memory *memory)
{
    free(memory->verifies);
    free(memory->problem);
    *memory = (struct cr_leaf_memory){0};
}

void cr_domain_item_forget_view(struct cr_domain_item *item)
{
    free(item->refused_text);
    free(item->bundle);
    forget_leaf(&item->published);
    forget_leaf(&item->mirrored);
    forget_leaf(&item->previous);
    free(item->issued_for);
    free(item->token);
    free(item->costly_trust);
    cr_material_dispose(&item->material);
    cr_material_dispose(&item->source_material);
    item->refused = CR_TRUST_FINE;
    item->refused_text = item->issued_for = item->token = item->costly_trust = NULL;
    item->bundle = NULL;
    item->has_material = item->has_source = false;
}

/* --- one leaf --- */

/* Where a leaf stands, and what is made of it. */
struct place {
    const struct cr_domain_objects *objects;
    struct cr_leaf_memory *memory;
    struct cr_domain_leaf_view *out;
};

/* The first problem is the one that is reported. Takes words. */
static void refuse(const struct place *place, enum cr_trust_reason reason, char *words)
{
    if (place->out->problem) {
        free(words);
        return;
    }
    place->memory->problem = words;
    place->out->problem_text = words;
    place->out->problem = reason;
}

static bool parse(const struct cr_domain_objects *objects, const struct cr_stored_leaf *leaf, bool with_trust,
                  struct cr_material *out, enum cr_material_problem *problem, struct cr_error *err)
{
    struct cr_material_input in = {.certificate = cr_entry_pem(&leaf->certificate),
                                   .private_key = cr_entry_pem(&leaf->key)};
    if (with_trust)
        in.trust = cr_entry_pem(&leaf->trust);
    return cr_material_parse(&in, objects->now_ms, out, problem, err);
}

static void note_problem(const struct place *place, enum cr_material_problem problem, const struct cr_error *err)
{
    refuse(place, cr_trust_reason_of_material(problem), cr_strdup(err->text));
}

/* CAs at hand that others have brought can make it so. A leaf that is too costly by itself is that of whoever put it
 * there, and one that has ended is verified by nobody. */
static bool is_made_costly(const struct place *place)
{
    return place->out->fingerprint[0] && place->out->problem != CR_TRUST_MATERIAL_TOO_COSTLY &&
           place->out->not_after_ms > place->objects->now_ms;
}

static void note_facts(const struct place *place, const struct cr_pem_input *chain)
{
    struct cr_chain_facts facts;
    struct cr_error err = {0};
    bool known =
        cr_ca_set_verify(place->objects->set, chain, place->objects->now_ms, &facts, place->memory->verifies, &err);
    memcpy(place->out->fingerprint, facts.fingerprint, sizeof facts.fingerprint);
    place->out->not_before_ms = facts.not_before_ms;
    place->out->not_after_ms = facts.not_after_ms;
    if (known || !is_made_costly(place))
        return;
    place->out->costly = place->memory->costly = true;
    refuse(place, CR_TRUST_MATERIAL_TOO_COSTLY,
           cr_asprintf("it cannot be determined which CAs at hand its certificate verifies against: %s", err.text));
}

static void begin(const struct place *place)
{
    const struct cr_domain_objects *objects = place->objects;
    if (!place->memory->verifies)
        place->memory->verifies = cr_calloc(cr_ca_set_len(objects->set) + 1, sizeof *place->memory->verifies);
    place->out->verifies = place->memory->verifies;
}

static bool verifies_now(const struct place *place)
{
    const struct cr_domain_objects *objects = place->objects;
    for (size_t i = 0; i < cr_ca_set_len(objects->set); i++) {
        const struct cr_ca_facts *ca = cr_ca_set_facts(objects->set, i);
        if (place->memory->verifies[i] && ca->not_after_ms > objects->now_ms &&
            ca->not_before_ms <= objects->now_ms + CLOCK_SKEW_MS)
            return true;
    }
    return false;
}

/* A leaf may only be published if it verifies against a CA that can be published with it. */
static void demand_ca(const struct place *place, const struct cr_pem_input *chain)
{
    if (place->out->problem || verifies_now(place))
        return;
    if (cr_ca_set_knows_issuer(place->objects->set, chain))
        refuse(place, CR_TRUST_NO_CA, cr_strdup("the CA of its certificate has expired, or is not valid yet"));
    else
        refuse(place, CR_TRUST_NO_CA,
               cr_strdup("its certificate verifies against no CA at hand: put its CA into ca.crt there"));
}

static void view_leaf(const struct place *place, const struct cr_stored_leaf *leaf, bool demands_ca)
{
    struct cr_material material;
    enum cr_material_problem problem;
    struct cr_error err = {0};
    const struct cr_pem_input chain = cr_entry_pem(&leaf->certificate);
    begin(place);
    place->out->found = true;
    if (parse(place->objects, leaf, false, &material, &problem, &err))
        cr_material_dispose(&material);
    else
        note_problem(place, problem, &err);
    if (!chain.data)
        return;
    note_facts(place, &chain);
    if (demands_ca)
        demand_ca(place, &chain);
}

/* --- where leaves are --- */

/* A source that cannot be used brings no CAs; one that has only expired, or is not valid yet, does. */
void cr_domain_source_read(struct cr_domain_objects *objects, struct cr_domain_item *item)
{
    if (!item->source)
        return;
    CR_CLEANUP(cr_stored_leaf) struct cr_stored_leaf leaf = {0};
    enum cr_material_problem problem;
    struct cr_error err = {0};
    cr_stored_leaf_read(item->source, &leaf);
    item->has_source = parse(objects, &leaf, true, &item->source_material, &problem, NULL);
    const struct cr_pem_input trust = cr_entry_pem(&leaf.trust);
    if (!trust.len || (!item->has_source && problem != CR_MATERIAL_EXPIRED && problem != CR_MATERIAL_NOT_YET))
        return;
    if (!cr_ca_set_affords(&trust, &err))
        item->costly_trust = cr_asprintf("ca.crt: %s", err.text);
    if (item->costly_trust || !cr_ca_set_add(objects->set, &trust, NULL, NULL))
        item->has_source = false;
}

/* The CAs to trust for a source: those in its ca.crt, and if its leaf verifies against none of them, those that it
 * verifies against. */
static void note_source_cas(struct cr_domain_objects *objects, const struct cr_domain_item *item,
                            const struct cr_stored_leaf *leaf)
{
    size_t len = cr_ca_set_len(objects->set);
    const struct cr_pem_input trust = cr_entry_pem(&leaf->trust);
    cr_autofree bool *has = cr_calloc(len + 1, sizeof *has);
    bool enough = false;
    (void)cr_ca_set_compare(objects->set, &trust, has);
    for (size_t i = 0; i < len; i++)
        enough |= has[i] && item->mirrored.verifies[i];
    for (size_t i = 0; i < len; i++)
        if (has[i] || (!enough && item->mirrored.verifies[i]))
            objects->cas[i].in_source = true;
}

static void view_source(struct cr_domain_objects *objects, struct cr_domain_item *item, struct cr_domain_leaf_view *out)
{
    const struct place place = {objects, &item->mirrored, out};
    begin(&place);
    if (item->source_unread)
        refuse(&place, CR_TRUST_CANNOT_READ, cr_strdup(item->source_unread));
    if (!item->source)
        return;
    CR_CLEANUP(cr_stored_leaf) struct cr_stored_leaf leaf = {0};
    struct cr_material material;
    enum cr_material_problem problem;
    struct cr_error err = {0};
    cr_stored_leaf_read(item->source, &leaf);
    if (!parse(objects, &leaf, true, &material, &problem, &err))
        note_problem(&place, problem, &err);
    else if (!material.has_leaf)
        refuse(&place, CR_TRUST_INCOMPLETE, cr_strdup("there is no certificate in tls.crt"));
    else if (item->costly_trust)
        refuse(&place, CR_TRUST_MATERIAL_TOO_COSTLY, cr_strdup(item->costly_trust));
    cr_material_dispose(&material);
    view_leaf(&place, &leaf, true);
    note_source_cas(objects, item, &leaf);
}

static void view_previous(struct cr_domain_objects *objects, struct cr_domain_item *item,
                          struct cr_domain_leaf_view *out)
{
    cr_autofree char *what = cr_domain_staging_previous(cr_domain_item_leaf(objects, item));
    const struct place place = {objects, &item->previous, out};
    CR_CLEANUP(cr_stored_leaf) struct cr_stored_leaf leaf = {0};
    cr_domain_staging_leaf(objects, what, &leaf);
    begin(&place);
    if (leaf.certificate.found || leaf.key.found)
        view_leaf(&place, &leaf, true);
}

static void view_published(struct cr_domain_objects *objects, struct cr_domain_item *item,
                           struct cr_domain_leaf_view *out)
{
    const struct place place = {objects, &item->published, out};
    CR_CLEANUP(cr_stored_leaf) struct cr_stored_leaf leaf = {0};
    cr_stored_leaf_read(item->object, &leaf);
    begin(&place);
    if (cr_domain_owns(objects, item->object) && leaf.certificate.bytes.len)
        view_leaf(&place, &leaf, false);
}

/* NULL also where the object's annotations are about another leaf than the one it has. */
static char *annotation_of_leaf(const struct cr_domain_item *item, const struct cr_domain_leaf_view *published,
                                const char *name)
{
    const char *of = cr_obj_annotation(item->object, CR_DOMAIN_LEAF);
    bool is_of_another = of && !cr_streq(of, published->fingerprint);
    return is_of_another ? NULL : cr_strdup_or_null(cr_obj_annotation(item->object, name));
}

void cr_domain_leaf_views(struct cr_domain_objects *objects, struct cr_domain_item *item, struct cr_domain_object *out)
{
    const struct cr_domain_leaf *spec = cr_domain_item_leaf(objects, item);
    view_published(objects, item, &out->published);
    view_source(objects, item, &out->source);
    view_previous(objects, item, &out->previous);
    item->issued_for = annotation_of_leaf(item, &out->published, CR_DOMAIN_ISSUED_FOR);
    item->token = annotation_of_leaf(item, &out->published, CR_DOMAIN_TOKEN);
    out->issued_for = item->issued_for;
    out->token = item->token;
    if (spec->source == CR_LEAF_ISSUE) {
        cr_leaf_spec_digest(spec, item->wanted_for);
        out->wanted_for = item->wanted_for;
    }
}

/* --- digests --- */

static void read_leaf_material(const struct cr_domain_objects *objects, struct cr_domain_item *item)
{
    CR_CLEANUP(cr_stored_leaf) struct cr_stored_leaf leaf = {0};
    enum cr_material_problem problem;
    cr_stored_leaf_read(item->object, &leaf);
    item->has_material = parse(objects, &leaf, true, &item->material, &problem, NULL);
    if (item->has_material || !leaf.trust.found)
        return;
    cr_entry_dispose(&leaf.certificate);
    cr_entry_dispose(&leaf.key);
    item->has_material = parse(objects, &leaf, true, &item->material, &problem, NULL);
}

static void read_trust_material(const struct cr_domain_objects *objects, struct cr_domain_item *item)
{
    size_t len = 0;
    enum cr_material_problem problem;
    struct cr_entry *entries = cr_domain_bundles_read(objects, item, &len);
    bool same = len > 0 && entries[0].found;
    for (size_t i = 1; i < len; i++)
        same = same && cr_streq(cr_buf_text(&entries[i].bytes), cr_buf_text(&entries[0].bytes));
    if (same) {
        const struct cr_material_input in = {.trust = cr_entry_pem(&entries[0])};
        item->has_material = cr_material_parse(&in, objects->now_ms, &item->material, &problem, NULL);
    }
    cr_domain_bundles_free(entries, len);
}

void cr_domain_material_read(const struct cr_domain_objects *objects, struct cr_domain_item *item)
{
    if (!cr_domain_owns(objects, item->object))
        return;
    if (item->is_leaf)
        read_leaf_material(objects, item);
    else
        read_trust_material(objects, item);
}
