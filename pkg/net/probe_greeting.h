/* What PostgreSQL and MySQL say in the clear before TLS begins, and what is said to them. Pure: bytes in, a verdict
 * out; strict, since it is not known yet which program answers. Private to pkg/net, open to its tests.
 *
 * PostgreSQL: "SSLRequest" and "ErrorResponse" of
 * https://www.postgresql.org/docs/current/protocol-message-formats.html. MySQL, MariaDB:
 * https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase.html. */
#ifndef CR_NET_PROBE_GREETING_H
#define CR_NET_PROBE_GREETING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cr_greeting {
    CR_GREETING_MORE,    /* wants more bytes: at least as many as *missing */
    CR_GREETING_TLS,     /* the server is ready for TLS */
    CR_GREETING_NO_TLS,  /* it has none */
    CR_GREETING_ERROR,   /* it reports an error, in words */
    CR_GREETING_FOREIGN, /* it does not use this protocol */
};

enum {
    CR_GREETING_MAX = 1024, /* longest answer that is read */
    CR_GREETING_WORDS = 80, /* of the server, printable ASCII, cut */
    CR_GREETING_REQUEST = 128,
};

/* The server's own words, made harmless: up to the first line's end, what is not printable ASCII as a dot, no quotes.
 */
void cr_greeting_quote(const unsigned char *data, size_t len, char *out, size_t size);

/* --- PostgreSQL --- */

/* How long the request is. */
size_t cr_postgres_request(unsigned char out[CR_GREETING_REQUEST]);
/* closed: nothing more will come. *missing is never more than what belongs to the answer: what follows an "S" in the
 * same packet is TLS or a forgery (CVE-2021-23222), and is left for TLS to refuse. */
enum cr_greeting cr_postgres_answer(const unsigned char *data, size_t len, bool closed, size_t *missing,
                                    char words[CR_GREETING_WORDS]);

/* --- MySQL --- */

struct cr_mysql_greeting {
    uint32_t capabilities;
    char plugin[33]; /* the server's way to authenticate; "" when it names none */
};

/* The first packet of the connection. */
enum cr_greeting cr_mysql_answer(const unsigned char *data, size_t len, size_t *missing,
                                 struct cr_mysql_greeting *greeting, char words[CR_GREETING_WORDS]);
/* What asks for TLS. */
size_t cr_mysql_request(const struct cr_mysql_greeting *greeting, unsigned char out[CR_GREETING_REQUEST]);
/* A log-in as a user who should not exist, without a password; tls: the request came before. A server that refuses it
 * has seen a whole conversation. One that is left in the middle counts a "handshake error", and blocks the host after
 * 100 of them (max_connect_errors); errors of authentication do not count (host_cache of the performance schema). */
size_t cr_mysql_login(const struct cr_mysql_greeting *greeting, bool tls, unsigned char out[CR_GREETING_REQUEST]);
/* The next thing to say to a whole packet of that conversation; 0: nothing, it is over. *missing > 0: the packet is not
 * whole yet. */
size_t cr_mysql_reply(const unsigned char *data, size_t len, size_t *missing, unsigned char out[CR_GREETING_REQUEST]);

#endif
