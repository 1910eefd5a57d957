/* `exec` of a kubeconfig's user
 * (https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/#ExecConfig), with kubectl's rules for what is valid.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "codec/base64.h"
#include "kube/config_internal.h"
#include "kube/exec_plugin.h"
#include "kube/kubeconfig_reader.h"

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

bool cr_kubeconfig_exec(const struct cr_kubeconfig_reader *in, const struct cr_json *user,
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

void cr_kubeconfig_exec_info(const struct cr_json *cluster, struct cr_kube_config *config)
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
