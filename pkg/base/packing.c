#include "base/packing.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/broken.h"

static void append(struct cr_buf *out, const void *data, size_t len)
{
    if (len && !cr_buf_append(out, data, len))
        abort(); /* out has a cap */
}

static void append_byte(struct cr_buf *out, unsigned byte)
{
    const unsigned char value = (unsigned char)byte;
    append(out, &value, 1);
}

/* Seven bits a byte, the lowest first; the eighth says that more follow. */
static void append_size(struct cr_buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        append_byte(out, (unsigned)(value & 0x7f) | 0x80);
    append_byte(out, (unsigned)value);
}

/* Small negative numbers become small, too: 0, -1, 1, -2, … */
void cr_pack_int(struct cr_buf *out, int64_t value)
{
    append_size(out, ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0));
}

void cr_pack_bytes(struct cr_buf *out, const void *data, size_t len)
{
    append_size(out, len);
    append(out, data, len);
}

/* Its length and one, so that 0 is NULL. */
void cr_pack_text(struct cr_buf *out, const char *text)
{
    size_t len = text ? strlen(text) : 0;
    append_size(out, text ? len + 1 : 0);
    append(out, text, len);
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_hex(const char *text)
{
    while (digit_of(*text) >= 0)
        text++;
    return !*text;
}

/* Its length, doubled, and one where it is packed by digits; of an odd number the last has a byte of its own. */
void cr_pack_hex(struct cr_buf *out, const char *text)
{
    size_t len = strlen(text);
    bool hex = is_hex(text);
    append_size(out, 2 * (uint64_t)len + hex);
    if (!hex) {
        append(out, text, len);
        return;
    }
    for (size_t i = 0; i < len; i += 2)
        append_byte(out, (unsigned)digit_of(text[i]) << 4 | (i + 1 < len ? (unsigned)digit_of(text[i + 1]) : 0));
}

static void pack_each(struct cr_buf *out, const struct cr_strvec *texts, void (*pack)(struct cr_buf *, const char *))
{
    append_size(out, texts->len);
    for (size_t i = 0; i < texts->len; i++)
        pack(out, texts->items[i]);
}

void cr_pack_texts(struct cr_buf *out, const struct cr_strvec *texts)
{
    pack_each(out, texts, cr_pack_text);
}

void cr_pack_hexes(struct cr_buf *out, const struct cr_strvec *texts)
{
    pack_each(out, texts, cr_pack_hex);
}

struct cr_pack *cr_pack_keep(const struct cr_buf *packed)
{
    struct cr_pack *pack = cr_malloc(sizeof *pack + packed->len);
    pack->len = packed->len;
    if (packed->len)
        memcpy(pack->bytes, packed->data, packed->len);
    return pack;
}

/* --- reading --- */

static void check(bool good)
{
    if (!good)
        cr_broken_memory("packed values");
}

struct cr_unpacking cr_unpacking_of(const void *data, size_t len)
{
    return (struct cr_unpacking){.at = data, .end = (const char *)data + len};
}

struct cr_unpacking cr_pack_open(const struct cr_pack *pack)
{
    return pack ? cr_unpacking_of(pack->bytes, pack->len) : cr_unpacking_of("", 0);
}

bool cr_unpacking_at_end(const struct cr_unpacking *from)
{
    return from->at == from->end;
}

void cr_unpacking_end(const struct cr_unpacking *from)
{
    check(cr_unpacking_at_end(from));
}

bool cr_unpacking_is(const struct cr_unpacking *from, const void *data, size_t len)
{
    return (size_t)(from->end - from->at) == len && memcmp(from->at, data, len) == 0;
}

static const char *take(struct cr_unpacking *from, uint64_t len)
{
    const char *at = from->at;
    check(len <= (uint64_t)(from->end - at));
    from->at += len;
    return at;
}

static uint64_t take_size(struct cr_unpacking *from)
{
    uint64_t value = 0;
    unsigned char byte = 0x80;
    for (unsigned shift = 0; byte & 0x80; shift += 7) {
        check(shift < 64);
        byte = (unsigned char)*take(from, 1);
        value |= (uint64_t)(byte & 0x7f) << shift;
    }
    return value;
}

int64_t cr_unpack_int(struct cr_unpacking *from)
{
    uint64_t value = take_size(from);
    return (int64_t)((value >> 1) ^ (value & 1 ? UINT64_MAX : 0));
}

struct cr_unpacking cr_unpack_bytes(struct cr_unpacking *from)
{
    uint64_t len = take_size(from);
    return cr_unpacking_of(take(from, len), (size_t)len);
}

char *cr_unpack_text(struct cr_unpacking *from)
{
    uint64_t size = take_size(from);
    return size ? cr_strndup(take(from, size - 1), (size_t)size - 1) : NULL;
}

void cr_unpack_short(struct cr_unpacking *from, char *out, size_t size)
{
    uint64_t len = take_size(from);
    check(len && len <= size);
    memcpy(out, take(from, len - 1), (size_t)len - 1);
    out[len - 1] = '\0';
}

void cr_unpack_hex(struct cr_unpacking *from, char *out, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t head = take_size(from);
    size_t len = (size_t)(head >> 1);
    check(len < size);
    const char *bytes = take(from, head & 1 ? (len + 1) / 2 : len);
    for (size_t i = 0; i < len; i++) {
        unsigned byte = (unsigned char)bytes[head & 1 ? i / 2 : i];
        out[i] = (char)(head & 1 ? (unsigned)digits[i % 2 ? byte & 0xf : byte >> 4] : byte);
    }
    out[len] = '\0';
}

void cr_unpack_texts(struct cr_unpacking *from, struct cr_strvec *out)
{
    for (uint64_t left = take_size(from); left; left--) {
        cr_autofree char *text = cr_unpack_text(from);
        check(text != NULL);
        cr_strvec_add(out, text);
    }
}

void cr_unpack_hexes(struct cr_unpacking *from, struct cr_strvec *out)
{
    for (uint64_t left = take_size(from); left; left--) {
        struct cr_unpacking next = *from;
        size_t size = (size_t)(take_size(&next) >> 1) + 1;
        cr_autofree char *text = cr_malloc(size);
        cr_unpack_hex(from, text, size);
        cr_strvec_add(out, text);
    }
}
