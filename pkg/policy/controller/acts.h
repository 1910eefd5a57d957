/* The only place that touches the world for a policy: restarts, nudges, evictions, probes, Events, status. Every write
 * carries a precondition or is harmless when repeated. Called in workers; each call blocks for its requests. */
#ifndef CR_POLICY_CONTROLLER_ACTS_H
#define CR_POLICY_CONTROLLER_ACTS_H

#include "evidence/canaries.h"
#include "evidence/memory.h"
#include "policy/controller/policy_metrics.h"
#include "policy/controller/probe_slots.h"
#include "policy/controller/world.h"
#include "kube/client.h"
#include "kube/event.h"
#include "policy/rules/plan.h"
#include "runtime/own_writes.h"

struct cr_actor {
    struct cr_client *client;
    struct cr_recorder *recorder;
    struct cr_memory *memory;
    struct cr_own_writes *own_writes; /* of policies, by "ns/name"; may be NULL, as all below */
    struct cr_reservations *reservations;
    struct cr_canaries *canaries;
    struct cr_probe_slots *slots; /* NULL: as many rounds as callers */
    struct cr_policy_metrics *metrics;
    struct cr_metric *nudges;        /* namespace */
    struct cr_metric *probes;        /* namespace, outcome */
    struct cr_metric *sidecar_pages; /* namespace, outcome */
    struct cr_metric *evictions;     /* namespace, reason */
};

/* Does the plan's restarts, each independently of the others. Returns how many were done; err: the first error that
 * must be retried. A restart that may not begin any more, because others have taken places, is not attempted, and
 * gathered->outdated is set. */
size_t cr_act_restarts(const struct cr_actor *actor, struct cr_gathered *gathered, const struct cr_plan *plan,
                       struct cr_error *err);
/* Takes places for the evictions that begin once the plan is on record; false: there is no place, plan again. */
bool cr_act_may_evict(const struct cr_actor *actor, struct cr_gathered *gathered,
                      const struct cr_plan *plan) CR_MUST_USE;
/* Does what the plan asks, restarts first, probes last. *did: something was done that the next plan should see at once.
 * The first error that must be retried is returned after everything else was tried. */
bool cr_act(const struct cr_actor *actor, struct cr_gathered *gathered, struct cr_plan *plan, bool *did,
            struct cr_error *err) CR_MUST_USE;

/* Emits the plan's Events; best effort. */
void cr_act_say(const struct cr_actor *actor, const struct cr_gathered *gathered, const struct cr_plan *plan);

/* Writes `after` when it differs from `before` in what is encoded; resourceVersion is the precondition. *written: owned
 * new object, NULL when nothing differed. */
bool cr_act_status(const struct cr_actor *actor, const struct cr_policy *policy, const char *resource_version,
                   const struct cr_policy_status *before, const struct cr_policy_status *after,
                   struct cr_json **written, struct cr_error *err) CR_MUST_USE;

#endif
