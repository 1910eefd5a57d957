/* A look, its proofs and what was reported before, as the report of now. Pure. */
#ifndef CR_NODE_REPORT_H
#define CR_NODE_REPORT_H

#include "api/node_report.h"
#include "node/loaded.h"
#include "node/prove.h"
#include "node/reading.h"
#include "node/restart.h"

/* proofs: as look->programs. before: NULL: none. Order, identity and act are taken over from before. out need not be
 * initialised. */
void cr_node_report_make(const struct cr_node_look *look, const struct cr_node_proof *proofs,
                         const struct cr_node_allowed *allowed, const struct cr_node_report *before, int64_t now_ms,
                         struct cr_node_report *out);

#endif
