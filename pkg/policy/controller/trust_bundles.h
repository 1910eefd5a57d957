/* spec.trust of policies: the CAs of a policy's Secrets, published as bundles in its namespace. Level-based: what a
 * target holds is the memory of what was published before. */
#ifndef CR_POLICY_CONTROLLER_TRUST_BUNDLES_H
#define CR_POLICY_CONTROLLER_TRUST_BUNDLES_H

#include "policy/controller/acts.h"

/* The annotation certroll.dev/trust-domain of a policy's targets, and with that their owner's consent:
 * "CertRotationPolicy/<ns>/<name>". No TrustDomain is called so: a namespace has no capital letters. Owned. */
char *cr_trust_bundles_owner(const struct cr_policy *policy);

/* Writes the targets that differ, if the policy may act, and either its Secrets have changed or the last look is old
 * enough. What is refused for good (no consent, no right, no CA) is reported in an Event and, by the gathered world, in
 * the condition Degraded, and changes nothing; a change without an overlap is reported in an Event before it is
 * published. *look_again_ms: after which to come back; 0: there is nothing to look at. Errors: to be tried again.
 * Called in a worker; blocks for its requests. */
bool cr_trust_bundles_publish(const struct cr_actor *actor, struct cr_gathered *gathered, int64_t *look_again_ms,
                              struct cr_error *err) CR_MUST_USE;
/* Whether to look again at once, now that this status is written: when a change has settled, previous CAs may go. */
bool cr_trust_bundles_due(const struct cr_actor *actor, const struct cr_gathered *gathered,
                          const struct cr_policy_status *status);

#endif
