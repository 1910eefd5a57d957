#include "base/alloc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Must not allocate: it prints with one write(2). */
static _Noreturn void out_of_memory(void)
{
    static const char line[] = "{\"level\":\"fatal\",\"msg\":\"out of memory; ending, a restart loses nothing\"}\n";
    ssize_t ignored = write(STDERR_FILENO, line, sizeof line - 1);
    (void)ignored;
    _exit(137);
}

static void *checked(void *p)
{
    if (!p)
        out_of_memory();
    return p;
}

void *cr_malloc(size_t size)
{
    return checked(malloc(size ? size : 1));
}

void *cr_calloc(size_t count, size_t size)
{
    return checked(calloc(count ? count : 1, size ? size : 1));
}

void *cr_realloc(void *ptr, size_t size)
{
    return checked(realloc(ptr, size ? size : 1));
}

void *cr_reallocarray(void *ptr, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        out_of_memory();
    return cr_realloc(ptr, count * size);
}

static void *checked_pages(void *pages)
{
    if (pages == MAP_FAILED)
        out_of_memory();
    return pages;
}

void *cr_pages_map(size_t size)
{
    return checked_pages(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

void *cr_pages_grow(void *pages, size_t size, size_t new_size)
{
    return checked_pages(mremap(pages, size, new_size, MREMAP_MAYMOVE));
}

void cr_pages_unmap(void *pages, size_t size)
{
    munmap(pages, size);
}

char *cr_strdup(const char *s)
{
    return checked(strdup(s));
}

/* Not by strndup: what is copied need be no C string, which strict sanitizers want to see there. */
char *cr_strndup(const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *copy = cr_malloc(len + 1);
    memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}

char *cr_strdup_or_null(const char *s)
{
    return s ? cr_strdup(s) : NULL;
}

void *cr_memdup(const void *data, size_t len)
{
    void *copy = cr_malloc(len);
    if (len)
        memcpy(copy, data, len);
    return copy;
}

char *cr_vasprintf(const char *fmt, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, fmt, args) < 0)
        out_of_memory();
    return text;
}

char *cr_asprintf(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *text = cr_vasprintf(fmt, args);
    va_end(args);
    return text;
}

void cr_strset(char **slot, const char *value)
{
    char *copy = cr_strdup_or_null(value);
    free(*slot);
    *slot = copy;
}
