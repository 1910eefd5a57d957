/* The rules of a leader election by Lease, those of client-go
 * (https://pkg.go.dev/k8s.io/client-go/tools/leaderelection): pure, given the time. Whether a Lease has expired is
 * judged by how long *we* have seen its record unchanged: no two machines' clocks are ever compared.
 *
 * One round is cr_election_begin, then a request and its outcome until the step is Wait or Lost. Where the rules are
 * stricter than client-go's: a leader that finds another in the Lease is Lost at once; its time counts from when its
 * last renewal was begun, not answered; and a Lease that is deleted while another holds it is free only when that one's
 * time is over. Where they are laxer: a leader that has just renewed comes back after two and a half retry periods
 * (less, when three tries would not be left after that), as renewals are nearly all that a process costs that has
 * nothing to do. */
#ifndef CR_RUNTIME_ELECTION_H
#define CR_RUNTIME_ELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/lease.h"

struct cr_election_times {
    int64_t lease_ms; /* others wait so long before they take over; whole seconds */
    int64_t renew_ms; /* the leader gives up when it could not renew for so long */
    int64_t retry_ms; /* between two tries, of candidates and of a leader after a failed renewal */
};
/* 15 s, 12 s, 2 s. */
extern const struct cr_election_times cr_election_default_times;
/* lease > renew > 1.2 × retry > 0. Invalid, in words. */
bool cr_election_check_times(const struct cr_election_times *times, struct cr_error *err) CR_MUST_USE;

/* How long a request may take: 3 s, or less, so that a leader without an answer to its renewal has a second try. */
int64_t cr_election_request_ms(const struct cr_election_times *times);

enum cr_election_role { CR_ELECTION_STANDBY, CR_ELECTION_LEADER, CR_ELECTION_ENDED };

enum cr_election_step {
    CR_ELECTION_WAIT,   /* cr_election_pause_ms, then the next round */
    CR_ELECTION_GET,    /* then cr_election_got, _absent (NotFound) or _failed */
    CR_ELECTION_CREATE, /* then cr_election_wrote or _failed */
    CR_ELECTION_UPDATE, /* of seen.resource_version, then cr_election_wrote, _absent (NotFound) or _failed */
    CR_ELECTION_LOST,   /* this process must not act any more */
};

/* All times in ms of cr_clock_boot_ms. */
struct cr_election {
    struct cr_election_times times;
    const char *identity; /* borrowed */
    enum cr_election_role role;
    struct cr_lease seen;      /* as last read or written; record NULL: never */
    int64_t seen_ms;           /* when its record was first seen as it is */
    int64_t renewed_ms;        /* leader: when the last write that succeeded was begun */
    bool looked_in_this_round; /* the Lease was read */
};

void cr_election_dispose(struct cr_election *election);

enum cr_election_step cr_election_begin(struct cr_election *election, int64_t now_ms) CR_MUST_USE;
/* Take what lease owns. */
enum cr_election_step cr_election_got(struct cr_election *election, struct cr_lease *lease, int64_t now_ms) CR_MUST_USE;
enum cr_election_step cr_election_wrote(struct cr_election *election, struct cr_lease *lease, int64_t began_ms,
                                        int64_t now_ms) CR_MUST_USE;
enum cr_election_step cr_election_not_found(struct cr_election *election, int64_t now_ms) CR_MUST_USE;
enum cr_election_step cr_election_failed(struct cr_election *election, enum cr_error_kind kind,
                                         int64_t now_ms) CR_MUST_USE;

/* What a write now says; borrowed from election. */
struct cr_lease_claim cr_election_claim(const struct cr_election *election);
/* The same for giving it up: no holder, for a second. */
struct cr_lease_claim cr_election_release(const struct cr_election *election);
/* The leader may begin something until then; 0 when it does not lead. */
int64_t cr_election_acts_until_ms(const struct cr_election *election);
/* Until the next round; not positive: at once. random: evenly in [0, 1), so that candidates do not come in one beat. */
int64_t cr_election_pause_ms(const struct cr_election *election, int64_t now_ms, double random);

#endif
