#include "runtime/workers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"

/* Errors that only a person or another change heals are not tried again at the pace of the network's. */
enum { PERSON_MS = 10 * 1000 };

struct cr_workers {
    struct cr_loop *loop;
    struct cr_workers_options options;
    pthread_t *threads;
    int started;
    int ended; /* loop thread */
};

static const char *result_word(bool ok, const struct cr_reconcile_result *result, const struct cr_error *err)
{
    if (ok)
        return result->requeue_after_ms > 0 ? "requeue_after" : "success";
    return err->kind == CR_ERR_CANCELLED ? "cancelled" : "error";
}

static int64_t least_delay(const struct cr_error *err)
{
    int64_t person = 0;
    if (err->kind == CR_ERR_INVALID || err->kind == CR_ERR_FORBIDDEN || err->kind == CR_ERR_INTERNAL)
        person = PERSON_MS;
    return err->retry_after_ms > person ? err->retry_after_ms : person;
}

/* The whole requeue policy. */
static void requeue(struct cr_queue *queue, const char *key, bool ok, const struct cr_reconcile_result *result,
                    const struct cr_error *err)
{
    if (ok) {
        cr_queue_forget(queue, key);
        if (result->requeue_after_ms > 0 && result->low_priority)
            cr_queue_add_low(queue, key, result->requeue_after_ms);
        else if (result->requeue_after_ms > 0)
            cr_queue_add_after(queue, key, result->requeue_after_ms);
        return;
    }
    if (err->kind == CR_ERR_CANCELLED)
        return;
    cr_queue_add_backoff(queue, key, least_delay(err));
    /* A conflict means that another writer was faster: part of the work. */
    cr_log(err->kind == CR_ERR_CONFLICT ? CR_LOG_INFO : CR_LOG_WARN, "a reconcile failed and is tried again",
           {"key", key}, {"kind", cr_error_kind_name(err->kind)}, {"error", err->text});
}

static void work_on(const struct cr_workers_options *o, const char *key)
{
    struct cr_reconcile_result result = {0};
    struct cr_error err = {0};
    int64_t start = cr_clock_monotonic_ms();
    bool ok = o->reconcile(o->arg, key, &result, &err);
    cr_metric_observe(o->seconds, NULL, (double)(cr_clock_monotonic_ms() - start) / 1000);
    cr_metric_add(o->total, CR_LABELS(result_word(ok, &result, &err)), 1);
    if (result.recorded)
        cr_queue_recorded(o->queue, key);
    requeue(o->queue, key, ok, &result, &err);
    cr_queue_done(o->queue, key);
}

static void worker_ended(void *arg)
{
    struct cr_workers *workers = arg;
    if (++workers->ended == workers->started)
        workers->options.on_ended(workers->options.on_ended_arg);
}

static void *worker(void *arg)
{
    struct cr_workers *workers = arg;
    for (char *key; (key = cr_queue_take(workers->options.queue)); free(key))
        work_on(&workers->options, key);
    cr_loop_post(workers->loop, worker_ended, workers);
    return NULL;
}

static void start_threads(struct cr_workers *workers)
{
    for (int i = 0; i < workers->options.count; i++)
        if (cr_thread_start(&workers->threads[workers->started], worker, workers) == 0)
            workers->started++;
}

struct cr_workers *cr_workers_start(struct cr_loop *loop, const struct cr_workers_options *options)
{
    struct cr_workers *workers = cr_new(struct cr_workers);
    workers->loop = loop;
    workers->options = *options;
    workers->threads = cr_calloc((size_t)options->count, sizeof *workers->threads);
    start_threads(workers);
    if (!workers->started) {
        cr_log(CR_LOG_ERROR, "no worker thread can be started");
        abort();
    }
    return workers;
}

void cr_workers_free(struct cr_workers *workers)
{
    if (!workers)
        return;
    for (int i = 0; i < workers->started; i++)
        pthread_join(workers->threads[i], NULL);
    free(workers->threads);
    free(workers);
}
