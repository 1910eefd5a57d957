/* /healthz, /readyz and /metrics of a manager. Private to pkg/runtime. */
#ifndef CR_RUNTIME_HEALTH_H
#define CR_RUNTIME_HEALTH_H

#include <stdbool.h>
#include <stddef.h>

#include "kube/access_guard.h"
#include "metrics/metrics.h"
#include "wire/http_server.h"
#include "runtime/informer.h"
#include "runtime/leader_election.h"
#include "runtime/start_check.h"

/* What the pages show; borrowed, in the loop's thread. */
struct cr_health {
    struct cr_informer **informers;
    size_t informers_len;
    struct cr_leader_election *election; /* may be NULL */
    struct cr_start_check *start_check;  /* may be NULL */
    struct cr_metrics *metrics;          /* may be NULL */
    struct cr_access_guard *guard;       /* of /metrics; may be NULL */
    struct cr_metric *informer_objects;  /* {resource} */
    struct cr_metric *informer_healthy;  /* {resource} */
    bool stopping;
    bool filled; /* all caches were in sync once, or known to be refused */
};

/* An informer of the resource goes: the next page counts those that are left, and shows nothing when none is. */
void cr_health_forget(const struct cr_health *health, const struct cr_resource *resource);

/* health must outlive server. */
void cr_health_serve_probes(struct cr_http_server *server, struct cr_health *health);
void cr_health_serve_metrics(struct cr_http_server *server, struct cr_health *health);
void cr_health_serve_all(struct cr_http_server *server, struct cr_health *health);

#endif
