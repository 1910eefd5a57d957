#include "controlplane/agent/agent_metrics.h"

#include "base/strings.h"

void cr_node_agent_metrics_init(struct cr_node_agent_metrics *out, struct cr_metrics *metrics)
{
    static const double bounds[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
    *out = (struct cr_node_agent_metrics){
        .not_after = cr_metrics_gauge(metrics, "certroll_node_file_not_after_timestamp_seconds",
                                      "When what a file of the node holds ends, seconds since the epoch.",
                                      CR_LABELS("component", "parameter", "path")),
        .loaded = cr_metrics_gauge(metrics, "certroll_node_file_loaded",
                                   "Whether the running program has what the file has, by state; always 1.",
                                   CR_LABELS("component", "parameter", "via", "role", "path", "state")),
        .serving = cr_metrics_gauge(metrics, "certroll_node_component_serving",
                                    "Whether a component of the node answers, and well.", CR_LABELS("component")),
        .restarts =
            cr_metrics_counter(metrics, "certroll_node_restarts_total",
                               "Restarts that came to their end, by their result.", CR_LABELS("component", "result")),
        .under_way =
            cr_metrics_gauge(metrics, "certroll_node_restart_under_way",
                             "A restart that was begun and has not come to its end; always 1.", CR_LABELS("component")),
        .look = cr_metrics_histogram(metrics, "certroll_node_look_duration_seconds",
                                     "How long it took to look at the node and to ask its ports.", NULL, bounds,
                                     cr_array_len(bounds)),
        .unreachable = cr_metrics_gauge(metrics, "certroll_node_api_unreachable_seconds",
                                        "For how long the API server could not be reached; 0 when it can.", NULL),
        .api_errors = cr_metrics_counter(metrics, "certroll_node_api_errors_total",
                                         "Requests to the API server that failed, by what they were for.",
                                         CR_LABELS("operation")),
        .troubles = cr_metrics_gauge(metrics, "certroll_node_troubles",
                                     "What could not be told about the node's files; see the report.", NULL),
    };
}

static const char *state_of(const struct cr_node_file *file)
{
    return cr_node_loaded_name(file->loaded);
}

static bool same_row(const struct cr_node_file *a, const struct cr_node_file *b)
{
    return a->role == b->role && cr_streq(a->component, b->component) && cr_streq(a->parameter, b->parameter) &&
           cr_streq(a->via, b->via) && cr_streq(a->path, b->path);
}

static const struct cr_node_file *find(const struct cr_node_report *report, const struct cr_node_file *file)
{
    for (size_t i = 0; i < report->files_len; i++)
        if (same_row(&report->files[i], file))
            return &report->files[i];
    return NULL;
}

/* What a row has no more; the same path by another role keeps the end of the file. */
static void drop_row(const struct cr_node_agent_metrics *metrics, const struct cr_node_file *file,
                     const struct cr_node_file *now)
{
    if (!now || !now->not_after_ms)
        cr_metric_remove(metrics->not_after, CR_LABELS(file->component, file->parameter, cr_or_empty(file->path)));
    if (!now || now->loaded != file->loaded)
        cr_metric_remove(metrics->loaded, CR_LABELS(file->component, file->parameter, cr_or_empty(file->via),
                                                    cr_role_name(file->role), cr_or_empty(file->path), state_of(file)));
}

static void show_row(const struct cr_node_agent_metrics *metrics, const struct cr_node_file *file)
{
    if (file->not_after_ms)
        cr_metric_set(metrics->not_after, CR_LABELS(file->component, file->parameter, cr_or_empty(file->path)),
                      (double)file->not_after_ms / 1000);
    cr_metric_set(metrics->loaded,
                  CR_LABELS(file->component, file->parameter, cr_or_empty(file->via), cr_role_name(file->role),
                            cr_or_empty(file->path), state_of(file)),
                  1);
}

static void show_component(const struct cr_node_agent_metrics *metrics, const struct cr_node_component *component)
{
    if (component->health == CR_NODE_HEALTH_UNKNOWN)
        cr_metric_remove(metrics->serving, CR_LABELS(component->name));
    else
        cr_metric_set(metrics->serving, CR_LABELS(component->name), component->health == CR_NODE_HEALTH_SERVING);
}

static void drop_old(const struct cr_node_agent_metrics *metrics, const struct cr_node_report *before,
                     const struct cr_node_report *report)
{
    for (size_t i = 0; i < before->files_len; i++)
        drop_row(metrics, &before->files[i], find(report, &before->files[i]));
    for (size_t i = 0; i < before->components_len; i++)
        if (!cr_node_report_component(report, before->components[i].name))
            cr_metric_remove(metrics->serving, CR_LABELS(before->components[i].name));
}

void cr_node_agent_metrics_show(const struct cr_node_agent_metrics *metrics, const struct cr_node_report *before,
                                const struct cr_node_report *report)
{
    if (before)
        drop_old(metrics, before, report);
    for (size_t i = 0; i < report->files_len; i++)
        show_row(metrics, &report->files[i]);
    for (size_t i = 0; i < report->components_len; i++)
        show_component(metrics, &report->components[i]);
    cr_metric_set(metrics->troubles, NULL, (double)report->troubles.len);
}
