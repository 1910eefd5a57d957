/* A queue's metrics, named as client-go's and controller-runtime's: workqueue_depth, workqueue_adds_total,
 * workqueue_queue_duration_seconds, workqueue_work_duration_seconds, workqueue_unfinished_work_seconds,
 * workqueue_longest_running_processor_seconds, workqueue_retries_total, with labels name and controller, of the depth
 * also priority
 * (https://pkg.go.dev/k8s.io/component-base/metrics/prometheus/workqueue). Private to pkg/runtime. */
#ifndef CR_RUNTIME_QUEUE_METRICS_H
#define CR_RUNTIME_QUEUE_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "metrics/metrics.h"

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

void cr_queue_metrics_init(struct cr_queue_metrics *m, struct cr_metrics *metrics, const char *name);
/* Zeroed metrics count nothing. */
void cr_queue_metrics_added(const struct cr_queue_metrics *m);
void cr_queue_metrics_taken(const struct cr_queue_metrics *m, int64_t waited_ns);
void cr_queue_metrics_done(const struct cr_queue_metrics *m, int64_t worked_ns);
/* Added for later, whether it failed or not, as client-go counts. */
void cr_queue_metrics_retried(const struct cr_queue_metrics *m);
void cr_queue_metrics_set(const struct cr_queue_metrics *m, const struct cr_queue_state *state);

#endif
