#include "cluster/cache_domains.h"

#include <stdatomic.h>
#include <string.h>

#include "api/domain.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "cluster/cache_internal.h"
#include "kube/object.h"
#include "runtime/informer.h"

/* One of a namespace's TrustDomains, of ClusterTrustDomains, or of namespaces. */
struct domain_informer {
    struct cr_cache *cache;
    char *ns; /* NULL: all, or none */
    struct cr_informer *informer;
};

struct cr_cache_domains {
    struct cr_domain_listener listener;
    struct cr_loop *loop;
    struct domain_informer *own; /* TrustDomains, one for each watched namespace; never moved */
    size_t own_len;
    struct domain_informer cluster;    /* informer NULL: not all namespaces are watched */
    struct domain_informer namespaces; /* the same */
};

/* --- notifications --- */

static void notify(const struct cr_cache *cache, const struct cr_strvec *keys)
{
    const struct cr_domain_listener *listener = &cache->domains->listener;
    for (size_t i = 0; i < keys->len; i++)
        listener->on_domain(listener->arg, keys->items[i]);
}

void cr_cache_notify_domains_of_secret(struct cr_cache *cache, const char *ns, const char *name)
{
    if (!cache->domains)
        return;
    CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
    cr_domain_index_of_secret(cache->domain_index, ns, name, &keys);
    notify(cache, &keys);
}

void cr_cache_notify_domains_of_policy(struct cr_cache *cache, const char *ns)
{
    if (!cache->domains)
        return;
    CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
    cr_domain_index_of_namespace(cache->domain_index, ns, &keys);
    notify(cache, &keys);
}

static void on_domain(void *arg, const struct cr_change *change)
{
    const struct domain_informer *informer = arg;
    CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
    cr_autofree char *key = cr_asprintf("%s/%s", change->ns, change->name);
    cr_strvec_add(&keys, key);
    notify(informer->cache, &keys);
}

/* The first domain of the cluster kind asks for namespaces; once asked for, they stay. */
static void on_cluster_domain(void *arg, const struct cr_change *change)
{
    const struct domain_informer *informer = arg;
    cr_informer_start(informer->cache->domains->namespaces.informer);
    on_domain(arg, change);
}

static void add_key(void *keys, const char *ns, const char *name, struct cr_packed *packed)
{
    (void)packed;
    cr_autofree char *key = cr_asprintf("%s/%s", ns, name);
    cr_strvec_add(keys, key);
}

/* The set of namespaces, their labels and their consent may concern any domain of the cluster kind. */
static void notify_cluster_domains(void *arg)
{
    const struct domain_informer *informer = arg;
    CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
    cr_store_visit(cr_informer_store(informer->cache->domains->cluster.informer), NULL, add_key, &keys);
    notify(informer->cache, &keys);
}

static void on_namespace(void *arg, const struct cr_change *change)
{
    const struct domain_informer *informer = arg;
    (void)change;
    if (cr_informer_synced(informer->informer)) /* before, all of them wait for the whole */
        notify_cluster_domains(arg);
}

/* Only name, labels and annotations are read. */
static bool project_namespace(void *arg, struct cr_json *json, struct cr_snapshot *snapshot)
{
    (void)arg;
    (void)snapshot;
    cr_json_remove(json, "spec");
    return true;
}

/* --- set-up --- */

static struct cr_informer *new_informer(struct cr_cache *cache, struct cr_client *client,
                                        const struct cr_resource *resource, struct domain_informer *informer,
                                        void (*on_change)(void *arg, const struct cr_change *change))
{
    bool namespaces = resource == &cr_res_namespaces;
    const struct cr_informer_options options = {.watch = {.resource = resource, .ns = informer->ns, .optional = true},
                                                .project = namespaces ? project_namespace : NULL,
                                                .on_change = on_change,
                                                .on_refused = namespaces ? notify_cluster_domains : NULL,
                                                .on_first_sync = namespaces ? notify_cluster_domains : NULL,
                                                .arg = informer,
                                                .partial = true};
    informer->cache = cache;
    informer->informer = cr_informer_new(client, cache->loop, &options);
    return informer->informer;
}

void cr_cache_watch_domains(struct cr_cache *cache, const struct cr_domain_listener *listener)
{
    const struct cr_strvec *namespaces = cache->options.namespaces;
    struct cr_cache_domains *domains = cr_new(struct cr_cache_domains);
    cache->domains = domains;
    domains->listener = *listener;
    domains->own_len = namespaces->len ? namespaces->len : 1;
    domains->own = cr_calloc(domains->own_len, sizeof *domains->own);
    for (size_t i = 0; i < domains->own_len; i++) {
        domains->own[i].ns = namespaces->len ? cr_strdup(namespaces->items[i]) : NULL;
        cr_informer_start(new_informer(cache, cache->client, &cr_res_domains, &domains->own[i], on_domain));
    }
    if (namespaces->len)
        return;
    (void)new_informer(cache, cache->client, &cr_res_namespaces, &domains->namespaces, on_namespace);
    cr_informer_start(
        new_informer(cache, cache->client, &cr_res_cluster_domains, &domains->cluster, on_cluster_domain));
}

void cr_cache_domains_free(struct cr_cache_domains *domains)
{
    if (!domains)
        return;
    for (size_t i = 0; i < domains->own_len; i++) {
        cr_informer_free(domains->own[i].informer);
        free(domains->own[i].ns);
    }
    free(domains->own);
    cr_informer_free(domains->cluster.informer);
    cr_informer_free(domains->namespaces.informer);
    free(domains);
}

/* --- reading --- */

static struct cr_store *store_of(const struct cr_cache *cache, const char *ns)
{
    const struct cr_cache_domains *domains = cache->domains;
    if (!*ns)
        return domains->cluster.informer ? cr_informer_store(domains->cluster.informer) : NULL;
    for (size_t i = 0; i < domains->own_len; i++)
        if (!domains->own[i].ns || cr_streq(domains->own[i].ns, ns))
            return cr_informer_store(domains->own[i].informer);
    return NULL;
}

struct cr_packed *cr_cache_domain_packed(struct cr_cache *cache, const char *ns, const char *name)
{
    struct cr_store *store = store_of(cache, ns);
    return store ? cr_store_get_packed(store, ns, name) : NULL;
}

struct cr_snapshot *cr_cache_domain(struct cr_cache *cache, const char *ns, const char *name)
{
    CR_CLEANUP(cr_packed) struct cr_packed *packed = cr_cache_domain_packed(cache, ns, name);
    return cr_packed_open(packed);
}

static struct cr_domain_step step_of(struct cr_cache *cache, const char *key, const char *ns, const char *secret,
                                     const char *version)
{
    const char *slash = strchr(key, '/');
    cr_autofree char *domain_ns = cr_strndup(key, (size_t)(slash - key));
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_cache_domain(cache, domain_ns, slash + 1);
    CR_CLEANUP(cr_domain_status) struct cr_domain_status status = {0};
    cr_domain_status_decode(snapshot ? cr_json_get(snapshot->json, "status") : NULL, &status);
    return cr_domain_status_step(&status, cr_trust_target_kind_name(CR_TARGET_SECRET), ns, secret, version);
}

struct cr_domain_step cr_cache_domain_step(struct cr_cache *cache, const char *ns, const char *secret,
                                           const char *version)
{
    struct cr_domain_step found = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
    if (cache->domains)
        cr_domain_index_of_secret(cache->domain_index, ns, secret, &keys);
    for (size_t i = 0; i < keys.len && !*found.restart.rotation; i++) {
        struct cr_domain_step step = step_of(cache, keys.items[i], ns, secret, version);
        if (*step.restart.rotation || step.awaits_record)
            found = step;
    }
    return found;
}

static void update_watches(void *arg)
{
    const struct cr_cache *cache = arg;
    cr_secret_watches_update(cache->secrets);
}

void cr_cache_domain_wants(struct cr_cache *cache, const char *key, const struct cr_strvec *secrets)
{
    if (cr_domain_index_put(cache->domain_index, key, secrets))
        cr_loop_post(cache->loop, update_watches, cache);
}

bool cr_cache_namespaces_known(struct cr_cache *cache, struct cr_error *err)
{
    struct cr_informer *informer = cache->domains->namespaces.informer;
    if (!informer)
        return cr_error_set(err, CR_ERR_INVALID, "not all namespaces are watched");
    if (cr_informer_refused(informer, err))
        return false;
    return cr_informer_synced(informer) || cr_error_set(err, CR_ERR_TRANSIENT, "namespaces: not in sync");
}

struct cr_snapshot *cr_cache_namespace(struct cr_cache *cache, const char *name)
{
    struct cr_informer *informer = cache->domains->namespaces.informer;
    return informer ? cr_store_get(cr_informer_store(informer), "", name) : NULL;
}

struct all {
    struct cr_packed **items; /* owned references; parsed when the lock is free again */
    size_t len;
};

static void collect(void *arg, const char *ns, const char *name, struct cr_packed *packed)
{
    struct all *all = arg;
    (void)ns;
    (void)name;
    all->items = cr_reallocarray(all->items, all->len + 1, sizeof(struct cr_packed *));
    all->items[all->len++] = cr_packed_ref(packed);
}

void cr_cache_select_namespaces(struct cr_cache *cache, const struct cr_selector *selector, struct cr_strvec *names)
{
    struct cr_informer *informer = cache->domains->namespaces.informer;
    struct all all = {0};
    if (informer)
        cr_store_visit(cr_informer_store(informer), NULL, collect, &all);
    for (size_t i = 0; i < all.len; i++) {
        CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_packed_open(all.items[i]);
        if (cr_selector_matches(selector, cr_json_at(snapshot->json, "metadata", "labels")))
            cr_strvec_add(names, cr_or_empty(cr_obj_name(snapshot->json)));
        cr_packed_unref(all.items[i]);
    }
    free(all.items);
    cr_strvec_sort(names);
}
