/* What the cache keeps of objects: all that some rule reads, and little else. */
#include "controllers/project.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
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
static void of_a_pods_spec_only_whether_it_is_in_its_nodes_network(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *pod, *left, *kind, *owner;
    } cases[] = {
        {"in a network of its own", "{metadata: {name: p, managedFields: [{}]}, spec: {containers: [{name: c}]}}",
         "{metadata: {name: p}}", NULL, NULL},
        {"in that of its node",
         "{metadata: {name: p}, spec: {hostNetwork: true, containers: [{name: c}]}, status: {hostIP: 10.0.0.1}}",
         "{metadata: {name: p}, spec: {hostNetwork: true}, status: {hostIP: 10.0.0.1}}", NULL, NULL},
        {"of a workload",
         "{metadata: {name: p, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, controller: true}]}}",
         "{metadata: {name: p, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, controller: true}]}}",
         "DaemonSet", "d"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_snapshot_new(test_yaml(cases[i].pod));
        const char *kind = NULL;
        const char *owner = NULL;
        cr_project_pod(snapshot->json, snapshot);
        assert_left(cases[i].rule, snapshot, cases[i].left);
        assert_true(cr_projected_owner(snapshot, &kind, &owner) == (cases[i].kind != NULL));
        assert_true(cr_streq(kind, cases[i].kind) && cr_streq(owner, cases[i].owner));
    }
}

/* The order of containers is part of what a person reads in a reason. */
static void of_a_template_what_shows_who_uses_which_secret_and_how(void **state)
{
    (void)state;
    CR_CLEANUP(cr_snapshot)
    struct cr_snapshot *snapshot = cr_snapshot_new(test_yaml(
        "metadata:\n"
        "  {name: web, annotations: {kubectl.kubernetes.io/last-applied-configuration: long, other: kept}}\n"
        "spec:\n"
        "  replicas: 2\n"
        "  template:\n"
        "    metadata: {annotations: {a: b}}\n"
        "    spec:\n"
        "      affinity: {}\n"
        "      tolerations: []\n"
        "      volumes: [{name: v, secret: {secretName: mounted}}, {name: u, secret: {secretName: unread}}]\n"
        "      initContainers: [{name: i, image: x, resources: {}, env: [{name: A, valueFrom: {secretKeyRef: {name: "
        "taken, key: k}}}]}]\n"
        "      containers:\n"
        "      - {name: one, image: y, args: [--cert=/v/tls.crt], livenessProbe: {}, volumeMounts: [{name: v, "
        "mountPath: /v}]}\n"
        "      - {name: two, image: z}\n"
        "status: {replicas: 2}\n"));
    cr_project_user("Deployment", snapshot->json, snapshot);
    assert_left("a Deployment", snapshot,
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
                "      - {name: two, image: z}\n"
                "status: {replicas: 2}\n");
    const struct cr_strvec *uses = cr_projected_uses(snapshot);
    assert_int_equal(uses->len, 2);
    assert_true(cr_strvec_has(uses, "mounted") && cr_strvec_has(uses, "taken"));
}

static void a_policy_that_cannot_be_read_says_why(void **state)
{
    (void)state;
    CR_CLEANUP(cr_snapshot)
    struct cr_snapshot *snapshot =
        cr_snapshot_new(test_yaml("{metadata: {name: p, namespace: ns}, spec: {mode: Perhaps}}"));
    const char *problem = NULL;
    cr_project_policy(snapshot->json, snapshot);
    assert_null(cr_projected_policy(snapshot, &problem));
    assert_non_null(problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_pods_spec_only_whether_it_is_in_its_nodes_network),
        cmocka_unit_test(of_a_template_what_shows_who_uses_which_secret_and_how),
        cmocka_unit_test(a_policy_that_cannot_be_read_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
