#include "controlplane/agent/pairs.h"

#include "base/strings.h"

/* The same family in flags, variables and fields, since a program may be given one in the one and one in the other. */
static const struct {
    const char *family, *certificate, *key;
} names[] = {
    {"serving", "--tls-cert-file", "--tls-private-key-file"},
    {"serving", "tlsCertFile", "tlsPrivateKeyFile"},
    {"kubelet", "--kubelet-client-certificate", "--kubelet-client-key"},
    {"etcd", "--etcd-certfile", "--etcd-keyfile"},
    {"proxy", "--proxy-client-cert-file", "--proxy-client-key-file"},
    {"server", "--cert-file", "--key-file"},
    {"server", "ETCD_CERT_FILE", "ETCD_KEY_FILE"},
    {"client", "--client-cert-file", "--client-key-file"},
    {"client", "ETCD_CLIENT_CERT_FILE", "ETCD_CLIENT_KEY_FILE"},
    {"peer", "--peer-cert-file", "--peer-key-file"},
    {"peer", "ETCD_PEER_CERT_FILE", "ETCD_PEER_KEY_FILE"},
    {"peer client", "--peer-client-cert-file", "--peer-client-key-file"},
    {"peer client", "ETCD_PEER_CLIENT_CERT_FILE", "ETCD_PEER_CLIENT_KEY_FILE"},
    {"etcdctl", "--cert", "--key"},
    {"etcdctl", "ETCDCTL_CERT", "ETCDCTL_KEY"},
    {"kubeconfig", "kubeconfig client-certificate", "kubeconfig client-key"},
    {"signing", "--cluster-signing-cert-file", "--cluster-signing-key-file"},
    {"signing kube-apiserver-client", "--cluster-signing-kube-apiserver-client-cert-file",
     "--cluster-signing-kube-apiserver-client-key-file"},
    {"signing kubelet-client", "--cluster-signing-kubelet-client-cert-file",
     "--cluster-signing-kubelet-client-key-file"},
    {"signing kubelet-serving", "--cluster-signing-kubelet-serving-cert-file",
     "--cluster-signing-kubelet-serving-key-file"},
    {"signing legacy-unknown", "--cluster-signing-legacy-unknown-cert-file",
     "--cluster-signing-legacy-unknown-key-file"},
};

static const char *family_of(const struct cr_node_parameter *row, bool key)
{
    for (size_t i = 0; i < cr_array_len(names); i++)
        if (cr_streq(row->parameter, key ? names[i].key : names[i].certificate))
            return names[i].family;
    return NULL;
}

static bool same_program(const struct cr_node_parameter *a, const struct cr_node_parameter *b)
{
    return a->role == b->role && cr_streq(a->component, b->component) && cr_streq(a->pod, b->pod) &&
           cr_streq(a->container, b->container) && cr_streq(a->via, b->via);
}

/* One flag names both, certificate first, and each gives a row. */
static bool is_sni(const struct cr_node_parameter *row)
{
    return cr_streq(row->parameter, "--tls-sni-cert-key");
}

static bool is_key_of(const struct cr_node_parameter *certificate, const struct cr_node_parameter *row, bool next)
{
    if (!same_program(certificate, row))
        return false;
    if (is_sni(certificate))
        return next && is_sni(row);
    const char *family = family_of(certificate, false);
    return family && cr_streq(family, family_of(row, true));
}

void cr_node_pairs_find(const struct cr_node_parameters *parameters, size_t *partners)
{
    for (size_t i = 0; i < parameters->len; i++)
        partners[i] = CR_NODE_NO_PARTNER;
    for (size_t i = 0; i < parameters->len; i++)
        for (size_t k = 0; k < parameters->len && partners[i] == CR_NODE_NO_PARTNER; k++) {
            if (k == i || partners[k] != CR_NODE_NO_PARTNER ||
                !is_key_of(&parameters->items[i], &parameters->items[k], k == i + 1))
                continue;
            partners[i] = k;
            partners[k] = i;
        }
}
