/* What the cache keeps of objects: all that some rule reads, and little else. */
#include "cluster/project.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "kube/object.h"
#include "support/yamltext.h"

static void assert_left(const char *rule, const struct cr_snapshot *snapshot, const char *expected)
{
    CR_CLEANUP(cr_json) struct cr_json *left = test_yaml(expected);
    if (cr_json_equal(snapshot->json, left))
        return;
    cr_autofree char *text = cr_json_print(snapshot->json);
    fail_msg("%s: %s", rule, text);
}

/* Whether it shares its node's address decides which of its ports are asked. */
static void of_a_pod_what_its_evidence_and_its_probes_ask(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *pod, *left, *kind, *owner;
        bool active;
    } cases[] = {
        {"in a network of its own", "{metadata: {name: p, managedFields: [{}]}, spec: {containers: [{name: c}]}}",
         "{metadata: {name: p}}", NULL, NULL, true},
        {"in that of its node",
         "{metadata: {name: p}, spec: {hostNetwork: true, containers: [{name: c}]}, status: {hostIP: 10.0.0.1}}",
         "{metadata: {name: p}, spec: {hostNetwork: true}, status: {hostIP: 10.0.0.1}}", NULL, NULL, true},
        {"of a workload",
         "{kind: Pod, metadata: {name: p, labels: {a: b}, annotations: {c: d}, ownerReferences: [{apiVersion: apps/v1, "
         "kind: DaemonSet, name: d, controller: true}]}}",
         "{metadata: {name: p, labels: {a: b}, annotations: {c: d}}}", "DaemonSet", "d", true},
        {"that runs",
         "{metadata: {name: p}, status: {phase: Running, podIP: 10.0.0.2, hostIPs: [{ip: 10.0.0.1}], qosClass: "
         "Burstable, "
         "startTime: '2026-01-01T00:00:00Z', conditions: [{type: PodScheduled, status: 'True'}, {type: Ready, status: "
         "'True', lastProbeTime: null}], containerStatuses: [{name: a, image: x, restartCount: 3, state: {running: "
         "{startedAt: "
         "'2026-01-01T00:00:01Z'}}}, {name: b, state: {waiting: {reason: CrashLoopBackOff}}}]}}",
         "{metadata: {name: p}, status: {phase: Running, podIP: 10.0.0.2, hostIPs: [{ip: 10.0.0.1}], "
         "startTime: '2026-01-01T00:00:00Z', conditions: [{type: Ready, status: 'True'}], "
         "containerStatuses: [{state: {running: {startedAt: '2026-01-01T00:00:01Z'}}, restartCount: 3}]}}",
         NULL, NULL, true},
        {"that has ended", "{metadata: {name: p}, status: {phase: Failed, reason: Evicted}}",
         "{metadata: {name: p}, status: {phase: Failed}}", NULL, NULL, false},
        {"that is being deleted",
         "{metadata: {name: p, deletionTimestamp: '2026-01-01T00:00:00Z'}, status: {phase: Running}}",
         "{metadata: {name: p, deletionTimestamp: '2026-01-01T00:00:00Z'}, status: {phase: Running}}", NULL, NULL,
         false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_snapshot_new(test_yaml(cases[i].pod));
        const char *kind = NULL;
        const char *owner = NULL;
        CR_CLEANUP(cr_json) struct cr_json *whole = test_yaml(cases[i].pod);
        cr_project_pod(snapshot->json, snapshot);
        assert_left(cases[i].rule, snapshot, cases[i].left);
        assert_true(cr_projected_owner(snapshot->extra, &kind, &owner) == (cases[i].kind != NULL));
        assert_true(cr_streq(kind, cases[i].kind) && cr_streq(owner, cases[i].owner));
        assert_true(cr_projected_active(snapshot->extra) == cases[i].active);
        /* What is asked of it has the same answer as before. */
        assert_true(cr_pod_ready(snapshot->json) == cr_pod_ready(whole));
        assert_true(cr_pod_active(snapshot->json) == cr_pod_active(whole));
        assert_true(cr_pod_started_ms(snapshot->json) == cr_pod_started_ms(whole));
        assert_true(cr_streq(cr_pod_ip(snapshot->json), cr_pod_ip(whole)));
    }
}

static void of_an_ingress_and_a_gateway_which_secrets_they_name(void **state)
{
    (void)state;
    CR_CLEANUP(cr_snapshot)
    struct cr_snapshot *ingress = cr_snapshot_new(
        test_yaml("{metadata: {name: i, creationTimestamp: '1970-01-01T00:00:01Z'}, spec: {tls: [{secretName: s}], "
                  "rules: [{host: h}]}, status: {loadBalancer: {}}}"));
    cr_project_user("Ingress", ingress->json, ingress);
    assert_left("an Ingress", ingress,
                "{metadata: {name: i, creationTimestamp: '1970-01-01T00:00:01Z'}, spec: {tls: [{secretName: s}]}}");
    assert_true(cr_strvec_has(cr_projected_uses(ingress->extra), "s"));
    assert_int_equal(cr_projected_created_ms(ingress->extra), 1000);
}

static void an_argo_rollouts_state_and_the_source_of_its_template(void **state)
{
    (void)state;
    CR_CLEANUP(cr_snapshot)
    struct cr_snapshot *rollout = cr_snapshot_new(
        test_yaml("{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: r, labels: {a: b}}, spec: "
                  "{workloadRef: {apiVersion: apps/v1, kind: Deployment, name: d}, restartAt: t, strategy: {canary: "
                  "{maxUnavailable: 1, steps: [{setWeight: 1}]}}}, status: {phase: Healthy, stableRS: h, conditions: "
                  "[{type: Available}], canary: {weights: {}}}}"));
    cr_project_user("Rollout", rollout->json, rollout);
    assert_left(
        "an Argo Rollout", rollout,
        "{metadata: {name: r}, spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: d}, restartAt: "
        "t, strategy: {canary: {maxUnavailable: 1}}}, status: {phase: Healthy, stableRS: h}, kind: Rollout}");
    assert_string_equal(cr_projected_template_of(rollout->extra), "d");
    assert_int_equal(cr_projected_uses(rollout->extra)->len, 0);
}

static void of_a_workload_whether_its_rollout_may_still_take_pods_away(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *kind, *workload;
        bool rolling;
    } cases[] = {
        {"done", "Deployment",
         "{metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, "
         "updatedReplicas: 2, availableReplicas: 2}}",
         false},
        {"begun a moment ago, by whomever", "Deployment",
         "{metadata: {generation: 3}, spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, "
         "updatedReplicas: 2, availableReplicas: 2}}",
         true},
        {"the last new pod is not available", "StatefulSet",
         "{metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, "
         "updatedReplicas: 2, availableReplicas: 1}}",
         true},
        {"failed: old pods are left", "Deployment",
         "{metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 3, "
         "updatedReplicas: 1, availableReplicas: 2, conditions: [{type: Progressing, status: 'False', reason: "
         "ProgressDeadlineExceeded}]}}",
         true},
        {"paused: nothing moves", "Deployment",
         "{metadata: {generation: 2}, spec: {replicas: 2, paused: true}, status: {observedGeneration: 2, replicas: 2, "
         "updatedReplicas: 1, availableReplicas: 2}}",
         false},
        {"OnDelete: a person takes them away", "DaemonSet",
         "{metadata: {generation: 2}, spec: {updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, "
         "desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2}}",
         false},
        {"what has no pods", "Ingress", "{metadata: {generation: 2}}", false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_snapshot_new(test_yaml(cases[i].workload));
        cr_project_user(cases[i].kind, snapshot->json, snapshot);
        if (cr_projected_rolling(snapshot->extra) != cases[i].rolling)
            fail_msg("%s", cases[i].rule);
    }
}

static void a_budget_is_read_once_and_nothing_else_of_it_is_kept(void **state)
{
    (void)state;
    CR_CLEANUP(cr_snapshot)
    struct cr_snapshot *snapshot = cr_snapshot_new(
        test_yaml("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: ns, "
                  "resourceVersion: '7', generation: 1, labels: {l: m}, managedFields: [{}]}, spec: {minAvailable: 2, "
                  "selector: {matchLabels: {app: web}}}, status: {observedGeneration: 1, disruptionsAllowed: 1, "
                  "currentHealthy: 3, desiredHealthy: 2, expectedPods: 3, disruptedPods: {p: "
                  "'2026-01-01T00:00:00Z'}}}"));
    CR_CLEANUP(cr_json) struct cr_json *labels = test_yaml("{app: web}");
    cr_project_budget(snapshot->json, snapshot);
    assert_left("a budget", snapshot, "{metadata: {name: b, namespace: ns, resourceVersion: '7', generation: 1}}");
    const struct cr_budget *budget = cr_projected_budget(snapshot->extra);
    assert_string_equal(budget->name, "b");
    assert_string_equal(budget->demand, "minAvailable 2");
    assert_true(budget->observed && cr_budget_selects(budget, labels));
    assert_int_equal(budget->allowed, 1);
}

/* The order of containers is part of what a person reads in a reason. */
static void of_a_template_what_shows_who_uses_which_secret_and_how(void **state)
{
    (void)state;
    CR_CLEANUP(cr_snapshot)
    struct cr_snapshot *snapshot = cr_snapshot_new(test_yaml(
        "metadata:\n"
        "  {name: web, labels: {l: m}, annotations: {kubectl.kubernetes.io/last-applied-configuration: long, other: "
        "kept}}\n"
        "spec:\n"
        "  replicas: 2\n"
        "  selector: {matchLabels: {c: d}}\n"
        "  template:\n"
        "    metadata: {annotations: {a: b}, labels: {c: d}}\n"
        "    spec:\n"
        "      affinity: {}\n"
        "      tolerations: []\n"
        "      volumes: [{name: v, secret: {secretName: mounted}}, {name: u, secret: {secretName: unread}}]\n"
        "      initContainers: [{name: i, image: x, resources: {}, env: [{name: A, valueFrom: {secretKeyRef: {name: "
        "taken, key: k}}}]}]\n"
        "      containers:\n"
        "      - {name: one, image: y, args: [--cert=/v/tls.crt], livenessProbe: {}, volumeMounts: [{name: v, "
        "mountPath: /v}]}\n"
        "      - {name: two, image: z, ports: [{name: certroll-reload, containerPort: 9950}], readinessProbe: {}}\n"
        "status: {replicas: 2, conditions: [{type: Progressing, status: 'True', reason: NewReplicaSetAvailable, "
        "message: long, lastUpdateTime: '2026-01-01T00:00:00Z'}]}\n"));
    cr_project_user("Deployment", snapshot->json, snapshot);
    assert_left(
        "a Deployment", snapshot,
        "metadata: {name: web, annotations: {other: kept}}\n"
        "spec:\n"
        "  replicas: 2\n"
        "  template:\n"
        "    metadata: {annotations: {a: b}}\n"
        "    spec:\n"
        "      volumes: [{name: v, secret: {secretName: mounted}}, {name: u, secret: {secretName: unread}}]\n"
        "      initContainers: [{name: i, image: x, env: [{name: A, valueFrom: {secretKeyRef: {name: taken, "
        "key: k}}}]}]\n"
        "      containers:\n"
        "      - {name: one, image: y, args: [--cert=/v/tls.crt], volumeMounts: [{name: v, mountPath: /v}]}\n"
        "      - {name: two, image: z, ports: [{name: certroll-reload, containerPort: 9950}]}\n"
        "status: {replicas: 2, conditions: [{type: Progressing, status: 'True', reason: NewReplicaSetAvailable}]}\n");
    const struct cr_strvec *uses = cr_projected_uses(snapshot->extra);
    assert_int_equal(uses->len, 2);
    assert_true(cr_strvec_has(uses, "mounted") && cr_strvec_has(uses, "taken"));
}

static void of_a_template_what_holds_its_pods_ends_back(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *pod_spec, *left;
    } cases[] = {
        {"a shutdown manager's hook, and the time that it has",
         "{terminationGracePeriodSeconds: 300, containers: [{name: a, resources: {}, lifecycle: {preStop: {exec: "
         "{command: [certroll-shutdown-manager, shutdown]}}}}]}",
         "{terminationGracePeriodSeconds: 300, containers: [{name: a, lifecycle: {preStop: {exec: {command: "
         "[certroll-shutdown-manager, shutdown]}}}}]}"},
        {"any other hook is of no interest",
         "{terminationGracePeriodSeconds: 300, containers: [{name: a, lifecycle: {preStop: {exec: {command: [sleep, "
         "'9']}}}}], initContainers: [{name: b, restartPolicy: Always, lifecycle: {}}]}",
         "{containers: [{name: a}], initContainers: [{name: b, restartPolicy: Always}]}"},
        {"no hook", "{terminationGracePeriodSeconds: 300, containers: [{name: a}]}", "{containers: [{name: a}]}"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *whole = cr_asprintf("{metadata: {name: d}, spec: {template: {spec: %s}}}", cases[i].pod_spec);
        cr_autofree char *left = cr_asprintf("{metadata: {name: d}, spec: {template: {spec: %s}}}", cases[i].left);
        CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_snapshot_new(test_yaml(whole));
        cr_project_user("Deployment", snapshot->json, snapshot);
        assert_left(cases[i].rule, snapshot, left);
    }
}

static void of_a_pod_that_is_being_deleted_how_long_it_may_drain(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *metadata, *command;
        int64_t drain_ms;
    } cases[] = {
        {"with a time-out", "deletionTimestamp: '2026-01-01T00:00:00Z'",
         "certroll-shutdown-manager, shutdown, --drain-timeout=1500ms", 2000},
        {"without one", "deletionTimestamp: '2026-01-01T00:00:00Z'", "contour, envoy, shutdown", -1},
        {"by another hook", "deletionTimestamp: '2026-01-01T00:00:00Z'", "sleep, '9'", 0},
        {"of one that nobody ends it is not read", "uid: u", "certroll-shutdown-manager, shutdown", 0},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *pod = cr_asprintf(
            "{metadata: {name: p, %s}, spec: {containers: [{name: a, lifecycle: {preStop: {exec: {command: [%s]}}}}]}}",
            cases[i].metadata, cases[i].command);
        CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_snapshot_new(test_yaml(pod));
        cr_project_pod(snapshot->json, snapshot);
        if (cr_projected_drain_ms(snapshot->extra) != cases[i].drain_ms)
            fail_msg("%s: %lld", cases[i].rule, (long long)cr_projected_drain_ms(snapshot->extra));
        assert_null(cr_json_get(snapshot->json, "spec"));
    }
}

static void of_an_active_pod_which_secrets_it_uses(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *metadata;
        bool kept, left;
    } cases[] = {
        {"made by hand", "uid: u", true},
        {"left behind by a StatefulSet (kubectl delete --cascade=orphan)", "labels: {controller-revision-hash: db-5d4}",
         true, true},
        {"of a controller that is not known",
         "labels: {controller-revision-hash: k-5d4}, ownerReferences: [{apiVersion: apps.kruise.io/v1beta1, kind: "
         "StatefulSet, name: k, controller: true}]",
         true},
        {"of a Deployment, whose template may be another by now",
         "labels: {pod-template-hash: abc}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: d-abc, "
         "controller: true}]",
         true},
        {"of a Job, whose next pod reads what is there by then",
         "ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, controller: true}]", false},
        {"that is being deleted", "deletionTimestamp: '2026-01-01T00:00:00Z'", false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *pod =
            cr_asprintf("{metadata: {name: p, creationTimestamp: '1970-01-01T00:00:01Z', %s}, spec: "
                        "{containers: [{name: a, volumeMounts: [{name: v, mountPath: /v}]}], "
                        "volumes: [{name: v, secret: {secretName: tls}}]}}",
                        cases[i].metadata);
        CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_snapshot_new(test_yaml(pod));
        cr_project_pod(snapshot->json, snapshot);
        const struct cr_strvec *uses = cr_projected_pod_uses(snapshot->extra);
        if ((uses != NULL) != cases[i].kept)
            fail_msg("%s: %s", cases[i].rule, uses ? "kept" : "not kept");
        assert_true(!uses || (uses->len == 1 && cr_strvec_has(uses, "tls")));
        assert_int_equal(cr_projected_pod_created_ms(snapshot->extra), uses ? 1000 : 0);
        assert_int_equal(cr_projected_pod_is_left(snapshot->extra), cases[i].left);
    }
}

static void a_policy_that_cannot_be_read_says_why(void **state)
{
    (void)state;
    CR_CLEANUP(cr_snapshot)
    struct cr_snapshot *snapshot =
        cr_snapshot_new(test_yaml("{metadata: {name: p, namespace: ns}, spec: {mode: Perhaps}}"));
    const char *problem = NULL;
    cr_project_policy(snapshot->json);
    cr_project_decode(snapshot);
    assert_null(cr_projected_policy(snapshot, &problem));
    assert_non_null(problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_pod_what_its_evidence_and_its_probes_ask),
        cmocka_unit_test(of_a_workload_whether_its_rollout_may_still_take_pods_away),
        cmocka_unit_test(a_budget_is_read_once_and_nothing_else_of_it_is_kept),
        cmocka_unit_test(of_an_ingress_and_a_gateway_which_secrets_they_name),
        cmocka_unit_test(an_argo_rollouts_state_and_the_source_of_its_template),
        cmocka_unit_test(of_a_template_what_shows_who_uses_which_secret_and_how),
        cmocka_unit_test(of_a_template_what_holds_its_pods_ends_back),
        cmocka_unit_test(of_a_pod_that_is_being_deleted_how_long_it_may_drain),
        cmocka_unit_test(of_an_active_pod_which_secrets_it_uses),
        cmocka_unit_test(a_policy_that_cannot_be_read_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
