#include "game.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "codec/base64.h"
#include "pki/x509.h"

enum { KEYS = 64, SCALAR = 32, DAY_S = 24 * 3600 };
static const int64_t first_day_s = 1893456000; /* 2030-01-01T00:00:00Z */

struct key {
    EVP_PKEY *pkey;
    BIGNUM *scalar;
    char *pem;
};

static struct key keys[KEYS];
static struct game_cert certs[GAME_CERTS_MAX];
static size_t certs_len;

void game_fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: %s failed\n", file, line, what);
    exit(2);
}

int64_t game_day_ms(int day)
{
    return (first_day_s + (int64_t)day * DAY_S) * 1000;
}

/* --- keys and signatures that are the same in each run --- */

static const EC_GROUP *group(void)
{
    static EC_GROUP *p256;
    if (!p256)
        p256 = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    game_must(p256);
    return p256;
}

/* A number below the order, of these bytes. */
static BIGNUM *scalar_of(const void *bytes, size_t len)
{
    unsigned char digest[SCALAR];
    game_must(EVP_Digest(bytes, len, digest, NULL, EVP_sha256(), NULL));
    digest[0] &= 0x7f;
    BIGNUM *scalar = BN_bin2bn(digest, sizeof digest, NULL);
    game_must(scalar && !BN_is_zero(scalar));
    return scalar;
}

static EVP_PKEY *pkey_of(const BIGNUM *scalar)
{
    unsigned char public[2 * SCALAR + 1];
    EVP_PKEY *pkey = NULL;
    EC_POINT *point = EC_POINT_new(group());
    game_must(EC_POINT_mul(group(), point, scalar, NULL, NULL, NULL) &&
              EC_POINT_point2oct(group(), point, POINT_CONVERSION_UNCOMPRESSED, public, sizeof public, NULL));
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    game_must(OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) &&
              OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, public, sizeof public) &&
              OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_PRIV_KEY, scalar));
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(build);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    game_must(EVP_PKEY_fromdata_init(context) == 1 && EVP_PKEY_fromdata(context, &pkey, EVP_PKEY_KEYPAIR, params) == 1);
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(build);
    EC_POINT_free(point);
    return pkey;
}

static char *text_of(BIO *bio)
{
    char *data = NULL;
    long len = BIO_get_mem_data(bio, &data);
    char *text = cr_strndup(data, (size_t)len);
    BIO_free(bio);
    return text;
}

static struct key *key_of(int number)
{
    game_must(number >= 0 && number < KEYS);
    struct key *key = &keys[number];
    if (key->pkey)
        return key;
    char seed[32];
    int len = snprintf(seed, sizeof seed, "key %d", number);
    key->scalar = scalar_of(seed, (size_t)len);
    key->pkey = pkey_of(key->scalar);
    BIO *bio = BIO_new(BIO_s_mem());
    game_must(PEM_write_bio_PKCS8PrivateKey(bio, key->pkey, NULL, NULL, 0, NULL, NULL));
    key->pem = text_of(bio);
    return key;
}

const char *game_key_pem(int key)
{
    return key_of(key)->pem;
}

/* FIPS 186-4, section 6.4, with a number per message that comes from the message and the key, not from chance. */
static ECDSA_SIG *sign_digest(const struct key *key, const unsigned char digest[SCALAR])
{
    unsigned char seed[2 * SCALAR];
    BN_CTX *context = BN_CTX_new();
    const BIGNUM *order = EC_GROUP_get0_order(group());
    memcpy(seed, digest, SCALAR);
    game_must(BN_bn2binpad(key->scalar, seed + SCALAR, SCALAR) == SCALAR);
    BIGNUM *k = scalar_of(seed, sizeof seed);
    BIGNUM *r = BN_new();
    BIGNUM *s = BN_new();
    BIGNUM *z = BN_bin2bn(digest, SCALAR, NULL);
    EC_POINT *point = EC_POINT_new(group());
    game_must(EC_POINT_mul(group(), point, k, NULL, NULL, context) &&
              EC_POINT_get_affine_coordinates(group(), point, r, NULL, context) && BN_nnmod(r, r, order, context) &&
              BN_mod_mul(s, r, key->scalar, order, context) && BN_mod_add(s, s, z, order, context) &&
              BN_mod_inverse(k, k, order, context) && BN_mod_mul(s, s, k, order, context));
    ECDSA_SIG *signature = ECDSA_SIG_new();
    game_must(signature && ECDSA_SIG_set0(signature, r, s));
    EC_POINT_free(point);
    BN_free(k);
    BN_free(z);
    BN_CTX_free(context);
    return signature;
}

/* X509_sign first, for the fields that it sets; the signature itself is then replaced. */
static void sign(X509 *cert, const struct key *key)
{
    unsigned char *signed_part = NULL;
    unsigned char *der = NULL;
    unsigned char digest[SCALAR];
    const ASN1_BIT_STRING *place = NULL;
    game_must(X509_sign(cert, key->pkey, EVP_sha256()));
    int len = i2d_re_X509_tbs(cert, &signed_part);
    game_must(len > 0 && EVP_Digest(signed_part, (size_t)len, digest, NULL, EVP_sha256(), NULL));
    ECDSA_SIG *signature = sign_digest(key, digest);
    int der_len = i2d_ECDSA_SIG(signature, &der);
    X509_get0_signature(&place, NULL, cert);
    game_must(der_len > 0 && ASN1_STRING_set((ASN1_STRING *)(uintptr_t)place, der, der_len));
    ECDSA_SIG_free(signature);
    OPENSSL_free(der);
    OPENSSL_free(signed_part);
}

/* --- certificates --- */

struct spec {
    char subject[GAME_NAME], issuer[GAME_NAME], kind[GAME_NAME];
    int key, issuer_key, from, until, ski, aki;
};

static void add_extension(X509 *cert, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, cert, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    game_must(extension && X509_add_ext(cert, extension, -1));
    X509_EXTENSION_free(extension);
}

static ASN1_OCTET_STRING *identifier_of(int key)
{
    unsigned char digest[SCALAR];
    ASN1_OCTET_STRING *made = ASN1_OCTET_STRING_new();
    const char *pem = game_key_pem(key);
    game_must(EVP_Digest(pem, strlen(pem), digest, NULL, EVP_sha256(), NULL) &&
              ASN1_OCTET_STRING_set(made, digest, 20));
    return made;
}

static void add_identifiers(X509 *cert, const struct spec *spec)
{
    if (spec->ski) {
        ASN1_OCTET_STRING *own = identifier_of(spec->key);
        game_must(X509_add1_ext_i2d(cert, NID_subject_key_identifier, own, 0, X509V3_ADD_DEFAULT) == 1);
        ASN1_OCTET_STRING_free(own);
    }
    if (spec->aki) {
        AUTHORITY_KEYID *above = AUTHORITY_KEYID_new();
        above->keyid = identifier_of(spec->issuer_key);
        game_must(X509_add1_ext_i2d(cert, NID_authority_key_identifier, above, 0, X509V3_ADD_DEFAULT) == 1);
        AUTHORITY_KEYID_free(above);
    }
}

static void set_name(X509_NAME *name, const char *cn)
{
    game_must(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)cn, -1, -1, 0));
}

static void set_fields(X509 *cert, const struct spec *spec, uint64_t serial)
{
    game_must(X509_set_version(cert, X509_VERSION_3) && ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), serial));
    set_name(X509_get_subject_name(cert), spec->subject);
    X509_NAME *issuer = X509_NAME_new();
    set_name(issuer, spec->issuer);
    game_must(X509_set_issuer_name(cert, issuer) && X509_set_pubkey(cert, key_of(spec->key)->pkey));
    X509_NAME_free(issuer);
    /* It ends between two steps, never in the very second of one: in that second OpenSSL finds it expired and Go does
     * not, so that no bundle suits both. */
    game_must(ASN1_TIME_set(X509_getm_notBefore(cert), (time_t)(game_day_ms(spec->from) / 1000)) &&
              ASN1_TIME_set(X509_getm_notAfter(cert), (time_t)(game_day_ms(spec->until) / 1000 + DAY_S / 2)));
}

/* Read again: so it is what everybody else gets, with nothing cached that belongs to what was being made. */
static X509 *make(const struct spec *spec, uint64_t serial)
{
    unsigned char *der = NULL;
    bool ca = cr_streq(spec->kind, "ca");
    X509 *made = X509_new();
    game_must(ca || cr_streq(spec->kind, "leaf"));
    set_fields(made, spec, serial);
    add_extension(made, NID_basic_constraints, ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
    add_extension(made, NID_key_usage, ca ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature");
    if (!ca)
        add_extension(made, NID_subject_alt_name, "DNS:web.shop.svc");
    add_identifiers(made, spec);
    sign(made, key_of(spec->issuer_key));
    int len = i2d_X509(made, &der);
    const unsigned char *at = der;
    X509_free(made);
    made = d2i_X509(NULL, &at, len);
    game_must(made);
    OPENSSL_free(der);
    return made;
}

void game_certs_reset(void)
{
    for (size_t i = 0; i < certs_len; i++) {
        X509_free(certs[i].x509);
        free(certs[i].pem);
    }
    certs_len = 0;
}

static const struct game_cert *add(const char *name, X509 *x509, int key)
{
    game_must(x509 && certs_len < GAME_CERTS_MAX && strlen(name) < GAME_NAME);
    struct game_cert *cert = &certs[certs_len++];
    *cert = (struct game_cert){.x509 = x509, .key = key};
    memcpy(cert->name, name, strlen(name) + 1);
    BIO *bio = BIO_new(BIO_s_mem());
    game_must(PEM_write_bio_X509(bio, x509));
    cert->pem = text_of(bio);
    return cert;
}

const struct game_cert *game_cert_make(const char *name, const char *words)
{
    struct spec spec;
    game_must(sscanf(words, "%23s %d %23s %d %d %d %23s %d %d", spec.subject, &spec.key, spec.issuer, &spec.issuer_key,
                     &spec.from, &spec.until, spec.kind, &spec.ski, &spec.aki) == 9);
    return add(name, make(&spec, certs_len + 1), spec.key);
}

void game_cert_load(const char *name, const char *base64)
{
    CR_CLEANUP(cr_buf) struct cr_buf der = {0};
    game_must(cr_base64_decode(base64, strlen(base64), &der, NULL));
    const unsigned char *at = (const unsigned char *)der.data;
    (void)add(name, d2i_X509(NULL, &at, (long)der.len), -1);
}

const struct game_cert *game_cert_find(const char *name)
{
    for (size_t i = 0; i < certs_len; i++)
        if (strcmp(certs[i].name, name) == 0)
            return &certs[i];
    fprintf(stderr, "bundle_driver: there is no certificate %s\n", name);
    exit(2);
}

/* --- texts --- */

char *game_pem_of(const char *names)
{
    struct cr_buf text = {0};
    cr_autofree char *list = cr_strdup(names);
    char *rest = NULL;
    for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
        if (strcmp(name, "-") != 0)
            cr_buf_puts(&text, game_cert_find(name)->pem);
    return cr_buf_steal(&text);
}

void game_names_of(const char *pem, char out[GAME_TEXT])
{
    static const char end[] = "-----END CERTIFICATE-----\n";
    size_t used = 0;
    const char *at = pem ? strstr(pem, "-----BEGIN") : NULL;
    for (; at; at = strstr(at, "-----BEGIN")) {
        size_t i = 0;
        while (i < certs_len && !cr_starts_with(at, certs[i].pem))
            i++;
        game_must(i < certs_len);
        used += (size_t)snprintf(out + used, GAME_TEXT - used, "%s%s", used ? "," : "", certs[i].name);
        game_must(used < GAME_TEXT);
        at = strstr(at, end) + strlen(end);
    }
    if (!used)
        snprintf(out, GAME_TEXT, "-");
}

const char *game_name_of(const char *fingerprint)
{
    char own[CR_SHA256_HEX];
    for (size_t i = 0; i < certs_len; i++) {
        cr_x509_fingerprint(certs[i].x509, own);
        if (cr_streq(own, fingerprint))
            return certs[i].name;
    }
    fprintf(stderr, "bundle_driver: no certificate is %s\n", fingerprint);
    exit(2);
}
