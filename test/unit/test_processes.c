#include "controlplane/agent/processes.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"

enum { NOBODY = 65534 };

static const char name[] = "cr-look-test";

/* A process of that name; its own_network: in one of its own. */
static pid_t start(bool own_network)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if ((own_network && unshare(CLONE_NEWNET) != 0) || prctl(PR_SET_NAME, name) != 0 || write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void stop(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* The pids that are found, by spaces, the youngest first; or the error. Owned. */
static char *find_in(const char *proc, bool own_network_only)
{
    const struct cr_node_layout layout = {.root = "", .proc = proc, .own_network_only = own_network_only};
    CR_CLEANUP(cr_procs) struct cr_procs found;
    struct cr_error err = {0};
    struct cr_buf out = CR_BUF_INIT(0);
    if (!cr_node_processes_find(&layout, name, &found, &err))
        cr_buf_printf(&out, "%s", err.text);
    for (size_t i = 0; i < found.len; i++)
        cr_buf_printf(&out, "%s%d", i ? " " : "", (int)found.items[i].pid);
    return cr_buf_steal(&out);
}

static char *find(bool own_network_only)
{
    return find_in("/proc", own_network_only);
}

static void expect(bool own_network_only, const char *want)
{
    cr_autofree char *is = find(own_network_only);
    if (!cr_streq(is, want))
        fail_msg("want '%s', is '%s'", want, is);
}

/* Without rights towards the others. */
static bool same_for_nobody(const char *want)
{
    pid_t pid = fork();
    int status = 0;
    if (pid == 0) {
        if (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
            _exit(2);
        char link[64];
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/ns/net", (int)getppid());
        char *is = find(true);
        _exit(readlink(path, link, sizeof link) < 0 && cr_streq(is, want) ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool give_up_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    return syscall(SYS_capset, &head, none) == 0;
}

/* As the manifest of workers has it: root without capabilities, among processes of its own, and the host's /proc
 * elsewhere. 0: it is so. */
static int look_as_a_worker(const char *host_proc, const char *want, pid_t wanted)
{
    int status = 0;
    if (unshare(CLONE_NEWNS | CLONE_NEWPID) != 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("/proc", host_proc, NULL, MS_BIND | MS_REC, NULL) != 0)
        return 2;
    pid_t pid = fork();
    if (pid == 0) {
        if (mount("proc", "/proc", "proc", 0, NULL) != 0 || !give_up_capabilities())
            _exit(3);
        char *is = find_in(host_proc, true);
        bool out_of_reach = kill(wanted, 0) != 0;
        _exit(!cr_streq(is, want) ? 1 : out_of_reach ? 0 : 4);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 5;
}

static void a_worker_s_agent_sees_the_host_s_and_cannot_reach_them(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); /* so are mounts */
    char folder[] = "/tmp/certroll-proc-XXXXXX";
    int status = 0;
    assert_non_null(mkdtemp(folder));
    pid_t here = start(false);
    pid_t there = start(true);
    cr_autofree char *want = cr_asprintf("%d", (int)here);
    pid_t pid = fork();
    if (pid == 0)
        _exit(look_as_a_worker(folder, want, here));
    waitpid(pid, &status, 0);
    stop(here);
    stop(there);
    assert_int_equal(rmdir(folder), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void those_of_another_network_belong_to_another_pod(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); /* networks are root's to make */
    pid_t here = start(false);
    pid_t there = start(true);
    cr_autofree char *want = cr_asprintf("%d", (int)here);
    expect(true, want);
    assert_true(same_for_nobody(want));
    cr_autofree char *all = find(false);
    cr_autofree char *other = cr_asprintf("%d", (int)there);
    assert_true(strstr(all, want) && strstr(all, other));
    stop(here);
    stop(there);
    expect(true, "");
}

static int wait_before_exec(void *until)
{
    char byte;
    (void)!read(*(const int *)until, &byte, 1);
    return 0;
}

/* As Go starts programs: a process of its own, with its parent's memory. */
static pid_t fork_as_go(int *until)
{
    static char stack[64 * 1024];
    pid_t pid = clone(wait_before_exec, stack + sizeof stack, CLONE_VM | SIGCHLD, until);
    return pid > 0 ? pid : 0;
}

static void what_is_just_forked_is_not_meant(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* it does not bear a process that runs in its parent's memory */
#endif
    int until[2];
    int ready[2];
    pid_t child = 0;
    assert_int_equal(pipe(until), 0);
    assert_int_equal(pipe(ready), 0);
    pid_t parent = fork();
    if (parent == 0) {
        close(until[1]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        child = prctl(PR_SET_NAME, name) == 0 ? fork_as_go(&until[0]) : 0;
        (void)!write(ready[1], &child, sizeof child);
        for (;;)
            pause();
    }
    struct cr_proc forked;
    assert_int_equal(read(ready[0], &child, sizeof child), sizeof child);
    assert_true(cr_proc_read(child, &forked));
    assert_int_equal(forked.parent, parent);
    assert_string_equal(forked.name, name);
    cr_autofree char *want = cr_asprintf("%d", (int)parent);
    expect(false, want);
    expect(true, want);
    for (size_t i = 0; i < 2; i++) {
        close(until[1 - i]);
        close(ready[i]);
    }
    stop(parent);
}

/* The kernel calls a script by its file's name, and what it starts may have the same. */
static void what_a_script_of_that_name_has_started_is_meant(void **state)
{
    (void)state;
    char folder[] = "/tmp/certroll-name-XXXXXX";
    assert_non_null(mkdtemp(folder));
    cr_autofree char *file = cr_asprintf("%s/%s", folder, name);
    assert_int_equal(symlink("/bin/sleep", file), 0);
    int ready[2];
    pid_t child = 0;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t parent = fork();
    if (parent == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, name);
        child = fork();
        if (child == 0)
            _exit(execl(file, "sleep", "10", NULL));
        (void)!write(ready[1], &child, sizeof child);
        close(ready[1]);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &child, sizeof child), sizeof child);
    assert_int_equal(read(ready[0], &(char){0}, 1), 0); /* nobody has it any more: it was executed */
    cr_autofree char *want = cr_asprintf("%d %d", (int)child, (int)parent);
    expect(false, want);
    close(ready[0]);
    kill(child, SIGKILL);
    stop(parent);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void identity_is_the_process_s_own(void **state)
{
    (void)state;
    const struct cr_node_layout layout = {.root = "", .proc = "/proc"};
    struct cr_node_program program = {0};
    struct cr_node_program again = {0};
    struct cr_proc self;
    assert_true(cr_proc_read(getpid(), &self));
    cr_node_processes_set(&layout, &self, &program);
    cr_node_processes_set(&layout, &self, &again);
    assert_true(program.running && program.started_ms > 0);
    assert_string_equal(program.identity, again.identity);
    assert_true(strlen(program.identity) > 36); /* the boot's id is in it */
    assert_false(cr_node_process_began_after(again.identity, program.identity));
    self.started++;
    cr_node_processes_set(&layout, &self, &again);
    assert_string_not_equal(program.identity, again.identity);
    assert_true(cr_node_process_began_after(again.identity, program.identity));
    assert_false(cr_node_process_began_after(program.identity, again.identity));
    assert_true(cr_node_process_began_after("another-boot-7-5", again.identity));
    assert_false(cr_node_process_began_after(again.identity, NULL));
    assert_false(cr_node_process_began_after(NULL, again.identity));
    free(program.identity);
    free(again.identity);
}

static void words_and_folder_are_the_process_s_own(void **state)
{
    (void)state;
    char here[4096];
    const struct cr_node_layout layout = {.root = "", .proc = "/proc"};
    const struct cr_proc self = {.pid = getpid()};
    const struct cr_proc none = {.pid = 0x7ffffff0};
    struct cr_error err = {0};
    CR_CLEANUP(cr_buf) struct cr_buf words = CR_BUF_INIT(0);
    assert_true(cr_node_process_words(&layout, &self, &words, &err));
    assert_non_null(strstr(cr_buf_text(&words), "test_processes"));
    cr_autofree char *folder = cr_node_process_folder(&layout, &self);
    assert_non_null(getcwd(here, sizeof here));
    assert_string_equal(folder, here);
    assert_false(cr_node_process_words(&layout, &none, &words, &err));
    assert_int_equal(err.kind, CR_ERR_NOT_FOUND);
    cr_autofree char *unseen = cr_node_process_folder(&layout, &none);
    assert_string_equal(unseen, "/proc/2147483632/cwd");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_of_another_network_belong_to_another_pod),
        cmocka_unit_test(a_worker_s_agent_sees_the_host_s_and_cannot_reach_them),
        cmocka_unit_test(what_is_just_forked_is_not_meant),
        cmocka_unit_test(what_a_script_of_that_name_has_started_is_meant),
        cmocka_unit_test(identity_is_the_process_s_own),
        cmocka_unit_test(words_and_folder_are_the_process_s_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
