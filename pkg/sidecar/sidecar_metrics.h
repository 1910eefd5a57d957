/* certroll_sidecar_*: docs/metrics.md. */
#ifndef CR_SIDECAR_SIDECAR_METRICS_H
#define CR_SIDECAR_SIDECAR_METRICS_H

#include "metrics/metrics.h"
#include "sidecar/config.h"
#include "sidecar/delivery.h"

/* Any thread may use them, once they are registered. */
struct cr_sidecar_metrics {
    struct cr_metric *state, *readings, *outputs, *triggers, *delivery, *not_after;
};

void cr_sidecar_metrics_register(struct cr_sidecar_metrics *out, struct cr_metrics *metrics);
void cr_sidecar_metrics_state(const struct cr_sidecar_metrics *metrics, const char *material,
                              enum cr_delivery_state state);
void cr_sidecar_metrics_trigger(const struct cr_sidecar_metrics *metrics, const char *material,
                                enum cr_trigger_type type, bool success);
/* Counts readings or outputs. */
void cr_sidecar_metrics_count(struct cr_metric *metric, const char *material, bool success);
void cr_sidecar_metrics_delivered(const struct cr_sidecar_metrics *metrics, const struct cr_delivery *delivery);

#endif
