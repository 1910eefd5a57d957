/* What is served from one moment to the next: a context, and what is known of it. Private to pkg/tlsreload. */
#ifndef CR_TLSRELOAD_CONTEXT_INTERNAL_H
#define CR_TLSRELOAD_CONTEXT_INTERNAL_H

#include <openssl/evp.h>
#include <openssl/ssl.h>

#include "base/buffer.h"
#include "tlsreload/tlsreload.h"

enum { CR_TLS_DIGEST = 32, CR_TLS_FILE_MAX = 1024 * 1024 };

CR_DEFINE_CLEANUP(cr_tls_x509, X509, X509_free)
CR_DEFINE_CLEANUP(cr_tls_pkey, EVP_PKEY, EVP_PKEY_free)
CR_DEFINE_CLEANUP(cr_tls_bio, BIO, BIO_free_all)

/* The files' contents at one moment. */
struct cr_tls_texts {
    struct cr_buf certificate, private_key, client_ca; /* the key's is secret */
    unsigned char digest[CR_TLS_DIGEST];               /* over all of it */
};
/* Errors: those of cr_snapshot_read. texts need not be initialised; to be disposed of in any case. */
bool cr_tls_texts_read(const struct cr_tlsreload_options *options, struct cr_tls_texts *texts,
                       struct cr_error *err) CR_MUST_USE;
void cr_tls_texts_dispose(struct cr_tls_texts *texts);
CR_DEFINE_DISPOSE(cr_tls_texts, struct cr_tls_texts, cr_tls_texts_dispose)

/* By what sessions are resumed: the keys of tickets (RFC 5077, RFC 8446 section 4.6.1) and the id that sessions belong
 * to. A resumed client is not verified again, so its CA must still count: contexts share this only as long as no client
 * CA is dropped. */
struct cr_tls_sessions {
    unsigned char id[SSL_MAX_SID_CTX_LENGTH];
    unsigned char ticket_keys[80]; /* as OpenSSL 3 wants them: a name of 16 bytes, two keys of 32 */
};
/* False when there is no randomness. */
bool cr_tls_sessions_renew(struct cr_tls_sessions *sessions, struct cr_error *err) CR_MUST_USE;

struct cr_tls_context {
    SSL_CTX *ssl;
    char leaf[CR_TLS_DIGEST * 2 + 1];
    int64_t not_before_ms, not_after_ms; /* wall clock */
    unsigned char (*cas)[CR_TLS_DIGEST]; /* SHA-256 of the DER of each client CA, in order of digests. Owned */
    size_t cas_len;
    unsigned char digest[CR_TLS_DIGEST]; /* of the texts that it was made of */
};
void cr_tls_context_free(struct cr_tls_context *context);
CR_DEFINE_CLEANUP(cr_tls_context, struct cr_tls_context, cr_tls_context_free)

/* Reads and checks; sessions are not set yet, and configure was not called. Errors: Invalid, with the path. Owned. */
struct cr_tls_context *cr_tls_context_new(const struct cr_tlsreload_options *options, const struct cr_tls_texts *texts,
                                          struct cr_error *err) CR_MUST_USE;
bool cr_tls_context_set_sessions(struct cr_tls_context *context, const struct cr_tls_sessions *sessions,
                                 struct cr_error *err) CR_MUST_USE;
/* Whether each client CA of a is one of b. */
bool cr_tls_context_keeps_cas(const struct cr_tls_context *a, const struct cr_tls_context *b);

/* All certificates of a PEM text, in their order; other blocks are skipped. NULL, with Invalid in words without the
 * path: one is corrupt, cut, or joined to the next without a new line, which OpenSSL would pass over in silence; or
 * there is none. Owned. */
STACK_OF(X509) * cr_tls_chain_read(const struct cr_buf *text, struct cr_error *err) CR_MUST_USE;
/* The private key of a PEM text. Errors: Invalid, without the path. Never prompts. Owned. */
EVP_PKEY *cr_tls_key_read(const struct cr_buf *text, struct cr_error *err) CR_MUST_USE;
/* Whether it is of a type and size that a server should have. Errors: Invalid, in words. */
bool cr_tls_key_check(const EVP_PKEY *key, struct cr_error *err) CR_MUST_USE;

/* "<what>: <OpenSSL's reason>", Invalid. False. */
bool cr_tls_fail(struct cr_error *err, const char *what);

#endif
