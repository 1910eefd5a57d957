/* spec.consumers[].after: which consumers come before which. Private to pkg/api. */
#ifndef CR_API_POLICY_ORDER_H
#define CR_API_POLICY_ORDER_H

#include "api/node.h"
#include "api/policy.h"

/* Reads the member after of a consumer, which may be absent. */
bool cr_policy_order_decode(const struct cr_node *consumer, struct cr_policy_consumer *out,
                            struct cr_error *err) CR_MUST_USE;
/* Invalid when it names a consumer that spec.consumers does not list, or when some come after each other in a circle:
 * none of them could be the first. One that is listed and not acted on may be named; the plan holds who comes after it.
 */
bool cr_policy_order_check(const struct cr_node *spec, const struct cr_policy *policy,
                           struct cr_error *err) CR_MUST_USE;

#endif
