#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/strings.h"
#include "drain/strategy.h"
#include "support/ownnet.h"

enum { PATIENCE_MS = 20 * 1000, LOOK_US = 5 * 1000, OTHER_USER = 65533 };

/* A master that listens, and at SIGQUIT closes its socket, with a worker that has accepted one connection and ends with
 * it; the master ends with its worker. */
struct nginx {
    char name[16];
    pid_t master;
    int client; /* the connection */
    struct cr_strvec memory;
    struct cr_drain_target target;
    struct cr_error err;
};

static int listener;

static void serve_one(const char *name, int ready)
{
    char byte = 0;
    prctl(PR_SET_NAME, name);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int connection = accept(listener, NULL, NULL);
    close(listener);
    if (connection < 0 || write(ready, "x", 1) != 1)
        _exit(1);
    _exit(read(connection, &byte, 1) == 0 ? 0 : 1);
}

static void never_runs(int number)
{
    (void)number;
}

/* It catches the signal, but waits for it: ThreadSanitizer puts handlers off until a call that it knows. */
static void be_master(const char *name, int ready, bool has_worker)
{
    const struct sigaction quit = {.sa_handler = never_runs};
    sigset_t signals;
    sigaction(SIGQUIT, &quit, NULL);
    sigemptyset(&signals);
    sigaddset(&signals, SIGQUIT);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    prctl(PR_SET_NAME, name);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (has_worker && fork() == 0)
        serve_one(name, ready);
    if (!has_worker && write(ready, "x", 1) != 1)
        _exit(1);
    for (;;) {
        int number = 0;
        sigwait(&signals, &number);
        if (number == SIGQUIT)
            close(listener);
        else if (waitpid(-1, NULL, WNOHANG) > 0)
            _exit(0);
    }
}

static void connect_client(struct nginx *n)
{
    struct sockaddr_in address;
    socklen_t len = sizeof address;
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    n->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(n->client, (struct sockaddr *)&address, len), 0);
}

static void nginx_start(struct nginx *n, bool has_worker)
{
    static unsigned number;
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int ready[2];
    char byte = 0;
    *n = (struct nginx){.client = -1};
    snprintf(n->name, sizeof n->name, "n%x-%u", (unsigned)getpid(), number++);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(pipe(ready), 0);
    n->master = fork();
    if (n->master == 0)
        be_master(n->name, ready[1], has_worker);
    connect_client(n);
    close(listener);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    n->target = (struct cr_drain_target){.process = n->name, .memory = &n->memory};
}

static void nginx_dispose(struct nginx *n)
{
    kill(n->master, SIGKILL);
    waitpid(n->master, NULL, 0);
    if (n->client >= 0)
        close(n->client);
    cr_strvec_dispose(&n->memory);
}
CR_DEFINE_DISPOSE(nginx, struct nginx, nginx_dispose)

static bool begin(struct nginx *n)
{
    const struct cr_drain_attempt attempt = {.deadline_ms = cr_clock_monotonic_ms() + PATIENCE_MS, .cancel_fd = -1};
    n->err = (struct cr_error){0};
    return cr_drain_nginx.begin(&n->target, &attempt, &n->err);
}

static bool count(struct nginx *n, struct cr_drain_count *out)
{
    const struct cr_drain_attempt attempt = {.deadline_ms = cr_clock_monotonic_ms() + PATIENCE_MS, .cancel_fd = -1};
    n->err = (struct cr_error){0};
    *out = (struct cr_drain_count){0};
    return cr_drain_nginx.count(&n->target, &attempt, out, &n->err);
}

static void must_begin(struct nginx *n)
{
    if (!begin(n))
        fail_msg("%s: %s", cr_error_kind_name(n->err.kind), n->err.text);
}

static void must_end(struct nginx *n)
{
    struct cr_drain_count found;
    int64_t deadline_ms = cr_clock_monotonic_ms() + PATIENCE_MS;
    for (count(n, &found); !found.ended; count(n, &found)) {
        assert_true(cr_clock_monotonic_ms() < deadline_ms);
        usleep(LOOK_US);
    }
}

static void must_fail(const struct nginx *n, bool ok, enum cr_error_kind kind, const char *words)
{
    if (ok || n->err.kind != kind || !strstr(n->err.text, words))
        fail_msg("expected %s with '%s', got %s: %s", cr_error_kind_name(kind), words, cr_error_kind_name(n->err.kind),
                 n->err.text);
}

static void it_has_drained_when_it_has_ended(void **state)
{
    struct cr_drain_count found;
    (void)state;
    CR_CLEANUP(nginx) struct nginx n;
    nginx_start(&n, true);
    must_begin(&n);
    assert_true(count(&n, &found));
    assert_int_equal(found.open, 1);
    assert_false(found.ended);
    close(n.client);
    n.client = -1;
    must_end(&n);
}

/* No process accepted it, so that no client is connected; but a process that is there has something left. */
static void who_is_there_is_never_drained(void **state)
{
    struct cr_drain_count found;
    (void)state;
    CR_CLEANUP(nginx) struct nginx n;
    nginx_start(&n, false);
    must_begin(&n);
    assert_true(count(&n, &found));
    assert_int_equal(found.open, 1);
    assert_false(found.ended);
    kill(n.master, SIGKILL);
    must_end(&n);
}

/* The master killed, its worker goes on. */
static void workers_are_waited_for_without_their_master(void **state)
{
    struct cr_drain_count found;
    (void)state;
    CR_CLEANUP(nginx) struct nginx n;
    nginx_start(&n, true);
    must_begin(&n);
    struct cr_strvec *memory = &n.memory;
    assert_true(memory->len == 3 && cr_starts_with(memory->items[1], "process ")); /* port, master, worker */
    free(memory->items[1]);
    memory->items[1] = memory->items[--memory->len];
    assert_true(count(&n, &found));
    assert_int_equal(found.open, 1);
    close(n.client);
    n.client = -1;
    must_end(&n);
}

/* Begun once more, by a manager that was restarted: nginx has closed its ports, and they are not known any more. */
static void unknown_ports_are_no_zero(void **state)
{
    struct cr_drain_count found;
    (void)state;
    CR_CLEANUP(nginx) struct nginx n;
    nginx_start(&n, true);
    must_begin(&n);
    int64_t deadline_ms = cr_clock_monotonic_ms() + PATIENCE_MS;
    do { /* until it has taken the signal */
        assert_true(cr_clock_monotonic_ms() < deadline_ms);
        must_begin(&n);
    } while (count(&n, &found));
    must_fail(&n, false, CR_ERR_FORBIDDEN, "listens nowhere");
    close(n.client);
    n.client = -1;
    must_end(&n);
    n.target.memory = NULL;
    must_fail(&n, count(&n, &found), CR_ERR_FORBIDDEN, "not begun here");
}

static void what_is_not_there_has_not_begun(void **state)
{
    (void)state;
    CR_CLEANUP(nginx) struct nginx n;
    nginx_start(&n, false);
    n.target.process = "no-such-nginx";
    must_fail(&n, begin(&n), CR_ERR_NOT_FOUND, "no process is named 'no-such-nginx'");
    n.target.pid_file = "/tmp/certroll/no/nginx.pid";
    must_fail(&n, begin(&n), CR_ERR_NOT_FOUND, "/tmp/certroll/no/nginx.pid");
}

/* The clock was set forward after its start, or it is of a program that has ended: its name shows which. */
static void a_pid_file_that_seems_too_old_is_believed_of_nginx_alone(void **state)
{
    char path[] = "/tmp/certroll-nginx-XXXXXX";
    struct timespec hour_ago[2];
    (void)state;
    CR_CLEANUP(nginx) struct nginx n;
    nginx_start(&n, false);
    int fd = mkstemp(path);
    assert_true(fd >= 0 && dprintf(fd, "%d\n", (int)n.master) > 0);
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &hour_ago[0]), 0);
    hour_ago[0].tv_sec -= 3600;
    hour_ago[1] = hour_ago[0];
    assert_int_equal(futimens(fd, hour_ago), 0);
    close(fd);
    n.target.pid_file = path;
    n.target.process = "nginx";
    bool of_another = begin(&n);
    struct cr_error why = n.err;
    n.target.process = n.name;
    bool of_nginx = begin(&n);
    unlink(path);
    if (of_another || !strstr(why.text, "of a program that has ended") || !of_nginx)
        fail_msg("%d %s; %d %s", of_another, why.text, of_nginx, n.err.text);
}

/* Its child would be root's: in a process of its own, which cannot become root again. */
static void another_users_nginx_is_explained(void **state)
{
    int status = 0;
    (void)state;
    if (geteuid() != 0)
        skip();
    CR_CLEANUP(nginx) struct nginx n;
    nginx_start(&n, false);
    pid_t child = fork();
    if (child == 0) {
        if (setresuid(OTHER_USER, OTHER_USER, OTHER_USER) != 0)
            _exit(2);
        _exit(!begin(&n) && n.err.kind == CR_ERR_FORBIDDEN && strstr(n.err.text, "runAsUser") ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void its_usual_name_is_known(void **state)
{
    struct cr_drain_target target = {0};
    (void)state;
    assert_true(cr_drain_nginx.prepare(&target, NULL));
    assert_string_equal(target.process, "nginx");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_has_drained_when_it_has_ended),
        cmocka_unit_test(who_is_there_is_never_drained),
        cmocka_unit_test(workers_are_waited_for_without_their_master),
        cmocka_unit_test(unknown_ports_are_no_zero),
        cmocka_unit_test(what_is_not_there_has_not_begun),
        cmocka_unit_test(a_pid_file_that_seems_too_old_is_believed_of_nginx_alone),
        cmocka_unit_test(another_users_nginx_is_explained),
        cmocka_unit_test(its_usual_name_is_known),
    };
    /* When nginx has closed its port, a server of another test may get it, and its connections would be counted. */
    (void)test_own_network("192.0.2.1");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
