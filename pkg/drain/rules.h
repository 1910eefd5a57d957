/* When a drain begins, looks, and is over. Pure; times in milliseconds of the monotonic clock. */
#ifndef CR_DRAIN_RULES_H
#define CR_DRAIN_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { CR_DRAIN_INTERVAL_LEAST_MS = 50 /* watching it must not keep a proxy busy */ };

struct cr_drain_rules {
    int64_t delay_ms;        /* from the start to the beginning: the proxy goes on as ever meanwhile */
    int64_t min_duration_ms; /* from the beginning on, however few are connected: load balancers still send some */
    int64_t timeout_ms;      /* of the whole, from the start: then it is over, with whatever is open */
    int64_t interval_ms;     /* from the end of a look to the next; never less than CR_DRAIN_INTERVAL_LEAST_MS */
    uint64_t min_open;       /* so few connections count as none */
};

/* What has happened so far. */
struct cr_drain_state {
    int64_t started_ms;
    int64_t begun_ms;      /* the proxy took the order; -1: not yet */
    int64_t next_begin_ms; /* not before, after a failure */
    int64_t asked_ms;      /* when the last look began; -1: none since the beginning */
    int64_t looked_ms;     /* when it ended, good or not; -1: as above */
    bool known;            /* the last look gave a number; a failed one takes that back */
    uint64_t open;
    bool ended; /* the proxy itself has ended: known, and nothing is left to drain */
};

enum cr_drain_step {
    CR_DRAIN_WAIT, /* until *until_ms */
    CR_DRAIN_BEGIN,
    CR_DRAIN_LOOK,
    CR_DRAIN_DRAINED,
    CR_DRAIN_TIMED_OUT,
};

/* An unknown number is never "drained"; neither is one that was asked for before min_duration_ms was over: the answer
 * may be as old as the question. At the time-out the last number, if it is known, decides between DRAINED (enough had
 * gone, and it had begun) and TIMED_OUT; but not where the next look was due before: then this process stood still (it
 * was stopped, its machine slept), and the number is as old as that. *until_ms is set for WAIT alone, and lies after
 * now_ms. */
enum cr_drain_step cr_drain_next(const struct cr_drain_rules *rules, const struct cr_drain_state *state, int64_t now_ms,
                                 int64_t *until_ms) CR_MUST_USE;
/* How long after the end of the last of so many failures to begin it is tried again: 200 ms, twice as long each time,
 * 2 s at most. failures: 1 or more. */
int64_t cr_drain_begin_pause(uint64_t failures);
/* Whether these can hold in a pod with that terminationGracePeriodSeconds: the time-out must stay below it, or the
 * kubelet ends the container in the midst of the drain; delay and least duration must fit in the time-out. The error
 * says what to set to what. */
bool cr_drain_rules_check(const struct cr_drain_rules *rules, int64_t grace_ms, struct cr_error *err) CR_MUST_USE;

#endif
