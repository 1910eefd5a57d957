/* What a client presents. Private to pkg/net. */
#ifndef CR_NET_PROBE_CLIENT_H
#define CR_NET_PROBE_CLIENT_H

#include <openssl/ssl.h>

#include "net/tls_probe.h"

/* False when OpenSSL does not take it, a key too weak for it for example. */
bool cr_probe_client_use(const struct cr_probe_client *client, SSL *ssl);

/* One that only its CA tells from `like`: the same names, life, usages and key, issued by a CA that nobody can trust,
 * since it is made here and its key is gone at once. Owned; NULL when OpenSSL cannot make it. */
struct cr_probe_client *cr_probe_client_stranger(const struct cr_probe_client *like) CR_MUST_USE;

#endif
