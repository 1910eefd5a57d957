#include "pki/digest.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>

#include "base/alloc.h"

static _Noreturn void no_crypto(void)
{
    static const char line[] = "{\"level\":\"fatal\",\"msg\":\"the crypto library computes no SHA-256: is an OpenSSL "
                               "provider missing, or is memory gone?\"}\n";
    ssize_t ignored = write(STDERR_FILENO, line, sizeof line - 1);
    (void)ignored;
    _exit(70);
}

void cr_digest_hex(const unsigned char *digest, char out[CR_SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < 32; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[64] = '\0';
}

/* Fetched once: with EVP_sha256(), OpenSSL 3 looks for an implementation at each use. Kept to the end of the
 * process. */
static const EVP_MD *fetched;

static void fetch_sha256(void)
{
    fetched = EVP_MD_fetch(NULL, "SHA256", NULL);
}

static const EVP_MD *sha256(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fetch_sha256);
    return fetched;
}

void cr_sha256_hex_pieces(const struct cr_sha256_piece *pieces, size_t count, char out[CR_SHA256_HEX])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    if (!ctx || !EVP_DigestInit_ex(ctx, sha256(), NULL))
        no_crypto();
    for (size_t i = 0; i < count; i++)
        if (pieces[i].len && !EVP_DigestUpdate(ctx, pieces[i].data, pieces[i].len))
            no_crypto();
    if (!EVP_DigestFinal_ex(ctx, digest, NULL))
        no_crypto();
    EVP_MD_CTX_free(ctx);
    cr_digest_hex(digest, out);
}

void cr_sha256_hex(const void *data, size_t len, char out[CR_SHA256_HEX])
{
    cr_sha256_hex_pieces(&(struct cr_sha256_piece){data, len}, 1, out);
}

void cr_hmac_sha256_hex(const void *key, size_t key_len, const void *data, size_t len, char out[CR_SHA256_HEX])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    /* HMAC takes a NULL key for "the same as before": an empty one needs an address. */
    if (key_len > INT_MAX || !HMAC(sha256(), key_len ? key : "", (int)key_len, data, len, digest, &size))
        no_crypto();
    cr_digest_hex(digest, out);
}

struct cr_hmac {
    EVP_MAC_CTX *ctx;
};

struct cr_hmac *cr_hmac_new(const void *key, size_t key_len)
{
    struct cr_hmac *hmac = cr_new(struct cr_hmac);
    char name[] = "SHA256";
    const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0), OSSL_PARAM_END};
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    hmac->ctx = mac ? EVP_MAC_CTX_new(mac) : NULL;
    EVP_MAC_free(mac);
    /* A NULL key is none at all, not an empty one. */
    if (!hmac->ctx || !EVP_MAC_init(hmac->ctx, key_len ? key : (const void *)"", key_len, params))
        no_crypto();
    return hmac;
}

void cr_hmac_add(struct cr_hmac *hmac, const void *data, size_t len)
{
    if (len && !EVP_MAC_update(hmac->ctx, data, len))
        no_crypto();
}

void cr_hmac_hex(struct cr_hmac *hmac, char out[CR_SHA256_HEX])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    size_t size = 0;
    if (!EVP_MAC_final(hmac->ctx, digest, &size, sizeof digest))
        no_crypto();
    cr_digest_hex(digest, out);
}

void cr_hmac_free(struct cr_hmac *hmac)
{
    if (!hmac)
        return;
    EVP_MAC_CTX_free(hmac->ctx);
    free(hmac);
}
