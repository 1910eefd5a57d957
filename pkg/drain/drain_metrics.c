#include "drain/drain_metrics.h"

#include <math.h>

#include "base/strings.h"

static const char *const phases[] = {"idle", "delayed", "beginning", "draining", "ended"};
enum { IDLE, FIRST };

static void set_phase(struct cr_drain_metrics *drain, size_t phase)
{
    for (size_t i = 0; i < cr_array_len(phases); i++)
        cr_metric_set(drain->phase, CR_LABELS(phases[i]), i == phase);
}

void cr_drain_metrics_init(struct cr_drain_metrics *drain, struct cr_metrics *metrics)
{
    static const char *const by_phase[] = {"phase", NULL};
    static const char *const by_result[] = {"result", NULL};
    static const char *const results[] = {"drained", "timed_out", "cancelled"};
    *drain = (struct cr_drain_metrics){
        .open = cr_metrics_gauge(metrics, "certroll_shutdown_open_connections",
                                 "Connections of clients when they were last counted; NaN while nobody knows.", NULL),
        .phase = cr_metrics_gauge(metrics, "certroll_shutdown_drain_phase",
                                  "1 for the phase that the drain is in, 0 for the others.", by_phase),
        .drains =
            cr_metrics_counter(metrics, "certroll_shutdown_drains_total", "Drains that are over, by how.", by_result),
        .duration = cr_metrics_gauge(metrics, "certroll_shutdown_drain_duration_seconds",
                                     "How long the drain under way, or else the last one, has taken.", NULL),
        .errors = cr_metrics_counter(metrics, "certroll_shutdown_admin_errors_total",
                                     "Requests to the proxy that failed, or whose answer was not understood.", NULL),
    };
    for (size_t i = 0; i < cr_array_len(results); i++)
        cr_metric_add(drain->drains, CR_LABELS(results[i]), 0);
    cr_metric_set(drain->open, NULL, NAN);
    set_phase(drain, IDLE);
}

void cr_drain_metrics_begin(struct cr_drain_metrics *drain)
{
    drain->errors_counted = 0;
    cr_metric_set(drain->open, NULL, NAN);
    cr_metric_set(drain->duration, NULL, 0);
}

static const char *result_label(enum cr_drain_result result)
{
    switch (result) {
    case CR_DRAIN_RESULT_DRAINED:
        return "drained";
    case CR_DRAIN_RESULT_TIMED_OUT:
        return "timed_out";
    default:
        return "cancelled";
    }
}

void cr_drain_metrics_update(struct cr_drain_metrics *drain, const struct cr_drain_progress *progress)
{
    const double ms_per_s = 1000;
    cr_metric_set(drain->open, NULL, progress->known ? (double)progress->open : NAN);
    cr_metric_set(drain->duration, NULL, (double)progress->elapsed_ms / ms_per_s);
    cr_metric_add(drain->errors, NULL, (double)(progress->errors - drain->errors_counted));
    drain->errors_counted = progress->errors;
    set_phase(drain, FIRST + progress->phase);
}

void cr_drain_metrics_end(struct cr_drain_metrics *drain, const struct cr_drain_progress *last)
{
    cr_drain_metrics_update(drain, last);
    cr_metric_add(drain->drains, CR_LABELS(result_label(last->result)), 1);
}
