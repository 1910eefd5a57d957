/* What the controllers see of the cluster: one informer per resource and namespace, and which policies an object
 * concerns. Reads return refcounted snapshots, and are allowed from any thread. */
#ifndef CR_CLUSTER_CACHE_H
#define CR_CLUSTER_CACHE_H

#include "api/consumer_kind.h"
#include "api/policy.h"
#include "api/status.h"
#include "base/cleanup.h"
#include "base/strvec.h"
#include "cluster/watch_scope.h"
#include "cluster/policy_index.h"
#include "runtime/manager.h"
#include "runtime/store.h"

enum cr_cached {
    CR_CACHED_POLICIES,
    CR_CACHED_SECRETS,
    CR_CACHED_CONSUMERS, /* of all kinds that api/consumer_kind.h says are watched: cr_cache_visit_kind, _workload */
    CR_CACHED_PODS,
    /* PodDisruptionBudgets, which are watched once a policy asks for them, since we may not be allowed to see them.
     * Their JSON is empty, see cr_projected_budget. */
    CR_CACHED_BUDGETS,
    CR_CACHED_COUNT
};

struct cr_cache;

struct cr_cache_options {
    const struct cr_strvec *namespaces; /* empty: all */
    enum cr_secret_scope secret_scope;
    bool hosts_in_use; /* Ingresses and Gateways are watched for whatever policy: cr_cache_looks_at_hosts */
    /* Called on the loop thread once for each policy that an event affects, with its key "ns/name". */
    void (*on_policy)(void *arg, const char *key);
    /* A pod is gone; uid is its UID. Loop thread. */
    void (*on_pod_gone)(void *arg, const char *uid);
    /* No policy names or remembers the Secret "ns/name" any more, and no trust domain wants it. Loop thread; may be
     * NULL. */
    void (*on_secret_unwanted)(void *arg, const char *key);
    void *arg;
};

/* Its informers belong to the manager, so the cache must be freed after it. */
struct cr_cache *cr_cache_new(struct cr_manager *manager, struct cr_client *client, struct cr_loop *loop,
                              const struct cr_cache_options *options);
void cr_cache_free(struct cr_cache *cache);
CR_DEFINE_CLEANUP(cr_cache, struct cr_cache, cr_cache_free)

/* Returns a snapshot that the caller owns, or NULL. */
struct cr_snapshot *cr_cache_get(struct cr_cache *cache, enum cr_cached what, const char *ns, const char *name);
/* The workload, Ingress or Gateway that a consumer names; NULL when it does not exist or its kind is not one of ours.
 * An Argo Rollout with a workloadRef has the template that it takes from there. */
struct cr_snapshot *cr_cache_workload(struct cr_cache *cache, const char *ns, const char *kind, const char *name);

struct cr_snapshots {
    struct cr_snapshot **items; /* owned references */
    size_t len;
};
void cr_snapshots_dispose(struct cr_snapshots *snapshots);
CR_DEFINE_DISPOSE(cr_snapshots, struct cr_snapshots, cr_snapshots_dispose)
/* Visits every object in `ns` (all namespaces if NULL; not supported for Secrets). The order is undefined. Objects are
 * not parsed. visit: see cr_store_visit. */
void cr_cache_visit(struct cr_cache *cache, enum cr_cached what, const char *ns, cr_store_visit_fn visit, void *arg);
/* The same for the objects of a kind of consumers that is watched. */
void cr_cache_visit_kind(struct cr_cache *cache, const struct cr_consumer_kind *kind, const char *ns,
                         cr_store_visit_fn visit, void *arg);
/* The keys of what cr_cache_visit visits. */
void cr_cache_keys(struct cr_cache *cache, enum cr_cached what, const char *ns, struct cr_strvec *keys);
/* For callers that need only what is available without parsing: for a workload, what its projection made of it
 * (project.h). Returns a reference, or NULL. */
struct cr_packed *cr_cache_workload_packed(struct cr_cache *cache, const char *ns, const char *kind, const char *name);
struct cr_packed *cr_cache_policy_packed(struct cr_cache *cache, const char *ns, const char *name);
struct cr_packed *cr_cache_secret_packed(struct cr_cache *cache, const char *ns, const char *name);
/* The Deployment that an Argo Rollout takes its template from, by its workloadRef. extra: of the Rollout. Returns a
 * reference; NULL: the Rollout has its own template, or there is no such Deployment. */
struct cr_packed *cr_cache_template_of(struct cr_cache *cache, const char *ns, const void *extra);
/* The pods of a workload, by their owner, from one look at the cache: the active ones, and those that have ended or are
 * being deleted. */
void cr_cache_pods(struct cr_cache *cache, const char *ns, const char *kind, const char *name,
                   struct cr_snapshots *active, struct cr_snapshots *ending);
/* Both in one list. */
void cr_cache_all_pods(struct cr_cache *cache, const char *ns, const char *kind, const char *name,
                       struct cr_snapshots *out);

/* Says which of the objects that the policy needs in its namespace (its Secrets, workloads, pods) may not be seen, and
 * what to grant. What is cached of them may be old, so nothing may be done based on it. status: as last written. Owned;
 * NULL: everything can be seen. */
char *cr_cache_refused(struct cr_cache *cache, const struct cr_policy *policy, const struct cr_policy_status *status);
/* True: the first full state of what the policy needs is still to come, and no answer says that it will not. A kind
 * that a cluster may lack is waited for ten seconds at most, whatever its trouble; without end if it has pods and the
 * policy lists or remembers workloads of it. */
bool cr_cache_waits(struct cr_cache *cache, const struct cr_policy *policy, const struct cr_policy_status *status);
/* Says what is not seen, and why, of the things that the policy asks for but could do without: kinds of consumers, what
 * a selector takes. A CRD that is not installed is no reason. Owned; NULL: none. */
char *cr_cache_unseen(struct cr_cache *cache, const struct cr_policy *policy);
/* Whether a kind of consumers with pods is among these: workloads that have the policy's Secrets may be missing. One
 * that may not be listed counts only if the policy lists workloads of it, or its status has some. only: that kind;
 * NULL: any. */
bool cr_cache_pods_unseen(struct cr_cache *cache, const struct cr_policy *policy, const struct cr_policy_status *status,
                          const struct cr_consumer_kind *only);
/* Adds the kinds whose workloads were never listed in the namespace, since we may not, or since a kind is not
 * installed. */
void cr_cache_kinds_unreachable(struct cr_cache *cache, const char *ns, struct cr_strvec *kinds);
/* Why the PodDisruptionBudgets of the namespace are not seen. Owned; NULL: they are seen. */
char *cr_cache_budgets_unseen(struct cr_cache *cache, const char *ns);

/* Hosts of Ingresses and Gateways count as names in use. Those that name a Secret of a policy concern it. */
bool cr_cache_looks_at_hosts(const struct cr_cache *cache);

/* From now on Secrets are read through the key names of this policy. It may be an effective policy that is not cached.
 */
void cr_cache_expect_secrets(struct cr_cache *cache, const struct cr_policy *policy);
/* Projects a Secret that was fetched outside of the informers: snapshot->json is the whole object and is stripped.
 * Reads it before it returns, so not on the loop. */
void cr_cache_project_secret(struct cr_cache *cache, struct cr_snapshot *snapshot);

/* The decoded policy of a snapshot from CR_CACHED_POLICIES; NULL with the reason in *problem when it cannot be used.
 * Borrowed. */
const struct cr_policy *cr_cached_policy(const struct cr_snapshot *snapshot, const char **problem);

/* Which objects concern which policies. Borrowed. */
struct cr_policy_index *cr_cache_policy_index(struct cr_cache *cache);
/* Notifies the policies of the namespace that wait for a budget: something that counts against one has changed. The
 * cache sees to it for all that it watches. Any thread. */
void cr_cache_notify_budget_waiters(struct cr_cache *cache, const char *ns);
/* Through which names Secrets are read. Borrowed. */
struct cr_secret_refs *cr_cache_secret_refs(struct cr_cache *cache);

#endif
