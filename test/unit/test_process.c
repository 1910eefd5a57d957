#include "sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

enum { PLENTY_MS = 30 * 1000 };

/* What a script said, and how it ended. */
struct output {
    struct cr_buf out;
    struct cr_process_end end;
    struct cr_error err;
    bool ok;
};

static void output_dispose(struct output *t)
{
    cr_buf_dispose(&t->out);
}
CR_DEFINE_DISPOSE(output, struct output, output_dispose)

static struct output run(const char *script, int timeout_ms, size_t max_output, int cancel_fd)
{
    struct output t = {.out = {.secret = true}};
    CR_CLEANUP(cr_strvec) struct cr_strvec argv = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec overrides = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec environment = {0};
    cr_strvec_add(&argv, "plugin");
    cr_strvec_add(&argv, "-c");
    cr_strvec_add(&argv, script);
    cr_strvec_add(&overrides, "CERTROLL_TEST=a b=c");
    cr_process_environment(&overrides, &environment);
    const struct cr_process process = {.path = "/bin/sh",
                                       .argv = &argv,
                                       .environment = &environment,
                                       .timeout_ms = timeout_ms,
                                       .max_output = max_output,
                                       .cancel_fd = cancel_fd};
    t.ok = cr_process_run(&process, &t.out, &t.end, &t.err);
    return t;
}

static void what_it_says_and_how_it_ends_is_reported(void **state)
{
    (void)state;
    static const struct {
        const char *script, *out;
        int status, signal;
        const char *words;
    } cases[] = {
        {"echo hello", "hello\n", 0, 0, ""},
        {"printf '%s' \"$CERTROLL_TEST\"", "a b=c", 0, 0, ""},
        {"echo $0", "plugin\n", 0, 0, ""},
        {"echo out; echo one >&2; printf 'last \\033[1m words \\n\\n' >&2; exit 3", "out\n", 3, 0, "last [1m words"},
        {"printf 'no line end' >&2; exit 1", "", 1, 0, "no line end"},
        {"kill -9 $$", "", -1, SIGKILL, ""},
        {"cat; echo read", "read\n", 0, 0, ""}, /* standard input is empty */
        {"read -r pid name state parent group rest < /proc/$$/stat; [ $group = $$ ] && echo own", "own\n", 0, 0, ""},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(output) struct output t = run(cases[i].script, PLENTY_MS, 1000, -1);
        if (!t.ok)
            fail_msg("%s: %s", cases[i].script, t.err.text);
        assert_string_equal(cr_buf_text(&t.out), cases[i].out);
        assert_int_equal(t.end.status, cases[i].status);
        assert_int_equal(t.end.signal, cases[i].signal);
        assert_string_equal(t.end.last_words, cases[i].words);
    }
}

static void long_words_on_stderr_are_cut_and_hold_nothing_up(void **state)
{
    (void)state;
    CR_CLEANUP(output)
    struct output t = run("yes x | head -c 300000 | tr -d '\\n' >&2; echo; exit 1", PLENTY_MS, 10, -1);
    assert_true(t.ok);
    assert_int_equal(strlen(t.end.last_words), CR_PROCESS_LINE - 1);
}

/* A descriptor that was not marked close-on-exec, as some libraries leave theirs. */
static void it_inherits_neither_descriptors_nor_signals(void **state)
{
    (void)state;
    cr_autofd int open_fd = open("/dev/null", O_RDONLY);
    assert_true(open_fd > 2);
    (void)signal(SIGPIPE, SIG_IGN);
    sigset_t blocked;
    sigset_t before;
    sigfillset(&blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    CR_CLEANUP(output)
    struct output t = run("ls /proc/self/fd | tr '\\n' ' '; sed -n 's/^Sig\\(Blk\\|Ign\\):.*\\(.......\\)$/\\1 \\2/p' "
                          "/proc/self/status | tr '\\n' ' '",
                          PLENTY_MS, 1000, -1);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_true(t.ok);
    /* 3 is of ls itself; of the signals those below 29, since the C library has two of its own above. */
    assert_string_equal(t.out.data, "0 1 2 3 Blk 0000000 Ign 0000000 ");
}

static bool is_gone(pid_t pid)
{
    return kill(pid, 0) != 0;
}

/* The group's processes, the children of the script as well, are gone once it is ended from here. */
static void assert_killed(const struct output *t)
{
    pid_t child = (pid_t)atoi(cr_buf_text(&t->out));
    assert_true(child > 1);
    int64_t deadline = cr_clock_monotonic_ms() + PLENTY_MS;
    while (!is_gone(child) && cr_clock_monotonic_ms() < deadline)
        usleep(1000);
    assert_true(is_gone(child));
}

static const char hang[] = "sleep 600 & echo $!; echo waiting for a person >&2; wait";

static void a_program_that_hangs_is_killed_with_all_that_it_started(void **state)
{
    (void)state;
    int64_t start = cr_clock_monotonic_ms();
    CR_CLEANUP(output) struct output t = run(hang, 1000, 1000, -1);
    assert_false(t.ok);
    assert_int_equal(t.err.kind, CR_ERR_TRANSIENT);
    assert_string_equal(t.err.text, "it did not end within 1 s");
    assert_string_equal(t.end.last_words, "waiting for a person");
    assert_in_range(cr_clock_monotonic_ms() - start, 1000, 20000);
    assert_killed(&t);
}

static void *cancel(void *fd)
{
    uint64_t one = 1;
    usleep(200 * 1000);
    assert_int_equal(write(*(int *)fd, &one, sizeof one), sizeof one);
    return NULL;
}

static void a_cancelled_program_is_killed(void **state)
{
    (void)state;
    cr_autofd int fd = eventfd(0, EFD_CLOEXEC);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel, &fd), 0);
    CR_CLEANUP(output) struct output t = run(hang, PLENTY_MS, 1000, fd);
    pthread_join(thread, NULL);
    assert_false(t.ok);
    assert_int_equal(t.err.kind, CR_ERR_CANCELLED);
    assert_killed(&t);
}

static void a_flood_of_output_is_refused_and_ended(void **state)
{
    (void)state;
    CR_CLEANUP(output) struct output t = run("yes", PLENTY_MS, 100000, -1);
    assert_false(t.ok);
    assert_int_equal(t.err.kind, CR_ERR_INVALID);
    assert_string_equal(t.err.text, "it printed more than 100000 bytes");
}

static void complaints_without_end_do_not_outlast_the_time_out(void **state)
{
    (void)state;
    int64_t start = cr_clock_monotonic_ms();
    CR_CLEANUP(output) struct output t = run("for i in 1 2 3 4 5 6; do cat /dev/zero & done >&2; wait", 1000, 1000, -1);
    assert_false(t.ok);
    assert_string_equal(t.err.text, "it did not end within 1 s");
    assert_in_range(cr_clock_monotonic_ms() - start, 1000, 10000);
}

static void what_it_leaves_running_holds_nothing_up_and_goes_on(void **state)
{
    (void)state;
    int64_t start = cr_clock_monotonic_ms();
    CR_CLEANUP(output) struct output t = run("sleep 60 & echo $!", PLENTY_MS, 1000, -1);
    assert_true(t.ok);
    assert_in_range(cr_clock_monotonic_ms() - start, 0, 20000);
    pid_t left = (pid_t)atoi(t.out.data);
    assert_false(is_gone(left));
    kill(left, SIGKILL);
}

/* As the first process of a container, to which come those whose parent has ended. */
static void become_parent_of_orphans(bool on)
{
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, on), 0);
}

static void assert_no_children(void)
{
    errno = 0;
    pid_t pid = waitpid(-1, NULL, WNOHANG);
    if (pid >= 0 || errno != ECHILD)
        fail_msg("process %d waits to be reaped (0: one runs)", (int)pid);
}

static void what_is_killed_with_it_is_reaped(void **state)
{
    (void)state;
    become_parent_of_orphans(true);
    CR_CLEANUP(output) struct output t = run("sleep 600 & sleep 600 & echo $!; wait", 1000, 1000, -1);
    become_parent_of_orphans(false);
    assert_false(t.ok);
    assert_killed(&t);
    assert_no_children();
}

static void what_it_left_running_is_reaped_by_a_later_run(void **state)
{
    (void)state;
    siginfo_t info;
    become_parent_of_orphans(true);
    CR_CLEANUP(output) struct output left = run("sleep 600 & echo $!", PLENTY_MS, 1000, -1);
    become_parent_of_orphans(false);
    assert_true(left.ok);
    CR_CLEANUP(output) struct output meanwhile = run("echo", PLENTY_MS, 1000, -1);
    assert_true(meanwhile.ok);
    pid_t pid = (pid_t)atoi(cr_buf_text(&left.out));
    assert_false(is_gone(pid));
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    CR_CLEANUP(output) struct output later = run("echo", PLENTY_MS, 1000, -1);
    assert_true(later.ok);
    assert_no_children();
}

static char folder[] = "/tmp/certroll-process-XXXXXX";

static char *put(const char *name, const char *text, mode_t mode)
{
    char *path = cr_asprintf("%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static void a_command_is_found_as_a_shell_finds_it(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    cr_autofree char *program = put("program", "#!/bin/sh\n", 0755);
    cr_autofree char *data = put("data", "", 0644);
    cr_autofree char *old = cr_strdup(cr_or_empty(getenv("PATH")));
    cr_autofree char *cwd = getcwd(NULL, 0);
    cr_autofree char *path = cr_asprintf(".::/nowhere:%s", folder);
    setenv("PATH", path, 1);
    struct cr_error err = {0};
    cr_autofree char *found = cr_process_find("program", &err);
    assert_string_equal(found, program);
    cr_autofree char *direct = cr_process_find(program, &err);
    assert_string_equal(direct, program);
    setenv("PATH", ".:", 1);
    assert_int_equal(chdir(folder), 0);
    static const char *const absent[] = {"program", "", "data", "./data", "/", "/nowhere/program"};
    for (size_t i = 0; i < cr_array_len(absent); i++) {
        err = (struct cr_error){0};
        assert_null(cr_process_find(absent[i], &err));
        assert_int_equal(err.kind, CR_ERR_NOT_FOUND);
    }
    assert_int_equal(chdir(cwd), 0);
    setenv("PATH", old, 1);
    unlink(program);
    unlink(data);
    rmdir(folder);
}

static void what_cannot_be_executed_is_reported(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        enum cr_error_kind kind;
    } cases[] = {{"/nowhere/program", CR_ERR_NOT_FOUND}, {"/etc/passwd", CR_ERR_FORBIDDEN}, {"/", CR_ERR_FORBIDDEN}};
    CR_CLEANUP(cr_strvec) struct cr_strvec argv = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec none = {0};
    cr_strvec_add(&argv, "x");
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(output) struct output t = {0};
        const struct cr_process process = {.path = cases[i].path,
                                           .argv = &argv,
                                           .environment = &none,
                                           .timeout_ms = PLENTY_MS,
                                           .max_output = 10,
                                           .cancel_fd = -1};
        assert_false(cr_process_run(&process, &t.out, &t.end, &t.err));
        assert_int_equal(t.err.kind, cases[i].kind);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_says_and_how_it_ends_is_reported),
        cmocka_unit_test(long_words_on_stderr_are_cut_and_hold_nothing_up),
        cmocka_unit_test(it_inherits_neither_descriptors_nor_signals),
        cmocka_unit_test(a_program_that_hangs_is_killed_with_all_that_it_started),
        cmocka_unit_test(a_cancelled_program_is_killed),
        cmocka_unit_test(a_flood_of_output_is_refused_and_ended),
        cmocka_unit_test(complaints_without_end_do_not_outlast_the_time_out),
        cmocka_unit_test(what_it_leaves_running_holds_nothing_up_and_goes_on),
        cmocka_unit_test(what_is_killed_with_it_is_reaped),
        cmocka_unit_test(what_it_left_running_is_reaped_by_a_later_run),
        cmocka_unit_test(a_command_is_found_as_a_shell_finds_it),
        cmocka_unit_test(what_cannot_be_executed_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
