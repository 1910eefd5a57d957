/* One connection for request after request: what is asked again, and what is asked on a new one. */
#include "net/http_requests.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "net/http_internal.h"
#include "support/says.h"
#include "support/testserver.h"

enum { PATIENCE_MS = 20 * 1000 };

static int set_up(void **state)
{
    *state = cr_http_requests_new(NULL, "certroll-test/1");
    return 0;
}

static int tear_down(void **state)
{
    cr_http_requests_free(*state);
    return 0;
}

/* "METHOD|token|body" of each request, as many as arg says (0: all); then the connection is closed. */
static void serve_asked(struct test_conn *conn, void *arg)
{
    const int *most = arg;
    for (int i = 0; (!*most || i < *most) && test_conn_request(conn); i++) {
        const char *token = strstr(conn->head, "Authorization: Bearer ");
        size_t len = token ? strcspn(token + 22, "\r") : 0;
        cr_autofree char *text = cr_asprintf("%.*s|%.*s|%.*s", (int)strcspn(conn->head, " "), conn->head, (int)len,
                                             token ? token + 22 : "", (int)conn->body_len, cr_or_empty(conn->body));
        test_conn_answer(conn, 200, "", text);
    }
}

static void assert_answer(struct cr_http_requests *requests, const char *url, const struct cr_http_request *like,
                          const char *expected)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
    struct cr_http_request request = *like;
    request.url = url;
    request.body_len = request.body ? strlen(request.body) : 0;
    request.timeout_ms = PATIENCE_MS;
    if (!cr_http_do(requests, &request, &response, &err))
        fail_msg("%s: %s", expected, err.text);
    assert_int_equal(response.status, 200);
    assert_string_equal(cr_buf_text(&response.body), expected);
}

static void each_request_is_sent_as_it_is_on_one_connection(void **state)
{
    static const struct {
        struct cr_http_request request;
        const char *sees;
    } cases[] = {
        {{.method = "PATCH", .body = "first"}, "PATCH||first"},
        {{.method = "PATCH", .body = "a second that is longer"}, "PATCH||a second that is longer"},
        {{.method = "PATCH", .body = "3"}, "PATCH||3"},
        {{.method = "PATCH", .body = ""}, "PATCH||"},
        {{.method = "PATCH", .body = "4", .bearer = "old"}, "PATCH|old|4"},
        {{.method = "PATCH", .body = "5", .bearer = "new"}, "PATCH|new|5"},
        {{.method = "PATCH", .body = "6", .bearer = "new", .secret = true}, "PATCH|new|6"},
        {{.method = "GET", .bearer = "new"}, "GET|new|"},
        {{.method = "GET"}, "GET||"},
        {{.method = "POST", .body = "7"}, "POST||7"},
    };
    int all = 0;
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = serve_asked, .arg = &all});
    cr_autofree char *url = test_server_url(server, "/x");
    for (size_t i = 0; i < cr_array_len(cases); i++)
        assert_answer(*state, url, &cases[i].request, cases[i].sees);
    assert_int_equal(test_server_accepted(server), 1);
}

static void a_connection_that_was_closed_is_replaced(void **state)
{
    int one = 1;
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = serve_asked, .arg = &one});
    cr_autofree char *url = test_server_url(server, "/");
    for (int i = 1; i <= 3; i++) {
        assert_answer(*state, url, &(struct cr_http_request){.method = "PATCH", .body = "b"}, "PATCH||b");
        assert_int_equal(test_server_accepted(server), i);
    }
}

static void other_credentials_open_a_connection_and_the_same_do_not(void **state)
{
    static const struct {
        struct cr_http_tls tls;
        int connections;
    } cases[] = {{{0}, 1}, {{.insecure = true}, 2}, {{.insecure = true}, 2}, {{0}, 3}};
    int all = 0;
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = serve_asked, .arg = &all});
    cr_autofree char *url = test_server_url(server, "/");
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_http_requests_set_tls(*state, &cases[i].tls);
        assert_answer(*state, url, &(struct cr_http_request){.method = "GET"}, "GET||");
        assert_int_equal(test_server_accepted(server), cases[i].connections);
    }
}

static void serve_raw(struct test_conn *conn, void *arg)
{
    if (test_conn_request(conn))
        test_conn_puts(conn, arg);
}

static void what_fails_says_why_and_leaves_nothing_behind(void **state)
{
    static const struct {
        void (*serve)(struct test_conn *, void *);
        const char *raw;
        struct cr_http_request request;
        enum cr_error_kind kind;
        const char *words;
    } cases[] = {
        {test_serve_silence, NULL, {.timeout_ms = 1000}, CR_ERR_TRANSIENT, "within 1000 ms (waiting for the response)"},
        {test_serve_half, NULL, {.timeout_ms = 1000}, CR_ERR_TRANSIENT, "within 1000 ms (reading the response)"},
        {serve_raw, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", {0}, CR_ERR_TRANSIENT, "was cut off"},
        {serve_raw, "HTTP/1.1 200 OK\r\nContent-Le", {0}, CR_ERR_TRANSIENT, "GET http://127.0.0.1:"},
        {serve_raw,
         "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nninebytes",
         {.max_body = 8},
         CR_ERR_INVALID,
         "longer than the 8 bytes"},
        {serve_raw, "HTTP/1.1 200 OK\r\n\r\n", {.url = "ftp://127.0.0.1/"}, CR_ERR_INVALID, "neither an https"},
        {serve_raw, "HTTP/1.1 200 OK\r\n\r\n", {.bearer = "a\nb"}, CR_ERR_INVALID, "line break"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(test_server)
        struct test_server *server = test_server_new(
            &(struct test_server_options){.serve = cases[i].serve, .arg = (void *)(uintptr_t)cases[i].raw});
        cr_autofree char *url = test_server_url(server, "/");
        struct cr_http_request request = cases[i].request;
        request.method = "GET";
        request.url = request.url ? request.url : url;
        request.timeout_ms = request.timeout_ms ? request.timeout_ms : PATIENCE_MS;
        struct cr_http_response response = {.status = 1};
        for (int twice = 0; twice < 2; twice++) {
            struct cr_error err = {0};
            assert_false(cr_http_do(*state, &request, &response, &err));
            assert_says(&err, cases[i].kind, cases[i].words);
            assert_int_equal(response.status, 0);
            assert_null(response.body.data);
        }
    }
}

/* Over TLS without close_notify, as a server that ends in a hurry. */
static void serve_half_a_refusal(struct test_conn *conn, void *arg)
{
    static const char cut[] = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 9\r\n\r\nhalf";
    (void)arg;
    if (test_conn_request(conn) && test_conn_puts(conn, cut))
        test_conn_hang_up(conn);
}

/* The status has come, and says enough. */
static void a_refusal_that_is_cut_off_is_an_answer(void **state)
{
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.cn = "any"});
    const struct test_cert *const certs[] = {NULL, cert};
    cr_http_requests_set_tls(*state, &(struct cr_http_tls){.insecure = true});
    for (size_t i = 0; i < cr_array_len(certs); i++) {
        CR_CLEANUP(test_server)
        struct test_server *server =
            test_server_new(&(struct test_server_options){.serve = serve_half_a_refusal, .cert = certs[i]});
        cr_autofree char *url = test_server_url(server, "/");
        struct cr_error err = {0};
        CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
        const struct cr_http_request request = {.method = "GET", .url = url, .timeout_ms = PATIENCE_MS};
        if (!cr_http_do(*state, &request, &response, &err))
            fail_msg("%s", err.text);
        assert_int_equal(response.status, 429);
        assert_int_equal(response.retry_after_ms, 7000);
    }
}

/* Answers one request and hangs up on the next. */
static void serve_one_and_hang_up(struct test_conn *conn, void *arg)
{
    (void)arg;
    if (test_conn_request(conn) && test_conn_answer(conn, 200, "", "{}"))
        (void)test_conn_request(conn);
}

/* It may have been closed in the moment that it was used. */
static void a_used_connection_that_says_nothing_is_tried_again_and_a_new_one_is_not(void **state)
{
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = serve_one_and_hang_up});
    cr_autofree char *url = test_server_url(server, "/");
    for (int i = 1; i <= 3; i++) {
        assert_answer(*state, url, &(struct cr_http_request){.method = "PATCH", .body = "b"}, "{}");
        assert_int_equal(test_server_accepted(server), i);
    }
    CR_CLEANUP(test_server)
    struct test_server *mute =
        test_server_new(&(struct test_server_options){.serve = serve_raw, .arg = (void *)(uintptr_t) ""});
    cr_autofree char *nowhere = test_server_url(mute, "/");
    struct cr_error err = {0};
    struct cr_http_response response;
    const struct cr_http_request request = {.method = "GET", .url = nowhere, .timeout_ms = PATIENCE_MS};
    assert_false(cr_http_do(*state, &request, &response, &err));
    assert_says(&err, CR_ERR_TRANSIENT, "no answer came");
    assert_int_equal(test_server_accepted(mute), 1);
}

static void a_server_is_verified_and_shown_who_asks(void **state)
{
    CR_CLEANUP(test_cert) struct test_cert *ca = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
    CR_CLEANUP(test_cert) struct test_cert *other = test_cert_new(&(struct test_cert_spec){.cn = "other", .ca = true});
    CR_CLEANUP(test_cert)
    struct test_cert *leaf = test_cert_new(&(struct test_cert_spec){.cn = "n", .dns = {"api.internal"}, .issuer = ca});
    CR_CLEANUP(test_cert) struct test_cert *client = test_cert_new(&(struct test_cert_spec){.cn = "me", .issuer = ca});
    CR_CLEANUP(test_server)
    struct test_server *server =
        test_server_new(&(struct test_server_options){.serve = test_serve_who, .cert = leaf, .client_ca = ca});
    cr_autofree char *url = test_server_url(server, "/");
    struct cr_http_tls tls = {.ca_pem = ca->cert_pem,
                              .cert_pem = client->cert_pem,
                              .key_pem = client->key_pem,
                              .server_name = "api.internal"};
    cr_http_requests_set_tls(*state, &tls);
    cr_autofree char *expected = cr_asprintf("api.internal|me|127.0.0.1:%d", test_server_port(server));
    for (int i = 0; i < 3; i++)
        assert_answer(*state, url, &(struct cr_http_request){.method = "PATCH", .body = "b", .bearer = "t"}, expected);
    assert_int_equal(test_server_handshakes(server), 1);
    tls.ca_pem = other->cert_pem;
    cr_http_requests_set_tls(*state, &tls);
    struct cr_error err = {0};
    struct cr_http_response response;
    const struct cr_http_request request = {.method = "GET", .url = url, .timeout_ms = PATIENCE_MS};
    assert_false(cr_http_do(*state, &request, &response, &err));
    assert_says(&err, CR_ERR_TRANSIENT, "the server's certificate is not trusted");
    assert_int_equal(test_server_handshakes(server), 1);
}

/* Answers each request, the first one slowly, and hangs up on the second after a while. */
static void serve_one_and_hang_up_late(struct test_conn *conn, void *arg)
{
    atomic_int *seen = arg;
    if (!test_conn_request(conn) || !test_conn_answer(conn, 200, "", "{}") || !test_conn_request(conn))
        return;
    atomic_fetch_add(seen, 1);
    usleep(300 * 1000);
}

/* It may be done already. */
static void a_write_that_was_taken_and_then_dropped_is_not_sent_again_and_a_read_is(void **state)
{
    static const struct {
        const char *method;
        bool ok;
        unsigned connections;
    } cases[] = {{"PATCH", false, 1}, {"GET", true, 2}};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        atomic_int seen = 0;
        CR_CLEANUP(test_server)
        struct test_server *server =
            test_server_new(&(struct test_server_options){.serve = serve_one_and_hang_up_late, .arg = &seen});
        cr_autofree char *url = test_server_url(server, "/");
        const struct cr_http_request request = {.method = cases[i].method, .url = url, .timeout_ms = PATIENCE_MS};
        assert_answer(*state, url, &request, "{}");
        struct cr_error err = {0};
        CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
        assert_int_equal(cr_http_do(*state, &request, &response, &err), cases[i].ok);
        assert_int_equal(atomic_load(&seen), 1);
        assert_int_equal(test_server_accepted(server), cases[i].connections);
        if (!cases[i].ok)
            assert_says(&err, CR_ERR_TRANSIENT, "no answer came");
    }
}

enum { BIG = 8 * 1024 * 1024 };

/* As priority and fairness does it: without having read the body. Go's server sends the end, and waits for half a
 * second before a reset, which would overtake its answer. */
static void serve_refusal_of_what_is_not_read(struct test_conn *conn, void *arg)
{
    static const char refusal[] = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 4\r\n\r\nbusy";
    (void)arg;
    if (test_conn_read(conn, 1000) && test_conn_puts(conn, refusal))
        test_conn_hang_up(conn);
}

static void a_refusal_that_comes_before_all_was_sent_is_an_answer(void **state)
{
    CR_CLEANUP(test_server)
    struct test_server *server =
        test_server_new(&(struct test_server_options){.serve = serve_refusal_of_what_is_not_read});
    cr_autofree char *url = test_server_url(server, "/");
    cr_autofree char *body = cr_calloc(BIG, 1);
    const struct cr_http_request request = {
        .method = "POST", .url = url, .body = body, .body_len = BIG, .timeout_ms = PATIENCE_MS};
    struct cr_error err = {0};
    CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
    if (!cr_http_do(*state, &request, &response, &err))
        fail_msg("%s", err.text);
    assert_int_equal(response.status, 429);
    assert_int_equal(response.retry_after_ms, 1000);
    assert_int_equal(test_server_accepted(server), 1);
}

static void serve_last_words(struct test_conn *conn, void *arg)
{
    (void)arg;
    while (test_conn_request(conn))
        test_conn_answer(conn, 200, "Connection: close\r\n", "{}");
}

static void who_says_that_it_closes_is_asked_on_a_new_connection(void **state)
{
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = serve_last_words});
    cr_autofree char *url = test_server_url(server, "/");
    for (int i = 1; i <= 3; i++) {
        assert_answer(*state, url, &(struct cr_http_request){.method = "PATCH", .body = "b"}, "{}");
        assert_true(test_server_wait_ended(server, (unsigned)i, NULL));
    }
}

static void what_is_compressed_is_no_answer_unless_it_is_a_refusal(void **state)
{
    static const struct {
        const char *raw;
        int status; /* 0: none */
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b", 0},
        {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", 200},
        {"HTTP/1.1 401 No\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b", 401},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(test_server)
        struct test_server *server =
            test_server_new(&(struct test_server_options){.serve = serve_raw, .arg = (void *)(uintptr_t)cases[i].raw});
        cr_autofree char *url = test_server_url(server, "/");
        struct cr_error err = {0};
        CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
        const struct cr_http_request request = {.method = "GET", .url = url, .timeout_ms = PATIENCE_MS};
        assert_int_equal(cr_http_do(*state, &request, &response, &err), cases[i].status != 0);
        assert_int_equal(response.status, cases[i].status);
        assert_int_equal(response.body.len, 0);
        if (!cases[i].status)
            assert_says(&err, CR_ERR_TRANSIENT, "is compressed, which nobody asked for");
    }
}

static void serve_more_than_asked(struct test_conn *conn, void *arg)
{
    static const char twice[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
                                "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    (void)arg;
    while (test_conn_request(conn) && test_conn_puts(conn, twice))
        ;
}

/* What comes behind an answer is never taken for the next one. */
static void who_says_more_than_was_asked_is_asked_on_a_new_connection(void **state)
{
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = serve_more_than_asked});
    cr_autofree char *url = test_server_url(server, "/");
    for (int i = 1; i <= 3; i++) {
        assert_answer(*state, url, &(struct cr_http_request){.method = "GET"}, "{}");
        assert_int_equal(test_server_accepted(server), i);
    }
}

/* In one record: an answer that fills what libcurl reads at a time, and another one, which then waits in OpenSSL. */
static void serve_more_in_one_record(struct test_conn *conn, void *arg)
{
    static const char evil[] = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 4055\r\n\r\n";
    char record[CR_HTTP_READ_SIZE + sizeof evil - 1];
    (void)arg;
    memset(record, 'x', sizeof record);
    memcpy(record, head, sizeof head - 1);
    memcpy(record + CR_HTTP_READ_SIZE, evil, sizeof evil - 1);
    _Static_assert(sizeof head - 1 + 4055 == CR_HTTP_READ_SIZE, "the answer fills it");
    while (test_conn_request(conn) && test_conn_write(conn, record, sizeof record))
        ;
}

static void what_waits_in_tls_is_not_the_next_answer(void **state)
{
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.cn = "any"});
    CR_CLEANUP(test_server)
    struct test_server *server =
        test_server_new(&(struct test_server_options){.serve = serve_more_in_one_record, .cert = cert});
    cr_autofree char *url = test_server_url(server, "/");
    cr_http_requests_set_tls(*state, &(struct cr_http_tls){.insecure = true});
    for (int i = 1; i <= 3; i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
        const struct cr_http_request request = {.method = "GET", .url = url, .timeout_ms = PATIENCE_MS};
        if (!cr_http_do(*state, &request, &response, &err))
            fail_msg("%s", err.text);
        assert_int_equal(response.body.data[0], 'x');
        assert_int_equal(test_server_accepted(server), i);
    }
}

struct asker {
    struct cr_http_requests *requests;
    const char *url;
    struct cr_error err;
    bool ok;
};

static void *ask(void *arg)
{
    struct asker *asker = arg;
    struct cr_http_response response;
    const struct cr_http_request request = {.method = "GET", .url = asker->url, .timeout_ms = PATIENCE_MS};
    asker->ok = cr_http_do(asker->requests, &request, &response, &asker->err);
    return NULL;
}

static void serve_and_record(struct test_conn *conn, void *arg)
{
    if (!test_conn_request(conn))
        return;
    atomic_store((atomic_bool *)arg, true);
    test_conn_wait_closed(conn);
}

static void the_end_cancels_what_is_under_way_and_what_comes_later(void **state)
{
    atomic_bool asked = false;
    CR_CLEANUP(test_server)
    struct test_server *server =
        test_server_new(&(struct test_server_options){.serve = serve_and_record, .arg = &asked});
    cr_autofree char *url = test_server_url(server, "/");
    struct asker asker = {.requests = *state, .url = url};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, ask, &asker), 0);
    while (!atomic_load(&asked))
        usleep(1000);
    int64_t start_ms = cr_clock_monotonic_ms();
    cr_http_requests_cancel(*state);
    pthread_join(thread, NULL);
    assert_true(cr_clock_monotonic_ms() - start_ms < PATIENCE_MS / 2);
    assert_false(asker.ok);
    assert_int_equal(asker.err.kind, CR_ERR_CANCELLED);
    asker.err = (struct cr_error){0};
    ask(&asker);
    assert_false(asker.ok);
    assert_int_equal(asker.err.kind, CR_ERR_CANCELLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_request_is_sent_as_it_is_on_one_connection, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_connection_that_was_closed_is_replaced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_credentials_open_a_connection_and_the_same_do_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_fails_says_why_and_leaves_nothing_behind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_refusal_that_is_cut_off_is_an_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_used_connection_that_says_nothing_is_tried_again_and_a_new_one_is_not, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_write_that_was_taken_and_then_dropped_is_not_sent_again_and_a_read_is, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_refusal_that_comes_before_all_was_sent_is_an_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_says_that_it_closes_is_asked_on_a_new_connection, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_compressed_is_no_answer_unless_it_is_a_refusal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_says_more_than_was_asked_is_asked_on_a_new_connection, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_waits_in_tls_is_not_the_next_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_is_verified_and_shown_who_asks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_end_cancels_what_is_under_way_and_what_comes_later, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
