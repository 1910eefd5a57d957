#include "controlplane/agent/node_lease.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/fakeapi.h"

#define STATUS(reason) "{\"kind\":\"Status\",\"reason\":\"" reason "\",\"message\":\"told so\"}"
#define LEASE_OF(node, version)                                                                                        \
    "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"" version "\"},\"spec\":{\"holderIdentity\":\"" node           \
    "_certroll-node-agent\",\"leaseDurationSeconds\":1}}"

static const struct cr_election_times short_times = {.lease_ms = 1000, .renew_ms = 500, .retry_ms = 100};

static void *run_loop(void *loop)
{
    cr_loop_run(loop);
    return NULL;
}

/* After the deadline another node may act, so this one begins nothing before it has the Lease again. */
static void it_is_held_for_so_long_and_no_longer(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect = "GET ", .status = 404, .body = STATUS("NotFound")},
        {.expect = "POST ", .has = "\"holderIdentity\":\"one_certroll-node-agent\"", .body = LEASE_OF("one", "1")},
        {.expect = "GET ", .body = LEASE_OF("two", "2")},
    };
    struct fake_api api;
    struct cr_error err = {0};
    pthread_t thread;
    assert_true(fake_api_start(&api, script, cr_array_len(script)));
    CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
    struct cr_client *client = fake_client(loop, api.port);
    assert_int_equal(pthread_create(&thread, NULL, run_loop, loop), 0);
    struct cr_node_lease *lease = cr_node_lease_new(client, "one", &short_times);
    assert_false(cr_node_lease_is_held(lease));
    assert_true(cr_node_lease_acquire(lease, &err));
    assert_true(cr_node_lease_is_held(lease));
    usleep((useconds_t)short_times.renew_ms * 1000);
    assert_false(cr_node_lease_is_held(lease));
    assert_true(cr_node_lease_is_claimed(lease));
    assert_false(cr_node_lease_acquire(lease, &err));
    assert_int_equal(err.kind, CR_ERR_CONFLICT);
    assert_non_null(strstr(err.text, "is held by two_certroll-node-agent"));
    assert_false(cr_node_lease_is_held(lease));
    cr_node_lease_free(lease);
    cr_loop_stop(loop);
    pthread_join(thread, NULL);
    cr_client_free(client);
    fake_api_stop(&api);
    if (api.problem[0])
        fail_msg("%s", api.problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_is_held_for_so_long_and_no_longer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
