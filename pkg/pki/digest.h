/* Digests as this project writes them: lower-case hexadecimal. Thread-safe. */
#ifndef CR_PKI_DIGEST_H
#define CR_PKI_DIGEST_H

#include <stddef.h>

#include "base/cleanup.h"

enum { CR_SHA256_HEX = 64 + 1 };

/* The hex form of a SHA-256 that is there already: 32 bytes. */
void cr_digest_hex(const unsigned char *digest, char out[CR_SHA256_HEX]);

/* SHA-256 of data as 64 hex digits and a NUL. Ends the program when the crypto library fails (no provider). */
void cr_sha256_hex(const void *data, size_t len, char out[CR_SHA256_HEX]);
/* HMAC-SHA-256 (RFC 2104); key may be empty. Ends the program likewise. */
void cr_hmac_sha256_hex(const void *key, size_t key_len, const void *data, size_t len, char out[CR_SHA256_HEX]);

/* The same over what comes in pieces. */
struct cr_hmac;
struct cr_hmac *cr_hmac_new(const void *key, size_t key_len);
void cr_hmac_add(struct cr_hmac *hmac, const void *data, size_t len);
void cr_hmac_hex(struct cr_hmac *hmac, char out[CR_SHA256_HEX]); /* once, last */
void cr_hmac_free(struct cr_hmac *hmac);
CR_DEFINE_CLEANUP(cr_hmac, struct cr_hmac, cr_hmac_free)

/* SHA-256 over pieces that are hashed one after the other, as if they were one. */
struct cr_sha256_piece {
    const void *data;
    size_t len;
};
void cr_sha256_hex_pieces(const struct cr_sha256_piece *pieces, size_t count, char out[CR_SHA256_HEX]);

#endif
