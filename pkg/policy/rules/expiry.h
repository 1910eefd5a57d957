/* When the certificates of a Secret end, in whatever state it is: its leaf may be one that cannot be used, and pods may
 * serve the one of before. A certificate that ends in place changes no object, so the code that reports it has to look
 * again by the clock. Pure. */
#ifndef CR_POLICY_RULES_EXPIRY_H
#define CR_POLICY_RULES_EXPIRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/status.h"
#include "policy/rules/plan.h"

/* Times: wall clock. */
struct cr_expiry {
    int64_t leaf_ms;        /* when the first of its leaves ends (cr_policy_status_leaf_end_ms); 0: there is none */
    int64_t leaf_notice_ms; /* since when it ends soon: a sixth of its lifetime before, seven days at most */
    int64_t held_ms;        /* when the leaf ends that the Secret holds */
    size_t cas, expired;    /* how many CAs there are, and how many of them have ended */
    int64_t ca_ms;          /* when the first of those ends that have not; 0: there is none, or no list of them */
    /* For the CA that needs a warning first: a sixth of its lifetime before its end, 30 days at most. */
    int64_t ca_notice_ms, noticed_ca_ms;
};

/* now: what the Secret holds. known: what is planned to be remembered of it, in that status. */
struct cr_expiry cr_expiry_of(const struct cr_world_secret *now, const struct cr_policy_status *status,
                              const struct cr_secret_status *known, int64_t now_ms);
bool cr_expiry_leaf_has_ended(const struct cr_expiry *expiry, int64_t now_ms);
bool cr_expiry_leaf_ends_soon(const struct cr_expiry *expiry, int64_t now_ms); /* or has ended */
bool cr_expiry_ca_ends_soon(const struct cr_expiry *expiry, int64_t now_ms);
/* Milliseconds until one of these answers changes; 0: never. */
int64_t cr_expiry_changes_in_ms(const struct cr_expiry *expiry, int64_t now_ms);

#endif
