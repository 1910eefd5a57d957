/* Trust bundles that are published: [new, previous…]. Thread-safe. */
#ifndef CR_PKI_BUNDLE_H
#define CR_PKI_BUNDLE_H

#include <stdint.h>

#include "base/strvec.h"
#include "pki/bundle_rule.h"
#include "pki/material.h"

/* A leaf that is in use: published, or seen in a handshake. Borrowed. */
struct cr_bundle_leaf {
    const char *name;          /* for messages: "Secret envoy", "pod web-0" */
    struct cr_pem_input chain; /* the leaf, then what it is served with. Where only digests are remembered: absent, and
                                * then only the CAs at hand are counted: no client can be asked */
    const struct cr_strvec *anchors; /* and then identities of CAs, as cr_material.anchors */
};

/* Everything is borrowed. */
struct cr_bundle_input {
    struct cr_pem_input current;         /* what shall be trusted from now on; every CA of it */
    const struct cr_pem_input *previous; /* newest first: what is published now, what staging remembers. Empty ones
                                          * count as absent */
    size_t previous_len;
    size_t retain_previous;
    const struct cr_bundle_leaf *leaves;
    size_t leaves_len;
    bool strangers; /* a leaf that verifies against no CA at hand is left out, and no error */
};

/* Whether every client that verifies with what is published now, each of `previous`, verifies with the new bundle. */
enum cr_bundle_proof {
    CR_BUNDLE_PROVED,        /* every leaf was verified with it, as each client does (bundle_clients.h) */
    CR_BUNDLE_TOO_COSTLY,    /* that would take more than its limits allow: all that is published stays, and what is new
                              * comes behind it, which alone was verified; of an error: nor is that proved. Where a leaf
                              * itself takes too much, nothing is verified */
    CR_BUNDLE_WOULD_CUT_OFF, /* of an error: no order and no choice of the CAs at hand keeps every client */
};

/* What a Secret or ConfigMap can hold in all its entries together (Kubernetes, MaxSecretSize). */
enum { CR_BUNDLE_BYTES_MAX = 1024 * 1024, CR_BUNDLE_CAS_MAX = 1000 };

struct cr_bundle {
    char *pem; /* owned; nothing but the certificates, so that the same CAs are the same bytes */
    size_t len;
    size_t previous;         /* of the len, those that are not current */
    struct cr_strvec beyond; /* names of leaves that no bundle can help: they, or each CA at hand that they verified
                              * against, have expired */
    struct cr_strvec gaps;   /* of leaves that no CA of the first of `previous` verified, expired or not: a client that
                                has not read the new bundle yet refuses them */
    struct cr_strvec strangers; /* of leaves that were left out */
    enum cr_bundle_proof proof; /* also of an error */
};

void cr_bundle_dispose(struct cr_bundle *bundle);
CR_DEFINE_DISPOSE(cr_bundle, struct cr_bundle, cr_bundle_dispose)

/* By the rule of cr_bundle_choose, [new, previous…]; but no client is cut off by it: where a leaf in use that verifies
 * with what is published would not verify with that, more of it is kept, or the new CAs come last. now_ms: wall clock.
 * Errors: Invalid, and then nothing may be published:
 *   an entry cannot be read; no current CA is valid any more; more than 1 MiB or 1000 CAs;
 *   a leaf in use verifies against no CA at hand, expired or not: the bundle would be without the CA it needs;
 *   whatever is kept, a client of a leaf would be cut off.
 * out need not be initialised; after an error it has only proof, and nothing that is owned. */
bool cr_bundle_make(const struct cr_bundle_input *in, int64_t now_ms, struct cr_bundle *out,
                    struct cr_error *err) CR_MUST_USE;

#endif
