/* Small questions about C strings that C does not answer by itself. All take NULL as "not there". */
#ifndef CR_BASE_STRINGS_H
#define CR_BASE_STRINGS_H

#include <stdbool.h>
#include <string.h>

static inline bool cr_streq(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static inline bool cr_starts_with(const char *s, const char *prefix)
{
    return s && strncmp(s, prefix, strlen(prefix)) == 0;
}

static inline bool cr_ends_with(const char *s, const char *suffix)
{
    if (!s)
        return false;
    size_t n = strlen(s);
    size_t m = strlen(suffix);
    return n >= m && strcmp(s + n - m, suffix) == 0;
}

/* "" for NULL: for formatting. */
static inline const char *cr_or_empty(const char *s)
{
    return s ? s : "";
}

/* How many of the first max bytes are whole characters: a text is never cut inside a UTF-8 sequence. */
static inline size_t cr_utf8_fit(const char *text, size_t max)
{
    size_t len = strlen(text);
    if (len <= max)
        return len;
    while (max && ((unsigned char)text[max] & 0xc0) == 0x80)
        max--;
    return max;
}

/* Both are decimal numbers, of any length and without leading zeros, and the first is the smaller one. */
static inline bool cr_decimal_less(const char *a, const char *b)
{
    static const char digits[] = "0123456789";
    if (!a || !b || !*a || !*b || a[strspn(a, digits)] || b[strspn(b, digits)])
        return false;
    size_t n = strlen(a);
    size_t m = strlen(b);
    return n != m ? n < m : strcmp(a, b) < 0;
}

#define cr_array_len(a) (sizeof(a) / sizeof *(a))

#endif
