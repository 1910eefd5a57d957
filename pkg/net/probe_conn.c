#include "net/probe_conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"

enum {
    LINGER_MS = 200, /* for the peer to answer our close_notify, so that it sees an end and no reset */
    LISTEN_MS = 500, /* for an alert about our certificate, or the answer to a log-in */
    ANSWER_MS = 700, /* to an inert request */
    READS = 16,      /* at a time: a peer that sends without end must not keep us from looking at the clock */
};

struct sockaddr_any {
    union {
        struct sockaddr any;
        struct sockaddr_in ip4;
        struct sockaddr_in6 ip6;
    };
    socklen_t len;
};

static bool parse_address(const char *text, int port, struct sockaddr_any *out)
{
    *out = (struct sockaddr_any){0};
    if (!text || port < 1 || port > 65535)
        return false;
    if (inet_pton(AF_INET, text, &out->ip4.sin_addr) == 1) {
        out->ip4.sin_family = AF_INET;
        out->ip4.sin_port = htons((uint16_t)port);
        out->len = sizeof out->ip4;
        return true;
    }
    if (inet_pton(AF_INET6, text, &out->ip6.sin6_addr) == 1) {
        out->ip6.sin6_family = AF_INET6;
        out->ip6.sin6_port = htons((uint16_t)port);
        out->len = sizeof out->ip6;
        return true;
    }
    return false;
}

/* --- how it ends --- */

static void explain(struct cr_probe_result *result, enum cr_probe_outcome outcome, const char *text)
{
    result->outcome = outcome;
    snprintf(result->detail, sizeof result->detail, "%s", text);
}

void cr_probe_conn_give_up(struct cr_probe_result *result, const char *why)
{
    *result = (struct cr_probe_result){.answer.alert = -1};
    explain(result, CR_PROBE_UNREACHABLE, why);
}

static void close_probe(struct cr_probe_conn *probe)
{
    SSL_free(probe->ssl);
    probe->ssl = NULL;
    free(probe->exchange);
    probe->exchange = NULL;
    free(probe->ask);
    probe->ask = NULL;
    if (probe->wire.fd >= 0)
        close(probe->wire.fd);
    probe->wire.fd = -1;
    probe->step = CR_PROBE_ENDED;
}

static void fail(struct cr_probe_conn *probe, enum cr_probe_outcome outcome, const char *text)
{
    explain(probe->result, outcome, text);
    close_probe(probe);
}

static void fail_errno(struct cr_probe_conn *probe, const char *doing, int error)
{
    char text[sizeof probe->result->detail];
    snprintf(text, sizeof text, "%s: %s", doing, strerror(error));
    fail(probe, CR_PROBE_UNREACHABLE, text);
}

static void take_time(struct cr_probe_conn *probe, int64_t now, int64_t ms)
{
    probe->deadline_ms = now + ms < probe->end_ms ? now + ms : probe->end_ms;
}

/* Says goodbye and waits for the peer to do so: a socket closed with unread bytes (session tickets) would be reset. */
static void begin_linger(struct cr_probe_conn *probe, int64_t now)
{
    if (probe->ssl && SSL_is_init_finished(probe->ssl))
        SSL_shutdown(probe->ssl);
    ERR_clear_error();
    shutdown(probe->wire.fd, SHUT_WR);
    probe->step = CR_PROBE_LINGERING;
    probe->wants = POLLIN;
    take_time(probe, now, LINGER_MS);
}

static void linger(struct cr_probe_conn *probe)
{
    char ignored[2048];
    ssize_t n = 1;
    for (int i = 0; i < READS && n > 0 && probe->wire.left; i++) {
        n = recv(probe->wire.fd, ignored, sizeof ignored, 0);
        probe->wire.left -= n > 0 && (size_t)n < probe->wire.left ? (size_t)n : n > 0 ? probe->wire.left : 0;
    }
    if (!probe->wire.left || n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        close_probe(probe);
}

/* --- what becomes of our certificate, and of our log-in --- */

/* MySQL answers a log-in only to whom TLS has let in. */
static void part(struct cr_probe_conn *probe, int64_t now)
{
    bool more = cr_probe_exchange_end(probe);
    if (probe->exchange->in_len && probe->result->consent == CR_PROBE_SILENT)
        probe->result->consent = CR_PROBE_ACCEPTED;
    if (!more)
        begin_linger(probe, now);
}

static void end_listen(struct cr_probe_conn *probe, int64_t now)
{
    if (!cr_probe_exchange_has_end(probe) || probe->result->consent == CR_PROBE_DENIED) {
        begin_linger(probe, now);
        return;
    }
    probe->step = CR_PROBE_PARTING;
    take_time(probe, now, LISTEN_MS);
    part(probe, now);
}

/* True: there is nothing more to learn. Reading makes OpenSSL see tickets and alerts; data is thrown away. */
static bool receive(struct cr_probe_conn *probe)
{
    char ignored[512];
    ERR_clear_error();
    int n = SSL_read(probe->ssl, ignored, sizeof ignored);
    int why = SSL_get_error(probe->ssl, n);
    ERR_clear_error();
    if (n > 0 && probe->result->consent == CR_PROBE_SILENT)
        probe->result->consent = CR_PROBE_ACCEPTED;
    probe->wants = why == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;
    return probe->result->consent != CR_PROBE_SILENT ||
           (n <= 0 && why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE);
}

static void ask(struct cr_probe_conn *probe, int64_t now)
{
    if (cr_probe_ask_step(probe))
        begin_linger(probe, now);
}

/* There was no objection. */
static void begin_ask(struct cr_probe_conn *probe, int64_t now)
{
    probe->step = CR_PROBE_ASKING;
    take_time(probe, now, ANSWER_MS);
    ask(probe, now);
}

static void listen_on(struct cr_probe_conn *probe, int64_t now)
{
    if (probe->ask ? cr_probe_ask_receive(probe) : receive(probe))
        end_listen(probe, now);
}

/* Nothing is said meanwhile: to whom has hung up it would make a reset of its alert. */
static void begin_listen(struct cr_probe_conn *probe, int64_t now)
{
    probe->step = CR_PROBE_LISTENING;
    take_time(probe, now, LISTEN_MS);
    listen_on(probe, now);
}

/* --- the handshake --- */

static void serve(struct cr_probe_conn *probe)
{
    probe->result->outcome = CR_PROBE_SERVED;
}

/* What was seen until then is no evidence of anything. */
static void disown(struct cr_probe_conn *probe, enum cr_probe_outcome outcome, const char *why)
{
    *probe->result = (struct cr_probe_result){.answer.alert = -1};
    explain(probe->result, outcome, why);
}

/* A certificate was shown, and that is all. */
static void end_unproved(struct cr_probe_conn *probe, const char *why)
{
    char text[sizeof probe->result->detail];
    snprintf(text, sizeof text, "did not prove that it has its certificate's key: %s", why);
    disown(probe, CR_PROBE_UNPROVED, text);
}

static void shaken(struct cr_probe_conn *probe, int64_t now)
{
    if (!probe->result->leaf[0]) {
        fail(probe, CR_PROBE_UNREACHABLE, "the TLS handshake brought no certificate");
        return;
    }
    probe->proved = true;
    serve(probe);
    if (probe->client_asked)
        probe->result->consent = SSL_version(probe->ssl) < TLS1_3_VERSION ? CR_PROBE_ACCEPTED : CR_PROBE_SILENT;
    bool asks = cr_probe_ask_wanted(probe);
    if (asks)
        cr_probe_ask_begin(probe);
    if (asks && SSL_version(probe->ssl) < TLS1_3_VERSION)
        begin_ask(probe, now);
    else if (asks || probe->result->consent == CR_PROBE_SILENT)
        begin_listen(probe, now);
    else
        end_listen(probe, now);
}

static void fail_not_tls(struct cr_probe_conn *probe, int64_t now)
{
    char words[sizeof probe->wire.first + 1];
    char text[sizeof probe->result->detail];
    cr_probe_wire_peek(&probe->wire);
    cr_greeting_quote(probe->wire.first, probe->wire.first_len, words, sizeof words);
    snprintf(text, sizeof text, "answered with '%s', which is not TLS", words);
    explain(probe->result, CR_PROBE_NOT_TLS, text);
    begin_linger(probe, now);
}

static const char *reason_of(unsigned long error)
{
    const char *reason = ERR_reason_error_string(error);
    return reason ? reason : "no reason given";
}

/* What a server says that has nothing in common with us, of key exchanges for example. */
static bool is_of_offer(unsigned long error)
{
    int reason = ERR_GET_REASON(error);
    return ERR_GET_LIB(error) == ERR_LIB_SSL &&
           (reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE || reason == SSL_R_TLSV1_ALERT_INSUFFICIENT_SECURITY);
}

static void fail_in_tls(struct cr_probe_conn *probe, unsigned long error)
{
    char text[sizeof probe->result->detail];
    if (is_of_offer(error))
        snprintf(text, sizeof text,
                 "the TLS handshake failed before any certificate came: %s (probes offer ECDHE and RSA, "
                 "not DHE)",
                 reason_of(error));
    else
        snprintf(text, sizeof text, "the TLS handshake failed before any certificate came: %s", reason_of(error));
    fail(probe, CR_PROBE_UNREACHABLE, text);
}

/* The limit that has ended the handshake; NULL: none. */
static const char *limit_of(const struct cr_probe_conn *probe, unsigned long error)
{
    if (probe->limit[0])
        return probe->limit;
    if (probe->wire.over)
        return "it sends more than 256 KiB";
    bool long_message = ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == SSL_R_EXCESSIVE_MESSAGE_SIZE;
    return long_message ? "its certificates, or the CAs that it names, take more than 64 KiB" : NULL;
}

static void handshake_failed(struct cr_probe_conn *probe, unsigned long error, int64_t now)
{
    const struct cr_probe_wire *wire = &probe->wire;
    const char *limit = limit_of(probe, error);
    if (limit) {
        disown(probe, CR_PROBE_TOO_COSTLY, limit);
        begin_linger(probe, now);
    } else if (probe->proved) {
        serve(probe);
        begin_linger(probe, now);
    } else if (probe->result->leaf[0]) {
        end_unproved(probe, wire->error ? strerror(wire->error) : wire->closed ? "it hung up" : reason_of(error));
        begin_linger(probe, now);
    } else if (wire->first_len && !cr_probe_wire_is_tls(wire)) {
        fail_not_tls(probe, now);
    } else if (wire->error) {
        fail_errno(probe, "the connection broke in the TLS handshake", wire->error);
    } else if (wire->closed && !wire->first_len) {
        fail(probe, CR_PROBE_UNREACHABLE, "hung up without an answer to a TLS handshake");
    } else {
        fail_in_tls(probe, error);
    }
}

static void shake(struct cr_probe_conn *probe, int64_t now)
{
    ERR_clear_error();
    int rc = SSL_do_handshake(probe->ssl);
    switch (SSL_get_error(probe->ssl, rc)) {
    case SSL_ERROR_NONE:
        shaken(probe, now);
        return;
    case SSL_ERROR_WANT_READ:
        probe->wants = POLLIN;
        return;
    case SSL_ERROR_WANT_WRITE:
        probe->wants = POLLOUT;
        return;
    default:
        handshake_failed(probe, ERR_peek_error(), now);
    }
}

static void begin_tls(struct cr_probe_conn *probe, SSL_CTX *ctx, int64_t now)
{
    if (!cr_probe_tls_begin(probe, ctx)) {
        fail(probe, CR_PROBE_UNREACHABLE, "TLS cannot be initialised here");
        return;
    }
    probe->step = CR_PROBE_SHAKING;
    shake(probe, now);
}

/* --- before TLS --- */

static void end_without_tls(struct cr_probe_conn *probe, int64_t now)
{
    char text[sizeof probe->result->detail];
    snprintf(text, sizeof text, "%s answered that it has no TLS", cr_probe_protocol_name(probe->target->protocol));
    explain(probe->result, CR_PROBE_NOT_TLS, text);
    end_listen(probe, now);
}

/* An answer that is an error, or none of this protocol. */
static void end_with_words(struct cr_probe_conn *probe, enum cr_greeting verdict, const char *words, int64_t now)
{
    char text[sizeof probe->result->detail];
    bool error = verdict == CR_GREETING_ERROR;
    snprintf(text, sizeof text, error ? "%s answered with the error '%s'" : "does not speak %s but '%s'",
             cr_probe_protocol_name(probe->target->protocol), words);
    explain(probe->result, error ? CR_PROBE_UNREACHABLE : CR_PROBE_NOT_TLS, text);
    begin_linger(probe, now);
}

static void greet(struct cr_probe_conn *probe, SSL_CTX *ctx, int64_t now)
{
    char words[CR_GREETING_WORDS];
    const struct cr_probe_wire *wire = &probe->wire;
    enum cr_greeting verdict = cr_probe_exchange_ask(probe, words);
    bool broken = wire->closed || wire->error;
    if (broken && (!probe->exchange->in_len || verdict == CR_GREETING_MORE)) {
        if (wire->error)
            fail_errno(probe, "the connection broke before TLS", wire->error);
        else
            fail(probe, CR_PROBE_UNREACHABLE, "hung up before TLS");
        return;
    }
    switch (verdict) {
    case CR_GREETING_MORE:
        return;
    case CR_GREETING_TLS:
        begin_tls(probe, ctx, now);
        return;
    case CR_GREETING_NO_TLS:
        end_without_tls(probe, now);
        return;
    default:
        end_with_words(probe, verdict, words, now);
    }
}

static void finish_connect(struct cr_probe_conn *probe, SSL_CTX *ctx, int64_t now)
{
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(probe->wire.fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    if (error) {
        fail_errno(probe, "cannot connect", error);
        return;
    }
    if (!cr_probe_exchange_is_needed(probe)) {
        begin_tls(probe, ctx, now);
        return;
    }
    probe->exchange = cr_new(struct cr_probe_exchange);
    probe->step = CR_PROBE_GREETING;
    greet(probe, ctx, now);
}

bool cr_probe_conn_begin(struct cr_probe_conn *probe, const struct cr_probe_target *target,
                         struct cr_probe_result *result, int64_t now, int64_t allowed_ms, int64_t round_end_ms)
{
    *result = (struct cr_probe_result){.outcome = CR_PROBE_UNREACHABLE, .answer.alert = -1};
    *probe = (struct cr_probe_conn){.step = CR_PROBE_CONNECTING,
                                    .target = target,
                                    .result = result,
                                    .wire = {.fd = -1, .end_ms = round_end_ms, .left = CR_TLS_BYTES},
                                    .wants = POLLOUT,
                                    .deadline_ms = now + allowed_ms,
                                    .end_ms = now + allowed_ms};
    struct sockaddr_any to;
    if (!parse_address(target->address, target->port, &to)) {
        fail(probe, CR_PROBE_UNREACHABLE, "not an IP address with a port");
        return true;
    }
    probe->wire.fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (probe->wire.fd < 0) {
        bool later = errno == EMFILE || errno == ENFILE || errno == ENOBUFS;
        fail_errno(probe, "cannot open a socket", errno);
        return !later;
    }
    if (connect(probe->wire.fd, &to.any, to.len) != 0 && errno != EINPROGRESS)
        fail_errno(probe, "cannot connect", errno);
    return true;
}

/* The server had time to object. */
static void end_of_listening(struct cr_probe_conn *probe, int64_t now)
{
    if (probe->ask && !cr_probe_ask_is_answered(probe))
        begin_ask(probe, now);
    else
        end_listen(probe, now);
}

/* What a step that was not done in time means. */
static void time_out(struct cr_probe_conn *probe, int64_t now)
{
    static const char *const texts[] = {
        [CR_PROBE_CONNECTING] = "no connection in time",
        [CR_PROBE_GREETING] = "no answer in time",
        [CR_PROBE_SHAKING] = "no TLS answer in time",
    };
    bool left = now < probe->end_ms;
    bool known = probe->step > CR_PROBE_SHAKING;
    if (known && left && probe->step == CR_PROBE_LISTENING) {
        end_of_listening(probe, now);
    } else if (known && left && (probe->step == CR_PROBE_PARTING || probe->step == CR_PROBE_ASKING)) {
        begin_linger(probe, now);
    } else if (known || probe->proved) {
        /* Also a server that says nothing more once it has proved its leaf. */
        if (!known)
            serve(probe);
        close_probe(probe);
    } else if (probe->result->leaf[0]) {
        end_unproved(probe, "nothing more came in time");
        close_probe(probe);
    } else {
        fail(probe, CR_PROBE_UNREACHABLE, texts[probe->step]);
    }
}

void cr_probe_conn_advance(struct cr_probe_conn *probe, SSL_CTX *ctx, short happened, int64_t now)
{
    if (happened && now < probe->wire.end_ms) {
        if (probe->step == CR_PROBE_CONNECTING)
            finish_connect(probe, ctx, now);
        else if (probe->step == CR_PROBE_GREETING)
            greet(probe, ctx, now);
        else if (probe->step == CR_PROBE_SHAKING)
            shake(probe, now);
        else if (probe->step == CR_PROBE_LISTENING)
            listen_on(probe, now);
        else if (probe->step == CR_PROBE_ASKING)
            ask(probe, now);
        else if (probe->step == CR_PROBE_PARTING)
            part(probe, now);
        else if (probe->step == CR_PROBE_LINGERING)
            linger(probe);
    }
    if (probe->step != CR_PROBE_ENDED && now >= probe->deadline_ms)
        time_out(probe, now);
}
