#include "net/probe_client.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "net/tls_limits.h"
#include "pki/key_kind.h"

struct cr_probe_client {
    X509 *leaf;
    STACK_OF(X509) * chain;
    EVP_PKEY *key;
};

void cr_probe_client_free(struct cr_probe_client *client)
{
    if (!client)
        return;
    X509_free(client->leaf);
    sk_X509_pop_free(client->chain, X509_free);
    EVP_PKEY_free(client->key);
    free(client);
}

/* No user is there to be asked. */
static int no_passphrase(char *buffer, int size, int writing, void *arg)
{
    (void)buffer;
    (void)size;
    (void)writing;
    (void)arg;
    return -1;
}

/* Only "no start line" is the end of a PEM text: anything else is a broken block. */
static bool at_end(void)
{
    unsigned long error = ERR_peek_last_error();
    ERR_clear_error();
    return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

static bool read_certificates(struct cr_probe_client *client, const void *pem, size_t len, struct cr_error *err)
{
    BIO *bio = BIO_new_mem_buf(pem, (int)len);
    client->leaf = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);
    client->chain = sk_X509_new_null();
    X509 *next = NULL;
    while (client->leaf && sk_X509_num(client->chain) < CR_TLS_CERTIFICATES &&
           (next = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL)))
        sk_X509_push(client->chain, next);
    bool full = sk_X509_num(client->chain) == CR_TLS_CERTIFICATES;
    bool whole = full || at_end();
    BIO_free(bio);
    if (full)
        return cr_error_set(err, CR_ERR_INVALID, "it has more than %d certificates", (int)CR_TLS_CERTIFICATES);
    return client->leaf && whole ? true : cr_error_set(err, CR_ERR_INVALID, "its certificate cannot be read");
}

/* Owned. */
static EVP_PKEY *decode_pkcs8(const unsigned char *der, long len)
{
    const ASN1_OBJECT *algorithm = NULL;
    PKCS8_PRIV_KEY_INFO *info = d2i_PKCS8_PRIV_KEY_INFO(NULL, &der, len);
    bool known = info && PKCS8_pkey_get0(&algorithm, NULL, NULL, NULL, info) && cr_key_kind_signs(algorithm);
    EVP_PKEY *key = known ? EVP_PKCS82PKEY(info) : NULL;
    PKCS8_PRIV_KEY_INFO_free(info);
    return key;
}

/* NULL: it is encrypted, of another kind, or corrupt. */
static EVP_PKEY *decode_key(const char *label, const char *header, const unsigned char *der, long len)
{
    if (*header)
        return NULL;
    if (strcmp(label, PEM_STRING_PKCS8INF) == 0)
        return decode_pkcs8(der, len);
    return d2i_PrivateKey(strcmp(label, PEM_STRING_RSA) == 0 ? EVP_PKEY_RSA : EVP_PKEY_EC, NULL, &der, len);
}

static bool is_private_key(const char *label)
{
    return strcmp(label, PEM_STRING_PKCS8INF) == 0 || strcmp(label, PEM_STRING_RSA) == 0 ||
           strcmp(label, PEM_STRING_ECPRIVATEKEY) == 0;
}

/* The first private key of the text; other blocks are passed over. Owned; NULL: there is none that can be used. */
static EVP_PKEY *find_key(BIO *bio)
{
    char *label = NULL;
    char *header = NULL;
    unsigned char *der = NULL;
    long len = 0;
    EVP_PKEY *key = NULL;
    bool found = false;
    while (!found && PEM_read_bio(bio, &label, &header, &der, &len)) {
        found = is_private_key(label);
        if (found)
            key = decode_key(label, header, der, len);
        OPENSSL_free(label);
        OPENSSL_free(header);
        OPENSSL_clear_free(der, (size_t)len);
    }
    return key;
}

static bool read_key(struct cr_probe_client *client, const void *pem, size_t len, struct cr_error *err)
{
    BIO *bio = BIO_new_mem_buf(pem, (int)len);
    client->key = find_key(bio);
    BIO_free(bio);
    ERR_clear_error();
    if (!client->key)
        return cr_error_set(err, CR_ERR_INVALID,
                            "its key cannot be read, is encrypted, or is none of RSA, ECDSA, EdDSA and ML-DSA");
    char words[CR_TLS_LIMIT_WORDS];
    if (!cr_tls_client_key_fits(client->key, words))
        return cr_error_set(err, CR_ERR_INVALID, "its %s", words);
    bool fits = X509_check_private_key(client->leaf, client->key) == 1;
    ERR_clear_error();
    return fits ? true : cr_error_set(err, CR_ERR_INVALID, "its key is not that of its certificate");
}

struct cr_probe_client *cr_probe_client_new(const void *certificate, size_t certificate_len, const void *key,
                                            size_t key_len, struct cr_error *err)
{
    CR_CLEANUP(cr_probe_client) struct cr_probe_client *client = cr_new(struct cr_probe_client);
    if (!certificate_len || !key_len) {
        cr_error_set(err, CR_ERR_INVALID, "it has no certificate and key");
        return NULL;
    }
    if (certificate_len > CR_TLS_CLIENT_BYTES || key_len > CR_TLS_CLIENT_KEY_BYTES) {
        cr_error_set(err, CR_ERR_INVALID, "it is too large: a client's certificates may take 64 KiB, its key 16 KiB");
        return NULL;
    }
    ERR_clear_error();
    return read_certificates(client, certificate, certificate_len, err) && read_key(client, key, key_len, err)
               ? cr_steal(&client)
               : NULL;
}

bool cr_probe_client_use(const struct cr_probe_client *client, SSL *ssl)
{
    bool used = SSL_use_cert_and_key(ssl, client->leaf, client->key, client->chain, 1) == 1;
    ERR_clear_error();
    return used;
}

/* --- a stranger --- */

void cr_probe_strangers_dispose(struct cr_probe_strangers *strangers)
{
    for (size_t i = 0; i < cr_array_len(strangers->keys); i++)
        EVP_PKEY_free(strangers->keys[i]);
    *strangers = (struct cr_probe_strangers){0};
}

static EVP_PKEY *new_key(enum cr_probe_stranger_kind kind)
{
    if (kind == CR_STRANGER_RSA)
        return EVP_RSA_gen(2048);
    if (kind == CR_STRANGER_ED25519)
        return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    return EVP_EC_gen(kind == CR_STRANGER_P384 ? "P-384" : "P-256");
}

static EVP_PKEY *key_of(struct cr_probe_strangers *strangers, enum cr_probe_stranger_kind kind)
{
    if (!strangers->keys[kind]) {
        strangers->keys[kind] = new_key(kind);
        strangers->made++;
    }
    return strangers->keys[kind];
}

/* A key of the type that signed the certificate: a server may not take others. Borrowed. */
static EVP_PKEY *ca_key(const X509 *like, struct cr_probe_strangers *strangers, const EVP_MD **digest)
{
    int hash = NID_undef;
    int type = NID_undef;
    if (!OBJ_find_sigid_algs(X509_get_signature_nid(like), &hash, &type))
        return NULL;
    *digest = hash == NID_undef ? NULL : EVP_get_digestbynid(hash);
    if (type == NID_rsaEncryption)
        return key_of(strangers, CR_STRANGER_RSA);
    if (type == NID_X9_62_id_ecPublicKey)
        return key_of(strangers, hash == NID_sha384 ? CR_STRANGER_P384 : CR_STRANGER_P256);
    return type == NID_ED25519 ? key_of(strangers, CR_STRANGER_ED25519) : NULL;
}

/* A name and an identifier that no CA has. */
static bool set_issuer(X509 *cert)
{
    unsigned char id[16];
    char text[2 * sizeof id + 1] = {0};
    if (RAND_bytes(id, sizeof id) != 1)
        return false;
    for (size_t i = 0; i < sizeof id; i++)
        snprintf(text + 2 * i, 3, "%02x", id[i]);
    X509_NAME *name = X509_NAME_new();
    AUTHORITY_KEYID *key_id = AUTHORITY_KEYID_new();
    key_id->keyid = ASN1_OCTET_STRING_new();
    bool done = ASN1_OCTET_STRING_set(key_id->keyid, id, sizeof id) == 1 &&
                X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)text, -1, -1, 0) == 1 &&
                X509_set_issuer_name(cert, name) == 1 &&
                X509_add1_ext_i2d(cert, NID_authority_key_identifier, key_id, 0, X509V3_ADD_REPLACE) == 1;
    AUTHORITY_KEYID_free(key_id);
    X509_NAME_free(name);
    return done;
}

struct cr_probe_client *cr_probe_client_stranger(const struct cr_probe_client *like,
                                                 struct cr_probe_strangers *strangers)
{
    const EVP_MD *digest = NULL;
    CR_CLEANUP(cr_probe_client) struct cr_probe_client *stranger = cr_new(struct cr_probe_client);
    ERR_clear_error();
    stranger->leaf = X509_dup(like->leaf);
    stranger->key = EVP_PKEY_up_ref(like->key) == 1 ? like->key : NULL;
    EVP_PKEY *ca = ca_key(like->leaf, strangers, &digest);
    bool made =
        stranger->leaf && stranger->key && ca && set_issuer(stranger->leaf) && X509_sign(stranger->leaf, ca, digest);
    ERR_clear_error();
    return made ? cr_steal(&stranger) : NULL;
}
