/* With the time zone database of this machine. */
#include "policy/rules/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/civil.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strings.h"
#include "support/crontext.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE };

static int64_t at(const char *text)
{
    int64_t ms = 0;
    assert_true(cr_time_parse(text, &ms, NULL));
    return ms;
}

static struct cr_tzif *zone_of(const char *name)
{
    static unsigned char data[CR_TZIF_MAX];
    cr_autofree char *path = cr_asprintf("/usr/share/zoneinfo/%s", name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s is not there: install tzdata", path);
    size_t len = fread(data, 1, sizeof data, file);
    fclose(file);
    struct cr_tzif *zone = cr_tzif_parse(data, len, NULL);
    assert_non_null(zone);
    return zone;
}

static void the_next_opening(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *schedule;
        const char *zone;
        const char *from;
        const char *want;
    } cases[] = {
        {"the minute itself counts", "0 2 * * *", "UTC", "2026-11-21T02:00:00Z", "2026-11-21T02:00:00Z"},
        {"a millisecond later it is over", "0 2 * * *", "UTC", "2026-11-21T02:00:00.001Z", "2026-11-22T02:00:00Z"},
        {"the clocks of the zone count", "0 2 * * *", "Asia/Kolkata", "2026-11-21T00:00:00Z", "2026-11-21T20:30:00Z"},
        {"over the new year", "0 0 1 1 *", "UTC", "2026-11-21T00:00:00Z", "2027-01-01T00:00:00Z"},
        {"a leap day", "0 0 29 2 *", "UTC", "2026-11-21T00:00:00Z", "2028-02-29T00:00:00Z"},
        {"no leap day in 2100", "0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
        {"a leap day that is a Sunday, across 2100", "0 0 29 2 */7", "UTC", "2088-03-01T00:00:00Z",
         "2128-02-29T00:00:00Z"},
        {"before the change to summer time", "0 2 * * *", "Europe/Paris", "2026-03-28T00:00:00Z",
         "2026-03-28T01:00:00Z"},
        {"left out in spring: at the change", "30 2 * * *", "Europe/Paris", "2026-03-28T12:00:00Z",
         "2026-03-29T01:00:00Z"},
        {"at the change itself", "30 2 * * *", "Europe/Paris", "2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z"},
        {"left out opens once", "30 2 * * *", "Europe/Paris", "2026-03-29T01:00:00.001Z", "2026-03-30T00:30:00Z"},
        {"all that is left out opens once, together", "*/20 2 * * *", "Europe/Paris", "2026-03-29T01:00:01Z",
         "2026-03-30T00:00:00Z"},
        {"twice in autumn: the first time", "30 2 * * *", "Europe/Paris", "2026-10-24T12:00:00Z",
         "2026-10-25T00:30:00Z"},
        {"not the second time", "30 2 * * *", "Europe/Paris", "2026-10-25T00:30:01Z", "2026-10-26T01:30:00Z"},
        {"not from within the second time", "30 2 * * *", "Europe/Paris", "2026-10-25T01:10:00Z",
         "2026-10-26T01:30:00Z"},
        {"what follows the second time", "30 2,3 * * *", "Europe/Paris", "2026-10-25T01:10:00Z",
         "2026-10-25T02:30:00Z"},
        {"half an hour, left out", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-03T15:30:00Z"},
        {"half an hour, twice", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", "2026-04-04T14:45:00Z"},
        {"daylight time that is less than standard", "0 12 * * *", "Europe/Dublin", "2026-07-01T00:00:00Z",
         "2026-07-01T11:00:00Z"},
        {"by the rule for ever", "30 2 * * *", "Europe/Paris", "2100-03-27T12:00:00Z", "2100-03-28T01:00:00Z"},
        {"a day that was left out", "0 12 30 12 *", "Pacific/Apia", "2011-12-29T12:00:00Z", "2011-12-30T10:00:00Z"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_tzif) struct cr_tzif *zone = zone_of(cases[i].zone);
        struct cr_cron cron = test_cron(cases[i].schedule);
        int64_t next = cr_schedule_next_ms(&cron, zone, at(cases[i].from));
        char text[CR_TIME_TEXT];
        cr_time_format(next, text);
        if (next != at(cases[i].want))
            fail_msg("%s: %s", cases[i].rule, text);
    }
}

/* --- against brute force --- */

/* Second by second would be too slow, so by minutes: each change of these zones is at a whole one. A minute opens if
 * the schedule has one of the local minutes that come up with it and were never shown before. */
struct brute {
    const struct cr_cron *cron;
    const struct cr_tzif *zone;
    int64_t shown; /* the highest local minute so far */
};

static int64_t local_minute(const struct cr_tzif *zone, int64_t minute)
{
    return cr_floor_div(minute * 60 + cr_tzif_offset(zone, minute * 60), 60);
}

static bool opens_at(struct brute *brute, int64_t minute)
{
    bool opens = false;
    for (int64_t end = local_minute(brute->zone, minute); brute->shown < end;) {
        int64_t local = ++brute->shown;
        int64_t day = cr_floor_div(local, 24 * 60);
        int of_day = (int)(local - day * 24 * 60);
        opens = opens || (cr_cron_on_day(brute->cron, day) && cr_cron_next_minute(brute->cron, of_day) == of_day);
    }
    return opens;
}

/* Each next one is asked for from the last one on: so each comes once, too. */
static void compare(const struct cr_cron *cron, const struct cr_tzif *zone, int64_t start, int64_t end)
{
    struct brute brute = {cron, zone, local_minute(zone, start - 1)};
    int64_t expected = cr_schedule_next_ms(cron, zone, start * MINUTE);
    for (int64_t minute = start; minute < end; minute++) {
        bool opens = opens_at(&brute, minute);
        if (opens != (expected == minute * MINUTE))
            fail_msg("minute %lld", (long long)minute);
        if (opens)
            expected = cr_schedule_next_ms(cron, zone, minute * MINUTE + 1);
    }
}

static void the_next_opening_is_the_first_that_brute_force_finds(void **state)
{
    (void)state;
    static const char *const zones[] = {"UTC",           "Europe/Paris",     "Australia/Lord_Howe", "America/New_York",
                                        "Europe/Dublin", "Africa/Casablanca"};
    static const char *const schedules[] = {
        "* * * * *",   "30 2 * * *",  "*/20 1-3 * * *",        "0 0 1 * *",
        "59 23 * * 0", "15 2 13 * 5", "0 */5 */9 3,4,10,11 *", "45 1,2 25-31 3,10 0"};
    /* With the changes of these zones in them. */
    static const char *const spans[][2] = {{"2026-02-13T00:00:00Z", "2026-04-06T00:00:00Z"},
                                           {"2026-10-02T00:00:00Z", "2026-11-03T00:00:00Z"}};
    for (size_t z = 0; z < cr_array_len(zones); z++) {
        CR_CLEANUP(cr_tzif) struct cr_tzif *zone = zone_of(zones[z]);
        for (size_t s = 0; s < cr_array_len(schedules); s++) {
            struct cr_cron cron = test_cron(schedules[s]);
            for (size_t i = 0; i < cr_array_len(spans); i++)
                compare(&cron, zone, at(spans[i][0]) / MINUTE, at(spans[i][1]) / MINUTE);
        }
    }
}

/* From any time, not just from the last opening. */
static void from_anywhere_the_same_opening_is_next(void **state)
{
    (void)state;
    CR_CLEANUP(cr_tzif) struct cr_tzif *zone = zone_of("Europe/Paris");
    struct cr_cron cron = test_cron("30 2 * * *");
    for (int64_t from = at("2026-10-23T00:00:00Z"); from < at("2026-10-27T00:00:00Z"); from += 7 * MINUTE + 1) {
        int64_t next = cr_schedule_next_ms(&cron, zone, from);
        assert_true(next >= from);
        for (int64_t between = from; between <= next; between += 3 * HOUR + 1)
            assert_int_equal(cr_schedule_next_ms(&cron, zone, between), next);
    }
}

/* --- windows --- */

static void windows_open_and_close(void **state)
{
    (void)state;
    CR_CLEANUP(cr_tzif) struct cr_tzif *paris = zone_of("Europe/Paris");
    CR_CLEANUP(cr_tzif) struct cr_tzif *utc = cr_tzif_new_utc();
    struct cr_cron night = test_cron("0 2 * * *");
    struct cr_cron noon = test_cron("0 12 * * mon-fri");
    struct cr_cron hourly = test_cron("0 * * * *");
    const struct cr_window one = {&night, paris, (int64_t)4 * HOUR};
    const struct cr_window both[] = {one, {&noon, utc, HOUR}};
    const struct cr_window always = {&hourly, utc, (int64_t)168 * HOUR};
    const struct cr_window week_end = {&noon, utc, (int64_t)72 * HOUR};
    const struct {
        const char *rule;
        const struct cr_window *windows;
        size_t len;
        const char *now;
        const char *opens; /* NULL: it is open */
        size_t window;
    } cases[] = {
        {"none is never open", NULL, 0, "2026-11-21T02:00:00Z", "never", 0},
        {"before", &one, 1, "2026-11-21T00:59:59.999Z", "2026-11-21T01:00:00Z", 0},
        {"each has its own moment to wait", &one, 1, "2026-11-21T01:00:00Z", "2026-11-21T01:00:00Z", 0},
        {"which is over soon", &one, 1, "2026-11-21T01:00:30Z", NULL, 0},
        {"to its last millisecond", &one, 1, "2026-11-21T04:59:59.999Z", NULL, 0},
        {"at its end it is closed", &one, 1, "2026-11-21T05:00:00Z", "2026-11-22T01:00:00Z", 0},
        {"the duration passes over a change", &one, 1, "2026-03-29T04:59:59Z", NULL, 0},
        {"and is as long as ever", &one, 1, "2026-03-29T05:00:00Z", "2026-03-30T00:00:00Z", 0},
        {"one of several", both, 2, "2026-11-20T12:30:00Z", NULL, 1},
        {"the first to open", both, 2, "2026-11-20T06:00:00Z", "2026-11-20T12:00:00Z", 1},
        {"the other one", both, 2, "2026-11-20T13:00:00Z", "2026-11-21T01:00:00Z", 0},
        {"those that overlap never close", &always, 1, "2026-11-21T00:00:00Z", NULL, 0},
        {"over several days", &week_end, 1, "2026-11-23T11:59:59Z", NULL, 0},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        int64_t jitter = cr_schedule_jitter_ms("a policy", HOUR);
        struct cr_schedule got = cr_schedule_judge(cases[i].windows, cases[i].len, "a policy", at(cases[i].now));
        bool never = cr_streq(cases[i].opens, "never");
        if (got.open != !cases[i].opens)
            fail_msg("%s", cases[i].rule);
        if (got.open)
            continue;
        assert_true(got.next_ms == (never ? CR_SCHEDULE_NEVER : at(cases[i].opens) + jitter));
        assert_int_equal(got.window, cases[i].window);
    }
}

static void jitter_is_small_and_spread_and_the_same_each_time(void **state)
{
    (void)state;
    int tenths[10] = {0};
    for (int i = 0; i < 1000; i++) {
        char who[64];
        snprintf(who, sizeof who, "8f7c1c1e-5c1d-4f2a-9d3e-%012d", i);
        int64_t jitter = cr_schedule_jitter_ms(who, HOUR);
        assert_true(jitter >= 0 && jitter < CR_SCHEDULE_JITTER_MAX_MS);
        assert_int_equal(cr_schedule_jitter_ms(who, HOUR), jitter);
        assert_true(cr_schedule_jitter_ms(who, MINUTE) < 6 * SECOND);
        tenths[jitter * 10 / CR_SCHEDULE_JITTER_MAX_MS]++;
    }
    for (int i = 0; i < 10; i++)
        assert_in_range(tenths[i], 50, 150);
}

static void times_are_printed_as_local_clocks_show_them(void **state)
{
    (void)state;
    static const struct {
        const char *zone;
        const char *time;
        const char *want;
    } cases[] = {
        {"UTC", "2026-11-22T02:00:00Z", "2026-11-22T02:00:00+00:00 (UTC)"},
        {"Europe/Paris", "2026-11-22T01:00:00Z", "2026-11-22T02:00:00+01:00 (Europe/Paris)"},
        {"America/St_Johns", "2026-07-01T01:29:59Z", "2026-06-30T22:59:59-02:30 (America/St_Johns)"},
        {"Asia/Kathmandu", "2026-12-31T18:15:30Z", "2027-01-01T00:00:30+05:45 (Asia/Kathmandu)"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_tzif) struct cr_tzif *zone = zone_of(cases[i].zone);
        cr_autofree char *text = cr_schedule_time(zone, cases[i].zone, at(cases[i].time));
        assert_string_equal(text, cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_opening),
        cmocka_unit_test(the_next_opening_is_the_first_that_brute_force_finds),
        cmocka_unit_test(from_anywhere_the_same_opening_is_next),
        cmocka_unit_test(windows_open_and_close),
        cmocka_unit_test(jitter_is_small_and_spread_and_the_same_each_time),
        cmocka_unit_test(times_are_printed_as_local_clocks_show_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
