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

/* Memory of the piece's own size: a read past its end is caught. */
static bool feed(struct cr_frames *frames, const char *data, size_t len, struct sink *sink, struct cr_error *err)
{
    char *exact = cr_memdup(data, len ? len : 1);
    bool ok = cr_frames_feed(frames, exact, len, collect, sink, err);
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
        CR_CLEANUP(cr_frames) struct cr_frames frames;
        struct sink sink = {0};
        cr_frames_init(&frames, 64, piece % 2 == 0);
        for (size_t at = 0; at < len; at += piece)
            assert_true(feed(&frames, text + at, at + piece < len ? piece : len - at, &sink, NULL));
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
        CR_CLEANUP(cr_frames) struct cr_frames frames;
        struct sink sink = {0};
        struct cr_error err = {0};
        bool ok = true;
        cr_frames_init(&frames, 8, false);
        for (size_t p = 0; ok && p < 3 && cases[i].pieces[p]; p++)
            ok = feed(&frames, cases[i].pieces[p], strlen(cases[i].pieces[p]), &sink, &err);
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
    CR_CLEANUP(cr_frames) struct cr_frames frames;
    struct sink sink = {.stop_after = 1};
    struct cr_error err = {0};
    cr_frames_init(&frames, 64, false);
    assert_false(feed(&frames, "1\n2\n", 4, &sink, &err));
    assert_int_equal(err.kind, CR_ERR_GONE);
    assert_int_equal(sink.frames.len, 1);
    cr_strvec_dispose(&sink.frames);
}

static void a_reset_drops_what_was_begun(void **state)
{
    (void)state;
    CR_CLEANUP(cr_frames) struct cr_frames frames;
    struct sink sink = {0};
    cr_frames_init(&frames, 64, true);
    assert_true(feed(&frames, "{\"half", 6, &sink, NULL));
    cr_frames_reset(&frames);
    assert_false(cr_frames_partial(&frames));
    assert_true(feed(&frames, "{}\n", 3, &sink, NULL));
    assert_int_equal(sink.frames.len, 1);
    assert_string_equal(sink.frames.items[0], "{}");
    cr_strvec_dispose(&sink.frames);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_frames_whatever_the_cut),
        cmocka_unit_test(the_cap_holds_for_whole_and_partial_frames),
        cmocka_unit_test(a_refused_frame_ends_the_feed),
        cmocka_unit_test(a_reset_drops_what_was_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
