#include "kube/watch_frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strvec.h"

struct sink {
    struct cr_strvec frames;
    size_t stop_after; /* 0: never */
};

static bool collect(void *arg, const char *frame, size_t len, struct cr_error *err)
{
    struct sink *sink = arg;
    cr_autofree char *copy = cr_strndup(frame, len);
    cr_strvec_add(&sink->frames, copy);
    if (sink->stop_after && sink->frames.len == sink->stop_after)
        return cr_error_set(err, CR_ERR_GONE, "stopped");
    return true;
}

/* Names that begin with "x" are not wanted. */
static bool wants(void *arg, const struct cr_watch_head *head)
{
    (void)arg;
    return head->name[0] != 'x';
}

static void note_passed(void *arg, const struct cr_watch_head *head)
{
    struct sink *sink = arg;
    cr_autofree char *text = cr_asprintf("passed %s@%s", head->name, head->resource_version);
    cr_strvec_add(&sink->frames, text);
}

static void note_too_long(void *arg, const struct cr_watch_head *head)
{
    struct sink *sink = arg;
    cr_autofree char *text =
        cr_asprintf("too long %s@%s%s", head->name, head->resource_version, head->deleted ? " deleted" : "");
    cr_strvec_add(&sink->frames, text);
}

static struct cr_frames frames_of(size_t max, bool secret, struct sink *sink)
{
    struct cr_frames frames;
    const struct cr_frames_handler handler = {
        .on_frame = collect, .wants = wants, .on_passed = note_passed, .on_too_long = note_too_long, .arg = sink};
    cr_frames_init(&frames, max, secret, &handler);
    return frames;
}

/* Memory of the piece's own size: a read past its end is caught. */
static bool feed(struct cr_frames *frames, const char *data, size_t len, struct cr_error *err)
{
    char *exact = cr_memdup(data, len ? len : 1);
    bool ok = cr_frames_feed(frames, exact, len, err);
    free(exact);
    return ok;
}

static void the_same_frames_whatever_the_cut(void **state)
{
    (void)state;
    static const char text[] = "{\"a\":1}\n\n \t\r\n{}\n{\"long\":\"xxxxxxxx\"}\n{\"cut";
    static const char *const wanted[] = {"{\"a\":1}", "{}", "{\"long\":\"xxxxxxxx\"}"};
    size_t len = sizeof text - 1;
    for (size_t piece = 1; piece <= len; piece++) {
        struct sink sink = {0};
        CR_CLEANUP(cr_frames) struct cr_frames frames = frames_of(64, piece % 2 == 0, &sink);
        for (size_t at = 0; at < len; at += piece)
            assert_true(feed(&frames, text + at, at + piece < len ? piece : len - at, NULL));
        assert_int_equal(sink.frames.len, cr_array_len(wanted));
        for (size_t i = 0; i < cr_array_len(wanted); i++)
            assert_string_equal(sink.frames.items[i], wanted[i]);
        assert_true(cr_frames_partial(&frames));
        cr_strvec_dispose(&sink.frames);
    }
}

static void the_cap_holds_for_whole_and_partial_frames(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *pieces[3];
        bool ok;
    } cases[] = {
        {"exactly the cap, whole", {"12345678\n"}, true},
        {"exactly the cap, in pieces", {"1234", "5678", "\n"}, true},
        {"one byte more, whole", {"123456789\n"}, false},
        {"one byte more, in pieces", {"12345678", "9"}, false},
        {"one byte more with its end", {"1234567", "89\n"}, false},
        {"one byte more without an end", {"123456789"}, false},
        {"a long one after a short one", {"1\n123456789\n"}, false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct sink sink = {0};
        CR_CLEANUP(cr_frames) struct cr_frames frames = frames_of(8, false, &sink);
        struct cr_error err = {0};
        bool ok = true;
        for (size_t p = 0; ok && p < 3 && cases[i].pieces[p]; p++)
            ok = feed(&frames, cases[i].pieces[p], strlen(cases[i].pieces[p]), &err);
        if (ok != cases[i].ok)
            fail_msg("%s", cases[i].rule);
        if (!ok)
            assert_int_equal(err.kind, CR_ERR_INVALID);
        cr_strvec_dispose(&sink.frames);
    }
}

static void a_refused_frame_ends_the_feed(void **state)
{
    (void)state;
    struct sink sink = {.stop_after = 1};
    CR_CLEANUP(cr_frames) struct cr_frames frames = frames_of(64, false, &sink);
    struct cr_error err = {0};
    assert_false(feed(&frames, "1\n2\n", 4, &err));
    assert_int_equal(err.kind, CR_ERR_GONE);
    assert_int_equal(sink.frames.len, 1);
    cr_strvec_dispose(&sink.frames);
}

static void a_reset_drops_what_was_begun(void **state)
{
    (void)state;
    struct sink sink = {0};
    CR_CLEANUP(cr_frames) struct cr_frames frames = frames_of(64, true, &sink);
    assert_true(feed(&frames, "{\"half", 6, NULL));
    cr_frames_reset(&frames);
    assert_false(cr_frames_partial(&frames));
    assert_true(feed(&frames, "{}\n", 3, NULL));
    assert_int_equal(sink.frames.len, 1);
    assert_string_equal(sink.frames.items[0], "{}");
    cr_strvec_dispose(&sink.frames);
}

/* --- what is not wanted --- */

#define FRAME(name, version, rest)                                                                                     \
    "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Secret\",\"metadata\":{\"name\":\"" name                            \
    "\",\"namespace\":\"ns\",\"resourceVersion\":\"" version "\"},\"data\":{\"k\":\"" rest "\"}}}"

static void what_is_not_wanted_is_passed_over_wherever_it_is_cut(void **state)
{
    (void)state;
    static const char text[] = FRAME("x1", "1", "") "\n" FRAME("a", "2", "{") "\n\n" FRAME("x2", "3", "\\\"}}}") "\n";
    static const char *const wanted[] = {"passed x1@1", FRAME("a", "2", "{"), "passed x2@3"};
    size_t len = sizeof text - 1;
    for (size_t first = 0; first <= len; first++) {
        for (size_t second = first; second <= len; second++) {
            struct sink sink = {0};
            CR_CLEANUP(cr_frames) struct cr_frames frames = frames_of(1024, true, &sink);
            assert_true(feed(&frames, text, first, NULL));
            assert_true(feed(&frames, text + first, second - first, NULL));
            assert_true(feed(&frames, text + second, len - second, NULL));
            if (sink.frames.len != cr_array_len(wanted))
                fail_msg("cut at %zu and %zu: %zu frames", first, second, sink.frames.len);
            for (size_t i = 0; i < cr_array_len(wanted); i++)
                assert_string_equal(sink.frames.items[i], wanted[i]);
            assert_false(cr_frames_partial(&frames));
            cr_strvec_dispose(&sink.frames);
        }
    }
}

/* Sixteen times the cap, of which no more than a piece is kept. */
static void what_is_not_wanted_costs_no_memory(void **state)
{
    (void)state;
    enum { CAP = 4096, PIECE = 128 };
    struct sink sink = {0};
    CR_CLEANUP(cr_frames) struct cr_frames frames = frames_of(CAP, true, &sink);
    static const char head[] = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"ns\","
                               "\"resourceVersion\":\"5\"},\"data\":{\"k\":\"";
    char piece[PIECE];
    memset(piece, 'A', sizeof piece);
    assert_true(feed(&frames, head, 40, NULL)); /* who it is of is not known yet: kept, for so long */
    assert_int_not_equal(frames.partial.cap, 0);
    assert_true(feed(&frames, head + 40, sizeof head - 1 - 40, NULL));
    for (size_t fed = 0; fed < 16 * (size_t)CAP; fed += sizeof piece) {
        assert_true(feed(&frames, piece, sizeof piece, NULL));
        assert_int_equal(frames.partial.cap, 0);
        assert_true(cr_frames_partial(&frames));
    }
    assert_int_equal(sink.frames.len, 0); /* it may still be cut */
    assert_true(feed(&frames, "\"}}}\n{}\n", 8, NULL));
    assert_string_equal(sink.frames.items[0], "passed x@5");
    assert_string_equal(sink.frames.items[1], "{}");
    cr_strvec_dispose(&sink.frames);
}

static void a_wanted_frame_is_capped_also_when_others_are_not(void **state)
{
    (void)state;
    struct sink sink = {0};
    struct cr_error err = {0};
    CR_CLEANUP(cr_frames) struct cr_frames frames = frames_of(150, false, &sink);
    static const char big[] = FRAME("x", "1", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA") "\n";
    static const char wanted[] =
        FRAME("a", "1", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA") "\n";
    assert_true(feed(&frames, big, sizeof big - 1, &err));
    assert_true(feed(&frames, wanted, sizeof wanted - 1, &err));
    assert_int_equal(sink.frames.len, 2);
    assert_string_equal(sink.frames.items[0], "passed x@1");
    assert_string_equal(sink.frames.items[1], "too long a@1");
    cr_strvec_dispose(&sink.frames);
}

/* Any user who may write an object may make a long one: what follows must come all the same. */
static void the_name_of_a_frame_that_is_too_long_is_read_wherever_it_is_cut(void **state)
{
    (void)state;
#define LONG "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    static const char text[] = FRAME("a", "1", LONG LONG) "\n" FRAME("x1", "2", LONG LONG) "\n" FRAME(
        "b", "3", "") "\n"
                      "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"c\",\"namespace\":\"ns\","
                      "\"resourceVersion\":\"4\"},"
                      "\"k\":\"" LONG LONG "\"}}\n";
    static const char *const wanted[] = {"too long a@1", "passed x1@2", FRAME("b", "3", ""), "too long c@4 deleted"};
    size_t len = sizeof text - 1;
    for (size_t first = 0; first <= len; first++) {
        struct sink sink = {0};
        CR_CLEANUP(cr_frames) struct cr_frames frames = frames_of(150, first % 2, &sink);
        assert_true(feed(&frames, text, first, NULL));
        assert_true(frames.partial.len <= 150);
        assert_true(feed(&frames, text + first, len - first, NULL));
        assert_int_equal(sink.frames.len, cr_array_len(wanted));
        for (size_t i = 0; i < cr_array_len(wanted); i++)
            assert_string_equal(sink.frames.items[i], wanted[i]);
        cr_strvec_dispose(&sink.frames);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_frames_whatever_the_cut),
        cmocka_unit_test(the_cap_holds_for_whole_and_partial_frames),
        cmocka_unit_test(a_refused_frame_ends_the_feed),
        cmocka_unit_test(a_reset_drops_what_was_begun),
        cmocka_unit_test(what_is_not_wanted_is_passed_over_wherever_it_is_cut),
        cmocka_unit_test(what_is_not_wanted_costs_no_memory),
        cmocka_unit_test(a_wanted_frame_is_capped_also_when_others_are_not),
        cmocka_unit_test(the_name_of_a_frame_that_is_too_long_is_read_wherever_it_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
