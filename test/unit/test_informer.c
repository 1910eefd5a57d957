#include "runtime/informer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kube/object.h"
#include "support/fakeapi.h"
#include "support/manyvalues.h"

/* What an informer said, as words: "+ns/name", "~ns/name" for a change, "?ns/name" when it is too large
 * to be read, "-ns/name". */
struct said {
    struct cr_loop *loop;
    struct cr_buf words;
    const char *expected;
};

static char too_large[] = "too large";

static void on_change(void *arg, const struct cr_change *change)
{
    struct said *said = arg;
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *before = cr_packed_open(change->before);
    cr_autofree char *key = cr_obj_key(change->after ? change->after->json : before->json);
    cr_autofree char *changed_key = cr_asprintf("%s/%s", change->ns, change->name);
    assert_string_equal(changed_key, key);
    const char *made = change->after ? change->after->extra : before->extra;
    bool unread = change->after && cr_streq(made, too_large);
    if (!cr_streq(made, too_large))
        assert_string_equal(made, "made by project");
    cr_buf_printf(&said->words, "%s%s ", unread ? "?" : !before ? "+" : !change->after ? "-" : "~", key);
    if (strcmp(said->words.data, said->expected) == 0)
        cr_loop_stop(said->loop);
}

/* Objects named "hidden…" are not kept. */
static bool project(void *arg, struct cr_json *json, struct cr_snapshot *snapshot)
{
    (void)arg;
    assert_null(cr_json_at(json, "metadata", "managedFields"));
    assert_ptr_equal(json, snapshot->json);
    snapshot->extra = cr_strdup("made by project");
    snapshot->free_extra = free;
    return !cr_json_at(json, "metadata", "labels", "hidden");
}

static void project_unreadable(void *arg, struct cr_snapshot *snapshot)
{
    (void)arg;
    assert_true(snapshot->secret);
    snapshot->extra = too_large;
}

static void give_up(void *loop)
{
    cr_loop_stop(loop);
}

struct scene {
    const char *rule;
    const char *expected;
    size_t kept;
    struct fake_answer script[4];
    bool marks; /* what is too large to be read */
};

#define OBJECT(name, version, more)                                                                                    \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\",\"resourceVersion\":\"" version                         \
    "\",\"managedFields\":[{}]" more "}}"
#define FRAME(type, object)         "{\"type\":\"" type "\",\"object\":" object "}\n"
#define ADDED(name, version)        FRAME("ADDED", OBJECT(name, version, ""))
#define HIDDEN(type, name, version) FRAME(type, OBJECT(name, version, ",\"labels\":{\"hidden\":\"x\"}"))
#define MARK(version)                                                                                                  \
    FRAME("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"" version                                                  \
                      "\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}")
#define GONE FRAME("ERROR", "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}")

static void play(const struct scene *scene)
{
    struct fake_api api;
    size_t len = 0;
    while (len < cr_array_len(scene->script) && scene->script[len].body)
        len++;
    assert_true(fake_api_start(&api, scene->script, len));
    CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
    CR_CLEANUP(cr_client) struct cr_client *client = fake_client(loop, api.port);
    struct said said = {.loop = loop, .expected = scene->expected};
    const struct cr_informer_options options = {
        .watch = {.resource = &cr_res_secrets, .ns = "ns", .secret = true},
        .project = project,
        .project_unreadable = scene->marks ? project_unreadable : NULL,
        .on_change = on_change,
        .arg = &said,
    };
    struct cr_informer *informer = cr_informer_new(client, loop, &options);
    assert_false(cr_informer_synced(informer));
    cr_informer_start(informer);
    struct cr_timer *deadline = cr_timer_new(loop, give_up, loop);
    cr_timer_arm(deadline, 20 * 1000);
    cr_loop_run(loop);
    cr_timer_free(deadline);
    cr_informer_stop(informer);
    if (strcmp(cr_buf_text(&said.words), scene->expected) != 0)
        fail_msg("%s: said '%s'", scene->rule, cr_buf_text(&said.words));
    assert_int_equal(cr_store_len(cr_informer_store(informer)), scene->kept);
    cr_informer_free(informer);
    cr_buf_dispose(&said.words);
    fake_api_stop(&api);
}

static void says_what_changed_and_only_that(void **state)
{
    (void)state;
    static const struct scene scenes[] = {
        {"added, changed, deleted",
         "+ns/a ~ns/a -ns/a ",
         0,
         {{.body =
               ADDED("a", "1") MARK("5") FRAME("MODIFIED", OBJECT("a", "6", "")) FRAME("DELETED", OBJECT("a", "7", "")),
           .hold = true}}},
        {"the same version again is no change",
         "+ns/a +ns/b ",
         2,
         {{.body = ADDED("a", "1") MARK("5") FRAME("MODIFIED", OBJECT("a", "1", "")) ADDED("b", "6"), .hold = true}}},
        {"deleted, but never seen",
         "+ns/b ",
         1,
         {{.body = MARK("5") FRAME("DELETED", OBJECT("a", "6", "")) ADDED("b", "7"), .hold = true}}},
        {"what vanished in a gap is deleted, what is the same is not told",
         "+ns/a +ns/b +ns/c ~ns/b +ns/d -ns/c ",
         3,
         {{.body = ADDED("a", "1") ADDED("b", "2") ADDED("c", "3") MARK("5") GONE},
          {.body = ADDED("a", "1") ADDED("b", "9") ADDED("d", "8") MARK("10"), .hold = true}}},
        {"a list that breaks off deletes nothing",
         "+ns/a +ns/b +ns/c ",
         3,
         {{.body = ADDED("a", "1") ADDED("b", "2") MARK("5") GONE},
          {.body = ADDED("a", "1"), .cut = true},
          {.body = ADDED("a", "1") ADDED("b", "2") MARK("10") ADDED("c", "11"), .hold = true}}},
        {"what came in the list that broke off does not count for the next one",
         "+ns/a +ns/b -ns/a ",
         1,
         {{.body = ADDED("a", "1") ADDED("b", "2") MARK("5") GONE},
          {.body = ADDED("a", "1"), .cut = true},
          {.body = ADDED("b", "2") MARK("10"), .hold = true}}},
        {"what is not kept does not exist",
         "+ns/a -ns/a +ns/b ",
         1,
         {{.body = HIDDEN("ADDED", "x", "1") ADDED("a", "2") MARK("5") HIDDEN("MODIFIED", "a", "6")
               HIDDEN("DELETED", "a", "7") ADDED("b", "8"),
           .hold = true}}},
    };
    for (size_t i = 0; i < cr_array_len(scenes); i++)
        play(&scenes[i]);
}

/* Owned: an event of a Secret "a" with more values than are read. */
static char *too_many_values(const char *before, const char *version, const char *behind)
{
    cr_autofree char *first =
        cr_asprintf("%s{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Secret\",\"metadata\":{\"name\":\"a\","
                    "\"namespace\":\"ns\",\"resourceVersion\":\"%s\"},\"spec\":",
                    before, version);
    cr_autofree char *last = cr_asprintf("}}\n%s", behind);
    return text_of_many_values(first, CR_OBJECT_VALUES_MAX, last);
}

static void what_is_too_large_to_be_read_has_a_marker_where_one_is_made(void **state)
{
    (void)state;
    cr_autofree char *later = too_many_values(ADDED("a", "1") MARK("5"), "6", ADDED("b", "7"));
    cr_autofree char *first = too_many_values("", "1", MARK("5") ADDED("b", "7"));
    cr_autofree char *again = too_many_values("", "1", MARK("5") FRAME("MODIFIED", OBJECT("a", "6", "")));
    cr_autofree char *gone = too_many_values("", "1", MARK("5") ADDED("b", "7") GONE);
    const struct scene scenes[] = {
        {"without one, what was read before stays", "+ns/a +ns/b ", 2, {{.body = later, .hold = true}}, false},
        {"nor is there one of what was never read", "+ns/b ", 1, {{.body = first, .hold = true}}, false},
        {"in place of what was read before", "+ns/a ?ns/a +ns/b ", 2, {{.body = later, .hold = true}}, true},
        {"of what was never read", "?ns/a +ns/b ", 2, {{.body = first, .hold = true}}, true},
        {"until it can be read", "?ns/a ~ns/a ", 1, {{.body = again, .hold = true}}, true},
        {"until it is gone",
         "?ns/a +ns/b ~ns/b -ns/a ",
         1,
         {{.body = gone}, {.body = ADDED("b", "8") MARK("9"), .hold = true}},
         true},
    };
    for (size_t i = 0; i < cr_array_len(scenes); i++)
        play(&scenes[i]);
}

/* Stops the loop once the informer says what is expected. */
struct wanted {
    struct cr_loop *loop;
    struct cr_informer *informer;
    struct cr_timer *poll;
    bool healthy;
    const char *says;
    struct cr_error err; /* the latest */
};

static bool as_wanted(struct wanted *wanted)
{
    wanted->err = (struct cr_error){0};
    return cr_informer_healthy(wanted->informer, &wanted->err) == wanted->healthy &&
           strncmp(wanted->err.text, wanted->says, strlen(wanted->says)) == 0;
}

static void poll_health(void *arg)
{
    struct wanted *wanted = arg;
    if (as_wanted(wanted))
        cr_loop_stop(wanted->loop);
    else
        cr_timer_arm(wanted->poll, 5);
}

static void health_names_what_a_person_must_do(void **state)
{
    (void)state;
    static const struct {
        struct fake_answer answer;
        bool healthy;
        const char *says;
    } cases[] = {
        {{.status = 403, .body = "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no\"}"},
         false,
         "secrets: not in sync: watch /api/v1/secrets: no; grant get, list and watch on secrets in all namespaces"},
        {{.status = 500, .body = "{\"kind\":\"Status\",\"message\":\"oops\"}"},
         false,
         "secrets: not in sync: watch /api/v1/secrets: oops"},
        {{.body = MARK("5") FRAME("ERROR", "{\"code\":403,\"message\":\"no more\"}")},
         false,
         "secrets: watch interrupted: "},
        {{.body = MARK("5") FRAME("ERROR", "{\"code\":500,\"message\":\"a moment\"}")}, true, ""},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fake_api api;
        assert_true(fake_api_start(&api, &cases[i].answer, 1));
        CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
        CR_CLEANUP(cr_client) struct cr_client *client = fake_client(loop, api.port);
        const struct cr_informer_options options = {.watch = {.resource = &cr_res_secrets}};
        CR_CLEANUP(cr_informer) struct cr_informer *informer = cr_informer_new(client, loop, &options);
        cr_informer_start(informer);
        struct wanted wanted = {.loop = loop, .informer = informer, .healthy = cases[i].healthy, .says = cases[i].says};
        wanted.poll = cr_timer_new(loop, poll_health, &wanted);
        cr_timer_arm(wanted.poll, 0);
        struct cr_timer *deadline = cr_timer_new(loop, give_up, loop);
        cr_timer_arm(deadline, 20 * 1000);
        cr_loop_run(loop);
        cr_timer_free(deadline);
        cr_timer_free(wanted.poll);
        if (!as_wanted(&wanted))
            fail_msg("%zu: '%s'", i, wanted.err.text);
        fake_api_stop(&api);
    }
}

struct refused {
    struct cr_loop *loop;
    struct cr_informer *informer;
    struct cr_buf words;
    const char *expected;
};

static void say_refused(void *arg)
{
    struct refused *refused = arg;
    struct cr_error err = {0};
    cr_buf_puts(&refused->words, cr_informer_refused(refused->informer, &err) ? "refused " : "seen ");
    if (strcmp(cr_buf_text(&refused->words), refused->expected) == 0)
        cr_loop_stop(refused->loop);
}

static void a_refusal_is_notified_when_it_begins_and_when_it_ends(void **state)
{
    (void)state;
#define NO                                                                                                             \
    {                                                                                                                  \
        .status = 403, .body = "{\"kind\":\"Status\",\"reason\":\"Forbidden\"}"                                        \
    }
#define SENSELESS                                                                                                      \
    {                                                                                                                  \
        .status = 400, .body = "{\"kind\":\"Status\",\"reason\":\"BadRequest\"}"                                       \
    }
    static const struct {
        const char *expected;
        struct fake_answer script[5];
        size_t len;
    } cases[] = {
        {"refused ", {NO}, 1},
        {"refused seen ", {NO, NO, {.body = MARK("5"), .hold = true}}, 3},
        {"refused seen refused ", {NO, {.body = MARK("5") FRAME("ERROR", "{\"code\":403}")}}, 2},
        /* An API server that cannot be asked has taken nothing back. */
        {"refused seen ", {NO, {.status = 500, .body = "{}"}, NO, {.body = MARK("5"), .hold = true}}, 4},
        {"refused ", {SENSELESS, SENSELESS}, 2},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fake_api api;
        assert_true(fake_api_start(&api, cases[i].script, cases[i].len));
        CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
        CR_CLEANUP(cr_client) struct cr_client *client = fake_client(loop, api.port);
        struct refused refused = {.loop = loop, .expected = cases[i].expected};
        const struct cr_informer_options options = {
            .watch = {.resource = &cr_res_pods}, .on_refused = say_refused, .arg = &refused};
        CR_CLEANUP(cr_informer) struct cr_informer *informer = cr_informer_new(client, loop, &options);
        refused.informer = informer;
        cr_informer_start(informer);
        struct cr_timer *deadline = cr_timer_new(loop, give_up, loop);
        cr_timer_arm(deadline, 20 * 1000);
        cr_loop_run(loop);
        cr_timer_free(deadline);
        assert_string_equal(cr_buf_text(&refused.words), cases[i].expected);
        cr_buf_dispose(&refused.words);
        fake_api_stop(&api);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_changed_and_only_that),
        cmocka_unit_test(what_is_too_large_to_be_read_has_a_marker_where_one_is_made),
        cmocka_unit_test(health_names_what_a_person_must_do),
        cmocka_unit_test(a_refusal_is_notified_when_it_begins_and_when_it_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
