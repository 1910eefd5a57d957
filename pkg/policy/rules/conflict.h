/* Which of two policies has one Secret of one consumer, and what others remember of the pairs of one policy. Pure.
 *
 * The pair (Secret, workload) belongs to the policy that is in the middle of a change of that Secret while it loses it
 * (leaving, see discover.h), else to the older one, by creationTimestamp, then by name. The other leaves that pair
 * alone. A suspended policy keeps its pairs: suspend means that no policy touches them. A policy in mode Plan has no
 * pairs, since it touches nothing; nor has one that is being deleted, or that cannot be read.
 *
 * Any number of policies may name the same Secret. So they are added one after the other, and of each is kept only what
 * decides about a pair: memory grows with the pairs of the one policy, not with the number of others. */
#ifndef CR_POLICY_RULES_CONFLICT_H
#define CR_POLICY_RULES_CONFLICT_H

#include <stdbool.h>
#include <stddef.h>

#include "api/policy.h"
#include "api/status.h"
#include "base/cleanup.h"
#include "base/strvec.h"
#include "policy/rules/plan.h"

/* Whether a policy can have pairs that others would otherwise have, and lose some. */
bool cr_conflict_takes_part(const struct cr_policy *policy);

struct cr_conflicts;
/* self: an effective policy (cr_discover_expand). uses: parallel to its consumers, the Secrets that each uses; NULL: it
 * does not exist. Borrowed, self for as long as this lives, uses until the last policy is added. */
struct cr_conflicts *cr_conflicts_new(const struct cr_policy *self, const struct cr_strvec *const *uses);
void cr_conflicts_free(struct cr_conflicts *conflicts);
CR_DEFINE_CLEANUP(cr_conflicts, struct cr_conflicts, cr_conflicts_free)
/* Adds another effective policy of the namespace, in any order. Takes from its status what is kept of it; borrows
 * nothing. */
void cr_conflicts_add(struct cr_conflicts *conflicts, const struct cr_policy *rival, struct cr_policy_status *status);
/* What others have of a consumer, parallel to the Secrets of self; NULL: all its pairs are self's alone, and nobody
 * remembers any. Owned by the caller, but for names and memories, which are valid until the next policy is added. */
struct cr_world_other *cr_conflicts_of(const struct cr_conflicts *conflicts, size_t consumer);
/* Of how many policies something is kept. */
size_t cr_conflicts_kept(const struct cr_conflicts *conflicts);

#endif
