#include "controlplane/controller/control_plane_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/strings.h"
#include "controlplane/controller/control_plane_events.h"
#include "support/fakeapi.h"
#include "support/ownwrites.h"

enum { NOW = 5000 };

static void read_record(struct cr_control_plane_record *record)
{
    static const char text[] =
        "{\"kind\":\"ControlPlanePolicy\",\"metadata\":{\"name\":\"control-plane\",\"namespace\":\"kube-system\","
        "\"uid\":\"u-1\",\"resourceVersion\":\"42\",\"generation\":3,\"creationTimestamp\":\"2026-11-21T06:10:21Z\"},"
        "\"spec\":7,\"status\":{\"cluster\":{\"trusted\":\"a,b\",\"pending\":\"c\",\"known\":\"a,b,c\","
        "\"issuing\":\"a\",\"removable\":\"b\"},\"serviceAccounts\":{\"verifying\":\"k\",\"signing\":\"k\"},"
        "\"restarting\":{\"node\":\"node-1\",\"component\":\"etcd\",\"token\":\"t\"},\"failedToken\":\"f\","
        "\"handledRetry\":\"r\",\"conditions\":[{\"type\":\"Blocked\",\"status\":\"True\",\"reason\":\"Trap\","
        "\"message\":\"m\",\"lastTransitionTime\":\"2026-11-21T06:10:21Z\"}]}}";
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *json = cr_json_parse(text, strlen(text), &err);
    assert_non_null(json);
    cr_control_plane_record_read(json, record);
}

static void one_whose_spec_cannot_be_read_still_has_a_name_and_a_status(void **state)
{
    (void)state;
    CR_CLEANUP(cr_control_plane_record) struct cr_control_plane_record record;
    read_record(&record);
    assert_string_equal(record.name, "control-plane");
    assert_string_equal(record.uid, "u-1");
    assert_string_equal(record.resource_version, "42");
    assert_int_equal(record.generation, 3);
    assert_int_equal(record.created_ms, INT64_C(1795241421000));
    assert_string_equal(record.status.cluster.trusted, "a,b");
}

/* Who waits for what is safe must not find what was. What is remembered stays. */
static void a_problem_says_nothing_of_what_is_safe(void **state)
{
    (void)state;
    CR_CLEANUP(cr_control_plane_record) struct cr_control_plane_record record;
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status after = {0};
    read_record(&record);
    cr_control_plane_status_problem(&record, "Forbidden", "grant list of secrets", NOW, &after);
    assert_string_equal(after.cluster.trusted, "");
    assert_string_equal(after.cluster.known, "");
    assert_string_equal(after.cluster.removable, "");
    assert_string_equal(after.etcd.trusted, "");
    assert_string_equal(after.service_accounts.verifying, "");
    assert_string_equal(after.service_accounts.removable, "");
    assert_string_equal(after.restarting_token, "t");
    assert_string_equal(after.failed_token, "f");
    assert_string_equal(after.handled_retry, "r");
    assert_string_equal(after.next, "grant list of secrets");
    assert_int_equal(after.observed_generation, 3);
    const struct cr_condition *ready = cr_control_plane_condition(&after, "Ready");
    assert_false(ready->status);
    assert_string_equal(ready->reason, "Forbidden");
    assert_int_equal(ready->observed_generation, 3);
    assert_false(cr_control_plane_condition(&after, "Converged")->status);
    assert_true(cr_control_plane_condition(&after, "Blocked")->status);
}

static void a_younger_policy_reports_which_one_counts(void **state)
{
    (void)state;
    CR_CLEANUP(cr_control_plane_record) struct cr_control_plane_record record;
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status after = {0};
    read_record(&record);
    cr_control_plane_status_conflict(&record, "first", NOW, &after);
    const struct cr_condition *conflict = cr_control_plane_condition(&after, "Conflict");
    assert_true(conflict->status);
    assert_non_null(strstr(conflict->message, "ControlPlanePolicy first is older"));
    assert_false(cr_control_plane_condition(&after, "Ready")->status);
    assert_string_equal(after.cluster.removable, "");
}

/* What is safe is so all the same. */
static void what_may_not_be_written_blocks(void **state)
{
    (void)state;
    CR_CLEANUP(cr_control_plane_record) struct cr_control_plane_record record;
    read_record(&record);
    cr_control_plane_status_refused(&record, "secrets is forbidden", NOW, &record.status);
    const struct cr_condition *blocked = cr_control_plane_condition(&record.status, "Blocked");
    assert_true(blocked->status);
    assert_string_equal(blocked->reason, "Refused");
    assert_string_equal(record.status.next, "secrets is forbidden");
    assert_string_equal(record.status.cluster.trusted, "a,b");
}

static void *run_loop(void *loop)
{
    cr_loop_run(loop);
    return NULL;
}

static void a_status_is_written_for_one_version_and_the_cache_is_waited_for(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect = "/controlplanepolicies/control-plane/status?",
         .has = "{\"metadata\":{\"uid\":\"u-1\",\"resourceVersion\":\"42\"},\"status\":",
         .body = "{\"metadata\":{\"namespace\":\"kube-system\",\"name\":\"control-plane\",\"uid\":\"u-1\","
                 "\"resourceVersion\":\"43\"}}"}};
    struct fake_api api;
    struct cr_error err = {0};
    pthread_t thread;
    bool wrote = false;
    assert_true(fake_api_start(&api, script, 1));
    CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
    CR_CLEANUP(cr_own_writes) struct cr_own_writes *own = cr_own_writes_new();
    const struct cr_control_plane_status_writer writer = {
        .client = fake_client(loop, api.port), .own_writes = own, .key = "/"};
    assert_int_equal(pthread_create(&thread, NULL, run_loop, loop), 0);
    CR_CLEANUP(cr_control_plane_record) struct cr_control_plane_record record;
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status after = {0};
    read_record(&record);
    cr_control_plane_record_status(&record, &after);
    assert_true(cr_control_plane_record_write(&writer, &record, &after, &wrote, &err));
    assert_false(wrote);
    after.observed_generation = 3;
    assert_true(cr_control_plane_record_write(&writer, &record, &after, &wrote, &err));
    assert_true(wrote);
    assert_string_equal(record.resource_version, "43");
    assert_true(test_is_awaited(own, "/", "ControlPlanePolicy", "u-1"));
    cr_loop_stop(loop);
    pthread_join(thread, NULL);
    cr_client_free(writer.client);
    fake_api_stop(&api);
    if (api.problem[0])
        fail_msg("%s", api.problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_whose_spec_cannot_be_read_still_has_a_name_and_a_status),
        cmocka_unit_test(a_problem_says_nothing_of_what_is_safe),
        cmocka_unit_test(what_may_not_be_written_blocks),
        cmocka_unit_test(a_younger_policy_reports_which_one_counts),
        cmocka_unit_test(a_status_is_written_for_one_version_and_the_cache_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
