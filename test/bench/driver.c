/* Changes Secrets and sees when the restart patches are there. It knows nothing of who answers, the floor or certroll.
 *
 * bench-driver latency NAMESPACE COUNT CHANGES PAUSE_MS   one change at a time, of Secrets all over COUNT
 * bench-driver burst NAMESPACE COUNT                      all COUNT Secrets at once
 * bench-driver burst-status NAMESPACE COUNT               and until each policy's status tells of its restart
 * bench-driver change NAMESPACE COUNT                     all COUNT Secrets at once, and nothing is awaited
 * bench-driver settle NAMESPACE COUNT                     nothing; plays the controller of Deployments, which does not
 *                                                         run, until every policy's rotation is over
 * bench-driver rest NAMESPACE COUNT                       nothing, until no policy has anything to do
 *
 * Secret s-00042 belongs to Deployment d-00042 and policy p-00042. Prints one JSON object. The watches have a thread
 * and a connection of their own, so that an event is timed when it comes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api.h"
#include "clock.h"
#include "frame.h"
#include "material.h"

enum { HEAD = 512, POLICY_MAX = 65536 };

struct target {
    int64_t sent_ns, answered_ns, restarted_ns, status_ns; /* 0: not yet */
    long long generation;                                  /* of the Deployment, when last seen */
    long long secret_version, observed_version;            /* resourceVersions */
    bool idle, restarting;
    long long told_generation; /* as the Deployment's status.observedGeneration */
};

static struct driver {
    const char *ns;
    size_t count;
    bool statuses, settle;
    int deadline_s;
    struct target *targets;
    struct bench_api *api;
    struct bench_material *material;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t synced, watches;
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- what is seen --- */

static void note_initial_end(void)
{
    pthread_mutex_lock(&driver.lock);
    driver.synced++;
    pthread_cond_broadcast(&driver.changed);
    pthread_mutex_unlock(&driver.lock);
}

/* Whose object it is; NULL: nobody's here, or the end of the first events, which is noted. */
static struct target *target_of(const char *frame, const char *prefix)
{
    size_t index;
    if (bench_frame_is_initial_end(frame))
        note_initial_end();
    else if (bench_frame_index(frame, prefix, &index) && index < driver.count)
        return &driver.targets[index];
    return NULL;
}

static void on_deployment(void *arg, const char *frame, size_t len)
{
    (void)arg;
    (void)len;
    int64_t now = bench_now_ns();
    struct target *target = target_of(frame, "d-");
    if (!target)
        return;
    /* It counts changes of the spec, so of the pod template, and none of the status. */
    long long generation = bench_frame_number(frame, "generation");
    pthread_mutex_lock(&driver.lock);
    if (target->generation && generation > target->generation && target->sent_ns && !target->restarted_ns) {
        target->restarted_ns = now;
        pthread_cond_broadcast(&driver.changed);
    }
    target->generation = generation;
    pthread_mutex_unlock(&driver.lock);
}

/* Lock held. */
static void judge_status(struct target *target, int64_t now)
{
    bool done = target->secret_version && target->observed_version >= target->secret_version &&
                (target->idle || (target->restarting && !driver.settle));
    if (!done)
        target->status_ns = 0;
    else if (!target->status_ns)
        target->status_ns = now;
    pthread_cond_broadcast(&driver.changed);
}

static void on_policy(void *arg, const char *frame, size_t len)
{
    (void)arg;
    (void)len;
    int64_t now = bench_now_ns();
    struct target *target = target_of(frame, "p-");
    if (!target)
        return;
    pthread_mutex_lock(&driver.lock);
    target->observed_version = bench_frame_number(frame, "observedResourceVersion");
    target->idle = strstr(frame, "\"stage\":\"Idle\"") != NULL;
    target->restarting = strstr(frame, "\"state\":\"Restarting\"") != NULL;
    judge_status(target, now);
    pthread_mutex_unlock(&driver.lock);
}

static void on_secret(void *arg, const char *frame, size_t len)
{
    (void)arg;
    (void)len;
    struct target *target = target_of(frame, "s-");
    if (!target)
        return;
    pthread_mutex_lock(&driver.lock);
    target->secret_version = bench_frame_number(frame, "resourceVersion");
    judge_status(target, bench_now_ns());
    pthread_mutex_unlock(&driver.lock);
}

static void *watch(void *arg)
{
    struct bench_api *api = bench_api_new();
    char path[256];
    snprintf(path, sizeof path, "/apis/apps/v1/namespaces/%s/deployments", driver.ns);
    bench_api_watch(api, path, "", HEAD, on_deployment, NULL);
    if (driver.statuses) {
        snprintf(path, sizeof path, "/apis/certroll.dev/v1alpha1/namespaces/%s/certrotationpolicies", driver.ns);
        bench_api_watch(api, path, "", POLICY_MAX, on_policy, NULL);
    }
    if (driver.settle) {
        snprintf(path, sizeof path, "/api/v1/namespaces/%s/secrets", driver.ns);
        bench_api_watch(api, path, "", HEAD, on_secret, NULL);
    }
    for (;;)
        bench_api_poll(api, 60000);
    return arg;
}

/* Lock held. False after the deadline. */
static bool wait_until(bool (*holds)(size_t), size_t index)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += driver.deadline_s;
    int status = 0;
    while (!holds(index) && status == 0)
        status = pthread_cond_timedwait(&driver.changed, &driver.lock, &end);
    return holds(index);
}

static bool is_synced(size_t unused)
{
    (void)unused;
    return driver.synced >= driver.watches;
}

static bool is_restarted(size_t index)
{
    return driver.targets[index].restarted_ns != 0;
}

static size_t missing(bool status)
{
    size_t count = 0;
    for (size_t i = 0; i < driver.count; i++)
        count += status ? driver.targets[i].status_ns == 0 : driver.targets[i].restarted_ns == 0;
    return count;
}

static bool all_restarted(size_t unused)
{
    (void)unused;
    return missing(false) == 0;
}

static bool all_told(size_t unused)
{
    (void)unused;
    return missing(true) == 0;
}

static void wait_for(bool (*holds)(size_t), size_t index, const char *what)
{
    pthread_mutex_lock(&driver.lock);
    if (!wait_until(holds, index))
        bench_fail("%s: not within %d s; %zu of %zu restarts and %zu of %zu statuses are missing", what,
                   driver.deadline_s, missing(false), driver.count, driver.statuses ? missing(true) : 0, driver.count);
    pthread_mutex_unlock(&driver.lock);
}

/* --- what is done --- */

static void on_changed(void *arg, size_t index, long status, const char *body)
{
    (void)arg;
    int64_t now = bench_now_ns();
    if (status >= 300)
        bench_fail("Secret %zu: the API server: %ld %s", index, status, body);
    pthread_mutex_lock(&driver.lock);
    driver.targets[index].answered_ns = now;
    driver.targets[index].secret_version = bench_frame_number(body, "resourceVersion");
    judge_status(&driver.targets[index], now);
    pthread_mutex_unlock(&driver.lock);
}

static char *make_body(size_t index)
{
    char *data = bench_material_data(driver.material, index), *body = NULL;
    if (asprintf(&body, "{\"data\":%s}", data) < 0)
        bench_fail("out of memory");
    free(data);
    return body;
}

/* Takes the body. Sent by the next poll. */
static void change(size_t index, char *body)
{
    char path[256];
    snprintf(path, sizeof path, "/api/v1/namespaces/%s/secrets/s-%05zu", driver.ns, index);
    struct target *target = &driver.targets[index];
    pthread_mutex_lock(&driver.lock);
    target->answered_ns = target->restarted_ns = target->status_ns = 0;
    target->secret_version = 0;
    target->sent_ns = bench_now_ns();
    pthread_mutex_unlock(&driver.lock);
    bench_api_send(driver.api, "PATCH", path, "application/merge-patch+json", body, on_changed, NULL, index);
    free(body);
}

static void finish_requests(void)
{
    while (bench_api_pending(driver.api))
        bench_api_poll(driver.api, 1000);
}

static void nap(long ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

static double ms_between(int64_t from_ns, int64_t to_ns)
{
    return (double)(to_ns - from_ns) / 1e6;
}

static void print_list(const char *name, const double *values, size_t count, const char *end)
{
    printf("\"%s\":[", name);
    for (size_t i = 0; i < count; i++)
        printf("%s%.3f", i ? "," : "", values[i]);
    printf("]%s", end);
}

static void latency(size_t changes, long pause_ms)
{
    double *sent = calloc(changes, sizeof *sent), *answered = calloc(changes, sizeof *answered);
    if (!sent || !answered)
        bench_fail("out of memory");
    for (size_t i = 0; i < changes; i++) {
        size_t index = i * 7919 % driver.count; /* a prime: all over, and none twice before all were */
        change(index, make_body(index));
        finish_requests();
        wait_for(is_restarted, index, "a restart");
        sent[i] = ms_between(driver.targets[index].sent_ns, driver.targets[index].restarted_ns);
        answered[i] = ms_between(driver.targets[index].answered_ns, driver.targets[index].restarted_ns);
        nap(pause_ms);
    }
    printf("{");
    print_list("from_sent_ms", sent, changes, ",");
    print_list("from_answered_ms", answered, changes, "}\n");
    free(sent);
    free(answered);
}

static int64_t last_ns(bool status)
{
    int64_t last = 0;
    for (size_t i = 0; i < driver.count; i++) {
        int64_t at = status ? driver.targets[i].status_ns : driver.targets[i].restarted_ns;
        last = at > last ? at : last;
    }
    return last;
}

/* Returns when the first change was sent. */
static int64_t change_all(void)
{
    char **bodies = calloc(driver.count, sizeof *bodies);
    if (!bodies)
        bench_fail("out of memory");
    for (size_t i = 0; i < driver.count; i++)
        bodies[i] = make_body(i);
    int64_t begun = bench_now_ns();
    for (size_t i = 0; i < driver.count; i++)
        change(i, bodies[i]);
    finish_requests();
    free(bodies);
    return begun;
}

static void change_only(void)
{
    int64_t begun = change_all();
    printf("{\"changes_s\":%.4f}\n", ms_between(begun, bench_now_ns()) / 1e3);
}

static void burst(void)
{
    int64_t begun = change_all();
    int64_t changed = bench_now_ns();
    wait_for(all_restarted, 0, "the restarts");
    printf("{\"changes_s\":%.4f,\"restarts_s\":%.4f", ms_between(begun, changed) / 1e3,
           ms_between(begun, last_ns(false)) / 1e3);
    if (driver.statuses) {
        wait_for(all_told, 0, "the statuses");
        printf(",\"statuses_s\":%.4f", ms_between(begun, last_ns(true)) / 1e3);
    }
    printf("}\n");
}

static void tell(size_t index, long long generation)
{
    char path[256], body[128];
    snprintf(path, sizeof path, "/apis/apps/v1/namespaces/%s/deployments/d-%05zu/status", driver.ns, index);
    snprintf(body, sizeof body, "{\"status\":{\"observedGeneration\":%lld}}", generation);
    bench_api_send(driver.api, "PATCH", path, "application/merge-patch+json", body, NULL, NULL, index);
}

/* As the controller says it that has seen the newest pod template and has nothing to do for it, without replicas. */
static void tell_generation(size_t index)
{
    struct target *target = &driver.targets[index];
    pthread_mutex_lock(&driver.lock);
    long long generation = target->generation;
    pthread_mutex_unlock(&driver.lock);
    if (target->told_generation != generation)
        tell(index, generation);
    target->told_generation = generation;
}

/* Of a workload that is scaled to 0, all of which the controller has seen, certroll restarts nothing: no pod of it is
 * old. So each must be one that is not known to be there yet, or nothing could be measured without thousands of pods.
 */
static void forget_generations(void)
{
    for (size_t i = 0; i < driver.count; i++)
        tell(i, 0);
    finish_requests();
}

static void settle(void)
{
    int64_t begun = bench_now_ns();
    for (bool over = false; !over; nap(50)) {
        for (size_t i = 0; i < driver.count; i++)
            tell_generation(i);
        finish_requests();
        pthread_mutex_lock(&driver.lock);
        over = missing(true) == 0;
        if (!over && bench_now_ns() - begun > driver.deadline_s * 1000000000LL)
            bench_fail("%zu rotations are not over within %d s", missing(true), driver.deadline_s);
        pthread_mutex_unlock(&driver.lock);
    }
    forget_generations();
    printf("{\"settled_s\":%.3f}\n", ms_between(begun, bench_now_ns()) / 1e3);
}

static void rest(void)
{
    int64_t begun = bench_now_ns();
    wait_for(all_told, 0, "the rest");
    printf("{\"rested_s\":%.3f}\n", ms_between(begun, bench_now_ns()) / 1e3);
}

static void begin_to_watch(void)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&driver.changed, &monotonic);
    pthread_t thread;
    if (pthread_create(&thread, NULL, watch, NULL) != 0)
        bench_fail("no thread can be made");
    wait_for(is_synced, 0, "the first state");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    bool is_latency = strcmp(what, "latency") == 0;
    bool is_rest = strcmp(what, "rest") == 0;
    bool is_change = strcmp(what, "change") == 0;
    driver.settle = is_rest || strcmp(what, "settle") == 0;
    driver.statuses = driver.settle || strcmp(what, "burst-status") == 0;
    if (argc != (is_latency ? 6 : 4) || (!is_latency && !is_change && !driver.statuses && strcmp(what, "burst") != 0))
        bench_fail("usage: bench-driver latency NAMESPACE COUNT CHANGES PAUSE_MS\n"
                   "       bench-driver burst|burst-status|change|settle|rest NAMESPACE COUNT");
    driver.ns = argv[2];
    driver.count = strtoul(argv[3], NULL, 10);
    driver.deadline_s = 180 + (int)(driver.count / 10);
    driver.watches = 1U + driver.statuses + driver.settle;
    driver.targets = calloc(driver.count, sizeof *driver.targets);
    if (!driver.targets || !driver.count)
        bench_fail("nothing to change");
    driver.api = bench_api_new();
    driver.material = bench_material_new();
    begin_to_watch();
    if (is_latency)
        latency(strtoul(argv[4], NULL, 10), strtol(argv[5], NULL, 10));
    else if (is_rest)
        rest();
    else if (is_change)
        change_only();
    else if (driver.settle)
        settle();
    else
        burst();
    fflush(stdout);
    _Exit(0); /* the thread of the watches goes with it */
}
