#include "net/tls_probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "support/testserver.h"

enum { PATIENCE_MS = 10 * 1000 };

static struct cr_probe_result probe_at(int port, const char *server_name, int timeout_ms)
{
    const struct cr_probe_target target = {.address = "127.0.0.1", .port = port, .server_name = server_name};
    struct cr_probe_result result;
    memset(&result, 0xaa, sizeof result); /* what was there before must not show */
    cr_tls_probe(&target, 1, timeout_ms, &result);
    return result;
}

static struct cr_probe_result probe(const struct test_server *server)
{
    return probe_at(test_server_port(server), NULL, PATIENCE_MS);
}

static void digest_of(const struct test_cert *cert, char out[CR_PROBE_DIGEST])
{
    unsigned char digest[32];
    unsigned len = 0;
    assert_int_equal(X509_digest(cert->x509, EVP_sha256(), digest, &len), 1);
    for (unsigned i = 0; i < len; i++)
        snprintf(out + (size_t)2 * i, 3, "%02x", digest[i]);
}

static void assert_serves(const struct cr_probe_result *result, const struct test_cert *cert)
{
    char expected[CR_PROBE_DIGEST];
    digest_of(cert, expected);
    if (result->outcome != CR_PROBE_SERVED)
        fail_msg("not served: %s", result->detail);
    assert_string_equal(result->leaf, expected);
    assert_string_equal(result->detail, "");
}

static void assert_not_served(const struct cr_probe_result *result, enum cr_probe_outcome outcome, const char *words)
{
    assert_int_equal(result->outcome, outcome);
    assert_string_equal(result->leaf, "");
    if (!strstr(result->detail, words))
        fail_msg("'%s' does not say '%s'", result->detail, words);
}

/* The name of a curve that no client offers by default stands for keys that only the lowest level accepts. */
static void sees_the_leaf_of_any_server(void **state)
{
    static const struct {
        const char *rule;
        int version;
        const char *key_type;
        const char *ciphers;
        bool demands_client;
    } cases[] = {
        {"TLS 1.2", TLS1_2_VERSION, "P-256", NULL, false},
        {"TLS 1.3", TLS1_3_VERSION, "P-256", NULL, false},
        {"TLS 1.2 that demands a client certificate and aborts", TLS1_2_VERSION, "P-256", NULL, true},
        {"TLS 1.3 that demands a client certificate and aborts", TLS1_3_VERSION, "P-256", NULL, true},
        {"TLS 1.0", TLS1_VERSION, "P-256", "ALL:@SECLEVEL=0", false},
        {"an RSA key", 0, "RSA", NULL, false},
        {"an RSA key exchange without forward secrecy", TLS1_2_VERSION, "RSA", "AES128-SHA", false},
        {"an Ed25519 key", 0, "ED25519", NULL, false},
        {"a P-521 key", 0, "P-521", NULL, false},
    };
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *ca = test_cert_new(&(struct test_cert_spec){.cn = "clients", .ca = true});
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(test_cert)
        struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.key_type = cases[i].key_type});
        const struct test_server_options options = {.cert = cert,
                                                    .tls_version = cases[i].version,
                                                    .ciphers = cases[i].ciphers,
                                                    .client_ca = cases[i].demands_client ? ca : NULL};
        CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
        struct cr_probe_result result = probe(server);
        if (result.outcome != CR_PROBE_SERVED)
            fail_msg("%s: %s", cases[i].rule, result.detail);
        assert_serves(&result, cert);
    }
}

static void an_expired_leaf_is_still_the_leaf(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert)
    struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.from_s = -7200, .until_s = -3600});
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.cert = cert});
    struct cr_probe_result result = probe(server);
    assert_serves(&result, cert);
}

static void a_swapped_leaf_is_seen_by_the_next_probe(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *old = test_cert_new(&(struct test_cert_spec){.cn = "old"});
    CR_CLEANUP(test_cert) struct test_cert *new = test_cert_new(&(struct test_cert_spec){.cn = "new"});
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.cert = old});
    struct cr_probe_result result = probe(server);
    assert_serves(&result, old);
    test_server_swap(server, new);
    result = probe(server);
    assert_serves(&result, new);
}

static void remember_name(struct test_conn *conn, void *arg)
{
    char **name = arg;
    *name = cr_strdup(conn->server_name ? conn->server_name : "(none)");
    test_conn_wait_closed(conn);
}

static void the_server_name_is_sent_unless_it_is_an_address(void **state)
{
    static const struct {
        const char *asked;
        const char *seen;
    } cases[] = {{"rate-limit.ns.svc", "rate-limit.ns.svc"},
                 {NULL, "(none)"},
                 {"", "(none)"},
                 {"10.0.0.1", "(none)"},
                 {"fd00::1", "(none)"}};
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){0});
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        char *name = NULL;
        const struct test_server_options options = {.cert = cert, .serve = remember_name, .arg = &name};
        CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
        struct cr_probe_result result = probe_at(test_server_port(server), cases[i].asked, PATIENCE_MS);
        assert_serves(&result, cert);
        assert_true(test_server_wait_ended(server, 1, NULL));
        assert_string_equal(name, cases[i].seen);
        free(name);
    }
}

/* A server logs an aborted handshake or a reset as an error: probes come by the thousand. */
static void a_probe_ends_its_connection_cleanly(void **state)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){0});
    for (size_t i = 0; i < cr_array_len(versions); i++) {
        const struct test_server_options options = {.cert = cert, .tls_version = versions[i]};
        CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
        for (unsigned n = 1; n <= 20; n++) {
            struct cr_probe_result result = probe(server);
            assert_serves(&result, cert);
            unsigned resets = 1;
            assert_true(test_server_wait_ended(server, n, &resets));
            assert_int_equal(resets, 0);
        }
        assert_int_equal(test_server_handshakes(server), 20);
    }
}

static void say_hello(struct test_conn *conn, void *arg)
{
    test_conn_puts(conn, arg);
    test_conn_wait_closed(conn);
}

static void read_then_say(struct test_conn *conn, void *arg)
{
    (void)arg;
    if (!test_conn_request(conn)) /* a ClientHello never is one */
        test_conn_puts(conn, "?");
}

static void hang_up(struct test_conn *conn, void *arg)
{
    (void)conn;
    (void)arg;
}

static void what_is_not_tls_is_called_so(void **state)
{
    static const char *const greetings[] = {"HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
                                            "220 mail.example ESMTP\r\n",
                                            "\x4a\x01\x02\x0a"
                                            "8.0.33-mysql"};
    (void)state;
    for (size_t i = 0; i < cr_array_len(greetings); i++) {
        cr_autofree char *text = cr_strdup(greetings[i]);
        const struct test_server_options options = {.serve = say_hello, .arg = text};
        CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
        struct cr_probe_result result = probe(server);
        assert_not_served(&result, CR_PROBE_NOT_TLS, "which is not TLS");
        for (const char *p = result.detail; *p; p++)
            assert_in_range(*p, 0x20, 0x7e);
    }
}

static void a_long_greeting_is_cut_and_quoted(void **state)
{
    (void)state;
    char text[] = "-ERR 'unknown' command\nmore lines that nobody needs, and many more than fit into one short detail";
    const struct test_server_options options = {.serve = say_hello, .arg = text};
    CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
    struct cr_probe_result result = probe(server);
    assert_not_served(&result, CR_PROBE_NOT_TLS, "answered with '-ERR .unknown. command', which is not TLS");
}

static void a_server_that_hangs_up_is_unreachable(void **state)
{
    (void)state;
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = hang_up});
    struct cr_probe_result result = probe(server);
    assert_int_equal(result.outcome, CR_PROBE_UNREACHABLE);
    assert_string_not_equal(result.detail, "");
}

static void an_alert_before_the_certificate_is_unreachable_not_plain(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){0});
    /* An RSA cipher with an ECDSA key: nothing in common with any client. */
    const struct test_server_options options = {.cert = cert, .tls_version = TLS1_2_VERSION, .ciphers = "AES128-SHA"};
    CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
    struct cr_probe_result result = probe(server);
    assert_not_served(&result, CR_PROBE_UNREACHABLE, "handshake failure");
}

/* A port without a listener, kept bound so that no other program gets it. */
static int closed_port(int *fd)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    *fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(*fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(*fd, (struct sockaddr *)&at, &len), 0);
    return ntohs(at.sin_port);
}

static void a_closed_port_is_unreachable(void **state)
{
    (void)state;
    cr_autofd int fd = -1;
    struct cr_probe_result result = probe_at(closed_port(&fd), NULL, PATIENCE_MS);
    assert_not_served(&result, CR_PROBE_UNREACHABLE, "Connection refused");
}

static void a_silent_server_costs_no_more_than_the_time_out(void **state)
{
    (void)state;
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = read_then_say});
    int64_t start = cr_clock_monotonic_ms();
    struct cr_probe_result result = probe_at(test_server_port(server), NULL, 150);
    assert_not_served(&result, CR_PROBE_UNREACHABLE, "no TLS answer in time");
    assert_in_range(cr_clock_monotonic_ms() - start, 150, 5000);
}

/* Until the peer has had enough. */
static void flood(struct test_conn *conn, void *arg)
{
    static const char much[256 * 1024];
    (void)arg;
    while (test_conn_write(conn, much, sizeof much))
        ;
}

static void a_peer_that_sends_without_end_holds_nothing_up(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){0});
    const struct test_cert *const certs[] = {NULL, cert};
    for (size_t i = 0; i < cr_array_len(certs); i++) {
        const struct test_server_options options = {.cert = certs[i], .serve = flood};
        CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
        int64_t start = cr_clock_monotonic_ms();
        struct cr_probe_result result = probe(server);
        assert_int_equal(result.outcome, certs[i] ? CR_PROBE_SERVED : CR_PROBE_NOT_TLS);
        assert_in_range(cr_clock_monotonic_ms() - start, 0, PATIENCE_MS / 2);
    }
}

static void a_time_out_of_nothing_ends_at_once(void **state)
{
    (void)state;
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = read_then_say});
    static const int time_outs[] = {0, -5};
    for (size_t i = 0; i < cr_array_len(time_outs); i++) {
        struct cr_probe_result result = probe_at(test_server_port(server), NULL, time_outs[i]);
        assert_int_equal(result.outcome, CR_PROBE_UNREACHABLE);
    }
    cr_tls_probe(NULL, 0, 1000, NULL);
}

static void what_is_no_address_is_not_tried(void **state)
{
    static const struct cr_probe_target targets[] = {
        {"localhost", 443, NULL}, {"", 443, NULL},           {NULL, 443, NULL},
        {"127.0.0.1", 0, NULL},   {"127.0.0.1", -1, NULL},   {"127.0.0.1", 65536, NULL},
        {"1.2.3", 443, NULL},     {"fe80::1%lo", 443, NULL},
    };
    (void)state;
    struct cr_probe_result results[cr_array_len(targets)];
    cr_tls_probe(targets, cr_array_len(targets), PATIENCE_MS, results);
    for (size_t i = 0; i < cr_array_len(targets); i++)
        assert_not_served(&results[i], CR_PROBE_UNREACHABLE, "not an IP address with a port");
}

/* --- clients --- */

static struct cr_probe_client *client_of(const char *certificate, const char *key, struct cr_error *err)
{
    return cr_probe_client_new(certificate, strlen(certificate), key, strlen(key), err);
}

static void a_client_needs_a_certificate_and_its_key(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.cn = "client"});
    CR_CLEANUP(test_cert) struct test_cert *other = test_cert_new(&(struct test_cert_spec){.cn = "other"});
    cr_autofree char *encrypted = test_cert_key_as(cert, "PKCS#8 encrypted");
    cr_autofree char *sec1 = test_cert_key_as(cert, "SEC1");
    cr_autofree char *chain = test_concat(cert->cert_pem, other->cert_pem, NULL);
    cr_autofree char *torn = test_concat(cert->cert_pem, "-----BEGIN CERTIFICATE-----\nAAAA\n", NULL);
    const struct {
        const char *rule;
        const char *certificate;
        const char *key;
        const char *problem; /* NULL: none */
    } cases[] = {
        {"PKCS#8", cert->cert_pem, cert->key_pem, NULL},
        {"SEC1", cert->cert_pem, sec1, NULL},
        {"with a chain", chain, cert->key_pem, NULL},
        {"no certificate", "", cert->key_pem, "it has no certificate and key"},
        {"no key", cert->cert_pem, "", "it has no certificate and key"},
        {"no PEM", "certificate", cert->key_pem, "its certificate cannot be read"},
        {"a chain that is torn", torn, cert->key_pem, "its certificate cannot be read"},
        {"an encrypted key, for which nobody is asked", cert->cert_pem, encrypted,
         "its key cannot be read, is encrypted, or is none of RSA, ECDSA, EdDSA and ML-DSA"},
        {"a key that is none", cert->cert_pem, cert->cert_pem,
         "its key cannot be read, is encrypted, or is none of RSA, ECDSA, EdDSA and ML-DSA"},
        {"somebody else's key", cert->cert_pem, other->key_pem, "its key is not that of its certificate"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_probe_client)
        struct cr_probe_client *client = client_of(cases[i].certificate, cases[i].key, &err);
        if ((client != NULL) != (cases[i].problem == NULL))
            fail_msg("%s: %s", cases[i].rule, err.text);
        if (!client)
            assert_string_equal(err.text, cases[i].problem);
    }
}

/* What real servers make of one is seen in test/integration/test_probe.py. */
static void servers_judge_the_client(void **state)
{
    enum { OWN, STRANGER, ANONYMOUS };
    (void)state;
    static const struct {
        const char *rule;
        int version;
        bool demands;
        int who;
        enum cr_probe_consent consent;
    } cases[] = {
        {"TLS 1.2, of its CA", TLS1_2_VERSION, true, OWN, CR_PROBE_ACCEPTED},
        {"TLS 1.3, of its CA", TLS1_3_VERSION, true, OWN, CR_PROBE_ACCEPTED},
        {"TLS 1.2, of another CA", TLS1_2_VERSION, true, STRANGER, CR_PROBE_DENIED},
        {"TLS 1.3, of another CA", TLS1_3_VERSION, true, STRANGER, CR_PROBE_DENIED},
        {"nobody asks for it", TLS1_3_VERSION, false, OWN, CR_PROBE_NO_CLIENT},
        {"there is none", TLS1_3_VERSION, true, ANONYMOUS, CR_PROBE_NO_CLIENT},
    };
    CR_CLEANUP(test_cert) struct test_cert *ca = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
    CR_CLEANUP(test_cert) struct test_cert *own = test_cert_new(&(struct test_cert_spec){.cn = "own", .issuer = ca});
    CR_CLEANUP(test_cert) struct test_cert *stranger = test_cert_new(&(struct test_cert_spec){.cn = "stranger"});
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct test_server_options options = {
            .cert = own, .tls_version = cases[i].version, .client_ca = cases[i].demands ? ca : NULL};
        CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
        const struct test_cert *who = cases[i].who == OWN ? own : stranger;
        struct cr_error err = {0};
        CR_CLEANUP(cr_probe_client)
        struct cr_probe_client *client =
            cases[i].who == ANONYMOUS ? NULL : client_of(who->cert_pem, who->key_pem, &err);
        const struct cr_probe_target target = {
            .address = "127.0.0.1", .port = test_server_port(server), .client = client};
        struct cr_probe_result result;
        cr_tls_probe(&target, 1, PATIENCE_MS, &result);
        assert_int_equal(result.outcome, CR_PROBE_SERVED);
        assert_int_equal(strlen(result.leaf), CR_PROBE_DIGEST - 1);
        if (result.consent != cases[i].consent || (result.detail[0] != '\0') != (result.consent == CR_PROBE_DENIED))
            fail_msg("%s: %d '%s'", cases[i].rule, (int)result.consent, result.detail);
    }
}

/* A client that is refused gets them, too: the request for a certificate comes before it is known whether there is
 * one. */
static void the_names_of_the_servers_cas_are_noted(void **state)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *ca = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
    CR_CLEANUP(test_cert) struct test_cert *own = test_cert_new(&(struct test_cert_spec){.cn = "own", .issuer = ca});
    CR_CLEANUP(test_cert) struct test_cert *stranger = test_cert_new(&(struct test_cert_spec){.cn = "stranger"});
    const struct test_cert *const clients[] = {NULL, own, stranger};
    unsigned char expected[32];
    assert_int_equal(X509_NAME_digest(X509_get_subject_name(ca->x509), EVP_sha256(), expected, NULL), 1);
    for (size_t i = 0; i < 2 * cr_array_len(clients); i++) {
        const struct test_server_options options = {.cert = own, .tls_version = versions[i % 2], .client_ca = ca};
        CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
        const struct test_cert *cert = clients[i / 2];
        struct cr_error err = {0};
        CR_CLEANUP(cr_probe_client)
        struct cr_probe_client *client = cert ? client_of(cert->cert_pem, cert->key_pem, &err) : NULL;
        const struct cr_probe_target target = {
            .address = "127.0.0.1", .port = test_server_port(server), .client = client};
        struct cr_probe_result result;
        cr_tls_probe(&target, 1, PATIENCE_MS, &result);
        assert_int_equal(result.outcome, CR_PROBE_SERVED);
        assert_true(result.announced.asked && !result.announced.more);
        assert_int_equal(result.announced.len, 1);
        assert_memory_equal(result.announced.names[0], expected, sizeof expected);
    }
}

static void who_asks_for_no_client_names_no_ca(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){0});
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.cert = cert});
    struct cr_probe_result result = probe(server);
    assert_false(result.announced.asked || result.announced.more || result.announced.len);
    assert_int_equal(result.answer.alert, -1);
}

enum { MANY = 200, SILENT = 70 };

/* More targets than sockets at once, and the first that get one stay silent: they do not eat the time of the others. */
static void many_targets_share_the_time(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){0});
    CR_CLEANUP(test_server)
    struct test_server *good = test_server_new(&(struct test_server_options){.cert = cert});
    CR_CLEANUP(test_server)
    struct test_server *silent = test_server_new(&(struct test_server_options){.serve = read_then_say});
    struct cr_probe_target *targets = cr_calloc(MANY, sizeof *targets);
    struct cr_probe_result *results = cr_calloc(MANY, sizeof *results);
    for (size_t i = 0; i < MANY; i++)
        targets[i] =
            (struct cr_probe_target){.address = "127.0.0.1", .port = test_server_port(i < SILENT ? silent : good)};
    int64_t start = cr_clock_monotonic_ms();
    cr_tls_probe(targets, MANY, 16000, results);
    assert_in_range(cr_clock_monotonic_ms() - start, 1, 20000);
    for (size_t i = 0; i < MANY; i++) {
        if (i < SILENT)
            assert_not_served(&results[i], CR_PROBE_UNREACHABLE, "no TLS answer");
        else
            assert_serves(&results[i], cert);
    }
    free(results);
    free(targets);
}

static void only_hosts_elsewhere_are_allowed(void **state)
{
    static const struct {
        const char *address;
        bool allowed;
    } cases[] = {
        {"10.244.0.7", true},
        {"192.168.1.1", true},
        {"8.8.8.8", true},
        {"fd00:10:244::7", true},
        {"2001:db8::1", true},
        {"127.0.0.1", false},
        {"127.255.255.254", false},
        {"0.0.0.0", false},
        {"0.1.2.3", false},
        {"169.254.169.254", false},
        {"224.0.0.1", false},
        {"239.255.255.255", false},
        {"240.0.0.1", false},
        {"255.255.255.255", false},
        {"::", false},
        {"::1", false},
        {"fe80::1", false},
        {"febf::1", false},
        {"ff02::1", false},
        {"::ffff:10.244.0.7", false},
        {"64:ff9b::8.8.8.8", false},
        {"64:ff9b:1::8.8.8.8", false},
        {"2001:0:4136:e378:8000:63bf:3fff:fdd2", false},
        {"2001:1::1", true},
        {"fec0::1", false},
        {"fd00:10:244::7%eth0", false},
        {"2002:808:808::", false},
        {"::ffff:127.0.0.1", false},
        {"::ffff:169.254.169.254", false},
        {"::127.0.0.1", false},
        {"64:ff9b::127.0.0.1", false},
        {"64:ff9b::169.254.169.254", false},
        {"2002:7f00:1::", false},
        {"localhost", false},
        {"kubernetes.default", false},
        {"10.0.0.1:443", false},
        {"10.0.0.1/8", false},
        {"fe80::1%eth0", false},
        {"010.0.0.1", false},
        {"0x7f.1", false},
        {"2130706433", false},
        {" 10.0.0.1", false},
        {"", false},
        {NULL, false},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++)
        if (cr_probe_address_allowed(cases[i].address) != cases[i].allowed)
            fail_msg("%s: expected %s", cr_or_empty(cases[i].address), cases[i].allowed ? "allowed" : "refused");
}

static void one_address_is_the_same_however_it_is_written(void **state)
{
    (void)state;
    assert_true(cr_probe_address_equal("10.0.0.1", "10.0.0.1"));
    assert_true(cr_probe_address_equal("2001:db8::1", "2001:DB8:0:0::1"));
    assert_false(cr_probe_address_equal("10.0.0.1", "10.0.0.2"));
    assert_false(cr_probe_address_equal("10.0.0.1", "::ffff:10.0.0.1"));
    assert_false(cr_probe_address_equal("localhost", "localhost"));
    assert_false(cr_probe_address_equal(NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sees_the_leaf_of_any_server),
        cmocka_unit_test(an_expired_leaf_is_still_the_leaf),
        cmocka_unit_test(a_swapped_leaf_is_seen_by_the_next_probe),
        cmocka_unit_test(the_server_name_is_sent_unless_it_is_an_address),
        cmocka_unit_test(a_probe_ends_its_connection_cleanly),
        cmocka_unit_test(what_is_not_tls_is_called_so),
        cmocka_unit_test(a_long_greeting_is_cut_and_quoted),
        cmocka_unit_test(a_server_that_hangs_up_is_unreachable),
        cmocka_unit_test(an_alert_before_the_certificate_is_unreachable_not_plain),
        cmocka_unit_test(a_closed_port_is_unreachable),
        cmocka_unit_test(a_silent_server_costs_no_more_than_the_time_out),
        cmocka_unit_test(a_peer_that_sends_without_end_holds_nothing_up),
        cmocka_unit_test(a_time_out_of_nothing_ends_at_once),
        cmocka_unit_test(what_is_no_address_is_not_tried),
        cmocka_unit_test(a_client_needs_a_certificate_and_its_key),
        cmocka_unit_test(servers_judge_the_client),
        cmocka_unit_test(the_names_of_the_servers_cas_are_noted),
        cmocka_unit_test(who_asks_for_no_client_names_no_ca),
        cmocka_unit_test(many_targets_share_the_time),
        cmocka_unit_test(only_hosts_elsewhere_are_allowed),
        cmocka_unit_test(one_address_is_the_same_however_it_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
