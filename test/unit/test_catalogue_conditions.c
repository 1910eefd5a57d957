/* Conditions of rules: settings that the template shows or hides, versions that a policy says, types of keys. */
#include "catalogue/catalogue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "support/yamltext.h"

static struct cr_catalogue *load(const char *yaml)
{
    struct cr_error err = {0};
    struct cr_catalogue *catalogue = cr_catalogue_load(yaml, strlen(yaml), &err);
    if (!catalogue)
        fail_msg("%s", err.text);
    return catalogue;
}

/* --- settings --- */

static void test_a_setting_decides_when_the_template_shows_it(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        const char *rule;
        const char *setting;
        const char *container; /* what it has beside its name */
        enum cr_method method; /* Watch: it holds; Restart: it does not, or is not known */
        bool assumed;
    } cases[] = {
        {"a variable with the value", "RELOAD=true", "env: [{name: RELOAD, value: 'true'}]", CR_METHOD_WATCH, false},
        {"another value", "RELOAD=true", "env: [{name: RELOAD, value: 'false'}]", CR_METHOD_RESTART, false},
        {"a pattern", "RELOAD=[tT1]*", "env: [{name: RELOAD, value: 'True'}]", CR_METHOD_WATCH, false},
        {"the last definition counts", "RELOAD=true",
         "env: [{name: RELOAD, value: 'true'}, {name: RELOAD, value: 'false'}]", CR_METHOD_RESTART, false},
        {"not set", "RELOAD=true", "env: [{name: OTHER, value: 'true'}]", CR_METHOD_RESTART, false},
        {"set at all", "RELOAD", "env: [{name: RELOAD, value: ''}]", CR_METHOD_WATCH, false},
        {"from elsewhere: it may be any value", "RELOAD=true",
         "env: [{name: RELOAD, valueFrom: {configMapKeyRef: {name: m, key: k}}}]", CR_METHOD_RESTART, true},
        {"variables that are not shown may set it", "RELOAD=true", "envFrom: [{configMapRef: {name: m}}]",
         CR_METHOD_RESTART, true},
        {"a flag is no variable", "RELOAD=true", "args: [--RELOAD=true]", CR_METHOD_RESTART, false},
        {"a variable is no flag", "--reload=true", "env: [{name: reload, value: 'true'}]", CR_METHOD_RESTART, false},
        {"a flag with =", "--reload=true", "args: [--reload=true]", CR_METHOD_WATCH, false},
        {"a flag with a space", "--reload=true", "args: [--reload, 'true']", CR_METHOD_WATCH, false},
        {"a flag with one dash", "--reload=true", "args: [-reload=true]", CR_METHOD_WATCH, false},
        {"a flag in the command", "--reload=true", "command: [app, --reload=true]", CR_METHOD_WATCH, false},
        {"a flag without a value", "--reload", "args: [--reload, --other]", CR_METHOD_WATCH, false},
        {"the last flag of all, without a value", "-Y", "args: [-c, file, -Y]", CR_METHOD_WATCH, false},
        {"a part of a list", "--gates=*Reload=true*", "args: ['--gates=A=false,Reload=true,B=true']", CR_METHOD_WATCH,
         false},
        {"gates of several flags add up", "--feature-gates=*Reload=[fF0]*",
         "args: ['--feature-gates=A=true,Reload=false', --feature-gates=B=true]", CR_METHOD_WATCH, false},
        {"one that is not shown may be any of them", "--feature-gates=*Reload=[fF0]*",
         "args: [--feature-gates=$X, --feature-gates=B=true]", CR_METHOD_RESTART, true},
        {"none of them says it", "--feature-gates=*Reload=[fF0]*",
         "args: [--feature-gates=A=false, --feature-gates=Reload=true]", CR_METHOD_RESTART, false},
        {"other flags do not", "--gates=*Reload=[fF0]*", "args: [--gates=Reload=false, --gates=B=true]",
         CR_METHOD_RESTART, false},
        {"a longer name is another", "--reload=true", "args: [--reload-all=true]", CR_METHOD_RESTART, false},
        {"a shell's variable may be any value", "--reload=true", "args: ['--reload=$X']", CR_METHOD_RESTART, true},
        {"variables that are not shown set no flag", "--reload=true", "envFrom: [{configMapRef: {name: m}}]",
         CR_METHOD_RESTART, false},
        {"behind a flag of one letter", "--reload=on", "args: [-c, reload=on]", CR_METHOD_WATCH, false},
    };
    /* clang-format on */
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *yaml =
            cr_asprintf("schema: 1\ncomponents:\n"
                        "- name: x\n"
                        "  uses:\n"
                        "  - roles: [serverLeaf]\n"
                        "    rules:\n"
                        "    - {settings: ['%s'], method: Watch, confidence: verified, source: s}\n"
                        "    - {method: Restart, confidence: verified, source: s}\n",
                        cases[i].setting);
        CR_CLEANUP(cr_catalogue) struct cr_catalogue *catalogue = load(yaml);
        cr_autofree char *text = cr_asprintf("{name: c, image: 'x:1.0', %s}", cases[i].container);
        CR_CLEANUP(cr_json) struct cr_json *container = test_yaml(text);
        struct cr_program program = {.component = cr_catalogue_by_name(catalogue, "x"), .container = container};
        struct cr_capability c;
        cr_catalogue_capability(&program, NULL, CR_ROLE_SERVER_LEAF, &c);
        if (c.method != cases[i].method || c.assumed != cases[i].assumed)
            fail_msg("%s: %s%s", cases[i].rule, cr_method_name(c.method), c.assumed ? ", assumed" : "");
    }
}

static void test_one_of_several_settings_is_enough(void **state)
{
    (void)state;
    CR_CLEANUP(cr_catalogue)
    struct cr_catalogue *catalogue =
        load("schema: 1\ncomponents:\n- name: x\n  uses:\n  - roles: [serverLeaf]\n    rules:\n"
             "    - {settings: [A=1, --b], method: Watch, confidence: verified, source: s}\n"
             "    - {method: Restart, confidence: verified, source: s}\n");
    CR_CLEANUP(cr_json) struct cr_json *container = test_yaml("{name: c, image: 'x:1.0', args: [--b]}");
    struct cr_program program = {.component = cr_catalogue_by_name(catalogue, "x"), .container = container};
    struct cr_capability c;
    cr_catalogue_capability(&program, NULL, CR_ROLE_SERVER_LEAF, &c);
    assert_int_equal(c.method, CR_METHOD_WATCH);
    /* What is not seen at all may be set. */
    program.container = NULL;
    cr_catalogue_capability(&program, NULL, CR_ROLE_SERVER_LEAF, &c);
    assert_int_equal(c.method, CR_METHOD_RESTART);
    assert_true(c.assumed);
}

/* --- versions --- */

static void test_a_policy_may_say_the_version(void **state)
{
    (void)state;
    assert_null(cr_component_version(NULL));
    assert_null(cr_component_version("nginx"));
    assert_null(cr_component_version("nginx@"));
    assert_string_equal(cr_component_version("nginx@1.27.4"), "1.27.4");

    struct cr_error err = {0};
    CR_CLEANUP(cr_catalogue) struct cr_catalogue *catalogue = cr_catalogue_builtin(&err);
    assert_non_null(catalogue);
    /* clang-format off */
    static const struct {
        const char *rule;
        const char *component;
        const char *image;
        enum cr_method method;
    } cases[] = {
        {"the image's tag", "kubelet", "acme/kubelet:v1.31.2", CR_METHOD_WATCH},
        {"the policy's version beats the tag", "kubelet@1.30.0", "acme/kubelet:v1.31.2", CR_METHOD_RESTART},
        {"the policy's version where no tag tells", "kubelet@1.31.0", "acme/node:latest", CR_METHOD_WATCH},
        {"no version at all", "kubelet", "acme/node:latest", CR_METHOD_RESTART},
        {"a version that is none", "kubelet@newest", "acme/kubelet:v1.31.2", CR_METHOD_RESTART},
        {"an image says nothing about its libraries", "controller-runtime", "acme/operator:v1.31.2", CR_METHOD_RESTART},
        {"a policy does", "controller-runtime@0.20.4", "acme/operator:v1.31.2", CR_METHOD_WATCH},
        {"an old library", "controller-runtime@0.8.0", "acme/operator:v1.31.2", CR_METHOD_RESTART},
    };
    /* clang-format on */
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *text = cr_asprintf("{name: c, image: '%s'}", cases[i].image);
        CR_CLEANUP(cr_json) struct cr_json *container = test_yaml(text);
        struct cr_program program = {.component = cr_catalogue_by_name(catalogue, cases[i].component),
                                     .container = container,
                                     .version = cr_component_version(cases[i].component)};
        assert_non_null(program.component);
        struct cr_capability c;
        cr_catalogue_capability(&program, NULL, CR_ROLE_SERVER_LEAF, &c);
        if (c.method != cases[i].method)
            fail_msg("%s: %s", cases[i].rule, cr_method_name(c.method));
    }
}

/* --- types of keys --- */

static void test_key_types(void **state)
{
    (void)state;
    struct cr_error err = {0};
    CR_CLEANUP(cr_catalogue) struct cr_catalogue *catalogue = cr_catalogue_builtin(&err);
    assert_non_null(catalogue);
    enum { UNKNOWN = CR_ACCEPTANCE_UNKNOWN, YES = CR_ACCEPTANCE_YES, NO = CR_ACCEPTANCE_NO };
    enum { SL = CR_ROLE_SERVER_LEAF, CL = CR_ROLE_CLIENT_LEAF, CC = CR_ROLE_CLIENT_CA, SC = CR_ROLE_SERVER_CA };
    /* clang-format off */
    static const struct {
        const char *image;
        const char *key_type;
        int role;
        int answer;
    } cases[] = {
        /* BoringSSL verifies no Ed25519 by default, but Envoy serves it (tried). */
        {"envoyproxy/envoy:v1.40.0", "Ed25519", CC, NO},
        {"envoyproxy/envoy:v1.40.0", "Ed25519", SC, NO},
        {"envoyproxy/envoy:v1.40.0", "Ed25519", SL, YES},
        {"envoyproxy/envoy:v1.40.0", "RSA-2048", CC, YES},
        {"envoyproxy/envoy:v1.40.0", "ECDSA-P521", CC, YES},
        {"envoyproxy/envoy:v1.40.0", "Ed448", SL, NO},
        /* Curves beyond P-256 since 1.33. */
        {"envoyproxy/envoy:v1.33.0", "ECDSA-P384", SL, YES},
        {"envoyproxy/envoy:v1.32.9", "ECDSA-P384", SL, NO},
        {"envoyproxy/envoy:v1.32.9", "ECDSA-P256", SL, YES},
        {"envoyproxy/envoy:v1.32.9", "RSA-4096", CL, YES},
        {"envoyproxy/envoy:v1.32.9", "ECDSA-P384", CC, YES},
        {"envoyproxy/envoy:dev", "ECDSA-P384", SL, UNKNOWN},
        {"istio/proxyv2:1.29.0", "Ed25519", SC, NO},
        {"cr.l5d.io/linkerd/controller:stable-2.14.0", "RSA-2048", SL, NO},
        {"cr.l5d.io/linkerd/controller:stable-2.14.0", "ECDSA-P256", SL, YES},
        {"cr.l5d.io/linkerd/controller:stable-2.14.0", "ECDSA-P384", SL, NO},
        /* Nothing is said. */
        {"nginx:1.27.0", "Ed25519", SL, UNKNOWN},
        {"envoyproxy/envoy:v1.40.0", "", SL, UNKNOWN},
        {"envoyproxy/envoy:v1.40.0", NULL, SL, UNKNOWN},
        {"acme/app", "RSA-2048", SL, UNKNOWN},
    };
    /* clang-format on */
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *text = cr_asprintf("{name: c, image: '%s'}", cases[i].image);
        CR_CLEANUP(cr_json) struct cr_json *container = test_yaml(text);
        struct cr_program program = {.component = cr_catalogue_by_image(catalogue, cases[i].image),
                                     .container = container};
        enum cr_acceptance answer = cr_catalogue_accepts(&program, cases[i].key_type, (enum cr_role)cases[i].role);
        if ((int)answer != cases[i].answer)
            fail_msg("%s, %s as %s: %d", cases[i].image, cr_or_empty(cases[i].key_type),
                     cr_role_name((enum cr_role)cases[i].role), (int)answer);
    }
}

static void test_key_types_from_memory_count_as_unknown_and_a_prefix_is_no_type(void **state)
{
    (void)state;
    CR_CLEANUP(cr_catalogue)
    struct cr_catalogue *catalogue =
        load("schema: 1\ncomponents:\n- name: x\n  keyTypes:\n"
             "  - {roles: [serverLeaf], types: [RSA], confidence: memory, source: s}\n"
             "  - {roles: [clientLeaf], types: [Ed25], confidence: verified, source: s}\n"
             "  uses: [{roles: [serverLeaf], rules: [{method: Restart, confidence: verified, source: s}]}]\n");
    struct cr_program program = {.component = cr_catalogue_by_name(catalogue, "x")};
    assert_int_equal(cr_catalogue_accepts(&program, "Ed25519", CR_ROLE_SERVER_LEAF), CR_ACCEPTANCE_UNKNOWN);
    assert_int_equal(cr_catalogue_accepts(&program, "RSA-2048", CR_ROLE_SERVER_LEAF), CR_ACCEPTANCE_UNKNOWN);
    assert_int_equal(cr_catalogue_accepts(&program, "Ed25519", CR_ROLE_CLIENT_LEAF), CR_ACCEPTANCE_NO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_setting_decides_when_the_template_shows_it),
        cmocka_unit_test(test_one_of_several_settings_is_enough),
        cmocka_unit_test(test_a_policy_may_say_the_version),
        cmocka_unit_test(test_key_types),
        cmocka_unit_test(test_key_types_from_memory_count_as_unknown_and_a_prefix_is_no_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
