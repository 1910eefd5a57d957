/* Private to pkg/kube: the sources that cr_kube_config_load chooses from. */
#ifndef CR_KUBE_CONFIG_INTERNAL_H
#define CR_KUBE_CONFIG_INTERNAL_H

#include "kube/config.h"

/* One kubeconfig file. context NULL: its current-context. Owned. */
struct cr_kube_config *cr_kube_config_from_file(const char *path, const char *context,
                                                struct cr_error *err) CR_MUST_USE;

/* The service account's folder (token, ca.crt, namespace) and KUBERNETES_SERVICE_HOST and _PORT of the environment. */
struct cr_kube_config *cr_kube_config_from_pod(const char *folder, struct cr_error *err) CR_MUST_USE;

/* Reads PEM or a token whole, without the white space around it; what names it in messages. An empty file is Invalid.
 * Owned, wiped by the caller when it is a secret (cr_secret_free). */
char *cr_kube_config_read(const char *path, const char *what, struct cr_error *err) CR_MUST_USE;

/* The same for a token. */
char *cr_kube_config_read_token(const char *path, struct cr_error *err) CR_MUST_USE;
/* Whether the text can stand in a header: visible ASCII. A line break in it would begin a header of its own. */
bool cr_kube_config_is_token(const char *text);

/* Wipes a C string before it is freed; takes NULL. */
void cr_secret_free(char *secret);
static inline void cr_secret_cleanup(char **secret)
{
    cr_secret_free(*secret);
}

/* What no server should be sent: credentials without TLS, an address that is no URL. Cuts trailing slashes. */
bool cr_kube_config_check(struct cr_kube_config *config, struct cr_error *err) CR_MUST_USE;

#endif
