#include "cluster/secret_refs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "support/yamltext.h"

/* secrets: of a policy in ns. */
static void name(struct cr_secret_refs *refs, const char *secrets)
{
    cr_autofree char *text = cr_asprintf("{metadata: {name: p, namespace: ns}, spec: {secrets: [%s]}}", secrets);
    CR_CLEANUP(cr_json) struct cr_json *json = test_yaml(text);
    struct cr_error err = {0};
    CR_CLEANUP(cr_policy) struct cr_policy *policy = cr_policy_decode(json, &err);
    if (!policy)
        fail_msg("%s", err.text);
    cr_secret_refs_add(refs, policy);
}

static void a_way_has_all_key_names(void **state)
{
    (void)state;
    CR_CLEANUP(cr_secret_refs) struct cr_secret_refs *refs = cr_secret_refs_new();
    name(refs, "{name: web, keys: {certificate: a, privateKey: b, trust: c, opaque: [d, e]}}, {name: other}");
    CR_CLEANUP(cr_secret_ways) struct cr_secret_ways ways = {0};
    cr_secret_refs_ways(refs, "ns/web", &ways);
    assert_int_equal(ways.len, 1);
    assert_string_equal(ways.items[0].certificate, "a");
    assert_string_equal(ways.items[0].private_key, "b");
    assert_string_equal(ways.items[0].trust, "c");
    assert_true(ways.items[0].has_opaque && ways.items[0].opaque.len == 2);
    assert_string_equal(ways.items[0].opaque.items[1], "e");
    assert_false(ways.has_digest_key);
}

static void only_what_is_named_has_ways(void **state)
{
    (void)state;
    CR_CLEANUP(cr_secret_refs) struct cr_secret_refs *refs = cr_secret_refs_new();
    name(refs, "{name: web}, {name: other}");
    cr_secret_refs_remove(refs, "ns/other");
    static const struct {
        const char *key;
        size_t ways;
    } cases[] = {{"ns/web", 1}, {"ns/other", 0}, {"ns/we", 0}, {"other/web", 0}};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_secret_ways) struct cr_secret_ways ways = {0};
        cr_secret_refs_ways(refs, cases[i].key, &ways);
        if (ways.len != cases[i].ways)
            fail_msg("%s has %zu", cases[i].key, ways.len);
    }
}

/* Trust names of web's ways, in their order. */
static char *order_of(struct cr_secret_refs *refs)
{
    CR_CLEANUP(cr_secret_ways) struct cr_secret_ways ways = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    cr_secret_refs_ways(refs, "ns/web", &ways);
    for (size_t i = 0; i < ways.len; i++)
        cr_strvec_add(&names, ways.items[i].trust);
    return cr_strvec_join(&names, " ");
}

static void of_too_many_those_asked_for_last_stay(void **state)
{
    (void)state;
    enum { MOST = 16 };
    CR_CLEANUP(cr_secret_refs) struct cr_secret_refs *refs = cr_secret_refs_new();
    for (int i = 0; i < MOST; i++) {
        cr_autofree char *way = cr_asprintf("{name: web, keys: {trust: t%d}}", i);
        name(refs, way);
    }
    name(refs, "{name: web, keys: {trust: t0}}"); /* once more: it is the last now, and none goes */
    cr_autofree char *full = order_of(refs);
    assert_string_equal(full, "t1 t2 t3 t4 t5 t6 t7 t8 t9 t10 t11 t12 t13 t14 t15 t0");
    name(refs, "{name: web, keys: {trust: new}}");
    name(refs, "{name: web, keys: {trust: new}}");
    cr_autofree char *beyond = order_of(refs);
    assert_string_equal(beyond, "t2 t3 t4 t5 t6 t7 t8 t9 t10 t11 t12 t13 t14 t15 t0 new");
}

static void the_key_of_digests_comes_with_the_ways(void **state)
{
    (void)state;
    static const unsigned char key[CR_VIEW_KEY] = "0123456789abcdef0123456789abcde";
    CR_CLEANUP(cr_secret_refs) struct cr_secret_refs *refs = cr_secret_refs_new();
    name(refs, "{name: web}");
    cr_secret_refs_use_key(refs, key);
    CR_CLEANUP(cr_secret_ways) struct cr_secret_ways ways = {0};
    cr_secret_refs_ways(refs, "ns/web", &ways);
    assert_true(ways.has_digest_key);
    assert_memory_equal(ways.digest_key, key, sizeof key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_way_has_all_key_names),
        cmocka_unit_test(only_what_is_named_has_ways),
        cmocka_unit_test(of_too_many_those_asked_for_last_stay),
        cmocka_unit_test(the_key_of_digests_comes_with_the_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
