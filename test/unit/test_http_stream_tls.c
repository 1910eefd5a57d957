/* Streams over TLS: which servers are trusted, how we authenticate, and what becomes of connections when that
 * changes. */
#include "net/http.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "support/streamscene.h"

static int set_up_papers(void **state)
{
    set_up(state);
    ((struct fixture *)*state)->papers = test_papers_new();
    return 0;
}

static int tear_down_papers(void **state)
{
    struct test_papers *papers = ((struct fixture *)*state)->papers;
    tear_down(state);
    test_papers_free(papers);
    return 0;
}

#define with_papers(test) cmocka_unit_test_setup_teardown(test, set_up_papers, tear_down_papers)

/* --- which servers are trusted, and how we authenticate --- */

static struct test_server *server_with(const struct test_cert *cert, const struct test_cert *client_ca)
{
    return test_server_new(
        &(struct test_server_options){.cert = cert, .client_ca = client_ca, .serve = test_serve_who});
}

static struct cr_http_tls credentials(const struct test_papers *p, const struct test_cert *client)
{
    return (struct cr_http_tls){.ca_pem = p->ca->cert_pem, .cert_pem = client->cert_pem, .key_pem = client->key_pem};
}

struct tls_case {
    const char *rule;
    const struct test_cert *cert;      /* the server's */
    const struct test_cert *client_ca; /* NULL: it asks for no client certificate */
    struct cr_http_tls tls;
    const char *sees;        /* what the server sees begins so; NULL: the stream fails */
    enum cr_error_kind kind; /* then */
    const char *words;
};

static void assert_tls_case(const struct reader *reader, const struct tls_case *expected)
{
    if (reader->failed != (expected->sees == NULL))
        fail_msg("%s: %s", expected->rule, reader->failed ? reader->err.text : "was accepted");
    if (!reader->failed && !cr_starts_with(cr_buf_text(&reader->text), expected->sees))
        fail_msg("%s: the server saw %s", expected->rule, cr_buf_text(&reader->text));
    if (reader->failed && (reader->err.kind != expected->kind || !strstr(reader->err.text, expected->words)))
        fail_msg("%s: %s: %s", expected->rule, cr_error_kind_name(reader->err.kind), reader->err.text);
    assert_true(!reader->failed || reader->statuses == 0);
}

/* Each by a client and a server of its own, all at once. */
static void assert_tls_cases(struct fixture *f, const struct tls_case *cases, size_t len)
{
    struct reader readers[MOST_AT_ONCE] = {0};
    struct test_server *servers[MOST_AT_ONCE];
    assert_in_range(len, 1, MOST_AT_ONCE);
    for (size_t i = 0; i < len; i++) {
        servers[i] = server_with(cases[i].cert, cases[i].client_ca);
        readers[i].client = cr_http_client_new(f->loop, &cases[i].tls, NULL);
        open_stream(&readers[i], f, servers[i], PATIENCE_MS);
    }
    run(f);
    for (size_t i = 0; i < len; i++) {
        cr_http_client_free(readers[i].client);
        test_server_free(servers[i]);
        assert_tls_case(&readers[i], &cases[i]);
        cr_buf_dispose(&readers[i].text);
    }
}

static void the_server_must_be_of_our_ca_and_of_its_name(void **state)
{
    static const char refused[] = "the server's certificate is not trusted: ";
    const struct test_papers *p = ((struct fixture *)*state)->papers;
    const char *ca = p->ca->cert_pem;
    const char *other_ca = p->other_ca->cert_pem;
    CR_CLEANUP(test_cert)
    struct test_cert *expired =
        test_cert_new(&(struct test_cert_spec){.ips = {"127.0.0.1"}, .issuer = p->ca, .from_s = -7200, .until_s = -60});
    const struct cr_http_tls by_address = {.ca_pem = ca};
    const struct cr_http_tls by_name = {.ca_pem = ca, .server_name = "api.internal"};
    const struct cr_http_tls by_name_of_other = {.ca_pem = other_ca, .server_name = "api.internal"};
    const struct tls_case cases[] = {
        {"its CA, its address", p->server, NULL, by_address, "||127.0.0.1:", 0, NULL},
        {"the name given", p->by_name, NULL, by_name, "api.internal||127.0.0.1:", 0, NULL},
        {"no verification", p->by_name, NULL, {.ca_pem = other_ca, .insecure = true}, "||127.0.0.1:", 0, NULL},
        {"another CA", p->server, NULL, {.ca_pem = other_ca}, NULL, CR_ERR_TRANSIENT, refused},
        {"the system's CAs", p->server, NULL, {0}, NULL, CR_ERR_TRANSIENT, refused},
        {"another name", p->by_name, NULL, by_address, NULL, CR_ERR_TRANSIENT, refused},
        {"another name, in words", p->by_name, NULL, by_address, NULL, CR_ERR_TRANSIENT, "'127.0.0.1'"},
        {"the name given, of another CA", p->by_name, NULL, by_name_of_other, NULL, CR_ERR_TRANSIENT, refused},
        {"the name given, which is not its", p->server, NULL, by_name, NULL, CR_ERR_TRANSIENT, "'api.internal'"},
        {"expired", expired, NULL, by_address, NULL, CR_ERR_TRANSIENT, refused},
        {"expired, in words", expired, NULL, by_address, NULL, CR_ERR_TRANSIENT, "expired"},
    };
    assert_tls_cases(*state, cases, cr_array_len(cases));
}

static void we_authenticate_with_our_certificate(void **state)
{
    const struct test_papers *p = ((struct fixture *)*state)->papers;
    const char *ca = p->ca->cert_pem;
    const struct cr_http_tls ours = credentials(p, p->client_a);
    struct cr_http_tls by_name = ours;
    by_name.server_name = "api.internal";
    const struct tls_case cases[] = {
        {"one that is asked for", p->server, p->ca, ours, "|client a|", 0, NULL},
        {"to a name that is given", p->by_name, p->ca, by_name, "api.internal|client a|127.0.0.1:", 0, NULL},
        {"one that nobody asks for", p->server, NULL, ours, "||", 0, NULL},
        /* Its words may be the alert, or be overtaken by the reset. */
        {"none where one is asked for", p->server, p->ca, {.ca_pem = ca}, NULL, CR_ERR_TRANSIENT, "GET https://127."},
    };
    assert_tls_cases(*state, cases, cr_array_len(cases));
}

static void credentials_that_cannot_work_are_invalid(void **state)
{
    const struct test_papers *p = ((struct fixture *)*state)->papers;
    const struct test_cert *server = p->server;
    const char *cert = p->client_a->cert_pem;
    const char *key = p->client_a->key_pem;
    const char *other_key = p->client_b->key_pem;
    const struct tls_case cases[] = {
        {"a key of another certificate",
         server,
         NULL,
         {.insecure = true, .cert_pem = cert, .key_pem = other_key},
         NULL,
         CR_ERR_INVALID,
         "the client certificate or its key cannot be used: "},
        {"no key", server, NULL, {.cert_pem = cert}, NULL, CR_ERR_INVALID, "only of use together"},
        {"no certificate", server, NULL, {.key_pem = key}, NULL, CR_ERR_INVALID, "only of use together"},
        {"no CA", server, NULL, {.ca_pem = "x"}, NULL, CR_ERR_INVALID, "the CA bundle cannot be used: "},
        {"no name", server, NULL, {.server_name = "a b/c"}, NULL, CR_ERR_INVALID, "not a server name for TLS"},
    };
    assert_tls_cases(*state, cases, cr_array_len(cases));
}

/* One after the other. */
static void read_in_order(struct fixture *f, struct test_server *server, struct reader *readers, size_t len)
{
    cr_autofree char *url = test_server_url(server, "/watch");
    const struct cr_http_request request = {.method = "GET", .url = url};
    for (size_t i = 0; i < len; i++) {
        readers[i].fixture = f;
        readers[i].request = &request;
        readers[i].idle_ms = PATIENCE_MS;
        readers[i].start_on_end = i + 1 < len ? &readers[i + 1] : NULL;
    }
    start(&readers[0]);
    run(f);
}

static void new_credentials_open_a_new_connection_and_the_same_do_not(void **state)
{
    const struct test_papers *p = ((struct fixture *)*state)->papers;
    const struct cr_http_tls a = credentials(p, p->client_a);
    const struct cr_http_tls b = credentials(p, p->client_b);
    struct reader readers[] = {{.renew = &a}, {.renew = &a}, {0}, {.renew = &b}, {.renew = &b}};
    static const char *const seen[] = {"|client a|", "|client a|", "|client a|", "|client b|", "|client b|"};
    CR_CLEANUP(test_server) struct test_server *server = server_with(p->server, p->ca);
    read_in_order(*state, server, readers, cr_array_len(readers));
    for (size_t i = 0; i < cr_array_len(readers); i++) {
        assert_ended_well(&readers[i]);
        assert_true(cr_starts_with(cr_buf_text(&readers[i].text), seen[i]));
        cr_buf_dispose(&readers[i].text);
    }
    assert_int_equal(test_server_accepted(server), 2);
    assert_true(test_server_wait_ended(server, 1, NULL)); /* the old one is closed, though the client is there */
}

static void a_ca_that_is_withdrawn_is_not_trusted_by_an_old_connection(void **state)
{
    const struct test_papers *p = ((struct fixture *)*state)->papers;
    const struct cr_http_tls right = {.ca_pem = p->ca->cert_pem};
    const struct cr_http_tls wrong = {.ca_pem = p->other_ca->cert_pem};
    struct reader readers[] = {{.renew = &right}, {.renew = &wrong}, {.renew = &right}};
    CR_CLEANUP(test_server) struct test_server *server = server_with(p->server, NULL);
    read_in_order(*state, server, readers, cr_array_len(readers));
    assert_ended_well(&readers[0]);
    assert_ended(&readers[1], CR_ERR_TRANSIENT, "is not trusted");
    assert_ended_well(&readers[2]);
    cr_buf_dispose(&readers[0].text);
    cr_buf_dispose(&readers[2].text);
}

/* The first connection's answer ends once arg is posted. */
static void serve_behind_gate(struct test_conn *conn, void *arg)
{
    if (!test_conn_request(conn))
        return;
    cr_autofree char *chunk = cr_asprintf("%zx\r\n%s\r\n", strlen(conn->client_cn), conn->client_cn);
    test_conn_puts(conn, chunked);
    test_conn_puts(conn, chunk);
    if (conn->number == 1)
        sem_wait(arg);
    test_conn_puts(conn, "5\r\n, end\r\n0\r\n\r\n");
}

static struct test_server *server_behind_gate(const struct test_papers *p, sem_t *gate)
{
    return test_server_new(
        &(struct test_server_options){.cert = p->server, .client_ca = p->ca, .serve = serve_behind_gate, .arg = gate});
}

static void a_stream_under_way_goes_on_while_credentials_change(void **state)
{
    const struct test_papers *p = ((struct fixture *)*state)->papers;
    const struct cr_http_tls a = credentials(p, p->client_a);
    const struct cr_http_tls b = credentials(p, p->client_b);
    sem_t gate;
    sem_init(&gate, 0, 0);
    CR_CLEANUP(test_server) struct test_server *server = server_behind_gate(p, &gate);
    cr_autofree char *url = test_server_url(server, "/");
    const struct cr_http_request request = {.method = "GET", .url = url};
    struct reader after = {.fixture = *state, .request = &request, .renew = &b, .open_on_end = &gate};
    struct reader before = {.fixture = *state, .request = &request, .renew = &a, .start_on_data = &after};
    start(&before);
    run(*state);
    assert_ended_well(&before);
    assert_string_equal(cr_buf_text(&before.text), "client a, end");
    assert_ended_well(&after);
    assert_string_equal(cr_buf_text(&after.text), "client b, end");
    cr_buf_dispose(&before.text);
    cr_buf_dispose(&after.text);
    sem_destroy(&gate);
}

/* Once the handshake brought no HTTP/2 the second opens its own, and is over while the first still waits. Where it is
 * shared: test_shared_connection.py. */
static void streams_over_tls_without_http_2_do_not_wait_for_each_other(void **state)
{
    const struct test_papers *p = ((struct fixture *)*state)->papers;
    const struct cr_http_tls a = credentials(p, p->client_a);
    sem_t gate;
    sem_init(&gate, 0, 0);
    CR_CLEANUP(test_server) struct test_server *server = server_behind_gate(p, &gate);
    struct reader readers[] = {{.renew = &a, .open_on_end = &gate}, {.open_on_end = &gate}};
    for (size_t i = 0; i < cr_array_len(readers); i++)
        open_stream(&readers[i], *state, server, PATIENCE_MS);
    run(*state);
    for (size_t i = 0; i < cr_array_len(readers); i++) {
        assert_ended_well(&readers[i]);
        assert_string_equal(cr_buf_text(&readers[i].text), "client a, end");
        cr_buf_dispose(&readers[i].text);
    }
    assert_int_equal(test_server_accepted(server), 2);
    sem_destroy(&gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_papers(the_server_must_be_of_our_ca_and_of_its_name),
        with_papers(we_authenticate_with_our_certificate),
        with_papers(credentials_that_cannot_work_are_invalid),
        with_papers(new_credentials_open_a_new_connection_and_the_same_do_not),
        with_papers(a_ca_that_is_withdrawn_is_not_trusted_by_an_old_connection),
        with_papers(a_stream_under_way_goes_on_while_credentials_change),
        with_papers(streams_over_tls_without_http_2_do_not_wait_for_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
