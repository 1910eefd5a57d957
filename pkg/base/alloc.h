/* Memory: these end the program with one log line when memory is gone. All state is in the API server, so a
 * clean death and a restart lose nothing, and no caller has an untested out-of-memory path. Free with free(). */
#ifndef CR_BASE_ALLOC_H
#define CR_BASE_ALLOC_H

#include <stddef.h>
#include <stdarg.h>

#include "base/error.h"

void *cr_malloc(size_t size) __attribute__((malloc, returns_nonnull));
void *cr_calloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *cr_realloc(void *ptr, size_t size) __attribute__((returns_nonnull));
/* Grows an array of count elements; ends the program when count * size overflows. */
void *cr_reallocarray(void *ptr, size_t count, size_t size) __attribute__((returns_nonnull));
char *cr_strdup(const char *s) __attribute__((malloc, returns_nonnull));
char *cr_strndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
/* strdup that keeps NULL. */
char *cr_strdup_or_null(const char *s);
void *cr_memdup(const void *data, size_t len) __attribute__((malloc, returns_nonnull));
char *cr_asprintf(const char *fmt, ...) CR_PRINTF(1, 2) __attribute__((malloc, returns_nonnull));
char *cr_vasprintf(const char *fmt, va_list args) CR_PRINTF(1, 0) __attribute__((malloc, returns_nonnull));

/* Whole pages (size: a multiple of theirs), zeroed, for what is big: they cost memory only once they are written to,
 * grow without a copy, and go back to the system at once, which clears them before another process gets them. */
void *cr_pages_map(size_t size) __attribute__((malloc, returns_nonnull));
void *cr_pages_grow(void *pages, size_t size, size_t new_size) __attribute__((returns_nonnull));
void cr_pages_unmap(void *pages, size_t size);

/* A zeroed T on the heap. */
#define cr_new(T) ((T *)cr_calloc(1, sizeof(T)))

/* Replaces an owned string. */
void cr_strset(char **slot, const char *value);

#endif
