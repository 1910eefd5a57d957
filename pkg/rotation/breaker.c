#include "rotation/breaker.h"

#include <string.h>

static bool counts(struct cr_breaker rule, int64_t restart_ms, int64_t now_ms)
{
    return restart_ms > now_ms - rule.within_ms && restart_ms <= now_ms + rule.within_ms;
}

/* The one of those that count, from the newest on; 0: there are not as many. The list is in the order in which they
 * were done, which is that of their times as long as nobody's clock was set back. */
static int64_t nth_newest(struct cr_breaker rule, const struct cr_restart_times *restarts, int64_t now_ms)
{
    int seen = 0;
    for (size_t i = 0; i < restarts->len; i++)
        if (counts(rule, restarts->at_ms[i], now_ms) && ++seen == rule.restarts)
            return restarts->at_ms[i];
    return 0;
}

int64_t cr_breaker_ends_ms(struct cr_breaker rule, const struct cr_restart_times *restarts, int64_t now_ms)
{
    int64_t first_ms = rule.within_ms ? nth_newest(rule, restarts, now_ms) : 0;
    return first_ms ? first_ms + rule.within_ms : 0;
}

bool cr_breaker_note(struct cr_breaker rule, int64_t last_ms, int64_t now_ms, struct cr_restart_times *restarts)
{
    size_t most = rule.restarts < CR_RESTART_TIMES_MAX ? (size_t)rule.restarts : CR_RESTART_TIMES_MAX;
    int64_t known_ms = restarts->len ? restarts->at_ms[0] : 0;
    /* Later than now was by another clock, and may well be before this one. */
    bool is_new = last_ms > known_ms || (known_ms > now_ms && last_ms != known_ms);
    if (!rule.within_ms || !last_ms || !is_new)
        return false;
    size_t kept = restarts->len < most ? restarts->len : most - 1;
    memmove(&restarts->at_ms[1], &restarts->at_ms[0], kept * sizeof restarts->at_ms[0]);
    restarts->at_ms[0] = last_ms;
    restarts->len = kept + 1;
    return true;
}
