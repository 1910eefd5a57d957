/* An X.509 certificate, put together and signed. Private to pkg/pki. */
#ifndef CR_PKI_BUILDER_H
#define CR_PKI_BUILDER_H

#include <stdint.h>

#include "base/error.h"
#include "base/strvec.h"

struct evp_pkey_st;  /* OpenSSL's EVP_PKEY */
struct x509_st;      /* OpenSSL's X509 */
struct X509_name_st; /* OpenSSL's X509_NAME */

/* Clocks of those who verify may be behind ours. The same as what we grant to others' (pki/paths.h). */
enum { CR_BACKDATED_MS = 5 * 60 * 1000 };
/* What RFC 5280 (appendix A.1, ub-common-name and ub-organization-name) allows, in characters. */
enum { CR_NAME_PART_MAX = 64 };

/* Wall clock; whole seconds of them are written. Both ends are within (RFC 5280, section 4.1.2.5). */
struct cr_validity {
    int64_t from_ms;
    int64_t until_ms;
};

/* Appends to the name what is there: common_name and organizations may be NULL. Errors: Invalid, not printable or too
 * long. */
bool cr_builder_subject(struct X509_name_st *name, const char *common_name, const struct cr_strvec *organizations,
                        struct cr_error *err) CR_MUST_USE;
/* An attribute serialNumber, for names that are otherwise the same (RFC 5280, section 4.1.2.4). */
bool cr_builder_subject_serial(struct X509_name_st *name, const char *text, struct cr_error *err) CR_MUST_USE;

/* Not signed yet: version 3, a serial of 128 random bits (RFC 5280, section 4.1.2.2: at most 20 octets, positive;
 * CA/Browser Forum: at least 64 of them from a CSPRNG), names, key, validity, and the key identifiers. issuer NULL:
 * self-signed. Errors: Invalid, a time that X.509 cannot say (after 9999); Internal. Owned by the caller. */
struct x509_st *cr_builder_new(struct evp_pkey_st *key, const struct X509_name_st *subject, struct x509_st *issuer,
                               const struct cr_validity *validity, struct cr_error *err) CR_MUST_USE;

/* pathlen below 0: no limit. Critical, as RFC 5280, section 4.2.1.9, demands of a CA. */
bool cr_builder_basic_constraints(struct x509_st *cert, bool ca, long pathlen, struct cr_error *err) CR_MUST_USE;
/* For a CA: keyCertSign and cRLSign. For a leaf: digitalSignature, and keyEncipherment for RSA only, where TLS 1.2 may
 * use it (RFC 8813, section 3, and RFC 9295, section 3, forbid it for the others). Critical (RFC 5280, 4.2.1.3). */
bool cr_builder_key_usage(struct x509_st *cert, bool ca, struct cr_error *err) CR_MUST_USE;
/* Any extension; value is what OpenSSL's i2d of that NID takes. Errors: Internal. */
bool cr_builder_add(struct x509_st *cert, int nid, void *value, bool critical, struct cr_error *err) CR_MUST_USE;

/* With the hash that fits the signer's key: SHA-256, for P-384 SHA-384 and for P-521 SHA-512 (RFC 5480, section 4);
 * Ed25519 (RFC 8410) and ML-DSA (RFC 9881) have their own. */
bool cr_builder_sign(struct x509_st *cert, struct evp_pkey_st *signer, struct cr_error *err) CR_MUST_USE;

#endif
