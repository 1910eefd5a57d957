#include "kube/config_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "kube/exec_plugin.h"
#include "support/testcerts.h"

/* A folder of its own for each test. */
static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/certroll-kubeconfig-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"config", "ca.crt", "client.crt", "client.key", "token", "namespace"};
    for (size_t i = 0; i < cr_array_len(names); i++) {
        cr_autofree char *path = cr_asprintf("%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static char *put(const char *name, const char *text)
{
    char *path = cr_asprintf("%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return path;
}

static struct cr_kube_config *load(const char *text, struct cr_error *err)
{
    cr_autofree char *path = put("config", text);
    return cr_kube_config_load(path, NULL, err);
}

#define HEAD                 "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
#define CONTEXT              "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
#define CLUSTER              "clusters: [{name: k, cluster: {server: 'https://h:6443'}}]\n"
#define CLUSTER_WITH(fields) "clusters: [{name: k, cluster: {server: 'https://h', " fields "}}]\n"
#define V1                   "apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never"
#define USER(fields)         "users: [{name: u, user: {" fields "}}]\n"

static void reads_inline_material_and_the_context_s_namespace(void **state)
{
    (void)state;
    struct cr_error err = {0};
    CR_CLEANUP(cr_kube_config)
    struct cr_kube_config *config = load(
        HEAD "contexts:\n- name: other\n  context: {cluster: x, user: y}\n- name: c\n  context: {cluster: k, user: u, "
             "namespace: prod}\n"
             "clusters:\n- name: k\n  cluster: {server: 'https://h:6443/prefix/', tls-server-name: api, "
             "certificate-authority-data: Q0E=}\n"
             "users:\n- name: u\n  user: {client-certificate-data: Q0VSVA==, client-key-data: S0VZ, token: secret}\n",
        &err);
    if (!config)
        fail_msg("%s", err.text);
    assert_string_equal(config->server, "https://h:6443/prefix");
    assert_string_equal(config->server_name, "api");
    assert_string_equal(config->ca_pem, "CA");
    assert_string_equal(config->cert_pem, "CERT");
    assert_string_equal(config->key_pem, "KEY");
    assert_string_equal(config->token, "secret");
    assert_string_equal(config->ns, "prod");
    assert_null(config->ca_file);
    assert_null(config->token_file);
}

static void paths_are_relative_to_the_kubeconfig(void **state)
{
    (void)state;
    struct cr_error err = {0};
    free(put("ca.crt", "CA\n"));
    free(put("client.crt", "CERT\n"));
    free(put("client.key", "KEY\n"));
    cr_autofree char *token = put("token", "  first\n");
    cr_autofree char *text = cr_asprintf(
        HEAD CONTEXT
        "clusters: [{name: k, cluster: {server: 'https://h', certificate-authority: ca.crt}}]\n"
        "users: [{name: u, user: {client-certificate: client.crt, client-key: ./client.key, tokenFile: %s}}]\n",
        token);
    CR_CLEANUP(cr_kube_config) struct cr_kube_config *config = load(text, &err);
    if (!config)
        fail_msg("%s", err.text);
    assert_string_equal(config->ca_pem, "CA");
    assert_string_equal(config->cert_pem, "CERT");
    assert_string_equal(config->key_pem, "KEY");
    assert_string_equal(config->token, "first");
    assert_string_equal(config->ns, "default");
}

static void reading_again_distinguishes_new_material_from_a_new_token(void **state)
{
    (void)state;
    struct cr_error err = {0};
    bool changed = true;
    free(put("ca.crt", "CA"));
    free(put("client.crt", "CERT"));
    free(put("client.key", "KEY"));
    free(put("token", "first"));
    CR_CLEANUP(cr_kube_config)
    struct cr_kube_config *config =
        load(HEAD CONTEXT "clusters: [{name: k, cluster: {server: 'https://h', certificate-authority: ca.crt}}]\n" USER(
                 "client-certificate: client.crt, client-key: client.key, tokenFile: token"),
             &err);
    assert_non_null(config);
    assert_true(cr_kube_config_reload(config, &changed, &err));
    assert_false(changed);

    free(put("token", "second"));
    assert_true(cr_kube_config_reload(config, &changed, &err));
    assert_false(changed);
    assert_string_equal(config->token, "second");

    free(put("token", "third\nX-Remote-User: root"));
    assert_false(cr_kube_config_reload(config, &changed, &err));
    assert_string_equal(config->token, "second");
    free(put("token", "second"));

    free(put("ca.crt", "CA2"));
    assert_true(cr_kube_config_reload(config, &changed, &err));
    assert_true(changed);
    assert_string_equal(config->ca_pem, "CA2");

    free(put("client.crt", "CERT2"));
    free(put("client.key", "KEY2"));
    assert_true(cr_kube_config_reload(config, &changed, &err));
    assert_true(changed);
    assert_string_equal(config->key_pem, "KEY2");
}

static void an_empty_or_missing_file_keeps_the_old_value_and_the_others_are_taken(void **state)
{
    (void)state;
    struct cr_error err = {0};
    bool changed = true;
    free(put("ca.crt", "CA"));
    free(put("client.crt", "CERT"));
    free(put("client.key", "KEY"));
    cr_autofree char *token = put("token", "first");
    CR_CLEANUP(cr_kube_config)
    struct cr_kube_config *config =
        load(HEAD CONTEXT "clusters: [{name: k, cluster: {server: 'https://h', certificate-authority: ca.crt}}]\n" USER(
                 "client-certificate: client.crt, client-key: client.key, tokenFile: token"),
             &err);
    assert_non_null(config);
    unlink(token);
    free(put("ca.crt", ""));
    free(put("client.crt", "CERT2"));
    free(put("client.key", "\n"));
    assert_false(cr_kube_config_reload(config, &changed, &err));
    assert_false(changed);
    assert_non_null(strstr(err.text, "token"));
    assert_string_equal(config->token, "first");
    assert_string_equal(config->ca_pem, "CA");
    /* Half a pair is not taken. */
    assert_string_equal(config->cert_pem, "CERT");

    free(put("client.key", "KEY2"));
    assert_false(cr_kube_config_reload(config, &changed, &err));
    assert_true(changed);
    assert_string_equal(config->cert_pem, "CERT2");
}

static void a_key_of_another_certificate_is_not_taken(void **state)
{
    (void)state;
    struct cr_error err = {0};
    bool changed = true;
    CR_CLEANUP(test_cert) struct test_cert *old = test_cert_new(&(struct test_cert_spec){.cn = "old"});
    CR_CLEANUP(test_cert) struct test_cert *fresh = test_cert_new(&(struct test_cert_spec){.cn = "new"});
    free(put("client.crt", old->cert_pem));
    free(put("client.key", old->key_pem));
    CR_CLEANUP(cr_kube_config)
    struct cr_kube_config *config =
        load(HEAD CONTEXT CLUSTER USER("client-certificate: client.crt, client-key: client.key"), &err);
    assert_non_null(config);
    cr_autofree char *kept = cr_strdup(config->cert_pem);
    free(put("client.crt", fresh->cert_pem));
    assert_false(cr_kube_config_reload(config, &changed, &err));
    assert_false(changed);
    assert_string_equal(config->cert_pem, kept);
    free(put("client.key", fresh->key_pem));
    assert_true(cr_kube_config_reload(config, &changed, &err));
    assert_true(changed);
}

struct refusal {
    const char *rule;
    const char *text;
    const char *says;
    enum cr_error_kind kind;
};

static void refuses_with_words(void **state)
{
    (void)state;
    static const struct refusal cases[] = {
        {"not YAML", "a: [", "config", CR_ERR_INVALID},
        {"an empty file has no context", "", "current-context", CR_ERR_INVALID},
        {"context that is not there", HEAD "contexts: []\n", "'c' is not in contexts", CR_ERR_INVALID},
        {"cluster that is not there", HEAD CONTEXT "clusters: []\n" USER(""), "cluster 'k'", CR_ERR_INVALID},
        {"user that is not there", HEAD CONTEXT CLUSTER "users: []\n", "user 'u'", CR_ERR_INVALID},
        {"server missing", HEAD CONTEXT "clusters: [{name: k, cluster: {}}]\n" USER(""), "server is missing",
         CR_ERR_INVALID},
        {"server that is no URL", HEAD CONTEXT "clusters: [{name: k, cluster: {server: 'h:6443'}}]\n" USER(""),
         "https://host:6443", CR_ERR_INVALID},
        {"server with a user", HEAD CONTEXT "clusters: [{name: k, cluster: {server: 'https://a:b@h'}}]\n" USER(""),
         "no user", CR_ERR_INVALID},
        {"token in the clear", HEAD CONTEXT "clusters: [{name: k, cluster: {server: 'http://h'}}]\n" USER("token: t"),
         "without TLS", CR_ERR_INVALID},
        {"CA and insecure",
         HEAD CONTEXT "clusters: [{name: k, cluster: {server: 'https://h', insecure-skip-tls-verify: true, "
                      "certificate-authority-data: Q0E=}}]\n" USER(""),
         "exclude each other", CR_ERR_INVALID},
        {"proxy of a kind that client-go has not", HEAD CONTEXT CLUSTER_WITH("proxy-url: 'ftp://p'") USER(""),
         "proxy-url is no address", CR_ERR_INVALID},
        {"proxy without a host", HEAD CONTEXT CLUSTER_WITH("proxy-url: 'http://'") USER(""), "proxy-url",
         CR_ERR_INVALID},
        {"proxy without a scheme, password unseen", HEAD CONTEXT CLUSTER_WITH("proxy-url: 'u:Q0E=@p:3128'") USER(""),
         "proxy-url", CR_ERR_INVALID},
        {"insecure that is text", HEAD CONTEXT CLUSTER_WITH("insecure-skip-tls-verify: 'yes'") USER(""),
         "neither true nor false", CR_ERR_INVALID},
        {"plugin in the clear",
         HEAD CONTEXT "clusters: [{name: k, cluster: {server: 'http://h'}}]\n" USER("exec: {" V1 ", command: p}"),
         "without TLS", CR_ERR_INVALID},
        {"plugin that is no object", HEAD CONTEXT CLUSTER USER("exec: aws"), "exec is no object", CR_ERR_INVALID},
        {"plugin without a command", HEAD CONTEXT CLUSTER USER("exec: {" V1 "}"), "exec.command is missing",
         CR_ERR_INVALID},
        {"plugin without a version", HEAD CONTEXT CLUSTER USER("exec: {command: p}"), "exec.apiVersion is missing",
         CR_ERR_INVALID},
        {"plugin of a version that kubectl dropped",
         HEAD CONTEXT CLUSTER USER("exec: {command: p, apiVersion: client.authentication.k8s.io/v1alpha1}"),
         "exec.apiVersion is neither", CR_ERR_INVALID},
        {"v1 must say whether it asks a person",
         HEAD CONTEXT CLUSTER USER("exec: {command: p, apiVersion: client.authentication.k8s.io/v1}"),
         "exec.interactiveMode is missing", CR_ERR_INVALID},
        {"a plugin that must ask a person",
         HEAD CONTEXT CLUSTER USER(
             "exec: {command: p, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Always}"),
         "there is no terminal", CR_ERR_INVALID},
        {"interactiveMode of another word",
         HEAD CONTEXT CLUSTER USER(
             "exec: {command: p, apiVersion: client.authentication.k8s.io/v1, interactiveMode: never}"),
         "none of Never", CR_ERR_INVALID},
        {"an argument that is a number", HEAD CONTEXT CLUSTER USER("exec: {" V1 ", command: p, args: [a, 1]}"),
         "exec.args has an entry that is no text", CR_ERR_INVALID},
        {"arguments that are no list", HEAD CONTEXT CLUSTER USER("exec: {" V1 ", command: p, args: a}"),
         "exec.args is no list", CR_ERR_INVALID},
        {"a variable without a name", HEAD CONTEXT CLUSTER USER("exec: {" V1 ", command: p, env: [{value: Q0E=}]}"),
         "exec.env has an entry without a name", CR_ERR_INVALID},
        {"a variable that is a number",
         HEAD CONTEXT CLUSTER USER("exec: {" V1 ", command: p, env: [{name: A, value: 1}]}"), "quotes", CR_ERR_INVALID},
        {"a plugin beside a token is looked at all the same", HEAD CONTEXT CLUSTER USER("token: t, exec: {" V1 "}"),
         "exec.command", CR_ERR_INVALID},
        {"auth provider", HEAD CONTEXT CLUSTER USER("auth-provider: {name: gcp}"), "auth-provider", CR_ERR_INVALID},
        {"basic authentication", HEAD CONTEXT CLUSTER USER("username: a, password: b"), "basic authentication",
         CR_ERR_INVALID},
        {"impersonation", HEAD CONTEXT CLUSTER USER("as: root"), "impersonation", CR_ERR_INVALID},
        {"token that is a number", HEAD CONTEXT CLUSTER USER("token: 12"), "quotes", CR_ERR_INVALID},
        {"token with a line break", HEAD CONTEXT CLUSTER USER("token: \"a\\nX-Remote-User: root\""), "no token has",
         CR_ERR_INVALID},
        {"namespace that is a number", HEAD "contexts: [{name: c, context: {cluster: k, namespace: 12}}]\n" CLUSTER,
         "quotes", CR_ERR_INVALID},
        {"user that is a number", HEAD "contexts: [{name: c, context: {cluster: k, user: 12}}]\n" CLUSTER, "quotes",
         CR_ERR_INVALID},
        {"certificate without key", HEAD CONTEXT CLUSTER USER("client-certificate-data: Q0E="), "client-key",
         CR_ERR_INVALID},
        {"key without certificate", HEAD CONTEXT CLUSTER USER("client-key-data: Q0E="), "client-certificate",
         CR_ERR_INVALID},
        {"broken base64", HEAD CONTEXT CLUSTER USER("client-key-data: '!'"), "client-key-data", CR_ERR_INVALID},
        {"file that is missing", HEAD CONTEXT CLUSTER USER("tokenFile: token"), "token", CR_ERR_NOT_FOUND},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_kube_config) struct cr_kube_config *config = load(cases[i].text, &err);
        if (config)
            fail_msg("%s: was accepted", cases[i].rule);
        if (!strstr(err.text, cases[i].says))
            fail_msg("%s: '%s' does not say '%s'", cases[i].rule, err.text, cases[i].says);
        if (err.kind != cases[i].kind)
            fail_msg("%s: kind %s", cases[i].rule, cr_error_kind_name(err.kind));
        if (strstr(err.text, "Q0E="))
            fail_msg("%s: the message shows material", cases[i].rule);
    }
}

/* The value of a variable that the plugin gets, or NULL. */
static const char *variable(const struct cr_exec_plugin *plugin, const char *name)
{
    for (size_t i = 0; i < plugin->env.len; i++)
        if (cr_starts_with(plugin->env.items[i], name) && plugin->env.items[i][strlen(name)] == '=')
            return plugin->env.items[i] + strlen(name) + 1;
    return NULL;
}

static void a_plugin_is_read_and_gets_nothing_of_the_cluster_unless_it_asks(void **state)
{
    (void)state;
    struct cr_error err = {0};
    CR_CLEANUP(cr_kube_config)
    struct cr_kube_config *config =
        load(HEAD CONTEXT CLUSTER USER("exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: aws, args: "
                                       "[eks, get-token, ''], env: [{name: AWS_PROFILE, value: prod}, {name: EMPTY}], "
                                       "installHint: see the manual}"),
             &err);
    if (!config)
        fail_msg("%s", err.text);
    const struct cr_exec_plugin *plugin = config->exec;
    assert_string_equal(plugin->command, "aws");
    cr_autofree char *args = cr_strvec_join(&plugin->args, "|");
    assert_string_equal(args, "eks|get-token|");
    assert_string_equal(plugin->install_hint, "see the manual");
    assert_string_equal(variable(plugin, "AWS_PROFILE"), "prod");
    assert_string_equal(variable(plugin, "EMPTY"), "");
    assert_string_equal(variable(plugin, "KUBERNETES_EXEC_INFO"),
                        "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\",\"spec\":"
                        "{\"interactive\":false}}");
    assert_null(config->token);
}

static void a_plugin_that_asks_gets_the_cluster(void **state)
{
    (void)state;
    static const struct {
        const char *cluster, *info;
    } cases[] = {
        {"", "\"config\":null"},
        {", tls-server-name: api, proxy-url: 'socks5://p', certificate-authority-data: Q0E=, disable-compression: "
         "true, "
         "extensions: [{name: other, extension: 1}, {name: client.authentication.k8s.io/exec, extension: {audience: "
         "a}}]",
         "\"tls-server-name\":\"api\",\"certificate-authority-data\":\"Q0E=\",\"proxy-url\":\"socks5://p\","
         "\"disable-compression\":true,\"config\":{\"audience\":\"a\"}"},
        {", insecure-skip-tls-verify: true", "\"insecure-skip-tls-verify\":true,\"config\":null"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        cr_autofree char *text =
            cr_asprintf(HEAD CONTEXT "clusters: [{name: k, cluster: {server: 'https://h/'%s}}]\n" USER(
                            "exec: {" V1 ", command: p, provideClusterInfo: true}"),
                        cases[i].cluster);
        CR_CLEANUP(cr_kube_config) struct cr_kube_config *config = load(text, &err);
        if (!config)
            fail_msg("%s", err.text);
        cr_autofree char *info =
            cr_asprintf("{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
                        "\"spec\":{\"cluster\":{\"server\":\"https://h/\",%s},\"interactive\":false}}",
                        cases[i].info);
        assert_string_equal(variable(config->exec, "KUBERNETES_EXEC_INFO"), info);
    }
}

static void a_command_with_a_slash_is_relative_to_the_kubeconfig(void **state)
{
    (void)state;
    static const struct {
        const char *command, *expected;
    } cases[] = {
        {"plugin", "plugin"}, {"./plugin", "%s/./plugin"}, {"bin/plugin", "%s/bin/plugin"}, {"/bin/p", "/bin/p"}};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        cr_autofree char *text =
            cr_asprintf(HEAD CONTEXT CLUSTER USER("exec: {" V1 ", command: '%s'}"), cases[i].command);
        CR_CLEANUP(cr_kube_config) struct cr_kube_config *config = load(text, &err);
        assert_non_null(config);
        cr_autofree char *in_folder = cr_asprintf("%s/%s", folder, cases[i].command);
        assert_string_equal(config->exec->command, *cases[i].expected == '%' ? in_folder : cases[i].expected);
    }
}

static void what_the_file_has_itself_comes_before_a_plugin(void **state)
{
    (void)state;
    static const char *const users[] = {
        USER("token: t, exec: {" V1 ", command: p}"),
        USER("client-certificate-data: Q0VSVA==, client-key-data: S0VZ, exec: {" V1 ", command: p}")};
    for (size_t i = 0; i < cr_array_len(users); i++) {
        struct cr_error err = {0};
        cr_autofree char *text = cr_asprintf(HEAD CONTEXT CLUSTER "%s", users[i]);
        CR_CLEANUP(cr_kube_config) struct cr_kube_config *config = load(text, &err);
        assert_non_null(config);
        assert_null(config->exec);
    }
}

static void a_proxy_is_taken_from_the_kubeconfig(void **state)
{
    (void)state;
    static const char *const proxies[] = {"http://u:p@proxy:3128", "https://proxy", "socks5://[::1]:1080"};
    for (size_t i = 0; i < cr_array_len(proxies); i++) {
        struct cr_error err = {0};
        cr_autofree char *text = cr_asprintf(HEAD CONTEXT CLUSTER_WITH("proxy-url: '%s'") USER("token: t"), proxies[i]);
        CR_CLEANUP(cr_kube_config) struct cr_kube_config *config = load(text, &err);
        if (!config)
            fail_msg("%s", err.text);
        assert_string_equal(config->proxy_url, proxies[i]);
    }
}

static void a_token_file_wins_over_a_token_and_falls_back_to_it(void **state)
{
    (void)state;
    struct cr_error err = {0};
    cr_autofree char *token = put("token", "from-file");
    CR_CLEANUP(cr_kube_config)
    struct cr_kube_config *config = load(HEAD CONTEXT CLUSTER USER("token: inline, tokenFile: token"), &err);
    assert_non_null(config);
    assert_string_equal(config->token, "from-file");
    unlink(token);
    CR_CLEANUP(cr_kube_config)
    struct cr_kube_config *without = load(HEAD CONTEXT CLUSTER USER("token: inline, tokenFile: token"), &err);
    assert_non_null(without);
    assert_string_equal(without->token, "inline");
}

static void kubeconfig_environment_is_one_file(void **state)
{
    (void)state;
    struct cr_error err = {0};
    cr_autofree char *path = put("config", HEAD CONTEXT CLUSTER USER("token: t"));
    setenv("KUBECONFIG", path, 1);
    CR_CLEANUP(cr_kube_config) struct cr_kube_config *config = cr_kube_config_load(NULL, NULL, &err);
    assert_non_null(config);
    assert_string_equal(config->source, path);
    cr_autofree char *two = cr_asprintf("%s:%s", path, path);
    setenv("KUBECONFIG", two, 1);
    assert_null(cr_kube_config_load(NULL, NULL, &err));
    assert_non_null(strstr(err.text, "several files"));
    unsetenv("KUBECONFIG");
}

static void nothing_configured_says_what_to_do(void **state)
{
    (void)state;
    struct cr_error err = {0};
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_SERVICE_HOST");
    setenv("HOME", folder, 1);
    assert_null(cr_kube_config_load(NULL, NULL, &err));
    assert_int_equal(err.kind, CR_ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "--kubeconfig"));
}

static void a_pod_has_its_service_account(void **state)
{
    (void)state;
    struct cr_error err = {0};
    free(put("token", "jwt\n"));
    free(put("ca.crt", "CA\n"));
    free(put("namespace", "certroll-system"));
    static const struct {
        const char *host;
        const char *server;
    } cases[] = {{"10.96.0.1", "https://10.96.0.1:443"}, {"fd00::1", "https://[fd00::1]:443"}};
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        setenv("KUBERNETES_SERVICE_HOST", cases[i].host, 1);
        CR_CLEANUP(cr_kube_config) struct cr_kube_config *config = cr_kube_config_from_pod(folder, &err);
        if (!config)
            fail_msg("%s", err.text);
        assert_string_equal(config->server, cases[i].server);
        assert_string_equal(config->token, "jwt");
        assert_string_equal(config->ns, "certroll-system");
        assert_string_equal(config->source, "in-cluster");
    }
    cr_autofree char *token = cr_asprintf("%s/token", folder);
    unlink(token);
    assert_null(cr_kube_config_from_pod(folder, &err));
    assert_non_null(strstr(err.text, "automountServiceAccountToken"));
    unsetenv("KUBERNETES_SERVICE_HOST");
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(reads_inline_material_and_the_context_s_namespace),
        IN_FOLDER(paths_are_relative_to_the_kubeconfig),
        IN_FOLDER(reading_again_distinguishes_new_material_from_a_new_token),
        IN_FOLDER(an_empty_or_missing_file_keeps_the_old_value_and_the_others_are_taken),
        IN_FOLDER(a_key_of_another_certificate_is_not_taken),
        IN_FOLDER(refuses_with_words),
        IN_FOLDER(a_plugin_is_read_and_gets_nothing_of_the_cluster_unless_it_asks),
        IN_FOLDER(a_plugin_that_asks_gets_the_cluster),
        IN_FOLDER(a_command_with_a_slash_is_relative_to_the_kubeconfig),
        IN_FOLDER(what_the_file_has_itself_comes_before_a_plugin),
        IN_FOLDER(a_proxy_is_taken_from_the_kubeconfig),
        IN_FOLDER(a_token_file_wins_over_a_token_and_falls_back_to_it),
        IN_FOLDER(kubeconfig_environment_is_one_file),
        IN_FOLDER(nothing_configured_says_what_to_do),
        IN_FOLDER(a_pod_has_its_service_account),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
