/* Texts of which many resemble each other, kept small (zlib, RFC 1951). Any thread; nothing is shared between calls. */
#ifndef CR_CODEC_DEFLATE_H
#define CR_CODEC_DEFLATE_H

#include <stddef.h>

/* Only so many bytes at the end of a longer model count. */
enum { CR_DEFLATE_MODEL_MAX = 8 * 1024 };

/* model: a text like it, which costs next to nothing again; model_len 0: none. Owned; *size: its bytes. Some 30 µs for
 * 3 kB. */
void *cr_deflate(const char *text, size_t len, const char *model, size_t model_len, size_t *size);
/* The text again, owned, with a NUL behind it. model as it was then; len: of the text. What cr_deflate did not make
 * ends the program: memory is broken. Some 10 µs for 3 kB. */
char *cr_inflate(const void *data, size_t size, const char *model, size_t model_len, size_t len);

#endif
