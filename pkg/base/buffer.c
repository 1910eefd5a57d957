#include "base/buffer.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

/* From this capacity on a buffer has pages of its own: it then grows without being copied, and of what doubling took
 * too much nothing is there until it is written to. All capacities are powers of two, so of whole pages. */
enum { PAGED = 128 * 1024 };

static bool is_paged(const struct cr_buf *buf)
{
    return buf->cap >= PAGED;
}

/* Behind len nothing secret is left, see cr_buf_consume. */
static void wipe(struct cr_buf *buf)
{
    if (buf->secret && buf->data)
        explicit_bzero(buf->data, buf->len);
}

static void give_back(struct cr_buf *buf)
{
    wipe(buf);
    if (is_paged(buf))
        cr_pages_unmap(buf->data, buf->cap);
    else
        free(buf->data);
}

void cr_buf_dispose(struct cr_buf *buf)
{
    give_back(buf);
    buf->data = NULL;
    buf->len = buf->cap = 0;
}

void cr_buf_reset(struct cr_buf *buf)
{
    wipe(buf);
    buf->len = 0;
    if (buf->data)
        buf->data[0] = '\0';
}

/* Never realloc: it may leave a copy of a secret behind. */
static char *move(struct cr_buf *buf, size_t cap)
{
    char *data = cap >= PAGED ? cr_pages_map(cap) : cr_malloc(cap);
    if (buf->len)
        memcpy(data, buf->data, buf->len);
    data[buf->len] = '\0';
    give_back(buf);
    return data;
}

static void reserve(struct cr_buf *buf, size_t want)
{
    if (want < buf->cap)
        return;
    size_t cap = buf->cap ? buf->cap : 256;
    while (cap <= want)
        cap *= 2;
    buf->data = is_paged(buf) ? cr_pages_grow(buf->data, buf->cap, cap) : move(buf, cap);
    buf->cap = cap;
}

static bool has_room(const struct cr_buf *buf, size_t len)
{
    return len <= SIZE_MAX / 4 - buf->len && (!buf->max || len <= buf->max - buf->len);
}

bool cr_buf_append(struct cr_buf *buf, const void *data, size_t len)
{
    if (!has_room(buf, len))
        return false;
    reserve(buf, buf->len + len);
    if (len)
        memcpy(buf->data + buf->len, data, len);
    buf->len += len;
    buf->data[buf->len] = '\0';
    return true;
}

void cr_buf_puts(struct cr_buf *buf, const char *text)
{
    bool fits = cr_buf_append(buf, text, strlen(text));
    (void)fits;
}

/* In place: what is printed elsewhere first would be one more copy of a secret. */
void cr_buf_printf(struct cr_buf *buf, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (len < 0 || !has_room(buf, (size_t)len))
        return;
    reserve(buf, buf->len + (size_t)len);
    va_start(args, fmt);
    (void)vsnprintf(buf->data + buf->len, (size_t)len + 1, fmt, args);
    va_end(args);
    buf->len += (size_t)len;
}

void cr_buf_consume(struct cr_buf *buf, size_t n)
{
    if (!n)
        return;
    if (n > buf->len)
        n = buf->len;
    memmove(buf->data, buf->data + n, buf->len - n);
    buf->len -= n;
    if (buf->secret)
        explicit_bzero(buf->data + buf->len, n);
    buf->data[buf->len] = '\0';
}

void cr_buf_cut(struct cr_buf *buf, size_t len)
{
    if (len >= buf->len)
        return;
    if (buf->secret)
        explicit_bzero(buf->data + len, buf->len - len);
    buf->len = len;
    buf->data[len] = '\0';
}

char *cr_buf_steal(struct cr_buf *buf)
{
    if (!buf->data || is_paged(buf)) {
        char *copy = cr_malloc(buf->len + 1);
        memcpy(copy, cr_buf_text(buf), buf->len + 1);
        cr_buf_dispose(buf);
        return copy;
    }
    char *data = buf->data;
    buf->data = NULL;
    buf->len = buf->cap = 0;
    return data;
}

const char *cr_buf_text(const struct cr_buf *buf)
{
    return buf->data ? buf->data : "";
}
