/* Which rows are certificate and key of one pair, so that they are read at one moment and held against each other.
 * Pure. Private to pkg/controlplane/agent. */
#ifndef CR_CONTROLPLANE_AGENT_PAIRS_H
#define CR_CONTROLPLANE_AGENT_PAIRS_H

#include <stdint.h>

#include "controlplane/agent/parameters.h"

#define CR_NODE_NO_PARTNER SIZE_MAX

/* partners: [parameters->len]; of each row the index of the other one. */
void cr_node_pairs_find(const struct cr_node_parameters *parameters, size_t *partners);

#endif
