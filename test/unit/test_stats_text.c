#include "drain/stats_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"

#define STAT(name, value)     "listener." name ".downstream_cx_active: " value "\n"
#define ARRIVING(name, value) "listener." name ".downstream_pre_cx_active: " value "\n"

static bool sum_of(const char *text, uint64_t *open, struct cr_error *err)
{
    char *left_out[] = {(char[]){"0.0.0.0_8002"}, (char[]){"envoy_internal_inner"}};
    const struct cr_strvec names = {.items = left_out, .len = cr_array_len(left_out)};
    *err = (struct cr_error){0};
    return cr_stats_envoy(text, strlen(text), &names, open, err);
}

static void connections_of_clients_are_summed(void **state)
{
    static const struct {
        const char *rule;
        const char *text;
        uint64_t open;
    } cases[] = {
        {"all listeners count", STAT("0.0.0.0_8080", "3") STAT("[__1]_10002", "4") STAT("/run/l.sock", "5"), 12},
        {"none are zero", STAT("0.0.0.0_8080", "0"), 0},
        {"the interface itself does not", STAT("admin", "1") STAT("admin.main_thread", "1") STAT("a", "2"), 2},
        {"a name like it does", STAT("admin", "1") STAT("my.admin", "2") STAT("administration", "3"), 5},
        {"what is left out does not", STAT("0.0.0.0_8002", "7") STAT("envoy_internal_inner", "8") STAT("a", "1"), 1},
        {"nor do its threads", STAT("0.0.0.0_8002", "7") STAT("0.0.0.0_8002.worker_0", "7") STAT("a", "1"), 1},
        {"threads are in the whole", STAT("a", "5") STAT("a.worker_0", "2") STAT("a.worker_15", "3"), 5},
        {"in any order", STAT("a.worker_0", "5") STAT("a.worker_1", "0") STAT("a", "5"), 5},
        {"a prefix may look like a thread's", STAT("a.worker_1", "5") STAT("a.worker_1.worker_0", "5"), 5},
        {"a thread needs a number", STAT("a", "1") STAT("a.worker_", "2") STAT("a.worker_x", "4"), 7},
        {"and a dot", STAT("a", "1") STAT("aworker_0", "2"), 3},
        {"names have blanks and what they like", STAT("weird_x y\xc3\xbc", "2") STAT("a: 9", "3"), 5},
        {"who has not said a word yet is connected", STAT("a", "1") ARRIVING("a", "2"), 3},
        {"whichever comes first", ARRIVING("a", "2") STAT("a", "1"), 3},
        {"of all but these",
         STAT("admin", "1") ARRIVING("admin", "1") STAT("0.0.0.0_8002", "0") ARRIVING("0.0.0.0_8002", "1"), 0},
        {"a prefix like a thread's", STAT("a.worker_1", "1") ARRIVING("a.worker_1", "2"), 3},
        {"big numbers", STAT("a", "18446744073709551614") STAT("b", "1"), UINT64_MAX},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err;
        uint64_t open = 99;
        if (!sum_of(cases[i].text, &open, &err) || open != cases[i].open)
            fail_msg("%s: %llu %s", cases[i].rule, (unsigned long long)open, err.text);
    }
}

static void what_is_not_understood_is_no_number(void **state)
{
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"", "no statistics of listeners"},
        {"\n", "another line: ''"},
        {"listener.a.downstream_cx_active: 0", "end within a line"},
        {STAT("a", "0") "listener.b.downstream_cx_act", "end within a line: 'listener.b.downstream_cx_act'"},
        {STAT("a", "0") "\n", "another line"},
        {STAT("a", ""), "another line"},
        {STAT("a", "-1"), "another line"},
        {STAT("a", "1.5"), "another line"},
        {STAT("a", "0x10"), "another line"},
        {STAT("a", "1 "), "another line"},
        {STAT("a", "0\r"), "another line"},
        {STAT("a", "18446744073709551616"), "another line"},
        {STAT("a", "18446744073709551615") STAT("b", "1"), "so many"},
        {STAT("a\x01", "1"), "another line: 'listener.a?.downstream_cx_active: 1'"},
        {ARRIVING("a", "0"), "no downstream_cx_active of the listener a"},
        {STAT("a", "0") ARRIVING("b", "0"), "no downstream_cx_active of the listener b"},
        {"listener.downstream_cx_active: 1\n", "another line"},
        {"listener..downstream_cx_active: 1\n", "another line"},
        {"listener.a.downstream_cx_active:1\n", "another line"},
        {"listener.a.downstream_cx_active 1\n", "another line"},
        {"http.a.downstream_cx_active: 1\n", "another line"},
        {"listener.a.downstream_cx_total: 1\n", "another line"},
        {": 1\n", "another line"},
        {" 1\n", "another line"},
        {"<html>no healthy upstream</html>\n", "another line"},
        {"{\"stats\":[]}", "end within a line"},
        {"OK\n", "another line: 'OK'"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err;
        uint64_t open = 99;
        if (sum_of(cases[i].text, &open, &err) || open != 99 || err.kind != CR_ERR_INVALID ||
            !strstr(err.text, cases[i].words))
            fail_msg("'%s': %llu %s", cases[i].text, (unsigned long long)open, err.text);
    }
}

static void a_nul_ends_nothing(void **state)
{
    static const char text[] = "listener.a\0.downstream_cx_active: 1\n";
    static const struct cr_strvec none;
    struct cr_error err = {0};
    uint64_t open = 99;
    (void)state;
    assert_false(cr_stats_envoy(text, sizeof text - 1, &none, &open, &err));
    assert_int_equal(err.kind, CR_ERR_INVALID);
    assert_int_equal(open, 99);
}

static void a_body_may_be_a_number(void **state)
{
    static const struct {
        const char *text;
        bool ok;
        uint64_t open;
    } cases[] = {
        {"0", true, 0},          {"17\n", true, 17}, {" 3\r\n", true, 3}, {"18446744073709551615", true, UINT64_MAX},
        {"", false, 0},          {"\n", false, 0},   {"-1", false, 0},    {"18446744073709551616", false, 0},
        {"1 2", false, 0},       {"1.0", false, 0},  {"none", false, 0},  {"0 connections", false, 0},
        {"{\"a\":0}", false, 0}, {"+1", false, 0},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        uint64_t open = 99;
        bool ok = cr_stats_number(cases[i].text, strlen(cases[i].text), &open, &err);
        if (ok != cases[i].ok || open != (ok ? cases[i].open : 99) || (!ok && err.kind != CR_ERR_INVALID))
            fail_msg("'%s': %llu %s", cases[i].text, (unsigned long long)open, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_of_clients_are_summed),
        cmocka_unit_test(what_is_not_understood_is_no_number),
        cmocka_unit_test(a_nul_ends_nothing),
        cmocka_unit_test(a_body_may_be_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
