/* The world of a policy, gathered from a real cache: what is effective, and the part of it that another policy has. */
#include "policy/controller/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "support/fakeapi.h"
#include "support/testserver.h"
#include "trust/controller/covering_policies.h"

#define ADDED(object) "{\"type\":\"ADDED\",\"object\":" object "}\n"
#define MARK                                                                                                           \
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"500\","                                    \
    "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n"
#define META(name, created, more)                                                                                      \
    "\"metadata\":{\"namespace\":\"ns\",\"name\":\"" name "\",\"uid\":\"u-" name                                       \
    "\",\"resourceVersion\":\"7\",\"generation\":1,\"creationTimestamp\":\"2026-01-01T00:00:0" created "Z\"" more "}"
#define SECRET(name, label)                                                                                            \
    ADDED("{" META(name, "1", ",\"labels\":{\"app\":\"" label "\"}") ",\"type\":\"kubernetes.io/tls\"}")
#define USER(name, secret)                                                                                             \
    ADDED("{" META(name, "1", "") ",\"spec\":{\"replicas\":0,\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\"," \
                                  "\"envFrom\":[{\"secretRef\":{\"name\":\"" secret "\"}}]}]}}}}")
/* Restarted for Secret "s1" when it was at that version. */
#define RESTARTED(name, version)                                                                                       \
    ADDED("{" META(name, "1",                                                                                          \
                   "") ",\"spec\":{\"replicas\":0,\"template\":{\"metadata\":{\"annotations\":{\"certroll.dev/"        \
                       "e8bc163c82eee187\":\"trust=0123456789abcdef,trust.version=" version "\"}},\"spec\":{}}}}")
#define POD(name, owner)                                                                                               \
    ADDED("{" META(name, "1",                                                                                          \
                   ",\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"DaemonSet\",\"name\":\"" owner        \
                   "\",\"controller\":true}]") ",\"status\":{\"phase\":\"Running\"}}")
#define FINDS "\"secretSelector\":{\"matchLabels\":{\"app\":\"shop\"}},\"discover\":{\"enabled\":true}"
#define OTHER_KEYS                                                                                                     \
    "\"secrets\":[{\"name\":\"s1\",\"keys\":{\"certificate\":\"c\"}}],\"consumers\":[{\"name\":\"w\",\"targetRef\":"   \
    "{\"kind\":\"Deployment\",\"name\":\"web\"}}]"
#define NAMES(deployment)                                                                                              \
    "\"secrets\":[{\"name\":\"s1\"}],\"consumers\":[{\"name\":\"w\",\"targetRef\":{\"kind\":\"Deployment\",\"name\":"  \
    "\"" deployment "\"}}]"
#define NAMES_WEB NAMES("web")
#define NAMES_ARGO                                                                                                     \
    "\"secrets\":[{\"name\":\"s1\"}],\"consumers\":[{\"name\":\"w\",\"targetRef\":{\"kind\":\"Deployment\",\"name\":"  \
    "\"web\"}},{\"name\":\"c\",\"targetRef\":{\"kind\":\"Rollout\",\"name\":\"canary\"}}]"
#define POLICY(name, created, spec, more) ADDED("{" META(name, created, "") ",\"spec\":{" spec "}" more "}")
/* What a policy that has settled "s1" for "web" has in its status; nothing reads the digests here. */
#define STATUS                                                                                                         \
    ",\"status\":{\"secrets\":[{\"name\":\"s1\",\"settled\":{}}],\"consumers\":[{\"name\":\"w\",\"targetRef\":"        \
    "{\"kind\":\"Deployment\",\"name\":\"web\"},\"state\":\"Converged\"}]}"

#define OF_AGENT                                                                                                       \
    POLICY("mine", "1",                                                                                                \
           "\"secrets\":[{\"name\":\"s1\"}],\"consumers\":[{\"name\":\"a\",\"targetRef\":{\"kind\":\"DaemonSet\","     \
           "\"name\":\"agent\"}}]",                                                                                    \
           "")

struct frames {
    const char *plural;
    const char *frames;
};

static const struct frames objects[] = {
    {"secrets", SECRET("s1", "shop") SECRET("s2", "shop") SECRET("s3", "bank")},
    {"deployments",
     USER("web", "s1") USER("db", "s2") USER("other", "s3") RESTARTED("ahead", "9") RESTARTED("behind", "6")},
    {"daemonsets", USER("agent", "s1")},
    {"statefulsets", ""},
    {"pods", POD("p1", "agent") POD("p2", "agent") POD("p3", "nobody")},
    {"ingresses", ADDED("{" META("front", "1", "") ",\"spec\":{\"tls\":[{\"secretName\":\"s2\"}]}}")},
    {NULL, NULL},
};

/* Two workloads are as they should be, and two DaemonSets are being rolled. */
#define DONE(name)                                                                                                     \
    ADDED("{" META(name, "1", "") ",\"spec\":{\"replicas\":2},\"status\":{\"observedGeneration\":1,\"replicas\":2,"    \
                                  "\"updatedReplicas\":2,\"availableReplicas\":2}}")
#define ROLLS(name, most)                                                                                              \
    ADDED("{" META(name, "1", "") ",\"spec\":{\"updateStrategy\":{\"rollingUpdate\":{\"maxUnavailable\":" most         \
                                  "}}},\"status\":{\"observedGeneration\":1,\"desiredNumberScheduled\":3,"             \
                                  "\"updatedNumberScheduled\":1,\"numberAvailable\":2}}")
#define POD_OF(name, owner, more, ready)                                                                               \
    ADDED("{" META(name, "1",                                                                                          \
                   ",\"labels\":{\"app\":\"" owner "\"},\"ownerReferences\":[{\"apiVersion\":\"apps/v1\","             \
                   "\"kind\":\"DaemonSet\",\"name\":\"" owner                                                          \
                   "\",\"controller\":true}]" more) ",\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":"    \
                                                    "\"Ready\",\"status\":\"" ready "\"}]}}")
#define BUDGET(name, allowed)                                                                                          \
    ADDED(                                                                                                             \
        "{" META(name, "1", "") ",\"spec\":{\"minAvailable\":1,\"selector\":{}},\"status\":{\"observedGeneration\":1," \
                                "\"disruptionsAllowed\":" allowed "}}")
#define GOING ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\""

static const struct frames rolling[] = {
    {"secrets", SECRET("s1", "shop")},
    {"deployments", DONE("web") DONE("db")},
    {"daemonsets", ROLLS("agent", "2") ROLLS("log", "1")},
    {"statefulsets", ""},
    {"pods", POD_OF("p1", "agent", "", "True") POD_OF("p2", "agent", "", "False") POD_OF("p3", "agent", GOING, "True")},
    {"poddisruptionbudgets", BUDGET("b", "2") BUDGET("c", "1") BUDGET("a", "0")},
    {NULL, NULL},
};

static const struct frames begun[] = {
    {"secrets", SECRET("s1", "shop")},
    {"deployments", DONE("web") DONE("db")},
    {"daemonsets", ""},
    {"statefulsets", ""},
    {"pods", ""},
    {"poddisruptionbudgets", BUDGET("b", "2")},
    {NULL, NULL},
};

static const struct frames argo[] = {
    {"secrets", SECRET("s1", "shop")},
    {"deployments", DONE("web")},
    {"daemonsets", ""},
    {"statefulsets", ""},
    {"rollouts",
     ADDED("{" META("canary", "1", "") ",\"spec\":{\"replicas\":4},\"status\":{\"observedGeneration\":\"1\","
                                       "\"stableRS\":\"a\",\"currentPodHash\":\"b\"}}")},
    {"pods", ""},
    {"poddisruptionbudgets", BUDGET("b", "2")},
    {NULL, NULL},
};

static const struct frames without_budgets[] = {
    {"secrets", SECRET("s1", "shop")},
    {"deployments", DONE("web") DONE("db")},
    {"daemonsets", ROLLS("agent", "2")},
    {"statefulsets", ""},
    {"pods", ""},
    {"poddisruptionbudgets", ""},
    {NULL, NULL},
};

struct play {
    const char *policies;
    const char *of; /* the policy to gather the world of */
    const struct frames *objects;
    char *(*words)(struct cr_gathered *gathered);
    char *(*remembered)(const struct cr_world_source *source, struct cr_gathered *gathered); /* instead of words */
    const char *begun;       /* of Deployment "db", its version before another policy restarts it; NULL: none does */
    bool evicts;             /* so it is restarted */
    bool gateways_forbidden; /* and whatever else there is none of */
    bool secrets_went_on;    /* since the cache received them */
    bool remembers;          /* the policy's own status counts */
    bool hosts_in_use;
    struct cr_manager *manager;
    struct cr_cache *cache;
    struct cr_client *client;
    char *seen; /* what there is to say of its world */
};

static void serve_secret(const struct play *play, struct test_conn *conn)
{
    const char *name = strstr(conn->head, "/secrets/") + strlen("/secrets/");
    cr_autofree char *body = cr_asprintf("{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%.2s\",\"resourceVersion\":"
                                         "\"%s\"},\"data\":{\"tls.crt\":\"bm9uZQ==\"}}",
                                         name, play->secrets_went_on ? "9" : "7");
    cr_autofree char *answer = cr_asprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
                                           "%zu\r\n\r\n%s",
                                           strlen(body), body);
    test_conn_puts(conn, answer);
}

static const char *frames_for(const struct play *play, const char *head)
{
    if (strstr(head, "/certrotationpolicies?"))
        return play->policies;
    for (const struct frames *each = play->objects; each->plural; each++) {
        cr_autofree char *path = cr_asprintf("/%s?", each->plural);
        if (strstr(head, path))
            return each->frames;
    }
    return NULL;
}

static void serve(struct test_conn *conn, void *arg)
{
    const struct play *play = arg;
    while (test_conn_request(conn)) {
        if (strstr(conn->head, "/secrets/")) {
            serve_secret(play, conn);
            continue;
        }
        const char *frames = frames_for(play, conn->head);
        if (!frames) {
            test_conn_puts(conn, play->gateways_forbidden ? "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
                                                          : "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
            continue;
        }
        test_conn_puts(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
        test_conn_puts(conn, frames);
        test_conn_puts(conn, MARK);
        test_conn_wait_closed(conn);
        return;
    }
}

/* "s1 s2 | web:s1=older agent(2) | unseen"; "s1@9": not what the cache has, but what the API server says. */
static char *words_of(struct cr_gathered *gathered)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    const struct cr_policy *policy = gathered->world.policy;
    for (size_t i = 0; i < policy->secrets_len; i++)
        cr_buf_printf(&text, "%s%s ", policy->secrets[i].name,
                      !gathered->secrets[i].found                            ? "(missing)"
                      : cr_streq(gathered->secrets[i].resource_version, "9") ? "@9"
                                                                             : "");
    cr_buf_puts(&text, "|");
    for (size_t i = 0; i < policy->consumers_len; i++) {
        const struct cr_world_consumer *consumer = &gathered->consumers[i];
        cr_buf_printf(&text, " %s%s", policy->consumers[i].name, consumer->unseen ? "?" : "");
        if (consumer->pods_len)
            cr_buf_printf(&text, "(%zu)", consumer->pods_len);
        for (size_t s = 0; consumer->others && s < policy->secrets_len; s++)
            if (consumer->others[s].policy || consumer->others[s].memory)
                cr_buf_printf(&text, ":%s=%s%s%s%s", policy->secrets[s].name,
                              consumer->others[s].policy ? consumer->others[s].policy : "own",
                              consumer->others[s].memory ? "+memory" : "",
                              consumer->others[s].converged ? "+converged" : "",
                              consumer->others[s].other_keys ? "+other-keys" : "");
    }
    if (gathered->world.beyond.unseen)
        cr_buf_puts(&text, strstr(gathered->world.beyond.unseen, "Gateway") ? " | no Gateways" : " | ?");
    if (gathered->world.beyond.unseen_pods)
        cr_buf_puts(&text, ", pods unseen");
    return cr_buf_steal(&text);
}

static void begin_elsewhere(struct cr_reservations *reservations, const struct play *play)
{
    uint64_t moves = 0;
    const struct cr_reservation what = {.policy = "ns/other",
                                        .ns = "ns",
                                        .workload = {"Deployment", "db"},
                                        .version = play->begun,
                                        .evicts = play->evicts,
                                        .moves = &moves};
    assert_true(cr_reservations_take(reservations, &what, 0));
}

static bool reconcile(void *arg, const char *key, struct cr_reconcile_result *result, struct cr_error *err)
{
    struct play *play = arg;
    cr_autofree char *wanted = cr_asprintf("ns/%s", play->of);
    if (!cr_streq(key, wanted) || play->seen)
        return true;
    const char *problem = NULL;
    CR_CLEANUP(cr_snapshot)
    struct cr_snapshot *snapshot = cr_cache_get(play->cache, CR_CACHED_POLICIES, "ns", play->of);
    const struct cr_policy *policy = cr_cached_policy(snapshot, &problem);
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    if (play->remembers)
        cr_policy_status_decode(cr_json_get(snapshot->json, "status"), &status);
    if (cr_cache_waits(play->cache, policy, &status)) {
        result->requeue_after_ms = 10;
        return true;
    }
    CR_CLEANUP(cr_memory) struct cr_memory *memory = cr_memory_new();
    CR_CLEANUP(cr_secret_source)
    struct cr_secret_source *secrets = cr_secret_source_new(play->cache, play->client, NULL);
    CR_CLEANUP(cr_reservations)
    struct cr_reservations *reservations = cr_reservations_new(&(struct cr_reservations_options){0});
    if (play->begun)
        begin_elsewhere(reservations, play);
    struct cr_world_source source = {
        .cache = play->cache, .secrets = secrets, .memory = memory, .reservations = reservations};
    CR_CLEANUP(cr_world) struct cr_gathered gathered = {0};
    if (!cr_world_gather(&source, policy, &status, &gathered, err))
        fail_msg("%s", err->text);
    play->seen = play->remembered ? play->remembered(&source, &gathered) : play->words(&gathered);
    cr_manager_stop(play->manager);
    return true;
}

static void on_policy(void *arg, const char *key)
{
    struct play *play = arg;
    cr_queue_add(cr_manager_queue(play->manager), key);
}

static void on_pod_gone(void *arg, const char *uid)
{
    (void)arg;
    (void)uid;
}

static void give_up(void *manager)
{
    cr_manager_stop(manager);
}

/* Owned words. */
static char *run(struct play play)
{
    static const struct cr_strvec everywhere = {0};
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = serve, .arg = &play});
    struct cr_loop *loop = cr_loop_new();
    play.client = fake_client(loop, test_server_port(server));
    play.manager = cr_manager_new(loop, play.client, NULL, &(struct cr_manager_options){.workers = 1});
    const struct cr_cache_options options = {.namespaces = &everywhere,
                                             .hosts_in_use = play.hosts_in_use,
                                             .on_policy = on_policy,
                                             .on_pod_gone = on_pod_gone,
                                             .arg = &play};
    play.cache = cr_cache_new(play.manager, play.client, loop, &options);
    cr_manager_set_reconciler(play.manager, reconcile, &play);
    struct cr_timer *deadline = cr_timer_new(loop, give_up, play.manager);
    cr_timer_arm(deadline, 20 * 1000);
    struct cr_error err = {0};
    if (!cr_manager_run(play.manager, &err))
        fail_msg("%s", err.text);
    cr_timer_free(deadline);
    cr_manager_free(play.manager);
    cr_cache_free(play.cache);
    cr_client_free(play.client);
    cr_loop_free(loop);
    test_server_free(server);
    return play.seen;
}

static char *world_of(const char *policies, const char *of, bool gateways_forbidden, bool secrets_went_on)
{
    return run((struct play){.policies = policies,
                             .of = of,
                             .objects = objects,
                             .words = words_of,
                             .gateways_forbidden = gateways_forbidden,
                             .secrets_went_on = secrets_went_on});
}

static void the_world_is_what_belongs_to_the_policy_and_its_owner(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *policies;
        const char *of;
        bool gateways_forbidden;
        const char *world;
    } cases[] = {
        {"what is named", POLICY("p", "1", NAMES_WEB, ""), "p", false, "s1 | w"},
        {"what is found; a cluster without Gateways", POLICY("p", "1", FINDS, ""), "p", false,
         "s1 s2 | daemonset-agent(2) deployment-db deployment-web ingress-front"},
        {"no right to see Gateways", POLICY("p", "1", FINDS, ""), "p", true,
         "s1 s2 | daemonset-agent(2) deployment-db deployment-web ingress-front | no Gateways"},
        {"nor an Argo Rollout that is named", POLICY("p", "1", NAMES_ARGO, ""), "p", true,
         "s1 | w c? | ?, pods unseen"},
        {"which a cluster need not have", POLICY("p", "1", NAMES_ARGO, ""), "p", false, "s1 | w c"},
        {"who names everything asks for none", POLICY("p", "1", NAMES_WEB, ""), "p", true, "s1 | w"},
        {"an older one has a pair", POLICY("older", "1", NAMES_WEB, STATUS) POLICY("p", "2", FINDS, ""), "p", false,
         "s1 s2 | daemonset-agent(2) deployment-db deployment-web:s1=older+memory+converged ingress-front"},
        {"and keeps it", POLICY("older", "1", NAMES_WEB, "") POLICY("p", "2", FINDS, ""), "older", false, "s1 | w"},
        {"and is told what the younger remembers", POLICY("older", "1", NAMES_WEB, "") POLICY("p", "2", FINDS, STATUS),
         "older", false, "s1 | w:s1=own+memory"},
        {"but not through other keys", POLICY("older", "1", NAMES_WEB, "") POLICY("p", "2", OTHER_KEYS, STATUS),
         "older", false, "s1 | w"},
        {"an older one with other keys", POLICY("older", "1", NAMES_WEB, STATUS) POLICY("p", "2", OTHER_KEYS, ""), "p",
         false, "s1 | w:s1=older+memory+converged+other-keys"},
        {"but not of one that touches nothing",
         POLICY("older", "1", NAMES_WEB, "") POLICY("p", "2", FINDS ",\"mode\":\"Plan\"", STATUS), "older", false,
         "s1 | w"},
        {"an older one that finds has it, too", POLICY("older", "1", FINDS, "") POLICY("p", "2", NAMES_WEB, ""), "p",
         false, "s1 | w:s1=older"},
        {"one that cannot be read has none",
         POLICY("older", "1", NAMES_WEB ",\"mode\":\"x\"", "") POLICY("p", "2", NAMES_WEB, ""), "p", false, "s1 | w"},
        {"one in mode Plan has none",
         POLICY("older", "1", NAMES_WEB ",\"mode\":\"Plan\"", "") POLICY("p", "2", NAMES_WEB, ""), "p", false,
         "s1 | w"},
        {"a suspended one keeps them",
         POLICY("older", "1", NAMES_WEB ",\"suspend\":true", "") POLICY("p", "2", NAMES_WEB, ""), "p", false,
         "s1 | w:s1=older"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *world = world_of(cases[i].policies, cases[i].of, cases[i].gateways_forbidden, false);
        if (!cr_streq(world, cases[i].world))
            fail_msg("%s: '%s'", cases[i].rule, cr_or_empty(world));
    }
}

static void a_secret_older_than_a_restart_for_it_is_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *policies;
        const char *world;
    } cases[] = {
        {"restarted for what the cache has not seen: it lags", POLICY("p", "1", NAMES("ahead"), ""), "s1@9 | w"},
        {"restarted for what was before", POLICY("p", "1", NAMES("behind"), ""), "s1 | w"},
        {"never restarted", POLICY("p", "1", NAMES_WEB, ""), "s1 | w"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *world = world_of(cases[i].policies, "p", false, true);
        if (!cr_streq(world, cases[i].world))
            fail_msg("%s: '%s'", cases[i].rule, cr_or_empty(world));
    }
}

/* "b:2  | DaemonSet/agent takes 2 of 3 pods (1 ready)"; after that, what a patch of ours has begun. */
static void add_rolling_words(const struct cr_world_budgets *budgets, struct cr_buf *text)
{
    for (size_t i = 0; i < budgets->rolling_len; i++) {
        const struct cr_budget_workload *workload = &budgets->rolling[i];
        int ready = 0;
        int labelled = 0;
        for (size_t p = 0; p < workload->pods_len; p++) {
            ready += workload->pods[p].ready;
            labelled += cr_streq(cr_json_string_at(workload->pods[p].labels, "app"), workload->name);
        }
        cr_buf_printf(text, " | %s/%s %s %d of %d pods (%d ready)", workload->kind, workload->name,
                      workload->evicts ? "evicts, or takes" : "takes", workload->worst->unavailable, labelled, ready);
    }
}

static char *words_of_budgets(struct cr_gathered *gathered)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    const struct cr_world_budgets *budgets = &gathered->world.budgets;
    if (budgets->unseen)
        return cr_strdup(strstr(budgets->unseen, "poddisruptionbudgets") ? "unseen" : budgets->unseen);
    for (size_t i = 0; i < budgets->len; i++)
        cr_buf_printf(&text, "%s:%d ", budgets->items[i].name, budgets->items[i].allowed);
    add_rolling_words(budgets, &text);
    cr_buf_puts(&text, " ->");
    cr_world_override(gathered, 0, cr_json_copy(gathered->consumers[0].workload));
    add_rolling_words(budgets, &text);
    return cr_buf_steal(&text);
}

/* --- pods that are being deleted --- */

#define HOOKED                                                                                                         \
    ",\"spec\":{\"containers\":[{\"name\":\"c\",\"lifecycle\":{\"preStop\":{\"exec\":{\"command\":[\"certroll-"        \
    "shutdown-manager\",\"shutdown\",\"--drain-timeout=20s\"]}}}}]}"
#define ENDS(name, grace, spec, phase)                                                                                 \
    ADDED("{" META(name, "1",                                                                                          \
                   ",\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"DaemonSet\",\"name\":\"agent\","      \
                   "\"controller\":true}],\"deletionTimestamp\":\"2026-01-01T00:01:00Z\"" grace) spec                  \
          ",\"status\":{\"phase\":\"" phase "\"}}")
#define THIRTY ",\"deletionGracePeriodSeconds\":30"
#define NAMES_AGENT                                                                                                    \
    "\"secrets\":[{\"name\":\"s1\"}],\"consumers\":[{\"name\":\"w\",\"targetRef\":{\"kind\":\"DaemonSet\",\"name\":"   \
    "\"agent\"}}]"

static const struct frames ending[] = {
    {"secrets", SECRET("s1", "shop")},
    {"deployments", ""},
    {"daemonsets", USER("agent", "s1")},
    {"statefulsets", ""},
    {"pods", POD("p1", "agent") ENDS("p2", THIRTY, HOOKED, "Running") ENDS("p3", "", "", "Running")
                 ENDS("p4", THIRTY, HOOKED, "Succeeded") ENDS("p5", THIRTY, HOOKED, "Failed")},
    {NULL, NULL},
};

/* "1 active, p2 30-60 drains 20 s, " in the order of names: seconds behind the start of that year. */
static char *words_of_ending(struct cr_gathered *gathered)
{
    static const int64_t year_ms = 1767225600000;
    CR_CLEANUP(cr_strvec) struct cr_strvec words = {0};
    const struct cr_world_consumer *consumer = &gathered->consumers[0];
    for (size_t i = 0; i < consumer->ending_len; i++) {
        const struct cr_world_ending *pod = &consumer->ending[i];
        cr_autofree char *word =
            cr_asprintf("%s of %lld %lld-%lld drains %lld s", pod->pod.name,
                        (long long)(pod->pod.created_ms - year_ms) / 1000, (long long)(pod->since_ms - year_ms) / 1000,
                        (long long)(pod->until_ms - year_ms) / 1000, (long long)pod->drain_ms / 1000);
        cr_strvec_add(&words, word);
    }
    cr_strvec_sort(&words);
    cr_autofree char *all = cr_strvec_join(&words, ", ");
    return cr_asprintf("%zu active, %s", consumer->pods_len, all);
}

static void pods_that_end_are_known_while_their_containers_may_run(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *status, *world;
    } cases[] = {
        {"of a consumer that a change concerned",
         ",\"status\":{\"consumers\":[{\"name\":\"w\",\"state\":\"Restarting\",\"since\":"
         "\"2026-01-01T00:00:00Z\"}]}",
         "1 active, p2 of 1 30-60 drains 20 s, p3 of 1 60-60 drains 0 s"},
        {"of one that was restarted before anything is on record", "",
         "1 active, p2 of 1 30-60 drains 20 s, p3 of 1 60-60 drains 0 s"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *policy = cr_asprintf(
            "{\"type\":\"ADDED\",\"object\":{" META("p", "1", "") ",\"spec\":{%s}%s}}\n", NAMES_AGENT, cases[i].status);
        cr_autofree char *world = run((struct play){
            .policies = policy, .of = "p", .objects = ending, .words = words_of_ending, .remembers = true});
        if (!cr_streq(world, cases[i].world))
            fail_msg("%s: '%s'", cases[i].rule, cr_or_empty(world));
    }
}

static void budgets_and_who_takes_pods_away_under_them(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *spec;
        const struct frames *objects;
        bool forbidden;
        const char *words;
        const char *begun;
        bool evicts;
    } cases[] = {
        {"whoever rolls, with pods that are going, too", NAMES_WEB, rolling, false,
         "a:0 b:2 c:1  | DaemonSet/agent takes 2 of 3 pods (1 ready) | DaemonSet/log takes 1 of 0 pods (0 ready) -> | "
         "DaemonSet/agent takes 2 of 3 pods (1 ready) | DaemonSet/log takes 1 of 0 pods (0 ready) | Deployment/web "
         "takes 0 of 0 pods (0 ready)"},
        {"what another policy has begun, as long as the cache does not show it", NAMES_WEB, begun, false,
         "b:2  | Deployment/db takes 0 of 0 pods (0 ready) -> | Deployment/db takes 0 of 0 pods (0 ready) | "
         "Deployment/web takes 0 of 0 pods (0 ready)",
         "7"},
        {"and no longer, whatever that policy has found out", NAMES_WEB, begun, false,
         "b:2  -> | Deployment/web takes 0 of 0 pods (0 ready)", "6"},
        {"whom another policy evicts, whatever the cache shows", NAMES_WEB, begun, false,
         "b:2  | Deployment/db evicts, or takes 0 of 0 pods (0 ready) -> | Deployment/db evicts, or takes 0 of 0 pods "
         "(0 ready) | Deployment/web takes 0 of 0 pods (0 ready)",
         "6", true},
        {"Argo's Rollouts, too", NAMES_ARGO, argo, false,
         "b:2  | Rollout/canary takes 1 of 0 pods (0 ready) -> | Rollout/canary takes 1 of 0 pods (0 ready) | "
         "Deployment/web takes 0 of 0 pods (0 ready)"},
        {"none: nobody asks who rolls", NAMES_WEB, without_budgets, false, " ->"},
        {"no right to see them", NAMES_WEB, objects, true, "unseen"},
        {"a cluster that does not know them", NAMES_WEB, objects, false, "unseen"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *policies = cr_asprintf(POLICY("p", "1", "%s", ""), cases[i].spec);
        cr_autofree char *words = run((struct play){.policies = policies,
                                                    .of = "p",
                                                    .objects = cases[i].objects,
                                                    .words = words_of_budgets,
                                                    .begun = cases[i].begun,
                                                    .evicts = cases[i].evicts,
                                                    .gateways_forbidden = cases[i].forbidden});
        if (!cr_streq(words, cases[i].words))
            fail_msg("%s: '%s'", cases[i].rule, cr_or_empty(words));
    }
}

/* --- hosts of Ingresses and Gateways --- */

#define INGRESS(name, created, tls) ADDED("{" META(name, created, "") ",\"spec\":{\"tls\":[" tls "]}}")
#define TLS(secret, hosts)          "{\"secretName\":\"" secret "\",\"hosts\":[" hosts "]}"
#define NAMES_TWO                                                                                                      \
    "\"secrets\":[{\"name\":\"s1\"},{\"name\":\"s2\"}],\"consumers\":[{\"name\":\"w\",\"targetRef\":{\"kind\":"        \
    "\"Deployment\",\"name\":\"web\"}}]"

static const struct frames shown[] = {
    {"secrets", SECRET("s1", "shop") SECRET("s2", "shop")},
    {"deployments", USER("web", "s1")},
    {"daemonsets", ""},
    {"statefulsets", ""},
    {"pods", ""},
    {"ingresses", INGRESS("young", "2", TLS("s1", "\"b\",\"c\"")) INGRESS("old", "1", TLS("s1", "\"a\",\"b\""))
                      INGRESS("both", "3", TLS("s1", "\"d\"") "," TLS("s2", "\"e\"") "," TLS("s3", "\"f\""))
                          INGRESS("other", "1", TLS("s3", "\"x\"")) INGRESS("default", "4", "{\"secretName\":\"s2\"}")},
    {"gateways",
     ADDED("{" META("edge", "5", "") ",\"spec\":{\"listeners\":[{\"hostname\":\"*.g\",\"tls\":{\"certificateRefs\":"
                                     "[{\"name\":\"s2\"}]}}]}}")},
    {NULL, NULL},
};

/* "s1: a of Ingress old, ...; s2: ...; 3 objects, 2 hosts more". */
static char *words_of_hosts(struct cr_gathered *gathered)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    for (size_t i = 0; i < gathered->world.policy->secrets_len; i++) {
        const struct cr_world_secret *secret = &gathered->secrets[i];
        cr_buf_printf(&text, "%s%s:", i ? "; " : "", gathered->world.policy->secrets[i].name);
        if (secret->hosts_len > 10) {
            cr_buf_printf(&text, " %zu of %s to %s", secret->hosts_len, secret->hosts[0].object,
                          secret->hosts[secret->hosts_len - 1].object);
            continue;
        }
        for (size_t h = 0; h < secret->hosts_len; h++)
            cr_buf_printf(&text, "%s %s of %s %s", h ? "," : "", secret->hosts[h].host, secret->hosts[h].kind,
                          secret->hosts[h].object);
    }
    const struct cr_world_beyond *beyond = &gathered->world.beyond;
    if (beyond->host_objects || beyond->hosts)
        cr_buf_printf(&text, " | beyond: %zu%s", beyond->host_objects, beyond->hosts ? ", hosts" : "");
    if (beyond->unseen)
        cr_buf_printf(&text, " | %.*s", (int)(strstr(beyond->unseen, ":") - beyond->unseen), beyond->unseen);
    return cr_buf_steal(&text);
}

/* An account may not list what is not there. */
static char *hosts_of(const struct frames *objects_of, bool hosts_in_use)
{
    return run((struct play){.policies = POLICY("p", "1", NAMES_TWO, ""),
                             .of = "p",
                             .objects = objects_of,
                             .words = words_of_hosts,
                             .gateways_forbidden = true,
                             .hosts_in_use = hosts_in_use});
}

static void hosts_that_show_a_secret_are_names_in_use_where_somebody_looks(void **state)
{
    (void)state;
    cr_autofree char *none = hosts_of(shown, false);
    assert_string_equal(none, "s1:; s2:");
    cr_autofree char *all = hosts_of(shown, true);
    assert_string_equal(all, "s1: a of Ingress old, b of Ingress old, c of Ingress young, d of Ingress both; s2: e of "
                             "Ingress both, *.g of Gateway edge");
    cr_autofree char *unseen = hosts_of(objects, true);
    assert_string_equal(unseen, "s1:; s2: | Hosts in use of kind Gateway cannot be seen");
}

/* A worker nudged, asked or evicted three pods: one that is still there, one that came back under its name, and one
 * that is gone. "there: 1": nudges that are remembered of it. */
static char *remembered_after_acts(const struct cr_world_source *source, struct cr_gathered *gathered)
{
    struct cr_world_pod *pods = gathered->pod_views[0];
    assert_int_equal(gathered->consumers[0].pods_len, 2);
    struct cr_world_pod acted_on[] = {pods[0], pods[1], pods[1]};
    acted_on[1].uid = "u-before";
    acted_on[2].name = "p9";
    acted_on[2].uid = "u-p9";
    for (size_t i = 0; i < cr_array_len(acted_on); i++)
        cr_memory_nudged(source->memory, acted_on[i].uid, 5, 50);
    gathered->consumers[0].pods = acted_on;
    const struct cr_plan plan = {.nudges = &(struct cr_plan_pod){.pod = 0},
                                 .nudges_len = 1,
                                 .probes = &(struct cr_plan_pod){.pod = 1},
                                 .probes_len = 1,
                                 .evictions = &(struct cr_plan_eviction){.pod = 2},
                                 .evictions_len = 1};
    cr_world_forget_gone(source, gathered, &plan);
    gathered->consumers[0].pods = pods;
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    for (size_t i = 0; i < cr_array_len(acted_on); i++)
        cr_buf_printf(&text, "%s%s: %d", i ? ", " : "", i ? acted_on[i].uid : "there",
                      cr_memory_pod(source->memory, acted_on[i].uid).nudges);
    return cr_buf_steal(&text);
}

static void of_pods_that_went_during_an_act_nothing_is_remembered(void **state)
{
    (void)state;
    cr_autofree char *words =
        run((struct play){.policies = OF_AGENT, .of = "mine", .objects = objects, .remembered = remembered_after_acts});
    assert_string_equal(words, "there: 1, u-before: 0, u-p9: 0");
}

/* --- those that cover a Secret of a trust domain --- */

static char *covering(const struct cr_world_source *source, struct cr_gathered *gathered)
{
    (void)gathered;
    CR_CLEANUP(cr_covering_policies) struct cr_covering_policies found = {0};
    cr_covering_policies_gather(source->cache, "ns", "s1", &found);
    return cr_asprintf("%zu%s", found.len, found.too_many ? " of more" : "");
}

static void so_many_policies_on_a_secret_are_looked_at_and_that_there_are_more_is_known(void **state)
{
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        CR_CLEANUP(cr_buf) struct cr_buf policies = CR_BUF_INIT(0);
        for (size_t i = 0; i < CR_COVERING_POLICIES_MAX + more; i++)
            cr_buf_printf(
                &policies,
                "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"namespace\":\"ns\",\"name\":\"p%zu\",\"uid\":"
                "\"u-p%zu\",\"resourceVersion\":\"7\",\"generation\":1},\"spec\":{\"secrets\":[{\"name\":\"s1\"}]}"
                "}}\n",
                i, i);
        cr_autofree char *words = run(
            (struct play){.policies = cr_buf_text(&policies), .of = "p0", .objects = objects, .remembered = covering});
        assert_string_equal(words, more ? "32 of more" : "32");
    }
}

/* --- what was done and refused lately --- */

/* Of what was done or refused by the clock that nobody sets: in tens of seconds from now. */
static char *times_by_the_wall(const struct cr_world_source *source, struct cr_gathered *gathered)
{
    const struct cr_policy *policy = gathered->world.policy;
    int64_t now_ms = cr_clock_monotonic_ms();
    cr_autofree char *refused = cr_world_refused_key(policy, "a");
    cr_autofree char *evicted = cr_world_evicted_key(policy, "a", 0);
    cr_memory_take_note(source->memory, refused, &(struct cr_note_input){.at_ms = now_ms + 300 * 1000, .text = "no"});
    cr_memory_note_time(source->memory, evicted, now_ms - 20 * 1000);
    cr_memory_evicted(source->memory, gathered->consumers[0].pods[0].uid, now_ms - 40 * 1000);
    cr_world_refresh(source, gathered);
    const struct cr_world_consumer *a = &gathered->consumers[0];
    const int64_t times_ms[] = {a->refused_until_ms, a->evicted_ms, a->pods[0].evicted_ms};
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    for (size_t i = 0; i < cr_array_len(times_ms); i++)
        cr_buf_printf(&text, "%s%.0f", i ? ", " : "", (double)(times_ms[i] - gathered->world.now_ms) / 10000);
    assert_int_equal(a->pods[1].evicted_ms, 0);
    return cr_buf_steal(&text);
}

static void a_wall_clock_that_is_set_moves_no_pause(void **state)
{
    (void)state;
    cr_autofree char *words =
        run((struct play){.policies = OF_AGENT, .of = "mine", .objects = objects, .remembered = times_by_the_wall});
    assert_string_equal(words, "30, -2, -4");
}

/* So many Ingresses of one Secret, each with so many hosts of its own. */
static char *hosts_of_many(size_t ingresses, size_t hosts)
{
    CR_CLEANUP(cr_buf) struct cr_buf frames = CR_BUF_INIT(0);
    for (size_t i = 0; i < ingresses; i++) {
        cr_buf_printf(
            &frames,
            "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"namespace\":\"ns\",\"name\":\"i%04zu\",\"uid\":\"u%zu\","
            "\"resourceVersion\":\"7\"},\"spec\":{\"tls\":[{\"secretName\":\"s1\",\"hosts\":[",
            i, i);
        for (size_t h = 0; h < hosts; h++)
            cr_buf_printf(&frames, "%s\"h%zu.i%zu\"", h ? "," : "", h, i);
        cr_buf_puts(&frames, "]}]}}}\n");
    }
    const struct frames objects_of[] = {{"secrets", SECRET("s1", "shop") SECRET("s2", "shop")},
                                        {"deployments", USER("web", "s1")},
                                        {"daemonsets", ""},
                                        {"statefulsets", ""},
                                        {"pods", ""},
                                        {"ingresses", cr_buf_text(&frames)},
                                        {"gateways", ""},
                                        {NULL, NULL}};
    return hosts_of(objects_of, true);
}

static void what_a_tenant_can_have_looked_at_is_bounded_and_the_excess_is_reported(void **state)
{
    (void)state;
    static const struct {
        size_t ingresses, hosts;
        const char *words;
    } cases[] = {
        {CR_HOST_OBJECTS_MAX, 1, "s1: 512 of i0000 to i0511; s2:"},
        {CR_HOST_OBJECTS_MAX + 3, 1, "s1: 512 of i0000 to i0511; s2: | beyond: 3"},
        {CR_HOSTS_MAX / 100, 100, "s1: 1000 of i0000 to i0009; s2:"},
        {CR_HOSTS_MAX / 100 + 1, 100, "s1: 1000 of i0000 to i0009; s2: | beyond: 0, hosts"},
        {1, 400, "s1: 256 of i0000 to i0000; s2: | beyond: 0, hosts"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *words = hosts_of_many(cases[i].ingresses, cases[i].hosts);
        if (!cr_streq(words, cases[i].words))
            fail_msg("%zu: '%s'", i, words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_world_is_what_belongs_to_the_policy_and_its_owner),
        cmocka_unit_test(pods_that_end_are_known_while_their_containers_may_run),
        cmocka_unit_test(budgets_and_who_takes_pods_away_under_them),
        cmocka_unit_test(a_secret_older_than_a_restart_for_it_is_asked_for),
        cmocka_unit_test(hosts_that_show_a_secret_are_names_in_use_where_somebody_looks),
        cmocka_unit_test(of_pods_that_went_during_an_act_nothing_is_remembered),
        cmocka_unit_test(so_many_policies_on_a_secret_are_looked_at_and_that_there_are_more_is_known),
        cmocka_unit_test(a_wall_clock_that_is_set_moves_no_pause),
        cmocka_unit_test(what_a_tenant_can_have_looked_at_is_bounded_and_the_excess_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
