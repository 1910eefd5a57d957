#include "pki/authority.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/err.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "pki/builder.h"
#include "pki/openssl_internal.h"
#include "pki/private_key_internal.h"
#include "support/issuing.h"
#include "support/testcerts.h"

enum { HOUR_S = 3600, DAY_S = 24 * HOUR_S };

#define AUTO_KEY  CR_CLEANUP(cr_private_key) struct cr_private_key *
#define AUTO_CA   CR_CLEANUP(cr_authority) struct cr_authority *
#define AUTO_X509 CR_CLEANUP(cr_x509) X509 *
#define AUTO_CERT CR_CLEANUP(test_cert) struct test_cert *
#define make(...) test_cert_new(&(struct test_cert_spec){__VA_ARGS__})

static void assert_extension(const X509 *cert, int nid, const char *want)
{
    cr_autofree char *text = test_extension(cert, nid);
    assert_string_equal(text, want);
}

/* --- new --- */

static void a_root_has_what_rfc_5280_asks_of_one(void **state)
{
    static const enum cr_key_algorithm algorithms[] = {CR_KEY_ECDSA, CR_KEY_RSA, CR_KEY_ED25519};
    (void)state;
    for (size_t i = 0; i < cr_array_len(algorithms); i++) {
        AUTO_KEY key = test_key(algorithms[i], 0);
        AUTO_CA ca = test_authority("shop CA", key, 1, TEST_NOW_MS, 10 * TEST_DAY);
        AUTO_X509 cert = test_certificate(cr_authority_certificate(ca), 0);
        assert_int_equal(X509_get_version(cert), X509_VERSION_3);
        assert_extension(cert, NID_basic_constraints, "critical, CA:TRUE, pathlen:1");
        assert_extension(cert, NID_key_usage, "critical, Certificate Sign, CRL Sign");
        assert_extension(cert, NID_authority_key_identifier, "");
        assert_int_equal(cr_x509_not_before_ms(cert), TEST_NOW_MS - 5 * TEST_MINUTE);
        assert_int_equal(cr_x509_not_after_ms(cert), TEST_NOW_MS + 10 * TEST_DAY);
        assert_int_equal(cr_authority_not_after_ms(ca), TEST_NOW_MS + 10 * TEST_DAY);
        assert_int_equal(X509_verify(cert, key->pkey), 1);
        assert_true(cr_x509_is_root(cert));
    }
}

static void without_a_path_length_there_is_none(void **state)
{
    (void)state;
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    AUTO_CA any = test_authority("any", key, CR_PATH_LENGTH_NONE, TEST_NOW_MS, TEST_DAY);
    AUTO_CA none = test_authority("none", key, 0, TEST_NOW_MS, TEST_DAY);
    AUTO_X509 any_cert = test_certificate(cr_authority_certificate(any), 0);
    AUTO_X509 none_cert = test_certificate(cr_authority_certificate(none), 0);
    assert_extension(any_cert, NID_basic_constraints, "critical, CA:TRUE");
    assert_extension(none_cert, NID_basic_constraints, "critical, CA:TRUE, pathlen:0");
}

/* RFC 7093, section 2, method 1. */
static void the_key_identifier_is_the_left_160_bits_of_a_sha_256(void **state)
{
    (void)state;
    unsigned char digest[EVP_MAX_MD_SIZE];
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 384);
    AUTO_CA ca = test_authority("a", key, 1, TEST_NOW_MS, TEST_DAY);
    AUTO_X509 cert = test_certificate(cr_authority_certificate(ca), 0);
    const ASN1_BIT_STRING *bits = X509_get0_pubkey_bitstr(cert);
    assert_true(EVP_Digest(bits->data, (size_t)bits->length, digest, NULL, EVP_sha256(), NULL));
    const ASN1_OCTET_STRING *id = X509_get0_subject_key_id(cert);
    assert_int_equal(ASN1_STRING_length(id), 20);
    assert_memory_equal(ASN1_STRING_get0_data(id), digest, 20);
}

static void serials_are_128_random_bits(void **state)
{
    (void)state;
    enum { MANY = 64 };
    struct cr_strvec seen = {0};
    int longest = 0;
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    for (int i = 0; i < MANY; i++) {
        AUTO_CA ca = test_authority("a", key, 1, TEST_NOW_MS, TEST_DAY);
        AUTO_X509 cert = test_certificate(cr_authority_certificate(ca), 0);
        BIGNUM *serial = ASN1_INTEGER_to_BN(X509_get0_serialNumber(cert), NULL);
        char *text = BN_bn2hex(serial);
        assert_false(BN_is_negative(serial) || BN_is_zero(serial));
        assert_true(BN_num_bits(serial) <= 128);
        longest = BN_num_bits(serial) > longest ? BN_num_bits(serial) : longest;
        assert_true(cr_strvec_add_unique(&seen, text));
        OPENSSL_free(text);
        BN_free(serial);
    }
    assert_int_equal(longest, 128); /* or else once in 2^64 runs */
    cr_strvec_dispose(&seen);
}

static void each_generation_has_a_subject_of_its_own(void **state)
{
    (void)state;
    AUTO_KEY first = test_key(CR_KEY_ECDSA, 0);
    AUTO_KEY second = test_key(CR_KEY_ECDSA, 0);
    AUTO_CA one = test_authority("shop CA", first, 1, TEST_NOW_MS, TEST_DAY);
    AUTO_CA renewed = test_authority("shop CA", first, 1, TEST_NOW_MS + TEST_HOUR, TEST_DAY);
    AUTO_CA two = test_authority("shop CA", second, 1, TEST_NOW_MS, TEST_DAY);
    AUTO_X509 a = test_certificate(cr_authority_certificate(one), 0);
    AUTO_X509 b = test_certificate(cr_authority_certificate(renewed), 0);
    AUTO_X509 c = test_certificate(cr_authority_certificate(two), 0);
    assert_int_equal(X509_NAME_cmp(X509_get_subject_name(a), X509_get_subject_name(b)), 0);
    assert_int_not_equal(X509_NAME_cmp(X509_get_subject_name(a), X509_get_subject_name(c)), 0);
    cr_autofree char *text = X509_NAME_oneline(X509_get_subject_name(a), NULL, 0);
    assert_true(cr_starts_with(text, "/CN=shop CA/serialNumber="));
}

static void what_a_ca_cannot_be_is_refused(void **state)
{
    static const struct {
        struct cr_authority_spec spec;
        const char *words;
    } cases[] = {
        {{NULL, TEST_DAY, 1}, "needs a common name"},
        {{"", TEST_DAY, 1}, "commonName of the subject is empty"},
        {{"a\nb", TEST_DAY, 1}, "control character"},
        {{"\xff", TEST_DAY, 1}, "must be UTF-8"},
        {{"a23456789-123456789-123456789-123456789-123456789-123456789-12345", TEST_DAY, 1}, "at most 64 characters"},
        {{"a", 0, 1}, "must be positive"},
        {{"a", INT64_MAX, 1}, "beyond the year 9999"},
        {{"a", INT64_C(260000000000000), 1}, "beyond the year 9999"},
        {{"a", TEST_DAY, -2}, "a path length is 0 or more"},
    };
    (void)state;
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        assert_null(cr_authority_new(&cases[i].spec, key, TEST_NOW_MS, &err));
        assert_int_equal(err.kind, CR_ERR_INVALID);
        if (!strstr(err.text, cases[i].words))
            fail_msg("want \"%s\", got: %s", cases[i].words, err.text);
        assert_int_equal(ERR_peek_error(), 0);
    }
}

static void times_from_2050_on_are_generalized(void **state)
{
    (void)state;
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    AUTO_CA ca = test_authority("a", key, 1, TEST_NOW_MS, 40 * 365 * TEST_DAY);
    AUTO_X509 cert = test_certificate(cr_authority_certificate(ca), 0);
    assert_int_equal(ASN1_STRING_type(X509_get0_notBefore(cert)), V_ASN1_UTCTIME);
    assert_int_equal(ASN1_STRING_type(X509_get0_notAfter(cert)), V_ASN1_GENERALIZEDTIME);
}

/* --- there --- */

static struct cr_authority *read_pair(const char *certificate, const char *key, struct cr_error *err)
{
    struct cr_pem_input cert_in = test_entry(certificate);
    struct cr_pem_input key_in = test_entry(key);
    struct cr_authority *ca = cr_authority_read(&cert_in, &key_in, cr_clock_wall_ms(), err);
    assert_int_equal(ERR_peek_error(), 0);
    return ca;
}

static void a_ca_of_others_is_read_with_those_above_it(void **state)
{
    static const char *const types[] = {"P-256", "P-384", "P-521", "RSA", "ED25519"};
    (void)state;
    for (size_t i = 0; i < cr_array_len(types); i++) {
        struct cr_error err = {0};
        AUTO_CERT root = make(.cn = "root", .ca = true, .key_type = types[i], .until_s = HOUR_S);
        AUTO_CERT middle = make(.cn = "middle", .ca = true, .issuer = root);
        cr_autofree char *chain = test_concat(middle->cert_pem, root->cert_pem, NULL);
        AUTO_CA alone = read_pair(root->cert_pem, root->key_pem, &err);
        assert_non_null(alone);
        AUTO_CA both = read_pair(chain, middle->key_pem, &err);
        assert_non_null(both);
        assert_string_equal(cr_authority_certificate(both), middle->cert_pem);
        /* The one above it ends first. */
        assert_int_equal(cr_authority_not_after_ms(both), cr_x509_not_after_ms(root->x509));
    }
}

/* A CA in all but keyUsage. */
static char *ca_that_may_not_sign(const struct cr_private_key *key)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_buf) struct cr_buf pem = {0};
    int64_t now_ms = cr_clock_wall_ms();
    CR_CLEANUP(cr_x509_name) X509_NAME *name = X509_NAME_new();
    test_must(cr_builder_subject(name, "a", NULL, &err), "name", &err);
    AUTO_X509 cert = cr_builder_new(key->pkey, name, NULL, &(struct cr_validity){now_ms, now_ms + TEST_DAY}, &err);
    test_must(cert && cr_builder_basic_constraints(cert, true, -1, &err) && cr_builder_key_usage(cert, false, &err) &&
                  cr_builder_sign(cert, key->pkey, &err) && cr_x509_write(cert, &pem, &err),
              "certificate", &err);
    return cr_buf_steal(&pem);
}

static void refuse(const char *certificate, const char *key, const char *words)
{
    struct cr_error err = {0};
    assert_null(read_pair(certificate, key, &err));
    assert_int_equal(err.kind, CR_ERR_INVALID);
    if (!strstr(err.text, words))
        fail_msg("want \"%s\", got: %s", words, err.text);
}

static void what_is_no_ca_that_can_sign_is_refused(void **state)
{
    (void)state;
    AUTO_CERT ca = make(.cn = "ca", .ca = true);
    AUTO_CERT other = make(.cn = "other", .ca = true);
    AUTO_CERT leaf = make(.cn = "leaf");
    AUTO_CERT expired = make(.cn = "old", .ca = true, .from_s = -2 * DAY_S, .until_s = -DAY_S);
    AUTO_CERT future = make(.cn = "new", .ca = true, .from_s = HOUR_S);
    AUTO_CERT weak = make(.cn = "weak", .ca = true, .key_type = "RSA-1024");
    AUTO_CERT middle = make(.cn = "middle", .ca = true, .issuer = expired);
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    cr_autofree char *key_pem = test_key_pem(key);
    cr_autofree char *mute = ca_that_may_not_sign(key);
    cr_autofree char *strangers = test_concat(ca->cert_pem, other->cert_pem, NULL);
    cr_autofree char *below_expired = test_concat(middle->cert_pem, expired->cert_pem, NULL);
    refuse(leaf->cert_pem, leaf->key_pem, "none of a CA (basicConstraints)");
    refuse(mute, key_pem, "keyUsage without keyCertSign");
    refuse(expired->cert_pem, expired->key_pem, "the CA expired at 20");
    refuse(future->cert_pem, future->key_pem, "the CA is not valid before 20");
    refuse(weak->cert_pem, weak->key_pem, "the CA cannot be used: an RSA key of 1024 bits is too weak");
    refuse(ca->cert_pem, other->key_pem, "does not belong to its certificate");
    refuse(strangers, ca->key_pem, "certificate 2 of the CA's chain is not the issuer");
    refuse(below_expired, middle->key_pem, "certificate 2 of the CA's chain: the CA expired");
    refuse("nothing", ca->key_pem, "the CA's certificate: ");
    refuse(ca->cert_pem, "nothing", "the CA's key: has no PEM block");
    refuse(ca->cert_pem, "", "the CA's key: ");
    cr_autofree char *encrypted = test_cert_key_as(ca, "PKCS#8 encrypted");
    refuse(ca->cert_pem, encrypted, "encrypted key");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_root_has_what_rfc_5280_asks_of_one),
        cmocka_unit_test(without_a_path_length_there_is_none),
        cmocka_unit_test(the_key_identifier_is_the_left_160_bits_of_a_sha_256),
        cmocka_unit_test(serials_are_128_random_bits),
        cmocka_unit_test(each_generation_has_a_subject_of_its_own),
        cmocka_unit_test(what_a_ca_cannot_be_is_refused),
        cmocka_unit_test(times_from_2050_on_are_generalized),
        cmocka_unit_test(a_ca_of_others_is_read_with_those_above_it),
        cmocka_unit_test(what_is_no_ca_that_can_sign_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
