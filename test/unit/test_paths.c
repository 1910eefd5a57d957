#include "pki/paths.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"
#include "support/testcerts.h"

enum { HOUR = 3600, MANY = 200 };

#define AUTO_CERT  CR_CLEANUP(test_cert) struct test_cert *
#define AUTO_PATHS CR_CLEANUP(cr_paths) struct cr_paths *
#define make(...)  test_cert_new(&(struct test_cert_spec){__VA_ARGS__})

/* What stands above a leaf in one case; owns its certificates. */
struct above {
    struct test_cert *certs[MANY];
    struct cr_paths_above items[MANY];
    size_t len;
};

static void above_cleanup(struct above *above)
{
    for (size_t i = 0; i < above->len; i++)
        test_cert_free(above->certs[i]);
}

#define AUTO_ABOVE __attribute__((cleanup(above_cleanup))) struct above

static struct test_cert *add(struct above *above, struct test_cert *cert)
{
    assert_true(above->len < MANY);
    above->certs[above->len] = cert;
    above->items[above->len++] = (struct cr_paths_above){.x509 = cert->x509, .between = true};
    return cert;
}

static struct cr_paths *paths_of(const struct test_cert *leaf, const struct above *above, struct cr_error *err)
{
    return cr_paths_new(leaf->x509, above->items, above->len, err);
}

static void refuse(const char *rule, const struct test_cert *leaf, const struct above *above, const char *words)
{
    struct cr_error err = {0};
    AUTO_PATHS paths = paths_of(leaf, above, &err);
    if (paths)
        fail_msg("%s: nothing is refused", rule);
    if (err.kind != CR_ERR_INVALID || !strstr(err.text, words))
        fail_msg("%s: want \"%s\", got %s", rule, words, err.text);
}

static bool verifies(struct cr_paths *paths, size_t anchor)
{
    struct cr_error err = {0};
    bool found = false;
    if (!cr_paths_verify(paths, anchor, CR_PATHS_NOW, cr_clock_wall_ms(), &found, NULL, &err))
        fail_msg("%s", err.text);
    return found;
}

/* A leaf under so many intermediates, each the issuer of the one before it; the last is the first of above. */
static struct test_cert *chain_of(struct above *above, int length)
{
    struct test_cert *issuer = add(above, make(.cn = "top", .ca = true));
    for (int i = 1; i < length; i++) {
        char cn[32];
        snprintf(cn, sizeof cn, "intermediate %d", i);
        issuer = add(above, make(.cn = cn, .ca = true, .issuer = issuer, .key_of = above->certs[0]));
    }
    return make(.cn = "leaf", .issuer = issuer);
}

/* Certificates of the CA on top by so many others: all are anchors of the whole chain. */
static void cross_sign_the_top(struct above *above, int count)
{
    const struct test_cert *top = above->certs[0];
    for (int i = 0; i < count; i++) {
        char cn[32];
        snprintf(cn, sizeof cn, "other %d", i);
        AUTO_CERT other = make(.cn = cn, .ca = true, .key_of = top);
        add(above, make(.cn = "top", .ca = true, .issuer = other, .key_of = top));
    }
}

/* --- what it answers --- */

static void a_leaf_verifies_against_what_stands_above_it(void **state)
{
    (void)state;
    AUTO_ABOVE above = {0};
    AUTO_CERT leaf = chain_of(&above, 3);
    size_t stranger = above.len;
    add(&above, make(.cn = "stranger", .ca = true));
    struct cr_error err = {0};
    AUTO_PATHS paths = paths_of(leaf, &above, &err);
    assert_non_null(paths);
    for (size_t i = 0; i < above.len; i++)
        assert_int_equal(verifies(paths, i), i != stranger);
    size_t issuer = above.len;
    bool found = false;
    assert_true(cr_paths_verify(paths, 0, CR_PATHS_NOW, cr_clock_wall_ms(), &found, &issuer, &err));
    assert_int_equal(issuer, 2);
    assert_true(cr_paths_find_signer(paths, &issuer, &err));
    assert_int_equal(issuer, 2);
}

/* A stranger's key is not even looked at. */
static void what_names_do_not_lead_to_costs_nothing(void **state)
{
    (void)state;
    AUTO_ABOVE above = {0};
    AUTO_CERT leaf = chain_of(&above, 1);
    for (int i = 0; i < 2 * CR_PATHS_CERTIFICATES_MAX; i++) {
        char cn[32];
        snprintf(cn, sizeof cn, "stranger %d", i);
        add(&above, make(.cn = cn, .ca = true, .key_of = above.certs[0]));
    }
    struct cr_error err = {0};
    AUTO_PATHS paths = paths_of(leaf, &above, &err);
    assert_non_null(paths);
    for (size_t i = 0; i < above.len; i++)
        assert_int_equal(verifies(paths, i), i == 0);
    assert_int_equal(cr_paths_signatures(paths), 2); /* the leaf, and OpenSSL's chain counts the anchor */
}

static void a_leaf_can_be_its_own_anchor(void **state)
{
    (void)state;
    AUTO_ABOVE above = {0};
    struct test_cert *leaf = add(&above, make(.cn = "leaf"));
    AUTO_CERT issued = make(.cn = "issued", .issuer = leaf);
    struct cr_error err = {0};
    AUTO_PATHS self_signed = paths_of(leaf, &above, &err);
    assert_true(verifies(self_signed, 0));
    AUTO_ABOVE pinned = {0};
    add(&pinned, make(.cn = "issued", .issuer = leaf));
    AUTO_PATHS trusted = paths_of(pinned.certs[0], &pinned, &err);
    assert_true(verifies(trusted, 0));
    AUTO_PATHS another = paths_of(issued, &pinned, &err);
    assert_false(verifies(another, 0));
}

/* The first of two certificates of one intermediate leads nowhere, and OpenSSL does not go back. */
static void a_way_is_found_that_is_not_the_first(void **state)
{
    (void)state;
    AUTO_ABOVE above = {0};
    AUTO_CERT absent = make(.cn = "absent", .ca = true);
    struct test_cert *astray = add(&above, make(.cn = "middle", .ca = true, .issuer = absent));
    struct test_cert *root = add(&above, make(.cn = "root", .ca = true));
    struct test_cert *upper = add(&above, make(.cn = "upper", .ca = true, .issuer = root));
    add(&above, make(.cn = "middle", .ca = true, .issuer = upper, .key_of = astray));
    AUTO_CERT leaf = make(.cn = "leaf", .issuer = astray);
    struct cr_error err = {0};
    AUTO_PATHS paths = paths_of(leaf, &above, &err);
    for (size_t i = 0; i < above.len; i++)
        assert_true(verifies(paths, i));
    size_t issuer = above.len;
    bool found = false;
    assert_true(cr_paths_verify(paths, 1, CR_PATHS_NOW, cr_clock_wall_ms(), &found, &issuer, &err));
    assert_int_equal(issuer, 3);
    above.items[3].between = false;
    AUTO_PATHS cut = paths_of(leaf, &above, &err);
    assert_false(verifies(cut, 1));
}

/* Each has signed the other, and neither leads to the root. */
static void a_loop_ends(void **state)
{
    (void)state;
    AUTO_ABOVE above = {0};
    AUTO_CERT one = make(.cn = "one", .ca = true);
    AUTO_CERT two = make(.cn = "two", .ca = true);
    add(&above, make(.cn = "one", .ca = true, .issuer = two, .key_of = one));
    add(&above, make(.cn = "two", .ca = true, .issuer = one, .key_of = two));
    add(&above, make(.cn = "root", .ca = true));
    AUTO_CERT leaf = make(.cn = "leaf", .issuer = one);
    struct cr_error err = {0};
    AUTO_PATHS paths = paths_of(leaf, &above, &err);
    assert_true(verifies(paths, 0) && verifies(paths, 1));
    assert_false(verifies(paths, 2));
}

/* Many ways up and none to the end: the one certificate that leads to the anchor, which may not have another CA below
 * it, is the first of each way. */
static void ways_without_an_end_are_not_all_tried(void **state)
{
    (void)state;
    enum { SIDES = 9 };
    AUTO_ABOVE above = {0};
    AUTO_CERT key_m = make(.cn = "M", .ca = true, .no_key_ids = true);
    AUTO_CERT key_p = make(.cn = "P", .ca = true, .no_key_ids = true);
    add(&above, make(.cn = "P", .ca = true, .issuer = key_m, .key_of = key_p, .no_key_ids = true));
    AUTO_CERT leaf = make(.cn = "leaf", .issuer = key_p, .no_key_ids = true);
    for (int i = 0; i < SIDES; i++) {
        add(&above, make(.cn = "M", .ca = true, .issuer = key_p, .key_of = key_m, .no_key_ids = true));
        add(&above, make(.cn = "P", .ca = true, .issuer = key_m, .key_of = key_p, .no_key_ids = true));
    }
    AUTO_CERT elsewhere = make(.cn = "M", .ca = true);
    add(&above, make(.cn = "M", .ca = true, .key_of = elsewhere, .no_key_ids = true));
    struct cr_error err = {0};
    AUTO_PATHS paths = paths_of(leaf, &above, &err);
    assert_non_null(paths);
    bool found = false;
    int64_t began = cr_clock_monotonic_ms();
    (void)!cr_paths_verify(paths, above.len - 1, CR_PATHS_NOW, cr_clock_wall_ms(), &found, NULL, &err);
    assert_false(found);
    assert_true(cr_paths_signatures(paths) <= CR_PATHS_SIGNATURES_MAX + CR_PATHS_CERTIFICATES_MAX);
    assert_true(cr_clock_monotonic_ms() - began < 60 * 1000);
}

static void what_may_only_be_an_anchor_stands_in_between_nothing(void **state)
{
    (void)state;
    AUTO_ABOVE above = {0};
    AUTO_CERT leaf = chain_of(&above, 2);
    above.items[1].between = false;
    struct cr_error err = {0};
    AUTO_PATHS paths = paths_of(leaf, &above, &err);
    assert_false(verifies(paths, 0));
    assert_true(verifies(paths, 1));
}

static void times_are_looked_at_as_asked(void **state)
{
    (void)state;
    AUTO_ABOVE above = {0};
    struct test_cert *early = add(&above, make(.cn = "ca", .ca = true, .from_s = HOUR));
    AUTO_CERT leaf = make(.cn = "leaf", .issuer = early);
    struct cr_error err = {0};
    AUTO_PATHS paths = paths_of(leaf, &above, &err);
    static const struct {
        enum cr_paths_time when;
        int later_s;
        bool verifies;
    } cases[] = {
        {CR_PATHS_NOW, 0, false},       {CR_PATHS_NOW, HOUR - 4 * 60, true},    {CR_PATHS_NOW, HOUR - 6 * 60, false},
        {CR_PATHS_WHEN_BOTH, 0, true},  {CR_PATHS_AT_NO_TIME, 0, true},         {CR_PATHS_WHEN_BOTH, 48 * HOUR, false},
        {CR_PATHS_NOW, 2 * HOUR, true}, {CR_PATHS_AT_NO_TIME, 48 * HOUR, true},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        bool found = false;
        int64_t at_ms = cr_clock_wall_ms() + cases[i].later_s * 1000LL;
        assert_true(cr_paths_verify(paths, 0, cases[i].when, at_ms, &found, NULL, &err));
        if (found != cases[i].verifies)
            fail_msg("case %zu: %d", i, found);
    }
}

/* --- what it refuses --- */

static void at_most_64_certificates_may_stand_above_a_leaf(void **state)
{
    (void)state;
    AUTO_ABOVE above = {0};
    AUTO_CERT leaf = chain_of(&above, 2);
    cross_sign_the_top(&above, CR_PATHS_CERTIFICATES_MAX - 2);
    struct cr_error err = {0};
    AUTO_PATHS most = paths_of(leaf, &above, &err);
    assert_non_null(most);
    cross_sign_the_top(&above, 1);
    refuse("one more", leaf, &above, "more than 64 certificates may stand above the leaf");
}

/* Each anchor has a chain of its own, all of which is checked. */
static void at_most_256_signatures_are_checked_for_a_leaf(void **state)
{
    (void)state;
    AUTO_ABOVE above = {0};
    AUTO_CERT leaf = chain_of(&above, 20);
    cross_sign_the_top(&above, CR_PATHS_CERTIFICATES_MAX - 20);
    struct cr_error err = {0};
    AUTO_PATHS paths = paths_of(leaf, &above, &err);
    assert_non_null(paths);
    bool ok = true;
    for (size_t i = 0; ok && i < above.len; i++) {
        bool found;
        ok = cr_paths_verify(paths, i, CR_PATHS_NOW, cr_clock_wall_ms(), &found, NULL, &err);
    }
    assert_false(ok);
    assert_int_equal(err.kind, CR_ERR_INVALID);
    assert_non_null(strstr(err.text, "more than 256 signatures"));
    assert_in_range(cr_paths_signatures(paths), CR_PATHS_SIGNATURES_MAX,
                    CR_PATHS_SIGNATURES_MAX + CR_PATHS_CERTIFICATES_MAX);
    size_t signer;
    assert_false(cr_paths_find_signer(paths, &signer, &err));
}

/* An issuer's certificate with another key in it, as it is read: that it verifies nothing is not the point. */
static struct test_cert *with_key(const char *cn, EVP_PKEY *key)
{
    struct test_cert *cert = make(.cn = cn, .ca = true);
    assert_int_equal(X509_set_pubkey(cert->x509, key), 1);
    EVP_PKEY_free(key);
    assert_true(X509_sign(cert->x509, cert->key, EVP_sha256()) > 0);
    unsigned char *der = NULL;
    int len = i2d_X509(cert->x509, &der);
    const unsigned char *at = der;
    X509_free(cert->x509);
    cert->x509 = d2i_X509(NULL, &at, len);
    OPENSSL_free(der);
    assert_non_null(cert->x509);
    return cert;
}

static EVP_PKEY *explicit_curve(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    assert_int_equal(EVP_PKEY_set_utf8_string_param(key, OSSL_PKEY_PARAM_EC_ENCODING, "explicit"), 1);
    return key;
}

static void keys_that_cost_too_much_are_refused_only_above_the_leaf(void **state)
{
    (void)state;
    const struct {
        const char *rule;
        EVP_PKEY *key; /* taken */
        const char *words;
    } cases[] = {
        {"RSA, 8193 bits", test_rsa_public(8193, 17), "an RSA key of 8193 bits costs too much: at most 8192"},
        {"RSA, a long exponent", test_rsa_public(2048, 65), "public exponent of 65 bits costs too much: at most 64"},
        {"a curve without a name", explicit_curve(), "a curve without a name"},
        {"a binary field", EVP_EC_gen("sect571r1"), "a curve over a binary field"},
        {"RSA, the most", test_rsa_public(8192, 64), NULL},
        {"a slow curve", EVP_EC_gen("brainpoolP512r1"), NULL},
        {"P-521", EVP_EC_gen("P-521"), NULL},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        AUTO_ABOVE above = {0};
        struct test_cert *ca = add(&above, with_key("ca", cases[i].key));
        AUTO_CERT signer = make(.cn = "ca", .ca = true, .key_of = ca);
        AUTO_CERT below = make(.cn = "leaf", .issuer = signer);
        AUTO_CERT elsewhere = make(.cn = "leaf");
        struct cr_error err = {0};
        if (cases[i].words)
            refuse(cases[i].rule, below, &above, cases[i].words);
        else {
            AUTO_PATHS paths = paths_of(below, &above, &err);
            if (!paths)
                fail_msg("%s: %s", cases[i].rule, err.text);
        }
        AUTO_PATHS apart = paths_of(elsewhere, &above, &err);
        assert_non_null(apart);
    }
}

static void set_extension(struct test_cert *cert, int nid, const char *name, size_t count)
{
    CR_CLEANUP(cr_buf) struct cr_buf value = {0};
    for (size_t i = 0; i < count; i++)
        cr_buf_printf(&value, "%s%s%zu.example", i ? "," : "", name, i);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value.data);
    assert_non_null(extension);
    X509_add_ext(cert->x509, extension, -1);
    X509_EXTENSION_free(extension);
    assert_true(X509_sign(cert->x509, cert->key, EVP_sha256()) > 0);
}

/* OpenSSL goes through a name once for each constraint: many names and one long name cost the same. */
static void names_and_their_constraints_have_a_product(void **state)
{
    (void)state;
    enum { LONG = 50000 };
    static const struct {
        size_t names, constraints;
        bool is_long;
        bool over;
    } cases[] = {{100, 1000, false, false},
                 {3000, 0, false, false},
                 {3000, 1500, false, true},
                 {1, 1500, true, true},
                 {1, 40, true, false}};
    cr_autofree char *local = cr_malloc(LONG + 1);
    memset(local, 'a', LONG);
    local[LONG] = '\0';
    cr_autofree char *address = cr_asprintf("email:%s@", local);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        AUTO_ABOVE above = {0};
        struct test_cert *ca = add(&above, make(.cn = "ca", .ca = true));
        AUTO_CERT leaf = make(.cn = "leaf", .issuer = ca);
        if (cases[i].constraints)
            set_extension(ca, NID_name_constraints, "permitted;DNS:", cases[i].constraints);
        set_extension(leaf, NID_subject_alt_name, cases[i].is_long ? address : "DNS:", cases[i].names);
        struct cr_error err = {0};
        bool found = false;
        AUTO_PATHS paths = paths_of(leaf, &above, &err);
        assert_non_null(paths);
        bool ok = cr_paths_verify(paths, 0, CR_PATHS_NOW, cr_clock_wall_ms(), &found, NULL, &err);
        if (ok == cases[i].over || (!ok && !strstr(err.text, "more than 67108864 steps")))
            fail_msg("case %zu: %d %s", i, ok, err.text);
    }
}

static void a_certificate_has_at_most_64_kib(void **state)
{
    (void)state;
    AUTO_ABOVE above = {0};
    struct test_cert *ca = add(&above, make(.cn = "ca", .ca = true));
    AUTO_CERT small = make(.cn = "leaf", .issuer = ca);
    AUTO_CERT large = make(.cn = "leaf", .issuer = ca);
    set_extension(large, NID_subject_alt_name, "DNS:a-name-of-some-length-", 3000);
    refuse("a large leaf", large, &above, "more than the 65536 that are verified");
    set_extension(ca, NID_subject_alt_name, "DNS:a-name-of-some-length-", 3000);
    refuse("a large CA", small, &above, "more than the 65536 that are verified");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leaf_verifies_against_what_stands_above_it),
        cmocka_unit_test(what_names_do_not_lead_to_costs_nothing),
        cmocka_unit_test(a_leaf_can_be_its_own_anchor),
        cmocka_unit_test(a_way_is_found_that_is_not_the_first),
        cmocka_unit_test(a_loop_ends),
        cmocka_unit_test(ways_without_an_end_are_not_all_tried),
        cmocka_unit_test(what_may_only_be_an_anchor_stands_in_between_nothing),
        cmocka_unit_test(times_are_looked_at_as_asked),
        cmocka_unit_test(at_most_64_certificates_may_stand_above_a_leaf),
        cmocka_unit_test(at_most_256_signatures_are_checked_for_a_leaf),
        cmocka_unit_test(keys_that_cost_too_much_are_refused_only_above_the_leaf),
        cmocka_unit_test(names_and_their_constraints_have_a_product),
        cmocka_unit_test(a_certificate_has_at_most_64_kib),
    };
    return cmocka_run_group_tests_name("paths", tests, NULL, NULL);
}
