#include "pki/certificate.h"

#include <limits.h>
#include <string.h>
#include <time.h>

#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "pki/pem.h"

/* RFC 5280 lets a SAN list any number; messages need a few. */
enum { MAX_DNS_NAMES = 100 };

void cr_certificates_free(struct stack_st_X509 *certs)
{
    sk_X509_pop_free(certs, X509_free);
}

/* --- reading --- */

static bool refuse_label(const struct cr_pem_block *block, struct cr_error *err)
{
    return cr_error_set(err, CR_ERR_INVALID, "block %zu is a %.*s, a form that few TLS libraries read: use CERTIFICATE",
                        block->number, (int)block->label_len, block->label);
}

static X509 *decode_certificate(const struct cr_pem_block *block, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf der = {0};
    if (!cr_pem_decode(block, &der, err))
        return NULL;
    const unsigned char *start = (const unsigned char *)der.data;
    const unsigned char *at = start;
    X509 *cert = der.len <= INT_MAX ? d2i_X509(NULL, &at, (long)der.len) : NULL;
    if (cert && at == start + der.len)
        return cert;
    cr_error_set(err, CR_ERR_INVALID, "block %zu (CERTIFICATE, line %zu) is corrupt: %s", block->number, block->line,
                 cert ? "there is more behind the certificate" : "it holds no certificate");
    X509_free(cert);
    return NULL;
}

static bool add_block(const struct cr_pem_block *block, STACK_OF(X509) * certs, int max, struct cr_error *err)
{
    if (cr_pem_is(block, "TRUSTED CERTIFICATE") || cr_pem_is(block, "X509 CERTIFICATE"))
        return refuse_label(block, err);
    if (!cr_pem_is(block, "CERTIFICATE"))
        return true;
    if (block->headers)
        return cr_error_set(err, CR_ERR_INVALID,
                            "block %zu (CERTIFICATE, line %zu) has headers, which RFC 7468 does "
                            "not allow",
                            block->number, block->line);
    if (sk_X509_num(certs) >= max)
        return cr_error_set(err, CR_ERR_INVALID, "has more than %d certificates", max);
    X509 *cert = decode_certificate(block, err);
    if (!cert)
        return false;
    if (sk_X509_push(certs, cert) > 0)
        return true;
    X509_free(cert);
    return cr_error_set(err, CR_ERR_INTERNAL, "no memory for certificates");
}

static bool read_all(struct cr_pem_reader *reader, STACK_OF(X509) * certs, int max, struct cr_error *err)
{
    struct cr_pem_block block;
    enum cr_pem_step step;
    while ((step = cr_pem_next(reader, &block, err)) == CR_PEM_BLOCK)
        if (!add_block(&block, certs, max, err))
            return false;
    return step == CR_PEM_END;
}

/* DER begins with a SEQUENCE of a two-byte length. */
static const char *why_none(const struct cr_pem_input *in, const struct cr_pem_reader *reader)
{
    if (reader->blocks)
        return "has no certificate among its PEM blocks";
    if (in->len > 2 && in->data[0] == '\x30' && in->data[1] == '\x82')
        return "is DER: certificates in PEM are expected (openssl x509 -inform DER)";
    return "has no PEM block: certificates in PEM are expected";
}

struct stack_st_X509 *cr_certificates_read(const struct cr_pem_input *in, int max, struct cr_error *err)
{
    struct cr_pem_reader reader;
    CR_CLEANUP(cr_certificates) STACK_OF(X509) *certs = sk_X509_new_null();
    cr_pem_begin(&reader, in->data, in->len);
    if (!certs || !read_all(&reader, certs, max, err))
        return NULL;
    if (!sk_X509_num(certs)) {
        cr_error_set(err, CR_ERR_INVALID, "%s", why_none(in, &reader));
        return NULL;
    }
    return cr_steal(&certs);
}

/* --- digests --- */

struct der {
    unsigned char *data; /* OpenSSL's */
    size_t len;
};

static void der_cleanup(struct der *d)
{
    OPENSSL_free(d->data);
}

#define CLEANUP_DER __attribute__((cleanup(der_cleanup))) struct der

/* What was parsed is encoded again as it was; without memory the digest is that of nothing. */
static struct der to_der(unsigned char *data, int len)
{
    return (struct der){data, len > 0 ? (size_t)len : 0};
}

static struct der name_der(const X509_NAME *name)
{
    unsigned char *data = NULL;
    int len = i2d_X509_NAME(name, &data);
    return to_der(data, len);
}

static struct der key_der(const X509 *cert)
{
    unsigned char *data = NULL;
    int len = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), &data);
    return to_der(data, len);
}

static struct der cert_der(const X509 *cert)
{
    unsigned char *data = NULL;
    int len = i2d_X509(cert, &data);
    return to_der(data, len);
}

static void digest_two(const struct der *a, const struct der *b, char out[CR_SHA256_HEX])
{
    const struct cr_sha256_piece pieces[] = {{a->data, a->len}, {b->data, b->len}};
    cr_sha256_hex_pieces(pieces, 2, out);
}

void cr_certificate_fingerprint(struct x509_st *cert, char out[CR_SHA256_HEX])
{
    CLEANUP_DER der = cert_der(cert);
    cr_sha256_hex(der.data, der.len, out);
}

void cr_certificate_identity(struct x509_st *cert, char out[CR_SHA256_HEX])
{
    CLEANUP_DER subject = name_der(X509_get_subject_name(cert));
    CLEANUP_DER key = key_der(cert);
    digest_two(&subject, &key, out);
}

void cr_certificate_key_digest(struct x509_st *cert, char out[CR_SHA256_HEX])
{
    CLEANUP_DER key = key_der(cert);
    cr_sha256_hex(key.data, key.len, out);
}

void cr_certificate_issuer_digest(struct x509_st *cert, char out[CR_SHA256_HEX])
{
    CLEANUP_DER issuer = name_der(X509_get_issuer_name(cert));
    const ASN1_OCTET_STRING *aki = X509_get0_authority_key_id(cert); /* borrowed; NULL when there is none */
    const struct cr_sha256_piece pieces[] = {
        {issuer.data, issuer.len},
        {aki ? ASN1_STRING_get0_data(aki) : NULL, aki ? (size_t)ASN1_STRING_length(aki) : 0},
    };
    cr_sha256_hex_pieces(pieces, 2, out);
}

void cr_certificates_digest(struct stack_st_X509 *certs, char out[CR_SHA256_HEX])
{
    CR_CLEANUP(cr_buf) struct cr_buf all = {0};
    for (int i = 0; i < sk_X509_num(certs); i++) {
        CLEANUP_DER der = cert_der(sk_X509_value(certs, i));
        bool fits = cr_buf_append(&all, der.data, der.len); /* no cap */
        (void)fits;
    }
    cr_sha256_hex(all.data, all.len, out);
}

/* --- facts --- */

static int64_t time_ms(const ASN1_TIME *at, int64_t fallback)
{
    struct tm tm;
    return at && ASN1_TIME_to_tm(at, &tm) ? (int64_t)timegm(&tm) * 1000 : fallback;
}

int64_t cr_certificate_not_before_ms(const struct x509_st *cert)
{
    return time_ms(X509_get0_notBefore(cert), INT64_MIN);
}

int64_t cr_certificate_not_after_ms(const struct x509_st *cert)
{
    return time_ms(X509_get0_notAfter(cert), INT64_MAX);
}

/* What is shown to people must not be able to forge lines or hide behind a NUL. */
static void add_name(struct cr_strvec *names, const ASN1_IA5STRING *text)
{
    size_t len = (size_t)ASN1_STRING_length(text);
    const unsigned char *data = ASN1_STRING_get0_data(text);
    cr_autofree char *name = cr_malloc(len + 1);
    for (size_t i = 0; i < len; i++)
        name[i] = (char)(data[i] > 0x20 && data[i] < 0x7F ? data[i] : '?');
    name[len] = '\0';
    cr_strvec_add(names, name);
}

void cr_certificate_dns_names(struct x509_st *cert, struct cr_strvec *names)
{
    GENERAL_NAMES *all = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; i < sk_GENERAL_NAME_num(all) && names->len < MAX_DNS_NAMES; i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(all, i);
        if (name->type == GEN_DNS)
            add_name(names, name->d.dNSName);
    }
    GENERAL_NAMES_free(all);
}
