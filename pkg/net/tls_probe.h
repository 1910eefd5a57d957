/* The TLS probe: what leaf does each address serve, and of which CAs does it want its clients? A handshake needs no
 * client certificate for that, also where the server demands one: its certificate, the proof that it has the key, and
 * its request come first. Nothing of the peer is trusted; only digests are kept. No resumption. The probe itself has no
 * policy about where it may go: a caller that takes addresses from the cluster asks cr_probe_address_allowed first.
 *
 * A leaf counts as served when the handshake proved that the server has its key, or asks another that has it:
 * TLS 1.3   the server's CertificateVerify and Finished were verified (RFC 8446, section 4.4)
 * TLS 1.2   ECDHE: the signature in its ServerKeyExchange was verified (RFC 8422, section 5.4); RSA key exchange: its
 *           Finished was verified, so that a server that demands a client certificate, gets none and breaks off has
 *           proved nothing
 * A certificate that was only shown is none that is served. What a handshake may cost is limited (tls_limits.h). */
#ifndef CR_NET_TLS_PROBE_H
#define CR_NET_TLS_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/probe_protocol.h"

enum { CR_PROBE_DIGEST = 64 + 1 };

/* A client's certificate and key. Immutable; any thread. */
struct cr_probe_client;
/* PEM texts; the chain may follow the leaf. The key may be PKCS#8, SEC1 or PKCS#1, never encrypted. Owned. Errors:
 * Invalid, in words and without content: what cannot be read, or is over a limit (tls_limits.h: 64 KiB and 32
 * certificates, RSA of 4096 bits, named curves). OpenSSL wipes the key when it is freed; the texts are the caller's to
 * wipe. */
struct cr_probe_client *cr_probe_client_new(const void *certificate, size_t certificate_len, const void *key,
                                            size_t key_len, struct cr_error *err) CR_MUST_USE;
void cr_probe_client_free(struct cr_probe_client *client);
CR_DEFINE_CLEANUP(cr_probe_client, struct cr_probe_client, cr_probe_client_free)

/* What is sent once the handshake is done, to learn whether a server verifies its clients (canary.h). Nothing of it
 * does anything: see probe_request.h. */
enum cr_probe_request { CR_PROBE_NO_REQUEST, CR_PROBE_HTTP1, CR_PROBE_HTTP2 };

struct cr_probe_target {
    const char *address; /* an IP literal, from a pod's status */
    int port;
    const char *server_name;              /* SNI; NULL or an IP literal: none (RFC 6066, section 3) */
    const struct cr_probe_client *client; /* presented when the server asks for a certificate; NULL: none */
    enum cr_probe_protocol protocol;
    enum cr_probe_request request; /* with CR_PROBE_TLS only */
};

enum cr_probe_outcome {
    CR_PROBE_SERVED,      /* leaf is set, and proved, whatever became of the handshake afterwards */
    CR_PROBE_UNREACHABLE, /* refused, time-out, no route, hung up, an alert or an error before any certificate */
    CR_PROBE_NOT_TLS,     /* it answered, but not with TLS */
    CR_PROBE_UNPROVED,    /* it showed a certificate, and did not prove that it has the key */
    CR_PROBE_TOO_COSTLY,  /* given up for a limit, which is in detail */
    CR_PROBE_REFUSED,     /* never by cr_tls_probe: for callers that did not ask since the address is not allowed */
};

/* What the server made of the client's certificate. In TLS 1.2 the handshake shows it; in TLS 1.3 it is over for the
 * client before the server has looked (RFC 8446, section 4.6.2 and appendix E.1.2), so an alert, a session ticket or
 * data is waited for, for half a second. Nothing is sent for that: no message that a server would take for a request is
 * inert. */
enum cr_probe_consent {
    CR_PROBE_NO_CLIENT, /* there was none to present, or the server did not ask */
    CR_PROBE_ACCEPTED,
    CR_PROBE_SILENT, /* no objection in that time */
    CR_PROBE_DENIED, /* by an alert, which is in detail */
};

/* The server's request for a client certificate, which a client without one gets as well (RFC 8446, sections 4.3.2 and
 * 4.2.4; RFC 5246, section 7.4.4). Two CAs with one subject may be announced as one name. */
enum { CR_PROBE_NAMES_MAX = 16 };
struct cr_probe_announced {
    bool asked;                                  /* for a client certificate */
    bool more;                                   /* names than fit */
    size_t len;                                  /* 0: it names none */
    unsigned char names[CR_PROBE_NAMES_MAX][32]; /* SHA-256 of each distinguished name's DER, in its order */
};

/* What became of the certificate and of the request, with a target's request. */
struct cr_probe_answer {
    bool presented;      /* our certificate was sent; not so when the server takes no signature of its key's type */
    int alert;           /* the server's fatal alert after its certificate (RFC 8446, section 6); -1: none */
    bool data;           /* it has sent application data */
    int status;          /* of HTTP; 0: it was no answer of HTTP/1 */
    bool of_certificate; /* nginx, which refuses certificates with an answer of 400, says that this is one */
};

struct cr_probe_result {
    enum cr_probe_outcome outcome;
    enum cr_probe_consent consent;       /* with CR_PROBE_SERVED */
    struct cr_probe_announced announced; /* with CR_PROBE_SERVED */
    struct cr_probe_answer answer;       /* with CR_PROBE_SERVED and a request */
    char leaf[CR_PROBE_DIGEST];          /* SHA-256 of the DER, lower-case hex; "" unless served */
    /* One line for a person when not served or when the client was denied, of printable ASCII; else "". The same for
     * the same trouble: no times, no counters. */
    char detail[160];
};

/* Probes all at once (nonblocking, poll; at most CR_PROBE_AT_ONCE connections at a time, fewer when there are no file
 * descriptors, which share the time fairly), blocks the calling thread at most timeout_ms and what one step of one
 * handshake takes: the clock is read before each record and each connection. results[i] answers targets[i]. Any
 * thread. */
enum { CR_PROBE_AT_ONCE = 64 };
void cr_tls_probe(const struct cr_probe_target *targets, size_t count, int timeout_ms, struct cr_probe_result *results);

/* Only unicast IP literals that are not loopback, link-local, unspecified, broadcast or multicast; no IPv4
 * address inside of an IPv6 one either (mapped, compatible, NAT64, 6to4), which no pod has. */
bool cr_probe_address_allowed(const char *address);
/* The same address, however it is written. False for what is no address. */
bool cr_probe_address_equal(const char *a, const char *b);

#endif
