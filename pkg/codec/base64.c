#include "codec/base64.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* One more than the value of a digit; 0 for what is none. */
static const unsigned char digits[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};

/* As many bytes as are handed over at a time. */
enum { PIECE = 3 * 256 };

struct decoder {
    uint32_t bits;
    int digits; /* of the group of four under way, padding included */
    int pads;
    size_t total; /* bytes so far */
    /* NULL: only checked and counted. */
    void (*take)(void *arg, const void *bytes, size_t len);
    void *arg;
    unsigned char piece[PIECE];
    size_t piece_len;
};

static bool is_space(unsigned char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static void flush(struct decoder *d)
{
    if (d->piece_len)
        d->take(d->arg, d->piece, d->piece_len);
    d->piece_len = 0;
}

static void put_out(struct decoder *d, unsigned char byte)
{
    d->total++;
    if (!d->take)
        return;
    d->piece[d->piece_len++] = byte;
    if (d->piece_len == PIECE)
        flush(d);
}

/* At the end of a group its bytes go out. NULL, or what is wrong. */
static const char *end_group(struct decoder *d)
{
    uint32_t surplus = d->pads == 2 ? 0xFFFF : d->pads == 1 ? 0xFF : 0;
    if (d->bits & surplus)
        return "bits behind the last byte that are not zero";
    for (int shift = 16; shift >= 8 * d->pads; shift -= 8)
        put_out(d, (unsigned char)(d->bits >> shift));
    d->bits = 0;
    d->digits = 0;
    return NULL;
}

/* NULL, or what is wrong with the character. */
static const char *take(struct decoder *d, unsigned char c)
{
    if (is_space(c))
        return NULL;
    if (c != '=' && !digits[c])
        return "a character that is not base64";
    if (d->pads && (c != '=' || !d->digits))
        return "more text after the padding";
    if (c == '=' && d->digits < 2)
        return "padding where none can be";
    if (c == '=')
        d->pads++;
    d->bits = d->bits << 6 | (c == '=' ? 0u : digits[c] - 1u);
    return ++d->digits == 4 ? end_group(d) : NULL;
}

static bool decode(const char *text, size_t len, struct decoder *d, struct cr_error *err)
{
    for (size_t i = 0; i < len; i++) {
        const char *problem = take(d, (unsigned char)text[i]);
        if (problem)
            return cr_error_set(err, CR_ERR_INVALID, "not base64: %s at byte %zu of %zu", problem, i, len);
    }
    if (d->digits)
        return cr_error_set(err, CR_ERR_INVALID, "not base64: the text of %zu bytes ends in the middle of a group",
                            len);
    return true;
}

/* Checks all of it before a byte is handed over. */
static bool decode_checked(const char *text, size_t len, size_t max, void (*on_piece)(void *, const void *, size_t),
                           void *arg, struct cr_error *err)
{
    struct decoder checked = {0};
    if (!decode(text, len, &checked, err))
        return false;
    if (checked.total > max)
        return cr_error_set(err, CR_ERR_INVALID, "base64 of %zu bytes, more than the %zu allowed here", checked.total,
                            max);
    struct decoder d = {.take = on_piece, .arg = arg};
    bool ok = decode(text, len, &d, err);
    flush(&d);
    explicit_bzero(&d, sizeof d);
    return ok;
}

bool cr_base64_decode_pieces(const char *text, size_t len, void (*on_piece)(void *, const void *, size_t), void *arg,
                             struct cr_error *err)
{
    return decode_checked(text, len, SIZE_MAX, on_piece, arg, err);
}

static void append(void *arg, const void *bytes, size_t len)
{
    bool fits = cr_buf_append(arg, bytes, len);
    (void)fits; /* was counted */
}

bool cr_base64_decode(const char *text, size_t len, struct cr_buf *out, struct cr_error *err)
{
    return decode_checked(text, len, out->max ? out->max - out->len : SIZE_MAX, append, out, err);
}

char *cr_base64_encode(const void *data, size_t len)
{
    const unsigned char *in = data;
    char *text = cr_malloc(len / 3 * 4 + 5);
    char *to = text;
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        uint32_t bits = (uint32_t)in[i] << 16;
        if (left > 1)
            bits |= (uint32_t)in[i + 1] << 8;
        if (left > 2)
            bits |= in[i + 2];
        *to++ = alphabet[bits >> 18];
        *to++ = alphabet[bits >> 12 & 63];
        *to++ = alphabet[bits >> 6 & 63];
        *to++ = alphabet[bits & 63];
        if (left < 3)
            to[-1] = '=';
        if (left < 2)
            to[-2] = '=';
    }
    *to = '\0';
    return text;
}
