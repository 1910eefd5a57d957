#include "drain/drain.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"

enum {
    LATE_MS = 2000, /* that a busy machine may be behind */
    LONG_MS = 60000,
    ATTEMPT_MS = 1000,
    ATTEMPTS = 256, /* that are kept */
    NOTIFIED = 512,
    FAILS = -1, /* in place of a number: the look fails */
    HANGS = -2, /* it takes all of its time, and fails */
    ENDS = -3,  /* the proxy has ended */
};

/* --- a proxy by a table --- */

/* What one attempt was given, and when. */
struct attempt {
    int64_t at_ms;
    int64_t done_ms;
    int64_t deadline_ms;
};

struct notified {
    enum cr_drain_phase phase;
    enum cr_drain_result result;
    bool known;
    uint64_t open;
    uint64_t errors;
};

struct proxy {
    size_t begin_fails; /* so many attempts */
    bool begin_hangs;
    int64_t counts[8]; /* answers, the last of them again and again */
    size_t counts_len;
    int cancel_fd; /* made readable: */
    bool cancels_in_begin, cancels_in_count;
    int64_t stands_still_ms; /* when its number is known, as if it were stopped */

    struct attempt begins[ATTEMPTS], looks[ATTEMPTS];
    size_t begins_len, looks_len;
    struct notified notified[NOTIFIED];
    size_t notified_len;
    bool remembers; /* what begin kept was there in each count */
};

static struct proxy *proxy; /* of the test under way: a strategy has no argument of its own */

static void cancel(int fd)
{
    uint64_t one = 1;
    assert_int_equal(write(fd, &one, sizeof one), sizeof one);
}

/* As a client of a proxy that says nothing. */
static bool hang(const struct cr_drain_attempt *attempt, struct cr_error *err)
{
    struct pollfd given_up = {.fd = attempt->cancel_fd, .events = POLLIN};
    for (int64_t left; (left = attempt->deadline_ms - cr_clock_monotonic_ms()) > 0;)
        if (poll(&given_up, 1, (int)left) > 0)
            return cr_error_set(err, CR_ERR_CANCELLED, "shutting down");
    return cr_error_set(err, CR_ERR_TRANSIENT, "it hangs");
}

static struct attempt *note(struct attempt *list, size_t *len, const struct cr_drain_attempt *attempt)
{
    struct attempt *noted = &list[*len < ATTEMPTS ? (*len)++ : ATTEMPTS - 1];
    *noted = (struct attempt){.at_ms = cr_clock_monotonic_ms(), .deadline_ms = attempt->deadline_ms};
    return noted;
}

static bool prepare(struct cr_drain_target *target, struct cr_error *err)
{
    (void)target;
    (void)err;
    return true;
}

static bool begin(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt, struct cr_error *err)
{
    struct attempt *noted = note(proxy->begins, &proxy->begins_len, attempt);
    bool ok = proxy->begins_len > proxy->begin_fails;
    if (proxy->cancels_in_begin)
        cancel(proxy->cancel_fd);
    if (proxy->begin_hangs)
        ok = hang(attempt, err);
    else if (!ok)
        cr_error_set(err, CR_ERR_TRANSIENT, "begin fails");
    else
        cr_strvec_add(target->memory, "begun");
    noted->done_ms = cr_clock_monotonic_ms();
    return ok;
}

static bool count(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt,
                  struct cr_drain_count *out, struct cr_error *err)
{
    size_t index = proxy->looks_len < proxy->counts_len ? proxy->looks_len : proxy->counts_len - 1;
    int64_t answer = proxy->counts[index];
    struct attempt *noted = note(proxy->looks, &proxy->looks_len, attempt);
    bool ok = answer != HANGS && answer != FAILS;
    proxy->remembers = proxy->remembers && cr_strvec_has(target->memory, "begun");
    if (proxy->cancels_in_count)
        cancel(proxy->cancel_fd);
    if (answer == HANGS)
        ok = hang(attempt, err);
    else if (answer == FAILS)
        cr_error_set(err, CR_ERR_INVALID, "count fails");
    else
        *out = (struct cr_drain_count){.open = answer == ENDS ? 7 : (uint64_t)answer, .ended = answer == ENDS};
    noted->done_ms = cr_clock_monotonic_ms();
    return ok;
}

static const struct cr_drain_strategy strategy = {
    .name = "table", .begins = "is told", .prepare = prepare, .begin = begin, .count = count};

/* --- one drain --- */

static void on_progress(void *arg, const struct cr_drain_progress *p)
{
    struct proxy *here = arg;
    if (p->known && p->result == CR_DRAIN_RESULT_NONE)
        poll(NULL, 0, (int)here->stands_still_ms);
    if (here->notified_len < NOTIFIED)
        here->notified[here->notified_len++] = (struct notified){p->phase, p->result, p->known, p->open, p->errors};
}

struct outcome {
    enum cr_drain_result result;
    struct cr_drain_progress last;
    int64_t started_ms;
    int64_t took_ms;
};

static struct outcome drain(struct proxy *p, const struct cr_drain_rules *rules)
{
    struct outcome out = {.started_ms = cr_clock_monotonic_ms()};
    const struct cr_drain_options options = {.strategy = &strategy,
                                             .rules = *rules,
                                             .attempt_ms = ATTEMPT_MS,
                                             .cancel_fd = p->cancel_fd ? p->cancel_fd : -1,
                                             .on_progress = on_progress,
                                             .arg = p};
    proxy = p;
    p->remembers = true;
    out.result = cr_drain_run(&options, &out.last);
    out.took_ms = cr_clock_monotonic_ms() - out.started_ms;
    assert_int_equal(out.last.result, out.result);
    assert_int_equal(out.last.phase, CR_DRAIN_ENDED);
    assert_true(out.last.elapsed_ms <= out.took_ms);
    assert_true(p->remembers);
    return out;
}

static void must_end(const struct outcome *out, enum cr_drain_result result, int64_t least_ms)
{
    if (out->result != result || out->took_ms < least_ms || out->took_ms > least_ms + LATE_MS)
        fail_msg("%s after %" PRId64 " ms, expected %s after %" PRId64 " ms", cr_drain_result_word(out->result),
                 out->took_ms, cr_drain_result_word(result), least_ms);
}

static void the_last_client_ends_it(void **state)
{
    (void)state;
    const struct cr_drain_rules rules = {.timeout_ms = LONG_MS, .interval_ms = 50};
    struct proxy p = {.counts = {2, 1, 0}, .counts_len = 3};
    struct outcome out = drain(&p, &rules);
    must_end(&out, CR_DRAIN_RESULT_DRAINED, 2 * 50);
    assert_true(out.last.known);
    assert_int_equal(out.last.open, 0);
    assert_int_equal(out.last.errors, 0);
    assert_int_equal(out.last.last_error.kind, CR_ERR_NONE);
    assert_int_equal(p.begins_len, 1);
    assert_int_equal(p.looks_len, 3);
    static const struct notified expected[] = {
        {CR_DRAIN_BEGINNING, CR_DRAIN_RESULT_NONE, false, 0, 0},
        {CR_DRAIN_BEGINNING, CR_DRAIN_RESULT_NONE, false, 0, 0},
        {CR_DRAIN_DRAINING, CR_DRAIN_RESULT_NONE, false, 0, 0},
        {CR_DRAIN_DRAINING, CR_DRAIN_RESULT_NONE, true, 2, 0},
        {CR_DRAIN_DRAINING, CR_DRAIN_RESULT_NONE, true, 1, 0},
        {CR_DRAIN_DRAINING, CR_DRAIN_RESULT_NONE, true, 0, 0},
        {CR_DRAIN_ENDED, CR_DRAIN_RESULT_DRAINED, true, 0, 0},
    };
    assert_int_equal(p.notified_len, cr_array_len(expected));
    for (size_t i = 0; i < cr_array_len(expected); i++) {
        assert_int_equal(p.notified[i].phase, expected[i].phase);
        assert_int_equal(p.notified[i].result, expected[i].result);
        assert_int_equal(p.notified[i].known, expected[i].known);
        assert_int_equal(p.notified[i].open, expected[i].open);
    }
}

static void a_begin_that_fails_is_tried_again_after_longer_and_longer(void **state)
{
    static const int64_t pauses[] = {200, 400, 800, 1600, 2000};
    (void)state;
    const struct cr_drain_rules rules = {.timeout_ms = LONG_MS, .interval_ms = 50};
    struct proxy p = {.begin_fails = cr_array_len(pauses), .counts = {0}, .counts_len = 1};
    struct outcome out = drain(&p, &rules);
    must_end(&out, CR_DRAIN_RESULT_DRAINED, 5000);
    assert_int_equal(p.begins_len, cr_array_len(pauses) + 1);
    for (size_t i = 0; i < cr_array_len(pauses); i++) {
        int64_t pause_ms = p.begins[i + 1].at_ms - p.begins[i].done_ms;
        if (pause_ms < pauses[i] || pause_ms > pauses[i] + LATE_MS)
            fail_msg("pause %zu was of %" PRId64 " ms", i, pause_ms);
    }
    assert_int_equal(p.looks_len, 1); /* none before the beginning */
    assert_int_equal(out.last.errors, cr_array_len(pauses));
    assert_string_equal(out.last.last_error.text, "begin fails");
}

static void who_never_takes_the_order_is_never_drained(void **state)
{
    (void)state;
    const struct cr_drain_rules rules = {.timeout_ms = 700, .interval_ms = 50};
    struct proxy p = {.begin_fails = ATTEMPTS, .counts = {0}, .counts_len = 1};
    struct outcome out = drain(&p, &rules);
    must_end(&out, CR_DRAIN_RESULT_TIMED_OUT, 700);
    assert_int_equal(p.looks_len, 0);
    assert_false(out.last.known);
    assert_int_equal(p.notified[p.notified_len - 2].phase, CR_DRAIN_BEGINNING);
}

static void a_count_that_fails_for_ever_is_never_drained(void **state)
{
    (void)state;
    const struct cr_drain_rules rules = {.timeout_ms = 500, .interval_ms = 50, .min_open = 1000};
    struct proxy p = {.counts = {FAILS}, .counts_len = 1};
    struct outcome out = drain(&p, &rules);
    must_end(&out, CR_DRAIN_RESULT_TIMED_OUT, 500);
    assert_true(p.looks_len >= 2);
    assert_true(p.looks_len <= 500 / 50 + 1);
    assert_int_equal(out.last.errors, p.looks_len);
    assert_false(out.last.known);
    assert_int_equal(out.last.last_error.kind, CR_ERR_INVALID);
}

static void a_failure_takes_back_what_was_known(void **state)
{
    (void)state;
    const struct cr_drain_rules rules = {.min_duration_ms = 300, .timeout_ms = LONG_MS, .interval_ms = 50};
    struct proxy p = {.counts = {0, FAILS, FAILS, FAILS, FAILS, FAILS, FAILS, 0}, .counts_len = 8};
    struct outcome out = drain(&p, &rules);
    assert_int_equal(out.result, CR_DRAIN_RESULT_DRAINED);
    assert_int_equal(p.looks_len, 8); /* the time was over by the seventh, or the eighth */
    assert_true(p.notified[3].known);
    assert_false(p.notified[4].known);
    assert_int_equal(p.notified[4].errors, 1);
}

static void who_comes_back_within_the_least_duration_is_waited_for(void **state)
{
    (void)state;
    const struct cr_drain_rules rules = {.min_duration_ms = 2000, .timeout_ms = LONG_MS, .interval_ms = 500};
    struct proxy p = {.counts = {3, 0, 2, 1, 0}, .counts_len = 5};
    struct outcome out = drain(&p, &rules);
    assert_int_equal(out.result, CR_DRAIN_RESULT_DRAINED);
    assert_int_equal(p.looks_len, 5);
}

static void the_least_duration_is_kept(void **state)
{
    (void)state;
    const struct cr_drain_rules rules = {.min_duration_ms = 300, .timeout_ms = LONG_MS, .interval_ms = LONG_MS};
    struct proxy p = {.counts = {0}, .counts_len = 1};
    struct outcome out = drain(&p, &rules);
    must_end(&out, CR_DRAIN_RESULT_DRAINED, 300); /* and not the interval */
    assert_int_equal(p.looks_len, 2);
}

static void what_is_open_at_the_time_out_is_reported(void **state)
{
    (void)state;
    const struct cr_drain_rules rules = {.timeout_ms = 400, .interval_ms = 50, .min_open = 1};
    struct proxy p = {.counts = {2}, .counts_len = 1};
    struct outcome out = drain(&p, &rules);
    must_end(&out, CR_DRAIN_RESULT_TIMED_OUT, 400);
    assert_true(out.last.known);
    assert_int_equal(out.last.open, 2);
}

/* No attempt is given more than what is left, else one that hangs would overstay; and a proxy that hangs has a pause
 * from the end of one to the next. */
static void must_keep(const struct attempt *attempts, size_t len, int64_t pause_ms, int64_t end_ms)
{
    for (size_t i = 0; i < len; i++) {
        assert_true(!i || attempts[i].at_ms >= attempts[i - 1].done_ms + pause_ms);
        assert_true(attempts[i].deadline_ms <= end_ms + LATE_MS / 10); /* the drain reads its clock after us */
        assert_true(attempts[i].deadline_ms <= attempts[i].at_ms + ATTEMPT_MS);
    }
}

static void who_hangs_is_not_waited_for_beyond_the_time_out(void **state)
{
    static const struct {
        bool begin_hangs;
        int64_t timeout_ms;
        size_t attempts; /* at least, at most one more */
    } cases[] = {{true, 500, 1}, {false, 500, 1}, {true, ATTEMPT_MS + 1400, 2}, {false, ATTEMPT_MS + 1400, 2}};
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct cr_drain_rules rules = {.timeout_ms = cases[i].timeout_ms, .interval_ms = 50};
        struct proxy p = {.begin_hangs = cases[i].begin_hangs, .counts = {HANGS}, .counts_len = 1};
        struct outcome out = drain(&p, &rules);
        must_end(&out, CR_DRAIN_RESULT_TIMED_OUT, cases[i].timeout_ms);
        must_keep(p.begins, p.begins_len, 200, out.started_ms + cases[i].timeout_ms);
        must_keep(p.looks, p.looks_len, 50, out.started_ms + cases[i].timeout_ms);
        size_t attempts = cases[i].begin_hangs ? p.begins_len : p.looks_len;
        assert_true(attempts >= cases[i].attempts && attempts <= cases[i].attempts + 1);
    }
}

static void a_number_of_before_it_was_stopped_is_not_taken_for_one_of_now(void **state)
{
    const struct cr_drain_rules rules = {.min_duration_ms = 2500, .timeout_ms = 3000, .interval_ms = 50};
    (void)state;
    struct proxy p = {.counts = {0}, .counts_len = 1, .stands_still_ms = rules.timeout_ms};
    struct outcome out = drain(&p, &rules);
    must_end(&out, CR_DRAIN_RESULT_TIMED_OUT, rules.timeout_ms);
    assert_false(out.last.known);
}

/* The end of the drain is no flag's fault. */
static void an_attempt_that_takes_all_of_its_time_names_the_flag(void **state)
{
    static const char said[] = "it hangs (--attempt-timeout ";
    static const struct {
        int64_t timeout_ms;
        bool named;
    } cases[] = {{ATTEMPT_MS / 2, false}, {ATTEMPT_MS + 2000, true}};
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct cr_drain_rules rules = {.timeout_ms = cases[i].timeout_ms, .interval_ms = LONG_MS};
        struct proxy p = {.counts = {HANGS}, .counts_len = 1};
        struct outcome out = drain(&p, &rules);
        must_end(&out, CR_DRAIN_RESULT_TIMED_OUT, cases[i].timeout_ms);
        if (cr_starts_with(out.last.last_error.text, said) != cases[i].named)
            fail_msg("%s", out.last.last_error.text);
    }
}

static void it_goes_on_as_ever_during_the_delay(void **state)
{
    (void)state;
    const struct cr_drain_rules rules = {.delay_ms = 300, .timeout_ms = LONG_MS, .interval_ms = 50};
    struct proxy p = {.counts = {0}, .counts_len = 1};
    struct outcome out = drain(&p, &rules);
    must_end(&out, CR_DRAIN_RESULT_DRAINED, 300);
    assert_true(p.begins[0].at_ms - out.started_ms >= 300);
    assert_int_equal(p.notified[0].phase, CR_DRAIN_DELAYED);
    assert_int_equal(p.notified[1].phase, CR_DRAIN_BEGINNING);
}

static void of_a_proxy_that_has_ended_nothing_is_left(void **state)
{
    (void)state;
    const struct cr_drain_rules rules = {.min_duration_ms = LONG_MS / 2, .timeout_ms = LONG_MS, .interval_ms = 50};
    struct proxy p = {.counts = {3, ENDS}, .counts_len = 2};
    struct outcome out = drain(&p, &rules);
    must_end(&out, CR_DRAIN_RESULT_DRAINED, 50);
}

static void no_listener_is_needed(void **state)
{
    (void)state;
    struct cr_strvec memory = {0};
    struct proxy p = {.counts = {0}, .counts_len = 1, .remembers = true};
    const struct cr_drain_options options = {.strategy = &strategy,
                                             .target = {.memory = &memory},
                                             .rules = {.timeout_ms = LONG_MS, .interval_ms = 50},
                                             .attempt_ms = ATTEMPT_MS,
                                             .cancel_fd = -1};
    proxy = &p;
    assert_int_equal(cr_drain_run(&options, NULL), CR_DRAIN_RESULT_DRAINED);
    assert_true(cr_strvec_has(&memory, "begun")); /* the caller's own */
    cr_strvec_dispose(&memory);
}

/* --- giving up --- */

static void an_attempt_is_given_up(void **state)
{
    static const struct proxy proxies[] = {
        {.begin_hangs = true, .cancels_in_begin = true, .counts = {0}, .counts_len = 1},
        {.begin_fails = ATTEMPTS, .cancels_in_begin = true, .counts = {0}, .counts_len = 1},
        {.counts = {HANGS}, .counts_len = 1, .cancels_in_count = true},
        {.counts = {1}, .counts_len = 1, .cancels_in_count = true},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(proxies); i++) {
        const struct cr_drain_rules rules = {.timeout_ms = LONG_MS, .interval_ms = LONG_MS};
        cr_autofd int fd = eventfd(0, EFD_CLOEXEC);
        struct proxy p = proxies[i];
        p.cancel_fd = fd;
        struct outcome out = drain(&p, &rules);
        must_end(&out, CR_DRAIN_RESULT_CANCELLED, 0);
        assert_int_equal(p.begins_len, 1);
        assert_true(p.looks_len <= 1);
        assert_int_equal(out.last.errors, proxies[i].begin_fails ? 1 : 0); /* giving up is none of the proxy's */
    }
}

struct canceller {
    int fd;
    int started_fd; /* readable when the drain has started */
};

static void *cancel_when_started(void *arg)
{
    const struct canceller *c = arg;
    uint64_t started = 0;
    assert_int_equal(read(c->started_fd, &started, sizeof started), sizeof started);
    cancel(c->fd);
    return NULL;
}

static void notify_thread(void *arg, const struct cr_drain_progress *progress)
{
    const struct canceller *c = arg;
    if (progress->phase == CR_DRAIN_DELAYED)
        cancel(c->started_fd);
}

static void a_wait_is_given_up(void **state)
{
    (void)state;
    cr_autofd int fd = eventfd(0, EFD_CLOEXEC);
    cr_autofd int started_fd = eventfd(0, EFD_CLOEXEC);
    struct canceller c = {.fd = fd, .started_fd = started_fd};
    struct proxy p = {.counts = {0}, .counts_len = 1};
    const struct cr_drain_options options = {
        .strategy = &strategy,
        .rules = {.delay_ms = LONG_MS / 2, .timeout_ms = LONG_MS, .interval_ms = 50},
        .attempt_ms = ATTEMPT_MS,
        .cancel_fd = fd,
        .on_progress = notify_thread,
        .arg = &c,
    };
    pthread_t thread;
    struct cr_drain_progress last;
    proxy = &p;
    assert_int_equal(pthread_create(&thread, NULL, cancel_when_started, &c), 0);
    assert_int_equal(cr_drain_run(&options, &last), CR_DRAIN_RESULT_CANCELLED);
    pthread_join(thread, NULL);
    assert_true(last.elapsed_ms < LONG_MS / 2);
    assert_int_equal(p.begins_len, 0);
}

static void words(void **state)
{
    (void)state;
    assert_string_equal(cr_drain_result_word(CR_DRAIN_RESULT_NONE), "");
    assert_string_equal(cr_drain_result_word(CR_DRAIN_RESULT_DRAINED), "Drained");
    assert_string_equal(cr_drain_result_word(CR_DRAIN_RESULT_TIMED_OUT), "TimedOut");
    assert_string_equal(cr_drain_result_word(CR_DRAIN_RESULT_CANCELLED), "Cancelled");
    assert_string_equal(cr_drain_phase_word(CR_DRAIN_DELAYED), "Delayed");
    assert_string_equal(cr_drain_phase_word(CR_DRAIN_BEGINNING), "Beginning");
    assert_string_equal(cr_drain_phase_word(CR_DRAIN_DRAINING), "Draining");
    assert_string_equal(cr_drain_phase_word(CR_DRAIN_ENDED), "Ended");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_client_ends_it),
        cmocka_unit_test(a_begin_that_fails_is_tried_again_after_longer_and_longer),
        cmocka_unit_test(who_never_takes_the_order_is_never_drained),
        cmocka_unit_test(a_count_that_fails_for_ever_is_never_drained),
        cmocka_unit_test(a_failure_takes_back_what_was_known),
        cmocka_unit_test(who_comes_back_within_the_least_duration_is_waited_for),
        cmocka_unit_test(the_least_duration_is_kept),
        cmocka_unit_test(what_is_open_at_the_time_out_is_reported),
        cmocka_unit_test(who_hangs_is_not_waited_for_beyond_the_time_out),
        cmocka_unit_test(a_number_of_before_it_was_stopped_is_not_taken_for_one_of_now),
        cmocka_unit_test(an_attempt_that_takes_all_of_its_time_names_the_flag),
        cmocka_unit_test(it_goes_on_as_ever_during_the_delay),
        cmocka_unit_test(of_a_proxy_that_has_ended_nothing_is_left),
        cmocka_unit_test(no_listener_is_needed),
        cmocka_unit_test(an_attempt_is_given_up),
        cmocka_unit_test(a_wait_is_given_up),
        cmocka_unit_test(words),
    };
    cr_log_set_level(CR_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
