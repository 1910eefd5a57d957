#include "kube/access_guard.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "base/thread.h"
#include "kube/client.h"
#include "kube/config_internal.h"
#include "pki/digest.h"

/* Asks the API server who a client is and what it may do: TokenReview and SubjectAccessReview
 * (https://kubernetes.io/docs/reference/access-authn-authz/webhook/). It needs the rights of the ClusterRole
 * system:auth-delegator. */

enum cr_access {
    CR_ACCESS_ALLOWED,
    CR_ACCESS_UNKNOWN_USER, /* no user has the token (any more) */
    CR_ACCESS_DENIED,       /* the user may not */
};

static const char json_type[] = "application/json";
static const char token_reviews[] = "/apis/authentication.k8s.io/v1/tokenreviews";
static const char access_reviews[] = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

static struct cr_json *new_review(const char *api_version, const char *kind)
{
    struct cr_json *review = cr_json_new_object();
    cr_json_set_string(review, "apiVersion", api_version);
    cr_json_set_string(review, "kind", kind);
    return review;
}

/* The token stands in what is sent and in what comes back. */
static struct cr_json *send_token(struct cr_client *client, const char *token, struct cr_error *err)
{
    struct cr_json *review = new_review("authentication.k8s.io/v1", "TokenReview");
    cr_json_set_string(cr_json_object_in(review, "spec"), "token", token);
    char *body = cr_json_print(review);
    cr_json_free_secret(review);
    struct cr_json *answer = cr_client_raw(client, "POST", token_reviews, json_type, body, err);
    explicit_bzero(body, strlen(body));
    free(body);
    return answer;
}

/* *user: owned, NULL when no user has the token. */
static bool review_token(struct cr_client *client, const char *token, struct cr_json **user, struct cr_error *err)
{
    struct cr_json *answer = send_token(client, token, err);
    if (!answer)
        return false;
    struct cr_json *status = cr_json_edit(answer, "status");
    if (cr_json_bool_at(status, false, "authenticated"))
        *user = cr_json_take(status, "user");
    cr_json_free_secret(answer);
    return true;
}

/* All that the authenticator knows of the user goes to the authorizer. Takes parts of user. */
static struct cr_json *access_question(struct cr_json *user, const char *path)
{
    struct cr_json *review = new_review("authorization.k8s.io/v1", "SubjectAccessReview");
    struct cr_json *spec = cr_json_object_in(review, "spec");
    cr_json_set_string(spec, "user", cr_json_string_at(user, "username"));
    cr_json_set_string(spec, "uid", cr_json_string_at(user, "uid"));
    if (cr_json_get(user, "groups"))
        cr_json_set(spec, "groups", cr_json_take(user, "groups"));
    if (cr_json_get(user, "extra"))
        cr_json_set(spec, "extra", cr_json_take(user, "extra"));
    struct cr_json *attributes = cr_json_object_in(spec, "nonResourceAttributes");
    cr_json_set_string(attributes, "path", path);
    cr_json_set_string(attributes, "verb", "get");
    return review;
}

static bool review_access(struct cr_client *client, struct cr_json *user, const char *path, bool *allowed,
                          struct cr_error *err)
{
    CR_CLEANUP(cr_json) struct cr_json *question = access_question(user, path);
    cr_autofree char *body = cr_json_print(question);
    CR_CLEANUP(cr_json)
    struct cr_json *answer = cr_client_raw(client, "POST", access_reviews, json_type, body, err);
    if (!answer)
        return false;
    *allowed = cr_json_bool_at(answer, false, "status", "allowed");
    return true;
}

/* Whether the bearer of the token may get this path of a server that is no API server (a nonResourceURL). Blocks for up
 * to two requests. The token is wiped from what was made of it. False: the API server could not be asked, so the answer
 * is not known. */
static bool access_review(struct cr_client *client, const char *token, const char *path, enum cr_access *access,
                          struct cr_error *err)
{
    CR_CLEANUP(cr_json) struct cr_json *user = NULL;
    bool allowed = false;
    if (!review_token(client, token, &user, err))
        return false;
    const char *name = cr_json_string_at(user, "username");
    if (!name || !*name) {
        *access = CR_ACCESS_UNKNOWN_USER;
        return true;
    }
    if (!review_access(client, user, path, &allowed, err))
        return false;
    *access = allowed ? CR_ACCESS_ALLOWED : CR_ACCESS_DENIED;
    return true;
}

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
    bool asked = access_review(guard->client, token, guard->options.path, &access, &err);
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
