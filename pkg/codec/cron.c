#include "codec/cron.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/civil.h"
#include "base/cleanup.h"
#include "base/strings.h"

enum { FIELDS = 5, NAME_LEN = 3, MINUTES = 60, DAY_MINUTES = 24 * MINUTES };

struct field {
    const char *name;
    int min;
    int max;
    const char *const *words; /* parallel to the values from words_from on; NULL: none */
    int words_from;
    int words_len;
    int again; /* so many of the last values are the first ones once more, and no part of an open range ("*", "1/2") */
    bool takes_any; /* "?" */
};

static const char *const month_names[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                          "jul", "aug", "sep", "oct", "nov", "dec"};
static const char *const weekday_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

static const struct field fields[FIELDS] = {
    {.name = "minute", .max = 59},
    {.name = "hour", .max = 23},
    {.name = "day of month", .min = 1, .max = 31, .takes_any = true},
    {.name = "month", .min = 1, .max = 12, .words = month_names, .words_from = 1, .words_len = 12},
    {.name = "day of week", .max = 7, .again = 1, .words = weekday_names, .words_len = 7, .takes_any = true},
};

/* --- one field --- */

static bool read_number(const char **p, int *out)
{
    int digits = 0;
    *out = 0;
    for (; isdigit((unsigned char)**p) && digits < 3; ++*p, digits++)
        *out = *out * 10 + (**p - '0');
    return digits > 0 && digits < 3;
}

static bool read_value(const struct field *field, const char **p, int *out)
{
    for (int i = 0; i < field->words_len; i++)
        if (strncasecmp(*p, field->words[i], NAME_LEN) == 0) {
            *p += NAME_LEN;
            *out = field->words_from + i;
            return true;
        }
    return read_number(p, out) && *out >= field->min && *out <= field->max;
}

/* "*", "4", "4-8", each with a step behind it. */
static bool read_item(const struct field *field, const char *p, uint64_t *bits)
{
    const int open_end = field->max - field->again;
    int first = field->min;
    int last = open_end;
    int step = 1;
    bool single = false;
    if (*p == '*' || (*p == '?' && field->takes_any)) {
        p++;
    } else {
        if (!read_value(field, &p, &first))
            return false;
        single = *p != '-';
        last = first;
        if (!single && (p++, !read_value(field, &p, &last)))
            return false;
    }
    if (*p == '/') {
        p++;
        if (!read_number(&p, &step) || step == 0)
            return false;
        last = single && first < open_end ? open_end : last;
    }
    for (int value = first; value <= last; value += step)
        *bits |= UINT64_C(1) << value;
    return *p == '\0' && first <= last;
}

static bool read_field(const struct field *field, char *text, uint64_t *bits, struct cr_error *err)
{
    char *rest = text;
    for (char *item; (item = strsep(&rest, ","));)
        if (!read_item(field, item, bits))
            return cr_error_set(err, CR_ERR_INVALID,
                                "%s '%.32s': must be values from %d to %d, such as *, 1-5, */10 or a list of those",
                                field->name, item, field->min, field->max);
    return true;
}

/* --- the whole --- */

static bool begins_with_star(const char *field)
{
    return *field == '*' || *field == '?';
}

/* In some year. */
static bool has_date(uint64_t days, uint64_t months)
{
    for (int month = 1; month <= 12; month++)
        for (int day = 1; day <= cr_civil_days_in(2000, month); day++)
            if ((months >> month & 1) && (days >> day & 1))
                return true;
    return false;
}

/* How many words there are; the first FIELDS of them are put into words. */
static int split(char *text, char *words[FIELDS])
{
    int count = 0;
    for (char *word; (word = strsep(&text, " "));) {
        if (!*word)
            continue;
        if (count < FIELDS)
            words[count] = word;
        count++;
    }
    return count;
}

bool cr_cron_parse(const char *text, struct cr_cron *out, struct cr_error *err)
{
    cr_autofree char *copy = cr_strdup(text);
    char *words[FIELDS] = {0};
    int count = split(copy, words);
    if (count != FIELDS)
        return cr_error_set(
            err, CR_ERR_INVALID,
            "has %d fields; it must have five: minute hour day-of-month month day-of-week, such as '0 2 * * *'", count);
    *out = (struct cr_cron){.either_day = !begins_with_star(words[2]) && !begins_with_star(words[4])};
    uint64_t *const bits[FIELDS] = {&out->minutes, &out->hours, &out->days, &out->months, &out->weekdays};
    for (int i = 0; i < FIELDS; i++)
        if (!read_field(&fields[i], words[i], bits[i], err))
            return false;
    out->weekdays = (out->weekdays | out->weekdays >> 7) & 0x7f; /* 7 is Sunday, too */
    return out->either_day || has_date(out->days, out->months) ||
           cr_error_set(err, CR_ERR_INVALID, "'%.128s' never comes: none of its months has such a day", text);
}

bool cr_cron_on_day(const struct cr_cron *cron, int64_t day)
{
    struct cr_civil date = cr_civil_from_days(day);
    bool of_month = cron->days >> date.day & 1;
    bool of_week = cron->weekdays >> cr_civil_weekday(day) & 1;
    return (cron->months >> date.month & 1) && (cron->either_day ? of_month || of_week : of_month && of_week);
}

int cr_cron_next_minute(const struct cr_cron *cron, int minute_of_day)
{
    for (int minute = minute_of_day; minute < DAY_MINUTES; minute++)
        if ((cron->hours >> (minute / MINUTES) & 1) && (cron->minutes >> (minute % MINUTES) & 1))
            return minute;
    return -1;
}
