/* The part of acts that looks at pods: which may be asked, by how many at a time, and what is remembered of it. */
#ifndef CR_CONTROLLERS_ACTS_PROBE_H
#define CR_CONTROLLERS_ACTS_PROBE_H

#include "controllers/acts.h"

/* Asks the endpoints of the pods that the plan names, at most 256 in one go and those first that were asked the longest
 * ago. What they trust is asked as well where the plan wants it: of pods that need a canary 64 in one go, of pages as
 * many. Blocks for at most three seconds, with canaries and pages for eleven, most of which only the silent take, and
 * two more where clients' Secrets are read: endpoints whose turn has not come by then are asked in the next round.
 * False: nothing was asked; there was nothing to ask, or it is another namespace's turn (probe_turns.h) and the plan's
 * requeue says when to try again. */
bool cr_act_probe(const struct cr_actor *actor, const struct cr_gathered *gathered, struct cr_plan *plan);

#endif
