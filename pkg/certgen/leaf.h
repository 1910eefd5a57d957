/* The certificates of a set. */
#ifndef CR_CERTGEN_LEAF_H
#define CR_CERTGEN_LEAF_H

#include "certgen/set.h"
#include "pki/authority.h"

/* A new CA for the set, by which each of its leaves can be issued: what cannot is found before anything is written.
 * key: owned, what it signs with. Errors: Invalid, Internal. */
struct cr_authority *cr_certgen_authority_new(const struct cr_certgen_set *set, int64_t now_ms,
                                              struct cr_private_key **key, struct cr_error *err) CR_MUST_USE;

struct cr_certgen_leaf {
    char *certificate; /* owned; PEM */
    struct cr_buf key; /* PEM; secret */
    int64_t not_after_ms;
};

/* A leaf with a new key. out need not be initialised. Errors: Invalid, what the set says cannot be issued. */
bool cr_certgen_leaf_issue(const struct cr_certgen_set *set, const struct cr_certgen_secret *secret,
                           const struct cr_authority *authority, int64_t now_ms, struct cr_certgen_leaf *out,
                           struct cr_error *err) CR_MUST_USE;
void cr_certgen_leaf_dispose(struct cr_certgen_leaf *leaf);
CR_DEFINE_DISPOSE(cr_certgen_leaf, struct cr_certgen_leaf, cr_certgen_leaf_dispose)

#endif
