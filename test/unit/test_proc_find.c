#include "sys/proc_find.h"

#include <setjmp.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
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

static void write_stat(const char *folder, int pid, const char *name, char process_state)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%d", folder, pid);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/%d/stat", folder, pid);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "%d (%s) %c 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0\n", pid, name, process_state, pid * 10);
    fclose(file);
}

/* Numbers of another /proc are not ours, so that the one that we have here is as good as any. */
static void those_of_another_proc_are_found_by_name(void **state)
{
    (void)state;
    char folder[] = "/tmp/certroll-proc-XXXXXX";
    char command[64];
    assert_non_null(mkdtemp(folder));
    write_stat(folder, 11, "kubelet", 'S');
    write_stat(folder, (int)getpid(), "kubelet", 'R');
    write_stat(folder, 13, "kubelet", 'Z');
    write_stat(folder, 14, "etcd (a) b", 'S');
    write_stat(folder, 15, "kube-controller", 'S'); /* as the kernel cuts it */
    CR_CLEANUP(cr_procs) struct cr_procs kubelets = {0};
    CR_CLEANUP(cr_procs) struct cr_procs managers = {0};
    assert_true(cr_procs_named(folder, "kubelet", &kubelets, NULL));
    assert_int_equal(kubelets.len, 2);
    assert_true(has(&kubelets, 11) && has(&kubelets, getpid()));
    assert_int_equal(kubelets.items[0].started, kubelets.items[0].pid * 10);
    assert_true(cr_procs_named(folder, "kube-controller-manager", &managers, NULL));
    assert_true(managers.len == 1 && has(&managers, 15));
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
    struct cr_error err = {0};
    assert_false(cr_procs_named(folder, "kubelet", &kubelets, &err));
    assert_int_equal(err.kind, CR_ERR_TRANSIENT);
}

/* The program has its volume: a pipe in the place of its pid file would hold us until somebody writes into it. */
static void a_pid_file_that_is_a_pipe_holds_nobody(void **state)
{
    (void)state;
    char folder[] = "/tmp/certroll-pid-XXXXXX";
    char path[64];
    struct cr_proc found;
    struct cr_error err = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/pid", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(10);
    assert_false(cr_proc_find_by_file(path, 0, &found, &err));
    alarm(0);
    assert_int_equal(err.kind, CR_ERR_INVALID);
    unlink(path);
    rmdir(folder);
}

/* The file is written when its process begins, or long before that. */
static void a_clock_that_was_set_makes_no_file_stale(void **state)
{
    (void)state;
    enum { HOUR_MS = 3600 * 1000, SOON_MS = 1000 };
    static const struct {
        const char *rule;
        int64_t set_ms;     /* since the moment before */
        int64_t written_ms; /* after the start of the process, by the clock of now */
        bool stale;
    } cases[] = {
        {"written by its process", 0, SOON_MS, false},
        {"written by another one", 0, -HOUR_MS, true},
        {"written by its process, then the clock was set forward", HOUR_MS, SOON_MS - HOUR_MS, false},
        {"written by another one before that", HOUR_MS, -2 * HOUR_MS, true},
        {"the clock was set back", -HOUR_MS, SOON_MS, false},
        {"and back after another had written it", -HOUR_MS, -HOUR_MS, true},
    };
    char path[] = "/tmp/certroll-pid-XXXXXX";
    struct cr_proc child;
    pid_t pid = start_child();
    cr_autofd int fd = mkstemp(path);
    assert_true(fd >= 0 && dprintf(fd, "%d\n", (int)pid) > 0);
    assert_true(cr_proc_read(pid, &child));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cr_proc found;
        struct cr_error err = {0};
        int64_t written_ms = cr_proc_started_wall_ms(&child) + cases[i].written_ms;
        const struct timespec at = {.tv_sec = written_ms / 1000};
        assert_int_equal(futimens(fd, (const struct timespec[]){at, at}), 0);
        bool good = cr_proc_find_by_file(path, cr_proc_booted_wall_ms() - cases[i].set_ms, &found, &err);
        if (good == cases[i].stale)
            fail_msg("%s: %s", cases[i].rule, err.text);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_are_those_that_run), cmocka_unit_test(those_of_another_proc_are_found_by_name),
        cmocka_unit_test(a_clock_that_was_set_makes_no_file_stale),
        cmocka_unit_test(a_pid_file_that_is_a_pipe_holds_nobody), cmocka_unit_test(another_start_is_another_process)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
