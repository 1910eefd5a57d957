/* Counters, gauges and histograms in the Prometheus text format (version 0.0.4,
 * https://prometheus.io/docs/instrumenting/exposition_formats/). Thread-safe. Metrics are registered once at start;
 * label values come later. Borrowed handles live as long as the registry.
 *
 * Nothing here fails: a registration that breaks the format's rules is a bug, logged once, and gives NULL; a NULL
 * metric is a no-op, so that callers need no registry in tests. A metric keeps at most CR_METRICS_MAX_SERIES series;
 * updates of more are dropped and counted in certroll_metrics_dropped_updates_total, so that label values cannot eat
 * memory. */
#ifndef CR_METRICS_METRICS_H
#define CR_METRICS_METRICS_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/cleanup.h"

enum {
    CR_METRICS_MAX_LABELS = 6,
    CR_METRICS_MAX_SERIES = 20000, /* 5,000 policies with four states each */
    CR_METRICS_MAX_VALUE = 256,    /* bytes of a label value; the rest is cut off */
};

struct cr_metrics;
struct cr_metric;

struct cr_metrics *cr_metrics_new(void);
void cr_metrics_free(struct cr_metrics *metrics);
CR_DEFINE_CLEANUP(cr_metrics, struct cr_metrics, cr_metrics_free)

/* labels: NULL-terminated names, at most 6; NULL for none. All texts are static. A metric without labels is shown from
 * the start, with 0. Registering the same name again gives the same metric when it is of the same kind. A NULL registry
 * gives NULL. */
struct cr_metric *cr_metrics_counter(struct cr_metrics *metrics, const char *name, const char *help,
                                     const char *const *labels);
struct cr_metric *cr_metrics_gauge(struct cr_metrics *metrics, const char *name, const char *help,
                                   const char *const *labels);
/* bounds: ascending upper bounds without +Inf, in base units (seconds); copied. */
struct cr_metric *cr_metrics_histogram(struct cr_metrics *metrics, const char *name, const char *help,
                                       const char *const *labels, const double *bounds, size_t count);

/* fn is called before each cr_metrics_write, for values that are only read when the metrics are collected. It may
 * update metrics, and outlives them with arg; in the thread that writes. Not while another thread writes. A NULL
 * registry: nothing. */
void cr_metrics_collect(struct cr_metrics *metrics, void (*fn)(void *arg), void *arg);

/* An update allocates nothing once its series is there: without labels it is an addition, with labels one look-up.
 *
 * values: as many as labels (NULL for none; a missing or NULL value is ""). What is not printable ASCII becomes '?':
 * one byte of invalid UTF-8 makes Prometheus drop the whole page. An update of another kind than the metric's, a
 * negative amount for a counter and NaN for a counter or histogram are ignored. */
void cr_metric_add(struct cr_metric *metric, const char *const *values, double amount); /* counter, gauge */
void cr_metric_set(struct cr_metric *metric, const char *const *values, double value);  /* gauge */
void cr_metric_observe(struct cr_metric *metric, const char *const *values, double value);
/* Drops one series, so that a deleted policy leaves none behind. */
void cr_metric_remove(struct cr_metric *metric, const char *const *values);

#define CR_LABELS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Appends the whole exposition to out, which has no cap; metrics by name, series by their labels. */
void cr_metrics_write(struct cr_metrics *metrics, struct cr_buf *out);

#endif
