/* A credential plugin: a program that a kubeconfig names (`exec`) and that prints credentials.
 * KEP-541, https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins and
 * https://kubernetes.io/docs/reference/config-api/client-authentication.v1/. Private to pkg/kube. */
#ifndef CR_KUBE_EXEC_PLUGIN_H
#define CR_KUBE_EXEC_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strvec.h"

struct cr_exec_plugin {
    char *command; /* "aws": looked for in $PATH; or a path */
    struct cr_strvec args;
    struct cr_strvec env; /* "NAME=value", added to our own; KUBERNETES_EXEC_INFO among them */
    char *api_version;    /* "client.authentication.k8s.io/v1" or v1beta1 */
    char *install_hint;   /* what to do when the command is missing; NULL: not said */
    bool wants_cluster;   /* provideClusterInfo */
};
void cr_exec_plugin_free(struct cr_exec_plugin *plugin);
CR_DEFINE_CLEANUP(cr_exec_plugin, struct cr_exec_plugin, cr_exec_plugin_free)

struct cr_exec_credential {
    char *token;    /* NULL: none */
    char *cert_pem; /* NULL: none; then no key either */
    char *key_pem;
    int64_t
        expires_ms; /* wall clock: the earlier of what the plugin says and the certificate's end; INT64_MAX: never */
};
/* Wipes it. */
void cr_exec_credential_dispose(struct cr_exec_credential *credential);
CR_DEFINE_DISPOSE(cr_exec_credential, struct cr_exec_credential, cr_exec_credential_dispose)

/* Runs it, for a minute at most; blocks. Standard input is empty (spec.interactive is false), its output at most 1 MiB,
 * of its standard error the last line comes with the error. cancel_fd: readable, the plugin is killed. Errors:
 * Unauthorized (missing, with the hint; failed; no credentials that can be used), Transient (time-out, no resources),
 * Cancelled. Any thread; the plugin is only read. */
bool cr_exec_plugin_run(const struct cr_exec_plugin *plugin, int cancel_fd, struct cr_exec_credential *out,
                        struct cr_error *err) CR_MUST_USE;

/* An ExecCredential as the plugin printed it. Invalid, and never with its content. */
bool cr_exec_credential_decode(const char *api_version, const char *text, size_t len, struct cr_exec_credential *out,
                               struct cr_error *err) CR_MUST_USE;

#endif
