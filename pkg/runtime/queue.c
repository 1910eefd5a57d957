#include "runtime/queue.h"

#include <pthread.h>
#include <string.h>
#include <sys/queue.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/strmap.h"
#include "kube/backoff.h"
#include "runtime/delays.h"

/* A key that is ready, worked on, delayed or has failed; others are not remembered. */
struct item {
    struct cr_delay delay;
    TAILQ_ENTRY(item) link; /* while ready */
    char *key;
    bool ready;   /* waits for a worker */
    bool working; /* a worker has it */
    bool again;   /* was added meanwhile */
    unsigned failures;
};

struct cr_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct cr_strmap *items;
    TAILQ_HEAD(ready, item) ready;
    size_t ready_len;
    struct cr_delays delays;
    int64_t backoff_first_ms;
    int64_t backoff_max_ms;
    bool shut_down;
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
    pthread_mutex_init(&queue->lock, NULL);
    queue->items = cr_strmap_new(item_free);
    TAILQ_INIT(&queue->ready);
    queue->backoff_first_ms = backoff_first_ms;
    queue->backoff_max_ms = backoff_max_ms;
    return queue;
}

void cr_queue_free(struct cr_queue *queue)
{
    if (!queue)
        return;
    cr_strmap_free(queue->items);
    cr_delays_dispose(&queue->delays);
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

static void drop_if_idle(struct cr_queue *queue, struct item *item)
{
    if (!item->ready && !item->working && !item->failures && !cr_delay_pending(&item->delay))
        cr_strmap_remove(queue->items, item->key);
}

static void make_ready(struct cr_queue *queue, struct item *item)
{
    cr_delays_remove(&queue->delays, &item->delay);
    if (item->working) {
        item->again = true;
        return;
    }
    if (item->ready)
        return;
    item->ready = true;
    TAILQ_INSERT_TAIL(&queue->ready, item, link);
    queue->ready_len++;
    pthread_cond_signal(&queue->changed);
}

/* What is due becomes ready. */
static void promote(struct cr_queue *queue)
{
    int64_t now = cr_clock_monotonic_ms();
    for (struct cr_delay *first; (first = cr_delays_first(&queue->delays)) && first->due_ms <= now;)
        make_ready(queue, item_of(first));
}

static void wait_for_change(struct cr_queue *queue)
{
    const struct cr_delay *first = cr_delays_first(&queue->delays);
    if (first)
        (void)cr_cond_wait_until(&queue->changed, &queue->lock, first->due_ms);
    else
        pthread_cond_wait(&queue->changed, &queue->lock);
}

/* Ready already: nothing to delay. An earlier time stays. */
static void delay(struct cr_queue *queue, struct item *item, int64_t delay_ms)
{
    int64_t due = cr_clock_monotonic_ms() + delay_ms;
    if (item->ready || item->again || (cr_delay_pending(&item->delay) && item->delay.due_ms <= due))
        return;
    cr_delays_set(&queue->delays, &item->delay, due);
    /* The workers sleep until the one that was first. */
    if (cr_delays_first(&queue->delays) == &item->delay)
        pthread_cond_signal(&queue->changed);
}

/* --- the interface --- */

void cr_queue_add(struct cr_queue *queue, const char *key)
{
    pthread_mutex_lock(&queue->lock);
    if (!queue->shut_down)
        make_ready(queue, find_or_add(queue, key));
    pthread_mutex_unlock(&queue->lock);
}

void cr_queue_add_after(struct cr_queue *queue, const char *key, int64_t delay_ms)
{
    if (delay_ms <= 0) {
        cr_queue_add(queue, key);
        return;
    }
    pthread_mutex_lock(&queue->lock);
    if (!queue->shut_down)
        delay(queue, find_or_add(queue, key), delay_ms);
    pthread_mutex_unlock(&queue->lock);
}

void cr_queue_add_backoff(struct cr_queue *queue, const char *key, int64_t min_delay_ms)
{
    pthread_mutex_lock(&queue->lock);
    if (!queue->shut_down) {
        struct item *item = find_or_add(queue, key);
        int64_t own = cr_backoff_delay(queue->backoff_first_ms, queue->backoff_max_ms, item->failures);
        if (item->failures < 1000)
            item->failures++;
        delay(queue, item, own > min_delay_ms ? own : min_delay_ms);
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
    promote(queue);
    while (!queue->shut_down && TAILQ_EMPTY(&queue->ready)) {
        wait_for_change(queue);
        promote(queue);
    }
    if (!queue->shut_down) {
        struct item *item = TAILQ_FIRST(&queue->ready);
        TAILQ_REMOVE(&queue->ready, item, link);
        queue->ready_len--;
        item->ready = false;
        item->working = true;
        key = cr_strdup(item->key);
        /* This worker may have been the one that slept until the next delay. */
        if (cr_delays_first(&queue->delays))
            pthread_cond_signal(&queue->changed);
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
        if (item->again && !queue->shut_down) {
            item->again = false;
            make_ready(queue, item);
        }
        drop_if_idle(queue, item);
    }
    pthread_mutex_unlock(&queue->lock);
}

void cr_queue_shutdown(struct cr_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->shut_down = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

size_t cr_queue_len(struct cr_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    promote(queue);
    size_t len = queue->ready_len;
    pthread_mutex_unlock(&queue->lock);
    return len;
}
