/* What follows in the API: namespaces, token Secrets and workloads, and what pods are known to have of it. */
#include "support/controlplanescene.h"

enum { WORKLOADS = 2 };

struct follow_case {
    const char *rule;
    const char *edits;
    const char *roots;   /* kube-root-ca.crt of two namespaces: "ab ab"; "!" behind it: out of reach */
    const char *secrets; /* ca.crt and key of two token Secrets: "ax ax"; key "-": none; "!" likewise */
    /* "pods" and "more", which read both: "young" (began after the change), "old", "rolling", "paused" (young, and
     * stands still in a rollout), "none" (no pods), "missing", "unread", "done" (restarted for what there is) */
    const char *pods[WORKLOADS];
    const char *words; /* "leave", "plan", "changed" (root CA and signing key are others than a minute ago), "unsigned"
                        (no controller manager has a key for tokens) */
    const char *renewed, *restarted, *counts; /* namespaces, Secrets, workloads that have converged */
};

#define BOTH_KEYS "* file sa.pub xy xy; "
#define BUNDLE    "* file ca ab ab; * file cm.conf ab ab; * file scheduler.conf ab ab; * file kubelet.conf ab ab; "

/* clang-format off */
static const struct follow_case cases[] = {
    {"settled", "", "a a", "ax ax", {"old", "old"}, "", "", "", "2 2 2"},

    /* namespaces */
    {"one that has not what --root-ca-file has", BUNDLE, "ab a", "abx abx", {"none", "none"}, "", "", "", "1 2 2"},
    {"one without it", "", "a -", "ax ax", {"none", "none"}, "", "", "", "1 2 2"},
    {"an immutable one: told, and not waited for", BUNDLE, "ab a!", "abx abx", {"none", "none"}, "", "", "", "1 2 2"},
    {"one that is too large to be read: likewise", BUNDLE, "ab !", "abx abx", {"none", "none"}, "", "", "", "1 2 2"},
    {"nobody knows what they should have", "3 file ca ab ab", "a a", "ax ax", {"none", "none"}, "", "", "", "0 0 2"},

    /* token Secrets */
    {"of another key: made anew",
     BOTH_KEYS "* file sa.key y y", "a a", "ax ay", {"none", "none"}, "", "s-0/token", "", "2 1 2"},
    {"they are left", BOTH_KEYS "* file sa.key y y", "a a", "ax ay", {"none", "none"}, "leave", "", "", "2 2 2"},
    {"mode: Plan", BOTH_KEYS "* file sa.key y y", "a a", "ax ay", {"none", "none"}, "plan", "", "", "2 1 2"},
    {"not before all sign with it",
     BOTH_KEYS "1 kube-apiserver --service-account-signing-key-file y y", "a a", "ax ay", {"none", "none"}, "", "", "", "2 2 2"},
    {"not before every API server verifies by it",
     "1 file sa.pub xy xy; 2 file sa.pub xy xy; * file sa.key y y", "a a", "ax ay", {"none", "none"}, "", "", "", "2 2 2"},
    {"nobody is seen who would make a new one: told, and not written",
     BOTH_KEYS "* file sa.key y y", "a a", "ax ay", {"none", "none"}, "unsigned", "", "", "2 1 2"},
    {"one that waits for its token has not got it",
     BOTH_KEYS "* file sa.key y y", "a a", "a- ay", {"none", "none"}, "", "", "", "2 1 2"},
    {"an immutable one of another key: told, and not written",
     BOTH_KEYS "* file sa.key y y", "a a", "ax! ay", {"none", "none"}, "", "", "", "2 1 2"},
    {"one that is too large to be read: told, and not written",
     BOTH_KEYS "* file sa.key y y", "a a", "-! ay", {"none", "none"}, "", "", "", "2 1 2"},
    {"of a key that no API server verifies by: made anew as well",
     BOTH_KEYS "* file sa.key y y", "a a", "aq ay", {"none", "none"}, "", "s-0/token", "", "2 1 2"},
    {"its ca.crt is another", BUNDLE, "ab ab", "ax abx", {"none", "none"}, "", "", "", "2 1 2"},

    /* workloads */
    {"they began before: one at a time", "", "a a", "ax ax", {"old", "old"}, "changed", "", "pods", "2 2 0"},
    {"the next one", "", "a a", "ax ax", {"done", "old"}, "changed", "", "more", "2 2 1"},
    {"not while one rolls", "", "a a", "ax ax", {"rolling", "old"}, "changed", "", "", "2 2 0"},
    {"at first sight of two CAs they may have begun before", BUNDLE, "ab ab", "abx abx", {"old", "old"}, "", "", "pods", "2 2 0"},
    {"of two keys, likewise", BOTH_KEYS, "a a", "ax ax", {"old", "old"}, "", "", "pods", "2 2 0"},
    {"they began after it", "", "a a", "ax ax", {"young", "young"}, "changed", "", "", "2 2 2"},
    {"not before its namespaces have it", "", "a -", "ax ax", {"old", "old"}, "changed", "", "", "1 2 0"},
    {"but those that are immutable", "", "a z!", "ax ax", {"old", "old"}, "changed", "", "pods", "1 2 0"},
    {"not before its token Secrets are new",
     BOTH_KEYS "* file sa.key y y", "a a", "ax ay", {"old", "old"}, "changed", "s-0/token", "", "2 1 0"},
    {"an immutable one is not waited for",
     BOTH_KEYS "* file sa.key y y", "a a", "ax! ay", {"old", "old"}, "changed", "", "pods", "2 1 0"},
    {"nor one that is too large to be read",
     BOTH_KEYS "* file sa.key y y", "a a", "-! ay", {"old", "old"}, "changed", "", "pods", "2 1 0"},
    {"nor one that gets a foreign token again and again",
     BOTH_KEYS "* file sa.key y y", "a a", "aq ay", {"old", "old"}, "changed", "s-0/token", "pods", "2 1 0"},
    {"an immutable one with another CA", "", "a a", "bx! ax", {"old", "old"}, "changed", "", "pods", "2 1 0"},
    {"one that is not there", "", "a a", "ax ax", {"missing", "none"}, "changed", "", "", "2 2 2"},
    {"one that cannot be read: told, and the others are restarted",
     "", "a a", "ax ax", {"unread", "old"}, "changed", "", "more", "2 2 0"},
    {"mode: Plan", "", "a a", "ax ax", {"old", "old"}, "changed plan", "", "", "2 2 0"},
};
/* clang-format on */

struct setting {
    struct scene_cluster cluster;
    struct cr_control_plane_policy policy;
    struct cr_control_plane_status status;
    struct scene_object roots[SCENE_OBJECTS], secrets[SCENE_OBJECTS];
    struct cr_control_plane_workload workloads[WORKLOADS];
    struct cr_control_plane_workload_view views[WORKLOADS];
    struct cr_control_plane_plan settled; /* what it is now, as at first sight */
    bool is_unsigned;
};

static char pods_name[] = "pods", more_name[] = "more", deployment[] = "Deployment", ns[] = "ns-0";

static void take_signers_away(struct scene_world *w)
{
    for (size_t n = 0; n < SCENE_NODES; n++)
        for (size_t i = 0; i < w->reports[n].files_len; i++)
            if (cr_streq(w->reports[n].files[i].parameter, "--service-account-private-key-file"))
                cr_strset(&w->reports[n].files[i].parameter, "--something");
}

static void make(struct setting *s, struct cr_control_plane_plan *plan)
{
    static struct scene_world w;
    scene_world_make(&s->cluster, s->roots, s->secrets, &s->policy, &s->status, s->views, &w);
    if (s->is_unsigned)
        take_signers_away(&w);
    cr_control_plane_plan(&w.world, plan);
    plan->clear = NULL; /* the world's */
    scene_world_cleanup(&w);
}

static void read_objects(const char *text, bool keys, struct scene_object objects[SCENE_OBJECTS])
{
    char one[2][SCENE_TEXT];
    if (sscanf(text, "%11s %11s", one[0], one[1]) != 2)
        fail_msg("the test's own objects: %s", text);
    for (size_t i = 0; i < 2; i++) {
        size_t len = strlen(one[i]);
        objects[i].out_of_reach = one[i][len - 1] == '!';
        len -= objects[i].out_of_reach;
        snprintf(objects[i].ns, sizeof objects[i].ns, "%s-%zu", keys ? "s" : "ns", i);
        snprintf(objects[i].name, sizeof objects[i].name, "token");
        objects[i].key = keys && one[i][len - 1] != '-' ? one[i][len - 1] : '\0';
        one[i][keys || one[i][0] == '-' ? len - 1 : len] = '\0';
        snprintf(objects[i].prints, sizeof objects[i].prints, "%s", one[i]);
    }
}

static void apply_pods(struct setting *s, size_t i, const char *word)
{
    struct cr_control_plane_workload_view *view = &s->views[i];
    view->found = !cr_streq(word, "missing") && !cr_streq(word, "unread");
    view->problem = cr_streq(word, "unread") ? "too much" : NULL;
    bool paused = cr_streq(word, "paused");
    view->rolling = paused || cr_streq(word, "rolling");
    view->pods_started_ms = cr_streq(word, "none")              ? 0
                            : paused || cr_streq(word, "young") ? s->cluster.now_ms - SCENE_SECOND
                                                                : s->cluster.now_ms - SCENE_HOUR;
    if (!cr_streq(word, "done"))
        return;
    view->root_ca = s->settled.status.root_ca;
    view->token_key = s->settled.signing_key;
}

/* What there is now came a minute ago. */
static void change(struct setting *s)
{
    s->status.root_ca = cr_strdup(cr_or_empty(s->settled.status.root_ca));
    s->status.signing_key = cr_strdup(cr_or_empty(s->settled.status.signing_key));
    s->status.root_ca_since_ms = s->status.signing_key_since_ms = s->cluster.now_ms - SCENE_MINUTE;
}

static void begin(struct setting *s, const struct follow_case *c)
{
    memset(s, 0, sizeof *s);
    scene_cluster_init(&s->cluster);
    s->policy = scene_policy();
    s->policy.tokens = CR_CONTROL_PLANE_TOKENS_WAIT;
    char *names[] = {pods_name, more_name};
    for (size_t i = 0; i < WORKLOADS; i++)
        s->workloads[i] = (struct cr_control_plane_workload){names[i], deployment, ns, names[i], true, true};
    s->policy.workloads = s->workloads;
    s->policy.workloads_len = WORKLOADS;
    scene_edits(&s->cluster, c->edits);
    s->policy.renew_token_secrets = !strstr(c->words, "leave");
    read_objects("a a", false, s->roots);
    read_objects(c->secrets, true, s->secrets);
    make(s, &s->settled);
    read_objects(c->roots, false, s->roots);
    s->policy.enforce = !strstr(c->words, "plan");
    s->is_unsigned = strstr(c->words, "unsigned");
    if (strstr(c->words, "changed"))
        change(s);
    for (size_t i = 0; i < WORKLOADS; i++)
        apply_pods(s, i, c->pods[i]);
}

static const struct cr_condition *condition(const struct cr_control_plane_status *status, const char *type)
{
    for (size_t i = 0; i < CR_CONTROL_PLANE_CONDITIONS; i++)
        if (cr_streq(cr_control_plane_condition_types[i], type))
            return &status->conditions[i];
    return NULL;
}

static bool check(const struct follow_case *c)
{
    static struct setting s;
    begin(&s, c);
    CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
    make(&s, &plan);
    const struct cr_control_plane_status *status = &plan.status;
    cr_autofree char *renewed = cr_strvec_join(&plan.renew_tokens, " ");
    cr_autofree char *restarted = cr_strvec_join(&plan.restart_workloads, " ");
    cr_autofree char *counts =
        cr_asprintf("%lld %lld %lld", (long long)status->namespaces.converged,
                    (long long)status->token_secrets.converged, (long long)status->workloads.converged);
    bool good = cr_streq(renewed, c->renewed) && cr_streq(restarted, c->restarted) && cr_streq(counts, c->counts);
    bool wrong = s.is_unsigned || !s.views[0].found;
    good = good && (!wrong || condition(status, "Degraded")->status);
    if (!good)
        print_error("%s: renewed '%s', restarted '%s', converged %s; next: %s\n", c->rule, renewed, restarted, counts,
                    status->next);
    cr_control_plane_status_dispose(&s.status);
    cr_control_plane_plan_dispose(&s.settled);
    return good;
}

static void each_rule(void **state)
{
    (void)state;
    scene_check_each(cases, check);
}

/* --- what pods are known to have --- */

static void trusted_now(struct setting *s, char *out, size_t size)
{
    CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
    make(s, &plan);
    scene_letters(plan.status.cluster.trusted, out, size);
    cr_strset(&s->status.cluster.trusted, plan.status.cluster.trusted);
    cr_strset(&s->status.root_ca, plan.status.root_ca);
    s->status.root_ca_since_ms = plan.status.root_ca_since_ms;
}

static const struct follow_case bundled = {"", "", "a a", "ax ax", {"none", "none"}, "", "", "", ""};

static void expect_trusted(struct setting *s, const char *want, const char *when)
{
    char is[16];
    trusted_now(s, is, sizeof is);
    if (!cr_streq(is, want))
        fail_msg("%s: '%s' is trusted and not '%s'", when, is, want);
}

/* A volume is refreshed by its pod's next sync. */
static void pods_have_a_new_root_ca_when_their_volumes_were_refreshed(void **state)
{
    (void)state;
    static struct setting s;
    begin(&s, &bundled);
    expect_trusted(&s, "a", "settled");
    scene_edits(&s.cluster, BUNDLE);
    expect_trusted(&s, "a", "kube-root-ca.crt has the old one");
    read_objects("ab ab", false, s.roots);
    read_objects("abx abx", true, s.secrets);
    expect_trusted(&s, "a", "kube-root-ca.crt has both");
    s.cluster.now_ms += SCENE_MINUTE;
    expect_trusted(&s, "a", "a minute later");
    int64_t since_ms = s.status.root_ca_since_ms;
    for (size_t n = 0; n < SCENE_NODES; n++)
        s.cluster.nodes[n].started_ms[4] = since_ms + SCENE_SECOND;
    expect_trusted(&s, "ab", "all kubelets have begun anew");
    s.cluster.nodes[1].started_ms[4] = since_ms - SCENE_SECOND;
    cr_strset(&s.status.cluster.trusted, NULL);
    expect_trusted(&s, "", "but one, and what was trusted is not known");
    s.cluster.now_ms += SCENE_MINUTE;
    for (size_t n = 0; n < SCENE_NODES; n++)
        s.cluster.nodes[n].seen_ms = s.cluster.now_ms;
    expect_trusted(&s, "ab", "two minutes later");
    cr_control_plane_status_dispose(&s.status);
    expect_trusted(&s, "", "the policy is made anew");
    s.cluster.now_ms += 2 * SCENE_MINUTE;
    for (size_t n = 0; n < SCENE_NODES; n++)
        s.cluster.nodes[n].seen_ms = s.cluster.now_ms;
    expect_trusted(&s, "ab", "two minutes after that");
    cr_control_plane_status_dispose(&s.status);
    cr_control_plane_plan_dispose(&s.settled);
}

/* Nothing is known of pods that read it once until they were restarted. */
static void a_workload_that_has_not_restarted_trusts_nothing_for_sure(void **state)
{
    (void)state;
    static struct setting s;
    begin(&s, &bundled);
    expect_trusted(&s, "a", "settled");
    scene_edits(&s.cluster, BUNDLE);
    read_objects("ab ab", false, s.roots);
    read_objects("abx abx", true, s.secrets);
    apply_pods(&s, 0, "old");
    expect_trusted(&s, "", "it began before");
    s.cluster.now_ms += 3 * SCENE_MINUTE;
    for (size_t n = 0; n < SCENE_NODES; n++)
        s.cluster.nodes[n].seen_ms = s.cluster.now_ms;
    expect_trusted(&s, "", "three minutes later");
    apply_pods(&s, 0, "young");
    expect_trusted(&s, "ab", "it was restarted");
    cr_control_plane_status_dispose(&s.status);
    cr_control_plane_plan_dispose(&s.settled);
}

/* What they read is in their memory alone, while each volume has a new token. */
static void a_workload_that_reads_its_token_keeps_its_key_till_it_has_restarted(void **state)
{
    (void)state;
    static struct setting s;
    static const struct {
        const char *pods, *edits, *removable;
        bool blocked;
    } steps[] = {{"old", "", "", false},
                 {"rolling", "", "", false},
                 {"old", "1 file sa.pub y xy", "", true},
                 {"young", "* file sa.pub xy xy", "x", false},
                 {"paused", "", "x", false},
                 {"young", "1 file sa.pub y xy", "", false}};
    begin(&s, &(struct follow_case){
                  "", BOTH_KEYS "* file sa.key y y", "a a", "ay ay", {"none", "none"}, "changed", "", "", ""});
    for (size_t n = 0; n < SCENE_NODES; n++)
        snprintf(s.cluster.nodes[n].tokens, SCENE_TEXT, "y");
    for (size_t i = 0; i < cr_array_len(steps); i++) {
        char removable[16];
        apply_pods(&s, 0, steps[i].pods);
        scene_edits(&s.cluster, steps[i].edits);
        CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
        make(&s, &plan);
        scene_letters(plan.status.service_accounts.removable, removable, sizeof removable);
        if (!cr_streq(removable, steps[i].removable) || condition(&plan.status, "Blocked")->status != steps[i].blocked)
            fail_msg("step %zu: '%s' may go; %s", i, removable, plan.status.next);
    }
    cr_control_plane_status_dispose(&s.status);
    cr_control_plane_plan_dispose(&s.settled);
}

/* --- many token Secrets --- */

struct batch_case {
    const char *rule;
    const char *secrets; /* of each namespace: "o" of another key, "e" awaits its token, "i" is immutable and empty */
    const char *renewed; /* of each namespace */
};

static const struct batch_case batches[] = {
    {"five of a namespace, twenty in all", "oooooo oooooo oooooo oooooo oooooo", "5 5 5 5 0"},
    {"those before them have no token yet", "eeeeeo eeeeeo eeeeeo eeeeeo oooooo", "0 0 0 0 0"},
    {"some have one", "eeoooo oooooo eooooo", "3 5 4"},
    {"wherever they are in it", "ooooee", "3"},
    {"of one namespace no more than five count", "eeeeeeeeeeeeeeeeeeeeo oooooo oooooo oooooo oooooo", "0 5 5 5 0"},
    {"an immutable one never gets one", "iiiiio", "1"},
};

enum { MANY = 64 };

struct batch {
    struct cr_control_plane_object secrets[MANY];
    char names[MANY][8], namespaces[MANY][8];
    char old[CR_SHA256_HEX];
};

static void make_batch(const char *text, struct batch *batch, struct cr_control_plane_world *world)
{
    int number = 0;
    size_t len = 0;
    scene_print('x', batch->old);
    for (const char *p = text; *p; p++) {
        number += *p == ' ';
        if (*p == ' ')
            continue;
        snprintf(batch->namespaces[len], sizeof batch->namespaces[len], "s-%d", number);
        snprintf(batch->names[len], sizeof batch->names[len], "t-%02zu", len);
        batch->secrets[len] = (struct cr_control_plane_object){.ns = batch->namespaces[len],
                                                               .name = batch->names[len],
                                                               .key = *p == 'o' ? batch->old : NULL,
                                                               .has_token = *p == 'o',
                                                               .out_of_reach = *p == 'i'};
        len++;
    }
    world->token_secrets = batch->secrets;
    world->token_secrets_len = len;
}

static void count_batch(const struct cr_strvec *renewed, const char *text, char *out, size_t size)
{
    size_t len = 0;
    for (char number = '0'; text; number++, text = strchr(text, ' '), text += text != NULL) {
        size_t count = 0;
        for (size_t i = 0; i < renewed->len; i++)
            count += renewed->items[i][2] == number;
        len += (size_t)snprintf(out + len, size - len, "%s%zu", len ? " " : "", count);
    }
}

static void few_tokens_are_made_anew_at_a_time(void **state)
{
    (void)state;
    static struct setting s;
    static struct scene_world w;
    begin(&s,
          &(struct follow_case){"", BOTH_KEYS "* file sa.key y y", "a a", "ay ay", {"none", "none"}, "", "", "", ""});
    scene_world_make(&s.cluster, s.roots, NULL, &s.policy, &s.status, s.views, &w);
    for (size_t i = 0; i < cr_array_len(batches); i++) {
        static struct batch batch;
        char renewed[32];
        make_batch(batches[i].secrets, &batch, &w.world);
        CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
        cr_control_plane_plan(&w.world, &plan);
        count_batch(&plan.renew_tokens, batches[i].secrets, renewed, sizeof renewed);
        if (!cr_streq(renewed, batches[i].renewed))
            fail_msg("%s: %s and not %s", batches[i].rule, renewed, batches[i].renewed);
    }
    scene_world_cleanup(&w);
    cr_control_plane_plan_dispose(&s.settled);
}

/* --- what users write --- */

static void fill(struct cr_strvec *prints)
{
    for (size_t i = 0; i <= 64; i++) {
        cr_autofree char *print = cr_asprintf("%064zx", i);
        cr_strvec_add(prints, print);
    }
}

static void what_a_user_puts_into_his_bundle_holds_his_namespace_alone(void **state)
{
    (void)state;
    static const struct {
        const char *roots, *trusted;
        bool converged;
    } hostile[] = {{"a z", "", false}, {"a z!", "a", true}, {"a !", "a", true}};
    for (size_t i = 0; i < cr_array_len(hostile); i++) {
        static struct setting s;
        static struct scene_world w;
        char letters[16];
        begin(&s, &bundled);
        read_objects(hostile[i].roots, false, s.roots);
        scene_world_make(&s.cluster, s.roots, s.secrets, &s.policy, &s.status, s.views, &w);
        fill(&w.prints[1]);
        CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
        cr_control_plane_plan(&w.world, &plan);
        scene_letters(plan.status.service_accounts.verifying, letters, sizeof letters);
        assert_string_equal(letters, "x");
        scene_letters(plan.status.cluster.trusted, letters, sizeof letters);
        assert_string_equal(letters, hostile[i].trusted);
        assert_int_equal(condition(&plan.status, "Converged")->status, hostile[i].converged);
        assert_non_null(strstr(condition(&plan.status, "Converged")->message, "ns-1"));
        scene_world_cleanup(&w);
        cr_control_plane_plan_dispose(&s.settled);
    }
}

static void too_many_cas_of_nodes_are_told(void **state)
{
    (void)state;
    static struct setting s;
    static struct scene_world w;
    begin(&s, &bundled);
    scene_world_make(&s.cluster, s.roots, s.secrets, &s.policy, &s.status, s.views, &w);
    fill(&w.reports[0].files[0].prints);
    CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
    cr_control_plane_plan(&w.world, &plan);
    assert_true(condition(&plan.status, "Degraded")->status);
    assert_non_null(strstr(condition(&plan.status, "Degraded")->message, "more than 64 CAs of etcd"));
    scene_world_cleanup(&w);
    cr_control_plane_plan_dispose(&s.settled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule),
        cmocka_unit_test(pods_have_a_new_root_ca_when_their_volumes_were_refreshed),
        cmocka_unit_test(a_workload_that_has_not_restarted_trusts_nothing_for_sure),
        cmocka_unit_test(a_workload_that_reads_its_token_keeps_its_key_till_it_has_restarted),
        cmocka_unit_test(few_tokens_are_made_anew_at_a_time),
        cmocka_unit_test(what_a_user_puts_into_his_bundle_holds_his_namespace_alone),
        cmocka_unit_test(too_many_cas_of_nodes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
