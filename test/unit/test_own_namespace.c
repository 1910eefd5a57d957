#include "kube/own_namespace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/strings.h"

static void a_namespace_is_a_label(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool valid;
    } cases[] = {
        {"shop", true},
        {"a", true},
        {"0-9", true},
        {"a23456789012345678901234567890123456789012345678901234567890123", true},
        {"a234567890123456789012345678901234567890123456789012345678901234", false},
        {"", false},
        {"-a", false},
        {"a-", false},
        {"A", false},
        {"a.b", false},
        {"a/b", false},
        {"..", false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++)
        if (cr_is_namespace_name(cases[i].name) != cases[i].valid)
            fail_msg("'%s'", cases[i].name);
}

static void the_pod_says_its_namespace(void **state)
{
    (void)state;
    cr_autofree char *ns = NULL;
    struct cr_error err = {0};
    setenv("POD_NAMESPACE", "certroll-system", 1);
    assert_true(cr_own_namespace(&ns, &err));
    assert_string_equal(ns, "certroll-system");
}

static void a_name_that_cannot_be_one_is_refused(void **state)
{
    (void)state;
    cr_autofree char *ns = NULL;
    struct cr_error err = {0};
    setenv("POD_NAMESPACE", "../etc", 1);
    assert_false(cr_own_namespace(&ns, &err));
    assert_int_equal(err.kind, CR_ERR_INVALID);
    assert_string_equal(err.text, "POD_NAMESPACE says '../etc', which is no name of a namespace");
    assert_null(ns);
}

static void outside_of_a_pod_there_is_none(void **state)
{
    (void)state;
    cr_autofree char *ns = NULL;
    struct cr_error err = {0};
    setenv("POD_NAMESPACE", "", 1); /* as an empty field of the downward API leaves it */
    assert_true(cr_own_namespace(&ns, &err));
    assert_null(ns);
    unsetenv("POD_NAMESPACE");
    assert_true(cr_own_namespace(&ns, &err));
    assert_null(ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_namespace_is_a_label),
        cmocka_unit_test(the_pod_says_its_namespace),
        cmocka_unit_test(a_name_that_cannot_be_one_is_refused),
        cmocka_unit_test(outside_of_a_pod_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
