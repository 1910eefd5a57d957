/* The reconciler of ControlPlanePolicy: gather, plan, record, act. A further controller on the policies' manager; it
 * watches by itself, and nothing but policies in kube-system before there is one. It holds no rule: those are in
 * controlplane/rules/control_plane_plan.h.
 *
 * One key for the whole cluster, at most once a second. What the plan says is on record (in the policy's status) before
 * anything else is written, and each write waits for the one before to show in the cache; so whichever write is the
 * last before a crash, the next operator goes on from what it reads. Of several policies the oldest counts, by
 * creationTimestamp and then by name; the others report a Conflict. */
#ifndef CR_CONTROLPLANE_CONTROLLER_CONTROL_PLANE_CONTROLLER_H
#define CR_CONTROLPLANE_CONTROLLER_CONTROL_PLANE_CONTROLLER_H

#include "base/cleanup.h"
#include "kube/client.h"
#include "metrics/metrics.h"
#include "runtime/manager.h"
#include "sys/loop.h"

struct cr_control_plane_controller;

struct cr_control_plane_controller_options {
    struct cr_loop *loop;
    struct cr_client *client;
    struct cr_manager *manager;
    struct cr_metrics *metrics;
};

/* Adds itself to the manager, before it runs. Everything given outlives it, and it must be freed after the manager. */
struct cr_control_plane_controller *
cr_control_plane_controller_new(const struct cr_control_plane_controller_options *options);
void cr_control_plane_controller_free(struct cr_control_plane_controller *controller);
CR_DEFINE_CLEANUP(cr_control_plane_controller, struct cr_control_plane_controller, cr_control_plane_controller_free)

#endif
