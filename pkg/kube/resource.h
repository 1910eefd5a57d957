/* Resource types and their paths. */
#ifndef CR_KUBE_RESOURCE_H
#define CR_KUBE_RESOURCE_H

#include <stdbool.h>

#include "base/error.h"
#include "codec/json.h"
#include "codec/resource_type.h"

/* The types that are no kinds of consumers; those have their table in api/consumer_kind.h. */
extern const struct cr_resource cr_res_secrets, cr_res_pods, cr_res_events, cr_res_budgets, cr_res_policies,
    cr_res_configmaps, cr_res_domains, cr_res_cluster_domains, cr_res_namespaces, cr_res_nodes, cr_res_node_reports,
    cr_res_control_planes;

/* Path of a resource: "/apis/apps/v1/namespaces/ns/deployments/name/status". ns, name, subresource: may be NULL.
 * Owned. */
char *cr_resource_path(const struct cr_resource *resource, const char *ns, const char *name, const char *subresource);

/* Sets apiVersion and kind where they are missing: the items of a typed list come without. */
void cr_resource_stamp(const struct cr_resource *resource, struct cr_json *object);

/* Whether a value can stand as one segment of a path: the API server's own rule for names (IsValidPathSegmentName: not
 * ".", "..", no "/" or "%"), and not empty, which would turn a get into a list. what: "name", "namespace". Invalid. */
bool cr_resource_check_segment(const char *value, const char *what, struct cr_error *err) CR_MUST_USE;

#endif
