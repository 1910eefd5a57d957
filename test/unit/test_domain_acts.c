#include "trust/controller/domain_acts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/strings.h"
#include "kube/object.h"
#include "support/fakeapi.h"
#include "support/ownwrites.h"
#include "support/yamltext.h"

static void *run_loop(void *loop)
{
    cr_loop_run(loop);
    return NULL;
}

static void is_for_one_version(const char *body)
{
    CR_CLEANUP(cr_json) struct cr_json *patch = cr_json_parse(body, strlen(body), NULL);
    CR_CLEANUP(cr_json) struct cr_json *status = cr_json_take(patch, "status");
    CR_CLEANUP(cr_json) struct cr_json *expected = test_yaml("{metadata: {uid: domain-uid, resourceVersion: '12'}}");
    assert_non_null(status);
    if (!cr_json_equal(patch, expected))
        fail_msg("%s", body);
}

static void a_status_is_written_for_one_version_and_the_cache_is_waited_for(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect = "PATCH /apis/certroll.dev/v1alpha1/namespaces/ns/trustdomains/mesh/status?",
         .body = "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"mesh\",\"uid\":\"domain-uid\","
                 "\"resourceVersion\":\"13\"}}"}};
    char ns[] = "ns";
    char name[] = "mesh";
    char uid[] = "domain-uid";
    const struct cr_domain domain = {.ns = ns, .name = name, .uid = uid};
    const struct cr_domain_status before = {.observed_generation = 1};
    const struct cr_domain_status after = {.observed_generation = 2};
    struct fake_api api;
    struct cr_error err = {0};
    pthread_t thread;
    assert_true(fake_api_start(&api, script, 1));
    CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
    CR_CLEANUP(cr_own_writes) struct cr_own_writes *own = cr_own_writes_new();
    const struct cr_domain_actor actor = {.client = fake_client(loop, api.port), .own_writes = own};
    assert_int_equal(pthread_create(&thread, NULL, run_loop, loop), 0);
    CR_CLEANUP(cr_json) struct cr_json *none = NULL;
    assert_true(cr_domain_act_status(&actor, &domain, "12", &before, &before, &none, &err));
    assert_null(none);
    CR_CLEANUP(cr_json) struct cr_json *written = NULL;
    assert_true(cr_domain_act_status(&actor, &domain, "12", &before, &after, &written, &err));
    assert_string_equal(cr_obj_resource_version(written), "13");
    is_for_one_version(fake_api_body(&api, 0));
    assert_true(test_is_awaited(own, "ns/mesh", "TrustDomain", "domain-uid"));
    cr_loop_stop(loop);
    pthread_join(thread, NULL);
    cr_client_free(actor.client);
    fake_api_stop(&api);
    if (api.problem[0])
        fail_msg("%s", api.problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_is_written_for_one_version_and_the_cache_is_waited_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
