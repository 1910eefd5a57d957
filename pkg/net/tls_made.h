/* A certificate for an HTTP endpoint of certroll that the user has given no certificate: requests and answers are
 * encrypted, but clients cannot verify the server. It is made at the start and its key is only in memory, so that each
 * process has another one; controller-runtime does the same. */
#ifndef CR_NET_TLS_MADE_H
#define CR_NET_TLS_MADE_H

#include "base/error.h"

struct cr_tlsreload;

/* A leaf (ECDSA P-256) for this DNS name, of a CA that is forgotten at once, good for longer than any process lives:
 * ten years. Thread-safe. Errors: Invalid, the name. For cr_http_server_use_tls; owned: cr_tlsreload_free. */
struct cr_tlsreload *cr_tls_made_new(const char *dns_name, struct cr_error *err) CR_MUST_USE;

#endif
