/* A kubeconfig file (https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/) and a pod's own configuration. */
#include "kube/config_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "codec/base64.h"
#include "codec/yaml.h"
#include "kube/exec_plugin.h"
#include "kube/kubeconfig_reader.h"
#include "sys/file.h"

/* `exec` of a kubeconfig's user
 * (https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/#ExecConfig), with kubectl's rules for what is valid.
 */

static bool read_args(const struct cr_kubeconfig_reader *in, const struct cr_json *exec, struct cr_exec_plugin *plugin)
{
    const struct cr_json *args = cr_json_get(exec, "args");
    if (args && !cr_json_is_array(args) && !cr_json_is_null(args))
        return cr_kubeconfig_invalid(in, "exec.args", "is no list");
    for (const struct cr_json *arg = cr_json_first(args); arg; arg = cr_json_next(arg)) {
        if (!cr_json_is_string(arg))
            return cr_kubeconfig_invalid(in, "exec.args", "has an entry that is no text (put it in quotes)");
        cr_strvec_add(&plugin->args, cr_json_string(arg));
    }
    return true;
}

static bool read_env(const struct cr_kubeconfig_reader *in, const struct cr_json *exec, struct cr_exec_plugin *plugin)
{
    const struct cr_json *env = cr_json_get(exec, "env");
    if (env && !cr_json_is_array(env) && !cr_json_is_null(env))
        return cr_kubeconfig_invalid(in, "exec.env", "is no list");
    for (const struct cr_json *entry = cr_json_first(env); entry; entry = cr_json_next(entry)) {
        const char *name = NULL;
        const char *value = NULL;
        if (!cr_kubeconfig_text(in, entry, "name", &name) || !cr_kubeconfig_text(in, entry, "value", &value))
            return false;
        if (!name || strchr(name, '='))
            return cr_kubeconfig_invalid(in, "exec.env", "has an entry without a name that can be used");
        CR_CLEANUP(cr_secret) char *variable = cr_asprintf("%s=%s", name, cr_or_empty(value));
        cr_strvec_add(&plugin->env, variable);
    }
    return true;
}

/* v1 makes it a field that must be there; before, IfAvailable was the default. */
static bool check_interactive_mode(const struct cr_kubeconfig_reader *in, const struct cr_json *exec,
                                   const struct cr_exec_plugin *plugin)
{
    const char *mode = NULL;
    if (!cr_kubeconfig_text(in, exec, "interactiveMode", &mode))
        return false;
    if (!mode && cr_ends_with(plugin->api_version, "/v1"))
        return cr_kubeconfig_invalid(in, "exec.interactiveMode", "is missing (Never, IfAvailable or Always)");
    if (cr_streq(mode, "Always"))
        return cr_kubeconfig_invalid(in, "exec.interactiveMode",
                                     "is Always, but there is no terminal here; use a plugin that asks nobody, or the "
                                     "token of a service account (kubectl create token)");
    if (mode && strcmp(mode, "Never") != 0 && strcmp(mode, "IfAvailable") != 0)
        return cr_kubeconfig_invalid(in, "exec.interactiveMode", "is none of Never, IfAvailable and Always");
    return true;
}

static bool check_api_version(const struct cr_kubeconfig_reader *in, const struct cr_exec_plugin *plugin)
{
    if (!plugin->api_version)
        return cr_kubeconfig_invalid(in, "exec.apiVersion", "is missing");
    if (strcmp(plugin->api_version, "client.authentication.k8s.io/v1") != 0 &&
        strcmp(plugin->api_version, "client.authentication.k8s.io/v1beta1") != 0)
        return cr_kubeconfig_invalid(
            in, "exec.apiVersion",
            "is neither client.authentication.k8s.io/v1 nor v1beta1 (is the plugin up to date?)");
    return true;
}

/* As in client-go, only a command with a slash is relative to the kubeconfig: any other is looked for in $PATH. */
static bool read_command(const struct cr_kubeconfig_reader *in, const struct cr_json *exec,
                         struct cr_exec_plugin *plugin)
{
    const char *command = NULL;
    if (!cr_kubeconfig_text(in, exec, "command", &command))
        return false;
    if (!command)
        return cr_kubeconfig_invalid(in, "exec.command", "is missing");
    plugin->command = strchr(command, '/') ? cr_kubeconfig_resolve(in, command) : cr_strdup(command);
    return true;
}

static bool read_plugin(const struct cr_kubeconfig_reader *in, const struct cr_json *exec,
                        struct cr_exec_plugin *plugin)
{
    return read_command(in, exec, plugin) && cr_kubeconfig_copy(in, exec, "apiVersion", &plugin->api_version) &&
           check_api_version(in, plugin) && check_interactive_mode(in, exec, plugin) && read_args(in, exec, plugin) &&
           read_env(in, exec, plugin) && cr_kubeconfig_copy(in, exec, "installHint", &plugin->install_hint) &&
           cr_kubeconfig_bool(in, exec, "provideClusterInfo", &plugin->wants_cluster);
}

/* The user's credential plugin (`exec`) as config->exec, unless there is none. */
static bool kubeconfig_exec(const struct cr_kubeconfig_reader *in, const struct cr_json *user,
                            struct cr_kube_config *config)
{
    const struct cr_json *exec = cr_json_get(user, "exec");
    if (!exec || cr_json_is_null(exec))
        return true;
    if (!cr_json_is_object(exec))
        return cr_kubeconfig_invalid(in, "exec", "is no object");
    CR_CLEANUP(cr_exec_plugin) struct cr_exec_plugin *plugin = cr_new(struct cr_exec_plugin);
    if (!read_plugin(in, exec, plugin))
        return false;
    /* What the file itself has comes first (client-go, exec.UpdateTransportConfig). */
    if (!config->token && !config->token_file && !config->cert_pem)
        config->exec = cr_steal(&plugin);
    return true;
}

/* --- what the plugin gets --- */

/* The cluster's extension for plugins, or NULL. Borrowed. */
static const struct cr_json *extension_of(const struct cr_json *cluster)
{
    const struct cr_json *extensions = cr_json_get(cluster, "extensions");
    for (const struct cr_json *e = cr_json_first(extensions); e; e = cr_json_next(e))
        if (cr_streq(cr_json_string_at(e, "name"), "client.authentication.k8s.io/exec"))
            return cr_json_get(e, "extension");
    return NULL;
}

static void set_cluster(struct cr_json *spec, const struct cr_json *cluster, const struct cr_kube_config *config)
{
    struct cr_json *cluster_info = cr_json_object_in(spec, "cluster");
    cr_json_set_string(cluster_info, "server", config->server);
    cr_json_set_string(cluster_info, "tls-server-name", config->server_name);
    if (config->insecure)
        cr_json_set_bool(cluster_info, "insecure-skip-tls-verify", true);
    if (config->ca_pem) {
        cr_autofree char *ca = cr_base64_encode(config->ca_pem, strlen(config->ca_pem));
        cr_json_set_string(cluster_info, "certificate-authority-data", ca);
    }
    cr_json_set_string(cluster_info, "proxy-url", config->proxy_url);
    if (cr_json_bool_at(cluster, false, "disable-compression"))
        cr_json_set_bool(cluster_info, "disable-compression", true);
    const struct cr_json *extension = extension_of(cluster);
    /* Go writes an extension that is not there as null. */
    cr_json_set(cluster_info, "config", extension ? cr_json_copy(extension) : cr_json_new_null());
}

/* Gives the plugin, once config has the cluster, what it wants to know of the cluster. cluster: its entry. */
static void kubeconfig_exec_info(const struct cr_json *cluster, struct cr_kube_config *config)
{
    struct cr_exec_plugin *plugin = config->exec;
    struct cr_json *info = cr_json_new_object();
    cr_json_set_string(info, "kind", "ExecCredential");
    cr_json_set_string(info, "apiVersion", plugin->api_version);
    struct cr_json *spec = cr_json_object_in(info, "spec");
    if (plugin->wants_cluster)
        set_cluster(spec, cluster, config);
    cr_json_set_bool(spec, "interactive", false);
    CR_CLEANUP(cr_secret) char *text = cr_json_print(info); /* with the proxy's password */
    CR_CLEANUP(cr_secret) char *variable = cr_asprintf("KUBERNETES_EXEC_INFO=%s", text);
    cr_strvec_add(&plugin->env, variable);
    cr_json_free_secret(info);
}

/* `field`-data holds it inline and wins over the path in `field`, as in client-go. */
static bool pem_field(const struct cr_kubeconfig_reader *in, const struct cr_json *object, const char *field,
                      char **pem, char **file)
{
    cr_autofree char *data_field = cr_asprintf("%s-data", field);
    const char *inline_data = NULL;
    const char *path = NULL;
    if (!cr_kubeconfig_text(in, object, data_field, &inline_data) || !cr_kubeconfig_text(in, object, field, &path))
        return false;
    if (inline_data) {
        *pem = cr_kubeconfig_decode(in, data_field, inline_data);
        return *pem != NULL;
    }
    if (!path)
        return true;
    *file = cr_kubeconfig_resolve(in, path);
    *pem = cr_kube_config_read(*file, field, in->err);
    return *pem || cr_error_wrap(in->err, "%s: %s", in->path, in->what);
}

static bool read_cluster(const struct cr_kubeconfig_reader *in, const struct cr_json *cluster,
                         struct cr_kube_config *config)
{
    if (!cr_kubeconfig_copy(in, cluster, "server", &config->server) ||
        !cr_kubeconfig_copy(in, cluster, "proxy-url", &config->proxy_url) ||
        !cr_kubeconfig_bool(in, cluster, "insecure-skip-tls-verify", &config->insecure) ||
        !cr_kubeconfig_copy(in, cluster, "tls-server-name", &config->server_name) ||
        !pem_field(in, cluster, "certificate-authority", &config->ca_pem, &config->ca_file))
        return false;
    return config->server || cr_kubeconfig_invalid(in, "server", "is missing");
}

/* The token is in the file when both are given, and the other one only until the file has been read (client-go). */
static bool read_token(const struct cr_kubeconfig_reader *in, const struct cr_json *user, struct cr_kube_config *config)
{
    const char *file = NULL;
    if (!cr_kubeconfig_copy(in, user, "token", &config->token) || !cr_kubeconfig_text(in, user, "tokenFile", &file))
        return false;
    if (config->token && !cr_kube_config_is_token(config->token))
        return cr_kubeconfig_invalid(in, "token", "has characters that no token has");
    if (!file)
        return true;
    config->token_file = cr_kubeconfig_resolve(in, file);
    char *token = cr_kube_config_read_token(config->token_file, in->err);
    if (!token)
        return config->token || cr_error_wrap(in->err, "%s: %s", in->path, in->what);
    cr_secret_free(config->token);
    config->token = token;
    return true;
}

static bool refuse_unsupported(const struct cr_kubeconfig_reader *in, const struct cr_json *user)
{
    static const struct {
        const char *field;
        const char *problem;
    } fields[] = {
        {"auth-provider",
         "is not supported (kubectl dropped it as well); use a client certificate, token or tokenFile"},
        {"username", "(basic authentication) is not supported by API servers since 1.19"},
        {"password", "(basic authentication) is not supported by API servers since 1.19"},
        {"as", "(impersonation) is not supported"},
    };
    for (size_t i = 0; i < cr_array_len(fields); i++) {
        const struct cr_json *value = cr_json_get(user, fields[i].field);
        if (value && !cr_json_is_null(value))
            return cr_kubeconfig_invalid(in, fields[i].field, fields[i].problem);
    }
    return true;
}

static bool read_user(const struct cr_kubeconfig_reader *in, const struct cr_json *user, struct cr_kube_config *config)
{
    if (!refuse_unsupported(in, user) ||
        !pem_field(in, user, "client-certificate", &config->cert_pem, &config->cert_file) ||
        !pem_field(in, user, "client-key", &config->key_pem, &config->key_file) || !read_token(in, user, config))
        return false;
    if (config->cert_pem && !config->key_pem)
        return cr_kubeconfig_invalid(in, "client-key", "is missing, but there is a client-certificate");
    if (config->key_pem && !config->cert_pem)
        return cr_kubeconfig_invalid(in, "client-certificate", "is missing, but there is a client-key");
    return kubeconfig_exec(in, user, config);
}

/* Reads the entry that the context names under `kind` ("cluster", "user"). */
static bool read_part(const char *path, const struct cr_json *file, const struct cr_json *context, const char *kind,
                      bool (*read)(const struct cr_kubeconfig_reader *, const struct cr_json *,
                                   struct cr_kube_config *),
                      struct cr_kube_config *config, struct cr_error *err)
{
    const struct cr_json *body = cr_kubeconfig_part(path, file, context, kind, err);
    if (!body)
        return false;
    cr_autofree char *what = cr_asprintf("%s '%s'", kind, cr_json_string_at(context, kind));
    return read(&(struct cr_kubeconfig_reader){.path = path, .what = what, .err = err}, body, config);
}

static bool read_context(const char *path, const struct cr_json *file, const char *wanted,
                         struct cr_kube_config *config, struct cr_error *err)
{
    const char *name = NULL;
    const struct cr_json *context = cr_kubeconfig_context(path, file, wanted, &name, err);
    if (!context)
        return false;
    cr_autofree char *what = cr_asprintf("context '%s'", name);
    const struct cr_kubeconfig_reader in = {.path = path, .what = what, .err = err};
    const char *ns = NULL;
    const char *user = NULL;
    if (!cr_kubeconfig_text(&in, context, "namespace", &ns) || !cr_kubeconfig_text(&in, context, "user", &user))
        return false;
    config->ns = cr_strdup(ns ? ns : "default");
    /* A context without a user is an anonymous one: kubectl proxy. */
    if (!read_part(path, file, context, "cluster", read_cluster, config, err) ||
        (user && !read_part(path, file, context, "user", read_user, config, err)))
        return false;
    if (config->exec)
        kubeconfig_exec_info(cr_kubeconfig_part(path, file, context, "cluster", err), config);
    return true;
}

struct cr_kube_config *cr_kube_config_from_file(const char *path, const char *context, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = {.secret = true};
    if (!cr_file_read(path, CR_YAML_MAX_BYTES, &text, err)) {
        cr_error_wrap(err, "kubeconfig");
        return NULL;
    }
    CR_CLEANUP(cr_json_secret) struct cr_json *file = cr_yaml_parse(cr_buf_text(&text), text.len, err);
    if (!file) {
        cr_error_wrap(err, "kubeconfig %s", path);
        return NULL;
    }
    CR_CLEANUP(cr_kube_config) struct cr_kube_config *config = cr_new(struct cr_kube_config);
    config->source = cr_strdup(path);
    if (!read_context(path, file, context, config, err) || !cr_kube_config_check(config, err))
        return NULL;
    return cr_steal(&config);
}

/* --- in a pod --- */

static char *service_address(struct cr_error *err)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    if (!host || !*host || !port || !*port) {
        cr_error_set(err, CR_ERR_INVALID,
                     "in-cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set");
        return NULL;
    }
    bool ipv6 = strchr(host, ':') != NULL && host[0] != '[';
    return cr_asprintf("https://%s%s%s:%s", ipv6 ? "[" : "", host, ipv6 ? "]" : "", port);
}

struct cr_kube_config *cr_kube_config_from_pod(const char *folder, struct cr_error *err)
{
    CR_CLEANUP(cr_kube_config) struct cr_kube_config *config = cr_new(struct cr_kube_config);
    config->source = cr_strdup("in-cluster");
    config->server = service_address(err);
    if (!config->server)
        return NULL;
    config->token_file = cr_asprintf("%s/token", folder);
    config->ca_file = cr_asprintf("%s/ca.crt", folder);
    config->token = cr_kube_config_read_token(config->token_file, err);
    if (!config->token) {
        cr_error_wrap(err, "in-cluster (does the pod have automountServiceAccountToken?)");
        return NULL;
    }
    config->ca_pem = cr_kube_config_read(config->ca_file, "certificate authority", err);
    if (!config->ca_pem) {
        cr_error_wrap(err, "in-cluster");
        return NULL;
    }
    cr_autofree char *ns_file = cr_asprintf("%s/namespace", folder);
    config->ns = cr_kube_config_read(ns_file, "namespace", NULL);
    if (!config->ns)
        config->ns = cr_strdup("default");
    return cr_kube_config_check(config, err) ? cr_steal(&config) : NULL;
}
