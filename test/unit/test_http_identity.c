/* Which servers are trusted, and how we authenticate: TLS servers with certificates made here. */
#include "net/http_requests.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/ssl.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "support/testserver.h"

enum { PATIENCE_MS = 20 * 1000 };

static int set_up(void **state)
{
    *state = test_papers_new();
    return 0;
}

static int tear_down(void **state)
{
    test_papers_free(*state);
    return 0;
}

static bool ask(struct cr_http_requests *client, const struct test_server *server, struct cr_buf *text,
                struct cr_error *err)
{
    cr_autofree char *url = test_server_url(server, "/");
    const struct cr_http_request request = {.method = "GET", .url = url, .timeout_ms = PATIENCE_MS};
    CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
    *err = (struct cr_error){0};
    cr_buf_reset(text);
    if (!cr_http_do(client, &request, &response, err))
        return false;
    return response.status == 200 && cr_buf_append(text, response.body.data, response.body.len);
}

/* One request with these credentials, by connections of its own. */
static bool ask_as(const struct cr_http_tls *tls, const struct test_server *server, struct cr_buf *text,
                   struct cr_error *err)
{
    struct cr_http_requests *client = cr_http_requests_new(tls, NULL);
    bool ok = ask(client, server, text, err);
    cr_http_requests_free(client);
    return ok;
}

static struct test_server *server_with(const struct test_cert *cert, const struct test_cert *client_ca)
{
    return test_server_new(
        &(struct test_server_options){.cert = cert, .client_ca = client_ca, .serve = test_serve_who});
}

static void the_server_must_be_of_our_ca_and_of_its_name(void **state)
{
    struct test_papers *f = *state;
    cr_autofree char *both = test_concat(f->other_ca->cert_pem, f->ca->cert_pem, NULL);
    const struct {
        const char *rule;
        const struct test_cert *cert;
        struct cr_http_tls tls;
        const char *sees; /* NULL: refused */
    } cases[] = {
        {"its CA, its address", f->server, {.ca_pem = f->ca->cert_pem}, "||127.0.0.1:"},
        {"a bundle with its CA", f->server, {.ca_pem = both}, "||127.0.0.1:"},
        {"another CA", f->server, {.ca_pem = f->other_ca->cert_pem}, NULL},
        {"the system's CAs", f->server, {0}, NULL},
        {"another name", f->by_name, {.ca_pem = f->ca->cert_pem}, NULL},
        {"the name given",
         f->by_name,
         {.ca_pem = f->ca->cert_pem, .server_name = "api.internal"},
         "api.internal||127.0.0.1:"},
        {"the name given, which is not its",
         f->server,
         {.ca_pem = f->ca->cert_pem, .server_name = "api.internal"},
         NULL},
        {"the name given, of another CA",
         f->by_name,
         {.ca_pem = f->other_ca->cert_pem, .server_name = "api.internal"},
         NULL},
        {"an address given", f->server, {.ca_pem = f->ca->cert_pem, .server_name = "127.0.0.1"}, "||127.0.0.1:"},
        {"another address given", f->server, {.ca_pem = f->ca->cert_pem, .server_name = "10.0.0.1"}, NULL},
        {"an IPv6 address given", f->server, {.ca_pem = f->ca->cert_pem, .server_name = "fd00::1"}, NULL},
        {"no verification", f->by_name, {.insecure = true}, "||127.0.0.1:"},
        {"no verification, though there is a CA",
         f->by_name,
         {.ca_pem = f->other_ca->cert_pem, .insecure = true},
         "||127.0.0.1:"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(test_server) struct test_server *server = server_with(cases[i].cert, NULL);
        CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
        struct cr_error err;
        bool ok = ask_as(&cases[i].tls, server, &text, &err);
        if (ok != (cases[i].sees != NULL))
            fail_msg("%s: %s", cases[i].rule, ok ? "was accepted" : err.text);
        if (!ok && (err.kind != CR_ERR_TRANSIENT || !strstr(err.text, "is not trusted: ")))
            fail_msg("%s: %s: %s", cases[i].rule, cr_error_kind_name(err.kind), err.text);
        if (ok && !cr_starts_with(cr_buf_text(&text), cases[i].sees))
            fail_msg("%s: the server saw %s", cases[i].rule, cr_buf_text(&text));
    }
}

static void an_expired_server_certificate_is_refused(void **state)
{
    struct test_papers *f = *state;
    CR_CLEANUP(test_cert)
    struct test_cert *cert =
        test_cert_new(&(struct test_cert_spec){.ips = {"127.0.0.1"}, .issuer = f->ca, .from_s = -7200, .until_s = -60});
    CR_CLEANUP(test_server) struct test_server *server = server_with(cert, NULL);
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    struct cr_error err;
    assert_false(ask_as(&(struct cr_http_tls){.ca_pem = f->ca->cert_pem}, server, &text, &err));
    assert_int_equal(err.kind, CR_ERR_TRANSIENT);
    assert_non_null(strstr(err.text, "expired"));
}

static void the_client_certificate_is_presented(void **state)
{
    struct test_papers *f = *state;
    cr_autofree char *chain = test_concat(f->client_b->cert_pem, f->ca->cert_pem, NULL);
    cr_autofree char *sec1 = test_cert_key_as(f->client_a, "SEC1");
    cr_autofree char *pkcs1 = test_cert_key_as(f->client_b, "PKCS#1");
    const struct {
        struct cr_http_tls tls;
        const char *sees;
    } cases[] = {
        {{.cert_pem = f->client_a->cert_pem, .key_pem = f->client_a->key_pem}, "|client a|"},
        {{.cert_pem = f->client_a->cert_pem, .key_pem = sec1}, "|client a|"},
        {{.cert_pem = chain, .key_pem = pkcs1}, "|client b|"},
    };
    CR_CLEANUP(test_server) struct test_server *server = server_with(f->server, f->ca);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_http_tls tls = cases[i].tls;
        tls.ca_pem = f->ca->cert_pem;
        CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
        struct cr_error err;
        if (!ask_as(&tls, server, &text, &err))
            fail_msg("case %zu: %s", i, err.text);
        assert_true(cr_starts_with(cr_buf_text(&text), cases[i].sees));
    }
}

/* Its words may be the alert, or be overtaken by the reset: a person may have to grant something, so it is retried. */
static void a_missing_client_certificate_is_transient(void **state)
{
    struct test_papers *f = *state;
    CR_CLEANUP(test_server) struct test_server *server = server_with(f->server, f->ca);
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    struct cr_error err;
    assert_false(ask_as(&(struct cr_http_tls){.ca_pem = f->ca->cert_pem}, server, &text, &err));
    assert_int_equal(err.kind, CR_ERR_TRANSIENT);
}

static void credentials_that_cannot_work_are_invalid(void **state)
{
    struct test_papers *f = *state;
    cr_autofree char *encrypted = test_cert_key_as(f->client_a, "PKCS#8 encrypted");
    cr_autofree char *old_encrypted = test_cert_key_as(f->client_a, "Proc-Type encrypted");
    const char *ca = f->ca->cert_pem;
    const char *cert = f->client_a->cert_pem;
    const struct {
        const char *rule;
        struct cr_http_tls tls;
        const char *words;
    } cases[] = {
        {"a key of another certificate",
         {.ca_pem = ca, .cert_pem = cert, .key_pem = f->client_b->key_pem},
         "client certificate"},
        {"a certificate without key", {.ca_pem = ca, .cert_pem = cert}, "only of use together"},
        {"a key without certificate", {.ca_pem = ca, .key_pem = f->client_a->key_pem}, "only of use together"},
        {"a key that is none", {.ca_pem = ca, .cert_pem = cert, .key_pem = "key"}, "client certificate"},
        {"an empty key", {.ca_pem = ca, .cert_pem = cert, .key_pem = ""}, "client certificate"},
        {"an encrypted key", {.ca_pem = ca, .cert_pem = cert, .key_pem = encrypted}, "client certificate"},
        {"a key encrypted in the old way",
         {.ca_pem = ca, .cert_pem = cert, .key_pem = old_encrypted},
         "client certificate"},
        {"a certificate that is none",
         {.ca_pem = ca, .cert_pem = "x", .key_pem = f->client_a->key_pem},
         "client certificate"},
        {"a CA that is none", {.ca_pem = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"}, "CA bundle"},
        {"a CA without any PEM", {.ca_pem = "hello"}, "CA bundle"},
        {"an empty CA", {.ca_pem = ""}, "CA bundle"},
        {"a server name that is none", {.ca_pem = ca, .server_name = "a b/c"}, "server name"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(test_server) struct test_server *server = server_with(f->server, NULL);
        CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
        struct cr_error err;
        if (ask_as(&cases[i].tls, server, &text, &err))
            fail_msg("%s: was accepted", cases[i].rule);
        if (err.kind != CR_ERR_INVALID || !strstr(err.text, cases[i].words))
            fail_msg("%s: %s: %s", cases[i].rule, cr_error_kind_name(err.kind), err.text);
    }
}

static void a_server_without_tls_is_reported(void **state)
{
    (void)state;
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = test_serve_who});
    cr_autofree char *url = cr_asprintf("https://127.0.0.1:%d/", test_server_port(server));
    struct cr_http_requests *client = cr_http_requests_new(NULL, NULL);
    const struct cr_http_request request = {.method = "GET", .url = url, .timeout_ms = 300};
    struct cr_http_response response;
    struct cr_error err = {0};
    assert_false(cr_http_do(client, &request, &response, &err));
    assert_int_equal(err.kind, CR_ERR_TRANSIENT);
    if (!strstr(err.text, "(in the TLS handshake)"))
        fail_msg("%s", err.text);
    cr_http_requests_free(client);
}

/* --- new credentials --- */

static void new_credentials_open_new_connections(void **state)
{
    struct test_papers *f = *state;
    const struct cr_http_tls a = {
        .ca_pem = f->ca->cert_pem, .cert_pem = f->client_a->cert_pem, .key_pem = f->client_a->key_pem};
    const struct cr_http_tls b = {
        .ca_pem = f->ca->cert_pem, .cert_pem = f->client_b->cert_pem, .key_pem = f->client_b->key_pem};
    CR_CLEANUP(test_server) struct test_server *server = server_with(f->server, f->ca);
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    struct cr_error err;
    struct cr_http_requests *client = cr_http_requests_new(&a, NULL);
    for (int i = 0; i < 3; i++) {
        assert_true(ask(client, server, &text, &err));
        assert_true(cr_starts_with(cr_buf_text(&text), "|client a|"));
        cr_http_requests_set_tls(client, &a); /* read again, nothing new */
    }
    assert_int_equal(test_server_accepted(server), 1);
    cr_http_requests_set_tls(client, &b);
    for (int i = 0; i < 3; i++) {
        assert_true(ask(client, server, &text, &err));
        assert_true(cr_starts_with(cr_buf_text(&text), "|client b|"));
    }
    assert_int_equal(test_server_accepted(server), 2);
    cr_http_requests_free(client);
}

static void a_ca_that_is_withdrawn_is_not_trusted_by_old_connections(void **state)
{
    struct test_papers *f = *state;
    CR_CLEANUP(test_server) struct test_server *server = server_with(f->server, NULL);
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    struct cr_error err;
    struct cr_http_requests *client = cr_http_requests_new(&(struct cr_http_tls){.ca_pem = f->ca->cert_pem}, NULL);
    assert_true(ask(client, server, &text, &err));
    cr_http_requests_set_tls(client, &(struct cr_http_tls){.ca_pem = f->other_ca->cert_pem});
    assert_false(ask(client, server, &text, &err));
    assert_non_null(strstr(err.text, "is not trusted"));
    cr_http_requests_set_tls(client, &(struct cr_http_tls){.ca_pem = f->ca->cert_pem});
    assert_true(ask(client, server, &text, &err));
    cr_http_requests_free(client);
}

/* A request under way while the credentials change. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool asked;
    bool open;
};

static void gate_set(struct gate *gate, bool *what)
{
    pthread_mutex_lock(&gate->lock);
    *what = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static void gate_wait(struct gate *gate, const bool *what)
{
    pthread_mutex_lock(&gate->lock);
    while (!*what)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static void serve_behind_gate(struct test_conn *conn, void *arg)
{
    struct gate *gate = arg;
    if (!test_conn_request(conn))
        return;
    if (conn->number == 1) {
        gate_set(gate, &gate->asked);
        gate_wait(gate, &gate->open);
    }
    test_conn_answer(conn, 200, "", cr_or_empty(conn->client_cn));
    test_conn_wait_closed(conn);
}

struct slow_call {
    pthread_t thread;
    struct cr_http_requests *client;
    struct test_server *server;
    struct cr_buf text;
    struct cr_error err;
    bool ok;
};

static void *ask_slowly(void *arg)
{
    struct slow_call *call = arg;
    call->ok = ask(call->client, call->server, &call->text, &call->err);
    return NULL;
}

static void what_is_under_way_goes_on_with_its_old_credentials(void **state)
{
    struct test_papers *f = *state;
    const struct cr_http_tls a = {
        .ca_pem = f->ca->cert_pem, .cert_pem = f->client_a->cert_pem, .key_pem = f->client_a->key_pem};
    const struct cr_http_tls b = {
        .ca_pem = f->ca->cert_pem, .cert_pem = f->client_b->cert_pem, .key_pem = f->client_b->key_pem};
    struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(
        &(struct test_server_options){.cert = f->server, .client_ca = f->ca, .serve = serve_behind_gate, .arg = &gate});
    struct slow_call slow = {.client = cr_http_requests_new(&a, NULL), .server = server};
    assert_int_equal(pthread_create(&slow.thread, NULL, ask_slowly, &slow), 0);
    gate_wait(&gate, &gate.asked);
    cr_http_requests_set_tls(slow.client, &b);
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    struct cr_error err;
    assert_true(ask(slow.client, server, &text, &err));
    assert_string_equal(text.data, "client b");
    gate_set(&gate, &gate.open);
    pthread_join(slow.thread, NULL);
    assert_true(slow.ok);
    assert_string_equal(slow.text.data, "client a");
    assert_true(test_server_wait_ended(server, 1, NULL)); /* no stream uses it any more */
    cr_buf_dispose(&slow.text);
    cr_http_requests_free(slow.client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_server_must_be_of_our_ca_and_of_its_name),
        cmocka_unit_test(an_expired_server_certificate_is_refused),
        cmocka_unit_test(the_client_certificate_is_presented),
        cmocka_unit_test(a_missing_client_certificate_is_transient),
        cmocka_unit_test(credentials_that_cannot_work_are_invalid),
        cmocka_unit_test(a_server_without_tls_is_reported),
        cmocka_unit_test(new_credentials_open_new_connections),
        cmocka_unit_test(a_ca_that_is_withdrawn_is_not_trusted_by_old_connections),
        cmocka_unit_test(what_is_under_way_goes_on_with_its_old_credentials),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
