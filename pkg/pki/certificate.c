#include "pki/certificate.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "pki/certificate_asn1.h"
#include "pki/key.h"
#include "pki/leaf_names.h"
#include "pki/pem.h"

struct der {
    unsigned char *data; /* OpenSSL's */
    size_t len;
};

struct cr_certificate {
    CR_ASN1_CERTIFICATE *asn1;
    struct der der; /* what was parsed, encoded again as it was */
    X509 *x509;     /* NULL until it is asked for */
    EVP_PKEY *key;  /* NULL until it is asked for */
};

static void der_cleanup(struct der *d)
{
    OPENSSL_free(d->data);
}

#define CLEANUP_DER __attribute__((cleanup(der_cleanup))) struct der

/* Without memory the digest is that of nothing. */
static struct der to_der(unsigned char *data, int len)
{
    return (struct der){data, len > 0 ? (size_t)len : 0};
}

/* --- ownership --- */

static void certificate_free(struct cr_certificate *cert)
{
    CR_ASN1_CERTIFICATE_free(cert->asn1);
    der_cleanup(&cert->der);
    X509_free(cert->x509);
    EVP_PKEY_free(cert->key);
    free(cert);
}

static struct cr_certificate *certificate_new(CR_ASN1_CERTIFICATE *asn1)
{
    struct cr_certificate *cert = cr_new(struct cr_certificate);
    unsigned char *data = NULL;
    int len = i2d_CR_ASN1_CERTIFICATE(asn1, &data);
    cert->asn1 = asn1;
    cert->der = to_der(data, len);
    return cert;
}

static struct cr_certificates *certificates_new(void)
{
    struct cr_certificates *certs = cr_new(struct cr_certificates);
    certs->refs = 1;
    return certs;
}

static void add_certificate(struct cr_certificates *certs, struct cr_certificate *cert)
{
    certs->items = cr_reallocarray(certs->items, certs->len + 1, sizeof *certs->items);
    certs->items[certs->len++] = cert;
}

struct cr_certificates *cr_certificates_ref(struct cr_certificates *certs)
{
    certs->refs++;
    return certs;
}

void cr_certificates_free(struct cr_certificates *certs)
{
    if (!certs || --certs->refs)
        return;
    for (size_t i = 0; i < certs->len; i++)
        certificate_free(certs->items[i]);
    free(certs->items);
    free(certs);
}

/* --- reading --- */

static bool refuse_label(const struct cr_pem_block *block, struct cr_error *err)
{
    return cr_error_set(err, CR_ERR_INVALID, "block %zu is a %.*s, a form that few TLS libraries read: use CERTIFICATE",
                        block->number, (int)block->label_len, block->label);
}

static bool is_time(const ASN1_TIME *at)
{
    struct tm tm;
    return at && ASN1_TIME_to_tm(at, &tm);
}

/* What never verifies, as its time cannot be read, would count as valid for ever. */
static bool check_times(const CR_ASN1_CERTIFICATE *cert, const struct cr_pem_block *block, struct cr_error *err)
{
    const char *which = !is_time(cert->tbs->validity->notBefore)  ? "notBefore"
                        : !is_time(cert->tbs->validity->notAfter) ? "notAfter"
                                                                  : NULL;
    return !which || cr_error_set(err, CR_ERR_INVALID, "block %zu (CERTIFICATE, line %zu) has a %s that is no time",
                                  block->number, block->line, which);
}

static CR_ASN1_CERTIFICATE *decode_certificate(const struct cr_pem_block *block, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf der = {0};
    if (!cr_pem_decode(block, &der, err))
        return NULL;
    const unsigned char *start = (const unsigned char *)der.data;
    const unsigned char *at = start;
    CR_ASN1_CERTIFICATE *cert = der.len <= INT_MAX ? d2i_CR_ASN1_CERTIFICATE(NULL, &at, (long)der.len) : NULL;
    bool whole = cert && at == start + der.len;
    if (whole && check_times(cert, block, err))
        return cert;
    if (!whole)
        cr_error_set(err, CR_ERR_INVALID, "block %zu (CERTIFICATE, line %zu) is corrupt: %s", block->number,
                     block->line, cert ? "there is more behind the certificate" : "it holds no certificate");
    CR_ASN1_CERTIFICATE_free(cert);
    return NULL;
}

static bool add_block(const struct cr_pem_block *block, struct cr_certificates *certs, size_t max, struct cr_error *err)
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
    if (certs->len >= max)
        return cr_error_set(err, CR_ERR_INVALID, "has more than %zu certificates", max);
    CR_ASN1_CERTIFICATE *cert = decode_certificate(block, err);
    if (cert)
        add_certificate(certs, certificate_new(cert));
    return cert;
}

static bool read_all(struct cr_pem_reader *reader, struct cr_certificates *certs, size_t max, struct cr_error *err)
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

struct cr_certificates *cr_certificates_read(const struct cr_pem_input *in, size_t max, struct cr_error *err)
{
    struct cr_pem_reader reader;
    CR_CLEANUP(cr_certificates) struct cr_certificates *certs = certificates_new();
    cr_pem_begin(&reader, in->data, in->len);
    if (!read_all(&reader, certs, max, err))
        return NULL;
    if (!certs->len) {
        cr_error_set(err, CR_ERR_INVALID, "%s", why_none(in, &reader));
        return NULL;
    }
    return cr_steal(&certs);
}

/* --- as OpenSSL has it --- */

struct x509_st *cr_certificate_x509(struct cr_certificate *cert)
{
    const unsigned char *at = cert->der.data;
    if (!cert->x509 && cr_key_is_decodable(cert->asn1->tbs->spki->algorithm)) /* as it is made, its key is decoded */
        cert->x509 = d2i_X509(NULL, &at, (long)cert->der.len);
    return cert->x509;
}

static struct der key_der(const struct cr_certificate *cert)
{
    unsigned char *data = NULL;
    int len = i2d_CR_ASN1_SPKI(cert->asn1->tbs->spki, &data);
    return to_der(data, len);
}

struct evp_pkey_st *cr_certificate_key(struct cr_certificate *cert)
{
    if (cert->key)
        return cert->key;
    CLEANUP_DER der = key_der(cert);
    cert->key = cr_key_decode_public(cert->asn1->tbs->spki->algorithm, der.data, der.len);
    return cert->key;
}

void cr_certificate_key_algorithm(const struct cr_certificate *cert, char *out, size_t size)
{
    char name[CR_KEY_ALGORITHM_TEXT];
    cr_key_algorithm_name(cert->asn1->tbs->spki->algorithm, name);
    (void)snprintf(out, size, "%s", name);
}

void cr_certificate_offer_key(struct cr_certificate *cert, struct evp_pkey_st *key)
{
    const CR_ASN1_SPKI *spki = cert->asn1->tbs->spki;
    const unsigned char *bits = ASN1_STRING_get0_data(spki->key);
    size_t len = (size_t)ASN1_STRING_length(spki->key);
    if (!cert->key && cr_key_has_public(key, spki->algorithm, bits, len) && EVP_PKEY_up_ref(key))
        cert->key = key;
}

/* --- digests --- */

static struct der name_der(const X509_NAME *name)
{
    unsigned char *data = NULL;
    int len = i2d_X509_NAME(name, &data);
    return to_der(data, len);
}

/* Decoded; NULL when it is absent, there twice, or not what it should be. */
static void *extension(const struct cr_certificate *cert, int nid)
{
    return X509V3_get_d2i(cert->asn1->tbs->extensions, nid, NULL, NULL);
}

static void digest_two(const struct der *a, const struct der *b, char out[CR_SHA256_HEX])
{
    const struct cr_sha256_piece pieces[] = {{a->data, a->len}, {b->data, b->len}};
    cr_sha256_hex_pieces(pieces, 2, out);
}

void cr_certificate_fingerprint(const struct cr_certificate *cert, char out[CR_SHA256_HEX])
{
    cr_sha256_hex(cert->der.data, cert->der.len, out);
}

void cr_certificate_identity(const struct cr_certificate *cert, char out[CR_SHA256_HEX])
{
    CLEANUP_DER subject = name_der(cert->asn1->tbs->subject);
    CLEANUP_DER key = key_der(cert);
    digest_two(&subject, &key, out);
}

void cr_certificate_key_digest(const struct cr_certificate *cert, char out[CR_SHA256_HEX])
{
    CLEANUP_DER key = key_der(cert);
    cr_sha256_hex(key.data, key.len, out);
}

void cr_certificate_issuer_digest(const struct cr_certificate *cert, char out[CR_SHA256_HEX])
{
    CLEANUP_DER issuer = name_der(cert->asn1->tbs->issuer);
    AUTHORITY_KEYID *authority = extension(cert, NID_authority_key_identifier);
    const ASN1_OCTET_STRING *aki = authority ? authority->keyid : NULL;
    const struct cr_sha256_piece pieces[] = {
        {issuer.data, issuer.len},
        {aki ? ASN1_STRING_get0_data(aki) : NULL, aki ? (size_t)ASN1_STRING_length(aki) : 0},
    };
    cr_sha256_hex_pieces(pieces, 2, out);
    AUTHORITY_KEYID_free(authority);
}

void cr_certificate_subject_digest(const struct cr_certificate *cert, char out[CR_SHA256_HEX])
{
    CLEANUP_DER subject = name_der(cert->asn1->tbs->subject);
    cr_sha256_hex(subject.data, subject.len, out);
}

void cr_certificates_digest(const struct cr_certificates *certs, char out[CR_SHA256_HEX])
{
    CR_CLEANUP(cr_buf) struct cr_buf all = {0};
    for (size_t i = 0; i < certs->len; i++) {
        const struct der *der = &certs->items[i]->der;
        bool fits = cr_buf_append(&all, der->data, der->len); /* no cap */
        (void)fits;
    }
    cr_sha256_hex(all.data, all.len, out);
}

/* --- facts --- */

const struct X509_name_st *cr_certificate_subject(const struct cr_certificate *cert)
{
    return cert->asn1->tbs->subject;
}

const struct X509_name_st *cr_certificate_issuer(const struct cr_certificate *cert)
{
    return cert->asn1->tbs->issuer;
}

size_t cr_certificate_size(const struct cr_certificate *cert)
{
    return cert->der.len;
}

/* Two digits an octet, without the zero that may come first. */
void cr_certificate_serial(const struct cr_certificate *cert, char out[CR_SERIAL_HEX])
{
    const ASN1_INTEGER *serial = cert->asn1->tbs->serial;
    const unsigned char *data = ASN1_STRING_get0_data(serial);
    size_t len = (size_t)ASN1_STRING_length(serial);
    char text[CR_SERIAL_HEX] = "";
    out[0] = '\0';
    if (ASN1_STRING_type(serial) != V_ASN1_INTEGER)
        return;
    for (; len && !*data; len--)
        data++;
    if (len > (CR_SERIAL_HEX - 1) / 2)
        return;
    for (size_t i = 0; i < len; i++)
        snprintf(&text[2 * i], 3, "%02x", data[i]);
    snprintf(out, CR_SERIAL_HEX, "%s", len ? text + (text[0] == '0') : "0");
}

/* It was read when the certificate was. */
static int64_t time_ms(const ASN1_TIME *at)
{
    struct tm tm = {0};
    (void)ASN1_TIME_to_tm(at, &tm);
    return (int64_t)timegm(&tm) * 1000;
}

int64_t cr_certificate_not_before_ms(const struct cr_certificate *cert)
{
    return time_ms(cert->asn1->tbs->validity->notBefore);
}

int64_t cr_certificate_not_after_ms(const struct cr_certificate *cert)
{
    return time_ms(cert->asn1->tbs->validity->notAfter);
}

void cr_certificate_names(const struct cr_certificate *cert, struct cr_strvec *names)
{
    GENERAL_NAMES *all = extension(cert, NID_subject_alt_name);
    cr_leaf_names_read(all, names);
    GENERAL_NAMES_free(all);
}
