/* What a namespace's annotation says to trust domains of the cluster. */
#include "trust/controller/domain_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/strings.h"

static void a_namespace_consents_by_name_or_to_all(void **state)
{
    (void)state;
    static const struct {
        const char *annotation, *domain;
        bool consents;
    } cases[] = {
        {NULL, "mesh", false},
        {"", "mesh", false},
        {" ", "mesh", false},
        {"mesh", "mesh", true},
        {"*", "mesh", true},
        {"other,mesh", "mesh", true},
        {"other, mesh ,third", "mesh", true},
        {"other,*", "mesh", true},
        {"mesh-2", "mesh", false},
        {"mesh", "mesh-2", false},
        {"a-mesh", "mesh", false},
        {"mesh*", "mesh", false},
        {"me,sh", "mesh", false},
        {",,", "mesh", false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++)
        if (cr_domain_consents(cases[i].annotation, cases[i].domain) != cases[i].consents)
            fail_msg("'%s', %s", cr_or_empty(cases[i].annotation), cases[i].domain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_namespace_consents_by_name_or_to_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
