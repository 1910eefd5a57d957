#include "runtime/election.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"

static const struct cr_election_times times = {.lease_ms = 15000, .renew_ms = 10000, .retry_ms = 2000};

static void times_must_leave_room_for_each_other(void **state)
{
    (void)state;
    static const struct {
        struct cr_election_times times;
        const char *problem; /* NULL: valid */
    } cases[] = {
        {{15000, 10000, 2000}, NULL},
        {{15000, 12000, 2000}, NULL},
        {{3000, 2000, 500}, NULL},
        {{137000, 107000, 26000}, NULL}, /* OpenShift's */
        {{15000, 15000, 2000}, "the lease duration (15s) must be longer than the renew deadline (15s)"},
        {{10000, 15000, 2000}, "the lease duration (10s) must be longer than the renew deadline (15s)"},
        {{15000, 2400, 2000}, "the renew deadline (2s400ms) must be longer than 1.2 times the retry period (2s)"},
        {{15000, 10000, 0}, "the retry period must be more than 0s"},
        {{0, 0, 0}, "the retry period must be more than 0s"},
        {{15500, 10000, 2000}, "the lease duration must be whole seconds, as a Lease has them"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        bool ok = cr_election_check_times(&cases[i].times, &err);
        if (ok != !cases[i].problem || (!ok && strcmp(err.text, cases[i].problem) != 0))
            fail_msg("%zu: %s", i, ok ? "valid" : err.text);
    }
}

/* --- games: what happens at which time, and what the rules answer --- */

enum outcome {
    END = 0,
    BEGIN,  /* a round begins */
    GOT,    /* the Lease says: holder, version, duration */
    ABSENT, /* there is none */
    WROTE,  /* our write was done; begun `took` ms ago */
    FAILED, /* with kind */
};

struct move {
    int64_t at_ms;
    enum outcome outcome;
    enum cr_election_step want;
    const char *holder;  /* GOT; "me" is us */
    const char *version; /* GOT, WROTE: another version is another record */
    int64_t duration_ms; /* GOT; 0: 15 s */
    int64_t took_ms;     /* WROTE */
    enum cr_error_kind kind;
};

#define W CR_ELECTION_WAIT
#define G CR_ELECTION_GET
#define C CR_ELECTION_CREATE
#define U CR_ELECTION_UPDATE
#define L CR_ELECTION_LOST

static struct cr_lease lease_of(const struct move *move)
{
    return (struct cr_lease){
        .holder = cr_strdup(move->holder ? move->holder : "me"),
        .duration_ms = move->duration_ms ? move->duration_ms : 15000,
        .acquired = cr_strdup("then"),
        .record = cr_asprintf("%s %s", move->holder ? move->holder : "me", move->version),
        .uid = cr_strdup("u"),
        .resource_version = cr_strdup(move->version),
    };
}

static enum cr_election_step play(struct cr_election *election, const struct move *move)
{
    struct cr_lease lease;
    switch (move->outcome) {
    case BEGIN:
        return cr_election_begin(election, move->at_ms);
    case GOT:
        lease = lease_of(move);
        return cr_election_got(election, &lease, move->at_ms);
    case WROTE:
        lease = lease_of(move);
        return cr_election_wrote(election, &lease, move->at_ms - move->took_ms, move->at_ms);
    case ABSENT:
        return cr_election_not_found(election, move->at_ms);
    default:
        return cr_election_failed(election, move->kind, move->at_ms);
    }
}

/* Became leader at 0: the beginning of many games. */
#define LEADS                                                                                                          \
    {0, BEGIN, G}, {0, ABSENT, C},                                                                                     \
    {                                                                                                                  \
        0, WROTE, W, .version = "1"                                                                                    \
    }

static const struct {
    const char *rule;
    struct move moves[16];
    enum cr_election_role role; /* at the end */
    int64_t acts_until_ms;
} games[] = {
    {"nobody ever led: created", {LEADS}, CR_ELECTION_LEADER, 10000},
    {"another creates it first: stand by",
     {{0, BEGIN, G}, {0, ABSENT, C}, {5, FAILED, W, .kind = CR_ERR_CONFLICT}},
     CR_ELECTION_STANDBY,
     0},
    {"given up: taken at once",
     {{0, BEGIN, G}, {1, GOT, U, "", "7", 1000}, {9, WROTE, W, .version = "8", .took_ms = 5}},
     CR_ELECTION_LEADER,
     10004},
    {"given up, and another takes it first: stand by",
     {{0, BEGIN, G}, {1, GOT, U, "", "7", 1000}, {9, FAILED, W, .kind = CR_ERR_CONFLICT}},
     CR_ELECTION_STANDBY,
     0},
    {"held: its whole time is waited for, counted from when we saw it",
     {{100, BEGIN, G},
      {100, GOT, W, "other", "1"},
      {9000, BEGIN, G},
      {9000, GOT, W, "other", "1"},
      {15099, BEGIN, G},
      {15099, GOT, W, "other", "1"},
      {15100, BEGIN, G},
      {15100, GOT, U, "other", "1"},
      {15110, WROTE, W, .version = "2", .took_ms = 10}},
     CR_ELECTION_LEADER,
     25100},
    {"renewed meanwhile: its time begins anew",
     {{0, BEGIN, G},
      {0, GOT, W, "other", "1"},
      {14999, BEGIN, G},
      {14999, GOT, W, "other", "2"},
      {29998, BEGIN, G},
      {29998, GOT, W, "other", "2"},
      {29999, BEGIN, G},
      {29999, GOT, U, "other", "2"}},
     CR_ELECTION_STANDBY,
     0},
    {"the time is the holder's own",
     {{0, BEGIN, G},
      {0, GOT, W, "other", "1", 60000},
      {59999, BEGIN, G},
      {59999, GOT, W, "other", "1", 60000},
      {60000, BEGIN, G},
      {60000, GOT, U, "other", "1", 60000}},
     CR_ELECTION_STANDBY,
     0},
    {"a holder that says no time has ours",
     {{0, BEGIN, G},
      {0, GOT, W, "other", "1", -1},
      {14999, BEGIN, G},
      {14999, GOT, W, "other", "1", -1},
      {15000, BEGIN, G},
      {15000, GOT, U, "other", "1", -1}},
     CR_ELECTION_STANDBY,
     0},
    {"deleted while held is not given up",
     {{0, BEGIN, G},
      {0, GOT, W, "other", "1"},
      {2000, BEGIN, G},
      {2000, ABSENT, W},
      {15000, BEGIN, G},
      {15000, ABSENT, C}},
     CR_ELECTION_STANDBY,
     0},
    {"what is out of reach says nothing: what was seen last still counts",
     {{0, BEGIN, G},
      {0, GOT, W, "other", "1"},
      {14000, BEGIN, G},
      {14003, FAILED, W, .kind = CR_ERR_TRANSIENT},
      {16000, BEGIN, G},
      {16000, GOT, U, "other", "1"}},
     CR_ELECTION_STANDBY,
     0},
    {"our own write whose answer was lost: it is ours",
     {{0, BEGIN, G},
      {0, ABSENT, C},
      {3000, FAILED, W, .kind = CR_ERR_TRANSIENT},
      {5000, BEGIN, G},
      {5000, GOT, U, "me", "1"},
      {5001, WROTE, W, .version = "2", .took_ms = 1}},
     CR_ELECTION_LEADER,
     15000},
    {"an answer that came too late makes no leader",
     {{0, BEGIN, G}, {0, ABSENT, C}, {10000, WROTE, W, .version = "1", .took_ms = 10000}},
     CR_ELECTION_STANDBY,
     0},
    {"a leader renews without reading",
     {LEADS, {2000, BEGIN, U}, {2001, WROTE, W, .version = "2", .took_ms = 1}},
     CR_ELECTION_LEADER,
     12000},
    {"time counts from when the renewal was begun",
     {LEADS, {2000, BEGIN, U}, {4500, WROTE, W, .version = "2", .took_ms = 2500}},
     CR_ELECTION_LEADER,
     12000},
    {"trouble: tried again until the deadline, then lost",
     {LEADS,
      {2000, BEGIN, U},
      {5000, FAILED, W, .kind = CR_ERR_TRANSIENT},
      {7000, BEGIN, U},
      {9999, FAILED, W, .kind = CR_ERR_TRANSIENT},
      {10000, BEGIN, L}},
     CR_ELECTION_ENDED,
     0},
    {"trouble that ends in time",
     {LEADS,
      {2000, BEGIN, U},
      {5000, FAILED, W, .kind = CR_ERR_TRANSIENT},
      {7000, BEGIN, U},
      {7001, WROTE, W, .version = "2", .took_ms = 1}},
     CR_ELECTION_LEADER,
     17000},
    {"the deadline passes within a request",
     {LEADS, {9000, BEGIN, U}, {10001, FAILED, L, .kind = CR_ERR_TRANSIENT}},
     CR_ELECTION_ENDED,
     0},
    {"refused, too", {LEADS, {9000, BEGIN, U}, {10001, FAILED, L, .kind = CR_ERR_FORBIDDEN}}, CR_ELECTION_ENDED, 0},
    {"stopped for a while: found at the next turn", {LEADS, {20000, BEGIN, L}}, CR_ELECTION_ENDED, 0},
    {"stopped within a renewal whose answer waits",
     {LEADS, {2000, BEGIN, U}, {22000, WROTE, L, .version = "2", .took_ms = 20000}},
     CR_ELECTION_ENDED,
     0},
    {"another has it: lost, however much time there was",
     {LEADS, {2000, BEGIN, U}, {2001, FAILED, G, .kind = CR_ERR_CONFLICT}, {2002, GOT, L, "other", "2"}},
     CR_ELECTION_ENDED,
     0},
    {"somebody emptied it: lost, since another may take it",
     {LEADS, {2000, BEGIN, U}, {2001, FAILED, G, .kind = CR_ERR_CONFLICT}, {2002, GOT, L, "", "2"}},
     CR_ELECTION_ENDED,
     0},
    {"a conflict with ourselves (an answer lost, a label): go on",
     {LEADS,
      {2000, BEGIN, U},
      {2001, FAILED, G, .kind = CR_ERR_CONFLICT},
      {2002, GOT, U, "me", "2"},
      {2003, WROTE, W, .version = "3", .took_ms = 1}},
     CR_ELECTION_LEADER,
     12002},
    {"one look a turn: conflicts do not make it spin",
     {LEADS,
      {2000, BEGIN, U},
      {2001, FAILED, G, .kind = CR_ERR_CONFLICT},
      {2002, GOT, U, "me", "2"},
      {2003, FAILED, W, .kind = CR_ERR_CONFLICT}},
     CR_ELECTION_LEADER,
     10000},
    {"deleted under a leader: made again",
     {LEADS, {2000, BEGIN, U}, {2001, ABSENT, C}, {2002, WROTE, W, .version = "9", .took_ms = 1}},
     CR_ELECTION_LEADER,
     12001},
    {"deleted, and another made it: lost at the next look",
     {LEADS,
      {2000, BEGIN, U},
      {2001, ABSENT, C},
      {2002, FAILED, W, .kind = CR_ERR_CONFLICT},
      {4000, BEGIN, U},
      {4001, FAILED, G, .kind = CR_ERR_CONFLICT},
      {4002, GOT, L, "other", "9"}},
     CR_ELECTION_ENDED,
     0},
    {"who has lost stays lost", {LEADS, {20000, BEGIN, L}, {20001, BEGIN, L}}, CR_ELECTION_ENDED, 0},
};

static void the_game(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(games); i++) {
        struct cr_election election = {.times = times, .identity = "me"};
        for (const struct move *move = games[i].moves; move->outcome != END; move++) {
            enum cr_election_step step = play(&election, move);
            if (step != move->want)
                fail_msg("%s: move %td: %d, not %d", games[i].rule, move - games[i].moves, step, move->want);
        }
        if (election.role != games[i].role || cr_election_acts_until_ms(&election) != games[i].acts_until_ms)
            fail_msg("%s: role %d, acts until %lld", games[i].rule, election.role,
                     (long long)cr_election_acts_until_ms(&election));
        cr_election_dispose(&election);
    }
}

static void a_claim_counts_transitions_and_keeps_when_it_was_acquired(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *holder; /* NULL: no Lease was ever seen */
        int64_t transitions;
        int64_t want;
        bool acquired;
    } cases[] = {
        {"created", NULL, 0, 0, false},
        {"renewed", "me", 3, 3, true},
        {"taken over", "other", 3, 4, false},
        {"taken up after it was given up", "", 3, 4, false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_election election = {.times = times, .identity = "me"};
        if (cases[i].holder) {
            struct cr_lease lease = lease_of(&(struct move){.holder = cases[i].holder, .version = "1"});
            lease.transitions = cases[i].transitions;
            enum cr_election_step ignored = cr_election_got(&election, &lease, 0);
            (void)ignored;
        }
        struct cr_lease_claim claim = cr_election_claim(&election);
        struct cr_lease_claim release = cr_election_release(&election);
        if (strcmp(claim.holder, "me") != 0 || claim.transitions != cases[i].want || claim.duration_ms != 15000 ||
            !!claim.acquired != cases[i].acquired)
            fail_msg("%s: %s, %lld", cases[i].rule, claim.holder, (long long)claim.transitions);
        if (*release.holder || release.duration_ms != 1000 || release.transitions != cases[i].transitions)
            fail_msg("%s: released as %s, %lld", cases[i].rule, release.holder, (long long)release.transitions);
        cr_election_dispose(&election);
    }
}

static void pauses_are_spread_and_oversleep_no_deadline(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        struct move moves[6];
        int64_t now_ms;
        double random;
        int64_t want;
    } cases[] = {
        {"a candidate, no jitter", {{0, BEGIN, G}, {0, FAILED, W}}, 0, 0, 2000},
        {"a candidate, all of it", {{0, BEGIN, G}, {0, FAILED, W}}, 0, 0.999, 4397},
        {"held for long", {{0, BEGIN, G}, {0, GOT, W, "other", "1"}}, 0, 0.5, 3200},
        {"held, but for less than the pause", {{0, BEGIN, G}, {0, GOT, W, "other", "1"}}, 14000, 0.5, 1000},
        {"expired, and another was faster", {{0, BEGIN, G}, {0, GOT, W, "other", "1"}}, 15000, 0.5, 3200},
        {"given up, and another was faster", {{0, BEGIN, G}, {0, GOT, U, "", "1"}}, 0, 0.5, 3200},
        {"a leader that has renewed, without jitter", {LEADS}, 0, 0.5, 5000},
        {"counted from when the renewal was begun", {LEADS}, 1200, 0.5, 3800},
        {"whose answer took longer than the pause", {LEADS}, 5500, 0.5, 2000},
        {"whose renewal failed", {LEADS, {5000, BEGIN, U}, {5003, FAILED, W}}, 5003, 0.5, 2000},
        {"near its deadline", {LEADS}, 11500, 0.5, 500},
        {"beyond it", {LEADS}, 12500, 0.5, -500},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_election election = {.times = cr_election_default_times, .identity = "me"};
        for (const struct move *move = cases[i].moves; move->outcome != END; move++)
            assert_int_equal(play(&election, move), move->want);
        int64_t pause_ms = cr_election_pause_ms(&election, cases[i].now_ms, cases[i].random);
        if (pause_ms != cases[i].want)
            fail_msg("%s: %lld", cases[i].rule, (long long)pause_ms);
        cr_election_dispose(&election);
    }
}

static void a_pause_leaves_three_tries(void **state)
{
    (void)state;
    static const struct {
        struct cr_election_times times;
        int64_t want_ms;
    } cases[] = {
        {{15000, 12000, 2000}, 5000},     {{15000, 10000, 2000}, 4000}, /* then 6 s and 8 s: the time is over at 10 s */
        {{137000, 107000, 26000}, 29000}, {{6000, 5000, 500}, 1250},    {{15000, 5000, 2000}, 2000},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_election election = {.times = cases[i].times, .identity = "me"};
        static const struct move leads[] = {LEADS};
        for (size_t k = 0; k < cr_array_len(leads); k++)
            assert_int_equal(play(&election, &leads[k]), leads[k].want);
        assert_int_equal(cr_election_pause_ms(&election, 0, 0.5), cases[i].want_ms);
        cr_election_dispose(&election);
    }
}

static void an_unanswered_request_leaves_a_second_try(void **state)
{
    (void)state;
    static const struct {
        struct cr_election_times times;
        int64_t want_ms;
    } cases[] = {
        {{15000, 12000, 2000}, 3000}, {{15000, 10000, 2000}, 3000},
        {{6000, 5000, 500}, 1875}, /* from 1.25 s on, and again from 3.625 s on */
        {{4000, 3000, 300}, 1125},    {{5000, 3000, 700}, 1050},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++)
        assert_int_equal(cr_election_request_ms(&cases[i].times), cases[i].want_ms);
}

/* Each of these moves by itself is allowed to any process at any time; together they must never let two act. */
static void no_two_act_at_a_time(void **state)
{
    (void)state;
    enum { PLAYERS = 3, MOVES = 200000 };
    static const char *const names[PLAYERS] = {"a", "b", "c"};
    struct cr_election players[PLAYERS] = {{{0}}};
    int64_t next_ms[PLAYERS] = {0};
    char holder[2] = "";
    int64_t version = 0; /* of the one Lease; 0: none */
    int64_t now_ms = 1;
    unsigned elected = 0;
    srand(4711);
    for (int i = 0; i < PLAYERS; i++)
        players[i] = (struct cr_election){.times = cr_election_default_times, .identity = names[i]};
    for (int i = 0; i < MOVES; i++) {
        int p = rand() % PLAYERS;
        struct cr_election *me = &players[p];
        now_ms += rand() % 300;
        if (rand() % 2000 == 0) /* the player is stopped for a while */
            next_ms[p] = now_ms + rand() % 60000;
        if (now_ms < next_ms[p])
            continue;
        if (me->role == CR_ELECTION_ENDED) { /* it starts again */
            cr_election_dispose(me);
            *me = (struct cr_election){.times = cr_election_default_times, .identity = names[p]};
        }
        bool led = me->role == CR_ELECTION_LEADER;
        enum cr_election_step step = cr_election_begin(me, now_ms);
        while (step != W && step != L) {
            int64_t began_ms = now_ms;
            now_ms += rand() % 100;
            cr_autofree char *seen = cr_asprintf("%lld", (long long)version);
            struct move move = {.holder = holder, .version = seen};
            bool fails = rand() % 10 == 0;
            bool same = cr_streq(me->seen.resource_version, seen);
            if (fails && rand() % 2) {
                step = cr_election_failed(me, CR_ERR_TRANSIENT, now_ms);
                continue;
            }
            if (step == G) {
                struct cr_lease lease = lease_of(&move);
                step = version ? cr_election_got(me, &lease, now_ms) : cr_election_not_found(me, now_ms);
                if (!version)
                    cr_lease_dispose(&lease);
                continue;
            }
            if (step == C ? version != 0 : !same) {
                step = cr_election_failed(me, CR_ERR_CONFLICT, now_ms);
                continue;
            }
            holder[0] = names[p][0];
            version++;
            if (fails) { /* done, but the answer is lost */
                step = cr_election_failed(me, CR_ERR_TRANSIENT, now_ms);
                continue;
            }
            cr_autofree char *written = cr_asprintf("%lld", (long long)version);
            struct cr_lease lease = lease_of(&(struct move){.holder = holder, .version = written});
            step = cr_election_wrote(me, &lease, began_ms, now_ms);
        }
        next_ms[p] = now_ms + cr_election_pause_ms(me, now_ms, 0.5);
        elected += !led && me->role == CR_ELECTION_LEADER;
        int acting = 0;
        for (int k = 0; k < PLAYERS; k++)
            acting += cr_election_acts_until_ms(&players[k]) > now_ms;
        if (acting > 1)
            fail_msg("%d act at %lld, move %d", acting, (long long)now_ms, i);
    }
    assert_true(elected > 20);
    for (int i = 0; i < PLAYERS; i++)
        cr_election_dispose(&players[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_must_leave_room_for_each_other),
        cmocka_unit_test(the_game),
        cmocka_unit_test(a_claim_counts_transitions_and_keeps_when_it_was_acquired),
        cmocka_unit_test(pauses_are_spread_and_oversleep_no_deadline),
        cmocka_unit_test(a_pause_leaves_three_tries),
        cmocka_unit_test(an_unanswered_request_leaves_a_second_try),
        cmocka_unit_test(no_two_act_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
