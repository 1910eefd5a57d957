#include "codec/json_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

static void members_are_walked_as_they_are_written(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *text;
        const char *members; /* "key=value;" of each */
    } cases[] = {
        {"none", "{}", ""},
        {"strings", "{\"a\":\"x\",\"b\":\"\"}", "a=\"x\";b=\"\";"},
        {"white space everywhere", " {\n \"a\" : \"x\" ,\t\"b\" :1 } ", "a=\"x\";b=1;"},
        {"values of every kind", "{\"a\":-1.5e3,\"b\":null,\"c\":true,\"d\":[1,{\"e\":2}],\"f\":{\"g\":[]}}",
         "a=-1.5e3;b=null;c=true;d=[1,{\"e\":2}];f={\"g\":[]};"},
        {"brackets, commas and quotes in strings", "{\"a}\":\"{\\\"[,\",\"b\":[\"]\",\"\\\\\"]}",
         "a}=\"{\\\"[,\";b=[\"]\",\"\\\\\"];"},
        {"escapes stay", "{\"\\u0061\":\"\\/\"}", "\\u0061=\"\\/\";"},
        {"no object: none", "[{\"a\":1}]", ""},
        {"a string: none", "\"{\"", ""},
        {"null: none", "null", ""},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        size_t len = strlen(cases[i].text);
        cr_autofree char *exact = cr_memdup(cases[i].text, len);
        struct cr_json_members members = cr_json_members_of(exact, len);
        struct cr_json_slice key;
        struct cr_json_slice value;
        CR_CLEANUP(cr_buf) struct cr_buf found = {0};
        while (cr_json_members_next(&members, &key, &value))
            cr_buf_printf(&found, "%.*s=%.*s;", (int)key.len, key.text, (int)value.len, value.text);
        if (strcmp(cr_buf_text(&found), cases[i].members) != 0)
            fail_msg("%s: %s", cases[i].rule, cr_buf_text(&found));
    }
}

static void a_member_apart_stays_text_and_the_rest_is_a_tree(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *text;
        const char *apart; /* NULL: all is parsed */
        const char *rest;
    } cases[] = {
        {"in the middle", "{\"object\":{\"a\":1,\"data\":{\"k\":\"eA==\"},\"b\":2},\"c\":3}", "{\"k\":\"eA==\"}",
         "{\"object\":{\"a\":1,\"data\":null,\"b\":2},\"c\":3}"},
        {"whatever it is", "{\"object\":{\"data\":[ 1 ]}}", "[ 1 ]", "{\"object\":{\"data\":null}}"},
        {"the first of two", "{\"object\":{\"data\":1,\"data\":2}}", "1", "{\"object\":{\"data\":null,\"data\":2}}"},
        {"only at its place", "{\"data\":1,\"object\":{\"x\":{\"data\":2}}}", NULL,
         "{\"data\":1,\"object\":{\"x\":{\"data\":2}}}"},
        {"an escape in a key before it", "{\"object\":{\"d\\u0061ta\":1,\"data\":2}}", NULL,
         "{\"object\":{\"data\":1,\"data\":2}}"},
        {"the way is no object", "{\"object\":[\"data\"]}", NULL, "{\"object\":[\"data\"]}"},
    };
    static const char *const path[] = {"object", "data", NULL};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        size_t len = strlen(cases[i].text);
        cr_autofree char *exact = cr_memdup(cases[i].text, len);
        struct cr_error err = {0};
        struct cr_json *j = cr_json_parse_apart(exact, len, path, &err);
        if (!j)
            fail_msg("%s: %s", cases[i].rule, err.text);
        size_t apart_len = 0;
        const char *apart = cr_json_text(cr_json_at(j, "object", "data"), &apart_len);
        cr_autofree char *found = apart ? cr_strndup(apart, apart_len) : NULL;
        cr_autofree char *rest = cr_json_print(j);
        if (!cr_streq(found, cases[i].apart) || !cr_streq(rest, cases[i].rest))
            fail_msg("%s: '%s' and %s", cases[i].rule, cr_or_empty(found), rest);
        cr_json_free_secret(j);
    }
}

static void what_is_left_out_is_not_in_the_tree(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *text;
        const char *apart; /* NULL: none */
        const char *rest;
    } cases[] = {
        {"before the one apart", "{\"m\":{\"f\":[{\"a\":\"]}\"}],\"n\":1},\"data\":{\"k\":1}}", "{\"k\":1}",
         "{\"m\":{\"n\":1},\"data\":null}"},
        {"behind it", "{\"data\":{\"k\":1},\"m\":{\"n\":1,\"f\":[]},\"o\":2}", "{\"k\":1}",
         "{\"data\":null,\"m\":{\"n\":1},\"o\":2}"},
        {"alone", "{\"m\":{\"f\":{}}}", NULL, "{\"m\":{}}"},
        {"a scalar", "{\"m\":{\"f\":-1e5,\"n\":1}}", NULL, "{\"m\":{\"n\":1}}"},
        {"the first of two", "{\"m\":{\"f\":1,\"f\":2}}", NULL, "{\"m\":{\"f\":2}}"},
        {"only at its place", "{\"f\":1,\"m\":{\"x\":{\"f\":2}}}", NULL, "{\"f\":1,\"m\":{\"x\":{\"f\":2}}}"},
        {"an escaped NUL elsewhere", "{\"m\":{\"f\":\"a\\u0000\",\"n\":\"b\\u0000\"}}", NULL,
         "{\"m\":{\"n\":\"b\xef\xbf\xbd\"}}"},
        {"neither is there", "[1]", NULL, "[1]"},
    };
    static const char *const apart[] = {"data", NULL};
    static const char *const without[] = {"m", "f", NULL};
    const struct cr_json_parts parts = {.apart = apart, .without = without};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        size_t len = strlen(cases[i].text);
        cr_autofree char *exact = cr_memdup(cases[i].text, len);
        struct cr_error err = {0};
        struct cr_json *j = cr_json_parse_parts(exact, len, &parts, &err);
        if (!j)
            fail_msg("%s: %s", cases[i].rule, err.text);
        size_t apart_len = 0;
        const char *text = cr_json_text(cr_json_at(j, "data"), &apart_len);
        cr_autofree char *found = text ? cr_strndup(text, apart_len) : NULL;
        cr_autofree char *rest = cr_json_print(j);
        if (!cr_streq(found, cases[i].apart) || !cr_streq(rest, cases[i].rest))
            fail_msg("%s: '%s' and %s", cases[i].rule, cr_or_empty(found), rest);
        cr_json_free(j);
    }
}

/* What stays out of the tree has no tree, whatever it has. */
static void what_is_not_in_the_tree_counts_as_one_value(void **state)
{
    (void)state;
    static const char text[] = "{\"m\":{\"f\":[0,0,0],\"n\":1},\"data\":{\"k\":1,\"l\":2}}";
    static const char *const apart[] = {"data", NULL};
    static const char *const without[] = {"m", "f", NULL};
    for (size_t values = 4; values <= 5; values++) {
        struct cr_json_budget budget = {.values = values}; /* the whole, m, f, n and data are five */
        CR_CLEANUP(cr_json)
        struct cr_json *j =
            cr_json_parse_parts(text, sizeof text - 1,
                                &(struct cr_json_parts){.apart = apart, .without = without, .budget = &budget}, NULL);
        assert_int_equal(j != NULL, values == 5);
        assert_int_equal(budget.exceeded, values == 4);
    }
}

static void elements_are_walked_as_they_are_written(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *elements; /* each with a ";" */
    } cases[] = {
        {"[]", ""},
        {" [ ] ", ""},
        {"[1,\"a,]\", {\"b\":[2]} ,[3,4],null ]", "1;\"a,]\";{\"b\":[2]};[3,4];null;"},
        {"{\"a\":1}", ""},
        {"null", ""},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_json_members elements = cr_json_elements_of(cases[i].text, strlen(cases[i].text));
        struct cr_json_slice value;
        CR_CLEANUP(cr_buf) struct cr_buf seen = CR_BUF_INIT(0);
        while (cr_json_elements_next(&elements, &value))
            cr_buf_printf(&seen, "%.*s;", (int)value.len, value.text);
        assert_string_equal(cr_buf_text(&seen), cases[i].elements);
    }
}

static void a_text_is_no_other_kind_and_is_not_wiped(void **state)
{
    (void)state;
    char text[] = "{\"data\":{\"k\":\"eA==\"}}";
    static const char *const path[] = {"data", NULL};
    struct cr_json *j = cr_json_parse_apart(text, strlen(text), path, NULL);
    struct cr_json *data = cr_json_take(j, "data");
    assert_false(cr_json_is_object(data) || cr_json_is_string(data) || cr_json_is_null(data));
    assert_null(cr_json_string(data));
    assert_null(cr_json_first(data));
    cr_json_free_secret(data); /* the owner of the text does */
    cr_json_free_secret(j);
    assert_string_equal(text, "{\"data\":{\"k\":\"eA==\"}}");
}

static void what_is_no_json_is_refused_also_in_the_member_apart(void **state)
{
    (void)state;
    static const char *const texts[] = {"{\"data\":{\"k\":}}", "{\"data\":{\"k\":\"\\x\"}}", "{\"data\":1,}",
                                        "{\"data\":1", ""};
    static const char *const path[] = {"data", NULL};
    for (size_t i = 0; i < cr_array_len(texts); i++) {
        struct cr_error err = {0};
        assert_null(cr_json_parse_apart(texts[i], strlen(texts[i]), path, &err));
        assert_int_equal(err.kind, CR_ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_walked_as_they_are_written),
        cmocka_unit_test(a_member_apart_stays_text_and_the_rest_is_a_tree),
        cmocka_unit_test(what_is_left_out_is_not_in_the_tree),
        cmocka_unit_test(what_is_not_in_the_tree_counts_as_one_value),
        cmocka_unit_test(elements_are_walked_as_they_are_written),
        cmocka_unit_test(a_text_is_no_other_kind_and_is_not_wiped),
        cmocka_unit_test(what_is_no_json_is_refused_also_in_the_member_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
