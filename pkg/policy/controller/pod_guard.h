/* Which pods may be connected to: an account that can write a pod's status could direct us to another address. */
#ifndef CR_POLICY_CONTROLLER_POD_GUARD_H
#define CR_POLICY_CONTROLLER_POD_GUARD_H

#include "kube/client.h"
#include "policy/rules/plan.h"

/* Only at an address that a pod can have (cr_probe_address_allowed), and never the API server or what a node runs for
 * the cluster. */
bool cr_pod_may_be_asked(const struct cr_client *client, const struct cr_world_pod *pod, int port);

#endif
