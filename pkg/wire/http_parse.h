/* The answer to one request, as it comes off the wire in pieces of any size: HTTP/1 (RFC 9112). Pure. */
#ifndef CR_WIRE_HTTP_PARSE_H
#define CR_WIRE_HTTP_PARSE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

enum { CR_HTTP_HEAD_MAX = 16 * 1024 /* bytes of all heads and trailers together; also of a chunk's line */ };

enum cr_http_part { /* of an answer, that is read next */
                    CR_HTTP_STATUS_LINE,
                    CR_HTTP_FIELD,
                    CR_HTTP_BODY_OF_LENGTH,
                    CR_HTTP_BODY_UNTIL_END,
                    CR_HTTP_CHUNK_SIZE,
                    CR_HTTP_CHUNK,
                    CR_HTTP_CHUNK_END,
                    CR_HTTP_TRAILER,
                    CR_HTTP_DONE,
};

struct cr_http_parse {
    int status; /* of the final answer, once its head is there; 0 before */
    /* The rest is its own. */
    enum cr_http_part part;
    bool to_head;       /* HEAD was asked: no body, whatever the fields say */
    size_t max_body;    /* bytes */
    size_t body_len;    /* so far */
    size_t left;        /* of the body, or of the chunk */
    struct cr_buf line; /* so far */
    size_t head_len;
    /* State of the head under way. */
    int code;
    bool is_1_0;
    bool has_fields;
    bool last_is_framing; /* the last field says how long the body is */
    bool chunked;
    bool has_length;
    uint64_t length;
};

/* method: of the request. */
void cr_http_parse_init(struct cr_http_parse *parse, const char *method, size_t max_body);
void cr_http_parse_dispose(struct cr_http_parse *parse);
CR_DEFINE_DISPOSE(cr_http_parse, struct cr_http_parse, cr_http_parse_dispose)
/* Takes all of data; what belongs to the body is appended to it. Interim answers are passed over (RFC 9110, section
 * 15.2), and so is what comes behind a whole one (RFC 9112, section 6.3). Errors: Invalid: no HTTP/1, lengths that
 * contradict each other, too long; then nothing may be fed any more. */
bool cr_http_parse_feed(struct cr_http_parse *parse, const char *data, size_t len, struct cr_buf *body,
                        struct cr_error *err) CR_MUST_USE;
/* The other side says no more; broken: it did not say so itself (a reset). True: the answer is whole. Errors:
 * Transient: it breaks off. */
bool cr_http_parse_end(struct cr_http_parse *parse, bool broken, struct cr_error *err) CR_MUST_USE;
bool cr_http_parse_is_done(const struct cr_http_parse *parse);

#endif
