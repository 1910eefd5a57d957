#include "policy/controller/probe_slots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/strings.h"

enum { NOW = 1000 * 1000 };

static void of_one_namespace_one_round_runs(void **state)
{
    (void)state;
    CR_CLEANUP(cr_probe_slots) struct cr_probe_slots *slots = cr_probe_slots_new();
    assert_true(cr_probe_slots_take(slots, "hostile", NOW));
    assert_false(cr_probe_slots_take(slots, "hostile", NOW));
    assert_true(cr_probe_slots_take(slots, "a", NOW));
    assert_false(cr_probe_slots_take(slots, "b", NOW));
    cr_probe_slots_give_back(slots, "a");
    assert_false(cr_probe_slots_take(slots, "hostile", NOW));
    assert_true(cr_probe_slots_take(slots, "b", NOW));
    cr_probe_slots_give_back(slots, "b");
    cr_probe_slots_give_back(slots, "hostile");
    assert_true(cr_probe_slots_take(slots, "hostile", NOW));
}

/* Those that run, in the order in which they began. */
struct world {
    struct cr_probe_slots *slots;
    const char *running[CR_PROBE_SLOTS];
    size_t len;
};

static bool ask(struct world *world, const char *ns, int64_t now)
{
    if (!cr_probe_slots_take(world->slots, ns, now))
        return false;
    assert_in_range(world->len, 0, CR_PROBE_SLOTS - 1);
    world->running[world->len++] = ns;
    return true;
}

static void end_the_oldest(struct world *world)
{
    if (!world->len)
        return;
    cr_probe_slots_give_back(world->slots, world->running[0]);
    world->running[0] = world->running[1];
    world->len--;
}

/* Fifty policies of one namespace ask each time that a turn is given back, and before anybody else does. */
static void many_policies_of_one_namespace_get_no_more_rounds(void **state)
{
    enum { TURNS = 400, POLICIES = 50 };
    static const char *const others[] = {"a", "b", "c"};
    (void)state;
    CR_CLEANUP(cr_probe_slots) struct cr_probe_slots *slots = cr_probe_slots_new();
    struct world world = {.slots = slots};
    unsigned got[4] = {0};
    for (int64_t turn = 0; turn < TURNS; turn++) {
        int64_t now = NOW + turn * CR_PROBE_SLOT_AGAIN_MS;
        end_the_oldest(&world);
        for (int i = 0; i < POLICIES; i++)
            got[3] += ask(&world, "hostile", now);
        for (size_t i = 0; i < cr_array_len(others); i++)
            got[i] += ask(&world, others[i], now);
    }
    for (size_t i = 0; i < cr_array_len(got); i++)
        if (got[i] < TURNS / 4 - 2 || got[i] > TURNS / 4 + 2)
            fail_msg("namespace %zu had %u of %d slots", i, got[i], TURNS);
}

/* A namespace that waits sees at most one turn of each of the others. */
static void who_waits_is_passed_once_by_each(void **state)
{
    enum { NAMESPACES = 20 };
    (void)state;
    CR_CLEANUP(cr_probe_slots) struct cr_probe_slots *slots = cr_probe_slots_new();
    char names[NAMESPACES][8];
    unsigned had[NAMESPACES] = {0};
    for (size_t i = 0; i < NAMESPACES; i++)
        snprintf(names[i], sizeof names[i], "ns-%zu", i);
    assert_true(cr_probe_slots_take(slots, "first", NOW));
    assert_true(cr_probe_slots_take(slots, "second", NOW));
    for (size_t i = 0; i < NAMESPACES; i++)
        assert_false(cr_probe_slots_take(slots, names[i], NOW));
    assert_false(cr_probe_slots_take(slots, "patient", NOW));
    cr_probe_slots_give_back(slots, "first");
    unsigned passed = 0;
    /* The last of the others asks first, every time. */
    while (!cr_probe_slots_take(slots, "patient", NOW)) {
        for (size_t i = NAMESPACES; i-- > 0;)
            if (cr_probe_slots_take(slots, names[i], NOW)) {
                passed++;
                had[i]++;
                cr_probe_slots_give_back(slots, names[i]);
            }
        assert_in_range(passed, 1, NAMESPACES + 1);
    }
    for (size_t i = 0; i < NAMESPACES; i++)
        assert_in_range(had[i], 0, 2);
}

static void who_does_not_come_back_loses_its_place(void **state)
{
    (void)state;
    CR_CLEANUP(cr_probe_slots) struct cr_probe_slots *slots = cr_probe_slots_new();
    int64_t later = NOW + CR_PROBE_SLOT_FORGOTTEN_MS;
    assert_true(cr_probe_slots_take(slots, "a", NOW));
    assert_true(cr_probe_slots_take(slots, "b", NOW));
    assert_false(cr_probe_slots_take(slots, "gone", NOW));
    assert_false(cr_probe_slots_take(slots, "here", NOW + 1));
    cr_probe_slots_give_back(slots, "a");
    assert_false(cr_probe_slots_take(slots, "here", later));
    assert_true(cr_probe_slots_take(slots, "here", later + 1));
}

/* A place that its namespace cannot take, since a round of it runs, is kept for nobody. */
static void a_place_is_not_kept_for_who_has_its_round(void **state)
{
    (void)state;
    CR_CLEANUP(cr_probe_slots) struct cr_probe_slots *slots = cr_probe_slots_new();
    assert_true(cr_probe_slots_take(slots, "hostile", NOW));
    assert_false(cr_probe_slots_take(slots, "hostile", NOW));
    assert_true(cr_probe_slots_take(slots, "a", NOW));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_one_namespace_one_round_runs),
        cmocka_unit_test(many_policies_of_one_namespace_get_no_more_rounds),
        cmocka_unit_test(who_waits_is_passed_once_by_each),
        cmocka_unit_test(who_does_not_come_back_loses_its_place),
        cmocka_unit_test(a_place_is_not_kept_for_who_has_its_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
