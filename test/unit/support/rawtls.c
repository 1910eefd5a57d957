#include "support/rawtls.h"

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum {
    RECORD_ALERT = 21,
    RECORD_HANDSHAKE = 22,
    HELLO_REQUEST = 4, /* bytes, all zero: type 0, length 0 */
    SERVER_HELLO = 2,
    CERTIFICATE = 11,
    KEY_EXCHANGE = 12,
    HELLO_DONE = 14,
    RECORD_MAX = 16 * 1024,
};

/* --- bytes --- */

struct bytes {
    unsigned char *data;
    size_t len;
};

static void put(struct bytes *to, const void *data, size_t len)
{
    to->data = cr_reallocarray(to->data, to->len + len + 1, 1);
    if (data)
        memcpy(to->data + to->len, data, len);
    else
        memset(to->data + to->len, 0, len);
    to->len += len;
}

static void put_number(struct bytes *to, size_t number, int width)
{
    for (int shift = 8 * (width - 1); shift >= 0; shift -= 8)
        put(to, &(unsigned char){(unsigned char)(number >> shift)}, 1);
}

static void put_message(struct bytes *to, int type, const struct bytes *body)
{
    put_number(to, (size_t)type, 1);
    put_number(to, body->len, 3);
    put(to, body->data, body->len);
}

static bool send_records(struct test_conn *conn, int type, const struct bytes *data)
{
    for (size_t at = 0; at < data->len;) {
        size_t len = data->len - at < RECORD_MAX ? data->len - at : RECORD_MAX;
        const unsigned char head[] = {(unsigned char)type, 3, 3, (unsigned char)(len >> 8), (unsigned char)len};
        if (!test_conn_write(conn, head, sizeof head) || !test_conn_write(conn, data->data + at, len))
            return false;
        at += len;
    }
    return true;
}

/* --- what the client says --- */

static size_t number_at(const unsigned char *data)
{
    return (size_t)data[0] << 8 | data[1];
}

static size_t take_numbers(const unsigned char *data, size_t len, unsigned short *out, size_t max)
{
    size_t count = 0;
    for (size_t at = 0; at + 1 < len && count < max; at += 2)
        out[count++] = (unsigned short)number_at(data + at);
    return count;
}

/* Our own client's, which is well-formed. */
static void read_hello(const unsigned char *body, struct raw_hello *hello)
{
    enum { GROUPS = 10, SIGNATURES = 13 };
    *hello = (struct raw_hello){0};
    memcpy(hello->random, body + 2, sizeof hello->random);
    const unsigned char *at = body + 2 + 32;
    at += 1 + at[0];
    hello->ciphers_len = take_numbers(at + 2, number_at(at), hello->ciphers, 128);
    at += 2 + number_at(at);
    at += 1 + at[0];
    const unsigned char *end = at + 2 + number_at(at);
    for (at += 2; at < end; at += 4 + number_at(at + 2)) {
        const unsigned char *list = at + 4;
        if (number_at(at) == GROUPS)
            hello->groups_len = take_numbers(list + 2, number_at(list), hello->groups, 64);
        else if (number_at(at) == SIGNATURES)
            hello->signatures_len = take_numbers(list + 2, number_at(list), hello->signatures, 64);
    }
}

/* A record that holds one message. */
static unsigned char *take_record(struct test_conn *conn)
{
    unsigned char head[5];
    if (!test_conn_take(conn, head, sizeof head))
        return NULL;
    size_t len = number_at(head + 3);
    unsigned char *body = cr_malloc(len + 1);
    if (test_conn_take(conn, body, len))
        return body;
    free(body);
    return NULL;
}

/* --- what is said to it --- */

static const unsigned char server_random[32] = {1};

static void say_hello(const struct raw_flight *flight, struct bytes *out)
{
    enum { RSA_AES = 0x009c, DHE_AES = 0x009e, ECDHE_RSA_AES = 0xc02f, ECDHE_ECDSA_AES = 0xc02b };
    bool rsa = EVP_PKEY_get_base_id(flight->cert->key) == EVP_PKEY_RSA;
    size_t ecdhe = rsa ? ECDHE_RSA_AES : ECDHE_ECDSA_AES;
    struct bytes body = {0};
    put_number(&body, 0x0303, 2);
    put(&body, server_random, sizeof server_random);
    put_number(&body, 0, 1); /* no session */
    put_number(&body, flight->exchange == RAW_RSA ? RSA_AES : flight->exchange == RAW_DHE ? DHE_AES : ecdhe, 2);
    put_number(&body, 0, 1); /* no compression */
    put_message(out, SERVER_HELLO, &body);
    free(body.data);
}

static void say_certificates(const struct raw_flight *flight, struct bytes *out)
{
    unsigned char *der = NULL;
    int len = i2d_X509(flight->cert->x509, &der);
    struct bytes list = {0};
    for (size_t i = 0; i <= flight->copies; i++) {
        put_number(&list, (size_t)len, 3);
        put(&list, der, (size_t)len);
    }
    if (flight->padding) {
        put_number(&list, flight->padding, 3);
        put(&list, NULL, flight->padding);
    }
    struct bytes body = {0};
    put_number(&body, list.len, 3);
    put(&body, list.data, list.len);
    put_message(out, CERTIFICATE, &body);
    free(body.data);
    free(list.data);
    OPENSSL_free(der);
}

static void put_share(const struct raw_flight *flight, struct bytes *to)
{
    if (flight->exchange == RAW_ECDHE) {
        static const unsigned char x25519[] = {3 /* named curve */, 0, 29, 32, 9 /* and 31 zeros: the base point */};
        put(to, x25519, sizeof x25519);
        put(to, NULL, 31);
        return;
    }
    size_t len = flight->dh_bits / 8;
    struct bytes prime = {0};
    put(&prime, NULL, len);
    memset(prime.data, 0xff, len);
    put_number(to, len, 2);
    put(to, prime.data, len);
    put_number(to, 1, 2);
    put_number(to, 2, 1); /* the generator */
    put_number(to, len, 2);
    prime.data[len - 1] = 7; /* the share: a large number below it */
    prime.data[0] = 0x7f;
    put(to, prime.data, len);
    free(prime.data);
}

static void say_key_exchange(const struct raw_flight *flight, struct bytes *out)
{
    enum { RSA_SHA256 = 0x0401, ECDSA_SHA256 = 0x0403 };
    EVP_PKEY *key = flight->other_key ? flight->other_key->key : flight->cert->key;
    struct bytes body = {0};
    struct bytes signed_bytes = {0};
    unsigned char signature[2048];
    size_t len = sizeof signature;
    put_share(flight, &body);
    put(&signed_bytes, flight->hello.random, sizeof flight->hello.random);
    put(&signed_bytes, server_random, sizeof server_random);
    put(&signed_bytes, body.data, body.len);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) != 1 ||
        EVP_DigestSign(context, signature, &len, signed_bytes.data, signed_bytes.len) != 1)
        abort();
    EVP_MD_CTX_free(context);
    put_number(&body, EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA ? RSA_SHA256 : ECDSA_SHA256, 2);
    put_number(&body, len, 2);
    put(&body, signature, len);
    put_message(out, KEY_EXCHANGE, &body);
    free(signed_bytes.data);
    free(body.data);
}

static void write_flight(const struct raw_flight *flight, struct bytes *out)
{
    const struct bytes nothing = {0};
    say_hello(flight, out);
    put(out, NULL, HELLO_REQUEST * flight->hello_requests);
    say_certificates(flight, out);
    if (flight->certificate_only)
        return;
    if (flight->exchange != RAW_RSA)
        say_key_exchange(flight, out);
    put_message(out, HELLO_DONE, &nothing);
}

void raw_tls_serve(struct test_conn *conn, void *arg)
{
    struct raw_flight *flight = arg;
    unsigned char *hello = take_record(conn);
    if (!hello)
        return;
    read_hello(hello + 4, &flight->hello);
    free(hello);
    struct bytes out = {0};
    write_flight(flight, &out);
    bool sent = send_records(conn, RECORD_HANDSHAKE, &out);
    free(out.data);
    if (sent && flight->alert) {
        free(take_record(conn));
        const unsigned char alert[] = {2, (unsigned char)flight->alert};
        struct bytes data = {0};
        put(&data, alert, sizeof alert);
        (void)send_records(conn, RECORD_ALERT, &data);
        free(data.data);
    }
    if (flight->silent || flight->alert)
        test_conn_wait_closed(conn);
    else
        test_conn_hang_up(conn);
}
