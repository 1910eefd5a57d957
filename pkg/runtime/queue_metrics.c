#include "runtime/queue_metrics.h"

#include <stdbool.h>

#include "base/strings.h"

#define NS_PER_SECOND 1e9
#define LABELS(m)     CR_LABELS((m)->name, (m)->name)

void cr_queue_metrics_init(struct cr_queue_metrics *m, struct cr_metrics *metrics, const char *name)
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

void cr_queue_metrics_added(const struct cr_queue_metrics *m)
{
    cr_metric_add(m->adds, LABELS(m), 1);
}

void cr_queue_metrics_taken(const struct cr_queue_metrics *m, int64_t waited_ns)
{
    cr_metric_observe(m->queue_duration, LABELS(m), (double)waited_ns / NS_PER_SECOND);
}

void cr_queue_metrics_done(const struct cr_queue_metrics *m, int64_t worked_ns)
{
    cr_metric_observe(m->work_duration, LABELS(m), (double)worked_ns / NS_PER_SECOND);
}

void cr_queue_metrics_retried(const struct cr_queue_metrics *m)
{
    cr_metric_add(m->retries, LABELS(m), 1);
}

void cr_queue_metrics_set(const struct cr_queue_metrics *m, const struct cr_queue_state *state)
{
    /* As controller-runtime has them. */
    cr_metric_set(m->depth, CR_LABELS(m->name, m->name, "0"), (double)state->depth[false]);
    cr_metric_set(m->depth, CR_LABELS(m->name, m->name, "-100"), (double)state->depth[true]);
    cr_metric_set(m->unfinished, LABELS(m), (double)state->unfinished_ns / NS_PER_SECOND);
    cr_metric_set(m->longest, LABELS(m), (double)state->longest_ns / NS_PER_SECOND);
}
