/* The life of an order: what is out is not given to another component, what is over is cleared, what failed holds, and
 * a crash or a stale read between any two writes changes nothing. etcd of node-2 is to be restarted in each of them. */
#include "support/controlplanescene.h"

#define TOKEN "@" /* stands for the token that the plan gives it */

struct order_case {
    const char *rule;
    /* The status, as "node token" or "node token revoked"; NULL: names none. */
    const char *status;
    int64_t since_ms; /* ago */
    /* Of node-2 ("2 spec act phase") or others: what its spec has, what its act is about. "-": none. */
    const char *reports;
    const char *words; /* "silent:2", "suspend", "settled" (nothing is to be restarted), "trap" */
    /* "order 2", "clear 2", "" and, of the status, what it names: "2", "2 revoked", "", and "failed" */
    const char *plan;
};

/* clang-format off */
static const struct order_case cases[] = {
    {"it is named and given", NULL, 0, "", "", "order 2, names 2"},

    /* out */
    {"it is out", "2 @", 5000, "2 @ - -", "", ", names 2"},
    {"its agent waits for its turn", "2 @", 5000, "2 @ @ Waiting", "", ", names 2"},
    {"it has begun: nobody else", "2 @", 5000, "2 @ @ Restarting", "settled", ", names 2"},
    {"it proves itself", "2 @", 5000, "2 @ @ Proving", "settled", ", names 2"},
    {"its agent is silent: it holds, past its deadline, too",
     "2 @", 3600 * 1000, "2 @ @ Restarting", "silent:2", ", names 2, overdue"},
    {"it is not over after its deadline", "2 @", 3600 * 1000, "2 @ @ Proving", "", ", names 2, overdue"},
    {"the status was lost: what is out is taken over", NULL, 0, "2 @ - -", "", ", names 2"},
    {"and what has begun, by its act alone", NULL, 0, "3 - other Restarting", "", ""},

    /* over */
    {"it is done: cleared, and nobody else in this plan", "2 @", 5000, "2 @ @ Done", "settled", "clear 2"},
    {"cleared, and the status was not written then", "2 @", 5000, "2 - @ Done", "settled", ""},
    {"the status was written, and the report is older", NULL, 0, "2 @ @ Done", "settled", "clear 2"},
    {"it failed: cleared, and it holds", "2 @", 5000, "2 @ @ Failed", "", "clear 2, failed"},
    {"it was refused", "2 @", 5000, "2 @ @ Refused", "", "clear 2, failed"},
    {"a failure that is not cleared yet, read again", "2 @", 5000, "2 - @ Failed", "", ", failed"},

    /* between the status and the order */
    {"named, not given: the same again", "2 @", 5000, "2 - - -", "", "order 2, names 2"},
    {"named, and given to nobody, as nothing is to be done any more: it is taken back",
     "2 @", 5000, "2 - - -", "settled", "clear 2, names 2 revoked"},
    {"named, and it would not be safe any more", "2 @", 5000, "2 - - -", "trap", "clear 2, names 2 revoked"},
    {"named, and its spec has an older one", "2 @", 5000, "2 old - -", "", "order 2, names 2"},

    /* taken back */
    {"given, not begun, suspended", "2 @", 5000, "2 @ - -", "suspend", "clear 2, names 2 revoked"},
    {"given, not begun, and a node is silent", "2 @", 5000, "2 @ - -", "silent:3", "clear 2, names 2 revoked"},
    {"given, not begun, and its agent is silent", "2 @", 5000, "2 @ - -", "silent:2", "clear 2, names 2 revoked"},
    {"accepted, not begun, and its agent is silent", "2 @", 5000, "2 @ @ Waiting", "silent:2", "clear 2, names 2 revoked"},
    {"taken back of a silent agent, and still there: again", "2 @ revoked", 5000, "2 @ - -", "silent:2", "clear 2, names 2 revoked"},
    {"taken back of an agent that stays silent", "2 @ revoked", 60 * 1000, "2 - - -", "silent:2", ", names 2 revoked"},
    {"taken back, and still there: again", "2 @ revoked", 5000, "2 @ - -", "", "clear 2, names 2 revoked"},
    {"taken back, and its agent has not spoken since", "2 @ revoked", 5000, "2 - - -", "", ", names 2 revoked"},
    {"taken back, and it has not begun", "2 @ revoked", 60 * 1000, "2 - - -", "settled", ""},
    {"taken back, and it has begun all the same",
     "2 @ revoked", 60 * 1000, "2 - @ Restarting", "", ", names 2"},
    {"taken back, and it was done all the same: that is on record first",
     "2 @ revoked", 60 * 1000, "2 - @ Done", "settled", ", names 2"},
    {"and still there", "2 @ revoked", 60 * 1000, "2 @ @ Done", "settled", "clear 2, names 2"},
    {"taken back, and it failed all the same", "2 @ revoked", 60 * 1000, "2 - @ Failed", "", ", names 2, failed"},
    {"begun: it is not taken back", "2 @", 5000, "2 @ @ Restarting", "suspend", ", names 2"},

    /* two */
    {"another node has one, too: one of them goes", "2 @", 5000, "2 @ - -; 3 other - -", "", "clear 3, names 2"},
    {"but not when it has begun", "2 @", 5000, "2 @ - -; 3 other other Restarting", "", ", names 2"},
    {"its node is gone", "9 @", 5000, "", "settled", ""},
};
/* clang-format on */

struct setting {
    struct scene_cluster cluster;
    struct cr_control_plane_policy policy;
    struct cr_control_plane_status status;
    char token[40];
};

static enum cr_node_act_phase phase_of(const char *name)
{
    enum cr_node_act_phase phase = CR_NODE_ACT_NONE;
    if (!cr_streq(name, "-") && !cr_node_act_phase_parse(name, &phase))
        fail_msg("the test's own phase: %s", name);
    return phase;
}

static void put(char out[40], const struct setting *s, const char *word)
{
    snprintf(out, 40, "%s", cr_streq(word, TOKEN) ? s->token : cr_streq(word, "-") ? "" : word);
}

static void apply_reports(struct setting *s, const char *reports)
{
    cr_autofree char *copy = cr_strdup(reports);
    char *save = NULL;
    for (char *one = strtok_r(copy, ";", &save); one; one = strtok_r(NULL, ";", &save)) {
        char node[4], spec[16], act[16], phase[16];
        if (sscanf(one, "%3s %15s %15s %15s", node, spec, act, phase) != 4)
            fail_msg("the test's own report: %s", one);
        struct scene_node *to = &s->cluster.nodes[node[0] - '1'];
        put(to->order, s, spec);
        put(to->act_token, s, act);
        snprintf(to->order_component, sizeof to->order_component, "etcd");
        snprintf(to->act_component, sizeof to->act_component, "etcd");
        to->act.phase = phase_of(phase);
        to->act.finished_ms = s->cluster.now_ms;
    }
}

static void apply_status(struct setting *s, const char *status, int64_t since_ms)
{
    char node[4], token[16], revoked[16] = "";
    if (!status)
        return;
    sscanf(status, "%3s %15s %15s", node, token, revoked);
    s->status.restarting_node = cr_asprintf("node-%s", node);
    s->status.restarting_component = cr_strdup("etcd");
    s->status.restarting_token = cr_strdup(cr_streq(token, TOKEN) ? s->token : token);
    s->status.restarting_since_ms = s->cluster.now_ms - since_ms;
    s->status.restarting_revoked = *revoked;
}

static void apply_words(struct setting *s, const char *words)
{
    if (cr_starts_with(words, "silent:"))
        s->cluster.nodes[words[7] - '1'].seen_ms -= CR_NODE_STALE_MS;
    else if (cr_streq(words, "suspend"))
        s->policy.suspend = true;
    else if (cr_streq(words, "settled"))
        scene_edits(&s->cluster, "2 file etcd-ca e e");
    else if (cr_streq(words, "trap"))
        scene_edits(&s->cluster, "* file signing ab ab; * file etcd-ca ef e"), s->cluster.leader[5] = '2';
    else if (*words)
        fail_msg("the test's own words: %s", words);
}

static void make(const struct setting *s, struct cr_control_plane_plan *plan)
{
    static struct scene_world w;
    static const struct scene_object roots[SCENE_OBJECTS] = {{.ns = "one", .prints = "a"}};
    scene_world_make(&s->cluster, roots, NULL, &s->policy, &s->status, NULL, &w);
    cr_control_plane_plan(&w.world, plan);
    if (plan->clear)
        plan->clear = plan->clear[5] == '2' ? "2" : "3"; /* it is the world's */
    plan->order.node = plan->has_order ? "2" : NULL;
    scene_world_cleanup(&w);
}

static void begin(struct setting *s)
{
    memset(s, 0, sizeof *s);
    scene_cluster_init(&s->cluster);
    s->policy = scene_policy();
    scene_edits(&s->cluster, "2 file etcd-ca ef e; 2 kube-apiserver --etcd-cafile ef ef");
    CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
    make(s, &plan);
    memcpy(s->token, plan.order.token, sizeof s->token);
}

static bool is_true(const struct cr_control_plane_status *status, const char *type, const char *reason)
{
    for (size_t i = 0; i < CR_CONTROL_PLANE_CONDITIONS; i++)
        if (cr_streq(cr_control_plane_condition_types[i], type))
            return status->conditions[i].status && (!reason || cr_streq(status->conditions[i].reason, reason));
    return false;
}

static char *describe(const struct cr_control_plane_plan *plan)
{
    const struct cr_control_plane_status *status = &plan->status;
    cr_autofree char *act = plan->has_order ? cr_asprintf("order %s", plan->order.node)
                            : plan->clear   ? cr_asprintf("clear %s", plan->clear)
                                            : cr_strdup("");
    cr_autofree char *names = status->restarting_node ? cr_asprintf(", names %s%s", status->restarting_node + 5,
                                                                    status->restarting_revoked ? " revoked" : "")
                                                      : cr_strdup("");
    return cr_asprintf("%s%s%s%s", act, names, status->failed_token ? ", failed" : "",
                       is_true(status, "Degraded", "DeadlinePassed") ? ", overdue" : "");
}

static bool check(const struct order_case *c)
{
    static struct setting s;
    begin(&s);
    apply_status(&s, c->status, c->since_ms);
    apply_words(&s, c->words);
    apply_reports(&s, c->reports);
    CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
    make(&s, &plan);
    cr_autofree char *got = describe(&plan);
    bool good = cr_streq(got, c->plan) && (!plan.has_order || cr_streq(plan.order.token, s.token));
    if (!good)
        print_error("%s: '%s' and not '%s'; next: %s\n", c->rule, got, c->plan, cr_or_empty(plan.status.next));
    cr_control_plane_status_dispose(&s.status);
    return good;
}

static void each_rule(void **state)
{
    (void)state;
    scene_check_each(cases, check);
}

/* --- failures --- */

static void plan_on(struct setting *s, struct cr_control_plane_plan *plan)
{
    make(s, plan);
    cr_control_plane_status_dispose(&s->status);
    cr_control_plane_status_keep(&s->status, &plan->status);
}

/* What may make it another try. */
static const struct {
    const char *what;
    const char *edit;
    const char *retry;
    bool process, gone;
    bool holds;
} changes[] = {
    {.what = "nothing", .holds = true},
    {.what = "a file of another component", .edit = "2 file scheduler.conf ab a", .holds = true},
    {.what = "its files", .edit = "2 file etcd-ca eef e"},
    {.what = "its process", .process = true},
    {.what = "spec.restart.retry", .retry = "again"},
    {.what = "its node is deleted", .gone = true},
};

static void a_failed_step_holds_until_something_changes(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(changes); i++) {
        static struct setting s;
        begin(&s);
        apply_status(&s, "2 @", 5000);
        apply_reports(&s, "2 @ @ Failed");
        struct cr_control_plane_plan plan;
        plan_on(&s, &plan);
        cr_control_plane_plan_dispose(&plan);
        s.cluster.nodes[1].order[0] = '\0';
        scene_edits(&s.cluster, changes[i].edit);
        char retry[8] = "";
        snprintf(retry, sizeof retry, "%s", cr_or_empty(changes[i].retry));
        s.policy.retry = *retry ? retry : NULL;
        s.cluster.nodes[1].process[0] += changes[i].process ? 1 : 0;
        if (changes[i].gone)
            cr_strset(&s.status.failed_node, "node-9");
        plan_on(&s, &plan);
        bool held = plan.status.failed_token && !plan.has_order && is_true(&plan.status, "Degraded", "RestartFailed");
        bool freed = !plan.status.failed_token && plan.has_order;
        if (changes[i].holds ? !held : !freed)
            fail_msg("%s: %s", changes[i].what, plan.status.next);
        cr_control_plane_plan_dispose(&plan);
        cr_control_plane_status_dispose(&s.status);
    }
}

/* An agent that says Done, and next that the files are not loaded, must not be asked for ever. */
static void it_is_not_restarted_twice_for_the_same_files(void **state)
{
    (void)state;
    static struct setting s;
    begin(&s);
    apply_reports(&s, "2 - @ Done");
    s.cluster.nodes[1].process[0] += 1;
    CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
    make(&s, &plan);
    assert_false(plan.has_order);
    assert_true(is_true(&plan.status, "Blocked", NULL));
}

/* A component that is away for its restart is as it should be, and what is not known of it meanwhile blocks no other.
 */
static void what_is_being_restarted_is_neither_degraded_nor_in_the_way(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        static struct setting s;
        begin(&s);
        CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan first;
        make(&s, &first);
        cr_control_plane_status_keep(&s.status, &first.status);
        apply_reports(&s, "2 @ @ Restarting");
        s.cluster.nodes[1].running[0] = s.cluster.nodes[1].running[1] = false;
        scene_edits(&s.cluster, "2 file sa.pub xy ?; * file sa.key y x");
        s.status.restarting_since_ms -= late ? SCENE_HOUR : 0;
        CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
        make(&s, &plan);
        assert_true(is_true(&plan.status, "Rotating", "Restarting"));
        assert_int_equal(is_true(&plan.status, "Degraded", NULL), late);
        assert_int_equal(is_true(&plan.status, "Blocked", NULL), late);
        cr_control_plane_status_dispose(&s.status);
    }
}

static void the_same_is_ordered_by_the_same_token(void **state)
{
    (void)state;
    static struct setting s;
    begin(&s);
    CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan again;
    make(&s, &again);
    assert_string_equal(again.order.token, s.token);
    s.cluster.nodes[1].process[0] += 1;
    CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan another;
    make(&s, &another);
    assert_string_not_equal(another.order.token, s.token);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule),
        cmocka_unit_test(a_failed_step_holds_until_something_changes),
        cmocka_unit_test(it_is_not_restarted_twice_for_the_same_files),
        cmocka_unit_test(what_is_being_restarted_is_neither_degraded_nor_in_the_way),
        cmocka_unit_test(the_same_is_ordered_by_the_same_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
