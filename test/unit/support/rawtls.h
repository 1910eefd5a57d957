/* A TLS 1.2 server that says what no library would: its first flight is made by hand, and what follows is up to the
 * test. For tests of clients that must not believe, or not pay for, all that they receive. */
#ifndef TEST_SUPPORT_RAWTLS_H
#define TEST_SUPPORT_RAWTLS_H

#include <stdbool.h>
#include <stddef.h>

#include "support/testcerts.h"
#include "support/testserver.h"

enum raw_exchange { RAW_ECDHE, RAW_RSA, RAW_DHE };

/* What a ClientHello offers (RFC 8446, section 4.1.2), in network order as it came. */
struct raw_hello {
    unsigned char random[32];
    unsigned short ciphers[128];
    size_t ciphers_len;
    unsigned short groups[64];
    size_t groups_len;
    unsigned short signatures[64];
    size_t signatures_len;
};

struct raw_flight {
    const struct test_cert *cert; /* the leaf; its key signs unless other_key does */
    const struct test_cert *other_key;
    size_t copies;  /* of the certificate after it in the chain */
    size_t padding; /* bytes of zeros at the end of the chain, as one certificate more; 0: none */
    enum raw_exchange exchange;
    bool certificate_only;  /* nothing follows it */
    size_t dh_bits;         /* of RAW_DHE's prime, which is none */
    size_t hello_requests;  /* in the middle of the handshake (RFC 5246, section 7.4.1.1) */
    int alert;              /* fatal, once the client has sent its flight; 0: none */
    bool silent;            /* says nothing more, until the client ends; otherwise it hangs up */
    struct raw_hello hello; /* out: the client's last */
};

/* For test_server_options, without a certificate; arg is a struct raw_flight. */
void raw_tls_serve(struct test_conn *conn, void *arg);

#endif
