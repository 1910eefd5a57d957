/* One connection of HTTP/1.1, one request after the other, for the thread that has it just now (http_requests.h).
 * Private to pkg/net. */
#ifndef CR_NET_HTTP_CLIENT_CONNECTION_H
#define CR_NET_HTTP_CLIENT_CONNECTION_H

#include "net/http_internal.h"

struct cr_http_client_connection;

/* Borrowed: user_agent, and wake_fd, which is readable when all requests are to end. identity is counted. */
struct cr_http_client_connection *cr_http_client_connection_new(const char *user_agent,
                                                                struct cr_http_identity *identity, int wake_fd);
void cr_http_client_connection_free(struct cr_http_client_connection *connection);
/* Whether there is a connection, as far as is known. */
bool cr_http_client_connection_is_open(const struct cr_http_client_connection *connection);
const struct cr_http_identity *cr_http_client_connection_identity(const struct cr_http_client_connection *connection);
/* As cr_http_do. */
bool cr_http_client_connection_do(struct cr_http_client_connection *connection, const struct cr_http_request *request,
                                  struct cr_http_response *response, struct cr_error *err) CR_MUST_USE;

#endif
