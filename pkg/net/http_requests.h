/* Blocking requests: the calling thread drives libcurl itself, with a multi handle and a connection that are its own
 * for that time (HTTP/1.1). Nothing is handed over to another thread and back, and no frames of other streams are in
 * between.
 *
 * There are as many connections as threads ask at once; the one used last is used first, and one that was not used for
 * a minute is closed when another is given back. A server may close one that is idle: on a connection that was used
 * before, and ends without a whole line of an answer, a request is sent once more on a new one; a write only when that
 * end came at once. */
#ifndef CR_NET_HTTP_REQUESTS_H
#define CR_NET_HTTP_REQUESTS_H

#include "net/http.h"

struct cr_http_requests;

/* tls NULL: the system's CAs, no credentials. user_agent NULL: "certroll". Any thread. */
struct cr_http_requests *cr_http_requests_new(const struct cr_http_tls *tls, const char *user_agent);
/* When no thread uses them any more: cr_http_requests_cancel, join the threads, then free. */
void cr_http_requests_free(struct cr_http_requests *requests);
CR_DEFINE_CLEANUP(cr_http_requests, struct cr_http_requests, cr_http_requests_free)
/* New credentials or CA: requests from now on use new connections, those under way go on. The same ones again change
 * nothing. Any thread. */
void cr_http_requests_set_tls(struct cr_http_requests *requests, const struct cr_http_tls *tls);
/* Any thread: requests under way end with Cancelled as soon as they wait for something, all that come later at once. */
void cr_http_requests_cancel(struct cr_http_requests *requests);
/* Blocks the calling thread, as many as like at a time, until the response is complete. True for any HTTP status, and
 * for one from 400 on also when its body was cut off; redirects are not followed. False with Transient for what the
 * network does (also a server certificate that does not verify: it may be rotated, or our CA; and an answer that is
 * compressed, or no HTTP), Invalid for a URL, header or TLS set-up that can never work and for a response beyond its
 * cap, Cancelled on shutdown. response is overwritten, and empty on failure. A write that failed as Transient may have
 * been done, and one that was repeated (see above) twice: a caller that writes has preconditions. */
bool cr_http_do(struct cr_http_requests *requests, const struct cr_http_request *request,
                struct cr_http_response *response, struct cr_error *err) CR_MUST_USE;

#endif
