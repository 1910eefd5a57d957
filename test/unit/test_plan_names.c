/* Leaves that are not for a name in use: a policy with two Secrets and one workload, over time. */
#include "policy/rules/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "support/gates.h"
#include "support/recorded.h"
#include "support/yamltext.h"

#define START INT64_C(1000000000)
enum { DAY_MS = 24 * 3600 * 1000, SECRETS = 2 };

struct cluster {
    struct cr_policy *policy;
    struct cr_catalogue *catalogue;
    struct cr_policy_status status;
    struct cr_material material[SECRETS];
    struct cr_world_secret secrets[SECRETS];
    struct cr_json *workload;
    struct cr_json *pod_json;
    struct cr_sighting sighting;
    struct cr_world_pod pod;
    struct cr_world_consumer consumer;
    /* Of the first Secret: its annotation, and hosts of Ingresses and Gateways. */
    const char *on_missing_name;
    const struct cr_world_host *hosts;
    size_t hosts_len;
    struct cr_world_beyond beyond;
    int64_t now_ms;
    struct cr_plan plan;
};

/* verify: as in the policy, "{port: 1, serverName: a}". volumes: of the workload, Secrets by name. */
static void open_cluster(struct cluster *c, const char *verify, const char *volumes)
{
    struct cr_error err = {0};
    cr_autofree char *text =
        cr_asprintf("metadata: {name: demo, namespace: ns, uid: policy-uid, resourceVersion: '1', generation: 3}\n"
                    "spec:\n"
                    "  secrets: [{name: web}, {name: admin}]\n"
                    "  restart: {coalesce: 0s}\n"
                    "  consumers: [{name: app, targetRef: {kind: Deployment, name: app}, verify: %s}]\n",
                    verify);
    cr_autofree char *workload =
        cr_asprintf("metadata: {name: app, namespace: ns, uid: app-uid, resourceVersion: '7', generation: 1}\n"
                    "spec:\n"
                    "  replicas: 1\n"
                    "  template:\n"
                    "    metadata: {annotations: {}}\n"
                    "    spec:\n"
                    "      containers: [{name: app, image: 'acme/app:1', volumeMounts: [{name: web, mountPath: /w},"
                    " {name: admin, mountPath: /a}, {name: other, mountPath: /o}], env: [{name: P, valueFrom: "
                    "{secretKeyRef: {name: password, key: p}}}]}]\n"
                    "      volumes: %s\n"
                    "status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, "
                    "availableReplicas: 1}\n",
                    volumes);
    CR_CLEANUP(cr_json) struct cr_json *policy = test_yaml(text);
    *c = (struct cluster){.now_ms = START, .catalogue = cr_catalogue_builtin(&err)};
    c->policy = cr_policy_decode(policy, &err);
    if (!c->policy)
        fail_msg("%s", err.text);
    c->workload = test_yaml(workload);
    c->consumer = (struct cr_world_consumer){.found = true, .workload = c->workload};
}

static void close_cluster(struct cluster *c)
{
    cr_plan_dispose(&c->plan);
    cr_policy_status_dispose(&c->status);
    cr_policy_free(c->policy);
    cr_catalogue_free(c->catalogue);
    cr_json_free(c->workload);
    cr_json_free(c->pod_json);
    for (size_t i = 0; i < SECRETS; i++)
        cr_material_dispose(&c->material[i]);
}

#define AUTO_CLUSTER __attribute__((cleanup(close_cluster))) struct cluster

#define WEB   "{name: web, secret: {secretName: web}}"
#define ADMIN "{name: admin, secret: {secretName: admin}}"
#define OTHER "{name: other, secret: {secretName: other}}"

/* names: of the leaf, with blanks between; NULL: there is no leaf, but a CA. */
static void put(struct cluster *c, size_t secret, const char *leaf, const char *names)
{
    struct cr_material *m = &c->material[secret];
    cr_material_dispose(m);
    *m = (struct cr_material){.has_leaf = names != NULL};
    m->not_before_ms = START - DAY_MS;
    m->not_after_ms = names ? START + 30LL * DAY_MS : 0;
    cr_autofree char *id = cr_asprintf("%zu %s", secret, leaf);
    if (names) {
        cr_sha256_hex(id, strlen(id), m->leaf);
        memcpy(m->chain, m->leaf, sizeof m->chain);
        memcpy(m->key, m->leaf, sizeof m->key);
        memcpy(m->issuer, m->leaf, sizeof m->issuer);
    } else {
        m->trust = cr_calloc(1, sizeof *m->trust);
        m->trust_len = 1;
        cr_sha256_hex(id, strlen(id), m->trust[0].fingerprint);
        memcpy(m->trust[0].identity, m->trust[0].fingerprint, sizeof m->trust[0].identity);
        m->trust[0].not_after_ms = START + 30LL * DAY_MS;
    }
    cr_autofree char *list = cr_strdup(cr_or_empty(names));
    char *rest = NULL;
    for (char *name = strtok_r(list, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
        cr_strvec_add(&m->names, name);
    c->secrets[secret] = (struct cr_world_secret){.found = true, .resource_version = leaf, .material = m};
}

static const struct cr_plan *plan(struct cluster *c)
{
    cr_plan_dispose(&c->plan);
    c->secrets[0].on_missing_name = c->on_missing_name;
    c->secrets[0].hosts = c->hosts;
    c->secrets[0].hosts_len = c->hosts_len;
    struct cr_world world = {.policy = c->policy,
                             .status = &c->status,
                             .secrets = c->secrets,
                             .consumers = &c->consumer,
                             .catalogue = c->catalogue,
                             .beyond = c->beyond,
                             .now_ms = c->now_ms};
    cr_plan_make(&world, &c->plan);
    gates_check(&c->plan);
    return &c->plan;
}

static void record(struct cluster *c)
{
    test_record_status(&c->plan.status, &c->status);
}

/* Until nothing must be on record first. */
static const struct cr_plan *due(struct cluster *c)
{
    for (int i = 0; i < 5; i++) {
        if (!plan(c)->record_first)
            return &c->plan;
        record(c);
    }
    fail_msg("the plan wants to record for ever");
    return &c->plan;
}

static const char *problem(const struct cluster *c, size_t secret)
{
    static const char *const names[] = {"web", "admin"};
    for (size_t i = 0; i < c->plan.status.secrets_len; i++)
        if (cr_streq(c->plan.status.secrets[i].name, names[secret]))
            return cr_or_empty(c->plan.status.secrets[i].problem_reason);
    return "";
}

static const struct cr_condition *condition(const struct cluster *c, const char *type)
{
    return cr_status_condition_get(&c->plan.status, type);
}

static size_t said(const struct cluster *c, const char *reason)
{
    size_t count = 0;
    for (size_t i = 0; i < c->plan.events_len; i++)
        count += cr_streq(c->plan.events[i].reason, reason);
    return count;
}

/* Two idle leaves, the first for these names, the second for admin.example. */
static void settle_with(struct cluster *c, const char *names)
{
    put(c, 0, "1", names);
    put(c, 1, "1", "admin.example");
    due(c);
    record(c);
    c->now_ms += 60 * 1000;
}

static void settle(struct cluster *c)
{
    settle_with(c, "www.example *.web.example");
}

static void a_leaf_without_a_name_in_use_is_held_like_broken_material(void **state)
{
    (void)state;
    AUTO_CLUSTER c;
    open_cluster(&c, "{port: 8443, serverName: www.example}", "[" WEB "]");
    settle(&c);
    assert_string_equal(problem(&c, 0), "");
    put(&c, 0, "2", "web.example");
    const struct cr_plan *p = due(&c);
    assert_int_equal(p->restarts_len + p->evictions_len + p->nudges_len + p->probes_len, 0);
    assert_string_equal(problem(&c, 0), "NameMissing");
    assert_false(p->status.secrets[0].pending.set);
    assert_non_null(strstr(p->status.secrets[0].problem_message, "www.example (port 8443 of consumer app)"));
    assert_non_null(strstr(p->status.secrets[0].problem_message, "it is for web.example"));
    assert_int_equal(said(&c, "NameMissing"), 1);
    assert_string_equal(condition(&c, "Degraded")->reason, "NameMissing");
    assert_false(condition(&c, "Converged")->status);
    assert_string_equal(condition(&c, "Converged")->reason, "NameMissing");
    assert_string_equal(cr_policy_status_problem(&p->status), "NameMissing");
    assert_int_equal(p->status.stage, CR_STAGE_HELD);
    record(&c);
    /* Said once, also by the next leader, which knows no more than what is on record. */
    assert_int_equal(due(&c)->events_len, 0);
    /* A leaf with the name is rolled out. */
    put(&c, 0, "3", "www.example");
    assert_int_equal(due(&c)->restarts_len, 1);
    assert_string_equal(problem(&c, 0), "");
    assert_string_equal(condition(&c, "Degraded")->reason, "AsExpected");
}

static void another_secret_of_the_workload_waits_as_well(void **state)
{
    (void)state;
    AUTO_CLUSTER c;
    open_cluster(&c, "{endpoints: [{port: 8443, serverName: www.example, secretName: web}]}", "[" WEB ", " ADMIN "]");
    settle(&c);
    put(&c, 0, "2", "web.example");
    put(&c, 1, "2", "admin.example");
    assert_int_equal(due(&c)->restarts_len, 0);
    assert_string_equal(problem(&c, 1), "");
    assert_int_equal(c.plan.status.consumers[0].gate.hold, CR_HOLD_SECRET_PROBLEM);
    put(&c, 0, "3", "www.example");
    assert_int_equal(due(&c)->restarts_len, 1);
}

static void at_first_sight_it_is_reported_and_the_next_leaf_is_a_change(void **state)
{
    (void)state;
    AUTO_CLUSTER c;
    open_cluster(&c, "{port: 8443, serverName: www.example}", "[" WEB "]");
    put(&c, 0, "1", "web.example");
    put(&c, 1, "1", "admin.example");
    assert_int_equal(due(&c)->restarts_len, 0);
    assert_string_equal(problem(&c, 0), "NameMissing");
    assert_false(condition(&c, "Converged")->status);
    assert_true(c.plan.status.secrets[0].has_settled);
    record(&c);
    put(&c, 0, "2", "www.example");
    assert_int_equal(due(&c)->restarts_len, 1);
    assert_string_equal(problem(&c, 0), "");
}

/* Which leaf a name belongs to. */
static void a_name_belongs_to_a_secret_only_where_that_is_certain(void **state)
{
    (void)state;
    static const struct {
        const char *what, *verify, *volumes;
        const char *first[SECRETS], *then[SECRETS];
        const char *problems[SECRETS];
    } cases[] = {
        {"the endpoint says whose",
         "{endpoints: [{port: 1, serverName: www.example, secretName: web}]}",
         "[" WEB ", " ADMIN "]",
         {"a", "www.example"},
         {"b", "www.example"},
         {"NameMissing", ""}},
        {"the only Secret, beside a password",
         "{port: 1, serverName: www.example}",
         "[" WEB "]",
         {"a", "b"},
         {"b", "b"},
         {"NameMissing", ""}},
        {"the other one has no leaf",
         "{port: 1, serverName: www.example}",
         "[" WEB ", " ADMIN "]",
         {"a", NULL},
         {"b", NULL},
         {"NameMissing", ""}},
        {"it was for it before",
         "{port: 1, serverName: www.example}",
         "[" WEB ", " ADMIN "]",
         {"www.example", "b"},
         {"a", "b"},
         {"NameMissing", ""}},
        {"it was, and another is",
         "{port: 1, serverName: www.example}",
         "[" WEB ", " ADMIN "]",
         {"www.example", "www.example"},
         {"a", "www.example"},
         {"", ""}},
        {"the name moves to the other",
         "{port: 1, serverName: www.example}",
         "[" WEB ", " ADMIN "]",
         {"www.example", "b"},
         {"a", "www.example"},
         {"", ""}},
        {"it never was for it",
         "{port: 1, serverName: www.example}",
         "[" WEB ", " ADMIN "]",
         {"a", "b"},
         {"c", "d"},
         {"", ""}},
        {"a Secret that the policy does not name is mounted, too",
         "{port: 1, serverName: www.example}",
         "[" WEB ", " OTHER "]",
         {"a", "b"},
         {"c", "b"},
         {"", ""}},
        {"and it was for it before",
         "{port: 1, serverName: www.example}",
         "[" WEB ", " OTHER "]",
         {"www.example", "b"},
         {"c", "b"},
         {"NameMissing", ""}},
        {"the workload does not use it",
         "{port: 1, serverName: www.example}",
         "[" ADMIN "]",
         {"www.example", "www.example"},
         {"a", "www.example"},
         {"", ""}},
        {"no name is asked for", "{port: 1}", "[" WEB "]", {"a", "b"}, {"c", "d"}, {"", ""}},
        {"a wildcard",
         "{port: 1, serverName: a.web.example}",
         "[" WEB "]",
         {"a", "b"},
         {"*.web.example", "b"},
         {"", ""}},
        {"an address", "{port: 1, serverName: 10.0.0.1}", "[" WEB "]", {"10.0.0.1", "b"}, {"10.0.0.1", "b"}, {"", ""}},
        {"an address among the DNS names only",
         "{port: 1, serverName: 10.0.0.1}",
         "[" WEB "]",
         {"a", "b"},
         {"c", "b"},
         {"NameMissing", ""}},
        {"two endpoints, one name of which is missing",
         "{endpoints: [{port: 1, serverName: a}, {port: 1, serverName: b}, {port: 2, serverName: b}]}",
         "[" WEB "]",
         {"a b", "x"},
         {"a", "x"},
         {"NameMissing", ""}},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        AUTO_CLUSTER c;
        open_cluster(&c, cases[i].verify, cases[i].volumes);
        for (size_t s = 0; s < SECRETS; s++)
            put(&c, s, "1", cases[i].first[s]);
        due(&c);
        record(&c);
        c.now_ms += 60 * 1000;
        for (size_t s = 0; s < SECRETS; s++)
            put(&c, s, "2", cases[i].then[s]);
        due(&c);
        for (size_t s = 0; s < SECRETS; s++)
            if (!cr_streq(problem(&c, s), cases[i].problems[s]))
                fail_msg("%s: Secret %zu: '%s'", cases[i].what, s, problem(&c, s));
        record(&c);
        due(&c); /* and what is on record says the same */
        assert_string_equal(problem(&c, 0), cases[i].problems[0]);
    }
}

static void reported_it_is_rolled_out_and_shown_for_as_long_as_it_is_so(void **state)
{
    (void)state;
    AUTO_CLUSTER c;
    open_cluster(&c, "{port: 8443, serverName: www.example, onMissingName: Report}", "[" WEB "]");
    settle(&c);
    assert_int_equal(c.plan.status.consumers[0].warnings, 0);
    put(&c, 0, "2", "web.example");
    plan(&c);
    assert_int_equal(said(&c, "NameMissing"), 1);
    assert_int_equal(due(&c)->restarts_len, 1);
    assert_int_equal(said(&c, "NameMissing"), 0);
    assert_string_equal(problem(&c, 0), "");
    assert_int_equal(c.plan.status.consumers[0].warnings, CR_WARNING_NAME_MISSING);
    assert_string_equal(condition(&c, "Degraded")->reason, "NameMissing");
    assert_non_null(strstr(condition(&c, "Degraded")->message, "app: the leaf of Secret web is not for www.example"));
    put(&c, 0, "3", "www.example");
    due(&c);
    assert_int_equal(c.plan.status.consumers[0].warnings, 0);
    assert_string_equal(condition(&c, "Degraded")->reason, "AsExpected");
}

static void hosts_of_an_ingress_are_reported_since_its_controller_does_not_wait(void **state)
{
    (void)state;
    struct cr_error err = {0};
    AUTO_CLUSTER c;
    open_cluster(&c, "{port: 8443}", "[" WEB "]");
    CR_CLEANUP(cr_json)
    struct cr_json *policy =
        test_yaml("metadata: {name: demo, namespace: ns, uid: policy-uid, resourceVersion: '1', generation: 3}\n"
                  "spec:\n"
                  "  secrets: [{name: web}, {name: admin}]\n"
                  "  consumers: [{name: front, targetRef: {kind: Ingress, name: front}}]\n");
    cr_policy_free(c.policy);
    c.policy = cr_policy_decode(policy, &err);
    cr_json_free(c.workload);
    c.workload = test_yaml("metadata: {name: front, namespace: ns, uid: front-uid}\n"
                           "spec: {tls: [{secretName: web, hosts: [www.example, a.web.example]}]}\n");
    c.consumer.workload = c.workload;
    settle(&c);
    assert_string_equal(condition(&c, "Degraded")->reason, "AsExpected");
    put(&c, 0, "2", "*.web.example");
    plan(&c);
    assert_int_equal(said(&c, "NameMissing"), 1);
    due(&c);
    assert_string_equal(problem(&c, 0), "");
    assert_true(c.plan.status.secrets[0].pending.set);
    assert_int_equal(c.plan.status.consumers[0].warnings, CR_WARNING_NAME_MISSING);
    assert_string_equal(condition(&c, "Degraded")->reason, "NameMissing");
    assert_string_equal(condition(&c, "Degraded")->message,
                        "front: the leaf of Secret web is not for www.example; its controller serves what the Secret "
                        "holds, so nothing can hold it");
    record(&c);
    due(&c);
    assert_int_equal(said(&c, "NameMissing"), 0);
}

static void a_hold_is_lifted_by_the_policy(void **state)
{
    (void)state;
    AUTO_CLUSTER c;
    open_cluster(&c, "{port: 8443, serverName: www.example}", "[" WEB "]");
    settle(&c);
    put(&c, 0, "2", "web.example");
    due(&c);
    record(&c);
    c.policy->consumers[0].verify.on_missing_name = CR_ON_MISSING_NAME_REPORT;
    assert_int_equal(due(&c)->restarts_len, 1);
}

/* One pod, an hour old, that serves the leaf which the first Secret holds now. */
static void serve_new_leaf(struct cluster *c)
{
    cr_json_free(c->pod_json);
    c->pod_json = test_yaml("{metadata: {annotations: {}}, status: {phase: Running}}");
    c->sighting = (struct cr_sighting){.seen = CR_SEEN_LEAF, .at_ms = c->now_ms};
    memcpy(c->sighting.leaf, c->material[0].leaf, sizeof c->sighting.leaf);
    c->pod = (struct cr_world_pod){.pod = c->pod_json,
                                   .name = "app-1",
                                   .uid = "app-1",
                                   .ip = "10.0.0.1",
                                   .ready = true,
                                   .started_ms = START - 3600 * 1000,
                                   .created_ms = START - 3600 * 1000,
                                   .sightings = &c->sighting};
    c->consumer.pods = &c->pod;
    c->consumer.pods_len = 1;
}

#define RELOADS ", reload: {serverLeaf: {method: Watch, maxDelay: 1s}, clientLeaf: {method: Watch, maxDelay: 1s}}"

static const struct cr_world_host front = {"www.example", "Ingress", "front"};

/* By the Secret's annotation, of names that the policy asks for and of hosts alike. */
static void the_owner_of_the_secret_says_what_becomes_of_a_leaf_without_a_name(void **state)
{
    (void)state;
#define ASKS   "{port: 8443, serverName: www.example}"
#define REPORT "{port: 8443, serverName: www.example, onMissingName: Report}"
    static const struct {
        const char *verify, *annotation;
        bool shown_by_ingress, held;
        const char *reason; /* of Degraded */
        const char *words;
    } cases[] = {
        {ASKS, NULL, false, true, "NameMissing",
         "onMissingName: Report, or the annotation certroll.dev/on-missing-name"},
        {ASKS, "Hold", false, true, "NameMissing", ""},
        {ASKS, "Report", false, false, "NameMissing", "it is rolled out all the same (onMissingName: Report)"},
        {ASKS, "report", false, true, "NameMissing", "is neither Hold nor Report, but 'report'; it counts as Hold"},
        {REPORT, NULL, false, false, "NameMissing", "app: the leaf of Secret web is not for www.example"},
        {REPORT, "Hold", false, true, "NameMissing", "www.example (port 8443 of consumer app)"},
        {REPORT, "", false, true, "NameMissing", "is neither Hold nor Report, but ''"},
        {"{port: 8443}", NULL, true, true, "NameMissing", "www.example (Ingress front), which clients ask for"},
        {"{port: 8443}", "Report", true, false, "NameMissing",
         "the leaf of Secret web is not for www.example (Ingress front); it is rolled out all the same (annotation"},
        {"{port: 8443}", "never", true, true, "NameMissing", "'never'"},
        {"{port: 8443}", "never", false, false, "UnknownAnnotation", "Secret web: its annotation"},
        {"{port: 8443}", "Report", false, false, "AsExpected", ""},
        {REPORT, NULL, true, true, "NameMissing", "www.example (Ingress front)"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        AUTO_CLUSTER c;
        open_cluster(&c, cases[i].verify, "[" WEB "]");
        c.on_missing_name = cases[i].annotation;
        c.hosts = &front;
        c.hosts_len = cases[i].shown_by_ingress;
        settle(&c);
        put(&c, 0, "2", "web.example");
        due(&c);
        const struct cr_condition *degraded = condition(&c, "Degraded");
        if ((c.plan.restarts_len == 0) != cases[i].held || !cr_streq(degraded->reason, cases[i].reason) ||
            !strstr(degraded->message, cases[i].words))
            fail_msg("%zu: %zu restarts, %s: %s", i, c.plan.restarts_len, degraded->reason, degraded->message);
        assert_string_equal(problem(&c, 0), cases[i].held ? "NameMissing" : "");
        record(&c);
        due(&c);
        assert_int_equal(said(&c, "NameMissing") + said(&c, "UnknownAnnotation"), 0);
    }
}

static void an_override_counts_for_what_pods_show_as_well(void **state)
{
    (void)state;
    AUTO_CLUSTER c;
    open_cluster(&c, ASKS RELOADS, "[" WEB "]");
    settle(&c);
    c.on_missing_name = "Report";
    put(&c, 0, "2", "web.example");
    due(&c);
    record(&c);
    c.now_ms += 5 * 1000;
    serve_new_leaf(&c);
    due(&c);
    assert_int_equal(c.plan.status.consumers[0].pods.verified, 1);
}

static void a_host_is_held_for_where_the_leaf_that_pods_have_is_for_it(void **state)
{
    (void)state;
    static const struct cr_world_host two[] = {{"www.shop.example", "Ingress", "front"},
                                               {"b.example", "Gateway", "edge"}};
    static const struct {
        const char *rule, *before, *now;
        size_t hosts;
        bool held;
        const char *words; /* of Degraded */
    } cases[] = {
        {"nobody looks", "www.shop.example", "a", 0, false, "No problem"},
        {"the leaf is for it", "a", "www.shop.example", 1, false, "No problem"},
        {"lost", "www.shop.example a", "a", 1, true,
         "the leaf is not for www.shop.example (Ingress front), which clients ask"},
        {"one of two is lost", "www.shop.example b.example", "www.shop.example", 2, true,
         "not for b.example (Gateway edge)"},
        {"two are", "www.shop.example b.example", "a", 2, true,
         "www.shop.example (Ingress front), b.example (Gateway edge)"},
        {"a wildcard keeps it", "www.shop.example", "*.shop.example", 1, false, "No problem"},
        {"a wildcard was for it", "*.shop.example", "a", 1, true, "www.shop.example (Ingress front)"},
        {"no leaf was for it", "a", "c", 1, false,
         "www.shop.example (Ingress front); nothing is held, since pods have no"},
        {"held for the other alone", "www.shop.example", "a", 2, true,
         "not for www.shop.example (Ingress front), which"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        AUTO_CLUSTER c;
        open_cluster(&c, "{port: 8443}", "[" WEB "]");
        c.hosts = two;
        c.hosts_len = cases[i].hosts;
        settle_with(&c, cases[i].before);
        put(&c, 0, "2", cases[i].now);
        due(&c);
        const char *message = condition(&c, "Degraded")->message;
        if ((c.plan.restarts_len == 0) != cases[i].held || !strstr(message, cases[i].words))
            fail_msg("%s: %zu restarts: %s", cases[i].rule, c.plan.restarts_len, message);
        record(&c);
        due(&c); /* and what is on record says the same */
        assert_string_equal(problem(&c, 0), cases[i].held ? "NameMissing" : "");
        /* The Ingress goes: no client asks for the name any more. */
        c.hosts_len = 0;
        due(&c);
        assert_string_equal(problem(&c, 0), "");
        assert_string_equal(condition(&c, "Degraded")->reason, "AsExpected");
    }
}

static void at_first_sight_a_host_holds_nothing_and_is_reported_once(void **state)
{
    (void)state;
    AUTO_CLUSTER c;
    open_cluster(&c, "{port: 8443}", "[" WEB "]");
    c.hosts = &front;
    c.hosts_len = 1;
    put(&c, 0, "1", "web.example");
    put(&c, 1, "1", "admin.example");
    plan(&c);
    assert_int_equal(said(&c, "NameMissing"), 1);
    record(&c);
    due(&c);
    assert_int_equal(said(&c, "NameMissing"), 0);
    assert_string_equal(problem(&c, 0), "");
    assert_string_equal(condition(&c, "Degraded")->reason, "NameMissing");
    assert_int_equal(c.plan.status.stage, CR_STAGE_IDLE);
}

static void hosts_that_are_too_many_are_reported(void **state)
{
    (void)state;
    static const struct {
        struct cr_world_beyond beyond;
        const char *words;
    } cases[] = {
        {{.host_objects = 7}, "the hosts of 7 Ingresses and Gateways that name its Secrets, the youngest, are not"},
        {{.hosts = true}, "have more hosts than are looked at"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        AUTO_CLUSTER c;
        open_cluster(&c, "{port: 8443}", "[" WEB "]");
        c.beyond = cases[i].beyond;
        settle(&c);
        assert_string_equal(condition(&c, "Degraded")->reason, "TooManyHosts");
        assert_non_null(strstr(condition(&c, "Degraded")->message, cases[i].words));
        assert_true(condition(&c, "Ready")->status);
    }
}

/* Before the leaf ends that pods have. */
static void a_hold_grows_louder_before_the_old_leaf_ends(void **state)
{
    (void)state;
    AUTO_CLUSTER c;
    open_cluster(&c, "{port: 8443, serverName: www.example}", "[" WEB "]");
    settle(&c);
    int64_t end_ms = c.material[0].not_after_ms;
    c.now_ms += 5LL * DAY_MS;
    put(&c, 0, "2", "web.example");
    c.material[0].not_after_ms = c.now_ms + 60LL * DAY_MS;
    due(&c);
    record(&c);
    assert_string_equal(condition(&c, "ExpiringSoon")->reason, "FarFromExpiry");
    /* The end that is shown is that of the leaf which pods have, not of the one that is held. */
    assert_true(cr_policy_status_leaf_end_ms(&c.plan.status, &c.plan.status.secrets[0]) == end_ms);
    c.now_ms = end_ms - DAY_MS;
    due(&c);
    assert_string_equal(condition(&c, "ExpiringSoon")->reason, "LeafExpiresSoon");
    assert_non_null(strstr(condition(&c, "ExpiringSoon")->message, "and the one after it is held: NameMissing"));
    assert_int_equal(said(&c, "HeldUntilExpiry"), 1);
    record(&c);
    due(&c);
    assert_int_equal(said(&c, "HeldUntilExpiry"), 0);
    c.now_ms = end_ms + DAY_MS;
    due(&c);
    assert_string_equal(condition(&c, "ExpiringSoon")->reason, "LeafExpired");
    assert_int_equal(said(&c, "HeldUntilExpiry"), 0);
}

/* A leaf that is effective without the name is held by nothing after it. */
static void what_ends_without_a_successor_is_not_called_held(void **state)
{
    (void)state;
    AUTO_CLUSTER c;
    open_cluster(&c, "{port: 8443, serverName: nowhere.example}", "[" WEB "]");
    settle(&c);
    assert_string_equal(problem(&c, 0), "NameMissing");
    c.now_ms = c.material[0].not_after_ms - DAY_MS;
    due(&c);
    assert_string_equal(condition(&c, "ExpiringSoon")->reason, "LeafExpiresSoon");
    assert_int_equal(said(&c, "HeldUntilExpiry"), 0);
}

static void a_name_without_known_clients_is_reported_once_and_holds_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *before, *now;
        const char *words; /* NULL: none is lost */
    } cases[] = {
        {"www.example old.example", "www.example", "the new leaf is not for old.example any more"},
        {"www.example", "www.example new.example", NULL},
        {"www.example a.web.example", "www.example *.web.example", NULL},
        {"www.example *.web.example", "www.example a.web.example", "not for *.web.example any more"},
        {"www.example 10.0.0.1 a b c", "www.example", "not for 10.0.0.1, a, b and 1 more any more"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        AUTO_CLUSTER c;
        open_cluster(&c, "{port: 8443, serverName: www.example}", "[" WEB "]");
        settle_with(&c, cases[i].before);
        put(&c, 0, "2", cases[i].now);
        plan(&c);
        assert_int_equal(said(&c, "NamesLost"), cases[i].words != NULL);
        assert_int_equal(due(&c)->restarts_len, 1);
        assert_int_equal(said(&c, "NamesLost"), 0);
        const char *message = condition(&c, "Rotating")->message;
        if ((strstr(message, "any more") != NULL) != (cases[i].words != NULL) ||
            (cases[i].words && !strstr(message, cases[i].words)))
            fail_msg("%s: %s", cases[i].now, message);
        assert_string_equal(condition(&c, "Degraded")->reason, "AsExpected");
    }
}

static void a_handshake_verifies_a_leaf_for_the_name_that_was_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *verify;
        const char *refused; /* NULL: it is verified */
        const char *words;
    } cases[] = {
        {"{port: 8443, serverName: www.example}" RELOADS, NULL,
         "Leaves: 1 verified, 1 unchanged since first sight. Verified is a leaf that a pod showed with proof of its "
         "key, "
         "and for its name at 1 of 1 endpoints. Not checked: chains with the CAs of clients."},
        {"{port: 8443}" RELOADS, NULL, "with proof of its key. Not checked: names, and chains with"},
        {"{endpoints: [{port: 8443, serverName: www.example, secretName: web}, {port: 1, secretName: admin}]}" RELOADS,
         NULL, "at 1 of 2 endpoints. Not checked: names at the other endpoints, and chains with"},
        {"{port: 8443, serverName: nowhere.example, onMissingName: Report}" RELOADS, NULL,
         "with proof of its key. Not checked: names, and chains with"},
        {"{port: 8443, serverName: nowhere.example}" RELOADS,
         "app-1: port 8443 (nowhere.example) serves the new leaf, which is not for that name", NULL},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        AUTO_CLUSTER c;
        open_cluster(&c, cases[i].verify, "[" WEB ", " OTHER "]");
        settle_with(&c, "www.example");
        put(&c, 0, "2", "www.example");
        due(&c);
        record(&c);
        c.now_ms += 5 * 1000;
        serve_new_leaf(&c);
        due(&c);
        const struct cr_consumer_status *app = &c.plan.status.consumers[0];
        if (app->pods.verified != !cases[i].refused || app->pods.unknown != (cases[i].refused != NULL))
            fail_msg("%s: %d verified, %d unknown", cases[i].verify, app->pods.verified, app->pods.unknown);
        if (cases[i].refused) {
            assert_string_equal(app->examples.items[0], cases[i].refused);
            record(&c);
            c.now_ms += 3600 * 1000;
            c.sighting.at_ms = c.now_ms;
            due(&c);
            assert_string_equal(condition(&c, "Degraded")->reason, "NotVerified");
            assert_false(condition(&c, "Converged")->status);
        } else if (!strstr(condition(&c, "Converged")->message, cases[i].words)) {
            fail_msg("%s: %s", cases[i].verify, condition(&c, "Converged")->message);
        }
    }
}

static void the_words_are_bounded(void **state)
{
    (void)state;
    AUTO_CLUSTER c;
    char name[254];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    CR_CLEANUP(cr_buf) struct cr_buf verify = CR_BUF_INIT(0);
    cr_buf_puts(&verify, "{endpoints: [");
    for (int i = 0; i < CR_VERIFY_ENDPOINTS_MAX; i++)
        cr_buf_printf(&verify, "%s{port: %d, serverName: %s}", i ? ", " : "", i + 1, name);
    cr_buf_puts(&verify, "]}");
    open_cluster(&c, cr_buf_text(&verify), "[" WEB "]");
    settle(&c);
    put(&c, 0, "2", "");
    for (int i = 0; i < 900; i++) {
        cr_autofree char *long_name = cr_asprintf("%d%.240s", i, name);
        cr_strvec_add(&c.material[0].names, long_name);
    }
    due(&c);
    const char *text = c.plan.status.secrets[0].problem_message;
    assert_non_null(strstr(text, " and 6 more, which clients ask for"));
    assert_non_null(strstr(text, " and 897 more. "));
    assert_true(strlen(text) <= 864); /* as pkg/api/status_encode.c cuts it */
}

/* --- what it costs --- */

static size_t comparisons;

/* Called by the sanitizers' runtime for each strcasecmp, by which names are compared. A build without one counts none.
 */
void __sanitizer_weak_hook_strcasecmp(void *caller, const char *a, const char *b, int result);
void __sanitizer_weak_hook_strcasecmp(void *caller, const char *a, const char *b, int result)
{
    (void)caller;
    (void)a;
    (void)b;
    (void)result;
    comparisons++;
}

enum { MANY_SECRETS = 16, MANY_CONSUMERS = 16, MANY_ENDPOINTS = 8, MANY_NAMES = 100 };

struct crowd {
    struct cr_policy *policy;
    struct cr_policy_status status;
    struct cr_material materials[MANY_SECRETS];
    struct cr_world_secret secrets[MANY_SECRETS];
    struct cr_json *workload;
    struct cr_world_consumer consumers[MANY_CONSUMERS];
};

/* Parts with numbers, and a comma between them. */
static void list_up_to(struct cr_buf *text, const char *before, const char *behind, int count)
{
    for (int i = 0; i < count; i++)
        cr_buf_printf(text, "%s%s%d%s", i ? ", " : "", before, i, behind);
}

static struct cr_policy *policy_of_crowd(void)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    cr_buf_puts(&text, "metadata: {name: demo, namespace: ns, uid: u, resourceVersion: '1'}\nspec:\n  secrets: [");
    list_up_to(&text, "{name: s", "}", MANY_SECRETS);
    cr_buf_puts(&text, "]\n  consumers:\n");
    for (int i = 0; i < MANY_CONSUMERS; i++) {
        cr_buf_printf(&text, "  - {name: c%d, targetRef: {kind: Deployment, name: c%d}, verify: {endpoints: [", i, i);
        list_up_to(&text, "{serverName: lost.example, port: 1", "}", MANY_ENDPOINTS);
        cr_buf_puts(&text, "]}}\n");
    }
    CR_CLEANUP(cr_json) struct cr_json *object = test_yaml(cr_buf_text(&text));
    struct cr_policy *policy = cr_policy_decode(object, &err);
    if (!policy)
        fail_msg("%s", err.text);
    return policy;
}

static struct cr_json *workload_of_crowd(void)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    cr_buf_puts(&text, "metadata: {name: app, namespace: ns, uid: u, resourceVersion: '7', generation: 1}\n"
                       "spec: {replicas: 0, template: {spec: {containers: [{name: app, image: x, volumeMounts: [");
    list_up_to(&text, "{name: v", ", mountPath: /x}", MANY_SECRETS);
    cr_buf_puts(&text, "]}], volumes: [");
    for (int i = 0; i < MANY_SECRETS; i++)
        cr_buf_printf(&text, "%s{name: v%d, secret: {secretName: s%d}}", i ? ", " : "", i, i);
    cr_buf_puts(&text, "]}}}\nstatus: {observedGeneration: 1}\n");
    return test_yaml(cr_buf_text(&text));
}

static void close_crowd(struct crowd *c)
{
    cr_policy_free(c->policy);
    cr_policy_status_dispose(&c->status);
    cr_json_free(c->workload);
    for (size_t i = 0; i < MANY_SECRETS; i++)
        cr_material_dispose(&c->materials[i]);
}

/* Each Secret gets a leaf of many names. first: one of them. */
static void issue(struct crowd *c, const char *version, const char *first)
{
    for (size_t i = 0; i < MANY_SECRETS; i++) {
        struct cr_material *m = &c->materials[i];
        cr_material_dispose(m);
        *m = (struct cr_material){.has_leaf = true, .not_before_ms = 1, .not_after_ms = START + DAY_MS * 30LL};
        cr_autofree char *id = cr_asprintf("%zu %s", i, version);
        cr_sha256_hex(id, strlen(id), m->leaf);
        memcpy(m->key, m->leaf, sizeof m->key);
        cr_strvec_add(&m->names, first);
        for (int k = 1; k < MANY_NAMES; k++) {
            cr_autofree char *name = cr_asprintf("n%d.example", k);
            cr_strvec_add(&m->names, name);
        }
        c->secrets[i] = (struct cr_world_secret){.found = true, .resource_version = version, .material = m};
    }
}

/* Returns how many names were compared. */
static size_t plan_for_crowd(struct crowd *c, const struct cr_catalogue *catalogue)
{
    CR_CLEANUP(cr_plan) struct cr_plan made = {0};
    const struct cr_world world = {.policy = c->policy,
                                   .status = &c->status,
                                   .secrets = c->secrets,
                                   .consumers = c->consumers,
                                   .catalogue = catalogue,
                                   .now_ms = START};
    comparisons = 0;
    cr_plan_make(&world, &made);
    size_t compared = comparisons;
    test_record_status(&made.status, &c->status);
    return compared;
}

/* Every leaf of a workload is replaced by one without the name that all its endpoints ask for: each might be the one
 * that answered. Without a search of all others for each, a question costs two leaves: the one before and the present
 * one. */
static void a_question_costs_two_leaves_however_many_there_are(void **state)
{
    (void)state;
    struct cr_error err = {0};
    CR_CLEANUP(cr_catalogue) struct cr_catalogue *catalogue = cr_catalogue_builtin(&err);
    __attribute__((cleanup(close_crowd))) struct crowd c = {.policy = policy_of_crowd(),
                                                            .workload = workload_of_crowd()};
    for (size_t i = 0; i < MANY_CONSUMERS; i++)
        c.consumers[i] = (struct cr_world_consumer){.found = true, .workload = c.workload};
    issue(&c, "1", "lost.example");
    for (int i = 0; i < 3; i++)
        (void)plan_for_crowd(&c, catalogue);
    issue(&c, "2", "other.example");
    size_t compared = plan_for_crowd(&c, catalogue);
    size_t questions = (size_t)MANY_SECRETS * MANY_CONSUMERS * MANY_ENDPOINTS;
    print_message("%zu questions of leaves of %d names: %zu comparisons\n", questions, MANY_NAMES, compared);
    assert_string_equal(cr_or_empty(c.status.secrets[0].problem_reason), CR_PROBLEM_NAME_MISSING);
    assert_in_range(compared, 0, 3 * questions * MANY_NAMES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leaf_without_a_name_in_use_is_held_like_broken_material),
        cmocka_unit_test(another_secret_of_the_workload_waits_as_well),
        cmocka_unit_test(at_first_sight_it_is_reported_and_the_next_leaf_is_a_change),
        cmocka_unit_test(a_name_belongs_to_a_secret_only_where_that_is_certain),
        cmocka_unit_test(reported_it_is_rolled_out_and_shown_for_as_long_as_it_is_so),
        cmocka_unit_test(hosts_of_an_ingress_are_reported_since_its_controller_does_not_wait),
        cmocka_unit_test(a_hold_is_lifted_by_the_policy),
        cmocka_unit_test(the_owner_of_the_secret_says_what_becomes_of_a_leaf_without_a_name),
        cmocka_unit_test(an_override_counts_for_what_pods_show_as_well),
        cmocka_unit_test(a_host_is_held_for_where_the_leaf_that_pods_have_is_for_it),
        cmocka_unit_test(at_first_sight_a_host_holds_nothing_and_is_reported_once),
        cmocka_unit_test(hosts_that_are_too_many_are_reported),
        cmocka_unit_test(a_hold_grows_louder_before_the_old_leaf_ends),
        cmocka_unit_test(what_ends_without_a_successor_is_not_called_held),
        cmocka_unit_test(a_name_without_known_clients_is_reported_once_and_holds_nothing),
        cmocka_unit_test(a_handshake_verifies_a_leaf_for_the_name_that_was_asked_for),
        cmocka_unit_test(the_words_are_bounded),
        cmocka_unit_test(a_question_costs_two_leaves_however_many_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
