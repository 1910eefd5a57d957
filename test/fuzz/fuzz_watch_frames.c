/* However the network cuts a watch, the frames are the same. The first byte says how long the pieces are. */
#include "fuzz.h"

#include <string.h>

#include "kube/watch_frames.h"

enum { MAX_FRAME = 4096 };

struct seen {
    struct cr_buf text; /* frames, each with its length in front */
};

static bool collect(void *arg, const char *frame, size_t len, struct cr_error *err)
{
    struct seen *seen = arg;
    (void)err;
    require(len && !memchr(frame, '\n', len));
    cr_buf_printf(&seen->text, "%zu:", len);
    require(cr_buf_append(&seen->text, frame, len));
    return true;
}

/* Every other name. */
static bool wants(void *arg, const struct cr_watch_head *head)
{
    (void)arg;
    return head->name[0] % 2;
}

static void note_passed(void *arg, const struct cr_watch_head *head)
{
    struct seen *seen = arg;
    cr_buf_printf(&seen->text, "passed %s/%s@%s", head->ns, head->name, head->resource_version);
}

static bool feed(const char *data, size_t size, size_t piece, struct seen *seen, bool *partial)
{
    struct cr_error err = {0};
    bool ok = true;
    struct cr_frames frames;
    const struct cr_frames_handler handler = {
        .on_frame = collect, .wants = wants, .on_passed = note_passed, .arg = seen};
    cr_frames_init(&frames, MAX_FRAME, true, &handler);
    for (size_t at = 0; ok && at < size; at += piece) {
        size_t len = size - at < piece ? size - at : piece;
        ok = cr_frames_feed(&frames, data + at, len, &err);
    }
    require(ok || err.kind == CR_ERR_INVALID);
    *partial = cr_frames_partial(&frames);
    cr_frames_dispose(&frames);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const char *text = (const char *)data + 1;
    struct seen whole = {0};
    struct seen pieces = {0};
    bool whole_partial;
    bool pieces_partial;
    bool whole_ok = feed(text, size - 1, size - 1, &whole, &whole_partial);
    bool pieces_ok = feed(text, size - 1, (size_t)data[0] + 1, &pieces, &pieces_partial);
    require(whole_ok == pieces_ok);
    require(whole.text.len == pieces.text.len);
    require(!whole.text.len || memcmp(whole.text.data, pieces.text.data, whole.text.len) == 0);
    require(!whole_ok || whole_partial == pieces_partial);
    cr_buf_dispose(&whole.text);
    cr_buf_dispose(&pieces.text);
    return 0;
}
