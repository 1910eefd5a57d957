/* Blocking requests: the thread that asks speaks to the server itself, on a connection that is its own for that time
 * (HTTP/1.1). Nothing is handed over to another thread and back, no frames of other streams are in between, and libcurl
 * does what it is best at: it opens the connection, through proxies and with all kinds of credentials (http_link.h).
 * Of a small request its own way through the rest took three fifths of the instructions.
 *
 * There are as many connections as threads ever asked at once; the one used last is used first. A server may close one
 * that is idle: on a connection that was used before, and ends without a byte of an answer, a request is sent once more
 * on a new one, as libcurl does it. */
#ifndef CR_NET_HTTP_REQUESTS_H
#define CR_NET_HTTP_REQUESTS_H

#include "net/http.h"

struct cr_http_requests;

/* tls NULL: the system's CAs, no credentials. user_agent NULL: "certroll". Any thread. */
struct cr_http_requests *cr_http_requests_new(const struct cr_http_tls *tls, const char *user_agent);
/* When no thread uses them any more. */
void cr_http_requests_free(struct cr_http_requests *requests);
CR_DEFINE_CLEANUP(cr_http_requests, struct cr_http_requests, cr_http_requests_free)
/* New credentials or CA: requests from now on use new connections. The same ones again change nothing. Any thread. */
void cr_http_requests_set_tls(struct cr_http_requests *requests, const struct cr_http_tls *tls);
/* Any thread: requests under way and all that come later end with Cancelled. */
void cr_http_requests_cancel(struct cr_http_requests *requests);
/* Blocks; any thread, as many as like at a time. True: there is an answer, whatever its status. Errors: Transient (the
 * network, a time-out, an answer that is not HTTP), Invalid (a request that can never be sent, an answer that is too
 * long), Cancelled. */
bool cr_http_do(struct cr_http_requests *requests, const struct cr_http_request *request,
                struct cr_http_response *response, struct cr_error *err) CR_MUST_USE;

#endif
