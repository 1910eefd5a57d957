#include "wire/http_field.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"

static void a_status_line(void **state)
{
    static const struct {
        const char *line;
        int status; /* 0: refused */
        bool is_1_0;
    } cases[] = {
        {"HTTP/1.1 200 OK", 200, false},
        {"HTTP/1.1 200 ", 200, false},
        {"HTTP/1.1 200", 200, false}, /* RFC 9112, section 4: words may be split at white space */
        {"HTTP/1.0 404 Not Found at all", 404, true},
        {"HTTP/1.7 999 ", 999, false},
        {"HTTP/1.1 100 Continue", 100, false},
        {"HTTP/1.1 099 ", 0, false},
        {"HTTP/1.1 20 OK", 0, false},
        {"HTTP/1.1 2000", 0, false},
        {"HTTP/1.1  200 OK", 0, false},
        {"HTTP/1.1 2x0 OK", 0, false},
        {"HTTP/1.1 200\tOK", 0, false},
        {"HTTP/1.1 200 O\rK", 0, false},
        {"HTTP/1.x 200 OK", 0, false},
        {"HTTP/1.", 0, false},
        {"HTTP/1.1", 0, false},
        {"HTTP/1.1 ", 0, false},
        {"HTTP/2 200 OK", 0, false},
        {"http/1.1 200 OK", 0, false},
        {" HTTP/1.1 200 OK", 0, false},
        {"SSH-2.0-OpenSSH_9.2", 0, false},
        {"", 0, false},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        int status = 0;
        bool is_1_0 = false;
        bool ok = cr_http_status_line(cases[i].line, strlen(cases[i].line), &status, &is_1_0, &err);
        if (ok != (cases[i].status != 0) || (ok && (status != cases[i].status || is_1_0 != cases[i].is_1_0)))
            fail_msg("'%s': %d %d", cases[i].line, ok, status);
        assert_int_equal(err.kind, ok ? CR_ERR_NONE : CR_ERR_INVALID);
    }
}

static void what_has_come_so_far_can_become_a_status_line(void **state)
{
    static const struct {
        const char *line;
        bool may;
    } cases[] = {{"", true},        {"H", true},  {"HTTP/1", true}, {"HTTP/1.", true},    {"HTTP/1.1 200", true},
                 {"HTTP/2", false}, {"h", false}, {"S", false},     {"HTTPS/1.1", false}, {"\x15\x03\x01", false}};
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++)
        assert_int_equal(cr_http_may_be_status_line(cases[i].line, strlen(cases[i].line)), cases[i].may);
}

static void a_field(void **state)
{
    static const struct {
        const char *line;
        const char *name; /* NULL: refused */
        const char *value;
    } cases[] = {
        {"Content-Length: 5", "Content-Length", "5"},
        {"a:b", "a", "b"},
        {"a:", "a", ""},
        {"a: \t ", "a", ""},
        {"x-Y_1!:\tb c: d \t", "x-Y_1!", "b c: d"},
        {"Content-Length : 5", NULL, NULL},
        {": 5", NULL, NULL},
        {"no colon", NULL, NULL},
        {"a(b): c", NULL, NULL},
        {"a\x80: c", NULL, NULL},
        {"a: b\rc", NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        char line[64];
        size_t name_len = 0;
        const char *value = NULL;
        strcpy(line, cases[i].line);
        bool ok = cr_http_field(line, strlen(line), &name_len, &value, &err);
        if (ok != (cases[i].name != NULL))
            fail_msg("'%s': %d", cases[i].line, ok);
        assert_int_equal(err.kind, ok ? CR_ERR_NONE : CR_ERR_INVALID);
        if (!ok)
            continue;
        assert_int_equal(name_len, strlen(cases[i].name));
        assert_memory_equal(line, cases[i].name, name_len);
        assert_string_equal(value, cases[i].value);
    }
}

static void a_nul_is_no_end_of_a_line(void **state)
{
    (void)state;
    char field[] = "Content-Length: 5\0000";
    char line[] = "HTTP/1.1 200\0OK";
    char chunk[] = "5\0;";
    int status = 0;
    bool is_1_0 = false;
    size_t name_len = 0;
    const char *value = NULL;
    uint64_t size = 0;
    assert_false(cr_http_field(field, sizeof field - 1, &name_len, &value, NULL));
    assert_false(cr_http_status_line(line, sizeof line - 1, &status, &is_1_0, NULL));
    assert_false(cr_http_chunk_size(chunk, sizeof chunk - 1, &size, NULL));
}

static void a_content_length(void **state)
{
    static const struct {
        const char *value;
        bool ok;
        uint64_t length;
    } cases[] = {
        {"0", true, 0},
        {"5", true, 5},
        {"0005", true, 5},
        {"18446744073709551615", true, UINT64_MAX},
        {"18446744073709551616", false, 0},
        {"99999999999999999999999", false, 0},
        {"5,5", true, 5},
        {"5 , 5\t,5", true, 5},
        {"5, 6", false, 0},
        {"5,", false, 0},
        {",5", false, 0},
        {"5 5", false, 0},
        {"", false, 0},
        {"+5", false, 0},
        {"-5", false, 0},
        {"0x5", false, 0},
        {"5.0", false, 0},
        {"5a", false, 0},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        uint64_t length = 0;
        bool ok = cr_http_length(cases[i].value, &length, &err);
        if (ok != cases[i].ok || (ok && length != cases[i].length))
            fail_msg("'%s': %d %ju", cases[i].value, ok, (uintmax_t)length);
        assert_int_equal(err.kind, ok ? CR_ERR_NONE : CR_ERR_INVALID);
    }
}

static void a_chunks_size(void **state)
{
    static const struct {
        const char *line;
        bool ok;
        uint64_t size;
    } cases[] = {
        {"0", true, 0},
        {"a", true, 10},
        {"FfF", true, 0xfff},
        {"00000000000000000000001f", true, 31},
        {"ffffffffffffffff", true, UINT64_MAX},
        {"10000000000000000", false, 0},
        {"f0000000000000000", false, 0},
        {"100000000000000000005", false, 0},
        {"5;name=value", true, 5},
        {"5 ;name=\"a b\"", true, 5},
        {"5  ", true, 5},
        {"5 5", false, 0},
        {"", false, 0},
        {" 5", false, 0},
        {";a=b", false, 0},
        {"-5", false, 0},
        {"0x5", false, 0},
        {"5g", false, 0},
        {"5\r", false, 0},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        uint64_t size = 0;
        bool ok = cr_http_chunk_size(cases[i].line, strlen(cases[i].line), &size, &err);
        if (ok != cases[i].ok || (ok && size != cases[i].size))
            fail_msg("'%s': %d %ju", cases[i].line, ok, (uintmax_t)size);
        assert_int_equal(err.kind, ok ? CR_ERR_NONE : CR_ERR_INVALID);
    }
}

static void a_token(void **state)
{
    (void)state;
    assert_true(cr_http_is_token("GET", 3));
    assert_true(cr_http_is_token("a-Z0!#$%&'*+.^_`|~", 18));
    assert_false(cr_http_is_token("", 0));
    static const char others[] = " \t\r\n\"(),/:;<=>?@[\\]{}\x7f\x80";
    for (size_t i = 0; i < sizeof others; i++) /* the NUL as well */
        assert_false(cr_http_is_token(&others[i], 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_line),    cmocka_unit_test(what_has_come_so_far_can_become_a_status_line),
        cmocka_unit_test(a_field),          cmocka_unit_test(a_nul_is_no_end_of_a_line),
        cmocka_unit_test(a_content_length), cmocka_unit_test(a_chunks_size),
        cmocka_unit_test(a_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
