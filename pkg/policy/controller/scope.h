/* What belongs to a policy, and the part of it that another policy has, gathered from caches for the pure rules
 * (discover.h, conflict.h). Everything that is borrowed is kept alive. */
#ifndef CR_POLICY_CONTROLLER_SCOPE_H
#define CR_POLICY_CONTROLLER_SCOPE_H

#include "cluster/cache.h"
#include "workload/discover.h"
#include "policy/rules/plan.h"

struct cr_conflicts;          /* what is kept of other policies on some of the same Secrets */
struct cr_namespace_snapshot; /* what is in the namespace */

struct cr_scope {
    struct cr_expansion expansion; /* the effective policy */
    /* Parallel to its consumers, each parallel to its Secrets; an element NULL: all pairs of that consumer belong to
     * this policy alone. */
    struct cr_world_other **others;
    char *unseen;     /* see cr_cache_unseen */
    bool unseen_pods; /* see cr_cache_pods_unseen */
    struct cr_namespace_snapshot *ns_snapshot;
    struct cr_conflicts *conflicts;
};

/* status: as last written. *out must not be moved afterwards: the plan's world points into it. */
void cr_scope_gather(struct cr_cache *cache, const struct cr_policy *policy, const struct cr_policy_status *status,
                     struct cr_scope *out);
struct cr_world_beyond cr_scope_beyond(const struct cr_scope *scope);
void cr_scope_dispose(struct cr_scope *scope);
CR_DEFINE_DISPOSE(cr_scope, struct cr_scope, cr_scope_dispose)

#endif
