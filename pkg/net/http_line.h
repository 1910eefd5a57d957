/* An HTTP client for one thread: one connection (HTTP/1.1), one request after the other, carried out by the thread that
 * asks, without a loop. For a small request that comes again and again, as the renewal of a Lease does: handing it over
 * to a loop's thread and preparing it anew costs more than the exchange itself, and HTTP/2 frames bring nothing where
 * there is never a second stream. libcurl opens the connection, and the line speaks on it by itself (http_link.h): of a
 * renewal libcurl's own way through a request took three fifths. What is said of cr_http_do holds here, too. On a
 * connection that was used before, and then ends without a byte of an answer, a request is sent once more. */
#ifndef CR_NET_HTTP_LINE_H
#define CR_NET_HTTP_LINE_H

#include "net/http.h"

struct cr_http_line;

/* Any thread. */
struct cr_http_line *cr_http_line_new(const struct cr_http_tls *tls, const char *user_agent);
/* When no thread uses it any more. */
void cr_http_line_free(struct cr_http_line *line);
CR_DEFINE_CLEANUP(cr_http_line, struct cr_http_line, cr_http_line_free)
/* New credentials or CA: the next request opens a new connection. The same ones again change nothing. Any thread. */
void cr_http_line_set_tls(struct cr_http_line *line, const struct cr_http_tls *tls);
/* Any thread: a request under way and all that come later end with Cancelled. */
void cr_http_line_cancel(struct cr_http_line *line);
/* As cr_http_do, but never for two threads at once. One that differs from the last only in its body and times is
 * prepared already. */
bool cr_http_line_do(struct cr_http_line *line, const struct cr_http_request *request,
                     struct cr_http_response *response, struct cr_error *err) CR_MUST_USE;

#endif
