#include "kube/resource.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/strings.h"
#include "kube/client_internal.h"

static const struct cr_resource deployments = {"apps", "v1", "deployments", "Deployment"};

static void paths_follow_group_namespace_name_and_subresource(void **state)
{
    (void)state;
    static const struct {
        const struct cr_resource *resource;
        const char *ns;
        const char *name;
        const char *subresource;
        const char *path;
    } cases[] = {
        {&cr_res_pods, NULL, NULL, NULL, "/api/v1/pods"},
        {&cr_res_pods, "ns", NULL, NULL, "/api/v1/namespaces/ns/pods"},
        {&cr_res_pods, "ns", "p", "eviction", "/api/v1/namespaces/ns/pods/p/eviction"},
        {&deployments, "ns", "d", NULL, "/apis/apps/v1/namespaces/ns/deployments/d"},
        {&cr_res_policies, "ns", "p", "status",
         "/apis/certroll.dev/v1alpha1/namespaces/ns/certrotationpolicies/p/status"},
        {&cr_res_node_reports, NULL, "node-1", "status",
         "/apis/certroll.dev/v1alpha1/nodecertificatereports/node-1/status"},
        {&cr_res_control_planes, "kube-system", NULL, NULL,
         "/apis/certroll.dev/v1alpha1/namespaces/kube-system/controlplanepolicies"},
        {&cr_res_secrets, "a b", "x:y@z?&#", NULL, "/api/v1/namespaces/a%20b/secrets/x%3Ay%40z%3F%26%23"},
        {&cr_res_secrets, "ns", "a/b%2f", NULL, "/api/v1/namespaces/ns/secrets/a%2Fb%252f"},
        {&cr_res_secrets, "ns", "caf\xc3\xa9", NULL, "/api/v1/namespaces/ns/secrets/caf%C3%A9"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *path = cr_resource_path(cases[i].resource, cases[i].ns, cases[i].name, cases[i].subresource);
        assert_string_equal(path, cases[i].path);
    }
}

static void query_values_are_encoded(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf path = CR_BUF_INIT(0);
    cr_buf_puts(&path, "/api/v1/pods");
    cr_query_add(&path, "labelSelector", "app in (a,b),x=y");
    cr_query_add(&path, "fieldSelector", NULL);
    cr_query_add(&path, "continue", "a+/=");
    assert_string_equal(path.data, "/api/v1/pods?labelSelector=app%20in%20%28a%2Cb%29%2Cx%3Dy&continue=a%2B%2F%3D");
}

static void segments_that_would_leave_their_place_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"", ".", "..", "a/b", "a%2fb", "/", NULL};
    for (size_t i = 0; i < cr_array_len(bad); i++) {
        struct cr_error err = {0};
        assert_false(cr_resource_check_segment(bad[i], "name", &err));
        assert_int_equal(err.kind, CR_ERR_INVALID);
    }
    assert_true(cr_resource_check_segment("system:node..x", "name", NULL));
}

static void only_the_core_s_secrets_are_secret(void **state)
{
    (void)state;
    static const struct cr_resource other = {"example.com", "v1", "secrets", "Secret"};
    assert_true(cr_resource_is_secret(&cr_res_secrets));
    assert_false(cr_resource_is_secret(&cr_res_pods));
    assert_false(cr_resource_is_secret(&other));
}

static void stamps_items_that_come_without_kind(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *item = cr_json_new_object();
    cr_resource_stamp(&deployments, item);
    assert_string_equal(cr_json_string_at(item, "apiVersion"), "apps/v1");
    assert_string_equal(cr_json_string_at(item, "kind"), "Deployment");
    CR_CLEANUP(cr_json) struct cr_json *core = cr_json_new_object();
    cr_resource_stamp(&cr_res_pods, core);
    assert_string_equal(cr_json_string_at(core, "apiVersion"), "v1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_follow_group_namespace_name_and_subresource),
        cmocka_unit_test(query_values_are_encoded),
        cmocka_unit_test(segments_that_would_leave_their_place_are_refused),
        cmocka_unit_test(only_the_core_s_secrets_are_secret),
        cmocka_unit_test(stamps_items_that_come_without_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
