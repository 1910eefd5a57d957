#include "controlplane/agent/prove.h"

#include <openssl/x509.h>

#include "support/nodescene.h"
#include "support/testserver.h"
#include "support/tlsends.h"

#include "base/clock.h"
#include "codec/yaml.h"
#include "sys/file.h"

/* --- a node of one program --- */

struct node {
    struct cr_node_look look;
    struct cr_node_program program;
    struct cr_static_pod *pods[1];
    char *manifests[1];
    char *component, *pod; /* owned */
};

static char manifest_path[] = "/etc/kubernetes/manifests/one.yaml", kubelet_name[] = "kubelet";

static void node_dispose(struct node *node)
{
    cr_static_pod_free(node->pods[0]);
    cr_kubelet_files_dispose(&node->look.kubelet);
    free(node->component);
    free(node->pod);
}
CR_DEFINE_DISPOSE(node, struct node, node_dispose)

/* component: of the pod's only container. */
static void node_init(struct node *node, const char *component, const char *manifest)
{
    struct cr_error err = {0};
    *node = (struct node){0};
    node->pods[0] = cr_static_pod_read(manifest, strlen(manifest), &err);
    if (!node->pods[0])
        fail_msg("the test's own manifest: %s\n%s", err.text, manifest);
    node->manifests[0] = manifest_path;
    node->component = cr_strdup(component);
    node->pod = cr_strdup(node->pods[0]->name);
    node->look = (struct cr_node_look){.pods = node->pods, .manifests = node->manifests, .pods_len = 1};
    node->program = (struct cr_node_program){.component = node->component,
                                             .pod = node->pod,
                                             .container = node->pods[0]->containers[0].name,
                                             .manifest = manifest_path,
                                             .running = true};
}

static void node_init_kubelet(struct node *node, const char *flags, const char *config)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_kubelet_command) struct cr_kubelet_command command = {0};
    cr_autofree char *line = cr_asprintf("kubelet%s%s", *flags ? " " : "", flags);
    size_t len = strlen(line) + 1;
    for (char *p = strchr(line, ' '); p; p = strchr(p + 1, ' '))
        *p = '\0';
    struct cr_kubelet_text text = {.path = "/config.yaml", .text = config, .len = strlen(config)};
    *node = (struct node){.look = {.has_kubelet = true}, .program = {.component = kubelet_name, .running = true}};
    if (!cr_kubelet_command_read(line, len, "/", &command, &err) ||
        !cr_kubelet_files_read(&command, &(struct cr_kubelet_texts){.config = &text}, &node->look.kubelet, &err))
        fail_msg("the test's own kubelet: %s", err.text);
}

/* "address:port leaf < CA's parameter, page (name)", one a line; without any why. Owned. */
static char *ports_of(const struct node *node)
{
    struct cr_node_port ports[CR_NODE_PORTS_MAX];
    const char *why = NULL;
    struct cr_buf buf = CR_BUF_INIT(0);
    size_t len = cr_node_ports(&node->look, &node->program, ports, &why);
    for (size_t i = 0; i < len; i++)
        cr_buf_printf(&buf, "%s %s:%d%s%s%s%s%s%s%s%s\n", ports[i].tls ? "tls" : "plain", ports[i].address,
                      ports[i].port, ports[i].parameter ? " " : "", cr_or_empty(ports[i].parameter),
                      ports[i].ca_parameter ? " < " : "", cr_or_empty(ports[i].ca_parameter),
                      ports[i].health ? " " : "", cr_or_empty(ports[i].health), ports[i].server_name[0] ? " as " : "",
                      ports[i].server_name);
    assert_true((len == 0) == (why != NULL));
    if (why)
        cr_buf_puts(&buf, why);
    return cr_buf_steal(&buf);
}

/* --- which ports --- */

#define POD(network, image, words)                                                                                     \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: kube-system}\nspec:\n  " network                        \
    "\n  containers:\n  - {name: c, image: 'r/" image "', " words "}\n"
#define HOST(image, words) POD("hostNetwork: true", image, words)
#define API                "kube-apiserver:v1.36.3"
#define ETCD               "etcd:3.6.8-0"
#define CLIENTS            " --cert-file < --trusted-ca-file"
#define PEERS              " --peer-cert-file < --peer-trusted-ca-file"
#define SECURE             " --tls-cert-file < --client-ca-file"

/* clang-format off */
static const struct { const char *rule, *component, *pod, *ports; } rows[] = {
    {"an API server's defaults", "kube-apiserver", HOST(API, "command: [kube-apiserver]"), "tls 127.0.0.1:6443" SECURE " /readyz\n"},
    {"its address is asked where it is bound to", "kube-apiserver", HOST(API, "command: [kube-apiserver, --bind-address=192.0.2.7, --secure-port, '8443']"),
     "tls 192.0.2.7:8443" SECURE " /readyz\n"},
    {"IPv6", "kube-apiserver", HOST(API, "command: [kube-apiserver, '--bind-address=::']"), "tls ::1:6443" SECURE " /readyz\n"},
    {"one address of IPv6", "kube-apiserver", HOST(API, "command: [kube-apiserver, '--bind-address=fd00::7']"), "tls fd00::7:6443" SECURE " /readyz\n"},
    {"pairs with names: the one without is asked for", "kube-apiserver", HOST(API, "command: [kube-apiserver, '--tls-sni-cert-key=/a,/b']"),
     "tls 127.0.0.1:6443" SECURE " /readyz as default.invalid\n"},
    {"the last of a flag counts", "kube-apiserver", HOST(API, "command: [kube-apiserver, --secure-port=1, --secure-port=2]"), "tls 127.0.0.1:2" SECURE " /readyz\n"},
    {"a name is none to be asked at", "kube-apiserver", HOST(API, "command: [kube-apiserver, --bind-address=node-1.example]"), "nothing is known of where it can be asked"},
    {"nor are many", "kube-apiserver", HOST(API, "command: [kube-apiserver, --bind-address=224.0.0.1]"), "nothing is known of where it can be asked"},
    {"no port", "kube-apiserver", HOST(API, "command: [kube-apiserver, --secure-port=http]"), "nothing is known of where it can be asked"},
    {"another network", "kube-apiserver", POD("hostNetwork: false", API, "command: [kube-apiserver]"), "its pod is not in the node's network"},
    {"words from elsewhere", "kube-apiserver", HOST(API, "command: [kube-apiserver, '--secure-port=$(PORT)']"), "not all words that it is started with can be told"},
    {"a component that nobody knows", "acme", HOST("acme:1", "command: [acme, --secure-port=1]"), "nothing is known of where it can be asked"},
    {"a controller manager's defaults", "kube-controller-manager", HOST("kube-controller-manager:v1.36.3", "command: [kube-controller-manager]"),
     "tls 127.0.0.1:10257" SECURE " /healthz\n"},
    {"that serves nothing", "kube-controller-manager", HOST("kube-controller-manager:v1.36.3", "command: [kube-controller-manager, --secure-port=0]"),
     "it serves nothing (--secure-port=0)"},
    {"a scheduler's defaults", "kube-scheduler", HOST("kube-scheduler:v1.36.3", "command: [kube-scheduler, --config=/c]"), "tls 127.0.0.1:10259" SECURE " /healthz\n"},
    {"a proxy has a page only", "kube-proxy", HOST("kube-proxy:v1.36.3", "command: [kube-proxy]"), "plain 127.0.0.1:10256 /healthz\n"},
    {"where it is said", "kube-proxy", HOST("kube-proxy:v1.36.3", "command: [kube-proxy, '--healthz-bind-address=[::]:7']"), "plain ::1:7 /healthz\n"},
    {"in its configuration nobody looks", "kube-proxy", HOST("kube-proxy:v1.36.3", "command: [kube-proxy, --config=/c]"),
     "where it can be asked is said in its --config, which is not followed for that"},
    {"etcd's defaults are plain, and peers have no page", "etcd", HOST(ETCD, "command: [etcd]"), "plain 127.0.0.1:2379 /readyz\n"},
    {"several URLs, some of them Unix sockets", "etcd",
     HOST(ETCD, "command: [etcd, '--listen-client-urls=https://127.0.0.1:2379,unix://localhost:m1,https://[::1]:2379', "
                "'--listen-peer-urls=https://0.0.0.0:2380', '--listen-metrics-urls=http://127.0.0.1:2381,unixs://x']"),
     "tls 127.0.0.1:2379" CLIENTS "\ntls ::1:2379" CLIENTS "\ntls 127.0.0.1:2380" PEERS "\nplain 127.0.0.1:2381 /readyz\n"},
    {"before 3.6 it has /health", "etcd", HOST("etcd:3.5.21-0", "command: [etcd, '--listen-peer-urls=https://0.0.0.0:2380']"),
     "plain 127.0.0.1:2379 /health\ntls 127.0.0.1:2380" PEERS "\n"},
    {"of a version that is not known, too", "etcd", HOST("etcd:latest", "command: [etcd]"), "plain 127.0.0.1:2379 /health\n"},
    {"pages behind TLS want a certificate", "etcd", HOST(ETCD, "command: [etcd, '--listen-client-urls=https://0.0.0.0:1/', '--listen-metrics-urls=https://0.0.0.0:2']"),
     "tls 127.0.0.1:1" CLIENTS "\ntls 127.0.0.1:2" CLIENTS "\n"},
    {"variables", "etcd", HOST(ETCD, "command: [etcd], env: [{name: ETCD_LISTEN_CLIENT_URLS, value: 'https://192.0.2.7:1'}, {name: ETCD_CERT_FILE, value: /k/c}, "
                                     "{name: ETCD_TRUSTED_CA_FILE, value: /k/ca}]"), "tls 192.0.2.7:1 ETCD_CERT_FILE < ETCD_TRUSTED_CA_FILE\n"},
    {"a flag is above its variable", "etcd", HOST(ETCD, "command: [etcd, '--listen-client-urls=https://192.0.2.8:1', --cert-file=/k/c], "
                                                        "env: [{name: ETCD_LISTEN_CLIENT_URLS, value: 'https://192.0.2.7:1'}, {name: ETCD_CERT_FILE, value: /k/c}]"),
     "tls 192.0.2.8:1" CLIENTS "\n"},
    {"etcd's configuration nobody looks into", "etcd", HOST(ETCD, "command: [etcd, --config-file=/c]"),
     "where it can be asked is said in its --config-file, which is not followed for that"},
    {"URLs that are none", "etcd", HOST(ETCD, "command: [etcd, '--listen-client-urls=https://,https://x:2379,//,tcp://127.0.0.1:1,https://127.0.0.1:99999,https://127.0.0.1']"),
     "nothing is known of where it can be asked"},
};

static const struct { const char *name, *component, *ports; } kubeadm[] = {
    {"kubeadm-etcd", "etcd", "tls 127.0.0.1:2379" CLIENTS "\ntls 192.0.2.11:2379" CLIENTS "\ntls 192.0.2.11:2380" PEERS "\nplain 127.0.0.1:2381 /readyz\n"},
    {"kubeadm-kube-apiserver", "kube-apiserver", "tls 127.0.0.1:6443" SECURE " /readyz\n"},
    {"kubeadm-kube-controller-manager", "kube-controller-manager", "tls 127.0.0.1:10257" SECURE " /healthz\n"},
    {"kubeadm-kube-scheduler", "kube-scheduler", "tls 127.0.0.1:10259" SECURE " /healthz\n"},
};

#define KUBELET_CONFIG "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
static const struct { const char *rule, *flags, *config, *ports; } kubelets[] = {
    {"kubeadm's", "--config=/config.yaml", KUBELET_CONFIG "authentication: {x509: {clientCAFile: /ca}}\nrotateCertificates: true\n",
     "tls 127.0.0.1:10250 tlsCertFile < authentication.x509.clientCAFile\nplain 127.0.0.1:10248 /healthz\n"},
    {"its own pair", "--config=/config.yaml --client-ca-file=/ca", KUBELET_CONFIG "serverTLSBootstrap: true\n",
     "tls 127.0.0.1:10250 serverTLSBootstrap < --client-ca-file\nplain 127.0.0.1:10248 /healthz\n"},
    {"by flags", "--config=/config.yaml --tls-cert-file=/c --tls-private-key-file=/k --address=192.0.2.7 --port=1", KUBELET_CONFIG "healthzPort: 0\n",
     "tls 192.0.2.7:1 --tls-cert-file < --client-ca-file\n"},
    {"serves nothing", "--config=/config.yaml", KUBELET_CONFIG "enableServer: false\nhealthzPort: 0\n", "nothing is known of where it can be asked"},
};
/* clang-format on */

static void flags_say_where_to_ask(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        CR_CLEANUP(node) struct node node;
        node_init(&node, rows[i].component, rows[i].pod);
        cr_autofree char *is = ports_of(&node);
        if (!cr_streq(is, rows[i].ports))
            fail_msg("%s: want\n%s, is\n%s", rows[i].rule, rows[i].ports, is);
    }
}

static void kubeadm_s_manifests_say_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(kubeadm); i++) {
        cr_autofree char *path = cr_asprintf(CERTROLL_SOURCE_DIR "/test/testdata/static-pods/%s.yaml", kubeadm[i].name);
        struct cr_error err = {0};
        CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
        if (!cr_file_read(path, CR_YAML_MAX_BYTES, &text, &err))
            fail_msg("%s", err.text);
        CR_CLEANUP(node) struct node node;
        node_init(&node, kubeadm[i].component, cr_buf_text(&text));
        cr_autofree char *is = ports_of(&node);
        if (!cr_streq(is, kubeadm[i].ports))
            fail_msg("%s: want\n%s, is\n%s", kubeadm[i].name, kubeadm[i].ports, is);
    }
}

static void a_kubelet_says_it_in_its_configuration(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(kubelets); i++) {
        CR_CLEANUP(node) struct node node;
        node_init_kubelet(&node, kubelets[i].flags, kubelets[i].config);
        cr_autofree char *is = ports_of(&node);
        if (!cr_streq(is, kubelets[i].ports))
            fail_msg("%s: want\n%s, is\n%s", kubelets[i].rule, kubelets[i].ports, is);
    }
}

static void front_proxies_are_announced_with_clients(void **state)
{
    (void)state;
    const struct cr_node_port port = {.ca_parameter = "--client-ca-file"};
    const struct cr_node_port etcd = {.ca_parameter = "--trusted-ca-file"};
    const struct cr_node_port page = {.ca_parameter = NULL};
    assert_true(cr_node_port_announces(&port, "--client-ca-file"));
    assert_true(cr_node_port_announces(&port, "--requestheader-client-ca-file"));
    assert_true(cr_node_port_announces(&etcd, "--trusted-ca-file"));
    assert_false(cr_node_port_announces(&etcd, "--requestheader-client-ca-file"));
    assert_false(cr_node_port_announces(&port, "--etcd-cafile"));
    assert_false(cr_node_port_announces(&page, "--client-ca-file"));
}

/* --- the verdict --- */

static void what_ports_show_is_judged(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        bool running;
        const char *why;
        struct {
            const char *problem;
            int status;
        } ports[2];
        size_t len;
        const char *want;
    } cases[] = {
        {"well", true, NULL, {{"", 0}, {"", 200}}, 2, "Serving "},
        {"a page that is not well", true, NULL, {{"", 500}}, 1, "Failing /readyz answers 500 at port 6443"},
        {"a redirect is no yes", true, NULL, {{"", 302}}, 1, "Failing /readyz answers 302 at port 6443"},
        {"one that wants to know who asks",
         true,
         NULL,
         {{"", 401}},
         1,
         "Serving it answers handshakes; its page does not say whether it is well without knowing who asks"},
        {"beside one that tells", true, NULL, {{"", 403}, {"", 200}}, 2, "Serving "},
        {"no page",
         true,
         NULL,
         {{"", 0}},
         1,
         "Serving it answers handshakes; there is no page that says whether it is well"},
        {"a port that does not answer",
         true,
         NULL,
         {{"", 200}, {"refused", 0}},
         2,
         "Failing port 6443 at 127.0.0.1: refused"},
        {"nothing to ask", true, "it hides", {{NULL, 0}}, 0, "Unknown it hides"},
        {"does not run", false, "it hides", {{NULL, 0}}, 0, "Failing it does not run"},
        {"does not run, and does not answer",
         false,
         NULL,
         {{"refused", 0}},
         1,
         "Failing port 6443 at 127.0.0.1: refused"},
        {"answers and is not seen",
         false,
         NULL,
         {{"", 200}},
         1,
         "Unknown its ports answer, though no process of it is seen"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct cr_node_program program = {.running = cases[i].running};
        struct cr_node_proof proof = {.len = cases[i].len};
        for (size_t k = 0; k < cases[i].len; k++) {
            struct cr_node_proof_port *port = &proof.ports[k];
            port->port = (struct cr_node_port){.address = "127.0.0.1", .port = 6443, .tls = true, .health = "/readyz"};
            port->status = cases[i].ports[k].status;
            snprintf(port->problem, sizeof port->problem, "%s", cases[i].ports[k].problem);
        }
        cr_node_proof_judge(&program, cases[i].why, &proof);
        cr_autofree char *is = cr_asprintf("%s %s", cr_node_health_name(proof.health), proof.message);
        if (!cr_streq(is, cases[i].want))
            fail_msg("%s: want %s, is %s", cases[i].rule, cases[i].want, is);
    }
}

/* --- asking --- */

enum { PATIENCE_MS = 20 * 1000 };

struct page {
    int status;
    char *head; /* of the last request; owned */
};

static void serve_page(struct test_conn *conn, void *arg)
{
    struct page *page = arg;
    if (!test_conn_request(conn))
        return;
    free(page->head);
    page->head = cr_strdup(conn->head);
    test_conn_answer(conn, page->status, "", "ok");
}

static void prove(const struct node *node, int timeout_ms, struct cr_node_proof *proof)
{
    cr_node_prove(&node->look, &node->program, timeout_ms, proof);
    assert_int_equal(proof->len, 1);
}

static void init_apiserver(struct node *node, int port)
{
    cr_autofree char *manifest =
        cr_asprintf(HOST(API, "command: [kube-apiserver, --bind-address=127.0.0.1, --secure-port=%d]"), port);
    node_init(node, "kube-apiserver", manifest);
}

static void a_server_shows_its_leaf_and_its_page_without_knowing_us(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.cn = "api"});
    struct page page = {.status = 200};
    CR_CLEANUP(test_server)
    struct test_server *server =
        test_server_new(&(struct test_server_options){.cert = cert, .serve = serve_page, .arg = &page});
    CR_CLEANUP(node) struct node node;
    struct cr_node_proof proof;
    char leaf[64 + 1];
    init_apiserver(&node, test_server_port(server));
    prove(&node, PATIENCE_MS, &proof);
    test_cert_digest(cert, leaf);
    if (proof.health != CR_NODE_HEALTH_SERVING || proof.message[0])
        fail_msg("%s %s", cr_node_health_name(proof.health), proof.message);
    assert_int_equal(proof.ports[0].probe.outcome, CR_PROBE_SERVED);
    assert_string_equal(proof.ports[0].probe.leaf, leaf);
    assert_true(cr_starts_with(page.head, "GET /readyz HTTP/1.1\r\n"));
    assert_null(strstr(page.head, "Authorization"));
    free(page.head);
}

static void a_server_that_is_not_well_says_so(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.cn = "api"});
    struct page page = {.status = 500};
    CR_CLEANUP(test_server)
    struct test_server *server =
        test_server_new(&(struct test_server_options){.cert = cert, .serve = serve_page, .arg = &page});
    CR_CLEANUP(node) struct node node;
    struct cr_node_proof proof;
    init_apiserver(&node, test_server_port(server));
    prove(&node, PATIENCE_MS, &proof);
    assert_int_equal(proof.health, CR_NODE_HEALTH_FAILING);
    assert_int_equal(proof.ports[0].status, 500);
    free(page.head);
}

/* A page that begins and does not end: the leaf was seen all the same, and the time is kept. */
static void who_hangs_is_not_waited_for(void **state)
{
    (void)state;
    enum { SOON_MS = 600 };
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.cn = "api"});
    CR_CLEANUP(test_server)
    struct test_server *server =
        test_server_new(&(struct test_server_options){.cert = cert, .serve = test_serve_silence});
    CR_CLEANUP(node) struct node node;
    struct cr_node_proof proof;
    init_apiserver(&node, test_server_port(server));
    int64_t before = cr_clock_monotonic_ms();
    prove(&node, SOON_MS, &proof);
    int64_t took = cr_clock_monotonic_ms() - before;
    assert_int_equal(proof.health, CR_NODE_HEALTH_FAILING);
    assert_true(took < PATIENCE_MS);
    /* The words are the same each time, so that they make no other report. */
    assert_string_equal(proof.ports[0].problem, "no answer of /readyz");
}

static void who_is_away_fails(void **state)
{
    (void)state;
    CR_CLEANUP(test_server) struct test_server *server = test_server_new(&(struct test_server_options){0});
    int port = test_server_port(server);
    CR_CLEANUP(node) struct node node;
    struct cr_node_proof proof;
    init_apiserver(&node, port);
    test_server_free(cr_steal(&server));
    prove(&node, PATIENCE_MS, &proof);
    assert_int_equal(proof.health, CR_NODE_HEALTH_FAILING);
    assert_non_null(strstr(proof.message, "127.0.0.1: "));
}

/* No host has an address of 192.0.2.0/24 (RFC 5737). */
static void an_address_of_another_machine_is_not_asked(void **state)
{
    (void)state;
    CR_CLEANUP(node) struct node node;
    struct cr_node_proof proof;
    node_init(&node, "kube-apiserver", HOST(API, "command: [kube-apiserver, --bind-address=192.0.2.7]"));
    prove(&node, PATIENCE_MS, &proof);
    assert_int_equal(proof.ports[0].probe.outcome, CR_PROBE_REFUSED);
    assert_string_equal(proof.message, "port 6443 at 192.0.2.7: it is no address of this node");
    assert_int_equal(proof.health, CR_NODE_HEALTH_FAILING);
}

/* The server demands a certificate: handshakes fail for us, after the leaf was seen. */
static void a_server_that_demands_certificates_announces_the_cas(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.cn = "etcd"});
    CR_CLEANUP(test_cert) struct test_cert *ca = test_cert_new(&(struct test_cert_spec){.cn = "etcd-ca", .ca = true});
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.cert = cert, .client_ca = ca});
    cr_autofree char *manifest = cr_asprintf(HOST(ETCD, "command: [etcd, '--listen-client-urls=https://127.0.0.1:%d']"),
                                             test_server_port(server));
    CR_CLEANUP(node) struct node node;
    struct cr_node_proof proof;
    unsigned char name[32];
    unsigned len = 0;
    node_init(&node, "etcd", manifest);
    prove(&node, PATIENCE_MS, &proof);
    assert_int_equal(proof.health, CR_NODE_HEALTH_SERVING);
    assert_string_equal(proof.message, "it answers handshakes; there is no page that says whether it is well");
    assert_true(proof.ports[0].probe.announced.asked);
    assert_int_equal(proof.ports[0].probe.announced.len, 1);
    assert_int_equal(X509_NAME_digest(X509_get_subject_name(ca->x509), EVP_sha256(), name, &len), 1);
    assert_memory_equal(proof.ports[0].probe.announced.names[0], name, sizeof name);
}

static void handshakes_are_not_made_again_where_a_page_says_it(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.cn = "etcd"});
    struct page page = {.status = 200};
    struct test_server *server = test_server_new(&(struct test_server_options){.cert = cert});
    CR_CLEANUP(test_server)
    struct test_server *pages = test_server_new(&(struct test_server_options){.serve = serve_page, .arg = &page});
    cr_autofree char *words = cr_asprintf(
        "command: [etcd, '--listen-client-urls=https://127.0.0.1:%d', '--listen-metrics-urls=http://127.0.0.1:%d']",
        test_server_port(server), test_server_port(pages));
    cr_autofree char *manifest = cr_asprintf(HOST(ETCD, "%s"), words);
    cr_autofree char *without = cr_asprintf(HOST(ETCD, "command: [etcd, '--listen-client-urls=https://127.0.0.1:%d']"),
                                            test_server_port(server));
    CR_CLEANUP(node) struct node node;
    CR_CLEANUP(node) struct node no_page;
    struct cr_node_proof first;
    struct cr_node_proof again;
    struct cr_node_proof other;
    node_init(&node, "etcd", manifest);
    node_init(&no_page, "etcd", without);
    cr_node_prove(&node.look, &node.program, PATIENCE_MS, &first);
    prove(&no_page, PATIENCE_MS, &other);
    test_server_free(server);
    assert_int_equal(first.health, CR_NODE_HEALTH_SERVING);

    assert_true(cr_node_prove_pages(&node.look, &node.program, &first, PATIENCE_MS, &again));
    assert_int_equal(again.health, CR_NODE_HEALTH_SERVING);
    assert_string_equal(again.ports[0].probe.leaf, first.ports[0].probe.leaf);
    page.status = 503;
    assert_true(cr_node_prove_pages(&node.look, &node.program, &first, PATIENCE_MS, &again));
    assert_int_equal(again.health, CR_NODE_HEALTH_FAILING);

    assert_false(cr_node_prove_pages(&no_page.look, &no_page.program, &other, PATIENCE_MS, &again));
    assert_false(cr_node_prove_pages(&node.look, &node.program, &other, PATIENCE_MS, &again));
    cr_node_prove(&node.look, &node.program, PATIENCE_MS, &other);
    assert_int_equal(other.health, CR_NODE_HEALTH_FAILING);
    assert_false(cr_node_prove_pages(&node.look, &node.program, &other, PATIENCE_MS, &again));
    free(page.head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_say_where_to_ask),
        cmocka_unit_test(kubeadm_s_manifests_say_it),
        cmocka_unit_test(a_kubelet_says_it_in_its_configuration),
        cmocka_unit_test(front_proxies_are_announced_with_clients),
        cmocka_unit_test(what_ports_show_is_judged),
        cmocka_unit_test(a_server_shows_its_leaf_and_its_page_without_knowing_us),
        cmocka_unit_test(a_server_that_is_not_well_says_so),
        cmocka_unit_test(who_hangs_is_not_waited_for),
        cmocka_unit_test(who_is_away_fails),
        cmocka_unit_test(an_address_of_another_machine_is_not_asked),
        cmocka_unit_test(a_server_that_demands_certificates_announces_the_cas),
        cmocka_unit_test(handshakes_are_not_made_again_where_a_page_says_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
