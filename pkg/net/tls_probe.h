/* The TLS probe: what leaf does each address serve? A handshake needs no client certificate for that, also where the
 * server demands one: its certificate comes first. Nothing of the peer is trusted; only digests are kept. No
 * resumption. The probe itself has no policy about where it may go: whoever takes addresses from the cluster asks
 * cr_probe_address_allowed first. */
#ifndef CR_NET_TLS_PROBE_H
#define CR_NET_TLS_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { CR_PROBE_DIGEST = 64 + 1 };

struct cr_probe_target {
    const char *address; /* an IP literal, from a pod's status */
    int port;
    const char *server_name; /* SNI; NULL or an IP literal: none (RFC 6066, section 3) */
};

enum cr_probe_outcome {
    CR_PROBE_SERVED,      /* leaf is set, whatever became of the handshake afterwards */
    CR_PROBE_UNREACHABLE, /* refused, time-out, no route, hung up, or a TLS alert before any certificate */
    CR_PROBE_NOT_TLS,     /* it answered, but not with TLS */
    CR_PROBE_REFUSED,     /* never by cr_tls_probe: for callers that did not ask since the address is not allowed */
};

struct cr_probe_result {
    enum cr_probe_outcome outcome;
    char leaf[CR_PROBE_DIGEST]; /* SHA-256 of the DER, lower-case hex; "" unless served */
    char detail[160];           /* one line for a person when not served, of printable ASCII; else "" */
};

/* Probes all at once (nonblocking, poll; 64 connections at a time, which share the time fairly), blocks the calling
 * thread at most timeout_ms. results[i] answers targets[i]. Any thread. */
void cr_tls_probe(const struct cr_probe_target *targets, size_t count, int timeout_ms, struct cr_probe_result *results);

/* Only unicast IP literals that are not loopback, link-local, unspecified, broadcast or multicast; no IPv4
 * address inside of an IPv6 one either (mapped, compatible, NAT64, 6to4), which no pod has. */
bool cr_probe_address_allowed(const char *address);
/* The same address, however it is written. False for what is no address. */
bool cr_probe_address_equal(const char *a, const char *b);

#endif
