#include "net/tls_chain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/core_names.h>
#include <openssl/x509.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "support/testcerts.h"

/* A message of one certificate so many times; owned. */
static unsigned char *message_of(X509 *cert, size_t count, bool tls13, size_t *len)
{
    unsigned char *der = NULL;
    size_t size = (size_t)i2d_X509(cert, &der);
    size_t each = 3 + size + (tls13 ? 2 : 0);
    size_t list = each * count;
    *len = (tls13 ? 1 : 0) + 3 + list;
    unsigned char *message = cr_calloc(*len, 1);
    unsigned char *at = message + (tls13 ? 1 : 0);
    const unsigned char head[] = {(unsigned char)(list >> 16), (unsigned char)(list >> 8), (unsigned char)list};
    memcpy(at, head, sizeof head);
    at += sizeof head;
    for (size_t i = 0; i < count; i++, at += each) {
        at[0] = (unsigned char)(size >> 16);
        at[1] = (unsigned char)(size >> 8);
        at[2] = (unsigned char)size;
        memcpy(at + 3, der, size);
    }
    OPENSSL_free(der);
    return message;
}

static X509 *cert_of(EVP_PKEY *key)
{
    struct test_cert *cert = test_cert_new(&(struct test_cert_spec){0});
    X509 *x509 = X509_dup(cert->x509);
    assert_int_equal(X509_set_pubkey(x509, key), 1);
    assert_true(X509_sign(x509, cert->key, EVP_sha256()) > 0);
    test_cert_free(cert);
    EVP_PKEY_free(key);
    return x509;
}

static EVP_PKEY *explicit_curve(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    assert_int_equal(EVP_PKEY_set_utf8_string_param(key, OSSL_PKEY_PARAM_EC_ENCODING, "explicit"), 1);
    return key;
}

static void keys_and_numbers_are_limited(void **state)
{
    (void)state;
    const struct {
        EVP_PKEY *key;
        size_t count;
        const char *words; /* NULL: taken */
    } cases[] = {
        {EVP_EC_gen("P-256"), 32, NULL},
        {EVP_EC_gen("P-384"), 1, NULL},
        {EVP_EC_gen("P-521"), 1, NULL},
        {EVP_EC_gen("brainpoolP256r1"), 1, NULL},
        {EVP_EC_gen("brainpoolP384r1"), 1, NULL},
        {EVP_EC_gen("brainpoolP512r1"), 1, NULL},
        {EVP_RSA_gen(1024), 1, NULL},
        {EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), 1, NULL},
        {EVP_PKEY_Q_keygen(NULL, NULL, "ED448"), 1, NULL},
        {EVP_EC_gen("P-256"), 0, NULL}, /* OpenSSL says what that is */
        {EVP_EC_gen("P-256"), 33, "more than 32 certificates"},
        {EVP_EC_gen("secp224r1"), 1, "on no curve that is taken"},
        {EVP_EC_gen("brainpoolP512t1"), 1, "on no curve that is taken"},
        {EVP_EC_gen("sect571r1"), 1, "on no curve that is taken"},
        {explicit_curve(), 1, "on no curve that is taken"},
        {EVP_PKEY_Q_keygen(NULL, NULL, "X25519"), 1, "none of RSA, ECDSA, EdDSA and ML-DSA"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        X509 *cert = cert_of(cases[i].key);
        for (int tls13 = 0; tls13 < 2; tls13++) {
            size_t len = 0;
            char words[CR_TLS_LIMIT_WORDS] = "";
            cr_autofree unsigned char *message = message_of(cert, cases[i].count, tls13, &len);
            bool fits = cr_tls_chain_fits(message, len, tls13, words);
            if (fits != (cases[i].words == NULL) || (!fits && !strstr(words, cases[i].words)))
                fail_msg("case %zu: '%s'", i, words);
        }
        X509_free(cert);
    }
}

/* However it is cut, and whatever byte of its frame is another: it is refused, and nothing beyond it is read. */
static void what_is_malformed_is_refused(void **state)
{
    (void)state;
    X509 *cert = cert_of(EVP_EC_gen("P-256"));
    for (int tls13 = 0; tls13 < 2; tls13++) {
        size_t len = 0;
        char words[CR_TLS_LIMIT_WORDS];
        cr_autofree unsigned char *message = message_of(cert, 2, tls13, &len);
        for (size_t cut = 0; cut < len; cut++) {
            cr_autofree unsigned char *copy = cr_memdup(message, cut + 1);
            assert_false(cr_tls_chain_fits(copy, cut, tls13, words));
        }
        /* Another reading of the certificate's tag and length: indefinite, and the tag in its long form. */
        static const unsigned char forms[][2] = {{0x30, 0x80}, {0x3f, 0x10}, {0x31, 0x82}};
        for (size_t i = 0; i < cr_array_len(forms); i++) {
            cr_autofree unsigned char *copy = cr_memdup(message, len);
            memcpy(copy + (tls13 ? 7 : 6), forms[i], 2);
            assert_false(cr_tls_chain_fits(copy, len, tls13, words));
            assert_string_equal(words, "a certificate of its chain is not DER");
        }
    }
    X509_free(cert);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_and_numbers_are_limited),
        cmocka_unit_test(what_is_malformed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
