/* The metrics of a node's agent (docs/metrics.md). Private to pkg/controlplane/agent/agent*.c. */
#ifndef CR_CONTROLPLANE_AGENT_AGENT_METRICS_H
#define CR_CONTROLPLANE_AGENT_AGENT_METRICS_H

#include "api/node_report.h"
#include "metrics/metrics.h"

struct cr_node_agent_metrics {
    struct cr_metric *not_after;   /* {component, parameter, path} */
    struct cr_metric *loaded;      /* {component, parameter, via, role, path, state} */
    struct cr_metric *serving;     /* {component} */
    struct cr_metric *restarts;    /* {component, result} */
    struct cr_metric *under_way;   /* {component} */
    struct cr_metric *look;        /* histogram */
    struct cr_metric *unreachable; /* seconds */
    struct cr_metric *api_errors;  /* {operation} */
    struct cr_metric *troubles;
};

/* metrics NULL: all do nothing. */
void cr_node_agent_metrics_init(struct cr_node_agent_metrics *out, struct cr_metrics *metrics);
/* Shows a report; what only the one before had goes. before: NULL: none. */
void cr_node_agent_metrics_show(const struct cr_node_agent_metrics *metrics, const struct cr_node_report *before,
                                const struct cr_node_report *report);

#endif
