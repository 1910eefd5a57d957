/* Certificates of a PEM text, and what is read off one. Private to pkg/pki. */
#ifndef CR_PKI_CERTIFICATE_H
#define CR_PKI_CERTIFICATE_H

#include "pki/material.h"

struct X509_name_st; /* OpenSSL's X509_NAME */
struct x509_st;      /* OpenSSL's X509 */
struct evp_pkey_st;  /* OpenSSL's EVP_PKEY */

/* One certificate. It stays as it was read; what is asked for is decoded when it is asked for, so it belongs to one
 * thread. */
struct cr_certificate;

/* Certificates in the order of their text. */
struct cr_certificates {
    size_t refs;
    size_t len;
    struct cr_certificate **items;
};

/* Every certificate of the text in its order, at least one and at most max; other blocks (keys, CRLs) are skipped as
 * TLS libraries do, once their framing was checked. Errors: Invalid, without the name of the entry. */
struct cr_certificates *cr_certificates_read(const struct cr_pem_input *in, size_t max,
                                             struct cr_error *err) CR_MUST_USE;
/* The same, for one more owner in the same thread. */
struct cr_certificates *cr_certificates_ref(struct cr_certificates *certs) CR_MUST_USE;
void cr_certificates_free(struct cr_certificates *certs); /* of one owner */
CR_DEFINE_CLEANUP(cr_certificates, struct cr_certificates, cr_certificates_free)

/* OpenSSL's own view of it, for what OpenSSL does with it. Borrowed; NULL when it has no memory, or the public key is
 * on a curve without a name. */
struct x509_st *cr_certificate_x509(struct cr_certificate *cert);
/* The public key. Borrowed; NULL when it is of a kind that OpenSSL does not know. */
struct evp_pkey_st *cr_certificate_key(struct cr_certificate *cert);

/* Its algorithm, as cr_key_algorithm_name. */
void cr_certificate_key_algorithm(const struct cr_certificate *cert, char *out, size_t size);

/* Uses a private key in the place of the public one, if they belong together and that can be determined without
 * decoding the latter. The certificate holds a reference to it, too, then. */
void cr_certificate_offer_key(struct cr_certificate *cert, struct evp_pkey_st *key);

/* Borrowed. */
const struct X509_name_st *cr_certificate_subject(const struct cr_certificate *cert);
const struct X509_name_st *cr_certificate_issuer(const struct cr_certificate *cert);

/* Bytes of the DER. */
size_t cr_certificate_size(const struct cr_certificate *cert);

/* SHA-256 of the DER. */
void cr_certificate_fingerprint(const struct cr_certificate *cert, char out[CR_SHA256_HEX]);
/* SHA-256 of the subject's DER and the SubjectPublicKeyInfo's DER. */
void cr_certificate_identity(const struct cr_certificate *cert, char out[CR_SHA256_HEX]);
/* SHA-256 of the SubjectPublicKeyInfo's DER. */
void cr_certificate_key_digest(const struct cr_certificate *cert, char out[CR_SHA256_HEX]);
/* SHA-256 of the issuer name's DER and the authority key identifier: what is known of a CA that is not there. */
void cr_certificate_issuer_digest(const struct cr_certificate *cert, char out[CR_SHA256_HEX]);
/* SHA-256 of the subject's DER, as it is in the certificate: what a server that trusts it announces to clients. */
void cr_certificate_subject_digest(const struct cr_certificate *cert, char out[CR_SHA256_HEX]);
/* In lower-case hexadecimal without leading zeros. "" for one that RFC 5280, section 4.1.2.2, does not allow: negative,
 * or longer than 20 octets. */
void cr_certificate_serial(const struct cr_certificate *cert, char out[CR_SERIAL_HEX]);
/* SHA-256 of all of them in order. */
void cr_certificates_digest(const struct cr_certificates *certs, char out[CR_SHA256_HEX]);

/* Wall clock. */
int64_t cr_certificate_not_before_ms(const struct cr_certificate *cert);
int64_t cr_certificate_not_after_ms(const struct cr_certificate *cert);

/* Adds those of its SAN (leaf_names.h). */
void cr_certificate_names(const struct cr_certificate *cert, struct cr_strvec *names);

#endif
