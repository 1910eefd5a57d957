/* Who is restarted next, who waits, and who is blocked: rules 1 to 7, each with what it allows and what it does not. */
#include "support/controlplanescene.h"

struct next_case {
    const char *rule;
    const char *edits;
    const char *words; /* see apply() */
    const char *order; /* "etcd node-2"; "": none */
    const char *says;  /* is in Blocked's message or next; NULL: Blocked is False */
};

/* clang-format off */
static const struct next_case cases[] = {
    {"settled: nobody", "", "", ""},

    /* 2: only what must be */
    {"a bundle that is read once",
     "2 file etcd-ca ef e; 2 etcd --trusted-ca-file ef ef; 2 etcd --peer-trusted-ca-file ef ef", "", "kube-apiserver node-2"},
    {"what is taken up by itself: nobody", "* kube-apiserver --client-ca-file ab a", "", ""},
    {"what cannot be told: nobody", "* kube-apiserver --etcd-cafile ! e", "", ""},
    {"the policy forbids it", "2 file scheduler.conf ab a", "never:kube-scheduler", "", "never restarted"},
    {"the policy forbids another", "2 file scheduler.conf ab a", "never:kube-proxy", "kube-scheduler node-2"},
    {"its agent may not",
     "2 file scheduler.conf ab a", "refused:2kube-scheduler", "", "--allow-restart does not list it"},
    {"one that is blocked is in nobody's way",
     "* file scheduler.conf ab a", "refused:2kube-scheduler", "kube-scheduler node-3", "--allow-restart does not list it"},

    /* 3: the order */
    {"etcd before API servers, the leader's node last", "* file etcd-ca ef e", "", "etcd node-2"},
    {"the leader is another", "* file etcd-ca ef e", "leader:2", "etcd node-1"},
    {"nobody knows who leads: by name", "* file etcd-ca ef e", "leader:", "etcd node-1"},
    {"API servers before controller managers", "* file sa.pub xy x; * file cm.conf ab a", "", "kube-apiserver node-2"},
    {"controller managers before schedulers and kubelets",
     "* file cm.conf ab a; * file scheduler.conf ab a; * file kubelet.conf ab a", "", "kube-controller-manager node-2"},
    {"kubelets last", "* file kubelet.conf ab a; 3 file scheduler.conf ab a", "", "kube-scheduler node-3"},

    /* 1: who makes all others wait */
    {"a node of the control plane is silent", "2 file scheduler.conf ab a", "silent:3", "", "is silent"},
    {"an API server does not serve",
     "2 file scheduler.conf ab a", "failing:3kube-apiserver", "", "kube-apiserver of node-3 does not serve"},
    {"a member of etcd does not run", "2 file scheduler.conf ab a", "down:3etcd", "", "etcd of node-3 does not run"},
    {"its own node's may be what its restart mends", "3 file etcd-ca ef e", "failing:3kube-apiserver", "etcd node-3"},
    {"a kubelet that fails holds nobody", "2 file scheduler.conf ab a", "failing:3kubelet", "kube-scheduler node-2"},
    {"a process that has just begun by itself",
     "2 file scheduler.conf ab a", "young:3kube-controller-manager", "", "only just begun"},
    {"one that its agent has seen through",
     "2 file scheduler.conf ab a", "proved:3kube-controller-manager", "kube-scheduler node-2"},
    {"a node without a report may have nothing to restart",
     "2 file scheduler.conf ab a", "absent:3", "kube-scheduler node-2"},

    /* 4: etcd's majority, the last API server */
    {"two of three would answer", "2 file etcd-ca ef e", "", "etcd node-2"},
    {"one of two would", "2 etcd --trusted-ca-file ef e", "absent:3", "", "no majority"},
    {"the only one that is known", "1 etcd --trusted-ca-file ef e", "alone", "", "singleNode"},
    {"and that is permitted", "1 etcd --trusted-ca-file ef e", "alone allow", "etcd node-1"},
    {"permitted for a cluster of one, not for two",
     "2 etcd --trusted-ca-file ef e", "absent:3 allow", "", "no majority"},
    {"no other API server serves",
     "2 kube-apiserver --etcd-cafile ef e", "failing:1kube-apiserver failing:3kube-apiserver", "", "no other API server serves"},

    /* 5: the signing file */
    {"a bundle in the signing file: no controller manager",
     "2 file ca ab a; 2 file signing ab ab", "", "", "more than one certificate"},
    {"nor what the leader needs",
     "1 etcd --trusted-ca-file ef e; 2 file signing ab ab", "", "", "more than one certificate"},
    {"but others",
     "2 etcd --trusted-ca-file ef e; 2 file signing ab ab", "", "etcd node-2", "more than one certificate"},
    {"nobody knows who leads: nobody's etcd",
     "2 etcd --trusted-ca-file ef e; 2 file signing ab ab", "leader:", "", "more than one certificate"},
    {"a signing file that is broken, likewise", "2 file cm.conf ab a; 2 file signing ! a", "", "", "cannot be used"},

    /* 6: what would be loaded */
    {"a leaf of a CA that all its peers have",
     "* file ca ab ab; 2 file cm.leaf 2b 1a", "", "kube-controller-manager node-2"},
    {"that one of them has not loaded",
     "* file ca ab ab; 3 kube-apiserver --client-ca-file ab a; 2 file cm.leaf 2b 1a", "", "", "not all who verify it"},
    {"a bundle without a CA that is needed", "2 file etcd-ca f e", "", "", "lacks a CA"},
    {"without one that nobody needs",
     "* file etcd-ca ef ef; * file etcd-server 2f 2f; * file etcd-peer 2f 2f; * file etcd-client 2f 2f; 2 file etcd-ca f ef", "", "etcd node-2"},
    {"without one that a process may still need",
     "* file etcd-ca ef ef; * file etcd-server 2f 2f; * file etcd-peer 2f 2f; * file etcd-client 2f 2f; 3 file etcd-client 2f ?; 2 file etcd-ca f ef", "", "kube-apiserver node-3", "lacks a CA"},
    {"a signing key that all verify by",
     "* file sa.pub xy xy; 2 kube-apiserver --service-account-signing-key-file y x", "", "kube-apiserver node-2"},
    {"that one API server does not",
     "* file sa.pub xy xy; 3 file sa.pub xy x; 2 kube-controller-manager --service-account-private-key-file y x", "", "kube-apiserver node-3", "not every API server verifies by"},
    {"both keys at once everywhere",
     "* file sa.pub y x; * file sa.key y x", "", "", "not every API server verifies by"},
    {"a key that tokens are of is dropped",
     "* file sa.pub xy xy; * file sa.key y y; 2 file sa.pub y xy", "wait", "", "tokens in use are of"},
    {"a key that nobody uses is dropped",
     "* file sa.pub xy xy; * file sa.key y y; 2 file sa.pub y xy", "tokens:y", "kube-apiserver node-2"},
    {"a broken file beside it", "2 file cm.conf ab a; 2 file cm.leaf ! 1a", "", "", "is no certificate"},

    /* 7: kubelets for tokens */
    {"tokens of another key", "* file sa.pub xy xy; * file sa.key y y", "", "kubelet node-2"},
    {"the policy waits", "* file sa.pub xy xy; * file sa.key y y", "wait", ""},
    {"one still signs with the old key",
     "* file sa.pub xy xy; * file sa.key y y; 1 kube-controller-manager --service-account-private-key-file y x", "", "kube-controller-manager node-1"},
    {"one API server would not verify it",
     "* file sa.pub xy xy; * file sa.key y y; 1 kube-apiserver --service-account-key-file xy ?", "never:kube-apiserver", "", "never restarted"},
    {"it was restarted since", "* file sa.pub xy xy; * file sa.key y y", "since", ""},
    {"the kubelet's own pair, while there are two CAs",
     "* file ca ab ab; 2 file kubelet.leaf 2a 1a", "", "kubelet node-2"},
    {"while there is one", "2 file kubelet.leaf 2a 1a", "", ""},

    /* nothing is done */
    {"mode: Plan", "2 file scheduler.conf ab a", "plan", "", "mode: Plan"},
    {"suspended", "2 file scheduler.conf ab a", "suspend", "", "suspend"},
};
/* clang-format on */

struct setting {
    struct scene_cluster cluster;
    struct cr_control_plane_policy policy;
    struct cr_control_plane_consumer consumer;
    struct cr_control_plane_status status;
    char name[32], key[CR_SHA256_HEX];
};

/* "failing:3kube-apiserver" */
static struct scene_node *node_of(struct setting *s, const char *argument, size_t *component)
{
    *component = scene_component(argument + 1);
    return &s->cluster.nodes[argument[0] - '1'];
}

static bool apply_switch(struct setting *s, const char *word)
{
    if (cr_streq(word, "plan"))
        s->policy.enforce = false;
    else if (cr_streq(word, "suspend"))
        s->policy.suspend = true;
    else if (cr_streq(word, "wait"))
        s->policy.tokens = CR_CONTROL_PLANE_TOKENS_WAIT;
    else if (cr_streq(word, "allow"))
        s->policy.single = CR_CONTROL_PLANE_SINGLE_ALLOW;
    else if (cr_streq(word, "alone")) {
        s->cluster.nodes[1].absent = true;
        s->cluster.nodes[2].absent = true;
    } else if (cr_streq(word, "since")) {
        scene_print('y', s->key);
        s->status.signing_key = s->key;
        s->status.signing_key_since_ms = s->cluster.nodes[0].started_ms[4] - SCENE_MINUTE;
    } else
        return false;
    return true;
}

static void apply_to_component(struct setting *s, const char *word, const char *argument)
{
    size_t c = 0;
    struct scene_node *node = node_of(s, argument, &c);
    if (cr_starts_with(word, "refused:"))
        node->refused[c] = true;
    else if (cr_starts_with(word, "failing:"))
        node->failing[c] = true;
    else if (cr_starts_with(word, "down:"))
        node->running[c] = false;
    else if (cr_starts_with(word, "young:"))
        node->started_ms[c] = s->cluster.now_ms - 10 * SCENE_SECOND;
    else if (cr_starts_with(word, "proved:")) {
        node->started_ms[c] = s->cluster.now_ms - 10 * SCENE_SECOND;
        node->act = (struct cr_node_act){.phase = CR_NODE_ACT_DONE, .finished_ms = s->cluster.now_ms - SCENE_SECOND};
        snprintf(node->act_component, sizeof node->act_component, "%s", scene_components[c]);
        snprintf(node->act_token, sizeof node->act_token, "another");
    } else
        fail_msg("the test's own word: %s", word);
}

static void apply_word(struct setting *s, const char *word)
{
    const char *argument = strchr(word, ':') ? strchr(word, ':') + 1 : "";
    if (apply_switch(s, word))
        return;
    if (cr_starts_with(word, "leader:"))
        snprintf(s->cluster.leader, sizeof s->cluster.leader, "%s%s", *argument ? "node-" : "", argument);
    else if (cr_starts_with(word, "silent:"))
        s->cluster.nodes[argument[0] - '1'].seen_ms -= CR_NODE_STALE_MS;
    else if (cr_starts_with(word, "absent:"))
        s->cluster.nodes[argument[0] - '1'].absent = true;
    else if (cr_starts_with(word, "tokens:"))
        for (size_t n = 0; n < SCENE_NODES; n++)
            snprintf(s->cluster.nodes[n].tokens, SCENE_TEXT, "%s", argument);
    else if (cr_starts_with(word, "never:")) {
        snprintf(s->name, sizeof s->name, "%s", argument);
        s->consumer = (struct cr_control_plane_consumer){s->name, CR_CONTROL_PLANE_RESTART_NEVER};
        s->policy.consumers = &s->consumer;
        s->policy.consumers_len = 1;
    } else
        apply_to_component(s, word, argument);
}

static void apply(struct setting *s, const char *words)
{
    cr_autofree char *copy = cr_strdup(words);
    char *save = NULL;
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
        apply_word(s, word);
}

static const char *message_of(const struct cr_control_plane_status *status, const char *type)
{
    for (size_t i = 0; i < CR_CONTROL_PLANE_CONDITIONS; i++)
        if (cr_streq(cr_control_plane_condition_types[i], type) && status->conditions[i].status)
            return cr_or_empty(status->conditions[i].message);
    return NULL;
}

static bool judge(const struct next_case *c, const struct cr_control_plane_plan *plan)
{
    const char *blocked = message_of(&plan->status, "Blocked");
    cr_autofree char *got =
        plan->has_order ? cr_asprintf("%s %s", plan->order.component, plan->order.node) : cr_strdup("");
    cr_autofree char *said = cr_asprintf("%s | %s", cr_or_empty(blocked), plan->status.next);
    bool same = cr_streq(got, c->order);
    bool says = c->says ? strstr(said, c->says) != NULL : blocked == NULL;
    bool named = !plan->has_order || cr_streq(plan->status.restarting_token, plan->order.token);
    if (!same || !says || !named)
        print_error("%s: '%s' and not '%s'; it says: %s\n", c->rule, got, c->order, said);
    return same && says && named;
}

static bool check(const struct next_case *c)
{
    static struct setting s;
    static struct scene_world w;
    static const struct scene_object roots[SCENE_OBJECTS] = {{.ns = "one", .prints = "a"}};
    memset(&s, 0, sizeof s);
    scene_cluster_init(&s.cluster);
    s.policy = scene_policy();
    scene_edits(&s.cluster, c->edits);
    apply(&s, c->words);
    scene_world_make(&s.cluster, roots, NULL, &s.policy, &s.status, NULL, &w);
    CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
    cr_control_plane_plan(&w.world, &plan);
    bool good = judge(c, &plan);
    scene_world_cleanup(&w);
    return good;
}

static void each_rule(void **state)
{
    (void)state;
    scene_check_each(cases, check);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_rule)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
