/* One restart of one component on this node, in steps that can each be the last: which step it is at is read off the
 * node itself (the manifest's annotation, the process), never off memory. */
#ifndef CR_CONTROLPLANE_AGENT_NODE_RESTART_H
#define CR_CONTROLPLANE_AGENT_NODE_RESTART_H

#include <stdbool.h>

#include "api/node_report.h"
#include "base/error.h"
#include "base/strvec.h"
#include "controlplane/agent/prove.h"
#include "controlplane/agent/node_reading.h"

/* The annotation in a static pod's manifest: the token of the order that the pod was last restarted for. */
#define CR_NODE_RESTART_ANNOTATION "certroll.dev/restart"

/* The local allow-list; what is not in it is refused, whatever the operator asks for. Borrowed. */
struct cr_node_allowed {
    const struct cr_strvec *components;      /* --allow-restart; "kube-apiserver", "kubelet" */
    const struct cr_strvec *kubelet_command; /* argv; empty: the kubelet is never restarted */
    int64_t command_timeout_ms;
};

/* How the agent would restart it, and why not: cr_node_component.restart and .restart_refused. What cannot be asked
 * whether it is well again (cr_node_ports) is refused. Pure. */
void cr_node_restart_way(const struct cr_node_look *look, const struct cr_node_program *program,
                         const struct cr_node_allowed *allowed, struct cr_node_component *out);

/* Begins it, unless it was begun already: the manifest with its annotation is put in place by a rename from a file
 * beside the manifests' folder (same file system, same owner, mode and SELinux label, synced), every other byte as it
 * was; or the kubelet's command is run, and waited for.
 *
 * act: token, component and process are as they were written into the report *before* this is called, so that the agent
 * finds them after a crash. Begun already: the manifest has the token; the kubelet is another process than
 * act->process.
 *
 * Errors: Forbidden (not allowed, or the kernel says so), NotFound, Invalid (the manifest cannot be edited so, is a
 * symbolic link, its folder is a mount of its own), Conflict (another program wrote the manifest since the look: look
 * again), Transient (disk, command failed: its last words). The manifest has not changed then; a kubelet's command that
 * failed or did not end in time may have done its work all the same, which the next look shows. Blocks for the disk,
 * and for the command as long as allowed->command_timeout_ms. */
bool cr_node_restart_begin(const struct cr_node_layout *layout, const struct cr_node_look *look,
                           const struct cr_node_program *program, const struct cr_node_act *act,
                           const struct cr_node_allowed *allowed, struct cr_error *err) CR_MUST_USE;

/* What has become of it. Pure: all as of now, act as of before; moves act on (Restarting → Proving → Done or Failed),
 * and sets its message to what is missing. Other phases are left alone.
 * Done: another process than act->process, serving, and with every file of it loaded that can be determined. A file
 * that was changed again since the new process began is not held against it, and neither is a file that cannot be
 * determined (Unknown, without a handshake that says otherwise).
 * Failed: not so by deadline_ms after act->started_ms; a clock that was set back starts the time again.
 * program: NULL: there is none any more; proof: NULL: not asked. rows: of the whole node, as just judged. */
void cr_node_restart_follow(const struct cr_node_program *program, const struct cr_node_proof *proof,
                            const struct cr_node_file *rows, size_t rows_len, int64_t deadline_ms, int64_t now_ms,
                            struct cr_node_act *act);

#endif
