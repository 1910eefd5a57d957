#include "base/clock.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/civil.h"

static int64_t now_ms(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t cr_clock_monotonic_ms(void)
{
    return now_ms(CLOCK_MONOTONIC);
}

int64_t cr_clock_monotonic_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t cr_clock_boot_ms(void)
{
    return now_ms(CLOCK_BOOTTIME);
}

int64_t cr_clock_wall_ms(void)
{
    return now_ms(CLOCK_REALTIME);
}

/* RFC 3339 has four digits for a year. */
static const int64_t first_ms = INT64_C(-62167219200000); /* 0000-01-01T00:00:00Z */
static const int64_t last_ms = INT64_C(253402300799999);  /* 9999-12-31T23:59:59.999Z */

static int64_t clamp(int64_t wall_ms)
{
    return wall_ms < first_ms ? first_ms : wall_ms > last_ms ? last_ms : wall_ms;
}

/* All but the fraction; not by strftime: its %Y writes the year 226 as "226". Returns what was written. */
static size_t format_seconds(int64_t wall_ms, char out[CR_TIME_TEXT])
{
    int64_t seconds = cr_floor_div(wall_ms, 1000);
    int64_t day = cr_floor_div(seconds, CR_DAY_S);
    int of_day = (int)(seconds - day * CR_DAY_S);
    struct cr_civil date = cr_civil_from_days(day);
    return (size_t)snprintf(out, CR_TIME_TEXT, "%04d-%02d-%02dT%02d:%02d:%02d", (int)date.year, date.month, date.day,
                            of_day / 3600, of_day / 60 % 60, of_day % 60);
}

void cr_time_format(int64_t wall_ms, char out[CR_TIME_TEXT])
{
    size_t n = format_seconds(clamp(wall_ms), out);
    snprintf(out + n, CR_TIME_TEXT - n, "Z");
}

void cr_time_format_micro(int64_t wall_ms, char out[CR_TIME_TEXT])
{
    int64_t at = clamp(wall_ms);
    size_t n = format_seconds(at, out);
    snprintf(out + n, CR_TIME_TEXT - n, ".%03d000Z", (int)(at - cr_floor_div(at, 1000) * 1000));
}

/* strptime and sscanf take spaces and missing digits, which RFC 3339 does not. '0' stands for a digit. */
static bool has_shape(const char *text, const char *shape)
{
    for (; *shape; text++, shape++)
        if (*shape == '0' ? !isdigit((unsigned char)*text) : *text != *shape)
            return false;
    return true;
}

/* Reads "+02:00", "-05:30" or "Z" into seconds east of UTC. */
static bool parse_offset(const char *p, int *offset)
{
    if ((*p == 'Z' || *p == 'z') && p[1] == '\0') {
        *offset = 0;
        return true;
    }
    int hours = 0;
    int minutes = 0;
    if ((*p != '+' && *p != '-') || !has_shape(p + 1, "00:00") || p[6] ||
        sscanf(p + 1, "%2d:%2d", &hours, &minutes) != 2)
        return false;
    *offset = (hours * 60 + minutes) * 60 * (*p == '-' ? -1 : 1);
    return hours < 24 && minutes < 60;
}

static const char *parse_fraction(const char *p, int *ms)
{
    *ms = 0;
    if (*p != '.')
        return p;
    int scale = 100;
    if (!isdigit((unsigned char)p[1]))
        return NULL;
    for (p++; isdigit((unsigned char)*p); p++, scale /= 10)
        *ms += (*p - '0') * scale;
    return p;
}

/* strptime takes a 30th of February, which timegm then moves on into March. */
static bool to_seconds(struct tm *tm, int64_t *seconds)
{
    int day = tm->tm_mday;
    *seconds = (int64_t)timegm(tm);
    return tm->tm_mday == day;
}

bool cr_time_parse(const char *text, int64_t *wall_ms, struct cr_error *err)
{
    struct tm tm = {0};
    const char *rest = has_shape(text, "0000-00-00T00:00:00") ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    int ms = 0;
    int offset = 0;
    if (rest)
        rest = parse_fraction(rest, &ms);
    int64_t seconds = 0;
    if (!rest || !parse_offset(rest, &offset) || !to_seconds(&tm, &seconds))
        return cr_error_set(err, CR_ERR_INVALID, "'%s' is not an RFC 3339 time", text);
    int64_t at = (seconds - offset) * 1000 + ms;
    if (at != clamp(at))
        return cr_error_set(err, CR_ERR_INVALID, "'%s' is in UTC not within the years 0000 to 9999", text);
    *wall_ms = at;
    return true;
}

static bool unit_of(const char **p, int64_t *ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"ms", 1}, {"h", 3600000}, {"m", 60000}, {"s", 1000}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t n = strlen(units[i].name);
        if (strncmp(*p, units[i].name, n) == 0) {
            *p += n;
            *ms = units[i].ms;
            return true;
        }
    }
    return false;
}

/* GEP-2257: one to four numbers of at most five digits, each with a unit h, m, s or ms. */
bool cr_duration_parse(const char *text, int64_t *ms, struct cr_error *err)
{
    const char *p = text;
    int64_t total = 0;
    int parts = 0;
    while (*p && parts < 4) {
        int64_t number = 0;
        int digits = 0;
        for (; isdigit((unsigned char)*p) && digits < 6; p++, digits++)
            number = number * 10 + (*p - '0');
        int64_t unit = 0;
        if (digits == 0 || digits > 5 || !unit_of(&p, &unit)) {
            parts = 0; /* also when the text ends here: "1h30" is not 1h */
            break;
        }
        total += number * unit;
        parts++;
    }
    if (parts == 0 || *p)
        return cr_error_set(err, CR_ERR_INVALID, "'%s' is not a duration such as 10s, 5m or 1h30m", text);
    *ms = total;
    return true;
}

void cr_duration_format(int64_t ms, char out[CR_TIME_TEXT])
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (ms < units[i].ms)
            continue;
        n += (size_t)snprintf(out + n, CR_TIME_TEXT - n, "%lld%s", (long long)(ms / units[i].ms), units[i].name);
        ms %= units[i].ms;
    }
    if (n == 0)
        snprintf(out, CR_TIME_TEXT, "0s");
}
