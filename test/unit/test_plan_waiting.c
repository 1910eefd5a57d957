/* When a plan that waits asks to be made again: rarely where an event ends the wait, exactly where only time does. */
#include "base/clock.h"
#include "evidence/evidence.h"
#include "policy/rules/look_again.h"
#include "support/scene.h"

enum { MINUTE = 60 * SECOND, HOUR = 60 * MINUTE };

/* --- what an event ends --- */

/* The change was recorded a moment after that minute of rest. */
static int64_t since_ms(const struct scene *s)
{
    return scene_status(s, 0)->since_ms;
}

static void assert_pauses(struct scene *s, int64_t first_ms, int64_t (*pause_ms)(const struct cr_plan *plan))
{
    static const int64_t waits_ms[] = {10 * SECOND, 3 * MINUTE, 7 * MINUTE, HOUR, 100 * HOUR};
    scene_due(s);
    int64_t begun_ms = since_ms(s);
    for (size_t i = 0; i < cr_array_len(waits_ms); i++) {
        s->now_ms = begun_ms + waits_ms[i];
        int64_t expected_ms = cr_look_again_ms(first_ms, waits_ms[i]);
        int64_t found_ms = pause_ms(scene_due(s));
        if (found_ms != expected_ms)
            fail_msg("after %lld s: %lld ms, not %lld", (long long)waits_ms[i] / SECOND, (long long)found_ms,
                     (long long)expected_ms);
    }
}

static int64_t restart_pause_ms(const struct cr_plan *plan)
{
    return plan->restart_after_ms;
}

static void who_waits_for_a_budget_looks_at_it_less_and_less(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    scene_workload(s, 0, 3, "strategy: {rollingUpdate: {maxUnavailable: 1}}");
    scene_budget(s, 0, "{all: 'yes'}", 3, 3, 0);
    scene_change(s, "2");
    scene_due(s);
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_BUDGET);
    assert_pauses(s, MINUTE, restart_pause_ms);
    s->view.unseen = "nothing was heard of it"; /* no event says that this is over */
    assert_int_equal(scene_due(s)->restart_after_ms, MINUTE);
}

/* As acts.c does. */
static void patch(struct scene *s)
{
    assert_int_equal(s->plan.restarts_len, 1);
    const struct cr_plan_restart *restart = &s->plan.restarts[0];
    struct cr_json *workload = s->workloads[restart->consumer];
    struct cr_json *metadata = cr_json_edit(cr_json_edit(cr_json_edit(workload, "spec"), "template"), "metadata");
    struct cr_json *annotations = cr_json_copy(restart->annotations);
    char at[CR_TIME_TEXT];
    cr_time_format(s->now_ms, at);
    cr_json_set_string(annotations, "kubectl.kubernetes.io/restartedAt", at);
    cr_json_set(metadata, "annotations", annotations);
    cr_json_set_int(cr_json_edit(workload, "metadata"), "generation", 2);
}

/* Makes each plan when the one before asked for it. Returns how many it took until then. */
static int wait_until(struct scene *s, int64_t end_ms, bool (*over)(const struct scene *s))
{
    int plans = 0;
    for (;; plans++) {
        scene_due(s);
        scene_record(s);
        if (s->now_ms >= end_ms || (over && over(s)))
            return plans;
        assert_true(s->plan.requeue_after_ms > 0);
        s->now_ms += s->plan.requeue_after_ms;
    }
}

static void a_rollout_that_does_not_end_costs_few_plans(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    scene_change(s, "2");
    scene_due(s);
    patch(s);
    int plans = wait_until(s, s->now_ms + 24 * HOUR, NULL);
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_RESTARTING);
    assert_in_range(plans, 24 * HOUR / CR_LOOK_AGAIN_MOST_MS, 24 * HOUR / CR_LOOK_AGAIN_MOST_MS + 20);
}

/* It takes up new material by itself. */
static void reload(struct scene *s, int64_t max_delay_ms)
{
    for (int role = 0; role < CR_ROLE_COUNT; role++)
        s->policy->consumers[0].reload[role] =
            (struct cr_reload_override){.set = true, .method = CR_METHOD_WATCH, .max_delay_ms = max_delay_ms};
}

/* Its reload was seen not to happen, and a window holds the restart that would mend it. */
static void pods_are_seldom_asked_while_their_restart_is_held_for_hours(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    scene_workload(s, 0, 3, "paused: true");
    reload(s, 0);
    scene_change(s, "2");
    int asked = 0;
    for (int64_t end_ms = s->now_ms + 10 * HOUR; s->now_ms < end_ms; s->now_ms += s->plan.requeue_after_ms) {
        scene_due(s);
        scene_record(s);
        if (s->plan.probes_len) {
            asked += s->now_ms >= end_ms - 5 * HOUR;
            scene_see_all(s, "1");
            scene_due(s);
        }
        assert_true(s->plan.requeue_after_ms > 0);
    }
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_PAUSED);
    assert_in_range(asked, 59, 61);
}

/* --- what only time ends --- */

static bool has_failed(const struct scene *s)
{
    return scene_status(s, 0)->state == CR_CONSUMER_FAILED;
}

static void the_end_of_a_kind_without_a_deadline_is_not_missed(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    cr_strset(&s->policy->consumers[0].kind, "StatefulSet");
    scene_change(s, "2");
    scene_due(s);
    patch(s);
    int64_t restarted_ms = s->now_ms;
    wait_until(s, restarted_ms + HOUR, has_failed);
    assert_int_equal(s->now_ms, restarted_ms + 10 * MINUTE);
}

static bool has_settled(const struct scene *s)
{
    return !s->plan.status.secrets[0].pending.set;
}

static void what_is_inferred_by_time_is_inferred_at_that_time(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    reload(s, 7 * SECOND);
    s->policy->consumers[0].verify.timeout_ms = 5 * MINUTE;                         /* the deadline comes later */
    s->policy->consumers[0].verify.endpoints[0].secret_name = cr_strdup("another"); /* nothing is seen of this one */
    scene_change(s, "2");
    int64_t begun_ms = since_ms(s);
    wait_until(s, begun_ms + HOUR, has_settled);
    assert_int_equal(s->now_ms, begun_ms + CR_KUBELET_REFRESH_MS + 7 * SECOND);
}

static void a_pod_that_was_evicted_in_vain_is_looked_at_a_minute_later(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    scene_change(s, "2");
    scene_due(s);
    assert_int_equal(s->plan.evictions_len, 1);
    s->pods[0][s->plan.evictions[0].pod].evicted_ms = s->now_ms;
    s->now_ms += 50 * SECOND;
    assert_in_range(scene_due(s)->requeue_after_ms, 1, 10 * SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_for_a_budget_looks_at_it_less_and_less),
        cmocka_unit_test(a_rollout_that_does_not_end_costs_few_plans),
        cmocka_unit_test(pods_are_seldom_asked_while_their_restart_is_held_for_hours),
        cmocka_unit_test(the_end_of_a_kind_without_a_deadline_is_not_missed),
        cmocka_unit_test(what_is_inferred_by_time_is_inferred_at_that_time),
        cmocka_unit_test(a_pod_that_was_evicted_in_vain_is_looked_at_a_minute_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
