/* Gathers what the watches have and what is requested into the value that the plan is made of
 * (controlplane/rules/control_plane_plan.h). */
#ifndef CR_CONTROLPLANE_CONTROLLER_CONTROL_PLANE_WORLD_H
#define CR_CONTROLPLANE_CONTROLLER_CONTROL_PLANE_WORLD_H

#include "base/cleanup.h"
#include "base/error.h"
#include "controlplane/controller/control_plane_cache.h"
#include "controlplane/controller/control_plane_project.h"
#include "controlplane/rules/control_plane_plan.h"

struct cr_control_plane_gathered {
    struct cr_control_plane_world world; /* without the workloads, which are the caller's */
    struct cr_control_plane_node *nodes;
    struct cr_control_plane_object *root_cas, *token_secrets;
    char *controller_manager_leader, *scheduler_leader;
    /* What the world borrows from. */
    struct cr_packed_list node_list, reports, namespaces, root_ca_list, secret_list;
};
void cr_control_plane_gathered_dispose(struct cr_control_plane_gathered *gathered);
CR_DEFINE_DISPOSE(cr_control_plane_gathered, struct cr_control_plane_gathered, cr_control_plane_gathered_dispose)

/* policy and status are borrowed, and must outlive out, which need not be initialised. now_ms: wall. The Leases of the
 * leaders change every two seconds, so they are asked for, by client, and only when a component of the control plane
 * waits for a restart. Blocks. Errors: a Lease cannot be read (one that is not there is no error); out is to be
 * disposed of in any case. */
bool cr_control_plane_gather(struct cr_control_plane_cache *cache, struct cr_client *client,
                             const struct cr_control_plane_policy *policy, const struct cr_control_plane_status *status,
                             int64_t now_ms, struct cr_control_plane_gathered *out, struct cr_error *err) CR_MUST_USE;

/* The node of the holder of an election among Kubernetes' own components, whose identity is "<host name>_<uuid>"
 * (cmd/kube-controller-manager/app/controllermanager.go). Borrowed from nodes; NULL: it is none of them. */
const char *cr_control_plane_leader(const char *holder, const struct cr_packed_list *nodes);

/* What the plan looks at of a kube-root-ca.crt or a token Secret; kept NULL: it is not there. Borrows all. A Secret
 * that is being deleted, and held by a finalizer, has no token: API servers refuse it (k8s.io/kubernetes
 * pkg/serviceaccount/legacy.go, by --service-account-lookup, which is the default). */
struct cr_control_plane_object cr_control_plane_object_of(const char *ns, const char *name,
                                                          const struct cr_kept_trust *kept, bool ns_terminating);

#endif
