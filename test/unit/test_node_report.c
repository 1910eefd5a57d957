#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "api/node_report.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "support/jsontext.h"

#define NOW    INT64_C(1795241421000) /* 2026-11-21T06:10:21Z, a whole second */
#define HEX(c) "00000000000000000000000000000000000000000000000000000000000000" c

static void add_components(struct cr_node_report *report)
{
    report->components = cr_calloc(2, sizeof *report->components);
    report->components_len = 2;
    report->components[0] = (struct cr_node_component){.name = cr_strdup("etcd"),
                                                       .version = cr_strdup("3.6.8-0"),
                                                       .pod = cr_strdup("etcd-one"),
                                                       .running = true,
                                                       .started_ms = NOW - 1500,
                                                       .process = cr_strdup("boot-98-7654"),
                                                       .restart = cr_strdup("Manifest"),
                                                       .health = CR_NODE_HEALTH_FAILING,
                                                       .health_message = cr_strdup("/readyz answers 503"),
                                                       .health_ms = NOW - 7};
    report->components[1] = (struct cr_node_component){.name = cr_strdup("kubelet"),
                                                       .restart_refused = cr_strdup("--allow-restart lacks it")};
}

/* Has what it has not taken up, and the other way round. */
static void add_files(struct cr_node_report *report)
{
    report->files = cr_calloc(2, sizeof *report->files);
    report->files_len = 2;
    struct cr_node_file *trust = &report->files[0];
    *trust = (struct cr_node_file){.component = cr_strdup("kube-controller-manager"),
                                   .parameter = cr_strdup("kubeconfig certificate-authority"),
                                   .via = cr_strdup("--kubeconfig"),
                                   .role = CR_ROLE_SERVER_CA,
                                   .place = cr_strdup("Host"),
                                   .path = cr_strdup("/etc/kubernetes/pki/ca.crt"),
                                   .alone = true,
                                   .own = true,
                                   .signs_and_trusts = true,
                                   .method = CR_METHOD_POLL,
                                   .max_delay_ms = 300000,
                                   .kind = CR_NODE_FILE_TRUST,
                                   .problem = cr_strdup("two CAs"),
                                   .kept = true,
                                   .more = true,
                                   .not_after_ms = NOW + 9000,
                                   .changed_ms = NOW - 250,
                                   .loaded = CR_NODE_LOADED_SOON,
                                   .has_known = true,
                                   .due_ms = NOW + 299750,
                                   .evidence = CR_NODE_EVIDENCE_INFERRED,
                                   .why = cr_strdup("it looks each 5 min")};
    cr_strvec_add(&trust->prints, HEX("0a"));
    cr_strvec_add(&trust->prints, HEX("0b"));
    cr_strvec_add(&trust->has, HEX("0b"));
    struct cr_node_file *leaf = &report->files[1];
    *leaf = (struct cr_node_file){.component = cr_strdup("kubelet"),
                                  .parameter = cr_strdup("--tls-cert-file"),
                                  .role = CR_ROLE_SERVER_LEAF,
                                  .method = CR_METHOD_WATCH,
                                  .kind = CR_NODE_FILE_LEAF,
                                  .not_after_ms = NOW + 5000,
                                  .loaded = CR_NODE_LOADED_YES,
                                  .has_known = true,
                                  .evidence = CR_NODE_EVIDENCE_VERIFIED};
    cr_strvec_add(&leaf->prints, HEX("0c"));
    cr_strvec_add(&leaf->has, HEX("0c"));
    cr_strvec_add(&leaf->issuers, HEX("0b"));
}

static void add_others(struct cr_node_report *report)
{
    report->cas = cr_calloc(1, sizeof *report->cas);
    report->cas_len = 1;
    report->cas[0] =
        (struct cr_node_ca){.fingerprint = HEX("0b"), .subject = cr_strdup("CN=old"), .not_after_ms = NOW + 7000};
    report->tokens_known = true;
    report->tokens = cr_calloc(2, sizeof *report->tokens);
    report->tokens_len = 2;
    report->tokens[0] = (struct cr_node_token_count){.key = cr_strdup(HEX("0d")), .tokens = 12};
    report->tokens[1] = (struct cr_node_token_count){.tokens = 1};
    report->act = (struct cr_node_act){.token = cr_strdup("t-1"),
                                       .component = cr_strdup("etcd"),
                                       .phase = CR_NODE_ACT_PROVING,
                                       .message = cr_strdup("its port does not answer"),
                                       .started_ms = NOW - 2000,
                                       .finished_ms = NOW - 1000,
                                       .process = cr_strdup("boot-12-3456")};
    cr_strvec_add(&report->troubles, "kube-proxy: its words are not known");
}

/* Something in every field. */
static void fill(struct cr_node_report *report)
{
    report->seen_ms = NOW + 123;
    cr_strset(&report->agent, "0.1.0");
    add_components(report);
    add_files(report);
    add_others(report);
}

/* The object with this status, decoded. */
static void decode(struct cr_json *status, struct cr_node_report *out)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json)
    struct cr_json *object = test_json("{\"kind\":\"NodeCertificateReport\",\"metadata\":{\"name\":\"one\"}}");
    cr_json_set(object, "status", status);
    assert_true(cr_node_report_decode(object, out, &err));
}

static char *encode_text(const struct cr_node_report *report)
{
    CR_CLEANUP(cr_json) struct cr_json *json = cr_node_report_encode_status(report);
    return cr_json_print(json);
}

/* The same file is written to a real API server: test/integration/test_crd_node_report.py. */
static void test_every_field_is_written_as_the_file_says(void **state)
{
    (void)state;
    CR_CLEANUP(cr_node_report) struct cr_node_report full = {0};
    fill(&full);
    CR_CLEANUP(cr_json) struct cr_json *json = cr_node_report_encode_status(&full);
    test_json_is_as_in_file(json, "node-report-status-full.json");
}

static void test_encode_of_decode_is_the_same_text(void **state)
{
    (void)state;
    CR_CLEANUP(cr_node_report) struct cr_node_report full = {0};
    CR_CLEANUP(cr_node_report) struct cr_node_report again = {0};
    fill(&full);
    cr_autofree char *first = encode_text(&full);
    decode(test_json(first), &again);
    cr_autofree char *second = encode_text(&again);
    assert_string_equal(first, second);
    /* What is left out when it says nothing new. */
    assert_string_equal(again.files[1].has.items[0], HEX("0c"));
    assert_int_equal(again.files[0].has.len, 1);
    assert_null(again.components[1].process);
    assert_string_equal(again.act.process, "boot-12-3456");
    assert_int_equal(again.files[0].max_delay_ms, 300000);
    assert_null(again.tokens[1].key);
}

static void test_the_object_around_it_is_read(void **state)
{
    (void)state;
    struct cr_error err = {0};
    CR_CLEANUP(cr_node_report) struct cr_node_report report = {0};
    CR_CLEANUP(cr_json)
    struct cr_json *object =
        test_json("{\"kind\":\"NodeCertificateReport\",\"metadata\":{\"name\":\"one\",\"uid\":\"u\","
                  "\"resourceVersion\":\"7\",\"generation\":3},"
                  "\"spec\":{\"restart\":{\"token\":\"t\",\"component\":\"etcd\"}}}");
    assert_true(cr_node_report_decode(object, &report, &err));
    assert_string_equal(report.node, "one");
    assert_string_equal(report.uid, "u");
    assert_string_equal(report.resource_version, "7");
    assert_int_equal(report.generation, 3);
    assert_string_equal(report.order.token, "t");
    assert_string_equal(report.order.component, "etcd");
    assert_int_equal(report.act.phase, CR_NODE_ACT_NONE);
    assert_null(cr_node_report_component(&report, "etcd"));
}

static void test_half_an_order_is_none(void **state)
{
    (void)state;
    static const char *const specs[] = {"{}",
                                        "{\"restart\":null}",
                                        "{\"restart\":{\"token\":\"t\"}}",
                                        "{\"restart\":{\"component\":\"etcd\"}}",
                                        "{\"restart\":{\"token\":\"\",\"component\":\"etcd\"}}",
                                        "{\"restart\":{\"token\":7,\"component\":\"etcd\"}}"};
    for (size_t i = 0; i < cr_array_len(specs); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_node_report) struct cr_node_report report = {0};
        CR_CLEANUP(cr_json)
        struct cr_json *object = test_json("{\"kind\":\"NodeCertificateReport\",\"metadata\":{\"name\":\"one\"}}");
        cr_json_set(object, "spec", test_json(specs[i]));
        assert_true(cr_node_report_decode(object, &report, &err));
        assert_null(report.order.token);
        assert_null(report.order.component);
    }
}

static void test_what_is_no_report_is_refused(void **state)
{
    (void)state;
    static const char *const objects[] = {"{}", "7", "{\"kind\":\"Node\",\"metadata\":{\"name\":\"one\"}}",
                                          "{\"kind\":\"NodeCertificateReport\"}",
                                          "{\"kind\":\"NodeCertificateReport\",\"metadata\":{\"name\":\"\"}}"};
    for (size_t i = 0; i < cr_array_len(objects); i++) {
        struct cr_error err = {0};
        struct cr_node_report report;
        CR_CLEANUP(cr_json) struct cr_json *object = test_json(objects[i]);
        assert_false(cr_node_report_decode(object, &report, &err));
        assert_int_equal(err.kind, CR_ERR_INVALID);
        cr_node_report_dispose(&report);
    }
}

/* A merge patch that leaves a member out would leave the old value standing, in an object, too. */
static void test_an_empty_status_has_every_member(void **state)
{
    (void)state;
    struct cr_node_report empty = {0};
    cr_autofree char *text = encode_text(&empty);
    assert_string_equal(text,
                        "{\"seen\":null,\"agent\":null,\"expires\":null,\"pending\":0,\"restart\":{\"token\":null,"
                        "\"component\":null,\"phase\":\"None\",\"message\":null,\"started\":null,"
                        "\"finished\":null,\"process\":null},\"components\":[],\"files\":[],\"cas\":[],"
                        "\"tokens\":{\"known\":false,\"keys\":[]},\"troubles\":[]}");
}

/* Nothing that is broken is a reason to act, and a list that has lost a row does not look whole. */
static void test_what_is_broken_is_never_a_reason_to_act(void **state)
{
    (void)state;
    static const struct {
        const char *status;
        bool trouble;
    } cases[] = {
        {"{\"files\":7,\"components\":{},\"cas\":\"a\",\"troubles\":7,\"tokens\":[],\"restart\":7}", false},
        {"{\"restart\":{\"phase\":\"Restarting\",\"token\":\"t\"}}", false},
        {"{\"restart\":{\"phase\":\"Restarting\",\"component\":\"etcd\"}}", false},
        {"{\"restart\":{\"phase\":\"Begun\",\"token\":\"t\",\"component\":\"etcd\"}}", false},
        {"{\"tokens\":{\"known\":true,\"keys\":[{\"key\":\"short\",\"tokens\":1}]}}", false},
        {"{\"tokens\":{\"known\":true,\"keys\":[{}]}}", false},
        {"{\"files\":[{}]}", true},
        {"{\"files\":[7]}", true},
        {"{\"files\":[{\"component\":\"a\",\"parameter\":\"-b\",\"role\":\"x\",\"loaded\":\"RestartNeeded\"}]}", true},
        {"{\"files\":[{\"component\":\"a\",\"role\":\"opaque\",\"loaded\":\"RestartNeeded\"}]}", true},
        {"{\"components\":[{\"version\":\"1\"}]}", true},
        {"{\"troubles\":[7]}", true},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_node_report) struct cr_node_report report = {0};
        decode(test_json(cases[i].status), &report);
        assert_int_equal(report.files_len + report.components_len + report.tokens_len, 0);
        assert_int_equal(report.act.phase, CR_NODE_ACT_NONE);
        assert_false(report.tokens_known);
        assert_int_equal(report.troubles.len, cases[i].trouble);
    }
}

static void test_a_row_with_a_broken_fingerprint_is_unknown(void **state)
{
    (void)state;
    CR_CLEANUP(cr_node_report) struct cr_node_report report = {0};
    decode(test_json("{\"files\":[{\"component\":\"a\",\"parameter\":\"-b\",\"role\":\"opaque\",\"kind\":\"Leaf\","
                     "\"fingerprints\":[\"" HEX("0a") "\",\"zz\"],\"loaded\":\"RestartNeeded\",\"hasKnown\":true,"
                                                      "\"has\":[\"zz\"]}]}"),
           &report);
    assert_int_equal(report.files_len, 1);
    assert_int_equal(report.files[0].loaded, CR_NODE_LOADED_UNKNOWN);
    assert_int_equal(report.files[0].kind, CR_NODE_FILE_UNREAD);
    assert_int_equal(report.files[0].prints.len, 0);
    assert_false(report.files[0].has_known);
}

/* More than the schema allows would be refused as a whole, so nothing would be reported. */
static void test_what_is_too_much_is_cut_and_said(void **state)
{
    (void)state;
    enum { FILES = CR_NODE_REPORT_FILES_MAX + 1, TROUBLES = CR_NODE_REPORT_TROUBLES_MAX + 5, PRINTS = 20 };
    CR_CLEANUP(cr_node_report) struct cr_node_report report = {0};
    report.files = cr_calloc(FILES, sizeof *report.files);
    report.files_len = FILES;
    static char longest[3000];
    memset(longest, 'x', sizeof longest - 1);
    for (size_t i = 0; i < FILES; i++) {
        struct cr_node_file *file = &report.files[i];
        file->component = cr_strdup(longest);
        file->parameter = cr_strdup(longest);
        file->path = cr_strdup(longest);
        file->why = cr_strdup(longest);
        for (size_t n = 0; n < PRINTS; n++)
            cr_strvec_add(&file->prints, HEX("0a"));
    }
    for (size_t i = 0; i < TROUBLES; i++)
        cr_strvec_add(&report.troubles, longest);
    CR_CLEANUP(cr_json) struct cr_json *json = cr_node_report_encode_status(&report);
    const struct cr_json *file = cr_json_first(cr_json_get(json, "files"));
    assert_int_equal(cr_json_len(cr_json_get(json, "files")), CR_NODE_REPORT_FILES_MAX);
    assert_int_equal(cr_json_len(cr_json_get(file, "fingerprints")), CR_NODE_REPORT_PRINTS_MAX);
    assert_true(cr_json_bool(cr_json_get(file, "more"), false));
    assert_int_equal(strlen(cr_json_string(cr_json_get(file, "component"))), 128);
    assert_int_equal(strlen(cr_json_string(cr_json_get(file, "path"))), 512);
    const struct cr_json *troubles = cr_json_get(json, "troubles");
    assert_int_equal(cr_json_len(troubles), CR_NODE_REPORT_TROUBLES_MAX);
    const struct cr_json *last = cr_json_first(troubles);
    while (cr_json_next(last))
        last = cr_json_next(last);
    assert_string_equal(cr_json_string(last), "report: the node has more files than a report can list");
}

/* The report must not say that no token is signed by a key that is not in the list. */
static void test_more_keys_of_tokens_than_fit_are_not_known(void **state)
{
    (void)state;
    CR_CLEANUP(cr_node_report) struct cr_node_report report = {.tokens_known = true};
    report.tokens = cr_calloc(CR_NODE_REPORT_TOKENS_MAX + 1, sizeof *report.tokens);
    report.tokens_len = CR_NODE_REPORT_TOKENS_MAX + 1;
    CR_CLEANUP(cr_json) struct cr_json *json = cr_node_report_encode_status(&report);
    cr_autofree char *text = cr_json_print(cr_json_get(json, "tokens"));
    assert_string_equal(text, "{\"known\":false,\"keys\":[]}");
}

/* CAs that end later are not what a person waits for. */
static void test_pending_and_expires_are_those_of_the_rows(void **state)
{
    (void)state;
    CR_CLEANUP(cr_node_report) struct cr_node_report report = {0};
    add_files(&report);
    CR_CLEANUP(cr_json) struct cr_json *json = cr_node_report_encode_status(&report);
    assert_int_equal(cr_json_int(cr_json_get(json, "pending"), -1), 1);
    assert_string_equal(cr_json_string(cr_json_get(json, "expires")), "2026-11-21T06:10:26Z");
    report.files[1].loaded = CR_NODE_LOADED_NO;
    report.files[1].kind = CR_NODE_FILE_TRUST;
    CR_CLEANUP(cr_json) struct cr_json *other = cr_node_report_encode_status(&report);
    assert_int_equal(cr_json_int(cr_json_get(other, "pending"), -1), 2);
    assert_true(cr_json_is_null(cr_json_get(other, "expires")));
}

#define CHECK_WORDS(what, type, first, last)                                                                           \
    for (int i = (first); i <= (last); i++) {                                                                          \
        type value = (type)((last) + 1);                                                                               \
        assert_true(cr_node_##what##_parse(cr_node_##what##_name((type)i), &value));                                   \
        assert_int_equal(value, i);                                                                                    \
    }                                                                                                                  \
    assert_string_equal(cr_node_##what##_name((type)((last) + 1)), "")

static void test_words_are_read_as_they_are_written(void **state)
{
    (void)state;
    enum cr_node_loaded kept = CR_NODE_LOADED_SOON;
    CHECK_WORDS(file_kind, enum cr_node_file_kind, CR_NODE_FILE_UNREAD, CR_NODE_FILE_KEYS);
    CHECK_WORDS(loaded, enum cr_node_loaded, CR_NODE_LOADED_UNKNOWN, CR_NODE_LOADED_NO);
    CHECK_WORDS(evidence, enum cr_node_evidence, CR_NODE_EVIDENCE_NONE, CR_NODE_EVIDENCE_VERIFIED);
    CHECK_WORDS(act_phase, enum cr_node_act_phase, CR_NODE_ACT_NONE, CR_NODE_ACT_REFUSED);
    CHECK_WORDS(health, enum cr_node_health, CR_NODE_HEALTH_UNKNOWN, CR_NODE_HEALTH_FAILING);
    assert_false(cr_node_loaded_parse("loaded", &kept));
    assert_false(cr_node_loaded_parse(NULL, &kept));
    assert_int_equal(kept, CR_NODE_LOADED_SOON);
}

static void test_nodes_without_static_pods_are_renewed_less_often(void **state)
{
    (void)state;
    static char name[] = "kubelet";
    static char etcd[] = "etcd";
    static const struct {
        const char *rule;
        size_t components;
        char *second;
        enum cr_node_act_phase phase;
        bool quiet;
    } rows[] = {
        {"a kubelet alone", 1, NULL, CR_NODE_ACT_NONE, true},
        {"that was restarted", 1, NULL, CR_NODE_ACT_DONE, true},
        {"that has failed", 1, NULL, CR_NODE_ACT_FAILED, true},
        {"that is to be", 1, NULL, CR_NODE_ACT_WAITING, false},
        {"that is", 1, NULL, CR_NODE_ACT_RESTARTING, false},
        {"that has to prove itself", 1, NULL, CR_NODE_ACT_PROVING, false},
        {"a static pod beside it", 2, etcd, CR_NODE_ACT_NONE, false},
        {"nothing is known of what it has", 0, NULL, CR_NODE_ACT_NONE, false},
    };
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        struct cr_node_component components[] = {{.name = name}, {.name = rows[i].second}};
        const struct cr_node_report report = {
            .components = components, .components_len = rows[i].components, .act = {.phase = rows[i].phase}};
        if ((cr_node_report_renew_ms(&report) == CR_NODE_QUIET_RENEW_MS) != rows[i].quiet ||
            (cr_node_report_stale_ms(&report) == CR_NODE_QUIET_STALE_MS) != rows[i].quiet)
            fail_msg("%s", rows[i].rule);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field_is_written_as_the_file_says),
        cmocka_unit_test(test_encode_of_decode_is_the_same_text),
        cmocka_unit_test(test_the_object_around_it_is_read),
        cmocka_unit_test(test_half_an_order_is_none),
        cmocka_unit_test(test_what_is_no_report_is_refused),
        cmocka_unit_test(test_an_empty_status_has_every_member),
        cmocka_unit_test(test_what_is_broken_is_never_a_reason_to_act),
        cmocka_unit_test(test_a_row_with_a_broken_fingerprint_is_unknown),
        cmocka_unit_test(test_what_is_too_much_is_cut_and_said),
        cmocka_unit_test(test_more_keys_of_tokens_than_fit_are_not_known),
        cmocka_unit_test(test_pending_and_expires_are_those_of_the_rows),
        cmocka_unit_test(test_words_are_read_as_they_are_written),
        cmocka_unit_test(test_nodes_without_static_pods_are_renewed_less_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
