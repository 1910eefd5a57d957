#include "base/civil.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "base/strings.h"

static void known_dates(void **state)
{
    (void)state;
    static const struct {
        struct cr_civil date;
        int64_t days;
        int weekday;
    } cases[] = {
        {{1970, 1, 1}, 0, 4},      {{1969, 12, 31}, -1, 3},  {{2000, 2, 29}, 11016, 2},  {{2000, 3, 1}, 11017, 3},
        {{2100, 2, 28}, 47540, 0}, {{2100, 3, 1}, 47541, 1}, {{2026, 11, 21}, 20778, 6}, {{1, 1, 1}, -719162, 1},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_civil date = cr_civil_from_days(cases[i].days);
        assert_int_equal(cr_civil_to_days(cases[i].date), cases[i].days);
        assert_int_equal(cr_civil_weekday(cases[i].days), cases[i].weekday);
        assert_int_equal(date.year, cases[i].date.year);
        assert_int_equal(date.month, cases[i].date.month);
        assert_int_equal(date.day, cases[i].date.day);
    }
}

/* A period of the calendar and more, on both sides of 1970. */
static void every_day_of_500_years_is_as_the_c_library_has_it(void **state)
{
    (void)state;
    for (int64_t days = -250 * 366; days < 250 * 366; days++) {
        time_t at = (time_t)(days * CR_DAY_S);
        struct tm tm;
        assert_non_null(gmtime_r(&at, &tm));
        struct cr_civil date = cr_civil_from_days(days);
        assert_int_equal(date.year, tm.tm_year + 1900);
        assert_int_equal(date.month, tm.tm_mon + 1);
        assert_int_equal(date.day, tm.tm_mday);
        assert_true(date.day <= cr_civil_days_in(date.year, date.month));
        assert_int_equal(cr_civil_weekday(days), tm.tm_wday);
        assert_int_equal(cr_civil_to_days(date), days);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_dates),
        cmocka_unit_test(every_day_of_500_years_is_as_the_c_library_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
