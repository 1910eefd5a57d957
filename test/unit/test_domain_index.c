/* Which trust domains an event is reported to. */
#include "cluster/domain_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

/* "a/x,b/y": what a domain wants. */
static bool put(struct cr_domain_index *index, const char *key, const char *secrets)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    cr_autofree char *text = cr_strdup(secrets);
    char *rest = NULL;
    for (char *name = strtok_r(text, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
        cr_strvec_add(&names, name);
    return cr_domain_index_put(index, key, &names);
}

static void expect(struct cr_strvec *keys, const char *expected, const char *what)
{
    cr_strvec_sort(keys);
    cr_autofree char *got = cr_strvec_join(keys, " ");
    if (strcmp(got, expected) != 0)
        fail_msg("%s: '%s', not '%s'", what, got, expected);
    cr_strvec_dispose(keys);
}

static void of_secret(struct cr_domain_index *index, const char *ns, const char *name, const char *expected)
{
    struct cr_strvec keys = {0};
    cr_domain_index_of_secret(index, ns, name, &keys);
    expect(&keys, expected, name);
    assert_int_equal(cr_domain_index_wants_secret(index, ns, name), *expected != '\0');
}

static void of_namespace(struct cr_domain_index *index, const char *ns, const char *expected)
{
    struct cr_strvec keys = {0};
    cr_domain_index_of_namespace(index, ns, &keys);
    expect(&keys, expected, ns);
}

static void note(void *arg, const char *ns, const char *name)
{
    cr_autofree char *secret = cr_asprintf("%s/%s", ns, name);
    cr_strvec_add(arg, secret);
}

static void wanted(struct cr_domain_index *index, const char *expected)
{
    struct cr_strvec names = {0};
    cr_domain_index_visit_secrets(index, note, &names);
    expect(&names, expected, "wanted");
}

static void a_domain_is_notified_of_its_secrets_and_of_policies_beside_them(void **state)
{
    (void)state;
    CR_CLEANUP(cr_domain_index) struct cr_domain_index *index = cr_domain_index_new();
    assert_true(put(index, "a/mesh", "a/server,a/client"));
    assert_true(put(index, "/mesh", "a/server,b/server"));
    of_secret(index, "a", "server", "/mesh a/mesh");
    of_secret(index, "a", "client", "a/mesh");
    of_secret(index, "b", "server", "/mesh");
    of_secret(index, "b", "client", "");
    of_namespace(index, "a", "/mesh a/mesh");
    of_namespace(index, "b", "/mesh");
    of_namespace(index, "c", "");
    wanted(index, "a/client a/server b/server");
}

static void what_is_wanted_changes_with_the_names_only(void **state)
{
    (void)state;
    CR_CLEANUP(cr_domain_index) struct cr_domain_index *index = cr_domain_index_new();
    assert_true(put(index, "a/mesh", "a/server,a/client"));
    assert_false(put(index, "a/mesh", "a/client,a/server"));
    assert_true(put(index, "/mesh", "a/client,b/server"));
    assert_true(put(index, "a/mesh", "a/client"));
    wanted(index, "a/client b/server");
    of_namespace(index, "a", "/mesh a/mesh");
    assert_true(put(index, "a/mesh", ""));
    assert_false(put(index, "a/mesh", ""));
    of_secret(index, "a", "client", "/mesh");
    assert_true(put(index, "/mesh", ""));
    wanted(index, "");
    of_namespace(index, "a", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_domain_is_notified_of_its_secrets_and_of_policies_beside_them),
        cmocka_unit_test(what_is_wanted_changes_with_the_names_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
