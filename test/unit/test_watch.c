#include "kube/watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "kube/object.h"
#include "support/fakeapi.h"
#include "support/manyvalues.h"

/* What the handler was notified of, as words: "replace", "+name@version", "-name", "synced", "bookmark@version",
 * "!Kind". */
struct record {
    struct cr_loop *loop;
    struct cr_buf words;
    const char *expected;
    char trouble[512]; /* the latest */
    int64_t retry_ms;
};

static void note(struct record *record, const char *fmt, const char *a, const char *b)
{
    if (record->words.len)
        cr_buf_puts(&record->words, " ");
    cr_buf_puts(&record->words, fmt);
    cr_buf_puts(&record->words, a);
    if (b)
        cr_buf_puts(&record->words, b);
    if (record->expected && strcmp(record->words.data, record->expected) == 0)
        cr_loop_stop(record->loop);
}

/* Names that begin with "x" are not. */
static bool wants(void *arg, const char *ns, const char *name)
{
    (void)arg;
    return strcmp(ns, "ns") != 0 || name[0] != 'x';
}

static void on_object(void *arg, struct cr_json *object)
{
    cr_autofree char *text =
        cr_asprintf("%s@%s", cr_or_empty(cr_obj_name(object)), cr_or_empty(cr_obj_resource_version(object)));
    assert_string_equal(cr_json_string_at(object, "kind"), "Secret");
    note(arg, "+", text, NULL);
    cr_json_free_secret(object);
}

static void on_delete(void *arg, const struct cr_json *object)
{
    note(arg, "-", cr_or_empty(cr_obj_name(object)), NULL);
}

static void on_unreadable(void *arg, const char *ns, const char *name)
{
    assert_string_equal(ns, "ns");
    note(arg, "?", name, NULL);
}

static void on_replace(void *arg)
{
    note(arg, "replace", "", NULL);
}

static void on_synced(void *arg)
{
    note(arg, "synced", "", NULL);
}

static void on_bookmark(void *arg, const char *version)
{
    note(arg, "bookmark@", version, NULL);
}

static void on_trouble(void *arg, const struct cr_error *err, int64_t retry_ms)
{
    struct record *record = arg;
    snprintf(record->trouble, sizeof record->trouble, "%s", err->text);
    record->retry_ms = retry_ms;
    note(record, "!", cr_error_kind_name(err->kind), NULL);
}

static void give_up(void *arg)
{
    cr_loop_stop(arg);
}

/* Runs a watch of Secrets against the script until it notified of what is expected. plugin: of the credentials, or
 * NULL. */
static void run_with(const char *rule, const struct fake_answer *script, size_t len, const char *plugin,
                     const char *expected, struct record *record)
{
    struct fake_api api;
    assert_true(fake_api_start(&api, script, len));
    CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
    CR_CLEANUP(cr_client) struct cr_client *client = fake_client_with(loop, api.port, plugin);
    *record = (struct record){.loop = loop, .expected = expected};
    const struct cr_watch_options options = {.resource = &cr_res_secrets, .ns = "ns", .secret = true};
    const struct cr_watch_handler handler = {.wants = wants,
                                             .on_object = on_object,
                                             .on_unreadable = on_unreadable,
                                             .on_delete = on_delete,
                                             .on_replace = on_replace,
                                             .on_synced = on_synced,
                                             .on_trouble = on_trouble,
                                             .on_bookmark = on_bookmark,
                                             .arg = record};
    struct cr_watch *watch = cr_watch_start(client, loop, &options, &handler);
    struct cr_timer *timer = cr_timer_new(loop, give_up, loop);
    cr_timer_arm(timer, 20 * 1000);
    cr_loop_run(loop);
    cr_timer_free(timer);
    cr_watch_free(watch);
    fake_api_stop(&api);
    cr_autofree char *words = cr_buf_steal(&record->words);
    if (api.problem[0])
        fail_msg("%s: %s", rule, api.problem);
    if (strcmp(words, expected) != 0)
        fail_msg("%s: notified '%s', not '%s' (%s)", rule, words, expected, record->trouble);
}

static void run(const char *rule, const struct fake_answer *script, size_t len, const char *expected,
                struct record *record)
{
    run_with(rule, script, len, NULL, expected, record);
}

#define OBJECT(name, version)                                                                                          \
    "{\"kind\":\"Secret\",\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\",\"resourceVersion\":\"" version     \
    "\"},\"data\":{\"k\":\"c2VjcmV0\"}}"
#define FRAME(type, object)  "{\"type\":\"" type "\",\"object\":" object "}\n"
#define ADDED(name, version) FRAME("ADDED", OBJECT(name, version))
#define BOOKMARK(version)    FRAME("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"" version "\"}}")
#define MARK(version)                                                                                                  \
    FRAME("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"" version                                                  \
                      "\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}")
#define STATUS(code, reason)                                                                                           \
    "{\"kind\":\"Status\",\"code\":" #code ",\"reason\":\"" reason "\",\"message\":\"told so\"}"
#define STREAM_LIST   "sendInitialEvents=true"
#define FROM(version) "&resourceVersion=" version " "
#define PAGES         "secrets?limit="

struct scene {
    const char *rule;
    const char *expected;
    const char *trouble; /* part of the latest trouble's text, or NULL */
    struct fake_answer script[6];
};

static size_t length(const struct scene *scene)
{
    size_t n = 0;
    while (n < cr_array_len(scene->script) && (scene->script[n].body || scene->script[n].status))
        n++;
    return n;
}

static void play(const struct scene *scenes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct record record;
        run(scenes[i].rule, scenes[i].script, length(&scenes[i]), scenes[i].expected, &record);
        if (scenes[i].trouble && !strstr(record.trouble, scenes[i].trouble))
            fail_msg("%s: the trouble is '%s'", scenes[i].rule, record.trouble);
    }
}

static void a_streaming_list_becomes_a_watch(void **state)
{
    (void)state;
    static const struct scene scenes[] = {
        {"the mark ends the list, events follow",
         "replace +a@1 synced +b@11 -b bookmark@15 !Transient +c@16",
         "",
         {{.expect = "resourceVersionMatch=NotOlderThan&resourceVersion= ",
           .body = ADDED("a", "1") MARK("10") FRAME("MODIFIED", OBJECT("b", "11")) FRAME("DELETED", OBJECT("b", "12"))
               BOOKMARK("15")},
          {.expect = FROM("15"), .refuse = STREAM_LIST, .body = ADDED("c", "16"), .hold = true}}},
        {"types of a later server are skipped",
         "replace synced +a@2",
         NULL,
         {{.expect = STREAM_LIST, .body = MARK("1") FRAME("RENAMED", OBJECT("x", "9")) ADDED("a", "2"), .hold = true}}},
    };
    play(scenes, cr_array_len(scenes));
}

static void what_is_not_wanted_is_passed_over_but_seen(void **state)
{
    (void)state;
    static const struct scene scenes[] = {
        {"in a streaming list and after it: the watch goes on behind it",
         "replace +a@1 synced !Transient +c@14",
         NULL,
         {{.expect = STREAM_LIST,
           .body = ADDED("x1", "2") ADDED("a", "1") MARK("10") FRAME("MODIFIED", OBJECT("x1", "11"))
               FRAME("DELETED", OBJECT("x1", "12"))},
          {.expect = FROM("12"), .body = ADDED("c", "14"), .hold = true}}},
        {"one that is cut is asked for again",
         "replace synced !Transient +c@14",
         NULL,
         {{.expect = STREAM_LIST,
           .body = MARK("10") "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Secret\",\"metadata\":{\"name\":\"x\","
                              "\"namespace\":\"ns\",\"resourceVersion\":\"11\"},\"da",
           .cut = true},
          {.expect = FROM("10"), .body = ADDED("x", "11") ADDED("c", "14"), .hold = true}}},
        {"written in another way: known once it is parsed",
         "replace synced !Transient +c@14",
         NULL,
         {{.expect = STREAM_LIST, .body = MARK("10") "{ \"type\":\"ADDED\",\"object\":" OBJECT("x", "13") "}\n"},
          {.expect = FROM("13"), .body = ADDED("c", "14"), .hold = true}}},
        {"in a page",
         "replace +a@1 synced +c@14",
         NULL,
         {{.expect = STREAM_LIST, .status = 400, .body = STATUS(400, "BadRequest")},
          {.expect = PAGES,
           .body = "{\"kind\":\"SecretList\",\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[" OBJECT(
               "x", "3") "," OBJECT("a", "1") "]}"},
          {.expect = FROM("9"), .body = ADDED("c", "14"), .hold = true}}},
    };
    play(scenes, cr_array_len(scenes));
}

static void a_cut_loses_nothing(void **state)
{
    (void)state;
    static const struct scene scenes[] = {
        {"in the middle of an event: it comes again",
         "replace synced +a@2 !Transient +b@3",
         NULL,
         {{.expect = STREAM_LIST, .body = MARK("1") ADDED("a", "2") "{\"type\":\"ADDED\",\"obj", .cut = true},
          {.expect = FROM("2"), .body = ADDED("b", "3"), .hold = true}}},
        {"the server ends properly, but in the middle of an event",
         "replace synced +a@2 !Transient +b@3",
         NULL,
         {{.expect = STREAM_LIST, .body = MARK("1") ADDED("a", "2") "{\"type\":\"DELETED\""},
          {.expect = FROM("2"), .body = ADDED("b", "3"), .hold = true}}},
        {"an event that is no JSON is asked for again",
         "replace synced !Transient +a@2",
         "watch /api/v1/namespaces/ns/secrets: an event cannot be read",
         {{.expect = STREAM_LIST, .body = MARK("1") "{\"type\":}\n" ADDED("no", "9")},
          {.expect = FROM("1"), .body = ADDED("a", "2"), .hold = true}}},
        {"an event that is too long is trouble, with the resource",
         "replace synced !Transient !Invalid +a@2",
         "watch /api/v1/namespaces/ns/secrets: an event is longer than 4194304 bytes",
         {{.expect = STREAM_LIST, .body = MARK("1")},
          {.expect = FROM("1"), .fill = 5 * 1024 * 1024, .body = "\n"},
          {.expect = FROM("1"), .body = ADDED("a", "2"), .hold = true}}},
    };
    play(scenes, cr_array_len(scenes));
}

static void a_list_that_is_cut_short_is_never_taken_for_the_whole(void **state)
{
    (void)state;
    static const struct scene scenes[] = {
        {"a streaming list without its mark, broken off",
         "replace +a@1 !Transient replace +a@1 synced",
         NULL,
         {{.expect = STREAM_LIST, .body = ADDED("a", "1"), .cut = true},
          {.expect = STREAM_LIST, .body = ADDED("a", "1") MARK("5"), .hold = true}}},
        {"twice without its mark: in pages",
         "replace +a@1 !Transient replace !Transient replace +a@1 synced",
         "the list ended before it was complete",
         {{.expect = STREAM_LIST, .body = ADDED("a", "1")},
          {.expect = STREAM_LIST, .body = "\n"},
          {.expect = PAGES,
           .body = "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{\"metadata\":{\"name\":\"a\","
                   "\"resourceVersion\":\"1\"}}]}"},
          {.expect = FROM("7"), .body = "\n", .hold = true}}},
        {"a page cut in the middle",
         "!Transient replace synced",
         "a list cannot be read",
         {{.status = 422, .body = STATUS(422, "Invalid")},
          {.expect = PAGES, .body = "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{\"metadata\":"},
          {.expect = PAGES, .body = "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":null}"},
          {.expect = FROM("7"), .body = "\n", .hold = true}}},
        {"a page that is no list",
         "!Transient replace synced",
         "the list has no items",
         {{.status = 400, .body = STATUS(400, "BadRequest")},
          {.expect = PAGES, .body = "{\"metadata\":{\"resourceVersion\":\"7\"}}"},
          {.expect = PAGES, .body = "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}"},
          {.expect = FROM("7"), .body = "\n", .hold = true}}},
        {"an object without a name",
         "replace !Transient replace synced",
         "without a name",
         {{.expect = STREAM_LIST, .body = FRAME("ADDED", "{}")},
          {.expect = STREAM_LIST, .body = MARK("5"), .hold = true}}},
    };
    play(scenes, cr_array_len(scenes));
}

static void servers_without_streaming_lists_are_listed_in_pages(void **state)
{
    (void)state;
#define ITEM(name) "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"1\"}}"
    static const struct scene scenes[] = {
        {"refused with 422, and not asked again",
         "replace +a@1 +b@1 synced +c@8 !Gone replace synced",
         NULL,
         {{.expect = STREAM_LIST, .status = 422, .body = STATUS(422, "Invalid")},
          {.expect = PAGES "500 ",
           .body = "{\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"t+/=\"},\"items\":[" ITEM("a") "]}"},
          {.expect = "limit=500&continue=t%2B%2F%3D ",
           .body = "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[" ITEM("b") "]}"},
          {.expect = FROM("7"), .body = ADDED("c", "8") FRAME("ERROR", STATUS(410, "Expired"))},
          {.expect = PAGES, .body = "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[]}"},
          {.expect = FROM("9"), .body = "\n", .hold = true}}},
        {"a bookmark without the mark: sendInitialEvents was ignored",
         "replace +a@1 !Transient replace synced",
         "ignores sendInitialEvents",
         {{.expect = STREAM_LIST, .body = ADDED("a", "1") BOOKMARK("5")},
          {.expect = PAGES, .body = "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[]}"},
          {.expect = FROM("9"), .body = "\n", .hold = true}}},
        {"a token that expired: from the first page",
         "replace +a@1 !Gone replace +a@1 synced",
         NULL,
         {{.status = 422, .body = STATUS(422, "Invalid")},
          {.body = "{\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"t\"},\"items\":[" ITEM("a") "]}"},
          {.expect = "continue=t ", .status = 410, .body = STATUS(410, "Expired")},
          {.expect = PAGES,
           .refuse = "continue",
           .body = "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[" ITEM("a") "]}"},
          {.expect = FROM("9"), .body = "\n", .hold = true}}},
        {"trouble between pages goes on with the next page",
         "replace +a@1 !Transient +b@1 synced",
         NULL,
         {{.status = 422, .body = STATUS(422, "Invalid")},
          {.body = "{\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"t\"},\"items\":[" ITEM("a") "]}"},
          {.expect = "continue=t ", .status = 500, .body = STATUS(500, "InternalError")},
          {.expect = "continue=t ", .body = "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[" ITEM("b") "]}"},
          {.expect = FROM("7"), .body = "\n", .hold = true}}},
    };
    play(scenes, cr_array_len(scenes));
}

/* Owned: an object with so many more values. */
static char *object_of(size_t values, const char *before, const char *behind)
{
    cr_autofree char *first = cr_asprintf("%s{\"kind\":\"Secret\",\"metadata\":{\"name\":\"big\",\"namespace\":\"ns\","
                                          "\"resourceVersion\":\"13\"},\"spec\":",
                                          before);
    cr_autofree char *last = cr_asprintf("}%s", behind);
    return text_of_many_values(first, values, last);
}

/* Nothing is said of it but that it is there, and the watch goes on behind it on the same connection. */
static void an_object_that_is_too_large_ends_no_watch(void **state)
{
    (void)state;
    cr_autofree char *many =
        object_of(CR_OBJECT_VALUES_MAX + 1, MARK("10") "{\"type\":\"ADDED\",\"object\":", "}\n" ADDED("c", "14"));
    cr_autofree char *gone =
        object_of(CR_OBJECT_VALUES_MAX + 1, MARK("10") "{\"type\":\"DELETED\",\"object\":", "}\n" ADDED("c", "14"));
    cr_autofree char *bytes =
        object_of(3 * 1024 * 1024, MARK("10") "{\"type\":\"ADDED\",\"object\":", "}\n" ADDED("c", "14"));
    cr_autofree char *page = object_of(
        CR_OBJECT_VALUES_MAX + 1, "{\"metadata\":{\"resourceVersion\":\"13\"},\"items\":[", "," OBJECT("a", "1") "]}");
    const struct scene scenes[] = {
        {"too many values", "replace synced ?big +c@14", NULL, {{.expect = STREAM_LIST, .body = many, .hold = true}}},
        {"too many values, deleted",
         "replace synced -big +c@14",
         NULL,
         {{.expect = STREAM_LIST, .body = gone, .hold = true}}},
        {"too many bytes", "replace synced ?big +c@14", NULL, {{.expect = STREAM_LIST, .body = bytes, .hold = true}}},
        {"in a page",
         "replace ?big +a@1 synced",
         NULL,
         {{.expect = STREAM_LIST, .status = 400, .body = STATUS(400, "BadRequest")},
          {.expect = PAGES, .body = page},
          {.expect = FROM("13"), .body = "\n", .hold = true}}},
    };
    play(scenes, cr_array_len(scenes));
}

static void what_is_too_old_is_listed_again(void **state)
{
    (void)state;
    static const struct scene scenes[] = {
        {"an ERROR event",
         "replace +a@1 synced !Gone replace +b@12 synced",
         "the watch ended: told so",
         {{.expect = STREAM_LIST,
           .body = ADDED("a", "1") MARK("5") FRAME("ERROR", STATUS(410, "Expired")) ADDED("x", "9")},
          {.expect = STREAM_LIST, .body = ADDED("b", "12") MARK("13"), .hold = true}}},
        {"HTTP 410",
         "replace synced !Transient !Gone replace synced",
         NULL,
         {{.expect = STREAM_LIST, .body = MARK("5")},
          {.expect = FROM("5"), .status = 410, .body = STATUS(410, "Gone")},
          {.expect = STREAM_LIST, .body = MARK("13"), .hold = true}}},
        {"a version that the server cannot read",
         "replace synced !Transient !Invalid replace synced",
         NULL,
         {{.expect = STREAM_LIST, .body = MARK("5")},
          {.expect = FROM("5"), .status = 400, .body = STATUS(400, "BadRequest")},
          {.expect = STREAM_LIST, .body = MARK("13"), .hold = true}}},
    };
    play(scenes, cr_array_len(scenes));
}

static void other_trouble_keeps_the_place(void **state)
{
    (void)state;
    static const struct scene scenes[] = {
        {"an ERROR event that is not about age",
         "replace synced !Transient +a@6",
         NULL,
         {{.expect = STREAM_LIST, .body = MARK("5") FRAME("ERROR", STATUS(500, "InternalError"))},
          {.expect = FROM("5"), .body = ADDED("a", "6"), .hold = true}}},
        {"forbidden says what to grant",
         "!Forbidden replace synced",
         "told so; grant get, list and watch on secrets in namespace ns",
         {{.status = 403, .body = STATUS(403, "Forbidden")}, {.expect = STREAM_LIST, .body = MARK("5"), .hold = true}}},
        {"an unknown resource asks for its CRD",
         "!NotFound replace synced",
         "is the CRD installed?",
         {{.status = 404, .body = "404 page not found\n"}, {.expect = STREAM_LIST, .body = MARK("5"), .hold = true}}},
        {"unauthorized",
         "!Unauthorized replace synced",
         "told so",
         {{.status = 401, .body = STATUS(401, "Unauthorized")},
          {.expect = STREAM_LIST, .body = MARK("5"), .hold = true}}},
    };
    play(scenes, cr_array_len(scenes));
}

static void retry_after_is_honoured_without_listing_again(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect = STREAM_LIST, .body = MARK("5")},
        {.expect = FROM("5"), .status = 429, .header = "Retry-After: 1\r\n", .body = STATUS(429, "TooManyRequests")},
        {.expect = FROM("5"), .refuse = STREAM_LIST, .body = ADDED("a", "6"), .hold = true},
    };
    struct record record;
    run("Retry-After", script, cr_array_len(script), "replace synced !Transient !Throttled +a@6", &record);
    assert_true(record.retry_ms >= 1000 && record.retry_ms < 5000);
}

/* The loop ends where it stands; nothing may be left or touched afterwards. */
static void a_watch_can_be_freed_in_any_state(void **state)
{
    (void)state;
    static const struct scene scenes[] = {
        {"in the list", "replace +a@1", NULL, {{.body = ADDED("a", "1") "{\"half", .hold = true}}},
        {"in an event", "replace synced", NULL, {{.body = MARK("5") "{\"type\":\"ADDED\",", .hold = true}}},
        {"waiting to try again", "!Forbidden", NULL, {{.status = 403, .body = STATUS(403, "Forbidden")}}},
        {"between pages",
         "replace +a@1",
         NULL,
         {{.status = 422, .body = STATUS(422, "Invalid")},
          {.body = "{\"metadata\":{\"continue\":\"t\"},\"items\":[{\"kind\":\"Secret\",\"metadata\":{\"name\":\"a\","
                   "\"resourceVersion\":\"1\"}}]}"},
          {.body = "{", .hold = true}}},
    };
    play(scenes, cr_array_len(scenes));
    CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
    CR_CLEANUP(cr_client) struct cr_client *client = fake_client(loop, 1);
    const struct cr_watch_options options = {.resource = &cr_res_secrets};
    const struct cr_watch_handler handler = {.on_object = on_object};
    cr_watch_free(cr_watch_start(client, loop, &options, &handler)); /* never ran */
    cr_watch_free(NULL);
}

static void a_watch_waits_for_a_plugin_and_has_it_run_again_after_a_refusal(void **state)
{
    (void)state;
    char path[] = "/tmp/certroll-runs-XXXXXX";
    cr_autofd int fd = mkstemp(path);
    cr_autofree char *plugin =
        cr_asprintf("sleep 0.2; echo >> %s; n=$(wc -l < %s); [ $n != 1 ] || exit 3; " FAKE_CREDENTIAL, path, path);
    static const struct fake_answer script[] = {
        {.has = "Authorization: Bearer t2\r\n", .status = 401, .body = STATUS(401, "Unauthorized")},
        {.has = "Authorization: Bearer t3\r\n", .body = ADDED("a", "1") MARK("2"), .hold = true},
    };
    struct record record;
    run_with("plugin", script, cr_array_len(script), plugin, "!Unauthorized !Unauthorized replace +a@1 synced",
             &record);
    unlink(path);
}

static void a_watch_that_waits_for_a_plugin_can_be_ended(void **state)
{
    (void)state;
    CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
    CR_CLEANUP(cr_client) struct cr_client *client = fake_client_with(loop, 1, "exec sleep 600");
    struct record record = {.loop = loop};
    const struct cr_watch_options options = {.resource = &cr_res_secrets, .ns = "ns"};
    const struct cr_watch_handler handler = {.on_trouble = on_trouble, .arg = &record};
    CR_CLEANUP(cr_watch) struct cr_watch *watch = cr_watch_start(client, loop, &options, &handler);
    struct cr_timer *timer = cr_timer_new(loop, give_up, loop);
    cr_timer_arm(timer, 200);
    cr_loop_run(loop);
    cr_timer_free(timer);
    assert_int_equal(record.words.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_streaming_list_becomes_a_watch),
        cmocka_unit_test(what_is_not_wanted_is_passed_over_but_seen),
        cmocka_unit_test(a_cut_loses_nothing),
        cmocka_unit_test(a_list_that_is_cut_short_is_never_taken_for_the_whole),
        cmocka_unit_test(servers_without_streaming_lists_are_listed_in_pages),
        cmocka_unit_test(an_object_that_is_too_large_ends_no_watch),
        cmocka_unit_test(what_is_too_old_is_listed_again),
        cmocka_unit_test(other_trouble_keeps_the_place),
        cmocka_unit_test(retry_after_is_honoured_without_listing_again),
        cmocka_unit_test(a_watch_can_be_freed_in_any_state),
        cmocka_unit_test(a_watch_waits_for_a_plugin_and_has_it_run_again_after_a_refusal),
        cmocka_unit_test(a_watch_that_waits_for_a_plugin_can_be_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
