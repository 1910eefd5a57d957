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
const struct cr_resource cr_res_budgets = {"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"};
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
    cr_autofree char *api_version = cr_resource_api_version(resource);
    cr_json_set_string(object, "apiVersion", api_version);
    cr_json_set_string(object, "kind", resource->kind);
}
