#include "pki/ca_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/err.h>

#include "base/clock.h"
#include "base/strings.h"
#include "support/issuing.h"
#include "support/testcerts.h"

enum { HOUR_S = 3600, DAY_S = 24 * HOUR_S };

#define AUTO_CERT    CR_CLEANUP(test_cert) struct test_cert *
#define AUTO_SET     CR_CLEANUP(cr_ca_set) struct cr_ca_set *
#define AUTO_BUF     CR_CLEANUP(cr_buf) struct cr_buf
#define make(...)    test_cert_new(&(struct test_cert_spec){__VA_ARGS__})
#define make_ca(...) make(.ca = true, __VA_ARGS__)

static void add(struct cr_ca_set *set, const char *text)
{
    struct cr_error err = {0};
    const struct cr_pem_input in = test_entry(text);
    if (!cr_ca_set_add(set, &in, NULL, &err))
        fail_msg("%s", err.text);
    assert_int_equal(ERR_peek_error(), 0);
}

static size_t place_of(const struct cr_ca_set *set, const struct test_cert *cert)
{
    char fingerprint[CR_SHA256_HEX];
    cr_x509_fingerprint(cert->x509, fingerprint);
    return cr_ca_set_find(set, fingerprint);
}

static void verify(const struct cr_ca_set *set, const char *chain, struct cr_chain_facts *facts, bool *verifies)
{
    struct cr_error err = {0};
    const struct cr_pem_input in = test_entry(chain);
    if (!cr_ca_set_verify(set, &in, cr_clock_wall_ms(), facts, verifies, &err))
        fail_msg("%s", err.text);
    assert_int_equal(ERR_peek_error(), 0);
}

static void each_is_there_once_the_newest_first(void **state)
{
    (void)state;
    AUTO_CERT old = make_ca(.cn = "old", .from_s = -3 * DAY_S);
    AUTO_CERT fresh = make_ca(.cn = "new", .from_s = -DAY_S);
    AUTO_CERT middle = make_ca(.cn = "middle", .from_s = -2 * DAY_S, .issuer = fresh);
    AUTO_SET set = cr_ca_set_new();
    cr_autofree char *first = test_concat("# by hand\r\n", old->cert_pem, middle->cert_pem, old->cert_pem, NULL);
    cr_autofree char *second = test_concat(fresh->cert_pem, old->cert_pem, NULL);
    add(set, first);
    add(set, second);
    cr_ca_set_sort(set);
    assert_int_equal(cr_ca_set_len(set), 3);
    assert_int_equal(place_of(set, fresh), 0);
    assert_int_equal(place_of(set, middle), 1);
    assert_int_equal(place_of(set, old), 2);
    assert_string_equal(cr_ca_set_facts(set, 0)->subject, "CN=new");
    assert_true(cr_ca_set_facts(set, 0)->root);
    assert_false(cr_ca_set_facts(set, 1)->root);
    assert_int_equal(cr_ca_set_facts(set, 2)->not_before_ms, cr_x509_not_before_ms(old->x509));
    assert_int_equal(cr_ca_set_facts(set, 2)->not_after_ms, cr_x509_not_after_ms(old->x509));
}

/* What a user has put into a published bundle is none of ours. */
static void only_those_that_are_known_are_taken(void **state)
{
    (void)state;
    char fingerprint[CR_SHA256_HEX];
    struct cr_error err = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec known = {0};
    AUTO_CERT ours = make_ca(.cn = "ours");
    AUTO_CERT planted = make_ca(.cn = "planted");
    AUTO_SET set = cr_ca_set_new();
    cr_x509_fingerprint(ours->x509, fingerprint);
    cr_strvec_add(&known, fingerprint);
    cr_autofree char *text = test_concat(planted->cert_pem, ours->cert_pem, NULL);
    const struct cr_pem_input in = test_entry(text);
    assert_true(cr_ca_set_add(set, &in, &known, &err));
    assert_int_equal(cr_ca_set_len(set), 1);
    assert_int_equal(place_of(set, ours), 0);
    bool has[1];
    assert_false(cr_ca_set_compare(set, &in, has));
    assert_true(has[0]);
}

static void a_text_that_cannot_be_read_adds_nothing(void **state)
{
    (void)state;
    struct cr_error err = {0};
    AUTO_CERT ca = make_ca(.cn = "ca");
    AUTO_SET set = cr_ca_set_new();
    cr_autofree char *text = test_concat(ca->cert_pem, "-----BEGIN CERTIFICATE-----\nAAAA\n", NULL);
    const struct cr_pem_input in = test_entry(text);
    assert_false(cr_ca_set_add(set, &in, NULL, &err));
    assert_int_equal(err.kind, CR_ERR_INVALID);
    assert_int_equal(cr_ca_set_len(set), 0);
}

static void a_chain_verifies_with_one_alone_trusted_and_what_it_brings(void **state)
{
    (void)state;
    AUTO_CERT old = make_ca(.cn = "old", .from_s = -3 * DAY_S);
    AUTO_CERT fresh = make_ca(.cn = "new", .from_s = -2 * DAY_S);
    AUTO_CERT cross = make_ca(.cn = "new", .key_of = fresh, .issuer = old);
    AUTO_CERT expired = make_ca(.cn = "expired", .from_s = -9 * DAY_S, .until_s = -DAY_S);
    AUTO_CERT leaf = make(.cn = "web", .issuer = fresh);
    AUTO_CERT early = make(.cn = "web", .issuer = old, .from_s = HOUR_S);
    AUTO_CERT late = make(.cn = "web", .issuer = old, .from_s = -2 * DAY_S, .until_s = -DAY_S);
    AUTO_CERT lost = make(.cn = "web", .issuer = expired, .from_s = -2 * DAY_S);
    cr_autofree char *crossed = test_concat(leaf->cert_pem, cross->cert_pem, NULL);
    AUTO_SET set = cr_ca_set_new();
    cr_autofree char *all = test_concat(fresh->cert_pem, old->cert_pem, expired->cert_pem, NULL);
    add(set, all);
    cr_ca_set_sort(set);
    const struct {
        const char *rule, *chain;
        bool fresh, old, expired, known;
    } cases[] = {
        {"by its own CA", leaf->cert_pem, true, false, false, true},
        {"with the cross-certificate by both", crossed, true, true, false, true},
        {"of an issuer's clock ahead of ours", early->cert_pem, false, true, false, true},
        {"one that has expired by none", late->cert_pem, false, false, false, true},
        {"nor one of an expired CA, which is known all the same", lost->cert_pem, false, false, false, true},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        bool verifies[3];
        struct cr_chain_facts facts;
        const struct cr_pem_input in = test_entry(cases[i].chain);
        verify(set, cases[i].chain, &facts, verifies);
        if (verifies[place_of(set, fresh)] != cases[i].fresh || verifies[place_of(set, old)] != cases[i].old ||
            verifies[place_of(set, expired)] != cases[i].expired || cr_ca_set_knows_issuer(set, &in) != cases[i].known)
            fail_msg("%s", cases[i].rule);
    }
}

static void a_stranger_verifies_against_none_and_is_not_known(void **state)
{
    (void)state;
    AUTO_CERT ca = make_ca(.cn = "ca");
    AUTO_CERT namesake = make_ca(.cn = "ca");
    AUTO_CERT leaf = make(.cn = "web", .issuer = namesake);
    AUTO_SET set = cr_ca_set_new();
    add(set, ca->cert_pem);
    bool verifies[1] = {true};
    struct cr_chain_facts facts;
    char fingerprint[CR_SHA256_HEX];
    verify(set, leaf->cert_pem, &facts, verifies);
    assert_false(verifies[0]);
    cr_x509_fingerprint(leaf->x509, fingerprint);
    assert_string_equal(facts.fingerprint, fingerprint);
    assert_int_equal(facts.not_after_ms, cr_x509_not_after_ms(leaf->x509));
    const struct cr_pem_input in = test_entry(leaf->cert_pem);
    assert_false(cr_ca_set_knows_issuer(set, &in));
    const struct cr_pem_input garbage = test_entry("garbage");
    struct cr_error err = {0};
    assert_false(cr_ca_set_verify(set, &garbage, 0, &facts, verifies, &err));
    assert_false(cr_ca_set_knows_issuer(set, &garbage));
}

static void a_bundle_is_the_same_bytes_and_compares_as_such(void **state)
{
    (void)state;
    struct cr_error err = {0};
    AUTO_CERT old = make_ca(.cn = "old", .from_s = -2 * DAY_S);
    AUTO_CERT fresh = make_ca(.cn = "new", .from_s = -DAY_S);
    AUTO_SET set = cr_ca_set_new();
    cr_autofree char *both = test_concat("# old\n", old->cert_pem, "# new\n", fresh->cert_pem, NULL);
    cr_autofree char *want = test_concat(fresh->cert_pem, old->cert_pem, NULL);
    add(set, both);
    cr_ca_set_sort(set);
    AUTO_BUF text = {0};
    assert_true(cr_ca_set_write(set, (const size_t[]){0, 1}, 2, &text, &err));
    assert_string_equal(cr_buf_text(&text), want);
    cr_autofree char *twice = test_concat(want, want, NULL);
    const struct {
        const char *rule, *text;
        bool exact, fresh, old;
    } cases[] = {
        {"all of them", want, true, true, true},           {"in another text", both, true, true, true},
        {"one of them", old->cert_pem, true, false, true}, {"each twice", twice, false, true, true},
        {"no bundle", "nothing", false, false, false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        bool has[2];
        const struct cr_pem_input in = test_entry(cases[i].text);
        if (cr_ca_set_compare(set, &in, has) != cases[i].exact || has[0] != cases[i].fresh || has[1] != cases[i].old)
            fail_msg("%s", cases[i].rule);
    }
}

static void the_root_above_is_trusted_for_a_ca_or_the_ca_itself(void **state)
{
    (void)state;
    AUTO_CERT root = make_ca(.cn = "root");
    AUTO_CERT middle = make_ca(.cn = "middle", .issuer = root);
    AUTO_CERT low = make_ca(.cn = "low", .issuer = middle);
    AUTO_CERT other = make_ca(.cn = "other");
    cr_autofree char *whole = test_concat(low->cert_pem, middle->cert_pem, root->cert_pem, NULL);
    cr_autofree char *part = test_concat(low->cert_pem, middle->cert_pem, NULL);
    cr_autofree char *roots = test_concat(other->cert_pem, root->cert_pem, NULL);
    const struct {
        const char *rule, *chain, *trust;
        const struct test_cert *want;
    } cases[] = {
        {"a root", root->cert_pem, NULL, root},
        {"the root at the top of the chain", whole, other->cert_pem, root},
        {"the root in the trust", part, roots, root},
        {"no root that fits", part, other->cert_pem, middle},
        {"nothing above", low->cert_pem, "garbage", low},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        char anchor[CR_SHA256_HEX];
        char want[CR_SHA256_HEX];
        AUTO_SET set = cr_ca_set_new();
        const struct cr_pem_input chain = test_entry(cases[i].chain);
        const struct cr_pem_input trust = test_entry(cases[i].trust);
        assert_true(cr_ca_set_add_anchor(set, &chain, &trust, anchor, &err));
        cr_x509_fingerprint(cases[i].want->x509, want);
        if (strcmp(anchor, want) != 0 || cr_ca_set_len(set) != 1 || cr_ca_set_find(set, want) != 0)
            fail_msg("%s", cases[i].rule);
    }
}

/* --- the order of a bundle --- */

struct order_row {
    const char *rule;
    const struct test_cert *published[2]; /* each in a text of its own; NULL: none */
    const struct test_cert *must, *spare;
    enum cr_bundle_proof proof;
    size_t len;
    const char *leaf, *client;
};

static void ask_for_order(const struct cr_ca_set *set, const struct order_row *row, const struct cr_bundle_leaf *leaves,
                          size_t leaves_len)
{
    struct cr_error err = {0};
    struct cr_bundle_finding finding;
    struct cr_pem_input published[2];
    bool must[] = {false, false};
    bool spare[] = {false, false};
    const size_t preferred[] = {0, 1};
    size_t order[2];
    size_t len = 0;
    size_t texts = 0;
    for (; texts < 2 && row->published[texts]; texts++)
        published[texts] = test_entry(row->published[texts]->cert_pem);
    must[place_of(set, row->must)] = true;
    if (row->spare)
        spare[place_of(set, row->spare)] = true;
    assert_true(cr_ca_set_arrange(set,
                                  &(struct cr_ca_arrangement){.must = must,
                                                              .spare = spare,
                                                              .preferred = preferred,
                                                              .published = published,
                                                              .published_len = texts,
                                                              .leaves = leaves,
                                                              .leaves_len = leaves_len},
                                  cr_clock_wall_ms(), order, &len, &finding, &err));
    if (finding.proof != row->proof || len != row->len || !cr_streq(finding.leaf, row->leaf) ||
        !cr_streq(finding.client, row->client))
        fail_msg("%s: %d, %zu, %s, %s", row->rule, finding.proof, len, cr_or_empty(finding.leaf),
                 cr_or_empty(finding.client));
}

static void an_order_serves_all_that_is_published_or_names_who_would_lose(void **state)
{
    (void)state;
    AUTO_CERT old = make_ca(.cn = "old", .from_s = -2 * DAY_S);
    AUTO_CERT fresh = make_ca(.cn = "new", .from_s = -DAY_S);
    AUTO_CERT of_old = make(.cn = "web", .issuer = old);
    AUTO_CERT of_fresh = make(.cn = "api", .issuer = fresh);
    const struct cr_bundle_leaf leaves[] = {{.name = "only remembered"},
                                            {.name = "api", .chain = test_entry(of_fresh->cert_pem)},
                                            {.name = "web", .chain = test_entry(of_old->cert_pem)}};
    const struct order_row rows[] = {
        {"the old one is published nowhere", {fresh}, fresh, NULL, CR_BUNDLE_PROVED, 1, NULL, NULL},
        {"in the second place", {fresh, old}, fresh, NULL, CR_BUNDLE_WOULD_CUT_OFF, 0, "web", "OpenSSL"},
        {"the same, and it may stay", {fresh, old}, fresh, old, CR_BUNDLE_PROVED, 2, NULL, NULL},
        {"in the only one", {old}, fresh, NULL, CR_BUNDLE_WOULD_CUT_OFF, 0, "web", "OpenSSL"},
    };
    AUTO_SET set = cr_ca_set_new();
    add(set, old->cert_pem);
    add(set, fresh->cert_pem);
    cr_ca_set_sort(set);
    for (size_t i = 0; i < cr_array_len(rows); i++)
        ask_for_order(set, &rows[i], leaves, cr_array_len(leaves));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_there_once_the_newest_first),
        cmocka_unit_test(only_those_that_are_known_are_taken),
        cmocka_unit_test(a_text_that_cannot_be_read_adds_nothing),
        cmocka_unit_test(a_chain_verifies_with_one_alone_trusted_and_what_it_brings),
        cmocka_unit_test(a_stranger_verifies_against_none_and_is_not_known),
        cmocka_unit_test(a_bundle_is_the_same_bytes_and_compares_as_such),
        cmocka_unit_test(an_order_serves_all_that_is_published_or_names_who_would_lose),
        cmocka_unit_test(the_root_above_is_trusted_for_a_ca_or_the_ca_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
