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

static enum cr_drain_step wait_until(int64_t then_ms, const struct cr_drain_rules *rules,
                                     const struct cr_drain_state *state, int64_t *until_ms)
{
    int64_t end_ms = state->started_ms + rules->timeout_ms;
    *until_ms = then_ms < end_ms ? then_ms : end_ms;
    return CR_DRAIN_WAIT;
}

static enum cr_drain_step begin_or_wait(const struct cr_drain_rules *rules, const struct cr_drain_state *state,
                                        int64_t now_ms, int64_t *until_ms)
{
    int64_t begin_ms = latest(state->started_ms + rules->delay_ms, state->next_begin_ms);
    return now_ms >= begin_ms ? CR_DRAIN_BEGIN : wait_until(begin_ms, rules, state, until_ms);
}

enum cr_drain_step cr_drain_next(const struct cr_drain_rules *rules, const struct cr_drain_state *state, int64_t now_ms,
                                 int64_t *until_ms)
{
    int64_t may_end_ms = state->begun_ms + rules->min_duration_ms;
    bool seen_late = state->looked_ms >= may_end_ms;
    if (enough_have_gone(rules, state) && (state->ended || seen_late))
        return CR_DRAIN_DRAINED;
    if (now_ms >= state->started_ms + rules->timeout_ms)
        return enough_have_gone(rules, state) ? CR_DRAIN_DRAINED : CR_DRAIN_TIMED_OUT;
    if (state->begun_ms < 0)
        return begin_or_wait(rules, state, now_ms, until_ms);
    int64_t look_ms = state->looked_ms < 0 ? state->begun_ms : state->looked_ms + rules->interval_ms;
    if (look_ms > may_end_ms && !seen_late)
        look_ms = may_end_ms; /* the look that counts is not put off by an interval that is longer */
    return now_ms >= look_ms ? CR_DRAIN_LOOK : wait_until(look_ms, rules, state, until_ms);
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
