/* What is sent to a server to see whether it goes on with a client after the handshake, and what its answer says. Pure.
 * Private to pkg/net, open to its tests.
 *
 * HTTP/1: "OPTIONS /", which is safe by RFC 9110, section 9.2.1, as version 1.0. So it needs no Host, which Redis would
 * take for an attack; Envoy answers 426 by itself and asks no upstream (accept_http_10 is off unless it was switched
 * on); the connection ends with the answer. nginx looks at the certificate before it answers, which it does not do for
 * "OPTIONS *"; a kube-apiserver answers 401 to a certificate that it does not know and 403 to one that it knows, and to
 * none. HAProxy, etcd and Go servers answer as they like. Databases with TLS of their own are not asked.
 *
 * HTTP/2: nothing but the client's preface (RFC 9113, section 3.4), which is no request at all; the server has to send
 * its own, a SETTINGS frame. For servers that support nothing else: gRPC. */
#ifndef CR_NET_PROBE_REQUEST_H
#define CR_NET_PROBE_REQUEST_H

#include <stddef.h>

#include "net/tls_probe.h"

enum { CR_PROBE_ANSWER_MAX = 1024 }; /* bytes that are read; nginx says in its first 300 what it is about */

/* Static bytes. */
const char *cr_probe_request_bytes(enum cr_probe_request request, size_t *len);
/* For SSL_set_alpn_protos; NULL: none is offered, since a server that knows none of what is offered refuses with an
 * alert. */
const unsigned char *cr_probe_request_alpn(enum cr_probe_request request, unsigned *len);

/* Sets data, status and of_certificate by what has come so far. True: more bytes would add nothing. */
bool cr_probe_answer_read(const char *data, size_t len, struct cr_probe_answer *answer);

#endif
