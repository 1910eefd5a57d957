#include "net/tls_limits.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/rsa.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "pki/key_kind.h"

#define CIPHERS "ALL:!aNULL:!eNULL:!kDHE:!PSK:!SRP:!aDSS:@SECLEVEL=0"

/* A key share is sent for the first; brainpool (RFC 7027) is of use in TLS 1.2 only. */
#define GROUPS "X25519:P-256:X448:P-521:P-384:brainpoolP256r1:brainpoolP384r1:brainpoolP512r1"

/* Those of TLS 1.3, and RSA with PKCS#1 and SHA-1 for older servers. */
#define SIGNATURES                                                                                                     \
    "ECDSA+SHA256:ECDSA+SHA384:ECDSA+SHA512:ed25519:ed448:rsa_pss_pss_sha256:rsa_pss_pss_sha384:rsa_pss_pss_sha512:"   \
    "rsa_pss_rsae_sha256:rsa_pss_rsae_sha384:rsa_pss_rsae_sha512:RSA+SHA256:RSA+SHA384:RSA+SHA512:ECDSA+SHA224:"       \
    "ECDSA+SHA1:RSA+SHA224:RSA+SHA1"

/* Behind them, where OpenSSL has it (3.5): draft-ietf-tls-mldsa. */
#define ML_DSA ":mldsa65:mldsa44:mldsa87"

/* As OpenSSL calls them (RFC 5480, RFC 5639). */
static const char *const curves[] = {"prime256v1",      "secp384r1",       "secp521r1",
                                     "brainpoolP256r1", "brainpoolP384r1", "brainpoolP512r1"};

bool cr_tls_limit_context(SSL_CTX *ctx)
{
    SSL_CTX_set_security_level(ctx, 0);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
#ifdef SSL_OP_NO_RX_CERTIFICATE_COMPRESSION
    SSL_CTX_set_options(ctx, SSL_OP_NO_RX_CERTIFICATE_COMPRESSION | SSL_OP_NO_TX_CERTIFICATE_COMPRESSION);
#endif
    SSL_CTX_set_max_cert_list(ctx, CR_TLS_MESSAGE_BYTES);
    return SSL_CTX_set_cipher_list(ctx, CIPHERS) == 1 && SSL_CTX_set1_groups_list(ctx, GROUPS) == 1 &&
           SSL_CTX_set1_sigalgs_list(ctx, OPENSSL_VERSION_PREREQ(3, 5) ? SIGNATURES ML_DSA : SIGNATURES) == 1;
}

/* --- keys --- */

static bool refuse(char words[CR_TLS_LIMIT_WORDS], const char *fmt, ...) CR_PRINTF(2, 3);
static bool refuse(char words[CR_TLS_LIMIT_WORDS], const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(words, CR_TLS_LIMIT_WORDS, fmt, args);
    va_end(args);
    ERR_clear_error();
    return false;
}

/* -1: there is none. */
static int bits_of(const EVP_PKEY *key, const char *number)
{
    BIGNUM *found = NULL;
    int bits = EVP_PKEY_get_bn_param(key, number, &found) == 1 ? BN_num_bits(found) : -1;
    BN_clear_free(found);
    ERR_clear_error();
    return bits;
}

static bool rsa_fits(const EVP_PKEY *key, int max, char words[CR_TLS_LIMIT_WORDS])
{
    int bits = EVP_PKEY_get_bits(key);
    int exponent = bits_of(key, OSSL_PKEY_PARAM_RSA_E);
    if (bits > max)
        return refuse(words, "RSA key has %d bits, at most %d are taken", bits, max);
    if (exponent < 0 || exponent > CR_TLS_RSA_EXPONENT_BITS)
        return refuse(words, "RSA key's public exponent has %d bits, at most %d are taken", exponent,
                      (int)CR_TLS_RSA_EXPONENT_BITS);
    return true;
}

static bool is_explicit(const EVP_PKEY *key)
{
    int explicit = 0;
    bool known = EVP_PKEY_get_int_param(key, OSSL_PKEY_PARAM_EC_DECODED_FROM_EXPLICIT_PARAMS, &explicit) == 1;
    ERR_clear_error();
    return known && explicit != 0;
}

static bool curve_fits(const EVP_PKEY *key, char words[CR_TLS_LIMIT_WORDS])
{
    char name[64] = "";
    if (is_explicit(key) || EVP_PKEY_get_group_name(key, name, sizeof name, NULL) != 1)
        return refuse(words, "key's curve is given by explicit parameters, only named curves are taken");
    for (size_t i = 0; i < cr_array_len(curves); i++)
        if (cr_streq(name, curves[i]))
            return true;
    return refuse(words, "key is on curve %.32s, which is not one of P-256, P-384, P-521 and brainpool r1", name);
}

static bool key_fits(const EVP_PKEY *key, int rsa_max, char words[CR_TLS_LIMIT_WORDS])
{
    if (key && cr_key_is_ml_dsa(key))
        return true;
    switch (key ? EVP_PKEY_get_base_id(key) : EVP_PKEY_NONE) {
    case EVP_PKEY_RSA:
    case EVP_PKEY_RSA_PSS:
        return rsa_fits(key, rsa_max, words);
    case EVP_PKEY_EC:
        return curve_fits(key, words);
    case EVP_PKEY_ED25519:
    case EVP_PKEY_ED448:
        return true;
    default:
        return refuse(words, "key cannot be read, or is none of RSA, ECDSA, EdDSA and ML-DSA");
    }
}

bool cr_tls_leaf_key_fits(const EVP_PKEY *key, char words[CR_TLS_LIMIT_WORDS])
{
    return key_fits(key, CR_TLS_LEAF_RSA_BITS, words);
}

/* What a signature raises to which power: OpenSSL takes the numbers as they are, and falls back to the private exponent
 * when the factors do not lead to a signature. */
static bool secret_numbers_fit(const EVP_PKEY *key, char words[CR_TLS_LIMIT_WORDS])
{
    enum { UNEVEN = 8 /* bits that one factor may have more than the other half */ };
    static const char *const halves[] = {OSSL_PKEY_PARAM_RSA_FACTOR1, OSSL_PKEY_PARAM_RSA_FACTOR2,
                                         OSSL_PKEY_PARAM_RSA_EXPONENT1, OSSL_PKEY_PARAM_RSA_EXPONENT2,
                                         OSSL_PKEY_PARAM_RSA_COEFFICIENT1};
    int bits = EVP_PKEY_get_bits(key);
    if (bits_of(key, OSSL_PKEY_PARAM_RSA_D) > bits)
        return refuse(words, "RSA key's private exponent has more bits than its modulus");
    for (size_t i = 0; i < cr_array_len(halves); i++) {
        int has = bits_of(key, halves[i]);
        if (has <= 0 || has > bits / 2 + UNEVEN)
            return refuse(words, "RSA key has no prime factors of half its length");
    }
    return true;
}

bool cr_tls_client_key_fits(const EVP_PKEY *key, char words[CR_TLS_LIMIT_WORDS])
{
    if (!key_fits(key, CR_TLS_CLIENT_RSA_BITS, words))
        return false;
    int type = EVP_PKEY_get_base_id(key);
    return (type != EVP_PKEY_RSA && type != EVP_PKEY_RSA_PSS) || secret_numbers_fit(key, words);
}
