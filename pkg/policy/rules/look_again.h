/* When to look again at what an event ends. An event of the API server, or of this process, wakes who waits; the look
 * is only a precaution against an event that is missed, so it comes less and less often. What only time ends is waited
 * for exactly, and never by this. Pure. */
#ifndef CR_POLICY_RULES_LOOK_AGAIN_H
#define CR_POLICY_RULES_LOOK_AGAIN_H

#include <stdint.h>

/* 500 policies that wait cost less than 0.1 % of a core (docs/benchmarks). Minutes below CR_RESERVATIONS_KEPT_MS, after
 * which a restart that no plan looks at loses its place. */
enum { CR_LOOK_AGAIN_MOST_MS = 10 * 60 * 1000 };

/* How long to wait for the next look, in milliseconds. first_ms: the first pause. waited_ms: how long nothing has moved
 * so far; less than 0 when a clock was set back. Each pause is as long as the time before it: the time doubles from
 * look to look, until the pause is CR_LOOK_AGAIN_MOST_MS. */
int64_t cr_look_again_ms(int64_t first_ms, int64_t waited_ms);

#endif
