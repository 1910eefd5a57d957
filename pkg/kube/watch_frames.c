#include "kube/watch_frames.h"

#include <string.h>

void cr_frames_init(struct cr_frames *frames, size_t max, bool secret)
{
    *frames = (struct cr_frames){.partial = {.max = max, .secret = secret}};
}

void cr_frames_dispose(struct cr_frames *frames)
{
    cr_buf_dispose(&frames->partial);
}

/* Gives the memory back too: one big frame must not be held for the life of a watch. */
void cr_frames_reset(struct cr_frames *frames)
{
    cr_buf_dispose(&frames->partial);
}

bool cr_frames_partial(const struct cr_frames *frames)
{
    return frames->partial.len > 0;
}

static bool too_long(const struct cr_frames *frames, struct cr_error *err)
{
    return cr_error_set(err, CR_ERR_INVALID, "an event is longer than %zu bytes", frames->partial.max);
}

static bool blank(const char *frame, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (frame[i] != ' ' && frame[i] != '\t' && frame[i] != '\r')
            return false;
    return true;
}

bool cr_frames_feed(struct cr_frames *frames, const char *data, size_t len,
                    bool (*on_frame)(void *arg, const char *frame, size_t len, struct cr_error *err), void *arg,
                    struct cr_error *err)
{
    while (len) {
        const char *newline = memchr(data, '\n', len);
        size_t piece = newline ? (size_t)(newline - data) : len;
        bool whole = newline && !frames->partial.len;
        if (piece > frames->partial.max || (!whole && !cr_buf_append(&frames->partial, data, piece)))
            return too_long(frames, err);
        if (!newline)
            return true;
        const char *frame = whole ? data : cr_buf_text(&frames->partial);
        size_t frame_len = whole ? piece : frames->partial.len;
        bool more = blank(frame, frame_len) || on_frame(arg, frame, frame_len, err);
        if (!whole)
            cr_frames_reset(frames);
        if (!more)
            return false;
        data = newline + 1;
        len -= piece + 1;
    }
    return true;
}
