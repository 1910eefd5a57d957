/* The Lease kube-system/certroll-control-plane. An agent holds it while it restarts a component of its node, so that
 * one node at a time acts, whatever two operators or a stale report ask for. Its rules are those of a leader election
 * (runtime/election.h), but it is acquired for one act and released at the end, and there is no thread: the agent
 * renews it while it acts.
 *
 * The holder is "<node>_certroll-node-agent", not this process: an agent that replaces one that died continues at once
 * what that one began. controlplane/agent/instance_lock.h ensures that there is one agent on a node;
 * manifests/node-agent/base/admission.yaml, that no agent releases the Lease of another node. */
#ifndef CR_CONTROLPLANE_AGENT_NODE_LEASE_H
#define CR_CONTROLPLANE_AGENT_NODE_LEASE_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "kube/client.h"
#include "runtime/election.h"

/* Other nodes wait for 30 s if a node disappears while it holds the Lease. The holder renews it every 5 s; after 20 s
 * without an answer it begins nothing more. */
extern const struct cr_election_times cr_node_lease_times;

struct cr_node_lease;
/* client: has a short time-out, because each request blocks; outlives the lease. node: copied. times: NULL for those
 * above. Owned. */
struct cr_node_lease *cr_node_lease_new(struct cr_client *client, const char *node,
                                        const struct cr_election_times *times);
/* Does not release the Lease: the next agent of the node continues with it. */
void cr_node_lease_free(struct cr_node_lease *lease);
CR_DEFINE_CLEANUP(cr_node_lease, struct cr_node_lease, cr_node_lease_free)

/* Acquires the Lease, or renews it when that is due; blocks for some requests. True: it is held, and an act may begin
 * now. Errors: Conflict (another node holds it; names the node); those of the requests. */
bool cr_node_lease_acquire(struct cr_node_lease *lease, struct cr_error *err) CR_MUST_USE;
/* Renews it however fresh it is. True: it was written just now, so that nobody takes it over before all of its time has
 * passed: for an act that blocks, which may take times.renew_ms. Errors: likewise. */
bool cr_node_lease_renew(struct cr_node_lease *lease, struct cr_error *err) CR_MUST_USE;
/* Whether an act may begin at this moment. */
bool cr_node_lease_is_held(const struct cr_node_lease *lease);
/* Whether it is held or may be: there is something to release. */
bool cr_node_lease_is_claimed(const struct cr_node_lease *lease);
/* False: it could not be written; then it expires, or a later call releases it. */
bool cr_node_lease_release(struct cr_node_lease *lease, struct cr_error *err) CR_MUST_USE;

#endif
