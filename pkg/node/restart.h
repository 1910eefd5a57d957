/* One restart of one component on this node, in steps that can each be the last: which step it is at is read off the
 * node itself (the manifest's annotation, the process), never off memory. */
#ifndef CR_NODE_RESTART_H
#define CR_NODE_RESTART_H

#include <stdbool.h>

#include "api/node_report.h"
#include "base/error.h"
#include "base/strvec.h"
#include "node/prove.h"
#include "node/reading.h"

/* Of the static pod, in its manifest: the token of the order that it was last restarted for. */
#define CR_NODE_RESTART_ANNOTATION "certroll.dev/restart"

/* The local allow-list; what is not in it is refused, whatever the operator asks for. Borrowed. */
struct cr_node_allowed {
    const struct cr_strvec *components;      /* --allow-restart; "kube-apiserver", "kubelet" */
    const struct cr_strvec *kubelet_command; /* argv; empty: the kubelet is never restarted */
    int64_t command_timeout_ms;
};

/* How the agent would restart it, and why not: cr_node_component.restart and .restart_refused. Pure. */
void cr_node_restart_way(const struct cr_node_look *look, const struct cr_node_program *program,
                         const struct cr_node_allowed *allowed, struct cr_node_component *out);

/* Begins it, unless it was begun for this token already: the manifest with its annotation is put in place by a rename
 * from a file beside the manifests' folder (same file system, same owner and mode, synced), every other byte as it was,
 * or the kubelet's command is run. *begun_ms: when the process that goes began (cr_node_act.process_started_ms).
 * Errors: Forbidden (not allowed), NotFound, Invalid (the manifest cannot be edited so), Conflict (somebody wrote the
 * manifest in between: look again), Transient (disk, command failed: its last words). Nothing has changed then. */
bool cr_node_restart_begin(const struct cr_node_layout *layout, const struct cr_node_look *look,
                           const struct cr_node_program *program, const char *token,
                           const struct cr_node_allowed *allowed, struct cr_error *err) CR_MUST_USE;

/* What has become of it. Pure: look and proof as of now, act as of before; moves act on (Restarting → Proving → Done or
 * Failed). Done: another process than the one before, serving, well, and with every file of it loaded (rows: the files
 * of this component as just judged). Failed: not by deadline_ms after started_ms, with what is missing. */
void cr_node_restart_follow(const struct cr_node_program *program, const struct cr_node_proof *proof,
                            const struct cr_node_file *rows, size_t rows_len, int64_t deadline_ms, int64_t now_ms,
                            struct cr_node_act *act);

#endif
