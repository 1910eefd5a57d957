/* Events are the difference between the status on record and the plan's: each is emitted once, when it begins. */
#include "policy/rules/plan.h"

#include "support/scene.h"

static size_t count(const struct scene *s, const char *reason)
{
    size_t found = 0;
    for (size_t i = 0; i < s->plan.events_len; i++)
        found += cr_streq(s->plan.events[i].reason, reason);
    return found;
}

/* Plans and records some times. Returns how often an Event of that reason was to be emitted. */
static size_t count_in(struct scene *s, int plans, const char *reason)
{
    size_t found = 0;
    for (int i = 0; i < plans; i++) {
        scene_plan(s);
        found += count(s, reason);
        scene_record(s);
        s->now_ms += SECOND;
    }
    return found;
}

static void a_rotation_is_said_when_it_begins_and_when_it_ends(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{coalesce: 0s}", 1);
    assert_int_equal(count_in(s, 3, "ChangeSeen"), 0);
    scene_material(s, "2");
    assert_int_equal(count_in(s, 3, "ChangeSeen"), 1);
    scene_plan(s);
    char rotation[sizeof s->plan.events[0].rotation];
    snprintf(rotation, sizeof rotation, "%s", s->plan.status.secrets[0].pending.id);
    scene_apply_restart(s);
    for (size_t i = 0; i < 3; i++)
        scene_pod(s, 0, i);
    scene_plan(s);
    scene_record(s);
    s->now_ms += SECOND;
    scene_see_all(s, "2");
    scene_plan(s);
    assert_int_equal(count(s, "RotationConverged"), 1);
    for (size_t i = 0; i < s->plan.events_len; i++)
        if (cr_streq(s->plan.events[i].reason, "RotationConverged"))
            assert_string_equal(s->plan.events[i].rotation, rotation);
    scene_record(s);
    assert_int_equal(count_in(s, 3, "RotationConverged"), 0);
}

/* A broken Secret is what holds the consumer then; the rollout is said once more when that is over. */
static void a_failed_rollout_is_not_repeated_behind_a_broken_secret(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{coalesce: 0s}", 1);
    scene_change(s, "2");
    scene_plan(s);
    scene_apply_restart(s);
    scene_fail_rollout(s);
    assert_int_equal(count_in(s, 3, "RolloutFailed"), 1);
    s->secret.problem = CR_MATERIAL_INCOMPLETE;
    s->secret.problem_text = "tls.key is missing";
    assert_int_equal(count_in(s, 3, "RolloutFailed"), 0);
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_BLOCKED);
    scene_material(s, "2");
    assert_int_equal(count_in(s, 3, "RolloutFailed"), 1);
}

/* Which budget it waits for, and whether it may pass by itself, is the same wait. */
static void a_wait_for_budgets_is_said_once(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{coalesce: 0s}", 1);
    scene_workload(s, 0, 3, "strategy: {rollingUpdate: {maxUnavailable: 1}}");
    scene_change(s, "2");
    scene_budget(s, 0, "{app: web}", 3, 3, 0);
    assert_int_equal(count_in(s, 3, "WaitsForBudget"), 1);
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_BUDGET);
    scene_budget(s, 0, "{app: web}", 2, 2, 0);
    assert_int_equal(count_in(s, 3, "WaitsForBudget"), 0);
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_BUDGET_WAIT);
}

static void in_mode_plan_each_change_is_said_once(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{coalesce: 0s}", 1);
    s->policy->mode = CR_MODE_PLAN;
    scene_change(s, "2");
    assert_int_equal(count_in(s, 3, "RestartPlanned"), 0); /* with the change */
    scene_material(s, "3");
    assert_int_equal(count_in(s, 3, "RestartPlanned"), 1);
    assert_non_null(strstr(scene_status(s, 0)->reason, "Would roll"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rotation_is_said_when_it_begins_and_when_it_ends),
        cmocka_unit_test(a_failed_rollout_is_not_repeated_behind_a_broken_secret),
        cmocka_unit_test(a_wait_for_budgets_is_said_once),
        cmocka_unit_test(in_mode_plan_each_change_is_said_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
