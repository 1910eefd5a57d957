/* The part of acts that looks at pods: which may be asked, by how many at a time, and what is remembered of it. */
#ifndef CR_POLICY_CONTROLLER_ACTS_PROBE_H
#define CR_POLICY_CONTROLLER_ACTS_PROBE_H

#include "policy/controller/acts.h"

/* Asks the endpoints of the pods that the plan names: at most 256 in one round, the least recently asked ones first.
 * Where the plan wants it, this also asks what they trust: at most 64 pods that need a canary in one round, and at most
 * as many pages. Blocks for at most three seconds; with canaries and pages for at most eleven, most of which only
 * endpoints that do not answer take; and for two more where clients' Secrets are read. Endpoints that are not reached
 * by then are asked in the next round. False: nothing was asked, either because there was nothing to ask, or because
 * other rounds run (probe_slots.h); the plan's requeue then says when to try again. */
bool cr_act_probe(const struct cr_actor *actor, const struct cr_gathered *gathered, struct cr_plan *plan);

#endif
