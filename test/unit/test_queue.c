#include "runtime/queue.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/buffer.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "kube/cause.h"
#include "metrics/metrics.h"

static void take_and_finish(struct cr_queue *queue, const char *expected)
{
    cr_autofree char *key = cr_queue_take(queue);
    assert_string_equal(key, expected);
    cr_queue_done(queue, key);
}

static void keys_come_in_order_and_each_once(void **state)
{
    (void)state;
    CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
    cr_queue_add(queue, "a");
    cr_queue_add(queue, "b");
    cr_queue_add(queue, "a");
    assert_int_equal(cr_queue_len(queue), 2);
    take_and_finish(queue, "a");
    take_and_finish(queue, "b");
    assert_int_equal(cr_queue_len(queue), 0);
}

static void a_key_added_while_it_is_worked_on_comes_again_afterwards_only(void **state)
{
    (void)state;
    CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
    cr_queue_add(queue, "a");
    cr_autofree char *key = cr_queue_take(queue);
    cr_queue_add(queue, "a");
    cr_queue_add(queue, "a");
    assert_int_equal(cr_queue_len(queue), 0);
    cr_queue_done(queue, key);
    assert_int_equal(cr_queue_len(queue), 1);
    take_and_finish(queue, "a");
    assert_int_equal(cr_queue_len(queue), 0);
}

static void a_delayed_key_is_not_there_before_its_time(void **state)
{
    (void)state;
    CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
    int64_t start = cr_clock_monotonic_ms();
    cr_queue_add_after(queue, "later", 120);
    cr_queue_add_after(queue, "sooner", 60);
    assert_int_equal(cr_queue_len(queue), 0);
    take_and_finish(queue, "sooner");
    assert_true(cr_clock_monotonic_ms() - start >= 60);
    take_and_finish(queue, "later");
    assert_true(cr_clock_monotonic_ms() - start >= 120);
}

static void of_two_delays_the_earlier_wins(void **state)
{
    (void)state;
    CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
    cr_queue_add_after(queue, "a", 20);
    cr_queue_add_after(queue, "a", 3600 * 1000);
    cr_queue_add_after(queue, "b", 3600 * 1000);
    cr_queue_add_after(queue, "b", 40);
    take_and_finish(queue, "a");
    take_and_finish(queue, "b");
    assert_int_equal(cr_queue_len(queue), 0);
}

static void adding_now_takes_the_place_of_the_delay(void **state)
{
    (void)state;
    CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
    cr_queue_add_after(queue, "a", 30);
    cr_queue_add(queue, "a");
    take_and_finish(queue, "a");
    cr_queue_add_after(queue, "b", 60); /* past a's time */
    take_and_finish(queue, "b");
    assert_int_equal(cr_queue_len(queue), 0);
    cr_queue_add_after(queue, "c", 0);
    assert_int_equal(cr_queue_len(queue), 1);
}

static void a_delay_that_ends_during_the_work_counts_as_added(void **state)
{
    (void)state;
    CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
    cr_queue_add(queue, "a");
    cr_autofree char *key = cr_queue_take(queue);
    cr_queue_add_after(queue, "a", 1);
    cr_queue_add_after(queue, "b", 5);
    take_and_finish(queue, "b"); /* by now a is due, too, but under way */
    assert_int_equal(cr_queue_len(queue), 0);
    cr_queue_done(queue, key);
    take_and_finish(queue, "a");
}

/* --- namespaces --- */

static void namespaces_are_served_round_robin(void **state)
{
    (void)state;
    static const char *const added[] = {"a/1", "a/2", "a/3", "a/4", "b/1", "c/1", "b/2", "/cluster"};
    static const char *const order[] = {"a/1", "b/1", "c/1", "/cluster", "a/2", "b/2", "a/3", "a/4"};
    for (int low = 0; low < 2; low++) {
        CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
        for (size_t i = 0; i < cr_array_len(added); i++) {
            if (low)
                cr_queue_add_low(queue, added[i], 0);
            else
                cr_queue_add(queue, added[i]);
        }
        for (size_t i = 0; i < cr_array_len(order); i++)
            take_and_finish(queue, order[i]);
    }
}

static void *take_later(void *queue)
{
    return cr_queue_take(queue);
}

/* Four workers, of which three are left to a namespace that has many keys. */
static void one_worker_is_left_for_other_namespaces(void **state)
{
    (void)state;
    pthread_t fourth;
    char *keys[3];
    void *taken = NULL;
    CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
    cr_queue_limit_namespaces(queue, 4);
    for (char i = '1'; i <= '9'; i++)
        cr_queue_add(queue, (const char[]){'a', '/', i, '\0'});
    for (size_t i = 0; i < cr_array_len(keys); i++)
        keys[i] = cr_queue_take(queue);
    assert_int_equal(pthread_create(&fourth, NULL, take_later, queue), 0);
    cr_queue_add(queue, "b/1");
    pthread_join(fourth, &taken);
    assert_string_equal(taken, "b/1");
    cr_queue_done(queue, taken);
    free(taken);
    /* It goes on as soon as it has a worker less. */
    assert_int_equal(pthread_create(&fourth, NULL, take_later, queue), 0);
    cr_queue_done(queue, keys[0]);
    pthread_join(fourth, &taken);
    assert_string_equal(taken, "a/4");
    cr_queue_done(queue, taken);
    free(taken);
    for (size_t i = 1; i < cr_array_len(keys); i++)
        cr_queue_done(queue, keys[i]);
    for (size_t i = 0; i < cr_array_len(keys); i++)
        free(keys[i]);
    assert_int_equal(cr_queue_len(queue), 5);
}

static void a_single_worker_works_for_everybody(void **state)
{
    (void)state;
    CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
    cr_queue_limit_namespaces(queue, 1);
    cr_queue_add(queue, "a/1");
    cr_queue_add(queue, "a/2");
    take_and_finish(queue, "a/1");
    take_and_finish(queue, "a/2");
}

/* From adding with backoff to being handed out. */
static int64_t backoff_ms(struct cr_queue *queue, int64_t min_delay_ms)
{
    int64_t start = cr_clock_monotonic_ms();
    cr_queue_add_backoff(queue, "a", min_delay_ms);
    take_and_finish(queue, "a");
    return cr_clock_monotonic_ms() - start;
}

static void backoff_doubles_to_its_cap_until_the_key_is_forgotten(void **state)
{
    (void)state;
    CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(20, 80);
    static const int64_t at_least[] = {10, 20, 40, 40, 40};
    for (size_t i = 0; i < 5; i++)
        assert_true(backoff_ms(queue, 0) >= at_least[i]);
    cr_queue_forget(queue, "a");
    assert_true(backoff_ms(queue, 150) >= 150);
    cr_queue_forget(queue, "never-seen");
}

static void *take_one(void *queue)
{
    return cr_queue_take(queue);
}

static void shutdown_wakes_the_waiting_and_hands_out_nothing_more(void **state)
{
    (void)state;
    CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
    cr_queue_add(queue, "busy");
    cr_autofree char *busy = cr_queue_take(queue);
    pthread_t waiting[2];
    assert_int_equal(pthread_create(&waiting[0], NULL, take_one, queue), 0);
    assert_int_equal(pthread_create(&waiting[1], NULL, take_one, queue), 0);
    cr_queue_add_after(queue, "delayed", 3600 * 1000);
    cr_queue_add(queue, "busy");
    cr_queue_shutdown(queue);
    for (size_t i = 0; i < 2; i++) {
        void *key = queue;
        pthread_join(waiting[i], &key);
        assert_null(key);
    }
    cr_queue_done(queue, busy);
    cr_queue_add(queue, "late");
    cr_queue_add_after(queue, "late", 5);
    cr_queue_add_backoff(queue, "late", 5);
    assert_null(cr_queue_take(queue));
    assert_int_equal(cr_queue_len(queue), 0);
}

/* A worker that sleeps until a far time must not be the only one to see a near one. */
static void a_sooner_delay_wakes_a_worker_that_waits_for_a_later_one(void **state)
{
    (void)state;
    CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
    cr_queue_add_after(queue, "far", 3600 * 1000);
    pthread_t waiting;
    assert_int_equal(pthread_create(&waiting, NULL, take_one, queue), 0);
    cr_queue_add_after(queue, "near", 10);
    void *key = NULL;
    pthread_join(waiting, &key);
    assert_string_equal(key, "near");
    free(key);
}

/* What it took; NULL: nothing within seconds, and then nothing comes any more. */
static char *taken_by(pthread_t worker, struct cr_queue *queue)
{
    enum { PATIENCE_S = 20 };
    struct timespec until;
    void *key = NULL;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    if (pthread_timedjoin_np(worker, &key, &until) == 0)
        return key;
    cr_queue_shutdown(queue);
    pthread_join(worker, &key);
    free(key);
    return NULL;
}

/* The worker that watched the delay may be the one that gets the other key, and does not come back. */
static void a_delay_is_watched_when_a_worker_is_called_away(void **state)
{
    (void)state;
    enum { TIMES = 30, WORKERS = 3 };
    for (int i = 0; i < TIMES; i++) {
        CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
        pthread_t workers[WORKERS];
        size_t near = 0;
        cr_queue_add_after(queue, i % 2 ? "far" : "near", i % 2 ? 3600 * 1000 : 10);
        for (size_t w = 0; w < WORKERS; w++)
            assert_int_equal(pthread_create(&workers[w], NULL, take_one, queue), 0);
        cr_queue_add(queue, "now");
        cr_queue_add_after(queue, "near", 10);
        cr_queue_add(queue, "as well");
        for (size_t w = 0; w < WORKERS; w++) {
            cr_autofree char *key = taken_by(workers[w], queue);
            near += cr_streq(key, "near");
        }
        assert_int_equal(near, 1);
    }
}

/* --- who is called --- */

/* A thread that works, and whether it sleeps, which is seen from outside: the queue does not show which worker waits
 * for what. */
struct worker {
    struct cr_queue *queue;
    pthread_t thread;
    atomic_int tid;
    atomic_int asked; /* times it went to the queue */
    atomic_int taken;
};

static char *ask(struct worker *worker)
{
    atomic_store(&worker->tid, gettid());
    atomic_fetch_add(&worker->asked, 1);
    return cr_queue_take(worker->queue);
}

static void *take_one_only(void *arg)
{
    return ask(arg);
}

static void *take_one_after_the_other(void *arg)
{
    struct worker *worker = arg;
    for (char *key; (key = ask(worker)); free(key)) {
        atomic_fetch_add(&worker->taken, 1);
        cr_queue_done(worker->queue, key);
    }
    return NULL;
}

/* Who is woken runs at once by this account, even when it has no CPU yet. */
static bool sleeps(const struct worker *worker)
{
    char path[64];
    char stat[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", atomic_load(&worker->tid));
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t len = fread(stat, 1, sizeof stat - 1, file);
    fclose(file);
    stat[len] = '\0';
    const char *end_of_name = strrchr(stat, ')');
    return end_of_name && cr_starts_with(end_of_name, ") S");
}

/* No thread has the lock then, so a thread that sleeps has been to the queue and waits. False: not within seconds. */
static bool all_wait(const struct worker *workers, size_t len, int asked)
{
    int64_t deadline = cr_clock_monotonic_ms() + 20 * 1000;
    while (cr_clock_monotonic_ms() < deadline) {
        int so_far = 0;
        bool asleep = true;
        for (size_t i = 0; i < len; i++)
            so_far += atomic_load(&workers[i].asked);
        for (size_t i = 0; i < len; i++)
            asleep = asleep && sleeps(&workers[i]);
        if (asleep && so_far == asked)
            return true;
        sched_yield();
    }
    return false;
}

/* Another would have to take its place, for nothing. */
static void the_one_that_watches_a_delay_is_not_called_while_another_is_idle(void **state)
{
    (void)state;
    enum { TIMES = 200 };
    CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
    struct worker workers[] = {{.queue = queue}, {.queue = queue}};
    bool ok = true;
    cr_queue_add_after(queue, "far", 3600 * 1000);
    for (int i = 0; i < 2; i++) { /* the first that finds nothing to do watches */
        assert_int_equal(pthread_create(&workers[i].thread, NULL, take_one_after_the_other, &workers[i]), 0);
        ok = ok && all_wait(workers, (size_t)i + 1, i + 1);
    }
    for (int n = 1; ok && n <= TIMES; n++) {
        cr_queue_add(queue, n % 2 ? "a" : "b");
        ok = all_wait(workers, 2, 2 + n);
    }
    cr_queue_shutdown(queue);
    for (int i = 0; i < 2; i++)
        pthread_join(workers[i].thread, NULL);
    assert_true(ok);
    assert_int_equal(atomic_load(&workers[0].taken), 0);
    assert_int_equal(atomic_load(&workers[1].taken), TIMES);
}

/* It does not come back; the next worker that has time watches, whether the near time is there by then or not. */
static void the_one_that_watches_is_called_when_all_others_work_and_the_delay_is_watched_again(void **state)
{
    (void)state;
    for (int before = 0; before < 2; before++) {
        CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
        struct worker first = {.queue = queue};
        struct worker next = {.queue = queue};
        cr_queue_add(queue, "busy");
        cr_autofree char *busy = cr_queue_take(queue);
        cr_queue_add_after(queue, "far", 3600 * 1000);
        assert_int_equal(pthread_create(&first.thread, NULL, take_one_only, &first), 0);
        bool watched = all_wait(&first, 1, 1);
        cr_queue_add(queue, "now");
        cr_autofree char *now = taken_by(first.thread, queue);
        if (before)
            cr_queue_add_after(queue, "near", 10);
        cr_queue_done(queue, busy);
        assert_int_equal(pthread_create(&next.thread, NULL, take_one_only, &next), 0);
        bool watched_again = before || all_wait(&next, 1, 1);
        if (!before)
            cr_queue_add_after(queue, "near", 10);
        cr_autofree char *near = taken_by(next.thread, queue);
        assert_true(watched && watched_again);
        assert_string_equal(now, "now");
        assert_string_equal(near, "near");
    }
}

/* --- two priorities --- */

static void a_key_of_low_priority_comes_when_no_other_waits(void **state)
{
    (void)state;
    CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
    cr_queue_add_low(queue, "low-1", 0);
    cr_queue_add_low(queue, "low-2", 0);
    cr_queue_add(queue, "a");
    cr_queue_add(queue, "b");
    assert_int_equal(cr_queue_len(queue), 4);
    assert_int_equal(cr_queue_urgent(queue), 2);
    static const char *const order[] = {"a", "b", "low-1", "low-2"};
    for (size_t i = 0; i < 4; i++)
        take_and_finish(queue, order[i]);
    assert_int_equal(cr_queue_len(queue), 0);
}

/* In which ways one key may be added twice, and whether it is of low priority in the end. */
enum add_way { NOW, LOW_NOW, SOON, LOW_SOON, LATER, LOW_LATER };

static void add_in(struct cr_queue *queue, const char *key, enum add_way way)
{
    static const int64_t delays_ms[] = {[SOON] = 10, [LOW_SOON] = 10, [LATER] = 30, [LOW_LATER] = 30};
    bool low = way == LOW_NOW || way == LOW_SOON || way == LOW_LATER;
    int64_t delay_ms = way == NOW || way == LOW_NOW ? 0 : delays_ms[way];
    if (low)
        cr_queue_add_low(queue, key, delay_ms);
    else
        cr_queue_add_after(queue, key, delay_ms);
}

static void of_two_priorities_the_higher_wins(void **state)
{
    (void)state;
    static const struct {
        enum add_way first, second;
        bool working; /* a worker has the key meanwhile */
        bool low;
    } cases[] = {
        {LOW_NOW, NOW, false, false},      {NOW, LOW_NOW, false, false},       {LOW_NOW, LOW_NOW, false, true},
        {LOW_NOW, NOW, true, false},       {NOW, LOW_NOW, true, false},        {LOW_NOW, LOW_NOW, true, true},
        {LOW_SOON, SOON, false, false},    {SOON, LOW_SOON, false, false},     {LOW_SOON, LATER, false, false},
        {LATER, LOW_SOON, false, false},   {LOW_SOON, LOW_LATER, false, true}, {LOW_LATER, NOW, false, false},
        {LOW_LATER, LOW_NOW, false, true}, {LATER, LOW_NOW, false, false},     {LOW_SOON, LOW_LATER, true, true},
        {LOW_SOON, SOON, true, false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
        cr_autofree char *key = NULL;
        cr_queue_add(queue, "a");
        key = cr_queue_take(queue);
        if (!cases[i].working)
            cr_queue_done(queue, key);
        add_in(queue, "a", cases[i].first);
        add_in(queue, "a", cases[i].second);
        if (cases[i].working)
            cr_queue_done(queue, key);
        int64_t deadline = cr_clock_monotonic_ms() + 5000;
        while (!cr_queue_len(queue) && cr_clock_monotonic_ms() < deadline)
            sched_yield();
        if (cr_queue_len(queue) != 1 || (cr_queue_urgent(queue) == 0) != cases[i].low)
            fail_msg("case %zu: %zu wait, %zu of them are urgent", i, cr_queue_len(queue), cr_queue_urgent(queue));
        take_and_finish(queue, "a");
        assert_int_equal(cr_queue_len(queue), 0);
    }
}

/* However many others there are, and without keeping those from work either. */
static void a_key_of_low_priority_does_not_wait_for_ever(void **state)
{
    (void)state;
    CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
    int64_t start = cr_clock_monotonic_ms();
    cr_queue_add_low(queue, "low-1", 0);
    cr_queue_add_low(queue, "low-2", 0);
    int64_t added = cr_clock_monotonic_ms(); /* on a busy machine later than the first */
    cr_queue_add(queue, "a");
    cr_queue_add(queue, "b");
    for (const char *taken = "a"; taken[0] != 'l';) {
        cr_autofree char *key = cr_queue_take(queue);
        cr_queue_done(queue, key);
        if (key[0] != 'l') {
            cr_queue_add(queue, key);
            continue;
        }
        assert_string_equal(key, "low-1");
        taken = "low-1";
    }
    int64_t waited_ms = cr_clock_monotonic_ms() - start;
    assert_true(waited_ms >= CR_QUEUE_LOW_WAIT_MS && waited_ms < CR_QUEUE_LOW_WAIT_MS + 3000);
    cr_autofree char *next = cr_queue_take(queue);
    assert_true(next[0] != 'l');
    cr_queue_done(queue, next);
    while (cr_clock_monotonic_ms() < added + CR_QUEUE_LOW_WAIT_MS)
        poll(NULL, 0, 1);
    take_and_finish(queue, "low-2");
}

/* --- many threads --- */

enum { KEYS = 10, WORKERS = 4, ADDERS = 3, ADDS = 3000 };

struct crowd {
    struct cr_queue *queue;
    atomic_int working[KEYS];
    atomic_int wanted[KEYS]; /* counted up before each add */
    atomic_int seen[KEYS];   /* wanted as it was at the start of the latest work */
    atomic_int overlaps;
};

static void *work(void *arg)
{
    struct crowd *crowd = arg;
    for (char *key; (key = cr_queue_take(crowd->queue)); free(key)) {
        int i = atoi(key);
        if (atomic_fetch_add(&crowd->working[i], 1) != 0)
            atomic_fetch_add(&crowd->overlaps, 1);
        atomic_store(&crowd->seen[i], atomic_load(&crowd->wanted[i]));
        if (i % 3 == 0)
            cr_queue_add_backoff(crowd->queue, key, 0);
        else if (i % 3 == 1)
            cr_queue_forget(crowd->queue, key);
        atomic_fetch_sub(&crowd->working[i], 1);
        cr_queue_done(crowd->queue, key);
    }
    return NULL;
}

static void *add(void *arg)
{
    struct crowd *crowd = arg;
    for (int n = 0; n < ADDS; n++) {
        char key[8];
        int i = n % KEYS;
        snprintf(key, sizeof key, "%d", i);
        atomic_fetch_add(&crowd->wanted[i], 1);
        if (n % 7 == 0)
            cr_queue_add_after(crowd->queue, key, n % 3);
        else if (n % 5 == 0)
            cr_queue_add_low(crowd->queue, key, n % 2);
        else
            cr_queue_add(crowd->queue, key);
    }
    return NULL;
}

static bool all_seen(struct crowd *crowd)
{
    for (int i = 0; i < KEYS; i++)
        if (atomic_load(&crowd->seen[i]) != atomic_load(&crowd->wanted[i]))
            return false;
    return true;
}

static void no_key_is_worked_on_twice_at_a_time_and_no_add_is_lost(void **state)
{
    (void)state;
    static struct crowd crowd;
    crowd.queue = cr_queue_new(1, 5);
    pthread_t workers[WORKERS];
    pthread_t adders[ADDERS];
    for (size_t i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&workers[i], NULL, work, &crowd), 0);
    for (size_t i = 0; i < ADDERS; i++)
        assert_int_equal(pthread_create(&adders[i], NULL, add, &crowd), 0);
    for (size_t i = 0; i < ADDERS; i++)
        pthread_join(adders[i], NULL);
    int64_t deadline = cr_clock_monotonic_ms() + 20 * 1000;
    while (!all_seen(&crowd) && cr_clock_monotonic_ms() < deadline)
        sched_yield();
    assert_true(all_seen(&crowd));
    cr_queue_shutdown(crowd.queue);
    for (size_t i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    assert_int_equal(atomic_load(&crowd.overlaps), 0);
    cr_queue_free(crowd.queue);
}

static void what_was_found_at_the_start_is_left_until_it_is_recorded(void **state)
{
    (void)state;
    CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
    cr_queue_add(queue, "well");
    cr_queue_add(queue, "fails");
    cr_queue_add(queue, "dropped");
    cr_queue_add_after(queue, "later", 3600 * 1000);
    assert_int_equal(cr_queue_found_left(queue), 0);
    cr_queue_mark_found(queue);
    assert_int_equal(cr_queue_found_left(queue), 3);
    cr_queue_add(queue, "new");

    cr_autofree char *well = cr_queue_take(queue);
    assert_int_equal(cr_queue_found_left(queue), 3);
    cr_queue_recorded(queue, well);
    cr_queue_recorded(queue, well);
    assert_int_equal(cr_queue_found_left(queue), 2);
    cr_queue_done(queue, well);

    cr_autofree char *fails = cr_queue_take(queue);
    cr_queue_add_backoff(queue, fails, 0);
    cr_queue_done(queue, fails);
    take_and_finish(queue, "dropped"); /* as when what it asked was cancelled */
    assert_int_equal(cr_queue_found_left(queue), 1);
    cr_queue_recorded(queue, "new");
    cr_queue_recorded(queue, "dropped");
    take_and_finish(queue, "new");
    take_and_finish(queue, "fails");
    assert_int_equal(cr_queue_found_left(queue), 1); /* it may come again */
    cr_queue_recorded(queue, "fails");
    assert_int_equal(cr_queue_found_left(queue), 0);
}

static double sample(struct cr_metrics *metrics, const char *name)
{
    CR_CLEANUP(cr_buf) struct cr_buf page = CR_BUF_INIT(0);
    cr_metrics_write(metrics, &page);
    cr_autofree char *head = cr_asprintf("\n%s ", name);
    const char *at = strstr(cr_buf_text(&page), head);
    return at ? strtod(at + strlen(head), NULL) : -1;
}

#define OF              "{name=\"q\",controller=\"q\"}"
#define DEPTH(priority) "workqueue_depth{name=\"q\",controller=\"q\",priority=\"" priority "\"}"

static void what_is_counted_is_what_client_go_counts(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
    cr_queue_count_in(queue, metrics, "q");
    assert_true(sample(metrics, "workqueue_adds_total" OF) == 0);
    cr_queue_add(queue, "a");
    cr_queue_add(queue, "a"); /* waits already */
    cr_queue_add_low(queue, "low", 0);
    assert_true(sample(metrics, "workqueue_adds_total" OF) == 2);
    assert_true(sample(metrics, DEPTH("0")) == 1 && sample(metrics, DEPTH("-100")) == 1);

    cr_autofree char *key = cr_queue_take(queue);
    assert_true(sample(metrics, DEPTH("0")) == 0);
    assert_true(sample(metrics, "workqueue_queue_duration_seconds_count" OF) == 1);
    assert_true(sample(metrics, "workqueue_unfinished_work_seconds" OF) > 0);
    assert_true(sample(metrics, "workqueue_longest_running_processor_seconds" OF) > 0);
    cr_queue_add(queue, "a"); /* is wanted again meanwhile: once */
    cr_queue_add(queue, "a");
    assert_true(sample(metrics, "workqueue_adds_total" OF) == 3 && sample(metrics, DEPTH("0")) == 1);
    assert_true(sample(metrics, "workqueue_work_duration_seconds_count" OF) < 1);
    cr_queue_done(queue, key);
    assert_true(sample(metrics, "workqueue_adds_total" OF) == 3 && sample(metrics, DEPTH("0")) == 1);
    assert_true(sample(metrics, "workqueue_work_duration_seconds_count" OF) == 1);
    assert_true(sample(metrics, "workqueue_unfinished_work_seconds" OF) == 0);

    cr_queue_add_after(queue, "later", 3600 * 1000);
    cr_queue_add_backoff(queue, "failed", 3600 * 1000);
    assert_true(sample(metrics, "workqueue_retries_total" OF) == 2);
    assert_true(sample(metrics, "workqueue_adds_total" OF) == 3);
}

static void a_key_is_worked_on_for_the_earliest_event_that_added_it(void **state)
{
    (void)state;
    CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
    static const int64_t causes[] = {0, 30, 10, 20};
    for (size_t i = 0; i < cr_array_len(causes); i++) {
        cr_cause_set(causes[i]);
        cr_queue_add(queue, "a");
    }
    cr_cause_set(0);
    cr_autofree char *key = cr_queue_take(queue);
    assert_int_equal(cr_cause_get(), 10);
    cr_cause_set(40); /* an event while it is worked on is for the next time */
    cr_queue_add(queue, "a");
    cr_queue_done(queue, key);
    assert_int_equal(cr_cause_get(), 0);
    cr_autofree char *again = cr_queue_take(queue);
    assert_int_equal(cr_cause_get(), 40);
    cr_queue_done(queue, again);
    cr_queue_add(queue, "a");
    cr_autofree char *none = cr_queue_take(queue);
    assert_int_equal(cr_cause_get(), 0);
    cr_queue_done(queue, none);
}

/* A caller that asks for the queue's length makes what is due ready, and works for something else. */
static void a_key_that_is_due_is_not_worked_on_for_what_another_thread_works_for(void **state)
{
    (void)state;
    CR_CLEANUP(cr_queue) struct cr_queue *queue = cr_queue_new(1, 10);
    cr_queue_add_after(queue, "due", 1);
    cr_cause_set(10);
    while (!cr_queue_urgent(queue))
        sched_yield();
    cr_cause_set(0);
    cr_autofree char *due = cr_queue_take(queue);
    assert_int_equal(cr_cause_get(), 0);
    cr_queue_done(queue, due);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_found_at_the_start_is_left_until_it_is_recorded),
        cmocka_unit_test(what_is_counted_is_what_client_go_counts),
        cmocka_unit_test(a_key_is_worked_on_for_the_earliest_event_that_added_it),
        cmocka_unit_test(a_key_that_is_due_is_not_worked_on_for_what_another_thread_works_for),
        cmocka_unit_test(keys_come_in_order_and_each_once),
        cmocka_unit_test(a_key_added_while_it_is_worked_on_comes_again_afterwards_only),
        cmocka_unit_test(a_delayed_key_is_not_there_before_its_time),
        cmocka_unit_test(of_two_delays_the_earlier_wins),
        cmocka_unit_test(adding_now_takes_the_place_of_the_delay),
        cmocka_unit_test(a_delay_that_ends_during_the_work_counts_as_added),
        cmocka_unit_test(namespaces_are_served_round_robin),
        cmocka_unit_test(one_worker_is_left_for_other_namespaces),
        cmocka_unit_test(a_single_worker_works_for_everybody),
        cmocka_unit_test(backoff_doubles_to_its_cap_until_the_key_is_forgotten),
        cmocka_unit_test(shutdown_wakes_the_waiting_and_hands_out_nothing_more),
        cmocka_unit_test(a_sooner_delay_wakes_a_worker_that_waits_for_a_later_one),
        cmocka_unit_test(a_delay_is_watched_when_a_worker_is_called_away),
        cmocka_unit_test(the_one_that_watches_a_delay_is_not_called_while_another_is_idle),
        cmocka_unit_test(the_one_that_watches_is_called_when_all_others_work_and_the_delay_is_watched_again),
        cmocka_unit_test(a_key_of_low_priority_comes_when_no_other_waits),
        cmocka_unit_test(of_two_priorities_the_higher_wins),
        cmocka_unit_test(a_key_of_low_priority_does_not_wait_for_ever),
        cmocka_unit_test(no_key_is_worked_on_twice_at_a_time_and_no_add_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
