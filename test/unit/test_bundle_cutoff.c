#include "pki/bundle_cutoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "pki/openssl_internal.h"
#include "support/testcerts.h"

enum { ALL = CR_CUTOFF_ALL };

#define AUTO_CERT    CR_CLEANUP(test_cert) struct test_cert *
#define make(...)    test_cert_new(&(struct test_cert_spec){__VA_ARGS__})
#define make_ca(...) make(.ca = true, __VA_ARGS__)
#define BUNDLE(...)  (const size_t[]){__VA_ARGS__}, sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t)

static STACK_OF(X509) * chain_of(const struct test_cert *leaf)
{
    STACK_OF(X509) *chain = sk_X509_new_null();
    assert_true(sk_X509_push(chain, leaf->x509) > 0);
    return chain;
}

static void who_verified_before_and_would_not_after_is_found(void **state)
{
    (void)state;
    AUTO_CERT a = make_ca(.cn = "a");
    AUTO_CERT b = make_ca(.cn = "b");
    AUTO_CERT of_a = make(.cn = "web", .issuer = a);
    AUTO_CERT of_b = make(.cn = "api", .issuer = b);
    X509 *certs[] = {a->x509, b->x509};
    STACK_OF(X509) *first = chain_of(of_a);
    STACK_OF(X509) *second = chain_of(of_b);
    struct cr_error err = {0};
    CR_CLEANUP(cr_cutoff) struct cr_cutoff *cutoff = cr_cutoff_new(certs, 2, cr_clock_wall_ms());
    cr_cutoff_add_published(cutoff, BUNDLE(0));
    assert_true(cr_cutoff_add_leaf(cutoff, first, &err) && cr_cutoff_add_leaf(cutoff, second, &err));
    assert_int_equal(cr_cutoff_leaves(cutoff), 2);
    assert_true(cr_cutoff_concerns(cutoff, 0, 0));
    assert_false(cr_cutoff_concerns(cutoff, 0, 1));
    assert_int_equal(cr_cutoff_losers(cutoff, 0, BUNDLE(1, 0)), 0);
    assert_int_equal(cr_cutoff_losers(cutoff, 0, BUNDLE(1)), ALL);
    /* No client has verified it so far. */
    assert_int_equal(cr_cutoff_losers(cutoff, 1, BUNDLE(0)), 0);
    cr_cutoff_give_up(cutoff, 0, 1u << CR_CLIENT_GNUTLS);
    assert_int_equal(cr_cutoff_losers(cutoff, 0, BUNDLE(1)), CR_CUTOFF_KEPT);
    sk_X509_free(first);
    sk_X509_free(second);
}

static void each_bundle_of_several_that_are_published_counts(void **state)
{
    (void)state;
    AUTO_CERT a = make_ca(.cn = "ca", .no_key_ids = true);
    AUTO_CERT b = make_ca(.cn = "ca", .no_key_ids = true);
    AUTO_CERT leaf = make(.cn = "web", .issuer = b, .no_key_ids = true);
    X509 *certs[] = {a->x509, b->x509};
    STACK_OF(X509) *chain = chain_of(leaf);
    struct cr_error err = {0};
    CR_CLEANUP(cr_cutoff) struct cr_cutoff *cutoff = cr_cutoff_new(certs, 2, cr_clock_wall_ms());
    cr_cutoff_add_published(cutoff, BUNDLE(0));
    cr_cutoff_add_published(cutoff, BUNDLE(1));
    assert_true(cr_cutoff_add_leaf(cutoff, chain, &err));
    assert_int_equal(cr_cutoff_name(cutoff, 0), cr_cutoff_name(cutoff, 1));
    /* OpenSSL and BoringSSL take the first of them, GnuTLS the last, Go both. */
    assert_int_equal(cr_cutoff_losers(cutoff, 0, BUNDLE(1, 0)), 1u << CR_CLIENT_GNUTLS);
    assert_int_equal(cr_cutoff_losers(cutoff, 0, BUNDLE(0, 1)),
                     1u << CR_CLIENT_OPENSSL | 1u << CR_CLIENT_PARTIAL | 1u << CR_CLIENT_BORINGSSL);
    sk_X509_free(chain);
}

static void looks_have_an_end(void **state)
{
    (void)state;
    AUTO_CERT a = make_ca(.cn = "a");
    AUTO_CERT leaf = make(.cn = "web", .issuer = a);
    STACK_OF(X509) *chain = chain_of(leaf);
    struct cr_error err = {0};
    CR_CLEANUP(cr_cutoff) struct cr_cutoff *cutoff = cr_cutoff_new(&a->x509, 1, cr_clock_wall_ms());
    cr_cutoff_add_published(cutoff, BUNDLE(0));
    assert_true(cr_cutoff_add_leaf(cutoff, chain, &err));
    for (int i = 1; i < CR_CUTOFF_LOOKS_MAX; i++) {
        assert_false(cr_cutoff_is_spent(cutoff));
        assert_int_equal(cr_cutoff_losers(cutoff, 0, BUNDLE(0)), 0);
    }
    assert_true(cr_cutoff_is_spent(cutoff));
    sk_X509_free(chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_verified_before_and_would_not_after_is_found),
        cmocka_unit_test(each_bundle_of_several_that_are_published_counts),
        cmocka_unit_test(looks_have_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
