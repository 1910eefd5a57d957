#include "sys/proc.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_program_that_makes_nothing_of_a_signal_is_known)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
