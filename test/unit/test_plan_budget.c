/* PodDisruptionBudgets in the plan: which way a restart takes, what holds it, and what is said of it. */
#include "support/scene.h"

static const char all[] = "{all: 'yes'}";

/* --- the ways --- */

/* clang-format off */
static const struct way_case {
    const char *rule;
    const char *restart;
    const char *strategy;
    int replicas;
    int healthy, needed, allowed; /* of the budget; needed 0: there is none */
    const char *unseen;
    size_t restarts;
    bool evicts;
    enum cr_consumer_state state;
    enum cr_hold hold;
    const char *text; /* how it begins */
} ways[] = {
    {"no budget: it rolls", "{}", "", 3, 0, 0, 0, NULL, 1, false, CR_CONSUMER_PENDING, CR_HOLD_NONE, NULL},
    {"surging fits any budget", "{}", "strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}", 3, 3, 3, 0, NULL,
     1, false, CR_CONSUMER_PENDING, CR_HOLD_NONE, NULL},
    {"the worst case fits", "{}", "strategy: {rollingUpdate: {maxUnavailable: 1}}", 3, 3, 2, 1, NULL, 1, false,
     CR_CONSUMER_PENDING, CR_HOLD_NONE, NULL},
    {"it does not, and one pod may go: evicted", "{}", "strategy: {rollingUpdate: {maxUnavailable: 2}}", 3, 3, 2, 1,
     NULL, 0, true, CR_CONSUMER_RESTARTING, CR_HOLD_NONE, NULL},
    {"Recreate takes all: evicted", "{}", "strategy: {type: Recreate}", 3, 3, 2, 1, NULL, 0, true,
     CR_CONSUMER_RESTARTING, CR_HOLD_NONE, NULL},
    {"needs all of its pods: a person must", "{}", "strategy: {rollingUpdate: {maxUnavailable: 1}}", 3, 3, 3, 0, NULL,
     0, false, CR_CONSUMER_BLOCKED, CR_HOLD_BUDGET, "budget: a rollout may take 1 of 3 pods away at once"},
    {"allows none for now: it passes", "{}", "strategy: {rollingUpdate: {maxUnavailable: 1}}", 3, 2, 2, 0, NULL, 0,
     false, CR_CONSUMER_PENDING, CR_HOLD_BUDGET_WAIT, "budget: waits: a rollout may take 1 of 3 pods away at once"},
    {"Rollout goes past it", "{method: Rollout}", "strategy: {rollingUpdate: {maxUnavailable: 1}}", 3, 3, 3, 0, NULL, 1,
     false, CR_CONSUMER_PENDING, CR_HOLD_NONE, NULL},
    {"Evict never rolls", "{method: Evict}", "strategy: {rollingUpdate: {maxUnavailable: 0}}", 3, 0, 0, 0, NULL, 0, true,
     CR_CONSUMER_RESTARTING, CR_HOLD_NONE, NULL},
    {"Evict waits for the budget", "{method: Evict}", "", 3, 3, 3, 0, NULL, 0, false, CR_CONSUMER_BLOCKED,
     CR_HOLD_BUDGET, "budget: PodDisruptionBudget 'pdb0' (minAvailable 3) needs all of its pods"},
    {"unseen budgets hold what takes pods away", "{}", "strategy: {rollingUpdate: {maxUnavailable: 1}}", 3, 0, 0, 0,
     "forbidden", 0, false, CR_CONSUMER_BLOCKED, CR_HOLD_BUDGET, "budget: a rollout may take 1 of 3 pods away at once"},
    {"and nothing that surges", "{}", "strategy: {rollingUpdate: {maxUnavailable: 0}}", 3, 0, 0, 0, "forbidden", 1,
     false, CR_CONSUMER_PENDING, CR_HOLD_NONE, NULL},
    {"a single replica surges", "{}", "", 1, 0, 0, 0, NULL, 1, false, CR_CONSUMER_PENDING, CR_HOLD_NONE, NULL},
    {"and is not evicted", "{method: Evict}", "", 1, 0, 0, 0, NULL, 0, false, CR_CONSUMER_BLOCKED,
     CR_HOLD_SINGLE_REPLICA, "restart.singleReplica: Surge"},
    {"unless it may be, with a word", "{method: Evict, singleReplica: Warn}", "", 1, 0, 0, 0, NULL, 0, true,
     CR_CONSUMER_RESTARTING, CR_HOLD_NONE, NULL},
    {"Recreate of a single replica may be forbidden", "{singleReplica: Block}", "strategy: {type: Recreate}", 1, 0, 0, 0,
     NULL, 0, false, CR_CONSUMER_BLOCKED, CR_HOLD_SINGLE_REPLICA, "restart.singleReplica: Block"},
    {"a paused workload waits, whatever the way", "{method: Evict}", "paused: true", 3, 0, 0, 0, NULL, 0, false,
     CR_CONSUMER_BLOCKED, CR_HOLD_PAUSED, "the workload is paused"},
};
/* clang-format on */

static void check_way(const struct way_case *c)
{
    CR_CLEANUP(scene) struct scene *s = scene_new(c->restart, 1);
    scene_workload(s, 0, c->replicas, c->strategy);
    if (c->needed)
        scene_budget(s, 0, all, c->healthy, c->needed, c->allowed);
    s->view.unseen = c->unseen;
    scene_change(s, "2");
    const struct cr_plan *p = scene_due(s);
    const struct cr_consumer_status *web = scene_status(s, 0);
    if (p->restarts_len != c->restarts || (p->evictions_len == 1) != c->evicts || web->state != c->state ||
        web->gate.hold != c->hold || !cr_starts_with(cr_or_empty(web->gate.text), cr_or_empty(c->text)))
        fail_msg("%s: %zu restarts, %zu evictions, %s, %s", c->rule, p->restarts_len, p->evictions_len,
                 cr_consumer_state_name(web->state), cr_or_empty(web->gate.text));
}

static void the_way_of_a_restart(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(ways); i++)
        check_way(&ways[i]);
}

/* By Auto, where no rollout replaces anything. */
static void what_no_rollout_replaces_is_evicted(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *kind, *spec;
        size_t restarts; /* by Rollout: the template is changed, and pods that a person deletes come up with it */
    } cases[] = {
        {"OnDelete", "StatefulSet", "updateStrategy: {type: OnDelete}", 1},
        {"a partition above all", "StatefulSet", "updateStrategy: {rollingUpdate: {partition: 3}}", 1},
        {"a bare ReplicaSet", "ReplicaSet", "", 0},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        static const char *const methods[] = {"{method: Auto}", "{method: Rollout}"};
        for (size_t m = 0; m < 2; m++) {
            CR_CLEANUP(scene) struct scene *s = scene_new(methods[m], 1);
            scene_workload(s, 0, 3, cases[i].spec);
            cr_strset(&s->policy->consumers[0].kind, cases[i].kind);
            scene_change(s, "2");
            const struct cr_plan *p = scene_due(s);
            if (p->evictions_len != (m == 0) || p->restarts_len != (m ? cases[i].restarts : 0))
                fail_msg("%s, %s: %zu evictions, %zu restarts: %s", cases[i].rule, methods[m], p->evictions_len,
                         p->restarts_len, cr_or_empty(scene_status(s, 0)->gate.text));
        }
    }
}

/* --- when it is reported --- */

static void a_budget_is_reported_while_coalesce_runs_and_once(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{coalesce: 10m}", 1);
    scene_workload(s, 0, 3, "strategy: {rollingUpdate: {maxUnavailable: 1}}");
    scene_budget(s, 0, all, 3, 3, 0);
    scene_due(s);
    scene_record(s);
    scene_material(s, "2");
    scene_plan(s); /* that which records the change */
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_BLOCKED);
    assert_true(scene_says(s, "WaitsForBudget"));
    scene_record(s);
    s->now_ms += 5 * SECOND;
    const struct cr_plan *p = scene_due(s);
    assert_false(scene_says(s, "WaitsForBudget"));
    assert_true(p->requeue_after_ms > 0 && p->requeue_after_ms <= 60 * SECOND);
    /* It allows one: on it goes by itself, which is now coalesce's. */
    scene_budget(s, 0, all, 3, 2, 1);
    scene_due(s);
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_COALESCE);
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_PENDING);
    s->now_ms += 600 * SECOND;
    assert_int_equal(scene_due(s)->restarts_len, 1);
}

static void going_past_a_budget_is_reported(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Rollout}", 1);
    scene_workload(s, 0, 3, "strategy: {rollingUpdate: {maxUnavailable: 1}}");
    scene_budget(s, 0, all, 3, 3, 0);
    scene_change(s, "2");
    const struct cr_plan *p = scene_due(s);
    assert_int_equal(p->restarts_len, 1);
    assert_string_equal(p->restarts[0].warns, "BudgetExceeded");
}

static void that_the_only_pod_goes_is_said_before_and_in_status(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{singleReplica: Warn}", 1);
    scene_workload(s, 0, 1, "strategy: {type: Recreate}");
    scene_change(s, "2");
    const struct cr_plan *p = scene_due(s);
    assert_int_equal(p->restarts_len, 1);
    assert_string_equal(p->restarts[0].warns, "OnlyPodGoes");
    assert_non_null(strstr(p->restarts[0].warning, "only pod"));
    assert_non_null(strstr(scene_status(s, 0)->reason, "Its only pod goes away"));
    assert_non_null(strstr(p->restarts[0].why, "Its only pod goes away"));
}

static void that_the_only_pod_is_held_is_said_once(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{singleReplica: Block}", 1);
    scene_workload(s, 0, 1, "strategy: {type: Recreate}");
    scene_change(s, "2");
    assert_int_equal(scene_due(s)->restarts_len, 0);
    assert_false(scene_says(s, "OnlyPodHeld")); /* scene_change has recorded it */
    s->status.consumers[0].state = CR_CONSUMER_PENDING;
    cr_gate_set(&s->status.consumers[0].gate, cr_gate_make(CR_HOLD_COALESCE, "restart.coalesce"));
    (void)scene_plan(s);
    assert_true(scene_says(s, "OnlyPodHeld"));
}

static void mode_plan_says_which_way(void **state)
{
    (void)state;
    static const struct {
        const char *strategy;
        int needed, allowed;
        const char *says;
    } cases[] = {
        {"", 0, 0, "Would roll."},
        {"strategy: {rollingUpdate: {maxUnavailable: 1}}", 2, 1, "Would roll: a rollout may take 1 of 3 pods"},
        {"strategy: {type: Recreate}", 2, 1, "Would evict pod by pod: a rollout may take 3 of 3"},
        {"strategy: {type: Recreate}", 3, 0, "Would be blocked: a rollout may take 3 of 3"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
        scene_workload(s, 0, 3, cases[i].strategy);
        if (cases[i].needed)
            scene_budget(s, 0, all, 3, cases[i].needed, cases[i].allowed);
        s->policy->mode = CR_MODE_PLAN;
        scene_change(s, "2");
        const struct cr_plan *p = scene_due(s);
        assert_int_equal(p->restarts_len + p->evictions_len, 0);
        assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_PLAN_MODE);
        if (!strstr(scene_status(s, 0)->reason, cases[i].says))
            fail_msg("%s: %s", cases[i].says, scene_status(s, 0)->reason);
    }
}

/* --- who else takes pods away --- */

static void apply_restart(struct scene *s, size_t consumer)
{
    struct cr_json *workload = s->workloads[consumer];
    struct cr_json *metadata = cr_json_edit(cr_json_edit(cr_json_edit(workload, "spec"), "template"), "metadata");
    struct cr_json *annotations = cr_json_object_in(metadata, "annotations");
    for (const struct cr_json *a = cr_json_first(s->plan.restarts[0].annotations); a; a = cr_json_next(a))
        cr_json_set_string(annotations, cr_json_key(a), cr_json_string(a));
    cr_json_set_int(cr_json_edit(workload, "metadata"), "generation", 2);
}

/* Two consumers under one budget that has room for the worst case of one. */
static struct scene *two_under_one(void)
{
    struct scene *s = scene_new("{maxConcurrent: 2}", 2);
    for (size_t i = 0; i < 2; i++)
        scene_workload(s, i, 3, "strategy: {rollingUpdate: {maxUnavailable: 1}}");
    scene_budget(s, 0, all, 6, 5, 1);
    scene_change(s, "2");
    return s;
}

static void two_restarts_of_one_plan_share_a_budget(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = two_under_one();
    assert_int_equal(scene_due(s)->restarts_len, 1);
    assert_int_equal(scene_status(s, 1)->gate.hold, CR_HOLD_BUDGET_WAIT);
    assert_non_null(strstr(scene_status(s, 1)->gate.text, "as that of Deployment web"));
}

static void a_rollout_that_we_began_counts_before_the_cache_shows_it(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = two_under_one();
    scene_due(s);
    apply_restart(s, 0);
    assert_int_equal(scene_due(s)->restarts_len, 0);
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_RESTARTING);
    assert_int_equal(scene_status(s, 1)->gate.hold, CR_HOLD_BUDGET_WAIT);
}

static void who_is_listed_as_rolling_counts_once_and_never_against_itself(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = two_under_one();
    const struct cr_worst_case worst = {.way = CR_WORST_ROLLS, .desired = 3, .unavailable = 1, .text = "x"};
    const struct cr_budget_pod pod = {
        .name = "x", .labels = cr_json_at(s->pods[0][0].pod, "metadata", "labels"), .ready = true};
    const struct cr_budget_workload rolling = {
        .kind = "Deployment", .name = "web", .worst = &worst, .pods = &pod, .pods_len = 1};
    s->view.rolling = &rolling;
    s->view.rolling_len = 1;
    const struct cr_plan *p = scene_due(s);
    assert_int_equal(p->restarts_len, 1); /* web itself */
    assert_int_equal(p->restarts[0].consumer, 0);
    apply_restart(s, 0);
    scene_budget(s, 0, all, 6, 4, 2); /* room for both, unless web counts twice */
    assert_int_equal(scene_due(s)->restarts_len, 1);
    assert_int_equal(s->plan.restarts[0].consumer, 1);
}

/* One of an earlier rotation, with a consumer that has nothing to do with this one. */
static void a_pod_that_was_evicted_a_moment_ago_counts_for_all(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{maxConcurrent: 2}", 2);
    scene_workload(s, 0, 3, "strategy: {rollingUpdate: {maxUnavailable: 1}}");
    cr_json_remove(cr_json_edit(cr_json_edit(cr_json_edit(s->workloads[1], "spec"), "template"), "spec"), "volumes");
    scene_budget(s, 0, all, 6, 5, 1);
    scene_change(s, "2");
    s->pods[1][0].evicted_ms = s->now_ms;
    assert_int_equal(scene_due(s)->restarts_len, 0);
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_BUDGET_WAIT);
    assert_non_null(strstr(scene_status(s, 0)->gate.text, "as that of Deployment api"));
    s->pods[1][0].evicted_ms -= 60 * SECOND; /* then it was not evicted after all */
    assert_int_equal(scene_due(s)->restarts_len, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_way_of_a_restart),
        cmocka_unit_test(what_no_rollout_replaces_is_evicted),
        cmocka_unit_test(a_budget_is_reported_while_coalesce_runs_and_once),
        cmocka_unit_test(going_past_a_budget_is_reported),
        cmocka_unit_test(that_the_only_pod_goes_is_said_before_and_in_status),
        cmocka_unit_test(that_the_only_pod_is_held_is_said_once),
        cmocka_unit_test(mode_plan_says_which_way),
        cmocka_unit_test(two_restarts_of_one_plan_share_a_budget),
        cmocka_unit_test(a_rollout_that_we_began_counts_before_the_cache_shows_it),
        cmocka_unit_test(a_pod_that_was_evicted_a_moment_ago_counts_for_all),
        cmocka_unit_test(who_is_listed_as_rolling_counts_once_and_never_against_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
