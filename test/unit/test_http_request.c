#include "wire/http_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"

struct head {
    const char *text;
    int refused; /* 0: it is whole */
    const char *method, *path, *authorization;
    bool has_body, last;
};

#define GET "GET /healthz HTTP/1.1\r\n"

static const struct head heads[] = {
    {GET "\r\n", 0, "GET", "/healthz"},
    {GET "Host: 10.0.0.1:8081\r\nUser-Agent: kube-probe/1.36\r\nConnection: close\r\n\r\n", 0, "GET", "/healthz",
     .last = true},
    {"GET /metrics?name=x&y=/#z HTTP/1.1\r\n\r\n", 0, "GET", "/metrics"},
    {"GET /%6Detrics HTTP/1.1\r\n\r\n", 0, "GET", "/%6Detrics"},
    {"get / HTTP/1.1\r\n\r\n", 0, "get", "/"},
    {"GET / HTTP/1.0\r\n\r\n", 0, "GET", "/", .last = true},
    {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 0, "GET", "/", .last = true},
    {"GET / HTTP/1.7\r\n\r\n", 0, "GET", "/"}, /* RFC 9110, section 2.5: as the highest minor version known */
    /* lines */
    {"GET / HTTP/1.1\n\n", 0, "GET", "/"}, /* RFC 9112, section 2.2 */
    {"\r\n\n\r\nGET / HTTP/1.1\r\n\n", 0, "GET", "/"},
    {"\n\n\n\n\nGET / HTTP/1.1\r\n\n", 400},
    {GET "X: a\rb\r\n\r\n", 400},
    {GET " folded\r\n\r\n", 400},
    {GET "X: 1\r\n\tfolded\r\n\r\n", 400},
    {GET "no colon\r\n\r\n", 400},
    {GET "X : 1\r\n\r\n", 400},
    {GET ": 1\r\n\r\n", 400},
    /* targets */
    {"GET http://host:80/metrics?x HTTP/1.1\r\n\r\n", 0, "GET", "/metrics"}, /* RFC 9112, section 3.2.2 */
    {"GET HTTPS://[::1]:80/metrics HTTP/1.1\r\n\r\n", 0, "GET", "/metrics"},
    {"GET http://host HTTP/1.1\r\n\r\n", 0, "GET", ""},
    {"GET http://host?/metrics HTTP/1.1\r\n\r\n", 0, "GET", ""},
    {"GET http:///metrics HTTP/1.1\r\n\r\n", 400},
    {"GET http://[/metrics HTTP/1.1\r\n\r\n", 400},
    {"GET http://[::1]x/metrics HTTP/1.1\r\n\r\n", 400},
    {"OPTIONS * HTTP/1.1\r\n\r\n", 0, "OPTIONS", "*"},
    {"CONNECT host:1 HTTP/1.1\r\n\r\n", 0, "CONNECT", "host:1"},
    {"GET /\t HTTP/1.1\r\n\r\n", 400},
    {"GET /\x7f HTTP/1.1\r\n\r\n", 400},
    {"GET /\xc3\xa4 HTTP/1.1\r\n\r\n", 400},
    /* the first line */
    {"GET\r\n\r\n", 400},
    {"GET /\r\n\r\n", 400}, /* HTTP/0.9 */
    {"GET  / HTTP/1.1\r\n\r\n", 400},
    {"GET /  HTTP/1.1\r\n\r\n", 400},
    {"GET / HTTP/1.1 \r\n\r\n", 400},
    {"GET / x HTTP/1.1\r\n\r\n", 400},
    {" GET / HTTP/1.1\r\n\r\n", 400},
    {"G@T / HTTP/1.1\r\n\r\n", 400},
    {"GET / HTTP/1\r\n\r\n", 400},
    {"GET / HTTP/1.10\r\n\r\n", 400},
    {"GET / http/1.1\r\n\r\n", 400},
    {"GET / HTTP/2.0\r\n\r\n", 505},
    {"GET / HTTP/9.9\r\n\r\n", 505},
    {"PRI * HTTP/2.0\r\n\r\n", 505},
    {"hello\r\n\r\n", 400},
    /* fields */
    {GET "authorization:  Bearer abc \r\n\r\n", 0, "GET", "/healthz", "Bearer abc"},
    {GET "Authorization:\r\n\r\n", 0, "GET", "/healthz", ""},
    {GET "Authorization: a\r\nAuthorization: b\r\n\r\n", 400},
    {GET "Connection: upgrade , Close\r\n\r\n", 0, "GET", "/healthz", .last = true},
    {GET "Connection: closed\r\n\r\n", 0, "GET", "/healthz"},
    {GET "Content-Length: 0\r\n\r\n", 0, "GET", "/healthz"},
    {GET "Content-Length: 5\r\n\r\n", 0, "GET", "/healthz", .has_body = true},
    {GET "Content-Length: 5\r\nContent-Length: 0\r\n\r\n", 0, "GET", "/healthz", .has_body = true},
    {GET "Content-Length: -1\r\n\r\n", 400},
    {GET "Content-Length: 99999999999999999999\r\n\r\n", 400},
    {GET "Transfer-Encoding: gzip, chunked\r\n\r\n", 0, "GET", "/healthz", .has_body = true},
};

/* In pieces of so many bytes; what is behind a head is left alone. */
static void feed(struct cr_http_ask *ask, const char *text, size_t len, size_t piece)
{
    size_t taken = 0;
    for (size_t at = 0; at < len && !ask->whole && !ask->refused; at += piece)
        taken += cr_http_ask_feed(ask, text + at, len - at < piece ? len - at : piece);
    if (ask->whole)
        assert_int_equal(taken, len);
}

static void assert_text(const struct head *head, const char *found, const char *wanted)
{
    if (!cr_streq(found, wanted))
        fail_msg("'%s': '%s', not '%s'", head->text, cr_or_empty(found), cr_or_empty(wanted));
}

static void check(const struct head *head, const struct cr_http_ask *ask)
{
    if (ask->refused != head->refused || ask->whole != !head->refused)
        fail_msg("'%s': %d %s", head->text, ask->refused, cr_or_empty(ask->problem));
    if (!ask->whole)
        return;
    assert_text(head, ask->method, head->method);
    assert_text(head, ask->path, head->path);
    assert_text(head, ask->authorization, head->authorization);
    if (ask->has_body != head->has_body || ask->last != head->last)
        fail_msg("'%s': a body: %d, the last: %d", head->text, ask->has_body, ask->last);
}

static void a_head_is_read_in_pieces_of_any_size(void **state)
{
    static const size_t pieces[] = {1, 2, 3, 7, 1000};
    (void)state;
    for (size_t i = 0; i < cr_array_len(heads); i++) {
        for (size_t k = 0; k < cr_array_len(pieces); k++) {
            CR_CLEANUP(cr_http_ask) struct cr_http_ask ask;
            cr_http_ask_init(&ask);
            feed(&ask, heads[i].text, strlen(heads[i].text), pieces[k]);
            check(&heads[i], &ask);
        }
    }
}

static void what_is_not_whole_is_waited_for(void **state)
{
    static const char text[] = GET "Host: x\r\nAuthorization: Bearer abc\r\n\r\n";
    (void)state;
    for (size_t len = 0; len < strlen(text); len++) {
        CR_CLEANUP(cr_http_ask) struct cr_http_ask ask;
        cr_http_ask_init(&ask);
        assert_int_equal(cr_http_ask_feed(&ask, text, len), len);
        assert_false(ask.whole || ask.refused);
    }
}

static void what_follows_a_head_is_not_of_it(void **state)
{
    static const char two[] = "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n";
    (void)state;
    CR_CLEANUP(cr_http_ask) struct cr_http_ask ask;
    cr_http_ask_init(&ask);
    assert_int_equal(cr_http_ask_feed(&ask, two, strlen(two)), strlen(two) / 2);
    assert_text(&heads[0], ask.path, "/a");
    assert_int_equal(cr_http_ask_feed(&ask, two, strlen(two)), 0);
}

/* Also when it never has a line's end, or nothing but line ends. */
static void a_head_has_a_bounded_length(void **state)
{
    static const char *const parts[] = {"y", "X: 1\r\n", "\r\n"};
    (void)state;
    for (size_t i = 0; i < cr_array_len(parts); i++) {
        CR_CLEANUP(cr_http_ask) struct cr_http_ask ask;
        cr_http_ask_init(&ask);
        size_t fed = 0;
        while (!ask.refused) {
            fed += cr_http_ask_feed(&ask, parts[i], strlen(parts[i]));
            assert_false(ask.whole);
            assert_true(fed <= CR_HTTP_REQUEST_MAX + strlen(parts[i]));
        }
        assert_int_equal(ask.refused, *parts[i] == '\r' ? 400 : 431);
    }
}

static void a_nul_is_in_no_head(void **state)
{
    static const char line[] = "GET /\0x HTTP/1.1\r\n\r\n";
    static const char field[] = GET "X: \0\r\n\r\n";
    (void)state;
    CR_CLEANUP(cr_http_ask) struct cr_http_ask first;
    CR_CLEANUP(cr_http_ask) struct cr_http_ask second;
    cr_http_ask_init(&first);
    cr_http_ask_init(&second);
    feed(&first, line, sizeof line - 1, 1);
    feed(&second, field, sizeof field - 1, 1);
    assert_int_equal(first.refused, 400);
    assert_int_equal(second.refused, 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_read_in_pieces_of_any_size),
        cmocka_unit_test(what_is_not_whole_is_waited_for),
        cmocka_unit_test(what_follows_a_head_is_not_of_it),
        cmocka_unit_test(a_head_has_a_bounded_length),
        cmocka_unit_test(a_nul_is_in_no_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
