/* The parts of static_pod that have files of their own. */
#ifndef CR_CONTROLPLANE_AGENT_STATIC_INTERNAL_H
#define CR_CONTROLPLANE_AGENT_STATIC_INTERNAL_H

#include "controlplane/agent/static_pod.h"

/* Sets argv, argv_has_name and argv_known of a container that has its json. */
void cr_static_command(struct cr_static_container *container);

/* Sets the mounts of a container that has its json. Errors: Invalid, when there are too many. */
bool cr_static_mounts(const struct cr_json *pod, struct cr_static_container *container,
                      struct cr_error *err) CR_MUST_USE;

#endif
