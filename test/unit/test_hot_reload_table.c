/* The table of openFuyao's page "Certificate Hot Reload" (v25.09), row by row: what is decided for each parameter, for
 * that distribution and for upstream by version. */
#include "policy/rules/decide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "evidence/diff.h"
#include "support/yamltext.h"

enum { LEAF = CR_CHANGE_LEAF_RENEWED, CA = CR_CHANGE_TRUST_ADDED, KEY = CR_CHANGE_OPAQUE };
#define RELOAD  CR_DECISION_HOT_RELOAD
#define RESTART CR_DECISION_RESTART

#define SERVING                                                                                                        \
    "--tls-cert-file=/certs/tls.crt, --tls-private-key-file=/certs/tls.key, "                                          \
    "'--tls-sni-cert-key=/certs/tls.crt,/certs/tls.key', --client-ca-file=/certs/ca.crt, "                             \
    "--requestheader-client-ca-file=/certs/ca.crt"
/* What is known to be used elsewhere leaves a kind of file to the kubeconfig, whose text no template shows. */
#define KUBECONFIG_LEAF "--kubeconfig=/etc/k8s/config, --client-ca-file=/certs/ca.crt"
#define KUBECONFIG_CA   "--kubeconfig=/etc/k8s/config, --tls-cert-file=/certs/tls.crt"
#define KUBECONFIG      "--kubeconfig=/certs/config"
#define SIGNING(name)                                                                                                  \
    "--cluster-signing" name "-cert-file=/certs/ca.pem, --cluster-signing" name "-key-file=/certs/ca.key"

/* clang-format off */
static const struct row {
    int row;
    const char *component; /* upstream; "openfuyao/" before it is the other distribution */
    const char *args;
    unsigned changes;
    struct { const char *version; enum cr_decision_kind kind; } upstream[4];
    int64_t fuyao_ms; /* openFuyao: longest delay; 0: restart */
} rows[] = {
    {1, "kube-apiserver", SERVING, LEAF, {{"v1.16.0", RESTART}, {"v1.17.0", RELOAD}, {"v1.36.3", RELOAD}}, 60000},
    {1, "kube-apiserver", SERVING, CA, {{"v1.16.0", RESTART}, {"v1.17.0", RELOAD}, {"v1.36.3", RELOAD}}, 60000},
    {2, "kube-apiserver", "--etcd-certfile=/certs/tls.crt, --etcd-keyfile=/certs/tls.key", LEAF,
     {{"v1.20.0", RELOAD}, {"v1.36.3", RELOAD}}, 60000},
    {2, "kube-apiserver", "--etcd-cafile=/certs/ca.crt", CA, {{"v1.35.0", RESTART}, {"v1.36.3", RESTART}}, 60000},
    {3, "kube-apiserver", "--kubelet-client-certificate=/certs/tls.crt, --kubelet-client-key=/certs/tls.key", LEAF,
     {{"v1.18.0", RESTART}, {"v1.19.0", RELOAD}, {"v1.36.3", RELOAD}}, 60000},
    {3, "kube-apiserver", "--kubelet-certificate-authority=/certs/ca.crt", CA,
     {{"v1.35.9", RESTART}, {"v1.36.0", RELOAD}}, 60000},
    {3, "kube-apiserver", "--kubelet-certificate-authority=/certs/ca.crt, '--feature-gates=ClientsAllowCARotation=false'", CA,
     {{"v1.36.0", RESTART}}, 60000},
    {4, "kube-apiserver", "--proxy-client-cert-file=/certs/tls.crt, --proxy-client-key-file=/certs/tls.key", LEAF,
     {{"v1.19.0", RESTART}, {"v1.20.0", RELOAD}}, 60000},
    {4, "kube-apiserver", "--peer-ca-file=/certs/ca.crt", CA, {{"v1.35.0", RESTART}, {"v1.36.0", RELOAD}}, 60000},
    {5, "kube-apiserver", "--service-account-key-file=/certs/sa.pub, --service-account-signing-key-file=/certs/sa.key", KEY,
     {{"v1.30.0", RESTART}, {"v1.36.3", RESTART}}, 300000},
    {6, "kube-apiserver", "--oidc-ca-file=/certs/ca.crt", CA, {{"v1.30.0", RESTART}, {"v1.36.3", RESTART}}, 60000},
    {7, "kube-controller-manager", SERVING, LEAF, {{"v1.16.0", RESTART}, {"v1.36.3", RELOAD}}, 60000},
    {7, "kube-controller-manager", SERVING, CA, {{"v1.16.0", RESTART}, {"v1.36.3", RELOAD}}, 60000},
    {8, "kube-controller-manager", "--root-ca-file=/certs/ca.crt", CA, {{"v1.30.0", RESTART}, {"v1.36.3", RESTART}}, 60000},
    {9, "kube-controller-manager", SIGNING(""), KEY, {{"v1.22.0", RESTART}, {"v1.23.0", RELOAD}, {"v1.36.3", RELOAD}}, 60000},
    {9, "kube-controller-manager", SIGNING("-kube-apiserver-client"), KEY, {{"v1.36.3", RELOAD}}, 60000},
    {9, "kube-controller-manager", SIGNING("-kubelet-client"), KEY, {{"v1.36.3", RELOAD}}, 60000},
    {9, "kube-controller-manager", SIGNING("-kubelet-serving"), KEY, {{"v1.36.3", RELOAD}}, 60000},
    {9, "kube-controller-manager", SIGNING("-legacy-unknown"), KEY, {{"v1.36.3", RELOAD}}, 60000},
    {10, "kube-controller-manager", "--service-account-private-key-file=/certs/sa.key", KEY,
     {{"v1.30.0", RESTART}, {"v1.36.3", RESTART}}, 300000},
    {11, "kube-controller-manager", KUBECONFIG_LEAF, LEAF, {{"v1.18.0", RESTART}, {"v1.30.0", RELOAD}, {"v1.36.3", RELOAD}}, 60000},
    {11, "kube-controller-manager", KUBECONFIG_CA, CA, {{"v1.30.0", RESTART}, {"v1.35.9", RESTART}, {"v1.36.0", RELOAD}}, 60000},
    {12, "kube-scheduler", SERVING, LEAF, {{"v1.16.0", RESTART}, {"v1.17.0", RELOAD}, {"v1.36.3", RELOAD}}, 60000},
    {12, "kube-scheduler", SERVING, CA, {{"v1.16.0", RESTART}, {"v1.17.0", RELOAD}, {"v1.36.3", RELOAD}}, 60000},
    {13, "kube-scheduler", KUBECONFIG_LEAF, LEAF, {{"v1.18.0", RESTART}, {"v1.30.0", RELOAD}, {"v1.36.3", RELOAD}}, 60000},
    {13, "kube-scheduler", KUBECONFIG_CA, CA, {{"v1.30.0", RESTART}, {"v1.35.9", RESTART}, {"v1.36.0", RELOAD}}, 60000},
    {14, "kubelet", "--tls-cert-file=/certs/tls.crt, --tls-private-key-file=/certs/tls.key", LEAF,
     {{"v1.30.9", RESTART}, {"v1.31.0", RELOAD}, {"v1.36.0", RELOAD}}, 60000},
    {14, "kubelet", "--client-ca-file=/certs/ca.crt", CA, {{"v1.30.0", RESTART}, {"v1.31.0", RESTART}, {"v1.36.0", RELOAD}}, 60000},
    /* Before 1.31 the same Secret may be the serving certificate of its configuration file, which is read once. */
    {15, "kubelet", KUBECONFIG_LEAF ", --rotate-certificates=false", LEAF, {{"v1.30.0", RESTART}, {"v1.31.0", RELOAD}}, 60000},
    {15, "kubelet", KUBECONFIG_LEAF, LEAF, {{"v1.30.0", RESTART}, {"v1.31.0", RESTART}, {"v1.36.3", RESTART}}, 60000},
    {15, "kubelet", KUBECONFIG_CA, CA, {{"v1.30.0", RESTART}, {"v1.36.3", RESTART}}, 60000},
    {15, "kubelet", KUBECONFIG_CA ", --rotate-certificates=false", CA, {{"v1.35.0", RESTART}, {"v1.36.0", RELOAD}}, 60000},
    {15, "kubelet", "--bootstrap-kubeconfig=/certs/config", KEY, {{"v1.36.3", RESTART}}, 0},
    {16, "kube-proxy", KUBECONFIG, LEAF, {{"v1.18.0", RESTART}, {"v1.30.0", RELOAD}, {"v1.36.3", RELOAD}}, 60000},
    {16, "kube-proxy", KUBECONFIG, CA, {{"v1.35.9", RESTART}, {"v1.36.0", RELOAD}}, 60000},
    /* Embedded in the kubeconfig: not reloaded anywhere. */
    {16, "kube-proxy", KUBECONFIG, KEY, {{"v1.35.9", RESTART}, {"v1.36.0", RESTART}}, 0},
    {17, "etcd", "--cert-file=/certs/tls.crt, --key-file=/certs/tls.key", LEAF, {{"v3.3.0", RESTART}, {"v3.4.0", RELOAD}, {"v3.6.8", RELOAD}}, 60000},
    {17, "etcd", "--client-cert-file=/certs/tls.crt, --client-key-file=/certs/tls.key", LEAF, {{"v3.6.8", RELOAD}}, 60000},
    {17, "etcd", "--trusted-ca-file=/certs/ca.crt", CA, {{"v3.4.0", RESTART}, {"v3.6.8", RESTART}}, 60000},
    {18, "etcd", "--peer-cert-file=/certs/tls.crt, --peer-key-file=/certs/tls.key", LEAF, {{"v3.3.0", RESTART}, {"v3.6.8", RELOAD}}, 60000},
    {18, "etcd", "--peer-client-cert-file=/certs/tls.crt, --peer-client-key-file=/certs/tls.key", LEAF, {{"v3.6.8", RELOAD}}, 60000},
    {18, "etcd", "--peer-trusted-ca-file=/certs/ca.crt", CA, {{"v3.4.0", RESTART}, {"v3.6.8", RESTART}}, 60000},
    {19, "etcdctl", "--cert=/certs/tls.crt, --key=/certs/tls.key", LEAF, {{"v3.6.8", RELOAD}}, 60000},
    {19, "etcdctl", "--cacert=/certs/ca.crt", CA, {{"v3.6.8", RELOAD}}, 60000},
};
/* clang-format on */

static struct cr_decision decide(const struct cr_catalogue *catalogue, const char *component, const char *version,
                                 const struct row *row)
{
    cr_autofree char *text = cr_asprintf(
        "containers: [{name: c, image: 'acme/app:%s', args: [%s], volumeMounts: [{name: v, mountPath: /certs}]}]\n"
        "volumes: [{name: v, secret: {secretName: tls}}]\n",
        version, row->args);
    CR_CLEANUP(cr_json) struct cr_json *spec = test_yaml(text);
    char name[] = "tls";
    char certificate[] = "tls.crt";
    char private_key[] = "tls.key";
    char trust[] = "ca.crt";
    char consumer_name[] = "c";
    cr_autofree char *given = cr_strdup(component);
    struct cr_policy_secret secret = {
        .name = name, .certificate = certificate, .private_key = private_key, .trust = trust};
    struct cr_secret_change change = {.secret = &secret, .changes = row->changes};
    struct cr_policy_consumer consumer = {.name = consumer_name, .component = given};
    struct cr_decide_input input = {
        .consumer = &consumer, .pod_spec = spec, .catalogue = catalogue, .changes = &change, .changes_len = 1};
    struct cr_decision decision;
    cr_decide(&input, &decision);
    return decision;
}

static const char *kind_name(enum cr_decision_kind kind)
{
    return kind == CR_DECISION_RESTART ? "Restart" : kind == CR_DECISION_HOT_RELOAD ? "HotReload" : "None";
}

static int load(void **state)
{
    struct cr_error err = {0};
    *state = cr_catalogue_builtin(&err);
    return *state ? 0 : -1;
}

static int unload(void **state)
{
    cr_catalogue_free(*state);
    return 0;
}

static void test_upstream_by_version(void **state)
{
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        for (size_t k = 0; k < cr_array_len(rows[i].upstream) && rows[i].upstream[k].version; k++) {
            CR_CLEANUP(cr_decision)
            struct cr_decision d = decide(*state, rows[i].component, rows[i].upstream[k].version, &rows[i]);
            if (d.kind != rows[i].upstream[k].kind)
                fail_msg("row %d, %s %s %s: %s: %s", rows[i].row, rows[i].component, rows[i].upstream[k].version,
                         rows[i].args, kind_name(d.kind), d.reason);
        }
    }
}

static void test_openfuyao(void **state)
{
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        cr_autofree char *component = cr_asprintf("openfuyao/%s", rows[i].component);
        CR_CLEANUP(cr_decision) struct cr_decision d = decide(*state, component, "v25.09", &rows[i]);
        enum cr_decision_kind wanted = rows[i].fuyao_ms ? CR_DECISION_HOT_RELOAD : CR_DECISION_RESTART;
        if (d.kind != wanted || d.secrets[0].max_delay_ms != rows[i].fuyao_ms)
            fail_msg("row %d, %s %s: %s within %lld ms: %s", rows[i].row, component, rows[i].args, kind_name(d.kind),
                     (long long)d.secrets[0].max_delay_ms, d.reason);
    }
}

/* Rows 20 to 22: all of it is in the Corefile, which a pod template does not show. So the decision is the strictest of
 * all plugins; what the rows say shows in the capability of each parameter. */
static void test_coredns(void **state)
{
    static const struct row leaf = {.args = "-conf, /etc/coredns/Corefile", .changes = LEAF};
    static const struct row ca = {.args = "-conf, /etc/coredns/Corefile", .changes = CA};
    static const char *const components[] = {"coredns", "openfuyao/coredns"};
    for (size_t i = 0; i < cr_array_len(components); i++) {
        CR_CLEANUP(cr_decision) struct cr_decision a = decide(*state, components[i], "1.14.7", &leaf);
        CR_CLEANUP(cr_decision) struct cr_decision b = decide(*state, components[i], "1.14.7", &ca);
        assert_int_equal(a.kind, CR_DECISION_RESTART);
        assert_int_equal(b.kind, CR_DECISION_RESTART);
        assert_non_null(strstr(a.reason, "SIGUSR1"));
    }
    static const struct {
        int row;
        const char *parameter;
        enum cr_role role;
        enum cr_method upstream; /* 1.14.7 */
        enum cr_method before;   /* 1.14.2 */
    } cases[] = {
        {20, "kubernetes tls CERT", CR_ROLE_CLIENT_LEAF, CR_METHOD_PER_HANDSHAKE, CR_METHOD_PER_HANDSHAKE},
        {20, "kubernetes tls CACERT", CR_ROLE_SERVER_CA, CR_METHOD_SIGNAL, CR_METHOD_SIGNAL},
        {21, "prometheus tls", CR_ROLE_SERVER_LEAF, CR_METHOD_PER_HANDSHAKE, CR_METHOD_RESTART},
    };
    struct cr_capability c;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_program program = {.component = cr_catalogue_by_name(*state, "coredns"), .version = "1.14.7"};
        cr_catalogue_capability(&program, cases[i].parameter, cases[i].role, &c);
        assert_int_equal(c.method, cases[i].upstream);
        program.version = "1.14.2";
        cr_catalogue_capability(&program, cases[i].parameter, cases[i].role, &c);
        assert_int_equal(c.method, cases[i].before);
        program.component = cr_catalogue_by_name(*state, "openfuyao/coredns");
        cr_catalogue_capability(&program, cases[i].parameter, cases[i].role, &c);
        assert_int_equal(c.method, CR_METHOD_WATCH);
        assert_int_equal(c.max_delay_ms, 60 * 1000);
    }
    /* 22: upstream's health plugin speaks no TLS, so the parameter is openFuyao's alone. */
    struct cr_program health = {.component = cr_catalogue_by_name(*state, "openfuyao/coredns")};
    cr_catalogue_capability(&health, "health tls", CR_ROLE_SERVER_LEAF, &c);
    assert_int_equal(c.method, CR_METHOD_WATCH);
}

static void test_every_row_of_the_page_is_here(void **state)
{
    (void)state;
    bool seen[20] = {false};
    for (size_t i = 0; i < cr_array_len(rows); i++)
        seen[rows[i].row] = true;
    for (int row = 1; row <= 19; row++)
        if (!seen[row])
            fail_msg("row %d is missing", row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_upstream_by_version),
        cmocka_unit_test(test_openfuyao),
        cmocka_unit_test(test_coredns),
        cmocka_unit_test(test_every_row_of_the_page_is_here),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
