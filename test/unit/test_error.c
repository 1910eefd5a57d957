#include "base/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"

static void setting_answers_false_and_holds_kind_and_text(void **state)
{
    (void)state;
    struct cr_error err = {.retry_after_ms = 7};
    assert_false(cr_error_set(&err, CR_ERR_CONFLICT, "%s is at %d", "x", 3));
    assert_int_equal(err.kind, CR_ERR_CONFLICT);
    assert_int_equal(err.retry_after_ms, 0);
    assert_string_equal(err.text, "x is at 3");
    assert_false(cr_error_wrap(&err, "patching %s", "ns/name"));
    assert_int_equal(err.kind, CR_ERR_CONFLICT);
    assert_string_equal(err.text, "patching ns/name: x is at 3");
    cr_error_clear(&err);
    assert_int_equal(err.kind, CR_ERR_NONE);
    assert_string_equal(err.text, "");
}

static void wrapping_keeps_what_the_server_asked_for(void **state)
{
    (void)state;
    struct cr_error err = {0};
    cr_error_set(&err, CR_ERR_THROTTLED, "slow down");
    err.retry_after_ms = 3000;
    cr_error_wrap(&err, "listing");
    assert_int_equal(err.retry_after_ms, 3000);
}

static void no_listener_is_needed(void **state)
{
    (void)state;
    assert_false(cr_error_set(NULL, CR_ERR_INVALID, "x"));
    assert_false(cr_error_wrap(NULL, "x"));
    cr_error_clear(NULL);
}

static void a_text_is_one_line(void **state)
{
    (void)state;
    struct cr_error err = {0};
    cr_error_set(&err, CR_ERR_INVALID, "a\nb\r\nc\td\x7f\x01 e\xc3\xa9");
    assert_string_equal(err.text, "a b  c d   e\xc3\xa9");
    cr_error_wrap(&err, "x\ny");
    assert_string_equal(err.text, "x y: a b  c d   e\xc3\xa9");
}

/* Lengths around the end, so that an off-by-one shows in one of them. */
static void a_long_text_is_cut_with_dots(void **state)
{
    (void)state;
    struct cr_error err = {0};
    const size_t room = sizeof err.text - 1;
    char text[1200];
    for (size_t len = room - 3; len <= room + 3; len++) {
        memset(text, 'x', len);
        text[len] = '\0';
        cr_error_set(&err, CR_ERR_INVALID, "%s", text);
        if (len <= room) {
            assert_string_equal(err.text, text);
        } else {
            assert_int_equal(strlen(err.text), room);
            assert_true(cr_ends_with(err.text, "xx..."));
        }
    }
    memset(text, 'y', sizeof text);
    text[sizeof text - 1] = '\0';
    cr_error_wrap(&err, "doing");
    assert_true(cr_starts_with(err.text, "doing: xxx"));
    assert_true(cr_ends_with(err.text, "..."));
    cr_error_set(&err, CR_ERR_INVALID, "cause");
    cr_error_wrap(&err, "%s", text);
    assert_true(strlen(err.text) < sizeof err.text);
    assert_true(cr_ends_with(err.text, ": cause")); /* the doing is cut, never the cause */
}

static bool is_utf8(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        size_t more = *p < 0x80 ? 0 : *p >> 5 == 6 ? 1 : *p >> 4 == 14 ? 2 : *p >> 3 == 30 ? 3 : 9;
        if (more == 9)
            return false;
        for (p++; more; more--, p++)
            if (*p >> 6 != 2)
                return false;
    }
    return true;
}

static void a_cut_never_splits_a_character(void **state)
{
    (void)state;
    static const char *const characters[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x94\x91"};
    for (size_t i = 0; i < cr_array_len(characters); i++) {
        for (size_t shift = 0; shift < 4; shift++) {
            char text[1400] = "";
            memset(text, 'x', shift);
            size_t width = strlen(characters[i]);
            for (size_t at = shift; at + width < sizeof text - 1; at += width)
                memcpy(text + at, characters[i], width + 1);
            struct cr_error err = {0};
            cr_error_set(&err, CR_ERR_INVALID, "%s", text);
            assert_true(is_utf8(err.text));
            assert_true(cr_ends_with(err.text, "..."));
        }
    }
}

static void kinds_have_names_and_say_whether_to_retry(void **state)
{
    static const struct {
        enum cr_error_kind kind;
        const char *name;
        bool retry;
    } cases[] = {
        {CR_ERR_NONE, "None", false},
        {CR_ERR_INVALID, "Invalid", false},
        {CR_ERR_NOT_FOUND, "NotFound", false},
        {CR_ERR_CONFLICT, "Conflict", true},
        {CR_ERR_GONE, "Gone", true},
        {CR_ERR_THROTTLED, "Throttled", true},
        {CR_ERR_UNAUTHORIZED, "Unauthorized", true},
        {CR_ERR_FORBIDDEN, "Forbidden", true},
        {CR_ERR_TRANSIENT, "Transient", true},
        {CR_ERR_CANCELLED, "Cancelled", false},
        {CR_ERR_INTERNAL, "Internal", false},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct cr_error err = {.kind = cases[i].kind};
        assert_string_equal(cr_error_kind_name(cases[i].kind), cases[i].name);
        assert_true(cr_error_is_retryable(&err) == cases[i].retry);
    }
}

static void trouble_with_a_file_has_the_kind_that_the_kernel_says(void **state)
{
    (void)state;
    static const struct {
        int error;
        enum cr_error_kind kind;
    } cases[] = {
        {ENOENT, CR_ERR_NOT_FOUND}, {ENOTDIR, CR_ERR_NOT_FOUND}, {EACCES, CR_ERR_FORBIDDEN},
        {EPERM, CR_ERR_FORBIDDEN},  {EISDIR, CR_ERR_INVALID},    {ELOOP, CR_ERR_INVALID},
        {EIO, CR_ERR_TRANSIENT},    {EMFILE, CR_ERR_TRANSIENT},  {ENAMETOOLONG, CR_ERR_INVALID},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        char text[128];
        snprintf(text, sizeof text, "/a/file: %s", strerror(cases[i].error));
        errno = cases[i].error;
        assert_false(cr_error_set_file(&err, "/a/file"));
        assert_int_equal(err.kind, cases[i].kind);
        assert_string_equal(err.text, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setting_answers_false_and_holds_kind_and_text),
        cmocka_unit_test(wrapping_keeps_what_the_server_asked_for),
        cmocka_unit_test(no_listener_is_needed),
        cmocka_unit_test(a_text_is_one_line),
        cmocka_unit_test(a_long_text_is_cut_with_dots),
        cmocka_unit_test(a_cut_never_splits_a_character),
        cmocka_unit_test(trouble_with_a_file_has_the_kind_that_the_kernel_says),
        cmocka_unit_test(kinds_have_names_and_say_whether_to_retry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
