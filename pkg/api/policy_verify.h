/* spec.consumers[].verify: which ports of a workload's pods show its certificates. Private to pkg/api. */
#ifndef CR_API_POLICY_VERIFY_H
#define CR_API_POLICY_VERIFY_H

#include "api/node.h"
#include "api/policy.h"

/* Reads the member verify of a consumer, which may be absent. out is zeroed; to be disposed of also on failure. */
bool cr_policy_verify_decode(const struct cr_node *consumer, struct cr_policy_verify *out,
                             struct cr_error *err) CR_MUST_USE;
void cr_policy_verify_dispose(struct cr_policy_verify *verify);

/* An endpoint may name only a Secret of the policy; one that selects Secrets may name any. */
bool cr_policy_verify_check(const struct cr_node *spec, const struct cr_policy *policy,
                            struct cr_error *err) CR_MUST_USE;

#endif
