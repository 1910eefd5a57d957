/* What a TLS handshake with a peer that may be hostile may cost us: key exchanges, signatures, keys and bytes. For
 * clients: code that probes pods or asks a server that is not verified. The figures of one operation (OpenSSL 3.0, one
 * core) are in docs/decisions.md, "Probes".
 *
 * - No finite-field Diffie-Hellman: in TLS 1.2 the server chooses the prime, of up to 10,000 bits (0.9 s a handshake),
 *   and RFC 9325, section 4.1, advises against it. What is left are ECDHE and RSA key exchange, and the elliptic groups
 *   of TLS 1.3. No PSK, SRP or DSA either: a probe has no shared secret, and a DSA key has parameters of its own.
 * - Named curves only (RFC 5480, section 2.1.1, forbids explicit parameters); none over binary fields (RFC 8422 has
 *   withdrawn them).
 * - No renegotiation, no compression of records or certificates. OpenSSL takes one HelloRetryRequest. */
#ifndef CR_NET_TLS_LIMITS_H
#define CR_NET_TLS_LIMITS_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum {
    CR_TLS_LEAF_RSA_BITS = 8192,         /* of a server's key: a verification each */
    CR_TLS_CLIENT_RSA_BITS = 4096,       /* of our client's key: a signature each, sixty times dearer */
    CR_TLS_RSA_EXPONENT_BITS = 64,       /* of the public exponent; others have 65537 */
    CR_TLS_MESSAGE_BYTES = 64 * 1024,    /* a Certificate or CertificateRequest message */
    CR_TLS_CERTIFICATES = 32,            /* of one chain */
    CR_TLS_BYTES = 256 * 1024,           /* all that is read of one connection */
    CR_TLS_CLIENT_BYTES = 64 * 1024,     /* a client's certificates, as PEM */
    CR_TLS_CLIENT_KEY_BYTES = 16 * 1024, /* its key, as PEM */
    CR_TLS_LIMIT_WORDS = 120,
};

/* Groups, ciphers, signature algorithms, message sizes; all of them without a certificate's verification, and at
 * security level 0: a key that is too short is still one that is served. False when OpenSSL does not know them. */
bool cr_tls_limit_context(SSL_CTX *ctx) CR_MUST_USE;

/* Whether a signature of this key may be verified. words: what is over which limit, for "its …" ("RSA key has 16384
 * bits, at most 8192 are taken"); unset when true. NULL is a key that OpenSSL cannot read. */
bool cr_tls_leaf_key_fits(const EVP_PKEY *key, char words[CR_TLS_LIMIT_WORDS]) CR_MUST_USE;
/* Whether signatures may be made with this private key: the secret numbers are bounded, too. */
bool cr_tls_client_key_fits(const EVP_PKEY *key, char words[CR_TLS_LIMIT_WORDS]) CR_MUST_USE;

#endif
