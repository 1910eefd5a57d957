/* A restart by evictions: which pod goes next, what is waited for, and what a crash, a clock or a person does to it. */
#include "support/scene.h"

static const char all[] = "{all: 'yes'}";

/* --- the cluster's part --- */

static void set_available(struct scene *s, size_t consumer, int available)
{
    cr_json_set_int(cr_json_edit(s->workloads[consumer], "status"), "availableReplicas", available);
}

/* The pod that the plan evicts is gone; its replacement is there, ready or not. */
static void replace(struct scene *s, bool ready)
{
    assert_int_equal(s->plan.evictions_len, 1);
    size_t consumer = s->plan.evictions[0].consumer;
    size_t slot = s->plan.evictions[0].pod;
    s->now_ms += 3 * SECOND;
    scene_pod(s, consumer, slot);
    s->pods[consumer][slot].ready = ready;
    set_available(s, consumer, ready ? 3 : 2);
}

/* The name of the pod that the plan evicts, "none" when there is none. */
static const char *evicted(struct scene *s)
{
    const struct cr_plan *p = scene_due(s);
    scene_record(s);
    if (!p->evictions_len)
        return "none";
    return s->pods[p->evictions[0].consumer][p->evictions[0].pod].name;
}

/* Evictions until there are none, each pod that comes up showing this leaf; how many they were. */
static size_t run(struct scene *s, const char *leaf)
{
    for (size_t n = 0; n < 16; n++) {
        if (cr_streq(evicted(s), "none"))
            return n;
        size_t consumer = s->plan.evictions[0].consumer;
        size_t slot = s->plan.evictions[0].pod;
        replace(s, true);
        scene_see(s, consumer, slot, leaf);
    }
    fail_msg("it evicts for ever");
    return 0;
}

static void blind(struct scene *s)
{
    for (size_t i = 0; i < s->policy->consumers_len; i++)
        s->policy->consumers[i].verify.endpoints_len = 0;
}

/* The tests that turn the endpoints off must give them back, for they are freed by that count. */
static void seeing(struct scene *s)
{
    for (size_t i = 0; i < s->policy->consumers_len; i++)
        s->policy->consumers[i].verify.endpoints_len = 1;
}

/* --- one after the other --- */

static void pod_after_pod_each_when_the_one_before_is_ready_and_verified(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    scene_change(s, "2");
    for (size_t i = 0; i < 3; i++) {
        assert_string_not_equal(evicted(s), "none");
        size_t slot = s->plan.evictions[0].pod;
        assert_false(s->plan.evictions[0].repair);
        replace(s, false);
        assert_string_equal(evicted(s), "none"); /* not ready */
        assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_RESTARTING);
        s->pods[0][slot].ready = true;
        set_available(s, 0, 3);
        assert_string_equal(evicted(s), "none"); /* not verified */
        assert_int_equal(s->plan.probes_len, 1);
        assert_int_equal(s->plan.probes[0].pod, slot);
        assert_int_equal(s->plan.nudges_len, 0); /* what it mounted is to be seen */
        scene_see(s, 0, slot, "2");
    }
    assert_string_equal(evicted(s), "none");
    assert_int_equal(s->plan.restarts_len, 0);
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_CONVERGED);
    assert_int_equal(scene_status(s, 0)->pods.verified, 3);
    assert_false(s->plan.status.secrets[0].pending.set);
    assert_int_equal(scene_status(s, 0)->restarts.len, 1); /* for the breaker it is one restart */
}

static void it_begins_with_a_record_an_event_and_one_pod(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    scene_change(s, "2");
    const struct cr_plan *p = scene_plan(s);
    assert_true(p->record_first);
    assert_int_equal(p->evictions_len, 0);
    assert_true(scene_says(s, "Evicting"));
    assert_string_equal(scene_status(s, 0)->evicting, "web-0");
    scene_record(s);
    assert_int_equal(scene_plan(s)->evictions_len, 1);
    assert_false(scene_says(s, "Evicting"));
}

static void those_that_are_not_ready_go_first(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    s->pods[0][2].ready = false;
    scene_change(s, "2");
    assert_string_equal(evicted(s), "web-2");
}

/* --- crashes, caches, clocks --- */

/* For the change before this one, or since it came up with the old leaf. No budget need hold the next. */
static void a_pod_that_was_evicted_a_moment_ago_is_back_before_another_goes(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    scene_change(s, "2");
    s->pods[0][2].evicted_ms = s->now_ms; /* the cache still shows it ready */
    assert_string_equal(evicted(s), "none");
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_BUDGET_WAIT);
    s->pods[0][2].evicted_ms -= 60 * SECOND; /* then it was not evicted after all */
    assert_string_equal(evicted(s), "web-0");
}

static void the_same_world_gives_the_same_plan(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    scene_change(s, "2");
    assert_string_equal(evicted(s), "web-0");
    /* Killed before the eviction, or its answer was lost: the pod of that UID again, and no other. */
    assert_string_equal(evicted(s), "web-0");
    assert_int_equal(scene_status(s, 0)->restarts.len, 1);
    /* Done, and the cache does not show it yet. */
    s->pods[0][0].evicted_ms = s->now_ms;
    assert_string_equal(evicted(s), "none");
    /* Done, and its replacement has not come. */
    s->consumers[0].pods = &s->pods[0][1];
    s->consumers[0].pods_len = 2;
    assert_string_equal(evicted(s), "none");
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_RESTARTING);
}

static void the_pod_on_record_goes_whatever_order_pods_come_in_after_a_crash(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    scene_change(s, "2");
    assert_string_equal(evicted(s), "web-0");
    struct cr_world_pod last = s->pods[0][2];
    s->pods[0][2] = s->pods[0][0];
    s->pods[0][0] = last;
    const struct cr_plan *p = scene_plan(s);
    assert_false(p->record_first);
    assert_int_equal(p->evictions_len, 1);
    assert_int_equal(p->evictions[0].pod, 2);
    /* One that is not ready is worth more than that. */
    s->pods[0][1].ready = false;
    scene_plan(s);
    assert_string_equal(scene_status(s, 0)->evicting, "web-1");
}

/* A leader that was paused has the record of before; writing the next one it learns that. */
static void no_pod_goes_that_is_not_on_record(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    scene_change(s, "2");
    evicted(s);
    size_t slot = s->plan.evictions[0].pod;
    replace(s, true);
    scene_see(s, 0, slot, "2");
    const struct cr_plan *p = scene_plan(s);
    assert_true(p->record_first);
    assert_int_equal(p->evictions_len, 0);
}

static void no_pod_goes_twice_however_clocks_differ(void **state)
{
    (void)state;
    static const int64_t skews_ms[] = {0, 600 * SECOND, -600 * SECOND, 2 * SECOND, -2 * SECOND};
    for (size_t i = 0; i < cr_array_len(skews_ms); i++) {
        for (int sees = 0; sees < 2; sees++) {
            CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
            s->skew_ms = skews_ms[i];
            if (!sees)
                blind(s);
            scene_change(s, "2");
            if (!sees)
                s->now_ms += 95 * SECOND;
            size_t evictions = run(s, "2");
            seeing(s);
            if (evictions != 3)
                fail_msg("skew %lld ms, %s: %zu evictions", (long long)skews_ms[i], sees ? "verified" : "inferred",
                         evictions);
            assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_CONVERGED);
        }
    }
}

static void a_pod_of_this_very_second_is_waited_out(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    scene_change(s, "2");
    scene_pod(s, 0, 2);
    assert_string_equal(evicted(s), "none");
    s->now_ms += 2 * SECOND;
    assert_string_not_equal(evicted(s), "none");
}

static void also_where_our_clock_is_a_little_behind(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    scene_change(s, "2");
    s->skew_ms = SECOND;
    scene_pod(s, 0, 2);
    assert_string_equal(evicted(s), "none");
    assert_true(s->plan.requeue_after_ms > 0 && s->plan.requeue_after_ms <= 3 * SECOND);
    s->now_ms += 3 * SECOND;
    assert_string_not_equal(evicted(s), "none");
}

static void an_older_crd_is_noticed_before_it_could_go_round(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    scene_change(s, "2");
    scene_plan(s);
    CR_CLEANUP(cr_policy_status) struct cr_policy_status written = {0};
    cr_policy_status_copy(&written, &s->plan.status);
    assert_true(cr_plan_is_kept(&s->plan.status, &written));
    int64_t until_ms = written.consumers[0].evicted_until_ms;
    written.consumers[0].evicted_until_ms = 0;
    assert_false(cr_plan_is_kept(&s->plan.status, &written));
    written.consumers[0].evicted_until_ms = until_ms;
    cr_strset(&written.consumers[0].evicting, NULL);
    assert_false(cr_plan_is_kept(&s->plan.status, &written));
}

/* --- the kubelet's cache --- */

static void where_nothing_can_be_seen_the_cache_is_waited_for_first(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    blind(s);
    scene_change(s, "2");
    assert_string_equal(evicted(s), "none");
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_PENDING);
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_KUBELET);
    s->now_ms += 85 * SECOND;
    assert_int_equal(run(s, "2"), 3);
    assert_int_equal(scene_status(s, 0)->pods.inferred, 3);
    seeing(s);
}

static void a_new_pod_with_the_old_leaf_goes_again_and_not_for_ever(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    scene_change(s, "2");
    evicted(s);
    replace(s, true);
    for (int repairs = 0; repairs < CR_PLAN_EVICTIONS_MAX; repairs++) {
        scene_see(s, 0, 0, "1");
        assert_string_equal(evicted(s), s->pods[0][0].name);
        assert_true(s->plan.evictions[0].repair);
        replace(s, true);
        s->consumers[0].evictions = repairs + 1;
        s->consumers[0].evicted_ms = s->now_ms;
        s->now_ms += 5 * SECOND;
        scene_see(s, 0, 0, "1");
        assert_string_equal(evicted(s), "none"); /* slower and slower */
        s->now_ms += 120 * SECOND;
    }
    scene_see(s, 0, 0, "1");
    assert_string_equal(evicted(s), "none");
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_BLOCKED);
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_STILL_STALE);
}

/* Made by hand or by a drain meanwhile, and not ready for want of the new leaf: it takes nothing away, and the other
 * waits until it is back. */
static void of_two_new_pods_with_the_old_leaf_the_one_that_is_not_ready_goes_first(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    scene_change(s, "2");
    evicted(s);
    replace(s, true);
    s->now_ms += 2 * SECOND;
    scene_pod(s, 0, 1);
    s->pods[0][1].ready = false;
    s->now_ms += 2 * SECOND;
    scene_see(s, 0, 0, "1");
    scene_see(s, 0, 1, "1");
    assert_string_equal(evicted(s), s->pods[0][1].name);
    assert_true(s->plan.evictions[0].repair);
}

static void a_repair_is_not_sent_twice_while_the_cache_shows_its_pod(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    scene_change(s, "2");
    evicted(s);
    replace(s, true);
    scene_see(s, 0, 0, "1");
    assert_string_equal(evicted(s), s->pods[0][0].name);
    s->pods[0][0].evicted_ms = s->now_ms;
    s->consumers[0].evictions = 1;
    s->consumers[0].evicted_ms = s->now_ms;
    s->now_ms += 20 * SECOND;
    scene_see(s, 0, 0, "1");
    assert_string_equal(evicted(s), "none");
}

static void a_new_pod_that_cannot_be_asked_holds_the_next_unless_that_may_be_inferred(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    scene_change(s, "2");
    evicted(s);
    replace(s, true);
    s->sightings[0][0] = (struct cr_sighting){.seen = CR_SEEN_UNREACHABLE, .at_ms = s->now_ms};
    assert_string_equal(evicted(s), "none");
    s->now_ms += 110 * SECOND;
    assert_string_equal(evicted(s), "none");
    s->policy->consumers[0].verify.on_unreachable = CR_ON_UNREACHABLE_INFER;
    assert_string_equal(evicted(s), "web-1");
}

/* --- who holds it --- */

static void a_person_stops_it_in_the_middle_and_lets_it_go_on(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    scene_change(s, "2");
    evicted(s);
    replace(s, true);
    scene_see(s, 0, 0, "2");
    s->policy->suspend = true;
    assert_string_equal(evicted(s), "none");
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_SUSPENDED);
    s->policy->suspend = false;
    s->policy->mode = CR_MODE_PLAN;
    assert_string_equal(evicted(s), "none");
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_PLAN_MODE);
    s->policy->mode = CR_MODE_ENFORCE;
    assert_int_equal(run(s, "2"), 2);
    assert_int_equal(scene_status(s, 0)->restarts.len, 1);
}

static void a_budget_holds_each_pod_and_lets_it_go_on(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    scene_budget(s, 0, all, 3, 2, 1);
    scene_change(s, "2");
    evicted(s);
    replace(s, true);
    scene_see(s, 0, 0, "2");
    scene_budget(s, 0, all, 2, 2, 0); /* its controller has not seen the new one */
    assert_string_equal(evicted(s), "none");
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_PENDING);
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_BUDGET_WAIT);
    assert_true(cr_starts_with(scene_status(s, 0)->gate.text, "budget: waits: PodDisruptionBudget 'pdb0'"));
    scene_budget(s, 0, all, 3, 2, 1);
    assert_int_equal(run(s, "2"), 2);
}

static void auto_goes_on_as_it_began(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    scene_workload(s, 0, 3, "strategy: {rollingUpdate: {maxUnavailable: 2}}");
    scene_budget(s, 0, all, 3, 2, 1);
    scene_change(s, "2");
    evicted(s);
    replace(s, true);
    scene_see(s, 0, 0, "2");
    scene_budget(s, 0, all, 3, 0, 3); /* a rollout would fit by now, and take the new pod as well */
    assert_int_equal(run(s, "2"), 2);
    assert_int_equal(s->plan.restarts_len, 0);
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_CONVERGED);
    /* For the next change it chooses again. */
    scene_change(s, "3");
    assert_int_equal(scene_due(s)->restarts_len, 1);
}

static void a_replacement_that_is_not_ready_in_time_has_failed_and_stops_the_others(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict, maxConcurrent: 2}", 2);
    cr_json_set_int(cr_json_edit(s->workloads[0], "spec"), "progressDeadlineSeconds", 60);
    s->consumers[1].found = false; /* until later */
    scene_change(s, "2");
    evicted(s);
    replace(s, false);
    s->now_ms += 59 * SECOND;
    assert_string_equal(evicted(s), "none");
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_RESTARTING);
    s->consumers[1].found = true;
    s->now_ms += 2 * SECOND;
    assert_string_equal(evicted(s), "none");
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_FAILED);
    assert_int_equal(scene_status(s, 1)->state, CR_CONSUMER_PENDING);
    assert_int_equal(scene_status(s, 1)->gate.hold, CR_HOLD_OTHER_ROLLOUT_FAILED);
    /* Mended, it goes on. */
    s->pods[0][0].ready = true;
    set_available(s, 0, 3);
    scene_see(s, 0, 0, "2");
    assert_string_equal(evicted(s), "web-1");
}

static void who_has_failed_also_stops_evictions_that_have_begun(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict, maxConcurrent: 2}", 2);
    cr_json_set_int(cr_json_edit(s->workloads[1], "spec"), "progressDeadlineSeconds", 60);
    scene_change(s, "2");
    assert_int_equal(scene_due(s)->evictions_len, 2);
    s->now_ms += 3 * SECOND;
    for (size_t i = 0; i < 2; i++)
        scene_pod(s, i, s->plan.evictions[i].pod);
    scene_see(s, 0, 0, "2");
    s->pods[1][0].ready = false;
    set_available(s, 1, 2);
    s->now_ms += 61 * SECOND;
    assert_string_equal(evicted(s), "none");
    assert_int_equal(scene_status(s, 1)->state, CR_CONSUMER_FAILED);
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_OTHER_ROLLOUT_FAILED);
    s->pods[1][0].ready = true;
    set_available(s, 1, 3);
    assert_string_equal(evicted(s), s->pods[0][1].name);
}

static void one_workload_at_a_time(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 2);
    scene_change(s, "2");
    for (size_t i = 0; i < 3; i++) {
        assert_string_not_equal(evicted(s), "none");
        assert_int_equal(s->plan.evictions_len, 1);
        assert_int_equal(s->plan.evictions[0].consumer, 0);
        assert_int_equal(scene_status(s, 1)->gate.hold, CR_HOLD_MAX_CONCURRENT);
        size_t slot = s->plan.evictions[0].pod;
        replace(s, true);
        scene_see(s, 0, slot, "2");
    }
    assert_int_equal(run(s, "2"), 3);
}

static void a_rollout_of_others_in_the_middle_is_waited_for(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    scene_change(s, "2");
    evicted(s);
    replace(s, true);
    scene_see(s, 0, 0, "2");
    cr_json_set_int(cr_json_edit(s->workloads[0], "status"), "updatedReplicas", 1);
    assert_string_equal(evicted(s), "none");
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_RESTARTING);
    cr_json_set_int(cr_json_edit(s->workloads[0], "status"), "updatedReplicas", 3);
    assert_int_equal(run(s, "2"), 2);
}

/* By eviction there is no annotation that could be gone. */
static void a_workload_that_is_changed_in_the_middle_was_not_undone(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    scene_workload(s, 0, 3, "strategy: {rollingUpdate: {maxUnavailable: 2}}");
    scene_budget(s, 0, all, 3, 2, 1);
    scene_change(s, "2");
    evicted(s);
    replace(s, true);
    scene_see(s, 0, 0, "2");
    cr_json_set_int(cr_json_edit(s->workloads[0], "metadata"), "generation", 2);
    cr_json_set_int(cr_json_edit(s->workloads[0], "status"), "observedGeneration", 2);
    assert_int_equal(run(s, "2"), 2);
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_CONVERGED);
}

/* --- changes --- */

static void a_change_in_the_middle_starts_again_and_counts(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    scene_change(s, "2");
    evicted(s);
    replace(s, true);
    scene_see(s, 0, 0, "2");
    scene_due(s);
    scene_record(s);
    scene_material(s, "3");
    assert_string_equal(evicted(s), "none");
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_COALESCE);
    s->now_ms += 10 * SECOND;
    assert_int_equal(run(s, "3"), 3);
    assert_int_equal(scene_status(s, 0)->restarts.len, 2);
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_CONVERGED);
}

static void the_breaker_holds_the_fourth(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    static const char *const leaves[] = {"2", "3", "4"};
    for (size_t i = 0; i < cr_array_len(leaves); i++) {
        scene_change(s, leaves[i]);
        assert_int_equal(run(s, leaves[i]), 3);
    }
    scene_change(s, "5");
    assert_string_equal(evicted(s), "none");
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_CIRCUIT_BREAKER);
}

/* The restart was undone by a GitOps tool; by eviction there is nothing to undo. */
static void evict_helps_where_a_rollout_was_undone(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    scene_change(s, "2");
    scene_due(s);
    scene_record(s);
    cr_strset(&s->status.consumers[0].restarted_for, s->status.secrets[0].pending.id);
    s->status.consumers[0].restarted_generation = 1;
    cr_json_set_int(cr_json_edit(s->workloads[0], "metadata"), "generation", 2);
    cr_json_set_int(cr_json_edit(s->workloads[0], "status"), "observedGeneration", 2);
    scene_due(s);
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_BLOCKED);
    s->policy->restart.method = CR_RESTART_EVICT;
    assert_int_equal(run(s, "2"), 3);
}

/* The other way round: the policy was changed to roll in the middle, and that is undone: no fight. */
static void a_rollout_after_evictions_is_undone_once(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    scene_change(s, "2");
    evicted(s);
    replace(s, true);
    scene_see(s, 0, 0, "2");
    s->policy->restart.method = CR_RESTART_ROLLOUT;
    assert_int_equal(scene_due(s)->restarts_len, 1);
    struct cr_json *metadata =
        cr_json_edit(cr_json_edit(cr_json_edit(s->workloads[0], "spec"), "template"), "metadata");
    cr_json_set(metadata, "annotations", cr_json_copy(s->plan.restarts[0].annotations));
    cr_json_set_int(cr_json_edit(s->workloads[0], "metadata"), "generation", 2);
    scene_due(s);
    scene_record(s);
    assert_int_equal(scene_status(s, 0)->evicted_until_ms, 0);
    cr_json_set(metadata, "annotations", cr_json_new_object());
    cr_json_set_int(cr_json_edit(s->workloads[0], "metadata"), "generation", 3);
    assert_int_equal(scene_due(s)->restarts_len, 0);
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_RESTART_UNDONE);
}

/* A reload was expected, and did not happen: only the pods that were seen so. */
static void of_a_reload_that_failed_only_late_pods_go(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    for (unsigned role = 0; role < CR_ROLE_COUNT; role++)
        s->policy->consumers[0].reload[role] = (struct cr_reload_override){.set = true, .method = CR_METHOD_WATCH};
    scene_change(s, "2");
    s->now_ms += 600 * SECOND;
    scene_see(s, 0, 0, "2");
    scene_see(s, 0, 1, "1");
    scene_see(s, 0, 2, "2");
    assert_string_equal(evicted(s), "web-1");
    replace(s, true);
    scene_see(s, 0, 1, "2");
    assert_string_equal(evicted(s), "none");
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_CONVERGED);
}

/* Also the last of them: until its replacement has come up, no other goes, and where it does not, all stands. */
static void of_a_reload_that_failed_the_last_replacement_is_waited_for(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 2);
    for (unsigned role = 0; role < CR_ROLE_COUNT; role++)
        s->policy->consumers[0].reload[role] = (struct cr_reload_override){.set = true, .method = CR_METHOD_WATCH};
    s->consumers[1].found = false; /* until later */
    scene_change(s, "2");
    s->now_ms += 600 * SECOND;
    scene_see(s, 0, 0, "2");
    scene_see(s, 0, 1, "1");
    scene_see(s, 0, 2, "2");
    assert_string_equal(evicted(s), "web-1");
    s->consumers[1].found = true;
    replace(s, false);
    assert_string_equal(evicted(s), "none");
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_RESTARTING);
    assert_int_equal(scene_status(s, 0)->decision, CR_DECISION_RESTART);
    assert_non_null(strstr(scene_status(s, 0)->reason, "1 of 3 pods still serve the old leaf"));
    assert_int_equal(scene_status(s, 1)->gate.hold, CR_HOLD_MAX_CONCURRENT);
    s->now_ms += 601 * SECOND;
    assert_string_equal(evicted(s), "none");
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_FAILED);
    assert_int_equal(scene_status(s, 1)->gate.hold, CR_HOLD_OTHER_ROLLOUT_FAILED);
    s->pods[0][1].ready = true;
    set_available(s, 0, 3);
    scene_see(s, 0, 1, "2");
    assert_int_equal(run(s, "2"), 3); /* of the other one */
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_CONVERGED);
    assert_int_equal(scene_status(s, 0)->restarts.len, 1);
}

/* Its pods are replaced by a rollout of others, which may never end: the others have the place. */
static void a_wait_for_a_rollout_of_others_delays_no_other(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 2);
    struct cr_json *status = cr_json_edit(s->workloads[0], "status");
    cr_json_set_int(status, "updatedReplicas", 1);
    scene_change(s, "2");
    for (size_t i = 0; i < 3; i++) {
        assert_string_not_equal(evicted(s), "none");
        assert_int_equal(s->plan.evictions[0].consumer, 1);
        assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_MAX_CONCURRENT);
        size_t slot = s->plan.evictions[0].pod;
        replace(s, true);
        scene_see(s, 1, slot, "2");
    }
    assert_string_equal(evicted(s), "none");
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_ROLLOUT_UNDER_WAY);
    cr_json_set_int(status, "updatedReplicas", 3);
    assert_int_equal(run(s, "2"), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pod_after_pod_each_when_the_one_before_is_ready_and_verified),
        cmocka_unit_test(it_begins_with_a_record_an_event_and_one_pod),
        cmocka_unit_test(those_that_are_not_ready_go_first),
        cmocka_unit_test(a_pod_that_was_evicted_a_moment_ago_is_back_before_another_goes),
        cmocka_unit_test(the_same_world_gives_the_same_plan),
        cmocka_unit_test(the_pod_on_record_goes_whatever_order_pods_come_in_after_a_crash),
        cmocka_unit_test(no_pod_goes_that_is_not_on_record),
        cmocka_unit_test(no_pod_goes_twice_however_clocks_differ),
        cmocka_unit_test(a_pod_of_this_very_second_is_waited_out),
        cmocka_unit_test(also_where_our_clock_is_a_little_behind),
        cmocka_unit_test(an_older_crd_is_noticed_before_it_could_go_round),
        cmocka_unit_test(where_nothing_can_be_seen_the_cache_is_waited_for_first),
        cmocka_unit_test(a_new_pod_with_the_old_leaf_goes_again_and_not_for_ever),
        cmocka_unit_test(of_two_new_pods_with_the_old_leaf_the_one_that_is_not_ready_goes_first),
        cmocka_unit_test(a_repair_is_not_sent_twice_while_the_cache_shows_its_pod),
        cmocka_unit_test(a_rollout_of_others_in_the_middle_is_waited_for),
        cmocka_unit_test(a_workload_that_is_changed_in_the_middle_was_not_undone),
        cmocka_unit_test(a_new_pod_that_cannot_be_asked_holds_the_next_unless_that_may_be_inferred),
        cmocka_unit_test(a_person_stops_it_in_the_middle_and_lets_it_go_on),
        cmocka_unit_test(a_budget_holds_each_pod_and_lets_it_go_on),
        cmocka_unit_test(auto_goes_on_as_it_began),
        cmocka_unit_test(a_replacement_that_is_not_ready_in_time_has_failed_and_stops_the_others),
        cmocka_unit_test(who_has_failed_also_stops_evictions_that_have_begun),
        cmocka_unit_test(one_workload_at_a_time),
        cmocka_unit_test(a_change_in_the_middle_starts_again_and_counts),
        cmocka_unit_test(the_breaker_holds_the_fourth),
        cmocka_unit_test(evict_helps_where_a_rollout_was_undone),
        cmocka_unit_test(a_rollout_after_evictions_is_undone_once),
        cmocka_unit_test(of_a_reload_that_failed_only_late_pods_go),
        cmocka_unit_test(of_a_reload_that_failed_the_last_replacement_is_waited_for),
        cmocka_unit_test(a_wait_for_a_rollout_of_others_delays_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
