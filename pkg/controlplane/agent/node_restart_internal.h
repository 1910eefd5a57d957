/* The parts of restart that have files of their own. Private to pkg/controlplane/agent/node_restart*.c. */
#ifndef CR_CONTROLPLANE_AGENT_NODE_RESTART_INTERNAL_H
#define CR_CONTROLPLANE_AGENT_NODE_RESTART_INTERNAL_H

#include "controlplane/agent/node_restart.h"

bool cr_node_restart_is_kubelet(const struct cr_node_program *program);

/* --- restart_manifest.c, restart_kubelet.c: as cr_node_restart_begin, of what is allowed --- */
bool cr_node_restart_manifest(const struct cr_node_layout *layout, const struct cr_node_look *look,
                              const struct cr_node_program *program, const char *token,
                              struct cr_error *err) CR_MUST_USE;
bool cr_node_restart_kubelet(const struct cr_node_program *program, const struct cr_node_act *act,
                             const struct cr_node_allowed *allowed, struct cr_error *err) CR_MUST_USE;

#endif
