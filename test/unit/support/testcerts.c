#include "support/testcerts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

/* A test without its certificates can say nothing. */
#define must(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s failed\n", __FILE__, __LINE__, #condition);                                     \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

const char test_dsa_key[] = "-----BEGIN PRIVATE KEY-----\n"
                            "MIHeAgEAMIGUBgcqhkjOOAQBMIGIAkEA2A3oOM7n8EIqLkab7n3nMqt3hQ0RYInU\n"
                            "sKcq76aIJTdWsQBTz437Cq0SA81pxls5pkbvguUfaL56C5506CUtJQJACx9SqcIB\n"
                            "/gSVSY7mvivyfJB8nJkna7sSqzYMTaox29QhNuIprZuNDbZyTUDi4Wn+ya/StrUA\n"
                            "/FtqJKDIH7Mr+wIBAgRCAkAZQD8NjWaXDSGKJpqNv5upP0w1cluN24izB4+2aDz6\n"
                            "nx3Rc7IhkoIpi4qhYE3pwhSAIS/bTVY4CqhSB4mYIjtF\n"
                            "-----END PRIVATE KEY-----\n";

/* For PSS signatures only (RFC 4055, section 1.2). */
static EVP_PKEY *new_pss_key(void)
{
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "RSA-PSS", NULL);
    must(context && EVP_PKEY_keygen_init(context) == 1 && EVP_PKEY_generate(context, &key) == 1);
    EVP_PKEY_CTX_free(context);
    return key;
}

/* What signs whole texts, and is made without parameters. */
static bool has_own_hash(const char *type)
{
    return cr_starts_with(type, "ED") || cr_starts_with(type, "ML-DSA-") || cr_starts_with(type, "SLH-DSA-");
}

bool test_has_ml_dsa(void)
{
    EVP_KEYMGMT *kind = EVP_KEYMGMT_fetch(NULL, "ML-DSA-65", NULL);
    EVP_KEYMGMT_free(kind);
    ERR_clear_error();
    return kind;
}

static EVP_PKEY *new_key(const char *type)
{
    EVP_PKEY *key;
    if (strcmp(type, "RSA") == 0)
        key = EVP_RSA_gen(2048);
    else if (strcmp(type, "RSA-1024") == 0)
        key = EVP_RSA_gen(1024);
    else if (strcmp(type, "RSA-PSS") == 0)
        key = new_pss_key();
    else if (has_own_hash(type))
        key = EVP_PKEY_Q_keygen(NULL, NULL, type);
    else
        key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", type);
    must(key);
    return key;
}

static void add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    must(ext && X509_add_ext(cert, ext, -1));
    X509_EXTENSION_free(ext);
}

static void add_alternative_names(X509 *cert, X509 *issuer, const struct test_cert_spec *spec)
{
    CR_CLEANUP(cr_buf) struct cr_buf names = {0};
    for (size_t i = 0; i < cr_array_len(spec->dns) && spec->dns[i]; i++)
        cr_buf_printf(&names, "%sDNS:%s", names.len ? "," : "", spec->dns[i]);
    for (size_t i = 0; i < cr_array_len(spec->ips) && spec->ips[i]; i++)
        cr_buf_printf(&names, "%sIP:%s", names.len ? "," : "", spec->ips[i]);
    if (names.len)
        add_extension(cert, issuer, NID_subject_alt_name, names.data);
}

static void add_extensions(X509 *cert, X509 *issuer, const struct test_cert_spec *spec)
{
    if (!spec->no_constraints)
        add_extension(cert, issuer, NID_basic_constraints, spec->ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
    add_extension(cert, issuer, NID_key_usage, spec->ca ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature");
    if (!spec->ca)
        add_extension(cert, issuer, NID_ext_key_usage, "serverAuth,clientAuth");
    add_alternative_names(cert, issuer, spec);
    if (spec->no_key_ids)
        return;
    add_extension(cert, issuer, NID_subject_key_identifier, "hash");
    if (issuer != cert)
        add_extension(cert, issuer, NID_authority_key_identifier, "keyid");
}

static void set_names(X509 *cert, X509 *issuer, const struct test_cert_spec *spec)
{
    X509_NAME *name = X509_get_subject_name(cert);
    const char *cn = spec->cn ? spec->cn : "test";
    must(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)cn, -1, -1, 0));
    must(X509_set_issuer_name(cert, X509_get_subject_name(issuer)));
}

static void set_times(X509 *cert, const struct test_cert_spec *spec)
{
    int64_t from = spec->from_s ? spec->from_s : -3600;
    int64_t until = spec->until_s ? spec->until_s : 24 * 3600;
    time_t now = time(NULL);
    must(ASN1_TIME_set(X509_getm_notBefore(cert), now + (time_t)from));
    must(ASN1_TIME_set(X509_getm_notAfter(cert), now + (time_t)until));
}

static void set_serial(X509 *cert, const char *text)
{
    BIGNUM *serial = BN_new();
    must(serial && (text ? BN_hex2bn(&serial, text) : BN_rand(serial, 64, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY)));
    must(BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(cert)));
    BN_free(serial);
}

static void sign(X509 *cert, EVP_PKEY *key, bool weak)
{
    const EVP_MD *digest = weak ? EVP_sha1() : EVP_sha256();
    must(X509_sign(cert, key, has_own_hash(EVP_PKEY_get0_type_name(key)) ? NULL : digest));
}

/* OpenSSL decodes extensions when they are first asked for, under locks and atomics of its own that ThreadSanitizer
 * sees in part only. Done here, where one thread has the certificate, and not by whichever connection of a server comes
 * first. A certificate that is wrong on purpose is decoded as far as it can be. */
static void decode(X509 *cert)
{
    (void)X509_check_purpose(cert, -1, 0);
}

static char *bio_text(BIO *bio)
{
    char *data = NULL;
    long len = BIO_get_mem_data(bio, &data);
    char *text = cr_strndup(data, (size_t)len);
    BIO_free(bio);
    return text;
}

static char *cert_pem(X509 *cert)
{
    BIO *bio = BIO_new(BIO_s_mem());
    must(PEM_write_bio_X509(bio, cert));
    return bio_text(bio);
}

EVP_PKEY *test_rsa_public(int bits, int exponent_bits)
{
    EVP_PKEY *key = NULL;
    BIGNUM *n = BN_new();
    BIGNUM *e = BN_new();
    must(BN_rand(n, bits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ODD));
    must(BN_rand(e, exponent_bits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ODD));
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    must(OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n));
    must(OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e));
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
    must(EVP_PKEY_fromdata_init(ctx));
    must(EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params));
    EVP_PKEY_CTX_free(ctx);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(builder);
    BN_free(n);
    BN_free(e);
    return key;
}

struct test_cert *test_cert_new(const struct test_cert_spec *spec)
{
    struct test_cert *made = cr_new(struct test_cert);
    if (spec->key_of) {
        made->key = spec->key_of->key;
        must(EVP_PKEY_up_ref(made->key));
    } else {
        made->key = new_key(spec->key_type ? spec->key_type : "P-256");
    }
    made->x509 = X509_new();
    must(made->x509 && X509_set_version(made->x509, X509_VERSION_3));
    X509 *issuer = spec->issuer ? spec->issuer->x509 : made->x509;
    set_serial(made->x509, spec->serial);
    set_names(made->x509, issuer, spec);
    set_times(made->x509, spec);
    must(X509_set_pubkey(made->x509, made->key));
    add_extensions(made->x509, issuer, spec);
    sign(made->x509, spec->issuer ? spec->issuer->key : made->key, spec->weak_digest);
    decode(made->x509);
    made->cert_pem = cert_pem(made->x509);
    made->key_pem = test_cert_key_as(made, "PKCS#8");
    return made;
}

void test_cert_free(struct test_cert *cert)
{
    if (!cert)
        return;
    X509_free(cert->x509);
    EVP_PKEY_free(cert->key);
    free(cert->cert_pem);
    free(cert->key_pem);
    free(cert);
}

char *test_cert_key_as(const struct test_cert *cert, const char *form)
{
    BIO *bio = BIO_new(BIO_s_mem());
    unsigned char password[] = "secret";
    if (strcmp(form, "PKCS#8") == 0)
        must(PEM_write_bio_PKCS8PrivateKey(bio, cert->key, NULL, NULL, 0, NULL, NULL));
    else if (strcmp(form, "PKCS#8 encrypted") == 0)
        must(PEM_write_bio_PKCS8PrivateKey(bio, cert->key, EVP_aes_256_cbc(), "secret", 6, NULL, NULL));
    else if (strcmp(form, "Proc-Type encrypted") == 0)
        must(PEM_write_bio_PrivateKey_traditional(bio, cert->key, EVP_aes_128_cbc(), password, 6, NULL, NULL));
    else {
        if (strcmp(form, "SEC1 with parameters") == 0)
            must(PEM_write_bio_Parameters(bio, cert->key)); /* as `openssl ecparam -genkey` */
        must(PEM_write_bio_PrivateKey_traditional(bio, cert->key, NULL, NULL, 0, NULL, NULL));
    }
    return bio_text(bio);
}

char *test_concat(const char *first, ...)
{
    struct cr_buf out = {0};
    va_list args;
    va_start(args, first);
    for (const char *text = first; text; text = va_arg(args, const char *))
        cr_buf_puts(&out, text);
    va_end(args);
    return cr_buf_steal(&out);
}

struct test_papers *test_papers_new(void)
{
    struct test_papers *p = cr_new(struct test_papers);
    p->ca = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
    p->other_ca = test_cert_new(&(struct test_cert_spec){.cn = "other ca", .ca = true});
    p->server = test_cert_new(&(struct test_cert_spec){.cn = "s", .ips = {"127.0.0.1"}, .issuer = p->ca});
    p->by_name = test_cert_new(&(struct test_cert_spec){.cn = "n", .dns = {"api.internal"}, .issuer = p->ca});
    p->client_a = test_cert_new(&(struct test_cert_spec){.cn = "client a", .issuer = p->ca});
    p->client_b = test_cert_new(&(struct test_cert_spec){.cn = "client b", .issuer = p->ca, .key_type = "RSA"});
    return p;
}

void test_papers_free(struct test_papers *papers)
{
    if (!papers)
        return;
    test_cert_free(papers->client_b);
    test_cert_free(papers->client_a);
    test_cert_free(papers->by_name);
    test_cert_free(papers->server);
    test_cert_free(papers->other_ca);
    test_cert_free(papers->ca);
    free(papers);
}
