/* The parts of loaded that have files of their own. Private to pkg/controlplane/agent/loaded*.c. */
#ifndef CR_CONTROLPLANE_AGENT_LOADED_INTERNAL_H
#define CR_CONTROLPLANE_AGENT_LOADED_INTERNAL_H

#include "controlplane/agent/loaded.h"

/* One row under judgement: the arguments of cr_node_loaded_judge, and what was found out so far. */
struct cr_node_judging {
    const struct cr_node_parameter *parameter;
    const struct cr_node_content *content;
    const struct cr_node_program *program; /* NULL: none that stays */
    const struct cr_node_memory *memory;   /* never NULL */
    const struct cr_node_proof *proof;     /* NULL: not asked */
    int64_t now_ms;
    struct cr_node_file *file;
    bool same_content;        /* as the memory's row */
    bool changed_since_start; /* the process may have read something else */
};

/* Sets loaded, evidence and why; with Yes what it has, and with all but Soon no due_ms. */
void cr_node_loaded_say(struct cr_node_judging *j, enum cr_node_loaded loaded, enum cr_node_evidence evidence,
                        const char *fmt, ...) CR_PRINTF(4, 5);
/* What the process has; NULL: not known. Copied. */
void cr_node_loaded_has(struct cr_node_judging *j, const struct cr_strvec *what);
/* How long it may take by itself. */
int64_t cr_node_loaded_delay_ms(const struct cr_node_parameter *parameter);

#endif
