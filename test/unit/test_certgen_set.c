#include "certgen/set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"
#include "certgen/profiles.h"
#include "pki/issue.h"

static const struct cr_certgen_place place = {.ns = "shop", .cluster_domain = "example.org", .name_suffix = "-v2"};

static void what_is_not_said_has_defaults(void **state)
{
    (void)state;
    static const char text[] = "secrets: [{name: web, dnsNames: [\"web.${namespace}.svc.${clusterDomain}\"]},\n"
                               "          {name: cookie, opaque: {key: hmac}}]";
    struct cr_error err = {0};
    CR_CLEANUP(cr_certgen_set)
    struct cr_certgen_set *set = cr_certgen_set_read("mesh", text, strlen(text), &place, &err);
    if (!set)
        fail_msg("%s", err.text);
    assert_string_equal(set->common_name, "mesh");
    assert_int_equal(set->lifetime_ms, INT64_C(365) * 24 * 3600 * 1000);
    assert_int_equal(set->key.algorithm, CR_KEY_ECDSA);
    assert_int_equal(set->secrets_len, 2);
    assert_string_equal(set->secrets[0].name, "web-v2");
    assert_string_equal(set->secrets[0].dns_names.items[0], "web.shop.svc.example.org");
    assert_int_equal(set->secrets[0].usages, CR_LEAF_SERVER | CR_LEAF_CLIENT);
    assert_null(set->secrets[0].opaque_key);
    assert_string_equal(set->secrets[1].name, "cookie-v2");
    assert_string_equal(set->secrets[1].opaque_key, "hmac");
    assert_int_equal(set->secrets[1].opaque_bytes, 32);
    assert_null(set->webhook);
    assert_int_equal(set->restarts.len, 0);
    assert_true(cr_certgen_set_has_leaves(set));
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"[]", "it must be a mapping"},
        {"a: [", "not YAML"},
        {"{}", "secrets"},
        {"secrets: []", "there is none"},
        {"secrets: [{dnsNames: [a]}]", "secrets[0].name"},
        {"secrets: [{name: A}]", "'A-v2' is no name of an object"},
        {"secrets: [{name: a}, {name: a}]", "'a-v2' stands twice"},
        {"secrets: [{name: a, dnsName: b}]", "secrets[0].dnsName: there is no such field"},
        {"secrets: [{name: a, usages: [both]}]", "neither server nor client"},
        {"secrets: [{name: a, dnsNames: [\"a.${ns}\"]}]", "only ${namespace} and ${clusterDomain} are replaced"},
        {"secrets: [{name: a, opaque: {key: k, bytes: 8}}]", "secrets[0].opaque.bytes"},
        {"secrets: [{name: a, opaque: {key: k}, commonName: c}]", "secrets[0].commonName: there is no such field"},
        {"secrets: [{name: a, opaque: {key: ../k}}]", "secrets[0].opaque.key: '../k' is no name of a Secret's entry"},
        {"secrets: [{name: a, opaque: {key: ..data}}]", "'..data' is no name of a Secret's entry"},
        {"secrets: [{name: a, opaque: {key: .}}]", "'.' is no name of a Secret's entry"},
        {"secrets: [{name: a}]\nlifetime: 5m", "lifetime"},
        {"secrets: [{name: a}]\nprivateKey: {algorithm: DSA}", "privateKey.algorithm"},
        {"secrets: [{name: a}]\nlabels: {a: 1}", "labels.a must be a string"},
        {"secrets: [{name: a}]\nrestart: [\"a/b\"]", "restart: 'a/b' is no name"},
        {"secrets: [{name: a}]\nwebhook: {name: w, secretName: b}", "'b' is none of the secrets with a leaf"},
        {"secrets: [{name: a, opaque: {key: k}}]\nwebhook: {name: w, secretName: a}",
         "none of the secrets with a leaf"},
        {"secrets: [{name: a}]\nsecret: []", "secret: there is no such field"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_certgen_set)
        struct cr_certgen_set *set = cr_certgen_set_read("f", cases[i].text, strlen(cases[i].text), &place, &err);
        assert_null(set);
        assert_int_equal(err.kind, CR_ERR_INVALID);
        if (!strstr(err.text, cases[i].words))
            fail_msg("%s: want \"%s\", got: %s", cases[i].text, cases[i].words, err.text);
    }
}

static void each_profile_can_be_read(void **state)
{
    (void)state;
    assert_int_equal(cr_certgen_profiles_len, 2);
    assert_non_null(cr_certgen_profile_find("contour"));
    assert_null(cr_certgen_profile_find("contou"));
    assert_null(cr_certgen_profile_find("contour.yaml"));
    for (size_t i = 0; i < cr_certgen_profiles_len; i++) {
        const struct cr_certgen_profile *profile = &cr_certgen_profiles[i];
        struct cr_error err = {0};
        CR_CLEANUP(cr_certgen_set)
        struct cr_certgen_set *set = cr_certgen_set_read(profile->name, profile->text, *profile->len, &place, &err);
        if (!set)
            fail_msg("%s", err.text);
        assert_true(cr_certgen_set_has_leaves(set));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_said_has_defaults),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(each_profile_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
