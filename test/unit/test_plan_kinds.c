/* The plan for kinds that restart in a way of their own, or not at all: one Secret, one consumer of unknown software,
 * driven as the controller drives it. */
#include "policy/rules/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "evidence/diff.h"
#include "support/recorded.h"
#include "support/yamltext.h"

enum { PODS_MAX = 3 };

static const int64_t start_ms = 1000LL * 1000 * 1000;
static const int64_t minute_ms = 60LL * 1000;

struct scene {
    struct cr_policy *policy;
    struct cr_policy_status status;
    struct cr_catalogue *catalogue;
    struct cr_material material;
    struct cr_world_secret secret;
    struct cr_json *workload;
    struct cr_json *pod_json[PODS_MAX];
    struct cr_world_pod pods[PODS_MAX];
    struct cr_world_consumer consumer;
    int64_t now_ms;
    struct cr_plan plan; /* the last one */
};

/* word stands for a leaf of one CA. */
static void hold(struct scene *s, const char *word)
{
    struct cr_material *m = &s->material;
    cr_material_dispose(m);
    *m = (struct cr_material){.has_leaf = true,
                              .not_before_ms = start_ms - 60 * minute_ms,
                              .not_after_ms = start_ms + 60 * 24 * 365 * minute_ms,
                              .trust_len = 1};
    cr_sha256_hex(word, strlen(word), m->leaf);
    memcpy(m->chain, m->leaf, sizeof m->chain);
    memcpy(m->key, m->leaf, sizeof m->key);
    cr_sha256_hex("ca", 2, m->issuer);
    m->trust = cr_calloc(1, sizeof *m->trust);
    memcpy(m->trust[0].fingerprint, m->issuer, sizeof m->trust[0].fingerprint);
    memcpy(m->trust[0].identity, m->issuer, sizeof m->trust[0].identity);
    m->trust[0].not_after_ms = m->not_after_ms;
    cr_strvec_add(&m->anchors, m->trust[0].identity);
    s->secret = (struct cr_world_secret){.found = true, .resource_version = word, .material = m};
}

/* Those that there were are gone. */
static void have_pods(struct scene *s, size_t len, int64_t created_ms)
{
    static const char *const names[PODS_MAX] = {"pod-0", "pod-1", "pod-2"};
    for (size_t i = 0; i < len; i++) {
        cr_json_free(s->pod_json[i]);
        s->pod_json[i] = test_yaml("metadata: {}");
        s->pods[i] = (struct cr_world_pod){.pod = s->pod_json[i],
                                           .name = names[i],
                                           .uid = names[i],
                                           .ready = true,
                                           .started_ms = created_ms,
                                           .created_ms = created_ms};
    }
    s->consumer.pods = s->pods;
    s->consumer.pods_len = len;
}

/* spec: beside the template. */
static void be(struct scene *s, const char *kind, const char *api_version, const char *spec)
{
    struct cr_error err = {0};
    cr_autofree char *policy = cr_asprintf(
        "metadata: {name: p, namespace: ns, uid: u, resourceVersion: '1', generation: 1}\n"
        "spec: {secrets: [{name: tls}], restart: {coalesce: 0s}, consumers: [{name: c, targetRef: {apiVersion: %s, "
        "kind: %s, name: w}}]}\n",
        api_version, kind);
    CR_CLEANUP(cr_json) struct cr_json *object = test_yaml(policy);
    s->policy = cr_policy_decode(object, &err);
    if (!s->policy || s->policy->consumers_len != 1)
        fail_msg("%s: %s", kind, err.text);
    cr_autofree char *workload = cr_asprintf(
        "kind: %s\n"
        "metadata: {name: w, namespace: ns, uid: w-uid, resourceVersion: '2', generation: 1}\n"
        "spec:\n"
        "  template:\n"
        "    spec:\n"
        "      containers: [{name: c, image: example.com/unknown:1, volumeMounts: [{name: v, mountPath: /tls}]}]\n"
        "      volumes: [{name: v, secret: {secretName: tls}}]\n"
        "%s",
        kind, spec);
    s->workload = test_yaml(workload);
    s->consumer.found = true;
    s->consumer.workload = s->workload;
}

static void plan_once(struct scene *s)
{
    cr_plan_dispose(&s->plan);
    struct cr_world world = {.policy = s->policy,
                             .status = &s->status,
                             .secrets = &s->secret,
                             .consumers = &s->consumer,
                             .catalogue = s->catalogue,
                             .now_ms = s->now_ms};
    cr_plan_make(&world, &s->plan);
}

/* Plans and records until there is nothing more to put on record. */
static const struct cr_consumer_status *look(struct scene *s)
{
    for (int i = 0; i < 4; i++) {
        plan_once(s);
        bool record_first = s->plan.record_first;
        test_record_status(&s->plan.status, &s->status);
        if (!record_first)
            return &s->plan.status.consumers[0];
    }
    fail_msg("the plan wants to record for ever");
    return NULL;
}

static void assert_held(struct scene *s, enum cr_consumer_state state, enum cr_hold hold, const char *text)
{
    const struct cr_consumer_status *status = look(s);
    if (status->state != state || status->gate.hold != hold || !strstr(cr_or_empty(status->gate.text), text))
        fail_msg("%d %s (%s) instead of %d %s (%s)", status->state, cr_hold_name(status->gate.hold),
                 cr_or_empty(status->gate.text), state, cr_hold_name(hold), text);
}

static void assert_state(struct scene *s, enum cr_consumer_state state)
{
    assert_held(s, state, CR_HOLD_NONE, "");
}

static int setup(void **state)
{
    struct scene *s = cr_new(struct scene);
    struct cr_error err = {0};
    s->catalogue = cr_catalogue_builtin(&err);
    if (!s->catalogue)
        fail_msg("%s", err.text);
    s->now_ms = start_ms;
    hold(s, "1");
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct scene *s = *state;
    cr_plan_dispose(&s->plan);
    cr_policy_status_dispose(&s->status);
    cr_policy_free(s->policy);
    cr_catalogue_free(s->catalogue);
    cr_material_dispose(&s->material);
    cr_json_free(s->workload);
    for (size_t i = 0; i < PODS_MAX; i++)
        cr_json_free(s->pod_json[i]);
    free(s);
    return 0;
}

/* It is known, and later its Secret has another leaf. */
static void change(struct scene *s)
{
    look(s);
    s->now_ms += minute_ms;
    hold(s, "2");
    look(s);
}

/* --- what ends by itself --- */

static void a_job_is_left_to_its_next_run(void **state)
{
    static const char *const kinds[] = {"Job", "CronJob"};
    for (size_t i = 0; i < cr_array_len(kinds); i++) {
        struct scene *s = *state;
        be(s, kinds[i], "batch/v1", "");
        s->consumer = (struct cr_world_consumer){0}; /* it is not looked at */
        change(s);
        const struct cr_consumer_status *status = &s->plan.status.consumers[0];
        assert_int_equal(status->decision, CR_DECISION_NONE);
        assert_int_equal(status->state, CR_CONSUMER_IDLE);
        assert_non_null(strstr(status->reason, "its next run mounts what the Secrets hold by then"));
        assert_int_equal(s->plan.restarts_len, 0);
        assert_false(s->plan.status.secrets[0].pending.set); /* nothing is waited for */
        assert_true(cr_status_condition_get(&s->plan.status, "Converged")->status);
        assert_false(cr_status_condition_get(&s->plan.status, "Degraded")->status);
        assert_true(cr_status_condition_get(&s->plan.status, "Ready")->status);
        teardown(state);
        setup(state);
    }
}

/* --- a rollout that stands still, or a workload that is scaled meanwhile --- */

static void set_workload(struct scene *s, const char *status, int64_t generation, int64_t replicas)
{
    cr_json_set(s->workload, "status", test_yaml(status));
    cr_json_set_int(cr_json_edit(s->workload, "metadata"), "generation", generation);
    if (replicas >= 0)
        cr_json_set_int(cr_json_edit(s->workload, "spec"), "replicas", replicas);
}

/* As acts.c does. */
static void restart(struct scene *s)
{
    assert_int_equal(s->plan.restarts_len, 1);
    const struct cr_plan_restart *planned = &s->plan.restarts[0];
    struct cr_json *annotations = cr_json_copy(planned->annotations);
    char at[CR_TIME_TEXT];
    cr_time_format(planned->restart_at_ms ? planned->restart_at_ms : s->now_ms, at);
    if (planned->restart_at_ms) {
        cr_json_set(cr_json_edit(s->workload, "metadata"), "annotations", annotations);
        cr_json_set_string(cr_json_edit(s->workload, "spec"), "restartAt", at);
        return;
    }
    struct cr_json *template = cr_json_edit(cr_json_edit(s->workload, "spec"), "template");
    cr_json_set_string(annotations, "kubectl.kubernetes.io/restartedAt", at);
    cr_json_set(cr_json_object_in(template, "metadata"), "annotations", annotations);
}

/* It came up with the template as it is. */
static void replace_pod(struct scene *s, size_t pod)
{
    struct cr_json *metadata = cr_json_edit(s->pod_json[pod], "metadata");
    const struct cr_json *annotations = cr_json_at(s->workload, "spec", "template", "metadata", "annotations");
    cr_json_set(metadata, "annotations", cr_json_copy(annotations));
    s->pods[pod].created_ms = s->pods[pod].started_ms = s->now_ms;
}

static const char three_of_three[] = "{observedGeneration: 1, replicas: 3, readyReplicas: 3, availableReplicas: 3, "
                                     "updatedReplicas: 3}";

static void begin(struct scene *s)
{
    be(s, "StatefulSet", "apps/v1", "  replicas: 3\n");
    set_workload(s, three_of_three, 1, -1);
    have_pods(s, 3, s->now_ms);
    change(s);
    restart(s);
    set_workload(s, "{observedGeneration: 2, replicas: 3, readyReplicas: 3, availableReplicas: 3, updatedReplicas: 0}",
                 2, -1);
    assert_state(s, CR_CONSUMER_RESTARTING);
}

static void a_stateful_set_that_stands_still_has_failed_until_it_is_mended(void **state)
{
    struct scene *s = *state;
    begin(s);
    s->now_ms += 9 * minute_ms;
    replace_pod(s, 2); /* progress */
    set_workload(s, "{observedGeneration: 2, replicas: 3, availableReplicas: 2, updatedReplicas: 1}", 2, -1);
    assert_state(s, CR_CONSUMER_RESTARTING);
    s->now_ms += 10 * minute_ms - 1;
    assert_state(s, CR_CONSUMER_RESTARTING);
    s->now_ms += 1;
    assert_held(s, CR_CONSUMER_FAILED, CR_HOLD_ROLLOUT_FAILED, "no new pod for 10 minutes: 1 of 3 pods updated");
    assert_true(cr_status_condition_get(&s->plan.status, "Degraded")->status);
    assert_int_equal(s->plan.restarts_len, 0);
    replace_pod(s, 1);
    assert_state(s, CR_CONSUMER_RESTARTING);
    replace_pod(s, 0);
    set_workload(s, "{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 3}", 2, -1);
    assert_state(s, CR_CONSUMER_CONVERGED);
    assert_int_equal(s->plan.restarts_len, 0);
}

static void what_is_scaled_while_it_rolls_is_neither_done_too_early_nor_restarted_again(void **state)
{
    struct scene *s = *state;
    begin(s);
    /* Up: the new ones come with the new template, and count as updated. */
    set_workload(s, "{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 3}", 3, 5);
    assert_state(s, CR_CONSUMER_RESTARTING);
    set_workload(s, "{observedGeneration: 3, replicas: 5, availableReplicas: 5, updatedReplicas: 4}", 3, 5);
    assert_state(s, CR_CONSUMER_RESTARTING);
    /* Down to the one that is old: those beyond it are new, and still there. */
    replace_pod(s, 1);
    replace_pod(s, 2);
    set_workload(s, "{observedGeneration: 4, replicas: 3, availableReplicas: 3, updatedReplicas: 2}", 4, 1);
    assert_state(s, CR_CONSUMER_RESTARTING);
    set_workload(s, "{observedGeneration: 4, replicas: 1, availableReplicas: 1, updatedReplicas: 0}", 4, 1);
    s->consumer.pods_len = 1;
    assert_state(s, CR_CONSUMER_RESTARTING);
    /* To none, and back. */
    set_workload(s, "{observedGeneration: 5, replicas: 0, availableReplicas: 0, updatedReplicas: 0}", 5, 0);
    s->consumer.pods_len = 0;
    assert_state(s, CR_CONSUMER_CONVERGED);
    set_workload(s, "{observedGeneration: 6, replicas: 2, availableReplicas: 2, updatedReplicas: 2}", 6, 2);
    s->consumer.pods_len = 2;
    replace_pod(s, 0);
    look(s);
    assert_int_equal(s->plan.restarts_len, 0);
    assert_true(cr_status_condition_get(&s->plan.status, "Converged")->status);
}

/* --- a ReplicaSet without an owner --- */

static void a_replica_set_is_not_restarted_by_its_template(void **state)
{
    struct scene *s = *state;
    be(s, "ReplicaSet", "apps/v1", "  replicas: 2\n");
    s->policy->restart.method = CR_RESTART_ROLLOUT; /* Auto evicts: test_plan_budget.c */
    set_workload(s, "{observedGeneration: 1, replicas: 2, availableReplicas: 2}", 1, -1);
    have_pods(s, 2, s->now_ms);
    change(s);
    assert_held(s, CR_CONSUMER_BLOCKED, CR_HOLD_BARE_REPLICA_SET,
                "a ReplicaSet without a Deployment replaces no pod by itself");
    assert_int_equal(s->plan.restarts_len, 0);
    /* By hand; each late enough that its kubelet's cache cannot be old. */
    s->now_ms += 2 * minute_ms;
    have_pods(s, 1, s->now_ms);
    assert_held(s, CR_CONSUMER_BLOCKED, CR_HOLD_BARE_REPLICA_SET, "a ReplicaSet");
    have_pods(s, 2, s->now_ms);
    assert_state(s, CR_CONSUMER_CONVERGED);
}

static void a_replica_set_that_is_not_seen_may_be_a_deployments(void **state)
{
    struct scene *s = *state;
    be(s, "ReplicaSet", "apps/v1", "  replicas: 2\n");
    s->consumer = (struct cr_world_consumer){0};
    assert_held(s, CR_CONSUMER_ABSENT, CR_HOLD_NOT_FOUND, "or a Deployment or Rollout has made it");
    assert_non_null(strstr(s->plan.status.consumers[0].reason, "or a Deployment or Rollout has made it"));
}

/* --- an Argo Rollout --- */

static const char healthy[] = "{observedGeneration: '9', phase: Healthy, replicas: 2, updatedReplicas: 2, "
                              "availableReplicas: 2, stableRS: a, currentPodHash: a}";

static void be_argo(struct scene *s)
{
    be(s, "Rollout", "argoproj.io/v1alpha1", "  replicas: 2\n");
    set_workload(s, healthy, 3, -1);
    have_pods(s, 2, s->now_ms);
}

/* The controller has evicted all that came before spec.restartAt. */
static void finish_argo(struct scene *s)
{
    cr_autofree char *status =
        cr_asprintf("{observedGeneration: '9', phase: Healthy, replicas: 2, updatedReplicas: 2, availableReplicas: 2, "
                    "stableRS: a, currentPodHash: a, restartedAt: '%s'}",
                    cr_json_string_at(s->workload, "spec", "restartAt"));
    set_workload(s, status, 4, -1);
}

static void an_argo_rollout_is_restarted_once_by_time(void **state)
{
    struct scene *s = *state;
    be_argo(s);
    change(s);
    assert_int_equal(s->plan.restarts_len, 1);
    assert_int_equal(s->plan.restarts[0].restart_at_ms, s->now_ms);
    restart(s);
    set_workload(s, healthy, 4, -1);
    assert_state(s, CR_CONSUMER_RESTARTING);
    s->now_ms += minute_ms / 2;
    have_pods(s, 2, s->now_ms);
    s->pods[1].created_ms = s->pods[1].started_ms = start_ms;
    assert_state(s, CR_CONSUMER_RESTARTING);
    finish_argo(s); /* it says so with the last eviction */
    assert_state(s, CR_CONSUMER_VERIFYING);
    assert_int_equal(s->plan.status.consumers[0].pods.stale, 1);
    have_pods(s, 2, s->now_ms);
    assert_state(s, CR_CONSUMER_CONVERGED);
    s->now_ms += 10 * minute_ms;
    look(s);
    assert_int_equal(s->plan.restarts_len, 0);
}

/* Our clock is behind that of the API server, by which pods are dated. */
static void an_argo_rollout_is_restarted_for_all_pods_that_there_are(void **state)
{
    struct scene *s = *state;
    be_argo(s);
    look(s);
    s->now_ms += minute_ms;
    have_pods(s, 2, s->now_ms + minute_ms / 2);
    hold(s, "2");
    look(s);
    assert_int_equal(s->plan.restarts_len, 1);
    assert_int_equal(s->plan.restarts[0].restart_at_ms, s->now_ms + minute_ms / 2 + 1000);
    /* Times have whole seconds: one of this very second would be as good as restarted. */
    s->now_ms += 5 * minute_ms + 400;
    have_pods(s, 2, s->now_ms - 400);
    hold(s, "3");
    look(s);
    assert_int_equal(s->plan.restarts_len, 1);
    assert_int_equal(s->plan.restarts[0].restart_at_ms, s->now_ms - 400 + 1000);
}

static void an_argo_rollout_is_left_alone_in_the_middle_of_an_update(void **state)
{
    static const struct {
        const char *status;
        enum cr_consumer_state state;
        enum cr_hold hold;
        const char *text;
    } cases[] = {
        {"{observedGeneration: '9', phase: Progressing, message: waiting, availableReplicas: 2, stableRS: a, "
         "currentPodHash: b}",
         CR_CONSUMER_PENDING, CR_HOLD_UPDATING, "the Rollout is busy: it is being updated: waiting"},
        {"{observedGeneration: '9', phase: Paused, pauseConditions: [{reason: CanaryPauseStep}], availableReplicas: 2, "
         "stableRS: a, currentPodHash: b}",
         CR_CONSUMER_BLOCKED, CR_HOLD_PAUSED, "the workload is paused"},
        {"{observedGeneration: '9', phase: Degraded, message: aborted, availableReplicas: 2, stableRS: a, "
         "currentPodHash: b}",
         CR_CONSUMER_BLOCKED, CR_HOLD_UPDATE_FAILED, "the Rollout is busy: it is degraded: aborted"},
    };
    struct scene *s = *state;
    be_argo(s);
    set_workload(s, cases[0].status, 3, -1);
    change(s);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        set_workload(s, cases[i].status, 3, -1);
        assert_held(s, cases[i].state, cases[i].hold, cases[i].text);
        assert_int_equal(s->plan.restarts_len, 0);
    }
    /* One pod is not ready: no reason, it may be the very one that needs the new leaf. */
    set_workload(s,
                 "{observedGeneration: '9', phase: Progressing, availableReplicas: 1, stableRS: a, currentPodHash: a}",
                 3, -1);
    look(s);
    assert_int_equal(s->plan.restarts_len, 1);
}

static void an_argo_rollout_whose_restart_is_undone_is_reported_and_left(void **state)
{
    for (int annotations = 0; annotations < 2; annotations++) {
        struct scene *s = *state;
        be_argo(s);
        change(s);
        restart(s);
        set_workload(s, healthy, 4, -1);
        assert_state(s, CR_CONSUMER_RESTARTING);
        if (annotations) /* which make no generation of their own */
            cr_json_remove(cr_json_edit(s->workload, "metadata"), "annotations");
        else
            cr_json_remove(cr_json_edit(s->workload, "spec"), "restartAt");
        set_workload(s, healthy, annotations ? 4 : 5, -1);
        assert_held(s, CR_CONSUMER_BLOCKED, CR_HOLD_RESTART_UNDONE, "its annotation is gone from the Rollout");
        assert_int_equal(s->plan.restarts_len, 0);
        s->now_ms += minute_ms;
        hold(s, "3");    /* the next change */
        if (annotations) /* the pods are on their way all the same */
            finish_argo(s);
        assert_state(s, CR_CONSUMER_PENDING);
        assert_int_equal(s->plan.restarts_len, 1);
        teardown(state);
        setup(state);
    }
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_job_is_left_to_its_next_run),
        T(a_replica_set_is_not_restarted_by_its_template),
        T(a_replica_set_that_is_not_seen_may_be_a_deployments),
        T(an_argo_rollout_is_restarted_once_by_time),
        T(an_argo_rollout_is_restarted_for_all_pods_that_there_are),
        T(an_argo_rollout_is_left_alone_in_the_middle_of_an_update),
        T(an_argo_rollout_whose_restart_is_undone_is_reported_and_left),
        T(a_stateful_set_that_stands_still_has_failed_until_it_is_mended),
        T(what_is_scaled_while_it_rolls_is_neither_done_too_early_nor_restarted_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
