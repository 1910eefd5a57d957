/* The plan for a cluster's own components: what the nodes say, in; at most one order, and what to say, out. Pure.
 * Level-based: it is computed from the present state, never from which step came before, so it can be killed at any
 * write.
 *
 * The rules (docs/design.md, "The control plane"):
 *   1. One component of one node at a time in the whole cluster. No component is restarted while an order is out, a
 *      node of the control plane is silent, an API server or a member of etcd that was there does not serve, or a step
 *      failed.
 *   2. Only what must be: a component with a file in state No (never Unknown, never Soon), that the policy and the
 *      agent's own list allow.
 *   3. In this order: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy, kubelet; within one,
 *      the nodes of the leaders (controller manager, scheduler) last, else by name.
 *   4. etcd never below quorum: members that answer, less this one, are still more than half of all. The last API
 *      server that serves is not restarted. (singleNode: Allow lifts both where there is only one.)
 *   5. The signing file: with more than one certificate in the signing certificate's file all signing stops, and the
 * next leader does not start. Then no controller manager is restarted, nor an API server or etcd of the leader's node,
 * and Blocked says what to do. A file that signs and is trusted, with one certificate, is reported beforehand.
 *   6. What a restart would load must be safe: a leaf whose issuers are not among what its peers have loaded, a signing
 *      key of service accounts whose public key not every API server verifies by: Blocked, with words.
 *      A trust bundle that lacks a CA that a leaf in use needs, and a broken file, likewise.
 *   7. Kubelets are restarted for tokens (tokens: RestartKubelets) when every API server verifies by the new key and
 *      every signer signs with it, while tokens of another key are on the node. Once for each key.
 *
 * What is unknown is never safe. While a node of the cluster has no report, is silent, or has troubles, nothing is
 * trusted, known in full or removable; restarts go on as long as no node with a component of the control plane, or with
 * its label, is silent or without a report. Where no agent sees the servers of a PKI (a managed control plane, an etcd
 * elsewhere), none of its CAs is removable.
 *
 * The controller writes what a plan says in this order, and does not go on when a write fails:
 *   1. `clear`: the order is taken out of that report's spec by a patch that is always sent, whatever the cache has;
 *   2. the status;
 *   3. the order, with the report's resourceVersion as precondition; token Secrets, workloads.
 * A plan never has an order and a clear. The status names an order before it is out, and until it is over: so a crash
 * between 2 and 3 is an order that is given again with the same token (or taken back, where it is not safe any more),
 * and a report that is read without the order that is out already is no reason for another. A crash between 1 and 2 is
 * an order that is over, and is found to be again by the report's act. One that is taken back before its agent has
 * said that it has begun is remembered (restarting_revoked) until the agent's next words say that it has not. Once they
 * say that it has, the status says so, too, before the order is forgotten. */
#ifndef CR_CONTROLPLANE_RULES_CONTROL_PLANE_PLAN_H
#define CR_CONTROLPLANE_RULES_CONTROL_PLANE_PLAN_H

#include "api/control_plane.h"
#include "api/node_report.h"

/* A ConfigMap kube-root-ca.crt or a token Secret: what it has. */
struct cr_control_plane_object {
    const char *ns, *name;
    bool terminating;               /* its namespace is, or a token Secret itself: nobody takes its token any more */
    bool out_of_reach;              /* immutable, or too large to be read: it is reported, and not waited for */
    const struct cr_strvec *prints; /* of its ca.crt, sorted; NULL: none, or unreadable */
    /* For a token Secret: */
    const char *key; /* the key that signed its token, hexadecimal; NULL: no token, or not known */
    bool has_token;
};

struct cr_control_plane_node {
    const char *name;
    const struct cr_node_report *report; /* NULL: none (no agent has reported) */
    bool control_plane; /* its label says that it has a part of the control plane, whatever its report says */
};

struct cr_control_plane_workload_view {
    bool found;
    const char *problem;   /* why it cannot be read, so that it is not known what it has; NULL: it can */
    bool rolling;          /* its rollout is not complete */
    const char *root_ca;   /* annotation of its template: digest of the root CA that it was last restarted for; NULL */
    const char *token_key; /* likewise the signing key */
    int64_t pods_started_ms; /* the oldest pod's start; 0: no pods */
};

/* All borrowed. */
struct cr_control_plane_world {
    const struct cr_control_plane_policy *policy;
    const struct cr_control_plane_status *status; /* as it was */
    const struct cr_control_plane_node *nodes;    /* every Node of the cluster, by name */
    size_t nodes_len;
    const struct cr_control_plane_object *root_cas; /* one for each namespace; prints NULL where it is missing */
    size_t root_cas_len;
    const struct cr_control_plane_object *token_secrets;
    size_t token_secrets_len;
    const struct cr_control_plane_workload_view *workloads;   /* as policy->workloads */
    const char *controller_manager_leader, *scheduler_leader; /* names of nodes; NULL: not known */
    int64_t now_ms;                                           /* wall */
};

struct cr_control_plane_restart_order {
    const char *node;      /* borrowed from the world */
    const char *component; /* likewise */
    char token[40]; /* computed from what is to be loaded and from the process that is to go: the same input gives the
                       same token */
};

struct cr_control_plane_plan {
    bool has_order;
    struct cr_control_plane_restart_order order; /* to be written into that report's spec */
    const char *clear; /* a node with an order that is over or taken back: to be taken out of its spec; NULL */
    struct cr_strvec renew_tokens;      /* "ns/name" of token Secrets that are to get a new token; 20 at most */
    struct cr_strvec restart_workloads; /* names of spec.workloads[]; at most one at a time */
    char root_ca[CR_SHA256_HEX];        /* digest of what they are restarted for; "" */
    char signing_key[CR_SHA256_HEX];    /* the key that all sign with, for a ConfigMap; "": none */
    struct cr_control_plane_status status;
    int64_t again_ms; /* look again at the latest after so long; 0: not before something changes */
};
void cr_control_plane_plan_dispose(struct cr_control_plane_plan *plan);
CR_DEFINE_DISPOSE(cr_control_plane_plan, struct cr_control_plane_plan, cr_control_plane_plan_dispose)

/* out need not be initialised. mode Plan and suspend: nothing is ordered, renewed or restarted; an order that has not
 * begun is taken back, as is one whose agent is silent. Time: a few ns for each fingerprint; 5,000 nodes with 10 files
 * each take some 10 ms. */
void cr_control_plane_plan(const struct cr_control_plane_world *world, struct cr_control_plane_plan *out);

#endif
