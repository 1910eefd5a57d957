#include "net/http_requests.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "support/says.h"
#include "support/testserver.h"

enum { PATIENCE_MS = 20 * 1000 };

/* Of one pool, as in the operator; there is no loop. */
static int set_up(void **state)
{
    *state = cr_http_requests_new(NULL, "certroll-test/1");
    return 0;
}

static int tear_down(void **state)
{
    cr_http_requests_free(*state);
    return 0;
}

/* One request to a server that serves as given. */
static bool ask(struct cr_http_requests *requests, void (*serve)(struct test_conn *, void *), const void *arg,
                const struct cr_http_request *like, struct cr_http_response *response, struct cr_error *err)
{
    void *shared = (void *)(uintptr_t)arg;
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = serve, .arg = shared});
    cr_autofree char *url = test_server_url(server, "/api/v1/x?limit=1");
    struct cr_http_request request = *like;
    request.url = url;
    if (!request.method)
        request.method = "GET";
    if (!request.timeout_ms)
        request.timeout_ms = PATIENCE_MS;
    *err = (struct cr_error){0};
    return cr_http_do(requests, &request, response, err);
}

struct answer {
    int status;
    const char *headers;
    const char *body;
};

static void serve_answer(struct test_conn *conn, void *arg)
{
    const struct answer *answer = arg;
    while (test_conn_request(conn))
        test_conn_answer(conn, answer->status, answer->headers, answer->body);
}

static void any_status_is_a_response(void **state)
{
    static const int statuses[] = {200, 201, 204, 301, 304, 401, 403, 404, 409, 410, 422, 429, 500, 503, 599};
    for (size_t i = 0; i < cr_array_len(statuses); i++) {
        bool bodiless = statuses[i] == 204 || statuses[i] == 304;
        const struct answer answer = {statuses[i], "Location: http://127.0.0.1:1/\r\n", bodiless ? "" : "{\"a\":1}"};
        CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
        struct cr_error err;
        if (!ask(*state, serve_answer, &answer, &(struct cr_http_request){0}, &response, &err))
            fail_msg("%d: %s", statuses[i], err.text);
        assert_int_equal(response.status, statuses[i]);
        assert_string_equal(cr_buf_text(&response.body), answer.body);
    }
}

static char *http_date_in(int seconds)
{
    char text[64];
    time_t then = time(NULL) + seconds;
    struct tm tm;
    gmtime_r(&then, &tm);
    strftime(text, sizeof text, "Retry-After: %a, %d %b %Y %H:%M:%S GMT\r\n", &tm);
    return cr_strdup(text);
}

static void retry_after_is_read_and_capped(void **state)
{
    cr_autofree char *soon = http_date_in(100);
    cr_autofree char *past = http_date_in(-100);
    cr_autofree char *far = http_date_in(90 * 86400);
    const struct {
        const char *header;
        int low;
        int high;
    } cases[] = {
        {"", 0, 0},
        {"Retry-After: 0\r\n", 0, 0},
        {"Retry-After: 1\r\n", 1000, 1000},
        {"retry-after: 17\r\n", 17000, 17000},
        {"Retry-After: 3600\r\n", 3600000, 3600000},
        {"Retry-After: 3601\r\n", 3600000, 3600000},
        {"Retry-After: 99999999999999999999\r\n", 0, 3600000}, /* to libcurl 7.88 it is no number */
        {"Retry-After: soon\r\n", 0, 0},
        {"Retry-After: -5\r\n", 0, 0},
        {soon, 95000, 100000},
        {past, 0, 0},
        {far, 3600000, 3600000},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct answer answer = {429, cases[i].header, ""};
        CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
        struct cr_error err;
        assert_true(ask(*state, serve_answer, &answer, &(struct cr_http_request){0}, &response, &err));
        if (response.retry_after_ms < cases[i].low || response.retry_after_ms > cases[i].high)
            fail_msg("%s gives %d", cases[i].header, response.retry_after_ms);
    }
}

/* Answers with what it was asked. */
static void serve_echo(struct test_conn *conn, void *arg)
{
    (void)arg;
    while (test_conn_request(conn)) {
        cr_autofree char *text = cr_asprintf("%s\n%s", conn->head, conn->body);
        test_conn_answer(conn, 200, "", text);
    }
}

static void a_request_is_sent_as_given(void **state)
{
    static const struct {
        struct cr_http_request request;
        const char *has[4];
        const char *lacks[4];
        const char *body;
    } cases[] = {
        {{.method = "GET", .accept = "application/json", .bearer = "t0k.en"},
         {"GET /api/v1/x?limit=1 HTTP/1.1\r\n", "\r\nAccept: application/json\r\n",
          "\r\nAuthorization: Bearer t0k.en\r\n", "\r\nUser-Agent: certroll-test/1\r\n"},
         {"Content-Type", "Content-Length", "Expect", "Proxy"},
         ""},
        {{.method = "GET", .bearer = ""}, {"GET "}, {"Authorization", "Accept-Encoding"}, ""},
        {{.method = "PATCH", .content_type = "application/merge-patch+json", .body = "{\"a\":null}", .body_len = 10},
         {"PATCH ", "\r\nContent-Type: application/merge-patch+json\r\n", "\r\nContent-Length: 10\r\n"},
         {"Expect", "Authorization"},
         "{\"a\":null}"},
        {{.method = "POST"}, {"POST ", "\r\nContent-Length: 0\r\n"}, {"Content-Type"}, ""},
        {{.method = "DELETE"}, {"DELETE "}, {"Content-Type", "Content-Length"}, ""},
        {{.method = "DELETE", .content_type = "application/json", .body = "{}", .body_len = 2},
         {"DELETE ", "\r\nContent-Type: application/json\r\n"},
         {"Expect"},
         "{}"},
        {{.method = "GET", .secret = true, .body = "", .body_len = 0}, {"GET "}, {"Content-Type"}, ""},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
        struct cr_error err;
        assert_true(ask(*state, serve_echo, NULL, &cases[i].request, &response, &err));
        assert_true(response.body.secret == cases[i].request.secret);
        for (size_t k = 0; k < 4 && cases[i].has[k]; k++)
            if (!strstr(response.body.data, cases[i].has[k]))
                fail_msg("case %zu lacks '%s':\n%s", i, cases[i].has[k], response.body.data);
        for (size_t k = 0; k < 4 && cases[i].lacks[k]; k++)
            if (strcasestr(response.body.data, cases[i].lacks[k]))
                fail_msg("case %zu has '%s':\n%s", i, cases[i].lacks[k], response.body.data);
        assert_true(cr_ends_with(response.body.data, cases[i].body));
    }
}

static void a_big_body_arrives_whole_without_waiting_to_be_asked(void **state)
{
    enum { SIZE = 3 * 1024 * 1024 };
    char *body = cr_malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        body[i] = (char)('a' + i % 23);
    const struct cr_http_request request = {
        .method = "POST", .content_type = "text/plain", .body = body, .body_len = SIZE};
    CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
    struct cr_error err;
    assert_true(ask(*state, serve_echo, NULL, &request, &response, &err));
    assert_true(response.body.len > SIZE);
    assert_memory_equal(response.body.data + response.body.len - SIZE, body, SIZE);
    free(body);
}

static void head_brings_no_body(void **state)
{
    const struct answer answer = {200, "", ""};
    CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
    struct cr_error err;
    const struct cr_http_request request = {.method = "HEAD"};
    assert_true(ask(*state, serve_answer, &answer, &request, &response, &err));
    assert_int_equal(response.status, 200);
    assert_int_equal(response.body.len, 0);
}

static void serve_raw(struct test_conn *conn, void *arg)
{
    if (test_conn_request(conn))
        test_conn_puts(conn, arg);
}

static void what_the_network_does_is_transient(void **state)
{
    static const struct {
        const char *rule;
        const char *raw;
        const char *words;
    } cases[] = {
        {"hung up without an answer", "", "no answer came"},
        {"cut off in the status line", "HTTP/1.", ""},
        {"cut off in the headers", "HTTP/1.1 200 OK\r\nContent-Le", "the response was cut off"},
        {"cut off in a body of known length", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
         "the response was cut off"},
        {"cut off in a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", ""},
        {"cut off between chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", ""},
        {"a chunk size that is none", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", ""},
        {"not HTTP", "SSH-2.0-OpenSSH\r\n", "the answer is not HTTP"},
        {"HTTP/0.9", "hello", ""},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
        struct cr_error err;
        if (ask(*state, serve_raw, cases[i].raw, &(struct cr_http_request){0}, &response, &err))
            fail_msg("%s: no error", cases[i].rule);
        assert_says(&err, CR_ERR_TRANSIENT, cases[i].words);
        assert_non_null(strstr(err.text, "GET http://127.0.0.1:"));
        assert_int_equal(response.body.len, 0);
        assert_int_equal(response.status, 0);
    }
}

static void encodings_that_were_not_asked_for_are_errors(void **state)
{
    static const char *const encodings[] = {"gzip", "br", "zstd", "gzip, br"};
    for (size_t i = 0; i < cr_array_len(encodings); i++) {
        CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
        cr_autofree char *raw = cr_asprintf(
            "HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: 4\r\n\r\n\xff\xff\xff\xff", encodings[i]);
        struct cr_error err;
        if (ask(*state, serve_raw, raw, &(struct cr_http_request){0}, &response, &err))
            fail_msg("%s: no error", encodings[i]);
        assert_says(&err, CR_ERR_TRANSIENT, "is compressed, which nobody asked for");
        assert_int_equal(response.body.len, 0);
        assert_int_equal(response.status, 0);
    }
}

static void a_refusal_with_a_truncated_body_is_still_one(void **state)
{
    static const struct {
        int status;
        const char *raw;
    } cases[] = {
        {401, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 10\r\n\r\nabc"},
        {403, "HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"},
        {503, "HTTP/1.1 503 Later\r\nContent-Length: 10\r\n\r\nabc"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
        struct cr_error err;
        if (!ask(*state, serve_raw, cases[i].raw, &(struct cr_http_request){0}, &response, &err))
            fail_msg("%d: %s", cases[i].status, err.text);
        assert_int_equal(response.status, cases[i].status);
        assert_string_equal(cr_buf_text(&response.body), "abc");
    }
}

static void a_refused_connection_is_transient_and_says_where(void **state)
{
    struct test_server *server = test_server_new(&(struct test_server_options){0});
    cr_autofree char *url = test_server_url(server, "/secret-path?token=x");
    int port = test_server_port(server);
    test_server_free(server);
    struct cr_http_response response;
    struct cr_error err = {0};
    const struct cr_http_request request = {.method = "GET", .url = url, .timeout_ms = PATIENCE_MS};
    assert_false(cr_http_do(*state, &request, &response, &err));
    cr_autofree char *where = cr_asprintf("GET http://127.0.0.1:%d: ", port);
    assert_says(&err, CR_ERR_TRANSIENT, where);
    assert_null(strstr(err.text, "token"));
}

static void a_time_out_says_what_it_waited_for(void **state)
{
    struct cr_error err;
    struct cr_http_response response;
    const struct cr_http_request request = {.timeout_ms = 100};
    int64_t start = cr_clock_monotonic_ms();
    assert_false(ask(*state, test_serve_silence, NULL, &request, &response, &err));
    assert_says(&err, CR_ERR_TRANSIENT, "no answer within 100 ms (waiting for the response)");
    assert_in_range(cr_clock_monotonic_ms() - start, 100, PATIENCE_MS);
    assert_false(ask(*state, test_serve_half, NULL, &request, &response, &err));
    assert_says(&err, CR_ERR_TRANSIENT, "no answer within 100 ms (reading the response)");
}

static void what_can_never_work_is_invalid(void **state)
{
    static const struct {
        const char *rule;
        struct cr_http_request request;
        const char *words;
    } cases[] = {
        {"no scheme", {.method = "GET", .url = "127.0.0.1/x"}, "not a URL"},
        {"empty", {.method = "GET", .url = ""}, "not a URL"},
        {"no host", {.method = "GET", .url = "https://"}, "not a URL"},
        {"another protocol", {.method = "GET", .url = "file:///etc/passwd"}, "neither an https nor an http URL"},
        {"another protocol", {.method = "GET", .url = "ftp://127.0.0.1/"}, "neither an https nor an http URL"},
        {"a space", {.method = "GET", .url = "http://127.0.0.1/a b"}, "not a URL"},
        {"a password in the URL", {.method = "GET", .url = "http://u:hunter2@127.0.0.1/"}, "may not hold a user name"},
        {"no method", {.method = "", .url = "http://127.0.0.1/"}, "not an HTTP method"},
        {"a method of two lines",
         {.method = "GET / HTTP/1.1\r\nX: ", .url = "http://127.0.0.1/"},
         "not an HTTP method"},
        {"a token of two lines",
         {.method = "GET", .url = "http://127.0.0.1/", .bearer = "hunter2\r\nX: y"},
         "the header Authorization"},
        {"a token with its newline",
         {.method = "GET", .url = "http://127.0.0.1/", .bearer = "hunter2\n"},
         "line break"},
        {"a content type of two lines",
         {.method = "GET", .url = "http://127.0.0.1/", .content_type = "a\r\nX: y"},
         "the header Content-Type"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_http_response response;
        struct cr_error err = {0};
        if (cr_http_do(*state, &cases[i].request, &response, &err))
            fail_msg("%s: no error", cases[i].rule);
        assert_says(&err, CR_ERR_INVALID, cases[i].words);
        assert_null(strstr(err.text, "hunter2"));
    }
}

static void requests_share_a_connection(void **state)
{
    const struct answer answer = {200, "", "ok"};
    CR_CLEANUP(test_server)
    struct test_server *server =
        test_server_new(&(struct test_server_options){.serve = serve_answer, .arg = (void *)(uintptr_t)&answer});
    cr_autofree char *url = test_server_url(server, "/");
    for (int i = 0; i < 20; i++) {
        CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
        struct cr_error err = {0};
        const struct cr_http_request request = {.method = "GET", .url = url, .timeout_ms = PATIENCE_MS};
        if (!cr_http_do(*state, &request, &response, &err))
            fail_msg("%s", err.text);
    }
    assert_int_equal(test_server_accepted(server), 1);
}

static void count_and_answer(struct test_conn *conn, void *arg)
{
    while (test_conn_request(conn)) {
        atomic_fetch_add((atomic_int *)arg, 1);
        test_conn_answer(conn, 200, "", "{}");
    }
}

/* Also on a connection that is there already, and the connection is good for the next. */
static void what_comes_too_late_is_not_sent(void **state)
{
    static const struct {
        int from_now_ms; /* 0: always */
        bool sent;
    } cases[] = {{-1, false}, {PATIENCE_MS, true}, {-1, false}, {0, true}};
    atomic_int served = 0;
    int expected = 0;
    CR_CLEANUP(test_server)
    struct test_server *server =
        test_server_new(&(struct test_server_options){.serve = count_and_answer, .arg = &served});
    cr_autofree char *url = test_server_url(server, "/");
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
        struct cr_http_request request = {.method = "PATCH", .url = url, .body = "{}", .body_len = 2};
        request.timeout_ms = PATIENCE_MS;
        if (cases[i].from_now_ms)
            request.begin_by_ms = cr_clock_boot_ms() + cases[i].from_now_ms;
        bool ok = cr_http_do(*state, &request, &response, &err);
        if (ok != cases[i].sent)
            fail_msg("%zu: %s", i, ok ? "sent" : err.text);
        if (!ok)
            assert_says(&err, CR_ERR_TRANSIENT, "not sent: the time to begin it is over");
        expected += ok;
        assert_int_equal(atomic_load(&served), expected);
    }
}

/* --- many threads, and the end --- */

enum { WORKERS = 8, ROUNDS = 25 };

struct worker {
    pthread_t thread;
    struct cr_http_requests *requests;
    const char *url;
    unsigned answered;
    struct cr_error err; /* of the request that ended it */
};

static void *work(void *arg)
{
    struct worker *worker = arg;
    for (int i = 0; i < ROUNDS; i++) {
        CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
        const struct cr_http_request request = {
            .method = "POST", .url = worker->url, .body = "x", .body_len = 1, .secret = true};
        if (!cr_http_do(worker->requests, &request, &response, &worker->err))
            break;
        worker->answered++;
    }
    return NULL;
}

static void start_workers(struct worker *workers, struct cr_http_requests *requests, const char *url)
{
    for (size_t i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.requests = requests, .url = url};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
}

static void join_workers(struct worker *workers)
{
    for (size_t i = 0; i < WORKERS; i++)
        pthread_join(workers[i].thread, NULL);
}

static void many_threads_ask_at_once(void **state)
{
    struct worker workers[WORKERS];
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = serve_echo});
    cr_autofree char *url = test_server_url(server, "/");
    start_workers(workers, *state, url);
    join_workers(workers);
    for (size_t i = 0; i < WORKERS; i++) {
        if (workers[i].answered != ROUNDS)
            fail_msg("%s", workers[i].err.text);
    }
    assert_in_range(test_server_accepted(server), 1, WORKERS);
}

static void wait_for_accepted(struct test_server *server, unsigned count)
{
    const struct timespec nap = {.tv_nsec = 2 * 1000 * 1000};
    int64_t until = cr_clock_monotonic_ms() + PATIENCE_MS;
    while (test_server_accepted(server) < count && cr_clock_monotonic_ms() < until)
        nanosleep(&nap, NULL);
    assert_true(test_server_accepted(server) >= count);
}

static void assert_all_cancelled(const struct worker *workers)
{
    for (size_t i = 0; i < WORKERS; i++) {
        assert_int_equal(workers[i].answered, 0);
        assert_says(&workers[i].err, CR_ERR_CANCELLED, "shutting down");
    }
}

static void cancelling_ends_waiting_and_later_calls(void **state)
{
    struct worker workers[WORKERS];
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = test_serve_silence});
    cr_autofree char *url = test_server_url(server, "/");
    start_workers(workers, *state, url);
    wait_for_accepted(server, WORKERS);
    cr_http_requests_cancel(*state);
    join_workers(workers);
    assert_all_cancelled(workers);
    start_workers(workers, *state, url);
    join_workers(workers);
    assert_all_cancelled(workers);
    cr_http_requests_cancel(*state); /* again changes nothing */
}

static void cancelling_under_load_loses_nothing(void **state)
{
    (void)state;
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = serve_echo});
    cr_autofree char *url = test_server_url(server, "/");
    for (int round = 0; round < 20; round++) {
        struct worker workers[WORKERS];
        CR_CLEANUP(cr_http_requests) struct cr_http_requests *once = cr_http_requests_new(NULL, NULL);
        unsigned before = test_server_accepted(server);
        start_workers(workers, once, url);
        wait_for_accepted(server, before + 1);
        cr_http_requests_cancel(once);
        join_workers(workers);
        for (size_t i = 0; i < WORKERS; i++)
            assert_true(workers[i].answered == ROUNDS || workers[i].err.kind == CR_ERR_CANCELLED);
    }
}

static void values_are_escaped_for_one_segment(void **state)
{
    static const struct {
        const char *value;
        const char *escaped;
    } cases[] = {
        {"", ""},
        {"envoy-rate_limit.v1~x", "envoy-rate_limit.v1~x"},
        {"a/b", "a%2Fb"},
        {"a b+c", "a%20b%2Bc"},
        {"k=v,w in (x)", "k%3Dv%2Cw%20in%20%28x%29"},
        {"100%", "100%25"},
        {"..", "%2E%2E"},
        {".", "%2E"},
        {"...", "..."},
        {"?#&;", "%3F%23%26%3B"},
        {"\xc3\xa9", "%C3%A9"},
        {"a\r\nb", "a%0D%0Ab"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *escaped = cr_http_escape(cases[i].value);
        assert_string_equal(escaped, cases[i].escaped);
    }
}

static void an_escaped_path_is_not_normalised(void **state)
{
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = serve_echo});
    static const char *const paths[] = {"/a/%2E%2E/b", "/a/../b", "/a//b", "/a/%2F/b?x=%20"};
    for (size_t i = 0; i < cr_array_len(paths); i++) {
        cr_autofree char *url = test_server_url(server, paths[i]);
        cr_autofree char *line = cr_asprintf("GET %s HTTP/1.1\r\n", paths[i]);
        CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
        struct cr_error err = {0};
        const struct cr_http_request request = {.method = "GET", .url = url, .timeout_ms = PATIENCE_MS};
        assert_true(cr_http_do(*state, &request, &response, &err));
        assert_true(cr_starts_with(response.body.data, line));
    }
}

static void proxies_of_the_environment_are_not_used(void **state)
{
    static const char *const names[] = {"http_proxy", "ALL_PROXY", "all_proxy"};
    for (size_t i = 0; i < cr_array_len(names); i++)
        setenv(names[i], "http://127.0.0.1:1", 1);
    const struct answer answer = {200, "", "direct"};
    CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
    struct cr_error err;
    bool ok = ask(*state, serve_answer, &answer, &(struct cr_http_request){0}, &response, &err);
    for (size_t i = 0; i < cr_array_len(names); i++)
        unsetenv(names[i]);
    assert_true(ok);
    assert_string_equal(cr_buf_text(&response.body), "direct");
}

static void destructors_take_nothing(void **state)
{
    (void)state;
    cr_http_requests_free(NULL);
    CR_CLEANUP(cr_http_requests) struct cr_http_requests *unused = cr_http_requests_new(NULL, NULL);
    assert_non_null(unused);
}

#define with_requests(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_requests(any_status_is_a_response),
        with_requests(retry_after_is_read_and_capped),
        with_requests(a_request_is_sent_as_given),
        with_requests(a_big_body_arrives_whole_without_waiting_to_be_asked),
        with_requests(head_brings_no_body),
        with_requests(what_the_network_does_is_transient),
        with_requests(encodings_that_were_not_asked_for_are_errors),
        with_requests(a_refusal_with_a_truncated_body_is_still_one),
        with_requests(a_refused_connection_is_transient_and_says_where),
        with_requests(a_time_out_says_what_it_waited_for),
        with_requests(what_can_never_work_is_invalid),
        with_requests(requests_share_a_connection),
        with_requests(what_comes_too_late_is_not_sent),
        with_requests(many_threads_ask_at_once),
        with_requests(cancelling_ends_waiting_and_later_calls),
        with_requests(cancelling_under_load_loses_nothing),
        cmocka_unit_test(values_are_escaped_for_one_segment),
        with_requests(an_escaped_path_is_not_normalised),
        with_requests(proxies_of_the_environment_are_not_used),
        cmocka_unit_test(destructors_take_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
