#include "api/label.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/strings.h"

#define TEN         "abcdefghij"
#define SIXTY       TEN TEN TEN TEN TEN TEN
#define SIXTY_THREE SIXTY "abc"
#define SIXTY_FOUR  SIXTY "abcd"
#define PREFIX_253                                                                                                     \
    SIXTY "." SIXTY "." SIXTY "." SIXTY "."                                                                            \
          "abcdef.io"
#define PREFIX_254                                                                                                     \
    SIXTY "." SIXTY "." SIXTY "." SIXTY "."                                                                            \
          "abcdefg.io"

static void a_key_is_a_name_with_a_dns_name_before_it_if_at_all(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        bool valid;
    } cases[] = {
        {"app", true},
        {"App_1.b-c", true},
        {"7", true},
        {SIXTY_THREE, true},
        {SIXTY_FOUR, false},
        {"", false},
        {"-app", false},
        {"app-", false},
        {".app", false},
        {"a b", false},
        {"a,b", false},
        {"a=b", false},
        {"\xc3\xa9t\xc3\xa9", false},
        {"example.org/app", true},
        {"x/" SIXTY_THREE, true},
        {"x/" SIXTY_FOUR, false},
        {"/app", false},
        {"example.org/", false},
        {"example.org/a/b", false},
        {"Example.org/app", false},
        {"example..org/app", false},
        {".example.org/app", false},
        {"example.org./app", false},
        {"-example.org/app", false},
        {"exam_ple.org/app", false},
        {PREFIX_253 "/app", true},
        {PREFIX_254 "/app", false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++)
        if (cr_label_key_is_valid(cases[i].key) != cases[i].valid)
            fail_msg("'%s'", cases[i].key);
}

static void a_value_is_a_name_or_empty(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        bool valid;
    } cases[] = {
        {"", true},    {"shop", true}, {"Shop_1.b-c", true}, {SIXTY_THREE, true}, {SIXTY_FOUR, false}, {"-a", false},
        {"a_", false}, {"a b", false}, {"a/b", false},       {"a,b", false},      {"a)b", false},      {" ", false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++)
        if (cr_label_value_is_valid(cases[i].value) != cases[i].valid)
            fail_msg("'%s'", cases[i].value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_a_name_with_a_dns_name_before_it_if_at_all),
        cmocka_unit_test(a_value_is_a_name_or_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
