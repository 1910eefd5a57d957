/* A server for tests of whatever connects: plain or TLS, a thread per connection, scripted by a function. It listens on
 * a free port of 127.0.0.1. Ends the test when it cannot work. */
#ifndef TEST_SUPPORT_TESTSERVER_H
#define TEST_SUPPORT_TESTSERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "support/testcerts.h"

struct test_server;

/* One connection, in its own thread. */
struct test_conn {
    struct test_server *server;
    unsigned number;  /* 1, 2, … in the order of acceptance */
    unsigned request; /* 1, 2, … on this connection, after test_conn_request */
    /* The request read last: texts owned by the connection. */
    char *head; /* request line and header lines, each with its CRLF */
    char *body;
    size_t body_len;
    /* Of the TLS handshake. */
    char *server_name; /* SNI; NULL: none */
    char *client_cn;   /* of the client's certificate; NULL: none */
    struct test_conn_io *io;
};

struct test_server_options {
    const char *address;               /* an IP address of this machine; NULL: 127.0.0.1 */
    const struct test_cert *cert;      /* NULL: plain */
    const struct test_cert *client_ca; /* demands client certificates of this CA, and announces its name */
    int tls_version;                   /* TLS1_2_VERSION, TLS1_3_VERSION; 0: any */
    const char *ciphers;               /* OpenSSL's list for TLS 1.2 and its security level; NULL: the default */
    /* After the handshake (if any). The connection is closed when it returns. NULL: reads until the peer ends. */
    void (*serve)(struct test_conn *conn, void *arg);
    void *arg;
};

struct test_server *test_server_new(const struct test_server_options *options);
/* Cuts all connections and waits for their threads. */
void test_server_free(struct test_server *server);
CR_DEFINE_CLEANUP(test_server, struct test_server, test_server_free)
int test_server_port(const struct test_server *server);
/* "https://127.0.0.1:port/path" or http; owned. */
char *test_server_url(const struct test_server *server, const char *path);
/* Serves this certificate from the next handshake on. */
void test_server_swap(struct test_server *server, const struct test_cert *cert);
/* Counted so far. */
unsigned test_server_accepted(struct test_server *server);
unsigned test_server_handshakes(struct test_server *server); /* completed ones */
/* Waits until so many connections have ended; false after 10 s. *resets: how many of them by a reset. */
bool test_server_wait_ended(struct test_server *server, unsigned count, unsigned *resets);

/* Reads a whole request (Content-Length bodies); false when the peer ended. */
bool test_conn_request(struct test_conn *conn);
/* Whether a header line of the last request is exactly this, "Name: value". */
bool test_conn_has(const struct test_conn *conn, const char *line);
bool test_conn_write(struct test_conn *conn, const void *data, size_t len);
bool test_conn_puts(struct test_conn *conn, const char *text);
/* Status line, headers (each with CRLF; "" for none), Content-Length and body. */
bool test_conn_answer(struct test_conn *conn, int status, const char *headers, const char *body);
/* Reads and drops just so many bytes; false when the peer ended before. */
bool test_conn_read(struct test_conn *conn, size_t len);
/* Reads just so many bytes; false when the peer ended before. */
bool test_conn_take(struct test_conn *conn, void *data, size_t len);
/* Reads and drops until the peer ends or the server is stopped. */
void test_conn_wait_closed(struct test_conn *conn);
/* Sends the end, and no reset whatever the client still sends; waits for its end. */
void test_conn_hang_up(struct test_conn *conn);

/* What a server may do to a request: answer nothing, or begin an answer of 9 bytes with "half". */
void test_serve_silence(struct test_conn *conn, void *arg);
void test_serve_half(struct test_conn *conn, void *arg);
/* Or to each: "<SNI>|<client's CN>|<Host>". */
void test_serve_who(struct test_conn *conn, void *arg);

#endif
