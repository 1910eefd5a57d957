/* Random worlds of a policy whose consumers have verify: Secrets that change, change back, vanish and come again,
 * kubelets that give new pods the content of before, pods that never reload or serve a certificate of their own, lists
 * of pods and of Secrets that lag, clocks that are set, probes that fail, edits of the policy, and an operator that is
 * killed at any time and knows only its status then. Whenever it says Converged=True, every Ready pod that it could
 * know of serves what the status names, or content of the Secret that the operator never saw: later content, or content
 * that came and went between two looks. When the world calms down, it does say so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "policy/rules/plan.h"
#include "support/chance.h"
#include "support/gates.h"
#include "support/recorded.h"
#include "support/yamltext.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE };
enum { CONSUMERS = 2, PODS = 3, UIDS = 2048, WRITES = 256 };
enum { GAMES = 40, MANY_GAMES = 2000, TROUBLE_STEPS = 60, CALM_STEPS = 400 };
enum { REFRESH_MS = 90 * SECOND, FOREIGN = 1000 };
static const int64_t start_ms = 1800000000000;

/* --- the model --- */

/* Each write of a Secret has a version; leaves may come back. */
struct write {
    int version, leaf; /* 0: it is not there */
    int64_t at_ms;
};

enum nature { HONEST, STUCK, ODD }; /* never reloads; serves a leaf of its own, or of the other's Secret */

struct pod {
    int uid, restarts;
    bool there, ready;
    int64_t created_ms, started_ms, refresh_ms; /* by the API server's clock */
    enum nature nature;
    struct write volume, serves;
    const struct cr_json *json;
};

/* Consumer and Secret of the same number belong together. */
struct consumer {
    bool reloads;
    struct cr_json *workload;
    struct pod pods[PODS];
    struct pod listed[PODS]; /* as the operator's list has them */
    size_t listed_len;
    struct write writes[WRITES]; /* of the Secret, all that there were */
    int last, seen;              /* indexes: the newest, and the one that the operator's list has */
    int looked;                  /* the one that it last reconciled with */
    bool passed_over[WRITES];    /* replaced before it reconciled with them */
};

struct game {
    struct cr_policy *policy;
    struct cr_catalogue *catalogue;
    struct consumer consumers[CONSUMERS];
    struct cr_policy_status recorded;
    struct cr_json *made; /* pods' objects, all that there were */
    struct cr_sighting memory[UIDS];
    int64_t memory_started_ms[UIDS];
    int uids, versions, leaves;
    int64_t api_ms, ahead_ms; /* the API server's clock; the operator's is ahead of it by so much */
    bool trouble;
    unsigned number;
    int claims; /* how often it said True */
};

static int64_t now_of(const struct game *g)
{
    return g->api_ms + g->ahead_ms;
}

static const struct write *newest(const struct consumer *c)
{
    return &c->writes[c->last];
}

static void write_secret(struct game *g, struct consumer *c, int leaf)
{
    if (c->last + 1 == WRITES)
        return;
    c->writes[++c->last] = (struct write){.version = ++g->versions, .leaf = leaf, .at_ms = g->api_ms};
}

/* The newest that was there before a time; a kubelet that has none waits. */
static struct write content_before(const struct consumer *c, int64_t at_ms)
{
    struct write found = {0};
    for (int i = 0; i <= c->last; i++)
        if (c->writes[i].leaf && (c->writes[i].at_ms <= at_ms || !found.leaf))
            found = c->writes[i];
    return found;
}

/* --- pods --- */

static void serve(const struct consumer *c, struct pod *pod, bool starts)
{
    if (pod->nature != ODD && (starts || (c->reloads && pod->nature == HONEST)))
        pod->serves = pod->volume;
}

static const struct cr_json *template_annotations(const struct consumer *c)
{
    return cr_json_at(c->workload, "spec", "template", "metadata", "annotations");
}

static int other_leaf(const struct game *g, const struct consumer *c)
{
    const struct consumer *other = &g->consumers[c == g->consumers];
    return other->last < 0 ? FOREIGN : newest(other)->leaf;
}

static void make_pod(struct game *g, struct consumer *c, struct pod *pod)
{
    assert_true(g->uids + 1 < UIDS);
    bool cached = g->trouble && one_in(4);
    *pod = (struct pod){.uid = ++g->uids,
                        .there = true,
                        .ready = !g->trouble || !one_in(4),
                        .created_ms = g->api_ms - g->api_ms % SECOND,
                        .started_ms = g->api_ms - g->api_ms % SECOND,
                        .refresh_ms = g->api_ms + draw(REFRESH_MS),
                        .nature = g->trouble && one_in(8)    ? STUCK
                                  : g->trouble && one_in(12) ? ODD
                                                             : HONEST};
    pod->volume = content_before(c, cached ? g->api_ms - draw(REFRESH_MS) : g->api_ms);
    serve(c, pod, true);
    if (pod->nature == ODD)
        pod->serves = (struct write){.leaf = one_in(2) ? FOREIGN + pod->uid : other_leaf(g, c)};
    struct cr_json *json = cr_json_add(g->made, cr_json_new_object());
    cr_json_set(cr_json_object_in(json, "metadata"), "annotations", cr_json_copy(template_annotations(c)));
    cr_json_set_string(cr_json_object_in(json, "status"), "hostIP", "10.0.0.9");
    pod->json = json;
}

static void refresh(const struct consumer *c, struct pod *pod, int64_t api_ms)
{
    if (newest(c)->leaf)
        pod->volume = *newest(c);
    pod->refresh_ms = api_ms + draw(REFRESH_MS);
    serve(c, pod, false);
}

static bool is_of_template(const struct consumer *c, const struct pod *pod)
{
    return cr_json_equal(cr_json_at(pod->json, "metadata", "annotations"), template_annotations(c));
}

static int64_t generation_of(const struct consumer *c)
{
    return cr_json_int_at(c->workload, 0, "metadata", "generation");
}

/* Its controller replaces one pod at a time. */
static void roll_on(struct game *g, struct consumer *c)
{
    struct cr_json *status = cr_json_edit(c->workload, "status");
    if (cr_json_int_at(c->workload, 0, "status", "observedGeneration") == generation_of(c))
        return;
    for (int i = 0; i < PODS; i++)
        if (!is_of_template(c, &c->pods[i])) {
            make_pod(g, c, &c->pods[i]);
            return;
        }
    cr_json_set_int(status, "observedGeneration", generation_of(c));
}

static void run_pods(struct game *g, struct consumer *c)
{
    for (int i = 0; i < PODS; i++) {
        struct pod *pod = &c->pods[i];
        if (pod->refresh_ms <= g->api_ms)
            refresh(c, pod, g->api_ms);
        pod->ready = pod->ready || one_in(3);
    }
    if (one_in(2))
        roll_on(g, c);
}

/* --- what the operator can know --- */

static void list(struct game *g, struct consumer *c)
{
    if (!g->trouble || !one_in(3)) {
        c->listed_len = 0;
        for (int i = 0; i < PODS; i++)
            if (c->pods[i].there)
                c->listed[c->listed_len++] = c->pods[i];
    }
    while (c->seen < c->last && (!g->trouble || !one_in(3)))
        c->seen++;
}

static void digest_of(int leaf, char out[CR_SHA256_HEX])
{
    char word[32];
    snprintf(word, sizeof word, "leaf-%d", leaf);
    cr_sha256_hex(word, strlen(word), out);
}

static void material_of(int leaf, struct cr_material *out)
{
    *out = (struct cr_material){
        .has_leaf = true, .not_before_ms = start_ms - HOUR, .not_after_ms = start_ms + 24LL * 365 * HOUR};
    digest_of(leaf, out->leaf);
    memcpy(out->chain, out->leaf, sizeof out->chain);
    memcpy(out->key, out->leaf, sizeof out->key);
    digest_of(0, out->issuer);
}

struct view {
    struct cr_material materials[CONSUMERS];
    char versions[CONSUMERS][16];
    struct cr_world_secret secrets[CONSUMERS];
    struct cr_world_pod pods[CONSUMERS][PODS];
    char uids[CONSUMERS][PODS][16];
    struct cr_sighting sightings[CONSUMERS][PODS];
    struct cr_world_consumer consumers[CONSUMERS];
    struct cr_world world;
};

/* As policy/controller/world.c: of another start, or by another clock, nothing is recalled. */
static struct cr_sighting recall(const struct game *g, const struct pod *pod)
{
    const struct cr_sighting *seen = &g->memory[pod->uid];
    bool counts = g->memory_started_ms[pod->uid] == pod->started_ms && seen->at_ms <= now_of(g);
    return counts ? *seen : (struct cr_sighting){0};
}

static void view_secret(const struct consumer *c, struct view *v, size_t i)
{
    const struct write *seen = &c->writes[c->seen];
    if (!seen->leaf)
        return;
    material_of(seen->leaf, &v->materials[i]);
    snprintf(v->versions[i], sizeof v->versions[i], "%d", seen->version);
    v->secrets[i] =
        (struct cr_world_secret){.found = true, .resource_version = v->versions[i], .material = &v->materials[i]};
}

static void view_pods(const struct game *g, const struct consumer *c, struct view *v, size_t i)
{
    for (size_t k = 0; k < c->listed_len; k++) {
        const struct pod *pod = &c->listed[k];
        snprintf(v->uids[i][k], sizeof v->uids[i][k], "pod-%d", pod->uid);
        v->sightings[i][k] = recall(g, pod);
        v->pods[i][k] = (struct cr_world_pod){.pod = pod->json,
                                              .name = v->uids[i][k],
                                              .uid = v->uids[i][k],
                                              .ip = "10.0.0.1",
                                              .ready = pod->ready,
                                              .started_ms = pod->started_ms,
                                              .created_ms = pod->created_ms,
                                              .sightings = &v->sightings[i][k]};
    }
    v->consumers[i] = (struct cr_world_consumer){
        .found = true, .workload = c->workload, .pods = v->pods[i], .pods_len = c->listed_len};
}

static void look(const struct game *g, struct view *v)
{
    memset(v, 0, sizeof *v);
    for (size_t i = 0; i < CONSUMERS; i++) {
        view_secret(&g->consumers[i], v, i);
        view_pods(g, &g->consumers[i], v, i);
    }
    v->world = (struct cr_world){.policy = g->policy,
                                 .status = &g->recorded,
                                 .secrets = v->secrets,
                                 .consumers = v->consumers,
                                 .catalogue = g->catalogue,
                                 .now_ms = now_of(g)};
}

static void forget_view(struct view *v)
{
    for (size_t i = 0; i < CONSUMERS; i++)
        cr_material_dispose(&v->materials[i]);
}

/* --- the truth --- */

static const struct pod *pod_by_uid(const struct consumer *c, int uid)
{
    for (int i = 0; i < PODS; i++)
        if (c->pods[i].there && c->pods[i].uid == uid)
            return &c->pods[i];
    return NULL;
}

static bool is_unknown_to_it(const struct consumer *c, int version)
{
    for (int i = 0; i <= c->last; i++)
        if (c->writes[i].version == version)
            return i > c->seen || c->passed_over[i];
    return false;
}

static void expect_true_of(const struct game *g, const struct cr_policy_status *status, size_t i)
{
    const struct consumer *c = &g->consumers[i];
    for (size_t k = 0; k < c->listed_len; k++) {
        const struct pod *pod = pod_by_uid(c, c->listed[k].uid);
        if (!pod || !c->listed[k].ready || is_unknown_to_it(c, pod->serves.version))
            continue;
        char serves[CR_SHA256_HEX];
        digest_of(pod->serves.leaf, serves);
        if (strcmp(serves, status->secrets[i].settled.leaf) != 0)
            fail_msg("game %u: Converged, and pod-%d of consumer %zu serves leaf %d (%d), not that of version %d",
                     g->number, pod->uid, i, pod->serves.leaf, (int)pod->nature, c->writes[c->seen].version);
    }
}

static void check(struct game *g, const struct cr_policy_status *status)
{
    const struct cr_condition *converged = cr_status_condition_get(status, "Converged");
    if (!converged->status)
        return;
    assert_false(converged->unknown);
    g->claims++;
    for (size_t i = 0; i < g->policy->consumers_len; i++)
        expect_true_of(g, status, i);
}

/* --- the operator --- */

static void probe(struct game *g, const struct cr_plan_pod *what)
{
    const struct consumer *c = &g->consumers[what->consumer];
    const struct pod *listed = &c->listed[what->pod];
    const struct pod *pod = pod_by_uid(c, listed->uid);
    struct cr_sighting *seen = &g->memory[listed->uid];
    bool answers = pod && pod->ready && !(g->trouble && one_in(6));
    *seen = (struct cr_sighting){.seen = answers ? CR_SEEN_LEAF : CR_SEEN_UNREACHABLE, .at_ms = now_of(g)};
    if (answers)
        digest_of(pod->serves.leaf, seen->leaf);
    g->memory_started_ms[listed->uid] = listed->started_ms;
}

static void restart(struct consumer *c, const struct cr_plan_restart *what)
{
    struct cr_json *metadata = cr_json_edit(cr_json_edit(cr_json_edit(c->workload, "spec"), "template"), "metadata");
    struct cr_json *annotations = cr_json_object_in(metadata, "annotations");
    for (const struct cr_json *a = cr_json_first(what->annotations); a; a = cr_json_next(a))
        cr_json_set_string(annotations, cr_json_key(a), cr_json_string(a));
    cr_json_set_int(cr_json_edit(c->workload, "metadata"), "generation", generation_of(c) + 1);
}

static struct pod *true_pod(struct game *g, size_t consumer, size_t listed)
{
    struct consumer *c = &g->consumers[consumer];
    for (int i = 0; i < PODS; i++)
        if (c->pods[i].uid == c->listed[listed].uid)
            return &c->pods[i];
    return NULL;
}

static bool act(struct game *g, const struct cr_plan *plan)
{
    for (size_t i = 0; i < plan->restarts_len; i++)
        if (!g->trouble || !one_in(5))
            restart(&g->consumers[plan->restarts[i].consumer], &plan->restarts[i]);
    for (size_t i = 0; i < plan->nudges_len; i++) {
        struct pod *pod = true_pod(g, plan->nudges[i].consumer, plan->nudges[i].pod);
        if (pod && one_in(2))
            refresh(&g->consumers[plan->nudges[i].consumer], pod, g->api_ms);
    }
    for (size_t i = 0; i < plan->evictions_len; i++) {
        struct pod *pod = true_pod(g, plan->evictions[i].consumer, plan->evictions[i].pod);
        if (pod)
            make_pod(g, &g->consumers[plan->evictions[i].consumer], pod);
    }
    for (size_t i = 0; i < plan->probes_len; i++)
        probe(g, &plan->probes[i]);
    return plan->restarts_len || plan->evictions_len || plan->probes_len;
}

static void forget_all(struct game *g)
{
    memset(g->memory, 0, sizeof g->memory);
}

static void note_looks(struct consumer *c)
{
    for (int i = c->looked + 1; i < c->seen; i++)
        c->passed_over[i] = true;
    c->looked = c->seen;
}

/* As the controller: record first what must be, act, look again, report. */
static void reconcile(struct game *g)
{
    for (int i = 0; i < CONSUMERS; i++)
        note_looks(&g->consumers[i]);
    for (int round = 0; round < 4; round++) {
        struct view v;
        CR_CLEANUP(cr_plan) struct cr_plan plan = {0};
        look(g, &v);
        cr_plan_make(&v.world, &plan);
        forget_view(&v);
        gates_check(&plan);
        if (g->trouble && one_in(20)) {
            forget_all(g);
            return;
        }
        bool did = !plan.record_first && act(g, &plan);
        if (did && round < 3)
            continue;
        check(g, &plan.status);
        test_record_status(&plan.status, &g->recorded);
        if (!plan.record_first)
            return;
    }
}

/* --- what happens --- */

static void edit_policy(struct game *g)
{
    switch (draw(4)) {
    case 0: /* a consumer, and its Secret with it, leaves or comes */
        g->policy->consumers_len = g->policy->secrets_len = 3 - g->policy->consumers_len;
        break;
    case 1:
        g->policy->suspend = !g->policy->suspend;
        break;
    case 2: /* it is created anew */
        cr_policy_status_dispose(&g->recorded);
        break;
    default: /* the same answer is to be had at another port */
        g->policy->consumers[0].verify.endpoints[0].port ^= 1;
        forget_all(g); /* answers are kept by where they were had */
        break;
    }
}

static void stir(struct game *g)
{
    struct consumer *c = &g->consumers[draw(CONSUMERS)];
    switch (draw(16)) {
    case 0:
    case 1:
        write_secret(g, c, ++g->leaves);
        break;
    case 2: /* back to an older one */
        if (c->last > 0 && c->writes[c->last - 1].leaf)
            write_secret(g, c, c->writes[c->last - 1].leaf);
        break;
    case 3: /* it vanishes, or comes again */
        write_secret(g, c, newest(c)->leaf ? 0 : c->writes[c->last - 1].leaf);
        break;
    case 4:
    case 5: /* a pod goes, and another one comes */
        make_pod(g, c, &c->pods[draw(PODS)]);
        break;
    case 6: { /* its containers start anew, with what the volume has */
        struct pod *pod = &c->pods[draw(PODS)];
        pod->started_ms = g->api_ms - g->api_ms % SECOND + ++pod->restarts; /* as cr_pod_started_ms() has it */
        serve(c, pod, true);
        break;
    }
    case 7:
        g->ahead_ms += (int64_t)draw(2 * HOUR) - HOUR;
        break;
    case 8:
        forget_all(g);
        break;
    case 9:
        edit_policy(g);
        break;
    default:
        break;
    }
}

/* A person mends what nobody else may: pods are made anew, and the policy is in force. */
static void calm_down(struct game *g)
{
    g->trouble = false;
    g->policy->suspend = false;
    for (int i = 0; i < CONSUMERS; i++) {
        struct consumer *c = &g->consumers[i];
        if (!newest(c)->leaf)
            write_secret(g, c, ++g->leaves);
        for (int k = 0; k < PODS; k++)
            make_pod(g, c, &c->pods[k]);
    }
}

/* --- the game --- */

static const char policy_text[] =
    "metadata: {name: demo, namespace: ns, uid: policy-uid, resourceVersion: '1', generation: 3}\n"
    "spec:\n"
    "  secrets: [{name: s0}, {name: s1}]\n"
    "  restart: {coalesce: 0s, breaker: {within: 0s}}\n"
    "  consumers:\n"
    "  - {name: c0, targetRef: {kind: Deployment, name: c0}, verify: {port: 8442}}\n"
    "  - {name: c1, targetRef: {kind: Deployment, name: c1}, verify: {port: 8442}}\n";

static void setup_consumer(struct game *g, int i)
{
    struct consumer *c = &g->consumers[i];
    c->reloads = one_in(2);
    for (size_t role = 0; role < CR_ROLE_COUNT; role++)
        g->policy->consumers[i].reload[role] = (struct cr_reload_override){
            .set = true, .method = c->reloads ? CR_METHOD_WATCH : CR_METHOD_RESTART, .max_delay_ms = SECOND};
    cr_autofree char *text = cr_asprintf(
        "metadata: {name: c%d, namespace: ns, uid: c%d-uid, resourceVersion: '7', generation: 1}\n"
        "spec:\n"
        "  replicas: %d\n"
        "  template:\n"
        "    metadata: {annotations: {}}\n"
        "    spec:\n"
        "      containers: [{name: c, image: example.org/web:1, volumeMounts: [{name: certs, mountPath: /certs}]}]\n"
        "      volumes: [{name: certs, secret: {secretName: s%d}}]\n"
        "status: {observedGeneration: 1, replicas: %d, updatedReplicas: %d, readyReplicas: %d, availableReplicas: "
        "%d}\n",
        i, i, PODS, i, PODS, PODS, PODS, PODS);
    c->workload = test_yaml(text);
    c->last = c->seen = -1;
    for (int k = 0; k <= (int)draw(2); k++) /* what pods have may be older than all that is seen */
        write_secret(g, c, ++g->leaves);
    c->seen = c->looked = c->last;
    for (int k = 0; k < PODS; k++) {
        make_pod(g, c, &c->pods[k]);
        if (one_in(3) && c->pods[k].nature != ODD)
            c->pods[k].serves = c->pods[k].volume = c->writes[0];
    }
}

static void setup(struct game *g, unsigned number, struct cr_catalogue *catalogue)
{
    struct cr_error err = {0};
    *g = (struct game){.number = number,
                       .catalogue = catalogue,
                       .api_ms = start_ms,
                       .ahead_ms = (int64_t)draw(2 * MINUTE) - MINUTE,
                       .trouble = true,
                       .made = cr_json_new_array()};
    CR_CLEANUP(cr_json) struct cr_json *policy = test_yaml(policy_text);
    g->policy = cr_policy_decode(policy, &err);
    assert_non_null(g->policy);
    for (int i = 0; i < CONSUMERS; i++)
        setup_consumer(g, i);
}

static void teardown(struct game *g)
{
    g->policy->consumers_len = g->policy->secrets_len = CONSUMERS;
    cr_policy_free(g->policy);
    cr_policy_status_dispose(&g->recorded);
    for (int i = 0; i < CONSUMERS; i++)
        cr_json_free(g->consumers[i].workload);
    cr_json_free(g->made);
}

static void step(struct game *g)
{
    g->api_ms += 1 + draw(g->trouble && one_in(8) ? 3 * MINUTE : 8 * SECOND);
    for (int i = 0; i < CONSUMERS; i++) {
        run_pods(g, &g->consumers[i]);
        list(g, &g->consumers[i]);
    }
    if (!g->trouble || !one_in(4))
        reconcile(g);
}

static bool is_converged(const struct game *g)
{
    const struct cr_condition *converged = cr_status_condition_get(&g->recorded, "Converged");
    return converged && converged->status;
}

static void play(struct game *g)
{
    for (int i = 0; i < TROUBLE_STEPS; i++) {
        stir(g);
        step(g);
    }
    calm_down(g);
    for (int i = 0; i < CALM_STEPS; i++) {
        step(g);
        if (is_converged(g) && i > 20)
            return;
    }
    const struct cr_condition *converged = cr_status_condition_get(&g->recorded, "Converged");
    fail_msg("game %u does not end Converged: %s: %s", g->number, converged->reason, converged->message);
}

static void converged_is_true_of_every_pod(void **state)
{
    (void)state;
    unsigned games = getenv("CERTROLL_LONG") ? MANY_GAMES : GAMES;
    int claims = 0;
    struct cr_error err = {0};
    struct cr_catalogue *catalogue = cr_catalogue_builtin(&err);
    assert_non_null(catalogue);
    struct game *g = cr_new(struct game);
    for (unsigned i = 0; i < games; i++) {
        seed = 88172645463325252ULL + (uint64_t)i * 2654435761ULL;
        for (int warm = 0; warm < 8; warm++)
            (void)draw(2);
        setup(g, i, catalogue);
        play(g);
        claims += g->claims;
        teardown(g);
    }
    free(g);
    cr_catalogue_free(catalogue);
    if (claims < (int)games * 5)
        fail_msg("%d claims in %u games: too few to tell anything", claims, games);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(converged_is_true_of_every_pod)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
