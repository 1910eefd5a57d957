/* Windows in the plan: what is held outside of them, what is not, and what is said of it. */
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
#include "codec/yaml.h"
#include "evidence/diff.h"
#include "policy/rules/schedule.h"
#include "support/recorded.h"

enum { PODS = 2, SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE };
#define DAY ((int64_t)24 * HOUR)

/* From 02:00 to 06:00. */
static const char policy_text[] =
    "metadata: {name: demo, namespace: ns, uid: policy-uid, resourceVersion: '1', generation: 3}\n"
    "spec:\n"
    "  secrets: [{name: web}]\n"
    "  restart:\n"
    "    windows: [{schedule: '0 2 * * *', duration: 4h}]\n"
    "  consumers:\n"
    "  - name: web\n"
    "    targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n"
    "    verify: {port: 8443}\n"
    "    reload: {serverLeaf: {method: Restart}, clientCA: {method: Restart}, serverCA: {method: Restart}}\n";

static const char web_text[] =
    "metadata: {name: web, namespace: ns, uid: web-uid, resourceVersion: '7', generation: 1}\n"
    "spec:\n"
    "  replicas: 2\n"
    "  template:\n"
    "    metadata: {annotations: {}}\n"
    "    spec:\n"
    "      containers: [{name: web, image: example.org/web:1, volumeMounts: [{name: certs, mountPath: /certs}]}]\n"
    "      volumes: [{name: certs, secret: {secretName: web}}]\n"
    "status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}\n";

struct cluster {
    struct cr_policy *policy;
    struct cr_policy_status status;
    struct cr_catalogue *catalogue;
    struct cr_tzif *utc;
    struct cr_material material;
    struct cr_world_secret secret;
    struct cr_json *workload;
    struct cr_json *pod_json[PODS];
    struct cr_world_pod pods[PODS];
    struct cr_sighting sightings[PODS];
    struct cr_world_consumer consumer;
    int64_t now_ms;
    struct cr_plan plan; /* the last one */
};

static int64_t at(const char *text)
{
    int64_t ms = 0;
    assert_true(cr_time_parse(text, &ms, NULL));
    return ms;
}

static struct cr_json *yaml(const char *text)
{
    struct cr_error err = {0};
    struct cr_json *j = cr_yaml_parse(text, strlen(text), &err);
    if (!j)
        fail_msg("%s", err.text);
    return j;
}

/* leaf and ca are words that stand for a certificate each. */
static void set_material(struct cluster *c, const char *leaf, const char *ca, int64_t leaf_ends_ms, int64_t ca_ends_ms)
{
    struct cr_material *m = &c->material;
    cr_material_dispose(m);
    *m = (struct cr_material){.has_leaf = true, .not_after_ms = leaf_ends_ms, .trust_len = 1};
    cr_sha256_hex(leaf, strlen(leaf), m->leaf);
    memcpy(m->chain, m->leaf, sizeof m->chain);
    memcpy(m->key, m->leaf, sizeof m->key);
    m->trust = cr_calloc(1, sizeof *m->trust);
    cr_sha256_hex(ca, strlen(ca), m->trust[0].fingerprint);
    memcpy(m->trust[0].identity, m->trust[0].fingerprint, sizeof m->trust[0].identity);
    memcpy(m->issuer, m->trust[0].identity, sizeof m->issuer);
    m->trust[0].not_after_ms = ca_ends_ms;
    cr_strvec_add(&m->anchors, m->trust[0].identity);
    c->secret = (struct cr_world_secret){.found = true, .resource_version = leaf, .material = m};
}

static void add_pods(struct cluster *c, const char *const names[PODS], int64_t started_ms)
{
    for (int i = 0; i < PODS; i++) {
        cr_json_free(c->pod_json[i]);
        c->pod_json[i] = cr_json_new_object();
        cr_json_set(cr_json_object_in(c->pod_json[i], "metadata"), "annotations",
                    cr_json_copy(cr_json_at(c->workload, "spec", "template", "metadata", "annotations")));
        c->sightings[i] = (struct cr_sighting){0};
        c->pods[i] = (struct cr_world_pod){.pod = c->pod_json[i],
                                           .name = names[i],
                                           .uid = names[i],
                                           .ip = "10.0.0.1",
                                           .ready = true,
                                           .sightings = &c->sightings[i],
                                           .started_ms = started_ms,
                                           .created_ms = started_ms};
    }
}

static const struct cr_plan *plan(struct cluster *c)
{
    cr_plan_dispose(&c->plan);
    const struct cr_tzif *const zones[] = {c->utc};
    struct cr_world world = {.policy = c->policy,
                             .status = &c->status,
                             .secrets = &c->secret,
                             .consumers = &c->consumer,
                             .catalogue = c->catalogue,
                             .zones = zones,
                             .now_ms = c->now_ms};
    cr_plan_make(&world, &c->plan);
    return &c->plan;
}

static void write_status(struct cluster *c)
{
    test_record_status(&c->plan.status, &c->status);
}

static const struct cr_plan *recorded_plan(struct cluster *c)
{
    for (int i = 0; i < 3; i++) {
        if (!plan(c)->record_first)
            return &c->plan;
        write_status(c);
    }
    fail_msg("the plan wants to record for ever");
    return NULL;
}

/* Seen for the first time on a day at noon, with certificates that last for a year. */
static int setup(void **state)
{
    struct cluster *c = cr_new(struct cluster);
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *policy = yaml(policy_text);
    c->policy = cr_policy_decode(policy, &err);
    c->catalogue = cr_catalogue_builtin(&err);
    if (!c->policy || !c->catalogue)
        fail_msg("%s", err.text);
    c->utc = cr_tzif_new_utc();
    c->now_ms = at("2026-11-20T12:00:00Z");
    c->workload = yaml(web_text);
    set_material(c, "leaf-1", "ca-1", c->now_ms + 365 * DAY, c->now_ms + 3650 * DAY);
    add_pods(c, (const char *const[]){"web-0", "web-1"}, c->now_ms - HOUR);
    c->consumer = (struct cr_world_consumer){.found = true, .workload = c->workload, .pods = c->pods, .pods_len = PODS};
    recorded_plan(c);
    write_status(c);
    *state = c;
    return 0;
}

static int teardown(void **state)
{
    struct cluster *c = *state;
    cr_plan_dispose(&c->plan);
    cr_policy_status_dispose(&c->status);
    cr_policy_free(c->policy);
    cr_catalogue_free(c->catalogue);
    cr_tzif_free(c->utc);
    cr_material_dispose(&c->material);
    cr_json_free(c->workload);
    for (int i = 0; i < PODS; i++)
        cr_json_free(c->pod_json[i]);
    free(c);
    return 0;
}

static void see_settled_ending(struct cluster *c, int64_t leaf_ends_ms, int64_t ca_ends_ms)
{
    c->status.secrets[0].settled.not_after_ms = leaf_ends_ms;
    c->status.secrets[0].settled.trust[0].not_after_ms = ca_ends_ms;
}

static void renew_leaf(struct cluster *c)
{
    set_material(c, "leaf-2", "ca-1", c->now_ms + 365 * DAY, c->now_ms + 3650 * DAY);
}

static const struct cr_consumer_status *web(struct cluster *c)
{
    return cr_status_consumer(&c->plan.status, "web");
}

static bool condition(struct cluster *c, const char *type)
{
    return cr_status_condition_get(&c->plan.status, type)->status;
}

static int64_t jitter_ms(struct cluster *c)
{
    return cr_schedule_jitter_ms(c->policy->uid, c->policy->restart.windows[0].duration_ms);
}

static void apply_restart(struct cluster *c)
{
    assert_int_equal(c->plan.restarts_len, 1);
    struct cr_json *metadata = cr_json_edit(cr_json_edit(cr_json_edit(c->workload, "spec"), "template"), "metadata");
    struct cr_json *annotations = cr_json_object_in(metadata, "annotations");
    for (const struct cr_json *a = cr_json_first(c->plan.restarts[0].annotations); a; a = cr_json_next(a))
        cr_json_set_string(annotations, cr_json_key(a), cr_json_string(a));
    cr_json_set_int(cr_json_edit(c->workload, "metadata"), "generation", 2);
}

static void finish_rollout(struct cluster *c)
{
    cr_json_set_int(cr_json_edit(c->workload, "status"), "observedGeneration", 2);
    add_pods(c, (const char *const[]){"new-0", "new-1"}, c->now_ms);
}

static void show(struct cluster *c, const char *leaf)
{
    for (int i = 0; i < PODS; i++) {
        c->sightings[i] = (struct cr_sighting){.seen = CR_SEEN_LEAF, .at_ms = c->now_ms};
        cr_sha256_hex(leaf, strlen(leaf), c->sightings[i].leaf);
    }
}

/* --- */

static void outside_of_its_windows_a_restart_waits_and_says_until_when(void **state)
{
    struct cluster *c = *state;
    renew_leaf(c);
    const struct cr_plan *p = recorded_plan(c); /* at once: the time to coalesce is not over */
    assert_int_equal(p->restarts_len, 0);
    assert_int_equal(web(c)->state, CR_CONSUMER_PENDING);
    cr_autofree char *opens = cr_schedule_time(c->utc, "UTC", at("2026-11-21T02:00:00Z") + jitter_ms(c));
    cr_autofree char *words = cr_asprintf("restart.windows: opens at %s", opens);
    assert_int_equal(web(c)->gate.hold, CR_HOLD_WINDOW);
    assert_string_equal(web(c)->gate.text, words);
    assert_false(condition(c, "Blocked")); /* time opens it */
    assert_false(condition(c, "Converged"));
    assert_true(condition(c, "Ready"));
}

static void the_wait_is_looked_at_again_each_hour_and_ends_with_the_window(void **state)
{
    struct cluster *c = *state;
    renew_leaf(c);
    recorded_plan(c);
    assert_int_equal(c->plan.restart_after_ms, HOUR);
    c->now_ms = at("2026-11-21T01:59:00Z");
    assert_int_equal(plan(c)->restart_after_ms, MINUTE + jitter_ms(c));
}

static void while_it_waits_nothing_is_written(void **state)
{
    struct cluster *c = *state;
    renew_leaf(c);
    recorded_plan(c);
    write_status(c);
    CR_CLEANUP(cr_json) struct cr_json *before = cr_policy_status_encode(&c->status);
    for (int i = 0; i < 13; i++) {
        c->now_ms += HOUR;
        plan(c);
        CR_CLEANUP(cr_json) struct cr_json *after = cr_policy_status_encode(&c->plan.status);
        assert_true(cr_json_equal(before, after));
        assert_int_equal(c->plan.events_len, 0);
    }
}

static void a_restart_may_begin_while_a_window_is_open(void **state)
{
    struct cluster *c = *state;
    static const struct {
        const char *now;
        int64_t after_jitter_ms;
        size_t restarts;
    } cases[] = {
        {"2026-11-21T02:00:00Z", -1, 0},
        {"2026-11-21T02:00:00Z", 0, 1},
        {"2026-11-21T05:59:59Z", 0, 1},
        {"2026-11-21T06:00:00Z", 0, 0},
        {"2026-11-22T01:59:00Z", -30 * SECOND, 0},
        {"2026-11-22T04:00:00Z", 0, 1},
    };
    renew_leaf(c);
    recorded_plan(c);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        bool opening = cr_ends_with(cases[i].now, "02:00:00Z");
        c->now_ms = at(cases[i].now) + cases[i].after_jitter_ms + (opening ? jitter_ms(c) : 0);
        if (plan(c)->restarts_len != cases[i].restarts)
            fail_msg("%s", cases[i].now);
    }
}

static void within_a_window_the_other_gates_stay(void **state)
{
    struct cluster *c = *state;
    c->now_ms = at("2026-11-21T03:00:00Z");
    renew_leaf(c);
    assert_int_equal(recorded_plan(c)->restarts_len, 0);
    assert_int_equal(web(c)->gate.hold, CR_HOLD_COALESCE);
    c->now_ms += 10 * SECOND;
    assert_int_equal(plan(c)->restarts_len, 1);
}

static void what_a_person_said_comes_before_the_windows(void **state)
{
    struct cluster *c = *state;
    renew_leaf(c);
    c->policy->mode = CR_MODE_PLAN;
    recorded_plan(c);
    assert_int_equal(web(c)->gate.hold, CR_HOLD_PLAN_MODE);
    c->policy->mode = CR_MODE_ENFORCE;
    c->policy->restart.method = CR_RESTART_NEVER;
    plan(c);
    assert_int_equal(web(c)->gate.hold, CR_HOLD_RESTART_NEVER);
}

static void a_reload_waits_for_no_window(void **state)
{
    struct cluster *c = *state;
    for (int role = 0; role < CR_ROLE_OPAQUE; role++)
        c->policy->consumers[0].reload[role] = (struct cr_reload_override){.set = true, .method = CR_METHOD_WATCH};
    renew_leaf(c);
    const struct cr_plan *p = recorded_plan(c);
    assert_int_equal(web(c)->decision, CR_DECISION_HOT_RELOAD);
    assert_true(p->nudges_len > 0);
    assert_int_equal(web(c)->gate.hold, CR_HOLD_NONE);
}

static void a_rollout_that_began_in_a_window_goes_on_after_it(void **state)
{
    struct cluster *c = *state;
    renew_leaf(c);
    recorded_plan(c);
    c->now_ms = at("2026-11-21T05:59:59Z");
    plan(c);
    apply_restart(c);
    c->now_ms = at("2026-11-21T06:10:00Z");
    recorded_plan(c);
    assert_int_equal(web(c)->state, CR_CONSUMER_RESTARTING);
    finish_rollout(c);
    show(c, "leaf-2");
    plan(c);
    assert_true(condition(c, "Converged"));
}

/* It is a restart of one pod. */
static void a_stale_new_pod_is_evicted_in_windows_only(void **state)
{
    struct cluster *c = *state;
    renew_leaf(c);
    recorded_plan(c);
    c->now_ms = at("2026-11-21T05:59:00Z");
    plan(c);
    apply_restart(c);
    recorded_plan(c);
    write_status(c);
    c->now_ms += 30 * SECOND;
    finish_rollout(c);
    show(c, "leaf-1");
    assert_int_equal(recorded_plan(c)->evictions_len, 1);
    c->now_ms += HOUR;
    show(c, "leaf-1");
    assert_int_equal(plan(c)->evictions_len, 0);
    assert_int_equal(c->plan.restart_after_ms, HOUR);
    c->secret.step.distrusts = true; /* of the CA of before */
    assert_int_equal(plan(c)->evictions_len, 1);
    c->secret.step.distrusts = false;
    c->now_ms = at("2026-11-22T02:00:30Z");
    show(c, "leaf-1");
    assert_int_equal(plan(c)->evictions_len, 1);
}

static void before_the_certificate_in_use_ends_a_restart_no_longer_waits(void **state)
{
    struct cluster *c = *state;
    c->policy->restart.override_window_ms = 2 * DAY;
    see_settled_ending(c, c->now_ms + 2 * DAY + 5 * MINUTE, c->now_ms + 3650 * DAY);
    renew_leaf(c);
    assert_int_equal(recorded_plan(c)->restarts_len, 0);
    assert_int_equal(c->plan.restart_after_ms, 5 * MINUTE); /* sooner than the window */
    c->now_ms += 5 * MINUTE;
    assert_int_equal(plan(c)->restarts_len, 1);
}

/* The end of what the Secret holds by now is not the point, and not that of a leaf when only trust is replaced. */
static void what_ends_is_what_a_restart_would_replace(void **state)
{
    struct cluster *c = *state;
    c->policy->restart.override_window_ms = 2 * DAY;
    see_settled_ending(c, c->now_ms + DAY, c->now_ms + 3650 * DAY);
    set_material(c, "leaf-1", "ca-2", c->now_ms + DAY, c->now_ms + 3650 * DAY);
    recorded_plan(c);
    c->now_ms += MINUTE;
    assert_int_equal(plan(c)->restarts_len, 0);
    c->status.secrets[0].settled.trust[0].not_after_ms = c->now_ms + DAY;
    assert_int_equal(plan(c)->restarts_len, 1);
}

static void a_certificate_that_ends_before_its_window_is_reported(void **state)
{
    struct cluster *c = *state;
    see_settled_ending(c, c->now_ms + HOUR, c->now_ms + 3650 * DAY);
    renew_leaf(c);
    assert_int_equal(recorded_plan(c)->restarts_len, 0);
    assert_int_equal(web(c)->gate.hold, CR_HOLD_WINDOW_TOO_LATE);
    assert_true(cr_starts_with(web(c)->gate.text, "restart.windows: the certificate in use ends at "
                                                  "2026-11-20T13:00:00Z, and the next opens at 2026-11-21T02:00:"));
    assert_true(condition(c, "Blocked"));      /* time alone is no help */
    c->policy->restart.override_window_ms = 0; /* when it has ended */
    c->now_ms += HOUR;
    assert_int_equal(plan(c)->restarts_len, 1);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(outside_of_its_windows_a_restart_waits_and_says_until_when),
        T(the_wait_is_looked_at_again_each_hour_and_ends_with_the_window),
        T(while_it_waits_nothing_is_written),
        T(a_restart_may_begin_while_a_window_is_open),
        T(within_a_window_the_other_gates_stay),
        T(what_a_person_said_comes_before_the_windows),
        T(a_reload_waits_for_no_window),
        T(a_rollout_that_began_in_a_window_goes_on_after_it),
        T(a_stale_new_pod_is_evicted_in_windows_only),
        T(before_the_certificate_in_use_ends_a_restart_no_longer_waits),
        T(what_ends_is_what_a_restart_would_replace),
        T(a_certificate_that_ends_before_its_window_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
