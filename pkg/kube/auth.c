#include "kube/auth.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/auth_internal.h"
#include "kube/config_internal.h"
#include "kube/exec_plugin.h"

/* When the credential plugin is run, and what becomes of its answer. */

enum {
    AHEAD_MS = 60 * 1000,   /* fetched so long before the end, but not before */
    AHEAD_PART = 5,         /* the last fifth of a short life */
    LEAST_USE_MS = 10000,   /* some plugins say that what they print has ended already, so that no client keeps it */
    REFUSAL_MS = 10 * 1000, /* refusals that go on are no reason to run it without a pause */
    RETRY_FIRST_MS = 1000,
    RETRY_MAX_MS = 30 * 1000,
};

/* Without a plugin these answer and do nothing. Under the lock, but for the first and the last. */
static void auth_plugin_init(struct cr_auth *auth)
{
    auth->cancel_fd = auth->config->exec ? eventfd(0, EFD_CLOEXEC) : -1;
    auth->refused_ms = -REFUSAL_MS;
    auth->backoff = (struct cr_backoff){.first_ms = RETRY_FIRST_MS, .max_ms = RETRY_MAX_MS};
}

/* --- the answer --- */

static void set_times(struct cr_auth *auth, int64_t expires_ms)
{
    int64_t now = cr_clock_wall_ms();
    if (expires_ms < now + LEAST_USE_MS)
        expires_ms = now + LEAST_USE_MS;
    int64_t ahead = (expires_ms - now) / AHEAD_PART;
    auth->expires_ms = expires_ms;
    auth->refresh_at_ms = expires_ms - (ahead < AHEAD_MS ? ahead : AHEAD_MS);
}

static bool same_certificate(const struct cr_kube_config *config, const struct cr_exec_credential *fresh)
{
    return cr_streq(config->cert_pem, fresh->cert_pem) && cr_streq(config->key_pem, fresh->key_pem);
}

static void take_certificate(struct cr_auth *auth, struct cr_exec_credential *fresh)
{
    struct cr_kube_config *config = auth->config;
    if (same_certificate(config, fresh))
        return;
    free(config->cert_pem);
    cr_secret_free(config->key_pem);
    config->cert_pem = cr_steal(&fresh->cert_pem);
    config->key_pem = cr_steal(&fresh->key_pem);
    cr_auth_notify_users(auth);
}

static void take(struct cr_auth *auth, struct cr_exec_credential *fresh)
{
    char until[CR_TIME_TEXT] = "";
    if (fresh->expires_ms != INT64_MAX)
        cr_time_format(fresh->expires_ms, until);
    cr_log(CR_LOG_DEBUG, "the credential plugin answered", {"source", auth->config->source},
           {"until", *until ? until : NULL});
    cr_secret_free(auth->config->token);
    auth->config->token = cr_steal(&fresh->token);
    take_certificate(auth, fresh);
    set_times(auth, fresh->expires_ms);
    auth->has_credential = true;
    auth->generation++;
    auth->failure = (struct cr_error){0};
    cr_backoff_reset(&auth->backoff);
    cr_auth_note_trouble(auth, &auth->plugin_trouble, NULL, NULL);
}

/* What there was may still do: a 401 can be the server's own trouble. */
static void take_failure(struct cr_auth *auth, const struct cr_error *err)
{
    auth->failure = *err;
    auth->retry_ms = cr_clock_monotonic_ms() + cr_backoff_next(&auth->backoff);
    if (err->kind != CR_ERR_CANCELLED)
        cr_auth_note_trouble(auth, &auth->plugin_trouble, "no new credentials", err->text);
}

/* posted: the loop's thread. */
static void notify_wait(void *arg)
{
    struct cr_auth_wait *wait = arg;
    const struct cr_auth_wait_options options = wait->options;
    bool cancelled = wait->cancelled;
    free(wait);
    if (!cancelled)
        options.on_ended(options.arg);
}

static void post_waits(struct cr_auth *auth)
{
    while (!LIST_EMPTY(&auth->waits)) {
        struct cr_auth_wait *wait = LIST_FIRST(&auth->waits);
        LIST_REMOVE(wait, link);
        wait->posted = true;
        cr_loop_post(wait->options.loop, notify_wait, wait);
    }
}

/* --- a run --- */

/* A thread. The plugin's description never changes. */
static void *run(void *arg)
{
    struct cr_auth *auth = arg;
    struct cr_error err = {0};
    CR_CLEANUP(cr_exec_credential) struct cr_exec_credential fresh = {0};
    bool ok = cr_exec_plugin_run(auth->config->exec, auth->cancel_fd, &fresh, &err);
    pthread_mutex_lock(&auth->lock);
    if (ok)
        take(auth, &fresh);
    else
        take_failure(auth, &err);
    auth->running = false;
    auth->refused = false;
    pthread_cond_broadcast(&auth->changed);
    post_waits(auth);
    pthread_mutex_unlock(&auth->lock);
    return NULL;
}

static void join(struct cr_auth *auth)
{
    if (auth->to_join)
        pthread_join(auth->thread, NULL);
    auth->to_join = false;
}

static void start(struct cr_auth *auth)
{
    join(auth); /* it has let the lock go for the last time */
    auth->running = pthread_create(&auth->thread, NULL, run, auth) == 0;
    auth->to_join = auth->running;
    if (auth->running)
        return;
    struct cr_error err = {0};
    cr_error_set(&err, CR_ERR_TRANSIENT, "no thread to run the credential plugin in");
    take_failure(auth, &err);
}

static bool is_due(const struct cr_auth *auth)
{
    return !auth->has_credential || cr_clock_wall_ms() >= auth->refresh_at_ms;
}

/* Has it run when that is due; what there is to hand out now, or why not. */
static enum cr_auth_answer auth_plugin_judge(struct cr_auth *auth, struct cr_error *err)
{
    if (!auth->config->exec)
        return CR_AUTH_READY;
    if (is_due(auth) && !auth->running && cr_clock_monotonic_ms() >= auth->retry_ms)
        start(auth);
    bool usable = auth->has_credential && cr_clock_wall_ms() < auth->expires_ms;
    if (usable && !auth->refused)
        return CR_AUTH_READY;
    if (auth->running)
        return CR_AUTH_PENDING;
    if (err) {
        int64_t pause_ms = auth->retry_ms - cr_clock_monotonic_ms();
        *err = auth->failure;
        err->retry_after_ms = pause_ms > 0 ? (int)pause_ms : 0; /* sooner, the answer would be the same */
    }
    return CR_AUTH_FAILED;
}

/* True when there will be other credentials. */
static bool auth_plugin_refused(struct cr_auth *auth)
{
    if (!auth->config->exec)
        return false;
    int64_t now = cr_clock_monotonic_ms();
    bool again = !auth->running && now >= auth->retry_ms && now - auth->refused_ms >= REFUSAL_MS;
    if (again) {
        auth->refused_ms = now;
        start(auth);
    }
    /* Also one that already runs will bring others. */
    auth->refused = auth->running;
    return auth->running;
}

static void auth_plugin_end(struct cr_auth *auth)
{
    uint64_t one = 1;
    if (auth->cancel_fd >= 0 && write(auth->cancel_fd, &one, sizeof one) < 0)
        cr_log(CR_LOG_WARN, "the credential plugin cannot be told to end");
    join(auth);
    if (auth->cancel_fd >= 0)
        close(auth->cancel_fd);
}

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
    auth_plugin_init(auth);
    return auth;
}

void cr_auth_free(struct cr_auth *auth)
{
    if (!auth)
        return;
    auth_plugin_end(auth);
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
    enum cr_auth_answer found = auth_plugin_judge(auth, err);
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
        hope = auth_plugin_refused(auth) || hope;
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
