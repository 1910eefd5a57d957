/* Part of a test in a process of its own: what is done there to mounts, limits, users and namespaces stays there. */
#ifndef TEST_SUPPORT_INCHILD_H
#define TEST_SUPPORT_INCHILD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* Its exit status: 0 good, this one not to be had on this machine, else of the line that failed. */
enum { IN_CHILD_SKIP = 77 };

#define NEED(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            _exit(__LINE__ % 64 + 1);                                                                                  \
    } while (0)

static inline void in_child(void (*run)(void *arg), void *arg)
{
    pid_t pid = fork();
    if (pid == 0) {
        run(arg);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == IN_CHILD_SKIP)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

#endif
