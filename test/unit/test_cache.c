#include "cluster/cache.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "kube/object.h"
#include "support/fakeapi.h"
#include "support/testserver.h"

/* --- what the API server has --- */

#define FRAME(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define ADDED(object)       FRAME("ADDED", object)
#define MARK                                                                                                           \
    FRAME("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"500\","                                                    \
                      "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}")
#define META(ns, name, version, more)                                                                                  \
    "\"metadata\":{\"namespace\":\"" ns "\",\"name\":\"" name "\",\"uid\":\"u-" name                                   \
    "\",\"resourceVersion\":\"" version "\"" more "}"
#define OBJECT(ns, name, version) "{" META(ns, name, version, "") "}"

#define SECRETS(list) "\"secrets\":[" list "]"
#define NAMED(name)   "{\"name\":\"" name "\"}"
#define CONSUMER(kind, to)                                                                                             \
    "{\"name\":\"" kind to "\",\"targetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"" kind "\",\"name\":\"" to "\"}}"
#define POLICY(ns, name, version, secrets, consumers)                                                                  \
    "{" META(ns, name, version, "") ",\"spec\":{" SECRETS(secrets) ",\"consumers\":[" consumers "]}}"

#define POLICY_A ADDED(POLICY("ns", "a", "1", NAMED("s1"), CONSUMER("Deployment", "web")))
#define POLICY_B                                                                                                       \
    ADDED(POLICY("ns", "b", "2", NAMED("s1") "," NAMED("s2"),                                                          \
                 CONSUMER("StatefulSet", "web") "," CONSUMER("DaemonSet", "agent")))
/* Names all that is called "sentinel": each scene ends with such an object. It names so much that does not exist that
 * all Secrets come by one watch, in order. */
#define TEN_NAMED(n)                                                                                                   \
    NAMED(n "0")                                                                                                       \
    "," NAMED(n "1") "," NAMED(n "2") "," NAMED(n "3") "," NAMED(n "4") "," NAMED(n "5") "," NAMED(n "6") "," NAMED(   \
        n "7") "," NAMED(n "8") "," NAMED(n "9")
#define MANY                                                                                                           \
    TEN_NAMED("absent-0")                                                                                              \
    "," TEN_NAMED("absent-1") "," TEN_NAMED("absent-2") "," TEN_NAMED("absent-3") "," TEN_NAMED("absent-4")
#define POLICY_Z                                                                                                       \
    ADDED("{" META("ns", "z", "3", "") ",\"spec\":{" SECRETS(NAMED("sentinel") "," MANY) ",\"consumers\":[" CONSUMER(  \
        "Deployment",                                                                                                  \
        "sentinel") "," CONSUMER("StatefulSet",                                                                        \
                                 "sentinel") "," CONSUMER("DaemonSet",                                                 \
                                                          "sentinel") ","                                              \
                                                                      "{\"name\":\"i\",\"targetRef\":{\"kind\":"       \
                                                                      "\"Ingress\",\"name\":\"sentinel\"}}]}"          \
                                                                      "," WAITS_FOR_BUDGET "}")
/* It ends scenes of budgets. */
#define WAITS_FOR_BUDGET "\"status\":{\"consumers\":[{\"name\":\"w\",\"blockedReason\":\"BudgetWait\"}]}"
#define POLICY_E         ADDED("{" META("ns", "e", "10", "") ",\"spec\":{" SECRETS(NAMED("s8")) "}," WAITS_FOR_BUDGET "}")
#define POLICY_BAD       ADDED("{" META("ns", "bad", "4", "") ",\"spec\":{\"secrets\":\"s1\"}}")
/* Names nothing: takes Secrets by a label, and the workloads that use one of them. It remembers "gone". */
#define POLICY_D                                                                                                       \
    ADDED("{" META("ns", "d", "9", "") ",\"spec\":{\"secretSelector\":{\"matchLabels\":{\"app\":\"shop\"}},"           \
                                       "\"discover\":{\"enabled\":true}},\"status\":{\"secrets\":[{\"name\":\"gone\"," \
                                       "\"selected\":true}]}}")
#define POLICY_OTHER ADDED(POLICY("other", "c", "5", NAMED("s1"), CONSUMER("Deployment", "web")))

#define OWNED(ns, name, version, labels, owner_kind, owner, phase)                                                     \
    "{" META(ns, name, version,                                                                                        \
             ",\"labels\":{" labels "},\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"" owner_kind        \
             "\",\"name\":\"" owner                                                                                    \
             "\",\"controller\":true}]") ",\"spec\":{\"nodeName\":\"n\"},\"status\":{\"phase\":\"" phase "\"}}"
#define WEB_POD(name, version, phase)                                                                                  \
    OWNED("ns", name, version, "\"pod-template-hash\":\"5d8f\"", "ReplicaSet", "web-5d8f", phase)
#define BARE_POD(name, version, secret, phase)                                                                         \
    "{" META("ns", name, version, "") ",\"spec\":{\"containers\":[{\"name\":\"c\",\"envFrom\":[{\"secretRef\":{"       \
                                      "\"name\":\"" secret "\"}}]}]},\"status\":{\"phase\":\"" phase "\"}}"
#define SENTINEL_POD ADDED(OWNED("ns", "sentinel-x", "99", "", "DaemonSet", "sentinel", "Running"))
#define SENTINEL     ADDED(OBJECT("ns", "sentinel", "99"))

#define SHOP_SECRET(name, version) "{" META("ns", name, version, ",\"labels\":{\"app\":\"shop\"}") "}"
#define USER(name, version, secret)                                                                                    \
    "{" META("ns", name, version, "") ",\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\","            \
                                      "\"envFrom\":[{\"secretRef\":{\"name\":\"" secret "\"}}]}]}}}}"
#define ROLLOUT(name, version, observed)                                                                               \
    "{" META("ns", name, version, ",\"generation\":2") ",\"status\":{\"observedGeneration\":" observed                 \
                                                       ",\"replicas\":1,"                                              \
                                                       "\"updatedReplicas\":1,\"availableReplicas\":1}}"
/* Ends the scene in another way: a policy that asks for Ingresses. */
#define SENTINEL_INGRESS ADDED("{" META("ns", "sentinel", "99", "") "}")

/* --- a scene: the policies are there, then one resource changes --- */

enum { POLL_MS = 5 };

struct scene {
    const char *rule;
    const char *plural;
    const char *frames;   /* the last one is the sentinel's */
    const char *notified; /* sorted; "-uid" for a pod that is gone, "~key" for a Secret that no policy wants */
    bool hosts_in_use;
};

struct play {
    const struct scene *scene;
    struct cr_manager *manager;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct cr_cache *cache;
    struct cr_timer *poll;
    bool begun; /* all that the policies want is known, so what is notified from now on is of the scene */
    bool go;    /* the policies are in */
    struct cr_strvec notified; /* loop thread */
};

static void let_go(struct play *play)
{
    pthread_mutex_lock(&play->lock);
    play->go = true;
    pthread_cond_broadcast(&play->changed);
    pthread_mutex_unlock(&play->lock);
}

static void on_policy(void *arg, const char *key)
{
    struct play *play = arg;
    if (!play->begun)
        return;
    if (strcmp(key, "ns/z") == 0)
        cr_manager_stop(play->manager);
    else
        cr_strvec_add(&play->notified, key);
}

static bool waits(struct cr_cache *cache, const char *ns, const char *name)
{
    const char *problem = NULL;
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_cache_get(cache, CR_CACHED_POLICIES, ns, name);
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    const struct cr_policy *policy = snapshot ? cr_cached_policy(snapshot, &problem) : NULL;
    if (!policy)
        return !problem;
    cr_policy_status_decode(cr_json_get(snapshot->json, "status"), &status);
    return cr_cache_waits(cache, policy, &status);
}

static void begin_when_all_is_known(void *arg)
{
    struct play *play = arg;
    bool was_ready = play->begun;
    play->begun = !waits(play->cache, "ns", "a") && !waits(play->cache, "ns", "b") && !waits(play->cache, "ns", "d") &&
                  !waits(play->cache, "ns", "e") && !waits(play->cache, "ns", "z") &&
                  !waits(play->cache, "ns", "bad") && !waits(play->cache, "other", "c");
    /* A moment later the watches that others have replaced have ended. */
    if (was_ready)
        let_go(play);
    else
        cr_timer_arm(play->poll, POLL_MS);
}

static void on_pod_gone(void *arg, const char *uid)
{
    struct play *play = arg;
    cr_autofree char *word = cr_asprintf("-%s", uid);
    cr_strvec_add(&play->notified, word);
}

/* It is found a moment after its policy has gone, and ends the scene. */
static void on_secret_unwanted(void *arg, const char *key)
{
    struct play *play = arg;
    if (strcmp(key, "ns/s2") != 0)
        return;
    cr_autofree char *word = cr_asprintf("~%s", key);
    cr_strvec_add(&play->notified, word);
    cr_manager_stop(play->manager);
}

/* A watch of one namespace has what is there. */
static void send_policies(struct test_conn *conn)
{
    if (!strstr(conn->head, "/namespaces/other/"))
        test_conn_puts(conn, POLICY_A POLICY_B POLICY_D POLICY_E POLICY_Z POLICY_BAD);
    if (!strstr(conn->head, "/namespaces/ns/"))
        test_conn_puts(conn, POLICY_OTHER);
}

static void serve(struct test_conn *conn, void *arg)
{
    struct play *play = arg;
    if (!test_conn_request(conn))
        return;
    if (strstr(conn->head, "/gateways?")) { /* as where the CRD is not installed */
        test_conn_puts(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    test_conn_puts(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
    if (strstr(conn->head, "/certrotationpolicies?"))
        send_policies(conn);
    test_conn_puts(conn, MARK);
    pthread_mutex_lock(&play->lock);
    while (!play->go)
        pthread_cond_wait(&play->changed, &play->lock);
    pthread_mutex_unlock(&play->lock);
    cr_autofree char *path = cr_asprintf("/%s?", play->scene->plural);
    if (strstr(conn->head, path) && !strstr(conn->head, "/namespaces/other/"))
        test_conn_puts(conn, play->scene->frames);
    test_conn_wait_closed(conn);
}

static void give_up(void *manager)
{
    cr_manager_stop(manager);
}

/* Plays the scene and checks what was notified; look, when given, may then read the cache. */
static void play(const struct scene *scene, const struct cr_strvec *namespaces, void (*look)(struct cr_cache *cache))
{
    struct play p = {.scene = scene};
    pthread_mutex_init(&p.lock, NULL);
    pthread_cond_init(&p.changed, NULL);
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = serve, .arg = &p});
    struct cr_loop *loop = cr_loop_new();
    struct cr_client *client = fake_client(loop, test_server_port(server));
    p.manager = cr_manager_new(loop, client, NULL, &(struct cr_manager_options){.workers = 1});
    const struct cr_cache_options options = {.namespaces = namespaces,
                                             .hosts_in_use = scene->hosts_in_use,
                                             .on_policy = on_policy,
                                             .on_pod_gone = on_pod_gone,
                                             .on_secret_unwanted = on_secret_unwanted,
                                             .arg = &p};
    struct cr_cache *cache = cr_cache_new(p.manager, client, loop, &options);
    p.cache = cache;
    p.poll = cr_timer_new(loop, begin_when_all_is_known, &p);
    cr_timer_arm(p.poll, POLL_MS);
    struct cr_timer *deadline = cr_timer_new(loop, give_up, p.manager);
    cr_timer_arm(deadline, 20 * 1000);

    struct cr_error err = {0};
    if (!cr_manager_run(p.manager, &err))
        fail_msg("%s", err.text);
    cr_timer_free(deadline);
    cr_timer_free(p.poll);
    cr_strvec_sort(&p.notified);
    cr_autofree char *notified = cr_strvec_join(&p.notified, " ");
    if (!cr_streq(notified, scene->notified))
        fail_msg("%s: notified '%s'", scene->rule, notified);
    if (look)
        look(cache);

    let_go(&p);
    cr_manager_free(p.manager);
    cr_cache_free(cache);
    cr_client_free(client);
    cr_loop_free(loop);
    test_server_free(server);
    cr_strvec_dispose(&p.notified);
    pthread_cond_destroy(&p.changed);
    pthread_mutex_destroy(&p.lock);
}

static const struct cr_strvec everywhere = {0};

static void what_happens_concerns_just_the_policies_that_name_it(void **state)
{
    (void)state;
    static const struct scene scenes[] = {
        {"a Secret of two policies", "secrets", ADDED(OBJECT("ns", "s1", "6")) SENTINEL, "ns/a ns/b"},
        {"a Secret of one", "secrets", ADDED(OBJECT("ns", "s2", "6")) SENTINEL, "ns/b"},
        {"of the same name in another namespace", "secrets", ADDED(OBJECT("other", "s1", "6")) SENTINEL, "other/c"},
        {"a Secret that nobody names", "secrets",
         ADDED(OBJECT("ns", "s3", "6")) ADDED(OBJECT("ns", "web", "7")) SENTINEL, ""},
        {"a Secret that changes and goes", "secrets",
         ADDED(OBJECT("ns", "s2", "6")) FRAME("MODIFIED", OBJECT("ns", "s2", "7"))
             FRAME("DELETED", OBJECT("ns", "s2", "8")) SENTINEL,
         "ns/b ns/b ns/b"},
        {"a Deployment", "deployments", ADDED(OBJECT("ns", "web", "6")) SENTINEL, "ns/a"},
        {"a StatefulSet of that name is another workload", "statefulsets", ADDED(OBJECT("ns", "web", "6")) SENTINEL,
         "ns/b"},
        {"a DaemonSet of that name is nobody's", "daemonsets",
         ADDED(OBJECT("ns", "web", "6")) ADDED(OBJECT("ns", "agent", "7")) SENTINEL, "ns/b"},
        {"a Deployment that is named like a Secret", "deployments", ADDED(OBJECT("ns", "s1", "6")) SENTINEL, ""},
        {"a pod is its workload's", "pods", ADDED(WEB_POD("p", "6", "Running")) SENTINEL_POD, "ns/a"},
        {"a pod that goes is forgotten, too", "pods",
         ADDED(WEB_POD("p", "6", "Running")) FRAME("DELETED", WEB_POD("p", "7", "Running")) SENTINEL_POD,
         "-u-p ns/a ns/a"},
        {"a pod of nobody is only forgotten", "pods",
         ADDED(OBJECT("ns", "p", "6")) FRAME("DELETED", OBJECT("ns", "p", "7")) SENTINEL_POD, "-u-p"},
        {"a pod of nobody that uses what a discovering policy remembers, when it has ended", "pods",
         ADDED(BARE_POD("p", "6", "gone", "Running")) FRAME("MODIFIED", BARE_POD("p", "7", "gone", "Running"))
             FRAME("MODIFIED", BARE_POD("p", "8", "gone", "Succeeded")) SENTINEL_POD,
         "ns/d"},
        {"the same when it is deleted; its Secret's other policies did not report it", "pods",
         ADDED(BARE_POD("p", "6", "gone", "Running")) ADDED(BARE_POD("q", "7", "s2", "Running"))
             FRAME("DELETED", BARE_POD("p", "8", "gone", "Running"))
                 FRAME("DELETED", BARE_POD("q", "9", "s2", "Running")) SENTINEL_POD,
         "-u-p -u-q ns/d"},
        {"a policy itself, good or bad, there or gone", "certrotationpolicies",
         FRAME("MODIFIED", "{" META("ns", "bad", "6", "") ",\"spec\":{\"secrets\":7}}")
             FRAME("DELETED", POLICY("ns", "a", "7", NAMED("s1"), CONSUMER("Deployment", "web")))
                 FRAME("MODIFIED", POLICY("ns", "z", "8", NAMED("sentinel"), CONSUMER("Deployment", "sentinel"))),
         "ns/a ns/b ns/bad"}, /* b has a Secret in common with a, which may have had it for some workload */
        {"the last policy of a Secret", "certrotationpolicies",
         FRAME("DELETED", POLICY("ns", "b", "6", NAMED("s1") "," NAMED("s2"), CONSUMER("DaemonSet", "agent"))),
         "ns/a ns/b ~ns/s2"},
        {"a Secret that is selected", "secrets", ADDED(SHOP_SECRET("s9", "6")) SENTINEL, "ns/d"},
        {"a Secret that is relabelled, away and back", "secrets",
         ADDED(OBJECT("ns", "s9", "6")) FRAME("MODIFIED", SHOP_SECRET("s9", "7"))
             FRAME("MODIFIED", OBJECT("ns", "s9", "8")) FRAME("MODIFIED", OBJECT("ns", "s9", "9")) SENTINEL,
         "ns/d ns/d"},
        {"a Secret that is both named and selected", "secrets", ADDED(SHOP_SECRET("s2", "6")) SENTINEL, "ns/b ns/d"},
        {"a Secret that is remembered comes back without its label", "secrets",
         ADDED(OBJECT("ns", "gone", "6")) SENTINEL, "ns/d"},
        {"a workload that begins and ends to use what a policy remembers", "deployments",
         ADDED(USER("x", "6", "s9")) FRAME("MODIFIED", USER("x", "7", "gone")) FRAME("MODIFIED", USER("x", "8", "s9"))
             FRAME("MODIFIED", USER("x", "9", "s9")) SENTINEL,
         "ns/d ns/d"},
        {"an Ingress", "ingresses",
         ADDED("{" META("ns", "i", "6", "") ",\"spec\":{\"tls\":[{\"secretName\":\"s9\"},{\"secretName\":\"gone\"}]}}")
             SENTINEL_INGRESS,
         "ns/d"},
        {"an Ingress of a Secret whose policy does not look for consumers", "ingresses",
         ADDED("{" META("ns", "i", "6", "") ",\"spec\":{\"tls\":[{\"secretName\":\"s2\"}]}}") SENTINEL_INGRESS, ""},
        {"the same where hosts count as names in use", "ingresses",
         ADDED("{" META("ns", "i", "6", "") ",\"spec\":{\"tls\":[{\"secretName\":\"s2\"}]}}") SENTINEL_INGRESS, "ns/b",
         .hosts_in_use = true},
        /* The policies that wait for a budget, z among them. */
        {"a budget, in its namespace", "poddisruptionbudgets",
         ADDED(OBJECT("other", "b", "6")) ADDED(OBJECT("ns", "b", "7")), "ns/e"},
        {"the end of somebody's rollout, not its beginning", "deployments",
         ADDED(ROLLOUT("x", "6", "1")) ADDED(OBJECT("ns", "web", "7")) FRAME("MODIFIED", ROLLOUT("x", "8", "2")),
         "ns/a ns/e"},
        {"a workload that goes while it rolls", "statefulsets",
         ADDED(ROLLOUT("x", "6", "1")) ADDED(OBJECT("ns", "web", "7")) FRAME("DELETED", ROLLOUT("x", "8", "1")),
         "ns/b ns/e"},
    };
    for (size_t i = 0; i < cr_array_len(scenes); i++)
        play(&scenes[i], &everywhere, NULL);
}

/* --- reading --- */

static size_t count_pods(struct cr_cache *cache, const char *kind, const char *name)
{
    CR_CLEANUP(cr_snapshots) struct cr_snapshots pods = {0};
    CR_CLEANUP(cr_snapshots) struct cr_snapshots ending = {0};
    cr_cache_pods(cache, "ns", kind, name, &pods, &ending);
    for (size_t i = 0; i < pods.len; i++)
        assert_null(cr_json_get(pods.items[i]->json, "spec")); /* may carry secrets in its environment */
    return pods.len;
}

static void see_pods(struct cr_cache *cache)
{
    assert_int_equal(count_pods(cache, "Deployment", "web"), 2);
    assert_int_equal(count_pods(cache, "StatefulSet", "web"), 1);
    assert_int_equal(count_pods(cache, "DaemonSet", "web"), 0);
    assert_int_equal(count_pods(cache, "Deployment", "web-5d8f"), 0);
}

static void the_pods_of_a_workload_are_those_that_live(void **state)
{
    (void)state;
    static const struct scene scene = {"pods", "pods",
                                       ADDED(WEB_POD("p1", "6", "Running")) ADDED(WEB_POD("p2", "7", "Pending"))
                                           ADDED(WEB_POD("p3", "8", "Succeeded")) ADDED(WEB_POD("p4", "9", "Failed"))
                                               ADDED(OWNED("ns", "web-0", "10", "", "StatefulSet", "web", "Running"))
                                                   ADDED(OBJECT("ns", "loner", "11")) SENTINEL_POD,
                                       "ns/a ns/a ns/a ns/a ns/b"};
    play(&scene, &everywhere, see_pods);
}

static void see_workloads(struct cr_cache *cache)
{
    static const struct {
        const char *ns, *kind, *name;
        bool there;
    } cases[] = {
        {"ns", "Deployment", "web", true},     {"ns", "Deployment", "nope", false},
        {"other", "Deployment", "web", false}, {"ns", "StatefulSet", "web", false},
        {"ns", "CronJob", "web", false},       {"nowhere", "Deployment", "web", false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_snapshot)
        struct cr_snapshot *found = cr_cache_workload(cache, cases[i].ns, cases[i].kind, cases[i].name);
        if ((found != NULL) != cases[i].there)
            fail_msg("%s %s/%s", cases[i].kind, cases[i].ns, cases[i].name);
        if (!found)
            continue;
        /* What kubectl apply left, and who manages what, is not kept; the rest of a workload is. */
        assert_null(cr_json_at(found->json, "metadata", "managedFields"));
        assert_null(cr_obj_annotation(found->json, "kubectl.kubernetes.io/last-applied-configuration"));
        assert_string_equal(cr_obj_annotation(found->json, "other"), "x");
        assert_int_equal(cr_json_int_at(found->json, 0, "spec", "replicas"), 2);
    }
}

static void a_workload_is_found_by_kind_and_name(void **state)
{
    (void)state;
    static const struct scene scene = {
        "workloads", "deployments",
        ADDED("{" META(
            "ns", "web", "6",
            ",\"managedFields\":[{}],\"annotations\":"
            "{\"kubectl.kubernetes.io/last-applied-configuration\":\"{}\",\"other\":\"x\"}") ",\"spec\":{\"replicas\":"
                                                                                             "2}}") SENTINEL,
        "ns/a"};
    play(&scene, &everywhere, see_workloads);
    CR_CLEANUP(cr_strvec) struct cr_strvec two = {0};
    cr_strvec_add(&two, "other");
    cr_strvec_add(&two, "ns");
    play(&scene, &two, see_workloads);
}

static void see_policies(struct cr_cache *cache)
{
    static const struct {
        const char *name;
        bool usable;
    } cases[] = {{"a", true}, {"b", true}, {"bad", false}};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const char *problem = NULL;
        CR_CLEANUP(cr_snapshot)
        struct cr_snapshot *snapshot = cr_cache_get(cache, CR_CACHED_POLICIES, "ns", cases[i].name);
        assert_non_null(snapshot);
        const struct cr_policy *policy = cr_cached_policy(snapshot, &problem);
        assert_true((policy != NULL) == cases[i].usable && (problem == NULL) == cases[i].usable);
        if (policy)
            assert_string_equal(policy->name, cases[i].name);
        else
            assert_non_null(strstr(problem, "spec.secrets"));
    }
    /* The data is gone, and what no policy wants is not kept. */
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *secret = cr_cache_get(cache, CR_CACHED_SECRETS, "ns", "s1");
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *unnamed = cr_cache_get(cache, CR_CACHED_SECRETS, "ns", "unnamed");
    assert_non_null(secret);
    assert_false(secret->secret);
    assert_null(cr_json_get(secret->json, "data"));
    assert_non_null(secret->extra);
    assert_null(unnamed);
}

static void policies_are_decoded_once_and_secrets_are_read_through_them(void **state)
{
    (void)state;
    static const struct scene scene = {"policies", "secrets",
                                       ADDED("{" META("ns", "s1", "6", "") ",\"data\":{\"tls.key\":\"a2V5\"}}")
                                           ADDED("{" META("ns", "unnamed", "7", "") ",\"data\":{\"tls.key\":\"a2V5\"}}")
                                               SENTINEL,
                                       "ns/a ns/b"};
    play(&scene, &everywhere, see_policies);
    cr_cache_free(NULL);
}

/* --- what may not be seen --- */

struct closed {
    struct cr_manager *manager;
    struct cr_cache *cache;
    struct cr_timer *poll;
    atomic_bool open;    /* Secrets of "ns" may be seen */
    atomic_int notified; /* of ns/a, since they may */
};

static void serve_closed(struct test_conn *conn, void *arg)
{
    struct closed *closed = arg;
    if (!test_conn_request(conn))
        return;
    if (strstr(conn->head, "/namespaces/ns/secrets?") && !atomic_load(&closed->open)) {
        test_conn_puts(conn, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    test_conn_puts(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
    if (strstr(conn->head, "/certrotationpolicies?"))
        send_policies(conn);
    test_conn_puts(conn, MARK);
    test_conn_wait_closed(conn);
}

static void count_policy(void *arg, const char *key)
{
    struct closed *closed = arg;
    if (strcmp(key, "ns/a") == 0)
        atomic_fetch_add(&closed->notified, 1);
}

static void forget_pod(void *arg, const char *uid)
{
    (void)arg;
    (void)uid;
}

static const struct cr_policy_status nothing_known;
static struct cr_policy_secret s1 = {.name = (char *)(uintptr_t) "s1"};
static const struct cr_policy in_ns = {.ns = (char *)(uintptr_t) "ns", .secrets = &s1, .secrets_len = 1};
static const struct cr_policy in_other = {.ns = (char *)(uintptr_t) "other", .secrets = &s1, .secrets_len = 1};

/* First refused, and then, when the right is there, seen; each waiting policy is notified each time. */
static void look_whether_closed(void *arg)
{
    struct closed *closed = arg;
    cr_autofree char *refused = cr_cache_refused(closed->cache, &in_ns, &nothing_known);
    bool open = atomic_load(&closed->open);
    if (!open && refused && !cr_cache_waits(closed->cache, &in_other, &nothing_known)) {
        assert_non_null(strstr(refused, "grant get, list and watch on secrets in namespace ns."));
        assert_true(cr_cache_waits(closed->cache, &in_ns, &nothing_known));
        atomic_store(&closed->notified, 0);
        atomic_store(&closed->open, true);
    }
    cr_autofree char *elsewhere = cr_cache_refused(closed->cache, &in_other, &nothing_known);
    assert_null(elsewhere);
    if (open && !refused && !cr_cache_waits(closed->cache, &in_ns, &nothing_known))
        cr_manager_stop(closed->manager);
    else
        cr_timer_arm(closed->poll, 5);
}

static void what_may_not_be_seen_in_one_namespace_is_notified_there_and_nowhere_else(void **state)
{
    (void)state;
    struct closed closed = {0};
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = serve_closed, .arg = &closed});
    struct cr_loop *loop = cr_loop_new();
    struct cr_client *client = fake_client(loop, test_server_port(server));
    closed.manager = cr_manager_new(loop, client, NULL, &(struct cr_manager_options){.workers = 1});
    CR_CLEANUP(cr_strvec) struct cr_strvec two = {0};
    cr_strvec_add(&two, "other");
    cr_strvec_add(&two, "ns");
    const struct cr_cache_options options = {
        .namespaces = &two, .on_policy = count_policy, .on_pod_gone = forget_pod, .arg = &closed};
    closed.cache = cr_cache_new(closed.manager, client, loop, &options);
    closed.poll = cr_timer_new(loop, look_whether_closed, &closed);
    cr_timer_arm(closed.poll, 0);
    struct cr_timer *deadline = cr_timer_new(loop, give_up, closed.manager);
    cr_timer_arm(deadline, 20 * 1000);
    struct cr_error err = {0};
    if (!cr_manager_run(closed.manager, &err))
        fail_msg("%s", err.text);
    cr_timer_free(deadline);
    cr_timer_free(closed.poll);
    cr_autofree char *refused = cr_cache_refused(closed.cache, &in_ns, &nothing_known);
    assert_null(refused);
    assert_true(atomic_load(&closed.open));
    assert_true(atomic_load(&closed.notified) >= 1);
    cr_manager_free(closed.manager);
    cr_cache_free(closed.cache);
    cr_client_free(client);
    cr_loop_free(loop);
    test_server_free(server);
}

/* --- what may be seen no longer --- */

struct withdrawn {
    struct cr_manager *manager;
    struct cr_cache *cache;
    struct cr_timer *poll;
    atomic_bool withdrawn; /* the right to see Ingresses */
    atomic_int notified;   /* of ns/d, which discovers consumers; since then, once it is withdrawn */
};

static void serve_withdrawn(struct test_conn *conn, void *arg)
{
    struct withdrawn *withdrawn = arg;
    if (!test_conn_request(conn))
        return;
    bool ingresses = strstr(conn->head, "/ingresses?") != NULL;
    if (strstr(conn->head, "/gateways?")) {
        test_conn_puts(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    if (ingresses && atomic_load(&withdrawn->withdrawn)) {
        test_conn_puts(conn, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    test_conn_puts(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
    if (strstr(conn->head, "/certrotationpolicies?"))
        send_policies(conn);
    test_conn_puts(conn, MARK);
    while (ingresses && !atomic_load(&withdrawn->withdrawn))
        usleep(POLL_MS * 1000);
    if (!ingresses)
        test_conn_wait_closed(conn);
}

static void count_discovering(void *arg, const char *key)
{
    struct withdrawn *withdrawn = arg;
    if (strcmp(key, "ns/d") == 0)
        atomic_fetch_add(&withdrawn->notified, 1);
}

static void look_what_is_seen(void *arg)
{
    static const struct cr_policy discovering = {.ns = (char *)(uintptr_t) "ns", .discover = {.enabled = true}};
    struct withdrawn *withdrawn = arg;
    cr_autofree char *unseen = cr_cache_unseen(withdrawn->cache, &discovering);
    bool notified = atomic_load(&withdrawn->notified) > 0;
    bool over = atomic_load(&withdrawn->withdrawn);
    if (!over && notified && !unseen && !cr_cache_waits(withdrawn->cache, &discovering, &nothing_known)) {
        atomic_store(&withdrawn->notified, 0);
        atomic_store(&withdrawn->withdrawn, true);
    }
    if (over && notified && unseen)
        cr_manager_stop(withdrawn->manager);
    else
        cr_timer_arm(withdrawn->poll, POLL_MS);
}

static void that_a_kind_was_seen_and_may_not_be_seen_any_more_is_notified(void **state)
{
    (void)state;
    struct withdrawn withdrawn = {0};
    struct test_server *server =
        test_server_new(&(struct test_server_options){.serve = serve_withdrawn, .arg = &withdrawn});
    struct cr_loop *loop = cr_loop_new();
    struct cr_client *client = fake_client(loop, test_server_port(server));
    withdrawn.manager = cr_manager_new(loop, client, NULL, &(struct cr_manager_options){.workers = 1});
    const struct cr_cache_options options = {
        .namespaces = &everywhere, .on_policy = count_discovering, .on_pod_gone = forget_pod, .arg = &withdrawn};
    withdrawn.cache = cr_cache_new(withdrawn.manager, client, loop, &options);
    withdrawn.poll = cr_timer_new(loop, look_what_is_seen, &withdrawn);
    cr_timer_arm(withdrawn.poll, 0);
    struct cr_timer *deadline = cr_timer_new(loop, give_up, withdrawn.manager);
    cr_timer_arm(deadline, 20 * 1000);
    struct cr_error err = {0};
    if (!cr_manager_run(withdrawn.manager, &err))
        fail_msg("%s", err.text);
    cr_timer_free(deadline);
    cr_timer_free(withdrawn.poll);
    bool notified = atomic_load(&withdrawn.withdrawn) && atomic_load(&withdrawn.notified) > 0;
    atomic_store(&withdrawn.withdrawn, true); /* the server can end */
    cr_manager_free(withdrawn.manager);
    cr_cache_free(withdrawn.cache);
    cr_client_free(client);
    cr_loop_free(loop);
    test_server_free(server);
    assert_true(notified);
}

/* --- kinds that cannot be listed --- */

struct unlisted {
    struct cr_manager *manager;
    struct cr_cache *cache;
    struct cr_timer *poll;
    atomic_bool forbidden; /* Rollouts; before, there are too many requests for a list of them */
    bool refused;          /* and that is known */
};

static void serve_unlisted(struct test_conn *conn, void *arg)
{
    const struct unlisted *unlisted = arg;
    if (!test_conn_request(conn))
        return;
    if (strstr(conn->head, "/rollouts?")) {
        test_conn_puts(conn, atomic_load(&unlisted->forbidden)
                                 ? "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
                                 : "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    test_conn_puts(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
    if (strstr(conn->head, "/certrotationpolicies?"))
        send_policies(conn);
    test_conn_puts(conn, MARK);
    test_conn_wait_closed(conn);
}

static void on_any_policy(void *arg, const char *key)
{
    (void)arg;
    (void)key;
}

static struct cr_policy_consumer canary = {.kind = (char *)(uintptr_t) "Rollout"};
static const struct cr_policy lists_rollout = {
    .ns = (char *)(uintptr_t) "ns", .consumers = &canary, .consumers_len = 1};
static const struct cr_policy finds_all = {.ns = (char *)(uintptr_t) "ns", .discover = {.enabled = true}};

/* Who may not list them holds only a policy that is known to have some. */
static void assert_rollouts_alone_are_unseen(struct cr_cache *cache, bool refused)
{
    const struct cr_policy_status none = {0};
    CR_CLEANUP(cr_policy_status) struct cr_policy_status has_one = {0};
    cr_status_consumer_add(&has_one, "canary")->kind = cr_strdup("Rollout");
    assert_int_equal(cr_cache_pods_unseen(cache, &finds_all, &none, NULL), !refused);
    assert_true(cr_cache_pods_unseen(cache, &finds_all, &has_one, NULL));
    assert_true(cr_cache_pods_unseen(cache, &lists_rollout, &none, NULL));
    assert_true(cr_cache_pods_unseen(cache, &lists_rollout, &none, cr_consumer_kind_of("Rollout")));
    assert_false(cr_cache_pods_unseen(cache, &finds_all, &none, cr_consumer_kind_of("ReplicaSet")));
    assert_false(cr_cache_pods_unseen(cache, &in_ns, &none, NULL));
}

/* First throttled, and then refused. */
static void look_at_rollouts(void *arg)
{
    struct unlisted *unlisted = arg;
    struct cr_cache *cache = unlisted->cache;
    cr_autofree char *unseen = cr_cache_unseen(cache, &lists_rollout);
    bool rest_is_seen = !cr_cache_waits(cache, &in_ns, &nothing_known) &&
                        !cr_cache_pods_unseen(cache, &finds_all, &nothing_known, cr_consumer_kind_of("ReplicaSet"));
    if (rest_is_seen && unseen && strstr(unseen, "429") && !atomic_load(&unlisted->forbidden)) {
        assert_true(cr_cache_waits(cache, &lists_rollout, &nothing_known));
        assert_rollouts_alone_are_unseen(cache, false);
        atomic_store(&unlisted->forbidden, true);
    }
    unlisted->refused = unseen && strstr(unseen, "403") && !cr_cache_waits(cache, &lists_rollout, &nothing_known);
    if (unlisted->refused)
        cr_manager_stop(unlisted->manager);
    else
        cr_timer_arm(unlisted->poll, POLL_MS);
}

static void a_kind_that_is_throttled_is_waited_for_and_one_that_is_refused_is_known_to_be_unseen(void **state)
{
    (void)state;
    struct unlisted unlisted = {0};
    struct test_server *server =
        test_server_new(&(struct test_server_options){.serve = serve_unlisted, .arg = &unlisted});
    struct cr_loop *loop = cr_loop_new();
    struct cr_client *client = fake_client(loop, test_server_port(server));
    unlisted.manager = cr_manager_new(loop, client, NULL, &(struct cr_manager_options){.workers = 1});
    const struct cr_cache_options options = {
        .namespaces = &everywhere, .on_policy = on_any_policy, .on_pod_gone = forget_pod, .arg = &unlisted};
    unlisted.cache = cr_cache_new(unlisted.manager, client, loop, &options);
    unlisted.poll = cr_timer_new(loop, look_at_rollouts, &unlisted);
    cr_timer_arm(unlisted.poll, 0);
    struct cr_timer *deadline = cr_timer_new(loop, give_up, unlisted.manager);
    cr_timer_arm(deadline, 20 * 1000);
    struct cr_error err = {0};
    if (!cr_manager_run(unlisted.manager, &err))
        fail_msg("%s", err.text);
    cr_timer_free(deadline);
    cr_timer_free(unlisted.poll);
    assert_true(unlisted.refused);
    assert_rollouts_alone_are_unseen(unlisted.cache, true);
    cr_manager_free(unlisted.manager);
    cr_cache_free(unlisted.cache);
    cr_client_free(client);
    cr_loop_free(loop);
    test_server_free(server);
}

/* --- watches that others replace --- */

enum { BEHIND_MS = 500 };

struct replaced {
    struct cr_manager *manager;
    struct cr_cache *cache;
    struct cr_timer *poll;
    atomic_bool grown;   /* so much is named that one shared watch has all */
    atomic_bool has_all; /* and that is asked for */
    atomic_bool over;
    atomic_int notified; /* of ns/a, since it has grown and s1 is gone */
};

static void wait_until(const struct replaced *replaced, const atomic_bool *what)
{
    while (!atomic_load(what) && !atomic_load(&replaced->over))
        usleep(POLL_MS * 1000);
}

/* The shared watch comes when s1 is gone; the one by name receives the deletion later, if it is still there. */
static void serve_replaced(struct test_conn *conn, void *arg)
{
    struct replaced *replaced = arg;
    if (!test_conn_request(conn))
        return;
    bool policies = strstr(conn->head, "/certrotationpolicies?") != NULL;
    bool named = strstr(conn->head, "fieldSelector=metadata.name%3Ds1") != NULL;
    test_conn_puts(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
    if (policies)
        test_conn_puts(conn, POLICY_A);
    if (named)
        test_conn_puts(conn, ADDED(OBJECT("ns", "s1", "6")));
    test_conn_puts(conn, MARK);
    if (strstr(conn->head, "/secrets?") && !strstr(conn->head, "fieldSelector"))
        atomic_store(&replaced->has_all, true);
    if (policies) {
        wait_until(replaced, &replaced->grown);
        test_conn_puts(conn, POLICY_Z);
    }
    if (named) {
        wait_until(replaced, &replaced->has_all);
        usleep(BEHIND_MS * 1000);
        test_conn_puts(conn, FRAME("DELETED", OBJECT("ns", "s1", "90")));
    }
    test_conn_wait_closed(conn);
}

static bool is_held(struct cr_cache *cache, const char *name)
{
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *found = cr_cache_get(cache, CR_CACHED_SECRETS, "ns", name);
    return found != NULL;
}

static void count_notified(void *arg, const char *key)
{
    struct replaced *replaced = arg;
    if (strcmp(key, "ns/a") == 0 && atomic_load(&replaced->grown) && !is_held(replaced->cache, "s1"))
        atomic_fetch_add(&replaced->notified, 1);
}

/* It grows when the watch by name is in sync: that is notified, too. */
static void look_whether_replaced(void *arg)
{
    struct replaced *replaced = arg;
    bool grown = atomic_load(&replaced->grown);
    if (!grown && is_held(replaced->cache, "s1") && !cr_cache_waits(replaced->cache, &in_ns, &nothing_known))
        atomic_store(&replaced->grown, true);
    if (grown && atomic_load(&replaced->notified))
        cr_manager_stop(replaced->manager);
    else
        cr_timer_arm(replaced->poll, POLL_MS);
}

static void a_deletion_is_notified_whichever_watch_receives_it_last(void **state)
{
    (void)state;
    struct replaced replaced = {0};
    struct test_server *server =
        test_server_new(&(struct test_server_options){.serve = serve_replaced, .arg = &replaced});
    struct cr_loop *loop = cr_loop_new();
    struct cr_client *client = fake_client(loop, test_server_port(server));
    replaced.manager = cr_manager_new(loop, client, NULL, &(struct cr_manager_options){.workers = 1});
    const struct cr_cache_options options = {
        .namespaces = &everywhere, .on_policy = count_notified, .on_pod_gone = forget_pod, .arg = &replaced};
    replaced.cache = cr_cache_new(replaced.manager, client, loop, &options);
    replaced.poll = cr_timer_new(loop, look_whether_replaced, &replaced);
    cr_timer_arm(replaced.poll, 0);
    struct cr_timer *deadline = cr_timer_new(loop, give_up, replaced.manager);
    cr_timer_arm(deadline, 20 * 1000);
    struct cr_error err = {0};
    if (!cr_manager_run(replaced.manager, &err))
        fail_msg("%s", err.text);
    cr_timer_free(deadline);
    cr_timer_free(replaced.poll);
    atomic_store(&replaced.over, true);
    assert_true(atomic_load(&replaced.notified) > 0);
    assert_false(is_held(replaced.cache, "s1"));
    assert_false(cr_cache_waits(replaced.cache, &in_ns, &nothing_known));
    cr_manager_free(replaced.manager);
    cr_cache_free(replaced.cache);
    cr_client_free(client);
    cr_loop_free(loop);
    test_server_free(server);
}

struct late {
    struct cr_manager *manager;
    struct cr_cache *cache;
    struct cr_timer *poll;
    atomic_bool grown;     /* so much is named that one shared watch has all */
    atomic_bool caught_up; /* that one, with the watch by name whose place it takes */
    atomic_bool over;
    int64_t newest, end_ms;
    bool went_back;
};

/* What answers the shared watches is behind what has answered the one by name. */
static void serve_late(struct test_conn *conn, void *arg)
{
    struct late *late = arg;
    if (!test_conn_request(conn))
        return;
    bool policies = strstr(conn->head, "/certrotationpolicies?") != NULL;
    bool named = strstr(conn->head, "fieldSelector=metadata.name%3Ds1") != NULL;
    bool tls = strstr(conn->head, "fieldSelector=type%3D") != NULL;
    bool shared = strstr(conn->head, "/secrets?") && !strstr(conn->head, "metadata.name") && !tls;
    test_conn_puts(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
    test_conn_puts(conn, policies ? POLICY_A : named ? ADDED(OBJECT("ns", "s1", "90")) : "");
    test_conn_puts(conn, shared ? ADDED(OBJECT("ns", "s1", "6")) : "");
    test_conn_puts(conn, MARK);
    while (policies && !atomic_load(&late->grown) && !atomic_load(&late->over))
        usleep(POLL_MS * 1000);
    if (policies)
        test_conn_puts(conn, POLICY_Z);
    if (shared) {
        usleep(BEHIND_MS * 1000);
        test_conn_puts(conn, FRAME("MODIFIED", OBJECT("ns", "s1", "90")));
        atomic_store(&late->caught_up, true);
    }
    test_conn_wait_closed(conn);
}

static void look_whether_it_goes_back(void *arg)
{
    struct late *late = arg;
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *held = cr_cache_get(late->cache, CR_CACHED_SECRETS, "ns", "s1");
    int64_t version = held ? strtoll(cr_obj_resource_version(held->json), NULL, 10) : 0;
    late->went_back = late->went_back || version < late->newest;
    late->newest = version > late->newest ? version : late->newest;
    if (version && !cr_cache_waits(late->cache, &in_ns, &nothing_known))
        atomic_store(&late->grown, true);
    if (!late->end_ms && atomic_load(&late->caught_up))
        late->end_ms = cr_clock_monotonic_ms() + 2 * BEHIND_MS; /* one that takes its place has done so, too */
    if (late->end_ms && cr_clock_monotonic_ms() > late->end_ms)
        cr_manager_stop(late->manager);
    else
        cr_timer_arm(late->poll, POLL_MS);
}

static void a_secret_does_not_go_back_to_what_a_new_watch_has(void **state)
{
    (void)state;
    struct late late = {0};
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = serve_late, .arg = &late});
    struct cr_loop *loop = cr_loop_new();
    struct cr_client *client = fake_client(loop, test_server_port(server));
    late.manager = cr_manager_new(loop, client, NULL, &(struct cr_manager_options){.workers = 1});
    const struct cr_cache_options options = {
        .namespaces = &everywhere, .on_policy = forget_pod, .on_pod_gone = forget_pod, .arg = &late};
    late.cache = cr_cache_new(late.manager, client, loop, &options);
    late.poll = cr_timer_new(loop, look_whether_it_goes_back, &late);
    cr_timer_arm(late.poll, 0);
    struct cr_timer *deadline = cr_timer_new(loop, give_up, late.manager);
    cr_timer_arm(deadline, 20 * 1000);
    struct cr_error err = {0};
    if (!cr_manager_run(late.manager, &err))
        fail_msg("%s", err.text);
    cr_timer_free(deadline);
    cr_timer_free(late.poll);
    atomic_store(&late.over, true);
    assert_true(atomic_load(&late.caught_up));
    assert_int_equal(late.newest, 90);
    assert_false(late.went_back);
    cr_manager_free(late.manager);
    cr_cache_free(late.cache);
    cr_client_free(client);
    cr_loop_free(loop);
    test_server_free(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_happens_concerns_just_the_policies_that_name_it),
        cmocka_unit_test(the_pods_of_a_workload_are_those_that_live),
        cmocka_unit_test(a_workload_is_found_by_kind_and_name),
        cmocka_unit_test(policies_are_decoded_once_and_secrets_are_read_through_them),
        cmocka_unit_test(what_may_not_be_seen_in_one_namespace_is_notified_there_and_nowhere_else),
        cmocka_unit_test(that_a_kind_was_seen_and_may_not_be_seen_any_more_is_notified),
        cmocka_unit_test(a_kind_that_is_throttled_is_waited_for_and_one_that_is_refused_is_known_to_be_unseen),
        cmocka_unit_test(a_deletion_is_notified_whichever_watch_receives_it_last),
        cmocka_unit_test(a_secret_does_not_go_back_to_what_a_new_watch_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
