#include "net/http_link.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "net/http_memory.h"
#include "support/says.h"
#include "support/testserver.h"

enum {
    SHORT_MS = 300,
    LONG_MS = 60 * 1000,
    PATIENCE_MS = 20 * 1000,
    CONNECT_TIMEOUT_MS = 10 * 1000 /* the client's */
};

struct fixture {
    struct cr_http_link link;
    struct cr_http_identity *identity;
};

static int set_up(void **state)
{
    struct fixture *f = cr_new(struct fixture);
    cr_http_global_init();
    cr_http_link_init(&f->link, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    assert_true(f->link.wake_fd >= 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    cr_http_link_close(&f->link);
    cr_http_identity_unref(f->identity);
    close(f->link.wake_fd);
    free(f);
    return 0;
}

static bool open_through(struct fixture *f, const struct test_server *proxy, int within_ms, struct cr_error *err)
{
    cr_autofree char *url = test_server_url(proxy, "");
    const struct cr_http_request request = {
        .method = "GET", .url = "http://api.invalid:8080/", .bearer = "token", .timeout_ms = LONG_MS};
    f->identity = cr_http_identity_new(&(struct cr_http_tls){.proxy = url});
    f->link.deadline_ms = cr_clock_monotonic_ms() + within_ms;
    return cr_http_link_open(&f->link, &request, "certroll-test/1", f->identity, err);
}

/* A request that is tried once more has not its whole time again. */
static void opening_takes_no_longer_than_what_is_left(void **state)
{
    struct cr_error err = {0};
    CR_CLEANUP(test_server)
    struct test_server *silent = test_server_new(&(struct test_server_options){.serve = test_serve_silence});
    int64_t start_ms = cr_clock_monotonic_ms();
    assert_false(open_through(*state, silent, SHORT_MS, &err));
    assert_says(&err, CR_ERR_TRANSIENT, "no answer within");
    assert_true(cr_clock_monotonic_ms() - start_ms < CONNECT_TIMEOUT_MS);
}

static void a_cancelled_caller_does_not_wait_for_a_connection(void **state)
{
    struct fixture *f = *state;
    struct cr_error err = {0};
    CR_CLEANUP(test_server)
    struct test_server *silent = test_server_new(&(struct test_server_options){.serve = test_serve_silence});
    assert_int_equal(eventfd_write(f->link.wake_fd, 1), 0);
    assert_false(open_through(f, silent, LONG_MS, &err));
    assert_int_equal(err.kind, CR_ERR_CANCELLED);
}

/* It must learn nothing of the token. */
static void serve_as_proxy(struct test_conn *conn, void *arg)
{
    const char *answer = arg;
    if (!test_conn_request(conn) || !cr_starts_with(conn->head, "CONNECT api.invalid:8080 HTTP/1.1\r\n") ||
        strstr(conn->head, "token") || !test_conn_puts(conn, answer))
        return;
    static const char filler[64 * 1024];
    while (test_conn_write(conn, filler, sizeof filler))
        ;
}

/* There is always something to read, so nothing is ever waited for. */
static void a_server_that_never_stops_sending_is_late(void **state)
{
    struct fixture *f = *state;
    struct cr_error err = {0};
    char data[8]; /* slower than the server */
    size_t len = 0;
    static char answer[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    CR_CLEANUP(test_server)
    struct test_server *proxy = test_server_new(&(struct test_server_options){.serve = serve_as_proxy, .arg = answer});
    if (!open_through(f, proxy, PATIENCE_MS, &err))
        fail_msg("%s", err.text);
    f->link.deadline_ms = cr_clock_monotonic_ms() + SHORT_MS;
    int64_t give_up_ms = cr_clock_monotonic_ms() + PATIENCE_MS;
    enum cr_http_link_end end = CR_HTTP_LINK_OK;
    while (end == CR_HTTP_LINK_OK && cr_clock_monotonic_ms() < give_up_ms)
        end = cr_http_link_receive(&f->link, data, sizeof data, &len);
    assert_int_equal(end, CR_HTTP_LINK_LATE);
}

static void a_proxy_that_refuses_says_so(void **state)
{
    struct cr_error err = {0};
    static char answer[] = "HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Negotiate\r\nContent-Length: 0\r\n\r\n";
    CR_CLEANUP(test_server)
    struct test_server *proxy = test_server_new(&(struct test_server_options){.serve = serve_as_proxy, .arg = answer});
    assert_false(open_through(*state, proxy, PATIENCE_MS, &err));
    assert_says(&err, CR_ERR_TRANSIENT, "407");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(opening_takes_no_longer_than_what_is_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_cancelled_caller_does_not_wait_for_a_connection, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_never_stops_sending_is_late, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_proxy_that_refuses_says_so, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
