#include "policy/rules/breaker.h"

#include <string.h>

static bool counts(struct cr_breaker rule, int64_t restart_ms, int64_t now_ms)
{
    return restart_ms > now_ms - rule.within_ms && restart_ms <= now_ms + rule.within_ms;
}

/* The one of those that count, from the newest on; 0: there are not as many. The list is in the order in which they
 * were done, which is that of their times as long as no replica's clock was set back. */
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

/* --- the restarts of one rotation --- */

/* The restart that stands for others of that rotation, and may stand for one more, from this one on; len: there is
 * none. */
static size_t find_rotation(const struct cr_restart_times *restarts, size_t from, const struct cr_restart_step *step)
{
    size_t i = from;
    while (i < restarts->len && (!*step->rotation || strcmp(restarts->steps[i].rotation, step->rotation) != 0 ||
                                 restarts->steps[i].restarts >= CR_RESTARTS_OF_ROTATION_MAX))
        i++;
    return i;
}

bool cr_breaker_continues(const struct cr_restart_times *restarts, const struct cr_restart_step *step)
{
    return find_rotation(restarts, 0, step) < restarts->len;
}

/* Takes the one that stands for others of that rotation out, from this one on. Returns both as one. */
static struct cr_restart_step take_rotation(struct cr_restart_times *restarts, size_t from,
                                            const struct cr_restart_step *step)
{
    struct cr_restart_step both = *step;
    size_t i = find_rotation(restarts, from, step);
    if (i == restarts->len)
        return both;
    both.restarts += restarts->steps[i].restarts;
    restarts->len--;
    memmove(&restarts->at_ms[i], &restarts->at_ms[i + 1], (restarts->len - i) * sizeof restarts->at_ms[0]);
    memmove(&restarts->steps[i], &restarts->steps[i + 1], (restarts->len - i) * sizeof restarts->steps[0]);
    return both;
}

static void put_first(struct cr_restart_times *restarts, size_t most, int64_t at_ms, const struct cr_restart_step *step)
{
    size_t kept = restarts->len < most ? restarts->len : most - 1;
    memmove(&restarts->at_ms[1], &restarts->at_ms[0], kept * sizeof restarts->at_ms[0]);
    memmove(&restarts->steps[1], &restarts->steps[0], kept * sizeof restarts->steps[0]);
    restarts->at_ms[0] = at_ms;
    restarts->steps[0] = *step;
    restarts->len = kept + 1;
}

/* --- noted --- */

bool cr_breaker_awaits_rotation(const struct cr_restart_times *restarts, int64_t now_ms)
{
    return restarts->len && !*restarts->steps[0].rotation && now_ms - restarts->at_ms[0] < CR_BREAKER_ROTATION_DELAY_MS;
}

bool cr_breaker_note(struct cr_breaker rule, int64_t last_ms, const struct cr_restart_step *step, int64_t now_ms,
                     struct cr_restart_times *restarts)
{
    size_t most = rule.restarts < CR_RESTART_TIMES_MAX ? (size_t)rule.restarts : CR_RESTART_TIMES_MAX;
    int64_t known_ms = restarts->len ? restarts->at_ms[0] : 0;
    /* Later than now was by another clock, and may well be before this one. */
    bool is_new = last_ms > known_ms || (known_ms > now_ms && last_ms != known_ms);
    bool is_explained = last_ms && last_ms == known_ms && !*restarts->steps[0].rotation && *step->rotation;
    if (!rule.within_ms || !last_ms || (!is_new && !is_explained))
        return false;
    const struct cr_restart_step both = take_rotation(restarts, is_new ? 0 : 1, step);
    if (is_new)
        put_first(restarts, most, last_ms, &both);
    else
        restarts->steps[0] = both;
    return true;
}
