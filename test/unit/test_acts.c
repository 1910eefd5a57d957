#include "policy/controller/acts.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "codec/base64.h"
#include "kube/object.h"
#include "net/tls_probe.h"
#include "support/fakeapi.h"
#include "support/ownnet.h"
#include "support/ownwrites.h"
#include "support/rawtls.h"
#include "support/testserver.h"
#include "support/yamltext.h"

/* Of this machine, in a network of the test's own; probes may go there. */
#define POD_ADDRESS "10.77.0.9"
static bool own_network;

enum { CONSUMERS = 3, PODS = 2, SINCE_MS = 5000 };

static const char policy_text[] =
    "apiVersion: certroll.dev/v1alpha1\n"
    "kind: CertRotationPolicy\n"
    "metadata: {name: edge, namespace: ns, uid: policy-uid, resourceVersion: '1', generation: 3}\n"
    "spec:\n"
    "  secrets: [{name: web-tls}]\n"
    "  consumers:\n"
    "  - {name: one, targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, verify: {port: 8443, serverName: "
    "web.example}}\n"
    "  - {name: two, targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: db}, verify: {port: 8443}}\n"
    "  - {name: three, targetRef: {apiVersion: apps/v1, kind: DaemonSet, name: agent}, verify: {port: 8443}}\n";

/* With more than what a patch may carry. */
static const char workload_text[] =
    "{metadata: {name: w, namespace: ns, uid: workload-uid-%zu, resourceVersion: '4%zu',"
    " annotations: {theirs: x}, labels: {app: web}},"
    " spec: {replicas: 2, template: {metadata: {annotations: {theirs: y}}}}}";

/* What a policy's world is while something is done. Each consumer has two pods, named "<consumer>-<number>". */
struct fixture {
    struct fake_api api;
    struct cr_loop *loop;
    pthread_t thread;
    struct cr_client *client;
    struct cr_metrics *metrics;
    struct cr_memory *memory;
    struct cr_recorder *recorder;
    struct cr_actor actor;
    struct cr_policy *policy;
    struct cr_json *workloads[CONSUMERS];
    struct cr_json *pod_json[CONSUMERS][PODS];
    struct cr_world_pod pods[CONSUMERS][PODS];
    struct cr_gathered gathered;
    struct cr_plan plan;
};

static void *run_loop(void *loop)
{
    cr_loop_run(loop);
    return NULL;
}

static void make_pods(struct fixture *f, size_t consumer)
{
    for (size_t i = 0; i < PODS; i++) {
        f->pod_json[consumer][i] = test_yaml("{status: {hostIP: 10.1.1.1}}");
        f->pods[consumer][i] =
            (struct cr_world_pod){.pod = f->pod_json[consumer][i],
                                  .name = cr_asprintf("%s-%zu", f->policy->consumers[consumer].name, i),
                                  .uid = cr_asprintf("uid-%zu-%zu", consumer, i),
                                  .ip = POD_ADDRESS,
                                  .started_ms = 77};
    }
}

static void make_world(struct fixture *f)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *json = test_yaml(policy_text);
    f->policy = cr_policy_decode(json, &err);
    if (!f->policy)
        fail_msg("%s", err.text);
    f->gathered.consumers = cr_calloc(CONSUMERS, sizeof *f->gathered.consumers);
    f->gathered.workload_overrides = cr_calloc(CONSUMERS, sizeof *f->gathered.workload_overrides);
    for (size_t i = 0; i < CONSUMERS; i++) {
        cr_autofree char *text = cr_asprintf(workload_text, i, i);
        f->workloads[i] = test_yaml(text);
        make_pods(f, i);
        f->gathered.consumers[i] = (struct cr_world_consumer){
            .found = true, .workload = f->workloads[i], .pods = f->pods[i], .pods_len = PODS};
        cr_status_consumer_add(&f->plan.status, f->policy->consumers[i].name)->since_ms = SINCE_MS;
    }
    f->gathered.world =
        (struct cr_world){.policy = f->policy, .status = &f->gathered.status, .consumers = f->gathered.consumers};
}

static void open_fixture(struct fixture *f, const struct fake_answer *script, size_t script_len)
{
    *f = (struct fixture){0};
    assert_true(fake_api_start(&f->api, script, script_len));
    f->loop = cr_loop_new();
    f->client = fake_client(f->loop, f->api.port);
    f->memory = cr_memory_new();
    f->recorder = cr_recorder_new(f->client, "certroll");
    f->metrics = cr_metrics_new();
    f->actor = (struct cr_actor){
        .client = f->client,
        .memory = f->memory,
        .metrics = cr_policy_metrics_new(f->metrics),
        .nudges = cr_metrics_counter(f->metrics, "nudges", "h", CR_LABELS("namespace")),
        .probes = cr_metrics_counter(f->metrics, "probes", "h", CR_LABELS("namespace", "outcome")),
        .evictions = cr_metrics_counter(f->metrics, "evictions", "h", CR_LABELS("namespace", "reason")),
    };
    make_world(f);
    assert_int_equal(pthread_create(&f->thread, NULL, run_loop, f->loop), 0);
}

static void free_world(struct fixture *f)
{
    for (size_t i = 0; i < CONSUMERS; i++) {
        cr_json_free(f->workloads[i]);
        cr_json_free(f->gathered.workload_overrides[i]);
        for (size_t p = 0; p < PODS; p++) {
            cr_json_free(f->pod_json[i][p]);
            free((void *)(uintptr_t)f->pods[i][p].name);
            free((void *)(uintptr_t)f->pods[i][p].uid);
        }
    }
    free(f->gathered.consumers);
    free(f->gathered.workload_overrides);
    cr_plan_dispose(&f->plan);
    cr_policy_free(f->policy);
}

static void close_fixture(struct fixture *f)
{
    cr_loop_stop(f->loop);
    pthread_join(f->thread, NULL);
    free_world(f);
    cr_recorder_free(f->recorder);
    cr_client_free(f->client);
    cr_loop_free(f->loop);
    cr_memory_free(f->memory);
    cr_policy_metrics_free(f->actor.metrics);
    cr_metrics_free(f->metrics);
    fake_api_stop(&f->api);
    if (f->api.problem[0])
        fail_msg("%s", f->api.problem);
}

/* --- a plan by hand --- */

#define PUSH(items, len, ...)                                                                                          \
    do {                                                                                                               \
        (items) = cr_reallocarray((items), (len) + 1, sizeof *(items));                                                \
        (items)[(len)++] = (__typeof__(*(items))){__VA_ARGS__};                                                        \
    } while (0)

static void plan_restart(struct fixture *f, size_t consumer)
{
    PUSH(f->plan.restarts, f->plan.restarts_len, .consumer = consumer,
         .annotations = test_yaml("{certroll.dev/1234: leaf=ab, certroll.dev/5678: trust=cd}"),
         .why = cr_strdup("the CA is read once at start"));
}

static void plan_nudge(struct fixture *f, size_t consumer, size_t pod)
{
    PUSH(f->plan.nudges, f->plan.nudges_len, .consumer = consumer, .pod = pod);
}

static void plan_eviction(struct fixture *f, size_t consumer, size_t pod)
{
    PUSH(f->plan.evictions, f->plan.evictions_len, .consumer = consumer, .pod = pod, .repair = true);
}

static void plan_probe(struct fixture *f, size_t consumer, size_t pod)
{
    PUSH(f->plan.probes, f->plan.probes_len, .consumer = consumer, .pod = pod);
}

/* All answers of the script must be used. The error's kind, None when it went well. */
static enum cr_error_kind act(struct fixture *f)
{
    struct cr_error err = {0};
    bool did = false;
    bool ok = cr_act(&f->actor, &f->gathered, &f->plan, &did, &err);
    assert_true(did);
    assert_true(ok == (err.kind == CR_ERR_NONE));
    assert_int_equal(atomic_load(&f->api.answered), f->api.script_len);
    return err.kind;
}

/* --- what was seen and remembered --- */

static void is_json(const char *rule, const char *text, const char *yaml)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *is = cr_json_parse(text, strlen(text), &err);
    CR_CLEANUP(cr_json) struct cr_json *expected = test_yaml(yaml);
    if (!cr_json_equal(is, expected))
        fail_msg("%s: %s", rule, text);
}

static struct cr_note refusal(struct fixture *f, size_t consumer)
{
    cr_autofree char *key = cr_world_refused_key(f->policy, f->policy->consumers[consumer].name);
    return cr_memory_note(f->memory, key);
}

static struct cr_note evicted(struct fixture *f, size_t consumer)
{
    cr_autofree char *key = cr_world_evicted_key(f->policy, f->policy->consumers[consumer].name, SINCE_MS);
    return cr_memory_note(f->memory, key);
}

static void is_counted(struct fixture *f, const char *rule, const char *line, bool there)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    cr_metrics_write(f->metrics, &text);
    if ((strstr(cr_buf_text(&text), line) != NULL) != there)
        fail_msg("%s: %s %s\n%s", rule, there ? "no" : "unexpected", line, cr_buf_text(&text));
}

#define STATUS(reason) "{\"kind\":\"Status\",\"reason\":\"" reason "\",\"message\":\"told so\"}"
#define PATCHED        "{\"metadata\":{\"uid\":\"new\",\"resourceVersion\":\"99\"}}"

/* --- restarts --- */

/* The time is taken out, so that the rest can be compared whole. */
static char *without_restarted_at(const char *body, int64_t from_ms, int64_t until_ms)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *patch = cr_json_parse(body, strlen(body), &err);
    struct cr_json *annotations = cr_json_edit(patch, "spec");
    annotations = cr_json_edit(cr_json_edit(cr_json_edit(annotations, "template"), "metadata"), "annotations");
    CR_CLEANUP(cr_json) struct cr_json *at = cr_json_take(annotations, "kubectl.kubernetes.io/restartedAt");
    int64_t at_ms = 0;
    if (!cr_json_string(at) || !cr_time_parse(cr_json_string(at), &at_ms, &err))
        fail_msg("restartedAt: %s in %s", err.text, body);
    assert_in_range(at_ms, from_ms - from_ms % 1000, until_ms);
    return cr_json_print(patch);
}

static void a_restart_is_meant_for_one_state_of_one_object_and_sets_our_annotations_only(void **state)
{
    (void)state;
    static const struct {
        size_t consumer;
        struct fake_answer script[2];
        const char *counted;
    } cases[] = {
        {0,
         {{.expect = "PATCH /apis/apps/v1/namespaces/ns/deployments/web?fieldManager=certroll ",
           .has = "Content-Type: application/merge-patch+json\r\n",
           .body = PATCHED},
          {.expect = "POST /api/v1/namespaces/ns/events?", .has = "\"reason\":\"Restarting\"", .body = "{}"}},
         "certroll_restarts_total{namespace=\"ns\",kind=\"Deployment\",result=\"success\"} 1\n"},
        {1,
         {{.expect = "PATCH /apis/apps/v1/namespaces/ns/statefulsets/db?", .body = PATCHED},
          {.expect = "POST", .has = "the CA is read once at start (CertRotationPolicy edge)", .body = "{}"}},
         "certroll_restarts_total{namespace=\"ns\",kind=\"StatefulSet\",result=\"success\"} 1\n"},
        {2,
         {{.expect = "PATCH /apis/apps/v1/namespaces/ns/daemonsets/agent?", .body = PATCHED},
          {.expect = "POST", .has = "\"type\":\"Normal\"", .body = "{}"}},
         "certroll_restarts_total{namespace=\"ns\",kind=\"DaemonSet\",result=\"success\"} 1\n"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fixture f;
        open_fixture(&f, cases[i].script, 2);
        f.actor.recorder = f.recorder;
        plan_restart(&f, cases[i].consumer);
        int64_t from_ms = cr_clock_wall_ms();
        assert_int_equal(act(&f), CR_ERR_NONE);
        cr_autofree char *patch = without_restarted_at(fake_api_body(&f.api, 0), from_ms, cr_clock_wall_ms());
        cr_autofree char *expected =
            cr_asprintf("{metadata: {uid: workload-uid-%zu, resourceVersion: '4%zu'}, spec: {template: {metadata:"
                        " {annotations: {certroll.dev/1234: leaf=ab, certroll.dev/5678: trust=cd}}}}}",
                        i, i);
        is_json(cases[i].counted, patch, expected);
        is_counted(&f, "restarted", cases[i].counted, true);
        /* The next plan sees what the patch returned, not the cache. */
        assert_string_equal(cr_obj_resource_version(f.gathered.consumers[cases[i].consumer].workload), "99");
        close_fixture(&f);
    }
}

static void an_argo_rollout_is_restarted_beside_its_template(void **state)
{
    (void)state;
    const struct fake_answer script[] = {
        {.expect = "PATCH /apis/argoproj.io/v1alpha1/namespaces/ns/rollouts/web?", .body = PATCHED},
    };
    struct fixture f;
    open_fixture(&f, script, 1);
    struct cr_policy_consumer *spec = &f.policy->consumers[0];
    cr_strset(&spec->kind, "Rollout");
    cr_strset(&spec->api_version, "argoproj.io/v1alpha1");
    plan_restart(&f, 0);
    f.plan.restarts[0].restart_at_ms = 1795262400000;
    assert_int_equal(act(&f), CR_ERR_NONE);
    is_json("an Argo Rollout", fake_api_body(&f.api, 0),
            "{metadata: {uid: workload-uid-0, resourceVersion: '40', annotations: {certroll.dev/1234: leaf=ab, "
            "certroll.dev/5678: trust=cd}}, spec: {restartAt: '2026-11-21T12:00:00Z'}}");
    /* What is done next is decided by the answer, and by the template that it does not have. */
    const struct cr_json *workload = f.gathered.consumers[0].workload;
    assert_string_equal(cr_obj_resource_version(workload), "99");
    assert_non_null(cr_json_at(workload, "spec", "template"));
    close_fixture(&f);
}

/* What the API server answers to a restart or an eviction of "one"; "two" is always restarted. */
struct refusal_case {
    const char *rule;
    struct fake_answer answer;
    enum cr_error_kind returned;
    int64_t pause_ms; /* 0: nothing is remembered */
    bool by_budget;
};

static void check_refusal(struct fixture *f, const struct refusal_case *c, int64_t from_ms)
{
    int64_t until_ms = cr_clock_monotonic_ms();
    CR_CLEANUP(cr_note) struct cr_note note = refusal(f, 0);
    if ((note.count != 0) != (c->pause_ms != 0))
        fail_msg("%s: remembered %d times", c->rule, note.count);
    if (!c->pause_ms)
        return;
    if (note.at_ms < from_ms + c->pause_ms || note.at_ms > until_ms + c->pause_ms)
        fail_msg("%s: a pause of %lld ms", c->rule, (long long)(note.at_ms - from_ms));
    if ((note.reason == CR_HOLD_REFUSED_BY_BUDGET) != c->by_budget)
        fail_msg("%s: reason %d", c->rule, note.reason);
    if (!note.text || (c->answer.body && !c->answer.cut && !strstr(note.text, "told so")))
        fail_msg("%s: remembered as '%s'", c->rule, cr_or_empty(note.text));
}

static const struct refusal_case restart_answers[] = {
    {"somebody was faster", {.status = 409, .body = STATUS("Conflict")}, CR_ERR_CONFLICT, 0},
    {"a right is missing", {.status = 403, .body = STATUS("Forbidden")}, CR_ERR_NONE, 5000},
    {"a webhook breaks", {.status = 500, .body = STATUS("InternalError")}, CR_ERR_NONE, 5000},
    {"an admission rule refuses", {.status = 422, .body = STATUS("Invalid")}, CR_ERR_NONE, 5000},
    {"it is gone", {.status = 404, .body = STATUS("NotFound")}, CR_ERR_NONE, 5000},
    {"who are you?", {.status = 401, .body = STATUS("Unauthorized")}, CR_ERR_NONE, 5000},
    {"too many requests, wait a minute",
     {.status = 429, .header = "Retry-After: 60\r\n", .body = STATUS("TooManyRequests")},
     CR_ERR_NONE,
     60000},
    {"too many requests, wait a second: our own pause is longer",
     {.status = 429, .header = "Retry-After: 1\r\n", .body = STATUS("TooManyRequests")},
     CR_ERR_NONE,
     5000},
    {"unavailable, wait a little",
     {.status = 503, .header = "Retry-After: 7\r\n", .body = STATUS("ServiceUnavailable")},
     CR_ERR_NONE,
     7000},
    {"the line broke: perhaps it was done", {.body = "{", .cut = true}, CR_ERR_NONE, 5000},
};

static void a_refused_restart_is_remembered_but_a_conflict_is_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(restart_answers); i++) {
        const struct refusal_case *c = &restart_answers[i];
        const struct fake_answer script[] = {
            c->answer, {.expect = "PATCH /apis/apps/v1/namespaces/ns/statefulsets/db?", .body = PATCHED}};
        struct fixture f;
        open_fixture(&f, script, 2);
        plan_restart(&f, 0);
        plan_restart(&f, 1);
        int64_t from_ms = cr_clock_monotonic_ms();
        enum cr_error_kind kind = act(&f);
        if (kind != c->returned)
            fail_msg("%s: %s", c->rule, cr_error_kind_name(kind));
        check_refusal(&f, c, from_ms);
        /* The others' acts were done, and what did not happen is not counted. */
        is_counted(&f, c->rule, "certroll_restarts_total{namespace=\"ns\",kind=\"StatefulSet\",result=\"success\"} 1\n",
                   true);
        is_counted(&f, c->rule, "kind=\"Deployment\",result=\"success\"", false);
        assert_ptr_equal(f.gathered.consumers[0].workload, f.workloads[0]);
        CR_CLEANUP(cr_note) struct cr_note other = refusal(&f, 1);
        assert_int_equal(other.count, 0);
        close_fixture(&f);
    }
}

/* --- places --- */

static void on_place(void *arg, const char *policy)
{
    (void)arg;
    fail_msg("nobody waits, and %s is called", policy);
}

static void have_limits(struct fixture *f, int total)
{
    f->actor.reservations =
        cr_reservations_new(&(struct cr_reservations_options){.limits = {.total = total}, .on_place = on_place});
    cr_reservations_expect(f->actor.reservations, &(struct cr_strvec){0}, 0);
}

static struct cr_world_claim claim(struct fixture *f, const char *kind, const char *name, const char *version)
{
    return cr_reservations_claim(f->actor.reservations, "ns/edge", "ns", (struct cr_reserved){kind, name}, version,
                                 cr_clock_monotonic_ms());
}

static void a_place_is_kept_unless_the_restart_was_surely_not_done(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        struct fake_answer answer;
        bool kept, unanswered;
    } cases[] = {
        {"done", {.body = PATCHED}, true, false},
        {"a right is missing", {.status = 403, .body = STATUS("Forbidden")}, false, false},
        {"an admission rule refuses", {.status = 422, .body = STATUS("Invalid")}, false, false},
        {"it is gone", {.status = 404, .body = STATUS("NotFound")}, false, false},
        {"who are you?", {.status = 401, .body = STATUS("Unauthorized")}, false, false},
        {"somebody was faster, perhaps we ourselves", {.status = 409, .body = STATUS("Conflict")}, true, true},
        {"it broke inside", {.status = 500, .body = STATUS("InternalError")}, true, true},
        {"the line broke", {.body = "{", .cut = true}, true, true},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fixture f;
        open_fixture(&f, &cases[i].answer, 1);
        have_limits(&f, 1);
        plan_restart(&f, 0);
        (void)act(&f);
        struct cr_world_claim found = claim(&f, "Deployment", "web", "40");
        if (found.ours != cases[i].kept || found.unanswered != cases[i].unanswered || f.gathered.outdated)
            fail_msg("%s: ours %d, unanswered %d", cases[i].rule, found.ours, found.unanswered);
        cr_reservations_free(f.actor.reservations);
        close_fixture(&f);
    }
}

static void without_a_place_nothing_is_sent_and_the_plan_is_made_again(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {{.expect = "deployments/web?", .body = PATCHED}};
    struct fixture f;
    open_fixture(&f, script, 1);
    have_limits(&f, 1);
    plan_restart(&f, 0);
    plan_restart(&f, 1);
    assert_int_equal(act(&f), CR_ERR_NONE);
    assert_true(f.gathered.outdated);
    assert_false(claim(&f, "StatefulSet", "db", "41").any);
    cr_reservations_free(f.actor.reservations);
    close_fixture(&f);
}

static void evictions_take_their_places_before_their_record(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, NULL, 0);
    have_limits(&f, 1);
    PUSH(f.plan.evicting, f.plan.evicting_len, 1);
    assert_true(cr_act_may_evict(&f.actor, &f.gathered, &f.plan));
    assert_true(claim(&f, "StatefulSet", "db", "41").unanswered);
    f.plan.evicting[0] = 2;
    assert_false(cr_act_may_evict(&f.actor, &f.gathered, &f.plan));
    cr_reservations_free(f.actor.reservations);
    close_fixture(&f);
}

static void pauses_double_up_to_five_minutes_until_it_goes_well(void **state)
{
    (void)state;
    static const int64_t pauses_s[] = {5, 10, 20, 40, 80, 160, 320, 320, 320};
    enum { REFUSED = cr_array_len(pauses_s) };
    struct fake_answer script[REFUSED + 3];
    for (size_t i = 0; i < REFUSED; i++)
        script[i] = (struct fake_answer){.status = 403, .body = STATUS("Forbidden")};
    script[REFUSED] = (struct fake_answer){.status = 409, .body = STATUS("Conflict")};
    script[REFUSED + 1] = (struct fake_answer){.body = PATCHED};
    script[REFUSED + 2] = (struct fake_answer){.status = 403, .body = STATUS("Forbidden")};

    struct fixture f;
    open_fixture(&f, script, cr_array_len(script));
    plan_restart(&f, 0);
    for (size_t i = 0; i < cr_array_len(script); i++) {
        struct cr_error err = {0};
        bool did = false;
        int64_t from_ms = cr_clock_monotonic_ms();
        bool ok = cr_act(&f.actor, &f.gathered, &f.plan, &did, &err);
        int64_t until_ms = cr_clock_monotonic_ms();
        assert_true(ok == (i != REFUSED));
        CR_CLEANUP(cr_note) struct cr_note note = refusal(&f, 0);
        if (i < REFUSED) {
            assert_in_range(note.at_ms, from_ms + pauses_s[i] * 1000, until_ms + pauses_s[i] * 1000);
        } else if (i == REFUSED) { /* a conflict neither counts nor heals */
            assert_int_equal(note.count, REFUSED);
        } else if (i == REFUSED + 1) {
            assert_int_equal(note.count, 0);
        } else { /* again */
            assert_in_range(note.at_ms, from_ms + 5000, until_ms + 5000);
        }
    }
    close_fixture(&f);
}

/* An Event informs the people of the workload; a conflict is not reported. */
static void a_refused_restart_is_reported_once(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect = "PATCH", .status = 409, .body = STATUS("Conflict")},
        {.status = 403, .body = STATUS("Forbidden")},
        {.expect = "POST /api/v1/namespaces/ns/events?",
         .has = "\"type\":\"Warning\",\"reason\":\"RestartFailed\",\"message\":\"cannot restart: PATCH "
                "/apis/apps/v1/namespaces/ns/deployments/web: told so\"",
         .body = "{}"},
        {.expect = "PATCH", .status = 403, .body = STATUS("Forbidden")},
    };
    struct fixture f;
    open_fixture(&f, script, cr_array_len(script));
    f.actor.recorder = f.recorder;
    plan_restart(&f, 0);
    plan_restart(&f, 0);
    plan_restart(&f, 0);
    assert_int_equal(act(&f), CR_ERR_CONFLICT);
    assert_non_null(strstr(fake_api_body(&f.api, 2),
                           "\"involvedObject\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\","
                           "\"namespace\":\"ns\",\"name\":\"web\",\"uid\":\"workload-uid-0\"}"));
    close_fixture(&f);
}

/* The plan that says so acts, and so is made again before a status is written. */
static void what_a_restart_warns_of_is_reported_once_it_is_done(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect = "PATCH", .status = 403, .body = STATUS("Forbidden")},
        {.expect = "POST", .has = "\"reason\":\"RestartFailed\"", .body = "{}"},
        {.expect = "PATCH", .body = "{}"},
        {.expect = "POST", .has = "\"reason\":\"Restarting\"", .body = "{}"},
        {.expect = "POST",
         .has = "\"type\":\"Warning\",\"reason\":\"OnlyPodGoes\",\"message\":\"it goes (CertRotationPolicy ",
         .body = "{}"},
    };
    struct fixture f;
    open_fixture(&f, script, cr_array_len(script));
    f.actor.recorder = f.recorder;
    for (int i = 0; i < 2; i++) {
        plan_restart(&f, 0);
        struct cr_plan_restart *what = &f.plan.restarts[f.plan.restarts_len - 1];
        what->warns = "OnlyPodGoes";
        what->warning = cr_strdup("it goes");
    }
    (void)act(&f);
    close_fixture(&f);
}

/* --- nudges --- */

static void a_nudge_touches_one_annotation_of_one_pod_through_its_status(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect = "PATCH /api/v1/namespaces/ns/pods/two-1/status?fieldManager=certroll ",
         .has = "Content-Type: application/merge-patch+json\r\n",
         .body = "{}"}};
    struct fixture f;
    open_fixture(&f, script, 1);
    plan_nudge(&f, 1, 1);
    int64_t from_ms = cr_clock_wall_ms();
    assert_int_equal(act(&f), CR_ERR_NONE);
    struct cr_pod_memory pod = cr_memory_pod(f.memory, "uid-1-1");
    assert_int_equal(pod.nudges, 1);
    assert_int_equal(pod.nudged_since_ms, SINCE_MS);
    assert_in_range(pod.nudged_ms, from_ms, cr_clock_wall_ms());
    /* A new value each time: the same would be no change. */
    cr_autofree char *expected = cr_asprintf("{metadata: {uid: uid-1-1, annotations: {certroll.dev/refresh: '%lld'}}}",
                                             (long long)pod.nudged_ms);
    is_json("nudge", fake_api_body(&f.api, 0), expected);
    is_counted(&f, "nudged", "nudges{namespace=\"ns\"} 1\n", true);
    close_fixture(&f);
}

static void a_nudge_in_vain_counts_and_fails_nothing(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        {.status = 403, .body = STATUS("Forbidden")},     {.status = 404, .body = STATUS("NotFound")},
        {.status = 409, .body = STATUS("Conflict")},      {.status = 429, .body = STATUS("TooManyRequests")},
        {.status = 500, .body = STATUS("InternalError")},
    };
    for (size_t i = 0; i < cr_array_len(answers); i++) {
        const struct fake_answer script[] = {answers[i], {.expect = "pods/one-1/status", .body = "{}"}};
        struct fixture f;
        open_fixture(&f, script, 2);
        f.actor.recorder = f.recorder;
        plan_nudge(&f, 0, 0);
        plan_nudge(&f, 0, 1);
        assert_int_equal(act(&f), CR_ERR_NONE);
        assert_int_equal(cr_memory_pod(f.memory, "uid-0-0").nudges, 1);
        CR_CLEANUP(cr_note) struct cr_note note = refusal(&f, 0);
        assert_int_equal(note.count, 0);
        is_counted(&f, "nudged", "nudges{namespace=\"ns\"} 1\n", true);
        close_fixture(&f);
    }
}

/* --- evictions --- */

static void a_pod_stays_when_others_have_begun_to_take_some_of_its_budget(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, NULL, 0);
    have_limits(&f, 0);
    f.gathered.moves = cr_reservations_moves(f.actor.reservations, "ns");
    f.gathered.world.budgets.len = 1;
    uint64_t moves = f.gathered.moves;
    const struct cr_reservation other = {
        .policy = "ns/other", .ns = "ns", .workload = {"Deployment", "api"}, .moves = &moves};
    assert_true(cr_reservations_take(f.actor.reservations, &other, 0));
    plan_eviction(&f, 0, 1);
    assert_int_equal(act(&f), CR_ERR_NONE);
    assert_true(f.gathered.outdated);
    assert_int_equal(cr_memory_pod(f.actor.memory, "uid-0-1").evicted_ms, 0);
    cr_reservations_free(f.actor.reservations);
    close_fixture(&f);
}

static void an_eviction_is_meant_for_one_pod_and_counts_for_the_change(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect = "POST /api/v1/namespaces/ns/pods/one-1/eviction?", .status = 201, .body = "{}"},
        {.expect = "POST /api/v1/namespaces/ns/events?", .has = "\"reason\":\"EvictedStale\"", .body = "{}"},
    };
    struct fixture f;
    open_fixture(&f, script, 2);
    f.actor.recorder = f.recorder;
    plan_eviction(&f, 0, 1);
    int64_t from_ms = cr_clock_monotonic_ms();
    assert_int_equal(act(&f), CR_ERR_NONE);
    is_json("eviction", fake_api_body(&f.api, 0),
            "{apiVersion: policy/v1, kind: Eviction, metadata: {name: one-1, namespace: ns},"
            " deleteOptions: {preconditions: {uid: uid-0-1}}}");
    CR_CLEANUP(cr_note) struct cr_note note = evicted(&f, 0);
    assert_int_equal(note.count, 1);
    assert_in_range(note.at_ms, from_ms, cr_clock_monotonic_ms());
    is_counted(&f, "evicted", "evictions{namespace=\"ns\",reason=\"repair\"} 1\n", true);
    close_fixture(&f);
}

/* It is remembered by its UID until the cache shows it; only repairs are counted, which have an end. */
static void an_eviction_for_a_restart_is_reported_as_such(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect = "POST /api/v1/namespaces/ns/pods/one-1/eviction?", .status = 201, .body = "{}"},
        {.expect = "POST /api/v1/namespaces/ns/events?", .has = "\"reason\":\"Evicted\"", .body = "{}"},
    };
    struct fixture f;
    open_fixture(&f, script, 2);
    f.actor.recorder = f.recorder;
    plan_eviction(&f, 0, 1);
    f.plan.evictions[0].repair = false;
    int64_t from_ms = cr_clock_monotonic_ms();
    assert_int_equal(act(&f), CR_ERR_NONE);
    CR_CLEANUP(cr_note) struct cr_note note = evicted(&f, 0);
    assert_int_equal(note.count, 0);
    assert_in_range(cr_memory_pod(f.actor.memory, "uid-0-1").evicted_ms, from_ms, cr_clock_monotonic_ms());
    is_counted(&f, "evicted", "evictions{namespace=\"ns\",reason=\"restart\"} 1\n", true);
    close_fixture(&f);
}

static void a_pod_that_is_gone_needs_no_eviction_and_a_refusal_is_remembered(void **state)
{
    (void)state;
    static const struct refusal_case cases[] = {
        {"gone already", {.status = 404, .body = STATUS("NotFound")}, CR_ERR_NONE, 0},
        {"another pod of that name", {.status = 409, .body = STATUS("Conflict")}, CR_ERR_NONE, 0},
        {"a budget forbids it", {.status = 429, .body = STATUS("TooManyRequests")}, CR_ERR_NONE, 5000, true},
        {"a budget forbids it and says when",
         {.status = 429, .header = "Retry-After: 10\r\n", .body = STATUS("TooManyRequests")},
         CR_ERR_NONE,
         10000,
         true},
        {"two budgets", {.status = 500, .body = STATUS("InternalError")}, CR_ERR_NONE, 5000},
        {"a right is missing", {.status = 403, .body = STATUS("Forbidden")}, CR_ERR_NONE, 5000},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct fake_answer script[] = {cases[i].answer,
                                             {.expect = "pods/two-0/eviction", .status = 201, .body = "{}"}};
        struct fixture f;
        open_fixture(&f, script, 2);
        plan_eviction(&f, 0, 0);
        plan_eviction(&f, 1, 0);
        int64_t from_ms = cr_clock_monotonic_ms();
        enum cr_error_kind kind = act(&f);
        if (kind != cases[i].returned)
            fail_msg("%s: %s", cases[i].rule, cr_error_kind_name(kind));
        check_refusal(&f, &cases[i], from_ms);
        CR_CLEANUP(cr_note) struct cr_note first = evicted(&f, 0);
        CR_CLEANUP(cr_note) struct cr_note second = evicted(&f, 1);
        assert_int_equal(first.count, 0);
        assert_int_equal(second.count, 1);
        is_counted(&f, cases[i].rule, "evictions{namespace=\"ns\",reason=\"repair\"} 1\n", true);
        close_fixture(&f);
    }
}

/* --- all of a plan --- */

static void restarts_come_first_and_no_trouble_stops_the_rest(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        int restart; /* HTTP status of the first restart */
        enum cr_error_kind returned;
    } cases[] = {
        {"all goes well", 200, CR_ERR_NONE},
        {"a refusal", 403, CR_ERR_NONE},
        {"a conflict is told at the end", 409, CR_ERR_CONFLICT},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct fake_answer script[] = {
            {.expect = "PATCH /apis/apps/v1/namespaces/ns/deployments/web?",
             .status = cases[i].restart,
             .body = PATCHED},
            {.expect = "PATCH /apis/apps/v1/namespaces/ns/daemonsets/agent?", .body = PATCHED},
            {.expect = "PATCH /api/v1/namespaces/ns/pods/two-0/status?", .status = 500, .body = "{}"},
            {.expect = "PATCH /api/v1/namespaces/ns/pods/two-1/status?", .body = "{}"},
            {.expect = "POST /api/v1/namespaces/ns/pods/three-0/eviction?", .status = 429, .body = "{}"},
            {.expect = "POST /api/v1/namespaces/ns/pods/two-0/eviction?", .status = 201, .body = "{}"},
        };
        struct fixture f;
        open_fixture(&f, script, cr_array_len(script));
        plan_eviction(&f, 2, 0);
        plan_eviction(&f, 1, 0);
        plan_nudge(&f, 1, 0);
        plan_nudge(&f, 1, 1);
        plan_restart(&f, 0);
        plan_restart(&f, 2);
        enum cr_error_kind kind = act(&f);
        if (kind != cases[i].returned)
            fail_msg("%s: %s", cases[i].rule, cr_error_kind_name(kind));
        close_fixture(&f);
    }
}

static void nothing_to_do_is_nothing_done(void **state)
{
    (void)state;
    struct fixture f;
    struct cr_error err = {0};
    bool did = true;
    open_fixture(&f, NULL, 0);
    assert_true(cr_act(&f.actor, &f.gathered, &f.plan, &did, &err));
    assert_false(did);
    cr_act_say(&f.actor, &f.gathered, &f.plan);
    close_fixture(&f);
}

static void cancel(void *client)
{
    cr_client_cancel(client);
}

/* Shutting down is no fault of the API server's. */
static void what_is_cancelled_is_reported_and_not_remembered(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, NULL, 0);
    plan_restart(&f, 0);
    plan_eviction(&f, 1, 0);
    cr_loop_post(f.loop, cancel, f.client);
    assert_int_equal(act(&f), CR_ERR_CANCELLED);
    for (size_t i = 0; i < CONSUMERS; i++) {
        CR_CLEANUP(cr_note) struct cr_note note = refusal(&f, i);
        assert_int_equal(note.count, 0);
    }
    close_fixture(&f);
}

/* --- Events --- */

static void an_event_that_fails_fails_nothing(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect = "PATCH", .body = PATCHED},
        {.expect = "POST /api/v1/namespaces/ns/events?", .status = 403, .body = STATUS("Forbidden")},
        {.expect = "pods/two-0/eviction", .status = 201, .body = "{}"},
        {.expect = "POST /api/v1/namespaces/ns/events?", .body = "{", .cut = true},
    };
    struct fixture f;
    open_fixture(&f, script, cr_array_len(script));
    f.actor.recorder = f.recorder;
    plan_restart(&f, 0);
    plan_eviction(&f, 1, 0);
    assert_int_equal(act(&f), CR_ERR_NONE);
    for (size_t i = 0; i < CONSUMERS; i++) {
        CR_CLEANUP(cr_note) struct cr_note note = refusal(&f, i);
        assert_int_equal(note.count, 0);
    }
    is_counted(&f, "restarted", "kind=\"Deployment\",result=\"success\"} 1\n", true);
    close_fixture(&f);
}

static void each_event_is_said_of_what_it_is_about(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.status = 500, .body = "{}"}, /* best effort: the next is said all the same */
        {.has = "\"involvedObject\":{\"apiVersion\":\"certroll.dev/v1alpha1\",\"kind\":\"CertRotationPolicy\","
                "\"namespace\":\"ns\",\"name\":\"edge\",\"uid\":\"policy-uid\"},\"type\":\"Normal\",\"reason\":"
                "\"Converged\"",
         .body = "{}"},
        {.has = "\"involvedObject\":{\"apiVersion\":\"apps/v1\",\"kind\":\"StatefulSet\",\"namespace\":\"ns\","
                "\"name\":\"db\",\"uid\":\"workload-uid-1\"},\"type\":\"Warning\",\"reason\":\"Stale\",\"message\":"
                "\"old\"",
         .body = "{}"},
    };
    struct fixture f;
    open_fixture(&f, script, cr_array_len(script));
    f.actor.recorder = f.recorder;
    PUSH(f.plan.events, f.plan.events_len, .reason = "Rotating", .message = cr_strdup("a"));
    PUSH(f.plan.events, f.plan.events_len, .reason = "Converged", .message = cr_strdup("b"));
    PUSH(f.plan.events, f.plan.events_len, .warning = true, .about = CR_ABOUT_WORKLOAD, .consumer = 1,
         .reason = "Stale", .message = cr_strdup("old"), .secret = cr_strdup("web-tls"), .rotation = "3f2a");
    cr_act_say(&f.actor, &f.gathered, &f.plan);
    assert_int_equal(atomic_load(&f.api.answered), 3);
    close_fixture(&f);
}

/* --- status --- */

static struct cr_policy_status a_status(void)
{
    struct cr_policy_status status = {.observed_generation = 3};
    struct cr_secret_status *secret = cr_status_secret_add(&status, "web-tls");
    secret->has_settled = true;
    secret->settled.has_leaf = true;
    memset(secret->settled.leaf, 'a', CR_SHA256_HEX - 1);
    secret->settled.not_after_ms = INT64_C(1900000000000);
    cr_strset(&secret->observed_resource_version, "7");
    cr_status_consumer_add(&status, "one")->decision = CR_DECISION_RESTART;
    cr_status_condition(&status, "Ready", true, "Ready", "fine", 3, 1000);
    return status;
}

static void a_status_that_does_not_differ_is_not_written(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {{.status = 500, .body = "{}"}};
    struct fixture f;
    struct cr_error err = {0};
    CR_CLEANUP(cr_policy_status) struct cr_policy_status before = a_status();
    CR_CLEANUP(cr_policy_status) struct cr_policy_status after = {0};
    cr_policy_status_copy(&after, &before);
    after.conditions[0].transition_ms += 1; /* less than what is written */
    struct cr_json *written = cr_json_new_null();
    struct cr_json *mine = written;
    open_fixture(&f, script, 1);
    assert_true(cr_act_status(&f.actor, f.policy, "12", &before, &after, &written, &err));
    assert_null(written);
    assert_int_equal(atomic_load(&f.api.answered), 0);
    cr_json_free(mine);
    close_fixture(&f);
}

static void a_status_is_written_whole_for_one_version_and_nulls_what_is_gone(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect =
             "PATCH /apis/certroll.dev/v1alpha1/namespaces/ns/certrotationpolicies/edge/status?fieldManager=certroll ",
         .has = "Content-Type: application/merge-patch+json\r\n",
         .body = "{\"metadata\":{\"resourceVersion\":\"13\"}}"}};
    struct fixture f;
    struct cr_error err = {0};
    CR_CLEANUP(cr_policy_status) struct cr_policy_status before = a_status();
    CR_CLEANUP(cr_policy_status) struct cr_policy_status after = {.observed_generation = 4};
    CR_CLEANUP(cr_json) struct cr_json *written = NULL;
    open_fixture(&f, script, 1);
    assert_true(cr_act_status(&f.actor, f.policy, "12", &before, &after, &written, &err));
    assert_string_equal(cr_obj_resource_version(written), "13");

    const char *body = fake_api_body(&f.api, 0);
    CR_CLEANUP(cr_json) struct cr_json *patch = cr_json_parse(body, strlen(body), &err);
    CR_CLEANUP(cr_json) struct cr_json *status = cr_json_take(patch, "status");
    CR_CLEANUP(cr_json) struct cr_json *expected = test_yaml("{metadata: {uid: policy-uid, resourceVersion: '12'}}");
    assert_true(cr_json_equal(patch, expected));

    /* What stood there before and does not now is named in the patch: empty, or null. */
    assert_true(cr_json_is_null(cr_json_get(status, "expires")));
    CR_CLEANUP(cr_json) struct cr_json *was = cr_policy_status_encode(&before);
    for (const struct cr_json *member = cr_json_first(was); member; member = cr_json_next(member))
        if (!cr_json_get(status, cr_json_key(member)))
            fail_msg("%s stays as it was", cr_json_key(member));
    static const char *const lists[] = {"secrets", "consumers", "conditions", "history"};
    for (size_t i = 0; i < cr_array_len(lists); i++) {
        assert_true(cr_json_is_array(cr_json_get(status, lists[i])));
        assert_int_equal(cr_json_len(cr_json_get(status, lists[i])), 0);
    }
    close_fixture(&f);
}

static void a_status_that_is_refused_is_reported(void **state)
{
    (void)state;
    static const struct {
        struct fake_answer answer;
        enum cr_error_kind kind;
    } cases[] = {
        {{.status = 409, .body = STATUS("Conflict")}, CR_ERR_CONFLICT},
        {{.status = 404, .body = STATUS("NotFound")}, CR_ERR_NOT_FOUND},
        {{.status = 403, .body = STATUS("Forbidden")}, CR_ERR_FORBIDDEN},
        {{.status = 422, .body = STATUS("Invalid")}, CR_ERR_INVALID},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fixture f;
        struct cr_error err = {0};
        CR_CLEANUP(cr_policy_status) struct cr_policy_status before = {0};
        CR_CLEANUP(cr_policy_status) struct cr_policy_status after = a_status();
        struct cr_json *written = NULL;
        open_fixture(&f, &cases[i].answer, 1);
        assert_false(cr_act_status(&f.actor, f.policy, "12", &before, &after, &written, &err));
        assert_null(written);
        assert_int_equal(err.kind, cases[i].kind);
        assert_true(cr_starts_with(err.text, "cannot write the status of CertRotationPolicy ns/edge: PATCH "));
        assert_true(cr_ends_with(err.text, "told so"));
        close_fixture(&f);
    }
}

/* Until then nothing is planned: by what the cache has, the same would be done once more. */
static void what_was_written_is_waited_for_in_the_cache(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect = "/deployments/web?",
         .body = "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"web\",\"uid\":\"u1\",\"resourceVersion\":\"99\"}}"},
        {.expect = "/certrotationpolicies/edge/status?",
         .body = "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"edge\",\"uid\":\"u2\",\"resourceVersion\":\"13\"}}"},
    };
    struct fixture f;
    struct cr_error err = {0};
    bool did = false;
    CR_CLEANUP(cr_own_writes) struct cr_own_writes *own = cr_own_writes_new();
    CR_CLEANUP(cr_policy_status) struct cr_policy_status before = {0};
    CR_CLEANUP(cr_policy_status) struct cr_policy_status after = {.observed_generation = 4};
    CR_CLEANUP(cr_json) struct cr_json *written = NULL;
    open_fixture(&f, script, cr_array_len(script));
    f.actor.own_writes = own;
    plan_restart(&f, 0);
    assert_true(cr_act(&f.actor, &f.gathered, &f.plan, &did, &err));
    assert_true(test_is_awaited(own, "ns/edge", "Deployment", "u1"));
    cr_own_writes_forget(own, "ns/edge");
    assert_true(cr_act_status(&f.actor, f.policy, "12", &before, &after, &written, &err));
    assert_true(test_is_awaited(own, "ns/edge", "CertRotationPolicy", "u2"));
    close_fixture(&f);
}

/* --- probes --- */

static void serve_plain(struct test_conn *conn, void *arg)
{
    (void)arg;
    test_conn_puts(conn, "220 mail.example ESMTP\r\n");
    test_conn_wait_closed(conn);
}

struct probe_case {
    const char *rule;
    const char *ip;
    const char *host; /* hostIP */
    int port;         /* 0: the server's */
    bool tried;
};

static void ask_at(struct fixture *f, size_t consumer, int port)
{
    f->policy->consumers[consumer].verify.endpoints[0].port = port;
}

static struct cr_sighting sighting_of(struct fixture *f, size_t consumer, const char *uid)
{
    struct cr_sighting seen;
    cr_memory_sightings(f->memory, uid, 77, &f->policy->consumers[consumer].verify, &seen);
    return seen;
}

static void probe(const struct probe_case *c, struct test_server *server, const char *api_server, struct fixture *f)
{
    open_fixture(f, NULL, 0);
    if (api_server) {
        cr_loop_stop(f->loop);
        pthread_join(f->thread, NULL);
        cr_client_free(f->client);
        struct cr_kube_config *config = cr_new(struct cr_kube_config);
        config->server = cr_strdup(api_server);
        config->ns = cr_strdup("default");
        config->source = cr_strdup("test");
        f->client = cr_client_new(f->loop, config, "certroll-test");
        f->actor.client = f->client;
        assert_int_equal(pthread_create(&f->thread, NULL, run_loop, f->loop), 0);
    }
    cr_json_set_string(cr_json_object_in(f->pod_json[0][0], "status"), "hostIP", c->host);
    f->pods[0][0].ip = c->ip;
    ask_at(f, 0, c->port ? c->port : test_server_port(server));
    plan_probe(f, 0, 0);
    int64_t from_ms = cr_clock_wall_ms();
    assert_int_equal(act(f), CR_ERR_NONE);
    struct cr_sighting seen = sighting_of(f, 0, "uid-0-0");
    assert_in_range(seen.at_ms, from_ms, cr_clock_wall_ms());
    is_counted(f, c->rule, "outcome=\"refused\"} 1\n", !c->tried);
    if (!c->tried && (seen.seen != CR_SEEN_UNREACHABLE || seen.leaf[0]))
        fail_msg("%s: seen %d %s", c->rule, (int)seen.seen, seen.leaf);
}

/* An account that can write a pod's status must not be able to point us at the node, at the API server or at ourselves.
 */
static void probes_never_go_where_no_pod_of_its_own_can_be(void **state)
{
    (void)state;
    static const struct probe_case cases[] = {
        {"no address yet", NULL, "10.1.1.1", 0, false},
        {"no address at all", "", "10.1.1.1", 0, false},
        {"a name", "localhost", "10.1.1.1", 0, false},
        {"loopback", "127.0.0.1", "10.1.1.1", 0, false},
        {"loopback of IPv6", "::1", "10.1.1.1", 0, false},
        {"loopback, mapped", "::ffff:127.0.0.1", "10.1.1.1", 0, false},
        {"unspecified, which is loopback", "0.0.0.0", "10.1.1.1", 0, false},
        {"link-local: the cloud's metadata", "169.254.169.254", "10.1.1.1", 0, false},
        {"loopback of IPv6, compatible", "::127.0.0.1", "10.1.1.1", 0, false},
        {"unspecified of IPv6", "::", "10.1.1.1", 0, false},
        {"link-local of IPv6", "fe80::1", "10.1.1.1", 0, false},
        {"link-local with a zone", "fe80::1%lo", "10.1.1.1", 0, false},
        {"any address with a zone", "fd00::1%lo", "10.1.1.1", 0, false},
        {"multicast of IPv6", "ff02::1", "10.1.1.1", 0, false},
        {"an IPv4 address, mapped", "::ffff:" POD_ADDRESS, "10.1.1.1", 0, false},
        {"an IPv4 address, translated", "64:ff9b::" POD_ADDRESS, "10.1.1.1", 0, false},
        {"multicast", "224.0.0.1", "10.1.1.1", 0, false},
        {"broadcast", "255.255.255.255", "10.1.1.1", 0, false},
        {"etcd on the node", POD_ADDRESS, POD_ADDRESS, 2379, false},
        {"etcd's peers", POD_ADDRESS, POD_ADDRESS, 2380, false},
        {"the API server on the node", POD_ADDRESS, POD_ADDRESS, 6443, false},
        {"the kubelet", POD_ADDRESS, POD_ADDRESS, 10250, false},
        {"the controller manager", POD_ADDRESS, POD_ADDRESS, 10257, false},
        {"the scheduler", POD_ADDRESS, POD_ADDRESS, 10259, false},
        {"the kubelet's old read-only port", POD_ADDRESS, POD_ADDRESS, 10255, false},
        {"kube-proxy's health", POD_ADDRESS, POD_ADDRESS, 10256, false},
        {"the kubelet over IPv6", "fd00::1", "fd00:0::1", 10250, false},
        {"another port of a pod in the host's network", POD_ADDRESS, POD_ADDRESS, 0, true},
        {"a pod of its own network", POD_ADDRESS, "10.1.1.1", 0, true},
        {"a pod of its own network with that port", POD_ADDRESS, "10.1.1.1", 6443, true},
        {"a pod of a node that is not known", POD_ADDRESS, NULL, 0, true},
    };
    if (!own_network)
        skip();
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.cn = "web"});
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.cert = cert, .address = POD_ADDRESS});
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fixture f;
        unsigned accepted = test_server_accepted(server);
        probe(&cases[i], server, NULL, &f);
        bool reached = test_server_accepted(server) != accepted;
        if (reached != (cases[i].tried && !cases[i].port))
            fail_msg("%s: reached %d", cases[i].rule, reached);
        close_fixture(&f);
    }
}

/* A node has an address of each family, and a pod's status may be older than its host's. */
static void a_pod_in_the_hosts_network_is_known_by_more_than_one_address(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *pod;
        bool tried;
    } cases[] = {
        {"one of the host's other addresses",
         "{status: {hostIP: 10.1.1.1, hostIPs: [{ip: 10.1.1.1}, {ip: " POD_ADDRESS "}]}}", false},
        {"said by its spec", "{spec: {hostNetwork: true}, status: {hostIP: 10.1.1.1}}", false},
        {"of its own network", "{spec: {hostNetwork: false}, status: {hostIP: 10.1.1.1, hostIPs: [{ip: 10.1.1.1}]}}",
         true},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fixture f;
        open_fixture(&f, NULL, 0);
        cr_json_free(f.pod_json[0][0]);
        f.pod_json[0][0] = test_yaml(cases[i].pod);
        f.pods[0][0].pod = f.pod_json[0][0];
        ask_at(&f, 0, 10250);
        plan_probe(&f, 0, 0);
        assert_int_equal(act(&f), CR_ERR_NONE);
        is_counted(&f, cases[i].rule, "outcome=\"refused\"} 1\n", !cases[i].tried);
        if (!cases[i].tried)
            assert_string_equal(sighting_of(&f, 0, "uid-0-0").words, "not an address that may be asked");
        close_fixture(&f);
    }
}

static void probes_never_go_to_the_api_server(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *server; /* with the port, when it has a "%d" */
        int port;
        bool tried;
    } cases[] = {
        {"its address and port", "https://" POD_ADDRESS ":%d", 0, false},
        {"with a path", "https://" POD_ADDRESS ":%d/clusters/one", 0, false},
        {"its address at the port of https", "https://" POD_ADDRESS, 443, false},
        {"another port of it", "https://" POD_ADDRESS ":1", 0, true},
        {"another address", "https://10.77.0.99:%d", 0, true},
        {"an address that begins the same", "https://" POD_ADDRESS "9:%d", 0, true},
    };
    if (!own_network)
        skip();
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.cn = "web"});
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.cert = cert, .address = POD_ADDRESS});
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const char *colon = strstr(cases[i].server, ":%d");
        cr_autofree char *url = colon ? cr_asprintf("%.*s:%d%s", (int)(colon - cases[i].server), cases[i].server,
                                                    test_server_port(server), colon + 3)
                                      : cr_strdup(cases[i].server);
        struct probe_case c = {cases[i].rule, POD_ADDRESS, "10.1.1.1", cases[i].port, cases[i].tried};
        struct fixture f;
        probe(&c, server, url, &f);
        close_fixture(&f);
    }
}

static void what_a_probe_saw_is_remembered(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.cn = "web"});
    struct raw_flight alone = {.cert = cert, .certificate_only = true};
    struct raw_flight chain = {.cert = cert, .copies = 40};
    const struct {
        const char *rule;
        struct test_server_options options;
        bool closed;
        enum cr_probe_seen seen;
        const char *counted;
    } cases[] = {
        {"a leaf", {.cert = cert, .address = POD_ADDRESS}, false, CR_SEEN_LEAF, "outcome=\"served\"} 1\n"},
        {"no TLS", {.serve = serve_plain, .address = POD_ADDRESS}, false, CR_SEEN_NOT_TLS, "outcome=\"not_tls\"} 1\n"},
        {"nobody there", {.cert = cert}, true, CR_SEEN_UNREACHABLE, "outcome=\"unreachable\"} 1\n"},
        {"a certificate alone",
         {.serve = raw_tls_serve, .arg = &alone, .address = POD_ADDRESS},
         false,
         CR_SEEN_UNPROVED,
         "outcome=\"unproved\"} 1\n"},
        {"a chain that is too long",
         {.serve = raw_tls_serve, .arg = &chain, .address = POD_ADDRESS},
         false,
         CR_SEEN_TOO_COSTLY,
         "outcome=\"too_costly\"} 1\n"},
    };
    if (!own_network)
        skip();
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(test_server) struct test_server *server = test_server_new(&cases[i].options);
        const struct probe_case c = {cases[i].rule, POD_ADDRESS, "10.1.1.1", 0, true};
        struct fixture f;
        probe(&c, server, NULL, &f);
        struct cr_sighting memory = sighting_of(&f, 0, "uid-0-0");
        if (memory.seen != cases[i].seen || (strlen(memory.leaf) == 64) != (cases[i].seen == CR_SEEN_LEAF))
            fail_msg("%s: seen %d '%s'", cases[i].rule, (int)memory.seen, memory.leaf);
        is_counted(&f, cases[i].rule, cases[i].counted, true);
        close_fixture(&f);
    }
}

/* Each pod's answer is that pod's, also when some are left out. */
static void probes_of_many_pods_are_distinguished(void **state)
{
    (void)state;
    if (!own_network)
        skip();
    CR_CLEANUP(test_cert) struct test_cert *first = test_cert_new(&(struct test_cert_spec){.cn = "first"});
    CR_CLEANUP(test_cert) struct test_cert *second = test_cert_new(&(struct test_cert_spec){.cn = "second"});
    CR_CLEANUP(test_server)
    struct test_server *one = test_server_new(&(struct test_server_options){.cert = first, .address = POD_ADDRESS});
    CR_CLEANUP(test_server)
    struct test_server *two = test_server_new(&(struct test_server_options){.cert = second, .address = POD_ADDRESS});
    struct fixture f;
    open_fixture(&f, NULL, 0);
    ask_at(&f, 0, test_server_port(one));
    ask_at(&f, 1, test_server_port(two));
    f.pods[0][0].ip = "127.0.0.1"; /* left out */
    plan_probe(&f, 0, 0);
    plan_probe(&f, 1, 1);
    plan_probe(&f, 0, 1);
    assert_int_equal(act(&f), CR_ERR_NONE);
    struct cr_sighting left_out = sighting_of(&f, 0, "uid-0-0");
    struct cr_sighting by_one = sighting_of(&f, 0, "uid-0-1");
    struct cr_sighting by_two = sighting_of(&f, 1, "uid-1-1");
    assert_int_equal(left_out.seen, CR_SEEN_UNREACHABLE);
    assert_int_equal(by_one.seen, CR_SEEN_LEAF);
    assert_int_equal(by_two.seen, CR_SEEN_LEAF);
    assert_string_not_equal(by_one.leaf, by_two.leaf);
    struct cr_probe_result alone = {0};
    cr_tls_probe(&(struct cr_probe_target){.address = POD_ADDRESS, .port = test_server_port(one)}, 1, 5000, &alone);
    assert_string_equal(by_one.leaf, alone.leaf);
    is_counted(&f, "two", "outcome=\"served\"} 2\n", true);
    close_fixture(&f);
}

/* One pod, asked at two ports: each answer is kept for itself. */
static void each_endpoint_of_a_pod_is_asked(void **state)
{
    (void)state;
    if (!own_network)
        skip();
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.cn = "web"});
    CR_CLEANUP(test_server)
    struct test_server *tls = test_server_new(&(struct test_server_options){.cert = cert, .address = POD_ADDRESS});
    CR_CLEANUP(test_server)
    struct test_server *mail =
        test_server_new(&(struct test_server_options){.serve = serve_plain, .address = POD_ADDRESS});
    struct fixture f;
    open_fixture(&f, NULL, 0);
    struct cr_policy_verify *verify = &f.policy->consumers[0].verify;
    verify->endpoints = cr_reallocarray(verify->endpoints, 2, sizeof *verify->endpoints);
    verify->endpoints[1] = (struct cr_verify_endpoint){.port = test_server_port(mail)};
    verify->endpoints_len = 2;
    ask_at(&f, 0, test_server_port(tls));
    plan_probe(&f, 0, 0);
    assert_int_equal(act(&f), CR_ERR_NONE);
    struct cr_sighting seen[2];
    cr_memory_sightings(f.memory, "uid-0-0", 77, verify, seen);
    assert_int_equal(seen[0].seen, CR_SEEN_LEAF);
    assert_string_equal(seen[0].words, "");
    assert_int_equal(seen[1].seen, CR_SEEN_NOT_TLS);
    assert_non_null(strstr(seen[1].words, "which is not TLS"));
    close_fixture(&f);
}

/* The Secret is fetched once for the round of a consumer, and what is wrong with it is reported for each pod. */
static void a_client_is_read_from_its_secret_for_each_round(void **state)
{
    (void)state;
    if (!own_network)
        skip();
    CR_CLEANUP(test_cert) struct test_cert *ca = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
    CR_CLEANUP(test_cert) struct test_cert *own = test_cert_new(&(struct test_cert_spec){.cn = "own", .issuer = ca});
    CR_CLEANUP(test_cert) struct test_cert *stranger = test_cert_new(&(struct test_cert_spec){.cn = "stranger"});
    cr_autofree char *own_crt = cr_base64_encode(own->cert_pem, strlen(own->cert_pem));
    cr_autofree char *own_key = cr_base64_encode(own->key_pem, strlen(own->key_pem));
    cr_autofree char *strange_crt = cr_base64_encode(stranger->cert_pem, strlen(stranger->cert_pem));
    cr_autofree char *strange_key = cr_base64_encode(stranger->key_pem, strlen(stranger->key_pem));
    cr_autofree char *good = cr_asprintf("{\"data\":{\"tls.crt\":\"%s\",\"tls.key\":\"%s\"}}", own_crt, own_key);
    cr_autofree char *bad = cr_asprintf("{\"data\":{\"tls.crt\":\"%s\",\"tls.key\":\"%s\"}}", strange_crt, strange_key);
    cr_autofree char *mixed = cr_asprintf("{\"data\":{\"tls.crt\":\"%s\",\"tls.key\":\"%s\"}}", own_crt, strange_key);
    const struct {
        const char *rule;
        struct fake_answer answer;
        enum cr_client_verdict verdict;
        const char *words;
    } cases[] = {
        {"of the server's CA", {.body = good}, CR_CLIENT_ACCEPTED, ""},
        {"of another CA", {.body = bad}, CR_CLIENT_REFUSED, "alert "},
        {"a key of another certificate", {.body = mixed}, CR_CLIENT_REFUSED, "its key is not that of its certificate"},
        {"nothing in it", {.body = "{\"data\":{}}"}, CR_CLIENT_REFUSED, "it has no certificate and key"},
        {"no base64", {.body = "{\"data\":{\"tls.crt\":\"?\"}}"}, CR_CLIENT_REFUSED, "an entry is not base64"},
        {"it does not exist",
         {.status = 404, .body = "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"message\":\"no such\"}"},
         CR_CLIENT_REFUSED,
         "no such"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fake_answer script[] = {cases[i].answer};
        script[0].expect = "GET /api/v1/namespaces/ns/secrets/probe ";
        CR_CLEANUP(test_server)
        struct test_server *server =
            test_server_new(&(struct test_server_options){.cert = own, .client_ca = ca, .address = POD_ADDRESS});
        struct fixture f;
        open_fixture(&f, script, 1);
        cr_strset(&f.policy->consumers[0].verify.client_secret_name, "probe");
        ask_at(&f, 0, test_server_port(server));
        plan_probe(&f, 0, 0);
        plan_probe(&f, 0, 1);
        assert_int_equal(act(&f), CR_ERR_NONE);
        for (int pod = 0; pod < PODS; pod++) {
            struct cr_sighting seen = sighting_of(&f, 0, pod ? "uid-0-1" : "uid-0-0");
            if (seen.seen != CR_SEEN_LEAF || seen.client != cases[i].verdict || !strstr(seen.words, cases[i].words))
                fail_msg("%s: seen %d, client %d, '%s'", cases[i].rule, (int)seen.seen, (int)seen.client, seen.words);
        }
        close_fixture(&f);
    }
}

int main(void)
{
    own_network = test_own_network(POD_ADDRESS);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restart_is_meant_for_one_state_of_one_object_and_sets_our_annotations_only),
        cmocka_unit_test(an_argo_rollout_is_restarted_beside_its_template),
        cmocka_unit_test(a_refused_restart_is_remembered_but_a_conflict_is_not),
        cmocka_unit_test(a_place_is_kept_unless_the_restart_was_surely_not_done),
        cmocka_unit_test(without_a_place_nothing_is_sent_and_the_plan_is_made_again),
        cmocka_unit_test(evictions_take_their_places_before_their_record),
        cmocka_unit_test(a_pod_stays_when_others_have_begun_to_take_some_of_its_budget),
        cmocka_unit_test(pauses_double_up_to_five_minutes_until_it_goes_well),
        cmocka_unit_test(a_refused_restart_is_reported_once),
        cmocka_unit_test(what_a_restart_warns_of_is_reported_once_it_is_done),
        cmocka_unit_test(a_nudge_touches_one_annotation_of_one_pod_through_its_status),
        cmocka_unit_test(a_nudge_in_vain_counts_and_fails_nothing),
        cmocka_unit_test(an_eviction_is_meant_for_one_pod_and_counts_for_the_change),
        cmocka_unit_test(an_eviction_for_a_restart_is_reported_as_such),
        cmocka_unit_test(a_pod_that_is_gone_needs_no_eviction_and_a_refusal_is_remembered),
        cmocka_unit_test(restarts_come_first_and_no_trouble_stops_the_rest),
        cmocka_unit_test(nothing_to_do_is_nothing_done),
        cmocka_unit_test(what_is_cancelled_is_reported_and_not_remembered),
        cmocka_unit_test(an_event_that_fails_fails_nothing),
        cmocka_unit_test(each_event_is_said_of_what_it_is_about),
        cmocka_unit_test(a_status_that_does_not_differ_is_not_written),
        cmocka_unit_test(a_status_is_written_whole_for_one_version_and_nulls_what_is_gone),
        cmocka_unit_test(a_status_that_is_refused_is_reported),
        cmocka_unit_test(what_was_written_is_waited_for_in_the_cache),
        cmocka_unit_test(probes_never_go_where_no_pod_of_its_own_can_be),
        cmocka_unit_test(probes_never_go_to_the_api_server),
        cmocka_unit_test(what_a_probe_saw_is_remembered),
        cmocka_unit_test(a_pod_in_the_hosts_network_is_known_by_more_than_one_address),
        cmocka_unit_test(probes_of_many_pods_are_distinguished),
        cmocka_unit_test(each_endpoint_of_a_pod_is_asked),
        cmocka_unit_test(a_client_is_read_from_its_secret_for_each_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
