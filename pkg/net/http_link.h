/* One connection that libcurl opens, with all that it knows of proxies, names, TLS and credentials, and on which one
 * thread then sends and receives itself. Private to pkg/net. */
#ifndef CR_NET_HTTP_LINK_H
#define CR_NET_HTTP_LINK_H

#include "net/http_internal.h"

struct cr_http_link {
    struct cr_http_exchange opener; /* with the handle that the connection belongs to; without one: not open */
    CURLM *multi;
    curl_socket_t fd;
    int wake_fd;         /* readable: give up. Borrowed */
    int64_t deadline_ms; /* monotonic, of all that is done; INT64_MAX: none */
};

/* Before it is used, deadline_ms must be set. */
void cr_http_link_init(struct cr_http_link *link, int wake_fd);
void cr_http_link_close(struct cr_http_link *link);
/* Where the request leads, unless it is open already; of the request's times only begin_by_ms counts. identity: must
 * live until it is closed. Errors as cr_http_do. */
bool cr_http_link_open(struct cr_http_link *link, const struct cr_http_request *request, const char *user_agent,
                       const struct cr_http_identity *identity, struct cr_error *err) CR_MUST_USE;
/* Whether it can be used again: it is open, and nothing has come since. Otherwise it is closed. */
bool cr_http_link_is_quiet(struct cr_http_link *link);

enum cr_http_link_end { CR_HTTP_LINK_OK, CR_HTTP_LINK_BROKEN, CR_HTTP_LINK_LATE, CR_HTTP_LINK_CANCELLED };
/* All of it, or what has become of the connection. */
enum cr_http_link_end cr_http_link_send(struct cr_http_link *link, const char *data, size_t len);
/* Waits for something. *len 0: the other side says no more. */
enum cr_http_link_end cr_http_link_receive(struct cr_http_link *link, char *data, size_t size, size_t *len);

#endif
