/* What a tool that waits until a policy is healthy sees of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/scene.h"

/* As kstatus reads the conditions. */
enum health { CURRENT, IN_PROGRESS, FAILED };
static const char *const names[] = {[CURRENT] = "Current", [IN_PROGRESS] = "InProgress", [FAILED] = "Failed"};

static const struct cr_condition *get(const struct scene *s, const char *type)
{
    return cr_status_condition_get(&s->plan.status, type);
}

static enum health health_of(const struct scene *s)
{
    bool reconciling = get(s, "Reconciling")->status;
    bool stalled = get(s, "Stalled")->status;
    assert_false(reconciling && stalled);
    if (stalled)
        return FAILED;
    return reconciling || !get(s, "Ready")->status ? IN_PROGRESS : CURRENT;
}

static void assert_health(const struct scene *s, enum health expected, const char *reason, const char *what)
{
    enum health found = health_of(s);
    const struct cr_condition *why = get(s, found == FAILED ? "Stalled" : "Reconciling");
    if (found != expected || !cr_streq(why->reason, reason))
        fail_msg("%s: %s by %s (%s), not %s by %s", what, names[found], why->reason, why->message, names[expected],
                 reason);
    assert_true(*why->message);
}

static void a_change_is_in_progress_until_its_pods_have_it(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{coalesce: 0s}", 1);
    scene_see_all(s, "1");
    scene_due(s);
    assert_health(s, CURRENT, "Idle", "at rest");
    scene_change(s, "2");
    scene_due(s);
    assert_health(s, IN_PROGRESS, "InProgress", "to be restarted");
    scene_apply_restart(s);
    for (size_t i = 0; i < 3; i++)
        scene_pod(s, 0, i);
    scene_plan(s);
    assert_health(s, IN_PROGRESS, "InProgress", "restarted, and not verified");
    scene_record(s);
    s->now_ms += SECOND;
    scene_see_all(s, "2");
    scene_due(s);
    assert_true(get(s, "Converged")->status);
    assert_health(s, CURRENT, "Idle", "verified");
}

static void what_the_user_has_arranged_is_healthy_and_what_must_be_mended_is_not(void **state)
{
    (void)state;
    static const struct {
        const char *restart;
        enum health health;
        const char *reason;
        bool suspend, plan_mode, budget;
        int healthy, needed, allowed, after_s;
    } rows[] = {
        {"{coalesce: 0s}", IN_PROGRESS, "InProgress"},
        {"{coalesce: 10m}", IN_PROGRESS, "InProgress"},
        {"{coalesce: 0s, windows: [{schedule: '0 2 * * *', duration: 1h}]}", CURRENT, "Waiting"},
        {"{coalesce: 0s, method: Never}", CURRENT, "Waiting"},
        {"{coalesce: 0s, method: Never}", CURRENT, "Waiting", .after_s = 3600},
        {"{coalesce: 0s}", CURRENT, "Waiting", .suspend = true},
        {"{coalesce: 0s}", CURRENT, "Waiting", .suspend = true, .after_s = 3600},
        {"{coalesce: 0s}", CURRENT, "Waiting", .plan_mode = true, .after_s = 3600},
        {"{coalesce: 0s, method: Evict}", IN_PROGRESS, "InProgress", .budget = true, .healthy = 2, .needed = 2},
        {"{coalesce: 0s, method: Evict}", FAILED, "Budget", .budget = true, .healthy = 3, .needed = 3},
    };
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        CR_CLEANUP(scene) struct scene *s = scene_new(rows[i].restart, 1);
        if (rows[i].budget)
            scene_budget(s, 0, "{all: 'yes'}", rows[i].healthy, rows[i].needed, rows[i].allowed);
        scene_see_all(s, "1");
        scene_change(s, "2");
        s->policy->suspend = rows[i].suspend;
        s->policy->mode = rows[i].plan_mode ? CR_MODE_PLAN : CR_MODE_ENFORCE;
        scene_due(s);
        scene_record(s);
        s->now_ms += rows[i].after_s * (int64_t)SECOND;
        scene_due(s);
        cr_autofree char *what = cr_asprintf("row %zu", i);
        assert_health(s, rows[i].health, rows[i].reason, what);
    }
}

static void pods_that_are_never_seen_with_it_must_be_looked_at(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{coalesce: 0s}", 1);
    scene_see_all(s, "1");
    scene_change(s, "2");
    scene_due(s);
    scene_apply_restart(s);
    for (size_t i = 0; i < 3; i++)
        scene_pod(s, 0, i);
    scene_plan(s);
    scene_record(s);
    s->now_ms += 3600 * SECOND;
    scene_due(s);
    assert_health(s, FAILED, "NotVerified", "an hour later");
}

static void what_is_missing_may_still_come(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{coalesce: 0s}", 1);
    scene_see_all(s, "1");
    struct cr_world_secret there = s->secret;
    s->secret = (struct cr_world_secret){0};
    scene_due(s);
    assert_health(s, IN_PROGRESS, "NoSecret", "no Secret");
    s->secret = there;
    s->consumers[0].found = false;
    scene_due(s);
    assert_health(s, IN_PROGRESS, "NotFound", "no workload");
}

static void broken_material_must_be_mended(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{coalesce: 0s}", 1);
    scene_see_all(s, "1");
    scene_due(s);
    scene_record(s);
    s->secret = (struct cr_world_secret){.found = true,
                                         .resource_version = "2",
                                         .problem = CR_MATERIAL_KEY_MISMATCH,
                                         .problem_text = "tls.key does not belong to tls.crt"};
    scene_due(s);
    assert_health(s, FAILED, "KeyMismatch", "a key that does not match");
}

static void a_rollout_that_failed_must_be_mended(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{coalesce: 0s}", 1);
    scene_see_all(s, "1");
    scene_change(s, "2");
    scene_due(s);
    scene_apply_restart(s);
    scene_fail_rollout(s);
    scene_plan(s);
    assert_health(s, FAILED, "RolloutFailed", "a rollout that failed");
}

static void a_policy_that_nothing_is_planned_for_is_stalled(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{coalesce: 0s}", 1);
    scene_due(s);
    CR_CLEANUP(cr_policy_status) struct cr_policy_status out = {0};
    cr_plan_invalid(&s->plan.status, 4, "spec.secrets: too many", s->now_ms, &out);
    assert_true(cr_status_condition_get(&out, "Stalled")->status);
    assert_string_equal(cr_status_condition_get(&out, "Stalled")->reason, "Invalid");
    assert_false(cr_status_condition_get(&out, "Reconciling")->status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_is_in_progress_until_its_pods_have_it),
        cmocka_unit_test(what_the_user_has_arranged_is_healthy_and_what_must_be_mended_is_not),
        cmocka_unit_test(pods_that_are_never_seen_with_it_must_be_looked_at),
        cmocka_unit_test(what_is_missing_may_still_come),
        cmocka_unit_test(broken_material_must_be_mended),
        cmocka_unit_test(a_rollout_that_failed_must_be_mended),
        cmocka_unit_test(a_policy_that_nothing_is_planned_for_is_stalled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
