/* A node seen once, whole: looked at, asked, and judged. What the agent reports each time, and what `inspect` prints.
 */
#ifndef CR_CONTROLPLANE_AGENT_SURVEY_H
#define CR_CONTROLPLANE_AGENT_SURVEY_H

#include "base/cleanup.h"
#include "controlplane/agent/report.h"

#define CR_NODE_KUBELET_FOLDER "/var/lib/kubelet"

/* What etcd has shown in handshakes, each of which it logs as a rejected connection: while its process and its files
 * are the same it would show it again, so it is asked each 5 min only, and its page each time. Zeroed at first. */
struct cr_node_shown {
    char *state; /* of process and files, as they were; NULL: nothing was shown */
    int64_t asked_ms;
    struct cr_node_proof proof;
};
void cr_node_shown_dispose(struct cr_node_shown *shown);

struct cr_node_survey_options {
    struct cr_node_layout layout;
    struct cr_node_allowed allowed;
    const struct cr_catalogue *catalogue; /* outlives the survey */
    const char *agent;                    /* its version; NULL: none is given */
    struct cr_node_shown *shown;          /* kept from survey to survey; NULL: all is asked */
    bool count_tokens;                    /* false: they are not read, and said to be unknown */
};

struct cr_node_survey {
    struct cr_node_look look;
    struct cr_node_proof *proofs; /* [look.programs_len] */
    struct cr_node_report report;
};
void cr_node_survey_dispose(struct cr_node_survey *survey);
CR_DEFINE_DISPOSE(cr_node_survey, struct cr_node_survey, cr_node_survey_dispose)

/* before: NULL: none. Blocks for the disk, and for the answers of ports that hang up to some seconds each. out need not
 * be initialised. */
void cr_node_survey(const struct cr_node_survey_options *options, const struct cr_node_report *before, int64_t now_ms,
                    struct cr_node_survey *out);

/* The program of this component; NULL: the node has none. Borrowed. */
const struct cr_node_program *cr_node_survey_program(const struct cr_node_survey *survey, const char *component);
const struct cr_node_proof *cr_node_survey_proof(const struct cr_node_survey *survey, const char *component);
/* The value of CR_NODE_RESTART_ANNOTATION in its manifest; NULL: none. Borrowed. */
const char *cr_node_survey_token(const struct cr_node_survey *survey, const struct cr_node_program *program);

#endif
