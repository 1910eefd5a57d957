#include "pki/bundle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/err.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"
#include "pki/openssl_internal.h"
#include "support/issuing.h"
#include "support/testcerts.h"

enum { HOUR_S = 3600, DAY_S = 24 * HOUR_S };

#define AUTO_CERT    CR_CLEANUP(test_cert) struct test_cert *
#define AUTO_BUNDLE  CR_CLEANUP(cr_bundle) struct cr_bundle
#define make(...)    test_cert_new(&(struct test_cert_spec){__VA_ARGS__})
#define make_ca(...) make(.ca = true, __VA_ARGS__)

static struct cr_bundle_leaf leaf_of(const char *name, const struct test_cert *cert)
{
    return (struct cr_bundle_leaf){.name = name, .chain = test_entry(cert->cert_pem)};
}

static bool try_make(const struct cr_bundle_input *in, struct cr_bundle *out, struct cr_error *err)
{
    bool made = cr_bundle_make(in, cr_clock_wall_ms(), out, err);
    assert_int_equal(ERR_peek_error(), 0);
    return made;
}

static void make_bundle(const struct cr_bundle_input *in, struct cr_bundle *out)
{
    struct cr_error err = {0};
    if (!try_make(in, out, &err))
        fail_msg("%s", err.text);
}

static void refuse(const struct cr_bundle_input *in, const char *words)
{
    struct cr_error err = {0};
    struct cr_bundle out;
    if (try_make(in, &out, &err))
        fail_msg("a bundle was made, where \"%s\" was expected", words);
    assert_int_equal(err.kind, CR_ERR_INVALID);
    if (!strstr(err.text, words))
        fail_msg("want \"%s\", got: %s", words, err.text);
    assert_null(out.pem);
    assert_int_equal(out.beyond.len, 0);
}

static void it_is_the_new_ca_then_the_previous_ones(void **state)
{
    (void)state;
    AUTO_CERT old = make_ca(.cn = "old");
    AUTO_CERT older = make_ca(.cn = "older");
    AUTO_CERT expired = make_ca(.cn = "expired", .from_s = -2 * DAY_S, .until_s = -DAY_S);
    AUTO_CERT fresh = make_ca(.cn = "new");
    /* What is published now, in another text: the new one is in it already. */
    cr_autofree char *published =
        test_concat("# by hand\r\n", expired->cert_pem, fresh->cert_pem, old->cert_pem, older->cert_pem, NULL);
    cr_autofree char *want = test_concat(fresh->cert_pem, old->cert_pem, NULL);
    const struct cr_pem_input previous[] = {{0}, test_entry(published)};
    AUTO_BUNDLE bundle = {0};
    make_bundle(&(struct cr_bundle_input){test_entry(fresh->cert_pem), previous, 2, 1}, &bundle);
    assert_string_equal(bundle.pem, want);
    assert_int_equal(bundle.len, 2);
    assert_int_equal(bundle.previous, 1);
    /* Made of itself it is the same bytes. */
    AUTO_BUNDLE again = {0};
    const struct cr_pem_input itself = test_entry(bundle.pem);
    make_bundle(&(struct cr_bundle_input){test_entry(fresh->cert_pem), &itself, 1, 1}, &again);
    assert_string_equal(again.pem, want);
}

static void the_ca_of_a_leaf_in_use_stays_beyond_the_limit(void **state)
{
    (void)state;
    AUTO_CERT oldest = make_ca(.cn = "oldest");
    AUTO_CERT old = make_ca(.cn = "old");
    AUTO_CERT fresh = make_ca(.cn = "new");
    AUTO_CERT leaf = make(.cn = "web", .issuer = oldest);
    AUTO_CERT other = make(.cn = "api", .issuer = old);
    cr_autofree char *published = test_concat(old->cert_pem, oldest->cert_pem, NULL);
    cr_autofree char *want = test_concat(fresh->cert_pem, old->cert_pem, oldest->cert_pem, NULL);
    const struct cr_pem_input previous = test_entry(published);
    const struct cr_bundle_leaf leaves[] = {leaf_of("web", leaf), leaf_of("api", other)};
    AUTO_BUNDLE bundle = {0};
    make_bundle(&(struct cr_bundle_input){test_entry(fresh->cert_pem), &previous, 1, 0, leaves, 2}, &bundle);
    assert_string_equal(bundle.pem, want);
    assert_int_equal(bundle.beyond.len, 0);
}

/* Another generation of the same subject signs nothing of the first. */
static void who_signed_is_known_by_the_signature(void **state)
{
    (void)state;
    AUTO_CERT old = make_ca(.cn = "ca", .no_key_ids = true);
    AUTO_CERT namesake = make_ca(.cn = "ca", .no_key_ids = true);
    AUTO_CERT fresh = make_ca(.cn = "new");
    AUTO_CERT leaf = make(.cn = "web", .issuer = old, .no_key_ids = true);
    cr_autofree char *published = test_concat(namesake->cert_pem, old->cert_pem, NULL);
    cr_autofree char *want = test_concat(fresh->cert_pem, old->cert_pem, NULL);
    const struct cr_pem_input previous = test_entry(published);
    const struct cr_bundle_leaf leaves[] = {leaf_of("web", leaf)};
    AUTO_BUNDLE bundle = {0};
    make_bundle(&(struct cr_bundle_input){test_entry(fresh->cert_pem), &previous, 1, 1, leaves, 1}, &bundle);
    assert_string_equal(bundle.pem, want);
}

static void an_intermediate_stays_with_its_root(void **state)
{
    (void)state;
    AUTO_CERT root = make_ca(.cn = "root");
    AUTO_CERT middle = make_ca(.cn = "middle", .issuer = root);
    AUTO_CERT fresh = make_ca(.cn = "new");
    AUTO_CERT leaf = make(.cn = "web", .issuer = middle);
    cr_autofree char *published = test_concat(middle->cert_pem, root->cert_pem, NULL);
    cr_autofree char *want = test_concat(fresh->cert_pem, middle->cert_pem, root->cert_pem, NULL);
    const struct cr_pem_input previous = test_entry(published);
    const struct cr_bundle_leaf leaves[] = {leaf_of("web", leaf)};
    AUTO_BUNDLE bundle = {0};
    make_bundle(&(struct cr_bundle_input){test_entry(fresh->cert_pem), &previous, 1, 0, leaves, 1}, &bundle);
    assert_string_equal(bundle.pem, want);
}

static void of_a_leaf_that_is_only_remembered_the_anchors_count(void **state)
{
    (void)state;
    AUTO_CERT oldest = make_ca(.cn = "oldest");
    AUTO_CERT renewed = make_ca(.cn = "oldest", .key_of = oldest);
    AUTO_CERT old = make_ca(.cn = "old");
    AUTO_CERT fresh = make_ca(.cn = "new");
    char identity[CR_SHA256_HEX];
    struct cr_strvec anchors = {0};
    cr_x509_identity(oldest->x509, identity);
    cr_strvec_add(&anchors, identity);
    cr_autofree char *published = test_concat(old->cert_pem, renewed->cert_pem, NULL);
    cr_autofree char *want = test_concat(fresh->cert_pem, renewed->cert_pem, NULL);
    const struct cr_pem_input previous = test_entry(published);
    const struct cr_bundle_leaf leaves[] = {{.name = "web", .anchors = &anchors}};
    AUTO_BUNDLE bundle = {0};
    make_bundle(&(struct cr_bundle_input){test_entry(fresh->cert_pem), &previous, 1, 1, leaves, 1}, &bundle);
    assert_string_equal(bundle.pem, want);
    cr_strvec_dispose(&anchors);
}

static void a_leaf_of_a_clock_ahead_of_ours_counts(void **state)
{
    (void)state;
    AUTO_CERT old = make_ca(.cn = "old");
    AUTO_CERT fresh = make_ca(.cn = "new");
    AUTO_CERT leaf = make(.cn = "web", .issuer = old, .from_s = HOUR_S);
    const struct cr_pem_input previous = test_entry(old->cert_pem);
    const struct cr_bundle_leaf leaves[] = {leaf_of("web", leaf)};
    AUTO_BUNDLE bundle = {0};
    make_bundle(&(struct cr_bundle_input){test_entry(fresh->cert_pem), &previous, 1, 0, leaves, 1}, &bundle);
    assert_int_equal(bundle.previous, 1);
    assert_int_equal(bundle.beyond.len, 0);
}

static void what_has_expired_holds_nothing_up_and_is_reported(void **state)
{
    (void)state;
    AUTO_CERT expired = make_ca(.cn = "old", .from_s = -2 * DAY_S, .until_s = -DAY_S);
    AUTO_CERT old = make_ca(.cn = "older", .from_s = -2 * DAY_S);
    AUTO_CERT fresh = make_ca(.cn = "new");
    AUTO_CERT lost = make(.cn = "web", .issuer = expired, .from_s = -2 * DAY_S);
    AUTO_CERT late = make(.cn = "api", .issuer = old, .from_s = -2 * DAY_S, .until_s = -DAY_S);
    cr_autofree char *published = test_concat(expired->cert_pem, old->cert_pem, NULL);
    const struct cr_pem_input previous = test_entry(published);
    const struct cr_bundle_leaf leaves[] = {leaf_of("web", lost), leaf_of("api", late)};
    AUTO_BUNDLE bundle = {0};
    make_bundle(&(struct cr_bundle_input){test_entry(fresh->cert_pem), &previous, 1, 0, leaves, 2}, &bundle);
    assert_string_equal(bundle.pem, fresh->cert_pem);
    cr_autofree char *beyond = cr_strvec_join(&bundle.beyond, ", ");
    assert_string_equal(beyond, "web, api");
}

static void what_would_cut_a_leaf_off_or_is_nothing_is_refused(void **state)
{
    (void)state;
    AUTO_CERT fresh = make_ca(.cn = "new");
    AUTO_CERT old = make_ca(.cn = "old");
    AUTO_CERT elsewhere = make_ca(.cn = "elsewhere");
    AUTO_CERT expired = make_ca(.cn = "expired", .from_s = -2 * DAY_S, .until_s = -DAY_S);
    AUTO_CERT leaf = make(.cn = "web", .issuer = elsewhere);
    const struct cr_pem_input previous = test_entry(old->cert_pem);
    const struct cr_pem_input garbage = test_entry("garbage");
    const struct cr_bundle_leaf stranger[] = {leaf_of("pod web-0", leaf)};
    const struct cr_bundle_leaf forgotten[] = {{.name = "pod web-1"}};
    const struct cr_bundle_leaf broken[] = {{.name = "pod web-2", .chain = garbage}};
    const struct cr_pem_input current = test_entry(fresh->cert_pem);
    refuse(&(struct cr_bundle_input){current, &previous, 1, 1, stranger, 1},
           "the leaf of pod web-0 is in use and verifies against no CA at hand");
    refuse(&(struct cr_bundle_input){current, &previous, 1, 1, forgotten, 1}, "the leaf of pod web-1 is in use");
    refuse(&(struct cr_bundle_input){current, &previous, 1, 1, broken, 1}, "pod web-2: has no PEM block");
    refuse(&(struct cr_bundle_input){current, &garbage, 1, 1}, "a previous CA: has no PEM block");
    refuse(&(struct cr_bundle_input){garbage, &previous, 1, 1}, "the new CA: has no PEM block");
    refuse(&(struct cr_bundle_input){.previous = &previous, .previous_len = 1}, "the new CA: has no PEM block");
    refuse(&(struct cr_bundle_input){test_entry(expired->cert_pem), &previous, 1, 1}, "the new CA has expired");
}

/* Some 10 KiB. */
static char *fat_ca(int number)
{
    enum { NAMES = 240 };
    CR_CLEANUP(cr_buf) struct cr_buf names = {0};
    CR_CLEANUP(cr_buf) struct cr_buf pem = {0};
    struct cr_error err = {0};
    AUTO_CERT made = make_ca(.cn = "fat");
    for (int i = 0; i < NAMES; i++)
        cr_buf_printf(&names, "%sDNS:ca-%d-name-%d.example.com", i ? "," : "", number, i);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names.data);
    test_must(X509_add_ext(made->x509, extension, -1) && X509_sign(made->x509, made->key, EVP_sha256()) &&
                  cr_x509_write(made->x509, &pem, &err),
              "certificate", &err);
    X509_EXTENSION_free(extension);
    return cr_buf_steal(&pem);
}

static void a_bundle_that_no_secret_can_hold_is_refused(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf all = {0};
    for (int i = 0; all.len <= CR_BUNDLE_BYTES_MAX; i++) {
        cr_autofree char *pem = fat_ca(i);
        cr_buf_puts(&all, pem);
    }
    refuse(&(struct cr_bundle_input){.current = {all.data, all.len}}, "the bundle is too large");
}

static void what_a_cross_certificate_bridges_needs_no_old_ca(void **state)
{
    (void)state;
    AUTO_CERT old = make_ca(.cn = "old");
    AUTO_CERT fresh = make_ca(.cn = "new");
    AUTO_CERT cross = make_ca(.cn = "new", .key_of = fresh, .issuer = old);
    AUTO_CERT leaf = make(.cn = "web", .issuer = fresh);
    cr_autofree char *chain = test_concat(leaf->cert_pem, cross->cert_pem, NULL);
    const struct cr_pem_input previous = test_entry(old->cert_pem);
    const struct cr_bundle_leaf leaves[] = {{.name = "web", .chain = test_entry(chain)}};
    AUTO_BUNDLE bundle = {0};
    make_bundle(&(struct cr_bundle_input){test_entry(fresh->cert_pem), &previous, 1, 0, leaves, 1}, &bundle);
    assert_string_equal(bundle.pem, fresh->cert_pem);
    /* The other way round: while the old CA is the one to be trusted, it is enough for the leaf. */
    AUTO_BUNDLE back = {0};
    const struct cr_pem_input retired = test_entry(fresh->cert_pem);
    make_bundle(&(struct cr_bundle_input){test_entry(old->cert_pem), &retired, 1, 0, leaves, 1}, &back);
    assert_string_equal(back.pem, old->cert_pem);
}

/* --- clients with the whole bundle --- */

/* What clients trust so far, what is to be trusted, the leaf in use with what it is sent with, and the names that are
 * to be published: P1 to P3 of the generated PKIs that showed OpenSSL's clients cut off. */
static void expect_kept(const char *published, const char *current, size_t retain, const char *chain, const char *want)
{
    const struct cr_pem_input previous = test_entry(published);
    const struct cr_bundle_leaf leaf = {.name = "web", .chain = test_entry(chain)};
    AUTO_BUNDLE bundle = {0};
    make_bundle(&(struct cr_bundle_input){test_entry(current), &previous, 1, retain, &leaf, 1}, &bundle);
    assert_string_equal(bundle.pem, want);
    assert_int_equal(bundle.proof, CR_BUNDLE_PROVED);
    AUTO_BUNDLE again = {0};
    const struct cr_pem_input itself = test_entry(bundle.pem);
    make_bundle(&(struct cr_bundle_input){test_entry(current), &itself, 1, retain, &leaf, 1}, &again);
    assert_string_equal(again.pem, want);
}

/* ISRG X1 and DST X3: OpenSSL would go up by the certificate that A has signed, and find no A. */
static void a_cross_certificate_keeps_its_root(void **state)
{
    (void)state;
    AUTO_CERT a = make_ca(.cn = "A");
    AUTO_CERT x = make_ca(.cn = "X");
    AUTO_CERT cross = make_ca(.cn = "X", .key_of = x, .issuer = a);
    AUTO_CERT n = make_ca(.cn = "N");
    AUTO_CERT leaf = make(.cn = "web", .issuer = x);
    cr_autofree char *published = test_concat(cross->cert_pem, x->cert_pem, a->cert_pem, NULL);
    cr_autofree char *want = test_concat(n->cert_pem, cross->cert_pem, x->cert_pem, a->cert_pem, NULL);
    expect_kept(published, n->cert_pem, 0, leaf->cert_pem, want);
}

static void an_intermediate_keeps_the_root_that_clients_go_to(void **state)
{
    (void)state;
    AUTO_CERT r1 = make_ca(.cn = "R1");
    AUTO_CERT r2 = make_ca(.cn = "R2");
    AUTO_CERT by_r1 = make_ca(.cn = "I", .issuer = r1);
    AUTO_CERT by_r2 = make_ca(.cn = "I", .key_of = by_r1, .issuer = r2);
    AUTO_CERT leaf = make(.cn = "web", .issuer = by_r1);
    cr_autofree char *published = test_concat(by_r2->cert_pem, r2->cert_pem, NULL);
    cr_autofree char *chain = test_concat(leaf->cert_pem, by_r1->cert_pem, NULL);
    cr_autofree char *both = test_concat(r1->cert_pem, by_r2->cert_pem, r2->cert_pem, NULL);
    expect_kept(published, r1->cert_pem, 1, chain, both);
    /* The new CA leads to nothing, and would be taken first. */
    cr_autofree char *want = test_concat(by_r2->cert_pem, r2->cert_pem, by_r1->cert_pem, NULL);
    expect_kept(published, by_r1->cert_pem, 1, leaf->cert_pem, want);
}

/* Envoy takes the first of its name and key, valid or not. */
static void a_root_that_has_not_begun_replaces_none_and_stands_behind(void **state)
{
    (void)state;
    AUTO_CERT old = make_ca(.cn = "root");
    AUTO_CERT renewed = make_ca(.cn = "root", .key_of = old, .from_s = DAY_S / 2);
    AUTO_CERT leaf = make(.cn = "web", .issuer = old);
    cr_autofree char *want = test_concat(old->cert_pem, renewed->cert_pem, NULL);
    expect_kept(old->cert_pem, renewed->cert_pem, 0, leaf->cert_pem, want);
}

/* Only the signature distinguishes them, and no client goes back when it does not fit: the old one has to come
 * first. */
static void a_successor_that_clients_take_for_the_old_one_comes_last(void **state)
{
    (void)state;
    AUTO_CERT old = make_ca(.cn = "ca", .no_key_ids = true);
    AUTO_CERT fresh = make_ca(.cn = "ca", .no_key_ids = true);
    AUTO_CERT leaf = make(.cn = "web", .issuer = old, .no_key_ids = true);
    AUTO_CERT other = make(.cn = "api", .issuer = fresh, .no_key_ids = true);
    cr_autofree char *want = test_concat(old->cert_pem, fresh->cert_pem, NULL);
    expect_kept(old->cert_pem, fresh->cert_pem, 0, leaf->cert_pem, want);
    /* With leaves of both, each trusted by a bundle of its own, one would be cut off. */
    const struct cr_pem_input previous[] = {test_entry(old->cert_pem), test_entry(fresh->cert_pem)};
    const struct cr_bundle_leaf leaves[] = {leaf_of("web", leaf), leaf_of("api", other)};
    struct cr_error err = {0};
    AUTO_BUNDLE bundle;
    assert_false(
        try_make(&(struct cr_bundle_input){test_entry(fresh->cert_pem), previous, 2, 1, leaves, 2}, &bundle, &err));
    assert_int_equal(bundle.proof, CR_BUNDLE_WOULD_CUT_OFF);
    assert_non_null(strstr(err.text, "OpenSSL verifies its leaf with what is published"));
}

/* Nothing is retired while it is not known which leaf that would cut off. */
static void beyond_its_limits_all_that_is_published_stays(void **state)
{
    (void)state;
    enum { MANY = 70 };
    AUTO_CERT top = make_ca(.cn = "top");
    AUTO_CERT fresh = make_ca(.cn = "new");
    AUTO_CERT leaf = make(.cn = "web", .issuer = top);
    CR_CLEANUP(cr_buf) struct cr_buf published = CR_BUF_INIT(0);
    for (int i = 0; i < MANY; i++) {
        cr_autofree char *cn = cr_asprintf("other %d", i);
        AUTO_CERT other = make_ca(.cn = cn, .key_of = top);
        AUTO_CERT cross = make_ca(.cn = "top", .key_of = top, .issuer = other);
        cr_buf_puts(&published, cross->cert_pem);
    }
    const struct cr_pem_input previous = test_entry(published.data);
    const struct cr_bundle_leaf leaves[] = {leaf_of("web", leaf)};
    AUTO_BUNDLE bundle = {0};
    make_bundle(&(struct cr_bundle_input){test_entry(fresh->cert_pem), &previous, 1, 0, leaves, 1}, &bundle);
    assert_int_equal(bundle.proof, CR_BUNDLE_TOO_COSTLY);
    cr_autofree char *want = test_concat(published.data, fresh->cert_pem, NULL);
    assert_string_equal(bundle.pem, want);
}

/* Servers send it, and clients verify it. */
static void a_long_chain_is_beyond_them(void **state)
{
    (void)state;
    enum { MANY = 33 };
    AUTO_CERT old = make_ca(.cn = "old");
    AUTO_CERT fresh = make_ca(.cn = "new");
    AUTO_CERT leaf = make(.cn = "web", .issuer = old);
    CR_CLEANUP(cr_buf) struct cr_buf chain = CR_BUF_INIT(0);
    for (int i = 0; i < MANY; i++)
        cr_buf_puts(&chain, i ? fresh->cert_pem : leaf->cert_pem);
    const struct cr_pem_input previous = test_entry(old->cert_pem);
    const struct cr_bundle_leaf leaves[] = {{.name = "web", .chain = test_entry(cr_buf_text(&chain))}};
    AUTO_BUNDLE bundle = {0};
    make_bundle(&(struct cr_bundle_input){test_entry(fresh->cert_pem), &previous, 1, 0, leaves, 1, .strangers = true},
                &bundle);
    assert_int_equal(bundle.proof, CR_BUNDLE_TOO_COSTLY);
    cr_autofree char *want = test_concat(old->cert_pem, fresh->cert_pem, NULL);
    assert_string_equal(bundle.pem, want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_new_ca_then_the_previous_ones),
        cmocka_unit_test(the_ca_of_a_leaf_in_use_stays_beyond_the_limit),
        cmocka_unit_test(who_signed_is_known_by_the_signature),
        cmocka_unit_test(an_intermediate_stays_with_its_root),
        cmocka_unit_test(of_a_leaf_that_is_only_remembered_the_anchors_count),
        cmocka_unit_test(a_leaf_of_a_clock_ahead_of_ours_counts),
        cmocka_unit_test(what_has_expired_holds_nothing_up_and_is_reported),
        cmocka_unit_test(what_would_cut_a_leaf_off_or_is_nothing_is_refused),
        cmocka_unit_test(a_bundle_that_no_secret_can_hold_is_refused),
        cmocka_unit_test(what_a_cross_certificate_bridges_needs_no_old_ca),
        cmocka_unit_test(a_cross_certificate_keeps_its_root),
        cmocka_unit_test(an_intermediate_keeps_the_root_that_clients_go_to),
        cmocka_unit_test(a_root_that_has_not_begun_replaces_none_and_stands_behind),
        cmocka_unit_test(a_successor_that_clients_take_for_the_old_one_comes_last),
        cmocka_unit_test(beyond_its_limits_all_that_is_published_stays),
        cmocka_unit_test(a_long_chain_is_beyond_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
