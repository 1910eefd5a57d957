/* One agent on a node: a lock (flock(2)) of a folder of the host, which all of its mounts share and which the kernel
 * takes away when the process ends, however it does. So who has it knows that the agent before it is gone. */
#ifndef CR_NODE_SOLE_H
#define CR_NODE_SOLE_H

#include "base/error.h"

/* The descriptor that holds the lock until it is closed; -1: another process has it (Conflict, with the folder), or the
 * folder is not to be had (NotFound, Forbidden, Transient). Not inherited by programs that are run. */
int cr_node_sole(const char *folder, struct cr_error *err) CR_MUST_USE;

#endif
