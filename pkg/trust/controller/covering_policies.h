/* The policies that show whether what a trust domain published in a Secret has arrived, and what their consumers
 * accept. Gathered from caches. Private to domain_world.c. */
#ifndef CR_TRUST_CONTROLLER_COVERING_POLICIES_H
#define CR_TRUST_CONTROLLER_COVERING_POLICIES_H

#include "cluster/cache.h"
#include "catalogue/catalogue.h"
#include "trust/rules/domain_evidence.h"

struct cr_covering_policies {
    struct cr_covering_policy *items; /* they borrow from the other fields */
    struct cr_policy_status *statuses;
    struct cr_snapshots snapshots;
    size_t len;
    bool too_many; /* there are more */
};

/* Of one Secret. They are looked at for one Secret at a time, since a tenant decides how large they are. */
enum { CR_COVERING_POLICIES_MAX = 32 };
/* The policies that name, select or remember the Secret. One that cannot be used covers nothing. */
void cr_covering_policies_gather(struct cr_cache *cache, const char *ns, const char *secret,
                                 struct cr_covering_policies *out);
void cr_covering_policies_dispose(struct cr_covering_policies *covering);
CR_DEFINE_DISPOSE(cr_covering_policies, struct cr_covering_policies, cr_covering_policies_dispose)

/* Whether one of them has not settled a change of trust of the Secret. */
bool cr_covering_policies_await_trust(const struct cr_covering_policies *covering, const char *secret);

/* Why no leaf with a key of this type ("Ed25519") is to be published: the software of a consumer of the Secret is known
 * not to take one in one of these roles (CR_ROLE_BIT). Owned sentence; NULL: nothing is known against it. */
char *cr_covering_policies_refuse_key(const struct cr_covering_policies *covering, struct cr_cache *cache,
                                      const struct cr_catalogue *catalogue, const char *secret, const char *key_type,
                                      unsigned roles);

#endif
