#include "net/probe_greeting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strings.h"

/* A string literal as bytes, with the zeroes in it. */
#define BYTES(text) (text), sizeof(text) - 1

/* On the heap and exactly as long, so that a read beyond the end is found. */
static unsigned char *exact(const char *bytes, size_t len)
{
    return memcpy(cr_malloc(len ? len : 1), bytes, len);
}

/* --- PostgreSQL --- */

static void postgres_is_asked_by_an_ssl_request(void **state)
{
    (void)state;
    unsigned char out[CR_GREETING_REQUEST];
    assert_int_equal(cr_postgres_request(out), 8);
    assert_memory_equal(out, "\0\0\0\x08\x04\xd2\x16\x2f", 8); /* 80877103 */
}

#define PG_ERROR "E\0\0\0\x33SFATAL\0VFATAL\0C53300\0Msorry, too many clients\0\0"

static void postgres_answers(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *bytes;
        size_t len;
        bool closed;
        enum cr_greeting verdict;
        size_t missing;
        const char *words;
    } cases[] = {
        {"nothing yet", BYTES(""), false, CR_GREETING_MORE, 1, ""},
        {"hung up", BYTES(""), true, CR_GREETING_FOREIGN, 0, ""},
        {"yes", BYTES("S"), false, CR_GREETING_TLS, 0, ""},
        {"no", BYTES("N"), false, CR_GREETING_NO_TLS, 0, ""},
        {"no, and hung up", BYTES("N"), true, CR_GREETING_NO_TLS, 0, ""},
        {"GSS is not what was asked for", BYTES("G"), false, CR_GREETING_FOREIGN, 0, "G"},
        {"a web server", BYTES("HTTP/1.1 400 Bad"), false, CR_GREETING_FOREIGN, 0, "HTTP/1.1 400 Bad"},
        {"an error begins", BYTES("E"), false, CR_GREETING_MORE, 4, ""},
        {"and goes on", BYTES("E\0\0\0"), false, CR_GREETING_MORE, 1, ""},
        {"its length is known", BYTES("E\0\0\0\x2d"), false, CR_GREETING_MORE, 0x2d - 4, ""},
        {"an error, whole", BYTES(PG_ERROR), false, CR_GREETING_ERROR, 0, "sorry, too many clients"},
        {"an error that is cut off", BYTES("E\0\0\0\x2dSFATAL\0Msorry, too"), true, CR_GREETING_ERROR, 0, ""},
        {"its message is there all the same", BYTES("E\0\0\0\x2dMsorry\0S"), true, CR_GREETING_ERROR, 0, "sorry"},
        {"an error without a message", BYTES("E\0\0\0\x0cSFATAL\0\0"), false, CR_GREETING_ERROR, 0, ""},
        {"an error without anything", BYTES("E\0\0\0\x04"), false, CR_GREETING_ERROR, 0, ""},
        {"a length below itself", BYTES("E\0\0\0\x03"), false, CR_GREETING_FOREIGN, 0, ""},
        {"old, without a length", BYTES("Ecould not fork"), false, CR_GREETING_MORE, 1, ""},
        {"and whole", BYTES("Ecould not fork: no memory\n\0"), false, CR_GREETING_ERROR, 0,
         "could not fork: no memory"},
        {"and cut off", BYTES("Ecould not"), true, CR_GREETING_ERROR, 0, "could not"},
        {"and cut off at once", BYTES("Eco"), true, CR_GREETING_FOREIGN, 0, ""},
        {"what a terminal would obey is not repeated", BYTES("E\0\0\0\x0fM\x1b[2J'\x80x\0\0"), true, CR_GREETING_ERROR,
         0, ".[2J..x"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree unsigned char *data = exact(cases[i].bytes, cases[i].len);
        char words[CR_GREETING_WORDS];
        size_t missing = 99;
        enum cr_greeting verdict = cr_postgres_answer(data, cases[i].len, cases[i].closed, &missing, words);
        if (verdict != cases[i].verdict || strcmp(words, cases[i].words) != 0 ||
            (verdict == CR_GREETING_MORE && !cases[i].closed && missing != cases[i].missing))
            fail_msg("%s: %d, %zu missing, '%s'", cases[i].rule, (int)verdict, missing, words);
    }
}

/* An answer without an end is not read for ever. */
static void an_endless_error_is_cut(void **state)
{
    (void)state;
    unsigned char data[CR_GREETING_MAX];
    char words[CR_GREETING_WORDS];
    size_t missing = 0;
    memset(data, 'x', sizeof data);
    data[0] = 'E';
    assert_int_equal(cr_postgres_answer(data, sizeof data - 1, false, &missing, words), CR_GREETING_MORE);
    assert_int_equal(cr_postgres_answer(data, sizeof data, false, &missing, words), CR_GREETING_ERROR);
    assert_int_equal(strlen(words), CR_GREETING_WORDS - 1);
}

/* --- MySQL --- */

/* Version, thread, salt, zero, capabilities, charset, status, capabilities, salt's length, ten zeroes, salt, plugin. */
#define SALT    "\x0b\0\0\0SALTSALT\0"
#define TEN     "\0\0\0\0\0\0\0\0\0\0"
#define REST    "saltsaltsalt\0mysql_native_password\0"
#define WITH    SALT "\xff\xff\x2d\x02\0\xff\xc1\x15" TEN REST /* with CLIENT_SSL */
#define WITHOUT SALT "\xff\xf7\x2d\x02\0\xff\xc1\x15" TEN REST
#define GREETS                                                                                                         \
    "\x4a\0\0\0\x0a"                                                                                                   \
    "8.0.33\0" WITH

static void mysql_greets(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *bytes;
        size_t len;
        enum cr_greeting verdict;
        size_t missing;
        const char *words;
        const char *plugin;
    } cases[] = {
        {"nothing yet", BYTES(""), CR_GREETING_MORE, 4, "", ""},
        {"a head", BYTES("\x4a\0\0\0"), CR_GREETING_MORE, 0x4a, "", ""},
        {"half of it",
         BYTES("\x4a\0\0\0\x0a"
               "8.0"),
         CR_GREETING_MORE, 0x4a - 4, "", ""},
        {"with TLS", BYTES(GREETS), CR_GREETING_TLS, 0, "", "mysql_native_password"},
        {"MariaDB",
         BYTES("\x4a\0\0\0\x0a"
               "5.5.5-\0" WITH),
         CR_GREETING_TLS, 0, "", "mysql_native_password"},
        {"without TLS",
         BYTES("\x4a\0\0\0\x0a"
               "8.0.33\0" WITHOUT),
         CR_GREETING_NO_TLS, 0, "", "mysql_native_password"},
        {"of old, without TLS",
         BYTES("\x18\0\0\0\x0a"
               "3.23.58\0\x0b\0\0\0SALTSALT\0\x2c\x20\x08\x02\0"),
         CR_GREETING_NO_TLS, 0, "", ""},
        {"blocked", BYTES("\x1a\0\0\0\xff\x69\x04Host 'x' is blocked now"), CR_GREETING_ERROR, 0,
         "Host .x. is blocked now", ""},
        {"full, with a state", BYTES("\x1d\0\0\0\xff\x10\x04#08004Too many connections"), CR_GREETING_ERROR, 0,
         "Too many connections", ""},
        {"an error without words", BYTES("\x03\0\0\0\xff\x10\x04"), CR_GREETING_ERROR, 0, "", ""},
        {"an empty packet", BYTES("\0\0\0\0"), CR_GREETING_FOREIGN, 0, "", ""},
        {"a packet of another number", BYTES("\x01\0\0\x01\x0a"), CR_GREETING_FOREIGN, 0, "", ""},
        {"another protocol", BYTES("\x02\0\0\0\x09x"), CR_GREETING_FOREIGN, 0, "", ""},
        {"a version without an end",
         BYTES("\x04\0\0\0\x0a"
               "8.0"),
         CR_GREETING_FOREIGN, 0, "", ""},
        {"nothing but a version",
         BYTES("\x05\0\0\0\x0a"
               "8.0\0"),
         CR_GREETING_FOREIGN, 0, "", ""},
        {"a web server: far too long for a packet", BYTES("HTTP/1.1 400"), CR_GREETING_FOREIGN, 0, "HTTP/1.1 400", ""},
        {"a TLS server's alert", BYTES("\x15\x03\x01\0"), CR_GREETING_FOREIGN, 0, "...", ""},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree unsigned char *data = exact(cases[i].bytes, cases[i].len);
        char words[CR_GREETING_WORDS];
        size_t missing = 99;
        struct cr_mysql_greeting greeting;
        enum cr_greeting verdict = cr_mysql_answer(data, cases[i].len, &missing, &greeting, words);
        if (verdict != cases[i].verdict || strcmp(words, cases[i].words) != 0 || missing != cases[i].missing ||
            strcmp(greeting.plugin, cases[i].plugin) != 0)
            fail_msg("%s: %d, %zu missing, '%s', '%s'", cases[i].rule, (int)verdict, missing, words, greeting.plugin);
    }
}

static struct cr_mysql_greeting greeting_of(const char *bytes, size_t len)
{
    struct cr_mysql_greeting greeting;
    char words[CR_GREETING_WORDS];
    size_t missing = 0;
    (void)cr_mysql_answer((const unsigned char *)bytes, len, &missing, &greeting, words);
    return greeting;
}

/* Only what the server can do is asked of it, and always TLS and protocol 4.1. */
static void mysql_is_asked_by_an_ssl_request(void **state)
{
    (void)state;
    unsigned char out[CR_GREETING_REQUEST];
    struct cr_mysql_greeting greeting = greeting_of(BYTES(GREETS));
    assert_int_equal(cr_mysql_request(&greeting, out), 36);
    assert_memory_equal(out, "\x20\0\0\x01\x01\x8a\x08\0\0\0\x01\0\x21", 13);
    greeting.capabilities = 0;
    assert_int_equal(cr_mysql_request(&greeting, out), 36);
    assert_memory_equal(out + 4, "\0\x0a\0\0", 4);
}

static void the_log_in_has_a_name_and_no_password(void **state)
{
    (void)state;
    unsigned char out[CR_GREETING_REQUEST];
    struct cr_mysql_greeting greeting = greeting_of(BYTES(GREETS));
    size_t len = cr_mysql_login(&greeting, true, out);
    assert_int_equal(len, 36 + 15 + 1 + 22);
    assert_memory_equal(out, "\x46\0\0\x02\x01\x8a\x08\0", 8);
    assert_memory_equal(out + 36, "certroll-probe\0\0mysql_native_password\0", 38);
    len = cr_mysql_login(&greeting, false, out);
    assert_memory_equal(out, "\x46\0\0\x01\x01\x82\x08\0", 8); /* the first packet, without CLIENT_SSL */
    greeting = (struct cr_mysql_greeting){0};
    assert_int_equal(cr_mysql_login(&greeting, false, out), 36 + 15 + 1);
}

static void the_longest_name_of_a_plugin_fits(void **state)
{
    (void)state;
    unsigned char out[CR_GREETING_REQUEST];
    struct cr_mysql_greeting greeting = {.capabilities = UINT32_MAX};
    memset(greeting.plugin, 'p', sizeof greeting.plugin - 1);
    assert_in_range(cr_mysql_login(&greeting, true, out), 36, sizeof out);
}

static void replies_end_the_conversation(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *bytes;
        size_t len;
        size_t missing;
        const char *reply;
        size_t reply_len;
    } cases[] = {
        {"nothing yet", BYTES(""), 4, BYTES("")},
        {"half of it", BYTES("\x05\0\0\x03\xff"), 4, BYTES("")},
        {"refused: it is over", BYTES("\x05\0\0\x03\xff\x15\x04no"), 0, BYTES("")},
        {"let in: COM_QUIT", BYTES("\x01\0\0\x03\0"), 0, BYTES("\x01\0\0\0\x01")},
        {"another plugin: no password there either", BYTES("\x02\0\0\x03\xfex"), 0, BYTES("\0\0\0\x04")},
        {"more of that plugin: nor there", BYTES("\x02\0\0\x05\x01\x04"), 0, BYTES("\0\0\0\x06")},
        {"numbers begin anew after 255", BYTES("\x02\0\0\xff\xfex"), 0, BYTES("\0\0\0\0")},
        {"an empty packet", BYTES("\0\0\0\x03"), 0, BYTES("")},
        {"what nobody knows", BYTES("\x01\0\0\x03\x42"), 0, BYTES("")},
        {"far too long", BYTES("\xff\xff\xff\x03"), 0, BYTES("")},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree unsigned char *data = exact(cases[i].bytes, cases[i].len);
        unsigned char out[CR_GREETING_REQUEST];
        size_t missing = 99;
        size_t len = cr_mysql_reply(data, cases[i].len, &missing, out);
        if (len != cases[i].reply_len || missing != cases[i].missing || memcmp(out, cases[i].reply, len) != 0)
            fail_msg("%s: %zu bytes, %zu missing", cases[i].rule, len, missing);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(postgres_is_asked_by_an_ssl_request),
        cmocka_unit_test(postgres_answers),
        cmocka_unit_test(an_endless_error_is_cut),
        cmocka_unit_test(mysql_greets),
        cmocka_unit_test(mysql_is_asked_by_an_ssl_request),
        cmocka_unit_test(the_log_in_has_a_name_and_no_password),
        cmocka_unit_test(the_longest_name_of_a_plugin_fits),
        cmocka_unit_test(replies_end_the_conversation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
