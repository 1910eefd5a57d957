#include "drain/drain_log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buffer.h"
#include "base/log.h"
#include "base/strings.h"

enum { START = 5000000, LINE_MAX_LEN = 1024 };

/* --- what it says, line by line --- */

/* Of standard error, only while something is said: else cmocka's own words would be lost. */
struct capture {
    int saved;
    FILE *lines; /* unlinked */
};

static int set_up(void **state)
{
    static struct capture capture;
    capture = (struct capture){.saved = dup(STDERR_FILENO), .lines = tmpfile()};
    cr_log_set_level(CR_LOG_INFO);
    *state = &capture;
    return capture.saved >= 0 && capture.lines ? 0 : -1;
}

static int tear_down(void **state)
{
    struct capture *capture = *state;
    close(capture->saved);
    fclose(capture->lines);
    return 0;
}

static void listen_to(struct capture *capture)
{
    assert_int_equal(ftruncate(fileno(capture->lines), 0), 0);
    rewind(capture->lines);
    assert_true(dup2(fileno(capture->lines), STDERR_FILENO) >= 0);
}

/* Appends what was said, without the times. */
static void end_listening(struct capture *capture, struct cr_buf *out)
{
    char line[LINE_MAX_LEN];
    assert_true(dup2(capture->saved, STDERR_FILENO) >= 0);
    rewind(capture->lines);
    while (fgets(line, sizeof line, capture->lines)) {
        const char *level = strstr(line, "\"level\"");
        assert_non_null(level);
        cr_buf_puts(out, level);
    }
}

/* The text that a call says, in a buffer of the caller. */
#define said(capture, buf, call)                                                                                       \
    (cr_buf_reset(buf), listen_to(capture), (call), end_listening(capture, buf), cr_buf_text(buf))

static const struct cr_drain_strategy strategy = {.name = "envoy", .begins = "fails its health check"};

static const struct cr_drain_options options = {
    .strategy = &strategy,
    .target = {.address = "/admin/admin.sock"},
    .rules = {.delay_ms = 5000, .min_duration_ms = 10000, .timeout_ms = 90000, .interval_ms = 500, .min_open = 2}};

static struct cr_drain_log started(struct capture *capture)
{
    struct cr_drain_log log;
    CR_CLEANUP(cr_buf) struct cr_buf buf = CR_BUF_INIT(0);
    assert_true(*said(capture, &buf, cr_drain_log_start(&log, &options, START)));
    return log;
}

static void the_start_says_all_rules(void **state)
{
    struct cr_drain_log log;
    CR_CLEANUP(cr_buf) struct cr_buf buf = CR_BUF_INIT(0);
    assert_string_equal(said(*state, &buf, cr_drain_log_start(&log, &options, START)),
                        "\"level\":\"info\",\"msg\":\"the drain starts\",\"proxy\":\"envoy\",\"address\":"
                        "\"/admin/admin.sock\",\"delay\":\"5s\",\"minDuration\":\"10s\",\"timeout\":\"1m30s\","
                        "\"interval\":\"500ms\",\"minOpenConnections\":2}\n");
    assert_string_equal(said(*state, &buf, cr_drain_log_begun(&log, &strategy, START + 5050)),
                        "\"level\":\"info\",\"msg\":\"the proxy is draining\",\"begins\":\"fails its health check\","
                        "\"seconds\":5.050}\n");
}

/* --- numbers --- */

static void a_number_is_said_when_it_changes_and_now_and_then(void **state)
{
    static const struct {
        int64_t at;
        uint64_t open;
        bool is_said;
    } looks[] = {
        {100, 5, true},    {600, 5, false},  {900, 4, false},  {1099, 3, false},  {1100, 3, true},
        {2100, 3, false},  {2200, 2, true},  {3300, 2, false}, {12199, 2, false}, {12200, 2, true},
        {12900, 3, false}, {13200, 3, true}, {23200, 3, true},
    };
    struct cr_drain_log log = started(*state);
    for (size_t i = 0; i < cr_array_len(looks); i++) {
        CR_CLEANUP(cr_buf) struct cr_buf buf = CR_BUF_INIT(0);
        char expected[64];
        const char *lines = said(*state, &buf, cr_drain_log_open(&log, looks[i].open, START + looks[i].at));
        snprintf(expected, sizeof expected, "\"open\":%d,\"seconds\":%d.%03d}\n", (int)looks[i].open,
                 (int)(looks[i].at / 1000), (int)(looks[i].at % 1000));
        if (looks[i].is_said ? !strstr(lines, expected) : *lines != '\0')
            fail_msg("after %d ms: '%s'", (int)looks[i].at, lines);
    }
}

/* --- errors --- */

struct trouble {
    int64_t at;
    const char *text; /* NULL: a look that gives the number 7 */
    int times;        /* that are said; 0: nothing is */
};

static void play(struct capture *capture, const struct trouble *troubles, size_t len)
{
    struct cr_drain_log log = started(capture);
    for (size_t i = 0; i < len; i++) {
        CR_CLEANUP(cr_buf) struct cr_buf buf = CR_BUF_INIT(0);
        struct cr_error err = {0};
        char expected[128];
        const struct trouble *t = &troubles[i];
        cr_error_set(&err, CR_ERR_TRANSIENT, "%s", cr_or_empty(t->text));
        const char *lines = t->text ? said(capture, &buf, cr_drain_log_error(&log, "it fails", &err, START + t->at))
                                    : said(capture, &buf, cr_drain_log_open(&log, 7, START + t->at));
        if (t->text)
            snprintf(expected, sizeof expected,
                     "\"level\":\"warn\",\"msg\":\"it fails\",\"error\":\"%s\",\"times\":%d,", t->text, t->times);
        else
            strcpy(expected, "\"open\":7");
        if (t->times ? !strstr(lines, expected) : *lines != '\0')
            fail_msg("after %d ms: '%s'", (int)t->at, lines);
    }
}

static void a_new_error_is_said_at_once_and_an_old_one_now_and_then(void **state)
{
    static const struct trouble troubles[] = {
        {1000, "a", 1},  {2000, "a", 0},  {3000, "b", 1},  {4000, "a", 0},  {5000, "b", 0},
        {10999, "a", 0}, {11000, "a", 4}, {12000, "b", 0}, {13000, "b", 3}, {14000, "c", 1},
        {20999, "a", 0}, {90000, "a", 2}, {90001, "a", 0},
    };
    play(*state, troubles, cr_array_len(troubles));
}

static void more_errors_than_are_known_cost_no_memory(void **state)
{
    static const struct trouble troubles[] = {
        {1000, "a", 1}, {1001, "b", 1}, {1002, "c", 1}, {1003, "d", 1}, {1004, "d", 0},
        {1005, "a", 0}, {1006, "e", 1}, /* in the place of a, that was said longest ago */
        {1007, "b", 0}, {1008, "a", 1}, {1009, "c", 0}, {1010, "d", 0}, {1011, "e", 0},
    };
    play(*state, troubles, cr_array_len(troubles));
}

static void a_number_after_an_error_is_news(void **state)
{
    static const struct trouble troubles[] = {
        {1000, NULL, 1}, {3000, NULL, 0}, {4000, "a", 1},  {4100, NULL, 1},
        {4200, "a", 0},  {4300, NULL, 0}, {5100, NULL, 1},
    };
    play(*state, troubles, cr_array_len(troubles));
}

/* --- the end --- */

static void the_end_says_how(void **state)
{
    static const struct {
        struct cr_drain_progress progress;
        const char *line;
    } cases[] = {
        {{.result = CR_DRAIN_RESULT_DRAINED,
          .known = true,
          .open = 2,
          .elapsed_ms = 12345,
          .errors = 3,
          .last_error = {.kind = CR_ERR_TRANSIENT, .text = "refused"}},
         "\"level\":\"info\",\"msg\":\"drained\",\"result\":\"Drained\",\"open\":2,\"seconds\":12.345,\"errors\":3}\n"},
        {{.result = CR_DRAIN_RESULT_TIMED_OUT, .known = true, .open = 18446744073709551615ULL, .elapsed_ms = 60000},
         "\"level\":\"warn\",\"msg\":\"not drained when the time was over: connections are open\",\"result\":"
         "\"TimedOut\",\"open\":18446744073709551615,\"seconds\":60.000,\"errors\":0}\n"},
        {{.result = CR_DRAIN_RESULT_TIMED_OUT,
          .elapsed_ms = 60001,
          .errors = 9,
          .last_error = {.kind = CR_ERR_TRANSIENT, .text = "refused"}},
         "\"level\":\"warn\",\"msg\":\"not drained when the time was over: how many connections are open is not "
         "known\",\"result\":\"TimedOut\",\"open\":null,\"seconds\":60.001,\"errors\":9,\"error\":\"refused\"}\n"},
        {{.result = CR_DRAIN_RESULT_CANCELLED, .elapsed_ms = 5},
         "\"level\":\"warn\",\"msg\":\"the drain is given "
         "up\",\"result\":\"Cancelled\",\"open\":null,\"seconds\":0.005,"
         "\"errors\":0}\n"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_buf) struct cr_buf buf = CR_BUF_INIT(0);
        assert_string_equal(said(*state, &buf, cr_drain_log_end(&cases[i].progress)), cases[i].line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_start_says_all_rules, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_number_is_said_when_it_changes_and_now_and_then, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_new_error_is_said_at_once_and_an_old_one_now_and_then, set_up, tear_down),
        cmocka_unit_test_setup_teardown(more_errors_than_are_known_cost_no_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_number_after_an_error_is_news, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_end_says_how, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
