#include "drain/drain.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>

#include "base/clock.h"
#include "drain/drain_log.h"

struct run {
    const struct cr_drain_options *options;
    struct cr_drain_target target; /* the options', with a memory */
    struct cr_strvec memory;
    struct cr_drain_state state;
    struct cr_drain_progress progress;
    struct cr_drain_log log;
    uint64_t begin_failures;
};

static void dispose(struct run *run)
{
    cr_strvec_dispose(&run->memory);
}
CR_DEFINE_DISPOSE(run, struct run, dispose)

/* --- words --- */

const char *cr_drain_result_word(enum cr_drain_result result)
{
    static const char *const words[] = {
        [CR_DRAIN_RESULT_NONE] = "",
        [CR_DRAIN_RESULT_DRAINED] = "Drained",
        [CR_DRAIN_RESULT_TIMED_OUT] = "TimedOut",
        [CR_DRAIN_RESULT_CANCELLED] = "Cancelled",
    };
    return words[result];
}

const char *cr_drain_phase_word(enum cr_drain_phase phase)
{
    static const char *const words[] = {
        [CR_DRAIN_DELAYED] = "Delayed",
        [CR_DRAIN_BEGINNING] = "Beginning",
        [CR_DRAIN_DRAINING] = "Draining",
        [CR_DRAIN_ENDED] = "Ended",
    };
    return words[phase];
}

/* --- waiting --- */

/* Until then, or until it is cancelled. */
static void wait_until(const struct run *run, int64_t until_ms)
{
    struct pollfd cancel = {.fd = run->options->cancel_fd, .events = POLLIN};
    int n = 0;
    do {
        int64_t left_ms = until_ms - cr_clock_monotonic_ms();
        if (left_ms <= 0)
            return;
        n = poll(&cancel, 1, left_ms < INT_MAX ? (int)left_ms : INT_MAX);
    } while (n == 0 || (n < 0 && errno == EINTR));
}

static bool is_cancelled(const struct run *run)
{
    struct pollfd cancel = {.fd = run->options->cancel_fd, .events = POLLIN};
    return poll(&cancel, 1, 0) > 0;
}

/* --- progress --- */

static enum cr_drain_phase phase_of(const struct run *run, int64_t now_ms)
{
    if (run->progress.result != CR_DRAIN_RESULT_NONE)
        return CR_DRAIN_ENDED;
    if (run->state.begun_ms >= 0)
        return CR_DRAIN_DRAINING;
    return now_ms < run->state.started_ms + run->options->rules.delay_ms ? CR_DRAIN_DELAYED : CR_DRAIN_BEGINNING;
}

static void notify(struct run *run, int64_t now_ms)
{
    struct cr_drain_progress *progress = &run->progress;
    progress->phase = phase_of(run, now_ms);
    progress->elapsed_ms = now_ms - run->state.started_ms;
    progress->known = run->state.known;
    progress->open = run->state.known ? run->state.open : 0;
    if (run->options->on_progress)
        run->options->on_progress(run->options->arg, progress);
}

/* --- one attempt --- */

static int64_t end_of(const struct run *run)
{
    return run->state.started_ms + run->options->rules.timeout_ms;
}

static struct cr_drain_attempt new_attempt(const struct run *run, int64_t now_ms)
{
    int64_t end_ms = end_of(run);
    int64_t deadline_ms = now_ms + run->options->attempt_ms;
    return (struct cr_drain_attempt){.deadline_ms = deadline_ms < end_ms ? deadline_ms : end_ms,
                                     .cancel_fd = run->options->cancel_fd};
}

/* A proxy with a long answer may only need longer: the flag that says how long is named, unless it was the end of the
 * drain. */
static void name_flag_of_time(const struct run *run, const struct cr_drain_attempt *attempt, int64_t now_ms,
                              struct cr_error *error)
{
    char most[CR_TIME_TEXT];
    const struct cr_error why = *error;
    if (now_ms < attempt->deadline_ms || attempt->deadline_ms == end_of(run))
        return;
    cr_duration_format(run->options->attempt_ms, most);
    cr_error_set(error, why.kind, "%s (--attempt-timeout %s)", why.text, most);
}

static void note_failure(struct run *run, const char *what, const struct cr_drain_attempt *attempt,
                         struct cr_error *error, int64_t now_ms)
{
    if (error->kind == CR_ERR_CANCELLED) /* the next pass ends it */
        return;
    name_flag_of_time(run, attempt, now_ms, error);
    run->progress.errors++;
    run->progress.last_error = *error;
    cr_drain_log_error(&run->log, what, error, now_ms);
}

static void begin(struct run *run, int64_t now_ms)
{
    struct cr_error err = {0};
    const struct cr_drain_strategy *strategy = run->options->strategy;
    const struct cr_drain_attempt attempt = new_attempt(run, now_ms);
    notify(run, now_ms);
    bool ok = strategy->begin(&run->target, &attempt, &err);
    int64_t done_ms = cr_clock_monotonic_ms();
    if (ok) {
        run->state.begun_ms = done_ms;
        cr_drain_log_begun(&run->log, strategy, done_ms);
    } else {
        run->state.next_begin_ms = done_ms + cr_drain_begin_pause(++run->begin_failures);
        note_failure(run, "the proxy cannot be told to drain, trying again", &attempt, &err, done_ms);
    }
    notify(run, done_ms);
}

static void look(struct run *run, int64_t now_ms)
{
    struct cr_error err = {0};
    struct cr_drain_count count = {0};
    struct cr_drain_state *state = &run->state;
    const struct cr_drain_attempt attempt = new_attempt(run, now_ms);
    state->asked_ms = now_ms;
    state->known = run->options->strategy->count(&run->target, &attempt, &count, &err);
    state->looked_ms = cr_clock_monotonic_ms();
    state->open = state->known ? count.open : 0;
    state->ended = state->known && count.ended;
    if (state->known)
        cr_drain_log_open(&run->log, state->open, state->looked_ms);
    else
        note_failure(run, "open connections cannot be counted, trying again", &attempt, &err, state->looked_ms);
    notify(run, state->looked_ms);
}

/* --- the whole --- */

static void start(struct run *run, int64_t now_ms)
{
    run->target = run->options->target;
    if (!run->target.memory)
        run->target.memory = &run->memory;
    run->state = (struct cr_drain_state){
        .started_ms = now_ms, .begun_ms = -1, .next_begin_ms = now_ms, .asked_ms = -1, .looked_ms = -1};
    cr_drain_log_start(&run->log, run->options, now_ms);
    notify(run, now_ms);
}

/* Few enough, and yet it timed out: that was before this process stood still (cr_drain_next). */
static void forget_old_number(struct run *run)
{
    run->state.known = run->state.known && run->state.open > run->options->rules.min_open;
}

/* One step; NONE: it goes on. */
static enum cr_drain_result step(struct run *run)
{
    int64_t until_ms = 0;
    int64_t now_ms = cr_clock_monotonic_ms();
    if (is_cancelled(run))
        return CR_DRAIN_RESULT_CANCELLED;
    switch (cr_drain_next(&run->options->rules, &run->state, now_ms, &until_ms)) {
    case CR_DRAIN_WAIT:
        wait_until(run, until_ms);
        return CR_DRAIN_RESULT_NONE;
    case CR_DRAIN_BEGIN:
        begin(run, now_ms);
        return CR_DRAIN_RESULT_NONE;
    case CR_DRAIN_LOOK:
        look(run, now_ms);
        return CR_DRAIN_RESULT_NONE;
    case CR_DRAIN_DRAINED:
        return CR_DRAIN_RESULT_DRAINED;
    default:
        forget_old_number(run);
        return CR_DRAIN_RESULT_TIMED_OUT;
    }
}

enum cr_drain_result cr_drain_run(const struct cr_drain_options *options, struct cr_drain_progress *last)
{
    CR_CLEANUP(run) struct run run = {.options = options};
    start(&run, cr_clock_monotonic_ms());
    while (run.progress.result == CR_DRAIN_RESULT_NONE)
        run.progress.result = step(&run);
    notify(&run, cr_clock_monotonic_ms());
    cr_drain_log_end(&run.progress);
    if (last)
        *last = run.progress;
    return run.progress.result;
}
