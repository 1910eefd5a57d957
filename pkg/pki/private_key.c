#include "pki/private_key_internal.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "pki/key.h"
#include "pki/key_kind.h"

enum { RSA_BITS_LEAST = 2048, RSA_BITS_MOST = 8192 /* more, and a handshake takes seconds */ };

static struct cr_private_key *wrap(EVP_PKEY *pkey)
{
    struct cr_private_key *key = cr_new(struct cr_private_key);
    key->pkey = pkey;
    return key;
}

void cr_private_key_free(struct cr_private_key *key)
{
    if (!key)
        return;
    EVP_PKEY_free(key->pkey);
    free(key);
}

/* --- new --- */

static EVP_PKEY *generate_rsa(int size, struct cr_error *err)
{
    if (size == 0 || size == 2048 || size == 3072 || size == 4096)
        return EVP_RSA_gen(size ? (unsigned)size : 2048U);
    cr_error_set(err, CR_ERR_INVALID, "an RSA key has 2048, 3072 or 4096 bits here, not %d", size);
    return NULL;
}

static EVP_PKEY *generate_ecdsa(int size, struct cr_error *err)
{
    if (size == 0 || size == 256)
        return EVP_EC_gen("P-256");
    if (size == 384)
        return EVP_EC_gen("P-384");
    cr_error_set(err, CR_ERR_INVALID, "an ECDSA key has 256 or 384 bits here, not %d", size);
    return NULL;
}

static EVP_PKEY *generate_ed25519(int size, struct cr_error *err)
{
    if (size == 0 || size == 256)
        return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    cr_error_set(err, CR_ERR_INVALID, "an Ed25519 key has 256 bits, not %d", size);
    return NULL;
}

struct cr_private_key *cr_private_key_new(const struct cr_key_spec *spec, struct cr_error *err)
{
    static EVP_PKEY *(*const generators[])(int, struct cr_error *) = {
        [CR_KEY_ECDSA] = generate_ecdsa, [CR_KEY_RSA] = generate_rsa, [CR_KEY_ED25519] = generate_ed25519};
    CR_OPENSSL_SCOPE;
    struct cr_error own = {0};
    if ((size_t)spec->algorithm >= cr_array_len(generators)) {
        cr_error_set(err, CR_ERR_INVALID, "unknown algorithm of a key");
        return NULL;
    }
    EVP_PKEY *pkey = generators[spec->algorithm](spec->size, &own);
    if (pkey)
        return wrap(pkey);
    if (own.kind == CR_ERR_NONE)
        cr_openssl_fail(&own, "no key can be made");
    if (err)
        *err = own;
    return NULL;
}

/* --- read and checked --- */

static bool check_rsa(const EVP_PKEY *key, struct cr_error *err)
{
    int bits = EVP_PKEY_get_bits(key);
    if (bits < RSA_BITS_LEAST)
        return cr_error_set(err, CR_ERR_INVALID, "an RSA key of %d bits is too weak: use 2048 or more", bits);
    if (bits > RSA_BITS_MOST)
        return cr_error_set(err, CR_ERR_INVALID, "an RSA key of %d bits is too slow to use: 4096 are enough", bits);
    return true;
}

bool cr_key_check(const EVP_PKEY *key, struct cr_error *err)
{
    static const char *const good[] = {"ECDSA-P256", "ECDSA-P384", "ECDSA-P521", "Ed25519"};
    char type[CR_KEY_TYPE];
    if (EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA)
        return check_rsa(key, err);
    if (cr_key_is_ml_dsa(key))
        return true;
    cr_key_type(key, type);
    for (size_t i = 0; i < cr_array_len(good); i++)
        if (strcmp(type, good[i]) == 0)
            return true;
    return cr_error_set(err, CR_ERR_INVALID, "few TLS peers take a key of type %s: use RSA, ECDSA on P-256 or Ed25519",
                        type);
}

struct cr_private_key *cr_private_key_read(const struct cr_pem_input *in, struct cr_error *err)
{
    CR_OPENSSL_SCOPE;
    enum cr_material_problem problem;
    CR_CLEANUP(cr_pkey) EVP_PKEY *pkey = cr_key_read(in, &problem, err);
    if (!pkey || !cr_key_check(pkey, err))
        return NULL;
    return wrap(cr_steal(&pkey));
}

/* --- written --- */

/* A memory BIO wipes what it held when it is freed or grows, and so does OpenSSL what it encodes on the way. */
bool cr_private_key_write(const struct cr_private_key *key, struct cr_buf *pem, struct cr_error *err)
{
    CR_OPENSSL_SCOPE;
    CR_CLEANUP(cr_bio) BIO *bio = BIO_new(BIO_s_mem());
    char *text = NULL;
    pem->secret = true;
    if (!bio || !PEM_write_bio_PKCS8PrivateKey(bio, key->pkey, NULL, NULL, 0, NULL, NULL))
        return cr_openssl_fail(err, "the private key cannot be written");
    long len = BIO_get_mem_data(bio, &text);
    if (!cr_buf_append(pem, text, (size_t)len))
        return cr_error_set(err, CR_ERR_INVALID, "there is no room for the private key");
    return true;
}
