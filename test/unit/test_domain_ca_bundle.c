#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "trust/controller/domain_objects_internal.h"
#include "support/domainscene.h"

#define AUTO_CERT CR_CLEANUP(test_cert) struct test_cert *
#define make(...) test_cert_new(&(struct test_cert_spec){__VA_ARGS__})

#define LEAF        "leaves: [{name: web, namespace: a, source: {type: Mirror, mirror: {secretName: issued}}}], trustTargets: "
#define VALIDATING  "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hooks"
#define MUTATING    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/hooks"
#define API_SERVICE "/apis/apiregistration.k8s.io/v1/apiservices/v1.example.com"
#define DEFINITION  "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com"
#define OURS        "metadata: {annotations: {certroll.dev/trust-domain: mesh}}"

/* A domain with one target; its CAs are those of the leaf's source. */
struct fixture {
    struct domain_scene s;
    struct test_cert *ca, *leaf;
};

static void begin(struct fixture *f, const char *target, const char *path, const char *object)
{
    cr_autofree char *spec = cr_asprintf(LEAF "[%s]", target);
    scene_begin(&f->s, "ClusterTrustDomain", spec);
    cr_strvec_add(&f->s.namespaces, "a");
    cr_strvec_add(&f->s.consenting, "a");
    f->ca = make(.cn = "ca", .ca = true);
    f->leaf = make(.cn = "web", .issuer = f->ca);
    fake_store_put(&f->s.store, SECRET_PATH("a", "issued"),
                   scene_secret(NULL, f->leaf->cert_pem, f->leaf->key_pem, f->ca->cert_pem));
    if (object)
        fake_store_put(&f->s.store, path, test_yaml(object));
    scene_look(&f->s);
}

static void end(struct fixture *f)
{
    test_cert_free(f->ca);
    test_cert_free(f->leaf);
    scene_end(&f->s);
}

static void what_cannot_have_the_bundle_is_refused_in_words(void **state)
{
    (void)state;
    static const char one[] = "{kind: ValidatingWebhookConfiguration, name: hooks, webhook: one}";
    static const char all[] = "{kind: MutatingWebhookConfiguration, name: hooks}";
    static const char api[] = "{kind: APIService, name: v1.example.com}";
    static const char crd[] = "{kind: CustomResourceDefinition, name: things.example.com}";
    static const struct {
        const char *target, *path, *object, *reason, *words;
    } cases[] = {
        {one, VALIDATING, NULL, "NotFound", "ValidatingWebhookConfiguration hooks is not there"},
        {one, VALIDATING, "{webhooks: [{name: one, clientConfig: {}}]}", "NotOurs", "certroll.dev/trust-domain: mesh"},
        {one, VALIDATING, "{" OURS ", webhooks: [{name: two, clientConfig: {}}]}", "NoCABundle", "no webhook 'one'"},
        {one, VALIDATING, "{" OURS ", webhooks: [{name: one, clientConfig: {}}]}", NULL, NULL},
        {one, VALIDATING,
         "{metadata: {annotations: {certroll.dev/trust-domain: mesh, cert-manager.io/inject-ca-from: a/b}}, webhooks: "
         "[{name: one, clientConfig: {}}]}",
         "OtherWriter", "cert-manager.io/inject-ca-from"},
        {all, MUTATING, "{" OURS "}", "NoCABundle", "no webhooks"},
        {all, MUTATING, "{" OURS ", webhooks: [one]}", "NoCABundle", "no webhooks"}, /* found by the fuzzer */
        {api, API_SERVICE, "{" OURS ", spec: {insecureSkipTLSVerify: true, service: {name: x}}}", "NoCABundle",
         "insecureSkipTLSVerify"},
        {api, API_SERVICE, "{" OURS ", spec: {group: example.com}}", "NoCABundle", "no service"},
        {api, API_SERVICE, "{" OURS ", spec: {service: {name: x}}}", NULL, NULL},
        {crd, DEFINITION, "{" OURS ", spec: {conversion: {strategy: None}}}", "NoCABundle", "converted by no webhook"},
        {crd, DEFINITION, "{" OURS ", spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {url: x}}}}}",
         NULL, NULL},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fixture f;
        begin(&f, cases[i].target, cases[i].path, cases[i].object);
        const struct cr_domain_object *view = &f.s.world.objects[1];
        if (!cr_streq(cr_trust_reason_name(view->refused), cr_or_empty(cases[i].reason)) ||
            (cases[i].words && !strstr(cr_or_empty(view->refused_text), cases[i].words)))
            fail_msg("%zu: %s, %s", i, cr_trust_reason_name(view->refused), cr_or_empty(view->refused_text));
        struct cr_error err = {0};
        assert_true(scene_write(&f.s, (struct cr_domain_write){.object = 1}, &err) == !cases[i].reason);
        end(&f);
    }
}

static void nothing_but_the_ca_bundle_changes(void **state)
{
    (void)state;
    /* %s: the bundle, before and after. */
    static const struct {
        const char *target, *path, *object;
    } cases[] = {
        {"{kind: ValidatingWebhookConfiguration, name: hooks, webhook: one}", VALIDATING,
         "{" OURS
         ", webhooks: [{name: one, timeoutSeconds: 3, clientConfig: {service: {name: x}%s}, rules: [{operations: "
         "['*']}]}, {name: two, clientConfig: {caBundle: theirs, url: y}}]}"},
        {"{kind: MutatingWebhookConfiguration, name: hooks}", MUTATING,
         "{" OURS ", webhooks: [{name: one, clientConfig: {url: x%s}}]}"},
        {"{kind: APIService, name: v1.example.com}", API_SERVICE,
         "{" OURS ", spec: {group: example.com, service: {name: x, port: 443}%s}}"},
        {"{kind: CustomResourceDefinition, name: things.example.com}", DEFINITION,
         "{" OURS
         ", spec: {group: example.com, conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], "
         "clientConfig: {service: {name: x}%s}}}, versions: [{name: v1}]}}"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fixture f;
        char before[1024];
        snprintf(before, sizeof before, "%s", cases[i].object);
        *strstr(before, "%s") = '\0';
        strcat(before, strstr(cases[i].object, "%s") + 2);
        begin(&f, cases[i].target, cases[i].path, before);
        assert_false(f.s.world.objects[1].bundle_foreign || f.s.world.objects[1].bundle[0]);
        assert_null(cr_domain_objects_material(f.s.objects, 1));
        scene_must_write(&f.s, (struct cr_domain_write){.object = 1});
        assert_non_null(strstr(f.s.store.last_body, "\"resourceVersion\""));
        cr_autofree char *base64 = cr_base64_encode(f.ca->cert_pem, strlen(f.ca->cert_pem));
        cr_autofree char *bundle = cr_asprintf(", caBundle: '%s'", base64);
        cr_autofree char *want = cr_asprintf("%.*s%s%s", (int)(strstr(cases[i].object, "%s") - cases[i].object),
                                             cases[i].object, bundle, strstr(cases[i].object, "%s") + 2);
        CR_CLEANUP(cr_json) struct cr_json *wanted = test_yaml(want);
        CR_CLEANUP(cr_json) struct cr_json *now = cr_json_copy(fake_store_get(&f.s.store, cases[i].path));
        cr_json_remove(cr_json_edit(now, "metadata"), "uid");
        cr_json_remove(cr_json_edit(now, "metadata"), "resourceVersion");
        cr_autofree char *text = cr_json_print(now);
        if (!cr_json_equal(wanted, now))
            fail_msg("%s", text);
        cr_domain_objects_view(f.s.objects, &f.s.world);
        assert_true(f.s.world.objects[1].bundle[0] && !f.s.world.objects[1].bundle_foreign);
        assert_int_equal(cr_domain_objects_material(f.s.objects, 1)->trust_len, 1);
        end(&f);
    }
}

/* What not all of them have is published in none. */
static void webhooks_that_differ_are_written_again(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, "{kind: MutatingWebhookConfiguration, name: hooks}", MUTATING, NULL);
    cr_autofree char *base64 = cr_base64_encode(f.ca->cert_pem, strlen(f.ca->cert_pem));
    cr_autofree char *object = cr_asprintf("{" OURS ", webhooks: [{name: one, clientConfig: {caBundle: '%s'}}, {name: "
                                           "two, clientConfig: {url: x}}]}",
                                           base64);
    fake_store_put(&f.s.store, MUTATING, test_yaml(object));
    scene_look(&f.s);
    assert_true(f.s.world.objects[1].bundle_foreign);
    assert_false(f.s.world.objects[1].bundle[0]);
    scene_must_write(&f.s, (struct cr_domain_write){.object = 1});
    scene_look(&f.s);
    assert_false(f.s.world.objects[1].bundle_foreign);
    assert_true(f.s.world.objects[1].bundle[0]);
    end(&f);
}

/* The API server verifies each webhook with the bundle of that webhook. */
static void all_webhooks_are_asked_up_to_a_limit(void **state)
{
    (void)state;
    static const struct {
        size_t webhooks; /* the first has the new CA, all others the old one, each in a text of its own */
        enum cr_trust_reason reason;
    } cases[] = {{1, CR_TRUST_FINE},
                 {2, CR_TRUST_WOULD_CUT_OFF},
                 {CR_DOMAIN_PLACES_MAX, CR_TRUST_WOULD_CUT_OFF},
                 {CR_DOMAIN_PLACES_MAX + 1, CR_TRUST_BUNDLE_TOO_COSTLY}};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fixture f;
        struct cr_error err = {0};
        begin(&f, "{kind: MutatingWebhookConfiguration, name: hooks}", MUTATING, "{" OURS ", webhooks: []}");
        AUTO_CERT old = make(.cn = "old", .ca = true, .from_s = -7200);
        AUTO_CERT before = make(.cn = "web", .issuer = old);
        fake_store_put(&f.s.store, SECRET_PATH("a", "web"),
                       scene_secret("mesh", before->cert_pem, before->key_pem, old->cert_pem));
        CR_CLEANUP(cr_json) struct cr_json *hooks = test_yaml("{" OURS ", webhooks: []}");
        for (size_t k = 0; k < cases[i].webhooks; k++) {
            cr_autofree char *text = k ? cr_asprintf("# %zu\n%s", k, old->cert_pem) : cr_strdup(f.ca->cert_pem);
            cr_autofree char *base64 = cr_base64_encode(text, strlen(text));
            cr_autofree char *name = cr_asprintf("hook%zu", k);
            struct cr_json *hook = cr_json_add(cr_json_array_in(hooks, "webhooks"), cr_json_new_object());
            cr_json_set_string(hook, "name", name);
            cr_json_set_string(cr_json_object_in(hook, "clientConfig"), "caBundle", base64);
        }
        fake_store_put(&f.s.store, MUTATING, cr_steal(&hooks));
        scene_look(&f.s);
        bool only_new[] = {false, false};
        assert_int_equal(f.s.world.cas_len, 2);
        only_new[scene_ca(&f.s, f.ca)] = true;
        CR_CLEANUP(cr_domain_written) struct cr_domain_written made;
        const struct cr_domain_write write = {.object = 1, .bundle = only_new};
        assert_true(cr_domain_objects_write(f.s.objects, &write, cr_clock_wall_ms(), &made, &err));
        assert_int_equal(made.reason, cases[i].reason);
        scene_look(&f.s);
        assert_false(f.s.world.objects[1].bundle_foreign);
        assert_true(f.s.world.objects[1].bundle[scene_ca(&f.s, f.ca)]);
        assert_int_equal(f.s.world.objects[1].bundle[scene_ca(&f.s, old)], cases[i].reason != CR_TRUST_FINE);
        end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_have_the_bundle_is_refused_in_words),
        cmocka_unit_test(nothing_but_the_ca_bundle_changes),
        cmocka_unit_test(all_webhooks_are_asked_up_to_a_limit),
        cmocka_unit_test(webhooks_that_differ_are_written_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
