/* The plan, driven as the controller drives it: plan, record, act, look again. */
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
#include "codec/yaml.h"
#include "evidence/diff.h"
#include "support/gates.h"
#include "support/recorded.h"

enum { PODS = 2, START = 1000 * 1000 * 1000 };

static const char policy_text[] =
    "metadata: {name: demo, namespace: ns, uid: policy-uid, resourceVersion: '1', generation: 3}\n"
    "spec:\n"
    "  secrets: [{name: envoy}, {name: rate-limit}]\n"
    "  restart: {coalesce: 0s}\n"
    "  consumers:\n"
    "  - name: envoy\n"
    "    targetRef: {apiVersion: apps/v1, kind: Deployment, name: envoy}\n"
    "    verify: {port: 10443}\n"
    "  - name: rate-limit\n"
    "    targetRef: {apiVersion: apps/v1, kind: Deployment, name: rate-limit}\n"
    "    verify: {port: 8081}\n";

static const char envoy_text[] =
    "metadata: {name: envoy, namespace: ns, uid: envoy-uid, resourceVersion: '7', generation: 1}\n"
    "spec:\n"
    "  replicas: 2\n"
    "  template:\n"
    "    metadata: {annotations: {}}\n"
    "    spec:\n"
    "      containers:\n"
    "      - name: envoy\n"
    "        image: docker.io/envoyproxy/envoy:v1.40.0\n"
    "        args: [--config-yaml, '[{path: /sds/xds-certificate.json}, {path: /sds/xds-trusted-ca.json}]']\n"
    "        volumeMounts: [{name: certs, mountPath: /certs}]\n"
    "      volumes:\n"
    "      - {name: certs, secret: {secretName: envoy}}\n"
    "status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}\n";

static const char ratelimit_text[] =
    "metadata: {name: rate-limit, namespace: ns, uid: rl-uid, resourceVersion: '8', generation: 1}\n"
    "spec:\n"
    "  replicas: 2\n"
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
    "      volumes: [{name: certs, secret: {secretName: rate-limit}}]\n"
    "status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}\n";

/* One cluster, small enough to be turned by hand. Consumer and Secret 0 are Envoy's, 1 are Rate Limit's. */
struct cluster {
    struct cr_policy *policy;
    struct cr_policy_status status;
    struct cr_catalogue *catalogue;
    struct cr_material material[2];
    struct cr_world_secret secrets[2];
    struct cr_json *workloads[2];
    struct cr_json *pod_json[2][PODS];
    struct cr_world_pod pods[2][PODS];
    struct cr_sighting sightings[2][PODS][CR_VERIFY_ENDPOINTS_MAX];
    struct cr_world_consumer consumers[2];
    const struct cr_other_pods *uncovered;
    int64_t now_ms;
    struct cr_plan plan; /* the last one */
};

static struct cr_json *yaml(const char *text)
{
    struct cr_error err = {0};
    struct cr_json *j = cr_yaml_parse(text, strlen(text), &err);
    if (!j)
        fail_msg("%s", err.text);
    return j;
}

static void digest(char out[CR_SHA256_HEX], const char *word)
{
    cr_sha256_hex(word, strlen(word), out);
}

/* leaf and ca are words that stand for a certificate each. */
static void set_material(struct cluster *c, int secret, const char *leaf, const char *ca)
{
    struct cr_material *m = &c->material[secret];
    cr_material_dispose(m);
    *m = (struct cr_material){.has_leaf = true,
                              .not_before_ms = START - 1000LL * 3600,
                              .not_after_ms = START + 1000LL * 3600 * 24 * 365,
                              .trust_len = 1};
    digest(m->leaf, leaf);
    digest(m->chain, leaf);
    digest(m->key, leaf);
    digest(m->issuer, ca);
    m->trust = cr_calloc(1, sizeof *m->trust);
    digest(m->trust[0].fingerprint, ca);
    digest(m->trust[0].identity, ca);
    m->trust[0].not_after_ms = m->not_after_ms;
    cr_strvec_add(&m->anchors, m->trust[0].identity);
    cr_strvec_add(&m->names, "admin.example"); /* which the second of several endpoints is asked for */
    c->secrets[secret] = (struct cr_world_secret){.found = true, .resource_version = leaf, .material = m};
}

static void set_problem(struct cluster *c, int secret, enum cr_material_problem problem)
{
    c->secrets[secret] = (struct cr_world_secret){
        .found = true, .resource_version = "bad", .problem = problem, .problem_text = "it is bad"};
}

static void add_pod(struct cluster *c, int consumer, int pod, const char *name, int64_t started_ms)
{
    const struct cr_json *annotations =
        cr_json_at(c->workloads[consumer], "spec", "template", "metadata", "annotations");
    cr_json_free(c->pod_json[consumer][pod]);
    struct cr_json *json = c->pod_json[consumer][pod] = cr_json_new_object();
    cr_json_set(cr_json_object_in(json, "metadata"), "annotations", cr_json_copy(annotations));
    memset(c->sightings[consumer][pod], 0, sizeof c->sightings[consumer][pod]);
    c->pods[consumer][pod] = (struct cr_world_pod){.pod = json,
                                                   .name = name,
                                                   .uid = name,
                                                   .ip = "10.0.0.1",
                                                   .ready = true,
                                                   .sightings = c->sightings[consumer][pod],
                                                   .started_ms = started_ms,
                                                   .created_ms = started_ms};
}

static void put_on_node(struct cluster *c, int consumer, int pod, const char *host_ip)
{
    cr_json_set_string(cr_json_object_in(c->pod_json[consumer][pod], "status"), "hostIP", host_ip);
}

static void see_at(struct cluster *c, int consumer, int pod, int endpoint, const char *leaf)
{
    struct cr_sighting *seen = &c->sightings[consumer][pod][endpoint];
    *seen = (struct cr_sighting){.seen = CR_SEEN_LEAF, .at_ms = c->now_ms};
    digest(seen->leaf, leaf);
}

static void see(struct cluster *c, int consumer, int pod, const char *leaf)
{
    see_at(c, consumer, pod, 0, leaf);
}

static void see_all(struct cluster *c, int consumer, const char *leaf)
{
    for (int i = 0; i < PODS; i++)
        see(c, consumer, i, leaf);
}

static const struct cr_plan *plan(struct cluster *c)
{
    cr_plan_dispose(&c->plan);
    struct cr_world world = {.policy = c->policy,
                             .status = &c->status,
                             .secrets = c->secrets,
                             .consumers = c->consumers,
                             .catalogue = c->catalogue,
                             .uncovered = c->uncovered,
                             .now_ms = c->now_ms};
    cr_plan_make(&world, &c->plan);
    gates_check(&c->plan);
    return &c->plan;
}

static void write_status(struct cluster *c)
{
    test_record_status(&c->plan.status, &c->status);
}

static bool status_would_change(struct cluster *c)
{
    CR_CLEANUP(cr_json) struct cr_json *before = cr_policy_status_encode(&c->status);
    CR_CLEANUP(cr_json) struct cr_json *after = cr_policy_status_encode(&c->plan.status);
    return !cr_json_equal(before, after);
}

/* Plans and records until there is nothing more to put on record. */
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

static void apply_restart(struct cluster *c, const struct cr_plan_restart *restart)
{
    struct cr_json *workload = c->workloads[restart->consumer];
    struct cr_json *metadata = cr_json_edit(cr_json_edit(cr_json_edit(workload, "spec"), "template"), "metadata");
    struct cr_json *annotations = cr_json_object_in(metadata, "annotations");
    for (const struct cr_json *a = cr_json_first(restart->annotations); a; a = cr_json_next(a))
        cr_json_set_string(annotations, cr_json_key(a), cr_json_string(a));
    cr_json_set_int(cr_json_edit(workload, "metadata"), "generation", 2);
}

static void finish_rollout(struct cluster *c, int consumer)
{
    cr_json_set_int(cr_json_edit(c->workloads[consumer], "status"), "observedGeneration", 2);
    add_pod(c, consumer, 0, "new-0", c->now_ms);
    add_pod(c, consumer, 1, "new-1", c->now_ms);
}

static int setup(void **state)
{
    struct cluster *c = cr_new(struct cluster);
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *policy = yaml(policy_text);
    c->policy = cr_policy_decode(policy, &err);
    assert_non_null(c->policy);
    c->catalogue = cr_catalogue_builtin(&err);
    if (!c->catalogue)
        fail_msg("%s", err.text);
    c->now_ms = START;
    c->workloads[0] = yaml(envoy_text);
    c->workloads[1] = yaml(ratelimit_text);
    set_material(c, 0, "envoy-leaf-1", "ca-1");
    set_material(c, 1, "rl-leaf-1", "ca-1");
    for (int i = 0; i < 2; i++) {
        add_pod(c, i, 0, i ? "rl-0" : "envoy-0", START - 60000);
        add_pod(c, i, 1, i ? "rl-1" : "envoy-1", START - 60000);
        c->consumers[i] = (struct cr_world_consumer){
            .found = true, .workload = c->workloads[i], .pods = c->pods[i], .pods_len = PODS};
    }
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
    for (int i = 0; i < 2; i++) {
        cr_material_dispose(&c->material[i]);
        cr_json_free(c->workloads[i]);
        for (int p = 0; p < PODS; p++)
            cr_json_free(c->pod_json[i][p]);
    }
    free(c);
    return 0;
}

/* A cluster that has been seen, its pods as well, and is idle, some time later. */
static struct cluster *start_idle(void **state)
{
    struct cluster *c = *state;
    recorded_plan(c);
    see_all(c, 0, "envoy-leaf-1");
    see_all(c, 1, "rl-leaf-1");
    recorded_plan(c);
    write_status(c);
    c->now_ms += 60 * 1000;
    return c;
}

static const struct cr_consumer_status *consumer(struct cluster *c, const char *name)
{
    return cr_status_consumer(&c->plan.status, name);
}

static bool condition(struct cluster *c, const char *type)
{
    const struct cr_condition *found = cr_status_condition_get(&c->plan.status, type);
    assert_non_null(found);
    return found->status;
}

static bool says(const struct cr_plan *p, const char *reason)
{
    for (size_t i = 0; i < p->events_len; i++)
        if (strcmp(p->events[i].reason, reason) == 0)
            return true;
    return false;
}

static void assert_no_acts(const struct cr_plan *p)
{
    assert_int_equal(p->restarts_len, 0);
    assert_int_equal(p->nudges_len, 0);
    assert_int_equal(p->probes_len, 0);
    assert_int_equal(p->evictions_len, 0);
}

/* --- seeing --- */

/* But for a look at what pods serve (test_plan_verification.c). */
static void first_sight_is_recorded_and_nothing_is_done(void **state)
{
    struct cluster *c = *state;
    const struct cr_plan *p = plan(c);
    assert_true(p->record_first);
    assert_no_acts(p);
    write_status(c);
    p = plan(c);
    assert_false(p->record_first);
    assert_int_equal(p->restarts_len + p->nudges_len + p->evictions_len, 0);
    assert_int_equal(p->probes_len, 2 * PODS);
    assert_false(status_would_change(c));
    see_all(c, 0, "envoy-leaf-1");
    see_all(c, 1, "rl-leaf-1");
    p = plan(c);
    assert_no_acts(p);
    write_status(c);
    p = plan(c);
    assert_no_acts(p);
    assert_false(status_would_change(c));
    assert_true(condition(c, "Converged"));
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_IDLE);
}

static void the_same_material_again_writes_nothing(void **state)
{
    struct cluster *c = start_idle(state);
    c->secrets[0].resource_version = "another";
    const struct cr_plan *p = plan(c);
    assert_false(p->record_first);
    assert_no_acts(p);
    assert_false(status_would_change(c));
    assert_int_equal(p->events_len, 0);
}

static void a_change_is_recorded_before_anything_is_done(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 1, "rl-leaf-2", "ca-2");
    const struct cr_plan *p = plan(c);
    assert_true(p->record_first);
    assert_no_acts(p);
    assert_true(says(p, "ChangeSeen"));
    const struct cr_secret_status *secret = cr_status_secret(&c->plan.status, "rate-limit");
    assert_true(secret->pending.set);
    assert_true(secret->pending.changes & CR_CHANGE_TRUST_REPLACED);
    assert_true(cr_streq(secret->pending.target.leaf, c->material[1].leaf));
}

/* --- hot reload --- */

static void a_renewed_leaf_nudges_and_probes_but_restarts_nothing(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    const struct cr_plan *p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 0);
    assert_int_equal(p->nudges_len, PODS);
    assert_int_equal(p->probes_len, PODS);
    assert_int_equal(consumer(c, "envoy")->decision, CR_DECISION_HOT_RELOAD);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_VERIFYING);
    assert_int_equal(consumer(c, "rate-limit")->state, CR_CONSUMER_IDLE);

    see(c, 0, 0, "envoy-leaf-2");
    see(c, 0, 1, "envoy-leaf-1");
    plan(c);
    assert_int_equal(consumer(c, "envoy")->pods.verified, 1);
    assert_int_equal(consumer(c, "envoy")->pods.stale, 1);
    assert_false(condition(c, "Converged"));

    see(c, 0, 1, "envoy-leaf-2");
    p = plan(c);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_CONVERGED);
    assert_true(condition(c, "Converged"));
    assert_true(says(p, "RotationConverged"));
    assert_false(cr_status_secret(&c->plan.status, "envoy")->pending.set);
    assert_int_equal(p->status.history_len, 1);

    write_status(c);
    p = plan(c);
    assert_no_acts(p);
    assert_false(status_would_change(c));
    assert_int_equal(consumer(c, "envoy")->decision, CR_DECISION_HOT_RELOAD);
}

static void a_pod_is_nudged_again_only_after_a_pause(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    recorded_plan(c);
    for (int i = 0; i < PODS; i++) {
        c->pods[0][i].nudges = 1;
        c->pods[0][i].nudged_ms = c->now_ms;
        c->pods[0][i].nudged_since_ms = c->status.secrets[0].pending.since_ms;
    }
    see_all(c, 0, "envoy-leaf-1");
    assert_int_equal(plan(c)->nudges_len, 0);
    assert_true(c->plan.requeue_after_ms > 0 && c->plan.requeue_after_ms <= 1000);
    c->now_ms += 1001;
    see_all(c, 0, "envoy-leaf-1");
    assert_int_equal(plan(c)->nudges_len, PODS);
}

/* Else the kubelet might read what another program has put there, a moment before the domain puts it right. */
static void pods_are_nudged_once_their_trust_domain_has_the_version_on_record(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    c->secrets[0].step.awaits_record = true;
    assert_int_equal(recorded_plan(c)->nudges_len, 0);
    assert_in_range(c->plan.requeue_after_ms, 1, 100);
    c->secrets[0].step.awaits_record = false;
    assert_int_equal(plan(c)->nudges_len, PODS);
    /* Another program's, and it stays. */
    c->secrets[0].step.awaits_record = true;
    c->now_ms += 3000;
    assert_int_equal(plan(c)->nudges_len, PODS);
}

static void an_old_leaf_past_the_deadline_falls_back_to_one_restart(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    recorded_plan(c);
    c->now_ms += 90 * 1000;
    see_all(c, 0, "envoy-leaf-1");
    assert_int_equal(plan(c)->restarts_len, 0);
    c->now_ms += 30 * 1000;
    see_all(c, 0, "envoy-leaf-1");
    const struct cr_plan *p = plan(c);
    assert_int_equal(p->restarts_len, 1);
    assert_int_equal(p->restarts[0].consumer, 0);
    assert_non_null(strstr(consumer(c, "envoy")->reason, "still serve the old leaf"));
    write_status(c);
    apply_restart(c, &p->restarts[0]);
    p = plan(c);
    assert_int_equal(p->restarts_len, 0);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_RESTARTING);
    assert_int_equal(consumer(c, "envoy")->decision, CR_DECISION_RESTART);
    finish_rollout(c, 0);
    see_all(c, 0, "envoy-leaf-2");
    plan(c);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_CONVERGED);
}

static void what_cannot_be_seen_never_causes_a_restart(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    recorded_plan(c);
    c->now_ms += 3600 * 1000;
    for (int i = 0; i < PODS; i++) {
        c->sightings[0][i][0] = (struct cr_sighting){.seen = CR_SEEN_UNREACHABLE, .at_ms = c->now_ms};
    }
    const struct cr_plan *p = plan(c);
    assert_int_equal(p->restarts_len, 0);
    assert_int_equal(consumer(c, "envoy")->pods.unknown, PODS);
    assert_true(condition(c, "Degraded"));
    assert_false(condition(c, "Converged"));
}

/* --- several endpoints --- */

/* Envoy at two ports, the second of which may be said to be of one Secret. */
static void ask_two(struct cluster *c, const char *secret_name)
{
    struct cr_policy_verify *verify = &c->policy->consumers[0].verify;
    verify->endpoints = cr_reallocarray(verify->endpoints, 2, sizeof *verify->endpoints);
    verify->endpoints[1] = (struct cr_verify_endpoint){
        .port = 9443, .server_name = cr_strdup("admin.example"), .secret_name = cr_strdup_or_null(secret_name)};
    verify->endpoints_len = 2;
}

static void see_both(struct cluster *c, const char *first, const char *second)
{
    for (int i = 0; i < PODS; i++) {
        see_at(c, 0, i, 0, first);
        see_at(c, 0, i, 1, second);
    }
}

static void all_endpoints_of_a_secret_must_show_the_new_leaf(void **state)
{
    struct cluster *c = start_idle(state);
    ask_two(c, NULL);
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    assert_int_equal(recorded_plan(c)->probes_len, PODS); /* once per pod, whatever it is asked */
    see_both(c, "envoy-leaf-2", "envoy-leaf-1");
    plan(c);
    assert_int_equal(consumer(c, "envoy")->pods.stale, PODS);
    assert_string_equal(consumer(c, "envoy")->examples.items[0],
                        "envoy-0: port 9443 (admin.example) still serves the old leaf");
    see_both(c, "envoy-leaf-2", "envoy-leaf-2");
    plan(c);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_CONVERGED);
}

static void an_endpoint_of_another_secret_holds_up_nothing(void **state)
{
    struct cluster *c = start_idle(state);
    ask_two(c, "rate-limit");
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    recorded_plan(c);
    see_both(c, "envoy-leaf-2", "envoy-leaf-2");
    for (int i = 0; i < PODS; i++)
        c->sightings[0][i][1] = (struct cr_sighting){.seen = CR_SEEN_UNREACHABLE, .at_ms = c->now_ms};
    plan(c);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_CONVERGED);
}

/* Also a leaf of it that was overtaken before everybody had it. */
static void any_leaf_of_another_secret_is_that_ones(void **state)
{
    struct cluster *c = start_idle(state);
    ask_two(c, NULL);
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    set_material(c, 1, "rl-leaf-2", "ca-1");
    recorded_plan(c);
    write_status(c);
    set_material(c, 1, "rl-leaf-3", "ca-1");
    recorded_plan(c);
    see_both(c, "envoy-leaf-2", "rl-leaf-2");
    plan(c);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_CONVERGED);
}

/* One endpoint that was seen to show the old leaf is enough for the fall-back, one that cannot be reached is not. */
static void one_old_endpoint_past_the_deadline_falls_back(void **state)
{
    struct cluster *c = start_idle(state);
    ask_two(c, NULL);
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    recorded_plan(c);
    c->now_ms += 120 * 1000;
    see_both(c, "envoy-leaf-2", "envoy-leaf-2");
    for (int i = 0; i < PODS; i++)
        c->sightings[0][i][1] = (struct cr_sighting){.seen = CR_SEEN_UNREACHABLE, .at_ms = c->now_ms};
    assert_int_equal(plan(c)->restarts_len, 0);
    assert_true(condition(c, "Degraded"));
    see_both(c, "envoy-leaf-2", "envoy-leaf-1");
    assert_int_equal(plan(c)->restarts_len, 1);
}

static void a_refused_client_is_reported_and_never_a_reason_to_restart(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    recorded_plan(c);
    c->now_ms += 3600 * 1000;
    see_all(c, 0, "envoy-leaf-2");
    for (int i = 0; i < PODS; i++) {
        c->sightings[0][i][0].client = CR_CLIENT_REFUSED;
        snprintf(c->sightings[0][i][0].words, CR_SIGHTING_WORDS, "alert unknown CA");
    }
    assert_int_equal(plan(c)->restarts_len, 0);
    assert_int_equal(consumer(c, "envoy")->pods.unknown, PODS);
    assert_string_equal(consumer(c, "envoy")->examples.items[0],
                        "envoy-0: port 10443 refuses the client certificate: alert unknown CA");
    assert_true(condition(c, "Degraded"));
    see_all(c, 0, "envoy-leaf-2");
    plan(c);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_CONVERGED);
}

/* A database forks a process for each connection or counts it, a client's key is fetched for each round, and hundreds
 * of pods are not asked five times a second. */
static void what_costs_much_is_asked_less_often(void **state)
{
    static const struct {
        const char *rule;
        enum cr_probe_protocol protocol;
        bool client;
        size_t pods; /* of which two are looked at */
        int64_t pause_ms;
    } cases[] = {
        {"a few pods", CR_PROBE_TLS, false, PODS, 200},
        {"PostgreSQL", CR_PROBE_POSTGRESQL, false, PODS, 1000},
        {"MySQL", CR_PROBE_MYSQL, false, PODS, 1000},
        {"with a client certificate", CR_PROBE_TLS, true, PODS, 1000},
        {"500 pods, at 250 a second", CR_PROBE_TLS, false, 500, 2000},
    };
    struct cluster *c = start_idle(state);
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    recorded_plan(c);
    int64_t start_ms = c->now_ms;
    struct cr_world_pod *many = cr_calloc(500, sizeof *many);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_policy_verify *verify = &c->policy->consumers[0].verify;
        verify->endpoints[0].protocol = cases[i].protocol;
        cr_strset(&verify->client_secret_name, cases[i].client ? "probe" : NULL);
        c->now_ms = start_ms;
        see_all(c, 0, "envoy-leaf-1");
        for (size_t p = 0; p < 500; p++)
            many[p] = c->pods[0][p % PODS];
        c->consumers[0].pods = many;
        c->consumers[0].pods_len = cases[i].pods;
        c->now_ms = start_ms + cases[i].pause_ms - 1;
        size_t early = plan(c)->probes_len;
        c->now_ms++;
        if (early || plan(c)->probes_len != cases[i].pods)
            fail_msg("%s: %zu, then %zu", cases[i].rule, early, c->plan.probes_len);
    }
    c->consumers[0].pods = c->pods[0];
    c->consumers[0].pods_len = PODS;
    free(many);
}

/* --- restart --- */

static void a_changed_ca_restarts_what_reads_it_once(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 0, "envoy-leaf-2", "ca-2");
    set_material(c, 1, "rl-leaf-2", "ca-2");
    const struct cr_plan *p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 1);
    assert_int_equal(p->restarts[0].consumer, 1);
    assert_int_equal(consumer(c, "envoy")->decision, CR_DECISION_HOT_RELOAD);
    assert_int_equal(consumer(c, "rate-limit")->decision, CR_DECISION_RESTART);
    assert_non_null(strstr(consumer(c, "rate-limit")->reason, "GRPC_CLIENT_TLS_CACERT"));

    char name[CR_ANNOTATION_NAME];
    cr_restart_annotation_name("rate-limit", name);
    const char *value = cr_json_string_at(p->restarts[0].annotations, name);
    assert_non_null(value);
    assert_non_null(strstr(value, "trust="));
    assert_null(strstr(value, "leaf="));
}

static void a_restart_is_asked_for_once(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 1, "rl-leaf-2", "ca-2");
    recorded_plan(c);
    apply_restart(c, &c->plan.restarts[0]);
    assert_int_equal(plan(c)->restarts_len, 0);
    assert_int_equal(consumer(c, "rate-limit")->state, CR_CONSUMER_RESTARTING);
    /* Another leaf under the same new CA: nothing that forces a restart changed. */
    write_status(c);
    set_material(c, 1, "rl-leaf-3", "ca-2");
    assert_int_equal(recorded_plan(c)->restarts_len, 0);
}

static void a_finished_rollout_with_the_new_leaf_converges(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 1, "rl-leaf-2", "ca-2");
    recorded_plan(c);
    apply_restart(c, &c->plan.restarts[0]);
    plan(c);
    write_status(c);
    c->now_ms += 5000;
    finish_rollout(c, 1);
    plan(c);
    assert_int_equal(consumer(c, "rate-limit")->state, CR_CONSUMER_VERIFYING);
    see_all(c, 1, "rl-leaf-2");
    plan(c);
    assert_int_equal(consumer(c, "rate-limit")->state, CR_CONSUMER_CONVERGED);
    assert_int_equal(consumer(c, "rate-limit")->pods.verified, PODS);
    assert_true(condition(c, "Converged"));
}

/* It has the old CAs until it has ended, and with them refuses what comes next. */
static void trust_has_not_arrived_while_a_pod_that_was_replaced_runs(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 1, "rl-leaf-2", "ca-2");
    recorded_plan(c);
    apply_restart(c, &c->plan.restarts[0]);
    plan(c);
    write_status(c);
    c->now_ms += 5000;
    finish_rollout(c, 1);
    see_all(c, 1, "rl-leaf-2");
    const struct cr_world_ending ending = {.pod = {.pod = c->pod_json[1][0], .name = "old"}, .until_ms = c->now_ms};
    c->consumers[1].ending = &ending;
    c->consumers[1].ending_len = 1;
    c->now_ms += 29999;
    assert_true(plan(c)->requeue_after_ms == 1);
    assert_false(condition(c, "Converged"));
    c->now_ms += 1;
    plan(c);
    assert_true(condition(c, "Converged"));
}

static void an_old_pod_that_serves_the_new_leaf_is_not_done(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 1, "rl-leaf-2", "ca-2");
    recorded_plan(c);
    see_all(c, 1, "rl-leaf-2");
    plan(c);
    assert_int_equal(consumer(c, "rate-limit")->pods.stale, PODS);
    assert_int_equal(c->plan.restarts_len, 1);
}

/* Restarted, and its new pods came up with the old leaf. */
static struct cluster *came_up_with_the_old_leaf(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 1, "rl-leaf-2", "ca-2");
    recorded_plan(c);
    apply_restart(c, &c->plan.restarts[0]);
    c->now_ms += 5000;
    finish_rollout(c, 1);
    see_all(c, 1, "rl-leaf-1");
    return c;
}

static void a_new_pod_with_the_old_leaf_is_evicted_one_at_a_time(void **state)
{
    struct cluster *c = came_up_with_the_old_leaf(state);
    const struct cr_plan *p = recorded_plan(c);
    assert_int_equal(p->evictions_len, 1);
    assert_int_equal(p->restarts_len, 0);
    c->consumers[1].evictions = 1;
    c->consumers[1].evicted_ms = c->now_ms;
    assert_int_equal(plan(c)->evictions_len, 0);
    c->now_ms += 3600 * 1000;
    see_all(c, 1, "rl-leaf-1");
    assert_int_equal(plan(c)->evictions_len, 1);
    /* An eviction is a restart of one pod: who allows none allows none of these. */
    c->policy->restart.method = CR_RESTART_NEVER;
    assert_int_equal(plan(c)->evictions_len, 0);
    c->policy->restart.method = CR_RESTART_AUTO;
    assert_int_equal(plan(c)->evictions_len, 1);
    c->consumers[1].evictions = CR_PLAN_EVICTIONS_MAX;
    assert_int_equal(plan(c)->evictions_len, 0);
    assert_int_equal(consumer(c, "rate-limit")->state, CR_CONSUMER_BLOCKED);
}

/* No PodDisruptionBudget is needed for that. */
static void a_new_pod_with_the_old_leaf_is_evicted_once_the_others_are_ready(void **state)
{
    struct cluster *c = came_up_with_the_old_leaf(state);
    c->pods[1][0].ready = false; /* in the place of the one before */
    see(c, 1, 0, "rl-leaf-2");
    assert_int_equal(recorded_plan(c)->evictions_len, 0);
    c->pods[1][0].ready = true;
    assert_int_equal(recorded_plan(c)->evictions_len, 1);
    assert_int_equal(c->plan.evictions[0].pod, 1);
    c->pods[1][1].ready = false; /* the one that has the old leaf: it serves nobody */
    assert_int_equal(recorded_plan(c)->evictions_len, 1);
}

static void the_only_pod_with_the_old_leaf_stays_unless_a_gap_is_allowed(void **state)
{
    struct cluster *c = came_up_with_the_old_leaf(state);
    cr_json_set_int(cr_json_edit(c->workloads[1], "spec"), "replicas", 1);
    c->consumers[1].pods_len = 1;
    assert_int_equal(recorded_plan(c)->evictions_len, 0);
    assert_int_equal(consumer(c, "rate-limit")->state, CR_CONSUMER_BLOCKED);
    assert_int_equal(consumer(c, "rate-limit")->gate.hold, CR_HOLD_SINGLE_REPLICA);
    c->secrets[1].step.distrusts = true; /* a default holds no distrust, what a person has set does */
    assert_int_equal(recorded_plan(c)->evictions_len, 1);
    c->policy->restart.single = CR_SINGLE_BLOCK;
    assert_int_equal(recorded_plan(c)->evictions_len, 0);
    c->secrets[1].step.distrusts = false;
    assert_int_equal(recorded_plan(c)->evictions_len, 0);
    c->pods[1][0].ready = false; /* it serves nobody */
    assert_int_equal(recorded_plan(c)->evictions_len, 1);
    c->pods[1][0].ready = true;
    c->consumers[1].pods_len = 2; /* another serves, in the midst of a rollout that surges */
    assert_int_equal(recorded_plan(c)->evictions_len, 1);
    c->consumers[1].pods_len = 1;
    assert_int_equal(recorded_plan(c)->evictions_len, 0);
    c->policy->restart.single = CR_SINGLE_WARN;
    assert_int_equal(recorded_plan(c)->evictions_len, 1);
}

/* What would come in its place would begin with what cannot be used. */
static void a_new_pod_with_the_old_leaf_stays_while_another_of_its_secrets_is_broken(void **state)
{
    struct cluster *c = *state;
    struct cr_json *spec = cr_json_edit(cr_json_edit(cr_json_edit(c->workloads[1], "spec"), "template"), "spec");
    cr_json_add(cr_json_edit(spec, "volumes"), yaml("{name: other, secret: {secretName: envoy}}"));
    start_idle(state);
    set_material(c, 1, "rl-leaf-2", "ca-2");
    recorded_plan(c);
    apply_restart(c, &c->plan.restarts[0]);
    c->now_ms += 5000;
    finish_rollout(c, 1);
    see_all(c, 1, "rl-leaf-1");
    set_problem(c, 0, CR_MATERIAL_KEY_MISMATCH);
    assert_int_equal(recorded_plan(c)->evictions_len, 0);
    assert_int_equal(consumer(c, "rate-limit")->pods.stale, PODS);
    set_material(c, 0, "envoy-leaf-1", "ca-1");
    assert_int_equal(recorded_plan(c)->evictions_len, 1);
}

static void a_lost_status_does_not_lose_a_change_since_the_last_restart(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 1, "rl-leaf-2", "ca-2");
    recorded_plan(c);
    apply_restart(c, &c->plan.restarts[0]);
    cr_policy_status_dispose(&c->status);
    c->status = (struct cr_policy_status){0};
    assert_int_equal(recorded_plan(c)->restarts_len, 0);
    cr_policy_status_dispose(&c->status);
    c->status = (struct cr_policy_status){0};
    set_material(c, 1, "rl-leaf-3", "ca-3");
    assert_int_equal(recorded_plan(c)->restarts_len, 1);
}

static void a_superseded_change_restarts_for_the_newest_only(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 1, "rl-leaf-2", "ca-2");
    recorded_plan(c);
    write_status(c);
    c->now_ms += 1000;
    set_material(c, 1, "rl-leaf-3", "ca-3");
    const struct cr_plan *p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 1);
    char name[CR_ANNOTATION_NAME];
    cr_restart_annotation_name("rate-limit", name);
    assert_true(cr_restart_annotation_covers(cr_json_string_at(p->restarts[0].annotations, name), &c->material[1],
                                             CR_CLASS_TRUST));
    assert_int_equal(p->status.history_len, 1);
    assert_string_equal(p->status.history[0].outcome, "Superseded");
}

/* --- gates --- */

static void suspended_does_nothing_and_says_so(void **state)
{
    struct cluster *c = start_idle(state);
    c->policy->suspend = true;
    set_material(c, 0, "envoy-leaf-2", "ca-2");
    set_material(c, 1, "rl-leaf-2", "ca-2");
    assert_no_acts(recorded_plan(c));
    assert_true(condition(c, "Blocked"));
    assert_int_equal(consumer(c, "rate-limit")->gate.hold, CR_HOLD_SUSPENDED);
}

enum point { SEEN, COALESCING, ROLLING, ROLLED, STALE };

/* A change of Rate Limit's CA, brought so far. */
static void bring_to(struct cluster *c, enum point point)
{
    c->policy->restart.coalesce_ms = 10 * 1000;
    set_material(c, 1, "rl-leaf-2", "ca-2");
    if (point == SEEN)
        return;
    recorded_plan(c);
    if (point == COALESCING)
        return;
    c->now_ms += 12 * 1000;
    assert_int_equal(plan(c)->restarts_len, 1);
    apply_restart(c, &c->plan.restarts[0]);
    plan(c);
    write_status(c);
    if (point == ROLLING)
        return;
    c->now_ms += 5000;
    finish_rollout(c, 1);
    if (point == STALE)
        see_all(c, 1, "rl-leaf-1");
}

/* Suspended or only to be planned at any point, it stands still; and then what is due is done, and nothing twice. */
static void switched_off_at_any_point_it_stands_still_and_then_goes_on(void **state)
{
    static const struct {
        enum point point;
        enum cr_consumer_state state; /* meanwhile */
        size_t restarts, probes, evictions;
    } cases[] = {
        {SEEN, CR_CONSUMER_PENDING, 0, 2, 0},       {COALESCING, CR_CONSUMER_PENDING, 1, 0, 0},
        {ROLLING, CR_CONSUMER_RESTARTING, 0, 0, 0}, {ROLLED, CR_CONSUMER_VERIFYING, 0, 2, 0},
        {STALE, CR_CONSUMER_VERIFYING, 0, 2, 1},
    };
    (void)state;
    for (size_t i = 0; i < 2 * cr_array_len(cases); i++) {
        void *fresh = NULL;
        setup(&fresh);
        struct cluster *c = start_idle(&fresh);
        for (int pod = 0; pod < PODS; pod++)
            put_on_node(c, 1, pod, "10.1.0.1");
        size_t k = i / 2;
        bring_to(c, cases[k].point);
        bool suspend = i % 2 == 0;
        c->policy->suspend = suspend;
        c->policy->mode = suspend ? CR_MODE_ENFORCE : CR_MODE_PLAN;
        assert_no_acts(recorded_plan(c));
        assert_int_equal(consumer(c, "rate-limit")->state, cases[k].state);
        write_status(c);
        c->now_ms += cases[k].point == SEEN ? 1000 : 30 * 1000;
        if (cases[k].point == STALE)
            see_all(c, 1, "rl-leaf-1");
        assert_no_acts(recorded_plan(c));
        c->policy->suspend = false;
        c->policy->mode = CR_MODE_ENFORCE;
        c->now_ms += 1000;
        const struct cr_plan *p = recorded_plan(c);
        assert_int_equal(p->restarts_len, cases[k].restarts);
        assert_int_equal(p->probes_len, cases[k].probes);
        assert_int_equal(p->evictions_len, cases[k].evictions);
        teardown(&fresh);
    }
}

static void plan_mode_reports_the_decision_and_touches_nothing(void **state)
{
    struct cluster *c = start_idle(state);
    c->policy->mode = CR_MODE_PLAN;
    set_material(c, 1, "rl-leaf-2", "ca-2");
    assert_no_acts(recorded_plan(c));
    assert_int_equal(consumer(c, "rate-limit")->decision, CR_DECISION_RESTART);
    assert_int_equal(consumer(c, "rate-limit")->gate.hold, CR_HOLD_PLAN_MODE);
}

static void plan_mode_says_each_restart_once(void **state)
{
    struct cluster *c = start_idle(state);
    c->policy->mode = CR_MODE_PLAN;
    set_material(c, 1, "rl-leaf-2", "ca-2");
    assert_true(plan(c)->record_first);
    assert_true(says(&c->plan, "RestartPlanned"));
    for (int i = 0; i < 3; i++) {
        write_status(c);
        c->now_ms += 20 * 1000;
        plan(c);
        assert_false(says(&c->plan, "RestartPlanned"));
    }
    set_material(c, 1, "rl-leaf-3", "ca-3");
    plan(c);
    assert_true(says(&c->plan, "RestartPlanned"));
    write_status(c);
    c->policy->mode = CR_MODE_ENFORCE;
    plan(c);
    assert_false(says(&c->plan, "RestartPlanned"));
    assert_int_equal(c->plan.restarts_len, 1);
}

static void method_never_blocks_the_restart(void **state)
{
    struct cluster *c = start_idle(state);
    c->policy->restart.method = CR_RESTART_NEVER;
    set_material(c, 1, "rl-leaf-2", "ca-2");
    assert_int_equal(recorded_plan(c)->restarts_len, 0);
    assert_int_equal(consumer(c, "rate-limit")->state, CR_CONSUMER_BLOCKED);
}

static void changes_within_the_coalescing_time_wait(void **state)
{
    struct cluster *c = start_idle(state);
    c->policy->restart.coalesce_ms = 10 * 1000;
    set_material(c, 1, "rl-leaf-2", "ca-2");
    assert_int_equal(recorded_plan(c)->restarts_len, 0);
    c->now_ms += 10 * 1000;
    assert_int_equal(plan(c)->restarts_len, 1);
}

/* --- restarts only when they help: a kubelet whose cache has the old Secret gives it to new pods (kubernetes#129645)
 */

/* Rate Limit, which reloads its leaf and reads its CA once, on two nodes, and both changed. */
static struct cluster *changed_on_two_nodes(void **state)
{
    struct cluster *c = start_idle(state);
    put_on_node(c, 1, 0, "10.1.0.1");
    put_on_node(c, 1, 1, "10.1.0.2");
    set_material(c, 1, "rl-leaf-2", "ca-2");
    return c;
}

static void a_restart_waits_until_old_pods_show_that_their_kubelets_are_fresh(void **state)
{
    struct cluster *c = changed_on_two_nodes(state);
    const struct cr_plan *p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 0);
    assert_int_equal(p->nudges_len, 2);
    assert_int_equal(p->probes_len, 2);
    assert_int_equal(consumer(c, "rate-limit")->state, CR_CONSUMER_PENDING);
    assert_int_equal(consumer(c, "rate-limit")->gate.hold, CR_HOLD_KUBELET);
    assert_non_null(strstr(consumer(c, "rate-limit")->gate.text, "waits a moment for pod rl-0 "));
    see(c, 1, 0, "rl-leaf-2");
    see(c, 1, 1, "rl-leaf-1");
    assert_int_equal(plan(c)->restarts_len, 0);
    assert_non_null(strstr(consumer(c, "rate-limit")->gate.text, "waits a moment for pod rl-1 "));
    c->now_ms += 1000;
    assert_int_equal(plan(c)->probes_len, 1); /* rl-0 has said it */
    see(c, 1, 1, "rl-leaf-2");
    assert_int_equal(plan(c)->restarts_len, 1);
    assert_int_equal(c->plan.probes_len, 0);
}

/* Until it had reloaded, the wait would be over, or nearly. */
static void a_slow_reload_proves_nothing(void **state)
{
    struct cluster *c = changed_on_two_nodes(state);
    c->policy->consumers[1].reload[CR_ROLE_SERVER_LEAF] =
        (struct cr_reload_override){.set = true, .method = CR_METHOD_POLL, .max_delay_ms = 11 * 1000};
    assert_int_equal(recorded_plan(c)->restarts_len, 1);
}

static void one_pod_counts_for_all_of_its_node(void **state)
{
    struct cluster *c = changed_on_two_nodes(state);
    put_on_node(c, 1, 1, "10.1.0.1");
    recorded_plan(c);
    see(c, 1, 0, "rl-leaf-1");
    see(c, 1, 1, "rl-leaf-2");
    assert_int_equal(plan(c)->restarts_len, 1);
}

static void a_stale_kubelet_is_nudged_again_and_waited_for_so_long_only(void **state)
{
    static const struct {
        int64_t coalesce_ms, after_ms;
        size_t restarts, nudges;
    } moments[] = {
        {0, 900, 0, 0},      {0, 1000, 0, 2},     {0, 1999, 0, 2},      {0, 2000, 1, 0},
        {10000, 1999, 0, 2}, {10000, 9999, 0, 2}, {10000, 11999, 0, 2}, {10000, 12000, 1, 0},
    };
    struct cluster *c = changed_on_two_nodes(state);
    recorded_plan(c);
    int64_t start_ms = c->now_ms;
    for (int i = 0; i < PODS; i++) {
        c->pods[1][i].nudges = 1;
        c->pods[1][i].nudged_ms = c->pods[1][i].nudged_since_ms = start_ms;
    }
    for (size_t i = 0; i < cr_array_len(moments); i++) {
        c->policy->restart.coalesce_ms = moments[i].coalesce_ms;
        c->now_ms = start_ms + moments[i].after_ms;
        see_all(c, 1, "rl-leaf-1");
        plan(c);
        assert_int_equal(c->plan.restarts_len, moments[i].restarts);
        assert_int_equal(c->plan.nudges_len, moments[i].nudges);
    }
}

/* Nothing can be had from it: the restart goes its way. */
static void no_wait_for_what_no_pod_can_show(void **state)
{
    struct cluster *c = changed_on_two_nodes(state);
    recorded_plan(c);
    for (int i = 0; i < PODS; i++)
        c->sightings[1][i][0] = (struct cr_sighting){.seen = CR_SEEN_UNREACHABLE, .at_ms = c->now_ms};
    assert_int_equal(plan(c)->restarts_len, 1);
    /* Not started: it has no old leaf to show. */
    memset(c->sightings[1], 0, sizeof c->sightings[1]);
    assert_int_equal(plan(c)->restarts_len, 0);
    for (int i = 0; i < PODS; i++)
        c->pods[1][i].started_ms = 0;
    assert_int_equal(plan(c)->restarts_len, 1);
}

static void no_wait_for_pods_that_are_not_looked_at(void **state)
{
    struct cluster *c = changed_on_two_nodes(state);
    recorded_plan(c);
    assert_int_equal(c->plan.restarts_len, 0);
    struct cr_policy_verify *verify = &c->policy->consumers[1].verify;
    size_t endpoints = verify->endpoints_len;
    verify->endpoints_len = 0;
    assert_int_equal(plan(c)->restarts_len, 1);
    verify->endpoints_len = endpoints;
}

static void no_wait_when_only_trust_changed(void **state)
{
    struct cluster *c = changed_on_two_nodes(state);
    set_material(c, 1, "rl-leaf-1", "ca-2");
    assert_int_equal(recorded_plan(c)->restarts_len, 1);
}

static void a_clock_set_back_does_not_stop_the_evidence(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    recorded_plan(c);
    c->now_ms -= 3600 * 1000;
    see_all(c, 0, "envoy-leaf-2");
    plan(c);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_CONVERGED);
}

static void a_paused_deployment_waits(void **state)
{
    struct cluster *c = start_idle(state);
    cr_json_set_bool(cr_json_edit(c->workloads[1], "spec"), "paused", true);
    set_material(c, 1, "rl-leaf-2", "ca-2");
    assert_int_equal(recorded_plan(c)->restarts_len, 0);
    assert_int_equal(consumer(c, "rate-limit")->state, CR_CONSUMER_BLOCKED);
}

static void only_max_concurrent_restarts_run_at_once(void **state)
{
    struct cluster *c = start_idle(state);
    for (int i = 0; i < 2; i++) {
        c->policy->consumers[i].reload[CR_ROLE_SERVER_LEAF] =
            (struct cr_reload_override){.set = true, .method = CR_METHOD_RESTART};
        set_material(c, i, i ? "rl-leaf-2" : "envoy-leaf-2", "ca-1");
    }
    const struct cr_plan *p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 1);
    apply_restart(c, &p->restarts[0]);
    assert_int_equal(recorded_plan(c)->restarts_len, 0);
    assert_int_equal(consumer(c, "rate-limit")->gate.hold, CR_HOLD_MAX_CONCURRENT);
    assert_string_equal(consumer(c, "rate-limit")->gate.text, "restart.maxConcurrent: waits for envoy");
    finish_rollout(c, 0);
    assert_int_equal(plan(c)->restarts_len, 1);
}

/* Both are to be restarted. */
static struct cluster *both_changed(void **state)
{
    struct cluster *c = start_idle(state);
    c->policy->restart.max_concurrent = 2;
    for (int i = 0; i < 2; i++) {
        c->policy->consumers[i].reload[CR_ROLE_SERVER_LEAF] =
            (struct cr_reload_override){.set = true, .method = CR_METHOD_RESTART};
        set_material(c, i, i ? "rl-leaf-2" : "envoy-leaf-2", "ca-1");
    }
    return c;
}

static void who_comes_after_another_waits_until_that_one_has_finished(void **state)
{
    struct cluster *c = both_changed(state);
    cr_strvec_add(&c->policy->consumers[0].after, "rate-limit");
    const struct cr_plan *p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 1);
    assert_int_equal(p->restarts[0].consumer, 1);
    assert_int_equal(consumer(c, "envoy")->gate.hold, CR_HOLD_ORDER);
    assert_string_equal(consumer(c, "envoy")->gate.text, "after: waits for rate-limit");
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_PENDING);
    assert_true(condition(c, "Blocked"));
    apply_restart(c, &p->restarts[0]);
    assert_int_equal(recorded_plan(c)->restarts_len, 0); /* it rolls */
    finish_rollout(c, 1);
    assert_int_equal(plan(c)->restarts_len, 0); /* it rolled, and was not seen with the new leaf yet */
    see_all(c, 1, "rl-leaf-2");
    p = plan(c);
    assert_int_equal(p->restarts_len, 1);
    assert_int_equal(p->restarts[0].consumer, 0);
}

static void no_wait_for_a_consumer_with_nothing_to_do(void **state)
{
    struct cluster *c = start_idle(state);
    cr_strvec_add(&c->policy->consumers[1].after, "envoy");
    set_material(c, 1, "rl-leaf-2", "ca-2");
    assert_int_equal(recorded_plan(c)->restarts_len, 1);
}

static void no_wait_for_a_consumer_that_is_not_there(void **state)
{
    struct cluster *c = both_changed(state);
    cr_strvec_add(&c->policy->consumers[1].after, "envoy");
    c->consumers[0] = (struct cr_world_consumer){0};
    const struct cr_plan *p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 1);
    assert_int_equal(p->restarts[0].consumer, 1);
}

static void who_comes_after_what_is_not_acted_on_is_held(void **state)
{
    struct cluster *c = both_changed(state);
    cr_strvec_add(&c->policy->consumers[0].after, "job");
    const struct cr_plan *p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 1);
    assert_int_equal(p->restarts[0].consumer, 1);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_BLOCKED);
    assert_int_equal(consumer(c, "envoy")->gate.hold, CR_HOLD_ORDER_UNKNOWN);
    assert_true(cr_starts_with(consumer(c, "envoy")->gate.text, "after: nobody can tell when job has finished"));
}

static void a_failed_rollout_stops_further_restarts(void **state)
{
    struct cluster *c = start_idle(state);
    for (int i = 0; i < 2; i++) {
        c->policy->consumers[i].reload[CR_ROLE_SERVER_LEAF] =
            (struct cr_reload_override){.set = true, .method = CR_METHOD_RESTART};
        set_material(c, i, i ? "rl-leaf-2" : "envoy-leaf-2", "ca-1");
    }
    apply_restart(c, &recorded_plan(c)->restarts[0]);
    struct cr_json *status = cr_json_edit(c->workloads[0], "status");
    cr_json_set_int(status, "observedGeneration", 2);
    cr_json_set_int(status, "updatedReplicas", 1);
    struct cr_json *failed = cr_json_add(cr_json_array_in(status, "conditions"), cr_json_new_object());
    cr_json_set_string(failed, "type", "Progressing");
    cr_json_set_string(failed, "status", "False");
    cr_json_set_string(failed, "reason", "ProgressDeadlineExceeded");
    const struct cr_plan *p = plan(c);
    assert_int_equal(p->restarts_len, 0);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_FAILED);
    assert_true(condition(c, "Degraded"));
    assert_true(says(p, "RolloutFailed"));
}

/* --- what is seen must be of now, and of this change --- */

static void an_old_sighting_is_looked_at_again_before_a_fall_back(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    recorded_plan(c);
    c->now_ms += 500;
    see_all(c, 0, "envoy-leaf-1");
    plan(c);
    write_status(c);
    c->policy->suspend = true;
    c->now_ms += 3600 * 1000;
    assert_no_acts(plan(c));
    write_status(c);
    c->policy->suspend = false;
    const struct cr_plan *p = plan(c);
    assert_int_equal(p->restarts_len, 0);
    assert_int_equal(p->probes_len, PODS);
}

static void a_gated_fall_back_goes_on_looking(void **state)
{
    struct cluster *c = start_idle(state);
    cr_json_set_bool(cr_json_edit(c->workloads[0], "spec"), "paused", true);
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    recorded_plan(c);
    c->now_ms += 200 * 1000;
    see_all(c, 0, "envoy-leaf-1");
    assert_int_equal(plan(c)->restarts_len, 0);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_BLOCKED);
    c->now_ms += 60 * 1000;
    assert_int_equal(plan(c)->probes_len, PODS);
    see_all(c, 0, "envoy-leaf-2");
    plan(c);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_CONVERGED);
}

static void a_clock_set_back_makes_no_storm(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    recorded_plan(c);
    c->now_ms -= 3600 * 1000;
    recorded_plan(c);
    for (int i = 0; i < PODS; i++) {
        c->pods[0][i].nudges = 1;
        c->pods[0][i].nudged_ms = c->now_ms;
        c->pods[0][i].nudged_since_ms = consumer(c, "envoy")->since_ms;
    }
    write_status(c);
    c->now_ms += 500;
    see_all(c, 0, "envoy-leaf-1");
    assert_int_equal(plan(c)->nudges_len, 0);
    assert_int_equal(consumer(c, "envoy")->pods.stale, PODS);
    c->now_ms += 100;
    write_status(c);
    plan(c);
    assert_false(status_would_change(c));
}

static void a_leaf_of_one_secret_settles_no_other(void **state)
{
    struct cluster *c = start_idle(state);
    struct cr_json *spec = cr_json_edit(cr_json_edit(cr_json_edit(c->workloads[0], "spec"), "template"), "spec");
    struct cr_json *volume = cr_json_add(cr_json_edit(spec, "volumes"), cr_json_new_object());
    cr_json_set_string(volume, "name", "trust");
    cr_json_set_string(cr_json_object_in(volume, "secret"), "secretName", "rate-limit");
    struct cr_json *container = cr_json_take_first(cr_json_edit(spec, "containers"));
    struct cr_json *mount = cr_json_add(cr_json_edit(container, "volumeMounts"), cr_json_new_object());
    cr_json_set_string(mount, "name", "trust");
    cr_json_set_string(mount, "mountPath", "/trust");
    cr_json_add(cr_json_edit(spec, "containers"), container);
    c->consumers[1].found = false;
    c->policy->consumers[1].optional = true;
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    set_material(c, 1, "rl-leaf-1", "ca-2");
    recorded_plan(c);
    see_all(c, 0, "envoy-leaf-2");
    plan(c);
    assert_false(cr_status_secret(&c->plan.status, "envoy")->pending.set);
    assert_true(cr_status_secret(&c->plan.status, "rate-limit")->pending.set);
}

/* The present template's software reloads; that of the pods is another version, or may be. */
static void pods_of_another_template_are_not_known_to_reload(void **state)
{
    static const char *const on_delete = "{type: OnDelete}";
    static const char *const partition = "{type: RollingUpdate, rollingUpdate: {partition: 2}}";
    static const struct {
        const char *rule, *kind, *strategy, *status;
        enum cr_consumer_state stands;
        enum cr_hold hold;
    } cases[] = {
        {"a rollout", "Deployment", NULL, "{observedGeneration: 1, replicas: 3, updatedReplicas: 2}",
         CR_CONSUMER_VERIFYING, CR_HOLD_EVIDENCE},
        {"one that is not seen yet", "Deployment", NULL, "{observedGeneration: 0, replicas: 2, updatedReplicas: 2}",
         CR_CONSUMER_VERIFYING, CR_HOLD_EVIDENCE},
        {"one that hangs", "Deployment", NULL,
         "{observedGeneration: 1, replicas: 2, updatedReplicas: 0, conditions: [{type: Progressing, reason: "
         "ProgressDeadlineExceeded}]}",
         CR_CONSUMER_FAILED, CR_HOLD_ROLLOUT_FAILED},
        {"OnDelete", "StatefulSet", on_delete,
         "{observedGeneration: 1, replicas: 2, updatedReplicas: 0, availableReplicas: 2}", CR_CONSUMER_BLOCKED,
         CR_HOLD_ON_DELETE},
        {"a partition", "StatefulSet", partition,
         "{observedGeneration: 1, replicas: 2, updatedReplicas: 0, availableReplicas: 2}", CR_CONSUMER_BLOCKED,
         CR_HOLD_PARTITION},
    };
    struct cluster *c = start_idle(state);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_strset(&c->policy->consumers[0].kind, cases[i].kind);
        CR_CLEANUP(cr_json) struct cr_json *rest = cr_json_copy(cr_json_at(c->workloads[0], "status"));
        if (cases[i].strategy)
            cr_json_set(cr_json_edit(c->workloads[0], "spec"), "updateStrategy", yaml(cases[i].strategy));
        cr_json_set(c->workloads[0], "status", yaml(cases[i].status));
        cr_autofree char *ca = cr_asprintf("ca-%zu", i + 2);
        set_material(c, 0, "envoy-leaf-1", ca);
        recorded_plan(c);
        write_status(c);
        c->now_ms += 120 * 1000;
        plan(c);
        if (consumer(c, "envoy")->pods.inferred != PODS || !cr_status_secret(&c->plan.status, "envoy")->pending.set)
            fail_msg("%s: settled", cases[i].rule);
        if (consumer(c, "envoy")->state != cases[i].stands || consumer(c, "envoy")->gate.hold != cases[i].hold)
            fail_msg("%s: %s: %s", cases[i].rule, cr_consumer_state_name(consumer(c, "envoy")->state),
                     cr_or_empty(consumer(c, "envoy")->gate.text));
        cr_json_set(c->workloads[0], "status", cr_steal(&rest));
        plan(c);
        assert_false(cr_status_secret(&c->plan.status, "envoy")->pending.set);
        write_status(c);
    }
}

static void pods_of_another_template_are_verified_by_what_they_show(void **state)
{
    struct cluster *c = start_idle(state);
    cr_json_set_int(cr_json_edit(c->workloads[0], "status"), "updatedReplicas", 0);
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    recorded_plan(c);
    see_all(c, 0, "envoy-leaf-2");
    plan(c);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_CONVERGED);
    assert_false(cr_status_secret(&c->plan.status, "envoy")->pending.set);
}

static void a_new_chain_under_the_same_leaf_is_not_verified_by_that_leaf(void **state)
{
    struct cluster *c = start_idle(state);
    digest(c->material[0].chain, "another chain");
    recorded_plan(c);
    see_all(c, 0, "envoy-leaf-1");
    plan(c);
    assert_int_equal(consumer(c, "envoy")->pods.verified, 0);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_VERIFYING);
    c->now_ms += 3600 * 1000;
    plan(c);
    assert_int_equal(consumer(c, "envoy")->pods.inferred, PODS);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_CONVERGED);
}

static void missing_pods_are_no_evidence(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    c->consumers[0].pods_len = 0;
    recorded_plan(c);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_VERIFYING);
    cr_json_set_int(cr_json_edit(c->workloads[0], "spec"), "replicas", 0);
    cr_json_set_int(cr_json_edit(c->workloads[0], "status"), "replicas", 0);
    plan(c);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_CONVERGED);
}

/* --- other hands --- */

static void a_restart_that_was_undone_is_not_repeated(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 1, "rl-leaf-2", "ca-2");
    apply_restart(c, &recorded_plan(c)->restarts[0]);
    assert_true(plan(c)->record_first); /* who undoes it at once finds it on record */
    write_status(c);
    struct cr_json *metadata = cr_json_edit(c->workloads[1], "metadata");
    struct cr_json *template = cr_json_edit(cr_json_edit(c->workloads[1], "spec"), "template");
    cr_json_remove(cr_json_edit(template, "metadata"), "annotations");
    /* A read that lags behind our own patch shows the same, at an older generation. */
    cr_json_set_int(metadata, "generation", 1);
    assert_int_equal(plan(c)->restarts_len, 1);
    cr_json_set_int(metadata, "generation", 3);
    const struct cr_plan *p = plan(c);
    assert_int_equal(p->restarts_len, 0);
    assert_true(says(p, "RestartUndone"));
    assert_int_equal(consumer(c, "rate-limit")->state, CR_CONSUMER_BLOCKED);
    write_status(c);
    assert_int_equal(plan(c)->events_len, 0);
    /* The next change is another matter. */
    set_material(c, 1, "rl-leaf-3", "ca-3");
    assert_int_equal(recorded_plan(c)->restarts_len, 1);
}

static void pods_that_others_renewed_need_no_restart(void **state)
{
    struct cluster *c = start_idle(state);
    c->policy->restart.method = CR_RESTART_NEVER;
    set_material(c, 1, "rl-leaf-2", "ca-2");
    recorded_plan(c);
    assert_int_equal(consumer(c, "rate-limit")->state, CR_CONSUMER_BLOCKED);
    write_status(c);
    c->now_ms += 200 * 1000;
    add_pod(c, 1, 0, "by-hand-0", c->now_ms);
    add_pod(c, 1, 1, "by-hand-1", c->now_ms);
    c->now_ms += 1000;
    see_all(c, 1, "rl-leaf-2");
    plan(c);
    assert_int_equal(consumer(c, "rate-limit")->state, CR_CONSUMER_CONVERGED);
}

static void a_change_taken_back_evicts_no_pod(void **state)
{
    struct cluster *c = *state;
    c->policy->restart.coalesce_ms = 10 * 1000;
    char name[CR_ANNOTATION_NAME];
    cr_restart_annotation_name("rate-limit", name);
    cr_autofree char *value = cr_restart_annotation_value(&c->material[1], CR_CLASS_TRUST);
    struct cr_json *template = cr_json_edit(cr_json_edit(c->workloads[1], "spec"), "template");
    cr_json_set_string(cr_json_object_in(cr_json_edit(template, "metadata"), "annotations"), name, value);
    for (int i = 0; i < PODS; i++)
        add_pod(c, 1, i, i ? "rl-1" : "rl-0", START - 60000);
    start_idle(state);
    set_material(c, 1, "rl-leaf-2", "ca-2");
    recorded_plan(c);
    write_status(c);
    c->now_ms += 3000;
    set_material(c, 1, "rl-leaf-1", "ca-1");
    recorded_plan(c);
    write_status(c);
    c->now_ms += 200;
    see_all(c, 1, "rl-leaf-2");
    const struct cr_plan *p = plan(c);
    assert_int_equal(p->evictions_len, 0);
    assert_int_equal(p->restarts_len, 0);
    assert_int_equal(p->nudges_len, PODS);
    see_all(c, 1, "rl-leaf-1");
    plan(c);
    assert_int_equal(consumer(c, "rate-limit")->state, CR_CONSUMER_CONVERGED);
}

/* The CA alone, while a restart was held. */
static void who_began_before_a_change_was_taken_back_is_restarted(void **state)
{
    struct cluster *c = start_idle(state);
    c->policy->restart.coalesce_ms = 10 * 1000;
    set_material(c, 1, "rl-leaf-1", "ca-2");
    recorded_plan(c);
    write_status(c);
    int64_t meanwhile_ms = c->now_ms + 5000;
    c->now_ms += 9000;
    set_material(c, 1, "rl-leaf-1", "ca-1");
    plan(c);
    assert_int_equal(consumer(c, "rate-limit")->state, CR_CONSUMER_CONVERGED); /* nobody has seen the other CA */
    add_pod(c, 1, 0, "rl-2", meanwhile_ms);
    recorded_plan(c);
    write_status(c);
    c->now_ms += 20 * 1000;
    assert_int_equal(recorded_plan(c)->restarts_len, 1);
}

/* Envoy may have loaded the other CA, and goes on with it until it has loaded this one again. */
static void who_reloads_is_looked_at_when_a_change_is_taken_back(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 0, "envoy-leaf-1", "ca-2");
    assert_int_equal(recorded_plan(c)->nudges_len, PODS);
    c->now_ms += 9000;
    set_material(c, 0, "envoy-leaf-1", "ca-1");
    assert_int_equal(recorded_plan(c)->nudges_len, PODS);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_VERIFYING);
    assert_true(cr_status_secret(&c->plan.status, "envoy")->pending.set);
    c->now_ms += 94 * 1000;
    plan(c);
    assert_true(cr_status_secret(&c->plan.status, "envoy")->pending.set);
    c->now_ms += 24LL * 3600 * 1000;
    assert_int_equal(plan(c)->restarts_len, 0);
    assert_false(cr_status_secret(&c->plan.status, "envoy")->pending.set);
}

/* Clients' CAs, which it reads once, and those of its servers, which it reloads. */
static void who_reads_once_beside_what_reloads_is_not_restarted_for_what_it_began_with(void **state)
{
    struct cluster *c = start_idle(state);
    struct cr_reload_override *reload = c->policy->consumers[0].reload;
    reload[CR_ROLE_CLIENT_CA] = (struct cr_reload_override){.set = true, .method = CR_METHOD_RESTART};
    c->policy->restart.coalesce_ms = 10 * 1000;
    set_material(c, 0, "envoy-leaf-1", "ca-2");
    assert_int_equal(recorded_plan(c)->restarts_len, 0);
    write_status(c);
    c->now_ms += 9000;
    set_material(c, 0, "envoy-leaf-1", "ca-1");
    recorded_plan(c);
    write_status(c);
    c->now_ms += 20 * 1000;
    assert_int_equal(recorded_plan(c)->restarts_len, 0);
    assert_true(cr_status_secret(&c->plan.status, "envoy")->pending.set);
}

/* It takes both Secrets, and was restarted for the first, which goes on for the sake of Envoy. */
static void what_a_workload_was_restarted_for_shortens_no_wait(void **state)
{
    static const char also_text[] = "name: app\n"
                                    "image: acme/app:1\n"
                                    "volumeMounts: [{name: more, mountPath: /more}]\n";
    struct cluster *c = *state;
    struct cr_json *template = cr_json_edit(cr_json_edit(c->workloads[1], "spec"), "template");
    struct cr_json *pod = cr_json_edit(template, "spec");
    cr_json_add(cr_json_edit(pod, "containers"), yaml(also_text));
    cr_json_add(cr_json_edit(pod, "volumes"), yaml("name: more\nsecret: {secretName: envoy}\n"));
    start_idle(state);
    c->policy->restart.coalesce_ms = 10 * 1000;
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    recorded_plan(c);
    write_status(c);
    c->now_ms += 10 * 1000;
    assert_int_equal(plan(c)->restarts_len, 1);
    apply_restart(c, &c->plan.restarts[0]);
    finish_rollout(c, 1);
    see_all(c, 1, "rl-leaf-1");
    plan(c);
    write_status(c);
    assert_true(c->status.secrets[0].pending.set);
    c->now_ms += 600 * 1000;
    set_material(c, 1, "rl-leaf-2", "ca-2");
    assert_int_equal(recorded_plan(c)->restarts_len, 0);
    assert_int_equal(consumer(c, "rate-limit")->gate.hold, CR_HOLD_COALESCE);
    write_status(c);
    c->now_ms += 10 * 1000;
    assert_int_equal(recorded_plan(c)->restarts_len, 1);
}

static void set_created(struct cluster *c, int consumer, int64_t at_ms)
{
    char created[CR_TIME_TEXT];
    cr_time_format(at_ms, created);
    cr_json_set_string(cr_json_edit(c->workloads[consumer], "metadata"), "creationTimestamp", created);
}

/* By the API server's clock. Ours may be behind it, and a kubelet may have what was there before. */
static void a_workload_created_about_when_the_secret_changed_is_restarted(void **state)
{
    struct cluster *c = start_idle(state);
    c->policy->restart.coalesce_ms = 10 * 1000;
    set_material(c, 1, "rl-leaf-2", "ca-2");
    recorded_plan(c);
    write_status(c);
    set_created(c, 1, c->now_ms + 5000);
    for (size_t i = 0; i < PODS; i++)
        c->pods[1][i].created_ms = c->now_ms + 5000;
    c->now_ms += 20 * 1000;
    assert_int_equal(recorded_plan(c)->restarts_len, 1);
}

static void a_workload_created_after_the_change_is_left_alone(void **state)
{
    struct cluster *c = start_idle(state);
    c->policy->consumers[1].optional = true;
    c->policy->restart.coalesce_ms = 10 * 1000;
    set_material(c, 1, "rl-leaf-2", "ca-2");
    recorded_plan(c);
    write_status(c);
    set_created(c, 1, c->now_ms + CR_KUBELET_REFRESH_MS);
    c->now_ms += 120 * 1000;
    int64_t before_ms = c->pods[1][0].created_ms;
    for (size_t i = 0; i < PODS; i++)
        c->pods[1][i].created_ms = c->now_ms - 5000;
    assert_int_equal(plan(c)->restarts_len, 0);
    /* It took over a pod of the one before (kubectl delete --cascade=orphan). */
    c->pods[1][0].created_ms = before_ms;
    assert_int_equal(recorded_plan(c)->restarts_len, 1);
    /* That one goes, and is not the end of it. */
    apply_restart(c, &c->plan.restarts[0]);
    c->pods[1][0].created_ms = c->now_ms - 5000;
    plan(c);
    assert_int_equal(consumer(c, "rate-limit")->state, CR_CONSUMER_RESTARTING);
}

/* What kubectl delete --cascade=orphan and kubectl apply do to a workload whose restart is held. */
static void a_workload_that_is_gone_for_a_moment_is_restarted(void **state)
{
    enum { AWAY_MS = 30 * 1000 };
    for (int optional = 0; optional <= 1; optional++) {
        struct cluster *c = optional ? *state : start_idle(state);
        c->policy->consumers[1].optional = optional;
        c->policy->restart.coalesce_ms = 10 * 1000;
        set_material(c, 1, optional ? "rl-leaf-3" : "rl-leaf-2", optional ? "ca-3" : "ca-2");
        recorded_plan(c);
        write_status(c);
        assert_int_equal(consumer(c, "rate-limit")->state, CR_CONSUMER_PENDING);
        c->consumers[1].found = false;
        for (int i = 0; i < 2; i++) {
            c->now_ms += AWAY_MS / 2;
            assert_no_acts(recorded_plan(c));
            write_status(c);
            assert_int_equal(consumer(c, "rate-limit")->state, CR_CONSUMER_ABSENT);
            assert_true(cr_status_secret(&c->status, "rate-limit")->pending.set);
            const struct cr_condition *converged = cr_status_condition_get(&c->status, "Converged");
            assert_non_null(strstr(converged->message, "rate-limit is Absent"));
        }
        c->consumers[1].found = true;
        assert_int_equal(recorded_plan(c)->restarts_len, 1);
        write_status(c);
    }
}

static void an_optional_workload_that_stays_away_is_waited_for_no_longer_than_kubelets(void **state)
{
    struct cluster *c = start_idle(state);
    c->policy->consumers[1].optional = true;
    c->policy->restart.coalesce_ms = 10 * 1000;
    set_material(c, 1, "rl-leaf-2", "ca-2");
    recorded_plan(c);
    write_status(c);
    c->consumers[1] = (struct cr_world_consumer){0};
    recorded_plan(c);
    write_status(c);
    assert_in_range(c->plan.requeue_after_ms, 1, CR_KUBELET_REFRESH_MS);
    c->now_ms += CR_KUBELET_REFRESH_MS;
    plan(c);
    assert_false(cr_status_secret(&c->plan.status, "rate-limit")->pending.set);
    assert_true(condition(c, "Converged"));
    assert_int_equal(consumer(c, "rate-limit")->since_ms, 0);
}

static void an_annotation_counts_for_its_own_workload_only(void **state)
{
    struct cluster *c = *state;
    struct cr_json *spec = cr_json_edit(cr_json_edit(cr_json_edit(c->workloads[0], "spec"), "template"), "spec");
    struct cr_json *volume = cr_json_take_first(cr_json_edit(spec, "volumes"));
    cr_json_set_string(cr_json_edit(volume, "secret"), "secretName", "rate-limit");
    cr_json_add(cr_json_edit(spec, "volumes"), volume);
    char name[CR_ANNOTATION_NAME];
    cr_restart_annotation_name("rate-limit", name);
    struct cr_json *template = cr_json_edit(cr_json_edit(c->workloads[1], "spec"), "template");
    cr_json_set_string(cr_json_object_in(cr_json_edit(template, "metadata"), "annotations"), name,
                       "trust=0123456789abcdef");
    const struct cr_plan *p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 1);
    assert_int_equal(p->restarts[0].consumer, 1);
    assert_int_equal(p->nudges_len, 0);
}

static void what_was_refused_is_tried_again_after_its_pause(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 1, "rl-leaf-2", "ca-2");
    recorded_plan(c);
    c->consumers[1].refused = "an admission policy says no";
    c->consumers[1].refused_until_ms = c->now_ms + 5000;
    assert_int_equal(plan(c)->restarts_len, 0);
    assert_int_equal(consumer(c, "rate-limit")->gate.hold, CR_HOLD_REFUSED);
    assert_string_equal(consumer(c, "rate-limit")->gate.text, "an admission policy says no");
    c->consumers[1].refused_by_budget = true; /* whatever its text says */
    plan(c);
    assert_int_equal(consumer(c, "rate-limit")->gate.hold, CR_HOLD_REFUSED_BY_BUDGET);
    assert_true(c->plan.requeue_after_ms > 0 && c->plan.requeue_after_ms <= 5000);
    c->now_ms += 5000;
    assert_int_equal(plan(c)->restarts_len, 1);
}

static void a_workload_that_waits_for_a_person_holds_up_no_other(void **state)
{
    struct cluster *c = start_idle(state);
    c->policy->restart.method = CR_RESTART_ROLLOUT; /* Auto evicts what no rollout replaces */
    cr_strset(&c->policy->consumers[0].kind, "StatefulSet");
    cr_json_set_string(cr_json_object_in(cr_json_edit(c->workloads[0], "spec"), "updateStrategy"), "type", "OnDelete");
    for (int role = 0; role < CR_ROLE_COUNT; role++)
        c->policy->consumers[0].reload[role] = (struct cr_reload_override){.set = true, .method = CR_METHOD_RESTART};
    set_material(c, 0, "envoy-leaf-2", "ca-2");
    set_material(c, 1, "rl-leaf-2", "ca-2");
    apply_restart(c, &recorded_plan(c)->restarts[0]);
    cr_json_set_int(cr_json_edit(c->workloads[0], "status"), "observedGeneration", 2);
    cr_json_set_int(cr_json_edit(c->workloads[0], "status"), "updatedReplicas", 0);
    write_status(c);
    const struct cr_plan *p = recorded_plan(c);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_BLOCKED);
    assert_int_equal(p->restarts_len, 1);
    assert_int_equal(p->restarts[0].consumer, 1);
}

static void material_that_vanishes_is_a_problem_not_a_change(void **state)
{
    struct cluster *c = start_idle(state);
    c->material[1].trust_len = 0;
    cr_strvec_dispose(&c->material[1].anchors);
    const struct cr_plan *p = recorded_plan(c);
    assert_no_acts(p);
    assert_true(condition(c, "Degraded"));
    assert_string_equal(cr_status_secret(&c->plan.status, "rate-limit")->problem_reason, "IncompleteMaterial");
    assert_false(cr_status_secret(&c->plan.status, "rate-limit")->pending.set);
    c->material[1].trust_len = 1;
}

/* --- bad input --- */

static void bad_material_touches_nothing_and_is_said_once(void **state)
{
    static const enum cr_material_problem problems[] = {CR_MATERIAL_KEY_MISMATCH, CR_MATERIAL_UNPARSABLE,
                                                        CR_MATERIAL_EMPTY, CR_MATERIAL_EXPIRED, CR_MATERIAL_ENCRYPTED};
    for (size_t i = 0; i < cr_array_len(problems); i++) {
        struct cluster *c = start_idle(state);
        set_problem(c, 1, problems[i]);
        const struct cr_plan *p = recorded_plan(c);
        assert_no_acts(p);
        assert_true(condition(c, "Degraded"));
        assert_true(says(p, cr_material_problem_name(problems[i])));
        write_status(c);
        p = plan(c);
        assert_int_equal(p->events_len, 0);
        assert_false(status_would_change(c));
        set_material(c, 1, "rl-leaf-1", "ca-1");
        plan(c);
        assert_false(condition(c, "Degraded"));
        write_status(c);
    }
}

static void a_secret_that_breaks_in_the_middle_holds_the_restart(void **state)
{
    struct cluster *c = start_idle(state);
    c->policy->restart.coalesce_ms = 10 * 1000;
    set_material(c, 1, "rl-leaf-2", "ca-2");
    recorded_plan(c);
    write_status(c);
    c->now_ms += 20 * 1000;
    set_problem(c, 1, CR_MATERIAL_KEY_MISMATCH);
    assert_int_equal(recorded_plan(c)->restarts_len, 0);
    assert_int_equal(consumer(c, "rate-limit")->state, CR_CONSUMER_BLOCKED);
    assert_false(condition(c, "Converged"));
    write_status(c);
    set_material(c, 1, "rl-leaf-2", "ca-2");
    assert_int_equal(recorded_plan(c)->restarts_len, 1);
}

static void a_secret_that_breaks_in_a_rollout_does_not_make_it_converged(void **state)
{
    struct cluster *c = start_idle(state);
    set_material(c, 1, "rl-leaf-2", "ca-2");
    apply_restart(c, &recorded_plan(c)->restarts[0]);
    plan(c);
    write_status(c);
    set_problem(c, 1, CR_MATERIAL_KEY_MISMATCH);
    assert_no_acts(recorded_plan(c));
    assert_int_equal(consumer(c, "rate-limit")->state, CR_CONSUMER_BLOCKED);
    assert_int_equal(consumer(c, "rate-limit")->gate.hold, CR_HOLD_SECRET_PROBLEM);
    assert_non_null(strstr(consumer(c, "rate-limit")->gate.text, "KeyMismatch"));
    assert_true(condition(c, "Blocked"));
}

static void a_deleted_secret_keeps_what_was_remembered(void **state)
{
    struct cluster *c = start_idle(state);
    c->secrets[1] = (struct cr_world_secret){0};
    assert_no_acts(recorded_plan(c));
    write_status(c);
    set_material(c, 1, "rl-leaf-1", "ca-1");
    const struct cr_plan *p = recorded_plan(c);
    assert_no_acts(p);
    set_material(c, 1, "rl-leaf-2", "ca-2");
    assert_int_equal(recorded_plan(c)->restarts_len, 1);
}

static void an_absent_optional_workload_is_no_error(void **state)
{
    struct cluster *c = start_idle(state);
    c->consumers[1] = (struct cr_world_consumer){0};
    c->policy->consumers[1].optional = true;
    set_material(c, 1, "rl-leaf-2", "ca-2");
    const struct cr_plan *p = recorded_plan(c);
    assert_no_acts(p);
    assert_int_equal(consumer(c, "rate-limit")->state, CR_CONSUMER_ABSENT);
    assert_false(condition(c, "Degraded"));
    assert_true(condition(c, "Converged"));
}

static void an_absent_required_workload_is_degraded(void **state)
{
    struct cluster *c = start_idle(state);
    c->consumers[1] = (struct cr_world_consumer){0};
    assert_no_acts(recorded_plan(c));
    assert_true(condition(c, "Degraded"));
}

static void fields_that_are_not_acted_on_are_reported(void **state)
{
    struct cluster *c = *state;
    cr_strvec_add(&c->policy->unsupported, "spec.discover");
    plan(c);
    assert_false(condition(c, "Ready"));
    assert_non_null(strstr(cr_status_condition_get(&c->plan.status, "Ready")->message, "spec.discover"));
}

/* Static certificates, and a version that takes no curve but P-256. */
static void what_cannot_be_seen_is_neither_ready_nor_converged_and_not_forgotten(void **state)
{
    struct cluster *c = start_idle(state);
    plan(c);
    assert_true(condition(c, "Converged"));
    CR_CLEANUP(cr_policy_status) struct cr_policy_status after = {0};
    cr_plan_unseen(&c->plan.status, 7, "secrets: forbidden", c->now_ms, &after);
    assert_int_equal(after.observed_generation, 7);
    const struct cr_condition *ready = cr_status_condition_get(&after, "Ready");
    assert_false(ready->status);
    assert_string_equal(ready->reason, "CannotWatch");
    assert_string_equal(ready->message, "secrets: forbidden");
    assert_false(cr_status_condition_get(&after, "Converged")->status);
    assert_int_equal(after.secrets_len, c->plan.status.secrets_len);
    assert_true(after.secrets[0].has_settled);
}

static void envoy_is(struct cluster *c, const char *image)
{
    cr_autofree char *text = cr_asprintf(
        "containers: [{name: envoy, image: '%s', volumeMounts: [{name: certs, mountPath: /certs}]}]", image);
    CR_CLEANUP(cr_json) struct cr_json *wanted = yaml(text);
    struct cr_json *spec = cr_json_edit(cr_json_edit(cr_json_edit(c->workloads[0], "spec"), "template"), "spec");
    cr_json_set(spec, "containers", cr_json_copy(cr_json_get(wanted, "containers")));
}

static void nothing_is_restarted_into_a_key_that_its_software_does_not_take(void **state)
{
    struct cluster *c = start_idle(state);
    envoy_is(c, "envoyproxy/envoy:v1.32.0");
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    strcpy(c->material[0].key_type, "ECDSA-P384");
    const struct cr_plan *p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 0);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_BLOCKED);
    assert_int_equal(consumer(c, "envoy")->gate.hold, CR_HOLD_KEY_TYPE_NOT_ACCEPTED);
    assert_non_null(strstr(consumer(c, "envoy")->gate.text, "takes no leaf with a key of type ECDSA-P384"));
    assert_true(condition(c, "Blocked"));
    assert_true(condition(c, "Degraded"));
    assert_string_equal(cr_status_condition_get(&c->plan.status, "Degraded")->reason, "KeyTypeNotAccepted");
    assert_non_null(strstr(cr_status_condition_get(&c->plan.status, "Degraded")->message, "Secret envoy"));
    write_status(c);
    /* A version that takes it. */
    envoy_is(c, "envoyproxy/envoy:v1.33.0");
    p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 1);
    assert_false(condition(c, "Degraded"));
    /* Where the version is not known, it is not known either that it would not. */
    envoy_is(c, "envoyproxy/envoy:dev");
    p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 1);
    /* And a leaf that the old version takes. */
    envoy_is(c, "envoyproxy/envoy:v1.32.0");
    set_material(c, 0, "envoy-leaf-3", "ca-1");
    strcpy(c->material[0].key_type, "ECDSA-P256");
    p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 1);
    assert_false(condition(c, "Degraded"));
}

static void a_key_that_the_software_does_not_take_is_not_taken_up(void **state)
{
    struct cluster *c = start_idle(state);
    envoy_is(c, "envoyproxy/envoy:v1.32.0");
    c->policy->consumers[0].verify.endpoints_len = 0; /* all there is to go by is time */
    struct cr_json *containers = cr_json_edit(
        cr_json_edit(cr_json_edit(cr_json_edit(c->workloads[0], "spec"), "template"), "spec"), "containers");
    CR_CLEANUP(cr_json) struct cr_json *container = cr_json_take_first(containers);
    CR_CLEANUP(cr_json) struct cr_json *args = yaml("[--config-yaml, 'path: /sds/xds-certificate.json']");
    cr_json_set(container, "args", cr_json_copy(args));
    cr_json_add(containers, cr_json_copy(container));
    set_material(c, 0, "envoy-leaf-2", "ca-1");
    strcpy(c->material[0].key_type, "ECDSA-P384");
    const struct cr_plan *p = recorded_plan(c);
    assert_int_equal(consumer(c, "envoy")->decision, CR_DECISION_HOT_RELOAD);
    assert_int_equal(p->nudges_len, 0);
    write_status(c);
    c->now_ms += 3600 * 1000;
    p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 0);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_VERIFYING);
    assert_true(p->status.secrets[0].pending.set);
    assert_string_equal(cr_status_condition_get(&p->status, "Degraded")->reason, "KeyTypeNotAccepted");
    /* The one that it takes. */
    set_material(c, 0, "envoy-leaf-3", "ca-1");
    strcpy(c->material[0].key_type, "ECDSA-P256");
    recorded_plan(c);
    write_status(c);
    c->now_ms += 3600 * 1000;
    p = recorded_plan(c);
    assert_int_equal(consumer(c, "envoy")->state, CR_CONSUMER_CONVERGED);
    assert_false(p->status.secrets[0].pending.set);
}

static void a_leaf_that_expires_soon_is_reported(void **state)
{
    struct cluster *c = start_idle(state);
    plan(c);
    assert_false(condition(c, "ExpiringSoon"));
    assert_true(c->plan.requeue_after_ms > 0);
    c->now_ms = c->material[0].not_after_ms - 3600 * 1000;
    plan(c);
    assert_true(condition(c, "ExpiringSoon"));
    assert_string_equal(cr_status_condition_get(&c->plan.status, "ExpiringSoon")->reason, "LeafExpiresSoon");
    assert_in_range(c->plan.requeue_after_ms, 3600 * 1000, 3600 * 1000 + 2000);
    assert_string_equal(cr_policy_status_problem(&c->plan.status), "LeafExpiresSoon");
}

/* Nothing is written to a Secret at that moment. */
static void a_leaf_that_expires_in_place_is_reported_by_the_clock(void **state)
{
    struct cluster *c = start_idle(state);
    c->material[1].not_after_ms *= 2;
    plan(c);
    assert_true(condition(c, "Converged"));
    c->now_ms = c->material[0].not_after_ms + 1000;
    const struct cr_plan *p = plan(c);
    assert_string_equal(p->status.secrets[0].problem_reason, "Expired");
    assert_non_null(strstr(p->status.secrets[0].problem_message, "the certificate in tls.crt expired at "));
    assert_true(p->status.secrets[0].problem_not_after_ms == c->material[0].not_after_ms);
    assert_true(condition(c, "Degraded"));
    assert_string_equal(cr_status_condition_get(&p->status, "Degraded")->reason, "Expired");
    assert_false(condition(c, "Converged"));
    assert_string_equal(cr_status_condition_get(&p->status, "Converged")->reason, "Expired");
    assert_string_equal(cr_status_condition_get(&p->status, "ExpiringSoon")->reason, "LeafExpired");
    assert_int_equal(p->status.stage, CR_STAGE_HELD);
    write_status(c);
    /* And it is over when there is a new one that they have. */
    set_material(c, 0, "envoy-leaf-1", "ca-1");
    c->material[0].not_after_ms = c->now_ms + 1000LL * 3600 * 24 * 365;
    plan(c);
    assert_false(condition(c, "Degraded"));
}

/* Pods serve what they had: its end must stay in sight. */
static void what_cannot_be_used_does_not_hide_the_end_of_what_is_served(void **state)
{
    struct cluster *c = start_idle(state);
    plan(c);
    int64_t served_ms = c->plan.status.secrets[0].settled.not_after_ms;
    set_problem(c, 0, CR_MATERIAL_KEY_MISMATCH);
    c->secrets[0].refused_not_before_ms = c->now_ms;
    c->secrets[0].refused_not_after_ms = served_ms + 1000LL * 3600 * 24 * 365;
    const struct cr_plan *p = plan(c);
    assert_true(cr_policy_status_leaf_end_ms(&p->status, &p->status.secrets[0]) == served_ms);
    assert_false(condition(c, "Converged"));
    assert_string_equal(cr_policy_status_problem(&p->status), "KeyMismatch");
    assert_int_equal(p->status.stage, CR_STAGE_HELD);
    c->now_ms = served_ms - 3600 * 1000;
    plan(c);
    assert_string_equal(cr_status_condition_get(&c->plan.status, "ExpiringSoon")->reason, "LeafExpiresSoon");
}

static void a_ca_that_expires_soon_is_reported_and_then_that_it_has(void **state)
{
    struct cluster *c = start_idle(state);
    const int64_t day_ms = 24LL * 3600 * 1000;
    struct cr_ca *ca = &c->material[0].trust[0];
    ca->not_before_ms = c->now_ms - 300 * day_ms;
    ca->not_after_ms = c->now_ms + 31 * day_ms;
    plan(c);
    assert_false(condition(c, "ExpiringSoon"));
    c->now_ms += 2 * day_ms;
    plan(c);
    assert_string_equal(cr_status_condition_get(&c->plan.status, "ExpiringSoon")->reason, "TrustExpiresSoon");
    c->now_ms += 30 * day_ms;
    plan(c);
    assert_string_equal(cr_status_condition_get(&c->plan.status, "ExpiringSoon")->reason, "TrustExpired");
    assert_true(condition(c, "ExpiringSoon"));
}

/* It is neither restarted nor probed. */
static void a_pod_of_no_workload_that_is_older_than_the_change_is_reported(void **state)
{
    struct cluster *c = start_idle(state);
    const int64_t changed_ms = c->now_ms - c->now_ms % 1000 - 60 * 1000;
    char before[] = "bare";
    struct cr_other_pods unmanaged[2] = {{.pods = 1, .oldest = before, .created_ms = changed_ms - 1000}};
    struct cr_world world = {.policy = c->policy,
                             .status = &c->status,
                             .secrets = c->secrets,
                             .consumers = c->consumers,
                             .catalogue = c->catalogue,
                             .unmanaged = unmanaged,
                             .now_ms = c->now_ms};
    CR_CLEANUP(cr_plan) struct cr_plan unchanged = {0};
    cr_plan_make(&world, &unchanged);
    assert_true(cr_status_condition_get(&unchanged.status, "Converged")->status);

    cr_status_secret(&c->status, c->policy->secrets[0].name)->changed_ms = changed_ms;
    CR_CLEANUP(cr_plan) struct cr_plan degraded = {0};
    cr_plan_make(&world, &degraded);
    assert_false(cr_status_condition_get(&degraded.status, "Converged")->status);
    assert_string_equal(cr_status_condition_get(&degraded.status, "Converged")->reason, "UnmanagedPod");
    assert_string_equal(cr_policy_status_problem(&degraded.status), "UnmanagedPod");
    assert_int_equal(degraded.status.secrets[0].unknown_readers, CR_READERS_UNMANAGED_POD);
    assert_non_null(strstr(cr_status_condition_get(&degraded.status, "Degraded")->message, "Pod bare uses Secret"));
    assert_in_range(degraded.requeue_after_ms, 1, 60 * 1000);
    assert_int_equal(degraded.restarts_len, 0);

    unmanaged[0].created_ms = changed_ms + 96 * 1000;
    CR_CLEANUP(cr_plan) struct cr_plan younger = {0};
    cr_plan_make(&world, &younger);
    assert_true(cr_status_condition_get(&younger.status, "Converged")->status);
    assert_int_equal(younger.status.secrets[0].unknown_readers, CR_READERS_KNOWN);
    unmanaged[0].created_ms = changed_ms - 1000;

    /* Something else is worse, and the pod is known all the same. */
    set_problem(c, 1, CR_MATERIAL_KEY_MISMATCH);
    world.beyond.consumers = 1;
    CR_CLEANUP(cr_plan) struct cr_plan worse = {0};
    cr_plan_make(&world, &worse);
    assert_string_equal(cr_status_condition_get(&worse.status, "Converged")->reason, "KeyMismatch");
    assert_int_equal(worse.status.secrets[0].unknown_readers, CR_READERS_UNMANAGED_POD);
    assert_int_equal(worse.status.secrets[1].unknown_readers, CR_READERS_TOO_MANY);
    world.beyond.unseen_pods = true;
    CR_CLEANUP(cr_plan) struct cr_plan unseen = {0};
    cr_plan_make(&world, &unseen);
    assert_int_equal(unseen.status.secrets[1].unknown_readers, CR_READERS_CANNOT_DISCOVER);
}

/* A Helm upgrade gave the workload another Secret and came to nothing: found by its Secrets, it is no consumer now, and
 * its pods run on. */
static void a_pod_that_no_consumer_stands_for_keeps_a_change_from_settling(void **state)
{
    struct cluster *c = start_idle(state);
    const struct cr_world_consumer found = c->consumers[1];
    char name[] = "rl-0";
    struct cr_other_pods uncovered[2] = {{0}, {.pods = PODS, .oldest = name, .created_ms = START - 60000}};
    c->uncovered = uncovered;
    c->policy->consumers[1].optional = true;
    c->consumers[1] = (struct cr_world_consumer){0};
    recorded_plan(c);
    assert_true(condition(c, "Converged")); /* nothing has changed since first sight */
    write_status(c);
    set_material(c, 1, "rl-leaf-2", "ca-2");
    assert_no_acts(recorded_plan(c));
    const struct cr_secret_status *secret = cr_status_secret(&c->plan.status, "rate-limit");
    assert_true(secret->pending.set);
    assert_int_equal(secret->unknown_readers, CR_READERS_UNCOVERED_POD);
    assert_false(condition(c, "Converged"));
    assert_false(condition(c, "Degraded"));
    assert_non_null(strstr(cr_status_condition_get(&c->plan.status, "Converged")->message, "Pod rl-0"));
    write_status(c);

    c->now_ms += 600 * 1000;
    c->uncovered = NULL;
    c->consumers[1] = found; /* rolled back: the same pods */
    assert_int_equal(recorded_plan(c)->restarts_len, 1);
}

static void a_change_settles_once_those_pods_have_ended_or_are_younger(void **state)
{
    struct cluster *c = start_idle(state);
    char name[] = "rl-0";
    struct cr_other_pods uncovered[2] = {{0}, {.pods = 1, .oldest = name, .created_ms = START - 60000}};
    c->uncovered = uncovered;
    c->policy->consumers[1].optional = true;
    c->consumers[1] = (struct cr_world_consumer){0};
    set_material(c, 1, "rl-leaf-2", "ca-2");
    recorded_plan(c);
    write_status(c);
    uncovered[1].created_ms = c->now_ms + 96 * 1000;
    plan(c);
    const struct cr_secret_status *secret = cr_status_secret(&c->plan.status, "rate-limit");
    assert_false(secret->pending.set);
    assert_int_equal(secret->unknown_readers, CR_READERS_KNOWN);
    assert_true(condition(c, "Converged"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(first_sight_is_recorded_and_nothing_is_done),
        T(the_same_material_again_writes_nothing),
        T(a_change_is_recorded_before_anything_is_done),
        T(a_renewed_leaf_nudges_and_probes_but_restarts_nothing),
        T(a_pod_is_nudged_again_only_after_a_pause),
        T(pods_are_nudged_once_their_trust_domain_has_the_version_on_record),
        T(an_old_leaf_past_the_deadline_falls_back_to_one_restart),
        T(what_cannot_be_seen_never_causes_a_restart),
        T(all_endpoints_of_a_secret_must_show_the_new_leaf),
        T(an_endpoint_of_another_secret_holds_up_nothing),
        T(any_leaf_of_another_secret_is_that_ones),
        T(one_old_endpoint_past_the_deadline_falls_back),
        T(a_refused_client_is_reported_and_never_a_reason_to_restart),
        T(what_costs_much_is_asked_less_often),
        T(a_changed_ca_restarts_what_reads_it_once),
        T(trust_has_not_arrived_while_a_pod_that_was_replaced_runs),
        T(a_restart_is_asked_for_once),
        T(a_finished_rollout_with_the_new_leaf_converges),
        T(an_old_pod_that_serves_the_new_leaf_is_not_done),
        T(a_new_pod_with_the_old_leaf_is_evicted_one_at_a_time),
        T(a_new_pod_with_the_old_leaf_is_evicted_once_the_others_are_ready),
        T(the_only_pod_with_the_old_leaf_stays_unless_a_gap_is_allowed),
        T(a_new_pod_with_the_old_leaf_stays_while_another_of_its_secrets_is_broken),
        T(a_lost_status_does_not_lose_a_change_since_the_last_restart),
        T(a_superseded_change_restarts_for_the_newest_only),
        T(suspended_does_nothing_and_says_so),
        T(switched_off_at_any_point_it_stands_still_and_then_goes_on),
        T(plan_mode_reports_the_decision_and_touches_nothing),
        T(plan_mode_says_each_restart_once),
        T(method_never_blocks_the_restart),
        T(changes_within_the_coalescing_time_wait),
        T(a_restart_waits_until_old_pods_show_that_their_kubelets_are_fresh),
        T(a_slow_reload_proves_nothing),
        T(one_pod_counts_for_all_of_its_node),
        T(a_stale_kubelet_is_nudged_again_and_waited_for_so_long_only),
        T(no_wait_for_what_no_pod_can_show),
        T(no_wait_for_pods_that_are_not_looked_at),
        T(no_wait_when_only_trust_changed),
        T(a_clock_set_back_does_not_stop_the_evidence),
        T(a_paused_deployment_waits),
        T(only_max_concurrent_restarts_run_at_once),
        T(who_comes_after_another_waits_until_that_one_has_finished),
        T(no_wait_for_a_consumer_with_nothing_to_do),
        T(no_wait_for_a_consumer_that_is_not_there),
        T(who_comes_after_what_is_not_acted_on_is_held),
        T(a_failed_rollout_stops_further_restarts),
        T(an_old_sighting_is_looked_at_again_before_a_fall_back),
        T(a_gated_fall_back_goes_on_looking),
        T(a_clock_set_back_makes_no_storm),
        T(a_leaf_of_one_secret_settles_no_other),
        T(pods_of_another_template_are_not_known_to_reload),
        T(pods_of_another_template_are_verified_by_what_they_show),
        T(a_new_chain_under_the_same_leaf_is_not_verified_by_that_leaf),
        T(missing_pods_are_no_evidence),
        T(a_restart_that_was_undone_is_not_repeated),
        T(pods_that_others_renewed_need_no_restart),
        T(a_change_taken_back_evicts_no_pod),
        T(who_began_before_a_change_was_taken_back_is_restarted),
        T(who_reloads_is_looked_at_when_a_change_is_taken_back),
        T(who_reads_once_beside_what_reloads_is_not_restarted_for_what_it_began_with),
        T(what_a_workload_was_restarted_for_shortens_no_wait),
        T(a_workload_created_about_when_the_secret_changed_is_restarted),
        T(a_workload_created_after_the_change_is_left_alone),
        T(a_workload_that_is_gone_for_a_moment_is_restarted),
        T(an_optional_workload_that_stays_away_is_waited_for_no_longer_than_kubelets),
        T(an_annotation_counts_for_its_own_workload_only),
        T(what_was_refused_is_tried_again_after_its_pause),
        T(a_workload_that_waits_for_a_person_holds_up_no_other),
        T(material_that_vanishes_is_a_problem_not_a_change),
        T(bad_material_touches_nothing_and_is_said_once),
        T(a_secret_that_breaks_in_the_middle_holds_the_restart),
        T(a_secret_that_breaks_in_a_rollout_does_not_make_it_converged),
        T(a_deleted_secret_keeps_what_was_remembered),
        T(an_absent_optional_workload_is_no_error),
        T(an_absent_required_workload_is_degraded),
        T(a_pod_that_no_consumer_stands_for_keeps_a_change_from_settling),
        T(a_change_settles_once_those_pods_have_ended_or_are_younger),
        T(fields_that_are_not_acted_on_are_reported),
        T(what_cannot_be_seen_is_neither_ready_nor_converged_and_not_forgotten),
        T(nothing_is_restarted_into_a_key_that_its_software_does_not_take),
        T(a_key_that_the_software_does_not_take_is_not_taken_up),
        T(a_leaf_that_expires_soon_is_reported),
        T(a_pod_of_no_workload_that_is_older_than_the_change_is_reported),
        T(a_leaf_that_expires_in_place_is_reported_by_the_clock),
        T(what_cannot_be_used_does_not_hide_the_end_of_what_is_served),
        T(a_ca_that_expires_soon_is_reported_and_then_that_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
