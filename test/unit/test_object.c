#include "kube/object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/strings.h"

static struct cr_json *parse(const char *text)
{
    struct cr_error err = {0};
    struct cr_json *j = cr_json_parse(text, strlen(text), &err);
    if (!j)
        fail_msg("%s: %s", text, err.text);
    return j;
}

static void reads_metadata(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json)
    struct cr_json *o = parse(
        "{\"metadata\":{\"name\":\"n\",\"namespace\":\"ns\",\"uid\":\"u\",\"resourceVersion\":\"9007199254740993\","
        "\"generation\":7,\"creationTimestamp\":\"2026-11-21T06:00:00Z\",\"annotations\":{\"a/"
        "b\":\"c\"},\"ownerReferences\":[{\"name\":\"x\"},{\"name\":\"rs\","
        "\"controller\":true}]}}");
    cr_autofree char *key = cr_obj_key(o);
    assert_string_equal(key, "ns/n");
    assert_string_equal(cr_obj_uid(o), "u");
    assert_string_equal(cr_obj_resource_version(o), "9007199254740993");
    assert_int_equal(cr_obj_generation(o), 7);
    assert_int_equal(cr_obj_created_ms(o), INT64_C(1795240800000));
    assert_string_equal(cr_obj_annotation(o, "a/b"), "c");
    assert_null(cr_obj_annotation(o, "a"));
    assert_string_equal(cr_json_string_at(cr_obj_controller(o), "name"), "rs");
    assert_false(cr_obj_deleting(o));
}

static void absent_objects_answer_as_absent(void **state)
{
    (void)state;
    cr_autofree char *key = cr_obj_key(NULL);
    assert_string_equal(key, "/");
    assert_null(cr_obj_name(NULL));
    assert_null(cr_obj_controller(NULL));
    assert_int_equal(cr_obj_created_ms(NULL), 0);
    assert_false(cr_obj_deleting(NULL));
    assert_false(cr_pod_active(NULL));
    assert_false(cr_pod_ready(NULL));
    assert_null(cr_pod_ip(NULL));
    assert_int_equal(cr_pod_started_ms(NULL), 0);
}

static void pods_are_active_until_they_end(void **state)
{
    (void)state;
    static const struct {
        const char *pod;
        bool active;
        bool ready;
    } cases[] = {
        {"{\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}", true, true},
        {"{\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\"}]}}", true,
         false},
        {"{\"status\":{\"phase\":\"Pending\"}}", true, false},
        {"{}", true, false},
        {"{\"status\":{\"phase\":\"Failed\"}}", false, false},
        {"{\"status\":{\"phase\":\"Succeeded\"}}", false, false},
        {"{\"metadata\":{\"deletionTimestamp\":\"2026-11-21T06:00:00Z\"},\"status\":{\"phase\":\"Running\"}}", false,
         false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_json) struct cr_json *pod = parse(cases[i].pod);
        assert_int_equal(cr_pod_active(pod), cases[i].active);
        assert_int_equal(cr_pod_ready(pod), cases[i].ready);
    }
}

static void the_latest_running_container_counts_as_the_start(void **state)
{
    (void)state;
    static const struct {
        const char *pod;
        int64_t started;
    } cases[] = {
        {"{}", 0},
        {"{\"status\":{\"startTime\":\"1970-01-01T00:00:10Z\"}}", 10000},
        {"{\"status\":{\"startTime\":\"1970-01-01T00:00:10Z\",\"containerStatuses\":[{\"state\":{\"running\":{"
         "\"startedAt\":\"1970-01-01T00:00:12Z\"}}},{\"state\":{\"running\":{\"startedAt\":\"1970-01-01T00:00:20Z\"}}},"
         "{\"state\":{\"terminated\":{\"startedAt\":\"1970-01-01T00:00:30Z\"}}}]}}",
         20000},
        {"{\"status\":{\"containerStatuses\":[{\"restartCount\":2,\"state\":{\"running\":{\"startedAt\":"
         "\"1970-01-01T00:00:12Z\"}}},{\"restartCount\":1001,\"state\":{\"running\":{\"startedAt\":"
         "\"1970-01-01T00:00:20Z\"}}},{\"restartCount\":7,\"state\":{\"waiting\":{}}}]}}",
         20003},
        {"{\"status\":{\"startTime\":\"1970-01-01T00:00:10Z\",\"containerStatuses\":[{\"state\":{\"waiting\":{}}}]}}",
         10000},
        {"{\"status\":{\"containerStatuses\":[{\"state\":{\"running\":{\"startedAt\":\"soon\"}}}]}}", 0},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_json) struct cr_json *pod = parse(cases[i].pod);
        assert_int_equal(cr_pod_started_ms(pod), cases[i].started);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_metadata),
        cmocka_unit_test(absent_objects_answer_as_absent),
        cmocka_unit_test(pods_are_active_until_they_end),
        cmocka_unit_test(the_latest_running_container_counts_as_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
