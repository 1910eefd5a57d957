#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/strings.h"
#include "drain/strategy.h"
#include "support/testserver.h"
#include "support/testsocket.h"

enum { PATIENCE_MS = 20 * 1000 };

/* A program with two pages; the test says what they answer. */
struct program {
    struct test_server *server;
    char begin_url[64];
    char count_url[64];
    int status; /* of both pages */
    const char *body;
    char requested[64]; /* the last request line but those for the number */
};

static void answer(struct test_conn *conn, void *arg)
{
    struct program *program = arg;
    if (!test_conn_request(conn))
        return;
    if (!cr_starts_with(conn->head, "GET /connections?of=clients HTTP/1.1\r\n"))
        snprintf(program->requested, sizeof program->requested, "%.*s", (int)strcspn(conn->head, "\r"), conn->head);
    test_conn_answer(conn, program->status, "", program->body);
}

static void program_dispose(struct program *program)
{
    test_server_free(program->server);
}
CR_DEFINE_DISPOSE(program, struct program, program_dispose)

static void program_start(struct program *program)
{
    *program = (struct program){.status = 200, .body = "3\n"};
    const struct test_server_options options = {.serve = answer, .arg = program};
    program->server = test_server_new(&options);
    int port = test_server_port(program->server);
    snprintf(program->begin_url, sizeof program->begin_url, "http://127.0.0.1:%d/drain", port);
    snprintf(program->count_url, sizeof program->count_url, "http://127.0.0.1:%d/connections?of=clients", port);
}

static struct cr_drain_attempt patiently(void)
{
    return (struct cr_drain_attempt){.deadline_ms = cr_clock_monotonic_ms() + PATIENCE_MS, .cancel_fd = -1};
}

static bool count(struct cr_drain_target target, struct cr_drain_count *out, struct cr_error *err)
{
    const struct cr_drain_attempt attempt = patiently();
    return cr_drain_generic.prepare(&target, err) && cr_drain_generic.count(&target, &attempt, out, err);
}

static bool begin(struct cr_drain_target target, struct cr_error *err)
{
    const struct cr_drain_attempt attempt = patiently();
    return cr_drain_generic.prepare(&target, err) && cr_drain_generic.begin(&target, &attempt, err);
}

static void flags_are_checked_before_it_is_asked(void **state)
{
    static const struct {
        struct cr_drain_target target;
        const char *words;
    } cases[] = {
        {{0}, "needs --count-url"},
        {{.begin_url = "http://127.0.0.1:1/"}, "needs --count-url"},
        {{.count_url = "http://app:1/"}, "--count-url: http://app:1/: "},
        {{.count_url = "https://127.0.0.1:1/"}, "needs TLS"},
        {{.count_url = "http://127.0.0.1:1/", .begin_url = "/drain"}, "--begin-url: '/drain' is no URL"},
        {{.count_url = "http://127.0.0.1:1/", .begin_method = ""}, "--begin-method"},
        {{.count_url = "http://127.0.0.1:1/", .begin_method = "POST / HTTP/1.1\r\nX:"}, "--begin-method"},
        {{.count_url = "http://127.0.0.1:1/", .begin_method = "post"}, "--begin-method"},
        {{.count_url = "http://127.0.0.1:1/", .count_metric = "sum(open)"}, "--count-metric: 'sum(open)' is no metric"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_drain_target target = cases[i].target;
        struct cr_error err = {0};
        if (cr_drain_generic.prepare(&target, &err) || err.kind != CR_ERR_INVALID || !strstr(err.text, cases[i].words))
            fail_msg("%zu: %s", i, err.text);
    }
    struct cr_drain_target target = {.count_url = "http://127.0.0.1:1/", .begin_url = "http+unix:///a:/b"};
    assert_true(cr_drain_generic.prepare(&target, NULL));
    assert_string_equal(target.begin_method, "POST");
}

static void it_is_asked_as_the_flags_say(void **state)
{
    (void)state;
    CR_CLEANUP(program) struct program program;
    program_start(&program);
    struct cr_drain_target target = {.count_url = program.count_url};
    assert_true(begin(target, NULL));
    assert_string_equal(program.requested, ""); /* it knows by itself */
    target.begin_url = program.begin_url;
    assert_true(begin(target, NULL));
    assert_string_equal(program.requested, "POST /drain HTTP/1.1");
    target.begin_method = "PUT";
    program.status = 202;
    assert_true(begin(target, NULL));
    assert_string_equal(program.requested, "PUT /drain HTTP/1.1");
}

static void an_order_that_was_not_taken_is_an_error(void **state)
{
    static const int statuses[] = {300, 302, 404, 500, 503};
    (void)state;
    CR_CLEANUP(program) struct program program;
    program_start(&program);
    for (size_t i = 0; i < cr_array_len(statuses); i++) {
        struct cr_error err = {0};
        program.status = statuses[i];
        assert_false(
            begin((struct cr_drain_target){.begin_url = program.begin_url, .count_url = program.count_url}, &err));
        assert_int_equal(err.kind, CR_ERR_TRANSIENT);
        assert_non_null(strstr(err.text, "/drain answers "));
    }
}

static void the_number_is_read(void **state)
{
    static const struct {
        int status;
        const char *body;
        const char *metric;
        uint64_t open;
        enum cr_error_kind kind; /* NONE: it is open */
    } cases[] = {
        {200, "3\n", NULL, 3, CR_ERR_NONE},
        {200, "0", NULL, 0, CR_ERR_NONE},
        {200, "", NULL, 0, CR_ERR_INVALID},
        {200, "OK", NULL, 0, CR_ERR_INVALID},
        {503, "0", NULL, 0, CR_ERR_TRANSIENT},
        {201, "0", NULL, 0, CR_ERR_TRANSIENT},
        {200, "open{a=\"1\"} 2\nopen{a=\"2\"} 3\n", "open", 5, CR_ERR_NONE},
        {200, "open{a=\"1\"} 2\nopen{a=\"2\"} 3\n", "open{a!=\"1\"}", 3, CR_ERR_NONE},
        {200, "open 0\n", "open", 0, CR_ERR_NONE},
        {200, "open 0\n", "closed", 0, CR_ERR_INVALID},
        {200, "open 0\nnot metrics\n", "open", 0, CR_ERR_INVALID},
        {200, "3\n", "open", 0, CR_ERR_INVALID},
        {500, "open 0\n", "open", 0, CR_ERR_TRANSIENT},
    };
    (void)state;
    CR_CLEANUP(program) struct program program;
    program_start(&program);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct cr_drain_target target = {.count_url = program.count_url, .count_metric = cases[i].metric};
        struct cr_drain_count out = {.open = 99, .ended = true};
        struct cr_error err = {0};
        program.status = cases[i].status;
        program.body = cases[i].body;
        bool ok = count(target, &out, &err);
        if (ok != (cases[i].kind == CR_ERR_NONE) || err.kind != cases[i].kind)
            fail_msg("'%s': %s", cases[i].body, err.text);
        if (ok && (out.open != cases[i].open || out.ended))
            fail_msg("'%s': %llu", cases[i].body, (unsigned long long)out.open);
        if (!ok && (!out.ended || !strstr(err.text, program.count_url)))
            fail_msg("'%s': %s", cases[i].body, err.text);
    }
}

static void who_is_not_there_has_not_drained(void **state)
{
    char url[64];
    (void)state;
    CR_CLEANUP(program) struct program program;
    program_start(&program);
    snprintf(url, sizeof url, "%s", program.count_url);
    test_server_free(cr_steal(&program.server));
    struct cr_drain_count out = {.open = 99};
    struct cr_error err = {0};
    assert_false(count((struct cr_drain_target){.count_url = url}, &out, &err));
    assert_int_equal(err.kind, CR_ERR_TRANSIENT);
    assert_int_equal(out.open, 99);
}

static void answer_in_file(int fd, unsigned number, void *arg)
{
    (void)number;
    if (test_socket_read(fd, "\r\n\r\n", arg))
        test_socket_puts(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n17");
}

static void it_may_listen_on_a_file(void **state)
{
    CR_CLEANUP(cr_buf) struct cr_buf received = {0};
    char url[256];
    struct cr_drain_count out = {0};
    struct cr_error err = {0};
    (void)state;
    struct test_socket *socket = test_socket_new(answer_in_file, &received);
    snprintf(url, sizeof url, "http+unix://%s:/open", test_socket_path(socket));
    bool ok = count((struct cr_drain_target){.count_url = url}, &out, &err);
    test_socket_free(socket);
    if (!ok || out.open != 17 || !cr_starts_with(cr_buf_text(&received), "GET /open HTTP/1.1\r\n"))
        fail_msg("%llu %s %s", (unsigned long long)out.open, err.text, cr_buf_text(&received));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_are_checked_before_it_is_asked),    cmocka_unit_test(it_is_asked_as_the_flags_say),
        cmocka_unit_test(an_order_that_was_not_taken_is_an_error), cmocka_unit_test(the_number_is_read),
        cmocka_unit_test(who_is_not_there_has_not_drained),        cmocka_unit_test(it_may_listen_on_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
