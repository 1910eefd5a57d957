#include "api/token_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "support/testjwt.h"

#define POD(uid) "{\"kubernetes.io\":{\"pod\":{\"uid\":\"" uid "\"}}}"

/* SHA-256 of "": what a key of Kubernetes' own making looks like, with '-' and '_' in it. */
#define KID    "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
#define HEX    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define HEADER "{\"alg\":\"RS256\",\"kid\":\"" KID "\"}"

static const struct {
    const char *header, *key;
} headers[] = {
    {HEADER, HEX},
    {"{\"kid\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\",\"alg\":\"ES256\"}",
     "0000000000000000000000000000000000000000000000000000000000000000"},
    {"{\"alg\":\"RS256\"}", NULL},
    {"{\"alg\":\"RS256\",\"kid\":\"\"}", NULL},
    {"{\"alg\":\"RS256\",\"kid\":7}", NULL},
    {"{\"alg\":\"RS256\",\"kid\":\"my-key\"}", NULL},
    {"{\"alg\":\"RS256\",\"kid\":\"" KID "AAAA\"}", NULL},
    {"{\"alg\":\"RS256\",\"kid\":\"" KID "=\"}", NULL},
    {"{\"alg\":\"RS256\",\"kid\":\"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU\"}", NULL},
    {"{\"alg\":\"RS256\",\"kid\":\"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSu!!\"}", NULL},
};

static void the_key_of_a_token_is_its_kid_in_hexadecimal(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(headers); i++) {
        char key[CR_SHA256_HEX] = "";
        cr_autofree char *token = test_jwt(headers[i].header, "{}");
        if (cr_token_key(token, strlen(token), key) != (headers[i].key != NULL))
            fail_msg("%s: '%s'", headers[i].header, key);
        if (headers[i].key)
            assert_string_equal(key, headers[i].key);
    }
}

static void a_pod_s_token_has_the_same_or_none_that_is_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(headers); i++) {
        char key[CR_SHA256_HEX] = "before";
        cr_autofree char *token = test_jwt(headers[i].header, POD("u"));
        assert_true(cr_pod_token_key(token, strlen(token), "u", key));
        assert_string_equal(key, cr_or_empty(headers[i].key));
    }
}

static void what_is_no_token_has_no_key(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    ".",      "e30",   "....",     "a b.c.d",
                                      "=.=", "\x01.a", "a.b.c", "e30.e30.", "-----BEGIN CERTIFICATE-----\n"};
    char key[CR_SHA256_HEX];
    for (size_t i = 0; i < cr_array_len(bad); i++) {
        assert_false(cr_token_key(bad[i], strlen(bad[i]), key));
        assert_false(cr_pod_token_key(bad[i], strlen(bad[i]), "u", key));
        assert_string_equal(key, "");
    }
    static const char *const no_headers[] = {"[]", "nonsense", ""};
    for (size_t i = 0; i < cr_array_len(no_headers); i++) {
        cr_autofree char *token = test_jwt(no_headers[i], POD("u"));
        assert_false(cr_token_key(token, strlen(token), key));
        assert_false(cr_pod_token_key(token, strlen(token), "u", key));
    }
    enum { HUGE_TOKEN = 2 * CR_TOKEN_MAX };
    cr_autofree char *huge = cr_malloc(HUGE_TOKEN);
    memset(huge, 'a', HUGE_TOKEN);
    huge[HUGE_TOKEN - 1] = '.';
    assert_false(cr_token_key(huge, HUGE_TOKEN, key));
}

static void a_token_is_that_of_the_pod_that_it_is_bound_to(void **state)
{
    (void)state;
    static const struct {
        const char *header, *claims;
    } others[] = {
        {HEADER, POD("another")},
        {HEADER, "{\"iss\":\"kubernetes/serviceaccount\"}"},
        {HEADER, "nonsense"},
        {"{\"kid\":\"" KID "\"}", POD("u")}, /* no JWT without "alg" */
    };
    char key[CR_SHA256_HEX];
    for (size_t i = 0; i < cr_array_len(others); i++) {
        cr_autofree char *token = test_jwt(others[i].header, others[i].claims);
        assert_false(cr_pod_token_key(token, strlen(token), "u", key));
        assert_string_equal(key, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_key_of_a_token_is_its_kid_in_hexadecimal),
        cmocka_unit_test(a_pod_s_token_has_the_same_or_none_that_is_known),
        cmocka_unit_test(what_is_no_token_has_no_key),
        cmocka_unit_test(a_token_is_that_of_the_pod_that_it_is_bound_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
