#include "runtime/delays.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { COUNT = 200 };

/* A generator of its own: the same sequence each time. */
static unsigned next(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 8;
}

static void comes_out_in_the_order_of_time_after_any_changes(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 50; seed++) {
        struct cr_delays delays = {0};
        struct cr_delay items[COUNT] = {{0}};
        unsigned random = seed;
        for (int i = 0; i < 1000; i++) {
            struct cr_delay *item = &items[next(&random) % COUNT];
            if (next(&random) % 3)
                cr_delays_set(&delays, item, next(&random) % 500);
            else
                cr_delays_remove(&delays, item);
        }
        size_t pending = 0;
        for (size_t i = 0; i < COUNT; i++)
            pending += cr_delay_pending(&items[i]);
        assert_int_equal(pending, delays.len);
        int64_t last = -1;
        for (struct cr_delay *first; (first = cr_delays_first(&delays)); pending--) {
            assert_true(first->due_ms >= last);
            last = first->due_ms;
            cr_delays_remove(&delays, first);
            assert_false(cr_delay_pending(first));
        }
        assert_int_equal(pending, 0);
        cr_delays_dispose(&delays);
    }
}

static void removing_what_is_not_there_is_nothing(void **state)
{
    (void)state;
    struct cr_delays delays = {0};
    struct cr_delay item = {0};
    cr_delays_remove(&delays, &item);
    assert_null(cr_delays_first(&delays));
    cr_delays_set(&delays, &item, 5);
    cr_delays_set(&delays, &item, 3);
    assert_int_equal(delays.len, 1);
    cr_delays_remove(&delays, &item);
    cr_delays_remove(&delays, &item);
    assert_int_equal(delays.len, 0);
    cr_delays_dispose(&delays);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_out_in_the_order_of_time_after_any_changes),
        cmocka_unit_test(removing_what_is_not_there_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
