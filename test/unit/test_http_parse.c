#include "wire/http_parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"

enum { MAX_BODY = 32 };

/* How an answer ends: by itself, by its connection's end, by a reset; or it is not whole, or none. */
enum ending { WHOLE, AT_END, CUT, BAD };

struct answer {
    const char *text;
    enum ending ending;
    int status;
    const char *body; /* of an answer that is whole; else words of the error */
    const char *method;
};

#define STATUS "HTTP/1.1 200 OK\r\n"

static const struct answer answers[] = {
    /* lengths */
    {STATUS "Content-Length: 5\r\n\r\nhello", WHOLE, 200, "hello", NULL},
    {STATUS "content-LENGTH:5\r\n\r\nhello and more", WHOLE, 200, "hello", NULL},
    {STATUS "Content-Length: 5\r\nContent-Length: 5, 5\r\n\r\nhello", WHOLE, 200, "hello", NULL},
    {STATUS "Content-Length: 0\r\n\r\n", WHOLE, 200, "", NULL},
    {"HTTP/1.0 503 No\r\nContent-Length: 2\r\n\r\nno", WHOLE, 503, "no", NULL},
    {STATUS "Content-Length: 32\r\n\r\n12345678901234567890123456789012", WHOLE, 200,
     "12345678901234567890123456789012", NULL},
    {"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", WHOLE, 200, "hello", NULL},
    {STATUS "A: b\r\n c\r\n\td\r\nContent-Length: 1\r\n\r\n1", WHOLE, 200, "1", NULL},
    {STATUS "Content-Length: 33\r\n\r\n", BAD, 0, "longer than 32 bytes", NULL},
    {STATUS "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", BAD, 0, "two different", NULL},
    {STATUS "Content-Length: five\r\n\r\nhello", BAD, 0, "not a number: 'five'", NULL},
    {STATUS "Content-Length: 18446744073709551616\r\n\r\n", BAD, 0, "not a number", NULL},
    {STATUS "Content-Length: 1\r\n 0\r\n\r\nhello", BAD, 0, "white space", NULL},
    {STATUS "Content-Length: 5\r\n\r\nhell", CUT, 0, "breaks off", NULL},
    {STATUS "Content-Length: 5\r\n\r\n", CUT, 0, "breaks off", NULL},
    /* until the end */
    {STATUS "\r\nhello", AT_END, 200, "hello", NULL},
    {STATUS "\r\n", AT_END, 200, "", NULL},
    {STATUS "\r\n123456789012345678901234567890123", BAD, 0, "longer than 32 bytes", NULL},
    /* none */
    {"HTTP/1.1 204 No Content\r\n\r\n", WHOLE, 204, "", NULL},
    {"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", WHOLE, 204, "", NULL},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", WHOLE, 304, "", NULL},
    {STATUS "Content-Length: 99\r\n\r\n", WHOLE, 200, "", "HEAD"},
    {STATUS "Transfer-Encoding: chunked\r\n\r\n", WHOLE, 200, "", "HEAD"},
    /* interim answers */
    {"HTTP/1.1 100 Continue\r\n\r\n" STATUS "Content-Length: 1\r\n\r\n1", WHOLE, 200, "1", NULL},
    {"HTTP/1.1 103 Hints\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\nHTTP/1.1 102 \r\n\r\n" STATUS
     "Content-Length: 1\r\n\r\n1",
     WHOLE, 200, "1", NULL},
    {"HTTP/1.1 100 Continue\r\n\r\n", CUT, 0, "breaks off", NULL},
    {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", BAD, 0, "another protocol", NULL},
    /* chunks */
    {STATUS "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", WHOLE, 200, "hello", NULL},
    {STATUS "Transfer-Encoding: Chunked\r\n\r\n2;a=b\r\nhe\r\n003 ; c=\"d\"\r\nllo\r\n0;e\r\nT: r\r\n\r\nmore", WHOLE,
     200, "hello", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 7\r\n\r\n", WHOLE, 200, "", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n\r\n0\r\nTransfer-Encoding: gzip\r\n\r\n", WHOLE, 200, "", NULL},
    {STATUS "Transfer-Encoding: chunked\r\nA: b\r\n\r\n0\r\n folded\r\n\r\n", BAD, 0, "white space", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n0\r\n\r\n", WHOLE, 200, "\r\n\r\n", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", CUT, 0, "breaks off", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", CUT, 0, "breaks off", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n\r\n5\r\nhel", CUT, 0, "breaks off", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n\r\n", CUT, 0, "breaks off", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n0\r\n\r\n", BAD, 0, "longer than it says", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n\r\n6\r\nhello\r\n0\r\n\r\n", BAD, 0, "does not end", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", BAD, 0, "does not end", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n", BAD, 0, "does not end", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n\r\nhello", CUT, 0, "breaks off", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n\r\nhello\r\n", BAD, 0, "its size: 'hello'", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n\r\n\r\n", BAD, 0, "its size", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n\r\n21\r\n", BAD, 0, "longer than 32 bytes", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n\r\n1f\r\n1234567890123456789012345678901\r\n2\r\n", BAD, 0,
     "longer than 32 bytes", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", BAD, 0, "longer than 32 bytes", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n", BAD, 0, "its size", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n\r\n0\r\nno trailer\r\n\r\n", BAD, 0, "a line of its head", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n\r\n0\r\n folded\r\n\r\n", BAD, 0, "white space", NULL},
    /* which of the two? */
    {STATUS "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", BAD, 0, "as well", NULL},
    {STATUS "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", BAD, 0, "as well", NULL},
    {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", BAD, 0, "HTTP/1.0", NULL},
    {STATUS "Transfer-Encoding: gzip, chunked\r\n\r\n", BAD, 0, "'gzip, chunked'", NULL},
    {STATUS "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", BAD, 0, "not chunked alone", NULL},
    {STATUS "Transfer-Encoding: chunked\r\n , gzip\r\n\r\n", BAD, 0, "white space", NULL},
    {STATUS "Transfer-Encoding: identity\r\n\r\n", BAD, 0, "not chunked alone", NULL},
    /* nonsense */
    {STATUS "Content-Length : 5\r\n\r\nhello", BAD, 0, "a line of its head", NULL},
    {STATUS " Content-Length: 5\r\n\r\nhello", BAD, 0, "white space", NULL},
    {STATUS "A: b\rContent-Length: 5\r\n\r\nhello", BAD, 0, "a line of its head", NULL},
    {"\r\n" STATUS "\r\n", BAD, 0, "not HTTP/1", NULL},
    {"SSH-2.0-OpenSSH_9.2\r\n", BAD, 0, "not HTTP/1: 'S", NULL},
    {"hello", BAD, 0, "not HTTP/1", NULL},
    {"\x15\x03\x03", BAD, 0, "not HTTP/1", NULL},
    {"HTTP/1.1 twohundred OK\r\n", BAD, 0, "'HTTP/1.1 twohundred OK'", NULL},
    {"HTTP/1.1 200 OK", CUT, 0, "breaks off", NULL},
    {"HT", CUT, 0, "breaks off", NULL},
    {STATUS "Content-Le", CUT, 0, "breaks off", NULL},
    {STATUS, CUT, 0, "breaks off", NULL},
    {"", CUT, 0, "without an answer", NULL},
};

static void expect(const struct answer *answer, size_t piece, bool ok, const char *got, const struct cr_error *err)
{
    bool wanted = answer->ending == WHOLE || answer->ending == AT_END;
    const char *text = ok ? got : err->text;
    bool same = ok ? cr_streq(got, answer->body) : strstr(err->text, answer->body) != NULL;
    if (ok != wanted || !same)
        fail_msg("in pieces of %zu: '%s': expected '%s', got %s '%s'", piece, answer->text, answer->body,
                 ok ? "the body" : cr_error_kind_name(err->kind), text);
    if (!ok)
        assert_int_equal(err->kind, answer->ending == CUT ? CR_ERR_TRANSIENT : CR_ERR_INVALID);
}

static void play(const struct answer *answer, size_t piece, bool broken)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(0);
    CR_CLEANUP(cr_http_parse) struct cr_http_parse parse;
    cr_http_parse_init(&parse, answer->method ? answer->method : "GET", MAX_BODY);
    size_t len = strlen(answer->text);
    bool ok = true;
    for (size_t at = 0; ok && at < len; at += piece) {
        cr_autofree char *data = cr_memdup(answer->text + at, len - at < piece ? len - at : piece);
        ok = cr_http_parse_feed(&parse, data, len - at < piece ? len - at : piece, &body, &err);
    }
    assert_int_equal(ok && cr_http_parse_is_done(&parse), answer->ending == WHOLE);
    assert_int_equal(ok, answer->ending != BAD);
    ok = ok && cr_http_parse_end(&parse, broken, &err);
    if (broken && answer->ending == AT_END) {
        assert_false(ok);
        assert_int_equal(err.kind, CR_ERR_TRANSIENT);
        return;
    }
    expect(answer, piece, ok, cr_buf_text(&body), &err);
    if (ok)
        assert_int_equal(parse.status, answer->status);
}

static void however_it_is_cut_an_answer_is_the_same(void **state)
{
    static const size_t pieces[] = {SIZE_MAX / 2, 1, 2, 3, 7, 19};
    (void)state;
    for (size_t i = 0; i < cr_array_len(answers); i++)
        for (size_t n = 0; n < cr_array_len(pieces); n++)
            play(&answers[i], pieces[n], false);
}

static void a_reset_is_no_end_of_a_body(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(answers); i++)
        play(&answers[i], SIZE_MAX / 2, true);
}

/* Feeds the piece until it is refused: after how many bytes? 0: never, within a megabyte. */
static size_t fed_until_refused(const char *beginning, const char *piece, const char *words)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(0);
    CR_CLEANUP(cr_http_parse) struct cr_http_parse parse;
    cr_http_parse_init(&parse, "GET", MAX_BODY);
    assert_true(cr_http_parse_feed(&parse, beginning, strlen(beginning), &body, &err));
    for (size_t fed = strlen(beginning); fed < 1024 * 1024; fed += strlen(piece)) {
        if (cr_http_parse_feed(&parse, piece, strlen(piece), &body, &err))
            continue;
        assert_int_equal(err.kind, CR_ERR_INVALID);
        if (!strstr(err.text, words))
            fail_msg("expected '%s', got '%s'", words, err.text);
        return fed;
    }
    return 0;
}

static void nothing_is_endless(void **state)
{
    static const struct {
        const char *beginning, *piece, *words;
        size_t most;
    } cases[] = {
        {"HTTP/1.1 200 ", "reason ", "head is longer", CR_HTTP_HEAD_MAX},
        {STATUS, "Name: value\r\n", "head is longer", CR_HTTP_HEAD_MAX},
        {STATUS "Name: ", "value ", "head is longer", CR_HTTP_HEAD_MAX},
        {"", "HTTP/1.1 100 Continue\r\n\r\n", "head is longer", CR_HTTP_HEAD_MAX},
        {STATUS "Transfer-Encoding: chunked\r\n\r\n0\r\n", "T: r\r\n", "head is longer", CR_HTTP_HEAD_MAX},
        {STATUS "Transfer-Encoding: chunked\r\n\r\n5;", "a=b;", "head is longer", CR_HTTP_HEAD_MAX + 64},
        {STATUS "Transfer-Encoding: chunked\r\n\r\n", "00000", "head is longer", CR_HTTP_HEAD_MAX + 64},
        {STATUS "Transfer-Encoding: chunked\r\n\r\n", "1\r\n.\r\n", "longer than 32 bytes", 512},
        {STATUS "\r\n", ".", "longer than 32 bytes", 64},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        size_t fed = fed_until_refused(cases[i].beginning, cases[i].piece, cases[i].words);
        if (!fed || fed > cases[i].most)
            fail_msg("'%s' and many '%s': refused after %zu", cases[i].beginning, cases[i].piece, fed);
    }
}

static void a_head_of_the_greatest_size_is_read(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(0);
    CR_CLEANUP(cr_http_parse) struct cr_http_parse parse;
    static const char end[] = "\r\nContent-Length: 2\r\n\r\n";
    cr_buf_puts(&text, STATUS "Name: ");
    while (text.len + strlen(end) < CR_HTTP_HEAD_MAX)
        cr_buf_puts(&text, "v");
    cr_buf_puts(&text, end);
    cr_buf_puts(&text, "ok");
    cr_http_parse_init(&parse, "GET", MAX_BODY);
    assert_true(cr_http_parse_feed(&parse, text.data, text.len, &body, NULL));
    assert_true(cr_http_parse_is_done(&parse));
    assert_string_equal(cr_buf_text(&body), "ok");
}

/* Chunks cost nothing of what a head may be: a long body has many. */
static void the_lines_of_chunks_are_not_of_the_head(void **state)
{
    char chunk[1100];
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(0);
    CR_CLEANUP(cr_http_parse) struct cr_http_parse parse;
    cr_http_parse_init(&parse, "GET", MAX_BODY);
    static const char head[] = STATUS "Transfer-Encoding: chunked\r\n\r\n", end[] = "0\r\n\r\n";
    int len = snprintf(chunk, sizeof chunk, "1;%01000d\r\nx\r\n", 0);
    assert_true(cr_http_parse_feed(&parse, head, strlen(head), &body, NULL));
    for (size_t i = 0; i < MAX_BODY; i++)
        assert_true(cr_http_parse_feed(&parse, chunk, (size_t)len, &body, NULL));
    assert_true(cr_http_parse_feed(&parse, end, strlen(end), &body, NULL));
    assert_true(cr_http_parse_is_done(&parse));
    assert_int_equal(body.len, MAX_BODY);
}

static void a_body_is_bytes_and_a_buffers_own_cap_holds(void **state)
{
    static const char text[] = STATUS "Content-Length: 4\r\n\r\n\0\n\r\0";
    (void)state;
    for (size_t max = 3; max <= 4; max++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(max);
        CR_CLEANUP(cr_http_parse) struct cr_http_parse parse;
        cr_http_parse_init(&parse, "GET", MAX_BODY);
        bool ok = cr_http_parse_feed(&parse, text, sizeof text - 1, &body, &err);
        assert_int_equal(ok, max == 4);
        if (ok)
            assert_memory_equal(body.data, "\0\n\r\0", 4);
        else
            assert_int_equal(err.kind, CR_ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(however_it_is_cut_an_answer_is_the_same),
        cmocka_unit_test(a_reset_is_no_end_of_a_body),
        cmocka_unit_test(nothing_is_endless),
        cmocka_unit_test(a_head_of_the_greatest_size_is_read),
        cmocka_unit_test(the_lines_of_chunks_are_not_of_the_head),
        cmocka_unit_test(a_body_is_bytes_and_a_buffers_own_cap_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
