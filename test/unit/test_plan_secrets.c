/* What a plan makes of opaque material and of immutable Secrets: one Secret, one consumer, over time. */
#include "policy/rules/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "evidence/diff.h"
#include "support/recorded.h"
#include "support/yamltext.h"

enum { START = 1000 * 1000 * 1000 };

static const char policy_text[] =
    "metadata: {name: demo, namespace: ns, uid: policy-uid, resourceVersion: '1', generation: 3}\n"
    "spec:\n"
    "  secrets: [{name: keys}]\n"
    "  restart: {coalesce: 0s}\n"
    "  consumers: [{name: app, targetRef: {kind: Deployment, name: app}}]\n";

/* It picks the HMAC key, and the certificate. */
static const char workload_text[] =
    "metadata: {name: app, namespace: ns, uid: app-uid, resourceVersion: '7', generation: 1}\n"
    "spec:\n"
    "  replicas: 1\n"
    "  template:\n"
    "    metadata: {annotations: {}}\n"
    "    spec:\n"
    "      containers: [{name: app, image: 'acme/app:1', volumeMounts: [{name: v, mountPath: /keys}]}]\n"
    "      volumes: [{name: v, secret: {secretName: keys, items: [{key: hmac, path: hmac}, {key: tls.crt, path: "
    "c}]}}]\n"
    "status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}\n";

struct cluster {
    struct cr_policy *policy;
    struct cr_catalogue *catalogue;
    struct cr_policy_status status;
    struct cr_material material;
    struct cr_world_secret secret;
    struct cr_json *workload;
    struct cr_json *pod_json;
    struct cr_world_pod pod;
    struct cr_world_consumer consumer;
    int64_t now_ms;
    struct cr_plan plan;
};

static void digest(char out[CR_SHA256_HEX], const char *word)
{
    cr_sha256_hex(word, strlen(word), out);
}

static void add_entry(struct cr_material *m, const char *name, const char *content)
{
    char hex[CR_SHA256_HEX];
    digest(hex, content);
    cr_autofree char *element = cr_asprintf("%s=%.16s", name, hex);
    cr_strvec_add(&m->opaque_keys, element);
}

/* What the Secret holds: words for its leaf and for two opaque entries (NULL: not there), digested by key 1 or 2, or by
 * none (0). */
static void put(struct cluster *c, const char *leaf, const char *hmac, const char *keystore, int key)
{
    struct cr_material *m = &c->material;
    cr_material_dispose(m);
    *m = (struct cr_material){
        .has_leaf = true, .not_before_ms = START - 1000LL * 3600, .not_after_ms = START + 1000LL * 3600 * 24 * 365};
    digest(m->leaf, leaf);
    digest(m->chain, leaf);
    digest(m->key, leaf);
    digest(m->issuer, "ca");
    if (hmac)
        add_entry(m, "hmac", hmac);
    if (keystore)
        add_entry(m, "keystore.p12", keystore);
    cr_autofree char *all = cr_asprintf("%d/%s/%s", key, cr_or_empty(hmac), cr_or_empty(keystore));
    char hex[CR_SHA256_HEX];
    digest(hex, all);
    if (!key)
        snprintf(m->opaque, sizeof m->opaque, CR_OPAQUE_UNREAD);
    else if (hmac || keystore)
        snprintf(m->opaque, sizeof m->opaque, "0000000%d:%s", key, hex);
    bool immutable = c->secret.immutable;
    c->secret =
        (struct cr_world_secret){.found = true, .resource_version = leaf, .material = m, .immutable = immutable};
}

static void add_pod(struct cluster *c)
{
    cr_json_free(c->pod_json);
    c->pod_json = cr_json_new_object();
    cr_json_set(cr_json_object_in(c->pod_json, "metadata"), "annotations",
                cr_json_copy(cr_json_at(c->workload, "spec", "template", "metadata", "annotations")));
    c->pod = (struct cr_world_pod){.pod = c->pod_json,
                                   .name = "pod",
                                   .uid = "pod",
                                   .ip = "10.0.0.1",
                                   .ready = true,
                                   .started_ms = c->now_ms,
                                   .created_ms = c->now_ms};
}

static const struct cr_plan *plan(struct cluster *c)
{
    cr_plan_dispose(&c->plan);
    struct cr_world world = {.policy = c->policy,
                             .status = &c->status,
                             .secrets = &c->secret,
                             .consumers = &c->consumer,
                             .catalogue = c->catalogue,
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

static void begin_restart(struct cluster *c)
{
    const struct cr_plan *p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 1);
    struct cr_json *metadata = cr_json_edit(cr_json_edit(cr_json_edit(c->workload, "spec"), "template"), "metadata");
    struct cr_json *annotations = cr_json_object_in(metadata, "annotations");
    for (const struct cr_json *a = cr_json_first(p->restarts[0].annotations); a; a = cr_json_next(a))
        cr_json_set_string(annotations, cr_json_key(a), cr_json_string(a));
    cr_json_set_int(cr_json_edit(c->workload, "metadata"), "generation", 2);
    /* That it was done is put on record. */
    recorded_plan(c);
    write_status(c);
}

static void finish_restart(struct cluster *c)
{
    cr_json_set_int(cr_json_edit(c->workload, "status"), "observedGeneration", 2);
    c->now_ms += 10 * 1000;
    add_pod(c);
    recorded_plan(c);
    write_status(c);
}

static void restart(struct cluster *c)
{
    begin_restart(c);
    finish_restart(c);
}

static void settle(struct cluster *c)
{
    c->now_ms += 200 * 1000;
    recorded_plan(c);
    write_status(c);
    assert_false(c->status.secrets[0].pending.set);
}

static int setup(void **state)
{
    struct cluster *c = cr_new(struct cluster);
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *policy = test_yaml(policy_text);
    c->policy = cr_policy_decode(policy, &err);
    c->catalogue = cr_catalogue_builtin(&err);
    if (!c->policy || !c->catalogue)
        fail_msg("%s", err.text);
    c->now_ms = START - 60 * 1000;
    c->workload = test_yaml(workload_text);
    c->consumer = (struct cr_world_consumer){.found = true, .workload = c->workload, .pods = &c->pod, .pods_len = 1};
    add_pod(c);
    put(c, "leaf", "h1", "p1", 1);
    recorded_plan(c);
    write_status(c);
    c->now_ms = START;
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
    cr_material_dispose(&c->material);
    cr_json_free(c->workload);
    cr_json_free(c->pod_json);
    free(c);
    return 0;
}

static bool is_ready(struct cluster *c)
{
    return cr_status_condition_get(&c->plan.status, "Ready")->status;
}

static const char *message(struct cluster *c, const char *type)
{
    return cr_status_condition_get(&c->plan.status, type)->message;
}

/* --- changes --- */

static void a_changed_key_restarts_who_takes_it_once(void **state)
{
    struct cluster *c = *state;
    put(c, "leaf", "h2", "p1", 1);
    plan(c);
    assert_true(c->plan.record_first);
    assert_int_equal(c->plan.status.secrets[0].pending.changes, CR_CHANGE_OPAQUE);
    assert_non_null(strstr(c->plan.events[0].message, "opaque material changed (hmac)"));
    restart(c);
    assert_int_equal(recorded_plan(c)->restarts_len, 0);
    settle(c);
    assert_int_equal(recorded_plan(c)->restarts_len, 0);
}

static void a_key_that_no_consumer_takes_concerns_none(void **state)
{
    struct cluster *c = *state;
    put(c, "leaf", "h1", "p2", 1);
    const struct cr_plan *p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 0);
    assert_false(p->status.secrets[0].pending.set); /* nothing to wait for */
}

static void what_overtakes_a_change_of_one_key_keeps_it(void **state)
{
    struct cluster *c = *state;
    put(c, "leaf", "h2", "p1", 1);
    c->consumer.found = false; /* nothing can be done yet */
    plan(c);
    write_status(c);
    c->consumer.found = true;
    put(c, "leaf", "h2", "p2", 1);
    restart(c);
    settle(c);
}

/* Too many entries to be distinguished, for a while: it may have been any, whatever is known later. */
static void what_was_unknown_once_stays_so_until_the_end(void **state)
{
    static const char *const keystores[] = {"p2", "p3", "p4"};
    struct cluster *c = *state;
    c->consumer.found = false; /* nothing can be done yet */
    for (size_t i = 0; i < cr_array_len(keystores); i++) {
        put(c, "leaf", i == 0 ? "h2" : "h1", keystores[i], 1);
        if (i == 0)
            cr_strvec_dispose(&c->material.opaque_keys);
        plan(c);
        write_status(c);
        assert_int_equal(c->status.secrets[0].pending.changes, CR_CHANGE_OPAQUE);
        assert_int_equal(c->status.secrets[0].pending.opaque_keys.len, 0);
    }
    c->consumer.found = true;
    assert_int_equal(recorded_plan(c)->restarts_len, 1);
}

static void a_leaf_that_came_back_and_went_again_counts_as_old(void **state)
{
    static const char *const leaves[] = {"leaf-2", "leaf", "leaf-3"};
    struct cluster *c = *state;
    for (size_t i = 0; i < cr_array_len(leaves); i++) {
        put(c, leaves[i], "h1", "p1", 1);
        plan(c);
        write_status(c);
    }
    const struct cr_pending_change *pending = &c->status.secrets[0].pending;
    char first[CR_SHA256_HEX];
    char second[CR_SHA256_HEX];
    digest(first, "leaf");
    digest(second, "leaf-2");
    assert_true(cr_strvec_has(&pending->old_leaves, first) && cr_strvec_has(&pending->old_leaves, second));
    assert_int_equal(pending->old_leaves.len, 2);
}

/* --- keys of digests --- */

static void another_digest_key_is_first_sight_not_a_change(void **state)
{
    struct cluster *c = *state;
    put(c, "leaf", "h1", "p1", 2);
    plan(c);
    assert_true(c->plan.record_first);
    assert_false(c->plan.status.secrets[0].pending.set);
    assert_int_equal(recorded_plan(c)->restarts_len, 0);
    /* From then on by the new one. */
    put(c, "leaf", "h2", "p1", 2);
    restart(c);
    settle(c);
}

/* What is lost: a change of the content at the very time when the key was replaced. */
static void a_change_that_comes_with_another_digest_key_is_not_seen(void **state)
{
    struct cluster *c = *state;
    put(c, "leaf", "h2", "p1", 2);
    assert_int_equal(recorded_plan(c)->restarts_len, 0);
}

static void a_key_replaced_in_the_middle_does_not_restart_twice(void **state)
{
    struct cluster *c = *state;
    put(c, "leaf", "h2", "p1", 1);
    begin_restart(c);
    put(c, "leaf", "h2", "p1", 2);
    assert_int_equal(recorded_plan(c)->restarts_len, 0);
    assert_true(c->plan.status.secrets[0].pending.set);
    finish_restart(c);
    settle(c);
    assert_int_equal(recorded_plan(c)->restarts_len, 0);
}

static void a_key_replaced_before_the_restart_does_not_lose_it(void **state)
{
    struct cluster *c = *state;
    put(c, "leaf", "h2", "p1", 1);
    recorded_plan(c);
    put(c, "leaf", "h2", "p1", 2);
    restart(c);
    settle(c);
}

static void a_key_replaced_before_another_change_does_not_lose_the_first(void **state)
{
    struct cluster *c = *state;
    put(c, "leaf", "h2", "p1", 1);
    c->consumer.found = false; /* nothing can be done yet */
    plan(c);
    write_status(c);
    c->consumer.found = true;
    put(c, "leaf", "h2", "p1", 2);
    plan(c);
    write_status(c);
    put(c, "leaf-2", "h2", "p1", 2);
    plan(c);
    assert_int_equal(c->plan.status.secrets[0].pending.changes,
                     CR_CHANGE_LEAF_RENEWED | CR_CHANGE_KEY_CHANGED | CR_CHANGE_OPAQUE);
    restart(c);
    settle(c);
}

/* The template carries digests by key 1 of an earlier restart; then key and status are new, and a leaf is renewed. */
static void an_annotation_by_a_lost_key_forces_nothing(void **state)
{
    struct cluster *c = *state;
    put(c, "leaf", "h2", "p1", 1);
    restart(c);
    settle(c);
    cr_policy_status_dispose(&c->status);
    put(c, "leaf", "h3", "p1", 2);
    const struct cr_plan *p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 0);
    assert_false(p->status.secrets[0].pending.set);
}

static void an_annotation_by_the_same_key_is_a_memory(void **state)
{
    struct cluster *c = *state;
    put(c, "leaf", "h2", "p1", 1);
    restart(c);
    settle(c);
    cr_policy_status_dispose(&c->status);
    put(c, "leaf", "h3", "p1", 1);
    assert_int_equal(recorded_plan(c)->restarts_len, 1);
}

/* One template with a digest by the present key, behind it one by a lost key: the second says nothing of the first. */
static void one_annotation_by_a_lost_key_does_not_silence_another(void **state)
{
    struct cluster *c = *state;
    char name[CR_ANNOTATION_NAME];
    cr_restart_annotation_name("keys", name);
    CR_CLEANUP(cr_policy) struct cr_policy *two = NULL;
    CR_CLEANUP(cr_json)
    struct cr_json *policy = test_yaml("metadata: {name: demo, namespace: ns, uid: policy-uid, generation: 3}\n"
                                       "spec: {secrets: [{name: keys}], restart: {coalesce: 0s}, consumers: [\n"
                                       "  {name: app, targetRef: {kind: Deployment, name: app}},\n"
                                       "  {name: other, targetRef: {kind: Deployment, name: other}}]}\n");
    two = cr_policy_decode(policy, NULL);
    assert_non_null(two);
    struct cr_world_consumer consumers[2] = {c->consumer, c->consumer};
    struct cr_json *workloads[2];
    for (int i = 0; i < 2; i++) {
        put(c, "leaf", "h1", "p1", i + 1);
        workloads[i] = cr_json_copy(c->workload);
        cr_autofree char *value = cr_restart_annotation_merge(NULL, &c->material, CR_CLASS_OPAQUE, NULL);
        struct cr_json *metadata =
            cr_json_edit(cr_json_edit(cr_json_edit(workloads[i], "spec"), "template"), "metadata");
        cr_json_set_string(cr_json_object_in(metadata, "annotations"), name, value);
        consumers[i].workload = workloads[i];
    }
    put(c, "leaf", "h2", "p1", 1);
    const struct cr_policy_status nothing = {0};
    struct cr_world world = {.policy = two,
                             .status = &nothing,
                             .secrets = &c->secret,
                             .consumers = consumers,
                             .catalogue = c->catalogue,
                             .now_ms = c->now_ms};
    cr_plan_dispose(&c->plan);
    cr_plan_make(&world, &c->plan);
    assert_int_equal(c->plan.status.secrets[0].pending.changes, CR_CHANGE_OPAQUE);
    cr_json_free(workloads[0]);
    cr_json_free(workloads[1]);
}

/* --- without a key --- */

static void what_cannot_be_digested_is_reported_and_nothing_is_forgotten(void **state)
{
    struct cluster *c = *state;
    put(c, "leaf", "h1", "p1", 0);
    assert_false(plan(c)->record_first);
    assert_true(is_ready(c)); /* it may pass: only asked again */
    assert_true(c->plan.requeue_after_ms > 0);
    c->secret.opaque_problem = "nobody gave us a key";
    assert_false(plan(c)->record_first);
    assert_false(is_ready(c));
    if (!strstr(message(c, "Ready"), "because nobody gave us a key: Secret keys (consumer app)"))
        fail_msg("%s", message(c, "Ready"));
    /* A leaf is renewed meanwhile; what was known of the opaque material stays known. */
    put(c, "leaf-2", "h1", "p1", 0);
    restart(c);
    settle(c);
    put(c, "leaf-2", "h2", "p1", 1);
    assert_true(plan(c)->record_first);
    assert_true(c->plan.status.secrets[0].pending.changes & CR_CHANGE_OPAQUE);
}

static void no_report_for_who_takes_no_opaque_material(void **state)
{
    struct cluster *c = *state;
    struct cr_json *spec = cr_json_edit(cr_json_edit(cr_json_edit(c->workload, "spec"), "template"), "spec");
    cr_json_set(spec, "volumes",
                test_yaml("[{name: v, secret: {secretName: keys, items: [{key: tls.crt, path: c}]}}]"));
    put(c, "leaf", "h1", "p1", 0);
    c->secret.opaque_problem = "nobody gave us a key";
    plan(c);
    assert_true(is_ready(c));
}

/* --- what is gone --- */

static void an_entry_that_a_consumer_takes_is_missed(void **state)
{
    struct cluster *c = *state;
    put(c, "leaf-2", NULL, "p2", 1);
    const struct cr_plan *p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 0);
    assert_string_equal(cr_or_empty(p->status.secrets[0].problem_reason), "IncompleteMaterial");
    assert_non_null(strstr(p->status.secrets[0].problem_message, "hmac, which consumer app takes, is gone"));
    put(c, "leaf-2", "h1", "p2", 1);
    assert_int_equal(recorded_plan(c)->restarts_len, 1);
}

/* keys.opaque names other keys than before: digests by another derived key, and the entry is not looked at any more. */
static void an_entry_that_the_policy_no_longer_names_is_not_missed(void **state)
{
    struct cluster *c = *state;
    put(c, "leaf", NULL, "p1", 2);
    const struct cr_plan *p = recorded_plan(c);
    assert_null(p->status.secrets[0].problem_reason);
    assert_int_equal(p->restarts_len, 0);
    /* Looked at again, it is first sight again. */
    write_status(c);
    put(c, "leaf", "h1", "p1", 1);
    assert_int_equal(recorded_plan(c)->restarts_len, 0);
}

static void without_a_key_a_missed_entry_is_missed_by_its_name(void **state)
{
    struct cluster *c = *state;
    put(c, "leaf-2", NULL, "p1", 0);
    const struct cr_plan *p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 0);
    assert_string_equal(cr_or_empty(p->status.secrets[0].problem_reason), "IncompleteMaterial");
}

static void an_entry_that_no_consumer_takes_may_go(void **state)
{
    struct cluster *c = *state;
    put(c, "leaf", "h1", NULL, 1);
    const struct cr_plan *p = recorded_plan(c);
    assert_null(p->status.secrets[0].problem_reason);
    assert_int_equal(p->restarts_len, 0);
}

/* --- immutable Secrets --- */

static void a_replaced_immutable_secret_asks_for_a_person(void **state)
{
    struct cluster *c = *state;
    c->secret.immutable = true;
    assert_true(plan(c)->record_first); /* it became so: on record before it can be replaced */
    write_status(c);
    assert_false(plan(c)->record_first);

    put(c, "leaf-2", "h1", "p1", 1);
    const struct cr_plan *p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 0);
    const struct cr_consumer_status *app = cr_status_consumer(&c->plan.status, "app");
    assert_int_equal(app->decision, CR_DECISION_RESTART);
    assert_int_equal(app->state, CR_CONSUMER_BLOCKED);
    assert_int_equal(app->gate.hold, CR_HOLD_IMMUTABLE_SECRET);
    assert_non_null(strstr(app->gate.text, "Secret keys was immutable and was replaced"));
    assert_non_null(strstr(app->reason, "which was immutable"));
    /* A later pod proves nothing. */
    c->now_ms += 600 * 1000;
    add_pod(c);
    p = recorded_plan(c);
    assert_true(p->status.secrets[0].pending.set);
    assert_int_equal(cr_status_consumer(&c->plan.status, "app")->pods.unknown, 1);
    /* The template takes a Secret of another name instead. */
    struct cr_json *spec = cr_json_edit(cr_json_edit(cr_json_edit(c->workload, "spec"), "template"), "spec");
    cr_json_set(spec, "volumes", test_yaml("[{name: v, secret: {secretName: keys-2}}]"));
    p = recorded_plan(c);
    assert_false(p->status.secrets[0].pending.set);
}

/* Kubelets have watched it until then. */
static void a_secret_that_becomes_immutable_with_its_change_is_like_any(void **state)
{
    struct cluster *c = *state;
    c->secret.immutable = true;
    put(c, "leaf-2", "h1", "p1", 1);
    restart(c);
    settle(c);
    assert_true(c->status.secrets[0].immutable);
}

/* --- trust --- */

static void an_expired_ca_among_others_is_reported_and_nothing_refused(void **state)
{
    struct cluster *c = *state;
    plan(c);
    assert_false(cr_status_condition_get(&c->plan.status, "ExpiringSoon")->status);
    c->material.trust = cr_calloc(2, sizeof *c->material.trust);
    c->material.trust_len = 2;
    c->material.trust[0].not_after_ms = START - 1000;
    c->material.trust[1].not_after_ms = START + 1000LL * 3600 * 24 * 365;
    digest(c->material.trust[0].fingerprint, "old");
    digest(c->material.trust[1].fingerprint, "new");
    const struct cr_plan *p = recorded_plan(c);
    assert_null(p->status.secrets[0].problem_reason);
    assert_string_equal(cr_status_condition_get(&c->plan.status, "ExpiringSoon")->reason, "TrustExpired");
    assert_string_equal(message(c, "ExpiringSoon"), "1 of the 2 CAs in Secret keys has expired");
}

/* --- certroll's own workload --- */

/* It restarts itself like any other: the change is on record before, the restart in the template, and the process that
 * comes next, with nothing in memory, does neither again. */
static void a_process_that_restarted_itself_is_succeeded_by_one_that_goes_on(void **state)
{
    struct cluster *c = *state;
    put(c, "leaf", "h2", "p1", 1);
    assert_true(plan(c)->record_first);
    assert_int_equal(c->plan.restarts_len, 0);
    write_status(c);
    /* The patch of its own template was its last act: its status was not written after it. */
    const struct cr_plan *p = plan(c);
    assert_int_equal(p->restarts_len, 1);
    struct cr_json *metadata = cr_json_edit(cr_json_edit(cr_json_edit(c->workload, "spec"), "template"), "metadata");
    for (const struct cr_json *a = cr_json_first(p->restarts[0].annotations); a; a = cr_json_next(a))
        cr_json_set_string(cr_json_object_in(metadata, "annotations"), cr_json_key(a), cr_json_string(a));
    cr_json_set_int(cr_json_edit(c->workload, "metadata"), "generation", 2);
    p = recorded_plan(c);
    assert_int_equal(p->restarts_len, 0);
    assert_int_equal(cr_status_consumer(&c->plan.status, "app")->state, CR_CONSUMER_RESTARTING);
    finish_restart(c);
    settle(c);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_changed_key_restarts_who_takes_it_once),
        TEST(a_key_that_no_consumer_takes_concerns_none),
        TEST(what_overtakes_a_change_of_one_key_keeps_it),
        TEST(what_was_unknown_once_stays_so_until_the_end),
        TEST(a_leaf_that_came_back_and_went_again_counts_as_old),
        TEST(another_digest_key_is_first_sight_not_a_change),
        TEST(a_change_that_comes_with_another_digest_key_is_not_seen),
        TEST(a_key_replaced_in_the_middle_does_not_restart_twice),
        TEST(a_key_replaced_before_the_restart_does_not_lose_it),
        TEST(a_key_replaced_before_another_change_does_not_lose_the_first),
        TEST(an_annotation_by_a_lost_key_forces_nothing),
        TEST(an_annotation_by_the_same_key_is_a_memory),
        TEST(one_annotation_by_a_lost_key_does_not_silence_another),
        TEST(what_cannot_be_digested_is_reported_and_nothing_is_forgotten),
        TEST(no_report_for_who_takes_no_opaque_material),
        TEST(an_entry_that_a_consumer_takes_is_missed),
        TEST(an_entry_that_the_policy_no_longer_names_is_not_missed),
        TEST(without_a_key_a_missed_entry_is_missed_by_its_name),
        TEST(an_entry_that_no_consumer_takes_may_go),
        TEST(a_replaced_immutable_secret_asks_for_a_person),
        TEST(an_expired_ca_among_others_is_reported_and_nothing_refused),
        TEST(a_process_that_restarted_itself_is_succeeded_by_one_that_goes_on),
        TEST(a_secret_that_becomes_immutable_with_its_change_is_like_any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
