#include "codec/resource_type.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strings.h"

static const struct cr_resource deployments = {"apps", "v1", "deployments", "Deployment"};
static const struct cr_resource secrets = {"", "v1", "secrets", "Secret"};
static const struct cr_resource policies = {"certroll.dev", "v1alpha1", "certrotationpolicies", "CertRotationPolicy"};

static void the_core_group_has_no_name(void **state)
{
    (void)state;
    cr_autofree char *of_deployments = cr_resource_api_version(&deployments);
    cr_autofree char *of_secrets = cr_resource_api_version(&secrets);
    cr_autofree char *of_policies = cr_resource_api_version(&policies);
    assert_string_equal(of_deployments, "apps/v1");
    assert_string_equal(of_secrets, "v1");
    assert_string_equal(of_policies, "certroll.dev/v1alpha1");
}

static void an_api_version_is_compared_as_a_whole_and_a_group_without_its_version(void **state)
{
    (void)state;
    static const struct {
        const struct cr_resource *resource;
        const char *api_version;
        bool same, same_group;
    } cases[] = {
        {&deployments, "apps/v1", true, true},
        {&deployments, "apps/v1beta1", false, true},
        {&deployments, "apps", false, false},
        {&deployments, "v1", false, false},
        {&deployments, "apps.kruise.io/v1", false, false},
        {&deployments, NULL, false, false},
        {&secrets, "v1", true, true},
        {&secrets, "v2", false, true},
        {&secrets, "/v1", false, false},
        {&secrets, "apps/v1", false, false},
        {&secrets, NULL, false, false},
        {&policies, "certroll.dev/v1alpha1", true, true},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        assert_int_equal(cr_resource_has_api_version(cases[i].resource, cases[i].api_version), cases[i].same);
        assert_int_equal(cr_resource_shares_group(cases[i].resource, cases[i].api_version), cases[i].same_group);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_core_group_has_no_name),
        cmocka_unit_test(an_api_version_is_compared_as_a_whole_and_a_group_without_its_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
