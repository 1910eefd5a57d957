/* Whether a process has what its file has. Pure. */
#ifndef CR_NODE_LOADED_H
#define CR_NODE_LOADED_H

#include "api/node_report.h"
#include "node/prove.h"
#include "node/reading.h"

/* Sets state, has, changed_ms, due_ms, evidence and why of file, which has the parameter and the material already.
 * - before: the same row of the last report (same component, parameter, via, role, path; of several the nth), NULL:
 * first sight. What it remembers is what the process had, as long as it is the same process (program->started_ms).
 * - proof: what the component's port has just shown (NULL: not asked). A leaf that is served, CAs that are announced,
 *   are Verified, either way: a leaf that its file has not any more is never Loaded.
 * Rules: content as the process is known to have → Yes. The process began after content and links were last changed →
 * Yes, Inferred. Changed since: a method that reloads (cr_node_parameter_reloads) is Soon until changed + longest
 * delay, then Yes, Inferred; any other → No. First sight of a file that changed after the process began counts as
 * changed then. A process that does not run has nothing: Unknown. Content that cannot be read, or key and certificate
 * that do not fit: Unknown, with has as before; never No, since a restart would make it worse. */
void cr_node_loaded_judge(const struct cr_node_parameter *parameter, const struct cr_node_content *content,
                          const struct cr_node_program *program, const struct cr_node_file *before,
                          const struct cr_node_proof *proof, int64_t now_ms, struct cr_node_file *file);

#endif
