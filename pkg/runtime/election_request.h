/* The request that a round of an election is at (election.h), sent to the Lease itself. */
#ifndef CR_RUNTIME_ELECTION_REQUEST_H
#define CR_RUNTIME_ELECTION_REQUEST_H

#include "base/error.h"
#include "kube/lease.h"
#include "runtime/election.h"

/* step is Get, Create or Update. Blocks for one request; returns the step after its outcome. err is set when the
 * request failed, Conflict included (another candidate was faster), and left alone otherwise: a Lease that is not there
 * is no failure of a Get or an Update. */
enum cr_election_step cr_election_request(struct cr_election *election, enum cr_election_step step,
                                          const struct cr_lease_place *place, struct cr_error *err) CR_MUST_USE;

#endif
