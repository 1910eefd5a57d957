#include "runtime/round_robin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/strings.h"

/* What happens, and which item is next then. Items are digits; '-': none. */
struct step {
    char what; /* '+' waits, 'l' waits with low priority, '-' waits no more, '>' is under way, '.' is done */
    int item;
    const char *group;
    int next, next_low;
};

enum { ITEMS = 8, NONE = -1 };

static int index_of(const struct cr_round_robin_item *items, const struct cr_round_robin_item *item)
{
    return item ? (int)(item - items) : NONE;
}

static void play(const char *rule, size_t most, const struct step *steps, size_t len)
{
    struct cr_round_robin_item items[ITEMS] = {0};
    CR_CLEANUP(cr_round_robin) struct cr_round_robin *rr = cr_round_robin_new(most);
    for (size_t i = 0; i < len; i++) {
        struct cr_round_robin_item *item = &items[steps[i].item];
        switch (steps[i].what) {
        case '+':
        case 'l':
            cr_round_robin_add(rr, item, steps[i].group, steps[i].what == 'l');
            break;
        case '-':
            cr_round_robin_remove(rr, item);
            break;
        case '>':
            cr_round_robin_start(rr, item);
            break;
        default:
            cr_round_robin_done(rr, item);
            break;
        }
        int next = index_of(items, cr_round_robin_next(rr, false));
        int next_low = index_of(items, cr_round_robin_next(rr, true));
        if (next != steps[i].next || next_low != steps[i].next_low)
            fail_msg("%s: step %zu: %d and %d are next", rule, i, next, next_low);
    }
}

#define PLAY(rule, most, steps) play(rule, most, steps, cr_array_len(steps))

static void groups_are_served_in_the_order_in_which_they_came(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {'+', 0, "a", 0, NONE},  {'+', 1, "a", 0, NONE},  {'+', 2, "b", 0, NONE},     {'+', 3, "c", 0, NONE},
        {'>', 0, NULL, 2, NONE}, {'.', 0, NULL, 2, NONE}, {'>', 2, NULL, 3, NONE},    {'+', 4, "b", 3, NONE},
        {'>', 3, NULL, 1, NONE}, {'>', 1, NULL, 4, NONE}, {'>', 4, NULL, NONE, NONE},
    };
    PLAY("turns", SIZE_MAX, steps);
}

static void a_group_has_so_many_under_way_at_most(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {'+', 0, "a", 0, NONE},     {'+', 1, "a", 0, NONE},     {'+', 2, "a", 0, NONE},  {'>', 0, NULL, 1, NONE},
        {'>', 1, NULL, NONE, NONE}, {'+', 3, "b", 3, NONE},     {'l', 4, "a", 3, NONE},  {'>', 3, NULL, NONE, NONE},
        {'.', 1, NULL, 2, 4},       {'>', 2, NULL, NONE, NONE}, {'.', 0, NULL, NONE, 4},
    };
    PLAY("limit", 2, steps);
}

static void each_priority_has_its_own_order(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {'l', 0, "a", NONE, 0}, {'l', 1, "b", NONE, 0},  {'+', 2, "b", 2, 0},     {'+', 3, "a", 2, 0},
        {'>', 2, NULL, 3, 0},   {'>', 3, NULL, NONE, 1}, {'>', 1, NULL, NONE, 0},
    };
    PLAY("priorities", SIZE_MAX, steps);
}

static void who_leaves_is_no_more_in_line(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {'+', 0, "a", 0, NONE}, {'+', 1, "b", 0, NONE},  {'-', 0, NULL, 1, NONE},
        {'+', 0, "a", 1, NONE}, {'-', 1, NULL, 0, NONE}, {'-', 0, NULL, NONE, NONE},
    };
    PLAY("leaving", SIZE_MAX, steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_served_in_the_order_in_which_they_came),
        cmocka_unit_test(a_group_has_so_many_under_way_at_most),
        cmocka_unit_test(each_priority_has_its_own_order),
        cmocka_unit_test(who_leaves_is_no_more_in_line),
    };
    return cmocka_run_group_tests_name("round_robin", tests, NULL, NULL);
}
