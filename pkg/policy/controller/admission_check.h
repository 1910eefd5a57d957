/* Whether an admission policy guards the operator's own account. RBAC alone would let an attacker who takes over the
 * operator change any pod template (manifests/base/admission.yaml says what the policy leaves), and a policy that
 * matches another name, or was never applied, guards nothing, and no error shows it.
 *
 * The policy is tried, not read: in dry runs, the operator creates two Secrets in its own namespace, and the policy
 * admits one (the key for digests) and refuses the other. When the first is admitted, the account has the right to make
 * Secrets there, and nothing but a policy that knows the one name refuses the other. */
#ifndef CR_POLICY_CONTROLLER_ADMISSION_CHECK_H
#define CR_POLICY_CONTROLLER_ADMISSION_CHECK_H

#include "base/cleanup.h"
#include "kube/client.h"
#include "metrics/metrics.h"
#include "runtime/start_check.h"

/* The Secret that is never made: the policy refuses it. */
#define CR_ADMISSION_CHECK_SECRET "certroll-admission-check"

struct cr_admission_check;

/* ns: the operator's own. lease: what the Event is about, since the operator's pod need not be known. Both copied.
 * client and metrics outlive it; metrics may be NULL. Registers certroll_admission_policy_guards. The requests go by a
 * client of its own, which no write gate closes. */
struct cr_admission_check *cr_admission_check_new(struct cr_client *client, struct cr_metrics *metrics, const char *ns,
                                                  const char *lease);
/* When the manager has ended. */
void cr_admission_check_free(struct cr_admission_check *check);
CR_DEFINE_CLEANUP(cr_admission_check, struct cr_admission_check, cr_admission_check_free)

/* Borrowed: for the manager, which waits for it. */
struct cr_start_check *cr_admission_check_start_check(struct cr_admission_check *check);

#endif
