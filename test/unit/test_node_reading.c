#include "controlplane/agent/node_reading.h"

#include "support/nodetree.h"
#include "support/testcerts.h"

#include <openssl/pem.h>

#include "base/clock.h"
#include "sys/file.h"

#define KUBELET_CONFIG                                                                                                 \
    "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nrotateCertificates: true\n"                \
    "staticPodPath: /etc/kubernetes/manifests\nauthentication: {x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}}\n"
#define KUBELET                                                                                                        \
    "/usr/bin/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf "                                  \
    "--kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml"
#define CURRENT "/var/lib/kubelet/pki/kubelet-client-current.pem"

enum { CERTS = 24 };

/* A node as kubeadm makes it, and the certificates by name. */
struct node {
    struct node_tree tree;
    struct cr_catalogue *catalogue;
    struct cr_node_layout layout;
    struct {
        const char *name;
        struct test_cert *cert;
        char print[CR_SHA256_HEX], key[CR_SHA256_HEX];
    } certs[CERTS];
    size_t len;
    struct cr_node_look look;
};

static void node_dispose(struct node *n)
{
    cr_node_look_dispose(&n->look);
    for (size_t i = 0; i < n->len; i++)
        test_cert_free(n->certs[i].cert);
    cr_catalogue_free(n->catalogue);
    tree_dispose(&n->tree);
}
CR_DEFINE_DISPOSE(node, struct node, node_dispose)

static struct test_cert *cert_of(const struct node *n, const char *name)
{
    for (size_t i = 0; i < n->len; i++)
        if (cr_streq(n->certs[i].name, name))
            return n->certs[i].cert;
    fail_msg("no certificate %s", name);
    return NULL;
}

/* issuer: NULL: a CA. */
static struct test_cert *make(struct node *n, const char *name, const char *issuer)
{
    struct test_cert *cert = test_cert_new(
        &(struct test_cert_spec){.cn = name, .ca = !issuer, .issuer = issuer ? cert_of(n, issuer) : NULL});
    unsigned char *der = NULL;
    int len = i2d_X509(cert->x509, &der);
    assert_true(n->len < CERTS);
    n->certs[n->len].name = name;
    n->certs[n->len].cert = cert;
    cr_sha256_hex(der, (size_t)len, n->certs[n->len].print);
    OPENSSL_free(der);
    der = NULL;
    len = i2d_PUBKEY(cert->key, &der);
    cr_sha256_hex(der, (size_t)len, n->certs[n->len].key);
    OPENSSL_free(der);
    n->len++;
    return cert;
}

static void write_pair(struct node *n, const char *name, const char *issuer)
{
    const struct test_cert *cert = make(n, name, issuer);
    cr_autofree char *crt = cr_asprintf("/etc/kubernetes/pki/%s.crt", name);
    cr_autofree char *key = cr_asprintf("/etc/kubernetes/pki/%s.key", name);
    tree_write(&n->tree, crt, cert->cert_pem);
    tree_write(&n->tree, key, cert->key_pem);
}

static char *public_pem(const struct test_cert *cert)
{
    char *data = NULL;
    BIO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PUBKEY(bio, cert->key), 1);
    long len = BIO_get_mem_data(bio, &data);
    char *text = cr_strndup(data, (size_t)len);
    BIO_free(bio);
    return text;
}

static void write_embedded(struct node *n, const char *name)
{
    const struct test_cert *cert = make(n, name, "ca");
    cr_autofree char *path = cr_asprintf("/etc/kubernetes/%s.conf", name);
    cr_autofree char *ca = tree_base64(cert_of(n, "ca")->cert_pem);
    cr_autofree char *crt = tree_base64(cert->cert_pem);
    cr_autofree char *key = tree_base64(cert->key_pem);
    cr_autofree char *cluster = cr_asprintf("certificate-authority-data: %s", ca);
    cr_autofree char *user = cr_asprintf("client-certificate-data: %s, client-key-data: %s", crt, key);
    cr_autofree char *text = tree_kubeconfig(cluster, user);
    tree_write(&n->tree, path, text);
}

static void copy_manifest(const struct node *n, const char *name)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    cr_autofree char *from = cr_asprintf(CERTROLL_SOURCE_DIR "/test/testdata/static-pods/kubeadm-%s.yaml", name);
    cr_autofree char *to = cr_asprintf("/etc/kubernetes/manifests/%s.yaml", name);
    assert_true(cr_file_read(from, 1 << 20, &text, NULL));
    tree_write(&n->tree, to, cr_buf_text(&text));
}

static void write_kubelet(struct node *n)
{
    const struct test_cert *cert = make(n, "kubelet", "ca");
    cr_autofree char *pair = test_concat(cert->cert_pem, cert->key_pem, NULL);
    cr_autofree char *ca = tree_base64(cert_of(n, "ca")->cert_pem);
    cr_autofree char *cluster = cr_asprintf("certificate-authority-data: %s", ca);
    cr_autofree char *text = tree_kubeconfig(cluster, "client-certificate: " CURRENT ", client-key: " CURRENT);
    tree_write(&n->tree, "/etc/kubernetes/kubelet.conf", text);
    tree_write(&n->tree, "/var/lib/kubelet/pki/kubelet-client-2026-11-22.pem", pair);
    tree_link(&n->tree, CURRENT, "/var/lib/kubelet/pki/kubelet-client-2026-11-22.pem");
    tree_write(&n->tree, "/var/lib/kubelet/config.yaml", KUBELET_CONFIG);
    const struct test_cert *own = make(n, "kubelet-own", NULL);
    tree_write(&n->tree, "/var/lib/kubelet/pki/kubelet.crt", own->cert_pem);
    tree_write(&n->tree, "/var/lib/kubelet/pki/kubelet.key", own->key_pem);
    tree_process(&n->tree, 100, KUBELET, 1000, NULL);
}

static void node_init(struct node *n)
{
    static const char *const pairs[][2] = {{"ca", NULL},
                                           {"front-proxy-ca", NULL},
                                           {"etcd/ca", NULL},
                                           {"apiserver", "ca"},
                                           {"apiserver-kubelet-client", "ca"},
                                           {"apiserver-etcd-client", "etcd/ca"},
                                           {"front-proxy-client", "front-proxy-ca"},
                                           {"etcd/server", "etcd/ca"},
                                           {"etcd/peer", "etcd/ca"},
                                           {"etcd/healthcheck-client", "etcd/ca"}};
    static const char *const pods[] = {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"};
    struct cr_error err = {0};
    *n = (struct node){.catalogue = cr_catalogue_builtin(&err)};
    tree_init(&n->tree);
    n->layout = (struct cr_node_layout){
        .root = n->tree.root, .proc = n->tree.proc, .kubelet_version = "v1.36.3", .own_network_only = true};
    for (size_t i = 0; i < cr_array_len(pairs); i++)
        write_pair(n, pairs[i][0], pairs[i][1]);
    const struct test_cert *sa = make(n, "sa", NULL);
    cr_autofree char *pub = public_pem(sa);
    tree_write(&n->tree, "/etc/kubernetes/pki/sa.pub", pub);
    tree_write(&n->tree, "/etc/kubernetes/pki/sa.key", sa->key_pem);
    write_embedded(n, "controller-manager");
    write_embedded(n, "scheduler");
    write_kubelet(n);
    for (size_t i = 0; i < cr_array_len(pods); i++)
        copy_manifest(n, pods[i]);
    tree_process(&n->tree, 201, "kube-apiserver --secure-port=6443", 2010, NULL);
    tree_process(&n->tree, 202, "kube-controller-manager --leader-elect=true", 2020, NULL);
    tree_process(&n->tree, 203, "kube-scheduler --leader-elect=true", 2030, NULL);
    tree_process(&n->tree, 204, "etcd --name=cp-1", 2040, NULL);
}

static const struct cr_node_look *look(struct node *n)
{
    cr_node_look_dispose(&n->look);
    cr_node_look(&n->layout, n->catalogue, cr_clock_wall_ms(), &n->look);
    return &n->look;
}

/* --- a look as text --- */

/* The names of fingerprints and digests of keys. */
static void print_list(const struct node *n, const struct cr_strvec *prints, const char *label, struct cr_buf *out)
{
    if (!prints->len)
        return;
    cr_buf_printf(out, " %s=", label);
    for (size_t i = 0; i < prints->len; i++) {
        const char *name = prints->items[i];
        for (size_t k = 0; k < n->len; k++)
            if (cr_streq(name, n->certs[k].print) || cr_streq(name, n->certs[k].key))
                name = n->certs[k].name;
        cr_buf_printf(out, "%s%s", i ? "," : "", name);
    }
}

/* "parameter<via role Place host Kind has=… key=… of=… words: problem". */
static char *describe_row(const struct node *n, size_t i)
{
    const struct cr_node_parameter *p = &n->look.parameters.items[i];
    const struct cr_node_content *c = &n->look.contents[i];
    struct cr_buf out = CR_BUF_INIT(0);
    cr_buf_printf(&out, "%s%s%s %s %s %s %s", p->parameter, p->via ? "<" : "", cr_or_empty(p->via),
                  cr_role_name(p->role), cr_node_place_name(p->place), cr_or_empty(p->host),
                  cr_node_file_kind_name(c->material.kind));
    print_list(n, &c->material.prints, "has", &out);
    print_list(n, &c->material.keys, "key", &out);
    print_list(n, &c->issuers, "of", &out);
    cr_buf_printf(&out, "%s%s%s%s%s", p->own ? " own" : "", p->signs_and_trusts ? " trap" : "",
                  c->exists ? "" : " missing", c->material.problem ? ": " : "", cr_or_empty(c->material.problem));
    return cr_buf_steal(&out);
}

static char *describe_component(const struct node *n, const char *component)
{
    struct cr_buf out = CR_BUF_INIT(0);
    for (size_t i = 0; i < n->look.parameters.len; i++) {
        if (!cr_streq(n->look.parameters.items[i].component, component))
            continue;
        cr_autofree char *line = describe_row(n, i);
        cr_buf_printf(&out, "%s\n", line);
    }
    return cr_buf_steal(&out);
}

static void expect_rows(const struct node *n, const char *component, const char *want)
{
    cr_autofree char *is = describe_component(n, component);
    if (!cr_streq(is, want))
        fail_msg("%s: want\n%s, is\n%s", component, want, is);
}

static void expect_no_troubles(const struct node *n)
{
    if (n->look.parameters.troubles.len)
        fail_msg("%s", n->look.parameters.troubles.items[0]);
}

static void expect_trouble(const struct node *n, const char *words)
{
    for (size_t i = 0; i < n->look.parameters.troubles.len; i++)
        if (strstr(n->look.parameters.troubles.items[i], words))
            return;
    cr_autofree char *all = cr_strvec_join(&n->look.parameters.troubles, "\n");
    fail_msg("no trouble says: %s, but\n%s", words, all);
}

static const struct cr_node_program *program(const struct node *n, const char *component)
{
    for (size_t i = 0; i < n->look.programs_len; i++)
        if (cr_streq(n->look.programs[i].component, component))
            return &n->look.programs[i];
    fail_msg("no program %s", component);
    return NULL;
}

static size_t row_of(const struct node *n, const char *component, const char *parameter)
{
    for (size_t i = 0; i < n->look.parameters.len; i++)
        if (cr_streq(n->look.parameters.items[i].component, component) &&
            cr_streq(n->look.parameters.items[i].parameter, parameter))
            return i;
    fail_msg("%s has no row %s", component, parameter);
    return 0;
}

static const struct cr_node_content *content(const struct node *n, const char *component, const char *parameter)
{
    return &n->look.contents[row_of(n, component, parameter)];
}

/* --- kubeadm's node --- */

#define PKI "/etc/kubernetes/pki/"
/* clang-format off */
#define EMBEDDED_IN(flag, name)                                                                                        \
    flag " clientLeaf Host /etc/kubernetes/" name ".conf Leaf has=" name " key=" name " of=ca\n"                       \
    flag " serverCA Host /etc/kubernetes/" name ".conf Trust has=ca key=ca\n"                                          \
    "kubeconfig certificate-authority<" flag " serverCA Embedded /etc/kubernetes/" name ".conf Trust has=ca key=ca\n"  \
    "kubeconfig client-certificate<" flag " clientLeaf Embedded /etc/kubernetes/" name ".conf Leaf has=" name " key=" name " of=ca\n" \
    "kubeconfig client-key<" flag " clientLeaf Embedded /etc/kubernetes/" name ".conf Leaf\n"

static const struct { const char *component, *rows; } kubeadm[] = {
    {"kube-apiserver",
     "--tls-cert-file serverLeaf Host " PKI "apiserver.crt Leaf has=apiserver key=apiserver of=ca\n"
     "--tls-private-key-file serverLeaf Host " PKI "apiserver.key Leaf key=apiserver\n"
     "--client-ca-file clientCA Host " PKI "ca.crt Trust has=ca key=ca trap\n"
     "--requestheader-client-ca-file clientCA Host " PKI "front-proxy-ca.crt Trust has=front-proxy-ca key=front-proxy-ca\n"
     "--etcd-certfile clientLeaf Host " PKI "apiserver-etcd-client.crt Leaf has=apiserver-etcd-client key=apiserver-etcd-client of=etcd/ca\n"
     "--etcd-keyfile clientLeaf Host " PKI "apiserver-etcd-client.key Leaf key=apiserver-etcd-client\n"
     "--etcd-cafile serverCA Host " PKI "etcd/ca.crt Trust has=etcd/ca key=etcd/ca\n"
     "--kubelet-client-certificate clientLeaf Host " PKI "apiserver-kubelet-client.crt Leaf has=apiserver-kubelet-client key=apiserver-kubelet-client of=ca\n"
     "--kubelet-client-key clientLeaf Host " PKI "apiserver-kubelet-client.key Leaf key=apiserver-kubelet-client\n"
     "--proxy-client-cert-file clientLeaf Host " PKI "front-proxy-client.crt Leaf has=front-proxy-client key=front-proxy-client of=front-proxy-ca\n"
     "--proxy-client-key-file clientLeaf Host " PKI "front-proxy-client.key Leaf key=front-proxy-client\n"
     "--service-account-key-file opaque Host " PKI "sa.pub Keys has=sa key=sa\n"
     "--service-account-signing-key-file opaque Host " PKI "sa.key Keys has=sa key=sa\n"},
    {"kube-controller-manager",
     "--client-ca-file clientCA Host " PKI "ca.crt Trust has=ca key=ca trap\n"
     "--requestheader-client-ca-file clientCA Host " PKI "front-proxy-ca.crt Trust has=front-proxy-ca key=front-proxy-ca\n"
     "--root-ca-file serverCA Host " PKI "ca.crt Trust has=ca key=ca trap\n"
     "--cluster-signing-cert-file opaque Host " PKI "ca.crt Signer has=ca key=ca trap\n"
     "--cluster-signing-key-file opaque Host " PKI "ca.key Signer key=ca\n"
     "--service-account-private-key-file opaque Host " PKI "sa.key Keys has=sa key=sa\n"
     EMBEDDED_IN("--kubeconfig", "controller-manager")
     EMBEDDED_IN("--authentication-kubeconfig", "controller-manager")
     EMBEDDED_IN("--authorization-kubeconfig", "controller-manager")},
    {"kube-scheduler",
     EMBEDDED_IN("--kubeconfig", "scheduler")
     EMBEDDED_IN("--authentication-kubeconfig", "scheduler")
     EMBEDDED_IN("--authorization-kubeconfig", "scheduler")},
    {"etcd",
     "--cert-file serverLeaf Host " PKI "etcd/server.crt Leaf has=etcd/server key=etcd/server of=etcd/ca\n"
     "--cert-file clientLeaf Host " PKI "etcd/server.crt Leaf has=etcd/server key=etcd/server of=etcd/ca\n"
     "--key-file serverLeaf Host " PKI "etcd/server.key Leaf key=etcd/server\n"
     "--key-file clientLeaf Host " PKI "etcd/server.key Leaf key=etcd/server\n"
     "--trusted-ca-file clientCA Host " PKI "etcd/ca.crt Trust has=etcd/ca key=etcd/ca\n"
     "--trusted-ca-file serverCA Host " PKI "etcd/ca.crt Trust has=etcd/ca key=etcd/ca\n"
     "--peer-cert-file serverLeaf Host " PKI "etcd/peer.crt Leaf has=etcd/peer key=etcd/peer of=etcd/ca\n"
     "--peer-cert-file clientLeaf Host " PKI "etcd/peer.crt Leaf has=etcd/peer key=etcd/peer of=etcd/ca\n"
     "--peer-key-file serverLeaf Host " PKI "etcd/peer.key Leaf key=etcd/peer\n"
     "--peer-key-file clientLeaf Host " PKI "etcd/peer.key Leaf key=etcd/peer\n"
     "--peer-trusted-ca-file clientCA Host " PKI "etcd/ca.crt Trust has=etcd/ca key=etcd/ca\n"
     "--peer-trusted-ca-file serverCA Host " PKI "etcd/ca.crt Trust has=etcd/ca key=etcd/ca\n"},
    {"kubelet",
     "authentication.x509.clientCAFile clientCA Host " PKI "ca.crt Trust has=ca key=ca trap\n"
     "tlsCertFile serverLeaf Host /var/lib/kubelet/pki/kubelet.crt Leaf has=kubelet-own key=kubelet-own\n"
     "tlsPrivateKeyFile serverLeaf Host /var/lib/kubelet/pki/kubelet.key Leaf key=kubelet-own\n"
     "--kubeconfig clientLeaf Host /etc/kubernetes/kubelet.conf Leaf\n"
     "--kubeconfig serverCA Host /etc/kubernetes/kubelet.conf Trust has=ca key=ca\n"
     "kubeconfig certificate-authority<--kubeconfig serverCA Embedded /etc/kubernetes/kubelet.conf Trust has=ca key=ca\n"
     "kubeconfig client-certificate<--kubeconfig clientLeaf Host " CURRENT " Leaf has=kubelet key=kubelet of=ca own\n"
     "kubeconfig client-key<--kubeconfig clientLeaf Host " CURRENT " Leaf key=kubelet own\n"},
};
/* clang-format on */

static void all_of_kubeadm_s_node(void **state)
{
    (void)state;
    CR_CLEANUP(node) struct node n;
    node_init(&n);
    look(&n);
    expect_no_troubles(&n);
    for (size_t i = 0; i < cr_array_len(kubeadm); i++)
        expect_rows(&n, kubeadm[i].component, kubeadm[i].rows);
    assert_int_equal(n.look.programs_len, 5);
    assert_int_equal(n.look.pods_len, 4);
    assert_int_equal(cr_ca_set_len(n.look.cas), 3);
    const struct cr_node_program *kubelet = program(&n, "kubelet");
    assert_ptr_equal(kubelet, &n.look.programs[4]);
    assert_true(kubelet->running && !kubelet->pod && !kubelet->manifest);
    assert_string_equal(kubelet->version, "v1.36.3");
    const struct cr_node_program *etcd = program(&n, "etcd");
    assert_true(etcd->running);
    assert_int_equal(etcd->process.pid, 204);
    assert_string_equal(etcd->identity, "0-204-2040");
    assert_string_equal(etcd->manifest, "/etc/kubernetes/manifests/etcd.yaml");
    assert_string_equal(etcd->version, "3.6.8-0");
    assert_true(etcd->started_ms > 0 && etcd->started_ms < cr_clock_wall_ms());
}

/* --- what is wrong with a file is said --- */

static void expect_problem(const struct node *n, const char *component, const char *parameter, const char *words)
{
    const char *is = content(n, component, parameter)->material.problem;
    if (words ? !is || !strstr(is, words) : is != NULL)
        fail_msg("%s %s: want '%s', is '%s'", component, parameter, cr_or_empty(words), cr_or_empty(is));
}

static void a_key_that_does_not_fit_is_a_problem_of_both(void **state)
{
    (void)state;
    CR_CLEANUP(node) struct node n;
    node_init(&n);
    tree_write(&n.tree, PKI "apiserver.key", cert_of(&n, "etcd/peer")->key_pem);
    tree_write(&n.tree, PKI "ca.key", cert_of(&n, "etcd/peer")->key_pem);
    const struct test_cert *other = cert_of(&n, "etcd/server");
    cr_autofree char *pair = test_concat(cert_of(&n, "kubelet")->cert_pem, other->key_pem, NULL);
    tree_write(&n.tree, "/var/lib/kubelet/pki/kubelet-client-2026-11-22.pem", pair);
    look(&n);
    static const char words[] = "the key does not belong to the certificate";
    expect_problem(&n, "kube-apiserver", "--tls-cert-file", words);
    expect_problem(&n, "kube-apiserver", "--tls-private-key-file", words);
    expect_problem(&n, "kube-controller-manager", "--cluster-signing-cert-file", words);
    expect_problem(&n, "kube-controller-manager", "--cluster-signing-key-file", words);
    expect_problem(&n, "kubelet", "kubeconfig client-certificate", words);
    expect_problem(&n, "kubelet", "kubeconfig client-key", words);
    expect_problem(&n, "kube-controller-manager", "--client-ca-file", NULL);
    expect_problem(&n, "etcd", "--peer-cert-file", NULL);
}

static void what_cannot_be_read_is_a_problem_of_its_row(void **state)
{
    (void)state;
    CR_CLEANUP(node) struct node n;
    node_init(&n);
    tree_remove(&n.tree, PKI "apiserver.key");
    tree_write(&n.tree, PKI "sa.pub", "nothing\n");
    tree_write(&n.tree, PKI "etcd/ca.crt", "");
    cr_autofree char *two = test_concat(cert_of(&n, "ca")->cert_pem, cert_of(&n, "etcd/ca")->cert_pem, NULL);
    tree_write(&n.tree, PKI "ca.crt", two);
    look(&n);
    expect_problem(&n, "kube-apiserver", "--tls-private-key-file", PKI "apiserver.key: No such file or directory");
    assert_false(content(&n, "kube-apiserver", "--tls-private-key-file")->exists);
    expect_problem(&n, "kube-apiserver", "--tls-cert-file", NULL);
    assert_int_equal(content(&n, "kube-apiserver", "--tls-cert-file")->material.kind, CR_NODE_FILE_LEAF);
    expect_problem(&n, "kube-apiserver", "--service-account-key-file", "has no PEM block");
    expect_problem(&n, "kube-apiserver", "--etcd-cafile", "is empty");
    /* one file for signing and trust */
    expect_problem(&n, "kube-controller-manager", "--cluster-signing-cert-file", "has 2 certificates");
    assert_int_equal(content(&n, "kube-controller-manager", "--cluster-signing-cert-file")->material.certificates, 2);
    assert_int_equal(content(&n, "kube-controller-manager", "--root-ca-file")->material.prints.len, 2);
    /* A server that etcd's CA has signed: that CA is still known, by another bundle. */
    assert_int_equal(content(&n, "etcd", "--peer-cert-file")->issuers.len, 1);
    expect_no_troubles(&n);
}

static void a_kubeconfig_that_cannot_be_read_is_a_trouble(void **state)
{
    (void)state;
    CR_CLEANUP(node) struct node n;
    node_init(&n);
    tree_write(&n.tree, "/etc/kubernetes/scheduler.conf", "{");
    look(&n);
    expect_trouble(&n, "kube-scheduler of kube-scheduler: --kubeconfig: /etc/kubernetes/scheduler.conf");
    expect_problem(&n, "kube-scheduler", "--kubeconfig", "/etc/kubernetes/scheduler.conf");
    expect_problem(&n, "kube-scheduler", "kubeconfig client-certificate", "could not be read");
}

/* --- manifests --- */

static void manifests_are_those_that_a_kubelet_reads(void **state)
{
    (void)state;
    CR_CLEANUP(node) struct node n;
    node_init(&n);
    tree_write(&n.tree, "/etc/kubernetes/manifests/.kube-apiserver.yaml.swp", "{");
    tree_write(&n.tree, "/etc/kubernetes/manifests/old/etcd.yaml", "{");
    tree_write(&n.tree, "/etc/kubernetes/manifests/broken.yaml", "kind: Pod\n");
    tree_link(&n.tree, "/etc/kubernetes/manifests/etcd.yaml", "/srv/etcd.yaml");
    look(&n);
    expect_trouble(&n, "kubelet: static pod /etc/kubernetes/manifests/broken.yaml: the manifest");
    expect_trouble(&n, "kubelet: static pod /etc/kubernetes/manifests/etcd.yaml: No such file");
    assert_int_equal(n.look.parameters.troubles.len, 2);
    assert_int_equal(n.look.pods_len, 3);
    cr_autofree char *folder = cr_asprintf("%s/etc/kubernetes/manifests", n.tree.root);
    assert_true(cr_strvec_has(&n.look.folders, folder));
    cr_autofree char *led_to = cr_asprintf("%s/srv", n.tree.root);
    assert_true(cr_strvec_has(&n.look.paths, led_to));
}

static void two_manifests_of_one_pod_are_a_trouble(void **state)
{
    (void)state;
    CR_CLEANUP(node) struct node n;
    node_init(&n);
    tree_link(&n.tree, "/etc/kubernetes/manifests/etcd.yaml.bak", "etcd.yaml");
    look(&n);
    expect_trouble(&n, "kubelet: /etc/kubernetes/manifests/etcd.yaml and /etc/kubernetes/manifests/etcd.yaml.bak are "
                       "manifests of the same pod, etcd");
}

static void the_folder_of_manifests_may_be_given(void **state)
{
    (void)state;
    CR_CLEANUP(node) struct node n;
    node_init(&n);
    n.layout.manifests = "/etc/kubernetes/manifests/etcd.yaml"; /* the kubelet takes one file as well */
    look(&n);
    assert_int_equal(n.look.pods_len, 1);
    n.layout.manifests = "/nowhere";
    look(&n);
    assert_int_equal(n.look.pods_len, 0);
    expect_trouble(&n, "kubelet: static pods: /nowhere: No such file or directory");
}

/* --- processes --- */

static void tree_forget(const struct node *n, int pid)
{
    cr_autofree char *command = cr_asprintf("rm -r '%s/%d'", n->tree.proc, pid);
    assert_int_equal(system(command), 0);
}

static void the_youngest_process_of_this_network_is_it(void **state)
{
    (void)state;
    CR_CLEANUP(node) struct node n;
    node_init(&n);
    tree_process(&n.tree, 300, "etcd --name=cp-1", 3000, NULL);
    tree_process(&n.tree, 301, "etcd --name=within", 3010, "net:[1]");
    tree_process(&n.tree, 302, "etcd-of-somebody", 3020, NULL);
    tree_forget(&n, 203);
    tree_process(&n.tree, 303, "kube-scheduler --x", 3030, "net:[1]");
    look(&n);
    assert_int_equal(program(&n, "etcd")->process.pid, 300);
    assert_false(program(&n, "kube-scheduler")->running);
    assert_null(program(&n, "kube-scheduler")->identity);
    assert_int_equal(program(&n, "kube-scheduler")->started_ms, 0);
    expect_no_troubles(&n);
    n.layout.own_network_only = false;
    look(&n);
    assert_int_equal(program(&n, "etcd")->process.pid, 301);
    assert_int_equal(program(&n, "kube-scheduler")->process.pid, 303);
}

/* The words of a manifest, by spaces. */
static char *words_of(const struct node *n, const char *pod)
{
    for (size_t i = 0; i < n->look.pods_len; i++)
        if (cr_streq(n->look.pods[i]->name, pod))
            return cr_strvec_join(&n->look.pods[i]->containers[0].argv, " ");
    fail_msg("no pod %s", pod);
    return NULL;
}

static void who_runs_a_program_by_hand_is_not_it(void **state)
{
    (void)state;
    CR_CLEANUP(node) struct node n;
    node_init(&n);
    look(&n);
    cr_autofree char *words = words_of(&n, "etcd");
    tree_forget(&n, 204);
    tree_process(&n.tree, 204, words, 2040, NULL);
    tree_process(&n.tree, 305, "etcd --version", 3050, NULL);
    tree_process(&n.tree, 306, "kubelet --version", 3060, NULL);
    look(&n);
    assert_int_equal(program(&n, "etcd")->process.pid, 204);
    assert_int_equal(program(&n, "kubelet")->process.pid, 100);
    expect_no_troubles(&n);
}

static void replace_in(const struct node *n, const char *host, const char *from, const char *to)
{
    cr_autofree char *command = cr_asprintf("sed -i 's|%s|%s|' '%s%s'", from, to, n->tree.root, host);
    assert_int_equal(system(command), 0);
}

static void a_pod_with_a_network_of_its_own_is_not_guessed_at(void **state)
{
    (void)state;
    CR_CLEANUP(node) struct node n;
    node_init(&n);
    replace_in(&n, "/etc/kubernetes/manifests/etcd.yaml", "hostNetwork: true", "hostNetwork: false");
    look(&n);
    assert_false(program(&n, "etcd")->running);
    expect_trouble(&n, "etcd of etcd: its pod is not hostNetwork");
}

/* --- the kubelet --- */

static void a_kubelet_that_does_not_run_has_no_rows(void **state)
{
    (void)state;
    CR_CLEANUP(node) struct node n;
    node_init(&n);
    tree_forget(&n, 100);
    look(&n);
    assert_false(n.look.has_kubelet);
    assert_false(program(&n, "kubelet")->running);
    assert_int_equal(n.look.pods_len, 4);
    expect_trouble(&n, "kubelet: it does not run");
    expect_trouble(&n, "kubelet: where its static pods are is not known: /etc/kubernetes/manifests is looked at");
    cr_autofree char *rows = describe_component(&n, "kubelet");
    assert_string_equal(rows, "");
}

static void a_configuration_that_cannot_be_read_is_a_trouble(void **state)
{
    (void)state;
    CR_CLEANUP(node) struct node n;
    node_init(&n);
    tree_remove(&n.tree, "/var/lib/kubelet/config.yaml");
    look(&n);
    assert_false(n.look.has_kubelet);
    assert_true(program(&n, "kubelet")->running);
    expect_trouble(&n, "kubelet: /var/lib/kubelet/config.yaml: No such file or directory");
}

/* As filepath.WalkDir comes to them: 10.conf, 20/a.conf, 30.conf. */
static void parts_of_the_configuration_are_read_in_their_order(void **state)
{
    static const char head[] = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
    (void)state;
    CR_CLEANUP(node) struct node n;
    node_init(&n);
    tree_forget(&n, 100);
    tree_process(&n.tree, 101, KUBELET " --config-dir=/etc/kubelet.d", 1010, NULL);
    cr_autofree char *ten = cr_asprintf("%sauthentication: {x509: {clientCAFile: /ten}}\n", head);
    cr_autofree char *twenty = cr_asprintf("%sauthentication: {x509: {clientCAFile: " PKI "etcd/ca.crt}}\n", head);
    cr_autofree char *thirty =
        cr_asprintf("%stlsCertFile: " PKI "apiserver.crt\ntlsPrivateKeyFile: " PKI "apiserver.key\n", head);
    tree_write(&n.tree, "/etc/kubelet.d/10.conf", ten);
    tree_write(&n.tree, "/etc/kubelet.d/20/a.conf", twenty);
    tree_write(&n.tree, "/srv/30", thirty);
    tree_link(&n.tree, "/etc/kubelet.d/30.conf", "/srv/30");
    tree_write(&n.tree, "/etc/kubelet.d/40.yaml", "{");
    look(&n);
    expect_no_troubles(&n);
    assert_string_equal(content(&n, "kubelet", "authentication.x509.clientCAFile")->material.keys.items[0],
                        content(&n, "etcd", "--trusted-ca-file")->material.keys.items[0]);
    assert_string_equal(content(&n, "kubelet", "tlsCertFile")->issuers.items[0],
                        content(&n, "kube-apiserver", "--client-ca-file")->material.prints.items[0]);
    cr_autofree char *inner = cr_asprintf("%s/etc/kubelet.d/20", n.tree.root);
    assert_true(cr_strvec_has(&n.look.folders, inner));
}

/* --- links --- */

static void two_names_of_one_file_are_one_file(void **state)
{
    (void)state;
    CR_CLEANUP(node) struct node n;
    node_init(&n);
    /* Who signs names the file, who trusts a link to it. */
    tree_link(&n.tree, PKI "bundle.crt", "/etc/kubernetes/pki/ca.crt");
    replace_in(&n, "/etc/kubernetes/manifests/kube-controller-manager.yaml", "\\(-ca-file=.*\\)/ca.crt",
               "\\1/bundle.crt");
    replace_in(&n, "/etc/kubernetes/manifests/kube-apiserver.yaml", "\\(-ca-file=.*\\)/ca.crt", "\\1/bundle.crt");
    replace_in(&n, "/var/lib/kubelet/config.yaml", PKI "ca.crt", PKI "bundle.crt");
    look(&n);
    size_t signer = row_of(&n, "kube-controller-manager", "--cluster-signing-cert-file");
    size_t root = row_of(&n, "kube-controller-manager", "--root-ca-file");
    assert_string_equal(n.look.parameters.items[root].host, PKI "bundle.crt");
    assert_int_equal(n.look.contents[signer].inode, n.look.contents[root].inode);
    assert_true(n.look.parameters.items[signer].signs_and_trusts && n.look.parameters.items[root].signs_and_trusts);
    assert_true(n.look.parameters.items[row_of(&n, "kube-apiserver", "--client-ca-file")].signs_and_trusts);
    assert_false(n.look.parameters.items[row_of(&n, "kube-apiserver", "--etcd-cafile")].signs_and_trusts);
    /* A bundle of its own is none of it any more. */
    tree_link(&n.tree, PKI "bundle.crt", "etcd/ca.crt");
    look(&n);
    assert_false(n.look.parameters.items[signer].signs_and_trusts || n.look.parameters.items[root].signs_and_trusts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_kubeadm_s_node),
        cmocka_unit_test(a_key_that_does_not_fit_is_a_problem_of_both),
        cmocka_unit_test(what_cannot_be_read_is_a_problem_of_its_row),
        cmocka_unit_test(a_kubeconfig_that_cannot_be_read_is_a_trouble),
        cmocka_unit_test(manifests_are_those_that_a_kubelet_reads),
        cmocka_unit_test(two_manifests_of_one_pod_are_a_trouble),
        cmocka_unit_test(the_folder_of_manifests_may_be_given),
        cmocka_unit_test(the_youngest_process_of_this_network_is_it),
        cmocka_unit_test(who_runs_a_program_by_hand_is_not_it),
        cmocka_unit_test(a_pod_with_a_network_of_its_own_is_not_guessed_at),
        cmocka_unit_test(a_kubelet_that_does_not_run_has_no_rows),
        cmocka_unit_test(a_configuration_that_cannot_be_read_is_a_trouble),
        cmocka_unit_test(parts_of_the_configuration_are_read_in_their_order),
        cmocka_unit_test(two_names_of_one_file_are_one_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
