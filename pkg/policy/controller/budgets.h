/* The PodDisruptionBudgets of a namespace and the workloads with a rollout under way there, gathered from caches for
 * the plan. Everything that it borrows is kept alive. */
#ifndef CR_POLICY_CONTROLLER_BUDGETS_H
#define CR_POLICY_CONTROLLER_BUDGETS_H

#include "cluster/cache.h"
#include "policy/rules/plan.h"

struct cr_roller; /* a workload with a rollout under way */

struct cr_budgets {
    struct cr_world_budgets view; /* borrows from the other fields */
    struct cr_cache *cache;       /* borrowed, as is ns */
    const char *ns;
    struct cr_packed **packed;
    struct cr_budget *items;
    char *unseen;
    struct cr_roller **rollers;
    struct cr_budget_workload *rolling;
};

/* Looks for workloads that roll only where there are budgets, since nothing else needs them. *out must not be moved
 * afterwards. */
void cr_budgets_gather(struct cr_cache *cache, const char *ns, struct cr_budgets *out);
/* Adds a workload with a rollout that has begun, whatever the cache shows about the rollout; the cache's view of the
 * workload is used. It does nothing where there are no budgets, or when the rollout is known already. */
void cr_budgets_add_rolling(struct cr_budgets *budgets, const char *kind, const char *name);
/* The same for a workload that is restarted by evictions. */
void cr_budgets_add_evicting(struct cr_budgets *budgets, const char *kind, const char *name);
void cr_budgets_dispose(struct cr_budgets *budgets);
CR_DEFINE_DISPOSE(cr_budgets, struct cr_budgets, cr_budgets_dispose)

#endif
