/* TLS for wire/http_server.h, with material that is reloaded. */
#ifndef CR_NET_HTTP_SERVER_TLS_H
#define CR_NET_HTTP_SERVER_TLS_H

#include "wire/http_server.h"

struct cr_tlsreload;

/* All addresses of the server use TLS, each new connection with what tls serves at that moment; an open connection goes
 * on with what it began with. tls: borrowed, outlives the server. Before it listens. */
void cr_http_server_use_tls(struct cr_http_server *server, struct cr_tlsreload *tls);

#endif
