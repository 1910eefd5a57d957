/* What a file is for: determined by the component and the parameter that names it, never by the file's name or content.
 */
#include "controlplane/rules/control_plane_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

static bool is_ca(const struct cr_node_file *file)
{
    return file->role == CR_ROLE_CLIENT_CA || file->role == CR_ROLE_SERVER_CA;
}

static bool is_leaf(const struct cr_node_file *file)
{
    return file->role == CR_ROLE_CLIENT_LEAF || file->role == CR_ROLE_SERVER_LEAF;
}

/* A kubeconfig itself has a server and a context; what it has of certificates are rows of their own ("kubeconfig
 * client-key"). One for joining is not read by a kubelet that has joined. */
static bool is_frame(const struct cr_node_file *file)
{
    return (cr_starts_with(file->parameter, "--") && cr_ends_with(file->parameter, "kubeconfig")) ||
           cr_streq(file->via, "--bootstrap-kubeconfig");
}

static enum cp_pki pki_of(const struct cr_node_file *file)
{
    const char *parameter = cr_or_empty(file->parameter);
    if (cr_streq(file->component, "etcd") || cr_streq(file->component, "etcdctl") ||
        cr_starts_with(parameter, "--etcd-"))
        return CP_ETCD;
    if (cr_starts_with(parameter, "--requestheader-client-ca") || cr_starts_with(parameter, "--proxy-client-"))
        return CP_FRONT_PROXY;
    if (cr_starts_with(parameter, "--oidc-")) /* the identity provider's PKI */
        return CP_OTHER;
    return CP_CLUSTER;
}

static bool is_key_file(const char *parameter)
{
    return cr_ends_with(parameter, "-key-file");
}

static enum cp_use use_of_opaque(const struct cr_node_file *file, enum cp_pki *pki)
{
    const char *parameter = cr_or_empty(file->parameter);
    if (cr_streq(parameter, "--service-account-key-file")) {
        *pki = CP_KEYS;
        return CP_USE_VERIFIES;
    }
    if (cr_streq(parameter, "--service-account-signing-key-file") ||
        cr_streq(parameter, "--service-account-private-key-file")) {
        *pki = CP_KEYS;
        return CP_USE_SIGNS;
    }
    if (cr_starts_with(parameter, "--cluster-signing-") && !is_key_file(parameter))
        return CP_USE_SIGNER;
    *pki = CP_OTHER;
    return CP_USE_OTHER;
}

void cr_cp_classify(const struct cr_node_file *file, enum cp_pki *pki, enum cp_use *use)
{
    *pki = is_frame(file) ? CP_OTHER : pki_of(file);
    *use = CP_USE_OTHER;
    if (*pki == CP_OTHER)
        return;
    if (is_ca(file))
        *use = CP_USE_TRUST;
    else if (is_leaf(file))
        *use = CP_USE_LEAF;
    else
        *use = use_of_opaque(file, pki);
}

/* Clients that verify what a controller manager or a scheduler serves, or an API server under a name of its own, are
 * not on the nodes; a kubelet without a serving certificate signs its own, and only --kubelet-certificate-authority
 * would refuse it. */
bool cr_cp_has_peers(const struct cr_node_file *file)
{
    if (cr_streq(file->parameter, "--tls-sni-cert-key"))
        return false;
    return file->role != CR_ROLE_SERVER_LEAF || cr_streq(file->component, "kube-apiserver") ||
           cr_streq(file->component, "etcd");
}

bool cr_cp_is_anyones(const struct cp_row *row)
{
    return row->file->kind == CR_NODE_FILE_LEAF && row->file->prints.len && !row->issuers && cr_cp_has_peers(row->file);
}

char *cr_cp_file_title(const struct cr_node_file *file)
{
    return cr_asprintf("%s%s%s (%s)", cr_or_empty(file->parameter), file->via ? " of " : "", cr_or_empty(file->via),
                       file->path ? file->path : "no file of the node");
}

char *cr_cp_row_title(const struct cp_node *node, const struct cp_row *row)
{
    cr_autofree char *title = cr_cp_file_title(row->file);
    return cr_asprintf("%s of %s, %s", cr_or_empty(row->file->component), node->name, title);
}

static const char *const ranks[] = {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
                                    "kube-proxy"};
enum { CONTROL_RANKS = 4 };

int cr_cp_rank(const char *component)
{
    for (size_t i = 0; i < cr_array_len(ranks); i++)
        if (cr_streq(component, ranks[i]))
            return (int)i;
    return cr_streq(component, "kubelet") ? (int)cr_array_len(ranks) + 1 : (int)cr_array_len(ranks);
}

bool cr_cp_is_control(const char *component)
{
    return cr_cp_rank(component) < CONTROL_RANKS;
}
