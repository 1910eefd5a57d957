#include "codec/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

static struct cr_json *parse(const char *text)
{
    struct cr_error err = {0};
    struct cr_json *j = cr_yaml_parse(text, strlen(text), &err);
    if (!j)
        fail_msg("%s\n%s", err.text, text);
    return j;
}

struct yaml_case {
    const char *rule, *yaml, *json;
};

static void check(const struct yaml_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_json) struct cr_json *j = cr_yaml_parse(cases[i].yaml, strlen(cases[i].yaml), &err);
        cr_autofree char *text = j ? cr_json_print(j) : cr_strdup(err.text);
        if (strcmp(text, cases[i].json) != 0)
            fail_msg("%s: got %s, want %s", cases[i].rule, text, cases[i].json);
    }
}

static void resolves_plain_scalars_by_the_core_schema(void **state)
{
    static const struct yaml_case cases[] = {
        {"null words", "[null, Null, NULL, ~, ]", "[null,null,null,null]"},
        {"an absent value is null", "a:\nb: 1", "{\"a\":null,\"b\":1}"},
        {"booleans", "[true, True, TRUE, false, False, FALSE]", "[true,true,true,false,false,false]"},
        {"other cases are strings", "[tRUE, nULL, y, n]", "[\"tRUE\",\"nULL\",\"y\",\"n\"]"},
        {"integers", "[0, 1, -1, +12, 9007199254740992, -9007199254740992]",
         "[0,1,-1,12,9007199254740992,-9007199254740992]"},
        {"octal and hexadecimal", "[0o17, 0xfF]", "[15,255]"},
        {"no octal, no hexadecimal", "[0o8, 0xg, -0x1, 0o, 0x]", "[\"0o8\",\"0xg\",\"-0x1\",\"0o\",\"0x\"]"},
        {"floats", "[1.5, .5, -.5, 1., 1e3, 1.5E-1]", "[1.5,0.5,-0.5,1,1000,0.15]"},
        {"versions", "[1.36.3, v1.36, 10.96.0.1]", "[\"1.36.3\",\"v1.36\",\"10.96.0.1\"]"},
        {"numbers of YAML 1.1 that 1.2 takes for text", "[1_000, 12:30:45]", "[\"1_000\",\"12:30:45\"]"},
        {"a date is text", "2026-11-21", "\"2026-11-21\""},
        {"quoted scalars are strings", "['1', \"true\", '', \"null\", 'yes', \"01\"]",
         "[\"1\",\"true\",\"\",\"null\",\"yes\",\"01\"]"},
        {"!!str and ! make strings", "[!!str 1, ! true]", "[\"1\",\"true\"]"},
        {"keys are strings as written", "{1: a, true: b, 1.50: c}", "{\"1\":\"a\",\"true\":\"b\",\"1.50\":\"c\"}"},
    };
    (void)state;
    check(cases, cr_array_len(cases));
}

static void what_is_almost_a_number_is_text(void **state)
{
    static const char *const words[] = {".", "e3", "1e", "1e+", "1.2.3", "+", "-.", "..1", "0x", "+0x1", "1 2"};
    (void)state;
    for (size_t i = 0; i < cr_array_len(words); i++) {
        cr_autofree char *yaml = cr_asprintf("a: %s", words[i]);
        CR_CLEANUP(cr_json) struct cr_json *j = parse(yaml);
        const char *text = cr_json_string_at(j, "a");
        if (!cr_streq(text, words[i]))
            fail_msg("%s read as %s", words[i], cr_or_empty(text));
    }
}

static void reads_the_styles_people_write(void **state)
{
    static const struct yaml_case cases[] = {
        {"empty text", "", "{}"},
        {"only comments", "# nothing\n\n# here\n", "{}"},
        {"only a document marker", "---\n", "{}"},
        {"document markers around", "%YAML 1.2\n---\na: 1\n...\n", "{\"a\":1}"},
        {"a marker with nothing behind", "a: 1\n---\n", "{\"a\":1}"},
        {"literal block", "a: |\n  one\n  two\n\nb: 1\n", "{\"a\":\"one\\ntwo\\n\",\"b\":1}"},
        {"literal block, stripped", "a: |-\n  one\n  two\n", "{\"a\":\"one\\ntwo\"}"},
        {"folded block", "a: >\n  one\n  two\n", "{\"a\":\"one two\\n\"}"},
        {"a block of digits is text", "a: |-\n  123\n", "{\"a\":\"123\"}"},
        {"plain text over lines", "a: one\n  two # comment\n", "{\"a\":\"one two\"}"},
        {"double quotes with escapes", "a: \"x\\ty\\u00e9\\\n  z\"", "{\"a\":\"x\\ty\xC3\xA9z\"}"},
        {"single quotes", "a: 'it''s # no comment'", "{\"a\":\"it's # no comment\"}"},
        {"sequence not indented", "a:\n- 1\n- b: 2\n  c: 3\n", "{\"a\":[1,{\"b\":2,\"c\":3}]}"},
        {"flow", "{a: [1, {b: c}], d: {}}", "{\"a\":[1,{\"b\":\"c\"}],\"d\":{}}"},
        {"JSON", "{\"a\": [1, \"x\", null, {\"b\": true}]}", "{\"a\":[1,\"x\",null,{\"b\":true}]}"},
        {"CRLF", "a: 1\r\nb: |\r\n  x\r\n", "{\"a\":1,\"b\":\"x\\n\"}"},
        {"byte order mark",
         "\xEF\xBB\xBF"
         "a: 1",
         "{\"a\":1}"},
        {"tags of the node's own kind", "!!map {a: !!seq [!!str b]}", "{\"a\":[\"b\"]}"},
        {"a quoted << is a key as any", "{\"<<\": 1}", "{\"<<\":1}"},
        {"a scalar alone", "text", "\"text\""},
    };
    (void)state;
    check(cases, cr_array_len(cases));
}

static void reads_a_kubeconfig(void **state)
{
    static const char text[] = "# written by hand\n"
                               "apiVersion: v1\n"
                               "kind: Config\n"
                               "current-context: 'admin@local'\n"
                               "preferences: {}\n"
                               "clusters:\n"
                               "- name: local\n"
                               "  cluster:\n"
                               "    server: \"https://10.0.0.1:6443\"   # the node\n"
                               "    insecure-skip-tls-verify: false\n"
                               "    certificate-authority-data: |\n"
                               "      LS0tLS1C\n"
                               "      RUdJTg==\n"
                               "contexts:\n"
                               "  - context: {cluster: local, user: admin, namespace: default}\n"
                               "    name: admin@local\n"
                               "users:\n"
                               "- name: admin\n"
                               "  user:\n"
                               "    exec:\n"
                               "      apiVersion: client.authentication.k8s.io/v1\n"
                               "      command: plugin\n"
                               "      args: [get-token, --cluster, \"1\"]\n"
                               "      env: null\n";
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *j = parse(text);
    const struct cr_json *cluster = cr_json_get(cr_json_first(cr_json_get(j, "clusters")), "cluster");
    assert_string_equal(cr_json_string_at(j, "current-context"), "admin@local");
    assert_string_equal(cr_json_string_at(cluster, "server"), "https://10.0.0.1:6443");
    assert_string_equal(cr_json_string_at(cluster, "certificate-authority-data"), "LS0tLS1C\nRUdJTg==\n");
    assert_false(cr_json_bool_at(cluster, true, "insecure-skip-tls-verify"));
    const struct cr_json *context = cr_json_first(cr_json_get(j, "contexts"));
    assert_string_equal(cr_json_string_at(context, "context", "namespace"), "default");
    const struct cr_json *exec = cr_json_at(cr_json_first(cr_json_get(j, "users")), "user", "exec");
    assert_int_equal(cr_json_len(cr_json_get(exec, "args")), 3);
    assert_true(cr_json_is_null(cr_json_get(exec, "env")));
}

static void refuses_with_line_and_column(void **state)
{
    static const struct {
        const char *rule, *yaml, *where;
    } cases[] = {
        {"alias", "a: &x 1\nb: *x\n", "an anchor or alias at line 1, column 4"},
        {"anchor on a mapping", "a: &x\n  b: 1\n", "an anchor or alias at line 1"},
        {"anchor on a sequence", "a: &x [1]\n", "an anchor or alias at line 1"},
        {"anchor on a key", "&x a: 1\n", "an anchor or alias at line 1, column 1"},
        {"alias to nothing", "a: *x\n", "an anchor or alias at line 1, column 4"},
        {"merge key", "a:\n  <<: {b: 1}\n", "a merge key at line 2, column 3"},
        {"binary tag", "a: !!binary aGk=\n", "a tag other than !!str at line 1"},
        {"local tag", "a: !secret x\n", "a tag other than !!str at line 1"},
        {"local tag on a mapping", "a: !x {b: 1}\n", "a tag other than that of the node's own kind"},
        {"set", "a: !!set {b: }\n", "a tag other than that of the node's own kind"},
        {"core tag of the wrong kind", "a: !!map [1]\n", "a tag other than that of the node's own kind"},
        {"core tag through a directive", "%TAG !e! tag:example.org,2026:\n---\na: !e!x 1\n", "a tag other than !!str"},
        {"repeated key", "a: 1\nb: 2\na: 3\n", "a key that was there before at line 3, column 1"},
        {"repeated key in other quotes", "{a: 1, \"a\": 2}", "a key that was there before at line 1, column 8"},
        {"mapping as a key", "? {a: 1}\n: b\n", "a key that is no scalar"},
        {"sequence as a key", "[a]: b\n", "a key that is no scalar"},
        {"empty key", "?\n: b\n", "an empty key at line 1"},
        {"second document", "a: 1\n---\nb: 2\n", "a second document at line 2"},
        {"syntax error in the rest", "a: 1\n---\n}", "at line 3"},
        {"yes", "a: yes\n", "yes, no, on or off: write true or false, or quote it at line 1, column 4"},
        {"Off", "a: Off\n", "yes, no, on or off"},
        {"leading zero", "mode: 0644\n", "a number with leading zeros"},
        {"negative leading zero", "mode: -01\n", "a number with leading zeros"},
        {"beyond 2^53", "a: 9007199254740993\n", "an integer beyond 2^53"},
        {"beyond 2^64", "a: 99999999999999999999\n", "an integer beyond 2^53"},
        {"infinity", "a: -.inf\n", "an infinity or not-a-number"},
        {"not a number", "a: .nan\n", "an infinity or not-a-number"},
        {"float out of range", "a: 1e999\n", "a number out of range"},
        {"NUL escape", "a: \"x\\0y\"\n", "a NUL in a string at line 1"},
        {"tab as indentation", "a:\n\tb: 1\n", "at line 2"},
        {"unclosed flow", "a: [1\n", "at line 2"},
        {"unclosed quote", "a: \"x\n", "at line 2"},
        {"control character", "a: \x01\n", "control characters are not allowed at byte 3"},
        {"invalid UTF-8", "a: \xFF\n", "at byte 3"},
        {"UTF-16",
         "\xFF\xFE"
         "a:1",
         "at byte 0"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_json) struct cr_json *j = cr_yaml_parse(cases[i].yaml, strlen(cases[i].yaml), &err);
        if (j)
            fail_msg("%s: was accepted", cases[i].rule);
        if (err.kind != CR_ERR_INVALID || !strstr(err.text, cases[i].where))
            fail_msg("%s: %s", cases[i].rule, err.text);
    }
}

static void repeat(struct cr_buf *out, const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cr_buf_puts(out, text);
}

static void refuse_buffer(const struct cr_buf *text, const char *why)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *j = cr_yaml_parse(text->data, text->len, &err);
    assert_null(j);
    if (!strstr(err.text, why))
        fail_msg("want %s, got %s", why, err.text);
}

static void depth_is_capped(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf fits = {0};
    repeat(&fits, "[", 64);
    repeat(&fits, "]", 64);
    CR_CLEANUP(cr_json) struct cr_json *j = parse(cr_buf_text(&fits));
    assert_true(cr_json_is_array(j));
    /* libyaml alone needs 10 s for this one */
    CR_CLEANUP(cr_buf) struct cr_buf flow = {0};
    repeat(&flow, "[", 80000);
    refuse_buffer(&flow, "nested more than 64 deep");
    CR_CLEANUP(cr_buf) struct cr_buf lines = {0};
    repeat(&lines, "[\n", 80000);
    refuse_buffer(&lines, "nested more than 64 deep");
    CR_CLEANUP(cr_buf) struct cr_buf dashes = {0};
    repeat(&dashes, "- ", 80000);
    refuse_buffer(&dashes, "nested more than 64 deep");
    CR_CLEANUP(cr_buf) struct cr_buf questions = {0};
    repeat(&questions, "{", 80000);
    refuse_buffer(&questions, "");
}

static void bytes_are_capped(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf text = {0};
    repeat(&text, "# 16 characters\n", CR_YAML_MAX_BYTES / 16);
    CR_CLEANUP(cr_json) struct cr_json *j = parse(cr_buf_text(&text));
    assert_int_equal(cr_json_len(j), 0);
    cr_buf_puts(&text, "\n");
    refuse_buffer(&text, "YAML of 1048577 bytes, more than the 1048576 that are read");
}

static void nodes_are_capped(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf text = {0};
    repeat(&text, "- a\n", CR_YAML_MAX_NODES - 1); /* and the sequence itself */
    CR_CLEANUP(cr_json) struct cr_json *j = parse(cr_buf_text(&text));
    assert_int_equal(cr_json_len(j), CR_YAML_MAX_NODES - 1);
    cr_buf_puts(&text, "- a\n");
    refuse_buffer(&text, "more than 100000 nodes");
}

static void keys_of_a_mapping_are_capped(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf text = {0};
    for (int i = 0; i < CR_YAML_MAX_KEYS; i++)
        cr_buf_printf(&text, "k%d: 1\n", i);
    CR_CLEANUP(cr_json) struct cr_json *j = parse(cr_buf_text(&text));
    assert_int_equal(cr_json_len(j), CR_YAML_MAX_KEYS);
    cr_buf_puts(&text, "more: 1\n");
    refuse_buffer(&text, "a mapping of more than 1000 keys at line 1001");
}

static void an_error_never_shows_the_text(void **state)
{
    static const char *const texts[] = {"token: s3cret\ntoken: s3cret\n",
                                        "a: !s3cret s3cret\n",
                                        "a: [s3cret\n",
                                        "a: *s3cret\n",
                                        "%s3cret\n---\n",
                                        "a: \"\\s3cret\"",
                                        "s3cret\na: 1\n"};
    (void)state;
    for (size_t i = 0; i < cr_array_len(texts); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_json) struct cr_json *j = cr_yaml_parse(texts[i], strlen(texts[i]), &err);
        if (j && i != 4) /* an unknown directive is only warned of */
            fail_msg("accepted: %s", texts[i]);
        assert_null(strstr(err.text, "s3cret"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resolves_plain_scalars_by_the_core_schema),
        cmocka_unit_test(what_is_almost_a_number_is_text),
        cmocka_unit_test(reads_the_styles_people_write),
        cmocka_unit_test(reads_a_kubeconfig),
        cmocka_unit_test(refuses_with_line_and_column),
        cmocka_unit_test(depth_is_capped),
        cmocka_unit_test(bytes_are_capped),
        cmocka_unit_test(nodes_are_capped),
        cmocka_unit_test(keys_of_a_mapping_are_capped),
        cmocka_unit_test(an_error_never_shows_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
