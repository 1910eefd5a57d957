/* With the time zone database of this machine, which is also where the image gets it from. */
#include "codec/tzif.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

#define ZONES "/usr/share/zoneinfo"

enum { H = 3600, M = 60 };

static const char *const zones[] = {
    "UTC",         "Europe/Paris",      "Europe/Dublin",    "America/New_York", "Asia/Kolkata",  "Australia/Lord_Howe",
    "Asia/Tehran", "Africa/Casablanca", "Pacific/Apia",     "Pacific/Chatham",  "America/Nuuk",  "Africa/Cairo",
    "Asia/Gaza",   "America/Sao_Paulo", "Antarctica/Troll", "America/St_Johns", "Europe/London", "Asia/Kathmandu",
};

static int64_t at(const char *text)
{
    int64_t ms = 0;
    assert_true(cr_time_parse(text, &ms, NULL));
    return ms / 1000;
}

static size_t load(const char *name, unsigned char out[CR_TZIF_MAX])
{
    cr_autofree char *path = cr_asprintf("%s/%s", ZONES, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s is not there: install tzdata", path);
    size_t len = fread(out, 1, CR_TZIF_MAX, file);
    fclose(file);
    return len;
}

static struct cr_tzif *zone_of(const char *name)
{
    static unsigned char data[CR_TZIF_MAX];
    size_t len = load(name, data);
    struct cr_error err = {0};
    struct cr_tzif *zone = cr_tzif_parse(data, len, &err);
    if (!zone)
        fail_msg("%s: %s", name, err.text);
    return zone;
}

static void known_instants(void **state)
{
    (void)state;
    static const struct {
        const char *zone;
        const char *time;
        int32_t offset;
    } cases[] = {
        {"UTC", "2026-07-01T00:00:00Z", 0},
        {"Europe/Paris", "1850-01-01T00:00:00Z", 9 * M + 21}, /* before the first change */
        {"Europe/Paris", "2026-03-29T00:59:59Z", 1 * H},
        {"Europe/Paris", "2026-03-29T01:00:00Z", 2 * H},
        {"Europe/Paris", "2026-10-25T00:59:59Z", 2 * H},
        {"Europe/Paris", "2026-10-25T01:00:00Z", 1 * H},
        {"Europe/Paris", "2037-07-01T00:00:00Z", 2 * H},
        {"Europe/Paris", "2100-07-01T00:00:00Z", 2 * H}, /* by the footer */
        {"Europe/Paris", "2100-12-01T00:00:00Z", 1 * H},
        {"America/New_York", "2026-03-08T06:59:59Z", -5 * H},
        {"America/New_York", "2026-03-08T07:00:00Z", -4 * H},
        {"America/New_York", "2100-11-07T06:00:00Z", -5 * H},
        {"Asia/Kolkata", "2026-07-01T00:00:00Z", 5 * H + 30 * M},
        {"Asia/Kolkata", "2100-07-01T00:00:00Z", 5 * H + 30 * M},
        {"Australia/Lord_Howe", "2026-01-01T00:00:00Z", 11 * H},
        {"Australia/Lord_Howe", "2026-07-01T00:00:00Z", 10 * H + 30 * M},
        {"Australia/Lord_Howe", "2100-07-01T00:00:00Z", 10 * H + 30 * M},
        {"Africa/Casablanca", "2026-02-25T00:00:00Z", 0}, /* Ramadan */
        {"Africa/Casablanca", "2026-07-01T00:00:00Z", 1 * H},
        {"Europe/Dublin", "2026-01-01T00:00:00Z", 0},
        {"Europe/Dublin", "2026-07-01T00:00:00Z", 1 * H},
        {"Europe/Dublin", "2100-01-01T00:00:00Z", 0},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_tzif) struct cr_tzif *zone = zone_of(cases[i].zone);
        if (cr_tzif_offset(zone, at(cases[i].time)) != cases[i].offset)
            fail_msg("%s at %s", cases[i].zone, cases[i].time);
    }
}

/* This program has one thread, so it may ask the C library. */
static void offsets_are_those_of_the_c_library(void **state)
{
    (void)state;
    static const char *const from[] = {"1970-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2037-01-01T00:00:00Z",
                                       "2100-01-01T00:00:00Z"};
    for (size_t z = 0; z < cr_array_len(zones); z++) {
        CR_CLEANUP(cr_tzif) struct cr_tzif *zone = zone_of(zones[z]);
        assert_int_equal(setenv("TZ", zones[z], 1), 0);
        tzset();
        for (size_t i = 0; i < cr_array_len(from); i++)
            for (int64_t t = at(from[i]); t < at(from[i]) + (int64_t)366 * 24 * H; t += 30 * M) {
                time_t seconds = (time_t)t;
                struct tm tm;
                localtime_r(&seconds, &tm);
                if (cr_tzif_offset(zone, t) != tm.tm_gmtoff)
                    fail_msg("%s at %lld", zones[z], (long long)t);
            }
    }
    unsetenv("TZ");
}

static void local_times_at_a_change(void **state)
{
    (void)state;
    static const struct {
        const char *zone;
        const char *local; /* as if it were UTC */
        const char *time;
    } cases[] = {
        {"UTC", "2026-03-29T02:30:00Z", "2026-03-29T02:30:00Z"},
        {"Europe/Paris", "2026-03-29T01:59:59Z", "2026-03-29T00:59:59Z"},
        {"Europe/Paris", "2026-03-29T02:00:00Z", "2026-03-29T01:00:00Z"}, /* left out: at the change */
        {"Europe/Paris", "2026-03-29T02:30:00Z", "2026-03-29T01:00:00Z"},
        {"Europe/Paris", "2026-03-29T03:00:00Z", "2026-03-29T01:00:00Z"},
        {"Europe/Paris", "2026-03-29T03:00:01Z", "2026-03-29T01:00:01Z"},
        {"Europe/Paris", "2026-10-25T02:30:00Z", "2026-10-25T00:30:00Z"}, /* twice: the first */
        {"Europe/Paris", "2026-10-25T03:00:00Z", "2026-10-25T02:00:00Z"},
        {"Europe/Paris", "2100-03-28T02:30:00Z", "2100-03-28T01:00:00Z"},
        {"Australia/Lord_Howe", "2026-10-04T02:15:00Z", "2026-10-03T15:30:00Z"}, /* half an hour is left out */
        {"Australia/Lord_Howe", "2026-04-05T01:45:00Z", "2026-04-04T14:45:00Z"},
        {"Pacific/Apia", "2011-12-30T12:00:00Z", "2011-12-30T10:00:00Z"}, /* a day that never was */
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_tzif) struct cr_tzif *zone = zone_of(cases[i].zone);
        if (cr_tzif_from_local(zone, at(cases[i].local)) != at(cases[i].time))
            fail_msg("%s, local %s", cases[i].zone, cases[i].local);
    }
}

/* Whatever the zone: at that time clocks show it or later, a second before they never had. */
static void a_local_time_is_when_clocks_first_show_it(void **state)
{
    (void)state;
    for (size_t z = 0; z < cr_array_len(zones); z++) {
        CR_CLEANUP(cr_tzif) struct cr_tzif *zone = zone_of(zones[z]);
        int64_t highest = INT64_MIN;
        int64_t start = at("2026-01-01T00:00:00Z");
        for (int64_t t = start; t < start + (int64_t)370 * 24 * H; t += 15 * M) {
            int64_t local = t + cr_tzif_offset(zone, t);
            if (local <= highest)
                continue; /* shown before */
            int64_t first = cr_tzif_from_local(zone, local);
            assert_int_equal(first, t);
            if (highest != INT64_MIN && local > highest + 15 * M) /* just sprung forward: from the first one left out */
                assert_int_equal(cr_tzif_from_local(zone, highest + 15 * M), t);
            highest = local;
        }
    }
}

static void utc_needs_no_file(void **state)
{
    (void)state;
    CR_CLEANUP(cr_tzif) struct cr_tzif *utc = cr_tzif_new_utc();
    assert_int_equal(cr_tzif_offset(utc, at("2026-07-01T00:00:00Z")), 0);
    assert_int_equal(cr_tzif_from_local(utc, at("2100-07-01T00:00:00Z")), at("2100-07-01T00:00:00Z"));
}

static void a_file_that_is_cut_anywhere_is_refused(void **state)
{
    (void)state;
    static unsigned char data[CR_TZIF_MAX];
    size_t len = load("Europe/Paris", data);
    for (size_t n = 0; n < len; n++) {
        cr_autofree unsigned char *cut = cr_malloc(n + 1);
        memcpy(cut, data, n);
        struct cr_error err = {0};
        assert_null(cr_tzif_parse(cut, n, &err));
        assert_int_equal(err.kind, CR_ERR_INVALID);
    }
}

/* --- files by hand --- */

#define MAGIC    "TZif"
#define RESERVED "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
/* Counts: UTC flags, standard flags, leap seconds, changes, types, letters. */
#define COUNTS(leaps, changes, types) "\0\0\0\0\0\0\0\0\0\0\0" leaps "\0\0\0" changes "\0\0\0" types "\0\0\0\4"
#define EMPTY_BLOCK(version)          MAGIC version RESERVED COUNTS("\0", "\0", "\1") "\0\0\0\0\0\0UTC\0"
#define HOUR_EAST                     "\0\0\x0e\x10\0\0"
#define BYTES(text)                   (text), sizeof(text) - 1

static void files_by_hand(void **state)
{
    (void)state;
    static const struct {
        const char *data;
        size_t len;
        const char *problem; /* NULL: none */
        int32_t offset;      /* in 2026 */
    } cases[] = {
        {BYTES(EMPTY_BLOCK("\0")), NULL, 0},
        {BYTES(MAGIC "\0" RESERVED COUNTS("\0", "\1", "\2") "\0\0\0\0\1\0\0\0\0\0\0" HOUR_EAST "UTC\0"), NULL, 1 * H},
        {BYTES(EMPTY_BLOCK("2") EMPTY_BLOCK("2") "\n\n"), NULL, 0},
        {BYTES(EMPTY_BLOCK("3") EMPTY_BLOCK("3") "\nIST-5:30\n"), NULL, 5 * H + 30 * M},
        {BYTES(EMPTY_BLOCK("4") EMPTY_BLOCK("4") "\nUTC0\n"), NULL, 0},
        {BYTES(""), "no TZif file", 0},
        {BYTES("# tzdb data for Europe"), "no TZif file", 0},
        {BYTES(EMPTY_BLOCK("1")), "no known version", 0},
        {BYTES(EMPTY_BLOCK("2")), "no TZif file", 0}, /* the second block is missing */
        {BYTES(EMPTY_BLOCK("2") EMPTY_BLOCK("2")), "footer", 0},
        {BYTES(EMPTY_BLOCK("2") EMPTY_BLOCK("2") "\nUTC0"), "footer", 0},
        {BYTES(EMPTY_BLOCK("2") EMPTY_BLOCK("2") "\nnonsense\n"), "footer: 'nonsense'", 0},
        {BYTES(MAGIC "\0" RESERVED COUNTS("\0", "\0", "\0") "UTC\0"), "no local time type", 0},
        {BYTES(MAGIC "\0" RESERVED COUNTS("\1", "\0", "\1") "\0\0\0\0\0\0UTC\0\0\0\0\0\0\0\0\0"), "leap seconds", 0},
        {BYTES(MAGIC "\0" RESERVED COUNTS("\0", "\0", "\1") "\0\1\x6d\xa0\0\0UTC\0"), "93600 s away", 0},
        {BYTES(MAGIC "\0" RESERVED COUNTS("\0", "\1", "\1") "\0\0\0\0\1\0\0\0\0\0\0UTC\0"), "does not have", 0},
        {BYTES(MAGIC "\0" RESERVED COUNTS("\0", "\2", "\1") "\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0\0UTC\0"), "not after", 0},
        {BYTES(MAGIC "\0" RESERVED "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
                     "\xff\xff\xff\xff"),
         "cut off", 0},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *exact = cr_malloc(cases[i].len + 1); /* so that a read beyond it is seen */
        memcpy(exact, cases[i].data, cases[i].len);
        struct cr_error err = {0};
        CR_CLEANUP(cr_tzif) struct cr_tzif *zone = cr_tzif_parse(exact, cases[i].len, &err);
        if (!zone != !!cases[i].problem || (cases[i].problem && !strstr(err.text, cases[i].problem)))
            fail_msg("case %zu: %s", i, err.text);
        if (zone)
            assert_int_equal(cr_tzif_offset(zone, at("2026-07-01T00:00:00Z")), cases[i].offset);
    }
}

static void a_file_that_is_too_long_is_refused(void **state)
{
    (void)state;
    cr_autofree char *data = cr_calloc(CR_TZIF_MAX + 1, 1);
    struct cr_error err = {0};
    assert_null(cr_tzif_parse(data, CR_TZIF_MAX + 1, &err));
    assert_non_null(strstr(err.text, "longer than 65536 bytes"));
}

static void names_stay_within_the_folder(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool good;
    } cases[] = {
        {"UTC", true},
        {"Europe/Paris", true},
        {"America/Argentina/Buenos_Aires", true},
        {"Etc/GMT+5", true},
        {"", false},
        {"/etc/passwd", false},
        {"../../etc/passwd", false},
        {"Europe/", false},
        {"Europe//Paris", false},
        {"Europe/Par is", false},
        {"tzdata.zi", false},
        {"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        assert_int_equal(cr_tzif_name_check(cases[i].name, &err), cases[i].good);
        assert_int_equal(err.kind, cases[i].good ? CR_ERR_NONE : CR_ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_instants),
        cmocka_unit_test(offsets_are_those_of_the_c_library),
        cmocka_unit_test(local_times_at_a_change),
        cmocka_unit_test(a_local_time_is_when_clocks_first_show_it),
        cmocka_unit_test(utc_needs_no_file),
        cmocka_unit_test(a_file_that_is_cut_anywhere_is_refused),
        cmocka_unit_test(files_by_hand),
        cmocka_unit_test(a_file_that_is_too_long_is_refused),
        cmocka_unit_test(names_stay_within_the_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
