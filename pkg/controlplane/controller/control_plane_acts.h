/* The writes for the control plane beside the policy's status: orders in reports, token Secrets, the ConfigMap with the
 * key. Each write has the state that it was decided by as its precondition (UID, resourceVersion), and the next
 * decision waits until the write shows in the cache. */
#ifndef CR_CONTROLPLANE_CONTROLLER_CONTROL_PLANE_ACTS_H
#define CR_CONTROLPLANE_CONTROLLER_CONTROL_PLANE_ACTS_H

#include "base/error.h"
#include "controlplane/controller/control_plane_workloads.h"
#include "controlplane/controller/control_plane_world.h"
#include "kube/client.h"
#include "controlplane/rules/control_plane_plan.h"
#include "runtime/own_writes.h"

struct cr_control_plane_actor {
    struct cr_client *client;
    struct cr_own_writes *own_writes;
    const char *key; /* of the work queue, which the writes are noted for */
    struct cr_control_plane_cache *cache;
    struct cr_control_plane_workloads *workloads;
};

/* What became of a plan's acts, for metrics. */
struct cr_control_plane_acted {
    size_t renewed; /* token Secrets */
};

/* Removes the order that is finished or withdrawn, before the status that says so is written. The patch is sent
 * whatever the cache has, without a precondition, because nothing in that spec is to stay. */
bool cr_control_plane_clear(const struct cr_control_plane_actor *actor, const struct cr_control_plane_plan *plan,
                            struct cr_error *err) CR_MUST_USE;
/* Does everything else that the plan asks for, in this sequence: the order, token Secrets, workloads, the key's
 * ConfigMap. The plan's status must be on record already. The first error ends it: what is left is planned again. */
bool cr_control_plane_act(const struct cr_control_plane_actor *actor, const struct cr_control_plane_gathered *gathered,
                          const struct cr_control_plane_plan *plan, struct cr_control_plane_acted *acted,
                          struct cr_error *err) CR_MUST_USE;

/* The patches, for tests. Owned. */
struct cr_json *cr_control_plane_order_patch(const struct cr_node_report *report,
                                             const struct cr_control_plane_restart_order *order);
struct cr_json *cr_control_plane_token_patch(const struct cr_json *identity);

#endif
