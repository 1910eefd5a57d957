#include "controlplane/agent/parameters.h"

#include "support/builtin.h"
#include "support/nodescene.h"

#include "codec/yaml.h"
#include "sys/file.h"

#define CONFIG_OF(ca, leaf)                                                                                            \
    "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"                                      \
    "clusters: [{name: k, cluster: {" ca "}}]\nusers: [{name: u, user: {" leaf "}}]\n"
#define EMBEDDED                                                                                                       \
    CONFIG_OF("certificate-authority-data: Q0EK", "client-certificate-data: Q0VSVAo=, client-key-data: S0VZCg==")
#define BY_FILES                                                                                                       \
    CONFIG_OF("certificate-authority: pki/ca.crt",                                                                     \
              "client-certificate: pki/scheduler.crt, client-key: pki/scheduler.key")
#define KUBELET_CONFIG                                                                                                 \
    "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nrotateCertificates: true\n"                \
    "authentication: {x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}}\n"

/* --- kubeadm's --- */

static struct scene_file kubeadm_files[] = {
    {"/etc/kubernetes/controller-manager.conf", EMBEDDED},
    {"/etc/kubernetes/scheduler.conf", EMBEDDED},
    {"/etc/kubernetes/kubelet.conf", CONFIG_OF("certificate-authority-data: Q0EK",
                                               "client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem, "
                                               "client-key: /var/lib/kubelet/pki/kubelet-client-current.pem")},
    {NULL, NULL},
};

/* clang-format off */
#define EMBEDDED_IN(flag, file)                                                                                        \
    flag " clientLeaf Host " file " Restart 0 verified alone\n"                                                        \
    flag " serverCA Host " file " Restart 0 verified alone\n"                                                          \
    "kubeconfig certificate-authority<" flag " serverCA Embedded " file " Restart 0 verified alone\n"                  \
    "kubeconfig client-certificate<" flag " clientLeaf Embedded " file " Restart 0 verified alone\n"                   \
    "kubeconfig client-key<" flag " clientLeaf Embedded " file " Restart 0 verified alone\n"

static const struct { const char *component, *lines; } kubeadm[] = {
    {"kube-apiserver",
     "--tls-cert-file serverLeaf Host /etc/kubernetes/pki/apiserver.crt Watch 5 verified reloads\n"
     "--tls-private-key-file serverLeaf Host /etc/kubernetes/pki/apiserver.key Watch 5 verified reloads\n"
     "--client-ca-file clientCA Host /etc/kubernetes/pki/ca.crt Watch 5 verified trap reloads\n"
     "--requestheader-client-ca-file clientCA Host /etc/kubernetes/pki/front-proxy-ca.crt Watch 5 verified reloads\n"
     "--etcd-certfile clientLeaf Host /etc/kubernetes/pki/apiserver-etcd-client.crt PerHandshake 1 verified reloads\n"
     "--etcd-keyfile clientLeaf Host /etc/kubernetes/pki/apiserver-etcd-client.key PerHandshake 1 verified reloads\n"
     "--etcd-cafile serverCA Host /etc/kubernetes/pki/etcd/ca.crt Restart 0 verified\n"
     "--kubelet-client-certificate clientLeaf Host /etc/kubernetes/pki/apiserver-kubelet-client.crt PerHandshake 300 verified reloads\n"
     "--kubelet-client-key clientLeaf Host /etc/kubernetes/pki/apiserver-kubelet-client.key PerHandshake 300 verified reloads\n"
     "--proxy-client-cert-file clientLeaf Host /etc/kubernetes/pki/front-proxy-client.crt Watch 5 verified reloads\n"
     "--proxy-client-key-file clientLeaf Host /etc/kubernetes/pki/front-proxy-client.key Watch 5 verified reloads\n"
     "--service-account-key-file opaque Host /etc/kubernetes/pki/sa.pub Restart 0 verified\n"
     "--service-account-signing-key-file opaque Host /etc/kubernetes/pki/sa.key Restart 0 verified\n"},
    {"kube-controller-manager",
     "--client-ca-file clientCA Host /etc/kubernetes/pki/ca.crt Watch 5 verified trap reloads\n"
     "--requestheader-client-ca-file clientCA Host /etc/kubernetes/pki/front-proxy-ca.crt Watch 5 verified reloads\n"
     "--root-ca-file serverCA Host /etc/kubernetes/pki/ca.crt Restart 0 verified trap\n"
     "--cluster-signing-cert-file opaque Host /etc/kubernetes/pki/ca.crt Watch 5 verified trap reloads\n"
     "--cluster-signing-key-file opaque Host /etc/kubernetes/pki/ca.key Watch 5 verified reloads\n"
     "--service-account-private-key-file opaque Host /etc/kubernetes/pki/sa.key Restart 0 verified\n"
     EMBEDDED_IN("--kubeconfig", "/etc/kubernetes/controller-manager.conf")
     EMBEDDED_IN("--authentication-kubeconfig", "/etc/kubernetes/controller-manager.conf")
     EMBEDDED_IN("--authorization-kubeconfig", "/etc/kubernetes/controller-manager.conf")},
    {"kube-scheduler",
     EMBEDDED_IN("--kubeconfig", "/etc/kubernetes/scheduler.conf")
     EMBEDDED_IN("--authentication-kubeconfig", "/etc/kubernetes/scheduler.conf")
     EMBEDDED_IN("--authorization-kubeconfig", "/etc/kubernetes/scheduler.conf")},
    {"etcd",
     "--cert-file serverLeaf Host /etc/kubernetes/pki/etcd/server.crt PerHandshake 1 verified reloads\n"
     "--cert-file clientLeaf Host /etc/kubernetes/pki/etcd/server.crt PerHandshake 1 verified reloads\n"
     "--key-file serverLeaf Host /etc/kubernetes/pki/etcd/server.key PerHandshake 1 verified reloads\n"
     "--key-file clientLeaf Host /etc/kubernetes/pki/etcd/server.key PerHandshake 1 verified reloads\n"
     "--trusted-ca-file clientCA Host /etc/kubernetes/pki/etcd/ca.crt Restart 0 verified\n"
     "--trusted-ca-file serverCA Host /etc/kubernetes/pki/etcd/ca.crt Restart 0 verified\n"
     "--peer-cert-file serverLeaf Host /etc/kubernetes/pki/etcd/peer.crt PerHandshake 1 verified reloads\n"
     "--peer-cert-file clientLeaf Host /etc/kubernetes/pki/etcd/peer.crt PerHandshake 1 verified reloads\n"
     "--peer-key-file serverLeaf Host /etc/kubernetes/pki/etcd/peer.key PerHandshake 1 verified reloads\n"
     "--peer-key-file clientLeaf Host /etc/kubernetes/pki/etcd/peer.key PerHandshake 1 verified reloads\n"
     "--peer-trusted-ca-file clientCA Host /etc/kubernetes/pki/etcd/ca.crt Restart 0 verified\n"
     "--peer-trusted-ca-file serverCA Host /etc/kubernetes/pki/etcd/ca.crt Restart 0 verified\n"},
    {"kubelet",
     "authentication.x509.clientCAFile clientCA Host /etc/kubernetes/pki/ca.crt Watch 5 verified trap reloads\n"
     "tlsCertFile serverLeaf Host /var/lib/kubelet/pki/kubelet.crt Watch 5 verified reloads\n"
     "tlsPrivateKeyFile serverLeaf Host /var/lib/kubelet/pki/kubelet.key Watch 5 verified reloads\n"
     "--kubeconfig clientLeaf Host /etc/kubernetes/kubelet.conf Restart 0 verified\n"
     "--kubeconfig serverCA Host /etc/kubernetes/kubelet.conf Restart 0 verified\n"
     "kubeconfig certificate-authority<--kubeconfig serverCA Embedded /etc/kubernetes/kubelet.conf Restart 0 verified\n"
     "kubeconfig client-certificate<--kubeconfig clientLeaf Host /var/lib/kubelet/pki/kubelet-client-current.pem Restart 0 verified own\n"
     "kubeconfig client-key<--kubeconfig clientLeaf Host /var/lib/kubelet/pki/kubelet-client-current.pem Restart 0 verified own\n"},
};
/* clang-format on */

static char *test_data(const char *name)
{
    cr_autofree char *path = cr_asprintf(CERTROLL_SOURCE_DIR "/test/testdata/static-pods/%s.yaml", name);
    struct cr_error err = {0};
    struct cr_buf text = CR_BUF_INIT(0);
    if (!cr_file_read(path, CR_YAML_MAX_BYTES, &text, &err))
        fail_msg("%s", err.text);
    return cr_buf_steal(&text);
}

/* What kubeadm 1.36 writes, with the kubelet that it starts. */
static void all_of_kubeadm_s_node(void **state)
{
    (void)state;
    CR_CLEANUP(cr_node_parameters) struct cr_node_parameters all = {0};
    static const char *const names[] = {"kubeadm-etcd", "kubeadm-kube-apiserver", "kubeadm-kube-controller-manager",
                                        "kubeadm-kube-scheduler"};
    for (size_t i = 0; i < cr_array_len(names); i++) {
        cr_autofree char *text = test_data(names[i]);
        scene_add_pod(&all, builtin, text, kubeadm_files);
    }
    scene_add_kubelet(&all, builtin,
                      "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf "
                      "--kubeconfig=/etc/kubernetes/kubelet.conf --config=/config.yaml",
                      KUBELET_CONFIG, "v1.36.3", kubeadm_files);
    for (size_t i = 0; i < cr_array_len(kubeadm); i++) {
        cr_autofree char *is = scene_lines(&all, kubeadm[i].component);
        if (!cr_streq(is, kubeadm[i].lines))
            fail_msg("%s: want\n%s, is\n%s", kubeadm[i].component, kubeadm[i].lines, is);
    }
    if (all.troubles.len)
        fail_msg("%s", all.troubles.items[0]);
}

/* --- one program each --- */

#define POD(image, rest)                                                                                               \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: kube-system}\nspec:\n"                                  \
    "  containers:\n  - {name: c, image: 'r/" image "', volumeMounts: [{name: k, mountPath: /k}, "                     \
    "{name: t, mountPath: /token}, {name: one, mountPath: /one/ca.crt}, {name: k, mountPath: /sub, subPath: "          \
    "x}], " rest "}\n  volumes:\n  - {name: k, hostPath: {path: /host/k, type: Directory}}\n"                          \
    "  - {name: one, hostPath: {path: /host/one.crt, type: File}}\n"                                                   \
    "  - {name: t, projected: {sources: []}}\n"

static struct scene_file files[] = {
    {"/host/k/config", BY_FILES},
    {"/own/kubelet-client-current.pem", "PEM"},
    {"/host/k/mixed", CONFIG_OF("certificate-authority: /k/ca, insecure-skip-tls-verify: false",
                                "client-certificate: /k/c, client-key-data: S0VZCg==")},
    {"/host/k/insecure",
     CONFIG_OF("insecure-skip-tls-verify: true, certificate-authority: /k/ca", "tokenFile: /k/token")},
    {"/host/k/secret", NULL},
    {"/host/k/broken", "current-context: x\n"},
    {"/host/k/scheduler.yaml", "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
                               "clientConnection: {kubeconfig: /k/insecure}\n"},
    {"/host/k/etcd", "client-transport-security: {cert-file: /k/s.crt, key-file: /k/s.key, trusted-ca-file: /k/ca, "
                     "client-cert-auth: true}\n"
                     "peer-transport-security: {cert-file: /k/p.crt, key-file: /k/p.key, trusted-ca-file: /k/pca}\n"},
    {NULL, NULL},
};

#define CONFIG_ROWS(flag)                                                                                              \
    flag " clientLeaf Host /host/k/config Restart 0 verified\n" flag                                                   \
         " serverCA Host /host/k/config Restart 0 verified\n"
#define WHOLE_LEAF(flag, delay)                                                                                        \
    "kubeconfig client-certificate<" flag " clientLeaf Host /host/k/pki/scheduler.crt " delay "\n"                     \
    "kubeconfig client-key<" flag " clientLeaf Host /host/k/pki/scheduler.key " delay "\n"

/* clang-format off */
static const struct row {
    const char *rule;
    const char *component;
    const char *pod;
    const char *lines;
    const char *trouble; /* NULL: none */
} rows[] = {
    {"a kubeconfig's files, 1.36", "kube-scheduler", POD("kube-scheduler:v1.36.3", "command: [kube-scheduler, --kubeconfig=/k/config]"),
     CONFIG_ROWS("--kubeconfig")
     "kubeconfig certificate-authority<--kubeconfig serverCA Host /host/k/pki/ca.crt Poll 300 verified reloads\n"
     WHOLE_LEAF("--kubeconfig", "PerHandshake 300 verified reloads"), NULL},
    {"before it, the CA needs a restart", "kube-scheduler", POD("kube-scheduler:v1.35.9", "command: [kube-scheduler, --kubeconfig, /k/config]"),
     CONFIG_ROWS("--kubeconfig")
     "kubeconfig certificate-authority<--kubeconfig serverCA Host /host/k/pki/ca.crt Restart 0 verified\n"
     WHOLE_LEAF("--kubeconfig", "PerHandshake 300 verified reloads"), NULL},
    {"and where its gate is off", "kube-scheduler",
     POD("kube-scheduler:v1.36.3", "command: [kube-scheduler, --kubeconfig=/k/config, '--feature-gates=A=true,ClientsAllowCARotation=false']"),
     CONFIG_ROWS("--kubeconfig")
     "kubeconfig certificate-authority<--kubeconfig serverCA Host /host/k/pki/ca.crt Restart 0 verified\n"
     WHOLE_LEAF("--kubeconfig", "PerHandshake 300 verified reloads"), NULL},
    {"or all gates of beta are", "kube-scheduler",
     POD("kube-scheduler:v1.36.3", "command: [kube-scheduler, --kubeconfig=/k/config, '--feature-gates=AllBeta=false', '--feature-gates=A=true']"),
     CONFIG_ROWS("--kubeconfig")
     "kubeconfig certificate-authority<--kubeconfig serverCA Host /host/k/pki/ca.crt Restart 0 verified\n"
     WHOLE_LEAF("--kubeconfig", "PerHandshake 300 verified reloads"), NULL},
    {"a version that is not known is the strictest", "kube-scheduler", POD("kube-scheduler:latest", "command: [kube-scheduler, --tls-cert-file=/k/s.crt]"),
     "--tls-cert-file serverLeaf Host /host/k/s.crt Restart 0 verified\n", NULL},
    {"an old one", "kube-scheduler", POD("kube-scheduler:v1.22.1", "command: [kube-scheduler, --tls-cert-file=/k/s.crt]"),
     "--tls-cert-file serverLeaf Host /host/k/s.crt Poll 60 verified reloads\n", NULL},
    {"a key that is embedded keeps the certificate's file from being read again", "kube-scheduler",
     POD("kube-scheduler:v1.36.3", "command: [kube-scheduler, --kubeconfig=/k/mixed]"),
     "--kubeconfig clientLeaf Host /host/k/mixed Restart 0 verified\n--kubeconfig serverCA Host /host/k/mixed Restart 0 verified\n"
     "kubeconfig certificate-authority<--kubeconfig serverCA Host /host/k/ca Poll 300 verified reloads\n"
     "kubeconfig client-certificate<--kubeconfig clientLeaf Host /host/k/c Restart 0 verified\n"
     "kubeconfig client-key<--kubeconfig clientLeaf Embedded /host/k/mixed Restart 0 verified\n", NULL},
    {"kube-scheduler's configuration names the kubeconfig; whoever verifies nobody has no CA", "kube-scheduler",
     POD("kube-scheduler:v1.36.3", "command: [kube-scheduler, --config=/k/scheduler.yaml]"),
     "--kubeconfig clientLeaf Host /host/k/insecure Restart 0 verified\n--kubeconfig serverCA Host /host/k/insecure Restart 0 verified\n", NULL},
    {"a kubeconfig that cannot be read may name anything", "kube-scheduler",
     POD("kube-scheduler:v1.36.3", "command: [kube-scheduler, --kubeconfig=/k/secret]"),
     "--kubeconfig clientLeaf Host /host/k/secret Restart 0 verified\n--kubeconfig serverCA Host /host/k/secret Restart 0 verified\n"
     "kubeconfig certificate-authority<--kubeconfig serverCA Unknown the kubeconfig that says it could not be read Restart 0 verified\n"
     "kubeconfig client-certificate<--kubeconfig clientLeaf Unknown the kubeconfig that says it could not be read Restart 0 verified\n"
     "kubeconfig client-key<--kubeconfig clientLeaf Unknown the kubeconfig that says it could not be read Restart 0 verified\n",
     "kube-scheduler of p: --kubeconfig: /host/k/secret: Permission denied"},
    {"nor one that is wrong", "kube-scheduler",
     POD("kube-scheduler:v1.36.3", "command: [kube-scheduler, --kubeconfig=/k/broken]"), NULL,
     "kube-scheduler of p: --kubeconfig: /k/broken: context 'x' is not in contexts"},
    {"nor one in the image", "kube-scheduler", POD("kube-scheduler:v1.36.3", "command: [kube-scheduler, --kubeconfig=/etc/x]"), NULL,
     "kube-scheduler of p: --kubeconfig: /etc/x is below no mount, so the image's own"},

    {"RKE2: one image for all, flags in args", "kube-apiserver",
     POD("rancher/hardened-kubernetes:v1.36.1-rke2r1-build20260601", "command: [kube-apiserver], args: ['--tls-cert-file=/k/a.crt', --client-ca-file, /k/ca]"),
     "--tls-cert-file serverLeaf Host /host/k/a.crt Watch 5 verified reloads\n"
     "--client-ca-file clientCA Host /host/k/ca Watch 5 verified reloads\n", NULL},
    {"one sh -c", "kube-apiserver", POD("kube-apiserver:v1.36.3", "command: [/bin/sh, -c, 'exec kube-apiserver --oidc-ca-file=/k/ca 2>&1']"),
     "--oidc-ca-file serverCA Host /host/k/ca Restart 0 verified\n", NULL},
    {"a file that is mounted alone is seen by no rename", "kube-apiserver",
     POD("kube-apiserver:v1.36.3", "command: [kube-apiserver, --client-ca-file=/one/ca.crt, --tls-cert-file=/sub]"),
     "--tls-cert-file serverLeaf Host /host/k/x Watch 5 verified alone\n"
     "--client-ca-file clientCA Host /host/one.crt Watch 5 verified alone\n", NULL},
    {"no file of the node", "kube-apiserver",
     POD("kube-apiserver:v1.36.3", "command: [kube-apiserver, --client-ca-file=/token/ca.crt, --oidc-ca-file=/etc/ssl/ca.pem]"), "*Elsewhere*Elsewhere", NULL},
    {"several keys verify; of others the last counts; an empty one is none", "kube-apiserver",
     POD("kube-apiserver:v1.36.3", "command: [kube-apiserver, --service-account-key-file=/k/1, --oidc-ca-file=/k/x, "
     "--service-account-key-file=/k/2, --oidc-ca-file=/k/y, --etcd-cafile=]"),
     "--service-account-key-file opaque Host /host/k/1 Restart 0 verified\n"
     "--service-account-key-file opaque Host /host/k/2 Restart 0 verified\n"
     "--oidc-ca-file serverCA Host /host/k/y Restart 0 verified\n", NULL},
    {"pairs by name", "kube-apiserver",
     POD("kube-apiserver:v1.36.3", "command: [kube-apiserver, '--tls-sni-cert-key=/k/a.crt,/k/a.key', '--tls-sni-cert-key=/k/b.crt,/k/b.key:b.example,*.c.example;/k/d,/k/e']"),
     "--tls-sni-cert-key serverLeaf Host /host/k/a.crt Watch 5 verified reloads\n"
     "--tls-sni-cert-key serverLeaf Host /host/k/a.key Watch 5 verified reloads\n"
     "--tls-sni-cert-key serverLeaf Host /host/k/b.crt Watch 5 verified reloads\n"
     "--tls-sni-cert-key serverLeaf Host /host/k/b.key Watch 5 verified reloads\n"
     "--tls-sni-cert-key serverLeaf Host /host/k/d Watch 5 verified reloads\n"
     "--tls-sni-cert-key serverLeaf Host /host/k/e Watch 5 verified reloads\n", NULL},
    {"a value that the manifest does not show", "kube-apiserver",
     POD("kube-apiserver:v1.36.3", "command: [kube-apiserver, '--client-ca-file=/k/$(N)'], env: [{name: N, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]"),
     "--client-ca-file clientCA Unknown comes from elsewhere than the manifest Watch 5 verified\n",
     "kube-apiserver of p: not all words that container c starts it with can be told"},

    {"etcd's variables, a flag above its own", "etcd",
     POD("etcd:3.6.8-0", "command: [etcd, --key-file=/k/f], env: [{name: ETCD_KEY_FILE, value: /k/v}, {name: ETCD_PEER_TRUSTED_CA_FILE, value: $(D)/ca}, {name: D, value: x}, "
     "{name: ETCD_CLIENT_CERT_FILE, valueFrom: {fieldRef: {fieldPath: x}}}]"),
     "--key-file serverLeaf Host /host/k/f PerHandshake 1 verified reloads\n--key-file clientLeaf Host /host/k/f PerHandshake 1 verified reloads\n"
     "ETCD_CLIENT_CERT_FILE clientLeaf Unknown comes from elsewhere than the manifest PerHandshake 1 verified\n"
     "ETCD_PEER_TRUSTED_CA_FILE clientCA Unknown comes from elsewhere than the manifest Restart 0 verified\n"
     "ETCD_PEER_TRUSTED_CA_FILE serverCA Unknown comes from elsewhere than the manifest Restart 0 verified\n", NULL},
    {"neither command nor args", "etcd", POD("coreos/etcd:v3.6.8", "env: [{name: ETCD_CLIENT_KEY_FILE, value: /k/v}]"),
     "ETCD_CLIENT_KEY_FILE clientLeaf Host /host/k/v PerHandshake 1 verified reloads\n", NULL},
    {"variables of a ConfigMap", "etcd", POD("etcd:3.6.8-0", "command: [etcd], envFrom: [{configMapRef: {name: x}}]"), "",
     "etcd of p: container c has variables from elsewhere (envFrom)"},
    {"RKE2's etcd has a file, beside which no flag counts", "etcd",
     POD("rancher/hardened-etcd:v3.6.4-k3s1", "command: [etcd, -config-file, /k/etcd, --cert-file=/k/not-this]"),
     "--cert-file<--config-file serverLeaf Host /host/k/s.crt PerHandshake 1 verified reloads\n"
     "--cert-file<--config-file clientLeaf Host /host/k/s.crt PerHandshake 1 verified reloads\n"
     "--key-file<--config-file serverLeaf Host /host/k/s.key PerHandshake 1 verified reloads\n"
     "--key-file<--config-file clientLeaf Host /host/k/s.key PerHandshake 1 verified reloads\n"
     "--trusted-ca-file<--config-file clientCA Host /host/k/ca Restart 0 verified\n"
     "--trusted-ca-file<--config-file serverCA Host /host/k/ca Restart 0 verified\n"
     "--peer-cert-file<--config-file serverLeaf Host /host/k/p.crt PerHandshake 1 verified reloads\n"
     "--peer-cert-file<--config-file clientLeaf Host /host/k/p.crt PerHandshake 1 verified reloads\n"
     "--peer-key-file<--config-file serverLeaf Host /host/k/p.key PerHandshake 1 verified reloads\n"
     "--peer-key-file<--config-file clientLeaf Host /host/k/p.key PerHandshake 1 verified reloads\n"
     "--peer-trusted-ca-file<--config-file clientCA Host /host/k/pca Restart 0 verified\n"
     "--peer-trusted-ca-file<--config-file serverCA Host /host/k/pca Restart 0 verified\n", NULL},
    {"one that cannot be read", "etcd", POD("etcd:3.6.8-0", "command: [etcd], env: [{name: ETCD_CONFIG_FILE, value: /k/none}]"), "",
     "etcd of p: --config-file: /host/k/none: No such file or directory"},
    {"a probe starts etcdctl anew each time", "etcdctl",
     POD("etcd:3.5.0-0", "command: [etcd], livenessProbe: {exec: {command: [/bin/sh, -ec, 'ETCDCTL_API=3 etcdctl --endpoints=https://[127.0.0.1]:2379 --cacert=/k/ca --cert=/k/c --key=/k/k get foo']}}"),
     "--cert clientLeaf Host /host/k/c PerHandshake 1 verified reloads\n--key clientLeaf Host /host/k/k PerHandshake 1 verified reloads\n"
     "--cacert serverCA Host /host/k/ca PerHandshake 1 verified reloads\n", NULL},
    {"a probe of what is not known adds nothing to the container's program", "etcd",
     POD("etcd:3.6.8-0", "command: [etcd, --key-file=/k/f], livenessProbe: {exec: {command: [cat, /k/x]}}"),
     "--key-file serverLeaf Host /host/k/f PerHandshake 1 verified reloads\n--key-file clientLeaf Host /host/k/f PerHandshake 1 verified reloads\n", NULL},
};
/* clang-format on */

/* want: NULL is not looked at; "*a*b" has a, and b behind it. */
static void expect_lines(const char *rule, const char *want, const char *is)
{
    if (!want)
        return;
    if (*want != '*') {
        if (!cr_streq(want, is))
            fail_msg("%s: want\n%s, is\n%s", rule, want, is);
        return;
    }
    const char *at = is;
    for (const char *p = want + 1; at; p += strcspn(p, "*") + 1) {
        cr_autofree char *part = cr_strndup(p, strcspn(p, "*"));
        at = strstr(at, part);
        if (!at)
            fail_msg("%s: no '%s' in\n%s", rule, part, is);
        at = at ? at + strlen(part) : NULL;
        if (!p[strcspn(p, "*")])
            break;
    }
}

static void each_shape_of_a_program(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        CR_CLEANUP(cr_node_parameters) struct cr_node_parameters all = {0};
        scene_add_pod(&all, builtin, rows[i].pod, files);
        cr_autofree char *is = scene_lines(&all, rows[i].component);
        expect_lines(rows[i].rule, rows[i].lines, is);
        const char *trouble = all.troubles.len ? all.troubles.items[0] : NULL;
        if (!cr_streq(trouble, rows[i].trouble))
            fail_msg("%s: want trouble '%s', is '%s'", rows[i].rule, cr_or_empty(rows[i].trouble),
                     cr_or_empty(trouble));
    }
}

static void says_which_program_reads_each(void **state)
{
    (void)state;
    CR_CLEANUP(cr_node_parameters) struct cr_node_parameters all = {0};
    scene_add_pod(&all, builtin, POD("kube-scheduler:v1.36.3", "command: [kube-scheduler, --tls-cert-file=/k/s]"),
                  files);
    assert_int_equal(all.len, 1);
    assert_string_equal(all.items[0].component, "kube-scheduler");
    assert_string_equal(all.items[0].version, "v1.36.3");
    assert_string_equal(all.items[0].pod, "p");
    assert_string_equal(all.items[0].container, "c");
    assert_string_equal(all.items[0].path, "/k/s");
    assert_non_null(strstr(all.items[0].capability.source, "dynamic_serving_content.go"));
}

static void what_is_not_in_the_catalogue_adds_nothing(void **state)
{
    (void)state;
    CR_CLEANUP(cr_node_parameters) struct cr_node_parameters all = {0};
    scene_add_pod(&all, builtin, POD("acme/agent:1", "command: [agent, --tls-cert-file=/k/s]"), files);
    assert_int_equal(all.len, 0);
    assert_int_equal(all.troubles.len, 0);
}

/* --- the kubelet --- */

/* clang-format off */
static const struct {
    const char *rule;
    const char *flags;
    const char *config;
    const char *version;
    const char *lines;
} kubelets[] = {
    {"by files, without rotation", "--kubeconfig=/host/k/config --tls-cert-file=/s --client-ca-file=/c", NULL, "v1.36.3",
     "--client-ca-file clientCA Host /c Watch 5 verified reloads\n--tls-cert-file serverLeaf Host /s Watch 5 verified reloads\n"
     CONFIG_ROWS("--kubeconfig")
     "kubeconfig certificate-authority<--kubeconfig serverCA Host /host/k/pki/ca.crt Poll 300 verified reloads\n"
     WHOLE_LEAF("--kubeconfig", "PerHandshake 300 verified reloads")},
    {"with it", "--kubeconfig=/host/k/config --tls-cert-file=/s --rotate-certificates", NULL, "v1.36.3",
     "--tls-cert-file serverLeaf Host /s Watch 5 verified reloads\n"
     CONFIG_ROWS("--kubeconfig")
     "kubeconfig certificate-authority<--kubeconfig serverCA Host /host/k/pki/ca.crt Restart 0 verified\n"
     WHOLE_LEAF("--kubeconfig", "Restart 0 verified own")},
    {"what it presents is its own, when its kubeconfig has another", "--kubeconfig=/host/k/config --tls-cert-file=/s --rotate-certificates --cert-dir=/own", NULL, "v1.36.3",
     "--tls-cert-file serverLeaf Host /s Watch 5 verified reloads\n"
     CONFIG_ROWS("--kubeconfig")
     "kubeconfig certificate-authority<--kubeconfig serverCA Host /host/k/pki/ca.crt Restart 0 verified\n"
     WHOLE_LEAF("--kubeconfig", "Restart 0 verified own")
     "rotateCertificates clientLeaf Host /own/kubelet-client-current.pem Restart 0 verified own\n"},
    {"a gate that the configuration turns off", "--config=/config.yaml --tls-cert-file=/s",
     KUBELET_CONFIG "featureGates: {ReloadKubeletServerCertificateFile: false, A: true}\n", "v1.36.3",
     "authentication.x509.clientCAFile clientCA Host /etc/kubernetes/pki/ca.crt Watch 5 verified reloads\n"
     "--tls-cert-file serverLeaf Host /s Restart 0 verified\n"},
    {"before 1.36", "--client-ca-file=/c --tls-cert-file=/s", NULL, "v1.35.1",
     "--client-ca-file clientCA Host /c Restart 0 verified\n--tls-cert-file serverLeaf Host /s Watch 5 verified reloads\n"},
    {"before 1.31", "--client-ca-file=/c --tls-cert-file=/s", NULL, "v1.30.14",
     "--client-ca-file clientCA Host /c Restart 0 verified\n--tls-cert-file serverLeaf Host /s Restart 0 verified\n"},
    {"of a version that is not known", "--tls-cert-file=/s", NULL, NULL, "--tls-cert-file serverLeaf Host /s Restart 0 verified\n"},
    {"it asks for what it serves", "--rotate-server-certificates", NULL, "v1.36.3",
     "serverTLSBootstrap serverLeaf Host /var/lib/kubelet/pki/kubelet-server-current.pem Restart 0 verified own\n"},
    {"before it has joined", "--tls-cert-file=/s --bootstrap-kubeconfig=/host/k/insecure", NULL, "v1.36.3",
     "--tls-cert-file serverLeaf Host /s Watch 5 verified reloads\n"
     "--bootstrap-kubeconfig clientLeaf Host /host/k/insecure Restart 0 verified\n"
     "--bootstrap-kubeconfig serverCA Host /host/k/insecure Restart 0 verified\n"},
    {"afterwards", "--tls-cert-file=/s --bootstrap-kubeconfig=/gone", NULL, "v1.36.3", "--tls-cert-file serverLeaf Host /s Watch 5 verified reloads\n"},
};
/* clang-format on */

static void each_way_of_a_kubelet(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(kubelets); i++) {
        CR_CLEANUP(cr_node_parameters) struct cr_node_parameters all = {0};
        scene_add_kubelet(&all, builtin, kubelets[i].flags, kubelets[i].config, kubelets[i].version, files);
        cr_autofree char *is = scene_lines(&all, "kubelet");
        expect_lines(kubelets[i].rule, kubelets[i].lines, is);
        if (all.troubles.len)
            fail_msg("%s: %s", kubelets[i].rule, all.troubles.items[0]);
    }
}

/* --- one file for signing and trust --- */

/* clang-format off */
static const struct {
    const char *rule;
    const char *manager;   /* flags of kube-controller-manager */
    const char *apiserver;
    const char *kubelet;
    const char *in;        /* the parameters that it is seen in, by spaces */
} shared_files[] = {
    {"the same file by one program", "--cluster-signing-cert-file=/k/ca, --root-ca-file=/k/ca", "", "",
     "--root-ca-file --cluster-signing-cert-file"},
    {"by another", "--cluster-signing-cert-file=/k/ca", "--client-ca-file=/k/ca", "", "--cluster-signing-cert-file --client-ca-file"},
    {"by the kubelet, which sees it by the node's name", "--cluster-signing-cert-file=/k/ca", "", "--client-ca-file=/host//k/ca",
     "--cluster-signing-cert-file --client-ca-file"},
    {"as a kubeconfig's CA", "--cluster-signing-kubelet-client-cert-file=/k/pki/ca.crt, --kubeconfig=/k/config", "", "",
     "--cluster-signing-kubelet-client-cert-file kubeconfig certificate-authority"},
    {"a file of its own", "--cluster-signing-cert-file=/k/signing, --root-ca-file=/k/ca", "--client-ca-file=/k/ca", "--client-ca-file=/host/k/ca", ""},
    {"a name that only begins alike", "--cluster-signing-cert-file=/k/ca, --root-ca-file=/k/ca.crt", "", "", ""},
    {"the signing key is no certificate", "--cluster-signing-key-file=/k/ca, --root-ca-file=/k/ca", "", "", ""},
    {"a kubeconfig is no bundle", "--cluster-signing-cert-file=/k/config, --kubeconfig=/k/config", "", "", ""},
    {"a leaf is none", "--cluster-signing-cert-file=/k/ca, --tls-cert-file=/k/ca", "", "", ""},
    {"what cannot be told is not the same", "--cluster-signing-cert-file=/token/ca, --root-ca-file=/token/ca", "", "", ""},
};
/* clang-format on */

static void one_file_that_signs_and_is_a_bundle_is_flagged(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(shared_files); i++) {
        CR_CLEANUP(cr_node_parameters) struct cr_node_parameters all = {0};
        cr_autofree char *manager = cr_asprintf(
            POD("kube-controller-manager:v1.36.3", "command: [kube-controller-manager, %s]"), shared_files[i].manager);
        cr_autofree char *apiserver =
            cr_asprintf(POD("kube-apiserver:v1.36.3", "command: [kube-apiserver, %s]"), shared_files[i].apiserver);
        scene_add_pod(&all, builtin, manager, files);
        scene_add_pod(&all, builtin, apiserver, files);
        scene_add_kubelet(&all, builtin, shared_files[i].kubelet, NULL, "v1.36.3", files);
        CR_CLEANUP(cr_buf) struct cr_buf is = CR_BUF_INIT(0);
        for (size_t k = 0; k < all.len; k++)
            if (all.items[k].signs_and_trusts)
                cr_buf_printf(&is, "%s%s", is.len ? " " : "", all.items[k].parameter);
        if (!cr_streq(cr_buf_text(&is), shared_files[i].in))
            fail_msg("%s: want '%s', is '%s'", shared_files[i].rule, shared_files[i].in, cr_buf_text(&is));
    }
}

/* --- the table of openFuyao's page "Certificate Hot Reload" (v25.09) --- */

#define SERVING                                                                                                        \
    "--client-ca-file", "--requestheader-client-ca-file", "--tls-cert-file", "--tls-private-key-file",                 \
        "--tls-sni-cert-key"
#define IN_KUBECONFIG "kubeconfig certificate-authority", "kubeconfig client-certificate", "kubeconfig client-key"

/* clang-format off */
/* Row by row; those of CoreDNS are in its Corefile, which is no flag of a static pod. The ninth has
 * --cluster-signing-kubelet-serving-cert-file twice: its key file is meant. */
static const struct {
    int row;
    const char *component;
    const char *parameters[10];
} table[] = {
    {1, "kube-apiserver", {SERVING}},
    {2, "kube-apiserver", {"--etcd-cafile", "--etcd-certfile", "--etcd-keyfile"}},
    {3, "kube-apiserver", {"--kubelet-certificate-authority", "--kubelet-client-certificate", "--kubelet-client-key"}},
    {4, "kube-apiserver", {"--peer-ca-file", "--proxy-client-cert-file", "--proxy-client-key-file"}},
    {5, "kube-apiserver", {"--service-account-key-file", "--service-account-signing-key-file"}},
    {6, "kube-apiserver", {"--oidc-ca-file"}},
    {7, "kube-controller-manager", {SERVING}},
    {8, "kube-controller-manager", {"--root-ca-file"}},
    {9, "kube-controller-manager",
     {"--cluster-signing-key-file", "--cluster-signing-cert-file", "--cluster-signing-kube-apiserver-client-cert-file",
      "--cluster-signing-kube-apiserver-client-key-file", "--cluster-signing-kubelet-client-cert-file",
      "--cluster-signing-kubelet-client-key-file", "--cluster-signing-kubelet-serving-cert-file",
      "--cluster-signing-kubelet-serving-key-file", "--cluster-signing-legacy-unknown-cert-file",
      "--cluster-signing-legacy-unknown-key-file"}},
    {10, "kube-controller-manager", {"--service-account-private-key-file"}},
    {11, "kube-controller-manager", {"--kubeconfig", IN_KUBECONFIG}},
    {12, "kube-scheduler", {SERVING}},
    {13, "kube-scheduler", {"--kubeconfig", IN_KUBECONFIG}},
    {14, "kubelet", {"--client-ca-file", "--tls-cert-file", "--tls-private-key-file"}},
    {15, "kubelet", {"--kubeconfig", IN_KUBECONFIG}},
    {15, "kubelet", {"--bootstrap-kubeconfig", IN_KUBECONFIG}},
    {16, "kube-proxy", {"--kubeconfig", IN_KUBECONFIG}},
    {17, "etcd", {"--trusted-ca-file", "--cert-file", "--key-file", "--client-cert-file", "--client-key-file"}},
    {18, "etcd", {"--peer-trusted-ca-file", "--peer-cert-file", "--peer-key-file", "--peer-client-cert-file", "--peer-client-key-file"}},
    {19, "etcdctl", {"--cacert", "--cert", "--key"}},
};
/* clang-format on */

/* All flags of a row, each with its value, between and behind each other. */
static char *flags_of(const char *const *parameters, const char *between)
{
    struct cr_buf buf = CR_BUF_INIT(0);
    for (size_t k = 0; k < 10 && parameters[k]; k++)
        if (*parameters[k] == '-')
            cr_buf_printf(&buf, "%s%s=/host/k/%s", buf.len ? between : "", parameters[k],
                          cr_ends_with(parameters[k], "kubeconfig") ? "config" : "x");
    return cr_buf_steal(&buf);
}

static void every_parameter_of_the_table_has_a_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(table); i++) {
        CR_CLEANUP(cr_node_parameters) struct cr_node_parameters all = {0};
        bool kubelet = cr_streq(table[i].component, "kubelet");
        cr_autofree char *flags = flags_of(table[i].parameters, kubelet ? " " : ", ");
        cr_autofree char *pod =
            cr_asprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n"
                        "  - {name: c, image: 'r/x:v1.36.3', command: [%s, %s], volumeMounts: [{name: k, mountPath: "
                        "/host/k}]}\n  volumes: [{name: k, hostPath: {path: /host/k, type: Directory}}]\n",
                        table[i].component, flags);
        if (kubelet)
            scene_add_kubelet(&all, builtin, flags, NULL, "v1.36.3", files);
        else
            scene_add_pod(&all, builtin, pod, files);
        for (size_t k = 0; k < cr_array_len(table[i].parameters) && table[i].parameters[k]; k++) {
            bool found = false;
            for (size_t n = 0; n < all.len; n++)
                found = found || (cr_streq(all.items[n].parameter, table[i].parameters[k]) &&
                                  cr_streq(all.items[n].component, table[i].component) &&
                                  all.items[n].place == CR_NODE_PLACE_HOST && all.items[n].capability.source &&
                                  all.items[n].capability.method != CR_METHOD_UNKNOWN);
            if (!found)
                fail_msg("row %d, %s: no %s", table[i].row, table[i].component, table[i].parameters[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_kubeadm_s_node),
        cmocka_unit_test(each_shape_of_a_program),
        cmocka_unit_test(says_which_program_reads_each),
        cmocka_unit_test(what_is_not_in_the_catalogue_adds_nothing),
        cmocka_unit_test(each_way_of_a_kubelet),
        cmocka_unit_test(one_file_that_signs_and_is_a_bundle_is_flagged),
        cmocka_unit_test(every_parameter_of_the_table_has_a_row),
    };
    return cmocka_run_group_tests(tests, load_builtin, free_builtin);
}
