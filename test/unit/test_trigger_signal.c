#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "sys/proc_find.h"
#include "support/triggerscene.h"

/* A program with a name that no other process of this machine has: it ends with status 42 on SIGHUP. */
struct program {
    char name[CR_PROC_NAME];
    pid_t pid;
};

static void on_hup(int signal)
{
    (void)signal;
    _exit(42);
}

static void become(const char *name)
{
    prctl(PR_SET_NAME, name);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGHUP, on_hup);
}

static void say_ready(int fd)
{
    if (write(fd, "x", 1) != 1)
        _exit(1);
}

static void wait_ready(int fd, int times)
{
    char c = 0;
    for (int i = 0; i < times; i++)
        assert_int_equal(read(fd, &c, 1), 1);
}

/* With so many workers, its children, of the same name. */
static struct program start(int workers)
{
    static unsigned number;
    struct program p = {0};
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    snprintf(p.name, sizeof p.name, "t%x-%u", (unsigned)getpid(), number++);
    p.pid = fork();
    if (p.pid == 0) {
        become(p.name);
        for (int i = 0; i < workers; i++)
            if (fork() == 0) {
                become(p.name);
                say_ready(ready[1]);
                pause();
                _exit(0);
            }
        say_ready(ready[1]);
        for (;;)
            pause();
    }
    wait_ready(ready[0], workers + 1);
    close(ready[0]);
    close(ready[1]);
    return p;
}

/* Its exit status; -1: it was ended by another signal. */
static int status_of(const struct program *p)
{
    int status = 0;
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void end(const struct program *p)
{
    kill(p->pid, SIGKILL);
    status_of(p);
}

static struct trigger_scene signal_scene(char *process, char *pid_file)
{
    struct trigger_scene s = scene_of(CR_TRIGGER_SIGNAL);
    s.spec.signal.number = SIGHUP;
    s.spec.signal.process = process;
    s.spec.signal.pid_file = pid_file;
    return s;
}

static void a_process_is_found_by_its_name(void **state)
{
    (void)state;
    struct program p = start(0);
    CR_CLEANUP(scene) struct trigger_scene s = signal_scene(p.name, NULL);
    scene_must_pull(&s);
    assert_int_equal(status_of(&p), 42);
}

static void of_several_it_is_the_master(void **state)
{
    (void)state;
    struct program p = start(3);
    CR_CLEANUP(scene) struct trigger_scene s = signal_scene(p.name, NULL);
    struct cr_proc found;
    struct cr_error err = {0};
    assert_true(cr_proc_find(p.name, &found, &err));
    assert_int_equal(found.pid, p.pid);
    assert_int_equal(found.parent, getpid());
    uid_t user = 0;
    assert_true(cr_proc_user(p.pid, &user));
    assert_int_equal(user, geteuid());
    scene_must_pull(&s);
    assert_int_equal(status_of(&p), 42);
}

static void of_two_masters_none_is_chosen(void **state)
{
    (void)state;
    struct program one = start(0);
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    struct program two = one;
    two.pid = fork();
    if (two.pid == 0) {
        become(one.name);
        say_ready(ready[1]);
        for (;;)
            pause();
    }
    wait_ready(ready[0], 1);
    CR_CLEANUP(scene) struct trigger_scene s = signal_scene(one.name, NULL);
    scene_must_fail(&s, CR_ERR_CONFLICT, "none is the parent of the others");
    end(&one);
    end(&two);
    close(ready[0]);
    close(ready[1]);
}

/* The kernel cuts names; the file of the executable has the whole one. */
static void a_long_name_is_found_too(void **state)
{
    static char name[] = "certroll-with-a-long-name";
    (void)state;
    char folder[] = "/tmp/certroll-signal-XXXXXX";
    assert_non_null(mkdtemp(folder));
    cr_autofree char *path = cr_asprintf("%s/%s", folder, name);
    cr_autofree char *copy = cr_asprintf("cp /bin/sh %s", path);
    assert_int_equal(system(copy), 0); /* NOLINT(cert-env33-c): a copy of a program, for a test */
    struct program p = {.pid = fork()};
    if (p.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(path, "other", "-c", "trap 'exit 42' HUP; while :; do sleep 0.05; done", NULL);
        _exit(1);
    }
    CR_CLEANUP(scene) struct trigger_scene s = signal_scene(name, NULL);
    int64_t deadline = cr_clock_monotonic_ms() + PATIENCE_MS;
    while (!scene_pull(&s) && cr_clock_monotonic_ms() < deadline) /* until it is executed, and catches it */
        usleep(1000);
    if (s.err.kind)
        kill(p.pid, SIGKILL);
    assert_int_equal(status_of(&p), 42);
    unlink(path);
    rmdir(folder);
}

/* Between exec and its first handler. */
static void who_would_end_of_it_is_spared(void **state)
{
    (void)state;
    struct program p = start(0);
    CR_CLEANUP(scene) struct trigger_scene s = signal_scene(p.name, NULL);
    s.spec.signal.number = SIGUSR1;
    scene_must_fail(&s, CR_ERR_TRANSIENT, "does not catch this signal");
    assert_int_equal(waitpid(p.pid, NULL, WNOHANG), 0);
    end(&p);
}

static void what_is_not_there_is_not_signalled(void **state)
{
    (void)state;
    struct program p = start(0);
    end(&p);
    CR_CLEANUP(scene) struct trigger_scene s = signal_scene(p.name, NULL);
    scene_must_fail(&s, CR_ERR_NOT_FOUND, "no process is named");
}

/* A zombie has a name still. */
static void who_has_ended_is_not_there(void **state)
{
    (void)state;
    struct program p = start(0);
    struct cr_proc found;
    kill(p.pid, SIGKILL);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)p.pid, &info, WEXITED | WNOWAIT), 0);
    assert_false(cr_proc_read(p.pid, &found));
    CR_CLEANUP(scene) struct trigger_scene s = signal_scene(p.name, NULL);
    scene_must_fail(&s, CR_ERR_NOT_FOUND, "no process is named");
    status_of(&p);
}

static void this_process_is_never_meant(void **state)
{
    char name[CR_PROC_NAME];
    (void)state;
    prctl(PR_GET_NAME, name);
    CR_CLEANUP(scene) struct trigger_scene s = signal_scene(name, NULL);
    scene_must_fail(&s, CR_ERR_NOT_FOUND, "no process is named");
}

/* --- pid files --- */

struct pid_file {
    char path[40];
};

static struct pid_file pid_file_of(const char *text)
{
    struct pid_file file = {.path = "/tmp/certroll-pid-XXXXXX"};
    int fd = mkstemp(file.path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return file;
}

static void remove_pid_file(struct pid_file *file)
{
    unlink(file->path);
}
CR_DEFINE_DISPOSE(pid_file, struct pid_file, remove_pid_file)

static void a_process_is_found_by_its_pid_file(void **state)
{
    static const char *const forms[] = {"%d", "%d\n", "  %d\n", "%d\n/var/lib/data\n1763710000\n5432\n", "%d \n"};
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char text[128];
        struct program p = start(0);
        int number = (int)p.pid;
        char digits[16];
        snprintf(digits, sizeof digits, "%d", number);
        const char *at = strstr(forms[i], "%d");
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - forms[i]), forms[i], digits, at + 2);
        CR_CLEANUP(pid_file) struct pid_file file = pid_file_of(text);
        CR_CLEANUP(scene) struct trigger_scene s = signal_scene(NULL, file.path);
        scene_must_pull(&s);
        assert_int_equal(status_of(&p), 42);
    }
}

static void a_pid_file_that_names_no_process_is_refused(void **state)
{
    static const struct {
        const char *text;
        enum cr_error_kind kind;
        const char *words;
    } cases[] = {
        {"", CR_ERR_NOT_FOUND, "holds no pid"},
        {"\n7\n", CR_ERR_NOT_FOUND, "holds no pid"},
        {"nginx\n", CR_ERR_NOT_FOUND, "holds no pid"},
        {"12x\n", CR_ERR_NOT_FOUND, "holds no pid"},
        {"0\n", CR_ERR_NOT_FOUND, "holds no pid"},
        {"-5\n", CR_ERR_NOT_FOUND, "holds no pid"},
        {"99999999999999999999\n", CR_ERR_NOT_FOUND, "holds no pid"},
        {"1\n", CR_ERR_INVALID, "shareProcessNamespace: true"},
        {"2147483646\n", CR_ERR_NOT_FOUND, "there is no process 2147483646"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CR_CLEANUP(pid_file) struct pid_file file = pid_file_of(cases[i].text);
        CR_CLEANUP(scene) struct trigger_scene s = signal_scene(NULL, file.path);
        scene_must_fail(&s, cases[i].kind, cases[i].words);
    }
    static char missing[] = "/tmp/certroll-pid/of/nobody";
    CR_CLEANUP(scene) struct trigger_scene s = signal_scene(NULL, missing);
    scene_must_fail(&s, CR_ERR_NOT_FOUND, missing);
}

static void a_pid_file_of_this_process_was_written_elsewhere(void **state)
{
    char text[16];
    (void)state;
    snprintf(text, sizeof text, "%d\n", (int)getpid());
    CR_CLEANUP(pid_file) struct pid_file file = pid_file_of(text);
    CR_CLEANUP(scene) struct trigger_scene s = signal_scene(NULL, file.path);
    scene_must_fail(&s, CR_ERR_INVALID, "shareProcessNamespace: true");
}

/* The number is another's by now. */
static void a_pid_file_from_before_its_process_is_stale(void **state)
{
    char text[16];
    (void)state;
    struct program p = start(0);
    snprintf(text, sizeof text, "%d\n", (int)p.pid);
    CR_CLEANUP(pid_file) struct pid_file file = pid_file_of(text);
    const struct timespec hour_ago[2] = {{.tv_sec = time(NULL) - 3600}, {.tv_sec = time(NULL) - 3600}};
    assert_int_equal(utimensat(AT_FDCWD, file.path, hour_ago, 0), 0);
    CR_CLEANUP(scene) struct trigger_scene s = signal_scene(NULL, file.path);
    scene_must_fail(&s, CR_ERR_NOT_FOUND, "the file is of a program that has ended");
    assert_int_equal(waitpid(p.pid, NULL, WNOHANG), 0);
    end(&p);
}

/* --- another user's --- */

enum { ONE_USER = 65532, OTHER_USER = 65533 };

/* In a process of its own, since it cannot become root again. Its exit status: 0, as expected. */
static int signal_as_another_user(struct trigger_scene *s)
{
    if (setresuid(OTHER_USER, OTHER_USER, OTHER_USER) != 0)
        return 2;
    bool refused = !scene_pull(s) && s->err.kind == CR_ERR_FORBIDDEN && strstr(s->err.text, "user 65532") &&
                   strstr(s->err.text, "runAsUser") && strstr(s->err.text, "KILL");
    if (!refused)
        fprintf(stderr, "%s: %s\n", cr_error_kind_name(s->err.kind), s->err.text);
    return refused ? 0 : 1;
}

static void another_users_process_is_explained(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    struct program p = start(0);
    struct program other = {0};
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    snprintf(other.name, sizeof other.name, "u%x", (unsigned)getpid());
    other.pid = fork();
    if (other.pid == 0) {
        if (setresuid(ONE_USER, ONE_USER, ONE_USER) != 0)
            _exit(1);
        become(other.name);
        say_ready(ready[1]);
        for (;;)
            pause();
    }
    wait_ready(ready[0], 1);
    CR_CLEANUP(scene) struct trigger_scene s = signal_scene(other.name, NULL);
    struct program child = {.pid = fork()};
    if (child.pid == 0)
        _exit(signal_as_another_user(&s));
    assert_int_equal(status_of(&child), 0);
    end(&p);
    end(&other);
    close(ready[0]);
    close(ready[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_is_found_by_its_name),
        cmocka_unit_test(of_several_it_is_the_master),
        cmocka_unit_test(of_two_masters_none_is_chosen),
        cmocka_unit_test(a_long_name_is_found_too),
        cmocka_unit_test(who_would_end_of_it_is_spared),
        cmocka_unit_test(what_is_not_there_is_not_signalled),
        cmocka_unit_test(who_has_ended_is_not_there),
        cmocka_unit_test(this_process_is_never_meant),
        cmocka_unit_test(a_process_is_found_by_its_pid_file),
        cmocka_unit_test(a_pid_file_that_names_no_process_is_refused),
        cmocka_unit_test(a_pid_file_of_this_process_was_written_elsewhere),
        cmocka_unit_test(a_pid_file_from_before_its_process_is_stale),
        cmocka_unit_test(another_users_process_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
