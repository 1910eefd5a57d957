#include "api/token_key.h"

#include <string.h>

#include "base/buffer.h"
#include "base/strings.h"
#include "codec/base64.h"
#include "codec/json.h"

enum { DIGEST = (CR_SHA256_HEX - 1) / 2, PART_VALUES = 1000 /* JSON; a service account's token has 20 */ };

/* RFC 4648, section 5, without padding: a part of a JWT (RFC 7515, section 2). */
static bool decode_url(const char *text, size_t len, struct cr_buf *out)
{
    CR_CLEANUP(cr_buf) struct cr_buf plain = {.secret = true};
    for (size_t i = 0; i < len; i++) {
        char c = (char)(text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i]);
        /* White space would be skipped, and the two of plain base64 are none here. */
        if (text[i] == '+' || text[i] == '/' || text[i] == '=' || text[i] <= ' ' || !cr_buf_append(&plain, &c, 1))
            return false;
    }
    static const char padding[] = "===";
    if (len % 4 && !cr_buf_append(&plain, padding, 4 - len % 4))
        return false;
    return len && cr_base64_decode(cr_buf_text(&plain), plain.len, out, NULL);
}

/* The next part, up to its dot, as JSON. NULL: it is none. Owned, to be wiped. */
static struct cr_json *next_part(const char **at, const char *end)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = {.max = CR_TOKEN_MAX, .secret = true};
    const char *dot = memchr(*at, '.', (size_t)(end - *at));
    if (!dot || dot - *at > CR_TOKEN_MAX || !decode_url(*at, (size_t)(dot - *at), &text))
        return NULL;
    *at = dot + 1;
    struct cr_json_budget budget = {.values = PART_VALUES};
    return cr_json_parse_within(cr_buf_text(&text), text.len, &budget, NULL);
}

static bool key_of_header(const struct cr_json *header, char key[CR_SHA256_HEX])
{
    const char *kid = cr_or_empty(cr_json_string_at(header, "kid"));
    CR_CLEANUP(cr_buf) struct cr_buf digest = {0};
    if (!decode_url(kid, strlen(kid), &digest) || digest.len != DIGEST)
        return false;
    cr_digest_hex((const unsigned char *)digest.data, key);
    return true;
}

bool cr_token_key(const char *text, size_t len, char key[CR_SHA256_HEX])
{
    const char *at = text;
    CR_CLEANUP(cr_json_secret) struct cr_json *header = next_part(&at, text + len);
    return key_of_header(header, key);
}

bool cr_pod_token_key(const char *text, size_t len, const char *uid, char key[CR_SHA256_HEX])
{
    const char *at = text;
    const char *end = text + len;
    CR_CLEANUP(cr_json_secret) struct cr_json *header = next_part(&at, end);
    CR_CLEANUP(cr_json_secret) struct cr_json *claims = header ? next_part(&at, end) : NULL;
    *key = '\0'; /* it stays so unless the header has one */
    if (!cr_json_string_at(header, "alg") || !cr_streq(cr_json_string_at(claims, "kubernetes.io", "pod", "uid"), uid))
        return false;
    (void)key_of_header(header, key);
    return true;
}
