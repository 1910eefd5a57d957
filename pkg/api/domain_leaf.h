/* spec.leaves: Secrets with a leaf that a trust domain writes. Private to pkg/api. */
#ifndef CR_API_DOMAIN_LEAF_H
#define CR_API_DOMAIN_LEAF_H

#include "api/domain.h"
#include "api/node.h"

/* All of them. The domain's own names and authority have been read; out's list is to be freed also on failure. */
bool cr_domain_leaves_decode(const struct cr_node *spec, struct cr_domain *out, struct cr_error *err) CR_MUST_USE;
void cr_domain_leaf_dispose(struct cr_domain_leaf *leaf);

#endif
