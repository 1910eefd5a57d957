/* The parts of parameters that have files of their own. */
#ifndef CR_CONTROLPLANE_AGENT_PARAMETERS_INTERNAL_H
#define CR_CONTROLPLANE_AGENT_PARAMETERS_INTERNAL_H

#include "controlplane/agent/given_flags.h"
#include "controlplane/agent/parameters.h"
#include "catalogue/settings.h"

/* One program of the node, and what is needed to find its files. All borrowed. */
struct cr_node_reader {
    struct cr_node_parameters *out;
    const struct cr_program *subject;
    const char *version;
    const char *pod;                             /* NULL: the kubelet */
    const struct cr_static_container *container; /* NULL: the kubelet, which sees the node's files by their own names */
    const struct cr_node_source *source;
    bool rotates_client; /* the kubelet's client certificate is its own affair */
};

/* What a row is about. parameter and via as in cr_node_parameter; all copied. */
struct cr_node_claim {
    const char *parameter;
    const char *via;
    const char *path;  /* NULL: cannot be determined, for the reason in why */
    const char *why;   /* static words */
    const char *judge; /* the parameter that the capability is taken from; NULL: its own */
    bool embedded;     /* path is the kubeconfig that has it */
    bool own;
};

/* Adds a row, NULL when there are too many. Borrowed, until the next one. */
struct cr_node_parameter *cr_node_reader_add(const struct cr_node_reader *program, const struct cr_node_claim *claim,
                                             enum cr_role role);
/* For each role of a mask of CR_ROLE_BITs. */
void cr_node_reader_add_roles(const struct cr_node_reader *program, const struct cr_node_claim *claim, unsigned roles);
/* "<component> of <pod>: <formatted>". */
void cr_node_reader_trouble(const struct cr_node_reader *program, const char *fmt, ...) CR_PRINTF(2, 3);

/* --- parameters_follow.c: parameter names a file that names others. True: it is one of those; all of it is done. ---
 */
bool cr_node_reader_follow(const struct cr_node_reader *program, const struct cr_known_parameter *parameter,
                           const char *path);
/* A kubeconfig. via: what names it; path: as the program sees it. */
void cr_node_reader_follow_kubeconfig(const struct cr_node_reader *program, const char *via, const char *path);
/* Configuration files that take the place of flags. True: the flags and variables do not count. */
bool cr_node_reader_follow_config(const struct cr_node_reader *program, const struct cr_given_flags *flags,
                                  const struct cr_settings *settings);

#endif
