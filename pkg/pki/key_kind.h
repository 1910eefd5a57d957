/* Kinds of keys, by what their algorithm is called. */
#ifndef CR_PKI_KEY_KIND_H
#define CR_PKI_KEY_KIND_H

#include <stdbool.h>

struct asn1_object_st; /* OpenSSL's ASN1_OBJECT */
struct evp_pkey_st;    /* OpenSSL's EVP_PKEY */

/* Whether certificates are signed with keys of this algorithm, and this build's OpenSSL may decode a private one: RSA,
 * RSA-PSS, ECDSA, Ed25519 and Ed448; ML-DSA with OpenSSL 3.5 and later. Of DSA and DH OpenSSL computes the public half
 * while it decodes a key, however large the prime is. SLH-DSA (FIPS 205) is not taken: a signature of it costs
 * milliseconds to seconds. */
bool cr_key_kind_signs(const struct asn1_object_st *algorithm);

/* "ML-DSA-44", "ML-DSA-65" or "ML-DSA-87" (FIPS 204; RFC 9881, section 2), whether OpenSSL has it or not; NULL for
 * others. Not to be freed. */
const char *cr_key_kind_ml_dsa(const struct asn1_object_st *algorithm);

/* The same of a key. */
bool cr_key_is_ml_dsa(const struct evp_pkey_st *key);
/* Of SLH-DSA. */
bool cr_key_is_slh_dsa(const struct evp_pkey_st *key);

#endif
