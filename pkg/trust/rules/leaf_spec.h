/* What a leaf of a trust domain is issued by. Pure. */
#ifndef CR_TRUST_RULES_LEAF_SPEC_H
#define CR_TRUST_RULES_LEAF_SPEC_H

#include "api/domain.h"
#include "pki/issue.h"

/* Borrowed from the leaf. */
struct cr_leaf_spec cr_leaf_spec_of(const struct cr_domain_leaf *leaf);

/* A digest of everything in the spec that shapes the certificate and its key, whatever order names are in; when it is
 * renewed, and where it is published, is no part of it. It is written beside what was issued, and shows whether that is
 * still what is wanted. */
void cr_leaf_spec_digest(const struct cr_domain_leaf *leaf, char out[CR_SHA256_HEX]);

#endif
