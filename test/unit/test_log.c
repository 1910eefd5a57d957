#include "base/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"

enum { PIPE_SIZE = 4096, WATCH_S = 30, LINE_SIZE = 256 };

/* Standard error is a pipe of one page without a reader, while the test says something. */
struct unread {
    int ends[2];
    int saved;
};

static struct unread unread_new(void)
{
    struct unread u = {.saved = dup(STDERR_FILENO)};
    assert_int_equal(pipe2(u.ends, O_CLOEXEC), 0);
    assert_true(u.saved >= 0 && fcntl(u.ends[1], F_SETPIPE_SZ, PIPE_SIZE) == PIPE_SIZE);
    return u;
}

static void unread_dispose(struct unread *u)
{
    close(u->ends[0]);
    close(u->ends[1]);
    close(u->saved);
}
CR_DEFINE_DISPOSE(unread, struct unread, unread_dispose)

static void say(struct unread *u, int lines)
{
    dup2(u->ends[1], STDERR_FILENO);
    for (int i = 0; i < lines; i++)
        cr_log(CR_LOG_INFO, "what nobody reads");
    dup2(u->saved, STDERR_FILENO);
}

static size_t drain_pipe(struct unread *u)
{
    char text[2 * PIPE_SIZE];
    ssize_t n = read(u->ends[0], text, sizeof text);
    assert_true(n > 0);
    assert_int_equal(text[0], '{');
    assert_int_equal(text[n - 1], '\n'); /* whole lines */
    return (size_t)n;
}

static void who_must_be_in_time_waits_for_no_reader(void **state)
{
    (void)state;
    CR_CLEANUP(unread) struct unread u = unread_new();
    cr_log_never_wait();
    alarm(WATCH_S); /* ends a test that waits */
    say(&u, 2 * PIPE_SIZE / LINE_SIZE * 8);
    alarm(0);
    assert_true(drain_pipe(&u) <= PIPE_SIZE);
    say(&u, 1); /* there is a reader again */
    assert_true(drain_pipe(&u) < LINE_SIZE);
}

/* The pipe takes a part of it, even with a reader. */
static void a_long_line_is_not_waited_for(void **state)
{
    char text[2 * PIPE_SIZE];
    (void)state;
    CR_CLEANUP(unread) struct unread u = unread_new();
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    cr_log_never_wait();
    alarm(WATCH_S); /* ends a test that waits */
    dup2(u.ends[1], STDERR_FILENO);
    cr_log(CR_LOG_INFO, text);
    dup2(u.saved, STDERR_FILENO);
    alarm(0);
    say(&u, 1);
    assert_true(drain_pipe(&u) < LINE_SIZE);
}

/* A pipe stays as it is for who has it, too: a proxy that shares it would lose lines. */
static void no_other_pipe_is_changed(void **state)
{
    (void)state;
    CR_CLEANUP(unread) struct unread u = unread_new();
    say(&u, 1);
    assert_int_equal(fcntl(u.ends[1], F_GETFL) & O_NONBLOCK, 0);
}

static void lines_go_to_a_second_place(void **state)
{
    (void)state;
    CR_CLEANUP(unread) struct unread u = unread_new();
    CR_CLEANUP(unread) struct unread copy = unread_new();
    cr_log_copy_to(copy.ends[1]);
    say(&u, 1);
    cr_log_copy_to(-1);
    assert_int_equal(drain_pipe(&u), drain_pipe(&copy));
}

static void fields_are_json(void **state)
{
    char text[LINE_SIZE];
    (void)state;
    CR_CLEANUP(unread) struct unread u = unread_new();
    dup2(u.ends[1], STDERR_FILENO);
    cr_log(CR_LOG_WARN, "a \"b\"", {"text", "c\n"}, {"missing", NULL}, {"number", "5", true});
    cr_log(CR_LOG_DEBUG, "below the level");
    dup2(u.saved, STDERR_FILENO);
    ssize_t n = read(u.ends[0], text, sizeof text - 1);
    assert_true(n > 0);
    text[n] = '\0';
    assert_int_equal(strncmp(text, "{\"ts\":\"", strlen("{\"ts\":\"")), 0);
    assert_string_equal(strstr(text, "\"level\""),
                        "\"level\":\"warn\",\"msg\":\"a \\\"b\\\"\",\"text\":\"c\\u000a\",\"number\":5}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_json),
        cmocka_unit_test(lines_go_to_a_second_place),
        cmocka_unit_test(who_must_be_in_time_waits_for_no_reader),
        cmocka_unit_test(a_long_line_is_not_waited_for),
        cmocka_unit_test(no_other_pipe_is_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
