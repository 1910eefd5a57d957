#include "net/probe_conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* For the peer to answer our close_notify, so that it sees an end and no reset. */
enum { LINGER_MS = 200 };

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

static bool is_ip_literal(const char *name)
{
    struct sockaddr_any ignored;
    return parse_address(name, 1, &ignored);
}

/* Called with the peer's chain in the middle of the handshake, before a client certificate is sent: so the leaf is seen
 * even where the server then refuses us. Nothing is verified, on purpose. */
static int capture_leaf(X509_STORE_CTX *chain, void *arg)
{
    (void)arg;
    const SSL *ssl = X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx());
    const struct cr_probe_conn *probe = SSL_get_app_data(ssl);
    const X509 *leaf = X509_STORE_CTX_get0_cert(chain);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    if (!leaf || X509_digest(leaf, EVP_sha256(), digest, &len) != 1)
        return 0;
    for (unsigned i = 0; i < len; i++)
        snprintf(probe->result->leaf + (size_t)2 * i, 3, "%02x", digest[i]);
    X509_STORE_CTX_set_error(chain, X509_V_OK);
    return 1;
}

/* As permissive as it gets: a key that is too short is still a leaf that is served. No ALPN: a server that knows none
 * of the protocols offered would answer with an alert instead of its certificate. */
SSL_CTX *cr_probe_context_new(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (!ctx)
        return NULL;
    SSL_CTX_set_security_level(ctx, 0);
    SSL_CTX_set_min_proto_version(ctx, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(ctx, 0);
    SSL_CTX_set_cipher_list(ctx, "ALL:!aNULL:!eNULL:@SECLEVEL=0");
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_LEGACY_SERVER_CONNECT | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_cert_verify_callback(ctx, capture_leaf, NULL);
    return ctx;
}

static void explain(struct cr_probe_conn *probe, enum cr_probe_outcome outcome, const char *text)
{
    probe->result->outcome = outcome;
    snprintf(probe->result->detail, sizeof probe->result->detail, "%s", text);
}

static void close_probe(struct cr_probe_conn *probe)
{
    SSL_free(probe->ssl);
    probe->ssl = NULL;
    if (probe->wire.fd >= 0)
        close(probe->wire.fd);
    probe->wire.fd = -1;
    probe->step = CR_PROBE_ENDED;
}

static void fail(struct cr_probe_conn *probe, enum cr_probe_outcome outcome, const char *text)
{
    explain(probe, outcome, text);
    close_probe(probe);
}

static void fail_errno(struct cr_probe_conn *probe, const char *doing, int error)
{
    char text[sizeof probe->result->detail];
    snprintf(text, sizeof text, "%s: %s", doing, strerror(error));
    fail(probe, CR_PROBE_UNREACHABLE, text);
}

static void serve(struct cr_probe_conn *probe)
{
    explain(probe, CR_PROBE_SERVED, "");
}

/* Says goodbye and waits for the peer to do so: a socket closed with unread bytes (session tickets) would be reset. */
static void begin_linger(struct cr_probe_conn *probe, int64_t now)
{
    if (SSL_is_init_finished(probe->ssl))
        SSL_shutdown(probe->ssl);
    ERR_clear_error();
    shutdown(probe->wire.fd, SHUT_WR);
    probe->step = CR_PROBE_LINGERING;
    probe->wants = POLLIN;
    if (probe->deadline_ms > now + LINGER_MS)
        probe->deadline_ms = now + LINGER_MS;
}

static void linger(struct cr_probe_conn *probe)
{
    char ignored[2048];
    ssize_t n = 0;
    do
        n = recv(probe->wire.fd, ignored, sizeof ignored, 0);
    while (n > 0);
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        close_probe(probe);
}

/* The peer's own words, made harmless. */
static void quote_first(const struct cr_probe_wire *wire, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < wire->first_len && n + 1 < size; i++) {
        char c = (char)wire->first[i];
        if (c == '\r' || c == '\n')
            break;
        if (c < 0x20 || c == 0x7f || c == '\'')
            c = '.';
        out[n++] = c;
    }
    out[n] = '\0';
}

static void fail_not_tls(struct cr_probe_conn *probe, int64_t now)
{
    char words[sizeof probe->wire.first + 1];
    char text[sizeof probe->result->detail];
    cr_probe_wire_peek(&probe->wire);
    quote_first(&probe->wire, words, sizeof words);
    snprintf(text, sizeof text, "answered with '%s', which is not TLS", words);
    explain(probe, CR_PROBE_NOT_TLS, text);
    begin_linger(probe, now);
}

static void fail_in_tls(struct cr_probe_conn *probe, unsigned long error)
{
    char text[sizeof probe->result->detail];
    const char *reason = ERR_reason_error_string(error);
    snprintf(text, sizeof text, "the TLS handshake failed before any certificate came: %s",
             reason ? reason : "no reason given");
    fail(probe, CR_PROBE_UNREACHABLE, text);
}

static void handshake_failed(struct cr_probe_conn *probe, unsigned long error, int64_t now)
{
    const struct cr_probe_wire *wire = &probe->wire;
    if (probe->result->leaf[0]) {
        serve(probe);
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
        if (probe->result->leaf[0])
            handshake_failed(probe, 0, now); /* all that we wanted */
        else
            fail(probe, CR_PROBE_UNREACHABLE, "the TLS handshake brought no certificate");
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

static bool begin_tls(struct cr_probe_conn *probe, SSL_CTX *ctx)
{
    probe->ssl = SSL_new(ctx);
    if (!probe->ssl) {
        fail(probe, CR_PROBE_UNREACHABLE, "TLS cannot be initialised here");
        return false;
    }
    BIO *bio = cr_probe_bio_new(&probe->wire);
    SSL_set_bio(probe->ssl, bio, bio);
    SSL_set_app_data(probe->ssl, probe);
    SSL_set_connect_state(probe->ssl);
    const char *name = probe->target->server_name;
    if (name && *name && !is_ip_literal(name))
        SSL_set_tlsext_host_name(probe->ssl, name);
    probe->step = CR_PROBE_SHAKING;
    return true;
}

static void finish_connect(struct cr_probe_conn *probe, SSL_CTX *ctx, int64_t now)
{
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(probe->wire.fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    if (error)
        fail_errno(probe, "cannot connect", error);
    else if (begin_tls(probe, ctx))
        shake(probe, now);
}

void cr_probe_conn_begin(struct cr_probe_conn *probe, const struct cr_probe_target *target,
                         struct cr_probe_result *result, int64_t now, int64_t allowed_ms)
{
    *result = (struct cr_probe_result){.outcome = CR_PROBE_UNREACHABLE};
    *probe = (struct cr_probe_conn){.step = CR_PROBE_CONNECTING,
                                    .target = target,
                                    .result = result,
                                    .wire = {.fd = -1},
                                    .wants = POLLOUT,
                                    .deadline_ms = now + allowed_ms,
                                    .allowed_ms = allowed_ms};
    struct sockaddr_any to;
    if (!parse_address(target->address, target->port, &to)) {
        fail(probe, CR_PROBE_UNREACHABLE, "not an IP address with a port");
        return;
    }
    probe->wire.fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (probe->wire.fd < 0)
        fail_errno(probe, "cannot open a socket", errno);
    else if (connect(probe->wire.fd, &to.any, to.len) != 0 && errno != EINPROGRESS)
        fail_errno(probe, "cannot connect", errno);
}

static void time_out(struct cr_probe_conn *probe)
{
    if (probe->step == CR_PROBE_LINGERING) {
        close_probe(probe);
        return;
    }
    if (probe->result->leaf[0]) {
        serve(probe);
        close_probe(probe);
        return;
    }
    char text[sizeof probe->result->detail];
    snprintf(text, sizeof text,
             probe->step == CR_PROBE_CONNECTING ? "no connection within %lld ms" : "no TLS answer within %lld ms",
             (long long)probe->allowed_ms);
    fail(probe, CR_PROBE_UNREACHABLE, text);
}

void cr_probe_conn_advance(struct cr_probe_conn *probe, SSL_CTX *ctx, short happened, int64_t now)
{
    if (happened) {
        if (probe->step == CR_PROBE_CONNECTING)
            finish_connect(probe, ctx, now);
        else if (probe->step == CR_PROBE_SHAKING)
            shake(probe, now);
        else if (probe->step == CR_PROBE_LINGERING)
            linger(probe);
    }
    if (probe->step != CR_PROBE_ENDED && now >= probe->deadline_ms)
        time_out(probe);
}
