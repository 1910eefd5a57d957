#include "node/turn.h"

#include <stdlib.h>

#include "api/node_report.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "kube/lease.h"
#include "runtime/election_request.h"

const struct cr_election_times cr_node_turn_times = {.lease_ms = 30000, .renew_ms = 20000, .retry_ms = 5000};

struct cr_node_turn {
    struct cr_client *client;
    char *identity;
    struct cr_election rules;
};

struct cr_node_turn *cr_node_turn_new(struct cr_client *client, const char *node, const struct cr_election_times *times)
{
    struct cr_node_turn *turn = cr_new(struct cr_node_turn);
    turn->client = client;
    turn->identity = cr_asprintf("%s_certroll-node-agent", node);
    turn->rules = (struct cr_election){.times = times ? *times : cr_node_turn_times, .identity = turn->identity};
    return turn;
}

void cr_node_turn_free(struct cr_node_turn *turn)
{
    if (!turn)
        return;
    cr_election_dispose(&turn->rules);
    free(turn->identity);
    free(turn);
}

static struct cr_lease_place place_of(const struct cr_node_turn *turn)
{
    return (struct cr_lease_place){turn->client, CR_NODE_TURN_NAMESPACE, CR_NODE_TURN_LEASE};
}

bool cr_node_turn_is_ours(const struct cr_node_turn *turn)
{
    return cr_clock_boot_ms() < cr_election_acts_until_ms(&turn->rules);
}

bool cr_node_turn_is_claimed(const struct cr_node_turn *turn)
{
    return turn->rules.role == CR_ELECTION_LEADER || cr_streq(turn->rules.seen.holder, turn->identity);
}

/* Lost is not for ever here: what had been begun goes on, and the next thing is begun only when it is ours again. */
static void begin_again_if_lost(struct cr_election *rules)
{
    if (rules->role == CR_ELECTION_ENDED)
        rules->role = CR_ELECTION_STANDBY;
}

static bool is_fresh(const struct cr_node_turn *turn)
{
    return cr_node_turn_is_ours(turn) && cr_clock_boot_ms() < turn->rules.renewed_ms + turn->rules.times.retry_ms;
}

static bool say_why_not(const struct cr_node_turn *turn, const struct cr_error *problem, struct cr_error *err)
{
    const char *holder = turn->rules.seen.holder;
    if (problem->kind != CR_ERR_NONE)
        return cr_error_set(err, problem->kind, "the Lease " CR_NODE_TURN_NAMESPACE "/" CR_NODE_TURN_LEASE ": %s",
                            problem->text);
    return cr_error_set(err, CR_ERR_CONFLICT,
                        "the Lease " CR_NODE_TURN_NAMESPACE "/" CR_NODE_TURN_LEASE " is held by %s",
                        holder && *holder ? holder : "another");
}

bool cr_node_turn_take(struct cr_node_turn *turn, struct cr_error *err)
{
    struct cr_error problem = {0};
    begin_again_if_lost(&turn->rules);
    if (is_fresh(turn))
        return true;
    enum cr_election_step step = cr_election_begin(&turn->rules, cr_clock_boot_ms());
    if (step == CR_ELECTION_LOST) { /* it had run out: it is looked at as one that never was ours */
        begin_again_if_lost(&turn->rules);
        step = cr_election_begin(&turn->rules, cr_clock_boot_ms());
    }
    const struct cr_lease_place place = place_of(turn);
    while (step != CR_ELECTION_WAIT && step != CR_ELECTION_LOST)
        step = cr_election_request(&turn->rules, step, &place, &problem);
    return cr_node_turn_is_ours(turn) || say_why_not(turn, &problem, err);
}

bool cr_node_turn_give_up(struct cr_node_turn *turn, struct cr_error *err)
{
    const struct cr_lease_place place = place_of(turn);
    CR_CLEANUP(cr_lease) struct cr_lease lease = {0};
    struct cr_error problem = {0};
    if (!cr_node_turn_is_claimed(turn))
        return true;
    const struct cr_lease_claim claim = cr_election_release(&turn->rules);
    bool gone = cr_lease_update(&place, turn->rules.seen.resource_version, &claim, &lease, &problem);
    /* Somebody has written it since, or taken it away: then it is looked at before anything is written. */
    bool moved = problem.kind == CR_ERR_CONFLICT || problem.kind == CR_ERR_NOT_FOUND;
    if (!gone && !moved)
        return cr_error_set(err, problem.kind, "%s", problem.text);
    cr_election_dispose(&turn->rules);
    turn->rules = (struct cr_election){.times = turn->rules.times, .identity = turn->identity};
    return true;
}
