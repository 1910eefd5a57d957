#include "kube/backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static void doubles_to_its_cap_with_half_of_it_random(void **state)
{
    (void)state;
    static const int64_t whole[] = {500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000};
    for (int round = 0; round < 200; round++) {
        struct cr_backoff backoff = {.first_ms = 500, .max_ms = 30000};
        for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
            int64_t delay = cr_backoff_next(&backoff);
            assert_in_range(delay, whole[i] / 2, whole[i]);
        }
        cr_backoff_reset(&backoff);
        assert_in_range(cr_backoff_next(&backoff), 250, 500);
    }
}

static void no_number_of_failures_overflows(void **state)
{
    (void)state;
    assert_in_range(cr_backoff_delay(500, 30000, 4000000000u), 15000, 30000);
    assert_in_range(cr_backoff_delay(1, INT64_MAX / 2, 100), INT64_MAX / 8, INT64_MAX / 2);
    assert_int_equal(cr_backoff_delay(0, 0, 5), 0);
}

static void is_not_the_same_each_time(void **state)
{
    (void)state;
    int64_t first = cr_random_between(0, INT64_MAX - 1);
    bool differs = false;
    for (int i = 0; i < 10; i++)
        differs = differs || cr_random_between(0, INT64_MAX - 1) != first;
    assert_true(differs);
    assert_int_equal(cr_random_between(7, 7), 7);
    assert_int_equal(cr_random_between(7, 3), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubles_to_its_cap_with_half_of_it_random),
        cmocka_unit_test(no_number_of_failures_overflows),
        cmocka_unit_test(is_not_the_same_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
