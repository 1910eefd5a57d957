#include "wire/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "net/http_requests.h"
#include "wire/http_room.h"

enum { PATIENCE_MS = 20 * 1000 };

struct fixture {
    struct cr_loop *loop;
    pthread_t thread;
    struct cr_http_server *server;
    struct cr_http_requests *client;
    atomic_bool misplaced; /* a handler ran outside of the loop's thread */
    atomic_int big_ones;   /* how often that page was made */
    struct cr_http_counts counts;
    sem_t counted;
};

static int metrics(void *arg, struct cr_buf *body, const char **content_type)
{
    struct fixture *f = arg;
    if (!cr_loop_in_thread(f->loop))
        atomic_store(&f->misplaced, true);
    *content_type = "text/plain; version=0.0.4";
    cr_buf_puts(body, "certroll_up 1\n");
    return 200;
}

static int not_ready(void *arg, struct cr_buf *body, const char **content_type)
{
    (void)arg;
    (void)content_type;
    cr_buf_puts(body, "informers are not in sync\n");
    return 503;
}

static int silent(void *arg, struct cr_buf *body, const char **content_type)
{
    (void)arg;
    (void)body;
    (void)content_type;
    return 200;
}

static int big(void *arg, struct cr_buf *body, const char **content_type)
{
    struct fixture *f = arg;
    atomic_fetch_add(&f->big_ones, 1);
    (void)content_type;
    for (int i = 0; i < 100000; i++)
        cr_buf_printf(body, "metric_%d 1\n", i);
    return 200;
}

static void *run_loop(void *arg)
{
    cr_loop_run(arg);
    return NULL;
}

static struct fixture *new_fixture(void)
{
    struct fixture *f = cr_new(struct fixture);
    sem_init(&f->counted, 0, 0);
    f->loop = cr_loop_new();
    f->server = cr_http_server_new(f->loop);
    cr_http_server_handle(f->server, "/metrics", metrics, f);
    cr_http_server_handle(f->server, "/readyz", not_ready, f);
    cr_http_server_handle(f->server, "/silent", silent, f);
    cr_http_server_handle(f->server, "/big", big, f);
    cr_http_server_make_one_at_a_time(f->server, "/big");
    f->client = cr_http_requests_new(NULL, NULL);
    return f;
}

static int start(struct fixture *f, const char *address)
{
    struct cr_error err = {0};
    if (!cr_http_server_listen(f->server, address, &err))
        fail_msg("%s", err.text);
    return pthread_create(&f->thread, NULL, run_loop, f->loop);
}

static int set_up_on(void **state, const char *address)
{
    struct fixture *f = new_fixture();
    *state = f;
    return start(f, address);
}

static int set_up(void **state)
{
    return set_up_on(state, "127.0.0.1:0");
}

static int set_up_everywhere(void **state)
{
    return set_up_on(state, ":0");
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    cr_loop_stop(f->loop);
    pthread_join(f->thread, NULL);
    cr_http_requests_free(f->client);
    cr_http_server_free(f->server);
    cr_loop_free(f->loop);
    sem_destroy(&f->counted);
    free(f);
    return 0;
}

static int ask(struct fixture *f, const char *method, const char *path, struct cr_buf *text)
{
    cr_autofree char *url = cr_asprintf("http://127.0.0.1:%d%s", cr_http_server_port(f->server), path);
    const struct cr_http_request request = {.method = method, .url = url, .timeout_ms = PATIENCE_MS};
    CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
    struct cr_error err = {0};
    if (!cr_http_do(f->client, &request, &response, &err))
        fail_msg("%s %s: %s", method, path, err.text);
    cr_buf_reset(text);
    cr_buf_puts(text, cr_buf_text(&response.body));
    return response.status;
}

static void a_handler_answers_its_exact_path(void **state)
{
    static const struct {
        const char *method;
        const char *path;
        int status;
        const char *body;
    } cases[] = {
        {"GET", "/metrics", 200, "certroll_up 1\n"},
        {"GET", "/metrics?name=x", 200, "certroll_up 1\n"},
        {"HEAD", "/metrics", 200, ""},
        {"GET", "/readyz", 503, "informers are not in sync\n"},
        {"HEAD", "/readyz", 503, ""},
        {"GET", "/silent", 200, ""},
        {"GET", "/", 404, "not found\n"},
        {"GET", "/metrics/", 404, "not found\n"},
        {"GET", "/Metrics", 404, "not found\n"},
        {"GET", "/%6Detrics", 404, "not found\n"},
        {"GET", "/../metrics", 404, "not found\n"},
        {"POST", "/", 404, "not found\n"},
        {"POST", "/metrics", 405, "only GET and HEAD\n"},
        {"PUT", "/metrics", 405, "only GET and HEAD\n"},
        {"PATCH", "/metrics", 405, "only GET and HEAD\n"},
        {"DELETE", "/readyz", 405, "only GET and HEAD\n"},
        {"OPTIONS", "/readyz", 405, "only GET and HEAD\n"},
    };
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    const struct fixture *f = *state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        int status = ask(*state, cases[i].method, cases[i].path, &text);
        if (status != cases[i].status || !cr_streq(cr_buf_text(&text), cases[i].body))
            fail_msg("%s %s: %d %s", cases[i].method, cases[i].path, status, cr_buf_text(&text));
    }
    assert_false(atomic_load(&f->misplaced));
}

static void a_big_answer_arrives_whole(void **state)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    assert_int_equal(ask(*state, "GET", "/big", &text), 200);
    assert_true(cr_ends_with(text.data, "\nmetric_99999 1\n"));
}

/* --- on the wire --- */

static void connect_socket(const struct fixture *f, int fd)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)cr_http_server_port(f->server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0)
        fail_msg("%s", strerror(errno));
}

static int connect_to(const struct fixture *f)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    connect_socket(f, fd);
    return fd;
}

/* Sends it, says no more, and reads to the end. */
static void converse(const struct fixture *f, const char *text, struct cr_buf *answer)
{
    cr_autofd int fd = connect_to(f);
    size_t len = strlen(text);
    for (size_t at = 0; at < len;) {
        ssize_t n = send(fd, text + at, len - at, MSG_NOSIGNAL);
        if (n < 0)
            break; /* refused in the middle */
        at += (size_t)n;
    }
    shutdown(fd, SHUT_WR);
    cr_buf_reset(answer);
    char chunk[4096];
    for (ssize_t n; (n = recv(fd, chunk, sizeof chunk, 0)) > 0;)
        assert_true(cr_buf_append(answer, chunk, (size_t)n));
}

static void a_head_request_says_how_long_the_body_would_be(void **state)
{
    CR_CLEANUP(cr_buf) struct cr_buf answer = CR_BUF_INIT(0);
    converse(*state, "HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", &answer);
    assert_true(cr_starts_with(cr_buf_text(&answer), "HTTP/1.1 200 "));
    assert_non_null(strstr(answer.data, "\r\nContent-Length: 14\r\n"));
    assert_non_null(strstr(answer.data, "\r\nContent-Type: text/plain; version=0.0.4\r\n"));
    assert_true(cr_ends_with(answer.data, "\r\n\r\n"));
}

static void another_method_is_answered_with_those_that_are_allowed(void **state)
{
    CR_CLEANUP(cr_buf) struct cr_buf answer = CR_BUF_INIT(0);
    converse(*state, "DELETE /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", &answer);
    assert_non_null(strstr(cr_buf_text(&answer), "\r\nAllow: GET, HEAD\r\n"));
}

static void garbage_is_refused_and_hurts_no_other_client(void **state)
{
    CR_CLEANUP(cr_buf) struct cr_buf long_header = CR_BUF_INIT(0);
    cr_buf_puts(&long_header, "GET /metrics HTTP/1.1\r\nX: ");
    for (int i = 0; i < 20000; i++)
        cr_buf_puts(&long_header, "yyyyyyyyyy");
    cr_buf_puts(&long_header, "\r\n\r\n");
    const char *const cases[] = {
        "",
        "\r\n\r\n",
        "hello\r\n\r\n",
        "\x16\x03\x01\x02",
        "GET\r\n\r\n",
        "BREW /metrics HTTP/1.1\r\n\r\n",
        "GET /metrics HTTP/9.9\r\n\r\n",
        "GET http://[/metrics HTTP/1.1\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST /metrics HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "POST /metrics HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n",
        "POST /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "GET * HTTP/1.1\r\n\r\n",
        "CONNECT x:1 HTTP/1.1\r\n\r\n",
        long_header.data,
    };
    struct fixture *f = *state;
    CR_CLEANUP(cr_buf) struct cr_buf answer = CR_BUF_INIT(0);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        converse(f, cases[i], &answer);
        if (cr_starts_with(cr_buf_text(&answer), "HTTP/1.1 200"))
            fail_msg("case %zu: %s", i, answer.data);
    }
    assert_int_equal(ask(f, "GET", "/metrics", &answer), 200);
}

/* --- floods --- */

enum { PLACES = 16, FLOOD = 3 * PLACES, LEFT = CR_HTTP_ROOM_FREE(PLACES) };

/* With few places, so that a flood is small; and with deadlines that no test waits for, or all. */
static int set_up_small(void **state, int deadline_ms)
{
    struct fixture *f = new_fixture();
    const struct cr_http_limits limits = {
        .connections = PLACES, .head_ms = deadline_ms, .idle_ms = deadline_ms, .answer_ms = deadline_ms};
    cr_http_server_limit(f->server, &limits);
    *state = f;
    return start(f, "127.0.0.1:0");
}

static int set_up_with_few_places(void **state)
{
    return set_up_small(state, 3600 * 1000);
}

static int set_up_with_deadlines(void **state)
{
    return set_up_small(state, 300);
}

static void assert_served(int fd)
{
    struct pollfd answered = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&answered, 1, PATIENCE_MS), 1);
    char answer[64] = "";
    assert_true(recv(fd, answer, sizeof answer - 1, 0) > 0);
    assert_true(cr_starts_with(answer, "HTTP/1.1 200"));
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void read_counts(void *arg)
{
    struct fixture *f = arg;
    f->counts = cr_http_server_counts(f->server);
    sem_post(&f->counted);
}

static struct cr_http_counts counts_of(struct fixture *f)
{
    cr_loop_post(f->loop, read_counts, f);
    assert_int_equal(sem_wait(&f->counted), 0);
    return f->counts;
}

/* Accepted by the server, in the order in which they connected. */
static void wait_for_accepted(struct fixture *f, size_t n)
{
    const int64_t end = cr_clock_monotonic_ms() + PATIENCE_MS;
    while (counts_of(f).accepted < n)
        assert_true(cr_clock_monotonic_ms() < end);
}

static const char half[] = "GET /metrics HTTP/1.1\r\nHost: x\r\nX: ";
static const char whole[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
static const char big_ones[] = "GET /big HTTP/1.1\r\nHost: x\r\n\r\n";

/* Whatever others began and did not end, a newcomer gets a place and its answer, and there are never more connections
 * than places. */
static void a_newcomer_is_served_in_a_flood(void **state)
{
    static const struct {
        const char *what;
        const char *said;
        bool ends;
    } floods[] = {
        {"say nothing", "", false},
        {"begin a head", half, false},
        {"begin a head and say no more", half, true},
        {"have their answer and stay", whole, false},
        {"do not read", big_ones, false},
        {"do not read, and say no more", big_ones, true},
    };
    struct fixture *f = *state;
    int fds[cr_array_len(floods)][FLOOD];
    size_t accepted = 0;
    for (size_t i = 0; i < cr_array_len(floods); i++) {
        for (size_t k = 0; k < FLOOD; k++) {
            fds[i][k] = connect_to(f);
            (void)send(fds[i][k], floods[i].said, strlen(floods[i].said), MSG_NOSIGNAL);
            if (floods[i].ends)
                shutdown(fds[i][k], SHUT_WR);
        }
        cr_autofd int fd = connect_to(f);
        say(fd, whole);
        assert_served(fd);
        accepted += FLOOD + 1;
        struct cr_http_counts counts = counts_of(f);
        if (counts.accepted != accepted || counts.open > PLACES)
            fail_msg("%s: %zu of %zu are in, %zu open", floods[i].what, counts.accepted, accepted, counts.open);
    }
    assert_true(counts_of(f).gave_way >= FLOOD - PLACES);
    for (size_t i = 0; i < cr_array_len(floods); i++)
        for (size_t k = 0; k < FLOOD; k++)
            close(fds[i][k]);
}

/* A kubelet that is slow itself: its request comes when as many others have come as there are places for those that
 * have not asked yet; slow readers take none of these. */
static void a_newcomer_has_time_to_ask(void **state)
{
    struct fixture *f = *state;
    int slow[FLOOD];
    int silent[LEFT - 1];
    for (size_t i = 0; i < FLOOD; i++) {
        slow[i] = connect_to(f);
        (void)send(slow[i], big_ones, strlen(big_ones), MSG_NOSIGNAL);
    }
    wait_for_accepted(f, FLOOD);
    cr_autofd int fd = connect_to(f);
    for (size_t i = 0; i < LEFT - 1; i++)
        silent[i] = connect_to(f);
    wait_for_accepted(f, FLOOD + LEFT);
    say(fd, whole);
    assert_served(fd);
    for (size_t i = 0; i < FLOOD; i++)
        close(slow[i]);
    for (size_t i = 0; i < LEFT - 1; i++)
        close(silent[i]);
}

/* Deadlines are of the whole: what comes, a byte at a time, puts none off. */
static void no_deadline_is_put_off(void **state)
{
    static const char *const starts[] = {"", half, whole};
    struct fixture *f = *state;
    for (size_t i = 0; i < cr_array_len(starts); i++) {
        cr_autofd int fd = connect_to(f);
        say(fd, starts[i]);
        if (starts[i] == whole)
            assert_served(fd);
        const int64_t end = cr_clock_monotonic_ms() + PATIENCE_MS;
        struct pollfd hung_up = {.fd = fd, .events = POLLRDHUP};
        while (poll(&hung_up, 1, 10) == 0) { /* a byte each 10 ms, of a head that never ends */
            assert_true(cr_clock_monotonic_ms() < end);
            (void)send(fd, "y", 1, MSG_NOSIGNAL);
        }
        assert_int_equal(counts_of(f).late, i + 1);
    }
}

static void a_slow_reader_has_a_deadline(void **state)
{
    struct fixture *f = *state;
    cr_autofd int fd = connect_to(f);
    say(fd, big_ones);
    const int64_t end = cr_clock_monotonic_ms() + PATIENCE_MS;
    char byte;
    while (counts_of(f).late == 0) {
        assert_true(cr_clock_monotonic_ms() < end);
        (void)recv(fd, &byte, 1, MSG_DONTWAIT);
    }
}

/* One connection cannot ask for more than it reads: of what it asks ahead a part is read, and one answer is made. */
static void who_asks_ahead_is_answered_one_by_one(void **state)
{
    enum { ASKED = 4096 };
    struct fixture *f = *state;
    cr_autofd int fd = connect_to(f);
    for (int i = 0; i < ASKED; i++)
        if (send(fd, big_ones, strlen(big_ones), MSG_NOSIGNAL | MSG_DONTWAIT) <= 0)
            break;
    cr_autofd int other = connect_to(f);
    say(other, whole);
    assert_served(other);
    assert_true(atomic_load(&f->big_ones) <= 1);
}

enum { FILES = 128, FILES_OF_OTHERS = 1024 };

static void set_files(rlim_t files)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = files;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* All that there are; out: those taken, -1 at their end. */
static void use_up_descriptors(int out[FILES + 1])
{
    size_t len = 0;
    set_files(FILES);
    while (len < FILES && (out[len] = eventfd(0, EFD_CLOEXEC)) >= 0)
        len++;
    out[len] = -1;
}

/* The first takes the one that the server keeps for that, the second the one of the first, which has its answer. */
static void without_descriptors_it_still_answers(void **state)
{
    struct fixture *f = *state;
    cr_autofd int first = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_autofd int second = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)counts_of(f); /* the loop has opened what it needs */
    int taken[FILES + 1];
    use_up_descriptors(taken);
    connect_socket(f, first);
    say(first, whole);
    assert_served(first);
    connect_socket(f, second);
    say(second, whole);
    assert_served(second);
    for (size_t i = 0; taken[i] >= 0; i++)
        close(taken[i]);
    set_files(FILES_OF_OTHERS);
    assert_int_equal(counts_of(f).gave_way, 1);
}

static void free_server(void *arg)
{
    struct fixture *f = arg;
    cr_http_server_free(cr_steal(&f->server));
}

static void freeing_closes_open_connections(void **state)
{
    struct fixture *f = *state;
    cr_autofd int fd = connect_to(f);
    assert_int_equal(send(fd, half, strlen(half), MSG_NOSIGNAL), strlen(half));
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    assert_int_equal(ask(f, "GET", "/metrics", &text), 200); /* so the first was accepted, too */
    cr_loop_post(f->loop, free_server, f);
    char ignored[16];
    assert_true(recv(fd, ignored, sizeof ignored, 0) <= 0);
}

/* --- addresses --- */

static void addresses_are_read_as_flags_have_them(void **state)
{
    static const struct {
        const char *address;
        bool ok;
    } cases[] = {
        {"127.0.0.1:0", true},
        {"localhost:0", true},
        {":0", true},
        {"0.0.0.0:0", true},
        {"", false},
        {":", false},
        {"127.0.0.1", false},
        {"127.0.0.1:", false},
        {"127.0.0.1:http", false},
        {"127.0.0.1:65536", false},
        {"127.0.0.1:-1", false},
        {"::1:0", false},
        {"[::1:0", false},
        {"[]x:0", false},
        {"no.such.host.invalid:0", false},
        {"127.0.0.1:99999999999999999999", false},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
        CR_CLEANUP(cr_http_server) struct cr_http_server *server = cr_http_server_new(loop);
        struct cr_error err = {0};
        assert_int_equal(cr_http_server_port(server), 0);
        bool ok = cr_http_server_listen(server, cases[i].address, &err);
        if (ok != cases[i].ok)
            fail_msg("'%s': %s", cases[i].address, ok ? "was accepted" : err.text);
        if (ok)
            assert_in_range(cr_http_server_port(server), 1, 65535);
        else if (err.kind != CR_ERR_INVALID || !strstr(err.text, cases[i].address))
            fail_msg("'%s': %s: %s", cases[i].address, cr_error_kind_name(err.kind), err.text);
    }
}

static void an_address_in_use_is_named(void **state)
{
    struct fixture *f = *state;
    CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
    CR_CLEANUP(cr_http_server) struct cr_http_server *server = cr_http_server_new(loop);
    cr_autofree char *address = cr_asprintf("127.0.0.1:%d", cr_http_server_port(f->server));
    struct cr_error err = {0};
    assert_false(cr_http_server_listen(server, address, &err));
    assert_int_equal(err.kind, CR_ERR_TRANSIENT);
    assert_non_null(strstr(err.text, address));
    assert_non_null(strstr(err.text, "in use"));
}

static void all_addresses_means_ipv4_too(void **state)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    assert_int_equal(ask(*state, "GET", "/metrics", &text), 200);
}

#define with_loop(test)       cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define with_few_places(test) cmocka_unit_test_setup_teardown(test, set_up_with_few_places, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_loop(a_handler_answers_its_exact_path),
        with_loop(a_big_answer_arrives_whole),
        with_loop(a_head_request_says_how_long_the_body_would_be),
        with_loop(another_method_is_answered_with_those_that_are_allowed),
        with_loop(garbage_is_refused_and_hurts_no_other_client),
        with_few_places(a_newcomer_is_served_in_a_flood),
        with_few_places(a_newcomer_has_time_to_ask),
        with_few_places(who_asks_ahead_is_answered_one_by_one),
        with_few_places(without_descriptors_it_still_answers),
        cmocka_unit_test_setup_teardown(no_deadline_is_put_off, set_up_with_deadlines, tear_down),
        cmocka_unit_test_setup_teardown(a_slow_reader_has_a_deadline, set_up_with_deadlines, tear_down),
        with_loop(freeing_closes_open_connections),
        cmocka_unit_test(addresses_are_read_as_flags_have_them),
        with_loop(an_address_in_use_is_named),
        cmocka_unit_test_setup_teardown(all_addresses_means_ipv4_too, set_up_everywhere, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
