/* The metrics of policies: their consumers, what blocks them, their conditions, the ends of their certificates, and how
 * long their rotations took (docs/metrics.md). What belongs to a policy goes with it, what belongs to a namespace with
 * its last policy; counters and histograms have no label that grows with the number of workloads. Thread-safe. */
#ifndef CR_POLICY_CONTROLLER_POLICY_METRICS_H
#define CR_POLICY_CONTROLLER_POLICY_METRICS_H

#include "api/status.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "metrics/metrics.h"
#include "policy/rules/plan.h"

struct cr_policy_metrics;

/* metrics outlives it; NULL: nothing is counted. With a NULL cr_policy_metrics all below does nothing. */
struct cr_policy_metrics *cr_policy_metrics_new(struct cr_metrics *metrics);
void cr_policy_metrics_free(struct cr_policy_metrics *m);
CR_DEFINE_CLEANUP(cr_policy_metrics, struct cr_policy_metrics, cr_policy_metrics_free)

/* Sets the gauges of a policy from the status that is planned for it. world: its policy and secrets are read; NULL: the
 * policy is not planned (it is invalid, or what it needs cannot be seen), and what is remembered of it is shown. */
void cr_policy_metrics_show(struct cr_policy_metrics *m, const char *ns, const char *name, const struct cr_world *world,
                            const struct cr_policy_status *status);
/* The policy is gone. */
void cr_policy_metrics_forget(struct cr_policy_metrics *m, const char *ns, const char *name);

/* Workloads of a namespace whose restarts are counted by name, so that no tenant can make series without end: they go
 * with the namespace's last policy. */
enum { CR_RESTARTED_NAMES_MAX = 100 };

/* A restart was attempted: failed is NULL when it was done. status: the plan's, with the changes that the restart was
 * for. */
void cr_policy_metrics_restarted(struct cr_policy_metrics *m, const struct cr_policy *policy,
                                 const struct cr_policy_status *status, const struct cr_plan_restart *restart,
                                 const struct cr_error *failed);
/* A status was written: rotations that end with it are measured, from the moment their change was seen. */
void cr_policy_metrics_recorded(struct cr_policy_metrics *m, const struct cr_policy_status *before,
                                const struct cr_policy_status *after);

#endif
