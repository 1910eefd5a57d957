/* Whether a leaf verifies with a whole trust bundle, as Go does it. Private to pkg/pki.
 *
 * Modelled after Certificate.Verify of crypto/x509 (Go 1.26, verify.go): each issuer is tried that has the name,
 * whatever key identifiers say, roots first; whatever is trusted ends a way and stands nowhere else on it; one that has
 * the name and key of another on the way is no step further; and after 100 signatures the leaf is refused. */
#ifndef CR_PKI_BUNDLE_GO_H
#define CR_PKI_BUNDLE_GO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cr_signers;    /* pki/signers.h */
struct stack_st_X509; /* STACK_OF(X509) */

/* As cr_gnutls_verifies (bundle_gnutls.h). */
bool cr_go_verifies(struct stack_st_X509 *chain, struct stack_st_X509 *trusted, int purpose, int64_t at_ms,
                    struct cr_signers *signers);

#endif
