#include "runtime/manager.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "support/fakeapi.h"

/* A manager without informers; its reconciler follows the key's first letter. */
struct fixture {
    struct cr_loop *loop;
    struct cr_client *client;
    struct cr_manager *manager;
    pthread_mutex_t lock;
    struct cr_buf seen; /* keys in the order of work */
    const char *until;  /* stops the manager once seen; what comes until it has stopped is not counted */
    struct cr_error last;
};

static bool reconcile(void *arg, const char *key, struct cr_reconcile_result *result, struct cr_error *err)
{
    struct fixture *f = arg;
    pthread_mutex_lock(&f->lock);
    bool stopping = f->until && strcmp(cr_buf_text(&f->seen), f->until) == 0;
    if (!stopping)
        cr_buf_printf(&f->seen, "%s ", key);
    bool over = f->until && strcmp(cr_buf_text(&f->seen), f->until) == 0;
    pthread_mutex_unlock(&f->lock);
    if (over)
        cr_manager_stop(f->manager);
    switch (key[0]) {
    case 'a': /* once more, soon */
        result->requeue_after_ms = 20;
        return true;
    case 'c':
        return cr_error_set(err, CR_ERR_CANCELLED, "stopping");
    case 't':
        return cr_error_set(err, CR_ERR_TRANSIENT, "the network");
    case 'r': { /* a request */
        CR_CLEANUP(cr_json) struct cr_json *j = cr_client_get(f->client, &cr_res_pods, "ns", "p", err);
        if (err)
            f->last = *err;
        return j != NULL;
    }
    default:
        return true;
    }
}

static void open_fixture(struct fixture *f, int port, const struct cr_manager_options *options, const char *until)
{
    *f = (struct fixture){.until = until};
    pthread_mutex_init(&f->lock, NULL);
    f->loop = cr_loop_new();
    f->client = fake_client(f->loop, port);
    f->manager = cr_manager_new(f->loop, f->client, NULL, options);
    cr_manager_set_reconciler(f->manager, reconcile, f);
}

static void close_fixture(struct fixture *f)
{
    cr_manager_free(f->manager);
    cr_client_free(f->client);
    cr_loop_free(f->loop);
    pthread_mutex_destroy(&f->lock);
    cr_buf_dispose(&f->seen);
}

static void give_up(void *manager)
{
    cr_manager_stop(manager);
}

static void run(struct fixture *f)
{
    struct cr_error err = {0};
    struct cr_timer *deadline = cr_timer_new(f->loop, give_up, f->manager);
    cr_timer_arm(deadline, 20 * 1000);
    if (!cr_manager_run(f->manager, &err))
        fail_msg("%s", err.text);
    cr_timer_free(deadline);
}

static void the_result_decides_when_a_key_comes_again(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *first;
        const char *second; /* added behind it; or NULL */
        const char *seen;
    } cases[] = {
        {"requeue after a while", "a", NULL, "a a a "},
        {"trouble: with backoff", "t", NULL, "t t t "},
        {"cancelled: dropped", "c", "a", "c a a a "},
        {"done: not before something changes", "done", "a", "done a a a "},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fixture f;
        open_fixture(&f, 1, &(struct cr_manager_options){.workers = 1}, cases[i].seen);
        cr_queue_add(cr_manager_queue(f.manager), cases[i].first);
        if (cases[i].second)
            cr_queue_add(cr_manager_queue(f.manager), cases[i].second);
        run(&f);
        if (strcmp(cr_buf_text(&f.seen), cases[i].seen) != 0)
            fail_msg("%s: %s", cases[i].rule, cr_buf_text(&f.seen));
        close_fixture(&f);
    }
}

static void what_a_person_must_heal_is_not_tried_at_the_network_s_pace(void **state)
{
    (void)state;
    struct fixture f;
    static const struct fake_answer script[] = {
        {.status = 403, .body = "{\"kind\":\"Status\",\"reason\":\"Forbidden\"}"}};
    struct fake_api api;
    assert_true(fake_api_start(&api, script, 1));
    open_fixture(&f, api.port, &(struct cr_manager_options){.workers = 1}, "r a a a a ");
    cr_queue_add(cr_manager_queue(f.manager), "r");
    cr_queue_add(cr_manager_queue(f.manager), "a");
    run(&f);
    assert_int_equal(f.last.kind, CR_ERR_FORBIDDEN);
    assert_string_equal(cr_buf_text(&f.seen), "r a a a a ");
    close_fixture(&f);
    fake_api_stop(&api);
}

static void *stop_once_answered(void *arg)
{
    void **args = arg;
    const struct fake_api *api = args[0];
    while (!atomic_load(&api->answered))
        sched_yield();
    cr_manager_stop(args[1]);
    return NULL;
}

static void work_that_outlives_the_grace_has_its_requests_cancelled(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {{.body = "{", .hold = true}};
    struct fake_api api;
    struct fixture f;
    assert_true(fake_api_start(&api, script, 1));
    open_fixture(&f, api.port, &(struct cr_manager_options){.workers = 2, .grace_ms = 50}, NULL);
    cr_queue_add(cr_manager_queue(f.manager), "r");
    void *args[] = {&api, f.manager};
    pthread_t stopper;
    assert_int_equal(pthread_create(&stopper, NULL, stop_once_answered, args), 0);
    run(&f);
    pthread_join(stopper, NULL);
    assert_int_equal(f.last.kind, CR_ERR_CANCELLED);
    assert_string_equal(cr_buf_text(&f.seen), "r ");
    close_fixture(&f);
    fake_api_stop(&api);
}

static void work_within_the_grace_is_finished(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {{.body = "{}"}};
    struct fake_api api;
    struct fixture f;
    assert_true(fake_api_start(&api, script, 1));
    open_fixture(&f, api.port, &(struct cr_manager_options){.workers = 1}, "r "); /* stops before its request */
    cr_queue_add(cr_manager_queue(f.manager), "r");
    run(&f);
    assert_int_equal(f.last.kind, CR_ERR_NONE);
    close_fixture(&f);
    fake_api_stop(&api);
}

static void no_worker_starts_before_all_caches_are_in_sync(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {{.body = "\n", .hold = true}};
    struct fake_api api;
    struct fixture f;
    assert_true(fake_api_start(&api, script, 1));
    open_fixture(&f, api.port, &(struct cr_manager_options){.workers = 1, .metrics_address = "127.0.0.1:0"}, NULL);
    const struct cr_informer_options options = {.watch = {.resource = &cr_res_pods, .ns = "ns"}};
    struct cr_informer *informer = cr_informer_new(f.client, f.loop, &options);
    cr_manager_add_informer(f.manager, informer);
    cr_queue_add(cr_manager_queue(f.manager), "done");
    void *args[] = {&api, f.manager};
    pthread_t stopper;
    assert_int_equal(pthread_create(&stopper, NULL, stop_once_answered, args), 0);
    struct cr_error err = {0};
    assert_false(cr_informer_healthy(informer, &err));
    assert_string_equal(err.text, "pods in namespace ns: not in sync");
    run(&f);
    pthread_join(stopper, NULL);
    assert_string_equal(cr_buf_text(&f.seen), "");
    close_fixture(&f);
    fake_api_stop(&api);
}

/* One namespace that is closed to us must not close all others; without the rest nothing can be decided. */
static void a_refused_cache_holds_up_only_what_needs_it(void **state)
{
    (void)state;
    static const struct {
        bool partial;
        const char *seen;
    } cases[] = {{true, "done "}, {false, ""}};
    static const struct fake_answer script[] = {
        {.status = 403, .body = "{\"kind\":\"Status\",\"reason\":\"Forbidden\"}"}};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fake_api api;
        struct fixture f;
        assert_true(fake_api_start(&api, script, 1));
        open_fixture(&f, api.port, &(struct cr_manager_options){.workers = 1}, "done ");
        const struct cr_informer_options options = {.watch = {.resource = &cr_res_pods, .ns = "ns"},
                                                    .partial = cases[i].partial};
        cr_manager_add_informer(f.manager, cr_informer_new(f.client, f.loop, &options));
        cr_queue_add(cr_manager_queue(f.manager), "done");
        struct cr_timer *enough = cr_timer_new(f.loop, give_up, f.manager);
        cr_timer_arm(enough, cases[i].partial ? 20 * 1000 : 300); /* nothing else would end it */
        run(&f);
        cr_timer_free(enough);
        assert_string_equal(cr_buf_text(&f.seen), cases[i].seen);
        close_fixture(&f);
        fake_api_stop(&api);
    }
}

static void who_needs_a_cache_alone_waits_for_it_alone(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {{.body = "\n", .hold = true}};
    struct fake_api api;
    struct fixture f;
    assert_true(fake_api_start(&api, script, 1));
    open_fixture(&f, api.port, &(struct cr_manager_options){.workers = 1}, "done ");
    const struct cr_informer_options options = {.watch = {.resource = &cr_res_pods, .ns = "ns"}, .patience_ms = 50};
    struct cr_informer *informer = cr_informer_new(f.client, f.loop, &options);
    cr_manager_add_informer(f.manager, informer);
    cr_queue_add(cr_manager_queue(f.manager), "done");
    struct cr_timer *enough = cr_timer_new(f.loop, give_up, f.manager);
    cr_timer_arm(enough, 20 * 1000);
    run(&f);
    cr_timer_free(enough);
    assert_string_equal(cr_buf_text(&f.seen), "done ");
    assert_false(cr_informer_synced(informer));
    close_fixture(&f);
    fake_api_stop(&api);
}

/* One that is not in sync, and which the next post but one takes away. */
struct leaving {
    struct fixture *fixture;
    struct cr_informer *informer;
};

static void leave(void *arg)
{
    const struct leaving *leaving = arg;
    cr_manager_remove_informer(leaving->fixture->manager, leaving->informer);
}

static void leave_later(void *arg)
{
    const struct leaving *leaving = arg;
    assert_string_equal(cr_buf_text(&leaving->fixture->seen), "");
    cr_loop_post(leaving->fixture->loop, leave, arg);
}

static void an_informer_that_goes_holds_nothing_up_and_is_shown_no_more(void **state)
{
    (void)state;
    struct fixture f;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    const struct cr_manager_options one = {.workers = 1};
    open_fixture(&f, 1, &one, "done ");
    cr_manager_free(f.manager);
    f.manager = cr_manager_new(f.loop, f.client, metrics, &one);
    cr_manager_set_reconciler(f.manager, reconcile, &f);
    const struct cr_informer_options options = {.watch = {.resource = &cr_res_pods, .ns = "ns"}};
    struct leaving leaving = {.fixture = &f, .informer = cr_informer_new(f.client, f.loop, &options)};
    cr_manager_add_informer(f.manager, leaving.informer);
    cr_queue_add(cr_manager_queue(f.manager), "done");
    /* As a page has shown it before. */
    cr_metric_set(cr_metrics_gauge(metrics, "certroll_informer_objects", NULL, CR_LABELS("resource")),
                  CR_LABELS("pods"), 7);
    cr_loop_post(f.loop, leave_later, &leaving);
    run(&f);
    assert_string_equal(cr_buf_text(&f.seen), "done ");
    CR_CLEANUP(cr_buf) struct cr_buf page = CR_BUF_INIT(0);
    cr_metrics_write(metrics, &page);
    assert_non_null(strstr(page.data, "certroll_informer_objects"));
    assert_null(strstr(page.data, "resource=\"pods\""));
    close_fixture(&f);
}

/* --- several controllers --- */

struct meeting {
    struct cr_manager *manager;
    pthread_barrier_t both;
    atomic_int done;
};

/* Comes to its end only if the other controller works at the same time. */
static bool meet(void *arg, const char *key, struct cr_reconcile_result *result, struct cr_error *err)
{
    struct meeting *meeting = arg;
    (void)key;
    (void)result;
    (void)err;
    pthread_barrier_wait(&meeting->both);
    cr_manager_stop(meeting->manager);
    atomic_fetch_add(&meeting->done, 1);
    return true;
}

static void controllers_have_queues_and_workers_of_their_own_and_end_together(void **state)
{
    (void)state;
    struct fixture f;
    struct meeting meeting = {0};
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    open_fixture(&f, 1, &(struct cr_manager_options){0}, NULL);
    cr_manager_free(f.manager);
    f.manager = cr_manager_new(f.loop, f.client, metrics, &(struct cr_manager_options){.workers = 1, .name = "one"});
    meeting.manager = f.manager;
    pthread_barrier_init(&meeting.both, NULL, 2);
    cr_manager_set_reconciler(f.manager, meet, &meeting);
    struct cr_queue *other = cr_manager_add_controller(
        f.manager, &(struct cr_controller_options){.name = "other", .workers = 1, .reconcile = meet, .arg = &meeting});
    assert_ptr_not_equal(other, cr_manager_queue(f.manager));
    /* The same key: each queue knows only its own. */
    cr_queue_add(cr_manager_queue(f.manager), "ns/name");
    cr_queue_add(other, "ns/name");
    run(&f);
    assert_int_equal(atomic_load(&meeting.done), 2);
    CR_CLEANUP(cr_buf) struct cr_buf page = CR_BUF_INIT(0);
    cr_metrics_write(metrics, &page);
    assert_non_null(strstr(page.data, "workqueue_adds_total{name=\"one\",controller=\"one\"} 1"));
    assert_non_null(strstr(page.data, "workqueue_adds_total{name=\"other\",controller=\"other\"} 1"));
    assert_non_null(strstr(page.data, "certroll_reconciles_total{result=\"success\"} 2"));
    pthread_barrier_destroy(&meeting.both);
    close_fixture(&f);
}

static void no_controller_starts_before_all_caches_are_in_sync(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {{.body = "\n", .hold = true}};
    struct fake_api api;
    struct fixture f;
    assert_true(fake_api_start(&api, script, 1));
    open_fixture(&f, api.port, &(struct cr_manager_options){.workers = 1}, NULL);
    struct cr_queue *other = cr_manager_add_controller(
        f.manager, &(struct cr_controller_options){.name = "other", .reconcile = reconcile, .arg = &f});
    const struct cr_informer_options options = {.watch = {.resource = &cr_res_pods, .ns = "ns"}};
    cr_manager_add_informer(f.manager, cr_informer_new(f.client, f.loop, &options));
    cr_queue_add(other, "done");
    void *args[] = {&api, f.manager};
    pthread_t stopper;
    assert_int_equal(pthread_create(&stopper, NULL, stop_once_answered, args), 0);
    run(&f);
    pthread_join(stopper, NULL);
    assert_string_equal(cr_buf_text(&f.seen), "");
    close_fixture(&f);
    fake_api_stop(&api);
}

/* --- leading --- */

#define STATUS(reason) "{\"kind\":\"Status\",\"reason\":\"" reason "\",\"message\":\"told so\"}"
#define LEASE          "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"%d\"},\"spec\":{\"holderIdentity\":\"%s\"}}"

static struct cr_leader_election *new_election(struct cr_client *client, int retry_ms)
{
    struct cr_error err = {0};
    const struct cr_leader_election_options options = {.ns = "ns", .name = "lease", .times = {5000, 4000, retry_ms}};
    struct cr_leader_election *election = cr_leader_election_new(client, NULL, &options, &err);
    if (!election)
        fail_msg("%s", err.text);
    return election;
}

/* As open_fixture, for an election that must be there before the manager. */
static struct cr_leader_election *open_candidate(struct fixture *f, int port, int retry_ms, struct cr_metrics *metrics)
{
    *f = (struct fixture){.until = NULL};
    pthread_mutex_init(&f->lock, NULL);
    f->loop = cr_loop_new();
    f->client = fake_client(f->loop, port);
    const struct cr_manager_options options = {.workers = 1, .election = new_election(f->client, retry_ms)};
    f->manager = cr_manager_new(f->loop, f->client, metrics, &options);
    cr_manager_set_reconciler(f->manager, reconcile, f);
    return options.election;
}

static void no_worker_starts_before_it_leads(void **state)
{
    (void)state;
    cr_autofree char *held = cr_asprintf(LEASE, 1, "other");
    const struct fake_answer script[] = {{.expect = "GET ", .body = held}};
    struct fake_api api;
    struct fixture f;
    assert_true(fake_api_start(&api, script, 1));
    struct cr_leader_election *election = open_candidate(&f, api.port, 100, NULL);
    cr_queue_add(cr_manager_queue(f.manager), "done");
    void *args[] = {&api, f.manager};
    pthread_t stopper;
    assert_int_equal(pthread_create(&stopper, NULL, stop_once_answered, args), 0);
    run(&f);
    pthread_join(stopper, NULL);
    assert_string_equal(cr_buf_text(&f.seen), "");
    cr_manager_free(cr_steal(&f.manager));
    cr_leader_election_free(election);
    close_fixture(&f);
    fake_api_stop(&api);
}

struct catching_up {
    struct cr_manager *manager;
    struct cr_metrics *metrics;
    struct cr_timer *timer;
    atomic_int reconciles;
    int when_told; /* so many reconciles there were */
};

static bool records_the_second_time(void *arg, const char *key, struct cr_reconcile_result *result,
                                    struct cr_error *err)
{
    struct catching_up *found = arg;
    (void)key;
    (void)err;
    result->recorded = atomic_fetch_add(&found->reconciles, 1) > 0;
    result->requeue_after_ms = result->recorded ? 0 : 50;
    return true;
}

static void look_whether_it_is_told(void *arg)
{
    struct catching_up *found = arg;
    CR_CLEANUP(cr_buf) struct cr_buf page = CR_BUF_INIT(0);
    cr_metrics_write(found->metrics, &page);
    if (!strstr(cr_buf_text(&page), "certroll_leader_caught_up{name=\"lease\"} 1")) {
        cr_timer_arm(found->timer, 1);
        return;
    }
    found->when_told = atomic_load(&found->reconciles);
    cr_manager_stop(found->manager);
}

static void a_leader_has_caught_up_when_what_it_found_is_on_record(void **state)
{
    (void)state;
    struct fake_answer script[] = {{.expect = "GET ", .status = 404, .body = STATUS("NotFound")},
                                   {.expect = "POST "},
                                   {.expect = "events", .has = "became leader", .body = "{}"},
                                   {.expect = "events", .has = "stopped leading", .body = "{}"},
                                   {.expect = "PATCH "}};
    struct fake_api api;
    struct fixture f;
    assert_true(fake_api_start(&api, script, cr_array_len(script)));
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    struct cr_leader_election *election = open_candidate(&f, api.port, 2000, metrics);
    cr_autofree char *ours = cr_asprintf(LEASE, 1, cr_leader_election_identity(election));
    script[1].body = script[4].body = ours;
    struct catching_up found = {.manager = f.manager, .metrics = metrics};
    cr_manager_set_reconciler(f.manager, records_the_second_time, &found);
    cr_queue_add(cr_manager_queue(f.manager), "ns/name");
    found.timer = cr_timer_new(f.loop, look_whether_it_is_told, &found);
    cr_timer_arm(found.timer, 1);
    run(&f);
    cr_timer_free(found.timer);
    assert_int_equal(found.when_told, 2); /* not by the first, which has written nothing yet */
    CR_CLEANUP(cr_buf) struct cr_buf page = CR_BUF_INIT(0);
    cr_metrics_write(metrics, &page); /* it has stopped */
    assert_non_null(strstr(cr_buf_text(&page), "certroll_leader_caught_up{name=\"lease\"} 0"));
    assert_int_equal(atomic_load(&api.answered), cr_array_len(script));
    cr_manager_free(cr_steal(&f.manager));
    cr_leader_election_free(election);
    close_fixture(&f);
    fake_api_stop(&api);
}

static void who_loses_the_lease_ends_and_says_so(void **state)
{
    (void)state;
    cr_autofree char *other = cr_asprintf(LEASE, 2, "other");
    struct fake_answer script[] = {
        {.expect = "GET ", .status = 404, .body = STATUS("NotFound")},
        {.expect = "POST "},
        {.expect = "events", .body = "{}"},
        {.expect = "PATCH ", .status = 409, .body = STATUS("Conflict")},
        {.expect = "GET ", .body = other},
    };
    struct fake_api api;
    struct fixture f;
    struct cr_error err = {0};
    assert_true(fake_api_start(&api, script, cr_array_len(script)));
    struct cr_leader_election *election = open_candidate(&f, api.port, 100, NULL);
    cr_autofree char *ours = cr_asprintf(LEASE, 1, cr_leader_election_identity(election));
    script[1].body = ours;
    cr_queue_add(cr_manager_queue(f.manager), "done");
    struct cr_timer *deadline = cr_timer_new(f.loop, give_up, f.manager);
    cr_timer_arm(deadline, 20 * 1000);
    assert_false(cr_manager_run(f.manager, &err));
    cr_timer_free(deadline);
    assert_int_equal(err.kind, CR_ERR_CONFLICT);
    assert_true(cr_leader_election_lost(election));
    assert_string_equal(cr_buf_text(&f.seen), "done ");
    assert_int_equal(atomic_load(&api.answered), 5);
    cr_manager_free(cr_steal(&f.manager));
    cr_leader_election_free(election);
    close_fixture(&f);
    fake_api_stop(&api);
}

static void an_address_in_use_is_reported_and_nothing_has_started(void **state)
{
    (void)state;
    struct fake_api api;
    struct fixture f;
    struct cr_error err = {0};
    assert_true(fake_api_start(&api, NULL, 0));
    cr_autofree char *address = cr_asprintf("127.0.0.1:%d", api.port);
    open_fixture(&f, 1, &(struct cr_manager_options){.metrics_address = address}, NULL);
    assert_false(cr_manager_run(f.manager, &err));
    assert_non_null(strstr(err.text, address));
    close_fixture(&f);
    fake_api_stop(&api);
}

static void terminate_self(void *arg)
{
    (void)arg;
    raise(SIGTERM);
}

static void a_signal_stops_it(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 1, &(struct cr_manager_options){.workers = 3}, NULL);
    cr_loop_post(f.loop, terminate_self, NULL);
    int64_t start = cr_clock_monotonic_ms();
    run(&f);
    assert_true(cr_clock_monotonic_ms() - start < 15 * 1000);
    close_fixture(&f);
}

static void one_that_never_ran_leaves_nothing(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 1, &(struct cr_manager_options){0}, NULL);
    const struct cr_informer_options options = {.watch = {.resource = &cr_res_pods}};
    cr_manager_add_informer(f.manager, cr_informer_new(f.client, f.loop, &options));
    cr_queue_add(cr_manager_queue(f.manager), "x");
    close_fixture(&f);
    cr_manager_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_result_decides_when_a_key_comes_again),
        cmocka_unit_test(what_a_person_must_heal_is_not_tried_at_the_network_s_pace),
        cmocka_unit_test(work_that_outlives_the_grace_has_its_requests_cancelled),
        cmocka_unit_test(work_within_the_grace_is_finished),
        cmocka_unit_test(no_worker_starts_before_all_caches_are_in_sync),
        cmocka_unit_test(a_refused_cache_holds_up_only_what_needs_it),
        cmocka_unit_test(who_needs_a_cache_alone_waits_for_it_alone),
        cmocka_unit_test(an_informer_that_goes_holds_nothing_up_and_is_shown_no_more),
        cmocka_unit_test(controllers_have_queues_and_workers_of_their_own_and_end_together),
        cmocka_unit_test(no_controller_starts_before_all_caches_are_in_sync),
        cmocka_unit_test(no_worker_starts_before_it_leads),
        cmocka_unit_test(a_leader_has_caught_up_when_what_it_found_is_on_record),
        cmocka_unit_test(who_loses_the_lease_ends_and_says_so),
        cmocka_unit_test(an_address_in_use_is_reported_and_nothing_has_started),
        cmocka_unit_test(a_signal_stops_it),
        cmocka_unit_test(one_that_never_ran_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
