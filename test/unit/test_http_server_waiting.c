/* Pages of wire/http_server that take their time. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/strings.h"
#include "wire/http_room.h"
#include "wire/http_server.h"

enum { PATIENCE_MS = 20 * 1000, PENDING_MAX = 8, PLACES = 16, WAIT_MAX = CR_HTTP_ROOM_ASKED(PLACES) };

struct fixture {
    struct cr_loop *loop;
    struct cr_http_server *server;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    struct cr_http_pending *pending[PENDING_MAX];
    size_t asked;
    size_t waiting;
};

static void on_asked(void *arg, struct cr_http_pending *pending)
{
    struct fixture *f = arg;
    pthread_mutex_lock(&f->lock);
    f->pending[f->asked++] = pending;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static void *run_loop(void *arg)
{
    cr_loop_run(arg);
    return NULL;
}

static int set_up(void **state)
{
    struct fixture *f = cr_new(struct fixture);
    pthread_mutex_init(&f->lock, NULL);
    cr_cond_init(&f->changed);
    f->loop = cr_loop_new();
    f->server = cr_http_server_new(f->loop);
    cr_http_server_limit(f->server, &(struct cr_http_limits){.connections = PLACES, .head_ms = 1000, .idle_ms = 1000});
    cr_http_server_handle_waiting(f->server, "/wait", on_asked, f);
    struct cr_error err = {0};
    if (!cr_http_server_listen(f->server, "127.0.0.1:0", &err))
        fail_msg("%s", err.text);
    assert_int_equal(pthread_create(&f->thread, NULL, run_loop, f->loop), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    cr_loop_stop(f->loop);
    pthread_join(f->thread, NULL);
    cr_http_server_free(f->server);
    cr_loop_free(f->loop);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f);
    return 0;
}

static int connect_to(const struct fixture *f)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)cr_http_server_port(f->server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static int ask(const struct fixture *f)
{
    int fd = connect_to(f);
    say(fd, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    return fd;
}

static void wait_for_asked(struct fixture *f, size_t n)
{
    int64_t until_ms = cr_clock_monotonic_ms() + PATIENCE_MS;
    pthread_mutex_lock(&f->lock);
    while (f->asked < n)
        if (!cr_cond_wait_until(&f->changed, &f->lock, until_ms))
            fail_msg("%zu of %zu requests came", f->asked, n);
    pthread_mutex_unlock(&f->lock);
}

/* What is to be read within PATIENCE_MS: its length, 0 when the server has hung up. */
static ssize_t receive(int fd, char *out, size_t size)
{
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&readable, 1, PATIENCE_MS), 1);
    ssize_t n = recv(fd, out, size - 1, 0);
    out[n > 0 ? n : 0] = '\0';
    return n;
}

static void answer_all(void *arg)
{
    struct fixture *f = arg;
    CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(0);
    cr_buf_puts(&body, "done\n");
    for (size_t i = 0; i < f->asked; i++)
        cr_http_pending_answer(f->pending[i], 200, "text/plain", &body);
}

static void read_waiting(void *arg)
{
    struct fixture *f = arg;
    pthread_mutex_lock(&f->lock);
    f->waiting = cr_http_server_waiting(f->server);
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static size_t waiting(struct fixture *f)
{
    int64_t until_ms = cr_clock_monotonic_ms() + PATIENCE_MS;
    f->waiting = SIZE_MAX;
    cr_loop_post(f->loop, read_waiting, f);
    pthread_mutex_lock(&f->lock);
    while (f->waiting == SIZE_MAX && cr_cond_wait_until(&f->changed, &f->lock, until_ms))
        continue;
    pthread_mutex_unlock(&f->lock);
    return f->waiting;
}

static void wait_until_waiting(struct fixture *f, size_t n)
{
    int64_t until_ms = cr_clock_monotonic_ms() + PATIENCE_MS;
    while (waiting(f) != n && cr_clock_monotonic_ms() < until_ms)
        usleep(1000);
    assert_int_equal(waiting(f), n);
}

static void each_who_asked_is_answered(void **state)
{
    struct fixture *f = *state;
    cr_autofd int first = ask(f);
    cr_autofd int second = ask(f);
    wait_for_asked(f, 2);
    assert_int_equal(waiting(f), 2);
    cr_loop_post(f->loop, answer_all, f);
    const int both[] = {first, second};
    for (size_t i = 0; i < 2; i++) {
        char text[512];
        assert_true(receive(both[i], text, sizeof text) > 0);
        assert_true(cr_starts_with(text, "HTTP/1.1 200 ") && cr_ends_with(text, "\r\n\r\ndone\n"));
    }
    wait_until_waiting(f, 0);
}

/* That the time of silence has passed is seen by a connection that says nothing: it is ended by it. */
static void silence_does_not_end_a_wait(void **state)
{
    enum { TWICE = 2 };
    struct fixture *f = *state;
    cr_autofd int fd = ask(f);
    char text[512];
    wait_for_asked(f, 1);
    for (int i = 0; i < TWICE; i++) {
        cr_autofd int idle = connect_to(f);
        assert_int_equal(receive(idle, text, sizeof text), 0);
    }
    assert_int_equal(waiting(f), 1);
    cr_loop_post(f->loop, answer_all, f);
    assert_true(receive(fd, text, sizeof text) > 0);
    assert_true(cr_starts_with(text, "HTTP/1.1 200 "));
    /* Then it counts again, for the next request. */
    assert_int_equal(receive(fd, text, sizeof text), 0);
}

static void who_hangs_up_waits_no_more(void **state)
{
    struct fixture *f = *state;
    int fd = ask(f);
    wait_for_asked(f, 1);
    close(fd);
    wait_until_waiting(f, 0);
    cr_loop_post(f->loop, answer_all, f); /* no client reads it */
    assert_int_equal(waiting(f), 0);
}

/* The next request may come before the answer to this one. */
static void what_comes_meanwhile_is_kept(void **state)
{
    struct fixture *f = *state;
    char text[512];
    cr_autofd int fd = ask(f);
    wait_for_asked(f, 1);
    say(fd, "GET /other HTTP/1.1\r\nHost: x\r\n");
    cr_autofd int idle = connect_to(f);
    assert_int_equal(receive(idle, text, sizeof text), 0); /* time enough to be read */
    say(fd, "\r\n");
    cr_loop_post(f->loop, answer_all, f);
    assert_true(receive(fd, text, sizeof text) > 0);
    assert_true(cr_starts_with(text, "HTTP/1.1 200 "));
    while (!strstr(text, "HTTP/1.1 404 "))
        assert_true(receive(fd, text, sizeof text) > 0);
}

static void only_get_begins_it(void **state)
{
    static const char *const methods[] = {"HEAD", "POST", "PUT", "OPTIONS"};
    struct fixture *f = *state;
    for (size_t i = 0; i < cr_array_len(methods); i++) {
        char text[512];
        cr_autofd int fd = connect_to(f);
        cr_autofree char *request = cr_asprintf("%s /wait HTTP/1.1\r\nHost: x\r\n\r\n", methods[i]);
        say(fd, request);
        assert_true(receive(fd, text, sizeof text) > 0);
        assert_true(cr_starts_with(text, "HTTP/1.1 405 "));
        assert_non_null(strstr(text, "\r\nAllow: GET\r\n"));
    }
    assert_int_equal(f->asked, 0);
}

/* From 127.0.0.n, so that it is another peer. */
static int ask_from(const struct fixture *f, unsigned n)
{
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + n)};
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)cr_http_server_port(f->server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    say(fd, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    return fd;
}

static void receive_refusal(int fd)
{
    char text[512];
    assert_true(receive(fd, text, sizeof text) > 0);
    assert_true(cr_starts_with(text, "HTTP/1.1 503 "));
}

/* Those who wait for a drain's end are legitimate, and none of them may be kept out by one peer that asks without end:
 * the one with the most gives up a place, the one that came first stays, and nothing is begun for a refused client. */
static void so_many_may_wait(void **state)
{
    enum { KUBELET = 1, HOSTILE = 2, LATE = 3 };
    struct fixture *f = *state;
    cr_autofd int kubelet = ask_from(f, KUBELET);
    wait_for_asked(f, 1);
    int hostile[WAIT_MAX - 1];
    for (size_t i = 0; i < WAIT_MAX - 1; i++) {
        hostile[i] = ask_from(f, HOSTILE);
        wait_for_asked(f, i + 2); /* so that the last one is the youngest */
    }
    cr_autofd int more = ask_from(f, HOSTILE);
    receive_refusal(more);
    assert_int_equal(f->asked, WAIT_MAX);
    cr_autofd int late = ask_from(f, LATE);
    receive_refusal(hostile[WAIT_MAX - 2]); /* the youngest of that peer */
    wait_for_asked(f, WAIT_MAX + 1);
    assert_int_equal(waiting(f), WAIT_MAX);
    cr_loop_post(f->loop, answer_all, f);
    const int both[] = {kubelet, late};
    for (size_t i = 0; i < 2; i++) {
        char text[512];
        assert_true(receive(both[i], text, sizeof text) > 0);
        assert_true(cr_starts_with(text, "HTTP/1.1 200 "));
    }
    for (size_t i = 0; i < WAIT_MAX - 1; i++)
        close(hostile[i]);
}

/* Nor does a flood of those who ask nothing. */
static void who_waits_keeps_his_place_in_a_flood(void **state)
{
    enum { FLOOD = 2 * PLACES };
    struct fixture *f = *state;
    int flood[FLOOD];
    cr_autofd int fd = ask(f);
    wait_for_asked(f, 1);
    for (size_t i = 0; i < FLOOD; i++)
        flood[i] = connect_to(f);
    cr_autofd int last = ask(f);
    wait_for_asked(f, 2);
    assert_int_equal(waiting(f), 2);
    cr_loop_post(f->loop, answer_all, f);
    char text[512];
    assert_true(receive(fd, text, sizeof text) > 0);
    assert_true(cr_starts_with(text, "HTTP/1.1 200 "));
    for (size_t i = 0; i < FLOOD; i++)
        close(flood[i]);
}

/* Whether it is answered afterwards or before. */
static void a_server_may_go_while_a_client_waits(void **state)
{
    struct fixture *f = *state;
    cr_autofd int fd = ask(f);
    char text[512];
    wait_for_asked(f, 1);
    cr_loop_stop(f->loop);
    pthread_join(f->thread, NULL);
    cr_http_server_free(cr_steal(&f->server));
    answer_all(f);
    assert_true(receive(fd, text, sizeof text) <= 0);
    assert_int_equal(pthread_create(&f->thread, NULL, run_loop, f->loop), 0);
}

#define with_loop(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_loop(each_who_asked_is_answered), with_loop(silence_does_not_end_a_wait),
        with_loop(who_hangs_up_waits_no_more), with_loop(what_comes_meanwhile_is_kept),
        with_loop(only_get_begins_it),         with_loop(a_server_may_go_while_a_client_waits),
        with_loop(so_many_may_wait),           with_loop(who_waits_keeps_his_place_in_a_flood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
