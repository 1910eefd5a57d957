#include "api/hold.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "support/checkoutfile.h"

static void each_has_a_name_of_its_own_which_is_read_back(void **state)
{
    (void)state;
    assert_string_equal(cr_hold_name(CR_HOLD_NONE), "");
    for (unsigned i = CR_HOLD_NONE + 1; i < CR_HOLDS; i++) {
        const char *name = cr_hold_name((enum cr_hold)i);
        assert_true(isupper((unsigned char)*name));
        for (const char *c = name; *c; c++)
            assert_true(isalpha((unsigned char)*c));
        enum cr_hold hold = CR_HOLD_NONE;
        assert_true(cr_hold_parse(name, &hold));
        assert_int_equal(hold, i);
    }
}

static void what_is_no_name_leaves_the_value_alone(void **state)
{
    (void)state;
    static const char *const texts[] = {NULL, "", "suspended", "Suspended ", "Budgets", "restart.coalesce"};
    for (size_t i = 0; i < cr_array_len(texts); i++) {
        enum cr_hold hold = CR_HOLD_DRAIN;
        assert_false(cr_hold_parse(texts[i], &hold));
        assert_int_equal(hold, CR_HOLD_DRAIN);
    }
    assert_string_equal(cr_hold_name((enum cr_hold)CR_HOLDS), "");
    assert_string_equal(cr_hold_name((enum cr_hold) - 1), "");
}

static void what_is_open_needs_no_person(void **state)
{
    (void)state;
    assert_false(cr_hold_needs_a_person(CR_HOLD_NONE));
    assert_false(cr_hold_waits_for_budget(CR_HOLD_NONE));
    assert_false(cr_hold_is_counted(CR_HOLD_NONE));
    assert_null(cr_hold_event(CR_HOLD_NONE));
}

/* Programs of others are written by these pages: each value is a row of the table, and none more is. */
static void the_pages_have_all_of_them(void **state)
{
    (void)state;
    cr_autofree char *page = test_checkout_file("docs/api.md");
    cr_autofree char *crd = test_checkout_file("crds/certroll.dev_certrotationpolicies.yaml");
    const char *table = strstr(page, "## Why a consumer waits");
    assert_non_null(table);
    const char *field = strstr(crd, "blockedReason:");
    assert_non_null(field);
    cr_autofree char *list = strndup(field, (size_t)(strstr(field, "blockedBy:") - field));
    size_t rows = 0;
    for (const char *at = strstr(table, "\n| `"); at && at < strstr(table + 1, "\n## "); at = strstr(at + 1, "\n| `"))
        rows++;
    assert_int_equal(rows, CR_HOLDS - 1);
    for (unsigned i = CR_HOLD_NONE + 1; i < CR_HOLDS; i++) {
        const char *name = cr_hold_name((enum cr_hold)i);
        cr_autofree char *row = cr_asprintf("\n| `%s` |", name);
        if (!strstr(table, row) || !strstr(list, name))
            fail_msg("%s is not in docs/api.md, or not in the CRD", name);
    }
}

static void a_gate_is_copied_replaced_and_handed_on(void **state)
{
    (void)state;
    CR_CLEANUP(cr_gate) struct cr_gate gate = cr_gate_make(CR_HOLD_ORDER, "after: waits for %s", "web");
    CR_CLEANUP(cr_gate) struct cr_gate copy = cr_gate_copy(&gate);
    cr_gate_set(&gate, CR_GATE_OPEN);
    assert_int_equal(gate.hold, CR_HOLD_NONE);
    assert_null(gate.text);
    assert_string_equal(copy.text, "after: waits for web");
    CR_CLEANUP(cr_gate) struct cr_gate stolen = cr_gate_steal(&copy);
    assert_int_equal(copy.hold, CR_HOLD_NONE);
    assert_null(copy.text);
    assert_int_equal(stolen.hold, CR_HOLD_ORDER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_a_name_of_its_own_which_is_read_back),
        cmocka_unit_test(what_is_no_name_leaves_the_value_alone),
        cmocka_unit_test(what_is_open_needs_no_person),
        cmocka_unit_test(the_pages_have_all_of_them),
        cmocka_unit_test(a_gate_is_copied_replaced_and_handed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
