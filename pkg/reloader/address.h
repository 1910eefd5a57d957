/* Where something of this pod listens: a Unix socket, or a port of loopback. Nothing of a reloader's goes further. */
#ifndef CR_RELOADER_ADDRESS_H
#define CR_RELOADER_ADDRESS_H

#include <sys/socket.h>

#include "base/error.h"

struct cr_reloader_address {
    struct sockaddr_storage sockaddr;
    socklen_t len;
};

/* An absolute path, "127.0.0.1:6379" or "[::1]:6379"; a port alone (":6379") is that of 127.0.0.1. Errors: Invalid:
 * what is allowed, also for an address that is not loopback. Nothing is looked up. Any thread. */
bool cr_reloader_address_parse(const char *text, struct cr_reloader_address *out, struct cr_error *err) CR_MUST_USE;
/* An IP literal of loopback. */
bool cr_reloader_is_loopback(const char *ip);

#endif
