/* Brings one material to its program: a thread that does what delivery.h says, and otherwise sleeps until its files
 * change. */
#ifndef CR_RELOADER_COURIER_H
#define CR_RELOADER_COURIER_H

#include "base/cleanup.h"
#include "reloader/config.h"
#include "reloader/delivery.h"
#include "reloader/reloader_metrics.h"

struct cr_courier;

/* Borrowed, and outlive the courier. */
struct cr_courier_options {
    const struct cr_reloader_material *material;
    const struct cr_reloader_metrics *metrics;
    const char *state_folder; /* where it keeps its record (record.h); NULL: it has none */
};

/* Errors: Transient, no descriptor or thread was to be had. Owned; it runs from here on. */
struct cr_courier *cr_courier_start(const struct cr_courier_options *options, struct cr_error *err) CR_MUST_USE;
/* Tells it to end; a trigger under way is given up. Any thread. */
void cr_courier_stop(struct cr_courier *courier);
/* Stops it, and waits until it has ended: at most for a look at the program. */
void cr_courier_free(struct cr_courier *courier);
CR_DEFINE_CLEANUP(cr_courier, struct cr_courier, cr_courier_free)

/* How it stands. Any thread; never waits for a step under way. */
void cr_courier_view(struct cr_courier *courier, struct cr_delivery *out);

/* Reads the material and makes its outputs, once, in this thread: for what must be there before the program starts.
 * Errors: those of cr_reading_take and cr_outputs_write. */
bool cr_courier_once(const struct cr_reloader_material *material, struct cr_error *err) CR_MUST_USE;

#endif
