#include "net/http_transfer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "net/http_once.h"
#include "support/says.h"
#include "support/testserver.h"

enum { SHORT_MS = 300, LONG_MS = 60 * 1000, PATIENCE_MS = 20 * 1000 };

struct fixture {
    struct cr_http_transfer transfer;
    struct cr_http_identity *identity;
    struct cr_http_response response;
};

static int set_up(void **state)
{
    struct fixture *f = cr_new(struct fixture);
    f->transfer = (struct cr_http_transfer){.multi = cr_http_transfer_multi(),
                                            .user_agent = "certroll-test/1",
                                            .cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                            .keeps = true};
    assert_true(f->transfer.cancel_fd >= 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    curl_multi_cleanup(f->transfer.multi);
    cr_http_identity_unref(f->identity);
    cr_http_response_dispose(&f->response);
    close(f->transfer.cancel_fd);
    free(f);
    return 0;
}

static bool ask(struct fixture *f, const char *url, const char *proxy, int within_ms, struct cr_error *err)
{
    const struct cr_http_request request = {.method = "GET", .url = url, .bearer = "token", .timeout_ms = LONG_MS};
    f->identity = cr_http_identity_new(&(struct cr_http_tls){.proxy = proxy});
    f->transfer.identity = f->identity;
    f->transfer.request = &request;
    f->transfer.deadline_ms = cr_clock_monotonic_ms() + within_ms;
    return cr_http_transfer_run(&f->transfer, &f->response, err);
}

static bool ask_through(struct fixture *f, const struct test_server *proxy, int within_ms, struct cr_error *err)
{
    cr_autofree char *url = test_server_url(proxy, "");
    return ask(f, "http://api.invalid:8080/", url, within_ms, err);
}

/* A request that is tried once more has not its whole time again. */
static void opening_takes_no_longer_than_what_is_left(void **state)
{
    struct cr_error err = {0};
    CR_CLEANUP(test_server)
    struct test_server *silent = test_server_new(&(struct test_server_options){.serve = test_serve_silence});
    int64_t start_ms = cr_clock_monotonic_ms();
    assert_false(ask_through(*state, silent, SHORT_MS, &err));
    assert_says(&err, CR_ERR_TRANSIENT, "no answer within");
    assert_true(cr_clock_monotonic_ms() - start_ms < CR_HTTP_CONNECT_TIMEOUT_MS);
}

static void a_cancelled_caller_does_not_wait_for_a_connection(void **state)
{
    struct fixture *f = *state;
    struct cr_error err = {0};
    CR_CLEANUP(test_server)
    struct test_server *silent = test_server_new(&(struct test_server_options){.serve = test_serve_silence});
    assert_int_equal(eventfd_write(f->transfer.cancel_fd, 1), 0);
    assert_false(ask_through(f, silent, LONG_MS, &err));
    assert_int_equal(err.kind, CR_ERR_CANCELLED);
}

/* It must learn nothing of the token. */
static void serve_as_proxy(struct test_conn *conn, void *arg)
{
    if (test_conn_request(conn) && cr_starts_with(conn->head, "CONNECT api.invalid:8080 HTTP/1.1\r\n") &&
        !strstr(conn->head, "token"))
        test_conn_puts(conn, arg);
}

static void a_proxy_that_refuses_says_so(void **state)
{
    struct cr_error err = {0};
    static char answer[] = "HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Negotiate\r\nContent-Length: 0\r\n\r\n";
    CR_CLEANUP(test_server)
    struct test_server *proxy = test_server_new(&(struct test_server_options){.serve = serve_as_proxy, .arg = answer});
    assert_false(ask_through(*state, proxy, PATIENCE_MS, &err));
    assert_says(&err, CR_ERR_TRANSIENT, "407");
}

/* Of all that it sends only a sixth is body, so its cap is not reached before. */
static void serve_chunks_without_end(struct test_conn *conn, void *arg)
{
    (void)arg;
    static char chunks[6 * 1024];
    for (size_t i = 0; i < sizeof chunks; i += 6)
        memcpy(chunks + i, "1\r\na\r\n", 6);
    if (!test_conn_request(conn) || !test_conn_puts(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
        return;
    while (test_conn_write(conn, chunks, sizeof chunks))
        ;
}

/* There is always something to read, so nothing is ever waited for. */
static void a_server_that_never_stops_sending_is_late(void **state)
{
    struct cr_error err = {0};
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = serve_chunks_without_end});
    cr_autofree char *url = test_server_url(server, "/");
    int64_t start_ms = cr_clock_monotonic_ms();
    assert_false(ask(*state, url, NULL, SHORT_MS, &err));
    assert_says(&err, CR_ERR_TRANSIENT, "(reading the response)");
    assert_true(cr_clock_monotonic_ms() - start_ms < PATIENCE_MS);
}

/* Its body does not end in time. */
static void serve_half_a_refusal(struct test_conn *conn, void *arg)
{
    (void)arg;
    if (test_conn_request(conn) && test_conn_puts(conn, "HTTP/1.1 403 No\r\nContent-Length: 9\r\n\r\nhalf"))
        test_conn_wait_closed(conn);
}

static void a_refusal_that_does_not_end_is_still_one(void **state)
{
    struct fixture *f = *state;
    struct cr_error err = {0};
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = serve_half_a_refusal});
    cr_autofree char *url = test_server_url(server, "/");
    assert_true(ask(f, url, NULL, SHORT_MS, &err));
    assert_int_equal(f->response.status, 403);
    assert_string_equal(cr_buf_text(&f->response.body), "half");
    assert_int_equal(f->transfer.fd, CURL_SOCKET_BAD);
}

static void serve_ok(struct test_conn *conn, void *arg)
{
    (void)arg;
    while (test_conn_request(conn))
        test_conn_answer(conn, 200, "", "ok");
}

static void one_request_leaves_no_connection(void **state)
{
    (void)state;
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = serve_ok});
    cr_autofree char *url = test_server_url(server, "/");
    for (unsigned i = 1; i <= 2; i++) {
        const struct cr_http_request request = {.method = "GET", .url = url, .timeout_ms = PATIENCE_MS};
        CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
        struct cr_error err = {0};
        assert_true(cr_http_once(NULL, &request, -1, &response, &err));
        assert_string_equal(cr_buf_text(&response.body), "ok");
        assert_true(test_server_wait_ended(server, i, NULL));
    }
}

static void serve_packed(struct test_conn *conn, void *arg)
{
    (void)arg;
    if (test_conn_request(conn))
        test_conn_answer(conn, 200, "Content-Encoding: gzip\r\n", "packed");
}

/* Of what a trigger asks only the status counts. */
static void one_request_takes_an_answer_as_it_is(void **state)
{
    (void)state;
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = serve_packed});
    cr_autofree char *url = test_server_url(server, "/");
    const struct cr_http_request request = {.method = "GET", .url = url, .timeout_ms = PATIENCE_MS};
    CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
    struct cr_error err = {0};
    if (!cr_http_once(NULL, &request, -1, &response, &err))
        fail_msg("%s", err.text);
    assert_string_equal(cr_buf_text(&response.body), "packed");
}

static int listen_without_accepting(struct sockaddr_in *address)
{
    socklen_t len = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(fd, (struct sockaddr *)address, len), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, &len), 0);
    return fd;
}

/* Its SYN gets no answer: the queue of the listener is full. */
static void connecting_ends_with_the_time_for_the_request(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_in address;
    struct cr_error err = {0};
    int listener = listen_without_accepting(&address);
    int waiting = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(waiting, (struct sockaddr *)&address, sizeof address), 0);
    cr_autofree char *url = cr_asprintf("http://127.0.0.1:%d/", ntohs(address.sin_port));
    int64_t start_ms = cr_clock_monotonic_ms();
    assert_false(ask(f, url, NULL, SHORT_MS, &err));
    assert_says(&err, CR_ERR_TRANSIENT, "(connecting)");
    assert_true(cr_clock_monotonic_ms() - start_ms < CR_HTTP_CONNECT_TIMEOUT_MS);
    close(waiting);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(opening_takes_no_longer_than_what_is_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_cancelled_caller_does_not_wait_for_a_connection, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_proxy_that_refuses_says_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_never_stops_sending_is_late, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_refusal_that_does_not_end_is_still_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(connecting_ends_with_the_time_for_the_request, set_up, tear_down),
        cmocka_unit_test(one_request_leaves_no_connection),
        cmocka_unit_test(one_request_takes_an_answer_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
