/* A growable byte buffer with a cap. data is always NUL-terminated once something was appended, so that text can
 * be used as a C string. A buffer marked secret is wiped whenever its memory is given back. A big one has pages of its
 * own: growing copies nothing, and disposing of it gives the memory back to the system. */
#ifndef CR_BASE_BUFFER_H
#define CR_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"

struct cr_buf {
    char *data; /* owned, not to be freed but by these functions; NULL while empty and never grown */
    size_t len;
    size_t cap;
    size_t max; /* appending beyond fails; 0 means no cap */
    bool secret;
};

#define CR_BUF_INIT(max_bytes) ((struct cr_buf){.max = (max_bytes)})

void cr_buf_dispose(struct cr_buf *buf);
CR_DEFINE_DISPOSE(cr_buf, struct cr_buf, cr_buf_dispose)

/* Empties it but keeps the memory (wiped when secret). */
void cr_buf_reset(struct cr_buf *buf);
/* False only when the cap would be passed; then nothing was appended. */
bool cr_buf_append(struct cr_buf *buf, const void *data, size_t len) CR_MUST_USE;
/* For buffers without a cap: cannot fail. What is printed must not lie in the buffer itself. */
void cr_buf_puts(struct cr_buf *buf, const char *text);
void cr_buf_printf(struct cr_buf *buf, const char *fmt, ...) CR_PRINTF(2, 3);
/* Drops the first n bytes. */
void cr_buf_consume(struct cr_buf *buf, size_t n);
/* Keeps only the first len bytes. */
void cr_buf_cut(struct cr_buf *buf, size_t len);
/* Hands the text on as a C string for free() ("" when empty; a big one is copied) and leaves the buffer empty. */
char *cr_buf_steal(struct cr_buf *buf);
/* Borrowed text, "" when empty. */
const char *cr_buf_text(const struct cr_buf *buf);

#endif
