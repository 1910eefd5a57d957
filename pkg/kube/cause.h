/* What a thread works for: the arrival of the bytes of a watch. The loop's thread has it while it hands on what came, a
 * queue keeps it with the key (the earliest of several), a worker has it while it works on that key, and the client
 * measures to the first write. All functions here are about the calling thread. */
#ifndef CR_KUBE_CAUSE_H
#define CR_KUBE_CAUSE_H

#include <stdint.h>

/* cr_clock_monotonic_ns of the arrival; 0: none. */
void cr_cause_set(int64_t arrived_ns);
int64_t cr_cause_get(void);

#endif
