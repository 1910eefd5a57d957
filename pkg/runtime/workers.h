/* The threads that take keys and reconcile. Private to pkg/runtime. */
#ifndef CR_RUNTIME_WORKERS_H
#define CR_RUNTIME_WORKERS_H

#include "base/cleanup.h"
#include "metrics/metrics.h"
#include "runtime/manager.h"
#include "runtime/queue.h"
#include "sys/loop.h"

struct cr_workers_options {
    int count;
    struct cr_queue *queue;
    cr_reconcile_fn reconcile;
    void *arg;
    struct cr_metric *total; /* {result} */
    struct cr_metric *seconds;
    /* In the loop's thread, once the last one has ended (the queue was shut down). */
    void (*on_ended)(void *arg);
    void *on_ended_arg;
};

struct cr_workers;
/* Loop thread, like all here. */
struct cr_workers *cr_workers_start(struct cr_loop *loop, const struct cr_workers_options *options);
/* Waits for the threads; after on_ended they are gone already. */
void cr_workers_free(struct cr_workers *workers);
CR_DEFINE_CLEANUP(cr_workers, struct cr_workers, cr_workers_free)

#endif
