/* That Envoy itself answers so is what test/integration/test_bundle_envoy.py compares. */
#include "pki/bundle_boringssl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "pki/signers.h"
#include "pki/x509.h"
#include "support/certlists.h"

/* Takes both lists. */
static bool verifies(STACK_OF(X509) * chain, STACK_OF(X509) * trusted)
{
    CR_CLEANUP(cr_signers) struct cr_signers *signers = cr_signers_new();
    bool found = cr_boringssl_verifies(chain, trusted, X509_PURPOSE_SSL_SERVER, cr_clock_wall_ms(), signers);
    cr_x509_list_free(chain);
    cr_x509_list_free(trusted);
    return found;
}

static void of_several_issuers_the_first_is_taken_valid_or_not(void **state)
{
    (void)state;
    AUTO_CERT ca = make_ca(.cn = "ca");
    AUTO_CERT future = make_ca(.cn = "ca", .key_of = ca, .from_s = DAY_S);
    AUTO_CERT expired = make_ca(.cn = "ca", .key_of = ca, .from_s = -2 * DAY_S, .until_s = -DAY_S);
    AUTO_CERT other = make_ca(.cn = "other");
    AUTO_CERT leaf = make(.cn = "web", .issuer = ca);
    assert_true(verifies(LIST(leaf), LIST(ca)));
    assert_true(verifies(LIST(leaf), LIST(other, ca, future, expired)));
    assert_false(verifies(LIST(leaf), LIST(future, ca)));
    assert_false(verifies(LIST(leaf), LIST(expired, ca)));
    assert_false(verifies(LIST(leaf), LIST(other)));
}

static void key_identifiers_distinguish_issuers(void **state)
{
    (void)state;
    AUTO_CERT a = make_ca(.cn = "ca");
    AUTO_CERT b = make_ca(.cn = "ca");
    AUTO_CERT c = make_ca(.cn = "bare", .no_key_ids = true);
    AUTO_CERT d = make_ca(.cn = "bare", .no_key_ids = true);
    AUTO_CERT leaf = make(.cn = "web", .issuer = a);
    AUTO_CERT bare = make(.cn = "web", .issuer = c, .no_key_ids = true);
    assert_true(verifies(LIST(leaf), LIST(b, a)));
    assert_true(verifies(LIST(bare), LIST(c, d)));
    assert_false(verifies(LIST(bare), LIST(d, c)));
}

static void a_way_goes_on_through_what_is_trusted(void **state)
{
    (void)state;
    AUTO_CERT root = make_ca(.cn = "root");
    AUTO_CERT future = make_ca(.cn = "root", .key_of = root, .from_s = DAY_S);
    AUTO_CERT between = make_ca(.cn = "between", .issuer = root);
    AUTO_CERT leaf = make(.cn = "web", .issuer = between);
    assert_true(verifies(LIST(leaf), LIST(between)));
    assert_true(verifies(LIST(leaf, between), LIST(root)));
    assert_true(verifies(LIST(leaf), LIST(between, root)));
    assert_false(verifies(LIST(leaf), LIST(between, future))); /* OpenSSL would end at the intermediate */
    assert_false(verifies(LIST(leaf), LIST(root)));
    assert_true(verifies(LIST(leaf), LIST(leaf)));
}

/* OpenSSL is content with a key that may sign certificates. */
static void what_is_sent_is_a_ca_by_its_constraints(void **state)
{
    (void)state;
    AUTO_CERT root = make_ca(.cn = "root");
    AUTO_CERT bare = make_ca(.cn = "bare", .issuer = root, .no_constraints = true);
    AUTO_CERT leaf = make(.cn = "web", .issuer = bare);
    assert_false(verifies(LIST(leaf, bare), LIST(root)));
    assert_true(verifies(LIST(leaf), LIST(bare, root)));
}

static void a_root_that_is_sent_is_passed_over(void **state)
{
    (void)state;
    AUTO_CERT root = make_ca(.cn = "root");
    AUTO_CERT again = make_ca(.cn = "root", .key_of = root);
    AUTO_CERT other = make_ca(.cn = "root");
    AUTO_CERT leaf = make(.cn = "web", .issuer = root);
    AUTO_CERT alone = make(.cn = "alone");
    assert_true(verifies(LIST(leaf, root), LIST(again)));
    assert_false(verifies(LIST(leaf, root), LIST(other)));
    assert_true(verifies(LIST(alone), LIST(alone)));
    assert_false(verifies(LIST(alone), LIST(root)));
}

static void keys_of_another_kind_are_no_reason_to_look_further(void **state)
{
    (void)state;
    AUTO_CERT rsa = make_ca(.cn = "ca", .no_key_ids = true, .key_type = "RSA");
    AUTO_CERT ec = make_ca(.cn = "ca", .no_key_ids = true);
    AUTO_CERT leaf = make(.cn = "web", .issuer = rsa, .no_key_ids = true);
    assert_true(verifies(LIST(leaf), LIST(rsa, ec)));
    assert_false(verifies(LIST(leaf), LIST(ec, rsa))); /* OpenSSL passes over the one that cannot have signed */
}

static void a_leaf_that_signed_itself_is_the_first_that_fits(void **state)
{
    (void)state;
    AUTO_CERT leaf = make_ca(.cn = "web");
    AUTO_CERT renewed = make_ca(.cn = "web", .key_of = leaf);
    assert_true(verifies(LIST(leaf), LIST(leaf, renewed)));
    assert_false(verifies(LIST(leaf), LIST(renewed, leaf)));
}

static void those_that_signed_one_another_are_no_way_without_an_end(void **state)
{
    (void)state;
    AUTO_CERT a = make_ca(.cn = "a");
    AUTO_CERT b = make_ca(.cn = "b");
    AUTO_CERT a_by_b = make_ca(.cn = "a", .key_of = a, .issuer = b);
    AUTO_CERT b_by_a = make_ca(.cn = "b", .key_of = b, .issuer = a);
    AUTO_CERT leaf = make(.cn = "web", .issuer = a);
    assert_true(verifies(LIST(leaf), LIST(a_by_b, b_by_a)));
    assert_true(verifies(LIST(leaf, a_by_b, b_by_a), LIST(a)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_several_issuers_the_first_is_taken_valid_or_not),
        cmocka_unit_test(key_identifiers_distinguish_issuers),
        cmocka_unit_test(a_way_goes_on_through_what_is_trusted),
        cmocka_unit_test(what_is_sent_is_a_ca_by_its_constraints),
        cmocka_unit_test(a_root_that_is_sent_is_passed_over),
        cmocka_unit_test(keys_of_another_kind_are_no_reason_to_look_further),
        cmocka_unit_test(a_leaf_that_signed_itself_is_the_first_that_fits),
        cmocka_unit_test(those_that_signed_one_another_are_no_way_without_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
