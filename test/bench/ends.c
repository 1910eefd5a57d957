#include "ends.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum { PATIENCE_S = 30, BACKLOG = 1024 };

static void need(bool ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    exit(1);
}

static void be_patient(int fd)
{
    const struct timeval most = {.tv_sec = PATIENCE_S};
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* --- the server --- */

static void serve_one(struct ends *ends, int fd)
{
    SSL *ssl = cr_tlsreload_accept(ends->tls);
    be_patient(fd);
    ERR_clear_error();
    if (!ssl || SSL_set_fd(ssl, fd) != 1 || SSL_accept(ssl) != 1 || SSL_write(ssl, "!", 1) != 1)
        atomic_fetch_add(&ends->refused, 1);
    else
        SSL_shutdown(ssl);
    SSL_free(ssl);
    close(fd);
}

static void *serve(void *arg)
{
    struct ends *ends = arg;
    for (;;) {
        int fd = accept4(ends->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            serve_one(ends, fd);
        else if (atomic_load(&ends->stop))
            return NULL;
    }
}

/* --- a client --- */

static int connect_to(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    be_patient(fd);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The chain ends with the CA that issued the leaf, and it is the one that clients are asked for. That the key is the
 * leaf's the handshake has shown. */
static bool of_one_generation(SSL *ssl)
{
    STACK_OF(X509) *chain = SSL_get_peer_cert_chain(ssl);
    const STACK_OF(X509_NAME) *asked = SSL_get0_peer_CA_list(ssl);
    if (sk_X509_num(chain) != 2 || sk_X509_NAME_num(asked) != 1)
        return false;
    X509 *ca = sk_X509_value(chain, 1);
    return X509_verify(sk_X509_value(chain, 0), X509_get0_pubkey(ca)) == 1 &&
           X509_NAME_cmp(X509_get_subject_name(ca), sk_X509_NAME_value(asked, 0)) == 0;
}

static void take_down(struct ends *ends, int64_t took_ns)
{
    int number = atomic_fetch_add(&ends->handshakes, 1);
    if (number < TOOK_MAX)
        ends->took_us[number] = (int32_t)(took_ns / 1000);
}

static bool call_over(struct ends *ends, SSL *ssl, int64_t start)
{
    char word = 0;
    ERR_clear_error();
    if (SSL_connect(ssl) != 1)
        return false;
    int64_t took = cr_clock_monotonic_ns() - start;
    if (SSL_read(ssl, &word, 1) != 1)
        return false;
    take_down(ends, took);
    if (!of_one_generation(ssl))
        atomic_fetch_add(&ends->mixed, 1);
    SSL_shutdown(ssl);
    return true;
}

static void call_once(struct ends *ends, SSL_CTX *context, int version)
{
    int64_t start = cr_clock_monotonic_ns();
    cr_autofd int fd = connect_to(ends->port);
    SSL *ssl = SSL_new(context);
    SSL_set_max_proto_version(ssl, version);
    if (fd < 0 || SSL_set_fd(ssl, fd) != 1 || !call_over(ends, ssl, start))
        atomic_fetch_add(&ends->failed, 1);
    SSL_free(ssl);
}

static void sleep_until(int64_t at_ns)
{
    const struct timespec at = {.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        continue;
}

/* At their times, whatever the ones before took; who is late goes on from there. */
static void *call(void *arg)
{
    struct ends *ends = arg;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    int64_t each = INT64_C(1000000000) * CLIENTS / ends->rate;
    int64_t next = cr_clock_monotonic_ns() + each * atomic_fetch_add(&ends->clients_begun, 1) / CLIENTS;
    for (int i = 0; !atomic_load(&ends->stop); i++) {
        sleep_until(next);
        call_once(ends, context, i % 4 ? TLS1_3_VERSION : TLS1_2_VERSION);
        next += each;
        int64_t now = cr_clock_monotonic_ns();
        next = next > now ? next : now;
    }
    SSL_CTX_free(context);
    return NULL;
}

/* --- both --- */

static void listen_on_loopback(struct ends *ends)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ends->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    need(bind(ends->listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(ends->listener, BACKLOG) == 0 &&
             getsockname(ends->listener, (struct sockaddr *)&at, &len) == 0,
         "listen");
    ends->port = ntohs(at.sin_port);
}

void ends_start(struct ends *ends, struct cr_tlsreload *tls, int rate)
{
    *ends = (struct ends){.tls = tls, .rate = rate, .took_us = cr_calloc(TOOK_MAX, sizeof(int32_t))};
    listen_on_loopback(ends);
    for (int i = 0; i < SERVERS; i++)
        need(pthread_create(&ends->servers[i], NULL, serve, ends) == 0, "thread");
    for (int i = 0; i < CLIENTS; i++)
        need(pthread_create(&ends->clients[i], NULL, call, ends) == 0, "thread");
}

void ends_quiet(struct ends *ends)
{
    atomic_store(&ends->stop, true);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(ends->clients[i], NULL);
    shutdown(ends->listener, SHUT_RDWR); /* wakes who waits in accept */
    for (int i = 0; i < SERVERS; i++)
        pthread_join(ends->servers[i], NULL);
    close(ends->listener);
}

void ends_free(struct ends *ends)
{
    free(ends->took_us);
    ends->took_us = NULL;
}
