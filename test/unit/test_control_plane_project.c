#include "controlplane/controller/control_plane_project.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "codec/base64.h"
#include "support/jsontext.h"
#include "support/testcerts.h"
#include "support/testjwt.h"

/* --- objects --- */

typedef bool (*project_fn)(void *arg, struct cr_json *json, struct cr_snapshot *snapshot);

static struct cr_snapshot *project(struct cr_json *json, project_fn fn)
{
    struct cr_snapshot *snapshot = cr_snapshot_new(json);
    assert_true(fn(NULL, json, snapshot));
    return snapshot;
}

static struct cr_json *object(const char *kind)
{
    cr_autofree char *text =
        cr_asprintf("{\"kind\":\"%s\",\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"u\","
                    "\"resourceVersion\":\"7\",\"labels\":{\"l\":\"1\"},\"annotations\":{\"token\":\"x\"}}}",
                    kind);
    return test_json(text);
}

static void expect_identity_alone(const struct cr_snapshot *snapshot)
{
    cr_autofree char *text = cr_json_print(snapshot->json);
    assert_string_equal(text, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"u\","
                              "\"resourceVersion\":\"7\"}}");
}

static void of_a_bundle_sorted_fingerprints_are_kept(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *one = test_cert_new(&(struct test_cert_spec){.cn = "one", .ca = true});
    CR_CLEANUP(test_cert) struct test_cert *two = test_cert_new(&(struct test_cert_spec){.cn = "two", .ca = true});
    cr_autofree char *bundle = test_concat(one->cert_pem, two->cert_pem, one->cert_pem, NULL);
    struct cr_json *json = object("ConfigMap");
    cr_json_set_string(cr_json_object_in(json, "data"), "ca.crt", bundle);
    cr_json_set(json, "immutable", test_json("true"));
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = project(json, cr_control_plane_project_root_ca);
    const struct cr_kept_trust *kept = snapshot->extra;
    assert_true(kept->readable && kept->immutable);
    assert_int_equal(kept->prints.len, 2);
    assert_true(strcmp(kept->prints.items[0], kept->prints.items[1]) < 0);
    assert_null(kept->key);
    expect_identity_alone(snapshot);
}

static void a_bundle_that_cannot_be_read_is_none(void **state)
{
    (void)state;
    static const char *const texts[] = {NULL, "", "no PEM",
                                        "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----"};
    for (size_t i = 0; i < cr_array_len(texts); i++) {
        struct cr_json *json = object("ConfigMap");
        cr_json_set_string(cr_json_object_in(json, "data"), "ca.crt", texts[i]);
        CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = project(json, cr_control_plane_project_root_ca);
        const struct cr_kept_trust *kept = snapshot->extra;
        assert_false(kept->readable);
        assert_int_equal(kept->prints.len, 0);
    }
}

static void put(struct cr_json *secret, const char *key, const char *value)
{
    cr_autofree char *text = cr_base64_encode(value, strlen(value));
    cr_json_set_string(cr_json_object_in(secret, "data"), key, text);
}

static void of_a_token_secret_nothing_secret_is_kept(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *ca = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
    cr_autofree char *token =
        test_jwt("{\"alg\":\"RS256\",\"kid\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}", "{}");
    struct cr_json *json = object("Secret");
    put(json, "ca.crt", ca->cert_pem);
    put(json, "token", token);
    put(json, "namespace", "b");
    cr_json_set_string(cr_json_edit(json, "metadata"), "deletionTimestamp", "2026-11-21T06:10:21Z");
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = project(json, cr_control_plane_project_token_secret);
    const struct cr_kept_trust *kept = snapshot->extra;
    assert_true(kept->readable);
    assert_int_equal(kept->prints.len, 1);
    assert_true(kept->deleting);
    assert_string_equal(kept->key, "0000000000000000000000000000000000000000000000000000000000000000");
    expect_identity_alone(snapshot);
}

static void of_what_is_too_large_the_name_is_kept(void **state)
{
    (void)state;
    struct cr_json *json = test_json("{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"}}");
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_snapshot_new(json);
    cr_control_plane_project_unreadable(NULL, snapshot);
    const struct cr_kept_trust *kept = snapshot->extra;
    assert_true(kept->unreadable);
    assert_false(kept->readable || kept->has_token || kept->immutable);
    assert_string_equal(cr_json_string_at(snapshot->json, "metadata", "namespace"), "b");
}

/* As between the removal of its token and the next one. */
static void a_token_secret_without_a_token_has_no_key(void **state)
{
    (void)state;
    CR_CLEANUP(cr_snapshot)
    struct cr_snapshot *snapshot = project(object("Secret"), cr_control_plane_project_token_secret);
    const struct cr_kept_trust *kept = snapshot->extra;
    assert_false(kept->readable);
    assert_null(kept->key);
}

static void a_node_shows_that_it_is_of_the_control_plane(void **state)
{
    (void)state;
    struct cr_json *json = object("Node");
    cr_json_set_string(cr_json_object_in(cr_json_edit(json, "metadata"), "labels"),
                       "node-role.kubernetes.io/control-plane", "");
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *labelled = project(json, cr_control_plane_project_node);
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *other = project(object("Node"), cr_control_plane_project_node);
    assert_non_null(labelled->extra);
    assert_null(other->extra);
}

static void a_namespace_shows_that_it_is_being_deleted(void **state)
{
    (void)state;
    struct cr_json *json = object("Namespace");
    CR_CLEANUP(cr_snapshot)
    struct cr_snapshot *stays = project(object("Namespace"), cr_control_plane_project_namespace);
    cr_json_set_string(cr_json_edit(json, "metadata"), "deletionTimestamp", "2026-11-21T06:10:21Z");
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *goes = project(json, cr_control_plane_project_namespace);
    assert_null(stays->extra);
    assert_non_null(goes->extra);
    expect_identity_alone(goes);
}

/* --- reports --- */

static struct cr_snapshot *report(const char *rest)
{
    cr_autofree char *text = cr_asprintf(
        "{\"kind\":\"NodeCertificateReport\",\"metadata\":{\"name\":\"node-1\",\"resourceVersion\":\"7\"},%s}", rest);
    return project(test_json(text), cr_control_plane_project_report);
}

static const char *content_of(const struct cr_snapshot *snapshot)
{
    return ((const struct cr_kept_report *)snapshot->extra)->content;
}

#define STATUS(seen, agent) "\"status\":{\"seen\":\"" seen "\",\"agent\":\"" agent "\"}"
#define ORDER(token)        "\"spec\":{\"restart\":{\"token\":\"" token "\",\"component\":\"etcd\"}},"

static void that_an_agent_has_looked_again_is_no_other_content(void **state)
{
    (void)state;
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *first = report(STATUS("2026-11-21T06:10:21Z", "1"));
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *later = report(STATUS("2026-11-21T06:10:41Z", "1"));
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *other = report(STATUS("2026-11-21T06:10:21Z", "2"));
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *order = report(ORDER("aa") STATUS("2026-11-21T06:10:21Z", "1"));
    const struct cr_kept_report *kept = later->extra;
    assert_int_equal(kept->report.seen_ms, INT64_C(1795241441000));
    assert_string_equal(kept->report.node, "node-1");
    assert_string_equal(content_of(first), content_of(later));
    assert_string_not_equal(content_of(first), content_of(other));
    assert_string_not_equal(content_of(first), content_of(order));
}

static void what_is_no_report_is_not_kept(void **state)
{
    (void)state;
    struct cr_json *json = object("Node");
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_snapshot_new(json);
    assert_false(cr_control_plane_project_report(NULL, json, snapshot));
    assert_null(snapshot->extra);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_bundle_sorted_fingerprints_are_kept),
        cmocka_unit_test(a_bundle_that_cannot_be_read_is_none),
        cmocka_unit_test(of_a_token_secret_nothing_secret_is_kept),
        cmocka_unit_test(of_what_is_too_large_the_name_is_kept),
        cmocka_unit_test(a_token_secret_without_a_token_has_no_key),
        cmocka_unit_test(a_node_shows_that_it_is_of_the_control_plane),
        cmocka_unit_test(a_namespace_shows_that_it_is_being_deleted),
        cmocka_unit_test(that_an_agent_has_looked_again_is_no_other_content),
        cmocka_unit_test(what_is_no_report_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
