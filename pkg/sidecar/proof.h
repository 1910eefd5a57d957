/* Asks the program itself, on loopback, what it serves: only that decides whether a reload has happened. */
#ifndef CR_SIDECAR_PROOF_H
#define CR_SIDECAR_PROOF_H

#include "pki/material.h"
#include "sidecar/config.h"

enum cr_proof_verdict {
    CR_PROOF_NONE,    /* no endpoints are configured, or they show nothing of this material */
    CR_PROOF_NEW,     /* every endpoint shows the material */
    CR_PROOF_OLD,     /* at least one shows another leaf, or announces the earlier CAs instead of the new ones */
    CR_PROOF_UNKNOWN, /* at least one was not reached, and none shows the old */
};

struct cr_proof {
    enum cr_proof_verdict verdict;
    bool trust_seen;                  /* with NEW: the announced CA names are those of the trust, and only of it */
    char served[CR_SHA256_HEX];       /* the leaf that the first endpoint that is not new (else the first) shows; "" */
    char words[CR_PROBE_DIGEST + 96]; /* why it is not NEW; "" */
};

/* One look, over several connections to each endpoint: workers of one program may be of two minds. Blocks at most
 * timeout_ms. wanted: what should be served; before: what was delivered last, for what its CAs show of the announced
 * names; NULL: not known, and then names alone prove no trust. Names that are neither of wanted nor of before are
 * another bundle's: they say nothing. Any thread. */
void cr_proof_look(const struct cr_sidecar_material *material, const struct cr_material *wanted,
                   const struct cr_material *before, int timeout_ms, struct cr_proof *out);

#endif
