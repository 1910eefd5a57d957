#include "runtime/harness.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"

/* Events are sent one at a time, by a worker. */
static const char events_key[] = "//events";

struct cr_harness {
    struct cr_harness_options options;
    struct cr_queue *queue;
    struct cr_recorder *recorder;
    struct cr_own_writes *own_writes;
    struct cr_metric *lags;
};

static void on_event_waiting(void *arg)
{
    const struct cr_harness *harness = arg;
    cr_queue_add_low(harness->queue, events_key, 0);
}

static void send_event(struct cr_harness *harness)
{
    if (cr_recorder_send(harness->recorder))
        on_event_waiting(harness);
}

static const struct cr_chore *find_chore(const struct cr_harness *harness, const char *key)
{
    const struct cr_chore *chore = harness->options.chores;
    while (chore && chore->key && !cr_streq(chore->key, key))
        chore++;
    return chore && chore->key ? chore : NULL;
}

static bool reconcile(void *arg, const char *key, struct cr_reconcile_result *result, struct cr_error *err)
{
    struct cr_harness *harness = arg;
    const struct cr_chore *chore = find_chore(harness, key);
    if (cr_streq(key, events_key))
        send_event(harness);
    else if (chore)
        chore->run(harness->options.arg);
    else
        return harness->options.reconcile(harness->options.arg, key, result, err);
    result->recorded = true; /* there is nothing to record */
    return true;
}

static struct cr_queue *join(struct cr_harness *harness)
{
    const struct cr_harness_options *options = &harness->options;
    if (options->name)
        return cr_manager_add_controller(options->manager, &(struct cr_controller_options){.name = options->name,
                                                                                           .workers = options->workers,
                                                                                           .reconcile = reconcile,
                                                                                           .arg = harness});
    cr_manager_set_reconciler(options->manager, reconcile, harness);
    return cr_manager_queue(options->manager);
}

struct cr_harness *cr_harness_new(const struct cr_harness_options *options)
{
    struct cr_harness *harness = cr_new(struct cr_harness);
    harness->options = *options;
    harness->own_writes = cr_own_writes_new();
    harness->lags =
        cr_metrics_counter(options->metrics, "certroll_stale_cache_total",
                           "Reconciles that found the cache behind their own last write.", CR_LABELS("result"));
    harness->recorder = cr_recorder_new(options->client, "certroll");
    cr_recorder_defer(harness->recorder, on_event_waiting, harness);
    harness->queue = join(harness);
    return harness;
}

void cr_harness_free(struct cr_harness *harness)
{
    if (!harness)
        return;
    cr_recorder_free(harness->recorder);
    cr_own_writes_free(harness->own_writes);
    free(harness);
}

struct cr_queue *cr_harness_queue(const struct cr_harness *harness)
{
    return harness->queue;
}

struct cr_recorder *cr_harness_recorder(const struct cr_harness *harness)
{
    return harness->recorder;
}

struct cr_own_writes *cr_harness_own_writes(const struct cr_harness *harness)
{
    return harness->own_writes;
}

bool cr_harness_cache_lags(struct cr_harness *harness, const char *key)
{
    const struct cr_harness_options *options = &harness->options;
    switch (cr_own_writes_check(harness->own_writes, key, cr_clock_monotonic_ms(), options->look, options->arg)) {
    case CR_OWN_WRITES_SEEN:
        return false;
    case CR_OWN_WRITES_WAIT:
        cr_metric_add(harness->lags, CR_LABELS("waited"), 1);
        return true;
    case CR_OWN_WRITES_GIVEN_UP:
        cr_metric_add(harness->lags, CR_LABELS("given_up"), 1);
        cr_log(CR_LOG_WARN, "the cache has not seen our own write for two minutes; it is not waited for any longer",
               {options->what, key});
        return false;
    }
    return false;
}

/* Of two equal times the one that is not low counts. */
static void requeue(struct cr_reconcile_result *result, int64_t after_ms, bool low)
{
    int64_t before_ms = result->requeue_after_ms;
    bool sooner = !before_ms || after_ms < before_ms || (after_ms == before_ms && !low);
    if (!after_ms || !sooner)
        return;
    result->requeue_after_ms = after_ms;
    result->low_priority = low;
}

void cr_requeue(struct cr_reconcile_result *result, int64_t after_ms)
{
    requeue(result, after_ms, false);
}

void cr_requeue_low(struct cr_reconcile_result *result, int64_t after_ms)
{
    requeue(result, after_ms, true);
}
