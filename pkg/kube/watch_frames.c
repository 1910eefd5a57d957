#include "kube/watch_frames.h"

#include <stdint.h>
#include <string.h>

void cr_frames_init(struct cr_frames *frames, size_t max, bool secret, const struct cr_frames_handler *handler)
{
    *frames = (struct cr_frames){.handler = *handler, .partial = {.max = max, .secret = secret}};
}

void cr_frames_dispose(struct cr_frames *frames)
{
    cr_buf_dispose(&frames->partial);
}

/* Gives the memory back too: one big frame must not be held for the life of a watch. */
void cr_frames_reset(struct cr_frames *frames)
{
    cr_buf_dispose(&frames->partial);
    frames->look_at = 0;
    frames->passing = false;
    frames->too_long = false;
}

bool cr_frames_partial(const struct cr_frames *frames)
{
    return frames->passing || frames->partial.len > 0;
}

/* start: the first max bytes of it. What is still to come of it is not kept. */
static bool too_long(struct cr_frames *frames, const char *start, struct cr_error *err)
{
    size_t max = frames->partial.max;
    if (!frames->handler.on_too_long || cr_watch_head_read(start, max, &frames->head) != CR_WATCH_HEAD_OBJECT)
        return cr_error_set(err, CR_ERR_INVALID, "an event is longer than %zu bytes", max);
    frames->passing = frames->too_long = true;
    cr_buf_dispose(&frames->partial);
    return true;
}

static bool blank(const char *frame, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (frame[i] != ' ' && frame[i] != '\t' && frame[i] != '\r')
            return false;
    return true;
}

/* start: all that came of the frame. A head that has not ended is looked for again when twice as much came, or all: so
 * that a long one is read in linear time. */
static void look(struct cr_frames *frames, const char *start, size_t len, bool all)
{
    bool due = all ? frames->look_at != SIZE_MAX : len >= frames->look_at;
    if (!frames->handler.wants || !due)
        return;
    switch (cr_watch_head_read(start, len, &frames->head)) {
    case CR_WATCH_HEAD_MORE:
        frames->look_at = 2 * len;
        return;
    case CR_WATCH_HEAD_OTHER:
        frames->look_at = SIZE_MAX;
        return;
    case CR_WATCH_HEAD_OBJECT:
        frames->passing = !frames->handler.wants(frames->handler.arg, &frames->head);
        frames->look_at = SIZE_MAX;
    }
}

/* The whole frame is there, or enough of it to pass it over. */
static bool finish(struct cr_frames *frames, const char *frame, size_t len, struct cr_error *err)
{
    bool more = true;
    if (frames->too_long)
        frames->handler.on_too_long(frames->handler.arg, &frames->head);
    else if (frames->passing)
        frames->handler.on_passed(frames->handler.arg, &frames->head);
    else if (!blank(frame, len))
        more = frames->handler.on_frame(frames->handler.arg, frame, len, err);
    cr_frames_reset(frames);
    return more;
}

/* A piece of a frame, without its newline, that is not all of it. False when it is too long, and cannot be reported. */
static bool keep(struct cr_frames *frames, const char *piece, size_t len, bool last, struct cr_error *err)
{
    if (!frames->partial.len)
        look(frames, piece, len, false);
    if (frames->passing)
        return true;
    size_t room = frames->partial.max - frames->partial.len;
    bool fits = len <= room;
    if (!cr_buf_append(&frames->partial, piece, fits ? len : room))
        return false;
    look(frames, frames->partial.data, frames->partial.len, last || !fits);
    if (frames->passing)
        cr_buf_dispose(&frames->partial);
    return fits || frames->passing || too_long(frames, cr_buf_text(&frames->partial), err);
}

bool cr_frames_feed(struct cr_frames *frames, const char *data, size_t len, struct cr_error *err)
{
    while (len) {
        const char *newline = memchr(data, '\n', len);
        size_t piece = newline ? (size_t)(newline - data) : len;
        bool whole = newline && !cr_frames_partial(frames);
        if (whole)
            look(frames, data, piece, true);
        if (whole && !frames->passing && piece > frames->partial.max && !too_long(frames, data, err))
            return false;
        if (!whole && !frames->passing && !keep(frames, data, piece, newline, err))
            return false;
        if (!newline)
            return true;
        if (!finish(frames, whole ? data : cr_buf_text(&frames->partial), whole ? piece : frames->partial.len, err))
            return false;
        data = newline + 1;
        len -= piece + 1;
    }
    return true;
}
