/* How a workload may be restarted within the PodDisruptionBudgets that cover its pods: by a rollout, whose worst case
 * must fit since nothing else holds a rollout to a budget; by eviction, which the API server holds to it; or not now,
 * and why. Pure.
 *
 * Sources, as of Kubernetes 1.36: what a budget allows: pkg/controller/disruption/disruption.go (trySync, failSafe,
 * getExpectedScale); whether a pod may be evicted: pkg/registry/core/pod/storage/eviction.go; the fields: policy/v1 and
 * kubernetes.io/docs/tasks/run-application/configure-pdb. */
#ifndef CR_WORKLOAD_BUDGET_H
#define CR_WORKLOAD_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

#include "api/policy.h"
#include "api/selector.h"
#include "base/cleanup.h"
#include "codec/json.h"
#include "workload/worst_case.h"

/* --- a budget --- */

struct cr_budget {
    char *name;
    char *demand;                /* "minAvailable 4" */
    struct cr_selector selector; /* unless it selects all */
    char *problem;               /* why it cannot be determined whom it selects; NULL: it can */
    char *sync_failure;          /* why its controller cannot compute it; NULL: it can */
    int healthy;                 /* of its pods, as its controller last counted */
    int needed, expected;        /* healthy ones that it demands; pods that there should be */
    int allowed;                 /* disruptions now */
    bool selects_all;
    bool of_generation;  /* its selector names a label of one generation of pods: it does not follow a rollout */
    bool by_scale;       /* maxUnavailable or a percentage: computed by the scale of the pods' controllers */
    bool unready_may_go; /* unhealthyPodEvictionPolicy: AlwaysAllow */
    bool observed;       /* its status is of its present spec */
};

/* A policy/v1 PodDisruptionBudget. Nothing fails: what cannot be read is a problem of that budget. */
void cr_budget_read(const struct cr_json *object, struct cr_budget *out);
void cr_budget_dispose(struct cr_budget *budget);
CR_DEFINE_DISPOSE(cr_budget, struct cr_budget, cr_budget_dispose)

/* An empty selector selects all pods, an absent one none. labels: metadata.labels, NULL when there are none. */
bool cr_budget_selects(const struct cr_budget *budget, const struct cr_json *labels);

/* --- the question (all borrowed) --- */

struct cr_budget_pod { /* one that is not being deleted */
    const char *name;
    const struct cr_json *labels;
    const char *phase;
    bool ready;
    bool replaced; /* it is one of the new ones and stays */
};

struct cr_budget_workload {
    const char *kind;
    const char *name;
    const struct cr_worst_case *worst;
    const struct cr_budget_pod *pods;
    size_t pods_len;
    bool evicts; /* of the others: it loses one pod at a time, which the API server holds to the budgets */
};

struct cr_budget_world {
    enum cr_restart_method method;
    enum cr_single_replica single;
    const struct cr_budget *budgets; /* all of the namespace */
    size_t budgets_len;
    const char *unseen; /* why they may not be seen; NULL: they can */
    /* Other workloads of the namespace with a rollout under way, whoever started it: what they may still take away
     * counts in full, whatever of it the budgets' status already shows. Workloads that evict count only beside a
     * rollout: of several evictions the API server admits as many as the budgets allow. */
    const struct cr_budget_workload *others;
    size_t others_len;
};

/* --- the answer --- */

enum cr_budget_way {
    CR_BUDGET_ROLL,
    CR_BUDGET_EVICT, /* one pod, then ask again */
    CR_BUDGET_BLOCKED,
};

enum cr_budget_reason {
    CR_BUDGET_FREE,           /* no budget covers it, or nothing is taken away */
    CR_BUDGET_FITS,           /* the rollout's worst case, or the eviction */
    CR_BUDGET_BEYOND,         /* method Rollout says so in words */
    CR_BUDGET_NEVER,          /* method Never */
    CR_BUDGET_NOTHING_ROLLS,  /* a rollout would replace no pod */
    CR_BUDGET_UNSEEN,         /* the budgets may not be seen */
    CR_BUDGET_UNREADABLE,     /* it cannot be determined whom one selects */
    CR_BUDGET_TWO,            /* two select one pod: the API server evicts none such */
    CR_BUDGET_DAEMON_SET,     /* by scale, which a DaemonSet does not have */
    CR_BUDGET_SYNC_FAILED,    /* its controller cannot compute it */
    CR_BUDGET_STALE,          /* its status is of an older spec */
    CR_BUDGET_NEEDS_ALL,      /* all its pods are healthy, and it needs them all: it will never allow one to go */
    CR_BUDGET_NEEDS_ONLY,     /* the same of a single replica */
    CR_BUDGET_OTHERS,         /* the restarts of others take what it allows */
    CR_BUDGET_EXHAUSTED,      /* it allows nothing now */
    CR_BUDGET_REPLACEMENT,    /* a pod that was evicted, or another, is not back yet */
    CR_BUDGET_TOO_MANY,       /* it allows some, the rollout may take more */
    CR_BUDGET_SINGLE_REPLICA, /* restart.singleReplica does not let the only pod go */
};

struct cr_budget_verdict {
    enum cr_budget_way way;
    enum cr_budget_reason reason;
    bool waits;   /* Blocked: it may pass by itself; an event of a budget or of pods then notifies us */
    bool warning; /* not Blocked, but worth a warning: past a budget, or the only pod goes */
    size_t pod;   /* Evict: its index; SIZE_MAX: all are replaced */
    char *text;   /* owned; what a user can act on */
};
void cr_budget_verdict_dispose(struct cr_budget_verdict *verdict);
CR_DEFINE_DISPOSE(cr_budget_verdict, struct cr_budget_verdict, cr_budget_verdict_dispose)

/* Auto: a rollout when its worst case fits, else an eviction when one is allowed. Rollout: it alone, also past the
 * budgets, which is then said. Evict: it alone. The rules are in docs/decisions.md, "Within a budget". */
void cr_budget_judge(const struct cr_budget_workload *workload, const struct cr_budget_world *world,
                     struct cr_budget_verdict *out);

#endif
