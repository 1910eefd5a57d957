#include "runtime/queue.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "kube/backoff.h"
#include "kube/cause.h"
#include "metrics/metrics.h"
#include "runtime/delays.h"
#include "runtime/round_robin.h"

/* A queue's metrics, named as client-go's and controller-runtime's: workqueue_depth, workqueue_adds_total,
 * workqueue_queue_duration_seconds, workqueue_work_duration_seconds, workqueue_unfinished_work_seconds,
 * workqueue_longest_running_processor_seconds, workqueue_retries_total, with labels name and controller, of the depth
 * also priority
 * (https://pkg.go.dev/k8s.io/component-base/metrics/prometheus/workqueue). */

struct cr_queue_metrics {
    const char *name; /* static */
    struct cr_metric *depth;
    struct cr_metric *adds;
    struct cr_metric *queue_duration;
    struct cr_metric *work_duration;
    struct cr_metric *unfinished;
    struct cr_metric *longest;
    struct cr_metric *retries;
};

/* The state of the queue when the metrics are collected. */
struct cr_queue_state {
    size_t depth[2];       /* [low] */
    int64_t unfinished_ns; /* of all that is worked on, together */
    int64_t longest_ns;
};

#define NS_PER_SECOND 1e9
#define LABELS(m)     CR_LABELS((m)->name, (m)->name)

static void queue_metrics_init(struct cr_queue_metrics *m, struct cr_metrics *metrics, const char *name)
{
    static const char *const labels[] = {"name", "controller", NULL};
    static const char *const with_priority[] = {"name", "controller", "priority", NULL};
    static const double bounds[] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000};
    *m = (struct cr_queue_metrics){
        .name = name,
        .depth = cr_metrics_gauge(metrics, "workqueue_depth", "Keys that wait for a worker.", with_priority),
        .adds = cr_metrics_counter(metrics, "workqueue_adds_total", "Keys added to the queue.", labels),
        .queue_duration =
            cr_metrics_histogram(metrics, "workqueue_queue_duration_seconds", "How long a key waited for a worker.",
                                 labels, bounds, cr_array_len(bounds)),
        .work_duration = cr_metrics_histogram(metrics, "workqueue_work_duration_seconds",
                                              "How long a worker had a key.", labels, bounds, cr_array_len(bounds)),
        .unfinished =
            cr_metrics_gauge(metrics, "workqueue_unfinished_work_seconds",
                             "For how long all keys that workers have now have been worked on, together.", labels),
        .longest = cr_metrics_gauge(metrics, "workqueue_longest_running_processor_seconds",
                                    "For how long the longest of them has.", labels),
        .retries = cr_metrics_counter(metrics, "workqueue_retries_total", "Keys added for later.", labels),
    };
    cr_metric_add(m->adds, LABELS(m), 0);
    cr_metric_add(m->retries, LABELS(m), 0);
}

/* Zeroed metrics count nothing. */
static void queue_metrics_added(const struct cr_queue_metrics *m)
{
    cr_metric_add(m->adds, LABELS(m), 1);
}

static void queue_metrics_taken(const struct cr_queue_metrics *m, int64_t waited_ns)
{
    cr_metric_observe(m->queue_duration, LABELS(m), (double)waited_ns / NS_PER_SECOND);
}

static void queue_metrics_done(const struct cr_queue_metrics *m, int64_t worked_ns)
{
    cr_metric_observe(m->work_duration, LABELS(m), (double)worked_ns / NS_PER_SECOND);
}

/* Added for later, whether it failed or not, as client-go counts. */
static void queue_metrics_retried(const struct cr_queue_metrics *m)
{
    cr_metric_add(m->retries, LABELS(m), 1);
}

static void queue_metrics_set(const struct cr_queue_metrics *m, const struct cr_queue_state *state)
{
    /* As controller-runtime has them. */
    cr_metric_set(m->depth, CR_LABELS(m->name, m->name, "0"), (double)state->depth[false]);
    cr_metric_set(m->depth, CR_LABELS(m->name, m->name, "-100"), (double)state->depth[true]);
    cr_metric_set(m->unfinished, LABELS(m), (double)state->unfinished_ns / NS_PER_SECOND);
    cr_metric_set(m->longest, LABELS(m), (double)state->longest_ns / NS_PER_SECOND);
}

/* A key that is ready, worked on, delayed or has failed; others are not remembered. */
struct item {
    struct cr_delay delay;
    struct cr_round_robin_item place; /* while ready or worked on */
    TAILQ_ENTRY(item) by_age;         /* while ready */
    char *key;
    bool ready;       /* waits for a worker */
    bool working;     /* a worker has it */
    bool again;       /* was added meanwhile */
    bool low;         /* what it waits or is delayed for may come after other work */
    bool found;       /* at the start, and was not recorded since */
    int64_t ready_ms; /* since when it is ready */
    unsigned failures;
    int64_t added_ns;   /* since when it is wanted by a worker, which may be another one's still; 0: it is not */
    int64_t started_ns; /* while working */
    int64_t cause_ns;   /* cr_cause_get of the earliest that it waits for; 0: none */
};

TAILQ_HEAD(ready, item);

struct cr_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* for workers that wait for nothing else */
    pthread_cond_t due;     /* for the one that watches the next delay */
    size_t idle;            /* wait for changed; some may have been called already */
    bool watching;          /* one waits for due */
    struct cr_strmap *items;
    struct ready ready[2]; /* [low], the oldest first */
    size_t ready_len[2];
    size_t found_len;
    struct cr_round_robin *order; /* in which they are taken: by namespace */
    bool low_was_last;            /* the last one that was taken was one of low priority that had waited long */
    struct cr_delays delays;
    int64_t backoff_first_ms;
    int64_t backoff_max_ms;
    bool shut_down;
    struct cr_queue_metrics metrics;
};

static struct item *item_of(struct cr_delay *delay)
{
    return (struct item *)(void *)((char *)delay - offsetof(struct item, delay));
}

static void item_free(void *p)
{
    struct item *item = p;
    free(item->key);
    free(item);
}

struct cr_queue *cr_queue_new(int64_t backoff_first_ms, int64_t backoff_max_ms)
{
    struct cr_queue *queue = cr_new(struct cr_queue);
    cr_cond_init(&queue->changed);
    cr_cond_init(&queue->due);
    pthread_mutex_init(&queue->lock, NULL);
    queue->items = cr_strmap_new(item_free);
    TAILQ_INIT(&queue->ready[false]);
    TAILQ_INIT(&queue->ready[true]);
    queue->order = cr_round_robin_new(SIZE_MAX);
    queue->backoff_first_ms = backoff_first_ms;
    queue->backoff_max_ms = backoff_max_ms;
    return queue;
}

void cr_queue_free(struct cr_queue *queue)
{
    if (!queue)
        return;
    cr_round_robin_free(queue->order);
    cr_strmap_free(queue->items);
    cr_delays_dispose(&queue->delays);
    pthread_cond_destroy(&queue->due);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

/* --- with the lock held --- */

static struct item *find_or_add(struct cr_queue *queue, const char *key)
{
    struct item *item = cr_strmap_get(queue->items, key);
    if (item)
        return item;
    item = cr_new(struct item);
    item->key = cr_strdup(key);
    cr_strmap_set(queue->items, key, item);
    return item;
}

static void set_found(struct cr_queue *queue, struct item *item, bool found)
{
    queue->found_len += (size_t)found - (size_t)item->found;
    item->found = found;
}

static void drop_if_idle(struct cr_queue *queue, struct item *item)
{
    if (item->ready || item->working || item->failures || cr_delay_pending(&item->delay))
        return;
    set_found(queue, item, false);
    cr_strmap_remove(queue->items, item->key);
}

static void note_added(const struct cr_queue *queue, struct item *item, int64_t cause_ns)
{
    if (cause_ns && (!item->cause_ns || cause_ns < item->cause_ns))
        item->cause_ns = cause_ns;
    if (item->added_ns)
        return;
    item->added_ns = cr_clock_monotonic_ns();
    queue_metrics_added(&queue->metrics);
}

static void note_taken(const struct cr_queue *queue, struct item *item)
{
    item->started_ns = cr_clock_monotonic_ns();
    queue_metrics_taken(&queue->metrics, item->started_ns - item->added_ns);
    cr_cause_set(item->cause_ns);
    item->added_ns = 0;
    item->cause_ns = 0;
}

static void note_done(const struct cr_queue *queue, const struct item *item)
{
    queue_metrics_done(&queue->metrics, cr_clock_monotonic_ns() - item->started_ns);
    cr_cause_set(0);
}

static void line_up(struct cr_queue *queue, struct item *item, bool low)
{
    size_t len = strcspn(item->key, "/");
    /* Those of the cluster have nothing in common. */
    cr_autofree char *ns = len ? cr_strndup(item->key, len) : cr_strdup(item->key);
    item->ready = true;
    item->low = low;
    item->ready_ms = cr_clock_monotonic_ms();
    TAILQ_INSERT_TAIL(&queue->ready[low], item, by_age);
    queue->ready_len[low]++;
    cr_round_robin_add(queue->order, &item->place, ns, low);
}

/* What becomes of its place is the caller's. */
static void step_out(struct cr_queue *queue, struct item *item)
{
    item->ready = false;
    TAILQ_REMOVE(&queue->ready[item->low], item, by_age);
    queue->ready_len[item->low]--;
}

/* The one that watches is called last: another would have to take its place. One of two calls may be lost, so a worker
 * that takes something calls the next when there is more. */
static void call_worker(struct cr_queue *queue)
{
    if (queue->idle)
        pthread_cond_signal(&queue->changed);
    else if (queue->watching)
        pthread_cond_signal(&queue->due);
}

/* Normal beats low, whichever was first. cause_ns: what it is for, 0: nothing that came. True: it was not ready before.
 */
static bool make_ready(struct cr_queue *queue, struct item *item, bool low, int64_t cause_ns)
{
    if (cr_delay_pending(&item->delay)) {
        cr_delays_remove(&queue->delays, &item->delay);
        low = low && item->low;
    }
    note_added(queue, item, cause_ns);
    if (item->working) {
        item->low = low && (item->low || !item->again);
        item->again = true;
        return false;
    }
    if (item->ready && (low || !item->low))
        return false;
    bool woken = item->ready;
    if (woken) {
        step_out(queue, item);
        cr_round_robin_remove(queue->order, &item->place);
    }
    line_up(queue, item, low);
    return !woken;
}

/* What is due becomes ready; not for what the thread that happens to look works for. True: something was due. */
static bool promote(struct cr_queue *queue)
{
    bool any = false;
    int64_t now = cr_clock_monotonic_ms();
    for (struct cr_delay *first; (first = cr_delays_first(&queue->delays)) && first->due_ms <= now;)
        any = make_ready(queue, item_of(first), item_of(first)->low, 0) || any;
    return any;
}

static struct item *next_in_order(struct cr_queue *queue, bool low)
{
    struct cr_round_robin_item *place = cr_round_robin_next(queue->order, low);
    return place ? (struct item *)(void *)((char *)place - offsetof(struct item, place)) : NULL;
}

/* The next to be worked on; NULL: none is ready, or their namespaces have as many workers as they may. When one of low
 * priority has waited long, every other one is of low priority. */
static struct item *first_ready(struct cr_queue *queue)
{
    const struct item *oldest = TAILQ_FIRST(&queue->ready[true]);
    struct item *normal = next_in_order(queue, false);
    struct item *low = next_in_order(queue, true);
    bool low_is_due = low && !queue->low_was_last && oldest->ready_ms + CR_QUEUE_LOW_WAIT_MS <= cr_clock_monotonic_ms();
    queue->low_was_last = normal && low_is_due;
    return normal && !low_is_due ? normal : low;
}

/* One worker watches the next delay; to wake them all for it would be for nothing. */
static void wait_for_change(struct cr_queue *queue)
{
    const struct cr_delay *first = cr_delays_first(&queue->delays);
    if (!first || queue->watching) {
        queue->idle++;
        pthread_cond_wait(&queue->changed, &queue->lock);
        queue->idle--;
        return;
    }
    queue->watching = true;
    (void)cr_cond_wait_until(&queue->due, &queue->lock, first->due_ms);
    queue->watching = false;
}

/* Ready already: nothing to delay. An earlier time stays, and of two priorities the higher. */
static void delay(struct cr_queue *queue, struct item *item, int64_t delay_ms, bool low)
{
    int64_t due = cr_clock_monotonic_ms() + delay_ms;
    queue_metrics_retried(&queue->metrics);
    if (item->ready || item->again)
        return;
    bool pending = cr_delay_pending(&item->delay);
    item->low = low && (item->low || !pending);
    if (pending && item->delay.due_ms <= due)
        return;
    cr_delays_set(&queue->delays, &item->delay, due);
    if (cr_delays_first(&queue->delays) != &item->delay)
        return;
    if (queue->watching) /* and sleeps until the one that was first */
        pthread_cond_signal(&queue->due);
    else
        call_worker(queue);
}

/* --- the interface --- */

void cr_queue_limit_namespaces(struct cr_queue *queue, int workers)
{
    pthread_mutex_lock(&queue->lock);
    cr_round_robin_limit(queue->order, workers > 1 ? (size_t)workers - 1 : 1);
    pthread_mutex_unlock(&queue->lock);
}

static void add(struct cr_queue *queue, const char *key, int64_t delay_ms, bool low)
{
    pthread_mutex_lock(&queue->lock);
    if (!queue->shut_down && delay_ms > 0)
        delay(queue, find_or_add(queue, key), delay_ms, low);
    else if (!queue->shut_down && make_ready(queue, find_or_add(queue, key), low, cr_cause_get()))
        call_worker(queue);
    pthread_mutex_unlock(&queue->lock);
}

void cr_queue_add(struct cr_queue *queue, const char *key)
{
    add(queue, key, 0, false);
}

void cr_queue_add_after(struct cr_queue *queue, const char *key, int64_t delay_ms)
{
    add(queue, key, delay_ms, false);
}

void cr_queue_add_low(struct cr_queue *queue, const char *key, int64_t delay_ms)
{
    add(queue, key, delay_ms, true);
}

void cr_queue_add_backoff(struct cr_queue *queue, const char *key, int64_t min_delay_ms)
{
    pthread_mutex_lock(&queue->lock);
    if (!queue->shut_down) {
        struct item *item = find_or_add(queue, key);
        int64_t own = cr_backoff_delay(queue->backoff_first_ms, queue->backoff_max_ms, item->failures);
        if (item->failures < 1000)
            item->failures++;
        delay(queue, item, own > min_delay_ms ? own : min_delay_ms, false);
    }
    pthread_mutex_unlock(&queue->lock);
}

void cr_queue_forget(struct cr_queue *queue, const char *key)
{
    pthread_mutex_lock(&queue->lock);
    struct item *item = cr_strmap_get(queue->items, key);
    if (item) {
        item->failures = 0;
        drop_if_idle(queue, item);
    }
    pthread_mutex_unlock(&queue->lock);
}

char *cr_queue_take(struct cr_queue *queue)
{
    char *key = NULL;
    pthread_mutex_lock(&queue->lock);
    (void)promote(queue);
    struct item *item = first_ready(queue);
    while (!queue->shut_down && !item) {
        wait_for_change(queue);
        (void)promote(queue);
        item = first_ready(queue);
    }
    if (!queue->shut_down) {
        step_out(queue, item);
        cr_round_robin_start(queue->order, &item->place);
        item->working = true;
        note_taken(queue, item);
        key = cr_strdup(item->key);
        /* This worker may have been the one that watched. */
        if (queue->ready_len[false] || queue->ready_len[true] || (cr_delays_first(&queue->delays) && !queue->watching))
            call_worker(queue);
    }
    pthread_mutex_unlock(&queue->lock);
    return key;
}

void cr_queue_done(struct cr_queue *queue, const char *key)
{
    pthread_mutex_lock(&queue->lock);
    struct item *item = cr_strmap_get(queue->items, key);
    if (item) {
        item->working = false;
        cr_round_robin_done(queue->order, &item->place);
        note_done(queue, item);
        if (item->again && !queue->shut_down) {
            item->again = false;
            (void)make_ready(queue, item, item->low, 0);
        }
        drop_if_idle(queue, item);
        /* Also one that waited for its namespace to have a worker less. */
        if (queue->ready_len[false] || queue->ready_len[true])
            call_worker(queue);
    }
    pthread_mutex_unlock(&queue->lock);
}

void cr_queue_shutdown(struct cr_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->shut_down = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_cond_broadcast(&queue->due);
    pthread_mutex_unlock(&queue->lock);
}

void cr_queue_mark_found(struct cr_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(queue->items, &it);) {
        struct item *item = it.value;
        set_found(queue, item, item->ready);
    }
    pthread_mutex_unlock(&queue->lock);
}

void cr_queue_recorded(struct cr_queue *queue, const char *key)
{
    pthread_mutex_lock(&queue->lock);
    struct item *item = cr_strmap_get(queue->items, key);
    if (item)
        set_found(queue, item, false);
    pthread_mutex_unlock(&queue->lock);
}

size_t cr_queue_found_left(struct cr_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    size_t left = queue->found_len;
    pthread_mutex_unlock(&queue->lock);
    return left;
}

static size_t count_ready(struct cr_queue *queue, bool with_low)
{
    pthread_mutex_lock(&queue->lock);
    if (promote(queue))
        call_worker(queue);
    size_t len = queue->ready_len[false] + (with_low ? queue->ready_len[true] : 0);
    pthread_mutex_unlock(&queue->lock);
    return len;
}

size_t cr_queue_len(struct cr_queue *queue)
{
    return count_ready(queue, true);
}

size_t cr_queue_urgent(struct cr_queue *queue)
{
    return count_ready(queue, false);
}

/* --- metrics --- */

static void collect(void *arg)
{
    struct cr_queue *queue = arg;
    struct cr_queue_state state = {0};
    pthread_mutex_lock(&queue->lock);
    if (promote(queue))
        call_worker(queue);
    int64_t now_ns = cr_clock_monotonic_ns();
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(queue->items, &it);) {
        const struct item *item = it.value;
        int64_t worked_ns = item->working ? now_ns - item->started_ns : 0;
        if (item->added_ns)
            state.depth[item->low]++;
        state.unfinished_ns += worked_ns;
        if (worked_ns > state.longest_ns)
            state.longest_ns = worked_ns;
    }
    pthread_mutex_unlock(&queue->lock);
    queue_metrics_set(&queue->metrics, &state);
}

void cr_queue_count_in(struct cr_queue *queue, struct cr_metrics *metrics, const char *name)
{
    queue_metrics_init(&queue->metrics, metrics, name);
    cr_metrics_collect(metrics, collect, queue);
}
