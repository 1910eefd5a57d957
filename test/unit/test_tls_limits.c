/* What a server may cost a probe, and what it has to prove: servers that do what no library would. */
#include "net/tls_limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"
#include "net/probe_conn.h"
#include "net/tls_probe.h"
#include "support/rawtls.h"
#include "support/testserver.h"

enum { PATIENCE_MS = 10 * 1000, SILENCE_MS = 2500 /* of a server from which nothing more is to come */ };

static struct cr_probe_result probe(const struct test_server *server, int timeout_ms)
{
    const struct cr_probe_target target = {.address = "127.0.0.1", .port = test_server_port(server)};
    struct cr_probe_result result;
    cr_tls_probe(&target, 1, timeout_ms, &result);
    return result;
}

static struct cr_probe_result probe_raw(struct raw_flight *flight)
{
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.serve = raw_tls_serve, .arg = flight});
    return probe(server, flight->silent ? SILENCE_MS : PATIENCE_MS);
}

/* --- keys that no server has --- */

static BIGNUM *odd_number(int bits)
{
    BIGNUM *number = BN_new();
    assert_int_equal(BN_rand(number, bits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ODD), 1);
    return number;
}

/* Numbers of these lengths and nothing more. e of 17 bits is 65537; no private part when d is 0. NULL: OpenSSL takes no
 * such key by itself, as since 3.4 one with parts that are longer than its modulus. */
static EVP_PKEY *rsa_of(int n, int e, int d, int half)
{
    static const char *const halves[] = {OSSL_PKEY_PARAM_RSA_FACTOR1, OSSL_PKEY_PARAM_RSA_FACTOR2,
                                         OSSL_PKEY_PARAM_RSA_EXPONENT1, OSSL_PKEY_PARAM_RSA_EXPONENT2,
                                         OSSL_PKEY_PARAM_RSA_COEFFICIENT1};
    BIGNUM *numbers[8] = {odd_number(n), odd_number(e), d ? odd_number(d) : NULL};
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    if (e == 17)
        BN_set_word(numbers[1], 65537);
    OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, numbers[0]);
    OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, numbers[1]);
    if (d)
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_D, numbers[2]);
    for (size_t i = 0; half && i < cr_array_len(halves); i++) {
        numbers[3 + i] = odd_number(half);
        OSSL_PARAM_BLD_push_BN(builder, halves[i], numbers[3 + i]);
    }
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
    EVP_PKEY *key = NULL;
    assert_int_equal(EVP_PKEY_fromdata_init(context), 1);
    bool made = EVP_PKEY_fromdata(context, &key, d ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY, params) == 1;
    assert_true(made || (d && OPENSSL_VERSION_PREREQ(3, 4)));
    ERR_clear_error();
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(builder);
    for (size_t i = 0; i < cr_array_len(numbers); i++)
        BN_free(numbers[i]);
    return key;
}

static EVP_PKEY *explicit_curve(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    assert_int_equal(EVP_PKEY_set_utf8_string_param(key, OSSL_PKEY_PARAM_EC_ENCODING, "explicit"), 1);
    return key;
}

/* A certificate of this key. Takes the key. */
static struct test_cert *cert_of(EVP_PKEY *key)
{
    struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.cn = "strange"});
    BIO *text = BIO_new(BIO_s_mem());
    char *data = NULL;
    assert_int_equal(X509_set_pubkey(cert->x509, key), 1);
    assert_true(X509_sign(cert->x509, cert->key, EVP_sha256()) > 0);
    assert_int_equal(PEM_write_bio_X509(text, cert->x509), 1);
    long len = BIO_get_mem_data(text, &data);
    free(cert->cert_pem);
    cert->cert_pem = cr_strndup(data, (size_t)len);
    BIO_free(text);
    EVP_PKEY_free(cert->key);
    cert->key = key;
    return cert;
}

/* --- what is offered --- */

static bool is_cheap(unsigned short suite)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(ctx);
    const unsigned char bytes[] = {(unsigned char)(suite >> 8), (unsigned char)suite};
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, bytes);
    int exchange = cipher ? SSL_CIPHER_get_kx_nid(cipher) : NID_undef;
    int signer = cipher ? SSL_CIPHER_get_auth_nid(cipher) : NID_undef;
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    return (exchange == NID_kx_any && signer == NID_auth_any) ||
           ((exchange == NID_kx_ecdhe || exchange == NID_kx_rsa) &&
            (signer == NID_auth_rsa || signer == NID_auth_ecdsa));
}

static void only_what_has_a_bounded_cost_is_offered(void **state)
{
    enum { SIGNALLING = 0x00ff, DSA = 2 /* the second byte of its algorithms in TLS 1.2 */ };
    static const unsigned short groups[] = {29, 23, 30, 25, 24, 26, 27, 28}; /* no ffdhe: 256 and up */
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){0});
    struct raw_flight flight = {.cert = cert};
    (void)probe_raw(&flight);
    assert_int_equal(flight.hello.groups_len, cr_array_len(groups));
    assert_memory_equal(flight.hello.groups, groups, sizeof groups);
    assert_in_range(flight.hello.ciphers_len, 30, 60);
    for (size_t i = 0; i < flight.hello.ciphers_len; i++)
        if (flight.hello.ciphers[i] != SIGNALLING && !is_cheap(flight.hello.ciphers[i]))
            fail_msg("cipher suite %04x is offered", flight.hello.ciphers[i]);
    assert_in_range(flight.hello.signatures_len, 10, 30);
    for (size_t i = 0; i < flight.hello.signatures_len; i++)
        if (flight.hello.signatures[i] >> 8 < 8 && (flight.hello.signatures[i] & 0xff) == DSA)
            fail_msg("signature algorithm %04x is offered", flight.hello.signatures[i]);
}

static void who_insists_on_a_prime_of_his_own_is_not_followed(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.key_type = "RSA"});
    struct raw_flight flight = {.cert = cert, .exchange = RAW_DHE, .dh_bits = 10000};
    struct cr_probe_result result = probe_raw(&flight);
    assert_int_equal(result.outcome, CR_PROBE_UNREACHABLE);
    assert_non_null(strstr(result.detail, "wrong cipher returned"));
}

static void a_server_of_dhe_alone_learns_what_is_offered(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.key_type = "RSA"});
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){
        .cert = cert, .tls_version = TLS1_2_VERSION, .ciphers = "DHE-RSA-AES128-GCM-SHA256"});
    struct cr_probe_result result = probe(server, PATIENCE_MS);
    assert_int_equal(result.outcome, CR_PROBE_UNREACHABLE);
    assert_non_null(strstr(result.detail, "(probes offer ECDHE and RSA, not DHE)"));
}

/* --- limits --- */

#define NO_CURVE "a key of its chain is on no curve that is taken: P-256, P-384, P-521, brainpool r1, by name"

/* Until it has ended. */
static void drive(struct cr_probe_conn *conn, SSL_CTX *ctx)
{
    while (conn->step != CR_PROBE_ENDED) {
        struct pollfd fd = {.fd = conn->wire.fd, .events = conn->wants};
        (void)poll(&fd, 1, SILENCE_MS);
        cr_probe_conn_advance(conn, ctx, fd.revents, cr_clock_monotonic_ms());
    }
}

/* A certificate's key takes up to a tenth of a second to decode; one that OpenSSL never sees takes none. */
static void a_chain_over_a_limit_is_never_decoded(void **state)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    (void)state;
    for (size_t i = 0; i < 2 * cr_array_len(versions); i++) {
        bool within = i >= cr_array_len(versions);
        CR_CLEANUP(test_cert) struct test_cert *cert = cert_of(within ? EVP_EC_gen("P-256") : explicit_curve());
        CR_CLEANUP(test_server)
        struct test_server *server =
            test_server_new(&(struct test_server_options){.cert = cert, .tls_version = versions[i % 2]});
        const struct cr_probe_target target = {.address = "127.0.0.1", .port = test_server_port(server)};
        struct cr_probe_result result;
        struct cr_probe_conn conn;
        SSL_CTX *ctx = cr_probe_context_new();
        int64_t now = cr_clock_monotonic_ms();
        assert_true(cr_probe_conn_begin(&conn, &target, &result, now, PATIENCE_MS, now + PATIENCE_MS));
        drive(&conn, ctx);
        SSL_CTX_free(ctx);
        if (conn.decoded != within || result.outcome != (within ? CR_PROBE_SERVED : CR_PROBE_TOO_COSTLY))
            fail_msg("version %x: %d '%s'", (unsigned)versions[i % 2], (int)result.outcome, result.detail);
    }
}

static void what_is_over_a_limit_is_given_up_in_words(void **state)
{
    (void)state;
    const struct {
        const char *rule;
        EVP_PKEY *key; /* of the leaf; NULL: P-256 */
        struct raw_flight flight;
        const char *words; /* NULL: within */
    } cases[] = {
        {"an RSA key within", rsa_of(8192, 17, 0, 0), {.exchange = RAW_RSA}, NULL},
        {"an RSA key",
         rsa_of(8200, 17, 0, 0),
         {.exchange = RAW_RSA},
         "its RSA key has 8200 bits, at most 8192 are taken"},
        {"an exponent",
         rsa_of(2048, 2047, 0, 0),
         {.exchange = RAW_RSA},
         "its RSA key's public exponent has 2047 bits, at most 64 are taken"},
        {"explicit parameters", explicit_curve(), {0}, NO_CURVE},
        {"another curve", EVP_EC_gen("secp256k1"), {0}, NO_CURVE},
        {"a binary field", EVP_EC_gen("sect571r1"), {0}, NO_CURVE},
        {"brainpool", EVP_EC_gen("brainpoolP512r1"), {0}, NULL},
        {"another type",
         EVP_PKEY_Q_keygen(NULL, NULL, "X25519"),
         {.exchange = RAW_RSA},
         "a key of its chain is none of RSA, ECDSA, EdDSA and ML-DSA"},
        {"a chain within", NULL, {.copies = 31}, NULL},
        {"a chain", NULL, {.copies = 32}, "its chain has more than 32 certificates"},
        {"a message",
         NULL,
         {.padding = 64 * 1024},
         "its certificates, or the CAs that it names, take more than 64 KiB"},
        {"a flood of HelloRequests", NULL, {.hello_requests = 100 * 1000}, "it sends more than 256 KiB"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(test_cert)
        struct test_cert *cert = cases[i].key ? cert_of(cases[i].key) : test_cert_new(&(struct test_cert_spec){0});
        struct raw_flight flight = cases[i].flight;
        flight.cert = cert;
        flight.certificate_only = flight.certificate_only || cases[i].words || cases[i].key;
        struct cr_probe_result result = probe_raw(&flight);
        bool over = result.outcome == CR_PROBE_TOO_COSTLY;
        if (over != (cases[i].words != NULL) || (over && strcmp(result.detail, cases[i].words) != 0))
            fail_msg("%s: %d '%s'", cases[i].rule, (int)result.outcome, result.detail);
        if (over)
            assert_string_equal(result.leaf, "");
    }
}

/* --- proofs --- */

/* OpenSSL 3.0 says "bad signature", 3.5 "provider signature failure". */
#define SIGNATURE "signature"

static void a_leaf_counts_when_its_key_was_proved(void **state)
{
    enum { HANDSHAKE_FAILURE = 40, BAD_CERTIFICATE = 42 };
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *ec = test_cert_new(&(struct test_cert_spec){0});
    CR_CLEANUP(test_cert) struct test_cert *rsa = test_cert_new(&(struct test_cert_spec){.key_type = "RSA"});
    CR_CLEANUP(test_cert) struct test_cert *other = test_cert_new(&(struct test_cert_spec){0});
    struct {
        const char *rule;
        struct raw_flight flight;
        const char *words; /* NULL: it is served */
    } cases[] = {
        {"a certificate, then the end", {.cert = ec, .certificate_only = true}, "it hung up"},
        {"a certificate, then silence", {.cert = ec, .certificate_only = true, .silent = true}, "nothing more came"},
        {"a signature by another key", {.cert = ec, .other_key = other}, SIGNATURE},
        {"ECDHE, signed, then the end", {.cert = ec}, NULL},
        {"ECDHE, signed, then silence", {.cert = ec, .silent = true}, NULL},
        {"ECDHE with RSA, signed, then an alert", {.cert = rsa, .alert = BAD_CERTIFICATE}, NULL},
        {"RSA key exchange, then an alert", {.cert = rsa, .exchange = RAW_RSA, .alert = HANDSHAKE_FAILURE}, "alert"},
        {"RSA key exchange, then silence", {.cert = rsa, .exchange = RAW_RSA, .silent = true}, "nothing more came"},
        {"RSA key exchange, then the end", {.cert = rsa, .exchange = RAW_RSA}, "it hung up"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_probe_result result = probe_raw(&cases[i].flight);
        bool served = result.outcome == CR_PROBE_SERVED;
        bool as_expected = cases[i].words
                               ? result.outcome == CR_PROBE_UNPROVED && !result.leaf[0] &&
                                     cr_starts_with(result.detail, "did not prove that it has its certificate's "
                                                                   "key: ") &&
                                     strstr(result.detail, cases[i].words)
                               : served && strlen(result.leaf) == CR_PROBE_DIGEST - 1;
        if (!as_expected)
            fail_msg("%s: %d '%s'", cases[i].rule, (int)result.outcome, result.detail);
    }
}

/* The public half of one key and the private half of another. Owned. */
static EVP_PKEY *impostor(const EVP_PKEY *leaf, const EVP_PKEY *own)
{
    unsigned char point[256];
    size_t len = 0;
    BIGNUM *secret = NULL;
    assert_int_equal(EVP_PKEY_get_octet_string_param(leaf, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point, &len), 1);
    assert_int_equal(EVP_PKEY_get_bn_param(own, OSSL_PKEY_PARAM_PRIV_KEY, &secret), 1);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0);
    OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, len);
    OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_PRIV_KEY, secret);
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    EVP_PKEY *key = NULL;
    assert_int_equal(EVP_PKEY_fromdata_init(context), 1);
    assert_int_equal(EVP_PKEY_fromdata(context, &key, EVP_PKEY_KEYPAIR, params), 1);
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(builder);
    BN_clear_free(secret);
    return key;
}

static void who_has_copied_a_certificate_serves_nothing(void **state)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *leaf = test_cert_new(&(struct test_cert_spec){.cn = "leaf"});
    CR_CLEANUP(test_cert) struct test_cert *own = test_cert_new(&(struct test_cert_spec){.cn = "own"});
    struct test_cert copied = *leaf;
    copied.key = impostor(leaf->key, own->key);
    for (size_t i = 0; i < cr_array_len(versions); i++) {
        CR_CLEANUP(test_server)
        struct test_server *server =
            test_server_new(&(struct test_server_options){.cert = &copied, .tls_version = versions[i]});
        struct cr_probe_result result = probe(server, PATIENCE_MS);
        if (result.outcome != CR_PROBE_UNPROVED || result.leaf[0] || !strstr(result.detail, SIGNATURE))
            fail_msg("version %x: %d '%s'", (unsigned)versions[i], (int)result.outcome, result.detail);
    }
    EVP_PKEY_free(copied.key);
}

/* --- the clock --- */

static void after_its_end_nothing_is_read(void **state)
{
    (void)state;
    int ends[2];
    char data[8];
    int waiting = 0;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    assert_int_equal(write(ends[1], "12345678", 8), 8);
    struct cr_probe_wire wire = {.fd = ends[0], .end_ms = cr_clock_monotonic_ms(), .left = 6};
    BIO *bio = cr_probe_bio_new(&wire);
    assert_int_equal(BIO_read(bio, data, 4), -1);
    assert_true(BIO_should_retry(bio));
    assert_int_equal(ioctl(ends[0], FIONREAD, &waiting), 0);
    assert_int_equal(waiting, 8);
    wire.end_ms += PATIENCE_MS;
    assert_int_equal(BIO_read(bio, data, 4), 4);
    assert_int_equal(BIO_read(bio, data, 4), 2);
    assert_false(wire.over);
    assert_int_equal(BIO_read(bio, data, 4), -1);
    assert_true(wire.over && !BIO_should_retry(bio));
    BIO_free(bio);
    close(ends[0]);
    close(ends[1]);
}

/* 64 connections may be due at once: those that come after the round's end cost nothing more. */
static void after_the_end_of_a_round_no_handshake_goes_on(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){0});
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.cert = cert});
    const struct cr_probe_target target = {.address = "127.0.0.1", .port = test_server_port(server)};
    struct cr_probe_result result;
    struct cr_probe_conn conn;
    SSL_CTX *ctx = cr_probe_context_new();
    int64_t now = cr_clock_monotonic_ms();
    assert_true(cr_probe_conn_begin(&conn, &target, &result, now, PATIENCE_MS, now + PATIENCE_MS));
    cr_probe_conn_advance(&conn, ctx, POLLOUT, now + PATIENCE_MS);
    assert_null(conn.ssl);
    assert_int_equal(conn.step, CR_PROBE_ENDED);
    assert_string_equal(result.detail, "no connection in time");
    SSL_CTX_free(ctx);
}

/* --- clients --- */

static char *pem_of(EVP_PKEY *key)
{
    BIO *text = BIO_new(BIO_s_mem());
    char *data = NULL;
    assert_int_equal(PEM_write_bio_PrivateKey(text, key, NULL, NULL, 0, NULL, NULL), 1);
    long len = BIO_get_mem_data(text, &data);
    char *pem = cr_strndup(data, (size_t)len);
    BIO_free(text);
    return pem;
}

static void a_clients_key_has_a_bounded_cost(void **state)
{
    (void)state;
    const struct {
        const char *rule;
        EVP_PKEY *key;
        const char *words; /* NULL: within */
    } cases[] = {
        {"within", rsa_of(4096, 17, 4096, 2048), NULL},
        {"a key that is too long", rsa_of(4104, 17, 4104, 2052), "its RSA key has 4104 bits, at most 4096 are taken"},
        {"a public exponent", rsa_of(2048, 65, 2048, 1024),
         "its RSA key's public exponent has 65 bits, at most 64 are taken"},
        {"a private exponent", rsa_of(2048, 17, 30000, 1024),
         "its RSA key's private exponent has more bits than its modulus"},
        {"factors that are none", rsa_of(2048, 17, 2048, 2048), "its RSA key has no prime factors of half its length"},
        {"explicit parameters", explicit_curve(),
         "its key's curve is given by explicit parameters, only named curves are taken"},
        {"another curve", EVP_EC_gen("sect571r1"),
         "its key is on curve sect571r1, which is not one of P-256, P-384, P-521 and brainpool r1"},
        {"Ed448", EVP_PKEY_Q_keygen(NULL, NULL, "ED448"), NULL},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        if (!cases[i].key)
            continue;
        CR_CLEANUP(test_cert) struct test_cert *cert = cert_of(cases[i].key);
        cr_autofree char *key = pem_of(cases[i].key);
        CR_CLEANUP(cr_probe_client)
        struct cr_probe_client *client =
            cr_probe_client_new(cert->cert_pem, strlen(cert->cert_pem), key, strlen(key), &err);
        if ((client != NULL) != (cases[i].words == NULL) || (!client && strcmp(err.text, cases[i].words) != 0))
            fail_msg("%s: '%s'", cases[i].rule, err.text);
    }
}

/* OpenSSL computes the public half of one as it decodes it: 26 s for the 40,000 bits that fit in 20 KB. */
static void a_clients_dsa_key_is_not_decoded(void **state)
{
    (void)state;
    struct cr_error err = {0};
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){0});
    assert_null(cr_probe_client_new(cert->cert_pem, strlen(cert->cert_pem), test_dsa_key, strlen(test_dsa_key), &err));
    assert_string_equal(err.text, "its key cannot be read, is encrypted, or is none of RSA, ECDSA, EdDSA and ML-DSA");
}

static void a_clients_texts_have_a_bounded_cost(void **state)
{
    static const struct {
        const char *rule;
        size_t certificates;
        size_t certificate_len; /* at least, filled up with line ends */
        size_t key_len;
        const char *words;
    } cases[] = {
        {"within", 32, 0, 0, NULL},
        {"certificates", 33, 0, 0, "it has more than 32 certificates"},
        {"bytes of certificates", 1, CR_TLS_CLIENT_BYTES + 1, 0,
         "it is too large: a client's certificates may take 64 KiB, its key 16 KiB"},
        {"bytes of the key", 1, 0, CR_TLS_CLIENT_KEY_BYTES + 1,
         "it is too large: a client's certificates may take 64 KiB, its key 16 KiB"},
    };
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){0});
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_buf) struct cr_buf certificate = CR_BUF_INIT(0);
        CR_CLEANUP(cr_buf) struct cr_buf key = CR_BUF_INIT(0);
        for (size_t n = 0; n < cases[i].certificates; n++)
            cr_buf_puts(&certificate, cert->cert_pem);
        cr_buf_puts(&key, cert->key_pem);
        while (certificate.len < cases[i].certificate_len)
            cr_buf_puts(&certificate, "\n");
        while (key.len < cases[i].key_len)
            cr_buf_puts(&key, "\n");
        CR_CLEANUP(cr_probe_client)
        struct cr_probe_client *client =
            cr_probe_client_new(certificate.data, certificate.len, key.data, key.len, &err);
        if ((client != NULL) != (cases[i].words == NULL) || (!client && strcmp(err.text, cases[i].words) != 0))
            fail_msg("%s: '%s'", cases[i].rule, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_has_a_bounded_cost_is_offered),
        cmocka_unit_test(who_insists_on_a_prime_of_his_own_is_not_followed),
        cmocka_unit_test(a_server_of_dhe_alone_learns_what_is_offered),
        cmocka_unit_test(a_chain_over_a_limit_is_never_decoded),
        cmocka_unit_test(what_is_over_a_limit_is_given_up_in_words),
        cmocka_unit_test(a_leaf_counts_when_its_key_was_proved),
        cmocka_unit_test(who_has_copied_a_certificate_serves_nothing),
        cmocka_unit_test(after_its_end_nothing_is_read),
        cmocka_unit_test(after_the_end_of_a_round_no_handshake_goes_on),
        cmocka_unit_test(a_clients_key_has_a_bounded_cost),
        cmocka_unit_test(a_clients_dsa_key_is_not_decoded),
        cmocka_unit_test(a_clients_texts_have_a_bounded_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
