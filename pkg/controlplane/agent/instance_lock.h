/* One agent per node. The lock is flock(2) on a folder of the host that every agent's mounts share; the kernel releases
 * it when the process ends in any way. The holder therefore knows that the previous agent is gone. */
#ifndef CR_CONTROLPLANE_AGENT_INSTANCE_LOCK_H
#define CR_CONTROLPLANE_AGENT_INSTANCE_LOCK_H

#include "base/error.h"

/* Returns a descriptor that holds the lock until it is closed; programs that are run do not inherit it. -1: another
 * process holds the lock (Conflict, names the folder), or the folder cannot be opened (NotFound, Forbidden, Transient).
 */
int cr_node_acquire_instance_lock(const char *folder, struct cr_error *err) CR_MUST_USE;

#endif
