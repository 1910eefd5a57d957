/* The processes that the node's programs are, by a /proc that may be the host's (a mount of it, or hostPID). Private to
 * pkg/controlplane/agent.
 *
 * A static pod's container is found by its program's name among the processes of this agent's own network namespace,
 * since a control plane's pods are hostNetwork and the agent is: what other pods run by the same name (a control plane
 * within the cluster) is in theirs. Its pod's UID, which cgroups name, would be surer, but is a hash that only a
 * kubelet computes. So the process of a static pod that is not hostNetwork is not known, and is not guessed at. */
#ifndef CR_CONTROLPLANE_AGENT_PROCESSES_H
#define CR_CONTROLPLANE_AGENT_PROCESSES_H

#include <stdbool.h>

#include "base/buffer.h"
#include "controlplane/agent/node_reading.h"
#include "sys/proc_find.h"

/* All of that name that may be it, the youngest first. What one of them has just forked is not: until execve(2) it has
 * its parent's name, words and network. Errors: Transient (/proc cannot be read), Forbidden (there are some, and in
 * which network they are cannot be seen). */
bool cr_node_processes_find(const struct cr_node_layout *layout, const char *name, struct cr_procs *out,
                            struct cr_error *err) CR_MUST_USE;
/* The process into running, process, started_ms and identity. */
void cr_node_processes_set(const struct cr_node_layout *layout, const struct cr_proc *process,
                           struct cr_node_program *program);
/* Whether the process of this identity began after that of the other: later since the machine started, or the machine
 * was started in between. NULL: not known, so false. */
bool cr_node_process_began_after(const char *identity, const char *other);

/* Its command line, each word ended by a NUL. Errors: NotFound (it has ended), those of cr_file_read. */
bool cr_node_process_words(const struct cr_node_layout *layout, const struct cr_proc *process, struct cr_buf *out,
                           struct cr_error *err) CR_MUST_USE;
/* The folder that it runs in, owned. Where that cannot be seen, a link to it that cannot be followed: what is relative
 * to it is then refused with words, and what is absolute does not need it. */
char *cr_node_process_folder(const struct cr_node_layout *layout, const struct cr_proc *process);

#endif
