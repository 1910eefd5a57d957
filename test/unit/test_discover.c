/* What belongs to a policy: the spec and the namespace as YAML, the effective policy as a line of words. */
#include "workload/discover.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "codec/yaml.h"

enum { USERS_MAX = 700 };

/* A namespace: what its objects say is borrowed from the YAML. */
struct fixture {
    struct cr_json *json;
    struct cr_view_secret secrets[200];
    struct cr_view_user users[USERS_MAX];
    struct cr_strvec used[USERS_MAX];
    struct cr_view_pod pods[8];
    struct cr_strvec pods_used[8];
    struct cr_view view;
};

static struct cr_json *yaml(const char *text)
{
    struct cr_error err = {0};
    struct cr_json *json = cr_yaml_parse(text, strlen(text), &err);
    if (!json)
        fail_msg("%s: %s", text, err.text);
    return json;
}

/* secrets: [{name, type, labels, created}], users: [{kind, name, secrets, created}], pods: likewise, with left */
static void fixture_read(struct fixture *fixture, const char *text)
{
    memset(fixture, 0, sizeof *fixture);
    fixture->json = yaml(text);
    const struct cr_json *secrets = cr_json_get(fixture->json, "secrets");
    for (const struct cr_json *s = cr_json_first(secrets); s; s = cr_json_next(s))
        fixture->secrets[fixture->view.secrets_len++] =
            (struct cr_view_secret){.name = cr_json_string_at(s, "name"),
                                    .type = cr_json_string_at(s, "type"),
                                    .labels = cr_json_get(s, "labels"),
                                    .created_ms = cr_json_int_at(s, 0, "created")};
    const struct cr_json *users = cr_json_get(fixture->json, "users");
    for (const struct cr_json *u = cr_json_first(users); u; u = cr_json_next(u)) {
        size_t i = fixture->view.users_len++;
        const struct cr_json *used = cr_json_get(u, "secrets");
        for (const struct cr_json *s = cr_json_first(used); s; s = cr_json_next(s))
            cr_strvec_add(&fixture->used[i], cr_json_string(s));
        fixture->users[i] = (struct cr_view_user){.kind = cr_json_string_at(u, "kind"),
                                                  .name = cr_json_string_at(u, "name"),
                                                  .created_ms = cr_json_int_at(u, 0, "created"),
                                                  .secrets = &fixture->used[i]};
    }
    const struct cr_json *pods = cr_json_get(fixture->json, "pods");
    for (const struct cr_json *p = cr_json_first(pods); p; p = cr_json_next(p)) {
        size_t i = fixture->view.pods_len++;
        const struct cr_json *used = cr_json_get(p, "secrets");
        for (const struct cr_json *s = cr_json_first(used); s; s = cr_json_next(s))
            cr_strvec_add(&fixture->pods_used[i], cr_json_string(s));
        fixture->pods[i] = (struct cr_view_pod){.name = cr_json_string_at(p, "name"),
                                                .created_ms = cr_json_int_at(p, 0, "created"),
                                                .secrets = &fixture->pods_used[i],
                                                .uncovered = cr_json_bool_at(p, false, "uncovered")};
    }
    fixture->view.secrets = fixture->secrets;
    fixture->view.users = fixture->users;
    fixture->view.pods = fixture->pods;
}

static void fixture_dispose(struct fixture *fixture)
{
    for (size_t i = 0; i < USERS_MAX; i++)
        cr_strvec_dispose(&fixture->used[i]);
    for (size_t i = 0; i < cr_array_len(fixture->pods_used); i++)
        cr_strvec_dispose(&fixture->pods_used[i]);
    cr_json_free(fixture->json);
}

static struct cr_policy *policy_of(const char *spec)
{
    cr_autofree char *text = cr_asprintf("metadata: {name: p, namespace: ns}\nspec: %s\n", spec);
    CR_CLEANUP(cr_json) struct cr_json *object = yaml(text);
    struct cr_error err = {0};
    struct cr_policy *policy = cr_policy_decode(object, &err);
    if (!policy)
        fail_msg("%s: %s", spec, err.text);
    return policy;
}

/* "a b* | web deployment-web", * for a Secret that is leaving. Owned. */
static char *effective(const struct cr_policy *policy)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    for (size_t i = 0; i < policy->secrets_len; i++)
        cr_buf_printf(&text, "%s%s%s", i ? " " : "", policy->secrets[i].name, policy->secrets[i].leaving ? "*" : "");
    cr_buf_puts(&text, " |");
    for (size_t i = 0; i < policy->consumers_len; i++)
        cr_buf_printf(&text, " %s", policy->consumers[i].name);
    return cr_buf_steal(&text);
}

/* --- what belongs to it --- */

static const char secrets_of_a_shop[] =
    "secrets:\n"
    "- {name: a, type: kubernetes.io/tls, labels: {app: shop}}\n"
    "- {name: b, type: Opaque, labels: {app: shop}}\n"
    "- {name: c, type: kubernetes.io/tls}\n"
    "- {name: token, type: kubernetes.io/service-account-token, labels: {app: shop}}\n"
    "- {name: bootstrap, type: bootstrap.kubernetes.io/token, labels: {app: shop}}\n"
    "- {name: sh.helm.release.v1.shop.v1, type: helm.sh/release.v1, labels: {app: shop}}\n"
    "- {name: web-7xq2p, type: Opaque, labels: {app: shop, cert-manager.io/next-private-key: 'true'}}\n"
    "users:\n"
    "- {kind: Deployment, name: web, secrets: [a]}\n"
    "- {kind: StatefulSet, name: db, secrets: [x, b]}\n"
    "- {kind: DaemonSet, name: agent, secrets: [c]}\n"
    "- {kind: Deployment, name: idle, secrets: []}\n"
    "- {kind: Ingress, name: web, secrets: [a, c]}\n"
    "- {kind: Gateway, name: edge, secrets: [b]}\n";

static void the_selector_and_the_templates_say_what_belongs_to_a_policy(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        const char *effective;
    } cases[] = {
        {"{secrets: [{name: a}]}", "a |"},
        {"{secrets: [{name: missing}], discover: {enabled: true}}", "missing |"},
        {"{secretSelector: {matchLabels: {app: shop}}}", "a b |"},
        {"{secrets: [{name: b}, {name: c}], secretSelector: {matchLabels: {app: shop}}}", "b c a |"},
        {"{secrets: [{name: a}], discover: {enabled: true}}", "a | deployment-web ingress-web"},
        {"{secrets: [{name: a}], discover: {enabled: false}}", "a |"},
        {"{secretSelector: {matchLabels: {app: shop}}, discover: {enabled: true}}",
         "a b | deployment-web gateway-edge ingress-web statefulset-db"},
        {"{secrets: [{name: a}], discover: {enabled: true}, consumers: [{name: mine, targetRef: {kind: Deployment, "
         "name: "
         "web}}]}",
         "a | mine ingress-web"},
        /* Listed, but another kind of that name; and listed though it uses nothing. */
        {"{secrets: [{name: a}], discover: {enabled: true}, consumers: [{name: w, targetRef: {kind: DaemonSet, name: "
         "web}}]}",
         "a | w deployment-web ingress-web"},
        {"{secrets: [{name: a}], discover: {enabled: true}, consumers: [{name: w, targetRef: {kind: Ingress, name: "
         "web}}]}",
         "a | w deployment-web"},
    };
    static struct fixture fixture;
    fixture_read(&fixture, secrets_of_a_shop);
    const struct cr_policy_status nothing = {0};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_policy) struct cr_policy *policy = policy_of(cases[i].spec);
        CR_CLEANUP(cr_expansion) struct cr_expansion expansion = {0};
        cr_discover_expand(policy, &nothing, &fixture.view, &expansion);
        cr_autofree char *text = effective(&expansion.policy);
        if (!cr_streq(text, cases[i].effective))
            fail_msg("%s: '%s'", cases[i].spec, text);
        assert_int_equal(expansion.secrets_wanted, expansion.policy.secrets_len);
        assert_int_equal(expansion.consumers_wanted, expansion.policy.consumers_len);
    }
    fixture_dispose(&fixture);
}

static void who_is_listed_keeps_its_settings_and_who_is_found_has_the_defaults(void **state)
{
    (void)state;
    static struct fixture fixture;
    fixture_read(&fixture, secrets_of_a_shop);
    CR_CLEANUP(cr_policy)
    struct cr_policy *policy =
        policy_of("{secrets: [{name: a, keys: {certificate: cert.pem}}], secretSelector: {matchLabels: {app: shop}}, "
                  "discover: {enabled: true}, consumers: [{name: mine, component: nginx, optional: false, targetRef: "
                  "{kind: Deployment, name: web}}]}");
    const struct cr_policy_status nothing = {0};
    CR_CLEANUP(cr_expansion) struct cr_expansion expansion = {0};
    cr_discover_expand(policy, &nothing, &fixture.view, &expansion);
    const struct cr_policy *made = &expansion.policy;
    assert_string_equal(made->secrets[0].certificate, "cert.pem");
    assert_false(made->secrets[0].selected);
    assert_string_equal(made->secrets[1].name, "b");
    assert_string_equal(made->secrets[1].certificate, "tls.crt");
    assert_string_equal(made->secrets[1].private_key, "tls.key");
    assert_string_equal(made->secrets[1].trust, "ca.crt");
    assert_true(made->secrets[1].selected);
    assert_string_equal(made->consumers[0].component, "nginx");
    assert_false(made->consumers[0].found || made->consumers[0].optional);
    assert_string_equal(made->consumers[1].name, "gateway-edge");
    assert_string_equal(made->consumers[1].api_version, "gateway.networking.k8s.io/v1");
    assert_string_equal(made->consumers[1].target, "edge");
    assert_true(made->consumers[1].found && made->consumers[1].optional);
    assert_int_equal(made->consumers[1].verify.timeout_ms, 60 * 1000);
    fixture_dispose(&fixture);
}

/* --- what was selected and is not any more --- */

static void add_memory(struct cr_policy_status *status, const char *name, bool pending, const char *problem)
{
    struct cr_secret_status *memory = cr_status_secret_add(status, name);
    memory->selected = true;
    memory->pending.set = pending;
    memory->problem_reason = cr_strdup_or_null(problem);
}

static void a_selected_secret_leaves_when_nothing_is_left_to_do(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *spec;
        const char *fixture;
        bool pending;
        const char *problem;
        const char *effective;
    } cases[] = {
        {"relabelled, nothing pending", "{secretSelector: {matchLabels: {app: shop}}}",
         "{secrets: [{name: s, labels: {app: other}}]}", false, NULL, " |"},
        {"relabelled in the middle of a rotation", "{secretSelector: {matchLabels: {app: shop}}}",
         "{secrets: [{name: s, labels: {app: other}}]}", true, NULL, "s* |"},
        {"relabelled while it cannot be used", "{secretSelector: {matchLabels: {app: shop}}}",
         "{secrets: [{name: s, labels: {app: other}}]}", true, "KeyMismatch", " |"},
        {"missed, and back without its label", "{secretSelector: {matchLabels: {app: shop}}}",
         "{secrets: [{name: s, labels: {app: other}}]}", false, "NotFound", "s* |"},
        {"the selector is gone in the middle of a rotation", "{secrets: [{name: t}]}", "{secrets: [{name: s}]}", true,
         NULL, "t s* |"},
        {"labelled again", "{secretSelector: {matchLabels: {app: shop}}}",
         "{secrets: [{name: s, labels: {app: shop}}]}", true, NULL, "s |"},
        {"now named", "{secrets: [{name: s}], secretSelector: {matchLabels: {app: shop}}}", "{secrets: [{name: s}]}",
         true, NULL, "s |"},
        {"deleted, and nobody uses it", "{secretSelector: {matchLabels: {app: shop}}, discover: {enabled: true}}",
         "{users: [{kind: Deployment, name: web, secrets: [t]}]}", true, NULL, " |"},
        {"deleted, and a workload uses it", "{secretSelector: {matchLabels: {app: shop}}, discover: {enabled: true}}",
         "{users: [{kind: Deployment, name: web, secrets: [s]}]}", false, NULL, "s | deployment-web"},
        {"deleted, and somebody else's workload uses it", "{secretSelector: {matchLabels: {app: shop}}}",
         "{users: [{kind: Deployment, name: web, secrets: [s]}]}", false, NULL, " |"},
        {"deleted, and a listed workload uses it",
         "{secretSelector: {matchLabels: {app: shop}}, consumers: [{name: w, targetRef: {kind: Deployment, name: "
         "web}}]}",
         "{users: [{kind: Deployment, name: web, secrets: [s]}]}", false, "KeyMismatch", "s | w"},
        {"deleted with the selector", "{secrets: [{name: t}], discover: {enabled: true}}",
         "{users: [{kind: Deployment, name: web, secrets: [s]}]}", true, NULL, "t |"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        static struct fixture fixture;
        fixture_read(&fixture, cases[i].fixture);
        CR_CLEANUP(cr_policy) struct cr_policy *policy = policy_of(cases[i].spec);
        CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
        add_memory(&status, "s", cases[i].pending, cases[i].problem);
        CR_CLEANUP(cr_expansion) struct cr_expansion expansion = {0};
        assert_true(cr_discover_needed(policy, &status));
        cr_discover_expand(policy, &status, &fixture.view, &expansion);
        cr_autofree char *text = effective(&expansion.policy);
        if (!cr_streq(text, cases[i].effective))
            fail_msg("%s: '%s'", cases[i].rule, text);
        fixture_dispose(&fixture);
    }
}

/* --- bounds --- */

static void a_bound_never_pushes_out_what_is_known_or_older(void **state)
{
    (void)state;
    enum { SECRETS = CR_POLICY_SECRETS_MAX + 10, USERS = CR_POLICY_EFFECTIVE_MAX + 20 };
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    cr_buf_puts(&text, "secrets:\n");
    for (int i = 0; i < SECRETS; i++) /* the later in the alphabet, the older */
        cr_buf_printf(&text, "- {name: s%03d, labels: {app: shop}, created: %d}\n", i, SECRETS - i);
    cr_buf_puts(&text, "users:\n");
    for (int i = 0; i < USERS; i++)
        cr_buf_printf(&text, "- {kind: Deployment, name: d%03d, secrets: [s050], created: %d}\n", i, USERS - i);
    static struct fixture fixture;
    fixture_read(&fixture, cr_buf_text(&text));
    CR_CLEANUP(cr_policy)
    struct cr_policy *policy = policy_of("{secrets: [{name: named}], secretSelector: {matchLabels: {app: shop}}, "
                                         "discover: {enabled: true}, consumers: [{name: mine, targetRef: {kind: "
                                         "Deployment, name: d531}}]}");
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    add_memory(&status, "s000", true, NULL); /* the youngest, but known */
    struct cr_consumer_status *known = cr_status_consumer_add(&status, "deployment-d000");
    known->kind = cr_strdup("Deployment");
    known->target = cr_strdup("d000");

    CR_CLEANUP(cr_expansion) struct cr_expansion expansion = {0};
    cr_discover_expand(policy, &status, &fixture.view, &expansion);
    const struct cr_policy *made = &expansion.policy;
    assert_int_equal(expansion.secrets_wanted, SECRETS + 1);
    assert_int_equal(made->secrets_len, CR_POLICY_SECRETS_MAX);
    assert_string_equal(made->secrets[0].name, "named");
    assert_string_equal(made->secrets[1].name, "s000");
    assert_string_equal(made->secrets[2].name, "s012"); /* 63 places: the known one and the 62 oldest */
    assert_string_equal(made->secrets[CR_POLICY_SECRETS_MAX - 1].name, "s073");
    assert_int_equal(expansion.consumers_wanted, USERS);
    assert_int_equal(made->consumers_len, CR_POLICY_EFFECTIVE_MAX);
    assert_string_equal(made->consumers[0].name, "mine");
    assert_string_equal(made->consumers[1].name, "deployment-d000");
    assert_string_equal(made->consumers[2].name, "deployment-d021");
    assert_string_equal(made->consumers[CR_POLICY_EFFECTIVE_MAX - 1].name, "deployment-d530");
    fixture_dispose(&fixture);
}

/* --- names --- */

#define LETTERS_50  "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghij"
#define LETTERS_250 LETTERS_50 LETTERS_50 LETTERS_50 LETTERS_50 LETTERS_50

static bool is_a_name(const char *name)
{
    static const char alnum[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    size_t len = strlen(name);
    return len >= 1 && len <= 63 && strspn(name, "-abcdefghijklmnopqrstuvwxyz0123456789") == len &&
           strchr(alnum, name[0]) && strchr(alnum, name[len - 1]);
}

static void found_consumers_have_names_that_are_valid_stable_and_their_own(void **state)
{
    (void)state;
    static struct fixture fixture;
    fixture_read(&fixture, "users:\n"
                           "- {kind: Deployment, name: web, secrets: [a]}\n"
                           "- {kind: Deployment, name: web.v1, secrets: [a]}\n"
                           "- {kind: Deployment, name: web-v1, secrets: [a]}\n"
                           "- {kind: DaemonSet, name: web, secrets: [a]}\n"
                           "- {kind: Deployment, name: " LETTERS_250 "x, secrets: [a]}\n"
                           "- {kind: Deployment, name: " LETTERS_250 "y, secrets: [a]}\n");
    CR_CLEANUP(cr_policy)
    struct cr_policy *policy = policy_of("{secrets: [{name: a}], discover: {enabled: true}, consumers: [{name: "
                                         "deployment-web, targetRef: {kind: StatefulSet, name: other}}]}");
    const struct cr_policy_status nothing = {0};
    CR_CLEANUP(cr_expansion) struct cr_expansion expansion = {0};
    cr_discover_expand(policy, &nothing, &fixture.view, &expansion);
    const struct cr_policy *made = &expansion.policy;
    assert_int_equal(made->consumers_len, 7);
    for (size_t i = 0; i < made->consumers_len; i++) {
        if (!is_a_name(made->consumers[i].name))
            fail_msg("'%s'", made->consumers[i].name);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(made->consumers[i].name, made->consumers[k].name);
    }
    assert_string_equal(made->consumers[1].name, "daemonset-web");
    assert_true(cr_starts_with(made->consumers[4].name, "deployment-web-")); /* its name is another's */
    assert_string_equal(made->consumers[5].name, "deployment-web-v1");
    assert_true(cr_starts_with(made->consumers[6].name, "deployment-web-v1-"));

    /* Alone, the long one is called the same. */
    struct cr_view one = {.users = &fixture.users[5], .users_len = 1};
    CR_CLEANUP(cr_expansion) struct cr_expansion again = {0};
    cr_discover_expand(policy, &nothing, &one, &again);
    assert_string_equal(again.policy.consumers[1].name, made->consumers[3].name);
    fixture_dispose(&fixture);
}

static void pods_that_no_consumer_stands_for_are_found_with_their_secrets(void **state)
{
    (void)state;
    static const char text[] = "secrets: [{name: a, type: Opaque}, {name: b, type: Opaque}]\n"
                               "pods:\n"
                               "- {name: young, created: 30, secrets: [a, x]}\n"
                               "- {name: old, created: 20, secrets: [a, b]}\n"
                               "- {name: left, created: 5, secrets: [b], uncovered: true}\n"
                               "- {name: other, created: 10, secrets: [x]}\n";
    static struct fixture fixture;
    const struct cr_policy_status status = {0};
    fixture_read(&fixture, text);
    CR_CLEANUP(cr_policy)
    struct cr_policy *finds = policy_of("{secrets: [{name: a}, {name: b}], discover: {enabled: true}}");
    CR_CLEANUP(cr_expansion) struct cr_expansion found = {0};
    cr_discover_expand(finds, &status, &fixture.view, &found);
    assert_int_equal(found.unmanaged[0].pods, 2);
    assert_string_equal(found.unmanaged[0].oldest, "old");
    assert_int_equal(found.unmanaged[0].created_ms, 20);
    assert_int_equal(found.unmanaged[1].pods, 1);
    assert_string_equal(found.unmanaged[1].oldest, "old");
    assert_int_equal(found.uncovered[0].pods, 0);
    assert_int_equal(found.uncovered[1].pods, 1);
    assert_string_equal(found.uncovered[1].oldest, "left");

    CR_CLEANUP(cr_policy) struct cr_policy *lists = policy_of("{secrets: [{name: a}]}");
    CR_CLEANUP(cr_expansion) struct cr_expansion none = {0};
    cr_discover_expand(lists, &status, &fixture.view, &none);
    assert_int_equal(none.unmanaged[0].pods, 0);
    assert_int_equal(none.uncovered[1].pods, 0);
    fixture_dispose(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_that_no_consumer_stands_for_are_found_with_their_secrets),
        cmocka_unit_test(the_selector_and_the_templates_say_what_belongs_to_a_policy),
        cmocka_unit_test(who_is_listed_keeps_its_settings_and_who_is_found_has_the_defaults),
        cmocka_unit_test(a_selected_secret_leaves_when_nothing_is_left_to_do),
        cmocka_unit_test(a_bound_never_pushes_out_what_is_known_or_older),
        cmocka_unit_test(found_consumers_have_names_that_are_valid_stable_and_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
