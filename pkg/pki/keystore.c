#include "pki/keystore.h"

#include <string.h>

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/pkcs12.h>

#include "pki/key.h"
#include "pki/openssl_internal.h"
#include "pki/x509.h"

enum { CERTIFICATES_MAX = 1000, SALT = 16, IV = 16, NAME = 16 /* digits */, LOCAL_KEY_ID = 20 };

/* The JDK's own attribute (PKCS12KeyStore): which entries are trusted, and for what. */
#define TRUSTED_KEY_USAGE "2.16.840.1.113894.746875.1.1"

struct work {
    const struct cr_keystore_secrets *secrets;
    const char *kind;                       /* "keystore", "truststore": they share no salts */
    STACK_OF(X509) * certs;                 /* a leaf first, in a keystore */
    EVP_PKEY *key;                          /* NULL in a truststore */
    unsigned char content[EVP_MAX_MD_SIZE]; /* keyed digest of all certificates that go in */
    struct cr_error *err;
};

static void work_cleanup(struct work *w)
{
    cr_x509_list_free(w->certs);
    EVP_PKEY_free(w->key);
    OPENSSL_cleanse(w->content, sizeof w->content);
}

static void bags_cleanup(STACK_OF(PKCS12_SAFEBAG) * *bags)
{
    sk_PKCS12_SAFEBAG_pop_free(*bags, PKCS12_SAFEBAG_free);
}

static void safes_cleanup(STACK_OF(PKCS7) * *safes)
{
    sk_PKCS7_pop_free(*safes, PKCS7_free);
}

static void key_info_cleanup(PKCS8_PRIV_KEY_INFO **info)
{
    PKCS8_PRIV_KEY_INFO_free(*info);
}

#define OWNED_BAGS     __attribute__((cleanup(bags_cleanup))) STACK_OF(PKCS12_SAFEBAG) *
#define OWNED_SAFES    __attribute__((cleanup(safes_cleanup))) STACK_OF(PKCS7) *
#define OWNED_KEY_INFO __attribute__((cleanup(key_info_cleanup))) PKCS8_PRIV_KEY_INFO *

CR_DEFINE_CLEANUP(pkcs12, PKCS12, PKCS12_free)
CR_DEFINE_CLEANUP(bag, PKCS12_SAFEBAG, PKCS12_SAFEBAG_free)
CR_DEFINE_CLEANUP(safe, PKCS7, PKCS7_free)
CR_DEFINE_CLEANUP(algorithm, X509_ALGOR, X509_ALGOR_free)

static bool fail(struct work *w)
{
    return cr_openssl_fail(w->err, "the PKCS#12 file cannot be made");
}

/* --- secrets and salts --- */

static bool check_secrets(const struct cr_keystore_secrets *secrets, struct cr_error *err)
{
    size_t len = secrets->password ? strlen(secrets->password) : 0;
    if (!len)
        return cr_error_set(err, CR_ERR_INVALID,
                            "the password of a PKCS#12 file is empty: Java opens none without one");
    if (len > CR_KEYSTORE_PASSWORD_MAX)
        return cr_error_set(err, CR_ERR_INVALID, "the password of a PKCS#12 file is longer than %d characters",
                            CR_KEYSTORE_PASSWORD_MAX);
    for (size_t i = 0; i < len; i++)
        if (secrets->password[i] < 0x20 || secrets->password[i] > 0x7E)
            return cr_error_set(err, CR_ERR_INVALID,
                                "the password of a PKCS#12 file must be printable ASCII (does it end with a new "
                                "line?): Java takes no other");
    if (!secrets->seed || secrets->seed_len < CR_KEYSTORE_SEED_MIN)
        return cr_error_set(err, CR_ERR_INVALID, "a PKCS#12 file needs a secret seed of at least %d bytes",
                            CR_KEYSTORE_SEED_MIN);
    return true;
}

/* HMAC over pieces that each state their length, so that no two inputs are the same bytes. */
static bool add_piece(EVP_MAC_CTX *mac, const void *data, size_t len)
{
    unsigned char size[8];
    for (size_t i = 0; i < sizeof size; i++)
        size[i] = (unsigned char)(len >> (8 * i));
    return EVP_MAC_update(mac, size, sizeof size) && EVP_MAC_update(mac, data, len);
}

static EVP_MAC_CTX *begin_mac(const void *key, size_t len)
{
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string("digest", digest, 0), OSSL_PARAM_END};
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *ctx = mac ? EVP_MAC_CTX_new(mac) : NULL;
    EVP_MAC_free(mac);
    if (ctx && EVP_MAC_init(ctx, key, len, params))
        return ctx;
    EVP_MAC_CTX_free(ctx);
    return NULL;
}

static bool add_certificate(EVP_MAC_CTX *mac, X509 *cert)
{
    unsigned char *der = NULL;
    int len = i2d_X509(cert, &der);
    bool added = len > 0 && add_piece(mac, der, (size_t)len);
    OPENSSL_free(der);
    return added;
}

/* The private key is that of the first certificate, and so adds nothing. */
static bool digest_content(struct work *w)
{
    size_t len = 0;
    EVP_MAC_CTX *mac = begin_mac(w->secrets->seed, w->secrets->seed_len);
    bool good = mac && add_piece(mac, w->kind, strlen(w->kind));
    for (int i = 0; good && i < sk_X509_num(w->certs); i++)
        good = add_certificate(mac, sk_X509_value(w->certs, i));
    good = good && EVP_MAC_final(mac, w->content, &len, sizeof w->content);
    EVP_MAC_CTX_free(mac);
    return good ? true : fail(w);
}

/* One for each use. */
static bool derive(struct work *w, const char *use, unsigned char *out, size_t out_len)
{
    unsigned char all[EVP_MAX_MD_SIZE];
    size_t len = 0;
    EVP_MAC_CTX *mac = begin_mac(w->content, 32);
    bool good = mac && add_piece(mac, use, strlen(use)) && EVP_MAC_final(mac, all, &len, sizeof all) && len >= out_len;
    EVP_MAC_CTX_free(mac);
    if (!good)
        return fail(w);
    memcpy(out, all, out_len);
    return true;
}

/* PBES2 as RFC 8018 has it, with a salt and an IV of ours; NULL: err. */
static X509_ALGOR *encryption(struct work *w, const char *salt_use, const char *iv_use)
{
    unsigned char salt[SALT];
    unsigned char iv[IV];
    if (!derive(w, salt_use, salt, sizeof salt) || !derive(w, iv_use, iv, sizeof iv))
        return NULL;
    X509_ALGOR *made =
        PKCS5_pbe2_set_iv(EVP_aes_256_cbc(), CR_KEYSTORE_ITERATIONS, salt, sizeof salt, iv, NID_hmacWithSHA256);
    if (!made)
        fail(w);
    return made;
}

/* --- bags --- */

static bool push_bag(STACK_OF(PKCS12_SAFEBAG) * bags, PKCS12_SAFEBAG **bag)
{
    if (!bags || !*bag || sk_PKCS12_SAFEBAG_push(bags, *bag) <= 0)
        return false;
    (void)cr_steal(bag);
    return true;
}

/* Which certificate is the key's: any octets that are the same (RFC 2985, section 5.5.2). */
static bool mark_pair(const struct work *w, PKCS12_SAFEBAG *bag)
{
    unsigned char id[EVP_MAX_MD_SIZE];
    unsigned int len = 0;
    return X509_digest(sk_X509_value(w->certs, 0), EVP_sha256(), id, &len) &&
           PKCS12_add_localkeyid(bag, id, LOCAL_KEY_ID);
}

static bool mark_trusted(PKCS12_SAFEBAG *bag, X509 *ca)
{
    char name[CR_SHA256_HEX];
    cr_x509_fingerprint(ca, name);
    /* The length of -1 makes OpenSSL take an object for what it is. */
    return PKCS12_add_friendlyname_asc(bag, name, NAME) &&
           PKCS12_add1_attr_by_txt(bag, TRUSTED_KEY_USAGE, V_ASN1_OBJECT,
                                   (const unsigned char *)OBJ_nid2obj(NID_anyExtendedKeyUsage), -1);
}

static bool add_certificate_bag(struct work *w, STACK_OF(PKCS12_SAFEBAG) * bags, int at)
{
    X509 *cert = sk_X509_value(w->certs, at);
    CR_CLEANUP(bag) PKCS12_SAFEBAG *bag = PKCS12_SAFEBAG_create_cert(cert);
    bool marked = bag && (!w->key ? mark_trusted(bag, cert) : at > 0 || mark_pair(w, bag));
    return (marked && push_bag(bags, &bag)) || fail(w);
}

static bool add_key_bag(struct work *w, STACK_OF(PKCS12_SAFEBAG) * bags)
{
    const char *password = w->secrets->password;
    CR_CLEANUP(algorithm) X509_ALGOR *pbe = encryption(w, "key salt", "key iv");
    if (!pbe)
        return false;
    OWNED_KEY_INFO info = EVP_PKEY2PKCS8(w->key);
    X509_SIG *shrouded = info ? PKCS8_set0_pbe(password, (int)strlen(password), info, pbe) : NULL;
    if (!shrouded)
        return fail(w);
    (void)cr_steal(&pbe);
    CR_CLEANUP(bag) PKCS12_SAFEBAG *bag = PKCS12_SAFEBAG_create0_pkcs8(shrouded);
    if (!bag)
        X509_SIG_free(shrouded);
    return (bag && mark_pair(w, bag) && push_bag(bags, &bag)) || fail(w);
}

/* --- safes --- */

static bool push_safe(STACK_OF(PKCS7) * safes, PKCS7 **safe)
{
    if (!safes || !*safe || sk_PKCS7_push(safes, *safe) <= 0)
        return false;
    (void)cr_steal(safe);
    return true;
}

/* PKCS12_pack_p7encdata() takes a salt, but an IV of its own choice. */
static PKCS7 *encrypt_bags(struct work *w, STACK_OF(PKCS12_SAFEBAG) * bags)
{
    const char *password = w->secrets->password;
    CR_CLEANUP(safe) PKCS7 *safe = PKCS7_new();
    X509_ALGOR *pbe = encryption(w, "certificates salt", "certificates iv");
    if (!safe || !pbe || !PKCS7_set_type(safe, NID_pkcs7_encrypted)) {
        X509_ALGOR_free(pbe);
        return NULL;
    }
    PKCS7_ENC_CONTENT *content = safe->d.encrypted->enc_data;
    X509_ALGOR_free(content->algorithm);
    content->algorithm = pbe;
    ASN1_OCTET_STRING_free(content->enc_data);
    content->enc_data =
        PKCS12_item_i2d_encrypt(pbe, ASN1_ITEM_rptr(PKCS12_SAFEBAGS), password, (int)strlen(password), bags, 1);
    return content->enc_data ? cr_steal(&safe) : NULL;
}

static bool add_certificates(struct work *w, STACK_OF(PKCS7) * safes)
{
    OWNED_BAGS bags = sk_PKCS12_SAFEBAG_new_null();
    for (int i = 0; i < sk_X509_num(w->certs); i++)
        if (!add_certificate_bag(w, bags, i))
            return false;
    CR_CLEANUP(safe) PKCS7 *safe = bags ? encrypt_bags(w, bags) : NULL;
    return push_safe(safes, &safe) || fail(w);
}

static bool add_key(struct work *w, STACK_OF(PKCS7) * safes)
{
    OWNED_BAGS bags = sk_PKCS12_SAFEBAG_new_null();
    if (!add_key_bag(w, bags))
        return false;
    CR_CLEANUP(safe) PKCS7 *safe = PKCS12_pack_p7data(bags);
    return push_safe(safes, &safe) || fail(w);
}

static bool seal(struct work *w, PKCS12 *file)
{
    unsigned char salt[SALT];
    const char *password = w->secrets->password;
    return derive(w, "mac salt", salt, sizeof salt) &&
           (PKCS12_set_mac(file, password, (int)strlen(password), salt, sizeof salt, CR_KEYSTORE_ITERATIONS,
                           EVP_sha256()) ||
            fail(w));
}

static bool write_file(struct work *w, struct cr_buf *out)
{
    if (!digest_content(w))
        return false;
    OWNED_SAFES safes = sk_PKCS7_new_null();
    if (!add_certificates(w, safes) || (w->key && !add_key(w, safes)))
        return false;
    CR_CLEANUP(pkcs12) PKCS12 *file = PKCS12_add_safes(safes, 0);
    if (!file)
        return fail(w);
    if (!seal(w, file))
        return false;
    unsigned char *der = NULL;
    int len = i2d_PKCS12(file, &der);
    out->secret = true;
    bool written = len > 0 && cr_buf_append(out, der, (size_t)len);
    OPENSSL_free(der);
    return written ? true : cr_error_set(w->err, CR_ERR_INVALID, "the PKCS#12 file is too large");
}

/* --- what goes in --- */

static bool is_known(STACK_OF(X509) * certs, const X509 *cert)
{
    for (int i = 0; i < sk_X509_num(certs); i++)
        if (X509_cmp(sk_X509_value(certs, i), cert) == 0)
            return true;
    return false;
}

/* Two entries of one name would be one to Java. */
static bool add_trust(struct work *w, const struct cr_pem_input *trust)
{
    CR_CLEANUP(cr_x509_list) STACK_OF(X509) *read = cr_x509_read(trust, CERTIFICATES_MAX, w->err);
    if (!read)
        return cr_error_wrap(w->err, "the trust");
    for (X509 *ca; (ca = sk_X509_shift(read));) {
        bool known = is_known(w->certs, ca);
        if (!known && sk_X509_push(w->certs, ca) > 0)
            continue;
        X509_free(ca);
        if (!known)
            return fail(w);
    }
    return true;
}

static bool read_pair(struct work *w, const struct cr_pem_input *certificate, const struct cr_pem_input *key)
{
    enum cr_material_problem problem;
    w->certs = cr_x509_read(certificate, CERTIFICATES_MAX, w->err);
    if (!w->certs)
        return cr_error_wrap(w->err, "the certificate");
    w->key = cr_key_read(key, &problem, w->err);
    if (!w->key)
        return cr_error_wrap(w->err, "the private key");
    if (X509_check_private_key(sk_X509_value(w->certs, 0), w->key))
        return true;
    return cr_error_set(w->err, CR_ERR_INVALID, "the private key does not belong to the certificate");
}

bool cr_keystore_write(const struct cr_pem_input *certificate, const struct cr_pem_input *key,
                       const struct cr_pem_input *trust, const struct cr_keystore_secrets *secrets, struct cr_buf *out,
                       struct cr_error *err)
{
    CR_OPENSSL_SCOPE;
    __attribute__((cleanup(work_cleanup))) struct work w = {.secrets = secrets, .kind = "keystore", .err = err};
    return check_secrets(secrets, err) && read_pair(&w, certificate, key) && (!trust->len || add_trust(&w, trust)) &&
           write_file(&w, out);
}

bool cr_truststore_write(const struct cr_pem_input *trust, const struct cr_keystore_secrets *secrets,
                         struct cr_buf *out, struct cr_error *err)
{
    CR_OPENSSL_SCOPE;
    __attribute__((cleanup(work_cleanup))) struct work w = {.secrets = secrets, .kind = "truststore", .err = err};
    if (!check_secrets(secrets, err))
        return false;
    w.certs = sk_X509_new_null();
    return w.certs ? add_trust(&w, trust) && write_file(&w, out) : fail(&w);
}
