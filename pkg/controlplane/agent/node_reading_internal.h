/* The parts of reading that have files of their own. */
#ifndef CR_CONTROLPLANE_AGENT_NODE_READING_INTERNAL_H
#define CR_CONTROLPLANE_AGENT_NODE_READING_INTERNAL_H

#include "controlplane/agent/host_files.h"
#include "controlplane/agent/node_reading.h"

/* One look, on its way. */
struct cr_node_sight {
    const struct cr_node_layout *layout;
    const struct cr_catalogue *catalogue;
    int64_t now_ms;
    struct cr_host_files files;
    struct cr_node_look *out;
};

/* "<formatted>", which begins with the program. */
void cr_node_sight_trouble(struct cr_node_sight *sight, const char *fmt, ...) CR_PRINTF(2, 3);
/* A new program of out. Borrowed, until the next one. */
struct cr_node_program *cr_node_sight_program(struct cr_node_sight *sight, const char *component);
/* What a folder has, which is watched from now on. */
bool cr_node_sight_list(struct cr_node_sight *sight, const char *host, size_t max, struct cr_strvec *out,
                        struct cr_error *err) CR_MUST_USE;
/* Files of the node for cr_node_parameters_add_pod and _kubelet. */
struct cr_node_source cr_node_sight_source(struct cr_node_sight *sight);

/* --- node_reading_contents.c: what the rows' files have --- */

void cr_node_sight_contents(struct cr_node_sight *sight);

#endif
