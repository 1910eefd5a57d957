/* HAProxy's "show info" and "show stat" of its frontends (management.txt, "9.1. CSV format"). Pure. */
#ifndef CR_DRAIN_HAPROXY_STATS_H
#define CR_DRAIN_HAPROXY_STATS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strvec.h"

struct cr_haproxy_stats {
    pid_t pid;                  /* of the worker, in its own namespace */
    struct cr_strvec frontends; /* those that count */
    struct cr_strvec running;   /* of them those that are not shut down */
    uint64_t open;              /* connections of clients to them, idle ones, too */
};

void cr_haproxy_stats_dispose(struct cr_haproxy_stats *stats);
CR_DEFINE_DISPOSE(cr_haproxy_stats, struct cr_haproxy_stats, cr_haproxy_stats_dispose)

/* Whether a frontend's connections count: not, when ignored has it, or when it has one of the names that frontends for
 * statistics and for health checks usually have (HAProxy does not say what a frontend is for). */
bool cr_haproxy_stats_counts(const char *frontend, const struct cr_strvec *ignored);
/* text: the answers to "show info" and "show stat -1 1 -1", each of which ends with an empty line. out: empty; to be
 * disposed of in any case. Errors: Invalid: the line that is not understood. A part of an answer is never taken for the
 * whole. */
bool cr_haproxy_stats_read(const char *text, const struct cr_strvec *ignored, struct cr_haproxy_stats *out,
                           struct cr_error *err) CR_MUST_USE;

#endif
