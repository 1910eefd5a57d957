#include "policy/rules/schedule.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/civil.h"

enum {
    SECOND_MS = 1000,
    MINUTE_S = 60,
    DAY_MINUTES = CR_DAY_S / MINUTE_S,
    /* A 29th of February that is a Sunday comes after 28 years, or 40 around 2100. */
    HORIZON_DAYS = 41 * 366,
    JITTER_SHARE = 10,
};

/* When the first of the minutes of that day comes, from that one on. */
static int64_t next_of_day(const struct cr_cron *cron, const struct cr_tzif *zone, int64_t day, int minute)
{
    minute = cr_cron_on_day(cron, day) ? cr_cron_next_minute(cron, minute) : -1;
    return minute < 0 ? CR_SCHEDULE_NEVER : cr_tzif_from_local(zone, day * CR_DAY_S + (int64_t)minute * MINUTE_S);
}

int64_t cr_schedule_next_ms(const struct cr_cron *cron, const struct cr_tzif *zone, int64_t from_ms)
{
    int64_t from_s = -cr_floor_div(-from_ms, SECOND_MS); /* rounded up */
    /* Later local times come later, or at the same change. So what clocks showed a second ago is over, with all before
     * it, and what follows on it is the earliest that can be meant. */
    int64_t shown_s = from_s - 1 + cr_tzif_offset(zone, from_s - 1);
    int64_t minute = cr_floor_div(shown_s, MINUTE_S) + 1;
    for (int64_t end = minute + (int64_t)HORIZON_DAYS * DAY_MINUTES; minute < end;) {
        int64_t day = cr_floor_div(minute, DAY_MINUTES);
        int of_day = (int)(minute - day * DAY_MINUTES);
        int64_t at_s = next_of_day(cron, zone, day, of_day);
        if (at_s == CR_SCHEDULE_NEVER) {
            minute = (day + 1) * DAY_MINUTES;
            continue;
        }
        if (at_s >= from_s)
            return at_s * SECOND_MS;
        /* It is shown for the second time. */
        minute = day * DAY_MINUTES + cr_cron_next_minute(cron, of_day) + 1;
    }
    return CR_SCHEDULE_NEVER;
}

/* FNV-1a, and a mix at its end so that all bits of short texts count. Nothing is gained by choosing one. */
static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    hash = (hash ^ hash >> 16) * 2246822507u;
    hash = (hash ^ hash >> 13) * 3266489909u;
    return hash ^ hash >> 16;
}

int64_t cr_schedule_jitter_ms(const char *who, int64_t duration_ms)
{
    int64_t most = duration_ms / JITTER_SHARE;
    if (most > CR_SCHEDULE_JITTER_MAX_MS)
        most = CR_SCHEDULE_JITTER_MAX_MS;
    return most * hash_of(who) >> 32;
}

struct cr_schedule cr_schedule_judge(const struct cr_window *windows, size_t len, const char *who, int64_t now_ms)
{
    struct cr_schedule schedule = {.next_ms = CR_SCHEDULE_NEVER};
    for (size_t i = 0; i < len && !schedule.open; i++) {
        const struct cr_window *window = &windows[i];
        int64_t jitter_ms = cr_schedule_jitter_ms(who, window->duration_ms);
        /* The first opening that is not over yet. */
        int64_t opens_ms = cr_schedule_next_ms(window->cron, window->zone, now_ms - window->duration_ms + 1);
        if (opens_ms == CR_SCHEDULE_NEVER)
            continue;
        schedule.open = opens_ms + jitter_ms <= now_ms;
        if (opens_ms + jitter_ms < schedule.next_ms) {
            schedule.next_ms = opens_ms + jitter_ms;
            schedule.window = i;
        }
    }
    return schedule;
}

char *cr_schedule_time(const struct cr_tzif *zone, const char *name, int64_t at_ms)
{
    int64_t at_s = cr_floor_div(at_ms, SECOND_MS);
    int32_t offset_s = cr_tzif_offset(zone, at_s);
    int64_t day = cr_floor_div(at_s + offset_s, CR_DAY_S);
    int of_day = (int)(at_s + offset_s - day * CR_DAY_S);
    struct cr_civil date = cr_civil_from_days(day);
    int offset_min = abs(offset_s) / MINUTE_S;
    return cr_asprintf("%04lld-%02d-%02dT%02d:%02d:%02d%c%02d:%02d (%s)", (long long)date.year, date.month, date.day,
                       of_day / 3600, of_day / MINUTE_S % MINUTE_S, of_day % MINUTE_S, offset_s < 0 ? '-' : '+',
                       offset_min / 60, offset_min % 60, name);
}
