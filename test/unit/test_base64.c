#include "codec/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"

static void encodes_and_decodes_the_vectors_of_rfc_4648(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
        {"\xFB\xFF\xFE", "+//+"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *text = cr_base64_encode(cases[i][0], strlen(cases[i][0]));
        assert_string_equal(text, cases[i][1]);
        CR_CLEANUP(cr_buf) struct cr_buf out = {.secret = true};
        assert_true(cr_base64_decode(text, strlen(text), &out, NULL));
        assert_string_equal(cr_buf_text(&out), cases[i][0]);
    }
}

static void every_byte_survives(void **state)
{
    (void)state;
    unsigned char bytes[257];
    for (size_t len = 0; len <= sizeof bytes; len++) {
        for (size_t i = 0; i < len; i++)
            bytes[i] = (unsigned char)(i * 7 + len);
        cr_autofree char *text = cr_base64_encode(bytes, len);
        CR_CLEANUP(cr_buf) struct cr_buf out = {0};
        assert_true(cr_base64_decode(text, strlen(text), &out, NULL));
        assert_int_equal(out.len, len);
        if (len)
            assert_memory_equal(out.data, bytes, len);
    }
}

static void skips_white_space(void **state)
{
    static const char *const cases[] = {"Zm9v\nYmFy\n", "Zm9v\r\nYmFy", " Z m\t9 v Y m F y ", "Zm9vYmFy"};
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_buf) struct cr_buf out = {0};
        assert_true(cr_base64_decode(cases[i], strlen(cases[i]), &out, NULL));
        assert_string_equal(cr_buf_text(&out), "foobar");
    }
}

static void refuses_and_leaves_out_as_it_was(void **state)
{
    static const struct {
        const char *rule;
        const char *text;
        size_t len;
    } cases[] = {
        {"cut after one digit", "Z", 1},
        {"cut after two digits", "Zg", 2},
        {"cut in the padding", "Zg=", 3},
        {"only padding", "====", 4},
        {"padding after one digit", "Z===", 4},
        {"too much padding", "Zg===", 5},
        {"text after padding", "Zg==Zg==", 8},
        {"digit inside of the padding", "Zg=g", 4},
        {"bits behind one byte", "Zh==", 4},
        {"bits behind two bytes", "Zm9=", 4},
        {"URL-safe digits", "-_-_", 4},
        {"NUL", "Zm\0v", 4},
        {"high byte", "Zm9\xFF", 4},
        {"PEM armour", "-----BEGIN", 10},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_buf) struct cr_buf out = {0};
        cr_buf_puts(&out, "before");
        if (cr_base64_decode(cases[i].text, cases[i].len, &out, &err) || err.kind != CR_ERR_INVALID)
            fail_msg("%s", cases[i].rule);
        assert_string_equal(cr_buf_text(&out), "before");
    }
}

static void honours_the_cap_of_out(void **state)
{
    (void)state;
    struct cr_error err = {0};
    CR_CLEANUP(cr_buf) struct cr_buf out = CR_BUF_INIT(5);
    assert_false(cr_base64_decode("Zm9vYmFy", 8, &out, &err));
    assert_string_equal(err.text, "base64 of 6 bytes, more than the 5 allowed here");
    assert_int_equal(out.len, 0);
    assert_true(cr_base64_decode("Zm9vYmE=", 8, &out, &err));
    assert_string_equal(cr_buf_text(&out), "fooba");
}

static void an_error_names_the_byte_and_never_the_text(void **state)
{
    (void)state;
    struct cr_error err = {0};
    CR_CLEANUP(cr_buf) struct cr_buf out = {0};
    assert_false(cr_base64_decode("c2Vj*mV0", 8, &out, &err));
    assert_string_equal(err.text, "not base64: a character that is not base64 at byte 4 of 8");
}

struct pieces {
    struct cr_buf all;
    size_t count;
    size_t longest;
};

static void collect(void *arg, const void *bytes, size_t len)
{
    struct pieces *pieces = arg;
    assert_true(cr_buf_append(&pieces->all, bytes, len));
    pieces->count++;
    if (len > pieces->longest)
        pieces->longest = len;
}

static void pieces_are_the_whole_and_small(void **state)
{
    (void)state;
    char bytes[5000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7);
    for (size_t len = 0; len <= sizeof bytes; len += 383) {
        cr_autofree char *text = cr_base64_encode(bytes, len);
        struct pieces pieces = {0};
        assert_true(cr_base64_decode_pieces(text, strlen(text), collect, &pieces, NULL));
        assert_int_equal(pieces.all.len, len);
        if (len)
            assert_memory_equal(pieces.all.data, bytes, len);
        assert_true(pieces.longest <= 1024);
        cr_buf_dispose(&pieces.all);
    }
}

static void no_piece_comes_of_what_is_invalid(void **state)
{
    (void)state;
    char text[4097];
    memset(text, 'A', sizeof text);
    struct pieces pieces = {0};
    struct cr_error err = {0};
    assert_false(cr_base64_decode_pieces(text, sizeof text, collect, &pieces, &err));
    assert_int_equal(err.kind, CR_ERR_INVALID);
    assert_int_equal(pieces.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes_and_decodes_the_vectors_of_rfc_4648),
        cmocka_unit_test(pieces_are_the_whole_and_small),
        cmocka_unit_test(no_piece_comes_of_what_is_invalid),
        cmocka_unit_test(every_byte_survives),
        cmocka_unit_test(skips_white_space),
        cmocka_unit_test(refuses_and_leaves_out_as_it_was),
        cmocka_unit_test(honours_the_cap_of_out),
        cmocka_unit_test(an_error_names_the_byte_and_never_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
