#include "codec/tz_rule.h"

#include <ctype.h>

#include "base/civil.h"

enum { HOUR_S = 60 * 60, MINUTE_S = 60, DEFAULT_TIME_S = 2 * HOUR_S, OFFSET_HOURS_MAX = 24, TIME_HOURS_MAX = 167 };

/* --- the text --- */

/* "CET", or "<+0330>" where it is no word. What it is called is nothing to us. */
static bool skip_name(const char **p)
{
    const char *start = *p;
    if (**p == '<') {
        for (++*p; isalnum((unsigned char)**p) || **p == '+' || **p == '-'; ++*p)
            ;
        return *p - start >= 4 && *(*p)++ == '>';
    }
    while (isalpha((unsigned char)**p))
        ++*p;
    return *p - start >= 3;
}

static bool read_number(const char **p, int min, int max, int *out)
{
    int digits = 0;
    *out = 0;
    for (; isdigit((unsigned char)**p) && digits < 4; ++*p, digits++)
        *out = *out * 10 + (**p - '0');
    return digits && digits < 4 && *out >= min && *out <= max;
}

static bool read_part(const char **p, int *out)
{
    *out = 0;
    if (**p != ':')
        return true;
    ++*p;
    return read_number(p, 0, 59, out);
}

/* [+-]hh[:mm[:ss]] */
static bool read_time(const char **p, int hours_max, int32_t *out)
{
    int sign = **p == '-' ? -1 : 1;
    int hours = 0;
    int minutes = 0;
    int seconds = 0;
    if (**p == '-' || **p == '+')
        ++*p;
    if (!read_number(p, 0, hours_max, &hours) || !read_part(p, &minutes) || !read_part(p, &seconds))
        return false;
    *out = sign * (hours * HOUR_S + minutes * MINUTE_S + seconds);
    return true;
}

/* POSIX counts west of Greenwich. */
static bool read_offset(const char **p, int32_t *east_s)
{
    int32_t west_s = 0;
    if (!read_time(p, OFFSET_HOURS_MAX, &west_s))
        return false;
    *east_s = -west_s;
    return true;
}

static bool expect(const char **p, char c)
{
    return **p == c && (++*p, true);
}

static bool read_day(const char **p, struct cr_tz_change *out)
{
    if (expect(p, 'M')) {
        out->kind = CR_TZ_DAY_OF_WEEK;
        return read_number(p, 1, 12, &out->month) && expect(p, '.') && read_number(p, 1, 5, &out->week) &&
               expect(p, '.') && read_number(p, 0, 6, &out->day);
    }
    out->kind = expect(p, 'J') ? CR_TZ_DAY_JULIAN : CR_TZ_DAY_OF_YEAR;
    return read_number(p, out->kind == CR_TZ_DAY_JULIAN, 365, &out->day);
}

static bool read_change(const char **p, struct cr_tz_change *out)
{
    out->time_s = DEFAULT_TIME_S;
    return expect(p, ',') && read_day(p, out) && (!expect(p, '/') || read_time(p, TIME_HOURS_MAX, &out->time_s));
}

static bool read_daylight(const char **p, struct cr_tz_rule *rule)
{
    rule->has_daylight = true;
    rule->daylight_s = rule->standard_s + HOUR_S;
    return skip_name(p) && (**p == ',' || read_offset(p, &rule->daylight_s)) && read_change(p, &rule->to_daylight) &&
           read_change(p, &rule->to_standard);
}

bool cr_tz_rule_parse(const char *text, struct cr_tz_rule *rule, struct cr_error *err)
{
    const char *p = text;
    *rule = (struct cr_tz_rule){0};
    if (!skip_name(&p) || !read_offset(&p, &rule->standard_s) || (*p && !read_daylight(&p, rule)) || *p)
        return cr_error_set(err, CR_ERR_INVALID, "'%.64s' is no rule of a time zone such as CET-1CEST,M3.5.0,M10.5.0/3",
                            text);
    return true;
}

/* --- its changes --- */

static int64_t day_of(const struct cr_tz_change *change, int64_t year)
{
    int64_t january = cr_civil_to_days((struct cr_civil){year, 1, 1});
    if (change->kind == CR_TZ_DAY_OF_YEAR)
        return january + change->day;
    if (change->kind == CR_TZ_DAY_JULIAN) /* 60 is the 1st of March */
        return january + change->day - 1 + (change->day >= 60 && cr_civil_is_leap(year));
    int64_t first = cr_civil_to_days((struct cr_civil){year, change->month, 1});
    int64_t ahead = (change->day - cr_civil_weekday(first) + 7) % 7 + 7 * (change->week - 1);
    return first + (ahead < cr_civil_days_in(year, change->month) ? ahead : ahead - 7);
}

struct event {
    int64_t at_s;
    int32_t offset_s; /* from then on */
};

static struct event to_daylight(const struct cr_tz_rule *rule, int64_t year)
{
    int64_t local = day_of(&rule->to_daylight, year) * CR_DAY_S + rule->to_daylight.time_s;
    return (struct event){local - rule->standard_s, rule->daylight_s};
}

static struct event to_standard(const struct cr_tz_rule *rule, int64_t year)
{
    int64_t local = day_of(&rule->to_standard, year) * CR_DAY_S + rule->to_standard.time_s;
    return (struct event){local - rule->daylight_s, rule->standard_s};
}

/* A change is never more than eight days away from the year it belongs to, so the years beside it are enough. Standard
 * time first: where both change at once, daylight time wins, as in a zone that has it all the year. */
enum { EVENTS = 6 };
static void events_around(const struct cr_tz_rule *rule, int64_t at_s, struct event out[EVENTS])
{
    int64_t year = cr_civil_from_days(cr_floor_div(at_s, CR_DAY_S)).year;
    for (int i = 0; i < EVENTS / 2; i++) {
        out[2 * i] = to_standard(rule, year - 1 + i);
        out[2 * i + 1] = to_daylight(rule, year - 1 + i);
    }
}

int32_t cr_tz_rule_offset(const struct cr_tz_rule *rule, int64_t at_s)
{
    if (!rule->has_daylight)
        return rule->standard_s;
    struct event events[EVENTS];
    struct event last = {INT64_MIN, rule->standard_s};
    events_around(rule, at_s, events);
    for (int i = 0; i < EVENTS; i++) {
        bool tie = events[i].at_s == last.at_s && events[i].offset_s == rule->daylight_s;
        if (events[i].at_s <= at_s && (events[i].at_s > last.at_s || tie))
            last = events[i];
    }
    return last.offset_s;
}

int64_t cr_tz_rule_next(const struct cr_tz_rule *rule, int64_t at_s)
{
    int64_t next = INT64_MAX;
    if (!rule->has_daylight)
        return next;
    struct event events[EVENTS];
    events_around(rule, at_s, events);
    for (int i = 0; i < EVENTS; i++)
        if (events[i].at_s > at_s && events[i].at_s < next)
            next = events[i].at_s;
    return next;
}
