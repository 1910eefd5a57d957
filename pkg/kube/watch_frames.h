/* Cuts the bytes of a watch into frames: one JSON value a line (the API server's framer for application/json). Frames
 * are capped before anything parses them; those that are not wanted are passed over, whatever their length, without
 * being kept. Only the head of a frame that is too long is reported: any user who may write an object may make one, and
 * it must not end the watch of all others. Private to pkg/kube. */
#ifndef CR_KUBE_WATCH_FRAMES_H
#define CR_KUBE_WATCH_FRAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "kube/watch_head.h"

struct cr_frames_handler {
    /* A complete frame that is not blank; borrowed, without its newline. False ends the feed. */
    bool (*on_frame)(void *arg, const char *frame, size_t len, struct cr_error *err);
    /* Whether a frame is to be had, asked once, as soon as its head came. NULL: all are. */
    bool (*wants)(void *arg, const struct cr_watch_head *head);
    /* The end came of a frame that was not wanted. */
    void (*on_passed)(void *arg, const struct cr_watch_head *head);
    /* The end came of a frame that is longer than max and wanted. */
    void (*on_too_long)(void *arg, const struct cr_watch_head *head);
    void *arg;
};

struct cr_frames {
    struct cr_frames_handler handler;
    struct cr_buf partial;     /* the start of a frame that is not complete yet */
    size_t look_at;            /* once so much of it came, its head is looked for; SIZE_MAX: it is wanted */
    bool passing;              /* the frame under way is not kept: it is not wanted, or too long */
    bool too_long;             /* which of these */
    struct cr_watch_head head; /* of it */
};

/* max: bytes of the longest frame; secret: what is buffered is wiped. */
void cr_frames_init(struct cr_frames *frames, size_t max, bool secret, const struct cr_frames_handler *handler);
void cr_frames_dispose(struct cr_frames *frames);
CR_DEFINE_DISPOSE(cr_frames, struct cr_frames, cr_frames_dispose)
/* Forgets a frame that was begun: the connection is another one. */
void cr_frames_reset(struct cr_frames *frames);

/* Calls the handler for what came. Frames that lie within data are not copied. False as soon as on_frame is, or with
 * Invalid when a frame is too long and has no head that can be read; what is left of data is dropped. */
bool cr_frames_feed(struct cr_frames *frames, const char *data, size_t len, struct cr_error *err) CR_MUST_USE;
/* Whether a frame was begun and not ended. */
bool cr_frames_partial(const struct cr_frames *frames);

#endif
