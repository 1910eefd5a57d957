#include "controlplane/controller/control_plane_acts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void expect(const struct cr_json *json, const char *expected)
{
    cr_autofree char *text = cr_json_print(json);
    assert_string_equal(text, expected);
}

#define METADATA "{\"metadata\":{\"uid\":\"u-1\",\"resourceVersion\":\"42\"},"

static void an_order_is_given_to_the_report_that_was_read(void **state)
{
    (void)state;
    char node[] = "node-1";
    char uid[] = "u-1";
    char version[] = "42";
    const struct cr_node_report report = {.node = node, .uid = uid, .resource_version = version};
    const struct cr_control_plane_restart_order order = {.node = "node-1", .component = "etcd", .token = "aa"};
    CR_CLEANUP(cr_json) struct cr_json *given = cr_control_plane_order_patch(&report, &order);
    expect(given, METADATA "\"spec\":{\"restart\":{\"token\":\"aa\",\"component\":\"etcd\"}}}");
}

static void of_a_token_secret_the_token_alone_is_taken(void **state)
{
    (void)state;
    static const char text[] = METADATA "\"type\":\"x\"}";
    CR_CLEANUP(cr_json) struct cr_json *identity = cr_json_parse(text, strlen(text), NULL);
    CR_CLEANUP(cr_json) struct cr_json *patch = cr_control_plane_token_patch(identity);
    expect(patch, METADATA "\"data\":{\"token\":null}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_is_given_to_the_report_that_was_read),
        cmocka_unit_test(of_a_token_secret_the_token_alone_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
