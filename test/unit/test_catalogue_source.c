#include "cluster/catalogue_source.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "support/fakeapi.h"
#include "support/testserver.h"

#define META(version)                                                                                                  \
    "\"metadata\":{\"namespace\":\"certroll-system\",\"name\":\"certroll-catalogue\",\"uid\":\"u\","                   \
    "\"resourceVersion\":\"" version "\"}"
#define FRAME(type, version, data) "{\"type\":\"" type "\",\"object\":{" META(version) data "}}\n"
#define PUT(version, text)         FRAME("MODIFIED", version, ",\"data\":{\"ours.yaml\":\"" text "\"}")
#define PUT_DATA(version, data)    FRAME("MODIFIED", version, "," data)
#define GONE(version)              FRAME("DELETED", version, "")
#define MARK                                                                                                           \
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\","                                      \
    "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n"

#define ENTRY(image, method)                                                                                           \
    "schema: 1\\ncomponents: [{name: acme/app, images: [" image                                                        \
    "], uses: [{roles: [serverLeaf], rules: [{method: " method ", confidence: verified, source: ours}]}]}]"
#define GOOD    ENTRY("acme/app", "Watch")
#define BETTER  ENTRY("acme/other", "Restart")
#define INVALID ENTRY("acme/third", "watch")

/* What the source notified of, and the catalogue that was then effective. */
struct play {
    const char *frames; /* of the watch, before the mark and after it */
    struct cr_manager *manager;
    struct cr_catalogue_source *source;
    struct cr_metrics *metrics;
    int changes;
    int news;
    int until_changes; /* the play is over when both were reached */
    int until_news;
};

static void serve(struct test_conn *conn, void *arg)
{
    struct play *play = arg;
    if (!test_conn_request(conn))
        return;
    if (!strstr(conn->head, "/api/v1/namespaces/certroll-system/configmaps?") ||
        !strstr(conn->head, "fieldSelector=metadata.name%3Dcertroll-catalogue")) {
        test_conn_puts(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    test_conn_puts(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" MARK);
    test_conn_puts(conn, play->frames);
    test_conn_wait_closed(conn);
}

static void end_when_done(struct play *play)
{
    if (play->changes >= play->until_changes && play->news >= play->until_news)
        cr_manager_stop(play->manager);
}

static void on_change(void *arg)
{
    struct play *play = arg;
    play->changes++;
    end_when_done(play);
}

static void on_news(void *arg)
{
    struct play *play = arg;
    play->news++;
    end_when_done(play);
}

static void give_up(void *manager)
{
    cr_manager_stop(manager);
}

static void check_metric(struct play *play, const char *line)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    cr_metrics_write(play->metrics, &text);
    if (!strstr(cr_buf_text(&text), line))
        fail_msg("no '%s' in %s", line, cr_buf_text(&text));
}

/* known, unknown: images that are, and are not, recognised at the end. */
struct scene {
    const char *rule;
    const char *frames;
    int changes, news;
    const char *known, *unknown;
    const char *metric;
};

static void play(const struct scene *scene)
{
    struct play p = {.frames = scene->frames, .until_changes = scene->changes, .until_news = scene->news};
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = serve, .arg = &p});
    struct cr_loop *loop = cr_loop_new();
    struct cr_client *client = fake_client(loop, test_server_port(server));
    p.metrics = cr_metrics_new();
    p.manager = cr_manager_new(loop, client, NULL, &(struct cr_manager_options){.workers = 1});
    const struct cr_catalogue_source_options options = {.manager = p.manager,
                                                        .client = client,
                                                        .loop = loop,
                                                        .metrics = p.metrics,
                                                        .ns = "certroll-system",
                                                        .on_change = on_change,
                                                        .on_news = on_news,
                                                        .arg = &p};
    struct cr_error err = {0};
    p.source = cr_catalogue_source_new(&options, &err);
    if (!p.source)
        fail_msg("%s", err.text);
    struct cr_timer *deadline = cr_timer_new(loop, give_up, p.manager);
    cr_timer_arm(deadline, 20 * 1000);
    /* A caller that began before goes on with what was effective then. */
    struct cr_catalogue_hold before = cr_catalogue_source_hold(p.source);
    if (!cr_manager_run(p.manager, &err))
        fail_msg("%s", err.text);
    if (p.changes != scene->changes || p.news != scene->news)
        fail_msg("%s: %d changes, %d news", scene->rule, p.changes, p.news);
    assert_null(cr_catalogue_by_image(before.catalogue, "acme/app:1"));
    cr_catalogue_hold_dispose(&before);

    struct cr_catalogue_hold hold = cr_catalogue_source_hold(p.source);
    if (!cr_catalogue_by_image(hold.catalogue, scene->known) ||
        (scene->unknown && cr_catalogue_by_image(hold.catalogue, scene->unknown)))
        fail_msg("%s: another catalogue is in force", scene->rule);
    check_metric(&p, scene->metric);
    cr_timer_free(deadline);
    cr_manager_free(p.manager);
    cr_catalogue_source_free(p.source);
    /* Held longer than its source lives. */
    assert_true(!hold.snapshot || cr_catalogue_by_image(hold.catalogue, scene->known));
    cr_catalogue_hold_dispose(&hold);
    cr_client_free(client);
    cr_loop_free(loop);
    cr_metrics_free(p.metrics);
    test_server_free(server);
}

#define VALID   "certroll_catalogue_override_valid 1"
#define REFUSED "certroll_catalogue_override_valid 0"

static void what_is_effective(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct scene scenes[] = {
        {"content that can be used is in force", PUT("2", GOOD), 1, 0, "acme/app:1", NULL, VALID},
        {"built-in entries stay beside it", PUT("2", GOOD), 1, 0, "nginx:1", "acme/other", VALID},
        {"a newer one replaces it", PUT("2", GOOD) PUT("3", BETTER), 2, 0, "acme/other:1", "acme/app:1", VALID},
        {"content that is wrong leaves the last good one", PUT("2", GOOD) PUT("3", INVALID), 1, 1, "acme/app:1",
         "acme/third", REFUSED},
        {"wrong from the start leaves the built-in one", PUT("2", INVALID), 0, 1, "nginx:1", "acme/third", REFUSED},
        {"mended, it is in force, and that is news", PUT("2", INVALID) PUT("3", GOOD), 1, 2, "acme/app:1", NULL, VALID},
        {"deleted, the built-in one is back", PUT("2", GOOD) GONE("3"), 2, 0, "nginx:1", "acme/app:1", VALID},
        {"deleted while it was wrong", PUT("2", GOOD) PUT("3", INVALID) GONE("4"), 2, 1, "nginx:1", "acme/app:1", VALID},
        {"empty, it overrides nothing", PUT_DATA("2", "\"data\":{}"), 1, 0, "nginx:1", "acme/app", VALID},
        {"without data, neither", FRAME("ADDED", "2", ""), 1, 0, "nginx:1", "acme/app", VALID},
        {"several documents", PUT_DATA("2", "\"data\":{\"a.yaml\":\"" GOOD "\",\"b.yaml\":\"schema: 1\\ncomponents: []\"}"),
         1, 0, "acme/app:1", NULL, VALID},
        {"a key that is no document", PUT_DATA("2", "\"data\":{\"a.yml\":\"" GOOD "\"}"), 0, 1, "nginx:1", "acme/app",
         REFUSED},
        {"binary data", PUT_DATA("2", "\"binaryData\":{\"a.yaml\":\"AAAA\"}"), 0, 1, "nginx:1", "acme/app", REFUSED},
        {"two documents with one name", PUT_DATA("2", "\"data\":{\"a.yaml\":\"" GOOD "\",\"b.yaml\":\"" BETTER "\"}"), 0,
         1, "nginx:1", "acme/app", REFUSED},
    };
    /* clang-format on */
    for (size_t i = 0; i < cr_array_len(scenes); i++)
        play(&scenes[i]);
}

/* Outside of a cluster, or when the flag is empty. */
static void without_a_namespace_or_a_name_nothing_is_watched(void **state)
{
    (void)state;
    static const struct {
        const char *ns, *name;
    } cases[] = {{NULL, NULL}, {NULL, "mine"}, {"certroll-system", ""}};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_metrics *metrics = cr_metrics_new();
        /* No manager to give an informer to. */
        const struct cr_catalogue_source_options options = {
            .metrics = metrics, .ns = cases[i].ns, .name = cases[i].name};
        struct cr_error err = {0};
        struct cr_catalogue_source *source = cr_catalogue_source_new(&options, &err);
        assert_non_null(source);
        struct cr_catalogue_hold hold = cr_catalogue_source_hold(source);
        assert_non_null(cr_catalogue_by_image(hold.catalogue, "nginx"));
        cr_catalogue_hold_dispose(&hold);
        cr_catalogue_source_free(source);
        cr_metrics_free(metrics);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_effective),
        cmocka_unit_test(without_a_namespace_or_a_name_nothing_is_watched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
