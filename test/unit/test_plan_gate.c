/* The order of the gates: of all that hold a restart, the first one of the table is what a person reads. */
#include "policy/rules/plan.h"

#include "support/scene.h"

/* Another minute than one from 02:00 to 03:00. */
static const char restart[] = "{windows: [{schedule: '0 2 * * *', duration: 1h}], coalesce: 1m, "
                              "breaker: {restarts: 1, within: 1h}}";

struct held {
    struct scene *s;
    struct cr_world_limits limits;
};

static void plan(struct held *held)
{
    struct scene *s = held->s;
    CR_CLEANUP(cr_tzif) struct cr_tzif *utc = cr_tzif_new_utc();
    const struct cr_tzif *const zones[] = {utc};
    struct cr_world world = {.policy = s->policy,
                             .status = &s->status,
                             .secrets = &s->secret,
                             .consumers = s->consumers,
                             .catalogue = s->catalogue,
                             .zones = zones,
                             .budgets = s->view,
                             .limits = held->limits,
                             .now_ms = s->now_ms};
    cr_plan_dispose(&s->plan);
    cr_plan_make(&world, &s->plan);
    gates_check(&s->plan);
}

static void record_all(struct held *held)
{
    for (int i = 0; i < 5; i++) {
        plan(held);
        scene_record(held->s);
    }
}

/* --- what lifts each gate --- */

static void keep(struct held *held)
{
    held->s->policy->deleting = false;
}

static void resume(struct held *held)
{
    held->s->policy->suspend = false;
}

static void enforce(struct held *held)
{
    held->s->policy->mode = CR_MODE_ENFORCE;
}

static void allow(struct held *held)
{
    held->s->policy->restart.method = CR_RESTART_AUTO;
}

static void unpause(struct held *held)
{
    cr_json_set_bool(cr_json_edit(held->s->workloads[0], "spec"), "paused", false);
}

static void open_window(struct held *held)
{
    held->s->policy->restart.override_window_ms = INT64_MAX / 2; /* the leaf in use ends soon enough */
}

static void mend_breaker(struct held *held)
{
    held->s->status.consumers[0].restarts.len = 0;
}

static void finish_before(struct held *held)
{
    cr_strvec_dispose(&held->s->policy->consumers[0].after);
}

static void free_budget(struct held *held)
{
    held->s->view.len = 0;
}

static void wait_a_minute(struct held *held)
{
    held->s->now_ms += 60 * SECOND;
}

static void mend_other(struct held *held)
{
    held->s->consumers[1].claim.unanswered = false;
}

static void know_limits(struct held *held)
{
    held->limits.unknown = false;
}

static void hold_by_all(struct held *held)
{
    struct scene *s = held->s;
    s->policy->deleting = s->policy->suspend = true;
    s->policy->mode = CR_MODE_PLAN;
    s->policy->restart.method = CR_RESTART_NEVER;
    cr_json_set_bool(cr_json_edit(s->workloads[0], "spec"), "paused", true);
    s->status.consumers[0].restarts.at_ms[0] = s->now_ms - SECOND;
    s->status.consumers[0].restarts.len = 1;
    cr_strvec_add(&s->policy->consumers[0].after, "api");
    scene_budget(s, 0, "{app: web}", 3, 3, 0);
    s->consumers[1].claim.unanswered = true;
    held->limits.unknown = true;
}

static bool is_restarted(const struct scene *s, size_t consumer)
{
    for (size_t i = 0; i < s->plan.restarts_len; i++)
        if (s->plan.restarts[i].consumer == consumer)
            return true;
    return false;
}

static void the_first_gate_of_the_table_is_said(void **state)
{
    static const struct {
        enum cr_hold hold;
        void (*lift)(struct held *held);
    } order[] = {
        {CR_HOLD_DELETING, keep},
        {CR_HOLD_SUSPENDED, resume},
        {CR_HOLD_PLAN_MODE, enforce},
        {CR_HOLD_RESTART_NEVER, allow},
        {CR_HOLD_PAUSED, unpause},
        {CR_HOLD_WINDOW, open_window},
        {CR_HOLD_CIRCUIT_BREAKER, mend_breaker},
        {CR_HOLD_ORDER, finish_before},
        {CR_HOLD_BUDGET_WAIT, free_budget},
        {CR_HOLD_COALESCE, wait_a_minute},
        {CR_HOLD_MAX_CONCURRENT, mend_other},
        {CR_HOLD_LIMIT, know_limits},
    };
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new(restart, 2);
    struct held held = {.s = s};
    scene_workload(s, 0, 3, "strategy: {rollingUpdate: {maxUnavailable: 1}}");
    record_all(&held);
    s->now_ms += 60 * SECOND;
    scene_material(s, "2");
    record_all(&held);
    hold_by_all(&held);
    for (size_t i = 0; i < cr_array_len(order); i++) {
        plan(&held);
        assert_string_equal(cr_hold_name(scene_status(s, 0)->gate.hold), cr_hold_name(order[i].hold));
        assert_false(is_restarted(s, 0));
        assert_int_equal(s->plan.waits_for_limit, order[i].hold == CR_HOLD_LIMIT);
        order[i].lift(&held);
    }
    plan(&held);
    assert_true(is_restarted(s, 0));
}

/* Only a gate that time opens asks for another plan of a restart. */
static void a_gate_says_when_it_may_open(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new(restart, 1);
    struct held held = {.s = s};
    record_all(&held);
    s->now_ms += 60 * SECOND;
    scene_material(s, "2");
    record_all(&held);

    plan(&held);
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_WINDOW);
    assert_int_equal(s->plan.restart_after_ms, 3600 * SECOND); /* by the clock on the wall, so each hour */

    open_window(&held);
    plan(&held);
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_COALESCE);
    assert_int_equal(s->plan.restart_after_ms, 60 * SECOND);

    held.s->policy->restart.method = CR_RESTART_NEVER;
    plan(&held);
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_RESTART_NEVER);
    assert_int_equal(s->plan.restart_after_ms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_gate_of_the_table_is_said),
        cmocka_unit_test(a_gate_says_when_it_may_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
