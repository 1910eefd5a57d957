/* The workloads of a ControlPlanePolicy: they are requested by name and seldom, since they are in any namespace and
 * only a person waits for them; and they are restarted. */
#ifndef CR_CONTROLPLANE_CONTROLLER_CONTROL_PLANE_WORKLOADS_H
#define CR_CONTROLPLANE_CONTROLLER_CONTROL_PLANE_WORKLOADS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "kube/client.h"
#include "controlplane/rules/control_plane_plan.h"

/* Annotations of the pod template: for which root CA, and which signing key of service accounts, the workload was last
 * restarted. */
#define CR_CONTROL_PLANE_ROOT_CA_ANNOTATION   "certroll.dev/root-ca"
#define CR_CONTROL_PLANE_TOKEN_KEY_ANNOTATION "certroll.dev/service-account-key"

enum {
    CR_CONTROL_PLANE_WORKLOADS_BUSY_MS = 3 * 1000, /* between two looks while one of them rolls, or waits to */
    CR_CONTROL_PLANE_WORKLOADS_IDLE_MS = 60 * 1000,
};

/* What was seen of them last. Not thread-safe. */
struct cr_control_plane_workloads;
struct cr_control_plane_workloads *cr_control_plane_workloads_new(struct cr_client *client);
void cr_control_plane_workloads_free(struct cr_control_plane_workloads *workloads);
CR_DEFINE_CLEANUP(cr_control_plane_workloads, struct cr_control_plane_workloads, cr_control_plane_workloads_free)

/* Views as policy->workloads, borrowed until the next call. Asks the API server when the last look is older than what
 * is due, and for another spec. busy: they are looked at often. now_ms: monotonic. One that is too large, or has too
 * many pods, has a problem in its view. NULL, with err: one cannot be requested. */
const struct cr_control_plane_workload_view *
cr_control_plane_workloads_look(struct cr_control_plane_workloads *workloads,
                                const struct cr_control_plane_policy *policy, bool busy, int64_t now_ms,
                                struct cr_error *err) CR_MUST_USE;

/* Begins a rollout: both annotations as far as the workload reads what they are about ("" is left out), with
 * kubectl.kubernetes.io/restartedAt. uid and resourceVersion of the last look are preconditions. The next look is a
 * fresh one. Errors: Conflict, NotFound, Forbidden, … */
bool cr_control_plane_workloads_restart(struct cr_control_plane_workloads *workloads,
                                        const struct cr_control_plane_policy *policy, size_t index, const char *root_ca,
                                        const char *token_key, struct cr_error *err) CR_MUST_USE;

/* Reads the view from a workload and its pods (a list, or NULL when the workload has no selector that can be used in a
 * request; then their start is taken to be long ago). Pure; texts are borrowed from workload. */
struct cr_control_plane_workload_view cr_control_plane_workload_read(const char *kind, const struct cr_json *workload,
                                                                     const struct cr_json *pods);

#endif
