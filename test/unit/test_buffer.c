#include "base/buffer.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"

static void an_empty_buffer_is_an_empty_text(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf buf = CR_BUF_INIT(0);
    assert_string_equal(cr_buf_text(&buf), "");
    cr_buf_consume(&buf, 0);
    cr_buf_reset(&buf);
    assert_true(cr_buf_append(&buf, "", 0));
    assert_string_equal(cr_buf_text(&buf), "");
    cr_autofree char *stolen = cr_buf_steal(&buf);
    assert_string_equal(stolen, "");
}

static void appending_grows_and_keeps_the_terminator(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf buf = CR_BUF_INIT(0);
    for (size_t i = 0; i < 5000; i++) {
        char c = (char)('a' + i % 26);
        assert_true(cr_buf_append(&buf, &c, 1));
        assert_int_equal(buf.len, i + 1);
        assert_int_equal(buf.data[buf.len], '\0');
        assert_true(buf.cap > buf.len);
    }
    for (size_t i = 0; i < 5000; i++)
        assert_int_equal(buf.data[i], 'a' + (int)(i % 26));
}

/* Over the size from which a buffer has pages of its own, both ways. */
static void a_big_buffer_is_a_buffer(void **state)
{
    (void)state;
    static const size_t sizes[] = {100 * 1024, 128 * 1024 - 1, 128 * 1024, 300 * 1024, 3 * 1024 * 1024};
    for (size_t i = 0; i < cr_array_len(sizes); i++) {
        CR_CLEANUP(cr_buf) struct cr_buf buf = {.secret = i % 2 == 0};
        for (size_t n = 0; n < sizes[i] / 10; n++)
            assert_true(cr_buf_append(&buf, "0123456789", 10));
        size_t len = sizes[i] / 10 * 10;
        assert_int_equal(buf.len, len);
        for (size_t n = 0; n < len; n++)
            assert_int_equal(buf.data[n], '0' + (int)(n % 10));
        assert_int_equal(buf.data[len], '\0');
        cr_buf_consume(&buf, 5);
        assert_memory_equal(buf.data, "5678901234", 10);
        cr_autofree char *text = cr_buf_steal(&buf);
        assert_int_equal(strlen(text), len - 5);
        assert_string_equal(cr_buf_text(&buf), "");
        assert_true(cr_buf_append(&buf, "again", 5));
        assert_string_equal(cr_buf_text(&buf), "again");
    }
}

static void what_a_secret_buffer_held_is_wiped(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf buf = {.secret = true};
    static const char zeros[200];
    char keys[200];
    memset(keys, 'k', sizeof keys);
    assert_true(cr_buf_append(&buf, keys, sizeof keys));
    cr_buf_consume(&buf, 150);
    assert_memory_equal(buf.data + 50, zeros, 150);
    cr_buf_reset(&buf);
    assert_memory_equal(buf.data, zeros, 200);
}

static void a_cap_is_passed_by_no_byte(void **state)
{
    static const struct {
        size_t max;
        size_t first;
        size_t second;
        bool fits;
    } cases[] = {
        {10, 0, 10, true},       {10, 0, 11, false},          {10, 4, 6, true},
        {10, 4, 7, false},       {10, 10, 0, true},           {10, 10, 1, false},
        {1, 0, 1, true},         {0, 10, 5000, true},         {10, 1, SIZE_MAX, false},
        {0, 1, SIZE_MAX, false}, {0, 1, SIZE_MAX / 2, false},
    };
    static const char bytes[5000];
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_buf) struct cr_buf buf = CR_BUF_INIT(cases[i].max);
        assert_true(cr_buf_append(&buf, bytes, cases[i].first));
        assert_true(cr_buf_append(&buf, bytes, cases[i].second) == cases[i].fits);
        assert_int_equal(buf.len, cases[i].first + (cases[i].fits ? cases[i].second : 0));
    }
}

static void consuming_drops_from_the_front(void **state)
{
    static const struct {
        size_t count;
        const char *left;
    } cases[] = {{0, "abcdef"}, {1, "bcdef"}, {5, "f"}, {6, ""}, {7, ""}, {SIZE_MAX, ""}};
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_buf) struct cr_buf buf = CR_BUF_INIT(0);
        cr_buf_puts(&buf, "abcdef");
        cr_buf_consume(&buf, cases[i].count);
        assert_string_equal(cr_buf_text(&buf), cases[i].left);
        assert_int_equal(buf.len, strlen(cases[i].left));
        cr_buf_printf(&buf, "%s%d", "+", 1);
        assert_true(cr_ends_with(buf.data, "+1"));
    }
}

static void a_stolen_text_leaves_nothing(void **state)
{
    (void)state;
    struct cr_buf buf = CR_BUF_INIT(0);
    cr_buf_puts(&buf, "mine");
    char *text = cr_buf_steal(&buf);
    assert_string_equal(text, "mine");
    assert_null(buf.data);
    assert_int_equal(buf.len + buf.cap, 0);
    cr_buf_dispose(&buf);
    free(text);
}

/* --- what is freed --- */

/* Of a sanitizer; NULL without one. fn: with each block that is about to be freed. */
extern int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
                                                     void (*fn)(const volatile void *)) __attribute__((weak));

static size_t keys_freed;

static void on_malloc(const volatile void *block, size_t size)
{
    (void)block;
    (void)size;
}

static void on_free(const volatile void *block)
{
    void *bytes = (void *)(uintptr_t)block;
    if (bytes && memmem(bytes, malloc_usable_size(bytes), "hunter2", 7))
        keys_freed++;
}

static void no_key_is_in_what_a_secret_buffer_frees(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        bool secret;
        size_t more; /* bytes behind the key */
        bool print;
        bool freed;
    } cases[] = {
        {"one that is no secret: this test can fail", false, 0, false, true},
        {"disposed of", true, 0, false, false},
        {"grown", true, 5000, false, false},
        {"grown until it has pages", true, 300 * 1000, false, false},
        {"printed", true, 0, true, false},
    };
    if (!__sanitizer_install_malloc_and_free_hooks)
        skip();
    assert_int_not_equal(__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free), 0);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        keys_freed = 0;
        struct cr_buf buf = {.secret = cases[i].secret};
        if (cases[i].print)
            cr_buf_printf(&buf, "%s%d", "hunter", 2);
        else
            cr_buf_puts(&buf, "hunter2");
        for (size_t n = 0; n < cases[i].more; n += 10)
            cr_buf_puts(&buf, "0123456789");
        cr_buf_dispose(&buf);
        if ((keys_freed != 0) != cases[i].freed)
            fail_msg("%s: %zu blocks with the key", cases[i].rule, keys_freed);
    }
}

static void a_secret_is_wiped_when_it_is_reset(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf buf = {.secret = true};
    cr_buf_puts(&buf, "hunter2");
    cr_buf_reset(&buf);
    assert_int_equal(buf.len, 0);
    for (size_t i = 0; i <= strlen("hunter2"); i++)
        assert_int_equal(buf.data[i], 0);
}

static void what_is_cut_off_is_gone(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf buf = {.secret = true};
    cr_buf_cut(&buf, 0); /* never grown */
    cr_buf_puts(&buf, "kept, gone");
    cr_buf_cut(&buf, 11);
    cr_buf_cut(&buf, 10);
    assert_string_equal(buf.data, "kept, gone");
    cr_buf_cut(&buf, 4);
    assert_int_equal(buf.len, 4);
    assert_memory_equal(buf.data, "kept\0\0\0\0\0\0", 10); /* a secret is wiped */
    cr_buf_puts(&buf, "!");
    assert_string_equal(buf.data, "kept!");
    cr_buf_cut(&buf, 0);
    assert_string_equal(cr_buf_text(&buf), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_big_buffer_is_a_buffer),
        cmocka_unit_test(no_key_is_in_what_a_secret_buffer_frees),
        cmocka_unit_test(what_a_secret_buffer_held_is_wiped),
        cmocka_unit_test(an_empty_buffer_is_an_empty_text),
        cmocka_unit_test(appending_grows_and_keeps_the_terminator),
        cmocka_unit_test(a_cap_is_passed_by_no_byte),
        cmocka_unit_test(consuming_drops_from_the_front),
        cmocka_unit_test(a_stolen_text_leaves_nothing),
        cmocka_unit_test(a_secret_is_wiped_when_it_is_reset),
        cmocka_unit_test(what_is_cut_off_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
