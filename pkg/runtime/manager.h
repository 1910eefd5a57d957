/* The manager: one loop thread, a few workers, one queue per controller, health and metrics. It knows only keys and
 * functions, nothing of rotation. */
#ifndef CR_RUNTIME_MANAGER_H
#define CR_RUNTIME_MANAGER_H

#include "base/cleanup.h"
#include "base/error.h"
#include "kube/client.h"
#include "metrics/metrics.h"
#include "runtime/informer.h"
#include "runtime/leader_election.h"
#include "runtime/queue.h"
#include "runtime/start_check.h"

struct cr_manager;
struct cr_tlsreload;

struct cr_manager_options {
    int workers;                           /* of the first controller; 0: 4 */
    const char *name;                      /* of the first controller, in workqueue_*; static. NULL: "manager" */
    const char *metrics_address;           /* "host:port"; NULL or "0": none. Serves /metrics, /healthz, /readyz */
    const char *health_address;            /* of /healthz and /readyz; NULL or "": with the metrics; "0": none */
    struct cr_access_guard *metrics_guard; /* of /metrics alone; borrowed, outlives the manager; NULL: none */
    struct cr_tlsreload *metrics_tls;      /* of all pages at metrics_address; likewise; NULL: plain HTTP */
    int64_t grace_ms;                      /* for work under way at shutdown; 0: 10 s */
    /* Workers start when it leads, informers before: a standby is warm. Started by run, which gives the Lease up when
     * all has ended. Borrowed, outlives the manager; NULL: this process is the only one. */
    struct cr_leader_election *election;
    /* Neither leads nor works before it has passed; /readyz says why not. Started and stopped by run. Borrowed,
     * outlives the manager; NULL: none. */
    struct cr_start_check *start_check;
};

/* Takes nothing; client, loop and metrics outlive it; metrics are not written any more once it is freed. Registers
 * certroll_reconciles_total{result}, certroll_reconcile_duration_seconds, certroll_informer_objects{resource},
 * certroll_informer_healthy{resource}, workqueue_*, and with an election certroll_leader_caught_up{name}. */
struct cr_manager *cr_manager_new(struct cr_loop *loop, struct cr_client *client, struct cr_metrics *metrics,
                                  const struct cr_manager_options *options);
void cr_manager_free(struct cr_manager *manager);
CR_DEFINE_CLEANUP(cr_manager, struct cr_manager, cr_manager_free)

/* Takes the informer; started by run. Workers start when all informers are synced (cr_informer_answered); /readyz says
 * which are not. Before run, or in the loop's thread: then its start is the caller's. */
void cr_manager_add_informer(struct cr_manager *manager, struct cr_informer *informer);
/* Ends and frees one that was added, when no thread reads its store any more. Loop thread. */
void cr_manager_remove_informer(struct cr_manager *manager, struct cr_informer *informer);

struct cr_reconcile_result {
    int64_t requeue_after_ms; /* 0: not before something changes */
    bool low_priority;        /* that may come after other work (cr_queue_add_low) */
    bool recorded;            /* the status that the API server has is of now, whether all was done or not */
};
/* Plain blocking code in a worker. The whole requeue policy is here: false → backoff by the error's kind (Throttled: at
 * least retry_after_ms; Cancelled: dropped), true → forget, and again after requeue_after_ms. */
typedef bool (*cr_reconcile_fn)(void *arg, const char *key, struct cr_reconcile_result *result, struct cr_error *err);
/* Sets the function of the first controller, which the manager always has; without one it has no workers. */
void cr_manager_set_reconciler(struct cr_manager *manager, cr_reconcile_fn reconcile, void *arg);
struct cr_queue *cr_manager_queue(struct cr_manager *manager);

struct cr_controller_options {
    const char *name; /* in workqueue_*; static, none twice */
    int workers;      /* 0: 4 */
    cr_reconcile_fn reconcile;
    void *arg;
};
/* Another controller, with a queue and workers of its own: a storm of the keys of one holds up no key of the other.
 * They start and end together. Before run. The queue is borrowed, and lives as long as the manager. */
struct cr_queue *cr_manager_add_controller(struct cr_manager *manager, const struct cr_controller_options *options);

/* Runs loop and workers until SIGTERM, SIGINT or cr_manager_stop; a reconcile under way is finished (its requests have
 * 10 s), then all is taken down in order. A second signal ends the process at once. False when it could not start
 * (address in use, …), or when it ended because another leads (cr_leader_election_lost): then work under way is
 * cancelled, not finished. */
bool cr_manager_run(struct cr_manager *manager, struct cr_error *err) CR_MUST_USE;
/* Any thread, until run returns. */
void cr_manager_stop(struct cr_manager *manager);
/* The ports of the metrics and the health address once run has begun to listen (for ":0"), 0: none of its own. Loop
 * thread, for tests and logs. */
int cr_manager_port(const struct cr_manager *manager);
int cr_manager_health_port(const struct cr_manager *manager);

#endif
