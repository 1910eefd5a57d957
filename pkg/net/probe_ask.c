/* What follows the handshake of a probe that asks whether a server verifies its clients: first it is listened to, so
 * that its alert is read and not lost in a reset, then something inert is sent and its answer read. */
#include "net/probe_conn.h"

#include <openssl/err.h>
#include <poll.h>

#include "base/alloc.h"
#include "net/probe_request.h"

struct cr_probe_ask {
    size_t sent;
    size_t in_len;
    char in[CR_PROBE_ANSWER_MAX];
};

bool cr_probe_ask_wanted(const struct cr_probe_conn *probe)
{
    const struct cr_probe_target *target = probe->target;
    return target->request != CR_PROBE_NO_REQUEST && target->protocol == CR_PROBE_TLS &&
           (!target->client || probe->result->answer.presented);
}

void cr_probe_ask_begin(struct cr_probe_conn *probe)
{
    if (!probe->ask)
        probe->ask = cr_new(struct cr_probe_ask);
}

/* How many bytes it was; 0: none now, -1: never again. */
static int result_of(struct cr_probe_conn *probe, int n)
{
    if (n > 0)
        return n;
    int why = SSL_get_error(probe->ssl, n);
    ERR_clear_error();
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
        return -1;
    probe->wants = why == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;
    return 0;
}

/* A few records at a time: a server that sends without end must not keep us from looking at the clock. */
bool cr_probe_ask_receive(struct cr_probe_conn *probe)
{
    enum { READS = 16 };
    struct cr_probe_ask *ask = probe->ask;
    int n = 1;
    for (int i = 0; i < READS && n > 0 && ask->in_len < sizeof ask->in; i++) {
        ERR_clear_error();
        n = result_of(probe, SSL_read(probe->ssl, ask->in + ask->in_len, (int)(sizeof ask->in - ask->in_len)));
        ask->in_len += n > 0 ? (size_t)n : 0;
    }
    bool enough = cr_probe_answer_read(ask->in, ask->in_len, &probe->result->answer);
    return n < 0 || ask->in_len == sizeof ask->in || (ask->sent && enough);
}

/* A server that has sent data without being asked has accepted the connection. */
bool cr_probe_ask_is_answered(const struct cr_probe_conn *probe)
{
    return probe->ask->in_len > 0;
}

bool cr_probe_ask_step(struct cr_probe_conn *probe)
{
    size_t len = 0;
    const char *request = cr_probe_request_bytes(probe->target->request, &len);
    struct cr_probe_ask *ask = probe->ask;
    while (ask->sent < len) {
        ERR_clear_error();
        int n = result_of(probe, SSL_write(probe->ssl, request + ask->sent, (int)(len - ask->sent)));
        if (n < 0)
            return true;
        if (n == 0)
            return false;
        ask->sent += (size_t)n;
    }
    probe->wants = POLLIN;
    return cr_probe_ask_receive(probe);
}
