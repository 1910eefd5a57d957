/* Keys: read, compared with each other, gone. Private to pkg/pki. */
#ifndef CR_PKI_KEY_H
#define CR_PKI_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include "pki/material.h"

struct cr_pem_block;
struct evp_pkey_st;   /* OpenSSL's EVP_PKEY */
struct X509_algor_st; /* OpenSSL's X509_ALGOR */

/* The one private key of a PEM text: PKCS#8, SEC1 or PKCS#1; other blocks (EC PARAMETERS, certificates) are skipped.
 * Only kinds of keys that certificates are signed with are decoded (pki/key_kind.h). Owned by the caller, who frees it
 * at once. NULL: *problem is Unparsable, Encrypted or TooCostly, err says why, without the name of the entry. Never
 * prompts. */
struct evp_pkey_st *cr_key_read(const struct cr_pem_input *in, enum cr_material_problem *problem, struct cr_error *err);

/* The same of one block, which is a private key; and of one that is a public key (a SubjectPublicKeyInfo; PKCS#1's form
 * of RSA alone, "RSA PUBLIC KEY", is not read, nor is it by Go's x509.ParsePKIXPublicKey). */
struct evp_pkey_st *cr_key_read_block(const struct cr_pem_block *block, enum cr_material_problem *problem,
                                      struct cr_error *err);
struct evp_pkey_st *cr_key_read_public_block(const struct cr_pem_block *block, struct cr_error *err);

/* Whether OpenSSL may decode a public key of this algorithm. A point on a curve of which the parameters are written out
 * may cost it seconds: the prime is then its author's choice (RFC 5480, section 2.1.1, forbids them). */
bool cr_key_is_decodable(const struct X509_algor_st *algorithm);
/* The public key of a SubjectPublicKeyInfo's DER; the caller knows its algorithm. Owned by the caller; NULL when
 * OpenSSL cannot read it, or may not. */
struct evp_pkey_st *cr_key_decode_public(const struct X509_algor_st *algorithm, const void *der, size_t len);

/* Whether these bits are the public half of the private key. It is determined without decoding them, which takes
 * OpenSSL as long as all else that is read of a Secret. False also when it cannot be determined: for any key but one on
 * a curve with a name. */
bool cr_key_has_public(const struct evp_pkey_st *key, const struct X509_algor_st *algorithm, const void *bits,
                       size_t len);

/* Whether what the private key signs verifies with the public one: a file may have the public half of one key and the
 * private half of another, and a server with it fails every handshake. RSA keys above CR_KEY_RSA_PROVED_BITS_MAX, of
 * which one signature costs too much, are taken to. */
enum { CR_KEY_RSA_PROVED_BITS_MAX = 4096 };
bool cr_key_signs_for(struct evp_pkey_st *key, struct evp_pkey_st *public_key);

/* An algorithm that this build's OpenSSL has no keys of, for people: "ML-DSA-65 (2.16.840.1.101.3.4.3.18)", or its
 * number alone. */
enum { CR_KEY_ALGORITHM_TEXT = 96 };
void cr_key_algorithm_name(const struct X509_algor_st *algorithm, char out[CR_KEY_ALGORITHM_TEXT]);

/* Limits of the keys that signatures are checked with or made: what one operation costs is then at most some
 * milliseconds. */
enum {
    CR_KEY_RSA_BITS_MAX = 8192,
    CR_KEY_RSA_EXPONENT_BITS_MAX = 64,
    CR_KEY_EC_BITS_MAX = 521,
    CR_KEY_DSA_BITS_MAX = 3072,
    CR_KEY_TEXT_MAX = 64 * 1024, /* bytes of PEM; an RSA key of 16384 bits has 12 KB */
};
/* Whether a key, public or private, is within them, and on a curve with a name over a prime field. Errors: Invalid, the
 * text names the limit. */
bool cr_key_is_affordable(const struct evp_pkey_st *key, struct cr_error *err) CR_MUST_USE;

enum { CR_KEY_TYPE = 16 };
/* "RSA-2048", "ECDSA-P256", "Ed25519", … */
void cr_key_type(const struct evp_pkey_st *key, char out[CR_KEY_TYPE]);

#endif
