/* A TrustDomain that mirrors its leaves: the real view, plan and writes, over a store in the place of the API server
 * (the linker puts the functions below in the place of the client's). Everything that is published has always arrived
 * and is trusted: so each step is played to its end, and what is cut off is cut off by the bundle alone. */
#include "game.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "codec/base64.h"
#include "codec/yaml.h"
#include "kube/entry.h"
#include "trust/controller/domain_objects.h"
#include "kube/object.h"

enum { OBJECTS_MAX = 3 * GAME_SECRETS_MAX, ROUNDS = 16 };

#define NS     "ns"
#define TARGET "trust"

/* --- the store --- */

static struct stored {
    char *path;
    struct cr_json *object;
} stored[OBJECTS_MAX];
static long version;

static struct stored *find_path(const char *path)
{
    for (size_t i = 0; i < OBJECTS_MAX; i++)
        if (cr_streq(stored[i].path, path))
            return &stored[i];
    return NULL;
}

static struct stored *find_stored(const struct cr_resource *resource, const char *ns, const char *name)
{
    cr_autofree char *path = cr_resource_path(resource, ns, name, NULL);
    return find_path(path);
}

static void stamp(struct cr_json *object)
{
    char text[32];
    struct cr_json *metadata = cr_json_object_in(object, "metadata");
    snprintf(text, sizeof text, "%ld", ++version);
    if (!cr_json_get(metadata, "uid"))
        cr_json_set_string(metadata, "uid", text);
    cr_json_set_string(metadata, "resourceVersion", text);
}

static void remove_stored(struct stored *one)
{
    if (!one)
        return;
    free(one->path);
    cr_json_free_secret(one->object);
    *one = (struct stored){0};
}

/* Takes path and object. */
static struct cr_json *store(char *path, struct cr_json *object)
{
    size_t i = 0;
    remove_stored(find_path(path));
    while (i < OBJECTS_MAX && stored[i].path)
        i++;
    game_must(i < OBJECTS_MAX);
    stamp(object);
    stored[i] = (struct stored){path, object};
    return cr_json_copy(object);
}

/* RFC 7386. */
static void merge(struct cr_json *target, const struct cr_json *patch)
{
    for (const struct cr_json *member = cr_json_first(patch); member; member = cr_json_next(member)) {
        const char *key = cr_json_key(member);
        if (cr_json_is_null(member))
            cr_json_remove(target, key);
        else if (cr_json_is_object(member))
            merge(cr_json_object_in(target, key), member);
        else
            cr_json_set(target, key, cr_json_copy(member));
    }
}

/* --- in the place of the client --- */

struct cr_json *__wrap_cr_client_get(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                                     const char *name, struct cr_error *err);
struct cr_json *__wrap_cr_client_get(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                                     const char *name, struct cr_error *err)
{
    (void)client;
    struct stored *found = find_stored(resource, ns, name);
    if (!found)
        cr_error_set(err, CR_ERR_NOT_FOUND, "%s is not there", name);
    return found ? cr_json_copy(found->object) : NULL;
}

struct cr_json *__wrap_cr_client_create(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                                        const struct cr_json *object, struct cr_error *err);
struct cr_json *__wrap_cr_client_create(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                                        const struct cr_json *object, struct cr_error *err)
{
    (void)client;
    (void)err;
    const char *name = cr_json_string_at(object, "metadata", "name");
    return store(cr_resource_path(resource, ns, name, NULL), cr_json_copy(object));
}

struct cr_json *__wrap_cr_client_merge_patch(struct cr_client *client, const struct cr_resource *resource,
                                             const char *ns, const char *name, const char *subresource,
                                             const struct cr_json *patch, struct cr_error *err);
struct cr_json *__wrap_cr_client_merge_patch(struct cr_client *client, const struct cr_resource *resource,
                                             const char *ns, const char *name, const char *subresource,
                                             const struct cr_json *patch, struct cr_error *err)
{
    (void)client;
    (void)subresource;
    (void)err;
    struct stored *found = find_stored(resource, ns, name);
    game_must(found);
    merge(found->object, patch);
    stamp(found->object);
    return cr_json_copy(found->object);
}

bool __wrap_cr_client_delete(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                             const char *name, const struct cr_delete_options *options, struct cr_error *err);
bool __wrap_cr_client_delete(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                             const char *name, const struct cr_delete_options *options, struct cr_error *err)
{
    (void)client;
    (void)options;
    (void)err;
    remove_stored(find_stored(resource, ns, name));
    return true;
}

/* --- what the owners of the sources write --- */

static void put_entry(struct cr_json *data, const char *key, const char *text)
{
    if (*cr_or_empty(text))
        cr_entry_put(data, key, text, strlen(text));
}

static void put_source(const struct game_secret *secret)
{
    cr_autofree char *name = cr_asprintf("issued-%s", secret->name);
    if (cr_streq(secret->chain, "-")) {
        remove_stored(find_stored(&cr_res_secrets, NS, name));
        return;
    }
    char leaf[GAME_TEXT];
    snprintf(leaf, sizeof leaf, "%s", secret->chain);
    leaf[strcspn(leaf, ",")] = '\0';
    struct cr_json *object = cr_json_new_object();
    struct cr_json *data = cr_json_object_in(object, "data");
    cr_autofree char *chain = game_pem_of(secret->chain);
    put_entry(data, "tls.crt", chain);
    put_entry(data, "tls.key", game_key_pem(game_cert_find(leaf)->key));
    put_entry(data, "ca.crt", secret->trust);
    cr_resource_stamp(&cr_res_secrets, object);
    cr_json_set_string(cr_json_object_in(object, "metadata"), "name", name);
    cr_json_free_secret(store(cr_resource_path(&cr_res_secrets, NS, name, NULL), object));
}

/* --- the domain --- */

struct game_domain {
    struct cr_domain *domain;
    struct cr_domain_status status;
};

void game_domain_free(struct game_domain *domain)
{
    if (!domain)
        return;
    for (size_t i = 0; i < OBJECTS_MAX; i++)
        remove_stored(&stored[i]);
    cr_domain_free(domain->domain);
    cr_domain_status_dispose(&domain->status);
    free(domain);
}

static struct game_domain *domain_new(const struct game *game)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_buf) struct cr_buf text = {0};
    cr_buf_printf(&text,
                  "{apiVersion: certroll.dev/v1alpha1, kind: TrustDomain, metadata: {name: mesh, namespace: " NS
                  ", uid: domain-uid, resourceVersion: '1', generation: 1},\nspec: {retainPrevious: %d, retire: %s, "
                  "trustTargets: [{kind: ConfigMap, name: " TARGET "}], leaves: [",
                  game->retain, cr_ends_with(game->path, "-converged") ? "Converged" : "NextRotation");
    for (size_t i = 0; i < game->secrets_len; i++)
        cr_buf_printf(&text, "%s{name: %s, source: {type: Mirror, mirror: {secretName: issued-%s}}}", i ? ", " : "",
                      game->secrets[i].name, game->secrets[i].name);
    cr_buf_puts(&text, "]}}");
    CR_CLEANUP(cr_json) struct cr_json *object = cr_yaml_parse(text.data, text.len, &err);
    struct game_domain *made = cr_new(struct game_domain);
    made->domain = object ? cr_domain_decode(object, &err) : NULL;
    if (!made->domain)
        fprintf(stderr, "bundle_driver: %s\n", err.text);
    game_must(made->domain);
    return made;
}

/* --- what is published, and known --- */

static char *entry_text(const struct cr_json *object, bool is_secret, const char *key)
{
    CR_CLEANUP(cr_entry) struct cr_entry entry = {0};
    if (object)
        cr_entry_read(object, is_secret, key, &entry);
    return cr_strdup(cr_buf_text(&entry.bytes));
}

static char *bundle_of(const struct cr_domain_object *object)
{
    bool is_secret = cr_streq(object->kind, cr_res_secrets.kind);
    struct stored *found = find_stored(is_secret ? &cr_res_secrets : &cr_res_configmaps, object->ns, object->name);
    return entry_text(found ? found->object : NULL, is_secret, "ca.crt");
}

static void add_chain(const char *pem, char out[GAME_TEXT])
{
    char names[GAME_TEXT];
    size_t used = strlen(out);
    game_names_of(pem, names);
    if (!cr_streq(names, "-"))
        game_must((size_t)snprintf(out + used, GAME_TEXT - used, "%s%s", used ? ";" : "", names) < GAME_TEXT - used);
}

/* In sources, published, and in staging: certificates of any Secret that have a leaf in front. */
static void known_leaves(char out[GAME_TEXT])
{
    out[0] = '\0';
    for (size_t i = 0; i < OBJECTS_MAX; i++) {
        const struct cr_json *data = stored[i].object ? cr_json_get(stored[i].object, "data") : NULL;
        for (const struct cr_json *entry = cr_json_first(data); entry; entry = cr_json_next(entry)) {
            if (!cr_ends_with(cr_json_key(entry), ".crt") || cr_streq(cr_json_key(entry), "ca.crt"))
                continue;
            cr_autofree char *text = entry_text(stored[i].object, true, cr_json_key(entry));
            add_chain(text, out);
        }
    }
    if (!*out)
        snprintf(out, GAME_TEXT, "-");
}

/* --- one reconcile --- */

static void arrive(const struct cr_domain_world *world, struct cr_domain_object *objects,
                   struct cr_domain_evidence *evidence)
{
    for (size_t i = 0; i < world->objects_len; i++) {
        objects[i] = world->objects[i];
        if (!objects[i].found)
            continue;
        evidence[i] = (struct cr_domain_evidence){.trust = CR_ARRIVAL_VERIFIED, .leaf = CR_ARRIVAL_VERIFIED};
        for (size_t ca = 0; ca < world->cas_len; ca++)
            if (objects[i].bundle[ca])
                cr_strvec_add(&evidence[i].trusted, world->cas[ca].fingerprint);
        objects[i].evidence = &evidence[i];
    }
}

static void wanted_cas(const struct cr_domain_world *world, const struct cr_domain_write *write, char out[GAME_TEXT])
{
    size_t used = 0;
    snprintf(out, GAME_TEXT, "-");
    for (size_t i = 0; i < world->cas_len; i++) {
        if (!write->bundle[i])
            continue;
        used += (size_t)snprintf(out + used, GAME_TEXT - used, "%s%s", used ? "," : "",
                                 game_name_of(world->cas[i].fingerprint));
        game_must(used < GAME_TEXT);
    }
}

/* What pods of a leaf's Secret show from now on; of what is not a leaf's, nothing. */
static void tell_served(const struct cr_domain_object *object)
{
    char names[GAME_TEXT];
    struct stored *found =
        cr_streq(object->kind, cr_res_secrets.kind) ? find_stored(&cr_res_secrets, object->ns, object->name) : NULL;
    cr_autofree char *text = entry_text(found ? found->object : NULL, true, "tls.crt");
    game_names_of(text, names);
    if (!cr_streq(names, "-"))
        printf("served %s\n", names);
}

static void write_one(struct cr_domain_objects *objects, const struct cr_domain_world *world,
                      const struct cr_domain_write *write, bool *wrote)
{
    struct cr_error err = {0};
    char leaves[GAME_TEXT];
    char wanted[GAME_TEXT];
    CR_CLEANUP(cr_domain_written) struct cr_domain_written made = {0};
    const struct cr_domain_object *object = &world->objects[write->object];
    known_leaves(leaves);
    wanted_cas(world, write, wanted);
    cr_autofree char *before = bundle_of(object);
    if (!cr_domain_objects_write(objects, write, world->now_ms, &made, &err)) {
        printf("refused %s\n", err.text);
        return;
    }
    *wrote = true;
    cr_autofree char *after = bundle_of(object);
    if (!cr_streq(before, after))
        game_tell(object->name, before, after, leaves, wanted);
    tell_served(object);
}

static bool act(struct cr_domain_objects *objects, const struct cr_domain_world *world,
                const struct cr_domain_plan *plan)
{
    bool wrote = false;
    struct cr_error err = {0};
    for (size_t i = 0; i < plan->writes_len; i++)
        write_one(objects, world, &plan->writes[i], &wrote);
    if (!plan->writes_len && plan->delete_staging)
        wrote = cr_domain_objects_delete_staging(objects, &err);
    return wrote;
}

static bool reconcile(struct game *game)
{
    struct cr_error err = {0};
    struct game_domain *own = game->domain;
    const struct cr_domain_reader reader = {.operator_namespace = "operator"};
    struct cr_domain_world world = {.domain = own->domain, .status = &own->status, .now_ms = game->now_ms};
    CR_CLEANUP(cr_domain_objects)
    struct cr_domain_objects *objects = cr_domain_objects_read(&reader, own->domain, &own->status, game->now_ms, &err);
    game_must(objects);
    cr_domain_objects_view(objects, &world);
    cr_autofree struct cr_domain_object *seen = cr_calloc(world.objects_len, sizeof *seen);
    cr_autofree struct cr_domain_evidence *evidence = cr_calloc(world.objects_len, sizeof *evidence);
    arrive(&world, seen, evidence);
    world.objects = seen;
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    cr_domain_plan_make(&world, &plan);
    bool wrote = act(objects, &world, &plan);
    cr_domain_status_copy(&own->status, &plan.status);
    for (size_t i = 0; i < world.objects_len; i++)
        cr_domain_evidence_dispose(&evidence[i]);
    return wrote;
}

void game_domain_step(struct game *game)
{
    if (!game->domain)
        game->domain = domain_new(game);
    for (size_t i = 0; i < game->secrets_len; i++)
        put_source(&game->secrets[i]);
    for (int i = 0; i < ROUNDS && reconcile(game); i++)
        ;
}
