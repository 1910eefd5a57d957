/* Where a server listens, as a socket address: nothing is looked up, so that no name server is in the way. */
#ifndef CR_WIRE_ADDRESS_H
#define CR_WIRE_ADDRESS_H

#include <sys/socket.h>

#include "base/error.h"

struct cr_address {
    struct sockaddr_storage sockaddr;
    socklen_t len;
};

/* The absolute path of a Unix socket, also as "unix:/path"; "10.1.2.3:6379"; "[fd00::1]:6379". A port alone (":6379"),
 * and "localhost", are 127.0.0.1. Errors: Invalid: what is allowed. Any thread. */
bool cr_address_parse(const char *text, struct cr_address *out, struct cr_error *err) CR_MUST_USE;

#endif
