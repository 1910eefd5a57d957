/* Schedules as crontab(5) writes them, in five fields: minute, hour, day of month, month, day of week. Each is a list
 * of values and ranges ("1-5,20"), with steps ("*" "/15", "8-18/2"; "8/2" goes on to the end of the field, of the
 * week's to Saturday, as in a CronJob); months and days of the week also by their first three letters, in any case;
 * Sunday is 0 and 7; "?" is "*" in the two fields of days. As there, when neither field of days begins with "*", a day
 * needs to match only one of them, else both. No @daily, no seconds, no L, W or #. Pure. */
#ifndef CR_CODEC_CRON_H
#define CR_CODEC_CRON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct cr_cron {
    uint64_t minutes; /* bit n: the n-th */
    uint64_t hours;
    uint64_t days;     /* of the month: 1 to 31 */
    uint64_t months;   /* 1 to 12 */
    uint64_t weekdays; /* 0 is Sunday, to 6 */
    bool either_day;   /* of the two fields of days */
};

/* Errors (Invalid) name the field and say what is allowed. Refused is also what never comes (30 February). */
bool cr_cron_parse(const char *text, struct cr_cron *out, struct cr_error *err) CR_MUST_USE;
/* Days since 1970-01-01, by the calendar on the wall. */
bool cr_cron_on_day(const struct cr_cron *cron, int64_t day);
/* The first minute of a day, from that one on, that is on the schedule; -1: there is none. */
int cr_cron_next_minute(const struct cr_cron *cron, int minute_of_day);

#endif
