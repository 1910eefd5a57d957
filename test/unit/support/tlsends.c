#include "support/tlsends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

enum { STEPS = 50 };

void tls_caller_dispose(struct tls_caller *caller)
{
    SSL_SESSION_free(caller->session);
    caller->session = NULL;
}

static void digest_of(const X509 *x509, char out[65])
{
    unsigned char digest[32];
    assert_int_equal(X509_digest(x509, EVP_sha256(), digest, NULL), 1);
    for (int i = 0; i < 32; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

void test_cert_digest(const struct test_cert *cert, char out[65])
{
    digest_of(cert->x509, out);
}

/* With TLS 1.3 a session comes after the handshake, and only as a callback. */
static int keep_session(SSL *ssl, SSL_SESSION *session)
{
    struct tls_caller *caller = SSL_get_app_data(ssl);
    SSL_SESSION_free(caller->session);
    caller->session = session;
    return 1;
}

static SSL_CTX *client_context(const struct tls_caller *caller)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    assert_non_null(context);
    if (caller->version) {
        SSL_CTX_set_min_proto_version(context, caller->version);
        SSL_CTX_set_max_proto_version(context, caller->version);
    }
    if (caller->no_tickets)
        SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    if (caller->cert) {
        assert_int_equal(SSL_CTX_use_certificate(context, caller->cert->x509), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey(context, caller->cert->key), 1);
    }
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, keep_session);
    return context;
}

static SSL *client_of(struct tls_caller *caller)
{
    SSL_CTX *context = client_context(caller);
    SSL *client = SSL_new(context);
    SSL_CTX_free(context);
    SSL_set_app_data(client, caller);
    if (caller->session)
        assert_int_equal(SSL_set_session(client, caller->session), 1);
    SSL_set_connect_state(client);
    return client;
}

static void join(SSL *server, SSL *client)
{
    BIO *a = NULL;
    BIO *b = NULL;
    assert_int_equal(BIO_new_bio_pair(&a, 64 * 1024, &b, 64 * 1024), 1);
    SSL_set_bio(server, a, a);
    SSL_set_bio(client, b, b);
}

/* False: it ended badly, and why is in problem. */
static bool step(SSL *ssl, int result, const char *who, struct tls_outcome *outcome)
{
    int error = SSL_get_error(ssl, result);
    if (result > 0 || error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
        return true;
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    (void)snprintf(outcome->problem, sizeof outcome->problem, "%s: %s", who, reason ? reason : "ended");
    return false;
}

static bool exchange(SSL *server, SSL *client, struct tls_outcome *outcome)
{
    bool said = false;
    char word = 0;
    for (int i = 0; i < STEPS && !word; i++) {
        ERR_clear_error();
        if (!SSL_is_init_finished(client) && !step(client, SSL_do_handshake(client), "client", outcome))
            return false;
        ERR_clear_error();
        if (!SSL_is_init_finished(server) && !step(server, SSL_do_handshake(server), "server", outcome))
            return false;
        if (SSL_is_init_finished(server) && !said)
            said = SSL_write(server, "!", 1) == 1;
        ERR_clear_error();
        if (SSL_is_init_finished(client) && !step(client, SSL_read(client, &word, 1), "client", outcome))
            return false;
    }
    return word == '!';
}

struct tls_outcome tls_call(struct ssl_st *server, struct tls_caller *caller)
{
    struct tls_outcome outcome = {0};
    assert_non_null(server);
    SSL *client = client_of(caller);
    join(server, client);
    outcome.ok = exchange(server, client, &outcome);
    outcome.resumed = SSL_session_reused(client);
    outcome.version = SSL_version(client);
    if (SSL_get0_peer_certificate(client))
        digest_of(SSL_get0_peer_certificate(client), outcome.leaf);
    outcome.chain_len = sk_X509_num(SSL_get_peer_cert_chain(client));
    outcome.ca_names = sk_X509_NAME_num(SSL_get0_peer_CA_list(client));
    SSL_shutdown(client); /* a session that ended without is not resumed */
    SSL_free(client);
    SSL_shutdown(server);
    SSL_free(server);
    ERR_clear_error();
    return outcome;
}
