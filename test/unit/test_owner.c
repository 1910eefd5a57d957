#include "cluster/owner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"
#include "support/yamltext.h"

#define POD(labels, owners) "metadata: {name: p, labels: {" labels "}, ownerReferences: [" owners "]}"
#define OWNER(kind, name)   "{apiVersion: apps/v1, kind: " kind ", name: " name ", controller: true}"

static void a_pod_belongs_to_the_workload_that_controls_it(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *pod;
        const char *kind; /* NULL: none */
        const char *name;
    } cases[] = {
        {"a ReplicaSet stands for its Deployment", POD("pod-template-hash: 5d8f", OWNER("ReplicaSet", "web-5d8f")),
         "Deployment", "web"},
        {"whose name may have dashes", POD("pod-template-hash: 5d8f", OWNER("ReplicaSet", "web-5d8f-5d8f")),
         "Deployment", "web-5d8f"},
        {"a hash that is not the name's end", POD("pod-template-hash: aaaa", OWNER("ReplicaSet", "web-5d8f")), NULL,
         NULL},
        {"a hash that is only a part of the last word", POD("pod-template-hash: d8f", OWNER("ReplicaSet", "web-5d8f")),
         NULL, NULL},
        {"a hash that is no text is none", POD("pod-template-hash: [x]", OWNER("ReplicaSet", "web-5d8f")), "ReplicaSet",
         "web-5d8f"},
        {"a ReplicaSet that nobody made has no hash", POD("app: web", OWNER("ReplicaSet", "web-5d8f")), "ReplicaSet",
         "web-5d8f"},
        {"an Argo Rollout's has another label",
         POD("rollouts-pod-template-hash: 5d8f", OWNER("ReplicaSet", "web-5d8f")), "Rollout", "web"},
        {"an Argo Rollout's with another hash",
         POD("rollouts-pod-template-hash: aaaa", OWNER("ReplicaSet", "web-5d8f")), NULL, NULL},
        {"a StatefulSet", POD("pod-template-hash: db", OWNER("StatefulSet", "my-db")), "StatefulSet", "my-db"},
        {"a DaemonSet", POD("", OWNER("DaemonSet", "proxy")), "DaemonSet", "proxy"},
        {"a Job is none of ours", POD("", OWNER("Job", "once")), NULL, NULL},
        {"a static pod's node", POD("", "{apiVersion: v1, kind: Node, name: n1, controller: true}"), NULL, NULL},
        {"another group's StatefulSet",
         POD("", "{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, name: db, controller: true}"), NULL, NULL},
        {"nobody", POD("", ""), NULL, NULL},
        {"no metadata at all", "kind: Pod", NULL, NULL},
        {"an owner that does not control", POD("", "{apiVersion: apps/v1, kind: StatefulSet, name: db}"), NULL, NULL},
        {"the one of several that controls",
         POD("",
             "{apiVersion: apps/v1, kind: StatefulSet, name: other, controller: false}, " OWNER("DaemonSet", "proxy")),
         "DaemonSet", "proxy"},
        {"an owner without a name", POD("", "{apiVersion: apps/v1, kind: DaemonSet, controller: true}"), NULL, NULL},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_json) struct cr_json *pod = test_yaml(cases[i].pod);
        const char *kind = NULL;
        cr_autofree char *name = NULL;
        bool found = cr_pod_workload(pod, &kind, &name);
        if (found != (cases[i].kind != NULL))
            fail_msg("%s: found %d", cases[i].rule, found);
        if (found && (!cr_streq(kind, cases[i].kind) || !cr_streq(name, cases[i].name)))
            fail_msg("%s: %s %s", cases[i].rule, kind, name);
        if (!found && name)
            fail_msg("%s: a name for nobody: %s", cases[i].rule, name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_pod_belongs_to_the_workload_that_controls_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
