#include "api/selector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "api/node.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "codec/yaml.h"

static struct cr_json *yaml(const char *text)
{
    struct cr_error err = {0};
    struct cr_json *json = cr_yaml_parse(text, strlen(text), &err);
    if (!json)
        fail_msg("%s: %s", text, err.text);
    return json;
}

static bool decode(const char *text, struct cr_selector *out, struct cr_error *err)
{
    CR_CLEANUP(cr_json) struct cr_json *json = yaml(text);
    struct cr_node spec = {.json = json, .path = "spec"};
    return cr_selector_decode(&spec, "secretSelector", out, err);
}

static void labels_match_as_in_kubernetes(void **state)
{
    (void)state;
    static const struct {
        const char *selector;
        const char *labels;
        bool matches;
    } cases[] = {
        {"{matchLabels: {app: shop}}", "{app: shop, tier: front}", true},
        {"{matchLabels: {app: shop}}", "{app: other}", false},
        {"{matchLabels: {app: shop}}", "{}", false},
        {"{matchLabels: {app: shop}}", "null", false},
        {"{matchLabels: {app: ''}}", "{app: ''}", true},
        {"{matchLabels: {app: ''}}", "{}", false},
        {"{matchLabels: {app: shop, tier: front}}", "{app: shop}", false},
        {"{matchExpressions: [{key: app, operator: In, values: [shop, bank]}]}", "{app: bank}", true},
        {"{matchExpressions: [{key: app, operator: In, values: [shop, bank]}]}", "{app: farm}", false},
        {"{matchExpressions: [{key: app, operator: NotIn, values: [shop]}]}", "{app: farm}", true},
        {"{matchExpressions: [{key: app, operator: NotIn, values: [shop]}]}", "{app: shop}", false},
        {"{matchExpressions: [{key: app, operator: NotIn, values: [shop]}]}", "{tier: front}", true},
        {"{matchExpressions: [{key: app, operator: Exists}]}", "{app: ''}", true},
        {"{matchExpressions: [{key: app, operator: Exists}]}", "{tier: front}", false},
        {"{matchExpressions: [{key: app, operator: DoesNotExist}]}", "{tier: front}", true},
        {"{matchExpressions: [{key: app, operator: DoesNotExist, values: []}]}", "null", true},
        {"{matchExpressions: [{key: app, operator: DoesNotExist}]}", "{app: x}", false},
        {"{matchLabels: {app: shop}, matchExpressions: [{key: old, operator: DoesNotExist}]}", "{app: shop}", true},
        {"{matchLabels: {app: shop}, matchExpressions: [{key: old, operator: DoesNotExist}]}",
         "{app: shop, old: 'yes'}", false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_json) struct cr_json *spec = cr_json_new_object();
        cr_json_set(spec, "secretSelector", yaml(cases[i].selector));
        CR_CLEANUP(cr_json) struct cr_json *labels = yaml(cases[i].labels);
        CR_CLEANUP(cr_selector) struct cr_selector selector = {0};
        struct cr_error err = {0};
        struct cr_node node = {.json = spec, .path = "spec"};
        if (!cr_selector_decode(&node, "secretSelector", &selector, &err))
            fail_msg("%s: %s", cases[i].selector, err.text);
        if (cr_selector_matches(&selector, labels) != cases[i].matches)
            fail_msg("%s with %s", cases[i].selector, cases[i].labels);
    }
}

static void without_a_selector_nothing_matches(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *labels = yaml("{app: shop}");
    struct cr_selector selector;
    struct cr_error err = {0};
    assert_true(decode("{suspend: true}", &selector, &err));
    assert_int_equal(selector.len, 0);
    assert_false(cr_selector_matches(&selector, labels));
    assert_false(cr_selector_matches(&selector, NULL));
}

static void its_text_is_what_a_list_takes(void **state)
{
    (void)state;
    static const struct {
        const char *selector;
        const char *text;
    } cases[] = {
        {"matchLabels: {app: shop, tier: web}", "app=shop,tier=web"},
        {"matchLabels: {app: ''}", "app="},
        {"matchExpressions: [{key: a, operator: In, values: [b, c]}]", "a in (b,c)"},
        {"matchExpressions: [{key: a, operator: NotIn, values: [b]}]", "a notin (b)"},
        {"matchExpressions: [{key: example.org/a, operator: Exists}, {key: b, operator: DoesNotExist}]",
         "example.org/a,!b"},
        {"matchLabels: {app: shop}, matchExpressions: [{key: b, operator: NotIn, values: [c, d]}]",
         "app=shop,b notin (c,d)"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_selector) struct cr_selector selector = {0};
        struct cr_error err = {0};
        cr_autofree char *spec = cr_asprintf("{secretSelector: {%s}}", cases[i].selector);
        if (!decode(spec, &selector, &err))
            fail_msg("%s: %s", cases[i].selector, err.text);
        cr_autofree char *text = cr_selector_text(&selector);
        assert_string_equal(text, cases[i].text);
    }
}

#define NAME "at most 63 letters, digits, '-', '_' and '.', the first and last a letter or digit"

static void what_cannot_be_meant_is_refused_by_the_name_of_the_field(void **state)
{
    (void)state;
    static const struct {
        const char *selector;
        const char *error;
    } cases[] = {
        {"secretSelector: 7", "spec.secretSelector must be an object"},
        {"secretSelector: {}", "spec.secretSelector is empty: give matchLabels or matchExpressions"},
        {"secretSelector: {matchLabels: {}, matchExpressions: []}",
         "spec.secretSelector is empty: give matchLabels or matchExpressions"},
        {"secretSelector: {matchLabels: {app: 7}}", "spec.secretSelector.matchLabels.app must be a string"},
        {"secretSelector: {matchLabels: [app]}", "spec.secretSelector.matchLabels must be an object"},
        {"secretSelector: {matchExpressions: [{operator: Exists}]}",
         "spec.secretSelector.matchExpressions[0].key is required"},
        {"secretSelector: {matchExpressions: [{key: app}]}",
         "spec.secretSelector.matchExpressions[0].operator is required"},
        {"secretSelector: {matchExpressions: [{key: app, operator: Gt, values: ['1']}]}",
         "spec.secretSelector.matchExpressions[0].operator must be one of In, NotIn, Exists, DoesNotExist"},
        {"secretSelector: {matchExpressions: [{key: app, operator: In}]}",
         "spec.secretSelector.matchExpressions[0]: In and NotIn need values; Exists and DoesNotExist take none"},
        {"secretSelector: {matchExpressions: [{key: a, operator: Exists}, {key: b, operator: Exists, values: [c]}]}",
         "spec.secretSelector.matchExpressions[1]: In and NotIn need values; Exists and DoesNotExist take none"},
        {"secretSelector: {matchExpressions: [{key: app, operator: In, values: [1]}]}",
         "spec.secretSelector.matchExpressions[0].values must be strings"},
        {"secretSelector: {matchLabels: {'-app': shop}}",
         "spec.secretSelector.matchLabels: '-app' is no key of a label: " NAME
         "; before it, if at all, a DNS name and '/'"},
        {"secretSelector: {matchLabels: {app: 'my shop'}}",
         "spec.secretSelector.matchLabels: 'my shop' is no value of a label: " NAME},
        {"secretSelector: {matchExpressions: [{key: a/b/c, operator: Exists}]}",
         "spec.secretSelector.matchExpressions[0]: 'a/b/c' is no key of a label: " NAME
         "; before it, if at all, a DNS name and '/'"},
        {"secretSelector: {matchExpressions: [{key: app, operator: NotIn, values: [a, 'b,c']}]}",
         "spec.secretSelector.matchExpressions[0].values: 'b,c' is no value of a label: " NAME},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_selector selector;
        struct cr_error err = {0};
        assert_false(decode(cases[i].selector, &selector, &err));
        assert_int_equal(err.kind, CR_ERR_INVALID);
        assert_string_equal(err.text, cases[i].error);
        cr_selector_dispose(&selector);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_match_as_in_kubernetes),
        cmocka_unit_test(without_a_selector_nothing_matches),
        cmocka_unit_test(its_text_is_what_a_list_takes),
        cmocka_unit_test(what_cannot_be_meant_is_refused_by_the_name_of_the_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
