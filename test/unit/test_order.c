#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/strings.h"
#include "controlplane/agent/order.h"

/* Everything that makes it possible. */
#define VIEW(...)                                                                                                      \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

static char a[] = "a";
static char b[] = "b";
static char etcd[] = "etcd";

static const struct {
    const char *rule;
    char *order; /* token; NULL: none */
    char *act;   /* token; NULL: none */
    enum cr_node_act_phase phase;
    struct cr_node_order_view view;
    enum cr_node_next next;
} cases[] = {
    {"nothing is asked for", NULL, NULL, CR_NODE_ACT_NONE, VIEW(.recorded = true), CR_NODE_NEXT_NOTHING},
    {"a new order", b, NULL, CR_NODE_ACT_NONE, VIEW(.recorded = true), CR_NODE_NEXT_ACCEPT},
    {"a new order after another", b, a, CR_NODE_ACT_DONE, VIEW(.recorded = true), CR_NODE_NEXT_ACCEPT},
    {"a new order in place of one that waits", b, a, CR_NODE_ACT_WAITING, VIEW(.recorded = true), CR_NODE_NEXT_ACCEPT},

    {"it waits until that is written", a, a, CR_NODE_ACT_WAITING, VIEW(.recorded = false, .ours = true),
     CR_NODE_NEXT_NOTHING},
    {"then for the Lease", a, a, CR_NODE_ACT_WAITING, VIEW(.recorded = true), CR_NODE_NEXT_ACQUIRE},
    {"then it is recorded", a, a, CR_NODE_ACT_WAITING, VIEW(.recorded = true, .ours = true), CR_NODE_NEXT_RECORD},
    {"what cannot be done is refused", a, a, CR_NODE_ACT_WAITING, VIEW(.recorded = true, .ours = true, .refusal = "no"),
     CR_NODE_NEXT_REFUSE},
    {"taken back before it was begun", NULL, a, CR_NODE_ACT_WAITING, VIEW(.recorded = true, .ours = true),
     CR_NODE_NEXT_FORGET},

    {"nothing is begun before it is written", a, a, CR_NODE_ACT_RESTARTING, VIEW(.recorded = false, .ours = true),
     CR_NODE_NEXT_NOTHING},
    {"nothing is begun without the Lease", a, a, CR_NODE_ACT_RESTARTING, VIEW(.recorded = true), CR_NODE_NEXT_ACQUIRE},
    {"begun with both", a, a, CR_NODE_ACT_RESTARTING, VIEW(.recorded = true, .ours = true), CR_NODE_NEXT_BEGIN},
    {"not begun twice: the manifest has the token", a, a, CR_NODE_ACT_RESTARTING,
     VIEW(.recorded = true, .ours = true, .begun = true), CR_NODE_NEXT_FOLLOW},
    {"not begun twice: another process runs", a, a, CR_NODE_ACT_RESTARTING,
     VIEW(.recorded = true, .ours = true, .other_process = true), CR_NODE_NEXT_FOLLOW},
    {"followed without the API server and the Lease", a, a, CR_NODE_ACT_RESTARTING, VIEW(.begun = true),
     CR_NODE_NEXT_FOLLOW},
    {"recorded, not begun, and taken back since: nothing is begun", NULL, a, CR_NODE_ACT_RESTARTING,
     VIEW(.recorded = true, .ours = true), CR_NODE_NEXT_FORGET},
    {"likewise when another is asked for", b, a, CR_NODE_ACT_RESTARTING, VIEW(.recorded = true), CR_NODE_NEXT_FORGET},
    {"taken back after another process has come", NULL, a, CR_NODE_ACT_RESTARTING,
     VIEW(.recorded = true, .ours = true, .other_process = true), CR_NODE_NEXT_FOLLOW},
    {"proving is followed", a, a, CR_NODE_ACT_PROVING, VIEW(.recorded = false), CR_NODE_NEXT_FOLLOW},
    {"what was begun comes to its end though it was taken back", NULL, a, CR_NODE_ACT_PROVING,
     VIEW(.recorded = true, .ours = true), CR_NODE_NEXT_FOLLOW},
    {"and though another is asked for", b, a, CR_NODE_ACT_RESTARTING,
     VIEW(.recorded = true, .ours = true, .begun = true), CR_NODE_NEXT_FOLLOW},
    {"also when it is refused by now", a, a, CR_NODE_ACT_PROVING, VIEW(.recorded = true, .refusal = "no"),
     CR_NODE_NEXT_FOLLOW},

    {"done once", a, a, CR_NODE_ACT_DONE, VIEW(.recorded = true, .ours = true), CR_NODE_NEXT_NOTHING},
    {"failed once", a, a, CR_NODE_ACT_FAILED, VIEW(.recorded = true), CR_NODE_NEXT_NOTHING},
    {"refused once", a, a, CR_NODE_ACT_REFUSED, VIEW(.recorded = true), CR_NODE_NEXT_NOTHING},
    {"the Lease is kept until the end is written", a, a, CR_NODE_ACT_DONE, VIEW(.claimed = true), CR_NODE_NEXT_NOTHING},
    {"and given up then", a, a, CR_NODE_ACT_DONE, VIEW(.recorded = true, .claimed = true), CR_NODE_NEXT_RELEASE},
    {"also of what was taken back", NULL, NULL, CR_NODE_ACT_NONE, VIEW(.recorded = true, .claimed = true),
     CR_NODE_NEXT_RELEASE},
};

static void test_each_rule(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct cr_node_order order = {.token = cases[i].order, .component = cases[i].order ? etcd : NULL};
        const struct cr_node_act act = {.token = cases[i].act, .component = etcd, .phase = cases[i].phase};
        enum cr_node_next next = cr_node_order_next(&order, &act, &cases[i].view);
        if (next != cases[i].next)
            fail_msg("%s: %d, not %d", cases[i].rule, (int)next, (int)cases[i].next);
    }
}

static void test_acts_are_distinguished_by_what_counts(void **state)
{
    (void)state;
    const struct cr_node_act act = {.token = a, .component = etcd, .phase = CR_NODE_ACT_WAITING, .process = b};
    struct cr_node_act other = act;
    other.message = b;
    other.started_ms = 7;
    assert_true(cr_node_act_equal(&act, &other));
    other.process = NULL;
    assert_false(cr_node_act_equal(&act, &other));
    other = act;
    other.phase = CR_NODE_ACT_RESTARTING;
    assert_false(cr_node_act_equal(&act, &other));
    assert_true(cr_node_act_is_under_way(&other));
    assert_false(cr_node_act_is_under_way(&act));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_rule),
        cmocka_unit_test(test_acts_are_distinguished_by_what_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
