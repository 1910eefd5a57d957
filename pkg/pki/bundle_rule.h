/* Which CAs a trust bundle has. Pure: values in, values out. */
#ifndef CR_PKI_BUNDLE_RULE_H
#define CR_PKI_BUNDLE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pki/digest.h"

/* A CA at hand, in the order of the bundle: the new ones, then the previous, newest first. */
struct cr_bundle_ca {
    char fingerprint[CR_SHA256_HEX];
    int64_t not_before_ms, not_after_ms; /* wall clock */
    bool current;                        /* one of the new ones */
    bool root; /* self-signed. Another counts for verifiers that accept partial chains, as Go's does */
};

enum cr_bundle_fate {
    CR_BUNDLE_KEPT,
    CR_BUNDLE_EXPIRED,
    CR_BUNDLE_DUPLICATE, /* the same DER stands before it */
    CR_BUNDLE_RETIRED,   /* previous, beyond retain_previous, and no leaf needs it */
};

/* Leaves in use, published or seen in a handshake. verifies[leaf * cas_len + ca]: whether that leaf verifies now with
 * that CA alone trusted and all others as intermediates, besides those that come with the leaf. */
struct cr_bundle_question {
    const struct cr_bundle_ca *cas;
    size_t cas_len;
    const bool *issued; /* issued[ca * cas_len + issuer]: which CA issued those that are no roots. NULL: not known */
    const bool *verifies;
    size_t leaves_len;
    size_t retain_previous;
    int64_t now_ms;
};

/* Fills fates[cas_len]. Expired CAs and duplicates go (one expired CA in a bundle made a gateway refuse it all:
 * envoyproxy/gateway#7608). All current ones among the rest stay, then those of the previous that a leaf in use needs,
 * however many: one root for each leaf, the newest that has begun where there is a choice, and with it all
 * intermediates at hand on its way, which not every leaf is sent with. Places that are left up to retain_previous go to
 * the newest of the others. The order of the leaves is no matter. */
void cr_bundle_choose(const struct cr_bundle_question *question, enum cr_bundle_fate *fates);

#endif
