#include "trust/controller/domain_world.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "cluster/cache_domains.h"
#include "trust/controller/domain_forecast.h"
#include "trust/controller/covering_policies.h"
#include "kube/object.h"

/* --- namespaces, for the cluster kind --- */

bool cr_domain_consents(const char *annotation, const char *domain)
{
    static const char between[] = ", \t\n";
    for (const char *at = cr_or_empty(annotation) + strspn(cr_or_empty(annotation), between); *at;) {
        size_t len = strcspn(at, between);
        if ((len == 1 && *at == '*') || (len == strlen(domain) && strncmp(at, domain, len) == 0))
            return true;
        at += len;
        at += strspn(at, between);
    }
    return false;
}

static bool consents(void *arg, const char *ns, const char *domain)
{
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_cache_namespace(arg, ns);
    return snapshot && cr_domain_consents(cr_obj_annotation(snapshot->json, CR_DOMAIN_CONSENT), domain);
}

static bool namespace_exists(void *arg, const char *ns)
{
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_cache_namespace(arg, ns);
    return snapshot != NULL;
}

static void select_namespaces(void *arg, const struct cr_selector *selector, struct cr_strvec *names)
{
    cr_cache_select_namespaces(arg, selector, names);
}

static struct cr_domain_reader reader_of(const struct cr_domain_source *source, const struct cr_domain *domain)
{
    struct cr_domain_reader reader = {.client = source->client, .operator_namespace = source->operator_namespace};
    if (!domain->cluster)
        return reader;
    reader.consents = consents;
    reader.namespace_exists = namespace_exists;
    reader.select_namespaces = select_namespaces;
    reader.arg = source->cache;
    return reader;
}

/* --- one object --- */

static bool is_secret(const struct cr_domain_object *object)
{
    return cr_streq(object->kind, cr_trust_target_kind_name(CR_TARGET_SECRET));
}

static bool is_ca_bundle(const struct cr_domain_gathered *gathered, const struct cr_domain_object *object)
{
    return !object->is_leaf && cr_trust_target_is_ca_bundle(gathered->world.domain->targets[object->spec].kind);
}

static bool has_distrusted(const struct cr_domain_gathered *gathered, size_t i)
{
    const struct cr_material *material = cr_domain_objects_material(gathered->objects, i);
    for (size_t k = 0; material && k < material->trust_len; k++)
        if (cr_domain_distrusts(gathered->world.domain, material->trust[k].fingerprint))
            return true;
    return false;
}

/* While a distrusted CA is published and overdue, who reads what no policy covers is waited for no longer than kubelets
 * take. That it is gone from there, time alone does not prove. */
static enum cr_uncovered uncovered(const struct cr_domain_gathered *gathered)
{
    const struct cr_domain_world *world = &gathered->world;
    if (cr_domain_distrust_is_overdue(world->domain, gathered->status, world->now_ms))
        for (size_t i = 0; i < world->objects_len; i++)
            if (has_distrusted(gathered, i))
                return CR_UNCOVERED_DELAY;
    return world->domain->evidence.uncovered;
}

static void judge(struct cr_domain_gathered *gathered, size_t i, const struct cr_covering_policies *covering)
{
    struct cr_domain_object *object = &gathered->list[i];
    const struct cr_domain_object_status *known =
        cr_domain_status_object(gathered->status, object->kind, object->ns, object->name);
    const struct cr_domain_evidence_input input = {
        .secret = is_secret(object) ? object->name : NULL,
        .material = cr_domain_objects_material(gathered->objects, i),
        .written_version = known ? known->written_version : NULL,
        .written_ms = known ? known->written_ms : 0,
        .covering = covering->items,
        .covering_len = covering->len,
        .too_many_cover_it = covering->too_many,
        .is_read_by_api = is_ca_bundle(gathered, object),
        .uncovered = uncovered(gathered),
        .now_ms = gathered->world.now_ms,
    };
    if (!input.material)
        return;
    struct cr_domain_evidence *evidence = &gathered->evidence[i];
    cr_domain_evidence_judge(&input, evidence);
    object->evidence = evidence;
    if (evidence->look_again_ms && (!gathered->look_again_ms || evidence->look_again_ms < gathered->look_again_ms))
        gathered->look_again_ms = evidence->look_again_ms;
}

/* As cr_material.key_type has it. */
static const char *type_of_key(const struct cr_key_spec *key)
{
    switch (key->algorithm) {
    case CR_KEY_RSA:
        return key->size == 4096 ? "RSA-4096" : key->size == 3072 ? "RSA-3072" : "RSA-2048";
    case CR_KEY_ECDSA:
        return key->size == 384 ? "ECDSA-P384" : "ECDSA-P256";
    case CR_KEY_ED25519:
        return "Ed25519";
    }
    return NULL;
}

/* Of the leaf that is to be published; NULL: not known. */
static const char *wanted_key_type(const struct cr_domain_gathered *gathered, size_t i)
{
    const struct cr_domain_leaf *leaf = &gathered->world.domain->leaves[gathered->list[i].spec];
    if (leaf->source == CR_LEAF_ISSUE)
        return type_of_key(&leaf->key);
    const struct cr_material *source = cr_domain_objects_source(gathered->objects, i);
    return source && source->has_leaf ? source->key_type : NULL;
}

/* Takes words. */
static void refuse(struct cr_domain_gathered *gathered, size_t i, enum cr_trust_reason reason, char *words)
{
    cr_strvec_add(&gathered->words, words);
    free(words);
    gathered->list[i].refused = reason;
    gathered->list[i].refused_text = gathered->words.items[gathered->words.len - 1];
}

/* It may be written, but not with every bundle. */
static void keep(struct cr_domain_gathered *gathered, size_t i, enum cr_trust_reason reason, const char *words)
{
    cr_strvec_add(&gathered->words, words);
    gathered->list[i].kept = reason;
    gathered->list[i].kept_text = gathered->words.items[gathered->words.len - 1];
}

enum {
    OWN_LEAF = CR_ROLE_BIT(CR_ROLE_SERVER_LEAF) | CR_ROLE_BIT(CR_ROLE_CLIENT_LEAF),
    LEAF_OF_PEER = CR_ROLE_BIT(CR_ROLE_CLIENT_CA) | CR_ROLE_BIT(CR_ROLE_SERVER_CA),
};

/* Of one object. */
static void find_covering(const struct cr_domain_source *source, const struct cr_domain_gathered *gathered, size_t i,
                          struct cr_covering_policies *out)
{
    const struct cr_domain_object *object = &gathered->list[i];
    if (is_secret(object))
        cr_covering_policies_gather(source->cache, object->ns, object->name, out);
}

/* Of the consumers of one object. Owned; NULL: nothing is known against it. */
static char *refusal_of_readers(const struct cr_domain_source *source, const struct cr_domain_gathered *gathered,
                                size_t i, const char *type, unsigned roles)
{
    CR_CLEANUP(cr_covering_policies) struct cr_covering_policies covering = {0};
    find_covering(source, gathered, i, &covering);
    if (covering.too_many)
        return cr_asprintf(
            "more than %zu CertRotationPolicies cover %s/%s, and not all of them are asked whether their "
            "software takes a key of type %s: delete some",
            covering.len, gathered->list[i].ns, gathered->list[i].name, type);
    return cr_covering_policies_refuse_key(&covering, source->cache, source->catalogue, gathered->list[i].name, type,
                                           roles);
}

/* Whoever has the domain's bundle may meet any of its leaves. Asked once for each type; borrowed, "": all take it. */
static const char *refusal_of_peers(const struct cr_domain_source *source, struct cr_domain_gathered *gathered,
                                    const char *type)
{
    char *refusal = cr_strmap_get(gathered->peers, type);
    if (refusal)
        return refusal;
    for (size_t i = 0; !refusal && i < gathered->world.objects_len; i++)
        refusal = refusal_of_readers(source, gathered, i, type, LEAF_OF_PEER);
    refusal = refusal ? refusal : cr_strdup("");
    cr_strmap_set(gathered->peers, type, refusal);
    return refusal;
}

/* Owned; NULL: nothing is known against it. */
static char *refusal_of_key(const struct cr_domain_source *source, struct cr_domain_gathered *gathered, size_t i,
                            const char *type)
{
    char *own = refusal_of_readers(source, gathered, i, type, OWN_LEAF);
    const char *peers = own ? "" : refusal_of_peers(source, gathered, type);
    return own ? own : *peers ? cr_strdup(peers) : NULL;
}

/* Asked before it is published, and only of a type that is not published already. */
static void check_key(const struct cr_domain_source *source, struct cr_domain_gathered *gathered, size_t i)
{
    const struct cr_domain_object *object = &gathered->list[i];
    const struct cr_material *published = cr_domain_objects_material(gathered->objects, i);
    const char *type = object->is_leaf ? wanted_key_type(gathered, i) : NULL;
    if (!type || object->refused || (published && cr_streq(published->key_type, type)))
        return;
    char *refusal = refusal_of_key(source, gathered, i, type);
    if (refusal)
        refuse(gathered, i, CR_TRUST_KEY_NOT_ACCEPTED, refusal);
}

char *cr_domain_refused_key(const struct cr_domain *domain, const struct cr_domain_object *object)
{
    return cr_asprintf("%s/%s/refused/%s/%s/%s", cr_or_empty(domain->ns), domain->name, object->kind,
                       cr_or_empty(object->ns), object->name);
}

char *cr_domain_wrote_key(const struct cr_domain *domain, const struct cr_domain_object *object)
{
    return cr_asprintf("%s/%s/wrote/%s/%s/%s", cr_or_empty(domain->ns), domain->name, object->kind,
                       cr_or_empty(object->ns), object->name);
}

static void recall_refusal(const struct cr_domain_source *source, struct cr_domain_gathered *gathered, size_t i)
{
    cr_autofree char *key = cr_domain_refused_key(gathered->world.domain, &gathered->list[i]);
    CR_CLEANUP(cr_note) struct cr_note note = cr_memory_note(source->memory, key);
    if (gathered->list[i].refused || !note.reason || cr_clock_monotonic_ms() - note.at_ms >= CR_DOMAIN_REFUSED_MS)
        return;
    enum cr_trust_reason reason = (enum cr_trust_reason)note.reason;
    if (reason == CR_TRUST_WOULD_CUT_OFF || reason == CR_TRUST_BUNDLE_TOO_COSTLY)
        keep(gathered, i, reason, note.text);
    else
        refuse(gathered, i, reason, cr_strdup(note.text));
}

/* A bundle that is not put right can be an outage, so it is written again. */
static void note_contested(struct cr_domain_gathered *gathered, size_t i, const char *writer)
{
    cr_autofree char *title = cr_domain_object_title(&gathered->list[i]);
    cr_autofree char *text = cr_asprintf("'%.200s' overwrites what is published in %s, and certroll puts it right each "
                                         "time: let only one of both write it",
                                         cr_or_empty(writer), title);
    cr_strvec_add(&gathered->words, text);
    gathered->list[i].contested_text = gathered->words.items[gathered->words.len - 1];
}

static void refuse_other_writer(struct cr_domain_gathered *gathered, size_t i, const char *writer, int64_t until_ms)
{
    const struct cr_domain_object *object = &gathered->list[i];
    char when[CR_TIME_TEXT];
    cr_time_format(until_ms, when);
    cr_autofree char *title = cr_domain_object_title(object);
    refuse(
        gathered, i, CR_TRUST_OTHER_WRITER,
        cr_trust_problem_text(CR_TRUST_OTHER_WRITER,
                              &(struct cr_trust_about){.object = title, .owner = cr_or_empty(writer), .detail = when}));
}

/* Whoever writes back what another program has just written begins a war that ends at an issuer's rate limit. */
static void look_for_other_writer(const struct cr_domain_source *source, struct cr_domain_gathered *gathered, size_t i)
{
    struct cr_domain_object *object = &gathered->list[i];
    const struct cr_domain_object_status *known =
        cr_domain_status_object(gathered->status, object->kind, object->ns, object->name);
    if (!known || object->refused || !object->found)
        return;
    if (!cr_domain_is_as_recorded(&gathered->world, object, known)) {
        cr_autofree char *key = cr_domain_wrote_key(gathered->world.domain, object);
        CR_CLEANUP(cr_note) struct cr_note wrote = cr_memory_note(source->memory, key);
        const char *own_content = cr_streq(wrote.about, known->written_version) ? wrote.text : NULL;
        cr_autofree char *writer =
            cr_domain_objects_other_writer(gathered->objects, i, known->written_version, own_content);
        if (writer) {
            cr_strvec_add(&gathered->words, writer);
            object->changed_by = gathered->words.items[gathered->words.len - 1];
        }
    }
    int64_t until_ms = cr_domain_other_writer_until_ms(&gathered->world, known);
    if (!until_ms)
        return;
    if (object->is_leaf)
        refuse_other_writer(gathered, i, known->overwritten_by, until_ms);
    else
        note_contested(gathered, i, known->overwritten_by);
    int64_t left_ms = until_ms - gathered->world.now_ms;
    if (!gathered->look_again_ms || left_ms < gathered->look_again_ms)
        gathered->look_again_ms = left_ms;
}

static void look_at(const struct cr_domain_source *source, struct cr_domain_gathered *gathered, size_t i,
                    struct cr_domain_forecast_sum *sum)
{
    const struct cr_domain_object *object = &gathered->list[i];
    CR_CLEANUP(cr_covering_policies) struct cr_covering_policies covering = {0};
    find_covering(source, gathered, i, &covering);
    judge(gathered, i, &covering);
    recall_refusal(source, gathered, i);
    look_for_other_writer(source, gathered, i);
    gathered->trust_under_way = gathered->trust_under_way || cr_covering_policies_await_trust(&covering, object->name);
    cr_domain_forecast_add(sum, &covering, is_ca_bundle(gathered, object));
}

/* --- all of it --- */

static void add_secret(struct cr_strvec *secrets, const char *ns, const char *name)
{
    cr_autofree char *key = ns && name ? cr_asprintf("%s/%s", ns, name) : NULL;
    if (key)
        cr_strvec_add_unique(secrets, key);
}

static void list_secrets(const struct cr_domain_source *source, struct cr_domain_gathered *gathered)
{
    const struct cr_domain *domain = gathered->world.domain;
    cr_strvec_dispose(&gathered->secrets);
    for (size_t i = 0; i < gathered->world.objects_len; i++)
        if (is_secret(&gathered->list[i]))
            add_secret(&gathered->secrets, gathered->list[i].ns, gathered->list[i].name);
    for (size_t i = 0; i < domain->leaves_len; i++) {
        const struct cr_domain_leaf *leaf = &domain->leaves[i];
        add_secret(&gathered->secrets, leaf->ns, leaf->mirror);
        add_secret(&gathered->secrets, leaf->ns, leaf->keystore.set ? leaf->keystore.password_secret : NULL);
    }
    if (domain->authority == CR_AUTHORITY_ISSUE)
        add_secret(&gathered->secrets, domain->cluster ? source->operator_namespace : domain->ns, domain->ca.ca_secret);
}

static void forget_views(struct cr_domain_gathered *gathered)
{
    for (size_t i = 0; gathered->list && i < gathered->world.objects_len; i++)
        cr_domain_evidence_dispose(&gathered->evidence[i]);
    free(gathered->evidence);
    cr_strmap_free(gathered->peers);
    free(gathered->list);
    cr_strvec_dispose(&gathered->words);
    gathered->evidence = NULL;
    gathered->peers = NULL;
    gathered->list = NULL;
    gathered->look_again_ms = 0;
    gathered->trust_under_way = false;
}

void cr_domain_world_refresh(const struct cr_domain_source *source, struct cr_domain_gathered *gathered)
{
    struct cr_domain_world *world = &gathered->world;
    forget_views(gathered);
    cr_domain_objects_view(gathered->objects, world);
    world->now_ms = cr_clock_wall_ms();
    gathered->list = cr_calloc(world->objects_len, sizeof *gathered->list);
    gathered->evidence = cr_calloc(world->objects_len, sizeof *gathered->evidence);
    gathered->peers = cr_strmap_new(free);
    for (size_t i = 0; i < world->objects_len; i++)
        gathered->list[i] = world->objects[i];
    world->objects = gathered->list;
    struct cr_domain_forecast_sum sum = {0};
    for (size_t i = 0; i < world->objects_len; i++)
        look_at(source, gathered, i, &sum);
    for (size_t i = 0; i < world->objects_len; i++)
        check_key(source, gathered, i);
    list_secrets(source, gathered);
    cr_domain_forecast_make(world, &sum, &world->forecast);
    cr_domain_forecast_sum_dispose(&sum);
}

bool cr_domain_world_gather(const struct cr_domain_source *source, const struct cr_domain *domain,
                            struct cr_domain_status *status, struct cr_domain_gathered *out, struct cr_error *err)
{
    if (domain->cluster && !cr_cache_namespaces_known(source->cache, err))
        return false;
    const struct cr_domain_reader reader = reader_of(source, domain);
    *out = (struct cr_domain_gathered){.world = {.domain = domain, .status = status}, .status = status};
    cr_domain_status_copy(&out->known, status);
    out->objects = cr_domain_objects_read(&reader, domain, &out->known, cr_clock_wall_ms(), err);
    if (!out->objects)
        return false;
    cr_domain_world_refresh(source, out);
    return true;
}

void cr_domain_world_dispose(struct cr_domain_gathered *gathered)
{
    forget_views(gathered);
    cr_domain_objects_free(gathered->objects);
    cr_domain_status_dispose(&gathered->known);
    cr_strvec_dispose(&gathered->secrets);
    *gathered = (struct cr_domain_gathered){0};
}
