/* net/http_server_tls.c: what a network does to a page of ours, and what a reload does to those who read it. */
#include "net/http_server_tls.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "support/testcerts.h"
#include "tlsreload/tlsreload.h"

enum { PATIENCE_MS = 30 * 1000, BIG_LINES = 100000 };

static const char request[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
static const char ask_big[] = "GET /big HTTP/1.1\r\nHost: x\r\n\r\n";

struct fixture {
    char *folder;
    char *certificate, *private_key, *client_ca; /* paths; client_ca is NULL when no client is asked */
    struct test_cert *ca, *clients;              /* of servers, of clients */
    struct test_cert *leaf;                      /* the one that is served */
    struct cr_tlsreload *tls;
    struct cr_loop *loop;
    pthread_t thread;
    struct cr_http_server *server;
    _Atomic(struct cr_http_pending *) asked; /* by who wants /guarded */
};

static int metrics(void *arg, struct cr_buf *body, const char **content_type)
{
    (void)arg;
    (void)content_type;
    cr_buf_puts(body, "certroll_up 1\n");
    return 200;
}

static int big(void *arg, struct cr_buf *body, const char **content_type)
{
    (void)arg;
    (void)content_type;
    for (int i = 0; i < BIG_LINES; i++)
        cr_buf_printf(body, "metric_%06d 1\n", i);
    return 200;
}

static void guard(void *arg, const char *authorization, struct cr_http_pending *pending)
{
    struct fixture *f = arg;
    (void)authorization;
    atomic_store(&f->asked, pending);
}

static void *run_loop(void *arg)
{
    cr_loop_run(arg);
    return NULL;
}

/* As a careful writer does it. */
static void put_file(const char *path, const char *text)
{
    cr_autofree char *beside = cr_asprintf("%s.new", path);
    FILE *file = fopen(beside, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(beside, path), 0);
}

static struct test_cert *new_leaf(const struct fixture *f)
{
    return test_cert_new(&(struct test_cert_spec){.cn = "server", .ips = {"127.0.0.1"}, .issuer = f->ca});
}

static void serve_leaf(struct fixture *f, struct test_cert *leaf)
{
    put_file(f->certificate, leaf->cert_pem);
    put_file(f->private_key, leaf->key_pem);
    test_cert_free(f->leaf);
    f->leaf = leaf;
}

static int set_up_for(void **state, enum cr_tlsreload_clients clients)
{
    struct fixture *f = cr_new(struct fixture);
    f->folder = cr_strdup("/tmp/certroll-test-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    f->certificate = cr_asprintf("%s/tls.crt", f->folder);
    f->private_key = cr_asprintf("%s/tls.key", f->folder);
    f->ca = test_cert_new(&(struct test_cert_spec){.cn = "servers' CA", .ca = true});
    f->clients = test_cert_new(&(struct test_cert_spec){.cn = "clients' CA", .ca = true});
    serve_leaf(f, new_leaf(f));
    if (clients != CR_TLSRELOAD_CLIENTS_NONE) {
        f->client_ca = cr_asprintf("%s/ca.crt", f->folder);
        put_file(f->client_ca, f->clients->cert_pem);
    }
    struct cr_error err = {0};
    const struct cr_tlsreload_options options = {
        .certificate = f->certificate, .private_key = f->private_key, .client_ca = f->client_ca, .clients = clients};
    f->tls = cr_tlsreload_new(&options, &err);
    if (!f->tls || !cr_tlsreload_start(f->tls, &err))
        fail_msg("%s", err.text);
    f->loop = cr_loop_new();
    f->server = cr_http_server_new(f->loop);
    cr_http_server_handle(f->server, "/metrics", metrics, f);
    cr_http_server_handle(f->server, "/big", big, f);
    cr_http_server_handle_guarded(f->server, "/guarded", metrics, f, guard, f);
    cr_http_server_use_tls(f->server, f->tls);
    if (!cr_http_server_listen(f->server, "127.0.0.1:0", &err))
        fail_msg("%s", err.text);
    assert_int_equal(pthread_create(&f->thread, NULL, run_loop, f->loop), 0);
    *state = f;
    return 0;
}

static int set_up(void **state)
{
    return set_up_for(state, CR_TLSRELOAD_CLIENTS_NONE);
}

static int set_up_with_clients(void **state)
{
    return set_up_for(state, CR_TLSRELOAD_CLIENTS_REQUIRE);
}

static void remove_file(char *path)
{
    if (path)
        unlink(path);
    free(path);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    cr_loop_stop(f->loop);
    pthread_join(f->thread, NULL);
    cr_http_server_free(f->server);
    cr_loop_free(f->loop);
    cr_tlsreload_free(f->tls);
    test_cert_free(f->leaf);
    test_cert_free(f->ca);
    test_cert_free(f->clients);
    remove_file(f->certificate);
    remove_file(f->private_key);
    remove_file(f->client_ca);
    rmdir(f->folder);
    free(f->folder);
    free(f);
    return 0;
}

/* --- a client --- */

struct client {
    int fd;
    SSL *ssl;
};

static void client_close(struct client *client)
{
    SSL_free(client->ssl);
    close(client->fd);
}
CR_DEFINE_DISPOSE(client, struct client, client_close)

static int connect_to(const struct fixture *f)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)cr_http_server_port(f->server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0)
        fail_msg("%s", strerror(errno));
    return fd;
}

/* Connected, before any handshake. shown: its certificate, NULL for none. */
static struct client begin(const struct fixture *f, int version, const struct test_cert *shown)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    assert_int_equal(SSL_CTX_set_min_proto_version(context, version), 1);
    assert_int_equal(SSL_CTX_set_max_proto_version(context, version), 1);
    assert_int_equal(X509_STORE_add_cert(SSL_CTX_get_cert_store(context), f->ca->x509), 1);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    if (shown) {
        assert_int_equal(SSL_CTX_use_certificate(context, shown->x509), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey(context, shown->key), 1);
    }
    struct client client = {connect_to(f), SSL_new(context)};
    SSL_CTX_free(context);
    assert_int_equal(SSL_set_fd(client.ssl, client.fd), 1);
    return client;
}

static struct client open_client(const struct fixture *f, int version)
{
    struct client client = begin(f, version, NULL);
    ERR_clear_error();
    if (SSL_connect(client.ssl) != 1)
        fail_msg("handshake: %s", ERR_reason_error_string(ERR_peek_last_error()));
    return client;
}

/* Whether the server shows that leaf. */
static bool is_shown(const struct client *client, const struct test_cert *leaf)
{
    X509 *peer = SSL_get1_peer_certificate(client->ssl);
    bool same = peer && X509_cmp(peer, leaf->x509) == 0;
    X509_free(peer);
    return same;
}

/* One request and its answer, of which the head is read, and as much of the body as is wanted. The status; 0: none. */
static int ask(const struct client *client, const char *text, size_t body)
{
    char answer[4096];
    size_t len = 0;
    if (SSL_write(client->ssl, text, (int)strlen(text)) <= 0)
        return 0;
    const char *head_end = NULL;
    while (!head_end && len < sizeof answer - 1) {
        int n = SSL_read(client->ssl, answer + len, (int)(sizeof answer - 1 - len));
        if (n <= 0)
            return 0;
        len += (size_t)n;
        answer[len] = '\0';
        head_end = strstr(answer, "\r\n\r\n");
    }
    assert_non_null(head_end);
    size_t got = len - (size_t)(head_end + 4 - answer);
    int status = cr_starts_with(answer, "HTTP/1.1 ") ? atoi(answer + strlen("HTTP/1.1 ")) : 0;
    while (got < body) {
        int n = SSL_read(client->ssl, answer, sizeof answer);
        if (n <= 0)
            return 0;
        got += (size_t)n;
    }
    assert_int_equal(got, body);
    return status;
}

static int ask_metrics(const struct client *client)
{
    return ask(client, request, strlen("certroll_up 1\n"));
}

static void assert_still_serves(const struct fixture *f)
{
    CR_CLEANUP(client) struct client client = open_client(f, TLS1_3_VERSION);
    assert_int_equal(ask_metrics(&client), 200);
}

/* --- pages --- */

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

static void a_connection_has_many_requests(void **state)
{
    const struct fixture *f = *state;
    for (size_t i = 0; i < cr_array_len(versions); i++) {
        CR_CLEANUP(client) struct client client = open_client(f, versions[i]);
        assert_true(is_shown(&client, f->leaf));
        assert_int_equal(ask_metrics(&client), 200);
        assert_int_equal(ask(&client, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", strlen("not found\n")), 404);
        assert_int_equal(ask_metrics(&client), 200);
    }
}

/* Many records, and more than a socket takes at once. */
static void a_big_answer_arrives_whole(void **state)
{
    for (size_t i = 0; i < cr_array_len(versions); i++) {
        CR_CLEANUP(client) struct client client = open_client(*state, versions[i]);
        assert_int_equal(ask(&client, ask_big, BIG_LINES * strlen("metric_000000 1\n")), 200);
        assert_int_equal(ask_metrics(&client), 200);
    }
}

static void requests_may_come_in_pieces_and_together(void **state)
{
    CR_CLEANUP(client) struct client client = open_client(*state, TLS1_3_VERSION);
    for (size_t i = 0; i + 1 < strlen(request); i++)
        assert_int_equal(SSL_write(client.ssl, request + i, 1), 1);
    assert_int_equal(ask(&client, "\n", strlen("certroll_up 1\n")), 200);
    cr_autofree char *two = cr_asprintf("%s%s", request, request);
    assert_int_equal(SSL_write(client.ssl, two, (int)strlen(two)), strlen(two));
    char answers[4096] = "";
    size_t len = 0;
    for (const char *first = NULL; !first || !strstr(first + 1, "certroll_up 1\n");
         first = strstr(answers, "certroll_up")) {
        int n = SSL_read(client.ssl, answers + len, (int)(sizeof answers - 1 - len));
        assert_true(n > 0);
        len += (size_t)n;
        answers[len] = '\0';
    }
}

static void clients_without_a_good_certificate_are_refused(void **state)
{
    const struct fixture *f = *state;
    CR_CLEANUP(test_cert)
    struct test_cert *other_ca = test_cert_new(&(struct test_cert_spec){.cn = "other", .ca = true});
    /* It has the same name, but another key: names alone open nothing. */
    CR_CLEANUP(test_cert)
    struct test_cert *twin =
        test_cert_new(&(struct test_cert_spec){.cn = "clients' CA", .ca = true, .no_key_ids = true});
    const struct {
        const char *what;
        const struct test_cert *issuer;
        int64_t until_s;
        bool served;
    } cases[] = {
        {"of the CA", f->clients, 3600, true},      {"expired", f->clients, -60, false},
        {"of another CA", other_ca, 3600, false},   {"of a CA of that name", twin, 3600, false},
        {"of the servers' CA", f->ca, 3600, false}, {"of itself", NULL, 3600, false},
    };
    for (size_t v = 0; v < cr_array_len(versions); v++) {
        for (size_t i = 0; i <= cr_array_len(cases); i++) {
            CR_CLEANUP(test_cert) struct test_cert *shown = NULL;
            if (i < cr_array_len(cases)) {
                const struct test_cert_spec spec = {.cn = "prometheus",
                                                    .from_s = -7200,
                                                    .until_s = cases[i].until_s,
                                                    .issuer = cases[i].issuer,
                                                    .no_key_ids = cases[i].issuer == twin};
                shown = test_cert_new(&spec);
            }
            CR_CLEANUP(client) struct client client = begin(f, versions[v], shown);
            /* With TLS 1.3 a client notices it only when it reads. */
            bool served = SSL_connect(client.ssl) == 1 && ask_metrics(&client) == 200;
            bool wanted = i < cr_array_len(cases) && cases[i].served;
            if (served != wanted)
                fail_msg("TLS %x, %s: %s", versions[v], i < cr_array_len(cases) ? cases[i].what : "none",
                         served ? "was served" : "was refused");
        }
    }
}

static int open_files(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* The server's thread opens and closes files of its own while it starts: the count is the one that stays. */
static int open_files_when_idle(void)
{
    enum { LOOKS = 5 };
    const int64_t end = cr_clock_monotonic_ms() + PATIENCE_MS;
    int count = open_files();
    for (int same = 0; same < LOOKS;) {
        assert_true(cr_clock_monotonic_ms() < end);
        poll(NULL, 0, 20);
        int now = open_files();
        same = now == count ? same + 1 : 0;
        count = now;
    }
    return count;
}

/* Both ends of a connection are in this process: ours stay, the server's go. */
static void wait_until_open(int files)
{
    int64_t end = cr_clock_monotonic_ms() + PATIENCE_MS;
    while (open_files() > files && cr_clock_monotonic_ms() < end)
        poll(NULL, 0, 20);
    assert_int_equal(open_files(), files);
}

static void allow(void *arg)
{
    struct fixture *f = arg;
    cr_http_pending_allow(atomic_exchange(&f->asked, NULL));
}

static void wait_until_asked(struct fixture *f)
{
    int64_t end = cr_clock_monotonic_ms() + PATIENCE_MS;
    while (!atomic_load(&f->asked) && cr_clock_monotonic_ms() < end)
        poll(NULL, 0, 5);
    assert_non_null(atomic_load(&f->asked));
}

static void a_guard_may_take_its_time_and_the_client_may_not_wait_for_it(void **state)
{
    static const char ask_guarded[] = "GET /guarded HTTP/1.1\r\nHost: x\r\n\r\n";
    struct fixture *f = *state;
    const int before = open_files_when_idle();
    struct client hasty = open_client(f, TLS1_3_VERSION);
    assert_true(SSL_write(hasty.ssl, ask_guarded, (int)strlen(ask_guarded)) > 0);
    wait_until_asked(f);
    client_close(&hasty);
    cr_loop_post(f->loop, allow, f);
    wait_until_open(before);

    CR_CLEANUP(client) struct client patient = open_client(f, TLS1_3_VERSION);
    assert_true(SSL_write(patient.ssl, ask_guarded, (int)strlen(ask_guarded)) > 0);
    wait_until_asked(f);
    cr_loop_post(f->loop, allow, f);
    char answer[4096] = "";
    assert_true(SSL_read(patient.ssl, answer, sizeof answer - 1) > 0);
    assert_true(cr_starts_with(answer, "HTTP/1.1 200 "));
}

/* --- reloads --- */

static void wait_until_served(const struct fixture *f, const struct test_cert *leaf)
{
    for (int64_t end = cr_clock_monotonic_ms() + PATIENCE_MS; cr_clock_monotonic_ms() < end;) {
        CR_CLEANUP(client) struct client client = open_client(f, TLS1_3_VERSION);
        assert_int_equal(ask_metrics(&client), 200); /* whatever it has, it serves */
        if (is_shown(&client, leaf))
            return;
        poll(NULL, 0, 10);
    }
    fail_msg("the new leaf is not served");
}

static void a_connection_outlives_a_reload(void **state)
{
    struct fixture *f = *state;
    struct test_cert *before = f->leaf;
    f->leaf = NULL;
    CR_CLEANUP(client) struct client idle = begin(f, TLS1_3_VERSION, NULL); /* its handshake is yet to come */
    CR_CLEANUP(client) struct client client = open_client(f, TLS1_2_VERSION);
    assert_true(is_shown(&client, before));
    assert_int_equal(SSL_write(client.ssl, request, 20), 20);
    serve_leaf(f, new_leaf(f));
    wait_until_served(f, f->leaf);
    assert_int_equal(ask(&client, request + 20, strlen("certroll_up 1\n")), 200);
    assert_int_equal(ask_metrics(&client), 200);
    assert_int_equal(SSL_connect(idle.ssl), 1); /* with what it was given when it was accepted */
    assert_true(is_shown(&idle, before));
    assert_int_equal(ask_metrics(&idle), 200);
    test_cert_free(before);
}

/* --- on the wire --- */

static void write_raw(int fd, const void *data, size_t len)
{
    const char *text = data;
    for (size_t at = 0; at < len;) {
        ssize_t n = send(fd, text + at, len - at, MSG_NOSIGNAL);
        if (n < 0)
            return; /* refused in the middle */
        at += (size_t)n;
    }
}

static void what_is_no_tls_is_refused_and_hurts_no_other_client(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } cases[] = {
#define BYTES(text) {text, sizeof(text) - 1}
        BYTES(""),
        BYTES("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"),
        BYTES("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"),
        BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        BYTES("\x16"),
        BYTES("\x16\x03\x01\x02"),
        BYTES("\x16\x03\x01\xff\xff\x01\x00\xff\xff\xff"),     /* a record of 64 KB, a message of 16 MB */
        BYTES("\x16\x03\x01\x00\x00\x16\x03\x01\x00\x00"),     /* empty records */
        BYTES("\x15\x03\x01\x00\x02\x02\x28"),                 /* an alert, before anything */
        BYTES("\x17\x03\x03\x00\x04spam"),                     /* data, before any handshake */
        BYTES("\x14\x03\x03\x00\x01\x01"),                     /* change cipher spec, likewise */
        BYTES("\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10"), /* SSL 2 */
        BYTES("\x16\x03\x00\x00\x2f\x01\x00\x00\x2b\x03\x00"), /* SSL 3 */
        BYTES("\x00\x00\x00\x08\x04\xd2\x16\x2f"),             /* PostgreSQL's SSLRequest */
#undef BYTES
    };
    const struct fixture *f = *state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofd int fd = connect_to(f);
        write_raw(fd, cases[i].bytes, cases[i].len);
        shutdown(fd, SHUT_WR);
        char answer[256];
        size_t len = 0;
        for (ssize_t n; len < sizeof answer && (n = recv(fd, answer + len, sizeof answer - len, 0)) != 0;
             len += (size_t)n)
            if (n < 0 && errno == ECONNRESET)
                break;
            else
                assert_true(n > 0); /* no time-out: it hangs up by itself */
        /* An alert at most (RFC 8446, section 6), never a word of HTTP. */
        if (len && answer[0] != '\x15')
            fail_msg("case %zu: %zu bytes, the first is %02x", i, len, (unsigned char)answer[0]);
        assert_still_serves(f);
    }
}

/* Renegotiation would let one client make the server work without end (CVE-2011-1473). */
static void no_client_may_renegotiate(void **state)
{
    CR_CLEANUP(client) struct client client = open_client(*state, TLS1_2_VERSION);
    assert_int_equal(ask_metrics(&client), 200);
    assert_int_equal(SSL_renegotiate(client.ssl), 1);
    assert_true(SSL_do_handshake(client.ssl) != 1);
    assert_still_serves(*state);
}

/* A connection on which a ClientHello was sent, or just the first of so many parts of it, and no more. */
static int begin_hello(const struct fixture *f, int parts)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    BIO *out = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
    assert_true(SSL_connect(ssl) != 1); /* a ClientHello, and then it waits */
    char *hello = NULL;
    long len = BIO_get_mem_data(out, &hello);
    assert_true(len > 100);
    int fd = connect_to(f);
    write_raw(fd, hello, (size_t)(len / parts));
    SSL_free(ssl);
    SSL_CTX_free(context);
    return fd;
}

/* Silence of any kind ends a connection, after 10 to 20 s; all at once, since that takes its time. */
static void who_says_nothing_is_hung_up(void **state)
{
    enum { SILENT, HALF_HELLO, HELLO, CONNECTED, HALF_REQUEST, ANSWERED, NOT_READING, KINDS, ANSWERS = 64 };
    const struct fixture *f = *state;
    const int before = open_files_when_idle();
    struct client clients[KINDS];
    for (size_t i = CONNECTED; i < KINDS; i++)
        clients[i] = open_client(f, TLS1_3_VERSION);
    clients[SILENT] = (struct client){connect_to(f), NULL};
    clients[HALF_HELLO] = (struct client){begin_hello(f, 2), NULL};
    clients[HELLO] = (struct client){begin_hello(f, 1), NULL};
    assert_int_equal(SSL_write(clients[HALF_REQUEST].ssl, request, 20), 20);
    assert_int_equal(ask_metrics(&clients[ANSWERED]), 200);
    for (int i = 0; i < ANSWERS; i++)
        assert_true(SSL_write(clients[NOT_READING].ssl, ask_big, (int)strlen(ask_big)) > 0);
    wait_until_open(before + KINDS);
    for (size_t i = 0; i < KINDS; i++)
        client_close(&clients[i]);
    assert_still_serves(f);
}

/* --- many --- */

enum { FILES = 256 };

static int set_up_with_few_files(void **state)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = FILES;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return set_up(state);
}

static int tear_down_with_few_files(void **state)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max < 1024 ? limit.rlim_max : 1024;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return tear_down(state);
}

/* A client that begins no handshake, or half of one, gives way to one that does. Each connection counts twice here:
 * both its ends are in this process. */
static void a_flood_of_handshakes_keeps_no_other_client_out(void **state)
{
    enum { FLOOD = 70, PARTS = 2 };
    const struct fixture *f = *state;
    struct client flood[FLOOD];
    for (size_t i = 0; i < FLOOD; i++)
        flood[i] = (struct client){i % 2 ? connect_to(f) : begin_hello(f, PARTS), NULL};
    CR_CLEANUP(client) struct client late = begin(f, TLS1_3_VERSION, NULL);
    assert_int_equal(SSL_connect(late.ssl), 1);
    assert_int_equal(ask_metrics(&late), 200);
    for (size_t i = 0; i < FLOOD; i++)
        client_close(&flood[i]);
}

static void free_server(void *arg)
{
    struct fixture *f = arg;
    cr_http_server_free(cr_steal(&f->server));
}

static void freeing_closes_open_connections(void **state)
{
    struct fixture *f = *state;
    CR_CLEANUP(client) struct client client = open_client(f, TLS1_3_VERSION);
    cr_autofd int half = begin_hello(f, 2);
    assert_still_serves(f); /* so the others were accepted, too */
    cr_loop_post(f->loop, free_server, f);
    char ignored[4096];
    assert_true(SSL_read(client.ssl, ignored, sizeof ignored) <= 0);
    assert_true(recv(half, ignored, sizeof ignored, 0) <= 0);
}

#define with_server(test)  cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define with_clients(test) cmocka_unit_test_setup_teardown(test, set_up_with_clients, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_server(a_connection_has_many_requests),
        with_server(a_big_answer_arrives_whole),
        with_server(requests_may_come_in_pieces_and_together),
        with_clients(clients_without_a_good_certificate_are_refused),
        with_server(a_guard_may_take_its_time_and_the_client_may_not_wait_for_it),
        with_server(a_connection_outlives_a_reload),
        with_server(what_is_no_tls_is_refused_and_hurts_no_other_client),
        with_server(no_client_may_renegotiate),
        with_server(who_says_nothing_is_hung_up),
        cmocka_unit_test_setup_teardown(a_flood_of_handshakes_keeps_no_other_client_out, set_up_with_few_files,
                                        tear_down_with_few_files),
        with_server(freeing_closes_open_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
