#include "sidecar/resp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"

static void a_command_is_an_array_of_bulk_strings(void **state)
{
    static const char *const words[] = {"CONFIG", "GET", ""};
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf out = {0};
    cr_resp_command(words, 3, &out);
    assert_string_equal(cr_buf_text(&out), "*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$0\r\n\r\n");
}

static void values_are_read(void **state)
{
    static const struct {
        const char *data;
        enum cr_resp_type type;
        const char *text;
        long number;
    } cases[] = {
        {"+OK\r\n", CR_RESP_OK, "OK", 0},      {"-ERR no\r\n", CR_RESP_ERROR, "ERR no", 0},
        {":12\r\n", CR_RESP_NUMBER, "12", 12}, {"$2\r\na\n\r\n", CR_RESP_BULK, "a\n", 2},
        {"$0\r\n\r\n", CR_RESP_BULK, "", 0},   {"$-1\r\n", CR_RESP_NULL, "-1", -1},
        {"*2\r\n", CR_RESP_ARRAY, "2", 2},     {"+\r\n", CR_RESP_OK, "", 0},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_resp_value value;
        size_t at = 0;
        size_t len = strlen(cases[i].data);
        assert_int_equal(cr_resp_read(cases[i].data, len, &at, &value), CR_RESP_READ);
        assert_int_equal(value.type, cases[i].type);
        assert_int_equal(value.len, strlen(cases[i].text));
        assert_memory_equal(value.text, cases[i].text, value.len);
        assert_int_equal(value.number, cases[i].number);
        assert_int_equal(at, len);
        /* Cut anywhere it is not there yet, and nothing is taken. */
        for (size_t cut = 0; cut < len; cut++) {
            at = 0;
            assert_int_equal(cr_resp_read(cases[i].data, cut, &at, &value), CR_RESP_MORE);
            assert_int_equal(at, 0);
        }
    }
}

static void what_is_not_this_format_is_reported(void **state)
{
    static const char *const cases[] = {"HTTP/1.1 400 Bad Request\r\n",
                                        "\x15\x03\x01\r\n",
                                        "$x\r\n",
                                        "$\r\n",
                                        "$-2\r\n",
                                        "*-1\r\n",
                                        ":1x\r\n",
                                        "$99999999999\r\n",
                                        "$1\r\nabc\r\n",
                                        "$ 1\r\na\r\n",
                                        "$+1\r\na\r\n"};
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_resp_value value;
        size_t at = 0;
        if (cr_resp_read(cases[i], strlen(cases[i]), &at, &value) != CR_RESP_BAD)
            fail_msg("taken: %s", cases[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_is_an_array_of_bulk_strings),
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(what_is_not_this_format_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
