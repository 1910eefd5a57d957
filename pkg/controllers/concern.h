/* Which policies something that happened concerns. What belongs to a policy by its selector or by discovery is asked of
 * the object as it was and as it is, and of what the policy's status knows: what leaves it concerns it as well. */
#ifndef CR_CONTROLLERS_CONCERN_H
#define CR_CONTROLLERS_CONCERN_H

#include "base/strvec.h"
#include "controllers/project.h"

/* A Secret that a workload uses, with the labels that it has; snapshot NULL: it does not exist. */
struct cr_used_secret {
    const char *name;
    const struct cr_snapshot *secret;
};

/* name: of the Secret; before, after: NULL when it was or is not there. */
bool cr_concerns_secret(const struct cr_snapshot *policy, const char *name, const struct cr_snapshot *before,
                        const struct cr_snapshot *after);
/* used: of the object as it was and as it is. */
bool cr_concerns_user(const struct cr_snapshot *policy, const char *kind, const char *name,
                      const struct cr_used_secret *used, size_t used_len);
/* Whether a change of one policy can be one for another: they share a Secret, and the other may have got or lost what
 * the first lost or got. before, after: NULL when it was or is not there. */
bool cr_concerns_neighbour(const struct cr_snapshot *neighbour, const struct cr_snapshot *before,
                           const struct cr_snapshot *after);

/* Whether the policy's status has an entry of the Secret. */
bool cr_policy_remembers(const struct cr_snapshot *policy, const char *secret);
/* Whether it takes the Secret: by name, by its selector, or because it remembers it. secret NULL: it does not exist. */
bool cr_policy_takes(const struct cr_snapshot *policy, const char *name, const struct cr_snapshot *secret);

#endif
