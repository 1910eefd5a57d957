#include "codec/json.h"

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
    struct cr_json *j = cr_json_parse(text, strlen(text), &err);
    if (!j)
        fail_msg("%s: %s", text, err.text);
    return j;
}

struct text_case {
    const char *rule;
    const char *text;
    size_t len; /* 0: up to the NUL */
};

/* Each text in memory of its own exact size, so that a read past its end is caught. */
static struct cr_json *parse_case(const struct text_case *c, struct cr_error *err)
{
    size_t len = c->len ? c->len : strlen(c->text);
    char *exact = cr_memdup(c->text, len);
    struct cr_json *j = cr_json_parse(exact, len, err);
    free(exact);
    return j;
}

#define TEXT(bytes) (bytes), sizeof(bytes) - 1

static void refuses_what_rfc_8259_refuses(void **state)
{
    static const struct text_case cases[] = {
        {"empty text", "", 0},
        {"only white space", " \n", 0},
        {"truncated exponent, which cJSON takes", "1e", 0},
        {"truncated exponent with sign", "1e+", 0},
        {"truncated fraction", "1.", 0},
        {"fraction without integer", ".5", 0},
        {"plus sign", "+1", 0},
        {"lonely minus", "-", 0},
        {"leading zero", "01", 0},
        {"negative leading zero", "-012", 0},
        {"hexadecimal", "0x10", 0},
        {"NaN", "NaN", 0},
        {"infinity by exponent", "1e999", 0},
        {"number of more than 63 characters", "1234567890123456789012345678901234567890123456789012345678901234", 0},
        {"second value", "{} {}", 0},
        {"text after the value", "{}x", 0},
        {"truncated object", "{\"a\":1", 0},
        {"truncated after comma", "[1,", 0},
        {"truncated word", "tru", 0},
        {"longer word", "truex", 0},
        {"upper-case word", "True", 0},
        {"trailing comma in an array", "[1,]", 0},
        {"trailing comma in an object", "{\"a\":1,}", 0},
        {"missing comma", "[1 2]", 0},
        {"missing colon", "{\"a\" 1}", 0},
        {"key without quotes", "{a:1}", 0},
        {"number as key", "{1:1}", 0},
        {"single quotes", "{'a':1}", 0},
        {"wrong closer", "[1}", 0},
        {"closer without opener", "]", 0},
        {"comment", "/* c */ 1", 0},
        {"string without end", "\"abc", 0},
        {"string that ends in a backslash", "\"abc\\", 0},
        {"unknown escape", "\"\\x41\"", 0},
        {"short unicode escape", "\"\\u12\"", 0},
        {"unicode escape with a letter beyond f", "\"\\u12g4\"", 0},
        {"lone high surrogate", "\"\\ud800\"", 0},
        {"lone low surrogate", "\"\\udc00\"", 0},
        {"two high surrogates", "\"\\ud800\\ud800\"", 0},
        {"raw newline in a string", "\"a\nb\"", 0},
        {"raw tab in a string", "\"a\tb\"", 0},
        {"NUL in a string", TEXT("\"a\0b\"")},
        {"NUL after the value", TEXT("{}\0")},
        {"NUL between values", TEXT("[1,\0 2]")},
        {"byte order mark", "\xEF\xBB\xBF{}", 0},
        {"UTF-8: stray continuation", "\"\x80\"", 0},
        {"UTF-8: overlong slash", "\"\xC0\xAF\"", 0},
        {"UTF-8: overlong three bytes", "\"\xE0\x80\xAF\"", 0},
        {"UTF-8: surrogate", "\"\xED\xA0\x80\"", 0},
        {"UTF-8: above U+10FFFF", "\"\xF4\x90\x80\x80\"", 0},
        {"UTF-8: cut at the end of the text", "\"\xE2\x82", 0},
        {"UTF-8: cut by the quote", "\"\xE2\x82\"", 0},
        {"UTF-8: in a key", "{\"\xFF\":1}", 0},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        struct cr_json *j = parse_case(&cases[i], &err);
        if (j || err.kind != CR_ERR_INVALID || !cr_starts_with(err.text, "not JSON: "))
            fail_msg("%s: %s", cases[i].rule, j ? "was accepted" : err.text);
    }
}

/* in is parsed and printed; out NULL: printed as it came. */
static void prints_what_it_read(void **state)
{
    static const struct {
        const char *rule, *in, *out;
    } cases[] = {
        {"words", "[null,true,false]", NULL},
        {"empty containers", "{\"a\":{},\"b\":[]}", NULL},
        {"order of keys", "{\"z\":1,\"a\":2,\"m\":3}", NULL},
        {"white space around", " \t\r\n[ 1 , 2 ] \n", "[1,2]"},
        {"largest exact integer", "[9007199254740992,-9007199254740992]", NULL},
        {"integers where cJSON's printer rounds", "[9007199254740991,9007199254740989,1234567890123456]", NULL},
        {"32-bit borders", "[2147483647,2147483648,-2147483649,4294967296]", NULL},
        {"epoch milliseconds", "1795241421123", NULL},
        {"fractions", "[0.1,-2.5,1e-07]", NULL},
        {"exponent that is an integer", "1e3", "1000"},
        {"negative zero", "-0", "0"},
        {"escapes", "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\"", NULL},
        {"escaped slash", "\"a\\/b\"", "\"a/b\""},
        {"escaped letter", "\"\\u0041\"", "\"A\""},
        {"surrogate pair", "\"\\ud83d\\uDE00\"", "\"\xF0\x9F\x98\x80\""},
        {"UTF-8 of all lengths",
         "\"\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\"", NULL},
        {"escaped NUL becomes U+FFFD", "\"a\\u0000b\"",
         "\"a\xEF\xBF\xBD"
         "b\""},
        {"escaped NUL in a key", "{\"\\u0000\":\"\\u0000\\u0000\"}", "{\"\xEF\xBF\xBD\":\"\xEF\xBF\xBD\xEF\xBF\xBD\"}"},
        {"escaped backslash before u0000", "\"\\\\u0000\\u0000\"", "\"\\\\u0000\xEF\xBF\xBD\""},
        {"empty key and string", "{\"\":\"\"}", NULL},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_json) struct cr_json *j = parse(cases[i].in);
        cr_autofree char *text = cr_json_print(j);
        const char *want = cases[i].out ? cases[i].out : cases[i].in;
        if (strcmp(text, want) != 0)
            fail_msg("%s: got %s, want %s", cases[i].rule, text, want);
        CR_CLEANUP(cr_json) struct cr_json *again = parse(text);
        assert_true(cr_json_equal(j, again));
    }
}

static char *nested(size_t depth)
{
    char *text = cr_malloc(2 * depth + 2);
    memset(text, '[', depth);
    text[depth] = '1';
    memset(text + depth + 1, ']', depth);
    text[2 * depth + 1] = '\0';
    return text;
}

static void nests_100_deep_and_no_further(void **state)
{
    static const struct {
        size_t depth;
        bool accepted;
    } cases[] = {{1, true}, {100, true}, {101, false}, {1000, false}, {200000, false}};
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        cr_autofree char *text = nested(cases[i].depth);
        CR_CLEANUP(cr_json) struct cr_json *j = cr_json_parse(text, strlen(text), &err);
        assert_int_equal(j != NULL, cases[i].accepted);
        if (!cases[i].accepted)
            assert_non_null(strstr(err.text, "nested more than 100 deep"));
    }
}

static void a_text_has_no_more_values_than_its_budget(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *text;
        size_t values;
    } cases[] = {
        {"a scalar", "1", 1},
        {"an empty container", "{}", 1},
        {"elements", "[0,\"\",null]", 4},
        {"members, of which the key is a part", "{\"a\":1,\"b\":[]}", 3},
        {"of all depths", "[[[0],{\"a\":{\"b\":true}}]]", 7},
        {"no commas or brackets of strings", "[\"[0,0,0]\"]", 2},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        for (size_t less = 0; less < 2; less++) {
            struct cr_json_budget budget = {.values = cases[i].values - less};
            struct cr_error err = {0};
            CR_CLEANUP(cr_json)
            struct cr_json *j = cr_json_parse_within(cases[i].text, strlen(cases[i].text), &budget, &err);
            if ((j != NULL) != !less || budget.exceeded != less)
                fail_msg("%s: %zu values are left, '%s'", cases[i].rule, budget.values, err.text);
            assert_int_equal(budget.values, less ? cases[i].values - 1 : 0);
            assert_true(!less || (err.kind == CR_ERR_INVALID && strstr(err.text, "more than the")));
        }
    }
}

static void what_is_no_json_does_not_exceed_its_budget(void **state)
{
    (void)state;
    struct cr_json_budget budget = {.values = 2};
    assert_null(cr_json_parse_within("[0,0,0,0", 8, &budget, NULL));
    assert_false(budget.exceeded);
    assert_int_equal(budget.values, 2);
}

/* Who says nothing has a bound, too. */
static void a_text_without_a_budget_has_a_bound(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    cr_buf_puts(&text, "[0");
    for (size_t i = 2; i < CR_JSON_VALUES_MAX; i++)
        cr_buf_puts(&text, ",0");
    cr_buf_puts(&text, "]");
    CR_CLEANUP(cr_json) struct cr_json *most = cr_json_parse(text.data, text.len, NULL);
    assert_non_null(most);
    text.data[text.len - 1] = ',';
    cr_buf_puts(&text, "0]");
    struct cr_error err = {0};
    assert_null(cr_json_parse(text.data, text.len, &err));
    assert_string_equal(err.text, "JSON of 100001 values, more than the 100000 that are read");
}

static void an_error_names_the_byte_and_never_the_text(void **state)
{
    (void)state;
    struct cr_error err = {0};
    const char *text = "{\"tls.key\":\"c2VjcmV0\" \"x\":1}";
    assert_null(cr_json_parse(text, strlen(text), &err));
    assert_string_equal(err.text, "not JSON: something else where a comma or the end must stand at byte 22 of 28");
}

static void reads_absent_values_as_absent(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json)
    struct cr_json *j = parse("{\"s\":\"text\",\"n\":5,\"b\":true,\"z\":null,\"o\":{\"k\":{\"v\":7}},"
                              "\"f\":1.5,\"big\":9007199254740994,\"a\":[1,2,3]}");
    assert_null(cr_json_get(NULL, "s"));
    assert_null(cr_json_get(j, NULL));
    assert_null(cr_json_get(j, "S")); /* case-sensitive */
    assert_null(cr_json_get(cr_json_get(j, "s"), "s"));
    assert_null(cr_json_get(cr_json_get(j, "a"), "0"));
    assert_string_equal(cr_json_string_at(j, "s"), "text");
    assert_null(cr_json_string_at(j, "n"));
    assert_null(cr_json_string_at(j, "o", "missing", "deeper"));
    assert_int_equal(cr_json_int_at(j, -1, "o", "k", "v"), 7);
    assert_int_equal(cr_json_int_at(j, -1, "o", "k", "w"), -1);
    assert_int_equal(cr_json_int_at(j, -1, "s"), -1);
    assert_int_equal(cr_json_int_at(j, -1, "f"), -1);
    assert_int_equal(cr_json_int_at(j, -1, "big"), -1); /* no longer exact */
    assert_true(cr_json_bool_at(j, false, "b"));
    assert_true(cr_json_bool_at(j, true, "n"));
    assert_false(cr_json_bool(NULL, false));
    assert_true(cr_json_is_null(cr_json_get(j, "z")));
    assert_false(cr_json_is_null(cr_json_get(j, "missing")));
    assert_null(cr_json_first(cr_json_get(j, "s")));
    assert_null(cr_json_next(NULL));
    assert_null(cr_json_key(NULL));
    assert_null(cr_json_key(cr_json_first(cr_json_get(j, "a"))));
    assert_int_equal(cr_json_len(j), 8);
    assert_int_equal(cr_json_len(cr_json_get(j, "a")), 3);
    assert_int_equal(cr_json_len(NULL), 0);
    cr_json_free(NULL);
    cr_json_free_secret(NULL);
    assert_null(cr_json_copy(NULL));
}

static void of_a_repeated_key_the_first_is_read(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *j = parse("{\"a\":1,\"a\":2}");
    assert_int_equal(cr_json_int_at(j, 0, "a"), 1);
}

static void walks_children_in_order(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *j = parse("{\"b\":1,\"a\":2}");
    CR_CLEANUP(cr_buf) struct cr_buf seen = {0};
    for (const struct cr_json *c = cr_json_first(j); c; c = cr_json_next(c))
        cr_buf_printf(&seen, "%s=%d ", cr_json_key(c), (int)cr_json_int(c, 0));
    assert_string_equal(cr_buf_text(&seen), "b=1 a=2 ");
}

static void equality_ignores_the_order_of_keys_only(void **state)
{
    static const struct {
        const char *rule, *a, *b;
        bool equal;
    } cases[] = {
        {"same", "{\"a\":[1,{\"b\":null}]}", "{\"a\":[1,{\"b\":null}]}", true},
        {"order of keys", "{\"a\":1,\"b\":2,\"c\":3}", "{\"c\":3,\"a\":1,\"b\":2}", true},
        {"order of elements", "[1,2]", "[2,1]", false},
        {"longer array", "[1]", "[1,2]", false},
        {"more keys", "{\"a\":1}", "{\"a\":1,\"b\":2}", false},
        {"other key", "{\"a\":1}", "{\"b\":1}", false},
        {"other case of a key", "{\"a\":1}", "{\"A\":1}", false},
        {"neighbouring integers at the limit", "9007199254740991", "9007199254740990", false},
        {"number and text", "1", "\"1\"", false},
        {"true and false", "true", "false", false},
        {"null and false", "null", "false", false},
        {"object and array", "{}", "[]", false},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_json) struct cr_json *a = parse(cases[i].a);
        CR_CLEANUP(cr_json) struct cr_json *b = parse(cases[i].b);
        if (cr_json_equal(a, b) != cases[i].equal || cr_json_equal(b, a) != cases[i].equal)
            fail_msg("%s", cases[i].rule);
        assert_false(cr_json_equal(a, NULL));
    }
    assert_true(cr_json_equal(NULL, NULL));
}

static void builds_and_replaces_in_place(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *j = cr_json_new_object();
    cr_json_set_string(j, "a", "one");
    cr_json_set_string(j, "absent", NULL);
    cr_json_set_int(j, "n", CR_JSON_MAX_INT);
    cr_json_set_bool(j, "t", true);
    cr_json_set(j, "z", cr_json_new_null());
    cr_json_set_string(cr_json_object_in(cr_json_object_in(j, "o"), "p"), "q", "x");
    cr_json_set_string(cr_json_object_in(cr_json_object_in(j, "o"), "p"), "r", "\xC3\xA9\n");
    cr_json_add_string(cr_json_array_in(j, "l"), "1");
    cr_json_add_string(cr_json_array_in(j, "l"), "2");
    cr_json_set_string(j, "a", "two");
    cr_json_remove(j, "t");
    cr_json_remove(j, "never");
    cr_autofree char *text = cr_json_print(j);
    assert_string_equal(text, "{\"a\":\"two\",\"n\":9007199254740992,\"z\":null,"
                              "\"o\":{\"p\":{\"q\":\"x\",\"r\":\"\xC3\xA9\\n\"}},\"l\":[\"1\",\"2\"]}");
}

/* A value moved from one place to another brings a key of its own. */
static void a_set_value_takes_its_new_key(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *from = parse("{\"old\":{\"k\":1}}");
    CR_CLEANUP(cr_json) struct cr_json *to = parse("{\"first\":1,\"last\":2}");
    cr_json_set(to, "first", cr_json_copy(cr_json_get(from, "old")));
    cr_json_set(to, "new", cr_json_copy(cr_json_get(from, "old")));
    cr_autofree char *text = cr_json_print(to);
    assert_string_equal(text, "{\"first\":{\"k\":1},\"last\":2,\"new\":{\"k\":1}}");
}

static void a_member_of_the_wrong_type_is_replaced_by_the_container_asked_for(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *j = parse("{\"labels\":null,\"list\":{}}");
    cr_json_set_string(cr_json_object_in(j, "labels"), "a", "b");
    cr_json_add_string(cr_json_array_in(j, "list"), "x");
    cr_autofree char *text = cr_json_print(j);
    assert_string_equal(text, "{\"labels\":{\"a\":\"b\"},\"list\":[\"x\"]}");
}

static void building_on_what_is_no_container_leaks_nothing(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *text = cr_json_new_string("x");
    assert_null(cr_json_set(text, "a", cr_json_new_int(1)));
    assert_null(cr_json_set(NULL, "a", cr_json_new_int(1)));
    assert_null(cr_json_add(text, cr_json_new_int(1)));
    assert_null(cr_json_add(NULL, cr_json_new_int(1)));
    assert_null(cr_json_object_in(NULL, "a"));
    assert_null(cr_json_edit(text, "a"));
    cr_json_remove(NULL, "a");
}

static void a_copy_is_independent(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *a = parse("{\"x\":{\"y\":[1,\"s\"]}}");
    CR_CLEANUP(cr_json) struct cr_json *b = cr_json_copy(a);
    cr_json_set_string(cr_json_edit(b, "x"), "y", "changed");
    assert_string_equal(cr_json_string_at(b, "x", "y"), "changed");
    assert_int_equal(cr_json_len(cr_json_at(a, "x", "y")), 2);
}

static void frees_secrets_of_every_shape(void **state)
{
    (void)state;
    cr_json_free_secret(parse("\"top\""));
    cr_json_free_secret(parse("{\"data\":{\"tls.key\":\"c2VjcmV0\",\"n\":[\"a\",1,null,{\"b\":\"c\"}]}}"));
}

static void a_taken_part_leaves_the_rest_and_belongs_to_the_caller(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *j = parse("{\"a\":{\"x\":1},\"b\":[1,2]}");
    CR_CLEANUP(cr_json) struct cr_json *a = cr_json_take(j, "a");
    assert_int_equal(cr_json_int_at(a, 0, "x"), 1);
    assert_null(cr_json_take(j, "a"));
    assert_null(cr_json_take_first(NULL));
    CR_CLEANUP(cr_json) struct cr_json *first = cr_json_take_first(cr_json_edit(j, "b"));
    assert_int_equal(cr_json_int(first, 0), 1);
    cr_autofree char *rest = cr_json_print(j);
    assert_string_equal(rest, "{\"b\":[2]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_rfc_8259_refuses),
        cmocka_unit_test(prints_what_it_read),
        cmocka_unit_test(nests_100_deep_and_no_further),
        cmocka_unit_test(a_text_has_no_more_values_than_its_budget),
        cmocka_unit_test(what_is_no_json_does_not_exceed_its_budget),
        cmocka_unit_test(a_text_without_a_budget_has_a_bound),
        cmocka_unit_test(an_error_names_the_byte_and_never_the_text),
        cmocka_unit_test(reads_absent_values_as_absent),
        cmocka_unit_test(of_a_repeated_key_the_first_is_read),
        cmocka_unit_test(walks_children_in_order),
        cmocka_unit_test(equality_ignores_the_order_of_keys_only),
        cmocka_unit_test(builds_and_replaces_in_place),
        cmocka_unit_test(a_set_value_takes_its_new_key),
        cmocka_unit_test(a_member_of_the_wrong_type_is_replaced_by_the_container_asked_for),
        cmocka_unit_test(building_on_what_is_no_container_leaks_nothing),
        cmocka_unit_test(a_copy_is_independent),
        cmocka_unit_test(a_taken_part_leaves_the_rest_and_belongs_to_the_caller),
        cmocka_unit_test(frees_secrets_of_every_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
