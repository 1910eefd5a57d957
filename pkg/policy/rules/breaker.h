/* The circuit breaker of restarts: a Secret that flaps must not restart a workload again and again. What a trust domain
 * publishes in one rotation is no flapping: up to CR_RESTARTS_OF_ROTATION_MAX restarts for it count as one. Further
 * ones count again. Pure. Times are wall clock, in milliseconds; times of restarts are by the clock of the replica that
 * did them. */
#ifndef CR_POLICY_RULES_BREAKER_H
#define CR_POLICY_RULES_BREAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/policy.h"
#include "api/status.h"

/* When a workload with these restarts may be restarted again, 0: at once. It is not while as many as rule.restarts lie
 * within rule.within_ms; so the time is that of the first of these and rule.within_ms. A restart of the future (a clock
 * was set back, or another replica's is ahead) counts as well, unless it is further off than rule.within_ms: then its
 * time says nothing. */
int64_t cr_breaker_ends_ms(struct cr_breaker rule, const struct cr_restart_times *restarts, int64_t now_ms);

/* A restart for this rotation counts together with one for it that is in the list: it makes the list no longer. */
bool cr_breaker_continues(const struct cr_restart_times *restarts, const struct cr_restart_step *step);

/* A trust domain records what it has published within moments. For so long after a restart it may still become known
 * which rotation the restart was for. */
enum { CR_BREAKER_ROTATION_DELAY_MS = 30 * 1000 };
bool cr_breaker_awaits_rotation(const struct cr_restart_times *restarts, int64_t now_ms);

/* Puts the last restart of a workload first, unless it is there already or is older than the last one known (an older
 * pod template was put back; but one that is known and later than now was by another clock, and any other follows it).
 * step: the rotation that it was for, once; it takes the place of an earlier restart for that rotation. For a restart
 * that is there already, its rotation may have become known since. The oldest beyond rule.restarts go, and only these:
 * one that does not count now stays in the list. With a rule.within_ms of 0 the list stays as it is. last_ms 0: there
 * is none. True: the list is another one. */
bool cr_breaker_note(struct cr_breaker rule, int64_t last_ms, const struct cr_restart_step *step, int64_t now_ms,
                     struct cr_restart_times *restarts);

#endif
