/* The spec of certificates that a trust domain issues, a CA or a leaf. Private to pkg/api. */
#ifndef CR_API_DOMAIN_ISSUE_H
#define CR_API_DOMAIN_ISSUE_H

#include "api/domain.h"
#include "api/node.h"

/* What X.520 leaves a common name (RFC 5280, appendix A: ub-common-name). */
enum { CR_COMMON_NAME_MAX = 64 };

/* spec.authority. out is zeroed; to be disposed of also on failure. fallback_name: the common name of a CA that is
 * given none. */
bool cr_domain_authority_decode(const struct cr_node *spec, const char *fallback_name, struct cr_domain *out,
                                struct cr_error *err) CR_MUST_USE;
void cr_domain_issue_ca_dispose(struct cr_domain_issue_ca *ca);

/* source.issue of a leaf, which is an object that is there. */
bool cr_domain_issue_leaf_decode(const struct cr_node *issue, struct cr_domain_leaf *out,
                                 struct cr_error *err) CR_MUST_USE;

#endif
