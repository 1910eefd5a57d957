#include "tlsreload/event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/strings.h"
#include "codec/json.h"

static const struct cr_tlsreload_event good = {
    .reloaded = true,
    .at_ms = 1795323421123,
    .certificate = "/etc/tls/tls.crt",
    .leaf = "aa",
    .before = "bb",
    .trust_changed = true,
    .problem = "",
};

static struct cr_json *event_of(const struct cr_tlsreload_event *event)
{
    CR_CLEANUP(cr_buf) struct cr_buf line = CR_BUF_INIT(0);
    cr_tlsreload_event_json(event, "certroll-operator", "1.2.3", &line);
    assert_null(strchr(line.data, '\n'));
    struct cr_json *json = cr_json_parse(line.data, line.len, NULL);
    assert_non_null(json);
    return json;
}

/* As ocsf/ocsf-schema has it in version 1.8.0: events/base_event.json, events/discovery/discovery.json,
 * events/discovery/device_config_state_change.json, objects/{metadata,product,device,endpoint}.json. */
static void what_the_schema_requires_is_there(void **state)
{
    (void)state;
    static const struct {
        const char *path[4];
        int64_t number;   /* -1: a text */
        const char *text; /* NULL: any */
    } required[] = {
        {{"activity_id"}, 1, NULL},
        {{"category_uid"}, 5, NULL},
        {{"class_uid"}, 5019, NULL},
        {{"type_uid"}, 5019 * 100 + 1, NULL},
        {{"severity_id"}, 1, NULL},
        {{"status_id"}, 1, NULL},
        {{"state_id"}, 2, NULL},
        {{"time"}, 1795323421123, NULL},
        {{"metadata", "version"}, -1, "1.8.0"},
        {{"metadata", "product", "name"}, -1, "certroll-operator"},
        {{"metadata", "product", "vendor_name"}, -1, "certroll"},
        {{"metadata", "product", "version"}, -1, "1.2.3"},
        {{"device", "type_id"}, 1, NULL},
        {{"device", "hostname"}, -1, NULL},
        {{"class_name"}, -1, "Device Config State Change"},
        {{"category_name"}, -1, "Discovery"},
        {{"activity_name"}, -1, "Log"},
        {{"severity"}, -1, "Informational"},
        {{"status"}, -1, "Success"},
        {{"unmapped", "certificate"}, -1, "/etc/tls/tls.crt"},
        {{"unmapped", "leaf"}, -1, "aa"},
        {{"unmapped", "leaf_before"}, -1, "bb"},
    };
    CR_CLEANUP(cr_json) struct cr_json *event = event_of(&good);
    for (size_t i = 0; i < cr_array_len(required); i++) {
        const struct cr_json *at = cr_json_at_keys(event, required[i].path);
        if (required[i].number >= 0)
            assert_int_equal(cr_json_int(at, -1), required[i].number);
        else if (required[i].text)
            assert_string_equal(cr_or_empty(cr_json_string(at)), required[i].text);
        else
            assert_true(strlen(cr_or_empty(cr_json_string(at))) > 0);
    }
    assert_true(cr_json_bool_at(event, false, "unmapped", "trust_changed"));
    assert_null(cr_json_get(event, "status_detail"));
}

static void a_refusal_is_of_medium_severity_and_says_why(void **state)
{
    (void)state;
    struct cr_tlsreload_event refused = good;
    refused.reloaded = false;
    refused.trust_changed = false;
    refused.problem = "tls.key does not belong to the certificate in tls.crt";
    CR_CLEANUP(cr_json) struct cr_json *event = event_of(&refused);
    assert_int_equal(cr_json_int(cr_json_get(event, "severity_id"), 0), 3);
    assert_string_equal(cr_json_string(cr_json_get(event, "severity")), "Medium");
    assert_int_equal(cr_json_int(cr_json_get(event, "status_id"), 0), 2);
    assert_string_equal(cr_json_string(cr_json_get(event, "status")), "Failure");
    assert_int_equal(cr_json_int(cr_json_get(event, "state_id"), 0), 99);
    assert_string_equal(cr_json_string(cr_json_get(event, "state")), "Refused"); /* 99 wants the source's own word */
    assert_string_equal(cr_json_string(cr_json_get(event, "status_detail")), refused.problem);
    assert_int_equal(cr_json_int(cr_json_get(event, "type_uid"), 0), 501901);
}

static void whatever_a_path_holds_it_is_one_line_of_json(void **state)
{
    (void)state;
    struct cr_tlsreload_event strange = good;
    strange.certificate = "/tmp/\"quoted\\\"\n\t\xff\xfe\x01";
    CR_CLEANUP(cr_json) struct cr_json *event = event_of(&strange);
    assert_string_equal(cr_json_string_at(event, "unmapped", "certificate"), "/tmp/\"quoted\\\"?????");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_schema_requires_is_there),
        cmocka_unit_test(a_refusal_is_of_medium_severity_and_says_why),
        cmocka_unit_test(whatever_a_path_holds_it_is_one_line_of_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
