#include "controlplane/agent/kubeconfig_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"

/* As kubeadm 1.36 writes it: all keys in the order of their names, everything embedded. */
#define KUBEADM                                                                                                        \
    "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: Q0EK\n    server: "                        \
    "https://192.0.2.10:6443\n"                                                                                        \
    "  name: kubernetes\ncontexts:\n- context:\n    cluster: kubernetes\n    user: system:kube-scheduler\n"            \
    "  name: system:kube-scheduler@kubernetes\ncurrent-context: system:kube-scheduler@kubernetes\nkind: Config\n"      \
    "users:\n- name: system:kube-scheduler\n  user:\n    client-certificate-data: Q0VSVAo=\n"                          \
    "    client-key-data: S0VZCg==\n"
/* As the kubelet writes it when it asks for certificates itself. */
#define KUBELET                                                                                                        \
    "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: Q0EK\n    server: "                        \
    "https://192.0.2.10:6443\n"                                                                                        \
    "  name: default-cluster\ncontexts:\n- context:\n    cluster: default-cluster\n    namespace: default\n"           \
    "    user: default-auth\n  name: default-context\ncurrent-context: default-context\nkind: Config\n"                \
    "users:\n- name: default-auth\n  user:\n"                                                                          \
    "    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem\n"                                        \
    "    client-key: /var/lib/kubelet/pki/kubelet-client-current.pem\n"
#define WITH(cluster, user)                                                                                            \
    "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"                                      \
    "clusters: [{name: k, cluster: {" cluster "}}]\nusers: [{name: u, user: {" user "}}]\n"

/* clang-format off */
static const struct row {
    const char *rule;
    const char *text;
    const char *ca, *certificate, *key; /* a path, "=" and what is embedded, "" for none */
    bool reloads;
    const char *more; /* of: token, tokenFile, exec, insecure */
} rows[] = {
    {"kubeadm embeds all", KUBEADM, "=CA\n", "=CERT\n", "=", false, ""},
    {"a kubelet's pair is one file", KUBELET, "=CA\n", "/var/lib/kubelet/pki/kubelet-client-current.pem",
     "/var/lib/kubelet/pki/kubelet-client-current.pem", true, ""},
    {"files are below the kubeconfig's folder",
     WITH("server: https://h, certificate-authority: pki/ca.crt", "client-certificate: ../c.crt, client-key: /k.key"),
     "/etc/k/pki/ca.crt", "/etc/k/../c.crt", "/k.key", true, ""},
    {"what is embedded counts, whatever file is named beside it",
     WITH("certificate-authority: /ca.crt, certificate-authority-data: Q0EK",
          "client-certificate: /c.crt, client-certificate-data: Q0VSVAo=, client-key: /k, client-key-data: S0VZCg=="),
     "=CA\n", "=CERT\n", "=", false, ""},
    {"a key that is embedded keeps the certificate's file from being read again",
     WITH("certificate-authority: /ca.crt", "client-certificate: /c.crt, client-key-data: S0VZCg=="),
     "/ca.crt", "/c.crt", "=", false, ""},
    {"and a certificate the key's", WITH("", "client-certificate-data: Q0VSVAo=, client-key: /k"), "", "=CERT\n", "/k", false, ""},
    {"empty and null are none",
     WITH("certificate-authority: '', certificate-authority-data: null", "client-certificate: null, client-key: ''"),
     "", "", "", false, ""},
    {"a token of a file", WITH("", "tokenFile: token"), "", "", "", false, "token tokenFile"},
    {"a token", WITH("insecure-skip-tls-verify: true", "token: abc"), "", "", "", false, "token insecure"},
    {"a plugin", WITH("", "exec: {command: x}"), "", "", "", false, "exec"},
    {"a context without a user",
     "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\nclusters: [{name: k, cluster: {server: x}}]\n",
     "", "", "", false, ""},
    {"the current context counts, not the first",
     "current-context: b\ncontexts: [{name: a, context: {cluster: x}}, {name: b, context: {cluster: y}}]\n"
     "clusters: [{name: x, cluster: {certificate-authority: /x}}, {name: y, cluster: {certificate-authority: /y}}]\n",
     "/y", "", "", false, ""},
    {"JSON is YAML", "{\"current-context\": \"c\",\t\"contexts\": [{\"name\": \"c\", \"context\": {\"cluster\": \"k\"}}],\n"
     "\t\"clusters\": [{\"name\": \"k\", \"cluster\": {\"certificate-authority\": \"/ca\"}}]}", "/ca", "", "", false, ""},
};

static const struct refusal {
    const char *text;
    const char *words;
} refusals[] = {
    {"", "/etc/k/config: no context is given and there is no current-context"},
    {"[]", "/etc/k/config: no context is given and there is no current-context"},
    {"current-context: ''\n", "/etc/k/config: no context is given and there is no current-context"},
    {"current-context: x\n", "/etc/k/config: context 'x' is not in contexts"},
    {"current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n",
     "/etc/k/config: the context names cluster 'k', which is not in clusters"},
    {"current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: [{name: k, cluster: {}}]\n",
     "/etc/k/config: the context names user 'u', which is not in users"},
    {WITH("", "client-certificate: /c"), "/etc/k/config: user 'u': client-key is missing, but there is a client-certificate"},
    {WITH("", "client-key-data: S0VZCg=="),
     "/etc/k/config: user 'u': client-certificate is missing, but there is a client-key"},
    {WITH("certificate-authority: [a]", ""), "/etc/k/config: cluster 'k': certificate-authority is no text (put it in quotes)"},
    {WITH("certificate-authority-data: '***'", ""), "/etc/k/config: cluster 'k': certificate-authority-data: "},
    {WITH("insecure-skip-tls-verify: 'true'", ""),
     "/etc/k/config: cluster 'k': insecure-skip-tls-verify is neither true nor false"},
    {"a: &x b\nc: *x\n", "/etc/k/config: "},
    {"current-context: [\n", "/etc/k/config: "},
};
/* clang-format on */

static void expect_item(const char *rule, const char *what, const struct cr_kubeconfig_item *item, const char *want)
{
    enum cr_kubeconfig_source source = *want == '\0'  ? CR_KUBECONFIG_NONE
                                       : *want == '=' ? CR_KUBECONFIG_EMBEDDED
                                                      : CR_KUBECONFIG_FILE;
    if (item->source != source)
        fail_msg("%s: %s: want source %d, is %d", rule, what, source, item->source);
    const char *path = source == CR_KUBECONFIG_FILE ? want : NULL;
    const char *pem = source == CR_KUBECONFIG_EMBEDDED && want[1] ? want + 1 : NULL;
    if (!cr_streq(item->path, path) || !cr_streq(item->pem, pem))
        fail_msg("%s: %s: want '%s', is path '%s' and '%s'", rule, what, want, cr_or_empty(item->path),
                 cr_or_empty(item->pem));
}

static bool has(const char *words, const char *word)
{
    size_t len = strlen(word);
    for (const char *p = strstr(words, word); p; p = strstr(p + 1, word))
        if ((p == words || p[-1] == ' ') && (p[len] == '\0' || p[len] == ' '))
            return true;
    return false;
}

static void reads_where_each_part_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        const struct row *row = &rows[i];
        struct cr_error err = {0};
        CR_CLEANUP(cr_kubeconfig_file) struct cr_kubeconfig_file file = {0};
        if (!cr_kubeconfig_file_read("/etc/k/config", row->text, strlen(row->text), &file, &err))
            fail_msg("%s: %s", row->rule, err.text);
        expect_item(row->rule, "CA", &file.ca, row->ca);
        expect_item(row->rule, "certificate", &file.certificate, row->certificate);
        expect_item(row->rule, "key", &file.key, row->key);
        if (file.leaf_reloads != row->reloads)
            fail_msg("%s: leaf_reloads is %d", row->rule, file.leaf_reloads);
        if (file.has_token != has(row->more, "token") || file.has_exec != has(row->more, "exec") ||
            file.insecure != has(row->more, "insecure"))
            fail_msg("%s: token %d, exec %d, insecure %d", row->rule, file.has_token, file.has_exec, file.insecure);
        if (!cr_streq(file.token_file, has(row->more, "tokenFile") ? "/etc/k/token" : NULL))
            fail_msg("%s: token file '%s'", row->rule, cr_or_empty(file.token_file));
    }
}

static void says_which_context_and_server(void **state)
{
    (void)state;
    struct cr_error err = {0};
    CR_CLEANUP(cr_kubeconfig_file) struct cr_kubeconfig_file file = {0};
    assert_true(cr_kubeconfig_file_read("/x", KUBEADM, strlen(KUBEADM), &file, &err));
    assert_string_equal(file.context, "system:kube-scheduler@kubernetes");
    assert_string_equal(file.server, "https://192.0.2.10:6443");
    assert_null(file.server_name);
}

static void refuses_with_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(refusals); i++) {
        struct cr_error err = {0};
        struct cr_kubeconfig_file file;
        memset(&file, 0xff, sizeof file);
        if (cr_kubeconfig_file_read("/etc/k/config", refusals[i].text, strlen(refusals[i].text), &file, &err))
            fail_msg("%s: was read", refusals[i].text);
        if (err.kind != CR_ERR_INVALID || !cr_starts_with(err.text, refusals[i].words))
            fail_msg("want '%s', is '%s'", refusals[i].words, err.text);
        static const struct cr_kubeconfig_file empty;
        assert_memory_equal(&file, &empty, sizeof file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_where_each_part_is),
        cmocka_unit_test(says_which_context_and_server),
        cmocka_unit_test(refuses_with_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
