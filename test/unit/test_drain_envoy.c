#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "drain/strategy.h"
#include "support/testserver.h"
#include "support/testsocket.h"

enum { PATIENCE_MS = 20 * 1000, ATTEMPT_MS = 300 };

#define STATS "GET /stats?filter=%5Elistener%5C..%2A%5C.downstream_%28pre_%29%3Fcx_active%24 HTTP/1.1\r\n"

/* An admin interface that answers what the test wants. */
struct admin {
    struct test_server *server;
    char address[32];
    int status; /* of POST */
    int listeners_status;
    const char *listeners;
    int stats_status;
    const char *stats;
    void (*misbehave)(struct test_conn *conn, void *arg); /* at the statistics */
    char posted[128];                                     /* the last request line that was POST */
};

static void answer(struct test_conn *conn, void *arg)
{
    struct admin *admin = arg;
    if (!test_conn_request(conn))
        return;
    if (cr_starts_with(conn->head, "POST ")) {
        snprintf(admin->posted, sizeof admin->posted, "%.*s", (int)strcspn(conn->head, "\r"), conn->head);
        test_conn_answer(conn, admin->status, "", "OK\n");
    } else if (cr_starts_with(conn->head, "GET /listeners HTTP/1.1\r\n")) {
        test_conn_answer(conn, admin->listeners_status, "", admin->listeners);
    } else if (!cr_starts_with(conn->head, STATS)) {
        test_conn_answer(conn, 404, "", "invalid path");
    } else if (admin->misbehave) {
        admin->misbehave(conn, NULL);
    } else {
        test_conn_answer(conn, admin->stats_status, "", admin->stats);
    }
}

static void admin_dispose(struct admin *admin)
{
    test_server_free(admin->server);
}
CR_DEFINE_DISPOSE(admin, struct admin, admin_dispose)

static void admin_start(struct admin *admin)
{
    *admin = (struct admin){.status = 200,
                            .listeners_status = 200,
                            .listeners = "http::0.0.0.0:8080\nstats-health::0.0.0.0:8002\nmine::0.0.0.0:9000\n",
                            .stats_status = 200,
                            .stats = "listener.0.0.0.0_8002.downstream_cx_active: 4\n"
                                     "listener.0.0.0.0_8002.worker_0.downstream_cx_active: 4\n"
                                     "listener.0.0.0.0_8080.downstream_cx_active: 2\n"
                                     "listener.0.0.0.0_9000.downstream_cx_active: 1\n"
                                     "listener.admin.downstream_cx_active: 1\n"};
    const struct test_server_options options = {.serve = answer, .arg = admin};
    admin->server = test_server_new(&options);
    snprintf(admin->address, sizeof admin->address, "127.0.0.1:%d", test_server_port(admin->server));
}

static struct cr_drain_attempt within(int64_t ms)
{
    return (struct cr_drain_attempt){.deadline_ms = cr_clock_monotonic_ms() + ms, .cancel_fd = -1};
}

static bool count_at(const char *address, const char *ignored, int64_t ms, struct cr_drain_count *out,
                     struct cr_error *err)
{
    struct cr_drain_target target = {.address = address};
    const struct cr_drain_attempt attempt = within(ms);
    if (ignored)
        cr_strvec_add(&target.ignored, ignored);
    assert_true(cr_drain_envoy.prepare(&target, NULL));
    bool ok = cr_drain_envoy.count(&target, &attempt, out, err);
    cr_strvec_dispose(&target.ignored);
    return ok;
}

static void must_count(const struct admin *admin, const char *ignored, uint64_t open)
{
    struct cr_drain_count count = {.ended = true};
    struct cr_error err = {0};
    if (!count_at(admin->address, ignored, PATIENCE_MS, &count, &err) || count.open != open || count.ended)
        fail_msg("%llu %s", (unsigned long long)count.open, err.text);
}

static void must_not_count(const char *address, int64_t ms, enum cr_error_kind kind, const char *words)
{
    struct cr_drain_count count = {.open = 99};
    struct cr_error err = {0};
    if (count_at(address, NULL, ms, &count, &err) || err.kind != kind || !strstr(err.text, words) || count.open != 99)
        fail_msg("%llu %s: %s", (unsigned long long)count.open, cr_error_kind_name(err.kind), err.text);
}

/* --- the order --- */

static bool begin_at(const char *address, bool listeners, struct cr_error *err)
{
    const struct cr_drain_target target = {.address = address, .listeners = listeners};
    const struct cr_drain_attempt attempt = within(PATIENCE_MS);
    return cr_drain_envoy.begin(&target, &attempt, err);
}

static void it_is_asked_to_drain(void **state)
{
    (void)state;
    CR_CLEANUP(admin) struct admin admin;
    admin_start(&admin);
    assert_true(begin_at(admin.address, false, NULL));
    assert_string_equal(admin.posted, "POST /healthcheck/fail HTTP/1.1");
    assert_true(begin_at(admin.address, true, NULL));
    assert_string_equal(admin.posted, "POST /drain_listeners?graceful&skip_exit HTTP/1.1");
}

static void an_order_that_was_not_taken_is_an_error(void **state)
{
    struct cr_error err = {0};
    (void)state;
    CR_CLEANUP(admin) struct admin admin;
    admin_start(&admin);
    admin.status = 403;
    assert_false(begin_at(admin.address, false, &err));
    assert_int_equal(err.kind, CR_ERR_TRANSIENT);
    assert_string_equal(err.text, "Envoy's admin interface answers /healthcheck/fail with 403");
}

static void it_has_a_default_address(void **state)
{
    struct cr_drain_target target = {0};
    (void)state;
    assert_true(cr_drain_envoy.prepare(&target, NULL));
    assert_string_equal(target.address, "127.0.0.1:9901");
}

/* --- the count --- */

static void who_serves_clients_is_counted(void **state)
{
    (void)state;
    CR_CLEANUP(admin) struct admin admin;
    admin_start(&admin);
    must_count(&admin, NULL, 3);
    must_count(&admin, "mine", 2);
    must_count(&admin, "0.0.0.0:8080", 1);
    must_count(&admin, "0.0.0.0_8080", 1);
    must_count(&admin, "yours", 3);
}

/* More is counted then, and not less. */
/* On a machine with many cores, for each of which Envoy says it again. */
static void thousands_of_listeners_are_counted(void **state)
{
    enum { LISTENERS = 2000, WORKERS = 64 };
    (void)state;
    CR_CLEANUP(admin) struct admin admin;
    CR_CLEANUP(cr_buf) struct cr_buf stats = CR_BUF_INIT(0);
    admin_start(&admin);
    for (int i = 0; i < LISTENERS; i++) {
        cr_buf_printf(&stats, "listener.0.0.0.0_%d.downstream_cx_active: 1\n", 10000 + i);
        for (int j = 0; j < WORKERS; j++)
            cr_buf_printf(&stats, "listener.0.0.0.0_%d.worker_%d.downstream_cx_active: 1\n", 10000 + i, j);
    }
    admin.stats = cr_buf_text(&stats);
    must_count(&admin, NULL, LISTENERS);
}

static void without_the_page_of_listeners_all_count(void **state)
{
    (void)state;
    CR_CLEANUP(admin) struct admin admin;
    admin_start(&admin);
    admin.listeners_status = 403;
    must_count(&admin, NULL, 7);
    must_count(&admin, "mine", 7);
    must_count(&admin, "0.0.0.0:9000", 6);
}

static void another_answer_is_no_number(void **state)
{
    static const struct {
        int status;
        const char *stats;
        enum cr_error_kind kind;
        const char *words;
    } cases[] = {
        {503, "listener.a.downstream_cx_active: 0\n", CR_ERR_TRANSIENT, "answers /stats with 503"},
        {204, "", CR_ERR_TRANSIENT, "answers /stats with 204"},
        {404, "", CR_ERR_TRANSIENT, "answers /stats with 404"},
        {200, "", CR_ERR_INVALID, "Envoy's admin interface: there are no statistics of listeners"},
        {200, "OK\n", CR_ERR_INVALID, "Envoy's admin interface: among the statistics"},
        {200, "listener.a.downstream_cx_active: 0", CR_ERR_INVALID, "end within a line"},
    };
    (void)state;
    CR_CLEANUP(admin) struct admin admin;
    admin_start(&admin);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        admin.stats_status = cases[i].status;
        admin.stats = cases[i].stats;
        must_not_count(admin.address, PATIENCE_MS, cases[i].kind, cases[i].words);
    }
}

static void who_is_not_there_has_not_drained(void **state)
{
    char address[32];
    (void)state;
    CR_CLEANUP(admin) struct admin admin;
    admin_start(&admin);
    snprintf(address, sizeof address, "%s", admin.address);
    must_count(&admin, NULL, 3);
    test_server_free(cr_steal(&admin.server));
    must_not_count(address, PATIENCE_MS, CR_ERR_TRANSIENT, "cannot connect");
    must_not_count("/run/no-such-folder/admin.sock", PATIENCE_MS, CR_ERR_NOT_FOUND, "admin.sock: cannot connect");
    must_not_count("envoy:9901", PATIENCE_MS, CR_ERR_INVALID, "neither the absolute path");
}

static void an_attempt_is_bounded(void **state)
{
    (void)state;
    CR_CLEANUP(admin) struct admin admin;
    admin_start(&admin);
    admin.misbehave = test_serve_silence;
    int64_t began_ms = cr_clock_monotonic_ms();
    must_not_count(admin.address, ATTEMPT_MS, CR_ERR_TRANSIENT, "the time is over");
    int64_t took_ms = cr_clock_monotonic_ms() - began_ms;
    assert_true(took_ms >= ATTEMPT_MS && took_ms < PATIENCE_MS);
}

static void half_an_answer_is_none(void **state)
{
    (void)state;
    CR_CLEANUP(admin) struct admin admin;
    admin_start(&admin);
    admin.misbehave = test_serve_half;
    must_not_count(admin.address, ATTEMPT_MS, CR_ERR_TRANSIENT, "");
}

static void who_is_cancelled_gives_up(void **state)
{
    int ends[2];
    (void)state;
    CR_CLEANUP(admin) struct admin admin;
    admin_start(&admin);
    admin.misbehave = test_serve_silence;
    assert_int_equal(pipe(ends), 0);
    close(ends[1]);
    const struct cr_drain_target target = {.address = admin.address};
    const struct cr_drain_attempt attempt = {.deadline_ms = cr_clock_monotonic_ms() + PATIENCE_MS,
                                             .cancel_fd = ends[0]};
    struct cr_drain_count count;
    struct cr_error err = {0};
    assert_false(cr_drain_envoy.count(&target, &attempt, &count, &err));
    assert_int_equal(err.kind, CR_ERR_CANCELLED);
    close(ends[0]);
}

/* --- Unix sockets --- */

static void answer_in_file(int fd, unsigned number, void *arg)
{
    CR_CLEANUP(cr_buf) struct cr_buf head = {0};
    (void)number;
    (void)arg;
    if (!test_socket_read(fd, "\r\n\r\n", &head))
        return;
    bool stats = strstr(cr_buf_text(&head), "/stats") != NULL;
    test_socket_puts(fd, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
    test_socket_puts(fd, stats ? "12\r\nlistener.a.downstr\r\n12\r\neam_cx_active: 12\n\r\n" : "");
    test_socket_puts(fd, "0\r\n\r\n");
}

static void its_interface_may_be_a_file(void **state)
{
    struct cr_drain_count count = {0};
    struct cr_error err = {0};
    (void)state;
    CR_CLEANUP(test_socket) struct test_socket *socket = test_socket_new(answer_in_file, NULL);
    if (!count_at(test_socket_path(socket), NULL, PATIENCE_MS, &count, &err))
        fail_msg("%s", err.text);
    assert_int_equal(count.open, 12);
    assert_int_equal(test_socket_accepted(socket), 2);
}

/* --- the table --- */

static void proxies_are_found_by_name(void **state)
{
    struct cr_error err = {0};
    (void)state;
    assert_ptr_equal(cr_drain_strategy_find("envoy", NULL), &cr_drain_envoy);
    assert_ptr_equal(cr_drain_strategy_find("generic", NULL), &cr_drain_generic);
    assert_null(cr_drain_strategy_find("Envoy", &err));
    assert_int_equal(err.kind, CR_ERR_INVALID);
    assert_non_null(strstr(err.text, "'Envoy' is no proxy that can be drained: these are envoy, "));
    assert_null(cr_drain_strategy_find(NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_asked_to_drain),
        cmocka_unit_test(an_order_that_was_not_taken_is_an_error),
        cmocka_unit_test(it_has_a_default_address),
        cmocka_unit_test(who_serves_clients_is_counted),
        cmocka_unit_test(thousands_of_listeners_are_counted),
        cmocka_unit_test(without_the_page_of_listeners_all_count),
        cmocka_unit_test(another_answer_is_no_number),
        cmocka_unit_test(who_is_not_there_has_not_drained),
        cmocka_unit_test(an_attempt_is_bounded),
        cmocka_unit_test(half_an_answer_is_none),
        cmocka_unit_test(who_is_cancelled_gives_up),
        cmocka_unit_test(its_interface_may_be_a_file),
        cmocka_unit_test(proxies_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
