#include "codec/yaml_place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/strings.h"
#include "codec/yaml.h"

/* What is found of a.b: "shape key|…|value", the text up to the key's end, and of the value what is known of it. */
static char *as_text(const char *text, const struct cr_yaml_place *p)
{
    static const char *const shapes[] = {"absent", "scalar", "block scalar", "block", "flow", "sequence"};
    struct cr_buf buf = CR_BUF_INIT(0);
    cr_buf_puts(&buf, shapes[p->shape]);
    if (p->shape == CR_YAML_SCALAR || p->shape == CR_YAML_FLOW_MAPPING)
        cr_buf_printf(&buf, " [%.*s]", (int)(p->end - p->start), text + p->start);
    if (p->shape == CR_YAML_SCALAR)
        cr_buf_printf(&buf, " behind [%.*s]", (int)p->key_end, text);
    if ((p->shape == CR_YAML_FLOW_MAPPING || p->shape == CR_YAML_BLOCK_MAPPING) && !p->empty)
        cr_buf_printf(&buf, " first [%.1s]", text + p->first);
    if (p->empty)
        cr_buf_puts(&buf, " empty");
    return cr_buf_steal(&buf);
}

/* clang-format off */
static const struct place_case {
    const char *rule;
    const char *text;
    const char *place;
} cases[] = {
    {"a plain scalar", "a: {b: cd}", "scalar [cd] behind [a: {b]"},
    {"in block style, with a comment", "a: # x\n  # y\n  b: cd # z\n", "scalar [cd] behind [a: # x\n  # y\n  b]"},
    {"quoted", "a:\n  'b': \"c\\\"d\"\n", "scalar [\"c\\\"d\"] behind [a:\n  'b']"},
    {"in JSON", "{\"a\": {\"b\": \"c\"}}", "scalar [\"c\"] behind [{\"a\": {\"b\"]"},
    {"an escaped key", "{\"\\u0061\": {\"b\": \"c\"}}", "scalar [\"c\"] behind [{\"\\u0061\": {\"b\"]"},
    {"of several lines", "a:\n  b: c\n    d\n  e: f\n", "scalar [c\n    d] behind [a:\n  b]"},
    {"nothing", "a:\n  b:\n  c: d\n", "scalar [] behind [a:\n  b]"},
    {"characters of several bytes before", "# \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\r\na:\r\n  \xc3\xa9: \xc3\xa9\r\n  b: \xc3\xa9\r\n",
     "scalar [\xc3\xa9] behind [# \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\r\na:\r\n  \xc3\xa9: \xc3\xa9\r\n  b]"},
    {"a block of lines", "a:\n  b: |\n    c\n", "block scalar"},
    {"a folded one", "a:\n  b: >-\n    c\n", "block scalar"},
    {"a mapping", "a:\n  b:\n    # x\n    c: d\n", "block first [c]"},
    {"a flow mapping", "a:\n  b: { c: d }\n", "flow [{] first [c]"},
    {"an empty one", "a: {b: { }}", "flow [{] empty"},
    {"a sequence", "a:\n  b:\n  - c\n", "sequence"},
    {"behind other values", "x: {a: {b: 1}}\ny: [a, {b: 2}]\n? z\n: 3\na:\n  x: {b: 1}\n  b: 4\n",
     "scalar [4] behind [x: {a: {b: 1}}\ny: [a, {b: 2}]\n? z\n: 3\na:\n  x: {b: 1}\n  b]"},
    {"no such key", "a: {c: 1}", "absent"},
    {"no such parent", "b: 1", "absent"},
    {"a parent that is no mapping", "a: b", "absent"},
    {"a parent that is a sequence", "a: [b]", "absent"},
};
/* clang-format on */

static void test_places(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_yaml_place place;
        struct cr_error err = {0};
        const char *text = cases[i].text;
        if (!cr_yaml_find(text, strlen(text), (const char *const[]){"a", "b", NULL}, &place, &err))
            fail_msg("%s: %s", cases[i].rule, err.text);
        cr_autofree char *found = as_text(text, &place);
        if (!cr_streq(found, cases[i].place))
            fail_msg("%s: \"%s\"", cases[i].rule, found);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *words;
    } refused[] = {
        {"", "one document"}, {"[a]", "one document"},
        {"a: }", "not YAML"}, {"? {x: y}\n: z\na: {b: c}\n", "a key that is no scalar at line 1"},
        {"a: *x\n", NULL}, /* cr_yaml_parse's business */
    };
    for (size_t i = 0; i < cr_array_len(refused); i++) {
        struct cr_yaml_place place;
        struct cr_error err = {0};
        const char *text = refused[i].text;
        bool ok = cr_yaml_find(text, strlen(text), (const char *const[]){"a", "b", NULL}, &place, &err);
        if (ok != !refused[i].words || (!ok && (err.kind != CR_ERR_INVALID || !strstr(err.text, refused[i].words))))
            fail_msg("%s: %s", text, err.text);
    }
    struct cr_yaml_place place;
    struct cr_error err = {0};
    assert_false(cr_yaml_find("", CR_YAML_MAX_BYTES + 1, (const char *const[]){"a", NULL}, &place, &err));
    assert_non_null(strstr(err.text, "1048576"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
