/* The metrics of a shutdown manager's drains; docs/metrics.md. */
#ifndef CR_DRAIN_DRAIN_METRICS_H
#define CR_DRAIN_DRAIN_METRICS_H

#include <stdint.h>

#include "drain/drain.h"
#include "metrics/metrics.h"

struct cr_drain_metrics {
    struct cr_metric *open;
    struct cr_metric *phase;
    struct cr_metric *drains;
    struct cr_metric *duration;
    struct cr_metric *errors;
    uint64_t errors_counted; /* of the drain under way */
};

void cr_drain_metrics_init(struct cr_drain_metrics *drain, struct cr_metrics *metrics);
/* A drain begins; before its first progress. */
void cr_drain_metrics_begin(struct cr_drain_metrics *drain);
/* For one drain, by one thread at a time. */
void cr_drain_metrics_update(struct cr_drain_metrics *drain, const struct cr_drain_progress *progress);
/* It is over. */
void cr_drain_metrics_end(struct cr_drain_metrics *drain, const struct cr_drain_progress *last);

#endif
