#include "base/packing.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"

static struct cr_unpacking from(const struct cr_buf *packed)
{
    return cr_unpacking_of(packed->data, packed->len);
}

static void integers_of_any_size_come_back_and_small_ones_take_a_byte(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        size_t bytes;
    } cases[] = {
        {0, 1},   {-1, 1},   {63, 1},   {-64, 1},        {64, 2},         {1000, 2},
        {-65, 2}, {8191, 2}, {8192, 3}, {INT64_MAX, 10}, {INT64_MIN, 10}, {1795300000000, 6},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_buf) struct cr_buf packed = {0};
        cr_pack_int(&packed, cases[i].value);
        struct cr_unpacking left = from(&packed);
        int64_t value = cr_unpack_int(&left);
        if (value != cases[i].value || packed.len != cases[i].bytes || !cr_unpacking_at_end(&left))
            fail_msg("%lld came back as %lld in %zu bytes", (long long)cases[i].value, (long long)value, packed.len);
    }
}

static void texts_come_back_and_none_is_none(void **state)
{
    (void)state;
    static const char *const texts[] = {NULL, "", "tls.crt", "a longer one with ü"};
    CR_CLEANUP(cr_buf) struct cr_buf packed = {0};
    for (size_t i = 0; i < cr_array_len(texts); i++)
        cr_pack_text(&packed, texts[i]);
    struct cr_unpacking left = from(&packed);
    for (size_t i = 0; i < cr_array_len(texts); i++) {
        cr_autofree char *text = cr_unpack_text(&left);
        assert_true(cr_streq(text, texts[i]));
    }
    assert_true(cr_unpacking_at_end(&left));
}

static void hexadecimal_is_half_as_long_and_all_else_comes_back_too(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bytes;
    } cases[] = {
        {"", 1},       {"0", 2},    {"0f", 2},
        {"123", 3},    {"f00f", 3}, {"F00F", 5},
        {"no hex", 7}, {"12g", 4},  {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 2 + 32},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_buf) struct cr_buf packed = {0};
        char out[65];
        cr_pack_hex(&packed, cases[i].text);
        struct cr_unpacking left = from(&packed);
        cr_unpack_hex(&left, out, strlen(cases[i].text) + 1);
        if (strcmp(out, cases[i].text) != 0 || packed.len != cases[i].bytes || !cr_unpacking_at_end(&left))
            fail_msg("%s came back as %s in %zu bytes", cases[i].text, out, packed.len);
    }
}

static void lists_come_back_in_their_order(void **state)
{
    (void)state;
    CR_CLEANUP(cr_strvec) struct cr_strvec texts = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec all = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec hexes = {0};
    CR_CLEANUP(cr_buf) struct cr_buf packed = {0};
    cr_strvec_add(&texts, "beef");
    cr_strvec_add(&texts, "");
    cr_strvec_add(&texts, "no hex");
    cr_pack_texts(&packed, &texts);
    cr_pack_hexes(&packed, &texts);
    struct cr_unpacking left = from(&packed);
    cr_unpack_texts(&left, &all);
    cr_unpack_hexes(&left, &hexes);
    assert_true(cr_strvec_equal(&all, &texts) && cr_strvec_equal(&hexes, &texts));
    assert_true(cr_unpacking_at_end(&left));
}

static void bytes_are_borrowed_and_compared(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf packed = {0};
    cr_pack_bytes(&packed, "a\0b", 3);
    cr_pack_bytes(&packed, NULL, 0);
    struct cr_unpacking left = from(&packed);
    struct cr_unpacking one = cr_unpack_bytes(&left);
    assert_true(cr_unpacking_is(&one, "a\0b", 3) && !cr_unpacking_is(&one, "a\0c", 3) &&
                !cr_unpacking_is(&one, "a", 1));
    struct cr_unpacking none = cr_unpack_bytes(&left);
    assert_true(cr_unpacking_at_end(&none) && cr_unpacking_at_end(&left));
}

/* What it read of that; false: it ended by itself, which it must. */
static bool reads_on(const struct cr_buf *packed, size_t len)
{
    pid_t child = fork();
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
        struct cr_unpacking left = cr_unpacking_of(packed->data, len);
        cr_autofree char *text = cr_unpack_text(&left);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void what_is_cut_off_ends_the_program(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf packed = {0};
    cr_pack_text(&packed, "tls.crt");
    assert_true(reads_on(&packed, packed.len));
    assert_false(reads_on(&packed, packed.len - 1));
    assert_false(reads_on(&packed, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_of_any_size_come_back_and_small_ones_take_a_byte),
        cmocka_unit_test(texts_come_back_and_none_is_none),
        cmocka_unit_test(hexadecimal_is_half_as_long_and_all_else_comes_back_too),
        cmocka_unit_test(lists_come_back_in_their_order),
        cmocka_unit_test(bytes_are_borrowed_and_compared),
        cmocka_unit_test(what_is_cut_off_ends_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
