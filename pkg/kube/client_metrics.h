/* The metrics of a client's requests and watches. rest_client_* have client-go's names, labels and buckets
 * (https://pkg.go.dev/k8s.io/component-base/metrics/prometheus/restclient). Thread-safe. Private to pkg/kube. */
#ifndef CR_KUBE_CLIENT_METRICS_H
#define CR_KUBE_CLIENT_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "kube/resource.h"
#include "metrics/metrics.h"

struct cr_client_metrics;

/* server: its URL; label host is what stands in it. Takes nothing; metrics outlives it. NULL metrics: NULL, with which
 * all below do nothing. */
struct cr_client_metrics *cr_client_metrics_new(struct cr_metrics *metrics, const char *server);
void cr_client_metrics_free(struct cr_client_metrics *m);
CR_DEFINE_CLEANUP(cr_client_metrics, struct cr_client_metrics, cr_client_metrics_free)

/* One request, of a watch too, was answered. status 0: it was not. */
void cr_client_metrics_answered(const struct cr_client_metrics *m, const char *method, int status);

struct cr_exchange_size {
    int64_t took_ns;
    size_t sent, received; /* bytes of the bodies, decompressed */
};
/* One request that was waited for ended. */
void cr_client_metrics_exchanged(const struct cr_client_metrics *m, const char *method,
                                 const struct cr_exchange_size *size);
/* It is sent again after this status. */
void cr_client_metrics_retried(const struct cr_client_metrics *m, const char *method, int status);
/* A write is handed to its connection: the first one measures from what its thread works for (cause.h). resource: what
 * is written; NULL: something without a name here. */
void cr_client_metrics_write(const struct cr_client_metrics *m, const struct cr_resource *resource);

/* Bytes of a watch or its list. */
void cr_client_metrics_received(const struct cr_client_metrics *m, const struct cr_resource *resource, size_t bytes);
/* type: the event's, "passed_over" when its object is not wanted, or "too_large" when it is more than is read. */
void cr_client_metrics_event(const struct cr_client_metrics *m, const struct cr_resource *resource, const char *type);
/* A full state is complete. */
void cr_client_metrics_listed(const struct cr_client_metrics *m, const struct cr_resource *resource);
/* A connection of a watch is over and another follows. why: None when it ended as it was asked to. */
void cr_client_metrics_restarted(const struct cr_client_metrics *m, const struct cr_resource *resource,
                                 enum cr_error_kind why);

#endif
