#include "codec/json_scan.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* cJSON copies a number into 64 bytes and reads no further. */
enum { MAX_NUMBER = 63 };

struct scanner {
    const unsigned char *at;
    const unsigned char *end;
    char closers[CR_JSON_MAX_DEPTH]; /* what ends each open container */
    size_t depth;
    const char *problem;
    size_t nul_escapes;
    size_t values;
};

static bool fail(struct scanner *s, const char *problem)
{
    s->problem = problem;
    return false;
}

/* The next byte, or a value that no rule expects. */
static int peek(const struct scanner *s)
{
    return s->at < s->end ? *s->at : -1;
}

static bool accept(struct scanner *s, char c)
{
    if (peek(s) != (unsigned char)c)
        return false;
    s->at++;
    return true;
}

static void skip_space(struct scanner *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t'))
        s->at++;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static size_t skip_digits(struct scanner *s)
{
    const unsigned char *start = s->at;
    while (is_digit(peek(s)))
        s->at++;
    return (size_t)(s->at - start);
}

/* 1e999 is JSON, but no double holds it. */
static bool is_finite(const unsigned char *number, size_t len)
{
    char text[MAX_NUMBER + 1];
    memcpy(text, number, len);
    text[len] = '\0';
    return isfinite(strtod(text, NULL));
}

static bool scan_number(struct scanner *s)
{
    const unsigned char *start = s->at;
    bool exponent = false;
    accept(s, '-');
    bool zero = peek(s) == '0';
    size_t digits = skip_digits(s);
    if (!digits || (zero && digits > 1))
        return fail(s, "a malformed number");
    if (accept(s, '.') && !skip_digits(s))
        return fail(s, "a number without digits after its point");
    if (accept(s, 'e') || accept(s, 'E')) {
        exponent = true;
        if (!accept(s, '+'))
            accept(s, '-');
        if (!skip_digits(s))
            return fail(s, "a number without digits in its exponent");
    }
    size_t len = (size_t)(s->at - start);
    if (len > MAX_NUMBER)
        return fail(s, "a number of more than 63 characters");
    if (exponent && !is_finite(start, len))
        return fail(s, "a number out of range");
    return true;
}

static int hex_value(int c)
{
    if (is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool scan_unit(struct scanner *s, unsigned *unit)
{
    *unit = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_value(peek(s));
        if (digit < 0)
            return fail(s, "a \\u escape without four hexadecimal digits");
        *unit = *unit << 4 | (unsigned)digit;
        s->at++;
    }
    return true;
}

/* After "\u". A surrogate must be one of a pair. */
static bool scan_unicode_escape(struct scanner *s)
{
    unsigned unit;
    if (!scan_unit(s, &unit))
        return false;
    if (!unit)
        s->nul_escapes++;
    if (unit < 0xD800 || unit > 0xDFFF)
        return true;
    unsigned low;
    if (unit > 0xDBFF || !accept(s, '\\') || !accept(s, 'u'))
        return fail(s, "half of a surrogate pair");
    if (!scan_unit(s, &low))
        return false;
    return (low >= 0xDC00 && low <= 0xDFFF) || fail(s, "half of a surrogate pair");
}

static bool scan_escape(struct scanner *s)
{
    int c = peek(s);
    if (c < 0)
        return fail(s, "a string that does not end");
    if (!c || !strchr("\"\\/bfnrtu", c))
        return fail(s, "an unknown escape");
    s->at++;
    return c != 'u' || scan_unicode_escape(s);
}

/* The length of the UTF-8 sequence at the front (RFC 3629: no overlong form, no surrogate, nothing above U+10FFFF);
 * 0 when there is none. */
static size_t utf8_sequence(const unsigned char *p, size_t left)
{
    unsigned char first = p[0];
    size_t len = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    if (!len || left < len)
        return 0;
    unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    return len;
}

static bool scan_string(struct scanner *s)
{
    if (!accept(s, '"'))
        return fail(s, "something else where a string must stand");
    while (s->at < s->end) {
        unsigned char c = *s->at;
        if (c == '"') {
            s->at++;
            return true;
        }
        if (c == '\\') {
            s->at++;
            if (!scan_escape(s))
                return false;
        } else if (c < 0x20) {
            return fail(s, "a control character in a string");
        } else if (c < 0x80) {
            s->at++;
        } else {
            size_t n = utf8_sequence(s->at, (size_t)(s->end - s->at));
            if (!n)
                return fail(s, "invalid UTF-8 in a string");
            s->at += n;
        }
    }
    return fail(s, "a string that does not end");
}

static bool scan_key(struct scanner *s)
{
    skip_space(s);
    if (!scan_string(s))
        return false;
    skip_space(s);
    return accept(s, ':') || fail(s, "a key without a colon");
}

static bool scan_word(struct scanner *s, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len) != 0)
        return fail(s, "an unknown word");
    s->at += len;
    return true;
}

/* Opens a container; *inside says whether a value must follow (false when it was empty). */
static bool scan_open(struct scanner *s, char closer, bool *inside)
{
    if (s->depth == CR_JSON_MAX_DEPTH)
        return fail(s, "values nested more than 100 deep");
    s->at++;
    skip_space(s);
    if (accept(s, closer))
        return true;
    s->closers[s->depth++] = closer;
    *inside = true;
    return closer == ']' || scan_key(s);
}

static bool scan_value(struct scanner *s, bool *inside)
{
    *inside = false;
    s->values++;
    skip_space(s);
    switch (peek(s)) {
    case -1:
        return fail(s, "the end of the text where a value must stand");
    case '{':
        return scan_open(s, '}', inside);
    case '[':
        return scan_open(s, ']', inside);
    case '"':
        return scan_string(s);
    case 't':
        return scan_word(s, "true");
    case 'f':
        return scan_word(s, "false");
    case 'n':
        return scan_word(s, "null");
    default:
        return scan_number(s);
    }
}

/* After a value: closes what ends here. *more says whether another value must follow. */
static bool scan_after(struct scanner *s, bool *more)
{
    *more = false;
    while (s->depth) {
        char closer = s->closers[s->depth - 1];
        skip_space(s);
        if (accept(s, ',')) {
            *more = true;
            return closer == ']' || scan_key(s);
        }
        if (!accept(s, closer))
            return fail(s, s->at == s->end ? "the end of the text inside of a value"
                                           : "something else where a comma or the end must stand");
        s->depth--;
    }
    return true;
}

static bool scan_text(struct scanner *s)
{
    bool more = true;
    while (more) {
        if (!scan_value(s, &more))
            return false;
        if (!more && !scan_after(s, &more))
            return false;
    }
    skip_space(s);
    return s->at == s->end || fail(s, "more text after the value");
}

bool cr_json_scan(const char *data, size_t len, struct cr_json_scan *result)
{
    const unsigned char *start = (const unsigned char *)data;
    struct scanner s = {.at = start, .end = start ? start + len : NULL};
    bool valid = scan_text(&s);
    *result = (struct cr_json_scan){.problem = s.problem, .nul_escapes = s.nul_escapes, .values = s.values};
    if (!valid)
        result->offset = (size_t)(s.at - start);
    return valid;
}
