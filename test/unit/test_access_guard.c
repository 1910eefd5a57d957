#include "kube/access_guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "support/fakeapi.h"

/* An HTTP server with a guarded page; the guard asks a scripted API server. */
struct fixture {
    struct fake_api api;
    struct cr_loop *loop;
    pthread_t thread;
    struct cr_client *client;
    struct cr_access_guard *guard;
    struct cr_http_server *server;
};

static int page(void *arg, struct cr_buf *body, const char **content_type)
{
    (void)arg;
    (void)content_type;
    cr_buf_puts(body, "the page\n");
    return 200;
}

static void *run_loop(void *loop)
{
    cr_loop_run(loop);
    return NULL;
}

static void open_fixture(struct fixture *f, const struct fake_answer *script, size_t len, int64_t yes_ms, int64_t no_ms)
{
    struct cr_error err = {0};
    *f = (struct fixture){.loop = cr_loop_new()};
    assert_true(fake_api_start(&f->api, script, len));
    f->client = fake_client(f->loop, f->api.port);
    f->guard = cr_access_guard_new(&(struct cr_access_guard_options){f->loop, f->client, "/metrics", yes_ms, no_ms});
    f->server = cr_http_server_new(f->loop);
    cr_http_server_handle_guarded(f->server, "/metrics", page, NULL, cr_access_guard_check, f->guard);
    if (!cr_http_server_listen(f->server, "127.0.0.1:0", &err))
        fail_msg("%s", err.text);
    assert_int_equal(pthread_create(&f->thread, NULL, run_loop, f->loop), 0);
}

static void close_fixture(struct fixture *f)
{
    cr_loop_stop(f->loop);
    pthread_join(f->thread, NULL);
    cr_http_server_free(f->server);
    cr_access_guard_free(f->guard);
    cr_client_free(f->client);
    cr_loop_free(f->loop);
    fake_api_stop(&f->api);
    if (f->api.problem[0])
        fail_msg("%s", f->api.problem);
}

/* A connection that has sent its request. */
static int send_request(const struct fixture *f, const char *header)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
                                  .sin_port = htons((uint16_t)cr_http_server_port(f->server))};
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    cr_autofree char *text =
        cr_asprintf("GET /metrics HTTP/1.1\r\nHost: test\r\nConnection: close\r\n%s\r\n", cr_or_empty(header));
    fake_send(fd, text, strlen(text));
    return fd;
}

static void read_all(int fd, struct cr_buf *answer)
{
    char part[4096];
    for (ssize_t n; (n = recv(fd, part, sizeof part, 0)) > 0;)
        assert_true(cr_buf_append(answer, part, (size_t)n));
    cr_buf_puts(answer, "");
}

static int ask(const struct fixture *f, const char *header, struct cr_buf *answer)
{
    cr_autofd int fd = send_request(f, header);
    cr_buf_reset(answer);
    read_all(fd, answer);
    assert_true(cr_starts_with(cr_buf_text(answer), "HTTP/1.1 "));
    return atoi(answer->data + strlen("HTTP/1.1 "));
}

#define USER                                                                                                           \
    "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"prometheus\",\"uid\":\"u1\",\"groups\":[\"g\"],"     \
    "\"extra\":{\"scope\":[\"s\"]}}}}"
#define TOKEN_REVIEW  .expect = "POST /apis/authentication.k8s.io/v1/tokenreviews", .has = "\"token\":\"secret-1\""
#define ACCESS_REVIEW .expect = "POST /apis/authorization.k8s.io/v1/subjectaccessreviews"
#define FAILURE       "{\"kind\":\"Status\",\"reason\":\"InternalError\",\"message\":\"told so\"}"

static void the_api_server_s_answers_decide(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *header;
        struct fake_answer script[2];
        size_t requests;
        int status;
    } cases[] = {
        {"no credentials", NULL, {{0}}, 0, 401},
        {"others than a token", "Authorization: Basic YTpi\r\n", {{0}}, 0, 401},
        {"an empty token", "Authorization: Bearer \r\n", {{0}}, 0, 401},
        {"no token at all", "Authorization: Bearer\r\n", {{0}}, 0, 401},
        {"several words", "Authorization: Bearer a b\r\n", {{0}}, 0, 401},
        {"a token that is nobody's",
         "Authorization: Bearer secret-1\r\n",
         {{TOKEN_REVIEW, .status = 201, .body = "{\"status\":{\"error\":\"expired\"}}"}},
         1,
         401},
        {"authenticated, but as nobody",
         "Authorization: Bearer secret-1\r\n",
         {{TOKEN_REVIEW, .body = "{\"status\":{\"authenticated\":true,\"user\":{}}}"}},
         1,
         401},
        {"a user that may",
         "Authorization: Bearer secret-1\r\n",
         {{TOKEN_REVIEW, .body = USER}, {ACCESS_REVIEW, .body = "{\"status\":{\"allowed\":true}}"}},
         2,
         200},
        {"the scheme in another case",
         "authorization: bEARER  secret-1\r\n",
         {{TOKEN_REVIEW, .body = USER}, {ACCESS_REVIEW, .body = "{\"status\":{\"allowed\":true}}"}},
         2,
         200},
        {"a user that may not",
         "Authorization: Bearer secret-1\r\n",
         {{TOKEN_REVIEW, .body = USER}, {ACCESS_REVIEW, .body = "{\"status\":{\"allowed\":false}}"}},
         2,
         403},
        {"an answer without a word on it",
         "Authorization: Bearer secret-1\r\n",
         {{TOKEN_REVIEW, .body = USER}, {ACCESS_REVIEW, .body = "{}"}},
         2,
         403},
        {"nobody can say who it is",
         "Authorization: Bearer secret-1\r\n",
         {{TOKEN_REVIEW, .status = 500, .body = FAILURE}},
         1,
         503},
        {"the operator may not ask",
         "Authorization: Bearer secret-1\r\n",
         {{TOKEN_REVIEW, .status = 403, .body = FAILURE}},
         1,
         503},
        {"nobody can say what they may",
         "Authorization: Bearer secret-1\r\n",
         {{TOKEN_REVIEW, .body = USER}, {ACCESS_REVIEW, .status = 500, .body = FAILURE}},
         2,
         503},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fixture f;
        CR_CLEANUP(cr_buf) struct cr_buf answer = CR_BUF_INIT(0);
        open_fixture(&f, cases[i].script, cases[i].requests, 0, 0);
        int status = ask(&f, cases[i].header, &answer);
        if (status != cases[i].status || atomic_load(&f.api.answered) != cases[i].requests)
            fail_msg("%s: %s", cases[i].rule, answer.data);
        if (!!strstr(answer.data, "the page") != (status == 200) ||
            !!strstr(answer.data, "\r\nWWW-Authenticate: Bearer\r\n") != (status == 401))
            fail_msg("%s: %s", cases[i].rule, answer.data);
        close_fixture(&f);
    }
}

static void all_that_is_known_of_the_user_is_asked_for(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {{TOKEN_REVIEW, .body = USER}, {ACCESS_REVIEW, .body = "{}"}};
    struct fixture f;
    CR_CLEANUP(cr_buf) struct cr_buf answer = CR_BUF_INIT(0);
    open_fixture(&f, script, 2, 0, 0);
    ask(&f, "Authorization: Bearer secret-1\r\n", &answer);
    assert_string_equal(fake_api_body(&f.api, 1),
                        "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SubjectAccessReview\",\"spec\":{"
                        "\"user\":\"prometheus\",\"uid\":\"u1\",\"groups\":[\"g\"],\"extra\":{\"scope\":[\"s\"]},"
                        "\"nonResourceAttributes\":{\"path\":\"/metrics\",\"verb\":\"get\"}}}");
    close_fixture(&f);
}

static void an_answer_counts_for_a_while(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {TOKEN_REVIEW, .body = USER},
        {ACCESS_REVIEW, .body = "{\"status\":{\"allowed\":true}}"},
        {TOKEN_REVIEW, .body = "{}"}, /* revoked */
        {.has = "another", .body = "{}"},
    };
    struct fixture f;
    CR_CLEANUP(cr_buf) struct cr_buf answer = CR_BUF_INIT(0);
    open_fixture(&f, script, cr_array_len(script), 1000, 60 * 1000);
    int64_t start = cr_clock_monotonic_ms();
    assert_int_equal(ask(&f, "Authorization: Bearer secret-1\r\n", &answer), 200);
    while (ask(&f, "Authorization: Bearer secret-1\r\n", &answer) == 200)
        assert_true(cr_clock_monotonic_ms() - start < 20 * 1000);
    assert_true(cr_clock_monotonic_ms() - start >= 1000);
    for (int i = 0; i < 5; i++) /* a no is remembered, too */
        assert_int_equal(ask(&f, "Authorization: Bearer secret-1\r\n", &answer), 401);
    assert_int_equal(atomic_load(&f.api.answered), 3);
    assert_int_equal(ask(&f, "Authorization: Bearer another\r\n", &answer), 401);
    assert_int_equal(atomic_load(&f.api.answered), 4);
    close_fixture(&f);
}

static void what_could_not_be_asked_is_not_remembered(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {TOKEN_REVIEW, .status = 500, .body = FAILURE},
        {TOKEN_REVIEW, .body = USER},
        {ACCESS_REVIEW, .body = "{\"status\":{\"allowed\":true}}"},
    };
    struct fixture f;
    CR_CLEANUP(cr_buf) struct cr_buf answer = CR_BUF_INIT(0);
    open_fixture(&f, script, cr_array_len(script), 0, 0);
    assert_int_equal(ask(&f, "Authorization: Bearer secret-1\r\n", &answer), 503);
    assert_null(strstr(answer.data, "told so")); /* the API server's words are no stranger's business */
    assert_int_equal(ask(&f, "Authorization: Bearer secret-1\r\n", &answer), 200);
    close_fixture(&f);
}

static void many_that_wait_with_one_token_are_one_question(void **state)
{
    (void)state;
    enum { MANY = 20 };
    static const struct fake_answer script[] = {
        {TOKEN_REVIEW, .body = USER},
        {ACCESS_REVIEW, .body = "{\"status\":{\"allowed\":true}}"},
    };
    struct fixture f;
    int fds[MANY];
    open_fixture(&f, script, cr_array_len(script), 0, 0);
    for (int i = 0; i < MANY; i++)
        fds[i] = send_request(&f, "Authorization: Bearer secret-1\r\n");
    for (int i = 0; i < MANY; i++) {
        CR_CLEANUP(cr_buf) struct cr_buf answer = CR_BUF_INIT(0);
        read_all(fds[i], &answer);
        assert_true(cr_starts_with(answer.data, "HTTP/1.1 200 "));
        close(fds[i]);
    }
    assert_int_equal(atomic_load(&f.api.answered), 2);
    close_fixture(&f);
}

static int readable(const int *fds, int count)
{
    int ready = 0;
    for (int i = 0; i < count; i++) {
        struct pollfd one = {.fd = fds[i], .events = POLLIN};
        ready += poll(&one, 1, 0) == 1;
    }
    return ready;
}

/* An API server that does not answer: the page's other users and the loop do not wait for it. */
static void more_than_can_wait_are_sent_away(void **state)
{
    (void)state;
    enum { MANY = 40, ROOM = 1 + 32 }; /* one is asked for, the others wait */
    static const struct fake_answer script[] = {{.body = "{", .hold = true}};
    struct fixture f;
    int fds[MANY];
    CR_CLEANUP(cr_buf) struct cr_buf answer = CR_BUF_INIT(0);
    open_fixture(&f, script, 1, 0, 0);
    for (int i = 0; i < MANY; i++) {
        cr_autofree char *header = cr_asprintf("Authorization: Bearer guess-%d\r\n", i);
        fds[i] = send_request(&f, header);
        while (!atomic_load(&f.api.answered)) /* the first is being asked for */
            usleep(1000);
    }
    int64_t start = cr_clock_monotonic_ms();
    while (readable(fds, MANY) < MANY - ROOM)
        assert_true(cr_clock_monotonic_ms() - start < 20 * 1000);
    start = cr_clock_monotonic_ms();
    assert_int_equal(ask(&f, NULL, &answer), 401);
    assert_int_equal(ask(&f, "Authorization: Bearer late\r\n", &answer), 503);
    assert_true(cr_clock_monotonic_ms() - start < 2000); /* a request may take 3 s */
    for (int i = 0; i < MANY; i++)
        close(fds[i]); /* while their answers are still to come */
    close_fixture(&f);
}

static void one_that_hangs_up_is_no_trouble(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.body = "{", .hold = true}, /* 3 s */
    };
    struct fixture f;
    open_fixture(&f, script, cr_array_len(script), 0, 0);
    int fd = send_request(&f, "Authorization: Bearer secret-1\r\n");
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    while (!atomic_load(&f.api.answered))
        usleep(1000);
    close(fd); /* by a reset */
    CR_CLEANUP(cr_buf) struct cr_buf answer = CR_BUF_INIT(0);
    cr_autofd int other = send_request(&f, "Authorization: Bearer secret-1\r\n");
    close_fixture(&f); /* the server goes while both wait */
    read_all(other, &answer);
    assert_int_equal(answer.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_api_server_s_answers_decide),
        cmocka_unit_test(all_that_is_known_of_the_user_is_asked_for),
        cmocka_unit_test(an_answer_counts_for_a_while),
        cmocka_unit_test(what_could_not_be_asked_is_not_remembered),
        cmocka_unit_test(many_that_wait_with_one_token_are_one_question),
        cmocka_unit_test(more_than_can_wait_are_sent_away),
        cmocka_unit_test(one_that_hangs_up_is_no_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
