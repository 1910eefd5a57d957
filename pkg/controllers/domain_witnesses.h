/* The policies that can tell whether what a trust domain published in a Secret has arrived, and what their consumers
 * take: gathered from caches. Private to domain_world.c. */
#ifndef CR_CONTROLLERS_DOMAIN_WITNESSES_H
#define CR_CONTROLLERS_DOMAIN_WITNESSES_H

#include "controllers/cache.h"
#include "rotation/catalogue.h"
#include "rotation/domain_evidence.h"

struct cr_witnesses {
    struct cr_domain_witness *items; /* borrow from the rest */
    struct cr_policy_status *statuses;
    struct cr_snapshots snapshots;
    size_t len;
};

/* Those that name, select or remember the Secret. What cannot be used is no witness. */
void cr_witnesses_gather(struct cr_cache *cache, const char *ns, const char *secret, struct cr_witnesses *out);
void cr_witnesses_dispose(struct cr_witnesses *witnesses);
CR_DEFINE_DISPOSE(cr_witnesses, struct cr_witnesses, cr_witnesses_dispose)

/* Whether one of them has not settled a change of trust of the Secret. */
bool cr_witnesses_await_trust(const struct cr_witnesses *witnesses, const char *secret);

/* Why no leaf with a key of this type ("Ed25519") is to be published: the software of a consumer of the Secret is known
 * not to take one in one of these roles (CR_ROLE_BIT). Owned sentence; NULL: nothing is known against it. */
char *cr_witnesses_refuse_key(const struct cr_witnesses *witnesses, struct cr_cache *cache,
                              const struct cr_catalogue *catalogue, const char *secret, const char *key_type,
                              unsigned roles);

#endif
