/* One agent per node, by flock(2) on folders of the host that every agent's mounts share; the kernel releases such a
 * lock when the process ends in any way. The holder therefore knows that the previous agent is gone.
 *
 * A process that can open a folder can keep its lock, since flock needs no right to write; and some agents may write
 * nothing of the host. So there are two: one of a folder that only root can open, where a kubelet has made it, and one
 * of /etc/kubernetes, which an older agent holds alone. What holds the second and is not root's is no agent. */
#ifndef CR_CONTROLPLANE_AGENT_INSTANCE_LOCK_H
#define CR_CONTROLPLANE_AGENT_INSTANCE_LOCK_H

#include "base/cleanup.h"
#include "base/error.h"

/* Descriptors, which programs that are run do not inherit; -1: not held. */
struct cr_node_instance_lock {
    int root_only;
    int shared;
};

/* proc: a /proc that shows the node's processes. out: neither is held. Errors: Conflict (another agent runs; or a
 * process that is named, and is none, has the second lock where the first cannot be had), NotFound (no such folders),
 * Forbidden, Transient (they cannot be opened). */
bool cr_node_instance_lock_take(const char *root, const char *proc, struct cr_node_instance_lock *out,
                                struct cr_error *err) CR_MUST_USE;
void cr_node_instance_lock_dispose(struct cr_node_instance_lock *lock);
CR_DEFINE_DISPOSE(cr_node_instance_lock, struct cr_node_instance_lock, cr_node_instance_lock_dispose)

#endif
