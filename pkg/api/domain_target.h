/* spec.trustTargets: what carries the CAs of a trust domain alone. Private to pkg/api. */
#ifndef CR_API_DOMAIN_TARGET_H
#define CR_API_DOMAIN_TARGET_H

#include "api/domain.h"
#include "api/node.h"

/* All of them. The domain's own names have been read; out's list is to be freed also on failure. */
bool cr_domain_targets_decode(const struct cr_node *spec, struct cr_domain *out, struct cr_error *err) CR_MUST_USE;
void cr_domain_target_dispose(struct cr_domain_target *target);

#endif
