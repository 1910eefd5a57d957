/* How a look that is only a precaution comes less and less often. */
#include "policy/rules/look_again.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/strings.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND, DAY = 24 * 60 * MINUTE };

static void a_pause_is_as_long_as_the_wait_within_its_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        int64_t first_ms, waited_ms, expected_ms;
    } cases[] = {
        {"it begins with the first pause", 5 * SECOND, 0, 5 * SECOND},
        {"also when it is looked at sooner", 5 * SECOND, 4 * SECOND, 5 * SECOND},
        {"also when a clock was set back", 5 * SECOND, -DAY, 5 * SECOND},
        {"then it is as long as the wait", 5 * SECOND, 17 * SECOND, 17 * SECOND},
        {"up to minutes", 5 * SECOND, 10 * MINUTE + 1, 10 * MINUTE},
        {"however long it waits", 60 * SECOND, INT64_MAX, 10 * MINUTE},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++)
        if (cr_look_again_ms(cases[i].first_ms, cases[i].waited_ms) != cases[i].expected_ms)
            fail_msg("%s: %lld", cases[i].rule, (long long)cr_look_again_ms(cases[i].first_ms, cases[i].waited_ms));
}

static void a_day_of_waiting_is_few_looks(void **state)
{
    (void)state;
    int looks = 0;
    for (int64_t waited_ms = 0; waited_ms < DAY; looks++)
        waited_ms += cr_look_again_ms(5 * SECOND, waited_ms);
    assert_in_range(looks, DAY / CR_LOOK_AGAIN_MOST_MS, DAY / CR_LOOK_AGAIN_MOST_MS + 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_is_as_long_as_the_wait_within_its_bounds),
        cmocka_unit_test(a_day_of_waiting_is_few_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
