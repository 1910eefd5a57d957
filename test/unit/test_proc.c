#include "sys/proc.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static void catches(void)
{
    signal(SIGHUP, _exit);
}

static void ignores(void)
{
    signal(SIGHUP, SIG_IGN);
}

static void blocks(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

static void does_nothing(void)
{
    signal(SIGHUP, SIG_DFL);
}

/* A child that has done so. Its end is its caller's to wait for. */
static pid_t start(void (*prepare)(void))
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prepare();
        (void)!write(ready[1], "x", 1);
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void test_a_program_that_makes_nothing_of_a_signal_is_known(void **state)
{
    static const struct {
        void (*prepare)(void);
        bool takes;
    } cases[] = {{catches, true}, {ignores, false}, {blocks, true}, {does_nothing, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pid_t pid = start(cases[i].prepare);
        assert_int_equal(cr_proc_takes(pid, SIGHUP), cases[i].takes);
        assert_false(cr_proc_takes(pid, SIGTERM));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        assert_false(cr_proc_takes(pid, SIGHUP));
    }
}

/* Reads a /proc that has just this process: "7" with that stat. */
static bool read_stat(const char *text, struct cr_proc *out)
{
    char folder[] = "/tmp/test-proc-XXXXXX";
    char own[64];
    char file[72];
    assert_non_null(mkdtemp(folder));
    snprintf(own, sizeof own, "%s/7", folder);
    snprintf(file, sizeof file, "%s/stat", own);
    assert_int_equal(mkdir(own, 0700), 0);
    FILE *to = fopen(file, "we");
    assert_non_null(to);
    fputs(text, to);
    fclose(to);
    bool read = cr_proc_read_in(folder, 7, out);
    unlink(file);
    rmdir(own);
    rmdir(folder);
    return read;
}

/* Found by the fuzzer: a time too large to count in milliseconds. */
static void test_only_what_a_kernel_writes_is_a_process(void **state)
{
#define REST " S 3 7 7 0 -1 4194560 1000 0 0 0 1 2 0 0 20 0 1 0 "
    static const struct {
        const char *text, *name; /* NULL: none */
    } cases[] = {
        {"7 (nginx)" REST "12345 1 300\n", "nginx"},
        {"7 (a) (b) c)" REST "12345 1 300\n", "a) (b) c"},
        {"7 (longer than fifteen)" REST "12345 1 300\n", "longer than fif"},
        {"7 (nginx)" REST "18446744073709551615 1 300\n", NULL},
        {"7 )nginx(" REST "12345 1 300\n", NULL},
        {"7 (nginx) Z 3 7 7 0 -1 4194560 1000 0 0 0 1 2 0 0 20 0 1 0 12345 1 300\n", NULL},
        {"7 (nginx) S 3\n", NULL},
        {"", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cr_proc process = {0};
        assert_int_equal(read_stat(cases[i].text, &process), cases[i].name != NULL);
        if (!cases[i].name)
            continue;
        assert_string_equal(process.name, cases[i].name);
        assert_int_equal(process.parent, 3);
        assert_true(cr_proc_started_wall_ms(&process) > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_program_that_makes_nothing_of_a_signal_is_known),
                                       cmocka_unit_test(test_only_what_a_kernel_writes_is_a_process)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
