#include "kube/access_guard.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "base/thread.h"
#include "kube/access_review.h"
#include "kube/config_internal.h"
#include "pki/digest.h"

enum {
    REQUEST_MS = 3000,
    YES_MS = 60 * 1000,
    NO_MS = 10 * 1000,
    MAX_WAITING = 32,
    MAX_REMEMBERED = 256, /* beyond it all is forgotten, and asked again */
    GUESS_MS = 100,       /* a no costs so much, so that guessing does not become the API server's load */
};

enum { OK = 200, UNAUTHORIZED = 401, FORBIDDEN = 403, UNAVAILABLE = 503 };

/* A request that waits for the thread, and then for the loop. */
struct job {
    STAILQ_ENTRY(job) link;
    char *token; /* wiped */
    char key[CR_SHA256_HEX];
    struct cr_http_pending *pending;
    int status;
};

struct answer {
    int status;
    int64_t until_ms;
};

struct cr_access_guard {
    struct cr_access_guard_options options;
    struct cr_client *client; /* our own */
    pthread_t thread;

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    bool stop;
    size_t waiting;
    STAILQ_HEAD(, job) jobs;
    struct cr_strmap *answers; /* digest of the token -> struct answer */
    char *logged;              /* the thread's: the problem that was logged last */
};

/* --- what was answered --- */

/* 0: not known (any more). With the lock held. */
static int remembered(struct cr_access_guard *guard, const char *key)
{
    const struct answer *answer = cr_strmap_get(guard->answers, key);
    return answer && cr_clock_boot_ms() < answer->until_ms ? answer->status : 0;
}

static void remember(struct cr_access_guard *guard, const char *key, int status)
{
    if (status == UNAVAILABLE)
        return;
    int64_t ms = status == OK ? guard->options.yes_ms : guard->options.no_ms;
    const struct answer answer = {status, cr_clock_boot_ms() + ms};
    pthread_mutex_lock(&guard->lock);
    if (cr_strmap_len(guard->answers) >= MAX_REMEMBERED)
        cr_strmap_clear(guard->answers);
    cr_strmap_set(guard->answers, key, cr_memdup(&answer, sizeof answer));
    pthread_mutex_unlock(&guard->lock);
}

static void settle(struct cr_http_pending *pending, int status)
{
    switch (status) {
    case OK:
        cr_http_pending_allow(pending);
        return;
    case UNAUTHORIZED:
        cr_http_pending_refuse(pending, status, "this needs the bearer token of a user of the cluster");
        return;
    case FORBIDDEN:
        cr_http_pending_refuse(pending, status, "the user may not get this nonResourceURL");
        return;
    default:
        cr_http_pending_refuse(pending, status, "whose token this is and what they may cannot be asked now");
    }
}

/* --- the thread --- */

static struct job *take_job(struct cr_access_guard *guard)
{
    pthread_mutex_lock(&guard->lock);
    while (!guard->stop && STAILQ_EMPTY(&guard->jobs))
        pthread_cond_wait(&guard->changed, &guard->lock);
    struct job *job = guard->stop ? NULL : STAILQ_FIRST(&guard->jobs);
    if (job) {
        STAILQ_REMOVE_HEAD(&guard->jobs, link);
        guard->waiting--;
        job->status = remembered(guard, job->key); /* of one that waited before it */
    }
    pthread_mutex_unlock(&guard->lock);
    return job;
}

/* Once per problem. */
static void log_problem(struct cr_access_guard *guard, const char *problem)
{
    if (cr_streq(problem, guard->logged))
        return;
    cr_strset(&guard->logged, problem);
    if (problem)
        cr_log(CR_LOG_WARN, "who asks for this page cannot be checked, so nobody gets it",
               {"page", guard->options.path}, {"error", problem});
}

static int review(struct cr_access_guard *guard, const char *token)
{
    static const int statuses[] = {
        [CR_ACCESS_ALLOWED] = OK, [CR_ACCESS_UNKNOWN_USER] = UNAUTHORIZED, [CR_ACCESS_DENIED] = FORBIDDEN};
    enum cr_access access = CR_ACCESS_DENIED;
    struct cr_error err = {0};
    bool asked = cr_access_review(guard->client, token, guard->options.path, &access, &err);
    log_problem(guard, asked || err.kind == CR_ERR_CANCELLED ? NULL : err.text);
    return asked ? statuses[access] : UNAVAILABLE;
}

/* In the loop's thread; the guard may be gone. */
static void end_job(void *arg)
{
    struct job *job = arg;
    settle(job->pending, job->status);
    cr_secret_free(job->token);
    free(job);
}

static void work_on(struct cr_access_guard *guard, struct job *job)
{
    bool asks = !job->status;
    if (asks) {
        job->status = review(guard, job->token);
        remember(guard, job->key, job->status);
    }
    bool no = asks && job->status != OK;
    cr_loop_post(guard->options.loop, end_job, job);
    if (no)
        usleep(GUESS_MS * 1000);
}

static void *run(void *arg)
{
    struct cr_access_guard *guard = arg;
    for (struct job *job; (job = take_job(guard));)
        work_on(guard, job);
    return NULL;
}

/* --- the loop's side --- */

/* The token of "Bearer <token>" (RFC 6750, the scheme in any case), borrowed; NULL: none that could be one. */
static const char *bearer(const char *authorization)
{
    static const char scheme[] = "Bearer ";
    if (!authorization || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return NULL;
    const char *token = authorization + sizeof scheme - 1;
    token += strspn(token, " ");
    return cr_kube_config_is_token(token) ? token : NULL;
}

static struct job *new_job(const char *token, const char *key, struct cr_http_pending *pending)
{
    struct job *job = cr_new(struct job);
    job->token = cr_strdup(token);
    memcpy(job->key, key, sizeof job->key);
    job->pending = pending;
    return job;
}

void cr_access_guard_check(void *arg, const char *authorization, struct cr_http_pending *pending)
{
    struct cr_access_guard *guard = arg;
    const char *token = bearer(authorization);
    if (!token) {
        settle(pending, UNAUTHORIZED);
        return;
    }
    char key[CR_SHA256_HEX];
    cr_sha256_hex(token, strlen(token), key);
    pthread_mutex_lock(&guard->lock);
    int status = remembered(guard, key);
    if (!status && guard->waiting >= MAX_WAITING)
        status = UNAVAILABLE;
    if (!status) {
        struct job *job = new_job(token, key, pending);
        STAILQ_INSERT_TAIL(&guard->jobs, job, link);
        guard->waiting++;
        pthread_cond_signal(&guard->changed);
    }
    pthread_mutex_unlock(&guard->lock);
    if (status)
        settle(pending, status);
}

/* --- life --- */

static void start_thread(struct cr_access_guard *guard)
{
    if (cr_thread_start(&guard->thread, run, guard) == 0)
        return;
    cr_log(CR_LOG_ERROR, "no thread can be started for the guard of a page");
    abort();
}

struct cr_access_guard *cr_access_guard_new(const struct cr_access_guard_options *options)
{
    struct cr_access_guard *guard = cr_new(struct cr_access_guard);
    guard->options = *options;
    if (!guard->options.yes_ms)
        guard->options.yes_ms = YES_MS;
    if (!guard->options.no_ms)
        guard->options.no_ms = NO_MS;
    guard->client = cr_client_new_dedicated(options->client, REQUEST_MS);
    guard->answers = cr_strmap_new(free);
    STAILQ_INIT(&guard->jobs);
    pthread_mutex_init(&guard->lock, NULL);
    pthread_cond_init(&guard->changed, NULL);
    start_thread(guard);
    return guard;
}

void cr_access_guard_free(struct cr_access_guard *guard)
{
    if (!guard)
        return;
    pthread_mutex_lock(&guard->lock);
    guard->stop = true;
    pthread_cond_signal(&guard->changed);
    pthread_mutex_unlock(&guard->lock);
    cr_client_cancel(guard->client);
    pthread_join(guard->thread, NULL);
    for (struct job *job; (job = STAILQ_FIRST(&guard->jobs));) {
        STAILQ_REMOVE_HEAD(&guard->jobs, link);
        job->status = UNAVAILABLE;
        end_job(job);
    }
    cr_client_free(guard->client);
    cr_strmap_free(guard->answers);
    pthread_cond_destroy(&guard->changed);
    pthread_mutex_destroy(&guard->lock);
    free(guard->logged);
    free(guard);
}
