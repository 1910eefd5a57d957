#include "base/cond.h"

#include <errno.h>
#include <time.h>

void cr_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool cr_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t monotonic_ms)
{
    const struct timespec until = {.tv_sec = monotonic_ms / 1000, .tv_nsec = monotonic_ms % 1000 * 1000000};
    return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}
