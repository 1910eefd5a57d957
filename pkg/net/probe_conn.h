/* One TLS probe: a connection that is driven by poll events until the peer's leaf was seen or cannot be. Private to
 * pkg/net. */
#ifndef CR_NET_PROBE_CONN_H
#define CR_NET_PROBE_CONN_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/probe_bio.h"
#include "net/probe_greeting.h"
#include "net/tls_limits.h"
#include "net/tls_probe.h"

enum cr_probe_step {
    CR_PROBE_CONNECTING,
    CR_PROBE_GREETING,  /* what a database says before TLS */
    CR_PROBE_SHAKING,   /* the handshake */
    CR_PROBE_LISTENING, /* the leaf was seen; what becomes of the client? */
    CR_PROBE_ASKING,    /* for an answer to an inert request */
    CR_PROBE_PARTING,   /* the log-in that ends a conversation with MySQL politely */
    CR_PROBE_LINGERING, /* for the peer's goodbye */
    CR_PROBE_ENDED,
};

/* Bytes of a database's protocol, in the clear or inside of TLS. */
struct cr_probe_exchange {
    unsigned char in[CR_GREETING_MAX];
    size_t in_len;
    unsigned char out[CR_GREETING_REQUEST];
    size_t out_len;
    size_t out_sent;
    bool asked; /* for TLS */
    bool ready; /* the server is: once what is to be sent has gone, TLS begins */
    int replies;
    struct cr_mysql_greeting greeting;
};

struct cr_probe_ask;

struct cr_probe_conn {
    enum cr_probe_step step;
    const struct cr_probe_target *target; /* borrowed */
    struct cr_probe_result *result;       /* borrowed; complete when ended */
    struct cr_probe_wire wire;
    SSL *ssl;
    struct cr_probe_exchange *exchange; /* owned; databases only */
    struct cr_probe_ask *ask;           /* owned; with a request only */
    bool client_asked;                  /* the server asked for a certificate, and there was one to present */
    bool proved;                        /* that the server has the key of result->leaf, see tls_probe.h */
    bool decoded;                       /* OpenSSL has decoded the server's certificates */
    char limit[CR_TLS_LIMIT_WORDS];     /* why the handshake was given up; "" */
    short wants;                        /* POLLIN, POLLOUT */
    int64_t deadline_ms;                /* of this step */
    int64_t end_ms;                     /* of all */
};

/* What has come when its own time is over is still looked at, but nothing any more at round_end_ms. May end at once.
 * The conn must not move until it has ended. False: no socket is to be had now, and nothing was begun.
 */
bool cr_probe_conn_begin(struct cr_probe_conn *probe, const struct cr_probe_target *target,
                         struct cr_probe_result *result, int64_t now_ms, int64_t allowed_ms, int64_t round_end_ms);
/* With what poll reported (0: nothing); ends it when its time is over. */
void cr_probe_conn_advance(struct cr_probe_conn *probe, SSL_CTX *ctx, short happened, int64_t now_ms);
/* Ends it without having asked. */
void cr_probe_conn_give_up(struct cr_probe_result *result, const char *why);

/* --- for the other files of the probe --- */

/* probe_tls.c: the settings that all probes share. NULL when OpenSSL cannot be used. */
SSL_CTX *cr_probe_context_new(void);
/* A client's session on the probe's wire; false when OpenSSL cannot be used. */
bool cr_probe_tls_begin(struct cr_probe_conn *probe, SSL_CTX *ctx);

/* probe_exchange.c: whether something is said before TLS. */
bool cr_probe_exchange_is_needed(const struct cr_probe_conn *probe);
/* One step further in that. */
enum cr_greeting cr_probe_exchange_ask(struct cr_probe_conn *probe, char words[CR_GREETING_WORDS]);
/* Whether something is said to end it. */
bool cr_probe_exchange_has_end(const struct cr_probe_conn *probe);
/* One step further in that, inside of TLS when there is a session. False: it is over. */
bool cr_probe_exchange_end(struct cr_probe_conn *probe);

/* probe_ask.c: whether there is something to ask once the handshake is done. */
bool cr_probe_ask_wanted(const struct cr_probe_conn *probe);
void cr_probe_ask_begin(struct cr_probe_conn *probe);
/* Reads what comes. True: nothing more will. */
bool cr_probe_ask_receive(struct cr_probe_conn *probe);
bool cr_probe_ask_is_answered(const struct cr_probe_conn *probe);
/* Sends the request and reads the answer. True: it is over. */
bool cr_probe_ask_step(struct cr_probe_conn *probe);

#endif
