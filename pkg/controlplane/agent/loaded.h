/* Whether a process has what its file has. Pure.
 *
 * What counts is the content, and which process was there when it was first seen; times only decide what was not
 * watched, since any user may set a clock or touch a file. */
#ifndef CR_CONTROLPLANE_AGENT_LOADED_H
#define CR_CONTROLPLANE_AGENT_LOADED_H

#include "api/node_report.h"
#include "controlplane/agent/prove.h"
#include "controlplane/agent/node_reading.h"

/* What the last report knows of the row. Borrowed. */
struct cr_node_memory {
    const struct cr_node_file *row; /* same component, parameter, via, role and path; of several the nth. NULL: none */
    int64_t seen_ms;                /* when that report was of now: the file was as it says, then */
    bool same_process;              /* the process of now is that which was there then */
    bool later_process;             /* it is another, and began after that which was there then */
};

/* How long what is seen in a handshake may lag behind a file that the program takes up by itself before only a restart
 * is believed to help, where twice its longest delay is less: machines are busy, and a restart is dear. */
enum { CR_NODE_LOADED_PATIENCE_MS = 60 * 1000 };

/* Sets loaded, has, has_known, changed_ms, due_ms, evidence and why of file, which has the parameter and the material
 * already. program NULL: no process stays that reads it (what a probe starts); each start reads it again.
 * proof: what the component's ports have shown (NULL: not asked), asked after the file came to be as it is.
 *
 * Rules, the first that fits:
 * - No file of the node, no process, content that cannot be read or does not fit its key (it may be half written):
 *   Unknown, has as before; never No, since a restart would make it worse.
 * - The kubelet's own pair (own): it writes what it has, so Yes.
 * - A process that began after the one that was there when this content was seen began after that, too, so Yes. Where
 *   none was seen there, or one that began later, and at first sight, the file's ctime is compared with the process'
 *   start; a ctime behind now says nothing, and counts as now.
 * - Changed since the process began: by itself (cr_node_parameter_reloads) it is Soon until changed + the longest delay
 *   (of Poll a twentieth more, as timers drift), then Yes; else it is No, unless the process is known to have just this
 *   content: a file that was changed and changed back.
 * - All of these are Inferred. A leaf that is served overrides them, Verified either way: it is the file's: Yes. It is
 *   not: never Yes; No where the process has had time and a restart helps, which is so when the file was changed since
 *   it began and what is served is what was before; else Unknown, with a reason (another program listens there).
 * - A CA of the file that is not announced refutes in the same way; that all are announced proves nothing, since
 *   successive CAs may have one name. */
void cr_node_loaded_judge(const struct cr_node_parameter *parameter, const struct cr_node_content *content,
                          const struct cr_node_program *program, const struct cr_node_memory *memory,
                          const struct cr_node_proof *proof, int64_t now_ms, struct cr_node_file *file);

#endif
