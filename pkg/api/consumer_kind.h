/* The kinds of consumers: one table, with a row for each kind and a column for each difference that a rule asks for.
 * Another kind of workload with the usual shape (spec.replicas, spec.selector, spec.template, pods with an owner
 * reference) is another row; a way of replacing pods that no row has yet is also a value of cr_kind_update.
 *
 * The CRDs, the Roles and the admission policy have lists of their own, which test_consumer_kind.c compares with the
 * table. */
#ifndef CR_API_CONSUMER_KIND_H
#define CR_API_CONSUMER_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include "codec/resource_type.h"

enum cr_kind_manner {
    CR_KIND_STAYS,       /* a workload whose pods run on until they are replaced */
    CR_KIND_BY_API,      /* it has no pods, and its controller watches the Secrets that it names */
    CR_KIND_RUNS_TO_END, /* its pods end by themselves; it is not watched */
};

/* How pods are replaced: the rules are in workload/rollout.c and workload/worst_case.c. */
enum cr_kind_update {
    CR_UPDATE_UNKNOWN, /* no rules: it has no pods that could be replaced, or the kind is not in the table */
    CR_UPDATE_DEPLOYMENT,
    CR_UPDATE_STATEFUL_SET,
    CR_UPDATE_DAEMON_SET,
    CR_UPDATE_NOTHING,      /* a ReplicaSet: a changed template replaces no pod */
    CR_UPDATE_ARGO_ROLLOUT, /* argo-rollouts.readthedocs.io */
    CR_UPDATES
};

struct cr_consumer_kind {
    struct cr_resource resource;
    enum cr_kind_manner manner;
    enum cr_kind_update update;
    /* Labels that its controller sets on pods, to another value for each generation of them. */
    const char *revision_labels[2];
    bool optional;        /* the cluster may lack it, or not let us see it: it is watched once a policy asks for it */
    bool by_replica_sets; /* its pods belong to ReplicaSets "<name>-<value of the first label>" */
    bool only_bare;       /* where another object has made it, that one is the consumer */
    bool restart_at;      /* it is restarted by spec.restartAt and not by its pod template */
    bool surges;          /* maxSurge can make it start a new pod before an old one goes */
    bool per_node;        /* a pod for each node: it has no replicas, and no scale that a budget could be computed by */
    bool has_deadline;    /* its controller says when a rollout has taken too long */
};

extern const struct cr_consumer_kind cr_consumer_kinds[];
extern const size_t cr_consumer_kinds_len;

/* The row of "Deployment". Never NULL: a kind that is not in the table has a row without any property, and with the
 * kind "". */
const struct cr_consumer_kind *cr_consumer_kind_of(const char *kind);
/* By apiVersion, too. NULL: not in the table. */
const struct cr_consumer_kind *cr_consumer_kind_find(const char *api_version, const char *kind);

/* Whether there is an informer for it. */
bool cr_consumer_kind_is_watched(const struct cr_consumer_kind *kind);
/* Whether it has a pod template, by which its controller makes pods that stay. */
bool cr_consumer_kind_has_pods(const struct cr_consumer_kind *kind);
/* Whether its controller replaces pods by itself. */
bool cr_consumer_kind_rolls(const struct cr_consumer_kind *kind);
/* Whether it does so when the pod template has changed. */
bool cr_consumer_kind_rolls_by_template(const struct cr_consumer_kind *kind);
/* Whether the controller of some kind gives each generation of its pods another value of this label. */
bool cr_consumer_kind_is_revision_label(const char *label);

#endif
