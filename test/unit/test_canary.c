#include "net/canary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/ssl.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/strings.h"
#include "net/probe_client.h"
#include "support/testserver.h"

enum { PATIENCE_MS = 12 * 1000 };

/* --- the rule --- */

enum { NONE = -1, BAD_CERTIFICATE = 42, EXPIRED = 45, UNKNOWN = 46, UNKNOWN_CA = 48, DENIED = 49, DECRYPT_ERROR = 51 };
enum { INTERNAL_ERROR = 80, CERTIFICATE_REQUIRED = 116 };

#define SAID(the_alert)                                                                                                \
    {                                                                                                                  \
        .presented = true, .alert = (the_alert)                                                                        \
    }
#define ANSWERED(http)                                                                                                 \
    {                                                                                                                  \
        .presented = true, .alert = NONE, .data = true, .status = (http)                                               \
    }
#define NGINX_REFUSED                                                                                                  \
    {                                                                                                                  \
        .presented = true, .alert = NONE, .data = true, .status = 400, .of_certificate = true                          \
    }
#define MUTE                                                                                                           \
    {                                                                                                                  \
        .presented = true, .alert = NONE                                                                               \
    }
#define ANONYMOUS(http)                                                                                                \
    {                                                                                                                  \
        .alert = NONE, .data = true, .status = (http)                                                                  \
    }

static void only_who_refuses_a_stranger_trusts(void **state)
{
    static const struct {
        const char *rule;
        struct cr_probe_answer canary, stranger, anonymous;
        enum cr_probe_trust trust;
    } cases[] = {
        {"it answers the one and refuses the other", ANSWERED(200), SAID(UNKNOWN_CA), {0}, CR_PROBE_TRUSTED},
        {"as Go did for long", ANSWERED(404), SAID(BAD_CERTIFICATE), {0}, CR_PROBE_TRUSTED},
        {"as Java does", ANSWERED(200), SAID(UNKNOWN), {0}, CR_PROBE_TRUSTED},
        {"it need not speak HTTP", ANSWERED(0), SAID(UNKNOWN_CA), {0}, CR_PROBE_TRUSTED},
        {"whoever comes is answered", ANSWERED(200), ANSWERED(200), {0}, CR_PROBE_TRUST_UNKNOWN},
        {"whoever comes is answered, without HTTP", ANSWERED(0), ANSWERED(0), {0}, CR_PROBE_TRUST_UNKNOWN},
        {"the stranger was broken off", ANSWERED(200), MUTE, {0}, CR_PROBE_TRUST_UNKNOWN},
        {"the stranger was refused for something else",
         ANSWERED(200),
         SAID(INTERNAL_ERROR),
         {0},
         CR_PROBE_TRUST_UNKNOWN},
        {"the stranger was not even sent", ANSWERED(200), ANONYMOUS(400), {0}, CR_PROBE_TRUST_UNKNOWN},
        {"an alert without a certificate is about that",
         ANSWERED(200),
         {.alert = UNKNOWN_CA},
         {0},
         CR_PROBE_TRUST_UNKNOWN},

        {"refused for its CA", SAID(UNKNOWN_CA), SAID(UNKNOWN_CA), {0}, CR_PROBE_UNTRUSTED},
        {"another CA of that subject was tried", SAID(DECRYPT_ERROR), SAID(UNKNOWN_CA), {0}, CR_PROBE_UNTRUSTED},
        {"refused for its name, by who knows its CA", SAID(UNKNOWN), SAID(UNKNOWN_CA), {0}, CR_PROBE_TRUSTED},
        {"denied by who knows its CA", SAID(DENIED), SAID(UNKNOWN_CA), {0}, CR_PROBE_TRUSTED},
        {"refused for whatever, as everybody", SAID(UNKNOWN), SAID(UNKNOWN), {0}, CR_PROBE_TRUST_UNKNOWN},
        {"the same, in other words", SAID(BAD_CERTIFICATE), SAID(BAD_CERTIFICATE), {0}, CR_PROBE_TRUST_UNKNOWN},
        {"what it says of its clock tells nothing", SAID(EXPIRED), SAID(UNKNOWN_CA), {0}, CR_PROBE_TRUST_UNKNOWN},
        {"none was sent", {.alert = CERTIFICATE_REQUIRED}, SAID(UNKNOWN_CA), {0}, CR_PROBE_TRUST_UNKNOWN},
        {"none was sent, and it answers", ANONYMOUS(200), SAID(UNKNOWN_CA), {0}, CR_PROBE_TRUST_UNKNOWN},
        {"broken off, or silent", MUTE, SAID(UNKNOWN_CA), {0}, CR_PROBE_TRUST_UNKNOWN},
        {"data before an alert",
         {.presented = true, .alert = UNKNOWN_CA, .data = true},
         SAID(UNKNOWN_CA),
         {0},
         CR_PROBE_UNTRUSTED},

        {"nginx refuses with an answer", NGINX_REFUSED, NGINX_REFUSED, {0}, CR_PROBE_UNTRUSTED},
        {"nginx trusts it", ANSWERED(405), NGINX_REFUSED, {0}, CR_PROBE_TRUSTED},
        {"nginx asks nobody for one it verifies", ANSWERED(405), ANSWERED(405), {0}, CR_PROBE_TRUST_UNKNOWN},
        {"400 for something else", ANSWERED(400), ANSWERED(400), {0}, CR_PROBE_TRUST_UNKNOWN},

        {"an API server knows it", ANSWERED(403), ANSWERED(401), ANONYMOUS(403), CR_PROBE_TRUSTED},
        {"an API server does not know it", ANSWERED(401), ANSWERED(401), ANONYMOUS(403), CR_PROBE_UNTRUSTED},
        {"401 is what everybody gets", ANSWERED(401), ANSWERED(401), ANONYMOUS(401), CR_PROBE_TRUST_UNKNOWN},
        {"401, but the stranger was refused in TLS", ANSWERED(401), SAID(UNKNOWN_CA), ANONYMOUS(0), CR_PROBE_TRUSTED},
        {"401, and nobody was broken off", ANSWERED(401), ANSWERED(401), {.alert = NONE}, CR_PROBE_TRUST_UNKNOWN},
        {"401 for it alone", ANSWERED(401), ANSWERED(200), ANONYMOUS(200), CR_PROBE_TRUST_UNKNOWN},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        bool more = true;
        enum cr_probe_trust trust = cr_canary_judge(&cases[i].canary, &cases[i].stranger, &cases[i].anonymous, &more);
        if (trust != cases[i].trust || more)
            fail_msg("%s: %d%s", cases[i].rule, (int)trust, more ? ", and wants to know more" : "");
    }
}

static void only_what_is_open_is_asked_further(void **state)
{
    static const struct {
        const char *rule;
        struct cr_probe_answer canary;
        bool more;
    } cases[] = {
        {"an answer may be for everybody", ANSWERED(200), true},
        {"so may a 401", ANSWERED(401), true},
        {"a refusal of which the reason is open", SAID(UNKNOWN), true},
        {"refused for its CA", SAID(UNKNOWN_CA), false},
        {"nginx has said it all", NGINX_REFUSED, false},
        {"broken off", MUTE, false},
        {"not sent", ANONYMOUS(200), false},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        bool more = !cases[i].more;
        enum cr_probe_trust trust = cr_canary_judge(&cases[i].canary, NULL, NULL, &more);
        if (more != cases[i].more || trust == CR_PROBE_TRUSTED)
            fail_msg("%s: %d", cases[i].rule, (int)trust);
    }
}

/* --- servers --- */

static struct cr_probe_client *client_of(const struct test_cert *cert)
{
    struct cr_error err = {0};
    struct cr_probe_client *client =
        cr_probe_client_new(cert->cert_pem, strlen(cert->cert_pem), cert->key_pem, strlen(cert->key_pem), &err);
    if (!client)
        fail_msg("%s", err.text);
    return client;
}

static enum cr_probe_trust ask(const struct test_server_options *options, const struct test_cert *canary)
{
    CR_CLEANUP(test_server) struct test_server *server = test_server_new(options);
    CR_CLEANUP(cr_probe_client) struct cr_probe_client *client = client_of(canary);
    const struct cr_probe_target target = {.address = "127.0.0.1", .port = test_server_port(server), .client = client};
    enum cr_probe_trust trust = (enum cr_probe_trust)0xaa;
    cr_canary_probe(&target, 1, PATIENCE_MS, &trust);
    return trust;
}

static void answer(struct test_conn *conn, void *arg)
{
    (void)arg;
    if (test_conn_request(conn))
        test_conn_answer(conn, 200, "", "");
}

/* Before it is asked, as gRPC does with its SETTINGS. */
static void send_first(struct test_conn *conn, void *arg)
{
    (void)arg;
    test_conn_puts(conn, "220 welcome\r\n");
    test_conn_wait_closed(conn);
}

static void hang_up(struct test_conn *conn, void *arg)
{
    (void)conn;
    (void)arg;
}

static void a_server_is_asked_in_both_versions(void **state)
{
    enum { OWN, OTHER };
    static const struct {
        const char *rule;
        void (*serve)(struct test_conn *conn, void *arg);
        bool demands;
        int who;
        enum cr_probe_trust trust;
    } cases[] = {
        {"it trusts the CA", answer, true, OWN, CR_PROBE_TRUSTED},
        {"and speaks first", send_first, true, OWN, CR_PROBE_TRUSTED},
        {"it does not trust the CA", answer, true, OTHER, CR_PROBE_UNTRUSTED},
        {"it asks for no certificate", answer, false, OWN, CR_PROBE_TRUST_UNASKED},
        {"it goes on with nobody", hang_up, true, OWN, CR_PROBE_TRUST_UNKNOWN},
        {"it says nothing", NULL, true, OWN, CR_PROBE_TRUST_UNKNOWN},
    };
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *ca = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
    CR_CLEANUP(test_cert) struct test_cert *ca2 = test_cert_new(&(struct test_cert_spec){.cn = "other", .ca = true});
    CR_CLEANUP(test_cert) struct test_cert *own = test_cert_new(&(struct test_cert_spec){.cn = "own", .issuer = ca});
    CR_CLEANUP(test_cert)
    struct test_cert *other = test_cert_new(&(struct test_cert_spec){.cn = "other", .issuer = ca2});
    for (size_t i = 0; i < 2 * cr_array_len(cases); i++) {
        const struct test_server_options options = {.cert = own,
                                                    .tls_version = versions[i % 2],
                                                    .client_ca = cases[i / 2].demands ? ca : NULL,
                                                    .serve = cases[i / 2].serve};
        enum cr_probe_trust trust = ask(&options, cases[i / 2].who == OWN ? own : other);
        if (trust != cases[i / 2].trust)
            fail_msg("%s, TLS 1.%d: %d", cases[i / 2].rule, (int)(i % 2) + 2, (int)trust);
    }
}

/* The old CA and the new one have one subject: names cannot distinguish them, the canary does. */
static void two_cas_of_one_subject_are_distinguished(void **state)
{
    (void)state;
    for (int ids = 0; ids < 2; ids++) {
        const struct test_cert_spec spec = {.cn = "ca", .ca = true, .no_key_ids = !ids};
        CR_CLEANUP(test_cert) struct test_cert *old = test_cert_new(&spec);
        CR_CLEANUP(test_cert) struct test_cert *new = test_cert_new(&spec);
        CR_CLEANUP(test_cert)
        struct test_cert *canary = test_cert_new(&(struct test_cert_spec){.issuer = new, .no_key_ids = !ids});
        const struct test_server_options before = {.cert = old, .client_ca = old, .serve = answer};
        const struct test_server_options after = {.cert = old, .client_ca = new, .serve = answer};
        assert_int_equal(ask(&before, canary), CR_PROBE_UNTRUSTED);
        assert_int_equal(ask(&after, canary), CR_PROBE_TRUSTED);
    }
}

static void keys_of_every_type_have_strangers(void **state)
{
    static const char *const types[] = {"P-256", "P-384", "RSA", "ED25519"};
    (void)state;
    for (size_t i = 0; i < cr_array_len(types); i++) {
        CR_CLEANUP(test_cert)
        struct test_cert *ca = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true, .key_type = types[i]});
        CR_CLEANUP(test_cert)
        struct test_cert *canary =
            test_cert_new(&(struct test_cert_spec){.cn = "canary", .issuer = ca, .key_type = types[i]});
        const struct test_server_options options = {.cert = canary, .client_ca = ca, .serve = answer};
        if (ask(&options, canary) != CR_PROBE_TRUSTED)
            fail_msg("%s", types[i]);
    }
}

/* An RSA key takes a tenth of a second, and 64 servers may be asked at a time. */
static void one_key_of_a_kind_is_made_for_all_strangers(void **state)
{
    static const char *const types[] = {"RSA", "RSA", "P-256", "RSA", "P-256"};
    (void)state;
    CR_CLEANUP(cr_probe_strangers) struct cr_probe_strangers strangers = {0};
    for (size_t i = 0; i < cr_array_len(types); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.key_type = types[i]});
        CR_CLEANUP(cr_probe_client)
        struct cr_probe_client *like =
            cr_probe_client_new(cert->cert_pem, strlen(cert->cert_pem), cert->key_pem, strlen(cert->key_pem), &err);
        CR_CLEANUP(cr_probe_client) struct cr_probe_client *stranger = cr_probe_client_stranger(like, &strangers);
        assert_non_null(stranger);
    }
    assert_int_equal(strangers.made, 2);
}

static void what_cannot_be_reached_or_asked_is_unknown(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *canary = test_cert_new(&(struct test_cert_spec){.cn = "canary"});
    CR_CLEANUP(cr_probe_client) struct cr_probe_client *client = client_of(canary);
    const struct cr_probe_target targets[] = {
        {.address = "localhost", .port = 443, .client = client},
        {.address = "127.0.0.1", .port = 1, .client = client, .protocol = CR_PROBE_POSTGRESQL},
    };
    enum cr_probe_trust trusts[cr_array_len(targets)];
    cr_canary_probe(targets, cr_array_len(targets), PATIENCE_MS, trusts);
    for (size_t i = 0; i < cr_array_len(targets); i++)
        assert_int_equal(trusts[i], CR_PROBE_TRUST_UNKNOWN);
    cr_canary_probe(NULL, 0, PATIENCE_MS, NULL);
}

static void flood(struct test_conn *conn, void *arg)
{
    static const char much[256 * 1024];
    (void)arg;
    while (test_conn_write(conn, much, sizeof much))
        ;
}

static void a_canary_takes_no_more_than_its_time(void **state)
{
    static void (*const serves[])(struct test_conn *, void *) = {flood, NULL};
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *ca = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
    CR_CLEANUP(test_cert) struct test_cert *own = test_cert_new(&(struct test_cert_spec){.cn = "own", .issuer = ca});
    CR_CLEANUP(cr_probe_client) struct cr_probe_client *client = client_of(own);
    for (size_t i = 0; i < cr_array_len(serves); i++) {
        const struct test_server_options options = {.cert = own, .client_ca = ca, .serve = serves[i]};
        CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
        const struct cr_probe_target target = {
            .address = "127.0.0.1", .port = test_server_port(server), .client = client};
        enum cr_probe_trust trust;
        int64_t start = cr_clock_monotonic_ms();
        cr_canary_probe(&target, 1, 600, &trust);
        assert_in_range(cr_clock_monotonic_ms() - start, 0, 5000);
        if (!serves[i])
            assert_int_equal(trust, CR_PROBE_TRUST_UNKNOWN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_who_refuses_a_stranger_trusts),
        cmocka_unit_test(only_what_is_open_is_asked_further),
        cmocka_unit_test(a_server_is_asked_in_both_versions),
        cmocka_unit_test(two_cas_of_one_subject_are_distinguished),
        cmocka_unit_test(keys_of_every_type_have_strangers),
        cmocka_unit_test(one_key_of_a_kind_is_made_for_all_strangers),
        cmocka_unit_test(what_cannot_be_reached_or_asked_is_unknown),
        cmocka_unit_test(a_canary_takes_no_more_than_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
