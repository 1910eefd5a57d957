/*
 * A client that reads certificate, key and CAs from its files for each TLS handshake, as long as it runs, with OpenSSL
 * or with GnuTLS.
 *
 *   rereading-client openssl|gnutls HOST PORT SERVERNAME MILLISECONDS     # /certs has tls.crt, tls.key and ca.crt
 *
 * One JSON line is written per call, numbered from 0; asked to end (SIGTERM), it finishes the call under way and writes
 * {"ended": how many}. A call counts as good when an answer came: in TLS 1.3 a client's handshake is over before the
 * server has looked at its certificate (RFC 8446, section 4.4.2).
 *
 * Certificates are taken as the library's own functions for files take them: what verifies is the library as it is.
 */
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/gnutls.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

enum { TIMEOUT_S = 60, RESOLVE_TRIES = 60, REASON = 256, FILE_NAME = PATH_MAX + 16, ANSWER = 1024 };

struct files {
    char certificate[FILE_NAME];
    char key[FILE_NAME];
    char cas[FILE_NAME];
};

static const char *server_name;
static struct addrinfo *address;
static sigset_t ends; /* blocked, so that no call is interrupted */

static void die(const char *what)
{
    fprintf(stderr, "rereading-client: %s\n", what);
    exit(1);
}

/* --- the files */

/* All of one version: a kubelet puts a new folder in the place of the one before (atomic_writer.go), so that names
 * below /certs may be of two. */
static void find_files(struct files *files)
{
    char folder[PATH_MAX];
    if (!realpath("/certs/..data", folder))
        snprintf(folder, sizeof folder, "/certs");
    snprintf(files->certificate, sizeof files->certificate, "%s/tls.crt", folder);
    snprintf(files->key, sizeof files->key, "%s/tls.key", folder);
    snprintf(files->cas, sizeof files->cas, "%s/ca.crt", folder);
}

static bool are_there(const struct files *files)
{
    return access(files->certificate, R_OK) == 0 && access(files->key, R_OK) == 0 && access(files->cas, R_OK) == 0;
}

static void fail(char *reason, const char *when, const char *text)
{
    snprintf(reason, REASON, "%s: %s", when, text);
}

/* --- OpenSSL */

static void openssl_reason(const SSL *ssl, const char *when, char *reason)
{
    long verify = ssl ? SSL_get_verify_result(ssl) : X509_V_OK;
    unsigned long code = ERR_peek_error();
    const char *text = code ? ERR_reason_error_string(code) : NULL;
    if (verify != X509_V_OK)
        fail(reason, "the server's certificate is refused", X509_verify_cert_error_string(verify));
    else
        fail(reason, when, text ? text : "connection closed");
}

static bool openssl_load(SSL_CTX *tls, const struct files *files)
{
    return tls && SSL_CTX_use_certificate_chain_file(tls, files->certificate) == 1 &&
           SSL_CTX_use_PrivateKey_file(tls, files->key, SSL_FILETYPE_PEM) == 1 && SSL_CTX_check_private_key(tls) == 1 &&
           SSL_CTX_load_verify_locations(tls, files->cas, NULL) == 1;
}

static bool openssl_exchange(SSL_CTX *tls, int fd, const char *request, char *answer, char *reason)
{
    SSL *ssl = SSL_new(tls);
    int got = 0;
    if (!ssl || !SSL_set_fd(ssl, fd) || !SSL_set_tlsext_host_name(ssl, server_name) || !SSL_set1_host(ssl, server_name))
        die("cannot make a connection");
    if (SSL_connect(ssl) != 1)
        openssl_reason(ssl, "handshake", reason);
    else if (SSL_write(ssl, request, (int)strlen(request)) <= 0 || (got = SSL_read(ssl, answer, ANSWER - 1)) <= 0)
        openssl_reason(ssl, "no answer", reason);
    answer[got > 0 ? got : 0] = '\0';
    SSL_free(ssl);
    return got > 0;
}

static bool openssl_talk(const struct files *files, int fd, const char *request, char *answer, char *reason)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
    bool done = false;
    ERR_clear_error();
    if (openssl_load(tls, files)) {
        SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
        done = openssl_exchange(tls, fd, request, answer, reason);
    } else {
        openssl_reason(NULL, "certificate, key or CAs", reason);
    }
    SSL_CTX_free(tls);
    return done;
}

/* --- GnuTLS */

static bool gnutls_load(gnutls_certificate_credentials_t credentials, const struct files *files, char *reason)
{
    int done = gnutls_certificate_set_x509_trust_file(credentials, files->cas, GNUTLS_X509_FMT_PEM);
    if (done >= 0)
        done = gnutls_certificate_set_x509_key_file(credentials, files->certificate, files->key, GNUTLS_X509_FMT_PEM);
    if (done < 0)
        fail(reason, "certificate, key or CAs", gnutls_strerror(done));
    return done >= 0;
}

static void gnutls_reason(gnutls_session_t session, const char *when, int code, char *reason)
{
    gnutls_datum_t text = {0};
    unsigned status = gnutls_session_get_verify_cert_status(session);
    if (code == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR &&
        gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0) == 0)
        fail(reason, "the server's certificate is refused", (const char *)text.data);
    else
        fail(reason, when, gnutls_strerror(code));
    gnutls_free(text.data);
}

static bool gnutls_exchange(gnutls_session_t session, const char *request, char *answer, char *reason)
{
    int done;
    ssize_t got = 0;
    do
        done = gnutls_handshake(session);
    while (done < 0 && !gnutls_error_is_fatal(done));
    if (done < 0) {
        gnutls_reason(session, "handshake", done, reason);
        return false;
    }
    if ((got = gnutls_record_send(session, request, strlen(request))) > 0)
        do /* a server's session ticket comes first */
            got = gnutls_record_recv(session, answer, ANSWER - 1);
        while (got == GNUTLS_E_AGAIN || got == GNUTLS_E_INTERRUPTED);
    answer[got > 0 ? got : 0] = '\0';
    if (got <= 0)
        gnutls_reason(session, "no answer", got < 0 ? (int)got : GNUTLS_E_PREMATURE_TERMINATION, reason);
    return got > 0;
}

static bool gnutls_talk(const struct files *files, int fd, const char *request, char *answer, char *reason)
{
    gnutls_certificate_credentials_t credentials;
    gnutls_session_t session;
    bool done = false;
    if (gnutls_certificate_allocate_credentials(&credentials) < 0 || gnutls_init(&session, GNUTLS_CLIENT) < 0)
        die("no memory for a session");
    if (gnutls_load(credentials, files, reason)) {
        gnutls_set_default_priority(session);
        gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
        gnutls_server_name_set(session, GNUTLS_NAME_DNS, server_name, strlen(server_name));
        gnutls_session_set_verify_cert(session, server_name, 0);
        gnutls_transport_set_int(session, fd);
        done = gnutls_exchange(session, request, answer, reason);
    }
    gnutls_deinit(session);
    gnutls_certificate_free_credentials(credentials);
    return done;
}

/* --- one call */

static const struct library {
    const char *name;
    bool (*talk)(const struct files *files, int fd, const char *request, char *answer, char *reason);
} libraries[] = {{"openssl", openssl_talk}, {"gnutls", gnutls_talk}};

static int open_socket(char *reason)
{
    const struct timeval timeout = {.tv_sec = TIMEOUT_S};
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
        if (connect(fd, address->ai_addr, address->ai_addrlen) == 0)
            return fd;
    }
    fail(reason, "connect", strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool call_with(const struct library *library, const struct files *files, char *reason)
{
    char request[512];
    char answer[ANSWER] = "";
    int fd = open_socket(reason);
    if (fd < 0)
        return false;
    snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", server_name);
    bool good = library->talk(files, fd, request, answer, reason);
    close(fd);
    if (good && strncmp(answer, "HTTP/1.1 200", 12) != 0) {
        fail(reason, "not the answer", "status other than 200");
        good = false;
    }
    return good;
}

/* Files that went while they were read are read again: of the version that is there now. */
static bool call(const struct library *library, char *reason)
{
    struct files files;
    for (int tries = 0;; tries++) {
        find_files(&files);
        bool good = call_with(library, &files, reason);
        if (good || are_there(&files) || tries == 2)
            return good;
    }
}

/* --- when, and what is written */

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Nothing in the libraries' texts needs to be escaped but quotes and line ends. */
static void record(const char *target, unsigned long number, double began, double took, bool good, char *reason)
{
    for (char *c = reason; *c; c++)
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
            *c = '\'';
    printf("{\"t\": %.4f, \"target\": \"%s\", \"n\": %lu, \"ok\": %s, \"ms\": %.1f", began, target, number,
           good ? "true" : "false", took * 1e3);
    if (!good)
        printf(", \"reason\": \"%s\"", reason);
    puts("}");
}

/* Whether it is asked to end, until then. */
static bool wait_for_end(double rest)
{
    struct timespec left = {0};
    if (rest > 0) {
        left.tv_sec = (time_t)rest;
        left.tv_nsec = (long)((rest - (double)left.tv_sec) * 1e9);
    }
    return sigtimedwait(&ends, NULL, &left) > 0;
}

/* Once, as a Service's address stays. The pod's network may be up before its DNS is. */
static void resolve(const char *host, const char *port)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    for (int tries = 0; getaddrinfo(host, port, &hints, &address) != 0; tries++) {
        if (tries == RESOLVE_TRIES)
            die("the server's name cannot be resolved");
        sleep(1);
    }
}

static void run(const struct library *library, double every)
{
    unsigned long number = 0;
    double took;
    do {
        char reason[REASON] = "";
        double began = seconds(CLOCK_REALTIME), clock = seconds(CLOCK_MONOTONIC);
        bool good = call(library, reason);
        took = seconds(CLOCK_MONOTONIC) - clock;
        record(library->name, number++, began, took, good, reason);
    } while (!wait_for_end(every - took));
    printf("{\"ended\": %lu}\n", number);
}

int main(int argc, char **argv)
{
    const struct library *library = NULL;
    for (size_t i = 0; argc == 6 && i < sizeof libraries / sizeof *libraries; i++)
        if (strcmp(argv[1], libraries[i].name) == 0)
            library = &libraries[i];
    if (!library || atof(argv[5]) <= 0)
        die("usage: rereading-client openssl|gnutls HOST PORT SERVERNAME MILLISECONDS");
    server_name = argv[4];
    setvbuf(stdout, NULL, _IOLBF, 0);
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN);
    resolve(argv[2], argv[3]);
    run(library, atof(argv[5]) / 1e3);
    return 0;
}
