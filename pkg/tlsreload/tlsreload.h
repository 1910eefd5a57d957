/* Hot reload of a TLS server's certificate, key and client CAs for C servers on OpenSSL. The material is given by
 * paths; the folders that lead to them are watched (folder_watch.h), and each consistent change becomes a new SSL_CTX
 * that the next connection gets. Connections that are open, or in the middle of their handshake, keep the context that
 * they began with. There is no interval to tune, and no failure ends the process or takes the old material away.
 *
 *     struct cr_tlsreload *tls = cr_tlsreload_new(&options, &err);       reads once; refuses what cannot be served
 *     cr_tlsreload_start(tls, &err);                                     from here on it follows the files
 *     ... for each connection: SSL *ssl = cr_tlsreload_accept(tls); SSL_set_fd(ssl, fd); SSL_accept(ssl); ...
 *     cr_tlsreload_free(tls);
 *
 * What was refused is tried again for a moment (a certificate and its key may be written one after the other), then
 * reported once; the next change is looked at again. A certificate that has expired, or is not valid yet, is not taken
 * in the place of a valid one; a server that begins with one serves it: see not_after_ms.
 *
 * Sessions are resumed by tickets only. A resumed client is not verified again (RFC 8446, section 2.2), so the keys of
 * tickets live as long as no client CA is dropped; when one is, new ones take their place. Open connections of its
 * clients stay open.
 *
 * Depends on OpenSSL and pkg/base only. Never logs, never ends the process. */
#ifndef CR_TLSRELOAD_TLSRELOAD_H
#define CR_TLSRELOAD_TLSRELOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "tlsreload/event.h"

struct ssl_st;     /* OpenSSL's SSL */
struct ssl_ctx_st; /* OpenSSL's SSL_CTX */

enum cr_tlsreload_clients {
    CR_TLSRELOAD_CLIENTS_NONE,    /* no certificate is asked for */
    CR_TLSRELOAD_CLIENTS_REQUEST, /* who has one must have a good one */
    CR_TLSRELOAD_CLIENTS_REQUIRE,
};

/* Borrowed for cr_tlsreload_new; the strings are copied. */
struct cr_tlsreload_options {
    const char *certificate; /* PEM: the leaf first, its chain behind it */
    const char *private_key; /* PEM, not encrypted */
    const char *client_ca;   /* PEM bundle; NULL with CLIENTS_NONE */
    enum cr_tlsreload_clients clients;
    /* For more than the defaults (TLS 1.2 and 1.3): ALPN, ciphers. Called for every new context before any connection
     * gets it, in the thread that makes it: that of cr_tlsreload_new, later the watcher's. NULL: nothing. */
    void (*configure)(void *arg, struct ssl_ctx_st *context);
    /* Each reload that was done or refused, in the watcher's thread; must not block for long. NULL: not called. */
    void (*on_event)(void *arg, const struct cr_tlsreload_event *event);
    void *arg;
};

struct cr_tlsreload;
/* Blocks while it reads. Relative paths are those of now, wherever the process goes. Errors: those of cr_snapshot_read,
 * and Invalid, in words with the path: the key does not belong to the certificate, is encrypted, is none of RSA (2048
 * to 8192 bits), ECDSA (P-256, P-384, P-521) and Ed25519; a certificate of the chain or of the bundle cannot be read;
 * the options contradict each other. Owned. */
struct cr_tlsreload *cr_tlsreload_new(const struct cr_tlsreload_options *options, struct cr_error *err) CR_MUST_USE;
/* The same with texts in memory, for a server without files of its material: it stays what it is, and
 * cr_tlsreload_start does nothing. No client is asked for a certificate. name: of the material, in errors. All is
 * borrowed for the call. Errors: Invalid. Owned. */
struct cr_tlsreload *cr_tlsreload_new_fixed(const char *name, const char *certificate, const char *private_key,
                                            struct cr_error *err) CR_MUST_USE;
/* Ends the watcher, and waits for it: not from its callbacks. Contexts that were handed out live on for their holders.
 */
void cr_tlsreload_free(struct cr_tlsreload *tls);
CR_DEFINE_CLEANUP(cr_tlsreload, struct cr_tlsreload, cr_tlsreload_free)

/* Starts the one watcher; again, from any thread, or of fixed material, it does nothing and is true. Errors: Transient,
 * no inotify instance or thread was to be had; what was read stays served. */
bool cr_tlsreload_start(struct cr_tlsreload *tls, struct cr_error *err) CR_MUST_USE;

/* The context for a connection that begins now. A reference: give it back with SSL_CTX_free. Never blocks on a reload,
 * which makes its context beside. Any thread. */
struct ssl_ctx_st *cr_tlsreload_context(struct cr_tlsreload *tls);
/* The same as SSL object in accept state; NULL when OpenSSL cannot make one. Owned: SSL_free. Any thread. */
struct ssl_st *cr_tlsreload_accept(struct cr_tlsreload *tls);

enum { CR_TLSRELOAD_PROBLEM = 512 };

/* What is served, and what became of changes so far. */
struct cr_tlsreload_state {
    uint64_t reloads;                   /* that replaced the context */
    uint64_t failures;                  /* refused material */
    bool failing;                       /* what the files hold now is not what is served */
    char leaf[64 + 1];                  /* SHA-256 of the DER of the leaf that is served, lower-case hex */
    int64_t not_after_ms;               /* wall clock */
    int64_t reloaded_ms;                /* wall clock; of the first read at first */
    char problem[CR_TLSRELOAD_PROBLEM]; /* while failing: why; "" */
};
/* Any thread. */
void cr_tlsreload_state(struct cr_tlsreload *tls, struct cr_tlsreload_state *out);

#endif
