/* The parts of report that have files of their own. Private to pkg/controlplane/agent/report*.c. */
#ifndef CR_CONTROLPLANE_AGENT_REPORT_INTERNAL_H
#define CR_CONTROLPLANE_AGENT_REPORT_INTERNAL_H

#include "controlplane/agent/report.h"

/* Arguments of cr_node_report_make. */
struct cr_node_reporting {
    const struct cr_node_look *look;
    const struct cr_node_proof *proofs;  /* NULL: no component was asked */
    const struct cr_node_report *before; /* never NULL */
    int64_t now_ms;
    struct cr_node_report *out; /* its components are those of look->programs, in their order */
};

/* The component of the last report that is this one. NULL: there was none. Borrowed. */
const struct cr_node_component *cr_node_report_component_before(const struct cr_node_reporting *in,
                                                                const struct cr_node_component *component);

#endif
