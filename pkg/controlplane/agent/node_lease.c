#include "controlplane/agent/node_lease.h"

#include <stdlib.h>

#include "api/node_report.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "kube/lease.h"
#include "runtime/election_request.h"

const struct cr_election_times cr_node_lease_times = {.lease_ms = 30000, .renew_ms = 20000, .retry_ms = 5000};

struct cr_node_lease {
    struct cr_client *client;
    char *identity;
    struct cr_election rules;
};

struct cr_node_lease *cr_node_lease_new(struct cr_client *client, const char *node,
                                        const struct cr_election_times *times)
{
    struct cr_node_lease *lease = cr_new(struct cr_node_lease);
    lease->client = client;
    lease->identity = cr_asprintf("%s_certroll-node-agent", node);
    lease->rules = (struct cr_election){.times = times ? *times : cr_node_lease_times, .identity = lease->identity};
    return lease;
}

void cr_node_lease_free(struct cr_node_lease *lease)
{
    if (!lease)
        return;
    cr_election_dispose(&lease->rules);
    free(lease->identity);
    free(lease);
}

static struct cr_lease_place place_of(const struct cr_node_lease *lease)
{
    return (struct cr_lease_place){lease->client, CR_NODE_LEASE_NAMESPACE, CR_NODE_LEASE_NAME};
}

bool cr_node_lease_is_held(const struct cr_node_lease *lease)
{
    return cr_clock_boot_ms() < cr_election_acts_until_ms(&lease->rules);
}

bool cr_node_lease_is_claimed(const struct cr_node_lease *lease)
{
    return lease->rules.role == CR_ELECTION_LEADER || cr_streq(lease->rules.seen.holder, lease->identity);
}

/* Lost is not for ever here: what had been begun goes on, and the next thing is begun only when it is ours again. */
static void begin_again_if_lost(struct cr_election *rules)
{
    if (rules->role == CR_ELECTION_ENDED)
        rules->role = CR_ELECTION_STANDBY;
}

static bool is_fresh(const struct cr_node_lease *lease)
{
    return cr_node_lease_is_held(lease) && cr_clock_boot_ms() < lease->rules.renewed_ms + lease->rules.times.retry_ms;
}

static bool explain(const struct cr_node_lease *lease, const struct cr_error *problem, struct cr_error *err)
{
    const char *holder = lease->rules.seen.holder;
    if (problem->kind != CR_ERR_NONE)
        return cr_error_set(err, problem->kind, "the Lease " CR_NODE_LEASE_NAMESPACE "/" CR_NODE_LEASE_NAME ": %s",
                            problem->text);
    return cr_error_set(err, CR_ERR_CONFLICT,
                        "the Lease " CR_NODE_LEASE_NAMESPACE "/" CR_NODE_LEASE_NAME " is held by %s",
                        holder && *holder ? holder : "another");
}

/* problem: of the last request; none of an earlier one that the round got over. */
static void go_round(struct cr_node_lease *lease, struct cr_error *problem)
{
    begin_again_if_lost(&lease->rules);
    enum cr_election_step step = cr_election_begin(&lease->rules, cr_clock_boot_ms());
    if (step == CR_ELECTION_LOST) { /* it had run out: it is looked at as one that never was ours */
        begin_again_if_lost(&lease->rules);
        step = cr_election_begin(&lease->rules, cr_clock_boot_ms());
    }
    const struct cr_lease_place place = place_of(lease);
    while (step != CR_ELECTION_WAIT && step != CR_ELECTION_LOST) {
        *problem = (struct cr_error){0};
        step = cr_election_request(&lease->rules, step, &place, problem);
    }
}

bool cr_node_lease_acquire(struct cr_node_lease *lease, struct cr_error *err)
{
    struct cr_error problem = {0};
    if (is_fresh(lease))
        return true;
    go_round(lease, &problem);
    return cr_node_lease_is_held(lease) || explain(lease, &problem, err);
}

bool cr_node_lease_renew(struct cr_node_lease *lease, struct cr_error *err)
{
    struct cr_error problem = {0};
    go_round(lease, &problem);
    /* Still held from before is not enough. */
    return (cr_node_lease_is_held(lease) && problem.kind == CR_ERR_NONE) || explain(lease, &problem, err);
}

bool cr_node_lease_release(struct cr_node_lease *lease, struct cr_error *err)
{
    const struct cr_lease_place place = place_of(lease);
    CR_CLEANUP(cr_lease) struct cr_lease written = {0};
    struct cr_error problem = {0};
    if (!cr_node_lease_is_claimed(lease))
        return true;
    const struct cr_lease_claim claim = cr_election_release(&lease->rules);
    bool gone = cr_lease_update(&place, lease->rules.seen.resource_version, &claim, &written, &problem);
    /* Another process has written or deleted it since: then it is looked at before anything is written. */
    bool moved = problem.kind == CR_ERR_CONFLICT || problem.kind == CR_ERR_NOT_FOUND;
    if (!gone && !moved)
        return cr_error_set(err, problem.kind, "%s", problem.text);
    cr_election_dispose(&lease->rules);
    lease->rules = (struct cr_election){.times = lease->rules.times, .identity = lease->identity};
    return true;
}
