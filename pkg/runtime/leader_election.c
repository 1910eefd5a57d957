#include "runtime/leader_election.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/thread.h"
#include "kube/backoff.h"
#include "kube/event.h"
#include "kube/lease.h"
#include "runtime/election_request.h"

enum {
    ORDERLY_MS = 1000,  /* in which a process that must not act any more can end by itself */
    STUCK_LEASES = 4,   /* times of a lease; a round with all its time-outs and pauses takes less */
    MAX_IDENTITY = 320, /* host name, '_', UUID */
};

struct cr_leader_election {
    char *ns;
    char *name;
    int exit_status;
    char identity[MAX_IDENTITY];
    struct cr_leader_election_handler handler;
    struct cr_metric *leader;
    struct cr_client *client; /* our own, without a loop */
    struct cr_recorder *recorder;
    pthread_t thread;
    struct cr_election rules; /* election's thread */

    atomic_llong acts_until_ms; /* cr_clock_boot_ms; 0: does not lead */
    atomic_bool lost;

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    bool started;
    bool stop;
    int64_t round_ms;     /* the last round ended */
    int64_t contact_ms;   /* the last round that ended well */
    struct cr_error last; /* of the last round; kind None: it ended well */
    char *logged;         /* the problem that was logged last */
};

/* --- set-up --- */

/* RFC 9562, version 4. */
static void make_identity(char out[MAX_IDENTITY])
{
    char host[256] = "unknown";
    if (gethostname(host, sizeof host - 1) != 0)
        snprintf(host, sizeof host, "unknown");
    uint8_t b[16];
    if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b) {
        cr_log(CR_LOG_ERROR, "the kernel has no random numbers");
        abort();
    }
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    snprintf(out, MAX_IDENTITY, "%s_%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", host, b[0],
             b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

static int64_t write_gate(void *arg)
{
    return cr_leader_election_left_ms(arg);
}

struct cr_leader_election *cr_leader_election_new(struct cr_client *client, struct cr_metrics *metrics,
                                                  const struct cr_leader_election_options *options,
                                                  struct cr_error *err)
{
    struct cr_election_times times = options->times;
    if (!times.lease_ms && !times.renew_ms && !times.retry_ms)
        times = cr_election_default_times;
    if (!cr_election_check_times(&times, err)) {
        cr_error_wrap(err, "leader election");
        return NULL;
    }
    struct cr_leader_election *election = cr_new(struct cr_leader_election);
    election->ns = cr_strdup(options->ns);
    election->name = cr_strdup(options->name);
    election->exit_status = options->exit_status;
    make_identity(election->identity);
    election->rules = (struct cr_election){.times = times, .identity = election->identity};
    election->leader = cr_metrics_gauge(metrics, "leader_election_master_status",
                                        "Whether this process holds the Lease of that name: of all replicas, one does.",
                                        CR_LABELS("name"));
    cr_metric_set(election->leader, CR_LABELS(election->name), 0);
    election->client = cr_client_new_dedicated(client, (int)cr_election_request_ms(&times));
    election->recorder = cr_recorder_new(election->client, "certroll");
    cr_cond_init(&election->changed);
    pthread_mutex_init(&election->lock, NULL);
    cr_client_set_write_gate(client, write_gate, election);
    return election;
}

void cr_leader_election_free(struct cr_leader_election *election)
{
    if (!election)
        return;
    cr_leader_election_stop(election);
    cr_recorder_free(election->recorder);
    cr_client_free(election->client);
    cr_election_dispose(&election->rules);
    pthread_cond_destroy(&election->changed);
    pthread_mutex_destroy(&election->lock);
    free(election->logged);
    free(election->name);
    free(election->ns);
    free(election);
}

/* --- what others ask --- */

const char *cr_leader_election_name(const struct cr_leader_election *election)
{
    return election->name;
}

const char *cr_leader_election_identity(const struct cr_leader_election *election)
{
    return election->identity;
}

bool cr_leader_election_lost(const struct cr_leader_election *election)
{
    return atomic_load(&election->lost);
}

int64_t cr_leader_election_left_ms(const struct cr_leader_election *election)
{
    int64_t left_ms = atomic_load(&election->acts_until_ms) - cr_clock_boot_ms();
    return left_ms > 0 ? left_ms : 0;
}

bool cr_leader_election_alive(struct cr_leader_election *election, struct cr_error *err)
{
    pthread_mutex_lock(&election->lock);
    int64_t silent_ms = election->started ? cr_clock_boot_ms() - election->round_ms : 0;
    pthread_mutex_unlock(&election->lock);
    return silent_ms <= STUCK_LEASES * election->rules.times.lease_ms ||
           cr_error_set(err, CR_ERR_INTERNAL, "leader election is stuck: nothing was tried for %d s",
                        (int)(silent_ms / 1000));
}

bool cr_leader_election_ready(struct cr_leader_election *election, struct cr_error *err)
{
    pthread_mutex_lock(&election->lock);
    int64_t silent_ms = cr_clock_boot_ms() - election->contact_ms;
    enum cr_error_kind kind = election->last.kind;
    bool person = kind == CR_ERR_FORBIDDEN || !cr_error_is_retryable(&election->last);
    bool ready = kind == CR_ERR_NONE || (!person && silent_ms < election->rules.times.lease_ms);
    if (!ready)
        cr_error_set(err, kind, "leader election: %s", election->last.text);
    pthread_mutex_unlock(&election->lock);
    return ready;
}

/* --- one round --- */

static void note_round(struct cr_leader_election *election, const struct cr_error *problem)
{
    pthread_mutex_lock(&election->lock);
    election->round_ms = cr_clock_boot_ms();
    if (problem->kind == CR_ERR_NONE)
        election->contact_ms = election->round_ms;
    election->last = *problem;
    pthread_mutex_unlock(&election->lock);
}

/* Once per problem, not at each try. */
static void log_problem(struct cr_leader_election *election, const struct cr_error *problem)
{
    const char *text = problem->kind == CR_ERR_NONE ? NULL : problem->text;
    if (cr_streq(text, election->logged))
        return;
    cr_strset(&election->logged, text);
    if (!text)
        cr_log(CR_LOG_INFO, "the Lease is within reach again", {"namespace", election->ns}, {"lease", election->name});
    else
        cr_log(CR_LOG_WARN,
               problem->kind == CR_ERR_FORBIDDEN
                   ? "the Lease is refused to us: grant get and patch of it, and create of leases.coordination.k8s.io"
                   : "the Lease is out of reach",
               {"namespace", election->ns}, {"lease", election->name}, {"error", text});
}

static enum cr_election_step request(struct cr_leader_election *election, enum cr_election_step step,
                                     struct cr_error *problem)
{
    const struct cr_lease_place place = {election->client, election->ns, election->name};
    cr_error_clear(problem);
    step = cr_election_request(&election->rules, step, &place, problem);
    if (problem->kind == CR_ERR_CONFLICT) /* another candidate was faster: part of the game */
        cr_error_clear(problem);
    return step;
}

/* --- changes of role --- */

static void emit(struct cr_leader_election *election, const char *what)
{
    cr_autofree char *message = cr_asprintf("%s %s", election->identity, what);
    const struct cr_event event = {
        .api_version = "coordination.k8s.io/v1",
        .kind = "Lease",
        .ns = election->ns,
        .name = election->name,
        .uid = election->rules.seen.uid,
        .reason = "LeaderElection",
        .message = message,
    };
    cr_recorder_emit(election->recorder, &event);
}

static void begin_to_lead(struct cr_leader_election *election)
{
    cr_metric_set(election->leader, CR_LABELS(election->name), 1);
    cr_log(CR_LOG_INFO, "became leader", {"namespace", election->ns}, {"lease", election->name},
           {"identity", election->identity});
    if (election->handler.on_started_leading)
        election->handler.on_started_leading(election->handler.arg);
    emit(election, "became leader"); /* as client-go says it */
}

/* Owned. */
static char *why_lost(const struct cr_leader_election *election, const struct cr_error *problem)
{
    const char *holder = election->rules.seen.holder;
    if (!cr_streq(holder, election->identity))
        return cr_asprintf("the Lease %s/%s is held by %s now", election->ns, election->name,
                           holder && *holder ? holder : "nobody");
    char deadline[CR_TIME_TEXT];
    cr_duration_format(election->rules.times.renew_ms, deadline);
    return cr_asprintf("the Lease %s/%s could not be renewed for %s: %s", election->ns, election->name, deadline,
                       problem->kind == CR_ERR_NONE ? "this process was stopped for a while" : problem->text);
}

/* Returns true when it was asked to stop. */
static bool pause_for(struct cr_leader_election *election, int64_t ms)
{
    int64_t until_ms = cr_clock_monotonic_ms() + (ms > 0 ? ms : 0);
    pthread_mutex_lock(&election->lock);
    while (!election->stop && cr_cond_wait_until(&election->changed, &election->lock, until_ms))
        ;
    bool stop = election->stop;
    pthread_mutex_unlock(&election->lock);
    return stop;
}

/* Until others may lead; longer for a process that wakes up when they do. */
static int64_t time_to_end_ms(const struct cr_leader_election *election)
{
    const struct cr_election *rules = &election->rules;
    int64_t longest_ms = rules->times.lease_ms - rules->times.renew_ms;
    int64_t left_ms = rules->renewed_ms + rules->times.lease_ms - cr_clock_boot_ms();
    left_ms = left_ms > ORDERLY_MS ? left_ms : ORDERLY_MS;
    return left_ms < longest_ms ? left_ms : longest_ms;
}

/* No Event: a process that does not lead writes nothing more. */
static void end_leading(struct cr_leader_election *election, const struct cr_error *problem)
{
    atomic_store(&election->acts_until_ms, 0);
    atomic_store(&election->lost, true);
    cr_metric_set(election->leader, CR_LABELS(election->name), 0);
    cr_autofree char *why = why_lost(election, problem);
    cr_log(CR_LOG_ERROR, "stopped leading: nothing more is done here", {"identity", election->identity},
           {"error", why});
    if (election->handler.on_lost)
        election->handler.on_lost(election->handler.arg, why);
    if (pause_for(election, time_to_end_ms(election)) || !election->exit_status)
        return;
    cr_log(CR_LOG_ERROR, "this process should have ended by now, it is ended");
    _exit(election->exit_status);
}

static void release(struct cr_leader_election *election)
{
    emit(election, "stopped leading");
    atomic_store(&election->acts_until_ms, 0);
    cr_metric_set(election->leader, CR_LABELS(election->name), 0);
    const struct cr_lease_place place = {election->client, election->ns, election->name};
    const struct cr_lease_claim claim = cr_election_release(&election->rules);
    CR_CLEANUP(cr_lease) struct cr_lease lease = {0};
    struct cr_error err = {0};
    if (cr_lease_update(&place, election->rules.seen.resource_version, &claim, &lease, &err))
        cr_log(CR_LOG_INFO, "the Lease is given up", {"namespace", election->ns}, {"lease", election->name});
    else
        cr_log(CR_LOG_WARN, "the Lease could not be given up: another takes it when it has expired",
               {"namespace", election->ns}, {"lease", election->name}, {"error", err.text});
}

/* --- the thread --- */

/* False: lost. */
static bool play_round(struct cr_leader_election *election, struct cr_error *problem)
{
    struct cr_election *rules = &election->rules;
    bool led = rules->role == CR_ELECTION_LEADER;
    enum cr_election_step step = cr_election_begin(rules, cr_clock_boot_ms());
    while (step != CR_ELECTION_WAIT && step != CR_ELECTION_LOST)
        step = request(election, step, problem);
    if (step == CR_ELECTION_LOST)
        return false;
    atomic_store(&election->acts_until_ms, cr_election_acts_until_ms(rules));
    note_round(election, problem);
    log_problem(election, problem);
    if (!led && rules->role == CR_ELECTION_LEADER)
        begin_to_lead(election);
    return true;
}

static double random_part(void)
{
    return (double)cr_random_between(0, 999) / 1000;
}

static void *run(void *arg)
{
    struct cr_leader_election *election = arg;
    struct cr_election *rules = &election->rules;
    struct cr_error problem = {0};
    for (;;) {
        if (!play_round(election, &problem)) {
            end_leading(election, &problem);
            return NULL;
        }
        if (pause_for(election, cr_election_pause_ms(rules, cr_clock_boot_ms(), random_part())))
            break;
    }
    if (rules->role == CR_ELECTION_LEADER)
        release(election);
    return NULL;
}

static void start_thread(struct cr_leader_election *election)
{
    if (cr_thread_start(&election->thread, run, election) == 0)
        return;
    cr_log(CR_LOG_ERROR, "no thread can be started for leader election");
    abort();
}

void cr_leader_election_start(struct cr_leader_election *election, const struct cr_leader_election_handler *handler)
{
    election->handler = *handler;
    pthread_mutex_lock(&election->lock);
    election->round_ms = election->contact_ms = cr_clock_boot_ms();
    election->started = true;
    pthread_mutex_unlock(&election->lock);
    cr_log(CR_LOG_INFO, "leader election: standing by", {"namespace", election->ns}, {"lease", election->name},
           {"identity", election->identity});
    start_thread(election);
}

void cr_leader_election_stop(struct cr_leader_election *election)
{
    pthread_mutex_lock(&election->lock);
    bool runs = election->started;
    election->started = false;
    election->stop = true;
    pthread_cond_broadcast(&election->changed);
    pthread_mutex_unlock(&election->lock);
    if (!runs)
        return;
    pthread_join(election->thread, NULL);
}
