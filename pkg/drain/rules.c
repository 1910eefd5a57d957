#include "drain/rules.h"

#include "base/clock.h"

static bool enough_have_gone(const struct cr_drain_rules *rules, const struct cr_drain_state *state)
{
    return state->begun_ms >= 0 && state->known && (state->ended || state->open <= rules->min_open);
}

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static enum cr_drain_step at_or_wait(int64_t then_ms, enum cr_drain_step step, const struct cr_drain_rules *rules,
                                     const struct cr_drain_state *state, int64_t now_ms, int64_t *until_ms)
{
    int64_t end_ms = state->started_ms + rules->timeout_ms;
    if (now_ms >= then_ms)
        return step;
    *until_ms = then_ms < end_ms ? then_ms : end_ms;
    return CR_DRAIN_WAIT;
}

static int64_t begin_at(const struct cr_drain_rules *rules, const struct cr_drain_state *state)
{
    return latest(state->started_ms + rules->delay_ms, state->next_begin_ms);
}

/* The look that counts is not put off by an interval that goes beyond may_end_ms. */
static int64_t look_at(const struct cr_drain_rules *rules, const struct cr_drain_state *state, int64_t may_end_ms)
{
    if (state->looked_ms < 0)
        return state->begun_ms;
    int64_t soonest_ms = state->looked_ms + CR_DRAIN_INTERVAL_LEAST_MS;
    int64_t look_ms = latest(state->looked_ms + rules->interval_ms, soonest_ms);
    if (look_ms > may_end_ms && state->asked_ms < may_end_ms)
        look_ms = latest(may_end_ms, soonest_ms);
    return look_ms;
}

enum cr_drain_step cr_drain_next(const struct cr_drain_rules *rules, const struct cr_drain_state *state, int64_t now_ms,
                                 int64_t *until_ms)
{
    int64_t may_end_ms = state->begun_ms + rules->min_duration_ms;
    int64_t end_ms = state->started_ms + rules->timeout_ms;
    bool enough = enough_have_gone(rules, state);
    if (enough && (state->ended || state->asked_ms >= may_end_ms))
        return CR_DRAIN_DRAINED;
    if (now_ms >= end_ms) {
        bool is_of_now = enough && look_at(rules, state, may_end_ms) >= end_ms;
        return is_of_now ? CR_DRAIN_DRAINED : CR_DRAIN_TIMED_OUT;
    }
    if (state->begun_ms < 0)
        return at_or_wait(begin_at(rules, state), CR_DRAIN_BEGIN, rules, state, now_ms, until_ms);
    return at_or_wait(look_at(rules, state, may_end_ms), CR_DRAIN_LOOK, rules, state, now_ms, until_ms);
}

int64_t cr_drain_begin_pause(uint64_t failures)
{
    enum { LEAST_MS = 200, MOST_MS = 2000 };
    int64_t pause_ms = LEAST_MS;
    for (uint64_t i = 1; i < failures && pause_ms < MOST_MS; i++)
        pause_ms *= 2;
    return pause_ms < MOST_MS ? pause_ms : MOST_MS;
}

static bool refuse(struct cr_error *err, const char *flag, int64_t ms, const char *limit, int64_t limit_ms,
                   const char *advice)
{
    char value[CR_TIME_TEXT];
    char most[CR_TIME_TEXT];
    cr_duration_format(ms, value);
    cr_duration_format(limit_ms, most);
    return cr_error_set(err, CR_ERR_INVALID, "%s %s must be less than %s %s: %s", flag, value, limit, most, advice);
}

bool cr_drain_rules_check(const struct cr_drain_rules *rules, int64_t grace_ms, struct cr_error *err)
{
    int64_t least_ms = rules->delay_ms + rules->min_duration_ms;
    if (rules->timeout_ms >= grace_ms)
        return refuse(err, "--drain-timeout", rules->timeout_ms, "terminationGracePeriodSeconds", grace_ms,
                      "else the kubelet ends the proxy in the midst of its drain; raise the pod's "
                      "terminationGracePeriodSeconds or lower --drain-timeout");
    if (least_ms >= rules->timeout_ms)
        return refuse(err, "--drain-delay and --min-drain-duration together", least_ms, "--drain-timeout",
                      rules->timeout_ms, "else no connection is waited for; raise --drain-timeout");
    return true;
}
