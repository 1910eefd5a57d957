#include "kube/client_metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "kube/cause.h"

#define NS_PER_SECOND 1e9

struct cr_client_metrics {
    char *host;
    struct cr_metric *requests;
    struct cr_metric *duration;
    struct cr_metric *request_size;
    struct cr_metric *response_size;
    struct cr_metric *retries;
    struct cr_metric *watch_to_write;
    struct cr_metric *watch_bytes;
    struct cr_metric *watch_events;
    struct cr_metric *watch_lists;
    struct cr_metric *watch_restarts;
};

static void register_requests(struct cr_client_metrics *m, struct cr_metrics *metrics)
{
    static const char *const of_result[] = {"code", "method", "host", NULL};
    static const char *const of_retry[] = {"code", "verb", "host", NULL};
    static const char *const of_verb[] = {"verb", "host", NULL};
    static const double seconds[] = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
    static const double bytes[] = {64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216};
    m->requests = cr_metrics_counter(metrics, "rest_client_requests_total",
                                     "HTTP requests to the API server, those of watches among them.", of_result);
    m->duration =
        cr_metrics_histogram(metrics, "rest_client_request_duration_seconds",
                             "How long a request took, without watches.", of_verb, seconds, cr_array_len(seconds));
    m->request_size = cr_metrics_histogram(metrics, "rest_client_request_size_bytes", "Bodies of requests.", of_verb,
                                           bytes, cr_array_len(bytes));
    m->response_size =
        cr_metrics_histogram(metrics, "rest_client_response_size_bytes", "Bodies of responses, without watches.",
                             of_verb, bytes, cr_array_len(bytes));
    m->retries =
        cr_metrics_counter(metrics, "rest_client_request_retries_total", "Requests that were sent again.", of_retry);
}

static void register_watches(struct cr_client_metrics *m, struct cr_metrics *metrics)
{
    static const double seconds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5};
    static const char *const of_resource[] = {"resource", NULL};
    m->watch_to_write = cr_metrics_histogram(metrics, "certroll_watch_to_write_seconds",
                                             "From the arrival of a watch event to the first write that it led to, "
                                             "when that write is handed to its connection.",
                                             of_resource, seconds, cr_array_len(seconds));
    m->watch_bytes =
        cr_metrics_counter(metrics, "certroll_watch_received_bytes_total",
                           "Bytes of watches and of the lists they begin with, decompressed.", of_resource);
    m->watch_events = cr_metrics_counter(metrics, "certroll_watch_events_total", "Events of watches by their type.",
                                         CR_LABELS("resource", "type"));
    m->watch_lists = cr_metrics_counter(metrics, "certroll_watch_lists_total",
                                        "Full states that were read: one for each watch at its start.", of_resource);
    m->watch_restarts =
        cr_metrics_counter(metrics, "certroll_watch_restarts_total",
                           "Connections of watches that ended, by the reason.", CR_LABELS("resource", "reason"));
}

struct cr_client_metrics *cr_client_metrics_new(struct cr_metrics *metrics, const char *server)
{
    if (!metrics)
        return NULL;
    struct cr_client_metrics *m = cr_new(struct cr_client_metrics);
    const char *host = strstr(server, "://");
    host = host ? host + 3 : server;
    m->host = cr_strndup(host, strcspn(host, "/"));
    register_requests(m, metrics);
    register_watches(m, metrics);
    return m;
}

void cr_client_metrics_free(struct cr_client_metrics *m)
{
    if (!m)
        return;
    free(m->host);
    free(m);
}

/* --- requests --- */

/* <error>: client-go's word for no answer. */
static void count_code(const struct cr_client_metrics *m, struct cr_metric *metric, const char *method, int status)
{
    char code[16] = "<error>";
    if (status)
        (void)snprintf(code, sizeof code, "%d", status);
    cr_metric_add(metric, CR_LABELS(code, method, m->host), 1);
}

void cr_client_metrics_answered(const struct cr_client_metrics *m, const char *method, int status)
{
    if (m)
        count_code(m, m->requests, method, status);
}

void cr_client_metrics_exchanged(const struct cr_client_metrics *m, const char *method,
                                 const struct cr_exchange_size *size)
{
    if (!m)
        return;
    const char *const *labels = CR_LABELS(method, m->host);
    cr_metric_observe(m->duration, labels, (double)size->took_ns / NS_PER_SECOND);
    cr_metric_observe(m->request_size, labels, (double)size->sent);
    cr_metric_observe(m->response_size, labels, (double)size->received);
}

void cr_client_metrics_retried(const struct cr_client_metrics *m, const char *method, int status)
{
    if (m)
        count_code(m, m->retries, method, status);
}

void cr_client_metrics_write(const struct cr_client_metrics *m, const struct cr_resource *resource)
{
    int64_t arrived_ns = cr_cause_get();
    if (!m || !arrived_ns)
        return;
    cr_metric_observe(m->watch_to_write, CR_LABELS(resource ? resource->plural : "other"),
                      (double)(cr_clock_monotonic_ns() - arrived_ns) / NS_PER_SECOND);
    cr_cause_set(0);
}

/* --- watches --- */

void cr_client_metrics_received(const struct cr_client_metrics *m, const struct cr_resource *resource, size_t bytes)
{
    if (m)
        cr_metric_add(m->watch_bytes, CR_LABELS(resource->plural), (double)bytes);
}

void cr_client_metrics_event(const struct cr_client_metrics *m, const struct cr_resource *resource, const char *type)
{
    if (m)
        cr_metric_add(m->watch_events, CR_LABELS(resource->plural, type), 1);
}

void cr_client_metrics_listed(const struct cr_client_metrics *m, const struct cr_resource *resource)
{
    if (m)
        cr_metric_add(m->watch_lists, CR_LABELS(resource->plural), 1);
}

void cr_client_metrics_restarted(const struct cr_client_metrics *m, const struct cr_resource *resource,
                                 enum cr_error_kind why)
{
    if (m)
        cr_metric_add(m->watch_restarts,
                      CR_LABELS(resource->plural, why == CR_ERR_NONE ? "TimedOut" : cr_error_kind_name(why)), 1);
}
