/* Envoy's page of the certificates that it uses, GET /certs of its admin interface, for clients that cannot reach that:
 * it listens on loopback, or on a Unix socket, since it can also end the process. Read-only: this one path, no headers
 * and no query are passed on. One request at a time goes to Envoy; a client that asks meanwhile gets the same
 * answer. */
#ifndef CR_SIDECAR_RELAY_H
#define CR_SIDECAR_RELAY_H

#include "wire/http_server.h"
#include "sys/loop.h"

#define CR_RELAY_PATH "/certs"

struct cr_relay;

/* Serves CR_RELAY_PATH on server, with the answers of what listens at address (sidecar/address.h). Errors: Invalid, as
 * cr_sidecar_address_parse; Transient, no thread. Owned. */
struct cr_relay *cr_relay_start(struct cr_http_server *server, struct cr_loop *loop, const char *address,
                                struct cr_error *err) CR_MUST_USE;
/* After the loop has ended, and after the server; waits for a request under way, at most 5 s. */
void cr_relay_free(struct cr_relay *relay);
CR_DEFINE_CLEANUP(cr_relay, struct cr_relay, cr_relay_free)

#endif
