/* shutdown: one drain, and its exit status. */
#ifndef CERTROLL_SHUTDOWN_MANAGER_HOOK_H
#define CERTROLL_SHUTDOWN_MANAGER_HOOK_H

#include "drain/drain.h"
#include "drain/flags.h"

/* Removes the ready file of an earlier drain and logs what was wrong with the flags. */
void hook_prepare(const struct cr_drain_flags *flags);
/* Drains in the calling thread. SIGTERM and SIGINT end nothing, since what calls it is about to end the proxy anyway;
 * a second one gives up. */
enum cr_drain_result hook_drain(const struct cr_drain_flags *flags);
/* Writes the ready file, unless the drain was given up. Returns the exit status. */
int hook_end(const struct cr_drain_flags *flags, enum cr_drain_result result);

#endif
