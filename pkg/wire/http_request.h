/* The head of a request, as it comes off the wire in pieces of any size: HTTP/1 (RFC 9112). Pure. */
#ifndef CR_WIRE_HTTP_REQUEST_H
#define CR_WIRE_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

enum { CR_HTTP_REQUEST_MAX = 16 * 1024 /* bytes of a head; a token of a service account has some 1,000 */ };

struct cr_http_ask {
    bool whole;          /* the head is there, and all below is set */
    int refused;         /* the status to refuse it with; 0: nothing is wrong so far. Nothing may be fed any more */
    const char *problem; /* when refused: why, a line for a person; static */
    const char *method;
    const char *path;          /* of the target, as sent, without the query */
    const char *authorization; /* NULL: none */
    bool has_body;             /* one follows, which is not read here */
    bool last;                 /* no other request may follow on the connection (RFC 9112, section 9.6) */
    /* The rest is its own. */
    struct cr_buf text; /* wiped: it may have a token */
    size_t empty_lines; /* before it */
};

void cr_http_ask_init(struct cr_http_ask *ask);
void cr_http_ask_dispose(struct cr_http_ask *ask);
CR_DEFINE_DISPOSE(cr_http_ask, struct cr_http_ask, cr_http_ask_dispose)
/* How many bytes of data belong to the head; the rest is of what follows. Each byte is looked at a bounded number of
 * times, in pieces of whatever size they come. */
size_t cr_http_ask_feed(struct cr_http_ask *ask, const char *data, size_t len);

#endif
