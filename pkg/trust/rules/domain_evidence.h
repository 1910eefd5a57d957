/* Whether what a trust domain published has arrived, by the status of the policies that cover the object. Pure. */
#ifndef CR_TRUST_RULES_DOMAIN_EVIDENCE_H
#define CR_TRUST_RULES_DOMAIN_EVIDENCE_H

#include "api/domain.h"
#include "api/domain_status.h"
#include "api/hold.h"
#include "api/policy.h"
#include "api/status.h"

/* A policy that names, selects or remembers the Secret. One that is being deleted, or neither names consumers nor looks
 * for them, covers nothing. Borrowed. */
struct cr_covering_policy {
    const struct cr_policy *policy;
    const struct cr_policy_status *status; /* as its cache has it: may be old */
};

/* Whether what a policy says counts for the Secrets that it is about. */
bool cr_domain_policy_counts(const struct cr_policy *policy);

struct cr_domain_evidence_input {
    const char *secret;                 /* name; NULL: an object that no policy can cover (a ConfigMap) */
    const struct cr_material *material; /* as it is published now */
    const char *written_version;        /* resourceVersion of our own last write; NULL: not known */
    int64_t written_ms;                 /* wall; 0: not known */
    const struct cr_covering_policy *covering;
    size_t covering_len;
    bool too_many_cover_it; /* there are more, which were not looked at */
    bool is_read_by_api;    /* a caBundle: the API server reads it by a watch of its own, at once */
    enum cr_uncovered uncovered;
    int64_t now_ms;
};

struct cr_domain_evidence {
    enum cr_arrival trust, leaf; /* of what is published now; what it has none of has arrived (VERIFIED) */
    /* It is INFERRED only because a policy saw it for the first time as it is: nothing has changed since that a
     * consumer could have been seen to take up, so to demand more would be to wait for ever. */
    bool trust_first_sight, leaf_first_sight;
    bool failed;                /* a consumer cannot get there without a person: a failed rollout */
    enum cr_hold_health health; /* with why: what is waited for, the worst of all policies */
    int64_t restarted_ms; /* wall, whole seconds: when a policy that covers it restarted a consumer last; 0: never */
    char *why; /* owned; one sentence while something has not arrived: which policy, which consumer, what blocks */
    struct cr_strvec trusted;    /* fingerprints: CAs of the published bundle that every consumer is known to have, also
                                  * while the bundle as a whole has not arrived */
    struct cr_strvec lack_trust; /* consumers, "policy/name", that are not known to have the published bundle yet */
    int64_t look_again_ms;       /* only time decides: so long from now; 0: not */
};

/* out need not be initialised. Several policies: all must say so, the weakest level counts. A policy says so when its
 * settled material is what is published, read at written_version or later; at which level is in its status. */
void cr_domain_evidence_judge(const struct cr_domain_evidence_input *input, struct cr_domain_evidence *out);
void cr_domain_evidence_dispose(struct cr_domain_evidence *evidence);
CR_DEFINE_DISPOSE(cr_domain_evidence, struct cr_domain_evidence, cr_domain_evidence_dispose)

#endif
