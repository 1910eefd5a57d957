#include "runtime/election.h"

#include "base/clock.h"
#include "base/strings.h"

/* Those of Kubernetes' own components, but for the renew deadline: a pause of 5 s and 12 s leave as many tries as 2 s
 * and 10 s would, counted from the beginning of a renewal. */
const struct cr_election_times cr_election_default_times = {.lease_ms = 15000, .renew_ms = 12000, .retry_ms = 2000};

/* client-go's JitterFactor. */
static const double jitter = 1.2;

enum {
    TRIES_LEFT = 3, /* of a leader after a failed renewal, until its time is over */
    REQUEST_MS = 3000,
};

static bool must_be_longer(const char *what, int64_t ms, const char *than, int64_t other_ms, struct cr_error *err)
{
    char longer[CR_TIME_TEXT];
    char shorter[CR_TIME_TEXT];
    cr_duration_format(ms, longer);
    cr_duration_format(other_ms, shorter);
    return cr_error_set(err, CR_ERR_INVALID, "the %s (%s) must be longer than %s (%s)", what, longer, than, shorter);
}

bool cr_election_check_times(const struct cr_election_times *times, struct cr_error *err)
{
    if (times->retry_ms <= 0)
        return cr_error_set(err, CR_ERR_INVALID, "the retry period must be more than 0s");
    if (times->lease_ms % 1000)
        return cr_error_set(err, CR_ERR_INVALID, "the lease duration must be whole seconds, as a Lease has them");
    if (times->lease_ms <= times->renew_ms)
        return must_be_longer("lease duration", times->lease_ms, "the renew deadline", times->renew_ms, err);
    if ((double)times->renew_ms <= jitter * (double)times->retry_ms)
        return must_be_longer("renew deadline", times->renew_ms, "1.2 times the retry period", times->retry_ms, err);
    return true;
}

void cr_election_dispose(struct cr_election *election)
{
    cr_lease_dispose(&election->seen);
}

/* --- what is known --- */

static void see(struct cr_election *election, struct cr_lease *lease, int64_t now_ms)
{
    if (!cr_streq(election->seen.record, lease->record) || !cr_streq(election->seen.uid, lease->uid))
        election->seen_ms = now_ms;
    cr_lease_dispose(&election->seen);
    election->seen = *lease;
    *lease = (struct cr_lease){0};
}

static bool is_ours(const struct cr_election *election)
{
    return cr_streq(election->seen.holder, election->identity);
}

static bool is_held_by_another(const struct cr_election *election)
{
    return election->seen.holder && *election->seen.holder && !is_ours(election);
}

static int64_t expires_ms(const struct cr_election *election)
{
    int64_t duration_ms = election->seen.duration_ms;
    return election->seen_ms + (duration_ms > 0 ? duration_ms : election->times.lease_ms);
}

static bool must_wait_for_holder(const struct cr_election *election, int64_t now_ms)
{
    return is_held_by_another(election) && now_ms < expires_ms(election);
}

static bool out_of_time(const struct cr_election *election, int64_t now_ms)
{
    return election->role == CR_ELECTION_LEADER && now_ms >= election->renewed_ms + election->times.renew_ms;
}

static enum cr_election_step lose(struct cr_election *election)
{
    election->role = CR_ELECTION_ENDED;
    return CR_ELECTION_LOST;
}

/* --- steps --- */

enum cr_election_step cr_election_begin(struct cr_election *election, int64_t now_ms)
{
    election->looked_in_this_round = false;
    if (election->role == CR_ELECTION_ENDED || out_of_time(election, now_ms))
        return lose(election);
    /* A leader that knows its Lease saves the reading: the resourceVersion shows when another has written. */
    return election->role == CR_ELECTION_LEADER ? CR_ELECTION_UPDATE : CR_ELECTION_GET;
}

enum cr_election_step cr_election_got(struct cr_election *election, struct cr_lease *lease, int64_t now_ms)
{
    election->looked_in_this_round = true;
    see(election, lease, now_ms);
    if (out_of_time(election, now_ms) || (election->role == CR_ELECTION_LEADER && !is_ours(election)))
        return lose(election);
    return must_wait_for_holder(election, now_ms) ? CR_ELECTION_WAIT : CR_ELECTION_UPDATE;
}

enum cr_election_step cr_election_not_found(struct cr_election *election, int64_t now_ms)
{
    election->looked_in_this_round = true;
    if (out_of_time(election, now_ms))
        return lose(election);
    /* Deleted is not given up: its holder may not have noticed yet. */
    return must_wait_for_holder(election, now_ms) ? CR_ELECTION_WAIT : CR_ELECTION_CREATE;
}

enum cr_election_step cr_election_wrote(struct cr_election *election, struct cr_lease *lease, int64_t began_ms,
                                        int64_t now_ms)
{
    see(election, lease, now_ms);
    if (!is_ours(election)) /* another program changes what is written: an admission webhook */
        return election->role == CR_ELECTION_LEADER ? lose(election) : CR_ELECTION_WAIT;
    if (now_ms >= began_ms + election->times.renew_ms) /* answered too late to be worth anything */
        return election->role == CR_ELECTION_LEADER ? lose(election) : CR_ELECTION_WAIT;
    election->role = CR_ELECTION_LEADER;
    election->renewed_ms = began_ms;
    return CR_ELECTION_WAIT;
}

enum cr_election_step cr_election_failed(struct cr_election *election, enum cr_error_kind kind, int64_t now_ms)
{
    if (out_of_time(election, now_ms))
        return lose(election);
    /* A leader's conflict: another took it, or our own write did and its answer was lost. Standbys come again in the
     * next round. */
    if (kind == CR_ERR_CONFLICT && election->role == CR_ELECTION_LEADER && !election->looked_in_this_round)
        return CR_ELECTION_GET;
    return CR_ELECTION_WAIT;
}

struct cr_lease_claim cr_election_claim(const struct cr_election *election)
{
    const struct cr_lease *seen = &election->seen;
    struct cr_lease_claim claim = {
        .holder = election->identity,
        .duration_ms = election->times.lease_ms,
        .transitions = seen->transitions,
    };
    if (is_ours(election))
        claim.acquired = seen->acquired;
    else if (seen->record)
        claim.transitions++;
    return claim;
}

struct cr_lease_claim cr_election_release(const struct cr_election *election)
{
    return (struct cr_lease_claim){.holder = "", .duration_ms = 1000, .transitions = election->seen.transitions};
}

int64_t cr_election_acts_until_ms(const struct cr_election *election)
{
    return election->role == CR_ELECTION_LEADER ? election->renewed_ms + election->times.renew_ms : 0;
}

/* Between the beginnings of two renewals, while all goes well. */
static int64_t calm_ms(const struct cr_election_times *times)
{
    int64_t longest_ms = times->renew_ms - TRIES_LEFT * times->retry_ms;
    int64_t ms = times->retry_ms * 5 / 2;
    ms = ms < longest_ms ? ms : longest_ms;
    return ms > times->retry_ms ? ms : times->retry_ms;
}

int64_t cr_election_request_ms(const struct cr_election_times *times)
{
    int64_t half_ms = (times->renew_ms - calm_ms(times)) / 2;
    return half_ms < REQUEST_MS ? half_ms : REQUEST_MS;
}

static int64_t leader_pause_ms(const struct cr_election *election, int64_t now_ms)
{
    int64_t left_ms = cr_election_acts_until_ms(election) - now_ms;
    int64_t calm_left_ms = election->renewed_ms + calm_ms(&election->times) - now_ms;
    int64_t pause_ms = calm_left_ms > 0 ? calm_left_ms : election->times.retry_ms;
    return left_ms < pause_ms ? left_ms : pause_ms;
}

int64_t cr_election_pause_ms(const struct cr_election *election, int64_t now_ms, double random)
{
    int64_t pause_ms = election->times.retry_ms;
    /* Neither the end of our own time nor that of the holder's is overslept. */
    if (election->role == CR_ELECTION_LEADER)
        return leader_pause_ms(election, now_ms);
    pause_ms += (int64_t)(random * jitter * (double)pause_ms);
    int64_t due_ms = expires_ms(election);
    return must_wait_for_holder(election, now_ms) && due_ms - now_ms < pause_ms ? due_ms - now_ms : pause_ms;
}
