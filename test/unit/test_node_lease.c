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

/* A Lease, and who answers for it. */
struct scene {
    struct fake_api api;
    struct cr_loop *loop;
    struct cr_client *client;
    pthread_t thread;
    struct cr_node_lease *lease;
};

static void begin(struct scene *s, const struct fake_answer *script, size_t len, const struct cr_election_times *times)
{
    assert_true(fake_api_start(&s->api, script, len));
    s->loop = cr_loop_new();
    s->client = fake_client(s->loop, s->api.port);
    assert_int_equal(pthread_create(&s->thread, NULL, run_loop, s->loop), 0);
    s->lease = cr_node_lease_new(s->client, "one", times);
}

static void end(struct scene *s)
{
    cr_node_lease_free(s->lease);
    cr_loop_stop(s->loop);
    pthread_join(s->thread, NULL);
    cr_client_free(s->client);
    cr_loop_free(s->loop);
    fake_api_stop(&s->api);
    if (s->api.problem[0])
        fail_msg("%s", s->api.problem);
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
    struct scene s;
    struct cr_error err = {0};
    begin(&s, script, cr_array_len(script), &short_times);
    assert_false(cr_node_lease_is_held(s.lease));
    assert_true(cr_node_lease_acquire(s.lease, &err));
    assert_true(cr_node_lease_is_held(s.lease));
    usleep((useconds_t)short_times.renew_ms * 1000);
    assert_false(cr_node_lease_is_held(s.lease));
    assert_true(cr_node_lease_is_claimed(s.lease));
    assert_false(cr_node_lease_acquire(s.lease, &err));
    assert_int_equal(err.kind, CR_ERR_CONFLICT);
    assert_non_null(strstr(err.text, "is held by two_certroll-node-agent"));
    assert_false(cr_node_lease_is_held(s.lease));
    end(&s);
}

/* Before an act that blocks: what is left of an older renewal is not enough. */
static void before_a_long_act_it_is_renewed_however_fresh(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect = "GET ", .status = 404, .body = STATUS("NotFound")},
        {.expect = "POST ", .body = LEASE_OF("one", "1")},
        {.expect = "PATCH ", .has = "\"holderIdentity\":\"one_certroll-node-agent\"", .body = LEASE_OF("one", "2")},
        {.expect = "PATCH ", .status = 403, .body = STATUS("Forbidden")},
    };
    struct scene s;
    struct cr_error err = {0};
    begin(&s, script, cr_array_len(script), NULL);
    assert_true(cr_node_lease_acquire(s.lease, &err));
    assert_true(cr_node_lease_acquire(s.lease, &err)); /* asks nobody */
    assert_true(cr_node_lease_renew(s.lease, &err));
    assert_false(cr_node_lease_renew(s.lease, &err));
    assert_int_equal(err.kind, CR_ERR_FORBIDDEN);
    assert_true(cr_node_lease_is_held(s.lease));
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_is_held_for_so_long_and_no_longer),
                                       cmocka_unit_test(before_a_long_act_it_is_renewed_however_fresh)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
