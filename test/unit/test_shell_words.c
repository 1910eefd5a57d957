#include "controlplane/agent/shell_words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/strings.h"

/* Each script prints the words of its program: what is read of it is what this machine's shell makes of it. */
/* clang-format off */
static const struct {
    const char *rule;
    const char *script;
} known[] = {
    {"plain words", "printf '<%s>' --a=b --c d"},
    {"exec", "exec printf '<%s>' a"},
    {"a quoted exec", "'exec' printf '<%s>' a"},
    {"quotes, side by side", "printf '<%s>' 'a b'\"c d\"e\\ f ''"},
    {"a dollar that is none", "printf '<%s>' '$A `b`' \"\\$A\" \\$A \"\\`\""},
    {"backslashes", "printf '<%s>' 'a\\b' \"a\\b\\\\c\\\"\" \\\\ \\'"},
    {"lines that go on", "printf \\\n  '<%s>' a\\\nb \"c\\\nd\" \\\n  e"},
    {"lines in quotes", "printf '<%s>' 'a\nb' \"c\n\td\""},
    {"redirections", "printf '<%s>' a 2>/dev/null b 2>&1 </dev/null c 3>&1 >&2 2>&1 d 1>&3"},
    {"a number that is no descriptor", "printf '<%s>' 2 '2'>&1 '3' a2>&1"},
    {"comments", "# printf a\nprintf '<%s>' a#b '#c' # d\n# e"},
    {"what comes before", "set -eu\nA=b; C='d e' true; true && printf '<%s>' a b c"},
    {"assignments before it", "A=b C=\"d e\" printf '<%s>' A=b C=d"},
    {"words that are keywords elsewhere", "printf '<%s>' if then { } ! exec"},
    {"patterns in quotes", "printf '<%s>' '*' \"?\" \\[ '~'"},
    {"an end of line", "printf '<%s>' a;\n"},
    {"a blank line between", "true &&\n\n printf '<%s>' a b"},
    {"the last exec", "false && exec printf x\nexec printf '<%s>' a"},
};

static const struct {
    const char *rule;
    const char *script;
    const char *words;
} unknown[] = {
    {"nothing", "", ""},
    {"only a comment", "# etcd --a", ""},
    {"only an assignment", "A=b", ""},
    {"a parameter", "etcd $A", "etcd $A"},
    {"in double quotes", "etcd \"--a=${A}\"", "etcd --a=${A}"},
    {"a command's output", "etcd `id`", "etcd `id`"},
    {"patterns", "etcd a*", "etcd a*"},
    {"a home", "etcd ~/a", "etcd ~/a"},
    {"bash's braces", "etcd {a,b}", "etcd {a,b}"},
    {"pipes", "etcd a | tee b", "etcd a"},
    {"jobs", "etcd a & wait", "etcd a"},
    {"or", "etcd a || b", "etcd a"},
    {"a subshell", "(etcd a)", "etcd a"},
    {"a group", "{ etcd a; }", "{ etcd a"},
    {"a condition", "if a; then etcd b c; fi", "then etcd b c"},
    {"a function", "f() { etcd a b; }", "{ etcd a b"},
    {"a trap", "trap a b; etcd a b c", "etcd a b c"},
    {"eval", "eval etcd a", "eval etcd a"},
    {"another folder", "cd a; etcd b c", "etcd b c"},
    {"more behind", "etcd a b; true", "etcd a b"},
    {"exec with options", "exec -a b etcd", "-a b etcd"},
    {"a builtin in quotes", "'cd' a; etcd b c", "etcd b c"},
    {"the end of the script", "exit 0\netcd a b", "etcd a b"},
    {"a text in it", "cat <<E\nE\netcd a b", "etcd a b"},
    {"bash's redirection of both", "etcd a &>b", "etcd a"},
    {"bash's files of commands", "etcd a <(b)", "etcd a"},
    {"a quote without its end", "etcd 'a", "etcd a"},
    {"a double one", "etcd \"a", "etcd a"},
    {"a backslash at the end", "etcd a\\", "etcd a"},
};
/* clang-format on */

/* What the shell's printf prints for these words. Owned. */
static char *printed(const struct cr_strvec *words)
{
    struct cr_buf out = CR_BUF_INIT(0);
    assert_true(words->len > 1);
    assert_string_equal(words->items[0], "printf");
    assert_string_equal(words->items[1], "<%s>");
    for (size_t i = 2; i < words->len; i++)
        cr_buf_printf(&out, "<%s>", words->items[i]);
    return cr_buf_steal(&out);
}

/* Owned. */
static char *run(const char *script)
{
    assert_int_equal(setenv("SCRIPT", script, 1), 0);
    FILE *shell = popen("exec sh -c \"$SCRIPT\" 2>&1", "r");
    assert_non_null(shell);
    struct cr_buf out = CR_BUF_INIT(0);
    char chunk[256];
    size_t n = 0;
    while ((n = fread(chunk, 1, sizeof chunk, shell)) > 0)
        assert_true(cr_buf_append(&out, chunk, n));
    pclose(shell);
    return cr_buf_steal(&out);
}

static void test_as_the_shell_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(known); i++) {
        CR_CLEANUP(cr_strvec) struct cr_strvec words = {0};
        if (!cr_shell_words(known[i].script, &words))
            fail_msg("%s: not known", known[i].rule);
        cr_autofree char *ours = printed(&words);
        cr_autofree char *theirs = run(known[i].script);
        if (!cr_streq(ours, theirs))
            fail_msg("%s: \"%s\", but the shell has \"%s\"", known[i].rule, ours, theirs);
    }
}

static void test_not_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(unknown); i++) {
        CR_CLEANUP(cr_strvec) struct cr_strvec words = {0};
        bool is_known = cr_shell_words(unknown[i].script, &words);
        cr_autofree char *text = cr_strvec_join(&words, " ");
        if (is_known || !cr_streq(text, unknown[i].words))
            fail_msg("%s: %s \"%s\"", unknown[i].rule, is_known ? "known" : "not known", text);
    }
}

static void test_too_many_words(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf script = CR_BUF_INIT(0);
    for (int i = 0; i < CR_SHELL_WORDS_MAX; i++)
        cr_buf_puts(&script, "a ");
    CR_CLEANUP(cr_strvec) struct cr_strvec most = {0};
    assert_true(cr_shell_words(script.data, &most));
    cr_buf_puts(&script, "a");
    CR_CLEANUP(cr_strvec) struct cr_strvec more = {0};
    assert_false(cr_shell_words(script.data, &more));
    assert_int_equal(more.len, CR_SHELL_WORDS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_the_shell_does),
        cmocka_unit_test(test_not_known),
        cmocka_unit_test(test_too_many_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
