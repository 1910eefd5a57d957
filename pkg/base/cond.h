/* Condition variables with deadlines by cr_clock_monotonic_ms: steps of the wall clock move none. Destroyed with
 * pthread_cond_destroy. */
#ifndef CR_BASE_COND_H
#define CR_BASE_COND_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

void cr_cond_init(pthread_cond_t *cond);
/* Under the lock. False: the time is over. As pthread_cond_wait it may return without a reason. */
bool cr_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t monotonic_ms);

#endif
