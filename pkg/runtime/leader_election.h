/* Leader election: of several processes one acts. The rules are in election.h; here is the thread that keeps the Lease,
 * with a connection of its own and no event loop, so that neither busy workers nor a busy loop can make it late. */
#ifndef CR_RUNTIME_LEADER_ELECTION_H
#define CR_RUNTIME_LEADER_ELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "kube/client.h"
#include "metrics/metrics.h"
#include "runtime/election.h"

struct cr_leader_election;

struct cr_leader_election_options {
    const char *ns; /* of the Lease; copied, like name */
    const char *name;
    struct cr_election_times times; /* all 0: cr_election_default_times */
    /* When the lease was lost and the process still lives after the time that the others wait (lease - renew), it is
     * ended with this exit status; a process that finds out too late has a second. 0: it is not. */
    int exit_status;
};

/* Both in the election's thread, each at most once. */
struct cr_leader_election_handler {
    void (*on_started_leading)(void *arg);
    /* Writes are impossible already. why: a sentence, borrowed. */
    void (*on_lost)(void *arg, const char *why);
    void *arg;
};

/* Gives client a write gate that is open only while we lead. client and metrics outlive it; metrics may be NULL.
 * Registers leader_election_master_status{name}, as client-go has it. NULL: times that contradict each other (Invalid).
 */
struct cr_leader_election *cr_leader_election_new(struct cr_client *client, struct cr_metrics *metrics,
                                                  const struct cr_leader_election_options *options,
                                                  struct cr_error *err) CR_MUST_USE;
/* Stops it first. */
void cr_leader_election_free(struct cr_leader_election *election);
CR_DEFINE_CLEANUP(cr_leader_election, struct cr_leader_election, cr_leader_election_free)

/* Once. handler is copied. */
void cr_leader_election_start(struct cr_leader_election *election, const struct cr_leader_election_handler *handler);
/* Ends its thread; a leader gives the Lease up, so that another can take it at once: whatever acts must have ended
 * before. Blocks for a few requests. */
void cr_leader_election_stop(struct cr_leader_election *election);

/* Any thread, all below. Of the Lease; borrowed. */
const char *cr_leader_election_name(const struct cr_leader_election *election);
/* hostname_uuid: of this process only. */
const char *cr_leader_election_identity(const struct cr_leader_election *election);
bool cr_leader_election_lost(const struct cr_leader_election *election);
/* For how many ms from now something may still be begun; 0: we do not lead. */
int64_t cr_leader_election_left_ms(const struct cr_leader_election *election);
/* False when the thread is stuck: nothing was tried for much longer than a try can take. */
bool cr_leader_election_alive(struct cr_leader_election *election, struct cr_error *err) CR_MUST_USE;
/* False when this process could not take over: the Lease is refused to us, or out of reach for a lease's time. */
bool cr_leader_election_ready(struct cr_leader_election *election, struct cr_error *err) CR_MUST_USE;

#endif
