#include "sys/loop.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

static int set_up(void **state)
{
    *state = cr_loop_new();
    return 0;
}

static int tear_down(void **state)
{
    cr_loop_free(*state);
    return 0;
}

static void stop(void *arg)
{
    cr_loop_stop(arg);
}

/* --- posts --- */

enum { POSTERS = 4, POSTS = 2000 };

struct posts {
    struct cr_loop *loop;
    unsigned seen[POSTERS]; /* of the loop's thread */
    unsigned total;
    unsigned misplaced;
};

struct numbered {
    struct posts *posts;
    unsigned poster;
    unsigned number;
};

static void count_post(void *arg)
{
    struct numbered *numbered = arg;
    struct posts *posts = numbered->posts;
    posts->misplaced += numbered->number != posts->seen[numbered->poster] || !cr_loop_in_thread(posts->loop);
    posts->seen[numbered->poster]++;
    if (++posts->total == POSTERS * POSTS)
        cr_loop_stop(posts->loop);
    free(numbered);
}

struct poster {
    pthread_t thread;
    struct posts *posts;
    unsigned index;
};

static void *post_all(void *arg)
{
    const struct poster *poster = arg;
    for (unsigned i = 0; i < POSTS; i++) {
        struct numbered *numbered = cr_new(struct numbered);
        *numbered = (struct numbered){poster->posts, poster->index, i};
        cr_loop_post(poster->posts->loop, count_post, numbered);
    }
    return NULL;
}

static void posts_of_each_thread_run_once_and_in_order(void **state)
{
    struct posts posts = {.loop = *state};
    struct poster posters[POSTERS];
    for (unsigned i = 0; i < POSTERS; i++) {
        posters[i] = (struct poster){.posts = &posts, .index = i};
        assert_int_equal(pthread_create(&posters[i].thread, NULL, post_all, &posters[i]), 0);
    }
    cr_loop_run(*state);
    for (unsigned i = 0; i < POSTERS; i++)
        pthread_join(posters[i].thread, NULL);
    assert_int_equal(posts.total, POSTERS * POSTS);
    assert_int_equal(posts.misplaced, 0);
}

static void note(void *arg)
{
    ++*(unsigned *)arg;
}

static void what_was_posted_before_the_stop_is_run(void **state)
{
    unsigned count = 0;
    cr_loop_post(*state, note, &count);
    cr_loop_stop(*state);
    cr_loop_run(*state);
    assert_int_equal(count, 1);
}

struct chain {
    struct cr_loop *loop;
    unsigned left;
    unsigned depth;
    unsigned nested;
};

static void post_again(void *arg)
{
    struct chain *chain = arg;
    chain->nested += chain->depth != 0;
    chain->depth++;
    if (chain->left-- == 0)
        cr_loop_stop(chain->loop);
    else
        cr_loop_post(chain->loop, post_again, chain);
    chain->depth--;
}

static void a_post_from_a_post_runs_later(void **state)
{
    struct chain chain = {.loop = *state, .left = 100};
    cr_loop_post(*state, post_again, &chain);
    cr_loop_run(*state);
    assert_int_equal(chain.nested, 0);
    assert_int_equal(chain.left, (unsigned)-1);
}

static void pending_posts_are_run_by_free(void **state)
{
    (void)state;
    unsigned count = 0;
    struct cr_loop *loop = cr_loop_new();
    cr_loop_stop(loop);
    cr_loop_run(loop);
    struct chain chain = {.loop = loop, .left = 10};
    cr_loop_post(loop, note, &count);
    cr_loop_post(loop, post_again, &chain);
    cr_loop_free(loop);
    assert_int_equal(count, 1);
    assert_int_equal(chain.left, (unsigned)-1);
}

static void only_the_running_thread_is_the_loops(void **state)
{
    assert_false(cr_loop_in_thread(*state));
    cr_loop_stop(*state);
    cr_loop_run(*state);
    assert_false(cr_loop_in_thread(*state));
    cr_loop_free(NULL);
    cr_timer_free(NULL);
}

static void *stop_from_thread(void *arg)
{
    cr_loop_stop(arg);
    return NULL;
}

static void a_stop_from_another_thread_wakes_an_idle_loop(void **state)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, stop_from_thread, *state), 0);
    cr_loop_run(*state);
    pthread_join(thread, NULL);
}

/* --- timers --- */

struct ticker {
    struct cr_loop *loop;
    struct cr_timer *timer;
    int64_t due;
    int64_t period;
    unsigned ticks;
    unsigned until;
    unsigned early;
};

static void tick(void *arg)
{
    struct ticker *ticker = arg;
    int64_t now = cr_clock_monotonic_ms();
    ticker->early += now < ticker->due;
    if (++ticker->ticks == ticker->until) {
        cr_loop_stop(ticker->loop);
        return;
    }
    ticker->due = now + ticker->period;
    cr_timer_arm(ticker->timer, ticker->period);
}

static void run_ticker(struct ticker *ticker, struct cr_loop *loop)
{
    ticker->loop = loop;
    ticker->timer = cr_timer_new(loop, tick, ticker);
    ticker->due = cr_clock_monotonic_ms() + ticker->period;
    cr_timer_arm(ticker->timer, ticker->period);
    cr_loop_run(loop);
    cr_timer_free(ticker->timer);
}

static void a_timer_never_fires_early_and_may_arm_itself(void **state)
{
    struct ticker ticker = {.period = 3, .until = 50};
    run_ticker(&ticker, *state);
    assert_int_equal(ticker.ticks, 50);
    assert_int_equal(ticker.early, 0);
}

static void burn_then_arm(void *arg)
{
    struct ticker *ticker = arg;
    int64_t until = cr_clock_monotonic_ms() + 60;
    while (cr_clock_monotonic_ms() < until)
        ;
    ticker->due = cr_clock_monotonic_ms() + 30;
    cr_timer_arm(ticker->timer, 30);
}

static void a_delay_counts_from_now_after_a_long_callback(void **state)
{
    struct ticker ticker = {.loop = *state, .until = 1};
    ticker.timer = cr_timer_new(*state, tick, &ticker);
    cr_loop_post(*state, burn_then_arm, &ticker);
    cr_loop_run(*state);
    assert_int_equal(ticker.early, 0);
    cr_timer_free(ticker.timer);
}

static void a_negative_delay_is_none(void **state)
{
    struct ticker ticker = {.period = -1000, .until = 3};
    run_ticker(&ticker, *state);
    assert_int_equal(ticker.ticks, 3);
}

static void a_disarmed_or_postponed_timer_does_not_fire(void **state)
{
    unsigned count = 0;
    struct cr_timer *disarmed = cr_timer_new(*state, note, &count);
    struct cr_timer *postponed = cr_timer_new(*state, note, &count);
    struct cr_timer *far = cr_timer_new(*state, note, &count);
    struct cr_timer *end = cr_timer_new(*state, stop, *state);
    cr_timer_arm(disarmed, 5);
    cr_timer_disarm(disarmed);
    cr_timer_disarm(disarmed);
    cr_timer_arm(postponed, 5);
    cr_timer_arm(postponed, 60 * 1000);
    cr_timer_arm(far, INT64_MAX);
    cr_timer_arm(end, 40);
    cr_loop_run(*state);
    assert_int_equal(count, 0);
    cr_timer_free(disarmed);
    cr_timer_free(postponed);
    cr_timer_free(far);
    cr_timer_free(end);
}

struct suicide {
    struct cr_loop *loop;
    struct cr_timer *timer;
};

static void free_self(void *arg)
{
    struct suicide *suicide = arg;
    cr_timer_free(suicide->timer);
    cr_loop_stop(suicide->loop);
}

static void a_timer_may_free_itself(void **state)
{
    struct suicide suicide = {.loop = *state};
    suicide.timer = cr_timer_new(*state, free_self, &suicide);
    cr_timer_arm(suicide.timer, 1);
    cr_loop_run(*state);
}

/* --- signals --- */

struct terminated {
    struct cr_loop *loop;
    unsigned count;
};

static void on_terminate(void *arg)
{
    struct terminated *terminated = arg;
    assert_true(cr_loop_in_thread(terminated->loop));
    if (++terminated->count == 2)
        cr_loop_stop(terminated->loop);
    else
        kill(getpid(), SIGINT);
}

static void send_term(void *arg)
{
    (void)arg;
    kill(getpid(), SIGTERM);
}

static void sigterm_and_sigint_reach_the_loop(void **state)
{
    struct terminated terminated = {.loop = *state};
    cr_loop_on_terminate(*state, on_terminate, &terminated);
    cr_loop_post(*state, send_term, NULL);
    cr_loop_run(*state);
    assert_int_equal(terminated.count, 2);
}

static void a_peer_that_hangs_up_raises_no_signal(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    assert_int_equal(write(ends[1], "x", 1), -1);
    close(ends[1]);
}

#define with_loop(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_loop(posts_of_each_thread_run_once_and_in_order),
        with_loop(what_was_posted_before_the_stop_is_run),
        with_loop(a_post_from_a_post_runs_later),
        cmocka_unit_test(pending_posts_are_run_by_free),
        with_loop(only_the_running_thread_is_the_loops),
        with_loop(a_stop_from_another_thread_wakes_an_idle_loop),
        with_loop(a_timer_never_fires_early_and_may_arm_itself),
        with_loop(a_delay_counts_from_now_after_a_long_callback),
        with_loop(a_negative_delay_is_none),
        with_loop(a_disarmed_or_postponed_timer_does_not_fire),
        with_loop(a_timer_may_free_itself),
        with_loop(sigterm_and_sigint_reach_the_loop),
        with_loop(a_peer_that_hangs_up_raises_no_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
