/* What the plan has to know beside a single policy with pods: pairs of another policy, what watches Secrets by the API,
 * unknown software, consumers that get other names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "codec/yaml.h"
#include "evidence/diff.h"
#include "policy/rules/plan.h"
#include "support/recorded.h"

enum { START = 1000 * 1000 * 1000, SECRETS = 1, CONSUMERS = 2 };

static const char policy_text[] =
    "metadata: {name: younger, namespace: ns, uid: u, resourceVersion: '1', generation: 1}\n"
    "spec:\n"
    "  secrets: [{name: s}]\n"
    "  restart: {coalesce: 0s}\n"
    "  consumers:\n"
    "  - {name: web, targetRef: {kind: Deployment, name: web}}\n"
    "  - {name: front, targetRef: {kind: Ingress, name: front}}\n";

/* It reads the Secret once, whatever it runs. */
static const char by_environment[] = "        envFrom: [{secretRef: {name: s}}]\n";
static const char by_volume[] = "        volumeMounts: [{name: certs, mountPath: /certs}]\n"
                                "      volumes: [{name: certs, secret: {secretName: s}}]\n";

static const char ingress_text[] =
    "metadata: {name: front, namespace: ns, uid: i, resourceVersion: '1', generation: 1}\n"
    "spec: {tls: [{secretName: s}]}\n";

struct stage {
    struct cr_policy *policy;
    struct cr_policy_status status;
    struct cr_catalogue *catalogue;
    struct cr_material material;
    struct cr_world_secret secret;
    struct cr_json *objects[CONSUMERS];
    struct cr_json *pod;
    struct cr_world_pod pods[1];
    struct cr_world_other others[SECRETS];
    struct cr_policy_status older; /* what the other policy remembers */
    struct cr_world_consumer consumers[CONSUMERS];
    struct cr_world_beyond beyond;
    int64_t now_ms;
    struct cr_plan plan;
};

static struct cr_json *yaml(const char *text)
{
    struct cr_error err = {0};
    struct cr_json *json = cr_yaml_parse(text, strlen(text), &err);
    if (!json)
        fail_msg("%s", err.text);
    return json;
}

static void set_leaf(struct stage *s, const char *word)
{
    struct cr_material *m = &s->material;
    cr_material_dispose(m);
    *m = (struct cr_material){.has_leaf = true, .not_before_ms = START - 1000, .not_after_ms = INT64_C(100) * START};
    cr_sha256_hex(word, strlen(word), m->leaf);
    memcpy(m->chain, m->leaf, sizeof m->chain);
    memcpy(m->key, m->leaf, sizeof m->key);
    s->secret = (struct cr_world_secret){.found = true, .resource_version = word, .material = m};
}

static void set_template(struct stage *s, const char *usage)
{
    cr_autofree char *text =
        cr_asprintf("metadata: {name: web, namespace: ns, uid: w, resourceVersion: '1', generation: 1}\n"
                    "spec:\n"
                    "  replicas: 1\n"
                    "  template:\n"
                    "    metadata: {annotations: {}}\n"
                    "    spec:\n"
                    "      containers:\n"
                    "      - name: app\n"
                    "        image: acme/app:1\n"
                    "%s"
                    "status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, "
                    "availableReplicas: 1}\n",
                    usage);
    cr_json_free(s->objects[0]);
    s->objects[0] = yaml(text);
    s->consumers[0].workload = s->objects[0];
}

static struct cr_json *template_annotations(struct stage *s)
{
    return cr_json_edit(cr_json_edit(cr_json_edit(cr_json_edit(s->objects[0], "spec"), "template"), "metadata"),
                        "annotations");
}

static void set_pod(struct stage *s, int64_t created_ms)
{
    cr_json_free(s->pod);
    s->pod = cr_json_new_object();
    cr_json_set(cr_json_object_in(s->pod, "metadata"), "annotations", cr_json_copy(template_annotations(s)));
    s->pods[0] = (struct cr_world_pod){
        .pod = s->pod, .name = "web-0", .uid = "web-0", .started_ms = created_ms, .created_ms = created_ms};
}

static const struct cr_plan *plan(struct stage *s)
{
    cr_plan_dispose(&s->plan);
    struct cr_world world = {.policy = s->policy,
                             .status = &s->status,
                             .secrets = &s->secret,
                             .consumers = s->consumers,
                             .catalogue = s->catalogue,
                             .beyond = s->beyond,
                             .now_ms = s->now_ms};
    cr_plan_make(&world, &s->plan);
    return &s->plan;
}

static void record(struct stage *s)
{
    test_record_status(&s->plan.status, &s->status);
}

/* As often as something must be on record first, and once more, as the controller does. */
static const struct cr_plan *settled_plan(struct stage *s)
{
    for (int i = 0; i < 4; i++) {
        bool first = plan(s)->record_first;
        record(s);
        if (!first)
            return &s->plan;
    }
    fail_msg("the plan wants to record for ever");
    return NULL;
}

static int setup(void **state)
{
    struct stage *s = cr_new(struct stage);
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *policy = yaml(policy_text);
    s->policy = cr_policy_decode(policy, &err);
    if (!s->policy)
        fail_msg("%s", err.text);
    s->catalogue = cr_catalogue_builtin(&err);
    s->now_ms = START;
    s->objects[1] = yaml(ingress_text);
    s->consumers[0] = (struct cr_world_consumer){.found = true, .pods = s->pods, .pods_len = 1};
    s->consumers[1] = (struct cr_world_consumer){.found = true, .workload = s->objects[1]};
    set_template(s, by_environment);
    set_pod(s, START - 60000);
    set_leaf(s, "leaf-1");
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct stage *s = *state;
    cr_plan_dispose(&s->plan);
    cr_policy_status_dispose(&s->status);
    cr_policy_status_dispose(&s->older);
    cr_policy_free(s->policy);
    cr_catalogue_free(s->catalogue);
    cr_material_dispose(&s->material);
    for (int i = 0; i < CONSUMERS; i++)
        cr_json_free(s->objects[i]);
    cr_json_free(s->pod);
    free(s);
    return 0;
}

/* Seen and idle, some time later. */
static struct stage *start_idle(void **state)
{
    struct stage *s = *state;
    settled_plan(s);
    s->now_ms += 60 * 1000;
    return s;
}

static const struct cr_consumer_status *consumer(struct stage *s, const char *name)
{
    return cr_status_consumer(&s->plan.status, name);
}

static bool pending(struct stage *s)
{
    return cr_status_secret(&s->plan.status, "s")->pending.set;
}

static void assert_condition(struct stage *s, const char *type, bool value, const char *reason, const char *words)
{
    const struct cr_condition *found = cr_status_condition_get(&s->plan.status, type);
    assert_non_null(found);
    if (found->status != value || !cr_streq(found->reason, reason) || !strstr(found->message, words))
        fail_msg("%s=%d %s: %s", type, found->status, found->reason, found->message);
}

/* --- the other policy --- */

/* It has the Secret for the Deployment, and remembers what is there now. */
static void give_to_older(struct stage *s)
{
    struct cr_secret_status *memory = cr_status_secret_add(&s->older, "s");
    cr_material_copy(&memory->settled, &s->material);
    memory->has_settled = true;
    s->others[0] = (struct cr_world_other){.policy = "older", .memory = memory};
    s->consumers[0].others = s->others;
}

/* It has seen what is there now as a change. */
static void older_sees_change(struct stage *s)
{
    struct cr_secret_status *memory = cr_status_secret(&s->older, "s");
    memory->pending.set = true;
    memory->pending.since_ms = s->now_ms;
    cr_strvec_add_unique(&memory->pending.old_leaves, memory->settled.leaf);
    cr_material_dispose(&memory->pending.target);
    cr_material_copy(&memory->pending.target, &s->material);
}

static void older_goes(struct stage *s)
{
    s->consumers[0].others = NULL;
}

static void apply_restart(struct stage *s, const struct cr_json *annotations)
{
    for (const struct cr_json *a = cr_json_first(annotations); a; a = cr_json_next(a))
        cr_json_set_string(template_annotations(s), cr_json_key(a), cr_json_string(a));
    set_pod(s, s->now_ms);
}

/* As the older policy restarts it: the same annotation, whichever policy writes it. */
static void older_restarts(struct stage *s)
{
    char name[CR_ANNOTATION_NAME];
    cr_restart_annotation_name("s", name);
    CR_CLEANUP(cr_json) struct cr_json *annotations = cr_json_new_object();
    cr_autofree char *value = cr_restart_annotation_merge(NULL, &s->material, CR_CLASS_LEAF, NULL);
    cr_json_set_string(annotations, name, value);
    apply_restart(s, annotations);
}

static void a_pair_of_the_older_policy_is_left_alone_and_reported(void **state)
{
    struct stage *s = start_idle(state);
    give_to_older(s);
    set_leaf(s, "leaf-2");
    older_sees_change(s);
    s->now_ms += 10 * 1000; /* the Ingress has taken it up */
    settled_plan(s);
    s->now_ms += 10 * 1000;
    const struct cr_plan *p = settled_plan(s);
    assert_int_equal(p->restarts_len + p->nudges_len + p->probes_len, 0);
    assert_int_equal(consumer(s, "web")->state, CR_CONSUMER_VERIFYING);
    assert_int_equal(consumer(s, "web")->gate.hold, CR_HOLD_OTHER_POLICY);
    assert_non_null(strstr(consumer(s, "web")->gate.text, "CertRotationPolicy older"));
    assert_int_equal(consumer(s, "front")->state, CR_CONSUMER_CONVERGED);
    assert_condition(s, "Conflict", true, "OtherPolicy", "Deployment web and Secret s are CertRotationPolicy older's");
    assert_true(pending(s)); /* it might fall to us */
    assert_true(p->requeue_after_ms > 0);
}

static void it_is_settled_here_when_the_older_has_finished(void **state)
{
    static const struct {
        const char *rule;
        bool seen, settled, converged;
        bool finished;
    } cases[] = {{"the older has not seen it yet", false, false, false, false},
                 {"nor has it finished by what it says of the change before", false, false, true, false},
                 {"it is pending there", true, false, false, false},
                 {"pending for others, but the workload has it", true, false, true, true},
                 {"settled", true, true, false, true}};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        if (i) {
            teardown(state);
            setup(state);
        }
        struct stage *s = start_idle(state);
        give_to_older(s);
        set_leaf(s, cases[i].seen ? "leaf-2" : "leaf-1b");
        if (cases[i].seen || cases[i].converged)
            older_sees_change(s);
        set_leaf(s, "leaf-2");
        s->others[0].converged = cases[i].converged;
        if (cases[i].settled) {
            struct cr_secret_status *memory = cr_status_secret(&s->older, "s");
            memory->pending.set = false;
            cr_material_copy(&memory->settled, &s->material);
        }
        settled_plan(s);
        s->now_ms += 10 * 1000;
        settled_plan(s);
        if (pending(s) == cases[i].finished)
            fail_msg("%s", cases[i].rule);
        assert_int_equal(consumer(s, "web")->state, cases[i].finished ? CR_CONSUMER_IDLE : CR_CONSUMER_VERIFYING);
    }
}

static void what_the_older_did_not_finish_falls_to_the_younger(void **state)
{
    struct stage *s = start_idle(state);
    give_to_older(s);
    set_leaf(s, "leaf-2");
    older_sees_change(s);
    settled_plan(s);
    s->now_ms += 60 * 1000;
    older_goes(s);
    const struct cr_plan *p = settled_plan(s);
    assert_int_equal(p->restarts_len, 1);
    assert_condition(s, "Conflict", false, "NoConflict", "");
}

static void what_the_older_did_is_not_done_again(void **state)
{
    struct stage *s = start_idle(state);
    give_to_older(s);
    set_leaf(s, "leaf-2");
    older_sees_change(s);
    settled_plan(s);
    s->now_ms += 10 * 1000;
    older_restarts(s);
    s->now_ms += 10 * 1000;
    older_goes(s);
    const struct cr_plan *p = settled_plan(s);
    assert_int_equal(p->restarts_len, 0);
    s->now_ms += 120 * 1000;
    p = settled_plan(s);
    assert_int_equal(p->restarts_len, 0);
    assert_false(pending(s));
}

/* It is created while the other is at it: what it sees first is not what the workload has. */
static void a_policy_that_comes_in_the_middle_of_a_change_takes_it_over(void **state)
{
    struct stage *s = *state;
    give_to_older(s);
    set_leaf(s, "leaf-2");
    older_sees_change(s);
    settled_plan(s);
    assert_true(pending(s));
    s->now_ms += 60 * 1000;
    older_goes(s);
    assert_int_equal(settled_plan(s)->restarts_len, 1);
}

/* We are the older one, and the Secret begins to belong to us while the younger is at it: the pair is ours now. */
static void a_pair_that_comes_to_the_older_in_the_middle_of_a_change_is_finished_by_it(void **state)
{
    static const struct {
        const char *rule;
        bool seen;
    } cases[] = {{"the younger has recorded it", true}, {"one write brought the label and the change", false}};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        if (i) {
            teardown(state);
            setup(state);
        }
        struct stage *s = *state;
        give_to_older(s);
        s->others[0].policy = NULL;
        set_leaf(s, "leaf-2");
        if (cases[i].seen)
            older_sees_change(s);
        const struct cr_plan *p = settled_plan(s);
        if (p->restarts_len != 1)
            fail_msg("%s: %zu", cases[i].rule, p->restarts_len);
        assert_condition(s, "Conflict", false, "NoConflict", "");
    }
}

static void what_is_read_through_other_keys_is_not_compared(void **state)
{
    struct stage *s = *state;
    give_to_older(s);
    s->others[0].other_keys = true;
    set_leaf(s, "of-our-keys");
    settled_plan(s);
    assert_false(pending(s)); /* first sight */
    set_leaf(s, "leaf-2");
    settled_plan(s);
    s->now_ms += 20 * 1000;
    settled_plan(s);
    assert_true(pending(s)); /* the older may not have seen it yet */
    s->now_ms += 20 * 1000;
    settled_plan(s);
    assert_false(pending(s));
}

static void without_another_policy_first_sight_stays_first_sight(void **state)
{
    struct stage *s = *state;
    give_to_older(s); /* which is idle */
    settled_plan(s);
    assert_false(pending(s));
    older_goes(s);
    s->now_ms += 60 * 1000;
    assert_int_equal(settled_plan(s)->restarts_len, 0);
}

/* --- what watches Secrets by the API --- */

static void leave_only_the_ingress(struct stage *s)
{
    s->policy->consumers[0].optional = true; /* else its changes stay pending */
    s->consumers[0].found = false;
}

static void an_ingress_takes_it_up_within_its_delay(void **state)
{
    struct stage *s = start_idle(state);
    leave_only_the_ingress(s);
    set_leaf(s, "leaf-2");
    settled_plan(s);
    assert_int_equal(consumer(s, "front")->decision, CR_DECISION_HOT_RELOAD);
    assert_int_equal(consumer(s, "front")->state, CR_CONSUMER_VERIFYING);
    assert_non_null(strstr(consumer(s, "front")->reason, "ApiWatch"));
    assert_true(s->plan.requeue_after_ms > 0 && s->plan.requeue_after_ms <= 5000);
    s->now_ms += 4000;
    settled_plan(s);
    assert_true(pending(s));
    s->now_ms += 1000;
    const struct cr_plan *p = settled_plan(s);
    assert_false(pending(s));
    assert_int_equal(consumer(s, "front")->state, CR_CONSUMER_CONVERGED);
    assert_int_equal(p->restarts_len + p->nudges_len + p->probes_len + p->evictions_len, 0);
}

/* Its controller watches the API, where a Secret of the same name is just another. */
static void an_ingress_takes_up_also_what_was_immutable(void **state)
{
    struct stage *s = start_idle(state);
    leave_only_the_ingress(s);
    s->secret.immutable = true;
    settled_plan(s);
    set_leaf(s, "leaf-2");
    settled_plan(s);
    s->now_ms += 10 * 1000;
    settled_plan(s);
    assert_int_equal(consumer(s, "front")->state, CR_CONSUMER_CONVERGED);
    assert_false(pending(s));
}

static void an_ingress_that_names_another_secret_is_not_concerned(void **state)
{
    struct stage *s = start_idle(state);
    cr_json_free(s->objects[1]);
    s->objects[1] = yaml("metadata: {name: front}\nspec: {tls: [{secretName: t}, {hosts: [a]}]}\n");
    s->consumers[1].workload = s->objects[1];
    set_leaf(s, "leaf-2");
    settled_plan(s);
    assert_int_equal(consumer(s, "front")->decision, CR_DECISION_NONE);
}

/* --- unknown software --- */

static void unknown_software_is_reported_when_the_policy_says_so(void **state)
{
    static const struct {
        const char *rule;
        const char *usage;
        enum cr_unknown unknown;
        bool restarts;
    } cases[] = {
        {"restarted by default", by_volume, CR_UNKNOWN_RESTART, true},
        {"reported", by_volume, CR_UNKNOWN_REPORT, false},
        {"what never refreshes needs no catalogue", by_environment, CR_UNKNOWN_REPORT, true},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        if (i) {
            teardown(state);
            setup(state);
        }
        struct stage *s = *state;
        s->policy->discover.unknown = cases[i].unknown;
        set_template(s, cases[i].usage);
        start_idle(state);
        set_leaf(s, "leaf-2");
        const struct cr_plan *p = settled_plan(s);
        if ((p->restarts_len == 1) != cases[i].restarts)
            fail_msg("%s", cases[i].rule);
        if (cases[i].restarts)
            continue;
        assert_int_equal(consumer(s, "web")->state, CR_CONSUMER_BLOCKED);
        assert_int_equal(consumer(s, "web")->gate.hold, CR_HOLD_UNKNOWN_SOFTWARE);
        /* A person restarts it, late enough for the new pod to have mounted the new Secret. */
        s->now_ms += 200 * 1000;
        set_pod(s, s->now_ms);
        s->now_ms += 1000;
        p = settled_plan(s);
        assert_int_equal(p->restarts_len, 0);
        assert_int_equal(consumer(s, "web")->state, CR_CONSUMER_CONVERGED);
        assert_false(pending(s));
    }
}

/* --- names and bounds --- */

static void a_workload_keeps_its_memory_under_another_name(void **state)
{
    struct stage *s = start_idle(state);
    set_leaf(s, "leaf-2");
    const struct cr_plan *p = settled_plan(s);
    assert_int_equal(p->restarts_len, 1);
    apply_restart(s, p->restarts[0].annotations);
    s->now_ms += 1000;
    settled_plan(s);
    cr_autofree char *before = cr_strdup(consumer(s, "web")->restarted_for);
    assert_non_null(before);
    cr_strset(&s->policy->consumers[0].name, "deployment-web");
    settled_plan(s);
    assert_null(consumer(s, "web"));
    assert_string_equal(consumer(s, "deployment-web")->restarted_for, before);
}

/* Its name now means another workload, which was not restarted; generations of two workloads say nothing. */
static void a_name_that_means_another_workload_brings_no_memory_along(void **state)
{
    struct stage *s = start_idle(state);
    set_leaf(s, "leaf-2");
    const struct cr_plan *p = settled_plan(s);
    assert_int_equal(p->restarts_len, 1);
    cr_autofree char *before = cr_json_print(s->objects[0]);
    apply_restart(s, p->restarts[0].annotations);
    s->now_ms += 1000;
    settled_plan(s);
    assert_non_null(consumer(s, "web")->restarted_for);
    cr_strset(&s->policy->consumers[0].target, "shop");
    cr_json_free(s->objects[0]);
    s->consumers[0].workload = s->objects[0] = yaml(before);
    cr_json_set_int(cr_json_edit(s->objects[0], "metadata"), "generation", 7);
    set_pod(s, START - 60 * 1000);
    assert_int_equal(settled_plan(s)->restarts_len, 1);
    assert_null(consumer(s, "web")->restarted_for);
}

static void two_workloads_that_swap_their_names_keep_what_is_theirs(void **state)
{
    struct stage *s = start_idle(state);
    struct cr_policy_consumer *consumers = s->policy->consumers;
    cr_strset(&s->status.consumers[0].restarted_for, "of-web");
    cr_strset(&consumers[0].name, "front");
    cr_strset(&consumers[1].name, "web");
    settled_plan(s);
    assert_int_equal(s->status.consumers_len, CONSUMERS);
    assert_string_equal(consumer(s, "front")->restarted_for, "of-web");
    assert_string_equal(consumer(s, "front")->target, "web");
    assert_null(consumer(s, "web")->restarted_for);
}

static void what_is_not_effective_is_said_with_numbers(void **state)
{
    struct stage *s = start_idle(state);
    settled_plan(s);
    assert_condition(s, "Ready", true, "Accepted", "");
    s->beyond.consumers = 7;
    settled_plan(s);
    assert_condition(s, "Ready", false, "TooManyConsumers", "9 consumers belong to this policy and 2 are in force");
    s->beyond.secrets = 3;
    settled_plan(s);
    assert_condition(s, "Ready", false, "TooManySecrets", "4 Secrets belong to this policy and 1 are in force");
    s->beyond = (struct cr_world_beyond){.unseen = "Consumers of kind Ingress cannot be seen: forbidden."};
    settled_plan(s);
    assert_condition(s, "Ready", false, "CannotDiscover", "Ingress");
}

/* --- what cannot be seen --- */

/* A workload that discovery would find may be among what is not listed. */
static void nothing_settles_while_workloads_with_pods_may_be_missing(void **state)
{
    struct stage *s = start_idle(state);
    cr_json_free(s->objects[0]);
    s->objects[0] = NULL;
    s->consumers[0] = (struct cr_world_consumer){0};
    s->policy->consumers[0].optional = true;
    s->beyond =
        (struct cr_world_beyond){.unseen = "Consumers of kind Rollout cannot be seen: throttled.", .unseen_pods = true};
    set_leaf(s, "leaf-2");
    settled_plan(s);
    s->now_ms += 10 * 60 * 1000;
    settled_plan(s);
    assert_true(pending(s));
    assert_int_equal(s->status.history_len, 0);
    assert_condition(s, "Ready", false, "CannotDiscover", "Rollout");
    s->beyond = (struct cr_world_beyond){0};
    settled_plan(s);
    assert_false(pending(s));
}

/* Ingresses and Gateways have no pods that could keep what was before. */
static void what_has_no_pods_and_cannot_be_listed_holds_no_change(void **state)
{
    struct stage *s = start_idle(state);
    s->consumers[0] = (struct cr_world_consumer){0};
    s->policy->consumers[0].optional = true;
    s->beyond = (struct cr_world_beyond){.unseen = "Consumers of kind Gateway cannot be seen: forbidden."};
    set_leaf(s, "leaf-2");
    settled_plan(s);
    s->now_ms += 60 * 1000;
    settled_plan(s);
    assert_false(pending(s));
}

static void a_workload_that_is_not_seen_is_neither_done_nor_said_to_be_missing(void **state)
{
    struct stage *s = start_idle(state);
    struct cr_world_consumer seen = s->consumers[0];
    s->consumers[0] = (struct cr_world_consumer){.unseen = true};
    set_leaf(s, "leaf-2");
    settled_plan(s);
    s->now_ms += 10 * 60 * 1000;
    settled_plan(s);
    assert_true(pending(s));
    assert_int_equal(consumer(s, "web")->state, CR_CONSUMER_ABSENT);
    assert_int_equal(consumer(s, "web")->gate.hold, CR_HOLD_NONE);
    assert_string_equal(consumer(s, "web")->reason, "Deployment web is not seen, since its kind cannot be listed.");
    s->consumers[0] = seen;
    assert_int_equal(settled_plan(s)->restarts_len, 1);
}

int main(void)
{
#define SCENE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        SCENE(a_pair_of_the_older_policy_is_left_alone_and_reported),
        SCENE(it_is_settled_here_when_the_older_has_finished),
        SCENE(what_the_older_did_not_finish_falls_to_the_younger),
        SCENE(what_the_older_did_is_not_done_again),
        SCENE(a_policy_that_comes_in_the_middle_of_a_change_takes_it_over),
        SCENE(a_pair_that_comes_to_the_older_in_the_middle_of_a_change_is_finished_by_it),
        SCENE(what_is_read_through_other_keys_is_not_compared),
        SCENE(without_another_policy_first_sight_stays_first_sight),
        SCENE(an_ingress_takes_it_up_within_its_delay),
        SCENE(an_ingress_takes_up_also_what_was_immutable),
        SCENE(an_ingress_that_names_another_secret_is_not_concerned),
        SCENE(unknown_software_is_reported_when_the_policy_says_so),
        SCENE(a_workload_keeps_its_memory_under_another_name),
        SCENE(a_name_that_means_another_workload_brings_no_memory_along),
        SCENE(two_workloads_that_swap_their_names_keep_what_is_theirs),
        SCENE(what_is_not_effective_is_said_with_numbers),
        SCENE(nothing_settles_while_workloads_with_pods_may_be_missing),
        SCENE(what_has_no_pods_and_cannot_be_listed_holds_no_change),
        SCENE(a_workload_that_is_not_seen_is_neither_done_nor_said_to_be_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
