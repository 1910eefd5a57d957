#include "catalogue/catalogue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "catalogue/usage.h"
#include "catalogue/version.h"
#include "support/builtin.h"
#include "support/yamltext.h"

/* --- versions of image tags --- */

static void test_versions_of_tags(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        const char *tag;
        const char *range;
        enum cr_tri in; /* CR_MAYBE also for what is no version */
        bool version;
    } cases[] = {
        {"v1.36.3", ">=1.36", CR_YES, true},
        {"v1.36.0", ">=1.36", CR_YES, true},
        {"v1.35.9", ">=1.36", CR_NO, true},
        {"1.36.3", ">=1.36", CR_YES, true},
        {"V1.36.3", ">=1.36", CR_YES, true},
        {"v2.0.0", ">=1.36", CR_YES, true},
        {"v1.9.0", ">=1.36", CR_NO, true},
        {"1.27.4-alpine", ">=1.27.4", CR_YES, true},
        {"1.27.3-alpine3.18-slim", ">=1.27.4", CR_NO, true},
        {"1.2.3-debian-12-r4", ">=1.2.3,<1.2.4", CR_YES, true},
        {"1.2.3_suffix", ">=1.2.3", CR_YES, true},
        {"v1.36.3+k3s1", ">=1.36.3", CR_YES, true},
        /* A pre-release comes before its release; -alpine is none. */
        {"v1.36.0-rc.1", ">=1.36", CR_NO, true},
        {"v1.36.0-rc1", ">=1.36", CR_NO, true},
        {"v1.36.0-beta.0", "<1.36", CR_YES, true},
        {"v1.36.0-alpha.2", ">=1.35", CR_YES, true},
        {"1.36.0-alpine", ">=1.36", CR_YES, true},
        {"1.36.0-rcfoo", ">=1.36", CR_YES, true},
        /* A tag of two numbers is any patch of it. */
        {"1.27", ">=1.27.4", CR_MAYBE, true},
        {"1.27", ">=1.27", CR_YES, true},
        {"1.27", ">=1.28", CR_NO, true},
        {"1.27-alpine", "<1.27.4", CR_MAYBE, true},
        {"1.27", "<1.28", CR_YES, true},
        {"1.27", ">=1.27.4,<1.27.6", CR_MAYBE, true},
        /* Words in front. */
        {"distroless-v1.31.0", ">=1.31", CR_YES, true},
        {"contrib-distroless-v1.13.0", ">=1.14", CR_NO, true},
        {"v1.31-latest", ">=1.31", CR_YES, true},
        /* All comparators. */
        {"v1.20.0", ">=1.17,<1.23", CR_YES, true},
        {"v1.23.0", ">=1.17,<1.23", CR_NO, true},
        {"v1.16.9", ">=1.17,<1.23", CR_NO, true},
        {"v1.16.9", "<=1.16.9", CR_YES, true},
        {"v1.16.9", ">1.16.9", CR_NO, true},
        {"v1.16.10", ">1.16.9", CR_YES, true},
        /* Without an order. */
        {"latest", ">=1.0", CR_MAYBE, false},
        {"stable-alpine", ">=1.0", CR_MAYBE, false},
        {"stable-alpine3.18", ">=1.0", CR_MAYBE, false},
        {"28b1629a", ">=1.0", CR_MAYBE, false},
        {"3fb70258", ">=1.0", CR_MAYBE, false},
        {"12345678", ">=1.0", CR_MAYBE, false},
        {"1", ">=1.0", CR_MAYBE, false},
        {"1-alpine", ">=1.0", CR_MAYBE, false},
        {"20240506", ">=1.0", CR_MAYBE, false},
        {"2024.05.06", ">=1.0", CR_MAYBE, false},
        {"1.2.3.4", ">=1.0", CR_MAYBE, false},
        {"1.2x", ">=1.0", CR_MAYBE, false},
        {"v", ">=1.0", CR_MAYBE, false},
        {"", ">=1.0", CR_MAYBE, false},
        {"-1.2.3", ">=1.0", CR_MAYBE, false},
        {"1.999999999999.0", ">=1.0", CR_MAYBE, false},
        {NULL, ">=1.0", CR_MAYBE, false},
    };
    /* clang-format on */
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        struct cr_version_range range;
        if (!cr_version_range_parse(cases[i].range, &range, &err))
            fail_msg("range %s: %s", cases[i].range, err.text);
        struct cr_version_span span = {0};
        bool version = cr_version_from_tag(cases[i].tag, &span);
        if (version != cases[i].version)
            fail_msg("%s: %s", cr_or_empty(cases[i].tag), version ? "is taken for a version" : "is no version");
        enum cr_tri in = version ? cr_version_in_range(&range, &span) : CR_MAYBE;
        if (in != cases[i].in)
            fail_msg("%s in %s: wanted %d, have %d", cr_or_empty(cases[i].tag), cases[i].range, cases[i].in, in);
    }
}

static void test_ranges_that_are_none(void **state)
{
    (void)state;
    static const char *const ranges[] = {
        "",
        "1.36",
        "=1.36",
        ">=",
        ">=1",
        ">=1.36,",
        ">=v1.36",
        ">=1.36 <1.40",
        ",>=1.36",
        ">=1.36-rc.1",
        ">=1.1,>=1.2,>=1.3,>=1.4,>=1.5",
        ">=1.999999",
    };
    for (size_t i = 0; i < cr_array_len(ranges); i++) {
        struct cr_error err = {0};
        struct cr_version_range range;
        if (cr_version_range_parse(ranges[i], &range, &err))
            fail_msg("\"%s\" was accepted", ranges[i]);
        assert_int_equal(err.kind, CR_ERR_INVALID);
        assert_non_null(strstr(err.text, "version range"));
    }
}

/* --- images --- */

static void test_images(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        const char *image;
        const char *component;
    } cases[] = {
        {"envoyproxy/envoy:v1.40.0", "envoyproxy/envoy"},
        {"docker.io/envoyproxy/envoy:v1.40.0", "envoyproxy/envoy"},
        {"mirror.corp:5000/dockerhub/envoyproxy/envoy:v1.40.0@sha256:0123", "envoyproxy/envoy"},
        {"localhost/envoyproxy/envoy", "envoyproxy/envoy"},
        {"localhost:5000/envoyproxy/envoy", "envoyproxy/envoy"},
        {"envoyproxy/envoy@sha256:0123", "envoyproxy/envoy"},
        {"docker.io/envoyproxy/envoy-distroless:v1.31.0", "envoyproxy/envoy"},
        {"envoyproxy/envoy-build:1", NULL},
        {"notenvoyproxy/envoy", NULL},
        {"envoyproxy/envoy/sub", NULL},
        {"envoy", NULL},
        {"docker.io/envoyproxy/ratelimit:3fb70258", "envoyproxy/ratelimit"},
        {"envoyproxy/gateway:v1.9.0", "envoyproxy/gateway"},
        {"ghcr.io/projectcontour/contour:v1.33.8", "projectcontour/contour"},
        /* Official images: one word. */
        {"nginx", "nginx"},
        {"nginx:1.27", "nginx"},
        {"library/nginx", "nginx"},
        {"docker.io/nginx", "nginx"},
        {"docker.io/library/nginx:1.22.1", "nginx"},
        {"index.docker.io/library/nginx", "nginx"},
        {"mirror.corp/library/nginx", "nginx"},
        {"mirror.corp:443/hub/library/nginx:1", "nginx"},
        {"mirror.corp/nginx", "nginx"},
        {"bitnami/nginx:1.27", "nginx"},
        {"mirror.corp/bitnami/nginx", "nginx"},
        {"nginxinc/nginx-unprivileged:1.27-alpine", "nginx"},
        {"acme/nginx", NULL},
        {"mirror.corp/acme/nginx", NULL},
        {"acme/library/nginx/extra", NULL},
        {"nginx-prometheus-exporter", NULL},
        {"kong/nginx", NULL},
        /* Kubernetes. */
        {"registry.k8s.io/kube-apiserver:v1.36.3", "kube-apiserver"},
        {"mirror.corp/k8s/kube-apiserver-amd64:v1.20.0", "kube-apiserver"},
        {"acme/kube-controller-manager", "kube-controller-manager"},
        {"registry.k8s.io/kube-scheduler:v1.36.3", "kube-scheduler"},
        {"registry.k8s.io/kube-proxy:v1.36.3", "kube-proxy"},
        {"registry.k8s.io/etcd:3.6.8-0", "etcd"},
        {"mirror.corp/registry.k8s.io/etcd:3.6.8-0", "etcd"},
        {"quay.io/coreos/etcd:v3.6.8", "etcd"},
        {"gcr.io/etcd-development/etcd:v3.6.8", "etcd"},
        {"acme/etcd", NULL},
        {"registry.k8s.io/coredns/coredns:v1.14.7", "coredns"},
        {"coredns/coredns:1.14.7", "coredns"},
        {"registry.k8s.io/metrics-server/metrics-server:v0.9.0", "metrics-server"},
        /* Nothing to go by. */
        {"", NULL},
        {NULL, NULL},
        {"acme/app:1", NULL},
        {"@sha256:0123", NULL},
        {":v1", NULL},
        {"///", NULL},
    };
    /* clang-format on */
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const char *name = cr_component_name(cr_catalogue_by_image(builtin, cases[i].image));
        if (!cr_streq(name, cases[i].component))
            fail_msg("%s: wanted %s, have %s", cr_or_empty(cases[i].image), cr_or_empty(cases[i].component),
                     cr_or_empty(name));
    }
}

static struct cr_catalogue *load(const char *yaml)
{
    struct cr_error err = {0};
    struct cr_catalogue *catalogue = cr_catalogue_load(yaml, strlen(yaml), &err);
    if (!catalogue)
        fail_msg("%s", err.text);
    return catalogue;
}

#define RULES "rules: [{method: Restart, confidence: memory, source: test}]"

static void test_the_pattern_that_pins_most_wins(void **state)
{
    (void)state;
    CR_CLEANUP(cr_catalogue)
    struct cr_catalogue *c =
        load("schema: 1\ncomponents:\n"
             "- {name: any, images: ['*/*'], uses: [{roles: [serverLeaf], " RULES "}]}\n"
             "- {name: ours, images: ['acme/*'], uses: [{roles: [serverLeaf], " RULES "}]}\n"
             "- {name: app, images: ['acme/app'], uses: [{roles: [serverLeaf], " RULES "}]}\n"
             "- {name: fork, images: ['fork.io/acme/app'], uses: [{roles: [serverLeaf], " RULES "}]}\n");
    assert_int_equal(cr_catalogue_len(c), 4);
    assert_string_equal(cr_component_name(cr_catalogue_by_image(c, "docker.io/acme/app:1")), "app");
    assert_string_equal(cr_component_name(cr_catalogue_by_image(c, "fork.io/acme/app:1")), "fork");
    assert_string_equal(cr_component_name(cr_catalogue_by_image(c, "acme/other")), "ours");
    assert_string_equal(cr_component_name(cr_catalogue_by_image(c, "b/c")), "any");
    assert_string_equal(cr_component_name(cr_catalogue_by_name(c, "fork")), "fork");
    assert_null(cr_catalogue_by_name(c, "Fork"));
    assert_null(cr_catalogue_by_name(c, NULL));
}

/* --- loading --- */

#define USE        "uses: [{roles: [serverLeaf], " RULES "}]"
#define RULE(body) "schema: 1\ncomponents: [{name: x, uses: [{roles: [serverLeaf], rules: [{" body "}]}]}]"
#define CLAIM      ", confidence: verified, source: s"

static void test_a_wrong_catalogue_names_entry_and_field(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        const char *yaml;
        const char *text[2]; /* parts of the error */
    } cases[] = {
        {"", {"schema", "is required"}},
        {"[]", {"mapping", ""}},
        {"components: [", {"catalogue", "line"}},
        {"schema: 2\ncomponents: []", {"schema", "must be an integer from 1 to 1"}},
        {"schema: 1\ncomponents: []\nextra: 1", {"extra is no field", ""}},
        {"schema: 1\ncomponents: {}", {"components must be a list", ""}},
        {"schema: 1\ncomponents: [x]", {"components[0] must be an object", ""}},
        {"schema: 1\ncomponents: [{" USE "}]", {"entry 0 (without a name)", "name is required"}},
        {"schema: 1\ncomponents: [{name: x, " USE "}, {name: x, " USE "}]", {"entry 1 (x)", "stands twice"}},
        {"schema: 1\ncomponents: [{name: x, colour: red, " USE "}]", {"entry 0 (x)", "colour is no field"}},
        {"schema: 1\ncomponents: [{name: x}]", {"entry 0 (x)", "uses must have at least one"}},
        {"schema: 1\ncomponents: [{name: x, images: [1], " USE "}]", {"images[0]", "quote what looks like a number"}},
        {"schema: 1\ncomponents: [{name: x, images: [a, a], " USE "}]", {"images", "\"a\" twice"}},
        {"schema: 1\ncomponents: [{name: x, uses: [{" RULES "}]}]", {"uses[0].roles", "at least one role"}},
        {"schema: 1\ncomponents: [{name: x, uses: [{roles: [server], " RULES "}]}]",
         {"uses[0].roles[0] must be serverLeaf", "not \"server\""}},
        {"schema: 1\ncomponents: [{name: x, uses: [{roles: [serverLeaf], flag: [a], " RULES "}]}]",
         {"uses[0].flag is no field", ""}},
        {"schema: 1\ncomponents: [{name: x, uses: [{roles: [serverLeaf]}]}]", {"uses[0].rules", "at least one rule"}},
        {RULE("confidence: verified, source: s"), {"uses[0].rules[0].method is required", ""}},
        {RULE("method: watch" CLAIM), {"uses[0].rules[0].method must be Watch", "not \"watch\""}},
        {RULE("method: Watch, source: s"), {"uses[0].rules[0].confidence is required", ""}},
        {RULE("method: Watch, confidence: sure, source: s"), {"confidence must be one of verified", "memory"}},
        {RULE("method: Watch, confidence: verified"), {"uses[0].rules[0].source is required", ""}},
        {RULE("method: Poll" CLAIM), {"uses[0].rules[0].maxDelay is required", ""}},
        {RULE("method: Poll, maxDelay: 5" CLAIM), {"maxDelay must be a duration", ""}},
        {RULE("method: Poll, maxDelay: 25h" CLAIM), {"maxDelay must be a duration", "24h"}},
        {RULE("method: Restart, maxDelay: 5s" CLAIM), {"maxDelay belongs to", ""}},
        {RULE("method: Signal" CLAIM), {"trigger is required", ""}},
        {RULE("method: HTTP" CLAIM), {"trigger is required", ""}},
        {RULE("method: Command" CLAIM), {"trigger is required", ""}},
        {RULE("method: Watch, trigger: SIGHUP" CLAIM), {"trigger belongs to Signal", ""}},
        {RULE("method: Watch, version: '>=1.2'" CLAIM), {"uses[0].rules[0].version is no field", ""}},
        {RULE("method: Watch, versions: '1.2'" CLAIM), {"uses[0].rules[0].versions", "no version range"}},
        {RULE("method: Watch, versions: '>=1.2'" CLAIM), {"rules[0], the last rule", "without a condition"}},
        {RULE("method: Watch, tags: [abc]" CLAIM), {"the last rule", "without a condition"}},
        {RULE("method: Watch, mentions: [abc]" CLAIM), {"the last rule", "without a condition"}},
        {RULE("method: Watch, podMentions: [abc]" CLAIM), {"the last rule", "without a condition"}},
        {"schema: 1\ncomponents: [{name: x, uses: [{roles: [serverLeaf], rules: [{method: Watch" CLAIM
         "}, {method: Restart" CLAIM "}]}]}]",
         {"rules[0] has no condition", "never hold"}},
        {"schema: 1\ncomponents: [{name: x, parametersOf: y, " RULES "}]", {"entry 0 (x)", "parametersOf names \"y\""}},
        {"schema: 1\ncomponents: [{name: x, parametersOf: x, " RULES "}]", {"parametersOf names \"x\"", ""}},
        {"schema: 1\ncomponents: [{name: a, " USE "}, {name: x, parametersOf: a, " USE "}]", {"at least one rule", ""}},
        {"schema: 1\ncomponents: [{name: a, " USE "}, {name: x, parametersOf: a}]", {"at least one rule", ""}},
        {"schema: 1\ncomponents: [{name: a, " USE ", " RULES "}]", {"rules is no field", ""}},
        {"schema: 1\ncomponents: [{name: x@1, " USE "}]", {"without \"@\"", ""}},
        {RULE("method: Watch, settings: ['=a']" CLAIM), {"settings[0] must be a flag or variable", ""}},
        {RULE("method: Watch, settings: ['--=a']" CLAIM), {"settings[0] must be a flag or variable", ""}},
        {RULE("method: Watch, settings: ['A=']" CLAIM), {"settings[0] must be a flag or variable", ""}},
        {RULE("method: Watch, settings: [A]" CLAIM), {"the last rule", "without a condition"}},
        {"schema: 1\ncomponents: [{name: x, keyTypes: [{roles: [serverLeaf], types: [], confidence: memory, source: s}], " USE
         "}]",
         {"keyTypes[0].types must name at least one", ""}},
        {"schema: 1\ncomponents: [{name: x, keyTypes: [{roles: [serverLeaf], types: [rsa], confidence: memory, source: "
         "s}], " USE "}]",
         {"keyTypes[0].types[0] must be RSA", "\"rsa\""}},
        {"schema: 1\ncomponents: [{name: x, keyTypes: [{types: [RSA], confidence: memory, source: s}], " USE "}]",
         {"keyTypes[0].roles", "at least one role"}},
        {"schema: 1\ncomponents: [{name: x, keyTypes: [{roles: [serverLeaf], types: [RSA], source: s}], " USE "}]",
         {"keyTypes[0].confidence is required", ""}},
        {"schema: 1\ncomponents: [{name: x, uses: [{roles: [serverLeaf], handsOn: true}]}]",
         {"uses[0].source is required", ""}},
        {"schema: 1\ncomponents: [{name: x, uses: [{roles: [serverLeaf], handsOn: true, source: s, " RULES "}]}]",
         {"uses[0].rules and handsOn exclude", ""}},
        {"schema: 1\ncomponents: [{name: a, " USE "}, {name: x, parametersOf: a, except: [--b], " RULES "}]",
         {"except names what is no parameter of \"a\"", ""}},
    };
    /* clang-format on */
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        struct cr_catalogue *c = cr_catalogue_load(cases[i].yaml, strlen(cases[i].yaml), &err);
        if (c)
            fail_msg("accepted: %s", cases[i].yaml);
        assert_int_equal(err.kind, CR_ERR_INVALID);
        for (size_t k = 0; k < 2; k++)
            if (!strstr(err.text, cr_or_empty(cases[i].text[k])))
                fail_msg("%s\n\"%s\" should say \"%s\"", cases[i].yaml, err.text, cases[i].text[k]);
        if (!cr_starts_with(err.text, "catalogue"))
            fail_msg("\"%s\" should say that it is the catalogue", err.text);
    }
    cr_catalogue_free(NULL);
    assert_int_equal(cr_catalogue_len(NULL), 0);
    assert_null(cr_catalogue_by_image(NULL, "nginx"));
    assert_null(cr_component_name(NULL));
}

/* --- capabilities of the built-in catalogue --- */

static struct cr_capability capability(const char *image, const char *rest, const char *parameter, enum cr_role role)
{
    cr_autofree char *text = cr_asprintf("containers: [{name: c, image: '%s'%s%s}]\n", image, *rest ? ", " : "", rest);
    CR_CLEANUP(cr_json) struct cr_json *spec = test_yaml(text);
    const struct cr_component *component = cr_catalogue_by_image(builtin, image);
    if (!component)
        fail_msg("%s is not in the catalogue", image);
    struct cr_capability out;
    struct cr_program program = {
        .component = component, .pod_spec = spec, .container = cr_json_first(cr_json_get(spec, "containers"))};
    cr_catalogue_capability(&program, parameter, role, &out);
    return out;
}

#define K8S "registry.k8s.io/"

static void test_capabilities_of_known_software(void **state)
{
    (void)state;
    enum { SL = CR_ROLE_SERVER_LEAF, CL = CR_ROLE_CLIENT_LEAF, CC = CR_ROLE_CLIENT_CA, SC = CR_ROLE_SERVER_CA };
    enum { OP = CR_ROLE_OPAQUE };
    /* clang-format off */
    static const struct {
        const char *image;
        const char *parameter;
        int role;
        enum cr_method method;
        int64_t delay_ms;
    } cases[] = {
        /* Seed 003, table 1, row by row, as upstream does it: row 1. */
        {K8S "kube-apiserver:v1.36.3", "--tls-cert-file", SL, CR_METHOD_WATCH, 5000},
        {K8S "kube-apiserver:v1.36.3", "--tls-private-key-file", SL, CR_METHOD_WATCH, 5000},
        {K8S "kube-apiserver:v1.36.3", "--tls-sni-cert-key", SL, CR_METHOD_WATCH, 5000},
        {K8S "kube-apiserver:v1.36.3", "--client-ca-file", CC, CR_METHOD_WATCH, 5000},
        {K8S "kube-apiserver:v1.36.3", "--requestheader-client-ca-file", CC, CR_METHOD_WATCH, 5000},
        {K8S "kube-apiserver:v1.22.0", "--tls-cert-file", SL, CR_METHOD_POLL, 60 * 1000},
        {K8S "kube-apiserver:v1.16.0", "--tls-cert-file", SL, CR_METHOD_RESTART, 0},
        {K8S "kube-apiserver:v1.23.0", "--client-ca-file", CC, CR_METHOD_WATCH, 5000},
        {K8S "kube-apiserver:v1.22.9", "--client-ca-file", CC, CR_METHOD_POLL, 60 * 1000},
        /* 2 */
        {K8S "kube-apiserver:v1.36.3", "--etcd-certfile", CL, CR_METHOD_PER_HANDSHAKE, 1000},
        {K8S "kube-apiserver:v1.36.3", "--etcd-keyfile", CL, CR_METHOD_PER_HANDSHAKE, 1000},
        {K8S "kube-apiserver:v1.36.3", "--etcd-cafile", SC, CR_METHOD_RESTART, 0},
        /* 3: the CA polls from 1.36 on */
        {K8S "kube-apiserver:v1.35.0", "--kubelet-client-certificate", CL, CR_METHOD_PER_HANDSHAKE, 300 * 1000},
        {K8S "kube-apiserver:v1.35.0", "--kubelet-client-key", CL, CR_METHOD_PER_HANDSHAKE, 300 * 1000},
        {K8S "kube-apiserver:v1.18.0", "--kubelet-client-key", CL, CR_METHOD_RESTART, 0},
        {K8S "kube-apiserver:v1.36.0", "--kubelet-certificate-authority", SC, CR_METHOD_POLL, 300 * 1000},
        {K8S "kube-apiserver:v1.35.9", "--kubelet-certificate-authority", SC, CR_METHOD_RESTART, 0},
        {K8S "kube-apiserver:v1.36.0-rc.1", "--kubelet-certificate-authority", SC, CR_METHOD_RESTART, 0},
        {K8S "kube-apiserver:v1.36", "--kubelet-certificate-authority", SC, CR_METHOD_POLL, 300 * 1000},
        {K8S "kube-apiserver:latest", "--kubelet-certificate-authority", SC, CR_METHOD_RESTART, 0},
        {K8S "kube-apiserver", "--kubelet-certificate-authority", SC, CR_METHOD_RESTART, 0},
        {K8S "kube-apiserver@sha256:0123", "--kubelet-certificate-authority", SC, CR_METHOD_RESTART, 0},
        {K8S "kube-apiserver:v1.36.3@sha256:0123", "--kubelet-certificate-authority", SC, CR_METHOD_POLL, 300 * 1000},
        /* 4 */
        {K8S "kube-apiserver:v1.36.0", "--peer-ca-file", SC, CR_METHOD_POLL, 300 * 1000},
        {K8S "kube-apiserver:v1.35.0", "--peer-ca-file", SC, CR_METHOD_RESTART, 0},
        {K8S "kube-apiserver:v1.20.0", "--proxy-client-cert-file", CL, CR_METHOD_WATCH, 5000},
        {K8S "kube-apiserver:v1.19.0", "--proxy-client-key-file", CL, CR_METHOD_RESTART, 0},
        /* 5, 6 */
        {K8S "kube-apiserver:v1.36.3", "--service-account-key-file", OP, CR_METHOD_RESTART, 0},
        {K8S "kube-apiserver:v1.36.3", "--service-account-signing-key-file", OP, CR_METHOD_RESTART, 0},
        {K8S "kube-apiserver:v1.36.3", "--oidc-ca-file", SC, CR_METHOD_RESTART, 0},
        /* 7 to 11 */
        {K8S "kube-controller-manager:v1.36.3", "--tls-cert-file", SL, CR_METHOD_WATCH, 5000},
        {K8S "kube-controller-manager:v1.36.3", "--requestheader-client-ca-file", CC, CR_METHOD_WATCH, 5000},
        {K8S "kube-controller-manager:v1.36.3", "--root-ca-file", SC, CR_METHOD_RESTART, 0},
        {K8S "kube-controller-manager:v1.36.3", "--cluster-signing-cert-file", OP, CR_METHOD_WATCH, 5000},
        {K8S "kube-controller-manager:v1.36.3", "--cluster-signing-kubelet-serving-key-file", OP, CR_METHOD_WATCH, 5000},
        {K8S "kube-controller-manager:v1.36.3", "--service-account-private-key-file", OP, CR_METHOD_RESTART, 0},
        {K8S "kube-controller-manager:v1.36.3", "--kubeconfig", CL, CR_METHOD_RESTART, 0},
        {K8S "kube-controller-manager:v1.36.3", "kubeconfig client-certificate", CL, CR_METHOD_PER_HANDSHAKE, 300 * 1000},
        {K8S "kube-controller-manager:v1.36.3", "kubeconfig certificate-authority", SC, CR_METHOD_POLL, 300 * 1000},
        {K8S "kube-controller-manager:v1.35.0", "kubeconfig certificate-authority", SC, CR_METHOD_RESTART, 0},
        /* 12, 13 */
        {K8S "kube-scheduler:v1.36.3", "--tls-cert-file", SL, CR_METHOD_WATCH, 5000},
        {K8S "kube-scheduler:v1.36.3", "--client-ca-file", CC, CR_METHOD_WATCH, 5000},
        {K8S "kube-scheduler:v1.36.3", "kubeconfig client-key", CL, CR_METHOD_PER_HANDSHAKE, 300 * 1000},
        {K8S "kube-scheduler:v1.35.0", "kubeconfig certificate-authority", SC, CR_METHOD_RESTART, 0},
        /* 16 */
        {K8S "kube-proxy:v1.36.3", "kubeconfig certificate-authority", SC, CR_METHOD_POLL, 300 * 1000},
        {K8S "kube-proxy:v1.35.0", "kubeconfig certificate-authority", SC, CR_METHOD_RESTART, 0},
        {K8S "kube-proxy:v1.36.3", "kubeconfig client-certificate", CL, CR_METHOD_PER_HANDSHAKE, 300 * 1000},
        /* 17, 18 */
        {"quay.io/coreos/etcd:v3.6.8", "--cert-file", SL, CR_METHOD_PER_HANDSHAKE, 1000},
        {"quay.io/coreos/etcd:v3.6.8", "--cert-file", CL, CR_METHOD_PER_HANDSHAKE, 1000},
        {"quay.io/coreos/etcd:v3.6.8", "ETCD_KEY_FILE", SL, CR_METHOD_PER_HANDSHAKE, 1000},
        {"quay.io/coreos/etcd:v3.3.0", "--cert-file", SL, CR_METHOD_RESTART, 0},
        {K8S "etcd:3.6.8-0", "--trusted-ca-file", CC, CR_METHOD_RESTART, 0},
        {K8S "etcd:3.6.8-0", "--client-cert-file", CL, CR_METHOD_PER_HANDSHAKE, 1000},
        {K8S "etcd:3.6.8-0", "--peer-cert-file", CL, CR_METHOD_PER_HANDSHAKE, 1000},
        {K8S "etcd:3.6.8-0", "--peer-client-key-file", CL, CR_METHOD_PER_HANDSHAKE, 1000},
        {K8S "etcd:3.6.8-0", "--peer-trusted-ca-file", SC, CR_METHOD_RESTART, 0},
        /* 20, 21 */
        {"coredns/coredns:1.14.7", "kubernetes tls CERT", CL, CR_METHOD_PER_HANDSHAKE, 300 * 1000},
        {"coredns/coredns:1.14.7", "kubernetes tls CACERT", SC, CR_METHOD_SIGNAL, 0},
        {"coredns/coredns:1.14.7", "prometheus tls", SL, CR_METHOD_PER_HANDSHAKE, 1000},
        {"coredns/coredns:1.14.2", "prometheus tls", SL, CR_METHOD_RESTART, 0},
        {"coredns/coredns:1.14.7", "tls CERT", SL, CR_METHOD_SIGNAL, 0},
        {"coredns/coredns:1.14.7", NULL, CL, CR_METHOD_SIGNAL, 0},
        /* metrics-server */
        {K8S "metrics-server/metrics-server:v0.9.0", "--tls-cert-file", SL, CR_METHOD_WATCH, 5000},
        {K8S "metrics-server/metrics-server:v0.9.0", "--kubelet-certificate-authority", SC, CR_METHOD_POLL, 300 * 1000},
        {K8S "metrics-server/metrics-server:v0.8.1", "--kubelet-certificate-authority", SC, CR_METHOD_RESTART, 0},
        {K8S "metrics-server/metrics-server:v0.6.0", "--tls-cert-file", SL, CR_METHOD_UNKNOWN, 0},
        /* The strictest over all parameters of a role, when it cannot be told which one. */
        {K8S "kube-apiserver:v1.36.3", NULL, SL, CR_METHOD_WATCH, 5000},
        {K8S "kube-apiserver:v1.36.3", NULL, SC, CR_METHOD_RESTART, 0},
        {K8S "kube-apiserver:v1.36.3", NULL, CL, CR_METHOD_WATCH, 300 * 1000},
        {K8S "kube-apiserver:v1.36.3", "--no-such-flag", SC, CR_METHOD_RESTART, 0},
        /* Envoy's family. */
        {"envoyproxy/ratelimit:3fb70258", "GRPC_SERVER_TLS_CERT", SL, CR_METHOD_WATCH, 5000},
        {"envoyproxy/ratelimit:28b1629a", "GRPC_SERVER_TLS_KEY", SL, CR_METHOD_WATCH, 5000},
        {"envoyproxy/ratelimit:a90e0e5d", "GRPC_SERVER_TLS_KEY", SL, CR_METHOD_WATCH, 5000},
        {"envoyproxy/ratelimit:99d85510", "GRPC_SERVER_TLS_KEY", SL, CR_METHOD_WATCH, 5000},
        {"envoyproxy/ratelimit:3fb702589d36c9fce2ce7e37b35e7a0e1d8cd7a2", "GRPC_SERVER_TLS_KEY", SL, CR_METHOD_WATCH, 5000},
        {"envoyproxy/ratelimit:3fb7025", "GRPC_SERVER_TLS_KEY", SL, CR_METHOD_WATCH, 5000},
        {"envoyproxy/ratelimit:3fb7", "GRPC_SERVER_TLS_KEY", SL, CR_METHOD_RESTART, 0},
        {"envoyproxy/ratelimit:91484c59", "GRPC_SERVER_TLS_CERT", SL, CR_METHOD_RESTART, 0},
        {"envoyproxy/ratelimit:0123abcd", "GRPC_SERVER_TLS_CERT", SL, CR_METHOD_RESTART, 0},
        {"envoyproxy/ratelimit:master", "GRPC_SERVER_TLS_CERT", SL, CR_METHOD_RESTART, 0},
        {"envoyproxy/ratelimit", "GRPC_SERVER_TLS_CERT", SL, CR_METHOD_RESTART, 0},
        {"envoyproxy/ratelimit:3fb70258", "GRPC_CLIENT_TLS_CACERT", CC, CR_METHOD_RESTART, 0},
        {"envoyproxy/ratelimit:3fb70258", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT", CL, CR_METHOD_RESTART, 0},
        {"envoyproxy/ratelimit:3fb70258", "CONFIG_GRPC_XDS_SERVER_TLS_CACERT", SC, CR_METHOD_RESTART, 0},
        {"envoyproxy/ratelimit:3fb70258", "REDIS_TLS_CACERT", SC, CR_METHOD_RESTART, 0},
        {"envoyproxy/gateway:v1.9.0", NULL, SL, CR_METHOD_PER_HANDSHAKE, 1000},
        {"envoyproxy/gateway:v1.8.0", NULL, SL, CR_METHOD_RESTART, 0},
        {"envoyproxy/gateway:v1.8.0", NULL, CC, CR_METHOD_PER_HANDSHAKE, 1000},
        {"projectcontour/contour:v1.33.8", "--contour-cert-file", SL, CR_METHOD_PER_HANDSHAKE, 1000},
        {"projectcontour/contour:v1.33.8", "--contour-cafile", CC, CR_METHOD_PER_HANDSHAKE, 1000},
        {"projectcontour/contour:v1.1.0", "--contour-cafile", CC, CR_METHOD_RESTART, 0},
        {"projectcontour/contour:main", "--contour-cafile", CC, CR_METHOD_RESTART, 0},
        {"nginx:1.27", NULL, SL, CR_METHOD_SIGNAL, 0},
        {"nginx:1.27", "ssl_client_certificate", CC, CR_METHOD_SIGNAL, 0},
        /* A role of which the catalogue says nothing. */
        {"nginx:1.27", NULL, OP, CR_METHOD_UNKNOWN, 0},
    };
    /* clang-format on */
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_capability c = capability(cases[i].image, "", cases[i].parameter, (enum cr_role)cases[i].role);
        if (c.method != cases[i].method || c.max_delay_ms != cases[i].delay_ms)
            fail_msg("%s %s %s: wanted %s %lld, have %s %lld", cases[i].image, cr_or_empty(cases[i].parameter),
                     cr_role_name((enum cr_role)cases[i].role), cr_method_name(cases[i].method),
                     (long long)cases[i].delay_ms, cr_method_name(c.method), (long long)c.max_delay_ms);
    }
}

/* Rows 14, 15, 19 and 22 of seed 003 belong to what has no image of its own, or to openFuyao only. */
static void test_entries_that_only_a_policy_can_name(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        const char *component;
        const char *parameter;
        enum cr_role role;
        enum cr_method method;
    } cases[] = {
        {"kubelet", "--tls-cert-file", CR_ROLE_SERVER_LEAF, CR_METHOD_RESTART}, /* its version is not in an image tag */
        {"kubelet", "--client-ca-file", CR_ROLE_CLIENT_CA, CR_METHOD_RESTART},
        {"kubelet", "kubeconfig certificate-authority", CR_ROLE_SERVER_CA, CR_METHOD_RESTART},
        {"kubelet", "--bootstrap-kubeconfig", CR_ROLE_CLIENT_LEAF, CR_METHOD_RESTART},
        {"etcdctl", "--cacert", CR_ROLE_SERVER_CA, CR_METHOD_PER_HANDSHAKE},
        {"openfuyao/kube-apiserver", "--service-account-key-file", CR_ROLE_OPAQUE, CR_METHOD_WATCH},
        {"openfuyao/kube-apiserver", "--etcd-cafile", CR_ROLE_SERVER_CA, CR_METHOD_WATCH},
        {"openfuyao/etcd", "--trusted-ca-file", CR_ROLE_CLIENT_CA, CR_METHOD_WATCH},
        {"openfuyao/kube-controller-manager", "--root-ca-file", CR_ROLE_SERVER_CA, CR_METHOD_WATCH},
        {"openfuyao/kube-controller-manager", "--kubeconfig", CR_ROLE_CLIENT_LEAF, CR_METHOD_RESTART},
        {"openfuyao/kube-scheduler", "kubeconfig certificate-authority", CR_ROLE_SERVER_CA, CR_METHOD_WATCH},
        {"openfuyao/kubelet", "--client-ca-file", CR_ROLE_CLIENT_CA, CR_METHOD_WATCH},
        {"openfuyao/kube-proxy", "kubeconfig certificate-authority", CR_ROLE_SERVER_CA, CR_METHOD_WATCH},
        {"openfuyao/coredns", "health tls", CR_ROLE_SERVER_LEAF, CR_METHOD_WATCH},
        {"openfuyao/coredns", "forward tls CACERT", CR_ROLE_SERVER_CA, CR_METHOD_SIGNAL},
    };
    /* clang-format on */
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct cr_component *component = cr_catalogue_by_name(builtin, cases[i].component);
        if (!component)
            fail_msg("%s is not in the catalogue", cases[i].component);
        struct cr_capability c;
        struct cr_program program = {.component = component};
        cr_catalogue_capability(&program, cases[i].parameter, cases[i].role, &c);
        if (c.method != cases[i].method)
            fail_msg("%s %s: wanted %s, have %s", cases[i].component, cases[i].parameter,
                     cr_method_name(cases[i].method), cr_method_name(c.method));
    }
}

static void test_what_is_from_memory_is_marked(void **state)
{
    (void)state;
    assert_true(capability("nginx:1.27", "", NULL, CR_ROLE_SERVER_LEAF).verified);
    assert_false(capability("httpd:2.4", "", NULL, CR_ROLE_CLIENT_LEAF).verified);
    assert_string_equal(capability("nginx:1.27", "", NULL, CR_ROLE_SERVER_LEAF).signal, "SIGHUP");
    assert_false(capability(K8S "metrics-server/metrics-server:v0.5.0", "", NULL, CR_ROLE_SERVER_LEAF).verified);
    struct cr_capability unknown;
    struct cr_program nothing = {0};
    cr_catalogue_capability(&nothing, NULL, CR_ROLE_SERVER_LEAF, &unknown);
    assert_int_equal(unknown.method, CR_METHOD_UNKNOWN);
    assert_false(unknown.verified);
    assert_null(unknown.source);
}

static void test_an_unknown_version_is_said(void **state)
{
    (void)state;
    assert_true(capability(K8S "kube-apiserver:latest", "", "--peer-ca-file", CR_ROLE_SERVER_CA).assumed);
    assert_true(capability("envoyproxy/ratelimit:0123abcd", "", "GRPC_SERVER_TLS_CERT", CR_ROLE_SERVER_LEAF).assumed);
    assert_false(capability("envoyproxy/ratelimit:91484c59", "", "GRPC_SERVER_TLS_CERT", CR_ROLE_SERVER_LEAF).assumed);
    assert_false(capability("envoyproxy/ratelimit:0123abcd", "", "GRPC_CLIENT_TLS_CACERT", CR_ROLE_CLIENT_CA).assumed);
    assert_false(capability(K8S "kube-apiserver:v1.36.3", "", "--peer-ca-file", CR_ROLE_SERVER_CA).assumed);
}

static void test_why_is_a_clause_with_component_and_parameter(void **state)
{
    (void)state;
    struct cr_capability c =
        capability("envoyproxy/ratelimit:3fb70258", "", "GRPC_CLIENT_TLS_CACERT", CR_ROLE_CLIENT_CA);
    assert_string_equal(c.why,
                        "Rate Limit (envoyproxy/ratelimit) reads its client CA (GRPC_CLIENT_TLS_CACERT) once at start");
    c = capability("nginx:1.27", "", NULL, CR_ROLE_SERVER_LEAF);
    assert_string_equal(c.why, "nginx reads its server leaf again only on SIGHUP, which nothing in the pod sends");
    c = capability("httpd:2.4", "", NULL, CR_ROLE_SERVER_CA);
    assert_string_equal(c.why, "Apache httpd (httpd) is said to reload its server CA, but nobody has verified it");
    c = capability("nginx:1.27", "", NULL, CR_ROLE_OPAQUE);
    assert_string_equal(c.why, "nginx is not known to reload its opaque material");
}

/* --- Envoy: file SDS or not --- */

static void test_envoys_file_sds_shows_in_two_templates(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        const char *rule;
        const char *image;
        const char *pod; /* of the container "envoy" and around it */
        enum cr_method method;
    } cases[] = {
        {"nothing shown: static", "v1.40.0", "containers: [{name: envoy, args: [-c, /etc/envoy/envoy.yaml]}]",
         CR_METHOD_RESTART},
        {"Envoy Gateway's bootstrap, which stands in an argument", "v1.40.0",
         "containers: [{name: envoy, args: ['--config-yaml', 'path_config_source: {path: /sds/xds-trusted-ca.json}']}]",
         CR_METHOD_WATCH},
        {"as JSON", "v1.40.0",
         "containers: [{name: envoy, args: ['--config-yaml={\"path\":\"/sds/xds-trusted-ca.json\"}']}]", CR_METHOD_WATCH},
        {"a folder of that name shows no resource", "v1.40.0",
         "containers: [{name: envoy, volumeMounts: [{name: sds, mountPath: /sds}]}]\nvolumes: [{name: sds, configMap: {}}]",
         CR_METHOD_RESTART},
        {"nor does the name of a bootstrap", "v1.40.0",
         "containers: [{name: envoy, command: [envoy, -c, /config/sds-static.yaml]}]", CR_METHOD_RESTART},
        {"another resource may be one of another file", "v1.40.0",
         "containers: [{name: envoy, args: ['--config-yaml', 'path_config_source: {path: /etc/sds/ca.json}']}]",
         CR_METHOD_RESTART},
        {"the word without a path shows no file: it may be SDS by gRPC", "v1.40.0",
         "containers: [{name: envoy, args: ['--config-yaml', 'tls_certificate_sds_secret_configs: [{sds_config: {ads: "
         "{}}}]']}]",
         CR_METHOD_RESTART},
        {"another container's SDS says nothing", "v1.40.0",
         "containers: [{name: envoy}, {name: other, args: [/sds/xds-trusted-ca.json]}]", CR_METHOD_RESTART},
        {"Contour's bootstrap in an init container", "v1.31.0",
         "initContainers: [{name: b, command: [contour], args: [bootstrap, /config/envoy.json, "
         "--resources-dir=/config/resources]}]\ncontainers: [{name: envoy, args: [-c, /config/envoy.json]}]",
         CR_METHOD_WATCH},
        {"Contour's bootstrap without resources is static", "v1.31.0",
         "initContainers: [{name: b, command: [contour], args: [bootstrap, /config/envoy.json]}]\n"
         "containers: [{name: envoy, args: [-c, /config/envoy.json]}]",
         CR_METHOD_RESTART},
        {"too old for file SDS", "v1.13.0", "containers: [{name: envoy, args: [/sds/xds-trusted-ca.json]}]", CR_METHOD_RESTART},
        {"a version that is not known may be too old", "dev", "containers: [{name: envoy, args: [/sds/xds-trusted-ca.json]}]",
         CR_METHOD_RESTART},
    };
    /* clang-format on */
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_json) struct cr_json *spec = test_yaml(cases[i].pod);
        cr_autofree char *image = cr_asprintf("envoyproxy/envoy:%s", cases[i].image);
        struct cr_json *container = cr_json_edit(spec, "containers");
        CR_CLEANUP(cr_json) struct cr_json *envoy = cr_json_copy(cr_json_first(container));
        cr_json_set_string(envoy, "image", image);
        struct cr_capability c;
        struct cr_program program = {
            .component = cr_catalogue_by_name(builtin, "envoyproxy/envoy"), .pod_spec = spec, .container = envoy};
        cr_catalogue_capability(&program, "/certs/ca.crt", CR_ROLE_SERVER_CA, &c);
        if (c.method != cases[i].method)
            fail_msg("%s: %s", cases[i].rule, cr_method_name(c.method));
        assert_int_equal(c.assumed, cr_streq(cases[i].image, "dev"));
    }
}

/* --- roles --- */

static char *roles_as_text(const struct cr_parameter_uses *uses)
{
    struct cr_buf buf = CR_BUF_INIT(0);
    for (size_t i = 0; i < uses->len; i++)
        cr_buf_printf(&buf, "%s%s %s %s", i ? "; " : "", uses->items[i].parameter ? uses->items[i].parameter : "?",
                      cr_role_name(uses->items[i].role), uses->items[i].key[0] ? uses->items[i].key : "?");
    return cr_buf_steal(&buf);
}

#define MOUNT  "volumeMounts: [{name: v, mountPath: /certs}]"
#define VOLUME "\nvolumes: [{name: v, secret: {secretName: tls}}]"
#define ALL    "? serverLeaf ?; ? clientLeaf ?; ? clientCA ?; ? serverCA ?; ? opaque ?"

/* clang-format off */
static const struct roles_case {
    const char *rule;
    const char *image;
    const char *pod; /* its first container is the one that is asked about */
    const char *roles;
} role_cases[] = {
    {"an unknown component plays all roles", "acme/app", "containers: [{name: c, " MOUNT "}]" VOLUME, ALL},
    {"an unknown component with parameters that nobody knows, too", "acme/app",
     "containers: [{name: c, args: [--tls-cert-file=/certs/tls.crt], " MOUNT "}]" VOLUME, ALL},
    {"of an unknown component only the roles of the files it mounts", "acme/app",
     "containers: [{name: c, " MOUNT "}]\n"
     "volumes: [{name: v, secret: {secretName: tls, items: [{key: ca.crt, path: ca.crt}]}}]",
     "? clientCA ?; ? serverCA ?"},
    {"Rate Limit: server leaf and client CA", "envoyproxy/ratelimit:3fb70258",
     "containers: [{name: c, env: [{name: GRPC_SERVER_TLS_CERT, value: /certs/tls.crt}, {name: GRPC_SERVER_TLS_KEY, value: "
     "/certs/tls.key}, {name: GRPC_CLIENT_TLS_CACERT, value: /certs/ca.crt}], " MOUNT "}]" VOLUME,
     "GRPC_SERVER_TLS_CERT serverLeaf tls.crt; GRPC_SERVER_TLS_KEY serverLeaf tls.key; GRPC_CLIENT_TLS_CACERT clientCA "
     "ca.crt"},
    {"Rate Limit as stock Envoy Gateway sets it: a name it never reads gives no role", "envoyproxy/ratelimit:3fb70258",
     "containers: [{name: c, env: [{name: GRPC_SERVER_TLS_CERT, value: /certs/tls.crt}, {name: GRPC_SERVER_TLS_CA_CERT, "
     "value: /certs/ca.crt}, {name: CONFIG_GRPC_XDS_CLIENT_TLS_CERT, value: /certs/tls.crt}, {name: "
     "CONFIG_GRPC_XDS_SERVER_TLS_CACERT, value: /certs/ca.crt}], " MOUNT "}]" VOLUME,
     "GRPC_SERVER_TLS_CERT serverLeaf tls.crt; CONFIG_GRPC_XDS_CLIENT_TLS_CERT clientLeaf tls.crt; "
     "CONFIG_GRPC_XDS_SERVER_TLS_CACERT serverCA ca.crt"},
    {"Rate Limit: a CA that no known name points to plays no role beside those that are told",
     "envoyproxy/ratelimit:3fb70258",
     "containers: [{name: c, env: [{name: GRPC_SERVER_TLS_CERT, value: /certs/tls.crt}, {name: GRPC_SERVER_TLS_CA_CERT, "
     "value: /certs/ca.crt}], " MOUNT "}]" VOLUME,
     "GRPC_SERVER_TLS_CERT serverLeaf tls.crt"},
    {"Rate Limit: only names that it does not know cannot be told", "envoyproxy/ratelimit:3fb70258",
     "containers: [{name: c, env: [{name: GRPC_SERVER_TLS_CA_CERT, value: /certs/ca.crt}], " MOUNT "}]" VOLUME,
     "? serverLeaf ?; ? clientLeaf ?; ? clientCA ?; ? serverCA ?"},
    {"variables from a ConfigMap may point to what no visible one does", "envoyproxy/ratelimit:3fb70258",
     "containers: [{name: c, env: [{name: GRPC_SERVER_TLS_CERT, value: /certs/tls.crt}], envFrom: [{configMapRef: {name: "
     "m}}], " MOUNT "}]" VOLUME,
     "GRPC_SERVER_TLS_CERT serverLeaf tls.crt; GRPC_CLIENT_TLS_CACERT clientCA ?; CONFIG_GRPC_XDS_SERVER_TLS_CACERT "
     "serverCA ?; REDIS_TLS_CACERT serverCA ?; MEMCACHE_TLS_CACERT serverCA ?"},
    {"a known variable whose value comes from elsewhere may, too", "envoyproxy/ratelimit:3fb70258",
     "containers: [{name: c, env: [{name: GRPC_SERVER_TLS_CERT, value: /certs/tls.crt}, {name: GRPC_CLIENT_TLS_CACERT, "
     "valueFrom: {configMapKeyRef: {name: m, key: k}}}], " MOUNT "}]" VOLUME,
     "GRPC_SERVER_TLS_CERT serverLeaf tls.crt; GRPC_CLIENT_TLS_CACERT clientCA ?"},
    {"flags with =, with a space, with one dash", "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, command: [kube-apiserver, --tls-cert-file=/certs/tls.crt], args: [--tls-private-key-file, "
     "/certs/tls.key, -client-ca-file=/certs/ca.crt], " MOUNT "}]" VOLUME,
     "--tls-cert-file serverLeaf tls.crt; --tls-private-key-file serverLeaf tls.key; --client-ca-file clientCA ca.crt"},
    {"flags inside of a shell's script", "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, command: [sh, -c, \"exec kube-apiserver \\\\\\n  --tls-cert-file=/certs/tls.crt "
     "--client-ca-file '/certs/ca.crt'; true\"], " MOUNT "}]" VOLUME,
     "--tls-cert-file serverLeaf tls.crt; --client-ca-file clientCA ca.crt"},
    {"a shell's variable is a value that cannot be told", "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, command: [sh, -c, 'kube-apiserver --tls-cert-file=/certs/tls.crt "
     "--client-ca-file=$D/ca.crt'], " MOUNT "}]" VOLUME,
     "--tls-cert-file serverLeaf tls.crt; --client-ca-file clientCA ?"},
    {"$(VAR) is expanded", "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, env: [{name: BASE, value: /certs}, {name: CRT, value: $(BASE)/tls.crt}], args: "
     "[--tls-cert-file=$(CRT), --client-ca-file=$(BASE)/ca.crt], " MOUNT "}]" VOLUME,
     "--tls-cert-file serverLeaf tls.crt; --client-ca-file clientCA ca.crt"},
    {"$(VAR) that is not known makes the value unknown", "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, args: [--tls-cert-file=/certs/tls.crt, --client-ca-file=$(NO)/ca.crt], " MOUNT "}]" VOLUME,
     "--tls-cert-file serverLeaf tls.crt; --client-ca-file clientCA ?"},
    {"a key of opaque material whose path is unknown may be one of this Secret", "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, args: [--client-ca-file=/certs/ca.crt, --tls-cert-file=/certs/tls.crt, "
     "--service-account-key-file=$(SA)], " MOUNT "}]" VOLUME,
     "--client-ca-file clientCA ca.crt; --tls-cert-file serverLeaf tls.crt; --service-account-key-file opaque ?"},
    {"a value with two paths", "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, args: ['--tls-sni-cert-key=/certs/tls.crt,/certs/tls.key:*.example.com'], " MOUNT
     "}]" VOLUME,
     "--tls-sni-cert-key serverLeaf tls.crt; --tls-sni-cert-key serverLeaf tls.key"},
    {"one file in two roles", "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, args: [--client-ca-file=/certs/ca.crt, --etcd-cafile=/certs/ca.crt], " MOUNT "}]" VOLUME,
     "--client-ca-file clientCA ca.crt; --etcd-cafile serverCA ca.crt"},
    {"a parameter that points elsewhere gives no role", "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, args: [--tls-cert-file=/certs/tls.crt, --client-ca-file=/other/ca.crt, "
     "--etcd-cafile=/certs2/ca.crt], " MOUNT "}]" VOLUME,
     "--tls-cert-file serverLeaf tls.crt"},
    {"a file below the mount that no Secret can have is another volume's", "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, args: [--tls-cert-file=/certs/tls.crt, --client-ca-file=/certs/sub/ca.crt], " MOUNT
     "}]" VOLUME,
     "--tls-cert-file serverLeaf tls.crt"},
    {"paths are compared as the system reads them", "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, args: [--tls-cert-file=/certs/./tls.crt, --tls-private-key-file=//certs/x/../tls.key, "
     "--client-ca-file=/certs/..data/ca.crt], " MOUNT "}]" VOLUME,
     "--tls-cert-file serverLeaf tls.crt; --tls-private-key-file serverLeaf tls.key; --client-ca-file clientCA ca.crt"},
    {"a relative path starts at the working directory", "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, workingDir: /, args: [--tls-cert-file=certs/tls.crt], " MOUNT "}]" VOLUME,
     "--tls-cert-file serverLeaf tls.crt"},
    {"items: the path says which key", "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, args: [--tls-cert-file=/certs/server.pem, --client-ca-file=/certs/trust/ca.pem], " MOUNT
     "}]\nvolumes: [{name: v, secret: {secretName: tls, items: [{key: tls.crt, path: server.pem}, {key: ca.crt, path: "
     "trust/ca.pem}]}}]",
     "--tls-cert-file serverLeaf tls.crt; --client-ca-file clientCA ca.crt"},
    {"items: a folder of them cannot be told further", "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, args: [--client-ca-file=/certs/trust], " MOUNT
     "}]\nvolumes: [{name: v, secret: {secretName: tls, items: [{key: ca.crt, path: trust/ca.pem}]}}]",
     "--client-ca-file clientCA ?"},
    {"items: a path that is none of them is nothing", "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, args: [--tls-cert-file=/certs/crt, --client-ca-file=/certs/ca.crt], " MOUNT
     "}]\nvolumes: [{name: v, secret: {secretName: tls, items: [{key: tls.crt, path: crt}]}}]",
     "--tls-cert-file serverLeaf tls.crt"},
    {"a projected volume is read like a volume", "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, args: [--tls-cert-file=/certs/a/crt], " MOUNT
     "}]\nvolumes: [{name: v, projected: {sources: [{secret: {name: tls, items: [{key: tls.crt, path: a/crt}]}}]}}]",
     "--tls-cert-file serverLeaf tls.crt"},
    {"subPath: the mount path is the file", "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, args: [--tls-cert-file=/etc/crt], volumeMounts: [{name: v, mountPath: /etc/crt, subPath: "
     "tls.crt}]}]" VOLUME,
     "--tls-cert-file serverLeaf tls.crt"},
    {"subPath that cannot be told: neither can the key", "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, args: [--tls-cert-file=/etc/x/crt], volumeMounts: [{name: v, mountPath: /etc/x, subPathExpr: "
     "$(POD)}]}]" VOLUME,
     "--tls-cert-file serverLeaf ?"},
    {"the mount itself as a value: the key cannot be told", "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, args: [--client-ca-file=/certs/], " MOUNT "}]" VOLUME, "--client-ca-file clientCA ?"},
    {"a key that is neither certificate nor trust", "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, args: [--service-account-key-file=/certs/sa.pub], " MOUNT "}]" VOLUME,
     "--service-account-key-file opaque sa.pub"},
    {"names in a configuration file may point to what no flag does", "registry.k8s.io/kube-scheduler:v1.36.3",
     "containers: [{name: c, args: [--tls-cert-file=/certs/tls.crt], " MOUNT "}]" VOLUME,
     "--tls-cert-file serverLeaf tls.crt; kubeconfig certificate-authority serverCA ?"},
    {"but not when a flag does", "registry.k8s.io/kube-scheduler:v1.36.3",
     "containers: [{name: c, args: [--tls-cert-file=/certs/tls.crt, --client-ca-file=/certs/ca.crt], " MOUNT "}]" VOLUME,
     "--tls-cert-file serverLeaf tls.crt; --client-ca-file clientCA ca.crt"},
    {"nor for files that are not mounted", "registry.k8s.io/kube-scheduler:v1.36.3",
     "containers: [{name: c, args: [--tls-cert-file=/certs/tls.crt], " MOUNT
     "}]\nvolumes: [{name: v, secret: {secretName: tls, items: [{key: tls.crt, path: tls.crt}]}}]",
     "--tls-cert-file serverLeaf tls.crt"},
    {"no parameter at all: the roles of the component", "envoyproxy/gateway:v1.9.0",
     "containers: [{name: c, volumeMounts: [{name: v, mountPath: /tls}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls, items: [{key: tls.crt, path: c}, {key: ca.crt, path: a}]}}]",
     "? serverLeaf ?; ? clientLeaf ?; ? clientCA ?"},
    {"a path that it reads without being told", "envoyproxy/gateway:v1.9.0", "containers: [{name: c, " MOUNT "}]" VOLUME,
     "/certs/tls.crt serverLeaf tls.crt; /certs/tls.key serverLeaf tls.key; /certs/ca.crt clientCA ca.crt"},
    {"a folder that it reads without being told", "cr.l5d.io/linkerd/controller:stable-2.14.0",
     "containers: [{name: c, volumeMounts: [{name: v, mountPath: /var/run/linkerd/tls/}]}]" VOLUME,
     "/var/run/linkerd/tls serverLeaf ?"},
    {"a folder above the mount is not the mount", "traefik:v3.1.0",
     "containers: [{name: c, args: [--providers.file.directory=/etc/traefik], volumeMounts: [{name: v, mountPath: "
     "/etc/traefik/certs}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls, items: [{key: ca.crt, path: a}]}}]",
     "? clientCA ?; ? serverCA ?"},
    {"a flag of one letter with a setting behind it", "postgres:16.2",
     "containers: [{name: c, args: [-c, ssl=on, -c, ssl_cert_file=/certs/tls.crt, -c, ssl_ca_file=/certs/ca.crt], " MOUNT
     "}]" VOLUME,
     "--ssl_cert_file serverLeaf tls.crt; --ssl_ca_file clientCA ca.crt"},
    {"a flag without a value is no path, also when the working directory is the mount",
     "registry.k8s.io/kube-apiserver:v1.36.3",
     "containers: [{name: c, workingDir: /certs, args: [--client-ca-file, --tls-cert-file=tls.crt], " MOUNT "}]" VOLUME,
     "--tls-cert-file serverLeaf tls.crt"},
    {"no parameter at all: Envoy's bootstrap is a file", "envoyproxy/envoy:v1.40.0",
     "containers: [{name: c, args: [-c, /etc/envoy.yaml], volumeMounts: [{name: v, mountPath: /tls}]}]" VOLUME, ALL},
    {"what its control planes mount in /certs has the names that they give it", "envoyproxy/envoy:v1.40.0",
     "containers: [{name: c, " MOUNT "}]" VOLUME,
     "/certs/tls.crt serverLeaf tls.crt; /certs/tls.crt clientLeaf tls.crt; /certs/tls.key serverLeaf tls.key; /certs/tls.key "
     "clientLeaf tls.key; /certs/ca.crt clientCA ca.crt; /certs/ca.crt serverCA ca.crt; /certs opaque ?"},
    {"a variable that holds the material is a parameter itself", "envoyproxy/ratelimit:3fb70258",
     "containers: [{name: c, env: [{name: GRPC_SERVER_TLS_CERT, valueFrom: {secretKeyRef: {name: tls, key: tls.crt}}}]}]",
     "GRPC_SERVER_TLS_CERT serverLeaf tls.crt"},
    {"a variable that it does not know: the roles of its kind", "envoyproxy/gateway:v1.9.0",
     "containers: [{name: c, env: [{name: X, valueFrom: {secretKeyRef: {name: tls, key: ca.crt}}}]}]", "? clientCA ?"},
    {"envFrom: all roles of the component", "envoyproxy/gateway:v1.9.0",
     "containers: [{name: c, envFrom: [{secretRef: {name: tls}}]}]", "? serverLeaf ?; ? clientLeaf ?; ? clientCA ?; ? opaque ?"},
    {"of a kind about which the catalogue says nothing, all roles", "registry.k8s.io/kube-proxy:v1.36.3",
     "containers: [{name: c, " MOUNT "}]" VOLUME, "? clientLeaf ?; ? serverCA ?"},
    {"an opaque key that is picked counts, though nothing is known to read it", "registry.k8s.io/kube-proxy:v1.36.3",
     "containers: [{name: c, " MOUNT "}]\nvolumes: [{name: v, secret: {secretName: tls, items: [{key: tls.crt, path: "
     "tls.crt}, {key: token, path: token}]}}]", "? clientLeaf ?; ? opaque ?"},
    {"and so when parameters point to other files", "registry.k8s.io/kube-scheduler:v1.36.3",
     "containers: [{name: c, args: [--tls-cert-file=/certs/tls.crt], " MOUNT "}]\nvolumes: [{name: v, secret: {secretName: "
     "tls, items: [{key: tls.crt, path: tls.crt}, {key: token, path: token}]}}]",
     "--tls-cert-file serverLeaf tls.crt; ? opaque token"},
    {"but once, where a parameter points to it", "registry.k8s.io/kube-scheduler:v1.36.3",
     "containers: [{name: c, args: [--tls-cert-file=/certs/both.pem], " MOUNT "}]\nvolumes: [{name: v, secret: {secretName: "
     "tls, items: [{key: both.pem, path: both.pem}]}}]", "--tls-cert-file serverLeaf both.pem"},
};
/* clang-format on */

static void test_roles(void **state)
{
    (void)state;
    char crt[] = "tls.crt", key[] = "tls.key", ca[] = "ca.crt", name[] = "tls";
    const struct cr_policy_secret secret = {.name = name, .certificate = crt, .private_key = key, .trust = ca};
    for (size_t i = 0; i < cr_array_len(role_cases); i++) {
        CR_CLEANUP(cr_json) struct cr_json *spec = test_yaml(role_cases[i].pod);
        CR_CLEANUP(cr_usage_list) struct cr_usage_list usages = {0};
        cr_usage_collect(spec, "tls", &usages);
        if (usages.len != 1)
            fail_msg("%s: %zu usages", role_cases[i].rule, usages.len);
        CR_CLEANUP(cr_parameter_uses) struct cr_parameter_uses uses = {0};
        cr_catalogue_roles(cr_catalogue_by_image(builtin, role_cases[i].image),
                           cr_json_first(cr_json_get(spec, "containers")), &usages.items[0], &secret, &uses);
        cr_autofree char *text = roles_as_text(&uses);
        if (!cr_streq(text, role_cases[i].roles))
            fail_msg("%s:\nwanted %s\nhave   %s", role_cases[i].rule, role_cases[i].roles, text);
    }
}

static void test_key_names_are_the_policys(void **state)
{
    (void)state;
    char crt[] = "server.pem", key[] = "server.key", name[] = "tls";
    const struct cr_policy_secret secret = {.name = name, .certificate = crt, .private_key = key, .trust = NULL};
    CR_CLEANUP(cr_json)
    struct cr_json *spec =
        test_yaml("containers: [{name: c, " MOUNT "}]\nvolumes: [{name: v, secret: {secretName: tls, "
                  "items: [{key: server.pem, path: a}, {key: ca.crt, path: b}]}}]");
    CR_CLEANUP(cr_usage_list) struct cr_usage_list usages = {0};
    cr_usage_collect(spec, "tls", &usages);
    CR_CLEANUP(cr_parameter_uses) struct cr_parameter_uses uses = {0};
    cr_catalogue_roles(NULL, cr_json_first(cr_json_get(spec, "containers")), &usages.items[0], &secret, &uses);
    cr_autofree char *text = roles_as_text(&uses);
    assert_string_equal(text, "? serverLeaf ?; ? clientLeaf ?; ? opaque ?");
}

/* Thirty variables that each name the one before twice mean a gigabyte. */
static void test_variables_that_explode_are_capped(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    cr_buf_puts(&text, "containers: [{name: c, env: [{name: V0, value: abcdefghij}");
    for (int i = 1; i <= 30; i++)
        cr_buf_printf(&text, ", {name: V%d, value: '$(V%d)$(V%d)'}", i, i - 1, i - 1);
    cr_buf_puts(&text, "], args: ['$(V30)', '--tls-cert-file=/certs/tls.crt'], " MOUNT "}]" VOLUME);
    CR_CLEANUP(cr_json) struct cr_json *spec = test_yaml(cr_buf_text(&text));
    char crt[] = "tls.crt", key[] = "tls.key", ca[] = "ca.crt", name[] = "tls";
    const struct cr_policy_secret secret = {.name = name, .certificate = crt, .private_key = key, .trust = ca};
    CR_CLEANUP(cr_usage_list) struct cr_usage_list usages = {0};
    cr_usage_collect(spec, "tls", &usages);
    CR_CLEANUP(cr_parameter_uses) struct cr_parameter_uses uses = {0};
    cr_catalogue_roles(cr_catalogue_by_name(builtin, "kube-apiserver"), cr_json_first(cr_json_get(spec, "containers")),
                       &usages.items[0], &secret, &uses);
    /* What was not read may say anything: no role is left out. */
    unsigned roles = 0;
    for (size_t i = 0; i < uses.len; i++)
        roles |= CR_ROLE_BIT(uses.items[i].role);
    assert_int_equal(roles & 0xf, 0xf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions_of_tags),
        cmocka_unit_test(test_ranges_that_are_none),
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_the_pattern_that_pins_most_wins),
        cmocka_unit_test(test_a_wrong_catalogue_names_entry_and_field),
        cmocka_unit_test(test_capabilities_of_known_software),
        cmocka_unit_test(test_entries_that_only_a_policy_can_name),
        cmocka_unit_test(test_what_is_from_memory_is_marked),
        cmocka_unit_test(test_an_unknown_version_is_said),
        cmocka_unit_test(test_why_is_a_clause_with_component_and_parameter),
        cmocka_unit_test(test_envoys_file_sds_shows_in_two_templates),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_key_names_are_the_policys),
        cmocka_unit_test(test_variables_that_explode_are_capped),
    };
    return cmocka_run_group_tests(tests, load_builtin, free_builtin);
}
