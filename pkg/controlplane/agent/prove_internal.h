/* The parts of prove that have files of their own. Private to pkg/controlplane/agent/prove*.c. */
#ifndef CR_CONTROLPLANE_AGENT_PROVE_INTERNAL_H
#define CR_CONTROLPLANE_AGENT_PROVE_INTERNAL_H

#include "controlplane/agent/prove.h"

struct cr_node_ports {
    struct cr_node_port *items; /* [CR_NODE_PORTS_MAX], the caller's */
    size_t len;
    const char *why; /* static; NULL: nothing is wrong with those that are there */
};

/* Adds a port, with the address to ask at for the one that it is bound to ("0.0.0.0", "[::]", "localhost"). NULL: that
 * is none to be asked at, or there are too many. Borrowed. */
struct cr_node_port *cr_node_ports_add(struct cr_node_ports *ports, const char *bound_to, int64_t port);

/* "10.0.0.1:2379", "[::]:2379": copies the host. False: it is none. */
bool cr_node_host_port(const char *text, char host[64], int64_t *port);

#endif
