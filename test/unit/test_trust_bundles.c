/* spec.trust of a policy: what a target gets. */
#include "policy/controller/trust_bundles.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/strings.h"
#include "codec/base64.h"
#include "support/fakeapi.h"
#include "support/testcerts.h"
#include "support/yamltext.h"

static const char policy_text[] = "metadata: {name: edge, namespace: ns, uid: policy-uid, generation: 3}\n"
                                  "spec:\n"
                                  "  secrets: [{name: web-tls}]\n"
                                  "  trust: {retainPrevious: 1, targets: [{kind: ConfigMap, name: trust}]}\n"
                                  "  consumers: [{name: web, targetRef: {apiVersion: apps/v1, kind: Deployment, name: "
                                  "web}, verify: {port: 8443}}]\n";

#define VERSION "5"

static void *run_loop(void *loop)
{
    cr_loop_run(loop);
    return NULL;
}

/* The Secret as the API server has it. Owned text. */
static char *secret_of(const struct test_cert *ca, const struct test_cert *leaf)
{
    CR_CLEANUP(cr_json) struct cr_json *secret = test_yaml("{metadata: {resourceVersion: '" VERSION "'}}");
    struct cr_json *data = cr_json_object_in(secret, "data");
    cr_autofree char *trust = cr_base64_encode(ca->cert_pem, strlen(ca->cert_pem));
    cr_autofree char *chain = cr_base64_encode(leaf->cert_pem, strlen(leaf->cert_pem));
    cr_json_set_string(data, "ca.crt", trust);
    cr_json_set_string(data, "tls.crt", chain);
    return cr_json_print(secret);
}

static char *target_of(const char *bundle)
{
    CR_CLEANUP(cr_json)
    struct cr_json *target = test_yaml("{metadata: {uid: u, resourceVersion: '7', annotations: "
                                       "{certroll.dev/trust-domain: CertRotationPolicy/ns/edge}}}");
    cr_json_set_string(cr_json_object_in(target, "data"), "ca.crt", bundle);
    return cr_json_print(target);
}

/* What is on record has this leaf, and the Secret that was seen, in this version, one of "new". Owned: the bundle that
 * is written; NULL: the Secret has changed since. */
static char *publish(const char *recorded_leaf, const char *seen_version, const char *secret, const char *target)
{
    bool is_current = cr_streq(seen_version, VERSION);
    const struct fake_answer script[] = {
        {.expect = "GET /api/v1/namespaces/ns/secrets/web-tls", .body = secret},
        {.expect = "GET /api/v1/namespaces/ns/configmaps/trust", .body = target},
        {.expect = "PATCH /api/v1/namespaces/ns/configmaps/trust", .has = "\"resourceVersion\":\"7\"", .body = "{}"},
    };
    struct fake_api api;
    struct cr_error err = {0};
    pthread_t thread;
    int64_t look_again_ms = 0;
    assert_true(fake_api_start(&api, script, is_current ? cr_array_len(script) : 1));
    CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
    const struct cr_actor actor = {.client = fake_client(loop, api.port), .memory = cr_memory_new()};
    assert_int_equal(pthread_create(&thread, NULL, run_loop, loop), 0);
    CR_CLEANUP(cr_json) struct cr_json *json = test_yaml(policy_text);
    CR_CLEANUP(cr_policy) struct cr_policy *policy = cr_policy_decode(json, &err);
    struct cr_material material = {.has_leaf = true, .leaf = "new"};
    struct cr_world_secret seen = {.found = true, .resource_version = seen_version, .material = &material};
    struct cr_gathered gathered = {.world = {.policy = policy, .secrets = &seen}};
    struct cr_secret_status *known = cr_status_secret_add(&gathered.status, "web-tls");
    known->has_settled = known->settled.has_leaf = true;
    snprintf(known->settled.leaf, sizeof known->settled.leaf, "%s", recorded_leaf);
    bool done = cr_trust_bundles_publish(&actor, &gathered, &look_again_ms, &err);
    if (done != is_current || err.kind != (is_current ? CR_ERR_NONE : CR_ERR_CONFLICT))
        fail_msg("%s", err.text);
    const char *body = is_current ? fake_api_body(&api, 2) : "{}";
    CR_CLEANUP(cr_json) struct cr_json *patch = cr_json_parse(body, strlen(body), &err);
    char *bundle = cr_strdup_or_null(cr_json_string_at(patch, "data", "ca.crt"));
    free(gathered.trust_refused);
    cr_policy_status_dispose(&gathered.status);
    cr_loop_stop(loop);
    pthread_join(thread, NULL);
    cr_client_free(actor.client);
    cr_memory_free(actor.memory);
    fake_api_stop(&api);
    if (api.problem[0])
        fail_msg("%s", api.problem);
    return bundle;
}

/* Pods may still serve any leaf that was there since: three CAs, one after the other, before the first has arrived. */
static void a_bundle_shrinks_only_while_no_change_is_under_way(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *first = test_cert_new(&(struct test_cert_spec){.cn = "1", .ca = true});
    CR_CLEANUP(test_cert) struct test_cert *second = test_cert_new(&(struct test_cert_spec){.cn = "2", .ca = true});
    CR_CLEANUP(test_cert) struct test_cert *third = test_cert_new(&(struct test_cert_spec){.cn = "3", .ca = true});
    CR_CLEANUP(test_cert)
    struct test_cert *leaf = test_cert_new(&(struct test_cert_spec){.cn = "web", .issuer = third});
    cr_autofree char *secret = secret_of(third, leaf);
    cr_autofree char *published = test_concat(second->cert_pem, first->cert_pem, NULL);
    cr_autofree char *target = target_of(published);
    cr_autofree char *all = test_concat(third->cert_pem, second->cert_pem, first->cert_pem, NULL);
    cr_autofree char *two = test_concat(third->cert_pem, second->cert_pem, NULL);
    cr_autofree char *under_way = publish("old", VERSION, secret, target);
    cr_autofree char *settled = publish("new", VERSION, secret, target);
    assert_string_equal(under_way, all);
    assert_string_equal(settled, two);
    assert_null(publish("new", "4", secret, target)); /* what was seen is not what is published */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_bundle_shrinks_only_while_no_change_is_under_way)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
