#include "pki/x509.h"

#include <string.h>
#include <time.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "pki/certificate.h"
#include "pki/key.h"
#include "pki/openssl_internal.h"

void cr_x509_list_free(struct stack_st_X509 *certs)
{
    sk_X509_pop_free(certs, X509_free);
}

/* --- text --- */

static bool push(STACK_OF(X509) * certs, X509 *cert, struct cr_error *err)
{
    if (!cert)
        return cr_error_set(err, CR_ERR_INVALID,
                            "has a certificate that OpenSSL cannot read, or whose key is on a curve without a name");
    if (sk_X509_push(certs, cert) <= 0)
        return cr_openssl_fail(err, "no memory for certificates");
    X509_up_ref(cert);
    return true;
}

struct stack_st_X509 *cr_x509_read(const struct cr_pem_input *in, size_t max, struct cr_error *err)
{
    CR_OPENSSL_SCOPE;
    CR_CLEANUP(cr_certificates) struct cr_certificates *read = cr_certificates_read(in, max, err);
    CR_CLEANUP(cr_x509_list) STACK_OF(X509) *certs = sk_X509_new_null();
    for (size_t i = 0; read && i < read->len; i++)
        if (!push(certs, cr_certificate_x509(read->items[i]), err))
            return NULL;
    return read ? cr_steal(&certs) : NULL;
}

bool cr_x509_write(struct x509_st *cert, struct cr_buf *pem, struct cr_error *err)
{
    char *text = NULL;
    CR_CLEANUP(cr_bio) BIO *bio = BIO_new(BIO_s_mem());
    if (!bio || !PEM_write_bio_X509(bio, cert))
        return cr_openssl_fail(err, "the certificate cannot be written");
    long len = BIO_get_mem_data(bio, &text);
    if (!cr_buf_append(pem, text, (size_t)len))
        return cr_error_set(err, CR_ERR_INVALID, "the certificates take more than %zu bytes", pem->max);
    return true;
}

bool cr_x509_has_weak_digest(struct x509_st *cert)
{
    int digest = NID_undef;
    if (X509_get_signature_info(cert, &digest, NULL, NULL, NULL) != 1)
        return false;
    return digest == NID_sha1 || digest == NID_md5 || digest == NID_md4 || digest == NID_md2;
}

/* --- digests --- */

void cr_x509_fingerprint(struct x509_st *cert, char out[CR_SHA256_HEX])
{
    unsigned char *der = NULL;
    int len = i2d_X509(cert, &der);
    cr_sha256_hex(der, len > 0 ? (size_t)len : 0, out);
    OPENSSL_free(der);
}

void cr_x509_identity(struct x509_st *cert, char out[CR_SHA256_HEX])
{
    unsigned char *name = NULL;
    unsigned char *key = NULL;
    int name_len = i2d_X509_NAME(X509_get_subject_name(cert), &name);
    int key_len = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), &key);
    const struct cr_sha256_piece pieces[] = {{name, name_len > 0 ? (size_t)name_len : 0},
                                             {key, key_len > 0 ? (size_t)key_len : 0}};
    cr_sha256_hex_pieces(pieces, 2, out);
    OPENSSL_free(name);
    OPENSSL_free(key);
}

/* --- facts --- */

static int64_t time_ms(const ASN1_TIME *at, int64_t fallback)
{
    struct tm tm;
    return at && ASN1_TIME_to_tm(at, &tm) ? (int64_t)timegm(&tm) * 1000 : fallback;
}

int64_t cr_x509_not_before_ms(const struct x509_st *cert)
{
    return time_ms(X509_get0_notBefore(cert), INT64_MIN);
}

int64_t cr_x509_not_after_ms(const struct x509_st *cert)
{
    return time_ms(X509_get0_notAfter(cert), INT64_MAX);
}

bool cr_x509_signed_by(struct x509_st *cert, struct x509_st *ca)
{
    EVP_PKEY *key = X509_get0_pubkey(ca);
    return key && X509_NAME_cmp(X509_get_issuer_name(cert), X509_get_subject_name(ca)) == 0 &&
           X509_verify(cert, key) == 1;
}

static bool is_issued_by(X509 *cert, X509 *issuer, size_t *signatures)
{
    EVP_PKEY *key = X509_get0_pubkey(issuer);
    if (X509_check_issued(issuer, cert) != X509_V_OK || !key || !cr_key_is_affordable(key, NULL))
        return false;
    return (*signatures)++ >= CR_X509_ISSUERS_MAX || X509_verify(cert, key) == 1;
}

void cr_x509_find_issuers(struct x509_st *const *certs, size_t len, bool *issued)
{
    CR_OPENSSL_SCOPE;
    size_t signatures = 0;
    for (size_t cert = 0; cert < len; cert++)
        for (size_t issuer = 0; issuer < len; issuer++)
            issued[cert * len + issuer] = cert != issuer && !cr_x509_is_root(certs[cert]) &&
                                          is_issued_by(certs[cert], certs[issuer], &signatures);
}

int64_t cr_x509_when_valid(const struct x509_st *leaf, const struct x509_st *ca, int64_t now_ms)
{
    int64_t began[] = {now_ms, cr_x509_not_before_ms(leaf), cr_x509_not_before_ms(ca)};
    int64_t latest = began[0] > began[1] ? began[0] : began[1];
    return latest > began[2] ? latest : began[2];
}

bool cr_x509_allows_names(struct x509_st *ca, struct x509_st *leaf)
{
    NAME_CONSTRAINTS *constraints = X509_get_ext_d2i(ca, NID_name_constraints, NULL, NULL);
    bool within = !constraints || NAME_CONSTRAINTS_check(leaf, constraints) == X509_V_OK;
    NAME_CONSTRAINTS_free(constraints);
    return within;
}

bool cr_x509_is_root(struct x509_st *cert)
{
    return X509_get_extension_flags(cert) & EXFLAG_SS;
}

bool cr_x509_has_name(const struct X509_name_st *a, const struct X509_name_st *b)
{
    const unsigned char *x;
    const unsigned char *y;
    size_t x_len;
    size_t y_len;
    return X509_NAME_get0_der((X509_NAME *)(uintptr_t)a, &x, &x_len) == 1 &&
           X509_NAME_get0_der((X509_NAME *)(uintptr_t)b, &y, &y_len) == 1 && x_len == y_len && memcmp(x, y, x_len) == 0;
}

uint32_t cr_x509_usage_of(int purpose)
{
    if (purpose == X509_PURPOSE_SSL_SERVER)
        return XKU_SSL_SERVER;
    return purpose == X509_PURPOSE_SSL_CLIENT ? XKU_SSL_CLIENT : 0;
}
