/* Processes in the memory of a drain (drain/strategy.h): whether the proxy that was asked to drain has ended. */
#ifndef CR_DRAIN_DRAIN_MEMORY_H
#define CR_DRAIN_DRAIN_MEMORY_H

#include "base/strvec.h"
#include "sys/proc.h"

/* memory: NULL: nothing is kept. Once each. */
void cr_drain_memory_add_process(struct cr_strvec *memory, const struct cr_proc *process);
/* The first of them that still runs: its pid and start. False: there is none. */
bool cr_drain_memory_find_alive(const struct cr_strvec *memory, struct cr_proc *out);
/* There is at least one in memory, and none of them runs any more. False for NULL. */
bool cr_drain_memory_has_ended(const struct cr_strvec *memory);

#endif
