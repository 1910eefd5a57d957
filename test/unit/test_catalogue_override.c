/* What users lay over the built-in catalogue. */
#include "catalogue/catalogue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "support/yamltext.h"

#define HEAD          "schema: 1\ncomponents:\n"
#define RULES(method) "rules: [{method: " method ", confidence: verified, source: ours}]"
#define USES(method)  "uses: [{roles: [serverLeaf], " RULES(method) "}]"

static struct cr_catalogue * override(const char *a, const char *b)
{
    struct cr_catalogue_text texts[] = {{.name = "a.yaml", .yaml = a, .len = strlen(a)},
                                        {.name = "b.yaml", .yaml = cr_or_empty(b), .len = strlen(cr_or_empty(b))}};
    struct cr_error err = {0};
    struct cr_catalogue *catalogue = cr_catalogue_override(texts, b ? 2 : 1, &err);
    if (!catalogue)
        fail_msg("%s", err.text);
    return catalogue;
}

static enum cr_method method_of(const struct cr_catalogue *catalogue, const char *image, const char *parameter,
                                enum cr_role role)
{
    cr_autofree char *text = cr_asprintf("{name: c, image: '%s'}", image);
    CR_CLEANUP(cr_json) struct cr_json *container = test_yaml(text);
    struct cr_program program = {.component = cr_catalogue_by_image(catalogue, image), .container = container};
    struct cr_capability c;
    cr_catalogue_capability(&program, parameter, role, &c);
    return c.method;
}

static void test_an_entry_of_the_same_name_replaces_as_a_whole(void **state)
{
    (void)state;
    struct cr_error err = {0};
    CR_CLEANUP(cr_catalogue) struct cr_catalogue *builtin = cr_catalogue_builtin(&err);
    CR_CLEANUP(cr_catalogue)
    struct cr_catalogue *c = override(HEAD "- {name: nginx, images: [acme/web], " USES("Watch") "}", NULL);
    assert_int_equal(cr_catalogue_len(c), cr_catalogue_len(builtin));
    assert_int_equal(method_of(c, "acme/web:1", NULL, CR_ROLE_SERVER_LEAF), CR_METHOD_WATCH);
    /* Its images and its other roles are gone, too. */
    assert_null(cr_catalogue_by_image(c, "nginx:1.27"));
    assert_int_equal(method_of(c, "acme/web:1", NULL, CR_ROLE_CLIENT_CA), CR_METHOD_UNKNOWN);
    assert_string_equal(cr_component_name(cr_catalogue_by_name(c, "nginx")), "nginx");
}

static void test_an_entry_of_another_name_is_added(void **state)
{
    (void)state;
    struct cr_error err = {0};
    CR_CLEANUP(cr_catalogue) struct cr_catalogue *builtin = cr_catalogue_builtin(&err);
    CR_CLEANUP(cr_catalogue)
    struct cr_catalogue *c = override(HEAD "- {name: acme/app, images: [acme/app], " USES("Watch") "}",
                                      HEAD "- {name: acme/db, images: [acme/db], " USES("Restart") "}");
    assert_int_equal(cr_catalogue_len(c), cr_catalogue_len(builtin) + 2);
    assert_int_equal(method_of(c, "acme/app:1", NULL, CR_ROLE_SERVER_LEAF), CR_METHOD_WATCH);
    assert_int_equal(method_of(c, "acme/db:1", NULL, CR_ROLE_SERVER_LEAF), CR_METHOD_RESTART);
    assert_int_equal(method_of(c, "nginx:1.27", NULL, CR_ROLE_SERVER_LEAF), CR_METHOD_SIGNAL);
}

/* However little a pattern of theirs pins. */
static void test_image_patterns_of_overrides_come_first(void **state)
{
    (void)state;
    CR_CLEANUP(cr_catalogue)
    struct cr_catalogue *c = override(HEAD "- {name: mesh, images: ['envoyproxy/*'], " USES(
                                          "Watch") "}\n"
                                                   "- {name: ours, images: [envoyproxy/gateway], " USES("Restart") "}",
                                      NULL);
    assert_string_equal(cr_component_name(cr_catalogue_by_image(c, "envoyproxy/envoy:v1.40.0")), "mesh");
    assert_string_equal(cr_component_name(cr_catalogue_by_image(c, "mirror/envoyproxy/ratelimit:1")), "mesh");
    /* Among themselves, the one that pins most. */
    assert_string_equal(cr_component_name(cr_catalogue_by_image(c, "envoyproxy/gateway:v1.9.0")), "ours");
    assert_string_equal(cr_component_name(cr_catalogue_by_image(c, "nginx")), "nginx");
}

static void test_parameters_of_a_built_in_entry_with_rules_of_ones_own(void **state)
{
    (void)state;
    CR_CLEANUP(cr_catalogue)
    struct cr_catalogue *c = override(HEAD "- {name: etcd, images: [acme/etcd], parametersOf: etcd, " RULES(
                                          "Watch") "}\n"
                                                   "- {name: acme/redis, images: [acme/redis], parametersOf: redis, "
                                                   "except: [--tls-ca-cert-file], " RULES("Watch") "}\n",
                                      NULL);
    assert_int_equal(method_of(c, "acme/etcd:v3.6.8", "--trusted-ca-file", CR_ROLE_CLIENT_CA), CR_METHOD_WATCH);
    assert_null(cr_catalogue_by_image(c, "quay.io/coreos/etcd:v3.6.8"));
    assert_int_equal(method_of(c, "acme/redis:7", "--tls-cert-file", CR_ROLE_SERVER_LEAF), CR_METHOD_WATCH);
    assert_int_equal(method_of(c, "acme/redis:7", "--tls-ca-cert-file", CR_ROLE_CLIENT_CA), CR_METHOD_COMMAND);
    /* What took its parameters from the built-in entry stays as it was. */
    struct cr_program program = {.component = cr_catalogue_by_name(c, "openfuyao/etcd")};
    struct cr_capability capability;
    cr_catalogue_capability(&program, "--trusted-ca-file", CR_ROLE_CLIENT_CA, &capability);
    assert_int_equal(capability.max_delay_ms, 60 * 1000);
}

static void test_a_wrong_override_names_text_entry_and_field(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        const char *a, *b;
        const char *text[2];
    } cases[] = {
        {"components: [", NULL, {"a.yaml: ", "line"}},
        {"", NULL, {"a.yaml: ", "schema is required"}},
        {"[]", NULL, {"a.yaml: must be a mapping", ""}},
        {HEAD "- {name: x, " USES("Watch") "}", "schema: 3\ncomponents: []", {"b.yaml: schema", ""}},
        {HEAD "- {name: x, " USES("Watch") "}", HEAD "- {name: y, " USES("Watch") "}\n- {name: z, " USES("watch") "}",
         {"b.yaml: entry 1 (z): uses[0].rules[0].method must be Watch", ""}},
        {HEAD "- {name: x, " USES("Watch") "}", HEAD "- {name: x, " USES("Restart") "}",
         {"b.yaml: entry 0 (x): name stands twice", ""}},
        {HEAD "- {name: x, parametersOf: y, " RULES("Watch") "}", HEAD "- {name: y, " USES("Restart") "}",
         {"a.yaml: entry 0 (x): parametersOf names \"y\"", ""}},
    };
    /* clang-format on */
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_catalogue_text texts[] = {
            {.name = "a.yaml", .yaml = cases[i].a, .len = strlen(cases[i].a)},
            {.name = "b.yaml", .yaml = cr_or_empty(cases[i].b), .len = strlen(cr_or_empty(cases[i].b))}};
        struct cr_error err = {0};
        struct cr_catalogue *c = cr_catalogue_override(texts, cases[i].b ? 2 : 1, &err);
        if (c)
            fail_msg("accepted: %s", cases[i].a);
        assert_int_equal(err.kind, CR_ERR_INVALID);
        for (size_t k = 0; k < 2; k++)
            if (!strstr(err.text, cr_or_empty(cases[i].text[k])))
                fail_msg("\"%s\" should say \"%s\"", err.text, cr_or_empty(cases[i].text[k]));
    }
}

/* What the page shows is what the loader takes. */
static void test_the_example_of_the_documentation_is_valid(void **state)
{
    (void)state;
    FILE *file = fopen(CERTROLL_SOURCE_DIR "/docs/catalogue.md", "re");
    assert_non_null(file);
    cr_autofree char *page = cr_calloc(1, 1024 * 1024);
    size_t len = fread(page, 1, 1024 * 1024 - 1, file);
    assert_true(len > 0 && feof(file));
    assert_int_equal(fclose(file), 0);
    static const char fence[] = "```yaml\n";
    char *example = strstr(page, fence);
    assert_non_null(example);
    example += strlen(fence);
    char *end = strstr(example, "```");
    assert_non_null(end);
    *end = '\0';
    CR_CLEANUP(cr_catalogue) struct cr_catalogue *c = override(example, NULL);
    assert_string_equal(cr_component_name(cr_catalogue_by_image(c, "acme/shop-eu:2.1")), "acme/shop");
    assert_non_null(cr_catalogue_by_name(c, "acme/etcd"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_entry_of_the_same_name_replaces_as_a_whole),
        cmocka_unit_test(test_an_entry_of_another_name_is_added),
        cmocka_unit_test(test_image_patterns_of_overrides_come_first),
        cmocka_unit_test(test_parameters_of_a_built_in_entry_with_rules_of_ones_own),
        cmocka_unit_test(test_a_wrong_override_names_text_entry_and_field),
        cmocka_unit_test(test_the_example_of_the_documentation_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
