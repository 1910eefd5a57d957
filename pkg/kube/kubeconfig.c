/* A kubeconfig file (https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/) and a pod's own configuration. */
#include "kube/config_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "codec/yaml.h"
#include "kube/exec_plugin.h"
#include "kube/kubeconfig_reader.h"
#include "sys/file.h"

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
    return cr_kubeconfig_exec(in, user, config);
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
        cr_kubeconfig_exec_info(cr_kubeconfig_part(path, file, context, "cluster", err), config);
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
