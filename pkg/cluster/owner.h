/* Which workload a pod belongs to. */
#ifndef CR_CLUSTER_OWNER_H
#define CR_CLUSTER_OWNER_H

#include <stdbool.h>

#include "codec/json.h"

/* kind is "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet" or "Rollout" (static), name owned. A pod of a
 * ReplicaSet counts as its Deployment's, whose name is the ReplicaSet's without "-<pod-template-hash>", or in the same
 * way, by rollouts-pod-template-hash, as its Argo Rollout's; without such a label as the ReplicaSet's own. False: no
 * such owner.
 */
bool cr_pod_workload(const struct cr_json *pod, const char **kind, char **name);

#endif
