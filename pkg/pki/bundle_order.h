/* A choice and an order of the CAs at hand with which no client loses a leaf. Private to pkg/pki.
 *
 * Clients look CAs up by their subject, so only the order among those of one subject matters. What the rule wants is
 * tried first, in the order in which it wants it. Where a client would lose a leaf, the CAs of all subjects that
 * concern this leaf, and of all that concern a leaf that these concern, are looked at together: each choice of them,
 * the largest first, in each order that a client can distinguish from one tried before. So what is not found is not
 * there, unless the cutoff is spent before. */
#ifndef CR_PKI_BUNDLE_ORDER_H
#define CR_PKI_BUNDLE_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "pki/bundle.h"
#include "pki/bundle_cutoff.h"

enum cr_order_wish {
    CR_ORDER_OUT,    /* cannot be in it */
    CR_ORDER_SPARE,  /* only if a client keeps a leaf by it */
    CR_ORDER_WANTED, /* unless a client would lose a leaf by it */
    CR_ORDER_MUST,
};

struct cr_order_question {
    const enum cr_order_wish *wishes; /* by certificate of the cutoff */
    const size_t *preferred;          /* all certificates of the cutoff */
    size_t len;
    const size_t *published; /* what comes first where no bundle is known to keep every client */
    size_t published_len;
    bool as_it_is; /* nothing is searched for: what is preferred keeps every client, or CR_BUNDLE_WOULD_CUT_OFF */
};

/* The bundle is owned. */
struct cr_ordered {
    size_t *bundle;
    size_t len;
    enum cr_bundle_proof proof; /* CR_BUNDLE_WOULD_CUT_OFF: bundle NULL */
    size_t given_up;            /* leaves that clients beyond CR_CLIENTS_KEPT lose */
    size_t leaf; /* of CR_BUNDLE_WOULD_CUT_OFF, and the first that is given up: which, and the client that loses it */
    enum cr_bundle_client client;
};
void cr_ordered_dispose(struct cr_ordered *ordered);
CR_DEFINE_DISPOSE(cr_ordered, struct cr_ordered, cr_ordered_dispose)

/* With a spent cutoff, or one that is spent on the way, all that is not OUT: what is published, then the rest. Where no
 * bundle keeps every client, the one for which the fewest leaves are lost, all by clients beyond CR_CLIENTS_KEPT; out
 * need not be initialised. */
void cr_bundle_arrange(struct cr_cutoff *cutoff, const struct cr_order_question *question, struct cr_ordered *out);

#endif
