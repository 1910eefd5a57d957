#include "workload/worst_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/strings.h"
#include "support/yamltext.h"

/* clang-format off */
static const struct worst_case_case {
    const char *rule;
    const char *kind;
    const char *workload;
    enum cr_worst_case_way way;
    int desired, replaced, unavailable, surge;
    const char *text; /* part of it */
} cases[] = {
    /* --- Deployment --- */
    {"Deployment: by default a quarter, rounded down, and surge, rounded up", "Deployment",
     "spec: {replicas: 10}", CR_WORST_ROLLS, 10, 10, 2, 3, "maxUnavailable 25%, maxSurge 25% of 10 pods"},
    {"Deployment: of less than four pods the default takes none away", "Deployment",
     "spec: {replicas: 3, strategy: {type: RollingUpdate}}", CR_WORST_ROLLS, 3, 3, 0, 1, "of 3 pods"},
    {"Deployment: a single replica is surged", "Deployment", "spec: {replicas: 1}", CR_WORST_ROLLS, 1, 1, 0, 1, ""},
    {"Deployment: replicas default to one", "Deployment", "spec: {}", CR_WORST_ROLLS, 1, 1, 0, 1, "of 1 pods"},
    {"Deployment: no replicas, nothing to lose", "Deployment",
     "spec: {replicas: 0, strategy: {rollingUpdate: {maxUnavailable: 2, maxSurge: 0}}}", CR_WORST_ROLLS, 0, 0, 0, 0, ""},
    {"Deployment: counts are taken as they are", "Deployment",
     "spec: {replicas: 10, strategy: {rollingUpdate: {maxUnavailable: 4, maxSurge: 0}}}",
     CR_WORST_ROLLS, 10, 10, 4, 0, "maxUnavailable 4, maxSurge 0"},
    {"Deployment: not more than there are", "Deployment",
     "spec: {replicas: 3, strategy: {rollingUpdate: {maxUnavailable: 5, maxSurge: 1}}}", CR_WORST_ROLLS, 3, 3, 3, 1, ""},
    {"Deployment: all of them by percentage", "Deployment",
     "spec: {replicas: 3, strategy: {rollingUpdate: {maxUnavailable: '100%', maxSurge: 0}}}",
     CR_WORST_ROLLS, 3, 3, 3, 0, "maxUnavailable 100%"},
    {"Deployment: what rounds to nothing at all takes one away", "Deployment",
     "spec: {replicas: 4, strategy: {rollingUpdate: {maxUnavailable: '10%', maxSurge: 0}}}",
     CR_WORST_ROLLS, 4, 4, 1, 0, "maxUnavailable 10%"},
    {"Deployment: half of an odd number rounds down, and its surge up", "Deployment",
     "spec: {replicas: 5, strategy: {rollingUpdate: {maxUnavailable: '50%', maxSurge: '50%'}}}",
     CR_WORST_ROLLS, 5, 5, 2, 3, ""},
    {"Deployment: one of the two fields given, the other has its default", "Deployment",
     "spec: {replicas: 8, strategy: {rollingUpdate: {maxSurge: 0}}}", CR_WORST_ROLLS, 8, 8, 2, 0,
     "maxUnavailable 25%, maxSurge 0"},
    {"Deployment: none may go, so it surges", "Deployment",
     "spec: {replicas: 8, strategy: {rollingUpdate: {maxUnavailable: 0}}}", CR_WORST_ROLLS, 8, 8, 0, 2, ""},
    {"Deployment: Recreate takes all", "Deployment", "spec: {replicas: 3, strategy: {type: Recreate}}",
     CR_WORST_ROLLS, 3, 3, 3, 0, "Recreate takes all"},
    {"Deployment: minReadySeconds plays no part", "Deployment", "spec: {replicas: 10, minReadySeconds: 60}",
     CR_WORST_ROLLS, 10, 10, 2, 3, ""},
    {"Deployment: what cannot be read may take all", "Deployment",
     "spec: {replicas: 4, strategy: {rollingUpdate: {maxUnavailable: some}}}", CR_WORST_UNKNOWN, 4, 4, 4, 0,
     "maxUnavailable 'some' is neither"},
    {"Deployment: a number as text is no count", "Deployment",
     "spec: {replicas: 4, strategy: {rollingUpdate: {maxUnavailable: '1'}}}", CR_WORST_UNKNOWN, 4, 4, 4, 0,
     "maxUnavailable '1' is neither"},
    {"Deployment: nor is a negative one", "Deployment",
     "spec: {replicas: 4, strategy: {rollingUpdate: {maxSurge: -1}}}", CR_WORST_UNKNOWN, 4, 4, 4, 0,
     "maxSurge '-1' is neither"},
    {"Deployment: a percent sign alone is no percentage", "Deployment",
     "spec: {replicas: 4, strategy: {rollingUpdate: {maxSurge: '%'}}}", CR_WORST_UNKNOWN, 4, 4, 4, 0, "maxSurge '%'"},
    {"Deployment: a strategy of another day may take all", "Deployment",
     "spec: {replicas: 4, strategy: {type: Gentle}}", CR_WORST_UNKNOWN, 4, 4, 4, 0, "Gentle is not known"},

    /* --- StatefulSet --- */
    {"StatefulSet: one after another, and no surge", "StatefulSet", "spec: {replicas: 3}",
     CR_WORST_ROLLS, 3, 3, 1, 0, "StatefulSet, which cannot surge"},
    {"StatefulSet: a single replica goes", "StatefulSet", "spec: {}", CR_WORST_ROLLS, 1, 1, 1, 0, ""},
    {"StatefulSet: maxUnavailable is believed", "StatefulSet",
     "spec: {replicas: 5, updateStrategy: {rollingUpdate: {maxUnavailable: 2}}}", CR_WORST_ROLLS, 5, 5, 2, 0,
     "maxUnavailable 2 of 5"},
    {"StatefulSet: its percentage rounds down", "StatefulSet",
     "spec: {replicas: 5, updateStrategy: {rollingUpdate: {maxUnavailable: '50%'}}}", CR_WORST_ROLLS, 5, 5, 2, 0, ""},
    {"StatefulSet: but never to none", "StatefulSet",
     "spec: {replicas: 5, updateStrategy: {rollingUpdate: {maxUnavailable: '10%'}}}", CR_WORST_ROLLS, 5, 5, 1, 0, ""},
    {"StatefulSet: a surge that it does not have is not believed", "StatefulSet",
     "spec: {replicas: 5, updateStrategy: {rollingUpdate: {maxSurge: 2}}}", CR_WORST_ROLLS, 5, 5, 1, 0, ""},
    {"StatefulSet: a partition leaves the others", "StatefulSet",
     "spec: {replicas: 5, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 3}}}",
     CR_WORST_ROLLS, 5, 2, 1, 0, "partition 3 leaves 3 as they are"},
    {"StatefulSet: at once go at most those that go at all", "StatefulSet",
     "spec: {replicas: 5, updateStrategy: {rollingUpdate: {partition: 4, maxUnavailable: 3}}}",
     CR_WORST_ROLLS, 5, 1, 1, 0, "partition 4"},
    {"StatefulSet: a percentage is of all, whatever the partition", "StatefulSet",
     "spec: {replicas: 8, updateStrategy: {rollingUpdate: {partition: 2, maxUnavailable: '50%'}}}",
     CR_WORST_ROLLS, 8, 6, 4, 0, ""},
    {"StatefulSet: a partition above all leaves all", "StatefulSet",
     "spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 3}}}", CR_WORST_NOTHING, 3, 0, 0, 0,
     "partition 3 leaves all 3 pods as they are"},
    {"StatefulSet: OnDelete replaces nothing", "StatefulSet", "spec: {replicas: 3, updateStrategy: {type: OnDelete}}",
     CR_WORST_NOTHING, 3, 0, 0, 0, "OnDelete"},
    {"StatefulSet: none wanted", "StatefulSet", "spec: {replicas: 0}", CR_WORST_ROLLS, 0, 0, 0, 0, ""},
    {"StatefulSet: what cannot be read may take all", "StatefulSet",
     "spec: {replicas: 3, updateStrategy: {rollingUpdate: {maxUnavailable: x%}}}", CR_WORST_UNKNOWN, 3, 3, 3, 0,
     "maxUnavailable 'x%'"},

    /* --- DaemonSet --- */
    {"DaemonSet: one node after another", "DaemonSet", "status: {observedGeneration: 1, desiredNumberScheduled: 6}",
     CR_WORST_ROLLS, 6, 6, 1, 0, "maxUnavailable 1, maxSurge 0 of 6 pods"},
    {"DaemonSet: its percentage rounds up", "DaemonSet",
     "spec: {updateStrategy: {rollingUpdate: {maxUnavailable: '10%'}}}\n"
     "status: {observedGeneration: 1, desiredNumberScheduled: 15}", CR_WORST_ROLLS, 15, 15, 2, 0, "maxUnavailable 10%"},
    {"DaemonSet: surge instead", "DaemonSet",
     "spec: {updateStrategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: '10%'}}}\n"
     "status: {observedGeneration: 1, desiredNumberScheduled: 15}", CR_WORST_ROLLS, 15, 15, 0, 2, "maxSurge 10%"},
    {"DaemonSet: neither means one", "DaemonSet",
     "spec: {updateStrategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 0}}}\n"
     "status: {observedGeneration: 1, desiredNumberScheduled: 4}", CR_WORST_ROLLS, 4, 4, 1, 0, ""},
    {"DaemonSet: not more than there are nodes", "DaemonSet",
     "spec: {updateStrategy: {rollingUpdate: {maxUnavailable: 9}}}\n"
     "status: {observedGeneration: 1, desiredNumberScheduled: 4}", CR_WORST_ROLLS, 4, 4, 4, 0, ""},
    {"DaemonSet: on no node", "DaemonSet", "status: {observedGeneration: 1, desiredNumberScheduled: 0}",
     CR_WORST_ROLLS, 0, 0, 0, 0, ""},
    {"DaemonSet: replicas are no field of it", "DaemonSet",
     "spec: {replicas: 9}\nstatus: {observedGeneration: 1, desiredNumberScheduled: 2}",
     CR_WORST_ROLLS, 2, 2, 1, 0, ""},
    {"DaemonSet: OnDelete replaces nothing", "DaemonSet",
     "spec: {updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 1, desiredNumberScheduled: 4}",
     CR_WORST_NOTHING, 4, 0, 0, 0, "OnDelete"},
    {"DaemonSet: a count of an older spec is none", "DaemonSet",
     "metadata: {generation: 2}\nstatus: {observedGeneration: 1, desiredNumberScheduled: 4}",
     CR_WORST_UNKNOWN, 4, 4, 4, 0, "on how many nodes"},
    {"DaemonSet: never counted", "DaemonSet", "metadata: {generation: 1}", CR_WORST_UNKNOWN, 0, 0, 0, 0,
     "on how many nodes"},

    /* --- others --- */
    {"a bare ReplicaSet replaces nothing", "ReplicaSet", "spec: {replicas: 3}", CR_WORST_NOTHING, 3, 0, 0, 0,
     "ReplicaSet without a Deployment"},
    {"Argo Rollout: evicts a quarter", "Rollout", "spec: {replicas: 8, strategy: {canary: {maxSurge: 2}}}",
     CR_WORST_EVICTS, 8, 8, 2, 0, "evicts up to 2 of 8"},
    {"Argo Rollout: at least one, also where no update would take one", "Rollout",
     "spec: {replicas: 8, strategy: {canary: {maxUnavailable: 0}}}", CR_WORST_EVICTS, 8, 8, 1, 0, "up to 1"},
    {"Argo Rollout: blue-green, too", "Rollout", "spec: {replicas: 4, strategy: {blueGreen: {maxUnavailable: 2}}}",
     CR_WORST_EVICTS, 4, 4, 2, 0, ""},
    {"Argo Rollout: what cannot be read may take all", "Rollout",
     "spec: {replicas: 4, strategy: {canary: {maxUnavailable: 1.5}}}", CR_WORST_UNKNOWN, 4, 4, 4, 0, "maxUnavailable"},
    {"of another kind nothing is known", "Pod", "spec: {}", CR_WORST_UNKNOWN, 1, 1, 1, 0, "how a Pod replaces"},
    {"nonsense has defaults, as the API server would set them", "Deployment", "spec: x", CR_WORST_ROLLS, 1, 1, 0, 1, ""},
    {"a huge percentage is all", "Deployment",
     "spec: {replicas: 2147483647, strategy: {rollingUpdate: {maxUnavailable: '2147483647%', maxSurge: 0}}}",
     CR_WORST_ROLLS, 2147483647, 2147483647, 2147483647, 0, ""},
};
/* clang-format on */

static const char *way_name(enum cr_worst_case_way way)
{
    static const char *const names[] = {"Rolls", "Evicts", "Nothing", "Unknown"};
    return names[way];
}

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct worst_case_case *c = &cases[i];
        CR_CLEANUP(cr_json) struct cr_json *workload = test_yaml(c->workload);
        struct cr_worst_case worst;
        memset(&worst, 0x7f, sizeof worst);
        cr_worst_case_of(c->kind, workload, &worst);
        if (worst.way != c->way)
            fail_msg("%s: wanted %s, have %s (%s)", c->rule, way_name(c->way), way_name(worst.way), worst.text);
        if (worst.desired != c->desired || worst.replaced != c->replaced || worst.unavailable != c->unavailable ||
            worst.surge != c->surge)
            fail_msg("%s: desired %d, replaced %d, unavailable %d, surge %d (%s)", c->rule, worst.desired,
                     worst.replaced, worst.unavailable, worst.surge, worst.text);
        if (!strstr(worst.text, c->text) || !worst.text[0])
            fail_msg("%s: \"%s\" should say \"%s\"", c->rule, worst.text, c->text);
    }
}

static void test_an_absent_workload_takes_no_more_than_one_pod(void **state)
{
    (void)state;
    static const char *const kinds[] = {"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Rollout", NULL};
    for (size_t i = 0; i < cr_array_len(kinds); i++) {
        struct cr_worst_case worst;
        cr_worst_case_of(kinds[i], NULL, &worst);
        assert_in_range(worst.unavailable, 0, 1);
        assert_true(worst.text[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_an_absent_workload_takes_no_more_than_one_pod),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
