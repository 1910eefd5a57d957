/* Whether a leaf verifies with a whole trust bundle, as clients do it. Private to pkg/pki.
 *
 * Which of several certificates of one name a client takes is its own affair (RFC 5280, section 6; RFC 4158): OpenSSL
 * takes the first of its store that fits by name and key identifier, prefers one that is valid now, and never goes back
 * (X509_verify_cert, X509_STORE_CTX_get1_issuer); BoringSSL takes the first that fits, valid or not
 * (bundle_boringssl.h); Go's crypto/x509 tries them all (bundle_go.h); GnuTLS takes the last that is valid
 * (bundle_gnutls.h). So a bundle can cut a client off that has every CA that the leaf needs, by another that stands
 * beside it. */
#ifndef CR_PKI_BUNDLE_CLIENTS_H
#define CR_PKI_BUNDLE_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

struct cr_signers;    /* pki/signers.h */
struct stack_st_X509; /* STACK_OF(X509) */
struct x509_st;       /* OpenSSL's X509 */

enum cr_bundle_client {
    CR_CLIENT_OPENSSL,   /* as it is: a chain ends in a root */
    CR_CLIENT_PARTIAL,   /* whatever is trusted ends a chain: curl since 7.68 */
    CR_CLIENT_STRICT,    /* the same, and RFC 5280's rules for extensions: Python since 3.13 */
    CR_CLIENT_BORINGSSL, /* as Envoy has it: partial chains */
    CR_CLIENT_GO,        /* tries all ways; what is trusted stands only at the end of one */
    CR_CLIENT_GNUTLS,    /* takes the last that fits. Where only their keys distinguish two CAs, one order suits OpenSSL
                            and the other GnuTLS: then this one loses */
    CR_CLIENTS,
    CR_CLIENTS_KEPT = CR_CLIENT_GNUTLS, /* those before it are kept whatever becomes of it */
};

/* For people: "OpenSSL". Static. */
const char *cr_bundle_client_name(enum cr_bundle_client client);

/* A bundle as a client has loaded it: its certificates in their order. For one thread. */
struct cr_loaded_bundle;
/* The certificates are not borrowed: they live as long as this. NULL: no memory. */
struct cr_loaded_bundle *cr_bundle_load(struct x509_st *const *certs, size_t len) CR_MUST_USE;
void cr_bundle_unload(struct cr_loaded_bundle *bundle);
CR_DEFINE_CLEANUP(cr_loaded_bundle, struct cr_loaded_bundle, cr_bundle_unload)

/* Fills verifies[CR_CLIENTS]: for which of them chain (the leaf, then what it is served with) verifies, for the use
 * that the leaf may be put to, at now_ms (wall clock) or as soon as the leaf is valid. What that may cost for a leaf
 * that any user may write is not limited here (bundle_cutoff.h). */
void cr_bundle_ask_clients(const struct cr_loaded_bundle *bundle, struct stack_st_X509 *chain, int64_t now_ms,
                           struct cr_signers *signers, bool *verifies);

#endif
