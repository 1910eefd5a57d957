/* Where a workload's rollout stands, as kubectl rollout status judges it. Pure: reads the workload as JSON. */
#ifndef CR_WORKLOAD_ROLLOUT_H
#define CR_WORKLOAD_ROLLOUT_H

#include "codec/json.h"

enum cr_rollout_state {
    CR_ROLLOUT_COMPLETE,    /* all replicas updated, available, and no old ones left */
    CR_ROLLOUT_PROGRESSING, /* also: the controller has not yet observed the newest generation */
    CR_ROLLOUT_FAILED,      /* Deployment: Progressing=False, ProgressDeadlineExceeded; others: the plan's deadline */
    CR_ROLLOUT_PAUSED,      /* spec.paused: nothing will move until a person resumes it */
    CR_ROLLOUT_MANUAL,      /* OnDelete: pods are replaced only when they are deleted */
};

struct cr_rollout {
    enum cr_rollout_state state;
    int desired, updated, available;
    bool mixed;        /* not all pods are of the present template, as far as its controller has observed */
    bool busy;         /* Argo Rollout: it is being updated or restarted, or waits for a person in the middle of that */
    char message[160]; /* "2 of 3 replicas updated" */
};

/* By the row of the kind in api/consumer_kind.h. A StatefulSet's partition is honoured; of a ReplicaSet nothing rolls,
 * so it is complete when its pods are available; Argo Rollouts since 1.0. A kind without rules: Progressing with a
 * message. */
void cr_rollout_judge(const char *kind, const struct cr_json *workload, struct cr_rollout *out);

#endif
