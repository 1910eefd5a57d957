#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/strings.h"
#include "drain/strategy.h"
#include "support/testsocket.h"

enum { PATIENCE_MS = 20 * 1000, ATTEMPT_MS = 200, FRONTENDS = 3 };

/* pid 1 is no HAProxy here. */
#define INFO "Name: HAProxy\nVersion: 2.6.12\nPid: 1\n\n"
static const char info[] = INFO;
static const char head[] = "# pxname,svname,qcur,qmax,scur,smax,slim,stot,status\n";

/* HAProxy's runtime API as far as frontends go. */
struct haproxy {
    struct {
        const char *name;
        unsigned open;
        bool shut;
    } frontends[FRONTENDS];
    const char *refuses; /* what it says to "shutdown frontend" instead of doing it */
    const char *other;   /* what it says to anything; NULL: as it is */
    bool hides;          /* what was shut down, as before 2.5 */
    bool hangs;          /* until the other side gives up */
    struct cr_buf shut_names;
    struct test_socket *socket;
    struct cr_strvec memory;
    struct cr_drain_target target;
    struct cr_error err; /* of the last attempt */
};

static void haproxy_dispose(struct haproxy *h)
{
    test_socket_free(h->socket);
    cr_buf_dispose(&h->shut_names);
    cr_strvec_dispose(&h->memory);
    cr_strvec_dispose(&h->target.ignored);
}
CR_DEFINE_DISPOSE(haproxy, struct haproxy, haproxy_dispose)

static void show_stat(int fd, const struct haproxy *h)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = {0};
    cr_buf_puts(&text, head);
    for (int i = 0; i < FRONTENDS && h->frontends[i].name; i++)
        if (!h->hides || !h->frontends[i].shut)
            cr_buf_printf(&text, "%s,FRONTEND,,,%u,9,9,9,%s\n", h->frontends[i].name, h->frontends[i].open,
                          h->frontends[i].shut ? "STOP" : "OPEN");
    cr_buf_puts(&text, "\n");
    test_socket_puts(fd, cr_buf_text(&text));
}

static void shut_down(int fd, struct haproxy *h, const char *name)
{
    cr_buf_printf(&h->shut_names, "%s ", name);
    for (int i = 0; i < FRONTENDS && h->frontends[i].name && !h->refuses; i++)
        if (cr_streq(h->frontends[i].name, name))
            h->frontends[i].shut = true;
    test_socket_puts(fd, h->refuses ? h->refuses : "");
    test_socket_puts(fd, "\n");
}

static void serve(int fd, unsigned number, void *arg)
{
    struct haproxy *h = arg;
    CR_CLEANUP(cr_buf) struct cr_buf line = {0};
    CR_CLEANUP(cr_buf) struct cr_buf rest = {0};
    char *save = NULL;
    (void)number;
    if (!test_socket_read(fd, "\n", &line))
        return;
    if (h->other)
        test_socket_puts(fd, h->other);
    if (h->hangs)
        test_socket_read(fd, "", &rest);
    if (h->other || h->hangs)
        return;
    line.data[line.len - 1] = '\0';
    for (char *each = strtok_r(line.data, ";", &save); each; each = strtok_r(NULL, ";", &save)) {
        if (cr_streq(each, "show info"))
            test_socket_puts(fd, info);
        else if (cr_streq(each, "show stat -1 1 -1"))
            show_stat(fd, h);
        else if (cr_starts_with(each, "shutdown frontend "))
            shut_down(fd, h, each + strlen("shutdown frontend "));
    }
}

static void haproxy_start(struct haproxy *h)
{
    *h = (struct haproxy){.frontends = {{"web", 4, false}, {"tcp", 2, false}, {"stats", 1, false}}};
    h->socket = test_socket_new(serve, h);
    h->target = (struct cr_drain_target){.address = test_socket_path(h->socket), .memory = &h->memory};
}

static bool begin(struct haproxy *h, int64_t ms)
{
    const struct cr_drain_attempt attempt = {.deadline_ms = cr_clock_monotonic_ms() + ms, .cancel_fd = -1};
    h->err = (struct cr_error){0};
    return cr_drain_haproxy.begin(&h->target, &attempt, &h->err);
}

static bool count(struct haproxy *h, int64_t ms, struct cr_drain_count *out)
{
    const struct cr_drain_attempt attempt = {.deadline_ms = cr_clock_monotonic_ms() + ms, .cancel_fd = -1};
    h->err = (struct cr_error){0};
    return cr_drain_haproxy.count(&h->target, &attempt, out, &h->err);
}

static void must_begin(struct haproxy *h)
{
    if (!begin(h, PATIENCE_MS))
        fail_msg("%s: %s", cr_error_kind_name(h->err.kind), h->err.text);
}

static void must_count(struct haproxy *h, uint64_t open)
{
    struct cr_drain_count found = {0};
    if (!count(h, PATIENCE_MS, &found))
        fail_msg("%s: %s", cr_error_kind_name(h->err.kind), h->err.text);
    assert_int_equal(found.open, open);
    assert_false(found.ended);
}

static void must_fail(const struct haproxy *h, bool ok, enum cr_error_kind kind, const char *words)
{
    if (ok || h->err.kind != kind || !strstr(h->err.text, words))
        fail_msg("expected %s with '%s', got %s: %s", cr_error_kind_name(kind), words, cr_error_kind_name(h->err.kind),
                 h->err.text);
}

static void frontends_are_shut_down_and_their_connections_counted(void **state)
{
    (void)state;
    CR_CLEANUP(haproxy) struct haproxy h;
    haproxy_start(&h);
    must_begin(&h);
    assert_string_equal(cr_buf_text(&h.shut_names), "web tcp ");
    must_count(&h, 6);
    h.frontends[0].open = 1;
    h.frontends[1].open = 0;
    must_count(&h, 1);
    h.frontends[0].open = 0;
    must_count(&h, 0); /* the reader of the statistics is no client */
}

static void begun_twice_is_begun_once(void **state)
{
    (void)state;
    CR_CLEANUP(haproxy) struct haproxy h;
    haproxy_start(&h);
    must_begin(&h);
    must_begin(&h);
    assert_string_equal(cr_buf_text(&h.shut_names), "web tcp ");
    must_count(&h, 6);
}

static void ignored_frontends_stay_as_they_are(void **state)
{
    (void)state;
    CR_CLEANUP(haproxy) struct haproxy h;
    haproxy_start(&h);
    cr_strvec_add(&h.target.ignored, "tcp");
    must_begin(&h);
    assert_string_equal(cr_buf_text(&h.shut_names), "web ");
    must_count(&h, 4);
    cr_strvec_add(&h.target.ignored, "web");
    must_fail(&h, begin(&h, PATIENCE_MS), CR_ERR_INVALID, "no frontend but those whose connections are not counted");
}

static void what_was_refused_has_not_begun(void **state)
{
    static const struct {
        const char *answer;
        enum cr_error_kind kind;
        const char *words;
    } cases[] = {
        {"Permission denied\n", CR_ERR_FORBIDDEN, "needs \"level admin\""},
        {"No such frontend.\n", CR_ERR_TRANSIENT, "has not shut down its frontend web: No such frontend."},
        {"", CR_ERR_TRANSIENT, "it does not say why"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(haproxy) struct haproxy h;
        haproxy_start(&h);
        h.refuses = cases[i].answer;
        must_fail(&h, begin(&h, PATIENCE_MS), cases[i].kind, cases[i].words);
    }
}

/* 2.4 and before. */
static void connections_that_are_hidden_are_no_zero(void **state)
{
    struct cr_drain_count found = {0};
    (void)state;
    CR_CLEANUP(haproxy) struct haproxy h;
    haproxy_start(&h);
    h.hides = true;
    must_begin(&h);
    must_fail(&h, count(&h, PATIENCE_MS, &found), CR_ERR_INVALID, "needs HAProxy 2.5 or later");
    h.target.memory = NULL;
    must_fail(&h, count(&h, PATIENCE_MS, &found), CR_ERR_INVALID, "shows no frontend");
}

static void a_frontend_that_is_open_again_is_not_drained(void **state)
{
    struct cr_drain_count found = {0};
    (void)state;
    CR_CLEANUP(haproxy) struct haproxy h;
    haproxy_start(&h);
    must_begin(&h);
    h.frontends[1].shut = false;
    h.frontends[0].open = h.frontends[1].open = 0;
    must_fail(&h, count(&h, PATIENCE_MS, &found), CR_ERR_CONFLICT, "frontend tcp open again");
}

static void what_is_not_understood_is_an_error(void **state)
{
    static const struct {
        const char *answer;
        bool hangs;
        enum cr_error_kind kind;
        const char *words;
    } cases[] = {
        {"", false, CR_ERR_INVALID, "(nothing)"},
        {"", true, CR_ERR_TRANSIENT, "the time is over"},
        {INFO "# pxname,svname,scur,status\nweb,FRONTEND,0,STOP\n", true, CR_ERR_TRANSIENT, "the time is over"},
        {INFO "# pxname,svname,scur,status\nweb,FRONTEND,0,STOP\n", false, CR_ERR_INVALID, "breaks off"},
        {"HTTP/1.1 400 Bad Request\r\n\r\n", false, CR_ERR_INVALID, "HTTP/1.1 400"},
        {"0\n", false, CR_ERR_INVALID, "'0'"},
        /* The master process's socket does not end the connection. */
        {"Unknown command, but maybe one of the following ones is a better match:\n", true, CR_ERR_INVALID,
         "master process"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_drain_count found = {.open = 77};
        CR_CLEANUP(haproxy) struct haproxy h;
        haproxy_start(&h);
        h.other = cases[i].answer;
        h.hangs = cases[i].hangs;
        bool waits = cases[i].kind == CR_ERR_TRANSIENT;
        must_fail(&h, begin(&h, waits ? ATTEMPT_MS : PATIENCE_MS), cases[i].kind, cases[i].words);
        must_fail(&h, count(&h, waits ? ATTEMPT_MS : PATIENCE_MS, &found), cases[i].kind, cases[i].words);
        assert_int_equal(found.open, 77);
    }
}

/* --- its end --- */

/* A HAProxy that is a process: it serves what the test's has until it is killed. */
static pid_t start_process(struct haproxy *h, const char *path)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        const char *own = test_socket_path(test_socket_new(serve, h));
        char folder[64];
        snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(own, '/') - own), own);
        if (rename(own, path) != 0 || rmdir(folder) != 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void that_nothing_answers_is_no_end_but_a_process_that_is_gone_is(void **state)
{
    char folder[] = "/tmp/certroll-haproxy-XXXXXX";
    char path[64];
    struct cr_drain_count found = {0};
    (void)state;
    CR_CLEANUP(haproxy) struct haproxy h;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/s", folder);
    haproxy_start(&h);
    test_socket_free(cr_steal(&h.socket));
    pid_t pid = start_process(&h, path);
    h.target.address = path;
    must_begin(&h);
    must_count(&h, 6);
    unlink(path);
    must_fail(&h, count(&h, PATIENCE_MS, &found), CR_ERR_NOT_FOUND, "cannot connect");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    pid_t successor = start_process(&h, path); /* as of before: nothing is shut down */
    must_fail(&h, count(&h, PATIENCE_MS, &found), CR_ERR_CONFLICT, "open again");
    kill(successor, SIGKILL);
    waitpid(successor, NULL, 0);
    assert_true(count(&h, PATIENCE_MS, &found)); /* refused */
    assert_true(found.ended);
    unlink(path);
    assert_true(count(&h, PATIENCE_MS, &found));
    assert_true(found.ended);
    h.target.memory = NULL; /* begun by another: which process it was is not known */
    must_fail(&h, count(&h, PATIENCE_MS, &found), CR_ERR_NOT_FOUND, "cannot connect");
    rmdir(folder);
}

static void the_socket_must_be_named(void **state)
{
    struct cr_drain_target target = {0};
    struct cr_error err = {0};
    (void)state;
    assert_false(cr_drain_haproxy.prepare(&target, &err));
    assert_int_equal(err.kind, CR_ERR_INVALID);
    assert_non_null(strstr(err.text, "--admin-address"));
    target.address = "/run/haproxy.sock";
    assert_true(cr_drain_haproxy.prepare(&target, &err));
}

/* Rows as long as a real one's: some 90 columns. */
static void thousands_of_frontends_are_counted(void **state)
{
    enum { MANY = 5000 };
    (void)state;
    CR_CLEANUP(haproxy) struct haproxy h;
    CR_CLEANUP(cr_buf) struct cr_buf answer = {0};
    haproxy_start(&h);
    cr_buf_printf(&answer, "%s%s", info, head);
    for (int i = 0; i < MANY; i++)
        cr_buf_printf(&answer, "frontend_%05d,FRONTEND,,,1,9,9,9,STOP,%0270d\n", i, 0);
    cr_buf_puts(&answer, "\n");
    h.other = cr_buf_text(&answer);
    must_count(&h, MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frontends_are_shut_down_and_their_connections_counted),
        cmocka_unit_test(begun_twice_is_begun_once),
        cmocka_unit_test(ignored_frontends_stay_as_they_are),
        cmocka_unit_test(what_was_refused_has_not_begun),
        cmocka_unit_test(connections_that_are_hidden_are_no_zero),
        cmocka_unit_test(a_frontend_that_is_open_again_is_not_drained),
        cmocka_unit_test(what_is_not_understood_is_an_error),
        cmocka_unit_test(that_nothing_answers_is_no_end_but_a_process_that_is_gone_is),
        cmocka_unit_test(the_socket_must_be_named),
        cmocka_unit_test(thousands_of_frontends_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
