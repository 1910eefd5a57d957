/* What is not reported leads to the safe choice: reports with something missing, odd, or older than it seems. */
#include "support/controlplanescene.h"

struct unknown_case {
    const char *rule;
    const char *edits;
    const char *words;   /* see apply() */
    const char *order;   /* "etcd node-2"; "": none */
    const char *says;    /* is in the message of Ready, Blocked or Degraded, or next; NULL: whatever */
    const char *cluster; /* trusted/removable, as letters; NULL: whatever */
    const char *etcd;    /* likewise */
};

#define BUNDLES "* file ca ab ab; * file cm.conf ab ab; * file scheduler.conf ab ab; * file kubelet.conf ab ab; "
#define LEAVES                                                                                                         \
    "* file apiserver 2b 2b; * file kubelet-client 2b 2b; * file cm.leaf 2b 2b; * file scheduler.leaf 2b 2b; "         \
    "* file kubelet.leaf 2b 2b; * file kubelet-serving 2b 2b; * file signing b b; "

/* clang-format off */
static const struct unknown_case cases[] = {
    /* what may go */
    {"the old CA may go", BUNDLES LEAVES, "roots:ab", "", .cluster = "ab/a"},
    {"not when no agent sees an API server, as in a managed control plane",
     BUNDLES LEAVES, "roots:ab kubelets", "", "none has an API server", .cluster = "ab/"},
    {"nor when a leaf verifies against nothing that its node has",
     BUNDLES LEAVES "2 file scheduler.leaf 2 2", "roots:ab", "", .cluster = "ab/"},
    {"etcd's may go", "* file etcd-ca ef ef; * file etcd-server 2f 2f; * file etcd-peer 2f 2f; * file etcd-client 2f 2f", "", "", .etcd = "ef/e"},
    {"not when etcd is no component of a node",
     "* file etcd-ca ef ef; * file etcd-server 2f 2f; * file etcd-peer 2f 2f; * file etcd-client 2f 2f", "hidden:1etcd hidden:2etcd hidden:3etcd", "", .etcd = "ef/"},
    {"a report without any component tells nothing", "", "empty:3", "", .cluster = "/"},

    /* what would be loaded: what a process has now is not known */
    {"a bundle that lacks a CA in use", "2 file etcd-ca f ?", "", "", "lacks a CA"},
    {"verification keys that lack one that tokens are of", "2 file sa.pub y ?", "", "", "tokens in use are of"},
    {"a new signing key beside something else",
     "2 kube-apiserver --etcd-cafile ef e; 2 kube-apiserver --service-account-signing-key-file y ?", "untold", "", "not every API server verifies by"},
    {"a new leaf beside something else", "2 file cm.conf ab a; 2 file cm.leaf 2b ?", "untold", "", "not all who verify it"},
    {"a signing key while a node's files may be missing from the list",
     "* file sa.pub xy xy; 2 kube-controller-manager --service-account-private-key-file y x", "hidden:3kube-apiserver trouble:3", "", "not every API server verifies by"},
    {"a bundle without the old CA, likewise",
     "* file etcd-ca ef ef; * file etcd-server 2f 2f; * file etcd-peer 2f 2f; * file etcd-client 2f 2f; 2 file etcd-ca f ef", "trouble:3", "", "lacks a CA"},

    /* who is there */
    {"a labelled node without a report has a part of the control plane", "2 file scheduler.conf ab a", "absent:3 labelled:3", "", "never reported"},
    {"a report of a clock that is far ahead", "2 file scheduler.conf ab a", "ahead:3", "", "is silent"},
    {"members of etcd that are not listed may be there",
     "1 etcd --trusted-ca-file ef e", "allow hidden:2etcd trouble:2 hidden:3etcd trouble:3", "", "no majority"},
    {"an agent that restarts what nobody has on record", "2 file scheduler.conf ab a", "acts:3", "", "The agent of node-3 says that it restarts etcd"},
    {"for how long it may, is told", "2 file scheduler.conf ab a", "acts:3", "", "longer than spec.restart.deadline"},
    {"a worker's agent that says it has an API server, too", "1 kube-apiserver --etcd-cafile ef e", "labelled:1 hidden:3kube-apiserver", "", "no other API server serves"},
    {"nobody would begin a static pod again", "2 file scheduler.conf ab a", "failing:2kubelet", "", "kubelet is not well"},
};
/* clang-format on */

/* --- a setting --- */

struct setting {
    struct scene_cluster cluster;
    struct cr_control_plane_policy policy;
    struct cr_control_plane_status status;
    struct scene_object roots[SCENE_OBJECTS];
    struct scene_world w;
    struct cr_node_report empty;
};

static void set_up(struct setting *s)
{
    memset(s, 0, sizeof *s);
    scene_cluster_init(&s->cluster);
    for (size_t n = 0; n < SCENE_NODES; n++)
        s->cluster.nodes[n].own = false;
    s->policy = scene_policy();
    s->roots[0] = (struct scene_object){.ns = "one", .prints = "a"};
}

static void make(struct setting *s)
{
    scene_world_make(&s->cluster, s->roots, NULL, &s->policy, &s->status, NULL, &s->w);
}

/* Of that node the component, and each of its rows, are somebody's who matters to nobody. */
static void hide(struct setting *s, size_t n, const char *component)
{
    struct cr_node_report *report = &s->w.reports[n];
    for (size_t i = 0; i < report->components_len; i++)
        if (cr_streq(report->components[i].name, component))
            cr_strset(&report->components[i].name, "something");
    for (size_t i = 0; i < report->files_len; i++)
        if (cr_streq(report->files[i].component, component)) {
            cr_strset(&report->files[i].component, "something");
            cr_strset(&report->files[i].parameter, "--kubeconfig");
        }
}

static void hide_all_but_kubelets(struct setting *s)
{
    for (size_t n = 0; n < SCENE_NODES; n++)
        for (size_t i = 0; i + 1 < SCENE_COMPONENTS; i++)
            hide(s, n, scene_components[i]);
}

/* What the process has is not known, and so not whether a restart is needed. */
static void forget_unknown(struct setting *s)
{
    for (size_t n = 0; n < SCENE_NODES; n++)
        for (size_t i = 0; i < s->w.reports[n].files_len; i++)
            if (!s->w.reports[n].files[i].has_known)
                s->w.reports[n].files[i].loaded = CR_NODE_LOADED_UNKNOWN;
}

/* Before the reports are made; false: it is for afterwards. */
static bool apply_before(struct setting *s, const char *word, const char *argument)
{
    size_t n = *argument ? (size_t)(argument[0] - '1') : 0;
    if (cr_starts_with(word, "roots:"))
        snprintf(s->roots[0].prints, sizeof s->roots[0].prints, "%s", argument);
    else if (cr_starts_with(word, "absent:"))
        s->cluster.nodes[n].absent = true;
    else if (cr_starts_with(word, "ahead:"))
        s->cluster.nodes[n].seen_ms = s->cluster.now_ms + SCENE_HOUR;
    else if (cr_starts_with(word, "trouble:"))
        s->cluster.nodes[n].trouble = "kubelet: static pod of it: not all words can be told";
    else if (cr_starts_with(word, "failing:"))
        s->cluster.nodes[n].failing[scene_component(argument + 1)] = true;
    else if (cr_starts_with(word, "acts:")) {
        struct scene_node *node = &s->cluster.nodes[n];
        node->act = (struct cr_node_act){.phase = CR_NODE_ACT_PROVING, .started_ms = s->cluster.now_ms - SCENE_HOUR};
        snprintf(node->act_token, sizeof node->act_token, "whose");
        snprintf(node->act_component, sizeof node->act_component, "etcd");
    } else if (cr_streq(word, "allow"))
        s->policy.single = CR_CONTROL_PLANE_SINGLE_ALLOW;
    else
        return false;
    return true;
}

static bool apply_after(struct setting *s, const char *word, const char *argument)
{
    size_t n = *argument ? (size_t)(argument[0] - '1') : 0;
    if (cr_streq(word, "kubelets"))
        hide_all_but_kubelets(s);
    else if (cr_streq(word, "untold"))
        forget_unknown(s);
    else if (cr_starts_with(word, "hidden:"))
        hide(s, n, argument + 1);
    else if (cr_starts_with(word, "labelled:"))
        s->w.nodes[n].control_plane = true;
    else if (cr_starts_with(word, "empty:")) {
        s->empty = (struct cr_node_report){.node = s->w.names[n], .seen_ms = s->cluster.now_ms};
        s->w.nodes[n].report = &s->empty;
    } else
        return false;
    return true;
}

static void apply(struct setting *s, const char *words, bool after)
{
    cr_autofree char *copy = cr_strdup(words);
    char *save = NULL;
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        const char *argument = strchr(word, ':') ? strchr(word, ':') + 1 : "";
        bool done = after && apply_after(s, word, argument);
        if (!apply_before(s, word, argument) && !done && after)
            fail_msg("the test's own word: %s", word);
    }
}

/* --- each --- */

static const char *message_of(const struct cr_control_plane_status *status, const char *type)
{
    for (size_t i = 0; i < CR_CONTROL_PLANE_CONDITIONS; i++)
        if (cr_streq(cr_control_plane_condition_types[i], type) && status->conditions[i].status)
            return cr_or_empty(status->conditions[i].message);
    return "";
}

static bool is_reported(const struct cr_control_plane_authority *authority, const char *want, char *got, size_t size)
{
    char trusted[16], removable[16];
    scene_letters(authority->trusted, trusted, sizeof trusted);
    scene_letters(authority->removable, removable, sizeof removable);
    snprintf(got, size, "%s/%s", trusted, removable);
    return !want || cr_streq(got, want);
}

static bool judge(const struct unknown_case *c, const struct cr_control_plane_plan *plan)
{
    char cluster[40], etcd[40];
    const struct cr_control_plane_status *status = &plan->status;
    cr_autofree char *order =
        plan->has_order ? cr_asprintf("%s %s", plan->order.component, plan->order.node) : cr_strdup("");
    cr_autofree char *said = cr_asprintf("%s | %s | %s | %s", message_of(status, "Ready"),
                                         message_of(status, "Blocked"), message_of(status, "Degraded"), status->next);
    bool good = is_reported(&status->cluster, c->cluster, cluster, sizeof cluster);
    good = is_reported(&status->etcd, c->etcd, etcd, sizeof etcd) && good;
    good = cr_streq(order, c->order) && (!c->says || strstr(said, c->says)) && good;
    if (!good)
        print_error("%s: '%s', the cluster's %s, etcd's %s; it says: %s\n", c->rule, order, cluster, etcd, said);
    return good;
}

static bool check(const struct unknown_case *c)
{
    static struct setting s;
    set_up(&s);
    scene_edits(&s.cluster, c->edits);
    apply(&s, c->words, false);
    make(&s);
    apply(&s, c->words, true);
    scene_record(&s.w.world, &s.status);
    CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
    cr_control_plane_plan(&s.w.world, &plan);
    bool good = judge(c, &plan);
    scene_world_cleanup(&s.w);
    cr_control_plane_status_dispose(&s.status);
    return good;
}

static void each_rule(void **state)
{
    (void)state;
    scene_check_each(cases, check);
}

/* --- over several plans --- */

/* What it remembers is taken along. */
static void plan_on(struct setting *s, struct cr_control_plane_plan *plan)
{
    make(s);
    cr_control_plane_plan(&s->w.world, plan);
    struct cr_control_plane_status kept = {0};
    cr_control_plane_status_keep(&kept, &plan->status);
    cr_control_plane_status_dispose(&s->status);
    s->status = kept;
}

static void plan_away(struct setting *s, struct cr_control_plane_plan *plan)
{
    cr_control_plane_plan_dispose(plan);
    scene_world_cleanup(&s->w);
}

/* Each of its processes is another one, and none stays: the next kubelet would be the next to be lost. */
static void a_failure_is_not_over_since_it_fails_again(void **state)
{
    static struct setting s;
    struct cr_control_plane_plan plan;
    (void)state;
    set_up(&s);
    scene_edits(&s.cluster, "* file kubelet.conf ab a");
    struct scene_node *node = &s.cluster.nodes[0];
    snprintf(node->order, sizeof node->order, "token");
    snprintf(node->order_component, sizeof node->order_component, "kubelet");
    snprintf(node->act_token, sizeof node->act_token, "token");
    snprintf(node->act_component, sizeof node->act_component, "kubelet");
    node->act.phase = CR_NODE_ACT_FAILED;
    plan_on(&s, &plan);
    assert_string_equal(plan.clear, "node-1");
    plan_away(&s, &plan);
    node->order[0] = '\0';
    for (int i = 0; i < 3; i++) {
        node->process[4]++;
        node->failing[4] = i % 2 == 0;
        node->started_ms[4] = s.cluster.now_ms - SCENE_SECOND;
        plan_on(&s, &plan);
        assert_false(plan.has_order);
        assert_string_equal(cr_or_empty(plan.status.failed_node), "node-1");
        plan_away(&s, &plan);
    }
    node->failing[4] = false;
    node->started_ms[4] = s.cluster.now_ms - SCENE_MINUTE;
    plan_on(&s, &plan);
    assert_true(plan.has_order);
    plan_away(&s, &plan);
    cr_control_plane_status_dispose(&s.status);
}

/* What it says by its own clock may be of before. */
static void an_order_taken_back_is_remembered_whatever_the_clock(void **state)
{
    static struct setting s;
    struct cr_control_plane_plan plan;
    (void)state;
    set_up(&s);
    scene_edits(&s.cluster, "* file kubelet.conf ab a");
    s.cluster.nodes[0].seen_ms = s.cluster.now_ms + 60 * SCENE_SECOND;
    plan_on(&s, &plan);
    assert_true(plan.has_order);
    cr_autofree char *first = cr_strdup(plan.order.node);
    struct scene_node *node = &s.cluster.nodes[first[5] - '1'];
    snprintf(node->order, sizeof node->order, "%s", plan.order.token);
    snprintf(node->order_component, sizeof node->order_component, "kubelet");
    plan_away(&s, &plan);
    node->seen_ms = s.cluster.now_ms + 60 * SCENE_SECOND;
    s.policy.suspend = true;
    plan_on(&s, &plan);
    assert_string_equal(plan.clear, first);
    plan_away(&s, &plan);
    node->order[0] = '\0';
    s.cluster.now_ms += SCENE_SECOND;
    plan_on(&s, &plan);
    assert_true(plan.status.restarting_revoked);
    plan_away(&s, &plan);
    node->seen_ms += CR_NODE_RENEW_MS;
    s.cluster.now_ms += CR_NODE_RENEW_MS;
    plan_on(&s, &plan);
    assert_null(plan.status.restarting_token);
    plan_away(&s, &plan);
    cr_control_plane_status_dispose(&s.status);
}

/* No report says what --root-ca-file has, and pods that read the root CA once are restarted for it all the same. */
static void workloads_follow_a_managed_root_ca(void **state)
{
    static struct setting s;
    char name[] = "dns";
    struct cr_control_plane_workload workload = {.name = name, .reads_root_ca = true};
    struct cr_control_plane_workload_view view = {.found = true, .pods_started_ms = scene_now - SCENE_HOUR};
    (void)state;
    set_up(&s);
    s.policy.workloads = &workload;
    s.policy.workloads_len = 1;
    for (int i = 0; i < 3; i++) {
        CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
        snprintf(s.roots[0].prints, sizeof s.roots[0].prints, "%s", i ? "ab" : "a");
        snprintf(s.roots[1].ns, sizeof s.roots[1].ns, "two");
        snprintf(s.roots[1].prints, sizeof s.roots[1].prints, "%s", i > 1 ? "ab" : "a");
        make(&s);
        hide_all_but_kubelets(&s);
        s.w.world.workloads = &view;
        cr_control_plane_plan(&s.w.world, &plan);
        assert_non_null(plan.status.root_ca);
        assert_int_equal(plan.restart_workloads.len, i > 1);
        struct cr_control_plane_status kept = {0};
        cr_control_plane_status_keep(&kept, &plan.status);
        cr_control_plane_status_dispose(&s.status);
        s.status = kept;
        scene_world_cleanup(&s.w);
    }
    cr_control_plane_status_dispose(&s.status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule),
        cmocka_unit_test(a_failure_is_not_over_since_it_fails_again),
        cmocka_unit_test(an_order_taken_back_is_remembered_whatever_the_clock),
        cmocka_unit_test(workloads_follow_a_managed_root_ca),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
