/* What pods show while nothing changes: at first sight, and of pods that come later. */
#include "policy/rules/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/scene.h"

enum { MINUTE = 60 * SECOND, DEADLINE = 125 * SECOND };

static const struct cr_condition *condition(const struct scene *s, const char *type)
{
    const struct cr_condition *found = cr_status_condition_get(&s->plan.status, type);
    assert_non_null(found);
    return found;
}

static void expect_converged(const struct scene *s, const char *value, const char *reason)
{
    const struct cr_condition *found = condition(s, "Converged");
    const char *is = found->unknown ? "Unknown" : found->status ? "True" : "False";
    if (!cr_streq(is, value) || !cr_streq(found->reason, reason))
        fail_msg("Converged is %s by %s, not %s by %s: %s", is, found->reason, value, reason, found->message);
}

static void expect_column(const struct scene *s, const char *converged)
{
    CR_CLEANUP(cr_json) struct cr_json *encoded = cr_policy_status_encode(&s->plan.status);
    assert_string_equal(cr_json_string_at(encoded, "converged"), converged);
}

static void expect_nothing_disruptive(const struct scene *s)
{
    assert_int_equal(s->plan.restarts_len, 0);
    assert_int_equal(s->plan.evictions_len, 0);
    assert_int_equal(s->plan.nudges_len, 0);
}

static void see_all(struct scene *s, size_t consumer, const char *leaf)
{
    for (size_t i = 0; i < s->consumers[consumer].pods_len; i++)
        scene_see(s, consumer, i, leaf);
}

static void unreachable(struct scene *s, size_t consumer, size_t slot)
{
    s->sightings[consumer][slot] = (struct cr_sighting){.seen = CR_SEEN_UNREACHABLE, .at_ms = s->now_ms};
}

/* Another process: what probes saw is forgotten. */
static void restart_operator(struct scene *s)
{
    scene_record(s);
    memset(s->sightings, 0, sizeof s->sightings);
}

/* --- first sight --- */

static void pods_are_asked_at_first_sight_and_nothing_is_claimed_before(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    scene_plan(s);
    assert_true(s->plan.record_first);
    assert_int_equal(s->plan.probes_len, 0);
    expect_converged(s, "Unknown", "NotVerified");
    scene_due(s);
    assert_int_equal(s->plan.probes_len, 3);
    expect_nothing_disruptive(s);
    expect_converged(s, "Unknown", "NotVerified");
    expect_column(s, "0/1");
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_VERIFYING);
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_NOT_VERIFIED);
    assert_int_equal(scene_status(s, 0)->pods.unknown, 3);
    assert_false(condition(s, "Degraded")->status);
    see_all(s, 0, "1");
    scene_due(s);
    expect_converged(s, "True", "Converged");
    expect_column(s, "1/1");
    assert_int_equal(s->plan.probes_len, 0);
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_IDLE);
    assert_int_equal(scene_status(s, 0)->pods.verified, 3);
    assert_int_equal(s->plan.status.secrets[0].leaf_by, CR_SETTLED_VERIFIED);
    assert_int_equal(s->plan.status.secrets[0].trust_by, CR_SETTLED_FIRST_SIGHT);
    assert_int_equal(scene_status(s, 0)->verification.at_ms, s->now_ms);
}

/* The pod serves serial 758, the Secret holds 759. */
static void a_pod_that_serves_another_certificate_is_reported_and_left_alone(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    scene_due(s);
    see_all(s, 0, "1");
    scene_see(s, 0, 1, "0");
    scene_due(s);
    expect_converged(s, "False", "OtherCertificate");
    assert_non_null(strstr(condition(s, "Converged")->message, "web-1: port 8443 serves another certificate"));
    assert_true(scene_says(s, "OtherCertificate"));
    assert_int_equal(scene_status(s, 0)->pods.stale, 1);
    assert_int_equal(scene_status(s, 0)->pods.verified, 2);
    expect_column(s, "0/1");
    expect_nothing_disruptive(s);
    assert_int_equal(s->plan.status.secrets[0].leaf_by, CR_SETTLED_FIRST_SIGHT);
    scene_record(s);
    for (int i = 0; i < 60; i++) {
        s->now_ms += MINUTE;
        scene_see(s, 0, 1, "0");
        scene_due(s);
        assert_false(scene_says(s, "OtherCertificate"));
        expect_nothing_disruptive(s);
        expect_converged(s, "False", "OtherCertificate");
        scene_record(s);
    }
    assert_string_equal(condition(s, "Degraded")->reason, "NotVerified");
    scene_see(s, 0, 1, "1"); /* it reloads, or a person restarts it */
    scene_due(s);
    expect_converged(s, "True", "Converged");
    assert_false(condition(s, "Degraded")->status);
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_IDLE);
}

static void a_change_after_that_is_rolled_out_as_ever(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{coalesce: 0s}", 1);
    scene_due(s);
    see_all(s, 0, "0");
    scene_due(s);
    scene_record(s);
    s->now_ms += MINUTE;
    scene_material(s, "2");
    scene_due(s);
    scene_record(s);
    scene_due(s);
    assert_int_equal(s->plan.restarts_len, 1);
    expect_converged(s, "False", "RotationInProgress");
}

static void who_cannot_be_reached_is_waited_for_or_inferred_as_the_policy_says(void **state)
{
    (void)state;
    for (int infer = 0; infer < 2; infer++) {
        CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
        s->policy->consumers[0].verify.on_unreachable = infer ? CR_ON_UNREACHABLE_INFER : CR_ON_UNREACHABLE_WAIT;
        scene_due(s);
        see_all(s, 0, "1");
        unreachable(s, 0, 2);
        scene_due(s);
        scene_record(s);
        expect_converged(s, "Unknown", "NotVerified");
        assert_false(condition(s, "Degraded")->status);
        assert_true(s->plan.requeue_after_ms > 0);
        s->now_ms += DEADLINE;
        unreachable(s, 0, 2);
        scene_due(s);
        scene_record(s);
        assert_int_equal(condition(s, "Degraded")->status, !infer);
        assert_int_equal(scene_status(s, 0)->pods.inferred, infer);
        if (infer)
            expect_converged(s, "True", "Baseline");
        else
            expect_converged(s, "Unknown", "NotVerified");
        assert_int_equal(s->plan.status.secrets[0].leaf_by, CR_SETTLED_FIRST_SIGHT);
        expect_nothing_disruptive(s);
        /* Another process has to try before it infers. */
        restart_operator(s);
        scene_due(s);
        expect_converged(s, "Unknown", "NotVerified");
    }
}

static void a_policy_that_is_switched_off_probes_no_pod(void **state)
{
    (void)state;
    for (int plan_mode = 0; plan_mode < 2; plan_mode++) {
        CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
        s->policy->suspend = !plan_mode;
        s->policy->mode = plan_mode ? CR_MODE_PLAN : CR_MODE_ENFORCE;
        scene_due(s);
        assert_int_equal(s->plan.probes_len, 0);
        expect_converged(s, "Unknown", "NotVerified");
        assert_non_null(strstr(condition(s, "Converged")->message, plan_mode ? "mode: Plan" : "suspend"));
        s->policy->suspend = false;
        s->policy->mode = CR_MODE_ENFORCE;
        scene_due(s);
        assert_int_equal(s->plan.probes_len, 3);
    }
}

/* What is taken as given says so. */
static void without_verify_first_sight_is_a_baseline_and_called_so(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{coalesce: 0s}", 1);
    s->policy->consumers[0].verify.endpoints_len = 0;
    scene_due(s);
    expect_converged(s, "True", "Baseline");
    assert_non_null(strstr(condition(s, "Converged")->message, "not observed"));
    assert_null(strstr(condition(s, "Converged")->message, "Every consumer has"));
    assert_int_equal(s->plan.probes_len, 0);
    assert_string_equal(scene_status(s, 0)->verification.of, "");
    s->policy->consumers[0].verify.endpoints_len = 1;
}

/* --- who is new later --- */

static void verified_at_first_sight(struct scene *s)
{
    scene_due(s);
    for (size_t i = 0; i < s->policy->consumers_len; i++)
        see_all(s, i, "1");
    scene_due(s);
    expect_converged(s, "True", "Converged");
    scene_record(s);
    s->now_ms += 60 * MINUTE;
}

static void a_consumer_that_is_added_is_asked_and_the_others_are_not(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 2);
    s->policy->consumers_len = 1;
    verified_at_first_sight(s);
    s->policy->consumers_len = 2;
    scene_due(s);
    expect_converged(s, "Unknown", "NotVerified");
    assert_int_equal(s->plan.probes_len, 3);
    assert_int_equal(s->plan.probes[0].consumer, 1);
    expect_column(s, "1/2");
    see_all(s, 1, "0");
    scene_due(s);
    expect_converged(s, "False", "OtherCertificate");
    assert_false(condition(s, "Degraded")->status); /* it may still reload */
    see_all(s, 1, "1");
    scene_due(s);
    expect_converged(s, "True", "Converged");
}

static void where_to_ask_is_asked_again_when_it_changes(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    s->pods[0][2].created_ms += SECOND; /* the others would not be asked again */
    verified_at_first_sight(s);
    restart_operator(s);
    s->policy->consumers[0].verify.endpoints[0].port = 9443;
    scene_due(s);
    expect_converged(s, "Unknown", "NotVerified");
    assert_int_equal(s->plan.probes_len, 3);
}

/* A new pod may mount the old Secret from its kubelet's cache, also when nothing changes any more. */
static void is_asked_when_ready(struct scene *s, size_t pod)
{
    s->pods[0][pod].ready = true;
    scene_due(s);
    expect_converged(s, "Unknown", "NotVerified");
    assert_int_equal(s->plan.probes_len, 1);
    assert_int_equal(s->plan.probes[0].pod, pod);
}

static void a_pod_that_comes_later_is_asked_once_it_is_ready(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    verified_at_first_sight(s);
    scene_pod(s, 0, 3);
    s->consumers[0].pods_len = 4;
    s->pods[0][3].ready = false;
    scene_due(s);
    expect_converged(s, "True", "Converged");
    assert_int_equal(s->plan.probes_len, 0);
    is_asked_when_ready(s, 3);
    scene_see(s, 0, 3, "0");
    scene_due(s);
    expect_converged(s, "False", "OtherCertificate");
    scene_see(s, 0, 3, "1");
    scene_due(s);
    expect_converged(s, "True", "Converged");
    assert_int_equal(scene_status(s, 0)->verification.until_ms, s->pods[0][3].created_ms);
}

static void a_pod_that_is_ready_only_after_later_ones_is_asked_all_the_same(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    verified_at_first_sight(s);
    scene_pod(s, 0, 3);
    s->pods[0][3].ready = false;
    s->now_ms += 5 * SECOND;
    scene_pod(s, 0, 4);
    scene_see(s, 0, 4, "1");
    s->consumers[0].pods_len = 5;
    scene_due(s);
    expect_converged(s, "True", "Converged");
    assert_int_equal(scene_status(s, 0)->verification.until_ms, s->pods[0][3].created_ms);
    scene_record(s);
    /* What is on record stays the same meanwhile. */
    int64_t at_ms = scene_status(s, 0)->verification.at_ms;
    s->now_ms += 5 * SECOND;
    scene_due(s);
    assert_int_equal(scene_status(s, 0)->verification.at_ms, at_ms);
    is_asked_when_ready(s, 3);
    scene_see(s, 0, 3, "1");
    scene_due(s);
    expect_converged(s, "True", "Converged");
    assert_int_equal(scene_status(s, 0)->verification.until_ms, s->pods[0][4].created_ms);
}

/* Those of the newest second may have others beside them that were not seen. */
static void a_new_process_asks_only_who_may_be_new(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    s->pods[0][2].created_ms += SECOND;
    verified_at_first_sight(s);
    restart_operator(s);
    scene_due(s);
    assert_int_equal(s->plan.probes_len, 1);
    assert_int_equal(s->plan.probes[0].pod, 2);
    scene_see(s, 0, 2, "1");
    scene_due(s);
    expect_converged(s, "True", "Converged");
    CR_CLEANUP(cr_json) struct cr_json *before = cr_policy_status_encode(&s->status);
    CR_CLEANUP(cr_json) struct cr_json *after = cr_policy_status_encode(&s->plan.status);
    assert_true(cr_json_equal(before, after));
}

static void what_a_rotation_has_seen_needs_no_second_look(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{coalesce: 0s}", 1);
    for (size_t i = 0; i < CR_ROLE_COUNT; i++)
        s->policy->consumers[0].reload[i] =
            (struct cr_reload_override){.set = true, .method = CR_METHOD_WATCH, .max_delay_ms = SECOND};
    verified_at_first_sight(s);
    scene_material(s, "2");
    scene_due(s);
    scene_record(s);
    expect_converged(s, "False", "RotationInProgress");
    s->now_ms += 100 * SECOND;
    see_all(s, 0, "2");
    scene_due(s);
    expect_converged(s, "True", "Converged");
    assert_int_equal(s->plan.probes_len, 0);
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_CONVERGED);
    scene_record(s);
    restart_operator(s);
    scene_due(s);
    assert_int_equal(scene_status(s, 0)->pods.total, 3);
}

static void a_clock_that_is_set_back_restarts_the_wait(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    scene_due(s);
    scene_record(s);
    s->now_ms -= 60 * MINUTE;
    scene_due(s);
    assert_true(scene_status(s, 0)->verification.since_ms <= s->now_ms);
    see_all(s, 0, "1");
    scene_due(s);
    expect_converged(s, "True", "Converged");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_are_asked_at_first_sight_and_nothing_is_claimed_before),
        cmocka_unit_test(a_pod_that_serves_another_certificate_is_reported_and_left_alone),
        cmocka_unit_test(a_change_after_that_is_rolled_out_as_ever),
        cmocka_unit_test(who_cannot_be_reached_is_waited_for_or_inferred_as_the_policy_says),
        cmocka_unit_test(a_policy_that_is_switched_off_probes_no_pod),
        cmocka_unit_test(without_verify_first_sight_is_a_baseline_and_called_so),
        cmocka_unit_test(a_consumer_that_is_added_is_asked_and_the_others_are_not),
        cmocka_unit_test(where_to_ask_is_asked_again_when_it_changes),
        cmocka_unit_test(a_pod_that_comes_later_is_asked_once_it_is_ready),
        cmocka_unit_test(a_pod_that_is_ready_only_after_later_ones_is_asked_all_the_same),
        cmocka_unit_test(a_new_process_asks_only_who_may_be_new),
        cmocka_unit_test(what_a_rotation_has_seen_needs_no_second_look),
        cmocka_unit_test(a_clock_that_is_set_back_restarts_the_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
