/* What every controller of the manager has: a queue with its workers, Events that are sent behind all other work,
 * chores beside the keys of objects, and the wait for its own writes (runtime/own_writes.h). */
#ifndef CR_RUNTIME_HARNESS_H
#define CR_RUNTIME_HARNESS_H

#include "base/cleanup.h"
#include "kube/client.h"
#include "kube/event.h"
#include "metrics/metrics.h"
#include "runtime/manager.h"
#include "runtime/own_writes.h"

/* Work for a worker that is no object's. */
struct cr_chore {
    const char *key; /* in the queue: "//sweep", since no name has a slash; a cluster-scoped object's is "/name" */
    void (*run)(void *arg);
};

struct cr_harness_options {
    struct cr_manager *manager;
    struct cr_client *client;
    struct cr_metrics *metrics;
    const char *name;              /* in workqueue_*; static. NULL: the manager's first controller */
    int workers;                   /* 0: 4; of the first controller, the manager's */
    const char *what;              /* a key is, for the log: "policy"; static */
    const struct cr_chore *chores; /* static; the last has no key. NULL: none */
    cr_reconcile_fn reconcile;
    cr_own_writes_look_fn look; /* what the cache has of an object that was written */
    void *arg;                  /* of chores, reconcile and look */
};

/* Adds the controller to the manager, before that runs. Everything given outlives the harness. */
struct cr_harness *cr_harness_new(const struct cr_harness_options *options);
/* After the manager. */
void cr_harness_free(struct cr_harness *harness);
CR_DEFINE_CLEANUP(cr_harness, struct cr_harness, cr_harness_free)

/* Borrowed. */
struct cr_queue *cr_harness_queue(const struct cr_harness *harness);
struct cr_recorder *cr_harness_recorder(const struct cr_harness *harness);
struct cr_own_writes *cr_harness_own_writes(const struct cr_harness *harness);

/* True: the cache shows the state before the key's own last write; the event of that write brings the key again. Counts
 * in certroll_stale_cache_total{result}. */
bool cr_harness_cache_lags(struct cr_harness *harness, const char *key);

/* The key comes again after this time, or sooner if that was said before; 0: nothing is said. */
void cr_requeue(struct cr_reconcile_result *result, int64_t after_ms);
/* The same for what may come after other work: a status, a probe. */
void cr_requeue_low(struct cr_reconcile_result *result, int64_t after_ms);

#endif
