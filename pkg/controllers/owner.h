/* Which workload a pod belongs to. */
#ifndef CR_CONTROLLERS_OWNER_H
#define CR_CONTROLLERS_OWNER_H

#include <stdbool.h>

#include "codec/json.h"

/* kind is "Deployment", "StatefulSet" or "DaemonSet" (static), name owned. A pod of a ReplicaSet counts as its
 * Deployment's, whose name is the ReplicaSet's without "-<pod-template-hash>". False: no such owner. */
bool cr_pod_workload(const struct cr_json *pod, const char **kind, char **name);

#endif
