#include "codec/deflate.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/broken.h"

/* No header and no checksum (negative: RFC 1950's are left out), and a window as long as a model. That and the level
 * of memory let a call take 50 kB for its time, of which the higher levels make no better use: texts are short. */
enum { WINDOW_BITS = -13, MEMORY_LEVEL = 5, LEVEL = 1 };

static void *allocate(void *arg, uInt count, uInt size)
{
    (void)arg;
    return cr_reallocarray(NULL, count, size); /* zlib asks for nothing in it */
}

static void release(void *arg, void *p)
{
    (void)arg;
    free(p);
}

static z_stream new_stream(const void *in, size_t in_len)
{
    return (z_stream){.zalloc = allocate,
                      .zfree = release,
                      .next_in = (Bytef *)(uintptr_t)in, /* only read: zlib.h with ZLIB_CONST says so */
                      .avail_in = (uInt)in_len};
}

static void check(bool good, const char *what)
{
    if (!good)
        cr_broken_memory(what);
}

static const Bytef *end_of(const char *model, size_t *len)
{
    size_t cut = *len > CR_DEFLATE_MODEL_MAX ? *len - CR_DEFLATE_MODEL_MAX : 0;
    *len -= cut;
    return (const Bytef *)(cut ? model + cut : model); /* NULL has no end */
}

void *cr_deflate(const char *text, size_t len, const char *model, size_t model_len, size_t *size)
{
    z_stream stream = new_stream(text, len);
    check(len <= INT_MAX &&
              deflateInit2(&stream, LEVEL, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK,
          "deflateInit2");
    const Bytef *like = end_of(model, &model_len);
    check(!model_len || deflateSetDictionary(&stream, like, (uInt)model_len) == Z_OK, "deflateSetDictionary");
    uLong bound = deflateBound(&stream, (uLong)len);
    stream.next_out = cr_malloc(bound);
    stream.avail_out = (uInt)bound;
    void *data = stream.next_out;
    check(deflate(&stream, Z_FINISH) == Z_STREAM_END, "deflate");
    *size = stream.total_out;
    (void)deflateEnd(&stream);
    return data;
}

char *cr_inflate(const void *data, size_t size, const char *model, size_t model_len, size_t len)
{
    z_stream stream = new_stream(data, size);
    check(inflateInit2(&stream, WINDOW_BITS) == Z_OK, "inflateInit2");
    const Bytef *like = end_of(model, &model_len);
    check(!model_len || inflateSetDictionary(&stream, like, (uInt)model_len) == Z_OK, "inflateSetDictionary");
    char *text = cr_malloc(len + 1);
    stream.next_out = (Bytef *)text;
    stream.avail_out = (uInt)len + 1; /* one more, so that more than len shows */
    check(inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.total_out == len, "inflate");
    (void)inflateEnd(&stream);
    text[len] = '\0';
    return text;
}
