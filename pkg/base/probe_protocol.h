/* The protocols in which a probe can ask for a server's certificate: they differ in how TLS begins. A protocol is a
 * value here, its word in probe_protocol.c, and a row of dialogues in net/probe_exchange.c; test_probe_protocol.c holds
 * the CRD against them. It is in the lowest layer because neither of pkg/api, which reads the words, and pkg/net, which
 * carries them out, uses the other. */
#ifndef CR_BASE_PROBE_PROTOCOL_H
#define CR_BASE_PROBE_PROTOCOL_H

enum cr_probe_protocol {
    CR_PROBE_TLS,        /* at once */
    CR_PROBE_POSTGRESQL, /* after an SSLRequest */
    CR_PROBE_MYSQL,      /* after the server's greeting, also MariaDB; ends with a log-in that is refused, so that the
                          * server does not count a broken handshake (net/probe_greeting.h) */
    CR_PROBE_PROTOCOLS
};

/* "TLS", "PostgreSQL", "MySQL": the words of the API and of messages. */
extern const char *const cr_probe_protocol_names[CR_PROBE_PROTOCOLS];
/* "" for a value that is none. */
const char *cr_probe_protocol_name(enum cr_probe_protocol protocol);

#endif
