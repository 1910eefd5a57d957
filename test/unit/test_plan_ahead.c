/* Restarts before the record, and what becomes of them when the record never comes: one Secret, two consumers that read
 * its CA once (Rate Limit), an operator that may be killed at any moment. A state of the Secret is a word; its leaf and
 * its CA are called after it, or "leaf/ca". */
#include "policy/rules/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "evidence/diff.h"
#include "policy/rules/look_again.h"
#include "support/gates.h"
#include "support/recorded.h"
#include "support/yamltext.h"

#define RESTARTED_AT "kubectl.kubernetes.io/restartedAt"

enum { CONSUMERS = 2, PODS = 1 };
static const int64_t start_ms = 1000LL * 1000 * 1000;

static const char policy_text[] =
    "metadata: {name: demo, namespace: ns, uid: policy-uid, resourceVersion: '1', generation: 1}\n"
    "spec:\n"
    "  secrets: [{name: s}]\n"
    "  restart: {coalesce: 0s}\n"
    "  consumers:\n"
    "  - {name: x, targetRef: {apiVersion: apps/v1, kind: Deployment, name: x}}\n"
    "  - {name: y, targetRef: {apiVersion: apps/v1, kind: Deployment, name: y}}\n";

static const char workload_text[] =
    "metadata: {name: w, namespace: ns, uid: uid, resourceVersion: '8', generation: 1}\n"
    "spec:\n"
    "  replicas: 1\n"
    "  template:\n"
    "    metadata: {annotations: {}}\n"
    "    spec:\n"
    "      containers:\n"
    "      - name: ratelimit\n"
    "        image: docker.io/envoyproxy/ratelimit:3fb70258\n"
    "        env:\n"
    "        - {name: GRPC_SERVER_USE_TLS, value: 'true'}\n"
    "        - {name: GRPC_SERVER_TLS_CERT, value: /certs/tls.crt}\n"
    "        - {name: GRPC_SERVER_TLS_KEY, value: /certs/tls.key}\n"
    "        - {name: GRPC_CLIENT_TLS_CACERT, value: /certs/ca.crt}\n"
    "        volumeMounts: [{name: certs, mountPath: /certs}]\n"
    "      volumes: [{name: certs, secret: {secretName: s}}]\n"
    "status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}\n";

struct fixture {
    struct cr_policy *policy;
    struct cr_policy_status status; /* as it is on record */
    struct cr_catalogue *catalogue;
    struct cr_material material;
    struct cr_world_secret secret;
    struct cr_json *workloads[CONSUMERS];
    struct cr_json *pod_json[CONSUMERS];
    struct cr_world_pod pods[CONSUMERS];
    struct cr_world_other others[CONSUMERS];
    struct cr_world_consumer consumers[CONSUMERS];
    int64_t now_ms;
    struct cr_plan plan;  /* the last one */
    struct cr_plan ahead; /* of it */
    char name[CR_ANNOTATION_NAME];
};

/* --- turning the world --- */

static void hold(struct fixture *t, const char *state, const char *version)
{
    struct cr_material *m = &t->material;
    const char *slash = strchr(state, '/');
    cr_autofree char *leaf = cr_strndup(state, strcspn(state, "/"));
    const char *ca = slash ? slash + 1 : state;
    cr_material_dispose(m);
    *m = (struct cr_material){.has_leaf = true, .not_after_ms = start_ms + 1000LL * 3600 * 24 * 365, .trust_len = 1};
    cr_sha256_hex(leaf, strlen(leaf), m->leaf);
    memcpy(m->chain, m->leaf, sizeof m->chain);
    memcpy(m->key, m->leaf, sizeof m->key);
    cr_sha256_hex("issuer", 6, m->issuer);
    m->trust = cr_calloc(1, sizeof *m->trust);
    cr_sha256_hex(ca, strlen(ca), m->trust[0].fingerprint);
    memcpy(m->trust[0].identity, m->trust[0].fingerprint, sizeof m->trust[0].identity);
    m->trust[0].not_after_ms = m->not_after_ms;
    t->secret = (struct cr_world_secret){.found = true, .resource_version = version, .material = m};
}

static struct cr_json *template_annotations(struct fixture *t, size_t consumer)
{
    struct cr_json *template = cr_json_edit(cr_json_edit(t->workloads[consumer], "spec"), "template");
    return cr_json_object_in(cr_json_edit(template, "metadata"), "annotations");
}

static void renew_pod(struct fixture *t, size_t consumer)
{
    cr_json_free(t->pod_json[consumer]);
    t->pod_json[consumer] = cr_json_new_object();
    cr_json_set(cr_json_object_in(t->pod_json[consumer], "metadata"), "annotations",
                cr_json_copy(template_annotations(t, consumer)));
    t->pods[consumer] = (struct cr_world_pod){.pod = t->pod_json[consumer],
                                              .name = "pod",
                                              .uid = "pod",
                                              .ip = "10.0.0.1",
                                              .ready = true,
                                              .started_ms = t->now_ms,
                                              .created_ms = t->now_ms};
}

static struct cr_world world_of(struct fixture *t)
{
    return (struct cr_world){.policy = t->policy,
                             .status = &t->status,
                             .secrets = &t->secret,
                             .consumers = t->consumers,
                             .catalogue = t->catalogue,
                             .now_ms = t->now_ms};
}

/* Also the restarts that may be done ahead. */
static const struct cr_plan *plan(struct fixture *t)
{
    struct cr_world world = world_of(t);
    cr_plan_dispose(&t->plan);
    cr_plan_dispose(&t->ahead);
    cr_plan_make(&world, &t->plan);
    gates_check(&t->plan);
    if (t->plan.record_first) {
        assert_int_equal(t->plan.restarts_len, 0);
        cr_plan_ahead(&world, &t->plan, &t->ahead);
        assert_int_equal(t->ahead.nudges_len + t->ahead.probes_len + t->ahead.evictions_len, 0);
    }
    return &t->plan;
}

static void record(struct fixture *t)
{
    for (int i = 0; plan(t)->record_first; i++) {
        assert_in_range(i, 0, 2);
        test_record_status(&t->plan.status, &t->status);
    }
    test_record_status(&t->plan.status, &t->status);
}

/* The workloads get what the plan's restarts say; their pods are replaced at once when roll is set. */
static size_t restart(struct fixture *t, const struct cr_plan *what, bool roll)
{
    char now[CR_TIME_TEXT];
    cr_time_format(t->now_ms, now);
    for (size_t i = 0; i < what->restarts_len; i++) {
        size_t consumer = what->restarts[i].consumer;
        struct cr_json *annotations = template_annotations(t, consumer);
        const struct cr_json *a = cr_json_first(what->restarts[i].annotations);
        for (; a; a = cr_json_next(a))
            cr_json_set_string(annotations, cr_json_key(a), cr_json_string(a));
        cr_json_set_string(annotations, RESTARTED_AT, now);
        struct cr_json *metadata = cr_json_edit(t->workloads[consumer], "metadata");
        int64_t generation = cr_json_int_at(metadata, 0, "generation") + 1;
        cr_json_set_int(metadata, "generation", generation);
        if (!roll)
            continue;
        cr_json_set_int(cr_json_edit(t->workloads[consumer], "status"), "observedGeneration", generation);
        renew_pod(t, consumer);
    }
    return what->restarts_len;
}

static const char *annotation(struct fixture *t, size_t consumer)
{
    return cr_json_string_at(template_annotations(t, consumer), t->name);
}

/* Lets time pass and does what is planned until there is nothing left; how many restarts that took, per consumer. */
static void run_to_rest(struct fixture *t, size_t restarts[CONSUMERS])
{
    memset(restarts, 0, CONSUMERS * sizeof *restarts);
    for (int i = 0; i < 60; i++) {
        record(t);
        for (size_t k = 0; k < t->plan.restarts_len; k++)
            restarts[t->plan.restarts[k].consumer]++;
        restart(t, &t->plan, true);
        t->now_ms += 5000;
    }
    const struct cr_secret_status *secret = cr_status_secret(&t->status, "s");
    assert_false(secret->pending.set);
    assert_int_equal(cr_diff(&secret->settled, &t->material), 0);
}

static int setup(void **state)
{
    struct fixture *t = cr_new(struct fixture);
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *policy = test_yaml(policy_text);
    t->policy = cr_policy_decode(policy, &err);
    assert_non_null(t->policy);
    t->catalogue = cr_catalogue_builtin(&err);
    assert_non_null(t->catalogue);
    t->now_ms = start_ms;
    cr_restart_annotation_name("s", t->name);
    for (size_t i = 0; i < CONSUMERS; i++) {
        t->workloads[i] = test_yaml(workload_text);
        renew_pod(t, i);
        t->consumers[i] = (struct cr_world_consumer){
            .found = true, .workload = t->workloads[i], .pods = &t->pods[i], .pods_len = PODS};
    }
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *t = *state;
    cr_plan_dispose(&t->plan);
    cr_plan_dispose(&t->ahead);
    cr_policy_status_dispose(&t->status);
    cr_policy_free(t->policy);
    cr_catalogue_free(t->catalogue);
    cr_material_dispose(&t->material);
    for (size_t i = 0; i < CONSUMERS; i++) {
        cr_json_free(t->workloads[i]);
        cr_json_free(t->pod_json[i]);
    }
    free(t);
    return 0;
}

/* A is settled and on record, at version 10. */
static struct fixture *start_idle(void **state)
{
    struct fixture *t = *state;
    hold(t, "A", "10");
    record(t);
    t->now_ms += 600 * 1000;
    return t;
}

/* The same; then x was restarted for B, at version 20, and the operator was killed before it could say so. */
static struct fixture *killed_before_the_record(void **state)
{
    struct fixture *t = start_idle(state);
    hold(t, "B", "20");
    plan(t);
    assert_int_equal(restart(t, &t->ahead, true), 1);
    t->now_ms += 30 * 1000;
    return t;
}

/* --- ahead --- */

static void a_restart_need_not_wait_for_the_record(void **state)
{
    struct fixture *t = start_idle(state);
    hold(t, "B", "20");
    assert_true(plan(t)->record_first);
    assert_int_equal(t->ahead.restarts_len, 1); /* maxConcurrent holds the other */
    assert_int_equal(t->ahead.restarts[0].consumer, 0);
    restart(t, &t->ahead, true);
    assert_true(cr_restart_annotation_covers(annotation(t, 0), &t->material, CR_CLASS_TRUST));
    assert_true(cr_restart_annotation_is_between(annotation(t, 0), CR_CLASS_TRUST, "10", "20"));
}

static void the_record_that_follows_says_the_restart_too(void **state)
{
    struct fixture *t = start_idle(state);
    hold(t, "B", "20");
    plan(t);
    restart(t, &t->ahead, false);
    t->now_ms += 150;
    record(t);
    const struct cr_secret_status *secret = cr_status_secret(&t->status, "s");
    const struct cr_consumer_status *x = cr_status_consumer(&t->status, "x");
    assert_true(secret->pending.set);
    assert_string_equal(x->restarted_for, secret->pending.id);
    assert_int_equal(x->restarted_generation, 2);
    assert_int_equal(x->state, CR_CONSUMER_RESTARTING);
    assert_int_equal(t->plan.restarts_len, 0);
}

static void as_many_restarts_as_with_the_record_first(void **state)
{
    struct fixture *t = start_idle(state);
    hold(t, "B", "20");
    size_t restarts[CONSUMERS];
    plan(t);
    restart(t, &t->ahead, true);
    run_to_rest(t, restarts);
    assert_int_equal(restarts[0], 0);
    assert_int_equal(restarts[1], 1);
}

/* --- what must be on record first --- */

static void make_first_sight(struct fixture *t)
{
    cr_policy_status_dispose(&t->status);
    t->status = (struct cr_policy_status){0};
    CR_CLEANUP(cr_material) struct cr_material old = {0};
    cr_material_copy(&old, &t->material);
    hold(t, "old", "5");
    cr_autofree char *value = cr_restart_annotation_merge(NULL, &t->material, CR_CLASS_TRUST, "5");
    cr_json_set_string(template_annotations(t, 0), t->name, value);
    hold(t, "B", "20");
}

static void make_coalesce(struct fixture *t)
{
    t->policy->restart.coalesce_ms = 10 * 1000;
}

static void make_suspended(struct fixture *t)
{
    t->policy->suspend = true;
}

static void make_plan_mode(struct fixture *t)
{
    t->policy->mode = CR_MODE_PLAN;
}

static void make_never(struct fixture *t)
{
    t->policy->restart.method = CR_RESTART_NEVER;
}

static void make_others(struct fixture *t)
{
    for (size_t i = 0; i < CONSUMERS; i++) {
        t->others[i].policy = "older";
        t->consumers[i].others = &t->others[i];
    }
}

static void make_version_without_order(struct fixture *t)
{
    t->secret.resource_version = "2x";
}

static void make_problem(struct fixture *t)
{
    t->secret = (struct cr_world_secret){
        .found = true, .resource_version = "20", .problem = CR_MATERIAL_KEY_MISMATCH, .problem_text = "it is bad"};
}

static void make_leaf_only(struct fixture *t)
{
    hold(t, "B/A", "20");
}

static void some_restarts_wait_for_the_record_or_for_more(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        void (*make)(struct fixture *t);
        size_t after_record;
    } cases[] = {
        {"a first sight, though an annotation says that something changed", make_first_sight, 1},
        {"a version that cannot be compared would not tell what was lost", make_version_without_order, 1},
        {"restart.coalesce", make_coalesce, 0},
        {"suspend", make_suspended, 0},
        {"mode: Plan", make_plan_mode, 0},
        {"restart.method: Never", make_never, 0},
        {"another policy's pair", make_others, 0},
        {"a Secret that cannot be used", make_problem, 0},
        {"a leaf that is reloaded", make_leaf_only, 0},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        void *one = NULL;
        setup(&one);
        struct fixture *t = start_idle(&one);
        hold(t, "B", "20");
        cases[i].make(t);
        plan(t);
        if (t->ahead.restarts_len)
            fail_msg("%s: restarted ahead", cases[i].rule);
        record(t);
        if (t->plan.restarts_len != cases[i].after_record)
            fail_msg("%s: %zu restarts after the record", cases[i].rule, t->plan.restarts_len);
        teardown(&one);
    }
}

static void hold_opaque(struct fixture *t, const char *version, int content)
{
    hold(t, "A", version);
    snprintf(t->material.opaque, sizeof t->material.opaque, "%08x:%064x", 7, content);
}

/* Its digest is by a key that may be lost. */
static void a_restart_for_opaque_material_waits_for_the_record(void **state)
{
    struct fixture *t = start_idle(state);
    struct cr_json *spec = cr_json_edit(cr_json_edit(cr_json_edit(t->workloads[0], "spec"), "template"), "spec");
    struct cr_json *container = test_yaml("{name: app, image: app, envFrom: [{secretRef: {name: s}}]}");
    struct cr_json *containers = cr_json_new_array();
    cr_json_add(containers, container);
    cr_json_set(spec, "containers", containers);
    hold_opaque(t, "10", 1);
    record(t);
    hold_opaque(t, "20", 2);
    assert_true(plan(t)->record_first);
    assert_int_equal(t->ahead.restarts_len, 0);
    record(t);
    assert_int_equal(t->plan.restarts_len, 1);
}

/* --- killed between the restart and the record --- */

static void the_next_operator_finds_the_restart_and_does_not_repeat_it(void **state)
{
    struct fixture *t = killed_before_the_record(state);
    int64_t restarted_ms = start_ms + 600 * 1000;
    assert_true(plan(t)->record_first);
    for (size_t i = 0; i < t->ahead.restarts_len; i++)
        assert_int_equal(t->ahead.restarts[i].consumer, 1);
    record(t);
    const struct cr_secret_status *secret = cr_status_secret(&t->status, "s");
    assert_string_equal(cr_status_consumer(&t->status, "x")->restarted_for, secret->pending.id);
    /* The pods that it brought came after the change: they have what they read once from then on. */
    assert_int_equal(secret->pending.since_ms, restarted_ms);
    assert_int_equal(cr_status_consumer(&t->status, "x")->state, CR_CONSUMER_CONVERGED);
    size_t restarts[CONSUMERS];
    run_to_rest(t, restarts);
    assert_int_equal(restarts[0], 0);
    assert_int_equal(restarts[1], 1);
}

static void what_the_secret_holds_by_then_decides(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *state;
        const char *version;
        size_t x, y; /* restarts */
    } cases[] = {
        {"the same, rewritten", "B", "25", 0, 1},
        {"put back: nobody but x has seen B", "A", "30", 1, 0},
        {"something new", "C", "30", 1, 1},
        {"put back, but for a leaf that is reloaded: the CA that x holds is B's", "C/A", "30", 1, 1},
        {"the leaf went on, the CA that x was restarted for stayed", "C/B", "30", 0, 1},
        {"older than the restart: a cache that lags, or etcd was restored", "A", "15", 0, 0},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        void *one = NULL;
        setup(&one);
        struct fixture *t = killed_before_the_record(&one);
        hold(t, cases[i].state, cases[i].version);
        size_t restarts[CONSUMERS];
        run_to_rest(t, restarts);
        if (restarts[0] != cases[i].x || restarts[1] != cases[i].y)
            fail_msg("%s: %zu and %zu restarts", cases[i].rule, restarts[0], restarts[1]);
        assert_false(plan(t)->record_first);
        teardown(&one);
    }
}

/* Unknown software: it is restarted for its leaf, too. */
static void read_all_once(struct fixture *t)
{
    for (size_t i = 0; i < CONSUMERS; i++) {
        struct cr_json *spec = cr_json_edit(cr_json_edit(cr_json_edit(t->workloads[i], "spec"), "template"), "spec");
        cr_json_set(spec, "containers",
                    test_yaml("[{name: app, image: app, volumeMounts: [{name: certs, mountPath: /certs}]}]"));
    }
}

/* Pods that were moved a while after such a restart came long before that leaf. */
static void what_came_after_a_lost_restart_is_not_as_old_as_it(void **state)
{
    read_all_once(*state);
    struct fixture *t = killed_before_the_record(state);
    t->now_ms += 200 * 1000;
    for (size_t i = 0; i < CONSUMERS; i++)
        renew_pod(t, i);
    t->now_ms += 200 * 1000;
    hold(t, "C/B", "30");
    record(t);
    assert_int_equal(cr_status_secret(&t->status, "s")->pending.since_ms, t->now_ms);
    size_t restarts[CONSUMERS];
    run_to_rest(t, restarts);
    assert_int_equal(restarts[0], 1);
    assert_int_equal(restarts[1], 1);
}

/* B is on record and x restarted for it; then C, ahead; killed; and B again. */
static void a_lost_restart_in_the_middle_of_another_change_is_found(void **state)
{
    struct fixture *t = killed_before_the_record(state);
    record(t);
    hold(t, "C", "30");
    t->now_ms += 30 * 1000;
    plan(t);
    assert_int_equal(restart(t, &t->ahead, true), 1);
    t->now_ms += 30 * 1000;
    hold(t, "B", "40");
    assert_true(plan(t)->record_first);
    size_t restarts[CONSUMERS];
    run_to_rest(t, restarts);
    assert_int_equal(restarts[0], 1);
}

static void a_restart_that_cannot_be_done_is_not_recorded_again_and_again(void **state)
{
    struct fixture *t = killed_before_the_record(state);
    t->policy->suspend = true;
    hold(t, "A", "30");
    record(t);
    for (int i = 0; i < 5; i++) {
        t->now_ms += 1000;
        assert_false(plan(t)->record_first);
    }
}

/* --- the circuit breaker --- */

enum { FLAP_PAUSE_MS = 2000, FLAPS = 150, LOOKS = 2 };

struct flapping {
    size_t restarts[CONSUMERS];
    size_t said; /* Events of the breaker */
};

static void do_and_count(struct fixture *t, const struct cr_plan *what, struct flapping *out)
{
    for (size_t i = 0; i < what->restarts_len; i++)
        out->restarts[what->restarts[i].consumer]++;
    restart(t, what, true);
}

static void count_said(const struct cr_plan *plan, struct flapping *out)
{
    for (size_t i = 0; i < plan->events_len; i++)
        out->said += cr_streq(plan->events[i].reason, "RestartedTooOften");
}

/* One look. killed: when it has restarted anything, nothing of that comes on record. */
static void look(struct fixture *t, bool killed, struct flapping *out)
{
    plan(t);
    bool ahead = t->plan.record_first && t->ahead.restarts_len;
    bool acted = ahead || t->plan.restarts_len;
    do_and_count(t, ahead ? &t->ahead : &t->plan, out);
    if (acted && killed)
        return;
    for (int i = 0; plan(t)->record_first; i++) {
        assert_in_range(i, 0, 2);
        count_said(&t->plan, out);
        test_record_status(&t->plan.status, &t->status);
    }
    count_said(&t->plan, out);
    test_record_status(&t->plan.status, &t->status);
}

/* Other material each two seconds, for five minutes. Killed, it never looks twice at the same. */
static struct flapping flap(struct fixture *t, bool killed)
{
    struct flapping out = {0};
    for (int i = 0; i < FLAPS; i++) {
        char state[16], version[16];
        snprintf(state, sizeof state, "flap%d", i);
        snprintf(version, sizeof version, "%d", 1000 + i);
        hold(t, state, version);
        for (int looks = 0; looks < (killed ? 1 : LOOKS); looks++)
            look(t, killed, &out);
        t->now_ms += FLAP_PAUSE_MS;
    }
    return out;
}

static void a_secret_that_flaps_trips_the_breaker(void **state)
{
    static const bool killed[] = {false, true};
    (void)state;
    for (size_t k = 0; k < cr_array_len(killed); k++) {
        void *one = NULL;
        setup(&one);
        struct fixture *t = start_idle(&one);
        t->policy->restart.max_concurrent = CONSUMERS;
        struct flapping seen = flap(t, killed[k]);
        for (size_t i = 0; i < CONSUMERS; i++)
            assert_int_equal(seen.restarts[i], 3);
        const struct cr_consumer_status *x = cr_status_consumer(&t->status, "x");
        assert_int_equal(x->state, CR_CONSUMER_PENDING);
        assert_int_equal(x->gate.hold, CR_HOLD_CIRCUIT_BREAKER);
        assert_true(cr_starts_with(x->gate.text, "restart.breaker: restarted 3 times within 1h; "));
        assert_string_equal(cr_status_condition_get(&t->status, "Degraded")->reason, "RestartedTooOften");
        assert_true(cr_status_condition_get(&t->status, "Blocked")->status);
        assert_int_equal(seen.said, CONSUMERS);
        teardown(&one);
    }
}

/* A change that always comes before the last one has waited long enough. */
static void coalescing_has_an_end(void **state)
{
    struct fixture *t = start_idle(state);
    t->policy->restart.max_concurrent = CONSUMERS;
    t->policy->restart.coalesce_ms = 10 * 1000;
    int64_t began_ms = t->now_ms;
    struct flapping seen = flap(t, false);
    for (size_t i = 0; i < CONSUMERS; i++)
        assert_int_equal(seen.restarts[i], 3);
    const struct cr_restart_times *restarts = &cr_status_consumer(&t->status, "x")->restarts;
    assert_int_equal(restarts->len, 3);
    /* What a restart was for is settled at once, so the next change is a first one. */
    static const int64_t seconds[] = {60 + 62 + 62, 60 + 62, 60};
    for (size_t i = 0; i < cr_array_len(seconds); i++)
        assert_int_equal(restarts->at_ms[i] - began_ms, seconds[i] * 1000);
}

/* Pending for long, whatever for: the next change is waited for as any other. */
static void after_a_pause_changes_are_coalesced_again(void **state)
{
    struct fixture *t = start_idle(state);
    t->policy->restart.coalesce_ms = 10 * 1000;
    t->policy->suspend = true;
    hold(t, "B", "20");
    record(t);
    t->now_ms += 600 * 1000;
    t->policy->suspend = false;
    hold(t, "C", "30");
    record(t);
    assert_int_equal(t->plan.restarts_len, 0);
    t->now_ms += 9 * 1000;
    assert_int_equal(plan(t)->restarts_len, 0);
    t->now_ms += 1000;
    assert_int_equal(plan(t)->restarts_len, 1);
}

static void a_restart_is_on_record_before_the_next_overwrites_it(void **state)
{
    struct fixture *t = start_idle(state);
    hold(t, "B", "20");
    record(t);
    restart(t, &t->plan, false);
    t->now_ms += 1000;
    /* It is to be restarted again, for whatever reason, and its status was not written meanwhile. */
    cr_autofree char *value = cr_restart_annotation_for("trust=0123456789abcdef", "uid", t->now_ms);
    cr_json_set_string(template_annotations(t, 0), t->name, value);
    assert_true(plan(t)->record_first);
    assert_int_equal(t->ahead.restarts_len, 0);
    test_record_status(&t->plan.status, &t->status);
    assert_int_equal(cr_status_consumer(&t->status, "x")->restarts.len, 1);
    assert_false(plan(t)->record_first);
    assert_int_equal(t->plan.restarts[0].consumer, 0);
}

static void the_breaker_ends_by_itself_and_the_newest_change_is_rolled_out_once(void **state)
{
    struct fixture *t = start_idle(state);
    t->policy->restart.max_concurrent = CONSUMERS;
    int64_t first_ms = t->now_ms;
    flap(t, false);
    plan(t);
    int64_t ends_ms = t->now_ms + t->plan.restart_after_ms;
    assert_in_range(ends_ms, first_ms + 3600 * 1000, first_ms + 3602 * 1000);
    t->now_ms = ends_ms - 1;
    assert_int_equal(plan(t)->restarts_len, 0);
    t->now_ms = ends_ms;
    size_t restarts[CONSUMERS];
    run_to_rest(t, restarts);
    for (size_t i = 0; i < CONSUMERS; i++) {
        assert_int_equal(restarts[i], 1);
        assert_true(cr_restart_annotation_covers(annotation(t, i), &t->material, CR_CLASS_TRUST));
    }
    assert_false(cr_status_condition_get(&t->status, "Degraded")->status);
    assert_int_equal(cr_status_consumer(&t->status, "x")->restarts.len, 3);
}

/* --- the stages of a trust domain's rotation --- */

/* What a trust domain publishes, as its status says. The record may come late, or never: then the version is another
 * program's. */
static void publish(struct fixture *t, int number, const char *rotation, bool on_record)
{
    static char version[16]; /* borrowed by the world until the next one */
    char state[16];
    snprintf(state, sizeof state, "step%d", number);
    snprintf(version, sizeof version, "%d", 1000 + number);
    hold(t, state, version);
    if (on_record)
        t->secret.step = (struct cr_domain_step){.restart = {.restarts = 1}};
    else
        t->secret.step.awaits_record = true;
    if (on_record)
        snprintf(t->secret.step.restart.rotation, sizeof t->secret.step.restart.rotation, "%s", rotation);
}

/* Restarts of the first consumer for so many rotations of three stages each, five seconds apart. */
static size_t rotate(struct fixture *t, int rotations, bool on_record)
{
    struct flapping out = {0};
    for (int i = 0; i < 3 * rotations; i++) {
        char rotation[16];
        snprintf(rotation, sizeof rotation, "0a%d", i / 3);
        publish(t, i, rotation, on_record);
        for (int looks = 0; looks < LOOKS; looks++)
            look(t, false, &out);
        t->now_ms += 5000;
    }
    return out.restarts[0];
}

static void three_rotations_of_a_trust_domain_do_not_trip_the_breaker(void **state)
{
    struct fixture *t = start_idle(state);
    t->policy->restart.max_concurrent = CONSUMERS;
    assert_int_equal(rotate(t, 3, true), 9);
    const struct cr_restart_times *restarts = &cr_status_consumer(&t->status, "x")->restarts;
    assert_int_equal(restarts->len, 3);
    assert_string_equal(restarts->steps[0].rotation, "0a2");
    /* And a Secret that flaps then is held. */
    assert_int_equal(flap(t, false).restarts[0], 0);
    assert_int_equal(cr_status_consumer(&t->status, "x")->gate.hold, CR_HOLD_CIRCUIT_BREAKER);
}

static void a_fourth_rotation_within_the_time_is_held(void **state)
{
    struct fixture *t = start_idle(state);
    t->policy->restart.max_concurrent = CONSUMERS;
    assert_int_equal(rotate(t, 4, true), 9);
    assert_int_equal(cr_status_consumer(&t->status, "x")->gate.hold, CR_HOLD_CIRCUIT_BREAKER);
}

static void what_is_on_no_domains_record_trips_the_breaker(void **state)
{
    struct fixture *t = start_idle(state);
    t->policy->restart.max_concurrent = CONSUMERS;
    assert_int_equal(rotate(t, 3, false), 3);
    assert_int_equal(cr_status_consumer(&t->status, "x")->gate.hold, CR_HOLD_CIRCUIT_BREAKER);
    /* The domain's record may come within a moment, without a notification; or late. */
    assert_in_range(plan(t)->restart_after_ms, 1, 500);
    t->now_ms += 60 * 1000;
    assert_in_range(plan(t)->restart_after_ms, 60 * 1000, CR_LOOK_AGAIN_MOST_MS);
}

/* The distrust of a CA waits for no breaker, and for no further changes; it does wait for a person's word. */
static void the_distrust_of_a_ca_is_held_by_no_default(void **state)
{
    struct fixture *t = start_idle(state);
    t->policy->restart.max_concurrent = CONSUMERS;
    flap(t, false);
    t->policy->restart.coalesce_ms = 3600 * 1000;
    struct flapping out = {0};
    publish(t, 200, "0a1", true);
    look(t, false, &out);
    assert_int_equal(out.restarts[0], 0);
    t->secret.step.distrusts = true;
    t->policy->suspend = true;
    look(t, false, &out);
    assert_int_equal(out.restarts[0], 0);
    t->policy->suspend = false;
    look(t, false, &out);
    assert_int_equal(out.restarts[0], 1);
}

/* One that is on record only after the restart counts with its rotation all the same. */
static void a_record_that_comes_after_the_restart_is_in_time(void **state)
{
    struct fixture *t = start_idle(state);
    t->policy->restart.max_concurrent = CONSUMERS;
    struct flapping out = {0};
    for (int i = 0; i < 3; i++) {
        publish(t, i, "0a1", false);
        look(t, false, &out);
        publish(t, i, "0a1", true);
        look(t, false, &out);
        t->now_ms += 5000;
    }
    assert_int_equal(out.restarts[0], 3);
    assert_int_equal(cr_status_consumer(&t->status, "x")->restarts.len, 1);
}

static void restarts_by_others_do_not_trip_the_breaker(void **state)
{
    struct fixture *t = start_idle(state);
    for (int i = 0; i < 10; i++) {
        t->now_ms += 1000;
        char now[CR_TIME_TEXT];
        cr_time_format(t->now_ms, now);
        cr_json_set_string(template_annotations(t, 0), RESTARTED_AT, now);
        record(t);
    }
    assert_int_equal(cr_status_consumer(&t->status, "x")->restarts.len, 0);
}

static void a_policy_may_have_no_breaker(void **state)
{
    struct fixture *t = start_idle(state);
    t->policy->restart.breaker.within_ms = 0;
    assert_true(flap(t, false).restarts[0] > 100);
    assert_int_equal(cr_status_consumer(&t->status, "x")->restarts.len, 0);
}

/* --- no false alarm --- */

static void annotate(struct fixture *t, const char *leaf, const char *leaf_version, const char *ca,
                     const char *ca_version)
{
    CR_CLEANUP(cr_material) struct cr_material now = {0};
    cr_material_copy(&now, &t->material);
    const char *version = t->secret.resource_version;
    cr_autofree char *state = cr_asprintf("%s/%s", leaf, ca);
    hold(t, state, version);
    cr_autofree char *first = cr_restart_annotation_merge(NULL, &t->material, CR_CLASS_LEAF, leaf_version);
    cr_autofree char *value = cr_restart_annotation_merge(first, &t->material, CR_CLASS_TRUST, ca_version);
    cr_json_set_string(template_annotations(t, 0), t->name, value);
    cr_material_dispose(&t->material);
    cr_material_copy(&t->material, &now);
}

static void only_a_restart_newer_than_the_record_is_one_that_was_lost(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *leaf, *leaf_version, *ca, *ca_version; /* of x's template, where A is at 10, now rewritten at 50 */
        bool alarm;
    } cases[] = {
        {"without versions, as they were written before", "A", NULL, "B", NULL, false},
        {"of what was settled, whatever the version", "A", "40", "A", "40", false},
        {"an older CA, on record", "A", "7", "Z", "7", false},
        {"at the very version that is on record", "A", "10", "Z", "10", false},
        {"an older leaf beside a CA that is right: each has its version", "Z", "7", "A", "40", false},
        {"newer than the Secret", "A", "7", "B", "60", false},
        {"a CA that is not on record", "A", "7", "B", "40", true},
        {"at the Secret's own version", "A", "7", "B", "50", true},
        {"a leaf that is not on record", "B", "40", "A", "7", true},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        void *one = NULL;
        setup(&one);
        struct fixture *t = start_idle(&one);
        hold(t, "A", "50");
        annotate(t, cases[i].leaf, cases[i].leaf_version, cases[i].ca, cases[i].ca_version);
        if (plan(t)->record_first != cases[i].alarm)
            fail_msg("%s", cases[i].rule);
        /* What another policy has is its to remember. */
        make_others(t);
        assert_false(plan(t)->record_first);
        teardown(&one);
    }
}

/* A manifest with its annotations, from another cluster or namespace, where the Secret went to B. */
static void copy_from_elsewhere(struct fixture *t, const char *version)
{
    annotate(t, "B", version, "B", version);
    cr_autofree char *value = cr_restart_annotation_for(annotation(t, 0), "uid elsewhere", t->now_ms);
    cr_json_set_string(template_annotations(t, 0), t->name, value);
    renew_pod(t, 0);
}

static void what_a_copied_manifest_says_is_not_true_here(void **state)
{
    struct fixture *t = start_idle(state);
    hold(t, "A", "50");
    copy_from_elsewhere(t, "40");
    assert_false(plan(t)->record_first);
    cr_policy_status_dispose(&t->status);
    t->status = (struct cr_policy_status){0};
    record(t);
    assert_false(cr_status_secret(&t->status, "s")->pending.set);
    /* The same change comes here, too. */
    t->now_ms += 600 * 1000;
    hold(t, "B", "60");
    size_t restarts[CONSUMERS];
    run_to_rest(t, restarts);
    assert_int_equal(restarts[0], 1);
    assert_int_equal(restarts[1], 1);
}

static void a_rewrite_during_and_after_a_rotation_is_no_change(void **state)
{
    struct fixture *t = start_idle(state);
    hold(t, "B", "20");
    record(t);
    hold(t, "B", "25"); /* rewritten before the restart */
    record(t);
    restart(t, &t->plan, true);
    size_t restarts[CONSUMERS];
    run_to_rest(t, restarts);
    hold(t, "B", "90");
    assert_false(plan(t)->record_first);
    hold(t, "C/B", "95"); /* and a change of the leaf alone is nothing more than that */
    record(t);
    assert_int_equal(cr_status_secret(&t->status, "s")->pending.changes & ~(unsigned)CR_CHANGE_KEY_CHANGED,
                     CR_CHANGE_LEAF_RENEWED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TOWN_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TOWN_TEST(a_restart_need_not_wait_for_the_record),
        TOWN_TEST(the_record_that_follows_says_the_restart_too),
        TOWN_TEST(as_many_restarts_as_with_the_record_first),
        cmocka_unit_test(some_restarts_wait_for_the_record_or_for_more),
        TOWN_TEST(a_restart_for_opaque_material_waits_for_the_record),
        TOWN_TEST(the_next_operator_finds_the_restart_and_does_not_repeat_it),
        cmocka_unit_test(what_the_secret_holds_by_then_decides),
        TOWN_TEST(what_came_after_a_lost_restart_is_not_as_old_as_it),
        TOWN_TEST(a_lost_restart_in_the_middle_of_another_change_is_found),
        TOWN_TEST(a_restart_that_cannot_be_done_is_not_recorded_again_and_again),
        cmocka_unit_test(a_secret_that_flaps_trips_the_breaker),
        TOWN_TEST(coalescing_has_an_end),
        TOWN_TEST(after_a_pause_changes_are_coalesced_again),
        TOWN_TEST(a_restart_is_on_record_before_the_next_overwrites_it),
        TOWN_TEST(the_breaker_ends_by_itself_and_the_newest_change_is_rolled_out_once),
        TOWN_TEST(three_rotations_of_a_trust_domain_do_not_trip_the_breaker),
        TOWN_TEST(a_fourth_rotation_within_the_time_is_held),
        TOWN_TEST(what_is_on_no_domains_record_trips_the_breaker),
        TOWN_TEST(a_record_that_comes_after_the_restart_is_in_time),
        TOWN_TEST(the_distrust_of_a_ca_is_held_by_no_default),
        TOWN_TEST(restarts_by_others_do_not_trip_the_breaker),
        TOWN_TEST(a_policy_may_have_no_breaker),
        cmocka_unit_test(only_a_restart_newer_than_the_record_is_one_that_was_lost),
        TOWN_TEST(what_a_copied_manifest_says_is_not_true_here),
        TOWN_TEST(a_rewrite_during_and_after_a_rotation_is_no_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
