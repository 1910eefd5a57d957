#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"

/* https://gateway-api.sigs.k8s.io/geps/gep-2257/: ^([0-9]{1,5}(h|m|s|ms)){1,4}$ */
static void durations_are_those_of_gep_2257(void **state)
{
    static const struct {
        const char *text;
        int64_t ms; /* -1: refused */
    } cases[] = {
        {"0s", 0},
        {"0h", 0},
        {"10s", 10000},
        {"500ms", 500},
        {"1m", 60000},
        {"1h30m", 5400000},
        {"1h1m1s1ms", 3661001},
        {"30m1h", 5400000}, /* any order */
        {"1s1s", 2000},     /* and again */
        {"00010s", 10000},
        {"99999h", 359996400000},
        {"99999h99999h99999h99999h", 1439985600000},
        {"", -1},
        {"10", -1},
        {"s", -1},
        {"0", -1}, /* though Go takes it */
        {"-10s", -1},
        {"+10s", -1},
        {"1.5h", -1},
        {"10 s", -1},
        {" 10s", -1},
        {"10s ", -1},
        {"100000s", -1},
        {"1h1m1s1ms1h", -1},
        {"1d", -1},
        {"1us", -1},
        {"10S", -1},
        {"10sx", -1},
        {"1h30", -1},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        int64_t ms = -77;
        struct cr_error err = {0};
        bool ok = cr_duration_parse(cases[i].text, &ms, &err);
        if (ok != (cases[i].ms >= 0) || (ok && ms != cases[i].ms))
            fail_msg("'%s': %s %lld", cases[i].text, ok ? "is" : err.text, (long long)ms);
        if (!ok) {
            assert_int_equal(err.kind, CR_ERR_INVALID);
            assert_int_equal(ms, -77);
        }
    }
}

static void a_duration_is_written_as_short_as_can_be(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {
        {0, "0s"},          {1, "1ms"},      {1000, "1s"},           {1500, "1s500ms"},        {60000, "1m"},
        {5400000, "1h30m"}, {3600000, "1h"}, {3661001, "1h1m1s1ms"}, {359996400000, "99999h"}, {86400000, "24h"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        char text[CR_TIME_TEXT];
        cr_duration_format(cases[i].ms, text);
        assert_string_equal(text, cases[i].text);
        int64_t back = -1;
        assert_true(cr_duration_parse(text, &back, NULL));
        assert_int_equal(back, cases[i].ms);
    }
}

static void times_are_those_of_rfc_3339(void **state)
{
    static const struct {
        const char *text;
        bool ok;
        int64_t ms;
    } cases[] = {
        {"1970-01-01T00:00:00Z", true, 0},
        {"1970-01-01T00:00:00.001Z", true, 1},
        {"1969-12-31T23:59:59.999Z", true, -1},
        {"2026-11-21T06:10:21Z", true, 1795241421000},
        {"2026-11-21T06:10:21.123456Z", true, 1795241421123},
        {"2026-11-21T06:10:21.123456789Z", true, 1795241421123},
        {"2026-11-21T06:10:21.5Z", true, 1795241421500},
        {"2026-11-21T07:10:21+01:00", true, 1795241421000},
        {"2026-11-21T00:40:21-05:30", true, 1795241421000},
        {"2026-11-21T06:10:21+00:00", true, 1795241421000},
        {"2024-02-29T00:00:00Z", true, 1709164800000},
        {"2100-01-01T00:00:00Z", true, 4102444800000},
        {"0226-01-01T00:00:00Z", true, -55035331200000},
        {"0000-01-01T00:00:00Z", true, -62167219200000},
        {"9999-12-31T23:59:59.999999Z", true, 253402300799999},
        {"0000-01-01T00:00:00+00:01", false, 0}, /* in UTC of the year before */
        {"9999-12-31T23:59:59-00:01", false, 0}, /* and after */
        {"0000-01-01T01:00:00+01:00", true, -62167219200000},
        {"", false, 0},
        {"2026-11-21", false, 0},
        {"2026-11-21T06:10:21", false, 0},
        {"2026-11-21T06:10Z", false, 0},
        {"2026-11-21 06:10:21Z", false, 0},
        {"2026-13-21T06:10:21Z", false, 0},
        {"2026-11-32T06:10:21Z", false, 0},
        {"2026-11-21T25:10:21Z", false, 0},
        {"2026-11-21T06:60:21Z", false, 0},
        {"2026-11-21T06:10:21.Z", false, 0},
        {"2026-11-21T06:10:21+1:00", false, 0},
        {"2026-11-21T06:10:21+24:00", false, 0},
        {"2026-11-21T06:10:21+01:60", false, 0},
        {"2026-11-21T06:10:21+0100", false, 0},
        {"2026-11-21T06:10:21Zx", false, 0},
        {"2026-11-21T06:10:21+01:00x", false, 0},
        {"2026-02-30T00:00:00Z", false, 0},
        {"2025-02-29T00:00:00Z", false, 0},
        {"2026-1-2T03:04:05Z", false, 0},
        {"26-11-21T06:10:21Z", false, 0},
        {" 2026-11-21T06:10:21Z", false, 0},
        {"2026-11-21T06:10:21+ 1:00", false, 0},
        {"now", false, 0},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        int64_t ms = -77;
        struct cr_error err = {0};
        bool ok = cr_time_parse(cases[i].text, &ms, &err);
        if (ok != cases[i].ok || (ok && ms != cases[i].ms))
            fail_msg("'%s': %s %lld", cases[i].text, ok ? "is" : err.text, (long long)ms);
        if (!ok)
            assert_int_equal(err.kind, CR_ERR_INVALID);
    }
}

static void times_are_written_as_the_api_writes_them(void **state)
{
    static const struct {
        int64_t ms;
        const char *seconds;
        const char *micro;
    } cases[] = {
        {0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"},
        {1795241421123, "2026-11-21T06:10:21Z", "2026-11-21T06:10:21.123000Z"},
        {-1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999000Z"},
        {1709164799999, "2024-02-28T23:59:59Z", "2024-02-28T23:59:59.999000Z"},
        {1709164800000, "2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000000Z"},
        /* A year has four digits. */
        {-55035331200000, "0226-01-01T00:00:00Z", "0226-01-01T00:00:00.000000Z"},
        {-62167219200000, "0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000000Z"},
        {253402300799999, "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999000Z"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        char text[CR_TIME_TEXT];
        cr_time_format(cases[i].ms, text);
        assert_string_equal(text, cases[i].seconds);
        cr_time_format_micro(cases[i].ms, text);
        assert_string_equal(text, cases[i].micro);
        int64_t back = 0;
        assert_true(cr_time_parse(text, &back, NULL));
        assert_int_equal(back, cases[i].ms);
    }
}

static void a_time_that_has_no_text_gives_the_nearest_that_has_one(void **state)
{
    static const struct {
        int64_t ms;
        const char *seconds;
        const char *micro;
    } cases[] = {
        {-62167219200001, "0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000000Z"},
        {INT64_MIN, "0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000000Z"},
        {253402300800000, "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999000Z"},
        {INT64_MAX, "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999000Z"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        char text[CR_TIME_TEXT];
        cr_time_format(cases[i].ms, text);
        assert_string_equal(text, cases[i].seconds);
        cr_time_format_micro(cases[i].ms, text);
        assert_string_equal(text, cases[i].micro);
    }
}

static void clocks_move_forward_and_know_the_date(void **state)
{
    (void)state;
    int64_t last = cr_clock_monotonic_ms();
    for (int i = 0; i < 1000; i++) {
        int64_t now = cr_clock_monotonic_ms();
        assert_true(now >= last);
        last = now;
    }
    assert_true(cr_clock_wall_ms() > 1700000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_those_of_gep_2257),
        cmocka_unit_test(a_duration_is_written_as_short_as_can_be),
        cmocka_unit_test(times_are_those_of_rfc_3339),
        cmocka_unit_test(times_are_written_as_the_api_writes_them),
        cmocka_unit_test(a_time_that_has_no_text_gives_the_nearest_that_has_one),
        cmocka_unit_test(clocks_move_forward_and_know_the_date),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
