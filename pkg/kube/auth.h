/* Credentials that are read again while the program runs (service account tokens live an hour, kubelets rotate client
 * certificates). Thread-safe. Private to pkg/kube. */
#ifndef CR_KUBE_AUTH_H
#define CR_KUBE_AUTH_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "kube/config.h"

struct cr_auth;

/* Takes config. on_changed: CA or client certificate are new, connections must be made anew; in the thread that asked
 * for the token, config borrowed for the call. */
struct cr_auth *cr_auth_new(struct cr_kube_config *config,
                            void (*on_changed)(void *arg, const struct cr_kube_config *config), void *arg);
void cr_auth_free(struct cr_auth *auth);
CR_DEFINE_CLEANUP(cr_auth, struct cr_auth, cr_auth_free)

/* The token as it is now, read again when that is more than a minute ago. Owned, for cr_secret_free; NULL: none. */
char *cr_auth_token(struct cr_auth *auth);
/* Reads all again now: the server said 401, or does not get through the handshake (its CA may be another one). True
 * when another try can go better: something is read from files. */
bool cr_auth_reread(struct cr_auth *auth);
/* Borrowed; only what never changes may be read from it (server, ns, source). */
const struct cr_kube_config *cr_auth_config(const struct cr_auth *auth);

#endif
