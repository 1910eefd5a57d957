/* Certificates as OpenSSL sees them, for issuing and for bundles. Private to pkg/pki. */
#ifndef CR_PKI_X509_H
#define CR_PKI_X509_H

#include "base/buffer.h"
#include "pki/material.h"

struct X509_name_st;  /* OpenSSL's X509_NAME */
struct x509_st;       /* OpenSSL's X509 */
struct stack_st_X509; /* STACK_OF(X509) */

void cr_x509_list_free(struct stack_st_X509 *certs);
CR_DEFINE_CLEANUP(cr_x509_list, struct stack_st_X509, cr_x509_list_free)

/* As cr_certificates_read. Owned by the caller. */
struct stack_st_X509 *cr_x509_read(const struct cr_pem_input *in, size_t max, struct cr_error *err) CR_MUST_USE;
/* Appends it in PEM. Errors: Invalid, beyond the buffer's cap; Internal. */
bool cr_x509_write(struct x509_st *cert, struct cr_buf *pem, struct cr_error *err) CR_MUST_USE;

/* As cr_ca's. */
void cr_x509_fingerprint(struct x509_st *cert, char out[CR_SHA256_HEX]);
void cr_x509_identity(struct x509_st *cert, char out[CR_SHA256_HEX]);

/* Wall clock; INT64_MIN and INT64_MAX for what is no time. */
int64_t cr_x509_not_before_ms(const struct x509_st *cert);
int64_t cr_x509_not_after_ms(const struct x509_st *cert);

/* ca is named as cert's issuer, and its key made the signature. Says nothing of times. */
bool cr_x509_signed_by(struct x509_st *cert, struct x509_st *ca);
/* Which of these issued which: issued[len * len], issued[cert * len + issuer], of those that are no roots. By names,
 * key identifiers, key usage and signature; beyond CR_X509_ISSUERS_MAX signatures without that. */
enum { CR_X509_ISSUERS_MAX = 256 };
void cr_x509_find_issuers(struct x509_st *const *certs, size_t len, bool *issued);
/* When to ask whether a leaf that is in use verifies against ca: now, or as soon as both are valid, since an issuer's
 * clock may be ahead of ours. */
int64_t cr_x509_when_valid(const struct x509_st *leaf, const struct x509_st *ca, int64_t now_ms);
/* Byte by byte, as Go and GnuTLS compare names. */
bool cr_x509_has_name(const struct X509_name_st *a, const struct X509_name_st *b);
/* Of OpenSSL's XKU_*: for X509_PURPOSE_SSL_SERVER and X509_PURPOSE_SSL_CLIENT; 0 for any other purpose. */
uint32_t cr_x509_usage_of(int purpose);
/* The leaf's names are within ca's name constraints; it may have none. */
bool cr_x509_allows_names(struct x509_st *ca, struct x509_st *leaf);
/* It was signed by a broken digest (MD2, MD4, MD5, SHA-1); false for keys that digest by themselves. */
bool cr_x509_has_weak_digest(struct x509_st *cert);
/* Its own issuer, by names and key identifiers: a root. */
bool cr_x509_is_root(struct x509_st *cert);

#endif
