/* Whether a leaf verifies with a whole trust bundle, as BoringSSL does it, and so Envoy. Private to pkg/pki.
 *
 * Modelled after X509_verify_cert of BoringSSL (crypto/x509/x509_vfy.cc) with X509_V_FLAG_PARTIAL_CHAIN, as Envoy sets
 * it. Of several CAs that fit by name and key identifier the first of the bundle is taken, valid or not. The chain ends
 * where no issuer is trusted, not at the first certificate that is; and all of it has to be valid. Name constraints are
 * compared with the leaf only, and policies not at all.
 *
 * That it is the first rests on BoringSSL's sort of its store by names, which need not keep the order of equal ones:
 * Envoy 1.40.0 keeps it in bundles of up to 24 CAs (measured: 22 yes, 32 no). In larger ones no order helps. */
#ifndef CR_PKI_BUNDLE_BORINGSSL_H
#define CR_PKI_BUNDLE_BORINGSSL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cr_signers;    /* pki/signers.h */
struct stack_st_X509; /* STACK_OF(X509) */

/* As cr_gnutls_verifies (bundle_gnutls.h). */
bool cr_boringssl_verifies(struct stack_st_X509 *chain, struct stack_st_X509 *trusted, int purpose, int64_t at_ms,
                           struct cr_signers *signers);

#endif
