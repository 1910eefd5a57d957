/* The TLS side of a probe: as permissive as its limits allow, and what the peer shows, proves and says is noted. */
#include "net/probe_conn.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdio.h>

#include "net/probe_client.h"
#include "net/probe_request.h"
#include "net/tls_chain.h"

static struct cr_probe_conn *probe_of(const SSL *ssl)
{
    return SSL_get_app_data(ssl);
}

/* False: probe->limit says what it is over. */
static bool is_within_limits(struct cr_probe_conn *probe, const X509 *leaf)
{
    char words[CR_TLS_LIMIT_WORDS];
    if (!probe->limit[0] && !cr_tls_leaf_key_fits(X509_get0_pubkey(leaf), words))
        snprintf(probe->limit, sizeof probe->limit, "its %.*s", (int)sizeof probe->limit - 5, words);
    return !probe->limit[0];
}

/* Called with the peer's chain in the middle of the handshake, before anything is done with the leaf's key, and before
 * a client certificate is sent: so the leaf is seen even where the server then refuses us. Nothing is verified, on
 * purpose. */
static int capture_leaf(X509_STORE_CTX *chain, void *arg)
{
    (void)arg;
    struct cr_probe_conn *probe = probe_of(X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx()));
    const X509 *leaf = X509_STORE_CTX_get0_cert(chain);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    probe->decoded = true;
    if (!leaf || !is_within_limits(probe, leaf) || X509_digest(leaf, EVP_sha256(), digest, &len) != 1)
        return 0;
    for (unsigned i = 0; i < len; i++)
        snprintf(probe->result->leaf + (size_t)2 * i, 3, "%02x", digest[i]);
    X509_STORE_CTX_set_error(chain, X509_V_OK);
    return 1;
}

/* As it came: OpenSSL keeps a name's encoding until the name is changed. */
static bool digest_name(const X509_NAME *name, unsigned char out[32])
{
    unsigned len = 0;
    return X509_NAME_digest(name, EVP_sha256(), out, &len) == 1 && len == 32;
}

static void note_names(const SSL *ssl, struct cr_probe_announced *announced)
{
    const STACK_OF(X509_NAME) *names = SSL_get0_peer_CA_list(ssl);
    int count = names ? sk_X509_NAME_num(names) : 0;
    *announced = (struct cr_probe_announced){.asked = true, .more = count > CR_PROBE_NAMES_MAX};
    for (int i = 0; i < count && i < CR_PROBE_NAMES_MAX; i++)
        if (digest_name(sk_X509_NAME_value(names, i), announced->names[announced->len]))
            announced->len++;
}

/* The server asks for a client certificate. */
static int present_client(SSL *ssl, void *arg)
{
    (void)arg;
    struct cr_probe_conn *probe = probe_of(ssl);
    note_names(ssl, &probe->result->announced);
    const struct cr_probe_client *client = probe->target->client;
    if (client && cr_probe_client_use(client, ssl))
        probe->client_asked = true;
    return 1;
}

/* An alert after our certificate was sent is about it. */
static void note_alert(const SSL *ssl, int where, int value)
{
    enum { FATAL = 2 };
    struct cr_probe_conn *probe = probe_of(ssl);
    if (!(where & SSL_CB_READ_ALERT) || value >> 8 != FATAL)
        return;
    probe->result->answer.alert = value & 0xff;
    if (!probe->client_asked)
        return;
    probe->result->consent = CR_PROBE_DENIED;
    snprintf(probe->result->detail, sizeof probe->result->detail, "alert %s", SSL_alert_desc_string_long(value));
}

/* Called with the whole message, right before OpenSSL decodes it, from where it does: it has no other place to look at
 * what is encrypted in TLS 1.3, and none to say no. A chain that is over a limit is made one that cannot be read: the
 * first byte is the length of an empty context in TLS 1.3, and before that a part of the list's length. */
static void judge_chain(struct cr_probe_conn *probe, const unsigned char *message, size_t len, bool tls13)
{
    if (len > SSL3_HM_HEADER_LENGTH &&
        !cr_tls_chain_fits(message + SSL3_HM_HEADER_LENGTH, len - SSL3_HM_HEADER_LENGTH, tls13, probe->limit))
        ((unsigned char *)(uintptr_t)message)[SSL3_HM_HEADER_LENGTH] ^= 0xff;
}

/* What we send after the server's first flight says that OpenSSL has verified what is in it. In TLS 1.3 that is all
 * that the server proves; of TLS 1.2 the signature over an ECDHE share, which has both randoms in it. With RSA key
 * exchange there is nothing to verify before the server's Finished. */
static void note_proof(struct cr_probe_conn *probe, const SSL *ssl, unsigned char sent)
{
    const SSL_CIPHER *cipher = SSL_get_pending_cipher(ssl);
    if (sent == SSL3_MT_CLIENT_HELLO || !cipher || !probe->result->leaf[0])
        return;
    probe->proved =
        probe->proved || SSL_version(ssl) >= TLS1_3_VERSION || SSL_CIPHER_get_kx_nid(cipher) == NID_kx_ecdhe;
}

/* A server issues tickets to whom it has let in. A Certificate message that has nothing but its header and the lengths
 * of empty lists (RFC 8446, section 4.4.2; RFC 5246, section 7.4.6) presents none. */
static void note_message(int sent, int version, int content_type, const void *data, size_t len, SSL *ssl, void *arg)
{
    enum { EMPTY = 4 + 1 + 3 };
    (void)version;
    (void)arg;
    struct cr_probe_conn *probe = probe_of(ssl);
    if (content_type != SSL3_RT_HANDSHAKE || !len)
        return;
    unsigned char type = *(const unsigned char *)data;
    if (sent)
        note_proof(probe, ssl, type);
    else if (type == SSL3_MT_CERTIFICATE)
        judge_chain(probe, data, len, SSL_version(ssl) >= TLS1_3_VERSION);
    if (sent && type == SSL3_MT_CERTIFICATE && len > EMPTY)
        probe->result->answer.presented = true;
    bool ticket = !sent && type == SSL3_MT_NEWSESSION_TICKET;
    if (ticket && probe->client_asked && probe->result->consent == CR_PROBE_SILENT)
        probe->result->consent = CR_PROBE_ACCEPTED;
}

/* No ALPN but for a request that needs it: a server that knows none of the protocols offered would answer with an alert
 * instead of its certificate. SSL_VERIFY_PEER is for capture_leaf to end a handshake; it never does for what is in a
 * certificate otherwise. */
SSL_CTX *cr_probe_context_new(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (!ctx || !cr_tls_limit_context(ctx)) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    SSL_CTX_set_min_proto_version(ctx, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(ctx, 0);
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_LEGACY_SERVER_CONNECT | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY); /* one record at a time: a server may send tickets without end */
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(ctx, capture_leaf, NULL);
    SSL_CTX_set_cert_cb(ctx, present_client, NULL);
    SSL_CTX_set_info_callback(ctx, note_alert);
    SSL_CTX_set_msg_callback(ctx, note_message);
    return ctx;
}

static bool is_ip_literal(const char *name)
{
    struct in6_addr ignored;
    return inet_pton(AF_INET, name, &ignored) == 1 || inet_pton(AF_INET6, name, &ignored) == 1;
}

bool cr_probe_tls_begin(struct cr_probe_conn *probe, SSL_CTX *ctx)
{
    probe->ssl = SSL_new(ctx);
    if (!probe->ssl)
        return false;
    BIO *bio = cr_probe_bio_new(&probe->wire);
    SSL_set_bio(probe->ssl, bio, bio);
    SSL_set_app_data(probe->ssl, probe);
    SSL_set_connect_state(probe->ssl);
    const char *name = probe->target->server_name;
    if (name && *name && !is_ip_literal(name))
        SSL_set_tlsext_host_name(probe->ssl, name);
    unsigned protocols_len = 0;
    const unsigned char *protocols = cr_probe_request_alpn(probe->target->request, &protocols_len);
    return !protocols || SSL_set_alpn_protos(probe->ssl, protocols, protocols_len) == 0;
}
