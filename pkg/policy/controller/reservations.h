/* Restarts under way, over all policies and by workload: how many may still begin, and which policy is next. A place is
 * taken under a lock right before the write that begins a restart, and given back by the next plan of that policy that
 * sees it finished: its rollout is complete, has failed, or waits for a person. When a place is free, the waiting
 * namespace with the fewest places is called, and in it the policy that came first. Thread-safe.
 *
 * Nothing of it is written anywhere. After a start, as after a change of leader, what is under way is found by the
 * first plan of each policy; until then no restart begins where there is a limit. Times are monotonic. */
#ifndef CR_POLICY_CONTROLLER_RESERVATIONS_H
#define CR_POLICY_CONTROLLER_RESERVATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/status.h"
#include "base/cleanup.h"
#include "base/strvec.h"
#include "metrics/metrics.h"
#include "policy/rules/plan.h"

enum {
    /* For this long an unanswered write may still be on its way: the API server's own time-out is a minute. */
    CR_RESERVATIONS_UNANSWERED_MS = 2 * 60 * 1000,
    /* A place is given to others when its policy was not planned for this long: the policy may be unreadable, or not
     * visible. A restart that is under way has its policy planned each CR_LOOK_AGAIN_MOST_MS at the latest. */
    CR_RESERVATIONS_KEPT_MS = 14 * 60 * 1000,
    /* After a start, for a policy that waits for what is still to be listed. */
    CR_RESERVATIONS_EXPECTED_MS = 10 * 1000,
    /* For so long a restart counts against the limit of all namespaces; then it counts in its own namespace only, so
     * that rollouts which never end do not stop those of other namespaces. Longer than a Deployment may be without
     * progress (progressDeadlineSeconds, 10 min by default), after which it has failed. */
    CR_RESERVATIONS_HELD_MS = 15 * 60 * 1000,
    /* A policy that is called and does not come within this time is passed over. */
    CR_RESERVATIONS_CALLED_MS = 60 * 1000,
};

struct cr_restart_limits {
    int per_namespace, total; /* 0: as many as there are */
};

struct cr_reservations_options {
    struct cr_restart_limits limits;
    struct cr_metrics *metrics; /* certroll_restarts_in_flight{namespace}; NULL: none. Not used after free */
    /* There is a place for this policy, "ns/name". From any thread that gives one back, under the lock: it must not
     * call back. */
    void (*on_place)(void *arg, const char *policy);
    /* A restart in the namespace has ended that other policies knew of from here only: evictions, or a write that was
     * refused or never answered. Called as on_place is; NULL: nobody asks. */
    void (*on_unseen_end)(void *arg, const char *ns);
    void *arg; /* of both */
};

struct cr_reservations;
struct cr_reservations *cr_reservations_new(const struct cr_reservations_options *options);
void cr_reservations_free(struct cr_reservations *all);
CR_DEFINE_CLEANUP(cr_reservations, struct cr_reservations, cr_reservations_free)

/* A workload of a namespace; borrowed. */
struct cr_reserved {
    const char *kind;
    const char *name;
};

/* --- after a start --- */

/* These policies are to be planned before anything begins. The first call counts. */
void cr_reservations_expect(struct cr_reservations *all, const struct cr_strvec *policies, int64_t now_ms);
bool cr_reservations_expects(struct cr_reservations *all); /* it was called */
/* The policy cannot be planned now. If it never was planned, the workloads that its status calls Restarting have a
 * place; it waits for none, and no other policy waits for it. soon: it will be planned; others wait for that a while
 * longer. */
void cr_reservations_put_off(struct cr_reservations *all, const char *policy, const char *ns,
                             const struct cr_policy_status *status, bool soon, int64_t now_ms);
/* The policy is gone, and its places with it. */
void cr_reservations_forget(struct cr_reservations *all, const char *policy, int64_t now_ms);

/* --- for a plan --- */

struct cr_world_limits cr_reservations_limits(struct cr_reservations *all, const char *policy, const char *ns);
/* version: the resourceVersion of the workload as it is seen; NULL: it is not there. */
struct cr_world_claim cr_reservations_claim(struct cr_reservations *all, const char *policy, const char *ns,
                                            struct cr_reserved workload, const char *version, int64_t now_ms);
/* A counter that grows with each place that is taken in the namespace. Read it before the state of the namespace. */
uint64_t cr_reservations_moves(struct cr_reservations *all, const char *ns);
/* Adds the kind and name of each workload of the namespace with a rollout that was begun here, and its version before
 * that: a cache that has no later version may not show the rollout yet. */
void cr_reservations_list(struct cr_reservations *all, const char *ns, struct cr_strvec *kinds, struct cr_strvec *names,
                          struct cr_strvec *versions);
/* The same for workloads that other policies restart by evictions; another eviction may be sent at any time. */
void cr_reservations_list_evicting(struct cr_reservations *all, const char *policy, const char *ns,
                                   struct cr_strvec *kinds, struct cr_strvec *names);

/* The restarts that the plan sees under way for its policy: only these keep their places, even where there are more
 * than the limit. */
void cr_reservations_follow(struct cr_reservations *all, const char *policy, const char *ns,
                            const struct cr_reserved *workloads, size_t len, int64_t now_ms);

/* --- to begin a restart --- */

struct cr_reservation {
    const char *policy;
    const char *ns;
    struct cr_reserved workload;
    const char *version; /* of the workload: the precondition of the write */
    bool evicts;         /* pod by pod; else by a rollout */
    bool under_budget;   /* it was checked against the other restarts that take pods away in the namespace */
    uint64_t *moves;     /* as it was read before that; set to its value including this one */
};
/* False: not by what was planned; plan again. A limit is reached, or another restart has taken a place in the namespace
 * and the plan did not take it into account. A workload that has a place needs no other. */
bool cr_reservations_take(struct cr_reservations *all, const struct cr_reservation *what, int64_t now_ms) CR_MUST_USE;
/* Call it right before each eviction. False: another restart has taken a place in the namespace since, and the plan did
 * not take it into account; plan again. */
bool cr_reservations_may_evict(struct cr_reservations *all, const struct cr_reservation *what) CR_MUST_USE;
/* The API server has accepted the write, or has refused it. Not to be called when its answer is lost. */
void cr_reservations_answered(struct cr_reservations *all, const struct cr_reservation *what, bool accepted,
                              int64_t now_ms);

/* --- to wait --- */

/* The policy waits for a place, at the end of the line unless it is in the line already, and is called when there is
 * one; at once if there is one now. */
void cr_reservations_wait(struct cr_reservations *all, const char *policy, const char *ns, int64_t now_ms);
/* The policy waits for no place; a place that it was called for goes to the next. */
void cr_reservations_leave(struct cr_reservations *all, const char *policy, int64_t now_ms);
/* Call it now and then: a place that no policy looks after goes to the next. */
void cr_reservations_sweep(struct cr_reservations *all, int64_t now_ms);

#endif
