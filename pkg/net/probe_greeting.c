#include "net/probe_greeting.h"

#include <stdio.h>
#include <string.h>

#include "base/strings.h"

void cr_greeting_quote(const unsigned char *data, size_t len, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < len && n + 1 < size; i++) {
        unsigned char c = data[i];
        if (c == '\r' || c == '\n' || c == '\0')
            break;
        out[n++] = (char)(c < 0x20 || c >= 0x7f || c == '\'' ? '.' : c);
    }
    out[n] = '\0';
}

static uint32_t little_endian(const unsigned char *data, size_t bytes)
{
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint32_t)data[i] << (8 * i);
    return value;
}

static uint32_t big_endian(const unsigned char *data)
{
    return (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3];
}

/* --- PostgreSQL --- */

size_t cr_postgres_request(unsigned char out[CR_GREETING_REQUEST])
{
    /* Length, then 1234 and 5679 where a version would stand. */
    static const unsigned char request[] = {0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f};
    memcpy(out, request, sizeof request);
    return sizeof request;
}

/* The field 'M' of fields that are each a letter and a text with a zero behind it. */
static void message_of(const unsigned char *fields, size_t len, char words[CR_GREETING_WORDS])
{
    const unsigned char *end = fields + len;
    while (fields < end && *fields) {
        const unsigned char *text = fields + 1;
        const unsigned char *stop = memchr(text, 0, (size_t)(end - text));
        if (!stop)
            return;
        if (*fields == 'M')
            cr_greeting_quote(text, (size_t)(stop - text), words, CR_GREETING_WORDS);
        fields = stop + 1;
    }
}

/* With a length, as since version 3 of the protocol; or, from a server that could not even fork, plain text up to a
 * zero. No length has four letters: it would be far beyond what is read. */
static enum cr_greeting postgres_error(const unsigned char *data, size_t len, bool closed, size_t *missing,
                                       char words[CR_GREETING_WORDS])
{
    enum { HEAD = 5 };
    if (len < HEAD) {
        *missing = HEAD - len;
        return closed ? CR_GREETING_FOREIGN : CR_GREETING_MORE;
    }
    uint32_t length = big_endian(data + 1);
    bool plain = length > CR_GREETING_MAX;
    if (!plain && length < 4)
        return CR_GREETING_FOREIGN;
    bool whole = plain ? memchr(data, 0, len) != NULL : len >= 1 + (size_t)length;
    if (!whole && !closed && len < CR_GREETING_MAX) {
        *missing = plain ? 1 : 1 + (size_t)length - len;
        return CR_GREETING_MORE;
    }
    if (plain)
        cr_greeting_quote(data + 1, len - 1, words, CR_GREETING_WORDS);
    else
        message_of(data + HEAD, (whole ? 1 + (size_t)length : len) - HEAD, words);
    return CR_GREETING_ERROR;
}

enum cr_greeting cr_postgres_answer(const unsigned char *data, size_t len, bool closed, size_t *missing,
                                    char words[CR_GREETING_WORDS])
{
    words[0] = '\0';
    *missing = 0;
    if (!len) {
        *missing = 1;
        return closed ? CR_GREETING_FOREIGN : CR_GREETING_MORE;
    }
    if (data[0] == 'S' && len == 1)
        return CR_GREETING_TLS;
    if (data[0] == 'N' && len == 1)
        return CR_GREETING_NO_TLS;
    if (data[0] == 'E')
        return postgres_error(data, len, closed, missing, words);
    cr_greeting_quote(data, len, words, CR_GREETING_WORDS);
    return CR_GREETING_FOREIGN;
}

/* --- MySQL --- */

enum {
    PACKET_HEAD = 4, /* length, little-endian, and number */
    PROTOCOL_10 = 0x0a,
    PACKET_OK = 0x00,
    PACKET_MORE = 0x01,
    PACKET_SWITCH = 0xfe,
    PACKET_ERROR = 0xff,
    CLIENT_LONG_PASSWORD = 0x00000001,
    CLIENT_PROTOCOL_41 = 0x00000200,
    CLIENT_SSL = 0x00000800,
    CLIENT_SECURE_CONNECTION = 0x00008000,
    CLIENT_PLUGIN_AUTH = 0x00080000,
    CHARSET_UTF8 = 33,
};

/* Whether the packet is there as a whole. False with *missing 0: it is longer than any that is expected. */
static bool whole_packet(const unsigned char *data, size_t len, size_t *missing)
{
    *missing = len < PACKET_HEAD ? PACKET_HEAD - len : 0;
    if (*missing)
        return false;
    size_t size = PACKET_HEAD + (size_t)little_endian(data, 3);
    if (size > CR_GREETING_MAX)
        return false;
    *missing = len < size ? size - len : 0;
    return !*missing;
}

/* Code, and "#" with a state of five letters once the protocol was agreed on, before the text. */
static void error_words(const unsigned char *payload, size_t len, char words[CR_GREETING_WORDS])
{
    enum { BEFORE_STATE = 3, STATE = 6 };
    size_t at = BEFORE_STATE;
    if (len >= at + STATE && payload[at] == '#')
        at += STATE;
    if (len > at)
        cr_greeting_quote(payload + at, len - at, words, CR_GREETING_WORDS);
}

/* Protocol::HandshakeV10 behind the version: thread 4, salt 8, zero, capabilities 2, charset, status 2, capabilities 2,
 * length of the salt, 10 zeroes, the rest of the salt, name of the plugin. */
static bool read_greeting(const unsigned char *payload, size_t len, struct cr_mysql_greeting *out)
{
    enum { LOW = 13, HIGH = 18, SALT_LEN = 20, FIXED = 31, SALT_BEFORE = 8, SALT_REST = 13 };
    const unsigned char *stop = len > 1 ? memchr(payload + 1, 0, len - 1) : NULL;
    if (!stop)
        return false;
    const unsigned char *rest = stop + 1;
    size_t rest_len = len - (size_t)(rest - payload);
    if (rest_len < LOW + 2)
        return false;
    out->capabilities = little_endian(rest + LOW, 2);
    if (rest_len < FIXED)
        return true; /* a server from before version 4.1 */
    out->capabilities |= little_endian(rest + HIGH, 2) << 16;
    if (!(out->capabilities & CLIENT_PLUGIN_AUTH))
        return true;
    size_t salt = rest[SALT_LEN] > SALT_BEFORE + SALT_REST ? rest[SALT_LEN] - SALT_BEFORE : SALT_REST;
    if (rest_len > FIXED + salt)
        snprintf(out->plugin, sizeof out->plugin, "%.*s", (int)(rest_len - FIXED - salt),
                 (const char *)rest + FIXED + salt);
    return true;
}

enum cr_greeting cr_mysql_answer(const unsigned char *data, size_t len, size_t *missing,
                                 struct cr_mysql_greeting *greeting, char words[CR_GREETING_WORDS])
{
    words[0] = '\0';
    *greeting = (struct cr_mysql_greeting){0};
    if (!whole_packet(data, len, missing)) {
        if (*missing)
            return CR_GREETING_MORE;
        cr_greeting_quote(data, len, words, CR_GREETING_WORDS);
        return CR_GREETING_FOREIGN;
    }
    const unsigned char *payload = data + PACKET_HEAD;
    size_t payload_len = len - PACKET_HEAD;
    if (payload_len >= 3 && payload[0] == PACKET_ERROR) {
        error_words(payload, payload_len, words);
        return CR_GREETING_ERROR;
    }
    if (!payload_len || data[3] != 0 || payload[0] != PROTOCOL_10 || !read_greeting(payload, payload_len, greeting))
        return CR_GREETING_FOREIGN;
    return greeting->capabilities & CLIENT_SSL ? CR_GREETING_TLS : CR_GREETING_NO_TLS;
}

static void put_packet_head(unsigned char *out, size_t size, unsigned char number)
{
    size_t len = size - PACKET_HEAD;
    out[0] = (unsigned char)len;
    out[1] = (unsigned char)(len >> 8);
    out[2] = (unsigned char)(len >> 16);
    out[3] = number;
}

/* Capabilities 4, longest packet 4, charset, 23 zeroes: what a request for TLS and a log-in begin with. */
static size_t put_preamble(const struct cr_mysql_greeting *greeting, bool tls, unsigned char *out)
{
    enum { PREAMBLE = 32, LONGEST_PACKET = 1 << 16 };
    const uint32_t wanted = CLIENT_LONG_PASSWORD | CLIENT_PROTOCOL_41 | CLIENT_SECURE_CONNECTION | CLIENT_PLUGIN_AUTH;
    uint32_t capabilities = (greeting->capabilities & wanted) | CLIENT_PROTOCOL_41 | (tls ? CLIENT_SSL : 0);
    memset(out, 0, PACKET_HEAD + PREAMBLE);
    for (size_t i = 0; i < 4; i++) {
        out[PACKET_HEAD + i] = (unsigned char)(capabilities >> (8 * i));
        out[PACKET_HEAD + 4 + i] = (unsigned char)((uint32_t)LONGEST_PACKET >> (8 * i));
    }
    out[PACKET_HEAD + 8] = CHARSET_UTF8;
    return PACKET_HEAD + PREAMBLE;
}

size_t cr_mysql_request(const struct cr_mysql_greeting *greeting, unsigned char out[CR_GREETING_REQUEST])
{
    size_t size = put_preamble(greeting, true, out);
    put_packet_head(out, size, 1);
    return size;
}

size_t cr_mysql_login(const struct cr_mysql_greeting *greeting, bool tls, unsigned char out[CR_GREETING_REQUEST])
{
    static const char user[] = "certroll-probe";
    size_t size = put_preamble(greeting, tls, out);
    memcpy(out + size, user, sizeof user);
    size += sizeof user;
    out[size++] = 0; /* no password */
    if (greeting->capabilities & CLIENT_PLUGIN_AUTH) {
        memcpy(out + size, greeting->plugin, strlen(greeting->plugin) + 1);
        size += strlen(greeting->plugin) + 1;
    }
    put_packet_head(out, size, tls ? 2 : 1);
    return size;
}

size_t cr_mysql_reply(const unsigned char *data, size_t len, size_t *missing, unsigned char out[CR_GREETING_REQUEST])
{
    enum { COM_QUIT = 1 };
    if (!whole_packet(data, len, missing) || len == PACKET_HEAD)
        return 0;
    switch (data[PACKET_HEAD]) {
    case PACKET_OK: /* the server lets any client in */
        put_packet_head(out, PACKET_HEAD + 1, 0);
        out[PACKET_HEAD] = COM_QUIT;
        return PACKET_HEAD + 1;
    case PACKET_SWITCH: /* another plugin: no password there either */
    case PACKET_MORE:
        put_packet_head(out, PACKET_HEAD, (unsigned char)(data[3] + 1));
        return PACKET_HEAD;
    default:
        return 0;
    }
}
