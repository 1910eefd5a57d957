/* Certificates of a PEM text, and what is read off one. Private to pkg/pki. */
#ifndef CR_PKI_CERTIFICATE_H
#define CR_PKI_CERTIFICATE_H

#include "pki/material.h"

struct x509_st;       /* OpenSSL's X509 */
struct stack_st_X509; /* STACK_OF(X509) */

void cr_certificates_free(struct stack_st_X509 *certs);
CR_DEFINE_CLEANUP(cr_certificates, struct stack_st_X509, cr_certificates_free)

/* Every certificate of the text in its order, at least one and at most max; other blocks (keys, CRLs) are skipped as
 * TLS libraries do, once their framing was checked. Errors: Invalid, without the name of the entry. Owned by the
 * caller. */
struct stack_st_X509 *cr_certificates_read(const struct cr_pem_input *in, int max, struct cr_error *err) CR_MUST_USE;

void cr_certificate_fingerprint(struct x509_st *cert, char out[CR_SHA256_HEX]);
/* SHA-256 of the subject's DER and the SubjectPublicKeyInfo's DER. */
void cr_certificate_identity(struct x509_st *cert, char out[CR_SHA256_HEX]);
/* SHA-256 of the SubjectPublicKeyInfo's DER. */
void cr_certificate_key_digest(struct x509_st *cert, char out[CR_SHA256_HEX]);
/* SHA-256 of the issuer name's DER and the authority key identifier: what is known of a CA that is not there. */
void cr_certificate_issuer_digest(struct x509_st *cert, char out[CR_SHA256_HEX]);
/* SHA-256 of all of them in order. */
void cr_certificates_digest(struct stack_st_X509 *certs, char out[CR_SHA256_HEX]);

/* Wall clock; INT64_MIN and INT64_MAX for what is no time. */
int64_t cr_certificate_not_before_ms(const struct x509_st *cert);
int64_t cr_certificate_not_after_ms(const struct x509_st *cert);

/* The DNS names of the SAN, at most 100, anything but printable ASCII replaced by '?'. */
void cr_certificate_dns_names(struct x509_st *cert, struct cr_strvec *names);

#endif
