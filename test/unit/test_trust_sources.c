#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "policy/controller/trust_sources.h"
#include "support/testcerts.h"

enum { HOUR_S = 3600 };

#define AUTO_CERT    CR_CLEANUP(test_cert) struct test_cert *
#define make(...)    test_cert_new(&(struct test_cert_spec){__VA_ARGS__})
#define make_ca(...) make(.ca = true, __VA_ARGS__)

static struct cr_entry entry(const char *text)
{
    struct cr_entry entry = {.found = text != NULL};
    cr_buf_puts(&entry.bytes, cr_or_empty(text));
    return entry;
}

static void add(struct cr_trust_sources *sources, const char *secret, const char *trust, const char *chain)
{
    CR_CLEANUP(cr_entry) struct cr_entry trust_entry = entry(trust);
    CR_CLEANUP(cr_entry) struct cr_entry chain_entry = entry(chain);
    cr_trust_sources_add(sources, secret, &trust_entry, &chain_entry);
}

/* The bundle of the sources and what the target has (NULL: nothing), and the gaps: "Secret a, Secret b". */
static void expect(const struct cr_trust_sources *sources, const char *published, size_t retain, const char *want,
                   const char *gaps)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_bundle) struct cr_bundle made = {0};
    const struct cr_pem_input previous = {published, published ? strlen(published) : 0};
    if (!cr_trust_sources_make(sources, &previous, retain, cr_clock_wall_ms(), &made, &err))
        fail_msg("%s", err.text);
    cr_autofree char *names = cr_strvec_join(&made.gaps, ", ");
    assert_string_equal(made.pem, want);
    assert_string_equal(names, gaps);
    /* Published, it is what comes of it again: nothing is written twice. */
    CR_CLEANUP(cr_bundle) struct cr_bundle again = {0};
    const struct cr_pem_input same = {made.pem, strlen(made.pem)};
    assert_true(cr_trust_sources_make(sources, &same, retain, cr_clock_wall_ms(), &again, &err));
    assert_string_equal(again.pem, made.pem);
    assert_int_equal(again.gaps.len, 0);
}

static void the_new_ca_comes_before_the_published_one(void **state)
{
    (void)state;
    AUTO_CERT old = make_ca(.cn = "old");
    AUTO_CERT fresh = make_ca(.cn = "new");
    AUTO_CERT leaf = make(.cn = "web", .issuer = fresh);
    CR_CLEANUP(cr_trust_sources) struct cr_trust_sources sources = {0};
    add(&sources, "web-tls", fresh->cert_pem, leaf->cert_pem);
    cr_autofree char *both = test_concat(fresh->cert_pem, old->cert_pem, NULL);
    expect(&sources, NULL, 1, fresh->cert_pem, "");
    expect(&sources, old->cert_pem, 1, both, "Secret web-tls");
    expect(&sources, old->cert_pem, 0, fresh->cert_pem, "Secret web-tls");
    expect(&sources, both, 1, both, "");
}

static void the_cas_of_all_secrets_stay(void **state)
{
    (void)state;
    AUTO_CERT a = make_ca(.cn = "a");
    AUTO_CERT b = make_ca(.cn = "b");
    CR_CLEANUP(cr_trust_sources) struct cr_trust_sources sources = {0};
    add(&sources, "one", a->cert_pem, NULL);
    add(&sources, "two", b->cert_pem, NULL);
    add(&sources, "three", a->cert_pem, NULL);
    cr_autofree char *both = test_concat(a->cert_pem, b->cert_pem, NULL);
    expect(&sources, NULL, 0, both, "");
}

/* Its ca.crt is ahead of its leaf: a peer that still has that leaf to verify needs the old CA, whatever retainPrevious.
 */
static void the_ca_of_a_leaf_of_now_stays(void **state)
{
    (void)state;
    AUTO_CERT old = make_ca(.cn = "old");
    AUTO_CERT fresh = make_ca(.cn = "new");
    AUTO_CERT leaf = make(.cn = "web", .issuer = old);
    CR_CLEANUP(cr_trust_sources) struct cr_trust_sources sources = {0};
    add(&sources, "web-tls", fresh->cert_pem, leaf->cert_pem);
    cr_autofree char *both = test_concat(fresh->cert_pem, old->cert_pem, NULL);
    expect(&sources, old->cert_pem, 0, both, "");
}

/* A certificate of a public CA beside the CAs of clients. */
static void a_leaf_that_no_ca_at_hand_verifies_counts_for_nothing(void **state)
{
    (void)state;
    AUTO_CERT clients = make_ca(.cn = "clients");
    AUTO_CERT public = make_ca(.cn = "public");
    AUTO_CERT leaf = make(.cn = "web", .issuer = public);
    CR_CLEANUP(cr_trust_sources) struct cr_trust_sources sources = {0};
    add(&sources, "web-tls", clients->cert_pem, leaf->cert_pem);
    expect(&sources, clients->cert_pem, 1, clients->cert_pem, "");
}

static void what_cannot_be_read_is_refused(void **state)
{
    (void)state;
    AUTO_CERT good = make_ca(.cn = "good");
    AUTO_CERT expired = make_ca(.cn = "expired", .from_s = -2 * HOUR_S, .until_s = -HOUR_S);
    const struct {
        const char *trust, *published;
    } cases[] = {
        {"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n", NULL},
        {expired->cert_pem, good->cert_pem},
        {good->cert_pem, "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        struct cr_bundle made;
        CR_CLEANUP(cr_trust_sources) struct cr_trust_sources sources = {0};
        add(&sources, "web-tls", cases[i].trust, NULL);
        const struct cr_pem_input previous = {cases[i].published, strlen(cr_or_empty(cases[i].published))};
        assert_false(cr_trust_sources_make(&sources, &previous, 1, cr_clock_wall_ms(), &made, &err));
        assert_int_equal(err.kind, CR_ERR_INVALID);
        assert_null(made.pem);
    }
}

static void a_new_ca_without_its_issuer_is_named(void **state)
{
    (void)state;
    AUTO_CERT root = make_ca(.cn = "root");
    AUTO_CERT middle = make_ca(.cn = "middle", .issuer = root);
    AUTO_CERT leaf = make(.cn = "web", .issuer = middle);
    cr_autofree char *both = test_concat(middle->cert_pem, root->cert_pem, NULL);
    const struct {
        const char *rule, *trust, *published, *subject;
    } rows[] = {
        {"a root", root->cert_pem, NULL, NULL},
        {"an intermediate alone", middle->cert_pem, NULL, "CN=middle"},
        {"with its root", both, NULL, NULL},
        {"its root is published", middle->cert_pem, root->cert_pem, NULL},
        {"it was published before", middle->cert_pem, middle->cert_pem, NULL},
    };
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_trust_sources) struct cr_trust_sources sources = {0};
        CR_CLEANUP(cr_bundle) struct cr_bundle made = {0};
        const struct cr_pem_input previous = {rows[i].published, strlen(cr_or_empty(rows[i].published))};
        add(&sources, "web", rows[i].trust, leaf->cert_pem);
        assert_true(cr_trust_sources_make(&sources, &previous, 1, cr_clock_wall_ms(), &made, &err));
        cr_autofree char *subject = cr_trust_sources_needing(&made, &previous);
        if (!cr_streq(subject, rows[i].subject))
            fail_msg("%s: %s", rows[i].rule, cr_or_empty(subject));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_ca_without_its_issuer_is_named),
        cmocka_unit_test(the_new_ca_comes_before_the_published_one),
        cmocka_unit_test(the_cas_of_all_secrets_stay),
        cmocka_unit_test(the_ca_of_a_leaf_of_now_stays),
        cmocka_unit_test(a_leaf_that_no_ca_at_hand_verifies_counts_for_nothing),
        cmocka_unit_test(what_cannot_be_read_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
