#include "net/http.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"
#include "support/streamscene.h"

/* --- servers --- */

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

/* Streams to a server that never says anything: also not in a TLS handshake, since it waits for a request's end. A
 * handshake may bring HTTP/2, to be shared; an answer without TLS brings nothing. */
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
        with_loop(a_stream_waits_for_the_handshake_of_another_but_not_for_its_answer),
        with_loop(freeing_the_client_ends_its_streams),
        with_loop(a_handler_may_free_the_client),
        with_loop(streams_end_when_the_client_goes_after_the_loop),
        with_loop(each_stream_ends_once_though_threads_start_them_during_the_end),
        with_loop(streams_may_end_each_other_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
