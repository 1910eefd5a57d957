#include "pki/certificate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "support/testcerts.h"

static X509 *x509_of(const struct test_cert *cert)
{
    BIO *bio = BIO_new_mem_buf(cert->cert_pem, -1);
    X509 *x509 = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    assert_non_null(x509);
    return x509;
}

static struct cr_certificates *read_der(const unsigned char *der, long len)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *text = NULL;
    struct cr_error err = {0};
    assert_true(PEM_write_bio(bio, "CERTIFICATE", "", der, len));
    long text_len = BIO_get_mem_data(bio, &text);
    struct cr_certificates *certs = cr_certificates_read(&(struct cr_pem_input){text, (size_t)text_len}, 1, &err);
    BIO_free(bio);
    return certs;
}

static void compare(struct cr_certificate *cert, X509 *x509, size_t at)
{
    char ours[CR_SHA256_HEX];
    char theirs[CR_SHA256_HEX];
    unsigned char *der = NULL;
    int len = i2d_X509(x509, &der);
    cr_certificate_fingerprint(cert, ours);
    cr_sha256_hex(der, (size_t)len, theirs);
    OPENSSL_free(der);
    EVP_PKEY *key = X509_get0_pubkey(x509);
    EVP_PKEY *own = cr_certificate_key(cert);
    if (strcmp(ours, theirs) != 0)
        fail_msg("byte %zu: other bytes", at);
    if (!key != !own || (key && EVP_PKEY_eq(key, own) != 1))
        fail_msg("byte %zu: another key", at);
    X509 *same = cr_certificate_x509(cert);
    if (same ? X509_cmp(same, x509) != 0 : key != NULL)
        fail_msg("byte %zu: another certificate", at);
}

/* OpenSSL reads it, and verifies nothing by it. */
static bool has_a_time_that_is_none(const X509 *x509)
{
    struct tm tm;
    return !ASN1_TIME_to_tm(X509_get0_notBefore(x509), &tm) || !ASN1_TIME_to_tm(X509_get0_notAfter(x509), &tm);
}

/* Whether the certificate is read, and as which, is OpenSSL's word. */
static void ask_both(const unsigned char *der, long len, size_t at)
{
    const unsigned char *end = der;
    X509 *x509 = d2i_X509(NULL, &end, len);
    if (x509 && (end != der + len || has_a_time_that_is_none(x509))) {
        X509_free(x509);
        x509 = NULL;
    }
    CR_CLEANUP(cr_certificates) struct cr_certificates *certs = read_der(der, len);
    if (!x509 != !certs)
        fail_msg("byte %zu: OpenSSL %s it", at, x509 ? "reads" : "refuses");
    if (certs)
        compare(certs->items[0], x509, at);
    X509_free(x509);
    ERR_clear_error();
}

static void what_openssl_reads_is_read_alike_and_nothing_else(void **state)
{
    (void)state;
    /* of a bit, of a type, of a length, of whether there is something inside */
    static const unsigned char flips[] = {0x01, 0x07, 0x20, 0x80};
    CR_CLEANUP(test_cert) struct test_cert *leaf = test_cert_new(&(struct test_cert_spec){.cn = "leaf"});
    X509 *x509 = x509_of(leaf);
    unsigned char *der = NULL;
    int len = i2d_X509(x509, &der);
    X509_free(x509);
    ask_both(der, len, SIZE_MAX);
    for (size_t at = 0; at < (size_t)len; at++) {
        unsigned char was = der[at];
        der[at] ^= flips[at % cr_array_len(flips)];
        ask_both(der, len, at);
        der[at] = was;
    }
    OPENSSL_free(der);
}

static void every_kind_of_public_key_is_read_as_openssl_reads_it(void **state)
{
    static const char *const types[] = {"P-256", "P-521", "secp256k1", "RSA", "RSA-PSS", "ED25519", "ED448"};
    (void)state;
    for (size_t i = 0; i < cr_array_len(types); i++) {
        CR_CLEANUP(test_cert) struct test_cert *leaf = test_cert_new(&(struct test_cert_spec){.key_type = types[i]});
        X509 *x509 = x509_of(leaf);
        unsigned char *der = NULL;
        int len = i2d_X509(x509, &der);
        ask_both(der, len, SIZE_MAX);
        assert_non_null(X509_get0_pubkey(x509));
        X509_free(x509);
        OPENSSL_free(der);
    }
}

static struct cr_certificates *read_one(const struct test_cert *cert)
{
    struct cr_certificates *certs =
        cr_certificates_read(&(struct cr_pem_input){cert->cert_pem, strlen(cert->cert_pem)}, 1, NULL);
    assert_non_null(certs);
    return certs;
}

static void a_serial_is_what_rfc_5280_allows_without_leading_zeros(void **state)
{
    static const struct {
        const char *serial, *want;
    } cases[] = {
        {"0", "0"},
        {"1", "1"},
        {"7F", "7f"},
        {"80", "80"}, /* a zero octet stands before it */
        {"0ABCDEF0123456789ABCDEF", "abcdef0123456789abcdef"},
        {"7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "7fffffffffffffffffffffffffffffffffffffff"},
        {"FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "ffffffffffffffffffffffffffffffffffffffff"},
        {"10000000000000000000000000000000000000000", ""}, /* 21 octets */
        {"-1", ""},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(test_cert)
        struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.cn = "serial", .serial = cases[i].serial});
        CR_CLEANUP(cr_certificates) struct cr_certificates *certs = read_one(cert);
        char serial[CR_SERIAL_HEX];
        cr_certificate_serial(certs->items[0], serial);
        assert_string_equal(serial, cases[i].want);
    }
}

static void a_subject_is_digested_as_it_is_written(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert)
    struct test_cert *cert =
        test_cert_new(&(struct test_cert_spec){.cn = "Zertifizierungsstelle \xc3\xbc", .ca = true});
    CR_CLEANUP(cr_certificates) struct cr_certificates *certs = read_one(cert);
    X509 *x509 = x509_of(cert);
    unsigned char *der = NULL;
    int len = i2d_X509_NAME(X509_get_subject_name(x509), &der);
    char want[CR_SHA256_HEX];
    char subject[CR_SHA256_HEX];
    cr_sha256_hex(der, (size_t)len, want);
    cr_certificate_subject_digest(certs->items[0], subject);
    assert_string_equal(subject, want);
    OPENSSL_free(der);
    X509_free(x509);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_openssl_reads_is_read_alike_and_nothing_else),
        cmocka_unit_test(every_kind_of_public_key_is_read_as_openssl_reads_it),
        cmocka_unit_test(a_serial_is_what_rfc_5280_allows_without_leading_zeros),
        cmocka_unit_test(a_subject_is_digested_as_it_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
