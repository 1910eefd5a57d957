#include "pki/bundle_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "pki/openssl_internal.h"
#include "support/testcerts.h"

enum { CERTS_MAX = 16 };

#define AUTO_CERT       CR_CLEANUP(test_cert) struct test_cert *
#define make(...)       test_cert_new(&(struct test_cert_spec){__VA_ARGS__})
#define make_ca(...)    make(.ca = true, __VA_ARGS__)
#define make_plain(...) make_ca(.cn = "ca", .no_key_ids = true, __VA_ARGS__)
#define leaf_of(ca)     make(.cn = "web", .issuer = (ca), .no_key_ids = true)

/* CAs, leaves, and what is published of them, up to the first NULL and by index. */
struct scene {
    const struct test_cert *cas[CERTS_MAX];
    enum cr_order_wish wishes[CERTS_MAX];
    size_t published[CERTS_MAX];
    size_t published_len;
    const struct test_cert *leaves[CERTS_MAX];
};

static size_t count(const struct test_cert *const *certs)
{
    size_t len = 0;
    while (certs[len])
        len++;
    return len;
}

static void arrange(const struct scene *scene, struct cr_ordered *out)
{
    X509 *certs[CERTS_MAX];
    size_t preferred[CERTS_MAX];
    STACK_OF(X509) * chains[CERTS_MAX] = {0};
    struct cr_error err = {0};
    size_t len = count(scene->cas);
    for (size_t i = 0; i < len; i++) {
        certs[i] = scene->cas[i]->x509;
        preferred[i] = i;
    }
    CR_CLEANUP(cr_cutoff) struct cr_cutoff *cutoff = cr_cutoff_new(certs, len, cr_clock_wall_ms());
    cr_cutoff_add_published(cutoff, scene->published, scene->published_len);
    for (size_t i = 0; scene->leaves[i]; i++) {
        chains[i] = sk_X509_new_null();
        assert_true(sk_X509_push(chains[i], scene->leaves[i]->x509) > 0);
        assert_true(cr_cutoff_add_leaf(cutoff, chains[i], &err));
    }
    cr_bundle_arrange(cutoff,
                      &(struct cr_order_question){.wishes = scene->wishes,
                                                  .preferred = preferred,
                                                  .len = len,
                                                  .published = scene->published,
                                                  .published_len = scene->published_len},
                      out);
    for (size_t i = 0; i < CERTS_MAX; i++)
        sk_X509_free(chains[i]);
}

static void expect(const struct scene *scene, enum cr_bundle_proof proof, size_t given_up, const size_t *want,
                   size_t len)
{
    CR_CLEANUP(cr_ordered) struct cr_ordered ordered;
    arrange(scene, &ordered);
    assert_int_equal(ordered.proof, proof);
    assert_int_equal(ordered.given_up, given_up);
    assert_int_equal(ordered.len, len);
    for (size_t i = 0; i < len; i++)
        assert_int_equal(ordered.bundle[i], want[i]);
}
#define WANT(...) (const size_t[]){__VA_ARGS__}, sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t)

static void where_no_client_minds_it_is_what_the_rule_wants(void **state)
{
    (void)state;
    AUTO_CERT fresh = make_ca(.cn = "new");
    AUTO_CERT old = make_ca(.cn = "old");
    AUTO_CERT older = make_ca(.cn = "older");
    AUTO_CERT leaf = make(.cn = "web", .issuer = old);
    expect(&(struct scene){{fresh, old, older}, {CR_ORDER_MUST, CR_ORDER_WANTED, CR_ORDER_SPARE}, {1, 2}, 2, {leaf}},
           CR_BUNDLE_PROVED, 0, WANT(0, 1));
}

/* OpenSSL takes the first of one name, and GnuTLS the last. */
static void a_new_ca_can_have_to_stand_in_the_middle(void **state)
{
    (void)state;
    AUTO_CERT fresh = make_plain(.serial = "1");
    AUTO_CERT a = make_plain(.serial = "2");
    AUTO_CERT b = make_plain(.serial = "3");
    AUTO_CERT of_a = leaf_of(a);
    AUTO_CERT of_b = leaf_of(b);
    expect(&(struct scene){{fresh, a, b}, {CR_ORDER_MUST, CR_ORDER_WANTED, CR_ORDER_WANTED}, {1, 2}, 2, {of_a, of_b}},
           CR_BUNDLE_PROVED, 0, WANT(1, 0, 2));
}

static void other_names_keep_their_places(void **state)
{
    (void)state;
    AUTO_CERT fresh = make_plain(.serial = "1");
    AUTO_CERT other = make_ca(.cn = "other");
    AUTO_CERT a = make_plain(.serial = "2");
    AUTO_CERT b = make_plain(.serial = "3");
    AUTO_CERT of_a = leaf_of(a);
    AUTO_CERT of_b = leaf_of(b);
    expect(&(struct scene){{fresh, other, a, b},
                           {CR_ORDER_MUST, CR_ORDER_MUST, CR_ORDER_WANTED, CR_ORDER_WANTED},
                           {2, 3},
                           2,
                           {of_a, of_b}},
           CR_BUNDLE_PROVED, 0, WANT(2, 1, 0, 3));
}

static void what_is_spare_stays_only_if_it_keeps_a_leaf(void **state)
{
    (void)state;
    AUTO_CERT fresh = make_ca(.cn = "new");
    AUTO_CERT needed = make_ca(.cn = "needed");
    AUTO_CERT idle = make_ca(.cn = "idle");
    AUTO_CERT leaf = make(.cn = "web", .issuer = needed);
    expect(&(struct scene){{fresh, needed, idle}, {CR_ORDER_MUST, CR_ORDER_SPARE, CR_ORDER_SPARE}, {1, 2}, 2, {leaf}},
           CR_BUNDLE_PROVED, 0, WANT(0, 1));
}

/* In either order some client would take the other one of that name. */
static void what_is_wanted_goes_if_it_costs_a_leaf(void **state)
{
    (void)state;
    AUTO_CERT fresh = make_ca(.cn = "new");
    AUTO_CERT a = make_plain(.serial = "1");
    AUTO_CERT b = make_plain(.serial = "2");
    AUTO_CERT leaf = leaf_of(a);
    expect(&(struct scene){{fresh, a, b}, {CR_ORDER_MUST, CR_ORDER_WANTED, CR_ORDER_WANTED}, {1}, 1, {leaf}},
           CR_BUNDLE_PROVED, 0, WANT(0, 1));
}

static void where_nothing_keeps_everybody_openssl_and_go_are_kept(void **state)
{
    (void)state;
    AUTO_CERT fresh = make_plain(.serial = "1");
    AUTO_CERT old = make_plain(.serial = "2");
    AUTO_CERT leaf = leaf_of(old);
    AUTO_CERT other = make_ca(.cn = "other");
    AUTO_CERT of_other = make(.cn = "api", .issuer = other);
    const struct scene scene = {
        {fresh, old, other}, {CR_ORDER_MUST, CR_ORDER_WANTED, CR_ORDER_SPARE}, {1, 2}, 2, {of_other, leaf}};
    expect(&scene, CR_BUNDLE_PROVED, 1, WANT(1, 0, 2));
    CR_CLEANUP(cr_ordered) struct cr_ordered ordered;
    arrange(&scene, &ordered);
    assert_int_equal(ordered.leaf, 1);
    assert_int_equal(ordered.client, CR_CLIENT_GNUTLS);
}

static void where_these_would_lose_too_there_is_none(void **state)
{
    (void)state;
    AUTO_CERT fresh = make_plain(.serial = "1");
    AUTO_CERT again = make_plain(.serial = "2");
    AUTO_CERT of_fresh = leaf_of(fresh);
    AUTO_CERT of_again = leaf_of(again);
    X509 *certs[] = {fresh->x509, again->x509};
    const size_t alone[] = {0, 1};
    const enum cr_order_wish wishes[] = {CR_ORDER_MUST, CR_ORDER_MUST};
    struct cr_error err = {0};
    CR_CLEANUP(cr_ordered) struct cr_ordered ordered;
    CR_CLEANUP(cr_cutoff) struct cr_cutoff *cutoff = cr_cutoff_new(certs, 2, cr_clock_wall_ms());
    STACK_OF(X509) * chains[] = {sk_X509_new_null(), sk_X509_new_null()};
    assert_true(sk_X509_push(chains[0], of_fresh->x509) > 0 && sk_X509_push(chains[1], of_again->x509) > 0);
    /* Each is published by itself somewhere. */
    cr_cutoff_add_published(cutoff, alone, 1);
    cr_cutoff_add_published(cutoff, alone + 1, 1);
    for (int i = 0; i < 2; i++)
        assert_true(cr_cutoff_add_leaf(cutoff, chains[i], &err));
    cr_bundle_arrange(cutoff, &(struct cr_order_question){.wishes = wishes, .preferred = alone, .len = 2}, &ordered);
    assert_int_equal(ordered.proof, CR_BUNDLE_WOULD_CUT_OFF);
    assert_null(ordered.bundle);
    assert_int_equal(ordered.client, CR_CLIENT_OPENSSL);
    for (int i = 0; i < 2; i++)
        sk_X509_free(chains[i]);
}

/* Eight of one name have 40,320 orders. A client can only distinguish which is the first and which the last. */
static void orders_that_no_client_distinguishes_are_tried_once(void **state)
{
    (void)state;
    enum { MANY = 8 };
    struct scene scene = {.published_len = 1};
    struct test_cert *cas[MANY] = {0};
    for (size_t i = 0; i < MANY; i++) {
        scene.cas[i] = cas[i] = make_plain();
        scene.wishes[i] = CR_ORDER_MUST;
    }
    AUTO_CERT leaf = leaf_of(cas[0]);
    scene.leaves[0] = leaf;
    /* It would have to be both. */
    expect(&scene, CR_BUNDLE_PROVED, 1, WANT(0, 1, 2, 3, 4, 5, 6, 7));
    /* Where the others have key identifiers, the one without is tried for the leaf of each, and they for its own. */
    for (size_t i = 1; i < MANY; i++) {
        test_cert_free(cas[i]);
        scene.cas[i] = cas[i] = make_ca(.cn = "ca");
    }
    AUTO_CERT of_id = make(.cn = "web", .issuer = cas[1]);
    scene.published[0] = 1;
    scene.published[1] = 0;
    scene.published_len = 2;
    scene.leaves[1] = of_id;
    expect(&scene, CR_BUNDLE_PROVED, 0, WANT(1, 2, 3, 4, 5, 6, 7, 0));
    for (size_t i = 0; i < MANY; i++)
        test_cert_free(cas[i]);
}

/* Ten of one name have ten million choices and orders. */
static void what_would_take_too_long_ends_with_all_that_is_published(void **state)
{
    (void)state;
    enum { MANY = 11 };
    struct scene scene = {.published_len = MANY - 1};
    struct test_cert *cas[MANY] = {0};
    for (size_t i = 0; i < MANY; i++) {
        scene.cas[i] = cas[i] = make_plain();
        scene.wishes[i] = i ? CR_ORDER_WANTED : CR_ORDER_MUST;
    }
    for (size_t i = 0; i < MANY - 1; i++)
        scene.published[i] = i + 1;
    /* Leaves of the first and of the last that is published. */
    AUTO_CERT of_first = leaf_of(cas[1]);
    AUTO_CERT of_last = leaf_of(cas[MANY - 1]);
    AUTO_CERT of_new = leaf_of(cas[0]);
    scene.leaves[0] = of_first;
    scene.leaves[1] = of_last;
    scene.leaves[2] = of_new;
    CR_CLEANUP(cr_ordered) struct cr_ordered ordered;
    arrange(&scene, &ordered);
    assert_int_equal(ordered.len, MANY);
    assert_int_equal(ordered.proof, CR_BUNDLE_PROVED);
    assert_int_equal(ordered.bundle[0], 1);
    assert_int_equal(ordered.bundle[MANY - 1], MANY - 1);
    /* One that has no answer: its CA has to be the first and the last. */
    scene.published[0] = MANY - 1;
    scene.published_len = 1;
    scene.leaves[0] = of_last;
    scene.leaves[1] = NULL;
    CR_CLEANUP(cr_ordered) struct cr_ordered none;
    arrange(&scene, &none);
    assert_int_equal(none.proof, CR_BUNDLE_TOO_COSTLY);
    assert_int_equal(none.len, MANY);
    assert_int_equal(none.bundle[0], MANY - 1);
    assert_int_equal(none.bundle[1], 0);
    for (size_t i = 0; i < MANY; i++)
        test_cert_free(cas[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_no_client_minds_it_is_what_the_rule_wants),
        cmocka_unit_test(a_new_ca_can_have_to_stand_in_the_middle),
        cmocka_unit_test(other_names_keep_their_places),
        cmocka_unit_test(what_is_spare_stays_only_if_it_keeps_a_leaf),
        cmocka_unit_test(what_is_wanted_goes_if_it_costs_a_leaf),
        cmocka_unit_test(where_nothing_keeps_everybody_openssl_and_go_are_kept),
        cmocka_unit_test(where_these_would_lose_too_there_is_none),
        cmocka_unit_test(orders_that_no_client_distinguishes_are_tried_once),
        cmocka_unit_test(what_would_take_too_long_ends_with_all_that_is_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
