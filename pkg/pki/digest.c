#include "pki/digest.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

static _Noreturn void no_crypto(void)
{
    static const char line[] = "{\"level\":\"fatal\",\"msg\":\"the crypto library computes no SHA-256: is an OpenSSL "
                               "provider missing, or is memory gone?\"}\n";
    ssize_t ignored = write(STDERR_FILENO, line, sizeof line - 1);
    (void)ignored;
    _exit(70);
}

static void to_hex(const unsigned char *digest, char out[CR_SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < 32; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[64] = '\0';
}

void cr_sha256_hex_pieces(const struct cr_sha256_piece *pieces, size_t count, char out[CR_SHA256_HEX])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    if (!ctx || !EVP_DigestInit_ex(ctx, EVP_sha256(), NULL))
        no_crypto();
    for (size_t i = 0; i < count; i++)
        if (pieces[i].len && !EVP_DigestUpdate(ctx, pieces[i].data, pieces[i].len))
            no_crypto();
    if (!EVP_DigestFinal_ex(ctx, digest, NULL))
        no_crypto();
    EVP_MD_CTX_free(ctx);
    to_hex(digest, out);
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
    if (key_len > INT_MAX || !HMAC(EVP_sha256(), key_len ? key : "", (int)key_len, data, len, digest, &size))
        no_crypto();
    to_hex(digest, out);
}
