/* Each case is asked of GnuTLS, too. */
#include "pki/bundle_gnutls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "base/clock.h"
#include "pki/signers.h"
#include "pki/x509.h"
#include "support/certlists.h"

enum { LIST_MAX = 8 };

/* --- GnuTLS itself --- */

static gnutls_x509_crt_t import(X509 *cert)
{
    gnutls_x509_crt_t crt;
    unsigned char *der = NULL;
    int len = i2d_X509(cert, &der);
    const gnutls_datum_t text = {der, (unsigned)len};
    assert_int_equal(gnutls_x509_crt_init(&crt), 0);
    assert_int_equal(gnutls_x509_crt_import(crt, &text, GNUTLS_X509_FMT_DER), 0);
    OPENSSL_free(der);
    return crt;
}

static unsigned import_all(STACK_OF(X509) * list, gnutls_x509_crt_t out[LIST_MAX])
{
    assert_true(sk_X509_num(list) <= LIST_MAX);
    for (int i = 0; i < sk_X509_num(list); i++)
        out[i] = import(sk_X509_value(list, i));
    return (unsigned)sk_X509_num(list);
}

static bool ask_gnutls(STACK_OF(X509) * chain, STACK_OF(X509) * trusted, const char *purpose)
{
    gnutls_x509_crt_t sent[LIST_MAX];
    gnutls_x509_crt_t roots[LIST_MAX];
    gnutls_x509_trust_list_t list;
    unsigned status = ~0u;
    gnutls_typed_vdata_st data = {GNUTLS_DT_KEY_PURPOSE_OID, (unsigned char *)(uintptr_t)purpose, 0};
    unsigned sent_len = import_all(chain, sent);
    unsigned roots_len = import_all(trusted, roots);
    assert_int_equal(gnutls_x509_trust_list_init(&list, 0), 0);
    assert_int_equal(gnutls_x509_trust_list_add_cas(list, roots, roots_len, 0), roots_len);
    assert_int_equal(gnutls_x509_trust_list_verify_crt2(list, sent, sent_len, &data, 1, 0, &status, NULL), 0);
    for (unsigned i = 0; i < sent_len; i++)
        gnutls_x509_crt_deinit(sent[i]);
    gnutls_x509_trust_list_deinit(list, 1);
    return status == 0;
}

/* --- and as it is modelled --- */

/* Takes both lists. */
static bool ask(STACK_OF(X509) * chain, STACK_OF(X509) * trusted, bool client)
{
    CR_CLEANUP(cr_signers) struct cr_signers *signers = cr_signers_new();
    int purpose = client ? X509_PURPOSE_SSL_CLIENT : X509_PURPOSE_SSL_SERVER;
    bool verifies = cr_gnutls_verifies(chain, trusted, purpose, cr_clock_wall_ms(), signers);
    assert_int_equal(verifies,
                     ask_gnutls(chain, trusted, client ? GNUTLS_KP_TLS_WWW_CLIENT : GNUTLS_KP_TLS_WWW_SERVER));
    cr_x509_list_free(chain);
    cr_x509_list_free(trusted);
    return verifies;
}

static void trusts(STACK_OF(X509) * chain, STACK_OF(X509) * trusted)
{
    assert_true(ask(chain, trusted, false));
}

static void refuses(STACK_OF(X509) * chain, STACK_OF(X509) * trusted)
{
    assert_false(ask(chain, trusted, false));
}

static void of_several_issuers_the_last_that_is_valid_is_taken(void **state)
{
    (void)state;
    AUTO_CERT a = make_ca(.cn = "ca", .no_key_ids = true);
    AUTO_CERT b = make_ca(.cn = "ca", .no_key_ids = true);
    AUTO_CERT future = make_ca(.cn = "ca", .no_key_ids = true, .from_s = DAY_S);
    AUTO_CERT expired = make_ca(.cn = "ca", .no_key_ids = true, .from_s = -2 * DAY_S, .until_s = -DAY_S);
    AUTO_CERT leaf = make(.cn = "web", .issuer = a, .no_key_ids = true);
    trusts(LIST(leaf), LIST(b, a));
    refuses(LIST(leaf), LIST(a, b));
    trusts(LIST(leaf), LIST(a, future));
    trusts(LIST(leaf), LIST(a, expired));
    refuses(LIST(leaf), LIST(future));
    refuses(LIST(leaf), LIST(b));
}

/* Of names that have nothing in common but their hash, too: one of 127. A valid twin is then found at the first look.
 */
static void what_is_trusted_is_looked_up_by_a_hash_of_its_name(void **state)
{
    enum { NAMES = 400 };
    (void)state;
    int found = 0;
    AUTO_CERT root = make_ca(.cn = "root");
    for (int i = 0; i < NAMES; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "ca %d", 100 + 2 * i);
        AUTO_CERT twin = make_ca(.cn = name, .issuer = root);
        AUTO_CERT future = make_ca(.cn = name, .issuer = root, .key_of = twin, .from_s = DAY_S);
        AUTO_CERT leaf = make(.cn = "web", .issuer = twin);
        found += ask(LIST(leaf, future), LIST(root, twin), false);
    }
    assert_in_range(found, 1, NAMES / 10);
}

static void key_identifiers_distinguish_issuers(void **state)
{
    (void)state;
    AUTO_CERT a = make_ca(.cn = "ca");
    AUTO_CERT b = make_ca(.cn = "ca");
    AUTO_CERT leaf = make(.cn = "web", .issuer = a);
    trusts(LIST(leaf), LIST(a, b));
    trusts(LIST(leaf), LIST(b, a));
}

static void a_trusted_intermediate_ends_the_chain(void **state)
{
    (void)state;
    AUTO_CERT root = make_ca(.cn = "root");
    AUTO_CERT other = make_ca(.cn = "other");
    AUTO_CERT between = make_ca(.cn = "between", .issuer = root);
    AUTO_CERT crossed = make_ca(.cn = "between", .key_of = between, .issuer = other);
    AUTO_CERT leaf = make(.cn = "web", .issuer = between);
    trusts(LIST(leaf), LIST(between));
    trusts(LIST(leaf, between), LIST(between));
    /* By its name and key; its issuer is not known. */
    trusts(LIST(leaf, between), LIST(crossed));
    trusts(LIST(leaf, between), LIST(crossed, root));
    refuses(LIST(leaf), LIST(root));
}

/* Only what is above the last that was sent is looked up. */
static void a_trusted_one_in_the_middle_of_what_is_sent_is_no_end(void **state)
{
    (void)state;
    AUTO_CERT root = make_ca(.cn = "root");
    AUTO_CERT upper = make_ca(.cn = "upper", .issuer = root);
    AUTO_CERT lower = make_ca(.cn = "lower", .issuer = upper);
    AUTO_CERT leaf = make(.cn = "web", .issuer = lower);
    refuses(LIST(leaf, lower, upper), LIST(lower));
    trusts(LIST(leaf, lower), LIST(lower));
    trusts(LIST(leaf, lower, upper), LIST(upper));
    trusts(LIST(leaf, lower, upper), LIST(root));
    trusts(LIST(leaf, lower, upper, root), LIST(root));
}

static void what_is_sent_is_put_in_order(void **state)
{
    (void)state;
    AUTO_CERT root = make_ca(.cn = "root");
    AUTO_CERT upper = make_ca(.cn = "upper", .issuer = root);
    AUTO_CERT lower = make_ca(.cn = "lower", .issuer = upper);
    AUTO_CERT stray = make_ca(.cn = "stray", .issuer = upper);
    AUTO_CERT leaf = make(.cn = "web", .issuer = lower);
    trusts(LIST(leaf, upper, lower), LIST(root));
    trusts(LIST(leaf, lower, lower, upper), LIST(root));
    /* What fits nowhere does not matter when a trusted issuer stands before it. */
    trusts(LIST(leaf, stray, lower, upper), LIST(root));
    refuses(LIST(leaf, stray), LIST(upper));
    trusts(LIST(leaf, stray), LIST(lower));
}

/* The first of what is sent that fits, though the other one would lead somewhere. */
static void it_does_not_go_back(void **state)
{
    (void)state;
    AUTO_CERT root = make_ca(.cn = "root");
    AUTO_CERT lost = make_ca(.cn = "lost");
    AUTO_CERT by_root = make_ca(.cn = "between", .issuer = root);
    AUTO_CERT by_lost = make_ca(.cn = "between", .key_of = by_root, .issuer = lost);
    AUTO_CERT leaf = make(.cn = "web", .issuer = by_root);
    trusts(LIST(leaf, by_root, by_lost), LIST(root));
    refuses(LIST(leaf, by_lost, by_root), LIST(root));
}

static void loops_end(void **state)
{
    (void)state;
    AUTO_CERT a = make_ca(.cn = "a");
    AUTO_CERT b = make_ca(.cn = "b");
    AUTO_CERT a_by_b = make_ca(.cn = "a", .key_of = a, .issuer = b);
    AUTO_CERT b_by_a = make_ca(.cn = "b", .key_of = b, .issuer = a);
    AUTO_CERT leaf = make(.cn = "web", .issuer = a);
    refuses(LIST(leaf, a_by_b, b_by_a), LIST(leaf));
    trusts(LIST(leaf, a_by_b, b_by_a), LIST(a));
    trusts(LIST(leaf), LIST(leaf));
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
    refuses(LIST(of_expired), LIST(expired));
    refuses(LIST(of_no_ca, no_ca), LIST(root));
    refuses(LIST(of_no_ca), LIST(no_ca));
    refuses(LIST(late), LIST(root));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_several_issuers_the_last_that_is_valid_is_taken),
        cmocka_unit_test(what_is_trusted_is_looked_up_by_a_hash_of_its_name),
        cmocka_unit_test(key_identifiers_distinguish_issuers),
        cmocka_unit_test(a_trusted_intermediate_ends_the_chain),
        cmocka_unit_test(a_trusted_one_in_the_middle_of_what_is_sent_is_no_end),
        cmocka_unit_test(what_is_sent_is_put_in_order),
        cmocka_unit_test(it_does_not_go_back),
        cmocka_unit_test(loops_end),
        cmocka_unit_test(rules_of_rfc_5280_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
