/* spec.consumers[].targetRef: what a consumer is. Private to pkg/api. */
#ifndef CR_API_POLICY_TARGET_H
#define CR_API_POLICY_TARGET_H

#include "api/node.h"
#include "api/policy.h"

/* Reads the member targetRef of a consumer, which must be there. *known is false when this version cannot act on such a
 * target. */
bool cr_policy_target_decode(const struct cr_node *consumer, struct cr_policy_consumer *out, bool *known,
                             struct cr_error *err) CR_MUST_USE;
/* What watches Secrets by the API has no pods: Invalid where the consumer says how those restart or are asked. */
bool cr_policy_target_check(const struct cr_node *consumer, const struct cr_policy_consumer *decoded,
                            struct cr_error *err) CR_MUST_USE;

#endif
