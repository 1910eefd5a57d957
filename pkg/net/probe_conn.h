/* One TLS probe: a connection that is driven by poll events until the peer's leaf was seen or cannot be. */
#ifndef CR_NET_PROBE_CONN_H
#define CR_NET_PROBE_CONN_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/probe_bio.h"
#include "net/tls_probe.h"

enum cr_probe_step { CR_PROBE_CONNECTING, CR_PROBE_SHAKING, CR_PROBE_LINGERING, CR_PROBE_ENDED };

struct cr_probe_conn {
    enum cr_probe_step step;
    const struct cr_probe_target *target; /* borrowed */
    struct cr_probe_result *result;       /* borrowed; complete when ended */
    struct cr_probe_wire wire;
    SSL *ssl;
    short wants; /* POLLIN, POLLOUT */
    int64_t deadline_ms;
    int64_t allowed_ms; /* how long it was given, for the text */
};

/* The settings that all probes share. NULL when OpenSSL cannot be used. */
SSL_CTX *cr_probe_context_new(void);

/* May end at once. The conn must not move until it has ended. */
void cr_probe_conn_begin(struct cr_probe_conn *probe, const struct cr_probe_target *target,
                         struct cr_probe_result *result, int64_t now_ms, int64_t allowed_ms);
/* With what poll reported (0: nothing); ends it when its time is over. */
void cr_probe_conn_advance(struct cr_probe_conn *probe, SSL_CTX *ctx, short happened, int64_t now_ms);

#endif
