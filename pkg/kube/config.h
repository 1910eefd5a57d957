/* Where the API server is and who we are: a kubeconfig file (libyaml) or the pod's own service account. */
#ifndef CR_KUBE_CONFIG_H
#define CR_KUBE_CONFIG_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/error.h"

struct cr_exec_plugin;

struct cr_kube_config {
    char *server;      /* "https://host:port", without a trailing slash */
    char *server_name; /* tls-server-name, or NULL */
    char *proxy_url;   /* secret (it may have a password); NULL: none */
    bool insecure;
    char *ca_pem;   /* inline or read from ca_file; NULL: system CAs */
    char *cert_pem; /* NULL: no client certificate */
    char *key_pem;  /* secret: wiped when freed */
    char *token;    /* secret; NULL: none */
    char *ca_file;  /* set when the material came from a file: read again on reload */
    char *cert_file;
    char *key_file;
    char *token_file;
    struct cr_exec_plugin *exec; /* brings token or certificate; NULL: none */
    char *ns;                    /* the context's or the pod's namespace; never NULL ("default") */
    char *source;                /* for messages: the file, or "in-cluster" */
};

void cr_kube_config_free(struct cr_kube_config *config);
CR_DEFINE_CLEANUP(cr_kube_config, struct cr_kube_config, cr_kube_config_free)

/* path NULL: $KUBECONFIG, then in-cluster (KUBERNETES_SERVICE_HOST and the service account's folder), then
 * ~/.kube/config; several files in $KUBECONFIG are refused with words. context NULL: current-context. Paths inside of a
 * kubeconfig are relative to it. An exec plugin is not run yet, and as in client-go of no use beside a token or a
 * client certificate. Auth providers, user names with passwords, and impersonation are refused with words. Errors:
 * Invalid, NotFound. */
struct cr_kube_config *cr_kube_config_load(const char *path, const char *context, struct cr_error *err) CR_MUST_USE;

/* Reads the files again (token each minute and after a 401; CA and client certificate as well). *changed: something
 * other than the token differs, connections must be opened again. An unreadable or empty file keeps the old value, the
 * others are taken; then false, and err says which file. */
bool cr_kube_config_reload(struct cr_kube_config *config, bool *changed, struct cr_error *err) CR_MUST_USE;

#endif
