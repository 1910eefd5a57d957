/* The world of one policy, as the plan needs it, gathered from caches and memory. Everything that it borrows is kept
 * alive. */
#ifndef CR_POLICY_CONTROLLER_WORLD_H
#define CR_POLICY_CONTROLLER_WORLD_H

#include "policy/controller/budgets.h"
#include "cluster/cache.h"
#include "policy/controller/hosts_in_use.h"
#include "evidence/memory.h"
#include "policy/controller/reservations.h"
#include "policy/controller/scope.h"
#include "cluster/secret_source.h"
#include "policy/rules/plan.h"

struct cr_world_source {
    struct cr_cache *cache;
    struct cr_secret_source *secrets;
    struct cr_memory *memory;
    struct cr_reservations *reservations; /* NULL: no limits, and nothing is remembered of restarts under way */
    const struct cr_catalogue *catalogue;
    const struct cr_tzif *const *zones; /* of the policy's windows */
};

struct cr_gathered {
    struct cr_world world; /* borrows from the other fields; its policy is the effective one */
    struct cr_scope scope;
    struct cr_policy_status status;
    struct cr_world_secret *secrets;
    struct cr_world_consumer *consumers;
    /* What keeps it alive. */
    struct cr_secret_view **secret_views;
    struct cr_snapshot **workload_snapshots;
    struct cr_json **workload_overrides; /* newer than the cache: what our own patch returned */
    struct cr_snapshots *pods;
    struct cr_world_pod **pod_views;
    struct cr_snapshots *ending;
    struct cr_world_ending **ending_views;
    struct cr_sighting **sightings;        /* per consumer: pods × endpoints */
    struct cr_trust_sighting **trusts;     /* per consumer: pods */
    struct cr_sidecar_sighting **sidecars; /* likewise */
    struct cr_note *refusals;
    struct cr_budgets budgets;
    struct cr_hosts_in_use hosts;
    char *trust_refused;
    uint64_t moves; /* cr_reservations_moves, from before all that was gathered */
    bool outdated;  /* a restart was not begun, or a pod not evicted, since others have moved: gather again */
};

/* policy: as it is written; status: as last written. out is not to be moved afterwards. Errors: a Secret that is there
 * cannot be read. */
bool cr_world_gather(const struct cr_world_source *source, const struct cr_policy *policy,
                     const struct cr_policy_status *status, struct cr_gathered *out, struct cr_error *err) CR_MUST_USE;
/* Updates memory and clock, after probes and nudges; caches stay as they were gathered. */
void cr_world_refresh(const struct cr_world_source *source, struct cr_gathered *gathered);
/* After acts: drops what was remembered of pods that went meanwhile. The cache has reported their end already, and no
 * one else forgets them. plan: what was done. True: some went, so that this world is outdated. */
bool cr_world_forget_gone(const struct cr_world_source *source, const struct cr_gathered *gathered,
                          const struct cr_plan *plan);
/* Takes the workload that a patch returned: its rollout is under way from now on. */
void cr_world_override(struct cr_gathered *gathered, size_t consumer, struct cr_json *workload);
void cr_world_dispose(struct cr_gathered *gathered);
CR_DEFINE_DISPOSE(cr_world, struct cr_gathered, cr_world_dispose)

/* Memory keys of a consumer, owned: what the API server refused, until when; evictions, for the change of that time,
 * and the last of them. Times of these notes: monotonic. */
char *cr_world_refused_key(const struct cr_policy *policy, const char *consumer);
char *cr_world_evicted_key(const struct cr_policy *policy, const char *consumer, int64_t since_ms);

#endif
