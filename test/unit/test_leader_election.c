#include "runtime/leader_election.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "support/fakeapi.h"

enum { PATIENCE_MS = 20 * 1000 };

/* A client and an election against a scripted server; the client's loop has a thread of its own. */
struct fixture {
    struct fake_api api;
    struct cr_loop *loop;
    pthread_t thread;
    struct cr_client *client;
    struct cr_metrics *metrics;
    struct cr_leader_election *election;
    int block_ms; /* in on_started_leading */
    atomic_bool started;
    atomic_bool lost;
    char why[512]; /* read once lost */
};

static void *run_loop(void *loop)
{
    cr_loop_run(loop);
    return NULL;
}

static void on_started(void *arg)
{
    struct fixture *f = arg;
    atomic_store(&f->started, true);
    usleep((useconds_t)f->block_ms * 1000);
}

static void on_lost(void *arg, const char *why)
{
    struct fixture *f = arg;
    snprintf(f->why, sizeof f->why, "%s", why);
    atomic_store(&f->lost, true);
}

static void open_fixture(struct fixture *f, const struct fake_answer *script, size_t len,
                         const struct cr_election_times *times)
{
    *f = (struct fixture){.block_ms = 0};
    assert_true(fake_api_start(&f->api, script, len));
    f->loop = cr_loop_new();
    f->client = fake_client(f->loop, f->api.port);
    f->metrics = cr_metrics_new();
    assert_int_equal(pthread_create(&f->thread, NULL, run_loop, f->loop), 0);
    struct cr_leader_election_options options = {.ns = "ns", .name = "lease"};
    if (times)
        options.times = *times;
    struct cr_error err = {0};
    f->election = cr_leader_election_new(f->client, f->metrics, &options, &err);
    if (!f->election)
        fail_msg("%s", err.text);
}

static void start(struct fixture *f)
{
    cr_leader_election_start(f->election, &(struct cr_leader_election_handler){on_started, on_lost, f});
}

static void close_fixture(struct fixture *f)
{
    cr_leader_election_free(f->election);
    cr_loop_stop(f->loop);
    pthread_join(f->thread, NULL);
    cr_client_free(f->client);
    cr_loop_free(f->loop);
    cr_metrics_free(f->metrics);
    fake_api_stop(&f->api);
    if (f->api.problem[0])
        fail_msg("%s", f->api.problem);
}

static void wait_for(atomic_bool *flag, const char *what)
{
    for (int64_t end = cr_clock_monotonic_ms() + PATIENCE_MS; !atomic_load(flag); usleep(1000))
        if (cr_clock_monotonic_ms() > end)
            fail_msg("not %s in time", what);
}

static void wait_answered(struct fixture *f, size_t count)
{
    for (int64_t end = cr_clock_monotonic_ms() + PATIENCE_MS; atomic_load(&f->api.answered) < count; usleep(1000))
        if (cr_clock_monotonic_ms() > end)
            fail_msg("only %zu requests", atomic_load(&f->api.answered));
}

static bool leader_metric_is(struct fixture *f, const char *value)
{
    CR_CLEANUP(cr_buf) struct cr_buf page = CR_BUF_INIT(0);
    cr_metrics_write(f->metrics, &page);
    cr_autofree char *line = cr_asprintf("\nleader_election_master_status{name=\"lease\"} %s\n", value);
    return strstr(cr_buf_text(&page), line) != NULL;
}

#define STATUS(reason) "{\"kind\":\"Status\",\"reason\":\"" reason "\",\"message\":\"told so\"}"
#define LEASE_OF(holder, version)                                                                                      \
    "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"" version "\"},\"spec\":{\"holderIdentity\":\"" holder         \
    "\",\"leaseDurationSeconds\":15}}"

/* The identity is random: it is put into the script once the election is there. */
static char *ours(const struct fixture *f, const char *version)
{
    return cr_asprintf("{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"%s\"},\"spec\":{\"holderIdentity\":\"%s\","
                       "\"leaseDurationSeconds\":15}}",
                       version, cr_leader_election_identity(f->election));
}

static void a_leader_says_so_and_gives_the_lease_up(void **state)
{
    (void)state;
    struct fake_answer script[] = {
        {.expect = "GET /apis/coordination.k8s.io/v1/namespaces/ns/leases/lease",
         .status = 404,
         .body = STATUS("NotFound")},
        {.expect = "POST /apis/coordination.k8s.io/v1/namespaces/ns/leases?", .status = 201},
        {.expect = "POST /api/v1/namespaces/ns/events?", .has = "became leader", .body = "{}"},
        {.expect = "POST /api/v1/namespaces/ns/events?", .has = "stopped leading", .body = "{}"},
        {.expect = "PATCH ", .has = "\"holderIdentity\":\"\",\"leaseDurationSeconds\":1,"},
    };
    struct fixture f;
    open_fixture(&f, script, cr_array_len(script), NULL);
    cr_autofree char *lease = ours(&f, "1");
    script[1].body = script[4].body = lease;
    assert_int_equal(cr_leader_election_left_ms(f.election), 0);
    assert_true(leader_metric_is(&f, "0"));
    start(&f);
    wait_answered(&f, 3);
    assert_true(atomic_load(&f.started));
    assert_in_range(cr_leader_election_left_ms(f.election), 1, 12000);
    assert_true(leader_metric_is(&f, "1"));
    cr_leader_election_stop(f.election);
    assert_int_equal(cr_leader_election_left_ms(f.election), 0);
    assert_true(leader_metric_is(&f, "0"));
    assert_int_equal(atomic_load(&f.api.answered), 5);
    assert_non_null(strstr(fake_api_body(&f.api, 4), "\"resourceVersion\":\"1\""));
    assert_false(atomic_load(&f.lost));
    assert_false(cr_leader_election_lost(f.election));
    close_fixture(&f);
}

static void a_standby_that_stops_writes_nothing(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {{.expect = "GET", .body = LEASE_OF("other", "1")},
                                                {.expect = "nothing"}};
    struct fixture f;
    struct cr_error err = {0};
    open_fixture(&f, script, cr_array_len(script), NULL);
    start(&f);
    wait_answered(&f, 1);
    assert_true(cr_leader_election_ready(f.election, &err));
    assert_true(cr_leader_election_alive(f.election, &err));
    cr_leader_election_stop(f.election);
    assert_int_equal(atomic_load(&f.api.answered), 1);
    assert_false(atomic_load(&f.started));
    close_fixture(&f);
}

static void the_gate_of_the_client_is_open_only_while_we_lead(void **state)
{
    (void)state;
    struct fake_answer script[] = {
        {.expect = "GET ", .status = 404, .body = STATUS("NotFound")},
        {.expect = "POST "},
        {.expect = "events", .body = "{}"},
        {.expect = "PATCH /api/v1/namespaces/ns/pods/p", .body = "{}"},
        {.expect = "events", .body = "{}"},
        {.expect = "PATCH /apis/coordination"},
    };
    struct fixture f;
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *patch = cr_json_new_object();
    open_fixture(&f, script, cr_array_len(script), NULL);
    cr_autofree char *lease = ours(&f, "1");
    script[1].body = script[5].body = lease;
    assert_null(cr_client_merge_patch(f.client, &cr_res_pods, "ns", "p", NULL, patch, &err));
    assert_int_equal(err.kind, CR_ERR_CANCELLED);
    start(&f);
    wait_answered(&f, 3);
    CR_CLEANUP(cr_json)
    struct cr_json *written = cr_client_merge_patch(f.client, &cr_res_pods, "ns", "p", NULL, patch, &err);
    assert_non_null(written);
    cr_leader_election_stop(f.election);
    assert_null(cr_client_merge_patch(f.client, &cr_res_pods, "ns", "p", NULL, patch, &err));
    assert_int_equal(err.kind, CR_ERR_CANCELLED);
    close_fixture(&f);
}

static const struct cr_election_times short_times = {.lease_ms = 2000, .renew_ms = 1500, .retry_ms = 100};

static void who_cannot_renew_until_the_deadline_has_lost(void **state)
{
    (void)state;
    struct fake_answer script[40] = {
        {.expect = "GET ", .status = 404, .body = STATUS("NotFound")},
        {.expect = "POST "},
        {.expect = "events", .body = "{}"},
    };
    for (size_t i = 3; i < cr_array_len(script); i++)
        script[i] = (struct fake_answer){.expect = "PATCH", .status = 500, .body = STATUS("InternalError")};
    struct fixture f;
    open_fixture(&f, script, cr_array_len(script), &short_times);
    cr_autofree char *lease = ours(&f, "1");
    script[1].body = lease;
    start(&f);
    wait_for(&f.lost, "lost");
    assert_true(cr_leader_election_lost(f.election));
    assert_int_equal(cr_leader_election_left_ms(f.election), 0);
    assert_true(leader_metric_is(&f, "0"));
    assert_string_equal(f.why, "the Lease ns/lease could not be renewed for 1s500ms: "
                               "PATCH /apis/coordination.k8s.io/v1/namespaces/ns/leases/lease: told so");
    assert_in_range(atomic_load(&f.api.answered), 4, 20);
    /* It neither releases nor says anything any more. */
    size_t answered = atomic_load(&f.api.answered);
    cr_leader_election_stop(f.election);
    assert_int_equal(atomic_load(&f.api.answered), answered);
    close_fixture(&f);
}

static void who_finds_another_in_the_lease_has_lost(void **state)
{
    (void)state;
    struct fake_answer script[] = {
        {.expect = "GET ", .status = 404, .body = STATUS("NotFound")},
        {.expect = "POST "},
        {.expect = "events", .body = "{}"},
        {.expect = "PATCH ", .status = 409, .body = STATUS("Conflict")},
        {.expect = "GET ", .body = LEASE_OF("other", "2")},
        {.expect = "nothing"},
    };
    struct fixture f;
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *patch = cr_json_new_object();
    open_fixture(&f, script, cr_array_len(script), &short_times);
    cr_autofree char *lease = ours(&f, "1");
    script[1].body = lease;
    start(&f);
    wait_for(&f.lost, "lost");
    assert_string_equal(f.why, "the Lease ns/lease is held by other now");
    /* The time of its last renewal is not over, and it writes nothing more all the same. */
    assert_true(cr_leader_election_lost(f.election));
    assert_int_equal(cr_leader_election_left_ms(f.election), 0);
    assert_null(cr_client_merge_patch(f.client, &cr_res_pods, "ns", "p", NULL, patch, &err));
    assert_int_equal(err.kind, CR_ERR_CANCELLED);
    cr_leader_election_stop(f.election);
    assert_int_equal(atomic_load(&f.api.answered), 5);
    close_fixture(&f);
}

static void what_is_refused_makes_a_candidate_unready_at_once(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        int status;
        const char *body;
        bool ready;
    } cases[] = {
        {"no right", 403, STATUS("Forbidden"), false},
        {"an API server in trouble", 500, STATUS("InternalError"), true}, /* for a lease's time */
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fake_answer script[2];
        for (size_t k = 0; k < cr_array_len(script); k++)
            script[k] = (struct fake_answer){.status = cases[i].status, .body = cases[i].body};
        struct fixture f;
        struct cr_error err = {0};
        open_fixture(&f, script, cr_array_len(script), &(struct cr_election_times){10000, 8000, 100});
        start(&f);
        wait_answered(&f, 2); /* the first round is over */
        if (cr_leader_election_ready(f.election, &err) != cases[i].ready)
            fail_msg("%s: %s", cases[i].rule, err.text);
        if (!cases[i].ready)
            assert_string_equal(err.text, "leader election: GET "
                                          "/apis/coordination.k8s.io/v1/namespaces/ns/leases/lease: told so");
        close_fixture(&f);
    }
}

static void trouble_for_a_lease_s_time_makes_a_candidate_unready(void **state)
{
    (void)state;
    struct fake_answer script[60];
    for (size_t i = 0; i < cr_array_len(script); i++)
        script[i] = (struct fake_answer){.status = 500, .body = STATUS("InternalError")};
    struct fixture f;
    struct cr_error err = {0};
    open_fixture(&f, script, cr_array_len(script), &short_times);
    start(&f);
    for (int64_t end = cr_clock_monotonic_ms() + PATIENCE_MS; cr_leader_election_ready(f.election, &err); usleep(1000))
        assert_true(cr_clock_monotonic_ms() < end);
    assert_non_null(strstr(err.text, "told so"));
    close_fixture(&f);
}

static void a_stuck_election_is_reported(void **state)
{
    (void)state;
    struct fake_answer script[] = {
        {.expect = "GET ", .status = 404, .body = STATUS("NotFound")}, {.expect = "POST "}, {.body = "{}"}};
    struct fixture f;
    struct cr_error err = {0};
    open_fixture(&f, script, cr_array_len(script), &(struct cr_election_times){1000, 600, 100});
    cr_autofree char *lease = ours(&f, "1");
    script[1].body = lease;
    f.block_ms = 5000;
    start(&f);
    wait_for(&f.started, "started");
    assert_true(cr_leader_election_alive(f.election, &err));
    for (int64_t end = cr_clock_monotonic_ms() + PATIENCE_MS; cr_leader_election_alive(f.election, &err); usleep(1000))
        assert_true(cr_clock_monotonic_ms() < end);
    assert_true(cr_starts_with(err.text, "leader election is stuck: nothing was tried for "));
    assert_int_equal(cr_leader_election_left_ms(f.election), 0); /* and nothing is written meanwhile */
    close_fixture(&f);
}

static void times_that_contradict_each_other_are_refused(void **state)
{
    (void)state;
    struct cr_error err = {0};
    const struct cr_leader_election_options options = {.ns = "ns", .name = "n", .times = {1000, 1000, 100}};
    assert_null(cr_leader_election_new(NULL, NULL, &options, &err));
    assert_string_equal(err.text,
                        "leader election: the lease duration (1s) must be longer than the renew deadline (1s)");
}

static void one_that_never_ran_leaves_nothing(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, NULL, 0, NULL);
    close_fixture(&f);
    cr_leader_election_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leader_says_so_and_gives_the_lease_up),
        cmocka_unit_test(a_standby_that_stops_writes_nothing),
        cmocka_unit_test(the_gate_of_the_client_is_open_only_while_we_lead),
        cmocka_unit_test(who_cannot_renew_until_the_deadline_has_lost),
        cmocka_unit_test(who_finds_another_in_the_lease_has_lost),
        cmocka_unit_test(what_is_refused_makes_a_candidate_unready_at_once),
        cmocka_unit_test(trouble_for_a_lease_s_time_makes_a_candidate_unready),
        cmocka_unit_test(a_stuck_election_is_reported),
        cmocka_unit_test(times_that_contradict_each_other_are_refused),
        cmocka_unit_test(one_that_never_ran_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
