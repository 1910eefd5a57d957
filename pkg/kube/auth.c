#include "kube/auth.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/auth_internal.h"
#include "kube/config_internal.h"

/* client-go's period for token files; the kubelet renews them at 80 % of an hour. */
enum { REREAD_MS = 60 * 1000 };

struct cr_auth *cr_auth_new(struct cr_kube_config *config)
{
    struct cr_auth *auth = cr_new(struct cr_auth);
    pthread_mutex_init(&auth->lock, NULL);
    cr_cond_init(&auth->changed);
    auth->config = config;
    auth->read_ms = cr_clock_monotonic_ms();
    LIST_INIT(&auth->users);
    LIST_INIT(&auth->waits);
    cr_auth_plugin_init(auth);
    return auth;
}

void cr_auth_free(struct cr_auth *auth)
{
    if (!auth)
        return;
    cr_auth_plugin_end(auth);
    cr_kube_config_free(auth->config);
    free(auth->file_trouble);
    free(auth->plugin_trouble);
    pthread_cond_destroy(&auth->changed);
    pthread_mutex_destroy(&auth->lock);
    free(auth);
}

void cr_auth_join(struct cr_auth *auth, struct cr_auth_user *user)
{
    pthread_mutex_lock(&auth->lock);
    LIST_INSERT_HEAD(&auth->users, user, link);
    user->on_changed(user->arg, auth->config);
    pthread_mutex_unlock(&auth->lock);
}

void cr_auth_leave(struct cr_auth *auth, struct cr_auth_user *user)
{
    pthread_mutex_lock(&auth->lock);
    LIST_REMOVE(user, link);
    pthread_mutex_unlock(&auth->lock);
}

void cr_auth_cancel(struct cr_auth *auth, struct cr_auth_user *user)
{
    pthread_mutex_lock(&auth->lock);
    user->cancelled = true;
    pthread_cond_broadcast(&auth->changed);
    pthread_mutex_unlock(&auth->lock);
}

void cr_auth_notify_users(struct cr_auth *auth)
{
    struct cr_auth_user *user;
    LIST_FOREACH(user, &auth->users, link)
    user->on_changed(user->arg, auth->config);
}

void cr_auth_note_trouble(const struct cr_auth *auth, char **last, const char *what, const char *trouble)
{
    if (trouble && !cr_streq(*last, trouble))
        cr_log(CR_LOG_WARN, what, {"source", auth->config->source}, {"error", trouble});
    cr_strset(last, trouble);
}

void cr_credential_dispose(struct cr_credential *credential)
{
    cr_secret_free(credential->token);
    *credential = (struct cr_credential){0};
}

/* --- files --- */

static bool reads_files(const struct cr_kube_config *config)
{
    return config->token_file || config->ca_file || config->cert_file || config->key_file;
}

/* Under the lock: so that of two threads the later one's configuration is the one that stays set. */
static void reread(struct cr_auth *auth)
{
    auth->read_ms = cr_clock_monotonic_ms();
    if (!reads_files(auth->config))
        return;
    struct cr_error err = {0};
    bool changed = false;
    bool ok = cr_kube_config_reload(auth->config, &changed, &err);
    cr_auth_note_trouble(auth, &auth->file_trouble, "credentials cannot be read again, the old ones stay in use",
                         ok ? NULL : err.text);
    if (!changed)
        return;
    cr_log(CR_LOG_INFO, "the CA or the client certificate for the API server changed",
           {"source", auth->config->source});
    cr_auth_notify_users(auth);
}

/* --- answers --- */

/* Under the lock. */
static enum cr_auth_answer answer(struct cr_auth *auth, struct cr_credential *out, struct cr_error *err)
{
    if (cr_clock_monotonic_ms() - auth->read_ms >= REREAD_MS)
        reread(auth);
    enum cr_auth_answer found = cr_auth_plugin_judge(auth, err);
    if (found == CR_AUTH_READY)
        *out = (struct cr_credential){.token = cr_strdup_or_null(auth->config->token), .generation = auth->generation};
    return found;
}

/* Under the lock. */
static bool get(struct cr_auth *auth, const struct cr_auth_user *user, int64_t deadline_ms, struct cr_credential *out,
                struct cr_error *err)
{
    for (;;) {
        if (user->cancelled)
            return cr_error_set(err, CR_ERR_CANCELLED, "shutting down");
        enum cr_auth_answer found = answer(auth, out, err);
        if (found != CR_AUTH_PENDING)
            return found == CR_AUTH_READY;
        if (!cr_cond_wait_until(&auth->changed, &auth->lock, deadline_ms))
            return cr_error_set(err, CR_ERR_TRANSIENT, "%s: the credential plugin has not answered yet",
                                auth->config->source);
    }
}

bool cr_auth_get(struct cr_auth *auth, struct cr_auth_user *user, int64_t deadline_ms, struct cr_credential *out,
                 struct cr_error *err)
{
    *out = (struct cr_credential){0};
    pthread_mutex_lock(&auth->lock);
    bool ok = get(auth, user, deadline_ms, out, err);
    pthread_mutex_unlock(&auth->lock);
    return ok;
}

enum cr_auth_answer cr_auth_ask(struct cr_auth *auth, const struct cr_auth_wait_options *options,
                                struct cr_auth_wait **wait, struct cr_credential *out, struct cr_error *err)
{
    *out = (struct cr_credential){0};
    *wait = NULL;
    pthread_mutex_lock(&auth->lock);
    enum cr_auth_answer found = answer(auth, out, err);
    if (found == CR_AUTH_PENDING) {
        *wait = cr_new(struct cr_auth_wait);
        (*wait)->auth = auth;
        (*wait)->options = *options;
        LIST_INSERT_HEAD(&auth->waits, *wait, link);
    }
    pthread_mutex_unlock(&auth->lock);
    return found;
}

void cr_auth_wait_cancel(struct cr_auth_wait *wait)
{
    if (!wait)
        return;
    struct cr_auth *auth = wait->auth;
    pthread_mutex_lock(&auth->lock);
    wait->cancelled = true;
    bool mine = !wait->posted;
    if (mine)
        LIST_REMOVE(wait, link);
    pthread_mutex_unlock(&auth->lock);
    if (mine)
        free(wait);
}

bool cr_auth_refused(struct cr_auth *auth, uint64_t generation)
{
    pthread_mutex_lock(&auth->lock);
    bool hope = generation != auth->generation || reads_files(auth->config);
    if (generation == auth->generation) {
        reread(auth);
        hope = cr_auth_plugin_refused(auth) || hope;
    }
    pthread_mutex_unlock(&auth->lock);
    return hope;
}

void cr_auth_reread(struct cr_auth *auth)
{
    pthread_mutex_lock(&auth->lock);
    reread(auth);
    pthread_mutex_unlock(&auth->lock);
}

const struct cr_kube_config *cr_auth_config(const struct cr_auth *auth)
{
    return auth->config;
}
