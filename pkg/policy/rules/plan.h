/* The plan of one policy: what is, in; what to remember, to do and to say, out. Pure: no I/O, no clock of its own.
 * Level-based: it looks at what is, never at which event came, so it can be computed again after a crash at any point
 * and asks for nothing that was done already. */
#ifndef CR_POLICY_RULES_PLAN_H
#define CR_POLICY_RULES_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/domain_status.h"
#include "api/policy.h"
#include "api/status.h"
#include "api/trust_problem.h"
#include "base/cleanup.h"
#include "codec/json.h"
#include "codec/tzif.h"
#include "pki/material.h"
#include "workload/budget.h"
#include "catalogue/catalogue.h"
#include "workload/discover.h"
#include "evidence/evidence.h"
#include "evidence/sidecar_page.h"
#include "evidence/trust_sighting.h"

/* --- what is (all borrowed) --- */

/* A host for which an Ingress or a Gateway shows the leaf of a Secret. */
struct cr_world_host {
    const char *host;
    const char *kind;   /* "Ingress", "Gateway" */
    const char *object; /* its name */
};

struct cr_world_secret { /* parallel to policy->secrets */
    bool found;
    bool immutable;
    enum cr_material_problem problem;
    const char *problem_text;
    const char *resource_version;
    const struct cr_material *material;                  /* NULL when there is a problem */
    int64_t refused_not_before_ms, refused_not_after_ms; /* of the leaf with the problem; 0: it could not be read */
    const char
        *opaque_problem; /* static: why opaque material cannot be digested, for a while; NULL: nothing is known */
    struct cr_domain_step step;  /* of a trust domain that has published this version; none is known where none is asked
                                  * for: the Secret is as it was observed, and nothing is pending */
    const char *on_missing_name; /* what its annotation CR_MISSING_NAME_ANNOTATION says; NULL: it has none */
    const struct cr_world_host *hosts; /* each host once; none where Ingresses and Gateways are not watched */
    size_t hosts_len;
};

struct cr_world_pod {
    const struct cr_json *pod;
    const char *name;
    const char *uid;
    const char *ip; /* NULL: none yet */
    bool ready;
    int64_t started_ms; /* wall, by the node's clock: compared with other starts of this pod only */
    int64_t created_ms; /* wall, by the API server's clock */
    /* What was last seen at each endpoint: parallel to the consumer's verify.endpoints, NULL when there are none. */
    const struct cr_sighting *sightings;
    /* What was last seen of its trust, in the order of verify.endpoints as well; NULL: no probe looks at it. */
    const struct cr_trust_sighting *trust;
    /* What its certroll-sidecar's page was last seen to say; NULL: it was not asked. */
    const struct cr_sidecar_sighting *sidecar;
    /* Nudges by this process, for the change of that time. */
    int nudges;
    int64_t nudged_ms;
    int64_t nudged_since_ms;
    int64_t evicted_ms; /* by this process; 0: it was not */
};

/* A pod that is being deleted, with containers that may still run. Times: wall, by the API server's clock. */
struct cr_world_ending {
    struct cr_world_pod pod; /* nothing is known of what it shows */
    int64_t since_ms;        /* it was asked to end */
    int64_t until_ms;        /* its grace period is over */
    int64_t drain_ms;        /* what its shutdown manager takes at most (shutdown_hook.h); 0: it has none */
};

/* New pods that are evicted for one change of one consumer: more evictions would not help: something else keeps the old
 * leaf. */
enum { CR_PLAN_EVICTIONS_MAX = 5 };

/* The policy that has one Secret of a consumer, when it is not this one (conflict.h). */
struct cr_world_other {
    const char *policy; /* NULL: it is this one */
    /* What that policy remembers of the Secret; when it is this one, what the policy that loses the pair to it
     * remembers. NULL: nothing yet. */
    const struct cr_secret_status *memory;
    bool other_keys; /* it reads the Secret through other names of keys: its material says nothing of ours */
    bool converged;  /* it says that the consumer has what is pending there */
};

/* What this process knows of restarts under way of one workload (policy/controller/reservations.h), which its cache may
 * not show yet. */
struct cr_world_claim {
    bool ours;       /* one by this policy was begun, and no plan has seen its end */
    bool unanswered; /* and neither an answer nor the workload shows yet whether it was accepted */
    bool any;        /* one by any policy: another of the same workload adds none */
};

struct cr_world_consumer { /* parallel to policy->consumers */
    bool found;
    bool unseen; /* its kind has pods and cannot be listed: what is known of it may be old, also that it is not there */
    const struct cr_json *workload;
    const struct cr_world_pod *pods; /* active ones */
    size_t pods_len;
    const struct cr_world_ending *ending; /* in no order */
    size_t ending_len;
    int evictions;       /* of new pods that served the old leaf, by this process, for the present change */
    int64_t evicted_ms;  /* the last of them */
    const char *refused; /* what the API server said when a restart or eviction was last tried in vain; NULL: nothing */
    bool refused_by_budget;              /* it was because of a PodDisruptionBudget */
    int64_t refused_until_ms;            /* not tried again before */
    const struct cr_world_other *others; /* parallel to policy->secrets; NULL: all are this policy's alone */
    struct cr_world_claim claim;
};

/* What belongs to the policy and is not effective. */
struct cr_world_beyond {
    size_t secrets; /* beyond CR_POLICY_SECRETS_MAX */
    size_t consumers;
    const char *unseen; /* which kinds of consumers cannot be listed, and why; NULL: all can */
    bool unseen_pods;   /* a kind whose workloads have pods is among them: who uses a Secret is not known */
    /* Names in use that are not looked at: of so many Ingresses and Gateways that name its Secrets, and of others since
     * they are too many. */
    size_t host_objects;
    bool hosts;
};

/* The PodDisruptionBudgets of the policy's namespace, and the others that take pods away there. */
struct cr_world_budgets {
    const struct cr_budget *items;
    size_t len;
    const char *unseen; /* why they may not be seen; NULL: they can */
    /* Workloads with a rollout under way, whoever started it, or which another policy restarts by evictions; consumers
     * of this policy may be among them. */
    const struct cr_budget_workload *rolling;
    size_t rolling_len;
};

/* How many restarts may be under way at a time, over all policies. */
struct cr_world_limits {
    int per_namespace, total;       /* 0: as many as there are */
    int namespace_free, total_free; /* how many more this policy may begin; only where there is a limit */
    bool unknown;                   /* after a start: what is under way is not known yet */
    /* What is under way for this policy is in its consumers' claims; false until it was planned once; until then
     * templates show it. */
    bool remembers;
};

struct cr_world {
    const struct cr_policy *policy;
    const struct cr_policy_status *status; /* as last written */
    const struct cr_world_secret *secrets;
    const struct cr_world_consumer *consumers;
    const struct cr_catalogue *catalogue;
    const struct cr_tzif *const *zones; /* parallel to policy->restart.windows */
    /* Parallel to policy->secrets; NULL: not looked at. */
    const struct cr_other_pods *unmanaged; /* of no workload */
    const struct cr_other_pods *uncovered; /* whose workload is not there, or does not use the Secret any more */
    struct cr_world_beyond beyond;
    struct cr_world_budgets budgets;
    struct cr_world_limits limits;
    enum cr_trust_reason trust_refused; /* why a target of spec.trust is not written; CR_TRUST_FINE: all are */
    const char *trust_refused_text;     /* in words */
    int64_t now_ms;                     /* wall */
};

/* --- what to do --- */

struct cr_plan_restart {
    size_t consumer;
    struct cr_json *annotations; /* owned object: annotation name → value, for the pod template */
    int64_t restart_at_ms;       /* Argo Rollout: its spec.restartAt, and the annotations for itself; 0: any other */
    char *why;                   /* owned */
    char *secrets;               /* owned: names of the Secrets and ids of the rotations that it is for, "a,b" */
    char *rotations;
    const char *warns;   /* static: the reason of a warning that is emitted with it; NULL: there is none */
    char *warning;       /* owned */
    bool carries_memory; /* what it is for can be read from its annotations alone */
    bool under_budget;   /* it was judged against the others that take pods away in the namespace */
};

struct cr_plan_pod { /* a pod to nudge or probe */
    size_t consumer;
    size_t pod;
    /* Probes. */
    bool trust;                    /* what it trusts is asked for as well: CA names, verify.certsPage */
    int sidecar_port;              /* of the page of its certroll-sidecar, which is asked for; 0: it is not */
    char canary_ca[CR_SHA256_HEX]; /* fingerprint of the CA that a canary should be of, where one is at hand; "":
                                    * none is wanted */
};

struct cr_plan_eviction {
    size_t consumer;
    size_t pod;
    bool repair; /* a new pod that came up with the old leaf; else one that a restart replaces, which is on record */
};

enum cr_plan_event_about { CR_ABOUT_POLICY, CR_ABOUT_WORKLOAD };

struct cr_plan_event {
    bool warning;
    enum cr_plan_event_about about;
    size_t consumer;    /* with CR_ABOUT_WORKLOAD */
    const char *reason; /* static */
    char *message;      /* owned */
    char *secret;       /* owned; the Secret it is about, NULL: none */
    char rotation[24];  /* its rotation; "": none */
};

struct cr_plan {
    struct cr_policy_status status; /* what should be remembered and shown */
    /* The status must be written before anything is done: a change or a first sight is not on record yet. The acts
     * below are then empty; plan again with the written status. */
    bool record_first;

    struct cr_plan_restart *restarts;
    size_t restarts_len;
    struct cr_plan_pod *nudges;
    size_t nudges_len;
    struct cr_plan_pod *probes;
    size_t probes_len;
    struct cr_plan_eviction *evictions;
    size_t evictions_len;
    struct cr_plan_event *events; /* emitted once the status is written */
    size_t events_len;
    size_t *under_way; /* consumers that this policy restarts already; those of `restarts` come to it when begun */
    size_t under_way_len;
    size_t *evicting; /* consumers whose evictions begin once this is on record: with record_first only */
    size_t evicting_len;
    bool waits_for_limit;     /* nothing but the limit of the namespace or of all holds a restart */
    int64_t requeue_after_ms; /* 0: not before something changes */
    int64_t restart_after_ms; /* so long only time holds a restart; 0: no restart. Not before requeue_after_ms */
};

void cr_plan_make(const struct cr_world *world, struct cr_plan *plan);
/* first: a plan of this world that must be recorded first. out: those restarts of the plan that would follow which may
 * be done before; nothing else in out may be used but its status, by which they were decided. The rule is in
 * docs/decisions.md, "Before it is on record". */
void cr_plan_ahead(const struct cr_world *world, const struct cr_plan *first, struct cr_plan *out);
void cr_plan_dispose(struct cr_plan *plan);
CR_DEFINE_DISPOSE(cr_plan, struct cr_plan, cr_plan_dispose)

/* written: what the API server made of the status `wanted`. False: a CRD that is older than this program has dropped
 * something that restarts wait for. */
bool cr_plan_is_kept(const struct cr_policy_status *wanted, const struct cr_policy_status *written);

/* Status of a policy that cannot be used: Ready=False with the reason "Invalid"; what was remembered stays. */
void cr_plan_invalid(const struct cr_policy_status *before, int64_t generation, const char *problem, int64_t now_ms,
                     struct cr_policy_status *out);
/* Status of a policy while something that it needs may not be seen: Ready=False with the reason "CannotWatch", and
 * Converged is unknown; what was remembered stays, and goes on when it can be seen again. */
void cr_plan_unseen(const struct cr_policy_status *before, int64_t generation, const char *problem, int64_t now_ms,
                    struct cr_policy_status *out);

#endif
