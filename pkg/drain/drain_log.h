/* What a drain says of itself in the log: few lines, however long it takes and however often something fails. The
 * caller gives the time (monotonic milliseconds). For one thread. */
#ifndef CR_DRAIN_DRAIN_LOG_H
#define CR_DRAIN_DRAIN_LOG_H

#include "drain/drain.h"

enum {
    CR_DRAIN_SAY_CHANGE_MS = 1000, /* a number that changes is said as often, at most */
    CR_DRAIN_SAY_AGAIN_MS = 10000, /* and one that stays, so that a long wait is seen; an error that comes again */
    CR_DRAIN_COMPLAINTS = 4,       /* different errors that are known by their words */
};

/* An error that was said. */
struct cr_drain_complaint {
    char text[sizeof((struct cr_error *)0)->text];
    int64_t said_ms;
    uint64_t times; /* since it was said */
};

struct cr_drain_log {
    int64_t started_ms;
    bool open_said;
    int64_t open_said_ms; /* also of a line with a number that is unknown by now */
    uint64_t open;        /* that was said */
    struct cr_drain_complaint complaints[CR_DRAIN_COMPLAINTS];
};

void cr_drain_log_start(struct cr_drain_log *log, const struct cr_drain_options *options, int64_t now_ms);
/* The proxy took the order. */
void cr_drain_log_begun(const struct cr_drain_log *log, const struct cr_drain_strategy *strategy, int64_t now_ms);
/* After a look that gave a number. */
void cr_drain_log_open(struct cr_drain_log *log, uint64_t open, int64_t now_ms);
/* what: that failed, a text for a person. */
void cr_drain_log_error(struct cr_drain_log *log, const char *what, const struct cr_error *error, int64_t now_ms);
void cr_drain_log_end(const struct cr_drain_progress *progress);

#endif
