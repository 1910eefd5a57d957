/*
 * A client that reads certificate, key and CA once, at its start, as many programs do, and calls a server over a TLS
 * handshake of its own each time, so many times a second.
 *
 *   mtls-client HOST PORT SERVERNAME RATE      # /certs has tls.crt, tls.key and ca.crt
 *
 * One JSON line is written per call, in the format of hack/lib/certroll_dev/demo/load.py, numbered from 0; asked to end
 * (SIGTERM), it finishes the calls under way and writes {"ended": how many}. A call counts as good when an answer came:
 * in TLS 1.3 a client's handshake is over before the server has looked at its certificate (RFC 8446, section 4.4.2).
 *
 * An open loop, as far as the threads go: calls begin when they are due, however long others take.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

enum { THREADS = 16, TIMEOUT_S = 30, RESOLVE_TRIES = 60, REASON = 256 };

static struct {
    const char *server_name;
    double rate; /* calls a second */
    struct addrinfo *address;
    SSL_CTX *tls;
    struct timespec start; /* of CLOCK_MONOTONIC */
    atomic_ulong next;     /* number of the call that is to begin next */
    atomic_bool ending;
} client;

static void die(const char *what)
{
    fprintf(stderr, "mtls-client: %s\n", what);
    ERR_print_errors_fp(stderr);
    exit(1);
}

/* --- one call */

/* In words, what the TLS library has to say of the last failure. */
static void tls_reason(const SSL *ssl, const char *when, char *reason)
{
    long verify = SSL_get_verify_result(ssl);
    unsigned long code = ERR_peek_error();
    const char *text = code ? ERR_reason_error_string(code) : NULL;

    if (verify != X509_V_OK)
        snprintf(reason, REASON, "the server's certificate is refused: %s", X509_verify_cert_error_string(verify));
    else if (text)
        snprintf(reason, REASON, "%s: %s", when, text);
    else
        snprintf(reason, REASON, "%s: %s", when, errno ? strerror(errno) : "connection closed");
}

/* Returns whether an answer with status 200 came. */
static bool talk(SSL *ssl, char *reason)
{
    char request[512], answer[1024];
    int length = snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
                          client.server_name);

    ERR_clear_error();
    errno = 0;
    if (SSL_connect(ssl) != 1) {
        tls_reason(ssl, "handshake", reason);
        return false;
    }
    if (SSL_write(ssl, request, length) != length) {
        tls_reason(ssl, "request", reason);
        return false;
    }
    int got = SSL_read(ssl, answer, sizeof answer - 1);
    if (got <= 0) {
        tls_reason(ssl, "no answer", reason);
        return false;
    }
    answer[got] = '\0';
    if (strncmp(answer, "HTTP/1.1 200", 12) == 0)
        return true;
    snprintf(reason, REASON, "HTTP %.3s", got > 12 ? answer + 9 : "");
    return false;
}

static int open_socket(char *reason)
{
    const struct timeval timeout = {.tv_sec = TIMEOUT_S};
    const int on = 1;
    int fd = socket(client.address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (connect(fd, client.address->ai_addr, client.address->ai_addrlen) == 0)
            return fd;
    }
    snprintf(reason, REASON, "connect: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool call(char *reason)
{
    int fd = open_socket(reason);
    if (fd < 0)
        return false;
    SSL *ssl = SSL_new(client.tls);
    bool good = false;

    if (ssl && SSL_set_fd(ssl, fd) && SSL_set_tlsext_host_name(ssl, client.server_name) &&
        SSL_set1_host(ssl, client.server_name))
        good = talk(ssl, reason);
    else
        die("cannot make a connection");
    SSL_free(ssl);
    close(fd);
    return good;
}

/* --- when, and what is written */

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Reasons are texts of OpenSSL and the C library: nothing in them needs to be escaped but quotes. */
static void record(unsigned long number, double began, double took, bool good, char *reason)
{
    for (char *c = reason; *c; c++)
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
            *c = '\'';
    if (good)
        printf("{\"t\": %.4f, \"target\": \"batch\", \"n\": %lu, \"ok\": true, \"ms\": %.1f}\n", began, number,
               took * 1e3);
    else
        printf("{\"t\": %.4f, \"target\": \"batch\", \"n\": %lu, \"ok\": false, \"ms\": %.1f, \"reason\": \"%s\"}\n",
               began, number, took * 1e3, reason);
}

static void wait_until_due(unsigned long number)
{
    double after = (double)number / client.rate;
    struct timespec due = client.start;

    due.tv_sec += (time_t)after;
    due.tv_nsec += (long)((after - (double)(time_t)after) * 1e9);
    if (due.tv_nsec >= 1000000000L) {
        due.tv_nsec -= 1000000000L;
        due.tv_sec++;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
        ;
}

static void *run(void *unused)
{
    (void)unused;
    for (;;) {
        char reason[REASON] = "";
        /* Numbers are given to calls that begin, so none is missing when all threads have ended. */
        if (atomic_load(&client.ending))
            return NULL;
        unsigned long number = atomic_fetch_add(&client.next, 1);
        wait_until_due(number);
        double began = seconds(CLOCK_REALTIME), clock = seconds(CLOCK_MONOTONIC);
        bool good = call(reason);
        record(number, began, seconds(CLOCK_MONOTONIC) - clock, good, reason);
    }
}

/* --- the start */

static void load_certificates(void)
{
    client.tls = SSL_CTX_new(TLS_client_method());
    if (!client.tls || SSL_CTX_use_certificate_chain_file(client.tls, "/certs/tls.crt") != 1 ||
        SSL_CTX_use_PrivateKey_file(client.tls, "/certs/tls.key", SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(client.tls) != 1 ||
        SSL_CTX_load_verify_locations(client.tls, "/certs/ca.crt", NULL) != 1)
        die("certificate, key or CA in /certs cannot be used");
    SSL_CTX_set_verify(client.tls, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_session_cache_mode(client.tls, SSL_SESS_CACHE_OFF); /* each handshake verifies both certificates */
}

/* Once, as connections to a Service's address find its pods anyway. The pod's network may be up before its DNS is. */
static void resolve(const char *host, const char *port)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};

    for (int tries = 0; getaddrinfo(host, port, &hints, &client.address) != 0; tries++) {
        if (tries == RESOLVE_TRIES)
            die("the server's name cannot be resolved");
        sleep(1);
    }
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    sigset_t signals;
    int received;

    if (argc != 5 || (client.rate = atof(argv[4])) <= 0)
        die("usage: mtls-client HOST PORT SERVERNAME RATE");
    client.server_name = argv[3];
    setvbuf(stdout, NULL, _IOLBF, 0);
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* inherited by the threads: sigwait below gets them */
    signal(SIGPIPE, SIG_IGN);
    load_certificates();
    resolve(argv[1], argv[2]);
    clock_gettime(CLOCK_MONOTONIC, &client.start);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, run, NULL) != 0)
            die("cannot start a thread");
    sigwait(&signals, &received);
    atomic_store(&client.ending, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("{\"ended\": %lu}\n", atomic_load(&client.next));
    return 0;
}
