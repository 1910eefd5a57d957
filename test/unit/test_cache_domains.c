/* What trust domains are notified of, against a server that shows one change after the other. */
#include "cluster/cache_domains.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "kube/object.h"
#include "support/fakeapi.h"
#include "support/testserver.h"

#define FRAME(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define ADDED(object)       FRAME("ADDED", object)
#define MARK                                                                                                           \
    FRAME("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"500\","                                                    \
                      "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}")
#define NAMED(ns, name, version, more)                                                                                 \
    "{\"metadata\":{\"namespace\":\"" ns "\",\"name\":\"" name "\",\"uid\":\"u\",\"resourceVersion\":\"" version       \
    "\"}" more "}"
#define BARE(name, version, more)                                                                                      \
    "{\"metadata\":{\"name\":\"" name "\",\"uid\":\"u\",\"resourceVersion\":\"" version "\"" more "}}"
#define POLICY(ns, version) NAMED(ns, "p", version, ",\"spec\":{\"secrets\":[{\"name\":\"other\"}]}")

enum { POLL_MS = 5 };

struct play {
    /* Of each resource, what is there at first, and what comes when all that is in. NULL: nothing. */
    const char *plural;
    const char *frames;
    struct cr_manager *manager;
    struct cr_cache *cache;
    struct cr_timer *poll;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool go;
    bool begun;                /* loop thread, as what is below */
    const char *last;          /* ends the play */
    struct cr_strvec notified; /* since it has begun */
};

static void on_policy(void *arg, const char *key)
{
    (void)arg;
    (void)key;
}

static void on_domain(void *arg, const char *key)
{
    struct play *play = arg;
    if (!play->begun)
        return;
    if (strcmp(key, play->last) == 0)
        cr_manager_stop(play->manager);
    else
        cr_strvec_add_unique(&play->notified, key);
}

static bool is_held(struct cr_cache *cache, const char *ns, const char *name)
{
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *domain = cr_cache_domain(cache, ns, name);
    return domain != NULL;
}

/* Whether what is there at first is in. */
static bool is_in(struct play *play)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *secret = cr_cache_get(play->cache, CR_CACHED_SECRETS, "a", "wanted");
    return secret && is_held(play->cache, "a", "mesh") && is_held(play->cache, "", "mesh") &&
           cr_cache_namespaces_known(play->cache, &err);
}

static void look(void *arg)
{
    struct play *play = arg;
    if (!is_in(play)) {
        cr_timer_arm(play->poll, POLL_MS);
        return;
    }
    play->begun = true;
    pthread_mutex_lock(&play->lock);
    play->go = true;
    pthread_cond_broadcast(&play->changed);
    pthread_mutex_unlock(&play->lock);
}

static void serve(struct test_conn *conn, void *arg)
{
    struct play *play = arg;
    if (!test_conn_request(conn))
        return;
    test_conn_puts(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
    if (strstr(conn->head, "/trustdomains?"))
        test_conn_puts(conn, ADDED(NAMED("a", "mesh", "1", "")));
    if (strstr(conn->head, "/clustertrustdomains?"))
        test_conn_puts(conn, ADDED(BARE("mesh", "2", "")));
    if (strstr(conn->head, "/namespaces?"))
        test_conn_puts(conn, ADDED(BARE("a", "3", ",\"labels\":{\"team\":\"x\"}"))
                                 ADDED(BARE("c", "4", ",\"labels\":{\"team\":\"x\"}")) ADDED(BARE("b", "5", "")));
    if (strstr(conn->head, "/secrets?") && strstr(conn->head, "metadata.name%3Dwanted"))
        test_conn_puts(conn, ADDED(NAMED("a", "wanted", "6", "")));
    test_conn_puts(conn, MARK);
    pthread_mutex_lock(&play->lock);
    while (!play->go)
        pthread_cond_wait(&play->changed, &play->lock);
    pthread_mutex_unlock(&play->lock);
    if (strstr(conn->head, play->plural))
        test_conn_puts(conn, play->frames);
    test_conn_wait_closed(conn);
}

static void give_up(void *manager)
{
    cr_manager_stop(manager);
}

static void want(struct cr_cache *cache, const char *key, const char *secret)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec secrets = {0};
    cr_strvec_add(&secrets, secret);
    cr_cache_domain_wants(cache, key, &secrets);
}

static void play(struct play *p, const char *expected, void (*check)(struct cr_cache *cache))
{
    static const struct cr_strvec everywhere = {0};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = serve, .arg = p});
    struct cr_loop *loop = cr_loop_new();
    struct cr_client *client = fake_client(loop, test_server_port(server));
    p->manager = cr_manager_new(loop, client, NULL, &(struct cr_manager_options){.workers = 1});
    const struct cr_cache_options options = {.namespaces = &everywhere, .on_policy = on_policy, .arg = p};
    p->cache = cr_cache_new(p->manager, client, loop, &options);
    cr_cache_watch_domains(p->cache, &(struct cr_domain_listener){.on_domain = on_domain, .arg = p});
    want(p->cache, "a/mesh", "a/wanted");
    want(p->cache, "/mesh", "b/wanted");
    want(p->cache, "z/last", "z/wanted");
    p->poll = cr_timer_new(loop, look, p);
    cr_timer_arm(p->poll, POLL_MS);
    struct cr_timer *deadline = cr_timer_new(loop, give_up, p->manager);
    cr_timer_arm(deadline, 20 * 1000);
    struct cr_error err = {0};
    if (!cr_manager_run(p->manager, &err))
        fail_msg("%s", err.text);
    cr_timer_free(deadline);
    cr_timer_free(p->poll);
    assert_true(p->begun);
    cr_strvec_sort(&p->notified);
    cr_autofree char *notified = cr_strvec_join(&p->notified, " ");
    if (strcmp(notified, expected) != 0)
        fail_msg("%s: notified '%s'", p->frames, notified);
    if (check)
        check(p->cache);
    cr_manager_free(p->manager);
    cr_cache_free(p->cache);
    cr_client_free(client);
    cr_loop_free(loop);
    test_server_free(server);
    cr_strvec_dispose(&p->notified);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
}

#define LAST_DOMAIN ADDED(NAMED("z", "last", "99", ""))

static void a_domain_is_notified_of_itself_of_its_secrets_and_of_policies_beside_them(void **state)
{
    (void)state;
    static const struct {
        const char *plural, *frames, *last, *notified;
    } cases[] = {
        {"/trustdomains?", FRAME("MODIFIED", NAMED("a", "mesh", "7", "")) LAST_DOMAIN, "z/last", "a/mesh"},
        {"/trustdomains?", FRAME("DELETED", NAMED("a", "mesh", "7", "")) LAST_DOMAIN, "z/last", "a/mesh"},
        {"/clustertrustdomains?", ADDED(BARE("new", "7", "")) ADDED(BARE("last", "8", "")), "/last", "/new"},
        {"metadata.name%3Dwanted", FRAME("MODIFIED", NAMED("a", "wanted", "7", "")), "a/mesh", ""},
        {"/certrotationpolicies?", ADDED(POLICY("b", "7")) ADDED(POLICY("c", "8")) ADDED(POLICY("z", "9")), "z/last",
         "/mesh"},
        {"/namespaces?", FRAME("MODIFIED", BARE("b", "7", "")), "/mesh", ""},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++)
        play(&(struct play){.plural = cases[i].plural, .frames = cases[i].frames, .last = cases[i].last},
             cases[i].notified, NULL);
}

static void select_by_label(struct cr_cache *cache)
{
    struct cr_selector_requirement team = {.key = (char *)(uintptr_t) "team", .operator= CR_SELECTOR_EXISTS };
    const struct cr_selector selector = {.items = &team, .len = 1};
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    cr_cache_select_namespaces(cache, &selector, &names);
    cr_autofree char *text = cr_strvec_join(&names, " ");
    assert_string_equal(text, "a b c");
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *there = cr_cache_namespace(cache, "b");
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *absent = cr_cache_namespace(cache, "d");
    assert_string_equal(cr_json_string_at(there->json, "metadata", "labels", "team"), "y");
    assert_null(absent);
}

/* One event, so that what ends the play is the last that came. */
static void namespaces_are_selected_as_they_are_now(void **state)
{
    (void)state;
    play(&(struct play){.plural = "/namespaces?",
                        .frames = FRAME("MODIFIED", BARE("b", "7", ",\"labels\":{\"team\":\"y\"}")),
                        .last = "/mesh"},
         "", select_by_label);
}

/* --- which stage a Secret was published for --- */

#define PUBLISHES                                                                                                      \
    ",\"status\":{\"stage\":\"Switching\",\"rotation\":{\"id\":\"0a1b\",\"since\":\"2026-11-22T09:00:00.000000Z\"},"   \
    "\"objects\":[{\"kind\":\"Secret\",\"namespace\":\"a\",\"name\":\"wanted\",\"writtenVersion\":\"6\"}]}"

static void ask_for_steps(struct cr_cache *cache)
{
    struct cr_domain_step step = cr_cache_domain_step(cache, "a", "wanted", "6");
    assert_string_equal(step.restart.rotation, "0a1b");
    assert_int_equal(step.restart.restarts, 1);
    step = cr_cache_domain_step(cache, "a", "wanted", "7"); /* not the domain's, or not on record yet */
    assert_string_equal(step.restart.rotation, "");
    assert_true(step.awaits_record);
    step = cr_cache_domain_step(cache, "b", "wanted", "6"); /* its domain says nothing of it */
    assert_string_equal(step.restart.rotation, "");
    assert_false(step.awaits_record);
    step = cr_cache_domain_step(cache, "a", "other", "6");
    assert_string_equal(step.restart.rotation, "");
}

static void a_step_is_of_the_domain_that_publishes_there(void **state)
{
    (void)state;
    play(&(struct play){.plural = "/trustdomains?",
                        .frames = FRAME("MODIFIED", NAMED("a", "mesh", "7", PUBLISHES)) LAST_DOMAIN,
                        .last = "z/last"},
         "a/mesh", ask_for_steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_domain_is_notified_of_itself_of_its_secrets_and_of_policies_beside_them),
        cmocka_unit_test(namespaces_are_selected_as_they_are_now),
        cmocka_unit_test(a_step_is_of_the_domain_that_publishes_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
