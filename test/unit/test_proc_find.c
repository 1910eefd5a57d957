#include "sys/proc_find.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { CHILDREN = 3 };

static pid_t start_child(void)
{
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    assert_true(pid > 0);
    return pid;
}

static bool has(const struct cr_procs *procs, pid_t pid)
{
    for (size_t i = 0; i < procs->len; i++)
        if (procs->items[i].pid == pid)
            return true;
    return false;
}

static void children_are_those_that_run(void **state)
{
    pid_t children[CHILDREN];
    siginfo_t info;
    (void)state;
    for (int i = 0; i < CHILDREN; i++)
        children[i] = start_child();
    kill(children[0], SIGKILL); /* a zombie is no longer one of them */
    assert_int_equal(waitid(P_PID, (id_t)children[0], &info, WEXITED | WNOWAIT), 0);
    CR_CLEANUP(cr_procs) struct cr_procs found = {0};
    assert_true(cr_proc_children(getpid(), &found, NULL));
    assert_int_equal(found.len, CHILDREN - 1);
    assert_true(has(&found, children[1]) && has(&found, children[2]));
    for (int i = 0; i < CHILDREN; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
    for (size_t i = 0; i < found.len; i++)
        assert_false(cr_proc_is_there(&found.items[i]));
}

static void another_start_is_another_process(void **state)
{
    struct cr_proc self;
    (void)state;
    assert_true(cr_proc_read(getpid(), &self));
    assert_true(cr_proc_is_there(&self));
    self.started++;
    assert_false(cr_proc_is_there(&self));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(children_are_those_that_run),
                                       cmocka_unit_test(another_start_is_another_process)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
