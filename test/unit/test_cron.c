#include "codec/cron.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/civil.h"
#include "base/strings.h"
#include "support/crontext.h"

static uint64_t bits(int from, int to, int step)
{
    uint64_t all = 0;
    for (int i = from; i <= to; i += step)
        all |= UINT64_C(1) << i;
    return all;
}

static void fields_are_values_ranges_steps_lists_and_names(void **state)
{
    (void)state;
    const uint64_t minutes = bits(0, 59, 1);
    const uint64_t hours = bits(0, 23, 1);
    const uint64_t days = bits(1, 31, 1);
    const uint64_t months = bits(1, 12, 1);
    const uint64_t week = bits(0, 6, 1);
    const struct {
        const char *text;
        struct cr_cron want;
    } cases[] = {
        {"* * * * *", {minutes, hours, days, months, week, false}},
        {"  *  *   * * * ", {minutes, hours, days, months, week, false}},
        {"0 2 * * *", {bits(0, 0, 1), bits(2, 2, 1), days, months, week, false}},
        {"*/15 8-18/2 * * *", {bits(0, 59, 15), bits(8, 18, 2), days, months, week, false}},
        {"5,10-12,50/4 22/1 * * *",
         {bits(5, 5, 1) | bits(10, 12, 1) | bits(50, 59, 4), bits(22, 23, 1), days, months, week, false}},
        {"0 0 ? * ?", {1, 1, days, months, week, false}},
        {"0 0 * JAN,jul-Sep SAT", {1, 1, days, bits(1, 1, 1) | bits(7, 9, 1), bits(6, 6, 1), false}},
        {"0 0 * * 7", {1, 1, days, months, 1, false}},
        {"0 0 * * 5-7", {1, 1, days, months, bits(5, 6, 1) | 1, false}},
        {"0 2 * * 1/2", {1, bits(2, 2, 1), days, months, bits(1, 5, 2), false}}, /* not on Sunday, as its 7 */
        {"0 0 * * mon/3", {1, 1, days, months, bits(1, 4, 3), false}},
        {"0 0 * * */7", {1, 1, days, months, 1, false}},
        {"0 0 * * 7/2", {1, 1, days, months, 1, false}},
        {"0 0 * * 5-7/2", {1, 1, days, months, bits(5, 5, 1) | 1, false}},
        {"0 0 * * mon-fri", {1, 1, days, months, bits(1, 5, 1), false}},
        {"0 0 1,15 * 3", {1, 1, bits(1, 1, 1) | bits(15, 15, 1), months, bits(3, 3, 1), true}},
        {"0 0 */2 * 3", {1, 1, bits(1, 31, 2), months, bits(3, 3, 1), false}},
        {"0 0 29 2 *", {1, 1, bits(29, 29, 1), bits(2, 2, 1), week, false}},
        {"0 0 30 2 0", {1, 1, bits(30, 30, 1), bits(2, 2, 1), 1, true}},
        {"0 0 31 2,3 *", {1, 1, bits(31, 31, 1), bits(2, 3, 1), week, false}},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_cron cron = test_cron(cases[i].text);
        const struct cr_cron *want = &cases[i].want;
        if (cron.minutes != want->minutes || cron.hours != want->hours || cron.days != want->days ||
            cron.months != want->months || cron.weekdays != want->weekdays || cron.either_day != want->either_day)
            fail_msg("%s", cases[i].text);
    }
}

static void what_is_no_schedule_is_refused_by_field(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *problem;
    } cases[] = {
        {"", "has 0 fields"},
        {"0 2 * *", "has 4 fields"},
        {"0 0 2 * * *", "has 6 fields; it must have five"},
        {"@daily", "has 1 fields"},
        {"60 * * * *", "minute '60': must be values from 0 to 59"},
        {"-1 * * * *", "minute '-1'"},
        {"000 * * * *", "minute '000'"},
        {"*/0 * * * *", "minute '*/0'"},
        {"*/ * * * *", "minute '*/'"},
        {"1- * * * *", "minute '1-'"},
        {"5-1 * * * *", "minute '5-1'"},
        {"1,,2 * * * *", "minute ''"},
        {"1, * * * *", "minute ''"},
        {"? * * * *", "minute '?'"},
        {"** * * * *", "minute '**'"},
        {"0 24 * * *", "hour '24'"},
        {"0 0 0 * *", "day of month '0'"},
        {"0 0 32 * *", "day of month '32'"},
        {"0 0 L * *", "day of month 'L'"},
        {"0 0 1W * *", "day of month '1W'"},
        {"0 0 * 13 *", "month '13'"},
        {"0 0 * january *", "month 'january'"},
        {"0 0 * * 8", "day of week '8': must be values from 0 to 7"},
        {"0 0 * * fri-sun", "day of week 'fri-sun'"},
        {"0 0 * * 5#3", "day of week '5#3'"},
        {"0 0 30 2 *", "'0 0 30 2 *' never comes"},
        {"0 0 31 2,4,6,9,11 *", "never comes"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_cron cron;
        struct cr_error err = {0};
        if (cr_cron_parse(cases[i].text, &cron, &err) || err.kind != CR_ERR_INVALID ||
            !strstr(err.text, cases[i].problem))
            fail_msg("'%s': %s", cases[i].text, err.text);
    }
}

static void a_day_must_match_both_fields_unless_both_are_restricted(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct cr_civil date; /* 2026-11-22 is a Sunday */
        bool on;
    } cases[] = {
        {"0 0 * * *", {2026, 11, 22}, true},
        {"0 0 * * 0", {2026, 11, 22}, true},
        {"0 0 * * 1", {2026, 11, 22}, false},
        {"0 0 22 * *", {2026, 11, 22}, true},
        {"0 0 22 * 1", {2026, 11, 22}, true},
        {"0 0 23 * 0", {2026, 11, 22}, true},
        {"0 0 23 * 1", {2026, 11, 22}, false},
        {"0 0 22 12 0", {2026, 11, 22}, false}, /* the month must match in any case */
        {"0 0 */7 * 0", {2026, 11, 22}, true},  /* 1, 8, 15, 22, 29 */
        {"0 0 */7 * 0", {2026, 11, 8}, true},
        {"0 0 */7 * 0", {2026, 12, 8}, false}, /* a Tuesday */
        {"0 0 29 2 *", {2028, 2, 29}, true},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_cron cron = test_cron(cases[i].text);
        if (cr_cron_on_day(&cron, cr_civil_to_days(cases[i].date)) != cases[i].on)
            fail_msg("case %zu: %s", i, cases[i].text);
    }
}

static void minutes_of_a_day(void **state)
{
    (void)state;
    struct cr_cron cron = test_cron("30 2,23 * * *");
    assert_int_equal(cr_cron_next_minute(&cron, 0), 150);
    assert_int_equal(cr_cron_next_minute(&cron, 150), 150);
    assert_int_equal(cr_cron_next_minute(&cron, 151), 23 * 60 + 30);
    assert_int_equal(cr_cron_next_minute(&cron, 23 * 60 + 31), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_values_ranges_steps_lists_and_names),
        cmocka_unit_test(what_is_no_schedule_is_refused_by_field),
        cmocka_unit_test(a_day_must_match_both_fields_unless_both_are_restricted),
        cmocka_unit_test(minutes_of_a_day),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
