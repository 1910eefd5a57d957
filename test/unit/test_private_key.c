#include "pki/private_key.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/crypto.h>
#include <openssl/err.h>

#include "base/strings.h"
#include "pki/key.h"
#include "pki/private_key_internal.h"
#include "support/issuing.h"
#include "support/testcerts.h"

#define AUTO_KEY CR_CLEANUP(cr_private_key) struct cr_private_key *

static void every_type_has_its_sizes_and_no_others(void **state)
{
    static const struct {
        enum cr_key_algorithm algorithm;
        int size;
        const char *type; /* NULL: refused */
        const char *words;
    } cases[] = {
        {CR_KEY_ECDSA, 0, "ECDSA-P256"},
        {CR_KEY_ECDSA, 256, "ECDSA-P256"},
        {CR_KEY_ECDSA, 384, "ECDSA-P384"},
        {CR_KEY_ECDSA, 521, NULL, "256 or 384 bits here, not 521"},
        {CR_KEY_RSA, 0, "RSA-2048"},
        {CR_KEY_RSA, 3072, "RSA-3072"},
        {CR_KEY_RSA, 4096, "RSA-4096"},
        {CR_KEY_RSA, 1024, NULL, "2048, 3072 or 4096 bits here, not 1024"},
        {CR_KEY_RSA, -1, NULL, "2048, 3072 or 4096 bits here, not -1"},
        {CR_KEY_ED25519, 0, "Ed25519"},
        {CR_KEY_ED25519, 256, "Ed25519"},
        {CR_KEY_ED25519, 384, NULL, "has 256 bits, not 384"},
        {(enum cr_key_algorithm)7, 0, NULL, "unknown algorithm"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        char type[CR_KEY_TYPE];
        AUTO_KEY key = cr_private_key_new(&(struct cr_key_spec){cases[i].algorithm, cases[i].size}, &err);
        assert_int_equal(key != NULL, cases[i].type != NULL);
        if (key) {
            cr_key_type(key->pkey, type);
            assert_string_equal(type, cases[i].type);
            continue;
        }
        assert_int_equal(err.kind, CR_ERR_INVALID);
        assert_non_null(strstr(err.text, cases[i].words));
    }
}

static void what_is_written_is_pkcs8_and_read_again(void **state)
{
    static const enum cr_key_algorithm algorithms[] = {CR_KEY_ECDSA, CR_KEY_RSA, CR_KEY_ED25519};
    (void)state;
    for (size_t i = 0; i < cr_array_len(algorithms); i++) {
        struct cr_error err = {0};
        AUTO_KEY key = test_key(algorithms[i], 0);
        CR_CLEANUP(cr_buf) struct cr_buf pem = {0};
        assert_true(cr_private_key_write(key, &pem, &err));
        assert_true(pem.secret);
        assert_true(cr_starts_with(pem.data, "-----BEGIN PRIVATE KEY-----\n"));
        assert_true(cr_ends_with(pem.data, "\n-----END PRIVATE KEY-----\n"));
        AUTO_KEY again = cr_private_key_read(&(struct cr_pem_input){pem.data, pem.len}, &err);
        assert_non_null(again);
        assert_int_equal(EVP_PKEY_eq(key->pkey, again->pkey), 1);
    }
}

static void a_buffer_without_room_is_an_error(void **state)
{
    (void)state;
    struct cr_error err = {0};
    AUTO_KEY key = test_key(CR_KEY_ECDSA, 0);
    CR_CLEANUP(cr_buf) struct cr_buf pem = CR_BUF_INIT(100);
    assert_false(cr_private_key_write(key, &pem, &err));
    assert_int_equal(pem.len, 0);
}

static void keys_that_are_weak_or_that_peers_refuse_are_not_taken(void **state)
{
    static const struct {
        const char *type;
        const char *words; /* NULL: taken */
    } cases[] = {
        {"P-256", NULL},
        {"P-384", NULL},
        {"P-521", NULL},
        {"RSA", NULL},
        {"ED25519", NULL},
        {"RSA-1024", "an RSA key of 1024 bits is too weak"},
        {"secp256k1", "few TLS peers take a key of type ECDSA-secp256k1"},
        {"RSA-PSS", "few TLS peers take a key of type RSAPSS-2048"},
        {"ED448", "few TLS peers take a key of type Ed448"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(test_cert)
        struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.key_type = cases[i].type});
        struct cr_pem_input in = test_entry(cert->key_pem);
        AUTO_KEY key = cr_private_key_read(&in, &err);
        assert_int_equal(key != NULL, cases[i].words == NULL);
        if (cases[i].words)
            assert_non_null(strstr(err.text, cases[i].words));
        assert_int_equal(ERR_peek_error(), 0);
    }
}

/* --- what is given back is wiped --- */

static struct {
    char text[41];   /* of the PEM's middle */
    char octets[24]; /* what it says */
    bool looking;
    size_t found;
    size_t freed;
} leak;

static void look(const void *ptr)
{
    size_t len = malloc_usable_size((void *)(uintptr_t)ptr);
    leak.freed++;
    leak.found += memmem(ptr, len, leak.text, 40) || memmem(ptr, len, leak.octets, sizeof leak.octets);
}

static void *on_malloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return malloc(size);
}

static void on_free(void *ptr, const char *file, int line)
{
    (void)file;
    (void)line;
    if (ptr && leak.looking)
        look(ptr);
    free(ptr);
}

/* A block that moves is freed where it was. */
static void *on_realloc(void *ptr, size_t size, const char *file, int line)
{
    if (!ptr || !leak.looking)
        return realloc(ptr, size);
    size_t old = malloc_usable_size(ptr);
    void *moved = on_malloc(size, file, line);
    memcpy(moved, ptr, old < size ? old : size);
    on_free(ptr, file, line);
    return moved;
}

static void learn(const char *pem)
{
    /* 30 octets behind the header that all keys of the type share; base64 without its line's ends. */
    unsigned char octets[33];
    const char *middle = strchr(strchr(pem, '\n') + 1, '\n') + 1;
    memcpy(leak.text, middle, 40);
    assert_int_equal(EVP_DecodeBlock(octets, (const unsigned char *)middle, 40), 30);
    memcpy(leak.octets, octets, sizeof leak.octets);
}

static void writing_and_freeing_a_key_leave_nothing_of_it_behind(void **state)
{
    (void)state;
    struct cr_error err = {0};
    struct cr_private_key *key = test_key(CR_KEY_RSA, 0);
    CR_CLEANUP(cr_buf) struct cr_buf pem = {.secret = true};
    CR_CLEANUP(cr_buf) struct cr_buf again = {.secret = true};
    assert_true(cr_private_key_write(key, &pem, &err));
    learn(pem.data);
    leak.looking = true;
    assert_true(cr_private_key_write(key, &again, &err));
    cr_private_key_free(key);
    leak.looking = false;
    assert_true(leak.freed > 10);
    assert_int_equal(leak.found, 0);
    /* And it would have been found. */
    leak.looking = true;
    OPENSSL_free(OPENSSL_strdup(pem.data));
    leak.looking = false;
    assert_int_equal(leak.found, 1);
}

int main(void)
{
    /* Before OpenSSL allocates anything. */
    if (!CRYPTO_set_mem_functions(on_malloc, on_realloc, on_free))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_has_its_sizes_and_no_others),
        cmocka_unit_test(what_is_written_is_pkcs8_and_read_again),
        cmocka_unit_test(a_buffer_without_room_is_an_error),
        cmocka_unit_test(keys_that_are_weak_or_that_peers_refuse_are_not_taken),
        cmocka_unit_test(writing_and_freeing_a_key_leave_nothing_of_it_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
