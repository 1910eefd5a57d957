/* Old pods that let their connections go: what a restart says and waits for meanwhile, and what not. */
#include "base/clock.h"
#include "support/scene.h"

enum { MINUTE = 60 * SECOND, GRACE_MS = 6 * MINUTE, DRAIN_MS = 5 * MINUTE };

#define HOOK "[/certroll/certroll-shutdown-manager, shutdown, '--drain-timeout=5m']"

/* --- the cluster's part --- */

struct ending {
    struct cr_world_ending pods[SCENE_PODS];
    size_t len;
};

/* The Secret has another leaf, of the same CAs: no consumer waits for trust. */
static void change_leaf(struct scene *s, const char *leaf)
{
    scene_due(s);
    scene_record(s);
    s->now_ms += MINUTE;
    char trust[CR_SHA256_HEX];
    memcpy(trust, s->material.trust[0].fingerprint, sizeof trust);
    scene_material(s, leaf);
    memcpy(s->material.issuer, trust, sizeof trust);
    memcpy(s->material.trust[0].fingerprint, trust, sizeof trust);
    memcpy(s->material.trust[0].identity, trust, sizeof trust);
    cr_strvec_dispose(&s->material.anchors);
    cr_strvec_add(&s->material.anchors, trust);
    scene_due(s);
    scene_record(s);
    s->now_ms += 10 * SECOND;
}

static void show(struct scene *s, size_t consumer, struct ending *ending)
{
    s->consumers[consumer].ending = ending->pods;
    s->consumers[consumer].ending_len = ending->len;
}

/* Pod slot is asked to end, and keeps its place until another comes. */
static void end(struct scene *s, size_t consumer, size_t slot, int64_t drain_ms, struct ending *ending)
{
    ending->pods[ending->len++] = (struct cr_world_ending){
        .pod = s->pods[consumer][slot], .since_ms = s->now_ms, .until_ms = s->now_ms + GRACE_MS, .drain_ms = drain_ms};
    show(s, consumer, ending);
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

/* The rollout is complete, all new pods show the leaf, and the old ones drain. */
static void roll(struct scene *s, size_t consumer, const char *leaf, int64_t drain_ms, struct ending *ending)
{
    patch(s);
    scene_due(s);
    scene_record(s);
    s->now_ms += 3 * SECOND;
    for (size_t i = 0; i < s->consumers[consumer].pods_len; i++) {
        end(s, consumer, i, drain_ms, ending);
        scene_pod(s, consumer, i);
        scene_see(s, consumer, i, leaf);
    }
    cr_json_set_int(cr_json_edit(s->workloads[consumer], "status"), "observedGeneration", 2);
}

static const struct cr_consumer_status *look(struct scene *s, size_t consumer)
{
    scene_due(s);
    scene_record(s);
    return scene_status(s, consumer);
}

static void assert_stands(struct scene *s, size_t consumer, enum cr_consumer_state state, enum cr_hold hold,
                          const char *says)
{
    const struct cr_consumer_status *status = look(s, consumer);
    if (status->state != state || status->gate.hold != hold || !cr_streq(cr_or_empty(status->gate.text), says))
        fail_msg("%s, %s: %s, not %s, %s: %s", cr_consumer_state_name(status->state), cr_hold_name(status->gate.hold),
                 cr_or_empty(status->gate.text), cr_consumer_state_name(state), cr_hold_name(hold), says);
}

static bool is_settled(const struct scene *s)
{
    return !s->plan.status.secrets[0].pending.set;
}

static bool holds(const struct scene *s, const char *condition)
{
    return cr_status_condition_get(&s->plan.status, condition)->status;
}

static const char *message(const struct scene *s, const char *condition)
{
    return cr_or_empty(cr_status_condition_get(&s->plan.status, condition)->message);
}

static bool would_write(const struct scene *s)
{
    CR_CLEANUP(cr_json) struct cr_json *before = cr_policy_status_encode(&s->status);
    CR_CLEANUP(cr_json) struct cr_json *after = cr_policy_status_encode(&s->plan.status);
    return !cr_json_equal(before, after);
}

/* --- a rollout that is complete --- */

static void a_restart_is_over_when_the_old_pods_have_drained(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    struct ending ending = {0};
    change_leaf(s, "2");
    scene_due(s);
    roll(s, 0, "2", DRAIN_MS, &ending);
    static const char says[] =
        "drain: 3 old pods drain their connections, web-0 since 1970-01-12T13:47:53Z, at most 5m";
    assert_stands(s, 0, CR_CONSUMER_RESTARTING, CR_HOLD_DRAIN, says);
    assert_int_equal(scene_status(s, 0)->pods.verified, 3); /* what was reached is said */
    assert_false(is_settled(s));
    assert_false(holds(s, "Converged"));
    assert_false(holds(s, "Blocked"));
    assert_int_equal(s->plan.restarts_len, 0);
    assert_int_equal(s->plan.under_way_len, 0); /* no other has to wait for it */

    /* Nothing is news while it lasts, in whichever order pods come. */
    s->now_ms += 2 * MINUTE;
    struct cr_world_ending first = ending.pods[0];
    ending.pods[0] = ending.pods[2];
    ending.pods[2] = first;
    assert_stands(s, 0, CR_CONSUMER_RESTARTING, CR_HOLD_DRAIN, says);
    scene_plan(s);
    assert_false(would_write(s));
    assert_int_equal(s->plan.events_len, 0);
    assert_true(s->plan.requeue_after_ms > 0);
    s->now_ms += 2 * MINUTE + 50 * SECOND; /* past the time in which the new ones had to be verified, and were */
    scene_plan(s);
    assert_false(would_write(s));
    assert_false(holds(s, "Degraded"));

    ending.len = 1;
    show(s, 0, &ending);
    assert_stands(s, 0, CR_CONSUMER_RESTARTING, CR_HOLD_DRAIN,
                  "drain: old pod web-2 drains its connections since 1970-01-12T13:47:53Z, at most 5m");
    ending.len = 0;
    show(s, 0, &ending);
    assert_stands(s, 0, CR_CONSUMER_CONVERGED, CR_HOLD_NONE, "");
    assert_true(is_settled(s));
    assert_true(holds(s, "Converged"));
}

static void of_several_the_one_that_may_take_longest_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        int64_t since_ms, drain_ms; /* of the second */
        const char *says;
    } cases[] = {
        {"the later one", 10 * SECOND, DRAIN_MS, "web-1 since 1970-01-12T13:48:03Z, at most 5m"},
        {"the one that takes longer", -MINUTE, GRACE_MS - SECOND, "web-0 since 1970-01-12T13:47:53Z, at most 5m"},
        {"of unknown times the grace period", 0, -1, "web-1 since 1970-01-12T13:47:53Z, at most 6m"},
        {"never more than that", 0, 2 * GRACE_MS, "web-1 since 1970-01-12T13:47:53Z, at most 6m"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
        struct ending ending = {0};
        change_leaf(s, "2");
        scene_due(s);
        roll(s, 0, "2", DRAIN_MS, &ending);
        ending.len = 2;
        ending.pods[1].since_ms += cases[i].since_ms;
        ending.pods[1].until_ms += cases[i].since_ms;
        ending.pods[1].drain_ms = cases[i].drain_ms;
        show(s, 0, &ending);
        cr_autofree char *says = cr_asprintf("drain: 2 old pods drain their connections, %s", cases[i].says);
        if (!cr_streq(look(s, 0)->gate.text, says))
            fail_msg("%s: %s", cases[i].rule, cr_or_empty(scene_status(s, 0)->gate.text));
    }
}

static void who_has_no_shutdown_manager_is_not_waited_for(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    struct ending ending = {0};
    change_leaf(s, "2");
    scene_due(s);
    roll(s, 0, "2", 0, &ending);
    assert_stands(s, 0, CR_CONSUMER_CONVERGED, CR_HOLD_NONE, "");
    assert_true(is_settled(s));
}

/* It is scaled down, say: it has what the restart was for. */
static void a_new_pod_that_drains_is_not_waited_for(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    struct ending ending = {0};
    change_leaf(s, "2");
    scene_due(s);
    roll(s, 0, "2", DRAIN_MS, &ending);
    ending.len = 0;
    end(s, 0, 0, DRAIN_MS, &ending);
    assert_stands(s, 0, CR_CONSUMER_CONVERGED, CR_HOLD_NONE, "");
    assert_true(is_settled(s));
}

/* With CAs of before they refuse what comes next: also who has no shutdown manager, as long as it may run. */
static void trust_has_not_arrived_before_they_have_ended(void **state)
{
    (void)state;
    static const int64_t drains_ms[] = {0, DRAIN_MS};
    for (size_t i = 0; i < cr_array_len(drains_ms); i++) {
        CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
        struct ending ending = {0};
        scene_change(s, "2");
        scene_due(s);
        roll(s, 0, "2", drains_ms[i], &ending);
        look(s, 0);
        assert_false(is_settled(s));
        s->now_ms += GRACE_MS + 30 * SECOND - 1;
        look(s, 0);
        assert_false(is_settled(s));
        assert_int_equal(s->plan.requeue_after_ms, 1);
        ending.len = 0;
        show(s, 0, &ending);
        look(s, 0);
        assert_true(is_settled(s));
    }
}

static void reload(struct scene *s)
{
    for (int role = 0; role < CR_ROLE_COUNT; role++)
        s->policy->consumers[0].reload[role] = (struct cr_reload_override){.set = true, .method = CR_METHOD_WATCH};
}

/* A kubelet does not refresh it any more. */
static void a_pod_that_is_deleted_has_not_reloaded_trust(void **state)
{
    (void)state;
    static const int64_t drains_ms[] = {0, DRAIN_MS};
    for (size_t i = 0; i < cr_array_len(drains_ms); i++) {
        CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
        struct ending ending = {0};
        reload(s);
        end(s, 0, 0, drains_ms[i], &ending);
        scene_pod(s, 0, 0);
        s->now_ms += MINUTE;
        scene_see_all(s, "1");
        scene_change(s, "2");
        scene_see_all(s, "2");
        assert_stands(s, 0, CR_CONSUMER_CONVERGED, CR_HOLD_NONE, "");
        assert_int_equal(scene_status(s, 0)->pods.verified, 3);
        assert_false(is_settled(s));
        assert_non_null(strstr(message(s, "Converged"), "web"));
        s->now_ms = ending.pods[0].until_ms + 30 * SECOND - 1;
        look(s, 0);
        assert_false(is_settled(s));
        assert_int_equal(s->plan.requeue_after_ms, 1);
        s->now_ms += 1;
        look(s, 0);
        assert_true(is_settled(s));
    }
}

static void a_pod_that_is_deleted_holds_no_reload_of_a_leaf_or_of_what_it_has_loaded(void **state)
{
    (void)state;
    for (int trust = 0; trust <= 1; trust++) {
        CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
        struct ending ending = {0};
        reload(s);
        scene_see_all(s, "1");
        if (trust) {
            scene_change(s, "2");
            s->now_ms += 2 * MINUTE;
        }
        end(s, 0, 0, DRAIN_MS, &ending);
        scene_pod(s, 0, 0);
        if (!trust)
            change_leaf(s, "2");
        scene_see_all(s, "2");
        look(s, 0);
        assert_true(is_settled(s));
    }
}

/* What it presents is refused once the CA of before is gone. */
static void a_pod_that_is_deleted_goes_on_with_a_leaf_of_another_ca(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    struct ending ending = {0};
    reload(s);
    scene_see_all(s, "1");
    end(s, 0, 0, DRAIN_MS, &ending);
    scene_pod(s, 0, 0);
    change_leaf(s, "2");
    struct cr_material *m = &s->material;
    cr_sha256_hex("3", 1, m->leaf);
    memcpy(m->chain, m->leaf, sizeof m->chain);
    memcpy(m->issuer, m->leaf, sizeof m->issuer);
    s->secret.resource_version = "3";
    look(s, 0);
    scene_see_all(s, "3");
    look(s, 0);
    assert_int_equal(scene_status(s, 0)->pods.verified, 3);
    assert_false(is_settled(s));
    ending.len = 0;
    show(s, 0, &ending);
    look(s, 0);
    assert_true(is_settled(s));
}

static void new_pods_without_evidence_are_reported_while_old_ones_drain(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    struct ending ending = {0};
    change_leaf(s, "2");
    scene_due(s);
    roll(s, 0, "2", DRAIN_MS, &ending);
    for (size_t i = 0; i < 3; i++)
        s->pods[0][i].started_ms = 0; /* and so cannot be asked */
    memset(s->sightings, 0, sizeof s->sightings);
    assert_int_equal(look(s, 0)->state, CR_CONSUMER_RESTARTING);
    assert_false(holds(s, "Degraded"));
    s->now_ms += 4 * MINUTE;
    assert_int_equal(look(s, 0)->state, CR_CONSUMER_RESTARTING);
    assert_non_null(strstr(message(s, "Degraded"), "web: 0 of 3 pods have old material, 3 cannot be verified"));
}

/* Others come all the time, such as by an autoscaler: those are no reason to keep quiet. */
static void one_without_evidence_is_reported_whatever_else_comes(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    struct ending ending = {0};
    change_leaf(s, "2");
    scene_due(s);
    roll(s, 0, "2", 0, &ending);
    s->pods[0][0].started_ms = 0; /* and so cannot be asked */
    s->sightings[0][0] = (struct cr_sighting){0};
    s->now_ms += 4 * MINUTE;
    scene_pod(s, 0, 2);
    scene_see(s, 0, 2, "2");
    assert_int_equal(look(s, 0)->state, CR_CONSUMER_VERIFYING);
    assert_non_null(strstr(message(s, "Degraded"), "web: 0 of 3 pods have old material, 1 cannot be verified"));
}

static void old_pods_that_others_replaced_are_waited_for_as_well(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Never}", 1);
    struct ending ending = {0};
    change_leaf(s, "2");
    assert_stands(s, 0, CR_CONSUMER_BLOCKED, CR_HOLD_RESTART_NEVER, "restart.method: Never");
    s->now_ms += 2 * MINUTE;
    for (size_t i = 0; i < 3; i++) {
        end(s, 0, i, DRAIN_MS, &ending);
        scene_pod(s, 0, i);
        scene_see(s, 0, i, "2");
    }
    assert_int_equal(look(s, 0)->state, CR_CONSUMER_RESTARTING);
    assert_false(is_settled(s));
    /* One of those that came so late that they have it: nothing says so but the time. */
    ending.len = 0;
    end(s, 0, 0, DRAIN_MS, &ending);
    assert_stands(s, 0, CR_CONSUMER_CONVERGED, CR_HOLD_NONE, "");
    assert_true(is_settled(s));
}

/* --- who goes on meanwhile --- */

static void the_next_consumer_is_restarted_unless_it_comes_after(void **state)
{
    (void)state;
    for (int serial = 0; serial < 2; serial++) {
        CR_CLEANUP(scene) struct scene *s = scene_new("{maxConcurrent: 1}", 2);
        struct ending ending = {0};
        if (serial)
            cr_strvec_add(&s->policy->consumers[1].after, "web");
        change_leaf(s, "2");
        scene_due(s);
        assert_int_equal(s->plan.restarts[0].consumer, 0);
        roll(s, 0, "2", DRAIN_MS, &ending);
        scene_due(s);
        assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_RESTARTING);
        assert_int_equal(s->plan.restarts_len, serial ? 0 : 1);
        if (!serial)
            continue;
        assert_int_equal(scene_status(s, 1)->gate.hold, CR_HOLD_ORDER);
        ending.len = 0;
        show(s, 0, &ending);
        assert_int_equal(scene_due(s)->restarts_len, 1);
    }
}

/* --- a pod that does not end --- */

static void a_pod_past_its_grace_period_is_named_once_and_held(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    struct ending ending = {0};
    change_leaf(s, "2");
    scene_due(s);
    roll(s, 0, "2", DRAIN_MS, &ending);
    s->now_ms += GRACE_MS + 30 * SECOND - 1;
    assert_int_equal(look(s, 0)->state, CR_CONSUMER_RESTARTING);
    assert_int_equal(s->plan.requeue_after_ms, 1);
    s->now_ms += 1;
    scene_plan(s);
    assert_true(scene_says(s, "DrainStuck"));
    static const char says[] = "drain: stuck: old pod web-0 should have ended by 1970-01-12T13:53:53Z and is still "
                               "there: look at its node; when that is gone for good, kubectl delete pod --force";
    assert_stands(s, 0, CR_CONSUMER_BLOCKED, CR_HOLD_DRAIN_STUCK, says);
    assert_true(holds(s, "Blocked"));
    assert_false(holds(s, "Degraded")); /* the new ones have all */
    assert_false(is_settled(s));        /* it may serve on */
    s->now_ms += MINUTE;
    assert_stands(s, 0, CR_CONSUMER_BLOCKED, CR_HOLD_DRAIN_STUCK, says);
    assert_false(scene_says(s, "DrainStuck"));
    ending.len = 0;
    show(s, 0, &ending);
    assert_stands(s, 0, CR_CONSUMER_CONVERGED, CR_HOLD_NONE, "");
    assert_true(is_settled(s));
}

/* --- where a new pod comes only when the old one has ended --- */

static void be_a_stateful_set(struct scene *s)
{
    cr_strset(&s->policy->consumers[0].kind, "StatefulSet");
    struct cr_json *spec = cr_json_edit(cr_json_edit(cr_json_edit(s->workloads[0], "spec"), "template"), "spec");
    struct cr_json *container = cr_json_take_first(cr_json_edit(spec, "containers"));
    cr_json_set(container, "lifecycle", test_yaml("{preStop: {exec: {command: " HOOK "}}}"));
    cr_json_add(cr_json_edit(spec, "containers"), container);
    cr_json_set_int(spec, "terminationGracePeriodSeconds", GRACE_MS / SECOND);
}

static void a_rollout_that_waits_for_drains_says_so_and_has_their_time_on_top(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    struct ending ending = {0};
    be_a_stateful_set(s);
    change_leaf(s, "2");
    scene_due(s);
    patch(s);
    cr_json_set(s->workloads[0], "status",
                test_yaml("{observedGeneration: 2, replicas: 3, readyReplicas: 2, availableReplicas: 2}"));
    scene_due(s);
    end(s, 0, 2, DRAIN_MS, &ending);
    s->consumers[0].pods_len = 2;
    assert_int_equal(look(s, 0)->state, CR_CONSUMER_RESTARTING);
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_DRAIN);
    assert_true(cr_starts_with(scene_status(s, 0)->gate.text, "drain: old pod web-2 drains its connections since "));
    assert_int_equal(s->plan.under_way_len, 1); /* it takes a pod away, and has its place */
    ending.len = 0;
    show(s, 0, &ending);
    s->now_ms += 16 * MINUTE - 1;
    assert_stands(s, 0, CR_CONSUMER_RESTARTING, CR_HOLD_NONE, "");
    s->now_ms += 1;
    assert_stands(s, 0, CR_CONSUMER_FAILED, CR_HOLD_ROLLOUT_FAILED, "no new pod for 16 minutes: 0 of 3 pods updated");
}

/* Each drain puts the next pod off; the last one is looked at as long as the first. */
static void a_new_pod_that_comes_late_has_its_own_time_to_be_verified(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    be_a_stateful_set(s);
    change_leaf(s, "2");
    scene_due(s);
    patch(s);
    scene_due(s);
    scene_record(s);
    s->now_ms += 15 * MINUTE;
    for (size_t i = 0; i < 3; i++)
        scene_pod(s, 0, i);
    scene_see(s, 0, 0, "2");
    scene_see(s, 0, 1, "2");
    cr_json_set_int(cr_json_edit(s->workloads[0], "status"), "observedGeneration", 2);
    assert_int_equal(look(s, 0)->state, CR_CONSUMER_VERIFYING);
    assert_int_equal(scene_status(s, 0)->pods.unknown, 1);
    assert_int_equal(s->plan.probes_len, 1);
    assert_false(holds(s, "Degraded"));
    /* It does not listen yet. */
    s->sightings[0][2] = (struct cr_sighting){.seen = CR_SEEN_UNREACHABLE, .at_ms = s->now_ms};
    scene_plan(s);
    assert_true(s->plan.requeue_after_ms <= SECOND);
    s->now_ms += 96 * SECOND;
    assert_int_equal(look(s, 0)->state, CR_CONSUMER_VERIFYING);
    assert_true(holds(s, "Degraded"));
    s->policy->consumers[0].verify.on_unreachable = CR_ON_UNREACHABLE_INFER;
    assert_int_equal(look(s, 0)->state, CR_CONSUMER_CONVERGED);
    assert_int_equal(scene_status(s, 0)->pods.inferred, 1);
}

static void evictions_wait_for_a_drain_and_have_its_time_on_top(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{method: Evict}", 1);
    struct ending ending = {0};
    be_a_stateful_set(s);
    change_leaf(s, "2");
    assert_int_equal(scene_due(s)->evictions_len, 1);
    scene_record(s);
    size_t slot = s->plan.evictions[0].pod;
    end(s, 0, slot, DRAIN_MS, &ending);
    s->pods[0][slot] = s->pods[0][2];
    s->consumers[0].pods_len = 2;
    assert_int_equal(look(s, 0)->state, CR_CONSUMER_RESTARTING);
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_DRAIN);
    assert_int_equal(s->plan.evictions_len, 0);
    ending.len = 0;
    show(s, 0, &ending);
    s->now_ms += 16 * MINUTE - 1;
    assert_stands(s, 0, CR_CONSUMER_RESTARTING, CR_HOLD_NONE, "");
    s->now_ms += 1;
    assert_int_equal(look(s, 0)->state, CR_CONSUMER_FAILED);
}

/* --- times that cannot hold --- */

static void a_misfit_is_reported_once_and_stops_nothing(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    scene_due(s);
    scene_record(s);
    assert_false(holds(s, "Degraded"));
    be_a_stateful_set(s);
    cr_strset(&s->policy->consumers[0].kind, "Deployment");
    struct cr_json *spec = cr_json_edit(cr_json_edit(cr_json_edit(s->workloads[0], "spec"), "template"), "spec");
    cr_json_remove(spec, "terminationGracePeriodSeconds");
    scene_plan(s);
    assert_true(scene_says(s, "ShutdownMisfit"));
    assert_true(holds(s, "Degraded"));
    assert_string_equal(cr_status_condition_get(&s->plan.status, "Degraded")->reason, "ShutdownMisfit");
    assert_non_null(strstr(message(s, "Degraded"), "web: container web: --drain-timeout 5m must be less than "
                                                   "terminationGracePeriodSeconds 30s"));
    scene_record(s);
    scene_plan(s);
    assert_false(scene_says(s, "ShutdownMisfit"));
    assert_false(would_write(s));

    change_leaf(s, "2");
    assert_int_equal(scene_due(s)->restarts_len, 1);
    assert_false(scene_says(s, "ShutdownMisfit"));
    scene_record(s);

    cr_json_set_int(spec, "terminationGracePeriodSeconds", GRACE_MS / SECOND);
    scene_plan(s);
    assert_false(holds(s, "Degraded"));
    scene_record(s);
    cr_json_remove(spec, "terminationGracePeriodSeconds");
    scene_plan(s);
    assert_true(scene_says(s, "ShutdownMisfit")); /* it has come again */
}

int main(void)
{
#define T(name) cmocka_unit_test(name)
    const struct CMUnitTest tests[] = {
        T(a_restart_is_over_when_the_old_pods_have_drained),
        T(of_several_the_one_that_may_take_longest_is_named),
        T(who_has_no_shutdown_manager_is_not_waited_for),
        T(a_new_pod_that_drains_is_not_waited_for),
        T(trust_has_not_arrived_before_they_have_ended),
        T(a_pod_that_is_deleted_has_not_reloaded_trust),
        T(a_pod_that_is_deleted_goes_on_with_a_leaf_of_another_ca),
        T(a_pod_that_is_deleted_holds_no_reload_of_a_leaf_or_of_what_it_has_loaded),
        T(new_pods_without_evidence_are_reported_while_old_ones_drain),
        T(one_without_evidence_is_reported_whatever_else_comes),
        T(old_pods_that_others_replaced_are_waited_for_as_well),
        T(the_next_consumer_is_restarted_unless_it_comes_after),
        T(a_pod_past_its_grace_period_is_named_once_and_held),
        T(a_rollout_that_waits_for_drains_says_so_and_has_their_time_on_top),
        T(a_new_pod_that_comes_late_has_its_own_time_to_be_verified),
        T(evictions_wait_for_a_drain_and_have_its_time_on_top),
        T(a_misfit_is_reported_once_and_stops_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
