/* What the cache keeps of an object: the fields that are used, and what was read from it once. */
#ifndef CR_CLUSTER_PROJECT_H
#define CR_CLUSTER_PROJECT_H

#include "api/policy.h"
#include "base/strvec.h"
#include "codec/json.h"
#include "workload/budget.h"
#include "runtime/store.h"

/* Each changes json in place; those that are given the snapshot set its extra. */
void cr_project_policy(struct cr_json *json);
/* What secret_view.h has left of it. */
void cr_project_secret(struct cr_json *json);
void cr_project_pod(struct cr_json *json, struct cr_snapshot *snapshot);
/* All that is read of a PodDisruptionBudget is in its extra. */
void cr_project_budget(struct cr_json *json, struct cr_snapshot *snapshot);
/* Deployment, StatefulSet, DaemonSet, ReplicaSet, Rollout, Ingress, Gateway. */
void cr_project_user(const char *kind, struct cr_json *json, struct cr_snapshot *snapshot);

/* Decodes the policy of a snapshot that one reader has opened; the snapshot's own from then on. */
void cr_project_decode(struct cr_snapshot *snapshot);
/* The policy of such a snapshot; borrowed. NULL with the reason in *problem when the policy cannot be used. */
const struct cr_policy *cr_projected_policy(const struct cr_snapshot *snapshot, const char **problem);

/* The functions below read the extra of an object that was projected so; everything is borrowed. */
/* Kind and name of the workload that a pod belongs to (cr_pod_workload). False: to none. */
bool cr_projected_owner(const void *extra, const char **kind, const char **name);
bool cr_projected_active(const void *extra); /* cr_pod_active */
/* For an active pod: which Secrets it uses, and when it was created. NULL: it uses none, is not active, or is of a Job.
 */
const struct cr_strvec *cr_projected_pod_uses(const void *extra);
int64_t cr_projected_pod_created_ms(const void *extra);
/* It belongs to nothing now, but a StatefulSet or DaemonSet has made it (kubectl delete --cascade=orphan). */
bool cr_projected_pod_is_left(const void *extra);
/* For a pod that is being deleted: the most that its shutdown manager takes, in whole seconds, see
 * cr_shutdown_hooks_most_ms. */
int64_t cr_projected_drain_ms(const void *extra);
/* Names of the Secrets that it uses (cr_usage_of_object); never NULL. */
const struct cr_strvec *cr_projected_uses(const void *extra);
int64_t cr_projected_created_ms(const void *extra); /* of who uses Secrets; see cr_obj_created_ms */
/* The Deployment that an Argo Rollout takes its template from (spec.workloadRef); NULL: it has its own, or another
 * kind's. */
const char *cr_projected_template_of(const void *extra);
/* For a workload: its rollout has begun and may still take pods away (cr_rollout_judge). */
bool cr_projected_rolling(const void *extra);
const struct cr_budget *cr_projected_budget(const void *extra);

#endif
