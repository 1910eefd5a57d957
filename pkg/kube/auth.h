/* Credentials that are renewed while the program runs: files that are read again (service account tokens live an hour,
 * kubelets rotate client certificates), or a credential plugin that is run again, in a thread of its own, one at a time
 * for all who ask. Thread-safe. Private to pkg/kube. */
#ifndef CR_KUBE_AUTH_H
#define CR_KUBE_AUTH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "kube/config.h"
#include "sys/loop.h"

struct cr_auth;

/* A sender of requests that has connections made with these credentials. Owned by the caller, in place until it
 * leaves. */
struct cr_auth_user {
    /* CA or client certificate are new (or notified for the first time): connections must be opened again. In any
     * thread, one call at a time; config is borrowed for the call. */
    void (*on_changed)(void *arg, const struct cr_kube_config *config);
    void *arg;
    bool cancelled; /* guarded by the lock of the credentials */
    LIST_ENTRY(cr_auth_user) link;
};

/* Takes config. A plugin is not run before the first cr_auth_get. */
struct cr_auth *cr_auth_new(struct cr_kube_config *config);
/* Kills a plugin that runs. After all users have left; loop thread, or after the loop has ended. */
void cr_auth_free(struct cr_auth *auth);
CR_DEFINE_CLEANUP(cr_auth, struct cr_auth, cr_auth_free)

/* Notifies the user at once of what is in use now, and later of each change. */
void cr_auth_join(struct cr_auth *auth, struct cr_auth_user *user);
void cr_auth_leave(struct cr_auth *auth, struct cr_auth_user *user);
/* What this user waits for, and will ask for, ends with Cancelled. */
void cr_auth_cancel(struct cr_auth *auth, struct cr_auth_user *user);

/* What one request carries; a client certificate is the connection's. */
struct cr_credential {
    char *token;         /* NULL: none */
    uint64_t generation; /* for cr_auth_refused */
};
void cr_credential_dispose(struct cr_credential *credential);
CR_DEFINE_DISPOSE(cr_credential, struct cr_credential, cr_credential_dispose)

/* The credentials as they are now. Files are read again when that is more than a minute ago. Blocks only while there
 * are no credentials without a plugin's answer, and not beyond deadline_ms (monotonic): Transient, the plugin goes on.
 * What the plugin fails with is Unauthorized or Transient, and is returned to all who ask until the plugin is tried
 * again. Not in the loop's thread. */
bool cr_auth_get(struct cr_auth *auth, struct cr_auth_user *user, int64_t deadline_ms, struct cr_credential *out,
                 struct cr_error *err) CR_MUST_USE;

/* The same for the loop's thread, without waiting. */
enum cr_auth_answer {
    CR_AUTH_READY,
    CR_AUTH_PENDING, /* *wait was set: ask again when on_ended is called */
    CR_AUTH_FAILED,
};
struct cr_auth_wait;
struct cr_auth_wait_options {
    struct cr_loop *loop;
    void (*on_ended)(void *arg); /* in the loop's thread, once; the wait is gone then */
    void *arg;
};
enum cr_auth_answer cr_auth_ask(struct cr_auth *auth, const struct cr_auth_wait_options *options,
                                struct cr_auth_wait **wait, struct cr_credential *out,
                                struct cr_error *err) CR_MUST_USE;
/* Loop thread, or after the loop has ended, before on_ended was called; takes NULL. on_ended is not called any more. */
void cr_auth_wait_cancel(struct cr_auth_wait *wait);

/* The server said 401 to credentials of this generation: files are read again, the plugin is run again (unless there
 * are newer ones by now, or a refusal had it run a moment ago). True when another try can go better. Does not wait. */
bool cr_auth_refused(struct cr_auth *auth, uint64_t generation);
/* The server does not get through the handshake: its CA may be another one, so files are read again now. */
void cr_auth_reread(struct cr_auth *auth);
/* Borrowed; only what never changes may be read from it (server, ns, source). */
const struct cr_kube_config *cr_auth_config(const struct cr_auth *auth);

#endif
