/* What must hold before a process writes anything, asked again until it does: in a thread of its own, before the Lease
 * is asked for, so that one that may not act does not lead either. */
#ifndef CR_RUNTIME_START_CHECK_H
#define CR_RUNTIME_START_CHECK_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/error.h"

struct cr_start_check;

/* All in the check's thread, but for cancel. */
struct cr_start_check_options {
    /* Blocks for a few requests. False: it does not hold, or that is not known, and why. */
    bool (*holds)(void *arg, struct cr_error *err);
    /* Once for each reason that differs from the one before; may be NULL. */
    void (*on_refused)(void *arg, const struct cr_error *why);
    /* Ends what holds is waiting for; may be NULL. In the thread that stops the check. */
    void (*cancel)(void *arg);
    void *arg;
    int first_ms; /* the first pause between two tries; it doubles up to max_ms */
    int max_ms;
};

struct cr_start_check *cr_start_check_new(const struct cr_start_check_options *options);
/* Stops it first. */
void cr_start_check_free(struct cr_start_check *check);
CR_DEFINE_CLEANUP(cr_start_check, struct cr_start_check, cr_start_check_free)

/* Once. on_passed: at most once, in the check's thread. */
void cr_start_check_start(struct cr_start_check *check, void (*on_passed)(void *arg), void *arg);
/* Ends its thread; may be called again. */
void cr_start_check_stop(struct cr_start_check *check);

/* Any thread. False: not yet, and why. */
bool cr_start_check_passed(struct cr_start_check *check, struct cr_error *err) CR_MUST_USE;

#endif
