/* Streams of a client on the loop of the test's own thread, what each brought, and plain servers that they read. */
#ifndef TEST_SUPPORT_STREAMSCENE_H
#define TEST_SUPPORT_STREAMSCENE_H

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "net/http.h"
#include "support/testserver.h"

enum { PATIENCE_MS = 20 * 1000, MOST_AT_ONCE = 16 };

/* The test's thread is the loop's: nothing here needs a lock. */
struct fixture {
    struct cr_loop *loop;
    struct cr_http_client *client;
    struct cr_timer *guard;     /* a stream that never ends fails the test instead of hanging it */
    unsigned live;              /* streams that have not ended */
    struct test_papers *papers; /* of the tests with TLS, which make and free them; NULL: none */
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

static inline void give_up(void *arg)
{
    (void)arg;
    fprintf(stderr, "a stream did not end in time\n");
    abort();
}

static inline int set_up(void **state)
{
    struct fixture *f = cr_new(struct fixture);
    f->loop = cr_loop_new();
    f->client = cr_http_client_new(f->loop, NULL, NULL);
    f->guard = cr_timer_new(f->loop, give_up, NULL);
    cr_timer_arm(f->guard, PATIENCE_MS);
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;
    cr_http_client_free(f->client);
    cr_timer_free(f->guard);
    cr_loop_free(f->loop);
    assert_int_equal(f->live, 0);
    free(f);
    return 0;
}

static inline void start(struct reader *reader);

static inline void cancel_other(const struct reader *other)
{
    if (other && other->stream)
        cr_http_stream_cancel(other->stream);
}

static inline void start_other(struct reader *other)
{
    if (other)
        start(other);
}

static inline bool on_status(void *arg, int status, int retry_after_ms)
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

static inline bool on_data(void *arg, const char *data, size_t len)
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

static inline void on_end(void *arg, const struct cr_error *err)
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

static inline void start(struct reader *reader)
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
static inline void open_stream(struct reader *reader, struct fixture *f, const struct test_server *server, int idle_ms)
{
    cr_autofree char *url = test_server_url(server, "/watch");
    const struct cr_http_request request = {.method = "GET", .url = url};
    reader->fixture = f;
    reader->request = &request;
    reader->idle_ms = idle_ms;
    start(reader);
}

static inline void run(struct fixture *f)
{
    cr_loop_run(f->loop);
}

static inline void assert_ended(const struct reader *reader, enum cr_error_kind kind, const char *words)
{
    assert_int_equal(reader->ends, 1);
    if (!reader->failed)
        fail_msg("expected %s '%s', but it ended well", cr_error_kind_name(kind), words);
    if (reader->err.kind != kind || !strstr(reader->err.text, words))
        fail_msg("expected %s with '%s', got %s: %s", cr_error_kind_name(kind), words,
                 cr_error_kind_name(reader->err.kind), reader->err.text);
}

static inline void assert_ended_well(const struct reader *reader)
{
    assert_int_equal(reader->ends, 1);
    if (reader->failed)
        fail_msg("%s", reader->err.text);
}

#define with_loop(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* --- servers --- */

static const char chunked[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

static inline void serve_and_close(struct test_conn *conn, void *arg)
{
    if (test_conn_request(conn))
        test_conn_puts(conn, arg);
}

static inline struct test_server *server_of(void (*serve)(struct test_conn *, void *), const char *text)
{
    return test_server_new(&(struct test_server_options){.serve = serve, .arg = (void *)(uintptr_t)text});
}

#endif
