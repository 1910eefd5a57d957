#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "api/control_plane.h"
#include "api/status_fields.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "support/jsontext.h"

#define NOW INT64_C(1795241421000) /* 2026-11-21T06:10:21Z, a whole second */

static char *print_of(unsigned n)
{
    return cr_asprintf("%064x", n);
}

static char *two(unsigned n)
{
    return cr_asprintf("%064x,%064x", n, n + 1);
}

static void fill_authority(struct cr_control_plane_authority *authority, unsigned base, int64_t end_ms)
{
    *authority = (struct cr_control_plane_authority){.trusted = two(base),
                                                     .pending = print_of(base + 2),
                                                     .known = two(base),
                                                     .issuing = print_of(base),
                                                     .removable = print_of(base + 1),
                                                     .not_after_ms = end_ms};
}

static void fill_consumers(struct cr_control_plane_status *status)
{
    status->consumers = cr_calloc(2, sizeof *status->consumers);
    status->consumers_len = 2;
    status->consumers[0] =
        (struct cr_control_plane_consumer_status){.component = cr_strdup("etcd"), .nodes = 3, .loaded = 3};
    status->consumers[1] = (struct cr_control_plane_consumer_status){.component = cr_strdup("kube-apiserver"),
                                                                     .nodes = 3,
                                                                     .loaded = 1,
                                                                     .restart_needed = 1,
                                                                     .unknown = 1,
                                                                     .message = cr_strdup("waits for node-2")};
}

static void fill_condition(struct cr_control_plane_status *status, const char *type, char *reason, char *message)
{
    cr_conditions_set(status->conditions, cr_control_plane_condition_types, CR_CONTROL_PLANE_CONDITIONS,
                      &(struct cr_condition){.type = type,
                                             .status = true,
                                             .reason = reason,
                                             .message = message,
                                             .transition_ms = NOW,
                                             .observed_generation = 4});
}

/* Something in every field. */
static void fill(struct cr_control_plane_status *status)
{
    status->observed_generation = 4;
    fill_authority(&status->cluster, 16, NOW + 1000);
    fill_authority(&status->etcd, 32, NOW + 2000);
    fill_authority(&status->front_proxy, 48, NOW + 3000);
    status->service_accounts = (struct cr_control_plane_keys){
        .verifying = two(64), .known = two(64), .signing = print_of(64), .tokens = two(64), .removable = cr_strdup("")};
    status->nodes = (struct cr_control_plane_count){5, 4, cr_strdup("node-5: the kubelet has not answered")};
    status->namespaces = (struct cr_control_plane_count){9, 8, cr_strdup("shop")};
    status->token_secrets = (struct cr_control_plane_count){2, 1, cr_strdup("shop/robot")};
    status->workloads = (struct cr_control_plane_count){1, 0, cr_strdup("dns")};
    fill_consumers(status);
    status->restarting_node = cr_strdup("node-1");
    status->restarting_component = cr_strdup("kube-apiserver");
    status->restarting_token = cr_strdup("00c0ffee");
    status->restarting_since_ms = NOW + 42;
    status->restarting_revoked = true;
    status->failed_node = cr_strdup("node-3");
    status->failed_component = cr_strdup("kubelet");
    status->failed_token = cr_strdup("0badc0de");
    status->failed_state = cr_strdup("5tate");
    status->root_ca = cr_strdup("d19e57");
    status->root_ca_since_ms = NOW + 1;
    status->signing_key = cr_strdup("4e4");
    status->handled_retry = cr_strdup("2026-11-22");
    status->next = cr_strdup("kube-apiserver of node-2 is restarted next");
    char ready[] = "Watching";
    char reports[] = "5 of 5 nodes report";
    char blocked_reason[] = "Trap";
    char signs[] = "a second certificate is in the file that signs";
    fill_condition(status, "Ready", ready, reports);
    fill_condition(status, "Blocked", blocked_reason, signs);
}

static char *encode_text(const struct cr_control_plane_status *status)
{
    CR_CLEANUP(cr_json) struct cr_json *json = cr_control_plane_status_encode(status);
    return cr_json_print(json);
}

/* The same file is written to a real API server: test/integration/test_crd_control_plane.py. */
static void test_every_field_is_written_as_the_file_says(void **state)
{
    (void)state;
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status full = {0};
    fill(&full);
    CR_CLEANUP(cr_json) struct cr_json *json = cr_control_plane_status_encode(&full);
    test_json_is_as_in_file(json, "control-plane-status-full.json");
}

static void test_encode_of_decode_is_the_same_text(void **state)
{
    (void)state;
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status full = {0};
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status again = {0};
    fill(&full);
    CR_CLEANUP(cr_json) struct cr_json *json = cr_control_plane_status_encode(&full);
    cr_control_plane_status_decode(json, &again);
    cr_autofree char *first = cr_json_print(json);
    cr_autofree char *second = encode_text(&again);
    assert_string_equal(first, second);
    assert_int_equal(again.restarting_since_ms, NOW + 42);
    assert_int_equal(again.consumers[1].restart_needed, 1);
    assert_string_equal(again.service_accounts.removable, "");
}

/* A merge patch that leaves a member out would leave the old value standing; and a user may wait for the state in which
 * there is nothing to remove. */
static void test_an_empty_status_has_every_member(void **state)
{
    (void)state;
#define AUTHORITY                                                                                                      \
    "{\"trusted\":\"\",\"pending\":\"\",\"known\":\"\",\"issuing\":\"\",\"removable\":\"\",\"notAfter\":null}"
#define COUNT "{\"total\":0,\"converged\":0,\"example\":null}"
    struct cr_control_plane_status empty = {0};
    cr_autofree char *text = encode_text(&empty);
    assert_string_equal(
        text, "{\"observedGeneration\":0,\"cluster\":" AUTHORITY ",\"etcd\":" AUTHORITY ",\"frontProxy\":" AUTHORITY
              ",\"serviceAccounts\":{\"verifying\":\"\",\"known\":\"\",\"signing\":\"\","
              "\"tokens\":\"\",\"removable\":\"\"},\"nodes\":" COUNT ",\"namespaces\":" COUNT ",\"tokenSecrets\":" COUNT
              ",\"workloads\":" COUNT ",\"consumers\":[],"
              "\"restarting\":null,\"failedNode\":null,\"failedComponent\":null,\"failedToken\":null,"
              "\"failedState\":null,\"handledRetry\":null,\"followed\":{\"rootCA\":null,\"rootCASince\":null,"
              "\"signingKey\":null,\"signingKeySince\":null},\"next\":null,\"problem\":null,"
              "\"conditions\":[]}");
}

static void test_what_is_broken_reads_as_absent(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "null",
        "[]",
        "{\"cluster\":7,\"nodes\":[],\"consumers\":{\"component\":\"etcd\"},\"conditions\":7}",
        "{\"cluster\":{\"trusted\":[\"aa\"],\"notAfter\":\"noon\"},\"nodes\":{\"total\":-1,\"converged\":\"3\"}}",
        "{\"consumers\":[{\"nodes\":3},7,{\"component\":\"\"}],\"restarting\":{\"token\":\"aa\"}}",
        "{\"restarting\":{\"node\":\"node-1\",\"component\":\"etcd\"},\"failedToken\":1,\"next\":{}}",
        "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"Perhaps\",\"reason\":\"A\"},{\"status\":\"True\"}]}",
    };
    const struct cr_control_plane_status none = {0};
    cr_autofree char *expected = encode_text(&none);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_json) struct cr_json *json = test_json(cases[i]);
        CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status status = {0};
        cr_control_plane_status_decode(json, &status);
        cr_autofree char *text = encode_text(&status);
        if (strcmp(text, expected) != 0)
            fail_msg("%s reads as %s", cases[i], text);
    }
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status absent = {0};
    cr_control_plane_status_decode(NULL, &absent);
    cr_autofree char *text = encode_text(&absent);
    assert_string_equal(text, expected);
}

/* A text that is cut ends in a way that no user waits for. */
static void test_texts_are_cut_to_the_schema(void **state)
{
    (void)state;
    enum { LONG = 40000 };
    cr_autofree char *longer = cr_malloc(LONG + 1);
    memset(longer, 'a', LONG);
    longer[LONG] = '\0';
    struct cr_control_plane_status status = {.next = longer, .cluster = {.trusted = longer}};
    CR_CLEANUP(cr_json) struct cr_json *json = cr_control_plane_status_encode(&status);
    const char *trusted = cr_json_string_at(json, "cluster", "trusted");
    assert_int_equal(strlen(trusted), 64 * 65);
    assert_true(cr_ends_with(trusted, "..."));
    assert_int_equal(strlen(cr_json_string_at(json, "next")), 1024);
}

static void test_more_consumers_than_are_listed_are_left_out(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *json = cr_json_new_object();
    struct cr_json *array = cr_json_array_in(json, "consumers");
    for (int i = 0; i < 2 * CR_CONTROL_PLANE_CONSUMERS_MAX; i++)
        cr_json_set_string(cr_json_add(array, cr_json_new_object()), "component", "etcd");
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status status = {0};
    cr_control_plane_status_decode(json, &status);
    assert_int_equal(status.consumers_len, CR_CONTROL_PLANE_CONSUMERS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field_is_written_as_the_file_says),
        cmocka_unit_test(test_encode_of_decode_is_the_same_text),
        cmocka_unit_test(test_an_empty_status_has_every_member),
        cmocka_unit_test(test_what_is_broken_reads_as_absent),
        cmocka_unit_test(test_texts_are_cut_to_the_schema),
        cmocka_unit_test(test_more_consumers_than_are_listed_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
