/* Both ends of a TLS connection in one thread: whole handshakes of whatever serves, as its clients see them. */
#ifndef TEST_SUPPORT_TLSENDS_H
#define TEST_SUPPORT_TLSENDS_H

#include <stdbool.h>

#include "support/testcerts.h"
#include "base/cleanup.h"

struct ssl_st;         /* OpenSSL's SSL */
struct ssl_session_st; /* OpenSSL's SSL_SESSION */

/* A client; all zero is one without a certificate that takes any version and server. */
struct tls_caller {
    int version; /* TLS1_2_VERSION, TLS1_3_VERSION; 0: any */
    const struct test_cert *cert;
    bool no_tickets;                /* TLS 1.2 with session ids */
    struct ssl_session_st *session; /* the one to resume, then the one that it was given. Owned */
};
void tls_caller_dispose(struct tls_caller *caller);
CR_DEFINE_DISPOSE(tls_caller, struct tls_caller, tls_caller_dispose)

struct tls_outcome {
    bool ok; /* both ends are through, and a word of the server has arrived */
    bool resumed;
    int version;
    char leaf[64 + 1]; /* SHA-256 of the DER of what was presented; "" when nothing was */
    int chain_len;
    int ca_names; /* that the server asked for */
    char problem[256];
};
/* server: owned, in accept state. */
struct tls_outcome tls_call(struct ssl_st *server, struct tls_caller *caller);

/* As in tls_outcome. */
void test_cert_digest(const struct test_cert *cert, char out[64 + 1]);

#endif
