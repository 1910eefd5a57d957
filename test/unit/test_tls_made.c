#include "net/tls_made.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/strings.h"
#include "support/tlsends.h"
#include "tlsreload/tlsreload.h"

static struct cr_tlsreload *made(void)
{
    struct cr_error err = {0};
    struct cr_tlsreload *tls = cr_tls_made_new("certroll-operator", &err);
    if (!tls)
        fail_msg("%s", err.text);
    return tls;
}

static struct tls_outcome call(struct cr_tlsreload *tls, int version)
{
    CR_CLEANUP(tls_caller) struct tls_caller caller = {.version = version};
    return tls_call(cr_tlsreload_accept(tls), &caller);
}

/* A scraper's library takes it, but for who has issued it. */
static void it_is_a_certificate_for_servers(void **state)
{
    (void)state;
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = made();
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < cr_array_len(versions); i++) {
        struct tls_outcome outcome = call(tls, versions[i]);
        if (!outcome.ok)
            fail_msg("%s", outcome.problem);
        assert_int_equal(outcome.version, versions[i]);
        assert_int_equal(outcome.chain_len, 1);
    }
    assert_false(call(tls, TLS1_1_VERSION).ok);
    SSL *ssl = cr_tlsreload_accept(tls);
    X509 *leaf = SSL_get_certificate(ssl);
    assert_int_equal(X509_check_host(leaf, "certroll-operator", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(leaf, "localhost", 0, 0, NULL), 0);
    assert_int_equal(X509_check_purpose(leaf, X509_PURPOSE_SSL_SERVER, 0), 1);
    assert_int_equal(X509_check_purpose(leaf, X509_PURPOSE_SSL_CLIENT, 0), 0);
    assert_int_equal(X509_check_ca(leaf), 0);
    assert_int_equal(EVP_PKEY_get_base_id(X509_get0_pubkey(leaf)), EVP_PKEY_EC);
    SSL_free(ssl);
}

static void each_process_has_a_key_of_its_own(void **state)
{
    (void)state;
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *one = made();
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *other = made();
    SSL *first = cr_tlsreload_accept(one);
    SSL *second = cr_tlsreload_accept(other);
    assert_int_equal(EVP_PKEY_eq(SSL_get_privatekey(first), SSL_get_privatekey(second)), 0);
    SSL_free(first);
    SSL_free(second);
}

/* This test is linked so that a thread that is started ends it (support/onethread.c). */
static void it_outlives_the_process_and_nothing_is_followed(void **state)
{
    (void)state;
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = made();
    struct cr_error err = {0};
    assert_true(cr_tlsreload_start(tls, &err));
    struct cr_tlsreload_state now;
    cr_tlsreload_state(tls, &now);
    const int64_t day_ms = (int64_t)24 * 60 * 60 * 1000;
    assert_in_range(now.not_after_ms, cr_clock_wall_ms() + 3649 * day_ms, cr_clock_wall_ms() + 3650 * day_ms);
    assert_false(now.failing);
}

static void what_is_no_name_is_refused(void **state)
{
    (void)state;
    struct cr_error err = {0};
    assert_null(cr_tls_made_new("certroll operator", &err));
    assert_int_equal(err.kind, CR_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_a_certificate_for_servers),
        cmocka_unit_test(each_process_has_a_key_of_its_own),
        cmocka_unit_test(it_outlives_the_process_and_nothing_is_followed),
        cmocka_unit_test(what_is_no_name_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
