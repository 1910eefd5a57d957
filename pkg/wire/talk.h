/* A conversation with a program beside this one, over a Unix socket or TCP, in the calling thread. */
#ifndef CR_WIRE_TALK_H
#define CR_WIRE_TALK_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

enum { CR_TALK_MAX = 64 * 1024 /* bytes that are heard and not yet consumed; heard.max may be set otherwise */ };

struct cr_talk {
    struct cr_buf heard; /* wiped: it may repeat what was said */
    bool ended;          /* the other side says no more */
    bool broken;         /* it did not end by itself: a reset; what it said may be a part */
    int fd;
    int cancel_fd;
    int64_t deadline_ms;
    const char *address; /* borrowed */
};

/* address: as cr_address_parse (wire/address.h) takes it; localhost is [::1] where nobody listens on 127.0.0.1; it must
 * live as long as the talk. deadline_ms: monotonic, of the whole talk. cancel_fd: readable: give up; -1: none. out need
 * not be initialised, and needs no close on failure. Errors: Invalid (no such address), NotFound (no socket there),
 * Forbidden, Transient (refused, time-out), Cancelled. */
bool cr_talk_open(const char *address, int cancel_fd, int64_t deadline_ms, struct cr_talk *out,
                  struct cr_error *err) CR_MUST_USE;
/* When the other side has hung up it is true as well: what it said before tells more. Errors: Transient, Cancelled. */
bool cr_talk_say(struct cr_talk *talk, const void *data, size_t len, struct cr_error *err) CR_MUST_USE;
/* Waits for more: heard has grown, or ended is set. Errors: Transient (time-out), Invalid (too long), Cancelled. */
bool cr_talk_hear(struct cr_talk *talk, struct cr_error *err) CR_MUST_USE;
/* Says that there is no more, and waits a moment for the other side to do so: closing at once would, with TCP, take
 * from it what it has not read yet. */
void cr_talk_part(struct cr_talk *talk);
void cr_talk_close(struct cr_talk *talk);
CR_DEFINE_DISPOSE(cr_talk, struct cr_talk, cr_talk_close)

#endif
