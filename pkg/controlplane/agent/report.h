/* A look, its proofs and what was reported before, as the report of now. Pure. */
#ifndef CR_CONTROLPLANE_AGENT_REPORT_H
#define CR_CONTROLPLANE_AGENT_REPORT_H

#include "api/node_report.h"
#include "controlplane/agent/loaded.h"
#include "controlplane/agent/prove.h"
#include "controlplane/agent/node_reading.h"
#include "controlplane/agent/node_restart.h"

/* proofs: as look->programs; NULL: no component was asked. before: NULL: none; node, order, identity, act, agent and
 * tokens are taken over from it, and its rows are the memory of cr_node_loaded_judge: those of a kubelet that cannot be
 * looked at now (it does not run) are kept, as Unknown. What is as it was is said as it was: but for seen_ms a report
 * of an unchanged node equals the one before.
 *
 * Lists are whole, but for CAs and the prints of a row; what is written of them cr_node_report_encode_status bounds. A
 * kubeconfig that is followed has the rows of what is in it, and none itself. A key has what its certificate's row
 * says, since it fits that, or both have the problem. out need not be initialised. */
void cr_node_report_make(const struct cr_node_look *look, const struct cr_node_proof *proofs,
                         const struct cr_node_allowed *allowed, const struct cr_node_report *before, int64_t now_ms,
                         struct cr_node_report *out);

#endif
