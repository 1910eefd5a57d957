/* spec.restart.windows: when restarts may begin. Private to pkg/api. */
#ifndef CR_API_POLICY_WINDOWS_H
#define CR_API_POLICY_WINDOWS_H

#include "api/node.h"
#include "api/policy.h"

/* Reads windows and overrideWindowBeforeExpiry of spec.restart, which may be absent. out is zeroed; to be disposed of
 * also on failure. Whether a time zone is known cannot be determined from the policy. */
bool cr_policy_windows_decode(const struct cr_node *restart, struct cr_policy_restart *out,
                              struct cr_error *err) CR_MUST_USE;
void cr_policy_windows_dispose(struct cr_policy_restart *restart);

#endif
