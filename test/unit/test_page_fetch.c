#include "net/page_fetch.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "support/testserver.h"

enum { PATIENCE_MS = 10 * 1000 };

/* What came of each, with a text that is owned. */
struct got {
    unsigned times;
    char *body;
    char problem[CR_PAGE_WORDS];
};

static void keep(void *arg, size_t index, const struct cr_page *page)
{
    struct got *got = &((struct got *)arg)[index];
    got->times++;
    free(got->body);
    got->body = cr_strdup(cr_buf_text(&page->body));
    snprintf(got->problem, sizeof got->problem, "%s", page->problem);
}

static void fetch(int port, const char *path, int timeout_ms, struct got *got)
{
    const struct cr_page_target target = {.address = "127.0.0.1", .port = port, .path = path};
    *got = (struct got){0};
    cr_page_fetch(&target, 1, timeout_ms, keep, got);
    assert_int_equal(got->times, 1);
}

static void answer_page(struct test_conn *conn, void *arg)
{
    char **head = arg;
    if (test_conn_request(conn)) {
        if (head) {
            free(*head);
            *head = cr_strdup(conn->head);
        }
        test_conn_answer(conn, 200, "", "{\"certificates\":[]}");
    }
}

static void a_page_is_asked_for_as_it_is_named(void **state)
{
    static const struct {
        const char *path;
        const char *line;
    } cases[] = {
        {"/certs", "GET /certs HTTP/1.1\r\n"},
        {"/a/../certs?format=json&x=//other:80/", "GET /a/../certs?format=json&x=//other:80/ HTTP/1.1\r\n"},
        {"//other.example/certs", "GET //other.example/certs HTTP/1.1\r\n"},
        {"/@other.example/", "GET /@other.example/ HTTP/1.1\r\n"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        char *head = NULL;
        CR_CLEANUP(test_server)
        struct test_server *server = test_server_new(&(struct test_server_options){.serve = answer_page, .arg = &head});
        struct got got;
        fetch(test_server_port(server), cases[i].path, PATIENCE_MS, &got);
        assert_string_equal(got.problem, "");
        assert_string_equal(got.body, "{\"certificates\":[]}");
        assert_true(test_server_wait_ended(server, 1, NULL));
        if (!cr_starts_with(head, cases[i].line) || strstr(head, "Authorization") || strstr(head, "Cookie"))
            fail_msg("%s: %s", cases[i].path, head);
        free(head);
        free(got.body);
    }
}

static void what_is_no_path_or_address_is_not_tried(void **state)
{
    static const struct cr_page_target targets[] = {
        {"127.0.0.1", 80, NULL},        {"127.0.0.1", 80, ""},        {"127.0.0.1", 80, "certs"},
        {"127.0.0.1", 80, "/a b"},      {"127.0.0.1", 80, "/\r\nX:"}, {"127.0.0.1", 80, "/\x7f"},
        {"127.0.0.1", 80, "/\xc3\xa4"}, {"127.0.0.1", 0, "/certs"},   {"127.0.0.1", 65536, "/certs"},
        {NULL, 80, "/certs"},           {"localhost", 80, "/certs"},  {"127.0.0.1:80/", 80, "/certs"},
    };
    (void)state;
    struct got got[cr_array_len(targets)] = {0};
    cr_page_fetch(targets, cr_array_len(targets), PATIENCE_MS, keep, got);
    for (size_t i = 0; i < cr_array_len(targets); i++) {
        assert_int_equal(got[i].times, 1);
        assert_string_equal(got[i].problem, "it has no address with a port and a path");
        assert_string_equal(got[i].body, "");
        free(got[i].body);
    }
    cr_page_fetch(NULL, 0, PATIENCE_MS, NULL, NULL);
}

static void redirect(struct test_conn *conn, void *arg)
{
    if (test_conn_request(conn))
        test_conn_answer(conn, 302, arg, "elsewhere");
}

static void refuse(struct test_conn *conn, void *arg)
{
    (void)arg;
    if (test_conn_request(conn))
        test_conn_answer(conn, 403, "", "no");
}

static void promise_much(struct test_conn *conn, void *arg)
{
    (void)arg;
    if (test_conn_request(conn))
        test_conn_puts(conn, "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n");
    test_conn_wait_closed(conn);
}

static void flood(struct test_conn *conn, void *arg)
{
    static const char much[256 * 1024];
    (void)arg;
    if (test_conn_request(conn))
        test_conn_puts(conn, "HTTP/1.1 200 OK\r\n\r\n");
    while (test_conn_write(conn, much, sizeof much))
        ;
}

static void say_hello(struct test_conn *conn, void *arg)
{
    (void)arg;
    test_conn_puts(conn, "220 mail.example ESMTP\r\n");
    test_conn_wait_closed(conn);
}

static void what_is_no_page_is_reported(void **state)
{
    CR_CLEANUP(test_server)
    struct test_server *elsewhere = test_server_new(&(struct test_server_options){.serve = answer_page});
    cr_autofree char *url = test_server_url(elsewhere, "/certs");
    cr_autofree char *location = test_concat("Location: ", url, "\r\n", NULL);
    const struct {
        const char *rule;
        void (*serve)(struct test_conn *, void *);
        const char *problem;
    } cases[] = {
        {"nothing leads elsewhere", redirect, "it answered HTTP 302"},
        {"it is refused", refuse, "it answered HTTP 403"},
        {"it is longer than can be", flood, "it is longer than the 2097152 bytes that are read"},
        {"half of it", test_serve_half, "Timeout was reached"},
        {"it promises what never comes", promise_much, "Timeout was reached"},
        {"it says nothing", test_serve_silence, "Timeout was reached"},
        {"it is no HTTP", say_hello, "it answered with something that is not HTTP"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(test_server)
        struct test_server *server =
            test_server_new(&(struct test_server_options){.serve = cases[i].serve, .arg = location});
        struct got got;
        int64_t start = cr_clock_monotonic_ms();
        bool waits = cr_starts_with(cases[i].problem, "Timeout");
        fetch(test_server_port(server), "/certs", waits ? 300 : PATIENCE_MS, &got);
        if (!cr_starts_with(got.problem, cases[i].problem))
            fail_msg("%s: '%s'", cases[i].rule, got.problem);
        assert_string_equal(got.body, "");
        assert_in_range(cr_clock_monotonic_ms() - start, 0, PATIENCE_MS / 2);
        free(got.body);
    }
    assert_int_equal(test_server_accepted(elsewhere), 0);
}

/* More than at once, and the first that are asked stay silent. */
static void silent_servers_starve_no_other(void **state)
{
    enum { MANY = 5 * CR_PAGES_AT_ONCE, SILENT = CR_PAGES_AT_ONCE };
    (void)state;
    CR_CLEANUP(test_server)
    struct test_server *good = test_server_new(&(struct test_server_options){.serve = answer_page});
    CR_CLEANUP(test_server)
    struct test_server *silent = test_server_new(&(struct test_server_options){.serve = test_serve_silence});
    struct cr_page_target targets[MANY];
    struct got got[MANY] = {0};
    for (size_t i = 0; i < MANY; i++)
        targets[i] = (struct cr_page_target){
            .address = "127.0.0.1", .port = test_server_port(i < SILENT ? silent : good), .path = "/certs"};
    int64_t start = cr_clock_monotonic_ms();
    cr_page_fetch(targets, MANY, 5000, keep, got);
    assert_in_range(cr_clock_monotonic_ms() - start, 1, 6500);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(got[i].times, 1);
        assert_string_equal(got[i].problem, i < SILENT ? "Timeout was reached" : "");
        free(got[i].body);
    }
}

/* --- memory --- */

enum { LARGE_PAGE = 8 * CR_PAGE_SMALL, LARGE_PAGES = 3 * CR_PAGES_AT_ONCE };

/* Each connection of a wave answers when all of the wave are there, so that they come side by side. */
struct waves {
    pthread_mutex_t lock;
    pthread_cond_t more;
    size_t asked;
};

static void wait_for_wave(struct waves *waves)
{
    pthread_mutex_lock(&waves->lock);
    size_t wave = ++waves->asked > CR_PAGES_AT_ONCE ? 0 : CR_PAGES_AT_ONCE; /* the first one only */
    pthread_cond_broadcast(&waves->more);
    while (waves->asked < wave)
        pthread_cond_wait(&waves->more, &waves->lock);
    pthread_mutex_unlock(&waves->lock);
}

static void answer_large(struct test_conn *conn, void *arg)
{
    static char page[LARGE_PAGE];
    if (!test_conn_request(conn))
        return;
    wait_for_wave(arg);
    test_conn_puts(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    test_conn_write(conn, page, sizeof page);
}

static void keep_len(void *arg, size_t index, const struct cr_page *page)
{
    size_t *lens = arg;
    assert_string_equal(page->problem, "");
    lens[index] += page->body.len;
}

/* Those that have to wait come whole, too. */
static void large_pages_are_in_memory_a_few_at_a_time(void **state)
{
    (void)state;
    struct waves waves = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = answer_large, .arg = &waves});
    struct cr_page_target targets[LARGE_PAGES];
    size_t lens[LARGE_PAGES] = {0};
    for (size_t i = 0; i < LARGE_PAGES; i++)
        targets[i] =
            (struct cr_page_target){.address = "127.0.0.1", .port = test_server_port(server), .path = "/certs"};
    size_t most = cr_page_fetch(targets, LARGE_PAGES, 3 * PATIENCE_MS, keep_len, lens);
    for (size_t i = 0; i < LARGE_PAGES; i++)
        assert_int_equal(lens[i], LARGE_PAGE);
    const size_t small = CR_PAGES_AT_ONCE - CR_PAGES_LARGE;
    assert_in_range(most, LARGE_PAGE, CR_PAGES_LARGE * (size_t)LARGE_PAGE + small * CR_PAGE_SMALL);
}

/* A page that its reader would refuse for its length is not taken at all. */
static void a_target_may_have_a_smaller_bound(void **state)
{
    (void)state;
    struct waves waves = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER, .asked = CR_PAGES_AT_ONCE};
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = answer_large, .arg = &waves});
    const struct cr_page_target target = {
        .address = "127.0.0.1", .port = test_server_port(server), .path = "/certs", .max = 1000};
    struct got got = {0};
    assert_in_range(cr_page_fetch(&target, 1, PATIENCE_MS, keep, &got), 0, 1000);
    assert_string_equal(got.problem, "it is longer than the 1000 bytes that are read");
    free(got.body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_asked_for_as_it_is_named),
        cmocka_unit_test(what_is_no_path_or_address_is_not_tried),
        cmocka_unit_test(what_is_no_page_is_reported),
        cmocka_unit_test(silent_servers_starve_no_other),
        cmocka_unit_test(large_pages_are_in_memory_a_few_at_a_time),
        cmocka_unit_test(a_target_may_have_a_smaller_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
