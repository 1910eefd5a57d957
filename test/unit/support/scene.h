/* Workloads under budgets, turned by hand as a cluster would: plan, record, evict, and a new pod comes up. */
#ifndef TEST_SUPPORT_SCENE_H
#define TEST_SUPPORT_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "pki/digest.h"
#include "policy/rules/plan.h"
#include "support/gates.h"
#include "support/recorded.h"
#include "support/yamltext.h"

enum { SCENE_CONSUMERS = 2, SCENE_PODS = 5, SECOND = 1000, SCENE_START = 1000 * 1000 * 1000 };

struct scene {
    struct cr_policy *policy;
    struct cr_policy_status status;
    struct cr_catalogue *catalogue;
    struct cr_material material;
    struct cr_world_secret secret;
    const struct cr_world_secret *secrets; /* NULL: that one is all */
    struct cr_json *workloads[SCENE_CONSUMERS];
    struct cr_world_consumer consumers[SCENE_CONSUMERS];
    struct cr_world_pod pods[SCENE_CONSUMERS][SCENE_PODS];
    struct cr_sighting sightings[SCENE_CONSUMERS][SCENE_PODS];
    struct cr_json *pod_json; /* an array of all there ever were */
    char names[64][16];
    size_t named;
    struct cr_budget budgets[3];
    struct cr_world_budgets view;
    struct cr_tzif *utc; /* the zone of the only window */
    int64_t now_ms;
    int64_t skew_ms;     /* of the API server's clock against ours */
    struct cr_plan plan; /* the last one */
};

/* Of each Secret's leaf and CA one stands for the other: both change together. */
static inline void scene_material(struct scene *s, const char *leaf)
{
    struct cr_material *m = &s->material;
    cr_material_dispose(m);
    *m = (struct cr_material){.has_leaf = true, .not_after_ms = SCENE_START * 2LL, .trust_len = 1};
    cr_sha256_hex(leaf, strlen(leaf), m->leaf);
    memcpy(m->chain, m->leaf, sizeof m->chain);
    memcpy(m->key, m->leaf, sizeof m->key);
    memcpy(m->issuer, m->leaf, sizeof m->issuer);
    m->trust = cr_calloc(1, sizeof *m->trust);
    memcpy(m->trust[0].fingerprint, m->leaf, sizeof m->trust[0].fingerprint);
    memcpy(m->trust[0].identity, m->leaf, sizeof m->trust[0].identity);
    m->trust[0].not_after_ms = m->not_after_ms;
    cr_strvec_add(&m->anchors, m->trust[0].identity);
    s->secret = (struct cr_world_secret){.found = true, .resource_version = leaf, .material = m};
}

/* Ready, and as old as now by the API server's clock, in whole seconds. */
static inline void scene_pod(struct scene *s, size_t consumer, size_t slot)
{
    char *name = s->names[s->named];
    snprintf(name, sizeof s->names[0], "%s-%zu", consumer ? "api" : "web", s->named);
    s->named++;
    struct cr_json *pod = test_yaml("{metadata: {annotations: {}, labels: {all: 'yes'}}, status: {phase: Running}}");
    cr_json_set_string(cr_json_edit(cr_json_edit(pod, "metadata"), "labels"), "app", consumer ? "api" : "web");
    cr_json_set(cr_json_edit(pod, "metadata"), "annotations",
                cr_json_copy(cr_json_at(s->workloads[consumer], "spec", "template", "metadata", "annotations")));
    cr_json_add(s->pod_json, pod);
    s->sightings[consumer][slot] = (struct cr_sighting){0};
    int64_t created = s->now_ms + s->skew_ms;
    s->pods[consumer][slot] = (struct cr_world_pod){.pod = pod,
                                                    .name = name,
                                                    .uid = name,
                                                    .ip = "10.0.0.1",
                                                    .ready = true,
                                                    .started_ms = created - created % SECOND,
                                                    .created_ms = created - created % SECOND,
                                                    .sightings = &s->sightings[consumer][slot]};
}

/* An int, or "Recreate" and the like; replicas pods are there, an hour old. */
static inline void scene_workload(struct scene *s, size_t consumer, int replicas, const char *strategy)
{
    cr_autofree char *text = cr_asprintf(
        "metadata: {name: %s, namespace: ns, uid: %s-uid, resourceVersion: '7', generation: 1}\n"
        "spec:\n"
        "  replicas: %d\n"
        "  %s\n"
        "  template:\n"
        "    metadata: {annotations: {}}\n"
        "    spec:\n"
        "      containers: [{name: web, image: example.org/web:1, volumeMounts: [{name: certs, mountPath: /certs}]}]\n"
        "      volumes: [{name: certs, secret: {secretName: web}}]\n"
        "status: {observedGeneration: 1, replicas: %d, updatedReplicas: %d, readyReplicas: %d, availableReplicas: "
        "%d}\n",
        consumer ? "api" : "web", consumer ? "api" : "web", replicas, strategy, replicas, replicas, replicas, replicas);
    cr_json_free(s->workloads[consumer]);
    s->workloads[consumer] = test_yaml(text);
    int64_t now = s->now_ms;
    s->now_ms -= 3600 * SECOND;
    for (size_t i = 0; i < (size_t)replicas; i++)
        scene_pod(s, consumer, i);
    s->now_ms = now;
    s->consumers[consumer] = (struct cr_world_consumer){
        .found = true, .workload = s->workloads[consumer], .pods = s->pods[consumer], .pods_len = (size_t)replicas};
}

/* Over all pods by these labels, as its controller counts them. */
static inline void scene_budget(struct scene *s, size_t at, const char *labels, int healthy, int needed, int allowed)
{
    size_t expected = s->consumers[0].pods_len + s->consumers[1].pods_len;
    cr_autofree char *text =
        cr_asprintf("metadata: {name: pdb%zu, generation: 1}\n"
                    "spec: {minAvailable: %d, selector: {matchLabels: %s}}\n"
                    "status: {observedGeneration: 1, currentHealthy: %d, desiredHealthy: %d, expectedPods: %zu,"
                    " disruptionsAllowed: %d}",
                    at, needed, labels, healthy, needed, expected, allowed);
    CR_CLEANUP(cr_json) struct cr_json *object = test_yaml(text);
    cr_budget_dispose(&s->budgets[at]);
    cr_budget_read(object, &s->budgets[at]);
    s->view.items = s->budgets;
    s->view.len = at >= s->view.len ? at + 1 : s->view.len;
}

/* A policy of Deployment web, and api if it has 2 consumers; restart: as in its spec, "{method: Evict}". */
static inline struct scene *scene_new(const char *restart, size_t consumers)
{
    struct scene *s = cr_new(struct scene);
    struct cr_error err = {0};
    static const char consumer[] =
        "  - name: %s\n"
        "    targetRef: {apiVersion: apps/v1, kind: Deployment, name: %s}\n"
        "    verify: {port: 8443}\n"
        "    reload: {serverLeaf: {method: Restart}, clientCA: {method: Restart}, serverCA: {method: Restart}}\n";
    struct cr_buf text = CR_BUF_INIT(0);
    cr_buf_printf(&text,
                  "metadata: {name: demo, namespace: ns, uid: policy-uid, resourceVersion: '1', generation: 3}\n"
                  "spec:\n"
                  "  secrets: [{name: web}]\n"
                  "  restart: %s\n"
                  "  consumers:\n",
                  restart);
    cr_buf_printf(&text, consumer, "web", "web");
    if (consumers > 1)
        cr_buf_printf(&text, consumer, "api", "api");
    cr_autofree char *yaml = cr_buf_steal(&text);
    CR_CLEANUP(cr_json) struct cr_json *policy = test_yaml(yaml);
    s->policy = cr_policy_decode(policy, &err);
    if (!s->policy)
        fail_msg("%s", err.text);
    s->catalogue = cr_catalogue_builtin(&err);
    s->utc = cr_tzif_new_utc();
    s->pod_json = cr_json_new_array();
    s->now_ms = SCENE_START;
    scene_material(s, "1");
    for (size_t i = 0; i < consumers; i++)
        scene_workload(s, i, 3, "");
    return s;
}

static inline void scene_free(struct scene *s)
{
    cr_plan_dispose(&s->plan);
    cr_policy_status_dispose(&s->status);
    cr_policy_free(s->policy);
    cr_catalogue_free(s->catalogue);
    cr_tzif_free(s->utc);
    cr_material_dispose(&s->material);
    for (size_t i = 0; i < SCENE_CONSUMERS; i++)
        cr_json_free(s->workloads[i]);
    for (size_t i = 0; i < cr_array_len(s->budgets); i++)
        cr_budget_dispose(&s->budgets[i]);
    cr_json_free(s->pod_json);
    free(s);
}
CR_DEFINE_CLEANUP(scene, struct scene, scene_free)

static inline const struct cr_plan *scene_plan(struct scene *s)
{
    cr_plan_dispose(&s->plan);
    const struct cr_tzif *const zones[] = {s->utc};
    struct cr_world world = {.policy = s->policy,
                             .status = &s->status,
                             .secrets = s->secrets ? s->secrets : &s->secret,
                             .consumers = s->consumers,
                             .catalogue = s->catalogue,
                             .budgets = s->view,
                             .zones = zones,
                             .now_ms = s->now_ms};
    cr_plan_make(&world, &s->plan);
    gates_check(&s->plan);
    return &s->plan;
}

static inline void scene_record(struct scene *s)
{
    test_record_status(&s->plan.status, &s->status);
}

/* Plans and records until there is nothing more that must be on record first. */
static inline const struct cr_plan *scene_due(struct scene *s)
{
    for (int i = 0; i < 5; i++) {
        if (!scene_plan(s)->record_first)
            return &s->plan;
        scene_record(s);
    }
    fail_msg("the plan wants to record for ever");
    return &s->plan;
}

static inline const struct cr_consumer_status *scene_status(const struct scene *s, size_t consumer)
{
    return &s->plan.status.consumers[consumer];
}

static inline void scene_see(struct scene *s, size_t consumer, size_t slot, const char *leaf)
{
    struct cr_sighting *seen = &s->sightings[consumer][slot];
    *seen = (struct cr_sighting){.seen = CR_SEEN_LEAF, .at_ms = s->now_ms};
    cr_sha256_hex(leaf, strlen(leaf), seen->leaf);
}

static inline void scene_see_all(struct scene *s, const char *leaf)
{
    for (size_t i = 0; i < s->policy->consumers_len; i++)
        for (size_t p = 0; p < s->consumers[i].pods_len; p++)
            scene_see(s, i, p, leaf);
}

/* At rest for a minute, then the Secret changes; coalesce is over. */
static inline void scene_change(struct scene *s, const char *leaf)
{
    scene_due(s);
    scene_record(s);
    s->now_ms += 60 * SECOND;
    scene_material(s, leaf);
    scene_due(s);
    scene_record(s);
    s->now_ms += 10 * SECOND;
}

/* What the API server and the workload's controller make of a restart. */
static inline void scene_apply_restart(struct scene *s)
{
    assert_int_equal(s->plan.restarts_len, 1);
    struct cr_json *workload = s->workloads[0];
    struct cr_json *metadata = cr_json_edit(cr_json_edit(cr_json_edit(workload, "spec"), "template"), "metadata");
    struct cr_json *annotations = cr_json_object_in(metadata, "annotations");
    for (const struct cr_json *a = cr_json_first(s->plan.restarts[0].annotations); a; a = cr_json_next(a))
        cr_json_set_string(annotations, cr_json_key(a), cr_json_string(a));
    cr_json_set_int(cr_json_edit(workload, "metadata"), "generation", 2);
    cr_json_set_int(cr_json_edit(workload, "status"), "observedGeneration", 2);
}

static inline void scene_fail_rollout(struct scene *s)
{
    struct cr_json *status = cr_json_edit(s->workloads[0], "status");
    cr_json_set_int(status, "updatedReplicas", 1);
    struct cr_json *failed = cr_json_add(cr_json_array_in(status, "conditions"), cr_json_new_object());
    cr_json_set_string(failed, "type", "Progressing");
    cr_json_set_string(failed, "status", "False");
    cr_json_set_string(failed, "reason", "ProgressDeadlineExceeded");
}

/* Whether an Event of that reason is to be said. */
static inline bool scene_says(const struct scene *s, const char *reason)
{
    for (size_t i = 0; i < s->plan.events_len; i++)
        if (cr_streq(s->plan.events[i].reason, reason))
            return true;
    return false;
}

#endif
