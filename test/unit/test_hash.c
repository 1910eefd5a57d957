#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static void a_hash_is_of_the_text_and_its_seed(void **state)
{
    (void)state;
    assert_true(cr_hash_text(1, "ns/web") == cr_hash_text(1, "ns/web"));
    assert_true(cr_hash_text(1, "ns/web") != cr_hash_text(2, "ns/web"));
    assert_true(cr_hash_text(1, "ns/web") != cr_hash_text(1, "ns/wec"));
    assert_true(cr_hash_text(1, "") != cr_hash_text(2, ""));
    assert_true(cr_hash_seed() != cr_hash_seed());
}

/* Names that differ by a digit, as those of users do, in a table with a size that is no power of two. */
static void places_are_spread_over_all_slots(void **state)
{
    (void)state;
    enum { SLOTS = 90, NAMES = 9000 };
    int count[SLOTS] = {0};
    char name[32];
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "bench/p-%05d", i);
        size_t place = cr_hash_place(cr_hash_text(7, name), SLOTS);
        assert_true(place < SLOTS);
        count[place]++;
    }
    for (int i = 0; i < SLOTS; i++)
        assert_in_range(count[i], 50, 160); /* 100 each */
    assert_int_equal(cr_hash_place(0, SLOTS), 0);
    assert_int_equal(cr_hash_place(UINT64_MAX, SLOTS), SLOTS - 1);
}

static void steps_go_around_the_end(void **state)
{
    (void)state;
    assert_int_equal(cr_hash_steps(3, 3, 10), 0);
    assert_int_equal(cr_hash_steps(3, 7, 10), 4);
    assert_int_equal(cr_hash_steps(7, 3, 10), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hash_is_of_the_text_and_its_seed),
        cmocka_unit_test(places_are_spread_over_all_slots),
        cmocka_unit_test(steps_go_around_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
