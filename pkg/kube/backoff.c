#include "kube/backoff.h"

#include <sys/random.h>
#include <time.h>

int64_t cr_random_between(int64_t low, int64_t high)
{
    if (high <= low)
        return low;
    uint64_t bits = 0;
    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != (ssize_t)sizeof bits) {
        /* Before the kernel has gathered entropy: the clock spreads well enough. */
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        bits = (uint64_t)now.tv_nsec * UINT64_C(6364136223846793005) >> 16;
    }
    return low + (int64_t)(bits % ((uint64_t)(high - low) + 1));
}

int64_t cr_backoff_delay(int64_t first_ms, int64_t max_ms, unsigned failures)
{
    int64_t delay = first_ms;
    for (unsigned i = 0; i < failures && delay && delay < max_ms; i++)
        delay = delay > max_ms / 2 ? max_ms : delay * 2;
    if (delay > max_ms)
        delay = max_ms;
    return cr_random_between(delay / 2, delay);
}

int64_t cr_backoff_next(struct cr_backoff *backoff)
{
    int64_t delay = cr_backoff_delay(backoff->first_ms, backoff->max_ms, backoff->failures);
    if (backoff->failures < 1000)
        backoff->failures++;
    return delay;
}
