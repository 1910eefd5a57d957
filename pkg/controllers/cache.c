#include "controllers/cache.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"
#include "controllers/concern.h"
#include "controllers/project.h"
#include "controllers/secret_view.h"
#include "kube/object.h"
#include "runtime/informer.h"

enum { FIRST_ANSWER_MS = 10 * 1000 }; /* of an API server that is there */

struct cache_informer {
    struct cr_cache *cache; /* for the callbacks */
    enum cr_cached what;
    char *ns;                     /* NULL: all */
    struct cr_store *store;       /* borrowed from the informer */
    struct cr_informer *informer; /* the manager's, or ours, when optional */
    /* What a cluster may lack is no reason for the operator not to be ready, so the manager does not know of it. */
    struct cr_informer *optional; /* NULL: it is the manager's */
    _Atomic int64_t started_ms;   /* monotonic; 0: nobody asked for it yet */
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
    [CR_CACHED_INGRESSES] = &cr_res_ingresses,     [CR_CACHED_GATEWAYS] = &cr_res_gateways,
};

static bool is_optional(enum cr_cached what)
{
    return what == CR_CACHED_INGRESSES || what == CR_CACHED_GATEWAYS;
}

/* Those that use Secrets. */
static const enum cr_cached users[] = {CR_CACHED_DEPLOYMENTS, CR_CACHED_STATEFULSETS, CR_CACHED_DAEMONSETS,
                                       CR_CACHED_INGRESSES, CR_CACHED_GATEWAYS};

static bool project(void *arg, struct cr_json *json, struct cr_snapshot *snapshot)
{
    const struct cache_informer *informer = arg;
    switch (informer->what) {
    case CR_CACHED_SECRETS:
        cr_secret_project(informer->cache->refs, json, snapshot);
        return true;
    case CR_CACHED_PODS:
        cr_project_pod(json, snapshot);
        return true;
    case CR_CACHED_POLICIES: {
        const char *problem = NULL;
        cr_project_policy(json, snapshot);
        const struct cr_policy *policy = cr_projected_policy(snapshot, &problem);
        /* Before its Secrets change: the next event of each is then read through this policy's key names. */
        if (policy)
            cr_secret_refs_add(informer->cache->refs, policy);
        return true;
    }
    default:
        cr_project_user(resources[informer->what]->kind, json, snapshot);
        return true;
    }
}

const struct cr_policy *cr_cached_policy(const struct cr_snapshot *snapshot, const char **problem)
{
    return cr_projected_policy(snapshot, problem);
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

/* --- which policies an object concerns --- */

struct concern {
    bool (*concerns)(const struct concern *concern, const struct cr_snapshot *policy);
    const char *kind;
    const char *name;
    struct cr_snapshot *before;
    struct cr_snapshot *after;
    struct cr_used_secret *used;
    size_t used_len;
    struct cr_strvec keys;
};

static bool as_secret(const struct concern *concern, const struct cr_snapshot *policy)
{
    return cr_concerns_secret(policy, concern->name, concern->before, concern->after);
}

static bool as_user(const struct concern *concern, const struct cr_snapshot *policy)
{
    return cr_concerns_user(policy, concern->kind, concern->name, concern->used, concern->used_len);
}

static bool as_neighbour(const struct concern *concern, const struct cr_snapshot *policy)
{
    return !cr_streq(cr_obj_name(policy->json), concern->name) &&
           cr_concerns_neighbour(policy, concern->before, concern->after);
}

static void collect_concerned(void *arg, struct cr_snapshot *policy)
{
    struct concern *concern = arg;
    if (!concern->concerns(concern, policy))
        return;
    cr_autofree char *key = cr_obj_key(policy->json);
    cr_strvec_add(&concern->keys, key);
}

static void tell_concerned(struct cr_cache *cache, const char *ns, struct concern *concern)
{
    struct cr_store *policies = store_for(cache, CR_CACHED_POLICIES, ns);
    if (!policies || !concern->name)
        return;
    cr_store_visit(policies, ns, collect_concerned, concern);
    for (size_t i = 0; i < concern->keys.len; i++)
        cache->options.on_policy(cache->options.arg, concern->keys.items[i]);
    cr_strvec_dispose(&concern->keys);
}

/* With the Secrets as they are now; looked up first, since policies are looked at under a lock. */
static void add_used(struct cr_cache *cache, const char *ns, const struct cr_snapshot *user, struct concern *concern)
{
    const struct cr_strvec *uses = user ? cr_projected_uses(user) : NULL;
    for (size_t i = 0; uses && i < uses->len; i++) {
        concern->used = cr_reallocarray(concern->used, concern->used_len + 1, sizeof *concern->used);
        concern->used[concern->used_len++] = (struct cr_used_secret){
            .name = uses->items[i], .secret = cr_cache_get(cache, CR_CACHED_SECRETS, ns, uses->items[i])};
    }
}

static void tell_of_user(struct cr_cache *cache, const char *ns, struct concern *concern)
{
    concern->concerns = as_user;
    add_used(cache, ns, concern->before, concern);
    add_used(cache, ns, concern->after, concern);
    tell_concerned(cache, ns, concern);
    for (size_t i = 0; i < concern->used_len; i++)
        cr_snapshot_unref((struct cr_snapshot *)(uintptr_t)concern->used[i].secret);
    free(concern->used);
}

static void tell_of_pod(struct cr_cache *cache, const struct cr_snapshot *pod, bool gone)
{
    const char *ns = cr_obj_namespace(pod->json);
    struct concern concern = {0};
    if (cr_projected_owner(pod, &concern.kind, &concern.name)) {
        CR_CLEANUP(cr_snapshot)
        struct cr_snapshot *workload = cr_cache_workload(cache, ns, concern.kind, concern.name);
        concern.after = workload;
        tell_of_user(cache, ns, &concern);
    }
    if (gone)
        cache->options.on_pod_gone(cache->options.arg, cr_obj_uid(pod->json));
}

static void start_what_is_needed(struct cr_cache *cache, const struct cr_snapshot *policy);

static void tell_of_policy(struct cr_cache *cache, const char *ns, struct concern *concern)
{
    const struct cr_json *object = concern->after ? concern->after->json : concern->before->json;
    cr_autofree char *key = cr_obj_key(object);
    if (concern->after)
        start_what_is_needed(cache, concern->after);
    cache->options.on_policy(cache->options.arg, key);
    concern->concerns = as_neighbour;
    tell_concerned(cache, ns, concern);
}

static void on_change(void *arg, struct cr_snapshot *before, struct cr_snapshot *after)
{
    const struct cache_informer *informer = arg;
    struct cr_cache *cache = informer->cache;
    const struct cr_json *object = after ? after->json : before->json;
    const char *ns = cr_obj_namespace(object);
    struct concern concern = {.concerns = as_secret,
                              .kind = resources[informer->what]->kind,
                              .name = cr_obj_name(object),
                              .before = before,
                              .after = after};
    switch (informer->what) {
    case CR_CACHED_POLICIES:
        tell_of_policy(cache, ns, &concern);
        return;
    case CR_CACHED_PODS:
        tell_of_pod(cache, after ? after : before, !after);
        return;
    case CR_CACHED_SECRETS:
        tell_concerned(cache, ns, &concern);
        return;
    default:
        tell_of_user(cache, ns, &concern);
        return;
    }
}

/* --- what a cluster may lack --- */

static bool needs(const struct cr_policy *policy, enum cr_cached what)
{
    if (policy->discover.enabled)
        return true;
    for (size_t i = 0; i < policy->consumers_len; i++)
        if (cr_streq(policy->consumers[i].kind, resources[what]->kind))
            return true;
    return false;
}

static bool is_asked_for(const struct cache_informer *informer, const struct cr_policy *policy)
{
    return is_optional(informer->what) && needs(policy, informer->what) &&
           (!informer->ns || cr_streq(informer->ns, policy->ns));
}

/* Once one policy has asked for it, it stays. */
static void start_what_is_needed(struct cr_cache *cache, const struct cr_snapshot *snapshot)
{
    const char *problem = NULL;
    const struct cr_policy *policy = cr_projected_policy(snapshot, &problem);
    for (size_t i = 0; policy && i < cache->informers_len; i++) {
        struct cache_informer *informer = &cache->informers[i];
        if (!is_asked_for(informer, policy) || atomic_load(&informer->started_ms))
            continue;
        atomic_store(&informer->started_ms, cr_clock_monotonic_ms());
        cr_informer_start(informer->optional);
    }
}

static bool is_of(const struct cache_informer *informer, const struct cr_policy *policy)
{
    return !is_optional(informer->what) && (!informer->ns || cr_streq(informer->ns, policy->ns));
}

char *cr_cache_refused(struct cr_cache *cache, const struct cr_policy *policy)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    for (size_t i = 0; i < cache->informers_len; i++) {
        const struct cache_informer *informer = &cache->informers[i];
        struct cr_error err = {0};
        if (is_of(informer, policy) && cr_informer_refused(informer->informer, &err))
            cr_buf_printf(&text, "%s%s.", text.len ? " " : "", err.text);
    }
    return text.len ? cr_buf_steal(&text) : NULL;
}

bool cr_cache_waits(struct cr_cache *cache, const struct cr_policy *policy)
{
    for (size_t i = 0; i < cache->informers_len; i++) {
        struct cache_informer *informer = &cache->informers[i];
        struct cr_error err = {0};
        if (is_of(informer, policy) && !cr_informer_synced(informer->informer))
            return true;
        if (!is_asked_for(informer, policy) || cr_informer_synced(informer->optional))
            continue;
        bool in_time = cr_clock_monotonic_ms() - atomic_load(&informer->started_ms) < FIRST_ANSWER_MS;
        if (!cr_informer_healthy(informer->optional, &err) && err.kind == CR_ERR_TRANSIENT && in_time)
            return true;
    }
    return false;
}

char *cr_cache_unseen(struct cr_cache *cache, const struct cr_policy *policy)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    for (size_t i = 0; i < cache->informers_len; i++) {
        struct cache_informer *informer = &cache->informers[i];
        struct cr_error err = {0};
        if (!is_asked_for(informer, policy) || cr_informer_healthy(informer->optional, &err) ||
            err.kind == CR_ERR_NOT_FOUND)
            continue;
        cr_buf_printf(&text, "%sConsumers of kind %s cannot be seen: %s.", text.len ? " " : "",
                      resources[informer->what]->kind, err.text);
    }
    return text.len ? cr_buf_steal(&text) : NULL;
}

/* Whether it can be seen has changed: for whoever waits for it, or says that it cannot be seen. */
static void tell_all_in_need(void *arg)
{
    const struct cache_informer *informer = arg;
    struct cr_cache *cache = informer->cache;
    CR_CLEANUP(cr_snapshots) struct cr_snapshots policies = {0};
    for (size_t i = 0; i < cache->informers_len; i++)
        if (cache->informers[i].what == CR_CACHED_POLICIES)
            cr_store_visit(cache->informers[i].store, informer->ns, cr_snapshots_add, &policies);
    for (size_t i = 0; i < policies.len; i++) {
        const char *problem = NULL;
        const struct cr_policy *policy = cr_projected_policy(policies.items[i], &problem);
        cr_autofree char *key = cr_obj_key(policies.items[i]->json);
        if (policy && (is_of(informer, policy) || is_asked_for(informer, policy)))
            cache->options.on_policy(cache->options.arg, key);
    }
}

/* --- Secrets --- */

void cr_cache_expect_secrets(struct cr_cache *cache, const struct cr_policy *policy)
{
    cr_secret_refs_add(cache->refs, policy);
}

struct cr_secret_refs *cr_cache_secret_refs(struct cr_cache *cache)
{
    return cache->refs;
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
                  .secret = informer->what == CR_CACHED_SECRETS,
                  .optional = is_optional(informer->what)},
        .project = project,
        .on_change = on_change,
        .on_refused = is_optional(informer->what) ? NULL : tell_all_in_need,
        .arg = informer,
        .partial = true,
    };
    struct cr_informer *made = cr_informer_new(client, loop, &options);
    informer->store = cr_informer_store(made);
    informer->informer = made;
    if (!is_optional(informer->what)) {
        cr_manager_add_informer(manager, made);
        return;
    }
    informer->optional = made;
    cr_informer_on_synced(made, tell_all_in_need, informer);
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
    for (size_t i = 0; i < cache->informers_len; i++) {
        cr_informer_free(cache->informers[i].optional);
        free(cache->informers[i].ns);
    }
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
    for (size_t i = 0; i < cr_array_len(users); i++)
        if (cr_streq(resources[users[i]]->kind, kind))
            return cr_cache_get(cache, users[i], ns, name);
    return NULL;
}

void cr_snapshots_add(void *snapshots, struct cr_snapshot *snapshot)
{
    struct cr_snapshots *out = snapshots;
    out->items = cr_reallocarray(out->items, out->len + 1, sizeof(struct cr_snapshot *));
    out->items[out->len++] = cr_snapshot_ref(snapshot);
}

void cr_cache_all(struct cr_cache *cache, enum cr_cached what, const char *ns, struct cr_snapshots *out)
{
    struct cr_store *store = store_for(cache, what, ns);
    if (store)
        cr_store_visit(store, ns, cr_snapshots_add, out);
}

const char *cr_cached_kind(enum cr_cached what)
{
    return resources[what]->kind;
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
    const char *name = NULL;
    if (cr_projected_owner(snapshot, &kind, &name) && cr_streq(name, of->name) && cr_streq(kind, of->kind) &&
        cr_pod_active(snapshot->json))
        cr_snapshots_add(of->out, snapshot);
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
