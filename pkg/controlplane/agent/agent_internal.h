/* What the parts of the agent share. Private to pkg/controlplane/agent/agent*.c; all of it is the worker's, but for
 * what is said. */
#ifndef CR_CONTROLPLANE_AGENT_AGENT_INTERNAL_H
#define CR_CONTROLPLANE_AGENT_AGENT_INTERNAL_H

#include <stdatomic.h>

#include "controlplane/agent/agent.h"
#include "controlplane/agent/agent_metrics.h"
#include "controlplane/agent/contact.h"
#include "controlplane/agent/file_watcher.h"
#include "controlplane/agent/instance_lock.h"
#include "controlplane/agent/survey.h"
#include "controlplane/agent/node_lease.h"
#include "runtime/informer.h"

struct cr_node_agent {
    struct cr_node_agent_options options;
    struct cr_catalogue *catalogue;
    struct cr_node_agent_metrics metrics;
    struct cr_node_instance_lock instance_lock;
    struct cr_client
        *client; /* with a short time-out; nothing waits long, since what is restarted may be who answers */
    struct cr_node_lease *lease;
    struct cr_file_watcher *watcher;
    struct cr_informer *informer; /* the manager's */
    struct cr_queue *queue;       /* likewise */
    atomic_llong seen_generation; /* of the report, by the informer */
    struct cr_contact contact;

    char *node_uid, *kubelet_version; /* of the Node; NULL: not asked yet */
    char *asked_for;                  /* the kubelet's process that they were asked for */

    struct cr_node_report known; /* the newest that the API server is known to have */
    bool has_known;
    struct cr_node_report report; /* what we say */
    bool has_report;              /* it goes on from what was known */
    char *written;                /* the status without its time as it was last written; NULL: not by this process */
    int64_t renew_ms;             /* monotonic: when it is written though nothing changed */
    struct cr_node_shown shown;
    bool begun;       /* what the act is about, by this process */
    int64_t tried_ms; /* monotonic: when it failed to begin that; 0: it did not */
};

/* --- agent_api.c: requests. Each blocks for some seconds at most, and counts in contact. --- */

/* Whether a request may be made now. */
bool cr_node_agent_may_ask(const struct cr_node_agent *agent);
/* Takes in what a request came to; what: "report" */
void cr_node_agent_note_answer(struct cr_node_agent *agent, const char *what, bool answered,
                               const struct cr_error *err);
/* What the informer has, when that is newer; makes the report when there is none; asks for the Node. */
void cr_node_agent_learn(struct cr_node_agent *agent, const char *kubelet_process);
/* The report as it is at this moment, not from a cache. */
bool cr_node_agent_refresh(struct cr_node_agent *agent);
/* Writes the status if it differs from what was written, or it is time to. */
void cr_node_agent_write(struct cr_node_agent *agent);
/* Writes it in any case, if the report still is the one that is known. False: it could not be written, or is another
 * one by now. */
bool cr_node_agent_write_exactly(struct cr_node_agent *agent);

/* --- agent_restart.c --- */

/* Carries an order as far as it comes now. */
void cr_node_agent_obey(struct cr_node_agent *agent, const struct cr_node_survey *survey);

#endif
