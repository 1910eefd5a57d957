/* A client's connection to a program beside this one, over a Unix socket or TCP. Its calls block the calling thread. */
#ifndef CR_WIRE_CONNECTION_H
#define CR_WIRE_CONNECTION_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

enum { CR_CONNECTION_MAX = 64 * 1024 /* bytes received and not yet consumed; received.max may be changed */ };

struct cr_connection {
    struct cr_buf received; /* wiped: it may repeat what was sent */
    bool ended;             /* the peer sends no more */
    bool broken;            /* by a reset: what was received may be incomplete */
    int fd;
    int cancel_fd;
    int64_t deadline_ms;
    const char *address; /* borrowed */
};

/* address: as cr_address_parse (wire/address.h) takes it; localhost is [::1] if nothing listens on 127.0.0.1; it must
 * outlive the connection. deadline_ms: monotonic, for the whole connection. cancel_fd: it gives up when this is
 * readable; -1: none. out need not be initialised, and needs no close on failure. Errors: Invalid (no such address),
 * NotFound (no socket there), Forbidden, Transient (refused, time-out), Cancelled. */
bool cr_connection_open(const char *address, int cancel_fd, int64_t deadline_ms, struct cr_connection *out,
                        struct cr_error *err) CR_MUST_USE;
/* True also if the peer has closed: what it sent before explains more. Errors: Transient, Cancelled. */
bool cr_connection_send(struct cr_connection *connection, const void *data, size_t len,
                        struct cr_error *err) CR_MUST_USE;
/* Waits until received has grown or ended is set. Errors: Transient (time-out), Invalid (too long), Cancelled. */
bool cr_connection_receive(struct cr_connection *connection, struct cr_error *err) CR_MUST_USE;
/* Sends the end of the stream, and waits half a second at most for the peer to do so: with TCP, closing at once would
 * discard what the peer has not read yet. */
void cr_connection_finish(struct cr_connection *connection);
void cr_connection_close(struct cr_connection *connection);
CR_DEFINE_DISPOSE(cr_connection, struct cr_connection, cr_connection_close)

#endif
