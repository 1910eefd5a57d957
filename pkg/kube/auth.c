#include "kube/auth.h"

#include <pthread.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/config_internal.h"

/* client-go's period for token files; the kubelet renews them at 80 % of an hour. */
enum { REREAD_MS = 60 * 1000 };

struct cr_auth {
    pthread_mutex_t lock; /* guards all below but what never changes in config */
    struct cr_kube_config *config;
    int64_t read_ms;    /* monotonic */
    char *last_trouble; /* said once, not each minute */
    LIST_HEAD(, cr_auth_listener) listeners;
};

struct cr_auth *cr_auth_new(struct cr_kube_config *config)
{
    struct cr_auth *auth = cr_new(struct cr_auth);
    pthread_mutex_init(&auth->lock, NULL);
    auth->config = config;
    auth->read_ms = cr_clock_monotonic_ms();
    LIST_INIT(&auth->listeners);
    return auth;
}

void cr_auth_listen(struct cr_auth *auth, struct cr_auth_listener *listener)
{
    pthread_mutex_lock(&auth->lock);
    LIST_INSERT_HEAD(&auth->listeners, listener, link);
    listener->on_changed(listener->arg, auth->config);
    pthread_mutex_unlock(&auth->lock);
}

void cr_auth_unlisten(struct cr_auth *auth, struct cr_auth_listener *listener)
{
    pthread_mutex_lock(&auth->lock);
    LIST_REMOVE(listener, link);
    pthread_mutex_unlock(&auth->lock);
}

void cr_auth_free(struct cr_auth *auth)
{
    if (!auth)
        return;
    cr_kube_config_free(auth->config);
    free(auth->last_trouble);
    pthread_mutex_destroy(&auth->lock);
    free(auth);
}

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
    if (!ok && !cr_streq(auth->last_trouble, err.text))
        cr_log(CR_LOG_WARN, "credentials cannot be read again, the old ones stay in use",
               {"source", auth->config->source}, {"error", err.text});
    cr_strset(&auth->last_trouble, ok ? NULL : err.text);
    if (!changed)
        return;
    cr_log(CR_LOG_INFO, "the CA or the client certificate for the API server changed",
           {"source", auth->config->source});
    struct cr_auth_listener *listener;
    LIST_FOREACH(listener, &auth->listeners, link)
    listener->on_changed(listener->arg, auth->config);
}

char *cr_auth_token(struct cr_auth *auth)
{
    pthread_mutex_lock(&auth->lock);
    if (cr_clock_monotonic_ms() - auth->read_ms >= REREAD_MS)
        reread(auth);
    char *token = cr_strdup_or_null(auth->config->token);
    pthread_mutex_unlock(&auth->lock);
    return token;
}

bool cr_auth_reread(struct cr_auth *auth)
{
    pthread_mutex_lock(&auth->lock);
    bool hope = reads_files(auth->config);
    reread(auth);
    pthread_mutex_unlock(&auth->lock);
    return hope;
}

const struct cr_kube_config *cr_auth_config(const struct cr_auth *auth)
{
    return auth->config;
}
