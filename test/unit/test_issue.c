#include "pki/issue.h"

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
#include "pki/private_key_internal.h"
#include "support/issuing.h"
#include "support/testcerts.h"

#define AUTO_KEY    CR_CLEANUP(cr_private_key) struct cr_private_key *
#define AUTO_CA     CR_CLEANUP(cr_authority) struct cr_authority *
#define AUTO_X509   CR_CLEANUP(cr_x509) X509 *
#define AUTO_ISSUED CR_CLEANUP(cr_issued) struct cr_issued

static char *web_names[] = {(char[]){"web.shop.svc"}, (char[]){"*.shop"}, (char[]){"WEB.shop.svc"}};
static char *addresses[] = {(char[]){"10.0.0.1"}, (char[]){"::1"}};
static char *uris[] = {(char[]){"spiffe://cluster.local/ns/shop/sa/web"}};
static char *emails[] = {(char[]){"ops@example.com"}};
static char *groups[] = {(char[]){"system:masters"}, (char[]){"ops"}};
static char *bad[] = {(char[]){"a_b"}};
static const struct cr_strvec web = {web_names, 3, 3};
static const struct cr_strvec address = {addresses, 2, 2};
static const struct cr_strvec uri = {uris, 1, 1};
static const struct cr_strvec email = {emails, 1, 1};
static const struct cr_strvec group = {groups, 2, 2};
static const struct cr_strvec bad_list = {bad, 1, 1};

enum { BOTH = CR_LEAF_SERVER | CR_LEAF_CLIENT };

static struct cr_leaf_spec web_spec(void)
{
    return (struct cr_leaf_spec){.dns_names = &web, .usages = BOTH, .duration_ms = TEST_DAY};
}

static void issue(const struct cr_authority *ca, const struct cr_leaf_spec *spec, const struct cr_private_key *key,
                  int64_t now_ms, struct cr_issued *out)
{
    struct cr_error err = {0};
    if (!cr_issue_leaf(ca, spec, key, now_ms, out, &err))
        fail_msg("%s", err.text);
    assert_int_equal(ERR_peek_error(), 0);
}

static void refuse(const struct cr_authority *ca, const struct cr_leaf_spec *spec, const struct cr_private_key *key,
                   int64_t now_ms, const char *words)
{
    struct cr_error err = {0};
    struct cr_issued out;
    if (cr_issue_leaf(ca, spec, key, now_ms, &out, &err))
        fail_msg("was issued, where \"%s\" was expected", words);
    assert_int_equal(err.kind, CR_ERR_INVALID);
    if (!strstr(err.text, words))
        fail_msg("want \"%s\", got: %s", words, err.text);
    assert_null(out.pem);
    assert_int_equal(ERR_peek_error(), 0);
}

static void assert_extension(const X509 *cert, int nid, const char *want)
{
    cr_autofree char *text = test_extension(cert, nid);
    assert_string_equal(text, want);
}

/* RFC 8813, section 3; RFC 9295, section 3. */
static void key_usage_is_that_of_the_type_of_key(void **state)
{
    static const struct {
        enum cr_key_algorithm algorithm;
        int size;
        const char *usage;
    } cases[] = {
        {CR_KEY_RSA, 2048, "critical, Digital Signature, Key Encipherment"},
        {CR_KEY_ECDSA, 256, "critical, Digital Signature"},
        {CR_KEY_ECDSA, 384, "critical, Digital Signature"},
        {CR_KEY_ED25519, 0, "critical, Digital Signature"},
    };
    (void)state;
    const struct cr_leaf_spec spec = web_spec();
    AUTO_KEY ca_key = test_key(CR_KEY_ECDSA, 0);
    AUTO_CA ca = test_authority("a", ca_key, 0, TEST_NOW_MS, TEST_DAY);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        AUTO_KEY key = test_key(cases[i].algorithm, cases[i].size);
        AUTO_ISSUED issued = {0};
        issue(ca, &spec, key, TEST_NOW_MS, &issued);
        AUTO_X509 cert = test_certificate(issued.pem, 0);
        assert_extension(cert, NID_key_usage, cases[i].usage);
        assert_extension(cert, NID_basic_constraints, "critical, CA:FALSE");
        assert_int_equal(X509_check_private_key(cert, key->pkey), 1);
        assert_int_equal(X509_verify(cert, ca_key->pkey), 1);
    }
}

/* RFC 5480, section 4; RFC 8410. */
static void the_signature_is_as_strong_as_the_ca_s_key(void **state)
{
    static const struct {
        const char *type;
        int signature;
    } cases[] = {
        {"RSA", NID_sha256WithRSAEncryption}, {"P-256", NID_ecdsa_with_SHA256}, {"P-384", NID_ecdsa_with_SHA384},
        {"P-521", NID_ecdsa_with_SHA512},     {"ED25519", NID_ED25519},
    };
    (void)state;
    const struct cr_leaf_spec spec = web_spec();
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(test_cert)
        struct test_cert *made = test_cert_new(&(struct test_cert_spec){.ca = true, .key_type = cases[i].type});
        struct cr_pem_input cert_in = test_entry(made->cert_pem);
        struct cr_pem_input key_in = test_entry(made->key_pem);
        AUTO_CA ca = cr_authority_read(&cert_in, &key_in, cr_clock_wall_ms(), &err);
        AUTO_ISSUED issued = {0};
        issue(ca, &spec, key, cr_clock_wall_ms(), &issued);
        AUTO_X509 cert = test_certificate(issued.pem, 0);
        assert_int_equal(X509_get_signature_nid(cert), cases[i].signature);
    }
}

static void names_are_written_once_and_usages_as_asked(void **state)
{
    (void)state;
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    AUTO_CA ca = test_authority("a", key, 0, TEST_NOW_MS, TEST_DAY);
    AUTO_ISSUED issued = {0};
    const struct cr_leaf_spec spec = {"web", &group, &web, &address, &uri, &email, CR_LEAF_CLIENT, TEST_HOUR};
    issue(ca, &spec, key, TEST_NOW_MS, &issued);
    AUTO_X509 cert = test_certificate(issued.pem, 0);
    cr_autofree char *subject = X509_NAME_oneline(X509_get_subject_name(cert), NULL, 0);
    assert_string_equal(subject, "/O=system:masters/O=ops/CN=web");
    assert_extension(cert, NID_subject_alt_name,
                     "DNS:web.shop.svc, DNS:*.shop, IP Address:10.0.0.1, IP Address:0:0:0:0:0:0:0:1, "
                     "URI:spiffe://cluster.local/ns/shop/sa/web, email:ops@example.com");
    assert_extension(cert, NID_ext_key_usage, "TLS Web Client Authentication");
}

/* RFC 5280, section 4.2.1.6. */
static void names_are_critical_where_the_subject_is_empty(void **state)
{
    (void)state;
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    AUTO_CA ca = test_authority("a", key, 0, TEST_NOW_MS, TEST_DAY);
    AUTO_ISSUED issued = {0};
    const struct cr_leaf_spec spec = web_spec();
    issue(ca, &spec, key, TEST_NOW_MS, &issued);
    AUTO_X509 cert = test_certificate(issued.pem, 0);
    assert_extension(cert, NID_subject_alt_name, "critical, DNS:web.shop.svc, DNS:*.shop");
    assert_extension(cert, NID_ext_key_usage, "TLS Web Server Authentication, TLS Web Client Authentication");
}

/* RFC 5280, section 4.2.1.1: whatever way the CA's own was made. test_cert makes it by SHA-1. */
static void the_authority_key_identifier_is_the_ca_s_own(void **state)
{
    (void)state;
    struct cr_error err = {0};
    CR_CLEANUP(test_cert) struct test_cert *made = test_cert_new(&(struct test_cert_spec){.ca = true});
    struct cr_pem_input cert_in = test_entry(made->cert_pem);
    struct cr_pem_input key_in = test_entry(made->key_pem);
    AUTO_CA ca = cr_authority_read(&cert_in, &key_in, cr_clock_wall_ms(), &err);
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    AUTO_ISSUED issued = {0};
    const struct cr_leaf_spec spec = web_spec();
    issue(ca, &spec, key, cr_clock_wall_ms(), &issued);
    AUTO_X509 cert = test_certificate(issued.pem, 0);
    assert_int_equal(ASN1_OCTET_STRING_cmp(X509_get0_authority_key_id(cert), X509_get0_subject_key_id(made->x509)), 0);
}

static void a_leaf_begins_5_minutes_ago_and_never_outlives_its_ca(void **state)
{
    static const struct {
        int64_t now_ms, duration_ms, until_ms;
        bool clamped;
    } cases[] = {
        {0, TEST_HOUR, TEST_HOUR, false},
        {0, TEST_DAY, TEST_DAY, false},
        {0, TEST_DAY + 1000, TEST_DAY, true},
        {TEST_HOUR, TEST_DAY, TEST_DAY, true},
        {TEST_DAY - 1000, TEST_HOUR, TEST_DAY, true},
        {0, INT64_MAX / 2, TEST_DAY, true},
    };
    (void)state;
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    AUTO_CA ca = test_authority("a", key, 0, TEST_NOW_MS, TEST_DAY);
    struct cr_leaf_spec spec = web_spec();
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        AUTO_ISSUED issued = {0};
        spec.duration_ms = cases[i].duration_ms;
        issue(ca, &spec, key, TEST_NOW_MS + cases[i].now_ms, &issued);
        AUTO_X509 cert = test_certificate(issued.pem, 0);
        assert_int_equal(issued.clamped, cases[i].clamped);
        assert_int_equal(issued.not_before_ms, TEST_NOW_MS + cases[i].now_ms - 5 * TEST_MINUTE);
        assert_int_equal(issued.not_after_ms, TEST_NOW_MS + cases[i].until_ms);
        assert_int_equal(cr_x509_not_before_ms(cert), issued.not_before_ms);
        assert_int_equal(cr_x509_not_after_ms(cert), issued.not_after_ms);
    }
    refuse(ca, &spec, key, TEST_NOW_MS + TEST_DAY, "the CA, or one above it, expired at 2026-11-22T12:00:00Z");
}

static void below_an_intermediate_the_chain_goes_with_the_leaf_but_for_the_root(void **state)
{
    (void)state;
    struct cr_error err = {0};
    CR_CLEANUP(test_cert)
    struct test_cert *root = test_cert_new(&(struct test_cert_spec){.cn = "root", .ca = true, .until_s = 3600});
    CR_CLEANUP(test_cert)
    struct test_cert *middle = test_cert_new(&(struct test_cert_spec){.cn = "middle", .ca = true, .issuer = root});
    cr_autofree char *chain = test_concat(middle->cert_pem, root->cert_pem, NULL);
    struct cr_pem_input cert_in = test_entry(chain);
    struct cr_pem_input key_in = test_entry(middle->key_pem);
    AUTO_CA ca = cr_authority_read(&cert_in, &key_in, cr_clock_wall_ms(), &err);
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    AUTO_ISSUED issued = {0};
    const struct cr_leaf_spec spec = web_spec();
    issue(ca, &spec, key, cr_clock_wall_ms(), &issued);
    assert_true(cr_ends_with(issued.pem, middle->cert_pem));
    assert_null(strstr(issued.pem, root->cert_pem));
    assert_true(issued.clamped);
    assert_int_equal(issued.not_after_ms, cr_x509_not_after_ms(root->x509));
}

static void what_no_peer_would_take_is_not_issued(void **state)
{
    static char *hundred_and_one[101];
    static char texts[101][8];
    static const struct cr_strvec many = {hundred_and_one, 101, 101};
    static const struct {
        struct cr_leaf_spec spec;
        const char *words;
    } cases[] = {
        {{.dns_names = &web, .duration_ms = 1}, "a leaf is for a server, a client or both"},
        {{.dns_names = &web, .duration_ms = 1, .usages = 4}, "a leaf is for a server, a client or both"},
        {{.common_name = "web", .duration_ms = 1, .usages = CR_LEAF_SERVER}, "needs a DNS name"},
        {{.emails = &email, .duration_ms = 1, .usages = BOTH}, "needs a DNS name"},
        {{.duration_ms = 1, .usages = CR_LEAF_CLIENT}, "needs a name"},
        {{.dns_names = &web, .usages = BOTH}, "must be positive"},
        {{.dns_names = &web, .usages = BOTH, .duration_ms = INT64_MAX}, "before the year 9999"},
        {{.dns_names = &bad_list, .usages = BOTH, .duration_ms = 1}, "\"a_b\" is no DNS name"},
        {{.emails = &bad_list, .usages = BOTH, .duration_ms = 1}, "\"a_b\" is no e-mail address"},
        {{.uris = &bad_list, .usages = BOTH, .duration_ms = 1}, "\"a_b\" is no URI"},
        {{.addresses = &bad_list, .usages = BOTH, .duration_ms = 1}, "\"a_b\" is no IP address"},
        {{.dns_names = &many, .usages = BOTH, .duration_ms = 1}, "at most 100 names"},
        {{.common_name = "", .dns_names = &web, .usages = BOTH, .duration_ms = 1}, "is empty"},
    };
    (void)state;
    for (int i = 0; i < 101; i++) {
        snprintf(texts[i], sizeof texts[i], "n%d", i);
        hundred_and_one[i] = texts[i];
    }
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    AUTO_CA ca = test_authority("a", key, 0, TEST_NOW_MS, TEST_DAY);
    for (size_t i = 0; i < cr_array_len(cases); i++)
        refuse(ca, &cases[i].spec, key, TEST_NOW_MS, cases[i].words);
}

/* A root with one more extension, as text of OpenSSL's configuration. */
static struct cr_authority *root_with(int nid, const char *value, const struct cr_private_key *key)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_buf) struct cr_buf pem = {0};
    CR_CLEANUP(cr_x509_name) X509_NAME *name = X509_NAME_new();
    test_must(cr_builder_subject(name, "limited", NULL, &err), "name", &err);
    const struct cr_validity validity = {TEST_NOW_MS, TEST_NOW_MS + TEST_DAY};
    AUTO_X509 cert = cr_builder_new(key->pkey, name, NULL, &validity, &err);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    test_must(cert && extension && X509_add_ext(cert, extension, -1) &&
                  cr_builder_basic_constraints(cert, true, -1, &err) && cr_builder_key_usage(cert, true, &err) &&
                  cr_builder_sign(cert, key->pkey, &err) && cr_x509_write(cert, &pem, &err),
              "root", &err);
    X509_EXTENSION_free(extension);
    cr_autofree char *key_pem = test_key_pem(key);
    struct cr_pem_input key_in = test_entry(key_pem);
    struct cr_authority *ca = cr_authority_read(&(struct cr_pem_input){pem.data, pem.len}, &key_in, TEST_NOW_MS, &err);
    test_must(ca, "authority", &err);
    return ca;
}

static void what_the_ca_may_not_issue_is_found_before_it_is_out(void **state)
{
    (void)state;
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    AUTO_CA here = root_with(NID_name_constraints, "critical,permitted;DNS:shop.svc,permitted;DNS:shop", key);
    AUTO_CA elsewhere = root_with(NID_name_constraints, "critical,permitted;DNS:bank.svc", key);
    AUTO_CA clients = root_with(NID_ext_key_usage, "clientAuth", key);
    struct cr_leaf_spec spec = web_spec();
    AUTO_ISSUED issued = {0};
    issue(here, &spec, key, TEST_NOW_MS, &issued);
    refuse(elsewhere, &spec, key, TEST_NOW_MS, "a leaf of this CA would be refused: permitted subtree violation");
    refuse(clients, &spec, key, TEST_NOW_MS, "a leaf of this CA would be refused: ");
    cr_issued_dispose(&issued);
    spec.usages = CR_LEAF_CLIENT;
    issue(clients, &spec, key, TEST_NOW_MS, &issued);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(key_usage_is_that_of_the_type_of_key),
        cmocka_unit_test(the_signature_is_as_strong_as_the_ca_s_key),
        cmocka_unit_test(names_are_written_once_and_usages_as_asked),
        cmocka_unit_test(names_are_critical_where_the_subject_is_empty),
        cmocka_unit_test(the_authority_key_identifier_is_the_ca_s_own),
        cmocka_unit_test(a_leaf_begins_5_minutes_ago_and_never_outlives_its_ca),
        cmocka_unit_test(below_an_intermediate_the_chain_goes_with_the_leaf_but_for_the_root),
        cmocka_unit_test(what_no_peer_would_take_is_not_issued),
        cmocka_unit_test(what_the_ca_may_not_issue_is_found_before_it_is_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
