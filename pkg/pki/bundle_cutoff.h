/* Whom another bundle would cut off: leaves in use that verify with what is published, and would not any more.
 * Private to pkg/pki. For one thread.
 *
 * The rule of a bundle (bundle_rule.h) sees to it that the CAs of all leaves are there. This asks the clients
 * themselves (bundle_clients.h), with the whole bundle; less what no client looks up for that leaf, so that many
 * bundles are one question, which is asked once. */
#ifndef CR_PKI_BUNDLE_CUTOFF_H
#define CR_PKI_BUNDLE_CUTOFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "pki/bundle_clients.h"

/* For one bundle, all clients, before and after. The question at which one is passed is finished. */
enum {
    CR_CUTOFF_SIGNATURES_MAX = 8192, /* checked: seconds of the slowest curve */
    CR_CUTOFF_QUESTIONS_MAX = 16384, /* a chain is built by each client: a second. A chain with names that are compared
                                        with name constraints counts once more for each 4 KiB × byte */
    CR_CUTOFF_LOOKS_MAX = 262144,    /* at a leaf, with what is known of it */
};

/* certs: all CAs at hand and all that are published, each once. Borrowed. Bundles are indexes into it. */
struct cr_cutoff;
struct cr_cutoff *cr_cutoff_new(struct x509_st *const *certs, size_t len, int64_t now_ms);
void cr_cutoff_free(struct cr_cutoff *cutoff);
CR_DEFINE_CLEANUP(cr_cutoff, struct cr_cutoff, cr_cutoff_free)

/* A bundle that is published now, which clients have loaded in this order. Before the first leaf. */
void cr_cutoff_add_published(struct cr_cutoff *cutoff, const size_t *bundle, size_t len);
/* A leaf in use, borrowed, with what it is served with. Errors: a limit of cr_paths_* (Invalid, named); no memory. */
bool cr_cutoff_add_leaf(struct cr_cutoff *cutoff, struct stack_st_X509 *chain, struct cr_error *err) CR_MUST_USE;
size_t cr_cutoff_leaves(const struct cr_cutoff *cutoff);

/* Clients as a set: 1u << client. */
enum {
    CR_CUTOFF_ALL = (1u << CR_CLIENTS) - 1,
    CR_CUTOFF_KEPT = (1u << CR_CLIENTS_KEPT) - 1,
};
/* Who would lose a leaf (in the order in which they were added) with this bundle. No memory: all who can. */
unsigned cr_cutoff_losers(struct cr_cutoff *cutoff, size_t leaf, const size_t *bundle, size_t len);
/* From now on these cannot lose it. */
void cr_cutoff_give_up(struct cr_cutoff *cutoff, size_t leaf, unsigned clients);

/* Equal for certificates of one subject. */
size_t cr_cutoff_name(const struct cr_cutoff *cutoff, size_t cert);
/* Wherever a client looks for an issuer and both of these fit, cert fits as well, and is valid: all three of one
 * subject. A client takes the first or the last that fits, so it takes neither of the two if one such stands before
 * them and one behind. */
bool cr_cutoff_covers(const struct cr_cutoff *cutoff, size_t cert, size_t one, size_t other);
/* Certificates of one CA: GnuTLS looks at the first of them. */
bool cr_cutoff_is_same_ca(const struct cr_cutoff *cutoff, size_t one, size_t other);
/* Whether a client may look that certificate up for the leaf: by names. */
bool cr_cutoff_concerns(const struct cr_cutoff *cutoff, size_t leaf, size_t cert);

/* So much was asked that nothing more is to be. */
bool cr_cutoff_is_spent(const struct cr_cutoff *cutoff);
/* Called when a leaf could not be added: the cutoff is spent from now on. */
void cr_cutoff_spend(struct cr_cutoff *cutoff);

#endif
