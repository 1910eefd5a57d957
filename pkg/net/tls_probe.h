/* The TLS probe: what leaf does each address serve? A handshake needs no client certificate for that, also where the
 * server demands one: its certificate comes first. Nothing of the peer is trusted; only digests are kept. No resumption. */
#ifndef CR_NET_TLS_PROBE_H
#define CR_NET_TLS_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { CR_PROBE_DIGEST = 64 + 1 };

struct cr_probe_target {
    const char *address;     /* an IP literal, from a pod's status */
    int port;
    const char *server_name; /* SNI; NULL: none */
};

enum cr_probe_outcome {
    CR_PROBE_SERVED,      /* leaf is set */
    CR_PROBE_UNREACHABLE, /* refused, time-out, no route */
    CR_PROBE_NOT_TLS,     /* it answered, but not with TLS */
    CR_PROBE_REFUSED,     /* address not allowed (see cr_probe_address_allowed) */
};

struct cr_probe_result {
    enum cr_probe_outcome outcome;
    char leaf[CR_PROBE_DIGEST]; /* SHA-256 of the DER, hex */
    char detail[160];           /* one line for a person when not served */
};

/* Probes all at once (nonblocking, poll), blocks the calling thread at most timeout_ms. results[i] answers targets[i]. */
void cr_tls_probe(const struct cr_probe_target *targets, size_t count, int timeout_ms, struct cr_probe_result *results);

/* Only unicast IP literals that are not loopback, link-local (IPv4, IPv6, mapped), unspecified or multicast. */
bool cr_probe_address_allowed(const char *address);

#endif
