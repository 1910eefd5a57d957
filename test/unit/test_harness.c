#include "runtime/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "support/fakeapi.h"
#include "support/yamltext.h"

enum { EVENTS = 2, POLL_MS = 5, PATIENCE_MS = 20 * 1000 };

/* A controller with one worker; its key "ns/a" brings two Events, and the chore ends the manager once they are sent. */
struct fixture {
    struct fake_api api;
    struct cr_loop *loop;
    struct cr_client *client;
    struct cr_metrics *metrics;
    struct cr_manager *manager;
    struct cr_harness *harness;
    struct cr_buf seen;        /* keys that were reconciled */
    size_t answered_before_b;  /* requests, when "ns/b" was reconciled */
    const char *cache_version; /* that the cache has of every object; NULL: it has none */
};

static void emit(struct fixture *f, const char *reason)
{
    const struct cr_event event = {.api_version = "v1", .kind = "Pod", .ns = "ns", .name = "web", .reason = reason};
    cr_recorder_emit(cr_harness_recorder(f->harness), &event);
}

static bool reconcile(void *arg, const char *key, struct cr_reconcile_result *result, struct cr_error *err)
{
    struct fixture *f = arg;
    (void)result;
    (void)err;
    cr_buf_printf(&f->seen, "%s ", key);
    if (strcmp(key, "ns/a") == 0) {
        emit(f, "First");
        emit(f, "Second");
    } else {
        f->answered_before_b = atomic_load(&f->api.answered);
    }
    return true;
}

static void end_once_sent(void *arg);

static const struct cr_chore chores[] = {{"//end", end_once_sent}, {0}};

static void end_once_sent(void *arg)
{
    struct fixture *f = arg;
    if (atomic_load(&f->api.answered) < EVENTS)
        cr_queue_add_low(cr_harness_queue(f->harness), chores[0].key, POLL_MS);
    else
        cr_manager_stop(f->manager);
}

static struct cr_json *object(const char *version)
{
    struct cr_json *json = test_yaml("{metadata: {namespace: ns, name: web, uid: u}}");
    cr_json_set_string(cr_json_edit(json, "metadata"), "resourceVersion", version);
    return json;
}

static struct cr_packed *look(void *arg, const char *kind, const char *ns, const char *name)
{
    const struct fixture *f = arg;
    (void)kind;
    (void)ns;
    (void)name;
    if (!f->cache_version)
        return NULL;
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_snapshot_new(object(f->cache_version));
    CR_CLEANUP(cr_store) struct cr_store *store = cr_store_new();
    return cr_store_pack(store, snapshot);
}

/* name: of the controller. */
static void open_fixture(struct fixture *f, const char *name, const struct fake_answer *script, size_t len)
{
    *f = (struct fixture){0};
    assert_true(fake_api_start(&f->api, script, len));
    f->loop = cr_loop_new();
    f->client = fake_client(f->loop, f->api.port);
    f->metrics = cr_metrics_new();
    f->manager = cr_manager_new(f->loop, f->client, f->metrics, &(struct cr_manager_options){.workers = 1});
    f->harness = cr_harness_new(&(struct cr_harness_options){.manager = f->manager,
                                                             .client = f->client,
                                                             .metrics = f->metrics,
                                                             .name = name,
                                                             .workers = 1,
                                                             .what = "pod",
                                                             .chores = chores,
                                                             .reconcile = reconcile,
                                                             .look = look,
                                                             .arg = f});
}

static void close_fixture(struct fixture *f)
{
    cr_manager_free(f->manager);
    cr_harness_free(f->harness);
    cr_metrics_free(f->metrics);
    cr_client_free(f->client);
    cr_loop_free(f->loop);
    fake_api_stop(&f->api);
    cr_buf_dispose(&f->seen);
    if (f->api.problem[0])
        fail_msg("%s", f->api.problem);
}

static void give_up(void *manager)
{
    cr_manager_stop(manager);
}

static void run(struct fixture *f)
{
    struct cr_error err = {0};
    struct cr_timer *deadline = cr_timer_new(f->loop, give_up, f->manager);
    cr_timer_arm(deadline, PATIENCE_MS);
    if (!cr_manager_run(f->manager, &err))
        fail_msg("%s", err.text);
    cr_timer_free(deadline);
}

static void events_are_sent_behind_other_work_and_chores_are_no_objects(void **state)
{
    (void)state;
    static const char *const names[] = {NULL, "other"};
    static const struct fake_answer script[EVENTS] = {{.has = "\"reason\":\"First\"", .body = "{}"},
                                                      {.has = "\"reason\":\"Second\"", .body = "{}"}};
    for (size_t i = 0; i < cr_array_len(names); i++) {
        struct fixture f;
        open_fixture(&f, names[i], script, EVENTS);
        assert_true((cr_harness_queue(f.harness) == cr_manager_queue(f.manager)) == !names[i]);
        cr_queue_add(cr_harness_queue(f.harness), "ns/a");
        cr_queue_add(cr_harness_queue(f.harness), "ns/b");
        cr_queue_add(cr_harness_queue(f.harness), "/events"); /* cluster-scoped, of that name */
        cr_queue_add_low(cr_harness_queue(f.harness), chores[0].key, 0);
        run(&f);
        assert_string_equal(cr_buf_text(&f.seen), "ns/a /events ns/b ");
        assert_int_equal(f.answered_before_b, 0);
        assert_int_equal(atomic_load(&f.api.answered), EVENTS);
        close_fixture(&f);
    }
}

static bool has_counted(const struct fixture *f, const char *line)
{
    CR_CLEANUP(cr_buf) struct cr_buf page = CR_BUF_INIT(0);
    cr_metrics_write(f->metrics, &page);
    return strstr(cr_buf_text(&page), line) != NULL;
}

/* When an own write counts as seen is test_own_writes.c's. */
static void a_key_waits_for_its_own_writes_and_for_no_longer_than_it_makes_sense(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, NULL, NULL, 0);
    struct cr_own_writes *own = cr_harness_own_writes(f.harness);
    CR_CLEANUP(cr_json) struct cr_json *written = object("100");
    assert_false(cr_harness_cache_lags(f.harness, "ns/web"));
    f.cache_version = "99";
    cr_own_writes_add(own, "ns/web", "Pod", written, cr_clock_monotonic_ms());
    assert_true(cr_harness_cache_lags(f.harness, "ns/web"));
    assert_false(cr_harness_cache_lags(f.harness, "ns/another"));
    assert_true(has_counted(&f, "certroll_stale_cache_total{result=\"waited\"} 1\n"));
    f.cache_version = "100";
    assert_false(cr_harness_cache_lags(f.harness, "ns/web"));
    f.cache_version = "99";
    cr_own_writes_add(own, "ns/web", "Pod", written, cr_clock_monotonic_ms() - CR_OWN_WRITES_MAX_MS);
    assert_false(cr_harness_cache_lags(f.harness, "ns/web"));
    assert_true(has_counted(&f, "certroll_stale_cache_total{result=\"given_up\"} 1\n"));
    close_fixture(&f);
}

static void the_soonest_time_counts_and_of_two_equal_ones_that_which_is_not_low(void **state)
{
    (void)state;
    static const struct {
        struct {
            int64_t after_ms;
            bool low;
        } asked[3];
        struct cr_reconcile_result result;
    } cases[] = {
        {{{0}}, {0}},
        {{{0, true}}, {0}},
        {{{30}}, {30, false}},
        {{{30, true}}, {30, true}},
        {{{30}, {20}, {0}}, {20, false}},
        {{{20}, {30}}, {20, false}},
        {{{30}, {20, true}}, {20, true}},
        {{{20, true}, {30}}, {20, true}},
        {{{30, true}, {20}}, {20, false}},
        {{{20}, {20, true}}, {20, false}},
        {{{20, true}, {20}}, {20, false}},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_reconcile_result result = {.recorded = true};
        for (size_t k = 0; k < cr_array_len(cases[i].asked); k++) {
            if (cases[i].asked[k].low)
                cr_requeue_low(&result, cases[i].asked[k].after_ms);
            else
                cr_requeue(&result, cases[i].asked[k].after_ms);
        }
        if (result.requeue_after_ms != cases[i].result.requeue_after_ms ||
            result.low_priority != cases[i].result.low_priority || !result.recorded)
            fail_msg("%zu: %lld, %d", i, (long long)result.requeue_after_ms, result.low_priority);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_sent_behind_other_work_and_chores_are_no_objects),
        cmocka_unit_test(a_key_waits_for_its_own_writes_and_for_no_longer_than_it_makes_sense),
        cmocka_unit_test(the_soonest_time_counts_and_of_two_equal_ones_that_which_is_not_low),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
