#include "pki/cross_sign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/err.h>

#include "base/clock.h"
#include "base/strings.h"
#include "pki/authority_internal.h"
#include "pki/builder.h"
#include "pki/paths.h"
#include "pki/private_key_internal.h"
#include "support/issuing.h"
#include "support/testcerts.h"

#define AUTO_KEY    CR_CLEANUP(cr_private_key) struct cr_private_key *
#define AUTO_CA     CR_CLEANUP(cr_authority) struct cr_authority *
#define AUTO_X509   CR_CLEANUP(cr_x509) X509 *
#define AUTO_ISSUED CR_CLEANUP(cr_issued) struct cr_issued

enum { NONE = CR_PATH_LENGTH_NONE };

static bool cross(const struct cr_authority *old, const char *fresh, int64_t now_ms, struct cr_issued *out,
                  struct cr_error *err)
{
    struct cr_pem_input in = test_entry(fresh);
    bool done = cr_cross_sign(old, &in, now_ms, out, err);
    assert_int_equal(ERR_peek_error(), 0);
    return done;
}

static void refuse(const struct cr_authority *old, const char *fresh, int64_t now_ms, const char *words)
{
    struct cr_error err = {0};
    struct cr_issued out;
    if (cross(old, fresh, now_ms, &out, &err))
        fail_msg("was signed, where \"%s\" was expected", words);
    assert_int_equal(err.kind, CR_ERR_INVALID);
    if (!strstr(err.text, words))
        fail_msg("want \"%s\", got: %s", words, err.text);
    assert_null(out.pem);
}

static void it_is_the_new_ca_s_name_and_key_under_the_old_ca(void **state)
{
    static const enum cr_key_algorithm algorithms[] = {CR_KEY_ECDSA, CR_KEY_RSA, CR_KEY_ED25519};
    (void)state;
    for (size_t i = 0; i < cr_array_len(algorithms); i++) {
        struct cr_error err = {0};
        AUTO_KEY old_key = test_key(algorithms[i], 0);
        AUTO_KEY key = test_key(algorithms[(i + 1) % 3], 0);
        AUTO_CA old = test_authority("shop CA", old_key, 1, TEST_NOW_MS, 10 * TEST_DAY);
        AUTO_CA fresh = test_authority("shop CA", key, 1, TEST_NOW_MS, 20 * TEST_DAY);
        AUTO_ISSUED issued = {0};
        assert_true(cross(old, cr_authority_certificate(fresh), TEST_NOW_MS + TEST_HOUR, &issued, &err));
        AUTO_X509 cert = test_certificate(issued.pem, 0);
        AUTO_X509 old_cert = test_certificate(cr_authority_certificate(old), 0);
        AUTO_X509 new_cert = test_certificate(cr_authority_certificate(fresh), 0);
        assert_int_equal(X509_NAME_cmp(X509_get_subject_name(cert), X509_get_subject_name(new_cert)), 0);
        assert_int_equal(X509_NAME_cmp(X509_get_issuer_name(cert), X509_get_subject_name(old_cert)), 0);
        assert_int_equal(EVP_PKEY_eq(X509_get0_pubkey(cert), X509_get0_pubkey(new_cert)), 1);
        assert_int_equal(X509_verify(cert, old_key->pkey), 1);
        assert_int_equal(ASN1_OCTET_STRING_cmp(X509_get0_subject_key_id(cert), X509_get0_subject_key_id(new_cert)), 0);
        assert_int_equal(ASN1_OCTET_STRING_cmp(X509_get0_authority_key_id(cert), X509_get0_subject_key_id(old_cert)),
                         0);
        assert_int_not_equal(ASN1_INTEGER_cmp(X509_get0_serialNumber(cert), X509_get0_serialNumber(new_cert)), 0);
        assert_int_not_equal(ASN1_INTEGER_cmp(X509_get0_serialNumber(cert), X509_get0_serialNumber(old_cert)), 0);
    }
}

/* The one that its leaves name, whatever way it was made. test_cert makes it by SHA-1. */
static void the_key_identifier_is_the_new_ca_s_own(void **state)
{
    (void)state;
    struct cr_error err = {0};
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    AUTO_CA old = test_authority("old", key, 1, cr_clock_wall_ms(), TEST_DAY);
    CR_CLEANUP(test_cert) struct test_cert *fresh = test_cert_new(&(struct test_cert_spec){.cn = "new", .ca = true});
    AUTO_ISSUED issued = {0};
    assert_true(cross(old, fresh->cert_pem, cr_clock_wall_ms(), &issued, &err));
    AUTO_X509 cert = test_certificate(issued.pem, 0);
    assert_int_equal(ASN1_OCTET_STRING_cmp(X509_get0_subject_key_id(cert), X509_get0_subject_key_id(fresh->x509)), 0);
}

static void path_lengths_are_those_of_both(void **state)
{
    static const struct {
        int old, fresh;
        const char *constraints; /* NULL: refused */
    } cases[] = {
        {NONE, NONE, "critical, CA:TRUE"},
        {NONE, 0, "critical, CA:TRUE, pathlen:0"},
        {NONE, 3, "critical, CA:TRUE, pathlen:3"},
        {0, NONE, NULL},
        {0, 0, NULL},
        {1, NONE, "critical, CA:TRUE, pathlen:0"},
        {1, 1, "critical, CA:TRUE, pathlen:0"},
        {3, 1, "critical, CA:TRUE, pathlen:1"},
        {3, NONE, "critical, CA:TRUE, pathlen:2"},
    };
    (void)state;
    AUTO_KEY old_key = test_key(CR_KEY_ECDSA, 0);
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        AUTO_CA old = test_authority("old", old_key, cases[i].old, TEST_NOW_MS, TEST_DAY);
        AUTO_CA fresh = test_authority("new", key, cases[i].fresh, TEST_NOW_MS, TEST_DAY);
        AUTO_ISSUED issued = {0};
        if (!cases[i].constraints) {
            refuse(old, cr_authority_certificate(fresh), TEST_NOW_MS,
                   "it has a path length of 0, which leaves no room for another CA below it");
            continue;
        }
        assert_true(cross(old, cr_authority_certificate(fresh), TEST_NOW_MS, &issued, &err));
        AUTO_X509 cert = test_certificate(issued.pem, 0);
        cr_autofree char *text = test_extension(cert, NID_basic_constraints);
        assert_string_equal(text, cases[i].constraints);
    }
}

static void it_ends_with_whichever_ends_first(void **state)
{
    static const struct {
        int64_t old_ms, fresh_ms, until_ms;
        bool clamped;
    } cases[] = {
        {2 * TEST_DAY, TEST_DAY, TEST_DAY, false},
        {TEST_DAY, TEST_DAY, TEST_DAY, false},
        {TEST_DAY, 2 * TEST_DAY, TEST_DAY, true},
    };
    (void)state;
    AUTO_KEY old_key = test_key(CR_KEY_ECDSA, 0);
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        AUTO_CA old = test_authority("old", old_key, 1, TEST_NOW_MS, cases[i].old_ms);
        AUTO_CA fresh = test_authority("new", key, 1, TEST_NOW_MS, cases[i].fresh_ms);
        AUTO_ISSUED issued = {0};
        assert_true(cross(old, cr_authority_certificate(fresh), TEST_NOW_MS, &issued, &err));
        assert_int_equal(issued.not_before_ms, TEST_NOW_MS - 5 * TEST_MINUTE);
        assert_int_equal(issued.not_after_ms, TEST_NOW_MS + cases[i].until_ms);
        assert_int_equal(issued.clamped, cases[i].clamped);
    }
}

static void what_bridges_nothing_or_confuses_verifiers_is_refused(void **state)
{
    (void)state;
    int64_t now_ms = cr_clock_wall_ms();
    struct cr_error err = {0};
    CR_CLEANUP(test_cert) struct test_cert *one = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
    CR_CLEANUP(test_cert) struct test_cert *namesake = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
    CR_CLEANUP(test_cert)
    struct test_cert *renewed = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true, .key_of = one});
    CR_CLEANUP(test_cert) struct test_cert *leaf = test_cert_new(&(struct test_cert_spec){.cn = "leaf"});
    CR_CLEANUP(test_cert)
    struct test_cert *gone =
        test_cert_new(&(struct test_cert_spec){.cn = "gone", .ca = true, .from_s = -7200, .until_s = -3600});
    struct cr_pem_input cert_in = test_entry(one->cert_pem);
    struct cr_pem_input key_in = test_entry(one->key_pem);
    AUTO_CA old = cr_authority_read(&cert_in, &key_in, now_ms, &err);
    refuse(old, one->cert_pem, now_ms, "has the key of the old one");
    refuse(old, renewed->cert_pem, now_ms, "has the key of the old one");
    refuse(old, namesake->cert_pem, now_ms, "has the subject of the old one, but another key");
    refuse(old, leaf->cert_pem, now_ms, "the new CA: the CA's certificate is none of a CA");
    refuse(old, gone->cert_pem, now_ms, "the new CA: the CA expired at");
    refuse(old, "", now_ms, "the new CA's certificate: has no PEM block");
    refuse(old, namesake->cert_pem, now_ms + 2 * TEST_DAY, "the old CA: the CA expired at");
}

static void what_stands_above_the_old_ca_limits_it_as_well(void **state)
{
    (void)state;
    int64_t now_ms = cr_clock_wall_ms();
    struct cr_error err = {0};
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    AUTO_CA fresh = test_authority("new", key, NONE, now_ms, 10 * TEST_DAY);
    CR_CLEANUP(test_cert)
    struct test_cert *root = test_cert_new(&(struct test_cert_spec){.cn = "root", .ca = true, .until_s = 3600});
    CR_CLEANUP(test_cert)
    struct test_cert *middle = test_cert_new(&(struct test_cert_spec){.cn = "middle", .ca = true, .issuer = root});
    cr_autofree char *chain = test_concat(middle->cert_pem, root->cert_pem, NULL);
    struct cr_pem_input cert_in = test_entry(chain);
    struct cr_pem_input key_in = test_entry(middle->key_pem);
    AUTO_CA old = cr_authority_read(&cert_in, &key_in, now_ms, &err);
    AUTO_ISSUED issued = {0};
    assert_true(cross(old, cr_authority_certificate(fresh), now_ms, &issued, &err));
    assert_true(issued.clamped);
    assert_int_equal(issued.not_after_ms, cr_x509_not_after_ms(root->x509));
    assert_true(cr_ends_with(issued.pem, middle->cert_pem));
    assert_null(strstr(issued.pem, root->cert_pem));
    refuse(old, cr_authority_certificate(fresh), now_ms + 2 * TEST_HOUR, "above the old CA: the CA expired at");
}

/* A CA without a path length of its own, below a root that has one. */
static struct cr_authority *intermediate_below(int root_path_length)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_buf) struct cr_buf pem = {0};
    AUTO_KEY root_key = test_key(CR_KEY_ECDSA, 0);
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    AUTO_CA root = test_authority("root", root_key, root_path_length, TEST_NOW_MS, TEST_DAY);
    AUTO_X509 root_cert = test_certificate(cr_authority_certificate(root), 0);
    CR_CLEANUP(cr_x509_name) X509_NAME *name = X509_NAME_new();
    test_must(cr_builder_subject(name, "middle", NULL, &err), "name", &err);
    const struct cr_validity validity = {TEST_NOW_MS, TEST_NOW_MS + TEST_DAY};
    AUTO_X509 cert = cr_builder_new(key->pkey, name, root_cert, &validity, &err);
    test_must(cert && cr_builder_basic_constraints(cert, true, NONE, &err) && cr_builder_key_usage(cert, true, &err) &&
                  cr_builder_sign(cert, root_key->pkey, &err) && cr_x509_write(cert, &pem, &err) &&
                  cr_x509_write(root_cert, &pem, &err),
              "chain", &err);
    cr_autofree char *key_pem = test_key_pem(key);
    struct cr_pem_input key_in = test_entry(key_pem);
    struct cr_authority *ca = cr_authority_read(&(struct cr_pem_input){pem.data, pem.len}, &key_in, TEST_NOW_MS, &err);
    test_must(ca, "authority", &err);
    return ca;
}

static void path_lengths_above_the_old_ca_count(void **state)
{
    (void)state;
    struct cr_error err = {0};
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    AUTO_CA fresh = test_authority("new", key, NONE, TEST_NOW_MS, TEST_DAY);
    AUTO_CA narrow = intermediate_below(1);
    AUTO_CA wide = intermediate_below(2);
    refuse(narrow, cr_authority_certificate(fresh), TEST_NOW_MS,
           "one above it has a path length of 1, which leaves no");
    AUTO_ISSUED issued = {0};
    assert_true(cross(wide, cr_authority_certificate(fresh), TEST_NOW_MS, &issued, &err));
    AUTO_X509 cert = test_certificate(issued.pem, 0);
    cr_autofree char *text = test_extension(cert, NID_basic_constraints);
    assert_string_equal(text, "critical, CA:TRUE, pathlen:0");
}

/* A root with one more extension, as text of OpenSSL's configuration; nid 0: an unknown one. PEM. */
static char *root_with(int nid, const char *value)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_buf) struct cr_buf pem = {0};
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    CR_CLEANUP(cr_x509_name) X509_NAME *name = X509_NAME_new();
    test_must(cr_builder_subject(name, "limited", NULL, &err), "name", &err);
    const struct cr_validity validity = {TEST_NOW_MS, TEST_NOW_MS + TEST_DAY};
    AUTO_X509 cert = cr_builder_new(key->pkey, name, NULL, &validity, &err);
    X509_EXTENSION *extension =
        nid ? X509V3_EXT_conf_nid(NULL, NULL, nid, value) : X509V3_EXT_conf(NULL, NULL, "1.2.3.4", value);
    test_must(cert && extension && X509_add_ext(cert, extension, -1) &&
                  cr_builder_basic_constraints(cert, true, -1, &err) && cr_builder_key_usage(cert, true, &err) &&
                  cr_builder_sign(cert, key->pkey, &err) && cr_x509_write(cert, &pem, &err),
              "root", &err);
    X509_EXTENSION_free(extension);
    return cr_buf_steal(&pem);
}

static void what_limits_the_new_ca_limits_the_cross_certificate(void **state)
{
    static const struct {
        int nid;
        const char *value;
    } cases[] = {{NID_name_constraints, "critical,permitted;DNS:shop.svc"}, {NID_ext_key_usage, "clientAuth"}};
    (void)state;
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    AUTO_CA old = test_authority("old", key, 1, TEST_NOW_MS, TEST_DAY);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        cr_autofree char *fresh = root_with(cases[i].nid, cases[i].value);
        AUTO_ISSUED issued = {0};
        assert_true(cross(old, fresh, TEST_NOW_MS, &issued, &err));
        AUTO_X509 cert = test_certificate(issued.pem, 0);
        AUTO_X509 from = test_certificate(fresh, 0);
        cr_autofree char *has = test_extension(cert, cases[i].nid);
        cr_autofree char *had = test_extension(from, cases[i].nid);
        assert_true(*had);
        assert_string_equal(has, had);
    }
    cr_autofree char *unknown = root_with(0, "critical,DER:0500");
    refuse(old, unknown, TEST_NOW_MS, "the critical extension 1.2.3.4, which cannot be carried over");
    cr_autofree char *harmless = root_with(0, "DER:0500");
    struct cr_error err = {0};
    AUTO_ISSUED issued = {0};
    assert_true(cross(old, harmless, TEST_NOW_MS, &issued, &err));
}

static char *names[] = {(char[]){"web"}};
static const struct cr_strvec web = {names, 1, 1};

static bool chains_to(X509 *leaf, X509 *bridge, X509 *anchor, int64_t now_ms)
{
    const struct cr_paths_above above[] = {{.x509 = anchor}, {.x509 = bridge, .between = true}};
    bool verifies = false;
    struct cr_error err = {0};
    CR_CLEANUP(cr_paths) struct cr_paths *paths = cr_paths_new(leaf, above, bridge ? 2 : 1, &err);
    assert_non_null(paths);
    assert_true(cr_paths_verify(paths, 0, CR_PATHS_NOW, now_ms, &verifies, NULL, &err));
    return verifies;
}

/* What the cross-certificate is for, and when it ends. */
static void who_trusts_only_the_old_ca_takes_leaves_of_the_new_one(void **state)
{
    (void)state;
    struct cr_error err = {0};
    AUTO_KEY old_key = test_key(CR_KEY_ECDSA, 0);
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    AUTO_CA old = test_authority("shop CA", old_key, 1, TEST_NOW_MS, TEST_DAY);
    AUTO_CA fresh = test_authority("shop CA", key, 1, TEST_NOW_MS, 2 * TEST_DAY);
    AUTO_ISSUED issued = {0};
    AUTO_ISSUED leaf = {0};
    assert_true(cross(old, cr_authority_certificate(fresh), TEST_NOW_MS, &issued, &err));
    const struct cr_leaf_spec spec = {.dns_names = &web, .usages = CR_LEAF_SERVER, .duration_ms = 2 * TEST_DAY};
    assert_true(cr_issue_leaf(fresh, &spec, key, TEST_NOW_MS, &leaf, &err));
    AUTO_X509 leaf_cert = test_certificate(leaf.pem, 0);
    AUTO_X509 old_cert = test_certificate(cr_authority_certificate(old), 0);
    AUTO_X509 new_cert = test_certificate(cr_authority_certificate(fresh), 0);
    AUTO_X509 bridge = test_certificate(issued.pem, 0);
    int64_t now_ms = TEST_NOW_MS + TEST_HOUR;
    assert_true(chains_to(leaf_cert, bridge, old_cert, now_ms));
    assert_true(chains_to(leaf_cert, bridge, new_cert, now_ms));
    assert_false(chains_to(leaf_cert, NULL, old_cert, now_ms));
    assert_false(chains_to(leaf_cert, bridge, old_cert, now_ms + TEST_DAY));
    assert_true(chains_to(leaf_cert, bridge, new_cert, now_ms + TEST_DAY));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_new_ca_s_name_and_key_under_the_old_ca),
        cmocka_unit_test(the_key_identifier_is_the_new_ca_s_own),
        cmocka_unit_test(path_lengths_are_those_of_both),
        cmocka_unit_test(it_ends_with_whichever_ends_first),
        cmocka_unit_test(what_bridges_nothing_or_confuses_verifiers_is_refused),
        cmocka_unit_test(what_stands_above_the_old_ca_limits_it_as_well),
        cmocka_unit_test(path_lengths_above_the_old_ca_count),
        cmocka_unit_test(what_limits_the_new_ca_limits_the_cross_certificate),
        cmocka_unit_test(who_trusts_only_the_old_ca_takes_leaves_of_the_new_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
