/* spec.trust: where the CAs of a policy's Secrets are published. Private to pkg/api. */
#ifndef CR_API_POLICY_TRUST_H
#define CR_API_POLICY_TRUST_H

#include "api/node.h"
#include "api/policy.h"

/* Reads the member trust, which may be absent. The policy's Secrets have been read; its trust is zeroed, and to be
 * disposed of also on failure. */
bool cr_policy_trust_decode(const struct cr_node *spec, struct cr_policy *policy, struct cr_error *err) CR_MUST_USE;
void cr_policy_trust_dispose(struct cr_policy_trust *trust);

#endif
