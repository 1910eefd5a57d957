/* Where something of this pod listens: a Unix socket, or a port of loopback. Nothing of a sidecar's goes further. */
#ifndef CR_SIDECAR_ADDRESS_H
#define CR_SIDECAR_ADDRESS_H

#include "wire/address.h"
#include "wire/connection.h"

/* As cr_address_parse; errors: Invalid: what is allowed, also for an address that is not loopback. */
bool cr_sidecar_address_parse(const char *text, struct cr_address *out, struct cr_error *err) CR_MUST_USE;
/* As cr_connection_open, for such an address. */
bool cr_sidecar_connection_open(const char *address, int cancel_fd, int64_t deadline_ms, struct cr_connection *out,
                                struct cr_error *err) CR_MUST_USE;
/* An IP literal of loopback. */
bool cr_sidecar_is_loopback(const char *ip);

#endif
