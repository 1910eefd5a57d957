/* One request in the calling thread, without an event loop: for code that asks a server now and then. */
#ifndef CR_NET_HTTP_ONCE_H
#define CR_NET_HTTP_ONCE_H

#include "net/http.h"

/* As cr_http_do, with a connection of its own that is closed afterwards: tls holds for this request alone (NULL: the
 * system's CAs). cancel_fd: readable: give up, with Cancelled; -1: none. Blocks at most request->timeout_ms, which must
 * not be 0. Any thread. */
bool cr_http_once(const struct cr_http_tls *tls, const struct cr_http_request *request, int cancel_fd,
                  struct cr_http_response *response, struct cr_error *err) CR_MUST_USE;

#endif
