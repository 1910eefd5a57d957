/* Shared by the parts of budget.h; not for others. */
#ifndef CR_WORKLOAD_BUDGET_INTERNAL_H
#define CR_WORKLOAD_BUDGET_INTERNAL_H

#include "workload/budget.h"

struct cr_budget_question {
    const struct cr_budget_workload *workload;
    const struct cr_budget_world *world;
};

/* Why not. */
struct cr_budget_refusal {
    enum cr_budget_reason reason;
    bool waits; /* it may pass by itself */
    char *text; /* owned */
};
void cr_budget_refusal_dispose(struct cr_budget_refusal *refusal);
CR_DEFINE_DISPOSE(cr_budget_refusal, struct cr_budget_refusal, cr_budget_refusal_dispose)

/* Replaces what was refused before; takes text. Always false. */
bool cr_budget_refuse(struct cr_budget_refusal *out, enum cr_budget_reason reason, char *text);

/* One replica, which a restart may take away as a whole. */
bool cr_budget_is_single(const struct cr_budget_question *q);
int cr_budget_selected_pods(const struct cr_budget *budget, const struct cr_budget_workload *workload);
/* How many of the pods that are ready now a rollout takes at worst: all beyond the least that its strategy keeps
 * available. More pods than desired are ready after scaling down, and while a rollout surges. */
int cr_budget_taken_at_worst(const struct cr_budget_workload *workload);
/* The first two budgets that select the pod; how many of them there are. */
size_t cr_budgets_of(const struct cr_budget_question *q, const struct cr_budget_pod *pod,
                     const struct cr_budget *found[2]);

/* Within all budgets; false: why not. */
bool cr_budget_may_roll(const struct cr_budget_question *q, struct cr_budget_refusal *out);
/* The first pod that may go, pods that are not ready before those that are; SIZE_MAX: all are replaced. False: none
 * may, and out says why the first of them may not. */
bool cr_budget_may_evict(const struct cr_budget_question *q, size_t *pod, struct cr_budget_refusal *out);

#endif
