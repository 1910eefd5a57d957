/* The transport of a TLS probe: a nonblocking socket that raises no SIGPIPE and remembers how the peer began, so that
 * an answer that is not TLS can be distinguished from one that is. It looks at the clock and at what was read before it
 * reads on: OpenSSL asks it for each record of a handshake, and goes on for as long as there is one. */
#ifndef CR_NET_PROBE_BIO_H
#define CR_NET_PROBE_BIO_H

#include <openssl/bio.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cr_probe_wire {
    int fd;
    int64_t end_ms; /* monotonic: nothing is read from then on */
    size_t left;    /* bytes that may still be read */
    bool over;      /* there was more than that */
    bool closed;    /* the peer hung up */
    int error;      /* errno of the last failure, 0: none */
    unsigned char first[48];
    size_t first_len;
};

/* wire must outlive it; the socket stays the caller's. Owned by the SSL it is given to. */
BIO *cr_probe_bio_new(struct cr_probe_wire *wire);
/* Reads on for as much of the beginning as has arrived: OpenSSL stops at the first bytes that it cannot use. */
void cr_probe_wire_peek(struct cr_probe_wire *wire);
/* Whether the first bytes are those of a TLS record (RFC 8446, section 5.1). */
bool cr_probe_wire_is_tls(const struct cr_probe_wire *wire);

#endif
