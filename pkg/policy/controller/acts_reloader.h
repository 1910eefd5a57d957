/* The part of a round of probes that asks the reloaders of pods what has become of their material. Private to
 * acts_probe. */
#ifndef CR_POLICY_CONTROLLER_ACTS_RELOADER_H
#define CR_POLICY_CONTROLLER_ACTS_RELOADER_H

#include "policy/controller/acts.h"

enum { CR_RELOADER_PAGES_MAX = 64 }; /* of one round */

/* Reads the pages of those reloaders that the plan asks for, at most CR_RELOADER_PAGES_MAX and those first that were
 * read the longest ago, and remembers them. Blocks for up to 2 s. */
void cr_act_read_reloaders(const struct cr_actor *actor, const struct cr_gathered *gathered,
                           const struct cr_plan *plan);

#endif
