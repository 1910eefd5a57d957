/* Credentials that are read again while the program runs (service account tokens live an hour, kubelets rotate client
 * certificates). Thread-safe. Private to pkg/kube. */
#ifndef CR_KUBE_AUTH_H
#define CR_KUBE_AUTH_H

#include <stdbool.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "kube/config.h"

struct cr_auth;

/* Whoever has connections that were made with these credentials. Owned by the caller, in place until it is removed. */
struct cr_auth_listener {
    /* CA or client certificate are new (or told for the first time): connections must be made anew. In any thread, one
     * call at a time; config is borrowed for the call. */
    void (*on_changed)(void *arg, const struct cr_kube_config *config);
    void *arg;
    LIST_ENTRY(cr_auth_listener) link;
};

/* Takes config. */
struct cr_auth *cr_auth_new(struct cr_kube_config *config);
/* After all listeners were removed. */
void cr_auth_free(struct cr_auth *auth);
/* Tells the listener at once what is in use now, and later each change. Any thread. */
void cr_auth_listen(struct cr_auth *auth, struct cr_auth_listener *listener);
void cr_auth_unlisten(struct cr_auth *auth, struct cr_auth_listener *listener);
CR_DEFINE_CLEANUP(cr_auth, struct cr_auth, cr_auth_free)

/* The token as it is now, read again when that is more than a minute ago. Owned, for cr_secret_free; NULL: none. */
char *cr_auth_token(struct cr_auth *auth);
/* Reads all again now: the server said 401, or does not get through the handshake (its CA may be another one). True
 * when another try can go better: something is read from files. */
bool cr_auth_reread(struct cr_auth *auth);
/* Borrowed; only what never changes may be read from it (server, ns, source). */
const struct cr_kube_config *cr_auth_config(const struct cr_auth *auth);

#endif
