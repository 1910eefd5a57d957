#include "pki/digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"

/* FIPS 180-4 examples. */
static void sha256_of_the_published_vectors(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        char hex[CR_SHA256_HEX];
        cr_sha256_hex(cases[i].in, strlen(cases[i].in), hex);
        assert_string_equal(hex, cases[i].out);
    }
}

static void pieces_hash_as_one(void **state)
{
    (void)state;
    const struct cr_sha256_piece pieces[] = {{"a", 1}, {NULL, 0}, {"bc", 2}};
    char hex[CR_SHA256_HEX];
    cr_sha256_hex_pieces(pieces, 3, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    cr_sha256_hex(NULL, 0, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

/* RFC 4231, test cases 2 and 6 (a key longer than the block). */
static void hmac_of_the_published_vectors(void **state)
{
    (void)state;
    char hex[CR_SHA256_HEX];
    cr_hmac_sha256_hex("Jefe", 4, "what do ya want for nothing?", 28, hex);
    assert_string_equal(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    char key[131];
    memset(key, 0xaa, sizeof key);
    const char *text = "Test Using Larger Than Block-Size Key - Hash Key First";
    cr_hmac_sha256_hex(key, sizeof key, text, strlen(text), hex);
    assert_string_equal(hex, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void an_empty_key_is_a_key(void **state)
{
    (void)state;
    char hex[CR_SHA256_HEX];
    cr_hmac_sha256_hex(NULL, 0, "", 0, hex);
    assert_string_equal(hex, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

static void hmac_in_pieces_is_that_of_the_whole(void **state)
{
    (void)state;
    static const char *const keys[] = {"", "Jefe"};
    static const char text[] = "what do ya want for nothing?";
    for (size_t k = 0; k < 2; k++) {
        char whole[CR_SHA256_HEX];
        cr_hmac_sha256_hex(keys[k], strlen(keys[k]), text, strlen(text), whole);
        for (size_t cut = 0; cut <= strlen(text); cut++) {
            CR_CLEANUP(cr_hmac) struct cr_hmac *hmac = cr_hmac_new(keys[k], strlen(keys[k]));
            char hex[CR_SHA256_HEX];
            cr_hmac_add(hmac, text, cut);
            cr_hmac_add(hmac, text + cut, strlen(text) - cut);
            cr_hmac_hex(hmac, hex);
            assert_string_equal(hex, whole);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_of_the_published_vectors), cmocka_unit_test(pieces_hash_as_one),
        cmocka_unit_test(hmac_of_the_published_vectors),   cmocka_unit_test(hmac_in_pieces_is_that_of_the_whole),
        cmocka_unit_test(an_empty_key_is_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
