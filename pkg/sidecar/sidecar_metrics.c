#include "sidecar/sidecar_metrics.h"

#include "base/strings.h"

static const double seconds[] = {0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800};

static const char *result_of(bool success)
{
    return success ? "success" : "error";
}

void cr_sidecar_metrics_register(struct cr_sidecar_metrics *out, struct cr_metrics *metrics)
{
    *out = (struct cr_sidecar_metrics){
        .state = cr_metrics_gauge(metrics, "certroll_sidecar_material_state",
                                  "The state that a material is in; always 1.", CR_LABELS("material", "state")),
        .readings = cr_metrics_counter(metrics, "certroll_sidecar_readings_total", "Readings of a material's files.",
                                       CR_LABELS("material", "result")),
        .outputs =
            cr_metrics_counter(metrics, "certroll_sidecar_outputs_total",
                               "How often the outputs of a material were made.", CR_LABELS("material", "result")),
        .triggers = cr_metrics_counter(metrics, "certroll_sidecar_triggers_total", "Triggers that were pulled.",
                                       CR_LABELS("material", "type", "result")),
        .delivery = cr_metrics_histogram(metrics, "certroll_sidecar_delivery_seconds",
                                         "From a material that was found until its program had it.",
                                         CR_LABELS("proven"), seconds, cr_array_len(seconds)),
        .not_after = cr_metrics_gauge(metrics, "certroll_sidecar_not_after_timestamp_seconds",
                                      "When the leaf that was delivered ends.", CR_LABELS("material")),
    };
}

void cr_sidecar_metrics_state(const struct cr_sidecar_metrics *metrics, const char *material,
                              enum cr_delivery_state state)
{
    for (unsigned i = 0; i < CR_DELIVERY_STATES; i++) {
        const char *const labels[] = {material, cr_delivery_state_name((enum cr_delivery_state)i), NULL};
        if (i == state)
            cr_metric_set(metrics->state, labels, 1);
        else
            cr_metric_remove(metrics->state, labels);
    }
}

void cr_sidecar_metrics_trigger(const struct cr_sidecar_metrics *metrics, const char *material,
                                enum cr_trigger_type type, bool success)
{
    cr_metric_add(metrics->triggers, CR_LABELS(material, cr_trigger_type_names[type], result_of(success)), 1);
}

void cr_sidecar_metrics_count(struct cr_metric *metric, const char *material, bool success)
{
    cr_metric_add(metric, CR_LABELS(material, result_of(success)), 1);
}

void cr_sidecar_metrics_delivered(const struct cr_sidecar_metrics *metrics, const struct cr_delivery *delivery)
{
    bool proven = delivery->leaf_proven || delivery->trust_proven;
    if (delivery->took_ms >= 0)
        cr_metric_observe(metrics->delivery, CR_LABELS(proven ? "true" : "false"), (double)delivery->took_ms / 1000);
}
