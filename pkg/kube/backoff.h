/* Exponential backoff with jitter, so that many clients of one restarted server do not come back in one beat. */
#ifndef CR_KUBE_BACKOFF_H
#define CR_KUBE_BACKOFF_H

#include <stdint.h>

struct cr_backoff {
    int64_t first_ms;
    int64_t max_ms;
    unsigned failures; /* in a row */
};

/* The next delay: first_ms doubled for each failure before, at most max_ms, of which a random part between a half and
 * all is taken. Counts this failure. */
int64_t cr_backoff_next(struct cr_backoff *backoff);
/* The same without counting, for those who keep the number themselves. failures: how many there were before. */
int64_t cr_backoff_delay(int64_t first_ms, int64_t max_ms, unsigned failures);
static inline void cr_backoff_reset(struct cr_backoff *backoff)
{
    backoff->failures = 0;
}

/* Evenly in [low, high]. Thread-safe; for spreading, not for secrets. */
int64_t cr_random_between(int64_t low, int64_t high);

#endif
