#include "support/testserver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

/* A test without its server can say nothing. */
#define must(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s failed: %s\n", __FILE__, __LINE__, #condition, strerror(errno));                \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

struct test_conn_io {
    LIST_ENTRY(test_conn_io) link;
    struct test_conn conn;
    pthread_t thread;
    int fd;
    SSL *ssl;
    struct cr_buf input;
    bool reset; /* the peer ended with a reset */
};

struct test_server {
    struct test_server_options options;
    int listener;
    int port;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Guarded by lock. */
    SSL_CTX *ctx;
    LIST_HEAD(, test_conn_io) conns; /* open or ended, until the server is freed */
    bool stopped;
    unsigned accepted;
    unsigned handshakes;
    unsigned ended;
    unsigned resets;
};

static int read_some(struct test_conn_io *io, char *data, size_t size)
{
    int n = 0;
    if (io->ssl)
        n = SSL_read(io->ssl, data, (int)size);
    else
        do
            n = (int)recv(io->fd, data, size, 0);
        while (n < 0 && errno == EINTR);
    if (n < 0 && errno == ECONNRESET)
        io->reset = true;
    return n;
}

bool test_conn_write(struct test_conn *conn, const void *data, size_t len)
{
    const char *at = data;
    while (len) {
        ssize_t n = conn->io->ssl ? SSL_write(conn->io->ssl, at, (int)len) : send(conn->io->fd, at, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

bool test_conn_puts(struct test_conn *conn, const char *text)
{
    return test_conn_write(conn, text, strlen(text));
}

bool test_conn_answer(struct test_conn *conn, int status, const char *headers, const char *body)
{
    cr_autofree char *text =
        cr_asprintf("HTTP/1.1 %d Answer\r\n%sContent-Length: %zu\r\n\r\n%s", status, headers, strlen(body), body);
    return test_conn_puts(conn, text);
}

bool test_conn_read(struct test_conn *conn, size_t len)
{
    char ignored[4096];
    while (len) {
        int n = read_some(conn->io, ignored, len < sizeof ignored ? len : sizeof ignored);
        if (n <= 0)
            return false;
        len -= (size_t)n;
    }
    return true;
}

bool test_conn_take(struct test_conn *conn, void *data, size_t len)
{
    char *at = data;
    while (len) {
        int n = read_some(conn->io, at, len);
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

void test_conn_wait_closed(struct test_conn *conn)
{
    char ignored[4096];
    while (read_some(conn->io, ignored, sizeof ignored) > 0)
        ;
}

/* Closed at once with something unread, the kernel would send a reset. */
void test_conn_hang_up(struct test_conn *conn)
{
    shutdown(conn->io->fd, SHUT_WR);
    test_conn_wait_closed(conn);
}

static bool fill(struct test_conn_io *io)
{
    char chunk[4096];
    int n = read_some(io, chunk, sizeof chunk);
    return n > 0 && cr_buf_append(&io->input, chunk, (size_t)n);
}

static size_t content_length(const char *head)
{
    const char *at = strcasestr(head, "\r\nContent-Length:");
    return at ? strtoul(at + strlen("\r\nContent-Length:"), NULL, 10) : 0;
}

bool test_conn_request(struct test_conn *conn)
{
    struct test_conn_io *io = conn->io;
    const char *end = NULL;
    while (!(end = strstr(cr_buf_text(&io->input), "\r\n\r\n")))
        if (!fill(io))
            return false;
    size_t head_len = (size_t)(end - io->input.data) + 2;
    free(conn->head);
    conn->head = cr_strndup(io->input.data, head_len);
    cr_buf_consume(&io->input, head_len + 2);
    conn->body_len = content_length(conn->head);
    while (io->input.len < conn->body_len)
        if (!fill(io))
            return false;
    free(conn->body);
    conn->body = cr_strndup(cr_buf_text(&io->input), conn->body_len);
    cr_buf_consume(&io->input, conn->body_len);
    conn->request++;
    return true;
}

bool test_conn_has(const struct test_conn *conn, const char *line)
{
    cr_autofree char *framed = cr_asprintf("\r\n%s\r\n", line);
    return conn->head && strstr(conn->head, framed);
}

static SSL_CTX *new_context(const struct test_server_options *options, const struct test_cert *cert)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    must(ctx);
    if (options->ciphers)
        must(SSL_CTX_set_cipher_list(ctx, options->ciphers));
    must(SSL_CTX_use_certificate(ctx, cert->x509) && SSL_CTX_use_PrivateKey(ctx, cert->key));
    must(SSL_CTX_set_min_proto_version(ctx, options->tls_version));
    must(SSL_CTX_set_max_proto_version(ctx, options->tls_version));
    if (options->client_ca) {
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        must(X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), options->client_ca->x509));
        must(SSL_CTX_add_client_CA(ctx, options->client_ca->x509) == 1);
        /* Without, OpenSSL ends a handshake that takes a session up again. */
        static const unsigned char sessions[] = "test";
        must(SSL_CTX_set_session_id_context(ctx, sessions, sizeof sessions) == 1);
    }
    return ctx;
}

static char *client_name(const SSL *ssl)
{
    X509 *cert = SSL_get1_peer_certificate(ssl);
    if (!cert)
        return NULL;
    char cn[128] = "";
    X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, cn, sizeof cn);
    X509_free(cert);
    return cr_strdup(cn);
}

static bool shake(struct test_conn_io *io)
{
    struct test_server *server = io->conn.server;
    if (!server->options.cert)
        return true;
    pthread_mutex_lock(&server->lock);
    io->ssl = SSL_new(server->ctx);
    pthread_mutex_unlock(&server->lock);
    must(io->ssl && SSL_set_fd(io->ssl, io->fd));
    bool ok = SSL_accept(io->ssl) == 1;
    if (!ok && errno == ECONNRESET)
        io->reset = true;
    pthread_mutex_lock(&server->lock);
    server->handshakes += ok;
    pthread_mutex_unlock(&server->lock);
    if (!ok)
        return false;
    io->conn.client_cn = client_name(io->ssl);
    io->conn.server_name = cr_strdup_or_null(SSL_get_servername(io->ssl, TLSEXT_NAMETYPE_host_name));
    return true;
}

static void note_ended(struct test_conn_io *io)
{
    struct test_server *server = io->conn.server;
    pthread_mutex_lock(&server->lock);
    close(io->fd);
    io->fd = -1;
    server->ended++;
    server->resets += io->reset;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

static void *run_conn(void *arg)
{
    struct test_conn_io *io = arg;
    struct test_server *server = io->conn.server;
    errno = 0;
    if (shake(io) && server->options.serve)
        server->options.serve(&io->conn, server->options.arg);
    else
        test_conn_wait_closed(&io->conn);
    if (io->ssl)
        SSL_shutdown(io->ssl);
    SSL_free(io->ssl);
    ERR_clear_error();
    note_ended(io);
    return NULL;
}

static void accept_one(struct test_server *server, int fd)
{
    struct test_conn_io *io = cr_new(struct test_conn_io);
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    io->fd = fd;
    io->conn.server = server;
    io->conn.io = io;
    pthread_mutex_lock(&server->lock);
    io->conn.number = ++server->accepted;
    LIST_INSERT_HEAD(&server->conns, io, link);
    if (server->stopped)
        shutdown(fd, SHUT_RDWR);
    must(pthread_create(&io->thread, NULL, run_conn, io) == 0);
    pthread_mutex_unlock(&server->lock);
}

static void *run_server(void *arg)
{
    struct test_server *server = arg;
    for (;;) {
        int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            accept_one(server, fd);
        else if (errno != EINTR && errno != ECONNABORTED)
            return NULL; /* shut down */
    }
}

static void listen_somewhere(struct test_server *server)
{
    /* The port stands at the same place of both families. */
    struct sockaddr_in6 at = {.sin6_family = AF_INET6};
    struct sockaddr_in *ip4 = (struct sockaddr_in *)&at;
    socklen_t len = sizeof at;
    const char *address = server->options.address ? server->options.address : "127.0.0.1";
    if (inet_pton(AF_INET6, address, &at.sin6_addr) != 1) {
        ip4->sin_family = AF_INET;
        must(inet_pton(AF_INET, address, &ip4->sin_addr) == 1);
    }
    server->listener = socket(at.sin6_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(server->listener >= 0);
    must(bind(server->listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(server->listener, 256) == 0);
    must(getsockname(server->listener, (struct sockaddr *)&at, &len) == 0);
    server->port = ntohs(at.sin6_port);
}

struct test_server *test_server_new(const struct test_server_options *options)
{
    signal(SIGPIPE, SIG_IGN);
    struct test_server *server = cr_new(struct test_server);
    server->options = *options;
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->changed, NULL);
    LIST_INIT(&server->conns);
    if (options->cert)
        server->ctx = new_context(options, options->cert);
    listen_somewhere(server);
    must(pthread_create(&server->thread, NULL, run_server, server) == 0);
    return server;
}

static void conn_free(struct test_conn_io *io)
{
    cr_buf_dispose(&io->input);
    free(io->conn.head);
    free(io->conn.body);
    free(io->conn.server_name);
    free(io->conn.client_cn);
    free(io);
}

static void cut_all(struct test_server *server)
{
    struct test_conn_io *io = NULL;
    pthread_mutex_lock(&server->lock);
    server->stopped = true;
    LIST_FOREACH(io, &server->conns, link)
    if (io->fd >= 0)
        shutdown(io->fd, SHUT_RDWR);
    pthread_mutex_unlock(&server->lock);
}

void test_server_free(struct test_server *server)
{
    if (!server)
        return;
    cut_all(server);
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listener);
    while (!LIST_EMPTY(&server->conns)) {
        struct test_conn_io *io = LIST_FIRST(&server->conns);
        pthread_join(io->thread, NULL);
        LIST_REMOVE(io, link);
        conn_free(io);
    }
    SSL_CTX_free(server->ctx);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

int test_server_port(const struct test_server *server)
{
    return server->port;
}

char *test_server_url(const struct test_server *server, const char *path)
{
    return cr_asprintf("%s://127.0.0.1:%d%s", server->options.cert ? "https" : "http", server->port, path);
}

void test_server_swap(struct test_server *server, const struct test_cert *cert)
{
    SSL_CTX *ctx = new_context(&server->options, cert);
    pthread_mutex_lock(&server->lock);
    SSL_CTX *old = server->ctx;
    server->ctx = ctx;
    pthread_mutex_unlock(&server->lock);
    SSL_CTX_free(old);
}

unsigned test_server_accepted(struct test_server *server)
{
    pthread_mutex_lock(&server->lock);
    unsigned count = server->accepted;
    pthread_mutex_unlock(&server->lock);
    return count;
}

unsigned test_server_handshakes(struct test_server *server)
{
    pthread_mutex_lock(&server->lock);
    unsigned count = server->handshakes;
    pthread_mutex_unlock(&server->lock);
    return count;
}

bool test_server_wait_ended(struct test_server *server, unsigned count, unsigned *resets)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    int rc = 0;
    pthread_mutex_lock(&server->lock);
    while (server->ended < count && rc == 0)
        rc = pthread_cond_timedwait(&server->changed, &server->lock, &until);
    bool ok = server->ended >= count;
    if (resets)
        *resets = server->resets;
    pthread_mutex_unlock(&server->lock);
    return ok;
}

void test_serve_silence(struct test_conn *conn, void *arg)
{
    (void)arg;
    if (test_conn_request(conn))
        test_conn_wait_closed(conn);
}

void test_serve_half(struct test_conn *conn, void *arg)
{
    (void)arg;
    if (test_conn_request(conn) && test_conn_puts(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"))
        test_conn_wait_closed(conn);
}

void test_serve_who(struct test_conn *conn, void *arg)
{
    (void)arg;
    while (test_conn_request(conn)) {
        const char *host = strcasestr(conn->head, "\r\nHost: ");
        cr_autofree char *text = cr_asprintf("%s|%s|%.*s", cr_or_empty(conn->server_name), cr_or_empty(conn->client_cn),
                                             host ? (int)strcspn(host + 8, "\r") : 0, host ? host + 8 : "");
        test_conn_answer(conn, 200, "", text);
    }
}
