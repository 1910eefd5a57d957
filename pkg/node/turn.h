/* The turn of a node: the Lease kube-system/certroll-control-plane, held while a component of the node is restarted, so
 * that whatever two operators or a stale report ask for, one node at a time acts. Its rules are those of a leader
 * election (runtime/election.h), but it is taken for one act and given up at its end, and there is no thread: whoever
 * acts renews it in passing.
 *
 * The holder is "<node>_certroll-node-agent" and not this process: an agent that comes after one that died goes on at
 * once, with what that one had begun. node/instance_lock.h ensures that there is one agent on a node;
 * manifests/node-agent/base/admission.yaml, that no agent ends the turn of another node. */
#ifndef CR_NODE_TURN_H
#define CR_NODE_TURN_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "kube/client.h"
#include "runtime/election.h"

/* Others wait for 30 s when a node has gone with the turn; it is renewed each 5 s, and after 20 s without an answer
 * this node begins nothing more. */
extern const struct cr_election_times cr_node_turn_times;

struct cr_node_turn;
/* client: with a short time-out, since each request is waited for; outlives the turn. node: copied. times NULL: those
 * above. */
struct cr_node_turn *cr_node_turn_new(struct cr_client *client, const char *node,
                                      const struct cr_election_times *times);
/* Does not give the turn up: who comes after needs it. */
void cr_node_turn_free(struct cr_node_turn *turn);
CR_DEFINE_CLEANUP(cr_node_turn, struct cr_node_turn, cr_node_turn_free)

/* Takes the turn, or renews it when it is time to; blocks for some requests. True: it is ours, and something may be
 * begun now. Errors: Conflict, another node has it, with its name; those of the requests. */
bool cr_node_turn_take(struct cr_node_turn *turn, struct cr_error *err) CR_MUST_USE;
/* Whether something may be begun at this moment. */
bool cr_node_turn_is_ours(const struct cr_node_turn *turn);
/* Whether it is ours or may be: there is something to give up. */
bool cr_node_turn_is_claimed(const struct cr_node_turn *turn);
/* False: it could not be written; then it runs out by itself, or is given up later. */
bool cr_node_turn_give_up(struct cr_node_turn *turn, struct cr_error *err) CR_MUST_USE;

#endif
