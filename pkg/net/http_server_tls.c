#include "net/http_server_tls.h"

#include <event2/bufferevent_ssl.h>
#include <stdlib.h>

#include "base/log.h"
#include "tlsreload/tlsreload.h"

/* The descriptor comes later, from libevent, which closes it by the option. */
static struct bufferevent *new_tls_connection(struct event_base *base, void *tls)
{
    struct ssl_st *ssl = cr_tlsreload_accept(tls);
    struct bufferevent *connection =
        ssl ? bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE) : NULL;
    if (!connection) {
        /* As base/alloc.h; and with none libevent would make one for plain HTTP. */
        cr_log(CR_LOG_ERROR, "out of memory for a TLS connection");
        abort();
    }
    return connection;
}

void cr_http_server_use_tls(struct cr_http_server *server, struct cr_tlsreload *tls)
{
    cr_http_server_use_connections(server, new_tls_connection, tls);
}
