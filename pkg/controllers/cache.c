#include "controllers/cache.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/strings.h"
#include "controllers/owner.h"
#include "controllers/secret_view.h"
#include "kube/object.h"
#include "runtime/informer.h"

struct cache_informer {
    struct cr_cache *cache; /* for the callbacks */
    enum cr_cached what;
    char *ns;               /* NULL: all */
    struct cr_store *store; /* borrowed from the informer, which the manager owns */
};

struct cr_cache {
    struct cr_cache_options options;
    struct cr_secret_refs *refs;
    struct cache_informer *informers;
    size_t informers_len;
};

static const struct cr_resource *const resources[CR_CACHED_COUNT] = {
    [CR_CACHED_POLICIES] = &cr_res_policies,       [CR_CACHED_SECRETS] = &cr_res_secrets,
    [CR_CACHED_DEPLOYMENTS] = &cr_res_deployments, [CR_CACHED_STATEFULSETS] = &cr_res_statefulsets,
    [CR_CACHED_DAEMONSETS] = &cr_res_daemonsets,   [CR_CACHED_PODS] = &cr_res_pods,
};

/* --- policies, decoded once per version --- */

struct decoded {
    struct cr_policy *policy; /* NULL: problem says why */
    struct cr_error problem;
};

static void decoded_free(void *value)
{
    struct decoded *decoded = value;
    if (!decoded)
        return;
    cr_policy_free(decoded->policy);
    free(decoded);
}

const struct cr_policy *cr_cached_policy(const struct cr_snapshot *snapshot, const char **problem)
{
    const struct decoded *decoded = snapshot->extra;
    *problem = decoded->policy ? NULL : decoded->problem.text;
    return decoded->policy;
}

/* --- projections: what is not used is not kept --- */

static void strip_metadata(struct cr_json *json)
{
    struct cr_json *metadata = cr_json_edit(json, "metadata");
    cr_json_remove(metadata, "managedFields");
    cr_json_remove(cr_json_edit(metadata, "annotations"), "kubectl.kubernetes.io/last-applied-configuration");
}

static void project_policy(struct cr_cache *cache, struct cr_json *json, struct cr_snapshot *snapshot)
{
    struct decoded *decoded = cr_new(struct decoded);
    decoded->policy = cr_policy_decode(json, &decoded->problem);
    /* Before its Secrets change: the next event of each is then read through this policy's key names. */
    if (decoded->policy)
        cr_secret_refs_add(cache->refs, decoded->policy);
    snapshot->extra = decoded;
    snapshot->free_extra = decoded_free;
}

static bool project(void *arg, struct cr_json *json, struct cr_snapshot *snapshot)
{
    const struct cache_informer *informer = arg;
    if (informer->what == CR_CACHED_SECRETS) {
        cr_secret_project(informer->cache->refs, json, snapshot);
        return true;
    }
    strip_metadata(json);
    if (informer->what == CR_CACHED_POLICIES)
        project_policy(informer->cache, json, snapshot);
    if (informer->what == CR_CACHED_PODS)
        cr_json_remove(json, "spec");
    return true;
}

/* --- which policies an object concerns --- */

struct concern {
    struct cr_cache *cache;
    enum cr_cached what;
    const char *kind; /* of the workload */
    const char *name;
    struct cr_strvec keys;
};

static bool names_secret(const struct cr_policy *policy, const char *name)
{
    for (size_t i = 0; i < policy->secrets_len; i++)
        if (cr_streq(policy->secrets[i].name, name))
            return true;
    return false;
}

static bool names_workload(const struct cr_policy *policy, const char *kind, const char *name)
{
    for (size_t i = 0; i < policy->consumers_len; i++)
        if (cr_streq(policy->consumers[i].kind, kind) && cr_streq(policy->consumers[i].target, name))
            return true;
    return false;
}

static void collect_concerned(void *arg, struct cr_snapshot *snapshot)
{
    struct concern *concern = arg;
    const char *problem = NULL;
    const struct cr_policy *policy = cr_cached_policy(snapshot, &problem);
    if (!policy)
        return;
    bool concerned = concern->what == CR_CACHED_SECRETS ? names_secret(policy, concern->name)
                                                        : names_workload(policy, concern->kind, concern->name);
    if (!concerned)
        return;
    cr_autofree char *key = cr_obj_key(snapshot->json);
    cr_strvec_add(&concern->keys, key);
}

static struct cr_store *store_for(struct cr_cache *cache, enum cr_cached what, const char *ns)
{
    for (size_t i = 0; i < cache->informers_len; i++) {
        const struct cache_informer *informer = &cache->informers[i];
        if (informer->what == what && (!informer->ns || cr_streq(informer->ns, ns)))
            return informer->store;
    }
    return NULL;
}

static void tell_concerned(struct cr_cache *cache, enum cr_cached what, const char *ns, const char *kind,
                           const char *name)
{
    struct cr_store *policies = store_for(cache, CR_CACHED_POLICIES, ns);
    if (!policies || !name)
        return;
    struct concern concern = {.cache = cache, .what = what, .kind = kind, .name = name};
    cr_store_visit(policies, ns, collect_concerned, &concern);
    for (size_t i = 0; i < concern.keys.len; i++)
        cache->options.on_policy(cache->options.arg, concern.keys.items[i]);
    cr_strvec_dispose(&concern.keys);
}

static void tell_pod(struct cr_cache *cache, const struct cr_json *pod, bool gone)
{
    const char *kind = NULL;
    cr_autofree char *name = NULL;
    if (cr_pod_workload(pod, &kind, &name))
        tell_concerned(cache, CR_CACHED_PODS, cr_obj_namespace(pod), kind, name);
    if (gone)
        cache->options.on_pod_gone(cache->options.arg, cr_obj_uid(pod));
}

static void on_change(void *arg, struct cr_snapshot *before, struct cr_snapshot *after)
{
    const struct cache_informer *informer = arg;
    struct cr_cache *cache = informer->cache;
    const struct cr_json *object = after ? after->json : before->json;
    if (informer->what == CR_CACHED_POLICIES) {
        cr_autofree char *key = cr_obj_key(object);
        cache->options.on_policy(cache->options.arg, key);
    } else if (informer->what == CR_CACHED_PODS) {
        tell_pod(cache, object, !after);
    } else {
        tell_concerned(cache, informer->what, cr_obj_namespace(object), resources[informer->what]->kind,
                       cr_obj_name(object));
    }
}

void cr_cache_project_secret(struct cr_cache *cache, struct cr_snapshot *snapshot)
{
    cr_secret_project(cache->refs, snapshot->json, snapshot);
}

/* --- set-up --- */

static void add_informer(struct cr_manager *manager, struct cr_client *client, struct cr_loop *loop,
                         struct cache_informer *informer)
{
    struct cr_informer_options options = {
        .watch = {.resource = resources[informer->what],
                  .ns = informer->ns,
                  .secret = informer->what == CR_CACHED_SECRETS},
        .project = project,
        .on_change = on_change,
        .arg = informer,
    };
    struct cr_informer *made = cr_informer_new(client, loop, &options);
    informer->store = cr_informer_store(made);
    cr_manager_add_informer(manager, made);
}

struct cr_cache *cr_cache_new(struct cr_manager *manager, struct cr_client *client, struct cr_loop *loop,
                              const struct cr_cache_options *options)
{
    struct cr_cache *cache = cr_new(struct cr_cache);
    cache->options = *options;
    cache->refs = cr_secret_refs_new();
    size_t namespaces = options->namespaces->len ? options->namespaces->len : 1;
    /* Never moved afterwards: the informers point into it. */
    cache->informers = cr_calloc(namespaces * CR_CACHED_COUNT, sizeof *cache->informers);
    for (size_t n = 0; n < namespaces; n++) {
        const char *ns = options->namespaces->len ? options->namespaces->items[n] : NULL;
        for (int what = 0; what < CR_CACHED_COUNT; what++) {
            struct cache_informer *informer = &cache->informers[cache->informers_len++];
            *informer =
                (struct cache_informer){.cache = cache, .what = (enum cr_cached)what, .ns = cr_strdup_or_null(ns)};
            add_informer(manager, client, loop, informer);
        }
    }
    return cache;
}

void cr_cache_free(struct cr_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < cache->informers_len; i++)
        free(cache->informers[i].ns);
    free(cache->informers);
    cr_secret_refs_free(cache->refs);
    free(cache);
}

/* --- reading --- */

struct cr_snapshot *cr_cache_get(struct cr_cache *cache, enum cr_cached what, const char *ns, const char *name)
{
    struct cr_store *store = store_for(cache, what, ns);
    return store ? cr_store_get(store, ns, name) : NULL;
}

struct cr_snapshot *cr_cache_workload(struct cr_cache *cache, const char *ns, const char *kind, const char *name)
{
    static const enum cr_cached kinds[] = {CR_CACHED_DEPLOYMENTS, CR_CACHED_STATEFULSETS, CR_CACHED_DAEMONSETS};
    for (size_t i = 0; i < cr_array_len(kinds); i++)
        if (cr_streq(resources[kinds[i]]->kind, kind))
            return cr_cache_get(cache, kinds[i], ns, name);
    return NULL;
}

struct pods_of {
    const char *kind;
    const char *name;
    struct cr_snapshots *out;
};

static void collect_pod(void *arg, struct cr_snapshot *snapshot)
{
    const struct pods_of *of = arg;
    const char *kind = NULL;
    cr_autofree char *name = NULL;
    if (!cr_pod_active(snapshot->json) || !cr_pod_workload(snapshot->json, &kind, &name) || !cr_streq(kind, of->kind) ||
        !cr_streq(name, of->name))
        return;
    of->out->items = cr_reallocarray(of->out->items, of->out->len + 1, sizeof(struct cr_snapshot *));
    of->out->items[of->out->len++] = cr_snapshot_ref(snapshot);
}

void cr_cache_pods(struct cr_cache *cache, const char *ns, const char *kind, const char *name, struct cr_snapshots *out)
{
    struct cr_store *store = store_for(cache, CR_CACHED_PODS, ns);
    struct pods_of of = {.kind = kind, .name = name, .out = out};
    if (store)
        cr_store_visit(store, ns, collect_pod, &of);
}

void cr_snapshots_dispose(struct cr_snapshots *snapshots)
{
    for (size_t i = 0; i < snapshots->len; i++)
        cr_snapshot_unref(snapshots->items[i]);
    free(snapshots->items);
    *snapshots = (struct cr_snapshots){0};
}
