#include "net/http.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"
#include "support/testserver.h"

enum { PATIENCE_MS = 20 * 1000 };

/* The certificates of the tests with TLS. */
struct papers {
    struct test_cert *ca;
    struct test_cert *other_ca;
    struct test_cert *server;   /* of ca, for 127.0.0.1 */
    struct test_cert *by_name;  /* of ca, for api.internal only */
    struct test_cert *client_a; /* of ca */
    struct test_cert *client_b;
};

static struct papers *papers_new(void)
{
    struct papers *p = cr_new(struct papers);
    p->ca = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
    p->other_ca = test_cert_new(&(struct test_cert_spec){.cn = "other ca", .ca = true});
    p->server = test_cert_new(&(struct test_cert_spec){.cn = "s", .ips = {"127.0.0.1"}, .issuer = p->ca});
    p->by_name = test_cert_new(&(struct test_cert_spec){.cn = "n", .dns = {"api.internal"}, .issuer = p->ca});
    p->client_a = test_cert_new(&(struct test_cert_spec){.cn = "client a", .issuer = p->ca});
    p->client_b = test_cert_new(&(struct test_cert_spec){.cn = "client b", .issuer = p->ca});
    return p;
}

static void papers_free(struct papers *p)
{
    if (!p)
        return;
    test_cert_free(p->client_b);
    test_cert_free(p->client_a);
    test_cert_free(p->by_name);
    test_cert_free(p->server);
    test_cert_free(p->other_ca);
    test_cert_free(p->ca);
    free(p);
}

/* The test's thread is the loop's: nothing here needs a lock. */
struct fixture {
    struct cr_loop *loop;
    struct cr_http_client *client;
    struct cr_timer *guard; /* a stream that never ends fails the test instead of hanging it */
    unsigned live;          /* streams that have not ended */
    struct papers *papers;  /* of the tests with TLS; NULL: none */
};

/* A stream and what it brought. */
struct reader {
    struct fixture *fixture;
    struct cr_http_client *client;   /* NULL: the fixture's */
    const struct cr_http_tls *renew; /* the client's credentials before it starts; NULL: as they are */
    struct cr_http_stream *stream;
    struct cr_buf text;
    int status;
    int retry_after_ms;
    unsigned statuses;
    unsigned cuts; /* calls of on_data */
    unsigned ends;
    bool failed;
    struct cr_error err;
    /* What it does; the default is to read on. */
    bool refuse_status;
    size_t refuse_after; /* bytes; 0: never */
    struct reader *cancel_on_data;
    struct reader *cancel_on_status;
    bool restart_on_end;          /* once */
    struct reader *start_on_data; /* once */
    struct reader *start_on_end;
    sem_t *open_on_end;
    const struct cr_http_request *request;
    int idle_ms;
};

static void give_up(void *arg)
{
    (void)arg;
    fprintf(stderr, "a stream did not end in time\n");
    abort();
}

static int set_up(void **state)
{
    struct fixture *f = cr_new(struct fixture);
    f->loop = cr_loop_new();
    f->client = cr_http_client_new(f->loop, NULL, NULL);
    f->guard = cr_timer_new(f->loop, give_up, NULL);
    cr_timer_arm(f->guard, PATIENCE_MS);
    *state = f;
    return 0;
}

static int set_up_papers(void **state)
{
    set_up(state);
    ((struct fixture *)*state)->papers = papers_new();
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    cr_http_client_free(f->client);
    cr_timer_free(f->guard);
    cr_loop_free(f->loop);
    assert_int_equal(f->live, 0);
    papers_free(f->papers);
    free(f);
    return 0;
}

static void start(struct reader *reader);

static void cancel_other(const struct reader *other)
{
    if (other && other->stream)
        cr_http_stream_cancel(other->stream);
}

static void start_other(struct reader *other)
{
    if (other)
        start(other);
}

static bool on_status(void *arg, int status, int retry_after_ms)
{
    struct reader *reader = arg;
    assert_int_equal(reader->cuts, 0);
    assert_int_equal(reader->ends, 0);
    reader->statuses++;
    reader->status = status;
    reader->retry_after_ms = retry_after_ms;
    cancel_other(reader->cancel_on_status);
    return !reader->refuse_status;
}

static bool on_data(void *arg, const char *data, size_t len)
{
    struct reader *reader = arg;
    assert_int_equal(reader->statuses, 1);
    assert_int_equal(reader->ends, 0);
    assert_int_not_equal(len, 0);
    reader->cuts++;
    assert_true(cr_buf_append(&reader->text, data, len));
    cancel_other(reader->cancel_on_data);
    start_other(cr_steal(&reader->start_on_data));
    return !reader->refuse_after || reader->text.len < reader->refuse_after;
}

static void on_end(void *arg, const struct cr_error *err)
{
    struct reader *reader = arg;
    struct fixture *f = reader->fixture;
    assert_true(cr_loop_in_thread(f->loop) || !reader->stream);
    reader->ends++;
    reader->stream = NULL;
    reader->failed = err != NULL;
    if (err)
        reader->err = *err;
    f->live--;
    if (reader->open_on_end)
        sem_post(reader->open_on_end);
    start_other(reader->start_on_end);
    if (reader->restart_on_end) {
        reader->restart_on_end = false;
        reader->statuses = reader->cuts = reader->ends = 0;
        cr_buf_reset(&reader->text);
        start(reader);
    } else if (f->live == 0) {
        cr_loop_stop(f->loop);
    }
}

static void start(struct reader *reader)
{
    const struct cr_http_stream_handler handler = {on_status, on_data, on_end, reader};
    struct cr_http_client *client = reader->client ? reader->client : reader->fixture->client;
    reader->fixture->live++;
    if (reader->renew)
        cr_http_client_set_tls(client, reader->renew);
    reader->stream = cr_http_stream_start(client, reader->request, &handler, reader->idle_ms);
    assert_non_null(reader->stream);
}

/* Starts it with this path of the server. The request's texts may go once it is started. */
static void open_stream(struct reader *reader, struct fixture *f, const struct test_server *server, int idle_ms)
{
    cr_autofree char *url = test_server_url(server, "/watch");
    const struct cr_http_request request = {.method = "GET", .url = url};
    reader->fixture = f;
    reader->request = &request;
    reader->idle_ms = idle_ms;
    start(reader);
}

static void run(struct fixture *f)
{
    cr_loop_run(f->loop);
}

static void assert_ended(const struct reader *reader, enum cr_error_kind kind, const char *words)
{
    assert_int_equal(reader->ends, 1);
    if (!reader->failed)
        fail_msg("expected %s '%s', but it ended well", cr_error_kind_name(kind), words);
    if (reader->err.kind != kind || !strstr(reader->err.text, words))
        fail_msg("expected %s with '%s', got %s: %s", cr_error_kind_name(kind), words,
                 cr_error_kind_name(reader->err.kind), reader->err.text);
}

static void assert_ended_well(const struct reader *reader)
{
    assert_int_equal(reader->ends, 1);
    if (reader->failed)
        fail_msg("%s", reader->err.text);
}

/* --- servers --- */

static const char chunked[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/* Sends the text in chunks of 1, 2, 3, … bytes, and each chunk in two pieces on the wire. */
static void serve_odd_cuts(struct test_conn *conn, void *arg)
{
    const char *text = arg;
    if (!test_conn_request(conn) || !test_conn_puts(conn, chunked))
        return;
    for (size_t at = 0, size = 1; at < strlen(text); at += size, size++) {
        size_t left = strlen(text) - at;
        if (size > left)
            size = left;
        cr_autofree char *head = cr_asprintf("%zx\r\n%.*s", size, (int)(size / 2), text + at);
        test_conn_puts(conn, head);
        test_conn_write(conn, text + at + size / 2, size - size / 2);
        test_conn_puts(conn, "\r\n");
    }
    test_conn_puts(conn, "0\r\nX-Trailer: ignored\r\n\r\n");
}

/* Says it, then keeps the connection open. */
static void serve_and_wait(struct test_conn *conn, void *arg)
{
    if (test_conn_request(conn) && test_conn_puts(conn, arg))
        test_conn_wait_closed(conn);
}

static void serve_and_close(struct test_conn *conn, void *arg)
{
    if (test_conn_request(conn))
        test_conn_puts(conn, arg);
}

static struct test_server *server_of(void (*serve)(struct test_conn *, void *), const char *text)
{
    return test_server_new(&(struct test_server_options){.serve = serve, .arg = (void *)(uintptr_t)text});
}

/* --- tests --- */

static void the_body_is_the_same_in_any_cut(void **state)
{
    struct cr_buf text = CR_BUF_INIT(0);
    for (int i = 0; i < 3000; i++)
        cr_buf_printf(&text, "{\"type\":\"ADDED\",\"n\":%d}\n", i);
    struct reader reader = {0};
    CR_CLEANUP(test_server) struct test_server *server = server_of(serve_odd_cuts, text.data);
    open_stream(&reader, *state, server, PATIENCE_MS);
    run(*state);
    assert_ended_well(&reader);
    assert_int_equal(reader.status, 200);
    assert_int_equal(reader.statuses, 1);
    assert_string_equal(reader.text.data, text.data);
    cr_buf_dispose(&reader.text);
    cr_buf_dispose(&text);
}

static void an_error_status_brings_its_body(void **state)
{
    struct reader reader = {0};
    CR_CLEANUP(test_server)
    struct test_server *server =
        server_of(serve_and_close, "HTTP/1.1 429 Slow\r\nRetry-After: 3\r\nContent-Length: 4\r\n\r\nbusy");
    open_stream(&reader, *state, server, PATIENCE_MS);
    run(*state);
    assert_ended_well(&reader);
    assert_int_equal(reader.status, 429);
    assert_int_equal(reader.retry_after_ms, 3000);
    assert_string_equal(cr_buf_text(&reader.text), "busy");
    cr_buf_dispose(&reader.text);
}

static void an_informational_status_is_not_the_status(void **state)
{
    struct reader reader = {0};
    CR_CLEANUP(test_server)
    struct test_server *server = server_of(
        serve_and_close, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    open_stream(&reader, *state, server, PATIENCE_MS);
    run(*state);
    assert_ended_well(&reader);
    assert_int_equal(reader.status, 200);
    assert_int_equal(reader.statuses, 1);
    cr_buf_dispose(&reader.text);
}

static void an_empty_body_ends_well(void **state)
{
    struct reader reader = {0};
    CR_CLEANUP(test_server)
    struct test_server *server = server_of(serve_and_close, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    open_stream(&reader, *state, server, PATIENCE_MS);
    run(*state);
    assert_ended_well(&reader);
    assert_int_equal(reader.statuses, 1);
    assert_int_equal(reader.cuts, 0);
}

static void a_stream_cut_off_hands_over_what_came_and_is_transient(void **state)
{
    struct reader reader = {0};
    CR_CLEANUP(test_server)
    struct test_server *server =
        server_of(serve_and_close, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n6\r\nhal");
    open_stream(&reader, *state, server, PATIENCE_MS);
    run(*state);
    assert_ended(&reader, CR_ERR_TRANSIENT, "GET http://127.0.0.1:");
    assert_string_equal(cr_buf_text(&reader.text), "wholehal");
    cr_buf_dispose(&reader.text);
}

static void silence_ends_a_stream(void **state)
{
    static const struct {
        const char *said;
        const char *words;
    } cases[] = {
        {"", "silent for 100 ms (waiting for the response)"},
        {"HTTP/1.1 200 OK\r\n", "silent for 100 ms (reading the response)"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "silent for 100 ms (reading the response)"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "silent for 100 ms (reading the response)"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct reader reader = {0};
        CR_CLEANUP(test_server) struct test_server *server = server_of(serve_and_wait, cases[i].said);
        int64_t begun = cr_clock_monotonic_ms();
        open_stream(&reader, *state, server, 100);
        run(*state);
        assert_ended(&reader, CR_ERR_TRANSIENT, cases[i].words);
        assert_in_range(cr_clock_monotonic_ms() - begun, 100, PATIENCE_MS);
        cr_buf_dispose(&reader.text);
        tear_down(state); /* a loop runs once */
        set_up(state);
    }
}

enum { DRIPS = 12, DRIP_EVERY_MS = 50, DRIP_IDLE_MS = 400 };

static void serve_drips(struct test_conn *conn, void *arg)
{
    (void)arg;
    const struct timespec pause = {.tv_nsec = DRIP_EVERY_MS * 1000 * 1000};
    if (!test_conn_request(conn) || !test_conn_puts(conn, chunked))
        return;
    for (int i = 0; i < DRIPS; i++) {
        nanosleep(&pause, NULL);
        test_conn_puts(conn, "1\r\n.\r\n");
    }
    test_conn_puts(conn, "0\r\n\r\n");
}

static void a_slow_stream_is_not_a_silent_one(void **state)
{
    struct reader reader = {0};
    CR_CLEANUP(test_server) struct test_server *server = server_of(serve_drips, NULL);
    open_stream(&reader, *state, server, DRIP_IDLE_MS);
    run(*state);
    assert_ended_well(&reader);
    assert_int_equal(reader.text.len, DRIPS);
    cr_buf_dispose(&reader.text);
}

static void a_refused_status_ends_the_stream(void **state)
{
    struct reader reader = {.refuse_status = true};
    CR_CLEANUP(test_server)
    struct test_server *server = server_of(serve_and_wait, "HTTP/1.1 410 Gone\r\nContent-Length: 9\r\n\r\nhalf");
    open_stream(&reader, *state, server, PATIENCE_MS);
    run(*state);
    assert_ended(&reader, CR_ERR_CANCELLED, "refused by its receiver");
    assert_int_equal(reader.status, 410);
    assert_int_equal(reader.cuts, 0);
    assert_true(test_server_wait_ended(server, 1, NULL));
}

static void refused_data_ends_the_stream(void **state)
{
    struct reader reader = {.refuse_after = 2};
    CR_CLEANUP(test_server)
    struct test_server *server = server_of(serve_and_wait, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    open_stream(&reader, *state, server, PATIENCE_MS);
    run(*state);
    assert_ended(&reader, CR_ERR_CANCELLED, "refused by its receiver");
    assert_true(test_server_wait_ended(server, 1, NULL));
    cr_buf_dispose(&reader.text);
}

static void a_stream_may_cancel_itself(void **state)
{
    struct reader in_status = {0};
    in_status.cancel_on_status = &in_status;
    struct reader in_data = {0};
    in_data.cancel_on_data = &in_data;
    CR_CLEANUP(test_server)
    struct test_server *server = server_of(serve_and_wait, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    open_stream(&in_status, *state, server, PATIENCE_MS);
    open_stream(&in_data, *state, server, PATIENCE_MS);
    run(*state);
    assert_ended(&in_status, CR_ERR_CANCELLED, "cancelled");
    assert_int_equal(in_status.cuts, 0);
    assert_ended(&in_data, CR_ERR_CANCELLED, "cancelled");
    assert_int_equal(in_data.cuts, 1);
    cr_buf_dispose(&in_data.text);
}

/* Both have bytes to hand over in the same moment: whichever comes first ends the other. */
static void a_stream_may_cancel_another(void **state)
{
    struct reader a = {0};
    struct reader b = {.cancel_on_data = &a, .refuse_after = 1};
    a.cancel_on_data = &b;
    a.refuse_after = 1;
    CR_CLEANUP(test_server)
    struct test_server *server = server_of(serve_and_wait, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    open_stream(&a, *state, server, PATIENCE_MS);
    open_stream(&b, *state, server, PATIENCE_MS);
    run(*state);
    assert_int_equal(a.ends, 1);
    assert_int_equal(b.ends, 1);
    assert_int_equal(a.cuts + b.cuts, 1);
    cr_buf_dispose(&a.text);
    cr_buf_dispose(&b.text);
}

static void a_stream_may_be_cancelled_before_it_begins(void **state)
{
    struct reader reader = {0};
    CR_CLEANUP(test_server) struct test_server *server = server_of(serve_and_close, "");
    open_stream(&reader, *state, server, PATIENCE_MS);
    struct cr_http_stream *stream = cr_steal(&reader.stream);
    cr_http_stream_cancel(stream);
    assert_ended(&reader, CR_ERR_CANCELLED, "cancelled");
    run(*state);
    assert_int_equal(test_server_accepted(server), 0);
}

static void a_stream_may_start_another_when_it_ends(void **state)
{
    struct reader reader = {.restart_on_end = true};
    CR_CLEANUP(test_server)
    struct test_server *server = server_of(serve_and_close, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    cr_autofree char *url = test_server_url(server, "/");
    const struct cr_http_request request = {.method = "GET", .url = url};
    reader.fixture = *state;
    reader.request = &request;
    start(&reader);
    run(*state);
    assert_ended_well(&reader);
    assert_string_equal(cr_buf_text(&reader.text), "ok");
    assert_int_equal(test_server_accepted(server), 2);
    cr_buf_dispose(&reader.text);
}

static void what_cannot_be_sent_ends_in_on_end(void **state)
{
    struct reader reader = {.fixture = *state};
    const struct cr_http_request request = {.method = "GET", .url = "gopher://x"};
    reader.request = &request;
    start(&reader);
    assert_int_equal(reader.ends, 0);
    run(*state);
    assert_ended(&reader, CR_ERR_INVALID, "neither an https nor an http URL");
    assert_int_equal(reader.statuses, 0);
}

static void a_stream_has_no_cap_unless_asked(void **state)
{
    static char body[300 * 1024 + 64];
    int head = snprintf(body, sizeof body, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", 300 * 1024);
    memset(body + head, 'x', 300 * 1024);
    CR_CLEANUP(test_server) struct test_server *server = server_of(serve_and_close, body);
    cr_autofree char *url = test_server_url(server, "/");
    const struct cr_http_request capped = {.method = "GET", .url = url, .max_body = 100 * 1024};
    struct reader with = {.fixture = *state, .request = &capped};
    struct reader without = {0};
    start(&with);
    open_stream(&without, *state, server, 0);
    run(*state);
    assert_ended(&with, CR_ERR_INVALID, "longer than the 102400 bytes");
    assert_true(with.text.len <= 100 * 1024);
    assert_ended_well(&without);
    assert_int_equal(without.text.len, 300 * 1024);
    cr_buf_dispose(&with.text);
    cr_buf_dispose(&without.text);
}

static void a_stream_may_have_a_time_out(void **state)
{
    CR_CLEANUP(test_server) struct test_server *server = server_of(serve_drips, NULL);
    cr_autofree char *url = test_server_url(server, "/");
    const struct cr_http_request request = {.method = "GET", .url = url, .timeout_ms = DRIP_EVERY_MS * 3};
    struct reader reader = {.fixture = *state, .request = &request, .idle_ms = PATIENCE_MS};
    start(&reader);
    run(*state);
    assert_ended(&reader, CR_ERR_TRANSIENT, "no answer within 150 ms");
    cr_buf_dispose(&reader.text);
}

/* --- what an answer may be --- */

enum { MOST_AT_ONCE = 16 };

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
    int status;        /* 0: none is told */
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
static void a_refusal_whose_body_is_cut_off_is_still_one(void **state)
{
    static const struct raw_answer answers[] = {
        {"in a body of known length", "HTTP/1.1 401 No\r\nContent-Length: 10\r\n\r\nabc", 401, "abc", NULL},
        {"between chunks", "HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", 403, "abc", NULL},
        {"before its body", "HTTP/1.1 410 Gone\r\nContent-Length: 10\r\n\r\n", 410, "", NULL},
        {"a server's own error", "HTTP/1.1 503 Later\r\nContent-Length: 10\r\n\r\nabc", 503, "abc", NULL},
        {"the least", "HTTP/1.1 400 No\r\nContent-Length: 10\r\n\r\nabc", 400, "abc", NULL},
        {"no refusal", "HTTP/1.1 399 Odd\r\nContent-Length: 10\r\n\r\nabc", 399, "abc", CUT_OFF},
        {"not cut off but broken", "HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 403, "", "chunk"},
    };
    assert_all_read_as(*state, answers, cr_array_len(answers));
}

/* The libraries for br and zstd are not linked (cmake/CurlArchive.cmake), and libcurl says so before we do. */
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
static void a_header_without_end_is_told_in_words(void **state)
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

/* --- who is trusted, and as whom we speak --- */

/* "<SNI>|<client's CN>|<Host>" of each request. */
static void serve_who(struct test_conn *conn, void *arg)
{
    (void)arg;
    while (test_conn_request(conn)) {
        const char *host = strcasestr(conn->head, "\r\nHost: ");
        cr_autofree char *text = cr_asprintf("%s|%s|%.*s", cr_or_empty(conn->server_name), cr_or_empty(conn->client_cn),
                                             host ? (int)strcspn(host + 8, "\r") : 0, host ? host + 8 : "");
        test_conn_answer(conn, 200, "", text);
    }
}

static struct test_server *server_with(const struct test_cert *cert, const struct test_cert *client_ca)
{
    return test_server_new(&(struct test_server_options){.cert = cert, .client_ca = client_ca, .serve = serve_who});
}

static struct cr_http_tls credentials(const struct papers *p, const struct test_cert *client)
{
    return (struct cr_http_tls){.ca_pem = p->ca->cert_pem, .cert_pem = client->cert_pem, .key_pem = client->key_pem};
}

struct tls_case {
    const char *rule;
    const struct test_cert *cert;      /* the server's */
    const struct test_cert *client_ca; /* NULL: it asks for no client certificate */
    struct cr_http_tls tls;
    const char *sees;        /* what the server sees begins so; NULL: the stream fails */
    enum cr_error_kind kind; /* then */
    const char *words;
};

static void assert_tls_case(const struct reader *reader, const struct tls_case *expected)
{
    if (reader->failed != (expected->sees == NULL))
        fail_msg("%s: %s", expected->rule, reader->failed ? reader->err.text : "was accepted");
    if (!reader->failed && !cr_starts_with(cr_buf_text(&reader->text), expected->sees))
        fail_msg("%s: the server saw %s", expected->rule, cr_buf_text(&reader->text));
    if (reader->failed && (reader->err.kind != expected->kind || !strstr(reader->err.text, expected->words)))
        fail_msg("%s: %s: %s", expected->rule, cr_error_kind_name(reader->err.kind), reader->err.text);
    assert_true(!reader->failed || reader->statuses == 0);
}

/* Each by a client and a server of its own, all at once. */
static void assert_tls_cases(struct fixture *f, const struct tls_case *cases, size_t len)
{
    struct reader readers[MOST_AT_ONCE] = {0};
    struct test_server *servers[MOST_AT_ONCE];
    assert_in_range(len, 1, MOST_AT_ONCE);
    for (size_t i = 0; i < len; i++) {
        servers[i] = server_with(cases[i].cert, cases[i].client_ca);
        readers[i].client = cr_http_client_new(f->loop, &cases[i].tls, NULL);
        open_stream(&readers[i], f, servers[i], PATIENCE_MS);
    }
    run(f);
    for (size_t i = 0; i < len; i++) {
        cr_http_client_free(readers[i].client);
        test_server_free(servers[i]);
        assert_tls_case(&readers[i], &cases[i]);
        cr_buf_dispose(&readers[i].text);
    }
}

static void the_server_must_be_of_our_ca_and_of_its_name(void **state)
{
    static const char refused[] = "the server's certificate is not trusted: ";
    const struct papers *p = ((struct fixture *)*state)->papers;
    const char *ca = p->ca->cert_pem;
    const char *other_ca = p->other_ca->cert_pem;
    CR_CLEANUP(test_cert)
    struct test_cert *expired =
        test_cert_new(&(struct test_cert_spec){.ips = {"127.0.0.1"}, .issuer = p->ca, .from_s = -7200, .until_s = -60});
    const struct cr_http_tls by_address = {.ca_pem = ca};
    const struct cr_http_tls by_name = {.ca_pem = ca, .server_name = "api.internal"};
    const struct cr_http_tls by_name_of_other = {.ca_pem = other_ca, .server_name = "api.internal"};
    const struct tls_case cases[] = {
        {"its CA, its address", p->server, NULL, by_address, "||127.0.0.1:", 0, NULL},
        {"the name given", p->by_name, NULL, by_name, "api.internal||127.0.0.1:", 0, NULL},
        {"no verification", p->by_name, NULL, {.ca_pem = other_ca, .insecure = true}, "||127.0.0.1:", 0, NULL},
        {"another CA", p->server, NULL, {.ca_pem = other_ca}, NULL, CR_ERR_TRANSIENT, refused},
        {"the system's CAs", p->server, NULL, {0}, NULL, CR_ERR_TRANSIENT, refused},
        {"another name", p->by_name, NULL, by_address, NULL, CR_ERR_TRANSIENT, refused},
        {"another name, in words", p->by_name, NULL, by_address, NULL, CR_ERR_TRANSIENT, "'127.0.0.1'"},
        {"the name given, of another CA", p->by_name, NULL, by_name_of_other, NULL, CR_ERR_TRANSIENT, refused},
        {"the name given, which is not its", p->server, NULL, by_name, NULL, CR_ERR_TRANSIENT, "'api.internal'"},
        {"expired", expired, NULL, by_address, NULL, CR_ERR_TRANSIENT, refused},
        {"expired, in words", expired, NULL, by_address, NULL, CR_ERR_TRANSIENT, "expired"},
    };
    assert_tls_cases(*state, cases, cr_array_len(cases));
}

static void we_speak_as_our_certificate_says(void **state)
{
    const struct papers *p = ((struct fixture *)*state)->papers;
    const char *ca = p->ca->cert_pem;
    const struct cr_http_tls ours = credentials(p, p->client_a);
    struct cr_http_tls by_name = ours;
    by_name.server_name = "api.internal";
    const struct tls_case cases[] = {
        {"one that is asked for", p->server, p->ca, ours, "|client a|", 0, NULL},
        {"to a name that is given", p->by_name, p->ca, by_name, "api.internal|client a|127.0.0.1:", 0, NULL},
        {"one that nobody asks for", p->server, NULL, ours, "||", 0, NULL},
        /* Its words may be the alert, or be overtaken by the reset. */
        {"none where one is asked for", p->server, p->ca, {.ca_pem = ca}, NULL, CR_ERR_TRANSIENT, "GET https://127."},
    };
    assert_tls_cases(*state, cases, cr_array_len(cases));
}

static void credentials_that_cannot_work_are_invalid(void **state)
{
    const struct papers *p = ((struct fixture *)*state)->papers;
    const struct test_cert *server = p->server;
    const char *cert = p->client_a->cert_pem;
    const char *key = p->client_a->key_pem;
    const char *other_key = p->client_b->key_pem;
    const struct tls_case cases[] = {
        {"a key of another certificate",
         server,
         NULL,
         {.insecure = true, .cert_pem = cert, .key_pem = other_key},
         NULL,
         CR_ERR_INVALID,
         "the client certificate or its key cannot be used: "},
        {"no key", server, NULL, {.cert_pem = cert}, NULL, CR_ERR_INVALID, "only of use together"},
        {"no certificate", server, NULL, {.key_pem = key}, NULL, CR_ERR_INVALID, "only of use together"},
        {"no CA", server, NULL, {.ca_pem = "x"}, NULL, CR_ERR_INVALID, "the CA bundle cannot be used: "},
        {"no name", server, NULL, {.server_name = "a b/c"}, NULL, CR_ERR_INVALID, "not a server name for TLS"},
    };
    assert_tls_cases(*state, cases, cr_array_len(cases));
}

/* Of a server that never says anything: also not in a TLS handshake, since it waits for a request's end. A handshake
 * may bring HTTP/2, to be shared; an answer without TLS brings nothing. */
static void a_stream_waits_for_the_handshake_of_another_but_not_for_its_answer(void **state)
{
    static const struct {
        const char *scheme;
        unsigned connections;
        const char *first;
        const char *second;
    } cases[] = {
        {"https", 1, "silent for 600 ms (in the TLS handshake)", "silent for 300 ms (connecting)"},
        {"http", 2, "silent for 600 ms (waiting for the response)", "silent for 300 ms (waiting for the response)"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(test_server)
        struct test_server *server = test_server_new(&(struct test_server_options){.serve = test_serve_silence});
        cr_autofree char *url = cr_asprintf("%s://127.0.0.1:%d/", cases[i].scheme, test_server_port(server));
        const struct cr_http_request request = {.method = "GET", .url = url};
        struct reader first = {.fixture = *state, .request = &request, .idle_ms = 600};
        struct reader second = {.fixture = *state, .request = &request, .idle_ms = 300};
        start(&first);
        start(&second);
        run(*state);
        assert_ended(&first, CR_ERR_TRANSIENT, cases[i].first);
        assert_ended(&second, CR_ERR_TRANSIENT, cases[i].second);
        assert_int_equal(test_server_accepted(server), cases[i].connections);
        tear_down(state); /* a loop runs once */
        set_up(state);
    }
}

/* One after the other. */
static void read_in_turn(struct fixture *f, struct test_server *server, struct reader *readers, size_t len)
{
    cr_autofree char *url = test_server_url(server, "/watch");
    const struct cr_http_request request = {.method = "GET", .url = url};
    for (size_t i = 0; i < len; i++) {
        readers[i].fixture = f;
        readers[i].request = &request;
        readers[i].idle_ms = PATIENCE_MS;
        readers[i].start_on_end = i + 1 < len ? &readers[i + 1] : NULL;
    }
    start(&readers[0]);
    run(f);
}

static void new_credentials_open_a_new_connection_and_the_same_do_not(void **state)
{
    const struct papers *p = ((struct fixture *)*state)->papers;
    const struct cr_http_tls a = credentials(p, p->client_a);
    const struct cr_http_tls b = credentials(p, p->client_b);
    struct reader readers[] = {{.renew = &a}, {.renew = &a}, {0}, {.renew = &b}, {.renew = &b}};
    static const char *const seen[] = {"|client a|", "|client a|", "|client a|", "|client b|", "|client b|"};
    CR_CLEANUP(test_server) struct test_server *server = server_with(p->server, p->ca);
    read_in_turn(*state, server, readers, cr_array_len(readers));
    for (size_t i = 0; i < cr_array_len(readers); i++) {
        assert_ended_well(&readers[i]);
        assert_true(cr_starts_with(cr_buf_text(&readers[i].text), seen[i]));
        cr_buf_dispose(&readers[i].text);
    }
    assert_int_equal(test_server_accepted(server), 2);
    assert_true(test_server_wait_ended(server, 1, NULL)); /* the old one is closed, though the client is there */
}

static void a_ca_that_is_withdrawn_is_not_trusted_by_an_old_connection(void **state)
{
    const struct papers *p = ((struct fixture *)*state)->papers;
    const struct cr_http_tls right = {.ca_pem = p->ca->cert_pem};
    const struct cr_http_tls wrong = {.ca_pem = p->other_ca->cert_pem};
    struct reader readers[] = {{.renew = &right}, {.renew = &wrong}, {.renew = &right}};
    CR_CLEANUP(test_server) struct test_server *server = server_with(p->server, NULL);
    read_in_turn(*state, server, readers, cr_array_len(readers));
    assert_ended_well(&readers[0]);
    assert_ended(&readers[1], CR_ERR_TRANSIENT, "is not trusted");
    assert_ended_well(&readers[2]);
    cr_buf_dispose(&readers[0].text);
    cr_buf_dispose(&readers[2].text);
}

/* The first connection's answer ends once arg is posted. */
static void serve_behind_gate(struct test_conn *conn, void *arg)
{
    if (!test_conn_request(conn))
        return;
    cr_autofree char *chunk = cr_asprintf("%zx\r\n%s\r\n", strlen(conn->client_cn), conn->client_cn);
    test_conn_puts(conn, chunked);
    test_conn_puts(conn, chunk);
    if (conn->number == 1)
        sem_wait(arg);
    test_conn_puts(conn, "5\r\n, end\r\n0\r\n\r\n");
}

static struct test_server *server_behind_gate(const struct papers *p, sem_t *gate)
{
    return test_server_new(
        &(struct test_server_options){.cert = p->server, .client_ca = p->ca, .serve = serve_behind_gate, .arg = gate});
}

static void a_stream_under_way_goes_on_while_credentials_change(void **state)
{
    const struct papers *p = ((struct fixture *)*state)->papers;
    const struct cr_http_tls a = credentials(p, p->client_a);
    const struct cr_http_tls b = credentials(p, p->client_b);
    sem_t gate;
    sem_init(&gate, 0, 0);
    CR_CLEANUP(test_server) struct test_server *server = server_behind_gate(p, &gate);
    cr_autofree char *url = test_server_url(server, "/");
    const struct cr_http_request request = {.method = "GET", .url = url};
    struct reader after = {.fixture = *state, .request = &request, .renew = &b, .open_on_end = &gate};
    struct reader before = {.fixture = *state, .request = &request, .renew = &a, .start_on_data = &after};
    start(&before);
    run(*state);
    assert_ended_well(&before);
    assert_string_equal(cr_buf_text(&before.text), "client a, end");
    assert_ended_well(&after);
    assert_string_equal(cr_buf_text(&after.text), "client b, end");
    cr_buf_dispose(&before.text);
    cr_buf_dispose(&after.text);
    sem_destroy(&gate);
}

/* Once the handshake brought no HTTP/2 the second opens its own, and is over while the first still waits. Where it is
 * shared: test_shared_connection.py. */
static void streams_over_tls_without_http_2_do_not_wait_for_each_other(void **state)
{
    const struct papers *p = ((struct fixture *)*state)->papers;
    const struct cr_http_tls a = credentials(p, p->client_a);
    sem_t gate;
    sem_init(&gate, 0, 0);
    CR_CLEANUP(test_server) struct test_server *server = server_behind_gate(p, &gate);
    struct reader readers[] = {{.renew = &a, .open_on_end = &gate}, {.open_on_end = &gate}};
    for (size_t i = 0; i < cr_array_len(readers); i++)
        open_stream(&readers[i], *state, server, PATIENCE_MS);
    run(*state);
    for (size_t i = 0; i < cr_array_len(readers); i++) {
        assert_ended_well(&readers[i]);
        assert_string_equal(cr_buf_text(&readers[i].text), "client a, end");
        cr_buf_dispose(&readers[i].text);
    }
    assert_int_equal(test_server_accepted(server), 2);
    sem_destroy(&gate);
}

/* --- the end of a client --- */

static void free_client(void *arg)
{
    struct fixture *f = arg;
    cr_http_client_free(f->client);
    f->client = NULL;
}

static void freeing_the_client_ends_its_streams(void **state)
{
    struct fixture *f = *state;
    struct reader readers[4] = {0};
    CR_CLEANUP(test_server)
    struct test_server *server = server_of(serve_and_wait, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    for (size_t i = 0; i < cr_array_len(readers); i++)
        open_stream(&readers[i], f, server, PATIENCE_MS);
    cr_loop_post(f->loop, free_client, f);
    run(f);
    for (size_t i = 0; i < cr_array_len(readers); i++) {
        assert_ended(&readers[i], CR_ERR_CANCELLED, "shutting down");
        cr_buf_dispose(&readers[i].text);
    }
}

static bool kill_client(void *arg, const char *data, size_t len)
{
    (void)data;
    (void)len;
    struct reader *reader = arg;
    free_client(reader->fixture);
    return true;
}

static void a_handler_may_free_the_client(void **state)
{
    struct fixture *f = *state;
    struct reader killer = {.fixture = f};
    struct reader other = {0};
    CR_CLEANUP(test_server)
    struct test_server *server = server_of(serve_and_wait, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    cr_autofree char *url = test_server_url(server, "/");
    const struct cr_http_request request = {.method = "GET", .url = url};
    const struct cr_http_stream_handler handler = {on_status, kill_client, on_end, &killer};
    f->live++;
    killer.stream = cr_http_stream_start(f->client, &request, &handler, PATIENCE_MS);
    open_stream(&other, f, server, PATIENCE_MS);
    run(f);
    assert_ended(&killer, CR_ERR_CANCELLED, "shutting down");
    assert_ended(&other, CR_ERR_CANCELLED, "shutting down");
    cr_buf_dispose(&other.text);
}

static void streams_end_when_the_client_goes_after_the_loop(void **state)
{
    struct fixture *f = *state;
    struct reader running = {0};
    struct reader queued = {0};
    CR_CLEANUP(test_server)
    struct test_server *server = server_of(serve_and_wait, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    open_stream(&running, f, server, PATIENCE_MS);
    cr_loop_stop(f->loop);
    run(f);
    open_stream(&queued, f, server, PATIENCE_MS);
    running.stream = queued.stream = NULL; /* on_end is not in the loop's thread */
    free_client(f);
    assert_ended(&running, CR_ERR_CANCELLED, "shutting down");
    assert_ended(&queued, CR_ERR_CANCELLED, "shutting down");
    cr_buf_dispose(&running.text);
}

/* --- many at once --- */

enum { STARTERS = 4, STARTS = 60 };

/* Of the loop's thread. */
struct crowd {
    struct fixture *fixture;
    unsigned ended;
    unsigned odd; /* ended with anything but Cancelled or what the network does */
};

struct starter {
    pthread_t thread;
    struct crowd *crowd;
    const char *url;
};

static bool take_status(void *arg, int status, int retry_after_ms)
{
    (void)arg;
    (void)retry_after_ms;
    return status == 200;
}

static bool take_data(void *arg, const char *data, size_t len)
{
    (void)arg;
    return data && len;
}

static void count_end(void *arg, const struct cr_error *err)
{
    struct crowd *crowd = arg;
    crowd->ended++;
    crowd->odd += err && err->kind != CR_ERR_CANCELLED && err->kind != CR_ERR_TRANSIENT;
    if (crowd->ended == STARTERS * STARTS)
        cr_loop_stop(crowd->fixture->loop);
    if (crowd->ended == STARTS) /* in the midst of it */
        cr_http_client_cancel(crowd->fixture->client);
}

static void *start_many(void *arg)
{
    const struct starter *starter = arg;
    const struct cr_http_stream_handler handler = {take_status, take_data, count_end, starter->crowd};
    const struct cr_http_request request = {.method = "GET", .url = starter->url, .bearer = "token", .secret = true};
    for (int i = 0; i < STARTS; i++)
        cr_http_stream_start(starter->crowd->fixture->client, &request, &handler, PATIENCE_MS);
    return NULL;
}

static void each_stream_ends_once_though_threads_start_them_during_the_end(void **state)
{
    struct crowd crowd = {.fixture = *state};
    CR_CLEANUP(test_server)
    struct test_server *server = server_of(serve_and_close, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    cr_autofree char *url = test_server_url(server, "/");
    struct starter starters[STARTERS];
    for (size_t i = 0; i < STARTERS; i++) {
        starters[i] = (struct starter){.crowd = &crowd, .url = url};
        assert_int_equal(pthread_create(&starters[i].thread, NULL, start_many, &starters[i]), 0);
    }
    run(crowd.fixture);
    for (size_t i = 0; i < STARTERS; i++)
        pthread_join(starters[i].thread, NULL);
    assert_int_equal(crowd.ended, STARTERS * STARTS);
    assert_int_equal(crowd.odd, 0);
}

enum { PLAYERS = 60, GAMES = 400 };

/* Streams that end themselves and each other at random, and begin again. */
struct game {
    struct fixture *fixture;
    const char *url;
    unsigned random;
    unsigned started;
    unsigned ended;
    struct player {
        struct game *game;
        struct cr_http_stream *stream;
    } players[PLAYERS];
};

static unsigned roll(struct game *game, unsigned sides)
{
    game->random = game->random * 1103515245u + 12345u;
    return (game->random >> 16) % sides;
}

static bool play(struct player *player)
{
    struct game *game = player->game;
    if (roll(game, 8) == 0)
        cr_http_stream_cancel(game->players[roll(game, PLAYERS)].stream);
    return roll(game, 30) != 0;
}

static bool play_status(void *arg, int status, int retry_after_ms)
{
    (void)status;
    (void)retry_after_ms;
    return play(arg);
}

static bool play_data(void *arg, const char *data, size_t len)
{
    (void)data;
    (void)len;
    return play(arg);
}

static void begin_game(struct player *player);

static void play_end(void *arg, const struct cr_error *err)
{
    (void)err;
    struct player *player = arg;
    struct game *game = player->game;
    player->stream = NULL;
    game->ended++;
    if (game->started < GAMES)
        begin_game(player);
    else if (game->ended == game->started)
        cr_loop_stop(game->fixture->loop);
}

static void begin_game(struct player *player)
{
    struct game *game = player->game;
    const struct cr_http_stream_handler handler = {play_status, play_data, play_end, player};
    const struct cr_http_request request = {.method = "GET", .url = game->url};
    game->started++;
    player->stream = cr_http_stream_start(game->fixture->client, &request, &handler, PATIENCE_MS);
}

static void streams_may_end_each_other_in_any_order(void **state)
{
    CR_CLEANUP(test_server)
    struct test_server *server = server_of(serve_odd_cuts, "some text that comes in several cuts of odd sizes");
    cr_autofree char *url = test_server_url(server, "/");
    static struct game game;
    game = (struct game){.fixture = *state, .url = url, .random = 7};
    for (size_t i = 0; i < PLAYERS; i++)
        game.players[i].game = &game;
    for (size_t i = 0; i < PLAYERS; i++)
        begin_game(&game.players[i]);
    run(game.fixture);
    assert_int_equal(game.started, GAMES);
    assert_int_equal(game.ended, GAMES);
}

#define with_loop(test)   cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define with_papers(test) cmocka_unit_test_setup_teardown(test, set_up_papers, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_loop(the_body_is_the_same_in_any_cut),
        with_loop(an_error_status_brings_its_body),
        with_loop(an_informational_status_is_not_the_status),
        with_loop(an_empty_body_ends_well),
        with_loop(a_stream_cut_off_hands_over_what_came_and_is_transient),
        with_loop(silence_ends_a_stream),
        with_loop(a_slow_stream_is_not_a_silent_one),
        with_loop(a_refused_status_ends_the_stream),
        with_loop(refused_data_ends_the_stream),
        with_loop(a_stream_may_cancel_itself),
        with_loop(a_stream_may_cancel_another),
        with_loop(a_stream_may_be_cancelled_before_it_begins),
        with_loop(a_stream_may_start_another_when_it_ends),
        with_loop(what_cannot_be_sent_ends_in_on_end),
        with_loop(a_stream_has_no_cap_unless_asked),
        with_loop(a_stream_may_have_a_time_out),
        with_loop(an_answer_that_is_none_or_is_cut_off_is_transient),
        with_loop(a_refusal_whose_body_is_cut_off_is_still_one),
        with_loop(a_body_that_is_packed_is_refused_in_words),
        with_loop(a_body_that_is_not_packed_comes_and_so_does_a_refusal),
        with_loop(a_header_without_end_is_told_in_words),
        with_loop(retry_after_is_read_and_capped),
        with_papers(the_server_must_be_of_our_ca_and_of_its_name),
        with_papers(we_speak_as_our_certificate_says),
        with_papers(credentials_that_cannot_work_are_invalid),
        with_loop(a_stream_waits_for_the_handshake_of_another_but_not_for_its_answer),
        with_papers(new_credentials_open_a_new_connection_and_the_same_do_not),
        with_papers(a_ca_that_is_withdrawn_is_not_trusted_by_an_old_connection),
        with_papers(a_stream_under_way_goes_on_while_credentials_change),
        with_papers(streams_over_tls_without_http_2_do_not_wait_for_each_other),
        with_loop(freeing_the_client_ends_its_streams),
        with_loop(a_handler_may_free_the_client),
        with_loop(streams_end_when_the_client_goes_after_the_loop),
        with_loop(each_stream_ends_once_though_threads_start_them_during_the_end),
        with_loop(streams_may_end_each_other_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
