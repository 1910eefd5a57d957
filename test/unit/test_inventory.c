#include "pki/inventory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/core_names.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "support/testcerts.h"

enum { ALL = CR_INVENTORY_CERTIFICATE | CR_INVENTORY_PRIVATE_KEY | CR_INVENTORY_PUBLIC_KEY };

static struct cr_pem_input entry(const char *text)
{
    return (struct cr_pem_input){text, strlen(text)};
}

/* "PUBLIC KEY" of a key. Owned. */
static char *public_pem(EVP_PKEY *key)
{
    char *data = NULL;
    BIO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PUBKEY(bio, key), 1);
    long len = BIO_get_mem_data(bio, &data);
    char *text = cr_strndup(data, (size_t)len);
    BIO_free(bio);
    return text;
}

static void digest_of(EVP_PKEY *key, char out[CR_SHA256_HEX])
{
    unsigned char *der = NULL;
    int len = i2d_PUBKEY(key, &der);
    assert_true(len > 0);
    cr_sha256_hex(der, (size_t)len, out);
    OPENSSL_free(der);
}

/* Certificate, private and public key of one pair have one digest, in every form that Kubernetes and etcd read. */
static void a_pair_has_one_digest_in_all_its_forms(void **state)
{
    static const struct {
        const char *type, *form; /* form: NULL: PKCS#8 */
    } rows[] = {{"P-256", NULL},   {"P-256", "SEC1"}, {"P-256", "SEC1 with parameters"},
                {"P-384", NULL},   {"P-521", NULL},   {"RSA", NULL},
                {"RSA", "PKCS#1"}, {"ED25519", NULL}};
    (void)state;
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        CR_CLEANUP(test_cert)
        struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.key_type = rows[i].type});
        cr_autofree char *key = rows[i].form ? test_cert_key_as(cert, rows[i].form) : cr_strdup(cert->key_pem);
        cr_autofree char *pub = public_pem(cert->key);
        cr_autofree char *text = test_concat("words\n", key, cert->cert_pem, pub, NULL);
        struct cr_pem_input in = entry(text);
        struct cr_error err = {0};
        CR_CLEANUP(cr_inventory) struct cr_inventory found = {0};
        if (!cr_inventory_read(&in, ALL, &found, &err))
            fail_msg("%s %s: %s", rows[i].type, cr_or_empty(rows[i].form), err.text);
        char want[CR_SHA256_HEX];
        digest_of(cert->key, want);
        assert_int_equal(found.len, 3);
        assert_int_equal(found.items[0].kind, CR_INVENTORY_PRIVATE_KEY);
        assert_int_equal(found.items[1].kind, CR_INVENTORY_CERTIFICATE);
        assert_int_equal(found.items[2].kind, CR_INVENTORY_PUBLIC_KEY);
        for (size_t k = 0; k < 3; k++)
            assert_string_equal(found.items[k].key, want);
        assert_string_equal(found.items[0].fingerprint, "");
        assert_int_equal(strlen(found.items[1].fingerprint), 64);
    }
}

/* Go writes points of curves whole, whatever the file has. */
static void a_compressed_point_is_the_same_key(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){0});
    char want[CR_SHA256_HEX];
    digest_of(cert->key, want);
    assert_int_equal(
        EVP_PKEY_set_utf8_string_param(cert->key, OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT, "compressed"), 1);
    cr_autofree char *pub = public_pem(cert->key);
    struct cr_pem_input in = entry(pub);
    CR_CLEANUP(cr_inventory) struct cr_inventory found = {0};
    assert_true(cr_inventory_read(&in, ALL, &found, NULL));
    assert_string_equal(found.items[0].key, want);
}

static void certificates_stand_in_their_order(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *ca = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
    CR_CLEANUP(test_cert)
    struct test_cert *leaf = test_cert_new(&(struct test_cert_spec){.cn = "leaf", .issuer = ca, .until_s = 3600});
    cr_autofree char *text = test_concat(leaf->cert_pem, leaf->key_pem, ca->cert_pem, NULL);
    struct cr_pem_input in = entry(text);
    struct cr_pem_input alone = entry(ca->cert_pem);
    CR_CLEANUP(cr_inventory) struct cr_inventory found = {0};
    CR_CLEANUP(cr_inventory) struct cr_inventory one = {0};
    assert_true(cr_inventory_read(&in, CR_INVENTORY_CERTIFICATE, &found, NULL));
    assert_true(cr_inventory_read(&alone, ALL, &one, NULL));
    assert_int_equal(found.len, 2);
    assert_true(found.items[0].not_after_ms < found.items[1].not_after_ms);
    assert_string_equal(found.items[1].fingerprint, one.items[0].fingerprint);
    assert_string_equal(found.items[1].subject, one.items[0].subject);
    assert_string_not_equal(found.items[0].subject, one.items[0].subject);
}

#define CORRUPT(label) "-----BEGIN " label "-----\nAAAA\n-----END " label "-----\n"

static void what_cannot_be_read_is_said(void **state)
{
    static const struct {
        const char *rule, *text;
        unsigned kinds;
        const char *words; /* NULL: is read, and has nothing */
    } rows[] = {
        {"nothing", "", ALL, "is empty: PEM is expected"},
        {"other text", "hello", ALL, "has no PEM block: PEM is expected"},
        {"DER", "\x30\x82\x01\x02", ALL, "is DER: PEM is expected"},
        {"cut", "-----BEGIN CERTIFICATE-----\nAAAA\n", ALL, "block 1"},
        {"no certificate", CORRUPT("CERTIFICATE"), ALL, "block 1 (CERTIFICATE, line 1) is corrupt"},
        {"no private key", CORRUPT("PRIVATE KEY"), ALL, "block 1 (PRIVATE KEY, line 1) is corrupt"},
        {"no public key", CORRUPT("PUBLIC KEY"), ALL, "block 1 (PUBLIC KEY, line 1) is corrupt"},
        {"PKCS#1's public key", CORRUPT("RSA PUBLIC KEY"), ALL, "it holds no public key"},
        {"encrypted", CORRUPT("ENCRYPTED PRIVATE KEY"), ALL, "encrypted"},
        {"of another kind, corrupt as it is", CORRUPT("PRIVATE KEY"), CR_INVENTORY_CERTIFICATE, NULL},
        {"likewise", CORRUPT("CERTIFICATE"), CR_INVENTORY_PRIVATE_KEY | CR_INVENTORY_PUBLIC_KEY, NULL},
        {"of no kind", CORRUPT("X509 CRL") CORRUPT("EC PARAMETERS"), ALL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        struct cr_pem_input in = entry(rows[i].text);
        struct cr_error err = {0};
        CR_CLEANUP(cr_inventory) struct cr_inventory found = {0};
        bool read = cr_inventory_read(&in, rows[i].kinds, &found, &err);
        if (read != !rows[i].words || found.len || !strstr(err.text, cr_or_empty(rows[i].words)))
            fail_msg("%s: %zu items, '%s'", rows[i].rule, found.len, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pair_has_one_digest_in_all_its_forms),
        cmocka_unit_test(a_compressed_point_is_the_same_key),
        cmocka_unit_test(certificates_stand_in_their_order),
        cmocka_unit_test(what_cannot_be_read_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
