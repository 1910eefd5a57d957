/* What the parsers call and what is not theirs, as little of it as a proof needs. Memory is never short: the program
 * ends cleanly when it is (base/alloc.h). The texts of errors are not made: a proof is about what is read and written.
 */
#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "proof.h"

void *cr_malloc(size_t size)
{
    return malloc(size ? size : 1);
}

void *cr_calloc(size_t count, size_t size)
{
    return calloc(count ? count : 1, size ? size : 1);
}

char *cr_strndup(const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *copy = malloc(len + 1);
    memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}

void explicit_bzero(void *data, size_t len)
{
    memset(data, 0, len);
}

bool cr_error_set(struct cr_error *err, enum cr_error_kind kind, const char *fmt, ...)
{
    require(fmt[0] != '\0');
    if (err)
        err->kind = kind;
    return false;
}

bool cr_error_wrap(struct cr_error *err, const char *fmt, ...)
{
    require(fmt[0] != '\0');
    require(!err || err->kind != CR_ERR_NONE);
    return false;
}

/* Reads all of the text, as the real one does. */
char *cr_text_clip(const char *text, size_t max)
{
    require(max >= 4);
    require(strlen(text) < SIZE_MAX);
    return cr_calloc(1, 1);
}

/* --- of the C library, what CBMC has no model of --- */

size_t strnlen(const char *s, size_t max)
{
    size_t len = 0;
    while (len < max && s[len])
        len++;
    return len;
}

/* Stricter than C11, section 7.24.5.1: the bytes behind the one that is found must be there too. */
void *memchr(const void *data, int c, size_t len)
{
    const unsigned char *bytes = data;
    require(!len || __CPROVER_r_ok(bytes, len));
    for (size_t i = 0; i < len; i++)
        if (bytes[i] == (unsigned char)c)
            return (void *)(bytes + i);
    return NULL;
}

static bool has(const char *set, char c)
{
    for (; *set; set++)
        if (*set == c)
            return true;
    return false;
}

size_t strspn(const char *s, const char *set)
{
    size_t len = 0;
    while (s[len] && has(set, s[len]))
        len++;
    return len;
}

size_t strcspn(const char *s, const char *set)
{
    size_t len = 0;
    while (s[len] && !has(set, s[len]))
        len++;
    return len;
}

char *strstr(const char *s, const char *part)
{
    for (;; s++) {
        size_t len = 0;
        while (part[len] && s[len] == part[len])
            len++;
        if (!part[len])
            return (char *)s;
        if (!*s)
            return NULL;
    }
}
