#include "drain/drain_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"

enum { NUMBER = 32, MS_PER_S = 1000 };

static void write_seconds(int64_t ms, char out[NUMBER])
{
    snprintf(out, NUMBER, "%" PRId64 ".%03d", ms / MS_PER_S, (int)(ms % MS_PER_S));
}

static void write_number(uint64_t number, char out[NUMBER])
{
    snprintf(out, NUMBER, "%" PRIu64, number);
}

void cr_drain_log_start(struct cr_drain_log *log, const struct cr_drain_options *options, int64_t now_ms)
{
    char delay[CR_TIME_TEXT], least[CR_TIME_TEXT], timeout[CR_TIME_TEXT], interval[CR_TIME_TEXT], open[NUMBER];
    const struct cr_drain_rules *rules = &options->rules;
    const struct cr_drain_target *target = &options->target;
    *log = (struct cr_drain_log){.started_ms = now_ms};
    cr_duration_format(rules->delay_ms, delay);
    cr_duration_format(rules->min_duration_ms, least);
    cr_duration_format(rules->timeout_ms, timeout);
    cr_duration_format(rules->interval_ms, interval);
    write_number(rules->min_open, open);
    cr_log(CR_LOG_INFO, "the drain starts", {"proxy", options->strategy->name}, {"address", target->address},
           {"countUrl", target->count_url}, {"delay", delay}, {"minDuration", least}, {"timeout", timeout},
           {"interval", interval}, {"minOpenConnections", open, true});
}

void cr_drain_log_begun(const struct cr_drain_log *log, const struct cr_drain_strategy *strategy, int64_t now_ms)
{
    char seconds[NUMBER];
    write_seconds(now_ms - log->started_ms, seconds);
    cr_log(CR_LOG_INFO, "the proxy is draining", {"begins", strategy->begins}, {"seconds", seconds, true});
}

void cr_drain_log_open(struct cr_drain_log *log, uint64_t open, int64_t now_ms)
{
    char number[NUMBER], seconds[NUMBER];
    int64_t pause_ms = log->open != open || !log->open_said ? CR_DRAIN_SAY_CHANGE_MS : CR_DRAIN_SAY_AGAIN_MS;
    if (log->open_said_ms && now_ms - log->open_said_ms < pause_ms)
        return;
    log->open_said = true;
    log->open_said_ms = now_ms;
    log->open = open;
    write_number(open, number);
    write_seconds(now_ms - log->started_ms, seconds);
    cr_log(CR_LOG_INFO, "open connections", {"open", number, true}, {"seconds", seconds, true});
}

/* The one with these words; else the one that was said longest ago, its words replaced. */
static struct cr_drain_complaint *find_complaint(struct cr_drain_log *log, const char *text)
{
    struct cr_drain_complaint *oldest = &log->complaints[0];
    for (size_t i = 0; i < CR_DRAIN_COMPLAINTS; i++) {
        struct cr_drain_complaint *complaint = &log->complaints[i];
        if (cr_streq(complaint->text, text))
            return complaint;
        if (complaint->said_ms < oldest->said_ms)
            oldest = complaint;
    }
    *oldest = (struct cr_drain_complaint){0};
    snprintf(oldest->text, sizeof oldest->text, "%s", text);
    return oldest;
}

void cr_drain_log_error(struct cr_drain_log *log, const char *what, const struct cr_error *error, int64_t now_ms)
{
    char times[NUMBER], seconds[NUMBER];
    struct cr_drain_complaint *complaint = find_complaint(log, error->text);
    log->open_said = false; /* the next number is news */
    complaint->times++;
    if (complaint->said_ms && now_ms - complaint->said_ms < CR_DRAIN_SAY_AGAIN_MS)
        return;
    write_number(complaint->times, times);
    write_seconds(now_ms - log->started_ms, seconds);
    cr_log(CR_LOG_WARN, what, {"error", error->text}, {"times", times, true}, {"seconds", seconds, true});
    complaint->said_ms = now_ms;
    complaint->times = 0;
}

static const char *words_of(const struct cr_drain_progress *progress)
{
    switch (progress->result) {
    case CR_DRAIN_RESULT_DRAINED:
        return "drained";
    case CR_DRAIN_RESULT_CANCELLED:
        return "the drain is given up";
    default:
        return progress->known ? "not drained when the time was over: connections are open"
                               : "not drained when the time was over: how many connections are open is not known";
    }
}

void cr_drain_log_end(const struct cr_drain_progress *progress)
{
    char open[NUMBER], seconds[NUMBER], errors[NUMBER];
    bool drained = progress->result == CR_DRAIN_RESULT_DRAINED;
    bool blame = !drained && !progress->known && progress->last_error.kind != CR_ERR_NONE;
    write_number(progress->open, open);
    write_number(progress->errors, errors);
    write_seconds(progress->elapsed_ms, seconds);
    cr_log(drained ? CR_LOG_INFO : CR_LOG_WARN, words_of(progress), {"result", cr_drain_result_word(progress->result)},
           {"open", progress->known ? open : "null", true}, {"seconds", seconds, true}, {"errors", errors, true},
           {"error", blame ? progress->last_error.text : NULL});
}
