/* One request and its answer in the calling thread, by libcurl's multi interface: it ends with the answer, when its
 * time is over, or when the caller is to give up. Private to pkg/net. */
#ifndef CR_NET_HTTP_TRANSFER_H
#define CR_NET_HTTP_TRANSFER_H

#include "net/http_internal.h"

struct cr_http_transfer {
    /* Borrowed. identity must live as long as multi. */
    CURLM *multi; /* used by one thread at a time; it keeps at most one connection */
    const struct cr_http_identity *identity;
    const char *user_agent;
    const struct cr_http_request *request;
    int cancel_fd;       /* readable: give up; -1: none */
    int64_t deadline_ms; /* monotonic; INT64_MAX: none */
    /* The connection is kept for the next request: HTTP/1.1, through a proxy as a tunnel, and libcurl does not repeat
     * by itself what a connection that was used before did not answer. */
    bool keeps;

    /* Set by cr_http_transfer_run. */
    curl_socket_t fd; /* of the connection that multi has kept; CURL_SOCKET_BAD: none that can be used again */
    bool unanswered;  /* a connection that was used before has ended instead of answering */
};

/* One that keeps a single connection; NULL: no memory for it. */
CURLM *cr_http_transfer_multi(void);
/* Errors as cr_http_do. response is overwritten, and empty on failure. */
bool cr_http_transfer_run(struct cr_http_transfer *transfer, struct cr_http_response *response,
                          struct cr_error *err) CR_MUST_USE;

#endif
