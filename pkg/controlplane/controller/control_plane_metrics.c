#include "controlplane/controller/control_plane_metrics.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strvec.h"

struct cr_control_plane_metrics {
    struct cr_metric *objects;
    struct cr_metric *components;
    struct cr_metric *conditions;
    struct cr_metric *ca_not_after;
    struct cr_metric *restarting;
    struct cr_metric *restarts;
    struct cr_metric *restart_seconds;
    struct cr_metric *renewed;

    struct cr_strvec shown_components;
    char *shown_node, *shown_component; /* of restarting; NULL: none */
};

static const char *const component_states[] = {"loaded", "soon", "restart_needed", "unknown"};
static const char *const pkis[] = {"cluster", "etcd", "front_proxy"};
static const char *const kinds[] = {"nodes", "namespaces", "token_secrets", "workloads"};

struct cr_control_plane_metrics *cr_control_plane_metrics_new(struct cr_metrics *metrics)
{
    static const double bounds[] = {1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1800};
    struct cr_control_plane_metrics *m = cr_new(struct cr_control_plane_metrics);
    m->objects = cr_metrics_gauge(metrics, "certroll_control_plane_objects",
                                  "What follows the files of the control plane, and how many of them have converged.",
                                  CR_LABELS("kind", "state"));
    m->components =
        cr_metrics_gauge(metrics, "certroll_control_plane_component_nodes",
                         "Nodes of a component, by the worst of its files.", CR_LABELS("component", "state"));
    m->conditions = cr_metrics_gauge(metrics, "certroll_control_plane_condition",
                                     "Conditions of the ControlPlanePolicy that counts: 1 is True.", CR_LABELS("type"));
    m->ca_not_after = cr_metrics_gauge(metrics, "certroll_control_plane_ca_not_after_timestamp_seconds",
                                       "When the first CA ends that leaves of the control plane in use are of, in "
                                       "seconds since the epoch.",
                                       CR_LABELS("pki"));
    m->restarting =
        cr_metrics_gauge(metrics, "certroll_control_plane_restarting",
                         "The component that is being restarted; always 1.", CR_LABELS("node", "component"));
    m->restarts =
        cr_metrics_counter(metrics, "certroll_control_plane_restarts_total",
                           "Restarts of components that have come to their end.", CR_LABELS("component", "outcome"));
    m->restart_seconds = cr_metrics_histogram(metrics, "certroll_control_plane_restart_duration_seconds",
                                              "How long a restart took, from the decision to the proof.",
                                              CR_LABELS("component"), bounds, cr_array_len(bounds));
    m->renewed = cr_metrics_counter(metrics, "certroll_control_plane_token_secrets_renewed_total",
                                    "Token Secrets whose token was taken away so that a new one is made.", NULL);
    return m;
}

void cr_control_plane_metrics_free(struct cr_control_plane_metrics *m)
{
    if (!m)
        return;
    cr_strvec_dispose(&m->shown_components);
    free(m->shown_node);
    free(m->shown_component);
    free(m);
}

/* --- gauges --- */

static void show_objects(const struct cr_control_plane_metrics *m, const struct cr_control_plane_status *status)
{
    const struct cr_control_plane_count *const counts[] = {&status->nodes, &status->namespaces, &status->token_secrets,
                                                           &status->workloads};
    for (size_t i = 0; i < cr_array_len(counts); i++) {
        cr_metric_set(m->objects, CR_LABELS(kinds[i], "total"), (double)counts[i]->total);
        cr_metric_set(m->objects, CR_LABELS(kinds[i], "converged"), (double)counts[i]->converged);
    }
}

static void remove_components(struct cr_control_plane_metrics *m)
{
    for (size_t i = 0; i < m->shown_components.len; i++)
        for (size_t s = 0; s < cr_array_len(component_states); s++)
            cr_metric_remove(m->components, CR_LABELS(m->shown_components.items[i], component_states[s]));
    cr_strvec_dispose(&m->shown_components);
    m->shown_components = (struct cr_strvec){0};
}

static bool is_listed(const struct cr_control_plane_status *status, const char *component)
{
    for (size_t i = 0; i < status->consumers_len; i++)
        if (cr_streq(status->consumers[i].component, component))
            return true;
    return false;
}

static void show_components(struct cr_control_plane_metrics *m, const struct cr_control_plane_status *status)
{
    bool gone = false;
    for (size_t i = 0; i < m->shown_components.len; i++)
        gone = gone || !is_listed(status, m->shown_components.items[i]);
    if (gone)
        remove_components(m);
    for (size_t i = 0; i < status->consumers_len; i++) {
        const struct cr_control_plane_consumer_status *consumer = &status->consumers[i];
        const int64_t counts[] = {consumer->loaded, consumer->soon, consumer->restart_needed, consumer->unknown};
        for (size_t s = 0; s < cr_array_len(component_states); s++)
            cr_metric_set(m->components, CR_LABELS(consumer->component, component_states[s]), (double)counts[s]);
        cr_strvec_add_unique(&m->shown_components, consumer->component);
    }
}

static void show_conditions(const struct cr_control_plane_metrics *m, const struct cr_control_plane_status *status)
{
    for (size_t i = 0; i < CR_CONTROL_PLANE_CONDITIONS; i++) {
        const char *const *labels = CR_LABELS(cr_control_plane_condition_types[i]);
        if (status->conditions[i].reason)
            cr_metric_set(m->conditions, labels, status->conditions[i].status ? 1 : 0);
        else
            cr_metric_remove(m->conditions, labels);
    }
}

static void show_cas(const struct cr_control_plane_metrics *m, const struct cr_control_plane_status *status)
{
    const int64_t ends[] = {status->cluster.not_after_ms, status->etcd.not_after_ms, status->front_proxy.not_after_ms};
    for (size_t i = 0; i < cr_array_len(ends); i++) {
        if (ends[i])
            cr_metric_set(m->ca_not_after, CR_LABELS(pkis[i]), (double)ends[i] / 1000.0);
        else
            cr_metric_remove(m->ca_not_after, CR_LABELS(pkis[i]));
    }
}

static void show_restarting(struct cr_control_plane_metrics *m, const struct cr_control_plane_status *status)
{
    if (m->shown_node)
        cr_metric_remove(m->restarting, CR_LABELS(m->shown_node, m->shown_component));
    bool now = status->restarting_token && status->restarting_node && status->restarting_component;
    cr_strset(&m->shown_node, now ? status->restarting_node : NULL);
    cr_strset(&m->shown_component, now ? status->restarting_component : NULL);
    if (now)
        cr_metric_set(m->restarting, CR_LABELS(m->shown_node, m->shown_component), 1);
}

void cr_control_plane_metrics_show(struct cr_control_plane_metrics *m, const struct cr_control_plane_status *status)
{
    show_objects(m, status);
    show_components(m, status);
    show_conditions(m, status);
    show_cas(m, status);
    show_restarting(m, status);
}

void cr_control_plane_metrics_forget(struct cr_control_plane_metrics *m)
{
    static const struct cr_control_plane_status nothing;
    remove_components(m);
    show_conditions(m, &nothing);
    show_cas(m, &nothing);
    show_restarting(m, &nothing);
    for (size_t i = 0; i < cr_array_len(kinds); i++) {
        cr_metric_remove(m->objects, CR_LABELS(kinds[i], "total"));
        cr_metric_remove(m->objects, CR_LABELS(kinds[i], "converged"));
    }
}

/* --- counts --- */

void cr_control_plane_metrics_recorded(struct cr_control_plane_metrics *m, const struct cr_control_plane_status *before,
                                       const struct cr_control_plane_status *after, int64_t now_ms)
{
    if (!before->restarting_token || before->restarting_revoked ||
        cr_streq(before->restarting_token, after->restarting_token))
        return;
    bool failed = cr_streq(after->failed_token, before->restarting_token);
    int64_t took_ms = now_ms - before->restarting_since_ms;
    cr_metric_add(m->restarts, CR_LABELS(before->restarting_component, failed ? "failed" : "done"), 1);
    if (!failed && before->restarting_since_ms && took_ms >= 0)
        cr_metric_observe(m->restart_seconds, CR_LABELS(before->restarting_component), (double)took_ms / 1000.0);
}

void cr_control_plane_metrics_renewed(struct cr_control_plane_metrics *m, size_t token_secrets)
{
    if (token_secrets)
        cr_metric_add(m->renewed, NULL, (double)token_secrets);
}
