#include "controlplane/agent/given_flags.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

/* clang-format off */
static const struct {
    const char *rule;
    const char *words[6];
    const char *flags; /* "name=value", "name" without one, by spaces; "! word" the stray one */
} rows[] = {
    {"a value behind =", {"--tls-cert-file=/a"}, "tls-cert-file=/a"},
    {"a value in the next word", {"--tls-cert-file", "/a", "--v", "2"}, "tls-cert-file=/a v=2"},
    {"a value may have = in it", {"--feature-gates=A=true,B=false"}, "feature-gates=A=true,B=false"},
    {"an empty value is one", {"--tls-cert-file=", "--v=2"}, "tls-cert-file= v=2"},
    {"no value", {"--rotate-certificates", "--v=2"}, "rotate-certificates v=2"},
    {"no value at the end", {"--rotate-certificates"}, "rotate-certificates"},
    {"one dash", {"-cert-file", "/a", "-v=2"}, "cert-file=/a v=2"},
    {"underscores are dashes in names alone", {"--tls_cert_file=/a_b"}, "tls-cert-file=/a_b"},
    {"a word that belongs to no flag", {"start", "--v=2", "x"}, "v=2 ! start"},
    {"behind its value, a word belongs to none", {"--v", "2", "3"}, "v=2 ! 3"},
    {"a dash alone is a word", {"--file", "-"}, "file=-"},
    {"behind -- there are no flags", {"--v=2", "--", "--w=3"}, "v=2 ! --w=3"},
    {"nothing behind --", {"--v", "--"}, "v"},
    {"nothing", {NULL}, ""},
};

static const struct { const char *value; int want; } switches[] = {
    {NULL, 1}, {"true", 1}, {"T", 1}, {"1", 1}, {"True", 1}, {"false", 0}, {"F", 0}, {"0", 0}, {"FALSE", 0},
    {"", -1}, {"yes", -1}, {"tRUE", -1}, {"10", -1},
};
/* clang-format on */

static void reads_flags_as_go_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        size_t len = 0;
        char *words[6];
        for (; len < cr_array_len(words) && rows[i].words[len]; len++)
            words[len] = cr_strdup(rows[i].words[len]);
        CR_CLEANUP(cr_given_flags) struct cr_given_flags flags;
        cr_given_flags_read(words, len, &flags);
        while (len)
            free(words[--len]);
        CR_CLEANUP(cr_buf) struct cr_buf is = CR_BUF_INIT(0);
        for (size_t k = 0; k < flags.len; k++)
            cr_buf_printf(&is, "%s%s%s%s", k ? " " : "", flags.items[k].name, flags.items[k].value ? "=" : "",
                          cr_or_empty(flags.items[k].value));
        if (flags.stray)
            cr_buf_printf(&is, " ! %s", flags.stray);
        if (!cr_streq(cr_buf_text(&is), rows[i].flags))
            fail_msg("%s: want '%s', is '%s'", rows[i].rule, rows[i].flags, cr_buf_text(&is));
    }
}

static void the_last_one_counts(void **state)
{
    (void)state;
    char first[] = "--a=1";
    char other[] = "--b=2";
    char last[] = "--a=";
    char *words[] = {first, other, last};
    CR_CLEANUP(cr_given_flags) struct cr_given_flags flags;
    cr_given_flags_read(words, 2, &flags);
    assert_string_equal(cr_given_flags_text(&flags, "a"), "1");
    cr_given_flags_dispose(&flags);
    cr_given_flags_read(words, 3, &flags);
    assert_string_equal(cr_given_flags_find(&flags, "a")->value, "");
    assert_null(cr_given_flags_text(&flags, "a"));
    assert_null(cr_given_flags_find(&flags, "c"));
}

static void a_switch_is_true_or_false(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(switches); i++) {
        cr_autofree char *value = cr_strdup_or_null(switches[i].value);
        struct cr_given_flag flag = {.value = value};
        bool is = false;
        int got = cr_given_flag_bool(&flag, &is) ? is : -1;
        if (got != switches[i].want)
            fail_msg("'%s': want %d, is %d", cr_or_empty(value), switches[i].want, got);
    }
}

static void too_many_are_cut(void **state)
{
    (void)state;
    static char word[] = "--a=1";
    static char *words[CR_GIVEN_FLAGS_MAX + 1];
    for (size_t i = 0; i < cr_array_len(words); i++)
        words[i] = word;
    CR_CLEANUP(cr_given_flags) struct cr_given_flags flags;
    cr_given_flags_read(words, CR_GIVEN_FLAGS_MAX, &flags);
    assert_false(flags.cut);
    cr_given_flags_dispose(&flags);
    cr_given_flags_read(words, CR_GIVEN_FLAGS_MAX + 1, &flags);
    assert_true(flags.cut);
    assert_int_equal(flags.len, CR_GIVEN_FLAGS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_flags_as_go_does),
        cmocka_unit_test(the_last_one_counts),
        cmocka_unit_test(a_switch_is_true_or_false),
        cmocka_unit_test(too_many_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
