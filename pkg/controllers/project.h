/* What is kept of an object in the cache: what is used, and what was read from it once. */
#ifndef CR_CONTROLLERS_PROJECT_H
#define CR_CONTROLLERS_PROJECT_H

#include "api/policy.h"
#include "base/strvec.h"
#include "codec/json.h"
#include "runtime/store.h"

/* Each changes json in place and sets the snapshot's extra. */
void cr_project_policy(struct cr_json *json, struct cr_snapshot *snapshot);
void cr_project_pod(struct cr_json *json, struct cr_snapshot *snapshot);
/* Deployment, StatefulSet, DaemonSet, Ingress, Gateway. */
void cr_project_user(const char *kind, struct cr_json *json, struct cr_snapshot *snapshot);

/* Of a snapshot that was projected so; all borrowed. */
/* NULL with the reason in *problem when the policy cannot be used. */
const struct cr_policy *cr_projected_policy(const struct cr_snapshot *snapshot, const char **problem);
/* Kind and name of the workload that a pod belongs to (cr_pod_workload). False: to none. */
bool cr_projected_owner(const struct cr_snapshot *snapshot, const char **kind, const char **name);
/* Names of the Secrets that it uses (cr_usage_of_object); never NULL. */
const struct cr_strvec *cr_projected_uses(const struct cr_snapshot *snapshot);

#endif
