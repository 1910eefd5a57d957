/* One HTTP/1.1 request in the calling thread, without libcurl: for a static program that asks what stands beside it. */
#ifndef CR_WIRE_HTTP_CALL_H
#define CR_WIRE_HTTP_CALL_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

struct cr_http_call {
    const char *address; /* wire/address.h; borrowed, as the texts below */
    const char *method;  /* "GET", "POST" */
    const char *target;  /* "/stats?format=json", as it goes on the wire */
    int64_t deadline_ms; /* monotonic, of the whole call: connecting, sending, reading */
    int cancel_fd;       /* readable: give up, with Cancelled; -1: none */
    size_t max_body;     /* bytes; more is an error */
};

/* *status: of the final answer, whatever it is; body: what came with it, appended, chunks joined (RFC 9112, section
 * 7.1). On a connection of its own that is closed afterwards. Errors: as cr_connection_open; Invalid, when the call
 * cannot be written as a request, or what comes is not HTTP/1 or too long; Transient, when it breaks off. Then body is
 * as it was: a part is never given out as the whole. Any thread. */
bool cr_http_call(const struct cr_http_call *call, int *status, struct cr_buf *body, struct cr_error *err) CR_MUST_USE;

#endif
