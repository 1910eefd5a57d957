/* Which of two policies has one Secret of one consumer. Pure.
 *
 * The pair (Secret, workload) belongs to the policy that is in the middle of a change of that Secret while it loses it
 * (leaving, see discover.h), else to the older one, by creationTimestamp, then by name. The other leaves that pair
 * alone. A suspended policy keeps its pairs: suspend means that no policy touches them. A policy in mode Plan has no
 * pairs, since it touches nothing; nor has one that is being deleted, or that cannot be read. */
#ifndef CR_POLICY_RULES_CONFLICT_H
#define CR_POLICY_RULES_CONFLICT_H

#include <stdbool.h>
#include <stddef.h>

#include "api/policy.h"
#include "api/status.h"

/* Whether a policy can have pairs that others would otherwise have, and lose some. */
bool cr_conflict_takes_part(const struct cr_policy *policy);

/* Whether it would have this pair if there were no other policy. */
bool cr_conflict_covers(const struct cr_policy *policy, const char *secret, const struct cr_policy_consumer *consumer);
/* Whether it reads certificate, private key and trust of a Secret of ours from the same keys. */
bool cr_conflict_same_keys(const struct cr_policy *policy, const struct cr_policy_secret *secret);

enum { CR_CONFLICT_NONE = -1 };
/* The index among rivals of the policy that has this pair; CR_CONFLICT_NONE: self has it. All are effective policies
 * (cr_discover_expand) of one namespace; secret and consumer are elements of self. */
int cr_conflict_owner(const struct cr_policy *self, const struct cr_policy *const *rivals, size_t rivals_len,
                      const struct cr_policy_secret *secret, const struct cr_policy_consumer *consumer);

#endif
