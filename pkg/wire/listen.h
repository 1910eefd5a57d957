/* Listening sockets from addresses as flags have them. */
#ifndef CR_WIRE_LISTEN_H
#define CR_WIRE_LISTEN_H

#include "base/error.h"

/* "127.0.0.1:port", ":port" (all addresses, IPv6 and IPv4), "[::1]:port", "localhost:port". A nonblocking listening
 * socket, the caller's; -1 on failure. *port is the one bound. */
int cr_listen(const char *address, int *port, struct cr_error *err) CR_MUST_USE;

#endif
