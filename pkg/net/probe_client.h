/* What a client presents. Private to pkg/net. */
#ifndef CR_NET_PROBE_CLIENT_H
#define CR_NET_PROBE_CLIENT_H

#include <openssl/ssl.h>

#include "net/tls_probe.h"

/* False when OpenSSL does not take it, a key too weak for it for example. */
bool cr_probe_client_use(const struct cr_probe_client *client, SSL *ssl);

#endif
