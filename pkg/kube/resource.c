#include "kube/resource.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "net/http.h"

const struct cr_resource cr_res_secrets = {"", "v1", "secrets", "Secret"};
const struct cr_resource cr_res_pods = {"", "v1", "pods", "Pod"};
const struct cr_resource cr_res_configmaps = {"", "v1", "configmaps", "ConfigMap"};
const struct cr_resource cr_res_events = {"", "v1", "events", "Event"};
const struct cr_resource cr_res_deployments = {"apps", "v1", "deployments", "Deployment"};
const struct cr_resource cr_res_statefulsets = {"apps", "v1", "statefulsets", "StatefulSet"};
const struct cr_resource cr_res_daemonsets = {"apps", "v1", "daemonsets", "DaemonSet"};
const struct cr_resource cr_res_replicasets = {"apps", "v1", "replicasets", "ReplicaSet"};
const struct cr_resource cr_res_rollouts = {"argoproj.io", "v1alpha1", "rollouts", "Rollout"};
const struct cr_resource cr_res_ingresses = {"networking.k8s.io", "v1", "ingresses", "Ingress"};
const struct cr_resource cr_res_budgets = {"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"};
const struct cr_resource cr_res_gateways = {"gateway.networking.k8s.io", "v1", "gateways", "Gateway"};
const struct cr_resource cr_res_namespaces = {"", "v1", "namespaces", "Namespace"};
const struct cr_resource cr_res_nodes = {"", "v1", "nodes", "Node"};
/* The words of api/policy.h, domain.h, node_report.h and control_plane.h; pkg/api is no layer below this one. */
const struct cr_resource cr_res_policies = {"certroll.dev", "v1alpha1", "certrotationpolicies", "CertRotationPolicy"};
const struct cr_resource cr_res_domains = {"certroll.dev", "v1alpha1", "trustdomains", "TrustDomain"};
const struct cr_resource cr_res_cluster_domains = {"certroll.dev", "v1alpha1", "clustertrustdomains",
                                                   "ClusterTrustDomain"};
const struct cr_resource cr_res_node_reports = {"certroll.dev", "v1alpha1", "nodecertificatereports",
                                                "NodeCertificateReport"};
const struct cr_resource cr_res_control_planes = {"certroll.dev", "v1alpha1", "controlplanepolicies",
                                                  "ControlPlanePolicy"};

static const struct cr_resource *const known[] = {
    &cr_res_secrets,    &cr_res_pods,        &cr_res_events,       &cr_res_deployments,    &cr_res_statefulsets,
    &cr_res_daemonsets, &cr_res_ingresses,   &cr_res_gateways,     &cr_res_policies,       &cr_res_configmaps,
    &cr_res_budgets,    &cr_res_replicasets, &cr_res_rollouts,     &cr_res_domains,        &cr_res_cluster_domains,
    &cr_res_namespaces, &cr_res_nodes,       &cr_res_node_reports, &cr_res_control_planes,
};

static bool same_api_version(const struct cr_resource *resource, const char *api_version)
{
    size_t group = strlen(resource->group);
    if (!group)
        return strcmp(api_version, resource->version) == 0;
    return strncmp(api_version, resource->group, group) == 0 && api_version[group] == '/' &&
           strcmp(api_version + group + 1, resource->version) == 0;
}

const struct cr_resource *cr_resource_find(const char *api_version, const char *kind)
{
    if (!api_version || !kind)
        return NULL;
    for (size_t i = 0; i < cr_array_len(known); i++)
        if (strcmp(known[i]->kind, kind) == 0 && same_api_version(known[i], api_version))
            return known[i];
    return NULL;
}

static void put_segment(struct cr_buf *path, const char *value)
{
    cr_autofree char *escaped = cr_http_escape(value);
    cr_buf_printf(path, "/%s", escaped);
}

char *cr_resource_path(const struct cr_resource *resource, const char *ns, const char *name, const char *subresource)
{
    CR_CLEANUP(cr_buf) struct cr_buf path = CR_BUF_INIT(0);
    if (*resource->group)
        cr_buf_printf(&path, "/apis/%s/%s", resource->group, resource->version);
    else
        cr_buf_printf(&path, "/api/%s", resource->version);
    if (ns) {
        cr_buf_puts(&path, "/namespaces");
        put_segment(&path, ns);
    }
    put_segment(&path, resource->plural);
    if (name)
        put_segment(&path, name);
    if (subresource)
        put_segment(&path, subresource);
    return cr_buf_steal(&path);
}

bool cr_resource_check_segment(const char *value, const char *what, struct cr_error *err)
{
    if (!value || !*value || strcmp(value, ".") == 0 || strcmp(value, "..") == 0 || strpbrk(value, "/%"))
        return cr_error_set(err, CR_ERR_INVALID, "'%s' cannot be a %s", cr_or_empty(value), what);
    return true;
}

void cr_resource_stamp(const struct cr_resource *resource, struct cr_json *object)
{
    if (cr_json_get(object, "kind") && cr_json_get(object, "apiVersion"))
        return;
    bool core = !*resource->group;
    cr_autofree char *api_version = cr_asprintf("%s%s%s", resource->group, core ? "" : "/", resource->version);
    cr_json_set_string(object, "apiVersion", api_version);
    cr_json_set_string(object, "kind", resource->kind);
}
