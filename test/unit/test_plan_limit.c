/* Restarts under way: three consumers of unknown software, and one Secret. */
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

enum { CONSUMERS = 3 };

static const int64_t start_ms = 1000LL * 1000 * 1000;
static const int64_t minute_ms = 60LL * 1000;

static const char policy_text[] = "metadata: {name: demo, namespace: ns, uid: policy-uid, generation: 3}\n"
                                  "spec:\n"
                                  "  secrets: [{name: tls}]\n"
                                  "  restart: {coalesce: 0s, breaker: {within: 0s}, maxConcurrent: 2}\n"
                                  "  consumers:\n"
                                  "  - {name: a, targetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}\n"
                                  "  - {name: b, targetRef: {apiVersion: apps/v1, kind: Deployment, name: b}}\n"
                                  "  - {name: c, targetRef: {apiVersion: apps/v1, kind: Deployment, name: c}}\n";

static const char workload_text[] =
    "{metadata: {name: w, namespace: ns, uid: u, resourceVersion: '7', generation: 1},"
    " spec: {replicas: 1, template: {metadata: {annotations: {}}, spec: {containers: [{name: c, image: acme/x,"
    " volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, secret: {secretName: tls}}]}}},"
    " status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1}}";

struct scene {
    struct cr_policy *policy;
    struct cr_policy_status status;
    struct cr_catalogue *catalogue;
    struct cr_material material;
    struct cr_world_secret secret;
    struct cr_json *workloads[CONSUMERS];
    struct cr_json *pod;
    struct cr_world_pod pods[CONSUMERS];
    struct cr_world_consumer consumers[CONSUMERS];
    struct cr_world_limits limits;
    int64_t now_ms;
    struct cr_plan plan; /* the last one */
};

static void hold(struct scene *s, const char *word)
{
    struct cr_material *m = &s->material;
    cr_material_dispose(m);
    *m = (struct cr_material){.has_leaf = true, .not_after_ms = start_ms + 60 * 24 * 365 * minute_ms};
    cr_sha256_hex(word, strlen(word), m->leaf);
    memcpy(m->chain, m->leaf, sizeof m->chain);
    memcpy(m->key, m->leaf, sizeof m->key);
    cr_sha256_hex("ca", 2, m->issuer);
    s->secret = (struct cr_world_secret){.found = true, .resource_version = word, .material = m};
}

static const struct cr_plan *look(struct scene *s)
{
    cr_plan_dispose(&s->plan);
    struct cr_world world = {.policy = s->policy,
                             .status = &s->status,
                             .secrets = &s->secret,
                             .consumers = s->consumers,
                             .catalogue = s->catalogue,
                             .limits = s->limits,
                             .now_ms = s->now_ms};
    cr_plan_make(&world, &s->plan);
    return &s->plan;
}

static const struct cr_plan *plan(struct scene *s)
{
    for (int i = 0; i < 4 && look(s)->record_first; i++)
        test_record_status(&s->plan.status, &s->status);
    assert_false(s->plan.record_first);
    return &s->plan;
}

static int set_up(void **state)
{
    struct scene *s = cr_new(struct scene);
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *policy = test_yaml(policy_text);
    s->policy = cr_policy_decode(policy, &err);
    s->catalogue = cr_catalogue_builtin(&err);
    assert_non_null(s->policy);
    s->now_ms = start_ms;
    s->pod = test_yaml("metadata: {}");
    hold(s, "1");
    for (size_t i = 0; i < CONSUMERS; i++) {
        s->workloads[i] = test_yaml(workload_text);
        s->pods[i] = (struct cr_world_pod){.pod = s->pod,
                                           .name = "p",
                                           .uid = "p",
                                           .ready = true,
                                           .started_ms = start_ms - minute_ms,
                                           .created_ms = start_ms - minute_ms};
        s->consumers[i] =
            (struct cr_world_consumer){.found = true, .workload = s->workloads[i], .pods = &s->pods[i], .pods_len = 1};
    }
    plan(s);
    s->now_ms += minute_ms;
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;
    cr_plan_dispose(&s->plan);
    cr_policy_status_dispose(&s->status);
    cr_policy_free(s->policy);
    cr_catalogue_free(s->catalogue);
    cr_material_dispose(&s->material);
    for (size_t i = 0; i < CONSUMERS; i++)
        cr_json_free(s->workloads[i]);
    cr_json_free(s->pod);
    free(s);
    return 0;
}

/* As the patch does; its rollout has begun. */
static void apply(struct scene *s, const struct cr_plan_restart *restart)
{
    struct cr_json *workload = s->workloads[restart->consumer];
    struct cr_json *metadata = cr_json_edit(cr_json_edit(cr_json_edit(workload, "spec"), "template"), "metadata");
    struct cr_json *annotations = cr_json_object_in(metadata, "annotations");
    for (const struct cr_json *a = cr_json_first(restart->annotations); a; a = cr_json_next(a))
        cr_json_set_string(annotations, cr_json_key(a), cr_json_string(a));
    char now[CR_TIME_TEXT];
    cr_time_format(s->now_ms, now);
    cr_json_set_string(annotations, "kubectl.kubernetes.io/restartedAt", now);
    int64_t generation = cr_json_int_at(workload, 0, "metadata", "generation");
    cr_json_set_int(cr_json_edit(workload, "metadata"), "generation", generation + 1);
}

static void finish(struct scene *s, size_t consumer)
{
    cr_json_set_int(cr_json_edit(s->workloads[consumer], "status"), "observedGeneration",
                    cr_json_int_at(s->workloads[consumer], 0, "metadata", "generation"));
}

static const char *text_of(struct scene *s, const char *name)
{
    return cr_or_empty(cr_status_consumer(&s->plan.status, name)->gate.text);
}

static enum cr_hold hold_of(struct scene *s, const char *name)
{
    return cr_status_consumer(&s->plan.status, name)->gate.hold;
}

static bool is_under_way(const struct cr_plan *p, size_t consumer)
{
    for (size_t i = 0; i < p->under_way_len; i++)
        if (p->under_way[i] == consumer)
            return true;
    return false;
}

/* --- maxConcurrent --- */

static void a_rollout_for_an_earlier_change_counts_when_a_newer_one_comes(void **state)
{
    struct scene *s = *state;
    s->policy->restart.max_concurrent = 1;
    hold(s, "2");
    const struct cr_plan *p = plan(s);
    assert_int_equal(p->restarts_len, 1);
    assert_int_equal(p->restarts[0].consumer, 0);
    apply(s, &p->restarts[0]);
    s->now_ms += 1000;
    hold(s, "3");
    p = plan(s);
    assert_true(is_under_way(p, 0));
    assert_int_equal(p->restarts_len, 1); /* a itself, which has its place, and no other beside it */
    assert_int_equal(p->restarts[0].consumer, 0);
    assert_string_equal(text_of(s, "b"), "restart.maxConcurrent: waits for a");
    apply(s, &p->restarts[0]);
    finish(s, 0);
    p = plan(s);
    assert_false(is_under_way(p, 0));
    assert_int_equal(p->restarts_len, 1);
    assert_int_equal(p->restarts[0].consumer, 1);
}

static void rollouts_of_others_do_not_count(void **state)
{
    static const struct {
        const char *rule;
        bool remembers, ours;
        const char *restarted_at; /* on b's template; NULL: as certroll left it */
        bool counts;
    } cases[] = {
        {"ours", true, true, NULL, true},
        {"it has ended before, as this process remembers", true, false, NULL, false},
        {"after a start, as the template tells", false, false, NULL, true},
        {"after a start, and kubectl rollout restart came later", false, false, "2030-01-01T00:00:00Z", false},
    };
    struct scene *s = *state;
    s->policy->restart.max_concurrent = 1;
    hold(s, "2");
    const struct cr_plan *p = plan(s);
    apply(s, &p->restarts[0]);
    finish(s, 0);
    p = plan(s);
    assert_int_equal(p->restarts[0].consumer, 1);
    apply(s, &p->restarts[0]); /* b's last restart is ours */
    hold(s, "3");
    struct cr_json *annotations = cr_json_edit(
        cr_json_edit(cr_json_edit(cr_json_edit(s->workloads[1], "spec"), "template"), "metadata"), "annotations");
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        s->limits.remembers = cases[i].remembers;
        s->consumers[1].claim.ours = cases[i].ours;
        if (cases[i].restarted_at)
            cr_json_set_string(annotations, "kubectl.kubernetes.io/restartedAt", cases[i].restarted_at);
        if (is_under_way(plan(s), 1) != cases[i].counts)
            fail_msg("%s", cases[i].rule);
    }
}

static void what_was_not_answered_counts(void **state)
{
    struct scene *s = *state;
    s->policy->restart.max_concurrent = 1;
    s->limits.remembers = true;
    s->consumers[1].claim = (struct cr_world_claim){.ours = true, .unanswered = true, .any = true};
    hold(s, "2");
    const struct cr_plan *p = plan(s);
    assert_true(is_under_way(p, 1));
    assert_int_equal(p->restarts_len, 1); /* the same again: its precondition shows that */
    assert_int_equal(p->restarts[0].consumer, 1);
    assert_int_equal(hold_of(s, "a"), CR_HOLD_MAX_CONCURRENT);
    assert_string_equal(text_of(s, "a"), "restart.maxConcurrent: waits for b");
}

/* --- limits over all policies --- */

static void limits_hold_what_is_beyond_them(void **state)
{
    static const struct {
        const char *rule;
        struct cr_world_limits limits;
        size_t restarts;
        enum cr_hold hold; /* of c */
        const char *text;  /* how it begins */
    } cases[] = {
        {"none", {.namespace_free = -5, .total_free = -5}, 3, CR_HOLD_NONE, ""},
        {"room for all", {.per_namespace = 9, .namespace_free = 3, .total = 9, .total_free = 4}, 3, CR_HOLD_NONE, ""},
        {"room for two", {.per_namespace = 9, .namespace_free = 2}, 2, CR_HOLD_LIMIT, "limit: as many workloads"},
        {"of all",
         {.per_namespace = 9, .namespace_free = 3, .total = 50, .total_free = 1},
         1,
         CR_HOLD_LIMIT,
         "limit: as many"},
        {"no room", {.total = 9, .total_free = 0}, 0, CR_HOLD_LIMIT, "limit: as many workloads"},
        {"more than the limit are under way",
         {.total = 9, .total_free = -2},
         0,
         CR_HOLD_LIMIT,
         "limit: as many workloads"},
        {"nothing is known yet",
         {.total = 9, .total_free = 9, .unknown = true},
         0,
         CR_HOLD_LIMIT,
         "limit: after a start"},
    };
    struct scene *s = *state;
    s->policy->restart.max_concurrent = 3;
    hold(s, "2");
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        s->limits = cases[i].limits;
        const struct cr_plan *p = plan(s);
        if (p->restarts_len != cases[i].restarts || p->waits_for_limit != (p->restarts_len < CONSUMERS) ||
            hold_of(s, "c") != cases[i].hold || !cr_starts_with(text_of(s, "c"), cases[i].text))
            fail_msg("%s: %zu restarts, c: %s", cases[i].rule, p->restarts_len, text_of(s, "c"));
    }
    assert_int_equal(cr_status_consumer(&s->plan.status, "c")->state, CR_CONSUMER_PENDING);
}

static void the_limit_is_reported_with_its_flag(void **state)
{
    struct scene *s = *state;
    hold(s, "2");
    s->limits = (struct cr_world_limits){.per_namespace = 4};
    plan(s);
    assert_string_equal(text_of(s, "a"), "limit: as many workloads are being restarted as may be at a time in this "
                                         "namespace (--max-restarts-per-namespace 4)");
    s->limits = (struct cr_world_limits){.total = 7};
    plan(s);
    assert_string_equal(text_of(s, "a"), "limit: as many workloads are being restarted as may be at a time in all "
                                         "namespaces (--max-restarts 7)");
}

static void what_is_restarted_already_needs_no_further_place(void **state)
{
    struct scene *s = *state;
    hold(s, "2");
    s->limits = (struct cr_world_limits){.total = 1, .remembers = true};
    s->consumers[2].claim.any = true; /* for another policy */
    const struct cr_plan *p = plan(s);
    assert_int_equal(p->restarts_len, 1);
    assert_int_equal(p->restarts[0].consumer, 2);
    assert_false(is_under_way(p, 2)); /* not for this one, so far */
}

static void and_leaves_the_places_to_others(void **state)
{
    struct scene *s = *state;
    hold(s, "2");
    s->policy->restart.max_concurrent = CONSUMERS;
    s->limits = (struct cr_world_limits){.total = 2, .total_free = 1, .remembers = true};
    s->consumers[0].claim.any = true;
    const struct cr_plan *p = plan(s);
    assert_int_equal(p->restarts_len, 2);
    assert_int_equal(p->restarts[1].consumer, 1);
    assert_int_equal(hold_of(s, "c"), CR_HOLD_LIMIT);
}

/* One that could not begin anyhow must keep no other waiting. */
static void only_who_could_begin_otherwise_waits_for_a_limit(void **state)
{
    struct scene *s = *state;
    hold(s, "2");
    s->limits = (struct cr_world_limits){.total = 1};
    s->policy->suspend = true;
    assert_false(plan(s)->waits_for_limit);
    s->policy->suspend = false;
    assert_true(plan(s)->waits_for_limit);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_rollout_for_an_earlier_change_counts_when_a_newer_one_comes),
        T(rollouts_of_others_do_not_count),
        T(what_was_not_answered_counts),
        T(limits_hold_what_is_beyond_them),
        T(the_limit_is_reported_with_its_flag),
        T(what_is_restarted_already_needs_no_further_place),
        T(and_leaves_the_places_to_others),
        T(only_who_could_begin_otherwise_waits_for_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
