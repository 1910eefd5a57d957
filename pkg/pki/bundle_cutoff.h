/* Whom another bundle would cut off: leaves in use that verify with what is published, and would not any more.
 * Private to pkg/pki. For one thread.
 *
 * The rule of a bundle (bundle_rule.h) sees to it that the CAs of all leaves are there. This asks the clients
 * themselves (bundle_clients.h), with the whole bundle. */
#ifndef CR_PKI_BUNDLE_CUTOFF_H
#define CR_PKI_BUNDLE_CUTOFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "pki/bundle_clients.h"

/* Signatures checked for one bundle, by all clients, before and after: seconds of the slowest curve. The leaf at which
 * it is passed is finished. */
enum { CR_CUTOFF_SIGNATURES_MAX = 8192 };

struct cr_cutoff;
struct cr_cutoff *cr_cutoff_new(int64_t now_ms);
void cr_cutoff_free(struct cr_cutoff *cutoff);
CR_DEFINE_CLEANUP(cr_cutoff, struct cr_cutoff, cr_cutoff_free)

/* A bundle that is published now, which clients have loaded in this order. */
bool cr_cutoff_add_published(struct cr_cutoff *cutoff, struct x509_st *const *certs, size_t len,
                             struct cr_error *err) CR_MUST_USE;
/* A leaf in use, borrowed, with what it is served with; after the last bundle. Errors: a limit of cr_paths_* (Invalid,
 * named). */
bool cr_cutoff_add_leaf(struct cr_cutoff *cutoff, struct stack_st_X509 *chain, struct cr_error *err) CR_MUST_USE;

struct cr_cutoff_found {
    bool any;
    size_t leaf; /* in the order in which they were added */
    enum cr_bundle_client client;
};
/* Whom this bundle would cut off, in this order: the first. clients: CR_CLIENTS, or CR_CLIENTS_KEPT alone. */
bool cr_cutoff_find(struct cr_cutoff *cutoff, int clients, struct x509_st *const *certs, size_t len,
                    struct cr_cutoff_found *found, struct cr_error *err) CR_MUST_USE;
/* So much was checked that no further bundle is to be tried. */
bool cr_cutoff_is_spent(const struct cr_cutoff *cutoff);

#endif
