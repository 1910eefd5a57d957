/* The plan for kinds that restart in a way of their own, or not at all: one Secret, one consumer of software that
 * nobody knows, driven as the controller drives it. */
#include "rotation/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "codec/yaml.h"
#include "rotation/diff.h"
#include "support/recorded.h"

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

static struct cr_json *yaml(const char *text)
{
    struct cr_error err = {0};
    struct cr_json *json = cr_yaml_parse(text, strlen(text), &err);
    if (!json)
        fail_msg("%s", err.text);
    return json;
}

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
        s->pod_json[i] = yaml("metadata: {}");
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
    CR_CLEANUP(cr_json) struct cr_json *object = yaml(policy);
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
    s->workload = yaml(workload);
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

static void assert_state(struct scene *s, enum cr_consumer_state state, const char *blocked_by)
{
    const struct cr_consumer_status *status = look(s);
    if (status->state != state || !strstr(cr_or_empty(status->blocked_by), blocked_by))
        fail_msg("%d (%s) instead of %d (%s)", status->state, cr_or_empty(status->blocked_by), state, blocked_by);
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
        s->consumer = (struct cr_world_consumer){0}; /* nobody looks at it */
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

/* --- a rollout that stands still, or whose workload is scaled meanwhile --- */

static void set_workload(struct scene *s, const char *status, int64_t generation, int64_t replicas)
{
    cr_json_set(s->workload, "status", yaml(status));
    cr_json_set_int(cr_json_edit(s->workload, "metadata"), "generation", generation);
    if (replicas >= 0)
        cr_json_set_int(cr_json_edit(s->workload, "spec"), "replicas", replicas);
}

/* As acts.c does. */
static void restart(struct scene *s)
{
    assert_int_equal(s->plan.restarts_len, 1);
    struct cr_json *template = cr_json_edit(cr_json_edit(s->workload, "spec"), "template");
    struct cr_json *annotations = cr_json_copy(s->plan.restarts[0].annotations);
    char now[CR_TIME_TEXT];
    cr_time_format(s->now_ms, now);
    cr_json_set_string(annotations, "kubectl.kubernetes.io/restartedAt", now);
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
    assert_state(s, CR_CONSUMER_RESTARTING, "");
}

static void a_stateful_set_that_stands_still_has_failed_until_it_is_mended(void **state)
{
    struct scene *s = *state;
    begin(s);
    s->now_ms += 9 * minute_ms;
    replace_pod(s, 2); /* progress */
    set_workload(s, "{observedGeneration: 2, replicas: 3, availableReplicas: 2, updatedReplicas: 1}", 2, -1);
    assert_state(s, CR_CONSUMER_RESTARTING, "");
    s->now_ms += 10 * minute_ms - 1;
    assert_state(s, CR_CONSUMER_RESTARTING, "");
    s->now_ms += 1;
    assert_state(s, CR_CONSUMER_FAILED, "no new pod for 10 minutes: 1 of 3 pods updated");
    assert_true(cr_status_condition_get(&s->plan.status, "Degraded")->status);
    assert_int_equal(s->plan.restarts_len, 0);
    replace_pod(s, 1);
    assert_state(s, CR_CONSUMER_RESTARTING, "");
    replace_pod(s, 0);
    set_workload(s, "{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 3}", 2, -1);
    assert_state(s, CR_CONSUMER_CONVERGED, "");
    assert_int_equal(s->plan.restarts_len, 0);
}

static void what_is_scaled_while_it_rolls_is_neither_done_too_early_nor_restarted_again(void **state)
{
    struct scene *s = *state;
    begin(s);
    /* Up: the new ones come with the new template, and count as updated. */
    set_workload(s, "{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 3}", 3, 5);
    assert_state(s, CR_CONSUMER_RESTARTING, "");
    set_workload(s, "{observedGeneration: 3, replicas: 5, availableReplicas: 5, updatedReplicas: 4}", 3, 5);
    assert_state(s, CR_CONSUMER_RESTARTING, "");
    /* Down to the one that is old: those beyond it are new, and still there. */
    replace_pod(s, 1);
    replace_pod(s, 2);
    set_workload(s, "{observedGeneration: 4, replicas: 3, availableReplicas: 3, updatedReplicas: 2}", 4, 1);
    assert_state(s, CR_CONSUMER_RESTARTING, "");
    set_workload(s, "{observedGeneration: 4, replicas: 1, availableReplicas: 1, updatedReplicas: 0}", 4, 1);
    s->consumer.pods_len = 1;
    assert_state(s, CR_CONSUMER_RESTARTING, "");
    /* To none, and back. */
    set_workload(s, "{observedGeneration: 5, replicas: 0, availableReplicas: 0, updatedReplicas: 0}", 5, 0);
    s->consumer.pods_len = 0;
    assert_state(s, CR_CONSUMER_CONVERGED, "");
    set_workload(s, "{observedGeneration: 6, replicas: 2, availableReplicas: 2, updatedReplicas: 2}", 6, 2);
    s->consumer.pods_len = 2;
    replace_pod(s, 0);
    look(s);
    assert_int_equal(s->plan.restarts_len, 0);
    assert_true(cr_status_condition_get(&s->plan.status, "Converged")->status);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_job_is_left_to_its_next_run),
        T(a_stateful_set_that_stands_still_has_failed_until_it_is_mended),
        T(what_is_scaled_while_it_rolls_is_neither_done_too_early_nor_restarted_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
