#include "controlplane/controller/control_plane_workloads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/strings.h"
#include "kube/object.h"
#include "support/fakeapi.h"
#include "support/jsontext.h"
#include "support/manyvalues.h"

#define DEPLOYMENT(observed, updated)                                                                                  \
    "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"generation\":2},\"spec\":{\"replicas\":2,\"template\":"       \
    "{\"metadata\":{\"annotations\":{\"certroll.dev/root-ca\":\"aa\"}}}},\"status\":{\"observedGeneration\":" observed \
    ",\"replicas\":2,\"updatedReplicas\":" updated ",\"availableReplicas\":2,\"readyReplicas\":2}}"
#define POD(phase, start)                                                                                              \
    "{\"metadata\":{\"name\":\"p\"},\"status\":{\"phase\":\"" phase "\",\"startTime\":\"2026-11-21T06:10:" start "Z\"" \
    "}}"

static void a_rollout_is_over_when_its_controller_says_so(void **state)
{
    (void)state;
    static const struct {
        const char *workload;
        bool rolling;
    } cases[] = {
        {DEPLOYMENT("2", "2"), false},
        {DEPLOYMENT("1", "2"), true},
        {DEPLOYMENT("2", "1"), true},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_json) struct cr_json *workload = test_json(cases[i].workload);
        CR_CLEANUP(cr_json) struct cr_json *pods = test_json("{\"items\":[]}");
        struct cr_control_plane_workload_view view = cr_control_plane_workload_read("Deployment", workload, pods);
        assert_true(view.found);
        assert_int_equal(view.rolling, cases[i].rolling);
        assert_string_equal(view.root_ca, "aa");
        assert_null(view.token_key);
        assert_int_equal(view.pods_started_ms, 0);
    }
}

static void the_oldest_running_pod_gives_the_start(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *workload = test_json(DEPLOYMENT("2", "2"));
    CR_CLEANUP(cr_json)
    struct cr_json *pods =
        test_json("{\"items\":[" POD("Running", "30") "," POD("Running", "21") "," POD("Failed", "01") "]}");
    struct cr_control_plane_workload_view view = cr_control_plane_workload_read("Deployment", workload, pods);
    assert_int_equal(view.pods_started_ms, INT64_C(1795241421000));
}

static void pods_that_cannot_be_asked_for_are_old(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *workload = test_json(DEPLOYMENT("2", "2"));
    assert_int_equal(cr_control_plane_workload_read("Deployment", workload, NULL).pods_started_ms, 1);
    assert_false(cr_control_plane_workload_read("Deployment", NULL, NULL).found);
}

/* --- what cannot be read --- */

static char uid[] = "u", deployment[] = "Deployment", ns[] = "b", one[] = "one", other[] = "other";
static struct cr_control_plane_workload specs[] = {{one, deployment, ns, one, true, true},
                                                   {other, deployment, ns, other, true, true}};
static const struct cr_control_plane_policy policy = {
    .uid = uid, .workloads = specs, .workloads_len = cr_array_len(specs)};

static void one_that_is_too_large_stops_no_other_but_one_that_is_forbidden_does(void **state)
{
    (void)state;
    cr_autofree char *large = text_of_many_values("{\"spec\":", CR_OBJECT_VALUES_MAX, "}");
    const struct fake_answer firsts[] = {
        {.expect = "/deployments/one", .body = large},
        {.status = 403, .body = "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no\"}"},
    };
    for (size_t i = 0; i < cr_array_len(firsts); i++) {
        const struct fake_answer script[] = {firsts[i], {.expect = "/deployments/other", .body = DEPLOYMENT("2", "2")}};
        struct fake_api api;
        struct cr_error err = {0};
        assert_true(fake_api_start(&api, script, cr_array_len(script)));
        CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
        CR_CLEANUP(cr_client) struct cr_client *client = fake_client(loop, api.port);
        CR_CLEANUP(cr_control_plane_workloads)
        struct cr_control_plane_workloads *workloads = cr_control_plane_workloads_new(client);
        const struct cr_control_plane_workload_view *views =
            cr_control_plane_workloads_look(workloads, &policy, false, 0, &err);
        fake_api_stop(&api);
        if (i == 1) {
            assert_null(views);
            assert_int_equal(err.kind, CR_ERR_FORBIDDEN);
            assert_non_null(strstr(err.text, "workload 'one'"));
            continue;
        }
        assert_non_null(views);
        assert_non_null(strstr(views[0].problem, "more than the 100000 that are read"));
        assert_false(views[0].found);
        assert_null(views[1].problem);
        assert_true(views[1].found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rollout_is_over_when_its_controller_says_so),
        cmocka_unit_test(the_oldest_running_pod_gives_the_start),
        cmocka_unit_test(pods_that_cannot_be_asked_for_are_old),
        cmocka_unit_test(one_that_is_too_large_stops_no_other_but_one_that_is_forbidden_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
