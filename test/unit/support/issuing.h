/* Keys and CAs of pkg/pki for tests of what is made with them. Ends the test program on failure. */
#ifndef TEST_SUPPORT_ISSUING_H
#define TEST_SUPPORT_ISSUING_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "pki/issue.h"
#include "pki/x509.h"

/* 2026-11-21T12:00:00Z, and lengths of time in milliseconds. */
#define TEST_NOW_MS INT64_C(1795262400000)
#define TEST_MINUTE INT64_C(60000)
#define TEST_HOUR   (60 * TEST_MINUTE)
#define TEST_DAY    (24 * TEST_HOUR)

static inline void test_must(bool done, const char *what, const struct cr_error *err)
{
    if (done)
        return;
    fprintf(stderr, "the test's own %s: %s\n", what, err->text);
    abort();
}

static inline struct cr_pem_input test_entry(const char *text)
{
    return (struct cr_pem_input){text, text ? strlen(text) : 0};
}

static inline struct cr_private_key *test_key(enum cr_key_algorithm algorithm, int size)
{
    struct cr_error err = {0};
    struct cr_private_key *key = cr_private_key_new(&(struct cr_key_spec){algorithm, size}, &err);
    test_must(key, "key", &err);
    return key;
}

/* Owned text. */
static inline char *test_key_pem(const struct cr_private_key *key)
{
    struct cr_error err = {0};
    struct cr_buf pem = {0};
    test_must(cr_private_key_write(key, &pem, &err), "key's text", &err);
    return cr_buf_steal(&pem);
}

/* A root from now on. */
static inline struct cr_authority *test_authority(const char *name, const struct cr_private_key *key, int path_length,
                                                  int64_t now_ms, int64_t duration_ms)
{
    struct cr_error err = {0};
    struct cr_authority *authority =
        cr_authority_new(&(struct cr_authority_spec){name, duration_ms, path_length}, key, now_ms, &err);
    test_must(authority, "CA", &err);
    return authority;
}

/* The certificate of that place in the text. Owned. */
static inline X509 *test_certificate(const char *pem, int at)
{
    struct cr_error err = {0};
    struct cr_pem_input in = test_entry(pem);
    STACK_OF(X509) *certs = cr_x509_read(&in, 100, &err);
    test_must(certs && at < sk_X509_num(certs), "certificate", &err);
    X509 *cert = sk_X509_value(certs, at);
    X509_up_ref(cert);
    cr_x509_list_free(certs);
    return cert;
}

/* The extension as `openssl x509 -text` shows it, "critical, " before it where it is; "" without one. Owned. */
static inline char *test_extension(const X509 *cert, int nid)
{
    char *data = NULL;
    int at = X509_get_ext_by_NID(cert, nid, -1);
    if (at < 0)
        return strdup("");
    BIO *bio = BIO_new(BIO_s_mem());
    if (X509_EXTENSION_get_critical(X509_get_ext(cert, at)))
        BIO_puts(bio, "critical, ");
    X509V3_EXT_print(bio, X509_get_ext(cert, at), 0, 0);
    long len = BIO_get_mem_data(bio, &data);
    char *text = cr_strndup(data, (size_t)len);
    BIO_free(bio);
    return text;
}

#endif
