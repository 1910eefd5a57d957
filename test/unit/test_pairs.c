#include "controlplane/agent/pairs.h"

#include "support/builtin.h"
#include "support/nodescene.h"

/* Rows by words "parameter path", and which of them are partners: "0-1 2-3". */
static char *pairs_of(const struct cr_node_parameters *all)
{
    cr_autofree size_t *partners = cr_calloc(all->len + 1, sizeof *partners);
    struct cr_buf out = CR_BUF_INIT(0);
    cr_node_pairs_find(all, partners);
    for (size_t i = 0; i < all->len; i++) {
        if (partners[i] == CR_NODE_NO_PARTNER)
            continue;
        assert_int_equal(partners[partners[i]], i);
        if (i < partners[i])
            cr_buf_printf(&out, "%s%s+%s", out.len ? " " : "", all->items[i].host, all->items[partners[i]].host);
    }
    return cr_buf_steal(&out);
}

#define POD(words)                                                                                                     \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    image: x:v1.36.3\n"        \
    "    command: [" words "]\n    volumeMounts: [{name: v, mountPath: /p}]\n"                                         \
    "  volumes: [{name: v, hostPath: {path: /p, type: Directory}}]\n"

static const struct {
    const char *rule, *manifest, *want;
} rows[] = {
    {"flags",
     POD("kube-apiserver, --tls-cert-file=/p/a, --tls-private-key-file=/p/b, --etcd-keyfile=/p/c, "
         "--etcd-certfile=/p/d, --kubelet-client-certificate=/p/e, --kubelet-client-key=/p/f"),
     "/p/a+/p/b /p/d+/p/c /p/e+/p/f"},
    {"of several SNI pairs each its own",
     POD("kube-scheduler, '--tls-sni-cert-key=/p/a,/p/b:x', "
         "'--tls-sni-cert-key=/p/c,/p/d'"),
     "/p/a+/p/b /p/c+/p/d"},
    {"a pair in each role", POD("etcd, --cert-file=/p/a, --key-file=/p/b, --peer-cert-file=/p/c, --peer-key-file=/p/d"),
     "/p/a+/p/b /p/a+/p/b /p/c+/p/d /p/c+/p/d"},
    {"signers",
     POD("kube-controller-manager, --cluster-signing-cert-file=/p/a, --cluster-signing-key-file=/p/b, "
         "--cluster-signing-kubelet-client-key-file=/p/d, "
         "--cluster-signing-kubelet-client-cert-file=/p/c, --client-ca-file=/p/x, --root-ca-file=/p/x, "
         "--service-account-private-key-file=/p/y"),
     "/p/a+/p/b /p/c+/p/d"},
    {"one without the other", POD("etcd, --cert-file=/p/a, --peer-key-file=/p/d"), ""},
};

static void certificates_have_their_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        CR_CLEANUP(cr_node_parameters) struct cr_node_parameters all = {0};
        scene_add_pod(&all, builtin, rows[i].manifest, NULL);
        cr_autofree char *is = pairs_of(&all);
        if (!cr_streq(is, rows[i].want))
            fail_msg("%s: want %s, is %s", rows[i].rule, rows[i].want, is);
    }
}

static void a_kubelet_s_pair_may_be_said_in_two_places(void **state)
{
    (void)state;
    CR_CLEANUP(cr_node_parameters) struct cr_node_parameters all = {0};
    scene_add_kubelet(&all, builtin, "--config=/config.yaml --tls-cert-file=/c --tls-private-key-file=/k",
                      "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n", "v1.36.3", NULL);
    cr_autofree char *flags = pairs_of(&all);
    assert_string_equal(flags, "/c+/k");
    cr_node_parameters_dispose(&all);
    scene_add_kubelet(&all, builtin, "--config=/config.yaml --tls-cert-file=/c",
                      "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ntlsPrivateKeyFile: /k\n",
                      "v1.36.3", NULL);
    cr_autofree char *mixed = pairs_of(&all);
    assert_string_equal(mixed, "/c+/k");
}

static void two_pods_are_two(void **state)
{
    (void)state;
    CR_CLEANUP(cr_node_parameters) struct cr_node_parameters all = {0};
    scene_add_pod(&all, builtin, POD("etcd, --cert-file=/p/a"), NULL);
    scene_add_pod(&all, builtin,
                  "apiVersion: v1\nkind: Pod\nmetadata: {name: q}\nspec:\n  containers:\n  - name: c\n"
                  "    image: x:v1.36.3\n    command: [etcd, --key-file=/p/b]\n",
                  NULL);
    cr_autofree char *is = pairs_of(&all);
    assert_string_equal(is, "");
}

/* Every leaf and signer that the catalogue knows of a program of the node is compared with its key.
 */
static void every_pair_of_the_catalogue_is_known(void **state)
{
    static const char *const programs[] = {
        "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "etcd", "etcdctl"};
    (void)state;
    size_t seen = 0;
    for (size_t i = 0; i < cr_array_len(programs); i++) {
        struct cr_known_parameter one;
        CR_CLEANUP(cr_node_parameters) struct cr_node_parameters all = {0};
        for (size_t k = 0; cr_component_parameter(cr_catalogue_by_name(builtin, programs[i]), k, &one); k++) {
            bool leaf = one.roles & (CR_ROLE_BIT(CR_ROLE_SERVER_LEAF) | CR_ROLE_BIT(CR_ROLE_CLIENT_LEAF));
            bool signer = cr_starts_with(one.name, "--cluster-signing");
            /* A kubeconfig is no pair, and of SNI's flag there is one for both. */
            if ((!leaf && !signer) || cr_ends_with(one.name, "kubeconfig") || cr_streq(one.name, "--tls-sni-cert-key"))
                continue;
            all.items = cr_reallocarray(all.items, all.len + 1, sizeof *all.items);
            all.items[all.len++] =
                (struct cr_node_parameter){.component = cr_strdup(programs[i]), .parameter = cr_strdup(one.name)};
        }
        cr_autofree size_t *partners = cr_calloc(all.len + 1, sizeof *partners);
        cr_node_pairs_find(&all, partners);
        for (size_t k = 0; k < all.len; k++, seen++)
            if (partners[k] == CR_NODE_NO_PARTNER)
                fail_msg("%s %s has no partner", programs[i], all.items[k].parameter);
    }
    assert_true(seen > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(certificates_have_their_keys),
        cmocka_unit_test(a_kubelet_s_pair_may_be_said_in_two_places),
        cmocka_unit_test(two_pods_are_two),
        cmocka_unit_test(every_pair_of_the_catalogue_is_known),
    };
    return cmocka_run_group_tests(tests, load_builtin, free_builtin);
}
