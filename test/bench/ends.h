/* A server on tlsreload with connections on loopback, and clients who connect at a rate and look at what they get. */
#ifndef BENCH_ENDS_H
#define BENCH_ENDS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "tlsreload/tlsreload.h"

enum { SERVERS = 12, CLIENTS = 12, TOOK_MAX = 200 * 1000 };

struct ends {
    struct cr_tlsreload *tls;
    int listener, port;
    int rate; /* handshakes a second, of all clients */
    atomic_bool stop;
    atomic_int handshakes, failed, mixed;
    atomic_int refused; /* by the server's count of what failed */
    int32_t *took_us;   /* owned: of the first TOOK_MAX handshakes that went well, from connect to their end */
    pthread_t servers[SERVERS], clients[CLIENTS];
    atomic_int clients_begun;
};

void ends_start(struct ends *ends, struct cr_tlsreload *tls, int rate);
/* Waits for all connections; what was counted stays. */
void ends_quiet(struct ends *ends);
void ends_free(struct ends *ends);

#endif
