/* The part of a round of probes that asks what pods trust: canaries beside the handshakes that are made anyway, and
 * pages of certificates. Private to acts_probe. */
#ifndef CR_POLICY_CONTROLLER_ACTS_TRUST_H
#define CR_POLICY_CONTROLLER_ACTS_TRUST_H

#include "policy/controller/acts.h"
#include "net/canary.h"

enum {
    CR_CANARIES_MAX = CR_PROBE_AT_ONCE, /* of one round: each takes a second, most of it silent */
    CR_PAGES_MAX = 64,                  /* of one round */
};

/* One endpoint that was asked, and what it shows about its trust. */
struct cr_trust_look {
    const struct cr_probe_target *target; /* borrowed, as result */
    const struct cr_probe_result *result;
    const char *canary_ca;          /* fingerprint; "" : none is wanted */
    struct cr_endpoint_trust trust; /* out */
};

/* Whether there is one to ask with. */
bool cr_act_has_canary(const struct cr_actor *actor, const char *ca);

/* Fills trust of each by its result, and asks with canaries where names leave it open. At most CR_CANARIES_MAX looks
 * want one. Blocks for up to 6 s then. */
void cr_act_look_at_trust(const struct cr_actor *actor, const struct cr_gathered *gathered, struct cr_trust_look *looks,
                          size_t count);

/* Reads the pages of those pods that the plan wants to know the trust of, at most CR_PAGES_MAX and those first that
 * were read the longest ago, and remembers them. Blocks for up to 2 s. */
void cr_act_read_pages(const struct cr_actor *actor, const struct cr_gathered *gathered, const struct cr_plan *plan,
                       int64_t began_ms);

#endif
