/* Cuts the bytes of a watch into frames: one JSON value a line (the API server's framer for application/json). Frames
 * are capped before anything parses them. Private to pkg/kube. */
#ifndef CR_KUBE_WATCH_FRAMES_H
#define CR_KUBE_WATCH_FRAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

struct cr_frames {
    struct cr_buf partial; /* the start of a frame whose end has not come */
};

/* max: bytes of the longest frame; secret: what is buffered is wiped. */
void cr_frames_init(struct cr_frames *frames, size_t max, bool secret);
void cr_frames_dispose(struct cr_frames *frames);
CR_DEFINE_DISPOSE(cr_frames, struct cr_frames, cr_frames_dispose)
/* Forgets a frame that was begun: the connection is another one. */
void cr_frames_reset(struct cr_frames *frames);

/* Calls on_frame for each complete frame that is not blank; it is borrowed and without its newline. Frames that lie
 * within data are not copied. False as soon as on_frame is, or with Invalid when a frame is too long; what is left
 * of data is dropped. */
bool cr_frames_feed(struct cr_frames *frames, const char *data, size_t len,
                    bool (*on_frame)(void *arg, const char *frame, size_t len, struct cr_error *err), void *arg,
                    struct cr_error *err) CR_MUST_USE;
/* Whether a frame was begun and not ended. */
bool cr_frames_partial(const struct cr_frames *frames);

#endif
