/* The agent of one node: looks when something changed, an order came or it is time to, keeps the node's report, and
 * carries out what the report's spec asks for. Everything that must not be lost is in the report's status, in the
 * manifest's annotation and in the node Lease, so it can be killed at any moment; the next one on the node goes
 * on.
 *
 * When the API server is not to be reached, which is so while it is what is restarted, what has been begun goes on, and
 * the report is written when it is back: asked for again after 1 s, then after more, up to 30 s, for as long as the
 * process lives; after 5 min the log and certroll_node_api_unreachable_seconds call it lost. */
#ifndef CR_CONTROLPLANE_AGENT_AGENT_H
#define CR_CONTROLPLANE_AGENT_AGENT_H

#include "base/cleanup.h"
#include "base/error.h"
#include "metrics/metrics.h"
#include "controlplane/agent/node_reading.h"
#include "controlplane/agent/node_restart.h"
#include "runtime/manager.h"

struct cr_node_agent_options {
    struct cr_loop *loop;
    struct cr_client *client;
    struct cr_manager *manager; /* its first controller becomes the agent's */
    struct cr_metrics *metrics;
    const char *node;
    struct cr_node_layout layout;   /* kubelet_version is found by the agent */
    struct cr_node_allowed allowed; /* borrowed, as are all texts */
    bool count_tokens;              /* false: those of the node's pods are not read */
    int64_t step_deadline_ms;       /* a restart that is not proved by then has failed */
};

struct cr_node_agent;
/* All of options outlives the agent. Before the manager runs. Errors: Conflict, another agent runs on this node;
 * Transient, no thread or descriptors. */
struct cr_node_agent *cr_node_agent_new(const struct cr_node_agent_options *options, struct cr_error *err);
/* After the manager has run. */
void cr_node_agent_free(struct cr_node_agent *agent);
CR_DEFINE_CLEANUP(cr_node_agent, struct cr_node_agent, cr_node_agent_free)

#endif
