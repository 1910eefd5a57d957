#include "drain/drain_thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

enum { PATIENCE_MS = 20 * 1000, LONG_MS = 600 * 1000 };

/* --- a proxy in this process --- */

static atomic_int open_now;
static atomic_int begins;

static bool prepare(struct cr_drain_target *target, struct cr_error *err)
{
    (void)target;
    (void)err;
    return true;
}

static bool order(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt, struct cr_error *err)
{
    (void)target;
    (void)attempt;
    (void)err;
    atomic_fetch_add(&begins, 1);
    return true;
}

static bool count(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt,
                  struct cr_drain_count *out, struct cr_error *err)
{
    (void)target;
    (void)attempt;
    out->open = (uint64_t)atomic_load(&open_now);
    return out->open != 13 || cr_error_set(err, CR_ERR_TRANSIENT, "nobody knows");
}

static const struct cr_drain_strategy proxy = {"fake", "counts", prepare, order, count};

/* --- the fixture --- */

struct fixture {
    struct cr_loop *loop;
    struct cr_metrics *metrics;
    struct cr_drain_metrics drain_metrics;
    struct cr_drain_thread *drain;
    int overs;
    bool misplaced; /* on_over was called outside of the loop's thread, or the drain ran still */
    bool again;     /* one more from on_over */
    struct cr_timer *stop;
};

static const struct cr_drain_options options = {
    .strategy = &proxy, .rules = {.timeout_ms = LONG_MS, .interval_ms = 1}, .attempt_ms = 1000, .cancel_fd = -1};

static void begin(struct fixture *f)
{
    struct cr_error err = {0};
    if (!cr_drain_thread_begin(f->drain, &options, &err))
        fail_msg("%s", err.text);
}

static void on_over(void *arg)
{
    struct fixture *f = arg;
    f->overs++;
    f->misplaced = f->misplaced || !cr_loop_in_thread(f->loop) || cr_drain_thread_runs(f->drain);
    if (f->again) {
        f->again = false;
        begin(f);
    } else {
        cr_loop_stop(f->loop);
    }
}

static void give_up(void *arg)
{
    struct fixture *f = arg;
    cr_loop_stop(f->loop);
}

static int set_up(void **state)
{
    struct fixture *f = cr_new(struct fixture);
    atomic_store(&open_now, 1);
    atomic_store(&begins, 0);
    cr_log_set_level(CR_LOG_ERROR);
    f->loop = cr_loop_new();
    f->metrics = cr_metrics_new();
    cr_drain_metrics_init(&f->drain_metrics, f->metrics);
    f->drain = cr_drain_thread_new(f->loop, &f->drain_metrics, on_over, f);
    f->stop = cr_timer_new(f->loop, give_up, f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    cr_drain_thread_free(f->drain);
    cr_timer_free(f->stop);
    cr_loop_free(f->loop);
    cr_metrics_free(f->metrics);
    free(f);
    return 0;
}

static void run_until_over(struct fixture *f)
{
    cr_timer_arm(f->stop, PATIENCE_MS);
    cr_loop_run(f->loop);
}

/* Until it has been seen so, in the drain's own thread. */
static struct cr_drain_progress wait_for_open(struct fixture *f, uint64_t open, bool known)
{
    int64_t until_ms = cr_clock_monotonic_ms() + PATIENCE_MS;
    struct cr_drain_progress progress;
    while (cr_drain_thread_progress(f->drain, &progress) && (progress.open != open || progress.known != known) &&
           cr_clock_monotonic_ms() < until_ms)
        usleep(500);
    assert_int_equal(progress.open, open);
    assert_int_equal(progress.known, known);
    return progress;
}

static bool page_has(const struct fixture *f, const char *line)
{
    CR_CLEANUP(cr_buf) struct cr_buf page = CR_BUF_INIT(0);
    cr_metrics_write(f->metrics, &page);
    return strstr(cr_buf_text(&page), line) != NULL;
}

/* --- tests --- */

static void it_notifies_of_its_progress_and_of_its_end(void **state)
{
    struct fixture *f = *state;
    struct cr_drain_progress progress;
    assert_false(cr_drain_thread_progress(f->drain, &progress));
    assert_true(page_has(f, "certroll_shutdown_open_connections NaN\n"));
    begin(f);
    assert_true(cr_drain_thread_runs(f->drain));
    progress = wait_for_open(f, 1, true);
    assert_int_equal(progress.phase, CR_DRAIN_DRAINING);
    atomic_store(&open_now, 13);
    progress = wait_for_open(f, 0, false);
    assert_true(progress.errors > 0);
    atomic_store(&open_now, 0);
    run_until_over(f);
    assert_int_equal(f->overs, 1);
    assert_false(f->misplaced);
    assert_true(cr_drain_thread_progress(f->drain, &progress));
    assert_int_equal(progress.result, CR_DRAIN_RESULT_DRAINED);
    assert_int_equal(progress.phase, CR_DRAIN_ENDED);
    assert_true(page_has(f, "certroll_shutdown_drains_total{result=\"drained\"} 1\n"));
    assert_true(page_has(f, "certroll_shutdown_drain_phase{phase=\"ended\"} 1\n"));
    assert_true(page_has(f, "certroll_shutdown_open_connections 0\n"));
    assert_false(page_has(f, "certroll_shutdown_admin_errors_total 0\n"));
}

static void there_is_one_at_a_time(void **state)
{
    struct fixture *f = *state;
    begin(f);
    begin(f);
    (void)wait_for_open(f, 1, true);
    begin(f);
    atomic_store(&open_now, 0);
    run_until_over(f);
    assert_int_equal(atomic_load(&begins), 1);
    assert_int_equal(f->overs, 1);
}

static void the_next_may_begin_when_one_is_over(void **state)
{
    struct fixture *f = *state;
    f->again = true;
    atomic_store(&open_now, 0);
    begin(f);
    run_until_over(f);
    assert_int_equal(f->overs, 2);
    assert_int_equal(atomic_load(&begins), 2);
    assert_false(f->misplaced);
    assert_true(page_has(f, "certroll_shutdown_drains_total{result=\"drained\"} 2\n"));
}

static void freeing_cancels_it_and_notifies_no_listener(void **state)
{
    struct fixture *f = *state;
    begin(f);
    (void)wait_for_open(f, 1, true);
    cr_drain_thread_free(cr_steal(&f->drain));
    assert_true(page_has(f, "certroll_shutdown_drains_total{result=\"cancelled\"} 1\n"));
    cr_timer_arm(f->stop, 0);
    cr_loop_run(f->loop); /* its notice comes, and no listener is left */
    assert_int_equal(f->overs, 0);
}

/* It is over, and the loop, which has ended, has not been notified: it is notified when it is freed. */
static void freeing_may_come_before_the_loop_is_notified(void **state)
{
    struct fixture *f = *state;
    struct cr_drain_progress progress = {0};
    int64_t until_ms = cr_clock_monotonic_ms() + PATIENCE_MS;
    atomic_store(&open_now, 0);
    begin(f);
    while (cr_drain_thread_progress(f->drain, &progress) && progress.result == CR_DRAIN_RESULT_NONE &&
           cr_clock_monotonic_ms() < until_ms)
        usleep(500);
    assert_int_equal(progress.result, CR_DRAIN_RESULT_DRAINED);
    assert_true(cr_drain_thread_runs(f->drain));
    cr_drain_thread_free(cr_steal(&f->drain));
    assert_int_equal(f->overs, 0);
}

#define with_loop(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_loop(it_notifies_of_its_progress_and_of_its_end),   with_loop(there_is_one_at_a_time),
        with_loop(the_next_may_begin_when_one_is_over),          with_loop(freeing_cancels_it_and_notifies_no_listener),
        with_loop(freeing_may_come_before_the_loop_is_notified),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
