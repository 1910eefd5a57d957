#include "kube/event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strvec.h"
#include "support/fakeapi.h"

static void *run_loop(void *loop)
{
    cr_loop_run(loop);
    return NULL;
}

/* A recorder and the API server that it writes to. */
struct desk {
    struct fake_api api;
    struct cr_loop *loop;
    pthread_t thread;
    struct cr_client *client;
    struct cr_recorder *recorder;
};

static void desk_open(struct desk *desk, const struct fake_answer *script, size_t len)
{
    assert_true(fake_api_start(&desk->api, script, len));
    desk->loop = cr_loop_new();
    desk->client = fake_client(desk->loop, desk->api.port);
    desk->recorder = cr_recorder_new(desk->client, "certroll");
    assert_int_equal(pthread_create(&desk->thread, NULL, run_loop, desk->loop), 0);
}

static void desk_close(struct desk *desk)
{
    cr_loop_stop(desk->loop);
    pthread_join(desk->thread, NULL);
    fake_api_stop(&desk->api);
    cr_recorder_free(desk->recorder);
    cr_client_free(desk->client);
    cr_loop_free(desk->loop);
    if (desk->api.problem[0])
        fail_msg("%s", desk->api.problem);
}

/* Emits the events against the script; all answers of it must be used. */
static void emit(const struct fake_answer *script, size_t script_len, const struct cr_event *events, size_t len)
{
    struct desk desk;
    desk_open(&desk, script, script_len);
    for (size_t i = 0; i < len; i++)
        cr_recorder_emit(desk.recorder, &events[i]);
    assert_int_equal(atomic_load(&desk.api.answered), script_len);
    desk_close(&desk);
}

static struct cr_event about_web(const char *reason, const char *message)
{
    return (struct cr_event){.api_version = "v1",
                             .kind = "Pod",
                             .ns = "ns",
                             .name = "web",
                             .uid = "u",
                             .reason = reason,
                             .message = message};
}

static void repeats_are_dropped_and_others_are_not(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect = "POST /api/v1/namespaces/ns/events?fieldManager=certroll ",
         .has = "\"reason\":\"A\",\"message\":\"one\"",
         .body = "{}"},
        {.has = "\"type\":\"Warning\",\"reason\":\"A\",\"message\":\"two\"", .body = "{}"},
        {.has = "\"reason\":\"B\"", .body = "{}"},
        {.has = "\"uid\":\"other\"", .body = "{}"},
    };
    struct cr_event events[] = {
        about_web("A", "one"), about_web("A", "one"), about_web("A", "two"),
        about_web("B", "one"), about_web("A", "one"), about_web("B", "one"),
    };
    events[2].warning = true;
    events[4].uid = "other";
    emit(script, cr_array_len(script), events, cr_array_len(events));
}

static void add_numbers(struct cr_strvec *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cr_autofree char *number = cr_asprintf("%zu", i);
        cr_strvec_add(out, number);
    }
}

static void of_one_reason_about_one_object_there_are_at_most_100(void **state)
{
    (void)state;
    enum { MOST = 100 };
    static struct fake_answer script[MOST + 2];
    struct cr_event events[MOST + 4];
    CR_CLEANUP(cr_strvec) struct cr_strvec messages = {0};
    add_numbers(&messages, MOST + 2);
    for (size_t i = 0; i < MOST + 2; i++)
        events[i] = about_web("A", messages.items[i]);
    events[MOST + 2] = about_web("A", "of another");
    events[MOST + 2].uid = "other";
    events[MOST + 3] = about_web("B", "of another reason");
    for (size_t i = 0; i < MOST + 2; i++)
        script[i].body = "{}";
    script[MOST].has = "of another\"";
    script[MOST + 1].has = "of another reason";
    emit(script, MOST + 2, events, MOST + 4);
}

/* With some 2,048 remembered, the oldest is the one that is forgotten. */
static void of_thousands_only_the_oldest_may_come_again(void **state)
{
    (void)state;
    enum { MANY = 2048 + 1 };
    static struct fake_answer script[MANY + 1];
    struct cr_event *events = cr_calloc(2 * MANY, sizeof *events);
    CR_CLEANUP(cr_strvec) struct cr_strvec messages = {0};
    add_numbers(&messages, MANY);
    for (size_t i = 0; i <= MANY; i++)
        script[i].body = "{}";
    for (size_t i = 0; i < MANY; i++) { /* then again, the newest first */
        events[i] = about_web("A", messages.items[i]);
        events[i].uid = messages.items[i / 50];
        events[2 * MANY - 1 - i] = events[i];
    }
    script[MANY].has = "\"message\":\"0\"";
    emit(script, MANY + 1, events, 2 * MANY);
    free(events);
}

static void one_that_could_not_be_written_may_be_tried_again(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.status = 500, .body = "{}"},
        {.expect = "POST", .body = "{}"},
    };
    const struct cr_event event = about_web("A", "one");
    const struct cr_event events[] = {event, event, event};
    emit(script, cr_array_len(script), events, cr_array_len(events));
}

static void objects_without_a_namespace_have_theirs_in_default(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect = "POST /api/v1/namespaces/default/events", .has = "\"namespace\":\"default\"", .body = "{}"}};
    struct cr_event event = about_web("A", "one");
    event.kind = "Node";
    event.ns = NULL;
    emit(script, 1, &event, 1);
}

/* 1024 bytes are the API's limit, the dots within it; "é" is two. */
static void a_long_message_is_cut_between_characters(void **state)
{
    (void)state;
    char message[1200];
    char expected[1100];
    memset(message, 'x', 1020);
    strcpy(message + 1020, "\xc3\xa9 and more");
    snprintf(expected, sizeof expected, "\"message\":\"%.1020s...\"", message);
    const struct fake_answer script[] = {{.has = expected, .body = "{}"}};
    const struct cr_event event = about_web("A", message);
    emit(script, 1, &event, 1);
}

/* A terminal would obey them (CVE-2021-25743). */
static void control_characters_of_a_message_are_not_shown(void **state)
{
    (void)state;
    const struct fake_answer script[] = {{.has = "\"message\":\"a?[2Jb?c\"", .body = "{}"}};
    const struct cr_event event = about_web("A", "a\x1b[2Jb\nc");
    emit(script, 1, &event, 1);
}

static void nobody_to_record_or_nothing_to_name_is_nothing(void **state)
{
    (void)state;
    struct cr_event nameless = about_web("A", "one");
    nameless.name = NULL;
    cr_recorder_emit(NULL, &nameless);
    emit(NULL, 0, &nameless, 1);
    cr_recorder_free(NULL);
}

static void count(void *arg)
{
    ++*(int *)arg;
}

/* In their order, each once, when it is asked for; what was not sent by the end is dropped with the recorder. */
static void deferred_ones_wait_until_they_are_sent(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.has = "\"reason\":\"A\"", .body = "{}"},
        {.has = "\"reason\":\"B\"", .status = 500, .body = "{}"},
        {.has = "\"reason\":\"B\"", .body = "{}"},
    };
    struct desk desk;
    int told = 0;
    desk_open(&desk, script, cr_array_len(script));
    cr_recorder_defer(desk.recorder, count, &told);
    const struct cr_event a = about_web("A", "one");
    const struct cr_event b = about_web("B", "one");
    cr_recorder_emit(desk.recorder, &a);
    cr_recorder_emit(desk.recorder, &a); /* a repeat */
    cr_recorder_emit(desk.recorder, &b);
    assert_int_equal(told, 2);
    assert_int_equal(atomic_load(&desk.api.answered), 0);
    assert_true(cr_recorder_send(desk.recorder));
    assert_false(cr_recorder_send(desk.recorder));
    assert_false(cr_recorder_send(desk.recorder));
    assert_int_equal(atomic_load(&desk.api.answered), 2);
    cr_recorder_emit(desk.recorder, &b); /* could not be written, so it is no repeat */
    assert_false(cr_recorder_send(desk.recorder));
    assert_int_equal(atomic_load(&desk.api.answered), 3);
    cr_recorder_emit(desk.recorder, &a); /* is one */
    const struct cr_event c = about_web("C", "one");
    cr_recorder_emit(desk.recorder, &c); /* never sent */
    assert_int_equal(told, 4);
    desk_close(&desk);
}

/* Of two kinds, one without a namespace; and all of it once more. */
static void many_that_wait_come_as_they_were(void **state)
{
    (void)state;
    enum { EVENTS = 40, TIMES = 2 };
    static char has[EVENTS][96];
    static char messages[EVENTS][64];
    struct fake_answer script[EVENTS];
    struct cr_event events[EVENTS];
    for (int i = 0; i < EVENTS; i++) {
        snprintf(messages[i], sizeof messages[i], "Secret web-tls has leaf %08x", 0x12345u * (unsigned)i);
        snprintf(has[i], sizeof has[i], "\"reason\":\"%s\",\"message\":\"%s\"", i % 2 ? "Restarting" : "Settled",
                 messages[i]);
        events[i] = about_web(i % 2 ? "Restarting" : "Settled", messages[i]);
        events[i].ns = i % 2 ? NULL : "ns";
        script[i] = (struct fake_answer){
            .expect = i % 2 ? "namespaces/default/" : "namespaces/ns/", .has = has[i], .body = "{}"};
    }
    struct desk desk;
    int told = 0;
    desk_open(&desk, script, EVENTS);
    cr_recorder_defer(desk.recorder, count, &told);
    for (int time = 0; time < TIMES; time++) {
        for (int i = 0; i < EVENTS / TIMES; i++)
            cr_recorder_emit(desk.recorder, &events[time * (EVENTS / TIMES) + i]);
        while (cr_recorder_send(desk.recorder))
            ;
    }
    assert_int_equal(told, EVENTS);
    assert_int_equal(atomic_load(&desk.api.answered), EVENTS);
    desk_close(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repeats_are_dropped_and_others_are_not),
        cmocka_unit_test(of_thousands_only_the_oldest_may_come_again),
        cmocka_unit_test(of_one_reason_about_one_object_there_are_at_most_100),
        cmocka_unit_test(one_that_could_not_be_written_may_be_tried_again),
        cmocka_unit_test(objects_without_a_namespace_have_theirs_in_default),
        cmocka_unit_test(a_long_message_is_cut_between_characters),
        cmocka_unit_test(control_characters_of_a_message_are_not_shown),
        cmocka_unit_test(deferred_ones_wait_until_they_are_sent),
        cmocka_unit_test(many_that_wait_come_as_they_were),
        cmocka_unit_test(nobody_to_record_or_nothing_to_name_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
