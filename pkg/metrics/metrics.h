/* Counters, gauges and histograms in the Prometheus text format (version 0.0.4). Thread-safe. Metrics are registered
 * once at start; label values come later. Borrowed handles live as long as the registry. */
#ifndef CR_METRICS_METRICS_H
#define CR_METRICS_METRICS_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/cleanup.h"

struct cr_metrics;
struct cr_metric;

struct cr_metrics *cr_metrics_new(void);
void cr_metrics_free(struct cr_metrics *metrics);
CR_DEFINE_CLEANUP(cr_metrics, struct cr_metrics, cr_metrics_free)

/* labels: NULL-terminated names, at most 6; NULL for none. Names are static strings. */
struct cr_metric *cr_metrics_counter(struct cr_metrics *metrics, const char *name, const char *help,
                                     const char *const *labels);
struct cr_metric *cr_metrics_gauge(struct cr_metrics *metrics, const char *name, const char *help,
                                   const char *const *labels);
/* bounds: ascending upper bounds without +Inf, in base units (seconds). */
struct cr_metric *cr_metrics_histogram(struct cr_metrics *metrics, const char *name, const char *help,
                                       const char *const *labels, const double *bounds, size_t count);

/* values: as many as labels (NULL for none). A NULL metric is a no-op, so that callers need no registry in tests. */
void cr_metric_add(struct cr_metric *metric, const char *const *values, double amount); /* counter, gauge */
void cr_metric_set(struct cr_metric *metric, const char *const *values, double value);  /* gauge */
void cr_metric_observe(struct cr_metric *metric, const char *const *values, double value);
/* Drops one series, so that a deleted policy leaves none behind. */
void cr_metric_remove(struct cr_metric *metric, const char *const *values);

#define CR_LABELS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Appends the whole exposition. */
void cr_metrics_write(struct cr_metrics *metrics, struct cr_buf *out);

#endif
