#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "api/control_plane.h"
#include "base/alloc.h"
#include "base/strings.h"

#define MINUTE INT64_C(60000)

static bool decode(const char *spec, struct cr_control_plane_policy *out, struct cr_error *err)
{
    cr_autofree char *text = cr_asprintf("{\"kind\":\"ControlPlanePolicy\",\"metadata\":{\"namespace\":\"kube-system\","
                                         "\"name\":\"control-plane\",\"uid\":\"u-1\",\"generation\":7,"
                                         "\"creationTimestamp\":\"2026-11-21T06:10:21Z\"},\"spec\":%s}",
                                         spec);
    struct cr_error broken = {0};
    CR_CLEANUP(cr_json) struct cr_json *json = cr_json_parse(text, strlen(text), &broken);
    if (!json)
        fail_msg("the test's own JSON: %s in %s", broken.text, text);
    return cr_control_plane_policy_decode(json, out, err);
}

static void decode_ok(const char *spec, struct cr_control_plane_policy *out)
{
    struct cr_error err = {0};
    if (!decode(spec, out, &err))
        fail_msg("refused: %s", err.text);
}

static void test_defaults_are_those_of_the_schema(void **state)
{
    (void)state;
    CR_CLEANUP(cr_control_plane_policy) struct cr_control_plane_policy policy;
    decode_ok("{\"restart\":null}", &policy);
    assert_string_equal(policy.ns, "kube-system");
    assert_string_equal(policy.name, "control-plane");
    assert_string_equal(policy.uid, "u-1");
    assert_int_equal(policy.generation, 7);
    assert_int_equal(policy.created_ms, INT64_C(1795241421000));
    assert_true(policy.enforce && policy.renew_token_secrets && !policy.suspend);
    assert_int_equal(policy.tokens, CR_CONTROL_PLANE_TOKENS_RESTART_KUBELETS);
    assert_int_equal(policy.single, CR_CONTROL_PLANE_SINGLE_BLOCK);
    assert_int_equal(policy.step_deadline_ms, 5 * MINUTE);
    assert_null(policy.retry);
    assert_int_equal(policy.consumers_len + policy.workloads_len, 0);
}

/* The same file is given to a real API server: test/integration/test_crd_control_plane.py. */
static void test_every_field_is_read(void **state)
{
    (void)state;
    static char spec[16 * 1024];
    FILE *file = fopen(CERTROLL_SOURCE_DIR "/test/testdata/control-plane-full.json", "r");
    assert_non_null(file);
    spec[fread(spec, 1, sizeof spec - 1, file)] = '\0';
    fclose(file);
    CR_CLEANUP(cr_control_plane_policy) struct cr_control_plane_policy policy;
    decode_ok(spec, &policy);
    assert_true(policy.suspend && !policy.enforce && !policy.renew_token_secrets);
    assert_int_equal(policy.consumers_len, 2);
    assert_string_equal(policy.consumers[0].component, "etcd");
    assert_int_equal(policy.consumers[0].restart, CR_CONTROL_PLANE_RESTART_NEVER);
    assert_int_equal(policy.consumers[1].restart, CR_CONTROL_PLANE_RESTART_ALLOWED);
    assert_int_equal(policy.workloads_len, 2);
    assert_string_equal(policy.workloads[0].name, "dns");
    assert_string_equal(policy.workloads[0].kind, "Deployment");
    assert_string_equal(policy.workloads[0].ns, "kube-system");
    assert_string_equal(policy.workloads[0].target, "coredns");
    assert_true(policy.workloads[0].reads_root_ca && !policy.workloads[0].reads_token);
    assert_string_equal(policy.workloads[1].kind, "DaemonSet");
    assert_true(policy.workloads[1].reads_root_ca && policy.workloads[1].reads_token);
    assert_int_equal(policy.tokens, CR_CONTROL_PLANE_TOKENS_WAIT);
    assert_int_equal(policy.single, CR_CONTROL_PLANE_SINGLE_ALLOW);
    assert_int_equal(policy.step_deadline_ms, 10 * MINUTE);
    assert_string_equal(policy.retry, "2026-11-22");
}

static void test_what_a_workload_reads_is_both_by_default(void **state)
{
    (void)state;
    static const struct {
        const char *reads;
        bool root_ca, token;
    } cases[] = {
        {"", true, true},
        {",\"reads\":[]", true, true},
        {",\"reads\":[\"Token\"]", false, true},
        {",\"reads\":[\"RootCA\"]", true, false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_control_plane_policy) struct cr_control_plane_policy policy;
        cr_autofree char *spec = cr_asprintf("{\"workloads\":[{\"name\":\"a\",\"targetRef\":{\"kind\":\"StatefulSet\","
                                             "\"namespace\":\"b\",\"name\":\"c\"}%s}]}",
                                             cases[i].reads);
        decode_ok(spec, &policy);
        assert_int_equal(policy.workloads[0].reads_root_ca, cases[i].root_ca);
        assert_int_equal(policy.workloads[0].reads_token, cases[i].token);
    }
}

#define TARGET(kind, name) "\"targetRef\":{\"kind\":\"" kind "\",\"namespace\":\"b\",\"name\":\"" name "\"}"

/* The schema refuses them first, unless the CRD is of another version. */
static void test_what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *message;
    } cases[] = {
        {"7", "spec"},
        {"{\"mode\":\"Dry\"}", "spec.mode"},
        {"{\"suspend\":\"yes\"}", "spec.suspend"},
        {"{\"consumers\":{}}", "spec.consumers"},
        {"{\"consumers\":[{}]}", "spec.consumers[0].component"},
        {"{\"consumers\":[{\"component\":\"etcd\",\"restart\":\"Maybe\"}]}", "spec.consumers[0].restart"},
        {"{\"consumers\":[{\"component\":\"etcd\"},{\"component\":\"etcd\"}]}",
         "spec.consumers[1].component: 'etcd' is listed twice"},
        {"{\"workloads\":[{\"name\":\"a\"}]}", "spec.workloads[0].targetRef is required"},
        {"{\"workloads\":[{" TARGET("Deployment", "c") "}]}", "spec.workloads[0].name"},
        {"{\"workloads\":[{\"name\":\"a\"," TARGET("Job", "c") "}]}", "spec.workloads[0].targetRef.kind"},
        {"{\"workloads\":[{\"name\":\"a\",\"targetRef\":{\"kind\":\"DaemonSet\",\"name\":\"c\"}}]}",
         "spec.workloads[0].targetRef.namespace"},
        {"{\"workloads\":[{\"name\":\"a\"," TARGET("Deployment", "c") ",\"reads\":[\"Key\"]}]}",
         "spec.workloads[0].reads[0] must be RootCA or Token, not 'Key'"},
        {"{\"workloads\":[{\"name\":\"a\"," TARGET("Deployment", "c") "},{\"name\":\"a\"," TARGET("Deployment",
                                                                                                  "d") "}]}",
         "spec.workloads[1].name: 'a' is listed twice"},
        {"{\"workloads\":[{\"name\":\"a\"," TARGET("Deployment", "c") "},{\"name\":\"b\"," TARGET("Deployment",
                                                                                                  "c") "}]}",
         "spec.workloads[1].targetRef: Deployment b/c is that of workload 'a' already"},
        {"{\"tokens\":\"Never\"}", "spec.tokens"},
        {"{\"tokenSecrets\":\"Delete\"}", "spec.tokenSecrets"},
        {"{\"restart\":{\"singleNode\":true}}", "spec.restart.singleNode"},
        {"{\"restart\":{\"deadline\":\"29s\"}}", "spec.restart.deadline"},
        {"{\"restart\":{\"deadline\":\"61m\"}}", "spec.restart.deadline"},
        {"{\"restart\":{\"retry\":\"\"}}", "spec.restart.retry"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        struct cr_control_plane_policy policy = {.name = NULL};
        if (decode(cases[i].spec, &policy, &err))
            fail_msg("%s is taken", cases[i].spec);
        assert_int_equal(err.kind, CR_ERR_INVALID);
        if (!strstr(err.text, cases[i].message))
            fail_msg("%s: '%s' does not say '%s'", cases[i].spec, err.text, cases[i].message);
        assert_null(policy.name); /* empty, so that nothing is acted on */
        assert_null(policy.workloads);
    }
}

static void test_another_kind_is_refused(void **state)
{
    (void)state;
    struct cr_control_plane_policy policy;
    struct cr_error err = {0};
    assert_false(cr_control_plane_policy_decode(NULL, &policy, &err));
    assert_string_equal(err.text, "kind must be ControlPlanePolicy");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_are_those_of_the_schema),
        cmocka_unit_test(test_every_field_is_read),
        cmocka_unit_test(test_what_a_workload_reads_is_both_by_default),
        cmocka_unit_test(test_what_is_wrong_is_named),
        cmocka_unit_test(test_another_kind_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
