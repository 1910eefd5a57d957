#include "cluster/cache.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "api/consumer_kind.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "cluster/cache_internal.h"
#include "cluster/project.h"
#include "kube/object.h"
#include "runtime/informer.h"

enum { FIRST_ANSWER_MS = 10 * 1000 }; /* of an API server that is there */

struct cache_informer {
    struct cr_cache *cache;              /* for the callbacks */
    const struct cr_consumer_kind *kind; /* NULL: other objects than consumers, which are in what */
    enum cr_cached what;                 /* CR_CACHED_CONSUMERS: in kind */
    char *ns;                            /* NULL: all */
    struct cr_store *store;              /* borrowed from the informer */
    struct cr_informer *informer;        /* the manager's, or ours, when optional */
    /* The operator must be ready without kinds that a cluster may lack, so the manager does not know of their
     * informers. */
    struct cr_informer *optional; /* NULL: it is the manager's */
    _Atomic int64_t started_ms;   /* monotonic; 0: no policy has asked for it yet */
};

static const struct cr_resource *const resources[CR_CACHED_COUNT] = {
    [CR_CACHED_POLICIES] = &cr_res_policies,
    [CR_CACHED_SECRETS] = &cr_res_secrets,
    [CR_CACHED_PODS] = &cr_res_pods,
    [CR_CACHED_BUDGETS] = &cr_res_budgets,
};

static bool is_optional(const struct cache_informer *informer)
{
    return informer->kind ? informer->kind->optional : informer->what == CR_CACHED_BUDGETS;
}

static bool project_user(const struct cr_consumer_kind *kind, struct cr_json *json, struct cr_snapshot *snapshot)
{
    if (kind->only_bare && cr_obj_controller(json))
        return false;
    cr_project_user(kind->resource.kind, json, snapshot);
    return true;
}

static bool project(void *arg, struct cr_json *json, struct cr_snapshot *snapshot)
{
    const struct cache_informer *informer = arg;
    if (informer->kind)
        return project_user(informer->kind, json, snapshot);
    switch (informer->what) {
    case CR_CACHED_PODS:
        cr_project_pod(json, snapshot);
        return true;
    case CR_CACHED_BUDGETS:
        cr_project_budget(json, snapshot);
        return true;
    case CR_CACHED_POLICIES:
        cr_project_policy(json);
        return true;
    default: /* Secrets have informers of their own: secret_watches.c */
        break;
    }
    return false;
}

const struct cr_policy *cr_cached_policy(const struct cr_snapshot *snapshot, const char **problem)
{
    return cr_projected_policy(snapshot, problem);
}

static struct cr_store *find_store(const struct cr_cache *cache, const struct cr_consumer_kind *kind,
                                   enum cr_cached what, const char *ns)
{
    for (size_t i = 0; i < cache->informers_len; i++) {
        const struct cache_informer *informer = &cache->informers[i];
        if (informer->kind == kind && informer->what == what && (!informer->ns || cr_streq(informer->ns, ns)))
            return informer->store;
    }
    return NULL;
}

static struct cr_store *store_for(const struct cr_cache *cache, enum cr_cached what, const char *ns)
{
    return find_store(cache, NULL, what, ns);
}

/* --- which policies an object concerns --- */

void cr_cache_notify(struct cr_cache *cache, const struct cr_strvec *policies)
{
    for (size_t i = 0; i < policies->len; i++)
        cache->options.on_policy(cache->options.arg, policies->items[i]);
}

/* The Secrets that a workload, Ingress or Gateway uses, as they are now. */
struct used {
    struct cr_used_secret *items;
    struct cr_snapshot **snapshots; /* they keep the JSON */
    size_t len;
    size_t opened_bytes;
};

static void used_cleanup(struct used *used)
{
    for (size_t i = 0; i < used->len; i++)
        cr_snapshot_unref(used->snapshots[i]);
    free(used->items);
    free(used->snapshots);
}

/* Two milliseconds of the loop or so: that many bytes of Secrets are parsed for one event. */
enum { OPENED_BYTES_MAX = 256 * 1024 };

/* selects: a policy of the namespace looks at labels. */
static struct cr_snapshot *open_used(struct cr_cache *cache, const char *ns, const char *name, bool selects,
                                     struct used *used, bool *unread)
{
    CR_CLEANUP(cr_packed) struct cr_packed *packed = selects ? cr_cache_secret_packed(cache, ns, name) : NULL;
    used->opened_bytes += cr_packed_text_len(packed);
    *unread = packed && used->opened_bytes > OPENED_BYTES_MAX;
    return *unread ? NULL : cr_packed_open(packed);
}

/* names: NULL: none. */
static void add_used(struct cr_cache *cache, const char *ns, const struct cr_strvec *names, struct used *used)
{
    if (!names || !names->len)
        return;
    bool selects = cr_policy_index_selects(cache->index, ns);
    used->items = cr_reallocarray(used->items, used->len + names->len, sizeof *used->items);
    used->snapshots = cr_reallocarray(used->snapshots, used->len + names->len, sizeof(struct cr_snapshot *));
    for (size_t i = 0; i < names->len; i++, used->len++) {
        bool unread = false;
        struct cr_snapshot *secret = open_used(cache, ns, names->items[i], selects, used, &unread);
        used->snapshots[used->len] = secret;
        used->items[used->len] =
            (struct cr_used_secret){.name = names->items[i], .secret = secret ? secret->json : NULL, .unread = unread};
    }
}

void cr_cache_notify_budget_waiters(struct cr_cache *cache, const char *ns)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
    cr_policy_index_of_budgets(cache->index, ns, &keys);
    cr_cache_notify(cache, &keys);
}

/* extra: of the user; NULL: it does not exist. */
static const struct cr_strvec *uses_of(const void *extra)
{
    return extra ? cr_projected_uses(extra) : NULL;
}

/* before, after: what the projection made of the object then and now. */
static void notify_user_changed(struct cr_cache *cache, const char *ns, const char *kind, const char *name,
                                const void *before, const void *after)
{
    if (before && cr_projected_rolling(before) && !(after && cr_projected_rolling(after)))
        cr_cache_notify_budget_waiters(cache, ns);
    CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
    __attribute__((cleanup(used_cleanup))) struct used used = {0};
    CR_CLEANUP(cr_packed) struct cr_packed *template = after ? cr_cache_template_of(cache, ns, after) : NULL;
    if (!uses_of(before) || !uses_of(after) || !cr_strvec_equal(uses_of(before), uses_of(after)))
        add_used(cache, ns, uses_of(before), &used);
    add_used(cache, ns, uses_of(after), &used);
    add_used(cache, ns, uses_of(cr_packed_extra(template)), &used);
    enum cr_index_users users_of =
        cache->options.hosts_in_use && cr_policy_kind_by_api(kind) ? CR_INDEX_ALL : CR_INDEX_DISCOVERING;
    cr_policy_index_of_user(cache->index, ns, kind, name, used.items, used.len, users_of, &keys);
    cr_cache_notify(cache, &keys);
}

/* A policy that discovers consumers may have reported it: it belonged to no workload, or to one whose template does not
 * use what it used. */
static void notify_pod_ended(struct cr_cache *cache, const struct cr_change *change)
{
    const struct cr_strvec *names = change->before ? cr_projected_pod_uses(cr_packed_extra(change->before)) : NULL;
    if (!names || (change->after && cr_projected_pod_uses(change->after->extra)))
        return;
    CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
    __attribute__((cleanup(used_cleanup))) struct used used = {0};
    add_used(cache, change->ns, names, &used);
    cr_policy_index_of_user(cache->index, change->ns, "Pod", change->name, used.items, used.len, CR_INDEX_DISCOVERING,
                            &keys);
    cr_cache_notify(cache, &keys);
}

static void notify_pod_changed(struct cr_cache *cache, const struct cr_change *change)
{
    const char *kind = NULL;
    const char *name = NULL;
    const void *extra = change->after ? change->after->extra : cr_packed_extra(change->before);
    if (cr_projected_owner(extra, &kind, &name)) {
        CR_CLEANUP(cr_packed)
        struct cr_packed *workload = cr_cache_workload_packed(cache, change->ns, kind, name);
        notify_user_changed(cache, change->ns, kind, name, NULL, cr_packed_extra(workload));
    }
    notify_pod_ended(cache, change);
    if (change->after)
        return;
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *gone = cr_packed_open(change->before);
    cache->options.on_pod_gone(cache->options.arg, cr_obj_uid(gone->json));
}

static void start_what_is_needed(struct cr_cache *cache, const struct cr_policy *policy);

/* Takes the policy before its Secrets change, so that the next event of each Secret is read through this policy's key
 * names. True: the policy wants other Secrets than before. */
static bool take_policy(struct cr_cache *cache, const struct cr_json *object, struct cr_strvec *neighbours)
{
    struct cr_error problem = {0}; /* reported by the reconcile of the policy */
    struct cr_policy *policy = cr_policy_decode(object, &problem);
    if (policy) {
        cr_secret_refs_add(cache->refs, policy);
        start_what_is_needed(cache, policy);
    }
    return cr_policy_index_put(cache->index, object, policy, neighbours);
}

static void notify_policy_changed(struct cr_cache *cache, const struct cr_change *change)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
    cr_autofree char *key = cr_asprintf("%s/%s", change->ns, change->name);
    cr_strvec_add(&keys, key);
    bool wants_other = true;
    if (change->after)
        wants_other = take_policy(cache, change->after->json, &keys);
    else
        cr_policy_index_remove(cache->index, change->ns, change->name, &keys);
    if (wants_other) /* our own status writes cause many events, and an update looks through everything that is wanted
                      */
        cr_secret_watches_update(cache->secrets);
    cr_cache_notify(cache, &keys);
    cr_cache_notify_domains_of_policy(cache, change->ns);
}

static void on_change(void *arg, const struct cr_change *change)
{
    const struct cache_informer *informer = arg;
    struct cr_cache *cache = informer->cache;
    if (informer->kind) {
        notify_user_changed(cache, change->ns, informer->kind->resource.kind, change->name,
                            cr_packed_extra(change->before), change->after ? change->after->extra : NULL);
        return;
    }
    switch (informer->what) {
    case CR_CACHED_POLICIES:
        notify_policy_changed(cache, change);
        return;
    case CR_CACHED_PODS:
        notify_pod_changed(cache, change);
        return;
    case CR_CACHED_BUDGETS:
        cr_cache_notify_budget_waiters(cache, change->ns);
        return;
    default:
        return;
    }
}

/* --- what a cluster may lack --- */

bool cr_cache_looks_at_hosts(const struct cr_cache *cache)
{
    return cache->options.hosts_in_use;
}

static bool lists(const struct cr_policy *policy, const struct cr_consumer_kind *kind)
{
    for (size_t i = 0; i < policy->consumers_len; i++)
        if (cr_streq(policy->consumers[i].kind, kind->resource.kind))
            return true;
    return false;
}

static bool remembers(const struct cr_policy_status *status, const struct cr_consumer_kind *kind)
{
    for (size_t i = 0; i < status->consumers_len; i++)
        if (cr_streq(status->consumers[i].kind, kind->resource.kind))
            return true;
    return false;
}

/* As consumers. */
static bool may_consume(const struct cr_policy *policy, const struct cr_consumer_kind *kind)
{
    return policy->discover.enabled || lists(policy, kind);
}

static bool has_hosts(const struct cr_cache *cache, const struct cr_consumer_kind *kind)
{
    return cache->options.hosts_in_use && kind->manner == CR_KIND_BY_API;
}

static bool needs(const struct cache_informer *informer, const struct cr_policy *policy)
{
    if (informer->what == CR_CACHED_BUDGETS)
        return policy->restart.method != CR_RESTART_NEVER;
    return has_hosts(informer->cache, informer->kind) || may_consume(policy, informer->kind);
}

static bool is_asked_for(const struct cache_informer *informer, const struct cr_policy *policy)
{
    return is_optional(informer) && needs(informer, policy) && (!informer->ns || cr_streq(informer->ns, policy->ns));
}

/* Once one policy has asked for it, it stays. */
static void start_what_is_needed(struct cr_cache *cache, const struct cr_policy *policy)
{
    for (size_t i = 0; i < cache->informers_len; i++) {
        struct cache_informer *informer = &cache->informers[i];
        if (!is_asked_for(informer, policy) || atomic_load(&informer->started_ms))
            continue;
        atomic_store(&informer->started_ms, cr_clock_monotonic_ms());
        cr_informer_start(informer->optional);
    }
}

static bool is_of(const struct cache_informer *informer, const struct cr_policy *policy)
{
    return !is_optional(informer) && (!informer->ns || cr_streq(informer->ns, policy->ns));
}

char *cr_cache_refused(struct cr_cache *cache, const struct cr_policy *policy, const struct cr_policy_status *status)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    for (size_t i = 0; i < cache->informers_len; i++) {
        const struct cache_informer *informer = &cache->informers[i];
        struct cr_error err = {0};
        if (is_of(informer, policy) && cr_informer_refused(informer->informer, &err))
            cr_buf_printf(&text, "%s%s.", text.len ? " " : "", err.text);
    }
    cr_cache_add_refused_secrets(cache, policy, status, &text);
    return text.len ? cr_buf_steal(&text) : NULL;
}

/* Of an optional one: its first full state comes only once a person has installed the kind or granted the right. */
static bool is_out_of_reach(const struct cache_informer *informer)
{
    struct cr_error err = {0};
    return cr_informer_refused(informer->optional, &err) || err.kind == CR_ERR_NOT_FOUND;
}

static bool is_never_listed(const struct cache_informer *informer)
{
    return !cr_informer_synced(informer->optional) && is_out_of_reach(informer);
}

static bool has_workloads_of(const struct cache_informer *informer, const struct cr_policy *policy,
                             const struct cr_policy_status *status)
{
    const struct cr_consumer_kind *kind = informer->kind;
    return kind && cr_consumer_kind_has_pods(kind) && (lists(policy, kind) || remembers(status, kind));
}

/* An optional kind that cannot be listed for long holds no policy but those that have workloads of it: a restart there
 * may have failed, which stops others, and what is remembered of them would be lost. */
static bool is_awaited(const struct cache_informer *informer, const struct cr_policy *policy,
                       const struct cr_policy_status *status)
{
    if (!is_asked_for(informer, policy) || is_out_of_reach(informer) || cr_informer_synced(informer->optional))
        return false;
    return has_workloads_of(informer, policy, status) ||
           cr_clock_monotonic_ms() - atomic_load(&informer->started_ms) < FIRST_ANSWER_MS;
}

bool cr_cache_waits(struct cr_cache *cache, const struct cr_policy *policy, const struct cr_policy_status *status)
{
    for (size_t i = 0; i < cache->informers_len; i++) {
        const struct cache_informer *informer = &cache->informers[i];
        if (is_of(informer, policy) && !cr_informer_synced(informer->informer))
            return true;
        if (is_awaited(informer, policy, status))
            return true;
    }
    return cr_cache_waits_for_secrets(cache, policy, status);
}

/* Of an optional one. True, with the reason: what the store has may be old, or nothing yet. A CRD that is not installed
 * is no reason. */
static bool is_unseen(const struct cache_informer *informer, struct cr_error *err)
{
    return !cr_informer_healthy(informer->optional, err) && err->kind != CR_ERR_NOT_FOUND;
}

/* A right that was never there is a person's choice: it holds only who is known to have workloads of the kind. */
static bool is_pods_unseen(const struct cache_informer *informer, const struct cr_policy *policy,
                           const struct cr_policy_status *status)
{
    struct cr_error err = {0};
    return is_unseen(informer, &err) && (!is_never_listed(informer) || has_workloads_of(informer, policy, status));
}

bool cr_cache_pods_unseen(struct cr_cache *cache, const struct cr_policy *policy, const struct cr_policy_status *status,
                          const struct cr_consumer_kind *only)
{
    for (size_t i = 0; i < cache->informers_len; i++) {
        const struct cache_informer *informer = &cache->informers[i];
        const struct cr_consumer_kind *kind = informer->kind;
        if (kind && cr_consumer_kind_has_pods(kind) && (!only || kind == only) && is_asked_for(informer, policy) &&
            is_pods_unseen(informer, policy, status))
            return true;
    }
    return false;
}

void cr_cache_kinds_unreachable(struct cr_cache *cache, const char *ns, struct cr_strvec *kinds)
{
    for (size_t i = 0; i < cache->informers_len; i++) {
        const struct cache_informer *informer = &cache->informers[i];
        if (informer->kind && is_optional(informer) && (!informer->ns || cr_streq(informer->ns, ns)) &&
            is_never_listed(informer))
            cr_strvec_add(kinds, informer->kind->resource.kind);
    }
}

char *cr_cache_unseen(struct cr_cache *cache, const struct cr_policy *policy)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    cr_cache_add_unseen_secrets(cache, policy, &text);
    for (size_t i = 0; i < cache->informers_len; i++) {
        struct cache_informer *informer = &cache->informers[i];
        struct cr_error err = {0};
        if (informer->what == CR_CACHED_BUDGETS || !is_asked_for(informer, policy) || !is_unseen(informer, &err))
            continue;
        cr_buf_printf(&text, "%s%s of kind %s cannot be seen: %s.", text.len ? " " : "",
                      may_consume(policy, informer->kind) ? "Consumers" : "Hosts in use", informer->kind->resource.kind,
                      err.text);
    }
    return text.len ? cr_buf_steal(&text) : NULL;
}

char *cr_cache_budgets_unseen(struct cr_cache *cache, const char *ns)
{
    for (size_t i = 0; i < cache->informers_len; i++) {
        const struct cache_informer *informer = &cache->informers[i];
        struct cr_error err = {0};
        if (informer->what == CR_CACHED_BUDGETS && (!informer->ns || cr_streq(informer->ns, ns)))
            return cr_informer_healthy(informer->optional, &err) ? NULL : cr_strdup(err.text);
    }
    return cr_strdup("this namespace is not watched");
}

static bool is_needed_by(const struct cache_informer *informer, const char *ns, const char *name)
{
    const char *problem = NULL;
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_cache_get(informer->cache, CR_CACHED_POLICIES, ns, name);
    const struct cr_policy *policy = snapshot ? cr_cached_policy(snapshot, &problem) : NULL;
    return policy && (is_of(informer, policy) || is_asked_for(informer, policy));
}

/* Whether the kind can be seen has changed: notifies the policies that wait for it, or report that it cannot be seen.
 */
static void notify_dependent_policies(void *arg)
{
    const struct cache_informer *informer = arg;
    CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
    cr_cache_keys(informer->cache, CR_CACHED_POLICIES, informer->ns, &keys);
    for (size_t i = 0; i < keys.len; i++) {
        const char *slash = strchr(keys.items[i], '/');
        cr_autofree char *ns = cr_strndup(keys.items[i], (size_t)(slash - keys.items[i]));
        if (is_needed_by(informer, ns, slash + 1))
            informer->cache->options.on_policy(informer->cache->options.arg, keys.items[i]);
    }
}

struct cr_policy_index *cr_cache_policy_index(struct cr_cache *cache)
{
    return cache->index;
}

/* The policies decide which Secrets are watched, and how, so they come first. */
static void on_policies_synced(void *arg)
{
    const struct cache_informer *informer = arg;
    cr_secret_watches_begin(informer->cache->secrets, informer->ns);
}

/* Without them, nothing is wanted. */
static void on_policies_refused(void *arg)
{
    on_policies_synced(arg);
    notify_dependent_policies(arg);
}

/* --- set-up --- */

/* Before its first full state, cr_informer_on_synced notifies of both. */
static void on_optional_refused(void *arg)
{
    const struct cache_informer *informer = arg;
    if (cr_informer_synced(informer->optional))
        notify_dependent_policies(arg);
}

static void (*refused_fn(const struct cache_informer *informer))(void *arg)
{
    if (informer->what == CR_CACHED_POLICIES)
        return on_policies_refused;
    return informer->kind && informer->kind->optional ? on_optional_refused : notify_dependent_policies;
}

/* What another object has made is left out: each Deployment and Argo Rollout has up to ten old ReplicaSets. Owned;
 * NULL: all are listed. */
static char *label_selector_of(const struct cache_informer *informer)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    if (!informer->kind || !informer->kind->only_bare)
        return NULL;
    for (size_t i = 0; i < cr_consumer_kinds_len; i++)
        if (cr_consumer_kinds[i].by_replica_sets)
            cr_buf_printf(&text, "%s!%s", text.len ? "," : "", cr_consumer_kinds[i].revision_labels[0]);
    return cr_buf_steal(&text);
}

static void make_informer(struct cr_manager *manager, struct cr_client *client, struct cr_loop *loop,
                          struct cache_informer *informer)
{
    cr_autofree char *label_selector = label_selector_of(informer);
    struct cr_informer_options options = {
        .watch = {.resource = informer->kind ? &informer->kind->resource : resources[informer->what],
                  .ns = informer->ns,
                  .label_selector = label_selector,
                  .optional = is_optional(informer)},
        .project = project,
        .on_change = on_change,
        .on_refused = refused_fn(informer),
        .on_first_sync = informer->what == CR_CACHED_POLICIES ? on_policies_synced : NULL,
        .arg = informer,
        .partial = true,
    };
    struct cr_informer *made = cr_informer_new(client, loop, &options);
    informer->store = cr_informer_store(made);
    informer->informer = made;
    if (!is_optional(informer)) {
        cr_manager_add_informer(manager, made);
        return;
    }
    informer->optional = made;
    cr_informer_on_synced(made, notify_dependent_policies, informer);
}

/* kind NULL: what says of which objects. */
static void add_informer(struct cr_cache *cache, struct cr_manager *manager, const struct cr_consumer_kind *kind,
                         enum cr_cached what, const char *ns)
{
    struct cache_informer *informer = &cache->informers[cache->informers_len++];
    *informer = (struct cache_informer){.cache = cache, .kind = kind, .what = what, .ns = cr_strdup_or_null(ns)};
    make_informer(manager, cache->client, cache->loop, informer);
}

/* What they may not see is said in this order. */
static void add_informers_of(struct cr_cache *cache, struct cr_manager *manager, const char *ns)
{
    add_informer(cache, manager, NULL, CR_CACHED_POLICIES, ns);
    for (size_t i = 0; i < cr_consumer_kinds_len; i++)
        if (cr_consumer_kind_is_watched(&cr_consumer_kinds[i]))
            add_informer(cache, manager, &cr_consumer_kinds[i], CR_CACHED_CONSUMERS, ns);
    add_informer(cache, manager, NULL, CR_CACHED_PODS, ns);
    add_informer(cache, manager, NULL, CR_CACHED_BUDGETS, ns);
}

struct cr_cache *cr_cache_new(struct cr_manager *manager, struct cr_client *client, struct cr_loop *loop,
                              const struct cr_cache_options *options)
{
    struct cr_cache *cache = cr_new(struct cr_cache);
    cache->options = *options;
    cache->client = client;
    cache->loop = loop;
    cache->refs = cr_secret_refs_new();
    cache->reader = cr_secret_reader_new(cache->refs);
    cache->index = cr_policy_index_new();
    cache->domain_index = cr_domain_index_new();
    cache->secrets = cr_cache_watch_secrets(cache, manager, client, loop);
    size_t namespaces = options->namespaces->len ? options->namespaces->len : 1;
    /* Never moved afterwards: the informers point into it. */
    cache->informers = cr_calloc(namespaces * (CR_CACHED_COUNT + cr_consumer_kinds_len), sizeof *cache->informers);
    for (size_t n = 0; n < namespaces; n++)
        add_informers_of(cache, manager, options->namespaces->len ? options->namespaces->items[n] : NULL);
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
    cr_cache_domains_free(cache->domains);
    cr_secret_watches_free(cache->secrets);
    cr_domain_index_free(cache->domain_index);
    cr_policy_index_free(cache->index);
    cr_secret_reader_free(cache->reader);
    cr_secret_refs_free(cache->refs);
    free(cache);
}

/* --- reading --- */

struct cr_snapshot *cr_cache_get(struct cr_cache *cache, enum cr_cached what, const char *ns, const char *name)
{
    if (what == CR_CACHED_SECRETS)
        return cr_secret_watches_get(cache->secrets, ns, name);
    struct cr_store *store = store_for(cache, what, ns);
    struct cr_snapshot *snapshot = store ? cr_store_get(store, ns, name) : NULL;
    if (snapshot && what == CR_CACHED_POLICIES)
        cr_project_decode(snapshot);
    return snapshot;
}

struct cr_packed *cr_cache_workload_packed(struct cr_cache *cache, const char *ns, const char *kind, const char *name)
{
    struct cr_store *store = find_store(cache, cr_consumer_kind_of(kind), CR_CACHED_CONSUMERS, ns);
    return store ? cr_store_get_packed(store, ns, name) : NULL;
}

struct cr_packed *cr_cache_policy_packed(struct cr_cache *cache, const char *ns, const char *name)
{
    struct cr_store *store = store_for(cache, CR_CACHED_POLICIES, ns);
    return store ? cr_store_get_packed(store, ns, name) : NULL;
}

struct cr_packed *cr_cache_template_of(struct cr_cache *cache, const char *ns, const void *extra)
{
    const char *deployment = cr_projected_template_of(extra);
    return deployment ? cr_cache_workload_packed(cache, ns, "Deployment", deployment) : NULL;
}

static void add_template(struct cr_cache *cache, const char *ns, struct cr_snapshot *rollout)
{
    CR_CLEANUP(cr_packed) struct cr_packed *packed = cr_cache_template_of(cache, ns, rollout->extra);
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *deployment = cr_packed_open(packed);
    const struct cr_json *template = deployment ? cr_json_at(deployment->json, "spec", "template") : NULL;
    if (template)
        cr_json_set(cr_json_edit(rollout->json, "spec"), "template", cr_json_copy(template));
}

struct cr_snapshot *cr_cache_workload(struct cr_cache *cache, const char *ns, const char *kind, const char *name)
{
    CR_CLEANUP(cr_packed) struct cr_packed *packed = cr_cache_workload_packed(cache, ns, kind, name);
    struct cr_snapshot *workload = cr_packed_open(packed);
    if (workload)
        add_template(cache, ns, workload);
    return workload;
}

/* There may be one informer for each namespace. */
static void visit_stores(const struct cr_cache *cache, const struct cr_consumer_kind *kind, enum cr_cached what,
                         const char *ns, cr_store_visit_fn visit, void *arg)
{
    for (size_t i = 0; i < cache->informers_len; i++) {
        const struct cache_informer *informer = &cache->informers[i];
        if (informer->kind == kind && informer->what == what && (!informer->ns || !ns || cr_streq(informer->ns, ns)))
            cr_store_visit(informer->store, ns, visit, arg);
    }
}

void cr_cache_visit(struct cr_cache *cache, enum cr_cached what, const char *ns, cr_store_visit_fn visit, void *arg)
{
    if (what == CR_CACHED_SECRETS)
        cr_secret_watches_visit(cache->secrets, ns, visit, arg);
    visit_stores(cache, NULL, what, ns, visit, arg);
}

void cr_cache_visit_kind(struct cr_cache *cache, const struct cr_consumer_kind *kind, const char *ns,
                         cr_store_visit_fn visit, void *arg)
{
    visit_stores(cache, kind, CR_CACHED_CONSUMERS, ns, visit, arg);
}

static void add_key(void *keys, const char *ns, const char *name, struct cr_packed *packed)
{
    (void)packed;
    cr_autofree char *key = cr_asprintf("%s/%s", ns, name);
    cr_strvec_add(keys, key);
}

void cr_cache_keys(struct cr_cache *cache, enum cr_cached what, const char *ns, struct cr_strvec *keys)
{
    cr_cache_visit(cache, what, ns, add_key, keys);
}

/* --- pods --- */

struct pods_of {
    const char *kind;
    const char *name;
    struct cr_packed **found; /* owned references; parsed when the lock is free again */
    size_t len;
};

static void collect_pod(void *arg, const char *ns, const char *name, struct cr_packed *pod)
{
    struct pods_of *of = arg;
    (void)ns;
    (void)name;
    const char *owner_kind = NULL;
    const char *owner = NULL;
    const void *extra = cr_packed_extra(pod);
    if (!cr_projected_owner(extra, &owner_kind, &owner) || !cr_streq(owner, of->name) ||
        !cr_streq(owner_kind, of->kind))
        return;
    of->found = cr_reallocarray(of->found, of->len + 1, sizeof(struct cr_packed *));
    of->found[of->len++] = cr_packed_ref(pod);
}

void cr_cache_all_pods(struct cr_cache *cache, const char *ns, const char *kind, const char *name,
                       struct cr_snapshots *out)
{
    struct pods_of of = {.kind = kind, .name = name};
    cr_cache_visit(cache, CR_CACHED_PODS, ns, collect_pod, &of);
    out->items = cr_calloc(of.len, sizeof(struct cr_snapshot *));
    for (size_t i = 0; i < of.len; i++) {
        out->items[out->len++] = cr_packed_open(of.found[i]);
        cr_packed_unref(of.found[i]);
    }
    free(of.found);
}

void cr_cache_pods(struct cr_cache *cache, const char *ns, const char *kind, const char *name,
                   struct cr_snapshots *active, struct cr_snapshots *ending)
{
    struct cr_snapshots all = {0};
    cr_cache_all_pods(cache, ns, kind, name, &all);
    active->items = cr_calloc(all.len, sizeof(struct cr_snapshot *));
    ending->items = cr_calloc(all.len, sizeof(struct cr_snapshot *));
    for (size_t i = 0; i < all.len; i++) {
        struct cr_snapshots *to = cr_projected_active(all.items[i]->extra) ? active : ending;
        to->items[to->len++] = all.items[i];
    }
    free(all.items); /* what was in it is theirs now */
}

void cr_snapshots_dispose(struct cr_snapshots *snapshots)
{
    for (size_t i = 0; i < snapshots->len; i++)
        cr_snapshot_unref(snapshots->items[i]);
    free(snapshots->items);
    *snapshots = (struct cr_snapshots){0};
}
