#include "workload/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "support/yamltext.h"

/* --- whom a budget selects --- */

/* clang-format off */
static const struct selector_case {
    const char *rule;
    const char *selector;
    const char *labels;
    bool selects;
} selectors[] = {
    {"all labels match", "{matchLabels: {app: web, tier: front}}", "{app: web, tier: front, a: b}", true},
    {"one label does not", "{matchLabels: {app: web, tier: front}}", "{app: web}", false},
    {"an empty selector selects all", "{}", "{app: web}", true},
    {"also who has no labels", "{}", "null", true},
    {"empty parts make an empty selector", "{matchLabels: {}, matchExpressions: []}", "{app: web}", true},
    {"an absent selector selects none", "null", "{app: web}", false},
    {"expressions: In", "{matchExpressions: [{key: app, operator: In, values: [web, api]}]}", "{app: api}", true},
    {"expressions: NotIn is true without the label", "{matchExpressions: [{key: app, operator: NotIn, values: [db]}]}",
     "null", true},
    {"expressions: Exists", "{matchExpressions: [{key: app, operator: Exists}]}", "{tier: front}", false},
    {"expressions and labels both hold",
     "{matchLabels: {app: web}, matchExpressions: [{key: old, operator: DoesNotExist}]}", "{app: web, old: ''}", false},
    {"what cannot be read selects nobody by itself", "{matchExpressions: [{key: app, operator: Near, values: [web]}]}",
     "{app: web}", false},
};
/* clang-format on */

static void test_selectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(selectors); i++) {
        cr_autofree char *text = cr_asprintf("spec: {minAvailable: 1, selector: %s}", selectors[i].selector);
        CR_CLEANUP(cr_json) struct cr_json *object = test_yaml(text);
        CR_CLEANUP(cr_json) struct cr_json *labels = test_yaml(selectors[i].labels);
        CR_CLEANUP(cr_budget) struct cr_budget budget;
        cr_budget_read(object, &budget);
        if (cr_budget_selects(&budget, labels) != selectors[i].selects)
            fail_msg("%s", selectors[i].rule);
    }
}

static void test_a_budget_is_read(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json)
    struct cr_json *object = test_yaml(
        "metadata: {name: db, generation: 3}\n"
        "spec: {maxUnavailable: 25%, unhealthyPodEvictionPolicy: AlwaysAllow, selector: {matchLabels: {app: db}}}\n"
        "status: {observedGeneration: 3, currentHealthy: 7, desiredHealthy: 6, expectedPods: 8, disruptionsAllowed: "
        "1}");
    CR_CLEANUP(cr_budget) struct cr_budget budget;
    cr_budget_read(object, &budget);
    assert_string_equal(budget.name, "db");
    assert_string_equal(budget.demand, "maxUnavailable 25%");
    assert_true(budget.by_scale && budget.unready_may_go && budget.observed);
    assert_null(budget.sync_failure);
    assert_null(budget.problem);
    assert_int_equal(budget.healthy, 7);
    assert_int_equal(budget.needed, 6);
    assert_int_equal(budget.expected, 8);
    assert_int_equal(budget.allowed, 1);
}

static void test_nothing_allows_nothing(void **state)
{
    (void)state;
    CR_CLEANUP(cr_budget) struct cr_budget budget;
    cr_budget_read(NULL, &budget);
    assert_int_equal(budget.allowed, 0);
    assert_false(budget.observed);
    assert_false(cr_budget_selects(&budget, NULL));
}

/* --- verdicts --- */

/* Members of a case, in YAML; pods are ready, running, old and labelled app=web unless they say otherwise. */
#define PODS_1 "pods: [{}]\n"
#define PODS_4 "pods: [{}, {}, {}, {}]\n"
#define DEPLOYMENT(replicas, rolling)                                                                                  \
    "kind: Deployment\nspec: {replicas: " #replicas ", strategy: {rollingUpdate: {" rolling "}}}\n"
#define STATEFUL_SET(replicas) "kind: StatefulSet\nspec: {replicas: " #replicas "}\n"
#define DAEMON_SET(nodes)      "kind: DaemonSet\nstatus: {observedGeneration: 1, desiredNumberScheduled: " #nodes "}\n"
#define ON_DELETE(replicas)    "kind: StatefulSet\nspec: {replicas: " #replicas ", updateStrategy: {type: OnDelete}}\n"
#define NUMBERS(healthy, needed, expected, allowed)                                                                    \
    "observedGeneration: 1, currentHealthy: " #healthy ", desiredHealthy: " #needed ", expectedPods: " #expected       \
    ", disruptionsAllowed: " #allowed
#define BUDGET(name, spec, status)                                                                                     \
    "{metadata: {name: " name ", generation: 1}, spec: {selector: {matchLabels: {app: web}}, " spec                    \
    "}, status: {" status "}}"
#define BUDGETS(...)      "budgets: [" __VA_ARGS__ "]\n"
#define EVICTS(pods)      "others: [{kind: Deployment, metadata: {name: api}, pods: " pods ", evicts: true}]\n"
#define OTHER(pods, spec) "others: [{kind: Deployment, metadata: {name: api}, pods: " pods ", spec: {" spec "}}]\n"

enum { PLAIN = 0, WAITS = 1, WARNS = 2 };

/* clang-format off */
static const struct verdict_case {
    const char *rule;
    enum cr_restart_method method;
    enum cr_single_replica single;
    const char *world;
    enum cr_budget_way way;
    enum cr_budget_reason reason;
    unsigned flags;
    int pod; /* -1: none */
    const char *text; /* part of it */
} verdicts[] = {
    /* --- a rollout that fits --- */
    {"no budget, no limit", CR_RESTART_AUTO, 0, DEPLOYMENT(4, "maxUnavailable: 4") PODS_4,
     CR_BUDGET_ROLL, CR_BUDGET_FREE, PLAIN, -1, "no PodDisruptionBudget selects its pods"},
    {"a budget over others is none", CR_RESTART_AUTO, 0,
     DEPLOYMENT(1, "maxUnavailable: 1") "pods: [{labels: {app: other}}]\n" BUDGETS(BUDGET("web", "minAvailable: 4", NUMBERS(4, 4, 4, 0))),
     CR_BUDGET_ROLL, CR_BUDGET_FREE, PLAIN, -1, "no PodDisruptionBudget"},
    {"what surges takes nothing from a budget that allows nothing", CR_RESTART_AUTO, 0,
     DEPLOYMENT(4, "maxUnavailable: 0, maxSurge: 1") PODS_4 BUDGETS(BUDGET("web", "minAvailable: 4", NUMBERS(4, 4, 4, 0))),
     CR_BUDGET_ROLL, CR_BUDGET_FREE, PLAIN, -1, "takes no pod away before another is ready (maxUnavailable 0"},
    {"what surges needs no status", CR_RESTART_AUTO, 0,
     DEPLOYMENT(4, "maxUnavailable: 0, maxSurge: 1") PODS_4 BUDGETS(BUDGET("web", "minAvailable: 4", "observedGeneration: 0")),
     CR_BUDGET_ROLL, CR_BUDGET_FREE, PLAIN, -1, ""},
    {"nor to know whom a budget selects", CR_RESTART_AUTO, 0,
     DEPLOYMENT(4, "maxUnavailable: 0, maxSurge: 1") PODS_4
     "budgets: [{metadata: {name: odd}, spec: {minAvailable: 1, selector: {matchExpressions: [{key: app, operator: Near}]}}}]\n",
     CR_BUDGET_ROLL, CR_BUDGET_FREE, PLAIN, -1, ""},
    {"the worst case fits", CR_RESTART_AUTO, 0,
     DEPLOYMENT(4, "maxUnavailable: 1") PODS_4 BUDGETS(BUDGET("web", "minAvailable: 3", NUMBERS(4, 3, 4, 1))),
     CR_BUDGET_ROLL, CR_BUDGET_FITS, PLAIN, -1, "1 of 4 pods away at once (maxUnavailable 1"},
    {"a StatefulSet goes one by one", CR_RESTART_AUTO, 0,
     STATEFUL_SET(4) PODS_4 BUDGETS(BUDGET("web", "maxUnavailable: 1", NUMBERS(4, 3, 4, 1))),
     CR_BUDGET_ROLL, CR_BUDGET_FITS, PLAIN, -1, "1 of 4"},
    {"a DaemonSet under a number", CR_RESTART_AUTO, 0,
     DAEMON_SET(4) PODS_4 BUDGETS(BUDGET("web", "minAvailable: 3", NUMBERS(4, 3, 4, 1))),
     CR_BUDGET_ROLL, CR_BUDGET_FITS, PLAIN, -1, ""},
    {"no pods, nothing to lose", CR_RESTART_AUTO, 0,
     DEPLOYMENT(0, "maxUnavailable: 1") "pods: []\n" BUDGETS(BUDGET("web", "minAvailable: 4", NUMBERS(0, 4, 0, 0))),
     CR_BUDGET_ROLL, CR_BUDGET_FREE, PLAIN, -1, ""},

    /* --- one that does not, so pods are evicted --- */
    {"two at once are too many, one by one is not", CR_RESTART_AUTO, 0,
     DEPLOYMENT(4, "maxUnavailable: 2") PODS_4 BUDGETS(BUDGET("web", "minAvailable: 3", NUMBERS(4, 3, 4, 1))),
     CR_BUDGET_EVICT, CR_BUDGET_FITS, PLAIN, 0,
     "may take 2 of 4 pods away at once (maxUnavailable 2, maxSurge 25% of 4 pods); PodDisruptionBudget 'web' "
     "(minAvailable 3) allows 1 now: 4 of 4 pods are healthy, needed are 3; pod pod-0 may be evicted"},
    {"Recreate is all at once", CR_RESTART_AUTO, 0,
     "kind: Deployment\nspec: {replicas: 4, strategy: {type: Recreate}}\n" PODS_4
     BUDGETS(BUDGET("web", "minAvailable: 1", NUMBERS(4, 1, 4, 3))), CR_BUDGET_EVICT, CR_BUDGET_FITS, PLAIN, 0, "4 of 4"},
    {"OnDelete is replaced by eviction alone", CR_RESTART_AUTO, 0,
     ON_DELETE(4) PODS_4 BUDGETS(BUDGET("web", "minAvailable: 3", NUMBERS(4, 3, 4, 1))),
     CR_BUDGET_EVICT, CR_BUDGET_FITS, PLAIN, 0, "a rollout replaces nothing: strategy OnDelete"},
    {"so is a bare ReplicaSet, with or without a budget", CR_RESTART_AUTO, 0,
     "kind: ReplicaSet\nspec: {replicas: 4}\n" PODS_4, CR_BUDGET_EVICT, CR_BUDGET_FREE, PLAIN, 0, "ReplicaSet"},
    {"a strategy that is not known takes all", CR_RESTART_AUTO, 0,
     "kind: Deployment\nspec: {replicas: 4, strategy: {type: Gentle}}\n" PODS_4
     BUDGETS(BUDGET("web", "minAvailable: 3", NUMBERS(4, 3, 4, 1))), CR_BUDGET_EVICT, CR_BUDGET_FITS, PLAIN, 0, "Gentle"},
    {"more are ready than desired: these go, too", CR_RESTART_AUTO, 0,
     DEPLOYMENT(3, "maxUnavailable: 1") PODS_4 BUDGETS(BUDGET("web", "minAvailable: 3", NUMBERS(4, 3, 4, 1))),
     CR_BUDGET_EVICT, CR_BUDGET_FITS, PLAIN, 0, "may take 2 of 3"},
    {"who is not ready now may be so while it rolls", CR_RESTART_AUTO, 0,
     DEPLOYMENT(4, "maxUnavailable: 1") "pods: [{}, {}, {}, {ready: false}]\n"
     BUDGETS(BUDGET("web", "minAvailable: 3", NUMBERS(3, 3, 4, 0))), CR_BUDGET_EVICT, CR_BUDGET_FITS, PLAIN, 3, "pod-3"},
    {"a budget over some of its pods: which ones go first is not known", CR_RESTART_AUTO, 0,
     DEPLOYMENT(4, "maxUnavailable: 1") "pods: [{}, {}, {labels: {app: x}}, {labels: {app: x}}]\n"
     BUDGETS(BUDGET("web", "minAvailable: 1", NUMBERS(2, 1, 2, 1))), CR_BUDGET_EVICT, CR_BUDGET_FITS, PLAIN, 0, "2 of 4"},
    {"a budget over one generation of pods loses them all, also to a surge", CR_RESTART_AUTO, 0,
     DEPLOYMENT(4, "maxUnavailable: 0") PODS_4
     "budgets: [{metadata: {name: gen, generation: 1}, spec: {minAvailable: 3, selector: {matchExpressions: "
     "[{key: pod-template-hash, operator: DoesNotExist}]}}, status: {" NUMBERS(4, 3, 4, 1) "}}]\n",
     CR_BUDGET_EVICT, CR_BUDGET_FITS, PLAIN, 0, "may take 4 of 4"},
    {"none is evicted while the last one is not back", CR_RESTART_AUTO, 0,
     ON_DELETE(4) "pods: [{replaced: true, ready: false}, {}, {}, {}]\n", CR_BUDGET_BLOCKED, CR_BUDGET_REPLACEMENT,
     WAITS, -1, "3 of 4 pods are there or ready again"},
    {"or is not there yet", CR_RESTART_EVICT, 0, DEPLOYMENT(4, "") "pods: [{}, {}, {}]\n",
     CR_BUDGET_BLOCKED, CR_BUDGET_REPLACEMENT, WAITS, -1, "3 of 4"},
    {"the replaced ones stay", CR_RESTART_EVICT, 0, DEPLOYMENT(4, "") "pods: [{replaced: true}, {replaced: true}, {}, {}]\n",
     CR_BUDGET_EVICT, CR_BUDGET_FREE, PLAIN, 2, "pod-2"},
    {"all replaced, none is left", CR_RESTART_EVICT, 0, DEPLOYMENT(1, "") "pods: [{replaced: true}]\n",
     CR_BUDGET_EVICT, CR_BUDGET_FREE, PLAIN, -1, "no pod is left"},

    /* --- pods that are not ready --- */
    {"one that is not ready goes first", CR_RESTART_EVICT, 0,
     DEPLOYMENT(4, "") "pods: [{}, {}, {ready: false}, {}]\n" BUDGETS(BUDGET("web", "minAvailable: 2", NUMBERS(3, 2, 4, 1))),
     CR_BUDGET_EVICT, CR_BUDGET_FITS, PLAIN, 2, "pod-2"},
    {"it waits for nobody", CR_RESTART_EVICT, 0,
     DEPLOYMENT(4, "") "pods: [{}, {ready: false}]\n" BUDGETS(BUDGET("web", "minAvailable: 1", NUMBERS(1, 1, 2, 0))),
     CR_BUDGET_EVICT, CR_BUDGET_FITS, PLAIN, 1, "pod-1"},
    {"not ready, and too few healthy ones: the default policy keeps it", CR_RESTART_EVICT, 0,
     DEPLOYMENT(4, "") "pods: [{}, {}, {}, {ready: false}]\n" BUDGETS(BUDGET("web", "minAvailable: 4", NUMBERS(3, 4, 4, 0))),
     CR_BUDGET_BLOCKED, CR_BUDGET_EXHAUSTED, WAITS, -1, "allows no disruption now: 3 of 4 pods are healthy, needed are 4"},
    {"not ready, and AlwaysAllow lets it go", CR_RESTART_EVICT, 0,
     DEPLOYMENT(4, "") "pods: [{}, {}, {}, {ready: false}]\n"
     BUDGETS(BUDGET("web", "minAvailable: 4, unhealthyPodEvictionPolicy: AlwaysAllow", NUMBERS(3, 4, 4, 0))),
     CR_BUDGET_EVICT, CR_BUDGET_FITS, PLAIN, 3, "pod-3"},
    {"AlwaysAllow does not speak of a stale status", CR_RESTART_EVICT, 0,
     DEPLOYMENT(1, "") "pods: [{ready: false}]\n"
     BUDGETS(BUDGET("web", "minAvailable: 4, unhealthyPodEvictionPolicy: AlwaysAllow", "observedGeneration: 0")),
     CR_BUDGET_EVICT, CR_BUDGET_FITS, PLAIN, 0, ""},
    {"a budget that needs none does not tell who is healthy", CR_RESTART_EVICT, 0,
     DEPLOYMENT(1, "") "pods: [{ready: false}]\n" BUDGETS(BUDGET("web", "minAvailable: 0", NUMBERS(0, 0, 1, 0))),
     CR_BUDGET_BLOCKED, CR_BUDGET_EXHAUSTED, WAITS, -1, ""},
    {"a pending pod is asked of no budget, not even of two", CR_RESTART_EVICT, 0,
     DEPLOYMENT(1, "") "pods: [{ready: false, phase: Pending}]\n"
     BUDGETS(BUDGET("a", "minAvailable: 1", NUMBERS(0, 1, 1, 0)) ", " BUDGET("b", "minAvailable: 1", NUMBERS(0, 1, 1, 0))),
     CR_BUDGET_EVICT, CR_BUDGET_FITS, PLAIN, 0, ""},

    /* --- blocked --- */
    {"nothing can surge, and all are needed", CR_RESTART_AUTO, 0,
     STATEFUL_SET(4) PODS_4 BUDGETS(BUDGET("web", "minAvailable: 4", NUMBERS(4, 4, 4, 0))),
     CR_BUDGET_BLOCKED, CR_BUDGET_NEEDS_ALL, PLAIN, -1,
     "(minAvailable 4) needs all of its pods, so none may ever go first: let the budget allow one, or set restart.method"},
    {"a Deployment is told that it could surge", CR_RESTART_AUTO, 0,
     DEPLOYMENT(4, "maxSurge: 0") PODS_4 BUDGETS(BUDGET("web", "minAvailable: 4", NUMBERS(4, 4, 4, 0))),
     CR_BUDGET_BLOCKED, CR_BUDGET_NEEDS_ALL, PLAIN, -1, "or the workload surge (maxSurge 1, maxUnavailable 0)"},
    {"the same of a single replica has a reason of its own", CR_RESTART_AUTO, CR_SINGLE_WARN,
     STATEFUL_SET(1) PODS_1 BUDGETS(BUDGET("web", "minAvailable: 1", NUMBERS(1, 1, 1, 0))),
     CR_BUDGET_BLOCKED, CR_BUDGET_NEEDS_ONLY, PLAIN, -1, "needs the only pod"},
    {"all are needed, but one is missing: that comes first", CR_RESTART_AUTO, 0,
     STATEFUL_SET(4) "pods: [{}, {}, {}]\n" BUDGETS(BUDGET("web", "minAvailable: 3", NUMBERS(3, 3, 3, 0))),
     CR_BUDGET_BLOCKED, CR_BUDGET_EXHAUSTED, WAITS, -1, "allows no disruption now: 3 of 3"},
    {"a budget that allows nothing now is waited for", CR_RESTART_AUTO, 0,
     STATEFUL_SET(4) PODS_4 BUDGETS(BUDGET("web", "minAvailable: 3", NUMBERS(3, 3, 4, 0))),
     CR_BUDGET_BLOCKED, CR_BUDGET_EXHAUSTED, WAITS, -1,
     "PodDisruptionBudget 'web' (minAvailable 3) allows no disruption now: 3 of 4 pods are healthy, needed are 3"},
    {"two budgets over one pod", CR_RESTART_AUTO, 0,
     DEPLOYMENT(4, "maxUnavailable: 2") PODS_4
     BUDGETS(BUDGET("a", "minAvailable: 3", NUMBERS(4, 3, 4, 1)) ", " BUDGET("b", "minAvailable: 2", NUMBERS(4, 2, 4, 2))),
     CR_BUDGET_BLOCKED, CR_BUDGET_TWO, PLAIN, -1,
     "the PodDisruptionBudgets 'a' and 'b' both select pod pod-0"},
    {"two over one pod: only one of their counts is kept, so no rollout goes by them either", CR_RESTART_AUTO, 0,
     STATEFUL_SET(4) PODS_4
     BUDGETS(BUDGET("a", "minAvailable: 3", NUMBERS(4, 3, 4, 1)) ", " BUDGET("b", "minAvailable: 2", NUMBERS(4, 2, 4, 2))),
     CR_BUDGET_BLOCKED, CR_BUDGET_TWO, PLAIN, -1, "nor are both counts kept"},
    {"two over one pod, and nothing taken away", CR_RESTART_AUTO, 0,
     DEPLOYMENT(4, "maxUnavailable: 0") PODS_4
     BUDGETS(BUDGET("a", "minAvailable: 4", NUMBERS(4, 4, 4, 0)) ", " BUDGET("b", "minAvailable: 4", NUMBERS(4, 4, 4, 0))),
     CR_BUDGET_ROLL, CR_BUDGET_FREE, PLAIN, -1, ""},
    {"two over different pods are not two", CR_RESTART_AUTO, 0,
     STATEFUL_SET(2) "pods: [{}, {labels: {tier: x}}]\n"
     BUDGETS(BUDGET("a", "minAvailable: 0", NUMBERS(1, 0, 1, 1)) ", {metadata: {name: b, generation: 1}, "
     "spec: {minAvailable: 0, selector: {matchLabels: {tier: x}}}, status: {" NUMBERS(1, 0, 1, 1) "}}"),
     CR_BUDGET_ROLL, CR_BUDGET_FITS, PLAIN, -1, ""},
    {"no pod may ever be evicted, but the rollout may fit once it is allowed", CR_RESTART_AUTO, 0,
     STATEFUL_SET(4) "pods: [{labels: {tier: x}}, {}, {}, {}]\n"
     BUDGETS(BUDGET("a", "minAvailable: 3", NUMBERS(2, 3, 3, 0)) ", {metadata: {name: b, generation: 1}, "
     "spec: {minAvailable: 1, selector: {matchLabels: {tier: x}}}, status: {" NUMBERS(1, 1, 1, 0) "}}"),
     CR_BUDGET_BLOCKED, CR_BUDGET_EXHAUSTED, WAITS, -1, "'a' (minAvailable 3) allows no disruption now"},
    {"too many now, and the API server has the last word on the only one due", CR_RESTART_AUTO, 0,
     DEPLOYMENT(4, "maxUnavailable: 2") "pods: [{replaced: true, ready: false}, {}, {}, {}]\n"
     BUDGETS(BUDGET("a", "minAvailable: 2", NUMBERS(3, 2, 4, 1))),
     CR_BUDGET_BLOCKED, CR_BUDGET_TOO_MANY, WAITS, -1, "'a' (minAvailable 2) allows 1 now: 3 of 4"},
    {"maxUnavailable over a DaemonSet allows nothing", CR_RESTART_AUTO, 0,
     DAEMON_SET(4) PODS_4 BUDGETS(BUDGET("web", "maxUnavailable: 1", "disruptionsAllowed: 0")),
     CR_BUDGET_BLOCKED, CR_BUDGET_DAEMON_SET, PLAIN, -1, "give it a minAvailable that is a number"},
    {"nor does a percentage", CR_RESTART_AUTO, 0,
     DAEMON_SET(4) PODS_4 BUDGETS(BUDGET("web", "minAvailable: 50%", NUMBERS(4, 2, 4, 2))),
     CR_BUDGET_BLOCKED, CR_BUDGET_DAEMON_SET, PLAIN, -1, "(minAvailable 50%) covers a DaemonSet"},
    {"a budget that cannot be computed tells why, before it looks stale", CR_RESTART_AUTO, 0,
     STATEFUL_SET(4) PODS_4 BUDGETS(BUDGET("web", "maxUnavailable: 1",
     "conditions: [{type: DisruptionAllowed, status: 'False', reason: SyncFailed, message: found no controllers for pod x}]")),
     CR_BUDGET_BLOCKED, CR_BUDGET_SYNC_FAILED, PLAIN, -1, "cannot compute it: found no controllers for pod x"},
    {"a condition that is over is none", CR_RESTART_AUTO, 0,
     STATEFUL_SET(4) PODS_4 BUDGETS(BUDGET("web", "maxUnavailable: 1", NUMBERS(4, 3, 4, 1)
     ", conditions: [{type: DisruptionAllowed, status: 'True', reason: SufficientPods, message: ''}]")),
     CR_BUDGET_ROLL, CR_BUDGET_FITS, PLAIN, -1, ""},
    {"a stale status is waited for, whatever it allows", CR_RESTART_AUTO, 0,
     STATEFUL_SET(4) PODS_4
     "budgets: [{metadata: {name: web, generation: 2}, spec: {minAvailable: 1, selector: {}}, status: {" NUMBERS(4, 1, 4, 3) "}}]\n",
     CR_BUDGET_BLOCKED, CR_BUDGET_STALE, WAITS, -1, "'web' (minAvailable 1) is not yet of its present spec"},
    {"a budget without a status is stale", CR_RESTART_AUTO, 0,
     STATEFUL_SET(1) PODS_1 "budgets: [{metadata: {name: web}, spec: {minAvailable: 1, selector: {}}}]\n",
     CR_BUDGET_BLOCKED, CR_BUDGET_STALE, WAITS, -1, ""},
    {"a budget whose selector cannot be read holds rollouts, and the API server evictions", CR_RESTART_AUTO, 0,
     STATEFUL_SET(4) PODS_4
     "budgets: [{metadata: {name: odd}, spec: {minAvailable: 1, selector: {matchExpressions: [{key: app, operator: Near}]}}}]\n",
     CR_BUDGET_EVICT, CR_BUDGET_FREE, PLAIN, 0, "whom PodDisruptionBudget 'odd' selects cannot be told: spec.selector"},
    {"budgets that may not be seen hold rollouts", CR_RESTART_AUTO, 0, STATEFUL_SET(4) PODS_4 "unseen: forbidden\n",
     CR_BUDGET_BLOCKED, CR_BUDGET_UNSEEN, PLAIN, -1, "may not be seen (forbidden): grant list and watch"},
    {"and evictions the API server", CR_RESTART_EVICT, 0, STATEFUL_SET(4) PODS_4 "unseen: forbidden\n",
     CR_BUDGET_EVICT, CR_BUDGET_FREE, PLAIN, 0, ""},
    {"also by Auto, where no rollout replaces anything", CR_RESTART_AUTO, 0, ON_DELETE(4) PODS_4 "unseen: forbidden\n",
     CR_BUDGET_EVICT, CR_BUDGET_FREE, PLAIN, 0, ""},
    {"but for those that take nothing away", CR_RESTART_AUTO, 0, DEPLOYMENT(3, "") "pods: [{}, {}, {}]\nunseen: forbidden\n",
     CR_BUDGET_ROLL, CR_BUDGET_FREE, PLAIN, -1, ""},

    /* --- several workloads under one budget --- */
    {"another's rollout under way counts", CR_RESTART_AUTO, 0,
     STATEFUL_SET(4) PODS_4 BUDGETS(BUDGET("web", "maxUnavailable: 1", NUMBERS(8, 7, 8, 1)))
     OTHER("[{}, {}, {}, {}]", "replicas: 4, strategy: {rollingUpdate: {maxUnavailable: 1}}"),
     CR_BUDGET_BLOCKED, CR_BUDGET_OTHERS, WAITS, -1, "allows 1 now, of which restarts under way may take 1, as that of Deployment api"},
    {"in full, although one of its pods is away already", CR_RESTART_AUTO, 0,
     STATEFUL_SET(4) PODS_4 BUDGETS(BUDGET("web", "maxUnavailable: 2", NUMBERS(7, 6, 8, 1)))
     OTHER("[{}, {}, {}, {ready: false}]", "replicas: 4, strategy: {rollingUpdate: {maxUnavailable: 1}}"),
     CR_BUDGET_BLOCKED, CR_BUDGET_OTHERS, WAITS, -1, ""},
    {"there is room for both", CR_RESTART_AUTO, 0,
     STATEFUL_SET(4) PODS_4 BUDGETS(BUDGET("web", "maxUnavailable: 2", NUMBERS(8, 6, 8, 2)))
     OTHER("[{}, {}, {}, {}]", "replicas: 4, strategy: {rollingUpdate: {maxUnavailable: 1}}"),
     CR_BUDGET_ROLL, CR_BUDGET_FITS, PLAIN, -1, ""},
    {"another that surges takes nothing", CR_RESTART_AUTO, 0,
     STATEFUL_SET(4) PODS_4 BUDGETS(BUDGET("web", "maxUnavailable: 1", NUMBERS(7, 6, 7, 1)))
     OTHER("[{}, {}, {}]", "replicas: 3"), CR_BUDGET_ROLL, CR_BUDGET_FITS, PLAIN, -1, ""},
    {"another under another budget does not count", CR_RESTART_AUTO, 0,
     STATEFUL_SET(4) PODS_4 BUDGETS(BUDGET("web", "maxUnavailable: 1", NUMBERS(4, 3, 4, 1)))
     OTHER("[{labels: {app: api}}]", "replicas: 1, strategy: {type: Recreate}"), CR_BUDGET_ROLL, CR_BUDGET_FITS, PLAIN, -1, ""},
    {"an eviction waits for it, too: it would take the pod from under it", CR_RESTART_EVICT, 0,
     STATEFUL_SET(4) PODS_4 BUDGETS(BUDGET("web", "maxUnavailable: 1", NUMBERS(8, 7, 8, 1)))
     OTHER("[{}, {}, {}, {}]", "replicas: 4, strategy: {rollingUpdate: {maxUnavailable: 1}}"),
     CR_BUDGET_BLOCKED, CR_BUDGET_OTHERS, WAITS, -1, ""},
    {"beside evictions no rollout begins that has room for itself alone, but evictions may", CR_RESTART_AUTO, 0,
     STATEFUL_SET(4) PODS_4 BUDGETS(BUDGET("web", "maxUnavailable: 1", NUMBERS(8, 7, 8, 1))) EVICTS("[{}, {}, {}, {}]"),
     CR_BUDGET_EVICT, CR_BUDGET_FITS, PLAIN, 0, "allows 1 now, of which restarts under way may take 1, as that of Deployment api"},
    {"they take one at a time", CR_RESTART_AUTO, 0,
     STATEFUL_SET(4) PODS_4 BUDGETS(BUDGET("web", "maxUnavailable: 2", NUMBERS(8, 6, 8, 2))) EVICTS("[{}, {}, {}, {}]"),
     CR_BUDGET_ROLL, CR_BUDGET_FITS, PLAIN, -1, ""},
    {"and none under another budget", CR_RESTART_AUTO, 0,
     STATEFUL_SET(4) PODS_4 BUDGETS(BUDGET("web", "maxUnavailable: 1", NUMBERS(4, 3, 4, 1))) EVICTS("[{labels: {app: api}}]"),
     CR_BUDGET_ROLL, CR_BUDGET_FITS, PLAIN, -1, ""},
    {"too many even without the other", CR_RESTART_AUTO, 0,
     DEPLOYMENT(4, "maxUnavailable: 3") PODS_4 BUDGETS(BUDGET("web", "minAvailable: 6", NUMBERS(8, 6, 8, 2)))
     OTHER("[{}, {}, {}, {}]", "replicas: 4, strategy: {rollingUpdate: {maxUnavailable: 1}}"),
     CR_BUDGET_EVICT, CR_BUDGET_FITS, PLAIN, 0, "'web' (minAvailable 6) allows 2 now: 8 of 8"},
    {"Argo's controller evicts, too", CR_RESTART_AUTO, 0,
     STATEFUL_SET(4) PODS_4 BUDGETS(BUDGET("web", "maxUnavailable: 1", NUMBERS(8, 7, 8, 1)))
     "others: [{kind: Rollout, metadata: {name: api}, pods: [{}, {}, {}, {}], spec: {replicas: 4}}]\n",
     CR_BUDGET_EVICT, CR_BUDGET_FITS, PLAIN, 0, "allows 1 now, of which restarts under way may take 1, as that of Rollout api"},
    {"as many at a time as it is told", CR_RESTART_AUTO, 0,
     STATEFUL_SET(4) PODS_4 BUDGETS(BUDGET("web", "maxUnavailable: 2", NUMBERS(8, 6, 8, 2)))
     "others: [{kind: Rollout, metadata: {name: api}, pods: [{}, {}, {}, {}], spec: {replicas: 4, strategy: {canary: {maxUnavailable: 2}}}}]\n",
     CR_BUDGET_EVICT, CR_BUDGET_FITS, PLAIN, 0, "restarts under way may take 2"},

    /* --- methods --- */
    {"Rollout goes past a budget, and says so", CR_RESTART_ROLLOUT, 0,
     STATEFUL_SET(4) PODS_4 BUDGETS(BUDGET("web", "minAvailable: 4", NUMBERS(4, 4, 4, 0))),
     CR_BUDGET_ROLL, CR_BUDGET_BEYOND, WARNS, -1, "restart.method: Rollout goes past what budgets allow: a rollout may take 1"},
    {"Rollout that fits goes past nothing", CR_RESTART_ROLLOUT, 0,
     STATEFUL_SET(4) PODS_4 BUDGETS(BUDGET("web", "minAvailable: 3", NUMBERS(4, 3, 4, 1))),
     CR_BUDGET_ROLL, CR_BUDGET_FITS, PLAIN, -1, ""},
    {"Rollout without a look at budgets", CR_RESTART_ROLLOUT, 0, STATEFUL_SET(4) PODS_4 "unseen: forbidden\n",
     CR_BUDGET_ROLL, CR_BUDGET_BEYOND, WARNS, -1, "forbidden"},
    {"Rollout of what replaces nothing", CR_RESTART_ROLLOUT, 0, ON_DELETE(4) PODS_4,
     CR_BUDGET_BLOCKED, CR_BUDGET_NOTHING_ROLLS, PLAIN, -1, "OnDelete"},
    {"Evict never rolls, also where a rollout takes nothing", CR_RESTART_EVICT, 0,
     DEPLOYMENT(4, "maxUnavailable: 0") PODS_4 BUDGETS(BUDGET("web", "minAvailable: 4", NUMBERS(4, 4, 4, 0))),
     CR_BUDGET_BLOCKED, CR_BUDGET_NEEDS_ALL, PLAIN, -1, ""},
    {"Evict under two budgets", CR_RESTART_EVICT, 0,
     DEPLOYMENT(4, "") PODS_4
     BUDGETS(BUDGET("a", "minAvailable: 1", NUMBERS(4, 1, 4, 3)) ", " BUDGET("b", "minAvailable: 1", NUMBERS(4, 1, 4, 3))),
     CR_BUDGET_BLOCKED, CR_BUDGET_TWO, PLAIN, -1, "'a' and 'b'"},
    {"Never is never", CR_RESTART_NEVER, 0, DEPLOYMENT(4, "") PODS_4,
     CR_BUDGET_BLOCKED, CR_BUDGET_NEVER, PLAIN, -1, "restart.method: Never"},
    {"Argo's controller evicts, within the budget", CR_RESTART_AUTO, 0,
     "kind: Rollout\nspec: {replicas: 4}\n" PODS_4 BUDGETS(BUDGET("web", "minAvailable: 3", NUMBERS(4, 3, 4, 1))),
     CR_BUDGET_ROLL, CR_BUDGET_FITS, PLAIN, -1, "Argo"},
    {"and not past it, whatever the method", CR_RESTART_ROLLOUT, 0,
     "kind: Rollout\nspec: {replicas: 4}\n" PODS_4 BUDGETS(BUDGET("web", "minAvailable: 3", NUMBERS(3, 3, 4, 0))),
     CR_BUDGET_BLOCKED, CR_BUDGET_EXHAUSTED, WAITS, -1, ""},

    /* --- a single replica --- */
    {"a single replica that surges has no gap", CR_RESTART_AUTO, CR_SINGLE_BLOCK,
     DEPLOYMENT(1, "") PODS_1 BUDGETS(BUDGET("web", "minAvailable: 1", NUMBERS(1, 1, 1, 0))),
     CR_BUDGET_ROLL, CR_BUDGET_FREE, PLAIN, -1, "no pod away"},
    {"Surge: its own strategy decides", CR_RESTART_AUTO, CR_SINGLE_SURGE, STATEFUL_SET(1) PODS_1,
     CR_BUDGET_ROLL, CR_BUDGET_FREE, PLAIN, -1, ""},
    {"Warn: it goes, and somebody is told", CR_RESTART_AUTO, CR_SINGLE_WARN, STATEFUL_SET(1) PODS_1,
     CR_BUDGET_ROLL, CR_BUDGET_FREE, WARNS, -1, "a rollout takes the only pod away before another is ready"},
    {"Block: it stays", CR_RESTART_AUTO, CR_SINGLE_BLOCK, STATEFUL_SET(1) PODS_1,
     CR_BUDGET_BLOCKED, CR_BUDGET_SINGLE_REPLICA, PLAIN, -1, "restart.singleReplica: Block, and a rollout takes the only pod"},
    {"Block holds a Rollout in words, too", CR_RESTART_ROLLOUT, CR_SINGLE_BLOCK, STATEFUL_SET(1) PODS_1,
     CR_BUDGET_BLOCKED, CR_BUDGET_SINGLE_REPLICA, PLAIN, -1, "Block"},
    {"an eviction never surges", CR_RESTART_EVICT, CR_SINGLE_SURGE, DEPLOYMENT(1, "") PODS_1,
     CR_BUDGET_BLOCKED, CR_BUDGET_SINGLE_REPLICA, PLAIN, -1, "restart.singleReplica: Surge, and an eviction"},
    {"Warn: it is evicted, and somebody is told", CR_RESTART_EVICT, CR_SINGLE_WARN, DEPLOYMENT(1, "") PODS_1,
     CR_BUDGET_EVICT, CR_BUDGET_FREE, WARNS, 0, "an eviction takes the only pod away"},
    {"Block: it is not evicted", CR_RESTART_EVICT, CR_SINGLE_BLOCK, DEPLOYMENT(1, "") PODS_1,
     CR_BUDGET_BLOCKED, CR_BUDGET_SINGLE_REPLICA, PLAIN, -1, "an eviction takes the only pod"},
    {"the only pod is not ready: no gap that is not there already", CR_RESTART_EVICT, CR_SINGLE_BLOCK,
     DEPLOYMENT(1, "") "pods: [{ready: false}]\n", CR_BUDGET_EVICT, CR_BUDGET_FREE, PLAIN, 0, ""},
    {"a DaemonSet on one node is no single replica", CR_RESTART_AUTO, CR_SINGLE_BLOCK, DAEMON_SET(1) PODS_1,
     CR_BUDGET_ROLL, CR_BUDGET_FREE, PLAIN, -1, ""},
    {"a budget that needs the only pod, and Rollout in words", CR_RESTART_ROLLOUT, CR_SINGLE_WARN,
     STATEFUL_SET(1) PODS_1 BUDGETS(BUDGET("web", "minAvailable: 1", NUMBERS(1, 1, 1, 0))),
     CR_BUDGET_ROLL, CR_BUDGET_BEYOND, WARNS, -1, "goes past what budgets allow"},
};
/* clang-format on */

struct pods {
    struct cr_budget_pod items[8];
    char names[8][16];
    size_t len;
};

static void read_pods(const struct cr_json *list, const struct cr_json *labels, struct pods *out)
{
    for (const struct cr_json *p = cr_json_first(list); p; p = cr_json_next(p)) {
        size_t i = out->len++;
        assert_true(i < cr_array_len(out->items));
        const struct cr_json *own = cr_json_get(p, "labels");
        const char *phase = cr_json_string_at(p, "phase");
        snprintf(out->names[i], sizeof out->names[i], "pod-%zu", i);
        out->items[i] = (struct cr_budget_pod){
            .name = out->names[i],
            .labels = own ? own : labels,
            .phase = phase ? phase : "Running",
            .ready = cr_json_bool_at(p, true, "ready"),
            .replaced = cr_json_bool_at(p, false, "replaced"),
        };
    }
}

static void judge(const struct verdict_case *c, struct cr_budget_verdict *out)
{
    CR_CLEANUP(cr_json) struct cr_json *world = test_yaml(c->world);
    CR_CLEANUP(cr_json) struct cr_json *labels = test_yaml("{app: web}");
    const struct cr_json *other = cr_json_first(cr_json_get(world, "others"));
    struct cr_budget budgets[4];
    struct cr_worst_case worst;
    struct cr_worst_case other_worst;
    struct pods pods = {.len = 0};
    struct pods other_pods = {.len = 0};
    size_t budgets_len = 0;
    for (const struct cr_json *b = cr_json_first(cr_json_get(world, "budgets")); b; b = cr_json_next(b))
        cr_budget_read(b, &budgets[budgets_len++]);
    cr_worst_case_of(cr_json_string_at(world, "kind"), world, &worst);
    cr_worst_case_of(cr_json_string_at(other, "kind"), other, &other_worst);
    read_pods(cr_json_get(world, "pods"), labels, &pods);
    read_pods(cr_json_get(other, "pods"), labels, &other_pods);
    const struct cr_budget_workload workload = {.kind = cr_json_string_at(world, "kind"),
                                                .name = "web",
                                                .worst = &worst,
                                                .pods = pods.items,
                                                .pods_len = pods.len};
    const struct cr_budget_workload others = {.kind = cr_json_string_at(other, "kind"),
                                              .name = cr_json_string_at(other, "metadata", "name"),
                                              .worst = &other_worst,
                                              .pods = other_pods.items,
                                              .pods_len = other_pods.len,
                                              .evicts = cr_json_bool_at(other, false, "evicts")};
    const struct cr_budget_world question = {.method = c->method,
                                             .single = c->single,
                                             .budgets = budgets,
                                             .budgets_len = budgets_len,
                                             .unseen = cr_json_string_at(world, "unseen"),
                                             .others = &others,
                                             .others_len = other ? 1 : 0};
    cr_budget_judge(&workload, &question, out);
    for (size_t i = 0; i < budgets_len; i++)
        cr_budget_dispose(&budgets[i]);
}

static void test_verdicts(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(verdicts); i++) {
        const struct verdict_case *c = &verdicts[i];
        CR_CLEANUP(cr_budget_verdict) struct cr_budget_verdict verdict;
        judge(c, &verdict);
        unsigned flags = (verdict.waits ? WAITS : 0U) | (verdict.warning ? WARNS : 0U);
        if (verdict.way != c->way || verdict.reason != c->reason || flags != c->flags)
            fail_msg("%s: way %d, reason %d, flags %u: %s", c->rule, (int)verdict.way, (int)verdict.reason, flags,
                     verdict.text);
        if (verdict.pod != (c->pod < 0 ? SIZE_MAX : (size_t)c->pod))
            fail_msg("%s: pod %zu", c->rule, verdict.pod);
        if (!strstr(verdict.text, c->text) || !verdict.text[0])
            fail_msg("%s: \"%s\" should say \"%s\"", c->rule, verdict.text, c->text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_selectors),
        cmocka_unit_test(test_a_budget_is_read),
        cmocka_unit_test(test_nothing_allows_nothing),
        cmocka_unit_test(test_verdicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
