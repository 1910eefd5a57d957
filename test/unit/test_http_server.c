#include "wire/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "net/http_requests.h"

enum { PATIENCE_MS = 20 * 1000 };

struct fixture {
    struct cr_loop *loop;
    pthread_t thread;
    struct cr_http_server *server;
    struct cr_http_server *preferred;
    struct cr_http_requests *client;
    atomic_bool misplaced; /* a handler ran outside of the loop's thread */
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
    (void)arg;
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

static int set_up_on(void **state, const char *address)
{
    struct fixture *f = cr_new(struct fixture);
    f->loop = cr_loop_new();
    f->server = cr_http_server_new(f->loop);
    cr_http_server_handle(f->server, "/metrics", metrics, f);
    cr_http_server_handle(f->server, "/readyz", not_ready, f);
    cr_http_server_handle(f->server, "/silent", silent, f);
    cr_http_server_handle(f->server, "/big", big, f);
    struct cr_error err = {0};
    if (!cr_http_server_listen(f->server, address, &err))
        fail_msg("%s", err.text);
    f->preferred = cr_http_server_new(f->loop);
    cr_http_server_prefer(f->preferred);
    cr_http_server_handle(f->preferred, "/metrics", metrics, f);
    if (!cr_http_server_listen(f->preferred, address, &err))
        fail_msg("%s", err.text);
    f->client = cr_http_requests_new(NULL, NULL);
    assert_int_equal(pthread_create(&f->thread, NULL, run_loop, f->loop), 0);
    *state = f;
    return 0;
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
    cr_http_server_free(f->preferred);
    cr_loop_free(f->loop);
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

static int connect_to_server(const struct cr_http_server *server)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)cr_http_server_port(server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0)
        fail_msg("%s", strerror(errno));
    return fd;
}

static int connect_to(const struct fixture *f)
{
    return connect_to_server(f->server);
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

static void another_method_is_told_which_are_allowed(void **state)
{
    CR_CLEANUP(cr_buf) struct cr_buf answer = CR_BUF_INIT(0);
    converse(*state, "DELETE /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", &answer);
    assert_non_null(strstr(cr_buf_text(&answer), "\r\nAllow: GET, HEAD\r\n"));
}

static void garbage_is_refused_and_hurts_nobody(void **state)
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

enum { FILES = 256 };

static int set_up_with_few_files(void **state)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = FILES;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return set_up(state);
}

static int tear_down_with_few_files(void **state)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max < 1024 ? limit.rlim_max : 1024;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return tear_down(state);
}

static void assert_served(int fd)
{
    char answer[64] = "";
    assert_true(recv(fd, answer, sizeof answer - 1, 0) > 0);
    assert_true(cr_starts_with(answer, "HTTP/1.1 200"));
}

/* Whoever opens connections and says nothing may not take the files that work needs; when they go, the others are
 * served, and at the preferred server before. Each connection counts twice here: both its ends are in this process. */
static void connections_beyond_the_cap_wait(void **state)
{
    enum {
        IDLE = 70,
        PAUSED_MS = 150,
        AT_ONCE_MS = 5000
    }; /* of a busy machine; the idle ones are hung up after 15 s */
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    struct fixture *f = *state;
    int idle[IDLE];
    for (size_t i = 0; i < IDLE; i++)
        idle[i] = connect_to(f);
    int late = connect_to(f);
    assert_int_equal(send(late, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    struct pollfd answered = {.fd = late, .events = POLLIN};
    assert_int_equal(poll(&answered, 1, PAUSED_MS), 0);
    for (int i = 0; i < 3; i++) { /* a server that is crowded notices with the first that it lets in */
        cr_autofd int probe = connect_to_server(f->preferred);
        assert_int_equal(send(probe, request, strlen(request), MSG_NOSIGNAL), strlen(request));
        struct pollfd served = {.fd = probe, .events = POLLIN};
        assert_int_equal(poll(&served, 1, AT_ONCE_MS), 1);
        assert_served(probe);
    }
    assert_int_equal(poll(&answered, 1, 0), 0);
    for (size_t i = 0; i < IDLE; i++)
        close(idle[i]);
    assert_served(late);
    close(late);
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
    static const char half[] = "GET /metrics HTTP/1.1\r\nHo";
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

#define with_loop(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_loop(a_handler_answers_its_exact_path),
        with_loop(a_big_answer_arrives_whole),
        with_loop(a_head_request_says_how_long_the_body_would_be),
        with_loop(another_method_is_told_which_are_allowed),
        with_loop(garbage_is_refused_and_hurts_nobody),
        cmocka_unit_test_setup_teardown(connections_beyond_the_cap_wait, set_up_with_few_files,
                                        tear_down_with_few_files),
        with_loop(freeing_closes_open_connections),
        cmocka_unit_test(addresses_are_read_as_flags_have_them),
        with_loop(an_address_in_use_is_named),
        cmocka_unit_test_setup_teardown(all_addresses_means_ipv4_too, set_up_everywhere, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
