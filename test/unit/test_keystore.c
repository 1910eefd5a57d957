#include "pki/keystore.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/err.h>
#include <openssl/pkcs12.h>

#include "base/strings.h"
#include "pki/x509.h"
#include "support/issuing.h"
#include "support/testcerts.h"

#define AUTO_CERT CR_CLEANUP(test_cert) struct test_cert *
#define AUTO_BUF  CR_CLEANUP(cr_buf) struct cr_buf
#define make(...) test_cert_new(&(struct test_cert_spec){__VA_ARGS__})

static const char seed[] = "sixteen bytes...and more";
static const struct cr_keystore_secrets changeit = {"changeit", seed, sizeof seed};

/* "" for none. */
static bool write_keystore(const char *certificate, const char *key, const char *trust,
                           const struct cr_keystore_secrets *secrets, struct cr_buf *out, struct cr_error *err)
{
    struct cr_pem_input cert_in = test_entry(certificate);
    struct cr_pem_input key_in = test_entry(key);
    struct cr_pem_input trust_in = test_entry(trust);
    bool written = cr_keystore_write(&cert_in, &key_in, &trust_in, secrets, out, err);
    assert_int_equal(ERR_peek_error(), 0);
    return written;
}

static bool write_truststore(const char *trust, const struct cr_keystore_secrets *secrets, struct cr_buf *out,
                             struct cr_error *err)
{
    struct cr_pem_input trust_in = test_entry(trust);
    bool written = cr_truststore_write(&trust_in, secrets, out, err);
    assert_int_equal(ERR_peek_error(), 0);
    return written;
}

static void must_keystore(const struct test_cert *leaf, const char *trust, const struct cr_keystore_secrets *secrets,
                          struct cr_buf *out)
{
    struct cr_error err = {0};
    if (!write_keystore(leaf->cert_pem, leaf->key_pem, trust, secrets, out, &err))
        fail_msg("%s", err.text);
    assert_true(out->secret);
}

static void must_truststore(const char *trust, const struct cr_keystore_secrets *secrets, struct cr_buf *out)
{
    struct cr_error err = {0};
    if (!write_truststore(trust, secrets, out, &err))
        fail_msg("%s", err.text);
}

static PKCS12 *open_file(const struct cr_buf *file)
{
    const unsigned char *at = (const unsigned char *)file->data;
    PKCS12 *opened = d2i_PKCS12(NULL, &at, (long)file->len);
    assert_non_null(opened);
    assert_ptr_equal(at, file->data + file->len);
    return opened;
}

static bool same(const struct cr_buf *a, const struct cr_buf *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/* --- what is in it --- */

static void a_keystore_has_the_key_its_chain_and_the_trust(void **state)
{
    static const char *const types[] = {"P-256", "P-384", "RSA", "ED25519"};
    (void)state;
    AUTO_CERT root = make(.cn = "root", .ca = true);
    for (size_t i = 0; i < cr_array_len(types); i++) {
        AUTO_CERT leaf = make(.cn = "web", .issuer = root, .key_type = types[i]);
        AUTO_BUF file = {0};
        EVP_PKEY *key = NULL;
        X509 *cert = NULL;
        STACK_OF(X509) *others = NULL;
        must_keystore(leaf, root->cert_pem, &changeit, &file);
        PKCS12 *opened = open_file(&file);
        assert_false(PKCS12_verify_mac(opened, "changeit!", -1));
        assert_true(PKCS12_parse(opened, "changeit", &key, &cert, &others));
        assert_int_equal(EVP_PKEY_eq(key, leaf->key), 1);
        assert_int_equal(X509_cmp(cert, leaf->x509), 0);
        assert_int_equal(sk_X509_num(others), 1);
        assert_int_equal(X509_cmp(sk_X509_value(others, 0), root->x509), 0);
        PKCS12_free(opened);
        EVP_PKEY_free(key);
        X509_free(cert);
        cr_x509_list_free(others);
        ERR_clear_error();
    }
}

/* Bags of the one encrypted safe. */
static STACK_OF(PKCS12_SAFEBAG) * certificate_bags(const struct cr_buf *file)
{
    PKCS12 *opened = open_file(file);
    STACK_OF(PKCS7) *safes = PKCS12_unpack_authsafes(opened);
    assert_int_equal(OBJ_obj2nid(sk_PKCS7_value(safes, 0)->type), NID_pkcs7_encrypted);
    STACK_OF(PKCS12_SAFEBAG) *bags = PKCS12_unpack_p7encdata(sk_PKCS7_value(safes, 0), "changeit", 8);
    assert_non_null(bags);
    sk_PKCS7_pop_free(safes, PKCS7_free);
    PKCS12_free(opened);
    return bags;
}

static void a_truststore_has_each_ca_once_and_java_takes_it_for_trusted(void **state)
{
    (void)state;
    AUTO_CERT one = make(.cn = "ca", .ca = true);
    AUTO_CERT two = make(.cn = "ca", .ca = true);
    cr_autofree char *trust = test_concat(one->cert_pem, two->cert_pem, one->cert_pem, NULL);
    AUTO_BUF file = {0};
    must_truststore(trust, &changeit, &file);
    STACK_OF(PKCS12_SAFEBAG) *bags = certificate_bags(&file);
    ASN1_OBJECT *usage = OBJ_txt2obj("2.16.840.1.113894.746875.1.1", 1);
    assert_int_equal(sk_PKCS12_SAFEBAG_num(bags), 2);
    for (int i = 0; i < 2; i++) {
        const PKCS12_SAFEBAG *bag = sk_PKCS12_SAFEBAG_value(bags, i);
        const STACK_OF(X509_ATTRIBUTE) *attributes = PKCS12_SAFEBAG_get0_attrs(bag);
        X509_ATTRIBUTE *attribute = X509at_get_attr(attributes, X509at_get_attr_by_OBJ(attributes, usage, -1));
        const ASN1_TYPE *value = X509_ATTRIBUTE_get0_type(attribute, 0);
        assert_int_equal(value->type, V_ASN1_OBJECT);
        assert_int_equal(OBJ_obj2nid(value->value.object), NID_anyExtendedKeyUsage);
        char fingerprint[CR_SHA256_HEX];
        cr_x509_fingerprint(i ? two->x509 : one->x509, fingerprint);
        cr_autofree char *name = PKCS12_get_friendlyname((PKCS12_SAFEBAG *)(uintptr_t)bag);
        fingerprint[16] = '\0';
        assert_string_equal(name, fingerprint);
    }
    ASN1_OBJECT_free(usage);
    sk_PKCS12_SAFEBAG_pop_free(bags, PKCS12_SAFEBAG_free);
}

/* --- always the same, and nothing learnt from it --- */

static void the_same_input_makes_the_same_bytes(void **state)
{
    (void)state;
    AUTO_CERT root = make(.cn = "root", .ca = true);
    AUTO_CERT leaf = make(.cn = "web", .issuer = root);
    AUTO_BUF one = {0};
    AUTO_BUF two = {0};
    AUTO_BUF trust = {0};
    AUTO_BUF again = {0};
    must_keystore(leaf, root->cert_pem, &changeit, &one);
    must_keystore(leaf, root->cert_pem, &changeit, &two);
    must_truststore(root->cert_pem, &changeit, &trust);
    must_truststore(root->cert_pem, &changeit, &again);
    assert_true(same(&one, &two));
    assert_true(same(&trust, &again));
}

/* Everything that makes keys: the salts and IVs of a file, found by their DER (an OCTET STRING of 16). */
struct salts {
    size_t len;
    unsigned char items[16][16];
};

static void collect(const struct cr_buf *file, struct salts *salts)
{
    for (size_t i = 0; i + 18 <= file->len; i++) {
        if (memcmp(file->data + i, "\x04\x10", 2) != 0 || salts->len == 16)
            continue;
        memcpy(salts->items[salts->len++], file->data + i + 2, 16);
        i += 17;
    }
}

static size_t in_common(const struct cr_buf *a, const struct cr_buf *b)
{
    size_t common = 0;
    struct salts of_a = {0};
    struct salts of_b = {0};
    collect(a, &of_a);
    collect(b, &of_b);
    for (size_t i = 0; i < of_a.len; i++)
        for (size_t j = 0; j < of_b.len; j++)
            common += (a != b || i < j) && memcmp(of_a.items[i], of_b.items[j], 16) == 0;
    return common;
}

static void no_salt_and_no_iv_is_used_twice(void **state)
{
    (void)state;
    static const struct cr_keystore_secrets other_seed = {"changeit", "another seed of sixteen bytes", 29};
    AUTO_CERT root = make(.cn = "root", .ca = true);
    AUTO_CERT leaf = make(.cn = "web", .issuer = root);
    AUTO_CERT renewed = make(.cn = "web", .issuer = root, .key_of = leaf);
    AUTO_BUF file = {0};
    AUTO_BUF of_renewed = {0};
    AUTO_BUF without_trust = {0};
    AUTO_BUF of_seed = {0};
    AUTO_BUF trust = {0};
    must_keystore(leaf, root->cert_pem, &changeit, &file);
    must_keystore(renewed, root->cert_pem, &changeit, &of_renewed);
    must_keystore(leaf, "", &changeit, &without_trust);
    must_keystore(leaf, root->cert_pem, &other_seed, &of_seed);
    must_truststore(root->cert_pem, &changeit, &trust);
    struct salts salts = {0};
    collect(&file, &salts);
    assert_true(salts.len >= 5); /* salt and IV of certificates and of the key, salt of the MAC */
    assert_int_equal(in_common(&file, &file), 0);
    assert_int_equal(in_common(&file, &of_renewed), 0);
    assert_int_equal(in_common(&file, &without_trust), 0);
    assert_int_equal(in_common(&file, &of_seed), 0);
    assert_int_equal(in_common(&file, &trust), 0);
}

/* Else a guess of the password would cost one HMAC, where the seed is known, and not thousands. */
static void the_password_is_no_part_of_a_salt(void **state)
{
    (void)state;
    static const struct cr_keystore_secrets other = {"other", seed, sizeof seed};
    AUTO_CERT root = make(.cn = "root", .ca = true);
    AUTO_BUF one = {0};
    AUTO_BUF two = {0};
    must_truststore(root->cert_pem, &changeit, &one);
    must_truststore(root->cert_pem, &other, &two);
    assert_false(same(&one, &two));
    assert_int_equal(in_common(&one, &two), 3);
}

static void encryption_is_aes_256_and_sha_256_with_10000_iterations(void **state)
{
    (void)state;
    const ASN1_OCTET_STRING *mac = NULL;
    const X509_ALGOR *algorithm = NULL;
    const ASN1_OBJECT *hash = NULL;
    const ASN1_OCTET_STRING *salt = NULL;
    const ASN1_INTEGER *iterations = NULL;
    AUTO_CERT leaf = make(.cn = "web");
    AUTO_BUF file = {0};
    must_keystore(leaf, "", &changeit, &file);
    PKCS12 *opened = open_file(&file);
    PKCS12_get0_mac(&mac, &algorithm, &salt, &iterations, opened);
    X509_ALGOR_get0(&hash, NULL, NULL, algorithm);
    assert_int_equal(OBJ_obj2nid(hash), NID_sha256);
    assert_int_equal(ASN1_INTEGER_get(iterations), 10000);
    PKCS12_free(opened);
    /* OIDs of PBES2, PBKDF2, hmacWithSHA256 and aes256-CBC, for certificates and for the key. */
    static const char *const oids[] = {"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0d", "\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0c",
                                       "\x2a\x86\x48\x86\xf7\x0d\x02\x09", "\x60\x86\x48\x01\x65\x03\x04\x01\x2a"};
    for (size_t i = 0; i < cr_array_len(oids); i++) {
        size_t len = strlen(oids[i]);
        const char *first = memmem(file.data, file.len, oids[i], len);
        assert_non_null(first);
        assert_non_null(memmem(first + len, file.len - (size_t)(first + len - file.data), oids[i], len));
    }
}

/* --- what is refused --- */

static void passwords_that_java_does_not_take_and_seeds_that_are_none(void **state)
{
    static const struct {
        struct cr_keystore_secrets secrets;
        const char *words;
    } cases[] = {
        {{NULL, seed, sizeof seed}, "the password of a PKCS#12 file is empty"},
        {{"", seed, sizeof seed}, "the password of a PKCS#12 file is empty"},
        {{"changeit\n", seed, sizeof seed}, "does it end with a new line?"},
        {{"ch\xc3\xa4ngeit", seed, sizeof seed}, "must be printable ASCII"},
        {{"changeit", NULL, 0}, "needs a secret seed of at least 16 bytes"},
        {{"changeit", seed, 15}, "needs a secret seed of at least 16 bytes"},
    };
    (void)state;
    AUTO_CERT ca = make(.cn = "ca", .ca = true);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        AUTO_BUF file = {0};
        assert_false(write_truststore(ca->cert_pem, &cases[i].secrets, &file, &err));
        assert_int_equal(err.kind, CR_ERR_INVALID);
        assert_non_null(strstr(err.text, cases[i].words));
        assert_false(write_keystore(ca->cert_pem, ca->key_pem, "", &cases[i].secrets, &file, &err));
        assert_int_equal(file.len, 0);
    }
}

static void material_that_is_no_pair_or_no_trust(void **state)
{
    (void)state;
    AUTO_CERT leaf = make(.cn = "web");
    AUTO_CERT other = make(.cn = "other");
    cr_autofree char *encrypted = test_cert_key_as(leaf, "PKCS#8 encrypted");
    const struct {
        const char *certificate, *key, *trust, *words;
    } cases[] = {
        {leaf->cert_pem, other->key_pem, "", "the private key does not belong to the certificate"},
        {leaf->cert_pem, encrypted, "", "the private key: block 1 is an encrypted key"},
        {leaf->cert_pem, "", "", "the private key: has no PEM block"},
        {"", leaf->key_pem, "", "the certificate: has no PEM block"},
        {leaf->cert_pem, leaf->key_pem, "x", "the trust: has no PEM block"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        AUTO_BUF file = {0};
        assert_false(write_keystore(cases[i].certificate, cases[i].key, cases[i].trust, &changeit, &file, &err));
        if (!strstr(err.text, cases[i].words))
            fail_msg("want \"%s\", got: %s", cases[i].words, err.text);
        assert_int_equal(file.len, 0);
    }
    struct cr_error err = {0};
    AUTO_BUF file = {0};
    assert_false(write_truststore("", &changeit, &file, &err));
    assert_non_null(strstr(err.text, "the trust: has no PEM block"));
    file.max = 100;
    assert_false(write_truststore(leaf->cert_pem, &changeit, &file, &err));
    assert_non_null(strstr(err.text, "too large"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_keystore_has_the_key_its_chain_and_the_trust),
        cmocka_unit_test(a_truststore_has_each_ca_once_and_java_takes_it_for_trusted),
        cmocka_unit_test(the_same_input_makes_the_same_bytes),
        cmocka_unit_test(no_salt_and_no_iv_is_used_twice),
        cmocka_unit_test(the_password_is_no_part_of_a_salt),
        cmocka_unit_test(encryption_is_aes_256_and_sha_256_with_10000_iterations),
        cmocka_unit_test(passwords_that_java_does_not_take_and_seeds_that_are_none),
        cmocka_unit_test(material_that_is_no_pair_or_no_trust),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
