/* A drain from its start to its end, in the calling thread: begins with retries, looks, waits, reports. */
#ifndef CR_DRAIN_DRAIN_H
#define CR_DRAIN_DRAIN_H

#include "drain/rules.h"
#include "drain/strategy.h"

enum cr_drain_phase {
    CR_DRAIN_DELAYED, /* --drain-delay */
    CR_DRAIN_BEGINNING,
    CR_DRAIN_DRAINING,
    CR_DRAIN_ENDED,
};

enum cr_drain_result {
    CR_DRAIN_RESULT_NONE, /* under way */
    CR_DRAIN_RESULT_DRAINED,
    CR_DRAIN_RESULT_TIMED_OUT, /* connections were open, or their number is not known */
    CR_DRAIN_RESULT_CANCELLED,
};

struct cr_drain_progress {
    enum cr_drain_phase phase;
    enum cr_drain_result result;
    int64_t elapsed_ms;
    bool known;
    uint64_t open;
    uint64_t errors;            /* attempts that failed, so far */
    struct cr_error last_error; /* of the last attempt that failed; kind CR_ERR_NONE: none */
};

struct cr_drain_options {
    const struct cr_drain_strategy *strategy;
    struct cr_drain_target target; /* prepared */
    struct cr_drain_rules rules;
    int64_t attempt_ms; /* of one attempt at most */
    int cancel_fd;      /* readable: give up; -1: none */
    /* Called after each step, in the thread of cr_drain_run. NULL: not called. */
    void (*on_progress)(void *arg, const struct cr_drain_progress *progress);
    void *arg;
};

/* Blocks until drained, timed out or cancelled: at most rules.timeout_ms, also when the proxy hangs, since an attempt
 * has attempt_ms or what is left, whichever is less, and a strategy keeps to it. A begin that fails is tried again
 * after 200 ms, then twice as long each time, 2 s at most; a count that fails, after the interval, and meanwhile the
 * number is unknown. Logs (drain/drain_log.h) each change of phase, the number when it changes and each new error.
 * last: how it ended; NULL: not wanted. One drain at a time for a target; any thread. */
enum cr_drain_result cr_drain_run(const struct cr_drain_options *options, struct cr_drain_progress *last);
/* "Drained", "TimedOut", "Cancelled", "". */
const char *cr_drain_result_word(enum cr_drain_result result);
const char *cr_drain_phase_word(enum cr_drain_phase phase);

#endif
