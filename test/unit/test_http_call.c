#include "wire/http_call.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "support/testserver.h"
#include "support/testsocket.h"

enum {
    PATIENCE_MS = 20 * 1000, /* of what must come to its end */
    SHORT_MS = 300,          /* of what must not */
    LATE_MS = 2000,          /* that a busy machine may be behind */
    MAX_BODY = 64 * 1024,
};

/* --- one call --- */

struct scene {
    struct cr_http_call call;
    char address[64];
    int status;
    struct cr_buf body;
    struct cr_error err;
    int64_t took_ms;
};

static void scene_dispose(struct scene *s)
{
    cr_buf_dispose(&s->body);
}
CR_DEFINE_DISPOSE(scene, struct scene, scene_dispose)

static struct scene scene_of(const struct test_server *server)
{
    struct scene s = {.call = {.method = "GET", .target = "/stats?a=b", .cancel_fd = -1, .max_body = MAX_BODY}};
    snprintf(s.address, sizeof s.address, "127.0.0.1:%d", server ? test_server_port(server) : 1);
    return s;
}

static bool ask(struct scene *s, int64_t within_ms)
{
    int64_t start_ms = cr_clock_monotonic_ms();
    s->call.address = s->address;
    s->call.deadline_ms = start_ms + within_ms;
    s->err = (struct cr_error){0};
    bool ok = cr_http_call(&s->call, &s->status, &s->body, &s->err);
    s->took_ms = cr_clock_monotonic_ms() - start_ms;
    return ok;
}

static void must_answer(struct scene *s, int status, const char *body)
{
    if (!ask(s, PATIENCE_MS))
        fail_msg("%s: %s", cr_error_kind_name(s->err.kind), s->err.text);
    assert_int_equal(s->status, status);
    assert_string_equal(cr_buf_text(&s->body), body);
}

static void must_fail(struct scene *s, int64_t within_ms, enum cr_error_kind kind, const char *words)
{
    s->status = -1;
    cr_buf_puts(&s->body, "before");
    if (ask(s, within_ms))
        fail_msg("it succeeded: %d '%s'; expected: %s", s->status, cr_buf_text(&s->body), words);
    if (s->err.kind != kind || !strstr(s->err.text, words))
        fail_msg("expected %s with '%s', got %s: %s", cr_error_kind_name(kind), words, cr_error_kind_name(s->err.kind),
                 s->err.text);
    assert_string_equal(cr_buf_text(&s->body), "before"); /* a part is never given out */
    assert_int_equal(s->status, -1);
    if (s->took_ms > within_ms + LATE_MS)
        fail_msg("it took %jd ms", (intmax_t)s->took_ms);
}

/* --- servers that mean well --- */

struct admin {
    const char *answer;
    char *seen;
    bool as_it_should;
};

static void serve(struct test_conn *conn, void *arg)
{
    struct admin *a = arg;
    if (!test_conn_request(conn))
        return;
    a->seen = cr_strdup(conn->head);
    test_conn_puts(conn, a->answer);
}

static void a_request_is_written_as_it_must(void **state)
{
    static const struct {
        const char *method;
        bool has_length;
    } cases[] = {{"GET", false}, {"POST", true}, {"PUT", true}, {"DELETE", false}};
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct admin a = {.answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK"};
        const struct test_server_options options = {.serve = serve, .arg = &a};
        CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
        CR_CLEANUP(scene) struct scene s = scene_of(server);
        s.call.method = cases[i].method;
        must_answer(&s, 200, "OK");
        test_server_free(cr_steal(&server));
        cr_autofree char *seen = a.seen;
        cr_autofree char *expected =
            cr_asprintf("%s /stats?a=b HTTP/1.1\r\nHost: %s\r\nUser-Agent: certroll\r\nAccept-Encoding: identity\r\n"
                        "Connection: close\r\n%s",
                        cases[i].method, s.address, cases[i].has_length ? "Content-Length: 0\r\n" : "");
        assert_string_equal(seen, expected);
    }
}

static void each_status_is_an_answer(void **state)
{
    static const struct {
        const char *answer;
        const char *method;
        int status;
        const char *body;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", "GET", 200, "hello"},
        {"HTTP/1.0 200 OK\r\n\r\nuntil the end", "GET", 200, "until the end"},
        {"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", "GET", 404, "no"},
        {"HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n", "GET", 302, ""},
        {"HTTP/1.1 204 No Content\r\n\r\n", "POST", 204, ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", "HEAD", 200, ""},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", "GET", 503, ""},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct admin a = {.answer = cases[i].answer};
        const struct test_server_options options = {.serve = serve, .arg = &a};
        CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
        CR_CLEANUP(scene) struct scene s = scene_of(server);
        s.call.method = cases[i].method;
        must_answer(&s, cases[i].status, cases[i].body);
        assert_int_equal(test_server_accepted(server), 1); /* no redirect is followed */
        test_server_free(cr_steal(&server));
        free(a.seen);
    }
}

static void serve_and_stay(struct test_conn *conn, void *arg)
{
    if (test_conn_request(conn) && test_conn_puts(conn, arg))
        test_conn_wait_closed(conn);
}

static void who_keeps_the_connection_is_not_waited_for(void **state)
{
    static char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK";
    (void)state;
    const struct test_server_options options = {.serve = serve_and_stay, .arg = answer};
    CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
    CR_CLEANUP(scene) struct scene s = scene_of(server);
    must_answer(&s, 200, "OK");
    assert_true(test_server_wait_ended(server, 1, NULL)); /* we have closed it */
}

static void serve_socket(int fd, unsigned number, void *arg)
{
    CR_CLEANUP(cr_buf) struct cr_buf request = CR_BUF_INIT(0);
    struct admin *a = arg;
    (void)number;
    if (test_socket_read(fd, "\r\n\r\n", &request))
        test_socket_puts(fd, a->answer);
    a->as_it_should = strstr(cr_buf_text(&request), "\r\nHost: localhost\r\n") != NULL;
}

static void over_a_unix_socket(void **state)
{
    static const char *const prefixes[] = {"", "unix:"};
    (void)state;
    for (size_t i = 0; i < cr_array_len(prefixes); i++) {
        struct admin a = {.answer = "HTTP/1.1 200 OK\r\n\r\nhello"};
        CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(serve_socket, &a);
        CR_CLEANUP(scene) struct scene s = scene_of(NULL);
        snprintf(s.address, sizeof s.address, "%s%s", prefixes[i], test_socket_path(server));
        must_answer(&s, 200, "hello");
        test_socket_free(cr_steal(&server));
        assert_true(a.as_it_should);
    }
}

static void over_ipv6(void **state)
{
    (void)state;
    struct admin a = {.answer = "HTTP/1.1 200 OK\r\n\r\nhello"};
    const struct test_server_options options = {.address = "::1", .serve = serve, .arg = &a};
    CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
    CR_CLEANUP(scene) struct scene s = scene_of(NULL);
    snprintf(s.address, sizeof s.address, "[::1]:%d", test_server_port(server));
    must_answer(&s, 200, "hello");
    test_server_free(cr_steal(&server));
    cr_autofree char *seen = a.seen;
    cr_autofree char *host = cr_asprintf("\r\nHost: %s\r\n", s.address);
    assert_non_null(strstr(seen, host));
}

static void a_port_alone_is_localhost(void **state)
{
    (void)state;
    struct admin a = {.answer = "HTTP/1.1 200 OK\r\n\r\nhello"};
    const struct test_server_options options = {.serve = serve, .arg = &a};
    CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
    CR_CLEANUP(scene) struct scene s = scene_of(NULL);
    snprintf(s.address, sizeof s.address, ":%d", test_server_port(server));
    must_answer(&s, 200, "hello");
    test_server_free(cr_steal(&server));
    cr_autofree char *seen = a.seen;
    cr_autofree char *host = cr_asprintf("\r\nHost: localhost%s\r\n", s.address);
    assert_non_null(strstr(seen, host));
}

static void serve_big(struct test_conn *conn, void *arg)
{
    (void)arg;
    if (!test_conn_request(conn) || !test_conn_puts(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
        return;
    char chunk[4096];
    memset(chunk, 'x', sizeof chunk);
    for (unsigned i = 0; i < MAX_BODY / sizeof chunk; i++)
        if (!test_conn_puts(conn, "1000\r\n") || !test_conn_write(conn, chunk, sizeof chunk) ||
            !test_conn_puts(conn, "\r\n"))
            return;
    test_conn_puts(conn, "0\r\n\r\n");
}

static void the_longest_body_is_read_whole(void **state)
{
    (void)state;
    const struct test_server_options options = {.serve = serve_big};
    CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
    CR_CLEANUP(scene) struct scene s = scene_of(server);
    assert_true(ask(&s, PATIENCE_MS));
    assert_int_equal(s.body.len, MAX_BODY);
    for (size_t i = 0; i < s.body.len; i++)
        assert_int_equal(s.body.data[i], 'x');
    s.call.max_body = MAX_BODY - 1;
    cr_buf_reset(&s.body);
    must_fail(&s, PATIENCE_MS, CR_ERR_INVALID, "longer than 65535 bytes");
}

/* --- servers that do not --- */

static void nothing_listens(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s = scene_of(NULL);
    /* bound, so that no other program has the port, and not listening */
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    cr_autofd int bound = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(bound, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(bound, (struct sockaddr *)&at, &len), 0);
    snprintf(s.address, sizeof s.address, "127.0.0.1:%d", ntohs(at.sin_port));
    must_fail(&s, PATIENCE_MS, CR_ERR_TRANSIENT, "cannot connect: Connection refused");
    assert_non_null(strstr(s.err.text, s.address));
    cr_buf_reset(&s.body);
    strcpy(s.address, "/nonexistent/certroll.sock");
    must_fail(&s, PATIENCE_MS, CR_ERR_NOT_FOUND, "/nonexistent/certroll.sock: cannot connect");
}

static void what_cannot_be_asked_is_said(void **state)
{
    static const struct {
        const char *address, *method, *target, *words;
    } cases[] = {
        {"admin.example:80", "GET", "/", "neither the absolute path"},
        {"127.0.0.1:1", "GET /x", "/", "'GET /x' is not a method"},
        {"127.0.0.1:1", "", "/", "not a method"},
        {"127.0.0.1:1", "GET", "", "begins with /"},
        {"127.0.0.1:1", "GET", "stats", "begins with /"},
        {"127.0.0.1:1", "GET", "/a b", "has no spaces"},
        {"127.0.0.1:1", "GET", "/a\r\nX: y", "has no spaces"},
        {"127.0.0.1:1", "GET", "/\xc3\xa9", "not a path"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(scene) struct scene s = scene_of(NULL);
        strcpy(s.address, cases[i].address);
        s.call.method = cases[i].method;
        s.call.target = cases[i].target;
        must_fail(&s, PATIENCE_MS, CR_ERR_INVALID, cases[i].words);
    }
}

struct drip {
    const char *beginning;
    const char *piece; /* for ever, one byte every few milliseconds; "": silence */
};

static void serve_drips(struct test_conn *conn, void *arg)
{
    const struct drip *drip = arg;
    if (!test_conn_request(conn) || !test_conn_puts(conn, drip->beginning))
        return;
    if (!*drip->piece)
        test_conn_wait_closed(conn);
    for (size_t i = 0; *drip->piece && test_conn_write(conn, &drip->piece[i % strlen(drip->piece)], 1); i++)
        usleep(10 * 1000); /* the drip itself */
}

static void the_deadline_is_of_the_whole_call(void **state)
{
    static struct drip drips[] = {
        {"", ""},
        {"", "HTTP/1.1 200 a long reason "},
        {"HTTP/1.1 200 OK\r\n", "A: b\r\n"},
        {"HTTP/1.1 200 OK\r\n\r\n", "a byte at a time"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", "12"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", ""},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"},
        {"", "HTTP/1.1 100 \r\n\r\n"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(drips); i++) {
        const struct test_server_options options = {.serve = serve_drips, .arg = &drips[i]};
        CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
        CR_CLEANUP(scene) struct scene s = scene_of(server);
        must_fail(&s, SHORT_MS, CR_ERR_TRANSIENT, "the time is over while waiting for an answer");
        assert_true(s.took_ms >= SHORT_MS);
    }
}

/* Listens, and accepts no connection: the kernel does it, until the queue is full. */
static void who_never_accepts(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s = scene_of(NULL);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int waiting[4];
    cr_autofd int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 0), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    for (size_t i = 0; i < cr_array_len(waiting); i++) {
        waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)!connect(waiting[i], (struct sockaddr *)&at, sizeof at);
    }
    snprintf(s.address, sizeof s.address, "127.0.0.1:%d", ntohs(at.sin_port));
    must_fail(&s, SHORT_MS, CR_ERR_TRANSIENT, "the time is over while ");
    assert_true(s.took_ms >= SHORT_MS);
    for (size_t i = 0; i < cr_array_len(waiting); i++)
        close(waiting[i]);
}

static void serve_for_ever(struct test_conn *conn, void *arg)
{
    const char *const *texts = arg; /* once, and then for ever */
    if (!test_conn_request(conn) || !test_conn_puts(conn, texts[0]))
        return;
    while (test_conn_puts(conn, texts[1]))
        ;
}

static void nothing_endless_is_read(void **state)
{
    static const struct {
        const char *texts[2];
        const char *words;
    } cases[] = {
        {{"HTTP/1.1 200 OK\r\n", "Name: a value of some length\r\n"}, "head is longer than 16384 bytes"},
        {{"HTTP/1.1 200 ", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}, "head is longer than 16384 bytes"},
        {{"HTTP/1.1 200 OK\r\n\r\n", "a body of some length "}, "longer than 65536 bytes"},
        {{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "a\r\n0123456789\r\n"}, "longer than 65536 bytes"},
        {{"HTTP/1.1 200 OK\r\nContent-Length: 65537\r\n\r\n", "a"}, "longer than 65536 bytes"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct test_server_options options = {.serve = serve_for_ever, .arg = (void *)(uintptr_t)cases[i].texts};
        CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
        CR_CLEANUP(scene) struct scene s = scene_of(server);
        must_fail(&s, PATIENCE_MS, CR_ERR_INVALID, cases[i].words);
        assert_non_null(strstr(s.err.text, s.address));
    }
}

static void serve_text(struct test_conn *conn, void *arg)
{
    if (test_conn_request(conn))
        test_conn_puts(conn, arg);
}

static void what_is_not_whole_is_no_answer(void **state)
{
    static const struct {
        const char *text;
        enum cr_error_kind kind;
        const char *words;
    } cases[] = {
        {"", CR_ERR_TRANSIENT, "it hung up without an answer"},
        {"HTTP/1.1 200 OK\r\n", CR_ERR_TRANSIENT, "its answer breaks off"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", CR_ERR_TRANSIENT, "its answer breaks off"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", CR_ERR_TRANSIENT, "breaks off"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello", CR_ERR_INVALID, "'gzip'"},
        {"SSH-2.0-OpenSSH_9.2\r\n", CR_ERR_INVALID, "something that is not HTTP/1: 'SSH-2.0-OpenSSH_9.2"},
        {"\x15\x03\x03\x02\x02\x46", CR_ERR_INVALID, "something that is not HTTP/1: '"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct test_server_options options = {.serve = serve_text, .arg = (void *)(uintptr_t)cases[i].text};
        CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
        CR_CLEANUP(scene) struct scene s = scene_of(server);
        must_fail(&s, PATIENCE_MS, cases[i].kind, cases[i].words);
        assert_non_null(strstr(s.err.text, s.address));
    }
}

/* Closing with something unread resets, as the end of a process with an open connection may. */
static void serve_and_reset(struct test_conn *conn, void *arg)
{
    (void)test_conn_read(conn, 1);
    test_conn_puts(conn, arg);
}

static void a_reset_is_no_end_of_a_body(void **state)
{
    static char answer[] = "HTTP/1.1 200 OK\r\n\r\n3";
    (void)state;
    const struct test_server_options options = {.serve = serve_and_reset, .arg = answer};
    CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
    CR_CLEANUP(scene) struct scene s = scene_of(server);
    must_fail(&s, PATIENCE_MS, CR_ERR_TRANSIENT, s.address); /* without an answer, if the reset took it along */
}

/* --- giving up --- */

struct canceller {
    const char *answer; /* all of it, before it is given up */
    int fd;
};

static void serve_and_cancel(struct test_conn *conn, void *arg)
{
    const struct canceller *c = arg;
    uint64_t one = 1;
    if (test_conn_request(conn) && test_conn_puts(conn, c->answer) && write(c->fd, &one, sizeof one) == sizeof one)
        test_conn_wait_closed(conn);
}

static void a_call_is_given_up(void **state)
{
    static const char *const answers[] = {"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\n\r\nhello"};
    (void)state;
    for (size_t i = 0; i < cr_array_len(answers); i++) {
        cr_autofd int cancel = eventfd(0, EFD_CLOEXEC);
        struct canceller c = {.answer = answers[i], .fd = cancel};
        const struct test_server_options options = {.serve = serve_and_cancel, .arg = &c};
        CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
        CR_CLEANUP(scene) struct scene s = scene_of(server);
        s.call.cancel_fd = cancel;
        must_fail(&s, PATIENCE_MS, CR_ERR_CANCELLED, "");
        assert_true(s.took_ms < PATIENCE_MS);
        cr_buf_reset(&s.body);
        must_fail(&s, PATIENCE_MS, CR_ERR_CANCELLED, ""); /* and not begun again */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_written_as_it_must),
        cmocka_unit_test(each_status_is_an_answer),
        cmocka_unit_test(who_keeps_the_connection_is_not_waited_for),
        cmocka_unit_test(over_a_unix_socket),
        cmocka_unit_test(over_ipv6),
        cmocka_unit_test(a_port_alone_is_localhost),
        cmocka_unit_test(the_longest_body_is_read_whole),
        cmocka_unit_test(nothing_listens),
        cmocka_unit_test(what_cannot_be_asked_is_said),
        cmocka_unit_test(the_deadline_is_of_the_whole_call),
        cmocka_unit_test(who_never_accepts),
        cmocka_unit_test(nothing_endless_is_read),
        cmocka_unit_test(what_is_not_whole_is_no_answer),
        cmocka_unit_test(a_reset_is_no_end_of_a_body),
        cmocka_unit_test(a_call_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
