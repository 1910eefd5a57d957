#include "pki/builder.h"

#include <string.h>

#include "base/civil.h"
#include "base/strings.h"
#include "pki/openssl_internal.h"
#include "pki/private_key_internal.h"

enum { SERIAL_BITS = 128, KEY_ID = 20 };

/* 9999-12-31T23:59:59Z, the last that GeneralizedTime can say. */
static const int64_t LAST_MS = INT64_C(253402300799000);

/* --- names --- */

static bool add_part(X509_NAME *name, int nid, int type, const char *text, struct cr_error *err)
{
    const char *what = OBJ_nid2ln(nid);
    if (!*text)
        return cr_error_set(err, CR_ERR_INVALID, "%s of the subject is empty", what);
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F)
            return cr_error_set(err, CR_ERR_INVALID, "%s of the subject has a control character", what);
    if (X509_NAME_add_entry_by_NID(name, nid, type, (const unsigned char *)text, -1, -1, 0))
        return true;
    return cr_error_set(err, CR_ERR_INVALID, "%s of the subject must be UTF-8 of at most %d characters (RFC 5280)",
                        what, CR_NAME_PART_MAX);
}

bool cr_builder_subject(struct X509_name_st *name, const char *common_name, const struct cr_strvec *organizations,
                        struct cr_error *err)
{
    for (size_t i = 0; organizations && i < organizations->len; i++)
        if (!add_part(name, NID_organizationName, MBSTRING_UTF8, organizations->items[i], err))
            return false;
    return !common_name || add_part(name, NID_commonName, MBSTRING_UTF8, common_name, err);
}

bool cr_builder_subject_serial(struct X509_name_st *name, const char *text, struct cr_error *err)
{
    return add_part(name, NID_serialNumber, MBSTRING_ASC, text, err);
}

/* --- fields --- */

static bool set_serial(X509 *cert)
{
    BIGNUM *serial = BN_new();
    bool set = serial && BN_rand(serial, SERIAL_BITS, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY);
    while (set && BN_is_zero(serial)) /* RFC 5280 wants a positive one */
        set = BN_rand(serial, SERIAL_BITS, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY);
    set = set && BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(cert));
    BN_free(serial);
    return set;
}

static bool set_time(ASN1_TIME *at, int64_t ms, struct cr_error *err)
{
    if (ms > LAST_MS)
        return cr_error_set(err, CR_ERR_INVALID, "a certificate cannot be valid beyond the year 9999");
    /* UTCTime until 2049, then GeneralizedTime (RFC 5280, section 4.1.2.5). */
    return ASN1_TIME_set(at, (time_t)cr_floor_div(ms, 1000)) ? true : cr_openssl_fail(err, "a time cannot be written");
}

static bool set_fields(X509 *cert, EVP_PKEY *key, const X509_NAME *subject, const X509_NAME *issuer,
                       struct cr_error *err)
{
    if (X509_set_version(cert, X509_VERSION_3) && set_serial(cert) && X509_set_subject_name(cert, subject) &&
        X509_set_issuer_name(cert, issuer) && X509_set_pubkey(cert, key))
        return true;
    return cr_openssl_fail(err, "no certificate can be made");
}

/* --- extensions --- */

bool cr_builder_add(struct x509_st *cert, int nid, void *value, bool critical, struct cr_error *err)
{
    if (value && X509_add1_ext_i2d(cert, nid, value, critical, X509V3_ADD_DEFAULT) == 1)
        return true;
    cr_openssl_fail(err, OBJ_nid2ln(nid));
    return cr_error_wrap(err, "an extension of the certificate cannot be made");
}

/* The left 160 bits of the SHA-256 of the key's bits: RFC 7093, section 2, method 1, as RFC 5280, section 4.2.1.2,
 * allows any way to make unique ones, and SHA-1 is not everywhere. Only equality counts (section 4.2.1.1). */
static ASN1_OCTET_STRING *key_id(const X509 *cert)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    const ASN1_BIT_STRING *bits = X509_get0_pubkey_bitstr(cert);
    ASN1_OCTET_STRING *id = ASN1_OCTET_STRING_new();
    if (bits && id &&
        EVP_Digest(ASN1_STRING_get0_data(bits), (size_t)ASN1_STRING_length(bits), digest, NULL, EVP_sha256(), NULL) &&
        ASN1_OCTET_STRING_set(id, digest, KEY_ID))
        return id;
    ASN1_OCTET_STRING_free(id);
    return NULL;
}

static bool add_subject_key_id(X509 *cert, struct cr_error *err)
{
    ASN1_OCTET_STRING *id = key_id(cert);
    bool added = cr_builder_add(cert, NID_subject_key_identifier, id, false, err);
    ASN1_OCTET_STRING_free(id);
    return added;
}

/* The issuer's own identifier, whatever way it was made. Verifiers choose by it between CAs of one name. */
static bool add_authority_key_id(X509 *cert, X509 *issuer, struct cr_error *err)
{
    AUTHORITY_KEYID *authority = AUTHORITY_KEYID_new();
    const ASN1_OCTET_STRING *known = X509_get0_subject_key_id(issuer);
    if (authority)
        authority->keyid = known ? ASN1_OCTET_STRING_dup(known) : key_id(issuer);
    bool whole = authority && authority->keyid;
    bool added = cr_builder_add(cert, NID_authority_key_identifier, whole ? authority : NULL, false, err);
    AUTHORITY_KEYID_free(authority);
    return added;
}

bool cr_builder_basic_constraints(struct x509_st *cert, bool ca, long pathlen, struct cr_error *err)
{
    BASIC_CONSTRAINTS *basic = BASIC_CONSTRAINTS_new();
    bool whole = basic;
    if (basic)
        basic->ca = ca ? 0xFF : 0;
    if (basic && ca && pathlen >= 0) {
        basic->pathlen = ASN1_INTEGER_new();
        whole = basic->pathlen && ASN1_INTEGER_set(basic->pathlen, pathlen);
    }
    bool added = cr_builder_add(cert, NID_basic_constraints, whole ? basic : NULL, true, err);
    BASIC_CONSTRAINTS_free(basic);
    return added;
}

/* The bits of RFC 5280, section 4.2.1.3. */
enum { DIGITAL_SIGNATURE = 0, KEY_ENCIPHERMENT = 2, KEY_CERT_SIGN = 5, CRL_SIGN = 6 };

static bool set_usage_bits(ASN1_BIT_STRING *bits, X509 *cert, bool ca)
{
    if (ca)
        return ASN1_BIT_STRING_set_bit(bits, KEY_CERT_SIGN, 1) && ASN1_BIT_STRING_set_bit(bits, CRL_SIGN, 1);
    bool rsa = EVP_PKEY_get_base_id(X509_get0_pubkey(cert)) == EVP_PKEY_RSA;
    return ASN1_BIT_STRING_set_bit(bits, DIGITAL_SIGNATURE, 1) &&
           (!rsa || ASN1_BIT_STRING_set_bit(bits, KEY_ENCIPHERMENT, 1));
}

bool cr_builder_key_usage(struct x509_st *cert, bool ca, struct cr_error *err)
{
    ASN1_BIT_STRING *bits = ASN1_BIT_STRING_new();
    bool whole = bits && set_usage_bits(bits, cert, ca);
    bool added = cr_builder_add(cert, NID_key_usage, whole ? bits : NULL, true, err);
    ASN1_BIT_STRING_free(bits);
    return added;
}

/* --- the whole --- */

struct x509_st *cr_builder_new(struct evp_pkey_st *key, const struct X509_name_st *subject, struct x509_st *issuer,
                               const struct cr_validity *validity, struct cr_error *err)
{
    CR_CLEANUP(cr_x509) X509 *cert = X509_new();
    if (!cert) {
        cr_openssl_fail(err, "no certificate can be made");
        return NULL;
    }
    if (!set_fields(cert, key, subject, issuer ? X509_get_subject_name(issuer) : subject, err) ||
        !set_time(X509_getm_notBefore(cert), validity->from_ms, err) ||
        !set_time(X509_getm_notAfter(cert), validity->until_ms, err) || !add_subject_key_id(cert, err))
        return NULL;
    /* A self-signed one may go without (RFC 5280, section 4.2.1.1). */
    if (issuer && !add_authority_key_id(cert, issuer, err))
        return NULL;
    return cr_steal(&cert);
}

static const EVP_MD *hash_for(const EVP_PKEY *key)
{
    switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
        return EVP_sha256();
    case EVP_PKEY_EC:
        return EVP_PKEY_get_bits(key) <= 256   ? EVP_sha256()
               : EVP_PKEY_get_bits(key) <= 384 ? EVP_sha384()
                                               : EVP_sha512();
    default:
        return NULL; /* Ed25519 and ML-DSA have their own */
    }
}

bool cr_builder_sign(struct x509_st *cert, struct evp_pkey_st *signer, struct cr_error *err)
{
    return X509_sign(cert, signer, hash_for(signer)) > 0 ? true
                                                         : cr_openssl_fail(err, "the certificate cannot be signed");
}
