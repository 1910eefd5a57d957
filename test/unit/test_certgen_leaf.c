#include "certgen/leaf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/strings.h"

/* A CA that was published for leaves that can never follow would stand in all bundles for nothing. */
static void there_is_no_ca_for_a_leaf_that_cannot_be_issued(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"secrets: [{name: a, dnsNames: [a.shop]}, {name: hmac, opaque: {key: k}}]", NULL},
        {"secrets: [{name: a, commonName: a, usages: [client]}]", NULL},
        {"secrets: [{name: a, dnsNames: [a.shop]}, {name: b}]", "a leaf for Secret b: a server's certificate needs"},
        {"secrets: [{name: a, dnsNames: [a.shop]}, {name: b, dnsNames: [\"b shop\"]}]", "a leaf for Secret b"},
        {"secrets: [{name: a, ipAddresses: [300.1.1.1]}]", "a leaf for Secret a"},
    };
    const struct cr_certgen_place place = {.ns = "shop", .cluster_domain = "cluster.local"};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_certgen_set)
        struct cr_certgen_set *set = cr_certgen_set_read("f", cases[i].text, strlen(cases[i].text), &place, &err);
        if (!set)
            fail_msg("%s: %s", cases[i].text, err.text);
        CR_CLEANUP(cr_private_key) struct cr_private_key *key = NULL;
        CR_CLEANUP(cr_authority)
        struct cr_authority *authority = cr_certgen_authority_new(set, cr_clock_wall_ms(), &key, &err);
        assert_int_equal(authority == NULL, cases[i].words != NULL);
        assert_int_equal(key == NULL, authority == NULL);
        if (cases[i].words && !strstr(err.text, cases[i].words))
            fail_msg("%s: want \"%s\", got: %s", cases[i].text, cases[i].words, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_no_ca_for_a_leaf_that_cannot_be_issued),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
