/* The parts of restart that have files of their own. Private to pkg/controlplane/agent/node_restart*.c. */
#ifndef CR_CONTROLPLANE_AGENT_NODE_RESTART_INTERNAL_H
#define CR_CONTROLPLANE_AGENT_NODE_RESTART_INTERNAL_H

#include "controlplane/agent/node_restart.h"

bool cr_node_restart_is_kubelet(const struct cr_node_program *program);

#endif
