#include "workload/rollout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/strings.h"
#include "support/yamltext.h"

#define STABLE "stableRS: a, currentPodHash: a"
#define ARGO(spec, status)                                                                                             \
    "metadata: {generation: 3}\nspec: {replicas: 2" spec "}\nstatus: {observedGeneration: '3', " status "}"

/* clang-format off */
static const struct rollout_case {
    const char *rule;
    const char *kind;
    const char *workload;
    enum cr_rollout_state state;
    const char *message; /* part of it */
} cases[] = {
    /* --- Deployment --- */
    {"Deployment: all updated and available", "Deployment",
     "metadata: {generation: 2}\nspec: {replicas: 3}\n"
     "status: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 3}",
     CR_ROLLOUT_COMPLETE, "3 of 3 replicas updated and available"},
    {"Deployment: the newest generation is not yet observed", "Deployment",
     "metadata: {generation: 3}\nspec: {replicas: 3}\n"
     "status: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 3}",
     CR_ROLLOUT_PROGRESSING, "not yet observed"},
    {"Deployment: never observed", "Deployment", "metadata: {generation: 1}\nspec: {replicas: 3}\nstatus: {}",
     CR_ROLLOUT_PROGRESSING, "not yet observed"},
    {"Deployment: an observation from the future is good enough", "Deployment",
     "metadata: {generation: 2}\nspec: {replicas: 1}\n"
     "status: {observedGeneration: 3, replicas: 1, updatedReplicas: 1, availableReplicas: 1}",
     CR_ROLLOUT_COMPLETE, ""},
    {"Deployment: some replicas updated", "Deployment",
     "metadata: {generation: 2}\nspec: {replicas: 3}\n"
     "status: {observedGeneration: 2, replicas: 4, updatedReplicas: 2, availableReplicas: 3}",
     CR_ROLLOUT_PROGRESSING, "2 of 3 replicas updated"},
    {"Deployment: old replicas pending termination", "Deployment",
     "metadata: {generation: 2}\nspec: {replicas: 3}\n"
     "status: {observedGeneration: 2, replicas: 4, updatedReplicas: 3, availableReplicas: 4}",
     CR_ROLLOUT_PROGRESSING, "old ones left: 1"},
    {"Deployment: updated but not yet available", "Deployment",
     "metadata: {generation: 2}\nspec: {replicas: 3}\n"
     "status: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 1}",
     CR_ROLLOUT_PROGRESSING, "1 of 3 updated replicas available"},
    {"Deployment: replicas default to 1", "Deployment",
     "metadata: {generation: 1}\nspec: {}\nstatus: {observedGeneration: 1}", CR_ROLLOUT_PROGRESSING, "0 of 1"},
    {"Deployment: none wanted, none there", "Deployment",
     "metadata: {generation: 1}\nspec: {replicas: 0}\nstatus: {observedGeneration: 1}", CR_ROLLOUT_COMPLETE, "0 of 0"},
    {"Deployment: scaled to none while old ones end", "Deployment",
     "metadata: {generation: 1}\nspec: {replicas: 0}\nstatus: {observedGeneration: 1, replicas: 2}",
     CR_ROLLOUT_PROGRESSING, "old ones left: 2"},
    {"Deployment: past its progress deadline", "Deployment",
     "metadata: {generation: 2}\nspec: {replicas: 3}\n"
     "status: {observedGeneration: 2, replicas: 4, updatedReplicas: 1, availableReplicas: 3, conditions: [{type: "
     "Available, status: 'True'}, {type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}",
     CR_ROLLOUT_FAILED, "progress deadline with 1 of 3"},
    {"Deployment: the deadline of an older generation says nothing", "Deployment",
     "metadata: {generation: 3}\nspec: {replicas: 3}\n"
     "status: {observedGeneration: 2, replicas: 4, updatedReplicas: 1, conditions: [{type: Progressing, status: "
     "'False', reason: ProgressDeadlineExceeded}]}",
     CR_ROLLOUT_PROGRESSING, "not yet observed"},
    {"Deployment: that reason on another condition says nothing", "Deployment",
     "metadata: {generation: 2}\nspec: {replicas: 1}\n"
     "status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, availableReplicas: 1, conditions: [{type: "
     "Other, reason: ProgressDeadlineExceeded}, {type: Progressing, status: 'True', reason: NewReplicaSetAvailable}]}",
     CR_ROLLOUT_COMPLETE, ""},
    {"Deployment: paused in the middle", "Deployment",
     "metadata: {generation: 2}\nspec: {replicas: 3, paused: true}\n"
     "status: {observedGeneration: 2, replicas: 3, updatedReplicas: 1, availableReplicas: 3}",
     CR_ROLLOUT_PAUSED, "paused with 1 of 3"},
    {"Deployment: paused before it was observed", "Deployment",
     "metadata: {generation: 3}\nspec: {replicas: 1, paused: true}\n"
     "status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, availableReplicas: 1}",
     CR_ROLLOUT_PAUSED, "resume"},
    {"Deployment: paused, but with nothing left to do", "Deployment",
     "metadata: {generation: 2}\nspec: {replicas: 1, paused: true}\n"
     "status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, availableReplicas: 1}",
     CR_ROLLOUT_COMPLETE, ""},

    /* --- StatefulSet --- */
    {"StatefulSet: all updated and available", "StatefulSet",
     "metadata: {generation: 2}\nspec: {replicas: 3}\n"
     "status: {observedGeneration: 2, replicas: 3, readyReplicas: 3, updatedReplicas: 3, availableReplicas: 3}",
     CR_ROLLOUT_COMPLETE, "3 of 3 pods updated and available"},
    {"StatefulSet: not yet observed", "StatefulSet",
     "metadata: {generation: 2}\nspec: {replicas: 3}\n"
     "status: {observedGeneration: 1, readyReplicas: 3, updatedReplicas: 3, availableReplicas: 3}",
     CR_ROLLOUT_PROGRESSING, "not yet observed"},
    {"StatefulSet: never observed", "StatefulSet", "spec: {replicas: 3}\nstatus: {observedGeneration: 0}",
     CR_ROLLOUT_PROGRESSING, "not yet observed"},
    {"StatefulSet: pods updated one by one", "StatefulSet",
     "metadata: {generation: 2}\nspec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}}\n"
     "status: {observedGeneration: 2, readyReplicas: 3, updatedReplicas: 1, availableReplicas: 3}",
     CR_ROLLOUT_PROGRESSING, "1 of 3 pods updated"},
    {"StatefulSet: the last one is not yet available", "StatefulSet",
     "metadata: {generation: 2}\nspec: {replicas: 3}\n"
     "status: {observedGeneration: 2, readyReplicas: 3, updatedReplicas: 3, availableReplicas: 2}",
     CR_ROLLOUT_PROGRESSING, "2 of 3 pods available"},
    {"StatefulSet: an old API server has readyReplicas only", "StatefulSet",
     "metadata: {generation: 2}\nspec: {replicas: 3}\n"
     "status: {observedGeneration: 2, readyReplicas: 3, updatedReplicas: 3}",
     CR_ROLLOUT_COMPLETE, ""},
    {"StatefulSet: scaled down in the middle, its updated pods are the ones that go", "StatefulSet",
     "metadata: {generation: 3}\nspec: {replicas: 1}\n"
     "status: {observedGeneration: 3, replicas: 3, readyReplicas: 3, updatedReplicas: 2, availableReplicas: 3}",
     CR_ROLLOUT_PROGRESSING, "scaled down to 1, and 3 pods are still there"},
    {"StatefulSet: scaled down in the middle to one that is old", "StatefulSet",
     "metadata: {generation: 3}\nspec: {replicas: 1}\n"
     "status: {observedGeneration: 3, replicas: 1, readyReplicas: 1, updatedReplicas: 0, availableReplicas: 1}",
     CR_ROLLOUT_PROGRESSING, "0 of 1 pods updated"},
    {"StatefulSet: scaled to none in the middle", "StatefulSet",
     "metadata: {generation: 3}\nspec: {replicas: 0}\nstatus: {observedGeneration: 3, replicas: 0}",
     CR_ROLLOUT_COMPLETE, "0 of 0"},
    {"StatefulSet: scaled up in the middle, new pods are updated ones", "StatefulSet",
     "metadata: {generation: 3}\nspec: {replicas: 5}\n"
     "status: {observedGeneration: 3, replicas: 5, readyReplicas: 5, updatedReplicas: 4, availableReplicas: 5}",
     CR_ROLLOUT_PROGRESSING, "4 of 5 pods updated"},
    {"StatefulSet: a partition keeps the others as they are", "StatefulSet",
     "metadata: {generation: 2}\nspec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}}\n"
     "status: {observedGeneration: 2, readyReplicas: 3, updatedReplicas: 1, availableReplicas: 3}",
     CR_ROLLOUT_COMPLETE, "1 of 3 pods updated; partition 2"},
    {"StatefulSet: a partition that is not yet reached", "StatefulSet",
     "metadata: {generation: 2}\nspec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}}\n"
     "status: {observedGeneration: 2, readyReplicas: 3, updatedReplicas: 1, availableReplicas: 3}",
     CR_ROLLOUT_PROGRESSING, "1 of 2 pods updated"},
    {"StatefulSet: a partition beyond the replicas updates nothing", "StatefulSet",
     "metadata: {generation: 2}\nspec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 9}}}\n"
     "status: {observedGeneration: 2, readyReplicas: 3, updatedReplicas: 0, availableReplicas: 3}",
     CR_ROLLOUT_COMPLETE, "0 of 3 pods updated; partition 9"},
    {"StatefulSet: OnDelete waits for a person", "StatefulSet",
     "metadata: {generation: 2}\nspec: {replicas: 3, updateStrategy: {type: OnDelete}}\n"
     "status: {observedGeneration: 2, readyReplicas: 3, updatedReplicas: 1, availableReplicas: 3}",
     CR_ROLLOUT_MANUAL, "1 of 3 pods updated; strategy OnDelete"},
    {"StatefulSet: OnDelete, all deleted and back", "StatefulSet",
     "metadata: {generation: 2}\nspec: {replicas: 3, updateStrategy: {type: OnDelete}}\n"
     "status: {observedGeneration: 2, readyReplicas: 3, updatedReplicas: 3, availableReplicas: 3}",
     CR_ROLLOUT_COMPLETE, ""},
    {"StatefulSet: none wanted", "StatefulSet",
     "metadata: {generation: 1}\nspec: {replicas: 0}\nstatus: {observedGeneration: 1}", CR_ROLLOUT_COMPLETE, "0 of 0"},

    /* --- DaemonSet --- */
    {"DaemonSet: on all nodes", "DaemonSet",
     "metadata: {generation: 2}\n"
     "status: {observedGeneration: 2, desiredNumberScheduled: 4, updatedNumberScheduled: 4, numberAvailable: 4}",
     CR_ROLLOUT_COMPLETE, "4 of 4"},
    {"DaemonSet: not yet observed", "DaemonSet",
     "metadata: {generation: 2}\n"
     "status: {observedGeneration: 1, desiredNumberScheduled: 4, updatedNumberScheduled: 4, numberAvailable: 4}",
     CR_ROLLOUT_PROGRESSING, "not yet observed"},
    {"DaemonSet: node after node", "DaemonSet",
     "metadata: {generation: 2}\n"
     "status: {observedGeneration: 2, desiredNumberScheduled: 4, updatedNumberScheduled: 1, numberAvailable: 3}",
     CR_ROLLOUT_PROGRESSING, "1 of 4 pods updated"},
    {"DaemonSet: the last is not yet available", "DaemonSet",
     "metadata: {generation: 2}\n"
     "status: {observedGeneration: 2, desiredNumberScheduled: 4, updatedNumberScheduled: 4, numberAvailable: 3}",
     CR_ROLLOUT_PROGRESSING, "3 of 4 updated pods available"},
    {"DaemonSet: no node fits", "DaemonSet",
     "metadata: {generation: 2}\nstatus: {observedGeneration: 2, desiredNumberScheduled: 0}", CR_ROLLOUT_COMPLETE,
     "0 of 0"},
    {"DaemonSet: OnDelete waits for a person", "DaemonSet",
     "metadata: {generation: 2}\nspec: {updateStrategy: {type: OnDelete}}\n"
     "status: {observedGeneration: 2, desiredNumberScheduled: 4, updatedNumberScheduled: 1, numberAvailable: 4}",
     CR_ROLLOUT_MANUAL, "OnDelete"},
    {"DaemonSet: OnDelete, all deleted, one not yet back", "DaemonSet",
     "metadata: {generation: 2}\nspec: {updateStrategy: {type: OnDelete}}\n"
     "status: {observedGeneration: 2, desiredNumberScheduled: 4, updatedNumberScheduled: 4, numberAvailable: 3}",
     CR_ROLLOUT_PROGRESSING, "3 of 4"},

    /* --- others --- */
    /* --- ReplicaSet --- */
    {"ReplicaSet: nothing rolls, and all its pods are available", "ReplicaSet",
     "metadata: {generation: 1}\nspec: {replicas: 2}\nstatus: {observedGeneration: 1, replicas: 2, availableReplicas: 2}",
     CR_ROLLOUT_COMPLETE, "2 of 2 pods available"},
    {"ReplicaSet: one is away", "ReplicaSet",
     "metadata: {generation: 1}\nspec: {replicas: 2}\nstatus: {observedGeneration: 1, replicas: 2, availableReplicas: 1}",
     CR_ROLLOUT_PROGRESSING, "1 of 2 pods available"},
    {"ReplicaSet: scaled a moment ago", "ReplicaSet",
     "metadata: {generation: 2}\nspec: {replicas: 2}\nstatus: {observedGeneration: 1, replicas: 2, availableReplicas: 2}",
     CR_ROLLOUT_PROGRESSING, "not yet observed"},

    /* --- Argo Rollout --- */
    {"Rollout: at rest", "Rollout", ARGO("", "phase: Healthy, availableReplicas: 2, " STABLE),
     CR_ROLLOUT_COMPLETE, "2 of 2 pods available"},
    {"Rollout: its generation is text, and of before", "Rollout",
     "metadata: {generation: 4}\nspec: {replicas: 2}\n"
     "status: {observedGeneration: '3', phase: Healthy, availableReplicas: 2, " STABLE "}",
     CR_ROLLOUT_PROGRESSING, "not yet observed"},
    {"Rollout: another version than the stable one is on its way", "Rollout",
     ARGO("", "phase: Progressing, message: more replicas need to be updated, availableReplicas: 2, stableRS: a, "
              "currentPodHash: b"),
     CR_ROLLOUT_PROGRESSING, "it is being updated: more replicas need to be updated"},
    {"Rollout: never stable yet", "Rollout", ARGO("", "phase: Progressing, availableReplicas: 2, currentPodHash: b"),
     CR_ROLLOUT_PROGRESSING, "it is being updated"},
    {"Rollout: paused at a step of its canary", "Rollout",
     ARGO("", "phase: Paused, pauseConditions: [{reason: CanaryPauseStep}], availableReplicas: 2, stableRS: a, "
              "currentPodHash: b"),
     CR_ROLLOUT_PAUSED, "promote"},
    {"Rollout: paused by a person, with nothing to do", "Rollout",
     ARGO(", paused: true", "phase: Paused, availableReplicas: 2, " STABLE), CR_ROLLOUT_COMPLETE, ""},
    {"Rollout: paused in the middle of a restart", "Rollout",
     ARGO(", paused: true, restartAt: '2026-11-21T12:00:00Z'", "phase: Paused, availableReplicas: 2, " STABLE),
     CR_ROLLOUT_PAUSED, "paused"},
    {"Rollout: aborted", "Rollout",
     ARGO("", "phase: Degraded, message: 'RolloutAborted: metric', availableReplicas: 2, stableRS: a, currentPodHash: b"),
     CR_ROLLOUT_FAILED, "it is degraded: RolloutAborted: metric"},
    {"Rollout: its pods are being restarted", "Rollout",
     ARGO(", restartAt: '2026-11-21T12:00:00Z'",
          "restartedAt: '2026-11-20T12:00:00Z', phase: Progressing, availableReplicas: 2, " STABLE),
     CR_ROLLOUT_PROGRESSING, "being restarted"},
    {"Rollout: restarted for the first time", "Rollout",
     ARGO(", restartAt: '2026-11-21T12:00:00Z'", "phase: Progressing, availableReplicas: 2, " STABLE),
     CR_ROLLOUT_PROGRESSING, "being restarted"},
    {"Rollout: all old pods are evicted, the last new one is not available", "Rollout",
     ARGO(", restartAt: '2026-11-21T12:00:00Z'",
          "restartedAt: '2026-11-21T12:00:00Z', phase: Progressing, availableReplicas: 1, " STABLE),
     CR_ROLLOUT_PROGRESSING, "1 of 2 pods available"},
    {"Rollout: restarted; the same time in another zone", "Rollout",
     ARGO(", restartAt: '2026-11-21T13:00:00+01:00'",
          "restartedAt: '2026-11-21T12:00:00Z', phase: Healthy, availableReplicas: 2, " STABLE),
     CR_ROLLOUT_COMPLETE, "2 of 2"},

    {"another kind cannot be judged", "CloneSet", "status: {observedGeneration: 1}", CR_ROLLOUT_PROGRESSING, "CloneSet"},
    {"nonsense is not complete", "Deployment", "spec: x\nstatus: []", CR_ROLLOUT_PROGRESSING, "not yet observed"},
    {"negative counts are none", "Deployment",
     "metadata: {generation: 1}\nspec: {replicas: -1}\nstatus: {observedGeneration: 1, updatedReplicas: -5}",
     CR_ROLLOUT_PROGRESSING, "0 of 1"},
};
/* clang-format on */

static const char *state_name(enum cr_rollout_state state)
{
    static const char *const names[] = {"Complete", "Progressing", "Failed", "Paused", "Manual"};
    return names[state];
}

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_json) struct cr_json *workload = test_yaml(cases[i].workload);
        struct cr_rollout rollout;
        memset(&rollout, 0x7f, sizeof rollout);
        cr_rollout_judge(cases[i].kind, workload, &rollout);
        if (rollout.state != cases[i].state)
            fail_msg("%s: wanted %s, have %s (%s)", cases[i].rule, state_name(cases[i].state),
                     state_name(rollout.state), rollout.message);
        if (!strstr(rollout.message, cases[i].message) || !rollout.message[0])
            fail_msg("%s: \"%s\" should say \"%s\"", cases[i].rule, rollout.message, cases[i].message);
    }
}

static void test_counts(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json)
    struct cr_json *workload =
        test_yaml("metadata: {generation: 2}\nspec: {replicas: 5}\nstatus: {observedGeneration: 2, "
                  "replicas: 6, updatedReplicas: 3, availableReplicas: 4}");
    struct cr_rollout rollout;
    cr_rollout_judge("Deployment", workload, &rollout);
    assert_int_equal(rollout.desired, 5);
    assert_int_equal(rollout.updated, 3);
    assert_int_equal(rollout.available, 4);
}

/* Whatever else a rollout waits for, and whether it goes on at all. */
static void test_pods_of_another_template(void **state)
{
    (void)state;
#define COUNTS "metadata: {generation: 2}\nspec: {replicas: 2"
    static const struct {
        const char *rule, *kind, *workload;
        bool mixed;
    } rows[] = {
        {"at rest", "Deployment", COUNTS "}\nstatus: {observedGeneration: 2, replicas: 2, updatedReplicas: 2}", false},
        {"an old one is left", "Deployment",
         COUNTS "}\nstatus: {observedGeneration: 2, replicas: 3, updatedReplicas: 2}", true},
        {"scaled up", "Deployment", COUNTS "}\nstatus: {observedGeneration: 2, replicas: 1, updatedReplicas: 1}",
         false},
        {"not observed", "Deployment", COUNTS "}\nstatus: {observedGeneration: 1, replicas: 2, updatedReplicas: 2}",
         true},
        {"at rest", "StatefulSet", COUNTS "}\nstatus: {observedGeneration: 2, replicas: 2, updatedReplicas: 2}", false},
        {"OnDelete", "StatefulSet",
         COUNTS ", updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 2, replicas: 2}", true},
        {"a partition", "StatefulSet",
         COUNTS ", updateStrategy: {rollingUpdate: {partition: 1}}}\nstatus: {observedGeneration: 2, replicas: 2, "
                "updatedReplicas: 1, availableReplicas: 2}",
         true},
        {"at rest", "DaemonSet",
         COUNTS "}\nstatus: {observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3}", false},
        {"a node has an old one", "DaemonSet",
         COUNTS "}\nstatus: {observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 2}", true},
        {"none shows its template", "ReplicaSet", COUNTS "}\nstatus: {observedGeneration: 1, replicas: 2}", false},
        {"at rest", "Rollout", ARGO("", STABLE), false},
        {"a canary", "Rollout", ARGO("", "stableRS: a, currentPodHash: b"), true},
    };
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        CR_CLEANUP(cr_json) struct cr_json *workload = test_yaml(rows[i].workload);
        struct cr_rollout rollout;
        cr_rollout_judge(rows[i].kind, workload, &rollout);
        if (rollout.mixed != rows[i].mixed)
            fail_msg("%s: %s", rows[i].kind, rows[i].rule);
    }
#undef COUNTS
}

static void test_an_absent_workload_is_not_complete(void **state)
{
    (void)state;
    static const char *const kinds[] = {"Deployment", "StatefulSet", "DaemonSet", "Pod", NULL};
    for (size_t i = 0; i < cr_array_len(kinds); i++) {
        struct cr_rollout rollout;
        cr_rollout_judge(kinds[i], NULL, &rollout);
        assert_int_equal(rollout.state, CR_ROLLOUT_PROGRESSING);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_pods_of_another_template),
        cmocka_unit_test(test_an_absent_workload_is_not_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
