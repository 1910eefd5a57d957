/* Whether a leaf verifies with a whole trust bundle, as GnuTLS does it. Private to pkg/pki.
 *
 * Modelled after gnutls_x509_trust_list_verify_crt2 of GnuTLS 3.8.13, which does the same as Debian's 3.7.9
 * (lib/x509/verify-high.c, verify.c, common.c), with the default flags, without CRLs and PKCS #11. What decides:
 *
 * - Of what the server sends, a way up is put in order: each time the first that fits by name and key identifiers. It
 *   ends at the first with a trusted issuer. What does not fit stays in the list, and then the leaf is refused.
 * - Only above the last of that list trusted certificates are looked up, by name. One of them with the name and key of
 *   one that was sent takes its place, and is the end of the chain: it need not be a root.
 * - Of several issuers that fit by name and key identifiers, the last that is valid now is taken, else the first. There
 *   is no way back. */
#ifndef CR_PKI_BUNDLE_GNUTLS_H
#define CR_PKI_BUNDLE_GNUTLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cr_signers;    /* pki/signers.h */
struct stack_st_X509; /* STACK_OF(X509) */

/* chain: the leaf, then what it is served with. trusted: in the order of the bundle, each once. purpose: OpenSSL's
 * X509_PURPOSE_SSL_SERVER, X509_PURPOSE_SSL_CLIENT; another is not looked at. at_ms: wall clock. */
bool cr_gnutls_verifies(struct stack_st_X509 *chain, struct stack_st_X509 *trusted, int purpose, int64_t at_ms,
                        struct cr_signers *signers);

#endif
