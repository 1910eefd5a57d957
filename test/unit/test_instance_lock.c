#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "controlplane/agent/instance_lock.h"

static void test_one_process_has_it_and_the_kernel_takes_it_back(void **state)
{
    (void)state;
    struct cr_error err = {0};
    char folder[] = "/tmp/certroll-instance-lock-XXXXXX";
    int ready[2];
    char byte;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        ssize_t said =
            cr_node_acquire_instance_lock(folder, &err) >= 0 ? write(ready[1], "y", 1) : write(ready[1], "n", 1);
        (void)said;
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    assert_int_equal(cr_node_acquire_instance_lock(folder, &err), -1);
    assert_int_equal(err.kind, CR_ERR_CONFLICT);
    assert_non_null(strstr(err.text, "another agent runs on this node"));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    int fd = cr_node_acquire_instance_lock(folder, &err);
    assert_true(fd >= 0);
    close(fd);
    close(ready[0]);
    close(ready[1]);
    assert_int_equal(rmdir(folder), 0);
}

static void test_a_folder_that_is_not_there_is_reported(void **state)
{
    (void)state;
    struct cr_error err = {0};
    assert_int_equal(cr_node_acquire_instance_lock("/tmp/certroll-instance-lock-is-not-there", &err), -1);
    assert_int_equal(err.kind, CR_ERR_NOT_FOUND);
    assert_string_equal(err.text, "/tmp/certroll-instance-lock-is-not-there: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_process_has_it_and_the_kernel_takes_it_back),
        cmocka_unit_test(test_a_folder_that_is_not_there_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
