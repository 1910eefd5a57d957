/* What a restart through a workload's own update strategy may take away at once. PodDisruptionBudgets do not limit a
 * rolling update, only evictions (kubernetes.io/docs/concepts/workloads/pods/disruptions), so a caller that wants to
 * stay within them must know the worst case before. Pure: reads the workload as JSON.
 *
 * Sources, as of Kubernetes 1.36: Deployment: ResolveFenceposts and MaxUnavailable in
 * pkg/controller/deployment/util/deployment_util.go; defaults in pkg/apis/apps/v1/defaults.go. StatefulSet:
 * pkg/controller/statefulset/stateful_set_control.go and getStatefulSetMaxUnavailable in stateful_set_utils.go
 * (KEP-961, gate MaxUnavailableStatefulSet). DaemonSet: UnavailableCount and SurgeCount in
 * pkg/controller/daemon/util/daemonset_util.go. Argo Rollout: argoproj.github.io/argo-rollouts/features/restart.
 *
 * minReadySeconds plays no part: the strategies count available pods, budgets ready ones, and an available pod is
 * ready. */
#ifndef CR_WORKLOAD_WORST_CASE_H
#define CR_WORKLOAD_WORST_CASE_H

#include "codec/json.h"

enum cr_worst_case_way {
    CR_WORST_ROLLS,   /* a changed pod template replaces the pods, whatever budgets say */
    CR_WORST_EVICTS,  /* Argo Rollout, spec.restartAt: its controller evicts pods, within budgets */
    CR_WORST_NOTHING, /* a changed pod template replaces no pod: OnDelete, a bare ReplicaSet, a partition above all */
    CR_WORST_UNKNOWN, /* it cannot be determined: every pod counts as taken away */
};

struct cr_worst_case {
    enum cr_worst_case_way way;
    int desired;     /* pods that there should be */
    int replaced;    /* of these; fewer than desired where a partition leaves the others as they are */
    int unavailable; /* of these, at most so many at once */
    int surge;       /* pods that may be started beyond those desired, before others go; 0: it cannot surge */
    char text[200];  /* the strategy in words; for Nothing and Unknown a sentence that says why */
};

/* By the row of the kind in api/consumer_kind.h; for a kind without rules the answer is Unknown. StatefulSet: its
 * maxUnavailable is believed, although a cluster without that gate replaces one pod after another. */
void cr_worst_case_of(const char *kind, const struct cr_json *workload, struct cr_worst_case *out);

#endif
