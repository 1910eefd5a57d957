#include "runtime/election_request.h"

#include "base/clock.h"

static bool send_request(const struct cr_election *election, enum cr_election_step step,
                         const struct cr_lease_place *place, struct cr_lease *lease, struct cr_error *err)
{
    if (step == CR_ELECTION_GET)
        return cr_lease_get(place, lease, err);
    const struct cr_lease_claim claim = cr_election_claim(election);
    if (step == CR_ELECTION_CREATE)
        return cr_lease_create(place, &claim, lease, err);
    return cr_lease_update(place, election->seen.resource_version, &claim, lease, err);
}

enum cr_election_step cr_election_request(struct cr_election *election, enum cr_election_step step,
                                          const struct cr_lease_place *place, struct cr_error *err)
{
    CR_CLEANUP(cr_lease) struct cr_lease lease = {0};
    struct cr_error problem = {0};
    int64_t began_ms = cr_clock_boot_ms();
    bool ok = send_request(election, step, place, &lease, &problem);
    int64_t now_ms = cr_clock_boot_ms();
    if (ok)
        return step == CR_ELECTION_GET ? cr_election_got(election, &lease, now_ms)
                                       : cr_election_wrote(election, &lease, began_ms, now_ms);
    if (problem.kind == CR_ERR_NOT_FOUND && step != CR_ELECTION_CREATE)
        return cr_election_not_found(election, now_ms);
    *err = problem;
    return cr_election_failed(election, problem.kind, now_ms);
}
