/* Delivers one material to its program: a thread that does the steps that delivery.h decides, and sleeps until its
 * files change. */
#ifndef CR_SIDECAR_DELIVERY_WORKER_H
#define CR_SIDECAR_DELIVERY_WORKER_H

#include "base/cleanup.h"
#include "sidecar/config.h"
#include "sidecar/delivery.h"
#include "sidecar/sidecar_metrics.h"

struct cr_delivery_worker;

/* Borrowed; they outlive the worker. */
struct cr_delivery_worker_options {
    const struct cr_sidecar_material *material;
    const struct cr_sidecar_metrics *metrics;
    const char *state_folder; /* where it keeps its record (record.h); NULL: no record */
};

/* Starts the thread. Errors: Transient (no descriptor, no thread). Owned. */
struct cr_delivery_worker *cr_delivery_worker_start(const struct cr_delivery_worker_options *options,
                                                    struct cr_error *err) CR_MUST_USE;
/* Asks it to end; a trigger that runs is cancelled. Does not wait. Any thread. */
void cr_delivery_worker_stop(struct cr_delivery_worker *worker);
/* Stops it and waits until it has ended: at most for one look at the program. */
void cr_delivery_worker_free(struct cr_delivery_worker *worker);
CR_DEFINE_CLEANUP(cr_delivery_worker, struct cr_delivery_worker, cr_delivery_worker_free)

/* Copies its state. Any thread; does not wait for a step that runs. */
void cr_delivery_worker_view(struct cr_delivery_worker *worker, struct cr_delivery *out);

/* Reads the material and writes its outputs once, on the calling thread: for files that the program needs at its start.
 * Errors: those of cr_reading_take and cr_outputs_write. */
bool cr_delivery_worker_once(const struct cr_sidecar_material *material, struct cr_error *err) CR_MUST_USE;

#endif
