/* What a plan reports of each PKI: which CAs all components have, which any has, which issue, which may go. */
#include "support/controlplanescene.h"

struct authority_case {
    const char *rule;
    const char *edits;
    const char *roots; /* what kube-root-ca.crt of two namespaces has, "a a"; "-": missing; "+a": terminating; "!a":
                          immutable, "!": too large to be read */
    const char *words; /* "absent:2", "silent:2", "trouble:2", "secret:a", "down:2" */
    const char *cluster, *etcd, *proxy; /* trusted/pending/known/issuing/removable, as letters; NULL: as settled */
};

#define SETTLED_CLUSTER "a//a/a/"
#define SETTLED_ETCD    "e//e/e/"
#define SETTLED_PROXY   "p//p/p/"

#define BUNDLES "* file ca ab ab; * file cm.conf ab ab; * file scheduler.conf ab ab; * file kubelet.conf ab ab; "
#define LEAVES                                                                                                         \
    "* file apiserver 2b 2b; * file kubelet-client 2b 2b; * file cm.leaf 2b 2b; * file scheduler.leaf 2b 2b; "         \
    "* file kubelet.leaf 2b 2b; * file kubelet-serving 2b 2b; "

/* clang-format off */
static const struct authority_case cases[] = {
    {.rule = "settled"},

    /* the CA in three steps */
    {"a bundle on one node is pending", "1 file ca ab ab", .cluster = "a/b/ab/a/"},
    {"in all files, and not loaded by one",
     BUNDLES "3 file kubelet.conf ab a", .cluster = "a/b/ab/a/", .roots = "ab ab"},
    {"loaded by all, but not in a namespace", BUNDLES, .roots = "ab a", .cluster = "a/b/ab/a/"},
    {"a namespace without it has none", "", .roots = "a -", .cluster = "/a//a/"},
    {"a namespace that ends does not count", "", .roots = "a +b"},
    {"one that has a CA of its own beside it trusts both, and only that is not known", "", .roots = "a az", .cluster = "a///a/"},
    {"an immutable one stays as it is, and holds nothing up", "", .roots = "a !z"},
    {"nor does one that is too large to be read", "", .roots = "a !"},
    {"a token Secret reads it, too", BUNDLES, .roots = "ab ab", .words = "secret:a", .cluster = "a/b/ab/a/"},
    {"one that has what no node has: not all is known", "", .words = "secret:b", .cluster = "/a//a/"},
    {"all have both", BUNDLES, .roots = "ab ab", .cluster = "ab//ab/a/b"},
    {"leaves of both: neither may go", BUNDLES "1 file apiserver 2b 2b", .roots = "ab ab", .cluster = "ab//ab/ab/"},
    {"all leaves and the signer are new: the old one may go",
     BUNDLES LEAVES "* file signing b b", .roots = "ab ab", .words = "restarted", .cluster = "ab//ab/b/a"},
    {"but the signer: it may not", BUNDLES LEAVES, .roots = "ab ab", .words = "restarted", .cluster = "ab//ab/ab/"},
    {"but one process that still has the old leaf: it may not",
     BUNDLES LEAVES "2 file scheduler.leaf 2b 1a; * file signing b b", .roots = "ab ab", .words = "restarted", .cluster = "ab//ab/b/"},
    {"but kubelets whose pair was written since they began: it may not",
     BUNDLES LEAVES "* file signing b b", .roots = "ab ab", .cluster = "ab//ab/b/"},
    {"dropped from the first file: known has it till the last has dropped it",
     "* file ca b b; * file cm.conf b b; * file scheduler.conf b b; * file kubelet.conf ab ab", .roots = "b b", .cluster = "b/a/ab/a/"},
    {"what only a process has is nothing to rely on", "2 file kubelet.conf b a", .cluster = "/ab/ab/a/"},
    {"leaves that verify against either: one of the two may go, not both",
     BUNDLES "* file apiserver 2ab 2ab; * file kubelet-client 2ab 2ab; * file cm.leaf 2ab 2ab; * file scheduler.leaf 2ab 2ab; * file kubelet.leaf 2ab 2ab; * file kubelet-serving 2ab 2ab; * file signing b b", .roots = "ab ab", .words = "restarted", .cluster = "ab//ab/ab/a"},
    {"a kubelet that signs its own leaf needs nobody", "* file kubelet-serving 7 7"},

    /* each PKI by itself */
    {"etcd's own, and the API servers' to etcd", "* file etcd-ca ef ef", .etcd = "ef//ef/e/f"},
    {"one API server has not loaded it",
     "* file etcd-ca ef ef; 3 kube-apiserver --etcd-cafile ef e", .etcd = "e/f/ef/e/"},
    {"a client's leaf of etcd needs it",
     "* file etcd-ca ef ef; * file etcd-server 2f 2f; * file etcd-peer 2f 2f", .etcd = "ef//ef/ef/"},
    {"the front proxy's", "2 file proxy-ca pq pq", .proxy = "p/q/pq/p/"},

    /* unknown */
    {"a node without a report: nothing is known",
     "", .words = "absent:2", .cluster = "/a//a/", .etcd = "/e//e/", .proxy = "/p//p/"},
    {"a silent one", "", .words = "silent:2", .cluster = "/a//a/", .etcd = "/e//e/", .proxy = "/p//p/"},
    {"files may be missing from its list",
     "", .words = "trouble:2", .cluster = "/a//a/", .etcd = "/e//e/", .proxy = "/p//p/"},
    {"a bundle that cannot be read", "3 file proxy-ca ! p", .proxy = "/p//p/"},
    {"a process of which nothing is known", "3 kube-apiserver --etcd-cafile ef ?", .etcd = "/ef//e/"},
    {"one that does not run", "", .words = "down:2", .etcd = "e//e/e/"},
    {"a leaf that cannot be read: nothing may go", "* file etcd-ca ef ef; 1 file etcd-peer ! 1e", .etcd = "ef//ef/e/"},
};
/* clang-format on */

static void say(const struct cr_control_plane_authority *authority, char *out, size_t size)
{
    char parts[5][16];
    scene_letters(authority->trusted, parts[0], sizeof parts[0]);
    scene_letters(authority->pending, parts[1], sizeof parts[1]);
    scene_letters(authority->known, parts[2], sizeof parts[2]);
    scene_letters(authority->issuing, parts[3], sizeof parts[3]);
    scene_letters(authority->removable, parts[4], sizeof parts[4]);
    snprintf(out, size, "%s/%s/%s/%s/%s", parts[0], parts[1], parts[2], parts[3], parts[4]);
}

static void apply(struct scene_cluster *cluster, struct scene_object *secrets, const char *words)
{
    size_t n = words && strchr(words, ':') ? (size_t)(strchr(words, ':')[1] - '1') : 0;
    if (cr_starts_with(words, "absent:"))
        cluster->nodes[n].absent = true;
    else if (cr_starts_with(words, "silent:"))
        cluster->nodes[n].seen_ms -= CR_NODE_STALE_MS;
    else if (cr_starts_with(words, "trouble:"))
        cluster->nodes[n].trouble = "kube-apiserver: not all words can be told";
    else if (cr_starts_with(words, "secret:"))
        secrets[0] = (struct scene_object){.ns = "one", .name = "token", .prints = {words[7]}, .key = 'x'};
    else if (cr_starts_with(words, "down:"))
        cluster->nodes[n].running[0] = false;
    else if (cr_streq(words, "restarted"))
        for (n = 0; n < SCENE_NODES; n++)
            cluster->nodes[n].started_ms[4] = cluster->now_ms;
    else if (words)
        fail_msg("the test's own words: %s", words);
}

static void read_roots(const char *text, struct scene_object roots[SCENE_OBJECTS])
{
    char one[2][SCENE_TEXT];
    if (sscanf(text, "%11s %11s", one[0], one[1]) != 2)
        fail_msg("the test's own roots: %s", text);
    for (size_t i = 0; i < 2; i++) {
        snprintf(roots[i].ns, sizeof roots[i].ns, "ns-%zu", i);
        roots[i].terminating = one[i][0] == '+';
        roots[i].out_of_reach = one[i][0] == '!';
        snprintf(roots[i].prints, sizeof roots[i].prints, "%s",
                 one[i][0] == '-' ? "" : one[i] + (roots[i].terminating || roots[i].out_of_reach));
    }
}

static void check_one(const struct authority_case *c, const char *pki, const struct cr_control_plane_authority *is,
                      const char *want)
{
    char got[64];
    say(is, got, sizeof got);
    if (!cr_streq(got, want))
        fail_msg("%s: %s is %s and not %s", c->rule, pki, got, want);
}

static void check(const struct authority_case *c)
{
    static struct scene_cluster cluster;
    static struct scene_world w;
    struct scene_object roots[SCENE_OBJECTS] = {0};
    struct scene_object secrets[SCENE_OBJECTS] = {0};
    const struct cr_control_plane_policy policy = scene_policy();
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status status = {0};
    scene_cluster_init(&cluster);
    scene_edits(&cluster, c->edits);
    read_roots(c->roots ? c->roots : "a a", roots);
    apply(&cluster, secrets, c->words);
    scene_world_make(&cluster, roots, secrets, &policy, &status, NULL, &w);
    scene_record(&w.world, &status);
    CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
    cr_control_plane_plan(&w.world, &plan);
    check_one(c, "the cluster's", &plan.status.cluster, c->cluster ? c->cluster : SETTLED_CLUSTER);
    check_one(c, "etcd's", &plan.status.etcd, c->etcd ? c->etcd : SETTLED_ETCD);
    check_one(c, "the front proxy's", &plan.status.front_proxy, c->proxy ? c->proxy : SETTLED_PROXY);
    scene_world_cleanup(&w);
}

static void each_rule(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++)
        check(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_rule)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
