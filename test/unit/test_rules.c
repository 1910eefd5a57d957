#include "drain/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"

enum { START = 1000000, NEVER = -1, NONE = -1 };

static const char *const step_names[] = {"WAIT", "BEGIN", "LOOK", "DRAINED", "TIMED_OUT"};

/* --- one decision --- */

/* Times after the start; NEVER as it is. */
struct decision {
    const char *rule;
    struct cr_drain_rules rules;
    int64_t begun, next_begin, asked, looked;
    int64_t open; /* NONE: not known */
    bool ended;
    int64_t now;
    enum cr_drain_step step;
    int64_t until; /* of WAIT */
};

/*                 delay  least  time-out  interval  open */
#define PLAIN                                                                                                          \
    {                                                                                                                  \
        0, 0, 60000, 1000, 0                                                                                           \
    }
#define LEAST                                                                                                          \
    {                                                                                                                  \
        0, 10000, 60000, 4000, 0                                                                                       \
    }
#define DELAYED                                                                                                        \
    {                                                                                                                  \
        5000, 10000, 60000, 1000, 0                                                                                    \
    }
#define SOME_OPEN                                                                                                      \
    {                                                                                                                  \
        0, 0, 60000, 1000, 5                                                                                           \
    }

static const struct decision decisions[] = {
    {"it begins at once", PLAIN, NEVER, 0, NEVER, NEVER, NONE, false, 0, CR_DRAIN_BEGIN, 0},
    {"it begins after the delay", DELAYED, NEVER, 0, NEVER, NEVER, NONE, false, 0, CR_DRAIN_WAIT, 5000},
    {"it begins after the delay", DELAYED, NEVER, 0, NEVER, NEVER, NONE, false, 4999, CR_DRAIN_WAIT, 5000},
    {"it begins after the delay", DELAYED, NEVER, 0, NEVER, NEVER, NONE, false, 5000, CR_DRAIN_BEGIN, 0},
    {"a failure is not repeated at once", PLAIN, NEVER, 200, NEVER, NEVER, NONE, false, 100, CR_DRAIN_WAIT, 200},
    {"a failure is repeated", PLAIN, NEVER, 200, NEVER, NEVER, NONE, false, 200, CR_DRAIN_BEGIN, 0},
    {"no wait is beyond the time-out", PLAIN, NEVER, 61000, NEVER, NEVER, NONE, false, 59500, CR_DRAIN_WAIT, 60000},
    {"who never took the order is not drained", PLAIN, NEVER, 61000, NEVER, NEVER, NONE, false, 60000,
     CR_DRAIN_TIMED_OUT, 0},
    {"what is known before the order counts for nothing", PLAIN, NEVER, 61000, 100, 110, 0, false, 60000,
     CR_DRAIN_TIMED_OUT, 0},
    {"it looks when it has begun", PLAIN, 300, 0, NEVER, NEVER, NONE, false, 300, CR_DRAIN_LOOK, 0},
    {"it looks each interval, from the end of the last look", PLAIN, 0, 0, 500, 600, 3, false, 1599, CR_DRAIN_WAIT,
     1600},
    {"it looks each interval, from the end of the last look", PLAIN, 0, 0, 500, 600, 3, false, 1600, CR_DRAIN_LOOK, 0},
    {"it looks no more often than a proxy can bear",
     {0, 0, 60000, 0, 0},
     0,
     0,
     500,
     600,
     3,
     false,
     600,
     CR_DRAIN_WAIT,
     650},
    {"it looks no more often than a proxy can bear",
     {0, 0, 60000, 0, 0},
     0,
     0,
     500,
     600,
     3,
     false,
     650,
     CR_DRAIN_LOOK,
     0},
    {"none is open", PLAIN, 0, 0, 500, 600, 0, false, 600, CR_DRAIN_DRAINED, 0},
    {"one is open", PLAIN, 0, 0, 500, 600, 1, false, 600, CR_DRAIN_WAIT, 1600},
    {"few enough are open", SOME_OPEN, 0, 0, 500, 600, 5, false, 600, CR_DRAIN_DRAINED, 0},
    {"few, but not enough", SOME_OPEN, 0, 0, 500, 600, 6, false, 600, CR_DRAIN_WAIT, 1600},
    {"unknown is not none", PLAIN, 0, 0, 500, 600, NONE, false, 600, CR_DRAIN_WAIT, 1600},
    {"unknown is not none, at the time-out either", PLAIN, 0, 0, 59000, 59900, NONE, false, 60000, CR_DRAIN_TIMED_OUT,
     0},
    {"the least duration is kept", LEAST, 0, 0, 5000, 5010, 0, false, 5010, CR_DRAIN_WAIT, 9010},
    {"the look that counts is not put off", LEAST, 0, 0, 9010, 9020, 0, false, 9020, CR_DRAIN_WAIT, 10000},
    {"the look that counts is not put off", LEAST, 0, 0, 9010, 9020, 0, false, 10000, CR_DRAIN_LOOK, 0},
    {"an answer is as old as its question", LEAST, 0, 0, 9999, 11000, 0, false, 11000, CR_DRAIN_WAIT, 11050},
    {"the least duration is over", LEAST, 0, 0, 10000, 10010, 0, false, 10010, CR_DRAIN_DRAINED, 0},
    {"it counts from the beginning, not from the start", LEAST, 2000, 0, 11999, 12000, 0, false, 12050, CR_DRAIN_LOOK,
     0},
    {"after the least duration it is the interval again", LEAST, 0, 0, 10000, 10010, 2, false, 10010, CR_DRAIN_WAIT,
     14010},
    {"after a failed look as well", LEAST, 0, 0, 10000, 10010, NONE, false, 10010, CR_DRAIN_WAIT, 14010},
    {"of a proxy that has ended nothing is left", LEAST, 0, 0, 100, 110, 7, true, 110, CR_DRAIN_DRAINED, 0},
    {"the time is over", PLAIN, 0, 0, 59500, 59600, 1, false, 59999, CR_DRAIN_WAIT, 60000},
    {"the time is over", PLAIN, 0, 0, 59500, 59600, 1, false, 60000, CR_DRAIN_TIMED_OUT, 0},
    {"at the end the last number decides",
     {0, 70000, 60000, 1000, 0},
     0,
     0,
     59500,
     59600,
     0,
     false,
     60000,
     CR_DRAIN_DRAINED,
     0},
    {"a number of before it stood still decides nothing", LEAST, 0, 0, 5000, 5010, 0, false, 60000, CR_DRAIN_TIMED_OUT,
     0},
    {"a look that was due at the end was not missed", LEAST, 52000, 0, 55900, 56000, 0, false, 60000, CR_DRAIN_DRAINED,
     0},
    {"drained in time is drained, however late it is seen", PLAIN, 0, 0, 59500, 61000, 0, false, 61000,
     CR_DRAIN_DRAINED, 0},
    {"a delay longer than all of the time ends with it",
     {70000, 0, 60000, 1000, 0},
     NEVER,
     0,
     NEVER,
     NEVER,
     NONE,
     false,
     0,
     CR_DRAIN_WAIT,
     60000},
};

static int64_t after_start(int64_t ms)
{
    return ms == NEVER ? NEVER : START + ms;
}

static void each_decision(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(decisions); i++) {
        const struct decision *d = &decisions[i];
        const struct cr_drain_state drain = {.started_ms = START,
                                             .begun_ms = after_start(d->begun),
                                             .next_begin_ms = START + d->next_begin,
                                             .asked_ms = after_start(d->asked),
                                             .looked_ms = after_start(d->looked),
                                             .known = d->open != NONE,
                                             .open = d->open == NONE ? 0 : (uint64_t)d->open,
                                             .ended = d->ended};
        int64_t until = 0;
        enum cr_drain_step step = cr_drain_next(&d->rules, &drain, START + d->now, &until);
        if (step != d->step || (step == CR_DRAIN_WAIT && until != START + d->until))
            fail_msg("%s: %s until %jd", d->rule, step_names[step], (intmax_t)(until - START));
    }
}

/* --- a drain from its start to its end, in time that is played --- */

enum { PHASES = 8 };

struct play {
    const char *rule;
    struct cr_drain_rules rules;
    int begin_fails;    /* attempts */
    int64_t attempt_ms; /* that each attempt takes */
    struct {
        int64_t from; /* after the start */
        int64_t open; /* NONE: a look fails */
    } opens[PHASES];  /* until one that has no time but is not the first */
    enum cr_drain_step step;
    int64_t ended; /* after the start */
    int looks;
};

static const struct play plays[] = {
    {"it is over with the last client", PLAIN, 0, 10, {{0, 2}, {2500, 1}, {3500, 0}}, CR_DRAIN_DRAINED, 4060, 5},
    {"a begin that fails is tried until it works", PLAIN, 3, 10, {{0, 0}}, CR_DRAIN_DRAINED, 650, 1},
    {"one that never works is not drained", PLAIN, 1000, 10, {{0, 0}}, CR_DRAIN_TIMED_OUT, 60000, 0},
    {"looks that fail are no numbers", PLAIN, 0, 10, {{0, NONE}, {5000, 0}}, CR_DRAIN_DRAINED, 5070, 6},
    {"looks that fail for ever are never drained", PLAIN, 0, 0, {{0, NONE}}, CR_DRAIN_TIMED_OUT, 60000, 60},
    {"a number that was and is not is unknown",
     {0, 10000, 20000, 1000, 0},
     0,
     0,
     {{0, 0}, {500, NONE}},
     CR_DRAIN_TIMED_OUT,
     20000,
     20},
    {"who comes back within the least duration is waited for",
     {0, 10000, 60000, 4000, 0},
     0,
     0,
     {{0, 3}, {2000, 0}, {9000, 2}, {15000, 0}},
     CR_DRAIN_DRAINED,
     18000,
     6},
    {"a connection that never ends is ended at the time-out, not before",
     PLAIN,
     0,
     0,
     {{0, 1}},
     CR_DRAIN_TIMED_OUT,
     60000,
     60},
    {"delay, then least duration, then the end", DELAYED, 0, 0, {{0, 0}}, CR_DRAIN_DRAINED, 15000, 11},
    {"a slow proxy is asked less often", {0, 0, 20000, 1000, 0}, 0, 4000, {{0, 1}}, CR_DRAIN_TIMED_OUT, 20000, 4},
};

static int64_t open_at(const struct play *play, int64_t now)
{
    int64_t open = play->opens[0].open;
    for (size_t i = 1; i < PHASES && play->opens[i].from && play->opens[i].from <= now; i++)
        open = play->opens[i].open;
    return open;
}

/* What the outside world does with a step; one that waits is passed over. */
struct drain {
    struct cr_drain_state state;
    int64_t now;
    int begins;
    int looks;
};

static struct drain drain_new(void)
{
    return (struct drain){.state = {.started_ms = START, .begun_ms = NEVER, .asked_ms = NEVER, .looked_ms = NEVER},
                          .now = START};
}

static void do_begin(struct drain *drain, int64_t took_ms, bool ok)
{
    drain->begins++;
    drain->now += took_ms;
    drain->state.begun_ms = ok ? drain->now : NEVER;
    drain->state.next_begin_ms = drain->now + 200;
}

static void do_look(struct drain *drain, int64_t took_ms, int64_t open)
{
    drain->looks++;
    drain->state.asked_ms = drain->now;
    drain->now += took_ms;
    drain->state.looked_ms = drain->now;
    drain->state.known = open != NONE;
    drain->state.open = open == NONE ? 0 : (uint64_t)open;
}

static void must_be_ahead(const struct cr_drain_rules *rules, const struct drain *drain, int64_t until)
{
    assert_true(until > drain->now && until <= START + rules->timeout_ms);
}

static int64_t capped(const struct cr_drain_rules *rules, const struct drain *drain, int64_t ms)
{
    int64_t left = START + rules->timeout_ms - drain->now;
    return ms < left ? ms : left;
}

static void each_play(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(plays); i++) {
        const struct play *play = &plays[i];
        struct drain drain = drain_new();
        int64_t until = 0;
        enum cr_drain_step step = CR_DRAIN_WAIT;
        while ((step = cr_drain_next(&play->rules, &drain.state, drain.now, &until)) < CR_DRAIN_DRAINED) {
            int64_t took = capped(&play->rules, &drain, play->attempt_ms);
            if (step == CR_DRAIN_BEGIN) {
                do_begin(&drain, took, drain.begins >= play->begin_fails);
            } else if (step == CR_DRAIN_LOOK) {
                do_look(&drain, took, open_at(play, drain.now - START));
            } else {
                must_be_ahead(&play->rules, &drain, until);
                drain.now = until;
            }
        }
        if (step != play->step || drain.now != START + play->ended || drain.looks != play->looks)
            fail_msg("%s: %s after %jd ms and %d looks", play->rule, step_names[step], (intmax_t)(drain.now - START),
                     drain.looks);
    }
}

/* --- any drain --- */

static int64_t any_to(int64_t most)
{
    return rand() % (most + 1);
}

static struct cr_drain_rules any_rules(void)
{
    return (struct cr_drain_rules){.delay_ms = any_to(3) * 700,
                                   .min_duration_ms = any_to(4) * 900,
                                   .timeout_ms = 1 + any_to(20000),
                                   .interval_ms = any_to(2) ? any_to(3000) : 0,
                                   .min_open = (uint64_t)any_to(3)};
}

/* What must hold of an end, whatever came before it. */
static void judge(const struct cr_drain_rules *rules, const struct drain *drain, enum cr_drain_step step)
{
    const struct cr_drain_state *s = &drain->state;
    bool few = s->begun_ms >= 0 && s->known && s->open <= rules->min_open;
    bool over = drain->now >= START + rules->timeout_ms;
    assert_true(step == CR_DRAIN_TIMED_OUT ? over && !few : few);
    if (step == CR_DRAIN_DRAINED && !over)
        assert_true(s->asked_ms >= s->begun_ms + rules->min_duration_ms);
    assert_true(s->begun_ms < 0 || s->begun_ms >= START + rules->delay_ms);
    assert_true(drain->now <= START + rules->timeout_ms); /* no attempt is longer than what is left */
    assert_true(drain->looks <= rules->timeout_ms / CR_DRAIN_INTERVAL_LEAST_MS + 1);
}

static void play_any(void)
{
    struct cr_drain_rules rules = any_rules();
    struct drain drain = drain_new();
    int64_t until = 0;
    enum cr_drain_step step = CR_DRAIN_WAIT;
    bool waited = false;
    while ((step = cr_drain_next(&rules, &drain.state, drain.now, &until)) < CR_DRAIN_DRAINED) {
        int64_t took = capped(&rules, &drain, any_to(3) ? any_to(20) : any_to(2000));
        if (step == CR_DRAIN_BEGIN)
            do_begin(&drain, took, any_to(2));
        else if (step == CR_DRAIN_LOOK)
            do_look(&drain, took, any_to(7) - 1);
        else
            must_be_ahead(&rules, &drain, until);
        assert_false(waited && step == CR_DRAIN_WAIT); /* what it waited for has come */
        waited = step == CR_DRAIN_WAIT;
        if (waited)
            drain.now = until;
    }
    judge(&rules, &drain, step);
}

static void every_drain_ends_in_time_and_rightly(void **state)
{
    (void)state;
    srand(1);
    for (int i = 0; i < 20000; i++)
        play_any();
}

static void a_begin_is_tried_again_after_longer_and_longer(void **state)
{
    static const int64_t pauses[] = {200, 400, 800, 1600, 2000, 2000, 2000};
    (void)state;
    for (size_t i = 0; i < cr_array_len(pauses); i++)
        assert_int_equal(cr_drain_begin_pause(i + 1), pauses[i]);
    assert_int_equal(cr_drain_begin_pause(UINT64_MAX), 2000);
}

/* --- rules and a pod --- */

static void the_times_must_fit_the_pod(void **state)
{
    static const struct {
        struct cr_drain_rules rules;
        int64_t grace_ms;
        const char *words; /* NULL: they fit */
    } cases[] = {
        {DELAYED, 61000, NULL},
        {DELAYED, 60001, NULL},
        {DELAYED, 60000,
         "--drain-timeout 1m must be less than terminationGracePeriodSeconds 1m: else the kubelet ends"},
        {DELAYED, 30000, "--drain-timeout 1m must be less than terminationGracePeriodSeconds 30s"},
        {DELAYED, 0, "terminationGracePeriodSeconds 0s"},
        {{5000, 10000, 15001, 1000, 0}, 30000, NULL},
        {{5000, 10000, 15000, 1000, 0},
         30000,
         "--drain-delay and --min-drain-duration together 15s must be less than --drain-timeout 15s"},
        {{20000, 0, 15000, 1000, 0}, 30000, "together 20s must be less than --drain-timeout 15s"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        bool ok = cr_drain_rules_check(&cases[i].rules, cases[i].grace_ms, &err);
        if (ok != !cases[i].words || (!ok && !strstr(err.text, cases[i].words)))
            fail_msg("%zu: %d '%s'", i, ok, err.text);
        assert_int_equal(err.kind, ok ? CR_ERR_NONE : CR_ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_decision),
        cmocka_unit_test(each_play),
        cmocka_unit_test(every_drain_ends_in_time_and_rightly),
        cmocka_unit_test(a_begin_is_tried_again_after_longer_and_longer),
        cmocka_unit_test(the_times_must_fit_the_pod),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
