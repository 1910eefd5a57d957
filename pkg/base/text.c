#include "base/text.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"

/* The length of the UTF-8 character at p with at most `left` bytes; 0 when there is none. */
static size_t character(const unsigned char *p, size_t left)
{
    size_t n = *p < 0x80                 ? 1
               : *p >= 0xc2 && *p < 0xe0 ? 2
               : *p >= 0xe0 && *p < 0xf0 ? 3
               : *p >= 0xf0 && *p < 0xf5 ? 4
                                         : 0;
    if (n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

/* C0, DEL and C1 (U+0080 to U+009F), which terminals obey. */
static bool is_control(const unsigned char *p)
{
    return *p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0);
}

char *cr_text_clip(const char *text, size_t max)
{
    size_t len = strlen(text);
    size_t limit = len > max ? max - 3 : len;
    char *out = cr_malloc(limit + 4);
    size_t used = 0;
    for (size_t i = 0; i < limit;) {
        size_t n = character((const unsigned char *)text + i, len - i);
        if (n > limit - i)
            break;
        bool shown = n && !is_control((const unsigned char *)text + i);
        if (shown)
            memcpy(out + used, text + i, n);
        else
            out[used] = '?';
        used += shown ? n : 1;
        i += n ? n : 1;
    }
    memcpy(out + used, len > max ? "..." : "", len > max ? 4 : 1);
    return out;
}

void cr_text_quote(const char *text, struct cr_buf *out)
{
    cr_buf_puts(out, "\"");
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\')
            cr_buf_printf(out, "\\%c", c);
        else if (c < 0x20)
            cr_buf_printf(out, "\\u%04x", c);
        else
            cr_buf_printf(out, "%c", c);
    }
    cr_buf_puts(out, "\"");
}
