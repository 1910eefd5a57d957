#include "pki/cross_sign.h"

#include "base/strings.h"
#include "pki/authority_internal.h"
#include "pki/builder.h"
#include "pki/x509.h"

enum { FRESH_MAX = 8 };

/* --- whether --- */

static bool check_path_lengths(const struct cr_authority *old, struct cr_error *err)
{
    for (int above = 0; above < sk_X509_num(old->chain); above++) {
        long limit = X509_get_pathlen(sk_X509_value(old->chain, above));
        if (limit >= 0 && limit <= above)
            return cr_error_set(err, CR_ERR_INVALID,
                                "the old CA cannot sign the new one: %s path length of %ld, which leaves no room for "
                                "another CA below it (RFC 5280, section 4.2.1.9)",
                                above ? "one above it has a" : "it has a", limit);
    }
    return true;
}

static bool check_pair(X509 *old, X509 *fresh, struct cr_error *err)
{
    if (EVP_PKEY_eq(X509_get0_pubkey(old), X509_get0_pubkey(fresh)) == 1)
        return cr_error_set(err, CR_ERR_INVALID,
                            "the new CA has the key of the old one: its leaves verify against both already");
    if (X509_NAME_cmp(X509_get_subject_name(old), X509_get_subject_name(fresh)) == 0)
        return cr_error_set(err, CR_ERR_INVALID,
                            "the new CA has the subject of the old one, but another key: verifiers would try only one "
                            "of both. Give each generation a subject of its own");
    return true;
}

/* Made again, or copied; what is critical must be one of them. */
static const int limits[] = {NID_ext_key_usage, NID_name_constraints};

static bool is_understood(int nid)
{
    for (size_t i = 0; i < cr_array_len(limits); i++)
        if (nid == limits[i])
            return true;
    return nid == NID_basic_constraints || nid == NID_key_usage;
}

static bool check_extensions(const X509 *fresh, struct cr_error *err)
{
    for (int i = 0; i < X509_get_ext_count(fresh); i++) {
        X509_EXTENSION *extension = X509_get_ext(fresh, i);
        char name[64];
        ASN1_OBJECT *object = X509_EXTENSION_get_object(extension);
        if (!X509_EXTENSION_get_critical(extension) || is_understood(OBJ_obj2nid(object)))
            continue;
        OBJ_obj2txt(name, sizeof name, object, 0);
        return cr_error_set(err, CR_ERR_INVALID,
                            "the new CA has the critical extension %s, which cannot be carried over", name);
    }
    return true;
}

static bool check(const struct cr_authority *old, X509 *fresh, int64_t now_ms, struct cr_error *err)
{
    for (int i = 0; i < sk_X509_num(old->chain); i++)
        if (!cr_authority_check(sk_X509_value(old->chain, i), now_ms, err))
            return cr_error_wrap(err, i ? "above the old CA" : "the old CA");
    if (!cr_authority_check(fresh, now_ms, err))
        return cr_error_wrap(err, "the new CA");
    return check_path_lengths(old, err) && check_pair(sk_X509_value(old->chain, 0), fresh, err) &&
           check_extensions(fresh, err);
}

/* --- how --- */

static long least(long a, long b)
{
    return a < 0 ? b : (b < 0 || a < b ? a : b);
}

/* What the CAs above leave, where they leave a number; below 0: no limit. */
static long path_length(const struct cr_authority *old, X509 *fresh)
{
    long length = X509_get_pathlen(fresh);
    for (int above = 0; above < sk_X509_num(old->chain); above++) {
        long limit = X509_get_pathlen(sk_X509_value(old->chain, above));
        length = least(length, limit < 0 ? -1 : limit - above - 1);
    }
    return length;
}

static bool copy_limits(X509 *cert, const X509 *fresh, struct cr_error *err)
{
    for (size_t i = 0; i < cr_array_len(limits); i++) {
        int at = X509_get_ext_by_NID(fresh, limits[i], -1);
        if (at >= 0 && !X509_add_ext(cert, X509_get_ext(fresh, at), -1))
            return cr_openssl_fail(err, "an extension of the new CA cannot be copied");
    }
    return true;
}

/* The identifier that the new CA's leaves name, however it was made. */
static bool copy_key_id(X509 *cert, X509 *fresh, struct cr_error *err)
{
    const ASN1_OCTET_STRING *known = X509_get0_subject_key_id(fresh);
    if (!known)
        return true;
    ASN1_OCTET_STRING *id = ASN1_OCTET_STRING_dup(known);
    bool copied = id && X509_add1_ext_i2d(cert, NID_subject_key_identifier, id, 0, X509V3_ADD_REPLACE_EXISTING) == 1;
    ASN1_OCTET_STRING_free(id);
    return copied ? true : cr_openssl_fail(err, "the new CA's key identifier cannot be copied");
}

static X509 *build(const struct cr_authority *old, X509 *fresh, const struct cr_validity *validity,
                   struct cr_error *err)
{
    CR_CLEANUP(cr_x509)
    X509 *cert = cr_builder_new(X509_get0_pubkey(fresh), X509_get_subject_name(fresh), sk_X509_value(old->chain, 0),
                                validity, err);
    if (!cert || !copy_key_id(cert, fresh, err) ||
        !cr_builder_basic_constraints(cert, true, path_length(old, fresh), err) ||
        !cr_builder_key_usage(cert, true, err) || !copy_limits(cert, fresh, err) ||
        !cr_builder_sign(cert, old->key, err))
        return NULL;
    return cr_steal(&cert);
}

static bool write_all(const struct cr_authority *old, X509 *cert, struct cr_buf *pem, struct cr_error *err)
{
    if (!cr_x509_write(cert, pem, err))
        return false;
    for (int i = 0; i < sk_X509_num(old->chain); i++) {
        X509 *above = sk_X509_value(old->chain, i);
        if (!cr_x509_is_root(above) && !cr_x509_write(above, pem, err))
            return false;
    }
    return true;
}

bool cr_cross_sign(const struct cr_authority *old, const struct cr_pem_input *fresh, int64_t now_ms,
                   struct cr_issued *out, struct cr_error *err)
{
    CR_OPENSSL_SCOPE;
    CR_CLEANUP(cr_buf) struct cr_buf pem = {0};
    *out = (struct cr_issued){0};
    CR_CLEANUP(cr_x509_list) STACK_OF(X509) *read = cr_x509_read(fresh, FRESH_MAX, err);
    if (!read)
        return cr_error_wrap(err, "the new CA's certificate");
    X509 *ca = sk_X509_value(read, 0);
    if (!check(old, ca, now_ms, err))
        return false;
    int64_t until_ms = cr_x509_not_after_ms(ca);
    bool clamped = old->not_after_ms < until_ms;
    const struct cr_validity validity = {now_ms - CR_BACKDATED_MS, clamped ? old->not_after_ms : until_ms};
    CR_CLEANUP(cr_x509) X509 *cert = build(old, ca, &validity, err);
    if (!cert || !write_all(old, cert, &pem, err))
        return false;
    *out = (struct cr_issued){cr_buf_steal(&pem), cr_x509_not_before_ms(cert), cr_x509_not_after_ms(cert), clamped};
    return true;
}
