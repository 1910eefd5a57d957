/* What a stream makes of answers as they are on the wire: cut off, packed, too long, refusals. */
#include "net/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "support/streamscene.h"

#define CUT_OFF "the response was cut off: "

/* Each answer by a server of its own, all at once. */
static void read_all(struct fixture *f, const char *const *raw, struct reader *readers, size_t len)
{
    struct test_server *servers[MOST_AT_ONCE];
    assert_in_range(len, 1, MOST_AT_ONCE);
    for (size_t i = 0; i < len; i++) {
        servers[i] = server_of(serve_and_close, raw[i]);
        open_stream(&readers[i], f, servers[i], PATIENCE_MS);
    }
    run(f);
    for (size_t i = 0; i < len; i++)
        test_server_free(servers[i]);
}

struct raw_answer {
    const char *rule;
    const char *raw;
    int status;        /* 0: none is given */
    const char *body;  /* what is handed over, also of one that fails */
    const char *words; /* of the error, which is Transient; NULL: it ends well */
};

static void assert_read_as(const struct reader *reader, const struct raw_answer *answer)
{
    if (reader->failed != (answer->words != NULL))
        fail_msg("%s: %s", answer->rule, reader->failed ? reader->err.text : "ended well");
    if (reader->status != answer->status || !cr_streq(cr_buf_text(&reader->text), answer->body))
        fail_msg("%s: %d and '%s'", answer->rule, reader->status, cr_buf_text(&reader->text));
    if (reader->failed && (reader->err.kind != CR_ERR_TRANSIENT || !strstr(reader->err.text, answer->words) ||
                           !cr_starts_with(reader->err.text, "GET http://127.0.0.1:")))
        fail_msg("%s: %s: %s", answer->rule, cr_error_kind_name(reader->err.kind), reader->err.text);
}

static void assert_all_read_as(struct fixture *f, const struct raw_answer *answers, size_t len)
{
    struct reader readers[MOST_AT_ONCE] = {0};
    const char *raw[MOST_AT_ONCE] = {0};
    for (size_t i = 0; i < len; i++)
        raw[i] = answers[i].raw;
    read_all(f, raw, readers, len);
    for (size_t i = 0; i < len; i++) {
        assert_read_as(&readers[i], &answers[i]);
        cr_buf_dispose(&readers[i].text);
    }
}

static void an_answer_that_is_none_or_is_cut_off_is_transient(void **state)
{
    static const struct raw_answer answers[] = {
        {"hung up without an answer", "", 0, "", "Empty reply"},
        {"cut off in the status line", "HTTP/1.", 0, "", ""},
        {"cut off in the headers", "HTTP/1.1 200 OK\r\nContent-Le", 0, "", "cut off in its headers"},
        {"cut off in the headers, a refusal", "HTTP/1.1 403 No\r\nContent-Length: 2\r\n", 0, "", CUT_OFF},
        {"cut off after an informational status", "HTTP/1.1 103 Hints\r\n\r\n", 0, "", "Empty reply"},
        {"cut off in a body of known length", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", 200, "abc", CUT_OFF},
        {"cut off in a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", 200, "ab", CUT_OFF},
        {"cut off between chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", 200, "ab",
         CUT_OFF},
        {"a chunk size that is none", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 200, "", "chunk"},
        {"not HTTP", "SSH-2.0-OpenSSH\r\n", 0, "", "the answer is not HTTP: "},
        {"HTTP/0.9", "hello", 0, "", "the answer is not HTTP: "},
    };
    assert_all_read_as(*state, answers, cr_array_len(answers));
}

/* The status has come: a watch that is refused must not look like trouble of the network. */
static void a_refusal_with_a_truncated_body_is_still_one(void **state)
{
    static const struct raw_answer answers[] = {
        {"in a body of known length", "HTTP/1.1 401 No\r\nContent-Length: 10\r\n\r\nabc", 401, "abc", NULL},
        {"between chunks", "HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", 403, "abc", NULL},
        {"before its body", "HTTP/1.1 410 Gone\r\nContent-Length: 10\r\n\r\n", 410, "", NULL},
        {"a server's own error", "HTTP/1.1 503 Later\r\nContent-Length: 10\r\n\r\nabc", 503, "abc", NULL},
        {"the least", "HTTP/1.1 400 No\r\nContent-Length: 10\r\n\r\nabc", 400, "abc", NULL},
        {"no refusal", "HTTP/1.1 399 Odd\r\nContent-Length: 10\r\n\r\nabc", 399, "abc", CUT_OFF},
        {"broken", "HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 403, "", NULL},
        {"broken, and no refusal", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 200, "", "chunk"},
    };
    assert_all_read_as(*state, answers, cr_array_len(answers));
}

static void a_body_that_is_packed_is_refused_in_words(void **state)
{
    static const char *const fields[] = {
        "Transfer-Encoding: br",
        "Transfer-Encoding: zstd",
        "Transfer-Encoding: br, chunked",
        "Transfer-Encoding: gzip",
        "transfer-encoding:  GZIP ",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: deflate",
        "Transfer-Encoding: lzma",
        "Content-Encoding: gzip",
        "content-encoding: br, identity",
        "Content-Encoding: identity\r\nContent-Encoding: br",
    };
    struct reader readers[cr_array_len(fields)] = {0};
    char *raw[cr_array_len(fields)];
    for (size_t i = 0; i < cr_array_len(fields); i++)
        raw[i] = cr_asprintf("HTTP/1.1 200 OK\r\n%s\r\n\r\n\xff\xff\xff\xff", fields[i]);
    read_all(*state, (const char *const *)raw, readers, cr_array_len(fields));
    for (size_t i = 0; i < cr_array_len(fields); i++) {
        assert_ended(&readers[i], CR_ERR_TRANSIENT, "the answer is compressed");
        assert_int_equal(readers[i].cuts, 0);
        free(raw[i]);
    }
}

static void a_body_that_is_not_packed_comes_and_so_does_a_refusal(void **state)
{
    static const struct raw_answer answers[] = {
        {"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding:  Chunked \r\n\r\n2\r\nab\r\n0\r\n\r\n", 200, "ab", NULL},
        {"identity", "HTTP/1.1 200 OK\r\nContent-Encoding: Identity\r\nContent-Length: 2\r\n\r\nab", 200, "ab", NULL},
        {"another field", "HTTP/1.1 200 OK\r\nX-Content-Encoding: br\r\nContent-Length: 2\r\n\r\nab", 200, "ab", NULL},
        {"a refusal", "HTTP/1.1 410 Gone\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nab", 410, "ab", NULL},
    };
    assert_all_read_as(*state, answers, cr_array_len(answers));
}

/* libcurl says of it, too, that memory is gone. */
static void a_header_without_end_is_reported_in_words(void **state)
{
    enum { LONG = 200 * 1024 };
    struct reader reader = {0};
    cr_autofree char *line = cr_malloc(LONG + 1);
    memset(line, 'x', LONG);
    line[LONG] = '\0';
    cr_autofree char *raw = cr_asprintf("HTTP/1.1 200 OK\r\nX: %s\r\nContent-Length: 0\r\n\r\n", line);
    CR_CLEANUP(test_server) struct test_server *server = server_of(serve_and_close, raw);
    open_stream(&reader, *state, server, PATIENCE_MS);
    run(*state);
    assert_ended(&reader, CR_ERR_TRANSIENT, "a line of its headers is too long");
    assert_int_equal(reader.statuses, 0);
}

static char *refusal_until(int seconds)
{
    char date[64];
    time_t then = time(NULL) + seconds;
    struct tm tm;
    gmtime_r(&then, &tm);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    return cr_asprintf("HTTP/1.1 429 Slow\r\nContent-Length: 0\r\nRetry-After: %s\r\n\r\n", date);
}

#define SLOW "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n"

static void retry_after_is_read_and_capped(void **state)
{
    cr_autofree char *soon = refusal_until(100);
    cr_autofree char *past = refusal_until(-100);
    cr_autofree char *far = refusal_until(90 * 86400);
    const struct {
        const char *raw;
        int low;
        int high;
    } cases[] = {
        {SLOW "\r\n", 0, 0},
        {SLOW "Retry-After: 0\r\n\r\n", 0, 0},
        {SLOW "retry-after: 17\r\n\r\n", 17000, 17000},
        {SLOW "Retry-After: 3600\r\n\r\n", 3600000, 3600000},
        {SLOW "Retry-After: 3601\r\n\r\n", 3600000, 3600000},
        {SLOW "Retry-After: 99999999999999999999\r\n\r\n", 0, 3600000},
        {SLOW "Retry-After: soon\r\n\r\n", 0, 0},
        {SLOW "Retry-After: -5\r\n\r\n", 0, 0},
        {soon, 60000, 100000},
        {past, 0, 0},
        {far, 3600000, 3600000},
    };
    struct reader readers[cr_array_len(cases)] = {0};
    const char *raw[cr_array_len(cases)];
    for (size_t i = 0; i < cr_array_len(cases); i++)
        raw[i] = cases[i].raw;
    read_all(*state, raw, readers, cr_array_len(cases));
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        assert_ended_well(&readers[i]);
        if (readers[i].retry_after_ms < cases[i].low || readers[i].retry_after_ms > cases[i].high)
            fail_msg("%s gives %d", cases[i].raw, readers[i].retry_after_ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_loop(an_answer_that_is_none_or_is_cut_off_is_transient),
        with_loop(a_refusal_with_a_truncated_body_is_still_one),
        with_loop(a_body_that_is_packed_is_refused_in_words),
        with_loop(a_body_that_is_not_packed_comes_and_so_does_a_refusal),
        with_loop(a_header_without_end_is_reported_in_words),
        with_loop(retry_after_is_read_and_capped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
