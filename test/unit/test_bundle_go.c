/* That Go itself answers so is what test/integration/test_bundle_game.py compares. */
#include "pki/bundle_go.h"

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
    bool found = cr_go_verifies(chain, trusted, X509_PURPOSE_SSL_SERVER, cr_clock_wall_ms(), signers);
    cr_x509_list_free(chain);
    cr_x509_list_free(trusted);
    return found;
}

static void every_way_is_tried(void **state)
{
    (void)state;
    AUTO_CERT a = make_ca(.cn = "ca", .no_key_ids = true);
    AUTO_CERT b = make_ca(.cn = "ca", .no_key_ids = true);
    AUTO_CERT root = make_ca(.cn = "root");
    AUTO_CERT lost = make_ca(.cn = "lost");
    AUTO_CERT by_root = make_ca(.cn = "ca", .key_of = a, .issuer = root, .no_key_ids = true);
    AUTO_CERT by_lost = make_ca(.cn = "ca", .key_of = a, .issuer = lost, .no_key_ids = true);
    AUTO_CERT leaf = make(.cn = "web", .issuer = a, .no_key_ids = true);
    assert_true(verifies(LIST(leaf), LIST(a, b)));
    assert_true(verifies(LIST(leaf), LIST(b, a)));
    assert_true(verifies(LIST(leaf, by_lost, by_root), LIST(b, root)));
    assert_false(verifies(LIST(leaf, by_lost), LIST(b, root)));
}

static void what_is_trusted_ends_a_way_and_stands_nowhere_else(void **state)
{
    (void)state;
    AUTO_CERT root = make_ca(.cn = "root");
    AUTO_CERT upper = make_ca(.cn = "upper", .issuer = root);
    AUTO_CERT lower = make_ca(.cn = "lower", .issuer = upper);
    AUTO_CERT leaf = make(.cn = "web", .issuer = lower);
    assert_true(verifies(LIST(leaf), LIST(lower)));
    assert_true(verifies(LIST(leaf, lower, upper), LIST(lower)));
    assert_false(verifies(LIST(leaf, lower), LIST(root)));
    assert_true(verifies(LIST(leaf), LIST(leaf)));
}

/* But that of a root, which nobody looks at. */
static void a_signature_by_a_weak_digest_is_none(void **state)
{
    (void)state;
    AUTO_CERT root = make_ca(.cn = "root", .weak_digest = true);
    AUTO_CERT weak = make_ca(.cn = "between", .issuer = root, .weak_digest = true);
    AUTO_CERT between = make_ca(.cn = "between", .issuer = root, .key_of = weak);
    AUTO_CERT leaf = make(.cn = "web", .issuer = weak);
    assert_true(verifies(LIST(leaf, between), LIST(root)));
    assert_false(verifies(LIST(leaf, weak), LIST(root)));
    assert_true(verifies(LIST(leaf, weak), LIST(weak)));
}

/* Names without key identifiers that OpenSSL takes for a root's. */
static void a_cross_certificate_of_one_name_is_no_root(void **state)
{
    (void)state;
    AUTO_CERT a = make_ca(.cn = "ca", .no_key_ids = true);
    AUTO_CERT x = make_ca(.cn = "ca", .issuer = a, .no_key_ids = true);
    AUTO_CERT leaf = make(.cn = "web", .issuer = x, .no_key_ids = true);
    assert_true(verifies(LIST(leaf, x), LIST(a)));
}

static void loops_end(void **state)
{
    (void)state;
    AUTO_CERT a = make_ca(.cn = "a");
    AUTO_CERT b = make_ca(.cn = "b");
    AUTO_CERT c = make_ca(.cn = "c");
    AUTO_CERT a_by_b = make_ca(.cn = "a", .key_of = a, .issuer = b);
    AUTO_CERT b_by_a = make_ca(.cn = "b", .key_of = b, .issuer = a);
    AUTO_CERT leaf = make(.cn = "web", .issuer = a);
    assert_false(verifies(LIST(leaf, a_by_b, b_by_a), LIST(c)));
    assert_true(verifies(LIST(leaf, a_by_b, b_by_a), LIST(b)));
}

static void rules_of_rfc_5280_are_kept(void **state)
{
    (void)state;
    AUTO_CERT root = make_ca(.cn = "root");
    AUTO_CERT expired = make_ca(.cn = "expired", .from_s = -2 * DAY_S, .until_s = -DAY_S);
    AUTO_CERT no_ca = make(.cn = "no ca", .issuer = root);
    AUTO_CERT of_expired = make(.cn = "web", .issuer = expired);
    AUTO_CERT of_no_ca = make(.cn = "web", .issuer = no_ca);
    AUTO_CERT late = make(.cn = "web", .issuer = root, .from_s = -2 * DAY_S, .until_s = -DAY_S);
    assert_false(verifies(LIST(of_expired), LIST(expired)));
    assert_false(verifies(LIST(of_no_ca, no_ca), LIST(root)));
    assert_false(verifies(LIST(late), LIST(root)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_is_tried),
        cmocka_unit_test(what_is_trusted_ends_a_way_and_stands_nowhere_else),
        cmocka_unit_test(a_signature_by_a_weak_digest_is_none),
        cmocka_unit_test(a_cross_certificate_of_one_name_is_no_root),
        cmocka_unit_test(loops_end),
        cmocka_unit_test(rules_of_rfc_5280_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
